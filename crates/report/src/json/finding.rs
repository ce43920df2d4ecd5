//! Findings in the form of the report, with their details and failures.

use model::{Capture, Claim, Detail, Excerpt, Failure, Finding, Position, Segment, Status};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
pub(super) struct FindingFields<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    title: Option<&'a str>,
    status: Status,
    claim: Claim,
    method: Option<&'static str>,
    score: Option<f64>,
    weight: f64,
    critical: bool,
    dimension: Option<&'a str>,
    because: &'a str,
    expected: Option<&'a str>,
    actual: Option<&'a str>,
    evidence: &'a [String],
    error: Option<&'a str>,
    latency_ms: Option<u64>,
    captures: &'a [Capture],
    source: Option<&'a Excerpt>,
    at: Option<Position>,
    key: Option<&'a str>,
    details: Vec<DetailFields<'a>>,
    failures: Vec<FailureFields<'a>>,
    implicit: bool,
}

impl<'a> FindingFields<'a> {
    pub(super) fn of(finding: &'a Finding) -> Self {
        Self {
            id: &finding.id,
            kind: &finding.kind,
            title: finding.title.as_deref(),
            status: finding.status,
            claim: finding.claim,
            method: finding.judged.then_some("judge"),
            score: finding.score,
            weight: finding.weight,
            critical: !finding.failed_critical.is_empty(),
            dimension: finding.dimension.as_deref(),
            because: &finding.because,
            expected: finding.expected.as_deref(),
            actual: finding.actual.as_deref(),
            evidence: &finding.evidence,
            error: finding.error.as_deref(),
            latency_ms: finding.latency_ms,
            captures: &finding.captures,
            source: finding.source.as_ref(),
            at: finding.at,
            key: finding.key.as_deref(),
            details: finding.details.iter().map(DetailFields::of).collect(),
            failures: finding.failures.iter().map(FailureFields::of).collect(),
            implicit: finding.implicit,
        }
    }
}

#[derive(Serialize)]
struct DetailFields<'a> {
    key: &'a str,
    title: Option<&'a str>,
    dimension: Option<&'a str>,
    critical: bool,
    weight: f64,
    score: f64,
    status: Status,
    details: Vec<DetailFields<'a>>,
}

impl<'a> DetailFields<'a> {
    fn of(detail: &'a Detail) -> Self {
        Self {
            key: &detail.key,
            title: detail.title.as_deref(),
            dimension: detail.dimension.as_deref(),
            critical: detail.critical,
            weight: detail.weight,
            score: detail.score,
            status: detail.status,
            details: detail.details.iter().map(Self::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct FailureFields<'a> {
    key: &'a str,
    message: &'a str,
    expected: Option<&'a Value>,
    actual: Option<&'a Value>,
    diff: &'a [Segment],
    critical: bool,
    source: Option<&'a Excerpt>,
}

impl<'a> FailureFields<'a> {
    fn of(failure: &'a Failure) -> Self {
        Self {
            key: &failure.key,
            message: &failure.message,
            expected: failure.expected.as_ref(),
            actual: failure.actual.as_ref(),
            diff: &failure.diff,
            critical: failure.critical,
            source: failure.source.as_ref(),
        }
    }
}
