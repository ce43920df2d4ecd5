//! Composition and formatting of scores.

use model::{Detail, Finding, Outcome, Status, TrialRecord};

use crate::format::{percent, points};

/// Returns the trial's score in each dimension, from 0 to 1, in the order in which findings name them. It is the mean
/// of the topmost nodes of a dimension, weighted by their weight in the trial's score. A penalty reduces the mean of
/// the others; in a dimension with penalties only, those that were not incurred count. Undecided nodes are ignored.
/// Where only the best of several parts counts, the other parts are ignored as well.
pub(crate) fn dimensions(findings: &[Finding]) -> Vec<(&str, f64)> {
    let mut dimensions: Vec<(&str, Mean)> = Vec::new();
    for finding in findings {
        let mut above = Vec::new();
        if let Some(dimension) = finding.dimension.as_deref() {
            if let (Some(score), true) = (finding.score, finding.status != Status::Undecided) {
                of(&mut dimensions, dimension).add(finding.weight, score);
            }
            above.push(dimension);
        }
        below(&finding.details, finding.weight, &mut above, &mut dimensions);
    }
    dimensions.into_iter().filter_map(|(name, mean)| Some((name, mean.value()?))).collect()
}

/// Adds the nodes in `details` and below, unless a node in `above` already has the same dimension.
fn below<'a>(details: &'a [Detail], weight: f64, above: &mut Vec<&'a str>, dimensions: &mut Vec<(&'a str, Mean)>) {
    for detail in details.iter().filter(|detail| !detail.passed_over) {
        let weight = weight * detail.weight;
        let named = detail.dimension.as_deref().filter(|dimension| !above.contains(dimension));
        if let Some(dimension) = named {
            if detail.status != Status::Undecided {
                of(dimensions, dimension).add(weight, detail.score);
            }
            above.push(dimension);
        }
        below(&detail.details, weight, above, dimensions);
        if named.is_some() {
            above.pop();
        }
    }
}

fn of<'d, 'a>(dimensions: &'d mut Vec<(&'a str, Mean)>, name: &'a str) -> &'d mut Mean {
    let index = dimensions.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
        dimensions.push((name, Mean::default()));
        dimensions.len() - 1
    });
    &mut dimensions[index].1
}

/// Accumulator of a weighted mean.
#[derive(Debug, Default)]
struct Mean {
    earned: f64,
    possible: f64,
    lost: f64,
    penalties: f64,
    /// Scores of nodes with weight 0, which count only if there are no others.
    weightless: Vec<f64>,
}

impl Mean {
    fn add(&mut self, weight: f64, score: f64) {
        if weight > 0.0 {
            self.earned += weight * score;
            self.possible += weight;
        } else if weight < 0.0 {
            self.lost -= weight * score;
            self.penalties -= weight;
        } else {
            self.weightless.push(score);
        }
    }

    fn value(&self) -> Option<f64> {
        let share = if self.possible > 0.0 {
            (self.earned - self.lost) / self.possible
        } else if self.penalties > 0.0 {
            1.0 - self.lost / self.penalties
        } else if self.weightless.is_empty() {
            return None;
        } else {
            self.weightless.iter().sum::<f64>() / self.weightless.len() as f64
        };
        Some(share.clamp(0.0, 1.0))
    }
}

/// Formats the outcome of a trial: `passed`, or `passed, 2 undecided`.
pub(crate) fn outcome(record: &TrialRecord) -> String {
    match record.passed_but_for() {
        Some(open) => format!("passed, {open} undecided"),
        None => record.outcome.name().to_owned(),
    }
}

/// Returns a key shared by repetitions of a trial with the same result: the same findings, regardless of their texts.
pub(crate) fn result_key(record: &TrialRecord) -> String {
    let findings: Vec<(&str, Status)> =
        record.findings.iter().map(|finding| (finding.id.as_str(), finding.status)).collect();
    // The cause of a broken trial is not a finding.
    let cause = record.reason.as_ref().filter(|_| record.outcome == Outcome::Broken);
    let (suite, case, arm) = (&record.suite, &record.case, &record.arm);
    format!("{:?}", (suite, case, arm, record.outcome, record.fault, cause, findings))
}

/// Returns the paths of all unmet critical parts of the findings.
pub(crate) fn failed_critical(findings: &[Finding]) -> Vec<&str> {
    findings.iter().flat_map(|finding| &finding.failed_critical).map(String::as_str).collect()
}

/// Formats a score as `76 of 100 (needs 80)`, in two parts. A score that is too low is never rounded up to the
/// required one.
pub(crate) fn describe(record: &TrialRecord) -> Option<(String, String)> {
    let (score, most, needed) = (record.score?, record.max_score?, record.pass_score?);
    let (mut shown, mut needs) = (points(score), points(needed));
    if shown == needs && record.outcome == Outcome::Failed && score < needed {
        (shown, needs) = (score.to_string(), needed.to_string());
    }
    let needs = if record.not { format!("(needs less than {needs})") } else { format!("(needs {needs})") };
    Some((format!("{shown} of {}", points(most)), needs))
}

/// Formats each dimension, such as `accuracy 90%`.
pub(crate) fn dimension_shares(findings: &[Finding]) -> Vec<(&str, String)> {
    dimensions(findings).into_iter().map(|(name, share)| (name, percent(share))).collect()
}

/// Formats a score as `76/100` unless the outcome implies it: it is shown if a failed trial has more than 0 points, or
/// a passed one less than the maximum.
pub(crate) fn partial(outcome: Outcome, score: Option<f64>, most: Option<f64>) -> Option<String> {
    let (score, most) = (score?, most?);
    let tells = match outcome {
        Outcome::Passed => score < most,
        Outcome::Failed => score > 0.0,
        _ => false,
    };
    tells.then(|| format!("{}/{}", points(score), points(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(dimension: &str, weight: f64, score: f64, details: Vec<Detail>) -> Detail {
        Detail {
            key: "k".into(),
            title: None,
            dimension: (!dimension.is_empty()).then(|| dimension.into()),
            critical: false,
            weight,
            score,
            status: if score < 1.0 { Status::Unmet } else { Status::Met },
            passed_over: false,
            details,
        }
    }

    fn finding(dimension: &str, weight: f64, score: f64, details: &[Detail]) -> Finding {
        serde_json::from_value(serde_json::json!({
            "id": "output", "type": "expect", "status": "unmet", "score": score, "weight": weight, "because": "",
            "dimension": (!dimension.is_empty()).then_some(dimension),
            "details": details,
        }))
        .unwrap()
    }

    #[test]
    fn a_dimension_is_the_mean_of_its_nodes_weighted_as_in_the_trial() {
        let findings = [
            finding("", 60.0, 0.5, &[detail("a", 0.5, 1.0, vec![]), detail("b", 0.5, 0.0, vec![])]),
            finding("", 40.0, 0.5, &[detail("", 1.0, 0.5, vec![detail("a", 0.25, 0.0, vec![])])]),
        ];
        // 30 of 30 points, and 0 of 10.
        assert_eq!(dimensions(&findings), [("a", 0.75), ("b", 0.0)]);
    }

    #[test]
    fn the_topmost_of_nested_nodes_counts() {
        let inner = detail("a", 0.5, 0.0, vec![detail("b", 1.0, 0.25, vec![])]);
        let findings = [finding("a", 10.0, 0.75, &[inner, detail("b", 0.5, 1.0, vec![])])];
        assert_eq!(dimensions(&findings), [("a", 0.75), ("b", 0.625)]);
    }

    #[test]
    fn a_penalty_reduces_its_dimension_and_a_lone_one_counts_if_not_incurred() {
        let mixed = [finding("", 100.0, 0.0, &[detail("a", 0.8, 1.0, vec![]), detail("a", -0.2, 1.0, vec![])])];
        let share = dimensions(&mixed)[0].1;
        assert!((share - 0.75).abs() < 1e-12, "{share}");
        let alone = |score| dimensions(&[finding("", 100.0, 0.0, &[detail("a", -0.2, score, vec![])])])[0].1;
        assert_eq!((alone(1.0), alone(0.0)), (0.0, 1.0));
    }

    #[test]
    fn a_dimension_without_weights_is_a_plain_mean_and_undecided_ones_are_omitted() {
        let findings = [finding("", 1.0, 0.0, &[detail("a", 0.0, 1.0, vec![]), detail("a", 0.0, 0.0, vec![])])];
        assert_eq!(dimensions(&findings), [("a", 0.5)]);
        let undecided = Finding { status: Status::Undecided, score: None, ..finding("a", 1.0, 0.0, &[]) };
        assert_eq!(dimensions(&[undecided]), []);
    }

    #[test]
    fn a_score_that_is_too_low_never_looks_sufficient() {
        let shown = |score: f64, outcome: &str, not: bool| {
            let record: TrialRecord = serde_json::from_value(serde_json::json!({
                "id": "", "suite": "", "case": "", "arm": "", "agent": "", "repetition": 1, "outcome": outcome,
                "score": score, "max_score": 100, "pass_score": 80, "not": not, "findings": [], "input": [],
                "turn_count": 0, "tool_calls": [], "questions": [], "duration_ms": 0, "attempts": [],
                "started_at": "2026-11-21T21:48:00Z", "files_changed": [], "errors": [],
            }))
            .unwrap();
            describe(&record).map(|(score, needs)| format!("{score} {needs}"))
        };
        assert_eq!(shown(76.0, "failed", false).as_deref(), Some("76 of 100 (needs 80)"));
        assert_eq!(shown(79.9999, "failed", false).as_deref(), Some("79.9999 of 100 (needs 80)"));
        assert_eq!(shown(79.999_999_999_99, "passed", false).as_deref(), Some("80 of 100 (needs 80)"));
        assert_eq!(shown(90.0, "failed", true).as_deref(), Some("90 of 100 (needs less than 80)"));
    }

    #[test]
    fn only_the_best_branch_counts() {
        let over = Detail { passed_over: true, ..detail("b", 1.0, 0.0, vec![detail("c", 1.0, 0.0, vec![])]) };
        let findings = [finding("", 1.0, 1.0, &[detail("a", 1.0, 1.0, vec![]), over])];
        assert_eq!(dimensions(&findings), [("a", 1.0)]);
    }

    #[test]
    fn a_score_is_shown_unless_the_outcome_implies_it() {
        let shown = |outcome, score| partial(outcome, Some(score), Some(100.0));
        assert_eq!(shown(Outcome::Passed, 100.0), None);
        assert_eq!(shown(Outcome::Passed, 80.0).as_deref(), Some("80/100"));
        assert_eq!(shown(Outcome::Failed, 0.0), None);
        assert_eq!(shown(Outcome::Failed, 76.5).as_deref(), Some("76.5/100"));
        assert_eq!((shown(Outcome::Broken, 50.0), partial(Outcome::Failed, None, None)), (None, None));
    }
}
