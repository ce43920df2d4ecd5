//! `command_ran` and `command_not_ran`: the agent ran a command, or did not.

use model::text::open_quote;
use model::{Diagnostic, Effect, Trace, TracedCall};
use serde_json::Value;

use super::prelude::*;
use crate::call_pattern::{silent_shell, unknown_commands, unreported_calls};
use crate::shell::{self, Simple};

/// Number of command lines that a finding shows.
const SHOWN: usize = 10;

pub(crate) const ASSERTION: Assertion = Assertion::written("command_ran", |reading| parse(reading, true))
    .reported(Reported::ToolCalls)
    .summary("The agent ran a command.")
    .fields(&[Field::required("command", "string", "The program and its relevant arguments."), TITLE])
    .parameters(&[Parameter::Value("command")])
    .pass(
        || json!({"id": "runs-the-tests", "type": "command_ran", "command": "npm test"}),
        || EvidenceBuilder::new().call("Bash", json!({"command": "cd app && npm test --silent"})),
    )
    .fail(
        || json!({"id": "builds", "type": "command_ran", "command": "go"}),
        || EvidenceBuilder::new().call("Bash", json!({"command": "grep -rn algorithm docs"})),
    );

pub(crate) const NEGATION: Assertion = Assertion::written("command_not_ran", |reading| parse(reading, false))
    .aliases(&["no_command_ran"])
    .reported(Reported::ToolCalls)
    .summary("The agent did not run a command.")
    .fields(&[Field::required("command", "string", "The program and its relevant arguments."), TITLE])
    .parameters(&[Parameter::Value("command")])
    .example(
        || json!({"id": "pushes-nothing", "type": "command_not_ran", "command": "git push"}),
        || EvidenceBuilder::new().call("Bash", json!({"command": "git commit -m 'git push comes later'"})),
        || EvidenceBuilder::new().call("Bash", json!({"command": "git commit -m x && git push -u origin HEAD"})),
    );

/// A command to find in the agent's calls.
#[derive(Debug, Clone)]
pub(crate) struct CommandPattern {
    /// Command line as written. Empty for any command.
    line: String,
    /// Simple commands, as words, all of which must have run. If empty, any command matches.
    parts: Vec<Vec<String>>,
}

impl CommandPattern {
    /// Matches any command.
    pub fn any() -> Self {
        Self { line: String::new(), parts: Vec::new() }
    }

    /// Parses the commands in a line. Returns `None` if there are none.
    pub fn line(written: &str) -> Option<Self> {
        let parts: Vec<Vec<String>> = shell::commands(written).into_iter().map(|simple| simple.words).collect();
        (!parts.is_empty()).then(|| Self { line: written.trim().to_owned(), parts })
    }

    /// Returns the index of the call that ran the command, the last one if there are several. The error is the first
    /// simple command that did not run.
    fn find(&self, trace: &Trace) -> Result<usize, Option<&[String]>> {
        let lines: Vec<(usize, Vec<Vec<String>>)> = shell_calls(trace).map(|(at, line)| (at, ran_by(&line))).collect();
        let mut last = None;
        for part in &self.parts {
            let found = lines.iter().find(|(_, ran)| ran.iter().any(|words| shell::is_run_of(part, words)));
            last = last.max(Some(found.ok_or(Some(part.as_slice()))?.0));
        }
        last.or(lines.first().map(|(at, _)| *at).filter(|_| self.parts.is_empty())).ok_or(None)
    }
}

impl std::fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line.is_empty() { f.write_str("a command") } else { write!(f, "`{}`", self.line) }
    }
}

/// Returns the calls that ran a command line, with their indices.
pub(super) fn shell_calls(trace: &Trace) -> impl Iterator<Item = (usize, Line)> + '_ {
    trace.calls.iter().enumerate().filter_map(|(index, traced)| Some((index, Line::from_call(traced)?)))
}

/// The command that a call ran.
#[derive(Debug)]
pub(super) enum Line {
    /// A command line for a shell.
    Text(String),
    /// A program and its arguments.
    Words(Vec<String>),
}

impl Line {
    fn from_call(traced: &TracedCall) -> Option<Self> {
        match traced.call.command()? {
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Array(words) => {
                Some(Self::Words(words.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
            }
            _ => None,
        }
    }

    /// Returns its simple commands.
    pub fn commands(&self) -> Vec<Simple> {
        match self {
            Self::Text(text) => shell::commands(text),
            Self::Words(words) => vec![Simple { words: words.clone(), hands_on: false }],
        }
    }

    /// Returns it as one text.
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Words(words) => words.join(" "),
        }
    }

    /// Formats it as one quoted line.
    fn quoted(&self) -> String {
        format::quoted(&self.text())
    }
}

/// Returns what a command line runs, each with its arguments.
pub(super) fn ran_by(line: &Line) -> Vec<Vec<String>> {
    line.commands().iter().flat_map(|simple| shell::invocations(&simple.words)).collect()
}

#[derive(Debug)]
pub(crate) struct CommandRan {
    pub command: CommandPattern,
    pub is_wanted: bool,
    /// Source position of the command, if it is written in an assertion.
    pub place: Option<SourceLocation>,
}

fn parse(reading: &mut Reading<'_>, is_wanted: bool) -> Option<Arc<dyn Matcher>> {
    let known = reading.problems.len();
    let (written, place) = reading.exact_text("command", "write the program and its arguments")?;
    let Some(command) = CommandPattern::line(&written) else {
        reading.problems.push(Diagnostic::error("`command` does not contain a command").at(place.excerpt()));
        return None;
    };
    if let Some(quote) = open_quote(&written) {
        let problem = Diagnostic::error(format!("a `{quote}` is not closed in this command"));
        reading.problems.push(problem.at(place.excerpt()));
        return None;
    }
    if reading.problems.len() == known {
        reading.problems.extend(never_ran(&written, &command).map(|problem| problem.at(place.excerpt())));
    }
    Some(Arc::new(CommandRan { command, is_wanted, place: Some(place) }))
}

/// Programs that take no names of files, so that no shell replaces a `*` in their arguments.
const WITHOUT_FILES: &str = "kubectl docker podman npm pnpm yarn pip gh glab helm terraform aws gcloud az systemctl \
                             curl wget ssh make sudo";

/// Commands of git that take no names of files.
const GIT_WITHOUT_FILES: [&str; 7] = ["push", "pull", "fetch", "clone", "commit", "merge", "rebase"];

/// Reports a command that no agent runs as it is written, because what forbids it could never fail.
fn never_ran(written: &str, command: &CommandPattern) -> Option<Diagnostic> {
    let written = written.trim();
    let mut words = written.split(' ').filter(|word| !word.is_ascii());
    if let Some((stray, _)) = words.find_map(model::stray_character) {
        let plain = |word| match model::stray_character(word) {
            Some((_, plain)) if !word.is_ascii() => plain,
            _ => word.to_owned(),
        };
        let plain: Vec<String> = written.split(' ').map(plain).collect();
        let problem =
            Diagnostic::warning(format!("`{written}` has {stray}, which is compared like any other character"));
        return Some(problem.suggest(Some(&plain.join(" "))));
    }
    if !has_programs(command) || written.starts_with('>') {
        let problem = Diagnostic::warning(format!("`{written}` has no program, so no command can match it"));
        let program = without_start(written);
        return Some(match CommandPattern::line(program).filter(has_programs) {
            Some(_) if program != written => problem.suggest(Some(program)),
            _ => problem.help("write the program and its arguments, such as `git push --force`"),
        });
    }
    let sign = command.parts.iter().find_map(|words| wildcard(words));
    if sign.is_none() && !shell::has_notation(written) {
        return None;
    }
    let problem = Diagnostic::warning(format!("`{written}` is compared word by word, and is not a pattern"));
    Some(match sign.and_then(|sign| Some(written.split_once(sign)?.0.trim_end())) {
        Some(front) => problem.suggest(Some(front)),
        None => problem.help("write the words as in a command line, and an assertion for each command"),
    })
}

fn has_programs(command: &CommandPattern) -> bool {
    command.parts.iter().all(|words| words.first().is_none_or(|word| !shell::is_no_program(word)))
}

/// Returns the line without prompts, quotes around it, variables and words before the program.
fn without_start(line: &str) -> &str {
    let mut rest = line.trim_start_matches(['$', '%', '>', '^', '!', ' ']).trim_matches(['`', '"', '\'']);
    while let Some((first, after)) = rest.split_once(' ')
        && shell::is_before_command(first)
    {
        rest = after.trim_start();
    }
    rest
}

/// Returns the sign in the arguments of a command that surely stands for any others.
fn wildcard(words: &[String]) -> Option<&'static str> {
    let (program, arguments) = words.split_first()?;
    let known = |name: &str| WITHOUT_FILES.split(' ').any(|known| known == name);
    let first = arguments.first()?;
    let takes_none = known(program) || (program == "git" && GIT_WITHOUT_FILES.contains(&first.as_str()));
    let is_name = (known(program) || program == "git") && first.contains('*') && !first.contains(['.', '/']);
    let has_word = |text: &str| arguments.iter().any(|word| word == text);
    let is_open_option =
        |word: &String| word.starts_with('-') && word.ends_with('*') && !word.contains(['=', '.', '/']);
    if arguments.last().is_some_and(|last| last.ends_with(":*")) {
        Some(":*")
    } else if has_word("...") && program != "go" {
        Some("...")
    } else if arguments.iter().any(|word| word.contains('…')) {
        Some("…")
    } else if arguments.iter().any(|word| word.starts_with("[-")) {
        Some("[-")
    } else {
        (is_name
            || arguments.iter().any(is_open_option)
            || (takes_none && program != "sudo" && arguments.last().is_some_and(|last| last == "*")))
        .then_some("*")
    }
}

impl Matcher for CommandRan {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let command = &self.command;
        let verdict = match (command.find(trace), self.is_wanted) {
            (Ok(call), _) => {
                let summary = format!("call {}: {}", call + 1, trace.calls[call].call.summary());
                let verdict = match self.is_wanted {
                    true => Verdict::met(summary),
                    false => {
                        Verdict::unmet(format!("the agent ran {command}"), format!("no run of {command}"), summary)
                    }
                };
                verdict.at_call(trace, call)
            }
            (Err(_), false) => match unknown_commands(trace) {
                Some(reason) => Verdict::undecided(reason),
                None => {
                    let lines = format::count(shell_calls(trace).count(), "command line");
                    let runners = match trace.calls.iter().any(|traced| traced.call.effect == Effect::Mcp) {
                        true => "scripts, programs and MCP servers",
                        false => "scripts and programs",
                    };
                    Verdict::met(format!("{command} is not in the agent's {lines}; what {runners} run is not seen"))
                }
            },
            (Err(_), true)
                if let Some(reason) = trace.missing_calls().map(str::to_owned).or_else(|| silent_shell(trace)) =>
            {
                Verdict::undecided(reason)
            }
            (Err(part), true) => {
                let part = part.filter(|_| command.parts.len() > 1);
                let missing = part.map_or_else(|| command.to_string(), |part| format!("`{}`", part.join(" ")));
                let hint = shell_calls(trace).find_map(|(_, line)| model::lookalike(&command.line, &line.text()));
                let lines: Vec<String> = shell_calls(trace).map(|(_, line)| line.quoted()).collect();
                let actual = match lines.len() {
                    0 => unreported_calls(trace).unwrap_or("the agent ran no command").to_owned(),
                    number => format!("the agent ran {}", format::count(number, "command line")),
                };
                Verdict::unmet(format!("the agent did not run {missing}"), format!("a run of {command}"), actual)
                    .evidence(hint)
                    .evidence(format::few(lines, SHOWN))
            }
        };
        Ok(verdict.place(&self.place))
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::{Value, json};

    use crate::check::compile;
    use crate::check::tests::{case, judged};
    use crate::context::Context;
    use crate::example::EvidenceBuilder;

    fn finding_of(command: &str, lines: &[Value]) -> model::Finding {
        let story =
            lines.iter().fold(EvidenceBuilder::new(), |story, line| story.call("Bash", json!({"command": line})));
        judged(&json!({"id": "a", "type": "command_ran", "command": command}), &story.evidence())
    }

    #[test]
    fn commands_in_file_contents_or_messages_did_not_run() {
        let finding = finding_of("git push", &[json!("echo git push"), json!("cat > a.sh <<EOF\ngit push\nEOF")]);
        assert_eq!((finding.status, finding.reason.as_str()), (Status::Unmet, "the agent did not run `git push`"));
        assert_eq!(finding.actual.as_deref(), Some("the agent ran 2 command lines"));
        assert_eq!(finding.evidence[0], "\"echo git push\"");
        let mut evidence = EvidenceBuilder::new().call("Read", json!({"command": "git push"})).evidence();
        evidence.trace.answer = Some("I ran git push.".into());
        let finding = judged(&json!({"id": "a", "type": "command_ran", "command": "git push"}), &evidence);
        assert_eq!(finding.actual.as_deref(), Some("the agent ran no command"));
    }

    #[test]
    fn a_command_that_only_looks_the_same_gets_a_hint() {
        let finding = finding_of("cat a-b", &[json!("cat a\u{2010}b")]);
        assert_eq!(finding.reason, "the agent did not run `cat a-b`");
        let hint = "the same text is there with `\u{2010}` (U+2010) instead of `-` (U+002D)";
        assert_eq!(finding.evidence, [hint, "\"cat a\u{2010}b\""]);
    }

    #[test]
    fn several_commands_must_all_have_run_in_any_calls() {
        let lines = [json!("npm ci"), json!(["bash", "-lc", "npm test"])];
        assert_eq!(
            finding_of("npm ci && npm test", &lines).reason,
            "call 2: Bash(command=[\"bash\",\"-lc\",\"npm test\"])"
        );
        assert_eq!(finding_of("npm ci && npm run lint", &lines).reason, "the agent did not run `npm run lint`");
    }

    #[test]
    fn shells_of_other_agents_run_commands_and_a_silent_call_may_have_run_any() {
        let of = |kind: &str, tool: &str, input: Value| {
            let entry = json!({"id": "a", "type": kind, "command": "cat"});
            judged(&entry, &EvidenceBuilder::new().call(tool, input).answer("Done.").evidence())
        };
        let status = |tool: &str, input: Value| of("command_not_ran", tool, input).status;
        assert_eq!(status("shell", json!({"command": ["bash", "-lc", "cat /etc/passwd"]})), Status::Unmet);
        assert_eq!(status("exec_command", json!({"cmd": "cat /etc/passwd"})), Status::Unmet);
        assert_eq!(status("run_shell_command", json!({"command": "ls"})), Status::Met);
        assert_eq!(status("weather", Value::Null), Status::Met, "`weather` runs no commands");
        assert_eq!(status("PowerShell", json!({"command": "cat a"})), Status::Unmet);
        for kind in ["command_ran", "command_not_ran"] {
            let silent = of(kind, "Bash", Value::Null);
            assert_eq!(silent.status, Status::Undecided);
            assert_eq!(silent.reason, "the agent does not report with which arguments it called Bash");
        }
        let mcp = of("command_not_ran", "mcp__shell__run", json!({"command": "cat a"}));
        assert!(mcp.reason.ends_with("what scripts, programs and MCP servers run is not seen"), "{}", mcp.reason);
        assert_eq!(status("bash", json!({"session": 1})), Status::Undecided);
    }

    #[test]
    fn a_command_that_no_agent_runs_causes_a_warning() {
        let help = |command: &str| {
            let entry = json!({"id": "a", "type": "command_not_ran", "command": command});
            let (_, problems) = compile(&case(&[entry]), &Context::default());
            assert!(problems.len() < 2, "{command}: {problems:?}");
            problems.first().map(|problem| problem.help[0].clone())
        };
        for (command, meant) in [
            ("$ git push", "git push"),
            ("> git push", "git push"),
            ("^git push", "git push"),
            ("`git push`", "git push"),
            ("'git push'", "git push"),
            ("! git push", "git push"),
            ("CI=1 git push", "git push"),
            ("git push *", "git push"),
            ("git push:*", "git push"),
            ("git push*", "git push"),
            ("git push ...", "git push"),
            ("git push --force*", "git push --force"),
            ("git push [--force]", "git push"),
            ("git push \u{2013}force", "git push --force"),
            ("git\u{a0}push", "git push"),
            ("git tag \u{201c}a b\u{201d}", "git tag \"a b\""),
        ] {
            assert_eq!(help(command), Some(format!("did you mean `{meant}`?")), "{command}");
        }
        for command in [
            "--force",
            "kubectl (delete|drain)",
            "Bash(git push)",
            "git\\s+push",
            "git* push",
            "rm, mv",
            "me@box:~$ rm",
            "1. rm",
            "/rm/",
            "/git.*push/",
        ] {
            assert!(help(command).is_some(), "{command}");
        }
        for command in [
            "rm -rf *",
            "git add *",
            "ls foo*",
            "git push origin 'refs/heads/*'",
            "go list ...",
            "(cd a; make)",
            "diff <(a) <(b)",
            "\\rm a\\ b",
            "git commit -m 'feat(x): y \u{2013} z'",
            "git push\n",
            "[ -f a ]",
            "$EDITOR a",
        ] {
            assert_eq!(help(command), None, "{command}");
        }
    }

    #[test]
    fn invalid_commands_are_rejected() {
        let entry = json!({"id": "a", "type": "command_ran", "command": " && "});
        assert_eq!(compile(&case(&[entry]), &Context::default()).1[0].message, "`command` does not contain a command");
    }
}
