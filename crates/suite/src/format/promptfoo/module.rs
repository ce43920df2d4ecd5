//! Functions of modules that a configuration names: prompts and variables.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use script::{Function, Options, Runtime, ScriptError, Value};

use crate::document;
use crate::library::Library;

/// Time limit for loading a module, and for a call.
const BUDGET: Duration = Duration::from_secs(10);

/// Name of the function of a module, if none is written.
const DEFAULT: &str = "default";

/// Loaded modules with their functions.
#[derive(Default)]
pub(super) struct Modules(RefCell<HashMap<(PathBuf, String), (Runtime, Function)>>);

impl Modules {
    /// Calls the function `name` of the module at `path`.
    ///
    /// # Errors
    /// Returns the reason in one line if there is no such function, or if it throws.
    pub(super) fn call(
        &self,
        path: &Path,
        name: Option<&str>,
        arguments: &[serde_json::Value],
        library: &Library,
    ) -> Result<serde_json::Value, String> {
        let name = name.unwrap_or(DEFAULT);
        let key = (path.to_owned(), name.to_owned());
        let mut loaded = self.0.borrow_mut();
        if !loaded.contains_key(&key) {
            let module = load(path, name, library)?;
            loaded.insert(key.clone(), module);
        }
        let Some((runtime, function)) = loaded.get_mut(&key) else { return Err("it is not loaded".to_owned()) };
        let arguments: Vec<Value> = arguments.iter().map(Value::from).collect();
        let called = runtime.call(function, &arguments, BUDGET, &mut |_| Err("there is no such function".to_owned()));
        called.map(|value| value.to_json()).map_err(|error| described(&error))
    }
}

fn load(path: &Path, name: &str, library: &Library) -> Result<(Runtime, Function), String> {
    let source = document::open(path, &library.shown(path)).map_err(|problem| problem.message.clone())?;
    let mut options = Options::new(path.parent().unwrap_or(Path::new("/")));
    options.shown_from.clone_from(&library.cwd);
    options.library = library.modules.clone();
    let open = || -> Result<_, ScriptError> {
        let mut runtime = Runtime::new(options)?;
        let module = runtime.import_source(&source.text, path, BUDGET)?;
        let export = runtime.export(&module, name)?;
        Ok((runtime, export))
    };
    match open().map_err(|error| described(&error))? {
        (runtime, Some(Value::Function(function))) => Ok((runtime, function)),
        _ => Err(format!("the module has no function `{name}`")),
    }
}

fn described(error: &ScriptError) -> String {
    match error.place() {
        Some(place) => format!("{error} ({place})"),
        None => error.to_string(),
    }
}
