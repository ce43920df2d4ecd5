use model::{Budget, Case, Ending, Fault, Step};
use serde_json::{Map, Value as Json, json};

use super::*;
use crate::tests::harness::{AgentHarness, TestRun, case, configured, new_run, run_state};
use crate::tests::loopback::{CannedResponse, Loopback};

/// Creates a module with this text in a new directory, and returns the argument that refers to it.
fn module(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    std::fs::write(&file, text).unwrap();
    let file = file.to_string_lossy().into_owned();
    (dir, file)
}

fn harness(file: &str, case: Case) -> AgentHarness {
    AgentHarness { argument: Some(file.to_owned()), ..AgentHarness::for_case(case) }
}

/// Runs a case with one message on a module with this text.
async fn run(text: &str) -> TestRun {
    let (_dir, file) = module("agent.js", text);
    harness(&file, case("a", &["go"])).play(&Custom).await.unwrap()
}

fn notices(played: &mut TestRun) -> Vec<(String, String)> {
    let steps = played.steps().into_iter();
    steps
        .filter_map(|step| match step {
            Step::Notice { from, text } => Some((from, text)),
            _ => None,
        })
        .collect()
}

fn problems(file: &str) -> Vec<String> {
    Custom.check_argument(Some(file), &new_run()).iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn execute_receives_the_case_data_and_its_complete_result_is_kept() {
    let (_dir, file) = module(
        "agent.ts",
        "type Context = { script?: string, args: Record<string, any>, options: object };
        export async function execute({ script, args, options }: Context) {
            return { output: { n: args.n + 1 }, script, args, options, gone: undefined };
        }",
    );
    let mut case = case("a", &["text"]);
    let message = &mut case.messages[0];
    message.vars = Map::from_iter([("n".to_owned(), json!(1))]);
    message.options = Map::from_iter([("model".to_owned(), json!("m"))]);
    (message.script, message.tools) = (Some("p".into()), vec![json!({"name": "t"})]);
    let played = harness(&file, case).play(&Custom).await.unwrap();
    assert_eq!(played.answer(), Some(r#"{"n":2}"#));
    let args = json!({"n": 1, "tools": [{"name": "t"}]});
    let whole = json!({"output": {"n": 2}, "script": "p", "args": args, "options": {"model": "m"}, "messages": null});
    assert_eq!(played.turn.trace().result.as_deref(), Some(&whole));
    assert_eq!(played.endings, [Ending::Finished]);
    assert_eq!(played.turn.trace().session_id.as_deref(), Some("custom-suite::a@agent#1"));
}

#[tokio::test]
async fn text_and_other_plain_values_become_the_answer() {
    let echo = run("export default ({ args }) => `you said ${args.input}`").await;
    let result = json!({"output": "you said go", "messages": null});
    assert_eq!((echo.answer(), echo.turn.trace().result.as_deref()), (Some("you said go"), Some(&result)));
    let object = run("export const execute = () => ({ output: 'x', usage: { input: 3, output_tokens: 4 } })").await;
    assert_eq!((object.answer(), object.tokens()), (Some("x"), Some(7)));
    // It did not report what happened before the answer, so it is unknown whether there were any calls.
    assert_eq!(object.turn.trace().result.as_deref().unwrap()["messages"], json!(null));
    let with_calls = run("export default () => ({ output: 'x', tools: [] })").await;
    assert_eq!(with_calls.turn.trace().result.as_deref(), Some(&json!({"output": "x", "tools": []})));
    let number = run("export default { execute: () => 42 }").await;
    assert_eq!(
        (number.answer(), number.turn.trace().result.as_deref()),
        (Some("42"), Some(&json!({"output": 42, "messages": null})))
    );
    let missing = run("export default () => ({ messages: [] })").await;
    assert_eq!((missing.answer(), missing.turn.trace().result.as_deref()), (None, Some(&json!({"messages": []}))));
}

#[tokio::test]
async fn leftovers_of_other_trials_in_a_shared_engine_do_not_fail_a_trial() {
    let module = "const log = [];
export function execute({ args }) {
  if (log.length > 3) throw new Error('full');
  log.push(args.input);
  return { output: String(log.length) };
}";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.mjs"), module).unwrap();
    let file = dir.path().join("agent.mjs").display().to_string();
    for trial in 0..10 {
        let harness = AgentHarness { argument: Some(file.clone()), ..AgentHarness::for_case(case("case", &["hello"])) };
        let played = harness.play(&Custom).await.unwrap();
        assert_eq!(played.endings, [Ending::Finished], "trial {trial}");
    }
}

#[tokio::test]
async fn an_object_without_an_output_counts_as_giving_up() {
    let reason = "`execute` returned no `output`".to_owned();
    for empty in ["{}", "{ ouput: 'x' }", "{ text: 'x' }"] {
        let ended = run(&format!("export default () => ({empty})")).await.endings;
        assert_eq!(ended, [Ending::GaveUp { reason: reason.clone() }], "{empty}");
    }
    for empty in ["{ output: null }", "{ messages: [] }"] {
        let ended = run(&format!("export default () => ({empty})")).await.endings;
        assert!(matches!(&ended[..], [Ending::GaveUp { .. }]), "{empty}: {ended:?}");
    }
    assert_eq!(run("export default () => ({ score: 5 })").await.endings, [Ending::Finished]);
}

#[tokio::test]
async fn a_key_similar_to_a_known_one_is_reported() {
    let warnings = async |text: &str| {
        let played = run(&format!("export default () => ({text})")).await;
        played.turn.into_parts().2
    };
    let odd = |key: &str, meant: &str| {
        vec![format!("unexpected value from `execute`: `{key}` is not a known key; did you mean `{meant}`?")]
    };
    assert_eq!(warnings("{ ouput: 'x' }").await, odd("ouput", "output"));
    assert_eq!(warnings("{ output: 'x', mesages: [] }").await, odd("mesages", "messages"));
    assert_eq!(warnings("{ text: 'x' }").await, odd("text", "output"));
    for fine in ["{ output: 'x', text: 'y', outputs: 1 }", "{ output: 'x', state: 1 }", "{ messages: [], content: 1 }"]
    {
        assert_eq!(warnings(fine).await, [""; 0], "{fine}");
    }
}

#[tokio::test]
async fn the_last_answer_is_graded_regardless_of_earlier_ones() {
    let text = "let n = 0; export default () => n++ ? 'second' : { output: 'first', tools: [{ name: 'find' }] };";
    let (_dir, file) = module("agent.js", text);
    let played = harness(&file, case("a", &["one", "two"])).play(&Custom).await.unwrap();
    let result = json!({"output": "second", "messages": null});
    assert_eq!((played.answer(), played.turn.trace().result.as_deref()), (Some("second"), Some(&result)));
}

#[tokio::test]
async fn execute_is_found_in_every_form_and_keeps_its_receiver() {
    for text in [
        "export const word = 'hi'; export function execute() { return word; }",
        "export default function () { return 'hi'; }",
        "export default { word: 'hi', execute() { return this.word; } }",
        "export default class { word = 'hi'; async execute() { return this.word; } }",
        "class Made { #word = 'hi'; execute() { return this.#word; } } export default new Made()",
    ] {
        assert_eq!(run(text).await.answer(), Some("hi"), "{text}");
    }
    let (_dir, file) = module("agent.cjs", "module.exports = { execute: () => 'hi' }");
    assert_eq!(harness(&file, case("a", &["go"])).play(&Custom).await.unwrap().answer(), Some("hi"));
}

/// Runs trials with one message each, one after another, on the module with this text, and returns their answers.
async fn answers(text: &str, trials: usize) -> Vec<String> {
    let (_dir, file) = module("agent.js", text);
    let mut answers = Vec::new();
    for _ in 0..trials {
        let played = harness(&file, case("a", &["go"])).play(&Custom).await.unwrap();
        answers.push(played.answer().unwrap_or("none").to_owned());
    }
    answers
}

#[tokio::test]
async fn single_message_trials_share_module_variables_for_a_limited_time() {
    let many = answers("let n = 0; export default () => `${++n}`", 1_002).await;
    assert!(many.iter().any(|answer| answer == "2"), "{many:?}");
    let ones = many.iter().filter(|answer| *answer == "1").count();
    assert!(ones > 1 && many.iter().all(|answer| answer.parse::<u32>().unwrap() <= 1_000), "{many:?}");
}

#[tokio::test]
async fn conversations_and_adapters_share_no_state() {
    let (_dir, file) = module("agent.js", "let n = 0; export default () => `${++n}`");
    for _ in 0..3 {
        let played = harness(&file, case("a", &["one", "two"])).play(&Custom).await.unwrap();
        assert_eq!(played.answer(), Some("2"));
    }
    assert_eq!(answers("let n = 0; export const send = () => `${++n}`", 3).await, ["1"; 3]);
}

#[tokio::test]
async fn two_runs_share_no_engine_and_no_module() {
    let (_dir, file) = module("agent.js", "let n = 0; export default () => `first ${++n}`");
    let play = async |state: &Arc<RunState>| {
        let harness = AgentHarness { state: Arc::clone(state), ..harness(&file, case("a", &["go"])) };
        harness.play(&Custom).await.unwrap().answer().map(str::to_owned).unwrap()
    };
    let (first, second) = (new_run(), new_run());
    assert_eq!([play(&first).await, play(&first).await], ["first 1", "first 2"]);
    std::fs::write(&file, "let n = 0; export default () => `second ${++n}`").unwrap();
    assert_eq!([play(&second).await, play(&first).await], ["second 1", "first 3"]);
}

#[tokio::test]
async fn an_engine_is_not_reused_after_a_call_that_throws_or_leaves_work_behind() {
    for end in [
        "setTimeout(() => { n = 99 }, 1)",
        "setInterval(() => { n = 99 }, 1)",
        "if (n === 1) throw new Error('x')",
        "new Promise(() => {}).then(); setTimeout(() => {}, 1e6)",
    ] {
        let text = format!("let n = 0; export default () => {{ n++; {end}; return `${{n}}` }}");
        let expected = if end.contains("throw") { ["none"; 3] } else { ["1"; 3] };
        assert_eq!(answers(&text, 3).await, expected, "{end}");
    }
}

#[tokio::test]
async fn a_call_cannot_modify_built_in_objects() {
    let text = |change: &str| {
        format!(
            "Array.prototype.second = function () {{ return this[1] }};
            globalThis.own = {{ count: 0 }};
            export default function () {{
                try {{ {change} }} catch (error) {{ return error.name }}
                return `${{[1, 2].second()}} ${{Object.keys(globalThis.own)}} ${{typeof {{}}.polluted}}`;
            }}"
        )
    };
    for change in [
        "Object.prototype.polluted = 1",
        "JSON.parse('{\"__proto__\": 1}'); ({}).__proto__.polluted = 1",
        "Array.prototype.map = 1",
        "Array.prototype.second = 1",
        "Math.random = () => 4",
        "globalThis.Date = class {}",
        "delete globalThis.JSON",
        "console.log = () => {}",
        "Error.stackTraceLimit = 0",
    ] {
        assert_eq!(answers(&text(change), 2).await, ["TypeError"; 2], "{change}");
    }
    for change in
        ["globalThis.other = 1", "own.count++", "const e = new Error('x'); e.name = 'Mine'; ({}).toString = 1"]
    {
        assert_eq!(answers(&text(change), 2).await, ["2 count undefined"; 2], "{change}");
    }
}

#[tokio::test]
async fn each_trial_has_its_own_console_limit() {
    let (_dir, file) =
        module("agent.js", "export default () => { for (let n = 0; n < 600; n++) console.log(n); return 'x' }");
    for _ in 0..3 {
        let mut played = harness(&file, case("a", &["go"])).play(&Custom).await.unwrap();
        assert_eq!(notices(&mut played).len(), 600);
    }
}

#[tokio::test]
async fn messages_and_tools_become_turns_and_calls() {
    let played = run("export default () => ({ output: 'done', messages: [
            { role: 'user', content: 'go' },
            { role: 'assistant', content: 'I add.', tools: [{ name: 'add', args: { a: 1 } }] },
            { role: 'tool', tools: [{ name: 'add', args: { a: 1 }, result: { sum: 2 } }] },
            { role: 'assistant', content: 'done' },
        ] })")
    .await;
    assert_eq!(played.calls(), [("add", r#"{"sum":2}"#, false)]);
    let texts: Vec<_> = played.turn.trace().turns.iter().map(|turn| turn.text.as_str()).collect();
    assert_eq!(texts, ["I add.", "done"]);
    let beside = self::run("export default () => ({ output: 'x', tools: [{ name: 'get', args: {} }] })").await;
    assert_eq!(beside.calls(), [("get", "(none)", false)]);
    assert_eq!(beside.turn.trace().turn_count(), 1);
}

#[tokio::test]
async fn a_continued_conversation_is_recorded_once() {
    let (_dir, file) = module(
        "agent.js",
        "let all = [], calls = 0;
        export function execute({ args }) {
            all.push({ role: 'user', content: args.input });
            all.push({ role: 'assistant', content: `answer ${++calls} to ${args.messages.map(m => m.content)}` });
            return { output: all.at(-1).content, messages: all };
        }",
    );
    let played = harness(&file, case("a", &["one", "two"])).play(&Custom).await.unwrap();
    assert_eq!(played.answer(), Some("answer 2 to one,answer 1 to "));
    assert_eq!(played.turn.trace().turn_count(), 2);
    assert_eq!(played.turn.trace().turns[1].user_message, 2);
}

#[tokio::test]
async fn exceptions_and_missing_answers_are_the_agents_failure() {
    let (_dir, file) = module(
        "agent.ts",
        "interface Unused { a: string }\n\nexport function execute(): void {\n    throw new TypeError('no luck');\n}\n",
    );
    let mut thrown = harness(&file, case("a", &["go", "on"])).play(&Custom).await.unwrap();
    assert_eq!(thrown.endings, [Ending::GaveUp { reason: "`execute` threw TypeError: no luck".into() }]);
    let limited = run("export default () => new Intl.NumberFormat('de').format(5);").await;
    let [Ending::InvalidTest { reason }] = limited.endings.as_slice() else { panic!("{:?}", limited.endings) };
    assert!(reason.contains("agent.js:1:") && reason.contains("Intl is not available here"), "{reason}");
    let (from, text) = notices(&mut thrown).remove(0);
    assert_eq!(from, "stderr");
    assert!(text.contains("agent.ts:4:") && text.ends_with("throw new TypeError('no luck');"), "{text}");
    for text in ["export default () => null", "export default async () => {}"] {
        let nothing = run(text).await;
        assert_eq!(nothing.endings, [Ending::GaveUp { reason: "`execute` returned nothing".into() }]);
    }
    let waits = run("export default () => new Promise(() => {})").await;
    assert_eq!(
        waits.endings,
        [Ending::GaveUp { reason: "`execute`: it waits for a promise that is never settled".into() }]
    );
}

#[tokio::test]
async fn the_start_of_excessive_console_output_is_recorded_with_a_notice() {
    let mut many = run("export default () => { for (let n = 0; n < 5000; n++) console.log('line'); return 'x' }").await;
    let lines = notices(&mut many);
    assert_eq!((lines.len(), lines[999].1.as_str()), (1_001, "line"));
    assert_eq!(lines[1_000].1, "(omitted from the console output: 4000 lines, 16000 bytes)");
    assert_eq!(many.answer(), Some("x"));
    let long =
        "export default () => { console.log('a'); console.log('b'.repeat(2 ** 21)); console.log('c'); return 'x' }";
    let lines = notices(&mut run(long).await);
    assert_eq!(lines[0].1, "a");
    assert_eq!(lines[1].1, "(omitted from the console output: 2 lines, 2097153 bytes)");
}

#[tokio::test]
async fn console_lines_are_recorded_in_order() {
    let mut played = run(
        "console.log('loaded'); export default async () => { console.log('one', { a: 1 }); await null; console.error('two'); return 'x'; }",
    )
    .await;
    let notices = notices(&mut played);
    let lines: Vec<_> = notices.iter().map(|(from, text)| (from.as_str(), text.as_str())).collect();
    assert_eq!(lines, [("agent", "loaded"), ("agent", "one { a: 1 }"), ("stderr", "two")]);
}

#[tokio::test]
async fn an_endless_script_is_stopped_with_its_trial() {
    for text in ["export default () => { for (;;); }", "export default () => new Promise(go => setTimeout(go, 1e9))"] {
        let (_dir, file) = module("agent.js", text);
        let mut harness = harness(&file, case("a", &["go"]));
        harness.setup.timeout_ms = 0;
        let stop = harness.stop.clone();
        let (played, ()) = tokio::join!(harness.play(&Custom), async move {
            tokio::task::yield_now().await;
            stop.send_replace(true);
        });
        assert_eq!(played.unwrap().endings, [Ending::Cancelled]);
    }
}

#[tokio::test]
async fn exceeding_the_time_is_the_agents_failure_and_a_limit_of_the_engine_is_not() {
    let (_dir, file) = module("agent.js", "export default () => { for (;;); }");
    let mut endless = harness(&file, case("a", &["go"]));
    endless.setup.timeout_ms = 0;
    let played = endless.play(&Custom).await.unwrap();
    assert_eq!(played.endings, [Ending::GaveUp { reason: "`execute`: stopped after 1 s".into() }]);
    for (text, wrong) in [
        (
            "const all = []; for (;;) all.push('x'.repeat(1e7) + all.length);",
            "`execute`: needed more than 256 MiB of memory",
        ),
        ("new Request('http://a');", "Request is not available here: the script engine does not have it"),
        ("new TextDecoder('latin1');", "TextDecoder for latin1 is not available here"),
    ] {
        let played = self::run(&format!("export default () => {{ {text} }}")).await;
        let [Ending::InvalidTest { reason }] = &played.endings[..] else { panic!("{:?}", played.endings) };
        let place_and_help = ["agent.js:1:", "; `code: {runtime: node}` in the configuration"];
        assert!(reason.contains(wrong) && place_and_help.iter().all(|part| reason.contains(part)), "{reason}");
    }
}

#[tokio::test]
async fn the_turn_limit_is_enforced() {
    let (_dir, file) = module(
        "agent.js",
        "export default () => ({ messages: [1, 2, 3].map(n => ({ role: 'assistant', content: `${n}` })) })",
    );
    let mut limited = harness(&file, case("a", &["go"]));
    limited.stop_after(2);
    let played = limited.play(&Custom).await.unwrap();
    assert_eq!(played.endings, [Ending::OutOfBudget { budget: Budget::Turns, limit: 2.0 }]);
}

#[tokio::test]
async fn an_answer_with_several_calls_is_one_turn() {
    for text in [
        "export default () => ({ output: 'done', tools: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] })",
        "export const send = () => ({ text: 'done', toolCalls: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] })",
    ] {
        let (_dir, file) = module("agent.js", text);
        let mut limited = harness(&file, case("a", &["go"]));
        limited.stop_after(1);
        let played = limited.play(&Custom).await.unwrap();
        assert_eq!((played.endings.as_slice(), played.answer()), (&[Ending::Finished][..], Some("done")), "{text}");
        assert_eq!((played.turn.trace().turn_count(), played.calls().len()), (1, 3), "{text}");
    }
}

#[test]
fn an_unusable_module_is_detected_before_anything_runs() {
    assert_eq!(Custom.check_argument(None, &new_run())[0].to_string(), "`custom` needs a module");
    assert!(problems("/none.js")[0].starts_with("cannot read the module `/none.js`"));
    let (_dir, file) = module("agent.js", "export const excute = () => 1;");
    assert_eq!(problems(&file), [format!("{file}:1:1: `{file}` exports neither `execute` nor `send`")]);
    let problem = |text: &str| {
        let (_dir, file) = module("broken.js", text);
        problems(&file).remove(0)
    };
    assert!(problem("export default () => {\n  let 1 = 2;\n}").contains("broken.js:2:"));
    assert!(
        problem("import fs from 'node:fs';\nexport default () => 1;")
            .contains("broken.js:1:16: node:fs is not available")
    );
    assert!(problem("\nnull.x;").contains("broken.js:2:"));
    assert!(problem("import './none.js';").contains("broken.js:1:"));
    let (_dir, file) = module("fine.js", "export default () => 1;");
    assert_eq!(problems(&file), [""; 0]);
}

/// Runs a case with these messages on an adapter that is configured with options.
async fn adapted(text: &str, messages: &[&str]) -> Result<TestRun, sandbox::Breakage> {
    let (dir, _file) = module("agent.ts", text);
    let config = json!({"type": "custom", "module": "./agent.ts", "options": {"greeting": "Hello"}});
    let harness =
        AgentHarness { config: Some(configured(&config, dir.path())), ..AgentHarness::for_case(case("a", messages)) };
    harness.play(&Custom).await
}

#[tokio::test]
async fn a_provider_with_call_api_answers() {
    for module in [
        "export default class {
            constructor(options) { this.greeting = options.config.greeting; }
            id() { return 'shop'; }
            async callApi(prompt, context) {
                const { raw } = context.prompt;
                return { output: { said: `${this.greeting} ${raw}` }, tokenUsage: { prompt: 1, completion: 2 } };
            }
        }",
        "export const shop = { id: () => 'shop', callApi: async (prompt) => ({ output: { said: `Hello ${prompt}` } }) };",
    ] {
        let played = adapted(module, &["one"]).await.unwrap();
        assert_eq!(played.answer(), Some("{\"said\":\"Hello one\"}"), "{:?}", played.endings);
    }
    let module = "export const shop = { callApi: async () => ({ error: 'is closed' }) };";
    let played = adapted(module, &["one"]).await.unwrap();
    assert!(matches!(&played.endings[..], [Ending::GaveUp { reason }] if reason.contains("is closed")));
}

#[tokio::test]
async fn an_adapter_connects_resets_and_carries_messages() {
    let mut played = adapted(
        "export default class {
            #log: string[] = [];
            connect(options: { greeting: string }) { this.#log.push(options.greeting); console.log('connected'); }
            async reset() { this.#log.push('reset'); }
            async send(message: string, context: any) {
                this.#log.push(message);
                return {
                    text: this.#log.join(), toolCalls: [{ name: 'find', arguments: { q: 1 }, result: 'x' }],
                    tokenUsage: { input: 1, output: 2, total: 3 }, latencyMs: 1, raw: context,
                };
            }
            disconnect() { console.log('gone'); }
        }",
        &["one", "two"],
    )
    .await
    .unwrap();
    assert_eq!(played.endings, [Ending::Finished, Ending::Finished]);
    assert_eq!(played.answer(), Some("Hello,reset,one,two"));
    assert_eq!(played.calls(), [("find", "x", false), ("find", "x", false)]);
    assert_eq!(played.tokens(), Some(6));
    let raw = &played.turn.trace().result.as_ref().unwrap()["raw"];
    let history = json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "Hello,reset,one"}]);
    let expected =
        json!({"conversationId": "custom-suite::a@agent#1", "history": history, "options": {"greeting": "Hello"}});
    assert_eq!(*raw, expected);
    assert_eq!(played.turn.trace().result.as_ref().unwrap()["output"], "Hello,reset,one,two");
    assert_eq!(notices(&mut played), [("agent".to_owned(), "connected".to_owned())]);
}

#[tokio::test]
async fn an_adapter_is_found_in_every_form() {
    for text in [
        "export const send = (message) => `you said ${message}`;",
        "export default { word: 'you said', send(message) { return { message: `${this.word} ${message}` }; } }",
        "export const adapter = { send: async (message) => ({ response: `you said ${message}` }) };",
        "export class Mine { word = 'you said'; send(message) { return `${this.word} ${message}`; } }",
    ] {
        assert_eq!(adapted(text, &["go"]).await.unwrap().answer(), Some("you said go"), "{text}");
    }
    let execute = adapted("export default { execute: ({ options }) => options.greeting, send: () => 'no' }", &["go"]);
    assert_eq!(execute.await.unwrap().answer(), Some("Hello"));
}

#[tokio::test]
async fn a_failed_connection_breaks_the_trial_and_a_failed_answer_fails_it() {
    for (text, reason) in [
        (
            "export const connect = () => { throw new Error('refused'); }, send = () => 'x';",
            "`connect` threw Error: refused",
        ),
        ("export const reset = async () => { throw new Error('no'); }, send = () => 'x';", "`reset` threw Error: no"),
    ] {
        let breakage = adapted(text, &["go"]).await.err().unwrap();
        assert_eq!((breakage.fault, breakage.reason.as_str()), (Fault::Environment, reason));
    }
    for (text, reason) in [
        ("export const send = () => { throw new Error('no luck'); };", "`send` threw Error: no luck"),
        ("export const send = () => undefined;", "`send` returned nothing"),
        ("export const send = () => ({ reply: 1 });", "`send` returned no `text`: {\"reply\":1}"),
        ("export const send = () => ({ error: 'busy' });", "busy"),
    ] {
        let played = adapted(text, &["go"]).await.unwrap();
        assert_eq!(played.endings, [Ending::GaveUp { reason: reason.into() }]);
    }
}

#[test]
fn a_configuration_is_read_strictly() {
    let (dir, _file) = module("fine.js", "export const send = () => 'x';");
    std::fs::write(dir.path().join("odd.js"), "export const sent = 1;").unwrap();
    let problems = |config: Json| -> Vec<String> {
        let config = configured(&config, dir.path());
        Custom.check_config(&config.node, &config.directory, &new_run()).iter().map(ToString::to_string).collect()
    };
    assert_eq!(problems(json!({"type": "custom", "module": "fine.js", "options": {"a": 1}})), [""; 0]);
    assert_eq!(
        problems(json!({"type": "custom", "modul": "fine.js", "options": 1})),
        [
            "agent.yaml:1:1: unknown key `modul` in a `custom` agent",
            "agent.yaml:1:1: `options` must be a map, not a number",
        ]
    );
    assert_eq!(
        problems(json!({"type": "custom", "module": "odd.js"})),
        ["odd.js:1:1: `odd.js` exports neither `execute` nor `send`"]
    );
    let missing = problems(json!({"type": "custom", "module": "none.js"}));
    assert!(missing[0].starts_with("agent.yaml:1:1: cannot read the module `none.js`"), "{missing:?}");
}

/// An adapter that sends HTTP requests.
const ASKING: &str = "const client = { fetch };
let address;
export async function connect(options) { address = options.address; }
export async function send(message) {
  const ask = (turn) => client.fetch(`${address}/chat?turn=${turn}`, {
    method: 'post', headers: { 'X-Key': 'plain-words-only' }, body: JSON.stringify({ message }), signal: AbortSignal.timeout(60000),
  });
  const [first, second] = await Promise.all([ask(1), ask(2)]);
  const kind = first.headers.get('Content-Type');
  let streamed = '';
  for await (const chunk of second.body) streamed += new TextDecoder().decode(chunk);
  return { text: `${first.ok} ${second.status} ${kind} ${(await first.json()).message} ${streamed}` };
}";

/// Runs [`ASKING`] with these hosts allowed.
async fn asks(address: &str, hosts: Json) -> Result<TestRun, sandbox::Breakage> {
    let (dir, _file) = module("agent.js", ASKING);
    let config = json!({"type": "custom", "module": "agent.js", "options": {"address": address}, "network": hosts});
    let config = configured(&config, dir.path());
    assert_eq!(Custom.check_config(&config.node, dir.path(), &new_run()), []);
    AgentHarness { config: Some(config), ..AgentHarness::for_case(case("a", &["hi"])) }.play(&Custom).await
}

#[tokio::test]
async fn a_module_can_send_requests_only_to_allowed_hosts() {
    let server = Loopback::serve(|asked| match asked.path.ends_with('1') {
        true => CannedResponse::Json(200, json!({"message": asked.body["message"].clone()})),
        false => CannedResponse::Text(302, "gone".into()),
    })
    .await;
    let host = server.url.strip_prefix("http://").unwrap();
    for hosts in [json!([host]), json!(["127.0.0.1"])] {
        let played = asks(&server.url, hosts).await.unwrap();
        assert_eq!(played.answer(), Some("true 302 application/json hi gone"));
    }
    assert!(
        server.asked().iter().all(|asked| asked.method == "POST" && asked.header("x-key") == Some("plain-words-only"))
    );
    // The module may have fetched the key, so nothing else tells that it is a secret.
    let mask = mask::Mask::default().with_secrets(&run_state().secrets);
    assert_eq!(mask.text("with plain-words-only"), "with [masked]");
    let before = server.asked().len();
    for hosts in [json!(["127.0.0.1:1"]), json!(["example.com", "27.0.0.1"])] {
        let played = asks(&server.url, hosts.clone()).await.unwrap();
        // The project does not list the host, so it is not the agent's fault.
        let reason =
            "`send` threw TypeError: `127.0.0.1` is not in the agent's `network`; to allow it, write `network: [";
        let Some(Ending::InvalidTest { reason: refused }) = played.endings.first() else { panic!("{hosts}") };
        assert!(refused.starts_with(reason) && refused.ends_with(", 127.0.0.1]`"), "{refused}");
    }
    assert_eq!(server.asked().len(), before);
}

#[tokio::test]
async fn a_request_to_a_host_that_is_not_allowed_is_a_configuration_error() {
    for text in [
        "export const send = async () => (await fetch('http://127.0.0.1/')).text();",
        "export const send = async () => {
            try { await fetch('http://127.0.0.1/') } catch (error) { throw new Error(`no answer: ${error.message}`) }
        };",
        "export const send = async () => {
            try { await fetch('http://127.0.0.1/') } catch (error) { return { error: error.message } }
        };",
    ] {
        let ending = run(text).await.endings;
        let [Ending::InvalidTest { reason }] = ending.as_slice() else { panic!("{ending:?}") };
        assert!(reason.ends_with("for the hosts in its `network: [HOST]`"), "{reason}");
    }
}

#[tokio::test]
async fn a_request_without_an_answer_ends_with_the_trial() {
    let server = Loopback::serve(|_| CannedResponse::Silence).await;
    let hosts = json!(["127.0.0.1"]);
    let ended = tokio::time::timeout(std::time::Duration::from_millis(300), asks(&server.url, hosts)).await;
    assert!(ended.is_err(), "the call waits for its request");
}

#[test]
fn hosts_are_names_and_ports() {
    let (dir, _file) = module("agent.js", "export const send = async () => (await fetch('http://h/')).text();");
    let count = |hosts: Json| {
        let config = json!({"type": "custom", "module": "agent.js", "network": hosts});
        Custom.check_config(&configured(&config, dir.path()).node, dir.path(), &new_run()).len()
    };
    assert_eq!(count(json!(["api.example.com", "localhost:3000", "[::1]:80"])), 0);
    assert_eq!(count(json!(["https://api.example.com", "h/path", "u@h", "", 5])), 5);
}
