//! What does not count as a difference, and how finely differences are told.

use std::borrow::Cow;

use model::Node;
use model::decode::{Fields, Problems};

use super::Kind;

/// Options of a comparison, by the names of the `diff` package in a file (`ignoreCase`). Each acts on the kinds it names
/// and is without effect on the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `ignoreCase`: upper and lower case are the same. All kinds but JSON.
    pub ignore_case: bool,
    /// `ignoreWhitespace`: true ignores white space at both ends of lines; false makes words count the white space
    /// between them, as [`Kind::WordsWithSpace`] does.
    pub ignore_whitespace: Option<bool>,
    /// `ignoreNewlineAtEof`: a line with a line end is the same as one without. Lines, unless `newlineIsToken`.
    pub ignore_newline_at_eof: bool,
    /// `newlineIsToken`: a line and its end are compared apart. Lines.
    pub newline_is_token: bool,
    /// `stripTrailingCr`: `\r\n` is read as `\n`. Lines.
    pub strip_trailing_cr: bool,
    /// `oneChangePerToken`: neighbours do not become one part. All kinds but JSON.
    pub one_change_per_token: bool,
    /// `maxEditLength`: how many units may be removed and added in all before the texts count as too different. All kinds
    /// but JSON.
    pub max_edit_length: Option<u64>,
}

impl Options {
    /// Reads a map of nothing but options.
    pub fn parse(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "the options of a diff", problems)?;
        let options = Self::read(&mut fields, problems);
        fields.finish(problems);
        Some(options)
    }

    /// Reads the options out of a map that holds other keys, too; they are left for the caller to read and finish.
    pub fn read(fields: &mut Fields<'_>, problems: &mut Problems) -> Self {
        if fields.node().get("timeout").is_some()
            && let Some(node) = fields.get("timeout")
        {
            // Asked for only where it is, so that no list of known keys names it.
            problems.push(
                node.error("a diff has no `timeout`: the same texts must compare alike on every machine")
                    .help("bound it by `maxEditLength`, the number of changes"),
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

    /// `text` without the line ends that the user wants ignored, which only lines have.
    pub(super) fn without_ignored<'t>(&self, text: &'t str, kind: Kind) -> Cow<'t, str> {
        let text = self.line_ends(text, kind);
        if kind != Kind::Lines || !self.ignore_newline_at_eof || self.newline_is_token || !text.ends_with('\n') {
            return text;
        }
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..text.len() - 1]),
            Cow::Owned(text) => Cow::Owned(text[..text.len() - 1].to_owned()),
        }
    }

    /// `text` with the line ends it is compared with.
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
    use model::Source;
    use serde_json::{Value, json};

    use super::*;

    fn parsed(value: &Value) -> (Option<Options>, Vec<String>) {
        let node = Node::from_json(value, &Source::new("a.yaml", ""));
        let mut problems = Problems::new();
        let options = Options::parse(&node, &mut problems);
        (options, problems.iter().map(|problem| format!("{}|{}", problem.message, problem.help.join("|"))).collect())
    }

    #[test]
    fn options_are_read_by_their_names() {
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
