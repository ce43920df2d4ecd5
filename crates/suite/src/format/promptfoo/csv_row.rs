//! Tests in tables: columns are variables, except for those that begin with two underscores.

use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind, Spanned, is_one_mistake, nearest};

use super::assertion::{TYPES, Threshold};
use super::file::{self, FILE};
use super::reading::{map, node, text};
use crate::coverage::{KeyLog, Treatment};

/// Types whose value in a cell is a list, separated by commas.
const LISTS: [&str; 4] = ["contains-all", "contains-any", "icontains-all", "icontains-any"];

/// Types whose threshold promptfoo reads in a cell.
const WITH_THRESHOLD: [&str; 12] = [
    "answer-relevance",
    "classifier",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "cost",
    "latency",
    "levenshtein",
    "perplexity-score",
    "perplexity",
    "rouge-n",
    "similar",
];

/// Special columns, without the underscores before them.
const COLUMNS: [&str; 7] = ["expected", "prefix", "suffix", "description", "providerOutput", "metric", "threshold"];

/// Returns the threshold that an assertion of the type `kind` has if its cell has none.
fn usual_threshold(kind: &str) -> Option<f64> {
    WITH_THRESHOLD.contains(&kind).then_some(if kind == "similar" { 0.8 } else { 0.75 })
}

/// Converts a row to a test. Thresholds in cells that promptfoo does not read are recorded in `keys`.
pub(super) fn test(row: &Node, keys: &mut KeyLog, problems: &mut Problems) -> Node {
    let NodeKind::Map(cells) = &row.kind else { return row.clone() };
    let (mut vars, mut asserts, mut options, mut fields) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut metric, mut metadata, mut thresholds) = (None, Vec::new(), Vec::new());
    let at_header =
        |name: &Spanned<String>, message: String| Diagnostic::error(message).at(row.source.excerpt(name.span));
    for (name, cell) in cells {
        let key = name.value.trim();
        let value = cell.as_str().unwrap_or_default();
        match key.strip_prefix("__") {
            None => {
                if ["_expected", "_description", "_prefix", "_suffix", "_metric", "_threshold", "_metadata", "_config"]
                    .iter()
                    .any(|special| key.starts_with(special))
                {
                    let problem = at_header(name, format!("the column `{key}` begins with a single underscore"));
                    problems.push(problem.help(format!("write `_{key}`, or the column is a variable")));
                }
                vars.push((key.to_owned(), cell.clone()));
            }
            Some(special) if special.starts_with("expected") => {
                if !value.trim().is_empty() {
                    problems.extend(misspelt_type(value.trim(), cell));
                    asserts.push(assertion(value.trim(), cell, keys));
                }
            }
            Some("prefix") => options.push(("prefix".to_owned(), cell.clone())),
            Some("suffix") => options.push(("suffix".to_owned(), cell.clone())),
            Some("description") if value.is_empty() => {}
            Some("description") => fields.push(("description".to_owned(), cell.clone())),
            Some("providerOutput") if value.is_empty() => {}
            Some("providerOutput") => fields.push(("providerOutput".to_owned(), cell.clone())),
            Some("metric") => metric = Some(cell.clone()).filter(|_| !value.is_empty()),
            Some("threshold") if value.trim().is_empty() => {}
            Some("threshold") => {
                let threshold = number(value).map_or_else(|| cell.clone(), |value| number_node(cell, value));
                fields.push(("threshold".to_owned(), threshold));
            }
            Some(special) if special.starts_with("metadata:") => metadata.push((special[9..].to_owned(), cell.clone())),
            Some(special) if special.starts_with("config:") => {
                let parts: Vec<&str> = special[7..].split(':').collect();
                let index = match parts.as_slice() {
                    ["__expected", "threshold"] => Some(0),
                    [name, "threshold"] => name
                        .strip_prefix("__expected")
                        .and_then(|index| index.parse::<usize>().ok())
                        .and_then(|index| index.checked_sub(1)),
                    _ => None,
                };
                match (index, number(value)) {
                    (Some(index), Some(value)) => thresholds.push((index, number_node(cell, value))),
                    _ if value.trim().is_empty() => {}
                    _ => problems.push(row.error(format!("the column `{key}` or its value `{value}` is not valid"))),
                }
            }
            Some(special) => {
                let near = nearest(special, COLUMNS).map(|near| format!("__{near}"));
                let problem = at_header(name, format!("the column `{key}` has no meaning"));
                problems.push(problem.suggest(near.as_deref()));
            }
        }
    }
    for (index, assertion) in asserts.iter_mut().enumerate() {
        assertion.extend(metric.iter().map(|metric| ("metric".to_owned(), metric.clone())));
        if let Some((_, threshold)) = thresholds.iter().find(|(wanted, _)| *wanted == index) {
            assertion.retain(|(key, _)| key != "threshold");
            assertion.push(("threshold".to_owned(), threshold.clone()));
        }
    }
    let asserts = asserts.into_iter().map(|assertion| map(row, assertion)).collect();
    fields.push(("vars".to_owned(), map(row, vars)));
    fields.push(("assert".to_owned(), node(row, NodeKind::List(asserts))));
    if !options.is_empty() {
        fields.push(("options".to_owned(), map(row, options)));
    }
    if !metadata.is_empty() {
        fields.push(("metadata".to_owned(), map(row, metadata)));
    }
    map(row, fields)
}

/// Warns about a cell that begins with what is nearly a type of assertion, because it is compared as text.
fn misspelt_type(written: &str, cell: &Node) -> Option<Diagnostic> {
    let (head, _) = written.split_once(':').filter(|_| split_type(written).is_none())?;
    let bare = head.strip_prefix("not-").unwrap_or(head);
    let near = TYPES.iter().find(|known| bare.len() > 3 && is_one_mistake(bare, known.name))?;
    let problem =
        cell.warning(format!("`{head}` is not a type of assertion, so the answer must equal this whole text"));
    let prefix = if bare == head { "" } else { "not-" };
    Some(problem.suggest(Some(&format!("{prefix}{}", near.name))))
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

fn number_node(at: &Node, value: f64) -> Node {
    serde_json::Number::from_f64(value)
        .map_or_else(|| node(at, NodeKind::Null), |value| node(at, NodeKind::Number(value)))
}

/// Reads an assertion in a cell: `TYPE(THRESHOLD): VALUE`, or a text that the answer must equal.
fn assertion(written: &str, cell: &Node, keys: &mut KeyLog) -> Vec<(String, Node)> {
    let made = |kind: &str, value: Option<&str>| {
        let mut fields = vec![("type".to_owned(), text(cell, kind))];
        fields.extend(value.map(|value| ("value".to_owned(), text(cell, value))));
        fields
    };
    for (start, kind) in [
        ("javascript:", "javascript"),
        ("fn:", "javascript"),
        ("eval:", "javascript"),
        ("python:", "python"),
        ("grade:", "llm-rubric"),
        ("llm-rubric:", "llm-rubric"),
    ] {
        if let Some(value) = written.strip_prefix(start) {
            return made(kind, Some(value.trim()));
        }
    }
    if let Some(reference) = written.strip_prefix(FILE) {
        let (path, _) = file::with_function(reference);
        if file::is_module(path.as_ref()) {
            return made("javascript", Some(written));
        }
        if path.ends_with(".py") {
            return made("python", Some(written));
        }
    }
    let Some((head, value)) = split_type(written) else { return made("equals", Some(written)) };
    let Some((kind, threshold)) = kind_and_threshold(head) else { return made("equals", Some(written)) };
    let bare = kind.strip_prefix("not-").unwrap_or(kind);
    let is_list = LISTS.contains(&bare);
    let mut fields = made(kind, value.map(|value| if is_list { value } else { value.trim() }));
    let usual = usual_threshold(bare);
    // `log_assertions` reports a `threshold` that the other types do not use.
    let is_read = usual.is_some() || matches!(Threshold::of(bare), None | Some(Threshold::Unused));
    match threshold.or(usual) {
        Some(threshold) if is_read => fields.push(("threshold".to_owned(), number_node(cell, threshold))),
        Some(_) => {
            let consequence = format!(
                "promptfoo does not read it in a cell with `{bare}`; write it in a column such as \
                 `__config:__expected1:threshold`"
            );
            keys.add("tests[].assert[].threshold".to_owned(), Treatment::Ignored, Some(consequence), cell.excerpt());
        }
        None => {}
    }
    fields
}

/// Splits `TYPE(THRESHOLD)`, where the threshold is optional. `None` if it is not a number in plain digits.
fn kind_and_threshold(head: &str) -> Option<(&str, Option<f64>)> {
    let Some((kind, rest)) = head.split_once('(') else { return Some((head, None)) };
    let digits = rest.strip_suffix(')')?;
    let is_digit = |letter: char| letter.is_ascii_digit();
    let is_plain = digits.starts_with(is_digit)
        && digits.ends_with(is_digit)
        && digits.chars().all(|letter| is_digit(letter) || letter == '.');
    number(digits).filter(|_| is_plain).map(|threshold| (kind, Some(threshold)))
}

/// Splits `TYPE(THRESHOLD): VALUE` after the type. `None` if it does not begin with a type.
fn split_type(written: &str) -> Option<(&str, Option<&str>)> {
    let is_type = |head: &str| {
        kind_and_threshold(head).is_some_and(|(kind, _)| {
            let bare = kind.strip_prefix("not-").unwrap_or(kind);
            TYPES.iter().any(|known| known.name == bare)
        })
    };
    if is_type(written) && !written.contains(char::is_whitespace) {
        return Some((written, None));
    }
    // A type may contain a colon itself.
    let mut colons = written.match_indices(':').map(|(at, _)| at);
    let found = colons.rfind(|at| is_type(&written[..*at]));
    found
        .filter(|at| !written[..*at].contains(char::is_whitespace))
        .map(|at| (&written[..at], Some(&written[at + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Source;
    use serde_json::json;

    #[test]
    fn cells_are_assertions() {
        let mut keys = KeyLog::default();
        let cell = Node::from_json(&json!("x"), &Source::new("t.csv", ""));
        for (written, expected) in [
            ("hello: you", json!({"type": "equals", "value": "hello: you"})),
            ("contains: a: b", json!({"type": "contains", "value": "a: b"})),
            ("not-icontains-any: a, b", json!({"type": "not-icontains-any", "value": " a, b"})),
            ("is-json", json!({"type": "is-json"})),
            ("levenshtein(2): abc", json!({"type": "levenshtein", "value": "abc", "threshold": 2.0})),
            ("latency(100)", json!({"type": "latency", "threshold": 100.0})),
            ("similar: x", json!({"type": "similar", "value": "x", "threshold": 0.8})),
            ("not-similar(0.5): x", json!({"type": "not-similar", "value": "x", "threshold": 0.5})),
            ("similar(high): x", json!({"type": "equals", "value": "similar(high): x"})),
            ("similar(): x", json!({"type": "equals", "value": "similar(): x"})),
            ("answer-relevance", json!({"type": "answer-relevance", "threshold": 0.75})),
            ("starts-with: a", json!({"type": "starts-with", "value": "a"})),
            ("contains(3): a", json!({"type": "contains", "value": "a", "threshold": 3.0})),
            ("llm-rubric(0.8): is kind", json!({"type": "llm-rubric", "value": "is kind"})),
            ("not-g-eval(0): is kind", json!({"type": "not-g-eval", "value": "is kind"})),
            ("grade: is kind", json!({"type": "llm-rubric", "value": "is kind"})),
            ("fn: output.length > 2", json!({"type": "javascript", "value": "output.length > 2"})),
            ("file://check.py:grade", json!({"type": "python", "value": "file://check.py:grade"})),
            ("file://check.js", json!({"type": "javascript", "value": "file://check.js"})),
            ("skill-used: plan", json!({"type": "skill-used", "value": "plan"})),
            ("trajectory:tool-used: search", json!({"type": "trajectory:tool-used", "value": "search"})),
        ] {
            assert_eq!(map(&cell, assertion(written, &cell, &mut keys)).to_json(), expected, "{written}");
        }
        let doubt = |written: &str| misspelt_type(written, &cell).map(|problem| problem.help);
        assert_eq!(doubt("icontain:hi"), Some(vec!["did you mean `icontains`?".to_owned()]));
        assert_eq!(doubt("not-contians: hi"), Some(vec!["did you mean `not-contains`?".to_owned()]));
        for right in ["icontains:hi", "contents: hi", "hello: you", "file://a.js", "fn: output", "grade: x"] {
            assert_eq!(doubt(right), None, "{right}");
        }
        let keys = keys.finish("t.csv", "promptfoo").keys;
        let consequences: Vec<&str> = keys.iter().filter_map(|key| key.consequence.as_deref()).collect();
        let begins = |at: usize, kind: &str| {
            consequences[at].starts_with(&format!("promptfoo does not read it in a cell with `{kind}`; "))
        };
        assert!(begins(0, "llm-rubric") && begins(1, "g-eval") && consequences.len() == 2, "{consequences:?}");
    }
}
