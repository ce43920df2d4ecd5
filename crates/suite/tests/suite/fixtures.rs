//! Fixtures files: the resulting cases, and rejected content.

mod modules;
mod problems;
mod sharing;

use std::sync::Arc;

use model::{Case, Scoring};
use serde_json::{Value, json};

use crate::scratch::{Scratch, describe, outline};

impl Scratch {
    /// Returns the cases in a fixtures file without errors.
    fn fixtures(&self, text: &str) -> Vec<Arc<Case>> {
        let loaded = self.write("f.fixture.yaml", text).load(&["f.fixture.yaml"]);
        let errors: Vec<_> = loaded.diagnostics.iter().filter(|problem| problem.is_error()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        loaded.suites[0].cases.clone()
    }

    /// Returns the problems with a fixtures file.
    fn problems_of_fixtures(&self, text: &str) -> Vec<String> {
        describe(&self.write("f.fixture.yaml", text).load(&["f.fixture.yaml"]).diagnostics)
    }
}

fn cases(text: &str) -> Vec<Arc<Case>> {
    Scratch::new().fixtures(text)
}

fn case(text: &str) -> Arc<Case> {
    let cases = cases(text);
    assert_eq!(cases.len(), 1);
    Arc::clone(&cases[0])
}

fn ids(cases: &[Arc<Case>]) -> Vec<&str> {
    cases.iter().map(|case| case.id.as_str()).collect()
}

/// Returns the expected value of each assertion, by assertion id.
fn parts(case: &Case) -> Value {
    case.assertions.iter().map(|spec| (spec.id.clone(), spec.node.get(&spec.id).unwrap().to_json())).collect()
}

/// Returns the value of the first assertion under `key`.
fn setting(case: &Case, key: &str) -> Value {
    case.assertions[0].node.get(key).map(|node| node.to_json()).unwrap_or_default()
}

#[test]
fn mocks_in_a_file_are_for_the_arguments_of_calls_and_not_for_its_variables() {
    let text = r#"mcp_servers: { docs: { tools: { find: { answer: "{{input.query}}" } } } }
---
- input: { x: 1 }
  output: hi
- output: hi
  mcp_servers: { issues: { tools: { get: { answer: "{{input.id}}" } } } }
  mock_commands: { gh: { stdout: "{{input.line}}" } }
"#;
    let cases = cases(text);
    let names = |case: &Case| (case.mocks.names().servers, case.mocks.names().commands);
    assert_eq!(names(&cases[0]), (vec!["docs".to_owned()], vec![]));
    assert_eq!(names(&cases[1]), (vec!["issues".to_owned()], vec!["gh".to_owned()]));
    assert!(cases.iter().all(|case| !case.messages[0].vars.contains_key("mcp_servers")));
    let wrong = "output: hi\nmock_commands: { gh: { stdout: '{{input.name}}' } }\n";
    let problems = Scratch::new().problems_of_fixtures(wrong);
    assert!(problems[0].contains("f.fixture.yaml:2:33"), "{problems:?}");
}

#[test]
fn a_file_has_a_front_matter_and_cases_in_every_supported_form() {
    for (text, expected) in [
        ("- {output: a}\n- {output: b}\n", vec!["1", "2"]),
        ("output: a\n", vec!["1"]),
        ("{x: 1}\n---\n- {output: a}\n- {output: b}\n", vec!["1", "2"]),
        ("---\nx: 1\n---\n- {output: a}\n", vec!["1"]),
        ("x: 1\n---\noutput: a\n---\noutput: b\n", vec!["1", "2"]),
        ("- {output: a}\n---\n- {output: b}\n", vec!["1", "2"]),
        ("---\n---\n- {output: a}\n---\n", vec!["1"]),
    ] {
        assert_eq!(ids(&cases(text)), expected, "{text}");
    }
}

#[test]
fn json_and_json_lines_are_read_too() {
    let scratch = Scratch::new();
    scratch.write("a.fixture.json", r#"[{"output": "a"}, {"output": "b", "title": "T"}]"#);
    scratch.write("b.fixtures.jsonl", "{\"output\": \"a\"}\n\n{\"output\": \"b\"}\r\n");
    let loaded = scratch.load(&["a.fixture.json", "b.fixtures.jsonl"]);
    assert_eq!(describe(&loaded.diagnostics), [""; 0]);
    assert_eq!(outline(&loaded), ["a: 1, T", "b: 1, 2"]);
    assert_eq!(loaded.suites[1].cases[1].source.to_string(), "b.fixtures.jsonl:3:1");
    scratch.write("c.fixture.jsonl", "{\"output\": \"a\"}\n{\"output\": }\n{\"output\": \"c\"}\n");
    let loaded = scratch.load(&["c.fixture.jsonl"]);
    assert_eq!(describe(&loaded.diagnostics), ["c.fixture.jsonl:2:12: not valid JSON: expected value"]);
    assert_eq!(outline(&loaded), ["c: 1, 2"]);
}

#[test]
fn fixtures_files_are_found_and_each_is_a_separate_suite() {
    let scratch = Scratch::new();
    scratch.skill("x");
    let text = "- {output: a}\n";
    scratch.write("skills/x/tests/one.fixture.yaml", text).write("skills/x/tests/two.fixture.yml", text);
    scratch.write("skills/x/tests/_no.fixture.yaml", text);
    scratch.write("scenarios/three.fixtures.json", "[{}]").write("scenarios/deep/four.fixture.yaml", text);
    let loaded = scratch.load(&[]);
    assert_eq!(outline(&loaded), ["one: 1", "two: 1", "deep/four: 1", "three: 1"]);
    assert_eq!(loaded.suites[0].cases[0].subject.installed().unwrap().name, "x");
    assert!(loaded.suites[2].cases[0].subject.skill().is_none());
    assert_eq!(loaded.suites[0].format, "fixtures");
    let loaded = scratch.load(&["skills/x/tests"]);
    assert_eq!(outline(&loaded), ["one: 1", "two: 1"]);
}

#[test]
fn titles_become_ids_and_duplicates_are_numbered() {
    for (text, expected) in [
        ("- {output: a, title: A}\n- {output: b}\n- {output: c, title: C}", vec!["A", "2", "C"]),
        ("- {output: a, title: A}\n- {output: b, title: A}", vec!["A (1)", "A (2)"]),
        ("- {output: a, title: '2'}\n- {output: b}", vec!["2", "2'"]),
        ("title: 'for {{n}}'\n---\n- {output: a, n: 1}\n- {output: b, n: 2}", vec!["for 1", "for 2"]),
        ("scripts: [p, q]\n---\n- {output: a}\n- {output: b, script: own}", vec!["1 [p]", "1 [q]", "2"]),
    ] {
        let cases = cases(text);
        assert_eq!(ids(&cases), expected, "{text}");
    }
    let cases = cases("- {output: a, title: A}\n- {output: b}");
    assert_eq!(
        (cases[0].description.as_deref(), cases[0].source.to_string().as_str()),
        (Some("A"), "f.fixture.yaml:1:22")
    );
    assert_eq!((cases[1].position, cases[1].source.to_string().as_str()), (Some(1), "f.fixture.yaml:2:3"));
}

#[test]
fn only_and_skip_determine_which_cases_are_skipped() {
    let other = Some("another case has `only: true`");
    let own = Some("it has `skip: true`");
    let second = Some("`skips` in the file lists position 1");
    for (text, expected) in [
        ("- {output: a}\n- {output: b}", vec![None, None]),
        ("- {output: a}\n- {output: b, only: true}", vec![other, None]),
        ("- {output: a, only: true, skip: true}\n- {output: b}", vec![own, other]),
        ("- {output: a, only: false}\n- {output: b}", vec![None, None]),
        ("- {output: a, skip: not yet}\n- {output: b, skip: ''}", vec![Some("not yet"), None]),
        ("skip: later\n---\n- {output: a}\n- {output: b, skip: false}", vec![Some("later"), None]),
        ("only: true\n---\n- {output: a}\n- {output: b, only: false}", vec![None, other]),
        ("skips: {'1': true}\n---\n- {output: a}\n- {output: b}", vec![None, second]),
        ("skips: {'0': false, '7': true}\n---\n- {output: a}\n- {output: b, skip: true}", vec![None, own]),
        ("skips: [false, true]\n---\n- {output: a}\n- {output: b}", vec![None, second]),
    ] {
        let cases = cases(text);
        let skips: Vec<_> = cases.iter().map(|case| case.skip.as_deref()).collect();
        assert_eq!(skips, expected, "{text}");
    }
}

#[test]
fn an_input_becomes_a_message() {
    for (text, expected) in [
        ("{input: hello, output: x}", "hello"),
        ("{input: 'hello {{who}}', who: Ann, output: x}", "hello Ann"),
        ("{input: {prompt: p, query: q}, output: x}", "p"),
        ("{input: {query: q, n: 1}, output: x}", "q"),
        ("{input: {query: q}, message: 'say {{query}}', output: x}", "say q"),
        ("{input: {a: 1, b: [true]}, output: x}", r#"{"a":1,"b":[true]}"#),
        ("{input: [1, 2], output: x}", "[1,2]"),
        ("{input: 5, output: x}", "5"),
        ("{output: x}", "Begin."),
        ("{input: '', output: x}", "Begin."),
        ("{input: {a: 1}, output: x, message: {a: '{{a}}'}}", r#"{"a":1}"#),
    ] {
        assert_eq!(case(text).messages[0].text, expected, "{text}");
    }
    let cases =
        cases("message: 'translate {{word}}'\n---\n- {word: one, output: eins}\n- {input: {word: two}, output: zwei}");
    assert_eq!(cases[0].messages[0].text, "translate one");
    assert_eq!(cases[1].messages[0].text, "translate two");
    let described =
        Scratch::new().problems_of_fixtures("message: 'translate {{word}}'\n---\n- {input: one, output: eins}\n");
    assert_eq!(described, [""; 0]);
}

/// Returns the variables of the only case.
fn vars(text: &str) -> Value {
    Value::Object(case(text).messages[0].vars.clone())
}

#[test]
fn variables_come_in_layers() {
    for (text, expected) in [
        ("{input: hi, output: '{{input}}'}", json!({"input": "hi", "output": "hi"})),
        (
            "{greet: 'hi {{who}}', who: world, output: '{{greet}}'}",
            json!({"greet": "hi world", "who": "world", "output": "hi world"}),
        ),
        ("name: C\n---\n- {name: F, output: '{{name}}'}", json!({"name": "F", "output": "F"})),
        (
            "name: C\n---\n- {input: {name: I}, output: '{{name}}'}",
            json!({"name": "I", "input": {"name": "I"}, "output": "I"}),
        ),
        (
            "{name: F, input: {name: I}, output: '{{name}}'}",
            json!({"name": "I", "input": {"name": "I"}, "output": "F"}),
        ),
        ("{input: {a: 1, b: null}, output: x}", json!({"input": {"a": 1, "b": null}, "a": 1, "output": "x"})),
        ("{input: [a], output: x}", json!({"input": ["a"], "0": "a", "output": "x"})),
        ("{input: '', output: x}", json!({"input": "", "output": "x"})),
        (
            "input: {a: 9, b: {c: 2}, l: [1, 2]}\n---\n- {input: {a: 1, b: {d: 3}, l: [7]}, output: x}",
            json!({
                "input": {"a": 1, "b": {"d": 3, "c": 2}, "l": [7]}, "a": 1, "b": {"d": 3, "c": 2}, "l": [7], "output": "x"
            }),
        ),
        ("input: dflt\n---\n- {output: x}", json!({"input": "dflt", "output": "x"})),
        ("input: {b: 2}\n---\n- {input: str, output: x}", json!({"input": "str", "output": "x"})),
        ("y: '{{x}}!'\n---\n- {x: 1, output: x}", json!({"y": "1!", "x": 1, "output": "x"})),
        ("agent: chat\ntags: [a]\nk: 1\n---\n- {output: x}", json!({"k": 1, "output": "x"})),
        ("{tools: ['{{t}}'], t: tt, output: x}", json!({"tools": ["tt"], "t": "tt", "output": "x"})),
    ] {
        assert_eq!(vars(text), expected, "{text}");
    }
    assert_eq!(case("{input: {a: 1, b: null}, output: x}").messages[0].input, Some(json!({"a": 1})));
    assert_eq!(setting(&case("{input: {a: '{{n}}'}, n: 1, output: x}"), "input"), json!({"a": 1}));
}

#[test]
fn defining_tools_changes_the_responding_script() {
    let tools = |text: &str| {
        let message = case(text).messages[0].clone();
        json!([message.script, message.tools, message.vars.get("tools")])
    };
    for (text, expected) in [
        ("{output: x}", json!([null, [], null])),
        ("{script: s, output: x}", json!(["s", [], null])),
        ("{script: s, tools: true, output: x}", json!(["toolTester", ["s"], ["s"]])),
        ("{tools: true, output: x}", json!(["toolTester", ["f.ai.yaml"], ["f.ai.yaml"]])),
        ("{script: s, tools: weather, output: x}", json!(["toolTester", ["weather"], ["weather"]])),
        ("{script: s, tools: {name: x}, output: x}", json!(["toolTester", [{"name": "x"}], [{"name": "x"}]])),
        ("{script: s, tools: [a, b], toolTester: t, output: x}", json!(["t", ["a", "b"], ["a", "b"]])),
        ("{script: s, tools: [], output: x}", json!(["s", [], []])),
        ("{script: s, tools: false, toolTester: t, output: x}", json!(["s", [], false])),
        ("{script: s, tools: '', output: x}", json!(["s", [], ""])),
        ("script: c\ntools: [d]\n---\n- {script: s, output: x}", json!(["toolTester", ["d"], ["d"]])),
        ("script: c\ntools: [d]\n---\n- {tools: false, output: x}", json!(["c", [], false])),
        ("scripts: [one]\n---\n- {tools: true, output: x}", json!(["toolTester", ["one"], ["one"]])),
    ] {
        assert_eq!(tools(text), expected, "{text}");
    }
}

#[test]
fn expectations_become_up_to_three_assertions() {
    for (text, expected) in [
        ("{output: hi}", json!({"output": "hi"})),
        ("{output: null}", json!({"output": null})),
        ("{expect: {output: hi}}", json!({"expect": {"output": "hi"}})),
        ("output: dflt\n---\n- {output: null}", json!({"output": null})),
        ("output: 'Hi {{n}}'\n---\n- {n: A}", json!({"output": "Hi A"})),
        ("output: {b: 2}\n---\n- {output: {a: 1}}", json!({"output": {"a": 1}})),
        ("expect: {output: a}\n---\n- {expect: null}", json!({"expect": {"output": "a"}})),
        ("expect: {output: a}\n---\n- {expect: {output: b}}", json!({"expect": {"output": "b"}})),
        (
            "{expect: {output: e}, output: o, outputSchema: {type: string}}",
            json!({"schema": {"type": "string"}, "output": "o", "expect": {"output": "e"}}),
        ),
        ("{outputSchema: {type: string}, checkSchema: false, output: o}", json!({"output": "o"})),
        ("{outputSchema: {required: [a]}}", json!({"schema": {"required": ["a"]}})),
        (
            "outputSchema: {type: object, required: [a]}\n---\n- {outputSchema: {required: [b]}}",
            json!({"schema": {"required": ["b"], "type": "object"}}),
        ),
        ("checkSchema: false\n---\n- {outputSchema: {type: string}, output: o}", json!({"output": "o"})),
        ("{outputSchema: null, output: o}", json!({"output": "o"})),
        (
            "{expect: {tools: [a], messages: {$contains: {}}}}",
            json!({"expect": {"tools": ["a"], "messages": {"$contains": {}}}}),
        ),
    ] {
        let case = case(text);
        assert_eq!(parts(&case), expected, "{text}");
        assert!(case.assertions.iter().all(|spec| spec.kind.value == "expect" && spec.weight == 1.0), "{text}");
    }
    let case = case("{output: 'a {{n}}', n: 1, expect: {output: b}}");
    assert_eq!(case.expected, Some(json!("a 1")));
    assert_eq!((&case.expected_trace, &case.expected_schema), (&Some(json!({"output": "b"})), &None));
    assert_eq!(case.assertions.iter().map(|spec| spec.id.as_str()).collect::<Vec<_>>(), ["output", "expect"]);
    assert_eq!(setting(&case, "vars"), json!({"output": "a 1", "n": 1, "expect": {"output": "b"}}));
    assert_eq!(setting(&case, "templates"), json!(false));
    assert_eq!(setting(&case, "fixture"), Value::Null);
}

#[test]
fn prompts_keep_invalid_templates_with_a_warning() {
    for (prompt, problem) in [
        ("Write <div style={{color: 1}}>.", "this is not a template and stays as it is"),
        ("Hi {{#if name}}there{{/if}}", "this is not a template and stays as it is"),
        ("run: ${{ x.y }}", "there is no variable named `x`"),
    ] {
        let text = format!("- input: '{prompt}'\n  output: ok\n");
        assert_eq!(case(&text).messages[0].text, prompt);
        let described = Scratch::new().problems_of_fixtures(&text);
        assert!(described.len() == 1 && described[0].contains(problem), "{described:#?}");
    }
    // A dollar sign before a variable is an ordinary character.
    let priced = case("{input: 'It costs ${{ price }}.', price: 5, output: ok}");
    assert_eq!(priced.messages[0].text, "It costs $5.");
}

#[test]
fn other_template_dialects_are_read_in_expectations() {
    let case = case("{templateFormat: golang, name: Bob, output: 'Hi {{.name}}', expect: {output: '{{ .name }}'}}");
    assert_eq!(parts(&case), json!({"output": "Hi Bob", "expect": {"output": "Bob"}}));
}

#[test]
fn locations_point_into_the_user_file() {
    let case = case("- input: hi\n  expect:\n    output:\n      name: 'x {{input}}'\n");
    let spec = &case.assertions[0];
    let source = &spec.node.source;
    assert_eq!(source.excerpt(spec.kind.span).to_string(), "f.fixture.yaml:2:3");
    let name = spec.node.get("expect").unwrap().get("output").unwrap().get("name").unwrap();
    assert_eq!((name.as_str(), name.excerpt().to_string().as_str()), (Some("x hi"), "f.fixture.yaml:4:13"));
}

#[test]
fn diff_can_be_next_to_or_inside_the_expectation() {
    let diffs_of = |text: &str| {
        let case = case(text);
        let diffs: Value = case
            .assertions
            .iter()
            .map(|spec| (spec.id.clone(), spec.node.get("diff").map(|diff| diff.to_json()).unwrap_or_default()))
            .collect();
        (diffs, setting(&case, "diffPermissive"))
    };
    assert_eq!(diffs_of("{output: x, diff: words}"), (json!({"output": "words"}), Value::Null));
    assert_eq!(
        diffs_of("{output: x, expect: {output: y, diff: {type: json}}}"),
        (json!({"output": {"type": "json"}, "expect": {"type": "json"}}), Value::Null)
    );
    assert_eq!(
        diffs_of("{output: x, expect: {diff: {type: json}}}"),
        (json!({"output": {"type": "json"}}), Value::Null)
    );
    assert_eq!(diffs_of("{output: x, input: {diffPermissive: true}}"), (json!({"output": null}), json!(true)));
    assert_eq!(diffs_of("diffPermissive: true\n---\n- {output: x}"), (json!({"output": null}), json!(true)));
}

#[test]
fn scoring_is_enabled_explicitly_or_by_weights() {
    let scored =
        |text: &str| case(text).ruling.scoring.map(|Scoring { max_score, pass_score }| (max_score, pass_score));
    for (text, expected) in [
        ("{output: x}", None),
        ("{output: x, scoring: true}", Some((100.0, 100.0))),
        ("{output: x, scoring: true, maxScore: 10}", Some((10.0, 10.0))),
        ("{output: x, scoring: true, passScore: 0}", Some((100.0, 0.0))),
        ("{output: x, passScore: 3}", None),
        ("{output: x, scoring: auto}", None),
        ("{output: {a: {$expect: 1, $score: 5}}, scoring: auto}", Some((100.0, 100.0))),
        ("{expect: {output: [{$meta: {score: 5}}]}, scoring: auto}", Some((100.0, 100.0))),
        ("{output: {$meta: {title: x}}, scoring: auto}", None),
        ("scoring: true\npassScore: 50\n---\n- {output: x, scoring: false}", None),
    ] {
        assert_eq!(scored(text), expected, "{text}");
    }
    let case =
        case("{scoring: true, maxScore: 30, output: a, expect: {output: a}, outputSchema: {type: string}, not: true}");
    assert!(case.assertions.iter().all(|spec| spec.weight == 10.0));
    assert!(case.ruling.not);
    assert_eq!((setting(&case, "scoring"), setting(&case, "maxScore")), (json!(true), json!(30.0)));
    for key in ["unassignedWeight", "totalUnassignedWeight"] {
        let case = super::fixtures::case(&format!("{{scoring: true, {key}: 0.5, autoConfidence: force, output: a}}"));
        assert_eq!(
            (setting(&case, "unassignedWeight"), setting(&case, "autoConfidence")),
            (json!(0.5), json!("force"))
        );
    }
}

#[test]
fn yaml_tags_are_normalised_to_one_spelling() {
    let text = "- output: {a: !re /x/i, b: !!js/regexp /y/, c: !re a+b, d: !json-schema {type: string}}\n";
    let case = case(text);
    let output = case.assertions[0].node.get("output").unwrap();
    let tagged = |key: &str| {
        let node = output.get(key).unwrap();
        (node.tag.as_deref().unwrap().to_owned(), node.as_str().unwrap_or_default().to_owned())
    };
    let regex = |text: &str| ("!re".to_owned(), text.to_owned());
    assert_eq!([tagged("a"), tagged("b"), tagged("c")], [regex("/x/i"), regex("/y/"), regex("/a+b/")]);
    assert_eq!(tagged("d").0, "!json-schema");
}

#[test]
fn another_template_dialect_applies_to_expectations() {
    let case = case("{output: 'Hi {name}', name: 'A {{n}}', n: 1, templateFormat: fstring, input: 'to {{name}}, {x}'}");
    assert_eq!(parts(&case), json!({"output": "Hi A 1"}));
    assert_eq!(case.messages[0].text, "to A 1, {x}");
}

#[test]
fn random_values_are_consistent_within_a_case_and_differ_between_cases() {
    let text =
        "r: '{{ randomInt(1000000, 1) }}'\n---\n- input: '{{r}}'\n  output: '{{r}}'\n- input: '{{r}}'\n  output: x\n";
    let cases = cases(text);
    let text_of = |index: usize| cases[index].messages[0].text.clone();
    assert_eq!(json!(text_of(0)), cases[0].messages[0].vars["r"]);
    assert_eq!(cases[0].expected, Some(json!(text_of(0))));
    assert_ne!(text_of(0), text_of(1));
}
