//! Values that are written as literals.

use std::sync::Arc;

use model::{Node, NodeKind, Source, Spanned, UNKNOWN_TAG};
use oxc_ast::ast::{Expression, ObjectPropertyKind, UnaryOperator};

use super::{ValueLocation, node};
use crate::value::Value;

/// Returns the value of `expression` if the text alone determines it.
pub(super) fn literal(expression: &Expression<'_>) -> Option<Value> {
    Some(match expression.get_inner_expression() {
        Expression::NullLiteral(_) => Value::Null,
        Expression::BooleanLiteral(literal) => Value::Bool(literal.value),
        Expression::NumericLiteral(literal) => Value::Number(literal.value),
        Expression::UnaryExpression(negated) if negated.operator == UnaryOperator::UnaryNegation => {
            Value::Number(-literal(&negated.argument)?.as_number()?)
        }
        Expression::StringLiteral(literal) => Value::String(literal.value.to_string()),
        Expression::TemplateLiteral(template) => Value::String(template.single_quasi()?.to_string()),
        Expression::RegExpLiteral(literal) => Value::Regex {
            source: literal.regex.pattern.text.to_string(),
            flags: literal.regex.flags.to_inline_string().to_string(),
        },
        Expression::ArrayExpression(array) => {
            let items = array.elements.iter().map(|element| literal(element.as_expression()?));
            Value::List(items.collect::<Option<_>>()?)
        }
        Expression::ObjectExpression(object) => {
            let entries = object.properties.iter().map(|property| match property {
                ObjectPropertyKind::ObjectProperty(property) => {
                    Some((property.key.static_name()?.into_owned(), literal(&property.value)?))
                }
                ObjectPropertyKind::SpreadProperty(_) => None,
            });
            Value::Map(entries.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Returns the value of an argument as far as the text determines it: values of a map that are known only at run time are
/// undefined. Returns `None` for anything else that is known only then.
pub(super) fn argument(expression: &Expression<'_>) -> Option<Value> {
    let Expression::ObjectExpression(object) = expression.get_inner_expression() else { return literal(expression) };
    let entries = object.properties.iter().map(|property| match property {
        ObjectPropertyKind::ObjectProperty(property) => {
            Some((property.key.static_name()?.into_owned(), literal(&property.value).unwrap_or_default()))
        }
        ObjectPropertyKind::SpreadProperty(_) => None,
    });
    entries.collect::<Option<_>>().map(Value::Map)
}

/// Returns the tree of an [`argument`] at `place`. Values that are known only at run time have the tag
/// [`UNKNOWN_TAG`](model::UNKNOWN_TAG).
pub(super) fn argument_node(value: &Value, place: &ValueLocation, source: &Arc<Source>) -> Node {
    let mut node = node(value, Some(place), place.span, source);
    if let (NodeKind::Map(read), Value::Map(entries)) = (&mut node.kind, value) {
        for (key, _) in entries.iter().filter(|(_, value)| value.is_undefined()) {
            let span = place.entry(key).map_or(place.span, |(span, _)| span);
            let tag = Some(UNKNOWN_TAG.into());
            let unknown = Node { kind: NodeKind::Null, span, tag, source: Arc::clone(source) };
            read.push((Spanned::new(key.clone(), span), unknown));
        }
    }
    node
}
