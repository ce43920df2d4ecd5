//! A folder with the source code of an agent, in any language.

use std::collections::BTreeSet;
use std::path::Path;

use ignore::WalkBuilder;
use model::Diagnostic;

use super::code::Syntax;
use super::secret::{self, Clean};
use super::{ReadResult, Reading, SourceFile, code, configuration, has_extension, manifest, prompt, skill};
use crate::profile::Profile;

/// Maximum number of files that are read.
const MOST_FILES: usize = 2_000;

/// Maximum size of a file, in bytes.
const LARGEST: u64 = 512 * 1024;

/// Maximum size of all files together, in bytes.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Number of source files for which another thread is started.
const PER_THREAD: usize = 20;

/// Folders with code of others, generated files or tests.
const SKIPPED: [&str; 20] = [
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    "vendor",
    "venv",
    "__pycache__",
    "site-packages",
    "coverage",
    "tests",
    "test",
    "__tests__",
    "__mocks__",
    "testdata",
    "fixtures",
    "benches",
    "bower_components",
    "Pods",
    "obj",
];

/// Files that programs write.
const GENERATED: [&str; 10] = [
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "Cargo.lock",
    "poetry.lock",
    "uv.lock",
    "Pipfile.lock",
    "composer.lock",
    "go.sum",
];

/// Extensions of text files that may contain prompts.
const TEXTS: [&str; 10] = ["md", "markdown", "txt", "prompt", "j2", "jinja", "jinja2", "tmpl", "mustache", "hbs"];

/// Extensions of documents.
const DOCUMENTS: [&str; 3] = ["json", "yaml", "yml"];

pub(super) fn read(path: &Path, shown: &str) -> Option<ReadResult> {
    path.is_dir().then(|| Ok(Tree::of(path, shown).reading))
}

/// Reads a single file with source code.
pub(super) fn read_file(path: &Path, shown: &str) -> Option<ReadResult> {
    let extension = path.extension()?.to_str()?;
    code::of_extension(extension).filter(|_| path.is_file())?;
    let mut tree = Tree::default();
    Some(match tree.add(path, shown, shown) {
        Ok(()) => Ok(tree.finish()),
        Err(error) => Err(vec![Diagnostic::error(format!("cannot read `{shown}`: {error}"))]),
    })
}

/// What was found in a folder. Code is trusted more than configuration, and a README least.
#[derive(Default)]
struct Tree {
    /// Source files: their indices in `reading.files`, and their languages.
    sources: Vec<(usize, Syntax)>,
    code: Profile,
    configuration: Profile,
    manifest: Profile,
    readme: Profile,
    reading: Reading,
    bytes: usize,
    too_large: usize,
}

impl Tree {
    fn of(folder: &Path, shown: &str) -> Self {
        let mut tree = Self::default();
        let mut left_out = 0_usize;
        let is_kept = |entry: &ignore::DirEntry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0 || !is_folder || !SKIPPED.iter().any(|name| entry.file_name() == *name)
        };
        let walk = WalkBuilder::new(folder)
            .require_git(false)
            .follow_links(false)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .filter_entry(is_kept)
            .build();
        let base = shown.trim_end_matches('/');
        tree.reading.secrets.extend(secret::of_environment_files(folder));
        for entry in walk.flatten() {
            let within = entry.path().strip_prefix(folder).ok().and_then(Path::to_str);
            let Some(within) = within.filter(|_| entry.file_type().is_some_and(|kind| kind.is_file())) else {
                continue;
            };
            if !is_readable(entry.path()) {
                continue;
            }
            if tree.reading.files.len() >= MOST_FILES || tree.bytes >= MOST_BYTES {
                left_out += 1;
                continue;
            }
            let name = if base == "." || base.is_empty() { within.to_owned() } else { format!("{base}/{within}") };
            // A file that cannot be read says nothing about the agent.
            let _ = tree.add(entry.path(), &name, within);
        }
        let mut problem = |count: usize, what: &str| {
            if count > 0 {
                let files = if count == 1 { "1 file" } else { &format!("{count} files") };
                tree.reading.problems.push(Diagnostic::warning(format!("{files} in `{shown}` {what}")));
            }
        };
        problem(tree.too_large, &format!("larger than {} KiB not read", LARGEST >> 10));
        problem(left_out, &format!("not read: the limit is {MOST_FILES} files and {} MiB", MOST_BYTES >> 20));
        tree.reading = std::mem::take(&mut tree).finish();
        tree
    }

    /// Reads a file, which is shown as `name` and is at `within` in its folder.
    fn add(&mut self, path: &Path, name: &str, within: &str) -> std::io::Result<()> {
        let content = match files::read(path, LARGEST) {
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                self.too_large += 1;
                return Err(error);
            }
            content => content?,
        };
        let invalid = || std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text");
        let content = String::from_utf8(content).ok().filter(|text| !text.contains('\0')).ok_or_else(invalid)?;
        self.bytes += content.len();
        let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let syntax = code::of_extension(extension);
        let Clean { text, secrets } = match syntax {
            Some(syntax) => secret::in_code(&content, syntax),
            None => secret::in_text(&content),
        };
        self.reading.secrets.extend(secrets);
        if manifest::MANIFESTS.contains(&file_name) {
            self.manifest.merge(manifest::read(&text, name));
        } else if manifest::is_readme(file_name) {
            self.readme.merge(manifest::purpose(&text, name));
            self.readme.merge(manifest::rules(&text, name));
        } else if file_name == "SKILL.md" {
            if let Some(Ok(found)) = skill::read(path, name) {
                self.configuration.merge(Profile { name: None, description: None, tools: Vec::new(), ..found.profile });
            }
        } else if let Some(syntax) = syntax {
            self.sources.push((self.reading.files.len(), syntax));
        } else if has_extension(path, &DOCUMENTS) {
            self.configuration.merge(configuration::read(path, &text, name));
        } else if is_prompt(within) {
            self.code.merge(prompt::facts(&text, name));
        }
        self.reading.files.push(SourceFile { name: name.to_owned(), text });
        Ok(())
    }

    fn finish(self) -> Reading {
        let mut reading = self.reading;
        let mut listed = BTreeSet::new();
        let sources = || self.sources.iter().map(|(at, syntax)| (&reading.files[*at], *syntax));
        sources().for_each(|(file, syntax)| code::add_listed(&file.text, syntax, &mut listed));
        let found = files::parallel::map(sources().collect(), PER_THREAD, |(file, syntax)| {
            code::read(&file.text, &file.name, syntax, &listed)
        });
        found.into_iter().for_each(|found| reading.profile.merge(found));
        for part in [self.code, self.configuration, self.readme, self.manifest] {
            reading.profile.merge(part);
        }
        reading
    }
}

/// Returns `true` if the name of a file says that it is text that may concern the agent.
fn is_readable(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let is_generated = GENERATED.contains(&name) || name.contains(".min.") || name.ends_with(".d.ts");
    let is_known = code::of_extension(extension).is_some()
        || has_extension(path, &TEXTS)
        || has_extension(path, &DOCUMENTS)
        || manifest::MANIFESTS.contains(&name)
        || manifest::is_readme(name);
    is_known && !is_generated && !code::is_test_file(name)
}

/// Returns `true` if the path of a text file says that it is a prompt.
fn is_prompt(within: &str) -> bool {
    let lower = within.to_ascii_lowercase();
    let is_about = |word: &&str| lower.contains(*word);
    lower.ends_with(".prompt")
        || ["prompt", "instruction", "persona", "system", "guardrail", "guideline", "policy", "policies"]
            .iter()
            .any(is_about)
}
