//! Runs the regular expressions and the code in expectations in the embedded engine.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use expect::{Answer, Argument, Function, Invalid, Naming, Pattern, Strategy, Trouble, context};
use model::nearest;
use script::{Expression, HostFunction, Key, Library, Native, Options, Reference, Regex, Runtime, ScriptError, Value};
use serde_json::Value as Json;

use crate::functions::{self, Functions};

/// CPU time limit for one expression.
const EXPRESSION_BUDGET: Duration = Duration::from_secs(1);
/// CPU time limit for one function call, or for loading its module, unless another is given.
const CALL_BUDGET: Duration = Duration::from_secs(5);
/// Number of compiled expressions that a thread keeps.
const MAX_CACHED: usize = 512;
/// Number of idle runtimes that a thread keeps.
const IDLE_RUNTIMES: usize = 32;

/// Embedded script engine for expectations. Cheap to clone. Threads have their own engines and share only the sources
/// of modules.
#[derive(Debug, Clone)]
pub struct Scripts {
    /// Id shared by all clones. Modules that one clone has loaded are valid for all of them, and for no others.
    id: u64,
    library: Library,
    shown_from: PathBuf,
    /// True if an expectation that was read with it contains the user's code.
    code: Arc<AtomicBool>,
    /// Functions of the program that uses trialrun.
    functions: Option<Arc<dyn Functions>>,
    call_budget: Duration,
}

impl Scripts {
    /// Creates an engine whose messages show paths relative to `shown_from`.
    pub fn new(shown_from: impl Into<PathBuf>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            id,
            library: Library::new(),
            shown_from: shown_from.into(),
            code: Arc::default(),
            functions: None,
            call_budget: CALL_BUDGET,
        }
    }

    /// Sets the CPU time limit for one function call, or for loading its module. It is 5 seconds by default.
    pub fn with_call_budget(self, call_budget: Duration) -> Self {
        Self { call_budget, ..self }
    }

    /// Adds functions of the program that uses trialrun.
    pub fn with_functions(self, functions: Option<Arc<dyn Functions>>) -> Self {
        Self { functions, ..self }
    }

    /// Returns the functions of the program that uses trialrun.
    pub(crate) fn functions(&self) -> Option<&Arc<dyn Functions>> {
        self.functions.as_ref()
    }

    /// Returns the operators that are functions of the program that uses trialrun.
    pub fn operators(&self) -> Vec<(String, Function)> {
        self.functions.iter().flat_map(|functions| functions::operators(&**functions)).collect()
    }

    /// Returns the same engine for one expectation, and a flag that becomes true if the expectation contains the
    /// user's code.
    pub(crate) fn for_one(&self) -> (Self, Arc<AtomicBool>) {
        let code = Arc::<AtomicBool>::default();
        (Self { code: Arc::clone(&code), ..self.clone() }, code)
    }

    /// Runs `work` with one of this thread's runtimes, for the code of `module` or, without one, for expressions.
    /// Creates a runtime if none is idle, since a function may call something that needs another.
    fn with<T>(
        &self,
        module: Option<&Path>,
        work: impl FnOnce(&mut LoadedScripts) -> Result<T, ScriptError>,
    ) -> Result<T, ScriptError> {
        let mut loaded = match take(self.id, module) {
            Some(loaded) => loaded,
            None => LoadedScripts::open(self, module.is_none())?,
        };
        let done = work(&mut loaded);
        if loaded.runtime.is_usable() {
            put(self.id, module, loaded);
        }
        done
    }
}

impl Default for Scripts {
    fn default() -> Self {
        Self::new("/")
    }
}

/// Idle runtime, with its engine id and its module.
struct IdleRuntime {
    scripts: u64,
    module: Option<PathBuf>,
    loaded: LoadedScripts,
}

thread_local! {
    /// Idle runtimes, the most recently used one last. Expressions have their own. The language's built-in objects
    /// cannot be changed in any of them: a verdict must not depend on what another case's expression or operator did
    /// earlier.
    static IDLE: RefCell<Vec<IdleRuntime>> = RefCell::default();
}

/// Takes an idle runtime, if there is one.
fn take(scripts: u64, module: Option<&Path>) -> Option<LoadedScripts> {
    IDLE.with_borrow_mut(|all| {
        // Runtimes from another plan have loaded files as they were then.
        all.retain(|idle| idle.scripts == scripts);
        let index = all.iter().rposition(|idle| idle.module.as_deref() == module)?;
        Some(all.remove(index).loaded)
    })
}

/// Keeps a runtime in place of the least recently used one.
fn put(scripts: u64, module: Option<&Path>, loaded: LoadedScripts) {
    IDLE.with_borrow_mut(|all| {
        if all.len() >= IDLE_RUNTIMES {
            all.remove(0);
        }
        all.push(IdleRuntime { scripts, module: module.map(Path::to_owned), loaded });
    });
}

/// Runtime with the functions and expressions that it has compiled.
struct LoadedScripts {
    runtime: Runtime,
    functions: HashMap<Arc<str>, script::Function>,
    expressions: HashMap<String, Expression>,
    is_frozen: bool,
}

impl LoadedScripts {
    fn open(scripts: &Scripts, frozen: bool) -> Result<Self, ScriptError> {
        let mut options = Options::new(&scripts.shown_from);
        options.frozen = frozen;
        options.shown_from.clone_from(&scripts.shown_from);
        options.library = scripts.library.clone();
        let runtime = Runtime::new(options)?;
        Ok(Self { runtime, functions: HashMap::new(), expressions: HashMap::new(), is_frozen: frozen })
    }

    fn expression(&mut self, text: &str) -> Result<Expression, ScriptError> {
        if let Some(known) = self.expressions.get(text) {
            return Ok(known.clone());
        }
        let expression = Expression::parse(text).map_err(|error| ScriptError::Failed(error.message))?;
        if self.expressions.len() >= MAX_CACHED {
            self.expressions.clear();
        }
        self.expressions.insert(text.to_owned(), expression.clone());
        Ok(expression)
    }

    fn function(&mut self, id: &Arc<str>, budget: Duration) -> Result<script::Function, ScriptError> {
        if let Some(known) = self.functions.get(id) {
            return Ok(known.clone());
        }
        let found = self.find(&Address::from_id(id), budget)?;
        // A package may extend the built-in objects while it is loaded, but a call must not.
        if !self.is_frozen {
            self.runtime.freeze()?;
            self.is_frozen = true;
        }
        self.functions.insert(Arc::clone(id), found.clone());
        Ok(found)
    }

    fn find(&mut self, address: &Address<'_>, budget: Duration) -> Result<script::Function, ScriptError> {
        let value = match address {
            Address::Reference { text, name, directory } => {
                let reference = Reference::parse(text).map_err(|error| ScriptError::Failed(error.message))?;
                let bare = name.strip_prefix('$').unwrap_or(name);
                self.runtime.refer(&reference, directory, bare, budget)?.value
            }
            Address::SourceLocation { module, path } => {
                let file = Path::new(module);
                let loaded = self.runtime.import(module, file.parent().unwrap_or(file), budget)?;
                self.runtime.at(&loaded, &steps(path))?.unwrap_or_default()
            }
        };
        match value {
            Value::Function(function) => Ok(function),
            other => {
                let what = match address {
                    Address::Reference { text, name, .. } => format!("the operator {name} at `{text}`"),
                    Address::SourceLocation { path, .. } => format!("`{path}`"),
                };
                Err(ScriptError::Failed(format!("{what} is not a function but {}", other.kind_name())))
            }
        }
    }
}

/// Location of a function.
enum Address<'a> {
    /// Reference written by the user, for the operator called `name`.
    Reference { text: &'a str, name: &'a str, directory: &'a Path },
    /// Path in the exports of a module.
    SourceLocation { module: &'a str, path: &'a str },
}

/// Separator between the parts of an address. It cannot occur in a path or a name.
const APART: char = '\u{0}';

impl<'a> Address<'a> {
    fn new(reference: &'a str, name: &'a str, directory: &'a Path) -> Self {
        match split_place(reference) {
            Some((module, path)) if name.is_empty() => Self::SourceLocation { module, path },
            _ => Self::Reference { text: reference, name, directory },
        }
    }

    fn from_id(id: &'a str) -> Self {
        let mut parts = id.splitn(3, APART);
        let (text, name, directory) = (parts.next(), parts.next(), parts.next());
        let directory = Path::new(directory.unwrap_or_default());
        Self::new(text.unwrap_or_default(), name.unwrap_or_default(), directory)
    }

    /// Returns the module that has the function, as far as it can be determined without loading it.
    fn module(&self) -> PathBuf {
        match self {
            Self::Reference { text, directory, .. } => {
                directory.join(text.split_once('#').map_or(*text, |(module, _)| module))
            }
            Self::SourceLocation { module, .. } => PathBuf::from(module),
        }
    }

    fn id(reference: &str, name: &str, directory: &Path) -> Arc<str> {
        format!("{reference}{APART}{name}{APART}{}", directory.display()).into()
    }
}

/// Splits a reference into the module and the path in it. Either may contain a `#`, so the one after the module's file
/// extension counts.
fn split_place(reference: &str) -> Option<(&str, &str)> {
    const ENDINGS: [&str; 6] = [".ts#", ".js#", ".mts#", ".mjs#", ".cts#", ".cjs#"];
    let ends = ENDINGS.iter().filter_map(|ending| reference.find(ending).map(|at| at + ending.len() - 1));
    match ends.min() {
        Some(at) => Some((&reference[..at], &reference[at + 1..])),
        None => reference.rsplit_once('#'),
    }
}

/// Returns the steps of `[3].expect.output`, from the default export. A path that begins with a name begins with that
/// export.
fn steps(path: &str) -> Vec<Key> {
    let mut steps = Vec::new();
    if path.is_empty() || path.starts_with('[') {
        steps.push(Key::Name("default".into()));
    }
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some((inside, after)) = rest.strip_prefix('[').and_then(|inside| bracket(inside)) {
            steps.push(inside);
            rest = after;
            continue;
        }
        let end =
            rest.char_indices().skip(1).find(|(_, c)| matches!(c, '.' | '[')).map_or(rest.len(), |(offset, _)| offset);
        let (name, after) = rest.split_at(end);
        steps.push(Key::Name(name.to_owned()));
        rest = after;
    }
    steps
}

/// Parses `3]…` or `"a key"]…`.
fn bracket(inside: &str) -> Option<(Key, &str)> {
    let mut values = serde_json::Deserializer::from_str(inside).into_iter::<Json>();
    let key = match values.next()?.ok()? {
        Json::String(name) => Key::Name(name),
        Json::Number(number) => Key::Index(usize::try_from(number.as_u64()?).ok()?),
        _ => return None,
    };
    let after = inside.get(values.byte_offset()..)?;
    Some((key, after.strip_prefix(']')?))
}

impl Pattern for Compiled {
    fn is_match(&self, text: &str) -> Result<bool, String> {
        self.0.is_match(text).map_err(|error| error.to_string())
    }
}

/// Compiled regular expression of the engine.
#[derive(Debug)]
struct Compiled(Regex);

impl expect::Host for Scripts {
    fn regex(&self, source: &str, flags: &str) -> Result<Arc<dyn Pattern>, Invalid> {
        match Regex::literal(source, flags) {
            Ok(regex) => Ok(Arc::new(Compiled(regex))),
            Err(error) => {
                Err(Invalid { message: error.to_string(), range: None, help: error.help().map(str::to_owned) })
            }
        }
    }

    fn expression(&self, text: &str, names: &[&str]) -> Result<(), Invalid> {
        self.code.store(true, Ordering::Relaxed);
        let expression = Expression::parse(text).map_err(|error| Invalid {
            message: format!("this is not a JavaScript expression: {}", error.message),
            range: Some(error.range),
            help: error.help,
        })?;
        if let Some(range) = expression.assignment() {
            let message = "this sets a variable instead of comparing it".to_owned();
            return Err(Invalid { message, range: Some(range), help: Some("write `===` in place of `=`".to_owned()) });
        }
        let free = expression.free_names();
        let Some(unknown) = free.iter().find(|free| !names.contains(&free.name.as_str())) else { return Ok(()) };
        let near = nearest(&unknown.name, names.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("an expression has {}", names.join(", ")),
        };
        let message = format!("there is no `{}` in an expression", unknown.name);
        Err(Invalid { message, range: Some(unknown.range.clone()), help: Some(help) })
    }

    fn evaluate(&self, text: &str, scope: &[(&str, Option<&Json>)]) -> Result<Option<Json>, Trouble> {
        let lookup = |name: &str| {
            let (_, value) = scope.iter().find(|(known, _)| *known == name)?;
            Some(Cow::Owned(value.map_or(Value::Undefined, Value::from)))
        };
        let done = self.with(None, |loaded| {
            let expression = loaded.expression(text)?;
            loaded.runtime.evaluate(&expression, &lookup, EXPRESSION_BUDGET)
        });
        done.map(|value| json(&value)).map_err(|error| trouble(&error))
    }

    fn function(&self, reference: &str, name: &str, directory: &Path) -> Result<Function, Invalid> {
        self.code.store(true, Ordering::Relaxed);
        let id = Address::id(reference, name, directory);
        if let Address::Reference { text, .. } = Address::new(reference, name, directory) {
            Reference::parse(text).map_err(|error| Invalid {
                message: error.message,
                range: None,
                help: error.help,
            })?;
        }
        let described = self.with(Some(&Address::from_id(&id).module()), |loaded| {
            let function = loaded.function(&id, self.call_budget)?;
            let mut property = |name: &str| loaded.runtime.property(&function, name);
            Ok((function.length(), property("virtual")?, property("strategy")?, property("expects")?))
        });
        let (length, naming, strategy, expects) = described.map_err(|error| invalid(&error))?;
        let strategy = match strategy.as_str() {
            None => None,
            Some(written) => Some(Strategy::named(written).ok_or_else(|| Invalid {
                message: format!("the operator {name} has the unknown strategy `{written}`"),
                range: None,
                help: Some("the strategies are `weighted` and `max`".into()),
            })?),
        };
        let expects_list = match &expects {
            Value::String(kind) => kind == "array",
            Value::List(kinds) => kinds.iter().any(|kind| kind.as_str() == Some("array")),
            _ => false,
        };
        let naming = match &naming {
            Value::Bool(false) => Naming::Physical,
            Value::String(template) => Naming::Template(template.as_str().into()),
            _ => Naming::Virtual,
        };
        Ok(Function { id, length, naming, strategy, expects_list })
    }

    fn call(
        &self,
        function: &Function,
        arguments: &[Argument<'_>],
        answer: &mut Answer<'_>,
    ) -> Result<Option<Json>, Trouble> {
        if let (Some(name), Some(functions)) = (functions::operator(&function.id), &self.functions) {
            return match functions.compare(name, values_of(arguments)).map_err(Trouble::Thrown)? {
                // A function that forgets to return says nothing about the agent.
                Json::Null => Err(Trouble::Thrown("it returned nothing".to_owned())),
                Json::Array(_) => Err(Trouble::Thrown("it returned a list".to_owned())),
                answer => Ok(Some(answer)),
            };
        }
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        let mut host = |request: script::Request| {
            let asked: Vec<Option<Json>> = request.arguments.iter().map(json).collect();
            answer(&asked).map(|answer| Value::from(&answer))
        };
        let done = self.with(Some(&Address::from_id(&function.id).module()), |loaded| {
            let found = loaded.function(&function.id, self.call_budget)?;
            loaded.runtime.call(&found, &arguments, self.call_budget, &mut host)
        });
        done.map(|value| json(&value)).map_err(|error| trouble(&error))
    }
}

/// Returns what an operator of the program gets: the values, and the options if there are any.
fn values_of(arguments: &[Argument<'_>]) -> Json {
    let mut values = serde_json::Map::new();
    let names = ["actual", "expected"].into_iter();
    for (argument, name) in arguments.iter().zip(names.chain(["options"])) {
        let value = match argument {
            Argument::Value(value) => *value,
            Argument::Fixture(entries) => {
                entries.iter().find(|(key, _)| *key == "$options").and_then(|(_, value)| *value)
            }
            Argument::Context(_) | Argument::Validate => None,
        };
        values.extend(value.map(|value| (name.to_owned(), value.clone())));
    }
    Json::Object(values)
}

fn argument(argument: &Argument<'_>) -> Value {
    let value = |value: &Option<&Json>| value.map_or(Value::Undefined, Value::from);
    match argument {
        Argument::Value(given) => value(given),
        Argument::Fixture(values) => {
            let mut entries: Vec<(String, Value)> =
                values.iter().map(|(key, given)| ((*key).to_owned(), value(given))).collect();
            entries.push(("$validate".into(), Value::HostFunction(HostFunction::new("validate"))));
            Value::Map(entries)
        }
        Argument::Context(values) => context_value(values),
        Argument::Validate => Value::HostFunction(HostFunction::new("validate")),
    }
}

/// Returns the data and the functions of a context. A context created by one of the functions has them too.
fn context_value(values: &Json) -> Value {
    let mut entries = match Value::from(values) {
        Value::Map(entries) => entries,
        _ => Vec::new(),
    };
    let mut add = |name: &str, run: fn(&Json, &[Value]) -> Value| {
        let values = values.clone();
        let native = Native::new(name, move |arguments: &[Value]| Ok(run(&values, arguments)));
        entries.push((name.to_owned(), Value::Native(native)));
    };
    add("createSubContext", |values, arguments| {
        let path = arguments.first().and_then(Value::as_str).unwrap_or_default();
        context_value(&context::sub(values, path, argument_json(arguments, 1).as_ref()))
    });
    add("createChildContext", |values, arguments| {
        let key = argument_json(arguments, 0).unwrap_or_default();
        let count = arguments.get(1).and_then(Value::as_number).unwrap_or_default().max(0.0) as usize;
        context_value(&context::child(values, &key, count, argument_json(arguments, 2).as_ref()))
    });
    add("distribute", |values, arguments| Value::from(&context::distribute(values, &list(arguments, 0))));
    add("aggregate", |values, arguments| {
        Value::from(&context::aggregate(values, &list(arguments, 0), &list(arguments, 1)))
    });
    Value::Map(entries)
}

fn argument_json(arguments: &[Value], index: usize) -> Option<Json> {
    arguments.get(index).and_then(json)
}

fn list(arguments: &[Value], index: usize) -> Vec<Json> {
    match argument_json(arguments, index) {
        Some(Json::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// Returns the value as JSON, or `None` for `undefined`.
fn json(value: &Value) -> Option<Json> {
    (!value.is_undefined()).then(|| value.to_json())
}

fn trouble(error: &ScriptError) -> Trouble {
    let message = match error.place() {
        Some(place) => format!("{error} ({place})"),
        None => error.to_string(),
    };
    match error {
        ScriptError::TimedOut { .. } | ScriptError::OutOfMemory { .. } | ScriptError::NeverSettled => {
            Trouble::Stopped(message)
        }
        _ => Trouble::Thrown(message),
    }
}

fn invalid(error: &ScriptError) -> Invalid {
    let message = match error.place() {
        Some(place) => format!("{error} ({place})"),
        None => error.to_string(),
    };
    Invalid { message, range: None, help: error.help().map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_path_is_split_from_its_module_after_the_extension() {
        assert_eq!(split_place("/a/b.ts#[\"a#b\"].f"), Some(("/a/b.ts", "[\"a#b\"].f")));
        assert_eq!(split_place("/a#b/c.mjs#f"), Some(("/a#b/c.mjs", "f")));
        assert_eq!(split_place("/a/b.ts"), None);
    }

    #[test]
    fn a_new_plan_reloads_files_and_the_number_of_kept_runtimes_is_limited() {
        use expect::Host as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("op.js");
        let judged = |scripts: &Scripts| {
            let function = scripts.function("./op.js", "$op", folder.path()).unwrap();
            scripts.call(&function, &[], &mut |_| Err(String::new())).unwrap()
        };
        std::fs::write(&file, "export default () => 1").unwrap();
        let first = Scripts::new(folder.path());
        assert_eq!(judged(&first), Some(Json::from(1)));
        std::fs::write(&file, "export default () => 2").unwrap();
        let again = first.clone();
        assert_eq!(judged(&again), judged(&first), "a plan reads each file only once");
        assert_eq!(judged(&Scripts::new(folder.path())), Some(Json::from(2)));
        let scripts = Scripts::new(folder.path());
        for name in 0..IDLE_RUNTIMES + 4 {
            let folder = PathBuf::from(name.to_string());
            put(scripts.id, Some(&folder), LoadedScripts::open(&scripts, false).unwrap());
        }
        assert_eq!(IDLE.with_borrow(Vec::len), IDLE_RUNTIMES);
        assert!(take(scripts.id, Some(Path::new("19"))).is_some());
        assert!(take(scripts.id, Some(Path::new("3"))).is_none());
    }

    #[test]
    fn a_property_path_in_a_module_is_parsed_step_by_step() {
        let name = |name: &str| Key::Name(name.to_owned());
        assert_eq!(steps("[3].expect.output"), [name("default"), Key::Index(3), name("expect"), name("output")]);
        assert_eq!(steps("fixtures[0][\"a b\"]"), [name("fixtures"), Key::Index(0), name("a b")]);
        assert_eq!(steps(""), [name("default")]);
    }
}
