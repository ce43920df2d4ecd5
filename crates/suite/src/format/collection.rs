//! Several tests in one file, which no format allows. They would otherwise be taken for data.

use model::{Diagnostic, Node, NodeKind};

use super::{FORMATS, Format, SuiteFile};

/// Keys of an expected answer in a fixtures file.
const EXPECTED: [&str; 3] = ["output", "expect", "outputSchema"];

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
    let is_case = |item: &Node| item.get("input").is_some() && EXPECTED.iter().any(|key| item.get(key).is_some());
    let is_root = std::ptr::eq(list, file.root);
    // A name that is nearly that of a fixtures file is reported anyway.
    let is_reported = file.path.file_name().and_then(|name| super::misspelt_fixtures(name.to_str()?)).is_some();
    if !is_root || is_reported || !items.iter().any(is_case) {
        return None;
    }
    let stem = file.path.file_stem()?.to_str()?;
    let extension = file.path.extension()?.to_str()?;
    let problem = list.error("cases with `input` and an expected answer are read only from a fixtures file");
    Some((problem.help(format!("call the file `{stem}.fixture.{extension}`")), None))
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
