//! Fixtures files in YAML, each with one case.

use super::{ABOUT_SANDBOX, Context, Format, comment, quoted, regex_literal};
use crate::candidate::{AssertionKind, Candidate, ProposedAssertion};

/// Types of assertions that expectations cannot express: those about a sandbox, and those that a judge decides.
const LACKS: &[AssertionKind] = &[
    ABOUT_SANDBOX[0],
    ABOUT_SANDBOX[1],
    ABOUT_SANDBOX[2],
    AssertionKind::Sentiment,
    AssertionKind::Guardrail,
    AssertionKind::Factuality,
    AssertionKind::LlmJudge,
];

pub(super) const FORMAT: Format = Format {
    name: "fixtures",
    extension: ".fixture.yaml",
    folder: "tests/generated",
    common_file: None,
    is_of_skill: false,
    has_turns: false,
    has_files: false,
    lacks: LACKS,
    render,
};

fn render(candidate: &Candidate, context: &Context<'_>) -> String {
    let says = candidate.script.turns.first().map(|turn| turn.says.as_str()).unwrap_or_default();
    let mut text = comment::block("#", candidate, context);
    text.push_str(&format!(
        "tags: [{}]\n---\n- title: {}\n  input: {}\n  expect:\n",
        candidate.category.name,
        quoted(&candidate.planned.name),
        quoted(says),
    ));
    let (about_tools, about_output): (Vec<&ProposedAssertion>, Vec<&ProposedAssertion>) = candidate
        .assertions()
        .partition(|one| matches!(one.kind, AssertionKind::ToolCalled | AssertionKind::NoToolCalled));
    for (key, assertions) in [("output", about_output), ("tools", about_tools)] {
        if !assertions.is_empty() {
            text.push_str(&format!("    {key}:\n      $and:\n"));
            text.extend(assertions.iter().map(|one| format!("        - {}\n", expectation(one))));
        }
    }
    text
}

fn expectation(assertion: &ProposedAssertion) -> String {
    let literal = |text: &str| format!("!re {}", quoted(&regex_literal(text)));
    match assertion.kind {
        AssertionKind::NotContains => format!("{{ $not: {} }}", literal(&escaped(&assertion.value))),
        AssertionKind::Matches => literal(&assertion.value),
        AssertionKind::ToolCalled => format!("{{ $contains: {} }}", call(assertion)),
        AssertionKind::NoToolCalled => format!("{{ $not: {{ $contains: {} }} }}", call(assertion)),
        _ => literal(&escaped(&assertion.value)),
    }
}

fn call(assertion: &ProposedAssertion) -> String {
    let mut call = format!("name: {}", quoted(&assertion.tool));
    if !assertion.arguments.is_empty() {
        let argument = |one: &crate::candidate::ExpectedArgument| {
            format!("{}: !re {}", quoted(&one.name), quoted(&regex_literal(&one.pattern)))
        };
        let arguments: Vec<String> = assertion.arguments.iter().map(argument).collect();
        call.push_str(&format!(", args: {{ {} }}", arguments.join(", ")));
    }
    format!("{{ {call} }}")
}

/// Returns a regular expression that matches the text.
fn escaped(text: &str) -> String {
    regex::escape(text)
}
