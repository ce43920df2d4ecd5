//! `promptfoo`: configurations of promptfoo, read in place. Each combination of a test, a prompt and a provider is a
//! case. docs/coming-from-promptfoo.md describes what is honoured and what differs.

mod assertion;
mod case;
mod config;
mod csv_row;
mod file;
mod hosted;
mod module;
mod prompt;
mod provider;
mod reading;
mod test;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Case, Diagnostic, Node, Source, Span};

use self::reading::Reading;
use super::{Format, NamedFormat, SuiteFile, file_name};
use crate::document::{self, Language};
use crate::library::Library;
use crate::module_tree::{self, Tree};

/// The `promptfoo` format in files with any name, which promptfoo gets with `-c`.
pub const PROMPTFOO: Format = Format {
    name: NAME,
    tool: Some("promptfoo"),
    mark: "a configuration of promptfoo: a map with `prompts` and `providers` or `targets`",
    fails_alone: true,
    is_meant: |text| {
        let has = |key: &str| text.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
        has("prompts") && (has("providers") || has("targets"))
    },
    resembles: recognises,
    recognises,
    read: |file, library, problems| {
        let reading = Reading::new(file.path, library);
        cases(reading, Some(file.root), &file.root.source, problems)
    },
};

fn recognises(file: &SuiteFile<'_>) -> bool {
    let has = |key: &str| file.root.get(key).is_some();
    has("prompts") && (has("providers") || has("targets"))
}

/// The `promptfoo` format in files with its name.
pub const PROMPTFOO_CONFIG: NamedFormat = NamedFormat {
    name: NAME,
    tool: Some("promptfoo"),
    mark: "a configuration of promptfoo, called `promptfooconfig.yaml`, or with `.json`, `.js` or `.ts` at its end",
    fails_alone: true,
    is_meant: |_, _| true,
    suite: |path| {
        let (stem, ending) = file_name(path)?.rsplit_once('.')?;
        (stem.starts_with(STEM) && ENDINGS.contains(&ending)).then_some(stem)
    },
    folder: |_| None,
    read,
};

/// Name of the format.
const NAME: &str = "promptfoo";

/// Start of the names of its files.
const STEM: &str = "promptfooconfig";

/// Endings of the names of its files.
const ENDINGS: [&str; 9] = ["yaml", "yml", "json", "js", "cjs", "mjs", "ts", "cts", "mts"];

fn read(path: &Path, source: &Arc<Source>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    let mut reading = Reading::new(path, library);
    let root = root(path, source, library, &mut reading.found);
    cases(reading, root.as_ref(), source, problems)
}

/// Returns the cases of the configuration `root`, which is `None` if it cannot be read.
fn cases(
    mut reading: Reading<'_>,
    root: Option<&Node>,
    source: &Arc<Source>,
    problems: &mut Problems,
) -> Vec<Arc<Case>> {
    let mut cases = root.map(|root| reading.cases(root)).unwrap_or_default();
    let Reading { keys, found, library, .. } = reading;
    library.cover(keys.finish(&source.path, NAME));
    let (errors, others): (Problems, Problems) = found.into_iter().partition(Diagnostic::is_error);
    problems.extend(others);
    if cases.is_empty() && !errors.is_empty() {
        cases.push(Case::new(NAME, source.excerpt(Span::new(0, 0))));
    }
    for case in &mut cases {
        case.fails_alone = true;
        case.broken.extend(errors.iter().cloned());
    }
    cases.into_iter().map(Arc::new).collect()
}

/// Returns the contents of the configuration.
fn root(path: &Path, source: &Arc<Source>, library: &Library, problems: &mut Problems) -> Option<Node> {
    if let Some(language) = Language::from_path(path) {
        return document::read(source, language, problems);
    }
    let exports = module_tree::exports(path, source, &library.cwd, false, &[&["default"]], problems)?;
    let Some((name, value)) = exports.into_iter().next().flatten() else {
        problems.push(document::start(source).error("the module has no default export"));
        return None;
    };
    Some(Tree { module: path, source, problems }.export(name, &value))
}
