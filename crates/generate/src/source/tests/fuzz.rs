//! Sources with mutated content.

use std::path::Path;

use super::super::discover;
use mask::Mask;

/// Reads mutated content of the files below `folder` whose names end with `ending`, as a file called `name`.
fn reads(folder: &str, ending: &str, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let project = tempfile::tempdir().unwrap();
    let file = project.path().join(name);
    testkit::fuzz(&testkit::seeds(&folder, ending), |bytes| {
        std::fs::write(&file, bytes).unwrap();
        discover(&[(project.path().to_owned(), "agent".to_owned())], &[], &Mask::of([]));
    });
}

#[test]
fn no_source_code_makes_its_reader_panic() {
    for (ending, name) in [(".py", "agent.py"), (".ts", "agent.ts"), (".rs", "agent.rs")] {
        reads("specimens/agents", ending, name);
    }
}

#[test]
fn no_skill_makes_its_reader_panic() {
    reads("examples", "SKILL.md", "SKILL.md");
}

#[test]
fn no_document_makes_its_reader_panic() {
    reads("specimens/agents", ".md", "README.md");
    reads("specimens/agents", ".toml", "pyproject.toml");
    reads("specimens/agents", ".json", "package.json");
}
