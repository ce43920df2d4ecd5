//! Finds and reads the configuration file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::Problems;
use model::{Diagnostic, Excerpt, Node, Source, Span, nearest};

use crate::document::{self, Language};
use crate::module_tree::{self, FUNCTION, Tree};
use crate::path::shown;
use crate::skills::names_in;

/// Returns the dialect of a configuration file with this name.
pub(super) fn dialect_of(path: &Path) -> Option<Dialect> {
    let name = path.file_name()?;
    FILES.iter().find(|(known, _)| name == *known).map(|(_, dialect)| *dialect)
}

/// Names of configuration files; the first that exists in a directory is read.
const FILES: [(&str, Dialect); 17] = [
    ("trialrun.config.ts", Dialect::Own),
    ("trialrun.config.mts", Dialect::Own),
    ("trialrun.config.cts", Dialect::Own),
    ("trialrun.config.js", Dialect::Own),
    ("trialrun.config.mjs", Dialect::Own),
    ("trialrun.config.cjs", Dialect::Own),
    ("trialrun.config.json", Dialect::Own),
    ("trialrun.yaml", Dialect::Own),
    ("trialrun.yml", Dialect::Own),
    ("fabrik.config.ts", Dialect::Fabrik),
    ("fabrik.config.mts", Dialect::Fabrik),
    ("fabrik.config.cts", Dialect::Fabrik),
    ("fabrik.config.js", Dialect::Fabrik),
    ("fabrik.config.mjs", Dialect::Fabrik),
    ("fabrik.config.cjs", Dialect::Fabrik),
    ("fabrik.config.json", Dialect::Fabrik),
    (".ai-tester.yaml", Dialect::AiTester),
];

/// Dialect of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// trialrun's own format.
    Own,
    /// Fabrik: the same keys with other defaults.
    Fabrik,
    /// ai-tester: fewer keys.
    AiTester,
}

/// A configuration file that was found.
pub struct Found {
    /// Path of the file.
    pub path: PathBuf,
    /// Dialect of the file.
    pub dialect: Dialect,
}

/// Returns the configuration in `directory`. A second one in the same format is an error. One in another format is not
/// read, which causes a warning unless the one that is read is in our own format.
pub fn in_directory(directory: &Path, cwd: &Path, problems: &mut Problems) -> Option<Found> {
    // Pipes and devices are included: reading one reports that it is not a regular file.
    let is_there = |name: &str| std::fs::metadata(directory.join(name)).is_ok_and(|meta| !meta.is_dir());
    let mut found = FILES.iter().filter(|(name, _)| is_there(name));
    let (first, dialect) = found.next()?;
    if let Some((second, other)) = found.next() {
        let at = Excerpt::of_file(shown(&directory.join(second), cwd));
        if other == dialect {
            let message = format!("two configurations in one directory: `{first}` and `{second}`");
            problems.push(Diagnostic::error(message).at(at));
        } else if *dialect != Dialect::Own {
            let message = format!("`{second}` is ignored because `{first}` takes precedence");
            problems.push(Diagnostic::warning(message).at(at));
        }
    }
    Some(Found { path: directory.join(first), dialect: *dialect })
}

/// Reports files in `directory` whose names are nearly those of a configuration. Nothing may run without it.
pub fn misnamed(directory: &Path, cwd: &Path) -> Problems {
    const EXTENSIONS: [&str; 11] = ["yaml", "yml", "json", "jsonc", "toml", "ts", "mts", "cts", "js", "mjs", "cjs"];
    let near = |name: &String| {
        let (stem, extension) = name.rsplit_once('.')?;
        let is_config = ["trialrun", "trialrun.config"].iter().any(|own| nearest(stem, [*own]).is_some());
        let own = names().find(|own| own.strip_prefix("trialrun.config.") == Some(extension));
        let right = if extension == "jsonc" { "trialrun.config.json" } else { own.unwrap_or("trialrun.yaml") };
        (is_config && !stem.ends_with(".d") && EXTENSIONS.contains(&extension)).then_some(right)
    };
    let report = |name: String| {
        let right = near(&name).filter(|_| has_settings(&directory.join(&name)))?;
        let problem = Diagnostic::error("this file is not read as the configuration because of its name");
        let problem = problem.at(Excerpt::of_file(shown(&directory.join(&name), cwd)));
        Some(match name.ends_with(".toml") {
            true => problem.help(format!("write the settings as YAML, in a file called `{right}`")),
            false => problem.help(format!("did you mean `{right}`?")),
        })
    };
    names_in(directory).into_iter().filter_map(report).collect()
}

/// Returns `true` if the file at `path` looks like a configuration. A report, a schema or a module of the project's own may
/// have a name like it, too.
fn has_settings(path: &Path) -> bool {
    const KEYS: [&str; 5] = ["agent", "agents", "defaults", "judge", "skills_dir"];
    let text = document::guess(path).unwrap_or_default();
    let has_key = || KEYS.iter().any(|key| text.contains(key));
    if let Some(language) = Language::from_path(path) {
        let read = document::read(&Source::new("", &*text), language, &mut Problems::new());
        let is_set = |node: Node| KEYS.iter().any(|key| node.get(key).is_some()) && node.get("schema").is_none();
        return read.map_or_else(has_key, is_set);
    }
    let is_module = path.extension().and_then(|extension| extension.to_str()).is_some_and(|name| name.ends_with('s'));
    let exports = || ["export default", "module.exports"].iter().any(|form| text.contains(form));
    has_key() && (!is_module || exports())
}

/// Returns the allowed names for a configuration.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// Reads the file at `path`; an empty file is `null`. A module runs in the runtime that `library` chooses.
pub fn read(path: &Path, cwd: &Path, library: &script::Library, problems: &mut Problems) -> Option<Node> {
    let source = document::open(path, &shown(path, cwd)).map_err(|problem| problems.push(*problem)).ok()?;
    match Language::from_path(path) {
        Some(language) => document::read(&source, language, problems),
        None => of_module(path, &source, cwd, library, problems),
    }
}

fn of_module(
    path: &Path,
    source: &Arc<Source>,
    cwd: &Path,
    library: &script::Library,
    problems: &mut Problems,
) -> Option<Node> {
    const FORM: &str = "write `export default defineConfig({ … })`, or `export default { … }`";
    let exported = module_tree::exports_in(library, path, source, cwd, true, &[&["default"]], problems);
    if !library.is_external(path) {
        warn_of_environment(source, problems);
    }
    let exported = exported?.pop().flatten();
    let Some((_, value)) = exported else {
        problems.push(document::start(source).error("the configuration has no default export").help(FORM));
        return None;
    };
    let node = Tree { module: path, source, problems }.export("default", &value);
    if node.tag.as_deref() == Some(FUNCTION) {
        problems.push(node.error("the configuration must be a map, not a function").help(FORM));
        return None;
    }
    Some(node)
}

/// Warns about `process.env`. It is empty in a configuration, and without the warning nothing would indicate that.
fn warn_of_environment(source: &Arc<Source>, problems: &mut Problems) {
    const ASKED: &str = "process.env";
    let is_comment = |index: usize| {
        let line = source.text[..index].rsplit('\n').next().unwrap_or_default().trim_start();
        line.starts_with("//") || line.starts_with('*') || line.starts_with("/*")
    };
    let asked = source.text.match_indices(ASKED).map(|(offset, _)| offset).find(|offset| !is_comment(*offset));
    if let Some(at) = asked {
        let place = source.excerpt(Span::new(at, at + ASKED.len()));
        let problem = Diagnostic::warning("`process.env` is empty in a configuration").at(place);
        problems.push(problem.help("write \"${env.NAME}\" as the value; it is replaced by the value of the variable"));
    }
}
