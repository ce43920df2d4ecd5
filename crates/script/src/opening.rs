//! Chooses and opens the runtime for a module of the user.

use std::path::Path;

use crate::code_runtime::CodeRuntime;
use crate::error::ScriptError;
use crate::external::ExternalRuntime;
use crate::launcher::{ProjectRuntime, RuntimeChoice};
use crate::options::Options;
use crate::platform::{NODE, Platform};
use crate::runtime::Runtime;

/// Opens a runtime for the module at `path`, which `load` loads. With [`RuntimeChoice::Auto`], that is the embedded
/// engine, unless the module needs more; the library remembers this. `options` is called for each attempt.
///
/// # Errors
/// Returns the error of `load`, or the reason why the runtime cannot be opened.
pub fn open<T>(
    path: &Path,
    options: &dyn Fn() -> Options,
    load: &mut dyn FnMut(&mut dyn CodeRuntime) -> Result<T, ScriptError>,
) -> Result<(Box<dyn CodeRuntime>, T), ScriptError> {
    let first = options();
    let library = first.library.clone();
    let Some(ProjectRuntime { launcher, .. }) = library.runtime() else { return embedded(first, load) };
    let choice = library.choice_for(path);
    let external = |platform: &'static Platform,
                    options: Options,
                    load: &mut dyn FnMut(&mut dyn CodeRuntime) -> Result<T, ScriptError>| {
        let mut runtime = ExternalRuntime::start(platform, options, &*launcher)?;
        let loaded = load(&mut runtime)?;
        Ok((Box::new(runtime) as Box<dyn CodeRuntime>, loaded))
    };
    match choice {
        RuntimeChoice::Embedded => return embedded(first, load),
        RuntimeChoice::External(platform) => return external(platform, first, load),
        RuntimeChoice::Auto => {}
    }
    let missing = match embedded(first, load) {
        Err(error) if error.needs_another_runtime() => error,
        other => {
            library.choose(path, RuntimeChoice::Embedded);
            return other;
        }
    };
    match external(&NODE, options(), load) {
        Err(ScriptError::NoRuntime(reason)) if reason == NODE.not_installed() => {
            Err(missing.with_advice("Node.js 20 or later has it: install it, and the file runs there".to_owned()))
        }
        Err(ScriptError::NoRuntime(reason) | ScriptError::Failed(reason)) => {
            Err(missing.with_advice(format!("it would run in Node.js, but: {reason}")))
        }
        other => {
            library.choose(path, RuntimeChoice::External(&NODE));
            other
        }
    }
}

fn embedded<T>(
    options: Options,
    load: &mut dyn FnMut(&mut dyn CodeRuntime) -> Result<T, ScriptError>,
) -> Result<(Box<dyn CodeRuntime>, T), ScriptError> {
    let mut runtime = Runtime::new(options)?;
    let loaded = load(&mut runtime)?;
    Ok((Box::new(runtime), loaded))
}
