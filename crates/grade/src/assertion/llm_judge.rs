//! `llm_judge`: a judge scores the last reply, or the whole conversation, by a criterion.

use model::Diagnostic;

use super::prelude::*;
use super::{JUDGES, NEEDS_CALLS};
use crate::judge::reading::{points, rated};
use crate::judge::{self, Criterion, Judged, Material, Question, Quoted, Votes, prompt};
use crate::matcher;

/// Default for the highest score.
const SCALE: u64 = 5;
/// Upper limit for the highest score. Judges cannot tell more steps apart.
const MAX_SCALE: u64 = 100;

pub(crate) const ASSERTION: Assertion = Assertion::judged("llm_judge", parse)
    .summary("A judge rates the last reply, or all replies, by a criterion, and the rating is high enough.")
    .fields(&[
        Field::required(
            "criteria",
            "string",
            "The criterion, as a question or a statement. Use one criterion at a time; `rubric` accepts several.",
        ),
        Field::optional("threshold", "number, above 1 and up to `scale`", "Minimum rating.")
            .or("the middle of the scale, which is 3 of 5"),
        Field::optional("scale", "whole number, 2 to 100", "Highest rating.").or("5"),
        Field::optional(
            "all_replies",
            "`true` or `false`",
            "Rate everything that the agent said and did, and not only its last reply and the work for it.",
        )
        .or("`false`"),
        NEEDS_CALLS,
        JUDGES,
    ])
    .example(
        || {
            json!({"id": "is-realistic", "type": "llm_judge", "threshold": 3, "scale": 5,
                   "criteria": "Did the agent set realistic expectations?"})
        },
        || EvidenceBuilder::new().answer("The money takes three to five working days to reach you."),
        || EvidenceBuilder::new().answer("You will have the money in a minute, I promise."),
    )
    .answers(
        || {
            json!({"answers": [{"id": "c1", "quote": "three to five working days", "reasoning": "It names a usual \
                   time.", "score": 5}]})
        },
        || {
            json!({"answers": [{"id": "c1", "quote": "in a minute, I promise", "reasoning": "No bank is that quick.",
                   "score": 1}]})
        },
    );

#[derive(Debug)]
struct LlmJudge {
    criteria: String,
    place: SourceLocation,
    threshold: f64,
    scale: u64,
    all_replies: bool,
    needs_calls: bool,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let criteria = reading.required_text("criteria");
    let scale = scale(reading);
    let threshold = threshold(reading, scale);
    let all_replies = reading.fields.boolean("all_replies", reading.problems).unwrap_or_default();
    let needs_calls = reading.fields.boolean("needs_calls", reading.problems).unwrap_or_default();
    let (criteria, place) = criteria?;
    Some(matcher::judged(LlmJudge { criteria, place, threshold: threshold?, scale: scale?, all_replies, needs_calls }))
}

fn scale(reading: &mut Reading<'_>) -> Option<u64> {
    let Some(node) = reading.fields.get("scale") else { return Some(SCALE) };
    let scale = reading.fields.whole("scale", 2, reading.problems)?;
    if scale > MAX_SCALE {
        reading.problems.push(node.error(format!("`scale` must be at most {MAX_SCALE}, not {scale}")));
        return None;
    }
    Some(scale)
}

/// Reads the threshold. A threshold that every answer reaches, or that no answer can reach, is an error, since it
/// would not decide anything.
fn threshold(reading: &mut Reading<'_>, scale: Option<u64>) -> Option<f64> {
    let scale = scale.unwrap_or(SCALE) as f64;
    let Some(node) = reading.fields.get("threshold") else { return Some((1.0 + scale) / 2.0) };
    let threshold = reading.number("threshold")?;
    if threshold > 1.0 && threshold <= scale {
        return Some(threshold);
    }
    let shown = points(threshold);
    let problem = node.error(format!("`threshold` must be above 1 and up to {}, not {shown}", points(scale)));
    let problem: Diagnostic = if threshold > scale {
        problem.help("no answer could reach it; `scale` is the highest score")
    } else if threshold > 0.0 && threshold < 1.0 {
        let meant = points(1.0 + threshold * (scale - 1.0));
        problem.help(format!("scores go from 1 to {}; {shown} of the way is {meant}", points(scale)))
    } else {
        problem.help("every answer would reach it: 1 is the lowest score")
    };
    reading.problems.push(problem);
    None
}

impl Judged for LlmJudge {
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>> {
        if let Some(verdict) = judge::without_calls(&evidence.trace).filter(|_| self.needs_calls) {
            return Err(verdict);
        }
        let material = Material::from_evidence(evidence);
        if material.is_empty() {
            return Err(judge::nothing_to_judge(&self.wanted()));
        }
        Ok(Question {
            task: if self.all_replies { prompt::CONVERSATION } else { prompt::CRITERION }.to_owned(),
            criteria: vec![Criterion::new(0, self.criteria.as_str(), Quoted::Always)],
            form: judge::Form::Scores(self.scale),
            material,
            has_sandbox: false,
        })
    }

    fn decide(&self, _: &Question, votes: &Votes<'_>) -> Verdict {
        let scores = votes.scores(0, self.scale, |mark| mark.score);
        rated(votes, &scores, self.scale, self.threshold, self.wanted()).place(&self.place)
    }
}

impl LlmJudge {
    fn wanted(&self) -> String {
        format!("at least {} of {} for {}", points(self.threshold), self.scale, format::quoted(&self.criteria))
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

    fn problems(fields: &serde_json::Value) -> Vec<String> {
        let mut entry = json!({"id": "a", "type": "llm_judge", "criteria": "Is it good?"});
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let mut problems = Problems::new();
        Check::compile(&spec_of(yaml::list_item(&entry, "a.yaml")).unwrap(), &Context::default(), &mut problems);
        problems.iter().map(|problem| format!("{} ({})", problem.message, problem.help.join(" "))).collect()
    }

    #[test]
    fn a_threshold_that_is_always_or_never_reached_is_rejected() {
        for (fields, wrong) in [
            (json!({"threshold": 0.7}), "0.7 of the way is 3.8"),
            (json!({"threshold": 6}), "no answer could reach it"),
            (json!({"threshold": 1}), "every answer would reach it"),
            (json!({"threshold": -3}), "every answer would reach it"),
            (json!({"threshold": "3"}), "must be a number"),
            (json!({"scale": 1}), "at least 2"),
            (json!({"scale": 1000}), "at most 100"),
            (json!({"judges": 0}), "at least 1"),
            (json!({"judges": 16}), "at most 15"),
            (json!({"treshold": 3}), "did you mean `threshold`"),
        ] {
            let found = problems(&fields);
            assert!(found.len() == 1 && found[0].contains(wrong), "{fields}: {found:?}");
        }
        for fine in [json!({}), json!({"threshold": 5}), json!({"threshold": 8, "scale": 10, "judges": 3})] {
            assert_eq!(problems(&fine), Vec::<String>::new(), "{fine}");
        }
    }
}
