//! Measures the speed of comparing texts: `cargo bench -p trialrun-expect --bench diff`.
//!
//! Each figure is the median of several runs after a warm-up, printed next to its limit. The exit code is 1 if a limit
//! is exceeded.

#![allow(clippy::print_stdout, missing_docs)]

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use trialrun_expect::diff::{Kind, Options, diff};

/// Pseudo-random numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

const MEGABYTE: usize = 1 << 20;

fn line(numbers: &mut Numbers) -> String {
    let words = 4 + numbers.below(9);
    let mut line = String::new();
    for _ in 0..words {
        let _ = write!(line, "{:x} ", numbers.below(4096));
    }
    line.push_str(".\n");
    line
}

fn lines(seed: u64) -> Vec<String> {
    let mut numbers = Numbers(seed);
    let mut length = 0;
    let more = || {
        let line = line(&mut numbers);
        length += line.len();
        (length <= MEGABYTE).then_some(line)
    };
    std::iter::from_fn(more).collect()
}

/// Returns `lines` with `percent` percent of them changed.
fn changed(lines: &[String], percent: u64) -> String {
    let mut numbers = Numbers(99);
    let mut text = String::new();
    for kept in lines {
        match numbers.below(100) < percent {
            true => text.push_str(&line(&mut numbers)),
            false => text.push_str(kept),
        }
    }
    text
}

struct Case {
    what: &'static str,
    expected: String,
    actual: String,
    kind: Kind,
    /// Limit in milliseconds.
    limit: f64,
}

fn cases() -> Vec<Case> {
    let lines = (lines(1), lines(2));
    let (text, other) = (lines.0.concat(), lines.1.concat());
    let case =
        |what, actual: &str, kind, limit| Case { what, expected: text.clone(), actual: actual.to_owned(), kind, limit };
    let periodic = |unit: &str, end: &str| format!("{}{end}", unit.repeat(MEGABYTE / unit.len()));
    vec![
        case("lines, 1 MB, equal", &text, Kind::Lines, 50.0),
        case("lines, 1 MB, 6 % changed", &changed(&lines.0, 6), Kind::Lines, 50.0),
        case("words, 1 MB, 1 % of the lines changed", &changed(&lines.0, 1), Kind::Words, 200.0),
        case("lines, 1 MB, unrelated", &other, Kind::Lines, 1000.0),
        case("words, 1 MB, unrelated", &other, Kind::Words, 1000.0),
        case("sentences, 1 MB, unrelated", &other, Kind::Sentences, 1000.0),
        case("chars, 1 MB, unrelated", &other, Kind::Chars, 1000.0),
        Case {
            what: "chars, 1 MB, periodic",
            expected: periodic("ab", "x"),
            actual: periodic("aab", "y"),
            kind: Kind::Chars,
            limit: 1000.0,
        },
    ]
}

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not measure.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let options = Options::default();
    let mut broken = false;
    println!("{:<40} {:>12} {:>12}", "", "median", "promise");
    for case in cases() {
        let mut measured: Vec<f64> = (0..6)
            .map(|_| {
                let start = Instant::now();
                black_box(diff(black_box(&case.expected), black_box(&case.actual), Some(case.kind), &options));
                start.elapsed().as_secs_f64() * 1e3
            })
            .skip(1)
            .collect();
        measured.sort_by(f64::total_cmp);
        let median = measured[measured.len() / 2];
        broken |= median > case.limit;
        let mark = if median > case.limit { "BROKEN" } else { "" };
        println!("{:<40} {median:>9.1} ms {:>9.0} ms {mark}", case.what, case.limit);
    }
    std::process::exit(i32::from(broken));
}
