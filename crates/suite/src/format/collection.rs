//! Several tests in one file, which no format allows. They would otherwise be taken for data.

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind, Source};

use super::{FORMATS, Format, SuiteFile, has_key};
use crate::document::{self, Language};

/// Keys of an expected answer in a fixtures file.
const EXPECTED: [&str; 3] = ["output", "expect", "outputSchema"];

/// Ends of names that are nearly those of fixtures files.
const MARKS: [&str; 4] = ["-fixture", "-fixtures", "_fixture", "_fixtures"];

/// Returns the problem with a file that is a list of tests, or has such a list under a key, and the format of the
/// tests. It is `None` for cases of a fixtures file.
pub fn problem(file: &SuiteFile<'_>) -> Option<(Diagnostic, Option<&'static Format>)> {
    let of_maps = |node: &Node| match &node.kind {
        NodeKind::List(items) => items.iter().any(|item| matches!(item.kind, NodeKind::Map(_))),
        _ => false,
    };
    let list = match &file.root.kind {
        NodeKind::Map(entries) => {
            let mut lists = entries.iter().map(|(_, value)| value).filter(|value| of_maps(value));
            lists.next().filter(|_| lists.next().is_none())?
        }
        _ => Some(file.root).filter(|root| of_maps(root))?,
    };
    let NodeKind::List(items) = &list.kind else { return None };
    let is_test = |format: &&Format| items.iter().any(|item| is_one(item, format, file));
    if let Some(format) = FORMATS.iter().find(is_test) {
        let count = items.len();
        let problem = list.error(format!("a file has one {}, and this is a list of {count}", format.name));
        let problem = problem.help("put each item of the list into a file of its own");
        let help = "for one test with several inputs, write it once and list the inputs under `cases`";
        return Some((if count > 1 { problem.help(help) } else { problem }, Some(format)));
    }
    if !std::ptr::eq(list, file.root) {
        return None;
    }
    Some((list.error(ONLY_FIXTURES).help(fixtures_name(file.path, items, false)?), None))
}

const ONLY_FIXTURES: &str = "cases with an expected answer are read only from a fixtures file";

/// Returns the problem with the file at `path` if its YAML documents are those of a fixtures file with front matter.
pub fn stream_of_fixtures(path: &Path, documents: &[Node]) -> Option<Diagnostic> {
    let [_, cases] = documents else { return None };
    let NodeKind::List(items) = &cases.kind else { return None };
    Some(cases.error(ONLY_FIXTURES).help(fixtures_name(path, items, true)?))
}

/// Returns the problem with the file at `path` if its lines of JSON are cases of a fixtures file.
pub fn lines_of_fixtures(path: &Path, source: &Arc<Source>) -> Option<Diagnostic> {
    let lines = source.text.lines().next().filter(|line| may_be_fixtures(line))?.to_owned();
    let first = document::read_json_lines(&Source::new(&*source.path, lines), &mut Problems::new());
    Some(Diagnostic::warning(ONLY_FIXTURES).help(fixtures_name(path, &first, false)?))
}

/// Returns `true` if `text`, which is JSON, may be cases of a fixtures file.
pub fn may_be_fixtures(text: &str) -> bool {
    ["title", "input"].iter().all(|key| has_key(text, &[key])) && has_key(text, &EXPECTED)
}

/// Returns help with the name that the file at `path` should have, if `items` are cases of a fixtures file. Those below
/// front matter may have no input of their own. Data in JSON often has inputs and outputs, but rarely a title too, and a
/// module beside it may use it.
fn fixtures_name(path: &Path, items: &[Node], has_front: bool) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (stem, extension) = name.rsplit_once('.')?;
    let is_json = Language::from_path(path) != Some(Language::Yaml);
    let has = |item: &Node, key: &str| item.get(key).is_some();
    let is_case = |item: &Node| {
        let has_input = has(item, "input") && (has(item, "title") || !is_json);
        (has_input || (has_front && has(item, "title"))) && EXPECTED.iter().any(|key| has(item, key))
    };
    // A name that is nearly that of a fixtures file is reported anyway.
    if super::misspelt_fixtures(name).is_some() || !items.iter().any(is_case) || (is_json && is_used(path, name)) {
        return None;
    }
    let stem = MARKS.iter().find_map(|mark| stem.strip_suffix(mark)).unwrap_or(stem);
    Some(format!("call the file `{stem}.fixture.{extension}`"))
}

/// Returns `true` if a module in the folder of the file at `path` contains its `name`.
fn is_used(path: &Path, name: &str) -> bool {
    let beside = path.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let is_module = |path: &Path| super::named(path).is_some_and(|(format, _)| format.name == super::code::CODE.name);
    let modules = beside.map(|entry| entry.path()).filter(|path| is_module(path));
    modules.filter_map(|path| document::guess(&path)).any(|text| text.contains(name))
}

/// Returns `true` if `item` alone would be a test in `format`. Rows of data may have some of its keys.
fn is_one(item: &Node, format: &Format, file: &SuiteFile<'_>) -> bool {
    let alone = SuiteFile { path: file.path, root: item };
    let is_list = |key: &str| item.get(key).is_some_and(|value| matches!(value.kind, NodeKind::List(_)));
    let tells =
        is_list("turns") || is_list("assertions") || is_list("user_prompts") || item.get("user_prompt").is_some();
    let has_subject = ["skill", "system_prompt", "system_prompt_file"].iter().any(|key| item.get(key).is_some());
    (tells || (item.get("scenario").is_some() && has_subject))
        && (format.resembles)(&alone)
        && (format.recognises)(&alone)
}

/// Returns `true` if each of the `steps` in `root` is a response of a model.
pub fn is_script(root: &Node) -> bool {
    let Some(NodeKind::List(steps)) = root.get("steps").map(|steps| &steps.kind) else { return false };
    let is_response = |step: &Node| ["text", "tools", "thinking"].iter().any(|key| step.get(key).is_some());
    !steps.is_empty() && steps.iter().all(is_response)
}
