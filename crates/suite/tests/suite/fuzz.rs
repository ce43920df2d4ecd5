//! Files of every format with mutated content.

use std::path::Path;

use super::scratch::Scratch;

/// Reads mutated content of the files below `folder` whose names end with `ending`, as a file called `name`.
fn reads(folder: &str, ending: &str, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let scratch = Scratch::new();
    scratch.write("skills/x/SKILL.md", "---\nname: x\ndescription: Does x.\n---\n");
    scratch.write("skills/x/evals/c/prompt.md", "Do x.\n");
    testkit::fuzz(&testkit::seeds(&folder, ending), |bytes| {
        // A grader belongs to the case in the folder above.
        let target = name.rsplit_once("/graders/").map_or(name.to_owned(), |(case, _)| format!("{case}/prompt.md"));
        for problem in scratch.write(name, bytes).load(&[&target]).diagnostics {
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

#[test]
fn no_suite_of_another_tool_makes_its_reader_panic() {
    reads("crates/suite/tests/foreign/evals", ".json", "skills/x/evals/evals.json");
    reads("crates/suite/tests/foreign/trigger-eval", ".json", "skills/x/evals/trigger-eval.json");
    reads("crates/suite/tests/foreign/plugin-eval", ".yaml", "skills/x/evals/c/case.yaml");
    reads("crates/suite/tests/foreign/plugin-eval", ".md", "skills/x/evals/c/graders/g.md");
    reads("crates/suite/tests/foreign/promptfoo", ".yaml", "promptfooconfig.yaml");
    reads("crates/suite/tests/foreign/vally", ".yaml", "eval.yaml");
}
