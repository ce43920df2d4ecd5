use super::*;

const TEXT: &str = r#"
import type { Fixture } from "x";
const shared = { expect: /ok/ };
export const more: Fixture[] = [{ input: "third" }];
const list = defineFixtures([
  { input: "first", ...shared, deep: { list: [1, [2, three]] } },
  { "input": `second`, check(actual) { return actual }, ["key"]: 1 },
  ...more,
  ...unknown(),
  { input: "nobody knows which" },
] satisfies Fixture[]);
export default list as Fixture[];
"#;

fn written(text: &str, export: &str, path: &[Key]) -> Option<(String, usize)> {
    let place = positions(text, Language::TypeScript, export).unwrap()?;
    let (found, taken) = place.find(path);
    Some((text[found.span.start()..found.span.end()].to_owned(), taken))
}

fn name(name: &str) -> Key {
    name.into()
}

#[test]
fn parts_are_found_through_types_names_calls_and_spreads() {
    let found = |path: &[Key]| written(TEXT, "default", path).unwrap();
    assert_eq!(found(&[0.into(), name("input")]), ("\"first\"".into(), 2));
    assert_eq!(found(&[0.into(), name("expect")]), ("/ok/".into(), 2));
    assert_eq!(found(&[0.into(), name("deep"), name("list"), 1.into(), 1.into()]), ("three".into(), 5));
    assert_eq!(found(&[1.into(), name("input")]), ("`second`".into(), 2));
    assert_eq!(found(&[1.into(), name("key")]), ("1".into(), 2));
    assert!(found(&[1.into(), name("check")]).0.contains("return actual"));
    assert_eq!(found(&[2.into(), name("input")]), ("\"third\"".into(), 2));
    let (whole, taken) = found(&[3.into(), name("input")]);
    assert!(whole.starts_with("[\n") && taken == 0, "what follows an unknown spread is nowhere");
    assert_eq!(written(TEXT, "more", &[0.into()]), Some(("{ input: \"third\" }".into(), 1)));
    assert_eq!(written(TEXT, "absent", &[]), None);
}

#[test]
fn every_form_of_export_is_recognised() {
    for text in [
        "export default [1]",
        "const a = [1]; export { a as default }",
        "const a = [1]; export = a",
        "module.exports = [1]",
        "export default (<any>([1])!)",
    ] {
        assert_eq!(written(text, "default", &[0.into()]), Some(("1".into(), 1)), "{text}");
    }
    assert_eq!(written("export default class {}", "default", &[]), Some(("class {}".into(), 0)));
}

#[test]
fn claims_written_inside_a_scenario_call_are_found() {
    let text = "scenario('a', async (c) => { const r = await c.agent.send('x'); if (r.text) { await assert.sentiment(r, 'y'); }\n\
        c.assert.guardrail(r, {}); helper(r); other.sentiment(r) });\nscenario('b', () => assert.contains('x', 'y'));";
    let claims = |at: &str| {
        let at = text.find(at).unwrap();
        let calls = Calls::new(text, Language::TypeScript);
        let claims = calls.claims(calls.around(at, "scenario").unwrap(), &Source::new("a.ts", text));
        let named = |claim: CodeClaim| (claim.name.value, &text[claim.name.span.start()..claim.name.span.end()]);
        claims.into_iter().map(named).collect::<Vec<_>>()
    };
    assert_eq!(
        claims("scenario('a'"),
        [("sentiment".into(), "assert.sentiment"), ("guardrail".into(), "c.assert.guardrail")]
    );
    assert_eq!(claims("scenario('b'"), [("contains".into(), "assert.contains")]);
}

/// Returns the claims in the first scenario in `text`.
fn claims_of(text: &str) -> Vec<CodeClaim> {
    let calls = Calls::new(text, Language::TypeScript);
    let scenario = calls.around(text.find("scenario(").unwrap(), "scenario").unwrap();
    calls.claims(scenario, &Source::new("a.ts", text))
}

#[test]
fn a_call_on_not_is_a_claim_with_a_name_that_no_assertion_has() {
    let claims = claims_of("scenario('a', (r) => { assert.not.contains(r, 'x'); other.not.contains(r); });");
    let names: Vec<&str> = claims.iter().map(|claim| claim.name.value.as_str()).collect();
    assert_eq!(names, ["not.contains"]);
}

#[test]
fn literal_arguments_have_their_values_and_locations() {
    let text = "scenario('a', () => { assert.a(r, -5, 'b', `c`, `${d}`, /e/i, [1, true], [f], { g: null, h: 'i' });\n\
        assert.b('j', ...k, 'l'); });";
    let shown = |node: &Node| {
        let parts = node.get("h").map(|node| format!(" h at {}", node.span.start())).unwrap_or_default();
        format!("{} at {}{parts}", node.to_json(), &text[node.span.start()..node.span.end()])
    };
    let arguments: Vec<Vec<Option<String>>> = claims_of(text)
        .iter()
        .map(|claim| claim.arguments.iter().map(|node| node.as_ref().map(shown)).collect())
        .collect();
    let h = text.find("'i'").unwrap();
    let map = format!("{{\"g\":null,\"h\":\"i\"}} at {{ g: null, h: 'i' }} h at {h}");
    let expected = [
        None,
        Some("-5 at -5"),
        Some("\"b\" at 'b'"),
        Some("\"c\" at `c`"),
        None,
        Some("\"/e/i\" at /e/i"),
        Some("[1,true] at [1, true]"),
        None,
        Some(&*map),
    ];
    assert_eq!(arguments[0], expected.map(|found| found.map(str::to_owned)));
    assert_eq!(arguments[1], [Some("\"j\" at 'j'".to_owned()), None, None]);
}

#[test]
fn a_reply_that_is_not_awaited_is_found_where_it_is_used() {
    let forgotten = |body: &str| mistakes(body).into_iter().map(|(place, _)| place).collect::<Vec<_>>();
    for wrong in [
        "const r = agent.send('x'); assert.contains(r, 'y');",
        "assert.contains(agent.send('x'), 'y');",
        "let r = await agent.send('a'); r = agent.send('x'); if (r.mentions('y')) {}",
        "if (agent.send('x').text) {}",
        "const r = agent.send('x') as any; log(r.text); assert.sentiment(r, 'y');",
    ] {
        assert_eq!(forgotten(wrong), ["agent.send('x')"], "{wrong}");
    }
    assert_eq!(forgotten("const r = agents.b.send('x'); r.text"), ["agents.b.send('x')"]);
    assert_eq!(forgotten("const r = user.converse(agent, {}); r.text"), ["user.converse(agent, {})"]);
    for right in [
        "const r = await agent.send('x'); assert.contains(r, 'y');",
        "agent.send('x'); assert.contains('y');",
        "const p = agent.send('x'); const r = await p; assert.contains(r, 'y');",
        "const p = agent.send('x'); p.then((r) => r.text);",
        "const r = agent.send('x'); [r].map((r) => r.text);",
        "const c = mailer.send('x'); c.text",
        "if ((await agent.send('x')).text) {}",
    ] {
        assert_eq!(forgotten(right), [""; 0], "{right}");
    }
}

#[test]
fn other_results_that_are_not_awaited_are_found_where_they_are_used() {
    let used = |call: &str| (call.to_owned(), format!("the result of `{}` is used", &call[..call.find('(').unwrap()]));
    for (wrong, call) in [
        ("if (assert.contains(r, 'x').passed) {}", "assert.contains(r, 'x')"),
        ("const { passed } = assert.contains(r, 'x');", "assert.contains(r, 'x')"),
        ("const q = agent.run('ls'); q.stdout", "agent.run('ls')"),
        ("agents.b.files.list('.').length", "agents.b.files.list('.')"),
        ("let text; ({ text } = agent.files.read('a'));", "agent.files.read('a')"),
    ] {
        let found = mistakes(wrong);
        let (place, message) = used(call);
        assert!(found.len() == 1 && found[0].0 == place && found[0].1.starts_with(&message), "{wrong}: {found:?}");
    }
    let tested = "the promise of `agent.files.exists` is tested, not its result; write `await` before the call";
    for wrong in [
        "if (agent.files.exists('a')) {}",
        "while (!agent.files.exists('a')) {}",
        "const x = agent.files.exists('a') ? 1 : 2;",
        "agent.files.exists('a') && log();",
        "if (ready && (agent.files.exists('a') || other)) {}",
        "log(agent.files.exists('a') === true);",
    ] {
        assert_eq!(mistakes(wrong), [("agent.files.exists('a')".to_owned(), tested.to_owned())], "{wrong}");
    }
    for right in [
        "if (await agent.files.exists('a')) {}",
        "const { text } = await agent.send('x');",
        "ready && assert.contains(r, 'x');",
        "const p = agent.run('a'); if (p) await p;",
        "const [a, b] = await Promise.all([agent.send('x'), agents.b.send('y')]);",
        "agent.run('a').then((ran) => ran.stdout);",
    ] {
        assert_eq!(mistakes(right), [], "{right}");
    }
}

/// Returns the places and the messages of the mistakes in a scenario with this body.
fn mistakes(body: &str) -> Vec<(String, String)> {
    let text = format!("scenario('a', async ({{ agent, agents, assert }}) => {{ {body} }});");
    let calls = Calls::new(&text, Language::TypeScript);
    let scenario = calls.around(0, "scenario").unwrap();
    let found = calls.mistakes(scenario, &Source::new("a.ts", &*text));
    let place = |at: model::Excerpt| text[at.column - 1..at.column - 1 + at.length].to_owned();
    found
        .into_iter()
        .map(|problem| (place(problem.source.unwrap()), format!("{}; {}", problem.message, problem.help.join("; "))))
        .collect()
}

#[test]
fn a_reply_is_not_an_argument_of_an_assertion() {
    let arguments = |body: &str| {
        let claims = claims_of(&format!("scenario('a', async ({{ agent, assert }}) => {{ {body} }});"));
        claims[0].arguments.len()
    };
    assert_eq!(arguments("const r = await agent.send('x'); assert.toolCalled(r);"), 0);
    assert_eq!(arguments("assert.contains(await agent.send('x'), 'y');"), 1);
    assert_eq!(arguments("const r = other(); assert.toolCalled(r);"), 1);
}

#[test]
fn a_call_on_another_assert_is_not_a_claim() {
    let claims = |before: &str| {
        let text = format!("{before};\nscenario('a', () => assert.equal(1, 1));");
        claims_of(&text).len()
    };
    assert_eq!(claims("import { assert } from 'trialrun'"), 1);
    assert_eq!(claims("import { scenario, assert as same } from '@fabrik/core'; import same2 from 'chai'"), 1);
    assert_eq!(claims("import { assert } from 'chai'"), 0);
    assert_eq!(claims("import assert from './mine.ts'"), 0);
    assert_eq!(claims("const assert = { equal() {} }"), 0);
    assert_eq!(claims("import chai from 'chai'; const { assert } = chai"), 0);
    let claims = |module: &str| {
        let text = format!("import * as made from '{module}';\nscenario('a', () => made.assert.equal(1, 1));");
        claims_of(&text).len()
    };
    assert_eq!(["chai", "trialrun"].map(claims), [0, 1]);
}

#[test]
fn circular_definitions_do_not_loop_forever() {
    assert_eq!(written("const a = b, b = a; export default a", "default", &[]).unwrap().1, 0);
    let place = positions("const a = [a, ...a]; export default a", Language::TypeScript, "default").unwrap();
    assert!(place.is_some());
}

#[test]
fn invalid_source_is_reported_with_its_position() {
    let error = positions("export default [1,, ]]", Language::JavaScript, "default").unwrap_err();
    assert_eq!(error.range.start, 21);
}
