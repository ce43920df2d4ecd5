//! Container engines that are missing, do not work, or stop during a run. A script stands in for the engine: its
//! containers are processes of this machine.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::Project;

/// The stand-in. It has the image `present`, and does not answer while the file `down` is beside it.
const ENGINE: &str = r#"#!/bin/sh
down=$(dirname "$0")/down
fail() { echo "$2" >&2; exit "$1"; }
unreachable='Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?'
[ "$1" = --version ] && { echo 'Docker version 99.1.2, build 0'; exit; }
[ -e "$down" ] && fail 1 "$unreachable"
case "$1 $2" in
'image inspect') [ "$5" = present ] || fail 1 "Error: No such image: $5" ;;
'run '*)
    shift
    while :; do
        case "$1" in
        --interactive | --rm | --read-only | --init) shift ;;
        --workdir) cd "$2" && shift 2 ;;
        --entrypoint) program=$2 && shift 2 ;;
        --*) shift 2 ;;
        *) break ;;
        esac
    done
    shift
    case "$2" in *CapEff*)
        printf 'CapEff: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\nbash\npath:%s\n' "$PATH"
        cp mark copied
        exit ;;
    esac
    "$program" "$@"
    code=$?
    [ -e "$down" ] && fail 125 'error waiting for container: unexpected EOF'
    exit $code ;;
esac
"#;

/// Returns a project whose `docker` is the stand-in.
fn project() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    let bin = project.dir().join("bin");
    let program = bin.join("docker");
    project.write("bin/docker", ENGINE);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    project.write("trialrun.yaml", "sandbox: {provider: docker, image: present, network: none}\n");
    project.path_first(&bin)
}

/// Writes a scenario for `agent`, whose model follows `steps`.
fn write_scenario(project: &Project, agent: &str, steps: &Value) {
    project.write("scenarios/model.json", &json!({ "steps": steps }).to_string());
    let scenario = format!(
        "scenario: s\nsystem_prompt: p\nuser_prompt: Hi\nagent: '{agent}'\nmodel: scripted:model.json\n\
         fixtures: {{files_unstaged: [{{path: a.txt, content: a}}]}}\nassertions:\n  \
         - {{id: done, type: output_contains, pattern: Done}}\n"
    );
    let scenario = if agent == "chat" { scenario } else { scenario.replace("model: scripted:model.json\n", "") };
    project.write("scenarios/s.yaml", &scenario);
}

/// Returns what `doctor` says about `docker`: whether it is ready, its description, and its hints.
fn doctor(project: &Project) -> (bool, String, String) {
    let rows = project.run(&["doctor", "--json"]).exits(0).json();
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| row["kind"] == "sandbox" && row["name"] == "docker").unwrap();
    (row["ready"] == true, row["about"].to_string(), row["hints"].to_string())
}

#[test]
fn doctor_says_whether_an_engine_works_and_has_the_image() {
    let project = project();
    let (ready, about, hints) = doctor(&project);
    assert!(ready && about.contains("has the image `present`") && about.contains("isolates with"), "{about} {hints}");
    project.write("trialrun.yaml", "");
    let (ready, about, hints) = doctor(&project);
    let found = format!("version 99.1.2 at {}", project.dir().join("bin/docker").display());
    assert!(ready && about.contains(&found), "{about}");
    assert!(hints.contains("no image is set: write `sandbox: {provider: docker, image: IMAGE}`"), "{hints}");
    project.write("trialrun.yaml", "sandbox: {image: absent}\n");
    let (ready, about, hints) = doctor(&project);
    assert!(!ready && about.contains(&found) && hints.contains("docker pull absent"), "{about} {hints}");
    project.write("bin/down", "");
    let (ready, about, hints) = doctor(&project);
    assert!(!ready && about.contains(&found) && hints.contains("Is the docker daemon running?"), "{about} {hints}");
    let (ready, about, hints) = doctor(&project.env("PATH", "/nowhere"));
    assert!(!ready && about == "[]" && hints.contains("`docker` is not on the PATH"), "{about} {hints}");
}

#[test]
fn a_run_without_its_engine_does_not_start_and_prune_says_that_it_cannot_look() {
    let project = project();
    write_scenario(&project, "subprocess:cat", &json!([]));
    project.write("bin/down", "");
    let ran = project.run(&["run"]).exits(3);
    assert!(ran.err.contains("Is the docker daemon running?"), "{}", ran.output());
    let pruned = project.run(&["prune"]).exits(0);
    assert!(pruned.err.contains("cannot look for orphans: `docker` sandboxes: Cannot connect"), "{}", pruned.output());
    project.write("trialrun.yaml", "");
    assert_eq!(project.run(&["prune"]).exits(0).err, "");
}

#[test]
fn a_trial_whose_engine_stops_is_broken_and_leaves_nothing() {
    let down = |project: &Project| format!("touch {}", project.dir().join("bin/down").display());
    let broken = |project: &Project, expected: &str| {
        let trial = project.report(&["--retries", "0"], 3)["trials"][0].clone();
        assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("environment")), "{trial:#}");
        let because = trial["because"].as_str().unwrap();
        assert!(because.starts_with(expected) && because.contains("Is the docker daemon running?"), "{because}");
        assert_eq!(project.left_over(), Vec::<String>::new());
    };
    let stopped = project();
    write_scenario(&stopped, "subprocess:sh agent.sh", &json!([]));
    stopped.write("agent.sh", &format!("{}; exit 1\n", down(&stopped)));
    broken(&stopped, "could not reach the agent: the container engine failed: Cannot connect");
    // An agent inside trialrun goes on, and sees only that its commands fail.
    let stopped = project();
    let call = |command: &str| json!({"tools": [{"name": "Bash", "input": {"command": command}}]});
    write_scenario(&stopped, "chat", &json!([call(&down(&stopped)), call("cat a.txt"), {"text": "Done."}]));
    broken(&stopped, "could not reach the agent: `docker` sandboxes: Cannot connect");
}
