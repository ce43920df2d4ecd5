//! Arguments of assertions that these do not take: a reply that is not the first one, and what is not a reply, such as the
//! agent. The assertion would be undecided, or it would take the reply for something else.

use model::{Diagnostic, Span};
use oxc_ast::ast::{
    Argument, ArrowFunctionBody, CallExpression, Expression, FunctionBody, ReturnStatement, ThrowStatement,
};
use oxc_ast_visit::Visit;
use oxc_semantic::Scoping;
use oxc_span::GetSpan;

use super::{Finder, Found, Held, Role, UnknownName};
use crate::syntax::span;

/// The assertion that takes a function, after which it takes a reply.
const CUSTOM: &str = "custom";

/// Assertions whose first argument after the reply is a text or a pattern, and that take no second one.
const OF_TEXT: [&str; 6] = ["contains", "notContains", "matches", "notMatches", "sentiment", "llmJudge"];

/// Methods of a text that return something else than true or false.
const OTHER_THAN_TRUE: [&str; 8] =
    ["match", "matchAll", "search", "indexOf", "trim", "split", "toLowerCase", "toUpperCase"];

/// An argument of an assertion that is something known.
pub(super) struct KnownArgument {
    held: Held,
    /// The object whose method the assertion is.
    holder: Held,
    /// The part of it that the assertion gets, such as `its text`; `None` if it gets all of it.
    part: Option<&'static str>,
    span: Span,
    /// Name of the assertion.
    assertion: String,
    /// Its place among the arguments, from 0.
    index: usize,
    /// True if the first argument is a reply.
    follows_reply: bool,
}

impl Finder<'_> {
    /// Remembers the arguments of `call` that are something known, if it makes an assertion.
    pub(super) fn remember_arguments(&mut self, call: &CallExpression<'_>) {
        let Some(member) = call.callee.get_inner_expression().as_member_expression() else { return };
        let holder = self.held(member.object()).filter(|holder| holder.role == Role::Assert);
        let (Some(holder), Some(assertion)) = (holder, member.static_property_name()) else { return };
        if assertion == CUSTOM {
            return self.check_custom(call);
        }
        let known = || call.arguments.iter().map_while(Argument::as_expression);
        self.remember_part(holder, assertion, &known().collect::<Vec<_>>());
        let known: Vec<(Span, Option<Held>)> = known().map(|value| (span(value.span()), self.held(value))).collect();
        let is_reply = |held: &Option<Held>| held.is_some_and(|held| held.role == Role::Reply);
        let follows_reply = known.first().is_some_and(|(_, first)| is_reply(first));
        let known = known.into_iter().enumerate().filter_map(|(index, (span, held))| {
            let assertion = assertion.to_owned();
            Some(KnownArgument { held: held?, part: None, holder, span, assertion, index, follows_reply })
        });
        self.found.arguments.extend(known);
    }

    /// Reports what `assert.custom` gets instead of a name or a function, and a function that certainly returns
    /// nothing.
    fn check_custom(&mut self, call: &CallExpression<'_>) {
        let given = call.arguments.iter().map_while(Argument::as_expression).map(Expression::get_inner_expression);
        let given: Vec<&Expression<'_>> = given.collect();
        let is_text =
            |value: &&Expression<'_>| value.is_string_literal() || matches!(value, Expression::TemplateLiteral(_));
        // The reply may come first.
        let function = match given.iter().position(is_text) {
            _ if given.first().is_some_and(|first| is_function(first)) => Err(given[0]),
            Some(at @ (0 | 1)) => given.get(at + 1).copied().ok_or(given[at]),
            _ => return,
        };
        let Ok(given) = function.map_err(|only| self.refuse_custom(only, call)) else { return };
        let problem = match given {
            Expression::ArrowFunctionExpression(function) if body(given).is_none() => {
                let value = function.body.as_expression().filter(|value| self.is_never_true(value));
                value.map(|_| never_true())
            }
            function if is_function(function) => body(function).and_then(|body| self.never_holds(body)),
            value if is_no_function(value) => {
                let problem = Diagnostic::error("`assert.custom` takes a function after the name");
                Some(problem.help("write `() => …`"))
            }
            _ => None,
        };
        let span = span(given.span());
        self.found.others.extend(problem.map(|problem| UnknownName { span, problem, global: None }));
    }

    /// Returns `true` if `function` certainly returns nothing.
    pub(super) fn returns_nothing(&self, function: &Expression<'_>) -> bool {
        let mut returns = Returns { finder: self, has_value: false, may_be_true: false };
        body(function).is_some_and(|body| {
            returns.visit_function_body(body);
            !returns.has_value
        })
    }

    /// Returns what is wrong with the function `body` for `assert.custom`, if it certainly never returns `true`.
    fn never_holds(&self, body: &FunctionBody<'_>) -> Option<Diagnostic> {
        let mut returns = Returns { finder: self, has_value: false, may_be_true: false };
        returns.visit_function_body(body);
        match returns {
            Returns { has_value: false, .. } => {
                let problem = Diagnostic::error("this function returns nothing, so `assert.custom` never holds");
                Some(problem.help("return true or false: `() => …`, or `() => { return …; }`"))
            }
            Returns { may_be_true, .. } => (!may_be_true).then(never_true),
        }
    }

    /// Returns `true` if a value is certainly something else than `true`.
    fn is_never_true(&self, value: &Expression<'_>) -> bool {
        match value.get_inner_expression() {
            // `() => false` says that this place must not be reached.
            Expression::BooleanLiteral(_) => false,
            Expression::BinaryExpression(binary) => binary.operator.is_arithmetic(),
            Expression::UnaryExpression(unary) => unary.operator.is_arithmetic() || unary.operator.is_typeof(),
            Expression::AssignmentExpression(assignment) => self.is_never_true(&assignment.right),
            Expression::LogicalExpression(both) => self.is_never_true(&both.left) && self.is_never_true(&both.right),
            Expression::ConditionalExpression(either) => {
                self.is_never_true(&either.consequent) && self.is_never_true(&either.alternate)
            }
            Expression::StaticMemberExpression(member) => {
                let is_method =
                    self.held(&member.object).is_some_and(|held| held.role.has_method(&member.property.name));
                let held = self.held(value).map(|held| held.role);
                is_method
                    || member.property.name == "length"
                    || matches!(held, Some(Role::Text | Role::Number | Role::Calls))
            }
            Expression::AwaitExpression(awaited) => {
                self.awaited(&awaited.argument).is_some_and(|held| held.role != Role::Other)
            }
            Expression::CallExpression(call) => self.method(call).is_some_and(|(held, name)| match held.role {
                Role::Text => OTHER_THAN_TRUE.contains(&name),
                role => role == Role::Assert || role.returned(name).is_some(),
            }),
            value => is_no_function(value),
        }
    }

    /// Reports that `only`, a name or a function, is all that `assert.custom` gets, unless more arguments are spread.
    fn refuse_custom(&mut self, only: &Expression<'_>, call: &CallExpression<'_>) {
        if call.arguments.iter().all(|argument| argument.as_expression().is_some()) {
            let what = if is_function(only) { "a name before the function" } else { "a function after the name" };
            let problem = Diagnostic::error(format!("`assert.custom` takes {what}"));
            let problem = problem.help("write `assert.custom(\"NAME\", () => …)`");
            self.found.others.push(UnknownName { span: span(only.span()), problem, global: None });
        }
    }

    /// Remembers the first of the arguments `given` if it is certainly a part of a reply instead of the reply: its tool
    /// calls, or its text before the text or the pattern that `assertion` looks for.
    fn remember_part(&mut self, holder: Held, assertion: &str, given: &[&Expression<'_>]) {
        let Some(mut first) = given.first().map(|first| first.get_inner_expression()) else { return };
        // A part of the text, or the text in other letters, is not the reply either.
        while let Expression::CallExpression(call) = first
            && let Expression::StaticMemberExpression(method) = call.callee.get_inner_expression()
            && self.held(&method.object).is_none_or(|held| held.role == Role::Text)
        {
            first = method.object.get_inner_expression();
        }
        let Expression::StaticMemberExpression(member) = first else { return };
        let is_literal = |value: &&Expression<'_>| {
            let value = value.get_inner_expression();
            value.is_string_literal() || matches!(value, Expression::RegExpLiteral(_) | Expression::TemplateLiteral(_))
        };
        let part = match member.property.name.as_str() {
            "text" if OF_TEXT.contains(&assertion) && given.get(1).is_some_and(is_literal) => "its text",
            // Other names are those of other libraries.
            "toolCalls" if ["ool", "Called", "Ran"].iter().any(|part| assertion.contains(part)) => "its tool calls",
            _ => return,
        };
        if let Some(held) = self.held(&member.object).filter(|held| held.role == Role::Reply) {
            let span = span(member.object.span());
            let (assertion, follows_reply) = (assertion.to_owned(), false);
            let part = Some(part);
            self.found.arguments.push(KnownArgument { held, part, holder, span, assertion, index: 0, follows_reply });
        }
    }
}

/// Returns what is in the braces of a function.
fn body<'e, 'a>(function: &'e Expression<'a>) -> Option<&'e FunctionBody<'a>> {
    match function {
        Expression::ArrowFunctionExpression(function) => match &function.body {
            ArrowFunctionBody::FunctionBody(body) => Some(&**body),
            _ => None,
        },
        Expression::FunctionExpression(function) => function.body.as_deref(),
        _ => None,
    }
}

fn is_function(value: &Expression<'_>) -> bool {
    matches!(value, Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_))
}

impl Found {
    /// Returns the arguments of assertions that are certainly wrong. `text` is that of the module.
    pub(super) fn wrong_arguments(&self, scoping: &Scoping, text: &str) -> Vec<UnknownName> {
        let is_certain = |held: Held| held.root.is_none_or(|root| self.is_certain(scoping, root));
        let certain = self.arguments.iter().filter(|given| is_certain(given.held) && is_certain(given.holder));
        let wrong = certain.filter_map(|given| {
            let written = text.get(given.span.start()..given.span.end()).filter(|text| !text.contains('\n'));
            Some(UnknownName { span: given.span, problem: given.problem(written.unwrap_or("reply"))?, global: None })
        });
        wrong.collect()
    }
}

impl KnownArgument {
    /// Returns what is wrong with the argument, which is `written`.
    fn problem(&self, written: &str) -> Option<Diagnostic> {
        let Self { assertion, index, follows_reply, .. } = self;
        let other = |what: &str| Diagnostic::error(format!("`assert.{assertion}` does not take {what}"));
        let takes_reply = "write the reply first, as in `const reply = await agent.send(…)`, or leave it out to check \
                           the whole trial";
        if let Some(part) = self.part {
            let problem = Diagnostic::error(format!("`assert.{assertion}` takes the reply, not {part}"));
            return Some(problem.help(format!("write `assert.{assertion}({written}, …)`")));
        }
        let problem = match self.held.role {
            Role::Reply if *index == 0 => return None,
            Role::Reply if *follows_reply => {
                other("a second reply").help(format!("its text is `{}.text`", bracketed(written)))
            }
            Role::Reply => Diagnostic::error(format!("the reply is the first argument of `assert.{assertion}`"))
                .help(format!("write `assert.{assertion}({written}, …)`")),
            Role::Talk => other("a conversation").help(format!("its last reply is `{}.last`", bracketed(written))),
            Role::Agent => other("an agent").help(takes_reply),
            Role::Agents => other("the agents").help(takes_reply),
            Role::Files => other("the files of an agent").help("`agent.files.read` returns the text of one"),
            Role::Persona => other("a persona").help(takes_reply),
            Role::Message => {
                other("a message that is not sent").help(format!("write `await agent.send({})`", bare(written)))
            }
            Role::Context => other("what the scenario receives").help(takes_reply),
            Role::Agentlike
            | Role::TestModule
            | Role::MakesScenario
            | Role::MakesPersona
            | Role::Score
            | Role::Secret
            | Role::Sleep
            | Role::Number
            | Role::Promise
            | Role::PromisedResult
            | Role::Assert
            | Role::Replies
            | Role::Calls
            | Role::Call
            | Role::Usage
            | Role::Output
            | Role::Result
            | Role::Text
            | Role::List
            | Role::Unset
            | Role::Other => return None,
        };
        Some(problem)
    }
}

/// Returns `true` if the value of an expression is certainly something else than a function.
fn is_no_function(value: &Expression<'_>) -> bool {
    value.is_literal()
        || matches!(
            value,
            Expression::BinaryExpression(_)
                | Expression::UnaryExpression(_)
                | Expression::TemplateLiteral(_)
                | Expression::ObjectExpression(_)
                | Expression::ArrayExpression(_)
        )
}

/// The results of a function for `assert.custom`. Those of functions in it count too.
struct Returns<'f, 's> {
    finder: &'f Finder<'s>,
    has_value: bool,
    may_be_true: bool,
}

impl<'a> Visit<'a> for Returns<'_, '_> {
    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        self.has_value |= statement.argument.is_some();
        self.may_be_true |= statement.argument.as_ref().is_some_and(|value| !self.finder.is_never_true(value));
    }

    // A function that throws tells why the assertion does not hold.
    fn visit_throw_statement(&mut self, _: &ThrowStatement<'a>) {
        (self.has_value, self.may_be_true) = (true, true);
    }
}

/// Returns the problem of a function for `assert.custom` whose results are all something else than `true`.
fn never_true() -> Diagnostic {
    let problem = Diagnostic::error("this function never returns `true`, so `assert.custom` never holds");
    problem.help("return a comparison, or write `!!(…)` around a value that only has to be there")
}

/// Returns the expression `written` without `await`.
fn bare(written: &str) -> &str {
    written.strip_prefix("await ").unwrap_or(written)
}

/// Returns the expression `written` so that a member can follow it.
fn bracketed(written: &str) -> String {
    if written.starts_with("await ") { format!("({written})") } else { written.to_owned() }
}
