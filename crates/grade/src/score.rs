//! Scores of findings.

use model::Finding;

/// Returns Σ weight · score and Σ weight of the findings that are decided.
pub fn score(findings: &[Finding]) -> (f64, f64) {
    findings.iter().fold((0.0, 0.0), |(sum, weights), finding| match finding.score {
        Some(score) => (sum + finding.weight * score, weights + finding.weight),
        None => (sum, weights),
    })
}

/// Returns the score as a share of the maximum, from 0 to 1. Returns 1 if no finding is decided.
pub fn weighted_score(findings: &[Finding]) -> f64 {
    let (sum, weights) = score(findings);
    if weights > 0.0 { sum / weights } else { 1.0 }
}
