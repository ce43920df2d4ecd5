//! `sub_agent_not_used`: the agent did not use a sub-agent.

use std::sync::Arc;

use model::{Definition, Evidence};
use serde_json::json;

use super::usage::Usage;
use super::{Assertion, Form, Parameter, SUB_AGENT};
use crate::example::{Example, Story};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "sub_agent_not_used",
    aliases: &[],
    parameters: &[Parameter::Value("sub_agent")],
    summary: "The agent did not delegate a task to a sub-agent.",
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
struct SubAgentNotUsed(Usage);

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (name, place) = reading.required_text("sub_agent")?;
    Some(Arc::new(SubAgentNotUsed(Usage { definition: Definition::SubAgent, name, place })))
}

impl Matcher for SubAgentNotUsed {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        self.0.is_absent(&evidence.trace)
    }
}
