//! The additional time for a trial in an `isolated` sandbox, and many trials at the same time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Promise, millis, ok, trialrun, write};

/// Number of trials that wait at the same time.
const CONCURRENT: usize = 500;

/// Creates a project with a case for the `fake` agent, and one for a shell that writes a file.
fn project(scratch: &Path) -> PathBuf {
    let dir = scratch.join("isolation");
    let case = |name: &str, agent: &str, prompt: &str| {
        let text = format!(
            "scenario: {name}\nagent: {agent}\nsystem_prompt: Work.\nuser_prompt: '{prompt}'\nfixtures:\n  files_committed:\n    \
             - {{path: a.txt, content: one}}\nassertions:\n  - {{id: a, type: file_contains, path: b.txt, pattern: two}}\n"
        );
        write(&dir.join(format!("{name}.yaml")), &text);
    };
    case("fake", "fake", "!write b.txt two");
    case("program", "writer", "go");
    let waiting = "scenario: waiting\nagent: fake\nsystem_prompt: Work.\nuser_prompt: |\n  !sleep 1s\n  !say done\n\
        assertions:\n  - {id: a, type: output_contains, pattern: done}\n";
    write(&dir.join("waiting.yaml"), waiting);
    let settings =
        "agents:\n  writer: {type: subprocess, mode: oneshot, command: [sh, -c, 'echo two > b.txt; echo done']}\n";
    write(&dir.join("trialrun.yaml"), settings);
    dir
}

fn run(dir: &Path, case: &str, trials: &str, more: &[&str]) -> Duration {
    let began = Instant::now();
    ok(&trialrun(dir, &[&["run", case, "--trials", trials, "--quiet"], more].concat()));
    began.elapsed()
}

/// Measures the additional time for a hundred trials in each kind of sandbox, divided by their number, and returns the
/// difference.
fn added(dir: &Path, case: &str) -> f64 {
    let of = |sandbox: &str| {
        let run = |trials| run(dir, case, trials, &["--jobs", "1", "--sandbox", sandbox]);
        millis(run("101").saturating_sub(run("1"))) / 100.0
    };
    of("isolated") - of("local")
}

pub fn promises(scratch: &Path) -> [Promise; 3] {
    let dir = project(scratch);
    run(&dir, "program.yaml", "1", &["--sandbox", "isolated"]);
    let five = |case: &str| (0..5).map(|_| added(&dir, case)).collect();
    let jobs = CONCURRENT.to_string();
    let waiting = || millis(run(&dir, "waiting.yaml", &jobs, &["--jobs", &jobs]));
    let limit = 25.0;
    [
        Promise { what: "added to a fake trial by `isolated`", limit, unit: "ms", measured: five("fake.yaml") },
        Promise { what: "added to a trial of a program", limit, unit: "ms", measured: five("program.yaml") },
        Promise {
            what: "500 fake trials of 1 s at the same time",
            limit: 3000.0,
            unit: "ms",
            measured: (0..5).map(|_| waiting()).collect(),
        },
    ]
}
