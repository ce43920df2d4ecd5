//! What a call must look like: its tool, and a regular expression for each of some arguments.

use expect::{Data, Expectation, Pass};
use model::{Capture, Effect, Evidence, ToolCall, Trace, TracedCall, nearest};

use serde_json::Value;

use crate::javascript;
use crate::pattern::{Patience, Pattern};
use crate::place::Place;
use crate::verdict::Verdict;
use crate::words;

/// How many characters of a value are shown.
const SHOWN: usize = 120;

/// What a call must look like.
#[derive(Debug)]
pub(crate) struct CallPattern {
    /// The tool's name, compared as it is.
    pub tool: String,
    /// Where the name is written.
    pub place: Place,
    /// All of them must match the same call.
    pub arguments: Vec<ArgumentPattern>,
}

/// What an argument must look like.
#[derive(Debug)]
pub(crate) struct ArgumentPattern {
    /// The argument's name; absent for all arguments together, as JSON.
    pub name: Option<String>,
    /// What it must be.
    pub wanted: Wanted,
}

/// What an argument must be.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Its text must match. An argument that is missing or null is empty text.
    Text(Pattern),
    /// It must match an expectation.
    Value(Box<ExpectedValue>),
}

/// An expectation of an argument.
#[derive(Debug)]
pub(crate) struct ExpectedValue {
    /// The expectation.
    pub expectation: Expectation,
    /// As JSON.
    pub shown: String,
    /// Where it is written.
    pub place: Place,
    /// Whether judging it runs code of the user's.
    pub runs_code: bool,
}

/// Whether a call is as the pattern says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fit {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// A regular expression gave no answer, and nothing else rules the call out.
    Unknown(String),
}

/// How far the nearest call is from what was asked for.
pub(crate) struct Miss {
    /// Index among all calls; absent when the tool was not called.
    pub call: Option<usize>,
    /// What the nearest call has instead, or which tools were called.
    pub actual: String,
    /// The part of the assertion that it fails on.
    pub place: Place,
    /// The other calls that came near.
    pub evidence: Vec<String>,
}

impl CallPattern {
    /// Whether `call` is of the right tool; its arguments are not looked at.
    pub fn names(&self, call: &ToolCall) -> bool {
        call.name == self.tool
    }

    /// Whether `call` is as it must be.
    pub fn fit(&self, call: &ToolCall, patience: &Patience) -> Fit {
        if !self.names(call) {
            return Fit::No;
        }
        let mut unknown = None;
        for argument in &self.arguments {
            match argument.fits(call, patience) {
                Ok(true) => {}
                Ok(false) => return Fit::No,
                Err(error) => unknown = Some(error),
            }
        }
        unknown.map_or(Fit::Yes, Fit::Unknown)
    }

    /// The values of `fields`, whole.
    pub fn captures(fields: &[String], call: &ToolCall, shown_chars: usize, step: Option<usize>) -> Vec<Capture> {
        let value = |field: &String| match javascript::argument(&call.input, field) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => javascript::pretty(other),
        };
        fields.iter().map(|field| Capture { field: field.clone(), value: value(field), shown_chars, step }).collect()
    }

    /// In words, after "a" or "no": `Bash` call whose `command` matches /^git/.
    pub fn describe(&self) -> String {
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .enumerate()
            .map(|(at, argument)| {
                let whose = if at == 0 { "whose " } else { "" };
                format!("{whose}{argument}")
            })
            .collect();
        let rest = if arguments.is_empty() { String::new() } else { format!(" {}", words::list(&arguments)) };
        format!("`{}` call{rest}", self.tool)
    }

    /// The part of the assertion that says most: the first pattern, else the tool's name.
    pub fn most_telling_place(&self) -> &Place {
        self.arguments.first().map_or(&self.place, ArgumentPattern::place)
    }

    /// Whether judging runs code of the user's.
    pub fn runs_code(&self) -> bool {
        self.arguments.iter().any(|argument| matches!(&argument.wanted, Wanted::Value(value) if value.runs_code))
    }

    /// Which of `candidates`, indices of calls none of which fits, comes nearest, and what is wrong with it.
    pub fn nearest_miss(&self, trace: &Trace, candidates: &[usize], patience: &Patience) -> Miss {
        let mut misses: Vec<(usize, Vec<&ArgumentPattern>)> = candidates
            .iter()
            .filter(|&&at| trace.calls.get(at).is_some_and(|call| self.names(&call.call)))
            .map(|&at| (at, self.differing(&trace.calls[at].call, patience)))
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
        let told = |(at, differing): &(usize, Vec<&ArgumentPattern>)| {
            let call = &trace.calls[*at].call;
            let differences: Vec<String> = differing.iter().map(|argument| argument.told(call)).collect();
            format!("call {} has {}", at + 1, words::list(&differences))
        };
        Miss {
            call: Some(*call),
            actual: if differing.is_empty() { "no such call".into() } else { told(&misses[0]) },
            place: differing.first().map_or(&self.place, |argument| argument.place()).clone(),
            evidence: words::few(
                misses.iter().skip(1).filter(|(_, differing)| !differing.is_empty()).map(told).collect(),
                4,
            ),
        }
    }

    fn differing(&self, call: &ToolCall, patience: &Patience) -> Vec<&ArgumentPattern> {
        self.arguments.iter().filter(|it| it.fits(call, patience) != Ok(true)).collect()
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
        let actual = if called.is_empty() {
            "the agent called no tool".into()
        } else {
            format!("the agent called {}", words::list(&words::few(called, 8)))
        };
        let raw = trace.calls.iter().find(|call| call.call.raw_name == self.tool);
        let near = nearest(&self.tool, tools.iter().map(|(name, _)| *name));
        let evidence = raw
            .map(|call| format!("what the agent calls `{}` is written `{}`", self.tool, call.call.name))
            .or_else(|| near.map(|near| format!("was `{near}` meant? names are compared letter by letter")));
        Miss { call: None, actual, place: self.place.clone(), evidence: evidence.into_iter().collect() }
    }
}

impl ArgumentPattern {
    /// Whether the argument of `call` is as it must be. The error says in one line why nobody knows.
    pub fn fits(&self, call: &ToolCall, patience: &Patience) -> Result<bool, String> {
        match &self.wanted {
            Wanted::Text(pattern) => pattern.test(&self.text(call), patience),
            Wanted::Value(value) => {
                let nothing = Data { variables: Value::Null, input: None, fixture: Value::Null };
                let found = value.expectation.judge(self.value(call), &nothing);
                match found.pass {
                    Pass::Yes => Ok(true),
                    Pass::No => Ok(false),
                    Pass::Unknown => {
                        let because = found.flaws.into_iter().find_map(|flaw| flaw.message);
                        Err(because.unwrap_or_else(|| format!("nobody can say whether {self}")))
                    }
                }
            }
        }
    }

    /// The regular expression, if one is asked for.
    pub fn pattern(&self) -> Option<&Pattern> {
        match &self.wanted {
            Wanted::Text(pattern) => Some(pattern),
            Wanted::Value(_) => None,
        }
    }

    /// The part of the argument's text that matches, if a regular expression is asked for.
    pub fn found(&self, call: &ToolCall) -> Option<String> {
        self.pattern()?.found(&self.text(call)).filter(|found| !found.is_empty()).map(str::to_owned)
    }

    /// Where what it must be is written.
    pub fn place(&self) -> &Place {
        match &self.wanted {
            Wanted::Text(pattern) => &pattern.place,
            Wanted::Value(value) => &value.place,
        }
    }

    /// Whose value it is: `` `command` ``, or all arguments.
    pub fn whose(&self) -> String {
        self.name.as_ref().map_or_else(|| "arguments".to_owned(), |name| format!("`{name}`"))
    }

    fn value<'c>(&self, call: &'c ToolCall) -> Option<&'c Value> {
        match &self.name {
            Some(name) => javascript::argument(&call.input, name),
            None => Some(&call.input),
        }
    }

    /// The text of `call`'s argument, empty if there is none; of all arguments their JSON. A call that asks several
    /// questions has their texts for its `question`, a line each.
    fn text(&self, call: &ToolCall) -> String {
        let Some(name) = &self.name else { return call.input.to_string() };
        match javascript::argument(&call.input, name) {
            Some(value) => javascript::text(value),
            None if name == "question" && call.effect == Effect::Ask => asked(call),
            None => String::new(),
        }
    }

    /// `command` "git status", or that there is none.
    fn told(&self, call: &ToolCall) -> String {
        let value = self.value(call);
        let text = match (&self.wanted, value) {
            (Wanted::Value(_), Some(value)) => return format!("{} {}", self.whose(), shown(value)),
            _ => self.text(call),
        };
        if text.is_empty() && value.is_none() {
            return format!("no {}", self.whose());
        }
        format!("{} {}", self.whose(), words::quoted(&text))
    }
}

impl std::fmt::Display for ArgumentPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.name, &self.wanted) {
            (Some(name), Wanted::Text(pattern)) => write!(f, "`{name}` matches {pattern}"),
            (None, Wanted::Text(pattern)) => write!(f, "arguments match {pattern}"),
            (_, Wanted::Value(value)) => write!(f, "{} is {}", self.whose(), value.shown),
        }
    }
}

/// A value as JSON, cut where it gets long.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => words::quoted(text),
        other => {
            let text = other.to_string();
            let cut: String = text.chars().take(SHOWN).collect();
            if cut.len() < text.len() { format!("{cut}…") } else { cut }
        }
    }
}

/// The texts of the questions that a call asks, a line each.
fn asked(call: &ToolCall) -> String {
    let questions = call.input.get("questions").and_then(|questions| questions.as_array());
    let texts = questions.into_iter().flatten().filter_map(|question| question.get("question")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// The indices of all calls of `evidence`.
pub(crate) fn all_calls(evidence: &Evidence) -> Vec<usize> {
    (0..evidence.trace.calls.len()).collect()
}

/// A verdict that a call, given by its index, is what was not to be found.
pub(crate) fn missed(verdict: Verdict, miss: &Miss, trace: &Trace) -> Verdict {
    let verdict = verdict.place(&miss.place).evidence(miss.evidence.iter().cloned());
    match miss.call {
        Some(call) => verdict.at_call(trace, call),
        None => verdict,
    }
}
