//! `file_unchanged`: the agent did not change a file in the sandbox.

use model::{Change, Diagnostic, Fixtures, nearest};

use super::PATH;
use super::prelude::*;
use crate::sandbox_file::{FileProbe, SandboxFile};

pub(crate) const ASSERTION: Assertion = Assertion::written("file_unchanged", parse)
    .summary("A file in the sandbox did not change.")
    .fields(&[PATH, TITLE])
    .parameters(&[Parameter::Value("path")])
    .example(
        || json!({"id": "leaves-the-lock", "type": "file_unchanged", "path": "Cargo.lock"}),
        || EvidenceBuilder::new().file("Cargo.lock", Some("version = 4\n")),
        || EvidenceBuilder::new().file("Cargo.lock", Some("version = 5\n")).changed("Cargo.lock"),
    );

#[derive(Debug)]
struct FileUnchanged {
    file: SandboxFile,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let known = reading.problems.len();
    let file = SandboxFile::read(reading)?;
    if reading.problems.len() == known
        && let Some(near) = reading.context.case.and_then(|case| misspelt(&file.path, &case.fixtures))
    {
        let problem = Diagnostic::warning(format!("no fixture has the path `{}`", file.path));
        reading.problems.push(problem.at(file.place.excerpt()).suggest(Some(near)));
    }
    Some(Arc::new(FileUnchanged { file }))
}

/// Returns the file of `fixtures` that `path` probably means, if no other part of them can create a file at `path`.
fn misspelt<'f>(path: &str, fixtures: &'f Fixtures) -> Option<&'f str> {
    let paths = || fixtures.files().map(|file| file.path.as_str());
    let path = path.trim_start_matches("./");
    if !fixtures.setup_commands.is_empty() || !fixtures.copy_trees.is_empty() || paths().any(|known| known == path) {
        return None;
    }
    let name = |path: &'f str| path.rsplit('/').next();
    let own = path.rsplit('/').next();
    nearest(path, paths()).or_else(|| paths().find(|known| name(known) == own))
}

impl Matcher for FileUnchanged {
    fn needs(&self) -> Vec<Need> {
        vec![self.file.need()]
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        let path = &self.file.path;
        let found_file = self.file.probe(evidence)?;
        let plain = path.trim_start_matches("./");
        let change = evidence.collected.files_changed.iter().find(|file| file.path == plain).map(|file| file.change);
        let verdict = match (change, found_file) {
            (None, FileProbe::File(..)) => Verdict::met(format!("`{path}` is as it was before the agent started")),
            (None, found_file) => {
                let reason = match found_file {
                    FileProbe::Nothing => format!("`{path}` does not exist, and did not exist before"),
                    _ => format!("`{path}` is not a file"),
                };
                Verdict::unmet(reason, format!("a file named `{path}`"), found_file.describe())
            }
            (Some(change), _) => {
                let how = match change {
                    Change::Added => "is new",
                    Change::Modified => "was changed",
                    Change::Deleted => "was deleted",
                };
                Verdict::unmet(format!("`{path}` {how}"), format!("`{path}` unchanged"), how)
            }
        };
        Ok(verdict.place(&self.file.place))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::EvidenceBuilder;

    #[test]
    fn a_file_that_never_existed_is_not_unchanged() {
        let assertion = json!({"id": "a", "type": "file_unchanged", "path": "Cargo.lck"});
        let finding = judged(&assertion, &EvidenceBuilder::new().file("Cargo.lck", None).evidence());
        assert_eq!(finding.reason, "`Cargo.lck` does not exist, and did not exist before");
        let gone = EvidenceBuilder::new().file("Cargo.lck", None).deleted("Cargo.lck").evidence();
        assert_eq!(judged(&assertion, &gone).reason, "`Cargo.lck` was deleted");
    }
}
