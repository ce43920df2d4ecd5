//! Cache of resolved and loaded files, shared between runtimes.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::ScriptError;
use crate::launcher::{ProjectRuntime, RuntimeChoice};
use crate::module::resolve::{Files, ImportKind, Unresolved};
use crate::pipes::Pipes;
use crate::positions::Calls;
use crate::source_map::Mapping;
use crate::syntax::Mistake;
use crate::typescript::{self, Compiler, Language};

/// Maximum size of the text of a module, in bytes.
const MAX_MODULE_BYTES: u64 = 16 << 20;

/// Environment variable: its name and its value. If it has no value, it is a secret, and reading it is an error.
pub type Variable = (String, Option<String>);

/// Modules that a process has resolved and read. Each file is resolved, read and stripped of its types once, for all
/// runtimes that import it. Cheap to clone. Clones share the same library.
///
/// If a file changes after it was read, its first version stays in use until [`Library::forget`].
#[derive(Clone)]
pub struct Library(Arc<ModuleCache>);

struct ModuleCache {
    environment: Vec<Variable>,
    /// Where the code of the project runs.
    runtime: Option<ProjectRuntime>,
    /// Reason why the user's runtime cannot run code.
    runtime_fault: OnceLock<String>,
    /// Processes that only load modules, and are waiting for the next one.
    idle: Mutex<Vec<Pipes>>,
    /// Runtimes that were found to be right for modules.
    choices: Mutex<HashMap<PathBuf, RuntimeChoice>>,
    files: Mutex<Arc<Files>>,
    /// Texts by their paths, for the embedded engine and for the external runtime.
    texts: Mutex<HashMap<(PathBuf, bool), Arc<Text>>>,
}

/// Runtime for which a text is prepared.
pub(crate) enum Target {
    /// The embedded engine.
    Embedded,
    /// A runtime that has all of JavaScript, with the settings of TypeScript for the file.
    External(Compiler),
}

/// Text of a module, ready for the engine.
pub(crate) struct Text {
    pub kind: Kind,
    /// Text as the user wrote it.
    pub original: Arc<str>,
    /// Text for the engine, if it differs.
    pub code: Option<String>,
    pub mapping: Option<Mapping>,
    pub language: Language,
    calls: OnceLock<Calls>,
}

/// Format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Module,
    CommonJs,
    Json,
}

/// Error of a file that cannot be a module.
pub(crate) enum Unreadable {
    /// It could not be read, or has an unknown format. The text is a whole sentence.
    File(String),
    /// It is not valid.
    Syntax { original: Arc<str>, mistake: Mistake },
}

impl Text {
    fn plain(kind: Kind, text: &Arc<str>) -> Self {
        Self {
            kind,
            original: Arc::clone(text),
            code: None,
            mapping: None,
            language: Language::JavaScript,
            calls: OnceLock::new(),
        }
    }

    pub fn code(&self) -> &str {
        self.code.as_deref().unwrap_or(&self.original)
    }

    /// Returns the number of lines above the text in the generated source.
    pub fn lines_above(&self) -> u32 {
        u32::from(self.kind == Kind::CommonJs)
    }

    /// Returns the calls in the text, which are searched on first use.
    pub fn calls(&self) -> &Calls {
        self.calls.get_or_init(|| Calls::new(&self.original, self.language))
    }
}

impl Default for Library {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

impl Library {
    /// Creates an empty library.
    pub fn new() -> Self {
        Self::with_environment(Vec::new())
    }

    /// Creates an empty library for runtimes whose scripts find these variables in `process.env`.
    pub fn with_environment(environment: Vec<Variable>) -> Self {
        Self::for_project(environment, None)
    }

    /// Creates an empty library like [`with_environment`](Self::with_environment), for modules that run where the project
    /// chooses. Without a `runtime`, all run in the embedded engine.
    pub fn for_project(environment: Vec<Variable>, runtime: Option<ProjectRuntime>) -> Self {
        Self(Arc::new(ModuleCache {
            environment,
            runtime,
            runtime_fault: OnceLock::new(),
            idle: Mutex::default(),
            choices: Mutex::default(),
            files: Mutex::new(Arc::new(Files::new())),
            texts: Mutex::default(),
        }))
    }

    /// Returns where the code of the project runs, if it may run outside of the embedded engine.
    pub(crate) fn runtime(&self) -> Option<ProjectRuntime> {
        self.0.runtime.clone()
    }

    /// Returns the runtime for the module at `path`.
    pub(crate) fn choice_for(&self, path: &Path) -> RuntimeChoice {
        match &self.0.runtime {
            None => RuntimeChoice::Embedded,
            Some(ProjectRuntime { choice: RuntimeChoice::Auto, .. }) => {
                lock(&self.0.choices).get(path).copied().unwrap_or_default()
            }
            Some(ProjectRuntime { choice, .. }) => *choice,
        }
    }

    /// Returns the reason why the user's runtime cannot run code, if a module needed it.
    pub fn runtime_fault(&self) -> Option<&str> {
        self.0.runtime_fault.get().map(String::as_str)
    }

    /// Remembers the reason why the user's runtime cannot run code, and returns it as an error.
    pub(crate) fn refuse_runtime(&self, reason: String) -> ScriptError {
        ScriptError::NoRuntime(self.0.runtime_fault.get_or_init(|| reason).clone())
    }

    /// Takes a process that waits for a module to load.
    pub(crate) fn take_idle(&self) -> Option<Pipes> {
        lock(&self.0.idle).pop()
    }

    /// Keeps a process that can load another module.
    pub(crate) fn keep_idle(&self, pipes: Pipes) {
        lock(&self.0.idle).push(pipes);
    }

    /// Ends the processes that wait for modules to load.
    pub fn end_idle(&self) {
        let idle = std::mem::take(&mut *lock(&self.0.idle));
        drop(idle);
    }

    /// Returns `true` if the module at `path` is known to run outside of the embedded engine.
    pub fn is_external(&self, path: &Path) -> bool {
        matches!(self.choice_for(path), RuntimeChoice::External(_))
    }

    /// Remembers the runtime that is right for the module at `path`.
    pub(crate) fn choose(&self, path: &Path, choice: RuntimeChoice) {
        lock(&self.0.choices).insert(path.to_path_buf(), choice);
    }

    pub(crate) fn environment(&self) -> &[Variable] {
        &self.0.environment
    }

    /// Clears the cache, so that the next imports resolve and read their files again.
    pub fn forget(&self) {
        *lock(&self.0.files) = Arc::new(Files::new());
        lock(&self.0.texts).clear();
        lock(&self.0.choices).clear();
    }

    /// Returns the files that the module at `path` imports, directly or indirectly. Packages and missing files are
    /// omitted.
    pub fn imports(&self, path: &Path) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut left = vec![path.to_path_buf()];
        while let Some(module) = left.pop() {
            let Ok(text) = self.read(&module, false).or_else(|_| self.read(&module, true)) else { continue };
            let directory = module.parent().unwrap_or(Path::new("/"));
            let written = typescript::imported(&text.original, text.language);
            for file in written.iter().filter_map(|file| self.resolve(directory, file, ImportKind::Import).ok()) {
                if !file.iter().any(|part| part == "node_modules") && found.insert(file.clone()) {
                    left.push(file);
                }
            }
        }
        found
    }

    pub(crate) fn resolve(
        &self,
        directory: &Path,
        specifier: &str,
        import_kind: ImportKind,
    ) -> Result<PathBuf, Unresolved> {
        let files = Arc::clone(&lock(&self.0.files));
        files.resolve(directory, specifier, import_kind)
    }

    /// Returns the module in the file at `path`, which must be a real path, for the embedded engine or the external
    /// runtime.
    pub(crate) fn read(&self, path: &Path, is_external: bool) -> Result<Arc<Text>, Unreadable> {
        let key = (path.to_path_buf(), is_external);
        if let Some(known) = lock(&self.0.texts).get(&key) {
            return Ok(Arc::clone(known));
        }
        let text = contents(path).map_err(Unreadable::File)?;
        let target = match is_external {
            true => Target::External(lock(&self.0.files).clone().compiler(path)),
            false => Target::Embedded,
        };
        let text = Arc::new(prepare(path, &text, &target)?);
        lock(&self.0.texts).insert(key, Arc::clone(&text));
        Ok(text)
    }
}

/// Reads the text of a module without its byte order mark: a regular file of limited size with a file extension. The
/// error is a whole sentence.
fn contents(path: &Path) -> Result<String, String> {
    let shown = path.display();
    if path.extension().is_none() {
        return Err(format!("`{shown}` is not a module: its name has no extension such as `.js`"));
    }
    let cannot = |error: std::io::Error| format!("cannot read `{shown}`: {error}");
    // Anything other than a regular file, such as a device or a pipe, must not even be opened.
    if !std::fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(format!("`{shown}` is not a file"));
    }
    let mut text = String::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(MAX_MODULE_BYTES + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > MAX_MODULE_BYTES {
        return Err(format!("`{shown}` is too large for a module: more than {} MiB", MAX_MODULE_BYTES >> 20));
    }
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Locks `mutex` even after a panic on another thread, because the maps are always in a valid state.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prepares source text for the engine. Its format is determined by the file name, then its package, then its content.
pub(crate) fn prepare(path: &Path, text: &str, target: &Target) -> Result<Text, Unreadable> {
    let text: Arc<str> = text.into();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let plain = |kind| Text::plain(kind, &text);
    match extension {
        "json" => Ok(plain(Kind::Json)),
        "mjs" | "cjs" | "js" | "" => {
            if let Target::External(_) = target {
                // Node.js does not say where the mistake is.
                typescript::check_syntax(&text, Language::JavaScript)
                    .map_err(|mistake| Unreadable::Syntax { original: Arc::clone(&text), mistake })?;
            }
            Ok(plain(match extension {
                "mjs" => Kind::Module,
                "cjs" => Kind::CommonJs,
                _ => kind_of_js(path, &text),
            }))
        }
        "jsx" | "tsx" if matches!(target, Target::Embedded) => {
            Err(Unreadable::File(format!("`{}`: JSX is not supported", path.display())))
        }
        "ts" | "mts" | "cts" | "jsx" | "tsx" => {
            let language = Language::from_path(path).unwrap_or(Language::TypeScript);
            let compiler = match target {
                Target::Embedded => None,
                Target::External(compiler) => Some(compiler),
            };
            let stripped = typescript::strip(&text, path, language, compiler)
                .map_err(|mistake| Unreadable::Syntax { original: Arc::clone(&text), mistake })?;
            // `export =` and `import x = require()` are CommonJS, which is visible only in the compiled code.
            let seems_commonjs = extension == "ts" && is_commonjs(&stripped.code);
            let commonjs = extension == "cts" || (seems_commonjs && !typescript::is_module(&stripped.code));
            Ok(Text {
                code: Some(stripped.code),
                mapping: Some(stripped.mapping),
                language,
                ..Text::plain(if commonjs { Kind::CommonJs } else { Kind::Module }, &text)
            })
        }
        other => Err(Unreadable::File(format!(
            "`{}` is not a module: the `.{other}` extension is not supported",
            path.display()
        ))),
    }
}

fn kind_of_js(path: &Path, text: &str) -> Kind {
    match package_type(path).as_deref() {
        Some("module") => Kind::Module,
        Some("commonjs") => Kind::CommonJs,
        _ if typescript::is_module(text) => Kind::Module,
        _ => Kind::CommonJs,
    }
}

fn is_commonjs(text: &str) -> bool {
    text.contains("module.exports") || text.contains("exports.") || text.contains("require(")
}

/// Returns the directory of the package that contains the module at `path`: that of the nearest `package.json`,
/// otherwise the module's own.
pub(crate) fn package_of(path: &Path) -> Option<&Path> {
    let package = path.ancestors().skip(1).find(|directory| directory.join("package.json").is_file());
    package.or_else(|| path.parent())
}

/// Returns the `type` in the nearest `package.json`, which applies to `.js` files.
fn package_type(path: &Path) -> Option<String> {
    for directory in path.ancestors().skip(1) {
        let Ok(text) = contents(&directory.join("package.json")) else {
            if directory.file_name().is_some_and(|name| name == "node_modules") {
                return None;
            }
            continue;
        };
        let package: serde_json::Value = serde_json::from_str(&text).ok()?;
        return package.get("type")?.as_str().map(str::to_owned);
    }
    None
}
