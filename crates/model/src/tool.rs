//! Canonical tools: the tools to which agents' own tools are mapped, and which of their arguments are paths and
//! commands.

use serde::{Deserialize, Serialize};

use crate::is_one_mistake;

/// Effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Runs a command.
    Shell,
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Searches for files or text.
    Search,
    /// Asks the user.
    Ask,
    /// Invokes a skill.
    Skill,
    /// Calls a server of the Model Context Protocol.
    Mcp,
    /// Anything else.
    Other,
}

/// Kind of access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads or lists it.
    Read,
    /// Creates, changes or removes it.
    Write,
}

/// How certain it is that a call accesses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// The path is a separate argument.
    Named,
    /// The path was extracted from a shell command, which is guesswork.
    Guessed,
}

/// Path in a call's arguments. The runner resolves it when it sees the call, while links are still as the agent found
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// Path as the agent wrote it.
    pub raw: String,
    /// Absolute path, with `~` expanded to the agent's home and symbolic links followed as far as the path exists.
    pub resolved: String,
    /// Kind of access.
    pub access: Access,
    /// Certainty of the access.
    pub certainty: Certainty,
}

/// Canonical tool.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Name, as assertions write it.
    pub name: &'static str,
    /// Effect.
    pub effect: Effect,
    /// Arguments that are paths, with the kind of access.
    pub paths: &'static [(&'static str, Access)],
    /// Arguments that are glob patterns, whose fixed front part is a path.
    pub globs: &'static [&'static str],
    /// Most descriptive argument, shown next to the name.
    pub key_argument: Option<&'static str>,
}

const fn tool(
    name: &'static str,
    effect: Effect,
    paths: &'static [(&'static str, Access)],
    globs: &'static [&'static str],
    key_argument: &'static str,
) -> Tool {
    let key_argument = if key_argument.is_empty() { None } else { Some(key_argument) };
    Tool { name, effect, paths, globs, key_argument }
}

/// All canonical tools. Agents map their own names to these; a name that is not in this list is kept unchanged.
pub const TOOLS: &[Tool] = &[
    tool("Bash", Effect::Shell, &[], &[], "command"),
    tool("BashOutput", Effect::Other, &[], &[], "bash_id"),
    tool("KillShell", Effect::Other, &[], &[], "shell_id"),
    tool("Read", Effect::Read, &[("file_path", Access::Read)], &[], "file_path"),
    tool("Write", Effect::Write, &[("file_path", Access::Write)], &[], "file_path"),
    tool("Edit", Effect::Write, &[("file_path", Access::Write)], &[], "file_path"),
    tool("MultiEdit", Effect::Write, &[("file_path", Access::Write)], &[], "file_path"),
    tool("NotebookEdit", Effect::Write, &[("notebook_path", Access::Write)], &[], "notebook_path"),
    tool("NotebookRead", Effect::Read, &[("notebook_path", Access::Read)], &[], "notebook_path"),
    tool("LS", Effect::Search, &[("path", Access::Read)], &[], "path"),
    tool("Glob", Effect::Search, &[("path", Access::Read)], &["pattern"], "pattern"),
    tool("Grep", Effect::Search, &[("path", Access::Read)], &[], "pattern"),
    tool("AskUserQuestion", Effect::Ask, &[], &[], "question"),
    tool("Questions", Effect::Ask, &[], &[], "question"),
    tool("Skill", Effect::Skill, &[], &[], "skill"),
    tool("SlashCommand", Effect::Skill, &[], &[], "command"),
    tool("Agent", Effect::Other, &[], &[], "description"),
    tool("Task", Effect::Other, &[], &[], "description"),
    tool("TaskOutput", Effect::Other, &[], &[], "task_id"),
    tool("TaskStop", Effect::Other, &[], &[], "task_id"),
    tool("TodoWrite", Effect::Other, &[], &[], ""),
    tool("ToolSearch", Effect::Other, &[], &[], "query"),
    tool("WebFetch", Effect::Other, &[], &[], "url"),
    tool("WebSearch", Effect::Other, &[], &[], "query"),
    tool("EnterPlanMode", Effect::Other, &[], &[], ""),
    tool("ExitPlanMode", Effect::Other, &[], &[], "plan"),
    tool("EnterWorktree", Effect::Other, &[("path", Access::Write)], &[], "name"),
    tool("ExitWorktree", Effect::Other, &[], &[], "action"),
    tool("StructuredOutput", Effect::Other, &[], &[], ""),
];

/// Returns the canonical tool with that name; case matters.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns the canonical tool that differs from `name` in one letter, or in the order of two. The names of other tools are
/// not known, so a plural and a name that differs only in the case of its letters may be right. A name of three letters
/// is only misspelt if its first letter is right.
pub fn misspelt(name: &str) -> Option<&'static str> {
    let is_alike = |tool: &&str| name.len() > 3 || tool.chars().next() == name.chars().next();
    let known = || TOOLS.iter().map(|tool| tool.name).filter(is_alike);
    if name.len() < 3 || known().any(|tool| tool.eq_ignore_ascii_case(name.strip_suffix('s').unwrap_or(name))) {
        return None;
    }
    known().find(|tool| tool.len() > 3 && is_one_mistake(name, tool))
}

/// Returns the arguments of a canonical tool, if they are known. Vendors add arguments from time to time.
pub fn arguments(name: &str) -> Option<&'static [&'static str]> {
    const ARGUMENTS: &[(&str, &[&str])] = &[
        ("Bash", &["command", "description", "timeout", "run_in_background", "dangerouslyDisableSandbox"]),
        ("Read", &["file_path", "offset", "limit", "pages"]),
        ("Write", &["file_path", "content"]),
        ("Edit", &["file_path", "old_string", "new_string", "replace_all"]),
        ("MultiEdit", &["file_path", "edits"]),
        ("NotebookEdit", &["notebook_path", "cell_id", "new_source", "cell_type", "edit_mode"]),
        ("Glob", &["pattern", "path"]),
        (
            "Grep",
            &[
                "pattern",
                "path",
                "glob",
                "output_mode",
                "-A",
                "-B",
                "-C",
                "-i",
                "-n",
                "-o",
                "context",
                "type",
                "head_limit",
                "offset",
                "multiline",
            ],
        ),
        ("AskUserQuestion", &["questions", "question", "answers", "annotations", "metadata"]),
        ("Skill", &["skill", "args"]),
        ("WebFetch", &["url", "prompt"]),
        ("WebSearch", &["query", "allowed_domains", "blocked_domains"]),
    ];
    ARGUMENTS.iter().find(|(tool, _)| *tool == name).map(|(_, arguments)| *arguments)
}

/// Names of shells in other agents, whose calls keep their names: in recorded answers, and over HTTP.
const SHELLS: &[&str] = &[
    "PowerShell",
    "bash",
    "exec",
    "exec_command",
    "execute_bash",
    "execute_command",
    "local_shell",
    "run_command",
    "run_in_terminal",
    "run_shell_command",
    "run_terminal_cmd",
    "shell",
    "shell_command",
    "terminal",
];

/// Returns the effect of a call to a tool named `name`.
pub fn effect(name: &str) -> Effect {
    match find(name) {
        Some(tool) => tool.effect,
        None if SHELLS.contains(&name) => Effect::Shell,
        None if name.starts_with("mcp__") => Effect::Mcp,
        None => Effect::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_key_arguments_are_found() {
        for (index, tool) in TOOLS.iter().enumerate() {
            assert!(TOOLS[..index].iter().all(|other| other.name != tool.name), "{}", tool.name);
        }
        assert_eq!(find("Bash").and_then(|tool| tool.key_argument), Some("command"));
        assert_eq!(effect("mcp__db__query"), Effect::Mcp);
        assert_eq!((effect("bash"), effect("weather")), (Effect::Shell, Effect::Other));
    }
}
