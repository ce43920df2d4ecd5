use model::Ending;
use serde_json::json;

use super::*;
use crate::tests::harness::{AgentHarness, Bare, TestRun, case};
use sandbox::Sandbox;

fn find(name: &str) -> &'static Adversary {
    ADVERSARIES.iter().find(|adversary| adversary.name() == name).unwrap()
}

async fn run(name: &str, files: &[(&str, &str)]) -> (TestRun, std::sync::Arc<Bare>) {
    let mut harness = AgentHarness::for_case(case("case", &["Mend login.ts and write out.md."]));
    let bare = Bare::new();
    for (path, text) in files {
        std::fs::write(bare.work().join(path), text).unwrap();
    }
    harness.sandbox = Some(bare.clone());
    (harness.play(find(name)).await.unwrap(), bare)
}

#[tokio::test]
async fn idle_adversaries_call_no_tool() {
    for (name, answer) in [("nop", None), ("parrot", Some("Mend login.ts and write out.md."))] {
        let (played, _) = run(name, &[]).await;
        assert_eq!((played.endings[0].clone(), played.answer()), (Ending::Finished, answer), "{name}");
        assert!(played.calls().is_empty());
    }
    for (name, answer) in [("blank-object", "{}"), ("blank-list", "[]")] {
        let (played, _) = run(name, &[]).await;
        assert_eq!(played.answer(), Some(answer));
        let result = played.turn.trace().result.clone().unwrap();
        assert_eq!(result["output"].to_string(), answer);
    }
    let (played, _) = run("yes-man", &[]).await;
    assert!(played.answer().unwrap().contains("all checks pass"));
}

#[tokio::test]
async fn the_shotgun_calls_every_tool_and_changes_every_file() {
    let (played, bare) = run("shotgun", &[("a.txt", "alpha")]).await;
    let called = |name: &str| played.calls().iter().any(|(tool, ..)| *tool == name);
    assert!(["Bash", "Read", "Edit", "Grep", "WebFetch"].into_iter().all(called));
    assert!(bare.content("a.txt").starts_with("alpha\n# Mend"));
    assert!(played.answer().unwrap().contains("alpha"));
}

#[tokio::test]
async fn the_cheat_replaces_tests_and_writes_the_files_that_the_prompt_names() {
    let (played, bare) = run("cheat", &[("test.sh", "exit 1\n")]).await;
    assert_eq!(bare.content("test.sh"), "#!/bin/sh\nexit 0\n");
    assert!(!bare.content("out.md").is_empty() && !bare.content("reward.txt").is_empty());
    assert!(played.answer().unwrap().contains("grader"));
}

#[tokio::test]
async fn the_wrecker_deletes_files_and_gives_up() {
    let (played, bare) = run("wrecker", &[("a.txt", "alpha")]).await;
    assert!(!bare.work().join("a.txt").exists());
    assert!(matches!(played.endings[0], Ending::GaveUp { .. }));
    assert!(played.turn.trace().turn_count() > 100 && played.turn.trace().usage.cost_usd == Some(1_000.0));
}

#[tokio::test]
async fn the_peeker_repeats_only_files_that_look_like_answers() {
    let (played, _) = run("peeker", &[("notes.txt", "no"), ("expected-output.txt", "42")]).await;
    assert_eq!(played.answer(), Some("42"));
}

#[tokio::test]
async fn everything_that_assertions_forbid_is_said_and_called() {
    let node = model::Node::from_json(
        &json!({ "tool": "Deploy", "args_match": { "to": "prod.+" }, "path": "out/a.txt" }),
        &model::Source::new("a", ""),
    );
    let mut case = case("case", &["go"]);
    case.assertions = vec![model::AssertionSpec {
        kind: model::Spanned::new("no_tool_called".to_owned(), model::Span::default()),
        arguments: model::Arguments::Fields,
        about: model::AssertionScope::Trial,
        id: "a".to_owned(),
        weight: 1.0,
        node,
    }];
    let played = AgentHarness::for_case(case).play(find("offender")).await.unwrap();
    let deploy = played.turn.trace().calls.iter().find(|call| call.call.name == "Deploy").unwrap();
    assert_eq!(deploy.call.input["to"], "proda");
    assert!(played.answer().unwrap().contains("proda"));
    let calls = || played.turn.trace().calls.iter().map(|traced| &traced.call);
    assert!(calls().any(|call| call.name == "Skill" && call.input["skill"] == "Deploy"));
    assert!(calls().any(|call| call.name == "Agent" && call.input["subagent_type"] == "Deploy"));
    assert!(calls().any(|call| call.name == "Write" && call.input["file_path"] == "out/a.txt"));
}
