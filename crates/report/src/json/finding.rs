//! Findings in the form that the report uses, with their details and failures.

use model::{Detail, Failure, Finding};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// JSON form of a finding.
pub(super) struct FindingFields<'a>(pub(super) &'a Finding);

impl Serialize for FindingFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let finding = self.0;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("id", &finding.id)?;
        fields.serialize_entry("type", &finding.kind)?;
        fields.serialize_entry("title", &finding.title)?;
        fields.serialize_entry("status", &finding.status)?;
        fields.serialize_entry("claim", &finding.claim)?;
        fields.serialize_entry("method", &finding.judged.then_some("judge"))?;
        fields.serialize_entry("score", &finding.score)?;
        fields.serialize_entry("weight", &finding.weight)?;
        fields.serialize_entry("critical", &!finding.failed_critical.is_empty())?;
        fields.serialize_entry("dimension", &finding.dimension)?;
        fields.serialize_entry("because", &finding.reason)?;
        fields.serialize_entry("expected", &finding.expected)?;
        fields.serialize_entry("actual", &finding.actual)?;
        fields.serialize_entry("evidence", &finding.evidence)?;
        fields.serialize_entry("error", &finding.error)?;
        fields.serialize_entry("latency_ms", &finding.latency_ms)?;
        fields.serialize_entry("judgement", &finding.judgement)?;
        fields.serialize_entry("captures", &finding.captures)?;
        fields.serialize_entry("source", &finding.source)?;
        fields.serialize_entry("at", &finding.at)?;
        fields.serialize_entry("key", &finding.key)?;
        fields.serialize_entry("details", &finding.details.iter().map(DetailFields).collect::<Vec<_>>())?;
        fields.serialize_entry("failures", &finding.failures.iter().map(FailureFields).collect::<Vec<_>>())?;
        fields.serialize_entry("implicit", &finding.implicit)?;
        fields.end()
    }
}

/// JSON form of a part of an expectation.
struct DetailFields<'a>(&'a Detail);

impl Serialize for DetailFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let detail = self.0;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("key", &detail.key)?;
        fields.serialize_entry("title", &detail.title)?;
        fields.serialize_entry("dimension", &detail.dimension)?;
        fields.serialize_entry("critical", &detail.critical)?;
        fields.serialize_entry("weight", &detail.weight)?;
        fields.serialize_entry("score", &detail.score)?;
        fields.serialize_entry("status", &detail.status)?;
        fields.serialize_entry("details", &detail.details.iter().map(DetailFields).collect::<Vec<_>>())?;
        fields.end()
    }
}

/// JSON form of a failure.
struct FailureFields<'a>(&'a Failure);

impl Serialize for FailureFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let failure = self.0;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("key", &failure.key)?;
        fields.serialize_entry("message", &failure.message)?;
        fields.serialize_entry("expected", &failure.expected)?;
        fields.serialize_entry("actual", &failure.actual)?;
        fields.serialize_entry("diff", &failure.diff)?;
        fields.serialize_entry("critical", &failure.critical)?;
        fields.serialize_entry("source", &failure.source)?;
        fields.end()
    }
}
