//! Checks the names of arguments and the placeholders in a mock: a misspelt one would only show in the agent's answers.

use std::path::Path;

use mock::{Mistake, Scope, named_files};
use model::decode::Problems;
use model::{Diagnostic, MockedTool, Node, NodeKind, Severity, Source, Span, nearest};

/// Returns the tools or programs in a list that is written in place of a map, only with their names: assertions about them
/// are right.
pub(super) fn of_list(node: &Node) -> Option<Vec<MockedTool>> {
    let NodeKind::List(items) = &node.kind else { return None };
    let name = |item: &Node| match &item.kind {
        NodeKind::Map(entries) if entries.len() == 1 => entries.first().map(|(name, _)| name.value.clone()),
        _ => item.get("name").unwrap_or(item).as_str().map(str::to_owned),
    };
    Some(items.iter().filter_map(name).map(|name| MockedTool { name, ..MockedTool::default() }).collect())
}

/// Keys with the texts of an answer.
const TEXTS: [&str; 5] = ["answer", "error", "stdout", "stderr", "play"];

/// Keys with requirements on arguments.
const REQUIREMENTS: [&str; 2] = ["expect", "when"];

/// Returns the tool or the program itself, and its answers.
pub(super) fn parts(node: &Node) -> impl Iterator<Item = &Node> {
    let answers = match node.get("answers").map(|answers| &answers.kind) {
        Some(NodeKind::List(answers)) => answers.as_slice(),
        _ => &[],
    };
    std::iter::once(node).chain(answers)
}

/// Returns the arguments on which the mocked tool `node` has requirements.
pub(super) fn mentioned(node: &Node) -> impl Iterator<Item = &str> {
    let required = parts(node).flat_map(|part| REQUIREMENTS.iter().filter_map(|key| part.get(key)));
    required
        .flat_map(|required| match &required.kind {
            NodeKind::Map(arguments) => arguments.as_slice(),
            _ => &[],
        })
        .map(|(name, _)| name.value.as_str())
}

/// Reports the mistakes in the mocked tool or program `node`, whose files are below `directory`.
pub(super) fn check(node: &Node, scope: &Scope<'_>, directory: &Path, problems: &mut Problems) {
    for part in parts(node) {
        for required in REQUIREMENTS.iter().filter_map(|key| part.get(key)) {
            let NodeKind::Map(arguments) = &required.kind else { continue };
            for (name, _) in arguments {
                let mistake = scope.check_argument(&name.value);
                report(mistake, &required.source, name.span, problems);
            }
        }
        TEXTS.iter().filter_map(|key| part.get(key)).for_each(|node| check_node(node, scope, directory, problems));
    }
}

fn check_node(node: &Node, scope: &Scope<'_>, directory: &Path, problems: &mut Problems) {
    match &node.kind {
        NodeKind::String(text) => check_text(text, &node.source, node.span, scope, directory, problems),
        NodeKind::List(items) => items.iter().for_each(|item| check_node(item, scope, directory, problems)),
        NodeKind::Map(entries) => {
            entries.iter().for_each(|(_, value)| check_node(value, scope, directory, problems));
        }
        _ => {}
    }
}

/// Reports the mistakes in a text that is at `span` of `source`.
pub(super) fn check_text(
    text: &str,
    source: &Source,
    span: Span,
    scope: &Scope<'_>,
    directory: &Path,
    problems: &mut Problems,
) {
    let missing = named_files(text).into_iter().filter(|(_, path)| !directory.join(path).is_file());
    let missing = missing.map(|(written, path)| missing_file(written, path, directory));
    report(scope.check_text(text).into_iter().chain(missing), source, span, problems);
}

fn missing_file(written: &str, path: &Path, directory: &Path) -> Mistake {
    let folder = directory.join(path.parent().unwrap_or(path));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let near = nearest(&name, names.iter().map(String::as_str));
    Mistake {
        written: written.to_owned(),
        message: format!("there is no file `{}` in the folder of the mock", path.display()),
        suggestion: near.map(|near| format!("{{{{file:{}}}}}", path.with_file_name(near).display())),
        is_doubtful: false,
    }
}

/// Reports mistakes at the places where they are written, if these are found in the part `span` of `source`.
fn report(mistakes: impl IntoIterator<Item = Mistake>, source: &Source, span: Span, problems: &mut Problems) {
    for mistake in mistakes {
        let part = source.text.get(span.start()..span.end()).unwrap_or_default();
        let place = part.find(&mistake.written).map_or(span, |at| {
            let start = span.start() + at;
            Span::new(start, start + mistake.written.len())
        });
        let severity = if mistake.is_doubtful { Severity::Warning } else { Severity::Error };
        let problem = Diagnostic { severity, ..Diagnostic::error(mistake.message) };
        // YAML reads a placeholder without quotes as a map.
        let suggestion = mistake.suggestion.map(|right| match part == mistake.written && right.starts_with("{{") {
            true => format!("\"{right}\""),
            false => right,
        });
        let problem = problem.at(source.excerpt(place)).suggest(suggestion.as_deref());
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}
