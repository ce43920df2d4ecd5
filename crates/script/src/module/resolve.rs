//! Module resolution: Node's algorithm with TypeScript's extensions.

use std::path::{Path, PathBuf};

use model::nearest;
use oxc_resolver::{ResolveError, ResolveOptions, Resolver};

/// Kind of import, which selects the entry point of a package that has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImportKind {
    /// By `import`.
    Import,
    /// By `require`.
    Require,
}

/// Resolution error, with a suggestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unresolved {
    pub what: String,
    pub help: Option<String>,
}

/// Resolver of files, with a cache of the file system.
pub(crate) struct Files {
    import: Resolver,
    require: Resolver,
}

impl Files {
    pub fn new() -> Self {
        let import = Resolver::new(options(&["import", "module-sync", "default"]));
        let require = import.clone_with_options(options(&["require", "module-sync", "default"]));
        Self { import, require }
    }

    /// Returns the real path of the file to which `specifier` refers in `directory`.
    pub fn resolve(&self, directory: &Path, specifier: &str, import_kind: ImportKind) -> Result<PathBuf, Unresolved> {
        let specifier = specifier.strip_prefix("file://").unwrap_or(specifier);
        if let Some((scheme, _)) = specifier.split_once("://") {
            return Err(Unresolved {
                what: format!("cannot import `{specifier}`: modules come from files and packages, not over `{scheme}`"),
                help: None,
            });
        }
        let resolver = match import_kind {
            ImportKind::Import => &self.import,
            ImportKind::Require => &self.require,
        };
        match resolver.resolve(directory, specifier) {
            Ok(found) => Ok(found.into_path_buf()),
            Err(error) => Err(explain(&error, directory, specifier)),
        }
    }
}

fn options(conditions: &[&str]) -> ResolveOptions {
    let alias = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(ToString::to_string).collect());
    ResolveOptions {
        condition_names: conditions.iter().map(ToString::to_string).collect(),
        extensions: [".ts", ".mts", ".js", ".mjs", ".cjs", ".cts", ".json"].map(String::from).to_vec(),
        // A file with the extension as written takes precedence over the TypeScript file that would compile to it.
        extension_alias: vec![
            alias(".js", &[".js", ".ts"]),
            alias(".mjs", &[".mjs", ".mts"]),
            alias(".cjs", &[".cjs", ".cts"]),
        ],
        node_path: false,
        ..ResolveOptions::default()
    }
}

fn explain(error: &ResolveError, directory: &Path, specifier: &str) -> Unresolved {
    let unresolved = |what: String, help: Option<String>| Unresolved { what, help };
    let is_path = specifier.starts_with('.') || specifier.starts_with('/');
    match error {
        ResolveError::NotFound(_) | ResolveError::ExtensionAlias(..) if is_path => {
            unresolved(format!("cannot find `{specifier}`"), neighbour(directory, specifier))
        }
        ResolveError::NotFound(_) => {
            let package = package_of(specifier);
            if is_installed(directory, package) {
                let help = format!("the package `{package}` is installed, but has no such file");
                return unresolved(format!("cannot find `{specifier}`"), Some(help));
            }
            let help = format!("install it: `npm install {package}` in this directory or one above it");
            unresolved(format!("cannot find the package `{package}`"), Some(help))
        }
        ResolveError::PackagePathNotExported { subpath, .. } => unresolved(
            format!("the package `{}` does not export `{subpath}`", package_of(specifier)),
            Some("its `package.json` says in `exports` what can be imported".into()),
        ),
        other => unresolved(format!("cannot find `{specifier}`: {other}"), None),
    }
}

/// Returns the package name in a specifier.
pub(crate) fn package_of(specifier: &str) -> &str {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    specifier.match_indices('/').nth(parts - 1).map_or(specifier, |(offset, _)| &specifier[..offset])
}

fn is_installed(directory: &Path, package: &str) -> bool {
    directory.ancestors().any(|above| above.join("node_modules").join(package).is_dir())
}

/// Returns a file with a name similar to the requested one.
fn neighbour(directory: &Path, specifier: &str) -> Option<String> {
    let wanted = directory.join(specifier);
    let folder = wanted.parent()?;
    let wanted = wanted.file_name()?.to_str()?.to_owned();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Some(format!("there is no directory `{}`", folder.display()));
    };
    let names: Vec<String> =
        entries.flatten().take(1_000).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // A name without an extension is compared with names without extensions.
    let has_ending = Path::new(&wanted).extension().is_some();
    let candidates = names.iter().filter_map(|name| {
        if has_ending { Some(name.as_str()) } else { Path::new(name).file_stem().and_then(|stem| stem.to_str()) }
    });
    let near = nearest(&wanted, candidates)?;
    let prefix = specifier.strip_suffix(wanted.as_str())?;
    Some(format!("did you mean `{prefix}{near}`?"))
}
