//! `file_not_exists`: a file does not exist in the sandbox.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::{Assertion, Form, PATH, Parameter, TITLE};
use crate::example::{Example, Story};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::sandbox_file::{Look, SandboxFile};
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "file_not_exists",
    aliases: &["no_file_exists"],
    parameters: &[Parameter::Value("path")],
    summary: "A path does not exist in the sandbox after the agent has finished.",
    fields: &[PATH, TITLE],
    pass: Example {
        assertion: || json!({"id": "cleans-up", "type": "file_not_exists", "path": "build.log"}),
        evidence: || Story::new().file("build.log", None).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "cleans-up", "type": "file_not_exists", "path": "build.log"}),
        evidence: || Story::new().file("build.log", Some("error: …\n")).evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
struct FileNotExists {
    file: SandboxFile,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    Some(Arc::new(FileNotExists { file: SandboxFile::read(reading)? }))
}

impl Matcher for FileNotExists {
    fn needs(&self) -> Vec<Need> {
        vec![self.file.need()]
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let path = &self.file.path;
        let actual = match self.file.look(evidence) {
            Err(undecided) => return *undecided,
            Ok(Look::Nothing) => return Verdict::met(format!("there is no `{path}`")).place(&self.file.place),
            Ok(Look::File(size, ..)) => format!("a file of {size} bytes"),
            Ok(Look::Other(what)) => what.to_owned(),
        };
        Verdict::unmet(format!("`{path}` is there"), format!("nothing called `{path}`"), actual).place(&self.file.place)
    }
}
