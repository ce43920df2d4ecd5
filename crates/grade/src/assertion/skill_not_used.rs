//! `skill_not_used`: the agent did without a skill.

use std::sync::Arc;

use model::Evidence;
use serde_json::json;

use super::{Assertion, Form, Matcher, Parameter, SKILL};
use crate::example::{Example, Story};
use crate::place::Place;
use crate::reading::Reading;
use crate::skill_use::first_use;
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "skill_not_used",
    aliases: &["no_skill_used"],
    parameters: &[Parameter::Value("skill")],
    summary: "The agent did not make use of a skill.",
    details: "What counts as use is told under `skill_used`.",
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
struct SkillNotUsed {
    skill: String,
    place: Place,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (skill, place) = reading.required_text("skill")?;
    Some(Arc::new(SkillNotUsed { skill, place }))
}

impl Matcher for SkillNotUsed {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        let trace = &evidence.trace;
        let skill = &self.skill;
        let Some(call) = first_use(trace, skill) else {
            return Verdict::met(format!("`{skill}` was not used")).place(&self.place);
        };
        let because = format!("`{skill}` was used, call {}", call + 1);
        Verdict::unmet(because, format!("no use of the skill `{skill}`"), trace.calls[call].call.summary())
            .place(&self.place)
            .at_call(trace, call)
    }
}
