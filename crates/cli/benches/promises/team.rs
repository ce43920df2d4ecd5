//! A record on PostgreSQL, compared with one in a file, and read when it is large.

use std::path::Path;

use testkit::PostgresServer;

use super::{Promise, ok, record, times, trialrun, write};

/// Number of recorded trials.
const TRIALS: usize = 10_000;

pub fn promises(scratch: &Path) -> Vec<Promise> {
    let server = PostgresServer::start();
    let mut promises = vec![recording(scratch, &server)];
    promises.extend(lists(scratch, &server));
    promises
}

/// Compares the time of a run with each kind of record.
fn recording(scratch: &Path, server: &PostgresServer) -> Promise {
    let dir = scratch.join("team");
    write(
        &dir.join("a.yaml"),
        &format!(
            "scenario: a\nsystem_prompt: Be brief.\nuser_prompt: '!say done'\ntrials: {TRIALS}\nassertions:\n  \
             - {{ id: c, type: output_contains, pattern: done }}\n"
        ),
    );
    write(&dir.join("trialrun.yaml"), "defaults: { agent: fake }\n");
    let url = server.url();
    let mut measured = Vec::new();
    for round in 0..5 {
        let file = dir.join(format!("state-{round}"));
        let seconds =
            |state: &str| times(1, || ok(&trialrun(&dir, &["run", "a.yaml", "--quiet", "--state", state])))[0];
        measured.push(seconds(&url) / seconds(&file.display().to_string()));
    }
    Promise { what: "recording 10,000 trials: PostgreSQL / SQLite", limit: 2.0, unit: "x", measured }
}

/// Measures commands on a record with 10,000 runs and 1,000,000 trials.
fn lists(scratch: &Path, server: &PostgresServer) -> Vec<Promise> {
    let (dir, url) = (scratch.join("team-lists"), server.url());
    write(&dir.join("trialrun.yaml"), &format!("state: {url}\ndefaults: {{ agent: fake }}\n"));
    record::fill(&url.parse().expect("a URL"));
    let measure = |what, arguments: &[&str]| {
        let measured = times(7, || ok(&trialrun(&dir, arguments)));
        Promise { what, limit: 200.0, unit: "ms", measured }
    };
    vec![
        measure("PostgreSQL: `history` of 10,000 runs with 1,000,000 trials", &["history"]),
        measure("PostgreSQL: `trend` over them", &["trend"]),
        measure("PostgreSQL: `trend` of one of their cases", &["trend", "--case", "case-7"]),
        measure("PostgreSQL: `show` of one of their trials", &["show", "run-00005000/case-7"]),
    ]
}
