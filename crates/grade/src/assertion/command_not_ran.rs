//! `command_not_ran`: the agent did not run a command.

use std::sync::Arc;

use model::Evidence;
use serde_json::json;

use super::command_ran::{COMMAND, Sought};
use super::{Assertion, Form, Parameter, TITLE};
use crate::example::{Example, Story};
use crate::matcher::Matcher;
use crate::place::Place;
use crate::reading::Reading;
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "command_not_ran",
    aliases: &["no_command_ran"],
    parameters: &[Parameter::Value("command")],
    summary: "The agent did not run a command.",
    fields: &[COMMAND, TITLE],
    pass: Example {
        assertion: || json!({"id": "pushes-nothing", "type": "command_not_ran", "command": "git push"}),
        evidence: || Story::new().call("Bash", json!({"command": "git commit -m 'git push comes later'"})).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "pushes-nothing", "type": "command_not_ran", "command": "git push"}),
        evidence: || {
            Story::new().call("Bash", json!({"command": "git commit -m x && git push -u origin HEAD"})).evidence()
        },
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
pub(crate) struct CommandNotRan {
    pub sought: Sought,
    place: Option<Place>,
}

impl CommandNotRan {
    /// Creates the check for an assertion that is written elsewhere, such as a claim.
    pub fn new(sought: Sought) -> Self {
        Self { sought, place: None }
    }
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    let (sought, place) = Sought::read(reading)?;
    Some(Arc::new(CommandNotRan { sought, place: Some(place) }))
}

impl Matcher for CommandNotRan {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        let trace = &evidence.trace;
        let sought = &self.sought;
        let verdict = match sought.find(trace) {
            Ok(call) => {
                let summary = format!("call {}: {}", call + 1, trace.calls[call].call.summary());
                Verdict::unmet(format!("it ran {sought}"), format!("no run of {sought}"), summary).at_call(trace, call)
            }
            Err(_) => Verdict::met(format!("it did not run {sought}")),
        };
        match &self.place {
            Some(place) => verdict.place(place),
            None => verdict,
        }
    }
}
