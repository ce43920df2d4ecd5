//! Reports in the formats of other tools, and the output that GitHub Actions gets by default.

use testkit::{Project, Ran};

use super::{demo, empty, scenario};

const FORMATS: [&str; 12] = [
    "junit:generic",
    "junit:gitlab",
    "junit:jenkins",
    "tap",
    "ctrf",
    "gitlab",
    "github",
    "markdown",
    "html",
    "json",
    "jsonl",
    "terminal",
];

/// Makes the project the root of a repository.
fn repository(project: Project) -> Project {
    project.write(".git/HEAD", "ref: refs/heads/main\n");
    project
}

#[test]
fn a_report_is_the_same_during_the_run_and_afterwards() {
    let project = repository(demo());
    project.write("live/.keep", "").write("again/.keep", "");
    let live: Vec<String> = FORMATS.iter().map(|format| format!("{format}=live/{format}")).collect();
    let mut arguments = vec!["run", "--trials", "2", "--report", "terminal"];
    live.iter().for_each(|report| arguments.extend(["--report", report]));
    project.run(&arguments).exits(1);
    for format in FORMATS {
        project.run(&["report", "latest", "--report", &format!("{format}=again/{format}")]).exits(0);
        let text = project.read(&format!("live/{format}"));
        assert!(text.contains("second"), "{format}: {text}");
        assert!(text == project.read(&format!("again/{format}")), "{format}");
    }
    let junit = project.read("live/junit:generic");
    assert!(junit.contains(r#"name="first@fake#1""#) && junit.contains(r#"name="first@fake#2""#), "{junit}");
    // The location of the case, not of its assertion.
    assert!(junit.contains(r#"file="skills/greet/tests/b.yaml" line="1""#), "{junit}");
    assert_eq!(project.run(&["report", "--format", "junit"]).exits(0).out, junit);
    let misspelt = project.run(&["report", "latest", "--report", "tap=agian/tap"]).exits(2);
    assert!(misspelt.err.contains("the directory agian does not exist"), "{}", misspelt.err);
    let unknown = project.run(&["run", "--report", "junit:jenkin=x.xml"]).exits(2);
    assert!(unknown.err.contains("did you mean `junit:jenkins`?"), "{}", unknown.err);
}

#[test]
fn a_case_that_did_not_run_has_a_location() {
    let project = empty();
    project.write("a.fixture.yaml", "- { input: x, output: x }\n- { input: y, output: y, only: true }\n");
    let ran = project.run(&["run", "a.fixture.yaml", "--agent", "fake", "--report", "ctrf"]);
    let tests = ran.json()["results"]["tests"].clone();
    let skipped = tests.as_array().unwrap().iter().find(|test| test["status"] == "skipped").unwrap();
    assert_eq!((&skipped["filePath"], &skipped["line"]), (&"a.fixture.yaml".into(), &1.into()));
}

#[test]
fn reports_set_in_the_configuration_get_recognisable_file_names() {
    let project = repository(demo());
    project.write(
        "trialrun.yaml",
        "defaults: { agent: fake }\nreport: { formats: [terminal, github, 'junit:gitlab', ctrf, tap], outputDir: out }\n",
    );
    let ran = project.run(&["run"]).exits(1);
    // They appear between the lines of the terminal report.
    let is_annotation = |line: &str| line.starts_with("::error file=skills/greet/tests/b.yaml,line=7,title=");
    assert!(ran.out.lines().any(is_annotation) && ran.out.contains("FAIL  1 of 3"), "{}", ran.out);
    for file in ["report.junit-gitlab.xml", "report.ctrf.json", "report.tap"] {
        assert!(!project.read(&format!("out/{file}")).is_empty(), "{file}");
    }
}

#[test]
fn github_actions_gets_annotations_and_a_summary() {
    let project = repository(demo());
    let summary = project.dir().join("summary.md");
    let project = project.env("GITHUB_STEP_SUMMARY", summary.to_str().unwrap());
    assert!(!project.run(&["run"]).exits(1).err.contains("::error"));
    let project = project.env("GITHUB_ACTIONS", "true");
    project.write("summary.md", "before\n");
    let ran = project.run(&["run", "--report", "json"]).exits(1);
    ran.json();
    assert!(
        ran.err.contains("::error file=skills/greet/tests/b.yaml,line=7,title=greet%3A%3Asecond failed::"),
        "{}",
        ran.err
    );
    let text = project.read("summary.md");
    assert!(text.starts_with("before\n## FAIL: 1 of 3 trials failed, 2 passed\n"), "{text}");
    // If it is requested, it is a report like any other, and is written once.
    let ran = project.run(&["run", "--report", "github"]).exits(1);
    assert!(ran.out.starts_with("::error ") && !ran.err.contains("::error"), "{}", ran.output());
    let asked = project.read("summary.md");
    assert_eq!(asked.matches("## FAIL").count(), 2);
    assert!(!project.run(&["run", "--no-github"]).exits(1).err.contains("::error"));
    let project = project.env("TRIALRUN_GITHUB", "false");
    assert!(!project.run(&["run"]).exits(1).err.contains("::error"));
    assert!(project.run(&["run", "--github"]).exits(1).err.contains("::error"));
    assert_eq!(project.read("summary.md").matches("## FAIL").count(), 3);
    let project = project.env("GITHUB_STEP_SUMMARY", "/nowhere/summary.md").env("TRIALRUN_GITHUB", "true");
    let ran = project.run(&["run"]).exits(1);
    assert!(
        ran.err.contains("warning: cannot write /nowhere/summary.md") && ran.err.contains("::error"),
        "{}",
        ran.err
    );
    project.run(&["run", "--report", "github"]).exits(2);
    let shown = project.run(&["config", "--json"]).exits(0).out;
    assert!(shown.contains("TRIALRUN_GITHUB"), "{shown}");
}

/// Runs the program in a folder of the repository.
fn within(project: &Project, folder: &str, arguments: &[&str]) -> Ran {
    project.command(arguments).current_dir(project.dir().join(folder)).output().unwrap().into()
}

#[test]
fn annotation_paths_are_relative_to_the_repository_root() {
    let project = repository(empty());
    let case = scenario("second", "goodbye").replace("skill: greet", "system_prompt: x");
    project.write("bots/tests/odd name.yaml", &case);
    let arguments = ["run", "tests/odd name.yaml", "--agent", "fake", "--report", "github"];
    let ran = within(&project, "bots", &arguments).exits(1);
    assert!(ran.out.starts_with("::error file=bots/tests/odd name.yaml,line=7,"), "{}", ran.output());
}

#[test]
fn code_scanning_gets_problems_with_rule_ids() {
    let project = repository(empty());
    project.write("bots/tests/wrong name.yaml", "scenario: wrong\nsystem_prompt: x\ndescripton: typo\n");
    let arguments = ["check", "tests/wrong name.yaml", "--format", "sarif"];
    let checked = within(&project, "bots", &arguments).exits(2).json();
    let result = &checked["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"unknown-key-in-the-scenario".into(), &"error".into()));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "bots/tests/wrong%20name.yaml");
    assert_eq!(place["region"], serde_json::json!({ "startLine": 3, "startColumn": 1, "endColumn": 11 }));
}
