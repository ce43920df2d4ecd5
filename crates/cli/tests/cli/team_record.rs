//! A record that several machines share: a PostgreSQL database.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use testkit::{Live, PASSWORD, PostgresServer, Project};

fn project(state: &str, prompt: &str, trials: usize) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("trialrun.yaml", &format!("state: {state}\ndefaults: {{ agent: fake }}\n"));
    project.write(
        "case.yaml",
        &format!(
            "scenario: case\ntrials: {trials}\nsystem_prompt: Be brief.\nuser_prompt: |\n  {prompt}\n\
             assertions:\n- {{id: said, type: output_contains, pattern: hello}}\n"
        ),
    );
    project
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn every_command_uses_the_record_of_a_team_and_none_shows_its_password() {
    let server = PostgresServer::shared();
    let socket = server.url();
    let (_, schema) = socket.rsplit_once("schema=").unwrap();
    let url = format!("postgres://ann@127.0.0.1:{}/postgres?schema={schema}", server.port());
    let project = project(&url, &format!("hello {PASSWORD}"), 2).env("PGPASSWORD", PASSWORD);
    assert_eq!(project.run(&["history"]).exits(0).err, "");
    let commands: [&[&str]; 16] = [
        &["run", "case.yaml", "--label", "main"],
        &["run", "case.yaml", "--label", "pr-7", "--report", "jsonl"],
        &["compare", "main", "pr-7"],
        &["compare", "main", "latest", "--json"],
        &["history", "--json"],
        &["history", "--cases"],
        &["show", "main/case"],
        &["show", "latest"],
        &["trend", "--case", "case"],
        &["report", "main", "--format", "json"],
        &["status"],
        &["verify", "main"],
        &["regrade", "main"],
        &["export", "main", "main.run"],
        &["config"],
        &["doctor", "--json"],
    ];
    let mut shown = String::new();
    for command in commands {
        let ran = project.run(command);
        assert!(ran.code == 0 || command[0] == "doctor", "{command:?}: {}", ran.output());
        shown.push_str(&ran.output());
    }
    let history = project.run(&["history", "--json"]).exits(0).json();
    let labels: Vec<&str> = history.as_array().unwrap().iter().filter_map(|run| run["label"].as_str()).collect();
    assert_eq!(labels, ["pr-7", "main"]);
    let report = project.run(&["report", "main", "--format", "json"]).exits(0).json();
    assert_eq!(report["run"]["origin"]["host"].as_str().map(str::is_empty), Some(false), "{}", report["run"]);

    // A run moves between the database and a file.
    project.run(&["import", "main.run", "--state", "here"]).exits(0);
    let hash = |state: &str| {
        let history = project.run(&["history", "--json", "--state", state]).exits(0).json();
        let main = history.as_array().unwrap().iter().find(|run| run["label"] == "main").cloned();
        main.unwrap()["hash"].clone()
    };
    assert_eq!(hash("here"), hash(&url));
    assert!(!project.dir().join(".trialrun/runs.db").exists());
    assert!(shown.contains("[masked]") && !shown.contains(PASSWORD), "{shown}");
    project.run(&["prune", "--runs", "1", "--yes"]).exits(0);
    assert_eq!(project.run(&["history", "--json"]).exits(0).json().as_array().unwrap().len(), 1);

    let project = project.env("PGPASSWORD", "battery staple");
    let refused = project.run(&["run", "case.yaml"]).exits(2);
    let reason =
        format!("cannot open the record postgres://ann@127.0.0.1:{}/postgres?schema={schema}: password", server.port());
    assert!(refused.err.contains(&reason) && !refused.err.contains("battery staple"), "{}", refused.output());
}

/// Returns the numbers of the recorded trials, each of which must be recorded once.
fn recorded(project: &Project) -> BTreeSet<u64> {
    let history = project.run(&["history", "--cases", "--last", "1000", "--json"]).exits(0).json();
    let rows = history.as_array().unwrap();
    let numbers: BTreeSet<u64> = rows.iter().map(|row| row["repetition"].as_u64().unwrap()).collect();
    assert_eq!(numbers.len(), rows.len(), "a trial is recorded twice");
    assert!(rows.iter().all(|row| row["outcome"] == "passed"), "{history}");
    numbers
}

fn read_lines_with_passed(live: &mut Live, count: usize) {
    for _ in 0..count {
        live.line_with("passed");
    }
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_run_survives_a_crash_of_the_database_and_its_own() {
    const TRIALS: usize = 600;
    let mut server = PostgresServer::start();
    let project = project(&server.url(), "hello\n  !sleep 10ms", TRIALS);
    let mut live = project.start(&["run", "case.yaml", "--jobs", "2"]);
    read_lines_with_passed(&mut live, 20);
    server.crash();
    server.start_again();
    read_lines_with_passed(&mut live, 20);
    live.signal(Signal::SIGKILL);
    live.end();
    let kept = recorded(&project);
    assert!((40..TRIALS).contains(&kept.len()), "{}", kept.len());
    let resumed = project.run(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(recorded(&project).len(), TRIALS, "{}", resumed.output());
    let verified = project.run(&["verify", "latest"]).exits(0);
    assert!(verified.out.contains("is unchanged"), "{}", verified.output());
}
