//! Adds the agent of `gen --agent` to the project, so that `trialrun run` finds it.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::discovery::address;
use crate::error::CliError;
use session::{Session, shown};

/// File that is created if the project has no configuration.
const FILE: &str = "trialrun.yaml";
/// Agent that `init` writes as a stand-in.
const STAND_IN: &str = "custom:agent.ts";

/// Makes an address the project's default agent if the project has none, or only the stand-in that `init` wrote.
/// Returns a note about the change; `None` if the configuration stays unchanged.
pub(super) fn add_agent(agent: &str, context: &Session) -> Result<Option<String>, CliError> {
    let agent = address(agent);
    let is_address = agent.starts_with("http://") || agent.starts_with("https://");
    let default = context.project.defaults.agent.as_ref();
    if !is_address || default.is_some_and(|set| address(&set.value) == agent || set.value != STAND_IN) {
        return Ok(None);
    }
    let file = context.project.file.clone().unwrap_or_else(|| context.cwd.join(FILE));
    let line = format!("agent: {}", serde_json::Value::from(agent));
    let Some(text) = changed(&file, default.map(|set| set.source.line), &line)? else { return Ok(None) };
    let name = shown(&file, &context.cwd);
    let failed = |error: std::io::Error| CliError::environment(format!("cannot write {name}: {error}"));
    if !replace(&file, &text, agent).map_err(failed)? {
        return Ok(None);
    }
    let before = default.map(|set| format!(" instead of `{}`", set.value)).unwrap_or_default();
    Ok(Some(format!("{name}: the default agent is now {agent}{before}")))
}

/// Replaces the configuration atomically. Returns `false` and changes nothing if the new text would not set `agent`,
/// for example in a file with several documents.
fn replace(file: &Path, text: &str, agent: &str) -> std::io::Result<bool> {
    // A symbolic link is kept.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut written = tempfile::Builder::new().suffix(".yaml").tempfile_in(folder)?;
    written.write_all(text.as_bytes())?;
    let document = suite::read_document(written.path(), FILE);
    let is_set = document.is_ok_and(|document| {
        let defaults = document.get("defaults").and_then(|defaults| defaults.get("agent"));
        document.get("agent").or(defaults).and_then(|set| set.as_str()) == Some(agent)
    });
    if is_set {
        let mode = std::fs::metadata(&file).map_or_else(|_| Permissions::from_mode(0o644), |meta| meta.permissions());
        written.as_file().set_permissions(mode)?;
        written.persist(&file).map_err(|error| error.error)?;
    }
    Ok(is_set)
}

/// Maximum size of a configuration that is changed, in bytes.
const MAX_CONFIGURATION_BYTES: u64 = 16 << 20;

/// Returns the configuration with `line` in place of the line that sets the agent, or with `line` at its start. Only
/// YAML is changed.
fn changed(file: &Path, set_on: Option<usize>, line: &str) -> Result<Option<String>, CliError> {
    let is_yaml = |path: &Path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_yaml(file) {
        return Ok(None);
    }
    if !file.exists() {
        return Ok(Some(format!("{line}\n")));
    }
    let text = files::read_named_text(file, MAX_CONFIGURATION_BYTES)
        .map_err(|error| CliError::usage(format!("cannot read {}: {error}", file.display())))?;
    let Some(number) = set_on else { return Ok(Some(format!("{line}\n{text}"))) };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(old) = number.checked_sub(1).and_then(|at| lines.get_mut(at)) else { return Ok(None) };
    let is_agent = old.trim_start().starts_with("agent:");
    let indent = old.len() - old.trim_start().len();
    *old = format!("{}{line}", " ".repeat(indent));
    Ok(is_agent.then(|| lines.join("\n") + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_with_the_agent_changes_and_a_file_that_would_break_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trialrun.yaml");
        let agent = "http://127.0.0.1:1/";
        let line = "agent: \"http://127.0.0.1:1/\"";
        let change = |text: &str, set_on: Option<usize>| {
            std::fs::write(&file, text).unwrap();
            let changed = changed(&file, set_on, line).unwrap();
            let is_written = changed.is_some_and(|text| replace(&file, &text, agent).unwrap());
            (is_written, std::fs::read_to_string(&file).unwrap())
        };
        let (is_written, text) = change("# mine\ndefaults:\n  agent: chat # or another\n  trials: 3\n", Some(3));
        assert!(is_written);
        assert_eq!(text, "# mine\ndefaults:\n  agent: \"http://127.0.0.1:1/\"\n  trials: 3\n");
        let (is_written, text) = change("skills_dir: ./s\n", None);
        assert!(is_written && text.starts_with("agent: ") && text.ends_with("skills_dir: ./s\n"));
        for text in ["{ skills_dir: ./s }\n", "---\nskills_dir: ./s\n", "defaults: { agent: chat }\n"] {
            let set_on = text.contains("agent").then_some(1);
            assert_eq!(change(text, set_on), (false, text.to_owned()));
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "no temporary file is left");
    }
}
