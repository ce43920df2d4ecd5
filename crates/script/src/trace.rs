//! Converts errors from the engine to errors that point to the user's files.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use model::{Excerpt, Source};
use rquickjs::{Ctx, Object};

use crate::absent_names::{absence, is_absent_in_node};
use crate::error::{Frame, ScriptError};
use crate::module::library::Text;
use crate::module::node;
use crate::names::{BUILTIN, EXPRESSION};
use crate::realm::Realm;
use crate::source_map;
use crate::typescript::{self, Language};

/// Context of the work that failed.
pub(crate) struct Work<'w> {
    pub budget: Duration,
    pub memory: usize,
    /// Text of the expression, if it does not come from a file.
    pub expression: Option<&'w str>,
}

/// Converts `error`. After [`ScriptError::OutOfMemory`], the runtime must not be used again.
pub(crate) fn explain(ctx: &Ctx<'_>, realm: &Rc<Realm>, error: &rquickjs::Error, work: &Work<'_>) -> ScriptError {
    let thrown = match error {
        rquickjs::Error::Allocation => return ScriptError::OutOfMemory { limit: work.memory, place: None },
        rquickjs::Error::Exception => ctx.catch(),
        other => return ScriptError::engine(other),
    };
    if realm.deadline.was_reported() {
        let place = thrown.as_object().and_then(|error| stopped(realm, error, work));
        return ScriptError::TimedOut { budget: work.budget, place };
    }
    explain_thrown(ctx, realm, thrown, work)
}

pub(crate) fn explain_thrown<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    thrown: rquickjs::Value<'js>,
    work: &Work<'_>,
) -> ScriptError {
    // If there is no memory for an error object, the engine throws null.
    if thrown.is_null() && !throws_null(realm, work) {
        return ScriptError::OutOfMemory { limit: work.memory, place: None };
    }
    let Some(object) =
        thrown.as_object().filter(|object| object.is_error() || text(realm, object, "message").is_some())
    else {
        let message = message_of(ctx, realm, thrown);
        return ScriptError::Thrown { name: "Error".into(), message, place: None, stack: Vec::new() };
    };
    let name = text(realm, object, "name").unwrap_or_else(|| "Error".into());
    let message = text(realm, object, "message").unwrap_or_default();
    let steps = way(realm, object);
    if name == "InternalError" && message.contains("out of memory") {
        return ScriptError::OutOfMemory { limit: work.memory, place: place(realm, &steps, work) };
    }
    let known = realm.missing.borrow().iter().find(|(thrown, _)| *thrown == message).map(|(_, error)| error.clone());
    if let Some(error) = known {
        return error;
    }
    if name == "SyntaxError"
        && let Some(error) = syntax(realm, &message, &steps)
    {
        return error;
    }
    let place = place(realm, &steps, work);
    let unknown = message.strip_suffix(" is not defined").filter(|_| name == "ReferenceError");
    let unknown = unknown.map(|variable| variable.trim_matches('\''));
    let place = unknown.and_then(|variable| first_use(realm, &steps, variable, place.as_deref())).or(place);
    let stack = steps.iter().filter_map(|step| frame(realm, step, work)).collect();
    let line = place.as_deref().filter(|_| name == "TypeError");
    let missing = line.and_then(|place| absent(ctx, realm, place).or_else(|| absent_in_module(realm, place)));
    let message = match missing {
        Some(member) => format!("{member} is not available here ({message})"),
        None => plainer(&name, message),
    };
    ScriptError::Thrown { message, name, place, stack }
}

/// Returns `true` if `thrown` says that the script exceeded the memory, or needed something that scripts do not have.
pub(crate) fn is_limit<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, thrown: rquickjs::Value<'js>) -> bool {
    let work = Work { budget: Duration::ZERO, memory: realm.memory, expression: None };
    let error = explain_thrown(ctx, realm, thrown, &work);
    error.is_limit() || matches!(error, ScriptError::OutOfMemory { .. })
}

/// Global objects of the language and of the environment of which scripts often use a missing part.
const GLOBALS: [&str; 21] = [
    "Array",
    "ArrayBuffer",
    "Atomics",
    "BigInt",
    "Buffer",
    "Date",
    "Iterator",
    "JSON",
    "Math",
    "Number",
    "Object",
    "Promise",
    "Reflect",
    "RegExp",
    "String",
    "Symbol",
    "URL",
    "console",
    "crypto",
    "performance",
    "process",
];

/// Returns the part of a global object, such as `crypto.subtle`, that the line at `place` uses although it does not
/// exist here. A file that uses the name of the object for anything else may have a variable with that name.
fn absent(ctx: &Ctx<'_>, realm: &Realm, place: &Excerpt) -> Option<String> {
    let texts = realm.texts.borrow();
    let whole = texts.values().find(|text| text.original.contains(&*place.text))?;
    let is_shadowed = |root: &str| {
        let mut uses = words(&whole.original).filter(|(_, word)| *word == root);
        uses.any(|(index, word)| !whole.original[index + word.len()..].starts_with('.'))
    };
    words(&place.text).filter(|(_, word)| GLOBALS.contains(word)).find_map(|(index, root)| {
        let path = &place.text[index..];
        let path = &path[..path.find(|c: char| !is_of_name(c) && c != '.').unwrap_or(path.len())];
        let is_called = place.text[index + path.len()..].starts_with('(');
        let mut value = ctx.globals().get::<_, rquickjs::Value<'_>>(root).ok()?;
        let mut end = root.len();
        for member in path.split('.').skip(1) {
            value = value.as_object()?.get::<_, rquickjs::Value<'_>>(member).ok()?;
            end += 1 + member.len();
            if value.is_undefined() {
                let is_used = end < path.len() || is_called;
                return (is_used && !is_shadowed(root)).then(|| path[..end].to_owned());
            }
        }
        None
    })
}

/// Returns the member of a module of Node.js, such as `url.parse`, that the line at `place` uses although the module does
/// not have it here.
fn absent_in_module(realm: &Realm, place: &Excerpt) -> Option<String> {
    let texts = realm.texts.borrow();
    let whole = texts.values().find(|text| text.original.contains(&*place.text))?;
    let line = &*place.text;
    let modules =
        whole.original.split(['"', '\'']).filter_map(node::of_node).filter_map(|name| Some((name, node::names(name)?)));
    modules.filter(|(name, _)| !name.is_empty()).find_map(|(module, known)| {
        let is_absent = |name: &&str| !name.is_empty() && !known.contains(name);
        let quoted = ["", "node:"]
            .into_iter()
            .flat_map(|scheme| ['"', '\''].map(|mark| format!("{mark}{scheme}{module}{mark}")));
        quoted.into_iter().find_map(|quoted| {
            // `(await import("node:buffer")).Blob`
            let after = line.split_once(&format!("import({quoted})")).and_then(|(_, after)| after.split_once('.'));
            let is_whole = |between: &str| between.chars().all(|c| c == ')' || c == ' ' || is_of_name(c));
            let member = after.filter(|(between, _)| is_whole(between)).map(|(_, member)| first_name(member));
            if let Some(name) = member.filter(is_absent) {
                return Some(format!("{name} of `node:{module}`"));
            }
            whole.original.match_indices(&quoted).find_map(|(index, _)| {
                match bound(&whole.original[..index])? {
                    // `const { Blob } = await import("node:buffer")`
                    Binding::Members(names) => {
                        let used = |name: &&str| words(line).any(|(_, word)| word == *name);
                        let name = names.split(',').map(|name| first_name(name.trim())).filter(is_absent).find(used)?;
                        Some(format!("{name} of `node:{module}`"))
                    }
                    // `import url from "node:url"`
                    Binding::Whole(root) => words(line).filter(|(_, word)| *word == root).find_map(|(index, _)| {
                        let member = line[index + root.len()..].strip_prefix('.').map(first_name);
                        member.filter(is_absent).map(|member| format!("{root}.{member}"))
                    }),
                }
            })
        })
    })
}

/// Names that are bound to a module.
enum Binding<'t> {
    /// The module itself, or its default export.
    Whole(&'t str),
    /// Members, in the source of a pattern.
    Members(&'t str),
}

/// Returns the names that a declaration binds to the module whose specifier follows `before`.
fn bound(before: &str) -> Option<Binding<'_>> {
    let before = before.trim_end();
    if let Some(imported) = before.strip_suffix("from") {
        let names = imported.rsplit_once("import")?.1.trim();
        if names.contains(['"', '\'', ';']) {
            return None;
        }
        let root =
            first_name(names.strip_prefix('*').map_or(names, |rest| rest.trim().trim_start_matches("as").trim()));
        // The engine itself reports named imports that do not exist.
        return (!root.is_empty()).then_some(Binding::Whole(root));
    }
    let value = before.strip_suffix("import(")?.trim_end();
    let value = value.strip_suffix("await")?.trim_end_matches(|c: char| c == '(' || c.is_whitespace());
    let target = value.strip_suffix('=')?.trim_end();
    if let Some(pattern) = target.strip_suffix('}') {
        return Some(Binding::Members(pattern.rsplit_once('{')?.1));
    }
    target.rsplit(|c| !is_of_name(c)).next().filter(|root| !root.is_empty()).map(Binding::Whole)
}

/// Returns the name at the beginning of `text`.
fn first_name(text: &str) -> &str {
    &text[..text.find(|c| !is_of_name(c)).unwrap_or(text.len())]
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Returns the words of `text` that are not members of another value, with their positions.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut index = 0;
    text.split_inclusive(|c: char| !is_of_name(c)).filter_map(move |piece| {
        let start = index;
        index += piece.len();
        let word = piece.trim_end_matches(|c: char| !is_of_name(c));
        (!word.is_empty() && !text[..start].ends_with('.')).then_some((start, word))
    })
}

/// Returns `true` if the text of a script contains a `throw null`, which is rare. Null then does not mean that memory
/// ran out.
fn throws_null(realm: &Realm, work: &Work<'_>) -> bool {
    let says_so = |text: &str| {
        let after = ["throw", "reject"].into_iter().flat_map(|word| text.match_indices(word));
        let mut after = after.map(|(index, word)| text[index + word.len()..].trim_start_matches([' ', '\t', '(']));
        after.any(|thrown| thrown.starts_with("null"))
    };
    work.expression.is_some_and(says_so) || realm.texts.borrow().values().any(|text| says_so(&text.original))
}

fn text(realm: &Realm, object: &Object<'_>, key: &str) -> Option<String> {
    let value = object.get::<_, rquickjs::Value<'_>>(key).ok().filter(rquickjs::Value::is_string)?;
    crate::convert::text(object.ctx(), realm, value).ok()
}

/// Returns the text of a thrown value that is not an error, or its JSON.
fn message_of<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, thrown: rquickjs::Value<'js>) -> String {
    match crate::convert::from_script(ctx, realm, thrown) {
        Ok(crate::Value::String(text)) => text,
        Ok(crate::Value::Undefined) => "undefined".into(),
        Ok(value) => value.to_json().to_string(),
        Err(_) => {
            ctx.catch();
            "a value that is not an error".into()
        }
    }
}

/// Explains the restrictions of scripts in a message about a name that exists in other environments.
fn plainer(name: &str, message: String) -> String {
    let missing = message.strip_suffix(" is not defined").filter(|_| name == "ReferenceError");
    let Some(missing) = missing.map(|missing| missing.trim_matches('\'')) else { return message };
    match absence(missing) {
        Some(reason) => format!("{missing} is not available here: {reason}"),
        None => message,
    }
}

/// Stack frame as written by the engine: 1-based, with the column in bytes.
struct Step {
    function: Option<String>,
    file: String,
    line: u32,
    column: u32,
    /// True for a location in a source text that could not be compiled, rather than in a function that was called.
    is_compiling: bool,
}

fn steps(stack: &str) -> Vec<Step> {
    stack.lines().filter_map(step).collect()
}

/// Returns the stack of an error, innermost frame first.
fn way(realm: &Realm, error: &Object<'_>) -> Vec<Step> {
    steps(&text(realm, error, "stack").unwrap_or_default())
}

/// Returns the location of the innermost frame in the user's source.
fn place(realm: &Realm, way: &[Step], work: &Work<'_>) -> Option<Box<Excerpt>> {
    way.iter().find_map(|step| excerpt(realm, step, work)).map(Box::new)
}

/// Returns the first use of `variable`, which nothing declares, if the line at `place` does not contain it: for a call in
/// `export default`, the engine knows only the beginning of the module.
fn first_use(realm: &Realm, way: &[Step], variable: &str, place: Option<&Excerpt>) -> Option<Box<Excerpt>> {
    if words(&place?.text).any(|(_, word)| word == variable) {
        return None;
    }
    let (step, text) = way.iter().find_map(|step| Some((step, realm.texts.borrow().get(&step.file).cloned()?)))?;
    let used = text.calls().first_use(variable)?;
    Some(Box::new(Source::new(realm.shown(Path::new(&step.file)), &*text.original).excerpt(used)))
}

/// Returns the location at which a script was stopped. The engine knows only calls. For a loop, it knows the call
/// before it.
fn stopped(realm: &Realm, error: &Object<'_>, work: &Work<'_>) -> Option<Box<Excerpt>> {
    let stack = text(realm, error, "stack").unwrap_or_default();
    // If the innermost frame is not in the user's text, a function of the engine was running.
    let innermost = stack.lines().next().and_then(step);
    let in_loop = innermost.and_then(|step| in_loop(realm, &step)).map(Box::new);
    in_loop.or_else(|| place(realm, &steps(&stack), work))
}

/// Returns the loop in which a function that was last seen at `step` may be. It is searched in the text that the
/// engine ran, because the mapping to TypeScript does not contain the beginnings of functions.
fn in_loop(realm: &Realm, step: &Step) -> Option<Excerpt> {
    let text: Arc<Text> = realm.texts.borrow().get(&step.file).cloned()?;
    let line = step.line.checked_sub(1)?.checked_sub(text.lines_above())?;
    let code = text.code();
    let passed = source_map::byte(code, line, step.column.saturating_sub(1));
    // For a function without calls, the engine knows only its line.
    let by_line = || {
        let line = passed..source_map::byte(code, line, u32::MAX);
        typescript::loop_of_function_on(code, Language::JavaScript, line)
    };
    let known = typescript::loop_after(code, Language::JavaScript, passed);
    let mut at = known.or_else(|| if step.column == 1 { by_line() } else { None })?;
    if let Some(mapping) = &text.mapping {
        let line = u32::try_from(code[..at].matches('\n').count()).ok()?;
        at = source_map::offset(&text.original, mapping.original(source_map::position(code, line, at))?);
    }
    let shown = realm.shown(Path::new(&step.file));
    Some(Source::new(shown, &*text.original).excerpt(source_map::word(&text.original, at)))
}

/// Returns the location in the user's text at which the error with this `stack` was thrown.
pub(crate) fn thrown(realm: &Realm, stack: &str) -> Option<Excerpt> {
    let work = Work { budget: Duration::ZERO, memory: 0, expression: None };
    place(realm, &steps(stack), &work).map(|place| *place)
}

/// Returns `true` if a module was generated by the program rather than read from a file.
fn is_made_up(file: &str) -> bool {
    let name = Path::new(file).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(".trialrun-") && name.ends_with(".mjs"))
}

/// Parses `at name (file:1:2)` or `at file:1:2`.
fn step(line: &str) -> Option<Step> {
    let rest = line.trim_start().strip_prefix("at ")?;
    let called = rest.strip_suffix(')').and_then(|rest| rest.split_once(" ("));
    let (function, place) = called.map_or((None, rest), |(function, place)| (Some(function), place));
    let (place, column) = place.rsplit_once(':')?;
    let (file, line) = place.rsplit_once(':')?;
    let function = function.filter(|name| !name.starts_with('<')).map(str::to_owned);
    let (line, column) = (line.parse().ok()?, column.parse().ok()?);
    Some(Step { function, file: file.to_owned(), line, column, is_compiling: called.is_none() })
}

/// Position of a frame in the user's text.
struct Origin {
    text: Arc<str>,
    shown: String,
    /// Byte offset.
    at: usize,
}

fn origin(realm: &Realm, step: &Step, work: &Work<'_>) -> Option<Origin> {
    let Origin { text, shown, at } = original(realm, step, work)?;
    let known = realm.texts.borrow().get(&step.file).map(|text| text.language);
    let at = thrown_at(&text, known.unwrap_or(Language::JavaScript), at);
    Some(Origin { text, shown, at })
}

/// Like `origin`, but exactly at the engine's position.
fn original(realm: &Realm, step: &Step, work: &Work<'_>) -> Option<Origin> {
    let (line, column) = (step.line.checked_sub(1)?, step.column.saturating_sub(1));
    if step.file == EXPRESSION {
        // The text is below the line that declares its names.
        let text: Arc<str> = work.expression?.into();
        let at = source_map::byte(&text, line.checked_sub(1)?, column);
        return Some(Origin { at, shown: EXPRESSION.to_owned(), text });
    }
    let known: Option<Arc<Text>> = realm.texts.borrow().get(&step.file).cloned();
    let text = known?;
    let line = line.checked_sub(text.lines_above())?;
    let mut at = source_map::byte(text.code(), line, column);
    if let Some(mapping) = &text.mapping {
        let generated = source_map::position(text.code(), line, at);
        at = source_map::offset(&text.original, mapping.original(generated)?);
    }
    Some(Origin { at, shown: realm.shown(Path::new(&step.file)), text: Arc::clone(&text.original) })
}

/// Returns the location of the innermost frame of `stack` in the user's source.
pub(crate) fn site(realm: &Realm, stack: &str) -> Option<Site> {
    let work = Work { budget: Duration::ZERO, memory: 0, expression: None };
    stack.lines().filter_map(step).find_map(|step| {
        let text = Arc::clone(realm.texts.borrow().get(&step.file)?);
        let Origin { shown, at, .. } = original(realm, &step, &work)?;
        let mut sources = realm.sources.borrow_mut();
        let source = sources.entry(step.file).or_insert_with(|| Source::new(shown, &*text.original));
        Some(Site { source: Arc::clone(source), text, at })
    })
}

/// Location in the user's source.
pub(crate) struct Site {
    pub text: Arc<Text>,
    pub source: Arc<Source>,
    /// Byte offset.
    pub at: usize,
}

/// Moves from the end of `throw new Error(…)`, which the engine reports, to its beginning, where readers look for the
/// error.
fn thrown_at(text: &str, language: Language, index: usize) -> usize {
    /// Maximum distance to the beginning of a statement, in bytes.
    const NEAR: usize = 4_000;
    let from = text.floor_char_boundary(index.saturating_sub(NEAR));
    if !text[from..index].contains("throw") {
        return index;
    }
    typescript::throw_around(text, language, index).unwrap_or(index)
}

fn excerpt(realm: &Realm, step: &Step, work: &Work<'_>) -> Option<Excerpt> {
    let Origin { text, shown, at } = origin(realm, step, work)?;
    Some(Source::new(shown, &*text).excerpt(source_map::word(&text, at)))
}

fn frame(realm: &Realm, step: &Step, work: &Work<'_>) -> Option<Frame> {
    if is_made_up(&step.file) {
        return None;
    }
    let Origin { text, shown, at } = origin(realm, step, work)?;
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    Some(Frame {
        function: step.function.clone(),
        file: shown,
        line: text[..line_start].matches('\n').count() + 1,
        column: text[line_start..at].chars().count() + 1,
    })
}

/// Converts a syntax error that the engine found in a module. The parser explains most of them better.
fn syntax(realm: &Realm, message: &str, steps: &[Step]) -> Option<ScriptError> {
    if let Some(error) = no_export(realm, message) {
        return Some(error);
    }
    let step = steps.first().filter(|step| step.is_compiling)?;
    let text = realm.texts.borrow().get(&step.file).cloned()?;
    if let Err(mistake) = typescript::check(&text.original, text.language) {
        return Some(mistake.into_error(&text.original, realm.shown(Path::new(&step.file))));
    }
    let work = Work { budget: Duration::ZERO, memory: 0, expression: None };
    let place = excerpt(realm, step, &work).map(Box::new);
    Some(ScriptError::Syntax { message: message.to_owned(), place, help: None })
}

/// Converts an error of code that ran outside the engine. `stack` is in the engine's format.
pub(crate) fn explain_stack(realm: &Realm, name: &str, message: &str, stack: &str) -> ScriptError {
    if name == "SyntaxError"
        && let Some((module, export)) = message
            .strip_prefix("The requested module '")
            .and_then(|rest| rest.split_once("' does not provide an export named '"))
        && let Some(error) = no_export(realm, &format!("no export '{}' in '{module}'", export.trim_end_matches('\'')))
    {
        return error;
    }
    let work = Work { budget: Duration::ZERO, memory: 0, expression: None };
    let steps = steps(stack);
    let place = place(realm, &steps, &work);
    let stack = steps.iter().filter_map(|step| frame(realm, step, &work)).collect();
    let plain = plainer(name, message.to_owned());
    let message = if is_absent_in_node(&plain) { plain } else { message.to_owned() };
    ScriptError::Thrown { name: name.to_owned(), message, place, stack }
}

/// Converts the engine's message for an import of a name that the module does not export. The message does not name
/// the importing file.
fn no_export(realm: &Realm, message: &str) -> Option<ScriptError> {
    let quoted: Vec<&str> = message.split('\'').collect();
    let [_, name, _, module, ..] = quoted[..] else { return None };
    if !message.contains("export") || module.is_empty() {
        return None;
    }
    let module = module.strip_prefix(BUILTIN).unwrap_or(module);
    let what = format!("`{}` has no export `{name}`", realm.shown(Path::new(module)));
    let importer = importer(realm, name, module);
    let from = importer.as_ref().map_or_else(String::new, |(file, _)| file.clone());
    Some(ScriptError::Missing { what, from, place: importer.map(|(_, place)| Box::new(place)), help: None })
}

/// Returns the file that imports `name` from `module`, as far as the sources show.
fn importer(realm: &Realm, name: &str, module: &str) -> Option<(String, Excerpt)> {
    let stem = Path::new(module).file_stem()?.to_str()?.to_owned();
    let texts = realm.texts.borrow();
    let mut candidates: Vec<_> = texts.iter().filter(|(file, _)| file.as_str() != module).collect();
    candidates.sort_by_key(|(file, _)| file.as_str());
    candidates.into_iter().find_map(|(file, text)| {
        let span = typescript::imported_name(&text.original, text.language, name, &stem)?;
        let shown = realm.shown(Path::new(file));
        let place = Source::new(shown.clone(), &*text.original).excerpt(span);
        Some((shown, place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_frames_are_parsed_with_or_without_a_function_name() {
        let read = |line: &str| step(line).map(|step| (step.function, step.file, step.line, step.column));
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(read("    at f (/a b/c (1).ts:3:14)"), Some((some("f"), "/a b/c (1).ts".into(), 3, 14)));
        assert_eq!(read("    at <anonymous> (/x.js:1:2)"), Some((None, "/x.js".into(), 1, 2)));
        assert_eq!(read("    at /x.js:1:2"), Some((None, "/x.js".into(), 1, 2)));
        assert_eq!(read("    at map (native)"), None);
        assert_eq!(read("TypeError: x"), None);
    }
}
