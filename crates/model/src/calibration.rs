//! Comparison of a judge with human labels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::statistics::Agreement;

/// Schema of the JSON document.
pub const CALIBRATION_SCHEMA: &str = "trialrun.calibration/1";

/// Comparison of a judge with human labels. Each label is about one judged assertion of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`CALIBRATION_SCHEMA`].
    pub schema: String,
    /// Judge as `provider:model`.
    pub judge: String,
    /// Version of the judge prompts.
    pub prompts: String,
    /// Counts of labelled assertions, by label and judge verdict.
    pub counts: Agreement,
    /// Counts for each assertion, by the digest in its judgements.
    pub questions: BTreeMap<String, CalibratedQuestion>,
    /// Number of labelled assertions that the judge left undecided. They are not in any other count.
    pub undecided: u64,
    /// Number of rows without a label. They are not in any other count.
    pub unlabelled: u64,
    /// Number of assertions in the labelled runs that the judge decided, with or without a label.
    pub judged: u64,
    /// Number of these that the judge found to be met.
    pub passed: u64,
    /// Judgements that disagree with the label.
    pub disagreements: Vec<Disagreement>,
}

/// Labels for one assertion, over all trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibratedQuestion {
    /// Id of the assertion in the first labelled trial.
    pub assertion: String,
    /// Type of the assertion.
    #[serde(rename = "type")]
    pub kind: String,
    /// Counts of its labelled trials, by label and judge verdict.
    pub counts: Agreement,
}

/// Judgement that disagrees with the label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Disagreement {
    /// Id of the run.
    pub run: String,
    /// Id of the trial, as reports print it.
    pub trial: String,
    /// Id of the assertion.
    pub assertion: String,
    /// Type of the assertion.
    #[serde(rename = "type")]
    pub kind: String,
    /// The part of the question that the user wrote.
    pub question: String,
    /// True if the human says that the assertion is met and the judge says that it is not; false for the opposite.
    pub human_met: bool,
    /// Reason that the human gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Reason that the judge gave.
    pub because: String,
    /// Passages that the judge quoted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

impl Calibration {
    /// Creates an empty comparison for a judge.
    pub fn of_judge(judge: impl Into<String>, prompts: impl Into<String>) -> Self {
        Self { schema: CALIBRATION_SCHEMA.into(), judge: judge.into(), prompts: prompts.into(), ..Self::default() }
    }

    /// Adds a labelled judgement of the assertion `asked`, whose digest is `digest`.
    pub fn add(&mut self, digest: &str, asked: CalibratedQuestion, human_met: bool, judge_met: bool) {
        let verdicts = Agreement::of([(human_met, judge_met)]);
        self.counts += verdicts;
        self.questions.entry(digest.to_owned()).or_insert(asked).counts += verdicts;
    }

    /// Returns the reason if the lower limit of κ is below `min_kappa`. The limit is tested instead of κ itself,
    /// because with few labels κ may be high by chance.
    pub fn shortfall(&self, min_kappa: f64) -> Option<String> {
        let labels = match self.counts.count() {
            1 => "1 label".to_owned(),
            count => format!("{count} labels"),
        };
        let Some((kappa, [low, _])) = self.counts.kappa().and_then(|kappa| Some((kappa.mean, kappa.ci95?))) else {
            return Some(format!("κ is not defined ({labels}): label assertions that are met and ones that are not"));
        };
        (low < min_kappa).then(|| {
            format!("κ is {kappa:.2} and may be as low as {low:.2} ({labels}), below the minimum of {min_kappa}")
        })
    }
}

/// Condition that a judge must meet before it may decide assertions.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationGate {
    /// Name of the calibration file, for messages.
    pub file: String,
    /// The calibration, or the reason why it cannot be used.
    pub calibration: Result<Calibration, String>,
    /// Minimum for the lower limit of κ.
    pub min_kappa: f64,
}

impl CalibrationGate {
    /// Returns the reason why `judge` may not decide any assertion, if there is one.
    pub fn refuses_judge(&self, judge: &str, prompts: &str) -> Option<String> {
        let file = &self.file;
        let calibration = match &self.calibration {
            Ok(calibration) => calibration,
            Err(reason) => return Some(format!("the judge {judge} is not calibrated: {reason}")),
        };
        if calibration.judge != judge {
            let other = &calibration.judge;
            return Some(format!("the judge {judge} is not calibrated: {file} is about {other}"));
        }
        if calibration.prompts != prompts {
            let old = &calibration.prompts;
            return Some(format!(
                "the calibration {file} is stale: it is for version {old} of the prompts, and this is version {prompts}"
            ));
        }
        let reason = calibration.shortfall(self.min_kappa)?;
        Some(format!("the judge {judge} fails its calibration {file}: {reason}"))
    }

    /// Returns the reason why the judge may not decide the assertion with this `digest`, if there is one.
    pub fn refuses_question(&self, digest: &str) -> Option<String> {
        let calibration = self.calibration.as_ref().ok()?;
        let file = &self.file;
        (!calibration.questions.contains_key(digest))
            .then(|| format!("the calibration {file} has no label for this assertion in its current wording"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(both: [u64; 2]) -> Calibration {
        let mut calibration = Calibration::of_judge("a:b", "3");
        for (met, count) in [(true, both[0]), (false, both[1])] {
            (0..count).for_each(|_| calibration.add("d", CalibratedQuestion::default(), met, met));
        }
        calibration
    }

    #[test]
    fn a_judge_needs_enough_labels_of_both_kinds() {
        assert_eq!(calibration([50, 50]).shortfall(0.6), None);
        let few = calibration([2, 2]).shortfall(0.6).unwrap();
        assert!(few.contains("κ is 1.00 and may be as low as") && few.contains("4 labels"), "{few}");
        assert!(calibration([50, 0]).shortfall(0.6).unwrap().contains("not defined (50 labels)"));
        assert!(Calibration::default().shortfall(0.0).is_some());
    }

    #[test]
    fn a_gate_refuses_missing_stale_and_failed_calibrations_and_other_questions() {
        let gate = |calibration| CalibrationGate { file: "c.json".into(), calibration, min_kappa: 0.6 };
        let fine = gate(Ok(calibration([50, 50])));
        assert_eq!((fine.refuses_judge("a:b", "3"), fine.refuses_question("d")), (None, None));
        for (gate, judge, prompts, wrong) in [
            (gate(Err("cannot read c.json".into())), "a:b", "3", "the judge a:b is not calibrated: cannot read"),
            (fine.clone(), "a:c", "3", "c.json is about a:b"),
            (fine.clone(), "a:b", "4", "stale: it is for version 3"),
            (gate(Ok(calibration([3, 3]))), "a:b", "3", "fails its calibration c.json: κ is 1.00"),
        ] {
            let reason = gate.refuses_judge(judge, prompts).unwrap();
            assert!(reason.contains(wrong), "{reason}");
        }
        assert!(fine.refuses_question("e").unwrap().contains("current wording"));
    }
}
