//! The folder that generated tests are written to.

use std::io::Write;
use std::path::{Path, PathBuf};

use generate::{Context, ExistingTest, Format, RenderedTest, add_to_evals};
use serde_json::Value;

use super::{GenArgs, Skill, shown_path};
use crate::error::CliError;
use session::Session;

/// Maximum size of an existing test, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Folder for the files of scenarios, next to them. Folders with this name are not searched for tests.
pub(super) const FIXTURES: &str = "fixtures";

/// The folder that generated tests are written to.
pub(super) struct TestFolder {
    path: PathBuf,
    shown: String,
    format: &'static Format,
    skill: Option<String>,
    replaces: bool,
}

impl TestFolder {
    /// Checks that tests can be written there, without creating anything.
    pub fn open(
        args: &GenArgs,
        format: &'static Format,
        skill: Option<&Skill>,
        context: &Session,
    ) -> Result<Self, CliError> {
        let needs_skill = || {
            CliError::usage(format!("the format `{}` needs a skill", format.name))
                .hint("name a folder with a SKILL.md, or use another format, such as `ts`")
        };
        if format.is_of_skill && skill.is_none() {
            return Err(needs_skill());
        }
        let root = &context.project.root;
        let path = match (&args.output, skill) {
            (Some(output), _) => context.cwd.join(output),
            (None, Some(skill)) if format.common_file.is_some() => skill.folder.join(format.folder),
            (None, _) => match (format.folder.strip_prefix("tests/"), &context.project.tests) {
                (Some(rest), Some(tests)) => tests.join(rest),
                _ => root.join(format.folder),
            },
        };
        let skills_dir = context.project.skills_dir.canonicalize();
        if let (Some(skill), "scenario") = (skill, format.name)
            && skill.folder.parent() != skills_dir.as_deref().ok()
        {
            return Err(CliError::usage(format!(
                "scenarios find the skill `{}` only in the folder of skills",
                skill.name
            ))
            .hint(format!(
                "move it to {}, or use `--format evals`",
                shown_path(&context.project.skills_dir, context)
            )));
        }
        if path.exists() && !path.is_dir() {
            return Err(CliError::usage(format!("{} is not a folder", shown_path(&path, context))));
        }
        let shown = shown_path(&path, context);
        Ok(Self { path, shown, format, skill: skill.map(|skill| skill.name.clone()), replaces: args.force })
    }

    /// Returns the folder for scenarios from sessions, without creating anything.
    pub fn of_sessions(args: &GenArgs, context: &Session) -> Result<Self, CliError> {
        let format = generate::find_format("scenario").unwrap_or(&generate::FORMATS[0]);
        let path = context.cwd.join(args.output.clone().unwrap_or_else(|| context.project.root.join(format.folder)));
        if path.exists() && !path.is_dir() {
            return Err(CliError::usage(format!("{} is not a folder", shown_path(&path, context))));
        }
        let shown = shown_path(&path, context);
        Ok(Self { path, shown, format, skill: None, replaces: args.force })
    }

    /// Checks that a scenario called `name` can be written.
    pub fn check_scenario(&self, name: &str) -> Result<(), CliError> {
        let (file, own) = self.scenario(name);
        if self.replaces || !(file.exists() || own.exists()) {
            return Ok(());
        }
        Err(CliError::usage(format!("{}/{name}{} already exists", self.shown, self.format.extension))
            .hint("`--force` replaces it, and `--output DIR` writes it elsewhere"))
    }

    /// Returns the paths of a scenario and of the folder with its files.
    fn scenario(&self, name: &str) -> (PathBuf, PathBuf) {
        let file = self.path.join(format!("{name}{}", self.format.extension));
        (file, self.path.join(FIXTURES).join(name))
    }

    /// Writes a scenario called `name` and copies its files from the folder `files`. Returns its path for messages.
    pub fn save_scenario(&self, name: &str, text: &str, files: &Path) -> Result<String, CliError> {
        let (file, own) = self.scenario(name);
        let failed = |error: std::io::Error| CliError::usage(format!("cannot write to {}: {error}", self.shown));
        if own.exists() {
            std::fs::remove_dir_all(&own).map_err(failed)?;
        }
        copy(files, &own).map_err(failed)?;
        write_new(&file, text, self.replaces).map_err(failed)?;
        Ok(format!("{}/{name}{}", self.shown, self.format.extension))
    }

    /// Path for messages.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the existing tests in this format.
    pub fn existing(&self) -> Result<Vec<ExistingTest>, CliError> {
        let failed = |error: std::io::Error| CliError::usage(format!("cannot read {}: {error}", self.shown));
        if let Some(name) = self.format.common_file {
            let file = self.path.join(name);
            if !file.exists() {
                return Ok(Vec::new());
            }
            let text = files::read_named_text(&file, LARGEST).map_err(failed)?;
            let suite: Value = serde_json::from_str(&text)
                .map_err(|error| CliError::usage(format!("{}/{name} is not valid JSON: {error}", self.shown)))?;
            let cases = suite.get("evals").and_then(Value::as_array).cloned().unwrap_or_default();
            let id = |case: &Value| case.get("id").map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
            let case = |case: &Value| Some(ExistingTest { name: id(case)?, text: case.to_string() });
            return Ok(cases.iter().filter_map(case).collect());
        }
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let mut tests = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Some(name) = name.strip_suffix(self.format.extension) else { continue };
            // Both conversations and fixtures files end in `.yaml`.
            if !name.contains('.') && entry.path().is_file() {
                let text = files::read_named_text(&entry.path(), LARGEST).map_err(failed)?;
                tests.push(ExistingTest { name: name.to_owned(), text });
            }
        }
        tests.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tests)
    }

    /// Writes a test into `folder` as it will later be in the real folder. Returns the file to run.
    pub fn stage(&self, test: &RenderedTest, folder: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        for (path, content) in &test.files {
            write_new(&folder.join(path), content, true)?;
        }
        let own = || format!("{}{}", test.slug, self.format.extension);
        let file = folder.join(self.format.common_file.map_or_else(own, str::to_owned));
        std::fs::write(&file, &test.text)?;
        Ok(file)
    }

    /// Writes an admitted test, and returns its path for messages. An existing file is replaced only with `--force`,
    /// but cases are added to an existing `evals.json`.
    pub fn save(&self, test: &RenderedTest) -> Result<String, String> {
        let failed = |file: &str, error: std::io::Error| format!("cannot write {}/{file}: {error}", self.shown);
        std::fs::create_dir_all(&self.path).map_err(|error| failed("", error))?;
        for (path, content) in &test.files {
            write_new(&self.path.join(path), content, self.replaces).map_err(|error| failed(path, error))?;
        }
        if let Some(name) = self.format.common_file {
            self.add_case(test, name)?;
            return Ok(format!("{}/{name}#{}", self.shown, test.slug));
        }
        let name = format!("{}{}", test.slug, self.format.extension);
        write_new(&self.path.join(&name), &test.text, self.replaces).map_err(|error| failed(&name, error))?;
        Ok(format!("{}/{name}", self.shown))
    }

    fn add_case(&self, test: &RenderedTest, name: &str) -> Result<(), String> {
        let file = self.path.join(name);
        let failed = |error: std::io::Error| format!("cannot write {}/{name}: {error}", self.shown);
        if !file.exists() {
            return write_new(&file, &test.text, false).map_err(failed);
        }
        let text = files::read_named_text(&file, LARGEST).map_err(failed)?;
        let context = Context { targets: &[], skill: self.skill.as_deref() };
        let more = add_to_evals(&text, &test.candidate, &context)
            .map_err(|problem| format!("cannot add to {}/{name}: {problem}", self.shown))?;
        write_new(&file, &more, true).map_err(failed)
    }
}

/// Copies a folder, with links as links.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path())?, target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Writes a file atomically.
fn write_new(path: &Path, content: &str, replaces: bool) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content.as_bytes())?;
    // Temporary files are private, but tests should not be.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    let persisted = if replaces { file.persist(path) } else { file.persist_noclobber(path) };
    persisted.map(drop).map_err(|error| error.error)
}
