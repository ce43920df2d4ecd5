//! Attacks on the grading of trials: `specimens/hostile/grading.yaml`, next to the same trials without an attack. A
//! twelfth of them runs in `local` and another in `isolated` sandboxes, some run in remote ones with a stand-in for the
//! service, and all of them run in each kind if the variable [`ALL`] is set.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::Project;

use super::sandbox::daytona::stand_in::{Fault, KEY, StandIn};

/// Variable with which all attacks run in each kind of sandbox.
const ALL: &str = "TRIALRUN_ALL_ATTACKS";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    projects: BTreeMap<String, FixtureProject>,
    attacks: BTreeMap<String, Attack>,
    /// Agents that do the work.
    honest: BTreeMap<String, Attack>,
}

/// Project without its work, whose assertions are not met.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FixtureProject {
    assertions: Vec<Value>,
    /// Script that agents run first.
    #[serde(default)]
    before: String,
    /// Additional text of the message.
    #[serde(default)]
    message: String,
    /// Program without which the project is left out.
    needs: Option<String>,
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
        for name in named.iter().map(|name| name.trim_matches('`')) {
            let (results, signs) = match (agents.get(name), attacks.get(name)) {
                (Some(agent), _) => {
                    let local = agent["local"].as_str().unwrap_or("held");
                    ([local, agent["isolated"].as_str().unwrap_or(local)], strings(&agent["signs"]))
                }
                (_, Some(attack)) => ([attack.result.as_str(); 2], attack.signs.clone()),
                (None, None) => unreachable!("{name}"),
            };
            for (cell, result) in [cells[2], cells[3]].into_iter().zip(results) {
                assert!(is_true(cell, result, &signs), "{name} is {result} with {signs:?}, and not {cell}");
            }
        }
    }
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Returns `true` if what a cell of the threat model says is the expected result of an attack.
fn is_true(cell: &str, result: &str, signs: &[String]) -> bool {
    let is_detected = || {
        let is_named = |sign: &String| match sign.as_str() {
            "judge_instruction" => cell.contains("instruction to the judge"),
            sign => cell.contains(&sign.replace('_', " ")),
        };
        cell.contains("detected") && !signs.is_empty() && signs.iter().all(is_named)
    };
    match result {
        "held" => cell.contains("prevented"),
        "found" | "failed" => cell.contains("prevented") || is_detected(),
        "shown" | "passed" => is_detected(),
        "succeeds" | "open" => cell.contains("open") || cell.contains("detected by"),
        "succeeds as root" | "may succeed" => cell.contains("open"),
        // The project requires what this kind of sandbox does not provide.
        "refused" => cell == "open",
        _ => false,
    }
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
#[cfg_attr(not(has = "graders"), ignore = "needs make, Python 3 and Node.js; run scripts/test")]
fn no_attack_on_grading_passes_in_local_sandboxes() {
    no_attack_passes("local", 12, |project| project);
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
#[cfg_attr(not(has = "graders"), ignore = "needs make, Python 3 and Node.js; run scripts/test")]
fn no_attack_on_grading_passes_in_isolated_sandboxes() {
    no_attack_passes("isolated", 12, |project| project);
}

#[test]
#[cfg_attr(not(has = "graders"), ignore = "needs make, Python 3 and Node.js; run scripts/test")]
fn no_attack_on_grading_passes_in_remote_sandboxes() {
    let service = StandIn::open(Fault::Nothing);
    let of_service = |project: Project| {
        let project = project.env("DAYTONA_API_URL", &service.url()).env("DAYTONA_API_KEY", KEY);
        project.env("TRIALRUN_SETUP_TIMEOUT", "60s")
    };
    no_attack_passes("daytona", 48, of_service);
    assert!(service.sandboxes().is_empty());
}

/// Runs one of `share` attacks, in projects that are prepared by `prepared`.
#[track_caller]
fn no_attack_passes(kind: &str, share: usize, prepared: impl Fn(Project) -> Project) {
    let mut table = table();
    // The program itself, because it would need the user's home to find it.
    let cargo = Path::new(env!("CARGO")).parent().unwrap();
    let folders = [cargo, Path::new("/usr/bin"), Path::new("/usr/local/bin")];
    // The machines of the stand-in have only the programs of the system.
    let folders = if kind == "daytona" { &folders[1..] } else { &folders[..] };
    let has = |program: &String| folders.iter().any(|folder| folder.join(program).exists());
    table.projects.retain(|_, project| project.needs.as_ref().is_none_or(has));
    if kind == "daytona" {
        // The machines of the stand-in share a file system, where each has another folder, so absolute paths lead elsewhere.
        table.projects.remove("ctest");
        table
            .attacks
            .retain(|name, _| !["links-result-out", "links-result-to-temporary-file"].contains(&name.as_str()));
    }
    let project = prepared(Project::new(env!("CARGO_BIN_EXE_trialrun")).path_first(cargo));
    project.write("trialrun.yaml", &format!("sandbox: {{provider: {kind}, network: open}}\n"));
    let (all, is_local) = (std::env::var_os(ALL).is_some(), kind == "local");
    // Without the work, a project fails in the same way in each kind.
    let has_controls = all || is_local;
    // The message selects the attack.
    let mut agent = "read -r line\ncase $line in\n".to_owned();
    for (name, FixtureProject { before, .. }) in &table.projects {
        writeln!(agent, "*\" on {name}.\"*)\n{before}\n;;").unwrap();
        if has_controls {
            project.write(&format!("scenarios/none-{name}.yaml"), &case("none", name, &table.projects[name]));
        }
    }
    agent.push_str("esac\ncase $line in\n");
    let is_here = |at: usize| all || at % share == usize::from(is_local);
    let mut attempts = 0;
    for (name, attack) in table.attacks.iter().chain(&table.honest) {
        writeln!(agent, "*\"attack {name} on\"*)\n{}\n;;", attack.agent).unwrap();
        for fixture in attack.project.split(' ').filter(|fixture| table.projects.contains_key(*fixture)) {
            if is_here(attempts) {
                project
                    .write(&format!("scenarios/{name}-{fixture}.yaml"), &case(name, fixture, &table.projects[fixture]));
            }
            attempts += 1;
        }
    }
    agent.push_str("esac\nprintf '{\"text\": \"done\"}\\n'\n");
    project.write("agent.sh", &agent);
    let arguments = ["run", "--retries", "0", "-j", "4", "--report", "terminal", "--report", "json=r.json"];
    let ran = project.run(&arguments);
    let report: Value = serde_json::from_str(&project.read("r.json")).unwrap_or_else(|_| panic!("{}", ran.output()));
    let trials = report["trials"].as_array().unwrap();
    let controls = if has_controls { table.projects.len() } else { 0 };
    let expected = (0..attempts).filter(|at| is_here(*at)).count() + controls;
    assert_eq!(trials.len(), expected, "{}", ran.output());
    let wrong: Vec<String> = trials.iter().filter_map(|trial| mistake(&table, trial)).collect();
    assert!(wrong.is_empty(), "in {kind}: {wrong:#?}");
}

/// Returns the trial in words if it does not have the result that the table expects.
fn mistake(table: &Table, trial: &Value) -> Option<String> {
    let title = trial["scenario"].as_str().or(trial["case"].as_str()).unwrap_or_default();
    let name = title.split(' ').next().unwrap_or_default();
    let (signs, findings) = (trial["integrity"].as_array().unwrap(), trial["findings"].as_array().unwrap());
    let attack = table.attacks.get(name);
    let is_marked = |kind: &String| signs.iter().any(|sign| sign["kind"] == **kind);
    let is_met = |finding: &Value| finding["status"] == "met";
    let mut graded = findings.iter().filter(|finding| finding["id"].as_str().unwrap().starts_with("graded"));
    let is_right = match (table.honest.contains_key(name), attack.map_or("failed", |attack| &attack.result)) {
        (true, _) | (false, "open") => trial["outcome"] == "passed" && signs.is_empty(),
        (false, "passed") => trial["outcome"] == "passed" && !signs.is_empty(),
        // An agent that does not come to its end attacks nothing.
        (false, _) => {
            trial["outcome"] == "failed"
                && !graded.any(is_met)
                && !trial["because"].to_string().contains("its process ended before it answered")
        }
    };
    let is_right = is_right && attack.is_none_or(|attack| attack.signs.iter().all(is_marked));
    (!is_right).then(|| format!("{title}: {}, {}, {signs:?}, {findings:?}", trial["outcome"], trial["because"]))
}

/// Returns the case of an attack on a project.
fn case(name: &str, fixture: &str, project: &FixtureProject) -> String {
    let files: Vec<Value> =
        project.files.iter().map(|(path, content)| json!({"path": path, "content": content})).collect();
    let mut assertions = project.assertions.clone();
    for (at, assertion) in assertions.iter_mut().enumerate() {
        assertion["id"] = format!("graded-{at}").into();
    }
    let case = json!({
        "scenario": format!("{name} {fixture}"),
        "system_prompt": "Answer.",
        "user_prompt": format!("attack {name} on {fixture}. {}", project.message),
        "agent": "subprocess:sh agent.sh",
        "fixtures": {"git_init": true, "files_committed": files},
        "assertions": assertions,
    });
    case.to_string()
}
