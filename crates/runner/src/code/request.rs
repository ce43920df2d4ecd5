//! A scenario's requests, parsed from the values that come from the script engine.

use std::time::Duration;

use model::{Excerpt, Node, SimulatedUser, Source, Span, Status, UserMessage};
use script::{Call, CodeRuntime, Request, Value};
use serde_json::{Map, Value as Json};

/// Default time limit for a command.
const COMMAND: Duration = Duration::from_secs(30);

/// One request from a scenario.
#[derive(Debug)]
pub(crate) enum ScenarioRequest {
    /// Send this message to the agent, in the conversation with this name or in the first one.
    Send(UserMessage, Option<String>),
    /// Have a model play the user, in the conversation with this name or in the first one.
    Converse(Box<SimulatedUser>, Option<String>),
    /// Check an assertion.
    Assert(Box<AssertionCall>),
    /// Announce a claim that the scenario is about to decide itself.
    Claim(ObservedClaim),
    /// Record the result of a claim that the scenario has decided itself.
    Observed(ObservedClaim),
    /// Report that a message is sent before the reply to the previous one in the same conversation.
    Overlap,
    /// Record a named score.
    Score(String, f64),
    /// Mask this text from now on.
    Secret(String),
    /// Read a file.
    Read(String),
    /// List a directory.
    List(String),
    /// Check that a path exists.
    Exists(String),
    /// Run a command, with a time limit.
    Run(String, Duration),
}

/// Assertion in this program that a scenario makes.
#[derive(Debug)]
pub(crate) struct AssertionCall {
    /// Number of the claim within the scenario, from 0.
    pub(crate) number: u64,
    /// Name in code, such as `toolCalled`.
    pub(crate) name: String,
    /// Number of the message whose reply the assertion is about, from 1; `None` if it is about the trial.
    pub(crate) reply: Option<usize>,
    /// The other arguments.
    pub(crate) arguments: Vec<Node>,
    /// Location of the call.
    pub(crate) place: Node,
}

/// Claim that the scenario's own code decides.
#[derive(Debug, Default)]
pub(crate) struct ObservedClaim {
    /// Number of the claim within the scenario, from 0.
    pub(crate) number: u64,
    /// Name in code, such as `custom`.
    pub(crate) name: String,
    /// Title that the user gave the claim.
    pub(crate) title: Option<String>,
    /// Source excerpt of the call.
    pub(crate) source: Option<Excerpt>,
    /// Result; `None` until it is decided.
    pub(crate) status: Option<Status>,
    pub(crate) reason: Option<String>,
    pub(crate) expected: Option<String>,
    pub(crate) actual: Option<String>,
    pub(crate) evidence: Vec<String>,
    pub(crate) error: Option<String>,
    /// Time that the decision took, in milliseconds.
    pub(crate) latency_ms: Option<f64>,
}

impl ScenarioRequest {
    /// Parses `request`; `runtime` knows its call sites. `file` is the path of the module as shown in messages.
    ///
    /// # Errors
    /// Returns a description of the mistake in the request, to be thrown where the scenario made it.
    pub(super) fn read(request: &Request, runtime: &dyn CodeRuntime, file: &str) -> Result<Self, String> {
        let [name, given] = &request.arguments[..] else { return Err(unknown(&request.name)) };
        let name = name.as_str().unwrap_or_default();
        let given = RequestArguments { map: given, runtime, file };
        match name {
            "send" => given.message().map(|message| Self::Send(message, given.text("conversation"))),
            "converse" => given.user().map(|user| Self::Converse(Box::new(user), given.text("conversation"))),
            "assert" => Ok(Self::Assert(Box::new(given.declared()))),
            "claim" => Ok(Self::Claim(given.observed())),
            "observed" => Ok(Self::Observed(given.observed())),
            "overlap" => Ok(Self::Overlap),
            "score" => {
                Ok(Self::Score(given.text("name").unwrap_or_default(), given.number("value").unwrap_or_default()))
            }
            "secret" => Ok(Self::Secret(given.text("text").unwrap_or_default())),
            "read" => given.path().map(Self::Read),
            "list" => Ok(Self::List(given.text("path").unwrap_or_default())),
            "exists" => given.path().map(Self::Exists),
            "run" => {
                let command = given.text("command").ok_or("agent.run needs a string with a command")?;
                let timeout = given.number("timeout").filter(|ms| ms.is_finite() && *ms > 0.0);
                Ok(Self::Run(command, timeout.map_or(COMMAND, |ms| Duration::from_secs_f64(ms.min(1e9) / 1e3))))
            }
            _ => Err(unknown(name)),
        }
    }
}

fn unknown(name: &str) -> String {
    format!("`{name}` is not a request that a scenario can make")
}

/// Arguments of a request.
struct RequestArguments<'g> {
    map: &'g Value,
    runtime: &'g dyn CodeRuntime,
    file: &'g str,
}

impl RequestArguments<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !matches!(value, Value::Undefined | Value::Null))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_str().map(str::to_owned)
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.as_number()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of the prelude's")]
    fn count(&self, key: &str) -> Option<u64> {
        self.number(key).map(|number| number as u64)
    }

    fn object(&self, key: &str) -> Map<String, Json> {
        match self.get(key).map(Value::to_json) {
            Some(Json::Object(map)) => map,
            _ => Map::new(),
        }
    }

    fn path(&self) -> Result<String, String> {
        self.text("path").ok_or_else(|| "agent.files needs a string with a path".to_owned())
    }

    fn call(&self, name: &str) -> Option<Call> {
        self.runtime.call_site(&self.text("stack")?, name)
    }

    fn message(&self) -> Result<UserMessage, String> {
        let text = self.text("text").ok_or("agent.send needs a string")?;
        let (persona, options) = (self.object("persona"), self.object("options"));
        Ok(UserMessage { persona, options, ..UserMessage::text(text) })
    }

    fn user(&self) -> Result<SimulatedUser, String> {
        let source = self.call("converse").map(|call| call.excerpt());
        Ok(SimulatedUser {
            persona: self.object("persona"),
            goal: self.text("goal").ok_or("converse needs a `goal`")?,
            stop_when: self.text("stopWhen"),
            max_turns: self.count("maxTurns").unwrap_or(1),
            model: self.text("model"),
            source: source.unwrap_or_else(|| Excerpt::of_file(self.file)),
        })
    }

    fn declared(&self) -> AssertionCall {
        let name = self.text("name").unwrap_or_default();
        let given = match self.get("arguments") {
            Some(Value::List(items)) => items.as_slice(),
            _ => &[],
        };
        let reply = self.count("reply").and_then(|reply| usize::try_from(reply).ok());
        // In the call, the reply is the first argument.
        let before = usize::from(reply.is_some());
        let (place, arguments) = match self.call(&name) {
            Some(call) => {
                let place = Node { span: call.callee, ..call.argument(usize::MAX, &Value::Null) };
                (place, given.iter().enumerate().map(|(at, value)| call.argument(at + before, value)).collect())
            }
            None => {
                let source = Source::new(self.file, "");
                let arguments = given.iter().map(|value| Node::from_json(&value.to_json(), &source)).collect();
                (Node { kind: model::NodeKind::Null, span: Span::default(), tag: None, source }, arguments)
            }
        };
        AssertionCall { number: self.count("seq").unwrap_or_default(), name, reply, arguments, place }
    }

    fn observed(&self) -> ObservedClaim {
        let name = self.text("type").unwrap_or_default();
        let status = self.text("status").map(|status| match status.as_str() {
            "met" => Status::Met,
            "unmet" => Status::Unmet,
            _ => Status::Undecided,
        });
        let mut evidence: Vec<String> = match self.get("evidence") {
            Some(Value::List(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let read = || self.runtime.thrown_at(&self.text("read")?);
        let thrown = self.text("thrown").and_then(|stack| self.runtime.thrown_at(&stack));
        evidence.extend(thrown.map(|place| format!("thrown at {place}")));
        ObservedClaim {
            number: self.count("seq").unwrap_or_default(),
            source: self.call(&name).map(|call| call.excerpt()).or_else(read),
            name,
            title: self.text("title"),
            status,
            reason: self.text("because"),
            expected: self.text("expected"),
            actual: self.text("actual"),
            evidence,
            error: self.text("error"),
            latency_ms: self.number("latencyMs"),
        }
    }
}
