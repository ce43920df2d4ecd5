//! Ids of traces and spans. They are computed from the run, so a replayed run has the same ids as the live run.

use sha2::{Digest, Sha256};

/// Trace of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceContext {
    /// Id of the trace.
    pub(super) trace: Vec<u8>,
    /// Span that the run is part of; empty if there is none.
    pub(super) parent: Vec<u8>,
}

impl TraceContext {
    /// Returns the trace of the run: the trace in `traceparent`, or else its own trace, whose id is derived from the
    /// run's id.
    pub(super) fn new(run: &str, traceparent: Option<&str>) -> Self {
        traceparent.and_then(Self::parse).unwrap_or_else(|| {
            let own = bytes(&run.replace('-', "")).filter(|id| id.len() == 16);
            Self { trace: own.unwrap_or_else(|| Sha256::digest(run)[..16].to_vec()), parent: Vec::new() }
        })
    }

    /// Parses the header defined by the W3C recommendation "Trace Context": version, trace, span, flags.
    fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.trim().split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_next_version = version != "00";
        if version.len() != 2 || version == "ff" || flags.len() != 2 || (parts.next().is_some() && !is_next_version) {
            return None;
        }
        bytes(version)?;
        bytes(flags)?;
        let (trace, parent) = (bytes(trace)?, bytes(parent)?);
        let is_valid = |id: &[u8], length| id.len() == length && id.iter().any(|byte| *byte != 0);
        (is_valid(&trace, 16) && is_valid(&parent, 8)).then_some(Self { trace, parent })
    }
}

/// Returns the id of the span with that number in a trial. The run itself has number 0 and no trial.
pub(super) fn span_id(run: &str, trial: &str, number: usize) -> Vec<u8> {
    Sha256::digest(format!("{run}\0{trial}\0{number}"))[..8].to_vec()
}

/// Decodes lowercase hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let is_lowercase = digits.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit));
    if !is_lowercase || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|index| u8::from_str_radix(&digits[index..index + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_trace_unless_it_is_part_of_one() {
        let run = "0193a0f2-7c11-7d3e-9b5a-3f0c6a1e2b44";
        let own = TraceContext::new(run, None);
        assert_eq!((own.trace[..3].to_vec(), own.trace.len(), own.parent.len()), (vec![0x01, 0x93, 0xa0], 16, 0));
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let part = TraceContext::new(run, Some(header));
        assert_eq!((part.trace[0], part.parent[1]), (0x4b, 0xf0));
        for wrong in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e47-00f067aa0ba902b7-01",
            "0é-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::new(run, Some(wrong)), own, "{wrong}");
        }
        assert_eq!(TraceContext::new("no uuid", None).trace.len(), 16);
    }
}
