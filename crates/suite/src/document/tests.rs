use super::*;

fn parse(text: &str) -> (Option<Node>, Vec<Diagnostic>) {
    let mut problems = Vec::new();
    let node = read(&Source::new("t.yaml", text), Language::Yaml, &mut problems);
    (node, problems)
}

fn value(text: &str) -> serde_json::Value {
    let (node, problems) = parse(text);
    assert!(problems.is_empty(), "{problems:?}");
    node.unwrap().to_json()
}

/// Returns `line:column` and message of the only problem.
fn problem(text: &str) -> String {
    let (_, problems) = parse(text);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let source = problems[0].source.as_ref().unwrap();
    format!("{}:{} {}", source.line, source.column, problems[0].message)
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    let read = value(
        "[true, False, yes, on, null, ~, 17, 017, 1_000, -3, +4, 0o17, 0x1F, 1.0, .5, 1e3, 1., 12:30, 1.2.3, '5', .]",
    );
    assert_eq!(
        read,
        serde_json::json!([
            true, false, "yes", "on", null, null, 17, 17, "1_000", -3, 4, 15, 31, 1.0, 0.5, 1000.0, 1.0, "12:30",
            "1.2.3", "5", "."
        ])
    );
    assert_eq!(problem("a: .nan"), "1:4 `.nan` is a number that JSON does not have");
    assert!(problem("a: 99999999999999999999").contains("more than 64 bits"));
    assert_eq!(value("a: -9223372036854775808"), serde_json::json!({"a": i64::MIN}));
}

#[test]
fn every_value_has_its_location() {
    let (node, _) = parse("a:\n  - x\n  - {k: [1, 2]}\nb: |\n  one\n  two\n\nc: end\n");
    let node = node.unwrap();
    let text = |node: &Node| node.source.text[node.span.start()..node.span.end()].to_owned();
    assert_eq!(text(node.get("a").unwrap()), "- x\n  - {k: [1, 2]}");
    let NodeKind::List(items) = &node.get("a").unwrap().kind else { panic!() };
    assert_eq!(text(items[1].get("k").unwrap()), "[1, 2]");
    assert_eq!(text(node.get("b").unwrap()), "one\n  two");
    assert_eq!(text(&node), node.source.text.trim_end());
}

#[test]
fn an_omitted_value_has_the_location_of_its_key() {
    let (node, _) = parse("runner:\nfixtures: x\n");
    let excerpt = node.unwrap().get("runner").unwrap().excerpt();
    assert_eq!((excerpt.line, excerpt.column, excerpt.length), (1, 1, 6));
}

#[test]
fn a_duplicate_key_is_reported_at_its_second_use_and_parsing_continues() {
    let (node, problems) = parse("a: 1\nb: 2\na: 3\nb: 4\n");
    assert_eq!(node.unwrap().to_json(), serde_json::json!({"a": 1, "b": 2}));
    let places: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(places, ["t.yaml:3:1: duplicate key `a`", "t.yaml:4:1: duplicate key `b`"]);
    assert_eq!(problems[0].help, ["it is first written on line 1"]);
    let many: String = (0..40).map(|index| format!("k{index}: 1\n")).collect();
    assert_eq!(problem(&format!("{many}k20: 2\n")), "41:1 duplicate key `k20`");
}

#[test]
fn a_line_that_continues_a_text_after_a_comment_is_reported_itself() {
    let found = problem("a: 5 # ok\n  b: 6\n");
    assert_eq!(found, "2:3 this line continues the text above, which a comment has ended");
    assert_eq!(problem("  a: 5\nb: 6\n"), "2:1 this line is not part of what is above it");
}

#[test]
fn keys_must_be_text() {
    assert_eq!(problem("env: {1: x}"), "1:7 a key must be a string, not a number");
    assert_eq!(problem("true: x"), "1:1 a key must be a string, not a boolean");
    assert_eq!(problem("? [a]\n: x"), "1:3 a key must be a string, not a list");
    assert_eq!(value("{'1': x, yes: y}"), serde_json::json!({"1": "x", "yes": "y"}));
}

#[test]
fn aliases_and_merge_keys_are_resolved() {
    assert_eq!(
        value("base: &b {x: 1, y: 2}\nuse: *b\nmore:\n  y: 3\n  <<: *b\nboth: {<<: [*b, {x: 9, z: 4}]}\n"),
        serde_json::json!({
            "base": {"x": 1, "y": 2}, "use": {"x": 1, "y": 2}, "more": {"y": 3, "x": 1},
            "both": {"x": 1, "y": 2, "z": 4}
        })
    );
    assert_eq!(problem("a: {<<: 5}"), "1:9 `<<` merges a map or a list of maps, not a number");
    assert_eq!(problem("a: *nope"), "1:4 an alias to an anchor that is not defined above it");
    assert_eq!(problem("a: &x [*x]"), "1:8 an anchor cannot contain itself");
    assert_eq!(value("{'<<': 5}"), serde_json::json!({"<<": 5}));
}

#[test]
fn an_alias_bomb_is_stopped() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    assert!(problem(&text).ends_with("aliases make this document longer than 100000 values"));
}

#[test]
fn tags_are_kept_and_core_tags_are_applied() {
    let (node, _) = parse("a: !re 5\nb: !!str 5\nc: !!int 5\nd: !set {k: v}\ne: ! 5");
    let node = node.unwrap();
    assert_eq!(node.to_json(), serde_json::json!({"a": "5", "b": "5", "c": 5, "d": {"k": "v"}, "e": "5"}));
    assert_eq!(node.get("a").unwrap().tag.as_deref(), Some("!re"));
    assert_eq!(node.get("d").unwrap().tag.as_deref(), Some("!set"));
    assert_eq!(node.get("b").unwrap().tag, None);
    assert_eq!(problem("a: !!int x"), "1:10 `x` is not a valid !!int");
}

#[test]
fn syntax_errors_have_a_location_and_a_clear_message() {
    for (text, expected) in [
        ("a:\n\tb: 1\n", "2:2 a tab in the indentation"),
        ("a:\n  b: true\n\tc: 1\n", "3:1 a tab in the indentation"),
        ("a: [1,\n", "1:4 this `[` is never closed"),
        ("a: b: c\n", "1:5 a `:` that does not start a value"),
        ("a: 'x\nb: 1\n", "2:1 a quoted string continues on a line that is not indented"),
        ("a: 'x\n", "1:4 a quote is never closed"),
        ("a: \"say 'hi\n", "1:4 a quote is never closed"),
        ("'a': \"b\n", "1:6 a quote is never closed"),
        ("a:\n  - 'it''s\n\n", "2:5 a quote is never closed"),
        ("a:\n  - b: 1\n  c: 2\n", "3:3 `c` has the indentation of the list above, not of its items"),
        ("a:\n  - b: 1\n  -c: 2\n", "3:3 expected `- ` here"),
        ("a: \"\\q\"\n", "1:4 an escape that YAML does not have, in double quotes"),
        ("a: @x\n", "1:4 unexpected character: `@`"),
        ("a: `x`\n", "1:4 unexpected character: a backtick"),
        ("a: 1\n---\nb: 2\n", "2:1 a second document in one file"),
    ] {
        assert_eq!(problem(text), expected, "{text:?}");
    }
}

#[test]
fn an_empty_document_is_null_and_crlf_and_byte_order_marks_are_accepted() {
    assert_eq!(value(""), serde_json::Value::Null);
    assert_eq!(value("# nothing\n"), serde_json::Value::Null);
    assert_eq!(value("\u{feff}a: 1\r\nb: x\r\n"), serde_json::json!({"a": 1, "b": "x"}));
}

#[test]
fn json_is_parsed_strictly() {
    let json = |text: &str| {
        let mut problems = Vec::new();
        let node = read(&Source::new("t.json", text), Language::Json, &mut problems);
        node.map(|node| node.to_json()).ok_or_else(|| problems[0].to_string())
    };
    assert_eq!(json("{\n\t\"a\": [1, \"\\ud83d\\ude00\\/\"]\n}"), Ok(serde_json::json!({"a": [1, "😀/"]})));
    assert_eq!(json("{\"a\": [1,]}"), Err("t.json:1:10: not valid JSON: trailing comma".to_owned()));
    assert!(json("{\n  // no\n  \"a\": 1}").unwrap_err().starts_with("t.json:2:3: not valid JSON"));
    assert!(json("a: 1").is_err());
    let mut problems = Vec::new();
    read(&Source::new("t.json", "{\"a\": 1, \"a\": 2}"), Language::Json, &mut problems);
    assert_eq!(problems[0].to_string(), "t.json:1:10: duplicate key `a`");
}

#[test]
fn a_file_that_is_not_utf_8_is_reported_at_its_first_invalid_byte() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"a: 1\nb: \xff\n").unwrap();
    assert_eq!(open(file.path(), "t.yaml").unwrap_err().to_string(), "t.yaml:2:4: the file is not UTF-8 text");
}

/// Asserts that every location is inside the text, regardless of the text.
fn hold_spans(node: &Node) {
    assert!(node.source.text.get(node.span.start()..node.span.end()).is_some(), "{:?}", node.span);
    match &node.kind {
        NodeKind::List(items) => items.iter().for_each(hold_spans),
        NodeKind::Map(entries) => entries.iter().for_each(|(name, value)| {
            assert!(node.source.text.get(name.span.start()..name.span.end()).is_some());
            hold_spans(value);
        }),
        _ => {}
    }
}

#[test]
fn no_mutated_input_breaks_the_parser() {
    let seed =
        "a: &x {k: [1, 'é', \"\\u00e9\"], <<: {z: !t ~}}\nb: *x\nc: |\n  block\n\n  text\nd: >-\n - x\n? e\n: f\n- g\n";
    let letters: Vec<char> = "\n\t :-[]{}&*!|>'\"%@#?,~0.<é\u{feff}\r".chars().collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..3_000 {
        let mut text: Vec<char> = seed.chars().collect();
        for _ in 0..=random(6) {
            let at = random(text.len());
            match random(3) {
                0 => text[at] = letters[random(letters.len())],
                1 => text.insert(at, letters[random(letters.len())]),
                _ => drop(text.remove(at)),
            }
        }
        let (node, problems) = parse(&text.into_iter().collect::<String>());
        assert!(node.is_some() || !problems.is_empty());
        if let Some(node) = node {
            hold_spans(&node);
        }
    }
}

#[test]
fn a_bracket_that_is_not_closed_is_reported_at_itself() {
    assert_eq!(problem("- a:\n    b: {c: d\n  e: f\n"), "2:8 this `{` is never closed");
    assert_eq!(problem("- a: [c, d\n- e\n"), "1:6 this `[` is never closed");
    assert_eq!(problem("a: [b\nc: d\n"), "1:4 this `[` is never closed");
    assert_eq!(problem("a:\n  - { b: c\n  - d: e\n"), "2:5 this `{` is never closed");
    let item = "this line is not an item of the list, like those below it";
    assert_eq!(problem("a:\n  b: c\n  - d: e\n"), format!("2:3 {item}"));
    assert_eq!(problem("a:\n  -\u{a0}b: c\n  - d: e\n"), format!("2:3 {item}"));
    assert_eq!(problem("a: {b: c\n    d: e}\n"), "2:6 expected `,` or `}`");
}
