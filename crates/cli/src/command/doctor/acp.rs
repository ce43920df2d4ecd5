//! `trialrun doctor --acp COMMAND`: checks an agent against the Agent Client Protocol.

use std::process::ExitCode;

use agent::{Conformance, ConformanceCheck, Tier};
use report::CheckResult;
use serde_json::json;

use super::DoctorArgs;
use crate::error::CliError;
use crate::terminal::Terminal;
use crate::{exit, machine};

/// Variables of this process that the agent inherits.
const INHERITED: [&str; 4] = ["PATH", "LANG", "TMPDIR", "USER"];

/// Checks the agent that `line` starts.
pub fn run(line: &str, args: &DoctorArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let words = shlex::split(line).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| CliError::usage(format!("`--acp {line}` is not a command")))?;
    let host = machine::host()?;
    let folder = tempfile::tempdir_in(&host.temp)
        .map_err(|error| CliError::environment(format!("cannot create a temporary directory: {error}")))?;
    let [work, home] = ["work", "home"].map(|name| folder.path().join(name));
    for made in [&work, &home] {
        std::fs::create_dir(made)
            .map_err(|error| CliError::environment(format!("cannot create {}: {error}", made.display())))?;
    }
    // The agent works in a folder of its own, where files of this one have other paths.
    let here = std::env::current_dir().unwrap_or_default();
    let found = |word: String| match here.join(&word) {
        file if word.contains(['/', '.']) && file.is_file() => file.to_string_lossy().into_owned(),
        _ => word,
    };
    let words: Vec<String> = words.into_iter().map(found).collect();
    let program = host.find_program(&words[0]);
    let program = program.ok_or_else(|| CliError::environment(format!("`{}` is not a program", words[0])))?;
    let mut command = host.supervisor.command(program, &words[1..]);
    command.env("HOME", &home).env("TERM", "dumb").current_dir(&work);
    for name in INHERITED {
        command.envs(host.var(name).map(|value| (name, value)));
    }
    for given in &args.env {
        let (name, value) = match given.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (given.as_str(), host.var(given)),
        };
        let value = value.ok_or_else(|| CliError::usage(format!("`--env {name}`: the variable is not set")))?;
        command.env(name, value);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::environment(format!("cannot start threads: {error}")))?;
    let progress = |waiting: &str| terminal.err(&format!("{waiting}\n"));
    let checks = agent::check_conformance(command, &work, &progress);
    let checks = runtime.block_on(checks).map_err(CliError::environment)?;
    if let Some(file) = &args.junit {
        let rows: Vec<_> = checks.iter().map(|check| (check.tier.name(), check.id, result(check))).collect();
        let written = report::junit_of_checks(line, &rows).and_then(|text| std::fs::write(file, text));
        written.map_err(|error| CliError::environment(format!("cannot write {}: {error}", file.display())))?;
    }
    if args.json {
        terminal.json(&checks.iter().map(row).collect::<Vec<_>>());
    } else {
        terminal.out(&draw(&checks));
    }
    Ok(ExitCode::from(code(&checks)))
}

fn result(check: &ConformanceCheck) -> CheckResult<'_> {
    match &check.result {
        Conformance::Kept => CheckResult::Kept,
        Conformance::Broken(seen) => CheckResult::Broken(seen),
        Conformance::Skipped(reason) => CheckResult::Skipped(reason),
    }
}

fn row(check: &ConformanceCheck) -> serde_json::Value {
    let (result, detail) = match &check.result {
        Conformance::Kept => ("kept", None),
        Conformance::Broken(seen) => ("broken", Some(seen)),
        Conformance::Skipped(reason) => ("skipped", Some(reason)),
    };
    json!({"id": check.id, "tier": check.tier.name(), "rule": check.rule, "result": result, "detail": detail})
}

/// Returns the exit code: a broken rule fails, unless it is advisory; without a session, too little was checked.
fn code(checks: &[ConformanceCheck]) -> u8 {
    let required = || checks.iter().filter(|check| check.tier != Tier::Advisory);
    if required().any(|check| matches!(check.result, Conformance::Broken(_))) {
        exit::FAILED
    } else if required().any(|check| check.tier == Tier::Mandatory && matches!(check.result, Conformance::Skipped(_))) {
        exit::INCOMPLETE
    } else {
        exit::PASSED
    }
}

fn draw(checks: &[ConformanceCheck]) -> String {
    let mut text = String::new();
    for check in checks {
        let tier = check.tier.name();
        match &check.result {
            Conformance::Kept => {}
            Conformance::Broken(seen) => {
                text.push_str(&format!(
                    "broken   {tier:10}  {}: {}\n  {}\n",
                    check.id,
                    check.rule,
                    report::clean(seen)
                ));
            }
            Conformance::Skipped(reason) => {
                text.push_str(&format!(
                    "skipped  {tier:10}  {}: {}\n  {}\n",
                    check.id,
                    check.rule,
                    report::clean(reason)
                ));
            }
        }
    }
    let count = |wanted: fn(&Conformance) -> bool| checks.iter().filter(|check| wanted(&check.result)).count();
    text.push_str(&format!(
        "{} of {} rules kept, {} broken, {} skipped\n",
        count(|result| *result == Conformance::Kept),
        checks.len(),
        count(|result| matches!(result, Conformance::Broken(_))),
        count(|result| matches!(result, Conformance::Skipped(_))),
    ));
    text
}
