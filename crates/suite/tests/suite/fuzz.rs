//! Files of every format with mutated content.

use std::path::Path;

use super::scratch::Scratch;

/// Reads mutated content of the files below `folder` whose names end with `ending`, as a file called `name`.
fn reads(folder: &str, ending: &str, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let scratch = Scratch::new();
    scratch.write("skills/x/SKILL.md", "---\nname: x\ndescription: Does x.\n---\n");
    scratch.write("skills/x/evals/c/prompt.md", "Do x.\n");
    scratch.write("tasks/x/task.toml", "[agent]\n").write("tasks/x/instruction.md", "Do x.\n");
    testkit::fuzz(&testkit::seeds(&folder, ending), |bytes| {
        // A grader or an image belongs to the case in the folder above.
        let parts = [("/graders/", "prompt.md"), ("/environment/", "task.toml")];
        let case = parts.iter().find_map(|(part, file)| Some(format!("{}/{file}", name.rsplit_once(part)?.0)));
        let target = case.unwrap_or_else(|| name.to_owned());
        for problem in scratch.write(name, bytes).load(&[&target]).diagnostics {
            drop(problem.to_string());
        }
    });
}

/// Reads mutated content of `file`, which the suite with the text `suite` names.
fn reads_beside(suite: &str, file: &str, seeds: &[Vec<u8>]) {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", suite);
    testkit::fuzz(seeds, |bytes| {
        for problem in scratch.write(file, bytes).load(&["suite.yaml"]).diagnostics {
            drop(problem.to_string());
        }
    });
}

/// Reads mutated datasets with this ending from the corpus of a format.
fn reads_datasets(format: &str, asserted: &str, ending: &str) {
    let file = format!("data.{ending}");
    let mark = format!("--- {file}\n");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(format);
    let seeds: Vec<Vec<u8>> = testkit::seeds(&folder, ".yaml")
        .iter()
        .filter_map(|seed| Some(String::from_utf8_lossy(seed).split_once(&mark)?.1.as_bytes().to_vec()))
        .collect();
    reads_beside(&format!("dataset: {file}\nformat: {format}\n{asserted}\n"), &file, &seeds);
}

#[test]
fn no_dataset_makes_its_reader_panic() {
    for ending in ["json", "jsonl", "csv"] {
        reads_datasets("inspect", "scorers: [match, choice]", ending);
        reads_datasets("deepeval", "metrics: [ExactMatch, ToolCorrectness, Faithfulness]", ending);
    }
}

#[test]
fn no_task_of_waza_makes_its_reader_panic() {
    let seeds: Vec<Vec<u8>> = testkit::foreign::WAZA_TASKS.iter().map(|(_, task)| task.as_bytes().to_vec()).collect();
    let suite = "scenario: s\nschemaVersion: \"2.0\"\nconfig: {}\nmetrics: []\ntasks: [task.yaml]\n";
    reads_beside(suite, "task.yaml", &seeds);
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
    reads("crates/suite/tests/foreign/waza", ".yaml", "evals/eval.yaml");
    reads("crates/suite/tests/foreign/inspect", ".yaml", "suite.yaml");
}

#[test]
fn no_task_of_harbor_makes_its_reader_panic() {
    reads("crates/suite/tests/foreign/harbor", ".txt", "tasks/x/task.toml");
    reads("crates/suite/tests/foreign/harbor", ".txt", "tasks/x/environment/Dockerfile");
}
