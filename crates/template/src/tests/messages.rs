use serde_json::json;

use super::refused;

#[track_caller]
fn check(text: &str, message: &str, at: &str, help: &str) {
    let values = json!({"user": {"name": "A", "email": "e"}, "list": [1, 2], "no": null, "x": "v", "n": 5});
    let (found, place, advice) = refused(text, values);
    assert_eq!((found.as_str(), place.as_str(), advice.as_str()), (message, at, help), "{text}");
}

#[test]
fn an_unknown_name_suggests_the_nearest_one() {
    check("a {{ usr.name }}", "unknown variable `usr`", "usr", "did you mean `user`?");
    check("{{ usr }}", "unknown variable `usr`", "usr", "did you mean `user`?");
    check("{{ zebra }}", "unknown variable `zebra`", "zebra", "known variables: user, list, no, x, n");
    check(
        "{{ x or zebra2 and x }}{{ zebra }}",
        "unknown variable `zebra`",
        "zebra",
        "known variables: user, list, no, x, n",
    );
}

#[test]
fn an_unknown_member_suggests_the_nearest_one() {
    check("{{ user.nmae }}", "`user` has no member `nmae`", "nmae", "did you mean `name`?");
    check("{{ user['qq'] }}!", "`user` has no member `qq`", "'qq'", "known members: name, email");
    check("{{ list[2] }}", "`list` has no item 2: its length is 2", "2", "the first item is 0, the last is -1");
    check("{{ user.name.first }}", "`user.name` is a string, so it has no member `first`", "first", "");
    check("{{ no.a }}", "`no` is null, so it has no member `a`", "a", "");
    check("{{ [1][3] }}", "`the value` has no item 3: its length is 1", "3", "");
    check("{{ []|first }}", "the list is empty, so it has no first item", "first", "");
    check("{{ [{'a': 1}]|map(attribute='b') }}", "an item of the list has no member `b`", "map", "known members: a");
}

#[test]
fn invalid_expressions_get_a_suggestion() {
    check("{{users.0.name}}", "an item of a list is written in brackets", "0", "write `users[0].name`");
    check("{{ a.1.2x }}", "a name cannot begin with a digit", "2x", "");
    check("{{ a && b }}", "`&` is not allowed in a template expression", "&", "write `and`");
    check("{{ !a }}", "`!` is not allowed in a template expression", "!", "write `not`");
    check("{{ a || b }}", "expected the name of a filter instead of `|`", "|", "write `or` for alternatives");
    check("{{ a = 1 }}", "expected the end of the expression instead of `=`", "=", "values are compared with `==`");
    check(
        "{{ a b }}",
        "expected the end of the expression instead of `b`",
        "b",
        "to keep `{{` as text, write `{{ '{{' }}`",
    );
    check("{{ a + }}", "an expression is missing", "", "");
    check("{{ if }}", "expected an expression instead of `if`", "if", "`if` is a word of the template language");
    check("{{ 'don\\t' + 'x\\q' }}", "unknown escape `\\q`", "\\q", "a backslash itself is written `\\\\`");
    check("{{ don't }} }}", "this `{{` is not closed", "{{", "a quote or bracket inside it is not closed");
    check("{{ a } b {{ c }}", "this `{{` is not closed", "{{", "it is closed with two braces, `}}`");
    check("{{{ x }}}", "expected `:` instead of `}`", "}", "");
}

#[test]
fn invalid_statements_name_the_missing_part() {
    check("{% if %}", "an expression is missing", "", "");
    check("{% if x %}a", "`{% endif %}` is missing for `{% if x %}`", "{% if x %}", "");
    check("{% endif %}", "`endif` does not belong to a statement before it", "{% endif %}", "");
    check("{% for a in list %}{% endif %}", "expected `endfor` instead of `endif`", "{% endif %}", "");
    check("{% fro a in list %}", "unknown statement `fro`", "fro", "did you mean `for`?");
    check(
        "{% 1 %}",
        "unknown statement `1`",
        "1",
        "known statements: if, for, set, macro, elif, else, endif, endfor, endmacro",
    );
    check("{% set a %}b{% endset %}", "`=` is missing", "", "write `{% set name = value %}`");
    check("{% set x[0] = 1 %}", "only a name or a member of a namespace can be set", "x[0]", "");
    check(
        "{% set user.a = 1 %}",
        "only members of a namespace can be set",
        "user",
        "make one with `{% set name = namespace() %}`",
    );
    check("{% for a in user %}{% endfor %}", "a loop needs a list, not a map", "user", "write `….items()`");
    check("{% for a, b in list %}{% endfor %}", "an item is a number, not a list of 2 parts", "list", "");
}

#[test]
fn unknown_operations_suggest_the_nearest_one() {
    check("{{ x|uper }}", "unknown filter `uper`", "uper", "did you mean `upper`?");
    check("{{ x|default('a') }}", "unknown filter `default`", "default", "write `value if value is defined else …`");
    check("{{ x is defned }}", "unknown test `defned`", "defned", "did you mean `defined`?");
    check("{{ rnge(3) }}", "unknown function `rnge`", "rnge", "did you mean `range`?");
    check("{{ x.uper() }}", "text has no method named `uper`", "uper", "did you mean `upper`?");
    check("{{ x() }}", "`x` is a variable, which cannot be called", "x", "");
    check("{{ x.y.z() }}", "`x` is a string, so it has no member `y`", "y", "");
    check("{{ (1)() }}", "a number cannot be called", "(1)", "");
}

#[test]
fn operations_name_the_types_they_accept() {
    check("{{ list|upper }}", "`upper` works on text, not on a list", "upper", "");
    check("{{ none + 1 }}", "`+` cannot be used with null", "none + 1", "");
    check("{{ no > 1 }}", "`>` cannot be used with null", "no > 1", "");
    check("{{ x - 1 }}", "`-` cannot be used with text and a number", "x - 1", "");
    check("{{ list < 3 }}", "`<` cannot be used with a list and a number", "list < 3", "");
    check("{{ x|join(1, 2) }}", "`join` is given too many arguments", "join", "it is written `join(list, sep=\",\")`");
    check("{{ list|join(by='-') }}", "`join` has no argument named `by`", "join", "known arguments: list, sep");
    check("{{ x|indent('a') }}", "`indent` takes a number here, not text", "indent", "");
    check(
        "{{ range() }}",
        "`range` needs the `start` argument",
        "range()",
        "it is written `range(start, stop, step=1)`",
    );
    check("{{ range(1, 2, 0) }}", "the step of `range` cannot be 0", "range(1, 2, 0)", "");
    check(
        "{{ [1, 'a']|sort }}",
        "`sort` works on a list of numbers or a list of strings, not on a mixture",
        "sort",
        "",
    );
    check("{{ raise_exception('bad') }}", "bad", "raise_exception('bad')", "");
    check("{{ strftime_now('%Y') }}", "the time is unknown here", "strftime_now('%Y')", "");
    check(
        "{{ strftime('soon', '%Y') }}",
        "`soon` is not a date",
        "strftime('soon', '%Y')",
        "write it as `2024-05-01` or `2024-05-01T10:20:30Z`",
    );
    check("{{ randomInt(1, 2) }}", "there is no whole number from 2 to 1", "randomInt(1, 2)", "");
    check("{{ range }}", "a function cannot be converted to text", "range", "call it, with `()`");
}
