//! Properties that hold for all pairs of texts.

use proptest::prelude::*;

use super::super::*;

const KEEPING: [Kind; 4] = [Kind::Chars, Kind::WordsWithSpace, Kind::Lines, Kind::Sentences];

/// Generates texts that often have much in common.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab .!?\\n\\r\\t]{0,40}", "\\PC{0,20}", any::<String>(), "(\\{\"[ab]\":\\[[01],[01]\\]\\}|\\[\\])"]
}

fn options() -> impl Strategy<Value = Options> {
    (any::<[bool; 5]>(), any::<Option<bool>>(), proptest::option::of(0_u64..9)).prop_map(|(flags, space, most)| {
        Options {
            ignore_case: flags[0],
            ignore_whitespace: space,
            ignore_newline_at_eof: flags[1],
            newline_is_token: flags[2],
            strip_trailing_cr: flags[3],
            one_change_per_token: flags[4],
            max_edit_length: most,
        }
    })
}

fn joined(diff: &Diff, omitted: impl Fn(&Part) -> bool) -> String {
    diff.parts.iter().filter(|part| !omitted(part)).map(|part| part.value.as_str()).collect()
}

proptest! {
    #[test]
    fn both_texts_can_be_reconstructed_from_the_parts(expected in text(), actual in text(), most in proptest::option::of(0_u64..9)) {
        for kind in KEEPING {
            let options = Options { max_edit_length: most, ..Options::default() };
            let found = diff(&expected, &actual, Some(kind), &options);
            prop_assert_eq!(joined(&found, |part| part.added), expected.as_str());
            prop_assert_eq!(joined(&found, |part| part.removed), actual.as_str());
        }
    }

    #[test]
    fn equal_texts_have_no_changes_and_the_changes_of_two_texts_are_not_empty(
        expected in text(), actual in text(), options in options(),
    ) {
        for (_, kind) in KINDS {
            prop_assert!(!diff(&expected, &expected, *kind, &options).has_changes());
            let found = diff(&expected, &actual, *kind, &options);
            let ignores = options.ignore_case || options.ignore_whitespace == Some(true) || options.ignore_newline_at_eof || options.strip_trailing_cr || *kind == Some(Kind::Words);
            prop_assert!(ignores || *kind == Some(Kind::Json) || found.has_changes() == (expected != actual));
        }
    }

    #[test]
    fn a_rendered_diff_respects_its_limit(expected in text(), actual in text(), limit in 0_usize..80) {
        for (_, kind) in KINDS {
            let found = diff(&expected, &actual, *kind, &Options::default());
            let segments = drawn(&found, limit);
            let length: usize = segments.iter().map(|segment| segment.text.chars().count()).sum();
            prop_assert!(length <= limit);
            prop_assert_eq!(segments.is_empty(), !found.has_changes() || limit == 0);
        }
    }

    #[test]
    fn an_empty_item_covers_every_change(expected in text(), actual in text()) {
        for (_, kind) in KINDS {
            let found = diff(&expected, &actual, *kind, &Options::default());
            let any = Item::<String>::default();
            let coverage = cover(&found, &[any], false, false, &mut |_, _| Ok::<_, ()>(false)).unwrap();
            prop_assert!(coverage.uncovered.is_empty() && coverage.passes());
        }
    }
}
