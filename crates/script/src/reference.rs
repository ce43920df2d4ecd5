//! References to the exports of modules, as written in documents.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::error::ScriptError;
use crate::runtime::{Module, Runtime};
use crate::value::{Key, Value};

/// File extensions that are not part of a module's name.
const EXTENSIONS: [&str; 8] = ["js", "ts", "mjs", "mts", "cjs", "cts", "jsx", "tsx"];

/// A reference to an export: `./file.ts#name`, `js://../file.js`, `/abs/file.mjs`, `package#name`,
/// `@scope/package/sub`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    text: String,
    specifier: String,
    export: Option<String>,
}

/// Error in a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReferenceError {
    /// Description of the error.
    pub message: String,
    /// Suggestion, if there is one.
    pub help: Option<String>,
}

impl Reference {
    /// Parses a reference. The file is looked up only when it is imported.
    ///
    /// # Errors
    /// Returns an error if it is empty or begins with a protocol other than `js://`.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let wrong = |message: String, help: &str| ReferenceError { message, help: Some(help.to_owned()) };
        const FORMS: &str = "write `./file.js#name`, or `package#name`";
        let trimmed = text.trim();
        let rest = trimmed.strip_prefix("js://").unwrap_or(trimmed);
        if let Some((protocol, _)) = rest.split_once("://") {
            return Err(wrong(
                format!("`{protocol}://` is not supported"),
                "a reference is a file of JavaScript or TypeScript: `./file.js#name` or `js://./file.js#name`",
            ));
        }
        // A package's own imports begin with `#`.
        let hash = rest.char_indices().skip(1).find(|(_, c)| *c == '#').map(|(offset, _)| offset);
        let (specifier, export) = match hash {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        if specifier.is_empty() || specifier == "#" {
            return Err(wrong("a reference names a file or a package".into(), FORMS));
        }
        if export == Some("") {
            return Err(wrong("the name of the export is missing after `#`".into(), FORMS));
        }
        Ok(Self { text: text.to_owned(), specifier: specifier.to_owned(), export: export.map(str::to_owned) })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the file or package.
    pub fn specifier(&self) -> &str {
        &self.specifier
    }

    /// Returns the export, if the reference names one.
    pub fn export(&self) -> Option<&str> {
        self.export.as_deref()
    }

    /// Returns `true` if it refers to a file, not to a package.
    pub fn is_path(&self) -> bool {
        self.specifier.starts_with("./") || self.specifier.starts_with("../") || self.specifier.starts_with('/')
    }

    /// Returns the default name for the export: the export's own name, or the file name without its extension, with
    /// the parts between `-`, `_`, `.` and blanks joined (`my-check.js` becomes `myCheck`).
    pub fn inferred_name(&self) -> String {
        if let Some(export) = &self.export {
            return export.clone();
        }
        let name = self.specifier.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
        let stem = match name.rsplit_once('.') {
            Some((stem, extension)) if EXTENSIONS.contains(&extension) => stem,
            _ => name,
        };
        camel_case(stem)
    }
}

fn camel_case(text: &str) -> String {
    let mut name = String::new();
    for part in text.split(|c: char| !c.is_alphanumeric() && c != '$').filter(|part| !part.is_empty()) {
        let mut letters = part.chars();
        let Some(first) = letters.next() else { continue };
        if name.is_empty() {
            name.extend(first.to_lowercase());
        } else {
            name.extend(first.to_uppercase());
        }
        name.push_str(letters.as_str());
    }
    name
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Target of a reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Referred {
    /// The module.
    pub module: Module,
    /// Name of the export that was selected.
    pub export: String,
    /// Exported value.
    pub value: Value,
}

impl Runtime {
    /// Imports the target of `reference`, relative to the directory `base`. A reference without an export selects the
    /// default export if it is a function, otherwise the export called `name`, otherwise the default export.
    ///
    /// # Errors
    /// Returns the error from [`Runtime::import`], or an error if there is no such export.
    pub fn refer(
        &mut self,
        reference: &Reference,
        base: &Path,
        name: &str,
        budget: Duration,
    ) -> Result<Referred, ScriptError> {
        let module = self.import(reference.specifier(), base, budget)?;
        let exports = self.exports(&module)?;
        let candidates = match reference.export() {
            Some(export) => vec![export],
            None => vec!["default", name],
        };
        let mut fallback = None;
        for export in candidates {
            let Some(value) = self.export(&module, export)? else { continue };
            let value = if export == "default" { self.interop(&module)?.unwrap_or(value) } else { value };
            let referred = Referred { module: module.clone(), export: export.to_owned(), value };
            if reference.export().is_some() || referred.value.is_callable() {
                return Ok(referred);
            }
            fallback.get_or_insert(referred);
        }
        fallback.ok_or_else(|| no_export(reference, name, &exports))
    }
}

impl Runtime {
    /// Returns the default export of an ECMAScript module that was compiled to CommonJS.
    fn interop(&mut self, module: &Module) -> Result<Option<Value>, ScriptError> {
        let inside = |name: &str| [Key::from("default"), Key::from(name)];
        let is_compiled = self.at(module, &inside("__esModule"))?.is_some_and(|mark| mark.is_truthy());
        if is_compiled { self.at(module, &inside("default")) } else { Ok(None) }
    }
}

fn no_export(reference: &Reference, name: &str, exports: &[String]) -> ScriptError {
    let wanted = reference.export().unwrap_or(name);
    let what = match reference.export() {
        Some(export) => format!("`{}` has no export `{export}`", reference.specifier()),
        None => format!("`{}` has no default export and no export `{wanted}`", reference.specifier()),
    };
    let help = match model::nearest(wanted, exports.iter().map(String::as_str)) {
        Some(near) => Some(format!("did you mean `{}#{near}`?", reference.specifier())),
        None if exports.is_empty() => Some("it exports nothing".into()),
        None => Some(format!("it exports {}", list(exports))),
    };
    ScriptError::Missing { what, from: reference.text().to_owned(), place: None, help }
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reference {
        Reference::parse(text).unwrap()
    }

    #[test]
    fn a_reference_names_a_module_and_optionally_an_export() {
        for (text, specifier, export, is_path) in [
            ("js://./a.js#b", "./a.js", Some("b"), true),
            ("./a.ts", "./a.ts", None, true),
            ("../x#y", "../x", Some("y"), true),
            ("/abs/a.mjs", "/abs/a.mjs", None, true),
            ("package#name", "package", Some("name"), false),
            ("@scope/pkg/sub#name", "@scope/pkg/sub", Some("name"), false),
            ("js://lodash-es", "lodash-es", None, false),
            ("#own#name", "#own", Some("name"), false),
        ] {
            let reference = read(text);
            assert_eq!((reference.specifier(), reference.export()), (specifier, export), "{text}");
            assert_eq!((reference.is_path(), reference.text()), (is_path, text));
        }
    }

    #[test]
    fn other_protocols_and_empty_parts_are_rejected_with_a_suggestion() {
        for text in ["py://a.py", "http://x/y.js", "", "  ", "./a#", "js://", "#"] {
            let error = Reference::parse(text).unwrap_err();
            assert!(error.help.is_some(), "{text}: {error}");
        }
        assert!(Reference::parse("py://a.py#f").unwrap_err().message.contains("py://"));
    }

    #[test]
    fn a_name_is_inferred_from_the_export_or_the_file() {
        for (text, name) in [
            ("./x.js#check", "check"),
            ("./my-check.js", "myCheck"),
            ("./my.check.js", "myCheck"),
            ("../dir/Snake_case.ts", "snakeCase"),
            ("@scope/pkg", "pkg"),
            ("./plain", "plain"),
        ] {
            assert_eq!(read(text).inferred_name(), name, "{text}");
        }
    }
}
