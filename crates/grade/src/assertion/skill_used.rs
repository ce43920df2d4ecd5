//! `skill_used`: the agent used a skill.

use std::sync::Arc;

use model::{Definition, Evidence};
use serde_json::json;

use super::usage::Usage;
use super::{Assertion, Form, Parameter, SKILL};
use crate::example::{Example, Story};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "skill_used",
    aliases: &[],
    parameters: &[Parameter::Value("skill")],
    summary: "The agent used a skill.",
    fields: &[SKILL],
    pass: Example {
        assertion: || json!({"id": "uses-the-skill", "type": "skill_used", "skill": "release-notes"}),
        evidence: || Story::new().call("Skill", json!({"skill": "release-notes"})).answer("Written.").evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "uses-the-skill", "type": "skill_used", "skill": "release-notes"}),
        evidence: || Story::new().call("Bash", json!({"command": "git log"})).answer("Written.").evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
struct SkillUsed(Usage);

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (name, place) = reading.required_text("skill")?;
    Some(Arc::new(SkillUsed(Usage { definition: Definition::Skill, name, place })))
}

impl Matcher for SkillUsed {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        self.0.is_there(&evidence.trace)
    }
}

#[cfg(test)]
mod tests {
    use model::{Certainty, Status};
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::Story;

    #[test]
    fn invoking_a_skill_and_reading_its_file_are_uses_of_it() {
        let of = |story: Story| judged(&json!({"id": "a", "type": "skill_used", "skill": "greet"}), &story.evidence());
        let cat = [("skills/greet/SKILL.md", "/box/repo/.claude/skills/greet/SKILL.md", Certainty::Guessed)];
        for story in [
            Story::new().call("Skill", json!({"skill": "tools:greet", "args": "x"})),
            Story::new().call("SlashCommand", json!({"command": "/greet Ada"})),
            Story::new().call("Read", json!({"file_path": "/box/repo/.claude/skills/greet/SKILL.md"})),
            Story::new().touching("Read", json!({}), &cat),
        ] {
            assert_eq!(of(story).status, Status::Met);
        }
        let other = of(Story::new().call("Skill", json!({"skill": "greeting"})));
        assert_eq!(other.actual.as_deref(), Some("it used `greeting`"));
        assert_eq!(of(Story::new().call("Write", json!({"file_path": "greet/SKILL.md"}))).status, Status::Unmet);
    }

    #[test]
    fn a_call_that_failed_is_no_use_and_is_told() {
        let mut evidence = Story::new().call("Skill", json!({"skill": "greet"})).evidence();
        evidence.trace.calls[0].result.as_mut().unwrap().is_error = true;
        let used = judged(&json!({"id": "a", "type": "skill_used", "skill": "greet"}), &evidence);
        assert_eq!(used.evidence, ["call 1 failed: Skill(skill=\"greet\")"]);
        let unused = judged(&json!({"id": "a", "type": "skill_not_used", "skill": "greet"}), &evidence);
        assert_eq!(unused.status, Status::Met);
    }
}
