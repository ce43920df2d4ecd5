//! JUnit XML. Readers differ in what they show, so there are three dialects.

use std::io::{self, Write};
use std::time::Duration;

use model::Outcome;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use crate::finished::{self, EarlierAttempt, FinishedRun, FinishedTrial, TestResult};
use crate::totals;

/// Readers of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Any: properties, and earlier attempts as output.
    Generic,
    /// GitLab, which shows no properties.
    GitLab,
    /// Jenkins: earlier attempts as separate elements. Everything that the schema of its xUnit plugin does not allow
    /// goes into the output.
    Jenkins,
}

pub(crate) fn write(run: &FinishedRun, dialect: Dialect, out: &mut dyn Write) -> io::Result<()> {
    let label = run.info.label.as_deref().map(finished::clean);
    let mut report = Report::new(label.as_deref().unwrap_or("trialrun"));
    report.set_time(Duration::from_millis(run.duration_ms()));
    for (name, trials) in run.suites() {
        let mut suite = TestSuite::new(name);
        suite.set_time(Duration::from_millis(trials.iter().map(|trial| trial.duration_ms).sum()));
        if let Some(counted) = run.counted.get(name).filter(|_| dialect == Dialect::Generic) {
            for (rate, value) in FinishedRun::pass_rate(*counted) {
                suite.add_property(Property::new(rate, value.to_string()));
            }
            if let Some(sentence) = totals::required(&run.summary, run.gate()) {
                suite.add_property(Property::new("run", sentence));
            }
        }
        if let Some(start) = trials.iter().map(|trial| trial.started_at).min() {
            suite.extra.insert("timestamp".into(), start.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
        }
        suite.add_test_cases(trials.into_iter().map(|trial| test_case(trial, dialect)));
        report.add_test_suite(suite);
    }
    let text = report.to_string().map_err(io::Error::other)?;
    out.write_all(without_skipped(&text).as_bytes())
}

/// Result of a check that is not a trial: kept, broken or skipped, with a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckResult<'a> {
    /// Kept.
    Kept,
    /// Broken.
    Broken(&'a str),
    /// Not checked.
    Skipped(&'a str),
}

/// Returns checks as JUnit XML: each with its suite, its name and its result. Checks of a suite are adjacent.
///
/// # Errors
/// Returns an error if the document cannot be written.
pub fn junit_of_checks<'a>(name: &str, checks: &[(&'a str, &'a str, CheckResult<'a>)]) -> io::Result<String> {
    let mut report = Report::new(name);
    for checks in checks.chunk_by(|one, other| one.0 == other.0) {
        let Some((name, ..)) = checks.first() else { continue };
        let mut suite = TestSuite::new(*name);
        suite.add_test_cases(checks.iter().map(|(_, name, result)| {
            let mut status = match result {
                CheckResult::Kept => TestCaseStatus::success(),
                CheckResult::Broken(_) => TestCaseStatus::non_success(NonSuccessKind::Failure),
                CheckResult::Skipped(_) => TestCaseStatus::skipped(),
            };
            if let CheckResult::Broken(reason) | CheckResult::Skipped(reason) = result {
                status.set_message(finished::clean(reason));
            }
            TestCase::new(*name, status)
        }));
        report.add_test_suite(suite);
    }
    report.to_string().map(|text| without_skipped(&text)).map_err(io::Error::other)
}

/// Removes the `skipped` attribute of the root element: suites have it, but no JUnit XML schema allows it on the root.
fn without_skipped(text: &str) -> String {
    let root = text.find("<testsuites ").unwrap_or_default();
    let end = text[root..].find('>').map_or(text.len(), |end| root + end);
    let cut = text[root..end].find(" skipped=\"").map(|start| root + start);
    let rest = cut.and_then(|start| text[start..end].splitn(3, '"').nth(2));
    match (cut, rest) {
        (Some(start), Some(rest)) => format!("{}{rest}{}", &text[..start], &text[end..]),
        _ => text.to_owned(),
    }
}

fn test_case(trial: &FinishedTrial, dialect: Dialect) -> TestCase {
    let mut case = TestCase::new(trial.name(), status(trial, dialect));
    case.set_classname(&trial.suite);
    case.set_time(Duration::from_millis(trial.duration_ms));
    let place = trial.place.as_ref();
    if let Some(place) = place.filter(|_| dialect != Dialect::Jenkins) {
        case.extra.insert("file".into(), (&place.file).into());
        if let Some(line) = place.line {
            case.extra.insert("line".into(), line.to_string().into());
        }
    }
    if dialect == Dialect::Jenkins {
        let mut lines: String =
            properties(trial).iter().map(|it| format!("{}: {}\n", it.name.as_str(), it.value.as_str())).collect();
        if let Some(place) = place {
            let line = place.line.map_or_else(String::new, |line| format!(":{line}"));
            lines.push_str(&format!("file: {}{line}\n", place.file));
        }
        case.set_system_out(lines);
    }
    if dialect == Dialect::Generic {
        case.add_properties(properties(trial));
    }
    if dialect != Dialect::Jenkins && !trial.earlier.is_empty() {
        let flaky = if trial.flaky { "flaky: passed only after another attempt failed\n" } else { "" };
        case.set_system_out(format!("{flaky}{}", trial.describe_attempts()));
    }
    case
}

fn status(trial: &FinishedTrial, dialect: Dialect) -> TestCaseStatus {
    let mut status = match trial.result {
        TestResult::Passed => TestCaseStatus::success(),
        TestResult::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        TestResult::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        TestResult::Skipped => TestCaseStatus::skipped(),
    };
    status.set_message(&trial.reason).set_type(&trial.kind).set_description(&trial.text);
    if dialect == Dialect::Jenkins {
        status.add_reruns(trial.earlier.iter().map(rerun));
    }
    status
}

fn rerun(attempt: &EarlierAttempt) -> TestRerun {
    let kind = if attempt.outcome == Outcome::Failed { NonSuccessKind::Failure } else { NonSuccessKind::Error };
    let mut rerun = TestRerun::new(kind);
    rerun.set_type(attempt.outcome.name()).set_message(&attempt.reason);
    rerun
}

fn properties(trial: &FinishedTrial) -> Vec<Property> {
    let mut properties = vec![Property::new("outcome", trial.outcome.name())];
    if trial.outcome == Outcome::Undecided {
        properties.push(Property::new("undecided", &trial.reason));
    }
    if trial.flaky {
        properties.push(Property::new("flaky", "true"));
    }
    properties.extend(trial.quarantine.as_ref().map(|quarantine| Property::new("quarantine", quarantine)));
    properties.push(Property::new("arm", &trial.arm));
    // A decision is about several trials, so it has no repetition.
    if trial.repetition > 0 {
        properties.push(Property::new("repetition", trial.repetition.to_string()));
        properties.push(Property::new("attempts", (trial.earlier.len() + 1).to_string()));
    }
    properties.extend(trial.score.map(|[score, most]| Property::new("score", format!("{score} of {most}"))));
    properties.extend(trial.tokens.map(|tokens| Property::new("tokens", tokens.to_string())));
    properties.extend(trial.cost_usd.map(|cost| Property::new("cost_usd", cost.to_string())));
    properties
}
