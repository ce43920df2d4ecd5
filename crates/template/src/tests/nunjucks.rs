//! Tests of templates in Nunjucks.

use model::decode::Problems;
use model::{Node, Source, Span};
use serde_json::{Value as Json, json};

use crate::{Variables, render_nunjucks};

fn render(text: &str, values: &Json) -> Result<String, String> {
    let variables = Variables::new().layer(&Node::from_json(values, &Source::new("v", "")));
    let node = Node::from_json(&json!(text), &Source::new("a.yaml", text));
    let mut problems = Problems::new();
    let rendered = render_nunjucks(&node, &variables, &mut problems);
    rendered.ok_or_else(|| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

#[test]
fn templates_of_nunjucks_are_rendered() {
    let values = json!({
        "name": "Ann", "n": 2.345, "list": [1, 2], "map": {"a": [true, null]}, "text": "a-b-a", "html": "<a & 'b'>",
        "no": null,
    });
    for (template, expected) in [
        ("Hi {{name}}!\n", "Hi Ann!\n"),
        ("{{ name | upper | safe }}", "ANN"),
        ("{{ list }} {{ map.a[0] }}", "1,2 true"),
        ("{{ map | dump }}", "{\"a\":[true,null]}"),
        ("{{ map | dump(2) }}", "{\n  \"a\": [\n    true,\n    null\n  ]\n}"),
        ("{{ nick or name }} {{ nick | default('x') }} {{ no | d('x', true) }}", "Ann x x"),
        ("{% if nick %}a{% elseif name === 'Ann' %}b{% else %}c{% endif %}", "b"),
        ("{% if not nick and name !== \"Bo\" %}b{% endif %}", "b"),
        ("{% for i in list %}\n- {{ i }}\n{% endfor %}\n", "\n- 1\n\n- 2\n\n"),
        ("{% for i in list -%} {{ i }} {%- endfor %}", "12"),
        ("a{# gone #}b", "ab"),
        ("{# alone #}", ""),
        ("{% raw %}{{ \"name\" }}\\{% endraw %}{{ name }}", "{{ \"name\" }}\\Ann"),
        ("{{ text | replace('a', 'c') }} {{ text | replace('a', 'c', 1) }}", "c-b-c c-b-a"),
        ("{{ n | round(2) }} {{ 2.5 | round }} {{ n | round(1, 'floor') }}", "2.35 3 2.3"),
        ("{{ html | escape }}", "&lt;a &amp; &#39;b&#39;&gt;"),
        ("{{ list | sum }} {{ list | length }} {{ list.length }} {{ list.join('+') }}", "3 2 2 1+2"),
        ("{{ name.toUpperCase() }} {{ text.includes('b') }} {{ text.split('-') | last }}", "ANN true a"),
        ("{{ 'a b' | urlencode }} {{ 'one two three' | truncate(9) }}", "a%20b one two..."),
        ("{{ '[1, 2]' | load | last }}", "2"),
        ("{{ list | join(', ') }} {{ list | join }} {{ list.join() }}", "1, 2 12 1,2"),
        ("{% for key, value in map %}{{ key }}={{ value | first }}{% endfor %}", "a=true"),
        ("{{ '1' == 1 }} {{ '10' > 9 }} {{ '2' * 3 }} {{ 'x' == 1 }} {{ '1' + 1 }}", "true true 6 false 11"),
        ("{% set x = 1 %}{{ x if x == null else 'no' }}", "no"),
        ("{ \"a\": {} } ${{ }} {{ 'it''s'", "{ \"a\": {} } ${{ }} {{ 'it''s'"),
    ] {
        assert_eq!(render(template, &values), Ok(expected.to_owned()), "{template}");
    }
}

#[test]
fn what_is_not_supported_is_reported() {
    for (template, expected) in [
        ("a\n{{ nick }}", "unknown variable `nick`"),
        ("{{ name | urlize }}", "unknown filter `urlize`"),
        ("{{ name | select }}", "unknown filter `select`"),
        ("a\n\n{% include 'b' %}", "unknown statement `include`"),
        ("{{ name.padStart(3) }}", "has no method named `padStart`"),
    ] {
        let problem = render(template, &json!({"name": "Ann"})).unwrap_err();
        assert!(problem.contains(expected), "{template}: {problem}");
    }
}

#[test]
fn a_problem_is_at_the_word_in_the_tag() {
    let text = "nick:\n{{ name }} {{ nick }}";
    let source = Source::new("a.txt", text);
    let node = Node { span: Span::new(0, text.len()), ..Node::from_json(&json!(text), &source) };
    let variables = Variables::new().layer(&Node::from_json(&json!({"name": "Ann"}), &Source::new("v", "")));
    let mut problems = Problems::new();
    assert_eq!(render_nunjucks(&node, &variables, &mut problems), None);
    assert_eq!(problems[0].to_string(), "a.txt:2:15: unknown variable `nick`");
}

#[test]
fn no_template_makes_the_translation_panic() {
    let seeds = ["{% raw %}{{ a }}{% endraw %}{# b #}{{ c === \"d\\\"\" }}{% elseif null %}", "{{'\\", "{%-"];
    for seed in seeds {
        for cut in (0..=seed.len()).filter(|cut| seed.is_char_boundary(*cut)) {
            let _ = render(&seed[cut..], &json!({}));
            let _ = render(&seed[..cut], &json!({}));
        }
    }
}
