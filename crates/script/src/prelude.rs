//! What tests are written with: the modules that define scenarios, and how the program finds and runs those. What an
//! assertion means is the host's: here it is a request with a name, arguments and a place.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::{Diagnostic, Excerpt, Node, NodeKind, Source, Span, Spanned};
use rquickjs::Object;

use crate::convert::from_script;
use crate::error::ScriptError;
use crate::module::loader::{self, BUILTIN};
use crate::module::resolve::Asked;
use crate::positions::{Inside, Place};
use crate::pump::Task;
use crate::realm::Builtin;
use crate::runtime::{HOUSEKEEPING, Runtime, refuse};
use crate::source_map;
use crate::trace::{self, Site};
use crate::typescript::{self, Language};
use crate::value::{Function, Value};

/// What the others are made of.
const CORE: (&str, &str) = ("trialrun:core", include_str!("prelude/core.js"));

/// What tests import, by every name that it has.
const TESTS: (&[&str], &str) = (&["trialrun", "@fabrik/core", "@fabriklabs/core"], include_str!("prelude/trialrun.js"));

/// What a configuration imports, by every name that it has.
const CONFIGURATION: (&[&str], &str) =
    (&["trialrun/config", "@fabrik/cli", "@fabriklabs/cli"], include_str!("prelude/config.js"));

/// What makes a scenario. Its properties, such as `skip`, do too.
pub(crate) const SCENARIO: &str = "scenario";

/// What the tests of other tools import.
const OTHERS: [&str; 8] =
    ["vitest", "@jest/globals", "node:test", "bun:test", "mocha", "ava", "@playwright/test", "tape"];

/// A module of tests that was loaded.
#[derive(Debug, Clone)]
pub struct Tests {
    /// The scenarios that it exports, in the order in which they are written.
    pub scenarios: Vec<Written>,
    /// Those that were made and are not exported.
    pub others: Vec<Written>,
    run: Function,
    rethrow: Function,
}

/// A scenario as it is written.
#[derive(Debug, Clone)]
pub struct Written {
    /// What it is called.
    pub name: String,
    /// Its options, as they are.
    pub options: Value,
    /// The call that made it, if that is in a file of the user's; known after [`Runtime::locate`].
    pub call: Option<Call>,
    /// Where it was made, as the engine has it.
    stack: String,
}

/// A call in a file of the user's.
#[derive(Debug, Clone)]
pub struct Call {
    /// The file.
    pub source: Arc<Source>,
    /// What is called, such as `assert.contains`.
    pub callee: Span,
    /// Where its arguments are written; only the first ones if something is spread among them.
    pub arguments: Vec<Place>,
    /// What is called on the `assert` of tests within its arguments, once for each time, and where.
    pub claims: Vec<Spanned<String>>,
}

impl Call {
    /// The line it is on, with what is called underlined.
    pub fn excerpt(&self) -> Excerpt {
        self.source.excerpt(self.callee)
    }

    /// `value`, which was given as argument number `at`, from 0, as a tree: what is written out in the call has its place
    /// there, everything else that of the call. Entries that are undefined are left out. A regular expression is text
    /// like `/source/flags` with the tag `!re`, a function is its name with the tag `!function`.
    pub fn argument(&self, at: usize, value: &Value) -> Node {
        let place = self.arguments.get(at);
        self.node(value, place, place.map_or(self.callee, |place| place.span))
    }

    fn node(&self, value: &Value, place: Option<&Place>, span: Span) -> Node {
        let inside = place.map(|place| &place.inside);
        let (kind, tag) = match value {
            Value::Undefined | Value::Null => (NodeKind::Null, None),
            Value::Bool(value) => (NodeKind::Bool(*value), None),
            Value::Number(number) => match value.to_json() {
                serde_json::Value::Number(number) => (NodeKind::Number(number), None),
                // JSON has no such number, and nothing takes it for one.
                _ => (NodeKind::String(number.to_string()), None),
            },
            Value::String(text) => (NodeKind::String(text.clone()), None),
            Value::Regex { source, flags } => (NodeKind::String(format!("/{source}/{flags}")), Some("!re")),
            Value::Function(function) => (NodeKind::String(function.name().to_owned()), Some("!function")),
            Value::Native(_) | Value::Asks(_) => (NodeKind::Null, Some("!function")),
            Value::List(items) => {
                let item = |(at, item): (usize, &Value)| {
                    let place = match inside {
                        Some(Inside::List(places)) => places.get(at),
                        _ => None,
                    };
                    self.node(item, place, place.map_or(span, |place| place.span))
                };
                (NodeKind::List(items.iter().enumerate().map(item).collect()), None)
            }
            Value::Map(entries) => {
                let given = entries.iter().filter(|(_, value)| !value.is_undefined());
                let entry = |(key, value): &(String, Value)| {
                    let known = match inside {
                        Some(Inside::Map(places)) => places.iter().rev().find(|(name, _)| name.value == *key),
                        _ => None,
                    };
                    let (name, place) = known.map_or((span, None), |(name, place)| (name.span, Some(place)));
                    let node = self.node(value, place, place.map_or(span, |place| place.span));
                    (Spanned::new(key.clone(), name), node)
                };
                (NodeKind::Map(given.map(entry).collect()), None)
            }
        };
        Node { kind, span, tag: tag.map(Box::from), source: Arc::clone(&self.source) }
    }

    fn at(site: &Site, name: &str) -> Self {
        let Site { text, source, at } = site;
        let source = Arc::clone(source);
        match text.calls().around(*at, name) {
            Some(call) => Self {
                source,
                callee: call.callee,
                arguments: call.arguments.clone(),
                claims: text.calls().claims(call),
            },
            None => {
                let callee = source_map::word(&text.original, *at);
                Self { source, callee, arguments: Vec::new(), claims: Vec::new() }
            }
        }
    }
}

/// Whether `module` is what tests are written with, by any of its names.
pub(crate) fn is_for_tests(module: &str) -> bool {
    TESTS.0.contains(&module)
}

impl Tests {
    /// Whether `text` may be a module of tests: it imports what they are written with, or exports something and is not
    /// written for another tool.
    pub fn may_be(text: &str) -> bool {
        let imports =
            |name: &&str| ['"', '\''].iter().any(|quote| text.contains(&format!("from {quote}{name}{quote}")));
        TESTS.0.iter().any(imports) || (text.contains("export") && !OTHERS.iter().any(imports))
    }
}

impl Runtime {
    /// Gives the modules that tests and configurations import: `trialrun`, `trialrun/config` and their other names.
    pub fn give_prelude(&mut self) {
        let mut builtins = self.realm.builtins.borrow_mut();
        builtins.insert(CORE.0.to_owned(), Builtin::Own(CORE.1));
        for (names, source) in [TESTS, CONFIGURATION] {
            builtins.extend(names.iter().map(|name| ((*name).to_owned(), Builtin::Own(source))));
        }
    }

    /// Loads the module of tests at `path`, absolute. `budget` is for all that it imports, too.
    ///
    /// # Errors
    /// What is missing, not valid, or thrown on the way.
    pub fn tests(&mut self, path: &Path, budget: Duration) -> Result<Tests, ScriptError> {
        self.give_prelude();
        let directory = path.parent().unwrap_or(path);
        let module = self.import(&path.display().to_string(), directory, budget)?;
        let core = self.import_named(&format!("{BUILTIN}{}", CORE.0), budget)?;
        let core = self.namespace(&core)?;
        let opened = self.look(&module, |ctx, realm, exports| {
            let open: rquickjs::Function<'_> = core.restore(ctx)?.get("open")?;
            let opened: Object<'_> = open.call((exports,))?;
            let part = |name: &str| from_script(ctx, realm, opened.get(name)?);
            Ok([part("scenarios")?, part("others")?, part("run")?, part("rethrow")?])
        })?;
        match opened {
            [scenarios, others, Value::Function(run), Value::Function(rethrow)] => {
                Ok(Tests { scenarios: written(&scenarios), others: written(&others), run, rethrow })
            }
            _ => Err(ScriptError::Failed("the prelude does not open modules".into())),
        }
    }

    /// Warnings about imports of the module at `path`, whose text is `source`, that lead nowhere. The module was loaded all
    /// the same, because nothing uses what they import.
    pub fn missing_imports(&self, path: &Path, source: &Source) -> Vec<Diagnostic> {
        let Some(language) = Language::of(path) else { return Vec::new() };
        let directory = path.parent().unwrap_or(path);
        let imported = typescript::imported_values(&source.text, language).into_iter();
        let missing = imported.filter_map(|(specifier, span)| {
            let missing = loader::name(&self.realm, directory, &specifier, Asked::Import).err()?;
            let message = format!("`{specifier}` is imported and cannot be found; nothing uses it");
            let problem = Diagnostic::warning(message).at(source.excerpt(span));
            Some(missing.help.into_iter().fold(problem, Diagnostic::help))
        });
        missing.collect()
    }

    /// Finds where the scenarios of `tests` are written.
    pub fn locate(&self, tests: &mut Tests) {
        for written in tests.scenarios.iter_mut().chain(&mut tests.others) {
            written.call = self.call_site(&written.stack, SCENARIO);
        }
    }

    /// Begins scenario number `index` of `tests`, from 0. What it asks for goes to `ask`: a name and an object. `about` is
    /// what it is told of the agent. It ends when everything that it began has ended, with the scores that it recorded.
    ///
    /// # Errors
    /// What was thrown before it first waited.
    pub fn begin_scenario(
        &mut self,
        tests: &Tests,
        index: usize,
        ask: Value,
        about: Value,
        budget: Duration,
    ) -> Result<Task, ScriptError> {
        #[allow(clippy::cast_precision_loss)]
        let index = Value::Number(index as f64);
        self.begin(&tests.run, &[index, ask, about], budget)
    }

    /// What the scenario that was begun has thrown, although what it began before does not end.
    pub fn thrown(&mut self, tests: &Tests) -> Option<ScriptError> {
        let thrown = self.call(&tests.rethrow, &[], HOUSEKEEPING, &mut refuse).err();
        thrown.filter(|error| matches!(error, ScriptError::Thrown { .. } | ScriptError::OutOfMemory { .. }))
    }

    /// The call of `name` that a script made where it took `stack`, the property of an error: the innermost one in a file
    /// of the user's.
    pub fn call_site(&self, stack: &str, name: &str) -> Option<Call> {
        trace::site(&self.realm, stack).map(|site| Call::at(&site, name))
    }

    /// Where an error with this `stack` was thrown, if that is in a file of the user's.
    pub fn thrown_at(&self, stack: &str) -> Option<Excerpt> {
        trace::thrown(&self.realm, stack)
    }
}

fn written(items: &Value) -> Vec<Written> {
    let Value::List(items) = items else { return Vec::new() };
    let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let written = |item: &Value| Written {
        name: text(item, "name"),
        options: item.get("options").cloned().unwrap_or_default(),
        call: None,
        stack: text(item, "stack"),
    };
    items.iter().map(written).collect()
}

#[cfg(test)]
mod tests;
