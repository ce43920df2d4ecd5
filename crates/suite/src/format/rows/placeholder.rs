//! Placeholders in files with rows that are not those of columns, or are written as in another language.

use model::decode::Problems;
use model::{DiagnosticKind, Node, NodeKind};

use super::Row;

/// Says how the placeholders of mocks are written where templates are filled in from columns.
pub(super) fn explain_placeholders(root: &Node, problems: &mut Problems) {
    let has_mocks = root.get("mcp_servers").or_else(|| root.get("mock_commands")).is_some();
    let is_input = |kind: &DiagnosticKind| matches!(kind, DiagnosticKind::UnknownVariable(name) if name == "input");
    for problem in problems.iter_mut().filter(|problem| has_mocks && is_input(&problem.kind)) {
        let help = "in a file with `cases`, a placeholder of a mock is written `{{ '{{input.NAME}}' }}`";
        problem.help.insert(0, help.to_owned());
    }
}

/// Warns about `{{ column }` in `node`: without its last brace, it is not replaced. If another placeholder follows, it is
/// an error anyway.
pub(super) fn report_open_braces(node: &Node, rows: &[Row], problems: &mut Problems) {
    match &node.kind {
        NodeKind::String(text) => {
            let is_column = |name: &str| rows.first().is_some_and(|row| row.values.get(name).is_some());
            let opened = text.match_indices("{{").map(|(at, _)| &text[at + 2..]);
            let first_word = |rest: &str| rest.split_whitespace().next().unwrap_or_default().to_owned();
            let inside =
                |rest: &str| rest.split_once('}').map_or_else(|| first_word(rest), |(inside, _)| inside.to_owned());
            let mut opened = opened.filter(|rest| !rest.contains("}}")).map(inside);
            let column = |inside: &str| inside.split('|').next().unwrap_or(inside).trim().to_owned();
            let open = opened.find(|inside| is_column(&column(inside)));
            if let Some(inside) = open {
                let name = column(&inside);
                let problem = node.warning(format!("this `{{{{` of the column `{name}` is not closed, so it is text"));
                problems.push(problem.help(format!("write `{{{{ {} }}}}`", inside.trim())));
            }
        }
        NodeKind::List(items) => items.iter().for_each(|item| report_open_braces(item, rows, problems)),
        NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| report_open_braces(value, rows, problems)),
        _ => {}
    }
}

/// Warns about the first placeholder of each column in the form of another language, such as `{column}`: only
/// `{{ column }}` is replaced. Other texts than those of assertions may be meant for the agent, so they count only if
/// the column is used nowhere.
pub(super) fn report_other_placeholders(root: &Node, rows: &[Row], problems: &mut Problems) {
    let Some(NodeKind::Map(columns)) = rows.first().map(|row| &row.values.kind) else { return };
    let (mut texts, mut expected) = (Vec::new(), Vec::new());
    collect_texts(root, &mut texts);
    collect_expected(root, &mut expected);
    for (column, _) in columns.iter().filter(|(column, _)| column.value.chars().count() > 1) {
        let name = &*column.value;
        if let Some((node, _)) = texts.iter().find(|(_, text)| has_dollar(text, name))
            && rows.iter().all(|row| row.values.get(name).is_some_and(is_word))
        {
            let problem = node.warning(format!("the `$` of `${{{{ {name} }}}}` stays in the text"));
            problems.push(problem.help(format!("write `{{{{ {name} }}}}`")));
            continue;
        }
        let fills = |(_, text): &(&Node, &str)| {
            text.split("{{").skip(1).any(|rest| rest.split("}}").next().is_some_and(|inside| inside.contains(name)))
        };
        let all = if texts.iter().any(fills) { &expected } else { &texts };
        let Some((node, other)) = all.iter().find_map(|(node, text)| Some((node, other_placeholder(text, name)?)))
        else {
            continue;
        };
        let problem = node.warning(format!("`{other}` is not replaced by the column `{name}`, so it is text"));
        problems.push(problem.help(format!("write `{{{{ {name} }}}}`")));
    }
}

/// Returns `true` if `text` has a `$` before the placeholder of a column, as in the workflows of GitHub.
fn has_dollar(text: &str, name: &str) -> bool {
    text.split("${{").skip(1).any(|rest| rest.split_once("}}").is_some_and(|(inside, _)| inside.trim() == name))
}

/// Returns `true` unless a cell is an amount of money or the name of a variable: these have a `$` before them.
fn is_word(cell: &Node) -> bool {
    let is_text = |text: &str| text.starts_with(char::is_alphabetic) && text.contains(|c: char| c.is_lowercase());
    cell.as_str().is_some_and(is_text)
}

/// Returns the placeholder for the variable `name` in `text` that is written as in another language.
pub fn other_placeholder(text: &str, name: &str) -> Option<String> {
    if !text.contains(name) {
        return None;
    }
    let others = [
        format!("${{{name}}}"),
        format!("{{{name}}}"),
        format!("{{ {name} }}"),
        format!("<{name}>"),
        format!("%({name})s"),
        format!("%{name}%"),
        format!("[[{name}]]"),
        format!("<%= {name} %>"),
    ];
    let dollar = format!("${name}");
    let is_word =
        |(at, _): (usize, &str)| !text[at + dollar.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let is_alone = || text.strip_prefix(':') == Some(name);
    let plain = text.replace("{{", "").replace("}}", "").replace("{%", "");
    let written = others.into_iter().find(|other| plain.contains(other));
    let written = written.or_else(|| text.match_indices(&dollar).any(is_word).then(|| dollar.clone()));
    written.or_else(|| is_alone().then(|| text.to_owned()))
}

/// Adds the strings in the assertions of `node`.
fn collect_expected<'n>(node: &'n Node, found: &mut Vec<(&'n Node, &'n str)>) {
    match &node.kind {
        NodeKind::List(items) => items.iter().for_each(|item| collect_expected(item, found)),
        NodeKind::Map(entries) => entries.iter().for_each(|(key, value)| match &*key.value {
            "assertions" | "expect" | "output" => collect_texts(value, found),
            _ => collect_expected(value, found),
        }),
        _ => {}
    }
}

/// Adds the strings in `node`.
fn collect_texts<'n>(node: &'n Node, found: &mut Vec<(&'n Node, &'n str)>) {
    match &node.kind {
        NodeKind::String(text) => found.push((node, text)),
        NodeKind::List(items) => items.iter().for_each(|item| collect_texts(item, found)),
        NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| collect_texts(value, found)),
        _ => {}
    }
}
