//! JSON files as modules.

use std::rc::Rc;

use rquickjs::module::Declared;
use rquickjs::{Ctx, Module, Value};

use crate::error::ScriptError;
use crate::module::library::Text;
use crate::module::lookup::throw;
use crate::realm::Realm;
use crate::source_map::{Position, offset, word};
use crate::syntax::Mistake;

/// Parses `text`.
pub(crate) fn parse<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, name: &str, text: &Text) -> rquickjs::Result<Value<'js>> {
    let parse: rquickjs::Function<'js> = realm.tools(ctx)?.get("parse")?;
    parse.call((&*text.original,)).map_err(|error| match why(realm, name, text) {
        Some(explained) => {
            ctx.catch();
            throw(ctx, realm, explained)
        }
        None => error,
    })
}

/// Returns the syntax error with its location, which the engine does not report.
fn why(realm: &Realm, name: &str, text: &Text) -> Option<ScriptError> {
    let error = serde_json::from_str::<serde_json::Value>(&text.original).err()?;
    let line = u32::try_from(error.line().saturating_sub(1)).ok()?;
    let column = u32::try_from(error.column().saturating_sub(1)).ok()?;
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    let path = std::path::Path::new(name);
    if !realm.is_own(path) {
        // The file may not be intended as a module, so its content must not be shown.
        let message = format!("`{}` is not valid JSON: {message}", realm.shown(path));
        return Some(ScriptError::Syntax { message, place: None, help: None });
    }
    let start = offset(&text.original, Position { line, column });
    let mistake = Mistake { message, span: word(&text.original, start), help: None };
    Some(mistake.into_error(&text.original, realm.shown(path)))
}

/// Creates a module whose default export is `value`.
pub(crate) fn as_module<'js>(ctx: &Ctx<'js>, name: &str, value: Value<'js>) -> rquickjs::Result<Module<'js, Declared>> {
    let module = Module::declare(ctx.clone(), name, "export default import.meta.value;")?;
    module.meta()?.set("value", value)?;
    Ok(module)
}
