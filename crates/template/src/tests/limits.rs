use serde_json::{Value, json};

use super::{refused, rendered};

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
    ends_with(nested, json!({}), "the template does too much work");
    let heavy = "{% for i in range(50000) %}{% set b = a|upper %}{% endfor %}";
    ends_with(heavy, json!({"a": "x".repeat(900_000)}), "the template does too much work");
    let heavy = "{% for i in range(50000) %}{% set b = 1 in a %}{% endfor %}";
    ends_with(heavy, json!({"a": vec![0; 50_000]}), "the template does too much work");
    ends_with("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", json!({}), "this goes too deep");
    ends_with("{{ range(1000000000)|length }}", json!({}), "a list may have at most 100000 items");
}

#[test]
fn growing_values_end() {
    let text = "{% set n = namespace(s='x') %}{% for i in range(100) %}{% set n.s = n.s + n.s %}{% endfor %}";
    ends_with(text, json!({}), "the text becomes longer than 1 MiB");
    ends_with("{{ 'a\nb'|indent(99999999) }}", json!({}), "the text becomes longer than 1 MiB");
    ends_with("{{ [1]|tojson(9999999999) }}", json!({}), "the text becomes longer than 1 MiB");
    let text = "{% set n = namespace(l=[]) %}{% for i in range(500) %}{% set n.l = [n.l, n.l] %}{% endfor %}";
    ends_with(text, json!({}), "lists and maps may be nested at most 100 deep");
    let text = "{% set n = namespace(l=[]) %}{% for i in range(90) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}";
    ends_with(text, json!({}), "the text becomes longer than 1 MiB");
    let text = "{% set n = namespace(a=[], b=[]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}\
                {% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}";
    ends_with(text, json!({}), "the values are too large to be compared");
    let text = "{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = n.l + n.l %}{% endfor %}";
    ends_with(text, json!({}), "a list may have at most 100000 items");
    ends_with("{% set n = namespace() %}{% set n.n = n %}", json!({}), "a namespace cannot be put into another value");
    ends_with("{% set n = namespace() %}{{ [n] }}", json!({}), "a namespace cannot be put into another value");
}

#[test]
fn variables_that_multiply_each_other_end() {
    let mut values = serde_json::Map::new();
    for level in 0..20 {
        values.insert(format!("v{level}"), json!(vec![format!("{{{{v{}}}}}", level + 1); 10]));
    }
    values.insert("v20".to_owned(), json!("x"));
    ends_with("{{ v0 }}", Value::Object(values), "the values become too large");
    let mut values = serde_json::Map::new();
    for level in 0..2_000 {
        values.insert(format!("v{level}"), json!(format!("{{{{ (((((v{}))))) }}}}", level + 1)));
    }
    values.insert("v2000".to_owned(), json!("x"));
    ends_with("{{ v0 }}", Value::Object(values), "this goes too deep");
}

#[test]
fn deep_data_is_no_danger() {
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
fn a_variable_that_is_only_looked_at_costs_no_space() {
    let text = "{% for i in range(1000) %}{% if i in few %}{{ i }},{% endif %}{% endfor %}";
    let many = json!(vec![text; 10]);
    let found = rendered(
        "{{ many }}",
        json!({"many": many, "few": (0..1000).step_by(500).chain(5000..5098).collect::<Vec<_>>()}),
    );
    assert_eq!(found.unwrap()[9], "0,500,");
}
