use std::sync::Arc;

use model::decode::Problems;
use model::{Node, NodeKind, Source, Span, Spanned};
use serde_json::{Value, json};

use super::variables;
use crate::{Format, Variables, resolve, resolve_as};

fn resolved(node: &Value, values: Value) -> (Value, Vec<String>) {
    let mut problems = Problems::new();
    let node = Node::from_json(node, &Source::new("f", ""));
    let resolved = resolve(&node, &variables(values), &mut problems);
    (resolved.to_json(), problems.iter().map(|problem| problem.message.clone()).collect())
}

#[track_caller]
fn becomes(node: &Value, values: Value, wanted: &Value) {
    let (found, problems) = resolved(node, values);
    assert_eq!(problems, Vec::<String>::new());
    // Compared as text, so that the order of keys counts.
    assert_eq!(found.to_string(), wanted.to_string());
}

#[track_caller]
fn problem(node: &Value, values: Value, wanted: &str) {
    assert_eq!(resolved(node, values).1, [wanted]);
}

/// Returns a string in a file, written as quoted YAML.
fn text(source: &Arc<Source>, written: &str) -> Node {
    let start = source.text.find(written).unwrap();
    let value = written.trim_matches('"').to_owned();
    let span = Span::new(start, start + written.len());
    Node { kind: NodeKind::String(value), span, tag: None, source: source.clone() }
}

#[test]
fn keys_and_values_are_resolved_and_keep_their_order() {
    becomes(
        &json!({"b": "{{v}}", "{{k}}": [1, "{{v}}", null, true], "a": {"/^{{n}}$/": "x {{v}}"}}),
        json!({"v": "zz", "k": "key", "n": 8}),
        &json!({"b": "zz", "key": [1, "zz", null, true], "a": {"/^8$/": "x zz"}}),
    );
}

#[test]
fn variables_that_use_variables_are_resolved_completely() {
    becomes(&json!("X-{{a}}-Y"), json!({"a": "{{b}}", "b": "{{c}}", "c": "deep"}), &json!("X-deep-Y"));
    becomes(&json!("{{a}}"), json!({"a": "{{b}}", "b": {"k": ["{{c}}"]}, "c": "v"}), &json!({"k": ["v"]}));
    becomes(&json!("{{a.k.m}}"), json!({"a": "{{b}}", "b": {"k": "{{c}}"}, "c": {"m": 1}}), &json!(1));
    becomes(&json!("{{a.key}}"), json!({"a": {"{{k}}": "{{v}}"}, "k": "key", "v": 2}), &json!(2));
    becomes(&json!("{{ p }}"), json!({"p": "/is {{x}}$/", "x": "a.b"}), &json!("/is a\\.b$/"));
}

#[test]
fn every_unknown_name_in_a_template_is_reported() {
    let unknown = |text: &str| resolved(&json!(text), json!({"name": "A", "v": "{{ one }} {{ two }}"})).1;
    assert_eq!(unknown("{{ nmae }} in {{ lagn }}"), ["unknown variable `nmae`", "unknown variable `lagn`"]);
    assert_eq!(unknown("{{ nmae }} {{ name }} {{ name.first }}{{ lagn|upper }}").len(), 3);
    assert_eq!(unknown("{{ nmae }} {{ maybe is defined }}"), ["unknown variable `nmae`"]);
    assert_eq!(unknown("{{ nmae }}{% set b = 1 %}{{ b }}"), ["unknown variable `nmae`"]);
    assert_eq!(unknown("x {{ v }}"), ["unknown variable `one`"], "only the first unknown name");
}

#[test]
fn apparent_cycles_are_not_errors() {
    // A map that uses its own parts.
    becomes(
        &json!("{{input.b}} {{input.c}}"),
        json!({"input": {"a": "x", "b": "{{input.a}}!", "c": "{{ input.b|upper }}"}}),
        &json!("x! X!"),
    );
    // One value under two names, one of which is a prefix of the other.
    becomes(
        &json!("{{user}} {{user2}}"),
        json!({"user": {"a": 1}, "user2": "{{user}}"}),
        &json!("{\"a\":1} {\"a\":1}"),
    );
    // A list that uses one of its own items.
    becomes(&json!("{{l}}"), json!({"l": ["x", "{{l[0]}}"]}), &json!(["x", "x"]));
    // An unrelated variable that contains an error.
    becomes(&json!("{{a}}"), json!({"a": 1, "wrong": "{{ nowhere|nothing }}"}), &json!(1));
}

#[test]
fn a_cycle_is_reported_with_its_path() {
    problem(&json!("{{a}}"), json!({"a": "{{a}}"}), "`a` refers to itself");
    let wanted = "variables refer to each other in a circle: a → b.k → a";
    problem(&json!("x {{a}}"), json!({"a": "x{{b.k}}", "b": {"k": "{{ a|upper }}"}}), wanted);
    let wanted = "variables refer to each other in a circle: inn.b → c[0] → inn.b";
    problem(&json!("{{inn.b}}"), json!({"inn": {"a": 1, "b": "{{c[0]}}"}, "c": ["{{inn}}"]}), wanted);
}

#[test]
fn the_keys_of_a_map_stay_unique() {
    problem(&json!({"{{a}}": 1, "x": 2}), json!({"a": "x"}), "two keys of this map become `x`");
}

#[test]
fn problems_are_located_in_the_file() {
    let source = Source::new(
        "f.yaml",
        "greet: \"hi {{ nmae }}\"\nout: \"{{ name }} and {{ usr.x }}\"\nother: \"{{ greet }}\"\n",
    );
    let values = variables(json!({"name": "A", "user": {}})).with("greet", text(&source, "\"hi {{ nmae }}\""));
    let mut problems = Problems::new();
    resolve(&text(&source, "\"{{ name }} and {{ usr.x }}\""), &values, &mut problems);
    resolve(&text(&source, "\"{{ greet }}\""), &values, &mut problems);
    // The same error is reported only once.
    resolve(&text(&source, "\"{{ greet }}\""), &values, &mut problems);
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["f.yaml:2:25: unknown variable `usr`", "f.yaml:1:15: unknown variable `nmae`"]);
    assert_eq!(problems[0].help, ["did you mean `user`?"]);
    assert_eq!(problems[1].help, ["did you mean `name`?"]);
}

#[test]
fn a_value_takes_the_place_of_its_template_and_keeps_its_tags() {
    let source = Source::new("f.yaml", "out: \"{{ value }}\"");
    let origin = Source::new("v.yaml", "");
    let tagged = Node { tag: Some("!re".into()), ..Node::from_json(&json!("x"), &origin) };
    let entry = (Spanned::new("k".to_owned(), Span::new(1, 2)), tagged);
    let map = Node { kind: NodeKind::Map(vec![entry]), ..Node::from_json(&json!(null), &origin) };
    let values = Variables::new().with("value", map);
    let template = text(&source, "\"{{ value }}\"");
    let mut problems = Problems::new();
    let found = resolve(&template, &values, &mut problems);
    let NodeKind::Map(entries) = &found.kind else { panic!("{found:?}") };
    assert_eq!((found.span, entries[0].0.span, entries[0].1.span), (template.span, template.span, template.span));
    assert_eq!(entries[0].1.tag.as_deref(), Some("!re"));
    assert_eq!(&*entries[0].1.source.path, "f.yaml");

    let tagged = Node { tag: Some("!json-schema".into()), ..template };
    assert_eq!(resolve(&tagged, &values, &mut problems).tag.as_deref(), Some("!json-schema"));
}

#[test]
fn an_invalid_template_does_not_affect_the_others() {
    let (found, problems) = resolved(&json!({"a": "{{ x", "b": "{{x}}", "c": "{{y}}", "{{y}}": 1}), json!({"x": 1}));
    assert_eq!(found, json!({"a": "{{ x", "b": 1, "c": "{{y}}"}));
    assert_eq!(problems, ["unknown variable `y`"]);
}

#[test]
fn all_variables_are_returned_as_json() {
    let values = variables(json!({"a": "{{b}}", "b": [1], "bad": "{{ c }}"}));
    let mut problems = Problems::new();
    assert_eq!(Value::Object(values.to_json(&mut problems)), json!({"a": [1], "b": [1]}));
    assert_eq!(problems.len(), 1);
}

#[test]
fn later_layers_win_and_affect_values_that_refer_to_them() {
    let origin = Source::new("f", "");
    let layer = |values: Value| Node::from_json(&values, &origin);
    let values = Variables::new().layer(&layer(json!({"a": "{{b}}", "b": 1})));
    assert_eq!(values.get("a").unwrap().unwrap().to_json(), json!(1));
    let values = values.layer(&layer(json!({"b": 2}))).layer(&layer(json!("no map")));
    assert_eq!(values.get("a").unwrap().unwrap().to_json(), json!(2));
    assert_eq!(values.names().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn the_template_format_of_a_fixture_does_not_apply_to_its_variables() {
    let values = variables(json!({"name": "{{ who }}", "who": "Al {x}"}));
    let node = Node::from_json(&json!(["Hi {name}", "{{x}}"]), &Source::new("f", ""));
    let mut problems = Problems::new();
    let found = resolve_as(Format::FString, &node, &values, &mut problems);
    assert_eq!(found.to_json(), json!(["Hi Al {x}", "{x}"]));
    assert!(problems.is_empty());
    let wrong = Format::from_node(&Node::from_json(&json!("fstrng"), &Source::new("f", ""))).unwrap_err();
    assert_eq!(wrong.help, ["did you mean `fstring`?"]);
}

#[test]
fn variables_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Variables::new());
    shared(&crate::Template::parse("{{ a }}").unwrap());
}

#[test]
fn a_limit_error_is_not_cached_where_it_does_not_apply() {
    let mut values = serde_json::Map::new();
    for level in 0..60 {
        values.insert(format!("v{level}"), json!(format!("{{{{ v{} }}}}.", level + 1)));
    }
    values.insert("v60".to_owned(), json!("x"));
    let values = variables(Value::Object(values));
    assert!(values.get("v0").is_err());
    assert!(values.get("v50").unwrap().is_some());
}
