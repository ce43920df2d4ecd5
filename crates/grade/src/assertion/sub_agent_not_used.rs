//! `sub_agent_not_used`: the agent did without a sub-agent.

use std::sync::Arc;

use model::Evidence;
use serde_json::json;

use super::{Assertion, Form, Matcher, Parameter, SUB_AGENT};
use crate::example::{Example, Story};
use crate::place::Place;
use crate::reading::Reading;
use crate::skill_use::first_delegation;
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "sub_agent_not_used",
    aliases: &[],
    parameters: &[Parameter::Value("sub_agent")],
    summary: "The agent did not hand a task to a sub-agent.",
    details: "`sub_agent_used` says what counts as use.",
    fields: &[SUB_AGENT],
    pass: Example {
        assertion: || json!({"id": "works-alone", "type": "sub_agent_not_used", "sub_agent": "reviewer"}),
        evidence: || Story::new().call("Bash", json!({"command": "git diff"})).answer("Here.").evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "works-alone", "type": "sub_agent_not_used", "sub_agent": "reviewer"}),
        evidence: || Story::new().call("Agent", json!({"subagent_type": "reviewer", "prompt": "Review."})).evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
struct SubAgentNotUsed {
    name: String,
    place: Place,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (name, place) = reading.required_text("sub_agent")?;
    Some(Arc::new(SubAgentNotUsed { name, place }))
}

impl Matcher for SubAgentNotUsed {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        let trace = &evidence.trace;
        let name = &self.name;
        let Some(call) = first_delegation(trace, name) else {
            return Verdict::met(format!("`{name}` was not used")).place(&self.place);
        };
        let because = format!("`{name}` was used, call {}", call + 1);
        Verdict::unmet(because, format!("no use of the sub-agent `{name}`"), trace.calls[call].call.summary())
            .place(&self.place)
            .at_call(trace, call)
    }
}
