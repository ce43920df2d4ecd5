//! `file_contains`: a file in the sandbox contains a text.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::file_exists::near;
use super::valid_json::OPTIONAL_PATH;
use super::{Assertion, Field, Form, Parameter};
use crate::example::{Example, Story};
use crate::folded;
use crate::matcher::Matcher;
use crate::pattern::{Pattern, RegexBudget};
use crate::place::Place;
use crate::reading::Reading;
use crate::sandbox_file::{Look, SandboxFile};
use crate::verdict::Verdict;
use crate::words;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "file_contains",
    aliases: &[],
    parameters: &[Parameter::Value("path"), Parameter::Value("text")],
    summary: "A file in the sandbox contains a text, or matches a regular expression, after the agent has finished.",
    fields: &[
        OPTIONAL_PATH,
        CONTAINS,
        Field {
            name: "text",
            holds: "text, or a regular expression of code",
            required: false,
            default: None,
            doc: "Text that the file must contain exactly.",
        },
        Field {
            name: "pattern",
            holds: "regular expression, also `/…/flags`",
            required: false,
            default: None,
            doc: "Matches a part of the file.",
        },
    ],
    pass: Example {
        assertion: || json!({"id": "greets-ada", "type": "file_contains", "path": "hello.txt", "text": "Ada"}),
        evidence: || Story::new().file("hello.txt", Some("Hello, Ada!\n")).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "greets-ada", "type": "file_contains", "path": "hello.txt", "pattern": "/^hi/m"}),
        evidence: || Story::new().file("hello.txt", Some("Hello, Ada!\n")).evidence(),
    },
    form: Form::Written { parse },
};

/// Field `contains` of `file_contains` and `file_not_contains`.
pub(super) const CONTAINS: Field =
    Field { name: "contains", holds: "text", required: false, default: None, doc: "Text to find, ignoring case." };

#[derive(Debug)]
struct FileContains {
    /// The file. If `None`, the answer is searched.
    file: Option<SandboxFile>,
    wanted: Wanted,
}

#[derive(Debug)]
enum Wanted {
    Text(String, Place),
    /// Text that is searched ignoring case.
    Folded(String, Place),
    Pattern(Pattern),
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let is_folded = reading.fields.get("contains").is_some();
    let file = match reading.fields.get("path") {
        None if is_folded => None,
        _ => Some(SandboxFile::read(reading)),
    };
    let wanted = if is_folded { folded(reading) } else { wanted(reading) };
    let file = match file {
        Some(file) => Some(file?),
        None => None,
    };
    Some(Arc::new(FileContains { file, wanted: wanted? }))
}

/// Reads `contains`. Beside it, `text` is a title.
fn folded(reading: &mut Reading<'_>) -> Option<Wanted> {
    reading.caption();
    if let Some(node) = reading.fields.get("pattern") {
        reading.problems.push(node.error("`contains` and `pattern` are two ways to say it; give one of them"));
        return None;
    }
    reading.required_text("contains").map(|(text, place)| Wanted::Folded(text, place))
}

fn wanted(reading: &mut Reading<'_>) -> Option<Wanted> {
    match (reading.fields.get("text"), reading.fields.get("pattern")) {
        (Some(node), None) if node.tag.is_some() => reading.literal("text").map(Wanted::Pattern),
        (Some(_), None) => reading.required_text("text").map(|(text, place)| Wanted::Text(text, place)),
        (None, Some(_)) => reading.literal("pattern").map(Wanted::Pattern),
        (Some(_), Some(node)) => {
            reading.problems.push(node.error("`text` and `pattern` are two ways to say it; give one of them"));
            None
        }
        (None, None) => {
            let head = reading.fields.node();
            reading.problems.push(head.error("`file_contains` needs one of `contains`, `text` and `pattern`"));
            None
        }
    }
}

impl Matcher for FileContains {
    fn needs(&self) -> Vec<Need> {
        self.file.iter().map(SandboxFile::need).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let Some(file) = &self.file else {
            return self.in_answer(evidence.trace.answer.as_deref()).place(self.wanted.place());
        };
        let path = &file.path;
        let missing = |what: &str| {
            Verdict::unmet(format!("there is no file `{path}`"), format!("a file `{path}` with {}", self.wanted), what)
                .evidence(near(evidence, path))
                .place(&file.place)
        };
        let (size, text, clipped) = match file.look(evidence) {
            Err(undecided) => return *undecided,
            Ok(Look::Nothing) => return missing("nothing"),
            Ok(Look::Other(what)) => return missing(what),
            Ok(Look::File(size, text, clipped)) => (size, text, clipped),
        };
        let verdict = match self.wanted.is_in(text) {
            Ok(true) => Verdict::met(format!("`{path}` has {}", self.wanted)),
            Ok(false) if clipped => Verdict::undecided(format!(
                "{} is not in the first {} of the {size} bytes of `{path}`, and the rest was not read",
                self.wanted,
                text.len()
            )),
            Ok(false) => Verdict::unmet(
                format!("`{path}` does not have {}", self.wanted),
                self.wanted.to_string(),
                if text.is_empty() { "an empty file".to_owned() } else { words::quoted(text) },
            )
            .evidence(self.wanted.near(text)),
            Err(error) => Verdict::undecided(error),
        };
        verdict.place(self.wanted.place())
    }
}

impl FileContains {
    fn in_answer(&self, answer: Option<&str>) -> Verdict {
        let wanted = &self.wanted;
        match wanted.is_in(answer.unwrap_or_default()) {
            Ok(true) => Verdict::met(format!("the answer has {wanted}")),
            Ok(false) => {
                let actual = answer.map_or_else(|| "no answer".to_owned(), words::quoted);
                Verdict::unmet(format!("the answer does not have {wanted}"), wanted.to_string(), actual)
            }
            Err(error) => Verdict::undecided(error),
        }
    }
}

impl Wanted {
    fn is_in(&self, text: &str) -> Result<bool, String> {
        match self {
            Self::Text(wanted, _) => Ok(text.contains(wanted.as_str())),
            Self::Folded(wanted, _) => Ok(folded::find(text, wanted).is_some()),
            Self::Pattern(pattern) => pattern.test(text, &RegexBudget::new()),
        }
    }

    fn near(&self, text: &str) -> Option<String> {
        let Self::Text(wanted, _) = self else { return None };
        Some(format!("in other letters it has {}", words::quoted(folded::find(text, wanted)?)))
    }

    fn place(&self) -> &Place {
        match self {
            Self::Text(_, place) | Self::Folded(_, place) => place,
            Self::Pattern(pattern) => &pattern.place,
        }
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text, _) | Self::Folded(text, _) => f.write_str(&words::quoted(text)),
            Self::Pattern(pattern) => write!(f, "a match of {pattern}"),
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
    use crate::example::Story;

    #[test]
    fn letters_are_compared_as_they_are_and_a_near_miss_is_told() {
        let assertion = json!({"id": "a", "type": "file_contains", "path": "x", "text": "hello"});
        let finding = judged(&assertion, &Story::new().file("x", Some("Hello")).evidence());
        assert_eq!(
            (finding.status, finding.evidence[0].as_str()),
            (Status::Unmet, "in other letters it has \"Hello\"")
        );
        let finding = judged(&assertion, &Story::new().file("x", None).evidence());
        assert_eq!(finding.because, "there is no file `x`");
    }

    #[test]
    fn what_is_contained_may_be_in_any_case_and_in_the_answer() {
        let in_file =
            json!({"id": "a", "type": "file_contains", "path": "x", "contains": "hello", "text": "It greets"});
        let finding = judged(&in_file, &Story::new().file("x", Some("Hello")).evidence());
        assert_eq!((finding.status, finding.title.as_deref()), (Status::Met, Some("It greets")));
        let in_answer = json!({"id": "a", "type": "file_contains", "contains": "hello"});
        assert_eq!(judged(&in_answer, &Story::new().answer("HELLO!").evidence()).because, "the answer has \"hello\"");
        assert_eq!(judged(&in_answer, &Story::new().evidence()).actual.as_deref(), Some("no answer"));
    }

    #[test]
    fn what_may_be_in_the_part_that_was_not_read_is_undecided() {
        let assertion = json!({"id": "a", "type": "file_contains", "path": "x", "text": "end"});
        let clipped = Probed::File { size: 9_999_999, text: "start".into(), clipped: true };
        let evidence = Story::new().probed(Need::File { path: "x".into() }, clipped).evidence();
        assert_eq!(judged(&assertion, &evidence).status, Status::Undecided);
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
}
