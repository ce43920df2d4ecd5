use std::time::Duration;

use super::*;
use crate::Runtime;

fn names(text: &str) -> Vec<String> {
    Expression::parse(text).unwrap().free_names().iter().map(|free| free.name.clone()).collect()
}

fn refusal(text: &str) -> SyntaxError {
    Expression::parse(text).unwrap_err()
}

#[test]
fn free_names_are_those_that_are_not_declared() {
    assert_eq!(names("actual > data.threshold && Math.max(other, actual)"), ["actual", "data", "other"]);
    assert_eq!(names("const own = input.x; return own.map((n) => n + outer)"), ["input", "outer"]);
    assert_eq!(names("(a, b = c) => a + b + console.log(undefined)"), ["c"]);
    assert_eq!(names("({ key: value, short, method() { return this.x } })"), ["value", "short"]);
    assert_eq!(names("typeof maybe === 'undefined'"), [""; 0]);
    assert_eq!(names("typeof maybe === 'number' && maybe > 1"), ["maybe"]);
    let expression = Expression::parse("  actual +\n é").unwrap();
    let places: Vec<_> = expression.free_names().iter().map(|free| &expression.text()[free.range.clone()]).collect();
    assert_eq!(places, ["actual", "é"]);
    assert!(expression.uses("actual") && !expression.uses("data"));
}

#[test]
fn invalid_expressions_are_reported_with_location_and_help() {
    for (text, range, words) in [
        ("actual >", 8..8, "not complete"),
        ("a b", 2..2, ""),
        ("actual.(x)", 7..8, ""),
        ("", 0..0, ""),
        ("   ", 0..0, ""),
        ("// nothing", 0..0, ""),
        ("return 1 +", 10..10, ""),
        ("1) + (2", 1..2, ""),
        ("import x from 'y'; return x", 0..0, ""),
        ("let x = 1; let x = 2; return x", 15..16, ""),
    ] {
        let error = refusal(text);
        assert!(error.range.start <= text.len() && error.range.end <= text.len(), "{text}: {error:?}");
        assert!(error.message.contains(words), "{text}: {error:?}");
        if range != (0..0) {
            assert!(error.range.start.abs_diff(range.start) <= 1, "{text}: {error:?}");
        }
    }
    let error = refusal("const x = 1; x > 0");
    assert_eq!((error.message.as_str(), error.range), ("several statements do not have a value", 13..18));
    assert!(error.help.unwrap().contains("return"));
}

#[test]
fn a_top_level_return_distinguishes_a_body_from_an_expression() {
    for (text, form) in [
        ("x", "return (\nx\n)"),
        ("() => { return x }", "return (\n() => { return x }\n)()"),
        ("list.map((n) => { return n })", "return (\nlist.map((n) => { return n })\n)"),
        ("if (x) return 1; return 2", "\nif (x) return 1; return 2\n"),
        ("x ; // no more", "return (\nx\n)"),
        ("'return '", "return (\n'return '\n)"),
        ("{ a: 1 }", "return (\n{ a: 1 }\n)"),
    ] {
        assert_eq!(Expression::parse(text).unwrap().0.body, form, "{text}");
    }
    for (text, is_async) in [
        ("await x", true),
        ("async () => await x", false),
        ("for await (const a of x) return a", true),
        ("'await'", false),
    ] {
        assert_eq!(Expression::parse(text).unwrap().0.is_async, is_async, "{text}");
    }
}

#[test]
fn the_globals_are_sorted_and_match_the_engine() {
    for name in ["Array", "unescape", "console", "structuredClone", "URL", "globalThis"] {
        assert!(is_global(name), "{name}");
    }
    let mut runtime = Runtime::new(crate::Options::new("/")).unwrap();
    let names = "Object.getOwnPropertyNames(globalThis).join(' ')";
    let names = runtime.evaluate(&Expression::parse(names).unwrap(), &|_| None, Duration::from_secs(9)).unwrap();
    for name in names.as_str().unwrap().split(' ') {
        assert!(is_global(name), "{name} exists as well");
    }
}

#[test]
fn no_input_causes_a_panic() {
    let corpus = [
        "((((((((",
        "))))",
        "{{{{",
        "`${`${`",
        "return return",
        "await await",
        "async async",
        "=>",
        "() =>",
        "a ? b :",
        "/(/",
        "/[/u",
        "'\\u{110000}'",
        "\"\\",
        "/*",
        "//",
        "<!--",
        "#x",
        "@x",
        "class A { #b; static { await } }",
        "super()",
        "new.target",
        "import.meta",
        "import('x')",
        "yield",
        "arguments",
        "\u{2028}",
        "\u{feff}",
        "\0",
        "é",
        "😀",
        "x!",
        "<T>x",
        "x as y",
        "enum A {}",
        "0n",
        "08",
        "1_",
        "0x",
        "...x",
        "a?.[0]?.(1)",
        "a ??= b",
        "label: x",
        "with (a) b",
        "function",
        "let",
        "let [",
        "var a = 1",
        "export default 1",
        "export { x }",
        "return;",
        "throw 1",
        "debugger",
        ",,",
    ];
    for text in corpus {
        for other in corpus {
            let _ = Expression::parse(text);
            let _ = Expression::parse(&format!("{text} {other}"));
        }
        for (prefix, suffix) in [("return ", ""), ("(", ")"), ("", "\n//"), ("`${", "}`"), ("() => {", "}")] {
            let _ = Expression::parse(&format!("{prefix}{text}{suffix}"));
        }
    }
}

#[test]
fn deep_nesting_is_rejected_or_parsed_but_never_fatal() {
    for piece in [
        "(", "[", "{a:", "!", "-", "a=>", "a?b:", "a+", "a.", "f(", "`${", "await ", "typeof ", "new ", "if(a)",
        "else ", "a,",
    ] {
        for count in [100, 1_000, 5_000, 20_000] {
            let _ = Expression::parse(&piece.repeat(count));
            let _ = Expression::parse(&format!("{}a", piece.repeat(count)));
        }
    }
    let sum = vec!["1"; 300].join(" + ");
    assert!(Expression::parse(&sum).is_ok());
}

#[test]
fn an_expression_has_no_access_to_modules_and_files() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret.json");
    std::fs::write(&file, "42").unwrap();
    let mut runtime = Runtime::new(crate::Options::new(directory.path())).unwrap();
    let path = file.display();
    let refused = refusal("(await import('./secret.json')).default");
    assert_eq!((&*refused.message, refused.range), ("an expression has no access to modules", 7..30));
    for text in
        [format!("await eval(\"import('{path}')\")"), format!("await new Function(\"return import('{path}')\")()")]
    {
        let expression = Expression::parse(&text).unwrap();
        let refused = runtime.evaluate(&expression, &|_| None, Duration::from_secs(1)).unwrap_err();
        assert!(refused.to_string().contains("an expression has no access to modules"), "{text}: {refused}");
    }
}
