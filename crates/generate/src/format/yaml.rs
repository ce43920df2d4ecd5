//! Parts of YAML test files that several formats share.

use super::{ignoring_case, quoted, regex_literal};
use crate::candidate::{AssertionKind, ProposedAssertion, StartingFile};

/// Returns the fields of an assertion as `key: value` pairs, starting with its type.
pub(super) fn fields(assertion: &ProposedAssertion) -> Vec<(&'static str, String)> {
    let value = quoted(&assertion.value);
    let mut fields = vec![("type", assertion.kind.name().to_owned())];
    match assertion.kind {
        AssertionKind::Contains | AssertionKind::NotContains => fields.push(("text", value)),
        AssertionKind::Matches => fields.push(("pattern", quoted(&regex_literal(&assertion.value)))),
        AssertionKind::ToolCalled | AssertionKind::NoToolCalled => {
            fields.push(("tool", quoted(&assertion.tool)));
            if !assertion.arguments.is_empty() {
                let argument = |one: &crate::candidate::ExpectedArgument| {
                    format!("{}: {}", quoted(&one.name), quoted(&ignoring_case(&one.pattern)))
                };
                let arguments: Vec<String> = assertion.arguments.iter().map(argument).collect();
                fields.push(("args_match", format!("{{ {} }}", arguments.join(", "))));
            }
        }
        AssertionKind::FileExists | AssertionKind::FileUnchanged => fields.push(("path", quoted(&assertion.path))),
        AssertionKind::FileContains => fields.extend([("path", quoted(&assertion.path)), ("contains", value)]),
        AssertionKind::Sentiment => fields.push(("expected", value)),
        AssertionKind::Guardrail => fields.push(("must_not", format!("[{value}]"))),
        AssertionKind::Factuality => fields.push(("ground_truth", value)),
        AssertionKind::LlmJudge => fields.push(("criteria", value)),
    }
    fields
}

/// Returns an assertion as a map on one line.
pub(super) fn assertion(assertion: &ProposedAssertion, id: Option<String>) -> String {
    let id = id.map(|id| ("id", id));
    let fields = id.into_iter().chain(fields(assertion));
    let fields: Vec<String> = fields.map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// Returns the lines of a `fixtures` section with the files that exist when the agent starts.
pub(super) fn files(files: &[StartingFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let file =
        |file: &StartingFile| format!("    - path: {}\n      content: {}\n", quoted(&file.path), quoted(&file.content));
    format!("fixtures:\n  files_unstaged:\n{}", files.iter().map(file).collect::<String>())
}
