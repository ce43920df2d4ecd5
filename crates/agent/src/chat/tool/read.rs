//! The tool that reads a file.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Arguments, Files, Run, Tool, ToolOutput};

/// Default number of lines shown.
const LINES: u64 = 2_000;
/// Maximum length of a line in characters; longer lines are cut.
const LINE_LENGTH: usize = 2_000;
/// Approximate maximum size of the output, in bytes.
const MAX_OUTPUT_BYTES: usize = 100_000;
/// Number of bytes examined to detect a binary file.
const PROBE: usize = 8_000;

pub(super) const TOOL: Tool = Tool {
    name: "Read",
    description: "Reads a text file and shows it with line numbers, the first 2000 lines unless `offset` and `limit` say \
                  otherwise.",
    properties,
    required: &["file_path"],
    run: Run::OnFiles(read),
};

fn properties() -> Value {
    json!({
        "file_path": {"type": "string", "description": "The file, absolute or relative to the working directory"},
        "offset": {"type": "integer", "minimum": 1, "description": "The first line to show, from 1"},
        "limit": {"type": "integer", "minimum": 1, "description": "Number of lines to show"},
    })
}

fn read(arguments: &mut Arguments, files: &Files) -> ToolOutput {
    let path = arguments.required("file_path")?;
    // Some models count lines from 0.
    let offset = arguments.count("offset", 0)?.unwrap_or(1).max(1);
    let limit = arguments.count("limit", 1)?.unwrap_or(LINES);
    let content = files.access.read(&path)?;
    if is_binary(&content) {
        return Ok(format!("{path} is a binary file of {} bytes; it is not shown.", content.len()));
    }
    if content.is_empty() {
        return Ok(format!("{path} is empty."));
    }
    let text = String::from_utf8_lossy(&content);
    let mut shown = String::new();
    let mut next = 0_u64;
    for (number, line) in (1_u64..).zip(text.lines()) {
        next = number + 1;
        if number < offset {
            continue;
        }
        if number - offset >= limit || shown.len() > MAX_OUTPUT_BYTES {
            let total = text.lines().count();
            let _ = writeln!(shown, "[… {path} has {total} lines; continue with offset {number} …]");
            return Ok(shown);
        }
        let (line, cut) = model::text::head(line, LINE_LENGTH);
        let _ = writeln!(shown, "{number:>6}\t{line}{}", if cut { " [… line cut …]" } else { "" });
    }
    if shown.is_empty() {
        return Err(format!("{path} has only {} lines", next.saturating_sub(1)));
    }
    Ok(shown)
}

/// Returns `true` if `content` is not text.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content.iter().take(PROBE).any(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TestFolders, test_folders};
    use super::*;

    fn read(folders: &TestFolders, input: Value) -> ToolOutput {
        folders.on_files(&TOOL, input)
    }

    #[test]
    fn lines_are_numbered_and_a_range_can_be_selected() {
        let folders = test_folders();
        folders.file("a.txt", "one\ntwo\r\nthree");
        assert_eq!(
            read(&folders, json!({"file_path": "a.txt"})),
            Ok("     1\tone\n     2\ttwo\n     3\tthree\n".into())
        );
        let part = read(&folders, json!({"file_path": "a.txt", "offset": 2, "limit": 1})).unwrap();
        assert_eq!(part, "     2\ttwo\n[… a.txt has 3 lines; continue with offset 3 …]\n");
        assert_eq!(read(&folders, json!({"file_path": "a.txt", "offset": 9})), Err("a.txt has only 3 lines".into()));
    }

    #[test]
    fn long_files_and_lines_are_cut_with_a_notice() {
        let folders = test_folders();
        folders.file("long.txt", &"ü".repeat(3_000));
        let shown = read(&folders, json!({"file_path": "long.txt"})).unwrap();
        assert!(shown.ends_with("ü [… line cut …]\n") && shown.chars().count() < 2_100);
        folders.file("many.txt", &format!("{}\n", "x".repeat(1_000)).repeat(500));
        let shown = read(&folders, json!({"file_path": "many.txt"})).unwrap();
        assert!(
            shown.len() < 110_000 && shown.contains("many.txt has 500 lines; continue with offset 1"),
            "{}",
            shown.len()
        );
    }

    #[test]
    fn binary_files_are_reported() {
        let folders = test_folders();
        std::fs::write(folders.access.work().join("b"), b"a\0b").unwrap();
        std::fs::write(folders.access.work().join("latin"), b"caf\xe9\n").unwrap();
        folders.file("empty", "");
        assert_eq!(
            read(&folders, json!({"file_path": "b"})),
            Ok("b is a binary file of 3 bytes; it is not shown.".into())
        );
        assert_eq!(read(&folders, json!({"file_path": "latin"})), Ok("     1\tcaf\u{fffd}\n".into()));
        assert_eq!(read(&folders, json!({"file_path": "empty"})), Ok("empty is empty.".into()));
        assert_eq!(read(&folders, json!({"file_path": "none"})), Err("none does not exist".into()));
        assert!(read(&folders, json!({"file_path": "/etc/passwd"})).unwrap_err().contains("outside the sandbox"));
    }
}
