//! Detects use of a skill from an agent's calls: the agent invoked the skill, or read or ran its files.

mod command;

use model::{Access, Definition, Effect, FileChange, FoundFile, ToolCall, Trace, TracedCall};
use serde_json::Value;

use crate::evidence::paths;
use crate::glob;

/// Main file of a skill.
const SKILL_FILE: &str = "SKILL.md";

/// Returns the first call that used `skill`: the agent invoked it, or read or ran one of its files. A failed call does
/// not count, unless its output shows that the skill was read anyway.
pub(crate) fn first_use(trace: &Trace, skill: &str) -> Option<usize> {
    trace
        .calls
        .iter()
        .position(|traced| names(traced, |name| is_called(name, skill)) && (succeeded(traced) || shows(traced, skill)))
}

/// Returns `true` if the agent used `skill`, that is, the skill was triggered.
pub fn triggered(trace: &Trace, skill: &str) -> bool {
    first_use(trace, skill).is_some()
}

/// Returns `true` if the agent used the skill or the sub-agent `name`.
pub fn made_use_of(trace: &Trace, definition: Definition, name: &str) -> bool {
    match definition {
        Definition::Skill => triggered(trace, name),
        Definition::SubAgent => first_delegation(trace, name).is_some(),
        Definition::Plugin | Definition::SkillsOfPlugin => !used(trace).is_empty() || !delegates(trace).is_empty(),
    }
}

/// Returns the first successful call that may have used a skill or a sub-agent, but does not show which one: its
/// arguments are not known, or do not contain the name of a skill.
pub(crate) fn unreadable_use(trace: &Trace, definition: Definition) -> Option<&ToolCall> {
    let is_unreadable = |call: &ToolCall| match definition {
        Definition::SubAgent => DELEGATING.contains(&call.name.as_str()) && !call.input.is_object(),
        Definition::Skill | Definition::Plugin | Definition::SkillsOfPlugin => match call.effect {
            Effect::Skill => invoked(call).is_empty(),
            Effect::Shell | Effect::Read | Effect::Search => !call.input.is_object(),
            Effect::Write | Effect::Ask | Effect::Mcp | Effect::Other => false,
        },
    };
    trace.calls.iter().filter(|traced| succeeded(traced)).map(|traced| &traced.call).find(|call| is_unreadable(call))
}

/// Tools with which agents delegate a task to a sub-agent.
const DELEGATING: [&str; 2] = ["Agent", "Task"];

/// Returns the sub-agent to which a call delegates a task, as named in the call.
fn delegate(traced: &TracedCall) -> Option<&str> {
    let is_delegating = DELEGATING.contains(&traced.call.name.as_str());
    traced.call.input.get("subagent_type").filter(|_| is_delegating)?.as_str()
}

/// Returns `true` if `written`, a name in a call, is the sub-agent `name`. A plugin's sub-agent is called
/// `plugin:name`.
fn is_delegate(written: &str, name: &str) -> bool {
    written == name || written.rsplit(':').next() == Some(name)
}

/// Returns the first successful call that delegated a task to the sub-agent `name`.
pub(crate) fn first_delegation(trace: &Trace, name: &str) -> Option<usize> {
    let hands_over = |traced: &TracedCall| delegate(traced).is_some_and(|written| is_delegate(written, name));
    trace.calls.iter().position(|traced| hands_over(traced) && succeeded(traced))
}

/// Returns the first failed call that tried to delegate a task to the sub-agent `name`.
pub(crate) fn failed_delegation(trace: &Trace, name: &str) -> Option<usize> {
    let hands_over = |traced: &TracedCall| delegate(traced).is_some_and(|written| is_delegate(written, name));
    trace.calls.iter().position(|traced| hands_over(traced) && !succeeded(traced))
}

/// Returns the sub-agents to which a task was delegated, without duplicates.
pub(crate) fn delegates(trace: &Trace) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for name in trace.calls.iter().filter(|traced| succeeded(traced)).filter_map(delegate) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Returns the skills that the agent used, as named in its calls, without duplicates.
pub(crate) fn used(trace: &Trace) -> Vec<String> {
    let mut used: Vec<String> = Vec::new();
    for traced in trace.calls.iter().filter(|traced| succeeded(traced)) {
        names(traced, |name| {
            if !is_pattern(name) && !used.iter().any(|known| known == name) {
                used.push(name.to_owned());
            }
            false
        });
    }
    used
}

/// Returns the skill that a call of another tool than `Skill` used: agents without such a tool read the skill's file.
pub(crate) fn read_skill(traced: &TracedCall) -> Option<String> {
    let mut read = None;
    if traced.call.effect != Effect::Skill && succeeded(traced) {
        names(traced, |name| {
            if !is_pattern(name) {
                read.get_or_insert_with(|| name.to_owned());
            }
            false
        });
    }
    read
}

/// Returns the first failed call that tried to use `skill`.
pub(crate) fn failed_use(trace: &Trace, skill: &str) -> Option<usize> {
    trace.calls.iter().position(|traced| !succeeded(traced) && names(traced, |name| is_called(name, skill)))
}

/// Returns `true` if `name`, as in a call, is `skill` or a pattern that matches it.
fn is_called(name: &str, skill: &str) -> bool {
    name == skill || (is_pattern(name) && glob::matches(name, skill))
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

fn succeeded(traced: &TracedCall) -> bool {
    !traced.result.as_ref().is_some_and(|result| result.is_error)
}

/// Returns `true` if the output of a failed command shows the head of the skill's file.
fn shows(traced: &TracedCall, skill: &str) -> bool {
    let is_head =
        |line: &str| line.strip_prefix("name:").is_some_and(|name| name.trim().trim_matches(['"', '\'']) == skill);
    traced.call.effect == Effect::Shell
        && traced.result.as_ref().is_some_and(|result| result.content.lines().any(is_head))
}

/// Returns the name of the skill that a call invokes; empty if the call does not contain it.
fn invoked(call: &ToolCall) -> &str {
    let text = |key: &str| call.input.get(key).and_then(Value::as_str);
    let invoked = text("skill").or_else(|| text("command")).or_else(|| text("name")).unwrap_or_default();
    invoked.trim_start_matches('/').split_whitespace().next().unwrap_or_default()
}

/// Returns `true` if `is` returns true for a skill that the call is about.
fn names(traced: &TracedCall, mut is: impl FnMut(&str) -> bool) -> bool {
    let call = &traced.call;
    let text = |key: &str| call.input.get(key).and_then(Value::as_str);
    match call.effect {
        Effect::Skill => {
            let name = invoked(call);
            // A plugin's skill is called `plugin:skill`.
            let bare = name.rsplit(':').next().unwrap_or_default();
            !name.is_empty() && (is(bare) || (bare != name && is(name)))
        }
        Effect::Shell => {
            let folder = text("workdir").unwrap_or_default();
            let reads =
                call.command().and_then(Value::as_str).map(|line| command::reads(line, folder)).unwrap_or_default();
            reads.iter().any(|read| is_of_skill(&read.path, read.is_search, &mut is))
        }
        Effect::Read => touched(traced).any(|path| is_of_skill(path, false, &mut is)),
        // Listing files and searching for file names is not reading them.
        Effect::Search if call.name == "Grep" => touched(traced).any(|path| is_of_skill(path, true, &mut is)),
        _ => false,
    }
}

/// Returns the paths that a call reads: as resolved by the harness, if it did so, and as written.
fn touched(traced: &TracedCall) -> impl Iterator<Item = &str> {
    let call = &traced.call;
    let resolved =
        call.touches.iter().filter(|touch| touch.access == Access::Read).map(|touch| touch.resolved.as_str());
    let written = ["file_path", "path"].into_iter().filter_map(|key| call.input.get(key)?.as_str());
    resolved.chain(written)
}

/// Applies `is` to the skill that contains the file at `path`. If `is_search` is true, `path` may also be a directory
/// that is searched completely.
fn is_of_skill(path: &str, is_search: bool, is: &mut impl FnMut(&str) -> bool) -> bool {
    if !path.contains("skills/") && !path.contains(SKILL_FILE) {
        return false;
    }
    let path = paths::normalised(path);
    let whole = if is_search { format!("{path}/.") } else { String::new() };
    let found = folder_of_skill(&path).or_else(|| folder_of_skill(&whole));
    found.is_some_and(is)
}

/// Returns the name of the skill that contains the file at `path`: for a `SKILL.md` anywhere, and for any skill file
/// in a folder where agents look for skills, such as `.claude/skills/NAME/scripts/run.py`.
fn folder_of_skill(path: &str) -> Option<&str> {
    if let Some(folder) = path.strip_suffix(SKILL_FILE).and_then(|folder| folder.strip_suffix('/')) {
        return folder.rsplit('/').next().filter(|name| !name.is_empty());
    }
    let (front, behind) = path.rsplit_once("/skills/")?;
    let (name, file) = behind.split_once('/')?;
    let is_installed = front.rsplit('/').next().is_some_and(|home| home.starts_with('.'));
    (is_installed && !name.is_empty() && !file.is_empty()).then_some(name)
}

/// Returns `files` without those that were installed for the agent, such as the skill under test: files in a folder from
/// which an agent loads skills, sub-agents or plug-ins, unless the agent changed them.
pub(crate) fn without_installed<'e>(files: &'e [FoundFile], changes: &[FileChange]) -> Vec<&'e FoundFile> {
    let is_changed = |path: &str| changes.iter().any(|change| change.path == path);
    files.iter().filter(|file| !is_in_agents_folder(&file.path) || is_changed(&file.path)).collect()
}

/// Returns `true` if `path`, relative to the working directory, is in a folder such as `.claude/skills`.
fn is_in_agents_folder(path: &str) -> bool {
    let mut names = path.split('/');
    let (home, folder) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    home.starts_with('.') && ["skills", "agents", "agent", "plugins"].contains(&folder) && names.next().is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::example::EvidenceBuilder;

    #[test]
    fn a_file_of_an_installed_skill_belongs_to_the_skill() {
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

    fn bash(command: &str) -> Trace {
        EvidenceBuilder::new().call("Bash", json!({"command": command})).evidence().trace
    }

    #[test]
    fn a_command_that_reads_a_skill_uses_it() {
        for command in [
            "cat .agents/skills/greet/SKILL.md",
            "sed -n '1,40p' /box/work/.agents/skills/greet/SKILL.md",
            "git status && head -5 ./.claude/skills/greet/SKILL.md | tail -2",
            "cd .agents/skills/greet && cat references/words.md",
            "cd .agents && cd skills; less greet/SKILL.md",
            "rg -n hello .agents/skills/greet",
            "grep -r hello ~/.claude/skills/greet/references",
            "cat .agents/skills/*/SKILL.md",
            "bash -lc 'cat .opencode/skills/greet/SKILL.md'",
            "python3 .claude/skills/greet/scripts/run.py Ada",
            "python3 -c \"print(open('.agents/skills/greet/SKILL.md').read())\"",
            "./.claude/skills/greet/scripts/run.sh",
            "dir=.agents/skills/greet; cat $dir/SKILL.md \"${dir}/references/a.md\"",
            "echo \"$(cat $HOME/.claude/skills/greet/SKILL.md)\"",
            "sudo cat /root/.codex/skills/greet/SKILL.md",
        ] {
            assert!(triggered(&bash(command), "greet"), "{command}");
            assert!(!triggered(&bash(command), "other") || command.contains('*'), "{command}");
        }
    }

    #[test]
    fn a_command_that_only_names_a_skill_does_not_use_it() {
        for command in [
            "ls -la .agents/skills/greet",
            "find . -name SKILL.md",
            "git add .agents/skills/greet/SKILL.md && git commit -m 'cat .agents/skills/greet/SKILL.md'",
            "echo read .agents/skills/greet/SKILL.md",
            "rm -rf .agents/skills/greet/SKILL.md",
            "rg greet .",
            "cat SKILL.md",
            "cat .agents/skills/greeting/SKILL.md",
            "cat docs/skills/greet.md",
            "echo x > .agents/skills/greet/notes.md",
        ] {
            assert!(!triggered(&bash(command), "greet"), "{command}");
        }
        assert!(!triggered(&bash(&format!("cat {}", "$(".repeat(5000))), "greet"));
    }

    #[test]
    fn files_of_a_command_are_relative_to_its_working_directory() {
        let run = |command: &str, folder: &str| {
            let input = json!({"command": command, "workdir": folder});
            triggered(&EvidenceBuilder::new().call("Bash", input).evidence().trace, "greet")
        };
        assert!(run("cat SKILL.md", "/box/work/.agents/skills/greet"));
        assert!(!run("cat SKILL.md", "/box/work"));
    }

    #[test]
    fn tools_that_read_use_a_skill_and_tools_that_list_do_not() {
        let with = |tool: &str, input: serde_json::Value| {
            triggered(&EvidenceBuilder::new().call(tool, input).evidence().trace, "greet")
        };
        assert!(with("Read", json!({"file_path": ".opencode/skills/greet/references/a.md"})));
        assert!(with("Grep", json!({"pattern": "x", "path": ".opencode/skills/greet"})));
        assert!(!with("LS", json!({"path": ".opencode/skills/greet/references"})));
        assert!(!with("Glob", json!({"pattern": "*", "path": ".opencode/skills/greet"})));
        assert!(!with("Edit", json!({"file_path": ".opencode/skills/greet/SKILL.md"})));
    }

    #[test]
    fn a_command_that_printed_the_skill_before_failing_uses_it() {
        let failed = |content: &str| {
            let mut trace = bash("cat .agents/skills/greet/SKILL.md; ./check");
            let result = trace.calls[0].result.as_mut().unwrap();
            (result.content, result.is_error) = (content.to_owned(), true);
            triggered(&trace, "greet")
        };
        assert!(failed("---\nname: greet\ndescription: Greets.\n---\n./check: not found\n"));
        assert!(!failed("cat: .agents/skills/greet/SKILL.md: No such file or directory\n"));
    }
}
