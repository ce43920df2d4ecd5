//! Test helper shared by several files: a directory with some files, and a runtime for it.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::runtime::refuse;
use crate::{Function, Module, Options, Runtime, ScriptError, Value};

pub const BUDGET: Duration = Duration::from_secs(20);

/// Directory that is deleted on drop, with a runtime.
pub struct TestProject {
    directory: TempDir,
    pub runtime: Runtime,
}

impl TestProject {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let runtime = Runtime::new(Options::new(std::fs::canonicalize(directory.path()).unwrap())).unwrap();
        Self { directory, runtime }
    }

    pub fn path(&self) -> PathBuf {
        std::fs::canonicalize(self.directory.path()).unwrap()
    }

    pub fn import(&mut self, specifier: &str) -> Result<Module, ScriptError> {
        let from = self.path();
        self.runtime.import(specifier, &from, BUDGET)
    }

    pub fn value(&mut self, specifier: &str, export: &str) -> Value {
        let module = self.import(specifier).unwrap();
        self.runtime.export(&module, export).unwrap().unwrap()
    }

    pub fn function(&mut self, specifier: &str, export: &str) -> Function {
        match self.value(specifier, export) {
            Value::Function(function) => function,
            other => panic!("{other:?}"),
        }
    }

    pub fn call(&mut self, specifier: &str, export: &str, arguments: &[Value]) -> Result<Value, ScriptError> {
        let function = self.function(specifier, export);
        self.runtime.call(&function, arguments, BUDGET, &mut refuse)
    }
}
