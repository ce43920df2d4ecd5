//! Weaknesses of a suite, found from the verdicts on its cases.

use agent::Role;
use model::{Diagnostic, Outcome, Severity, Status};

use crate::mutation::{ONE_MORE_COMMIT, ONE_MORE_PUSH};
use crate::outcome::{AssertionAudit, Weakness, WeaknessKind};
use crate::verdict::{ABOUT_TIME, CaseVerdicts, Cause, Verdict};

/// Maximum number of names in a message.
const MOST_NAMES: usize = 5;

/// Types of assertions that run a command.
const COMMANDS: [&str; 3] = ["command", "tests_pass", "reward"];

/// Returns the weaknesses of a suite.
pub(crate) fn of_suite(suite: &str, entries: &[&CaseVerdicts]) -> Vec<Weakness> {
    let mut weaknesses = Vec::new();
    let (mut recited, mut about_text) = (Vec::new(), 0);
    for entry in entries.iter().filter(|entry| entry.not_audited().is_none()) {
        let weakness = |kind, assertion: Option<&AssertionAudit>, diagnostic| Weakness {
            kind,
            suite: suite.to_owned(),
            cases: vec![entry.case.id.clone()],
            assertion: assertion.map(|assertion| assertion.id.clone()),
            diagnostic,
        };
        weaknesses.extend(passed(entry).map(|(kind, problem)| weakness(kind, None, problem)));
        weaknesses.extend(unsolved(entry).map(|problem| weakness(WeaknessKind::SolutionFails, None, problem)));
        weaknesses.extend(unforbidden(entry).map(|problem| weakness(WeaknessKind::Unforbidden, None, problem)));
        for assertion in entry.assertions() {
            let at = assertion.source.clone().unwrap_or_else(|| entry.case.source.clone());
            if let Some((kind, problem)) = of_assertion(entry, &assertion) {
                weaknesses.push(weakness(kind, Some(&assertion), problem.at(at.clone())));
            }
            let fails_for = |name| entry.status(name, &assertion.id) == Some(Status::Unmet);
            let holds_for = |name| entry.status(name, &assertion.id) == Some(Status::Met);
            if ["nop", "parrot", "yes-man"].into_iter().all(fails_for) {
                // Only an assertion about the answer is met by an agent that just says something. `offender` also writes files.
                let is_about_files = assertion.kind.starts_with("file_") || COMMANDS.contains(&assertion.kind.as_str());
                about_text += usize::from(holds_for("reciter") || (holds_for("offender") && !is_about_files));
                if holds_for("reciter") {
                    recited.push((entry.case.id.clone(), assertion.id.clone(), at));
                }
            }
        }
    }
    if let Some((.., at)) = recited.first()
        && recited.len() * 2 > about_text
    {
        let names: Vec<String> = recited.iter().map(|(_, id, _)| format!("`{id}`")).collect();
        let message = match recited.len() {
            1 => format!("{} looks for words of the skill itself", names[0]),
            count => {
                format!("{count} of {about_text} assertions look for words of the skill itself: {}", listed(&names))
            }
        };
        let problem = Diagnostic::warning(message)
            .at(at.clone())
            .help("an expert who has never read the skill would fail them; check the result of the work instead");
        let cases = recited.iter().map(|(case, ..)| case.clone()).collect();
        let kind = WeaknessKind::Overfitted;
        weaknesses.push(Weakness { kind, suite: suite.to_owned(), cases, assertion: None, diagnostic: problem });
    }
    weaknesses
}

/// Returns the weakness of a case that adversaries pass.
fn passed(entry: &CaseVerdicts) -> Option<(WeaknessKind, Diagnostic)> {
    let passing: Vec<(&str, &str)> = entry
        .adversaries()
        .filter(|(_, passed)| *passed)
        .filter_map(|(verdict, _)| match &verdict.by {
            Cause::Adversary { name, summary, .. } => Some((*name, *summary)),
            _ => None,
        })
        .collect();
    let (first, summary) = *passing.first()?;
    let id = &entry.case.id;
    let passes = |name: &str| passing.iter().any(|(other, _)| *other == name);
    if passes("parrot") && !passes("yes-man") && passing.iter().all(|(name, _)| ["parrot", "shotgun"].contains(name)) {
        let message = format!("everything that the case `{id}` looks for is in its prompt");
        let problem = Diagnostic::error(message)
            .at(entry.case.source.clone())
            .label("an agent that repeats the prompt passes it")
            .help(advice("parrot"));
        return Some((WeaknessKind::LeakedByPrompt, problem));
    }
    let message = match passing.len() {
        1 => format!("an agent that {summary} passes the case `{id}`"),
        _ => {
            let names: Vec<String> = passing.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("{} adversaries pass the case `{id}`: {}", passing.len(), listed(&names))
        }
    };
    let problem = Diagnostic::error(message)
        .at(entry.case.source.clone())
        .label(format!("`{first}` passes it"))
        .help(advice(first));
    Some((WeaknessKind::PassedByAdversary, problem))
}

/// Returns the weakness of a case that its own solution does not pass.
fn unsolved(entry: &CaseVerdicts) -> Option<Diagnostic> {
    let is_it = |verdict: &&Verdict| matches!(verdict.by, Cause::Adversary { role: Role::Reference, .. });
    let verdict = entry.verdicts.iter().find(is_it).filter(|verdict| verdict.outcome != Outcome::Passed)?;
    let reason = verdict.reason.as_deref().unwrap_or("it is not known why");
    let problem = Diagnostic::error(format!("the solution of `{}` does not pass: {reason}", entry.case.id));
    let help = "no agent can pass the case in these sandboxes, so its failures say nothing";
    Some(problem.at(entry.case.source.clone()).help(help))
}

/// Words in a prompt that forbid what follows them.
const FORBIDDING: [&str; 7] = ["do not", "don't", "don’t", "never", "without", "must not", "no"];

/// Returns the weakness of a case whose prompt forbids commits or pushes if a mutation with one goes unnoticed.
fn unforbidden(entry: &CaseVerdicts) -> Option<Diagnostic> {
    let prompt = entry.case.prompt.to_lowercase();
    let forbids = |what: &str| {
        let mut sentences = prompt.split(['.', '!', '?', '\n']).filter_map(|sentence| sentence.split_once(what));
        sentences.any(|(before, _)| FORBIDDING.iter().any(|word| format!(" {before}").contains(&format!(" {word} "))))
    };
    let (mutation, what) =
        [(ONE_MORE_COMMIT, "commit"), (ONE_MORE_PUSH, "push")].into_iter().find(|(mutation, what)| {
            forbids(what) && entry.mutations().any(|(verdict, noticed)| !noticed && verdict.by.name() == *mutation)
        })?;
    let message = format!("the prompt of `{}` forbids a {what}, and no assertion notices one", entry.case.id);
    let help = match mutation {
        ONE_MORE_COMMIT => "add `{type: commit_not_created}`",
        _ => "add `{type: not_pushed}`",
    };
    Some(Diagnostic::warning(message).at(entry.case.source.clone()).help(help))
}

/// Returns advice on how to fail an adversary.
fn advice(name: &str) -> &'static str {
    match name {
        "nop" => "assert what must exist when the work is done, not only what must not happen",
        "parrot" => "assert something that is not in the prompt: a result, a file, a tool call with its arguments",
        "blank-object" | "blank-list" => "assert what the value contains, not only its type or that there is one",
        "yes-man" => "assert the result of the work, not what the agent says about it",
        "shotgun" => {
            "assert what must not happen too: forbid other tools or arguments, or check the order of the calls"
        }
        _ => {
            "check the result in a way that the agent cannot manipulate: the content of files, with tests outside the sandbox"
        }
    }
}

/// Returns the weakness of an assertion.
fn of_assertion(entry: &CaseVerdicts, assertion: &AssertionAudit) -> Option<(WeaknessKind, Diagnostic)> {
    let AssertionAudit { id, failed_for, .. } = assertion;
    if failed_for.is_empty() {
        let problem = Diagnostic::error(format!("the assertion `{id}` never fails"))
            .help(format!("it was met in all {} trials of adversaries and mutations that reached it", assertion.held));
        return entry.is_decided(assertion).then_some((WeaknessKind::NeverFails, problem));
    }
    let is = |name: &str, status: Status| entry.status(name, id) == Some(status);
    let all = |names: &[&str], status: Status| names.iter().all(|name| is(name, status));
    if all(&["nop", "parrot", "yes-man"], Status::Unmet) && is("peeker", Status::Met) {
        let problem = Diagnostic::error(format!("the text that `{id}` looks for is in a file that the agent can read"))
            .help("move the file with the answer out of the fixtures");
        return Some((WeaknessKind::LeakedByFile, problem));
    }
    // Code may accept any text, not only that of the prompt.
    let is_text = assertion.kind != "custom";
    if is_text && all(&["nop", "yes-man"], Status::Unmet) && is("parrot", Status::Met) {
        let problem = Diagnostic::warning(format!("the text that `{id}` looks for is in the prompt"))
            .help("an agent that only repeats the prompt satisfies it");
        return Some((WeaknessKind::LeakedByPrompt, problem));
    }
    // Adversaries are fast, and only a reply that never comes is too late.
    let is_about_time = ABOUT_TIME.contains(&assertion.kind.as_str());
    if !is_about_time && is("nop", Status::Unmet) && all(&["parrot", "yes-man", "shotgun", "cheat"], Status::Met) {
        let problem =
            Diagnostic::warning(format!("any answer satisfies `{id}`")).help("it fails only if the agent says nothing");
        return Some((WeaknessKind::AnyAnswer, problem));
    }
    if COMMANDS.contains(&assertion.kind.as_str()) && is("nop", Status::Met) {
        let problem = Diagnostic::warning(format!("the command of `{id}` passes on the untouched fixture"))
            .help("it shows that the agent broke nothing, and proves nothing about the work");
        return Some((WeaknessKind::PassesUntouched, problem));
    }
    None
}

/// Merges weaknesses with the same message at the same location, as found in the cases of a table, and sorts them:
/// errors first, then by file and line.
pub(crate) fn merged(weaknesses: Vec<Weakness>) -> Vec<Weakness> {
    let mut merged: Vec<Weakness> = Vec::new();
    for weakness in weaknesses {
        let place = |one: &Weakness| one.diagnostic.source.as_ref().map(|at| (at.file.clone(), at.line, at.column));
        let is_same = |known: &&mut Weakness| {
            known.kind == weakness.kind && known.assertion == weakness.assertion && place(known) == place(&weakness)
        };
        match merged.iter_mut().find(is_same) {
            Some(known) => known.cases.extend(weakness.cases),
            None => merged.push(weakness),
        }
    }
    for weakness in &mut merged {
        let more = weakness.cases.len().saturating_sub(1);
        if more > 0 && weakness.kind != WeaknessKind::Overfitted {
            let noun = if more == 1 { "case" } else { "cases" };
            weakness.diagnostic.message.push_str(&format!(" (and {more} more {noun})"));
        }
    }
    merged.sort_by_key(|weakness| {
        let place = weakness.diagnostic.source.as_ref().map(|at| (at.file.clone(), at.line, at.column));
        (weakness.diagnostic.severity != Severity::Error, place)
    });
    merged
}

fn listed(names: &[String]) -> String {
    let more = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names[..names.len().min(MOST_NAMES)].join(", "))
}
