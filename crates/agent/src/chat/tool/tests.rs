//! Temporary directories like those of a sandbox, for tests of tools that work only on files.

use std::sync::Arc;

use serde_json::Value;

use super::{Arguments, Files, NAMES, Run, Stopped, TOOLS, Tool, ToolOutput};
use crate::chat::access::FileAccess;

pub(super) struct TestFolders {
    pub(super) dir: tempfile::TempDir,
    pub(super) access: Arc<FileAccess>,
}

pub(super) fn test_folders() -> TestFolders {
    let dir = tempfile::tempdir().unwrap();
    for name in ["work", "home", "tmp"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let access = FileAccess::new(&dir.path().join("work"), &dir.path().join("home"), &dir.path().join("tmp"));
    TestFolders { dir, access: Arc::new(access) }
}

impl TestFolders {
    pub(super) fn file(&self, path: &str, content: &str) {
        self.access.write(path, content.as_bytes()).unwrap();
    }

    pub(super) fn content(&self, path: &str) -> String {
        String::from_utf8(self.access.read(path).unwrap()).unwrap()
    }

    pub(super) fn on_files(&self, tool: &Tool, input: Value) -> ToolOutput {
        let mut arguments = Arguments::parse(input, &tool.schema())?;
        let Run::OnFiles(run) = tool.run else { panic!("{} needs more than files", tool.name) };
        run(&mut arguments, &Files { access: Arc::clone(&self.access), stopped: Stopped::default() })
    }
}

#[test]
fn every_tool_has_a_canonical_name_and_describes_its_arguments() {
    assert_eq!(TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>(), NAMES);
    for tool in TOOLS {
        let canonical = model::tool::find(tool.name).unwrap();
        let schema = tool.schema();
        let properties = schema["properties"].as_object().unwrap();
        for (path, _) in canonical.paths {
            assert!(properties.contains_key(*path), "{}.{path}", tool.name);
        }
        for required in schema["required"].as_array().unwrap() {
            assert!(properties.contains_key(required.as_str().unwrap()), "{}", tool.name);
        }
        assert!(properties.values().all(|property| property["description"].is_string()), "{}", tool.name);
    }
}
