//! Mutated inputs for code that reads foreign text: agents' output, models' answers, a project's files.
//!
//! Seeds are files: captures, specimens, and inputs that once broke a parser. The same seeds give the same inputs on
//! every machine. `TRIALRUN_FUZZ_ROUNDS` sets the number of inputs for longer runs.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Number of inputs.
const ROUNDS: usize = 300;
/// Maximum size of an input cut from a seed, in bytes.
const MAX_SEED_BYTES: usize = 8 * 1024;
/// Number of levels in a nested value.
const LEVELS: usize = 3_000;

/// Parts of many formats, which random bytes would rarely form.
const TOKENS: &[&str] = &[
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "0.1",
    "\"\"",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "\r\n",
    "\n\n",
    "\t",
    "---\n",
    "- ",
    "? ",
    "&a ",
    "*a",
    "!!binary ",
    "<<: *a",
    "# ",
    "```",
    "\\u0000",
    "\\ud800",
    "\\",
    "\u{0}",
    "\u{1b}[2J",
    "\u{202e}",
    "\u{feff}",
    "\u{e9}",
    "\u{1f600}",
    "data: ",
    "event: ",
    "[DONE]",
    "{{",
    "}}",
    "{%",
    "%}",
    "${",
    "/",
    "../",
    "~",
    "$(",
    "`",
    "'",
    "'''",
    "<!--",
    "-->",
    "&amp;",
    "type",
    "id",
    "text",
    "content",
    "error",
    "tool",
    "usage",
];

/// Returns the content of the files below `folder` whose names end with `ending`, in the order of their paths.
pub fn seeds(folder: &Path, ending: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.sort();
    let below = |path: &std::path::PathBuf| match path.is_dir() {
        true => seeds(path, ending),
        false if path.to_string_lossy().ends_with(ending) => vec![fs::read(path).expect("the seed can be read")],
        false => Vec::new(),
    };
    paths.iter().flat_map(below).collect()
}

/// Calls `read` with each seed, and with many inputs that are derived from the seeds.
///
/// # Panics
/// Panics if `read` panics. The message contains the input, so that it can be kept as a seed.
pub fn fuzz(seeds: &[Vec<u8>], read: impl Fn(&[u8])) {
    assert!(!seeds.is_empty(), "there are no seeds");
    let rounds = std::env::var("TRIALRUN_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    seeds.iter().for_each(|seed| check(seed, &read));
    let mut random = TestRng::deterministic_rng(RngAlgorithm::XorShift);
    for round in 0..rounds {
        let mut input = piece(&seeds[round % seeds.len()], &mut random);
        for _ in 0..=index(&mut random, 4) {
            mutate(&mut input, seeds, &mut random);
        }
        check(&input, &read);
    }
}

fn check(input: &[u8], read: &impl Fn(&[u8])) {
    if catch_unwind(AssertUnwindSafe(|| read(input))).is_err() {
        let file = std::env::temp_dir().join(format!("trialrun-fuzz-{}", std::process::id()));
        fs::write(&file, input).expect("the input can be kept");
        panic!("the reader panicked for the input in {}:\n{}", file.display(), input.escape_ascii());
    }
}

/// Returns a number below `length`, or 0.
fn index(random: &mut TestRng, length: usize) -> usize {
    (random.next_u64() % (length.max(1) as u64)) as usize
}

/// Cuts a piece that starts at the beginning of a line.
fn piece(seed: &[u8], random: &mut TestRng) -> Vec<u8> {
    if seed.len() <= MAX_SEED_BYTES {
        return seed.to_vec();
    }
    let from = index(random, seed.len());
    let from = seed[..from].iter().rposition(|byte| *byte == b'\n').map_or(0, |line| line + 1);
    seed[from..seed.len().min(from + MAX_SEED_BYTES)].to_vec()
}

/// Changes one part of the input in one of several ways.
fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut TestRng) {
    let mut index = |length: usize| index(random, length);
    let (kind, from) = (index(7), index(input.len() + 1));
    let to = (from + index(64)).min(input.len());
    match kind {
        0 => drop(input.drain(from..to)),
        1 => {
            let repeated = input[from..to].repeat(2);
            input.splice(from..from, repeated).for_each(drop);
        }
        2 => input.splice(from..from, TOKENS[index(TOKENS.len())].bytes()).for_each(drop),
        3 => input.splice(from..to, TOKENS[index(TOKENS.len())].bytes()).for_each(drop),
        4 => {
            let other = &seeds[index(seeds.len())];
            let end = other.len().min(MAX_SEED_BYTES);
            input.splice(from.., other[index(end)..end].iter().copied()).for_each(drop);
        }
        5 if index(20) == 0 => {
            let level: &[u8] = [&b"["[..], b"{\"a\":", b"- ", b"("][index(4)];
            input.splice(from..from, level.repeat(LEVELS)).for_each(drop);
        }
        _ => {
            if let Some(byte) = input.get_mut(from) {
                *byte = index(256) as u8;
            }
        }
    }
}
