//! Overhead of a skill evaluation on top of its agent, and the additional cost of a large repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Promise, millis, ok, trialrun, write};

/// Creates a project with one case that has 50 files and a skill, and runs with and without the skill. Its trials
/// include snapshots of the files and the repository before and after, grading, and recording.
fn project(scratch: &Path, name: &str) -> PathBuf {
    let dir = scratch.join(name);
    let home = dir.join("skills/note");
    write(&home.join("SKILL.md"), "---\nname: note\ndescription: Writes a note.\n---\nWrite NOTE.md.\n");
    write(&home.join("scripts/check.sh"), "exit 0\n");
    for number in 0..50 {
        write(&home.join(format!("evals/files/src/dir{}/file{number}.txt", number % 5)), &format!("line {number}\n"));
    }
    let evals = r#"{"skill_name": "note", "evals": [{"id": 1, "prompt": "!skill note\n!write NOTE.md done",
        "expected_output": "A note.", "files": ["files/src"], "assertions": ["The file `NOTE.md` exists",
        "No git commit was created", {"type": "file_contains", "path": "NOTE.md", "contains": "done"},
        {"type": "file_unchanged", "path": "src/dir0/file0.txt"}]}]}"#;
    write(&home.join("evals/evals.json"), evals);
    write(&dir.join("trialrun.yaml"), "skills_dir: ./skills\ndefaults: { agent: fake }\n");
    dir
}

fn run(dir: &Path, trials: u32, more: &[&str]) -> Took {
    let trials = trials.to_string();
    let mut arguments = vec!["run", "--trials", trials.as_str(), "--jobs", "1", "--quiet"];
    arguments.extend(more);
    let (began, cpu) = (Instant::now(), of_children());
    ok(&trialrun(dir, &arguments));
    Took { wall: began.elapsed(), cpu: of_children().saturating_sub(cpu) }
}

struct Took {
    wall: Duration,
    cpu: Duration,
}

/// Returns the CPU time of all child processes that have ended.
fn of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the times of this process");
    let after_name = stat.rsplit_once(')').expect("a name").1;
    let ticks: u64 =
        after_name.split_whitespace().skip(13).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks")).sum();
    // Linux counts in hundredths of a second here, regardless of the kernel's own clock.
    Duration::from_millis(ticks * 10)
}

/// Measures the additional time for a hundred trials (fifty in each arm), divided by their number.
pub fn overhead(scratch: &Path) -> [Promise; 2] {
    let dir = project(scratch, "evaluation");
    run(&dir, 1, &[]);
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (many, one) = (run(&dir, 51, &[]), run(&dir, 1, &[]));
        wall.push(millis(many.wall.saturating_sub(one.wall)) / 100.0);
        cpu.push(millis(many.cpu.saturating_sub(one.cpu)) / 100.0);
    }
    let what = "trial of a skill beside its agent, 50 files";
    [
        Promise { what, limit: 30.0, unit: "ms", measured: wall },
        Promise { what: "  its CPU time", limit: 15.0, unit: "ms", measured: cpu },
    ]
}

/// Measures a trial in a clone with 50,000 files, from creating its sandbox to removing it, as reported by the run.
/// The first trial is excluded.
pub fn large_repository(scratch: &Path) -> Promise {
    let dir = project(scratch, "large");
    let seed = scratch.join("large-seed");
    for number in 0..50_000 {
        write(&seed.join(format!("src/{:03}/file{number}.txt", number % 500)), &format!("line {number}\n"));
    }
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"];
        ok(&Command::new("git").args(identity).args(arguments).current_dir(&seed).output().expect("git runs"));
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "Begin"]);
    let seed = seed.to_str().expect("a path in UTF-8");
    let more = ["--no-baseline", "--source-repo", seed, "--report", "jsonl=events"];
    let trials = || {
        run(&dir, 5, &more);
        let events = std::fs::read_to_string(dir.join("events")).expect("the event stream");
        let events = events.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let ended = events.filter(|event| event["event"]["type"] == "trial_finished");
        ended.skip(1).filter_map(|event| event["event"]["duration_ms"].as_f64()).collect::<Vec<_>>()
    };
    let measured = (0..3).flat_map(|_| trials()).collect();
    // The promise is for a file system that clones files or lives in memory; otherwise it is eight seconds.
    Promise { what: "trial in a repository of 50,000 files, after the first", limit: 1000.0, unit: "ms", measured }
}
