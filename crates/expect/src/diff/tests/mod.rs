//! Tests of kinds, options and parts.

mod oracle;
mod properties;

use super::*;

fn shown(diff: &Diff) -> String {
    let mark = |part: &Part| match (part.added, part.removed) {
        (true, _) => format!("+{}", part.value),
        (_, true) => format!("-{}", part.value),
        _ => format!("={}", part.value),
    };
    diff.parts.iter().map(mark).collect::<Vec<_>>().join("|")
}

#[test]
fn the_kind_is_chosen_from_the_texts() {
    assert_eq!(auto(" {\"a\":1}", "[2]"), Kind::Json);
    assert_eq!(auto("{bad}", "[2]"), Kind::Chars);
    assert_eq!(auto("1", "2"), Kind::Chars);
    assert_eq!(auto("a\nb", "c"), Kind::Lines);
    assert_eq!(auto("short", "this text is long enough"), Kind::Words);
    assert_eq!(auto("a b c d e f g h i j", "x"), Kind::Chars, "19 units");
    assert_eq!(auto("a b c d e f g h i j ", "x"), Kind::Words);
    assert_eq!(auto("a-text-of-one-word-only", "x y"), Kind::Chars);
}

#[test]
fn words_that_differ_only_in_white_space_are_compared_by_characters_unless_words_are_chosen() {
    let (expected, actual) = ("a b  c d e f g h i j k l", "a b c d e f g h i j k l");
    let options = Options::default();
    assert!(!diff(expected, actual, Some(Kind::Words), &options).has_changes());
    let found = diff(expected, actual, None, &options);
    assert_eq!((found.kind, shown(&found).as_str()), (Kind::Chars, "=a b |- |=c d e f g h i j k l"));
}

#[test]
fn ignored_white_space_is_also_ignored_when_choosing_the_kind() {
    let options = Options { ignore_whitespace: Some(true), ..Options::default() };
    assert!(!diff("a\n  b", "a\nb", None, &options).has_changes());
    let options = Options { strip_trailing_cr: true, ..Options::default() };
    assert!(!diff("a\r\nb", "a\nb", None, &options).has_changes());
    assert!(diff("a\r\nb", "a\nb", None, &Options::default()).has_changes());
    let options = Options { ignore_newline_at_eof: true, ..Options::default() };
    assert!(!diff("a\nb\n", "a\nb", None, &options).has_changes());
}

#[test]
fn an_option_for_lines_does_not_affect_words() {
    let (expected, actual) = ("aa bb cc dd ee ff gg  hh", "aa bb cc dd ee ff gg hh");
    for options in [
        Options { strip_trailing_cr: true, ..Options::default() },
        Options { ignore_newline_at_eof: true, ..Options::default() },
        Options { ignore_case: true, ..Options::default() },
    ] {
        assert!(diff(expected, actual, None, &options).has_changes(), "{options:?}");
    }
}

#[test]
fn the_parts_of_each_kind_are_as_expected() {
    let of = |expected, actual, kind| shown(&diff(expected, actual, Some(kind), &Options::default()));
    assert_eq!(of("abYc", "abXc", Kind::Chars), "=ab|-Y|+X|=c");
    assert_eq!(of("the red fox", "the brown fox", Kind::Words), "=the |-red|+brown|= fox");
    assert_eq!(of("a b c", "a b  c", Kind::WordsWithSpace), "=a b|- |+  |=c");
    assert_eq!(of("1\n2\n3", "1\ntwo\n3", Kind::Lines), "=1\n|-2\n|+two\n|=3");
    assert_eq!(of("One. 2. Three.", "One. Two. Three.", Kind::Sentences), "=One. |-2.|+Two.|= Three.");
    assert_eq!(of("{\"a\":[1]}", "{\"a\": [2]}", Kind::Json), "-a[0]: 1|+a[0]: 2");
}

#[test]
fn one_change_per_token_makes_every_token_a_part() {
    let options = Options { one_change_per_token: true, ..Options::default() };
    let found = diff("a b c", "a x y c", Some(Kind::Words), &options);
    assert_eq!(shown(&found), "=a |- b |+ x |+ y |= c");
}

#[test]
fn texts_too_different_for_the_effort_keep_their_common_ends() {
    let options = Options { max_edit_length: Some(1), ..Options::default() };
    let found = diff("(abc)", "(xyz)", Some(Kind::Chars), &options);
    assert_eq!((shown(&found).as_str(), found.complete), ("=(|-abc|+xyz|=)", false));
    let found = of_text("(abc)", "(xyz)", Kind::Chars, &Options::default(), 5);
    assert_eq!((shown(&found).as_str(), found.complete), ("=(|-abc|+xyz|=)", false));
    assert!(diff("(abc)", "(xyz)", Some(Kind::Chars), &Options::default()).complete);
}
