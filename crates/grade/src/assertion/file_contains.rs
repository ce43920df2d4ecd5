//! `file_contains` and `file_not_contains`: a file in the sandbox, or the answer, contains a string, or does not.

use super::file_exists::near;
use super::prelude::*;
use super::valid_json::OPTIONAL_PATH;
use crate::folded;
use crate::pattern::{Pattern, RegexBudget};
use crate::sandbox_file::{FileProbe, SandboxFile, too_large};

pub(crate) const ASSERTION: Assertion = Assertion::written("file_contains", parse)
    .summary("A file in the sandbox contains a string, or matches a regular expression, after the agent has finished.")
    .fields(&[
        OPTIONAL_PATH,
        CONTAINS,
        Field::optional("text", "string, or a regular expression in code", "Text that the file must contain exactly."),
        Field::optional("pattern", "regular expression, also `/…/flags`", "Must match a part of the file."),
    ])
    .parameters(&[Parameter::Value("path"), Parameter::Value("text")])
    .pass(
        || json!({"id": "greets-ada", "type": "file_contains", "path": "hello.txt", "text": "Ada"}),
        || EvidenceBuilder::new().file("hello.txt", Some("Hello, Ada!\n")),
    )
    .fail(
        || json!({"id": "greets-ada", "type": "file_contains", "path": "hello.txt", "pattern": "/^hi/m"}),
        || EvidenceBuilder::new().file("hello.txt", Some("Hello, Ada!\n")),
    );

pub(crate) const NEGATION: Assertion = Assertion::written("file_not_contains", parse_negation)
    .aliases(&["no_file_contains"])
    .summary("A file in the sandbox, or the answer, does not contain a string.")
    .fields(&[OPTIONAL_PATH, Field { required: true, ..CONTAINS }, TITLE])
    .parameters(&[Parameter::Value("path"), Parameter::Value("contains")])
    .example(
        || json!({"id": "keeps-no-todo", "type": "file_not_contains", "path": "notes.md", "contains": "TODO"}),
        || EvidenceBuilder::new().file("notes.md", Some("All done.\n")),
        || EvidenceBuilder::new().file("notes.md", Some("Todo: the rest.\n")),
    );

/// Field `contains` of `file_contains` and `file_not_contains`.
const CONTAINS: Field = Field::optional("contains", "string", "Text to find, ignoring case.");

#[derive(Debug)]
struct FileContains {
    /// The file. If `None`, the answer is searched.
    file: Option<SandboxFile>,
    content: Content,
    is_wanted: bool,
}

/// Content to find.
#[derive(Debug)]
enum Content {
    Exact(String, SourceLocation),
    AnyCase(String, SourceLocation),
    Pattern(Pattern),
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let is_any_case = reading.fields.get("contains").is_some();
    let file = match reading.fields.get("path") {
        None if is_any_case => Some(None),
        _ => SandboxFile::read(reading).map(Some),
    };
    let content = if is_any_case { any_case(reading) } else { content(reading) };
    Some(Arc::new(FileContains { file: file?, content: content?, is_wanted: true }))
}

fn parse_negation(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let file = match reading.fields.get("path") {
        None => Some(None),
        Some(_) => SandboxFile::read(reading).map(Some),
    };
    let (text, place) = reading.forbidden_text("contains", "write the text that no file may contain")?;
    Some(Arc::new(FileContains { file: file?, content: Content::AnyCase(text, place), is_wanted: false }))
}

/// Advice for a text that is written like a regular expression.
const PATTERN: &str = "use `pattern`, which takes one";

/// Reads `contains`. Next to it, `text` is a title.
fn any_case(reading: &mut Reading<'_>) -> Option<Content> {
    reading.caption();
    if let Some(node) = reading.fields.get("pattern") {
        reading.problems.push(node.error("`contains` and `pattern` cannot be combined; use one of them"));
        return None;
    }
    reading.searched_text("contains", PATTERN).map(|(text, place)| Content::AnyCase(text, place))
}

fn content(reading: &mut Reading<'_>) -> Option<Content> {
    match (reading.fields.get("text"), reading.fields.get("pattern")) {
        (Some(node), None) if node.tag.is_some() => reading.literal("text").map(Content::Pattern),
        (Some(_), None) => reading.searched_text("text", PATTERN).map(|(text, place)| Content::Exact(text, place)),
        (None, Some(_)) => reading.literal("pattern").map(Content::Pattern),
        (Some(_), Some(node)) => {
            reading.problems.push(node.error("`text` and `pattern` cannot be combined; use one of them"));
            None
        }
        (None, None) if reading.has_misspelt(&["contains", "text", "pattern"]) => None,
        (None, None) => {
            let head = reading.fields.node();
            let problem = head.error("`file_contains` needs one of `contains`, `text` and `pattern`");
            reading.problems.push(problem.of_missing(&["contains", "text", "pattern"]));
            None
        }
    }
}

impl Matcher for FileContains {
    fn needs(&self) -> Vec<Need> {
        self.file.iter().map(SandboxFile::need).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        let content = &self.content;
        let Some(file) = &self.file else {
            let answer = evidence.trace.answer.as_deref();
            if !self.is_wanted && model::text::is_blank(answer.unwrap_or_default()) {
                return Ok(Verdict::undecided("the agent gave no answer").place(content.place()));
            }
            let actual = answer.map_or_else(|| "no answer".to_owned(), format::quoted);
            let found = content.find(answer.unwrap_or_default())?;
            let hint = answer.filter(|_| found.is_none()).and_then(|answer| content.lookalike(answer));
            return Ok(self.verdict("the answer", found, &actual).evidence(hint).place(content.place()));
        };
        let path = &file.path;
        let (size, text, clipped) = match file.probe(evidence)? {
            FileProbe::File(size, text, clipped) => (size, text, clipped),
            found_file => {
                let with = if self.is_wanted { "with" } else { "without" };
                let wanted = format!("a file named `{path}` {with} {content}");
                let verdict = Verdict::unmet(format!("there is no file named `{path}`"), wanted, found_file.describe());
                return Ok(verdict.evidence(near(evidence, path)).place(&file.place));
            }
        };
        // In some encodings, every letter of plain text has further bytes that are zero.
        let narrow = if text.contains('\0') && !self.is_wanted { text.replace('\0', "") } else { String::new() };
        let found = content.find(text)?;
        let found = if found.is_none() { content.find(&narrow)? } else { found };
        let verdict = if clipped && found.is_none() {
            let reason = format!(
                "{content} is not in the first {} of the {size} bytes of `{path}`, and the rest was not read",
                text.len()
            );
            too_large(path, reason, evidence)
        } else {
            let actual = if text.is_empty() { "an empty file".to_owned() } else { format::quoted(text) };
            let hint = || content.in_other_case(text).or_else(|| content.lookalike(text));
            let hint = if found.is_none() { hint() } else { None };
            self.verdict(&format!("`{path}`"), found, &actual).evidence(hint)
        };
        Ok(verdict.place(content.place()))
    }
}

impl FileContains {
    /// Judges the text called `what`, in which `found` is the content.
    fn verdict(&self, what: &str, found: Option<&str>, actual: &str) -> Verdict {
        let content = &self.content;
        match (found, self.is_wanted) {
            (Some(_), true) => Verdict::met(format!("{what} contains {content}")),
            (None, false) => Verdict::met(format!("{what} does not contain {content}")),
            (None, true) => Verdict::unmet(format!("{what} does not contain {content}"), content.to_string(), actual),
            (Some(found), false) => {
                let found = format::quoted(found);
                Verdict::unmet(format!("{what} contains {found}"), format!("no {content}"), found)
            }
        }
    }
}

impl Content {
    /// Returns the part of `text` that it matches.
    fn find<'t>(&self, text: &'t str) -> Result<Option<&'t str>, Box<Verdict>> {
        match self {
            Self::Exact(wanted, _) => Ok(text.find(wanted.as_str()).map(|offset| &text[offset..offset + wanted.len()])),
            Self::AnyCase(wanted, _) => Ok(folded::find(text, wanted)),
            Self::Pattern(pattern) => {
                let matches = pattern.test(text, &RegexBudget::new());
                let matches = matches.map_err(|error| Verdict::undecided(error).place(&pattern.place))?;
                Ok(matches.then(|| pattern.found(text).unwrap_or_default()))
            }
        }
    }

    /// Returns a hint if `text` contains the exact text in different case.
    fn in_other_case(&self, text: &str) -> Option<String> {
        let Self::Exact(wanted, _) = self else { return None };
        Some(format!("with different case, it contains {}", format::quoted(folded::find(text, wanted)?)))
    }

    /// Returns a hint if `text` contains a text that looks the same.
    fn lookalike(&self, text: &str) -> Option<String> {
        match self {
            Self::Exact(wanted, _) | Self::AnyCase(wanted, _) => model::lookalike(wanted, text),
            Self::Pattern(pattern) => model::lookalike(pattern.regex.source(), text),
        }
    }

    fn place(&self) -> &SourceLocation {
        match self {
            Self::Exact(_, place) | Self::AnyCase(_, place) => place,
            Self::Pattern(pattern) => &pattern.place,
        }
    }
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(text, _) | Self::AnyCase(text, _) => f.write_str(&format::quoted(text)),
            Self::Pattern(pattern) => write!(f, "a match for {pattern}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Need, Probed, Status};
    use serde_json::json;

    use crate::check::compile;
    use crate::check::tests::{case, judged};
    use crate::context::Context;
    use crate::example::EvidenceBuilder;

    #[test]
    fn matching_is_case_sensitive_and_a_near_miss_is_reported() {
        let assertion = json!({"id": "a", "type": "file_contains", "path": "x", "text": "hello"});
        let finding = judged(&assertion, &EvidenceBuilder::new().file("x", Some("Hello")).evidence());
        assert_eq!(
            (finding.status, finding.evidence[0].as_str()),
            (Status::Unmet, "with different case, it contains \"Hello\"")
        );
        let finding = judged(&assertion, &EvidenceBuilder::new().file("x", None).evidence());
        assert_eq!(finding.reason, "there is no file named `x`");
    }

    #[test]
    fn contains_ignores_case_and_can_search_the_answer() {
        let in_file =
            json!({"id": "a", "type": "file_contains", "path": "x", "contains": "hello", "text": "It greets"});
        let finding = judged(&in_file, &EvidenceBuilder::new().file("x", Some("Hello")).evidence());
        assert_eq!((finding.status, finding.title.as_deref()), (Status::Met, Some("It greets")));
        let in_answer = json!({"id": "a", "type": "file_contains", "contains": "hello"});
        assert_eq!(
            judged(&in_answer, &EvidenceBuilder::new().answer("HELLO!").evidence()).reason,
            "the answer contains \"hello\""
        );
        assert_eq!(judged(&in_answer, &EvidenceBuilder::new().evidence()).actual.as_deref(), Some("no answer"));
    }

    #[test]
    fn text_that_may_be_in_the_unread_part_is_undecided() {
        let assertion = json!({"id": "a", "type": "file_contains", "path": "x", "text": "end"});
        let clipped = Probed::File { size: 9_999_999, text: "start".into(), clipped: true };
        let evidence = EvidenceBuilder::new().probed(Need::File { path: "x".into() }, clipped).evidence();
        assert_eq!(judged(&assertion, &evidence).status, Status::Undecided);
        let clipped = Probed::File { size: 9_999_999, text: "start".into(), clipped: true };
        let of_agent = EvidenceBuilder::new().probed(Need::File { path: "x".into() }, clipped).added("x").evidence();
        assert_eq!(judged(&assertion, &of_agent).status, Status::Unmet);
    }

    #[test]
    fn text_with_zero_bytes_between_its_letters_is_found_where_it_must_not_be() {
        let assertion = json!({"id": "a", "type": "file_not_contains", "path": "x", "contains": "todo"});
        let wide = EvidenceBuilder::new().file("x", Some("\u{fffd}\u{fffd}T\0O\0D\0O\0")).evidence();
        assert_eq!(judged(&assertion, &wide).reason, "`x` contains \"TODO\"");
    }

    #[test]
    fn exactly_one_of_text_and_pattern_is_given() {
        for entry in [
            json!({"id": "a", "type": "file_contains", "path": "x"}),
            json!({"id": "a", "type": "file_contains", "path": "x", "text": "a", "pattern": "b"}),
            json!({"id": "a", "type": "file_contains", "contains": "a", "pattern": "b"}),
            json!({"id": "a", "type": "file_contains", "text": "a"}),
        ] {
            assert_eq!(compile(&case(&[entry]), &Context::default()).1.len(), 1);
        }
    }

    #[test]
    fn a_missing_file_is_unmet_and_without_a_path_the_answer_is_searched() {
        let in_file = json!({"id": "a", "type": "file_not_contains", "path": "x", "contains": "todo"});
        let missing = judged(&in_file, &EvidenceBuilder::new().file("x", None).added("X").evidence());
        assert_eq!(
            (missing.reason.as_str(), missing.evidence[0].as_str()),
            ("there is no file named `x`", "the agent created `X`")
        );
        let in_answer = json!({"id": "a", "type": "file_not_contains", "contains": "todo", "text": "Nothing is left"});
        let finding = judged(&in_answer, &EvidenceBuilder::new().answer("A TODO.").evidence());
        assert_eq!((finding.status, finding.title.as_deref()), (Status::Unmet, Some("Nothing is left")));
        assert_eq!(judged(&in_answer, &EvidenceBuilder::new().evidence()).status, Status::Undecided);
    }
}
