//! Source positions of the parts of an exported value.

mod literal;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use model::{CodeClaim, Diagnostic, Node, NodeKind, Source, Span, Spanned};
use oxc_ast::ast::{
    Argument, ArrayExpression, ArrayExpressionElement, AssignmentExpression, AssignmentTarget, BinaryExpression,
    BindingPattern, CallExpression, ConditionalExpression, Declaration, DoWhileStatement, ExportDefaultDeclarationKind,
    Expression, ForStatement, FormalParameter, IfStatement, ImportDeclaration, LogicalExpression, MemberExpression,
    ModuleExportName, ObjectExpression, ObjectPropertyKind, Program, Statement, StaticMemberExpression,
    UnaryExpression, UnaryOperator, VariableDeclaration, VariableDeclarator, WhileStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan;

use self::literal::{argument, argument_node};
use crate::expression::SyntaxError;
use crate::names::TEST_MODULES;
use crate::syntax::{Mistake, span};
use crate::typescript::{Language, first_error, with_parsed};
use crate::unknown_names::{Helper, UnknownName, unknown_names};
use crate::value::{Key, Value};

/// Function that creates a scenario. Its properties, such as `skip`, also create one.
pub(crate) const SCENARIO: &str = "scenario";

/// Maximum number of locations. It limits names that refer to themselves in cycles or many times over.
const PLACES: usize = 200_000;

/// Maximum depth of names that refer to names.
const HOPS: usize = 64;

/// Location of a value, and of its parts as far as the text shows them.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueLocation {
    /// Byte range in the text.
    pub span: Span,
    /// Locations of its parts.
    pub inside: Inside,
}

/// Parts of a [`ValueLocation`].
#[derive(Debug, Clone, PartialEq)]
pub enum Inside {
    /// It has no parts, or they are only known at run time.
    Opaque,
    /// Items of an array. Only the first ones, if the array contains a spread of an unknown value.
    List(Vec<ValueLocation>),
    /// Properties of an object literal, with the positions of their names.
    Map(Vec<(Spanned<String>, ValueLocation)>),
}

impl ValueLocation {
    /// Returns the location at `path`, or the last known location along the path, with the number of steps to it.
    pub fn find(&self, path: &[Key]) -> (&ValueLocation, usize) {
        let mut location = self;
        for (taken, key) in path.iter().enumerate() {
            match location.step(key) {
                Some(inside) => location = inside,
                None => return (location, taken),
            }
        }
        (location, path.len())
    }

    fn step(&self, key: &Key) -> Option<&ValueLocation> {
        match key {
            Key::Index(index) => self.item(*index),
            Key::Name(name) => self.entry(name).map(|(_, place)| place),
        }
    }

    /// Returns the location of the item at `index`, if this is a list.
    pub fn item(&self, index: usize) -> Option<&ValueLocation> {
        match &self.inside {
            Inside::List(items) => items.get(index),
            Inside::Opaque | Inside::Map(_) => None,
        }
    }

    /// Returns the locations of the property under `key` and of its name, if this is a map.
    pub fn entry(&self, key: &str) -> Option<(Span, &ValueLocation)> {
        match &self.inside {
            Inside::Map(entries) => {
                entries.iter().rev().find(|(name, _)| name.value == key).map(|(name, place)| (name.span, place))
            }
            Inside::Opaque | Inside::List(_) => None,
        }
    }
}

/// Converts `value` to a tree. Its parts get their own locations as far as `place` knows them, and otherwise `span`.
pub(crate) fn node(value: &Value, place: Option<&ValueLocation>, span: Span, source: &Arc<Source>) -> Node {
    let part = |value: &Value, place: Option<&ValueLocation>| {
        node(value, place, place.map_or(span, |place| place.span), source)
    };
    let (kind, tag) = match value {
        Value::Undefined | Value::Null => (NodeKind::Null, None),
        Value::Bool(value) => (NodeKind::Bool(*value), None),
        Value::Number(number) => match value.to_json() {
            serde_json::Value::Number(number) => (NodeKind::Number(number), None),
            // JSON has no such number, and no assertion accepts it as one.
            _ => (NodeKind::String(number.to_string()), None),
        },
        Value::String(text) => (NodeKind::String(text.clone()), None),
        Value::Regex { source, flags } => (NodeKind::String(format!("/{source}/{flags}")), Some("!re")),
        Value::Function(function) => (NodeKind::String(function.name().to_owned()), Some("!function")),
        Value::Native(_) | Value::HostFunction(_) => (NodeKind::Null, Some("!function")),
        Value::List(items) => {
            let items =
                items.iter().enumerate().map(|(index, item)| part(item, place.and_then(|place| place.item(index))));
            (NodeKind::List(items.collect()), None)
        }
        Value::Map(entries) => {
            let entry = |(key, value): &(String, Value)| {
                let known = place.and_then(|place| place.entry(key));
                let name = known.map_or(span, |(name, _)| name);
                (Spanned::new(key.clone(), name), part(value, known.map(|(_, place)| place)))
            };
            let given = entries.iter().filter(|(_, value)| !value.is_undefined());
            (NodeKind::Map(given.map(entry).collect()), None)
        }
    };
    Node { kind, span, tag: tag.map(Box::from), source: Arc::clone(source) }
}

/// Returns the location of the value that a module exports under `export`. It follows literals, type annotations,
/// names of top-level variables, and calls with a single literal. Returns `None` if the module does not export it.
///
/// # Errors
/// Returns an error if the text is not valid.
pub fn positions(text: &str, language: Language, export: &str) -> Result<Option<ValueLocation>, SyntaxError> {
    let found = with_parsed(text, language, |parsed| {
        first_error(&parsed)?;
        let names = Names::new(&parsed.program);
        Ok(names.exported(&parsed.program, export))
    });
    found.map_err(|Mistake { message, span, help }| SyntaxError { message, range: span.start()..span.end(), help })
}

/// A call in a source text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallLocation {
    /// The callee, such as `assert.contains`.
    pub callee: Span,
    /// Its arguments. Only the first ones, if there is a spread among them.
    pub arguments: Vec<ValueLocation>,
    /// Byte range of the whole call.
    span: Span,
    /// Last part of the callee, such as `contains`.
    name: Option<String>,
    /// True if it is a method call on something named `assert`.
    is_claim: bool,
    /// Values of the arguments of such a call. `None` if a value is known only at run time.
    values: Vec<Option<Value>>,
    /// The first argument of such a call, as far as the text shows it.
    first: First,
}

/// First argument of a call.
#[derive(Debug, Clone, PartialEq)]
enum First {
    /// A variable.
    Name(String),
    /// An awaited reply.
    Reply,
    /// Anything else.
    Other,
}

/// Calls in a source text, outer calls before inner ones.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    found: Vec<CallLocation>,
    /// True if `assert` in the text refers to something other than the test module's.
    has_other_assert: bool,
    /// True if `agent` in the text refers to something other than a scenario's.
    has_other_agent: bool,
    /// Calls whose promise is used as if it were the result.
    forgotten: Vec<Awaitable>,
    /// Calls whose promise is tested as if it were the result.
    tested: Vec<Awaitable>,
    /// Names that do not exist.
    unknown: Vec<UnknownName>,
    /// Functions that calls may use.
    helpers: Vec<Helper>,
}

impl Calls {
    /// Returns the calls in `text`, or none if it is not valid.
    pub fn new(text: &str, language: Language) -> Self {
        let found = with_parsed(text, language, |parsed| {
            let names = Names { values: HashMap::new(), left: Cell::new(PLACES) };
            let mut search = Search {
                names,
                calls: Self::default(),
                others: HashSet::new(),
                bindings: Vec::new(),
                uses: Vec::new(),
                replies: HashMap::new(),
            };
            search.calls.has_other_assert = has_own_assert(&parsed.program);
            search.visit_program(&parsed.program);
            search.find_forgotten();
            search.find_checked_replies();
            let is_module = parsed.module_record.has_module_syntax;
            (search.calls.unknown, search.calls.helpers) = unknown_names(&parsed.program, text, is_module);
            Ok(search.calls)
        });
        found.unwrap_or_default()
    }

    /// Returns the innermost call around byte `at` whose callee is called `name`. If there is none, returns the
    /// outermost call there, because the engine may report any position in a call, sometimes in one of its arguments.
    pub fn around(&self, index: usize, name: &str) -> Option<&CallLocation> {
        let around = || self.found.iter().filter(|call| (call.span.start()..=call.span.end()).contains(&index));
        around().rfind(|call| call.name.as_deref() == Some(name)).or_else(|| around().next())
    }

    /// Returns the mistakes in the arguments of `call`, and in the functions that these use, that the text alone shows.
    pub fn mistakes(&self, call: &CallLocation, source: &Source) -> Vec<Diagnostic> {
        let text_at = |span: Span| source.text.get(span.start()..span.end()).unwrap_or_default();
        let is_ours = |call: &&Awaitable| match call.kind {
            AwaitableKind::Reply => true,
            AwaitableKind::Result => !self.has_other_agent,
            // A method of its result is reported as such.
            AwaitableKind::Claim => {
                let is_other = |one: &UnknownName| one.span.start() == call.span.start();
                !self.has_other_assert && !self.unknown.iter().any(is_other)
            }
        };
        let forgotten = self.forgotten.iter().filter(is_ours).map(|call| {
            let is_reply = call.kind == AwaitableKind::Reply;
            let what = if is_reply { "the reply" } else { &format!("the result of `{}`", text_at(call.callee)) };
            let problem = Diagnostic::error(format!("{what} is used without waiting for it"));
            (call.span, problem.help("write `await` before the call"))
        });
        let is_only_tested = |call: &&Awaitable| !self.forgotten.contains(call);
        let tested = self.tested.iter().filter(is_only_tested).filter(is_ours).map(|call| {
            let message = format!("the promise of `{}` is tested, not its result", text_at(call.callee));
            let is_claim = call.kind == AwaitableKind::Claim;
            let help = if is_claim { "write `(await …).passed`" } else { "write `await` before the call" };
            (call.span, Diagnostic::warning(message).help(help))
        });
        let unknown = self.unknown.iter().filter(|name| name.global.is_none());
        let unknown = unknown.map(|name| (name.span, name.problem.clone()));
        let reached = self.reached(call);
        let all = forgotten.chain(tested).chain(unknown).filter(|(span, _)| is_within(&reached, span.start()));
        all.map(|(span, problem)| problem.at(source.excerpt(span))).collect()
    }

    /// Returns the variables in the arguments of `call`, and in the functions that these use, that nothing declares, each
    /// with the problem that it is if the runtime does not have it: its first use in the text.
    pub fn undeclared(&self, call: &CallLocation, source: &Source) -> Vec<(String, Diagnostic)> {
        let reached = self.reached(call);
        let globals = || self.unknown.iter().filter_map(|one| Some((one.global.as_ref()?, one)));
        let mut found: Vec<(String, Diagnostic)> = Vec::new();
        for (name, _) in globals().filter(|(_, one)| is_within(&reached, one.span.start())) {
            let first =
                globals().find(|(other, _)| *other == name).filter(|_| found.iter().all(|(known, _)| known != name));
            found.extend(first.map(|(_, one)| (name.clone(), one.problem.clone().at(source.excerpt(one.span)))));
        }
        found
    }

    /// Returns the first use of `variable`, which nothing declares.
    pub fn first_use(&self, variable: &str) -> Option<Span> {
        let of_it = |one: &&UnknownName| one.global.as_deref() == Some(variable);
        self.unknown.iter().find(of_it).map(|one| one.span)
    }

    /// Returns the ranges of the arguments of `call` and of the functions in the text that these use.
    fn reached(&self, call: &CallLocation) -> Vec<Span> {
        let mut reached = vec![Span::new(call.span.start() + 1, call.span.end())];
        let mut left: Vec<&Helper> = self.helpers.iter().collect();
        loop {
            let is_used = |helper: &&Helper| helper.uses.iter().any(|at| is_within(&reached, *at));
            let (used, others): (Vec<&Helper>, Vec<&Helper>) = left.into_iter().partition(is_used);
            if used.is_empty() {
                return reached;
            }
            reached.extend(used.iter().map(|helper| helper.span));
            left = others;
        }
    }

    /// Returns the assertions that the arguments of `call` make in `source`, the file that contains the text.
    pub fn claims(&self, call: &CallLocation, source: &Arc<Source>) -> Vec<CodeClaim> {
        let is_inside =
            |other: &&CallLocation| other.span.start() > call.span.start() && other.span.end() <= call.span.end();
        let is_mistaken = |made: &CallLocation| {
            let mistakes = self.unknown.iter().filter(|one| one.global.is_none());
            mistakes.into_iter().any(|one| is_within(&[made.span], one.span.start()))
        };
        let claims = self.found.iter().filter(|other| other.is_claim && !self.has_other_assert).filter(is_inside);
        // Whatever else is wrong with it may follow from the mistake.
        let claims = claims.filter(|made| !is_mistaken(made));
        let claim = |made: &CallLocation| {
            let node = |(index, value): (usize, &Option<Value>)| {
                let place = made.arguments.get(index)?;
                Some(argument_node(value.as_ref()?, place, source))
            };
            let name = Spanned::new(made.name.clone()?, made.callee);
            let is_reply = made.first == First::Reply;
            let arguments = made.values.iter().enumerate().skip(usize::from(is_reply)).map(node).collect();
            Some(CodeClaim { name, arguments, may_have_reply: !is_reply, source: Arc::clone(source) })
        };
        claims.filter_map(claim).collect()
    }
}

/// Returns `true` if byte `at` is in one of the ranges.
fn is_within(ranges: &[Span], at: usize) -> bool {
    ranges.iter().any(|range| (range.start()..range.end()).contains(&at))
}

/// Call that returns a promise.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Awaitable {
    span: Span,
    callee: Span,
    kind: AwaitableKind,
}

/// Value of the promise of an [`Awaitable`].
#[derive(Debug, Clone, Copy, PartialEq)]
enum AwaitableKind {
    /// Reply or replies of an agent.
    Reply,
    /// Result of `agent.run` or of a method of `agent.files`.
    Result,
    /// Result of an assertion.
    Claim,
}

struct Search<'a> {
    names: Names<'a>,
    calls: Calls,
    /// Names imported from modules other than the test module.
    others: HashSet<&'a str>,
    /// Names of variables and parameters, where they get a value, and the call if its promise is the value.
    bindings: Vec<(&'a str, u32, Option<Awaitable>)>,
    /// Names that are used as results, and where.
    uses: Vec<(&'a str, u32)>,
    /// Names that get an awaited reply, and how often.
    replies: HashMap<&'a str, usize>,
}

/// Returns `true` if the module declares something called `assert` at its top level.
fn has_own_assert(program: &Program<'_>) -> bool {
    let declares = |statement: &Statement<'_>| match statement {
        Statement::VariableDeclaration(declaration) => declaration
            .declarations
            .iter()
            .any(|declarator| declarator.id.get_binding_identifiers().iter().any(|name| name.name == "assert")),
        _ => false,
    };
    program.body.iter().any(declares)
}

impl<'a> Visit<'a> for Search<'a> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        let name = match call.callee.get_inner_expression() {
            Expression::Identifier(identifier) => Some(identifier.name.to_string()),
            callee if makes_scenario(callee) => Some(SCENARIO.to_owned()),
            callee => callee.as_member_expression().and_then(|member| member.static_property_name()).map(str::to_owned),
        };
        // No assertion is written like this, so that it is reported.
        let between = between(call);
        let name = name.map(|name| between.map_or(name.clone(), |between| format!("{between}.{name}")));
        let is_claim = between.is_some() || self.is_on_assert(call);
        let known = call.arguments.iter().take_while(|argument| argument.as_expression().is_some());
        // Assertions of Node.js about promises do not exist, which is reported.
        let takes_promise = name.as_deref().is_some_and(|name| ["rejects", "doesNotReject"].contains(&name));
        if is_claim
            && !takes_promise
            && let Some(reply) = call.arguments.first().and_then(Argument::as_expression)
        {
            self.use_as_result(reply);
        }
        let first = match call.arguments.first().and_then(Argument::as_expression).filter(|_| is_claim) {
            Some(value) if self.is_awaited_reply(value) => First::Reply,
            Some(value) => match value.get_inner_expression().get_identifier_reference() {
                Some(name) => First::Name(name.name.to_string()),
                None => First::Other,
            },
            None => First::Other,
        };
        let is_undefined = |value: &Argument<'_>| value.as_expression().is_some_and(Expression::is_undefined);
        let given = call.arguments.iter().rposition(|value| !is_undefined(value)).map_or(0, |last| last + 1);
        let values = call.arguments.iter().take(given).filter(|_| is_claim);
        self.calls.found.push(CallLocation {
            callee: span(call.callee.span()),
            arguments: known.map(|argument| self.names.argument(argument, 0)).collect(),
            span: span(call.span),
            name,
            is_claim,
            values: values.map(|value| argument(value.as_expression()?)).collect(),
            first,
        });
        walk::walk_call_expression(self, call);
    }

    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        if !TEST_MODULES.contains(&import.source.value.as_str()) {
            self.others.extend(import.specifiers.iter().flatten().map(|specifier| specifier.local().name.as_str()));
            self.calls.has_other_assert |= self.others.contains("assert");
            self.calls.has_other_agent |= self.others.contains("agent");
        }
        walk::walk_import_declaration(self, import);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        if !["then", "catch", "finally"].contains(&member.property.name.as_str()) {
            self.use_as_result(&member.object);
        }
        walk::walk_static_member_expression(self, member);
    }

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        self.bind(&parameter.pattern, parameter.span.start, None);
        walk::walk_formal_parameter(self, parameter);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        let promise = self.promise(&assignment.right);
        match &assignment.left {
            AssignmentTarget::AssignmentTargetIdentifier(name) => {
                self.bindings.push((name.name.as_str(), assignment.span.end, promise));
            }
            AssignmentTarget::ArrayAssignmentTarget(_) | AssignmentTarget::ObjectAssignmentTarget(_) => {
                self.calls.forgotten.extend(promise);
            }
            _ => {}
        }
        walk::walk_assignment_expression(self, assignment);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        let promise = declarator.init.as_ref().and_then(|value| self.promise(value));
        let BindingPattern::BindingIdentifier(name) = &declarator.id else {
            self.calls.forgotten.extend(promise);
            self.bind(&declarator.id, declarator.span.end, None);
            return walk::walk_variable_declarator(self, declarator);
        };
        self.bind(&declarator.id, declarator.span.end, promise);
        if declarator.init.as_ref().is_some_and(|value| self.is_awaited_reply(value)) {
            *self.replies.entry(name.name.as_str()).or_default() += 1;
        }
        self.calls.has_other_assert |= name.name == "assert";
        self.calls.has_other_agent |= name.name == "agent";
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_if_statement(&mut self, statement: &IfStatement<'a>) {
        self.test(&statement.test);
        walk::walk_if_statement(self, statement);
    }

    fn visit_while_statement(&mut self, statement: &WhileStatement<'a>) {
        self.test(&statement.test);
        walk::walk_while_statement(self, statement);
    }

    fn visit_do_while_statement(&mut self, statement: &DoWhileStatement<'a>) {
        self.test(&statement.test);
        walk::walk_do_while_statement(self, statement);
    }

    fn visit_for_statement(&mut self, statement: &ForStatement<'a>) {
        if let Some(test) = &statement.test {
            self.test(test);
        }
        walk::walk_for_statement(self, statement);
    }

    fn visit_conditional_expression(&mut self, expression: &ConditionalExpression<'a>) {
        self.test(&expression.test);
        walk::walk_conditional_expression(self, expression);
    }

    fn visit_unary_expression(&mut self, expression: &UnaryExpression<'a>) {
        if expression.operator == UnaryOperator::LogicalNot {
            self.test(&expression.argument);
        }
        walk::walk_unary_expression(self, expression);
    }

    fn visit_logical_expression(&mut self, expression: &LogicalExpression<'a>) {
        self.test(&expression.left);
        walk::walk_logical_expression(self, expression);
    }

    fn visit_binary_expression(&mut self, expression: &BinaryExpression<'a>) {
        if expression.operator.is_equality() || expression.operator.is_compare() {
            self.test(&expression.left);
            self.test(&expression.right);
        }
        walk::walk_binary_expression(self, expression);
    }
}

/// Returns `true` for `agent` and `agents.NAME`.
fn is_agent(expression: &Expression<'_>) -> bool {
    let expression = expression.get_inner_expression();
    let of_agents = expression.as_member_expression().is_some_and(|member| is_named(member.object(), "agents"));
    of_agents || is_named(expression, "agent")
}

fn is_named(expression: &Expression<'_>, name: &str) -> bool {
    expression.get_identifier_reference().is_some_and(|identifier| identifier.name == name)
}

/// Returns `true` if `callee` is `scenario.skip`, `scenario.only` or `scenario.each(…)`.
fn makes_scenario(callee: &Expression<'_>) -> bool {
    let of_scenario = |callee: &Expression<'_>, names: &[&str]| {
        callee.as_member_expression().is_some_and(|member| {
            let holder = member.object().get_identifier_reference();
            holder.is_some_and(|holder| holder.name == SCENARIO)
                && member.static_property_name().is_some_and(|name| names.contains(&name))
        })
    };
    match callee {
        Expression::CallExpression(call) => of_scenario(call.callee.get_inner_expression(), &["each"]),
        callee => of_scenario(callee, &["skip", "only"]),
    }
}

impl<'a> Search<'a> {
    /// Remembers that the names in `pattern` get a value at `index`.
    fn bind(&mut self, pattern: &BindingPattern<'a>, index: u32, promise: Option<Awaitable>) {
        for name in pattern.get_binding_identifiers() {
            self.bindings.push((name.name.as_str(), index, promise));
        }
    }

    /// Remembers that `expression` is used as the result of a call.
    fn use_as_result(&mut self, expression: &Expression<'a>) {
        match expression.get_inner_expression() {
            Expression::Identifier(name) => self.uses.push((name.name.as_str(), name.span.start)),
            other => self.calls.forgotten.extend(self.promise(other)),
        }
    }

    /// Remembers that `expression` is used as a condition or compared. A variable may be tested to see if it has a
    /// promise at all.
    fn test(&mut self, expression: &Expression<'a>) {
        if let Expression::LogicalExpression(both) = expression.get_inner_expression() {
            self.test(&both.left);
            self.test(&both.right);
        }
        let promise = self.promise(expression);
        self.calls.tested.extend(promise.filter(|promise| !self.calls.tested.contains(promise)));
    }

    /// Finds the calls whose promise is the last value of a variable that is used as their result.
    fn find_forgotten(&mut self) {
        let promised: HashSet<&str> =
            self.bindings.iter().filter(|(_, _, promise)| promise.is_some()).map(|(name, ..)| *name).collect();
        for (name, index) in self.uses.iter().filter(|(name, _)| promised.contains(name)) {
            let before = self.bindings.iter().filter(|(bound, at, _)| bound == name && at <= index);
            if let Some((_, _, Some(promise))) = before.max_by_key(|(_, at, _)| *at)
                && !self.calls.forgotten.contains(promise)
            {
                self.calls.forgotten.push(*promise);
            }
        }
    }
}

impl Search<'_> {
    /// Marks the calls whose first argument is certainly a reply.
    fn find_checked_replies(&mut self) {
        let mut calls = std::mem::take(&mut self.calls.found);
        for call in &mut calls {
            if matches!(&call.first, First::Name(name) if self.is_reply(name)) {
                call.first = First::Reply;
            }
        }
        self.calls.found = calls;
    }

    /// Returns `true` if every value that the name `name` gets in the module is an awaited reply.
    fn is_reply(&self, name: &str) -> bool {
        let times = self.bindings.iter().filter(|(bound, ..)| *bound == name).count();
        self.replies.get(name).is_some_and(|replies| *replies == times)
    }

    /// Returns `true` for `await agent.send(…)`.
    fn is_awaited_reply(&self, expression: &Expression<'_>) -> bool {
        let Expression::AwaitExpression(awaited) = expression.get_inner_expression() else { return false };
        let Expression::CallExpression(call) = awaited.argument.get_inner_expression() else { return false };
        let is_send = |member: &MemberExpression<'_>| {
            member.static_property_name() == Some("send") && is_agent(member.object().get_inner_expression())
        };
        call.callee.get_inner_expression().as_member_expression().is_some_and(is_send)
    }

    /// Returns the call if `expression` is one whose result must be awaited: `agent.send(…)`, `agents.NAME.send(…)`,
    /// `user.converse(agent, …)`, `agent.run(…)`, `agent.files.read(…)` and the like, `assert.contains(…)` and the like.
    fn promise(&self, expression: &Expression<'_>) -> Option<Awaitable> {
        let Expression::CallExpression(call) = expression.get_inner_expression() else { return None };
        let member = call.callee.get_inner_expression().as_member_expression()?;
        let holder = member.object().get_inner_expression();
        let is_files = |holder: &Expression<'_>| {
            let member = holder.as_member_expression();
            member.is_some_and(|member| member.static_property_name() == Some("files") && is_agent(member.object()))
        };
        let is_to_agent = || call.arguments.first().and_then(Argument::as_expression).is_some_and(is_agent);
        let kind = match member.static_property_name()? {
            "send" if is_agent(holder) => AwaitableKind::Reply,
            "converse" if is_to_agent() => AwaitableKind::Reply,
            "run" if is_agent(holder) => AwaitableKind::Result,
            "read" | "list" | "exists" if is_files(holder) => AwaitableKind::Result,
            "all" | "allSettled" | "race" | "any" if is_named(holder, "Promise") => AwaitableKind::Result,
            _ if self.is_on_assert(call) => AwaitableKind::Claim,
            _ => return None,
        };
        Some(Awaitable { span: span(call.span), callee: span(call.callee.span()), kind })
    }

    /// Returns `true` if it is a method call on something named `assert`, or on a property with that name of an object
    /// that is not imported from another module.
    fn is_on_assert(&self, call: &CallExpression<'_>) -> bool {
        let Some(member) = call.callee.get_inner_expression().as_member_expression() else { return false };
        match member.object().get_inner_expression() {
            Expression::Identifier(identifier) => identifier.name == "assert",
            other => other.as_member_expression().is_some_and(|member| {
                let holder = member.object().get_identifier_reference();
                let is_others = holder.is_some_and(|holder| self.others.contains(holder.name.as_str()));
                !is_others && member.static_property_name() == Some("assert")
            }),
        }
    }
}

/// Returns the first member in a call such as `assert.not.contains(…)`, if the second is not one that every function has.
fn between<'c>(call: &'c CallExpression<'_>) -> Option<&'c str> {
    let callee = call.callee.get_inner_expression().as_member_expression()?;
    let holder = callee.object().get_inner_expression().as_member_expression()?;
    let is_assert = is_named(holder.object().get_inner_expression(), "assert");
    let is_own = ["call", "apply", "bind", "toString"].contains(&callee.static_property_name()?);
    holder.static_property_name().filter(|_| is_assert && !is_own)
}

/// Top-level variables of a module.
struct Names<'a> {
    values: HashMap<&'a str, &'a Expression<'a>>,
    /// Number of locations that are left.
    left: Cell<usize>,
}

impl<'a> Names<'a> {
    fn new(program: &'a Program<'a>) -> Self {
        let mut names = HashMap::new();
        let mut add = |declaration: &'a VariableDeclaration<'a>| {
            for declarator in &declaration.declarations {
                if let (BindingPattern::BindingIdentifier(name), Some(value)) = (&declarator.id, &declarator.init) {
                    names.insert(name.name.as_str(), value);
                }
            }
        };
        for statement in &program.body {
            match statement {
                Statement::VariableDeclaration(declaration) => add(declaration),
                Statement::ExportDeclaration(exported) => {
                    if let Declaration::VariableDeclaration(declaration) = &exported.declaration {
                        add(declaration);
                    }
                }
                _ => {}
            }
        }
        Self { values: names, left: Cell::new(PLACES) }
    }

    fn exported(&self, program: &'a Program<'a>, export: &str) -> Option<ValueLocation> {
        program.body.iter().find_map(|statement| match statement {
            Statement::ExportDefaultDeclaration(exported) if export == "default" => Some(match &exported.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(_)
                | ExportDefaultDeclarationKind::ClassDeclaration(_)
                | ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => opaque(&exported.declaration),
                value => value.as_expression().map_or_else(|| opaque(value), |value| self.place(value, HOPS)),
            }),
            Statement::TSExportAssignment(exported) if export == "default" => {
                Some(self.place(&exported.expression, HOPS))
            }
            Statement::ExportDeclaration(exported) => self.named(declared(&exported.declaration, export)?),
            Statement::ExportNamedDeclaration(exported) => {
                let listed = exported.specifiers.iter().find(|specifier| name_of(&specifier.exported) == export)?;
                self.named(name_of(&listed.local))
            }
            Statement::ExpressionStatement(statement) if export == "default" => self.assigned(&statement.expression),
            _ => None,
        })
    }

    /// Returns the location of the value in `module.exports = …`.
    fn assigned(&self, expression: &'a Expression<'a>) -> Option<ValueLocation> {
        let Expression::AssignmentExpression(assignment) = expression else { return None };
        let target = assignment.left.as_member_expression()?;
        let Expression::Identifier(object) = target.object() else { return None };
        let is_exports = object.name == "module" && target.static_property_name() == Some("exports");
        is_exports.then(|| self.place(&assignment.right, HOPS))
    }

    fn named(&self, name: &str) -> Option<ValueLocation> {
        self.values.get(name).map(|value| self.place(value, HOPS))
    }

    fn place(&self, expression: &Expression<'a>, hops: usize) -> ValueLocation {
        let Some(left) = self.left.get().checked_sub(1) else { return opaque(expression) };
        self.left.set(left);
        match expression.get_inner_expression() {
            Expression::ArrayExpression(array) => self.list(array, hops),
            Expression::ObjectExpression(object) => self.map(object, hops),
            Expression::Identifier(name) => match (self.values.get(name.name.as_str()), hops.checked_sub(1)) {
                (Some(value), Some(hops)) => self.place(value, hops),
                _ => opaque(expression),
            },
            Expression::CallExpression(call) => match (&call.callee, &call.arguments[..]) {
                (Expression::Identifier(_), [argument]) => self.argument(argument, hops),
                _ => opaque(expression),
            },
            inner => opaque(inner),
        }
    }

    fn argument(&self, argument: &Argument<'a>, hops: usize) -> ValueLocation {
        match argument.as_expression() {
            Some(value) => self.place(value, hops),
            None => opaque(argument),
        }
    }

    fn list(&self, array: &ArrayExpression<'a>, hops: usize) -> ValueLocation {
        let mut items = Vec::new();
        for element in &array.elements {
            match element {
                ArrayExpressionElement::SpreadElement(spread) => match self.place(&spread.argument, hops).inside {
                    Inside::List(more) => items.extend(more),
                    Inside::Opaque | Inside::Map(_) => break,
                },
                ArrayExpressionElement::Elision(_) => items.push(opaque(element)),
                value => {
                    items.push(value.as_expression().map_or_else(|| opaque(value), |value| self.place(value, hops)));
                }
            }
        }
        ValueLocation { span: span(array.span), inside: Inside::List(items) }
    }

    fn map(&self, object: &ObjectExpression<'a>, hops: usize) -> ValueLocation {
        let mut entries = Vec::new();
        for property in &object.properties {
            match property {
                ObjectPropertyKind::ObjectProperty(property) => {
                    let Some(name) = property.key.static_name() else { continue };
                    let name = Spanned::new(name.into_owned(), span(property.key.span()));
                    entries.push((name, self.place(&property.value, hops)));
                }
                ObjectPropertyKind::SpreadProperty(spread) => {
                    if let Inside::Map(more) = self.place(&spread.argument, hops).inside {
                        entries.extend(more);
                    }
                }
            }
        }
        ValueLocation { span: span(object.span), inside: Inside::Map(entries) }
    }
}

fn opaque(what: &impl GetSpan) -> ValueLocation {
    ValueLocation { span: span(what.span()), inside: Inside::Opaque }
}

fn name_of<'a>(name: &'a ModuleExportName<'a>) -> &'a str {
    match name {
        ModuleExportName::IdentifierName(name) => name.name.as_str(),
        ModuleExportName::IdentifierReference(name) => name.name.as_str(),
        ModuleExportName::StringLiteral(name) => name.value.as_str(),
    }
}

/// Returns the variable that `declaration` declares and exports under `export`.
fn declared<'a>(declaration: &'a Declaration<'a>, export: &str) -> Option<&'a str> {
    let Declaration::VariableDeclaration(declaration) = declaration else { return None };
    declaration.declarations.iter().find_map(|declarator| match &declarator.id {
        BindingPattern::BindingIdentifier(name) if name.name == export => Some(name.name.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
