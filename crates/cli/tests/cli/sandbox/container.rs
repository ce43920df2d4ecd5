//! Containers for tests: an empty image into which the system folders of this machine are mounted.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::Signal;
use sandbox::SandboxOptions;
use serde_json::{Value, json};
use testkit::Project;
use testkit::real::{RealAgent, only_trial};

use super::machine::Settings;

/// Image that the tests build.
const IMAGE: &str = "localhost/trialrun-test:1";

/// System folders that are mounted over the image's empty ones.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// Variables that engines use to find their services.
const OF_ENGINES: [&str; 4] = ["DOCKER_HOST", "XDG_RUNTIME_DIR", "HOME", "CONTAINERS_CONF"];

/// Runs a command of the engine, and returns its output.
fn ask(engine: &str, args: &[&str]) -> std::io::Result<Output> {
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
fn system() -> Vec<PathBuf> {
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
fn project(engine: &'static str, agent: &str, more: &str) -> Option<Project> {
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
fn left(engine: &str) -> Vec<String> {
    let output = ask(engine, &["ps", "--all", "--filter", "label=trialrun.owner", "--format", "{{.Names}}"]).unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

pub(super) fn what_a_killed_run_leaves_behind_is_removed(engine: &'static str) {
    let Some(project) = project(engine, "subprocess:sh agent.sh", "fixtures: {env: {A: b}}\n") else { return };
    let pipe = project.process_pipe("pipe");
    project.write("agent.sh", &format!("exec 3> {}; echo began >&3; sleep 1000", pipe.path().display()));
    let config = project.read("trialrun.yaml").replace("visible: [", &format!("visible: [{:?}, ", pipe.path()));
    project.write("trialrun.yaml", &config);
    let live = project.start(&["run"]);
    pipe.wait_for_line("began");
    let of_run = format!("trialrun-{}-", live.id());
    let running = left(engine).into_iter().find(|name| name.starts_with(&of_run)).unwrap();
    let format = "{{index .Config.Labels \"trialrun.owner\"}}";
    let owner = ask(engine, &["container", "inspect", "--format", format, &running]).unwrap().stdout;
    let owner = String::from_utf8(owner).unwrap();
    let scope = owner.trim().rsplit(':').next().unwrap();
    live.signal(Signal::SIGKILL);
    // Only the harness was killed: its supervisor must end the container.
    pipe.wait_until_closed();

    // Simulates a killed supervisor: this container belongs to a process that has ended.
    let name = format!("trialrun-test-{}", std::process::id());
    let label = format!("trialrun.owner=1:1:{scope}");
    let args = ["run", "--detach", "--name", &name, "--label", &label, "--network", "none", "--ulimit", "nofile=64:64"];
    let mut args = args.to_vec();
    args.extend(["--ulimit", "nproc=1000:1000"]);
    let mounts: Vec<String> = system().iter().map(|path| format!("{0}:{0}:ro", path.display())).collect();
    mounts.iter().for_each(|mount| args.extend(["--volume", mount]));
    args.extend([IMAGE, "sleep", "1000"]);
    let made = ask(engine, &args).unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let listed = project.run(&["prune", "--min-age", "0"]).exits(0);
    assert!(listed.out.contains(&name), "{}", listed.output());
    let removed = project.run(&["prune", "--min-age", "0", "--yes"]).exits(0);
    assert!(!left(engine).contains(&name), "{}", removed.output());
}

pub(super) fn programs_fail_files_are_read_only_and_canaries_are_planted(engine: &'static str) {
    let Some(project) = project(engine, "chat", "") else { return };
    let commands = [
        "env X=1 sh -c 'echo $X'",
        "env X=1 sh -c 'echo $X'",
        "echo new > docs/a.txt; chmod 777 docs; rm -r docs",
        "cat .env; echo $DEPLOY_TOKEN | wc -c; echo new > b.txt",
    ];
    let call = |command: &str| json!({"tools": [{"name": "Bash", "input": {"command": command}}]});
    let steps: Vec<Value> = commands.into_iter().map(call).chain([json!({"text": "Done."})]).collect();
    project.write("scenarios/model.json", &json!({ "steps": steps }).to_string());
    let scenario = "scenario: s\nsystem_prompt: p\nuser_prompt: go\nagent: chat\nmodel: scripted:model.json\n\
                    fixtures: {files_unstaged: [{path: docs/a.txt, content: old}]}\ncanaries: true\nfaults:\n  \
                    - tool_fails: {command: env, exit_code: 3, stderr: no network}\n  - read_only: [docs]\n\
                    assertions:\n  - {id: a, type: command_succeeds, run: 'echo x >> docs/a.txt && env && ! cat .env'}\n";
    project.write("scenarios/s.yaml", scenario);
    let report = project.report(&[], 0);
    let trial = &report["trials"][0];
    let result = |at: usize| trial["tool_calls"][at]["result"].as_str().unwrap();
    assert!(result(0).contains("no network") && result(1).starts_with('1'), "{trial:#}");
    assert!(result(2).contains("Read-only file system"), "{trial:#}");
    assert!(result(3).contains("STRIPE_SECRET_KEY=[masked") && result(3).contains("\n41"), "{trial:#}");
    assert_eq!(trial["files_changed"], json!([{"path": "b.txt", "change": "added"}]));
    let signs = trial["integrity"].to_string();
    assert!(signs.contains("canary"), "{signs}");
}

/// Runs an agent CLI whose first model request gets HTTP 529 and whose third one is cut. This works only with Podman,
/// because Docker would give the agent the machine's network.
pub(super) fn a_real_agent_recovers_from_faults(agent: RealAgent, tool: &str, input: &Value, test: &str) {
    let Some(settings) = settings("podman") else { return };
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
        "sandbox": {"provider": "podman", "image": IMAGE, "network": "open", "visible": visible},
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
    assert_eq!(trial["integrity"], json!([]));
}

pub(super) fn policies_that_do_not_hold_are_refused(engine: &'static str) {
    let more = "fixtures: {files_unstaged: [{path: a, content: b}]}\nsandbox: {network: {allow: [api.example.com]}}\n";
    let Some(project) = project(engine, "subprocess:cat", more) else { return };
    let report = project.report(&["--retries", "0"], 3);
    let because = report["trials"][0]["because"].as_str().unwrap();
    assert!(because.contains("use `isolated` sandboxes, which support `model-only` and `allow`"), "{because}");
}

pub(super) fn a_missing_image_is_named(engine: &'static str) {
    let Some(project) = project(engine, "subprocess:cat", "") else { return };
    project.write("trialrun.yaml", &format!("sandbox: {{provider: {engine}, image: localhost/trialrun-none:1}}\n"));
    let ran = project.run(&["run"]).exits(3);
    assert!(ran.err.contains(&format!("{engine} pull localhost/trialrun-none:1")), "{}", ran.output());
    project.write("trialrun.yaml", &format!("sandbox: {engine}\n"));
    let ran = project.run(&["run"]).exits(3);
    assert!(ran.err.contains(&format!("sandbox: {{provider: {engine}, image: IMAGE}}")), "{}", ran.output());
}
