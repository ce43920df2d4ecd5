//! The tool that writes a whole file.

use serde_json::{Value, json};

use super::{Arguments, Files, Run, Tool, ToolOutput};

pub(super) const TOOL: Tool = Tool {
    name: "Write",
    description: "Writes a file, overwriting an existing one, and creates missing parent directories.",
    properties,
    required: &["file_path", "content"],
    run: Run::OnFiles(write),
};

fn properties() -> Value {
    json!({
        "file_path": {"type": "string", "description": "The file, absolute or relative to the working directory"},
        "content": {"type": "string", "description": "The whole content"},
    })
}

fn write(arguments: &mut Arguments, files: &Files) -> ToolOutput {
    let path = arguments.required("file_path")?;
    let content = arguments.required("content")?;
    let is_new = files.access.write(&path, content.as_bytes())?;
    let lines = model::text::counted(content.lines().count(), "line");
    Ok(format!("{} {path} ({lines}).", if is_new { "Created" } else { "Replaced" }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::test_folders;
    use super::*;

    #[test]
    fn a_file_is_created_with_its_parent_directories_or_replaced() {
        let folders = test_folders();
        let write = |content: &str| folders.on_files(&TOOL, json!({"file_path": "a/b/c.txt", "content": content}));
        assert_eq!(write("one\ntwo\n"), Ok("Created a/b/c.txt (2 lines).".into()));
        assert_eq!(write("one"), Ok("Replaced a/b/c.txt (1 line).".into()));
        assert_eq!(folders.content("a/b/c.txt"), "one");
    }

    #[test]
    fn nothing_is_written_outside_the_sandbox() {
        let folders = test_folders();
        let outside = folders.dir.path().join("outside.txt");
        let reply = folders.on_files(&TOOL, json!({"file_path": outside, "content": "x"}));
        assert!(reply.unwrap_err().contains("outside the sandbox"));
        assert!(!outside.exists());
    }
}
