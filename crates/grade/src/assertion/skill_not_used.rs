//! `skill_not_used`: the agent did not use a skill.

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
    name: "skill_not_used",
    aliases: &["no_skill_used"],
    parameters: &[Parameter::Value("skill")],
    summary: "The agent did not use a skill.",
    fields: &[SKILL],
    pass: Example {
        assertion: || json!({"id": "leaves-it-alone", "type": "skill_not_used", "skill": "release-notes"}),
        evidence: || Story::new().call("Bash", json!({"command": "git log"})).answer("Here.").evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "leaves-it-alone", "type": "skill_not_used", "skill": "release-notes"}),
        evidence: || Story::new().call("Skill", json!({"skill": "release-notes"})).answer("Written.").evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
struct SkillNotUsed(Usage);

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (name, place) = reading.required_text("skill")?;
    Some(Arc::new(SkillNotUsed(Usage { definition: Definition::Skill, name, place })))
}

impl Matcher for SkillNotUsed {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        self.0.is_absent(&evidence.trace)
    }
}
