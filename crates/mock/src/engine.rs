//! Decides which answer a call gets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{MockCall, MockFault, MockVerdict, MockedReply, MockedTool, Mocks};
use serde_json::{Value, json};

use crate::guard::violation;
use crate::played::Scene;
use crate::text::{ReadFile, filled, filled_value};

/// Maximum number of calls that are recorded. Further ones are refused.
const MOST_CALLS: usize = 2_000;

/// Maximum total size of the recorded calls, in bytes.
const MOST_BYTES: usize = 32 << 20;

/// Maximum depth of recorded arguments.
const MOST_LEVELS: usize = 60;

/// The mocks of one trial.
#[derive(Debug)]
pub struct Engine {
    mocks: Arc<Mocks>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of calls that each answer has answered, by server, tool and index.
    used: HashMap<(Option<String>, String, usize), u64>,
    calls: Vec<MockCall>,
    bytes: usize,
    user_message: usize,
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// Tool of a server: the name of the server and of the tool.
    Tool(&'a str, &'a str),
    /// Program.
    Command(&'a str),
}

/// How a call is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With this answer.
    Answer(Answer),
    /// By a model. The caller asks it, and passes the call to [`Engine::record`].
    Played(Box<Scene>),
}

/// An answer, which is already recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The call with its answer. For a program, the answer is its standard output, followed by its standard error.
    pub call: MockCall,
    /// Time before the answer, in milliseconds.
    pub delay_ms: u64,
    /// Fault instead of the answer.
    pub fault: Option<MockFault>,
    /// Standard error of a program.
    pub stderr: String,
    /// Exit code of a program.
    pub exit_code: u8,
}

impl Answer {
    /// Returns `true` if the tool answers with an error.
    pub fn is_error(&self) -> bool {
        self.call.verdict != MockVerdict::Answered
    }
}

impl Engine {
    /// Creates the engine of one trial.
    pub fn new(mocks: Arc<Mocks>) -> Self {
        Self { mocks, state: Mutex::default() }
    }

    /// Returns the mocks.
    pub fn mocks(&self) -> &Arc<Mocks> {
        &self.mocks
    }

    /// Notes that the user has sent `count` messages so far.
    pub fn user_messages(&self, count: usize) {
        self.lock().user_message = count;
    }

    /// Returns the recorded calls.
    pub fn calls(&self) -> Vec<MockCall> {
        self.lock().calls.clone()
    }

    /// Answers a call to a tool. `read` reads the files that answers contain.
    pub fn call(&self, subject: &Subject<'_>, input: Value, read: &ReadFile<'_>) -> Outcome {
        let mut state = self.lock();
        let (server, tool) = match *subject {
            Subject::Tool(server, tool) => (Some(server.to_owned()), tool.to_owned()),
            Subject::Command(name) => (None, name.to_owned()),
        };
        let (output, verdict) = (String::new(), MockVerdict::NotMocked);
        let mut call = MockCall { server, tool, input, output, verdict, user_message: state.user_message };
        let what = called(&call);
        let refuse = |mut call: MockCall, verdict: MockVerdict, reason: String| {
            let is_program = call.server.is_none();
            call.verdict = verdict;
            call.output = if is_program { format!("{reason}\n") } else { reason };
            let stderr = if is_program { call.output.clone() } else { String::new() };
            Answer { call, delay_ms: 0, fault: None, stderr, exit_code: 1 }
        };
        if has_more_levels(&call.input, MOST_LEVELS) {
            call.input = json!("arguments with too many levels");
            return state.answer(refuse(
                call,
                MockVerdict::NotMocked,
                format!("{what}: its arguments have too many levels"),
            ));
        }
        if state.calls.len() >= MOST_CALLS || state.bytes > MOST_BYTES {
            let reason = format!("{what} is not answered: the trial has called its mocks too often");
            return Outcome::Answer(refuse(call, MockVerdict::NotMocked, reason));
        }
        let Some(mocked) = self.find(subject) else {
            return state.answer(refuse(call, MockVerdict::NotMocked, format!("{what} is not mocked")));
        };
        if let Some(reason) = violation(&mocked.expect, &call.input) {
            let reason = format!("{what} was called with unexpected arguments: {reason}");
            return state.answer(refuse(call, MockVerdict::Rejected, reason));
        }
        let key = |index| (call.server.clone(), call.tool.clone(), index);
        let is_left = |index, times: Option<u64>| {
            times.is_none_or(|times| state.used.get(&key(index)).copied().unwrap_or_default() < times)
        };
        let fits = |(index, answer): &(usize, &model::MockedAnswer)| {
            is_left(*index, answer.times) && violation(&answer.when, &call.input).is_none()
        };
        let Some((index, answer)) = mocked.answers.iter().enumerate().find(fits) else {
            let used_up = mocked.answers.iter().any(|answer| violation(&answer.when, &call.input).is_none());
            let reason = match used_up {
                true => format!("{what} is not mocked: all its answers have been given"),
                false => format!("{what} is not mocked with these arguments"),
            };
            return state.answer(refuse(call, MockVerdict::NotMocked, reason));
        };
        *state.used.entry(key(index)).or_default() += 1;
        let delay_ms = answer.delay_ms;
        let fill = |text: &str| filled(text, &call.input, &answer.directory, read);
        let mut answered = Answer { call: call.clone(), delay_ms, fault: None, stderr: String::new(), exit_code: 0 };
        let texts = match &answer.reply {
            MockedReply::Text { text, is_error } => {
                answered.call.verdict = if *is_error { MockVerdict::Error } else { MockVerdict::Answered };
                fill(text).map(|text| (text, String::new()))
            }
            MockedReply::Json(value) => {
                answered.call.verdict = MockVerdict::Answered;
                filled_value(value, &call.input, &fill).map(|value| (value.to_string(), String::new()))
            }
            MockedReply::Output { stdout, stderr, exit_code } => {
                answered.exit_code = *exit_code;
                answered.call.verdict = if *exit_code == 0 { MockVerdict::Answered } else { MockVerdict::Error };
                fill(stdout).and_then(|stdout| Ok((stdout, fill(stderr)?)))
            }
            MockedReply::Fault(fault) => {
                (answered.fault, answered.call.verdict) = (Some(*fault), MockVerdict::Fault);
                Ok((fault.name().to_owned(), String::new()))
            }
            MockedReply::Played(mock) => {
                let mock = match fill(&mock.description) {
                    Ok(description) => model::PlayedMock { description, ..(**mock).clone() },
                    Err(reason) => return state.answer(refuse(call, MockVerdict::Broken, reason)),
                };
                let earlier = state.calls.iter().filter(|other| other.server == call.server);
                return Outcome::Played(Box::new(Scene::new(call.clone(), &mock, delay_ms, earlier)));
            }
        };
        match texts {
            Ok((output, stderr)) => {
                answered.call.output = format!("{output}{stderr}");
                answered.stderr = stderr;
                state.answer(answered)
            }
            Err(reason) => state.answer(refuse(call, MockVerdict::Broken, reason)),
        }
    }

    /// Records a call that a model has answered, and returns the answer.
    pub fn record(&self, call: MockCall, delay_ms: u64) -> Answer {
        let exit_code = u8::from(call.verdict != MockVerdict::Answered);
        let answer = Answer { call, delay_ms, fault: None, stderr: String::new(), exit_code };
        self.lock().note(&answer.call);
        answer
    }

    fn find(&self, subject: &Subject<'_>) -> Option<&MockedTool> {
        match *subject {
            Subject::Tool(server, tool) => {
                let (_, mocked) = self.mocks.mocked().find(|(name, _)| *name == server)?;
                mocked.tools.iter().find(|mocked| mocked.name == tool)
            }
            Subject::Command(name) => self.mocks.commands.iter().find(|command| command.name == name),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn answer(&mut self, answer: Answer) -> Outcome {
        self.note(&answer.call);
        Outcome::Answer(answer)
    }

    fn note(&mut self, call: &MockCall) {
        self.bytes += call.output.len() + call.input.to_string().len();
        self.calls.push(call.clone());
    }
}

/// Names what a call calls, for messages to the agent.
fn called(call: &MockCall) -> String {
    match (&call.server, call.input.get("line").and_then(Value::as_str)) {
        (Some(server), _) => format!("the tool `{}` of `{server}`", call.tool),
        (None, Some(line)) if !line.is_empty() => format!("{}: `{} {line}`", call.tool, call.tool),
        (None, _) => format!("{}: `{}`", call.tool, call.tool),
    }
}

fn has_more_levels(value: &Value, most: usize) -> bool {
    let is_deeper = |value: &Value| most == 0 || has_more_levels(value, most - 1);
    match value {
        Value::Array(items) => items.iter().any(is_deeper),
        Value::Object(entries) => entries.values().any(is_deeper),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::{ArgumentGuard, Excerpt, McpServer, MockedAnswer, MockedServer, ServerSource, WantedArgument};

    use super::*;

    fn text(text: &str) -> MockedAnswer {
        let reply = MockedReply::Text { text: text.into(), is_error: false };
        MockedAnswer { when: Vec::new(), times: None, delay_ms: 0, reply, directory: Arc::default() }
    }

    fn is(path: &str, value: &str) -> Vec<ArgumentGuard> {
        vec![ArgumentGuard { path: path.into(), wanted: WantedArgument::OneOf(vec![value.into()]) }]
    }

    fn engine(tools: Vec<MockedTool>, commands: Vec<MockedTool>) -> Engine {
        let source = ServerSource::Mock(MockedServer { instructions: None, tools });
        let place = Excerpt::of_file("a.yaml");
        let server = McpServer { name: "issues".into(), source, is_of_plugin: false, place };
        Engine::new(Arc::new(Mocks { servers: vec![server], commands }))
    }

    fn call(engine: &Engine, tool: &str, input: Value) -> Answer {
        let read = |_: &Path| Err("it does not exist".to_owned());
        match engine.call(&Subject::Tool("issues", tool), input, &read) {
            Outcome::Answer(answer) => answer,
            Outcome::Played(_) => panic!("no model plays it"),
        }
    }

    fn said(engine: &Engine, tool: &str, input: Value) -> (String, MockVerdict) {
        let answer = call(engine, tool, input);
        (answer.call.output, answer.call.verdict)
    }

    #[test]
    fn answers_are_chosen_by_arguments_and_given_in_sequence() {
        let answers = vec![
            MockedAnswer { when: is("id", "7"), ..text("seven") },
            MockedAnswer { times: Some(1), ..text("first") },
            MockedAnswer { times: Some(2), ..text("then {{input.id}}") },
        ];
        let get = MockedTool { name: "get".into(), answers, ..MockedTool::default() };
        let engine = engine(vec![get], Vec::new());
        let said = |id: u64| said(&engine, "get", json!({ "id": id }));
        for (id, wanted) in [(1, "first"), (7, "seven"), (2, "then 2"), (7, "seven"), (3, "then 3")] {
            assert_eq!(said(id), (wanted.to_owned(), MockVerdict::Answered));
        }
        let (text, verdict) = said(4);
        assert_eq!(verdict, MockVerdict::NotMocked);
        assert_eq!(text, "the tool `get` of `issues` is not mocked: all its answers have been given");
        assert_eq!(engine.calls().len(), 6);
    }

    #[test]
    fn what_is_not_mocked_is_refused_and_recorded() {
        let get = MockedTool {
            name: "get".into(),
            expect: is("project", "shop"),
            answers: vec![MockedAnswer { when: is("id", "7"), ..text("{{file:7.json}}") }],
            ..MockedTool::default()
        };
        let engine = engine(vec![get], Vec::new());
        let verdict = |tool: &str, input: Value| said(&engine, tool, input).1;
        assert_eq!(verdict("drop", json!({})), MockVerdict::NotMocked);
        assert_eq!(verdict("get", json!({"project": "shop", "id": 8})), MockVerdict::NotMocked);
        assert_eq!(verdict("get", json!({"project": "other", "id": 7})), MockVerdict::Rejected);
        assert_eq!(verdict("get", json!({"project": "shop", "id": 7})), MockVerdict::Broken, "the file is missing");
        let recorded: Vec<MockVerdict> = engine.calls().iter().map(|call| call.verdict).collect();
        assert_eq!(recorded.len(), 4);
        let deep = (0..80).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(verdict("get", json!({ "deep": deep })), MockVerdict::NotMocked);
    }

    #[test]
    fn programs_are_answered_by_the_beginning_of_their_arguments() {
        let when = vec![ArgumentGuard {
            path: "args".into(),
            wanted: WantedArgument::Words(vec!["pr".into(), "list".into()]),
        }];
        let reply = MockedReply::Output { stdout: "#1\n".into(), stderr: "slow\n".into(), exit_code: 3 };
        let answers = vec![MockedAnswer { when, reply, ..text("") }];
        let gh = MockedTool { name: "gh".into(), answers, ..MockedTool::default() };
        let engine = engine(Vec::new(), vec![gh]);
        let run = |line: &str| {
            let args: Vec<&str> = line.split(' ').collect();
            let read = |_: &Path| Err(String::new());
            match engine.call(&Subject::Command("gh"), json!({"args": args, "line": line}), &read) {
                Outcome::Answer(answer) => answer,
                Outcome::Played(_) => panic!("no model plays it"),
            }
        };
        let listed = run("pr list --all");
        assert_eq!(
            (listed.call.output.as_str(), listed.stderr.as_str(), listed.exit_code),
            ("#1\nslow\n", "slow\n", 3)
        );
        let refused = run("repo delete");
        assert_eq!(
            (refused.stderr.as_str(), refused.exit_code),
            ("gh: `gh repo delete` is not mocked with these arguments\n", 1)
        );
        assert_eq!(engine.calls()[1].describe(), "mock gh repo delete: not mocked");
    }
}
