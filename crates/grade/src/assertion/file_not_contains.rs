//! `file_not_contains`: a file in the sandbox, or the answer, does not contain a text.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::file_contains::CONTAINS;
use super::file_exists::near;
use super::valid_json::OPTIONAL_PATH;
use super::{Assertion, Field, Form, Parameter, TITLE};
use crate::example::{Example, Story};
use crate::folded;
use crate::matcher::Matcher;
use crate::place::Place;
use crate::reading::Reading;
use crate::sandbox_file::{Look, SandboxFile};
use crate::verdict::Verdict;
use crate::words;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "file_not_contains",
    aliases: &["no_file_contains"],
    parameters: &[Parameter::Value("path"), Parameter::Value("contains")],
    summary: "A file in the sandbox, or the answer, does not contain a text.",
    fields: &[OPTIONAL_PATH, Field { required: true, ..CONTAINS }, TITLE],
    pass: Example {
        assertion: || json!({"id": "keeps-no-todo", "type": "file_not_contains", "path": "notes.md", "contains": "TODO"}),
        evidence: || Story::new().file("notes.md", Some("All done.\n")).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "keeps-no-todo", "type": "file_not_contains", "path": "notes.md", "contains": "TODO"}),
        evidence: || Story::new().file("notes.md", Some("Todo: the rest.\n")).evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
struct FileNotContains {
    file: Option<SandboxFile>,
    contains: String,
    place: Place,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    let file = reading.fields.get("path").map(|_| SandboxFile::read(reading));
    let (contains, place) = reading.required_text("contains")?;
    let file = match file {
        Some(file) => Some(file?),
        None => None,
    };
    Some(Arc::new(FileNotContains { file, contains, place }))
}

impl Matcher for FileNotContains {
    fn needs(&self) -> Vec<Need> {
        self.file.iter().map(SandboxFile::need).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let wanted = words::quoted(&self.contains);
        let Some(file) = &self.file else {
            let answer = evidence.trace.answer.as_deref().unwrap_or_default();
            return self.verdict("the answer", answer).place(&self.place);
        };
        let path = &file.path;
        let missing = |what: &str| {
            Verdict::unmet(format!("there is no file `{path}`"), format!("a file `{path}` without {wanted}"), what)
                .evidence(near(evidence, path))
                .place(&file.place)
        };
        match file.look(evidence) {
            Err(undecided) => *undecided,
            Ok(Look::Nothing) => missing("nothing"),
            Ok(Look::Other(what)) => missing(what),
            Ok(Look::File(size, text, true)) if folded::find(text, &self.contains).is_none() => {
                let because = format!("{wanted} is not in what was read of `{path}`, which has {size} bytes");
                Verdict::undecided(because).place(&self.place)
            }
            Ok(Look::File(_, text, _)) => self.verdict(&format!("`{path}`"), text).place(&self.place),
        }
    }
}

impl FileNotContains {
    fn verdict(&self, what: &str, text: &str) -> Verdict {
        let wanted = words::quoted(&self.contains);
        match folded::find(text, &self.contains) {
            Some(found) => {
                let found = words::quoted(found);
                Verdict::unmet(format!("{what} has {found}"), format!("no {wanted}"), found)
            }
            None => Verdict::met(format!("{what} does not have {wanted}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::Story;

    #[test]
    fn a_file_that_is_not_there_is_not_met_and_without_a_file_it_is_the_answer() {
        let in_file = json!({"id": "a", "type": "file_not_contains", "path": "x", "contains": "todo"});
        let missing = judged(&in_file, &Story::new().file("x", None).added("X").evidence());
        assert_eq!(
            (missing.because.as_str(), missing.evidence[0].as_str()),
            ("there is no file `x`", "the agent made `X`")
        );
        let in_answer = json!({"id": "a", "type": "file_not_contains", "contains": "todo", "text": "Nothing is left"});
        let finding = judged(&in_answer, &Story::new().answer("A TODO.").evidence());
        assert_eq!((finding.status, finding.title.as_deref()), (Status::Unmet, Some("Nothing is left")));
        assert_eq!(judged(&in_answer, &Story::new().evidence()).status, Status::Met);
    }
}
