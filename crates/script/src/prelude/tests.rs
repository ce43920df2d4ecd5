use crate::test_project::{BUDGET, TestProject};
use crate::{CodeRuntime, HostFunction, Progress, Request, ScriptError, Task, Tests, Value};

/// Loads `a.test.ts` from a folder.
fn load(project: &mut TestProject) -> Result<Tests, ScriptError> {
    let path = project.path().join("a.test.ts");
    let mut tests = project.runtime.tests(&path, BUDGET)?;
    project.runtime.locate(&mut tests);
    Ok(tests)
}

fn tests(files: &[(&str, &str)]) -> (TestProject, Tests) {
    let mut project = TestProject::new(files);
    let tests = load(&mut project).unwrap();
    (project, tests)
}

fn names(tests: &Tests) -> Vec<&str> {
    tests.scenarios.iter().map(|scenario| scenario.name.as_str()).collect()
}

fn begin(project: &mut TestProject, tests: &Tests) -> Task {
    let about = Value::from(serde_json::json!({ "name": "bot" }));
    project.runtime.begin_scenario(tests, 0, HostFunction::new("ask").into(), about, BUDGET).unwrap()
}

/// Returns the name and the argument of a request.
fn asked(request: &Request) -> (String, Value) {
    (request.arguments[0].as_str().unwrap().to_owned(), request.arguments[1].clone())
}

/// Runs a whole scenario. `host` answers its requests.
fn play(
    project: &mut TestProject,
    tests: &Tests,
    mut host: impl FnMut(&str, &Value) -> Result<serde_json::Value, String>,
) -> Result<Value, ScriptError> {
    let task = begin(project, tests);
    loop {
        match project.runtime.step(&task)? {
            Progress::Done(value) => return Ok(value),
            Progress::Requests(requests) => {
                for request in requests {
                    let (name, given) = asked(&request);
                    let answer = host(&name, &given).map(Value::from);
                    project.runtime.answer(request.id, &answer).unwrap();
                }
            }
            Progress::Waits(_) | Progress::Owed => {}
        }
    }
}

fn reply(number: usize, text: &str) -> serde_json::Value {
    serde_json::json!({ "number": number, "text": text, "toolCalls": [{ "name": "find", "arguments": { "a": [1] } }], "latencyMs": 5 })
}

#[test]
fn scenarios_are_found_in_source_order_wherever_they_are_exported() {
    let text = "import { scenario, type Any } from '@fabrik/core';
import again from './more.ts';
const run = async () => {};
export const zeta = scenario('one', { tags: ['x'], timeout: 5 }, run);
export const alpha = [scenario('two', run), again];
export const number = 5;
scenario('lost', run);
export default scenario('three', run);
export { zeta as twice };
";
    let more = "import { scenario } from 'trialrun';\nexport default scenario('imported', () => {});\n";
    let (_, tests) = tests(&[("a.test.ts", text), ("more.ts", more)]);
    assert_eq!(names(&tests), ["imported", "one", "two", "three"]);
    assert_eq!(tests.others.iter().map(|other| other.name.as_str()).collect::<Vec<_>>(), ["lost"]);
    let call = tests.scenarios[1].call.as_ref().unwrap();
    assert_eq!((call.excerpt().to_string(), call.excerpt().length), ("a.test.ts:4:21".to_owned(), 8));
    let (tags, taken) = call.arguments[1].find(&["tags".into(), 0.into()]);
    assert_eq!((&call.source.text[tags.span.start()..tags.span.end()], taken), ("'x'", 2));
    assert_eq!(tests.scenarios[0].call.as_ref().unwrap().excerpt().to_string(), "more.ts:2:16");
    assert_eq!(tests.scenarios[1].options.to_json(), serde_json::json!({ "tags": ["x"], "timeout": 5 }));
}

#[test]
fn a_malformed_scenario_is_reported_with_its_location() {
    for (call, message) in [
        ("scenario('x')", "TypeError: the scenario needs a function, not undefined"),
        ("scenario('x', () => {}, {})", "TypeError: the options of a scenario come before its function"),
        ("scenario(() => {}, 'x')", "TypeError: a scenario needs a name, not a function"),
        ("scenario('x', 5, () => {})", "TypeError: the options of a scenario must be an object, not a number"),
        ("persona({ name: 'x' })", "TypeError: a persona needs a `role`"),
        (
            "persona({ role: 'x', backstroy: 'y' })",
            "TypeError: a persona has no `backstroy`; it has role, name, tone, backstory, context",
        ),
        ("assert.contains('x', 'y')", "Error: `assert.contains` works only while a scenario runs"),
    ] {
        let text = format!("import {{ scenario, persona, assert }} from 'trialrun';\n\nexport default {call};\n");
        let error = load(&mut TestProject::new(&[("a.test.ts", &text)])).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.place().unwrap().line, 3, "{call}: {error:?}");
    }
}

#[test]
fn unknown_prelude_imports_are_reported_by_name() {
    let text = "import { scenaro } from '@fabrik/core';\nexport default scenaro('x', () => {});\n";
    let error = load(&mut TestProject::new(&[("a.test.ts", text)])).unwrap_err();
    assert_eq!(error.to_string(), "`@fabrik/core` has no export `scenaro`");
    assert_eq!(error.place().unwrap().to_string(), "a.test.ts:1:10");
}

#[test]
fn properties_of_a_promise_that_is_not_awaited_cannot_be_read() {
    for (line, message) in [
        ("agent.send('a').text;", "`text` is read from the promise of `agent.send`, which needs `await`"),
        ("const { stdout } = agent.run('a');", "`stdout` is read from the promise of `agent.run`, which needs `await`"),
        (
            "const [r] = [agents.b.send('a')]; r.text;",
            "`text` is read from the promise of `agents.b.send`, which needs `await`",
        ),
        ("assert.contains('a').passed;", "`passed` is read from the promise of `assert.contains`, which needs `await`"),
        (
            "for (const file of agent.files.list('.'));",
            "a list is expected from the promise of `agent.files.list`, which needs `await`",
        ),
        (
            "agent.files.exists('a') == true;",
            "a value is expected from the promise of `agent.files.exists`, which needs `await`",
        ),
    ] {
        let text = format!(
            "import {{ scenario }} from 'trialrun';\nexport default scenario('x', async ({{ agent, agents, assert }}) => {{\n  {line}\n}});\n"
        );
        let (mut project, tests) = tests(&[("a.test.ts", &text)]);
        let error = play(&mut project, &tests, |_, _| Ok(reply(1, "a"))).unwrap_err();
        assert_eq!(error.to_string(), format!("ReferenceError: {message}"));
        assert_eq!(error.place().unwrap().line, 3, "{error:?}");
    }
}

#[test]
fn promises_of_the_prelude_are_promises() {
    let text = "import { scenario } from 'trialrun';
export default scenario('x', async ({ agent, score }) => {
  const sent = agent.send('a');
  const last = await sent.then((reply) => reply.text).finally(() => score('finally', 1));
  const [all] = await Promise.all([sent, agent.files.list('.').catch(() => [])]);
  score('same', Number(sent instanceof Promise && sent.constructor === Promise && last === all.text && all.text === (await sent).text));
  console.log(sent, JSON.stringify({ sent }));
});
";
    let (mut project, tests) = tests(&[("a.test.ts", text)]);
    let scores = play(&mut project, &tests, |_, _| Ok(reply(1, "a"))).unwrap();
    assert_eq!(scores.to_json(), serde_json::json!({ "finally": 1, "same": 1 }));
}

#[test]
fn the_stack_of_an_error_contains_only_user_files() {
    let text = "import { scenario } from 'trialrun';
const ask = () => fetch('http://127.0.0.1');
export default scenario('x', async () => { ask(); });
";
    let (mut project, tests) = tests(&[("a.test.ts", text)]);
    let error = play(&mut project, &tests, |_, _| Ok(serde_json::Value::Null)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ReferenceError: fetch is not available here: scripts have no access to the network; a `custom` agent has it for the \
         hosts in its `network: [HOST]`"
    );
    let way: Vec<String> = error.stack().iter().map(ToString::to_string).collect();
    assert!(way.len() >= 2 && way.iter().all(|frame| frame.contains("a.test.ts:")), "{way:?}");
}

#[test]
fn define_config_returns_its_argument() {
    for name in ["@fabrik/cli", "@fabriklabs/cli", "trialrun/config", "trialrun"] {
        let text =
            format!("import {{ defineConfig }} from '{name}';\nexport default defineConfig({{ tests: './t' }});\n");
        let mut project = TestProject::new(&[("c.ts", &text)]);
        project.runtime.give_prelude();
        assert_eq!(project.value("./c.ts", "default").to_json(), serde_json::json!({ "tests": "./t" }));
    }
}

#[test]
fn a_claim_includes_its_reply_and_its_call_site() {
    let text = "import { scenario, persona, assert } from 'trialrun';
import { check } from './helper';
export default scenario('x', async ({ agent, assert: own, score }) => {
  const karen = persona({ role: 'customer', tone: 'cross' });
  const r = await agent.send(karen.says('hello'), { a: 1 });
  assert.contains(
    r,
    'hel' + 'lo', { weight: 2 });
  if (r.mentions('HELLO')) own.fileExists('a.txt');
  score('quality', 0.5);
  check(r);
  if (own !== assert) throw new Error('another one');
});
";
    let helper =
        "import { assert } from '@fabriklabs/core';\nexport const check = (r: any) => { assert.matches(r, /x/i); };\n";
    let (mut project, tests) = tests(&[("a.test.ts", text), ("helper.ts", helper)]);
    let mut calls = Vec::new();
    let scores = play(&mut project, &tests, |name, given| {
        calls.push((name.to_owned(), given.clone()));
        Ok(if name == "send" { reply(1, "well, hello") } else { serde_json::json!({ "passed": true }) })
    });
    assert_eq!(scores.unwrap().to_json(), serde_json::json!({ "quality": 0.5 }));
    let kinds: Vec<&str> = calls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(kinds, ["send", "assert", "assert", "score", "assert"]);
    let given = |index: usize, key: &str| calls[index].1.get(key).unwrap().to_json();
    assert_eq!(
        calls[0].1.to_json(),
        serde_json::json!({ "text": "hello", "persona": { "role": "customer", "tone": "cross" }, "options": { "a": 1 } })
    );
    assert_eq!(
        (given(1, "name"), given(1, "reply"), given(1, "arguments")),
        ("contains".into(), 1.into(), serde_json::json!(["hello", { "weight": 2 }]))
    );
    assert!(calls[2].1.get("reply").unwrap().is_undefined());
    let call = |index: usize| {
        let (stack, name) = (calls[index].1.get("stack").unwrap(), calls[index].1.get("name").unwrap());
        project.runtime.call_site(stack.as_str().unwrap(), name.as_str().unwrap()).unwrap()
    };
    let contains = call(1);
    assert_eq!((contains.excerpt().to_string(), contains.excerpt().length), ("a.test.ts:6:3".to_owned(), 15));
    let argument = &contains.arguments[1];
    assert_eq!(&contains.source.text[argument.span.start()..argument.span.end()], "'hel' + 'lo'");
    assert_eq!(call(2).excerpt().to_string(), "a.test.ts:9:28");
    assert_eq!(call(4).excerpt().to_string(), "helper.ts:2:36");
}

#[test]
fn a_reply_cannot_be_changed() {
    let text = "import { scenario } from 'trialrun';
export default scenario('x', async ({ agent }) => {
  const r = await agent.send('hello');
  const tries = [() => { r.text = 'y' }, () => { r.more = 1 }, () => { r.toolCalls.push(1) }, () => { r.toolCalls[0].arguments.a[0] = 2 }, () => { r.mentions.x = 1; r.__proto__.mentions = 5 }];
  const kept = tries.filter((one) => { try { one(); return false } catch (error) { return error instanceof TypeError } });
  if (kept.length !== tries.length) throw new Error(`${kept.length}`);
  if (!r.mentions('HEL') || r.tokenUsage !== undefined) throw new Error('no');
});
";
    let (mut project, tests) = tests(&[("a.test.ts", text)]);
    play(&mut project, &tests, |_, _| Ok(reply(1, "hello"))).unwrap();
}

#[test]
fn custom_assertions_and_code_schemas_are_decided_by_code() {
    let text = "import { scenario, assert } from 'trialrun';
const zod = { safeParse: (v: any) => v.a === 1 ? { success: true, data: v } : { success: false, error: { issues: [{ path: ['a', 0, 'b'], message: 'Required' }, { path: [], message: 'odd' }] } } };
export default scenario('x', async ({ agent }) => {
  const r = await agent.send('hello');
  assert.custom('is long', (it) => it.text.length > 3, r);
  assert.custom('later', async () => { await new Promise((done) => setTimeout(done, 1)); return 1; });
  assert.custom(r, 'breaks', (it) => it.raw.there);
  await assert.jsonSchema(r, zod);
  assert.json_schema(await agent.send('again'), zod);
  assert.custom('x');
  assert.contains(agent.send('forgotten'), 'x');
  assert.jsonSchema(r, { type: 'object' });
});
";
    let (mut project, tests) = tests(&[("a.test.ts", text)]);
    let mut sent = 0;
    let mut decided = std::collections::BTreeMap::new();
    let mut claims = Vec::new();
    let done = play(&mut project, &tests, |name, given| {
        match name {
            "send" => {
                sent += 1;
                return Ok(reply(sent, if sent == 2 { "```json\n{\"a\": 1}\n```" } else { "{\"a\": 2}" }));
            }
            "observed" => drop(decided.insert(given.get("seq").unwrap().to_json().as_u64(), given.clone())),
            _ => claims.push((name.to_owned(), given.clone())),
        }
        Ok(serde_json::json!({}))
    });
    done.unwrap();
    let status = |seq: u64| decided[&Some(seq)].get("status").unwrap().as_str().unwrap().to_owned();
    let reason = |seq: u64| decided[&Some(seq)].get("because").unwrap().as_str().unwrap().to_owned();
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(status), ["met", "unmet", "unmet", "unmet", "met", "undecided", "undecided"]);
    assert_eq!(reason(1), "`later` does not hold");
    assert!(reason(2).starts_with("it threw TypeError: "), "{}", reason(2));
    assert_eq!(reason(3), "a[0].b: Required (and 1 more)");
    assert!(decided[&Some(6)].get("error").unwrap().as_str().unwrap().contains("await agent.send"));
    let declared: Vec<_> = claims.iter().filter(|(name, _)| name == "assert").collect();
    assert_eq!(declared.len(), 1);
    assert_eq!(declared[0].1.get("seq").unwrap().to_json(), 7);
}

#[test]
fn a_persona_that_converses_is_simulated_by_the_host() {
    let text = "import { scenario, persona, assert } from 'trialrun';
export default scenario('x', async ({ agent }) => {
  const karen = persona({ role: 'customer', context: { order: 5 } });
  const talk = await karen.converse(agent, { goal: 'a refund', maxTurns: 3, stopWhen: 'it is promised' });
  assert.contains(talk.last, talk.reason);
  if (talk.replies.length !== 2) throw new Error('no');
  await karen.converse(agent, { gaol: 'x', goal: 'y' });
});
";
    let (mut project, tests) = tests(&[("a.test.ts", text)]);
    let mut calls = Vec::new();
    let ended = play(&mut project, &tests, |name, given| {
        calls.push((name.to_owned(), given.clone()));
        Ok(match name {
            "converse" => serde_json::json!({ "replies": [reply(1, "one"), reply(2, "two")], "reason": "done" }),
            _ => serde_json::json!({}),
        })
    });
    assert!(ended.unwrap_err().to_string().contains("converse has no option `gaol`"));
    let asked = |key: &str| calls[0].1.get(key).unwrap().to_json();
    assert_eq!((asked("goal"), asked("maxTurns")), ("a refund".into(), 3.into()));
    assert_eq!(asked("persona"), serde_json::json!({ "role": "customer", "context": { "order": 5 } }));
    assert_eq!(calls[1].1.get("reply").unwrap().to_json(), 2);
}

#[test]
fn an_error_points_at_the_line_that_threw_or_made_the_request() {
    let text = "import { scenario, assert } from 'trialrun';
export default scenario('x', async ({ agent }) => {
  const r = await agent.send('hello');
  assert.contains(r, 'x');
  BODY
});
";
    for (body, message, column) in [
        ("throw new RangeError('half-way');", "RangeError: half-way", 9),
        ("await agent.files.read('gone.txt');", "Error: there is no such file", 21),
        (
            "await agent.send(5 as any);",
            "TypeError: agent.send takes a string or the result of `persona.says`, not a number",
            15,
        ),
        ("Promise.reject(new Error('nobody waits'));", "Error: nobody waits", 22),
        ("(r as any).raw.there;", "TypeError: cannot read property 'there' of undefined", 4),
    ] {
        let (mut project, tests) = tests(&[("a.test.ts", &text.replace("BODY", body))]);
        let mut claims = 0;
        let error = play(&mut project, &tests, |name, _| match name {
            "send" => Ok(reply(1, "hello")),
            "read" => Err("there is no such file".into()),
            _ => {
                claims += 1;
                Ok(serde_json::json!({}))
            }
        })
        .unwrap_err();
        assert_eq!(error.to_string(), message);
        let at = error.place().unwrap();
        assert_eq!((at.line, at.column), (5, column), "{body}: {at:?}");
        claims += project.runtime.requests().len();
        assert_eq!(claims, 1, "earlier assertions count: {body}");
    }
}

#[test]
fn an_exception_is_reported_even_if_other_work_never_ends() {
    let text = "import { scenario, assert } from 'trialrun';
export default scenario('x', async () => {
  assert.custom('never', () => new Promise(() => {}));
  throw new Error('half-way');
});
";
    let (mut project, tests) = tests(&[("a.test.ts", text)]);
    let ended = play(&mut project, &tests, |_, _| Ok(serde_json::json!({})));
    assert_eq!(ended, Err(ScriptError::NeverSettled));
    let thrown = project.runtime.thrown(&tests).unwrap();
    assert_eq!((thrown.to_string(), thrown.place().unwrap().line), ("Error: half-way".into(), 4));
}

#[test]
fn a_script_stopped_from_outside_ends_and_keeps_its_claims() {
    let text = "import { scenario, assert } from 'trialrun';
export default scenario('x', async ({ agent }) => {
  assert.fileExists('a');
  for (;;) {}
});
";
    let directory = TestProject::new(&[("a.test.ts", text)]);
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut options = crate::Options::new(directory.path());
    options.stop = Some(std::sync::Arc::clone(&stop));
    let mut runtime = crate::Runtime::new(options).unwrap();
    let tests = runtime.tests(&directory.path().join("a.test.ts"), BUDGET).unwrap();
    let (begun, beginning) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        let _ = beginning.recv();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    begun.send(()).unwrap();
    let error =
        runtime.begin_scenario(&tests, 0, HostFunction::new("ask").into(), Value::Map(Vec::new()), BUDGET).unwrap_err();
    other.join().unwrap();
    assert!(matches!(error, ScriptError::TimedOut { .. }), "{error:?}");
    assert_eq!(runtime.requests().len(), 1);
}

#[test]
fn a_loop_is_stopped_at_its_line_before_and_after_an_await() {
    let text = "import { scenario, assert } from 'trialrun';
interface Unused { a: string }
const twice = (n: number) => n * 2;
export default scenario('busy', async ({ agent }) => {
  BEFORE
  let n: number = 0;
  while (true) {
    BODY
  }
});
";
    for before in ["", "const r = await agent.send('hello');", "for (const a of [1]) twice(a); await null;"] {
        for body in ["", "n++;", "if (n > 1) { n = 0; } else { n += 1; }"] {
            let (mut project, tests) = tests(&[("a.test.ts", &text.replace("BEFORE", before).replace("BODY", body))]);
            let about = Value::from(serde_json::json!({ "name": "bot" }));
            let budget = std::time::Duration::from_millis(50);
            let begun = project.runtime.begin_scenario(&tests, 0, HostFunction::new("ask").into(), about, budget);
            let error = begun.and_then(|task| {
                loop {
                    if let Progress::Requests(requests) = project.runtime.step(&task)? {
                        let answer = Ok(Value::from(reply(1, "hello")));
                        requests.iter().try_for_each(|request| project.runtime.answer(request.id, &answer))?;
                    }
                }
            });
            let error: ScriptError = Result::<(), _>::unwrap_err(error);
            assert!(matches!(error, ScriptError::TimedOut { .. }), "{before} {body}: {error:?}");
            let line = error.place().map(|place| place.line);
            assert!(matches!(line, Some(7 | 8)), "{before} {body}: {line:?}");
        }
    }
}

#[test]
fn modules_for_other_tools_are_not_test_modules() {
    for ours in [
        "import { assert } from '@fabrik/core'",
        "import { scenario } from \"trialrun\"; scenario('x', () => {})",
        "export * from 'some-pack'",
        "import { scenario } from './mine'; export default scenario('x', () => {})",
        "export const a = scenario.skip('x', () => {})",
        "const { assert } = require(\"trialrun\")",
    ] {
        assert!(Tests::may_be(ours), "{ours}");
    }
    for other in [
        "import { test } from 'vitest'; export const scenario = 5",
        "test('trialrun', () => {})",
        "import { expect } from 'chai';\nexport const scenario = {};\ndescribe('x', () => {});",
        "import { rates } from 'trialrun/config'",
        "import { test } from \"@playwright/test\"; test('scenario', () => {})",
    ] {
        assert!(!Tests::may_be(other), "{other}");
    }
}

#[test]
fn scenarios_can_be_defined_with_skip_only_and_each() {
    let text = "import { scenario } from 'trialrun';
const run = async () => {};
export const later = scenario.skip('later', run);
export const only = scenario.only('now', { tags: ['x'] }, run);
export const rows = scenario.each([['A', 1], ['B', 2]])('order %s of %d', run);
export const maps = scenario.each([{ id: 7 }])('order $id, 100%%', { retries: 1 }, run);
export const plain = scenario.each(['x', 'y'])('plain', run);
";
    let (_, tests) = tests(&[("a.test.ts", text)]);
    assert_eq!(
        names(&tests),
        ["later", "now", "order A of 1", "order B of 2", "order 7, 100%", "plain (1)", "plain (2)"]
    );
    let options: Vec<_> = tests.scenarios.iter().map(|scenario| scenario.options.to_json().to_string()).collect();
    assert_eq!(options[0], "{\"skip\":true}");
    assert_eq!(options[1], "{\"tags\":[\"x\"],\"only\":true}");
    assert_eq!(options[4], "{\"retries\":1}");
    let places: Vec<String> =
        tests.scenarios.iter().map(|scenario| scenario.call.as_ref().unwrap().excerpt().to_string()).collect();
    assert_eq!(places[0], "a.test.ts:3:22");
    assert_eq!((&places[2], &places[4]), (&"a.test.ts:5:21".to_owned(), &"a.test.ts:6:21".to_owned()));
}

#[test]
fn a_row_is_passed_to_its_scenario_and_a_reply_is_an_agent_response() {
    let text = "import { scenario, AgentResponse } from 'trialrun';
export default scenario.each([['first', 2]])('%s', async ({ agent, score }, word, count) => {
  const r = await agent.send(word);
  score('is', r instanceof AgentResponse ? count : 0);
  score('own', new AgentResponse({ text: 'ABC' }).mentions('b') ? 1 : 0);
});
";
    let (mut project, tests) = tests(&[("a.test.ts", text)]);
    let played = play(&mut project, &tests, |name, given| match name {
        "send" => Ok(reply(1, given.get("text").unwrap().as_str().unwrap())),
        _ => Ok(serde_json::Value::Null),
    });
    assert_eq!(played.unwrap().to_json(), serde_json::json!({ "is": 2, "own": 1 }));
}

#[test]
fn a_scenario_for_each_of_no_rows_is_an_error() {
    let text = "import { scenario } from 'trialrun';\nexport const rows = scenario.each([])('a', () => {});";
    let error = load(&mut TestProject::new(&[("a.test.ts", text)])).unwrap_err();
    assert_eq!(
        error.diagnostic().to_string(),
        "a.test.ts:2:30: TypeError: scenario.each has no rows, so nothing would run"
    );
    // Without the second call, it would define nothing.
    let text = "import { scenario } from 'trialrun';\nexport const rows = scenario.each([1], 'a', () => {});";
    let error = load(&mut TestProject::new(&[("a.test.ts", text)])).unwrap_err().diagnostic().to_string();
    assert!(error.starts_with("a.test.ts:2:30: TypeError: scenario.each takes the rows alone"), "{error}");
}

#[test]
fn a_function_of_another_test_runner_is_located_where_it_is_called() {
    for (text, place) in [
        ("import { scenario } from 'trialrun';\n\nexport default test('a', () => {});", "a.test.ts:3:16"),
        ("import { scenario } from 'trialrun';\n// test\ntest('a', () => {});", "a.test.ts:3:1"),
    ] {
        let error = load(&mut TestProject::new(&[("a.test.ts", text)])).unwrap_err();
        assert!(error.diagnostic().to_string().starts_with(place), "{}", error.diagnostic());
    }
}

#[test]
fn names_from_other_test_runners_get_a_suggestion() {
    for (text, expected) in [
        (
            "describe('x', () => {});",
            "describe is not available here: it belongs to another test runner; write `export default scenario(",
        ),
        ("beforeEach(() => {});", "call a function of your own in each scenario"),
        ("new Intl.NumberFormat('de');", "Intl is not available here: the script engine has no locale data"),
    ] {
        let mut project = TestProject::new(&[("a.test.ts", text)]);
        let error = load(&mut project).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.help().is_some(), text.contains("Intl"), "Node.js has no names of other test runners");
    }
}
