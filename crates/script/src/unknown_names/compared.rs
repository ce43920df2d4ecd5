//! Comparisons whose result does not depend on the values, and assignments in the place of comparisons.

use model::Diagnostic;
use oxc_ast::ast::{
    AssignmentOperator, BinaryExpression, BinaryOperator, ConditionalExpression, Expression, IfStatement, Program,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan;

use super::{Finder, Held, Role, UnknownName};
use crate::syntax::span;

/// Returns the problems of the comparisons in `program`.
pub(super) fn problems(program: &Program<'_>, finder: &Finder<'_>) -> Vec<UnknownName> {
    let mut compared = Compared { finder, found: Vec::new() };
    compared.visit_program(program);
    compared.found
}

struct Compared<'f, 's> {
    finder: &'f Finder<'s>,
    found: Vec<UnknownName>,
}

impl Compared<'_, '_> {
    fn report(&mut self, place: &impl GetSpan, message: String, help: String) {
        let problem = Diagnostic::warning(message).help(help);
        self.found.push(UnknownName { span: span(place.span()), problem, global: None });
    }

    /// Returns what `value` holds if nothing else can be in its place.
    fn certain(&self, value: &Expression<'_>) -> Option<Role> {
        let Held { role, root } = self.finder.held(value)?;
        let is_set = |root| self.finder.scoping.get_resolved_references(root).any(|reference| reference.is_write());
        (!root.is_some_and(is_set)).then_some(role)
    }

    /// Returns what `value` is, if it is never equal to `other`, and what to write instead.
    fn never_equal(&self, value: &Expression<'_>, other: &Expression<'_>, is_strict: bool) -> Option<(String, String)> {
        let is_list = |role| matches!(role, Role::Calls | Role::Replies | Role::List);
        let is_text = matches!(other, Expression::StringLiteral(_) | Expression::TemplateLiteral(_));
        let literal = match value {
            Expression::ArrayExpression(_) if is_strict || self.certain(other).is_some_and(is_list) => {
                Some(("a new list", "compare its `length`, or `JSON.stringify` of both"))
            }
            Expression::ObjectExpression(_) if is_strict => Some(("a new object", "compare `JSON.stringify` of both")),
            Expression::RegExpLiteral(_) => Some(("a regular expression", "write `/pattern/.test(text)`")),
            _ => None,
        };
        if let Some((what, help)) = literal {
            return Some((format!("{what} is not equal to any other value"), help.to_owned()));
        }
        let (what, right) = match (self.certain(value).filter(|_| is_text)?, is_strict) {
            (Role::Reply, true) => ("a reply", "its text is `.text`"),
            (Role::Output, true) => ("the result of `agent.run`", "its text is `.stdout`"),
            (Role::Call, true) => ("a tool call", "the name of its tool is `.name`"),
            (Role::Number, true) => ("a number", "write the number without quotes"),
            _ => return None,
        };
        Some((format!("{what} is not equal to any text"), right.to_owned()))
    }

    /// Reports a literal that is assigned, a method that is not called and what is always true where a condition belongs.
    fn check_condition(&mut self, condition: &Expression<'_>) {
        match condition.get_inner_expression() {
            Expression::AssignmentExpression(set)
                if set.operator == AssignmentOperator::Assign && set.right.get_inner_expression().is_literal() =>
            {
                let message = "this assigns a value and compares nothing".to_owned();
                self.report(&**set, message, "a comparison is written `===`".to_owned());
            }
            Expression::StaticMemberExpression(member)
                if self.certain(&member.object).is_some_and(|role| role.has_method(&member.property.name)) =>
            {
                let name = &member.property.name;
                let message = format!("`{name}` is a method and not called here, so it is always true");
                self.report(&**member, message, format!("write `{name}(…)`"));
            }
            Expression::UnaryExpression(not) if not.operator.is_not() => self.check_condition(&not.argument),
            value => {
                let role = self.certain(value);
                // A call whose promise is the condition is reported as one that is tested.
                let is_name = value.get_identifier_reference().is_some();
                let role = role.filter(|role| is_name || !matches!(role, Role::Promise | Role::PromisedResult));
                if let Some((what, help)) = role.and_then(Role::always_true) {
                    self.report(value, format!("{what} is always true"), help.to_owned());
                }
            }
        }
    }
}

impl<'a> Visit<'a> for Compared<'_, '_> {
    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        let (left, right) = (binary.left.get_inner_expression(), binary.right.get_inner_expression());
        let is_strict = matches!(binary.operator, BinaryOperator::StrictEquality | BinaryOperator::StrictInequality);
        if binary.operator.is_equality()
            && let Some((message, help)) =
                self.never_equal(left, right, is_strict).or_else(|| self.never_equal(right, left, is_strict))
        {
            self.report(binary, message, help);
        }
        walk::walk_binary_expression(self, binary);
    }

    fn visit_if_statement(&mut self, statement: &IfStatement<'a>) {
        self.check_condition(&statement.test);
        walk::walk_if_statement(self, statement);
    }

    fn visit_conditional_expression(&mut self, expression: &ConditionalExpression<'a>) {
        self.check_condition(&expression.test);
        walk::walk_conditional_expression(self, expression);
    }
}
