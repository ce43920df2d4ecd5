//! Name of the skill under test. If the agent sees the user's own folder, the skill is provided as a plug-in, and the
//! CLI calls it `NAME:NAME`. The sign-in must not affect a verdict, so the skill is recorded as `NAME`.

use std::collections::HashSet;

use model::{Effect, Step};
use serde_json::Value;

/// Removes the plug-in's name from the skill under test.
#[derive(Debug, Default)]
pub(super) struct SkillName {
    /// `NAME:NAME` and `NAME`, if the skill is provided as a plug-in.
    names: Option<(String, String)>,
    /// Ids of calls whose results may contain the long name.
    calls: HashSet<String>,
}

impl SkillName {
    /// Creates a renamer for the plug-in `plugin`, if there is one.
    pub(super) fn new(plugin: Option<&str>) -> Self {
        let names = plugin.map(|name| (format!("{name}:{name}"), name.to_owned()));
        Self { names, calls: HashSet::new() }
    }

    /// Renames the skill in a call to the Skill tool and in its result.
    pub(super) fn settle(&mut self, step: &mut Step) {
        let Some((long, short)) = &self.names else { return };
        match step {
            Step::ToolCall(call) if call.effect == Effect::Skill => {
                let Some(Value::String(skill)) = call.input.get_mut("skill") else { return };
                if skill.trim_start_matches('/') == long.as_str() {
                    *skill = skill.replacen(long.as_str(), short, 1);
                }
                self.calls.insert(call.id.clone());
            }
            Step::ToolResult(result) if self.calls.remove(&result.id) => {
                result.content = result.content.replace(long.as_str(), short);
            }
            _ => {}
        }
    }
}
