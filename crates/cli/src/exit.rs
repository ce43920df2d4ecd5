//! Exit codes, which are a stable interface.

use std::io::Write;
use std::process::ExitCode;

use model::Outcome;

/// Everything passed.
pub const PASSED: u8 = 0;
/// At least one trial failed.
pub const FAILED: u8 = 1;
/// The usage, the settings or a suite is invalid; nothing ran.
pub const INVALID: u8 = 2;
/// Some trials are broken or undecided, and none failed.
pub const INCOMPLETE: u8 = 3;
/// Nothing was tested: no case was selected, or no result counts.
pub const NOTHING: u8 = 4;
/// A bug.
pub const BUG: u8 = 70;

/// Signals that stop a run, with their exit codes.
const SIGNALS: [(&str, u8); 3] = [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)];

/// Returns the exit code for a run that was stopped by a signal or another cause.
pub fn of_stop(reason: &str) -> u8 {
    SIGNALS.iter().find(|(signal, _)| *signal == reason).map_or(INCOMPLETE, |(_, code)| *code)
}

/// Exit codes of `run`, with their meanings and what a build should do.
const MEANINGS: [(u8, &str, &str); 6] = [
    (PASSED, "all trials passed, or their pass rates are high enough", "pass"),
    (FAILED, "a trial failed, or a pass rate is too low or not known to be high enough", "fail"),
    (
        INVALID,
        "an option, the configuration, a scenario, a fixtures file or a skill evaluation is invalid; nothing ran",
        "fail",
    ),
    (
        INCOMPLETE,
        "incomplete: no trial failed, but some are broken, undecided, stale or cancelled, or a report could not be \
         written",
        "retry, and fail if the code is the same again",
    ),
    (
        NOTHING,
        "nothing was tested: no case was selected, the shard is empty, every trial was skipped or is in quarantine, \
         no trial is left to resume or to grade again, or you did not confirm the run",
        "fail, because a name may be misspelt",
    ),
    (BUG, "a bug in trialrun", "fail, and report the bug"),
];

/// Exit codes of other commands where they differ from those of `run`.
const COMMANDS: [(&str, u8, &str); 28] = [
    ("audit", FAILED, "a test cannot fail, or the score is below `--min-score`"),
    ("audit", INCOMPLETE, "a case could not be audited"),
    (
        "audit",
        NOTHING,
        "nothing was audited: no case has an assertion that is decided without a judge, or every case is skipped",
    ),
    ("calibrate", FAILED, "the judge agrees too little with the labels (`--min-kappa`)"),
    ("calibrate", NOTHING, "the run has no judgement to label or to compare"),
    ("cancel", NOTHING, "no run is in the queue"),
    ("cassettes", INVALID, "a file has an error"),
    ("check", INVALID, "a file has an error; with `--strict`, also a warning"),
    ("check", NOTHING, "no case was selected"),
    ("cleanup", INCOMPLETE, "a branch or a review request was not removed"),
    ("compare", FAILED, "the second side is worse"),
    (
        "compare",
        INCOMPLETE,
        "nothing was compared, the trials of a case with a result on the first side are broken or undecided on the \
         second, trials without a result decide whether the second side is worse, or `--no-worse-than` or `--prefer` has \
         no answer",
    ),
    ("config", INVALID, "the configuration has an error"),
    ("continue", NOTHING, "no run is in the queue"),
    ("discover", NOTHING, "the sources contain no facts"),
    ("docs", NOTHING, "no page contains the words"),
    (
        "doctor",
        INCOMPLETE,
        "no run can work: the configuration has an error, the record cannot be written, or no sandbox can be created",
    ),
    ("doctor", BUG, "a self-test failed"),
    ("gen", INCOMPLETE, "no test was admitted, or one could not be tried"),
    ("gen", NOTHING, "nothing is known about the agent, or its session left nothing to check"),
    ("list", INVALID, "a file has an error"),
    ("list", NOTHING, "no case was selected"),
    ("merge", INCOMPLETE, "a shard is missing or was interrupted"),
    ("pause", NOTHING, "no run is in the queue"),
    ("plan", INVALID, "a file has an error"),
    ("prune", INCOMPLETE, "a sandbox could not be removed"),
    ("verify", FAILED, "the run was changed, or its hash is not the expected one"),
    ("verify", INCOMPLETE, "the run has no hashes"),
];

/// Returns the generated sections of the documentation.
pub fn reference() -> Vec<(String, String)> {
    let mut codes = String::from("| code | meaning | a build should |\n| --- | --- | --- |\n");
    for (code, meaning, advice) in MEANINGS {
        codes.push_str(&format!("| `{code}` | {meaning} | {advice} |\n"));
    }
    let signals = SIGNALS.map(|(_, code)| format!("`{code}`")).join(", ");
    codes.push_str(&format!("| {signals} | stopped by {} | fail |\n", SIGNALS.map(|(signal, _)| signal).join(", ")));
    let mut commands = String::from("| command | code | meaning |\n| --- | --- | --- |\n");
    for (command, code, meaning) in COMMANDS {
        commands.push_str(&format!("| `{command}` | `{code}` | {meaning} |\n"));
    }
    let mut outcomes = String::from("| outcome | meaning | exit code, if all trials have it |\n| --- | --- | --- |\n");
    for outcome in Outcome::ALL {
        let (meaning, code) = of_outcome(outcome);
        outcomes.push_str(&format!("| `{}` | {meaning} | `{code}` |\n", outcome.name()));
    }
    [("exit codes", codes), ("exit codes of commands", commands), ("outcomes", outcomes)]
        .map(|(name, text)| (name.to_owned(), text))
        .into()
}

/// Returns the meaning of an outcome, and the exit code of a run in which every trial has it.
fn of_outcome(outcome: Outcome) -> (&'static str, u8) {
    match outcome {
        Outcome::Passed => ("every assertion holds", PASSED),
        Outcome::Failed => ("the agent is at fault: an assertion does not hold, or a limit was exceeded", FAILED),
        Outcome::Undecided => {
            ("an assertion could not be decided, for example without a judge, and none failed", INCOMPLETE)
        }
        Outcome::Broken => ("the provider, the machine, trialrun or the test is at fault", INCOMPLETE),
        Outcome::Stale => ("the agent sent a request that its cassette does not contain", INCOMPLETE),
        Outcome::Skipped => ("the trial was left out on purpose", NOTHING),
        Outcome::Cancelled => ("the run was stopped before the trial ended", INCOMPLETE),
    }
}

/// Prints the message from the argument parser; help and version are not errors.
pub fn of_usage(error: &clap::Error) -> ExitCode {
    let reason = std::error::Error::source(error).filter(|reason| reason.is::<std::num::ParseIntError>());
    let printed = match reason.map(ToString::to_string).filter(|reason| reason.contains("digit")) {
        Some(reason) => {
            let text = error.render().ansi().to_string().replace(&reason, "a whole number of at least 0");
            write!(anstream::stderr(), "{text}")
        }
        None => error.print(),
    };
    if let Err(unwritten) = printed
        && unwritten.kind() != std::io::ErrorKind::BrokenPipe
        && !error.use_stderr()
    {
        let _ = writeln!(anstream::stderr(), "error: cannot write to standard output: {unwritten}");
        return ExitCode::from(INCOMPLETE);
    }
    ExitCode::from(if error.use_stderr() { INVALID } else { PASSED })
}

/// Runs the program. A panic is a bug, and the message says how to report it. The stack is unwound first, so that
/// sandboxes and processes are cleaned up.
pub fn or_bug(program: impl FnOnce() -> ExitCode + std::panic::UnwindSafe) -> ExitCode {
    std::panic::catch_unwind(program).unwrap_or_else(|_| {
        let _ = writeln!(
            anstream::stderr(),
            "\ntrialrun {} panicked, which is a bug. Everything recorded so far is safe. Please report the lines above.",
            env!("CARGO_PKG_VERSION")
        );
        ExitCode::from(BUG)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_outcome_is_that_of_a_run_in_which_every_trial_has_it() {
        for outcome in Outcome::ALL {
            let by_outcome = model::OutcomeCounts::of([outcome]);
            let summary = model::Summary { trials: 1, by_outcome, ..model::Summary::default() };
            assert_eq!(of_outcome(outcome).1, summary.exit_code(), "{}", outcome.name());
        }
    }
}
