//! What findings are worth.

use model::Finding;

/// Σ weight · score and Σ weight of the findings that are decided.
pub fn score(findings: &[Finding]) -> (f64, f64) {
    findings.iter().fold((0.0, 0.0), |(sum, weights), finding| match finding.score {
        Some(score) => (sum + finding.weight * score, weights + finding.weight),
        None => (sum, weights),
    })
}

/// The score as a share of what could be had, from 0 to 1; 1 when nothing is decided.
pub fn weighted_score(findings: &[Finding]) -> f64 {
    let (sum, weights) = score(findings);
    if weights > 0.0 { sum / weights } else { 1.0 }
}
