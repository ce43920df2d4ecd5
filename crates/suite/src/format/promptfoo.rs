//! `promptfoo`: configurations of promptfoo, read in place. Each combination of a test, a prompt and a provider is a
//! case. docs/coming-from-promptfoo.md describes what is honoured and what differs.

mod assertion;
mod case;
mod config;
mod csv_row;
mod file;
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
use super::{NamedFormat, file_name};
use crate::document::{self, Language};
use crate::library::Library;
use crate::module_tree::{self, Tree};

/// The `promptfoo` format.
pub const PROMPTFOO: NamedFormat = NamedFormat {
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
    let mut cases = root.map(|root| reading.cases(&root)).unwrap_or_default();
    let Reading { keys, found, .. } = reading;
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
