//! Options of a comparison: which differences are ignored, and how they are reported.

use std::borrow::Cow;

use model::decode::{Fields, Problems};

use super::Kind;

/// Options of a comparison. In files, they have the names used by the `diff` package (`ignoreCase`). Each applies to
/// the kinds that its description names, and has no effect on others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `ignoreCase`: ignores differences between upper and lower case. All kinds except JSON.
    pub ignore_case: bool,
    /// `ignoreWhitespace`: true ignores white space at both ends of lines. False compares the white space between
    /// words, like [`Kind::WordsWithSpace`].
    pub ignore_whitespace: Option<bool>,
    /// `ignoreNewlineAtEof`: ignores whether the last line ends with a line end. Lines, unless `newlineIsToken`.
    pub ignore_newline_at_eof: bool,
    /// `newlineIsToken`: compares a line and its end separately. Lines.
    pub newline_is_token: bool,
    /// `stripTrailingCr`: reads `\r\n` as `\n`. Lines.
    pub strip_trailing_cr: bool,
    /// `oneChangePerToken`: does not merge adjacent units into one part. All kinds except JSON.
    pub one_change_per_token: bool,
    /// `maxEditLength`: total number of units that may be removed and added before the texts count as too different.
    /// All kinds except JSON.
    pub max_edit_length: Option<u64>,
}

impl Options {
    /// Reads the options from a map that may contain other keys. The caller reads those and finishes the map.
    pub fn read(fields: &mut Fields<'_>, problems: &mut Problems) -> Self {
        if fields.node().get("timeout").is_some()
            && let Some(node) = fields.get("timeout")
        {
            // Read only if present, so that it is not listed among the known keys.
            problems.push(
                node.error("a diff has no `timeout`, because its result must be the same on every machine")
                    .help("limit the number of changes with `maxEditLength`"),
            );
        }
        let mut flag = |name| fields.boolean(name, problems);
        Self {
            ignore_case: flag("ignoreCase").unwrap_or_default(),
            ignore_whitespace: flag("ignoreWhitespace"),
            ignore_newline_at_eof: flag("ignoreNewlineAtEof").unwrap_or_default(),
            newline_is_token: flag("newlineIsToken").unwrap_or_default(),
            strip_trailing_cr: flag("stripTrailingCr").unwrap_or_default(),
            one_change_per_token: flag("oneChangePerToken").unwrap_or_default(),
            max_edit_length: fields.whole("maxEditLength", 0, problems),
        }
    }

    /// Returns `text` without the line ends that the user ignores. This only applies to lines.
    pub(super) fn without_ignored(&self, text: &str, kind: Kind) -> String {
        let mut text = self.line_ends(text, kind).into_owned();
        if kind == Kind::Lines && self.ignore_newline_at_eof && !self.newline_is_token && text.ends_with('\n') {
            text.pop();
        }
        text
    }

    /// Returns `text` with its line ends as used in the comparison.
    pub(super) fn line_ends<'t>(&self, text: &'t str, kind: Kind) -> Cow<'t, str> {
        if kind == Kind::Lines && self.strip_trailing_cr && text.contains("\r\n") {
            Cow::Owned(text.replace("\r\n", "\n"))
        } else {
            Cow::Borrowed(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Node, Source};
    use serde_json::{Value, json};

    use super::*;

    fn parsed(value: &Value) -> (Option<Options>, Vec<String>) {
        let node = Node::from_json(value, &Source::new("a.yaml", ""));
        let mut problems = Problems::new();
        let options = Fields::of(&node, "the options of a diff", &mut problems).map(|mut fields| {
            let options = Options::read(&mut fields, &mut problems);
            fields.finish(&mut problems);
            options
        });
        (options, problems.iter().map(|problem| format!("{}|{}", problem.message, problem.help.join("|"))).collect())
    }

    #[test]
    fn options_are_read_by_name() {
        let (options, problems) = parsed(&json!({
            "ignoreCase": true, "ignoreWhitespace": false, "newlineIsToken": true, "maxEditLength": 3
        }));
        assert!(problems.is_empty(), "{problems:?}");
        let wanted = Options {
            ignore_case: true,
            ignore_whitespace: Some(false),
            newline_is_token: true,
            max_edit_length: Some(3),
            ..Options::default()
        };
        assert_eq!(options, Some(wanted));
    }

    #[test]
    fn a_misspelt_option_suggests_the_nearest_one() {
        let (_, problems) = parsed(&json!({"ignore_case": true}));
        assert_eq!(problems, ["unknown key `ignore_case` in the options of a diff|did you mean `ignoreCase`?"]);
    }

    #[test]
    fn a_wrong_type_and_a_timeout_are_errors() {
        let (_, problems) = parsed(&json!({"ignoreCase": 1, "maxEditLength": -1, "timeout": 5}));
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("maxEditLength"), "{problems:?}");
        assert_eq!(parsed(&json!([])).1, ["the options of a diff must be a map, not a list|"]);
    }
}
