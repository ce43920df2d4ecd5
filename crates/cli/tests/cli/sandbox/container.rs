//! Containers for tests: an empty image into which the system folders of this machine are mounted.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Output};

use sandbox::SandboxOptions;
use serde_json::{Value, json};
use testkit::Project;
use testkit::real::{RealAgent, only_trial};

use super::kind::Kind;

/// Image without files, which `scripts/needs` makes.
pub(super) const IMAGE: &str = "localhost/trialrun-test:1";

/// System folders that are mounted over the image's empty ones.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// Variables that engines use to find their services.
const OF_ENGINES: [&str; 4] = ["DOCKER_HOST", "XDG_RUNTIME_DIR", "HOME", "CONTAINERS_CONF"];

/// Runs a command of the engine, and returns its output.
pub(super) fn ask(engine: &str, args: &[&str]) -> std::io::Result<Output> {
    Command::new(engine).args(args).output()
}

/// Returns the kind of containers of the engine.
pub(super) fn kind(engine: &'static str) -> Kind {
    let env = OF_ENGINES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let options = SandboxOptions { image: Some(IMAGE.to_owned()), visible: system(), ..SandboxOptions::default() };
    Kind { options, env: env.collect(), ..Kind::of(engine) }
}

/// Returns the system folders that are not symbolic links.
pub(super) fn system() -> Vec<PathBuf> {
    SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists() && !path.is_symlink()).collect()
}

/// Returns a project with a scenario for the agent.
pub(super) fn project(kind: &Kind, agent: &str, more: &str) -> Project {
    let mut project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    for (name, value) in &kind.env {
        project = project.env(name, value);
    }
    let visible = serde_json::to_string(&kind.options.visible).unwrap();
    let engine = kind.name;
    project
        .write("trialrun.yaml", &format!("sandbox:\n  provider: {engine}\n  image: {IMAGE}\n  visible: {visible}\n"));
    let scenario = format!(
        "scenario: s\nsystem_prompt: p\nuser_prompt: Hi\nagent: '{agent}'\n{more}\
         assertions:\n  - {{ id: a, type: output_contains, pattern: Hi }}\n"
    );
    project.write("scenarios/s.yaml", &scenario);
    project
}

/// Returns the names of containers that the program left behind.
pub(super) fn left(engine: &str) -> Vec<String> {
    let output = ask(engine, &["ps", "--all", "--filter", "label=trialrun.owner", "--format", "{{.Names}}"]).unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Runs an agent CLI that reaches only its scripted model, whose first answer is HTTP 529 and whose third one is cut.
pub(super) fn a_real_agent_recovers_from_faults(kind: &Kind, agent: RealAgent, tool: &str, input: &Value) {
    let mut project = agent.project(env!("CARGO_BIN_EXE_trialrun"), env!("CARGO_TARGET_TMPDIR"));
    for (name, value) in &kind.env {
        project = project.env(name, value);
    }
    let folder = agent.installed().canonicalize().unwrap();
    let certificates = PathBuf::from("/etc/ssl");
    let visible: Vec<_> = kind.options.visible.iter().chain([&folder, &certificates]).collect();
    let program = folder.join(agent.program);
    let config = json!({
        "agents": {"real": {"type": agent.name, "program": program}},
        "sandbox": {"provider": kind.name, "image": IMAGE, "network": "model-only", "visible": visible},
    });
    let model = json!({"steps": [{"tools": [{"name": tool, "input": input}]}, {"text": "Done."}]});
    project.write("trialrun.yaml", &config.to_string()).write("model.json", &model.to_string()).write(
        "case.yaml",
        "scenario: s\nsystem_prompt: Work.\nuser_prompt: go\nagent: real\nmodel: scripted:model.json\nfaults:\n  \
         - http_status: {status: 529, retry_after: 1s}\n  - cut_stream: {at: 3}\nassertions:\n  \
         - {id: recovered, type: recovered}\n  - {id: out, type: file_exists, path: out.txt}\n",
    );
    let trial = only_trial(&project.report(&["case.yaml"], 0));
    let hits: Vec<_> = trial["injected_faults"].as_array().unwrap().iter().map(|fault| &fault["hits"]).collect();
    assert_eq!(hits, [&json!([1]), &json!([3])], "{trial:#}");
    assert_eq!((&trial["integrity"], &trial["network"]), (&json!([]), &json!("model-only")));
    let egress = trial["egress"].as_array().unwrap();
    assert!(egress.iter().any(|attempt| attempt["is_model"] == true && attempt["verdict"] == "allowed"), "{egress:?}");
}
