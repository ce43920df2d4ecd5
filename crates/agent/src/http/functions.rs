//! Functions referenced by a configuration, in an engine of their own.

use std::path::Path;
use std::sync::Arc;

use model::{Diagnostic, Ending, Node};
use sandbox::Breakage;
use script::{Function, ScriptError, Value};
use serde_json::Value as Json;

use super::super::engine::{Engine, Program, is_of_the_program};
use super::settings::Settings;
use crate::turn::Turn;
use crate::{RunState, SessionContext};

/// Resolves each path, in the module or in its default export. A function keeps its `this`.
const FIND: &str = "function find(module, path) {
    for (const root of [module.default, module]) {
        let owner, found = root;
        for (const key of path) {
            owner = found;
            found = found?.[key];
        }
        if (typeof found === 'function') return (...given) => found.apply(owner, given);
    }
}
export default paths.map((path, at) => find(modules[at], path));";

/// Functions of a session.
pub(super) struct Functions {
    engine: Engine,
    /// The functions for the body and for the parser.
    found: [Option<Function>; 2],
}

/// Role of a function.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Body,
    Parser,
}

impl Functions {
    /// Loads the functions named in `settings`; returns `None` if there are none.
    pub(super) async fn load(settings: &Settings, context: &SessionContext) -> Result<Option<Self>, Breakage> {
        let directory = context.config.as_ref().map_or(&*context.directory, |config| &config.directory);
        let Some(program) = program(settings, directory, &context.state) else { return Ok(None) };
        let loaded = Engine::start(program, context.setup.timeout_ms).await;
        let (engine, value) = loaded.map_err(|error| {
            Breakage::environment(format!("the functions of the agent's configuration cannot be loaded: {error}"))
        })?;
        let mut functions = listed(value);
        let found = settings.functions().map(|reference| reference.and_then(|_| functions.next().flatten()));
        Ok(Some(Self { engine, found }))
    }

    /// Calls one of the functions.
    pub(super) async fn call(
        &mut self,
        role: Role,
        arguments: Vec<Json>,
        turn: &mut Turn,
    ) -> Result<Result<Json, ScriptError>, Ending> {
        let Some(function) = &self.found[role as usize] else {
            return Ok(Err(ScriptError::Failed("it is not exported".to_owned())));
        };
        let arguments = arguments.into_iter().map(Value::from).collect();
        let called = self.engine.call(function, arguments, turn).await?;
        Ok(called.map(|value| value.to_json()))
    }
}

/// Returns the problems with the functions named in `settings`. `config` is the node that names them.
pub(super) fn check(settings: &Settings, config: &Node, directory: &Path, state: &Arc<RunState>) -> Vec<Diagnostic> {
    let Some(program) = program(settings, directory, state) else { return Vec::new() };
    let value = match program.check() {
        Ok(value) => value,
        Err(error) => {
            let problem = error.diagnostic();
            let is_placed = problem.source.is_some() && !is_of_the_program(&error);
            return vec![if is_placed { problem } else { problem.at(config.excerpt()) }];
        }
    };
    let references = settings.functions().into_iter().flatten();
    let missing = references.zip(listed(value)).filter(|(_, found)| found.is_none());
    missing.map(|(reference, _)| config.error(format!("`{reference}` is not a function"))).collect()
}

fn listed(value: Value) -> std::vec::IntoIter<Option<Function>> {
    let items = if let Value::List(items) = value { items } else { Vec::new() };
    let function = |item| if let Value::Function(function) = item { Some(function) } else { None };
    items.into_iter().map(function).collect::<Vec<_>>().into_iter()
}

fn program(settings: &Settings, directory: &Path, state: &Arc<RunState>) -> Option<Program> {
    let references = settings.functions().into_iter().flatten();
    let split = |reference: &str| {
        let (module, path) = reference.rsplit_once('#').unwrap_or((reference, ""));
        let path: Vec<String> = path.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect();
        (module.to_owned(), path)
    };
    let (modules, paths): (Vec<String>, Vec<Vec<String>>) = references.map(split).unzip();
    let text = format!("const paths = {};\n{FIND}", serde_json::json!(paths));
    (!modules.is_empty()).then(|| Program {
        directory: directory.to_owned(),
        modules,
        text,
        network: None,
        state: Arc::clone(state),
        is_shared: false,
    })
}
