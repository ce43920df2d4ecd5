//! What the readers of other tools' suites share: the file while it is read, and the entries of its assertions.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{self, Fields, Problems, add_unknown_key};
use model::{
    Arguments, AssertionScope, AssertionSpec, Case, CopyTree, Diagnostic, DiagnosticKind, Excerpt, FixtureFile,
    Fixtures, Node, NodeKind, Source, Spanned, nearest,
};

use super::break_case;
use crate::coverage::{Coverage, KeyLog, Treatment, Unknown};
use crate::document;
use crate::library::Library;
use crate::path;

/// Type of the assertions that graders of other tools become.
const GRADER: &str = "grader";

/// Tag of their entries, which distinguishes them from those that a user writes.
const GRADER_TAG: &str = "!grader";

/// Maximum size of a file that is copied into sandboxes or quoted in a command, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Names of keys with the consequences of ignoring or refusing them.
pub(super) type Keys<'a> = [(&'a str, &'a str)];

/// A suite of another tool while it is read.
pub(super) struct Reading<'a> {
    /// Folder against which the paths in the file are resolved.
    pub(super) directory: PathBuf,
    pub(super) library: &'a Library,
    /// Keys that were read so far.
    pub(super) keys: KeyLog,
    /// Problems with what is read: the whole file, or one of its cases.
    pub(super) found: Problems,
}

impl<'a> Reading<'a> {
    pub(super) fn new(path: &Path, library: &'a Library) -> Self {
        let directory = super::directory(path).to_owned();
        Self { directory, library, keys: KeyLog::default(), found: Problems::new() }
    }

    /// Records the keys of a map. A key that is neither known nor `ignored` is refused, with the consequence in
    /// `refused` if it is there: the tool may do something with it that changes a verdict.
    pub(super) fn close(&mut self, fields: &Fields<'_>, path: &str, ignored: &Keys<'_>, refused: &Keys<'_>) {
        let unknown = |key: &str, _: &Node| {
            let consequence = refused.iter().find(|(known, _)| *known == key).map(|(_, consequence)| *consequence);
            Unknown::Refused(consequence.unwrap_or("trialrun does not know what it does").to_owned())
        };
        // A key with a known meaning is never a misspelt one.
        let mut misspelt = Problems::new();
        let mut broken = self.keys.close(fields, path, ignored, unknown, &mut misspelt);
        misspelt.retain(|problem| !is_one_of(refused, problem));
        for (key, consequence) in refused {
            let place = fields.key_span(key).map(|span| fields.node().source.excerpt(span));
            if let Some(place) = place.filter(|place| !broken.iter().any(|one| one.source.as_ref() == Some(place))) {
                self.keys.add(joined(path, key), Treatment::Refused, Some((*consequence).to_owned()), place.clone());
                broken.push(Diagnostic::error(format!("`{key}` is not supported: {consequence}")).at(place));
            }
        }
        let (known, unknown): (Problems, Problems) =
            broken.into_iter().partition(|problem| is_one_of(refused, problem));
        let unknown = misspelt.into_iter().chain(unknown);
        unknown.for_each(|problem| add_unknown_key(fields.node(), problem, &mut self.found));
        self.found.extend(known);
    }

    /// Reports the first key of a grader that belongs to its `config`, whose keys `config` has read, in place of the
    /// problems since `known`, which follow from it.
    pub(super) fn report_beside_config(&mut self, grader: &Fields<'_>, config: &Fields<'_>, known: usize) {
        let is_of_config = |name: &str| config.known().any(|key| key == name);
        let Some((name, _)) = grader.unread().find(|(name, _)| is_of_config(&name.value)) else { return };
        self.found.truncate(known);
        let problem = Diagnostic::error(format!("`{}` belongs to the `config` of the grader", name.value));
        let problem = problem.at(grader.node().source.excerpt(name.span));
        self.found.push(problem.help(format!("write `config: {{ {}: … }}`", name.value)));
    }

    /// Records a key that has no effect.
    pub(super) fn ignore(&mut self, key: &str, consequence: &str, place: &Node) {
        self.keys.add(key.to_owned(), Treatment::Ignored, Some(consequence.to_owned()), place.excerpt());
    }

    /// Records a value without which a verdict would differ, and breaks the case.
    pub(super) fn refuse(&mut self, key: &str, consequence: &str, place: &Node) {
        self.keys.add(key.to_owned(), Treatment::Refused, Some(consequence.to_owned()), place.excerpt());
        let name = key.rsplit('.').next().unwrap_or(key);
        self.found.push(place.error(format!("`{name}` is not supported: {consequence}")));
    }

    /// Reads the items of a list of maps whose key is `path`.
    pub(super) fn maps<'n>(&mut self, node: Option<&'n Node>, path: &str) -> Vec<&'n Node> {
        match node.map(|node| (node, &node.kind)) {
            None | Some((_, NodeKind::Null)) => Vec::new(),
            Some((_, NodeKind::List(items))) => items.iter().collect(),
            Some((other, _)) => {
                self.found.push(other.error(format!("`{path}` must be a list, not {}", other.kind_name())));
                Vec::new()
            }
        }
    }

    /// Returns the path that `written` means.
    pub(super) fn path_of(&self, written: &str) -> PathBuf {
        path::resolve(&self.directory, written)
    }

    /// Reports a path that is not in the sandbox.
    pub(super) fn check_path(&mut self, path: &Node) {
        let written = path.as_str().unwrap_or_default();
        if let Err(fault) = path::inside_sandbox(written) {
            let problem = path.error(format!("`{written}` {fault}"));
            self.found.push(problem.help("write a path relative to the working directory"));
        }
    }

    /// Reads the text file `written`, or reports that it cannot be read.
    pub(super) fn open(&mut self, written: &str, place: &Node) -> Option<Arc<Source>> {
        let path = self.path_of(written);
        let shown = self.library.shown(&path);
        document::open(&path, &shown)
            .map_err(|problem| {
                let reason = if path.exists() { problem.message } else { "there is no such file".to_owned() };
                let problem = place.error(format!("cannot read `{shown}`: {reason}"));
                self.found.push(problem.suggest(path::near(&path, written).as_deref()));
            })
            .ok()
    }

    /// Adds the file or the contents of the folder `written` to the sandbox, at `to`.
    pub(super) fn stage(&mut self, written: &str, to: &str, fixtures: &mut Fixtures, place: &Node) {
        let from = self.path_of(written);
        let target = match path::inside_sandbox(to) {
            Ok(target) => target,
            Err(fault) => {
                self.found.push(place.error(format!("`{to}` {fault}")));
                return;
            }
        };
        if from.is_dir() {
            fixtures.copy_trees.push(CopyTree { from, to: target, source: place.excerpt() });
            return;
        }
        match files::read_named(&from, MAX_BYTES) {
            Ok(content) => {
                let name = from.file_name().unwrap_or_default().to_string_lossy();
                let is_folder = to.ends_with('/') || target == ".";
                let path = match (is_folder, target.as_str()) {
                    (true, ".") => name.into_owned(),
                    (true, folder) => format!("{folder}/{name}"),
                    (false, _) => target,
                };
                let (executable, source) = (is_executable(&from), place.excerpt());
                fixtures.files_unstaged.push(FixtureFile { path, content: content.into(), executable, source });
            }
            Err(error) => {
                let shown = self.library.shown(&from);
                self.found.push(place.error(format!("cannot read `{shown}`: {error}")));
            }
        }
    }

    /// Returns the arguments of a program as words of a shell, and the lines before it. The agent must not see the
    /// scripts of the suite, so those lines write the files that the arguments name.
    pub(super) fn scripts(&mut self, args: &[String], place: &Node) -> Option<(String, Vec<String>)> {
        let (mut front, mut words) = (String::new(), Vec::with_capacity(args.len()));
        for (index, arg) in args.iter().enumerate() {
            let path = self.path_of(arg);
            if arg.is_empty() || !path.is_file() {
                words.push(quoted(arg));
                continue;
            }
            let source = self.open(arg, place)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let target = format!("\"${{TMPDIR:-/tmp}}\"/{index}-{}", quoted(&name));
            front.push_str(&format!("printf %s {} > {target} || exit 126\n", quoted(&source.text)));
            words.push(target);
        }
        Some((front, words))
    }

    /// Returns the coverage of the file, which is in `format`.
    pub(super) fn coverage(self, shown: &str, format: &'static str) -> Coverage {
        self.keys.finish(shown, format)
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    false
}

/// Returns `true` if `problem` is about one of `keys`.
pub(super) fn is_one_of(keys: &Keys<'_>, problem: &Diagnostic) -> bool {
    matches!(&problem.kind, DiagnosticKind::UnknownKey { key, .. } if keys.iter().any(|(known, _)| known == key))
}

/// Returns `true` if a list in `root` has a key that is similar to `key`.
pub(super) fn misspelt_list(root: &Node, key: &str) -> bool {
    let NodeKind::Map(entries) = &root.kind else { return false };
    let lists = entries.iter().filter(|(_, value)| matches!(value.kind, NodeKind::List(_)));
    nearest(key, lists.map(|(name, _)| name.value.as_str())).is_some()
}

/// Returns the path of a key in a map whose own path may be empty.
fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Variable that gives a case a sandbox, which commands need.
const MARK: (&str, &str) = ("PYTHONDONTWRITEBYTECODE", "1");

/// Gives a case without files a sandbox.
pub(super) fn with_sandbox(fixtures: &mut Fixtures) {
    if fixtures.is_empty() && fixtures.env.is_empty() {
        fixtures.env.push((MARK.0.to_owned(), MARK.1.to_owned()));
    }
}

/// Breaks each case of a file with the errors about the whole file. The other problems are reported.
pub(super) fn contained(mut cases: Vec<Case>, found: Problems, problems: &mut Problems) -> Vec<Arc<Case>> {
    let (errors, others): (Problems, Problems) = found.into_iter().partition(Diagnostic::is_error);
    problems.extend(others);
    if cases.is_empty() {
        problems.extend(errors);
        return Vec::new();
    }
    for case in &mut cases {
        case.fails_alone = true;
        break_case(case, &errors);
    }
    cases.into_iter().map(Arc::new).collect()
}

/// Names that are unique.
#[derive(Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// Places of the names that users wrote.
    written: HashMap<String, Excerpt>,
    /// Warnings about names that users wrote twice.
    pub(super) twins: Problems,
}

impl Names {
    /// Returns the name of a case that a user wrote at `place`, with a number if an earlier case has it.
    pub(super) fn written(&mut self, name: &str, place: &Node) -> String {
        let unique = self.unique(name);
        if let Some(first) = self.written.get(name) {
            let problem = place.warning(format!("a second case is called `{name}`, so it runs as `{unique}`"));
            let problem = problem.of(DiagnosticKind::TakenId);
            self.twins.push(problem.help(format!("the first is at {first}; give each case a unique name")));
        } else {
            self.written.insert(name.to_owned(), place.excerpt());
        }
        unique
    }

    /// Returns `base`, with a number if it was returned before.
    pub(super) fn unique(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut number = 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{base}-{number}");
        }
        name
    }
}

/// Reads a share that a score needs, above 0 and up to 1. With 0, nothing would be asserted.
pub(super) fn share(node: &Node, key: &str, problems: &mut Problems) -> Option<f64> {
    let number = as_number(node).filter(|number| (0.0..=1.0).contains(number));
    let problem = match number {
        Some(number) if number > 0.0 => return Some(number),
        Some(_) => format!("`{key}` is 0, so any answer passes"),
        None => format!("`{key}` must be a number above 0, up to 1, not {}", decode::shown(node)),
    };
    problems.push(node.error(problem));
    None
}

/// Creates a node at the place of another one.
pub(super) fn at(place: &Node, kind: NodeKind) -> Node {
    Node { kind, span: place.span, tag: None, source: Arc::clone(&place.source) }
}

/// Creates a string at the place of a node.
pub(super) fn text(place: &Node, text: impl Into<String>) -> Node {
    at(place, NodeKind::String(text.into()))
}

/// Creates a boolean at the place of a node.
pub(super) fn flag(place: &Node, flag: bool) -> Node {
    at(place, NodeKind::Bool(flag))
}

/// Creates a whole number at the place of a node.
pub(super) fn whole(place: &Node, number: u64) -> Node {
    at(place, NodeKind::Number(number.into()))
}

/// Creates a number at the place of a node; null if it is not finite.
pub(super) fn number(place: &Node, number: f64) -> Node {
    at(place, serde_json::Number::from_f64(number).map_or(NodeKind::Null, NodeKind::Number))
}

/// Creates a list at the place of a node.
pub(super) fn list(place: &Node, items: Vec<Node>) -> Node {
    at(place, NodeKind::List(items))
}

/// Creates a map at the place of a node.
pub(super) fn map(place: &Node, entries: Vec<(&str, Node)>) -> Node {
    let key = |key: &str| Spanned::new(key.to_owned(), place.span);
    at(place, NodeKind::Map(entries.into_iter().map(|(name, value)| (key(name), value)).collect()))
}

/// Creates a check of a grader.
pub(super) fn check(place: &Node, name: &str, mut fields: Vec<(&str, Node)>) -> Node {
    fields.insert(0, ("check", text(place, name)));
    map(place, fields)
}

/// Creates a check that is never decided.
pub(super) fn undecided(place: &Node, reason: &str) -> Node {
    check(place, "undecided", vec![("reason", text(place, reason))])
}

/// Creates an assertion of the type `kind`.
pub(super) fn assertion(place: &Node, id: &str, kind: &str, fields: Vec<(&str, Node)>, weight: f64) -> AssertionSpec {
    let mut entries = vec![("id", text(place, id)), ("type", text(place, kind))];
    entries.extend(fields);
    AssertionSpec {
        node: map(place, entries),
        arguments: Arguments::Fields,
        about: AssertionScope::Trial,
        id: id.to_owned(),
        kind: Spanned::new(kind.to_owned(), place.span),
        weight,
    }
}

/// Creates the assertion for a grader whose checks must all hold. With `is_share`, its score is the mean of theirs.
pub(super) fn grader(place: &Node, id: &str, checks: Vec<Node>, is_share: bool, weight: f64) -> AssertionSpec {
    let fields = vec![("checks", list(place, checks)), ("share", flag(place, is_share))];
    let mut spec = assertion(place, id, GRADER, fields, weight);
    spec.node.tag = Some(GRADER_TAG.into());
    spec
}

/// Returns the number that a node is.
pub(super) fn as_number(node: &Node) -> Option<f64> {
    decode::number(node)?.as_f64()
}

/// Returns the field that names a program of the machine, which is one without a path. If it is missing, the check of the
/// command is undecided.
pub(super) fn of_machine(place: &Node, program: &str) -> Option<(&'static str, Node)> {
    (!program.contains('/')).then(|| ("program", text(place, program)))
}

/// Returns `text` as a word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
