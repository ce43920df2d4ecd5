//! Contents of a resolved run.

use std::fs;
use std::path::Path;

use super::*;
use crate::tests::session_with;

fn value(spec: &RunSpec, name: &str) -> Value {
    spec.rows().iter().find(|row| row.name == name).unwrap().value.clone()
}

fn resolved(root: &Path, environment: &[(&str, &str)]) -> (Session, RunSpec) {
    let session = session_with(root, environment);
    let spec = session.resolve(&Overrides::default()).unwrap();
    (session, spec)
}

#[test]
fn fallbacks_are_part_of_the_settings_that_are_shown_recorded_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let config = "sandbox:\n  provider: daytona\n  fallback: local\ndefaults:\n  cassette: auto\n";
    fs::write(folder.path().join("trialrun.yaml"), config).unwrap();
    let (session, spec) = resolved(folder.path(), &[("CI", "true")]);
    let settings = session.settings(&spec);
    let recorded = spec.to_map(&session);
    for (name, expected, used) in
        [("sandbox", "local", settings.sandbox.kind.as_str()), ("cassette", "replay", settings.cassettes.mode.name())]
    {
        assert_eq!(
            (value(&spec, name), &recorded[name], used),
            (json!(expected), &json!(expected), expected),
            "{name}"
        );
    }
    assert!(spec.problems()[0].message.contains("instead of `daytona`"), "{:?}", spec.problems());
    let (_, here) = resolved(folder.path(), &[]);
    assert_eq!(value(&here, "cassette"), json!("auto"));
}

#[test]
fn a_resolved_run_is_the_same_after_it_was_written_and_contains_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let config = "judge:\n  model: openai:gpt-5.5\n  api_key: ${env.JUDGE_KEY}\n";
    fs::write(folder.path().join("trialrun.yaml"), config).unwrap();
    let key = "sk-proj-4f9a7c1e2b8d6053";
    let environment = [("JUDGE_KEY", key), ("TRIALRUN_TIMEOUT", "90")];
    let (session, spec) = resolved(folder.path(), &environment);
    let text = session.spec_to_json(&spec).unwrap();
    assert!(!text.contains(key));
    let read: RunSpec = serde_json::from_str(&text).unwrap();
    assert_eq!(read.rows(), spec.rows());
    // The process that reads it has other variables.
    let other = session_with(folder.path(), &[("JUDGE_KEY", "another"), ("TRIALRUN_TIMEOUT", "5")]);
    other.agrees_with(&read).unwrap();
    let settings = other.settings(&read);
    assert_eq!((settings.limits.timeout_ms, settings.limits.timeout_from), (Some(90_000), "TRIALRUN_TIMEOUT"));

    let mut typed = Overrides::default();
    typed.judging.judge_base_url = Some(format!("https://user:{key}@host.example"));
    let refused = session.spec_to_json(&session.resolve(&typed).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("contain a secret"), "{refused}");
}

#[test]
fn overrides_are_read_from_json_in_their_written_form() {
    let text = r#"{"arms": {"trials": "auto:20", "agent": ["fake"]}, "sandboxes": {"network": "none"}}"#;
    let overrides: Overrides = serde_json::from_str(text).unwrap();
    assert_eq!(overrides.arms.trials, Some("auto:20".parse().unwrap()));
    assert_eq!(overrides.sandboxes.network, Some("none".parse().unwrap()));
    let again: Overrides = serde_json::from_str(&serde_json::to_string(&overrides).unwrap()).unwrap();
    assert_eq!(again.arms.agent, ["fake"]);
    let wrong = serde_json::from_str::<Overrides>(r#"{"arms": {"trial": 3}}"#).unwrap_err();
    assert!(wrong.to_string().contains("unknown field `trial`"), "{wrong}");
}

#[test]
fn a_judge_that_must_not_be_asked_is_not_asked_during_replay() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("trialrun.yaml"), "defaults:\n  cassette: replay\n").unwrap();
    let session = session_with(folder.path(), &[]);
    let overrides = Overrides { unjudged: Some("this command asks no judge".into()), ..Overrides::default() };
    let settings = session.settings(&session.resolve(&overrides).unwrap());
    assert_eq!(settings.judge.missing.as_deref(), Some("this command asks no judge"));
    let settings = session.settings(&session.resolve(&Overrides::default()).unwrap());
    assert_eq!(settings.judge.missing, None, "recorded answers need no key");
}

#[test]
fn an_unknown_sandbox_is_also_refused_for_adversaries() {
    let folder = tempfile::tempdir().unwrap();
    let session = session_with(folder.path(), &[]);
    let refusal = |kind: &str| {
        let mut overrides = Overrides { adversaries: true, ..Overrides::default() };
        overrides.sandboxes.sandbox = Some(kind.to_owned());
        session.plan(&session.resolve(&overrides).unwrap()).err().map(|error| error.to_string())
    };
    assert_eq!(refusal("dockr").as_deref(), Some("unknown sandbox `dockr`"));
    assert_eq!(refusal("docker"), None, "adversaries need no container");
}

#[test]
fn adversaries_neither_record_nor_replay_whatever_the_project_says() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("trialrun.yaml"), "defaults:\n  cassette: record\n").unwrap();
    let session = session_with(folder.path(), &[("CI", "true")]);
    let adversaries = session.resolve(&Overrides { adversaries: true, ..Overrides::default() }).unwrap();
    assert_eq!((value(&adversaries, "cassette"), adversaries.cassette()), (json!("off"), CassetteMode::Off));
    session.plan(&adversaries).unwrap();
    let recording = session.resolve(&Overrides::default()).unwrap();
    assert!(session.plan(&recording).err().unwrap().to_string().contains("not recorded in CI"));
}

#[test]
fn a_model_for_an_agent_that_the_run_does_not_have_causes_a_warning() {
    let models = [(Some("claude".to_owned()), "a".to_owned()), (None, "b".to_owned())];
    let unused = |agents: &[&str]| {
        let agents: Vec<String> = agents.iter().map(|agent| (*agent).to_owned()).collect();
        unused_model(&models, &agents, &[]).map(|problem| problem.message)
    };
    assert_eq!(unused(&["fake"]).as_deref(), Some("the model `a` is not used: the run has no agent `claude`"));
    for fine in [&[][..], &["fake", "claude-code"], &["claude"]] {
        assert_eq!(unused(fine), None);
    }
}

#[test]
fn a_model_that_a_later_one_replaces_causes_a_warning() {
    let split = |written: &&str| split_model(written, |name| name == "fake");
    let replaced = |written: &[&str]| replaced_model(&written.iter().map(split).collect::<Vec<_>>());
    let found = replaced(&["fake=a", "b", "fake=c"]).unwrap();
    assert_eq!(found.message, "the model `a` of `fake` is not used: a later one replaces it");
    assert_eq!(replaced(&["a", "b"]).unwrap().message, "the model `a` is not used: a later one replaces it");
    for fine in [&["a", "fake=b"][..], &["fake=a", "fake=a"], &["a"], &[]] {
        assert_eq!(replaced(fine), None);
    }
}
