use model::decode::Problems;
use model::{Node, Source};
use serde_json::{Value, json};

use super::{refused, rendered, shown, variables};
use crate::{Format, Template, resolve};

#[track_caller]
fn ends_with(text: &str, values: Value, message: &str) {
    assert_eq!(refused(text, values).0, message, "{}", &text[..text.len().min(80)]);
}

#[test]
fn deep_nesting_is_refused() {
    let nested = "the expression is nested too deeply";
    ends_with(&format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000)), json!({}), nested);
    ends_with(&format!("{{{{ {}1{} }}}}", "[".repeat(60), "]".repeat(60)), json!({}), nested);
    ends_with(&format!("{{{{ {}1 }}}}", "not ".repeat(10_000)), json!({}), nested);
    ends_with(&format!("{{{{ {}1 }}}}", "- ".repeat(10_000)), json!({}), nested);
    ends_with(&format!("{{{{ {}1 }}}}", "1 if 1 else ".repeat(10_000)), json!({}), nested);
    let blocks = format!("{}{}", "{% if true %}".repeat(5_000), "{% endif %}".repeat(5_000));
    ends_with(&blocks, json!({}), "statements are nested too deeply");
}

#[test]
fn long_chains_are_refused() {
    let long = "the expression is too long";
    ends_with(&format!("{{{{ 1{} }}}}", " + 1".repeat(100_000)), json!({}), long);
    ends_with(&format!("{{{{ a{} }}}}", ".a".repeat(100_000)), json!({}), long);
    ends_with(&format!("{{{{ a{} }}}}", "|list".repeat(100_000)), json!({}), long);
    ends_with(&format!("{{{{ a{} }}}}", " is odd".repeat(100_000)), json!({}), long);
}

#[test]
fn endless_work_ends() {
    let nested = "{% for a in range(1000) %}{% for b in range(1000) %}{% set c = a %}{% endfor %}{% endfor %}";
    ends_with(nested, json!({}), "the template takes too many steps");
    let heavy = "{% for i in range(50000) %}{% set b = a|upper %}{% endfor %}";
    ends_with(heavy, json!({"a": "x".repeat(900_000)}), "the template takes too many steps");
    let heavy = "{% for i in range(50000) %}{% set b = 1 in a %}{% endfor %}";
    ends_with(heavy, json!({"a": vec![0; 50_000]}), "the template takes too many steps");
    ends_with("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", json!({}), "nested too deeply");
    ends_with("{{ range(1000000000)|length }}", json!({}), "a list may have at most 100000 items");
}

#[test]
fn growing_values_hit_a_limit() {
    let text = "{% set n = namespace(s='x') %}{% for i in range(100) %}{% set n.s = n.s + n.s %}{% endfor %}";
    ends_with(text, json!({}), "the text is longer than 1 MiB");
    ends_with("{{ 'a\nb'|indent(99999999) }}", json!({}), "the text is longer than 1 MiB");
    ends_with("{{ [1]|tojson(9999999999) }}", json!({}), "the text is longer than 1 MiB");
    let text = "{% set n = namespace(l=[]) %}{% for i in range(500) %}{% set n.l = [n.l, n.l] %}{% endfor %}";
    ends_with(text, json!({}), "lists and maps may be nested at most 100 deep");
    let text = "{% set n = namespace(l=[]) %}{% for i in range(90) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}";
    ends_with(text, json!({}), "the text is longer than 1 MiB");
    let text = "{% set n = namespace(a=[], b=[]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}\
                {% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}";
    ends_with(text, json!({}), "the values are too large to be compared");
    let text = "{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = n.l + n.l %}{% endfor %}";
    ends_with(text, json!({}), "a list may have at most 100000 items");
    ends_with("{% set n = namespace() %}{% set n.n = n %}", json!({}), "a namespace cannot be put into another value");
    ends_with("{% set n = namespace() %}{{ [n] }}", json!({}), "a namespace cannot be put into another value");
}

#[test]
fn exponentially_growing_variables_hit_a_limit() {
    let mut values = serde_json::Map::new();
    for level in 0..20 {
        values.insert(format!("v{level}"), json!(vec![format!("{{{{v{}}}}}", level + 1); 10]));
    }
    values.insert("v20".to_owned(), json!("x"));
    ends_with("{{ v0 }}", Value::Object(values), "the values are too large");
    let mut values = serde_json::Map::new();
    for level in 0..2_000 {
        values.insert(format!("v{level}"), json!(format!("{{{{ (((((v{}))))) }}}}", level + 1)));
    }
    values.insert("v2000".to_owned(), json!("x"));
    ends_with("{{ v0 }}", Value::Object(values), "nested too deeply");
}

#[test]
fn deeply_nested_data_is_safe() {
    let mut deep = json!("{{ x }}");
    for _ in 0..400 {
        deep = json!([deep]);
    }
    for text in ["{{ deep }}", "{{ deep }}!", "{{ deep|tojson }}"] {
        assert!(rendered(text, json!({"deep": deep, "x": 1})).is_err());
    }
    let mut shallow = json!("{{ x }}");
    for _ in 0..40 {
        shallow = json!({"a": [shallow]});
    }
    for text in ["{{ shallow }}", "{{ shallow }}!", "{{ shallow|tojson }}"] {
        assert!(rendered(text, json!({"shallow": shallow, "x": 1})).is_ok(), "{text}");
    }
}

#[test]
fn reading_a_variable_does_not_count_as_size() {
    let text = "{% for i in range(1000) %}{% if i in few %}{{ i }},{% endif %}{% endfor %}";
    let many = json!(vec![text; 10]);
    let found = rendered(
        "{{ many }}",
        json!({"many": many, "few": (0..1000).step_by(500).chain(5000..5098).collect::<Vec<_>>()}),
    );
    assert_eq!(found.unwrap()[9], "0,500,");
}

#[test]
fn iterating_over_long_values_counts_as_steps() {
    let long = "the template takes too many steps";
    let text = "x".repeat(800_000);
    for walk in ["s.length", "s[5]", "t.length", "t[-1]", "t is eq(s)"] {
        let repeated = format!("{{% set t = s %}}{{% for i in range(10000) %}}{{% set c = {walk} %}}{{% endfor %}}");
        ends_with(&repeated, json!({"s": text}), long);
    }
    let lists = "{% set n = namespace(l=[s]) %}{% for i in range(12) %}{% set n.l = n.l + n.l %}{% endfor %}";
    ends_with(&format!("{lists}{{{{ n.l|sort|length }}}}"), json!({"s": text}), long);
    let map: serde_json::Map<String, Value> = (0..20_000).map(|index| (format!("k{index}"), json!(index))).collect();
    for walk in ["selectattr('k9')", "rejectattr('k9', 'eq', 3)", "map(attribute='k9')"] {
        ends_with(&format!("{lists}{{{{ n.l|{walk} }}}}"), json!({"s": map}), long);
    }
}

#[test]
fn one_operation_has_a_single_comparison_limit() {
    let large = "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(12) %}{% set n.a = [n.a, n.a] %}\
                 {% set n.b = [n.b, n.b] %}{% endfor %}{% set n.a = [n.a, 1] %}{% set n.b = [n.b, 2] %}\
                 {% set l = namespace(l=[n.b]) %}{% for i in range(10) %}{% set l.l = l.l + l.l %}{% endfor %}";
    let refused = "the values are too large to be compared";
    ends_with(&format!("{large}{{{{ n.a in l.l }}}}"), json!({}), refused);
    let maps = "{% set m = namespace(l=[{'a': n.b}]) %}{% for i in range(10) %}{% set m.l = m.l + m.l %}{% endfor %}";
    ends_with(&format!("{large}{maps}{{{{ m.l|selectattr('a', 'eq', n.a)|length }}}}"), json!({}), refused);
    assert_eq!(rendered(&format!("{large}x{{{{ n.a == n.b }}}}"), json!({})), Ok(json!("xfalse")));
}

/// Returns `levels` maps, each of which contains the next one twice.
fn doubling(levels: usize) -> serde_json::Map<String, Value> {
    let level = |index: usize| {
        let next = format!("{{{{a{}}}}}", index + 1);
        (format!("a{index}"), json!({"p": next, "q": next}))
    };
    (0..levels).map(level).chain([(format!("a{levels}"), json!("x"))]).collect()
}

#[test]
fn values_that_become_too_large_are_not_resolved_again() {
    let values = variables(Value::Object(doubling(40)));
    let mut problems = Problems::new();
    let resolved = values.to_json(&mut problems);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(resolved.len() < 40);
    // Not even a small value.
    assert_eq!(values.get("a40").unwrap_err().message, "the values are too large");
    let node = Node::from_json(&json!({"x": "{{ a0 }}", "y": ["{{ a1 }}", "{{ a2 }}!"]}), &Source::new("f", ""));
    let mut problems = Problems::new();
    resolve(&node, &variables(Value::Object(doubling(40))), &mut problems);
    assert_eq!(problems.len(), 1, "{problems:?}");
    // After the values have changed, they are resolved again.
    let values = values.with("a1", node_of(&json!("y")));
    assert_eq!(values.get("a0").unwrap().unwrap().to_json(), json!({"p": "y", "q": "y"}));
}

fn node_of(value: &Value) -> Node {
    Node::from_json(value, &Source::new("f", ""))
}

#[test]
fn large_maps_and_many_variables_are_fast() {
    let many: serde_json::Map<String, Value> = (0..40_000).map(|index| (format!("k{index}"), json!(index))).collect();
    let mut templates: serde_json::Map<String, Value> =
        (0..20_000).map(|index| (format!("{{{{ k{index} }}}}x"), json!(format!("{{{{ m.k{index} }}}}")))).collect();
    templates.insert("plain".to_owned(), json!(1));
    let mut values = many.clone();
    values.insert("m".to_owned(), Value::Object(many));
    let mut problems = Problems::new();
    let found = resolve(&node_of(&Value::Object(templates)), &variables(Value::Object(values)), &mut problems);
    assert!(problems.is_empty(), "{:?}", problems.first());
    assert_eq!(found.get("19999x").map(Node::to_json), Some(json!(19_999)));
}

#[test]
fn many_unclosed_delimiters_are_text() {
    for piece in ["{{ ", "{% ", "{# ", "{{ {# ", "${a:-"] {
        let text = piece.repeat(200_000);
        assert_eq!(rendered(&text, json!({})), Ok(json!(text)), "{piece}");
        assert!(Template::parse_as(&text, Format::Env).is_ok_and(|template| template.is_none()), "{piece}");
    }
    assert_eq!(shown("{{ 1 }}{{ {% }", json!({})), "1{{ {% }");
}
