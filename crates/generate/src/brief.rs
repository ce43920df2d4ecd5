//! A profile as text for a model.

use crate::profile::{Parameter, Profile};
use crate::target::Target;

/// Maximum length of a brief, in characters. A larger profile is cut, beginning with its instructions.
const LONGEST: usize = 60_000;

/// Returns the facts that tests can be about, each with its id, and the tools with their parameters.
pub(crate) fn brief(profile: &Profile, targets: &[Target]) -> String {
    let mut text = String::new();
    if let Some(name) = &profile.name {
        text.push_str(&format!("name: {name}\n"));
    }
    for target in targets {
        let line = match target.id.strip_prefix("tool:") {
            Some(name) => format!("[{}] {}\n", target.id, tool(profile, name)),
            None => format!("[{}] {}\n", target.id, target.text),
        };
        if text.len() + line.len() > LONGEST {
            break;
        }
        text.push_str(&line);
    }
    text
}

/// Returns a tool with its parameters and its description.
fn tool(profile: &Profile, name: &str) -> String {
    let Some(tool) = profile.tools.iter().find(|tool| tool.name == name) else { return name.to_owned() };
    let parameter = |one: &Parameter| {
        let kind = one.kind.as_ref().map(|kind| format!(": {kind}")).unwrap_or_default();
        format!("{}{}{kind}", one.name, if one.required { "" } else { "?" })
    };
    let parameters: Vec<String> = tool.parameters.iter().map(parameter).collect();
    let description = tool.description.as_ref().map(|text| format!(" - {text}")).unwrap_or_default();
    format!("{name}({}){description}", parameters.join(", "))
}
