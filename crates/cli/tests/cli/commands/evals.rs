//! Suites of skills in commands: how they are found, listed, checked and created.

use serde_json::{Value, json};
use testkit::{Project, Ran};

use super::empty;

/// Returns a suite with two cases for the skill of that name.
fn suite(skill: &str) -> String {
    let case = |id: &str, rest: Value| {
        let mut case = json!({"id": id, "prompt": "hello", "expected_output": "", "files": ["files/a.txt"]});
        case.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        case
    };
    let natural = case("natural", json!({"assertions": [{"type": "file_exists", "path": "a.txt"}]}));
    let negative = case("negative", json!({"should_trigger": false, "assertions": [{"type": "git_clean"}]}));
    json!({"skill_name": skill, "evals": [natural, negative]}).to_string()
}

/// Returns a project with two skills: one with its own suite, one with a suite among the examples.
fn skills() -> Project {
    let project = empty();
    for (skill, folder) in [("one", "skills/one"), ("two", "examples/two")] {
        project
            .write("trialrun.yaml", "defaults: { agent: fake }\n")
            .write(&format!("skills/{skill}/SKILL.md"), &format!("---\nname: {skill}\ndescription: d\n---\n"))
            .write(&format!("{folder}/evals/evals.json"), &suite(skill))
            .write(&format!("{folder}/evals/files/a.txt"), "a\n");
    }
    project
}

/// Returns `suite::case` of the listed cases, without duplicates.
fn cases(project: &Project, arguments: &[&str]) -> Vec<String> {
    let ran = project.run(&[&["list", "--json"], arguments].concat());
    let rows = ran.json();
    let name = |row: &Value| format!("{}::{}", row["suite"].as_str().unwrap(), row["case"].as_str().unwrap());
    let mut cases: Vec<String> = rows.as_array().unwrap().iter().map(name).collect();
    cases.dedup();
    cases
}

#[test]
fn skill_suites_are_listed_for_every_kind_of_selection() {
    let project = skills();
    let one = ["one/evals::natural", "one/evals::negative"];
    let two = ["two/evals::natural", "two/evals::negative"];
    assert_eq!(cases(&project, &[]), [one, two].concat());
    assert_eq!(cases(&project, &["skills/"]), [one, two].concat());
    for arguments in [
        &["--skill", "skills/two"][..],
        &["--evals", "examples/two/evals/evals.json"],
        &["--skill", "./skills/two", "--evals", "./examples/two/evals/evals.json"],
        &["examples/two"],
    ] {
        assert_eq!(cases(&project, arguments), two, "{arguments:?}");
    }
    assert_eq!(cases(&project, &["--skill", "one", "--eval-id", "negative"]), ["one/evals::negative"]);
    let rows = project.run(&["list", "--json", "--skill", "one"]).exits(0).json();
    let arms: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["arm"].as_str().unwrap()).collect();
    assert!(arms.iter().any(|arm| arm.contains("without_skill")), "{arms:?}");
}

#[test]
fn a_suite_is_checked_and_its_design_only_on_request() {
    let project = skills();
    project.run(&["check", "--strict"]).exits(0);
    project.run(&["validate", "skills/one/evals/evals.json", "--eval-id", "natural"]).exits(0);
    let forced = json!({"skill_name": "one", "evals": [
        {"id": 1, "prompt": "p", "expected_output": "", "force_skill_invocation": true, "side_effect_level": "live-safe",
         "assertions": [{"type": "file_exists", "path": "a.txt"}]}]});
    project.write("skills/one/evals/evals.json", &forced.to_string());
    project.run(&["check", "one"]).exits(0);
    let error = project.run(&["check", "one", "--strict"]).exits(2).err;
    for part in ["no negative control", "names or forces it", "services outside this machine"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let ran = project.run(&["check", "--skill", "skills/two", "--evals", "skills/one/evals/evals.json"]).exits(2);
    assert!(ran.err.contains("did you mean `two`?"), "{}", ran.err);
}

#[test]
fn an_unknown_eval_id_prevents_the_run_of_known_ones() {
    let project = skills();
    let ran = project.run(&["run", "--skill", "one", "--eval-id", "natural", "--eval-id", "negativ"]).exits(2);
    assert!(ran.err.contains("unknown case `negativ`") && ran.err.contains("did you mean `negative`?"), "{}", ran.err);
    let ran = project.run(&["check", "--skill", "one", "--eval-id", "negativ"]).exits(4);
    assert!(ran.err.contains("did you mean `negative`?"), "{}", ran.err);
    project.run(&["list", "--skill", "one", "--case", "one/evals::natural", "--case", "negative"]).exits(0);
}

#[test]
fn a_new_skill_passes_check_and_conforms_to_its_schema() {
    let project = empty();
    let ran = project.run(&["init", "--skill", "release-notes"]).exits(0);
    for file in ["SKILL.md", "evals/evals.json", "evals/files/guest.txt"] {
        assert!(ran.out.contains(&format!("skills/release-notes/{file}\n")), "{}", ran.out);
    }
    assert!(
        ran.out.contains("trialrun run --skill skills/release-notes") && !project.dir().join("trialrun.yaml").exists()
    );
    assert_eq!(cases(&project, &[]), ["release-notes/evals::greets-by-name", "release-notes/evals::negative-control"]);
    project.run(&["check", "--strict"]).exits(0);
    let suite: Value = serde_json::from_str(&project.read("skills/release-notes/evals/evals.json")).unwrap();
    assert_eq!(suite["$schema"], "../../../evals.schema.json");
    let schema: Value = serde_json::from_str(&project.read("evals.schema.json")).unwrap();
    assert_eq!(schema, project.run(&["schema", "evals"]).exits(0).json());

    project.write("skills/release-notes/SKILL.md", "mine\n");
    let ran = project.run(&["init", "--skill", "release-notes"]).exits(2);
    assert!(ran.err.contains("skills/release-notes/evals/evals.json") && ran.err.contains("--force"), "{}", ran.err);
    assert!(!ran.err.contains("SKILL.md"), "{}", ran.err);
    std::fs::remove_dir_all(project.dir().join("skills/release-notes/evals")).unwrap();
    let ran = project.run(&["init", "--skill", "release-notes"]).exits(0);
    assert!(ran.out.contains("evals/evals.json") && !ran.out.contains("SKILL.md"), "{}", ran.out);
    assert_eq!(project.read("skills/release-notes/SKILL.md"), "mine\n");
    project.run(&["init", "--skill", "release-notes", "--force"]).exits(0);
    project.run(&["init", "--skill", "another"]).exits(0);
    project.write("trialrun.yaml", "skills_dir: kept/skills\n");
    assert!(project.run(&["init", "--skill", "third"]).exits(0).out.contains("kept/skills/third/SKILL.md\n"));
    let ran: Ran = project.run(&["init", "--skill", "x", "--template", "code"]).exits(2);
    assert!(ran.err.contains("`--skill` needs a template with a skill"), "{}", ran.err);
}

#[test]
fn a_default_agent_without_skills_blocks_only_the_suites_that_need_them() {
    let project = skills();
    project
        .write("trialrun.yaml", "agents:\n  bot: { type: custom, module: bot.js }\ndefaults: { agent: bot }\n")
        .write("bot.js", "export default { async send() { return \"hello\" } }\n")
        .write(
            "tests/hello.yaml",
            "name: hello\nturns:\n  - says: hi\n    expect: [{ type: contains, text: hello }]\n",
        );
    let ran = project.run(&["run", "--report", "json=report.json"]).exits(0);
    for suite in ["skills/one/evals/evals.json", "examples/two/evals/evals.json"] {
        assert!(ran.err.contains(suite), "{suite}: {}", ran.err);
    }
    let report: Value = serde_json::from_str(&project.read("report.json")).unwrap();
    assert_eq!((&report["summary"]["passed"], &report["summary"]["skipped"]), (&json!(1), &json!(4)));
    assert!(project.run(&["run", "skills/one"]).exits(2).err.contains("skills/one/evals/evals.json"));

    let named = suite("one").replacen('{', "{\"agent\": \"fake\", ", 1);
    project.write("skills/one/evals/evals.json", &named);
    let rows = project.run(&["list", "skills/one", "--json"]).exits(0).json();
    assert!(rows.as_array().unwrap().iter().all(|row| row["agent"] == "fake"), "{rows}");
}

#[test]
fn a_suite_has_one_name_in_every_run() {
    let project = skills();
    // The name must not change when other tests are added to the skill.
    project.run(&["run", "--no-fail-on-assertions", "--label", "alone", "skills/one"]);
    project.write("skills/one/tests/t.yaml", "scenario: t\nskill: one\nassertions: []\n");
    let evals = ["one/evals::natural", "one/evals::negative"];
    for arguments in
        [&["--skill", "skills/one"][..], &["--evals", "skills/one/evals/evals.json"], &["skills/one/evals"]]
    {
        assert_eq!(cases(&project, arguments), evals, "{arguments:?}");
    }
    assert_eq!(cases(&project, &["skills/one"]), [&["one::t"][..], &evals].concat());
    for label in ["a", "b"] {
        let suite: &[&str] = if label == "a" { &["--skill", "skills/one"] } else { &["skills/one/evals/evals.json"] };
        project.run(&[&["run", "--no-fail-on-assertions", "--label", label], suite].concat());
    }
    for before in ["a", "alone"] {
        let compared = project.run(&["compare", before, "b", "--json"]).json();
        let rows = compared["cases"].as_array().unwrap();
        let found = rows.iter().filter(|row| row["before"].is_object() && row["after"].is_object()).count();
        assert_eq!(found, 2, "{compared}");
    }
}

#[test]
fn a_file_outside_any_project_runs_in_the_project_of_the_current_directory() {
    let (project, elsewhere) = (skills(), empty());
    let scenario =
        "scenario: outside\nskill: one\nassertions: [{ id: a, type: output_contains, pattern: hi }]\nuser_prompt: hi\n";
    elsewhere.write("outside.yaml", scenario);
    let file = elsewhere.dir().join("outside.yaml");
    let file = file.to_str().unwrap();
    let rows = project.run(&["list", "--file", file, "--json"]).exits(0).json();
    assert_eq!((&rows[0]["agent"], &rows[0]["skill"]), (&json!("fake"), &json!("one")));
    elsewhere.write("kept/one/SKILL.md", "---\nname: one\ndescription: another\nversion: 2\n---\n");
    let kept = elsewhere.dir().join("kept/one");
    let ran = project.report(&["--file", file, "--skill", kept.to_str().unwrap()], 0);
    assert_eq!(ran["run"]["skills"][0]["version"], "2");
    // A folder with skills is a project, even without a configuration.
    let bare = empty();
    bare.write("skills/one/SKILL.md", "---\nname: one\ndescription: d\n---\n");
    let rows = bare.run(&["list", "--file", file, "--json"]).exits(0).json();
    assert_eq!(rows[0]["skill"], "one");
}

#[test]
fn a_sub_agent_is_measured_like_a_skill() {
    let project = empty();
    let case = |id: &str, prompt: &str, more: Value| {
        let mut case = json!({"id": id, "prompt": prompt, "expected_output": "",
            "assertions": [{"type": "file_exists", "path": "review.txt"}]});
        case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        case
    };
    let hands_over = "!with-skill !call Agent {\"subagent_type\": \"reviewer\", \"prompt\": \"Review.\"}";
    let writes = "!with-skill !write review.txt fine";
    let none = json!({"assertions": [], "should_trigger": false});
    let cases = [
        case("reviews", &format!("{hands_over}\n{writes}"), json!({})),
        case("alone", writes, json!({})),
        case("question", "!say two", none.clone()),
        case("too-eager", hands_over, none),
    ];
    project
        .write("trialrun.yaml", "defaults: { agent: fake }\n")
        .write("agents/reviewer.md", "---\nname: reviewer\ndescription: Reviews.\n---\nBe strict.\n")
        .write("agents/reviewer/evals/evals.json", &json!({"subagent_name": "reviewer", "evals": cases}).to_string());
    let report = project.report(&["--seed", "1"], 1);
    let with = |case: &str| {
        let trials = report["trials"].as_array().unwrap();
        let trial = trials.iter().find(|trial| trial["case"] == case && trial["variant"] == "with_skill").unwrap();
        (trial["outcome"].as_str().unwrap().to_owned(), trial["triggered"].as_bool().unwrap())
    };
    let expected = [
        ("reviews", "passed", true),
        ("alone", "passed", false),
        ("question", "passed", false),
        ("too-eager", "failed", true),
    ];
    for (case, outcome, triggered) in expected {
        assert_eq!(with(case), (outcome.to_owned(), triggered), "{case}");
    }
    // Without the skill, its file does not exist, so nothing is written.
    let without: Vec<&Value> =
        report["trials"].as_array().unwrap().iter().filter(|trial| trial["variant"] == "without_skill").collect();
    assert!(without.iter().any(|trial| trial["case"] == "reviews" && trial["outcome"] == "failed"), "{report:#}");
    let delta = report["deltas"][0]["pass_rate"].as_f64().unwrap();
    assert!(delta > 0.0, "{report:#}");
    let ran = project.run(&["run", "--agent", "codex"]).exits(2);
    assert!(ran.err.contains("`codex` does not read sub-agents from files"), "{}", ran.err);
}
