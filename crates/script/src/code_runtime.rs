//! The interface of the runtimes for the user's code: the embedded engine, and the user's own runtime.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Diagnostic, Excerpt, Source};

use crate::error::ScriptError;
use crate::prelude::{self, Call, Tests};
use crate::pump::Progress;
use crate::task::Task;
use crate::value::{Function, Request, Value};

/// File name of a program, used for its imports and errors. The file does not exist.
const PROGRAM: &str = ".trialrun-program.mjs";

/// Text that uses modules of the user.
#[derive(Debug, Clone, Copy)]
pub struct ModuleProgram<'p> {
    /// Directory for resolving imports.
    pub directory: &'p Path,
    /// Modules to import, written as in an import statement.
    pub modules: &'p [String],
    /// Text of a module whose default export is the result. The imported modules are available as `modules`.
    pub text: &'p str,
    /// True if the embedded engine provides `fetch`.
    pub has_fetch: bool,
}

impl ModuleProgram<'_> {
    /// Returns the whole text of the program.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (index, specifier) in self.modules.iter().enumerate() {
            text.push_str(&format!("import * as module{index} from {};\n", serde_json::json!(specifier)));
        }
        let names: Vec<String> = (0..self.modules.len()).map(|index| format!("module{index}")).collect();
        text.push_str(&format!("const modules = [{}];\n{}", names.join(", "), self.text));
        text
    }

    /// Returns the path of the file in which the program seems to be.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(PROGRAM)
    }

    /// Returns `true` if `file` is the name of a program.
    pub fn is_program(file: &Path) -> bool {
        file.file_name().is_some_and(|name| name == PROGRAM)
    }
}

/// A runtime with modules of the user. Its functions and tasks are valid only for this runtime.
pub trait CodeRuntime {
    /// Loads the test module at `path`, which must be absolute. `budget` includes all its imports.
    ///
    /// # Errors
    /// Returns an error if something is missing, not valid, or throws.
    fn tests(&mut self, path: &Path, budget: Duration) -> Result<Tests, ScriptError>;

    /// Returns warnings about unresolved imports in the module at `path`, whose text is `source`. The module was still
    /// loaded, because it does not use these imports.
    fn missing_imports(&self, path: &Path, source: &Source) -> Vec<Diagnostic>;

    /// Runs a program and returns its default export.
    ///
    /// # Errors
    /// Returns an error if something is missing, not valid, or throws.
    fn program(&mut self, program: &ModuleProgram<'_>, budget: Duration) -> Result<Value, ScriptError>;

    /// Evaluates `text` as the module in the file at `path`, and returns those of its exports that have `names`. With `has_prelude`, it
    /// can import the modules for tests and configurations.
    ///
    /// # Errors
    /// Returns an error if something is missing, not valid, or throws.
    fn module_exports(
        &mut self,
        path: &Path,
        text: &str,
        has_prelude: bool,
        names: &[&str],
        budget: Duration,
    ) -> Result<Value, ScriptError>;

    /// Returns a function that freezes the built-in objects, if the runtime has one. See [`Runtime::freezer`](crate::Runtime::freezer).
    ///
    /// # Errors
    /// Returns an error if there is no memory left.
    fn freezer(&mut self) -> Result<Option<Function>, ScriptError>;

    /// Calls `function` and runs it until it first waits. `budget` limits its CPU time over all steps.
    ///
    /// # Errors
    /// Returns the exception if the function throws before it first waits.
    fn begin(&mut self, function: &Function, arguments: &[Value], budget: Duration) -> Result<Task, ScriptError>;

    /// Continues `task` as far as possible. The task is over after an error or [`Progress::Done`].
    ///
    /// # Errors
    /// Returns the exception, or the reason why the task cannot go on.
    fn step(&mut self, task: &Task) -> Result<Progress, ScriptError>;

    /// Answers a request: its promise is fulfilled with the value, or rejected with an error that has this message.
    ///
    /// # Errors
    /// Returns an error if the value cannot be converted.
    fn answer(&mut self, request: u64, answer: &Result<Value, String>) -> Result<(), ScriptError>;

    /// Returns requests that have not been returned yet, such as those that a script made right before it was stopped.
    fn requests(&mut self) -> Vec<Request>;

    /// Returns the exception thrown by the current scenario, even if something that it started has not ended. For code
    /// that does not let itself be asked, returns that it is still running.
    fn thrown(&mut self, tests: &Tests) -> Option<ScriptError>;

    /// Prepares for a call that must not be affected by earlier calls. Returns false if that is impossible.
    fn renew(&mut self) -> bool;

    /// Returns the call of `name` that a script made at `stack`, a property of an error: the innermost one in a file
    /// of the user.
    fn call_site(&self, stack: &str, name: &str) -> Option<Call>;

    /// Returns the location at which an error with this `stack` was thrown, if it is in a file of the user.
    fn thrown_at(&self, stack: &str) -> Option<Excerpt>;

    /// Starts the scenario in `tests` at `index`. Its requests, each with a name and an object, go to `ask`. `about`
    /// is the information about the agent that the scenario receives. The task ends when everything that it started
    /// has ended, and returns the recorded scores.
    ///
    /// # Errors
    /// Returns the exception if the scenario throws before it first waits.
    fn begin_scenario(
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

    /// Returns those of `names` that are not names of global variables.
    fn missing_globals(&mut self, names: Vec<String>) -> Vec<String>;

    /// Sets the source positions of the scenarios in `tests`, and the mistakes in them.
    fn locate(&mut self, tests: &mut Tests) {
        for written in tests.scenarios.iter_mut().chain(&mut tests.others) {
            written.call = self.call_site(&written.stack, prelude::SCENARIO);
        }
        let calls = || tests.scenarios.iter().filter_map(|written| written.call.as_ref());
        let names: BTreeSet<&String> = calls().flat_map(|call| &call.undeclared).map(|(name, _)| name).collect();
        if !names.is_empty() {
            let missing = self.missing_globals(names.into_iter().cloned().collect());
            tests
                .scenarios
                .iter_mut()
                .filter_map(|written| written.call.as_mut())
                .for_each(|call| call.lacks(&missing));
        }
    }
}
