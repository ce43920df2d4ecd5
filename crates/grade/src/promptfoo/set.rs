//! `assert-set` with a threshold: enough of its assertions pass.

use model::decode::{self, Problems};
use model::{Evidence, Need, Node};

use super::{Entry, Graded, Single, hosted, judged, number};

/// Assertions that are decided together.
#[derive(Debug)]
pub(super) struct Set {
    parts: Vec<(Single, f64)>,
    threshold: f64,
}

impl Set {
    pub(super) fn read(assertion: &Node, entry: &Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let threshold = number(assertion, "threshold");
        let Some(threshold) = threshold else {
            problems.push(assertion.error("an `assert-set` that is not flattened needs a `threshold`"));
            return None;
        };
        let items = decode::list(assertion.get("assert")?, "`assert`", problems)?;
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            if judged::is_judged(item) || hosted::is_hosted(item) {
                let problem = item
                    .error("an assertion that a model decides cannot be part of an `assert-set` with a `threshold`");
                problems.push(problem.help("move it out of the set, or remove the threshold of the set"));
                return None;
            }
            let weight = number(item, "weight").unwrap_or(1.0);
            parts.push((Single::read(item, entry, problems)?, weight));
        }
        Some(Self { parts, threshold })
    }

    pub(super) fn needs(&self) -> Vec<Need> {
        self.parts.iter().flat_map(|(part, _)| part.needs()).collect()
    }

    /// Returns the result. It is undecided only if it depends on undecided parts.
    pub(super) fn grade(&self, evidence: &Evidence) -> Result<Graded, String> {
        let total: f64 = self.parts.iter().map(|(_, weight)| weight).sum();
        let (mut least, mut most, mut reasons) = (0.0, 0.0, Vec::new());
        for (part, weight) in &self.parts {
            match part.grade(evidence) {
                Ok(graded) => {
                    least += graded.score * weight;
                    most += graded.score * weight;
                    reasons.extend((!graded.pass).then_some(graded.reason));
                }
                Err(reason) => {
                    most += weight;
                    reasons.push(format!("undecided: {reason}"));
                }
            }
        }
        let share = |sum: f64| if total > 0.0 { sum / total } else { 0.0 };
        let (least, most) = (share(least), share(most));
        let rest = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        let passes = least >= self.threshold;
        if passes != (most >= self.threshold) {
            return Err(format!("the score is between {least} and {most}, and needs {}{rest}", self.threshold));
        }
        let reason = format!("the set scores {least}, and needs {}{rest}", self.threshold);
        Ok(Graded { pass: passes, score: least, reason })
    }
}
