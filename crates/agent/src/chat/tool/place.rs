//! Temporary directories like a sandbox's, for tests of tools that work on files only.

use std::sync::Arc;

use serde_json::Value;

use super::super::reach::Reach;
use super::{Arguments, Files, Run, Said, Stopped, Tool};

pub(super) struct Place {
    pub(super) dir: tempfile::TempDir,
    pub(super) reach: Arc<Reach>,
}

pub(super) fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    for name in ["work", "home", "tmp"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let reach = Reach::new(&dir.path().join("work"), &dir.path().join("home"), &dir.path().join("tmp"));
    Place { dir, reach: Arc::new(reach) }
}

impl Place {
    pub(super) fn file(&self, path: &str, content: &str) {
        self.reach.write(path, content.as_bytes()).unwrap();
    }

    pub(super) fn content(&self, path: &str) -> String {
        String::from_utf8(self.reach.read(path).unwrap()).unwrap()
    }

    pub(super) fn on_files(&self, tool: &Tool, input: Value) -> Said {
        let mut arguments = Arguments::of(input, &(tool.schema)())?;
        let Run::OnFiles(run) = tool.run else { panic!("{} needs more than files", tool.name) };
        run(&mut arguments, &Files { reach: Arc::clone(&self.reach), stopped: Stopped::default() })
    }
}
