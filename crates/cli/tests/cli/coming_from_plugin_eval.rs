//! Cases of `claude plugin eval` and lists of trigger messages, run where they are. Differences are listed in
//! `docs/coming-from-claude-plugin-eval.md`; the program itself is compared in `scripts/plugin-eval`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::Project;
use testkit::real::{CLAUDE_CODE, CODEX, only_trial};

fn plugin() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project
        .write(".claude-plugin/plugin.json", "{\"name\": \"picnics\", \"version\": \"1.0.0\"}")
        .write("skills/plan/SKILL.md", "---\nname: plan\ndescription: Plans.\n---\nPlan.\n")
        .write("commands/go.md", "Go.\n");
    project
}

fn case(project: &Project, name: &str, prompt: &str, graders: &str) {
    let prompt = json!(prompt);
    let text = format!("schema_version: \"1.1\"\nruns: 2\nexecution: {{ prompt: {prompt} }}\ngraders:\n{graders}");
    project.write(&format!("evals/{name}/case.yaml"), &text);
}

/// Returns the outcomes of a case by arm.
fn outcomes<'r>(report: &'r Value, case: &str, arm: &str) -> Vec<&'r str> {
    let trials = report["trials"].as_array().unwrap().iter();
    let trials = trials.filter(|trial| trial["case"] == case && trial["variant"] == arm);
    trials.map(|trial| trial["outcome"].as_str().unwrap()).collect()
}

const SKILL_IS_FIRED: &str = "  - { type: tool_used, name: fired, tool: Skill }\n";

#[test]
fn a_plugin_is_compared_with_the_agent_alone_and_its_indicators_do_not_count() {
    let project = plugin();
    let lake = "  - { type: regex, name: lake, pattern: lake }\n";
    case(&project, "indicator", "!skill plan\n!say the lake", &format!("{SKILL_IS_FIRED}{lake}"));
    case(&project, "not-fired", "!say the lake", &format!("{SKILL_IS_FIRED}{lake}"));
    case(&project, "only-indicators", "!with-skill !skill plan\n!say the lake", SKILL_IS_FIRED);
    case(
        &project,
        "files",
        "!write plan.md the lake\n!say done",
        "  - { type: file_exists, name: made, path: \"*.md\" }\n  - { type: regex, name: in-file, pattern: lake, target: { source: file, path: plan.md } }\n  - { type: regex, name: listed, pattern: \"^plan.md$\", target: files }\n",
    );
    case(
        &project,
        "weighed",
        "!say the lake",
        &format!("{lake}  - {{ type: regex, name: rain, pattern: rain, weight: 3 }}\n"),
    );
    case(&project, "history", "!say x", lake);
    project.write(
        "evals/history/case.yaml",
        "context: { history_file: h.jsonl }\nexecution: { prompt: \"!say x\" }\ngraders:\n  - { type: regex, pattern: x }\n",
    );
    let arms = ["--arms", "none,skill,plugin", "--report", "plugin-eval=there.json"];
    let report = project.report(&[&["evals", "--agent", "fake"][..], &arms].concat(), 1);
    let of = |case: &str| (outcomes(&report, case, "with_skill"), outcomes(&report, case, "without_skill"));
    let (passed, failed) = (vec!["passed"; 2], vec!["failed"; 2]);
    assert_eq!(of("indicator"), (passed.clone(), passed.clone()));
    assert_eq!(of("not-fired"), (passed.clone(), passed.clone()));
    assert_eq!(of("only-indicators"), (passed.clone(), failed.clone()));
    assert_eq!(of("files"), (passed.clone(), passed));
    assert_eq!(of("weighed"), (failed.clone(), failed));
    assert_eq!(outcomes(&report, "files", "skills_only"), of("files").0);
    assert!(of("history").0.iter().all(|outcome| *outcome == "broken"), "{:?}", of("history"));

    let there: Value = serde_json::from_str(&project.read("there.json")).unwrap();
    let named = |name: &str| there["cases"].as_array().unwrap().iter().find(|case| case["name"] == name).unwrap();
    let weighed = &named("weighed")["aggregates"];
    assert_eq!((&weighed["score"], &weighed["delta"], &weighed["passRate"]), (&json!(0.25), &json!(0.0), &json!(0.0)));
    let with = named("indicator")["arms"]["with"].as_array().unwrap();
    assert_eq!(with.len(), 2, "the format has no arm with only the skills");
    let graders = with[0]["graders"].as_array().unwrap();
    let scored: Vec<(&Value, &Value)> = graders.iter().map(|grader| (&grader["name"], &grader["scored"])).collect();
    assert_eq!(scored, [(&json!("fired"), &json!(false)), (&json!("lake"), &json!(true))]);
    assert!(named("history")["aggregates"].get("score").is_none(), "{}", named("history"));
}

#[test]
fn check_lists_every_key_that_is_not_honoured() {
    let project = plugin();
    project.write(
        "evals/a/case.yaml",
        "owner: kim\nexecution: { prompt: hi, artifact_publish: true }\ngraders:\n  - { type: regex, name: a, pattern: x }\n",
    );
    let case = "execution: { prompt: hi }\ngraders:\n  - { type: regex, name: a, pattern: x }\n";
    project.write("evals/b/case.yaml", case);
    project.write("evals/c/case.yaml", "graders:\n  - { type: regex, name: a, pattern: x }\n");
    project.write("evals/c/prompt.md", "---\nowner: kim\n---\nHi.\n");
    let ran = project.run(&["check", "evals", "--agent", "fake"]).exits(0);
    for line in [
        "1 file of plugin-eval: all 6 keys honoured",
        "evals/a/case.yaml (plugin-eval): 6 keys honoured, 2 ignored",
        "  2: `execution.artifact_publish`: nothing is published",
        "  1: `owner`: it has no effect there either",
        "  evals/c/prompt.md:2: `prompt.md.owner`: it has no effect there either",
    ] {
        assert!(ran.out.lines().any(|other| other == line), "{line}\n{}", ran.out);
    }
    assert!(ran.err.contains("`fake` does not load the whole plug-in `picnics`"), "{}", ran.err);
    let checked = project.run(&["check", "evals", "--agent", "fake", "--format", "json"]).json();
    assert_eq!(checked["coverage"][0]["keys"].as_array().unwrap().len(), 8, "{checked:#}");
}

#[test]
fn a_trigger_trial_ends_when_the_skill_was_used() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    let query = |text: &str, yes: bool| json!({"query": text, "should_trigger": yes});
    let list = json!([
        query("!skill plan\n!write late.txt x\n!say done", true),
        query("!say no", true),
        query("!say no", false)
    ]);
    project
        .write("skills/plan/SKILL.md", "---\nname: plan\ndescription: Plans.\n---\nPlan.\n")
        .write("skills/plan/evals/trigger-eval.json", &list.to_string());
    let report = project.report(&["--agent", "fake"], 1);
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 9, "three trials of each message, and no arm without the skill");
    let of = |case: &str| trials.iter().filter(|trial| trial["case"] == case).collect::<Vec<_>>();
    for trial in of("query-1") {
        assert_eq!(
            (&trial["outcome"], trial["tool_calls"].as_array().unwrap().len()),
            (&json!("passed"), 1),
            "{trial:#}"
        );
        assert_eq!(trial["files_changed"], json!([]));
    }
    assert!(of("query-2").iter().all(|trial| trial["outcome"] == "failed"));
    assert!(of("query-3").iter().all(|trial| trial["outcome"] == "passed"));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_real_agent_loads_the_plugin_in_its_own_way() {
    let fired = json!({"tools": [{"name": "Skill", "input": {"skill": "picnics:plan"}}]});
    for (agent, listed, call) in
        [(CLAUDE_CODE, "- picnics:plan: Plans picnics.", Some(fired)), (CODEX, "- plan: Plans picnics.", None)]
    {
        let project = agent.project(env!("CARGO_BIN_EXE_trialrun"), env!("CARGO_TARGET_TMPDIR"));
        let mut steps: Vec<Value> = call.into_iter().chain([json!({"text": "At the lake."})]).collect();
        steps[0]["expect_request"] = json!({"contains": listed});
        project
            .write(".claude-plugin/plugin.json", "{\"name\": \"picnics\", \"version\": \"1.0.0\"}")
            .write("skills/plan/SKILL.md", "---\nname: plan\ndescription: Plans picnics.\n---\nPlan.\n")
            .write("model.yaml", &json!({ "steps": steps }).to_string());
        let skill = if agent.name == CLAUDE_CODE.name { SKILL_IS_FIRED } else { "" };
        let lake = "  - { type: regex, name: lake, pattern: lake }\n";
        case(&project, "lake", "Plan a picnic.", &format!("{skill}{lake}"));
        let arguments = ["evals", "--agent", agent.name, "--model", "scripted:model.yaml", "--no-baseline", "-n", "1"];
        let trial = only_trial(&project.report(&arguments, 0));
        assert_eq!(trial["outcome"], "passed", "{trial:#}");
    }
}
