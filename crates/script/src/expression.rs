//! Expressions: short JavaScript texts in documents.

pub(crate) mod cache;

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentOperator, AwaitExpression, Expression as Tree, ForOfStatement,
    Function as FunctionTree, Program, ReturnStatement, Statement, UnaryOperator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::{ScopeFlags, SemanticBuilder};
use oxc_span::{GetSpan, SourceType};

use crate::syntax::{Mistake, span, with_stack};
use crate::typescript::first_error;

/// Syntax error of an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// Description of the error.
    pub message: String,
    /// Byte range in the text.
    pub range: Range<usize>,
    /// Suggestion, if there is one.
    pub help: Option<String>,
}

/// Valid JavaScript text that has a value: plain data, cheap to clone, usable from any thread.
///
/// It is an expression, the body of a function if it has a top-level `return`, or a function that is called without
/// arguments. It may use `await`. It is always strict, so that it cannot create global variables by mistake.
#[derive(Clone)]
pub struct Expression(pub(crate) Arc<Prepared>);

pub(crate) struct Prepared {
    pub(crate) text: Arc<str>,
    /// Body of the generated function, without its braces. The user's text begins on the second line.
    body: String,
    is_async: bool,
    /// Byte range of the `=`-assignment that the whole text is.
    assignment: Option<Range<usize>>,
    pub(crate) names: Vec<FreeName>,
}

/// A name to which an expression refers without declaring it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeName {
    /// The name.
    pub name: String,
    /// Byte range of its first use in the text.
    pub range: Range<usize>,
    /// False if it is only used with `typeof`, which accepts undeclared names.
    pub must_exist: bool,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Expression").field(&self.0.text).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Expression {}

/// Form of the text.
enum Form {
    /// These bytes are an expression.
    Value(Range<usize>),
    /// These bytes are a function.
    Function(Range<usize>),
    /// The whole text is a function body.
    Body,
}

struct Reading {
    form: Form,
    is_async: bool,
    assignment: Option<Range<usize>>,
    names: Vec<FreeName>,
}

impl Expression {
    /// Parses a string.
    ///
    /// # Errors
    /// Returns an error if the text is not valid or has no value.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let wrong = |Mistake { message, span, help }| {
            let end = span.end().min(text.len());
            SyntaxError { message, range: span.start().min(end)..end, help }
        };
        let Reading { form, is_async, assignment, names } = with_stack(text, || read(text)).map_err(wrong)?;
        let body = match form {
            Form::Value(range) => format!("return (\n{}\n)", alone(text, &range)),
            Form::Function(range) => format!("return (\n{}\n)()", alone(text, &range)),
            Form::Body => format!("\n{text}\n"),
        };
        Ok(Self(Arc::new(Prepared { text: text.into(), body, is_async, assignment, names })))
    }

    /// Returns the text as written.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the names that are neither declared in the text nor built in, without duplicates, in the order of their
    /// first use.
    pub fn free_names(&self) -> Vec<&FreeName> {
        self.0.names.iter().filter(|free| free.must_exist && !is_global(&free.name)).collect()
    }

    /// Returns the byte range of the assignment if the whole text is one, such as `actual = 1`.
    pub fn assignment(&self) -> Option<Range<usize>> {
        self.0.assignment.clone()
    }

    /// Returns `true` if it refers to `name` without declaring it.
    pub fn uses(&self, name: &str) -> bool {
        self.0.names.iter().any(|free| free.name == name)
    }

    /// Returns the source of a function whose parameters are the free names in `given`.
    pub(crate) fn code(&self, given: &[&str]) -> String {
        let Prepared { body, is_async, .. } = &*self.0;
        let mut code = String::with_capacity(body.len() + 64);
        let prefix = if *is_async { "async " } else { "" };
        let _ = write!(code, "({prefix}function ({}) {{'use strict';{body}}})", given.join(", "));
        code
    }
}

/// Returns the text in `range` at its position, with blanks in place of the text before it.
fn alone(text: &str, range: &Range<usize>) -> String {
    let before = text[..range.start].chars().map(|c| if c == '\n' { '\n' } else { ' ' });
    before.chain(text[range.clone()].chars()).collect()
}

fn read(text: &str) -> Result<Reading, Mistake> {
    let as_value = match read_value(text) {
        Ok(reading) => return Ok(reading),
        Err(mistake) => mistake,
    };
    match read_body(text) {
        Ok(reading) => Ok(reading),
        // The apparent intention of the text determines which of the two errors is reported.
        Err(as_body) if looks_like_body(text) => Err(as_body),
        Err(_) => Err(as_value),
    }
}

fn looks_like_body(text: &str) -> bool {
    text.contains("return") || text.contains(';') || text.trim_start().starts_with(['{', '}'])
}

/// Parses the text in parentheses, so that `{` begins an object rather than a block, and a comment at the end is
/// allowed.
fn read_value(text: &str) -> Result<Reading, Mistake> {
    let wrapped = format!("({text}\n)");
    let inside = |mistake: Mistake| Mistake {
        span: model::Span::new(
            mistake.span.start().saturating_sub(1).min(text.len()),
            mistake.span.end().saturating_sub(1).min(text.len()),
        ),
        ..mistake
    };
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &wrapped, SourceType::mjs()).parse();
    first_error(&parsed).map_err(|mistake| inside(end_of_text(text, mistake)))?;
    imports_nothing(&parsed).map_err(inside)?;
    let [Statement::ExpressionStatement(statement)] = &parsed.program.body[..] else {
        return Err(no_value(text));
    };
    let Tree::ParenthesizedExpression(parentheses) = &statement.expression else { return Err(no_value(text)) };
    if parentheses.span.end as usize != wrapped.len() {
        return Err(no_value(text));
    }
    let mut reading = survey(&parsed.program).map_err(inside)?;
    for free in &mut reading.names {
        free.range = free.range.start - 1..free.range.end - 1;
    }
    if let Tree::AssignmentExpression(set) = parentheses.expression.without_parentheses()
        && set.operator == AssignmentOperator::Assign
    {
        let (left, right) = (span(set.left.span()), span(set.right.span()));
        reading.assignment = Some(left.start() - 1..right.end() - 1);
    }
    let whole = 0..text.len();
    reading.form = if is_function(&parentheses.expression) { Form::Function(whole) } else { Form::Value(whole) };
    Ok(reading)
}

/// Reports imports before the expression runs, because an expression must not use them.
fn imports_nothing(parsed: &ParserReturn<'_>) -> Result<(), Mistake> {
    match parsed.module_record.dynamic_imports.first() {
        None => Ok(()),
        Some(import) => Err(Mistake {
            message: "an expression has no access to modules".into(),
            span: span(import.span),
            help: Some("put the code into a custom operator, which is a module".into()),
        }),
    }
}

/// Adjusts an error about the added parenthesis.
fn end_of_text(text: &str, mistake: Mistake) -> Mistake {
    if mistake.span.start() > text.len() {
        return Mistake { message: "the expression is not complete".into(), help: None, ..mistake };
    }
    mistake
}

fn no_value(text: &str) -> Mistake {
    Mistake { message: "this is not an expression".into(), span: model::Span::new(0, text.len()), help: None }
}

fn read_body(text: &str) -> Result<Reading, Mistake> {
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, text, SourceType::mjs()).with_options(options).parse();
    first_error(&parsed)?;
    if parsed.module_record.has_module_syntax {
        return Err(no_value(text));
    }
    imports_nothing(&parsed)?;
    let mut levels = Level::default();
    levels.visit_program(&parsed.program);
    let mut reading = survey(&parsed.program)?;
    if levels.returns {
        return Ok(reading);
    }
    let mut statements =
        parsed.program.body.iter().filter(|statement| !matches!(statement, Statement::EmptyStatement(_)));
    let (first, more) = (statements.next(), statements.next());
    match (first, more) {
        (Some(Statement::ExpressionStatement(statement)), None) => {
            let range = span(statement.expression.span());
            let range = range.start()..range.end();
            let function = is_function(&statement.expression);
            reading.form = if function { Form::Function(range) } else { Form::Value(range) };
            Ok(reading)
        }
        (Some(Statement::FunctionDeclaration(function)), None) => {
            let range = span(function.span);
            reading.form = Form::Function(range.start()..range.end());
            Ok(reading)
        }
        (None, _) => Err(Mistake { message: "the expression is empty".into(), ..no_value(text) }),
        (Some(_), _) => Err(Mistake {
            message: "several statements do not have a value".into(),
            help: Some("`return` the value".into()),
            span: last_span(&parsed.program),
        }),
    }
}

fn last_span(program: &Program<'_>) -> model::Span {
    program.body.last().map_or_else(Default::default, |statement| span(statement.span()))
}

fn is_function(tree: &Tree<'_>) -> bool {
    matches!(tree.without_parentheses(), Tree::ArrowFunctionExpression(_) | Tree::FunctionExpression(_))
}

/// Collects the names to which a program refers, and whether it uses `await`. The caller sets the form.
fn survey(program: &Program<'_>) -> Result<Reading, Mistake> {
    let mut levels = Level::default();
    levels.visit_program(program);
    let built = SemanticBuilder::new().with_build_nodes(true).with_check_syntax_error(true).build(program);
    let harmless = |message: &str| message.contains("return") || message.contains("Return");
    if let Some(error) = built.diagnostics.errors().find(|error| !harmless(&error.message)) {
        return Err(crate::typescript::mistake(error));
    }
    let scoping = built.semantic.scoping();
    let mut names: Vec<FreeName> = scoping
        .root_unresolved_references()
        .iter()
        .filter_map(|(name, references)| {
            let places = references.iter().map(|id| built.semantic.reference_span(scoping.get_reference(*id)));
            let first = span(places.min_by_key(|place| place.start)?);
            let must_exist = references.iter().any(|id| {
                let parent = built.semantic.nodes().parent_kind(scoping.get_reference(*id).node_id());
                !matches!(parent, AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof)
            });
            Some(FreeName { name: name.to_string(), range: first.start()..first.end(), must_exist })
        })
        .collect();
    names.sort_by_key(|free| free.range.start);
    Ok(Reading { form: Form::Body, is_async: levels.awaits, assignment: None, names })
}

/// Properties of the outermost function, without those of inner functions.
#[derive(Default)]
struct Level {
    returns: bool,
    awaits: bool,
}

impl<'a> Visit<'a> for Level {
    fn visit_function(&mut self, _: &FunctionTree<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        self.returns = true;
        walk::walk_return_statement(self, statement);
    }

    fn visit_await_expression(&mut self, expression: &AwaitExpression<'a>) {
        self.awaits = true;
        walk::walk_await_expression(self, expression);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.awaits |= statement.r#await;
        walk::walk_for_of_statement(self, statement);
    }
}

/// Names of the built-in globals.
const GLOBALS: &str = "AbortController AbortSignal AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt \
    BigInt64Array BigUint64Array Boolean Buffer CustomEvent DOMException DataView Date DisposableStack Error \
    EvalError Event EventTarget FinalizationRegistry Float16Array Float32Array Float64Array Function \
    Infinity Int16Array Int32Array Int8Array InternalError Iterator JSON Map Math NaN Number Object Promise \
    Proxy RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String SuppressedError Symbol \
    SyntaxError TextDecoder TextEncoder TypeError URIError URL URLSearchParams Uint16Array Uint32Array \
    Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet arguments atob btoa clearInterval clearTimeout \
    console crypto decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval globalThis isFinite \
    isNaN parseFloat parseInt performance process queueMicrotask setInterval setTimeout structuredClone \
    undefined unescape";

/// Returns `true` if `name` is built in.
fn is_global(name: &str) -> bool {
    GLOBALS.split(' ').any(|global| global == name)
}

#[cfg(test)]
mod tests;
