//! Compares recorded sessions of real versions with the scripts that their model followed.
//!
//! A capture consists of `stdout.jsonl`, the `script.json` of the model server (step n answers request n), and
//! `meta.json` (how the process was started and ended, and the requests that it made). The steps read from stdout must
//! match the served steps. The few sessions in which they cannot match are in [`EXCEPTIONS`], each with its reason.

use std::path::Path;

use model::{Step, Tokens, Trace};
use serde_json::{Value, json};

use super::event::{CliEvent, Done, Interpreter};
use super::is_openrouter;

/// Versions with captures. The last one is the version that `scripts/agents` installs.
const VERSIONS: [&str; 3] = ["claude-2.1.197", "claude-2.1.330", "claude-2.1.332"];

/// Expected content of a capture.
#[derive(Debug, Clone, Default, PartialEq)]
struct Expected {
    calls: Vec<(String, Value)>,
    texts: Vec<String>,
    thoughts: Vec<String>,
    turns: usize,
    answer: Option<String>,
    tokens: Option<Tokens>,
    ending: Option<&'static str>,
    /// Text of the steps that were served with a fault.
    spoilt: Option<String>,
}

/// Captures whose content differs from the script: parts of `version/name`, the reason, and the expected difference.
type Exception = (&'static [&'static str], &'static str, fn(&mut Expected));

const EXCEPTIONS: &[Exception] = &[
    (&["2.1.330/a_text_plain"], "--output-format text prints only the answer", |expected| {
        *expected = Expected::default();
    }),
    (&["/a_text_json"], "--output-format json prints only the result", |expected| {
        expected.texts.clear();
        expected.turns = 0;
    }),
    (&["i_yolo_root_nosandboxvar"], "root is refused before anything is said", |expected| {
        *expected = Expected::default();
    }),
    (&["f_maxturns"], "--max-turns 2", |expected| expected.end("out of turns")),
    (&["f_maxbudget"], "--max-budget-usd", |expected| expected.end("out of money")),
    (
        &["h_interrupt", "h_ask_control_deny_interrupt", "2.1.197/j_sigINT_in_bash"],
        "somebody interrupted it, and it said so",
        |expected| {
            expected.end("interrupted");
            expected.tokens = Some(tokens(100 * expected.turns as u64, 10 * expected.turns as u64));
        },
    ),
    (&["i_subagent", "y_lean"], "a sub-agent's text is reported only as the result of its call", |expected| {
        expected.texts.retain(|text| text != "sub result");
        expected.turns -= 1;
    }),
    (&["i_jsonschema"], "--json-schema: the answer is what StructuredOutput was called with", |expected| {
        expected.answer = Some(r#"{"n":4}"#.into());
    }),
    (
        &["2.1.197/e_malformed!", "2.1.197/e_sse_error!", "2.1.330/e_sse_error!"],
        "the last request was not streamed, and that server spoiled only streams",
        Expected::whole_after_all,
    ),
    (&["2.1.330/e_malformed!"], "likewise, and the spoilt answers are billed by estimate", |expected| {
        expected.whole_after_all();
        expected.tokens = Some(tokens(300, 90));
    }),
    (&["2.1.330/e_cut!"], "likewise", |expected| {
        expected.whole_after_all();
        expected.tokens = Some(tokens(200, 77));
    }),
    (&["2.1.330/e_cut_hard"], "spoilt answers are billed by estimate", |expected| {
        expected.tokens = Some(tokens(100, 67));
    }),
    (&["2.1.330/e_malformed_hard"], "spoilt answers are billed by estimate", |expected| {
        expected.tokens = Some(tokens(200, 80));
    }),
];

fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output, ..Tokens::default() }
}

impl Expected {
    fn of(script: &Value, meta: &Value) -> Self {
        let requests = meta["requests"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let served = requests.filter(|request| request.contains("POST-v1_messages")).count();
        let killed = !meta["killed"].is_null() || meta["timed_out_by_harness"] == true;
        let mut expected = Self { tokens: Some(Tokens::default()), ..Self::default() };
        let mut stop = None;
        for step in script["steps"].as_array().into_iter().flatten().take(served) {
            let text = step["text"].as_str().unwrap_or_default();
            if !step["fault"].is_null() {
                expected.spoilt = Some(text.to_owned());
                continue;
            }
            if killed && !step["delay"].is_null() {
                continue;
            }
            expected.serve(step, text);
            stop = step["stop"].as_str();
        }
        expected.end(match () {
            () if killed => "no result",
            () if matches!(stop, Some("max_tokens" | "refusal")) => "gave up",
            () if expected.turns == 0 => "provider failed",
            () => "answered",
        });
        expected
    }

    fn serve(&mut self, step: &Value, text: &str) {
        let usage = |key: &str, default: u64| step["usage"][key].as_u64().unwrap_or(default);
        if let Some(tokens) = &mut self.tokens {
            *tokens += Tokens {
                input: usage("input", 100),
                output: usage("output", 10),
                cache_read: usage("cache_read", 0),
                cache_write: usage("cache_write", 0),
                reasoning: None,
            };
        }
        let tools = step["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.calls.extend(
            tools.iter().map(|tool| (tool["name"].as_str().unwrap_or_default().to_owned(), tool["input"].clone())),
        );
        let thought = step["thinking"].as_str();
        self.thoughts.extend(thought.map(str::to_owned));
        if !text.is_empty() {
            self.texts.push(text.to_owned());
        }
        self.answer = Some(text.to_owned());
        self.turns += usize::from(!tools.is_empty() || thought.is_some() || !text.is_empty());
    }

    fn end(&mut self, ending: &'static str) {
        self.ending = Some(ending);
        if ending != "answered" {
            self.answer = None;
        }
        if ending == "no result" {
            self.tokens = None;
            self.ending = None;
        }
    }

    fn whole_after_all(&mut self) {
        self.texts = self.spoilt.clone().into_iter().collect();
        self.answer = self.spoilt.clone();
        self.turns = 1;
        self.tokens = Some(tokens(100, 10));
        self.ending = Some("answered");
    }
}

/// Reads `stdout` as steps.
pub(crate) fn steps(stdout: &str) -> Vec<Step> {
    let mut interpreter = Interpreter::new("test", None);
    let events = stdout.lines().flat_map(|line| interpreter.read(line));
    events.filter_map(|event| if let CliEvent::Step(step) = event { Some(step) } else { None }).collect()
}

/// Reads a capture like a session. Returns the trace and the ending of the last message.
fn read(stdout: &str) -> (Trace, Option<Done>) {
    let mut interpreter = Interpreter::new("test", None);
    let mut trace = Trace::default();
    let mut done = None;
    for event in stdout.lines().flat_map(|line| interpreter.read(line)) {
        match event {
            CliEvent::Step(step) => trace.push(&step),
            CliEvent::Done(how) => done = Some(how),
            CliEvent::Request(_)
            | CliEvent::Refused { .. }
            | CliEvent::Used(_)
            | CliEvent::Warning(_)
            | CliEvent::Unreadable(_)
            | CliEvent::TooDeep => {}
        }
    }
    (trace, done)
}

fn actual(stdout: &str) -> Expected {
    let (trace, done) = read(stdout);
    let texts = |text: fn(&model::TracedTurn) -> &String| {
        trace.turns.iter().map(text).filter(|text| !text.is_empty()).cloned().collect()
    };
    let answered = done == Some(Done::Answered);
    Expected {
        calls: trace.calls.iter().map(|traced| (traced.call.name.clone(), traced.call.input.clone())).collect(),
        texts: texts(|turn| &turn.text),
        thoughts: texts(|turn| &turn.thinking),
        turns: trace.turns.len(),
        answer: trace.answer.clone().filter(|_| answered),
        tokens: trace.usage.tokens.map(|tokens| Tokens { reasoning: None, ..tokens }),
        ending: done.map(|done| match done {
            Done::Answered => "answered",
            Done::OutOfTurns => "out of turns",
            Done::OutOfMoney => "out of money",
            Done::GaveUp(_) => "gave up",
            Done::Broken(_) => "broken",
            Done::ProviderFailed(_) => "provider failed",
            Done::Interrupted(_) => "interrupted",
        }),
        spoilt: None,
    }
}

/// Adds the arguments that the CLI fills in if the model leaves them out.
fn with_defaults(calls: &mut [(String, Value)]) {
    for (name, input) in calls {
        if name == "Edit" && input.get("replace_all").is_none() {
            input["replace_all"] = json!(false);
        }
    }
}

/// Returns `true` if `pattern` matches a capture: `name!` is the whole name, `name` any part of it.
fn concerns(pattern: &str, capture: &str) -> bool {
    pattern.strip_suffix('!').map_or_else(|| capture.contains(pattern), |whole| capture.ends_with(whole))
}

#[test]
fn every_capture_matches_its_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut used = vec![false; EXCEPTIONS.len()];
    for version in VERSIONS {
        let mut names: Vec<_> =
            std::fs::read_dir(root.join(version)).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        for folder in names {
            let capture = folder.strip_prefix(&root).unwrap().to_str().unwrap().replace("claude-", "");
            let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
            let script = serde_json::from_slice(&file("script.json")).unwrap();
            let meta = serde_json::from_slice(&file("meta.json")).unwrap();
            let mut expected = Expected::of(&script, &meta);
            for (index, (patterns, _, change)) in EXCEPTIONS.iter().enumerate() {
                if patterns.iter().any(|pattern| concerns(pattern, &capture)) {
                    let before = expected.clone();
                    change(&mut expected);
                    assert_ne!(before, expected, "{capture} needs no exception");
                    used[index] = true;
                }
            }
            expected.spoilt = None;
            with_defaults(&mut expected.calls);
            let mut read = actual(&String::from_utf8_lossy(&file("stdout.jsonl")));
            with_defaults(&mut read.calls);
            count += 1;
            if read != expected {
                wrong.push(format!("{capture}\n  expected {expected:?}\n  read     {read:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 145, "{count} captures are not all there were");
    assert!(used.iter().all(|used| *used), "an exception concerns no capture: {used:?}");
}

#[test]
fn tool_results_and_denials_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let steps = |capture: &str| steps(&std::fs::read_to_string(root.join(capture).join("stdout.jsonl")).unwrap());
    for version in VERSIONS {
        let failed = steps(&format!("{version}/c_fail"));
        let trace = Trace::of(&failed);
        let results: Vec<_> = trace.calls.iter().filter_map(|traced| traced.result.as_ref()).collect();
        assert_eq!(results.len(), trace.calls.len());
        assert!(results.iter().all(|result| result.is_error));
        assert!(results[0].content.starts_with("Exit code 3"), "{:?}", results[0]);

        let denied = steps(&format!("{version}/i_mode_default"));
        let refused: Vec<_> = denied
            .iter()
            .filter_map(|step| match step {
                Step::PermissionDenied { tool, .. } => Some(tool.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(refused, ["Bash", "Write"], "{version}");

        let retried = steps(&format!("{version}/e_500"));
        let retries = retried.iter().filter(|step| matches!(step, Step::Retry { status: Some(500), .. })).count();
        assert_eq!(retries, 2, "{version}");
    }
    let sub_agent = Trace::of(&steps("claude-2.1.197/i_subagent"));
    assert_eq!(sub_agent.calls[1].call.parent.as_deref(), Some(sub_agent.calls[0].call.id.as_str()));
    assert_eq!(sub_agent.turn_count(), 2);
}

#[test]
fn a_chain_is_billed_message_by_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    for (version, each) in [("claude-2.1.197", 0.00075), ("claude-2.1.330", 0.0006), ("claude-2.1.332", 0.0006)] {
        let text = std::fs::read_to_string(root.join(version).join("d_streamin_turnwise/stdout.jsonl")).unwrap();
        let mut interpreter = Interpreter::new("test", None);
        let costs: Vec<_> = text
            .lines()
            .flat_map(|line| interpreter.read(line))
            .filter_map(|event| match event {
                CliEvent::Step(Step::Finished { usage, .. }) => usage.cost_usd,
                _ => None,
            })
            .collect();
        let expected = [each, 2.0 * each, each];
        assert!(costs.iter().zip(expected).all(|(cost, expected)| (cost - expected).abs() < 1e-9), "{costs:?}");
    }
}

#[test]
fn usage_counted_during_the_turn_equals_the_final_usage() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    for version in VERSIONS {
        let text = std::fs::read_to_string(root.join(version).join("a_text_thinking_partial/stdout.jsonl")).unwrap();
        let mut interpreter = Interpreter::new("test", None);
        let events: Vec<CliEvent> = text.lines().flat_map(|line| interpreter.read(line)).collect();
        let counted: Vec<_> = events
            .iter()
            .filter_map(|event| if let CliEvent::Used(tokens) = event { Some(*tokens) } else { None })
            .collect();
        let total = Trace::of(&steps(&text)).usage.tokens.map(|tokens| Tokens { reasoning: None, ..tokens });
        assert_eq!(counted.into_iter().map(Some).collect::<Vec<_>>(), [total], "{version}");
    }
}

#[test]
fn a_skill_requested_by_the_user_is_a_call_without_an_event() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    for version in VERSIONS {
        let text = std::fs::read_to_string(root.join(version).join("g_skill_slash/stdout.jsonl")).unwrap();
        let read = |message: &str| {
            let mut interpreter = Interpreter::new("test", None);
            interpreter.asked(message);
            let mut trace = Trace::default();
            for event in text.lines().flat_map(|line| interpreter.read(line)) {
                if let CliEvent::Step(step) = event {
                    trace.push(&step);
                }
            }
            (grade::triggered(&trace, "greet"), trace.turns.len())
        };
        assert_eq!((read("/greet Bob"), read("Use the $greet skill. Bob")), ((true, 1), (false, 1)), "{version}");
        let loaded = std::fs::read_to_string(root.join(version).join("g_skill/stdout.jsonl")).unwrap();
        assert!(grade::triggered(&Trace::of(&steps(&loaded)), "greet"), "{version}");
        let unknown = std::fs::read_to_string(root.join(version).join("g_skill_unknown/stdout.jsonl")).unwrap();
        assert!(!grade::triggered(&Trace::of(&steps(&unknown)), "greet"), "{version}");
    }
}

#[test]
fn openrouter_is_recognised_by_host_and_not_by_substring() {
    for address in ["https://openrouter.ai/api", "HTTPS://OpenRouter.AI", "https://eu.openrouter.ai:443/v1"] {
        assert!(is_openrouter(address), "{address}");
    }
    for address in [
        "https://openrouter.ai.example.com",
        "https://notopenrouter.ai",
        "https://example.com/openrouter.ai",
        "https://openrouter.ai@example.com/",
        "openrouter.ai",
        "",
    ] {
        assert!(!is_openrouter(address), "{address}");
    }
}

#[test]
fn no_output_makes_the_reader_panic() {
    testkit::fuzz(&testkit::seeds(Path::new("tests/captures/claude-2.1.330"), "stdout.jsonl"), |bytes| {
        let mut interpreter = Interpreter::new("test", None);
        String::from_utf8_lossy(bytes).lines().for_each(|line| drop(interpreter.read(line)));
    });
}
