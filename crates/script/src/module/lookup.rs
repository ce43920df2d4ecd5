//! Resolves the modules of a runtime: specifiers to names, and names to source texts.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use model::Source;
use rquickjs::{Ctx, Exception, Module, Promise};

use crate::error::ScriptError;
use crate::module::library::{self, Target, Text, Unreadable, prepare};
use crate::module::node;
use crate::module::resolve::{ImportKind, Unresolved};
use crate::names::BUILTIN;
use crate::realm::Realm;
use crate::typescript;

/// Imports the module called `name`. A script's text cannot request a module by its engine name, so for this one
/// import, the name is passed to the resolver separately.
pub(crate) fn import<'js>(ctx: &Ctx<'js>, realm: &Realm, name: &str) -> rquickjs::Result<Promise<'js>> {
    *realm.entry.borrow_mut() = Some(name.to_owned());
    let promise = Module::import(ctx, name);
    realm.entry.take();
    promise
}

/// Sets `text` as the text of the module called `path`, regardless of the file's content.
pub(crate) fn provide(realm: &Realm, path: &Path, text: &str) -> Result<(), ScriptError> {
    let name = path.display().to_string();
    let text = prepare(path, text, &Target::Embedded).map_err(|error| unreadable(realm, path, error))?;
    realm.sources.borrow_mut().remove(&name);
    realm.texts.borrow_mut().insert(name, Arc::new(text));
    Ok(())
}

impl Unresolved {
    /// Converts it to a `ScriptError`. `from` is the importing file or directory, and `place` is the location of the
    /// import.
    pub(crate) fn into_script_error(self, from: String, place: Option<model::Excerpt>) -> ScriptError {
        ScriptError::Missing { what: self.what, from, place: place.map(Box::new), help: self.help }
    }
}

/// Returns the engine's name for the module to which `specifier` refers in `directory`.
pub(crate) fn name(
    realm: &Realm,
    directory: &Path,
    specifier: &str,
    import_kind: ImportKind,
) -> Result<String, Unresolved> {
    if realm.builtins.borrow().contains_key(specifier) {
        return Ok(format!("{BUILTIN}{specifier}"));
    }
    let node_module = node::of_node(specifier);
    if let Some(node_module) = node_module
        && let Some(name) = node::shimmed(node_module)
    {
        return Ok(name);
    }
    if let Some(node_module) = node_module.filter(|_| specifier.starts_with("node:")) {
        return Err(node::unavailable(node_module, specifier));
    }
    match realm.library.resolve(directory, specifier, import_kind) {
        Ok(path) => Ok(path.display().to_string()),
        // A package may have the same name as a Node.js built-in module.
        Err(unresolved) => Err(node_module.map_or(unresolved, |node_module| node::unavailable(node_module, specifier))),
    }
}

/// Returns the directory from which a module called `name` imports.
fn directory(realm: &Realm, name: &str) -> PathBuf {
    let path = Path::new(name);
    match path.parent().filter(|_| path.is_absolute()) {
        Some(directory) => directory.to_path_buf(),
        None => realm.base_dir.clone(),
    }
}

/// Returns the name of the module to which `specifier` refers when `base` imports it. An error is thrown in the
/// script, and stored so that it can be returned when it leaves the script.
pub(crate) fn find(
    ctx: &Ctx<'_>,
    realm: &Realm,
    base: &str,
    specifier: &str,
    import_kind: ImportKind,
) -> rquickjs::Result<String> {
    // Source that is not a module, such as an expression, has no directory.
    if !Path::new(base).is_absolute() && !realm.texts.borrow().contains_key(base) {
        let what = format!("`{specifier}` is not available here: an expression has no access to modules");
        let help = Some("put the code into a custom operator, which is a module".to_owned());
        let error = ScriptError::Missing { what, from: base.to_owned(), place: None, help };
        return Err(throw(ctx, realm, error));
    }
    reachable(realm, base, specifier)
        .and_then(|()| name(realm, &directory(realm, base), specifier, import_kind))
        .map_err(|unresolved| {
            let place = import_location(realm, base, specifier);
            let error = unresolved.into_script_error(realm.shown(Path::new(base)), place);
            throw(ctx, realm, error)
        })
}

/// Checks that `base` may import `specifier`. An absolute path must point into its own package or into the project.
fn reachable(realm: &Realm, base: &str, specifier: &str) -> Result<(), Unresolved> {
    let path = specifier.strip_prefix("file://").unwrap_or(specifier);
    if !path.starts_with('/') || realm.builtins.borrow().contains_key(specifier) {
        return Ok(());
    }
    let package_dir = library::package_of(Path::new(base));
    if package_dir.is_some_and(|package_dir| is_below(path, package_dir)) || realm.is_own(&normalize(path)) {
        return Ok(());
    }
    let what = format!("`{specifier}` is not available here: scripts have no access to the machine's files");
    Err(Unresolved { what, help: Some("import it by a path that begins with `./` or `../`".into()) })
}

fn is_below(path: &str, directory: &Path) -> bool {
    normalize(path).starts_with(directory)
}

/// Returns `path` as an absolute path without `.` and `..`.
fn normalize(path: &str) -> PathBuf {
    let mut normalized = PathBuf::from("/");
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => normalized.push(name),
            Component::ParentDir => drop(normalized.pop()),
            _ => {}
        }
    }
    normalized
}

/// Returns the location at which `base` imports `specifier`.
pub(crate) fn import_location(realm: &Realm, base: &str, specifier: &str) -> Option<model::Excerpt> {
    let text = realm.texts.borrow().get(base).cloned()?;
    let span = typescript::import_span(&text.original, text.language, specifier)?;
    Some(Source::new(realm.shown(Path::new(base)), &*text.original).excerpt(span))
}

/// Throws a placeholder for `error`, which is replaced when the error is explained.
pub(crate) fn throw(ctx: &Ctx<'_>, realm: &Realm, error: ScriptError) -> rquickjs::Error {
    Exception::throw_message(ctx, &remember(realm, error))
}

/// Stores `error`, and returns the message of the placeholder that is thrown for it.
pub(crate) fn remember(realm: &Realm, error: ScriptError) -> String {
    let message = match error.place() {
        Some(place) => format!("{error} (imported at {place})"),
        None => error.to_string(),
    };
    let mut missing = realm.missing.borrow_mut();
    if !missing.iter().any(|(known, _)| *known == message) {
        missing.push((message.clone(), error));
    }
    message
}

pub(crate) fn unreadable(realm: &Realm, path: &Path, error: Unreadable) -> ScriptError {
    let shown = realm.shown(path);
    match error {
        Unreadable::File(what) => ScriptError::Missing {
            what: what.replace(&path.display().to_string(), &shown),
            from: shown,
            place: None,
            help: None,
        },
        Unreadable::Syntax { original, mistake } => mistake.into_error(&original, shown),
    }
}

/// Escapes NUL characters, which would terminate the string in C. Wherever a NUL is allowed, its escape sequence is
/// allowed as well.
pub(crate) fn without_nul(code: &str) -> Cow<'_, str> {
    if code.contains('\0') { Cow::Owned(code.replace('\0', "\\x00")) } else { Cow::Borrowed(code) }
}

/// Returns the text of the module called `name`, from disk unless it was provided.
pub(crate) fn text(ctx: &Ctx<'_>, realm: &Realm, name: &str) -> rquickjs::Result<Arc<Text>> {
    if let Some(known) = realm.texts.borrow().get(name) {
        return Ok(Arc::clone(known));
    }
    let path = Path::new(name);
    let text = realm.library.read(path, false).map_err(|error| throw(ctx, realm, unreadable(realm, path, error)))?;
    realm.texts.borrow_mut().insert(name.to_owned(), Arc::clone(&text));
    Ok(text)
}
