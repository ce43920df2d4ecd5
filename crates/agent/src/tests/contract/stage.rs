//! Setups that make each agent behave as a test requires.

use std::any::Any;
use std::path::Path;

use serde_json::{Value, json};

use crate::tests::rehearsal::{Rehearsal, case, configured};
use crate::{Agent, fake, recorded};

/// Length of a huge answer, in bytes.
pub(crate) const HUGE: usize = 1_000_000;

/// Behaviour of an agent for a message. Every answer reports 3 input tokens and 4 output tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Answers this text.
    Say(String),
    /// Answers the number of messages received so far.
    Count,
    /// Calls the tool `find` with `{"q": 1}`, gets `found`, and answers `done`.
    Call,
    /// Answers `x`, repeated a million times.
    Huge,
    /// Does not answer.
    Hang,
    /// Gives up.
    Fail,
    /// Answers something unreadable.
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

/// Part of the system that is blamed for an unreadable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    Agent,
    Provider,
}

/// A rehearsal that is ready to run.
pub(crate) struct Set {
    pub(crate) rehearsal: Rehearsal,
    /// Resources that must live as long as the rehearsal runs.
    pub(crate) _kept: Option<Box<dyn Any + Send>>,
}

/// One variant of an agent.
pub(crate) trait Stage: Send + Sync {
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
pub(crate) fn rehearsal(acts: &[Act]) -> Rehearsal {
    let words: Vec<String> = acts.iter().map(Act::word).collect();
    Rehearsal::of(case("a", &words.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Same as [`rehearsal`], with a configuration of the agent.
pub(crate) fn with_config(acts: &[Act], config: &Value) -> Rehearsal {
    Rehearsal { config: Some(configured(config, Path::new("/none"))), ..rehearsal(acts) }
}

/// The agent `fake`, whose messages are directives.
pub(crate) struct Directives;

impl Stage for Directives {
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
        let mut rehearsal = rehearsal(acts);
        for (message, act) in rehearsal.case.messages.iter_mut().zip(acts) {
            let does = match act {
                Act::Say(text) => format!("!say {text}"),
                Act::Call => "!call find {\"q\":1} => found\n!say done".to_owned(),
                Act::Huge => format!("!say {}", "x".repeat(HUGE)),
                Act::Hang => "!sleep 1000s".to_owned(),
                Act::Fail | Act::Garbage | Act::Count => "!error as told".to_owned(),
            };
            message.text = format!("!tokens 3 4\n{does}");
        }
        Set { rehearsal, _kept: None }
    }

    fn absent(&self) -> Option<Set> {
        None
    }
}

/// The agent `recorded`, whose answers are in a file.
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
        let said = messages.iter().filter(|message| message["role"] == "assistant").count();
        line["usage"] = json!({"input": 3 * said, "output": 4 * said});
        line["messages"] = Value::Array(messages);
        line
    }
}

impl Stage for Answers {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn agent(&self) -> &'static dyn Agent {
        &recorded::RECORDED
    }

    fn can(&self, act: &Act) -> bool {
        !matches!(act, Act::Count | Act::Hang | Act::Garbage)
    }

    fn set(&self, acts: &[Act]) -> Set {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("answers.jsonl");
        std::fs::write(&file, Self::line(acts).to_string()).unwrap();
        let argument = Some(file.to_string_lossy().into_owned());
        Set { rehearsal: Rehearsal { argument, ..rehearsal(acts) }, _kept: Some(Box::new(folder)) }
    }

    fn absent(&self) -> Option<Set> {
        let argument = Some("/none/answers.jsonl".to_owned());
        Some(Set { rehearsal: Rehearsal { argument, ..rehearsal(&[Act::Count]) }, _kept: None })
    }
}
