//! Source positions of the parts of an exported value.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use model::{Span, Spanned};
use oxc_ast::ast::{
    Argument, ArrayExpression, ArrayExpressionElement, BindingPattern, CallExpression, Declaration,
    ExportDefaultDeclarationKind, Expression, ImportDeclaration, ModuleExportName, ObjectExpression,
    ObjectPropertyKind, Program, Statement, VariableDeclaration, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan;

use crate::expression::SyntaxError;
use crate::syntax::{Mistake, span};
use crate::typescript::{Language, first_error, with_parsed};
use crate::value::Key;

/// Names of the module that tests import.
pub(crate) const TEST_MODULES: &[&str] = &["trialrun", "@fabrik/core", "@fabriklabs/core"];

/// Function that creates a scenario. Its properties, such as `skip`, also create one.
pub(crate) const SCENARIO: &str = "scenario";

/// Maximum number of places. It stops names that refer to themselves in cycles or many times over.
const PLACES: usize = 200_000;

/// Maximum depth of names that refer to names.
const HOPS: usize = 64;

/// Place of a value, and of its parts as far as the text shows them.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Byte range in the text.
    pub span: Span,
    /// Places of its parts.
    pub inside: Inside,
}

/// Parts of a [`Place`].
#[derive(Debug, Clone, PartialEq)]
pub enum Inside {
    /// It has no parts, or they are only known at run time.
    Opaque,
    /// Items of an array. Only the first ones if the array contains a spread of an unknown value.
    List(Vec<Place>),
    /// Properties of an object literal, with the positions of their names.
    Map(Vec<(Spanned<String>, Place)>),
}

impl Place {
    /// Returns the place at `path`, or the last known place on the path, with the number of steps to it.
    pub fn find(&self, path: &[Key]) -> (&Place, usize) {
        let mut place = self;
        for (taken, key) in path.iter().enumerate() {
            match place.step(key) {
                Some(inside) => place = inside,
                None => return (place, taken),
            }
        }
        (place, path.len())
    }

    fn step(&self, key: &Key) -> Option<&Place> {
        match (&self.inside, key) {
            (Inside::List(items), Key::Index(index)) => items.get(*index),
            (Inside::Map(entries), Key::Name(name)) => {
                entries.iter().rev().find(|(key, _)| key.value == *name).map(|(_, place)| place)
            }
            _ => None,
        }
    }
}

/// Returns the place of the value that a module exports under `export`. It follows literals, type annotations, names
/// of top-level variables, and calls with a single literal. Returns `None` if the module does not export it.
///
/// # Errors
/// Returns an error if the text is not valid.
pub fn positions(text: &str, language: Language, export: &str) -> Result<Option<Place>, SyntaxError> {
    let found = with_parsed(text, language, |parsed| {
        first_error(&parsed)?;
        let names = Names::of(&parsed.program);
        Ok(names.exported(&parsed.program, export))
    });
    found.map_err(|Mistake { message, span, help }| SyntaxError { message, range: span.start()..span.end(), help })
}

/// Call in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallPlace {
    /// The callee, such as `assert.contains`.
    pub callee: Span,
    /// Its arguments. Only the first ones if there is a spread among them.
    pub arguments: Vec<Place>,
    /// Byte range of the whole call.
    span: Span,
    /// Last part of the callee, such as `contains`.
    name: Option<String>,
    /// True if it is a method call on something named `assert`.
    is_claim: bool,
}

/// Calls in a text, outer calls before inner ones.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    found: Vec<CallPlace>,
    /// True if `assert` in the text refers to something other than the test module's.
    has_other_assert: bool,
}

impl Calls {
    /// Returns the calls in `text`, or none if it is not valid.
    pub fn of(text: &str, language: Language) -> Self {
        let found = with_parsed(text, language, |parsed| {
            let names = Names { values: HashMap::new(), left: Cell::new(PLACES) };
            let mut search = Search { names, calls: Self::default(), others: HashSet::new() };
            search.calls.has_other_assert = has_own_assert(&parsed.program);
            search.visit_program(&parsed.program);
            Ok(search.calls)
        });
        found.unwrap_or_default()
    }

    /// Returns the innermost call around byte `at` whose callee is called `name`. If there is none, returns the
    /// outermost call there, since the engine reports a position anywhere in a call, sometimes in one of its
    /// arguments.
    pub fn around(&self, at: usize, name: &str) -> Option<&CallPlace> {
        let around = || self.found.iter().filter(|call| (call.span.start()..=call.span.end()).contains(&at));
        around().rfind(|call| call.name.as_deref() == Some(name)).or_else(|| around().next())
    }

    /// Returns the methods that `call` calls on the `assert` of tests, once for each occurrence, with their positions.
    pub fn claims(&self, call: &CallPlace) -> Vec<Spanned<String>> {
        if self.has_other_assert {
            return Vec::new();
        }
        let inside = self
            .found
            .iter()
            .filter(|other| other.span.start() > call.span.start() && other.span.end() <= call.span.end());
        let claims = inside.filter(|other| other.is_claim);
        claims.filter_map(|other| Some(Spanned::new(other.name.clone()?, other.callee))).collect()
    }
}

struct Search<'a> {
    names: Names<'a>,
    calls: Calls,
    /// Names that are imported from modules other than the test module.
    others: HashSet<&'a str>,
}

/// True if the module declares something called `assert` at its top level.
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
        let known = call.arguments.iter().take_while(|argument| argument.as_expression().is_some());
        self.calls.found.push(CallPlace {
            callee: span(call.callee.span()),
            arguments: known.map(|argument| self.names.argument(argument, 0)).collect(),
            span: span(call.span),
            name,
            is_claim: self.is_on_assert(call),
        });
        walk::walk_call_expression(self, call);
    }

    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        if !TEST_MODULES.contains(&import.source.value.as_str()) {
            self.others.extend(import.specifiers.iter().flatten().map(|specifier| specifier.local().name.as_str()));
            self.calls.has_other_assert |= self.others.contains("assert");
        }
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        let BindingPattern::BindingIdentifier(name) = &declarator.id else {
            return walk::walk_variable_declarator(self, declarator);
        };
        self.calls.has_other_assert |= name.name == "assert";
        walk::walk_variable_declarator(self, declarator);
    }
}

/// True if `callee` is `scenario.skip`, `scenario.only` or `scenario.each(…)`.
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

impl Search<'_> {
    /// True if it is a method call on something named `assert`, or on a property of that name of an object that is not
    /// imported from another module.
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

/// Top-level variables of a module.
struct Names<'a> {
    values: HashMap<&'a str, &'a Expression<'a>>,
    /// Number of places that are left.
    left: Cell<usize>,
}

impl<'a> Names<'a> {
    fn of(program: &'a Program<'a>) -> Self {
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

    fn exported(&self, program: &'a Program<'a>, export: &str) -> Option<Place> {
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

    /// Returns the place of the value in `module.exports = …`.
    fn assigned(&self, expression: &'a Expression<'a>) -> Option<Place> {
        let Expression::AssignmentExpression(assignment) = expression else { return None };
        let target = assignment.left.as_member_expression()?;
        let Expression::Identifier(object) = target.object() else { return None };
        let is_exports = object.name == "module" && target.static_property_name() == Some("exports");
        is_exports.then(|| self.place(&assignment.right, HOPS))
    }

    fn named(&self, name: &str) -> Option<Place> {
        self.values.get(name).map(|value| self.place(value, HOPS))
    }

    fn place(&self, expression: &Expression<'a>, hops: usize) -> Place {
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

    fn argument(&self, argument: &Argument<'a>, hops: usize) -> Place {
        match argument.as_expression() {
            Some(value) => self.place(value, hops),
            None => opaque(argument),
        }
    }

    fn list(&self, array: &ArrayExpression<'a>, hops: usize) -> Place {
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
        Place { span: span(array.span), inside: Inside::List(items) }
    }

    fn map(&self, object: &ObjectExpression<'a>, hops: usize) -> Place {
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
        Place { span: span(object.span), inside: Inside::Map(entries) }
    }
}

fn opaque(what: &impl GetSpan) -> Place {
    Place { span: span(what.span()), inside: Inside::Opaque }
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
mod tests {
    use super::*;

    const TEXT: &str = r#"
import type { Fixture } from "x";
const shared = { expect: /ok/ };
export const more: Fixture[] = [{ input: "third" }];
const list = defineFixtures([
  { input: "first", ...shared, deep: { list: [1, [2, three]] } },
  { "input": `second`, check(actual) { return actual }, ["key"]: 1 },
  ...more,
  ...unknown(),
  { input: "nobody knows which" },
] satisfies Fixture[]);
export default list as Fixture[];
"#;

    fn written(text: &str, export: &str, path: &[Key]) -> Option<(String, usize)> {
        let place = positions(text, Language::TypeScript, export).unwrap()?;
        let (found, taken) = place.find(path);
        Some((text[found.span.start()..found.span.end()].to_owned(), taken))
    }

    fn name(name: &str) -> Key {
        name.into()
    }

    #[test]
    fn parts_are_found_through_types_names_calls_and_spreads() {
        let found = |path: &[Key]| written(TEXT, "default", path).unwrap();
        assert_eq!(found(&[0.into(), name("input")]), ("\"first\"".into(), 2));
        assert_eq!(found(&[0.into(), name("expect")]), ("/ok/".into(), 2));
        assert_eq!(found(&[0.into(), name("deep"), name("list"), 1.into(), 1.into()]), ("three".into(), 5));
        assert_eq!(found(&[1.into(), name("input")]), ("`second`".into(), 2));
        assert_eq!(found(&[1.into(), name("key")]), ("1".into(), 2));
        assert!(found(&[1.into(), name("check")]).0.contains("return actual"));
        assert_eq!(found(&[2.into(), name("input")]), ("\"third\"".into(), 2));
        let (whole, taken) = found(&[3.into(), name("input")]);
        assert!(whole.starts_with("[\n") && taken == 0, "what follows an unknown spread is nowhere");
        assert_eq!(written(TEXT, "more", &[0.into()]), Some(("{ input: \"third\" }".into(), 1)));
        assert_eq!(written(TEXT, "absent", &[]), None);
    }

    #[test]
    fn every_way_to_export_is_understood() {
        for text in [
            "export default [1]",
            "const a = [1]; export { a as default }",
            "const a = [1]; export = a",
            "module.exports = [1]",
            "export default (<any>([1])!)",
        ] {
            assert_eq!(written(text, "default", &[0.into()]), Some(("1".into(), 1)), "{text}");
        }
        assert_eq!(written("export default class {}", "default", &[]), Some(("class {}".into(), 0)));
    }

    #[test]
    fn what_a_call_claims_is_known_as_far_as_it_is_written_there() {
        let text = "scenario('a', async (c) => { const r = await c.agent.send('x'); if (r.text) { await assert.sentiment(r, 'y'); }\n\
            c.assert.guardrail(r, {}); helper(r); other.sentiment(r) });\nscenario('b', () => assert.contains('x', 'y'));";
        let claims = |at: &str| {
            let at = text.find(at).unwrap();
            let calls = Calls::of(text, Language::TypeScript);
            let claims = calls.claims(calls.around(at, "scenario").unwrap());
            let told = |claim: Spanned<String>| (claim.value, &text[claim.span.start()..claim.span.end()]);
            claims.into_iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(
            claims("scenario('a'"),
            [("sentiment".into(), "assert.sentiment"), ("guardrail".into(), "c.assert.guardrail")]
        );
        assert_eq!(claims("scenario('b'"), [("contains".into(), "assert.contains")]);
    }

    #[test]
    fn what_is_called_on_another_assert_is_no_claim() {
        let claims = |before: &str| {
            let text = format!("{before};\nscenario('a', () => assert.equal(1, 1));");
            let calls = Calls::of(&text, Language::TypeScript);
            calls.claims(calls.around(text.find("scenario(").unwrap(), "scenario").unwrap()).len()
        };
        assert_eq!(claims("import { assert } from 'trialrun'"), 1);
        assert_eq!(claims("import { scenario, assert as same } from '@fabrik/core'; import same2 from 'chai'"), 1);
        assert_eq!(claims("import { assert } from 'chai'"), 0);
        assert_eq!(claims("import assert from './mine.ts'"), 0);
        assert_eq!(claims("const assert = { equal() {} }"), 0);
        assert_eq!(claims("import chai from 'chai'; const { assert } = chai"), 0);
        let claims = |module: &str| {
            let text = format!("import * as made from '{module}';\nscenario('a', () => made.assert.equal(1, 1));");
            let calls = Calls::of(&text, Language::TypeScript);
            calls.claims(calls.around(text.find("scenario(").unwrap(), "scenario").unwrap()).len()
        };
        assert_eq!(["chai", "trialrun"].map(claims), [0, 1]);
    }

    #[test]
    fn names_that_lead_in_circles_end() {
        assert_eq!(written("const a = b, b = a; export default a", "default", &[]).unwrap().1, 0);
        let place = positions("const a = [a, ...a]; export default a", Language::TypeScript, "default").unwrap();
        assert!(place.is_some());
    }

    #[test]
    fn a_text_that_is_not_valid_says_where() {
        let error = positions("export default [1,, ]]", Language::JavaScript, "default").unwrap_err();
        assert_eq!(error.range.start, 21);
    }
}
