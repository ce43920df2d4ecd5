//! Pattern for tool calls: the tool, and a regular expression or an expectation for each of some arguments.

use expect::{Data, Expectation, Flaw, Pass, SourceLocation};
use model::{Capture, Effect, ToolCall, Trace, TracedCall, nearest, rounded_number};

use serde_json::Value;

use crate::format;
use crate::javascript;
use crate::pattern::{Pattern, RegexBudget};
use crate::skill_use::read_skill;
use crate::verdict::Verdict;

/// Reason why it is not known that a tool was not called.
const CALLS_UNREPORTED: &str = "the reply does not say completely which tools were called; an agent of your own says so with \
                                `tool_calls`, which may be an empty list";

/// Tool with which agents load a skill.
const SKILL: &str = "Skill";

/// Number of characters of a value that are shown.
const SHOWN: usize = 120;

/// Pattern for tool calls.
#[derive(Debug)]
pub(crate) struct CallPattern {
    /// Name of the tool, compared exactly.
    pub tool: String,
    /// Source position of the name.
    pub place: SourceLocation,
    /// Patterns for arguments. All of them must match the same call.
    pub arguments: Vec<ArgumentPattern>,
}

/// Pattern of an argument.
#[derive(Debug)]
pub(crate) struct ArgumentPattern {
    /// Name of the argument. `None` for the JSON of all arguments together.
    pub name: Option<String>,
    /// Required value.
    pub wanted: ArgumentRule,
}

/// Requirement on the value of an argument.
#[derive(Debug)]
pub(crate) enum ArgumentRule {
    /// The text of the argument must match. An argument that is missing or null is empty text.
    Text(Pattern),
    /// The value must match an expectation.
    Value(Box<ExpectedValue>),
}

/// Expectation of an argument.
#[derive(Debug)]
pub(crate) struct ExpectedValue {
    /// The compiled expectation.
    pub expectation: Expectation,
    /// The expectation as JSON, for messages.
    pub shown: String,
    /// Source position of the expectation.
    pub place: SourceLocation,
}

/// Difference between the nearest call and the pattern.
pub(crate) struct Miss {
    /// Index among all calls. `None` if the tool was not called.
    pub call: Option<usize>,
    /// Value of the nearest call, or the tools that were called.
    pub actual: String,
    /// The part of the assertion that the call does not match.
    pub place: SourceLocation,
    /// The other calls that are close to a match.
    pub evidence: Vec<String>,
}

impl CallPattern {
    /// Returns `true` if `call` is a call to this tool. Arguments are not compared.
    pub fn names(&self, call: &ToolCall) -> bool {
        call.name == self.tool
    }

    /// Returns `true` if `call` matches. The error says why a regular expression could not be decided, if nothing else
    /// rules the call out.
    pub fn fits(&self, call: &ToolCall, regex_budget: &RegexBudget) -> Result<bool, String> {
        if !self.names(call) {
            return Ok(false);
        }
        let mut unknown = None;
        for argument in &self.arguments {
            match argument.fits(call, regex_budget) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => unknown = Some(error),
            }
        }
        unknown.map_or(Ok(true), Err)
    }

    /// Like `fits`, and if the agent has no tool called `Skill`, a call that reads the file of a skill is one of
    /// `Skill`.
    pub fn fits_traced(&self, trace: &Trace, traced: &TracedCall, regex_budget: &RegexBudget) -> Result<bool, String> {
        let has_tool = trace.tools.iter().any(|tool| tool == SKILL);
        match read_skill(traced).filter(|_| self.tool == SKILL && !has_tool) {
            Some(skill) => {
                let input = serde_json::json!({ "skill": skill });
                let call = ToolCall { name: SKILL.to_owned(), input, ..traced.call.clone() };
                self.fits(&call, regex_budget)
            }
            None => self.fits(&traced.call, regex_budget),
        }
    }

    /// Returns the values of `fields` at full length.
    pub fn captures(fields: &[String], call: &ToolCall, shown_chars: usize, step: Option<usize>) -> Vec<Capture> {
        let value = |field: &String| match javascript::argument(&call.input, field) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => javascript::pretty(other),
        };
        fields.iter().map(|field| Capture { field: field.clone(), value: value(field), shown_chars, step }).collect()
    }

    /// Describes the pattern in words, for use after "a" or "no": `Bash` call whose `command` matches /^git/.
    pub fn describe(&self) -> String {
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .enumerate()
            .map(|(index, argument)| {
                let whose = if index == 0 { "whose " } else { "" };
                format!("{whose}{argument}")
            })
            .collect();
        let rest = if arguments.is_empty() { String::new() } else { format!(" {}", format::list(&arguments)) };
        format!("`{}` call{rest}", self.tool)
    }

    /// Returns the most specific part of the assertion: the first argument pattern, else the tool name.
    pub fn most_telling_place(&self) -> &SourceLocation {
        self.arguments.first().map_or(&self.place, ArgumentPattern::place)
    }

    /// Finds the call that comes nearest to a match, and how it differs. `candidates` are indices of calls that do not
    /// match.
    pub fn nearest_miss(&self, trace: &Trace, candidates: &[usize], regex_budget: &RegexBudget) -> Miss {
        let mut misses: Vec<(usize, Vec<&ArgumentPattern>)> = candidates
            .iter()
            .filter(|&&at| trace.calls.get(at).is_some_and(|call| self.names(&call.call)))
            .map(|&index| (index, self.differing(&trace.calls[index].call, regex_budget)))
            .collect();
        misses.sort_by_key(|(at, differing)| (differing.len(), *at));
        let Some((call, differing)) = misses.first() else {
            return match trace.calls.iter().rposition(|call| self.names(&call.call)) {
                Some(earlier) => Miss {
                    call: Some(earlier),
                    actual: format!("the last `{}` call is call {}, before that", self.tool, earlier + 1),
                    place: self.place.clone(),
                    evidence: Vec::new(),
                },
                None => self.never_called(trace),
            };
        };
        let miss_of = |(index, differing): &(usize, Vec<&ArgumentPattern>)| {
            let call = &trace.calls[*index].call;
            let differences: Vec<String> = differing.iter().map(|argument| argument.describe(call)).collect();
            format!("call {} has {}", index + 1, format::list(&differences))
        };
        let hints = differing.iter().filter_map(|argument| argument.lookalike(&trace.calls[*call].call));
        let others = misses.iter().skip(1).filter(|(_, differing)| !differing.is_empty()).map(miss_of).collect();
        Miss {
            call: Some(*call),
            actual: if differing.is_empty() { "no such call".into() } else { miss_of(&misses[0]) },
            place: differing.first().map_or(&self.place, |argument| argument.place()).clone(),
            evidence: hints.chain(format::few(others, 4)).collect(),
        }
    }

    fn differing(&self, call: &ToolCall, regex_budget: &RegexBudget) -> Vec<&ArgumentPattern> {
        self.arguments.iter().filter(|it| it.fits(call, regex_budget) != Ok(true)).collect()
    }

    fn never_called(&self, trace: &Trace) -> Miss {
        let mut tools: Vec<(&str, usize)> = Vec::new();
        for TracedCall { call, .. } in &trace.calls {
            match tools.iter_mut().find(|(name, _)| *name == call.name) {
                Some((_, times)) => *times += 1,
                None => tools.push((&call.name, 1)),
            }
        }
        let called: Vec<String> = tools
            .iter()
            .map(|(name, times)| if *times == 1 { format!("`{name}`") } else { format!("`{name}` ({times} times)") })
            .collect();
        let actual = if let Some(reason) = unreported_calls(trace).filter(|_| called.is_empty()) {
            reason.to_owned()
        } else if called.is_empty() {
            "the agent called no tool".into()
        } else {
            format!("the agent called {}", format::list(&format::few(called, 8)))
        };
        let raw = trace.calls.iter().find(|call| call.call.raw_name == self.tool);
        let near = nearest(&self.tool, tools.iter().map(|(name, _)| *name));
        let evidence = raw
            .map(|call| format!("the agent's tool `{}` is called `{}` here", self.tool, call.call.name))
            .or_else(|| near.map(|near| format!("did you mean `{near}`? names must match exactly")));
        Miss { call: None, actual, place: self.place.clone(), evidence: evidence.into_iter().collect() }
    }
}

impl ArgumentPattern {
    /// Returns `true` if the argument of `call` matches. The error says in one line why the match cannot be decided.
    pub fn fits(&self, call: &ToolCall, regex_budget: &RegexBudget) -> Result<bool, String> {
        if let Some(reason) = unknown_arguments(call) {
            return Err(reason);
        }
        match &self.wanted {
            ArgumentRule::Text(_) if self.rounded(call).is_some() => Err(self.unread(call)),
            ArgumentRule::Text(pattern) => pattern.test(&self.text(call), regex_budget),
            ArgumentRule::Value(value) => {
                let nothing = Data { variables: Value::Null, input: None, fixture: Value::Null };
                let found = value.expectation.judge(self.value(call), &nothing);
                match found.pass {
                    Pass::Yes => Ok(true),
                    Pass::No => Ok(false),
                    Pass::Unknown => {
                        let reason = found.flaws.into_iter().find_map(|flaw| flaw.message);
                        Err(reason.unwrap_or_else(|| format!("it is undecided whether {self}")))
                    }
                }
            }
        }
    }

    /// Returns the regular expression, if there is one.
    pub fn pattern(&self) -> Option<&Pattern> {
        match &self.wanted {
            ArgumentRule::Text(pattern) => Some(pattern),
            ArgumentRule::Value(_) => None,
        }
    }

    /// Returns the part of the argument's text that the regular expression matches. Returns `None` without one.
    pub fn found(&self, call: &ToolCall) -> Option<String> {
        self.pattern()?.found(&self.text(call)).filter(|found| !found.is_empty()).map(str::to_owned)
    }

    /// Returns where the requirement is written.
    pub fn place(&self) -> &SourceLocation {
        match &self.wanted {
            ArgumentRule::Text(pattern) => &pattern.place,
            ArgumentRule::Value(value) => &value.place,
        }
    }

    /// Returns the name of the argument for messages: `` `command` ``, or "arguments" for all of them.
    pub fn whose(&self) -> String {
        self.name.as_ref().map_or_else(|| "arguments".to_owned(), |name| format!("`{name}`"))
    }

    /// Returns a number in the argument whose digits are not known.
    fn rounded<'c>(&self, call: &'c ToolCall) -> Option<&'c serde_json::Number> {
        rounded_number(self.value(call)?)
    }

    /// Describes why the text of the argument is not known.
    fn unread(&self, call: &ToolCall) -> String {
        let number = self.rounded(call).map(ToString::to_string).unwrap_or_default();
        format!(
            "{} has a number of more than 64 bits (about {number}), whose digits are not known; ids of that length must \
             be strings",
            self.whose()
        )
    }

    fn value<'c>(&self, call: &'c ToolCall) -> Option<&'c Value> {
        match &self.name {
            Some(name) => javascript::argument(&call.input, name),
            None => Some(&call.input),
        }
    }

    /// Returns the text of `call`'s argument, empty if there is none. For all arguments together, this is their JSON.
    /// If a call asks several questions, the text of the `question` argument is all of them, one per line.
    fn text(&self, call: &ToolCall) -> String {
        let Some(name) = &self.name else { return call.input.to_string() };
        match javascript::argument(&call.input, name) {
            Some(value) => javascript::text(value),
            None if name == "question" && call.effect == Effect::Ask => asked(call),
            None => String::new(),
        }
    }

    /// Returns a hint if the argument of `call` only looks like the required one.
    fn lookalike(&self, call: &ToolCall) -> Option<String> {
        match &self.wanted {
            ArgumentRule::Text(pattern) => model::lookalike(pattern.regex.source(), &self.text(call)),
            ArgumentRule::Value(value) => {
                let nothing = Data { variables: Value::Null, input: None, fixture: Value::Null };
                value.expectation.judge(self.value(call), &nothing).flaws.iter().find_map(Flaw::lookalike)
            }
        }
    }

    /// Formats the argument for messages: `command` "git status", or that it is missing.
    fn describe(&self, call: &ToolCall) -> String {
        let value = self.value(call);
        let text = match (&self.wanted, value) {
            (ArgumentRule::Value(_), Some(value)) => return format!("{} {}", self.whose(), display(value)),
            _ => self.text(call),
        };
        if text.is_empty() && value.is_none() {
            return format!("no {}", self.whose());
        }
        format!("{} {}", self.whose(), format::quoted(&text))
    }
}

impl std::fmt::Display for ArgumentPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.name, &self.wanted) {
            (Some(name), ArgumentRule::Text(pattern)) => write!(f, "`{name}` matches {pattern}"),
            (None, ArgumentRule::Text(pattern)) => write!(f, "arguments match {pattern}"),
            (_, ArgumentRule::Value(value)) => write!(f, "{} is {}", self.whose(), value.shown),
        }
    }
}

/// Formats a value as JSON, shortened if it is long.
fn display(value: &Value) -> String {
    match value {
        Value::String(text) => format::quoted(text),
        other => model::text::shortened(&other.to_string(), SHOWN),
    }
}

/// Returns the texts of the questions that a call asks, one per line.
fn asked(call: &ToolCall) -> String {
    let questions = call.input.get("questions").and_then(|questions| questions.as_array());
    let texts = questions.into_iter().flatten().filter_map(|question| question.get("question")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the reason why there may be calls that are not in the trace.
pub(crate) fn unreported_calls(trace: &Trace) -> Option<&str> {
    trace.missing_calls().or_else(|| trace.has_unreported_calls().then_some(CALLS_UNREPORTED))
}

/// Returns the reason why what the agent did is not completely known: a reply does not report its calls, or the
/// arguments of a call that acts on files, commands or skills could not be read.
pub(crate) fn unknown_calls(trace: &Trace) -> Option<String> {
    if let Some(reason) = unreported_calls(trace) {
        return Some(reason.to_owned());
    }
    acting(trace).find(|call| !call.has_readable_arguments()).map(unread)
}

/// Returns the reason why it is not completely known what the agent acted on: as [`unknown_calls`], or the agent does not
/// report the arguments of a call that acts on files, commands or skills.
pub(crate) fn unknown_targets(trace: &Trace) -> Option<String> {
    unknown_calls(trace).or_else(|| acting(trace).find_map(unknown_arguments))
}

/// Returns the calls that act on files, commands or skills.
fn acting(trace: &Trace) -> impl Iterator<Item = &ToolCall> {
    trace.calls.iter().map(|traced| &traced.call).filter(|call| call.effect != Effect::Other)
}

/// Returns the reason why the arguments of a call are not known, if they are not: they could not be read, or the agent
/// does not report them.
pub(crate) fn unknown_arguments(call: &ToolCall) -> Option<String> {
    match call.input {
        Value::Object(_) => None,
        Value::Null => Some(format!("the agent does not report with which arguments it called {}", call.name)),
        _ => Some(unread(call)),
    }
}

/// Returns the reason why the commands that the agent ran are not completely known: as [`unknown_calls`], or a call to a
/// shell does not say which command it ran.
pub(crate) fn unknown_commands(trace: &Trace) -> Option<String> {
    unknown_calls(trace).or_else(|| silent_shell(trace))
}

/// Returns the reason why a command may have run that is not known: a call to a shell does not say which one it ran.
pub(crate) fn silent_shell(trace: &Trace) -> Option<String> {
    let call = acting(trace).find(|call| call.effect == Effect::Shell && call.command().is_none())?;
    let silent = || format!("{} does not say which command it ran", call.summary());
    Some(unknown_arguments(call).unwrap_or_else(silent))
}

/// Compares two calls.
pub(crate) type IsSame = fn(&ToolCall, &ToolCall) -> bool;

/// Returns `true` if two calls are known to have the same tool and the same arguments.
pub(crate) fn is_same(one: &ToolCall, other: &ToolCall) -> bool {
    may_be_same(one, other) && !one.input.is_null() && !other.input.is_null()
}

/// Returns `true` if two calls have the same tool, and no arguments that are known to differ.
pub(crate) fn may_be_same(one: &ToolCall, other: &ToolCall) -> bool {
    (&one.name, &one.parent) == (&other.name, &other.parent)
        && (one.input == other.input || one.input.is_null() || other.input.is_null())
}

fn unread(call: &ToolCall) -> String {
    format!("the arguments of {} could not be read", call.summary())
}

/// Adds a near miss to the verdict that no call matched.
pub(crate) fn missed(verdict: Verdict, miss: &Miss, trace: &Trace) -> Verdict {
    verdict.place(&miss.place).evidence(miss.evidence.iter().cloned()).at_call(trace, miss.call)
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::EvidenceBuilder;

    #[test]
    fn what_an_answer_does_not_report_is_never_absent() {
        let absent = [
            json!({"type": "no_tool_called", "tool": "Bash"}),
            json!({"type": "skill_not_used", "skill": "greet"}),
            json!({"type": "sub_agent_not_used", "sub_agent": "reviewer"}),
            json!({"type": "command_not_ran", "command": "rm"}),
            json!({"type": "no_loop"}),
            json!({"type": "retries_at_most", "max": 0}),
            json!({"type": "integrity_clean"}),
        ];
        let present = [
            json!({"type": "tool_called", "tool": "Bash"}),
            json!({"type": "skill_used", "skill": "greet"}),
            json!({"type": "command_ran", "command": "rm"}),
        ];
        let asked = || EvidenceBuilder::new().asks("Hello?");
        for mut wanted in absent {
            wanted["id"] = json!("a");
            assert_eq!(judged(&wanted, &asked().answer("Done.").evidence()).status, Status::Met, "{wanted}");
            let finding = judged(&wanted, &asked().calls_unreported().answer("Done.").evidence());
            assert_eq!(finding.status, Status::Undecided, "{wanted}");
            assert!(
                finding.reason.contains("does not say completely which tools were called"),
                "{wanted}: {}",
                finding.reason
            );
        }
        for mut wanted in present {
            wanted["id"] = json!("a");
            let finding = judged(&wanted, &asked().calls_unreported().answer("Done.").evidence());
            assert_eq!(finding.status, Status::Unmet, "{wanted}");
            assert!(finding.actual.unwrap().contains("does not say completely which tools were called"), "{wanted}");
            let missing = asked().calls_missing("the bot sent no spans").answer("Done.").evidence();
            let finding = judged(&wanted, &missing);
            assert_eq!(
                (finding.status, finding.reason.as_str()),
                (Status::Undecided, "the bot sent no spans"),
                "{wanted}"
            );
        }
    }

    #[test]
    fn a_command_that_could_not_be_read_is_not_absent() {
        let story = || EvidenceBuilder::new().call("Bash", json!("{\"command\": \"rm -rf")).evidence();
        for wanted in [
            json!({"id": "a", "type": "command_not_ran", "command": "rm"}),
            json!({"id": "a", "type": "skill_not_used", "skill": "greet"}),
            json!({"id": "a", "type": "integrity_clean"}),
        ] {
            assert_eq!(judged(&wanted, &story()).status, Status::Undecided, "{wanted}");
        }
    }
}
