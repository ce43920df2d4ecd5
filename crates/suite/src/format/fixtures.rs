//! `fixtures`: many cases in one file, each with an input and the expected answer.

mod case;
mod content;
mod expectation;
mod file_defaults;
mod layers;
mod merge;
mod misspelt_keys;
mod module;
mod scope;
mod suspicious_values;
mod tag;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use files::parallel;
use model::decode::{Fields, Problems};
use model::{Case, Diagnostic, DiagnosticKind, Node, NodeKind, Source, Spanned};

use self::case::Draft;
use self::content::Content;
use self::file_defaults::FileDefaults;
use self::layers::is_truthy;
use self::misspelt_keys::MisspeltKeys;
use super::rows::{self, CASES, Row};
use super::{NamedFormat, ONLY_CASE, directory, file_name, skip_others};
use crate::fixture_settings::field::{self, FIELDS};
use crate::library::Library;

/// The `fixtures` format.
pub const FIXTURES: NamedFormat = NamedFormat {
    name: "fixtures",
    tool: None,
    mark: "a file called `NAME.fixture.yaml`, or with `.yml`, `.json`, `.jsonl`, `.ts`, `.mts`, `.js`, `.mjs` at its end",
    fails_alone: false,
    is_meant: |_, _| true,
    suite: |path| split(file_name(path)?).map(|(name, _)| name),
    folder: |_| None,
    read,
};

/// Number of cases in a chunk that a thread reads at a time.
const PORTION: usize = 64;
/// Number of chunks per thread. If there are fewer, one thread reads them all, because starting another one costs as
/// much as reading dozens of cases.
const PORTIONS_PER_THREAD: usize = 4;

/// Part of the file name before the extension.
const MARKS: [&str; 2] = [".fixture.", ".fixtures."];

/// Allowed extensions, and how files with them are read.
const ENDINGS: [(&str, Ending); 8] = [
    ("yaml", Ending::Yaml),
    ("yml", Ending::Yaml),
    ("json", Ending::Json),
    ("jsonl", Ending::JsonLines),
    ("ts", Ending::Module),
    ("mts", Ending::Module),
    ("js", Ending::Module),
    ("mjs", Ending::Module),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Yaml,
    Json,
    JsonLines,
    Module,
}

fn read(path: &Path, source: &Arc<Source>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    let Some((_, ending)) = path.file_name().and_then(|name| split(name.to_str()?)) else { return Vec::new() };
    let content = match ending {
        Ending::Yaml => Content::from_yaml(source, problems),
        Ending::Json => Content::from_json(source, problems),
        Ending::JsonLines => Some(Content::from_json_lines(source, problems)),
        Ending::Module => Content::from_module(path, source, &library.cwd, problems),
    };
    content.map(|content| cases(path, content, library, problems)).unwrap_or_default()
}

/// Splits a file name into the name without the mark, and how the file is read.
fn split(file: &str) -> Option<(&str, Ending)> {
    let (rest, extension) = file.rsplit_once('.')?;
    let (_, ending) = ENDINGS.iter().find(|(name, _)| name.eq_ignore_ascii_case(extension))?;
    let dotted = file.get(..=rest.len())?;
    let name = MARKS.iter().find_map(|mark| dotted.strip_suffix(mark))?;
    (!name.is_empty()).then_some((name, *ending))
}

/// Returns the cases of the file at `path`.
fn cases(path: &Path, content: Content, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    let known = problems.len();
    let Content { front, cases: mut nodes, root, is_module } = content;
    if let Some(front) = &front {
        suspicious_values::warn(front, problems);
    }
    let file_defaults = FileDefaults::read(front.as_ref(), &root, path, is_module, library, problems);
    let table = front.as_ref().and_then(|front| front.get(CASES)).filter(|table| table.as_str().is_some());
    if let Some(table) = table {
        let has_title = file_defaults.front.get("title").is_some();
        let rows = rows::read(table, directory(path), library, problems);
        nodes.extend(rows.into_iter().map(|row| case_of_row(row, has_title)));
    } else if nodes.is_empty() && !problems.iter().any(Diagnostic::is_error) {
        problems.push(root.warning("the file has no cases"));
    }
    let mut drafts = read_all(&file_defaults, nodes, problems);
    skip_others(drafts.iter_mut().map(|draft| &mut *draft.case), ONLY_CASE);
    warn_of_idle(&drafts, problems);
    problems.extend(file_defaults.front.get("skips").and_then(|skips| beyond(skips, &drafts)));
    drop_repeated(known, problems);
    warn_of_twins(&drafts, problems);
    assign_ids(drafts)
}

/// Returns the row as a case. The case is named after the row if neither it nor the front matter has a title. An empty
/// cell is omitted if its key cannot have an empty value. A cell of a table is text, so `true` and `false` are read as
/// such under a key that needs them.
fn case_of_row(row: Row, has_title: bool) -> Node {
    let mut case = row.values;
    if let NodeKind::Map(entries) = &mut case.kind {
        entries.retain(|(key, value)| value.as_str() != Some("") || field::fits(&key.value, value));
        for (key, value) in entries.iter_mut() {
            let flag = value.as_str().and_then(|text| text.parse::<bool>().ok());
            if let Some(flag) = flag.filter(|_| !field::fits(&key.value, value)) {
                value.kind = NodeKind::Bool(flag);
            }
        }
        if !has_title && entries.iter().all(|(key, _)| key.value != "title") {
            let title = NodeKind::String(row.name);
            let title = Node { kind: title, span: case.span, tag: None, source: Arc::clone(&case.source) };
            entries.push((Spanned::new("title".to_owned(), case.span), title));
        }
    }
    case
}

/// Reads the cases in `nodes`, in order.
fn read_all(file_defaults: &FileDefaults<'_>, nodes: Vec<Node>, problems: &mut Problems) -> Vec<Draft> {
    let mut drafts = Vec::with_capacity(nodes.len());
    let mut nodes = nodes.into_iter().enumerate().peekable();
    let mut portions: Vec<Vec<(usize, Node)>> = Vec::new();
    while nodes.peek().is_some() {
        portions.push(nodes.by_ref().take(PORTION).collect());
    }
    for (read, reported) in parallel::map(portions, PORTIONS_PER_THREAD, |portion| read_portion(file_defaults, portion))
    {
        drafts.extend(read);
        problems.extend(reported);
    }
    drafts
}

/// Reads a chunk of cases, each given with its position in the file.
fn read_portion(file_defaults: &FileDefaults<'_>, nodes: Vec<(usize, Node)>) -> (Vec<Draft>, Problems) {
    let (mut drafts, mut problems) = (Vec::with_capacity(nodes.len()), Problems::new());
    let mut misspelt_keys = MisspeltKeys::default();
    // Each tree is freed as soon as its case is built, because together the trees are as large as the cases.
    for (position, node) in nodes {
        if Fields::of(&node, "a case", &mut problems).is_none() {
            continue;
        }
        let known = problems.len();
        field::check(&node, &FIELDS, &mut problems);
        misspelt_keys.case(&node, &file_defaults.front, &mut problems);
        // A misspelt key may be the expectation.
        let is_clear = !problems.iter().skip(known).any(Diagnostic::is_error);
        let misspelt: Problems = problems.iter().skip(known).filter(|problem| is_misspelt(problem)).cloned().collect();
        suspicious_values::warn(&node, &mut problems);
        suspicious_values::warn_of_placeholders(&node, &file_defaults.front, &mut problems);
        for arm in arms(file_defaults, &node) {
            let mut draft = case::read(file_defaults, &node, position, arm, &mut problems);
            draft.case.must_assert &= is_clear;
            drafts.push(draft);
        }
        if !misspelt.is_empty() {
            let follows = |problem: &Diagnostic| {
                // Variables that are not there are keys of the misspelt input.
                let is_input = |cause: &Diagnostic| cause.means("input");
                misspelt.iter().any(|cause| problem.follows_from(cause))
                    || (matches!(problem.kind, DiagnosticKind::UnknownVariable(_)) && misspelt.iter().any(is_input))
            };
            let mut index = 0;
            problems.retain(|problem| {
                index += 1;
                index <= known || !follows(problem)
            });
        }
    }
    (drafts, problems)
}

fn is_misspelt(problem: &Diagnostic) -> bool {
    matches!(problem.kind, DiagnosticKind::UnknownKey { .. })
}

/// Returns the scripts with which to run a case: its own script, or each of the file's scripts.
fn arms<'a>(file_defaults: &'a FileDefaults<'_>, node: &Node) -> Vec<Option<&'a Node>> {
    if file_defaults.scripts.is_empty() || node.get("script").is_some_and(is_truthy) {
        return vec![None];
    }
    file_defaults.scripts.iter().map(Some).collect()
}

/// Warns about cases without expectations, because their trials are undecided.
fn warn_of_idle(drafts: &[Draft], problems: &mut Problems) {
    let idle = |draft: &&Draft| draft.case.must_assert && draft.case.assertions.is_empty() && draft.case.skip.is_none();
    let count = drafts.iter().filter(idle).count();
    if let Some(first) = drafts.iter().find(idle) {
        let message = match count {
            1 => "this case has no expectation, so its trials are undecided".to_owned(),
            _ => format!("{count} cases have no expectation, so their trials are undecided; this is the first"),
        };
        let problem = Diagnostic::warning(message).at(first.case.source.clone());
        problems.push(problem.help("give it `output`, `expect` or `outputSchema`"));
    }
}

/// Returns a warning about the first position in `skips` at which there is no case.
fn beyond(skips: &Node, drafts: &[Draft]) -> Option<Diagnostic> {
    let NodeKind::Map(entries) = &skips.kind else { return None };
    let last = drafts.iter().filter_map(|draft| draft.case.position).max()?;
    let is_beyond =
        |(key, _): &&(Spanned<String>, Node)| key.value.parse().is_ok_and(|position: usize| position > last);
    let (key, _) = entries.iter().find(is_beyond)?;
    let problem = Diagnostic::warning(format!("`skips` has `{}`, and there is no case at that position", key.value));
    let problem = problem.at(skips.source.excerpt(key.span));
    Some(problem.help(format!("positions count from 0, and the last case has {last}")))
}

/// Warns about titles that several cases share: their ids get numbers, which change when a case is added before them.
fn warn_of_twins(drafts: &[Draft], problems: &mut Problems) {
    let mut first: HashMap<(&str, Option<&str>), &Draft> = HashMap::with_capacity(drafts.len());
    let mut reported = HashSet::new();
    for draft in drafts {
        let Some(title) = draft.title.as_deref() else { continue };
        let other = *first.entry((title, draft.arm.as_deref())).or_insert(draft);
        if !std::ptr::eq(other, draft) && reported.insert(title) {
            let number = draft.case.position.unwrap_or_default() + 1;
            let message = format!("a second case is called `{title}`, so it runs as `{title} ({number})`");
            let problem = Diagnostic::warning(message).at(draft.case.source.clone());
            let problem = problem.of(DiagnosticKind::TakenId);
            problems
                .push(problem.help(format!("the first is at {}; give each case a unique title", other.case.source)));
        }
    }
}

/// Removes repeated problems: a problem in the front matter shows up in every case but should be reported only once.
fn drop_repeated(known: usize, problems: &mut Problems) {
    if problems.len() - known < 2 {
        return;
    }
    let mut seen = HashSet::new();
    let mut index = 0;
    problems.retain(|problem| {
        index += 1;
        let place = problem.source.as_ref().map(|place| (place.file.clone(), place.line, place.column));
        index <= known || seen.insert((place, problem.message.clone()))
    });
}

/// Returns the cases with their ids, which are the titles if they are unique, otherwise numbers.
fn assign_ids(drafts: Vec<Draft>) -> Vec<Arc<Case>> {
    let id = |draft: &Draft, id: String| match &draft.arm {
        Some(arm) => format!("{id} [{arm}]"),
        None => id,
    };
    let mut count: HashMap<String, usize> = HashMap::with_capacity(drafts.len());
    for draft in &drafts {
        if let Some(title) = &draft.title {
            *count.entry(id(draft, title.clone())).or_default() += 1;
        }
    }
    let mut taken: HashSet<String> = HashSet::with_capacity(drafts.len());
    let mut cases = Vec::with_capacity(drafts.len());
    for mut draft in drafts {
        let number = draft.case.position.unwrap_or_default() + 1;
        let name = match &draft.title {
            Some(title) if count.get(&id(&draft, title.clone())) == Some(&1) => title.clone(),
            Some(title) => format!("{title} ({number})"),
            None => number.to_string(),
        };
        let mut name = id(&draft, name);
        while !taken.insert(name.clone()) {
            name.push('\'');
        }
        draft.case.id = name;
        cases.push(Arc::from(draft.case));
    }
    cases
}
