//! Module resolution: Node's algorithm with TypeScript's extensions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use model::nearest;
use oxc_resolver::{ResolveError, ResolveOptions, Resolver};

use crate::names::{CONFIGURATION_MODULES, TEST_MODULES};
use crate::typescript::Compiler;

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
    /// The configuration of TypeScript for each directory.
    configurations: Mutex<HashMap<PathBuf, Option<PathBuf>>>,
}

impl Files {
    pub fn new() -> Self {
        let import = Resolver::new(options(&["import", "module-sync", "default"]));
        let require = import.clone_with_options(options(&["require", "module-sync", "default"]));
        Self { import, require, configurations: Mutex::default() }
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
        let by_alias = self.by_alias(resolver, directory, specifier);
        if let Ok(Some(found)) = by_alias {
            return Ok(found);
        }
        match resolver.resolve(directory, specifier) {
            Ok(found) => Ok(found.into_path_buf()),
            // A configuration that cannot be read may map it.
            Err(error) => Err(by_alias.err().unwrap_or_else(|| {
                let is_absent =
                    matches!(error, ResolveError::NotFound(_)) && !is_installed(directory, package_of(specifier));
                let mapped = if is_absent { self.mapped(directory, specifier) } else { None };
                mapped.unwrap_or_else(|| explain(&error, directory, specifier))
            })),
        }
    }

    /// Resolves a specifier that the nearest `tsconfig.json` or `jsconfig.json` maps to files by `paths` or `baseUrl`. As
    /// in TypeScript, it takes precedence over packages, unless none of the files exists.
    fn by_alias(&self, resolver: &Resolver, directory: &Path, specifier: &str) -> Result<Option<PathBuf>, Unresolved> {
        let is_package_itself = directory.components().any(|part| part.as_os_str() == "node_modules");
        if specifier.starts_with(['.', '/', '#']) || is_package_itself {
            return Ok(None);
        }
        let Some(file) = self.configuration_of(directory) else { return Ok(None) };
        let config = self.import.resolve_tsconfig(&file).map_err(|error| Unresolved {
            what: format!("cannot find `{specifier}`: `{}` cannot be read: {error}", file.display()),
            help: None,
        })?;
        let candidates = config.resolve_path_alias_or_base_url(specifier);
        Ok(candidates.iter().find_map(|candidate| {
            let found = resolver.resolve(directory, candidate.to_str()?).ok()?;
            Some(found.into_path_buf())
        }))
    }

    /// Returns the error for a specifier that a pattern in `paths` maps to files that do not exist. The pattern `*` maps
    /// every package as well, so it does not show what is meant.
    fn mapped(&self, directory: &Path, specifier: &str) -> Option<Unresolved> {
        let file = self.configuration_of(directory)?;
        let config = self.import.resolve_tsconfig(&file).ok()?;
        let fits = |pattern: &str| match pattern.split_once('*') {
            Some((start, end)) => {
                let is_long_enough = specifier.len() >= start.len() + end.len();
                is_long_enough && specifier.starts_with(start) && specifier.ends_with(end)
            }
            None => pattern == specifier,
        };
        let patterns = config.compiler_options.paths.as_ref()?.keys().filter(|pattern| *pattern != "*");
        let exact = |pattern: &&String| *pattern == specifier;
        let pattern = patterns.filter(|pattern| fits(pattern)).max_by_key(|pattern| (exact(pattern), pattern.len()))?;
        let base = file.parent().unwrap_or(directory);
        let candidates = config.resolve_path_alias_or_base_url(specifier);
        let tried: Vec<String> =
            candidates.iter().map(|path| format!("`{}`", path.strip_prefix(base).unwrap_or(path).display())).collect();
        let verb = if tried.len() == 1 { "does" } else { "do" };
        let name = file.file_name().unwrap_or_default().display();
        let help =
            format!("`{pattern}` in the `paths` of `{name}` maps it to {}, which {verb} not exist", tried.join(" or "));
        Some(Unresolved { what: format!("cannot find `{specifier}`"), help: Some(help) })
    }

    /// Returns the settings of TypeScript for the module at `path`: those of the nearest configuration.
    pub fn compiler(&self, path: &Path) -> Compiler {
        let file = path.parent().and_then(|directory| self.configuration_of(directory));
        // A configuration that cannot be read is reported where it matters: when it is asked for an alias.
        let Some(config) = file.and_then(|file| self.import.resolve_tsconfig(&file).ok()) else {
            return Compiler::default();
        };
        let options = &config.compiler_options;
        Compiler {
            has_decorators: options.experimental_decorators.unwrap_or_default(),
            emits_metadata: options.emit_decorator_metadata.unwrap_or_default(),
            is_strict: options.strict_null_checks.or(options.strict).unwrap_or_default(),
            is_classic_jsx: options.jsx.as_deref() == Some("react"),
            jsx_source: options.jsx_import_source.clone(),
            jsx_factory: options.jsx_factory.clone(),
            jsx_fragment: options.jsx_fragment_factory.clone(),
        }
    }

    /// Returns the nearest configuration of TypeScript for modules in `directory`.
    fn configuration_of(&self, directory: &Path) -> Option<PathBuf> {
        let mut known = self.configurations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = known.get(directory) {
            return file.clone();
        }
        let mut files =
            directory.ancestors().flat_map(|above| ["tsconfig.json", "jsconfig.json"].map(|name| above.join(name)));
        let file = files.find(|file| file.is_file());
        known.insert(directory.to_owned(), file.clone());
        file
    }
}

fn options(conditions: &[&str]) -> ResolveOptions {
    let alias = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(ToString::to_string).collect());
    ResolveOptions {
        condition_names: conditions.iter().map(ToString::to_string).collect(),
        extensions: [".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs", ".cjs", ".cts", ".json"].map(String::from).to_vec(),
        // A file with the extension as written takes precedence over the TypeScript file that would compile to it.
        extension_alias: vec![
            alias(".js", &[".js", ".ts", ".tsx"]),
            alias(".jsx", &[".jsx", ".tsx"]),
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
            // Names of packages do not begin like this; an alias does.
            let is_alias = specifier.starts_with("@/") || specifier.starts_with("~") || specifier.starts_with('$');
            let of_configurations = || nearest(specifier, CONFIGURATION_MODULES.iter().copied());
            let near = (package != specifier).then(of_configurations).flatten();
            let near = near.or_else(|| nearest(package, TEST_MODULES.iter().copied()));
            let help = match is_alias {
                _ if near.is_some() => format!("did you mean `{}`?", near.unwrap_or_default()),
                true => {
                    "no `paths` in a `tsconfig.json` of this directory or one above it lead to such a file".to_owned()
                }
                false => format!("install it: `npm install {package}` in this directory or one above it"),
            };
            let is_part = near == Some(package);
            let what = if is_alias || is_part { format!("`{specifier}`") } else { format!("the package `{package}`") };
            unresolved(format!("cannot find {what}"), Some(help))
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
