//! `file_exists` and `file_not_exists`: a file exists in the sandbox, or nothing has its path.

use model::nearest;

use super::PATH;
use super::prelude::*;
use crate::glob::Glob;
use crate::sandbox_file::{FileProbe, SandboxFile, is_folder, read_inside};
use crate::verdict::NO_SANDBOX;

pub(crate) const ASSERTION: Assertion = Assertion::written("file_exists", |reading| parse(reading, true))
    .summary("A file exists in the sandbox after the agent has finished.")
    .fields(&[PATH, CREATED, TITLE])
    .parameters(&[Parameter::Value("path")])
    .example(
        || json!({"id": "writes-the-notes", "type": "file_exists", "path": "NOTES.md"}),
        || EvidenceBuilder::new().file("NOTES.md", Some("# Notes\n")),
        || EvidenceBuilder::new().file("NOTES.md", None).added("notes.md"),
    );

pub(crate) const NEGATION: Assertion = Assertion::written("file_not_exists", |reading| parse(reading, false))
    .aliases(&["no_file_exists"])
    .summary("A path does not exist in the sandbox after the agent has finished.")
    .fields(&[PATH, CREATED, TITLE])
    .parameters(&[Parameter::Value("path")])
    .example(
        || json!({"id": "cleans-up", "type": "file_not_exists", "path": "build.log"}),
        || EvidenceBuilder::new().file("build.log", None),
        || EvidenceBuilder::new().file("build.log", Some("error: …\n")),
    );

/// Field `created`.
const CREATED: Field = Field::optional(
    "created",
    "`true` or `false`",
    "`path` is a glob pattern, in which `*` does not match `/`, and only files that the agent created are considered.",
)
.or("`false`");

/// Files that the agent created.
#[derive(Debug)]
struct FilesCreated {
    pattern: String,
    place: SourceLocation,
    is_wanted: bool,
}

impl Matcher for FilesCreated {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let pattern = &self.pattern;
        if evidence.collected.sandbox.is_none() {
            return Ok(Verdict::undecided(NO_SANDBOX).place(&self.place));
        }
        let glob = Glob::path(pattern);
        let created: Vec<&str> = created_files(evidence).filter(|path| glob.is_match_path(path)).collect();
        let verdict = match (created.first(), self.is_wanted) {
            (Some(path), true) => Verdict::met(format!("the agent created `{path}`")),
            (None, false) => Verdict::met(format!("the agent created no file that matches `{pattern}`")),
            (None, true) => {
                let reason = format!("the agent created no file that matches `{pattern}`");
                Verdict::unmet(reason, format!("a new file that matches `{pattern}`"), "none")
                    .evidence(near(evidence, pattern))
            }
            (Some(path), false) => {
                let wanted = format!("no new file that matches `{pattern}`");
                Verdict::unmet(format!("the agent created `{path}`"), wanted, format!("`{path}`"))
            }
        };
        Ok(verdict.place(&self.place))
    }
}

/// Returns the paths of the files that the agent created.
pub(super) fn created_files(evidence: &Evidence) -> impl Iterator<Item = &str> {
    let added = evidence.collected.files_changed.iter().filter(|file| file.change == model::Change::Added);
    added.map(|file| file.path.as_str())
}

#[derive(Debug)]
struct FileExists {
    file: SandboxFile,
    is_wanted: bool,
}

fn parse(reading: &mut Reading<'_>, is_wanted: bool) -> Option<Arc<dyn Matcher>> {
    let is_created = match reading.fields.get("created") {
        Some(_) => reading.fields.boolean("created", reading.problems)?,
        None => false,
    };
    if is_created {
        let (pattern, place) = read_inside(reading)?;
        if is_folder(&pattern, &place, "`**` matches everything in a folder: `out/**`", reading) {
            return None;
        }
        if pattern.split('/').any(|name| name.starts_with("**") && name != "**") {
            let message = format!("`**` in `{pattern}` matches no folders, because it is not the whole name of one");
            let problem = model::Diagnostic::warning(message).at(place.excerpt());
            reading.problems.push(problem.suggest(Some(&pattern.replace("**", "**/*"))));
        }
        let is_open = pattern.rfind('[') > pattern.rfind(']');
        if let Some(sign) =
            ['!', '['].into_iter().find(|sign| if *sign == '!' { pattern.starts_with('!') } else { is_open })
        {
            let message = format!("`{sign}` is an ordinary character in `{pattern}`");
            reading.problems.push(model::Diagnostic::warning(message).at(place.excerpt()));
        }
        return Some(Arc::new(FilesCreated { pattern, place, is_wanted }));
    }
    let file = if is_wanted { SandboxFile::read(reading) } else { SandboxFile::read_path(reading) };
    Some(Arc::new(FileExists { file: file?, is_wanted }))
}

impl Matcher for FileExists {
    fn needs(&self) -> Vec<Need> {
        vec![self.file.need()]
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        let path = &self.file.path;
        let verdict = match (self.file.probe(evidence)?, self.is_wanted) {
            (FileProbe::File(size, ..), true) => Verdict::met(format!("`{path}` exists, {size} bytes")),
            (FileProbe::Nothing, false) => Verdict::met(format!("`{path}` does not exist")),
            (found_file, true) => Verdict::unmet(
                format!("there is no file named `{path}`"),
                format!("a file named `{path}`"),
                found_file.describe(),
            )
            .evidence(near(evidence, path)),
            (found_file, false) => {
                Verdict::unmet(format!("`{path}` exists"), format!("no file or folder `{path}`"), found_file.describe())
            }
        };
        Ok(verdict.place(&self.file.place))
    }
}

/// Returns a hint if the agent created a file with a path similar to `path`.
pub(super) fn near(evidence: &Evidence, path: &str) -> Option<String> {
    let added = evidence.collected.files_changed.iter().filter(|file| file.change == model::Change::Added);
    let paths: Vec<&str> = added.map(|file| file.path.as_str()).collect();
    let alike = paths.iter().find_map(|other| Some((*other, model::lookalike(path, other)?)));
    if let Some((other, hint)) = alike {
        return Some(format!("the agent created `{other}`: {hint}"));
    }
    let same = paths.iter().find(|other| other.eq_ignore_ascii_case(path)).copied();
    let near = same.or_else(|| nearest(path, paths.iter().copied()))?;
    Some(format!("the agent created `{near}`"))
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
    fn a_path_must_be_inside_the_working_directory() {
        for (path, reason) in [
            ("/etc/passwd", "must be relative to the working directory"),
            ("~/x", "must be relative to the working directory"),
            ("a/../../x", "cannot leave the working directory"),
            (".", "is not the name of a file"),
        ] {
            let (checks, problems) =
                compile(&case(&[json!({"id": "a", "type": "file_exists", "path": path})]), &Context::default());
            assert_eq!((checks.len(), problems.len()), (0, 1), "{path}");
            assert_eq!(problems[0].message, format!("`path` {reason}"));
        }
    }

    #[test]
    fn a_path_like_a_pattern_needs_created() {
        let problems = |assertion: serde_json::Value| {
            let (checks, problems) = compile(&case(&[assertion]), &Context::default());
            assert_eq!(checks.len(), 1);
            problems.iter().map(|problem| (problem.is_error(), problem.help.join(" "))).collect::<Vec<_>>()
        };
        let help = "add `created: true` to match the files that the agent created with a pattern";
        for name in ["file_exists", "file_not_exists"] {
            let assertion = json!({"id": "a", "type": name, "path": "*.md"});
            assert_eq!(problems(assertion), [(false, help.to_owned())], "{name}");
            assert_eq!(problems(json!({"id": "a", "type": name, "path": "*.md", "created": true})), [], "{name}");
        }
        let contains = json!({"id": "a", "type": "file_contains", "path": "src/*.md", "text": "x"});
        assert_eq!(problems(contains), [(false, "write the path of one file".to_owned())]);
        assert_eq!(problems(json!({"id": "a", "type": "file_exists", "path": "[id].tsx"})), []);
    }

    #[test]
    fn assertions_about_a_removed_working_directory_are_not_met() {
        let reason = "the agent removed its working directory";
        let lost = || Probed::Lost { reason: reason.into() };
        let file = || Need::File { path: "src".into() };
        let command = Need::Command { run: "true".into(), timeout_ms: 30_000 };
        for (assertion, need) in [
            (json!({"id": "a", "type": "file_exists", "path": "src"}), file()),
            (json!({"id": "a", "type": "file_not_exists", "path": "src"}), file()),
            (json!({"id": "a", "type": "file_unchanged", "path": "src"}), file()),
            (json!({"id": "a", "type": "file_contains", "path": "src", "text": "x"}), file()),
            (json!({"id": "a", "type": "command", "run": "true"}), command),
            (json!({"id": "a", "type": "git_clean"}), Need::Repository),
            (json!({"id": "a", "type": "no_path_escape"}), Need::Repository),
        ] {
            let found = judged(&assertion, &EvidenceBuilder::new().probed(need, lost()).evidence());
            assert_eq!((found.status, found.reason.as_str()), (Status::Unmet, reason), "{assertion}");
        }
    }

    #[test]
    fn a_path_that_only_looks_the_same_gets_a_hint() {
        let evidence = EvidenceBuilder::new().file("\u{430}.txt", None).added("a.txt").evidence();
        let finding = judged(&json!({"id": "a", "type": "file_exists", "path": "\u{430}.txt"}), &evidence);
        let hint = "the agent created `a.txt`: the same text is there with `a` (U+0061) instead of `\u{430}` (U+0430)";
        assert_eq!(finding.evidence, [hint]);
    }

    #[test]
    fn special_files_are_reported_and_unprobed_ones_are_undecided() {
        let assertion = json!({"id": "a", "type": "file_exists", "path": "src"});
        let need = || Need::File { path: "src".into() };
        let found = |probed: Probed| judged(&assertion, &EvidenceBuilder::new().probed(need(), probed).evidence());
        assert_eq!(found(Probed::Directory).actual.as_deref(), Some("a directory"));
        assert_eq!(found(Probed::Outside).status, Status::Unmet);
        assert_eq!(found(Probed::Failed { reason: "permission denied".into() }).status, Status::Undecided);
        assert_eq!(judged(&assertion, &EvidenceBuilder::new().evidence()).reason, "`src` was not inspected");
        let mut nowhere = EvidenceBuilder::new().evidence();
        nowhere.collected.sandbox = None;
        assert_eq!(judged(&assertion, &nowhere).reason, "the trial has no sandbox with the files of the agent");
    }
}
