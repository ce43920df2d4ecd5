//! `factuality`: the facts that the reply states agree with a reference text.

use super::JUDGES;
use super::prelude::*;
use crate::judge::reading::split;
use crate::judge::{self, Answer, ClaimStatus, CriterionMark, Judged, Material, Question, Votes, is_factual, prompt};
use crate::matcher;

/// Maximum number of claims that a finding lists.
const LISTED: usize = 10;

pub(crate) const ASSERTION: Assertion = Assertion::judged("factuality", parse)
    .summary("A judge finds that the claims of the last reply agree with the ground truth.")
    .fields(&[
        Field::required("ground_truth", "string", "The ground truth. The judge uses only this, not its own knowledge."),
        Field::optional("context", "string", "Context of the ground truth, such as the question that it answers.")
            .or("none"),
        JUDGES,
    ])
    .example(
        || {
            json!({"id": "knows-the-policy", "type": "factuality",
                   "ground_truth": "Goods can be returned within 30 days. Shipping is paid by the customer."})
        },
        || EvidenceBuilder::new().answer("Sure! You have 30 days to return it. We love returns."),
        || EvidenceBuilder::new().answer("You have 30 days to return it, and we pay the shipping."),
    )
    .answers(
        || {
            json!({"claims": [{"claim": "returns are possible for 30 days", "quote": "You have 30 days to return it",
                   "reasoning": "The truth says so.", "standing": "consistent"}]})
        },
        || {
            json!({"claims": [
                {"claim": "returns are possible for 30 days", "quote": "You have 30 days to return it",
                 "reasoning": "The truth says so.", "standing": "consistent"},
                {"claim": "the shop pays the shipping", "quote": "we pay the shipping",
                 "reasoning": "The customer does.", "standing": "contradicted"}]})
        },
    );

#[derive(Debug)]
struct Factuality {
    truth: String,
    place: SourceLocation,
    context: Option<String>,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let context = reading.fields.text("context", reading.problems);
    let (truth, place) = reading.required_text("ground_truth")?;
    Some(matcher::judged(Factuality { truth, place, context }))
}

impl Judged for Factuality {
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>> {
        let material = Material::from_evidence(evidence);
        if !material.is_answered {
            return Err(judge::nothing_to_judge("a reply that agrees with the ground truth"));
        }
        let mut task = format!("{}\n\nThe ground truth:\n{}", prompt::FACTUALITY, self.truth);
        if let Some(context) = &self.context {
            task.push_str(&format!("\n\nWhat helps to understand it:\n{context}"));
        }
        Ok(Question { task, criteria: Vec::new(), form: judge::Form::Claims, material, has_sandbox: false })
    }

    fn decide(&self, _: &Question, votes: &Votes<'_>) -> Verdict {
        let tally = votes.tally_factuality();
        let Some(holds) = tally.majority() else { return Verdict::undecided(split(votes)).place(&self.place) };
        let deciding_answer = votes.answers.iter().find(|answer| is_factual(answer) == holds);
        let marks = deciding_answer.map_or(&[][..], |answer| &answer.marks);
        let of = |status: ClaimStatus| marks.iter().filter(move |mark| mark.status == Some(status));
        let agreement = tally.agreement();
        let share = share(votes.answers);
        let verdict = if holds {
            let agree = format::count(of(ClaimStatus::Consistent).count(), "claim");
            Verdict::met(format!("the ground truth agrees with {agree} and contradicts none{agreement}"))
        } else if let Some(wrong) = of(ClaimStatus::Contradicted).next() {
            let reason = format!("the ground truth contradicts: {}{agreement}", wrong.claim);
            Verdict::unmet(reason, format::quoted(&self.truth), format::quoted(&wrong.quote))
        } else {
            let reason = match marks.len() {
                0 => format!("the reply makes no claims about the topics of the ground truth{agreement}"),
                _ => format!("the ground truth confirms none of the reply's claims{agreement}"),
            };
            Verdict::unmet(reason, format::quoted(&self.truth), format::count(marks.len(), "claim"))
        };
        verdict.scored(share).evidence(format::few(marks.iter().map(describe).collect(), LISTED)).place(&self.place)
    }
}

/// Returns the share of consistent claims among those that are consistent or contradicted, averaged over all judges.
fn share(answers: &[Answer]) -> f64 {
    let share = |answer: &Answer| {
        let count = |status| answer.marks.iter().filter(|mark| mark.status == Some(status)).count() as f64;
        let (agree, contradict) = (count(ClaimStatus::Consistent), count(ClaimStatus::Contradicted));
        if agree + contradict > 0.0 { agree / (agree + contradict) } else { 0.0 }
    };
    answers.iter().map(share).sum::<f64>() / answers.len().max(1) as f64
}

fn describe(mark: &CriterionMark) -> String {
    let status = match mark.status {
        Some(ClaimStatus::Consistent) => "consistent",
        Some(ClaimStatus::Contradicted) => "contradicted",
        Some(ClaimStatus::NotStated) | None => "not stated",
    };
    let reason = if mark.reasoning.is_empty() { String::new() } else { format!(": {}", mark.reasoning) };
    format!("{status}: {}: {}{reason}", mark.claim, format::quoted(&mark.quote))
}
