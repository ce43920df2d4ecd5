//! `init --agent-skill`: a skill that teaches coding agents to write and run tests, and the lines about it in
//! `AGENTS.md`.

use std::path::{Path, PathBuf};

use crate::error::CliError;

const SKILL: &str = include_str!("../../template/agent-skill.md");
/// Folders in which coding agents look for skills: the first for Claude Code, the second for Codex, OpenCode and
/// others.
const FOLDERS: [&str; 2] = [".claude/skills", ".agents/skills"];
const AGENTS_FILE: &str = "AGENTS.md";
const BEGIN: &str = "<!-- trialrun: begin -->";
const END: &str = "<!-- trialrun: end -->";
const LINES: &str = "## Tests of agents, skills and prompts

`trialrun` runs these tests. Run `trialrun run` before and after you change an agent, a skill or a prompt. Check new tests
with `trialrun check` and `trialrun audit`. The skill `trialrun` in `.agents/skills/trialrun/SKILL.md` explains how to
write tests and read results.
";

/// Returns the files to write into the project in `dir`, except those that are up to date.
///
/// # Errors
/// Returns an error if the user changed one of the files and `force` is not set, or if a file cannot be read.
pub(super) fn files(dir: &Path, force: bool) -> Result<Vec<(PathBuf, String)>, CliError> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let path = PathBuf::from(folder).join("trialrun/SKILL.md");
        match read(&dir.join(&path))? {
            Some(text) if text == SKILL => {}
            Some(_) if !force => {
                let shown = dir.join(&path).display().to_string();
                return Err(CliError::usage(format!("would overwrite {shown}")).hint("`--force` overwrites"));
            }
            _ => files.push((path, SKILL.to_owned())),
        }
    }
    let agents = read(&dir.join(AGENTS_FILE))?.unwrap_or_default();
    let new = with_lines(&agents);
    if new != agents {
        files.push((PathBuf::from(AGENTS_FILE), new));
    }
    Ok(files)
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::environment(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Returns the text of `AGENTS.md` with `LINES` between the markers. Everything else stays unchanged.
fn with_lines(agents: &str) -> String {
    let lines = format!("{BEGIN}\n{LINES}{END}\n");
    if let Some((before, rest)) = agents.split_once(BEGIN)
        && let Some((_, after)) = rest.split_once(END)
    {
        return format!("{before}{lines}{}", after.strip_prefix('\n').unwrap_or(after));
    }
    match agents.trim_end() {
        "" => lines,
        text => format!("{text}\n\n{lines}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_added_once_and_everything_else_stays() {
        let first = with_lines("# Rules\n\nBe kind.\n\n");
        assert!(first.starts_with("# Rules\n\nBe kind.\n\n<!-- trialrun: begin -->\n## Tests"), "{first}");
        assert_eq!(with_lines(&first), first);
        let followed = format!("{first}\nMore.\n");
        assert_eq!(with_lines(&followed.replace("trialrun audit", "old")), followed);
        assert_eq!(with_lines(""), with_lines(&with_lines("")));
    }
}
