use serde_json::json;

use super::variables;
use crate::{Format, Template};

/// Strings from which others are generated: all of the syntax, and inputs that failed in the past.
const CORPUS: &[&str] = &[
    "{{ a.b[0]['c'] }} {{- x -}} {# c #}",
    "{% for k, v in o.items() if v %}\n{{ loop.index }}{% else %}-{% endfor %}",
    "{% if a is defined and not b %}1{% elif c in [1, 2] %}2{% else %}3{% endif %}",
    "{% macro m(a, b=1) %}{{ a ~ b }}{% endmacro %}{{ m('x', b=2) }}",
    "{% set n = namespace(i=0) %}{% set n.i = n.i + 1 %}{{ n.i }}",
    "{{ {'a': [1, 2.5, none, true]}|tojson(2) }}",
    "{{ 'text'[1:3:-1]|upper|indent(2, first=true) }}",
    "{{ -1 * (2 - 3) / 4 % 5 >= 6 == true }}",
    "/^{{ name }}\\d+$/gi",
    "{name} ${name} ${x:-y} $1 {{.name}} \\$",
    "{{ strftime('2024-05-01T10:20:30+02:00', '%d %B %Y %%') }}",
    "{{ list|selectattr('a', 'eq', 1)|map(attribute='b', default=[])|sort|first }}",
    "{{ 'ü\\'\\n' }}{{ '🎈'|length }}{{ 名 }}",
    "{{}} {{ }} {% %} {#",
    "{{ 9999999999999999999999 - 1e5 }}",
    "{{ users.0.name }}",
];

const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "-",
    "'",
    "\"",
    "\\",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "|",
    ".",
    ",",
    ":",
    "=",
    "==",
    " if ",
    " else ",
    " is ",
    " not ",
    " in ",
    "\n",
    " ",
    "0",
    "1.5",
    "99999999999",
    "é",
    "🎈",
    "/",
    "$",
    "${",
    "name",
    "a",
    "%",
    "loop",
    "range(3)",
    "endfor",
    "for x in list",
];

/// Reproducible pseudo-random number generator.
struct Row(u64);

impl Row {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap()
    }

    fn place(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

fn changed(text: &str, row: &mut Row) -> String {
    let (one, other) = (row.place(text), row.place(text));
    let (start, end) = (one.min(other), one.max(other));
    match row.below(4) {
        0 => format!("{}{}", &text[..start], &text[end..]),
        1 => format!("{}{}{}", &text[..start], PIECES[row.below(PIECES.len())], &text[start..]),
        2 => format!("{}{}{}", &text[..end], &text[start..end], &text[end..]),
        _ => format!("{}{}", &text[..start], CORPUS[row.below(CORPUS.len())]),
    }
}

#[test]
fn no_input_causes_a_panic() {
    let values = variables(json!({
        "a": {"b": [{"c": 1}]}, "x": "{{ a.b }}", "o": {"k": 1}, "name": "A.b", "list": [{"a": 1, "b": 2}],
        "loopy": "{{ loopy }}", "users": [{"name": "U"}], "b": false, "c": 2,
    }));
    let mut row = Row(0x5eed);
    for round in 0..20_000 {
        let mut text = CORPUS[round % CORPUS.len()].to_owned();
        for _ in 0..=row.below(5) {
            text = changed(&text, &mut row);
        }
        for format in [Format::Jinja, Format::FString, Format::Golang, Format::Env] {
            match Template::parse_as(&text, format) {
                Ok(Some(template)) => {
                    let _ = template.names();
                    if let Err(error) = template.render(&values) {
                        assert!(text.get(error.range.clone()).is_some(), "{text:?}: {error:?}");
                    }
                }
                Ok(None) => {}
                Err(error) => assert!(text.get(error.range.clone()).is_some(), "{text:?}: {error:?}"),
            }
        }
    }
}
