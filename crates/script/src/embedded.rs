//! The embedded engine as a runtime for the user's code.

use std::path::Path;
use std::time::Duration;

use model::{Diagnostic, Excerpt, Source};

use crate::code_runtime::{CodeRuntime, ModuleProgram};
use crate::error::ScriptError;
use crate::prelude::{self, Call, Tests};
use crate::pump::{Meter, Progress};
use crate::runtime::{HOUSEKEEPING, Runtime};
use crate::task::Task;
use crate::value::{Function, Request, Value};

impl CodeRuntime for Runtime {
    fn tests(&mut self, path: &Path, budget: Duration) -> Result<Tests, ScriptError> {
        Self::tests(self, path, budget)
    }

    fn missing_imports(&self, path: &Path, source: &Source) -> Vec<Diagnostic> {
        prelude::missing_imports(&self.realm, path, source, false)
    }

    fn program(&mut self, program: &ModuleProgram<'_>, budget: Duration) -> Result<Value, ScriptError> {
        // A configuration with functions imports the configuration helpers.
        prelude::provide(&self.realm);
        if program.has_fetch {
            self.give_fetch()?;
        }
        for specifier in program.modules {
            // The module is first imported on its own, so that its errors do not point into a generated program.
            self.import(specifier, program.directory, budget)?;
        }
        let module = self.import_source(&program.text(), &program.path(), budget)?;
        Ok(self.export(&module, "default")?.unwrap_or_default())
    }

    fn module_exports(
        &mut self,
        path: &Path,
        text: &str,
        has_prelude: bool,
        names: &[&str],
        budget: Duration,
    ) -> Result<Value, ScriptError> {
        if has_prelude {
            prelude::provide(&self.realm);
        }
        let module = self.import_source(text, path, budget)?;
        let mut exports = Vec::new();
        for name in names {
            let value = self.export(&module, name)?;
            exports.extend(value.map(|value| ((*name).to_owned(), value)));
        }
        Ok(Value::Map(exports))
    }

    fn freezer(&mut self) -> Result<Option<Function>, ScriptError> {
        Self::freezer(self).map(Some)
    }

    fn begin(&mut self, function: &Function, arguments: &[Value], budget: Duration) -> Result<Task, ScriptError> {
        Self::begin(self, function, arguments, budget)
    }

    fn step(&mut self, task: &Task) -> Result<Progress, ScriptError> {
        Self::step(self, task)
    }

    fn answer(&mut self, request: u64, answer: &Result<Value, String>) -> Result<(), ScriptError> {
        Self::answer(self, request, answer)
    }

    fn requests(&mut self) -> Vec<Request> {
        Self::requests(self)
    }

    fn thrown(&mut self, tests: &Tests) -> Option<ScriptError> {
        Self::thrown(self, tests)
    }

    fn renew(&mut self) -> bool {
        Self::renew(self)
    }

    fn call_site(&self, stack: &str, name: &str) -> Option<Call> {
        Self::call_site(self, stack, name)
    }

    fn missing_globals(&mut self, names: Vec<String>) -> Vec<String> {
        let missing = self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, _| {
            let globals = ctx.globals();
            Ok(names.into_iter().filter(|name| !globals.contains_key(name.as_str()).unwrap_or(true)).collect())
        });
        missing.unwrap_or_default()
    }

    fn thrown_at(&self, stack: &str) -> Option<Excerpt> {
        Self::thrown_at(self, stack)
    }
}
