//! Output for GitHub Actions: an annotation at the line of each assertion that does not hold, and the Markdown report
//! as the step summary.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use model::{Envelope, Outcome};

use crate::finished::{self, FinishedRun, FinishedTrial, Location, TestResult};
use crate::{Reporter, ReporterOptions, Style, format, markdown};

/// Maximum number of annotations per level: GitHub shows no more for a step.
const MAX_ANNOTATIONS: usize = 10;
/// Maximum number of assertions in the message of an annotation.
const CHECKS: usize = 10;
/// Maximum number of trials that an annotation names.
const TRIALS: usize = 5;

struct GitHub {
    annotations: Box<dyn Reporter>,
    summary: Option<Box<dyn Reporter>>,
}

pub(crate) fn open(mut options: ReporterOptions) -> Box<dyn Reporter> {
    let summary = options.step_summary.take().map(|out| {
        let quiet = options.quiet || options.failures_only;
        markdown::open(ReporterOptions { quiet, ..ReporterOptions::new(out, Style::plain()) })
    });
    Box::new(GitHub { annotations: finished::open(options, write), summary })
}

impl Reporter for GitHub {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        self.annotations.event(envelope)?;
        self.summary.as_mut().map_or(Ok(()), |summary| summary.event(envelope))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.annotations.finish()?;
        self.summary.as_mut().map_or(Ok(()), |summary| summary.finish())
    }
}

fn write(run: &FinishedRun, out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::new();
    let mut hidden = 0;
    let annotations = annotations(&run.trials);
    for level in ["error", "warning", "notice"] {
        let all = annotations.iter().filter(|(annotation, _)| annotation.level == level);
        text.extend(all.clone().take(MAX_ANNOTATIONS).map(|(annotation, trials)| annotation.command(trials)));
        hidden += all.skip(MAX_ANNOTATIONS).map(|(_, trials)| trials.len()).sum::<usize>();
    }
    if hidden > 0 {
        let more = format::counted(hidden, "more trial");
        text.push_str(&format!("::notice title=trialrun::{more} did not pass; the summary lists them\n"));
    }
    // Written in one piece, so that lines of other reports do not end up in between.
    out.write_all(text.as_bytes())
}

#[derive(PartialEq, Eq, Hash, Clone)]
struct Annotation {
    level: &'static str,
    place: Option<Location>,
    title: String,
    message: String,
}

/// Returns each annotation with the trials that it is about: repetitions often fail in the same way.
fn annotations(trials: &[FinishedTrial]) -> Vec<(Annotation, Vec<Arc<str>>)> {
    let mut annotations: Vec<(Annotation, Vec<Arc<str>>)> = Vec::new();
    let mut numbers: HashMap<Annotation, usize> = HashMap::new();
    for (trial, annotation) in trials.iter().filter_map(|trial| Some((trial, Annotation::from_trial(trial)?))) {
        let number = *numbers.entry(annotation.clone()).or_insert(annotations.len());
        match annotations.get_mut(number) {
            Some((_, trials)) => trials.push(Arc::clone(&trial.id)),
            None => annotations.push((annotation, vec![Arc::clone(&trial.id)])),
        }
    }
    annotations
}

impl Annotation {
    fn from_trial(trial: &FinishedTrial) -> Option<Self> {
        let name = format!("{}::{}", trial.suite, trial.case);
        let (level, title) = match (trial.result, trial.outcome) {
            (TestResult::Passed, _) if trial.flaky => ("warning", format!("{name} is flaky")),
            (TestResult::Failed, _) => ("error", format!("{name} failed")),
            (TestResult::Error, _) if trial.arm.is_empty() => ("error", "the run is incomplete".to_owned()),
            (TestResult::Error, _) => ("error", format!("{name} is broken ({})", trial.kind)),
            (TestResult::Skipped, Outcome::Failed | Outcome::Undecided | Outcome::Broken | Outcome::Stale)
                if trial.quarantine.is_some() && !trial.is_baseline =>
            {
                ("notice", format!("{name}: {} (quarantined)", trial.outcome.name()))
            }
            (TestResult::Skipped, Outcome::Undecided | Outcome::Stale) if !trial.is_baseline => {
                ("warning", format!("{name} is {}", trial.outcome.name()))
            }
            (TestResult::Passed | TestResult::Skipped, _) => return None,
        };
        let place = trial.unmet.iter().find_map(|check| check.place.as_ref()).or(trial.place.as_ref());
        let mut lines: Vec<String> =
            trial.unmet.iter().take(CHECKS).map(|check| format!("{}: {}", check.id, check.reason)).collect();
        if trial.unmet.len() > CHECKS {
            lines.push(format!("and {} more", trial.unmet.len() - CHECKS));
        }
        lines.extend(trial.quarantine.clone());
        if trial.flaky {
            lines.push(trial.describe_attempts().trim_end().to_owned());
        }
        if lines.is_empty() {
            lines.push(trial.reason.clone());
        }
        Some(Self { level, place: place.cloned(), title, message: lines.join("\n") })
    }

    /// Returns the workflow command.
    fn command(&self, trials: &[Arc<str>]) -> String {
        let mut properties = Vec::new();
        if let Some(place) = &self.place {
            properties.push(format!("file={}", property(&place.file)));
            properties.extend(place.line.map(|line| format!("line={line}")));
        }
        properties.push(format!("title={}", property(&self.title)));
        let mut named: Vec<&str> = trials.iter().take(TRIALS).map(|trial| &**trial).collect();
        let more = format!("and {} more", trials.len().saturating_sub(TRIALS));
        if trials.len() > TRIALS {
            named.push(&more);
        }
        let message = format!("{}\n\n{}", self.message, named.join("\n"));
        format!("::{} {}::{}\n", self.level, properties.join(","), data(&message))
    }
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_a_command_or_start_another() {
        assert_eq!(property("a,b: 100%\n::error::"), "a%2Cb%3A 100%25%0A%3A%3Aerror%3A%3A");
        assert_eq!(data("100%\r\n::error::x, y"), "100%25%0D%0A::error::x, y");
    }
}
