//! The arguments of an assertion, however they are written, as the fields of one entry.

use std::borrow::Cow;

use model::decode::Problems;
use model::{Arguments, AssertionSpec, Node, NodeKind, Span, Spanned};

use crate::assertion::{Assertion, Parameter};

/// The entry of `spec` with its arguments as fields, or what is wrong with how they are given.
pub(crate) fn entry<'s>(
    spec: &'s AssertionSpec,
    assertion: &Assertion,
    problems: &mut Problems,
) -> Option<Cow<'s, Node>> {
    let given: &[Node] = match &spec.arguments {
        Arguments::Fields => return Some(Cow::Borrowed(&spec.node)),
        Arguments::Brief(value) => std::slice::from_ref(value),
        Arguments::Listed(values) => values,
    };
    let mut entries = Vec::new();
    for (at, value) in given.iter().enumerate() {
        match assertion.parameters.get(at) {
            Some(parameter) => read(*parameter, value, assertion, &mut entries),
            None if matches!(value.kind, NodeKind::Map(_)) && at == assertion.parameters.len() => {
                read(Parameter::Fields, value, assertion, &mut entries);
            }
            None => {
                problems.push(too_many(assertion, value));
                return None;
            }
        }
    }
    Some(Cow::Owned(Node { kind: NodeKind::Map(entries), ..spec.node.clone() }))
}

type Entries = Vec<(Spanned<String>, Node)>;

fn read(parameter: Parameter, value: &Node, assertion: &Assertion, entries: &mut Entries) {
    let fields = match &value.kind {
        NodeKind::Map(fields) => Some(fields),
        _ => None,
    };
    match (parameter, fields) {
        (Parameter::Value(_) | Parameter::Fields, Some(fields)) => entries.extend(fields.iter().cloned()),
        (Parameter::Value(name) | Parameter::Map(name), _) => entries.push(named(name, value)),
        (Parameter::Fields, None) => {
            let mut required = assertion.fields.iter().filter(|field| field.required);
            let first = required.next().or(assertion.fields.first());
            entries.extend(first.map(|field| named(field.name, value)));
        }
    }
}

fn named(name: &str, value: &Node) -> (Spanned<String>, Node) {
    let span = Span::new(value.span.start, value.span.start);
    (Spanned::new(name.to_owned(), span), value.clone())
}

fn too_many(assertion: &Assertion, value: &Node) -> model::Diagnostic {
    let names: Vec<&str> = assertion.fields.iter().map(|field| field.name).collect();
    let problem = value.error(format!("`{}` takes no argument here", assertion.name));
    match names.as_slice() {
        [] => problem,
        names => problem.help(format!("its fields are {}", names.join(", "))),
    }
}
