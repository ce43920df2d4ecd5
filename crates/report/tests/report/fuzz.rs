//! Reports on damaged records: an edited record, or events from another version.

use model::Envelope;
use report::{REPORTS, ReporterOptions};

use crate::formats::every_outcome;
use crate::{Paper, plain};

#[test]
fn no_sequence_of_events_makes_a_report_panic() {
    let events = every_outcome().events;
    let lines: Vec<Vec<u8>> = events.iter().map(|event| serde_json::to_vec(event).unwrap()).collect();
    testkit::fuzz(&[lines.join(&b'\n')], |bytes| {
        let events: Vec<Envelope> =
            bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        for report in REPORTS {
            let paper = Paper::default();
            let Some(mut reporter) = report.to_stream(ReporterOptions::new(paper.writer(), plain())) else { continue };
            // A report may refuse events, but it must say so.
            let written = events.iter().try_for_each(|event| reporter.event(event));
            let is_text = report.name != "otlp";
            if written.and_then(|()| reporter.finish()).is_ok() && is_text {
                let text = paper.text();
                let escape = text.find('\u{1b}');
                assert!(escape.is_none(), "{}: {:?}", report.name, text.get(escape.unwrap_or(0).saturating_sub(200)..));
            }
        }
    });
}
