//! Scores of findings.

use model::Finding;

/// Returns Σ weight · score and Σ weight of the findings that are decided.
pub fn score(findings: &[Finding]) -> (f64, f64) {
    findings.iter().fold((0.0, 0.0), |(sum, weights), finding| match finding.score {
        Some(score) => (sum + finding.weight * score, weights + finding.weight),
        None => (sum, weights),
    })
}
