//! Checks that the modules of a crate have no cyclic dependencies. A module may name its own children, and children
//! may use their parents; any other dependency must not lead back to the module that uses it. The same is checked for
//! folders, which stand for everything in them, except for the cycles in [`FOLDERS`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// Cycles between folders, or between a folder and a module next to it, although no modules form a cycle.
const FOLDERS: [(&str, &str); 6] = [
    (
        "cli: command, discovery, first_run, recorded_arguments, recorded_trial",
        "commands use parts of other commands, such as the flags of `run`, through modules beside them",
    ),
    ("llm: answer, failure, schema, wire", "a dialect knows how it writes errors, and its client reads answers"),
    ("model: outcome_counts, statistics", "counts of outcomes become a rate, and the figures of an arm count outcomes"),
    ("model: statistics::counted, statistics::sequential", "bounds of a rate can be those of a confidence sequence"),
    ("runner: hook, place, plan", "a plan contains the hook and the place of its trials, which receive planned trials"),
    (
        "script: convert, module, options, realm, shim",
        "an engine has modules, and some modules convert values or are part of the shim of the engine",
    ),
];

/// The path of a module in its crate, such as `["plan", "order"]`. The root of a crate has the empty path.
type ModulePath = Vec<String>;

#[derive(Default)]
struct Module {
    /// Every path that the module uses, as written.
    used: Vec<Vec<String>>,
    /// The names that `use` brings into the module's scope, with their paths.
    imported: BTreeMap<String, Vec<String>>,
}

struct Reader<'a> {
    path: ModulePath,
    /// The folder that contains the files of child modules.
    folder: PathBuf,
    modules: &'a mut BTreeMap<ModulePath, Module>,
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        self.modules.entry(self.path.clone()).or_default()
    }

    fn import(&mut self, tree: &syn::UseTree, mut before: Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before.clone());
                }
            }
            syn::UseTree::Glob(_) => self.module().used.push(before),
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                let known = if name == "self" { before.last().unwrap().clone() } else { name.clone() };
                if name != "self" {
                    before.push(name);
                }
                self.module().used.push(before.clone());
                self.module().imported.insert(known, before);
            }
            syn::UseTree::Rename(rename) => {
                before.push(rename.ident.to_string());
                self.module().used.push(before.clone());
                self.module().imported.insert(rename.rename.to_string(), before);
            }
        }
    }

    /// Reads a child module, from its own file unless it is inline.
    fn child(&mut self, item: &syn::ItemMod) {
        let name = item.ident.to_string();
        let mut path = self.path.clone();
        path.push(name.clone());
        let folder = self.folder.join(&name);
        if let Some((_, items)) = &item.content {
            let mut reader = Reader { path, folder, modules: self.modules };
            reader.module();
            items.iter().for_each(|item| reader.visit_item(item));
        } else {
            let file = self.folder.join(format!("{name}.rs"));
            let file = if file.exists() { file } else { folder.join("mod.rs") };
            read(&file, path, folder, self.modules);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes: &[syn::Attribute] = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            _ => &[],
        };
        if is_for_tests(attributes) {
            return;
        }
        match item {
            syn::Item::Mod(item) => self.child(item),
            syn::Item::Use(item) => self.import(&item.tree, Vec::new()),
            _ => syn::visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.module().used.push(names);
        }
        syn::visit::visit_path(self, path);
    }
}

fn read(file: &Path, path: ModulePath, folder: PathBuf, modules: &mut BTreeMap<ModulePath, Module>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut reader = Reader { path, folder, modules };
    reader.module();
    reader.visit_file(&parsed);
}

/// Returns the module to which a path resolves, relative to `from`. `None` for other crates, local names and the
/// standard library.
fn target(
    modules: &BTreeMap<ModulePath, Module>,
    from: &[String],
    names: &[String],
    depth: usize,
) -> Option<ModulePath> {
    if depth == 0 {
        return None;
    }
    let (mut module, mut rest) = match names.first()?.as_str() {
        "crate" => (Vec::new(), &names[1..]),
        "self" => (from.to_vec(), &names[1..]),
        "super" => (from[..from.len().checked_sub(1)?].to_vec(), &names[1..]),
        name => {
            let known =
                modules[from].imported.contains_key(name) || modules.contains_key(&[from, &[name.to_owned()]].concat());
            if !known {
                return None;
            }
            (from.to_vec(), names)
        }
    };
    while let Some(name) = rest.first() {
        if name == "super" {
            module.pop()?;
        } else {
            let child = [module.as_slice(), std::slice::from_ref(name)].concat();
            if !modules.contains_key(&child) {
                break;
            }
            module = child;
        }
        rest = &rest[1..];
    }
    // A re-exported name belongs to the module that defines it.
    if let Some(origin) = rest.first().and_then(|name| modules[&module].imported.get(name))
        && origin != names
    {
        let whole: Vec<String> = origin.iter().chain(&rest[1..]).cloned().collect();
        return target(modules, &module, &whole, depth - 1);
    }
    Some(module)
}

/// Returns the modules that each module uses, except its own descendants.
fn edges(modules: &BTreeMap<ModulePath, Module>) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
    let mut edges = BTreeMap::new();
    for (path, module) in modules {
        let targets = module.used.iter().filter_map(|names| target(modules, path, names, 8));
        edges.insert(path.clone(), targets.filter(|target| !target.starts_with(path)).collect());
    }
    edges
}

/// Returns the edges that are part of a cycle, or lie between two cycles.
fn circles(mut edges: BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
    loop {
        let before = edges.len();
        let used: BTreeSet<ModulePath> = edges.values().flatten().cloned().collect();
        edges.retain(|module, targets| !targets.is_empty() && used.contains(module));
        let left: BTreeSet<ModulePath> = edges.keys().cloned().collect();
        edges.values_mut().for_each(|targets| targets.retain(|target| left.contains(target)));
        if edges.len() == before {
            return edges;
        }
    }
}

/// Returns a line for each edge.
fn lines(edges: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> impl Iterator<Item = String> {
    edges.iter().map(|(module, targets)| format!("{} uses {}", module.join("::"), names(targets)))
}

fn names<'a>(modules: impl IntoIterator<Item = &'a ModulePath>) -> String {
    modules.into_iter().map(|module| module.join("::")).collect::<Vec<_>>().join(", ")
}

/// Returns the edges between the children of each module, where a child stands for everything below it.
fn folder_edges(edges: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<BTreeMap<ModulePath, BTreeSet<ModulePath>>> {
    let mut folders: BTreeMap<&[String], BTreeMap<ModulePath, BTreeSet<ModulePath>>> = BTreeMap::new();
    for (from, targets) in edges {
        for to in targets {
            let common = from.iter().zip(to).take_while(|(from, to)| from == to).count();
            if from.len() > common && to.len() > common {
                let siblings = folders.entry(&from[..common]).or_default();
                siblings.entry(from[..=common].to_vec()).or_default().insert(to[..=common].to_vec());
            }
        }
    }
    folders.into_values().collect()
}

#[test]
fn the_modules_of_a_crate_have_no_cyclic_dependencies() {
    let (mut wrong, mut folders) = (Vec::new(), BTreeMap::new());
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
        let source = entry.unwrap().path().join("src");
        let root = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|file| file.exists()).unwrap();
        let mut modules = BTreeMap::new();
        read(&root, Vec::new(), source.clone(), &mut modules);
        let name = source.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let edges = edges(&modules);
        for found in folder_edges(&edges).into_iter().map(circles).filter(|found| !found.is_empty()) {
            folders.insert(format!("{name}: {}", names(found.keys())), lines(&found).collect::<Vec<_>>());
        }
        wrong.extend(lines(&circles(edges)).map(|line| format!("{name}: {line}")));
    }
    assert!(wrong.is_empty(), "cyclic dependencies between modules:\n{}", wrong.join("\n"));
    let listed: BTreeSet<&str> = FOLDERS.iter().map(|(circle, _)| *circle).collect();
    let found: BTreeSet<&str> = folders.keys().map(String::as_str).collect();
    assert_eq!(found, listed, "left: cycles between folders; right: those that are listed\n{folders:#?}");
}

#[test]
fn a_cycle_is_found_through_re_exported_names() {
    let mut modules = BTreeMap::new();
    let mut add = |path: &[&str], used: &[&[&str]], imported: &[(&str, &[&str])]| {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let module = Module {
            used: used.iter().map(|names| owned(names)).collect(),
            imported: imported.iter().map(|(name, names)| ((*name).to_owned(), owned(names))).collect(),
        };
        modules.insert(owned(path), module);
    };
    add(&[], &[&["table", "TABLE"]], &[("Case", &["case", "Case"])]);
    add(&["table"], &[&["leaf", "LEAF"]], &[]);
    add(&["table", "leaf"], &[&["super", "Row"]], &[]);
    add(&["case"], &[&["crate", "load", "load"]], &[]);
    add(&["load"], &[&["crate", "Case"]], &[]);
    assert_eq!(lines(&circles(edges(&modules))).collect::<Vec<_>>(), ["case uses load", "load uses case"]);
}

#[test]
fn a_folder_stands_for_everything_in_it() {
    let path = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    let edges = [("a::x", "b"), ("b", "a::y"), ("a::y", "a::z"), ("a::z", "a")];
    let edges = edges.map(|(from, to)| (path(from), BTreeSet::from([path(to)])));
    let found: Vec<_> = folder_edges(&BTreeMap::from(edges)).into_iter().map(circles).collect();
    let found: Vec<String> = found.iter().flat_map(lines).collect();
    assert_eq!(found, ["a uses b", "b uses a"]);
}
