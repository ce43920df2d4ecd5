//! Arguments that methods of an agent or a persona certainly do not take, and comparisons that have no effect. At run time
//! such an argument would stop the test where it seems to be the agent's fault.

use model::{Diagnostic, Span};
use oxc_ast::ast::{
    Argument, ArrowFunctionBody, ArrowFunctionExpression, CallExpression, Expression, Function, ObjectPropertyKind,
    ReturnStatement, TemplateLiteral,
};
use oxc_ast_visit::Visit;
use oxc_semantic::ScopeFlags;
use oxc_span::GetSpan;

use super::role::{OF_EVERY_OBJECT, RESULT};
use super::{CONVERSE, Finder, Held, Role, UnknownName};
use crate::syntax::span;

/// Example of an assertion that users write themselves.
const CUSTOM: &str = "write `assert.custom(\"NAME\", () => …)`";

impl Finder<'_> {
    /// Reports the first argument of `call` that its method does not take, and `console.assert`.
    pub(super) fn check_given(&mut self, call: &CallExpression<'_>) {
        let written: Option<Vec<&Expression<'_>>> = call.arguments.iter().map(Argument::as_expression).collect();
        let Some(written) = written else { return };
        let given: Vec<&Expression<'_>> = written.into_iter().map(Expression::get_inner_expression).collect();
        let callee = span(call.callee.span());
        let problem = match self.method(call) {
            Some((Held { role: Role::Agent, .. }, "send")) => self.not_sent(&given, callee),
            Some((Held { role: Role::Agent, .. }, "run")) => not_text("`run` takes a command", given.first(), callee)
                .or_else(|| {
                    let options =
                        given.get(1).filter(|options| kind(options).is_some_and(|kind| kind != "an object"))?;
                    let problem = Diagnostic::error("`run` takes its options in an object");
                    Some((span(options.span()), problem.help("write `{ timeout: 5000 }`")))
                }),
            Some((Held { role: Role::Files, .. }, "read")) => not_text("`read` takes a path", given.first(), callee),
            Some((Held { role: Role::Files, .. }, "exists")) => {
                not_text("`exists` takes a path", given.first(), callee)
            }
            Some((Held { role: Role::Persona, .. }, "converse")) => not_conversed(&given, callee),
            Some((Held { role: Role::Persona, .. }, "says")) => self.not_said(&given, callee),
            _ if given.first().is_some_and(|first| self.is_role(first, Role::Reply)) && is_parse(call) => {
                let problem = Diagnostic::error("`JSON.parse` takes a text, not a reply");
                Some((span(given[0].span()), problem.help("the text of a reply is its `.text`")))
            }
            _ if self.is_console_assert(call) => {
                let problem = Diagnostic::warning("`console.assert` only prints, so it cannot fail a trial");
                Some((callee, problem.help(CUSTOM)))
            }
            _ => match self.held(call.callee.get_inner_expression()).map(|held| held.role) {
                Some(Role::Score) => not_scored(&given, callee).or_else(|| {
                    let second = given.get(1).filter(|second| self.is_role(second, Role::Text))?;
                    Some((span(second.span()), Diagnostic::error("a score must be a number, not a text")))
                }),
                Some(Role::MakesPersona) => not_a_persona(&given, callee),
                Some(Role::Secret) => not_secret(&given, callee),
                Some(Role::Sleep) => {
                    let wrong = given.first().and_then(|first| Some((first, kind(first)?)));
                    wrong.filter(|(_, kind)| *kind != "a number").map(|(first, kind)| {
                        let problem = Diagnostic::error(format!("`sleep` takes a number of milliseconds, not {kind}"));
                        (span(first.span()), problem.help("one second is `sleep(1000)`"))
                    })
                }
                Some(Role::Assert) => {
                    let problem = Diagnostic::error("`assert` is not a function");
                    Some((
                        callee,
                        problem.help(format!("{CUSTOM}, or one of its assertions, such as `assert.contains`")),
                    ))
                }
                Some(Role::Agents) => {
                    Some((callee, Diagnostic::error("`agents` is not a function").help("write `agents.NAME`")))
                }
                Some(Role::Agent) => {
                    let problem = Diagnostic::error("an agent is not a function");
                    Some((callee, problem.help("a message is sent with `.send(…)`")))
                }
                Some(Role::Text | Role::Calls | Role::Replies | Role::Usage | Role::Number) => {
                    let problem = Diagnostic::error("this is a value and not a function");
                    Some((callee, problem.help("write it without `()`")))
                }
                _ => self.chained(call).map(|name| {
                    let problem = Diagnostic::error(format!("the result of an assertion has no `{name}`"));
                    let help = "write each assertion in a call of its own, such as `assert.contains(reply, \"text\")`";
                    (callee, problem.help(help))
                }),
            },
        };
        self.found.others.extend(problem.map(|(span, problem)| UnknownName { span, problem, global: None }));
    }

    /// Returns the first name after the assertion in a call like `assert.that(reply).to.be(…)`.
    fn chained<'e>(&self, call: &'e CallExpression<'_>) -> Option<&'e str> {
        let mut callee = call.callee.get_inner_expression();
        while let Expression::StaticMemberExpression(member) = callee {
            let name = member.property.name.as_str();
            callee = member.object.get_inner_expression();
            if callee.is_call_expression() {
                let is_known = OF_EVERY_OBJECT.contains(&name) || RESULT.contains(&name);
                return (!is_known && self.held(callee)?.role == Role::PromisedResult).then_some(name);
            }
        }
        None
    }

    fn is_console_assert(&self, call: &CallExpression<'_>) -> bool {
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else { return false };
        let Expression::Identifier(console) = member.object.get_inner_expression() else { return false };
        console.name == "console" && self.symbol(console).is_none() && member.property.name == "assert"
    }

    /// Returns what is wrong with the arguments of `agent.send`.
    fn not_sent(&self, given: &[&Expression<'_>], callee: Span) -> Option<(Span, Diagnostic)> {
        const TAKES: &str = "`send` takes a text or a message of a persona";
        if let Some(persona) = given.first().filter(|first| self.is_persona(first)) {
            let problem = Diagnostic::error(format!("{TAKES}, not a persona"));
            return Some((span(persona.span()), problem.help("write `persona.says(\"text\")`")));
        }
        let second = given.get(1).filter(|second| matches!(kind(second), Some("a text" | "a number")));
        if let Some(second) = second {
            let problem = Diagnostic::error("`send` sends one message, and has no second text");
            return Some((
                span(second.span()),
                problem.help("send the next message with another `await agent.send(…)`"),
            ));
        }
        // An object may be a message.
        if let Some(Expression::ObjectExpression(object)) = given.first() {
            let may_be_text = |property: &ObjectPropertyKind<'_>| match property {
                ObjectPropertyKind::ObjectProperty(property) => {
                    property.key.static_name().is_none_or(|name| ["text", "message", "content"].contains(&&*name))
                }
                ObjectPropertyKind::SpreadProperty(_) => true,
            };
            let has_text = object.properties.iter().any(may_be_text);
            let problem = Diagnostic::error(format!("{TAKES}, and this object has no `text`"));
            let problem = problem.help("write the text alone, or `persona.says(\"text\")`");
            return (!has_text).then(|| (span(object.span), problem));
        }
        not_text(TAKES, given.first(), callee)
    }

    /// Returns what is wrong with the arguments of `says`.
    fn not_said(&self, given: &[&Expression<'_>], callee: Span) -> Option<(Span, Diagnostic)> {
        const TAKES: &str = "`says` takes a text";
        match given.first().filter(|first| self.is_role(first, Role::Agent)) {
            Some(agent) => {
                let problem = Diagnostic::error(format!("{TAKES}, not an agent"));
                Some((span(agent.span()), problem.help("write `await agent.send(persona.says(\"text\"))`")))
            }
            None => not_text(TAKES, given.first(), callee),
        }
    }

    /// Reports a reply in a template, where it is not its text.
    pub(super) fn check_filled(&mut self, template: &TemplateLiteral<'_>) {
        let replies = template.expressions.iter().filter(|value| self.is_role(value, Role::Reply));
        let replies: Vec<Span> = replies.map(|value| span(value.span())).collect();
        for span in replies {
            let problem = Diagnostic::warning("a reply in a template is `[object Object]`, and not its text");
            self.found.others.push(UnknownName { span, problem: problem.help("write its `.text`"), global: None });
        }
    }

    fn is_persona(&self, value: &Expression<'_>) -> bool {
        self.is_role(value, Role::Persona)
    }

    /// Returns `true` for a value of this role that nothing can replace.
    fn is_role(&self, value: &Expression<'_>, role: Role) -> bool {
        let is_set = |root| self.scoping.get_resolved_references(root).any(|reference| reference.is_write());
        self.held(value).is_some_and(|held| held.role == role && !held.root.is_some_and(is_set))
    }

    /// Reports a comparison that the function of a scenario returns, because it has no effect.
    pub(super) fn check_returned(&mut self, function: &Expression<'_>) {
        let mut returned = Returned(Vec::new());
        match function {
            Expression::ArrowFunctionExpression(function) => match &function.body {
                ArrowFunctionBody::FunctionBody(body) => returned.visit_function_body(body),
                body => {
                    let compared = body.as_expression().filter(|value| compares(value));
                    returned.0.extend(compared.map(|value| span(value.span())));
                }
            },
            Expression::FunctionExpression(function) => {
                function.body.iter().for_each(|body| returned.visit_function_body(body));
            }
            _ => {}
        }
        for span in returned.0 {
            let problem =
                Diagnostic::warning("what a scenario returns has no effect, so this comparison cannot fail it");
            self.found.others.push(UnknownName { span, problem: problem.help(CUSTOM), global: None });
        }
    }
}

/// Places of the comparisons that a function returns, without those of inner functions.
struct Returned(Vec<Span>);

impl<'a> Visit<'a> for Returned {
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        self.0.extend(statement.argument.as_ref().filter(|value| compares(value)).map(|value| span(value.span())));
    }
}

fn compares(value: &Expression<'_>) -> bool {
    match value.get_inner_expression() {
        Expression::BinaryExpression(binary) => binary.operator.is_equality() || binary.operator.is_compare(),
        _ => false,
    }
}

/// Returns `true` for a call of `JSON.parse`.
fn is_parse(call: &CallExpression<'_>) -> bool {
    let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else { return false };
    let holder = member.object.get_inner_expression().get_identifier_reference();
    member.property.name == "parse" && holder.is_some_and(|holder| holder.name == "JSON")
}

/// Returns the kind of a value that the text shows.
fn kind(value: &Expression<'_>) -> Option<&'static str> {
    Some(match value.get_inner_expression() {
        Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => "a text",
        Expression::NumericLiteral(_) => "a number",
        Expression::UnaryExpression(number) if number.operator.is_arithmetic() => "a number",
        Expression::BooleanLiteral(_) => "a boolean",
        Expression::NullLiteral(_) => "null",
        Expression::RegExpLiteral(_) => "a regular expression",
        Expression::ArrayExpression(_) => "a list",
        Expression::ObjectExpression(_) => "an object",
        Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => "a function",
        _ => return None,
    })
}

/// Returns `true` for a whole number of at least 1.
fn is_count(value: &Expression<'_>) -> bool {
    let Expression::NumericLiteral(number) = value.get_inner_expression() else { return false };
    number.value >= 1.0 && number.value.fract() == 0.0
}

/// Returns the problem of an argument that is missing or certainly not a text. `takes` says what the method takes.
fn not_text(takes: &str, given: Option<&&Expression<'_>>, callee: Span) -> Option<(Span, Diagnostic)> {
    let Some(given) = given else { return Some((callee, Diagnostic::error(format!("{takes}, and gets nothing")))) };
    let kind = kind(given).filter(|kind| *kind != "a text")?;
    Some((span(given.span()), Diagnostic::error(format!("{takes}, not {kind}"))))
}

/// Returns what is wrong with the arguments of `score`.
fn not_scored(given: &[&Expression<'_>], callee: Span) -> Option<(Span, Diagnostic)> {
    let wrong = |message: String| Diagnostic::error(message).help("write `score(\"NAME\", NUMBER)`");
    if let Some((first, kind)) =
        given.first().and_then(|first| Some((first, kind(first)?))).filter(|(_, kind)| *kind != "a text")
    {
        return Some((span(first.span()), wrong(format!("the first argument of `score` is its name, not {kind}"))));
    }
    let Some(second) = given.get(1) else {
        return Some((callee, wrong("`score` needs a name and a number".to_owned())));
    };
    let kind = kind(second).filter(|kind| *kind != "a number")?;
    Some((span(second.span()), wrong(format!("a score must be a number, not {kind}"))))
}

/// Returns what is wrong with the argument of `persona`.
fn not_a_persona(given: &[&Expression<'_>], callee: Span) -> Option<(Span, Diagnostic)> {
    let wrong = |message: String| Diagnostic::error(message).help("write `persona({ role: \"…\" })`");
    let needs_role = || wrong("a persona needs a `role`".to_owned());
    let Some(first) = given.first() else { return Some((callee, needs_role())) };
    let Expression::ObjectExpression(object) = first else {
        let kind = kind(first)?;
        return Some((span(first.span()), wrong(format!("a persona must be an object, not {kind}"))));
    };
    let key = |property: &ObjectPropertyKind<'_>| match property {
        ObjectPropertyKind::ObjectProperty(property) => property.key.static_name().map(|name| name == "role"),
        ObjectPropertyKind::SpreadProperty(_) => None,
    };
    let roles: Option<Vec<bool>> = object.properties.iter().map(key).collect();
    (!roles?.contains(&true)).then(|| (span(first.span()), needs_role()))
}

/// Returns what is wrong with the argument of `secret`.
fn not_secret(given: &[&Expression<'_>], callee: Span) -> Option<(Span, Diagnostic)> {
    const TAKES: &str = "`secret` takes a text with at least 8 characters";
    match given.first() {
        Some(Expression::StringLiteral(text)) if text.value.trim().len() < 8 => {
            Some((span(text.span()), Diagnostic::error(format!("{TAKES}, and this one is shorter"))))
        }
        first => not_text(TAKES, first, callee),
    }
}

/// Returns what is wrong with the arguments of `converse`.
fn not_conversed(given: &[&Expression<'_>], callee: Span) -> Option<(Span, Diagnostic)> {
    let wrong = |value: &Expression<'_>, message: &str| {
        let problem = Diagnostic::error(message.to_owned());
        (span(value.span()), problem.help("write `converse(agent, { goal: \"…\" })`"))
    };
    if let Some(first) = given.first().filter(|first| kind(first).is_some()) {
        return Some(wrong(first, "the first argument of `converse` is the agent"));
    }
    let Some(options) = given.get(1) else {
        let problem = Diagnostic::error("`converse` needs the `goal` of the persona");
        return Some((callee, problem.help("write `converse(agent, { goal: \"…\" })`")));
    };
    let Expression::ObjectExpression(object) = options else {
        kind(options)?;
        return Some(wrong(options, "`converse` takes the `goal` of the persona in an object"));
    };
    let mut has_goal = false;
    for property in &object.properties {
        let ObjectPropertyKind::ObjectProperty(property) = property else { return None };
        // A key that is not known is reported as such.
        let name = property.key.static_name().filter(|name| CONVERSE.contains(&&**name))?;
        has_goal |= name == "goal";
        let kind = kind(&property.value).filter(|kind| *kind != "a number" || !is_count(&property.value));
        if let ("maxTurns", Some(kind)) = (&*name, kind) {
            let not = if kind == "a number" { String::new() } else { format!(", not {kind}") };
            let message = format!("`maxTurns` must be a whole number of at least 1{not}");
            return Some((span(property.value.span()), Diagnostic::error(message)));
        }
    }
    (!has_goal).then(|| wrong(options, "`converse` needs the `goal` of the persona"))
}
