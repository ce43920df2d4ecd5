//! `file_contains`: a file in the sandbox has a text in it.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::file_exists::near;
use super::{Assertion, Field, Form, Matcher, PATH, Parameter};
use crate::example::{Example, Story};
use crate::folded;
use crate::pattern::{Patience, Pattern};
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
    details: "Exactly one of `text` and `pattern` says what must be in it. Other than in an answer, upper and lower case \
              differ. Where a file is too long to be read whole, its beginning is looked at, and what is not found there \
              is undecided.",
    fields: &[
        PATH,
        Field {
            name: "text",
            holds: "text, or a regular expression of code",
            required: false,
            default: None,
            doc: "What must be in the file, letter by letter.",
        },
        Field {
            name: "pattern",
            holds: "regular expression, also `/…/flags`",
            required: false,
            default: None,
            doc: "Some part of the file must match it.",
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

#[derive(Debug)]
struct FileContains {
    file: SandboxFile,
    wanted: Wanted,
}

#[derive(Debug)]
enum Wanted {
    Text(String, Place),
    Pattern(Pattern),
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let file = SandboxFile::read(reading);
    let wanted = wanted(reading);
    Some(Arc::new(FileContains { file: file?, wanted: wanted? }))
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
            reading.problems.push(head.error("`file_contains` needs one of `text` and `pattern`"));
            None
        }
    }
}

impl Matcher for FileContains {
    fn needs(&self) -> Vec<Need> {
        vec![self.file.need()]
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let path = &self.file.path;
        let missing = |what: &str| {
            Verdict::unmet(format!("there is no file `{path}`"), format!("a file `{path}` with {}", self.wanted), what)
                .evidence(near(evidence, path))
                .place(&self.file.place)
        };
        let (size, text, clipped) = match self.file.look(evidence) {
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

impl Wanted {
    fn is_in(&self, text: &str) -> Result<bool, String> {
        match self {
            Self::Text(wanted, _) => Ok(text.contains(wanted.as_str())),
            Self::Pattern(pattern) => pattern.test(text, &Patience::new()),
        }
    }

    fn near(&self, text: &str) -> Option<String> {
        let Self::Text(wanted, _) = self else { return None };
        Some(format!("in other letters it has {}", words::quoted(folded::find(text, wanted)?)))
    }

    fn place(&self) -> &Place {
        match self {
            Self::Text(_, place) => place,
            Self::Pattern(pattern) => &pattern.place,
        }
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text, _) => write!(f, "{}", words::quoted(text)),
            Self::Pattern(pattern) => write!(f, "a match of {pattern}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Need, Probed, Status};
    use serde_json::json;

    use crate::check::tests::{case, judged};
    use crate::check::{Context, compile};
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
        ] {
            assert_eq!(compile(&case(&[entry]), &Context::default()).1.len(), 1);
        }
    }
}
