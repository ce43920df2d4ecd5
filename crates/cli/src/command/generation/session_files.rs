//! Finds the sessions that coding agents keep on this machine.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agent::evidence;
use sandbox::Host;
use serde_json::Value;
use walkdir::WalkDir;

/// Number of bytes of a rollout in which its working directory is looked for. The first line contains instructions, too.
const HEAD: u64 = 256 * 1024;

/// Returns the newest session of Claude Code or Codex that began in one of the folders `of`.
pub(super) fn latest(host: &Host, of: &[PathBuf]) -> Option<PathBuf> {
    let claude_code = folder(host, "CLAUDE_CONFIG_DIR", ".claude").map(|folder| of_claude_code(&folder, of));
    let codex = folder(host, "CODEX_HOME", ".codex").map(|folder| of_codex(&folder, of));
    let own = claude_code.into_iter().chain(codex).flatten();
    own.max_by_key(|(at, _)| *at).map(|(_, path)| path)
}

type Found = Vec<(SystemTime, PathBuf)>;

/// Returns a folder of an agent: the one that a variable names, or the usual one at home.
fn folder(host: &Host, variable: &str, usual: &str) -> Option<PathBuf> {
    let set = host.var(variable).map(PathBuf::from);
    set.or_else(|| Some(host.home.as_ref()?.join(usual)))
}

/// Returns the sessions of Claude Code. Its folders are named after working directories.
fn of_claude_code(folder: &Path, of: &[PathBuf]) -> Found {
    let named = |path: &PathBuf| {
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        folder.join("projects").join(path.to_string_lossy().chars().map(letter).collect::<String>())
    };
    of.iter().flat_map(|path| below(&named(path), 1, |name| name.ends_with(".jsonl"))).collect()
}

/// Returns the sessions of Codex. Each names its working directory in its first line.
fn of_codex(folder: &Path, of: &[PathBuf]) -> Found {
    let is_rollout =
        |name: &str| name.starts_with("rollout-") && (name.ends_with(".jsonl") || name.ends_with(".jsonl.zst"));
    let mut found = below(&folder.join("sessions"), 4, is_rollout);
    found.retain(|(_, path)| working_directory(path).is_some_and(|directory| of.contains(&directory)));
    found
}

/// Returns the working directory in the first line of a rollout.
fn working_directory(path: &Path) -> Option<PathBuf> {
    let mut first = String::new();
    let lines = evidence::reader(BufReader::new(files::open(path).ok()?)).ok()?;
    lines.take(HEAD).read_line(&mut first).ok()?;
    let line: BTreeMap<String, Value> = serde_json::from_str(&first).ok()?;
    Some(PathBuf::from(line.get("payload")?.get("cwd")?.as_str()?))
}

/// Returns the files below `folder` whose names are wanted, with the time of their last change.
fn below(folder: &Path, depth: usize, is_wanted: impl Fn(&str) -> bool) -> Found {
    let entries = WalkDir::new(folder).max_depth(depth).into_iter().flatten();
    let wanted = entries.filter(|entry| entry.file_type().is_file() && is_wanted(&entry.file_name().to_string_lossy()));
    wanted.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.into_path()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sessions_of_the_project_are_found() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        };
        let of = [PathBuf::from("/home/ada/greeter")];
        let names = |found: Found| -> Vec<String> {
            found.iter().map(|(_, path)| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(of_claude_code(&home.path().join(".claude"), &of)), [""; 0]);
        write(".claude/projects/-home-ada-greeter/one.jsonl", "");
        write(".claude/projects/-home-ada-other/two.jsonl", "");
        assert_eq!(names(of_claude_code(&home.path().join(".claude"), &of)), ["one.jsonl"]);
        let rollout = |cwd: &str| format!("{{\"type\":\"session_meta\",\"payload\":{{\"cwd\":\"{cwd}\"}}}}\n");
        write(".codex/sessions/2026/11/28/rollout-1.jsonl", &rollout("/home/ada/greeter"));
        write(".codex/sessions/2026/11/28/rollout-2.jsonl", &rollout("/home/ada/other"));
        assert_eq!(names(of_codex(&home.path().join(".codex"), &of)), ["rollout-1.jsonl"]);
    }
}
