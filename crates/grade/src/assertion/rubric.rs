//! `rubric`: several criteria, each judged separately.

use model::{Node, NodeKind, decode};

use super::prelude::*;
use super::{JUDGES, NEEDS_CALLS};
use crate::judge::reading::{line, points, split};
use crate::judge::{self, Criterion, Judged, Material, Question, Quoted, Votes, prompt};
use crate::matcher;

/// Maximum number of criteria in a rubric. With more, a judge becomes careless.
const MAX_CRITERIA: usize = 50;

pub(crate) const ASSERTION: Assertion = Assertion::judged("rubric", parse)
    .summary("A judge checks each criterion, and all, any, or enough of them are met.")
    .fields(&[
        Field::required(
            "criteria",
            "list of strings, or of maps",
            "Each criterion is a string, or a map of `text`, `weight` (a number above 0, default 1) and `name` (for \
             reports).",
        ),
        Field::optional("require", "`all` or `any`", "`all` if all criteria must be met, `any` if one is enough.")
            .or("all"),
        Field::optional(
            "at_least",
            "number above 0",
            "Instead of `require`: total weight of criteria that must be met; without weights, their number.",
        )
        .or("none"),
        Field::optional("expected", "string", "Description of a good result, for the judge.").or("none"),
        Field::optional(
            "files",
            "`true` or `false`",
            "Also show the judge the files in the sandbox, without installed skills that the agent did not change.",
        )
        .or("`false`"),
        NEEDS_CALLS,
        JUDGES,
    ])
    .parameters(&[Parameter::Value("criteria")])
    .pass(
        || {
            json!({"id": "explains-well", "type": "rubric", "at_least": 2,
                   "criteria": ["names the cause", "gives a next step", {"text": "apologises", "weight": 0.5}]})
        },
        || EvidenceBuilder::new().answer("The card has expired. Please add a new one in your settings."),
    )
    .fail(
        || {
            json!({"id": "explains-well", "type": "rubric",
                   "criteria": ["names the cause", {"name": "next-step", "text": "gives a next step"}]})
        },
        || EvidenceBuilder::new().answer("The card has expired."),
    )
    .answers(
        || {
            json!({"answers": [
                {"id": "c1", "quote": "The card has expired", "reasoning": "That is the cause.", "verdict": "met"},
                {"id": "c2", "quote": "add a new one", "reasoning": "It can be followed.", "verdict": "met"},
                {"id": "c3", "quote": "", "reasoning": "There is no apology.", "verdict": "violated"}]})
        },
        || {
            json!({"answers": [
                {"id": "c1", "quote": "The card has expired", "reasoning": "That is the cause.", "verdict": "met"},
                {"id": "c2", "quote": "", "reasoning": "It ends with the cause.", "verdict": "violated"}]})
        },
    );

#[derive(Debug)]
struct Rubric {
    rows: Vec<Row>,
    pass: Requirement,
    expected: Option<String>,
    has_files: bool,
    needs_calls: bool,
}

#[derive(Debug)]
struct Row {
    name: Option<String>,
    text: String,
    weight: f64,
}

/// Condition under which a rubric passes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Requirement {
    All,
    Any,
    AtLeast(f64),
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let expected = reading.fields.text("expected", reading.problems);
    let rows = rows(reading);
    let pass = pass(reading, rows.as_deref());
    let has_files = reading.fields.boolean("files", reading.problems).unwrap_or_default();
    let needs_calls = reading.fields.boolean("needs_calls", reading.problems).unwrap_or_default();
    Some(matcher::judged(Rubric { rows: rows?, pass: pass?, expected, has_files, needs_calls }))
}

fn rows(reading: &mut Reading<'_>) -> Option<Vec<Row>> {
    let node = reading.fields.require("criteria", reading.problems)?;
    let items = decode::list(node, "`criteria`", reading.problems)?;
    if items.is_empty() || items.len() > MAX_CRITERIA {
        reading
            .problems
            .push(node.error(format!("`criteria` must have 1 to {MAX_CRITERIA} items, not {}", items.len())));
        return None;
    }
    let rows: Vec<Option<Row>> = items.iter().map(|item| row(reading, item)).collect();
    rows.into_iter().collect()
}

fn row(reading: &mut Reading<'_>, item: &Node) -> Option<Row> {
    if !matches!(item.kind, NodeKind::Map(_)) {
        let text = decode::text(item, "a criterion", reading.problems)?;
        return Some(Row { name: None, text, weight: 1.0 });
    }
    let mut part = reading.part(item, "a criterion")?;
    let name = part.fields.text("name", part.problems);
    let text = part.fields.required_text("text", part.problems);
    let weight = match part.fields.get("weight") {
        Some(_) => part.fields.positive("weight", part.problems),
        None => Some(1.0),
    };
    let Reading { fields, problems, .. } = part;
    fields.finish(problems);
    Some(Row { name, text: text?, weight: weight? })
}

fn pass(reading: &mut Reading<'_>, rows: Option<&[Row]>) -> Option<Requirement> {
    let choices = [("all", Requirement::All), ("any", Requirement::Any)];
    let required = reading.fields.get("require");
    let Some(node) = reading.fields.get("at_least") else {
        return match required {
            Some(_) => reading.fields.choice("require", &choices, reading.problems),
            None => Some(Requirement::All),
        };
    };
    if required.is_some() {
        reading.problems.push(node.error("`at_least` and `require` cannot be combined; use one of them"));
        return None;
    }
    let least = reading.fields.positive("at_least", reading.problems)?;
    let most: f64 = rows.unwrap_or_default().iter().map(|row| row.weight).sum();
    if rows.is_some() && least > most {
        let problem =
            node.error(format!("`at_least` is {}, and all criteria together weigh {}", points(least), points(most)));
        reading.problems.push(problem.help("no answer could reach it"));
        return None;
    }
    Some(Requirement::AtLeast(least))
}

impl Judged for Rubric {
    fn needs(&self) -> Vec<Need> {
        if self.has_files { vec![Need::Files, Need::Repository] } else { Vec::new() }
    }

    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>> {
        if let Some(verdict) = judge::without_calls(&evidence.trace).filter(|_| self.needs_calls) {
            return Err(verdict);
        }
        let mut material = Material::from_evidence(evidence);
        if self.has_files {
            material = material.with_sandbox(evidence);
        }
        if material.is_empty() {
            return Err(judge::nothing_to_judge(&self.wanted()));
        }
        let mut task = prompt::RUBRIC.to_owned();
        if let Some(expected) = &self.expected {
            task.push_str(&format!("\n\nWhat a good outcome looks like:\n{expected}"));
        }
        let criterion = |(index, row): (usize, &Row)| Criterion::new(index, row.text.as_str(), Quoted::WhenMet);
        Ok(Question {
            task,
            criteria: self.rows.iter().enumerate().map(criterion).collect(),
            form: judge::Form::Marks,
            material,
            has_sandbox: self.has_files,
        })
    }

    fn decide(&self, _: &Question, votes: &Votes<'_>) -> Verdict {
        let marks: Vec<Option<bool>> = (0..self.rows.len()).map(|index| votes.tally(index).majority()).collect();
        let weight = |wanted: Option<bool>| {
            let rows = self.rows.iter().zip(&marks).filter(|(_, mark)| **mark == wanted);
            rows.map(|(row, _)| row.weight).sum::<f64>()
        };
        let (met, open) = (weight(Some(true)), weight(None));
        let all: f64 = self.rows.iter().map(|row| row.weight).sum();
        let lines: Vec<String> =
            self.rows.iter().enumerate().map(|(index, row)| line(votes, index, row.label())).collect();
        let count = marks.iter().filter(|mark| **mark == Some(true)).count();
        let noun = if marks.len() == 1 { "criterion" } else { "criteria" };
        let reason = format!("{count} of {} {noun} met", marks.len());
        let verdict = match self.pass.holds(&marks, met, open) {
            Some(true) => Verdict::met(reason),
            Some(false) => {
                let missed = self.rows.iter().zip(&marks).filter(|(_, mark)| **mark == Some(false));
                let missed: Vec<String> = missed.map(|(row, _)| row.label().to_owned()).collect();
                Verdict::unmet(reason, self.wanted(), format!("not met: {}", format::list(&missed)))
            }
            None => Verdict::undecided(split(votes)),
        };
        // If the decided criteria are enough, the verdict does not depend on the open ones, but these are still
        // reported.
        let error = verdict.error.or_else(|| marks.contains(&None).then(|| split(votes)));
        let verdict = Verdict { error, ..verdict };
        verdict.scored(met / all).evidence(lines)
    }
}

impl Row {
    fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.text)
    }
}

impl Rubric {
    fn wanted(&self) -> String {
        let all = self.rows.len();
        match self.pass {
            Requirement::All if all == 1 => self.rows.first().map_or_else(String::new, |row| row.label().to_owned()),
            Requirement::All => format!("all {all} criteria"),
            Requirement::Any => format!("one of {all} criteria"),
            Requirement::AtLeast(least) => {
                let most: f64 = self.rows.iter().map(|row| row.weight).sum();
                format!("criteria that weigh at least {} of {}", points(least), points(most))
            }
        }
    }
}

impl Requirement {
    /// Returns `true` if the condition is met. Returns `None` if that depends on open criteria. `met` and `open` are
    /// sums of weights.
    fn holds(self, marks: &[Option<bool>], met: f64, open: f64) -> Option<bool> {
        let any = |wanted: Option<bool>| marks.contains(&wanted);
        match self {
            Self::All if any(Some(false)) => Some(false),
            Self::Any if any(Some(true)) => Some(true),
            Self::All | Self::Any if any(None) => None,
            Self::All => Some(true),
            Self::Any => Some(false),
            // Floating-point sums of tenths are not exact.
            Self::AtLeast(least) if met >= least - 1e-9 => Some(true),
            Self::AtLeast(least) if met + open < least - 1e-9 => Some(false),
            Self::AtLeast(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use model::decode::Problems;

    use super::*;
    use crate::check::Check;
    use crate::context::Context;
    use crate::self_test::spec_of;
    use crate::yaml;

    fn problems(entry: &serde_json::Value) -> Vec<String> {
        let mut whole = json!({"id": "a", "type": "rubric"});
        whole.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        let mut problems = Problems::new();
        Check::compile(&spec_of(yaml::list_item(&whole, "a.yaml")).unwrap(), &Context::default(), &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_rubric_without_criteria_or_with_conflicting_settings_is_rejected() {
        for (entry, wrong) in [
            (json!({}), "has no `criteria`"),
            (json!({"criteria": []}), "1 to 50 items"),
            (json!({"criteria": [5]}), "a criterion must be a string"),
            (json!({"criteria": [{"weight": 2}]}), "has no `text`"),
            (json!({"criteria": [{"text": "a", "weigth": 2}]}), "unknown key `weigth`"),
            (json!({"criteria": [{"text": "a", "weight": 0}]}), "greater than 0"),
            (json!({"criteria": ["a"], "require": "some"}), "`require`"),
            (json!({"criteria": ["a"], "require": "all", "at_least": 1}), "use one of them"),
            (json!({"criteria": ["a", {"text": "b", "weight": 0.5}], "at_least": 2}), "together weigh 1.5"),
        ] {
            let found = problems(&entry);
            assert!(found.len() == 1 && found[0].contains(wrong), "{entry}: {found:?}");
        }
    }

    #[test]
    fn undecided_criteria_leave_the_rubric_undecided_unless_irrelevant() {
        let (yes, no, open) = (Some(true), Some(false), None);
        for (pass, marks, expected) in [
            (Requirement::All, [yes, yes], Some(true)),
            (Requirement::All, [yes, open], None),
            (Requirement::All, [no, open], Some(false)),
            (Requirement::Any, [yes, open], Some(true)),
            (Requirement::Any, [no, open], None),
            (Requirement::Any, [no, no], Some(false)),
            (Requirement::AtLeast(1.0), [yes, open], Some(true)),
            (Requirement::AtLeast(2.0), [yes, open], None),
            (Requirement::AtLeast(2.0), [no, open], Some(false)),
        ] {
            let weight = |wanted: Option<bool>| marks.iter().filter(|mark| **mark == wanted).count() as f64;
            assert_eq!(pass.holds(&marks, weight(yes), weight(open)), expected, "{pass:?} {marks:?}");
        }
    }
}
