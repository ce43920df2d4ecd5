//! The tool that replaces text in a file.

use serde_json::{Value, json};

use super::{Arguments, Files, Run, Tool, ToolOutput};

pub(super) const TOOL: Tool = Tool {
    name: "Edit",
    description: "Replaces text in a file. The old text must occur in the file exactly as given, including line \
                  endings and indentation, and only once unless `replace_all` is set.",
    properties,
    required: &["file_path", "old_string", "new_string"],
    run: Run::OnFiles(edit),
};

fn properties() -> Value {
    json!({
        "file_path": {"type": "string", "description": "The file, absolute or relative to the working directory"},
        "old_string": {"type": "string", "description": "The text to replace"},
        "new_string": {"type": "string", "description": "The replacement text"},
        "replace_all": {"type": "boolean", "description": "Replace all occurrences"},
    })
}

fn edit(arguments: &mut Arguments, files: &Files) -> ToolOutput {
    let path = arguments.required("file_path")?;
    let old = arguments.required("old_string")?;
    let new = arguments.required("new_string")?;
    let all = arguments.flag("replace_all")?;
    if old.is_empty() {
        return Err("`old_string` is empty; use Write to create a file".to_owned());
    }
    if old == new {
        return Err("`old_string` and `new_string` are the same".to_owned());
    }
    let text = String::from_utf8(files.access.read(&path)?).map_err(|_| format!("{path} is not UTF-8 text"))?;
    let count = text.matches(&old).count();
    match count {
        0 => return Err(format!("`old_string` is not in {path}{}", almost(&text, &old))),
        1 => {}
        _ if all => {}
        _ => {
            return Err(format!(
                "`old_string` occurs {count} times in {path}; include more of the text around it, or set `replace_all`"
            ));
        }
    }
    files.access.write(&path, text.replace(&old, &new).as_bytes())?;
    Ok(format!("Edited {path} ({}).", model::text::counted(count, "replacement")))
}

/// Returns a hint if `old` occurs with different whitespace or line ends.
fn almost(text: &str, old: &str) -> &'static str {
    let words = model::text::folded;
    let wanted = words(old);
    if !wanted.is_empty() && words(text).contains(&wanted) {
        ", but it occurs with different spaces or line ends"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::test_folders;
    use super::*;

    #[test]
    fn a_string_that_occurs_once_is_replaced() {
        let folders = test_folders();
        folders.file("a.rs", "let ä = 1;\nlet b = 1;\n");
        let input = json!({"file_path": "a.rs", "old_string": "ä = 1", "new_string": "ä = 2"});
        assert_eq!(folders.on_files(&TOOL, input), Ok("Edited a.rs (1 replacement).".into()));
        assert_eq!(folders.content("a.rs"), "let ä = 2;\nlet b = 1;\n");
    }

    #[test]
    fn a_string_that_occurs_twice_needs_replace_all() {
        let folders = test_folders();
        folders.file("a.rs", "x x");
        let mut input = json!({"file_path": "a.rs", "old_string": "x", "new_string": "y"});
        let refused = folders.on_files(&TOOL, input.clone()).unwrap_err();
        assert!(refused.starts_with("`old_string` occurs 2 times in a.rs"), "{refused}");
        assert_eq!(folders.content("a.rs"), "x x");
        input["replace_all"] = json!(true);
        assert_eq!(folders.on_files(&TOOL, input), Ok("Edited a.rs (2 replacements).".into()));
        assert_eq!(folders.content("a.rs"), "y y");
    }

    #[test]
    fn failed_replacements_are_reported() {
        let folders = test_folders();
        folders.file("a.rs", "fn  a() {\n}");
        let edit = |file: &str, old: &str, new: &str| {
            let input = json!({"file_path": file, "old_string": old, "new_string": new});
            folders.on_files(&TOOL, input).unwrap_err()
        };
        assert_eq!(edit("a.rs", "gone", "x"), "`old_string` is not in a.rs");
        let spaces = "`old_string` is not in a.rs, but it occurs with different spaces or line ends";
        assert_eq!(edit("a.rs", "fn a() {}", "x"), "`old_string` is not in a.rs");
        assert_eq!(edit("a.rs", "fn a() {\n}", "x"), spaces);
        assert_eq!(edit("a.rs", "", "x"), "`old_string` is empty; use Write to create a file");
        assert_eq!(edit("a.rs", "x", "x"), "`old_string` and `new_string` are the same");
        assert_eq!(edit("none.rs", "x", "y"), "none.rs does not exist");
    }
}
