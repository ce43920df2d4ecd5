use std::sync::Arc;

use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind, Source, Span};
use serde_json::{Value, json};

use super::{Patterns, Schema, SchemaError, looks_like_schema};

/// Schemas with values that the reference validator accepts and rejects.
const VECTORS: &str = include_str!("../../tests/vectors/schema.jsonl");

/// Regular expressions of the script engine. Matching is stopped if the source contains `STOP`.
struct Engine;

fn regex(source: &str, flags: &str) -> Result<script::Regex, script::RegexError> {
    let written = match flags {
        // A source that begins like inline flags has none.
        "" if source.starts_with("(?") => format!("(?:){source}"),
        "" => source.to_owned(),
        flags => format!("(?{flags}){source}"),
    };
    script::Regex::parse(&written)
}

impl Patterns for Engine {
    fn check(&self, source: &str, flags: &str) -> Result<(), String> {
        regex(source, flags).map(|_| ()).map_err(|error| error.to_string())
    }

    fn is_match(&self, source: &str, flags: &str, text: &str) -> Result<bool, String> {
        if source.contains("STOP") {
            return Err("stopped".to_owned());
        }
        let regex = regex(source, flags).map_err(|error| error.to_string())?;
        regex.is_match(text).map_err(|error| error.to_string())
    }
}

fn engine() -> Arc<dyn Patterns> {
    Arc::new(Engine)
}

fn node(schema: &Value) -> Node {
    Node::from_json(schema, &Source::new("schema.yaml", schema.to_string()))
}

fn compile(schema: &Value) -> (Option<Schema>, Problems) {
    let mut problems = Problems::new();
    let schema = Schema::compile(&node(schema), &engine(), &mut problems);
    (schema, problems)
}

fn errors(schema: &Value, value: &Value) -> Vec<SchemaError> {
    let (compiled, problems) = compile(schema);
    compiled.unwrap_or_else(|| panic!("{schema}: {problems:?}")).validate(value).unwrap()
}

/// Returns `true` if the verdict on the schema, or its verdict on `value`, intentionally differs from the recorded
/// one.
fn differs(schema: &Value, value: Option<&Value>) -> bool {
    let schema = schema.to_string();
    DIFFERENCES.iter().any(|(of, on, _)| *of == schema && *on == value.and_then(Value::as_str))
}

/// Returns the schemas and values whose verdicts differ from the recorded ones.
fn unlike_recorded() -> Vec<(Value, Option<Value>)> {
    let mut unlike = Vec::new();
    for line in VECTORS.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let schema = &vector["schema"];
        let (compiled, _) = compile(schema);
        let Some(compiled) = compiled.filter(|_| vector.get("refused").is_none()) else {
            if compile(schema).0.is_some() == vector.get("refused").is_some() {
                unlike.push((schema.clone(), None));
            }
            continue;
        };
        for (key, valid) in [("valid", true), ("invalid", false)] {
            let values = vector[key].as_array().unwrap().iter();
            let wrong = values.filter(|value| compiled.validate(value).unwrap().is_empty() != valid);
            unlike.extend(wrong.map(|value| (schema.clone(), Some(value.clone()))));
        }
    }
    unlike
}

#[test]
fn verdicts_match_the_recording_except_for_listed_differences() {
    let unlike = unlike_recorded();
    let unexpected: Vec<_> = unlike.iter().filter(|(schema, value)| !differs(schema, value.as_ref())).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    assert_eq!(unlike.len(), DIFFERENCES.len(), "every listed difference still exists");
    assert!(DIFFERENCES.iter().all(|(_, _, why)| !why.is_empty()));
}

/// Intended differences from the recorded verdicts: the schema, the value if only one is concerned, and the reason.
const DIFFERENCES: &[(&str, Option<&str>, &str)] = &[
    (r#"{"deepProperties":{"a":{}}}"#, None, "`a` is not a JSON pointer, so nothing would be checked"),
    (r#"{"deepRequired":["a"]}"#, None, "`a` is not a JSON pointer, so nothing would be checked"),
    (r#"{"select":null,"selectCases":{"null":{"type":"string"}}}"#, None, "null selects the case `null`"),
    (r#"{"patternProperties":{"(":{}}}"#, None, "an invalid expression is an error wherever it stands"),
    (r#"{"format":"regex"}"#, Some("\\Z"), "`\\Z` is refused at the start of an expression as well"),
];

/// Parses `written`, JSON without white space, with the location of every value in it.
fn to_node(written: &str) -> Node {
    let source = Source::new("schema.yaml", written);
    let mut node = Node::from_json(&serde_json::from_str(written).unwrap(), &source);
    place(&mut node, written, &mut 0);
    node
}

fn place(node: &mut Node, written: &str, at: &mut usize) {
    let find = |text: &str, at: &mut usize| {
        let start = *at + written[*at..].find(text).unwrap();
        *at = start + text.len();
        Span::new(start, *at)
    };
    let whole = node.to_json().to_string();
    match &mut node.kind {
        NodeKind::Map(entries) => {
            let start = *at;
            for (key, value) in entries.iter_mut() {
                key.span = find(&json!(key.value).to_string(), at);
                *at += 1;
                place(value, written, at);
            }
            node.span = Span::new(start, start + 1);
        }
        NodeKind::List(items) => {
            let start = *at;
            *at += 1;
            for item in items {
                place(item, written, at);
            }
            node.span = Span::new(start, start + 1);
        }
        _ => node.span = find(&whole, at),
    }
}

fn problems(written: &str) -> Problems {
    let mut problems = Problems::new();
    Schema::compile(&to_node(written), &engine(), &mut problems);
    problems
}

fn underlined(problem: &Diagnostic) -> String {
    let source = problem.source.as_ref().unwrap();
    source.text.chars().skip(source.column - 1).take(source.length).collect()
}

#[test]
fn a_mistake_is_reported_at_its_location() {
    for (schema, place, message, help) in [
        (r#"{"type":"strin"}"#, "\"strin\"", "`type` must be one of", "did you mean `string`?"),
        (r#"{"propertes":{"a":{}}}"#, "\"propertes\"", "`propertes` is not a keyword", "did you mean `properties`?"),
        (r#"{"properties":{"a":{"minLength":-1}}}"#, "-1", "`minLength` must be at least 0, not -1", ""),
        (r#"{"items":{"pattern":"("}}"#, "\"(\"", "is not a regular expression", ""),
        (r#"{"pattern":"a\\-b"}"#, r#""a\\-b""#, "is not a regular expression", "the `u` flag"),
        (r#"{"patternProperties":{"[":{}}}"#, "\"[\"", "is not a regular expression", ""),
        (r##"{"$ref":"#/definitions/x"}"##, "\"#/definitions/x\"", "does not exist", "definitions"),
        (
            r#"{"$ref":"https://example.com/a.json"}"#,
            "\"https://example.com/a.json\"",
            "references are never fetched",
            "copy",
        ),
        (
            r#"{"$schema":"http://json-schema.org/draft-08/schema#"}"#,
            "\"http://json-schema.org/draft-08/schema#\"",
            "must name a version",
            "did you mean",
        ),
        (r#"{"format":"datetime"}"#, "\"datetime\"", "unknown format", "did you mean `date-time`?"),
        (r#"{"required":true}"#, "true", "`required` must be a list, not a boolean", "list the names"),
        (r#"{"exclusiveMinimum":true,"minimum":1}"#, "true", "must be a number", "instead of `minimum`"),
        (r#"{"allOf":[{"not":5}]}"#, "5", "a schema must be a map, not a number", ""),
        (r#"{"format":"email","formatMinimum":"a"}"#, "\"a\"", "has no order", "iso-date-time"),
        (r#"{"properties":{"a":{"transform":["trimm"]}}}"#, "\"trimm\"", "no transformation", "did you mean `trim`?"),
        (r#"{"typeof":"strin"}"#, "\"strin\"", "`typeof` must be one of", "did you mean `string`?"),
        (r#"{"regexp":"/a/y"}"#, "\"/a/y\"", "the `y` flag", "`^`"),
        (r#"{"select":{"$data":"1/a"},"selectCases":{}}"#, "{", "of the same value", "`$data: 0/name`"),
        (r#"{"id":"x"}"#, "\"id\"", "is not a keyword", "did you mean `$id`?"),
    ] {
        let problems = problems(schema);
        let [problem] = &problems[..] else { panic!("{schema}: {problems:?}") };
        assert!(problem.is_error(), "{schema}");
        assert!(problem.message.contains(message), "{schema}: {}", problem.message);
        assert_eq!(underlined(problem), place, "{schema}");
        assert!(problem.help.iter().any(|line| line.contains(help)) || help.is_empty(), "{schema}: {:?}", problem.help);
    }
}

#[test]
fn every_mistake_is_reported_exactly_once() {
    let found = problems(
        r##"{"definitions":{"a":{"type":"strin"},"unused":{"minimum":"x"}},"items":{"$ref":"#/definitions/a"},"maxItems":-1}"##,
    );
    let texts: Vec<String> = found.iter().map(underlined).collect();
    assert_eq!(texts, ["\"strin\"", "\"x\"", "-1"]);
}

#[test]
fn unusual_schemas_cause_only_warnings() {
    for (schema, message) in [
        (r#"{"unknownThing":1}"#, "`unknownThing` is not a keyword"),
        (r#"{"note":"for people"}"#, "`note` is not a keyword"),
        (r#"{"format":"zip-code"}"#, "the `zip-code` format is unknown"),
        (r#"{"format":"iri"}"#, "the `iri` format is unknown"),
        (r#"{"prefixItems":[{}]}"#, "`prefixItems` is not a keyword of draft-07"),
        (r#"{"then":{}}"#, "has no effect without `if`"),
        (r#"{"additionalItems":false}"#, "has no effect without `items: […]`"),
        (r#"{"enum":[1,1.0]}"#, "twice"),
        (r#"{"transform":["trim"],"anyOf":[{}]}"#, "does not reach into `anyOf`"),
        (r#"{"instanceof":"Date"}"#, "no JSON value"),
        (r#"{"maxLength":2,"minLength":9}"#, "no text is valid, because `minLength` is above `maxLength`"),
        (r#"{"minimum":0.5,"maximum":0}"#, "no number is valid"),
    ] {
        let (compiled, problems) = compile(&serde_json::from_str(schema).unwrap());
        let [problem] = &problems[..] else { panic!("{schema}: {problems:?}") };
        assert!(!problem.is_error() && compiled.is_some(), "{schema}");
        assert!(problem.message.contains(message), "{schema}: {}", problem.message);
    }
    for quiet in [
        r#"{"minItems":1,"maxItems":1}"#,
        r#"{"_a":1,"x-b":2,"$comment":"c","title":"t","example":1,"default":[]}"#,
        "{}",
        "true",
        "false",
    ] {
        assert_eq!(problems(quiet), [], "{quiet}");
    }
}

#[test]
fn a_non_schema_is_an_error_but_a_boolean_is_a_schema() {
    for schema in [json!("string"), json!(5), json!(null), json!([])] {
        let (compiled, problems) = compile(&schema);
        assert!(compiled.is_none() && problems[0].message.starts_with("a schema must be a map"), "{schema}");
    }
    assert_eq!(errors(&json!(true), &json!(5)), []);
    let found = errors(&json!(false), &json!(5));
    assert_eq!((found[0].path.as_str(), found[0].keyword.as_str()), ("", ""));
}

#[test]
fn an_error_has_a_path_a_keyword_and_the_expected_value() {
    let schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "string", "pattern": "^x"}}}},
            "n": {"$ref": "#/definitions/small"},
            "0": {"const": 1},
        },
        "patternProperties": {"^k": {"minLength": 3}},
        "additionalProperties": false,
        "definitions": {"small": {"maximum": 10, "type": "number"}},
    });
    let value = json!({"a": {"b": ["x", 5, "y"]}, "n": 11, "k1": "ab", "other": 1, "0": 2});
    let mut mismatches: Vec<_> = errors(&schema, &value)
        .into_iter()
        .map(|error| (error.path.clone(), error.keyword.clone(), error.message.clone(), error.expected))
        .collect();
    mismatches.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    let text = |text: &str| text.to_owned();
    assert_eq!(
        mismatches,
        [
            (text(""), text("additionalProperties"), text("must not have `other`"), json!(false)),
            (text(""), text("required"), text("must have `id`"), json!(["id"])),
            (text("0"), text("const"), text("must be 1, not 2"), json!(1)),
            (text("a.b[1]"), text("type"), text("must be a string, not a number"), json!("string")),
            (text("a.b[2]"), text("pattern"), text("must match /^x/, not \"y\""), json!("^x")),
            (text("k1"), text("minLength"), text("must have at least 3 characters, not 2"), json!(3)),
            (text("n"), text("maximum"), text("must be at most 10, not 11"), json!(10)),
        ]
    );
}

#[test]
fn an_error_behind_a_reference_names_the_keyword_of_the_target() {
    let schema = json!({"items": {"$ref": "#/definitions/n"}, "definitions": {"n": {"minimum": 5}}});
    let found = errors(&schema, &json!([4]));
    assert_eq!((found[0].keyword.as_str(), &found[0].expected), ("minimum", &json!(5)));
    assert_eq!(found[0].to_string(), "`[0]` must be at least 5, not 4");
}

#[test]
fn keywords_are_reported_as_written_in_every_draft() {
    let keyword = |schema: Value, value: Value| errors(&schema, &value)[0].keyword.clone();
    let draft4 = "http://json-schema.org/draft-04/schema#";
    assert_eq!(keyword(json!({"items": [{}], "additionalItems": false}), json!([1, 2])), "additionalItems");
    assert_eq!(keyword(json!({"dependencies": {"a": ["b"]}}), json!({"a": 1})), "dependencies");
    assert_eq!(
        keyword(json!({"$schema": draft4, "maximum": 5, "exclusiveMaximum": true}), json!(5)),
        "exclusiveMaximum"
    );
    assert_eq!(errors(&json!({"$schema": draft4, "maximum": 5, "exclusiveMaximum": false}), &json!(5)), []);
    assert_eq!(errors(&json!({"$schema": draft4, "id": "http://a/b", "items": {"$ref": "b"}}), &json!([[]])), []);
}

#[test]
fn alternatives_are_explained() {
    let one = json!({"anyOf": [{"type": "string"}, {"properties": {"a": {"minimum": 3}}, "required": ["a"]}]});
    let found = errors(&json!({"items": one}), &json!([{"a": 1}]));
    assert_eq!(
        found[0].message,
        "must match one of 2 alternatives: (1) `[0]` must be a string, not an object; (2) `[0].a` must be at least 3, not 1"
    );
}

#[test]
fn an_undecidable_pattern_leaves_the_validation_undecided() {
    for schema in [
        json!({"pattern": "STOP"}),
        json!({"not": {"pattern": "STOP"}}),
        json!({"anyOf": [{"pattern": "STOP"}, true]}),
        json!({"regexp": "/STOP/i"}),
    ] {
        let schema = compile(&schema).0.unwrap();
        assert_eq!(schema.validate(&json!("x")).unwrap_err().to_string(), "stopped");
        assert!(schema.validate(&json!(5)).is_ok(), "nothing was asked");
    }
    // The library itself matches property names, and gives up after a number of steps.
    let name = "a".repeat(40) + "!";
    for schema in [json!({"patternProperties": {"^(?:a|a(?!b))+$": false}}), json!({"patternRequired": ["STOP"]})] {
        let schema = compile(&schema).0.unwrap();
        assert!(schema.validate(&json!({name.as_str(): 1})).is_err());
        assert!(schema.validate(&json!([])).is_ok());
    }
}

#[test]
fn every_pattern_has_ecmascript_syntax() {
    let schema = json!({"pattern": "^[^]\\cJ$"});
    let whole = [
        json!({"items": schema}),
        json!({"anyOf": [{"items": [schema]}]}),
        json!({"items": {"$ref": "#/definitions/a"}, "definitions": {"a": schema}}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [schema]}),
    ];
    for schema in whole {
        assert_eq!(errors(&schema, &json!(["x\n"])), [], "{schema}");
        assert_eq!(errors(&schema, &json!(["xy"])).len(), 1, "{schema}");
    }
}

#[test]
fn the_same_id_can_be_used_by_many_schemas() {
    for kind in ["string", "number"] {
        let schema = json!({"$id": "http://example.com/one.json", "type": kind});
        assert_eq!(errors(&schema, &json!("x")).len(), usize::from(kind == "number"));
    }
    let twice = json!({"definitions": {"a": {"$id": "http://a/b"}, "b": {"$id": "http://a/b"}}});
    assert!(compile(&twice).1[0].message.contains("two parts"));
}

#[test]
fn a_cyclic_reference_is_an_error_and_a_recursive_one_is_not() {
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"not":{"$ref":"#/definitions/b"}},"b":{"anyOf":[{"$ref":"#/definitions/a"}]}}}"##,
    ] {
        let problems = problems(schema);
        assert!(
            !problems.is_empty() && problems.iter().all(|problem| problem.message.contains("never ends")),
            "{schema}"
        );
    }
    let tree = json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": false});
    assert_eq!(errors(&tree, &json!({"a": {"a": {"b": 1}}}))[0].path, "a.a");
}

#[test]
fn deep_nesting_is_rejected_without_a_stack_overflow() {
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    let value = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
    assert!(compile(&nested(99)).0.is_some());
    assert!(compile(&nested(101)).1[0].message.contains("nested more than 100 deep"));
    let tree = compile(&json!({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})).0.unwrap();
    assert!(tree.validate(&value(200)).is_ok());
    assert!(tree.validate(&value(201)).is_err());
}

#[test]
fn an_embedded_dialect_is_an_error_and_the_outermost_dynamic_anchor_counts() {
    let inner = json!({"items": {"$schema": "http://json-schema.org/draft-06/schema#"}});
    assert!(compile(&inner).1[0].message.contains("its parts cannot use another draft"));
    let dynamic = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "http://example.com/numbers",
        "$ref": "list",
        "$defs": {
            "item": {"$dynamicAnchor": "item", "type": "number"},
            "list": {"$id": "list", "items": {"$dynamicRef": "#item"}, "$defs": {"any": {"$dynamicAnchor": "item"}}},
        },
    });
    assert_eq!(errors(&dynamic, &json!([1])), []);
    assert_eq!(errors(&dynamic, &json!([1, "a"])).len(), 1);
}

#[test]
fn every_dangling_reference_is_reported() {
    let found = problems(
        r##"{"properties":{"a":{"$ref":"#/definitions/x"},"b":{"$ref":"#y"},"c":{"$ref":"z.json"},"d":{"$ref":"#/definitions/x"}}}"##,
    );
    let texts: Vec<String> = found.iter().map(underlined).collect();
    assert_eq!(texts, ["\"#/definitions/x\"", "\"#y\"", "\"z.json\""]);
}

#[test]
fn every_format_accepts_a_valid_value() {
    for format in super::format::FORMATS {
        let schema = json!({"format": format.name});
        let some =
            ["", "2024-01-01", "12:00:00Z", "2024-01-01T12:00:00Z", "P1D", "http://a.de", "a@b.co", "a", "::1", "0"];
        let more = ["1.2.3.4", "#", "123e4567-e89b-12d3-a456-426614174000"];
        assert!(some.iter().chain(&more).any(|text| errors(&schema, &json!(text)).is_empty()), "{}", format.name);
    }
}

#[test]
fn select_data_refers_to_the_value_itself() {
    let schema = json!({
        "select": {"$data": "0/kind"},
        "selectCases": {"a": {"required": ["x"]}, "1": {"required": ["y"]}, "null": {"required": ["n"]}},
        "selectDefault": {"required": ["z"]},
    });
    let valid = |value: Value| errors(&schema, &value).is_empty();
    for value in [json!({"kind": "a", "x": 1}), json!({"kind": 1, "y": 1}), json!({"kind": "b", "z": 1}), json!({})] {
        assert!(valid(value.clone()), "{value}");
    }
    for value in
        [json!({"kind": "a"}), json!({"kind": 1}), json!({"kind": null}), json!({"kind": 7}), json!({"kind": []})]
    {
        assert!(!valid(value.clone()), "{value}");
    }
}

#[test]
fn a_map_with_a_type_is_a_schema_only_if_all_its_keys_agree() {
    for (map, is_schema) in [
        (json!({"type": "string"}), true),
        (json!({"type": "null"}), true),
        (json!({"type": "integer", "minimum": 6}), true),
        (json!({"type": "object", "required": ["zz"]}), true),
        (json!({"type": "array", "items": {"type": "string"}}), true),
        (json!({"type": "boolean", "$score": 5, "$title": "B"}), true),
        (json!({"type": "boolean", "$meta": {}}), true),
        (json!({"type": "object", "_note": 1, "x-a": 2}), true),
        (json!({"type": "object", "propertes": {}, "required": ["a"]}), true),
        (json!({"type": ["integer"]}), false),
        (json!({"type": "text"}), false),
        (json!({"type": "Object"}), false),
        (json!({"type": 5}), false),
        (json!({"type": ""}), false),
        (json!({"type": "object", "name": 2}), false),
        (json!({"type": "object", "n": 2}), false),
        (json!({"type": "object", "id": 7}), false),
        (json!({"type": "object", "title": "T", "name": 2}), false),
        (json!({"type": "array", "$x": 1}), false),
        (json!({"type": "array", "$contains": 1}), false),
        (json!({"type": "array", "$all": [1]}), false),
        (json!({"type": "array", "$exists": true}), false),
        (json!({"minimum": 1}), false),
        (json!("string"), false),
    ] {
        assert_eq!(looks_like_schema(&node(&map)), is_schema, "{map}");
    }
    let mut tagged = node(&json!({"minimum": 1}));
    tagged.tag = Some("!json-schema".into());
    assert!(looks_like_schema(&tagged));
}

#[test]
fn a_schema_can_be_shared_by_threads() {
    let schema = compile(&json!({"pattern": "^a"})).0.unwrap();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let schema = schema.clone();
            std::thread::spawn(move || schema.validate(&json!("b")).unwrap().len())
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 1));
    assert_eq!(format!("{schema:?}"), "Schema(Object {\"check:pattern\": String(\"^a\")})");
}

#[test]
fn digits_that_are_not_known_do_not_decide() {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let valid = |schema: &str, value: &str| {
        let validated = compile(&json(schema)).0.unwrap().validate(&json(value));
        validated.map(|errors| errors.is_empty()).ok()
    };
    for schema in [
        "{\"const\": 123456789012345678902}",
        "{\"not\": {\"const\": 123456789012345678902}}",
        "{\"enum\": [1, 123456789012345678902]}",
        "{\"minimum\": 123456789012345678902}",
        "{\"exclusiveMaximum\": 123456789012345678902}",
        "{\"multipleOf\": 2}",
        "{\"multipleOf\": 7}",
    ] {
        assert_eq!(valid(schema, "123456789012345678901"), None, "{schema}");
    }
    let two = "[123456789012345678901, 123456789012345678902, 1, 1]";
    assert_eq!(valid("{\"uniqueItems\": true}", &two.replace(", 1, 1", "")), None);
    for (schema, value, expected) in [
        ("{\"uniqueItems\": true}", two, false),
        ("{\"type\": \"integer\", \"minimum\": 5}", "123456789012345678901", true),
        ("{\"maximum\": 5, \"multipleOf\": 2}", "123456789012345678901", false),
        ("{\"const\": 18446744073709551615}", "18446744073709551615", true),
        ("{\"const\": 18446744073709551614}", "18446744073709551615", false),
    ] {
        assert_eq!(valid(schema, value), Some(expected), "{schema} of {value}");
    }
}
