//! Containers for tests: an empty image into which the system folders of this machine are mounted.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use sandbox::SandboxOptions;
use serde_json::{Value, json};
use testkit::Project;
use testkit::real::{RealAgent, only_trial};

use super::machine::Settings;

/// Image that the tests build.
pub(super) const IMAGE: &str = "localhost/trialrun-test:1";

/// System folders that are mounted over the image's empty ones.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// Variables that engines use to find their services.
const OF_ENGINES: [&str; 4] = ["DOCKER_HOST", "XDG_RUNTIME_DIR", "HOME", "CONTAINERS_CONF"];

/// Runs a command of the engine, and returns its output.
pub(super) fn ask(engine: &str, args: &[&str]) -> std::io::Result<Output> {
    Command::new(engine).args(args).output()
}

/// Returns the settings for containers, and builds the image. `None` if the engine does not work here.
pub(super) fn settings(engine: &'static str) -> Option<Settings> {
    static READY: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
    let mut ready = READY.lock().unwrap_or_else(PoisonError::into_inner);
    if !*ready.entry(engine).or_insert_with(|| make_image(engine)) {
        println!("{engine} SKIPPED: it is not installed, or does not run");
        return None;
    }
    let env = OF_ENGINES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let options = SandboxOptions { image: Some(IMAGE.to_owned()), visible: system(), ..SandboxOptions::default() };
    Some(Settings { options, env: env.collect(), must_hold: true, elsewhere: None })
}

/// Returns the system folders that are not symbolic links.
pub(super) fn system() -> Vec<PathBuf> {
    SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists() && !path.is_symlink()).collect()
}

/// Builds the image if it does not exist. Returns `false` if the engine does not work.
fn make_image(engine: &str) -> bool {
    let succeeds = |args: &[&str]| ask(engine, args).is_ok_and(|output| output.status.success());
    if !succeeds(&["info"]) {
        return false;
    }
    if succeeds(&["image", "inspect", IMAGE]) {
        return true;
    }
    let root = tempfile::tempdir().unwrap();
    for folder in ["usr", "etc", "proc", "dev", "sys", "tmp", "run", "var/tmp"] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    for path in SYSTEM.iter().map(Path::new) {
        let place = root.path().join(path.strip_prefix("/").unwrap());
        match fs::read_link(path) {
            Ok(target) => symlink(target, place).unwrap(),
            Err(_) => fs::create_dir_all(place).unwrap(),
        }
    }
    let archive = root.path().with_extension("tar");
    let made = Command::new("tar").arg("-C").arg(root.path()).arg("-cf").arg(&archive).arg(".").status().unwrap();
    assert!(made.success());
    let imported = ask(engine, &["import", archive.to_str().unwrap(), IMAGE]).unwrap();
    fs::remove_file(&archive).unwrap();
    if !imported.status.success() {
        println!("{engine}: {}", String::from_utf8_lossy(&imported.stderr));
    }
    imported.status.success()
}

/// Returns a project with a scenario for the agent, or `None` if the engine does not work here.
pub(super) fn project(engine: &'static str, agent: &str, more: &str) -> Option<Project> {
    let settings = settings(engine)?;
    let mut project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    for (name, value) in &settings.env {
        project = project.env(name, value);
    }
    let visible = serde_json::to_string(&settings.options.visible).unwrap();
    project
        .write("trialrun.yaml", &format!("sandbox:\n  provider: {engine}\n  image: {IMAGE}\n  visible: {visible}\n"));
    let scenario = format!(
        "scenario: s\nsystem_prompt: p\nuser_prompt: Hi\nagent: '{agent}'\n{more}\
         assertions:\n  - {{ id: a, type: output_contains, pattern: Hi }}\n"
    );
    project.write("scenarios/s.yaml", &scenario);
    Some(project)
}

/// Returns the names of containers that the program left behind.
pub(super) fn left(engine: &str) -> Vec<String> {
    let output = ask(engine, &["ps", "--all", "--filter", "label=trialrun.owner", "--format", "{{.Names}}"]).unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Runs an agent CLI that reaches only its scripted model, whose first answer is HTTP 529 and whose third one is cut.
pub(super) fn a_real_agent_recovers_from_faults(
    engine: &'static str,
    agent: RealAgent,
    tool: &str,
    input: &Value,
    test: &str,
) {
    let Some(settings) = settings(engine) else { return };
    let trialrun = env!("CARGO_BIN_EXE_trialrun");
    let Some(mut project) = agent.project(trialrun, env!("CARGO_TARGET_TMPDIR"), test) else { return };
    for (name, value) in &settings.env {
        project = project.env(name, value);
    }
    let folder = agent.path().unwrap().parent().unwrap().canonicalize().unwrap();
    let certificates = PathBuf::from("/etc/ssl");
    let visible: Vec<_> = settings.options.visible.iter().chain([&folder, &certificates]).collect();
    let program = folder.join(agent.program);
    let config = json!({
        "agents": {"real": {"type": agent.name, "program": program}},
        "sandbox": {"provider": engine, "image": IMAGE, "network": "model-only", "visible": visible},
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
