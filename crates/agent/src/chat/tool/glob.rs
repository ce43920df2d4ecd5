//! The tool that finds files by name.

use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use ignore::WalkBuilder;
use serde_json::{Value, json};

use super::{Arguments, Files, Run, Tool, ToolOutput};
use crate::resolve::fixed_part;

/// Maximum number of paths listed.
const MAX_PATHS: usize = 1_000;

pub(super) const TOOL: Tool = Tool {
    name: "Glob",
    description: "Lists the files whose path matches a pattern such as `src/**/*.rs`, sorted by path.",
    properties,
    required: &["pattern"],
    run: Run::OnFiles(glob),
};

fn properties() -> Value {
    json!({
        "pattern": {"type": "string", "description": "The pattern: `*` and `?` stay within a name, `**` does not"},
        "path": {"type": "string", "description": "The directory to look in; the working directory if absent"},
    })
}

fn glob(arguments: &mut Arguments, files: &Files) -> ToolOutput {
    let pattern = arguments.required("pattern")?;
    let base = arguments.text("path")?.unwrap_or_else(|| ".".to_owned());
    // The part of the pattern before its first special character is a directory that may be anywhere, so it is checked
    // like any other path.
    let front = fixed_part(&pattern);
    let front = front.rfind('/').map_or("", |slash| &front[..=slash]);
    let path = if front.starts_with(['/', '~']) { front.to_owned() } else { format!("{base}/{front}") };
    let root = files.access.locate(&path)?;
    let matcher = GlobBuilder::new(&pattern[front.len()..])
        .literal_separator(true)
        .build()
        .map_err(|error| format!("`pattern` is not a valid glob pattern: {error}"))?
        .compile_matcher();
    if !root.is_dir() {
        return Err(format!("{} is not a directory", files.access.shown(&root)));
    }
    let mut found = Vec::new();
    for path in walk(&root, false) {
        if files.stopped.is_set() {
            return Err("stopped".to_owned());
        }
        if path.strip_prefix(&root).is_ok_and(|below| matcher.is_match(below)) {
            found.push(files.access.shown(&path));
        }
    }
    if found.is_empty() {
        return Ok("No files found.".to_owned());
    }
    found.sort();
    let more = found.len().saturating_sub(MAX_PATHS);
    found.truncate(MAX_PATHS);
    if more > 0 {
        found.push(format!("[… {more} more …]"));
    }
    Ok(found.join("\n"))
}

/// Returns every file below `root` without following links. A repository's own folder is omitted; with `ignoring`,
/// everything excluded by `.gitignore` files in the tree is omitted too.
pub(super) fn walk(root: &Path, ignoring: bool) -> impl Iterator<Item = PathBuf> + use<> {
    WalkBuilder::new(root)
        .standard_filters(false)
        .git_ignore(ignoring)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
        .build()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()))
        .map(ignore::DirEntry::into_path)
}

#[cfg(test)]
mod tests {
    use super::super::tests::test_folders;
    use super::*;

    #[test]
    fn files_are_sorted_by_path() {
        let folders = test_folders();
        for name in ["b.rs", "a/z.rs", "a/b/c.rs", "a/b/c.txt", ".hidden/h.rs", ".git/x.rs", ".gitignore"] {
            folders.file(name, "a/z.rs");
        }
        let glob = |pattern: &str| folders.on_files(&TOOL, json!({ "pattern": pattern })).unwrap();
        assert_eq!(glob("**/*.rs"), ".hidden/h.rs\na/b/c.rs\na/z.rs\nb.rs");
        assert_eq!(glob("*.rs"), "b.rs");
        assert_eq!(glob("a/b/*.{rs,txt}"), "a/b/c.rs\na/b/c.txt");
        assert_eq!(glob("a/z.rs"), "a/z.rs");
        assert_eq!(glob("./a/*.rs"), "a/z.rs");
        assert_eq!(glob("*.none"), "No files found.");
        assert_eq!(
            folders.on_files(&TOOL, json!({"pattern": "**/*", "path": "a/b"})),
            Ok("a/b/c.rs\na/b/c.txt".into())
        );
        let absolute = folders.access.work().join("a/*.rs");
        assert_eq!(folders.on_files(&TOOL, json!({ "pattern": absolute })), Ok("a/z.rs".into()));
    }

    #[test]
    fn a_pattern_that_leaves_the_sandbox_is_rejected_and_links_are_not_followed() {
        let folders = test_folders();
        std::os::unix::fs::symlink("/etc", folders.access.work().join("etc")).unwrap();
        for input in [json!({"pattern": "/etc/*"}), json!({"pattern": "../*"}), json!({"pattern": "etc/*"})] {
            let refused = folders.on_files(&TOOL, input.clone()).unwrap_err();
            assert!(refused.contains("outside the sandbox"), "{input}: {refused}");
        }
        assert_eq!(folders.on_files(&TOOL, json!({"pattern": "**/passwd"})), Ok("No files found.".into()));
        assert!(folders.on_files(&TOOL, json!({"pattern": "a{"})).unwrap_err().contains("not a valid glob pattern"));
    }
}
