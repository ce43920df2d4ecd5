//! Compares recorded sessions of a real version with the scripts that their model followed.
//!
//! A capture consists of `stdout.jsonl`, the `script.json` of the model server (step n answers request n; a session
//! without a title begins with a request for one, which the script does not answer), and `meta.json` (how the process
//! was started and ended, and the requests that it made). The steps read from stdout must match the served steps. The
//! few sessions in which they cannot match are in [`EXCEPTIONS`], each with its reason.

use std::path::{Path, PathBuf};

use model::{Ending, Step, Tokens, Trace};
use serde_json::{Value, json};

use super::event::{Interpreter, OpenCodeEvent, SessionInfo};

/// Expected content of a capture.
#[derive(Debug, Clone, Default, PartialEq)]
struct Expected {
    calls: Vec<(String, Value)>,
    texts: Vec<String>,
    thoughts: Vec<String>,
    turns: usize,
    answer: Option<String>,
    tokens: Option<Tokens>,
    ending: &'static str,
}

/// Captures whose content differs from the script: full names, the reason, and the expected difference.
type Exception = (&'static [&'static str], &'static str, fn(&mut Expected));

const EXCEPTIONS: &[Exception] = &[
    (&["c_fail"], "the arguments of a tool that does not exist are not reported", |expected| {
        expected.calls[2].1 = json!({});
    }),
    (&["h_ask", "h_ask_auto"], "a session without a user has no question tool, so the same holds", |expected| {
        expected.calls[0].1 = json!({});
    }),
    (
        &["i_perm_deny"],
        "denied tools do not exist, so the same holds; the call without a permission ended the session",
        |expected| {
            expected.calls[0].1 = json!({});
            expected.calls[1].1 = json!({});
            expected.end("gave up");
        },
    ),
    (&["b_tools_more"], "a sub-agent's text is reported only as the result of its call", |expected| {
        expected.texts.retain(|text| text != "sub result");
        expected.turns -= 1;
        expected.tokens = Some(tokens(400, 40));
    }),
    (&["f_maxsteps"], "the script was over, and the server went on with its own text", |expected| {
        expected.serve(&json!({"text": "SCRIPT EXHAUSTED"}));
        expected.end("answered");
    }),
    (&["i_perm_default"], "the harness ended it during the second step, of which nothing was reported", |expected| {
        expected.calls.truncate(1);
        expected.turns = 1;
        expected.tokens = Some(tokens(100, 10));
        expected.end("unfinished");
    }),
    (
        &["j_sigINT_in_bash", "j_sigKILL_in_bash", "j_sigTERM_in_bash"],
        "a call is reported when it is over, and the usage of a message when it is complete",
        |expected| {
            expected.calls.truncate(1);
            expected.tokens = Some(tokens(100, 10));
            expected.end("unfinished");
        },
    ),
    (&["e_badmodel"], "its own trouble: no request was made", |expected| expected.end("unfinished")),
    (&["e_cut", "e_refused", "e_sse_error"], "the harness ended it while it tried again, silently", |expected| {
        expected.end("unfinished");
    }),
];

fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output, reasoning: Some(0), ..Tokens::default() }
}

impl Expected {
    fn of(script: &Value, meta: &Value) -> Self {
        let has_title = meta["argv"].as_array().into_iter().flatten().any(|argument| argument == "--title");
        let requests = meta["requests"].as_array().map_or(0, Vec::len);
        let mut served = requests.saturating_sub(usize::from(!has_title));
        let mut expected = Self::default();
        for step in script["steps"].as_array().into_iter().flatten() {
            let times = step["fault"]["times"].as_u64().unwrap_or(u64::MAX);
            if !step["fault"].is_null() {
                served = served.saturating_sub(usize::try_from(times).unwrap_or(usize::MAX));
            } else if served > 0 {
                served -= 1;
                expected.serve(step);
            }
        }
        let answered = expected.turns > 0;
        expected.end(if answered { "answered" } else { "provider failed" });
        expected
    }

    fn serve(&mut self, step: &Value) {
        let usage = |key: &str, default: u64| step["usage"][key].as_u64().unwrap_or(default);
        *self.tokens.get_or_insert_default() += Tokens {
            input: usage("input", 100),
            output: usage("output", 10),
            cache_read: usage("cache_read", 0),
            cache_write: usage("cache_write", 0),
            reasoning: Some(usage("reasoning", 0)),
        };
        for tool in step["tools"].as_array().into_iter().flatten() {
            self.calls.push((tool["name"].as_str().unwrap_or_default().to_owned(), tool["input"].clone()));
        }
        self.thoughts.extend(step["thinking"].as_str().map(str::to_owned));
        let text = step["text"].as_str().filter(|text| !text.is_empty());
        self.texts.extend(text.map(str::to_owned));
        self.answer = text.map(str::to_owned);
        self.turns += 1;
    }

    fn end(&mut self, ending: &'static str) {
        self.ending = ending;
        if ending != "answered" {
            self.answer = None;
        }
    }
}

/// Reads a capture like a session.
fn read(stdout: &str) -> (Vec<Step>, Ending) {
    let mut interpreter = Interpreter::new(SessionInfo::default(), None);
    let events = stdout.lines().flat_map(|line| interpreter.read(line)).collect::<Vec<_>>();
    let mut steps: Vec<Step> = events
        .into_iter()
        .filter_map(|event| match event {
            OpenCodeEvent::Step(step) => Some(step),
            OpenCodeEvent::Started | OpenCodeEvent::Complete { .. } => None,
            OpenCodeEvent::Unreadable(_) | OpenCodeEvent::TooDeep => None,
        })
        .collect();
    let (rest, done) = interpreter.end();
    steps.extend(rest);
    (steps, done)
}

/// Reads `stdout` as steps.
pub(crate) fn steps(stdout: &str) -> Vec<Step> {
    read(stdout).0
}

fn actual(stdout: &str) -> Expected {
    let mut interpreter = Interpreter::new(SessionInfo::default(), None);
    for event in stdout.lines().flat_map(|line| interpreter.read(line)) {
        assert!(!matches!(event, OpenCodeEvent::Unreadable(_) | OpenCodeEvent::TooDeep), "{event:?}");
    }
    let (steps, done) = read(stdout);
    let trace = Trace::of(&steps);
    let texts = |text: fn(&model::TracedTurn) -> &String| {
        trace.turns.iter().map(text).filter(|text| !text.is_empty()).cloned().collect()
    };
    Expected {
        calls: trace.calls.iter().map(|traced| (traced.call.raw_name.clone(), own_input(&traced.call))).collect(),
        texts: texts(|turn| &turn.text),
        thoughts: texts(|turn| &turn.thinking),
        turns: trace.turns.len(),
        answer: trace.answer.clone(),
        tokens: trace.usage.tokens,
        ending: match done {
            Ending::Finished => "answered",
            Ending::GaveUp { .. } => "gave up",
            Ending::ProviderFailed { .. } => "provider failed",
            _ => "unfinished",
        },
    }
}

/// Returns a call's arguments under OpenCode's own names, as used in the scripts.
fn own_input(call: &model::ToolCall) -> Value {
    let renamed =
        super::tool::table().find(|(own, ..)| *own == call.raw_name).map_or(&[][..], |(_, _, renamed)| renamed);
    let Value::Object(input) = call.input.clone() else { return call.input.clone() };
    let own = |name: String| match renamed.iter().find(|(_, canonical)| *canonical == name) {
        Some((own, _)) => (*own).to_owned(),
        None => name,
    };
    Value::Object(input.into_iter().map(|(name, value)| (own(name), value)).collect())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/opencode-1.18.33")
}

fn stdout(capture: &str) -> String {
    // OpenCode prints nothing if it is stopped before its model has responded.
    std::fs::read_to_string(root().join(capture).join("stdout.jsonl")).unwrap_or_default()
}

#[test]
fn every_capture_matches_its_script() {
    let mut names: Vec<_> =
        std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() >= 34, "{} captures are not all there were", names.len());
    let mut wrong = Vec::new();
    for name in &names {
        let json = |file: &str| serde_json::from_slice(&std::fs::read(root().join(name).join(file)).unwrap()).unwrap();
        let mut expected = Expected::of(&json("script.json"), &json("meta.json"));
        for (_, _, change) in EXCEPTIONS.iter().filter(|(patterns, ..)| patterns.contains(&name.as_str())) {
            let before = expected.clone();
            change(&mut expected);
            assert_ne!(before, expected, "{name} needs no exception");
        }
        let read = actual(&stdout(name));
        if read != expected {
            wrong.push(format!("{name}\n  expected {expected:?}\n  read     {read:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), names.len(), wrong.join("\n"));
    let known = EXCEPTIONS.iter().flat_map(|(patterns, ..)| *patterns);
    assert!(
        known.into_iter().all(|pattern| names.iter().any(|name| name == pattern)),
        "an exception concerns no capture"
    );
}

#[test]
fn calls_have_canonical_names_and_failed_ones_are_errors() {
    let calls = |capture: &str| -> Vec<(String, bool)> {
        let trace = Trace::of(&read(&stdout(capture)).0);
        let traced_calls = trace
            .calls
            .iter()
            .map(|traced| (traced.call.name.clone(), traced.result.as_ref().is_some_and(|result| result.is_error)));
        traced_calls.collect()
    };
    let expected =
        |list: &[(&str, bool)]| list.iter().map(|(name, failed)| ((*name).to_owned(), *failed)).collect::<Vec<_>>();
    assert_eq!(calls("b_tools"), expected(&[("Read", false), ("Bash", false), ("Write", false), ("Edit", false)]));
    assert_eq!(
        calls("c_fail"),
        expected(&[("Bash", true), ("Read", true), ("no_such_tool", true), ("Edit", true), ("Bash", true)])
    );
    assert_eq!(calls("g_skill"), expected(&[("Skill", false), ("Skill", true)]));
    assert_eq!(
        calls("b_tools_more"),
        expected(&[("Glob", true), ("Grep", true), ("TodoWrite", false), ("Task", false)]),
        "in the order in which the model called them, not in that in which they ended"
    );
}

#[test]
fn a_denied_call_is_reported_with_the_reason_for_the_session_end() {
    let (steps, done) = read(&stdout("i_perm_deny"));
    let refused: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::PermissionDenied { tool, call_id: Some(_), .. } => Some(tool.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(refused, ["Read"]);
    let reason = "it stopped because a call was not permitted (Read: The user rejected permission to use this specific tool \
                   call.)";
    assert_eq!(done, Ending::GaveUp { reason: reason.into() });
}

#[test]
fn an_error_contains_the_message_of_the_provider() {
    for (capture, reason) in [
        ("e_400", "HTTP 400: scripted 400"),
        ("e_429", "HTTP 429: scripted 429"),
        ("e_hang_stream", "The operation timed out."),
    ] {
        assert_eq!(read(&stdout(capture)).1, Ending::ProviderFailed { reason: reason.into() });
    }
}

#[test]
fn the_cost_is_the_sum_over_all_messages() {
    let trace = Trace::of(&read(&stdout("b_tools")).0);
    assert!(
        trace.usage.cost_usd.is_some_and(|cost| (cost - (3.0 * 0.00045 + 0.00189)).abs() < 1e-9),
        "{:?}",
        trace.usage
    );
    assert!(trace.session_id.is_some_and(|id| id.starts_with("ses_")));
}

#[test]
fn a_skill_is_triggered_by_its_tool_but_not_by_a_missing_one() {
    let trace = Trace::of(&steps(&stdout("g_skill")));
    assert!(grade::triggered(&trace, "clgreet") && !grade::triggered(&trace, "nope"));
}

#[test]
fn no_output_makes_the_reader_panic() {
    testkit::fuzz(&testkit::seeds(Path::new("tests/captures/opencode-1.18.33"), "stdout.jsonl"), |bytes| {
        let mut interpreter = Interpreter::new(SessionInfo::default(), None);
        String::from_utf8_lossy(bytes).lines().for_each(|line| drop(interpreter.read(line)));
        interpreter.end();
    });
}
