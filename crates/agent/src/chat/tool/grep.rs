//! The tool that finds text in files.

use std::fmt::Write;
use std::path::PathBuf;

use globset::{Glob, GlobMatcher};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::super::access;
use super::glob::walk;
use super::read::is_binary;
use super::{Arguments, Files, Run, Tool, ToolOutput};

/// Default number of entries shown.
const ENTRIES: u64 = 250;
/// Maximum length of a line in characters; longer lines are cut.
const LINE_LENGTH: usize = 500;

const MODES: &[&str] = &["files_with_matches", "content", "count"];

pub(super) const TOOL: Tool = Tool {
    name: "Grep",
    description: "Searches the lines of text files for a regular expression. Files ignored by .gitignore are skipped.",
    properties,
    required: &["pattern"],
    run: Run::OnFiles(grep),
};

fn properties() -> Value {
    json!({
        "pattern": {"type": "string", "description": "The regular expression"},
        "path": {"type": "string", "description": "The file or directory to search; the working directory if absent"},
        "glob": {"type": "string", "description": "Search only files whose name or path matches, such as `*.rs`"},
        "output_mode": {
            "type": "string",
            "enum": MODES,
            "description": "Show the paths (the default), the lines, or the number of matching lines in each file"
        },
        "-i": {"type": "boolean", "description": "Ignore case"},
        "-n": {"type": "boolean", "description": "Accepted for compatibility; line numbers are always shown"},
        "head_limit": {"type": "integer", "minimum": 1, "description": "Number of lines of output to show"},
    })
}

fn grep(arguments: &mut Arguments, files: &Files) -> ToolOutput {
    let pattern = arguments.required("pattern")?;
    let path = arguments.text("path")?.unwrap_or_else(|| ".".to_owned());
    let filter = arguments.text("glob")?;
    let mode = arguments.choice("output_mode", MODES)?;
    let ignore_case = arguments.flag("-i")?;
    arguments.flag("-n")?;
    let limit = usize::try_from(arguments.count("head_limit", 1)?.unwrap_or(ENTRIES)).unwrap_or(usize::MAX);
    let regex = RegexBuilder::new(&pattern)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|error| format!("`pattern` is not a valid regular expression: {error}"))?;
    let filter = filter.as_deref().map(file_filter).transpose()?;
    let root = files.access.locate(&path)?;
    if !root.exists() {
        return Err(format!("{path} does not exist"));
    }
    let mut found = Vec::new();
    let mut searched: Vec<PathBuf> = walk(&root, true).collect();
    searched.sort();
    for file in searched {
        if files.stopped.is_set() {
            return Err("stopped".to_owned());
        }
        // If the search path is a file, its relative path is empty.
        let relative =
            file.strip_prefix(&root).ok().filter(|relative| !relative.as_os_str().is_empty()).unwrap_or(&file);
        if filter.as_ref().is_some_and(|filter| !filter.is_match(relative)) {
            continue;
        }
        // A link that leads outside, or an unreadable file, is skipped.
        let Ok(content) = access::read_file(&file) else { continue };
        if !is_binary(&content) {
            search(&regex, &String::from_utf8_lossy(&content), &files.access.shown(&file), mode, &mut found);
        }
    }
    if found.is_empty() {
        return Ok("No matches found.".to_owned());
    }
    let more = found.len().saturating_sub(limit);
    found.truncate(limit);
    let mut shown = found.join("\n");
    if more > 0 {
        let _ = write!(shown, "\n[… {more} more …]");
    }
    Ok(shown)
}

fn search(regex: &Regex, text: &str, name: &str, mode: &str, found: &mut Vec<String>) {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| regex.is_match(line));
    match mode {
        "content" => found.extend(lines.map(|(number, line)| {
            let (line, cut) = model::text::head(line, LINE_LENGTH);
            format!("{name}:{number}:{line}{}", if cut { " [… line cut …]" } else { "" })
        })),
        "count" => {
            let count = lines.count();
            if count > 0 {
                found.push(format!("{name}:{count}"));
            }
        }
        _ => {
            if lines.next().is_some() {
                found.push(name.to_owned());
            }
        }
    }
}

/// Compiles `glob`, which matches a file name at any depth, or a path below the search directory.
fn file_filter(glob: &str) -> Result<GlobMatcher, String> {
    let anywhere = if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") };
    let compiled = Glob::new(&anywhere).map_err(|error| format!("`glob` is not a valid glob pattern: {error}"))?;
    Ok(compiled.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TestFolders, test_folders};
    use super::*;

    fn tree() -> TestFolders {
        let folders = test_folders();
        folders.file("src/a.rs", "fn one() {}\nfn two() {}\n");
        folders.file("src/b.md", "Fn one\n");
        folders.file("built/c.rs", "fn one() {}\n");
        folders.file(".gitignore", "built/\n");
        std::fs::write(folders.access.work().join("bin"), b"fn one\0").unwrap();
        folders
    }

    #[test]
    fn matches_are_shown_in_three_output_modes() {
        let folders = tree();
        let grep = |input: Value| folders.on_files(&TOOL, input).unwrap();
        assert_eq!(grep(json!({"pattern": "fn \\w+"})), "src/a.rs");
        let lines = grep(json!({"pattern": "fn \\w+", "output_mode": "content", "-n": true}));
        assert_eq!(lines, "src/a.rs:1:fn one() {}\nsrc/a.rs:2:fn two() {}");
        assert_eq!(grep(json!({"pattern": "fn", "-i": true, "output_mode": "count"})), "src/a.rs:2\nsrc/b.md:1");
        assert_eq!(grep(json!({"pattern": "fn", "-i": true, "glob": "*.md"})), "src/b.md");
        assert_eq!(grep(json!({"pattern": "one", "path": "src", "glob": "b.*"})), "src/b.md");
        assert_eq!(
            grep(json!({"pattern": "two", "path": "src/a.rs", "output_mode": "content"})),
            "src/a.rs:2:fn two() {}"
        );
        assert_eq!(grep(json!({"pattern": "three"})), "No matches found.");
        let head = grep(json!({"pattern": "fn", "output_mode": "content", "head_limit": 1}));
        assert_eq!(head, "src/a.rs:1:fn one() {}\n[… 1 more …]");
    }

    #[test]
    fn invalid_arguments_are_reported_and_only_the_sandbox_is_searched() {
        let folders = tree();
        let grep = |input: Value| folders.on_files(&TOOL, input).unwrap_err();
        assert!(grep(json!({"pattern": "("})).starts_with("`pattern` is not a valid regular expression"));
        assert!(grep(json!({"pattern": "a", "glob": "a{"})).starts_with("`glob` is not a valid glob pattern"));
        assert!(grep(json!({"pattern": "a", "output_mode": "lines"})).contains("must be one of files_with_matches"));
        assert_eq!(grep(json!({"pattern": "a", "path": "none"})), "none does not exist");
        assert!(grep(json!({"pattern": "root", "path": "/etc"})).contains("outside the sandbox"));
        std::os::unix::fs::symlink("/etc/passwd", folders.access.work().join("passwd")).unwrap();
        assert_eq!(folders.on_files(&TOOL, json!({"pattern": "root"})), Ok("No matches found.".into()));
    }
}
