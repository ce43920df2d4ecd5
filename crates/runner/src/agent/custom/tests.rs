use model::{Budget, Case};

use super::super::rehearsal::{Played, Rehearsal, case};
use super::*;

/// A module with this text in a directory of its own, and what it is called as an argument.
fn module(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    std::fs::write(&file, text).unwrap();
    let file = file.to_string_lossy().into_owned();
    (dir, file)
}

fn rehearsal(file: &str, case: Case) -> Rehearsal {
    Rehearsal { argument: Some(file.to_owned()), ..Rehearsal::of(case) }
}

/// Plays a case with one message on the module with this text.
async fn played(text: &str) -> Played {
    let (_dir, file) = module("agent.js", text);
    rehearsal(&file, case("a", &["go"])).play(&Custom).await.unwrap()
}

fn notices(played: &mut Played) -> Vec<(String, String)> {
    let steps = played.steps().into_iter();
    steps
        .filter_map(|step| match step {
            Step::Notice { from, text } => Some((from, text)),
            _ => None,
        })
        .collect()
}

fn problems(file: &str) -> Vec<String> {
    Custom.check_argument(Some(file)).iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn it_is_called_with_what_the_case_has_and_the_whole_of_what_it_gives_is_kept() {
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
    let played = rehearsal(&file, case).play(&Custom).await.unwrap();
    assert_eq!(played.answer(), Some(r#"{"n":2}"#));
    let args = json!({"n": 1, "tools": [{"name": "t"}]});
    let whole = json!({"output": {"n": 2}, "script": "p", "args": args, "options": {"model": "m"}});
    assert_eq!(played.turn.trace().result, Some(whole));
    assert_eq!(played.endings, [Ending::Finished]);
    assert_eq!(played.turn.trace().session_id.as_deref(), Some("custom-suite::a@agent#1"));
}

#[tokio::test]
async fn text_alone_is_the_answer_and_so_is_any_other_plain_value() {
    let echo = played("export default ({ args }) => `you said ${args.input}`").await;
    assert_eq!((echo.answer(), &echo.turn.trace().result), (Some("you said go"), &None));
    let object = played("export const execute = () => ({ output: 'x', usage: { input: 3, output_tokens: 4 } })").await;
    assert_eq!((object.answer(), &object.turn.trace().result, object.tokens()), (Some("x"), &None, Some(7)));
    let number = played("export default { execute: () => 42 }").await;
    assert_eq!((number.answer(), &number.turn.trace().result), (Some("42"), &Some(json!({"output": 42}))));
    let missing = played("export default () => ({ messages: [] })").await;
    assert_eq!((missing.answer(), &missing.turn.trace().result), (None, &Some(json!({"messages": []}))));
}

#[tokio::test]
async fn execute_is_found_in_every_form_and_keeps_its_this() {
    for text in [
        "export const word = 'hi'; export function execute() { return word; }",
        "export default function () { return 'hi'; }",
        "export default { word: 'hi', execute() { return this.word; } }",
        "export default class { word = 'hi'; async execute() { return this.word; } }",
        "class Made { #word = 'hi'; execute() { return this.#word; } } export default new Made()",
    ] {
        assert_eq!(played(text).await.answer(), Some("hi"), "{text}");
    }
    let (_dir, file) = module("agent.cjs", "module.exports = { execute: () => 'hi' }");
    assert_eq!(rehearsal(&file, case("a", &["go"])).play(&Custom).await.unwrap().answer(), Some("hi"));
}

#[tokio::test]
async fn messages_and_tools_become_turns_and_calls() {
    let played = played(
        "export default () => ({ output: 'done', messages: [
            { role: 'user', content: 'go' },
            { role: 'assistant', content: 'I add.', tools: [{ name: 'add', args: { a: 1 } }] },
            { role: 'tool', tools: [{ name: 'add', args: { a: 1 }, result: { sum: 2 } }] },
            { role: 'assistant', content: 'done' },
        ] })",
    )
    .await;
    assert_eq!(played.calls(), [("add", r#"{"sum":2}"#, false)]);
    let texts: Vec<_> = played.turn.trace().turns.iter().map(|turn| turn.text.as_str()).collect();
    assert_eq!(texts, ["I add.", "done"]);
    let beside = self::played("export default () => ({ output: 'x', tools: [{ name: 'get', args: {} }] })").await;
    assert_eq!(beside.calls(), [("get", "(none)", false)]);
    assert_eq!(beside.turn.trace().turn_count(), 2);
}

#[tokio::test]
async fn a_conversation_goes_on_and_is_not_told_twice() {
    let (_dir, file) = module(
        "agent.js",
        "let all = [], calls = 0;
        export function execute({ args }) {
            all.push({ role: 'user', content: args.input });
            all.push({ role: 'assistant', content: `answer ${++calls} to ${args.messages.map(m => m.content)}` });
            return { output: all.at(-1).content, messages: all };
        }",
    );
    let played = rehearsal(&file, case("a", &["one", "two"])).play(&Custom).await.unwrap();
    assert_eq!(played.answer(), Some("answer 2 to one,answer 1 to "));
    assert_eq!(played.turn.trace().turn_count(), 2);
    assert_eq!(played.turn.trace().turns[1].user_message, 2);
}

#[tokio::test]
async fn what_is_thrown_and_what_is_not_given_is_the_agents_failure() {
    let (_dir, file) = module(
        "agent.ts",
        "interface Unused { a: string }\n\nexport function execute(): void {\n    throw new TypeError('no luck');\n}\n",
    );
    let mut thrown = rehearsal(&file, case("a", &["go", "on"])).play(&Custom).await.unwrap();
    assert_eq!(thrown.endings, [Ending::GaveUp { because: "`execute` threw TypeError: no luck".into() }]);
    let (from, text) = notices(&mut thrown).remove(0);
    assert_eq!(from, "stderr");
    assert!(text.contains("agent.ts:4:") && text.ends_with("throw new TypeError('no luck');"), "{text}");
    for text in ["export default () => null", "export default async () => {}"] {
        let nothing = played(text).await;
        assert_eq!(nothing.endings, [Ending::GaveUp { because: "`execute` returned nothing".into() }]);
    }
    let waits = played("export default () => new Promise(() => {})").await;
    assert_eq!(
        waits.endings,
        [Ending::GaveUp { because: "`execute`: it waits for a promise that is never settled".into() }]
    );
}

#[tokio::test]
async fn lines_on_the_console_are_recorded_in_order() {
    let mut played = played(
        "console.log('loaded'); export default async () => { console.log('one', { a: 1 }); await null; console.error('two'); return 'x'; }",
    )
    .await;
    let notices = notices(&mut played);
    let told: Vec<_> = notices.iter().map(|(from, text)| (from.as_str(), text.as_str())).collect();
    assert_eq!(told, [("agent", "loaded"), ("agent", "one { a: 1 }"), ("stderr", "two")]);
}

#[tokio::test]
async fn a_script_without_end_is_stopped_with_its_trial() {
    for text in ["export default () => { for (;;); }", "export default () => new Promise(go => setTimeout(go, 1e9))"] {
        let (_dir, file) = module("agent.js", text);
        let mut rehearsal = rehearsal(&file, case("a", &["go"]));
        rehearsal.setup.timeout_ms = 0;
        let stop = rehearsal.stop.clone();
        let (played, ()) = tokio::join!(rehearsal.play(&Custom), async move {
            tokio::task::yield_now().await;
            stop.send_replace(true);
        });
        assert_eq!(played.unwrap().endings, [Ending::Cancelled]);
    }
}

#[tokio::test]
async fn what_takes_too_much_is_the_agents_failure() {
    let (_dir, file) = module("agent.js", "export default () => { for (;;); }");
    let mut endless = rehearsal(&file, case("a", &["go"]));
    endless.setup.timeout_ms = 0;
    let played = endless.play(&Custom).await.unwrap();
    assert_eq!(played.endings, [Ending::GaveUp { because: "`execute`: stopped after 1000 ms".into() }]);
    let hungry =
        self::played("export default () => { const all = []; for (;;) all.push('x'.repeat(1e7) + all.length); }");
    assert_eq!(
        hungry.await.endings,
        [Ending::GaveUp { because: "`execute`: needed more than 256 MiB of memory".into() }]
    );
}

#[tokio::test]
async fn it_keeps_to_the_limits() {
    let (_dir, file) = module(
        "agent.js",
        "export default () => ({ messages: [1, 2, 3].map(n => ({ role: 'assistant', content: `${n}` })) })",
    );
    let mut limited = rehearsal(&file, case("a", &["go"]));
    limited.limits.max_turns = 2;
    let played = limited.play(&Custom).await.unwrap();
    assert_eq!(played.endings, [Ending::OutOfBudget { budget: Budget::Turns, limit: 2.0 }]);
}

#[test]
fn a_module_that_cannot_be_used_is_found_before_anything_runs() {
    assert_eq!(Custom.check_argument(None)[0].to_string(), "`custom` needs a module");
    assert!(problems("/none.js")[0].starts_with("cannot read the module `/none.js`"));
    let (_dir, file) = module("agent.js", "export const excute = () => 1;");
    assert_eq!(problems(&file), [format!("{file}:1:1: `{file}` exports no `execute`")]);
    let told = |text: &str| {
        let (_dir, file) = module("broken.js", text);
        problems(&file).remove(0)
    };
    assert!(told("export default () => {\n  let 1 = 2;\n}").contains("broken.js:2:"));
    assert!(
        told("import fs from 'node:fs';\nexport default () => 1;").contains("broken.js:1:16: node:fs is not available")
    );
    assert!(told("\nnull.x;").contains("broken.js:2:"));
    assert!(told("import './none.js';").contains("broken.js:1:"));
    let (_dir, file) = module("fine.js", "export default () => 1;");
    assert_eq!(problems(&file), [""; 0]);
}
