use serde_json::json;

use super::{rendered, shown, variables};
use crate::filter::FILTERS;
use crate::function::FUNCTIONS;
use crate::method::{MAP, TEXT};
use crate::operation::Operation;
use crate::predicate::TESTS;
use crate::{Ambient, Format, Template, TemplateError};

/// Text of the reference page.
const PAGE: &str = include_str!("../../../../docs/reference/templates.md");

/// Returns the cells of each row of the tables in `section`.
fn rows(section: &str) -> Vec<Vec<String>> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| {
        let row = row.replace("\\|", "\u{1}");
        let cells = row.strip_prefix("| ").unwrap().strip_suffix(" |").unwrap().split(" | ");
        cells.map(|cell| cell.replace('\u{1}', "|")).collect()
    };
    rows.map(cells).collect()
}

/// Returns the text of a cell that contains code.
fn code(cell: &str) -> &str {
    cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap()
}

#[test]
fn the_page_describes_every_operation_and_its_examples_have_the_shown_results() {
    let tables = [
        ("Filters", FILTERS),
        ("Functions", FUNCTIONS),
        ("Tests", TESTS),
        ("String methods", TEXT),
        ("Map methods", MAP),
    ];
    for (heading, operations) in tables {
        let (_, section) = PAGE.split_once(&format!("# {heading}\n")).unwrap();
        let rows = rows(section.split("\n#").next().unwrap());
        let written: Vec<&str> = rows.iter().map(|row| code(&row[0])).collect();
        let known: Vec<&str> = operations.iter().map(|operation| operation.usage).collect();
        assert_eq!(written, known, "{heading}");
        for row in &rows {
            let example = code(&row[2]);
            match row[3].as_str() {
                // It depends on time or chance, or is an error.
                "" => assert!(Template::parse(example).unwrap().is_some(), "{example}"),
                becomes => assert_eq!(shown(example, json!({})), code(becomes).replace("\\n", "\n")),
            }
        }
        let mut names: Vec<&str> = operations.iter().map(Operation::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), operations.len());
    }
}

#[test]
fn each_remaining_example_on_the_page_has_its_documented_result() {
    let (mut with_variables, mut without) = (0, 0);
    for row in rows(PAGE.split("## Filters").next().unwrap()) {
        if let [template, variables, becomes] = &row[..] {
            let becomes = becomes
                .strip_prefix("error: ")
                .map_or_else(|| Ok(code(becomes).to_owned()), |error| Err(error.to_owned()));
            let variables = serde_json::from_str(code(variables)).unwrap();
            let rendered = rendered(code(template), variables).map(|value| value.to_string());
            let reason = |error: TemplateError| match error.help {
                Some(help) => format!("{} ({help})", error.message),
                None => error.message,
            };
            assert_eq!(rendered.map_err(reason), becomes, "{row:?}");
            with_variables += 1;
        } else {
            assert_eq!(shown(code(&row[2]), json!({})), code(&row[3]), "{row:?}");
            without += 1;
        }
    }
    assert_eq!((with_variables, without), (11, 16));
}

#[test]
fn text_that_is_not_a_template_is_unchanged() {
    let texts = [
        "",
        "a",
        "{{}}",
        "{{ }}",
        "{{",
        "{{ unclosed",
        "a {{ [1,2",
        "{% if",
        "no {# hidden #}comment",
        "{# a",
        "{% %}\n",
        "}} {{",
    ];
    for text in texts {
        assert!(Template::parse(text).unwrap().is_none(), "{text}");
    }
    assert_eq!(shown("{{}} {{ x }} {{ open", json!({"x": 1})), "{{}} 1 {{ open");
}

#[test]
fn a_single_placeholder_keeps_the_type_of_its_value() {
    let values = json!({"user": {"id": 1, "tags": ["a"]}, "users": [{"profile": {"p": 1}}], "flag": false, "no": null,
                        "user-name": "dash", "a.b": "dot", "n": 1.50, "text": "abc", "none": "n"});
    for (text, wanted) in [
        ("{{user}}", json!({"id": 1, "tags": ["a"]})),
        (" {{ user.tags }}\n", json!(["a"])),
        ("{{users[0].profile}}", json!({"p": 1})),
        ("{{ user[\"tags\"][0] }}", json!("a")),
        ("{{-flag-}}", json!(false)),
        ("{{no}}", json!(null)),
        ("{{user-name}}", json!("dash")),
        ("{{a.b}}", json!("dot")),
        ("{{n}}", json!(1.5)),
        ("{{text.length}}", json!(3)),
        ("{{users.length}}", json!(1)),
        ("{{ users[-1] }}", json!({"profile": {"p": 1}})),
        ("{{ users[-1].profile.p }}", json!(1)),
        // The result of an expression is text.
        ("{{ 1 + 2 }}", json!("3")),
        ("{{ user.id|abs }}", json!("1")),
        ("{{ true }}", json!("true")),
        ("{{ none }}", json!("")),
    ] {
        assert_eq!(rendered(text, values.clone()), Ok(wanted), "{text}");
    }
}

#[test]
fn values_embedded_in_text_are_converted_to_strings() {
    let values =
        json!({"no": null, "yes": true, "list": [1, [2.0, 3], null, {"a": "é\""}], "map": {"a": [1.0, "x"]}, "n": 0.1});
    assert_eq!(
        shown("[{{no}}|{{yes}}|{{list}}|{{map}}|{{n}}]", values),
        "[|true|1,2,3,,{\"a\":\"é\\\"\"}|{\"a\":[1,\"x\"]}|0.1]"
    );
}

#[test]
fn white_space_around_tags_is_trimmed() {
    for (text, wanted) in [
        ("{{ 'a' }}\n", "a"),
        ("{{ 'a' }}\n\n", "a\n"),
        ("x\n  {% if true %}\n  y\n  {% endif %}\nz", "x\n  y\nz"),
        ("x {% if true %}\ny{% endif %}", "x y"),
        ("{{ 'a' }}\nb", "a\nb"),
        ("  {{ 'a' }}", "  a"),
        ("a \n {{- 'b' -}} \n c", "abc"),
        ("a {%- if true -%} b {%- endif %} c", "ab c"),
        ("  {# c #}\n{{ 'a' }}", "a"),
        ("{{ \"a\" }}{{- \"-\" -}}{{ \"b\" }}", "a-b"),
        ("{{-1}}", "1"),
        ("{{ -1 }}", "-1"),
    ] {
        assert_eq!(shown(text, json!({})), wanted, "{text:?}");
    }
}

#[test]
fn operators_bind_as_in_jinja() {
    for (text, wanted) in [
        ("{{ 1 + 2 * 3 - 4 / 2 }}", "5"),
        ("{{ (1 + 2) * 3 }}", "9"),
        ("{{ 2 - 1 - 1 }}", "0"),
        ("{{ -2 * -3 }}", "6"),
        ("{{ not false and false }}", "false"),
        ("{{ not 1 == 2 }}", "true"),
        ("{{ 1 < 2 and 'a' < 'b' }}", "true"),
        ("{{ 'a' not in 'bc' }}", "true"),
        ("{{ not 'a' in 'bc' }}", "true"),
        ("{{ 'b' in {'b': 1} }}", "true"),
        ("{{ 1 if false else 2 if false else 3 }}", "3"),
        ("{{ -3|abs }}", "3"),
        ("{{ 1 is odd and not 1 is even }}", "true"),
        ("{{ 3 is not even }}", "true"),
        ("{{ 'a' + 1 + none|string }}", "a1"),
        ("{{ [1] + [2] == [1, 2] }}", "true"),
        ("{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}", "true"),
        ("{{ 1 == '1' }}", "false"),
        ("{{ none == none }}", "true"),
        ("{{ 7 % 4 }}{{ 1 / 4 }}", "30.25"),
        ("{{ 1 / 0 }}", "Infinity"),
        ("{{ 'x' if none }}", ""),
        ("{{ [1, 2,][0] }}{{ ('a', 'b')[1] }}", "1b"),
        ("{{ 'abc'[::-1] }}{{ 'abc'[-2:] }}{{ 'abc'[:1] }}{{ [1,2,3,4][::2] }}", "cbabca1,3"),
        ("{{ {'a': {'b': {'c': 1}}}.a.b['c'] }}", "1"),
        ("{{ {'a': {'b': 1}}}}", "{\"a\":{\"b\":1}}"),
        ("{{ '\\'\\n\\\\' }}", "'\n\\"),
        ("{{ 'a b'.split()[1].upper().lower() }}", "b"),
        ("{{ ['B', 'a', 'A', 'b']|sort }}", "a,A,b,B"),
    ] {
        assert_eq!(shown(text, json!({})), wanted, "{text}");
    }
}

#[test]
fn loop_variables_have_the_expected_values() {
    let text = "{% for x in xs if x > 1 %}{{ loop.index0 }}{{ loop.first }}{{ loop.revindex }}\
                {{ loop.previtem if loop.previtem is defined else '-' }}{{ loop.nextitem if not loop.last }} {% endfor %}";
    assert_eq!(shown(text, json!({"xs": [1, 2, 3, 4]})), "0true3-3 1false224 2false13 ");
    assert_eq!(shown("{% for x in xs %}{{ x }}{% else %}none{% endfor %}", json!({"xs": []})), "none");
    let text = "{% for k, v in o.items() %}{{ k }}={{ v }};{% endfor %}";
    assert_eq!(shown(text, json!({"o": {"a": 1, "b": [2]}})), "a=1;b=2;");
}

#[test]
fn names_set_by_a_template_are_scoped_to_their_block() {
    let text = "{% for x in [1] %}{% set y = x %}{{ y }}{% endfor %}{{ y is defined }}";
    assert_eq!(shown(text, json!({})), "1false");
    let text = "{% if true %}{% set y = 2 %}{% endif %}{{ y }}";
    assert_eq!(shown(text, json!({"y": 1})), "2");
    let text = "{% macro m(a, b='-') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m('x') }}{{ m(b='y', a='z') }}";
    assert_eq!(shown(text, json!({"c": "!"})), "x-!zy!");
}

#[test]
fn a_variable_can_have_any_name() {
    let values = json!({"range": 3, "true": "t", "namespace": "ns", "loop": "l", "join": "j", "if": "i", "none": "n"});
    assert_eq!(shown("{{ range }} {{ range(2) }} {{ namespace }} {{ [1, 2]|join }}", values.clone()), "3 0,1 ns 1,2");
    assert_eq!(shown("x {{ true }} {{ loop }} {{ join }}", values.clone()), "x true l j");
    assert_eq!(rendered("{{ range }}", values).unwrap(), json!(3));
}

#[test]
fn is_defined_applies_only_to_variables_and_members() {
    let values = json!({"user": {"name": "A", "no": null}, "bad": "{{ nowhere }}"});
    for (text, wanted) in [
        ("{{ user is defined }}", "true"),
        ("{{ user.name is defined }}", "true"),
        ("{{ user.no is defined }}", "true"),
        ("{{ user.nmae is defined }}", "false"),
        ("{{ usr.name.first is undefined }}", "true"),
        ("{{ user.name[9] is defined }}", "false"),
        ("{{ 'b' if a is not defined else a }}", "b"),
    ] {
        assert_eq!(shown(text, values.clone()), wanted, "{text}");
    }
    assert!(rendered("{{ bad is defined }}", values).is_err());
}

#[test]
fn values_of_variables_are_escaped_in_a_regular_expression() {
    let values = json!({"name": "Alice", "price": "$5.00/a", "word": "a|b", "n": 1.5, "lines": "a\nb", "words": ["a|b"],
                        "class": "a-z", "zero": "0"});
    for (text, wanted) in [
        ("/{{name}}/i", "/Alice/i"),
        ("/^{{ price }}$/", "/^\\$5\\.00\\/a$/"),
        ("/{{ word }} {{ n }}/u", "/a\\|b 1\\.5/u"),
        ("/{% if true %}{{ word }}{% endif %}/", "/a\\|b/"),
        ("/{{ lines }}/", "/a\\nb/"),
        ("/{{ words[-1] }}/", "/a\\|b/"),
        ("/^[{{ class }}]+$/", "/^[a\\x2dz]+$/"),
        ("/^(a)\\1{{ zero }}{{ zero }}$/", "/^(a)\\1\\x300$/"),
        // Computed text is inserted into the expression without escaping.
        ("/{{ word|string }}/", "/a|b/"),
        ("/{{ ['a.', 'b.']|join('|') }}/", "/a.|b./"),
        ("{{ '/' + word + '/' }}", "/a|b/"),
        // These are not regular expression literals.
        ("/usr/{{ word }}", "/usr/a|b"),
        ("a/{{ word }}/", "a/a|b/"),
        ("/{{ word }}/{{ name }}", "/a|b/Alice"),
    ] {
        assert_eq!(shown(text, values.clone()), wanted, "{text}");
    }
}

#[test]
fn length_and_indexing_count_the_same_characters() {
    let values = json!({"s": "a🎈b"});
    for text in ["{{ s.length }}", "{{ s|length }}", "{% set t = s %}{{ t.length }}"] {
        assert_eq!(rendered(&format!("x{text}"), values.clone()), Ok(json!("x3")), "{text}");
    }
    assert_eq!(shown("{{ s[1] }}{{ s[s.length - 1] }}{{ s[-2] }}{{ s[1:] }}", values), "🎈b🎈🎈b");
}

#[test]
fn time_and_randomness_are_passed_in() {
    let ambient = Ambient { now_ms: Some(1_700_000_000_000), utc_offset_minutes: 60, seed: 7 };
    let variables = variables(json!({})).ambient(ambient);
    let show = |text: &str| Template::parse(text).unwrap().unwrap().render(&variables).unwrap();
    assert_eq!(show("{{ strftime_now('%Y-%m-%d %H:%M') }}"), "2023-11-14 23:13");
    assert_eq!(show("{{ strftime(1700000000000, '%S') }}"), "20");
    for _ in 0..50 {
        let number: i64 = show("{{ randomInt(6, 1) }}").as_str().unwrap().parse().unwrap();
        assert!((1..=6).contains(&number), "{number}");
    }
    assert!(["a", "b"].contains(&show("{{ select(['a', 'b']) }}").as_str().unwrap()));
}

#[test]
fn free_names_are_returned_with_their_locations() {
    let text = "{% for x in xs %}{{ x + y.z }}{{ loop.index }}{% endfor %}{% set a = b %}{{ a|join(c) }}{{ range(d) }}";
    let names = Template::parse(text).unwrap().unwrap().names();
    let found: Vec<(&str, &str)> =
        names.iter().map(|name| (name.value.as_str(), &text[name.span.start()..name.span.end()])).collect();
    assert_eq!(found, ["xs", "y", "b", "c", "d"].map(|name| (name, name)));
}

#[test]
fn other_formats_replace_names_with_values() {
    let values = variables(json!({"name": "Alice", "user": {"age": 5}, "list": [1], "path": "a/b"}));
    let show = |format, text: &str| match Template::parse_as(text, format).unwrap() {
        Some(template) => template.render(&values).unwrap(),
        None => json!("none"),
    };
    for (format, text, wanted) in [
        (Format::FString, "Hello { name }, {user.age}", json!("Hello Alice, 5")),
        (Format::FString, "{{literal}} {name}", json!("{literal} Alice")),
        (Format::FString, "{{}}", json!("{}")),
        (Format::FString, "{list}", json!([1])),
        (Format::FString, "plain", json!("none")),
        (Format::Env, "Hello ${name} $name. \\$name $(x) $5 a$", json!("Hello Alice Alice. $name $(x) $5 a$")),
        (Format::Env, "${who:-you} ${name-x} ${list", json!("you Alice ${list")),
        (Format::Env, "${user.age}", json!(5)),
        (Format::Env, "/^${path}$/", json!("/^a\\/b$/")),
        (Format::Golang, "Hello {{ .name }}: {{.user.age}}", json!("Hello Alice: 5")),
        (Format::Golang, "{{.list}}", json!([1])),
        (Format::Golang, "{{ open", json!("none")),
    ] {
        assert_eq!(show(format, text), wanted, "{text}");
    }
    for (format, text) in [
        (Format::FString, "a } b"),
        (Format::FString, "{name"),
        (Format::FString, "{}"),
        (Format::Golang, "{{if .a}}b{{end}}"),
    ] {
        assert!(Template::parse_as(text, format).is_err(), "{text}");
    }
    assert!(Template::parse_as("{nmae}", Format::FString).unwrap().unwrap().render(&values).is_err());
}
