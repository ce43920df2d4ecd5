//! How agents are made to do what a test needs.

use std::any::Any;
use std::path::Path;

use serde_json::{Value, json};

use crate::rehearsal::{Rehearsal, case, configured};
use crate::{Agent, fake, recorded};

/// How long a huge answer is, in bytes.
pub(super) const HUGE: usize = 1_000_000;

/// What an agent is to do with a message. Every answer has used 3 tokens of input and 4 of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// It answers this.
    Say(String),
    /// It answers the number of messages that it got so far.
    Count,
    /// It calls the tool `find` with `{"q": 1}`, gets `found`, and says `done`.
    Call,
    /// It answers a great many `x`.
    Huge,
    /// It does not answer.
    Hang,
    /// It gives up.
    Fail,
    /// It answers what nobody can read.
    Garbage,
}

impl Act {
    /// What the user says to bring it about.
    pub(super) fn word(&self) -> String {
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

    /// What the user wants who says `word`.
    pub(super) fn of(word: &str) -> Self {
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

/// Whose trouble an answer is that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    Agent,
    Provider,
}

/// What is ready to be played.
pub(super) struct Set {
    pub(super) rehearsal: Rehearsal,
    /// What must be there as long as it is played.
    pub(super) _kept: Option<Box<dyn Any + Send>>,
}

/// An agent in one of its ways.
pub(super) trait Stage: Send + Sync {
    fn name(&self) -> &'static str;

    fn agent(&self) -> &'static dyn Agent;

    fn can(&self, _act: &Act) -> bool {
        true
    }

    fn blames(&self) -> Blame {
        Blame::Agent
    }

    /// The agent, and a user who has it do `acts`.
    fn set(&self, acts: &[Act]) -> Set;

    /// The same where the agent is not there; `None` for one that is part of this program.
    fn absent(&self) -> Option<Set>;
}

/// A case in which the user has an agent do `acts`.
pub(super) fn rehearsal(acts: &[Act]) -> Rehearsal {
    let words: Vec<String> = acts.iter().map(Act::word).collect();
    Rehearsal::of(case("a", &words.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// As [`rehearsal`], with an agent that is configured.
pub(super) fn with_config(acts: &[Act], config: &Value) -> Rehearsal {
    Rehearsal { config: Some(configured(config, Path::new("/none"))), ..rehearsal(acts) }
}

/// The agent `fake`, whose messages are directives.
pub(super) struct Directives;

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
pub(super) struct Answers;

impl Answers {
    /// The conversation, as far as it was had.
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
