//! Fixtures files: what a case becomes, and what is refused.

use std::sync::Arc;

use model::{Case, LogVars, Scoring};
use serde_json::{Value, json};

use crate::scratch::{Scratch, outline, told};

impl Scratch {
    /// The cases of a fixtures file that nothing is wrong with.
    fn fixtures(&self, text: &str) -> Vec<Arc<Case>> {
        let loaded = self.write("f.fixture.yaml", text).load(&["f.fixture.yaml"]);
        let errors: Vec<_> = loaded.diagnostics.iter().filter(|problem| problem.is_error()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        loaded.suites[0].cases.clone()
    }

    /// What is said about a fixtures file.
    fn told_of_fixtures(&self, text: &str) -> Vec<String> {
        told(&self.write("f.fixture.yaml", text).load(&["f.fixture.yaml"]).diagnostics)
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

/// `id: what is expected` of each assertion.
fn parts(case: &Case) -> Value {
    case.assertions.iter().map(|spec| (spec.id.clone(), spec.node.get(&spec.id).unwrap().to_json())).collect()
}

/// What an assertion is told under `key`.
fn setting(case: &Case, key: &str) -> Value {
    case.assertions[0].node.get(key).map(|node| node.to_json()).unwrap_or_default()
}

#[test]
fn a_file_is_a_front_matter_and_cases_in_any_of_the_known_ways() {
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
    assert_eq!(told(&loaded.diagnostics), [""; 0]);
    assert_eq!(outline(&loaded), ["a: 1, T", "b: 1, 2"]);
    assert_eq!(loaded.suites[1].cases[1].source.to_string(), "b.fixtures.jsonl:3:1");
    scratch.write("c.fixture.jsonl", "{\"output\": \"a\"}\n{\"output\": }\n{\"output\": \"c\"}\n");
    let loaded = scratch.load(&["c.fixture.jsonl"]);
    assert_eq!(told(&loaded.diagnostics), ["c.fixture.jsonl:2:12: not valid JSON: expected value"]);
    assert_eq!(outline(&loaded), ["c: 1, 2"]);
}

#[test]
fn fixtures_files_are_found_and_each_is_a_suite_of_its_own() {
    let scratch = Scratch::new();
    scratch.skill("x");
    let text = "- {output: a}\n";
    scratch.write("skills/x/tests/one.fixture.yaml", text).write("skills/x/tests/two.fixture.yml", text);
    scratch.write("skills/x/tests/_no.fixture.yaml", text);
    scratch.write("scenarios/three.fixtures.json", "[{}]").write("scenarios/deep/four.fixture.yaml", text);
    let loaded = scratch.load(&[]);
    assert_eq!(outline(&loaded), ["one: 1", "two: 1", "four: 1", "three: 1"]);
    assert_eq!(loaded.suites[0].cases[0].subject.installed().unwrap().name, "x");
    assert!(loaded.suites[2].cases[0].subject.skill().is_none());
    assert_eq!(loaded.suites[0].format, "fixtures");
    let loaded = scratch.load(&["skills/x/tests"]);
    assert_eq!(outline(&loaded), ["one: 1", "two: 1"]);
}

#[test]
fn ids_are_titles_where_they_tell_cases_apart() {
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
fn who_is_skipped_follows_from_only_and_skip() {
    let other = Some("another case has `only: true`");
    let own = Some("it has `skip: true`");
    for (text, expected) in [
        ("- {output: a}\n- {output: b}", vec![None, None]),
        ("- {output: a}\n- {output: b, only: true}", vec![other, None]),
        ("- {output: a, only: true, skip: true}\n- {output: b}", vec![own, other]),
        ("- {output: a, only: false}\n- {output: b}", vec![None, None]),
        ("- {output: a, skip: not yet}\n- {output: b, skip: ''}", vec![Some("not yet"), None]),
        ("skip: later\n---\n- {output: a}\n- {output: b, skip: false}", vec![Some("later"), None]),
        ("only: true\n---\n- {output: a}\n- {output: b, only: false}", vec![None, other]),
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
    let told = Scratch::new().told_of_fixtures("message: 'translate {{word}}'\n---\n- {input: one, output: eins}\n");
    assert_eq!(told, [""; 0]);
}

/// The variables of the only case.
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
fn tools_change_who_answers() {
    let told = |text: &str| {
        let message = case(text).messages[0].clone();
        json!([message.script, message.tools, message.vars.get("tools")])
    };
    for (text, expected) in [
        ("{output: x}", json!([null, [], null])),
        ("{script: s, output: x}", json!(["s", [], null])),
        ("{script: s, tools: true, output: x}", json!(["toolTester", ["s"], ["s"]])),
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
        assert_eq!(told(text), expected, "{text}");
    }
}

#[test]
fn what_is_expected_becomes_up_to_three_assertions() {
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
    assert_eq!(case.assertions.iter().map(|spec| spec.id.as_str()).collect::<Vec<_>>(), ["output", "expect"]);
    assert_eq!(setting(&case, "vars"), json!({"output": "a 1", "n": 1, "expect": {"output": "b"}}));
    assert_eq!(setting(&case, "templates"), json!(false));
    assert_eq!(setting(&case, "fixture"), Value::Null);
}

#[test]
fn places_are_those_of_the_user() {
    let case = case("- input: hi\n  expect:\n    output:\n      name: 'x {{input}}'\n");
    let spec = &case.assertions[0];
    let source = &spec.node.source;
    assert_eq!(source.excerpt(spec.kind.span).to_string(), "f.fixture.yaml:2:3");
    let name = spec.node.get("expect").unwrap().get("output").unwrap().get("name").unwrap();
    assert_eq!((name.as_str(), name.excerpt().to_string().as_str()), (Some("x hi"), "f.fixture.yaml:4:13"));
}

#[test]
fn diff_may_stand_beside_or_inside_of_what_is_expected() {
    let told = |text: &str| {
        let case = case(text);
        let diffs: Value = case
            .assertions
            .iter()
            .map(|spec| (spec.id.clone(), spec.node.get("diff").map(|diff| diff.to_json()).unwrap_or_default()))
            .collect();
        (diffs, setting(&case, "diffPermissive"))
    };
    assert_eq!(told("{output: x, diff: words}"), (json!({"output": "words"}), Value::Null));
    assert_eq!(
        told("{output: x, expect: {output: y, diff: {type: json}}}"),
        (json!({"output": {"type": "json"}, "expect": {"type": "json"}}), Value::Null)
    );
    assert_eq!(told("{output: x, expect: {diff: {type: json}}}"), (json!({"output": {"type": "json"}}), Value::Null));
    assert_eq!(told("{output: x, input: {diffPermissive: true}}"), (json!({"output": null}), json!(true)));
    assert_eq!(told("diffPermissive: true\n---\n- {output: x}"), (json!({"output": null}), json!(true)));
}

#[test]
fn scoring_is_on_when_it_is_said_or_when_weights_are_given() {
    let scored =
        |text: &str| case(text).ruling.scoring.map(|Scoring { max_score, pass_score }| (max_score, pass_score));
    for (text, expected) in [
        ("{output: x}", None),
        ("{output: x, scoring: true}", Some((100.0, 100.0))),
        ("{output: x, scoring: true, maxScore: 10}", Some((10.0, 10.0))),
        ("{output: x, scoring: true, passScore: -1}", Some((100.0, -1.0))),
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
fn everything_malformed_is_told_at_its_place_in_one_go() {
    let scratch = Scratch::new();
    let problems = scratch.told_of_fixtures(
        "tags: smoke
timeout: soon
scoring: sometimes
agnet: chat
---
- input: hi
  output: x
  strict: all
  passScore: high
  only: yes
  title: 5
- tools: 3
  output: '{{nobody}}'
  operators: ['py://x', {a: 1}, '']
- just text
- script: |
    several
    lines
  tools: true
  expcet: {output: x}
  output: !re 'a b'
  extra: !what x
- {output: x, tools: true}
- {outputSchema: [1], diffPermissive: 'true', operators: {a: 5}, output: x}
- {output: x, diff: words, expect: {diff: chars, output: y}}
",
    );
    assert_eq!(
        problems,
        [
            "f.fixture.yaml:1:7: `tags` must be a list of texts, not `smoke`",
            "f.fixture.yaml:2:10: `timeout` must be a length of time, such as `30s` or `5m`, not `soon`",
            "f.fixture.yaml:3:10: `scoring` must be true, false or `auto`, not `sometimes`",
            "f.fixture.yaml:4:1: `agnet` is a variable that no template uses",
            "f.fixture.yaml:8:11: `strict` must be true, false, `object`, `array`, `diff` or a list of these, not `all`",
            "f.fixture.yaml:9:14: `passScore` must be a number, not `high`",
            "f.fixture.yaml:10:9: `only` must be true or false, not `yes`",
            "f.fixture.yaml:11:10: `title` must be text that is not empty, not 5",
            "f.fixture.yaml:12:10: `tools` must be true, false, a name, a description, or a list of names and descriptions, not 3",
            "f.fixture.yaml:13:14: unknown variable `nobody`",
            "f.fixture.yaml:14:15: `py://` is not understood",
            "f.fixture.yaml:14:25: an operator is a reference to its function, not a map",
            "f.fixture.yaml:15:3: a case must be a map, not a string",
            "f.fixture.yaml:19:10: `tools: true` needs the name of a script, and `script` is its text",
            "f.fixture.yaml:20:3: `expcet` is a variable that no template uses",
            "f.fixture.yaml:22:16: unknown tag `!what`",
            "f.fixture.yaml:23:22: `tools: true` means the script itself, and there is none",
            "f.fixture.yaml:24:18: `outputSchema` must be a JSON Schema, not a list",
            "f.fixture.yaml:24:39: `diffPermissive` must be true or false, not `true`",
            "f.fixture.yaml:24:62: an operator is a reference to its function, not a number",
            "f.fixture.yaml:25:37: `diff` is given twice, beside `expect` and inside of it",
        ]
    );
}

#[test]
fn what_is_wrong_with_the_front_matter_is_told_once() {
    let scratch = Scratch::new();
    let problems = scratch.told_of_fixtures("output: 'Hi {{nam}}'\n---\n- {name: a}\n- {name: b}\n");
    assert_eq!(problems, ["f.fixture.yaml:1:15: unknown variable `nam`"]);
}

#[test]
fn odd_files_are_told() {
    let scratch = Scratch::new();
    for (text, expected) in [
        ("", "f.fixture.yaml:1:1: the file has no cases"),
        ("[]", "f.fixture.yaml:1:1: the file has no cases"),
        ("text", "f.fixture.yaml:1:1: a case must be a map, not a string"),
        ("- {input: a}\n- {input: b}", "f.fixture.yaml:1:3: 2 cases expect nothing; this is the first"),
        ("- {output: a}\n- [b]", "f.fixture.yaml:2:3: a case must be a map, not a list"),
        ("script: a\nscripts: [b]\n---\n- {output: a}", "f.fixture.yaml:1:1: `script` and `scripts` are both given"),
        ("- {output: a, title: \"a\\nb\"}", "f.fixture.yaml:1:22: `title` is an id: one line of text"),
        (
            "- {output: a, templateFormat: perl}",
            "f.fixture.yaml:1:31: `templateFormat` must be one of `hf`, `fstring`, `golang`, `env`",
        ),
    ] {
        assert_eq!(scratch.told_of_fixtures(text), [expected], "{text}");
    }
    assert!(scratch.told_of_fixtures("- {a: [}")[0].starts_with("f.fixture.yaml:1:"));
}

#[test]
fn tags_have_one_spelling() {
    let text = "- output: {a: !re /x/i, b: !!js/regexp /y/, c: !re a+b, d: !json-schema {type: string}}\n";
    let case = case(text);
    let output = case.assertions[0].node.get("output").unwrap();
    let tagged = |key: &str| {
        let node = output.get(key).unwrap();
        (node.tag.clone().unwrap(), node.as_str().unwrap_or_default().to_owned())
    };
    let regex = |text: &str| ("!re".to_owned(), text.to_owned());
    assert_eq!([tagged("a"), tagged("b"), tagged("c")], [regex("/x/i"), regex("/y/"), regex("/a+b/")]);
    assert_eq!(tagged("d").0, "!json-schema");
}

#[test]
fn operators_are_named_and_laid_over_each_other() {
    let operators = |text: &str| setting(&case(text), "operators");
    for (text, expected) in [
        ("{operators: {a: ./a.js, $b: 'p#b'}, output: x}", json!({"$a": "./a.js", "$b": "p#b"})),
        (
            "{operators: [./my-check.js, 'js://./x.js#y'], output: x}",
            json!({"$myCheck": "./my-check.js", "$y": "js://./x.js#y"}),
        ),
        ("operators: {a: ./a.js}\n---\n- {operators: [./b.js], output: x}", json!({"$b": "./b.js"})),
        ("operators: {a: ./a.js}\n---\n- {output: x}", json!({"$a": "./a.js"})),
        ("{operators: {a: '', b: null}, output: x}", Value::Null),
    ] {
        assert_eq!(operators(text), expected, "{text}");
    }
    let scratch = Scratch::new();
    let base = scratch.fixtures("{operators: [./b.js], output: x}");
    assert_eq!(setting(&base[0], "baseDir"), json!(scratch.root().display().to_string()));
    let base = scratch.fixtures("baseDir: ../ops\noperators: [./b.js]\n---\n- output: x\n");
    assert_eq!(setting(&base[0], "baseDir"), json!(scratch.root().with_file_name("ops").display().to_string()));
    assert_eq!(setting(&base[0], "fixture"), json!({"output": "x"}));
}

#[test]
fn the_front_matter_says_how_cases_are_run() {
    let scratch = Scratch::new();
    let text =
        "agent: 'recorded:a.jsonl'\nmodel: m\ntimeout: 5s\ntrials: 2\ntags: [t]\ndescription: d\n---\n- output: x\n";
    let case = Arc::clone(&scratch.fixtures(text)[0]);
    let recorded = format!("recorded:{}", scratch.path("a.jsonl").display());
    assert_eq!(case.runner.agent.as_ref().unwrap().0, recorded);
    assert_eq!((case.runner.model.as_deref(), case.timeout_ms, case.trials), (Some("m"), Some(5000), Some(2)));
    assert_eq!((case.tags.as_slice(), case.description.as_deref()), (["t".to_owned()].as_slice(), Some("d")));
}

#[test]
fn the_configuration_holds_for_all_files() {
    let scratch = Scratch::new();
    let section = |text: &str| {
        scratch.write("trialrun.yaml", text);
        let (project, problems) = trialrun_suite::Project::find(scratch.root(), scratch.root());
        (project.fixtures, told(&problems))
    };
    let (fixtures, problems) = section(
        "fixtures:
  defaults: {name: D, greeting: 'Hi {{name}}', input: {z: 1}, operators: {a: ./a.js}}
  userConfig: {data: {user: U}, temperature: 0, strict: object, disableHeuristicSchema: true}
  scriptConfig: {_hidden: 1, lang: en, prompt: {who: P}, output: {type: object}}
  logVars: error
  operators: {b: ./b.js, c: 'pkg#c'}
  scoring: true
  maxScore: 10
  totalUnassignedWeight: 0.2
",
    );
    assert_eq!(problems, [""; 0]);
    scratch
        .write("f.fixture.yaml", "name: F\n---\n- {input: {y: 2}, output: '{{greeting}} {{user}} {{lang}} {{who}}'}\n");
    let loaded = scratch.load_with(fixtures, &["f.fixture.yaml"]);
    assert_eq!(told(&loaded.diagnostics), [""; 0]);
    let case = &loaded.suites[0].cases[0];
    assert_eq!(parts(case), json!({"schema": {"type": "object"}, "output": "Hi F U en P"}));
    assert_eq!(case.messages[0].input, Some(json!({"y": 2, "z": 1})));
    assert_eq!(case.messages[0].options["temperature"], json!(0));
    assert_eq!(case.messages[0].vars["user"], json!("U"));
    assert_eq!(case.messages[0].vars["prompt"], json!({"who": "P"}));
    assert!(!case.messages[0].vars.contains_key("_hidden"));
    assert_eq!(case.log_vars, LogVars::OnFailure);
    assert_eq!(case.ruling.scoring, Some(Scoring { max_score: 10.0, pass_score: 10.0 }));
    assert_eq!((setting(case, "strict"), setting(case, "unassignedWeight")), (json!("object"), json!(0.2)));
    assert_eq!(setting(case, "disableHeuristicSchema"), json!(true));
    let absolute = scratch.path("b.js").display().to_string();
    assert_eq!(setting(case, "operators"), json!({"$a": "./a.js", "$b": absolute, "$c": "pkg#c"}));

    let (_, problems) =
        section("fixtures: {default: {}, logVars: never, defaults: {agent: x, only: 1}, userConfig: {data: 1}}\n");
    assert_eq!(
        problems,
        [
            "trialrun.yaml:1:12: unknown key `default` in `fixtures`",
            "trialrun.yaml:1:34: `logVars` must be true, false or `error`, not `never`",
            "trialrun.yaml:1:52: `agent` is a setting of a file and no default of its cases",
            "trialrun.yaml:1:68: `only` must be true or false, not 1",
            "trialrun.yaml:1:91: `data` must be a map, not 1",
        ]
    );
}

#[test]
fn another_dialect_of_templates_counts_for_what_is_expected() {
    let case = case("{output: 'Hi {name}', name: 'A {{n}}', n: 1, templateFormat: fstring, input: 'to {{name}}, {x}'}");
    assert_eq!(parts(&case), json!({"output": "Hi A 1"}));
    assert_eq!(case.messages[0].text, "to A 1, {x}");
}

const MODULE: &str = "\
import { polite } from './rules.ts';

interface Case { input: string; [key: string]: unknown }

export const config = { language: 'English', operators: [polite, './my-check.js'] };

export default [
  { input: 'hi', output: /hello/i },
  {
    title: 'long enough',
    input: 'hi',
    expect: { output: (actual: string) => actual.length > 10 || 'too short', 'a b': [polite] },
    score: undefined,
  },
] satisfies Case[];
";

#[test]
fn a_module_gives_its_cases() {
    let scratch = Scratch::new();
    scratch.write("rules.ts", "export function polite(actual: string): boolean { return /please/.test(actual) }\n");
    let loaded = scratch.write("m.fixture.ts", MODULE).load(&["m.fixture.ts"]);
    assert_eq!(told(&loaded.diagnostics), [""; 0]);
    assert_eq!(outline(&loaded), ["m: 1, long enough"]);
    let cases = &loaded.suites[0].cases;
    let output = cases[0].assertions[0].node.get("output").unwrap();
    assert_eq!((output.tag.as_deref(), output.as_str()), (Some("!re"), Some("/hello/i")));
    let module = scratch.path("m.fixture.ts").display().to_string();
    let expect = cases[1].assertions[0].node.get("expect").unwrap();
    let function = expect.get("output").unwrap();
    assert_eq!(function.tag.as_deref(), Some("!function"));
    assert_eq!(function.as_str().unwrap(), format!("{module}#[1].expect.output"));
    let function = format!("{module}#[1].expect[\"a b\"][0]");
    assert_eq!(expect.get("a b").unwrap().to_json(), json!([function]));
    let operators = json!({"$polite": format!("{module}#config.operators[0]"), "$myCheck": "./my-check.js"});
    assert_eq!(setting(&cases[0], "operators"), operators);
    assert_eq!(cases[0].messages[0].vars["language"], json!("English"));
    assert!(!cases[1].messages[0].vars.contains_key("score"));
}

#[test]
fn other_exports_of_a_module_are_known() {
    let scratch = Scratch::new();
    for (text, way) in [
        ("export const fixtures = [{output: () => true}]", "fixtures[0].output"),
        ("export default {output: () => true}", "default.output"),
        ("export const fixtureConfig = {output: () => true}; export default [{}]", "fixtureConfig.output"),
    ] {
        let loaded = scratch.write("m.fixture.mjs", text).load(&["m.fixture.mjs"]);
        assert_eq!(told(&loaded.diagnostics), [""; 0], "{text}");
        let case = &loaded.suites[0].cases[0];
        let module = scratch.path("m.fixture.mjs").display().to_string();
        assert_eq!(parts(case), json!({"output": format!("{module}#{way}")}), "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_module_is_told() {
    let scratch = Scratch::new();
    for (text, expected) in [
        ("export const x = 1", "m.fixture.js:1:1: the module exports no fixtures"),
        (
            "export default [{output: 1,\n  passScore: NaN}]",
            "m.fixture.js:2:14: `[0].passScore` is NaN, a number that JSON does not have",
        ),
        (
            "export default [\n  {output: 1, strict: 'all'}]",
            "m.fixture.js:2:23: `strict` must be true, false, `object`, `array`, `diff` or a list of these, not `all`",
        ),
        ("\nthrow new Error('no')", "m.fixture.js:2:7: Error: no"),
        ("export default 5", "m.fixture.js:1:16: a case must be a map, not a number"),
    ] {
        let loaded = scratch.write("m.fixture.js", text).load(&["m.fixture.js"]);
        assert_eq!(told(&loaded.diagnostics), [expected], "{text}");
    }
    let loaded =
        scratch.write("m.fixture.js", "import x from './missing.js';\nexport default [").load(&["m.fixture.js"]);
    assert!(loaded.has_errors());
}

/// Texts that have a bit of everything.
const CORPUS: [&str; 4] = [
    "a: '{{b}}'\nscripts: [x, y]\noperators: [./a.js]\n---\n- {title: t, input: {q: 1}, output: !re /x/i, b: 1}\n- {only: true}\n",
    "- input: [1, null]\n  expect: {tools: [a], diff: {items: []}, output: {$score: 5}}\n  scoring: auto\n- &a {tools: true, script: s}\n- *a\n",
    "input: {a: {b: [1]}}\n---\ninput: {a: {c: '{{input.a.b[0]}}'}}\noutput: '{% if x is defined %}y{% endif %}'\n---\nskip: why\n",
    "[{\"outputSchema\": {\"type\": \"object\"}, \"message\": \"{{input}}\", \"input\": \"hi\", \"templateFormat\": \"env\"}]",
];

#[test]
fn no_text_makes_it_panic() {
    let scratch = Scratch::new();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |bound: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap() % bound.max(1)
    };
    for round in 0..1_200 {
        let mut text: Vec<char> = CORPUS[round % CORPUS.len()].chars().collect();
        for _ in 0..=next(3) {
            let at = next(text.len());
            let from = next(text.len());
            match next(4) {
                0 => drop(text.drain(at..(at + next(6)).min(text.len()))),
                1 => text.insert(at, ['{', '}', '\'', '\n', ':', '[', '!', '%', '\u{e9}', '\0'][next(10)]),
                2 => text[at] = text[from],
                _ => {
                    let part: Vec<char> = text[from..(from + next(12)).min(text.len())].to_vec();
                    text.splice(at..at, part);
                }
            }
        }
        let text: String = text.into_iter().collect();
        let file = if round % 3 == 0 { "z.fixture.json" } else { "z.fixture.yaml" };
        scratch.write(file, &text).load(&[file]);
    }
}

#[test]
fn zz_memory() {
    let rss = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
    };
    let scratch = Scratch::new();
    let mut text = String::new();
    for at in 0..10_000 {
        match at % 3 {
            0 => text += &format!("- input: question {at}\n  output: /answer {at}/i\n"),
            1 => text += &format!("- input: question {at}\n  output: {{a: {at}, b: text}}\n"),
            _ => text += &format!("- input: question {at}\n  output: {{$contains: part {at}}}\n"),
        }
    }
    scratch.write("f.fixture.yaml", &text);
    let before = rss();
    let loaded = scratch.load(&["f.fixture.yaml"]);
    println!("{} KiB of {}, node {}", rss() - before, loaded.suites[0].cases.len(), std::mem::size_of::<model::Node>());
    println!("case {}", std::mem::size_of::<model::Case>());
}
