//! Names in a test module that do not exist: variables that nothing declares, members that an agent or a reply does not
//! have, and what a scenario does not receive; and names that are used as what they are not. Only what the text shows for
//! certain is reported.

mod arguments;
mod callbacks;
mod compared;
mod given;
mod role;
mod rows;

use std::collections::{HashMap, HashSet};

use model::{Diagnostic, Span, nearest};
use oxc_ast::ast::{
    Argument, AssignmentExpression, AssignmentTarget, BindingPattern, CallExpression, Expression, ForOfStatement,
    ForStatementLeft, FormalParameter, FormalParameters, Function, IdentifierReference, ImportDeclaration,
    ImportDeclarationSpecifier, ObjectPropertyKind, Program, StaticMemberExpression, StringLiteral,
    TSGlobalDeclaration, TemplateLiteral, UnaryExpression, UnaryOperator, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{ScopeFlags, Scoping, SemanticBuilder};
use oxc_span::GetSpan;
use oxc_syntax::scope::ScopeId;
use oxc_syntax::symbol::SymbolId;

use self::arguments::KnownArgument;
use self::role::{OF_EVERY_OBJECT, RECEIVED, Role, SYNONYMS};
use crate::absent_names::{absence, is_absent_in_node};
use crate::names::TEST_MODULES;
use crate::syntax::span;

/// Options of `converse`.
const CONVERSE: [&str; 4] = ["goal", "stopWhen", "maxTurns", "model"];

/// Options of `agent.run`.
const RUN: [&str; 1] = ["timeout"];

/// Names of values that the test module exports.
const EXPORTED: [&str; 7] = ["scenario", "persona", "assert", "score", "secret", "sleep", "AgentResponse"];

/// Variables of the language, of which a similar name may be meant.
const GLOBALS: [&str; 18] = [
    "Array",
    "Boolean",
    "Buffer",
    "Date",
    "Error",
    "JSON",
    "Map",
    "Math",
    "Number",
    "Object",
    "Promise",
    "RegExp",
    "Set",
    "String",
    "Symbol",
    "console",
    "process",
    "setTimeout",
];

/// Variables of every module that is not an ECMAScript module, and of every function.
const OF_COMMONJS: [&str; 5] = ["require", "module", "exports", "__dirname", "__filename"];

/// A name that does not exist.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnknownName {
    pub span: Span,
    /// The problem, without its place.
    pub problem: Diagnostic,
    /// The name, if it is that of a global variable, which the runtime may have.
    pub global: Option<String>,
}

/// A function at the top level of a module.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Helper {
    pub span: Span,
    /// Where it is named.
    pub uses: Vec<usize>,
}

/// Returns the names in `program` that do not exist, in the order of the text, and its functions. `text` is its text.
pub(crate) fn unknown_names(program: &Program<'_>, text: &str, is_module: bool) -> (Vec<UnknownName>, Vec<Helper>) {
    let semantic = SemanticBuilder::new().build(program).semantic;
    let mut finder = Finder { found: Found::default(), scoping: semantic.scoping() };
    finder.visit_program(program);
    let compared = compared::problems(program, &finder);
    let Finder { found, scoping } = finder;
    let helpers = found.helpers.iter().map(|(symbol, span)| {
        let uses = found.uses.iter().filter(|(used, _)| used == symbol).map(|(_, at)| *at);
        Helper { span: *span, uses: uses.collect() }
    });
    let helpers = helpers.collect();
    let mut unknown = found.undefined(scoping, text, is_module);
    unknown.extend(found.wrong_members(scoping));
    unknown.extend(found.wrong_arguments(scoping, text));
    unknown.extend(found.others);
    unknown.extend(compared);
    unknown.sort_by_key(|name| name.span.start());
    (unknown, helpers)
}

/// A value of a known kind.
#[derive(Clone, Copy)]
struct Held {
    role: Role,
    /// The variable that holds it or the object to which it belongs.
    root: Option<SymbolId>,
}

/// A member that is read from a value.
struct Member {
    of: Held,
    name: String,
    span: Span,
    /// True if it is also the name of the variable that gets it: `{ usage }`.
    is_shorthand: bool,
}

/// A variable that nothing declares.
struct Undefined {
    name: String,
    span: Span,
    scope: ScopeId,
    is_written: bool,
}

/// First parameter of a scenario's function that is a name.
struct ContextName {
    symbol: SymbolId,
    name: String,
    span: Span,
    /// Names of the parameters that look like what a scenario receives.
    meant: Vec<String>,
    is_of_row: bool,
}

#[derive(Default)]
struct Found {
    /// Variables that hold something known, and how often they get it after their declaration.
    roles: HashMap<SymbolId, (Role, usize)>,
    members: Vec<Member>,
    /// Arguments of assertions that are something known.
    arguments: Vec<KnownArgument>,
    /// Members that the module sets.
    set_members: HashSet<(SymbolId, String)>,
    undefined: Vec<Undefined>,
    /// Names whose existence the module tests.
    tested: HashSet<String>,
    /// Names that the module declares as global variables for the type checker.
    declared: HashSet<String>,
    contexts: Vec<ContextName>,
    /// Parameters, options and uses that are wrong.
    others: Vec<UnknownName>,
    helpers: Vec<(SymbolId, Span)>,
    /// Variables that are named, and where.
    uses: Vec<(SymbolId, usize)>,
    is_in_global: bool,
}

impl Found {
    /// Returns `true` if the variable never holds anything but its role.
    fn is_certain(&self, scoping: &Scoping, symbol: SymbolId) -> bool {
        let writes = scoping.get_resolved_references(symbol).filter(|reference| reference.is_write()).count();
        self.roles.get(&symbol).is_none_or(|(_, assigned)| *assigned == writes)
    }

    /// Returns the variables that nothing declares, without those that the module may define itself.
    fn undefined(&self, scoping: &Scoping, text: &str, is_module: bool) -> Vec<UnknownName> {
        if ["Object.assign(globalThis", "globalThis[", "global["].iter().any(|words| text.contains(words)) {
            return Vec::new();
        }
        let is_defined = |name: &str| {
            let is_assigned = || ["globalThis.", "global."].iter().any(|of| text.contains(&format!("{of}{name}")));
            // What is taken out of the object under another name is one mistake.
            let is_meant = |member: &Member| {
                let is_other = member.of.role == Role::Context && !RECEIVED.contains(&&*member.name);
                is_other && nearest(&member.name, RECEIVED) == Some(name)
            };
            name == "arguments"
                || self.members.iter().any(is_meant)
                || (!is_module && OF_COMMONJS.contains(&name))
                || (!is_module && self.undefined.iter().any(|one| one.is_written && one.name == name))
                || self.tested.contains(name)
                || self.declared.contains(name)
                || is_assigned()
        };
        let unknown = self.undefined.iter().filter(|one| !is_defined(&one.name));
        unknown
            .map(|one| UnknownName { span: one.span, problem: undefined(one, scoping), global: Some(one.name.clone()) })
            .collect()
    }

    /// Returns the members that do not exist, and first parameters that are not what they seem to be.
    fn wrong_members(&self, scoping: &Scoping) -> Vec<UnknownName> {
        let mut unknown = Vec::new();
        let mut mistaken = HashSet::new();
        for context in &self.contexts {
            let of_it = |member: &&Member| member.of.root == Some(context.symbol) && member.of.role == Role::Context;
            let members = || self.members.iter().filter(of_it);
            let is_received = |member: &Member| RECEIVED.contains(&&*member.name);
            let named = scoping.get_resolved_references(context.symbol).count();
            let is_passed_on = named > members().count();
            let is_used_as_other = members().any(|member| !is_received(member)) || is_passed_on;
            let seems_other = RECEIVED.contains(&&*context.name) && !members().any(is_received);
            if seems_other && is_used_as_other && named > 0 {
                mistaken.insert(context.symbol);
                let message = format!("a scenario receives one object, not `{}`", context.name);
                let problem =
                    Diagnostic::error(message).help(format!("write `async ({{ {} }}) => …`", context.meant.join(", ")));
                unknown.push(UnknownName { span: context.span, problem, global: None });
            }
        }
        for Member { of, name, span, is_shorthand } in &self.members {
            let Some((members, what)) = of.role.members() else { continue };
            let is_known = members.contains(&&**name) || OF_EVERY_OBJECT.contains(&&**name);
            let is_doubtful = |root: SymbolId| {
                !self.is_certain(scoping, root)
                    || mistaken.contains(&root)
                    || self.set_members.contains(&(root, name.clone()))
            };
            if is_known || of.root.is_some_and(is_doubtful) {
                continue;
            }
            let near = nearest(name, members.iter().copied());
            let is_meant = |(others, ours): &&(&[&str], &str)| others.contains(&&**name) && members.contains(ours);
            let meant = SYNONYMS.iter().find(is_meant).map(|(_, ours)| *ours);
            // Something else that is called `agent` may have what a synonym names.
            if of.role.is_open() && near.or(meant.filter(|_| of.role != Role::Agentlike)).is_none() {
                continue;
            }
            let near = meant.or(near);
            let message = match of.role {
                Role::Context => format!("a scenario does not receive `{name}`"),
                _ => match what.strip_prefix('`') {
                    Some(_) => format!("{what} has no member `{name}`"),
                    None => format!("{what} has no `{name}`"),
                },
            };
            let problem = Diagnostic::error(message);
            let problem = match near {
                Some(near) if *is_shorthand && of.role != Role::Context => {
                    problem.help(format!("write `{near}: {name}`"))
                }
                near => problem.suggest(near),
            };
            let is_of_row = self.contexts.iter().any(|context| Some(context.symbol) == of.root && context.is_of_row);
            let problem = match near {
                Some(_) => problem,
                None if is_of_row => problem.help(
                    "the values of a row follow what the scenario receives: `async ({ agent, assert }, row) => …`",
                ),
                None if of.role == Role::Context => problem.help(format!("it receives {}", listed(members))),
                None => problem.help(format!("it has {}", listed(members))),
            };
            unknown.push(UnknownName { span: *span, problem, global: None });
        }
        unknown
    }
}

/// Returns `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// Returns the problem of a variable that nothing declares.
fn undefined(one: &Undefined, scoping: &Scoping) -> Diagnostic {
    let name = &*one.name;
    let not_defined = || Diagnostic::error(format!("`{name}` is not defined"));
    if EXPORTED.contains(&name) {
        return not_defined().help(format!("write `import {{ {name} }} from \"trialrun\"` at the top of the file"));
    }
    if RECEIVED.contains(&name) {
        return not_defined().help(format!("a scenario receives it: write `async ({{ {name} }}) => …`"));
    }
    if name == "fetch" {
        return Diagnostic::error("`fetch` is not available: a test has no access to the network")
            .help("`agent.run` runs a command; a `custom` agent has `fetch` for the hosts in its `network`")
            .help("in the configuration, `code: {runtime: node}` runs tests in Node.js, which has `fetch`");
    }
    if let Some(reason) = absence(name) {
        let problem = Diagnostic::error(format!("`{name}` is not available here: {reason}"));
        return match is_absent_in_node(reason) {
            true => problem,
            false => {
                problem.help("in the configuration, `code: {runtime: node}` runs tests in Node.js, which has more")
            }
        };
    }
    let visible: HashSet<&str> = scoping
        .scope_ancestors(one.scope)
        .flat_map(|scope| scoping.get_bindings(scope).keys())
        .map(|name| name.as_str())
        .collect();
    if let Some(near) = nearest(name, visible.iter().copied().chain(GLOBALS)) {
        return not_defined().suggest(Some(near));
    }
    if scoping.symbol_names().any(|declared| declared == name) {
        return not_defined()
            .help(format!("`{name}` is declared in another block or function; declare it in one that contains both"));
    }
    match nearest(name, EXPORTED) {
        Some(near) => not_defined().help(format!("write `{near}`, and `import {{ {near} }} from \"trialrun\"`")),
        None => not_defined().help(format!("define `{name}`, or import it from the module that exports it")),
    }
}

/// Returns `true` for `require("trialrun")`.
fn requires_test_module(call: &CallExpression<'_>) -> bool {
    let is_require = call.callee.get_identifier_reference().is_some_and(|name| name.name == "require");
    let named = call.arguments.first().and_then(Argument::as_expression);
    is_require && matches!(named, Some(Expression::StringLiteral(name)) if TEST_MODULES.contains(&name.value.as_str()))
}

struct Finder<'s> {
    found: Found,
    scoping: &'s Scoping,
}

impl Finder<'_> {
    fn symbol(&self, name: &IdentifierReference<'_>) -> Option<SymbolId> {
        self.scoping.get_reference(name.reference_id.get()?).symbol_id()
    }

    /// Returns what `expression` holds.
    fn held(&self, expression: &Expression<'_>) -> Option<Held> {
        match expression.get_inner_expression() {
            Expression::Identifier(name) => {
                let symbol = self.symbol(name)?;
                let (role, _) = self.found.roles.get(&symbol)?;
                Some(Held { role: *role, root: Some(symbol) })
            }
            Expression::AwaitExpression(awaited) => {
                let is_message = |held: &Held| held.role == Role::Message;
                self.awaited(&awaited.argument).or_else(|| self.held(&awaited.argument).filter(is_message))
            }
            Expression::CallExpression(call) if requires_test_module(call) => {
                Some(Held { role: Role::TestModule, root: None })
            }
            Expression::CallExpression(call) => {
                let callee = call.callee.get_inner_expression();
                if callee.is_member_expression() {
                    let (Held { role, root }, method) = self.method(call)?;
                    return Some(Held { role: role.returned(method).or_else(|| role.promised(method))?, root });
                }
                let Held { role, root } = self.held(callee)?;
                (role == Role::MakesPersona).then_some(Held { role: Role::Persona, root })
            }
            Expression::ComputedMemberExpression(member) => {
                let Held { role, root } = self.held(&member.object)?;
                let is_item = role == Role::Agents || !member.expression.is_string_literal();
                Some(Held { role: role.item().filter(|_| is_item)?, root })
            }
            Expression::StaticMemberExpression(member) => {
                let Held { role, root } = self.held(&member.object)?;
                Some(Held { role: role.member(member.property.name.as_str()), root })
            }
            _ => None,
        }
    }

    /// Returns `true` if `callee` is `scenario`, `scenario.skip`, `scenario.only` or `scenario.each(…)`.
    fn makes_scenario(&self, callee: &Expression<'_>) -> bool {
        let is_it = |value: &Expression<'_>| self.held(value).is_some_and(|held| held.role == Role::MakesScenario);
        let of_it = |callee: &Expression<'_>, names: &[&str]| {
            callee.as_member_expression().is_some_and(|member| {
                is_it(member.object()) && member.static_property_name().is_some_and(|name| names.contains(&name))
            })
        };
        match callee {
            Expression::CallExpression(call) => of_it(call.callee.get_inner_expression(), &["each"]),
            callee => is_it(callee) || of_it(callee, &["skip", "only"]),
        }
    }

    /// Returns what the promise of the call `expression` is fulfilled with.
    fn awaited(&self, expression: &Expression<'_>) -> Option<Held> {
        let Expression::CallExpression(call) = expression.get_inner_expression() else { return None };
        let (Held { role, root }, method) = self.method(call)?;
        Some(Held { role: role.awaited(method)?, root })
    }

    /// Returns the object whose method is called, and the name of the method.
    fn method<'e>(&self, call: &'e CallExpression<'_>) -> Option<(Held, &'e str)> {
        let member = call.callee.get_inner_expression().as_member_expression()?;
        Some((self.held(member.object())?, member.static_property_name()?))
    }

    /// Binds the parameter of the function that a list calls with each item, or `assert.custom` with a reply.
    fn bind_item(&mut self, call: &CallExpression<'_>) {
        let Some((Held { role, root }, method)) = self.method(call) else { return };
        let Some(role) = role.passed(method) else { return };
        let mut given = call.arguments.iter().filter_map(Argument::as_expression);
        let parameters = given.find_map(|value| match value.get_inner_expression() {
            Expression::ArrowFunctionExpression(function) => Some(&function.params),
            Expression::FunctionExpression(function) => Some(&function.params),
            _ => None,
        });
        if let Some(item) = parameters.and_then(|parameters| parameters.items.first()) {
            self.bind(&item.pattern, Some(Held { role, root }));
        }
    }

    /// Remembers what the names in `pattern` get, the value `held`.
    fn bind(&mut self, pattern: &BindingPattern<'_>, held: Option<Held>) {
        match pattern {
            BindingPattern::BindingIdentifier(name) => {
                let role = held.map_or(Role::Other, |held| held.role);
                if let Some(symbol) = name.symbol_id.get() {
                    self.found.roles.insert(symbol, (role, 0));
                }
            }
            BindingPattern::ObjectPattern(object) => {
                let Some(held) = held else { return };
                for property in &object.properties {
                    let Some(key) = property.key.static_name().filter(|_| !property.computed) else { continue };
                    // A default value shows that it may be missing.
                    let is_optional = matches!(property.value, BindingPattern::AssignmentPattern(_));
                    let is_used = || {
                        let names = property.value.get_binding_identifiers();
                        names
                            .iter()
                            .filter_map(|name| name.symbol_id.get())
                            .any(|symbol| self.scoping.get_resolved_references(symbol).next().is_some())
                    };
                    let is_near = || {
                        let members = held.role.members();
                        members.is_some_and(|(members, _)| nearest(&key, members.iter().copied()).is_some())
                    };
                    if !is_optional && (is_near() || is_used()) {
                        let span = span(property.key.span());
                        let (name, is_shorthand) = (key.to_string(), property.shorthand);
                        self.found.members.push(Member { of: held, name, span, is_shorthand });
                    }
                    let role = held.role.member(&key);
                    self.bind(&property.value, Some(Held { role, root: held.root }).filter(|_| !is_optional));
                }
            }
            BindingPattern::ArrayPattern(list) => {
                let Some(Held { role, root }) = held else { return };
                let Some(role) = role.item() else { return };
                list.elements.iter().flatten().for_each(|item| self.bind(item, Some(Held { role, root })));
            }
            BindingPattern::AssignmentPattern(_) => {}
        }
    }

    /// Remembers what the function of a scenario receives.
    fn receive(&mut self, parameters: &FormalParameters<'_>, is_of_row: bool) {
        let Some(first) = parameters.items.first() else { return };
        let held = Held { role: Role::Context, root: None };
        self.bind(&first.pattern, Some(held));
        let name_of = |parameter: &FormalParameter<'_>| match &parameter.pattern {
            BindingPattern::BindingIdentifier(name) => Some((name.name.to_string(), name.symbol_id.get())),
            _ => None,
        };
        let names = || parameters.items.iter().filter_map(name_of);
        if let Some((name, Some(symbol))) = name_of(first) {
            let meant = names().map(|(name, _)| name).filter(|name| RECEIVED.contains(&&**name)).collect();
            let span = span(first.pattern.span());
            self.found.contexts.push(ContextName { symbol, name, span, meant, is_of_row });
        } else if !is_of_row
            && let Some(second) = parameters.items.get(1)
            && let Some((name, Some(symbol))) = name_of(second)
            && RECEIVED.contains(&&*name)
            && self.scoping.get_resolved_references(symbol).next().is_some()
        {
            let message = format!("a scenario receives one object, and `{name}` is in it");
            let problem = Diagnostic::error(message).help(format!("write `async ({{ agent, {name} }}) => …`"));
            let span = span(second.pattern.span());
            self.found.others.push(UnknownName { span, problem, global: None });
        }
    }

    /// Reports options and arguments that the method that is called does not have.
    fn check_options(&mut self, call: &CallExpression<'_>) {
        let Some((Held { role, .. }, method)) = self.method(call) else { return };
        if (role, method) == (Role::Reply, "mentions") {
            let given = call.arguments.first().map(|given| given.as_expression().map(Expression::get_inner_expression));
            let problem = match given {
                None => Diagnostic::error("`mentions` needs a text").help("write `reply.mentions(\"text\")`"),
                Some(Some(Expression::RegExpLiteral(_))) => {
                    let problem = Diagnostic::error("`mentions` takes a text, not a regular expression");
                    problem.help("write `/pattern/.test(reply.text)`")
                }
                Some(_) => return,
            };
            self.found.others.push(UnknownName { span: span(call.span), problem, global: None });
        }
        let given = call.arguments.first().and_then(Argument::as_expression);
        if (role, method) == (Role::Calls, "includes") && given.is_some_and(Expression::is_string_literal) {
            let problem = Diagnostic::error("an item of `toolCalls` is a call and never a text");
            let problem = problem.help("write `reply.toolCalls.some((call) => call.name === \"TOOL\")`");
            self.found.others.push(UnknownName { span: span(call.span), problem, global: None });
        }
        let known: &[&str] = match (role, method) {
            (Role::Persona, "converse") => &CONVERSE,
            (Role::Agent, "run") => &RUN,
            _ => return,
        };
        let options = call.arguments.get(1).and_then(Argument::as_expression).map(Expression::get_inner_expression);
        let Some(Expression::ObjectExpression(options)) = options else { return };
        for property in &options.properties {
            let ObjectPropertyKind::ObjectProperty(property) = property else { continue };
            let Some(name) = property.key.static_name().filter(|name| !known.contains(&&**name)) else { continue };
            let problem = Diagnostic::error(format!("`{method}` has no option `{name}`"));
            let problem = match nearest(&name, known.iter().copied()) {
                Some(near) => problem.suggest(Some(near)),
                None => problem.help(format!("its options: {}", known.join(", "))),
            };
            let span = span(property.key.span());
            self.found.others.push(UnknownName { span, problem, global: None });
        }
    }

    /// Remembers a function at the top level of the module.
    fn help(&mut self, symbol: Option<SymbolId>, span: Span) {
        let is_top = |symbol: &SymbolId| self.scoping.symbol_scope_id(*symbol) == self.scoping.root_scope_id();
        if let Some(symbol) = symbol.filter(is_top) {
            self.found.helpers.push((symbol, span));
        }
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        if !TEST_MODULES.contains(&import.source.value.as_str()) {
            return;
        }
        for specifier in import.specifiers.iter().flatten() {
            let role = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    Role::TestModule.member(named.imported.name().as_str())
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => Role::TestModule,
                ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => Role::Other,
            };
            if let Some(symbol) = specifier.local().symbol_id.get() {
                self.found.roles.insert(symbol, (role, 0));
            }
        }
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        let callee = call.callee.get_inner_expression();
        if self.makes_scenario(callee) {
            let is_of_row = matches!(callee, Expression::CallExpression(_));
            self.check_rows(call);
            let function =
                call.arguments.last().and_then(Argument::as_expression).map(Expression::get_inner_expression);
            match function {
                Some(Expression::ArrowFunctionExpression(function)) => self.receive(&function.params, is_of_row),
                Some(Expression::FunctionExpression(function)) => self.receive(&function.params, is_of_row),
                _ => {}
            }
            function.into_iter().for_each(|function| self.check_returned(function));
        }
        self.bind_item(call);
        self.check_options(call);
        self.check_given(call);
        self.remember_arguments(call);
        walk::walk_call_expression(self, call);
    }

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        if let BindingPattern::BindingIdentifier(name) = &parameter.pattern
            && let Some(symbol) = name.symbol_id.get()
        {
            let role = if name.name == "agent" { Role::Agentlike } else { Role::Other };
            self.found.roles.entry(symbol).or_insert((role, 0));
        }
        walk::walk_formal_parameter(self, parameter);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let Some(value) = &declarator.init {
            let held = self.held(value);
            self.bind(&declarator.id, held);
            if let BindingPattern::BindingIdentifier(name) = &declarator.id
                && matches!(
                    value.get_inner_expression(),
                    Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_)
                )
            {
                self.help(name.symbol_id.get(), span(declarator.span));
            }
        } else {
            self.bind(&declarator.id, Some(Held { role: Role::Unset, root: None }));
        }
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.visit_for_statement_left(&statement.left);
        if let ForStatementLeft::VariableDeclaration(declaration) = &statement.left
            && let Some(declarator) = declaration.declarations.first()
            && let Some(Held { role, root }) = self.held(&statement.right)
        {
            self.bind(&declarator.id, role.item().map(|role| Held { role, root }));
        }
        self.visit_expression(&statement.right);
        self.visit_statement(&statement.body);
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        if let Some(name) = function.id.as_ref().filter(|_| function.is_declaration()) {
            self.help(name.symbol_id.get(), span(function.span));
        }
        walk::walk_function(self, function, flags);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        match &assignment.left {
            AssignmentTarget::AssignmentTargetIdentifier(name) => {
                let role = self.held(&assignment.right).map_or(Role::Other, |held| held.role);
                if let Some(known) = self.symbol(name).and_then(|symbol| self.found.roles.get_mut(&symbol)) {
                    if known.0 == Role::Unset {
                        known.0 = role;
                    }
                    known.1 += usize::from(known.0 == role);
                }
            }
            AssignmentTarget::StaticMemberExpression(member) => {
                let holder = member.object.get_inner_expression().get_identifier_reference();
                if let Some(symbol) = holder.and_then(|holder| self.symbol(holder)) {
                    self.found.set_members.insert((symbol, member.property.name.to_string()));
                }
            }
            _ => {}
        }
        walk::walk_assignment_expression(self, assignment);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        if let Some(of) = self.held(&member.object) {
            let name = member.property.name.to_string();
            self.found.members.push(Member { of, name, span: span(member.property.span), is_shorthand: false });
        }
        walk::walk_static_member_expression(self, member);
    }

    fn visit_unary_expression(&mut self, expression: &UnaryExpression<'a>) {
        if expression.operator == UnaryOperator::Typeof
            && let Some(name) = expression.argument.get_inner_expression().get_identifier_reference()
        {
            self.found.tested.insert(name.name.to_string());
        }
        walk::walk_unary_expression(self, expression);
    }

    fn visit_template_literal(&mut self, template: &TemplateLiteral<'a>) {
        self.check_filled(template);
        walk::walk_template_literal(self, template);
    }

    fn visit_string_literal(&mut self, text: &StringLiteral<'a>) {
        let names = text.value.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0.trim()));
        let is_variable = |name: &&str| {
            let first = name.split(['.', '[', '(']).next().unwrap_or(name);
            self.scoping.symbol_names().any(|declared| declared == first)
        };
        if let Some(name) = names.into_iter().find(is_variable) {
            let problem =
                Diagnostic::warning(format!("in quotes, `${{{name}}}` is text and not the value of `{name}`"));
            let problem = problem.help("write the text in backticks");
            self.found.others.push(UnknownName { span: span(text.span), problem, global: None });
        }
    }

    fn visit_ts_global_declaration(&mut self, declaration: &TSGlobalDeclaration<'a>) {
        self.found.is_in_global = true;
        walk::walk_ts_global_declaration(self, declaration);
        self.found.is_in_global = false;
    }

    fn visit_binding_identifier(&mut self, name: &oxc_ast::ast::BindingIdentifier<'a>) {
        if self.found.is_in_global {
            self.found.declared.insert(name.name.to_string());
        }
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        let Some(reference) = name.reference_id.get().map(|id| self.scoping.get_reference(id)) else { return };
        match reference.symbol_id() {
            Some(symbol) => {
                self.found.uses.push((symbol, name.span.start as usize));
                if reference.is_write() && self.scoping.symbol_flags(symbol).is_const_variable() {
                    let problem = Diagnostic::error(format!("`{}` is a constant, so it cannot be set", name.name));
                    let problem = problem.help("declare it with `let`");
                    self.found.others.push(UnknownName { span: span(name.span), problem, global: None });
                }
            }
            None if reference.is_read() || reference.is_write() => self.found.undefined.push(Undefined {
                name: name.name.to_string(),
                span: span(name.span),
                scope: reference.scope_id(),
                is_written: reference.is_write(),
            }),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
