//! Problems of assertions in code that are certain before the code runs.

use std::sync::Arc;

use model::decode::Problems;
use model::{Arguments, AssertionScope, AssertionSpec, CodeClaim, Diagnostic, Node, NodeKind, UNKNOWN_TAG, nearest};

use super::Check;
use super::unknown_type::written_names;
use crate::assertion_type::{Assertion, Parameter, camel_case};
use crate::assertions::{find, snake_case};
use crate::context::Context;

/// Name, in code, of the assertion that is a function written by the user.
const CUSTOM: &str = "custom";

/// Returns the problems that an assertion in code is certain to have. The first argument may be a reply, which is not an
/// argument of the assertion: if that is unknown, there must be errors either way, and those of the more likely one are
/// returned.
pub(super) fn problems(claim: &CodeClaim, context: &Context<'_>) -> Vec<Diagnostic> {
    let name = claim.name.value.as_str();
    if name == CUSTOM {
        return Vec::new();
    }
    let Some(assertion) = find(name).filter(|assertion| !assertion.is_implicit()) else { return vec![misspelt(claim)] };
    let given = of_arguments(claim, &claim.arguments, assertion, context);
    match claim.arguments.as_slice() {
        [None, others @ ..] if claim.may_have_reply => {
            let without = of_arguments(claim, others, assertion, context);
            let errors = |problems: &[Diagnostic]| problems.iter().filter(|problem| problem.is_error()).count();
            match (errors(&given), errors(&without)) {
                (0, _) | (_, 0) => Vec::new(),
                (as_given, as_reply) if as_given < as_reply => given,
                _ => without,
            }
        }
        _ => given,
    }
}

/// Compiles `claim` with `arguments`, if known. Returns the problems that unknown values cannot cause.
fn of_arguments(
    claim: &CodeClaim,
    arguments: &[Option<Node>],
    assertion: &Assertion,
    context: &Context<'_>,
) -> Vec<Diagnostic> {
    let place = Node { kind: NodeKind::Null, span: claim.name.span, tag: None, source: Arc::clone(&claim.source) };
    let mut is_known = true;
    let mut values = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let parameter = assertion.parameters.get(index).copied().unwrap_or(Parameter::Fields);
        let filled = argument.as_ref().and_then(|argument| filled(argument, parameter, assertion, &place));
        is_known &= argument.as_ref().is_some_and(|argument| !has_unknown(argument));
        values.push(filled.unwrap_or_else(|| match parameter {
            Parameter::Value(name) => stand_in(name, assertion, &place),
            Parameter::Map(_) | Parameter::Fields => Node { kind: NodeKind::Map(Vec::new()), ..place.clone() },
        }));
    }
    let spec = AssertionSpec {
        node: Node { kind: NodeKind::Map(Vec::new()), ..place.clone() },
        arguments: Arguments::Listed(values),
        about: AssertionScope::Trial,
        id: String::new(),
        kind: claim.name.clone(),
        weight: 1.0,
    };
    let mut problems = Problems::new();
    Check::compile(&spec, context, &mut problems);
    // A problem in an unknown value, or in the assertion as a whole, is located at the assertion.
    let whole = place.excerpt();
    let is_inside =
        |one: &Diagnostic| one.source.as_ref().is_some_and(|at| (at.line, at.column) != (whole.line, whole.column));
    problems.retain(|one| is_known || is_inside(one));
    problems
}

/// Returns `argument` with values in place of the unknown ones. Those of `args_match` are left out, because each argument
/// of a call is compared by itself. Returns `None` for other values in which something is unknown.
fn filled(argument: &Node, parameter: Parameter, assertion: &Assertion, place: &Node) -> Option<Node> {
    let NodeKind::Map(entries) = &argument.kind else { return Some(argument.clone()) };
    let mut known = Vec::new();
    for (key, value) in entries {
        match parameter {
            _ if !is_unknown(value) => known.push((key.clone(), value.clone())),
            Parameter::Map("args_match") => {}
            Parameter::Map(_) => return None,
            Parameter::Value(_) | Parameter::Fields => {
                known.push((key.clone(), stand_in(&snake_case(&key.value), assertion, place)));
            }
        }
    }
    Some(Node { kind: NodeKind::Map(known), ..argument.clone() })
}

fn is_unknown(value: &Node) -> bool {
    value.tag.as_deref() == Some(UNKNOWN_TAG)
}

/// Returns `true` if `argument` is a map with an unknown value.
fn has_unknown(argument: &Node) -> bool {
    matches!(&argument.kind, NodeKind::Map(entries) if entries.iter().any(|(_, value)| is_unknown(value)))
}

/// Returns a value of the kind that the field called `name` takes, which is valid beside any others.
fn stand_in(name: &str, assertion: &Assertion, place: &Node) -> Node {
    let holds = assertion.fields.iter().find(|field| field.name == name).map_or("string", |field| field.holds);
    let kind = match holds {
        _ if name == "min" => NodeKind::Number(0.into()),
        _ if name == "max" => NodeKind::Number(u64::from(u32::MAX).into()),
        holds if holds.contains("number") => NodeKind::Number(100.into()),
        holds if holds.starts_with("list") => NodeKind::List(Vec::new()),
        holds if holds.contains("map") => NodeKind::Map(Vec::new()),
        "true or false" => NodeKind::Bool(true),
        "duration" => NodeKind::String("1s".to_owned()),
        _ => NodeKind::String("unknown".to_owned()),
    };
    Node { kind, ..place.clone() }
}

/// Reports a call in code to a function whose name is not an assertion. A name similar to an assertion is likely a
/// typo. Any other name may be the user's own function; if it is not, the call fails when it runs.
fn misspelt(claim: &CodeClaim) -> Diagnostic {
    const DENIALS: [&str; 5] = ["not", "never", "no", "nor", "without"];
    let name = claim.name.value.as_str();
    let names: Vec<String> = written_names().map(camel_case).collect();
    let near = |name: &str| nearest(name, names.iter().map(String::as_str).chain([CUSTOM])).map(str::to_owned);
    let message = format!("there is no assertion named `assert.{name}`");
    let (_, last) = name.split_once('.').unwrap_or((name, ""));
    let is_denial = |part: &str| DENIALS.contains(&part) || !last.is_empty() && nearest(part, DENIALS).is_some();
    let is_denied = name.split('.').any(is_denial);
    let near = match last {
        "" if is_denied => None,
        "" => near(name),
        _ if is_denied => near(&name.replace('.', "_")),
        _ => near(last).or_else(|| near(&name.replace('.', "_"))),
    };
    let problem = match &near {
        None if is_denied => {
            Diagnostic::error(message).help("write the assertion that denies it, such as `assert.notContains`")
        }
        // A function has no members that are assertions, so the call would throw.
        None if last.is_empty() => Diagnostic::warning(format!("{message}, so it will be undecided"))
            .help("a check of your own is `assert.custom(\"NAME\", () => …)`"),
        _ => Diagnostic::error(message).suggest(near.map(|near| format!("assert.{near}")).as_deref()),
    };
    problem.at(claim.source.excerpt(claim.name.span))
}

#[cfg(test)]
mod tests;
