//! Setups that make each agent behave as a test requires.

use std::any::Any;
use std::path::Path;

use serde_json::{Value, json};

use crate::tests::harness::{AgentHarness, case, configured};
use crate::{Agent, echo, fake, recorded};

/// Length of a huge answer, in bytes.
pub(crate) const HUGE: usize = 1_000_000;

/// How an agent behaves for a message. Every answer reports 3 input tokens and 4 output tokens, but not that of `echo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Answers with this text.
    Say(String),
    /// Answers with the number of messages received so far.
    Count,
    /// Calls the `find` tool with `{"q": 1}`, gets `found`, and answers `done`.
    Call,
    /// Answers with `x`, repeated a million times.
    Huge,
    /// Does not answer.
    Hang,
    /// Gives up.
    Fail,
    /// Answers with something unreadable.
    Garbage,
}

impl Act {
    /// Returns the user's message that requests the act.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Say(text) => format!("say {text}"),
            Self::Count => "count".to_owned(),
            Self::Call => "call".to_owned(),
            Self::Huge => "huge".to_owned(),
            Self::Hang => "hang".to_owned(),
            Self::Fail => "fail".to_owned(),
            Self::Garbage => "garbage".to_owned(),
        }
    }

    /// Returns the act that the message `word` requests.
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "count" => Self::Count,
            "call" => Self::Call,
            "huge" => Self::Huge,
            "hang" => Self::Hang,
            "fail" => Self::Fail,
            "garbage" => Self::Garbage,
            _ => Self::Say(word.strip_prefix("say ").unwrap_or(word).to_owned()),
        }
    }
}

/// Component that is blamed for an unreadable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    Agent,
    Provider,
}

/// A harness that is ready to run.
pub(crate) struct Set {
    pub(crate) harness: AgentHarness,
    /// Resources that must live as long as the harness runs.
    pub(crate) _kept: Option<Box<dyn Any + Send>>,
}

/// One variant of an agent.
pub(crate) trait AgentSetup: Send + Sync {
    fn name(&self) -> &'static str;

    fn agent(&self) -> &'static dyn Agent;

    fn can(&self, _act: &Act) -> bool {
        true
    }

    fn blames(&self) -> Blame {
        Blame::Agent
    }

    /// Prepares the agent and a user who requests `acts`.
    fn set(&self, acts: &[Act]) -> Set;

    /// Prepares the same with an agent that is not available; `None` for an agent that is part of this program.
    fn absent(&self) -> Option<Set>;
}

/// Creates a case in which the user requests `acts`.
pub(crate) fn harness(acts: &[Act]) -> AgentHarness {
    let words: Vec<String> = acts.iter().map(Act::word).collect();
    AgentHarness::for_case(case("a", &words.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Like [`harness`], with a configuration for the agent.
pub(crate) fn with_config(acts: &[Act], config: &Value) -> AgentHarness {
    AgentHarness { config: Some(configured(config, Path::new("/none"))), ..harness(acts) }
}

/// The `fake` agent, whose messages are directives.
pub(crate) struct Directives;

impl AgentSetup for Directives {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn agent(&self) -> &'static dyn Agent {
        &fake::Fake
    }

    fn can(&self, act: &Act) -> bool {
        !matches!(act, Act::Count | Act::Garbage)
    }

    fn set(&self, acts: &[Act]) -> Set {
        let mut harness = harness(acts);
        for (message, act) in harness.case.messages.iter_mut().zip(acts) {
            let does = match act {
                Act::Say(text) => format!("!say {text}"),
                Act::Call => "!call find {\"q\":1} => found\n!say done".to_owned(),
                Act::Huge => format!("!say {}", "x".repeat(HUGE)),
                Act::Hang => "!sleep 1000s".to_owned(),
                Act::Fail | Act::Garbage | Act::Count => "!error as told".to_owned(),
            };
            message.text = format!("!tokens 3 4\n{does}");
        }
        Set { harness, _kept: None }
    }

    fn absent(&self) -> Option<Set> {
        None
    }
}

/// The `echo` agent, to which the user says the answer.
pub(crate) struct Repeats;

impl AgentSetup for Repeats {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn agent(&self) -> &'static dyn Agent {
        &echo::Echo
    }

    fn can(&self, act: &Act) -> bool {
        matches!(act, Act::Say(_) | Act::Huge)
    }

    fn set(&self, acts: &[Act]) -> Set {
        let mut harness = harness(acts);
        for (message, act) in harness.case.messages.iter_mut().zip(acts) {
            message.text = match act {
                Act::Huge => "x".repeat(HUGE),
                _ => act.word().trim_start_matches("say ").to_owned(),
            };
        }
        Set { harness, _kept: None }
    }

    fn absent(&self) -> Option<Set> {
        None
    }
}

/// The `recorded` agent, whose answers are in a file.
pub(crate) struct Answers;

impl Answers {
    /// Returns the recorded conversation, up to its end.
    fn line(acts: &[Act]) -> Value {
        let mut messages = Vec::new();
        let mut line = json!({"case": "a"});
        for act in acts {
            messages.push(json!({"role": "user", "content": act.word()}));
            let text = match act {
                Act::Say(text) => text.clone(),
                Act::Huge => "x".repeat(HUGE),
                Act::Call => {
                    let call = json!({"name": "find", "input": {"q": 1}, "result": "found"});
                    messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
                    "done".to_owned()
                }
                _ => {
                    line["ending"] = json!("gave_up");
                    messages.push(json!({"role": "assistant", "content": "I cannot."}));
                    break;
                }
            };
            messages.push(json!({"role": "assistant", "content": text}));
        }
        let answers = messages.iter().filter(|message| message["role"] == "assistant").count();
        line["usage"] = json!({"input": 3 * answers, "output": 4 * answers});
        line["messages"] = Value::Array(messages);
        line
    }
}

impl AgentSetup for Answers {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn agent(&self) -> &'static dyn Agent {
        &recorded::Recorded
    }

    fn can(&self, act: &Act) -> bool {
        !matches!(act, Act::Count | Act::Hang | Act::Garbage)
    }

    fn set(&self, acts: &[Act]) -> Set {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("answers.jsonl");
        std::fs::write(&file, Self::line(acts).to_string()).unwrap();
        let argument = Some(file.to_string_lossy().into_owned());
        Set { harness: AgentHarness { argument, ..harness(acts) }, _kept: Some(Box::new(folder)) }
    }

    fn absent(&self) -> Option<Set> {
        let argument = Some("/none/answers.jsonl".to_owned());
        Some(Set { harness: AgentHarness { argument, ..harness(&[Act::Count]) }, _kept: None })
    }
}
