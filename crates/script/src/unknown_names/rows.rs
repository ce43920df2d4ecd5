//! Rows of `scenario.each` that lack values for the name or for the parameters of their scenarios.

use std::collections::BTreeSet;

use model::{Diagnostic, nearest};
use oxc_ast::ast::{
    Argument, ArrayExpression, ArrayExpressionElement, BindingPattern, CallExpression, Expression, FormalParameters,
    ObjectPropertyKind,
};
use oxc_span::GetSpan;

use super::{Finder, UnknownName};
use crate::syntax::span;

impl Finder<'_> {
    /// Reports the name in `call`, which is `scenario.each(rows)(name, …)`, if no row has a value for each of its
    /// placeholders, and otherwise the parameters of its function that no row has.
    pub(super) fn check_rows(&mut self, call: &CallExpression<'_>) {
        let Expression::CallExpression(each) = call.callee.get_inner_expression() else { return };
        let rows = each.arguments.first().and_then(Argument::as_expression).map(Expression::get_inner_expression);
        let function = call.arguments.last().and_then(Argument::as_expression).map(Expression::get_inner_expression);
        let parameters = match function {
            Some(Expression::ArrowFunctionExpression(function)) => Some(&function.params),
            Some(Expression::FunctionExpression(function)) => Some(&function.params),
            _ => None,
        };
        let name = call.arguments.first().and_then(Argument::as_expression).map(Expression::get_inner_expression);
        let Some(Expression::ArrayExpression(rows)) = rows else { return };
        let most =
            rows.elements.iter().map(values).collect::<Option<Vec<usize>>>().and_then(|all| all.into_iter().max());
        let name = match name {
            Some(Expression::StringLiteral(name)) if most.is_some_and(|most| placeholders(&name.value) > most) => name,
            _ => {
                if let Some(Expression::StringLiteral(name)) = name {
                    self.check_short_row(rows, placeholders(&name.value));
                }
                parameters.into_iter().for_each(|parameters| self.check_row_parameters(rows, most, parameters));
                return;
            }
        };
        let most = most.unwrap_or_default();
        let values = model::text::counted(most, "value");
        let message =
            format!("the name has {} placeholders, but no row has more than {values}", placeholders(&name.value));
        let problem =
            Diagnostic::warning(message).help("write each row as a list of its values, and a percent sign as `%%`");
        self.found.others.push(UnknownName { span: span(name.span()), problem, global: None });
    }

    /// Reports the first row that has fewer values than the name, which has `placeholders`.
    fn check_short_row(&mut self, rows: &ArrayExpression<'_>, placeholders: usize) {
        let short =
            rows.elements.iter().find_map(|row| Some((row, values(row).filter(|count| *count < placeholders)?)));
        let Some((row, count)) = short else { return };
        let values = model::text::counted(count, "value");
        let problem =
            Diagnostic::warning(format!("the name has {placeholders} placeholders, but this row has {values}"));
        let problem = problem.help("give each row as many values as the others");
        self.found.others.push(UnknownName { span: span(row.span()), problem, global: None });
    }

    /// Reports parameters that take a value of a row apart, although it is a text or a number in each row.
    fn check_taken_apart(&mut self, rows: &ArrayExpression<'_>, parameters: &FormalParameters<'_>) {
        for (index, parameter) in parameters.items.iter().enumerate().skip(1) {
            if parameter.initializer.is_some() || !rows.elements.iter().all(|row| is_plain(row, index - 1)) {
                continue;
            }
            let received = "what a scenario receives is its first argument, before the values of a row";
            let (problem, help) = match &parameter.pattern {
                BindingPattern::ArrayPattern(_) => (
                    Diagnostic::warning("each value of a row is a parameter of its own, and brackets take one apart"),
                    "write the names without the brackets: `async ({ agent }, first, second) => …`",
                ),
                BindingPattern::ObjectPattern(taken)
                    if taken.properties.iter().any(|one| one.key.is_specific_static_name("agent")) =>
                {
                    (Diagnostic::error(received), "write `async ({ agent }, first, second) => …`")
                }
                _ => continue,
            };
            let place = span(parameter.pattern.span());
            self.found.others.push(UnknownName { span: place, problem: problem.help(help), global: None });
        }
    }

    /// Reports parameters for which no row has a value, and names that are taken out of rows that do not have them.
    /// `most` is the largest number of values in a row, if the text shows it.
    fn check_row_parameters(
        &mut self,
        rows: &ArrayExpression<'_>,
        most: Option<usize>,
        parameters: &FormalParameters<'_>,
    ) {
        self.check_taken_apart(rows, parameters);
        let lacking = parameters.items.iter().skip(most.map_or(usize::MAX, |most| most + 1));
        for parameter in lacking.filter(|parameter| parameter.initializer.is_none() && !parameter.optional) {
            let BindingPattern::BindingIdentifier(name) = &parameter.pattern else { continue };
            let problem = Diagnostic::error(format!("no row has a value for `{}`", name.name));
            let problem = problem.help("write each row as a list of its values, or give the parameter a default");
            self.found.others.push(UnknownName { span: span(name.span), problem, global: None });
        }
        let keys: Option<Vec<Vec<String>>> = rows.elements.iter().map(keys).collect();
        let keys: BTreeSet<String> = keys.into_iter().flatten().flatten().collect();
        let Some(BindingPattern::ObjectPattern(taken)) = parameters.items.get(1).map(|second| &second.pattern) else {
            return;
        };
        for property in taken.properties.iter().filter(|property| !property.computed && !keys.is_empty()) {
            let Some(name) = property.key.static_name().filter(|name| !keys.contains(&**name)) else { continue };
            if !matches!(property.value, BindingPattern::AssignmentPattern(_)) {
                let near = nearest(&name, keys.iter().map(String::as_str));
                let problem = Diagnostic::error(format!("no row has `{name}`"));
                let problem = match near {
                    Some(near) if property.shorthand => problem.help(format!("write `{near}: {name}`")),
                    near => problem.suggest(near),
                };
                self.found.others.push(UnknownName { span: span(property.key.span()), problem, global: None });
            }
        }
    }
}

/// Returns `true` if the value of a row at `position` is certainly a text, a number or missing.
fn is_plain(row: &ArrayExpressionElement<'_>, position: usize) -> bool {
    let is_literal = |value: &Expression<'_>| value.is_literal() || matches!(value, Expression::TemplateLiteral(_));
    match row.as_expression().map(Expression::get_inner_expression) {
        Some(Expression::ArrayExpression(list)) if values(row).is_some() => {
            let value = list.elements.get(position).map(|value| value.as_expression());
            value.is_none_or(|value| value.is_some_and(|value| is_literal(value.get_inner_expression())))
        }
        Some(value) => is_literal(value),
        None => false,
    }
}

/// Returns the keys of a row that is an object, if the text shows all of them.
fn keys(row: &ArrayExpressionElement<'_>) -> Option<Vec<String>> {
    let Expression::ObjectExpression(object) = row.as_expression()?.get_inner_expression() else { return None };
    let key = |property: &ObjectPropertyKind<'_>| match property {
        ObjectPropertyKind::ObjectProperty(property) => property.key.static_name().map(|name| name.to_string()),
        ObjectPropertyKind::SpreadProperty(_) => None,
    };
    object.properties.iter().map(key).collect()
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
