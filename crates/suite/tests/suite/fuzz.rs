//! Files of every format with mutated content.

use std::path::Path;

use super::scratch::Scratch;

/// Reads mutated content of the files below `folder` whose names end with `ending`, as a file called `name`.
fn reads(folder: &str, ending: &str, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let scratch = Scratch::new();
    scratch.write("skills/x/SKILL.md", "---\nname: x\ndescription: Does x.\n---\n");
    testkit::fuzz(&testkit::seeds(&folder, ending), |bytes| {
        for problem in scratch.write(name, bytes).load(&[name]).diagnostics {
            drop(problem.to_string());
        }
    });
}

#[test]
fn no_scenario_makes_its_reader_panic() {
    reads("crates/cli/tests/specimens", ".yaml", "skills/x/tests/t.yaml");
}

#[test]
fn no_conversation_makes_its_reader_panic() {
    reads("examples", ".yaml", "tests/t.yaml");
}

#[test]
fn no_fixtures_file_makes_its_reader_panic() {
    reads("crates/cli/tests/specimens/manual", ".fixture.yaml", "t.fixture.yaml");
}

#[test]
fn no_evals_file_makes_its_reader_panic() {
    reads("examples", "evals.json", "skills/x/evals/evals.json");
}

#[test]
fn no_skill_makes_its_reader_panic() {
    reads("examples", "SKILL.md", "skills/x/SKILL.md");
}
