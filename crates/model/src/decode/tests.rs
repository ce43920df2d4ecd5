use super::*;
use crate::Source;

#[test]
fn a_duration_without_a_unit_causes_a_warning() {
    let warning = |number: u64| {
        let source = Source::new("f", "timeout: 30");
        let span = Span::new(9, 11);
        let value = Node { kind: NodeKind::Number(number.into()), span, tag: None, source: source.clone() };
        let map = NodeKind::Map(vec![(Spanned::new("timeout".to_owned(), Span::new(0, 7)), value)]);
        let node = Node { kind: map, span, tag: None, source };
        let mut problems = Problems::new();
        let mut fields = Fields::of(&node, "it", &mut problems).unwrap();
        assert_eq!(fields.duration_or_ms("timeout", &mut problems), Some(number));
        // Where numbers have always been milliseconds, only a small one is doubtful.
        assert_eq!(problems.drain(..).count(), usize::from(number < 1000));
        assert_eq!(fields.duration_ms("timeout", &mut problems), Some(number));
        assert!(problems.len() == 1 && !problems[0].is_error());
        (problems[0].message.clone(), problems[0].help[0].clone())
    };
    let thirty = warning(30);
    assert_eq!(thirty.0, "`30` has no unit and is read as 30 milliseconds");
    assert_eq!(thirty.1, "write `30ms` or `30s`");
    assert_eq!(warning(90_000).1, "write `90s`");
    assert_eq!(warning(60_000).1, "write `1m`");
    assert_eq!(warning(1_500).1, "write `1500ms`");
}

/// Returns a map with one value, which is written as `written` and read as `kind`.
fn map_of(key: &str, written: &str, kind: NodeKind) -> Node {
    let source = Source::new("f", format!("{key}: {written}"));
    let span = Span::new(key.len() + 2, key.len() + 2 + written.len());
    let value = Node { kind, span, tag: None, source: source.clone() };
    let kind = NodeKind::Map(vec![(Spanned::new(key.to_owned(), Span::new(0, key.len())), value)]);
    Node { kind, span, tag: None, source }
}

#[test]
fn the_text_of_a_cell_is_read_as_the_required_type() {
    fn read<T>(text: &str, read: impl FnOnce(&mut Fields<'_>, &mut Problems) -> Option<T>) -> (Option<T>, Problems) {
        let node = map_of("key", "\"{{ cell }}\"", NodeKind::String(text.to_owned()));
        let mut problems = Problems::new();
        let value = read(&mut Fields::of(&node, "it", &mut problems).unwrap(), &mut problems);
        (value, problems)
    }
    assert_eq!(read(" 5", |fields, problems| fields.whole("key", 1, problems)).0, Some(5));
    assert_eq!(read("0.5", |fields, problems| fields.positive("key", problems)).0, Some(0.5));
    assert_eq!(read("true", |fields, problems| fields.boolean("key", problems)).0, Some(true));
    assert_eq!(read("30s", |fields, problems| fields.duration_ms("key", problems)).0, Some(30_000));
    let (value, problems) = read("2,5", |fields, problems| fields.whole("key", 1, problems));
    assert_eq!((value, &*problems[0].message), (None, "`key` must be a whole number of at least 1, not `2,5`"));
    assert!(problems[0].help.is_empty());
    // Text that is written as such stays text.
    let node = map_of("key", "\"5\"", NodeKind::String("5".to_owned()));
    let mut problems = Problems::new();
    assert_eq!(Fields::of(&node, "it", &mut problems).unwrap().whole("key", 1, &mut problems), None);
    assert_eq!(problems[0].help, ["write the number without quotes"]);
}

#[test]
fn a_misspelt_required_key_is_one_problem() {
    let node = map_of("pth", "x", NodeKind::String("x".to_owned()));
    let mut problems = Problems::new();
    let mut fields = Fields::of(&node, "it", &mut problems).unwrap();
    assert_eq!(fields.required_text("path", &mut problems), None);
    fields.finish(&mut problems);
    let found: Vec<_> = problems.iter().map(|problem| (&*problem.message, &*problem.help[0])).collect();
    assert_eq!(found, [("unknown key `pth` in it", "did you mean `path`?")]);
}

#[test]
fn a_wrong_name_for_a_required_key_is_one_problem() {
    let node = map_of("name", "x", NodeKind::String("x".to_owned()));
    let mut problems = Problems::new();
    let mut fields = Fields::of(&node, "it", &mut problems).unwrap();
    assert_eq!(fields.required_text("path", &mut problems), None);
    fields.finish(&mut problems);
    let found: Vec<_> = problems.iter().map(|problem| (&*problem.message, problem.help.clone())).collect();
    let help = vec!["it has no `path`".to_owned(), "known keys: path".to_owned()];
    assert_eq!(found, [("unknown key `name` in it", help)]);
}

#[test]
fn a_key_that_means_one_that_is_there_is_not_to_be_renamed() {
    let source = Source::new("f", "paths path");
    let entry = |name: &str, start: usize| {
        let span = Span::new(start, start + name.len());
        let node = Node { kind: NodeKind::Null, span, tag: None, source: source.clone() };
        (Spanned::new(name.to_owned(), span), node)
    };
    let kind = NodeKind::Map(vec![entry("paths", 0), entry("path", 6)]);
    let node = Node { kind, span: Span::new(0, 10), tag: None, source: source.clone() };
    let mut problems = Problems::new();
    let mut fields = Fields::of(&node, "it", &mut problems).unwrap();
    fields.get("path");
    fields.finish(&mut problems);
    assert_eq!(problems[0].help, ["`path` is already on line 1: write what belongs to it there"]);
}

#[test]
fn a_duration_of_zero_must_be_greater_and_other_text_is_shown() {
    let message = |written: &str, kind: NodeKind| {
        let node = map_of("timeout", written, kind);
        let mut problems = Problems::new();
        Fields::of(&node, "it", &mut problems).unwrap().duration_ms("timeout", &mut problems);
        problems[0].message.clone()
    };
    let text = |text: &str| message(text, NodeKind::String(text.to_owned()));
    assert_eq!(message("0", NodeKind::Number(0.into())), "`timeout` must be a duration above 0, not 0");
    assert_eq!(text("0s"), "`timeout` must be a duration above 0, not `0s`");
    assert_eq!(text("-1 s"), "`timeout` must be a duration above 0, not `-1 s`");
    assert_eq!(text("soon"), "`timeout` must be a duration, not `soon`");
}

#[test]
fn words_with_commas_are_suggested_as_a_list() {
    let help = |written: &str, text: &str| {
        let node = map_of("tags", written, NodeKind::String(text.to_owned()));
        let mut problems = Problems::new();
        Fields::of(&node, "it", &mut problems).unwrap().texts("tags", &mut problems);
        problems[0].help[0].clone()
    };
    assert_eq!(help("smoke, slow", "smoke, slow"), "write `[smoke, slow]`");
    assert_eq!(help("\"smoke,slow\"", "smoke,slow"), "write `[\"smoke\", \"slow\"]`");
    assert_eq!(help("smoke]", "smoke]"), "write `[smoke]`");
    assert_eq!(help("Hello, how are you", "Hello, how are you"), "write `[\"Hello, how are you\"]`");
    let lines = help("|\n  - a\n  - b\n", "- a\n- b\n");
    assert_eq!(lines, "its lines are one text: remove the `|`, the `>` or the quotes before them");
}

#[test]
fn known_keys_are_listed_once_in_the_order_of_access() {
    let source = Source::new("f", "zzz");
    let span = Span::new(0, 3);
    let value = Node { kind: NodeKind::Null, span, tag: None, source: source.clone() };
    let map = NodeKind::Map(vec![(Spanned::new("zzz".to_owned(), span), value)]);
    let node = Node { kind: map, span, tag: None, source };
    let mut problems = Problems::new();
    let mut fields = Fields::of(&node, "it", &mut problems).unwrap();
    for key in ["one", "two", "one", "three", "two"] {
        fields.get(key);
    }
    fields.finish(&mut problems);
    assert_eq!(problems[0].help, ["known keys: one, two, three"]);
}

#[test]
fn a_key_can_be_in_snake_or_camel_case_but_only_once() {
    let source = Source::new("f", "argsMatch args_match Tool");
    let entry = |name: &str, start: usize| {
        let span = Span::new(start, start + name.len());
        (Spanned::new(name.to_owned(), span), Node { kind: NodeKind::Null, span, tag: None, source: source.clone() })
    };
    let kind = NodeKind::Map(vec![entry("argsMatch", 0), entry("args_match", 10), entry("Tool", 21)]);
    let node = Node { kind, span: Span::new(0, 25), tag: None, source: source.clone() };
    let mut problems = Problems::new();
    let mut fields = Fields::of(&node, "it", &mut problems).unwrap().in_either_case();
    assert!(fields.get("args_match").is_some() && fields.get("tool").is_none());
    fields.finish(&mut problems);
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages, ["`args_match` is given twice, first as `argsMatch`", "unknown key `Tool` in it"]);
    let mut fields = Fields::of(&node, "it", &mut problems).unwrap();
    assert_eq!(fields.get("args_match").map(|node| node.span.start()), Some(10), "as written, unless configured");
}

#[test]
fn durations_are_parsed_as_documented() {
    assert_eq!(parse_duration_ms("500ms"), Some(500));
    assert_eq!(parse_duration_ms("1.5h"), Some(5_400_000));
    assert_eq!(parse_duration_ms("30 s"), Some(30_000));
    for wrong in ["", "30", "s", "0s", "-1s", "1d", "1 s s"] {
        assert_eq!(parse_duration_ms(wrong), None, "{wrong}");
    }
}
