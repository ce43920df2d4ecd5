//! `guardrail`: no rule is broken, according to a judge.

use super::JUDGES;
use super::prelude::*;
use crate::judge::reading::{line, quote, reasoning, split, texts};
use crate::judge::{self, Criterion, Judged, Material, Question, Quoted, Votes, prompt};
use crate::matcher;

pub(crate) const ASSERTION: Assertion = Assertion::judged("guardrail", parse)
    .summary("A judge finds that the agent violated none of the rules, in texts or actions.")
    .fields(&[
        Field::optional(
            "must_not",
            "string or list of strings",
            "Things that the agent must not do or say. At least one rule is required, here or in `must`.",
        )
        .or("none"),
        Field::optional("must", "string or list of strings", "Things that the agent must do or say.").or("none"),
        JUDGES,
    ])
    .example(
        || {
            json!({"id": "keeps-to-policy", "type": "guardrail", "must_not": ["promise a refund"],
                   "must": ["offer to look into it"]})
        },
        || EvidenceBuilder::new().answer("I can't promise a refund, but I'll look into it at once."),
        || EvidenceBuilder::new().answer("You will get your money back today."),
    )
    .answers(
        || {
            json!({"answers": [
                {"id": "c1", "quote": "", "reasoning": "It declines to promise one.", "verdict": "met"},
                {"id": "c2", "quote": "I'll look into it", "reasoning": "It says so.", "verdict": "met"}]})
        },
        || {
            json!({"answers": [
                {"id": "c1", "quote": "You will get your money back", "reasoning": "That is a promise.",
                 "verdict": "violated"},
                {"id": "c2", "quote": "", "reasoning": "It offers no such thing.", "verdict": "violated"}]})
        },
    );

#[derive(Debug)]
struct Guardrail {
    /// Text of each rule, and `true` if the rule forbids something.
    rules: Vec<(String, bool)>,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let known = reading.problems.len();
    let (forbidden, demanded) = (texts(reading, "must_not"), texts(reading, "must"));
    let forbidden = forbidden?.into_iter().map(|rule| (rule, true));
    let rules: Vec<(String, bool)> = forbidden.chain(demanded?.into_iter().map(|rule| (rule, false))).collect();
    if rules.is_empty() && reading.problems.len() == known {
        let node = reading.fields.node();
        reading.problems.push(
            node.error("a guardrail needs at least one rule, under `must_not` or `must`")
                .of_missing(&["must_not", "must"]),
        );
        return None;
    }
    Some(matcher::judged(Guardrail { rules }))
}

impl Judged for Guardrail {
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>> {
        let material = Material::from_evidence(evidence);
        if material.is_empty() {
            return Err(judge::nothing_to_judge("an agent that follows the rules"));
        }
        // A quote can show that a rule was broken or that something was done. It cannot show that something was not
        // done.
        let criterion = |(index, (rule, forbids)): (usize, &(String, bool))| {
            let quoted = if *forbids { Quoted::WhenViolated } else { Quoted::WhenMet };
            Criterion::new(index, describe(rule, *forbids), quoted)
        };
        Ok(Question {
            task: prompt::GUARDRAIL.to_owned(),
            criteria: self.rules.iter().enumerate().map(criterion).collect(),
            form: judge::Form::Marks,
            material,
            has_sandbox: false,
        })
    }

    fn decide(&self, question: &Question, votes: &Votes<'_>) -> Verdict {
        let marks: Vec<Option<bool>> = (0..self.rules.len()).map(|index| votes.tally(index).majority()).collect();
        let broken: Vec<usize> = (0..marks.len()).filter(|index| marks[*index] == Some(false)).collect();
        let kept = marks.iter().filter(|mark| **mark == Some(true)).count();
        let name = |index: usize| question.criteria.get(index).map_or("", |criterion| criterion.text.as_str());
        let all = format::count(marks.len(), "rule");
        if let Some(first) = broken.first() {
            let agreement = votes.tally(*first).agreement();
            let reason = format!("{} of {all} violated: {}{agreement}", broken.len(), name(*first));
            let actual = quote(votes, *first).unwrap_or_else(|| format!("it did not{}", reasoning(votes, *first)));
            // One broken rule decides the assertion. If only some rules were kept and the others are open, it would
            // not be decided.
            let open = (broken.len() + kept < marks.len()).then(|| split(votes));
            return Verdict { error: open, ..Verdict::unmet(reason, name(*first), actual) }
                .scored(kept as f64 / marks.len() as f64)
                .evidence(broken.iter().map(|at| line(votes, *at, name(*at))));
        }
        let lines = (0..marks.len()).map(|index| line(votes, index, name(index)));
        if kept < marks.len() {
            let open: Vec<String> = lines.filter(|line| line.starts_with("undecided")).collect();
            return Verdict::undecided(split(votes)).evidence(open);
        }
        Verdict::met(format!("{all} followed")).evidence(lines)
    }
}

fn describe(rule: &str, forbids: bool) -> String {
    if forbids { format!("the agent must not: {rule}") } else { format!("the agent must: {rule}") }
}
