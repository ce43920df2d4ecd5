//! Compares recorded threads of a real version with the scripts that their model followed.
//!
//! A capture consists of `stdout.jsonl`, the `script.json` of the model server (step n answers request n), and
//! `meta.json` (how the process was started and ended, and the requests that it made). The steps read from stdout must
//! match the served steps. The sessions in which they cannot match are in [`EXCEPTIONS`], each with its reason. The
//! captures below `codex-…-threads` also have `thread.jsonl`, the thread's own file, in which nothing is
//! missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::{Ending, Step, Tokens, Trace};
use serde_json::{Value, json};

use super::item;
use super::rollout::{Rollout, ThreadEvent};
use super::stream::{Stream, StreamEvent};
use crate::apply_patch;
use crate::tests::harness::AgentHarness;

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
}

/// Captures whose content differs from the script: the captures, the reason, and the expected difference.
type Exception = (&'static [&'static str], &'static str, fn(&mut Expected));

const EXCEPTIONS: &[Exception] = &[
    (&["e_badconfig", "i_strict_badkey"], "a bad configuration is reported on stderr only", |expected| {
        expected.end(None);
    }),
    (&["a_default_model"], "that server took the one request for a side request", |expected| {
        expected.texts = vec!["side answer".into()];
        expected.answer = Some("side answer".into());
    }),
    (&["c_fail"], "stdout hides an unknown tool, a rejected patch and bad arguments", |expected| {
        expected.calls.truncate(2);
        expected.turns = 3;
    }),
    (&["b_tools_plan"], "stdout hides a tool that the model does not have", |expected| {
        expected.calls.clear();
        expected.turns = 1;
    }),
    (&["b_tools_longrunning"], "stdout hides a call to `write_stdin` that failed", |expected| {
        expected.calls.truncate(1);
        expected.turns = 2;
    }),
    (&["b_tools_mcp"], "stdout hides the call to a tool by a name that it does not have", |expected| {
        expected.calls.truncate(1);
        expected.turns = 2;
    }),
    (&["i_escalate"], "stdout hides a command that was refused", |expected| {
        expected.calls.clear();
        expected.turns = 1;
    }),
    (&["i_agents_subagent"], "stdout contains neither a sub-agent's answer nor its tokens", |expected| {
        expected.texts.retain(|text| text == "sub or main");
        expected.answer = Some("sub or main".into());
        expected.tokens = Some(tokens(200, 20));
        expected.turns = 2;
    }),
];

fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output, ..Tokens::default() }
}

impl Expected {
    fn of(script: &Value, meta: &Value) -> Self {
        let requests = meta["requests"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let served = requests.filter(|request| request.contains("POST-v1_responses")).count();
        let cut_off = !meta["killed"].is_null() || meta["timed_out_by_harness"] == true;
        let mut expected = Self { tokens: Some(Tokens::default()), ..Self::default() };
        for step in script["steps"].as_array().into_iter().flatten().take(served) {
            let never_came = !step["fault"].is_null() || (cut_off && !step["delay"].is_null());
            if !never_came {
                expected.serve(step);
            }
        }
        expected.end(match () {
            () if cut_off => None,
            () if expected.turns == 0 => Some("provider failed"),
            () => Some("answered"),
        });
        expected
    }

    fn serve(&mut self, step: &Value) {
        let usage = |key: &str, default: u64| step["usage"][key].as_u64().unwrap_or(default);
        if let Some(tokens) = &mut self.tokens {
            *tokens += Tokens {
                input: usage("input", 100),
                output: usage("output", 10),
                cache_read: usage("cache_read", 0),
                ..Tokens::default()
            };
        }
        for tool in step["tools"].as_array().into_iter().flatten() {
            self.calls.extend(calls(tool));
        }
        self.thoughts.extend(step["thinking"].as_str().map(str::to_owned));
        if let Some(text) = step["text"].as_str() {
            self.texts.push(text.to_owned());
            self.answer = Some(text.to_owned());
        }
        self.turns += 1;
    }

    fn end(&mut self, ending: Option<&'static str>) {
        self.ending = ending;
        if ending != Some("answered") {
            self.answer = None;
            self.tokens = None;
        }
    }
}

/// Returns the calls expected for a tool in a script, if stdout reports it.
fn calls(tool: &Value) -> Vec<(String, Value)> {
    let (name, namespace) = (tool["name"].as_str().unwrap_or_default(), tool["namespace"].as_str());
    if name == apply_patch::APPLY_PATCH {
        let mut changes = apply_patch::parse(tool["input"].as_str().unwrap_or_default(), Some("/SANDBOX/work"));
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes.iter_mut().for_each(|change| change.text = None);
        return changes.iter().map(|change| change.call("c", "m")).map(|call| (call.name, call.input)).collect();
    }
    let call = item::call("c", namespace, name, tool["input"].clone(), "m");
    let input = match (call.name.as_str(), call.input) {
        ("Bash", input) => json!({"command": input["command"]}),
        ("Agent", input) => json!({"prompt": input["message"]}),
        (_, input) => input,
    };
    vec![(call.name, input)]
}

/// Reads `stdout` as steps, with an end for each answered message.
pub(crate) fn steps(stdout: &str) -> Vec<Step> {
    let mut stream = Stream::default();
    let mut answer = None;
    let mut steps = Vec::new();
    for event in stdout.lines().flat_map(|line| stream.read(line)) {
        match event {
            StreamEvent::Step(step) | StreamEvent::StdoutOnly(step) => {
                if let Step::Text { text, .. } = &step {
                    answer = Some(text.clone());
                }
                steps.push(step);
            }
            StreamEvent::Done(Ok(tokens)) => steps.push(Step::Finished {
                subtype: "completed".into(),
                is_error: false,
                usage: model::Usage { tokens, cost_usd: None },
                text: answer.clone(),
                result: None,
            }),
            _ => {}
        }
    }
    steps
}

fn actual(stdout: &str) -> Expected {
    let mut stream = Stream::default();
    let mut trace = Trace::default();
    let mut done = None;
    for event in stdout.lines().flat_map(|line| stream.read(line)) {
        match event {
            StreamEvent::Step(step) | StreamEvent::StdoutOnly(step) => trace.push(&step),
            StreamEvent::Done(how) => done = Some(how),
            StreamEvent::Thread(_) | StreamEvent::TurnStarted => {}
            StreamEvent::Unreadable(_) | StreamEvent::TooDeep => panic!("a line cannot be read: {event:?}"),
        }
    }
    let texts = |text: fn(&model::TracedTurn) -> &String| {
        trace.turns.iter().map(text).filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>()
    };
    let said = texts(|turn| &turn.text);
    let (ending, tokens) = match done {
        Some(Ok(tokens)) => (Some("answered"), tokens.map(|tokens| Tokens { reasoning: None, ..tokens })),
        Some(Err(Ending::GaveUp { .. })) => (Some("gave up"), None),
        Some(Err(_)) => (Some("provider failed"), None),
        None => (None, None),
    };
    Expected {
        calls: trace.calls.iter().map(|traced| (traced.call.name.clone(), traced.call.input.clone())).collect(),
        answer: said.last().cloned().filter(|_| ending == Some("answered")),
        texts: said,
        thoughts: texts(|turn| &turn.thinking),
        turns: trace.turns.len(),
        tokens,
        ending,
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

fn folders(version: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(version)).unwrap();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

#[test]
fn every_capture_matches_its_script() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut used = vec![false; EXCEPTIONS.len()];
    for folder in ["codex-0.169.0", "codex-0.171.0"].into_iter().flat_map(folders) {
        let capture = folder.file_name().unwrap().to_str().unwrap();
        let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
        let script = serde_json::from_slice(&file("script.json")).unwrap();
        let meta = serde_json::from_slice(&file("meta.json")).unwrap();
        let mut expected = Expected::of(&script, &meta);
        for (index, (captures, _, change)) in EXCEPTIONS.iter().enumerate() {
            if captures.contains(&capture) {
                let before = expected.clone();
                change(&mut expected);
                assert_ne!(before, expected, "{capture} needs no exception");
                used[index] = true;
            }
        }
        let read = actual(&String::from_utf8_lossy(&file("stdout.jsonl")));
        count += 1;
        if read != expected {
            wrong.push(format!("{capture}\n  expected {expected:?}\n  read     {read:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 57, "{count} captures are not all there were");
    assert!(used.iter().all(|used| *used), "an exception concerns no capture: {used:?}");
}

#[test]
fn tool_results_are_read_and_retries_are_recorded() {
    let steps = |capture: &str| -> Vec<Step> {
        let text = std::fs::read_to_string(root().join("codex-0.169.0").join(capture).join("stdout.jsonl")).unwrap();
        let mut stream = Stream::default();
        let events = text.lines().flat_map(|line| stream.read(line));
        events
            .filter_map(|event| match event {
                StreamEvent::Step(step) | StreamEvent::StdoutOnly(step) => Some(step),
                _ => None,
            })
            .collect()
    };
    let failed = Trace::of(&steps("c_fail"));
    let results: Vec<_> = failed.calls.iter().filter_map(|traced| traced.result.as_ref()).collect();
    assert_eq!(results.iter().map(|result| result.content.as_str()).collect::<Vec<_>>()[0], "out\nerr\n");
    assert!(results.iter().all(|result| result.is_error));
    let done = Trace::of(&steps("b_tools"));
    assert!(done.calls.iter().all(|traced| traced.result.as_ref().is_some_and(|result| !result.is_error)));
    assert_eq!(done.calls[2].result.as_ref().unwrap().content, "update /SANDBOX/work/README.md");
    let left = Trace::of(&steps("b_tools_longrunning"));
    assert_eq!(left.calls[0].result, None);
    let retries = |capture: &str| {
        let steps = steps(capture);
        let of = |step: &Step| match step {
            Step::Retry { attempt, status, .. } => Some((*attempt, *status)),
            _ => None,
        };
        steps.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(retries("e_429"), [(1, Some(429))]);
    assert_eq!(retries("e_500"), [(1, None)]);
    assert_eq!(retries("e_400"), []);
    assert!(retries("e_refused").len() > 2);
}

/// Content of the files of a thread.
#[derive(Default)]
struct Thread {
    trace: Trace,
    model: Option<String>,
    version: Option<String>,
    used: Tokens,
    answered: usize,
}

impl Thread {
    /// Reads the files like a session, but one after another.
    fn read(capture: &str) -> Self {
        Self::of("0.169.0", capture)
    }

    fn of(version: &str, capture: &str) -> Self {
        let folder = root().join(format!("codex-{version}-threads")).join(capture);
        let mut thread = Self::default();
        let mut spawned = BTreeMap::new();
        thread.file(&folder.join("thread.jsonl"), Rollout::default(), &mut spawned);
        for (id, call) in spawned.clone() {
            let file = folder.join(format!("thread-{id}.jsonl"));
            thread.file(&file, Rollout::of_subagent(&call), &mut spawned);
        }
        thread
    }

    fn file(&mut self, path: &Path, mut rollout: Rollout, spawned: &mut BTreeMap<String, String>) {
        let text = std::fs::read_to_string(path).unwrap();
        let mut noted: Vec<ThreadEvent> = text.lines().flat_map(|line| rollout.read(line)).collect();
        noted.extend(rollout.settle());
        for noted in noted {
            match noted {
                ThreadEvent::Step(step) => self.trace.push(&step),
                ThreadEvent::Model(model) => self.model = Some(model),
                ThreadEvent::Version(version) => self.version = Some(version),
                ThreadEvent::Used(tokens) => self.used += tokens,
                ThreadEvent::Spawned { thread, call } => {
                    spawned.insert(thread, call);
                }
                ThreadEvent::Answered => self.answered += 1,
                ThreadEvent::Damaged | ThreadEvent::TooDeep => panic!("a line of {} cannot be read", path.display()),
            }
        }
    }

    /// Returns each call as its name, its main argument and its result; `!` marks an error.
    fn calls(&self) -> Vec<String> {
        let call = |traced: &model::TracedCall| {
            let result = match &traced.result {
                Some(result) => {
                    let first = result.content.lines().next().unwrap_or_default();
                    format!("{first}{}", if result.is_error { " !" } else { "" })
                }
                None => "-".to_owned(),
            };
            let about = traced.call.key_argument().unwrap_or_default();
            format!("{} {about} = {result}", traced.call.name)
        };
        self.trace.calls.iter().map(call).collect()
    }

    fn texts(&self) -> Vec<&str> {
        self.trace.turns.iter().map(|turn| turn.text.as_str()).collect()
    }
}

#[test]
fn the_file_of_a_thread_matches_its_script_and_names_its_model() {
    let tools = Thread::read("tools");
    assert_eq!(
        tools.calls(),
        [
            "Bash cat README.md = # demo",
            "Bash wc -l README.md; echo done = 2 README.md",
            "Edit /SANDBOX/work/README.md = update /SANDBOX/work/README.md",
            "Bash rm /SANDBOX/work/del.txt = delete /SANDBOX/work/del.txt",
            "Write /SANDBOX/work/out.txt = add /SANDBOX/work/out.txt",
        ]
    );
    assert_eq!(tools.texts(), ["Reading.", "", "Writing.", "All done: 42."]);
    assert_eq!((tools.model.as_deref(), tools.version.as_deref()), (Some("gpt-5.5"), Some("0.169.0")));
    let used = Tokens { input: 500, cache_read: 300, cache_write: 0, output: 50, reasoning: Some(0) };
    assert_eq!((tools.used, tools.answered), (used, 3));
    assert_eq!(tools.trace.calls[0].call.raw_name, "exec_command");
    assert_eq!(tools.trace.calls[1].call.input["workdir"], "/SANDBOX/work");
    assert_eq!(tools.trace.calls[4].call.input["content"], "42\n");
    assert!(tools.trace.calls[2].call.input["patch"].as_str().unwrap().contains("-The magic number is 42."));
}

#[test]
fn the_files_of_both_versions_tell_the_same() {
    for capture in ["tools", "failures"] {
        let [old, new] = ["0.169.0", "0.171.0"].map(|version| Thread::of(version, capture));
        assert_eq!((new.calls(), new.texts()), (old.calls(), old.texts()), "{capture}");
        assert_eq!((new.used.output, new.answered), (old.used.output, old.answered), "{capture}");
        assert_eq!(new.version.as_deref(), Some("0.171.0"));
    }
}

#[test]
fn calls_that_never_ran_are_read_from_the_thread_file() {
    let failures = Thread::read("failures");
    assert_eq!(
        failures.calls(),
        [
            "Bash echo out; echo err >&2; exit 3 = out !",
            "Bash cat missing.txt = cat: missing.txt: No such file or directory !",
            "no_such_tool  = unsupported call: no_such_tool !",
            "Edit /SANDBOX/work/nofile.txt = apply_patch verification failed: Failed to read file to update \
             /SANDBOX/work/nofile.txt: No such file or directory (os error 2) !",
            "Bash  = failed to parse function arguments: missing field `cmd` at line 1 column 12 !",
        ]
    );
    assert_eq!((failures.trace.turns.len(), failures.answered), (6, 5));
    assert_eq!(Thread::read("plan").calls(), ["TodoWrite  = unsupported call: update_plan !"; 2]);
    let refused = Thread::read("escalation").calls();
    assert!(refused[0].starts_with("Bash touch /var/tmp/x = approval policy is Never"), "{refused:?}");
    assert!(refused[0].ends_with(" !"));
}

#[test]
fn a_command_that_outlives_its_call_gets_its_final_result() {
    assert_eq!(
        Thread::read("left_running").calls(),
        ["Bash echo start; sleep 3; echo end = start", "write_stdin  = write_stdin failed: Unknown process id 1 !"]
    );
    assert_eq!(
        Thread::read("odd").calls(),
        [
            "Bash apply_patch <<'EOF' *** Begin Patch *** Add File: z.txt +1 *** End Patch EOF = Success. Updated the \
             following files:",
            "Write /SANDBOX/work/z.txt = add /SANDBOX/work/z.txt",
            "Read nope.png = unable to locate image at `/SANDBOX/work/nope.png`: No such file or directory (os error 2) !",
            "AskUserQuestion Which? = request_user_input is unavailable in Default mode !",
            "get_goal  = {\"goal\":null,\"remainingTokens\":null,\"completionBudgetReport\":null}",
            "Bash sleep 0.8; echo late; exit 4 = late !",
        ]
    );
}

#[test]
fn the_calls_of_a_sub_agent_are_recorded_and_billed() {
    let thread = Thread::read("subagent");
    assert_eq!(thread.calls()[1], "Bash echo any = any");
    assert!(thread.calls()[0].starts_with("Agent "));
    assert_eq!((thread.trace.turns.len(), thread.trace.turn_count()), (4, 3));
    assert_eq!(thread.trace.turns[3].parent.as_deref(), Some(thread.trace.calls[0].call.id.as_str()));
    assert_eq!((thread.trace.turns[3].text.as_str(), thread.used.input), ("A", 400));
}

#[test]
fn scripts_are_recorded_with_and_without_calls() {
    assert_eq!(
        Thread::read("scripts").calls(),
        ["Bash echo hi > f.txt; cat f.txt = hi", "Write /SANDBOX/work/o.txt = add /SANDBOX/work/o.txt"]
    );
    assert_eq!(
        Thread::read("script_failures").calls(),
        ["exec await tools.nope({}) = Script failed !", "exec text('just text') = Script completed"]
    );
    assert_eq!(
        Thread::read("servers").calls(),
        ["mcp__db__query good = rows of good", "mcp__db__query bad = rows of bad !"]
    );
}

#[test]
fn a_resumed_thread_continues_its_file_and_a_named_skill_is_a_call() {
    let thread = Thread::read("resumed");
    assert_eq!(thread.calls(), ["Skill greet = ---", "Bash echo one = one", "Bash echo two = two"]);
    assert_eq!(thread.texts(), ["Looking.", "first done", "second done"]);
    assert_eq!(thread.trace.turns[0].thinking, "Hm. **Plan**");
    assert_eq!(thread.trace.turns[0].calls.len(), 3);
    let used = Tokens { input: 600, cache_read: 400, cache_write: 0, output: 60, reasoning: Some(5) };
    assert_eq!(thread.used, used);
    let mut stream = Stream::default();
    let mut each = Vec::new();
    for part in ["stdout-1.jsonl", "stdout-2.jsonl"] {
        let text = std::fs::read_to_string(root().join("codex-0.169.0-threads/resumed").join(part)).unwrap();
        each.extend(text.lines().flat_map(|line| stream.read(line)).filter_map(|event| match event {
            StreamEvent::Done(Ok(Some(tokens))) => Some((tokens.input, tokens.cache_read, tokens.output)),
            _ => None,
        }));
    }
    assert_eq!(each, [(400, 100, 30), (200, 300, 30)], "stdout counts the whole thread, each message is billed once");
}

#[test]
fn a_skill_is_triggered_if_its_file_is_read_or_the_user_names_it() {
    let triggered = |capture: &str, skill: &str| {
        let text = std::fs::read_to_string(root().join(capture).join("stdout.jsonl")).unwrap();
        grade::triggered(&Trace::of(&steps(&text)), skill)
    };
    assert!(triggered("codex-0.169.0/g_skill", "ag"), "by stdout alone");
    assert!(!triggered("codex-0.169.0/g_skill", "other") && !triggered("codex-0.169.0/b_tools", "ag"));
    let named = Thread::read("resumed").trace;
    assert!(grade::triggered(&named, "greet") && !grade::triggered(&named, "ag"));
}

#[test]
fn irrelevant_lines_produce_no_steps() {
    let mut rollout = Rollout::default();
    for line in [
        "",
        "not json",
        "[]",
        "null",
        r#"{"type":"new"}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"developer","content":[]}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"<skill>\n<name>x"}]}}"#,
        r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"unknown"}}}"#,
        r#"{"type":"token_usage_record","payload":{}}"#,
        r#"{"type":"turn_context","payload":{"model":5}}"#,
    ] {
        assert_eq!(rollout.read(line), [], "{line}");
    }
}

/// Returns the ending of a conversation with a stand-in for the program that prints these lines.
async fn ending(lines: &[&str]) -> Ending {
    let thread = r#"{"type":"thread.started","thread_id":"t"}"#;
    let lines: Vec<&str> = std::iter::once(thread).chain(lines.iter().copied()).collect();
    let mut played = AgentHarness::of_printed("TRIALRUN_CODEX", &lines).play(&super::Codex).await.unwrap();
    played.endings.remove(0)
}

const COMPLETED: &str = r#"{"type":"turn.completed"}"#;
const SAID: &str = r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"hi"}}"#;

#[tokio::test]
async fn a_completed_turn_without_an_answer_or_a_call_is_not_finished() {
    assert_eq!(ending(&[SAID, COMPLETED]).await, Ending::Finished);
    let silent = ending(&[COMPLETED]).await;
    assert!(matches!(&silent, Ending::Aborted { reason } if reason.contains("said nothing")), "{silent:?}");
    let empty = r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":""}}"#;
    let used = r#"{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":1}}"#;
    let silent = ending(&[empty, used]).await;
    assert!(matches!(&silent, Ending::GaveUp { reason } if reason.contains("neither text nor")), "{silent:?}");
}

#[tokio::test]
async fn an_event_without_its_required_fields_makes_the_trial_broken() {
    for line in [
        r#"{"type":"item.completed"}"#,
        r#"{"type":"item.completed","item":"garbage"}"#,
        r#"{"type":"item.completed","item":{"id":"i"}}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"agent_message"}}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":7}}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"command_execution","status":"completed"}}"#,
        r#"{"type":"item.started","item":{"id":"i","type":"command_execution","command":["ls"]}}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"mcp_tool_call","server":"s"}}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"file_change","changes":[{"kind":"add"}]}}"#,
        r#"{"type":"thread.started"}"#,
    ] {
        let ending = ending(&[line, SAID, COMPLETED]).await;
        assert!(matches!(&ending, Ending::Aborted { reason } if reason.starts_with("Codex printed ")), "{line}");
    }
}

#[tokio::test]
async fn a_failed_turn_is_not_completed_by_a_later_event() {
    let failed = r#"{"type":"turn.failed","error":{"message":"no"}}"#;
    let provider = Ending::ProviderFailed { reason: "no".into() };
    assert_eq!(ending(&[SAID, failed, COMPLETED]).await, provider);
    let again = r#"{"type":"turn.started"}"#;
    assert_eq!(ending(&[failed, again, SAID, COMPLETED]).await, Ending::Finished);
}

#[tokio::test]
async fn an_event_with_too_many_levels_ends_the_conversation() {
    let nested = format!(r#"{{"type":"item.completed","item":{}{}}}"#, "[".repeat(130), "]".repeat(130));
    let ending = ending(&[&nested, SAID, COMPLETED]).await;
    assert!(matches!(&ending, Ending::GaveUp { reason } if reason.contains("more than 100 levels")), "{ending:?}");
}

#[test]
fn an_entry_without_its_required_fields_is_damaged() {
    for line in [
        r#"{"type":"response_item"}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"assistant"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","call_id":"c","arguments":"{}"}}"#,
        r#"{"type":"response_item","payload":{"type":"custom_tool_call","call_id":"c","input":"x"}}"#,
        r#"{"type":"response_item","payload":{"type":"local_shell_call","call_id":"c"}}"#,
    ] {
        assert_eq!(Rollout::default().read(line), [ThreadEvent::Damaged], "{line}");
    }
}

#[test]
fn tool_names_that_codex_cannot_have_are_known() {
    use crate::Agent;
    let mut case = model::Case::new("a", model::Excerpt::of_file("case.yaml"));
    let known = |case: &model::Case| super::Codex.known_tools(case);
    assert!(matches!(known(&case), grade::KnownTools::Canonical(own) if own.contains(&"write_stdin")));
    std::sync::Arc::make_mut(&mut case.runner).setting_sources = vec![model::SettingSource::User];
    assert_eq!(known(&case), grade::KnownTools::AtLeast(&[]));
}

#[test]
fn no_output_makes_the_readers_panic() {
    testkit::fuzz(&testkit::seeds(Path::new("tests/captures/codex-0.169.0"), "stdout.jsonl"), |bytes| {
        let mut stream = Stream::default();
        String::from_utf8_lossy(bytes).lines().for_each(|line| drop(stream.read(line)));
    });
    testkit::fuzz(&testkit::seeds(Path::new("tests/captures/codex-0.169.0-threads"), "thread.jsonl"), |bytes| {
        let mut rollout = Rollout::default();
        String::from_utf8_lossy(bytes).lines().for_each(|line| drop(rollout.read(line)));
        rollout.settle();
    });
}

#[test]
fn no_patch_makes_its_reader_panic() {
    let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ def\n-x\n+y\n*** Add File: c\n+z\n\
                 *** Delete File: d\n*** End Patch\n";
    testkit::fuzz(&[patch.into()], |bytes| {
        apply_patch::parse(&String::from_utf8_lossy(bytes), Some("/work"));
    });
}
