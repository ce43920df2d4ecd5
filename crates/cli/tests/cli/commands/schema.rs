//! `schema`: written files conform to the schemas.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::packages;

use super::{demo, empty, scenario};

fn schema(of: &str) -> Value {
    let schema = empty().run(&["schema", of]).exits(0).json();
    assert!(schema["$schema"].as_str().unwrap().contains("json-schema.org"), "{of}");
    schema
}

fn document(file: &Path) -> Value {
    suite::read_document(file, &file.display().to_string()).unwrap_or_else(|problems| panic!("{problems:#?}")).to_json()
}

#[test]
fn every_specimen_conforms_to_the_schema_and_an_invalid_one_does_not() {
    let schema = schema("scenario");
    let specimens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specimens");
    let mut held = 0;
    for entry in fs::read_dir(&specimens).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_suite = name.ends_with(".yaml") && !name.contains(".model.") && !name.starts_with('_');
        if is_suite && !["trialrun.yaml", "expected.yaml"].contains(&name.as_str()) {
            assert_eq!(mistakes(&document(&path), &schema, &schema), Vec::<String>::new(), "{name}");
            held += 1;
        }
    }
    assert!(held > 25, "only {held} specimens");
    for wrong in [
        json!({"scenario": "a"}),
        json!({"scenario": "a", "skill": "b", "system_prompt": "c"}),
        json!({"scenario": "a", "skill": "b", "asserions": []}),
        json!({"scenario": "a", "skill": "b", "max_turns": 0}),
        json!({"scenario": "a", "skill": "b", "runner": {"permission_mode": "yolo"}}),
        json!({"scenario": "a", "skill": "b", "assertions": [{"type": "tool_called"}]}),
    ] {
        assert!(!mistakes(&wrong, &schema, &schema).is_empty(), "{wrong}");
    }
    let config = self::schema("config");
    assert_eq!(mistakes(&document(&specimens.join("trialrun.yaml")), &config, &config), Vec::<String>::new());
    assert!(!mistakes(&json!({"defaults": {"agnt": "x"}}), &config, &config).is_empty());
}

#[test]
fn a_valid_conversation_conforms_to_its_schema_and_an_invalid_one_does_not() {
    let schema = schema("conversation");
    let project = empty();
    project.run(&["init", ".", "--template", "code"]).exits(0);
    let made = document(&project.dir().join("tests/edge-case.yaml"));
    assert_eq!(mistakes(&made, &schema, &schema), Vec::<String>::new());
    let played =
        json!({"user": {"goal": "x", "persona": {"role": "y", "context": [1]}}, "assertions": ["no_path_escape"]});
    assert_eq!(mistakes(&played, &schema, &schema), Vec::<String>::new());
    for wrong in [
        json!({"name": "x", "assertions": []}),
        json!({"turns": [{"say": "x"}]}),
        json!({"turns": [{"says": "x", "expect": {"contains": "x"}}]}),
        json!({"turns": ["x"], "persona": {"tone": "calm"}}),
        json!({"turns": ["x"], "skip": 1}),
        json!({"turns": ["x"], "assertions": [{"contains": "x", "weight": 0}]}),
    ] {
        assert!(!mistakes(&wrong, &schema, &schema).is_empty(), "{wrong}");
    }
}

#[test]
fn a_valid_skill_suite_conforms_to_its_schema_and_an_invalid_one_does_not() {
    let schema = schema("evals");
    let project = empty();
    project.run(&["init", "--skill", "made"]).exits(0);
    let made = document(&project.dir().join("skills/made/evals/evals.json"));
    assert_eq!(mistakes(&made, &schema, &schema), Vec::<String>::new());
    let with = |rest: Value| {
        let mut case = json!({"id": 1, "prompt": "p", "expected_output": ""});
        case.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({"skill_name": "s", "evals": [case]})
    };
    for right in [
        json!({}),
        json!({"id": "a b", "assertions": ["x", {"type": "json_path", "json_path": "a", "equals": null}]}),
        json!({"side_effect_level": "static", "side_effect_contract": {"allow_new_commits": false}}),
    ] {
        assert_eq!(mistakes(&with(right), &schema, &schema), Vec::<String>::new());
    }
    for wrong in [
        json!({"id": true}),
        json!({"id": ""}),
        json!({"id": "a/b"}),
        json!({"id": ".."}),
        json!({"id": "a "}),
        json!({"prompt": " "}),
        json!({"asertions": []}),
        json!({"should_trigger": "yes"}),
        json!({"should_trigger": false, "force_skill_invocation": true}),
        json!({"stage_files": true, "commit_files": true}),
        json!({"assertions": [{"type": "file_exists"}]}),
        json!({"assertions": [{"type": "git_clean", "path": "x"}]}),
        json!({"side_effect_contract": {"allow_commits": true}}),
    ] {
        assert!(!mistakes(&with(wrong.clone()), &schema, &schema).is_empty(), "{wrong}");
    }
}

#[test]
fn a_report_conforms_to_its_schema() {
    let project = demo();
    project.write("skills/greet/tests/d.yaml", &scenario("fourth", "\"!abort gone\""));
    let schema = schema("report");
    let report = project.report(&["--trials", "2", "--retries", "0"], 1);
    assert_eq!(mistakes(&report, &schema, &schema), Vec::<String>::new());
    let mut wrong = report;
    wrong["trials"][0]["outcome"] = json!("nice");
    assert!(!mistakes(&wrong, &schema, &schema).is_empty());
}

#[test]
fn a_comparison_conforms_to_its_schema() {
    let project = demo();
    project.run(&["run", "--label", "one"]).exits(1);
    project.write("skills/greet/tests/a.yaml", &scenario("first", "goodbye"));
    project.run(&["run", "--trials", "2", "--label", "two"]).exits(1);
    let schema = schema("compare");
    let both = project.run(&["compare", "--json"]).json();
    assert_eq!(both["cases"][0]["change"], "regressed", "{both:#}");
    assert_eq!(mistakes(&both, &schema, &schema), Vec::<String>::new());
    let within = project.run(&["compare", "--no-worse-than", "0.05", "--json"]).json();
    assert_eq!(within["no_worse_than"]["margin"], 0.05, "{within:#}");
    assert_eq!(mistakes(&within, &schema, &schema), Vec::<String>::new());
    let answer = json!({"answers": [{"id": "c1", "reasoning": "It is.", "verdict": "first"}]}).to_string();
    project.write("judge.yaml", &json!({"steps": [{"text": answer, "repeat": "forever"}]}).to_string());
    let prefer = ["compare", "--prefer", "Which is kinder?", "--judge", "scripted:judge.yaml", "--json"];
    let preferred = project.run(&prefer).json();
    assert_eq!(preferred["preference"]["judged"][0]["preference"], "position_tie", "{preferred:#}");
    assert_eq!(mistakes(&preferred, &schema, &schema), Vec::<String>::new());
    let by = project.run(&["compare", "--by", "label", "--json"]).json();
    assert_eq!(by["by"], "label", "{by:#}");
    assert_eq!(mistakes(&by, &schema, &schema), Vec::<String>::new());
    let mut wrong = both;
    wrong["cases"][0]["change"] = json!("nice");
    assert!(!mistakes(&wrong, &schema, &schema).is_empty());
}

/// Returns the locations of the mistakes that ajv finds in each document.
fn told_by_ajv(schema: &Value, documents: &[Value]) -> Vec<Vec<String>> {
    let folder = packages().join("node_modules/ajv");
    let script = "const [folder, input] = process.argv.slice(1);\n\
        const { schema, documents } = JSON.parse(require('fs').readFileSync(input, 'utf8'));\n\
        const Ajv = require(folder).default;\n\
        const check = new Ajv({ allErrors: true, strict: false }).compile(schema);\n\
        const told = (document) => (check(document) ? [] : check.errors.map((one) => `${one.instancePath} ${one.message}`));\n\
        process.stdout.write(JSON.stringify(documents.map(told)));\n";
    let scratch = tempfile::tempdir().unwrap();
    let input = scratch.path().join("input.json");
    fs::write(&input, json!({"schema": schema, "documents": documents}).to_string()).unwrap();
    let output = std::process::Command::new("node").args(["-e", script]).arg(&folder).arg(&input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the schema of scenarios, documents that it accepts, and documents that it rejects.
fn scenarios() -> (Value, Vec<Value>, Vec<Value>) {
    let schema = schema("scenario");
    let of = |assertion: Value| json!({"scenario": "a", "skill": "b", "assertions": [assertion]});
    let written = || grade::ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit());
    let mut right: Vec<Value> = vec![
        of(json!({"contains": "30 days"})),
        of(json!({"contains": {"text": "30 days"}, "weight": 2, "id": "says-it"})),
        of(json!({"toolCalled": {"tool": "Bash", "argsMatch": {"command": "^ls"}}})),
        of(json!({"no_path_escape": true})),
        of(json!("no_path_escape")),
    ];
    for assertion in written() {
        right.extend([&assertion.pass, &assertion.fail].map(|example| of((example.assertion)())));
    }
    let mut wrong: Vec<Value> = vec![
        of(json!({"id": "a", "type": "tool_caled", "tool": "Bash"})),
        of(json!({"id": "a", "type": "no_tool_called", "tool": "Bash", "arg_match": {"command": "x"}})),
        of(json!({"id": "a", "type": "turn_count_at_most", "max": "5"})),
        of(json!({"type": "no_tool_called", "tool": "Bash"})),
        of(json!({"contans": "30 days"})),
        of(json!({"contains": {"txt": "30 days"}})),
        of(json!({"contains": "a", "matches": "b"})),
        of(json!("contains")),
        of(json!({"id": "a", "type": "tool_call_sequence", "sequence": [{"tol": "Bash"}]})),
    ];
    for assertion in written().filter(|assertion| assertion.name != "expect") {
        wrong.push(of(json!({"id": "a", "type": assertion.name, "no_such_field": 1})));
    }
    (schema, right, wrong)
}

#[test]
fn an_editor_completes_and_flags_the_fields_of_every_assertion() {
    let (schema, right, wrong) = scenarios();
    for (documents, is_right) in [(&right, true), (&wrong, false)] {
        for document in documents {
            assert_eq!(mistakes(document, &schema, &schema).is_empty(), is_right, "{document}");
        }
    }
}

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn ajv_agrees_about_the_fields_of_every_assertion() {
    let (schema, right, wrong) = scenarios();
    for (documents, is_right) in [(&right, true), (&wrong, false)] {
        for (document, messages) in documents.iter().zip(told_by_ajv(&schema, documents)) {
            assert_eq!(messages.is_empty(), is_right, "{document}: {messages:?}");
        }
    }
    let messages = told_by_ajv(&schema, &wrong);
    assert!(messages[1].iter().any(|one| one.starts_with("/assertions/0 ")), "{:?}", messages[1]);
    assert!(messages[2].iter().any(|one| one == "/assertions/0/max must be integer"), "{:?}", messages[2]);
}

/// Returns the violations of `schema` in `value`. Supports the part of JSON Schema that the product uses, and panics
/// at anything else.
fn mistakes(value: &Value, schema: &Value, root: &Value) -> Vec<String> {
    let Some(schema) = schema.as_object() else {
        return if schema == &json!(false) { vec![format!("not allowed: {value}")] } else { Vec::new() };
    };
    let mut wrong = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            wrong.push(format!("{what}: {value}"));
        }
    };
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    };
    let mut deeper: Vec<String> = Vec::new();
    for (key, rule) in schema {
        let all = || rule.as_array().unwrap().iter();
        let fits = |rule: &Value| mistakes(value, rule, root).is_empty();
        match key.as_str() {
            "$schema" | "$id" | "title" | "description" | "definitions" | "$defs" | "format" | "default" => {}
            "pattern" => {
                let pattern = regex::Regex::new(rule.as_str().unwrap()).unwrap();
                must(value.as_str().is_none_or(|text| pattern.is_match(text)), "pattern");
            }
            "type" => match rule {
                Value::Array(kinds) => must(kinds.iter().any(|kind| is(kind.as_str().unwrap())), "type"),
                kind => must(is(kind.as_str().unwrap()), "type"),
            },
            "enum" => must(all().any(|one| one == value), "enum"),
            "const" => must(rule == value, "const"),
            "minLength" => {
                must(value.as_str().is_none_or(|text| text.len() as u64 >= rule.as_u64().unwrap()), "minLength");
            }
            "minimum" => must(value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()), "minimum"),
            "maximum" => must(value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()), "maximum"),
            "exclusiveMinimum" => {
                must(value.as_f64().is_none_or(|number| number > rule.as_f64().unwrap()), "exclusiveMinimum");
            }
            "minItems" => {
                must(value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()), "minItems");
            }
            "maxItems" => {
                must(value.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap()), "maxItems");
            }
            "required" => must(
                value.as_object().is_none_or(|map| all().all(|name| map.contains_key(name.as_str().unwrap()))),
                "required",
            ),
            "anyOf" => must(all().any(fits), "anyOf"),
            "oneOf" => must(all().filter(|rule| fits(rule)).count() == 1, "oneOf"),
            "not" => must(!fits(rule), "not"),
            "if" => {
                let then = schema.get("then").filter(|_| fits(rule));
                deeper.extend(then.into_iter().flat_map(|then| mistakes(value, then, root)));
            }
            "then" => {}
            "allOf" => deeper.extend(all().flat_map(|rule| mistakes(value, rule, root))),
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                deeper.extend(mistakes(value, root.pointer(pointer).unwrap_or_else(|| panic!("{pointer}")), root));
            }
            "items" => {
                deeper.extend(value.as_array().into_iter().flatten().flat_map(|item| mistakes(item, rule, root)));
            }
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    deeper.extend(
                        value
                            .get(name)
                            .into_iter()
                            .flat_map(|part| mistakes(part, rule, root))
                            .map(|m| format!("{name}: {m}")),
                    );
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (name, part) in value.as_object().into_iter().flatten() {
                    if known.is_none_or(|known| !known.contains_key(name)) {
                        deeper.extend(mistakes(part, rule, root).into_iter().map(|m| format!("{name}: {m}")));
                    }
                }
            }
            other => panic!("the schema uses `{other}`, which this test does not know"),
        }
    }
    wrong.extend(deeper);
    wrong
}
