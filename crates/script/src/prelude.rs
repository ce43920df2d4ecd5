//! Modules for writing tests, and the functions that find and run their scenarios. The host defines the meaning of an
//! assertion; in this crate, it is a request with a name, arguments and a location.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::{CodeClaim, Diagnostic, Excerpt, Node, Source, Span};
use rquickjs::Object;

use crate::convert::from_script;
use crate::error::ScriptError;
use crate::module::resolve::ImportKind;
use crate::module::{lookup, node};
use crate::names::{BUILTIN, CONFIGURATION_MODULES, TEST_MODULES};
pub(crate) use crate::positions::SCENARIO;
use crate::positions::{ValueLocation, node};
use crate::realm::{Builtin, Realm};
use crate::runtime::{HOUSEKEEPING, Runtime, refuse};
use crate::source_map;
use crate::trace::{self, Site};
use crate::typescript::{self, Language};
use crate::value::{Function, Value};

/// Module that the others are based on.
pub(crate) const CORE: (&str, &str) = ("trialrun:core", include_str!("prelude/core.js"));

/// Module that tests import, with all its names.
const TESTS: (&[&str], &str) = (TEST_MODULES, include_str!("prelude/trialrun.js"));

/// Module that configurations import, with all its names.
const CONFIGURATION: (&[&str], &str) = (CONFIGURATION_MODULES, include_str!("prelude/config.js"));

/// Modules that tests for other tools import.
const OTHERS: [&str; 8] =
    ["vitest", "@jest/globals", "node:test", "bun:test", "mocha", "ava", "@playwright/test", "tape"];

/// Loaded test module.
#[derive(Debug, Clone)]
pub struct Tests {
    /// Exported scenarios, in the order in which they are written.
    pub scenarios: Vec<Written>,
    /// Scenarios that were created but not exported.
    pub others: Vec<Written>,
    pub(crate) run: Function,
    pub(crate) rethrow: Function,
}

/// Scenario as written.
#[derive(Debug, Clone)]
pub struct Written {
    /// Name.
    pub name: String,
    /// Options, unprocessed.
    pub options: Value,
    /// Call that created it, if the call is in a file of the user. Set by the runtime that loaded the file.
    pub call: Option<Call>,
    /// Stack at its creation, in the engine's format.
    pub(crate) stack: String,
}

/// A call in a file of the user.
#[derive(Debug, Clone)]
pub struct Call {
    /// The file.
    pub source: Arc<Source>,
    /// The callee, such as `assert.contains`.
    pub callee: Span,
    /// Locations of its arguments. Only the first ones, if there is a spread among them.
    pub arguments: Vec<ValueLocation>,
    /// Assertions that its arguments make, one entry per occurrence.
    pub claims: Vec<CodeClaim>,
    /// Mistakes in its arguments, such as a missing `await`, in the order of the text.
    pub mistakes: Vec<Diagnostic>,
    /// Variables in its arguments that nothing declares, each with the problem that it is unless the runtime has it.
    pub(crate) undeclared: Vec<(String, Diagnostic)>,
}

impl Call {
    /// Returns the source line of the call, with the callee underlined.
    pub fn excerpt(&self) -> Excerpt {
        self.source.excerpt(self.callee)
    }

    /// Converts `value`, the argument at index `at`, to a tree. Parts that are written in the call get their own
    /// location, others that of the call. Undefined entries are omitted. A regular expression becomes text of the form
    /// `/source/flags` with the tag `!re`. A function becomes its name with the tag `!function`.
    pub fn argument(&self, index: usize, value: &Value) -> Node {
        let place = self.arguments.get(index);
        node(value, place, place.map_or(self.callee, |place| place.span), &self.source)
    }

    /// Returns the call of `name` at `site`.
    pub(crate) fn at(site: &Site, name: &str) -> Self {
        let Site { text, source, at } = site;
        let call = text.calls().around(*at, name);
        Self {
            source: Arc::clone(source),
            callee: call.map_or_else(|| source_map::word(&text.original, *at), |call| call.callee),
            arguments: call.map(|call| call.arguments.clone()).unwrap_or_default(),
            claims: call.map(|call| text.calls().claims(call, source)).unwrap_or_default(),
            mistakes: call.map(|call| text.calls().mistakes(call, source)).unwrap_or_default(),
            undeclared: call.map(|call| text.calls().undeclared(call, source)).unwrap_or_default(),
        }
    }

    /// Takes the variables that are `missing` in the runtime for mistakes.
    pub(crate) fn lacks(&mut self, missing: &[String]) {
        let undeclared = std::mem::take(&mut self.undeclared).into_iter();
        self.mistakes.extend(undeclared.filter(|(name, _)| missing.contains(name)).map(|(_, problem)| problem));
        self.mistakes.sort_by_key(|problem| problem.source.as_ref().map(|at| (at.line, at.column)));
    }
}

impl Tests {
    /// Returns `true` if `text` may be a test module: it imports the test module, or it creates a scenario or exports
    /// those of another module and is not written for another tool.
    pub fn may_be(text: &str) -> bool {
        let passes_on =
            |line: &str| (line.starts_with("export *") || line.starts_with("export {")) && line.contains(" from ");
        let is_one = || Self::defines_one(text) || text.lines().any(passes_on);
        TESTS.0.iter().any(|name| imports(text, name)) || (is_one() && !is_for_another_tool(text))
    }

    /// Returns `true` if a statement of `text` creates a scenario.
    pub fn defines_one(text: &str) -> bool {
        text.split(['\n', ';']).map(str::trim_start).any(|line| {
            let exported = line.strip_prefix("export ").map(str::trim_start);
            let value = match exported {
                Some(exported) => exported.strip_prefix("default ").or_else(|| Some(exported.split_once('=')?.1)),
                None => Some(line),
            };
            let called = value.and_then(|value| value.trim_start_matches(['[', ' ']).strip_prefix(SCENARIO));
            called.is_some_and(|called| called.trim_start().starts_with(['(', '.', '<']))
        })
    }

    /// Returns `true` if `text` may create scenarios by functions of another module in its project: it exports
    /// something, imports a file, and is not written for another tool.
    pub fn may_share_one(text: &str) -> bool {
        let has_import = ["\"./", "'./", "\"../", "'../"].iter().any(|path| text.contains(path));
        text.contains("export") && has_import && !is_for_another_tool(text)
    }
}

/// Returns `true` if `text` imports the module `name`.
fn imports(text: &str, name: &str) -> bool {
    let is_import = |before: &str| {
        let before = before.trim_end_matches(['"', '\'']).trim_end();
        ["from", "import", "import(", "require("].iter().any(|word| before.ends_with(word))
    };
    text.match_indices(name).any(|(at, _)| {
        let is_quoted = text[..at].ends_with(['"', '\'']) && text[at + name.len()..].starts_with(['"', '\'']);
        is_quoted && is_import(&text[..at])
    })
}

fn is_for_another_tool(text: &str) -> bool {
    OTHERS.iter().any(|name| imports(text, name))
}

impl Runtime {
    /// Provides the modules that tests and configurations import: `trialrun`, `trialrun/config` and their aliases.
    pub fn give_prelude(&mut self) {
        provide(&self.realm);
    }

    /// Loads the test module at `path`, which must be absolute. `budget` includes all its imports.
    ///
    /// # Errors
    /// Returns an error if something is missing, not valid, or throws.
    pub fn tests(&mut self, path: &Path, budget: Duration) -> Result<Tests, ScriptError> {
        self.give_prelude();
        let directory = path.parent().unwrap_or(path);
        let module = self.import(&path.display().to_string(), directory, budget)?;
        let core = self.import_named(&format!("{BUILTIN}{}", CORE.0), budget)?;
        let core = self.namespace(&core)?;
        let opened = self.with_namespace(&module, |ctx, realm, exports| {
            let open: rquickjs::Function<'_> = core.restore(ctx)?.get("open")?;
            let opened: Object<'_> = open.call((exports,))?;
            let part = |name: &str| from_script(ctx, realm, opened.get(name)?);
            Ok([part("scenarios")?, part("others")?, part("run")?, part("rethrow")?])
        })?;
        let names = ["scenarios", "others", "run", "rethrow"].map(str::to_owned);
        self::opened(&Value::Map(names.into_iter().zip(opened).collect()))
    }

    /// Returns the exception thrown by the current scenario, even if something that it started has not ended.
    pub fn thrown(&mut self, tests: &Tests) -> Option<ScriptError> {
        let thrown = self.call(&tests.rethrow, &[], HOUSEKEEPING, &mut refuse).err();
        thrown.filter(|error| matches!(error, ScriptError::Thrown { .. } | ScriptError::OutOfMemory { .. }))
    }

    /// Returns the call of `name` that a script made at `stack`, a property of an error: the innermost one in a file
    /// of the user.
    pub fn call_site(&self, stack: &str, name: &str) -> Option<Call> {
        trace::site(&self.realm, stack).map(|site| Call::at(&site, name))
    }

    /// Returns the location at which an error with this `stack` was thrown, if it is in a file of the user.
    pub fn thrown_at(&self, stack: &str) -> Option<Excerpt> {
        trace::thrown(&self.realm, stack)
    }
}

/// Provides the modules that tests and configurations import.
pub(crate) fn provide(realm: &Realm) {
    let mut builtins = realm.builtins.borrow_mut();
    builtins.insert(CORE.0.to_owned(), Builtin::Own(CORE.1));
    for (names, source) in [TESTS, CONFIGURATION] {
        builtins.extend(names.iter().map(|name| ((*name).to_owned(), Builtin::Own(source))));
    }
}

/// Reads what the prelude returns for a test module.
pub(crate) fn opened(opened: &Value) -> Result<Tests, ScriptError> {
    let part = |name: &str| opened.get(name).unwrap_or(&Value::Undefined);
    match (part("run"), part("rethrow")) {
        (Value::Function(run), Value::Function(rethrow)) => Ok(Tests {
            scenarios: written(part("scenarios")),
            others: written(part("others")),
            run: run.clone(),
            rethrow: rethrow.clone(),
        }),
        _ => Err(ScriptError::Failed("the prelude does not open modules".into())),
    }
}

/// Returns warnings about unresolved imports in the module at `path`, whose text is `source`. With `has_node`, modules of
/// Node.js exist.
pub(crate) fn missing_imports(realm: &Realm, path: &Path, source: &Source, has_node: bool) -> Vec<Diagnostic> {
    let Some(language) = Language::from_path(path) else { return Vec::new() };
    let directory = path.parent().unwrap_or(path);
    let imported = typescript::imported_values(&source.text, language).into_iter();
    let missing = imported.filter_map(|(specifier, span)| {
        if has_node && node::of_node(&specifier).is_some() {
            return None;
        }
        let missing = lookup::name(realm, directory, &specifier, ImportKind::Import).err()?;
        let message = format!("`{specifier}` is imported but cannot be found; it is not used");
        let problem = Diagnostic::warning(message).at(source.excerpt(span));
        Some(missing.help.into_iter().fold(problem, Diagnostic::help))
    });
    missing.collect()
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
