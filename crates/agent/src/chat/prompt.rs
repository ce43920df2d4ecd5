//! System prompt of the embedded agent.

use std::fmt::Write;
use std::path::Path;

use super::skills::InstalledSkill;

/// Returns the system prompt in parts: first the agent's own part, then the user's parts in order.
pub(super) fn system(
    work: Option<&Path>,
    skills: &[InstalledSkill],
    added: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let mut own = String::from(
        "You work on a task for a user, with the tools you are given. The user does not watch while you work: do what was asked, \
         check that it is done, and then say in a few words what you did. Ask the user only with AskUserQuestion, and \
         only what you cannot find out yourself.",
    );
    if let Some(work) = work {
        let _ = write!(own, "\n\nThe working directory is {}.", work.display());
    }
    if !skills.is_empty() {
        own.push_str("\n\nInstalled skills, to be loaded with Skill before a task they are for:");
        for skill in skills {
            let _ = write!(own, "\n- {}", skill.name);
            if !skill.description.is_empty() {
                let _ = write!(own, ": {}", skill.description);
            }
        }
    }
    std::iter::once(own).chain(added).collect()
}
