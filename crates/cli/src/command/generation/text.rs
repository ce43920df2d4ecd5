//! Progress and summary of `gen` on the terminal.

use generate::{Admitted, Covered, Generated, GenerationRequest, PlannedTest, Progress, RejectedTest, Target};
use model::Outcome;
use report::columns::{padded, widest};
use report::{clean, counted};
use serde::Serialize;

/// Maximum number of facts without a test that are listed.
const MOST_UNCOVERED: usize = 20;

/// The result as a document.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    schema: &'static str,
    model: &'a str,
    prompt_version: &'static str,
    #[serde(flatten)]
    generated: &'a Generated,
}

impl<'a> Document<'a> {
    pub fn of(generated: &'a Generated, model: &'a str) -> Self {
        Self { schema: "trialrun.generation/1", model, prompt_version: generate::PROMPT_VERSION, generated }
    }
}

/// Formats a step as one line.
pub(super) fn progress(progress: &Progress<'_>, has_color: bool) -> String {
    let colored = |code: &str, text: &str| match has_color {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    match progress {
        Progress::Planned(count) => format!("planned {}\n", counted(*count, "test")),
        Progress::Admitted(test) => {
            let verdict = verdict(test).map(|verdict| format!("  {}", clean(&verdict))).unwrap_or_default();
            format!("  {}   {}{verdict}\n", colored("32", "written"), test.file)
        }
        // The summary gives the reason.
        Progress::Rejected(test) => {
            format!("  {}  {} ({})\n", colored("33", "rejected"), clean(&test.name), test.category)
        }
    }
}

/// Returns how the agent did in a test, if the test was run with it.
fn verdict(test: &Admitted) -> Option<String> {
    let all = |wanted: Outcome| !test.outcomes.is_empty() && test.outcomes.iter().all(|outcome| *outcome == wanted);
    let reason = || test.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    if all(Outcome::Passed) {
        Some("passes".to_owned())
    } else if all(Outcome::Failed) {
        Some(format!("FAILS{}", reason()))
    } else {
        test.outcomes.first().map(|_| format!("is undecided{}", reason()))
    }
}

fn rejection(test: &RejectedTest) -> String {
    format!("{} ({}): {}", test.name, test.category, test.reasons.join("; "))
}

/// Formats the plan. Each test is followed by the facts that it covers.
pub(super) fn plan(planned: &[PlannedTest], facts: &[Target]) -> String {
    let column = widest(planned.iter().map(|test| test.category.as_str()));
    let gap = padded("", column);
    let covered = |id: &String| {
        let fact = facts.iter().find(|fact| fact.id == *id);
        let text = fact.map_or_else(|| id.clone(), |fact| format!("{}  {}", fact.text, fact.place));
        format!("{gap}  covers {}\n", text.trim_end())
    };
    let lines = |test: &PlannedTest| {
        let covers: String = test.covers.iter().map(covered).collect();
        format!("{}  {}\n{covers}", padded(&test.category, column), test.name)
    };
    planned.iter().map(lines).collect()
}

/// Formats the result.
pub(super) fn summary(
    generated: &Generated,
    request: &GenerationRequest<'_>,
    agent: Option<&str>,
    configured: Option<&str>,
) -> String {
    let wanted: usize = request.quotas.iter().map(|(_, count)| count).sum();
    let mut text = match generated.is_stopped {
        true => format!("\nstopped: {} of {} written\n", generated.admitted.len(), counted(wanted, "test")),
        false => format!("\n{} of {} written\n", generated.admitted.len(), counted(wanted, "test")),
    };
    text.push_str(&by_category(generated));
    if generated.planned < wanted {
        let planned = counted(generated.planned, "test");
        text.push_str(&format!("  the model planned only {planned}; run the command again for the others\n"));
    }
    let failing = generated.admitted.iter().filter(|test| test.outcomes.contains(&Outcome::Failed)).count();
    if failing > 0 {
        let verb = if failing == 1 { "fails" } else { "fail" };
        text.push_str(&format!(
            "\n{} {verb} with this agent. Read each: either the agent makes this mistake, or the test expects too much.\n",
            counted(failing, "test")
        ));
    }
    text.push_str(&coverage(&generated.coverage));
    if !generated.rejected.is_empty() {
        text.push_str(&format!("\nrejected ({})\n", generated.rejected.len()));
        text.extend(generated.rejected.iter().map(|test| format!("  {}\n", rejection(test))));
    }
    text.push_str(&format!("\n{}\n", usage(generated)));
    text.extend(configured.map(|note| format!("{note}\n")));
    if !generated.admitted.is_empty() {
        let agent = agent.filter(|_| configured.is_none()).map(|agent| format!(" --agent {agent}")).unwrap_or_default();
        text.push_str(&format!("Next: trialrun run{agent}\n"));
    }
    text
}

/// Formats the number of tests per category, in one line.
fn by_category(generated: &Generated) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for test in &generated.admitted {
        match counts.iter_mut().find(|(name, _)| *name == test.category) {
            Some((_, count)) => *count += 1,
            None => counts.push((test.category, 1)),
        }
    }
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if counts.is_empty() { String::new() } else { format!("  {}\n", counts.join(" · ")) }
}

/// Formats the facts with their numbers of tests, followed by those without a test.
fn coverage(covered: &[Covered]) -> String {
    let (with, without): (Vec<&Covered>, Vec<&Covered>) = covered.iter().partition(|one| !one.tests.is_empty());
    let column = widest(covered.iter().map(|one| one.target.text.as_str())).min(72);
    let line = |one: &&Covered| {
        let count = if one.tests.is_empty() { String::new() } else { counted(one.tests.len(), "test") };
        format!("  {}  {}  {}\n", padded(&one.target.text, column), padded(&count, 8), one.target.place)
    };
    let mut text = String::new();
    if !with.is_empty() {
        text.push_str(&format!("\ncovered ({} of {})\n", with.len(), covered.len()));
        text.extend(with.iter().map(line));
    }
    if !without.is_empty() {
        text.push_str(&format!("\nwithout a test ({})\n", without.len()));
        text.extend(without.iter().take(MOST_UNCOVERED).map(line));
        let more = without.len().saturating_sub(MOST_UNCOVERED);
        if more > 0 {
            text.push_str(&format!("  and {more} more; `--json` lists all\n"));
        }
    }
    let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
    if text.is_empty() { text } else { trimmed.join("\n") + "\n" }
}

fn usage(generated: &Generated) -> String {
    let usage = &generated.usage;
    let tokens = usage
        .tokens
        .map(|tokens| format!(", {}", counted(usize::try_from(tokens.total()).unwrap_or(usize::MAX), "token")));
    let cost = usage.cost_usd.map_or_else(|| ", cost unknown".to_owned(), |cost| format!(", ${cost:.2}"));
    format!(
        "{}{}{cost}",
        counted(usize::try_from(usage.requests).unwrap_or(usize::MAX), "request"),
        tokens.unwrap_or_default()
    )
}
