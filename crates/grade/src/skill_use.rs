//! Whether an agent made use of a skill, as far as its calls show.

use model::{Access, Effect, Trace, TracedCall};
use serde_json::Value;

/// The file that a skill is read from.
const SKILL_FILE: &str = "SKILL.md";

/// The first call by which the agent made use of `skill`: it invoked the skill or read one of its files. A call that
/// failed is no use.
pub(crate) fn first_use(trace: &Trace, skill: &str) -> Option<usize> {
    trace.calls.iter().position(|traced| succeeded(traced) && names(traced, |name| name == skill))
}

/// Whether the agent made use of `skill`: it was triggered.
pub fn triggered(trace: &Trace, skill: &str) -> bool {
    first_use(trace, skill).is_some()
}

/// The skills that the agent made use of, as its calls name them, each once.
pub(crate) fn used(trace: &Trace) -> Vec<String> {
    let mut used: Vec<String> = Vec::new();
    for traced in trace.calls.iter().filter(|traced| succeeded(traced)) {
        names(traced, |name| {
            if !used.iter().any(|known| known == name) {
                used.push(name.to_owned());
            }
            false
        });
    }
    used
}

/// The call that tried to invoke `skill` and failed.
pub(crate) fn failed_use(trace: &Trace, skill: &str) -> Option<usize> {
    trace.calls.iter().position(|traced| !succeeded(traced) && names(traced, |name| name == skill))
}

fn succeeded(traced: &TracedCall) -> bool {
    !traced.result.as_ref().is_some_and(|result| result.is_error)
}

/// Whether `is` holds of a skill that the call is about.
fn names(traced: &TracedCall, mut is: impl FnMut(&str) -> bool) -> bool {
    let call = &traced.call;
    let text = |key: &str| call.input.get(key).and_then(Value::as_str);
    if call.effect == Effect::Skill {
        let invoked = text("skill").or_else(|| text("command")).or_else(|| text("name")).unwrap_or_default();
        let name = invoked.trim_start_matches('/').split_whitespace().next().unwrap_or_default();
        // A skill of a plugin is called `plugin:skill`.
        let bare = name.rsplit(':').next().unwrap_or_default();
        return !name.is_empty() && (is(bare) || (bare != name && is(name)));
    }
    let read = call.touches.iter().filter(|touch| touch.access == Access::Read).map(|touch| touch.resolved.as_str());
    let named = text("file_path").filter(|_| call.effect == Effect::Read);
    read.chain(named).filter_map(folder_of_skill).any(is)
}

/// The name of the skill that the file `path` is of: its `SKILL.md` wherever that is, and any file of a skill where agents
/// look for them, as in `.claude/skills/NAME/scripts/run.py`.
fn folder_of_skill(path: &str) -> Option<&str> {
    if let Some(folder) = path.strip_suffix(SKILL_FILE).and_then(|folder| folder.strip_suffix('/')) {
        return folder.rsplit('/').next().filter(|name| !name.is_empty());
    }
    let (front, behind) = path.rsplit_once("/skills/")?;
    let (name, file) = behind.split_once('/')?;
    let is_installed = front.rsplit('/').next().is_some_and(|home| home.starts_with('.'));
    (is_installed && !name.is_empty() && !file.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_installed_skill_is_the_skills() {
        for (path, expected) in [
            ("/box/repo/skills/greet/SKILL.md", Some("greet")),
            ("/box/repo/.claude/skills/greet/references/a.md", Some("greet")),
            ("/box/home/.codex/skills/greet/scripts/run.py", Some("greet")),
            ("/box/repo/skills/greet/references/a.md", None),
            ("/box/repo/.claude/skills/greet", None),
            ("/box/repo/.claude/skills/", None),
            ("/SKILL.md", None),
        ] {
            assert_eq!(folder_of_skill(path), expected, "{path}");
        }
    }
}
