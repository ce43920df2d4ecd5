//! `mock_called` and `mock_not_called`: a mocked program was run, or not.

use model::{Diagnostic, MockCall, Mocks, Node, nearest};

use super::prelude::*;
use crate::pattern::{Pattern, RegexBudget};

/// Number of runs that a finding shows.
const SHOWN: usize = 4;

/// Field `command`.
const COMMAND: Field = Field::required("command", "string", "Name of the program, as in `mock_commands`.");

/// Field `args`.
const ARGS: Field =
    Field::optional("args", "regular expression", "Must match the arguments, joined by spaces.").or("any arguments");

pub(crate) const ASSERTION: Assertion = Assertion::written("mock_called", |reading| parse(reading, true))
    .summary("A mocked program was run.")
    .fields(&[
        COMMAND,
        ARGS,
        Field::optional("min", "whole number", "Minimum number of matching runs.").or("1"),
        Field::optional("max", "whole number", "Maximum number of matching runs.").or("any number"),
    ])
    .parameters(&[Parameter::Value("command"), Parameter::Value("args")])
    .example(
        || json!({"id": "lists-the-groups", "type": "mock_called", "command": "az", "args": "^group list"}),
        || EvidenceBuilder::new().ran_mock("az", "group list --output json"),
        || EvidenceBuilder::new().ran_mock("az", "account show"),
    );

pub(crate) const NEGATION: Assertion = Assertion::written("mock_not_called", |reading| parse(reading, false))
    .summary("A mocked program was not run, or not with these arguments.")
    .fields(&[COMMAND, ARGS])
    .parameters(&[Parameter::Value("command"), Parameter::Value("args")])
    .example(
        || json!({"id": "deletes-nothing", "type": "mock_not_called", "command": "kubectl", "args": "^delete"}),
        || EvidenceBuilder::new().ran_mock("kubectl", "get pods"),
        || EvidenceBuilder::new().ran_mock("kubectl", "delete pod web-1"),
    );

#[derive(Debug)]
struct MockCalled {
    command: String,
    args: Option<Pattern>,
    min: u64,
    max: Option<u64>,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>, is_wanted: bool) -> Option<Arc<dyn Matcher>> {
    let (command, place) = reading.required_name("command")?;
    let args = match reading.fields.get("args") {
        Some(_) => Some(reading.pattern("args")?),
        None => None,
    };
    let repeated = reading.fields.get("args").and_then(|node| repeats_name(node, &command));
    reading.problems.extend(repeated);
    let (min, max) = if is_wanted { reading.range()? } else { (0, Some(0)) };
    let problem = reading.context.mocks.and_then(|mocks| not_mocked(&command, mocks));
    reading.problems.extend(problem.map(|problem| problem.at(place.excerpt())));
    Some(Arc::new(MockCalled { command, args, min, max, place }))
}

/// Returns a warning about a pattern for arguments that begins with the name of the program, or with a space.
fn repeats_name(args: &Node, command: &str) -> Option<Diagnostic> {
    let text = args.as_str()?;
    if let Some(rest) = text.strip_prefix("^ ") {
        let problem = args.warning(format!("the arguments of `{command}` do not begin with a space"));
        return Some(problem.help(format!("write `^{}`", rest.trim_start())));
    }
    let start = text.len() - text.trim_start_matches(['/', '^']).len();
    let rest = text[start..].strip_prefix(command).filter(|rest| rest.starts_with([' ', '\\']))?;
    let problem = args.warning(format!("`args` are the arguments of `{command}`, without its name"));
    Some(problem.help(format!("write `{}{}`", &text[..start], rest.trim_start_matches("\\s+").trim_start())))
}

/// Reports a program that is not mocked: whether it was run would never be known.
fn not_mocked(command: &str, mocks: &Mocks) -> Option<Diagnostic> {
    let names: Vec<&str> = mocks.commands.iter().map(|known| known.name.as_str()).collect();
    if names.contains(&command) {
        return None;
    }
    let problem = Diagnostic::error(format!("`{command}` is not a mocked program of this case"));
    let problem = if names.is_empty() { problem.of_missing(&["mock_commands"]) } else { problem };
    let (program, args) = command.split_once(' ').unwrap_or((command, ""));
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    Some(match nearest(command, names.iter().copied()) {
        _ if !args.is_empty() => problem.help(format!("write `{{ command: {name}, args: ^{args} }}`")),
        Some(near) => problem.suggest(Some(near)),
        None if names.contains(&name) => problem.suggest(Some(name)),
        None => problem.help(format!("add `{name}` to `mock_commands`")),
    })
}

impl Matcher for MockCalled {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let name = &self.command;
        if !trace.mocks.iter().any(|mocks| mocks.commands.contains(name)) {
            let reason = format!("`{name}` is not a mocked program of this trial");
            return Ok(Verdict::undecided(reason).place(&self.place));
        }
        let regex_budget = RegexBudget::new();
        let runs: Vec<&MockCall> =
            trace.mock_calls.iter().filter(|call| call.server.is_none() && call.tool == *name).collect();
        let mut matching = Vec::new();
        for run in &runs {
            let line = line(run);
            match self.args.as_ref().map_or(Ok(true), |args| args.test(&line, &regex_budget)) {
                Ok(true) => matching.push(line),
                Ok(false) => {}
                Err(error) => return Ok(Verdict::undecided(error).place(&self.place)),
            }
        }
        let count = matching.len() as u64;
        let expected = match self.max {
            Some(max) if max == self.min => format::count(usize::try_from(max).unwrap_or(usize::MAX), "run"),
            Some(max) => format!("{} to {max} runs", self.min),
            None => format!("at least {}", format::count(usize::try_from(self.min).unwrap_or(usize::MAX), "run")),
        };
        let reason = format!("{} of `{name}`, {expected} expected", format::count(matching.len(), "matching run"));
        let verdict = if count >= self.min && self.max.is_none_or(|max| count <= max) {
            Verdict::met(reason)
        } else {
            let all = || runs.iter().map(|run| line(run)).collect::<Vec<_>>();
            let shown = if count > self.min { matching } else { all() };
            let shown: Vec<String> = shown.iter().map(|line| format!("`{name} {line}`")).collect();
            let actual =
                if shown.is_empty() { format!("no run of `{name}`") } else { format::list(&format::few(shown, SHOWN)) };
            Verdict::unmet(reason, expected, actual)
        };
        Ok(verdict.place(self.args.as_ref().map_or(&self.place, |args| &args.place)))
    }
}

fn line(call: &MockCall) -> String {
    call.input.get("line").and_then(|line| line.as_str()).unwrap_or_default().to_owned()
}
