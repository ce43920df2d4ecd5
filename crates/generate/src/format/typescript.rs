//! Tests as code, in TypeScript.

use super::{ABOUT_SANDBOX, Context, Format, comment, quoted, regex_literal};
use crate::candidate::{AssertionKind, Candidate, ProposedAssertion};

pub(super) const FORMAT: Format = Format {
    name: "ts",
    extension: ".test.ts",
    folder: "tests/generated",
    common_file: None,
    is_of_skill: false,
    has_turns: true,
    has_files: false,
    lacks: ABOUT_SANDBOX,
    render,
};

/// Variable names for the replies.
const REPLIES: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];

fn render(candidate: &Candidate, context: &Context<'_>) -> String {
    let script = &candidate.script;
    let has_persona = !script.role.trim().is_empty();
    let imports = if has_persona { "assert, persona, scenario" } else { "assert, scenario" };
    let mut text = comment::block("//", candidate, context);
    text.push_str(&format!(
        "import {{ {imports} }} from \"trialrun\";\n\nexport default scenario({}, {{ tags: [{}] }}, async ({{ agent }}) => {{\n",
        quoted(&candidate.planned.name),
        quoted(candidate.category.name),
    ));
    if has_persona {
        let tone =
            if script.tone.trim().is_empty() { String::new() } else { format!(", tone: {}", quoted(&script.tone)) };
        text.push_str(&format!("  const user = persona({{ role: {}{tone} }});\n\n", quoted(&script.role)));
    }
    for (at, turn) in script.turns.iter().enumerate() {
        let reply = match script.turns.len() {
            1 => "reply".to_owned(),
            _ => REPLIES.get(at).map_or_else(|| format!("reply{}", at + 1), |name| (*name).to_owned()),
        };
        let message = if has_persona { format!("user.says({})", quoted(&turn.says)) } else { quoted(&turn.says) };
        let gap = if at == 0 { "" } else { "\n" };
        // A reply without assertions needs no name.
        let name = if turn.assertions.is_empty() { String::new() } else { format!("const {reply} = ") };
        text.push_str(&format!("{gap}  {name}await agent.send({message});\n"));
        text.extend(turn.assertions.iter().map(|assertion| format!("  assert.{};\n", call(assertion, &reply))));
    }
    text + "});\n"
}

/// Returns the function call for an assertion, without `assert.`.
fn call(assertion: &ProposedAssertion, reply: &str) -> String {
    let value = quoted(&assertion.value);
    match assertion.kind {
        AssertionKind::Contains => format!("contains({reply}, {value})"),
        AssertionKind::NotContains => format!("notContains({reply}, {value})"),
        AssertionKind::Matches => format!("matches({reply}, {})", regex_literal(&assertion.value)),
        AssertionKind::ToolCalled => {
            format!("toolCalled({reply}, {}{})", quoted(&assertion.tool), arguments(assertion))
        }
        AssertionKind::NoToolCalled => {
            format!("toolNotCalled({reply}, {}{})", quoted(&assertion.tool), arguments(assertion))
        }
        AssertionKind::Sentiment => format!("sentiment({reply}, {value})"),
        AssertionKind::Guardrail => format!("guardrail({reply}, {{ mustNot: [{value}] }})"),
        AssertionKind::Factuality => format!("factuality({reply}, {{ groundTruth: {value} }})"),
        AssertionKind::LlmJudge => format!("llmJudge({reply}, {{ criteria: {value} }})"),
        AssertionKind::FileExists => format!("fileExists({})", quoted(&assertion.path)),
        AssertionKind::FileContains => format!("fileContains({}, {value})", quoted(&assertion.path)),
        AssertionKind::FileUnchanged => format!("fileUnchanged({})", quoted(&assertion.path)),
    }
}

fn arguments(assertion: &ProposedAssertion) -> String {
    if assertion.arguments.is_empty() {
        return String::new();
    }
    let argument =
        |one: &crate::candidate::ExpectedArgument| format!("{}: {}", key(&one.name), regex_literal(&one.pattern));
    let arguments: Vec<String> = assertion.arguments.iter().map(argument).collect();
    format!(", {{ {} }}", arguments.join(", "))
}

/// Returns an object key: quoted unless it is a plain name.
fn key(name: &str) -> String {
    let is_plain = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && name != "__proto__";
    if is_plain { name.to_owned() } else { quoted(name) }
}
