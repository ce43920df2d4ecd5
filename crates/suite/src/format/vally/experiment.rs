//! Experiments: the suites that they name, with variants, each of which is an arm. Variants may differ only where the
//! experiment says so.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;
use model::decode::{Fields, Problems, add_missing_key};
use model::{Case, Node, NodeKind, Spanned, WITH_SKILL, WITHOUT_SKILL, nearest};
use serde_json::{Map, Value};

use super::NAME;
use crate::document;
use crate::format::foreign::{Keys, Names, Reading, map, text};
use crate::path;

/// Reference to the folder of a suite.
const PARENT: &str = "${eval.parent}";

/// Settings of a variant that change nothing here.
const IGNORED: [(&str, &str); 2] =
    [("judge_model", "the judge of the run decides"), ("workers", "the run sets the number of trials at a time")];

/// Settings of a variant without which a verdict would differ.
const REFUSED: [(&str, &str); 3] = [
    ("executor", "the run names the agents"),
    ("judge_provider", "the judge is the same for all variants"),
    ("judge_reasoning_effort", "the judge is the same for all variants"),
];

/// What variants can set, by JSON pointer.
const POINTERS: [&str; 13] = [
    "/defaults/runs",
    "/defaults/timeout",
    "/defaults/model",
    "/defaults/reasoning_effort",
    "/defaults/judge_model",
    "/defaults/workers",
    "/defaults/executor",
    "/defaults/judge_provider",
    "/defaults/judge_reasoning_effort",
    "/environment/skills",
    "/environment/mcpServers",
    "/environment/files",
    "/environment/commands",
];

/// A variant of an experiment.
struct Variant {
    name: String,
    place: Node,
    /// Settings that replace those of a suite.
    settings: Vec<(Spanned<String>, Node)>,
    /// Parts of the environment that replace those of a suite.
    environment: Vec<(Spanned<String>, Node)>,
}

impl Variant {
    /// Returns what it sets, by JSON pointer.
    fn pointers(&self) -> Vec<(String, Value)> {
        let mut all = Map::new();
        let part = |entries: &[(Spanned<String>, Node)]| {
            Value::Object(entries.iter().map(|(key, value)| (key.value.clone(), value.to_json())).collect())
        };
        all.insert("defaults".to_owned(), part(&self.settings));
        all.insert("environment".to_owned(), part(&self.environment));
        let mut pointers = Vec::new();
        leaves(&Value::Object(all), String::new(), &mut pointers);
        pointers
    }
}

impl Reading<'_> {
    /// Reads an experiment.
    pub(super) fn experiment(&mut self, root: &Node) -> Vec<Case> {
        let Some(mut fields) = Fields::of(root, "the experiment", &mut self.found) else { return Vec::new() };
        fields.any_text("name", &mut self.found);
        fields.require("evals", &mut self.found);
        fields.texts("evals", &mut self.found);
        let evals = fields.list("evals", &mut Problems::new());
        fields.texts("vary", &mut self.found);
        let baseline = fields.required_text("baseline", &mut self.found);
        let shared = fields.get("overrides").map(|node| self.entries(node, "overrides")).unwrap_or_default();
        let variants = fields.get("variants").map(|node| self.variants(node)).unwrap_or_default();
        let refused = [("matrix", "its cells are not generated; write them as `variants`")];
        self.close(&fields, "", &[("description", "it describes the experiment")], &refused);
        let is_map = root.get("variants").is_none_or(|node| matches!(node.kind, NodeKind::Map(_)));
        if variants.len() < 2 && is_map && root.get("matrix").is_none() {
            let problem = root.error("an experiment needs at least two `variants`").of_missing(&["variants"]);
            add_missing_key(problem, &mut self.found);
        }
        let is_vary = |key: &str| nearest(key, ["vary"]).is_some();
        let misspelt = || entries_of(root).iter().find(|(key, _)| is_vary(&key.value)).map(|(_, value)| value);
        let vary = self.varied(root.get("vary").or_else(misspelt), &variants);
        // Settings that are wrong are not those of the variant.
        if !self.found.iter().any(model::Diagnostic::is_error) {
            self.check_twins(&variants);
        }
        if let Some(name) = &baseline {
            match variants.iter().find(|variant| variant.name == *name) {
                Some(first) => vary.iter().for_each(|vary| self.check_drift(first, &variants, vary)),
                None if variants.is_empty() => {}
                None => {
                    let near = nearest(name, variants.iter().map(|variant| variant.name.as_str()));
                    let place = root.get("baseline").unwrap_or(root);
                    self.found.push(place.error(format!("there is no variant called `{name}`")).suggest(near));
                }
            }
        }
        let files = evals.map(|evals| self.suites(evals, root.get("evals").unwrap_or(root))).unwrap_or_default();
        let is_alone = files.len() == 1;
        let mut cases = Vec::new();
        let mut names = Names::default();
        for path in files {
            cases.extend(self.with_variants(&path, &shared, &variants, is_alone, &mut names));
        }
        cases
    }

    fn variants(&mut self, node: &Node) -> Vec<Variant> {
        let NodeKind::Map(entries) = &node.kind else {
            self.found.push(node.error(format!("`variants` must be a map, not {}", node.kind_name())));
            return Vec::new();
        };
        let mut variants = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
            if name.value.is_empty() || !name.value.chars().all(is_name) {
                let message = format!("`{}` is not a valid name of a variant", name.value);
                let problem = model::Diagnostic::error(message).at(value.source.excerpt(name.span));
                self.found.push(problem.help("use letters, digits, `.`, `_` and `-`"));
            }
            if [WITH_SKILL, WITHOUT_SKILL].contains(&name.value.as_str()) {
                let message = format!("`{}` is the name of an arm of skill evaluations; use another name", name.value);
                self.found.push(model::Diagnostic::error(message).at(value.source.excerpt(name.span)));
            }
            let empty = map(node, Vec::new());
            let value = if matches!(value.kind, NodeKind::Null) { &empty } else { value };
            let Some(mut fields) = Fields::of(value, "a variant", &mut self.found) else { continue };
            let settings = fields.get("overrides").map(|node| self.entries(node, "variants.*.overrides"));
            let environment = fields.get("environment").map(|node| self.environment_of(node));
            self.close(&fields, "variants.*", &[("description", "it describes the variant")], &[] as &Keys<'_>);
            variants.push(Variant {
                name: name.value.clone(),
                place: value.clone(),
                settings: settings.unwrap_or_default(),
                environment: environment.unwrap_or_default(),
            });
        }
        variants
    }

    /// Returns the settings in a map.
    fn entries(&mut self, node: &Node, path: &str) -> Vec<(Spanned<String>, Node)> {
        let Some(mut fields) = Fields::of(node, "`overrides`", &mut self.found) else { return Vec::new() };
        for key in ["runs", "timeout", "model", "reasoning_effort"] {
            fields.get(key);
        }
        self.close(&fields, path, &IGNORED, &REFUSED);
        let known = |key: &str| matches!(key, "runs" | "timeout" | "model" | "reasoning_effort");
        entries_of(node).iter().filter(|(key, _)| known(&key.value)).cloned().collect()
    }

    /// Returns the parts of an environment in a map, with paths that do not depend on the suite.
    fn environment_of(&mut self, node: &Node) -> Vec<(Spanned<String>, Node)> {
        let Some(mut fields) = Fields::of(node, "`environment`", &mut self.found) else { return Vec::new() };
        fields.get("skills");
        fields.get("mcpServers");
        let refused =
            [("files", "files are the same in all variants"), ("commands", "commands are the same in all variants")];
        self.close(&fields, "variants.*.environment", &[], &refused);
        let known = |key: &str| matches!(key, "skills" | "mcpServers");
        entries_of(node).iter().filter(|(key, _)| known(&key.value)).cloned().collect()
    }

    /// Returns what `vary` names, and reports what no variant can set. `None` if the allowed differences are unknown.
    fn varied(&mut self, vary: Option<&Node>, variants: &[Variant]) -> Option<Vec<String>> {
        let items = match vary.map(|node| &node.kind) {
            Some(NodeKind::List(items)) => items.as_slice(),
            Some(_) => return None,
            None => &[],
        };
        let (mut named, mut is_known) = (Vec::new(), true);
        let own: Vec<String> = variants.iter().flat_map(Variant::pointers).map(|(pointer, _)| pointer).collect();
        let known = || POINTERS.into_iter().chain(own.iter().map(String::as_str));
        for (item, written) in items.iter().filter_map(|item| item.as_str().map(|written| (item, written))) {
            if known().any(|pointer| is_below(pointer, written)) {
                named.push(written.to_owned());
                continue;
            }
            let message = format!("`{written}` in `vary` is nothing that a variant can set");
            let last = || known().find(|pointer| pointer.rsplit('/').next() == Some(written));
            let near = nearest(written, known()).or_else(last);
            self.found.push(item.error(message).suggest(near));
            is_known &= near.is_some();
            named.extend(near.map(str::to_owned));
        }
        is_known.then_some(named)
    }

    /// Warns about a variant that sets the same as one before it.
    fn check_twins(&mut self, variants: &[Variant]) {
        for (index, variant) in variants.iter().enumerate() {
            let own = variant.pointers();
            if let Some(twin) = variants[..index].iter().find(|other| other.pointers() == own) {
                let message = format!("the variants `{}` and `{}` set the same", twin.name, variant.name);
                let problem = variant.place.warning(message);
                self.found.push(problem.help("their comparison can show only how much the results vary by chance"));
            }
        }
    }

    /// Reports what differs between variants although `vary` does not name it.
    fn check_drift(&mut self, baseline: &Variant, variants: &[Variant], vary: &[String]) {
        let is_allowed = |pointer: &str| vary.iter().any(|allowed| is_below(pointer, allowed));
        let own = baseline.pointers();
        for variant in variants {
            let others = variant.pointers();
            let differs = |(pointer, value): &&(String, Value)| {
                let other = |all: &[(String, Value)]| all.iter().any(|(known, same)| known == pointer && same == value);
                !(other(&own) && other(&others))
            };
            let differing: BTreeSet<&String> =
                own.iter().chain(&others).filter(differs).map(|(pointer, _)| pointer).collect();
            for pointer in differing.into_iter().filter(|pointer| !is_allowed(pointer)) {
                let message = format!(
                    "the variants `{}` and `{}` differ in `{pointer}`, which `vary` does not name",
                    baseline.name, variant.name
                );
                self.found.push(variant.place.error(message));
            }
        }
    }

    /// Returns the suites that the patterns name, sorted by path.
    fn suites(&mut self, patterns: &[Node], list: &Node) -> Vec<PathBuf> {
        let (mut files, known) = (BTreeSet::new(), self.found.len());
        for (place, pattern) in patterns.iter().filter_map(|item| Some((item, item.as_str()?))) {
            let full = self.path_of(pattern);
            if full.is_file() {
                files.insert(full);
                continue;
            }
            let is_plain =
                |part: &std::path::Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
            let base: PathBuf = full.components().take_while(is_plain).collect();
            if base == full {
                let near = path::near(&full, pattern);
                self.found.push(place.error(format!("there is no file `{pattern}`")).suggest(near.as_deref()));
                continue;
            }
            let glob = GlobBuilder::new(&full.to_string_lossy()).literal_separator(true).build();
            let Ok(glob) = glob.map(|glob| glob.compile_matcher()) else {
                self.found.push(place.error(format!("`{pattern}` is not a valid pattern")));
                continue;
            };
            let entries = walkdir::WalkDir::new(base).into_iter().flatten().map(walkdir::DirEntry::into_path);
            files.extend(entries.filter(|path| glob.is_match(path) && path.is_file()));
        }
        if files.is_empty() && self.found.len() == known {
            self.found.push(list.error("no suite matches `evals`"));
        }
        files.into_iter().collect()
    }

    /// Returns the cases of a suite, each with its variants.
    fn with_variants(
        &mut self,
        path: &Path,
        shared: &[(Spanned<String>, Node)],
        variants: &[Variant],
        is_alone: bool,
        names: &mut Names,
    ) -> Vec<Case> {
        let shown = self.library.shown(path);
        let root = match document::read_document(path, &shown) {
            Ok(root) => root,
            Err(problems) => {
                self.found.extend(problems);
                return Vec::new();
            }
        };
        let mut cases: Vec<Case> = Vec::new();
        for (index, variant) in variants.iter().enumerate() {
            let mut reading = Reading::new(path, self.library);
            let changed = self.changed(&root, path, shared, variant);
            let mut own = reading.suite(&changed);
            let whole = std::mem::take(&mut reading.found);
            if index == 0 {
                self.library.cover(reading.coverage(&shown, NAME));
            }
            for case in &mut own {
                case.broken.extend(whole.iter().cloned());
                case.fails_alone = true;
                let mut runner = case.runner.as_ref().clone();
                if let Some(model) = variant.settings.iter().find(|(key, _)| key.value == "model") {
                    runner.model = model.1.as_str().map(str::to_owned);
                    runner.model_source = Some(model.1.excerpt());
                }
                if let Some(effort) = variant.settings.iter().find(|(key, _)| key.value == "reasoning_effort") {
                    runner.reasoning_effort = effort.1.as_str().map(str::to_owned);
                }
                case.runner = Arc::new(runner);
            }
            if index == 0 {
                cases.clone_from(&own);
                for case in &mut cases {
                    let stem = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
                    let id = if is_alone { case.id.clone() } else { format!("{stem}/{}", case.id) };
                    case.id = names.unique(&id);
                }
            }
            for (case, mut variant_case) in cases.iter_mut().zip(own) {
                variant_case.id.clone_from(&case.id);
                case.variants.push((variant.name.clone(), Arc::new(variant_case)));
            }
        }
        cases
    }

    /// Returns a suite with the settings and the environment of a variant.
    fn changed(&self, root: &Node, path: &Path, shared: &[(Spanned<String>, Node)], variant: &Variant) -> Node {
        let mut entries = entries_of(root).to_vec();
        let key = if root.get("config").is_some() && root.get("defaults").is_none() { "config" } else { "defaults" };
        let settings: Vec<_> = shared.iter().chain(&variant.settings).cloned().collect();
        merge(&mut entries, key, &settings, &variant.place);
        let parent = path.parent().unwrap_or(path).to_string_lossy();
        let mut environment = Vec::new();
        for (key, value) in &variant.environment {
            let value = match key.value.as_str() {
                "skills" => self.rooted(value, &parent),
                _ => merged_servers(root.get("environment").and_then(|own| own.get("mcpServers")), value),
            };
            environment.push((key.clone(), value));
        }
        merge(&mut entries, "environment", &environment, &variant.place);
        // The skills of a variant replace also those of a stimulus.
        if environment.iter().any(|(key, _)| key.value == "skills")
            && let Some((_, stimuli)) = entries.iter_mut().find(|(key, _)| key.value == "stimuli")
            && let NodeKind::List(items) = &mut stimuli.kind
        {
            for item in items {
                let NodeKind::Map(own) = &mut item.kind else { continue };
                let of_stimulus = own.iter_mut().find(|(key, _)| key.value == "environment");
                if let Some((_, Node { kind: NodeKind::Map(parts), .. })) = of_stimulus {
                    parts.retain(|(key, _)| key.value != "skills");
                }
            }
        }
        Node { kind: NodeKind::Map(entries), ..root.clone() }
    }

    /// Returns a list of paths relative to the experiment as absolute ones.
    fn rooted(&self, node: &Node, parent: &str) -> Node {
        let NodeKind::List(items) = &node.kind else { return node.clone() };
        let path = |item: &Node| match item.as_str() {
            Some(written) => {
                let written = written.replace(PARENT, parent);
                text(item, self.path_of(&written).to_string_lossy())
            }
            None => item.clone(),
        };
        Node { kind: NodeKind::List(items.iter().map(path).collect()), ..node.clone() }
    }
}

/// Returns `true` if a JSON pointer is another one, or continues it.
fn is_below(pointer: &str, other: &str) -> bool {
    let rest = pointer.strip_prefix(other.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the entries of a map; none for any other value.
fn entries_of(node: &Node) -> &[(Spanned<String>, Node)] {
    match &node.kind {
        NodeKind::Map(entries) => entries,
        _ => &[],
    }
}

/// Sets entries of the map under `key`, which is added if it is missing.
fn merge(entries: &mut Vec<(Spanned<String>, Node)>, key: &str, changes: &[(Spanned<String>, Node)], place: &Node) {
    if changes.is_empty() {
        return;
    }
    if !entries.iter().any(|(known, value)| known.value == key && matches!(value.kind, NodeKind::Map(_))) {
        entries.retain(|(known, _)| known.value != key);
        entries.push((Spanned::new(key.to_owned(), place.span), map(place, Vec::new())));
    }
    let Some((_, Node { kind: NodeKind::Map(own), .. })) = entries.iter_mut().find(|(known, _)| known.value == key)
    else {
        return;
    };
    for (name, value) in changes {
        own.retain(|(known, _)| known.value != name.value);
        own.push((name.clone(), value.clone()));
    }
}

/// Returns the servers of a suite with those of a variant. A server that is null is removed.
fn merged_servers(own: Option<&Node>, changes: &Node) -> Node {
    let mut servers = own.map(entries_of).unwrap_or_default().to_vec();
    for (name, value) in entries_of(changes) {
        servers.retain(|(known, _)| known.value != name.value);
        if !matches!(value.kind, NodeKind::Null) {
            servers.push((name.clone(), value.clone()));
        }
    }
    Node { kind: NodeKind::Map(servers), ..changes.clone() }
}

/// Adds the JSON pointers of all values that are not maps. An empty map is a value.
fn leaves(value: &Value, pointer: String, all: &mut Vec<(String, Value)>) {
    match value.as_object() {
        Some(map) if !map.is_empty() => {
            for (key, value) in map {
                leaves(value, format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), all);
            }
        }
        Some(_) if pointer.matches('/').count() < 2 => {}
        _ => all.push((pointer, value.clone())),
    }
}
