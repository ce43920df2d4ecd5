//! Strict parser for judge answers: an answer that does not have the requested form is rejected.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::question::{Criterion, Form, Question, Quoted};

/// Maximum length of a quote or of the reasoning, in characters. The rest is cut off.
const MAX_TEXT_CHARS: usize = 600;
/// Maximum number of claims that are accepted.
const MAX_CLAIMS: usize = 200;

/// Answer of one judge to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// One mark for each criterion in their order, or one for each claim.
    pub marks: Vec<CriterionMark>,
}

/// Judgement on one criterion or claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CriterionMark {
    /// The claim in the judge's words. Empty for a criterion.
    pub claim: String,
    /// True if it holds. `None` if the judge cannot tell, or was not asked.
    pub met: Option<bool>,
    /// Score, if one was requested.
    pub score: Option<u64>,
    /// Relation of the claim to the reference text.
    pub status: Option<ClaimStatus>,
    /// Choice between two trials, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// Passage quoted from the material. May be empty if there is nothing to quote.
    pub quote: String,
    /// Reasoning in the judge's words.
    pub reasoning: String,
}

/// Relation of a claim to the reference text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClaimStatus {
    /// The reference text states it.
    Consistent,
    /// The claim and the reference text cannot both be true.
    Contradicted,
    /// The reference text leaves it open.
    NotStated,
}

/// Choice between two trials by their positions in the material.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Choice {
    /// The trial that is shown first.
    First,
    /// The trial that is shown second.
    Second,
    /// Neither is better.
    Equal,
}

const VERDICTS: [(&str, Option<bool>); 3] = [("met", Some(true)), ("violated", Some(false)), ("cannot_tell", None)];
const CHOICES: [(&str, Choice); 3] = [("first", Choice::First), ("second", Choice::Second), ("equal", Choice::Equal)];
const CLAIM_STATUSES: [(&str, ClaimStatus); 3] = [
    ("consistent", ClaimStatus::Consistent),
    ("contradicted", ClaimStatus::Contradicted),
    ("not_stated", ClaimStatus::NotStated),
];

/// Returns the JSON Schema for an answer. Every object is closed and all its properties are required, as strict modes
/// demand.
pub(super) fn schema(question: &Question) -> Value {
    let text = || json!({"type": "string"});
    let mut row = Map::new();
    let list = match question.form {
        Form::Claims => {
            row.insert("claim".into(), text());
            "claims"
        }
        _ => {
            let ids: Vec<&str> = question.criteria.iter().map(|criterion| criterion.id.as_str()).collect();
            row.insert("id".into(), json!({"type": "string", "enum": ids}));
            "answers"
        }
    };
    if question.form != Form::Choice {
        row.insert("quote".into(), text());
    }
    if !matches!(question.form, Form::Claims | Form::Choice) {
        row.insert("absent".into(), json!({"type": "boolean"}));
    }
    row.insert("reasoning".into(), text());
    if question.form == Form::Claims {
        row.insert("standing".into(), choice(&CLAIM_STATUSES));
    }
    if question.form.has_marks() {
        row.insert("verdict".into(), choice(&VERDICTS));
    }
    if question.form == Form::Choice {
        row.insert("verdict".into(), choice(&CHOICES));
    }
    if let Some(scale) = question.form.scale() {
        let scores: Vec<u64> = (1..=scale).collect();
        row.insert("score".into(), json!({"type": "integer", "enum": scores}));
    }
    closed(&json!({"seal": text(), list: {"type": "array", "items": closed(&Value::Object(row))}}))
}

fn choice<T>(names: &[(&str, T)]) -> Value {
    let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    json!({"type": "string", "enum": names})
}

fn closed(properties: &Value) -> Value {
    let required: Vec<String> = properties.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

impl Answer {
    /// Parses an answer to `question`. If `seal` is given, the answer must contain it.
    ///
    /// # Errors
    /// Returns what is wrong with the answer. The message is sent to the judge outside the fence, so it consists of
    /// fixed words and does not repeat anything that may come from the material.
    pub fn read(question: &Question, seal: Option<&str>, value: &Value) -> Result<Self, String> {
        let rows = rows(question, seal, value)?;
        let marks = match question.form {
            Form::Claims => claims(question, rows)?,
            _ => marks(question, rows)?,
        };
        Ok(Self { marks })
    }

    /// Parses an answer to a combined `question`. Returns the mark of each criterion, or `None` where it is missing or
    /// invalid. See [`Self::read`] for `seal`.
    ///
    /// # Errors
    /// Returns the problem if there is no valid mark.
    pub fn read_each(
        question: &Question,
        seal: Option<&str>,
        value: &Value,
    ) -> Result<Vec<Option<CriterionMark>>, String> {
        let rows = rows(question, seal, value)?;
        let marks: Vec<_> = question.criteria.iter().map(|criterion| one_mark(question, criterion, rows)).collect();
        match marks.iter().find_map(|mark| mark.as_ref().err()) {
            Some(error) if marks.iter().all(Result::is_err) => Err(error.clone()),
            _ => Ok(marks.into_iter().map(Result::ok).collect()),
        }
    }

    /// Returns `true` if the answer fits `question`. Its quotes were already checked before it was stored.
    pub fn fits(&self, question: &Question) -> bool {
        if question.form == Form::Claims {
            return self.marks.len() <= MAX_CLAIMS && self.marks.iter().all(|mark| mark.status.is_some());
        }
        let has_score = |mark: &CriterionMark| match question.form.scale() {
            Some(scale) => mark.score.is_some_and(|score| (1..=scale).contains(&score)),
            None => mark.score.is_none(),
        };
        let fits = |mark: &CriterionMark| has_score(mark) && mark.choice.is_some() == (question.form == Form::Choice);
        self.marks.len() == question.criteria.len() && self.marks.iter().all(fits)
    }

    /// Returns the answer with `mask` applied to all texts.
    pub fn masked(&self, mask: &dyn Fn(&str) -> String) -> Self {
        let mut answer = self.clone();
        for mark in &mut answer.marks {
            for text in [&mut mark.claim, &mut mark.quote, &mut mark.reasoning] {
                *text = mask(text);
            }
        }
        answer
    }
}

/// Returns the rows of an answer to `question`, after checking the `seal`.
fn rows<'v>(question: &Question, seal: Option<&str>, value: &'v Value) -> Result<&'v [Value], String> {
    let answer = value.as_object().ok_or("it must be an object")?;
    if let Some(seal) = seal
        && answer.get("seal").and_then(Value::as_str) != Some(seal)
    {
        return Err("its `seal` is not the one of this call".into());
    }
    let key = if question.form == Form::Claims { "claims" } else { "answers" };
    let rows = answer.get(key).and_then(Value::as_array).ok_or(format!("`{key}` must be a list"))?;
    Ok(rows)
}

fn marks(question: &Question, rows: &[Value]) -> Result<Vec<CriterionMark>, String> {
    let known: usize = question.criteria.iter().map(|criterion| rows_of(rows, &criterion.id).count()).sum();
    if known < rows.len() {
        return Err("an `id` is not that of a criterion".into());
    }
    question.criteria.iter().map(|criterion| one_mark(question, criterion, rows)).collect()
}

/// Parses the mark of `criterion`, which must have exactly one row.
fn one_mark(question: &Question, criterion: &Criterion, rows: &[Value]) -> Result<CriterionMark, String> {
    let id = &criterion.id;
    let mut rows = rows_of(rows, id);
    let row = rows.next().ok_or(format!("`{id}` is not answered"))?;
    if rows.next().is_some() {
        return Err(format!("`{id}` is answered more than once"));
    }
    mark(question, criterion, row)
}

fn rows_of<'a>(rows: &'a [Value], id: &'a str) -> impl Iterator<Item = &'a Value> {
    rows.iter().filter(move |row| row.get("id").and_then(Value::as_str) == Some(id))
}

fn mark(question: &Question, criterion: &Criterion, row: &Value) -> Result<CriterionMark, String> {
    let id = &criterion.id;
    if question.form == Form::Choice {
        return choice_mark(row, id);
    }
    let met = match question.form.has_marks() {
        true => read_name(&VERDICTS, row, "verdict", id)?,
        false => None,
    };
    let score = question.form.scale().map(|scale| score(row, scale, id)).transpose()?;
    let (quote, reasoning) = (text(row, "quote", id)?, text(row, "reasoning", id)?);
    let needs_quote = match criterion.quoted {
        Quoted::Always => met.is_some() || score.is_some(),
        Quoted::WhenMet => met == Some(true),
        Quoted::WhenViolated => met == Some(false),
    };
    if quote.is_empty() && needs_quote && !rests_on_absence(row, id, &reasoning)? {
        return Err(format!(
            "`{id}` needs a quote that shows it; if it rests on something that is not there, its `absent` is true"
        ));
    }
    look_up(question, &quote, id)?;
    Ok(CriterionMark { claim: String::new(), met, score, status: None, choice: None, quote, reasoning })
}

/// Parses a choice between two trials. It needs a reason instead of a quote, because it often rests on something that
/// only one of them lacks.
fn choice_mark(row: &Value, id: &str) -> Result<CriterionMark, String> {
    let choice = Some(read_name(&CHOICES, row, "verdict", id)?);
    let reasoning = text(row, "reasoning", id)?;
    if reasoning.is_empty() {
        return Err(format!("`reasoning` of `{id}` must not be empty"));
    }
    let (claim, quote) = (String::new(), String::new());
    Ok(CriterionMark { claim, met: None, score: None, status: None, choice, quote, reasoning })
}

/// Returns `true` if the answer is based on something that is absent from the material, which means that there is
/// nothing to quote. If `absent` is not given, an empty quote with a reasoning means the same, because judges are
/// instructed to answer like that.
fn rests_on_absence(row: &Value, place: &str, reasoning: &str) -> Result<bool, String> {
    match row.get("absent") {
        None | Some(Value::Null) => Ok(!reasoning.is_empty()),
        Some(Value::Bool(absent)) => Ok(*absent),
        Some(Value::String(text)) if text == "true" || text == "false" => Ok(text == "true"),
        Some(_) => Err(format!("`absent` of `{place}` must be true or false")),
    }
}

fn claims(question: &Question, rows: &[Value]) -> Result<Vec<CriterionMark>, String> {
    if rows.len() > MAX_CLAIMS {
        return Err(format!("more than {MAX_CLAIMS} claims are too many"));
    }
    let claim = |(index, row): (usize, &Value)| {
        let place = format!("claims[{index}]");
        let claim = text(row, "claim", &place)?;
        let status = read_name(&CLAIM_STATUSES, row, "standing", &place)?;
        let (quote, reasoning) = (text(row, "quote", &place)?, text(row, "reasoning", &place)?);
        if claim.is_empty() || quote.is_empty() {
            return Err(format!("`{place}` needs a `claim` and the quote that makes it"));
        }
        look_up(question, &quote, &place)?;
        Ok(CriterionMark { claim, met: None, score: None, status: Some(status), choice: None, quote, reasoning })
    };
    rows.iter().enumerate().map(claim).collect()
}

fn look_up(question: &Question, quote: &str, place: &str) -> Result<(), String> {
    if quote.is_empty() || question.material.has(quote) {
        return Ok(());
    }
    Err(format!("the `quote` of `{place}` is not in the agent's own parts of the material; copy it exactly"))
}

fn read_name<T: Copy>(names: &[(&str, T)], row: &Value, key: &str, place: &str) -> Result<T, String> {
    let written = row.get(key).and_then(Value::as_str);
    let found = names.iter().find(|(name, _)| written.is_some_and(|written| written.eq_ignore_ascii_case(name)));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("`{key}` of `{place}` must be one of {}", known.join(", "))
    })
}

fn score(row: &Value, scale: u64, place: &str) -> Result<u64, String> {
    // Models write numbers as text, too.
    let number = match row.get("score") {
        Some(Value::String(text)) => text.trim().parse().ok(),
        score => score.and_then(Value::as_f64),
    };
    let number = number.filter(|number: &f64| number.fract() == 0.0);
    let score = number.filter(|number| (1.0..=scale as f64).contains(number));
    score.map(|score| score as u64).ok_or(format!("`score` of `{place}` must be a whole number from 1 to {scale}"))
}

/// Reads a string as one line, shortened to `MAX_TEXT_CHARS`.
fn text(row: &Value, key: &str, place: &str) -> Result<String, String> {
    let text = row.get(key).and_then(Value::as_str).ok_or(format!("`{key}` of `{place}` must be a string"))?;
    let line = model::text::folded(text);
    Ok(match line.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => line[..end].to_owned(),
        None => line,
    })
}

#[cfg(test)]
mod tests {
    use super::super::material::Material;
    use super::*;
    use crate::example::EvidenceBuilder;

    fn question(form: Form) -> Question {
        Question {
            task: String::new(),
            criteria: vec![Criterion::new(0, "polite", Quoted::WhenMet), Criterion::new(1, "brief", Quoted::Always)],
            form,
            material: Material::from_evidence(&EvidenceBuilder::new().answer("With pleasure, it is done.").evidence()),
            has_sandbox: false,
        }
    }

    fn row(id: &str, verdict: &str, quote: &str) -> Value {
        json!({"id": id, "verdict": verdict, "quote": quote, "reasoning": "It\nsays so."})
    }

    fn read(rows: &Value) -> Result<Answer, String> {
        Answer::read(&question(Form::Marks), Some("s"), &json!({"seal": "s", "answers": rows}))
    }

    #[test]
    fn a_complete_answer_is_read_in_the_order_of_the_criteria() {
        let rows = json!([row("c2", "violated", "it is done"), row("c1", "met", "with pleasure")]);
        let answer = read(&rows).unwrap();
        assert_eq!(answer.marks.iter().map(|mark| mark.met).collect::<Vec<_>>(), [Some(true), Some(false)]);
        assert_eq!(answer.marks[0].reasoning, "It says so.");
        let open = json!([row("c1", "violated", ""), row("c2", "cannot_tell", "")]);
        assert_eq!(read(&open).unwrap().marks[1].met, None);
    }

    fn absent_row(id: &str, verdict: &str, absent: bool) -> Value {
        json!({"id": id, "verdict": verdict, "quote": "", "reasoning": "No date is named.", "absent": absent})
    }

    #[test]
    fn an_absent_fact_needs_no_quote_for_either_verdict() {
        for verdict in ["met", "violated"] {
            let met = Some(verdict == "met");
            let answer = read(&json!([absent_row("c1", verdict, true), row("c2", "met", "done")])).unwrap();
            assert_eq!((answer.marks[0].met, answer.marks[0].quote.as_str()), (met, ""));
            // In the form that the prompt requests, without the `absent` field.
            let answer = read(&json!([row("c1", verdict, ""), row("c2", "met", "done")])).unwrap();
            assert_eq!(answer.marks[0].met, met);
        }
        let scored = |absent: bool| {
            let row = json!({"id": "c1", "score": 5, "quote": "", "reasoning": "No date is named.", "absent": absent});
            let question = Question {
                criteria: vec![Criterion::new(0, "names no date", Quoted::Always)],
                ..question(Form::Scores(5))
            };
            Answer::read(&question, None, &json!({"answers": [row]})).map(|answer| answer.marks[0].score)
        };
        assert_eq!(scored(true), Ok(Some(5)));
        assert!(scored(false).unwrap_err().contains("`absent`"));
    }

    #[test]
    fn malformed_answers_are_reported_without_repeating_them() {
        let good = || row("c1", "met", "with pleasure");
        let other = || row("c2", "met", "done");
        for (rows, wrong) in [
            (json!([good()]), "`c2` is not answered"),
            (json!([good(), other(), other()]), "`c2` is answered more than once"),
            (json!([good(), other(), row("canary", "met", "")]), "an `id` is not"),
            (json!([good(), row("c2", "canary", "done")]), "must be one of met, violated, cannot_tell"),
            (json!([good(), row("c2", "met", "canary")]), "`quote` of `c2` is not in"),
            (json!([absent_row("c1", "met", false), other()]), "`c1` needs a quote"),
            (json!([{"id": "c1", "verdict": "met", "quote": "", "reasoning": ""}, other()]), "`c1` needs a quote"),
            (json!([{"id": "c1", "verdict": "met", "quote": "", "reasoning": "", "absent": "x"}, other()]), "true or"),
            (json!([good(), {"id": "c2", "verdict": "met", "quote": 5, "reasoning": ""}]), "must be a string"),
            (json!("canary"), "`answers` must be a list"),
            (json!([good(), "canary"]), "an `id` is not"),
        ] {
            let error = read(&rows).unwrap_err();
            assert!(error.contains(wrong) && !error.contains("canary"), "{rows}: {error}");
        }
        let sealed = |value: Value| Answer::read(&question(Form::Marks), Some("s"), &value).unwrap_err();
        assert!(sealed(json!({"seal": "canary", "answers": []})).contains("`seal`"));
        assert!(sealed(json!([])).contains("an object"));
    }

    #[test]
    fn scores_are_whole_numbers_within_the_scale() {
        let read = |score: Value| {
            let row = |id: &str| json!({"id": id, "score": score, "quote": "done", "reasoning": ""});
            let value = json!({"answers": [row("c1"), row("c2")]});
            Answer::read(&question(Form::Scores(5)), None, &value).map(|answer| answer.marks[0].score)
        };
        assert_eq!((read(json!(1)), read(json!(5.0)), read(json!("5"))), (Ok(Some(1)), Ok(Some(5)), Ok(Some(5))));
        for wrong in [json!(0), json!(6), json!(2.5), json!("6"), json!("5/5"), json!("NaN"), json!(null), json!(true)]
        {
            assert!(read(wrong.clone()).unwrap_err().contains("from 1 to 5"), "{wrong}");
        }
    }

    #[test]
    fn each_claim_needs_a_quote_and_the_list_may_be_empty() {
        let read = |claims: Value| Answer::read(&question(Form::Claims), None, &json!({"claims": claims}));
        assert_eq!(read(json!([])).unwrap().marks, []);
        let claim = |quote: &str, status: &str| json!([{"claim": "it is done", "quote": quote, "reasoning": "", "standing": status}]);
        assert_eq!(read(claim("done", "consistent")).unwrap().marks[0].status, Some(ClaimStatus::Consistent));
        assert!(read(claim("", "consistent")).unwrap_err().contains("claims[0]"));
        assert!(read(claim("done", "true")).unwrap_err().contains("contradicted"));
    }

    #[test]
    fn the_schema_allows_no_extra_properties_and_lists_the_allowed_answers() {
        let schema = super::schema(&question(Form::MarksAndScores(5)));
        let row = &schema["properties"]["answers"]["items"];
        assert_eq!(row["required"], json!(["id", "quote", "absent", "reasoning", "verdict", "score"]));
        assert_eq!(row["properties"]["id"]["enum"], json!(["c1", "c2"]));
        assert_eq!(row["properties"]["score"]["enum"], json!([1, 2, 3, 4, 5]));
        assert_eq!((&schema["additionalProperties"], &row["additionalProperties"]), (&json!(false), &json!(false)));
        assert!(
            super::schema(&question(Form::Claims))["properties"]["claims"]["items"]["properties"]["claim"].is_object()
        );
    }
}
