//! Rows of `scenario.each` that have too few values for the name of their scenarios.

use model::Diagnostic;
use oxc_ast::ast::{Argument, ArrayExpressionElement, CallExpression, Expression};
use oxc_span::GetSpan;

use super::{Finder, UnknownName};
use crate::syntax::span;

impl Finder<'_> {
    /// Reports the name in `call`, which is `scenario.each(rows)(name, …)`, if no row has a value for each of its
    /// placeholders.
    pub(super) fn check_rows(&mut self, call: &CallExpression<'_>) {
        let Expression::CallExpression(each) = call.callee.get_inner_expression() else { return };
        let rows = each.arguments.first().and_then(Argument::as_expression).map(Expression::get_inner_expression);
        let name = call.arguments.first().and_then(Argument::as_expression).map(Expression::get_inner_expression);
        let (Some(Expression::ArrayExpression(rows)), Some(Expression::StringLiteral(name))) = (rows, name) else {
            return;
        };
        let most =
            rows.elements.iter().map(values).collect::<Option<Vec<usize>>>().and_then(|all| all.into_iter().max());
        let Some(most) = most.filter(|most| placeholders(&name.value) > *most) else { return };
        let values = model::text::counted(most, "value");
        let message =
            format!("the name has {} placeholders, but no row has more than {values}", placeholders(&name.value));
        let problem =
            Diagnostic::warning(message).help("write each row as a list of its values, and a percent sign as `%%`");
        self.found.others.push(UnknownName { span: span(name.span()), problem, global: None });
    }
}

/// Returns the number of values in a row, if the text shows it.
fn values(row: &ArrayExpressionElement<'_>) -> Option<usize> {
    match row.as_expression()?.get_inner_expression() {
        Expression::ArrayExpression(list) => {
            list.elements.iter().all(|item| !item.is_spread()).then_some(list.elements.len())
        }
        Expression::ObjectExpression(_) | Expression::TemplateLiteral(_) => Some(1),
        value => value.is_literal().then_some(1),
    }
}

/// Returns the number of placeholders in a name that take a value each.
fn placeholders(name: &str) -> usize {
    let mut letters = name.chars();
    let mut count = 0;
    while letters.by_ref().any(|letter| letter == '%') {
        count += usize::from(letters.next().is_some_and(|letter| "sdifjop".contains(letter)));
    }
    count
}
