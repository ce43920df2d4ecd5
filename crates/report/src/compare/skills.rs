//! Comparison of the skills of two runs.

use model::SkillInfo;
use serde_json::{Value, json};

use crate::names::is_skill;
use crate::terminal::Paint;

/// Number of characters shown of a hash.
const HASH: usize = 12;

/// A skill in both runs, or in one of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SkillChange {
    before: Option<SkillInfo>,
    after: Option<SkillInfo>,
}

/// Returns each skill of two runs by name, those of the second run first. Prompts that were used in place of a skill
/// are omitted.
pub(super) fn changes(before: &[SkillInfo], after: &[SkillInfo]) -> Vec<SkillChange> {
    let named = |name: &str, skills: &[SkillInfo]| skills.iter().find(|skill| skill.name == name).cloned();
    let ours = after.iter().filter(|skill| is_skill(&skill.name));
    let ours = ours.map(|skill| SkillChange { before: named(&skill.name, before), after: Some(skill.clone()) });
    let gone = before.iter().filter(|skill| is_skill(&skill.name) && named(&skill.name, after).is_none());
    ours.chain(gone.map(|skill| SkillChange { before: Some(skill.clone()), after: None })).collect()
}

/// Returns the skills as JSON.
pub(super) fn to_json(skills: &[SkillChange]) -> Value {
    skills
        .iter()
        .map(|skill| json!({ "before": skill.before, "after": skill.after, "changed": skill.has_changed() }))
        .collect()
}

impl SkillChange {
    pub(super) fn has_changed(&self) -> bool {
        self.before.as_ref().map(|skill| &skill.content_hash) != self.after.as_ref().map(|skill| &skill.content_hash)
    }

    /// Formats the versions before and after.
    pub(super) fn describe(&self, paint: &Paint) -> String {
        let hash = |skill: &SkillInfo| -> String { skill.content_hash.chars().take(HASH).collect() };
        let version = |skill: &SkillInfo| match &skill.version {
            Some(version) => format!("{version} ({})", hash(skill)),
            None => hash(skill),
        };
        let line = match (&self.before, &self.after) {
            (Some(was), Some(is)) => {
                format!("skill {} changed: {} {} {}", is.name, version(was), paint.symbols().arrow, version(is))
            }
            (Some(was), None) => format!("skill {} only before: {}", was.name, version(was)),
            (None, Some(is)) => format!("skill {} only after: {}", is.name, version(is)),
            (None, None) => String::new(),
        };
        paint.folded(&line, 200)
    }
}
