//! `command`: a command run in the sandbox after the agent has finished behaves as expected.

use model::text::open_quote;
use model::{Collected, ControlRun, NodeKind, Probed, Rerun, Status};

use super::prelude::*;
use crate::evidence::integrity::begins_project;
use crate::pattern::{Pattern, RegexBudget};
use crate::rewards::Least;
use crate::verdict::without_sandbox;

/// Default timeout of a command, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;

/// Exit code of a script of trialrun that ran nothing. Shells use it for programs that do not exist.
const NOTHING_RUN: i32 = 127;

/// Number of files that steer tools that a finding shows.
const SHOWN: usize = 5;

/// Number of the command's last output lines that a finding shows.
const LINES: usize = 8;

pub(crate) const ASSERTION: Assertion = Assertion::written("command", parse)
    .aliases(&["command_succeeds"])
    .summary("A command succeeds in the sandbox after the agent has finished.")
    .fields(&[
        Field::required("run", "string", "The command. `command` is an alias."),
        Field::optional("exit_code", "whole number, from 0", "Expected exit code.").or("0"),
        Field::optional(
            "output",
            "regular expression, also `/…/flags`",
            "Must match a part of stdout or stderr. A line break at their end may be missing in it.",
        )
        .or("any output"),
        Field::optional("timeout", "duration", "Time limit, such as `30s` or `2m`. A number is milliseconds.")
            .or("30s"),
        TITLE,
    ])
    .parameters(&[Parameter::Value("run")])
    .pass(
        || json!({"id": "tests-pass", "type": "command", "run": "npm test", "output": "/0 failed/"}),
        || EvidenceBuilder::new().ran("npm test", 0, "12 passed, 0 failed\n", ""),
    )
    .fail(
        || json!({"id": "tests-pass", "type": "command", "run": "npm test"}),
        || EvidenceBuilder::new().ran("npm test", 1, "11 passed, 1 failed\n", "npm error code 1\n"),
    );

#[derive(Debug)]
pub(crate) struct Command {
    run: String,
    /// True if `run` is a script of trialrun itself, which may find [nothing to run](NOTHING_RUN).
    is_script: bool,
    place: Option<SourceLocation>,
    exit_code: i32,
    exit_place: Option<SourceLocation>,
    output: Option<Pattern>,
    /// Rewards that a verifier must write, whatever its exit code is.
    least: Option<Least>,
    timeout_ms: u64,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let run = command_line(reading);
    let exit_code = exit_code(reading);
    let output = reading.fields.get("output").map(|_| reading.literal("output"));
    let timeout_ms = reading.fields.duration_ms("timeout", reading.problems).unwrap_or(TIMEOUT_MS);
    let (run, place) = run?;
    let place = Some(place);
    let (exit_code, exit_place) = exit_code.unzip();
    let output = match output {
        Some(pattern) => Some(pattern?),
        None => None,
    };
    Some(Arc::new(Command {
        run,
        is_script: false,
        place,
        exit_code: exit_code.unwrap_or(0),
        exit_place,
        output,
        least: None,
        timeout_ms,
    }))
}

/// Reads `run`, or its alias `command`.
fn command_line(reading: &mut Reading<'_>) -> Option<(String, SourceLocation)> {
    let has = |key| reading.fields.key_span(key).is_some();
    let key = if has("command") { "command" } else { "run" };
    if has("command")
        && let Some(_) = reading.fields.get("run")
        && let Some(node) = reading.fields.get("command")
    {
        reading.problems.push(node.error("`run` and `command` are the same field; use one of them"));
        return None;
    }
    let (run, place) = reading.required_text(key)?;
    if run.contains('\0') {
        reading
            .problems
            .push(model::Diagnostic::error(format!("`{key}` contains a NUL character")).at(place.excerpt()));
        return None;
    }
    if let Some(quote) = open_quote(&run) {
        let problem = model::Diagnostic::error(format!("a `{quote}` is not closed in this command"));
        reading.problems.push(problem.at(place.excerpt()));
        return None;
    }
    Some((run, place))
}

fn exit_code(reading: &mut Reading<'_>) -> Option<(i32, SourceLocation)> {
    let node = reading.fields.get("exit_code")?;
    let number = if let NodeKind::Number(number) = &node.kind { model::decode::as_whole(number) } else { None };
    let code = number.filter(|code| *code <= 255).and_then(|code| i32::try_from(code).ok());
    if code.is_none() {
        reading.problems.push(node.error("`exit_code` must be a whole number from 0 to 255"));
    }
    Some((code?, SourceLocation::from_node(node)))
}

impl Command {
    /// Returns the command `run`. It must exit with `exit_code` within `timeout_ms`.
    pub(crate) fn of_run(run: &str, exit_code: i32, timeout_ms: u64) -> Self {
        let run = run.to_owned();
        Self { run, is_script: false, place: None, exit_code, exit_place: None, output: None, least: None, timeout_ms }
    }

    /// Reads the command from the `command` field. It must exit with code 0 within `timeout`.
    pub(super) fn succeeds(reading: &mut Reading<'_>) -> Option<Self> {
        let timeout_ms = reading.fields.duration_ms("timeout", reading.problems).unwrap_or(TIMEOUT_MS);
        let (run, place) = command_line(reading)?;
        let (is_script, place) = (false, Some(place));
        Some(Self { run, is_script, place, exit_code: 0, exit_place: None, output: None, least: None, timeout_ms })
    }

    /// Reads a verifier from the `run` field. It must write rewards that are high enough.
    pub(super) fn rewarded(timeout_ms: u64, least: Least, reading: &mut Reading<'_>) -> Option<Self> {
        let timeout_ms = reading.fields.duration_ms("timeout", reading.problems).unwrap_or(timeout_ms);
        let (run, place) = command_line(reading)?;
        let (is_script, place, least) = (false, Some(place), Some(least));
        Some(Self { run, is_script, place, exit_code: 0, exit_place: None, output: None, least, timeout_ms })
    }

    /// Returns a script of trialrun as a command. It must exit with code 0 within `timeout`.
    pub(super) fn of_script(script: &str, timeout_ms: u64, reading: &mut Reading<'_>) -> Self {
        let timeout_ms = reading.fields.duration_ms("timeout", reading.problems).unwrap_or(timeout_ms);
        let (run, place) = (script.to_owned(), None);
        Self { run, is_script: true, place, exit_code: 0, exit_place: None, output: None, least: None, timeout_ms }
    }

    fn need(&self) -> Need {
        Need::Command { run: self.run.clone(), timeout_ms: self.timeout_ms }
    }
}

impl Matcher for Command {
    fn needs(&self) -> Vec<Need> {
        vec![self.need()]
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        if let Some(verdict) = without_sandbox(evidence, &self.need()) {
            return Ok(verdict.place(&self.place));
        }
        let run = crate::evidence::test_run::command_name(&self.run);
        let reason = match evidence.collected.probed(&self.need()) {
            Some(found @ Probed::Ran { restored, control, scripts, new_tests, failing_test, solution, .. }) => {
                let verdict = self.verdict_on(found).unwrap_or_default();
                let mut verdict = match control {
                    Some(control) if verdict.status == Status::Met => {
                        self.controlled(verdict, control, &evidence.collected)
                    }
                    Some(control) if self.is_script && verdict.status == Status::Undecided => {
                        self.unless_removed(verdict, control)
                    }
                    _ => verdict,
                };
                if let Some(scripts) = scripts.as_ref().filter(|_| verdict.status == Status::Met) {
                    verdict = self.with_scripts(verdict, scripts);
                }
                if let Some(tests) = new_tests.as_ref().filter(|_| verdict.status == Status::Met) {
                    verdict = self.with_new_tests(verdict, tests);
                }
                if let Some(test) = failing_test.as_ref().filter(|_| verdict.status == Status::Met) {
                    verdict = self.with_failing_test(test);
                }
                if let Some(solution) = solution.as_ref().filter(|_| verdict.status == Status::Unmet) {
                    verdict = self.unless_unsolvable(verdict, solution);
                }
                verdict.evidence.extend(about_restored(restored));
                return Ok(verdict);
            }
            Some(Probed::Failed { reason }) => format!("{run} could not be run: {reason}"),
            _ => format!("{run} was not run"),
        };
        Ok(Verdict::undecided(reason).place(&self.place))
    }

    fn is_met_by(&self, need: &Need, found: &Probed) -> bool {
        *need == self.need() && self.passes(found).is_ok_and(|passes| passes)
    }
}

/// Returns the names of some of the files, for readers.
fn names(files: &[String]) -> String {
    format::few(files.iter().map(|file| format!("`{file}`")).collect(), SHOWN).join(", ")
}

/// Returns a line about the agent's files with which the command did not work.
fn about_restored(files: &[String]) -> Option<String> {
    let names = names(files);
    let verb = if files.len() == 1 { "was" } else { "were" };
    let line =
        || format!("{names} {verb} restored to the fixture's version; `graded: {{take: [...]}}` takes the agent's");
    (!files.is_empty()).then(line)
}

/// Output of a command.
struct Output<'e> {
    stdout: &'e str,
    stderr: &'e str,
    /// True if part of the output is missing.
    clipped: bool,
}

impl Output<'_> {
    /// Returns the last non-empty lines of the output, at most `LINES`.
    fn last_lines(&self) -> Vec<String> {
        let lines: Vec<&str> = self.stdout.lines().chain(self.stderr.lines()).filter(|line| !line.is_empty()).collect();
        let from = lines.len().saturating_sub(LINES);
        lines[from..].iter().map(|line| model::text::shortened(line, 200)).collect()
    }
}

impl Command {
    /// Returns the verdict on a result of the command; `None` if it was not run.
    fn verdict_on(&self, found: &Probed) -> Option<Verdict> {
        let Probed::Ran { exit_code, stdout, stderr, clipped, rewards, missing_program, .. } = found else {
            return None;
        };
        if let Some(name) = missing_program.as_ref().filter(|_| *exit_code != Some(self.exit_code)) {
            let reason = format!("there is no program named `{name}` on the PATH of the sandbox");
            return Some(Verdict::undecided(reason).place(&self.place));
        }
        if let Some((least, exit_code)) = self.least.as_ref().zip(*exit_code) {
            let output = Output { stdout, stderr, clipped: *clipped };
            let verdict = least.verdict(rewards, exit_code).place(&self.place);
            return Some(if verdict.status == Status::Met { verdict } else { verdict.evidence(output.last_lines()) });
        }
        Some(self.verdict_of(*exit_code, &Output { stdout, stderr, clipped: *clipped }))
    }

    /// Returns `true` if a result of the command is the expected one. The error says why that is not known.
    fn passes(&self, found: &Probed) -> Result<bool, String> {
        match (self.verdict_on(found), found) {
            (Some(Verdict { status: Status::Undecided, reason, .. }), _) => Err(reason),
            (None, Probed::Failed { reason }) => Err(reason.clone()),
            (Some(verdict), _) => Ok(verdict.status == Status::Met),
            (None, _) => Err("it was not run".to_owned()),
        }
    }

    /// Returns the verdict on a command with the verdict `met`, if the agent left files that steer tools: it must not
    /// rest on these files alone.
    fn controlled(&self, met: Verdict, control: &ControlRun, collected: &Collected) -> Verdict {
        let files = names(&control.files);
        let unknown = |reason: String| {
            let reason = format!("the command passes, but its result without the agent's work is not known: {reason}");
            Verdict::undecided(reason).evidence([format!("files that can steer tools or tests: {files}")])
        };
        // The project's own tests are known to be others if the fixture has some.
        let has_tests = || control.fixture.as_ref().is_some_and(|found| self.passes(found).is_ok());
        if begins_project(&self.run, control, collected) && !(self.is_script && has_tests()) {
            return met
                .evidence([format!("the agent's own files say what the command runs: {files}")])
                .place(&self.place);
        }
        let passes = match self.passes(&control.with_files) {
            Ok(true) => control.fixture.as_ref().map_or(Err("it was not run".to_owned()), |found| self.passes(found)),
            Ok(false) => Ok(true),
            Err(reason) => Err(reason),
        };
        let verdict = match passes {
            Err(reason) => unknown(reason),
            // It fails with the files, or passes without them.
            Ok(true) => met.evidence([format!("the agent left files that can steer tools or tests: {files}")]),
            Ok(false) => {
                let reason = format!("the command passes without the agent's work, because of {files}");
                let expected = "a result that depends on the agent's work";
                Verdict::unmet(reason, expected, "on the fixture with these files alone, the command passes")
            }
        };
        verdict.place(&self.place)
    }

    /// Returns the verdict on a command with the verdict `met` that runs scripts which the agent changed. They can be the
    /// work or the check of it, so the finding names them, and the result with the fixture's.
    fn with_scripts(&self, met: Verdict, scripts: &Rerun) -> Verdict {
        let files = names(&scripts.files);
        let verdict = match self.passes(&scripts.found) {
            Ok(true) => met.evidence([format!("the command also passes without the agent's changes to {files}")]),
            Ok(false) => met.evidence([format!(
                "the command does not pass without the agent's changes to {files}; if the agent is to make them, \
                 `graded: {{take: [...]}}` says so"
            )]),
            Err(reason) => Verdict::undecided(format!(
                "the command passes, but its result without the agent's changes to {files} is not known: {reason}"
            )),
        };
        verdict.place(&self.place)
    }

    /// Returns the verdict on a command with the verdict `met` that has the same result with the agent's new tests alone.
    fn with_new_tests(&self, met: Verdict, tests: &Rerun) -> Verdict {
        let files = names(&tests.files);
        let verdict = match &tests.found {
            Probed::Failed { reason } => Verdict::undecided(format!(
                "the command passes, but its result with only these files of the agent is not known: {files}: {reason}"
            )),
            _ => met.evidence([format!("the command passes with these files of the agent alone: {files}")]),
        };
        verdict.place(&self.place)
    }

    /// Returns the verdict on a verifier that does not pass with the agent's work. If it does not pass with the case's own
    /// solution either, the agent is not the reason.
    fn unless_unsolvable(&self, unmet: Verdict, solution: &Rerun) -> Verdict {
        let why = match (self.passes(&solution.found), self.verdict_on(&solution.found)) {
            (Ok(true), _) => return unmet,
            (Ok(false), verdict) => verdict.unwrap_or_default().reason,
            (Err(reason), _) => reason,
        };
        let reason = format!("the task's own solution does not pass in this sandbox either: {why}");
        Verdict::undecided(reason).evidence([unmet.reason]).place(&self.place)
    }

    /// Returns the verdict on a command that passed, and also passes with a test that must fail.
    fn with_failing_test(&self, test: &Rerun) -> Verdict {
        let verdict = match &test.found {
            Probed::Failed { reason } => Verdict::undecided(format!(
                "the command passes, but its result with a test that must fail is not known: {reason}"
            )),
            _ => Verdict::unmet(
                "the command also passes with a test that must fail",
                "tests that run to their end",
                "the agent's work ends them, or changes or hides their result",
            )
            .evidence([format!("files of the agent that may do so: {}", names(&test.files))]),
        };
        verdict.place(&self.place)
    }

    /// Returns the verdict on a script of trialrun that ran nothing. If it runs something on the fixture, the agent is
    /// the reason.
    fn unless_removed(&self, undecided: Verdict, control: &ControlRun) -> Verdict {
        match control.fixture.as_ref().map(|found| self.passes(found)) {
            Some(Ok(_)) => Verdict::unmet(
                "the agent changed the project so that it does not say any more how its tests are run",
                "a test command, as in the fixture",
                undecided.reason,
            )
            .place(&self.place),
            _ => undecided,
        }
    }

    fn verdict_of(&self, exit_code: Option<i32>, output: &Output<'_>) -> Verdict {
        let wanted = self.exit_code;
        let Some(code) = exit_code else {
            let time = format!("{} s", self.timeout_ms as f64 / 1000.0);
            let reason = format!("the command did not finish within {time}");
            return Verdict::unmet(reason, format!("exit code {wanted} within {time}"), "the command was stopped")
                .evidence(output.last_lines())
                .place(&self.place);
        };
        if code != wanted {
            if let Some(reason) = self.refusal(code, output) {
                return Verdict::undecided(reason).place(&self.place);
            }
            let reason = format!("the command exited with code {code}");
            return Verdict::unmet(reason, format!("exit code {wanted}"), format!("exit code {code}"))
                .evidence(output.last_lines())
                .place(self.exit_place.as_ref().or(self.place.as_ref()));
        }
        match &self.output {
            Some(pattern) => written(pattern, output),
            None => Verdict::met(format!("exit code {code}")).place(&self.place),
        }
    }
}

impl Command {
    /// Returns the reason why a script of trialrun ran nothing.
    fn refusal<'e>(&self, code: i32, output: &Output<'e>) -> Option<&'e str> {
        let first = output.stderr.lines().next().filter(|_| self.is_script && code == NOTHING_RUN)?;
        first.strip_prefix("trialrun: ").filter(|line| !line.starts_with("test command: "))
    }
}

/// Returns `true` if `found` can be the result of a script of trialrun that ran nothing.
pub fn ran_nothing(found: &Probed) -> bool {
    matches!(found, Probed::Ran { exit_code: Some(NOTHING_RUN), stderr, .. } if stderr.starts_with("trialrun: "))
}

/// Checks the output against `pattern`. A line break at its end need not match: `^4$` matches what `echo 4` writes.
fn written(pattern: &Pattern, output: &Output<'_>) -> Verdict {
    let regex_budget = RegexBudget::new();
    let tested = [output.stdout, output.stderr].map(|text| match pattern.test(text, &regex_budget) {
        Ok(false) => pattern.test(text.trim_end_matches(['\n', '\r']), &regex_budget),
        tested => tested,
    });
    let verdict = match tested {
        [Ok(true), _] => Verdict::met(format!("{pattern} matches stdout")),
        [_, Ok(true)] => Verdict::met(format!("{pattern} matches stderr")),
        [Err(error), _] | [_, Err(error)] => Verdict::undecided(error),
        _ if output.clipped => {
            Verdict::undecided(format!("{pattern} does not match the part of the output that was kept"))
        }
        _ => {
            let lines = output.last_lines();
            let actual = lines.last().map_or_else(|| "no output".to_owned(), |line| format::quoted(line));
            let reason = format!("{pattern} does not match the output");
            Verdict::unmet(reason, format!("output that matches {pattern}"), actual).evidence(lines)
        }
    };
    verdict.place(&pattern.place)
}

#[cfg(test)]
mod tests {
    use model::{IntegrityKind, Need, Probed, Status};
    use serde_json::{Value, json};

    use super::*;
    use crate::check::compile;
    use crate::check::tests::{case, judged, underlined};
    use crate::context::Context;

    fn finding_of(rest: &Value, story: EvidenceBuilder) -> model::Finding {
        let mut assertion = json!({"id": "a", "type": "command", "run": "make"});
        assertion.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        judged(&assertion, &story.evidence())
    }

    fn ran(exit_code: Option<i32>, stdout: &str, control: Option<ControlRun>) -> Probed {
        let control = control.map(Box::new);
        let (stdout, stderr) = (stdout.into(), String::new());
        Probed::Ran {
            exit_code,
            stdout,
            stderr,
            clipped: false,
            restored: Vec::new(),
            edited: Vec::new(),
            control,
            scripts: None,
            new_tests: None,
            failing_test: None,
            rewards: Vec::new(),
            solution: None,
            missing_program: None,
        }
    }

    #[test]
    fn the_exit_code_and_the_output_are_checked() {
        let made = || EvidenceBuilder::new().ran("make", 2, "", "no rule\n");
        assert_eq!(finding_of(&json!({}), made()).evidence, ["no rule"]);
        assert_eq!(finding_of(&json!({"exitCode": 2}), made()).status, Status::Met);
        assert_eq!(finding_of(&json!({"exit_code": 2, "output": "^no"}), made()).reason, "/^no/ matches stderr");
        for with_end in ["rule$", "rule\\n$"] {
            let finding = finding_of(&json!({"exit_code": 2, "output": with_end}), made());
            assert_eq!(finding.status, Status::Met, "{with_end}");
        }
        let finding = finding_of(&json!({"exit_code": 2, "output": "rules"}), made());
        assert_eq!((finding.status, underlined(&finding).as_str()), (Status::Unmet, "rules"));
        assert_eq!(finding_of(&json!({"exit_code": 0}), made()).reason, "the command exited with code 2");
    }

    #[test]
    fn a_command_that_passes_with_a_test_that_must_fail_is_unmet() {
        let of = |found: Probed| {
            let mut own = ran(Some(0), "", None);
            if let Probed::Ran { failing_test, .. } = &mut own {
                *failing_test = Some(Box::new(Rerun { files: vec!["basket.py".to_owned()], found }));
            }
            let need = Need::Command { run: "make".into(), timeout_ms: TIMEOUT_MS };
            finding_of(&json!({}), EvidenceBuilder::new().probed(need, own))
        };
        let finding = of(ran(Some(0), "", None));
        let reason = "the command also passes with a test that must fail";
        assert_eq!((finding.status, finding.reason.as_str()), (Status::Unmet, reason));
        assert!(finding.evidence[0].contains("`basket.py`"), "{finding:?}");
        assert_eq!(of(Probed::Failed { reason: "no space".into() }).status, Status::Undecided);
    }

    #[test]
    fn a_program_that_is_not_on_the_path_says_nothing_about_the_agent() {
        let of = |rest: &Value| {
            let mut found = ran(Some(127), "", None);
            if let Probed::Ran { missing_program, .. } = &mut found {
                *missing_program = Some("make".to_owned());
            }
            let need = Need::Command { run: "make".into(), timeout_ms: TIMEOUT_MS };
            finding_of(rest, EvidenceBuilder::new().probed(need, found))
        };
        let reason = "there is no program named `make` on the PATH of the sandbox";
        let finding = of(&json!({}));
        assert_eq!((finding.status, finding.reason.as_str()), (Status::Undecided, reason));
        assert_eq!(of(&json!({"exit_code": 127})).status, Status::Met);
        let own = EvidenceBuilder::new().ran("make", 127, "", "sh: 1: make: not found");
        assert_eq!(finding_of(&json!({}), own).status, Status::Unmet, "only the shell knows");
    }

    #[test]
    fn a_finding_names_the_files_that_were_restored() {
        let mut found = ran(Some(1), "", None);
        if let Probed::Ran { restored, .. } = &mut found {
            restored.push("test_calc.py".to_owned());
        }
        let need = Need::Command { run: "make".into(), timeout_ms: TIMEOUT_MS };
        let finding = finding_of(&json!({}), EvidenceBuilder::new().probed(need, found));
        let line = "`test_calc.py` was restored to the fixture's version; `graded: {take: [...]}` takes the agent's";
        assert_eq!(finding.evidence, [line]);
    }

    #[test]
    fn a_hanging_command_is_unmet_and_one_that_did_not_start_is_undecided() {
        let need = || Need::Command { run: "make".into(), timeout_ms: 1500 };
        let found =
            |probed: Probed| finding_of(&json!({"timeout": "1.5s"}), EvidenceBuilder::new().probed(need(), probed));
        let hung = ran(None, "a\n", None);
        assert_eq!(found(hung).reason, "the command did not finish within 1.5 s");
        assert_eq!(found(Probed::Failed { reason: "no shell".into() }).status, Status::Undecided);
        assert_eq!(finding_of(&json!({}), EvidenceBuilder::new()).reason, "\"make\" was not run");
    }

    #[test]
    fn a_command_must_not_pass_because_of_files_that_steer_tools() {
        let need = || Need::Command { run: "make".into(), timeout_ms: TIMEOUT_MS };
        let of_control = |with_files: Probed, fixture: Option<Probed>| {
            let control = ControlRun { files: vec!["unittest.py".into()], with_files, fixture };
            finding_of(&json!({}), EvidenceBuilder::new().probed(need(), ran(Some(0), "", Some(control))))
        };
        let [passed, failed] = [Some(0), Some(1)].map(|code| move || ran(code, "", None));
        let because = of_control(passed(), Some(failed()));
        assert_eq!(because.reason, "the command passes without the agent's work, because of `unittest.py`");
        assert_eq!(because.status, Status::Unmet);
        for (with_files, fixture) in [(failed(), None), (passed(), Some(passed()))] {
            let finding = of_control(with_files, fixture);
            assert_eq!(finding.status, Status::Met);
            assert_eq!(finding.evidence, ["the agent left files that can steer tools or tests: `unittest.py`"]);
        }
        let late = || Probed::Failed { reason: "no space".into() };
        for (with_files, fixture) in [(late(), None), (passed(), Some(late()))] {
            let finding = of_control(with_files, fixture);
            assert_eq!(finding.status, Status::Undecided);
            assert!(finding.reason.ends_with("is not known: no space"), "{}", finding.reason);
        }
    }

    #[test]
    fn a_result_that_rests_on_a_changed_script_is_named_and_a_sign() {
        let of_rerun = |is_script: bool, found: Probed| {
            let need = Need::Command { run: "make".into(), timeout_ms: TIMEOUT_MS };
            let rerun = Some(Box::new(Rerun { files: vec!["verify.sh".into()], found }));
            let mut own = ran(Some(0), "", None);
            if let Probed::Ran { scripts, new_tests, .. } = &mut own {
                *(if is_script { scripts } else { new_tests }) = rerun;
            }
            let story = || EvidenceBuilder::new().probed(need.clone(), own.clone());
            let signs = crate::integrity(&story().evidence());
            (finding_of(&json!({}), story()), signs.iter().map(|sign| sign.kind).collect::<Vec<_>>())
        };
        let late = || Probed::Failed { reason: "no space".into() };
        let (finding, signs) = of_rerun(true, ran(Some(0), "", None));
        assert_eq!(finding.evidence, ["the command also passes without the agent's changes to `verify.sh`"]);
        assert_eq!((finding.status, signs), (Status::Met, vec![]));
        let (finding, signs) = of_rerun(true, ran(Some(1), "", None));
        assert_eq!((finding.status, signs), (Status::Met, vec![IntegrityKind::ChangedScript]));
        assert!(
            finding.evidence[0].starts_with("the command does not pass without the agent's changes to `verify.sh`")
        );
        let (finding, signs) = of_rerun(false, ran(Some(0), "", None));
        assert_eq!(finding.evidence, ["the command passes with these files of the agent alone: `verify.sh`"]);
        assert_eq!((finding.status, signs), (Status::Met, vec![IntegrityKind::PlantedCode]));
        for is_script in [true, false] {
            let (finding, signs) = of_rerun(is_script, late());
            assert_eq!((finding.status, signs), (Status::Undecided, vec![]));
        }
    }

    #[test]
    fn a_project_that_the_agent_began_is_its_work() {
        let need = || Need::Command { run: "make".into(), timeout_ms: TIMEOUT_MS };
        let of_files = |files: &[&str]| {
            let files = files.iter().map(|file| (*file).to_owned()).collect();
            let [with_files, fixture] = [Some(0), Some(2)].map(|code| ran(code, "", None));
            let control = ControlRun { files, with_files, fixture: Some(fixture) };
            let story = EvidenceBuilder::new().added("package.json").changed("Makefile").added("GNUmakefile");
            let story = story.added("cart/go.mod");
            finding_of(&json!({}), story.probed(need(), ran(Some(0), "", Some(control)))).status
        };
        assert_eq!(of_files(&["cart/go.mod"]), Status::Unmet, "it takes a folder out of the project");
        assert_eq!(of_files(&["package.json"]), Status::Met);
        assert_eq!(of_files(&["Makefile"]), Status::Unmet);
        assert_eq!(of_files(&["GNUmakefile", "package.json"]), Status::Unmet);
    }

    #[test]
    fn a_check_reports_the_probes_it_needs() {
        let (checks, problems) =
            compile(&case(&[json!({"id": "a", "type": "command", "run": "make"})]), &Context::default());
        assert_eq!(problems, []);
        assert_eq!(checks[0].needs(), [Need::Command { run: "make".into(), timeout_ms: TIMEOUT_MS }]);
    }
}
