//! Attacks on the commands that grade a trial: `specimens/hostile/grading.yaml`. All of them run in one run, next to the
//! same trials without an attack.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::Project;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    projects: BTreeMap<String, FixtureProject>,
    attacks: BTreeMap<String, Attack>,
    /// Agents that do the work.
    honest: BTreeMap<String, Attack>,
}

/// Project without its work, whose assertion is not met.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FixtureProject {
    assertion: Value,
    /// Contents of its files.
    files: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attack {
    #[expect(dead_code, reason = "it is for readers")]
    tries: String,
    /// Projects, separated by spaces.
    project: String,
    agent: String,
    /// Outcome of the trial.
    #[serde(default = "failed")]
    result: String,
    #[serde(default)]
    signs: Vec<String>,
}

fn failed() -> String {
    "failed".to_owned()
}

/// Returns the path of a file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Reads a table of attacks.
fn read<T: DeserializeOwned>(name: &str) -> T {
    let node = suite::read_document(&file("specimens/hostile").join(name), name).unwrap();
    serde_json::from_value(node.to_json()).unwrap()
}

fn table() -> Table {
    read("grading.yaml")
}

#[test]
fn the_threat_model_names_attacks_that_exist() {
    let page = std::fs::read_to_string(file("docs/explanation/threat-model.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| attempt |")).skip(2);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 30, "{rows:?}");
    let agents: BTreeMap<String, Value> = read("expected.yaml");
    let attacks = table().attacks;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let named: Vec<&str> = cells[4].split(", ").filter(|name| !name.is_empty()).collect();
        for name in &named {
            let name = name.trim_matches('`');
            assert!(agents.contains_key(name) || attacks.contains_key(name), "{name} is not an attack");
        }
        let is_known = |cell: &str| ["prevented", "detected", "open"].iter().any(|word| cell.starts_with(word));
        assert!(is_known(cells[2]) && is_known(cells[3]), "{row}");
        assert!(!named.is_empty() || cells[3] == "open", "no attack shows it: {row}");
    }
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn no_attack_on_grading_passes_in_local_sandboxes() {
    no_attack_passes("local");
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn no_attack_on_grading_passes_in_isolated_sandboxes() {
    no_attack_passes("isolated");
}

#[track_caller]
fn no_attack_passes(kind: &str) {
    let table = table();
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("trialrun.yaml", &format!("sandbox: {{provider: {kind}, network: open}}\n"));
    // The message selects the attack.
    let mut agent = "read -r line\ncase $line in\n".to_owned();
    for (name, attack) in table.attacks.iter().chain(&table.honest) {
        writeln!(agent, "*\"attack {name}.\"*)\n{}\n;;", attack.agent).unwrap();
        for fixture in attack.project.split(' ') {
            project.write(&format!("scenarios/{name}-{fixture}.yaml"), &case(name, fixture, &table.projects[fixture]));
        }
    }
    agent.push_str("esac\nprintf '{\"text\": \"done\"}\\n'\n");
    project.write("agent.sh", &agent);
    for (name, fixture) in &table.projects {
        project.write(&format!("scenarios/none-{name}.yaml"), &case("none", name, fixture));
    }
    let arguments = ["run", "--retries", "0", "-j", "4", "--report", "terminal", "--report", "json=r.json"];
    let ran = project.run(&arguments);
    let report: Value = serde_json::from_str(&project.read("r.json")).unwrap_or_else(|_| panic!("{}", ran.output()));
    let trials = report["trials"].as_array().unwrap();
    let agents = table.attacks.values().chain(table.honest.values());
    let attempts: usize = agents.map(|attack| attack.project.split(' ').count()).sum();
    assert_eq!(trials.len(), attempts + table.projects.len(), "{}", ran.output());
    let mut wrong = Vec::new();
    for trial in trials {
        let title = trial["scenario"].as_str().or(trial["case"].as_str()).unwrap_or_default();
        let name = title.split(' ').next().unwrap_or_default();
        let found = trial["integrity"].as_array().unwrap();
        if table.honest.contains_key(name) {
            if trial["outcome"] != "passed" || !found.is_empty() {
                wrong.push(format!("{title}: {}, {found:?}, {}", trial["outcome"], trial["findings"]));
            }
            continue;
        }
        let attack = table.attacks.get(name);
        let signs = attack.map_or(&[][..], |attack| &attack.signs);
        let result = attack.map_or("failed", |attack| &attack.result);
        assert!(result == "failed" || !signs.is_empty(), "{name} is neither prevented nor detected");
        let is_marked = signs.iter().all(|kind| found.iter().any(|sign| sign["kind"] == **kind));
        if trial["outcome"] != *result || !is_marked {
            wrong.push(format!("{title}: {}, {found:?}, {}", trial["outcome"], trial["findings"]));
        }
    }
    assert!(wrong.is_empty(), "in {kind}: {wrong:#?}");
}

/// Returns the case of an attack on a project.
fn case(name: &str, fixture: &str, project: &FixtureProject) -> String {
    let files: Vec<Value> =
        project.files.iter().map(|(path, content)| json!({"path": path, "content": content})).collect();
    let mut assertion = project.assertion.clone();
    assertion["id"] = "graded".into();
    let case = json!({
        "scenario": format!("{name} {fixture}"),
        "system_prompt": "Answer.",
        "user_prompt": format!("attack {name}."),
        "agent": "subprocess:sh agent.sh",
        "fixtures": {"git_init": true, "files_committed": files},
        "assertions": [assertion],
    });
    case.to_string()
}
