//! `contains` and `not_contains`: the answer contains a string, or does not.

use super::prelude::*;
use crate::{as_written, folded};

/// Number of characters shown on either side of a string that must not be present.
const AROUND: usize = 40;

pub(crate) const ASSERTION: Assertion = Assertion::written("contains", |reading| parse(reading, true))
    .summary("The answer contains a string.")
    .fields(&[Field::required("text", "string", "Text that the answer must contain.")])
    .parameters(&[Parameter::Value("text")])
    .example(
        || json!({"id": "names-the-period", "type": "contains", "text": "30 days"}),
        || EvidenceBuilder::new().answer("You can return it within 30 Days."),
        || EvidenceBuilder::new().answer("You can return it within a month."),
    );

pub(crate) const NEGATION: Assertion = Assertion::written("not_contains", |reading| parse(reading, false))
    .summary("The answer does not contain a string.")
    .fields(&[Field::required("text", "string", "Text that the answer must not contain.")])
    .parameters(&[Parameter::Value("text")])
    .example(
        || json!({"id": "does-not-blame", "type": "not_contains", "text": "your fault"}),
        || EvidenceBuilder::new().answer("I am sorry that it broke."),
        || EvidenceBuilder::new().answer("It broke, and that is Your Fault."),
    );

#[derive(Debug)]
struct Contains {
    text: String,
    is_wanted: bool,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>, is_wanted: bool) -> Option<Arc<dyn Matcher>> {
    const HELP: &str = "use `matches` or `not_matches`, which take one";
    let (text, place) = match is_wanted {
        true => reading.searched_text("text", HELP)?,
        false => reading.forbidden_text("text", HELP)?,
    };
    reading.problems.extend(as_written::last_line_break(&text, place.excerpt()));
    Some(Arc::new(Contains { text, is_wanted, place }))
}

impl Matcher for Contains {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let answer = evidence.trace.answer.as_deref();
        let text = answer.unwrap_or_default();
        let wanted = format::quoted(&self.text);
        if !self.is_wanted && model::text::is_blank(text) {
            return Ok(Verdict::undecided("the agent gave no answer").place(&self.place));
        }
        let verdict = match (folded::find(text, &self.text), self.is_wanted) {
            (Some(found), true) => Verdict::met(format!("the answer contains {}", format::quoted(found))),
            (None, false) => {
                let may_be_near = !(text.is_ascii() && self.text.is_ascii());
                let near = may_be_near.then(|| model::lookalike(&self.text, text)).flatten();
                let near = near.map_or_else(String::new, |hint| format!(", but {hint}"));
                Verdict::met(format!("the answer does not contain {wanted}{near}"))
            }
            (Some(found), false) => {
                let reason = format!("the answer contains {}", format::quoted(found));
                Verdict::unmet(reason, format!("an answer without {wanted}"), format::quoted(&around(text, found)))
            }
            (None, true) => {
                let actual = answer.map_or_else(|| "no answer".to_owned(), format::quoted);
                let reason = format!("the answer does not contain {wanted}");
                Verdict::unmet(reason, wanted, actual).evidence(self.near(text))
            }
        };
        Ok(verdict.place(&self.place))
    }
}

impl Contains {
    /// Returns a hint if the answer contains the words of the text with different white space between them, or a text
    /// that looks the same.
    fn near(&self, answer: &str) -> Option<String> {
        let plain = model::text::folded;
        let (words, text) = (plain(answer), plain(&self.text));
        let is_near = !text.is_empty() && folded::find(&words, &text).is_some();
        model::lookalike(&self.text, answer)
            .or_else(|| is_near.then(|| "the answer has the same words with different white space".to_owned()))
    }
}

/// Returns `found`, which is a slice of `answer`, with the text around it.
fn around(answer: &str, found: &str) -> String {
    let start = found.as_ptr() as usize - answer.as_ptr() as usize;
    let (before, after) = (&answer[..start], &answer[start + found.len()..]);
    let from = before.char_indices().rev().nth(AROUND - 1).map_or(0, |(offset, _)| offset);
    let to = after.char_indices().nth(AROUND).map_or(after.len(), |(offset, _)| offset);
    let more = |is_more: bool| if is_more { "…" } else { "" };
    format!("{}{}{found}{}{}", more(from > 0), &before[from..], &after[..to], more(to < after.len()))
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::compile;
    use crate::check::tests::{case, judged, underlined};
    use crate::context::Context;
    use crate::example::EvidenceBuilder;

    #[test]
    fn contains_ignores_case_but_not_white_space() {
        let contains = |text: &str, answer: &str| {
            let assertion = json!({"id": "a", "type": "contains", "text": text});
            judged(&assertion, &EvidenceBuilder::new().answer(answer).evidence())
        };
        assert_eq!(contains("ÜBER", "wir reden über").status, Status::Met);
        let finding = contains("two words", "Two\nwords");
        assert_eq!((finding.status, finding.score), (Status::Unmet, Some(0.0)));
        assert_eq!(finding.evidence, ["the answer has the same words with different white space"]);
        assert_eq!(underlined(&finding), "\"two words\"");
        let finding = contains("don't", "I don\u{2019}t know");
        assert_eq!(finding.evidence, ["the same text is there with `\u{2019}` (U+2019) instead of `'` (U+0027)"]);
    }

    #[test]
    fn a_text_that_is_meant_as_a_regular_expression_is_reported() {
        let message = |kind: &str, key: &str, text: &str| {
            let entry = json!({"id": "a", "type": kind, key: text, "path": "a.txt"});
            let problems = compile(&case(&[entry]), &Context::default()).1;
            problems.into_iter().map(|problem| problem.message).find(|message| !message.starts_with("unknown key"))
        };
        let regex = |text: &str| Some(format!("`{text}` looks like a regular expression but is compared as text"));
        assert_eq!(message("not_contains", "text", "/password/i"), regex("/password/i"));
        assert_eq!(message("file_not_contains", "contains", r"/a\d+/"), regex(r"/a\d+/"));
        assert_eq!(message("command_not_ran", "command", "/rm -rf/"), regex("/rm -rf/"));
        assert_eq!(message("not_contains", "text", "/usr/bin/"), None);
        for (kind, key) in [("not_contains", "text"), ("command_not_ran", "command"), ("no_tool_called", "tool")] {
            let expected = format!("`{key}` contains the control character U+0008");
            assert_eq!(message(kind, key, "\u{8}rm"), Some(expected), "{kind}");
        }
        let message = message("no_tool_called", "tool", "mcp__*");
        assert_eq!(message.as_deref(), Some("no tool is called `mcp__*`, because names are compared exactly"));
    }

    #[test]
    fn a_missing_answer_contains_nothing() {
        let finding = judged(&json!({"id": "a", "type": "contains", "text": "x"}), &EvidenceBuilder::new().evidence());
        assert_eq!((finding.status, finding.actual.as_deref()), (Status::Unmet, Some("no answer")));
        let denied = json!({"id": "a", "type": "not_contains", "text": "x"});
        let only_acts = EvidenceBuilder::new().call("Bash", json!({})).answer("");
        for silent in [EvidenceBuilder::new(), EvidenceBuilder::new().answer(" \n"), only_acts] {
            assert_eq!(judged(&denied, &silent.evidence()).status, Status::Undecided);
        }
    }

    #[test]
    fn forbidden_text_is_shown_in_context() {
        let answer = format!("{}It is YOUR fault, é.{}", "x".repeat(60), "y".repeat(60));
        let assertion = json!({"id": "a", "type": "not_contains", "text": "your fault"});
        let finding = judged(&assertion, &EvidenceBuilder::new().answer(&answer).evidence());
        assert_eq!(finding.reason, "the answer contains \"YOUR fault\"");
        let (before, after) = ("x".repeat(34), "y".repeat(36));
        assert_eq!(finding.actual.unwrap(), format!("\"…{before}It is YOUR fault, é.{after}…\""));
    }
}
