//! Measures the speed and the memory of judging answers: `cargo bench -p trialrun-grade`.
//!
//! Each figure is the median of several rounds, printed next to its limit. The exit code is 1 if a limit is exceeded.
//! CPU time is that of this thread, so other programs on the machine do not count. Peak memory is that of the
//! process, after everything was compiled and judged for the first time.

#![allow(clippy::expect_used, clippy::print_stdout, missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use expect::Host;
use model::{
    AssertionSpec, Case, Collected, Ending, Evidence, Excerpt, Finding, Limits, Node, Source, Spanned, Status, Step,
    Trace, Usage, UserMessage,
};
use script::{Options, Runtime};
use serde_json::{Value, json};
use trialrun_grade::{Context, Scripts, compile, grade};

const CASES: usize = 10_000;
const EVALUATIONS: usize = 20_000;

struct Promise {
    what: &'static str,
    unit: &'static str,
    limit: f64,
    /// True if the figure must be at least the limit, instead of at most.
    is_least: bool,
    measured: Vec<f64>,
}

impl Promise {
    fn median(&self) -> f64 {
        let mut sorted = self.measured.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    fn is_broken(&self) -> bool {
        if self.is_least { self.median() < self.limit } else { self.median() > self.limit }
    }
}

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not measure.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let [time, memory] = matching();
    let promises = [time, memory, expressions(), judged_expressions(), runtimes()];
    println!("{:<58} {:>14} {:>14}", "", "median", "promise");
    for promise in &promises {
        let mark = if promise.is_broken() { "BROKEN" } else { "" };
        let sign = if promise.is_least { "≥" } else { "≤" };
        let (what, unit) = (promise.what, promise.unit);
        println!("{what:<58} {:>10.2} {unit:<3} {sign}{:>9.0} {unit:<3} {mark}", promise.median(), promise.limit);
    }
    std::process::exit(i32::from(promises.iter().any(Promise::is_broken)));
}

/// Measures ten thousand cases, a third each with a regular expression, an object and `$contains`, compiled and
/// judged.
fn matching() -> [Promise; 2] {
    let cases: Vec<(Case, Evidence)> = (0..CASES).map(pair).collect();
    let mut peak = None;
    let measured = (0..7)
        .map(|_| {
            let scripts = Scripts::default();
            let began = processor_ms();
            for (case, evidence) in &cases {
                assert_eq!(judged(&scripts, case, evidence).status, Status::Met);
            }
            let took = processor_ms() - began;
            peak.get_or_insert_with(peak_mb);
            took
        })
        .collect();
    let memory = peak.into_iter().collect();
    [
        Promise {
            what: "10,000 simple expectations compiled and judged",
            unit: "ms",
            limit: 100.0,
            is_least: false,
            measured,
        },
        Promise {
            what: "  peak memory, cases and answers included",
            unit: "MB",
            limit: 60.0,
            is_least: false,
            measured: memory,
        },
    ]
}

fn pair(number: usize) -> (Case, Evidence) {
    let (expected, answer) = match number % 3 {
        0 => (json!(format!("/answer {number}$/")), json!(format!("the answer {number}"))),
        1 => (
            json!({"name": format!("n{number}"), "value": number}),
            json!({"name": format!("n{number}"), "value": number, "x": 1}),
        ),
        _ => (json!({"$contains": {"id": number}}), json!([{"id": number - 1}, {"id": number}])),
    };
    (case(&expected), answered(&answer))
}

fn case(expected: &Value) -> Case {
    let written = json!({"id": "output", "type": "expect", "output": expected});
    let node = Node::from_json(&written, &Source::new("many.fixture.yaml", ""));
    let kind = Spanned::new("expect".to_owned(), node.span);
    Case {
        messages: vec![UserMessage::text("question")],
        assertions: vec![AssertionSpec {
            id: "output".into(),
            kind,
            weight: 1.0,
            node,
            arguments: model::Arguments::Fields,
            about: model::AssertionScope::Trial,
        }],
        ..Case::new("case", Excerpt::of_file("many.fixture.yaml"))
    }
}

fn answered(output: &Value) -> Evidence {
    let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    let mut trace = Trace::default();
    trace.push(&Step::Finished {
        subtype: "success".into(),
        is_error: false,
        usage: Usage::default(),
        text: Some(text),
        result: (!output.is_string()).then(|| json!({"output": output})),
    });
    let limits = Limits::default();
    Evidence {
        trace,
        collected: Collected::default(),
        ending: Ending::Finished,
        limits: limits.into(),
        unused_responses: Vec::new(),
        agent_ms: None,
    }
}

fn judged(scripts: &Scripts, case: &Case, evidence: &Evidence) -> Finding {
    let (checks, problems) = compile(case, &Context { scripts: Some(scripts), ..Context::default() });
    assert!(problems.is_empty(), "{problems:?}");
    grade(&checks, evidence).swap_remove(0)
}

fn expressions() -> Promise {
    let scripts = Scripts::default();
    let (actual, data) = (json!(3), json!({"threshold": 2}));
    let scope = [("actual", Some(&actual)), ("data", Some(&data))];
    let rate = || {
        let began = Instant::now();
        for _ in 0..EVALUATIONS {
            let answer = scripts.evaluate(black_box("actual > data.threshold"), &scope);
            assert_eq!(answer.expect("an answer"), Some(json!(true)));
        }
        EVALUATIONS as f64 / began.elapsed().as_secs_f64() / 1000.0
    };
    rate();
    let measured = (0..7).map(|_| rate()).collect();
    Promise { what: "expressions evaluated, thousands a second", unit: "k/s", limit: 50.0, is_least: true, measured }
}

/// Measures the whole path of an expression that is written as `$expr`, from evidence to finding.
fn judged_expressions() -> Promise {
    let scripts = Scripts::default();
    let case = case(&json!({"$expr": "actual > 2"}));
    let evidence = answered(&json!(3));
    let (checks, problems) = compile(&case, &Context { scripts: Some(&scripts), ..Context::default() });
    assert!(problems.is_empty(), "{problems:?}");
    let rate = || {
        let began = Instant::now();
        for _ in 0..EVALUATIONS {
            assert_eq!(grade(&checks, black_box(&evidence))[0].status, Status::Met);
        }
        EVALUATIONS as f64 / began.elapsed().as_secs_f64() / 1000.0
    };
    rate();
    let measured = (0..7).map(|_| rate()).collect();
    Promise {
        what: "  findings of one `$expr`, thousands a second",
        unit: "k/s",
        limit: 50.0,
        is_least: true,
        measured,
    }
}

fn runtimes() -> Promise {
    let here = std::env::temp_dir();
    let measured = (0..101)
        .map(|_| {
            let began = Instant::now();
            let runtime = Runtime::new(Options::new(&here));
            let took = began.elapsed().as_secs_f64() * 1000.0;
            assert!(runtime.is_ok());
            took
        })
        .collect();
    Promise { what: "an engine made", unit: "ms", limit: 1.0, is_least: false, measured }
}

/// Returns the CPU time that this thread has used, in milliseconds.
fn processor_ms() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells what a thread used");
    let nanoseconds: f64 = statistics.split_whitespace().next().and_then(|field| field.parse().ok()).expect("a number");
    nanoseconds / 1e6
}

/// Returns the peak memory of this process, in megabytes.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells what a process has");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the high-water mark");
    let kibibytes: f64 = line.split_whitespace().next().and_then(|field| field.parse().ok()).expect("a number");
    kibibytes / 1024.0
}
