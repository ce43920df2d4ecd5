//! Adds the agent of `gen --agent` to the project, so that `trialrun run` finds it.

use std::path::{Path, PathBuf};

use crate::error::CliError;
use crate::project::{ProjectContext, shown};

/// File that is created if the project has no configuration.
const FILE: &str = "trialrun.yaml";
/// Agents that `init` writes as a stand-in.
const STAND_INS: [&str; 2] = ["chat", "custom:agent.ts"];

/// Makes an address the project's default agent if the project has none, or only the stand-in that `init` wrote. Returns
/// a note about the change; `None` if the configuration stays as it is.
pub(super) fn add_agent(agent: &str, context: &ProjectContext) -> Result<Option<String>, CliError> {
    let agent = address(agent);
    let is_address = agent.starts_with("http://") || agent.starts_with("https://");
    let default = context.project.defaults.agent.as_ref();
    if !is_address
        || default.is_some_and(|set| address(&set.value) == agent || !STAND_INS.contains(&set.value.as_str()))
    {
        return Ok(None);
    }
    let file = context.project.file.clone().unwrap_or_else(|| context.cwd.join(FILE));
    let line = format!("agent: {}", serde_json::Value::from(agent));
    let Some(text) = changed(&file, default.map(|set| set.source.line), &line)? else { return Ok(None) };
    let name = shown(&file, &context.cwd);
    std::fs::write(&file, text).map_err(|error| CliError::environment(format!("cannot write {name}: {error}")))?;
    let before = default.map(|set| format!(" instead of `{}`", set.value)).unwrap_or_default();
    Ok(Some(format!("{name}: the default agent is now {agent}{before}")))
}

/// Returns the address of an agent behind HTTP as a user writes it, without the name of the agent before it.
pub(super) fn address(agent: &str) -> &str {
    agent.strip_prefix("http:").filter(|address| !address.starts_with("//")).unwrap_or(agent)
}

/// Returns the configuration with `line` instead of the line that sets the agent, or with `line` at its start. Only YAML
/// is changed.
fn changed(file: &PathBuf, set_on: Option<usize>, line: &str) -> Result<Option<String>, CliError> {
    let is_yaml = |path: &Path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_yaml(file) {
        return Ok(None);
    }
    if !file.exists() {
        return Ok(Some(format!("{line}\n")));
    }
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::usage(format!("cannot read {}: {error}", file.display())))?;
    let Some(number) = set_on else { return Ok(Some(format!("{line}\n{text}"))) };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(old) = number.checked_sub(1).and_then(|at| lines.get_mut(at)) else { return Ok(None) };
    let is_agent = old.trim_start().starts_with("agent:");
    let indent = old.len() - old.trim_start().len();
    *old = format!("{}{line}", " ".repeat(indent));
    Ok(is_agent.then(|| lines.join("\n") + "\n"))
}
