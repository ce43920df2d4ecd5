//! `sub_agent_used`: the agent delegated a task to a sub-agent.

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
    name: "sub_agent_used",
    aliases: &[],
    parameters: &[Parameter::Value("sub_agent")],
    summary: "The agent delegated a task to a sub-agent.",
    fields: &[SUB_AGENT],
    pass: Example {
        assertion: || json!({"id": "asks-the-reviewer", "type": "sub_agent_used", "sub_agent": "reviewer"}),
        evidence: || Story::new().call("Agent", json!({"subagent_type": "reviewer", "prompt": "Review."})).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "asks-the-reviewer", "type": "sub_agent_used", "sub_agent": "reviewer"}),
        evidence: || Story::new().call("Bash", json!({"command": "git diff"})).answer("Reviewed.").evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
struct SubAgentUsed(Usage);

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (name, place) = reading.required_text("sub_agent")?;
    Some(Arc::new(SubAgentUsed(Usage { definition: Definition::SubAgent, name, place })))
}

impl Matcher for SubAgentUsed {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        self.0.is_there(&evidence.trace)
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::Story;

    #[test]
    fn a_task_that_was_handed_over_is_use_of_that_sub_agent() {
        let of = |story: Story| {
            let evidence = story.evidence();
            let told =
                |kind: &str| judged(&json!({"id": "a", "type": kind, "sub_agent": "reviewer"}), &evidence).status;
            (told("sub_agent_used"), told("sub_agent_not_used"))
        };
        let call = |tool: &str, name: &str| Story::new().call(tool, json!({"subagent_type": name, "prompt": "p"}));
        for story in [call("Task", "reviewer"), call("Agent", "tools:reviewer")] {
            assert_eq!(of(story), (Status::Met, Status::Unmet));
        }
        let skill = Story::new().call("Skill", json!({"skill": "reviewer"}));
        for story in [call("Agent", "general-purpose"), call("Read", "reviewer"), skill] {
            assert_eq!(of(story), (Status::Unmet, Status::Met));
        }
    }

    #[test]
    fn a_call_that_failed_is_not_use_and_is_told() {
        let mut evidence = Story::new().call("Agent", json!({"subagent_type": "reviewer"})).evidence();
        evidence.trace.calls[0].result.as_mut().unwrap().is_error = true;
        let used = judged(&json!({"id": "a", "type": "sub_agent_used", "sub_agent": "reviewer"}), &evidence);
        assert_eq!(used.evidence, ["call 1 failed: Agent(subagent_type=\"reviewer\")"]);
    }
}
