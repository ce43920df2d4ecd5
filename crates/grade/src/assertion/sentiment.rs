//! `sentiment`: the reply has a certain tone.

use super::JUDGES;
use super::prelude::*;
use crate::judge::reading::rated;
use crate::judge::{self, Criterion, CriterionMark, Judged, Material, Question, Quoted, Votes, prompt};
use crate::matcher;

/// Scale of tones, and the lowest score at which a tone counts as present.
const SCALE: u64 = 5;
const THERE: u64 = 3;

pub(crate) const ASSERTION: Assertion = Assertion::judged("sentiment", parse)
    .summary("The last reply has the given tone, according to a judge.")
    .fields(&[
        Field::required("expected", "string", "The tone, in a few words: `helpful`, `friendly but firm`."),
        JUDGES,
    ])
    .parameters(&[Parameter::Value("expected")])
    .example(
        || json!({"id": "stays-kind", "type": "sentiment", "expected": "empathetic"}),
        || EvidenceBuilder::new().answer("I'm so sorry that it broke. Let me put this right for you."),
        || EvidenceBuilder::new().answer("Read the manual. Refunds are not possible."),
    )
    .answers(
        || {
            json!({"answers": [{"id": "c1", "quote": "I'm so sorry that it broke", "reasoning": "It names the loss \
                   and offers to help.", "verdict": "met", "score": 5}]})
        },
        || {
            json!({"answers": [{"id": "c1", "quote": "Read the manual.", "reasoning": "It is curt and dismissive.",
                   "verdict": "violated", "score": 1}]})
        },
    );

#[derive(Debug)]
struct Sentiment {
    expected: String,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (expected, place) = reading.required_text("expected")?;
    Some(matcher::judged(Sentiment { expected, place }))
}

/// Returns the score. If the judge says that the tone is as wanted, the score is at least `THERE`, regardless of the
/// number.
fn score(mark: &CriterionMark) -> Option<u64> {
    let score = mark.score?;
    Some(if mark.met? { score.max(THERE) } else { score })
}

impl Judged for Sentiment {
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>> {
        let material = Material::from_evidence(evidence);
        if !material.is_answered {
            return Err(judge::nothing_to_judge(&format!("a reply with the tone: {}", self.expected)));
        }
        let criterion = Criterion::new(0, format!("the tone of the last reply is: {}", self.expected), Quoted::Always);
        Ok(Question {
            task: prompt::SENTIMENT.to_owned(),
            criteria: vec![criterion],
            form: judge::Form::MarksAndScores(SCALE),
            material,
            has_sandbox: false,
        })
    }

    fn decide(&self, _: &Question, votes: &Votes<'_>) -> Verdict {
        let scores = votes.scores(0, SCALE, score);
        let wanted = format!("{}, at least {THERE} of {SCALE}", self.expected);
        rated(votes, &scores, SCALE, THERE as f64, wanted).place(&self.place)
    }
}
