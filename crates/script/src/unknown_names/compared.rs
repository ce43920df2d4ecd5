//! Comparisons whose result does not depend on the values, assignments in the place of comparisons, and positions that are
//! used as items.

use std::collections::{HashMap, HashSet};

use model::Diagnostic;
use oxc_ast::ast::{
    Argument, AssignmentOperator, BinaryExpression, BinaryOperator, BindingPattern, CallExpression,
    ConditionalExpression, Expression, ForInStatement, ForStatementLeft, IfStatement, LogicalExpression,
    LogicalOperator, NewExpression, Program, StaticMemberExpression, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan;
use oxc_syntax::symbol::SymbolId;

use super::role::TEXT;
use super::{Finder, Held, Role, UnknownName};
use crate::regex::{Regex, RegexError, foreign};
use crate::syntax::span;

/// Returns the problems of the comparisons in `program`.
pub(super) fn problems(program: &Program<'_>, finder: &Finder<'_>) -> Vec<UnknownName> {
    let mut compared = Compared {
        finder,
        found: Vec::new(),
        letter_cases: HashMap::new(),
        positions: HashSet::new(),
        is_in_promise: false,
    };
    compared.visit_program(program);
    compared.found
}

pub(super) struct Compared<'f, 's> {
    pub(super) finder: &'f Finder<'s>,
    found: Vec<UnknownName>,
    /// Variables that hold a text in upper or lower case, with `true` for upper case.
    letter_cases: HashMap<SymbolId, bool>,
    /// Variables of `for … in` loops over a list.
    positions: HashSet<SymbolId>,
    /// True inside of `new Promise(…)`, whose functions say when they have ended.
    pub(super) is_in_promise: bool,
}

impl Compared<'_, '_> {
    /// Reports the text of a regular expression that is not valid.
    fn check_regex(&mut self, callee: &Expression<'_>, given: &[Argument<'_>]) {
        let text = |argument: &Argument<'_>| match argument.as_expression().map(Expression::get_inner_expression) {
            Some(Expression::StringLiteral(text)) => Some(text.value.to_string()),
            _ => None,
        };
        let texts: Option<Vec<String>> = given.iter().map(text).collect();
        let Some([source, flags @ ..]) = texts.as_deref().filter(|_| self.is_global(callee, "RegExp")) else { return };
        let flags = flags.first().map(String::as_str).unwrap_or_default();
        // Syntax of other dialects is valid here, although it may not be meant.
        if let Err(RegexError::Invalid { reason, .. }) = Regex::literal(source, flags)
            && foreign(source, flags).is_none()
        {
            let help = "put a backslash before a character that is meant as text, twice in quotes: `\\\\(`".to_owned();
            self.report(&given[0], format!("invalid regular expression: {reason}"), help);
        }
    }

    pub(super) fn report(&mut self, place: &impl GetSpan, message: String, help: String) {
        let problem = Diagnostic::warning(message).help(help);
        self.found.push(UnknownName { span: span(place.span()), problem, global: None });
    }

    /// Returns what `value` holds if nothing else can be in its place.
    fn certain(&self, value: &Expression<'_>) -> Option<Role> {
        let Held { role, root } = self.finder.held(value)?;
        (!root.is_some_and(|root| self.is_set(root))).then_some(role)
    }

    pub(super) fn is_set(&self, variable: SymbolId) -> bool {
        self.finder.scoping.get_resolved_references(variable).any(|reference| reference.is_write())
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
            Expression::CallExpression(call) if is_method(call, "indexOf") => {
                let message = "`indexOf` returns -1, which counts as true, if nothing is found, and 0 at the start";
                self.report(&**call, message.to_owned(), "write `includes` instead of `indexOf`".to_owned());
            }
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

    /// Reports letters in `text` that `value` does not have, if it is a text in upper or lower case.
    fn check_letters(&mut self, value: &Expression<'_>, text: &Expression<'_>) {
        let is_upper = match value.get_inner_expression() {
            Expression::CallExpression(call) => is_upper(call),
            Expression::Identifier(name) => {
                let symbol = self.finder.symbol(name);
                let is_upper = symbol.and_then(|symbol| self.letter_cases.get(&symbol).copied());
                is_upper.filter(|_| !symbol.is_some_and(|symbol| self.is_set(symbol)))
            }
            _ => None,
        };
        let (Some(is_upper), Expression::StringLiteral(text)) = (is_upper, text.get_inner_expression()) else { return };
        let written = text.value.as_str();
        let (right, case) =
            if is_upper { (written.to_uppercase(), "upper") } else { (written.to_lowercase(), "lower") };
        if right != written {
            self.report(
                &**text,
                format!("a text in {case} case never contains {written:?}"),
                format!("write {right:?}"),
            );
        }
    }

    /// Reports a text beside `||` that is always the result, or that is not compared with anything.
    fn check_either(&mut self, either: &LogicalExpression<'_>) {
        let is_text =
            |value: &Expression<'_>| matches!(value, Expression::StringLiteral(text) if !text.value.is_empty());
        let left = either.left.get_inner_expression();
        let last = match left {
            Expression::LogicalExpression(inner) => inner.right.get_inner_expression(),
            left => left,
        };
        if is_text(left) {
            let message = "this text is always the result, because it is not empty".to_owned();
            self.report(left, message, "compare with each text: `value === \"a\" || value === \"b\"`".to_owned());
        } else if is_text(either.right.get_inner_expression())
            && matches!(last, Expression::BinaryExpression(binary) if binary.operator.is_equality())
        {
            let message = "this text is not compared with anything".to_owned();
            self.report(&either.right, message, "write the comparison again: `value === \"b\"`".to_owned());
        }
    }
}

/// Returns `true` if `call` returns a text in upper case, and `false` for lower case.
fn is_upper(call: &CallExpression<'_>) -> Option<bool> {
    match call.callee.get_inner_expression().as_member_expression()?.static_property_name()? {
        "toUpperCase" | "toLocaleUpperCase" => Some(true),
        "toLowerCase" | "toLocaleLowerCase" => Some(false),
        _ => None,
    }
}

/// Returns `true` if `call` calls a method of this name with arguments.
fn is_method(call: &CallExpression<'_>, name: &str) -> bool {
    let member = call.callee.get_inner_expression().as_member_expression();
    !call.arguments.is_empty() && member.and_then(|member| member.static_property_name()) == Some(name)
}

impl<'a> Visit<'a> for Compared<'_, '_> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Some(member) = call.callee.get_inner_expression().as_member_expression()
            && let Some("includes" | "startsWith" | "endsWith" | "indexOf") = member.static_property_name()
            && let Some(text) = call.arguments.first().and_then(Argument::as_expression)
        {
            self.check_letters(member.object(), text);
        }
        self.check_callback(call);
        self.check_regex(&call.callee, &call.arguments);
        walk::walk_call_expression(self, call);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let BindingPattern::BindingIdentifier(name) = &declarator.id
            && let Some(Expression::CallExpression(call)) =
                declarator.init.as_ref().map(Expression::get_inner_expression)
        {
            self.letter_cases.extend(name.symbol_id.get().zip(is_upper(call)));
        }
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_for_in_statement(&mut self, statement: &ForInStatement<'a>) {
        if let ForStatementLeft::VariableDeclaration(declaration) = &statement.left
            && let Some(BindingPattern::BindingIdentifier(name)) = declaration.declarations.first().map(|one| &one.id)
            && self.certain(&statement.right).is_some_and(|role| matches!(role, Role::Calls | Role::Replies))
        {
            self.positions.extend(name.symbol_id.get());
        }
        walk::walk_for_in_statement(self, statement);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        let holder = member.object.get_inner_expression().get_identifier_reference();
        let name = member.property.name.as_str();
        if holder.and_then(|holder| self.finder.symbol(holder)).is_some_and(|symbol| self.positions.contains(&symbol))
            && !TEXT.contains(&name)
        {
            let message = format!("`for … in` gives positions, which have no `{name}`");
            self.report(&member.property, message, "write `for (… of …)` for the items".to_owned());
        }
        walk::walk_static_member_expression(self, member);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        let was_in_promise = self.is_in_promise;
        self.is_in_promise |= self.is_global(&new.callee, "Promise");
        self.check_regex(&new.callee, &new.arguments);
        walk::walk_new_expression(self, new);
        self.is_in_promise = was_in_promise;
    }

    fn visit_logical_expression(&mut self, either: &LogicalExpression<'a>) {
        if either.operator == LogicalOperator::Or {
            self.check_either(either);
        }
        walk::walk_logical_expression(self, either);
    }

    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        let (left, right) = (binary.left.get_inner_expression(), binary.right.get_inner_expression());
        let is_strict = matches!(binary.operator, BinaryOperator::StrictEquality | BinaryOperator::StrictInequality);
        if binary.operator.is_equality()
            && let Some((message, help)) =
                self.never_equal(left, right, is_strict).or_else(|| self.never_equal(right, left, is_strict))
        {
            self.report(binary, message, help);
        } else if binary.operator.is_equality() {
            self.check_letters(left, right);
            self.check_letters(right, left);
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
