//! Recorded sessions of real versions, held against the scripts that their model followed.
//!
//! A capture is `stdout.jsonl`, the `script.json` of the model server (step n answers request n) and `meta.json` (how
//! the process was started and ended, and the requests it made). What the steps that were really served say is what
//! must be read from stdout; the few sessions where it cannot be are in [`EXCEPTIONS`], each with its reason.

use std::path::{Path, PathBuf};

use model::{Step, Tokens, Trace};
use serde_json::Value;

use super::event::{Done, Heard, Interpreter};

/// A session in which something else is read than the script says.
struct Exception {
    /// Part of `version/name`.
    capture: &'static str,
    because: &'static str,
    /// What is expected instead.
    instead: fn(&mut Expected),
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        capture: "/a_text_plain",
        because: "was run with --output-format text, which tells nothing but the answer",
        instead: |expected| {
            expected.texts.clear();
            expected.tokens = None;
            expected.answer = None;
            expected.ending = Ending::NoResult;
        },
    },
    Exception {
        capture: "/a_text_json",
        because: "was run with --output-format json, which tells only the result",
        instead: |expected| expected.texts.clear(),
    },
    Exception {
        capture: "/d_streamin",
        because: "several messages were written at once and answered together, so one step was never asked for",
        instead: |_| {},
    },
    Exception {
        capture: "2.1.197/e_malformed",
        because: "the CLI asked again without streaming, and that server spoils streams only: its second answer is whole",
        instead: whole_after_faults,
    },
    Exception {
        capture: "2.1.197/e_sse_error",
        because: "as e_malformed",
        instead: whole_after_faults,
    },
    Exception {
        capture: "2.1.330/e_malformed",
        because: "as in the older version, and the broken answers are billed by estimate",
        instead: |expected| {
            whole_after_faults(expected);
            expected.tokens = Some(tokens(300, 90));
            expected.texts_end_with_the_script_s = true;
        },
    },
    Exception {
        capture: "2.1.330/e_cut",
        because: "as e_malformed",
        instead: |expected| {
            whole_after_faults(expected);
            expected.tokens = Some(tokens(200, 77));
            expected.texts_end_with_the_script_s = true;
        },
    },
    Exception {
        capture: "2.1.330/e_sse_error",
        because: "as e_malformed, but the broken answer is not billed",
        instead: |expected| {
            whole_after_faults(expected);
            expected.texts_end_with_the_script_s = true;
        },
    },
];

fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output, ..Tokens::default() }
}

fn whole_after_faults(expected: &mut Expected) {
    expected.texts = vec![expected.faulty_text.clone()];
    expected.answer = Some(expected.faulty_text.clone());
    expected.tokens = Some(tokens(100, 10));
    expected.ending = Ending::Answered;
}
