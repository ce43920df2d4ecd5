//! The template language, told from its tables.

use crate::filter::FILTERS;
use crate::function::FUNCTIONS;
use crate::method;
use crate::operation::{Entry, Operation};
use crate::predicate::TESTS;

/// A chapter of the reference.
#[derive(Debug, Clone)]
pub struct Chapter {
    /// What its entries are.
    pub title: &'static str,
    /// In the order they are told.
    pub entries: Vec<Entry>,
}

/// Everything the template language knows.
pub fn reference() -> Vec<Chapter> {
    let chapter = |title, entries: &[Entry]| Chapter { title, entries: entries.to_vec() };
    let table = |title, operations: &[Operation]| Chapter {
        title,
        entries: operations.iter().map(|operation| operation.entry).collect(),
    };
    vec![
        chapter("Expressions", EXPRESSIONS),
        chapter("Statements", STATEMENTS),
        table("Filters", FILTERS),
        table("Functions, which are filters as well", FUNCTIONS),
        table("Tests", TESTS),
        table("Methods of text", method::TEXT),
        table("Methods of maps", method::MAP),
    ]
}

const fn entry(
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    example: &'static str,
    shows: &'static str,
) -> Entry {
    Entry { name, usage, doc, example, shows: Some(shows) }
}

const EXPRESSIONS: &[Entry] = &[
    entry(
        "values",
        "1  1.5  'text'  true  none",
        "Numbers, text in either quotes, booleans, null.",
        "{{ \"it's\" }}",
        "it's",
    ),
    entry(
        "lists and maps",
        "[a, b]  (a, b)  {'name': a}",
        "A list, also in parentheses; a map.",
        "{{ {'a': [1, 2]} }}",
        "{\"a\":[1,2]}",
    ),
    entry(
        "members",
        "a.name  a['name']  a[0]  a[-1]",
        "A member of a map, an item of a list, a character of text.",
        "{{ [1, 2][-1] }}",
        "2",
    ),
    entry(
        "parts",
        "a[start:stop:step]",
        "A part of a list or of text.",
        "{{ 'abcd'[1:3] }}{{ [1, 2, 3][::-1] }}",
        "bc3,2,1",
    ),
    entry(
        "arithmetic",
        "+  -  *  /  %",
        "Numbers are calculated with; `+` also joins text and lists.",
        "{{ 1 + 2 * 3 }}{{ 'a' + 1 }}",
        "7a1",
    ),
    entry("~", "a ~ b", "Joins anything as text.", "{{ 1 ~ 2 }}", "12"),
    entry(
        "comparison",
        "==  !=  <  <=  >  >=",
        "Compares numbers with numbers and text with text; `==` anything.",
        "{{ 2 > 1 }}",
        "true",
    ),
    entry(
        "logic",
        "and  or  not",
        "Gives the side that decides. False are null, false, 0 and what is empty.",
        "{{ '' or 'b' }}",
        "b",
    ),
    entry(
        "in",
        "a in b  a not in b",
        "Whether a list holds it, a text contains it, a map has a member of the name.",
        "{{ 'a' in ['a'] }}",
        "true",
    ),
    entry(
        "choice",
        "a if condition else b",
        "One of two values; nothing without `else`.",
        "{{ 'yes' if 1 > 2 else 'no' }}",
        "no",
    ),
];

const STATEMENTS: &[Entry] = &[
    entry(
        "if",
        "{% if a %}…{% elif b %}…{% else %}…{% endif %}",
        "The first part whose condition holds.",
        "{% if 1 > 2 %}a{% elif true %}b{% else %}c{% endif %}",
        "b",
    ),
    entry(
        "for",
        "{% for name in list if condition %}…{% else %}…{% endfor %}",
        "The text once for each item; several names take an item apart. `loop` has index, index0, revindex, revindex0, first, last, length, previtem and nextitem. `else` is for no item at all.",
        "{% for a, b in [[1, 2], [3, 4]] %}{{ loop.index }}:{{ a + b }} {% endfor %}",
        "1:3 2:7 ",
    ),
    entry(
        "set",
        "{% set name = value %}",
        "Gives a value a name, up to the end of the loop or macro.",
        "{% set a = 1 %}{{ a }}",
        "1",
    ),
    entry(
        "macro",
        "{% macro name(a, b=1) %}…{% endmacro %}",
        "A text that can be called.",
        "{% macro twice(a) %}{{ a }}{{ a }}{% endmacro %}{{ twice('x') }}",
        "xx",
    ),
    entry("comment", "{# … #}", "Goes away, if there is a template in the text besides.", "{# a #}{{ 1 }}", "1"),
    entry("white space", "{{- … -}}  {%- … -%}", "`-` takes the white space on its side.", "a {{- 'b' -}} c", "abc"),
];
