//! Benchmarks for the project's promises about speed and size, measured on whole processes: `cargo bench -p trialrun`.
//!
//! Each figure is the median of several runs after a warm-up, printed next to the promise. The exit code is 1 if a
//! promise is broken. `docs/performance.md` explains the method and lists the figures.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

#[path = "promises/bot.rs"]
mod bot;
#[path = "promises/evaluation.rs"]
mod evaluation;
#[path = "promises/grading_tree.rs"]
mod grading_tree;
#[path = "promises/isolation.rs"]
mod isolation;
#[path = "promises/record.rs"]
mod record;
#[path = "promises/team.rs"]
mod team;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

struct Promise {
    what: &'static str,
    /// Infinite for a figure without a promise.
    limit: f64,
    unit: &'static str,
    measured: Vec<f64>,
}

impl Promise {
    fn median(&self) -> f64 {
        let mut sorted = self.measured.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not measure.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory for the benchmark");
    // The large record takes minutes to create, so it can be measured alone: `cargo bench -p trialrun -- record`.
    let is_named = |part: &str| std::env::args().any(|argument| argument == part);
    let mut promises = Vec::new();
    if is_named("grading_tree") {
        promises.extend(grading_tree::promises(scratch.path()));
    } else if is_named("team") {
        // It needs PostgreSQL.
        promises.extend(team::promises(scratch.path()));
    } else {
        if !is_named("record") {
            promises.extend(running(scratch.path()));
        }
        promises.extend(record::page(scratch.path()));
        promises.extend(record::million(scratch.path()));
    }
    drop(scratch);
    std::process::exit(i32::from(print(&promises)));
}

/// Measures loading, running and the program itself.
fn running(scratch: &Path) -> Vec<Promise> {
    let mut promises = vec![
        version(scratch),
        check_thousand(scratch),
        fake_thousand_wall(scratch),
        fake_thousand_memory(scratch),
        code_load(scratch),
        code_wall(scratch),
        code_memory(scratch),
        conversations_wall(scratch),
        conversations_memory(scratch),
        fixtures_wall(scratch),
        fixtures_memory(scratch),
        executor_wall(scratch),
        sandbox(scratch),
        overhead(scratch),
        size(scratch),
    ];
    promises.extend(evaluation::overhead(scratch));
    promises.push(evaluation::large_repository(scratch));
    promises.extend(grading_tree::promises(scratch));
    promises.extend(isolation::promises(scratch));
    promises
}

/// Prints the figures. Returns `true` if a promise is broken.
fn print(promises: &[Promise]) -> bool {
    println!("{:<62} {:>10} {:>10} {:>10} {:>10}", "", "median", "min", "max", "promise");
    let mut broken = false;
    for promise in promises {
        let median = promise.median();
        let (min, max) = promise.measured.iter().fold((f64::MAX, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
        broken |= median > promise.limit;
        let mark = if median > promise.limit { "BROKEN" } else { "" };
        let limit = if promise.limit.is_finite() {
            format!("{:>7.0} {:<2}", promise.limit, promise.unit)
        } else {
            String::new()
        };
        println!(
            "{:<62} {median:>7.1} {u:<2} {min:>7.1} {u:<2} {max:>7.1} {u:<2} {limit} {mark}",
            promise.what,
            u = promise.unit
        );
    }
    broken
}

fn version(dir: &Path) -> Promise {
    let measured = times(21, || ok(&trialrun(dir, &["--version"])));
    Promise { what: "--version", limit: 10.0, unit: "ms", measured }
}

fn check_thousand(scratch: &Path) -> Promise {
    let dir = scratch.join("check");
    for number in 0..1000 {
        let mut text = scenario(number, "");
        while text.len() < 600 {
            text.push_str("# this line only makes the file longer, so that it takes a while to read\n");
        }
        text.truncate(600);
        write(&dir.join(format!("scenarios/case-{number}.yaml")), &text);
    }
    write(&dir.join("trialrun.yaml"), "defaults: { agent: fake }\n");
    let measured = times(11, || ok(&trialrun(&dir, &["check", "scenarios"])));
    Promise { what: "check of 1,000 scenario files of 600 bytes", limit: 150.0, unit: "ms", measured }
}

fn thousand(scratch: &Path, name: &str) -> PathBuf {
    let dir = scratch.join(name);
    for number in 0..1000 {
        write(&dir.join(format!("scenarios/case-{number}.yaml")), &scenario(number, ""));
    }
    write(&dir.join("trialrun.yaml"), "defaults: { agent: fake }\n");
    dir
}

fn fake_thousand_wall(scratch: &Path) -> Promise {
    let dir = thousand(scratch, "wall");
    let measured = times(5, || {
        let _ = std::fs::remove_dir_all(dir.join(".trialrun"));
        ok(&trialrun(&dir, &["run", "scenarios"]));
    });
    Promise { what: "1,000 fake trials, three assertions each, no sandbox", limit: 1000.0, unit: "ms", measured }
}

fn fake_thousand_memory(scratch: &Path) -> Promise {
    let dir = thousand(scratch, "memory");
    let measured = (0..3).map(|_| peak(&dir, "run scenarios")).collect();
    Promise { what: "  their peak memory", limit: 60.0, unit: "MB", measured }
}

/// Returns the peak memory of the program in `dir`, with a new record.
fn peak(dir: &Path, arguments: &str) -> f64 {
    let _ = std::fs::remove_dir_all(dir.join(".trialrun"));
    let script = format!(
        "'{PROGRAM}' {arguments} >/dev/null & pid=$!; peak=0; while kill -0 $pid 2>/dev/null; do \
         now=$(awk '/VmHWM/ {{print $2}}' /proc/$pid/status 2>/dev/null); [ -n \"$now\" ] && peak=$now; done; echo $peak"
    );
    let output = Command::new("sh").args(["-c", &script]).current_dir(dir).output().expect("sh runs");
    String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().expect("a size in KiB") / 1024.0
}

/// Creates a project with that many test files in code, each with a scenario that sends one message.
fn code_tests(scratch: &Path, name: &str, count: usize) -> PathBuf {
    let dir = scratch.join(name);
    for number in 0..count {
        let text = format!(
            "import {{ scenario, persona, assert }} from '@fabrik/core';\n\n\
             interface Expected {{ text: string }}\nconst expected: Expected = {{ text: 'refund {number}' }};\n\n\
             export default scenario('case {number}', {{ tags: ['smoke'] }}, async ({{ agent }}) => {{\n  \
             const user = persona({{ role: 'customer', tone: 'cross' }});\n  \
             const r = await agent.send(user.says('I want a refund {number}'));\n  \
             assert.contains(r, expected.text);\n  assert.notContains(r, 'sorry');\n  \
             if (r.mentions('refund')) assert.custom('short', (it) => it.text.length < 500, r);\n}});\n"
        );
        write(&dir.join(format!("tests/case-{number}.test.ts")), &text);
    }
    dir
}

fn code_load(scratch: &Path) -> Promise {
    let dir = code_tests(scratch, "code", 1000);
    let measured = times(7, || ok(&trialrun(&dir, &["check", "--agent", "fake", "tests"])));
    Promise { what: "check of 1,000 files of tests as code", limit: 1000.0, unit: "ms", measured }
}

/// Measures the time of a run, without the time for loading.
fn code_wall(scratch: &Path) -> Promise {
    let dir = code_tests(scratch, "code-wall", 200);
    let agent = format!("http:{}", bot::open(Duration::from_millis(50)));
    let mut loading = times(7, || ok(&trialrun(&dir, &["check", "--agent", &agent, "tests"])));
    loading.sort_by(f64::total_cmp);
    let measured = times(7, || {
        let _ = std::fs::remove_dir_all(dir.join(".trialrun"));
        ok(&trialrun(&dir, &["run", "--agent", &agent, "--jobs", "50", "tests"]));
    });
    let measured = measured.into_iter().map(|took| (took - loading[3]).max(0.0)).collect();
    Promise { what: "200 tests as code, 50 at once, a bot of 50 ms, after loading", limit: 350.0, unit: "ms", measured }
}

fn code_memory(scratch: &Path) -> Promise {
    let dir = code_tests(scratch, "code-memory", 200);
    let url = bot::open(Duration::from_millis(50));
    let measured = (0..3).map(|_| peak(&dir, &format!("run --agent http:{url} --jobs 50 tests"))).collect();
    Promise { what: "  their peak memory", limit: 120.0, unit: "MB", measured }
}

/// Creates a project with a thousand conversations, each of one message.
fn conversations(scratch: &Path, name: &str) -> PathBuf {
    let dir = scratch.join(name);
    for number in 0..1000 {
        let text = format!(
            "name: conversation {number}\nturns:\n  - says: I want a refund {number}\n\
             assertions:\n  - contains: refund {number}\n"
        );
        write(&dir.join(format!("tests/case-{number}.yaml")), &text);
    }
    dir
}

fn conversations_wall(scratch: &Path) -> Promise {
    let dir = conversations(scratch, "conversations-wall");
    let agent = format!("http:{}", bot::open(Duration::from_secs(1)));
    let measured = times(5, || {
        let _ = std::fs::remove_dir_all(dir.join(".trialrun"));
        ok(&trialrun(&dir, &["run", "--agent", &agent, "--jobs", "1000", "tests"]));
    });
    Promise { what: "1,000 conversations at once, a bot of 1 s", limit: 2300.0, unit: "ms", measured }
}

fn conversations_memory(scratch: &Path) -> Promise {
    let dir = conversations(scratch, "conversations-memory");
    let url = bot::open(Duration::from_secs(1));
    let measured = (0..3).map(|_| peak(&dir, &format!("run --agent http:{url} --jobs 1000 tests"))).collect();
    Promise { what: "  their peak memory", limit: f64::INFINITY, unit: "MB", measured }
}

/// Creates a file with ten thousand fixtures and their answers. A third of them use a regular expression, a third an
/// object, and a third `$contains`.
fn ten_thousand_fixtures(scratch: &Path, name: &str) -> PathBuf {
    let dir = scratch.join(name);
    let (mut fixtures, mut answers) = (String::new(), String::new());
    for n in 0..10_000 {
        let (expected, answer) = match n % 3 {
            0 => (format!("  output: /answer {n}$/"), format!("\"the answer {n}\"")),
            1 => (
                format!("  output: {{ name: \"n{n}\", value: {n} }}"),
                format!("{{\"name\": \"n{n}\", \"value\": {n}, \"x\": 1}}"),
            ),
            _ => (
                format!("  expect:\n    output: {{ $contains: {{ id: {n} }} }}"),
                format!("[{{\"id\": {}}}, {{\"id\": {n}}}]", n - 1),
            ),
        };
        fixtures.push_str(&format!("- input: \"question {n}\"\n{expected}\n"));
        answers.push_str(&format!("{{\"output\": {answer}}}\n"));
    }
    write(&dir.join("many.fixture.yaml"), &fixtures);
    write(&dir.join("answers.jsonl"), &answers);
    write(
        &dir.join("executor.mjs"),
        "export function execute({ args }) {\n  const id = Number(args.input.split(' ')[1]);\n  \
         const value = [`the answer ${id}`, { name: `n${id}`, value: id, x: 1 }, [{ id: id - 1 }, { id }]][id % 3];\n  \
         return { output: value };\n}\n",
    );
    dir
}

fn executor_wall(scratch: &Path) -> Promise {
    let dir = ten_thousand_fixtures(scratch, "executor-wall");
    let measured = times(5, || {
        let _ = std::fs::remove_dir_all(dir.join(".trialrun"));
        ok(&trialrun(&dir, &["run", "many.fixture.yaml", "--agent", "custom:executor.mjs", "--quiet"]));
    });
    Promise { what: "10,000 fixtures with an executor in JavaScript", limit: 2600.0, unit: "ms", measured }
}

const FIXTURES: &str = "run many.fixture.yaml --agent recorded:answers.jsonl --quiet --report json=report.json";

fn fixtures_wall(scratch: &Path) -> Promise {
    let dir = ten_thousand_fixtures(scratch, "fixtures-wall");
    let arguments: Vec<&str> = FIXTURES.split(' ').collect();
    let measured = times(5, || {
        let _ = std::fs::remove_dir_all(dir.join(".trialrun"));
        ok(&trialrun(&dir, &arguments));
    });
    Promise { what: "10,000 fixtures with recorded answers: file to report", limit: 500.0, unit: "ms", measured }
}

fn fixtures_memory(scratch: &Path) -> Promise {
    let dir = ten_thousand_fixtures(scratch, "fixtures-memory");
    let measured = (0..3).map(|_| peak(&dir, FIXTURES)).collect();
    Promise { what: "  their peak memory", limit: f64::INFINITY, unit: "MB", measured }
}

/// Measures creating a sandbox with 50 files and a commit: 60 times after the first, with the times that the run
/// reports.
fn sandbox(scratch: &Path) -> Promise {
    let dir = scratch.join("sandbox");
    write(&dir.join("case.yaml"), &scenario(0, &fifty_files()));
    ok(&trialrun(
        &dir,
        &["run", "case.yaml", "--agent", "fake", "--trials", "61", "--jobs", "1", "--report", "jsonl=events"],
    ));
    let events = std::fs::read_to_string(dir.join("events")).expect("the event stream");
    let measured: Vec<f64> = events
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|event| event["event"]["type"] == "sandbox_ready")
        .filter_map(|event| event["event"]["duration_ms"].as_f64())
        .skip(1)
        .collect();
    Promise { what: "sandbox of 50 files with a commit, after the first", limit: 10.0, unit: "ms", measured }
}

fn overhead(scratch: &Path) -> Promise {
    let dir = scratch.join("overhead");
    write(&dir.join("case.yaml"), &scenario(0, &fifty_files()));
    let run = |trials: &str| {
        let began = Instant::now();
        ok(&trialrun(&dir, &["run", "case.yaml", "--agent", "fake", "--trials", trials, "--jobs", "1", "--quiet"]));
        began.elapsed()
    };
    run("1");
    let measured = (0..5).map(|_| millis(run("101").saturating_sub(run("1"))) / 100.0).collect();
    Promise { what: "whole fake trial in that sandbox, one after another", limit: 30.0, unit: "ms", measured }
}

/// Size of the released program. Cargo keeps the symbols of programs that it builds for benchmarks, regardless of the
/// profile.
fn size(scratch: &Path) -> Promise {
    let stripped = scratch.join("stripped");
    let status = Command::new("strip").arg("-o").arg(&stripped).arg(PROGRAM).status().expect("strip, of the linker");
    assert!(status.success(), "strip fails");
    let bytes = std::fs::metadata(&stripped).expect("the stripped program").len();
    Promise { what: "size of the program, stripped", limit: 25.0, unit: "MB", measured: vec![bytes as f64 / 1e6] }
}

fn scenario(number: usize, fixtures: &str) -> String {
    format!(
        "scenario: case-{number}\nsystem_prompt: Be brief.\nuser_prompt: |\n  !call Bash {{\"command\": \"git status\"}}\n  !say done\n\
         {fixtures}assertions:\n  - {{id: a, type: tool_called, tool: Bash, args_match: {{command: \"^git\"}}}}\n  \
         - {{id: b, type: no_tool_called, tool: WebFetch}}\n  - {{id: c, type: output_contains, pattern: \"done\"}}\n"
    )
}

fn fifty_files() -> String {
    let mut text = String::from("fixtures:\n  git_init: true\n  files_committed:\n");
    for number in 0..50 {
        text.push_str(&format!(
            "    - {{path: src/dir{}/file{number}.txt, content: \"line {number}\\n\"}}\n",
            number % 5
        ));
    }
    text
}

fn trialrun(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    // The promise about sandboxes is for a temp directory in memory.
    if Path::new("/dev/shm").is_dir() {
        command.env("TMPDIR", "/dev/shm");
    }
    command.args(arguments).current_dir(dir).output().expect("the program starts")
}

fn ok(output: &Output) {
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn times(count: usize, mut work: impl FnMut()) -> Vec<f64> {
    work();
    (0..count)
        .map(|_| {
            let began = Instant::now();
            work();
            millis(began.elapsed())
        })
        .collect()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    std::fs::write(path, text).expect("a file");
}
