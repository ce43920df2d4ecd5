//! Tests: those in the configuration and in files, with the defaults and the scenarios.

use std::path::Path;

use model::decode::{Fields, Problems};
use model::{Node, NodeKind};

use super::assertion::{Threshold, hosted_model, number};
use super::csv_row;
use super::file::{self, FILE, ending};
use super::reading::{Reading, entries, items};
use crate::document;
use crate::module_tree::{self, Tree};

/// Keys of tests that change nothing here.
const IGNORED: [(&str, &str); 1] = [("metadata", "it describes the test")];

/// Keys of tests without which a verdict would differ.
const REFUSED: [(&str, &str); 1] =
    [("assertScoringFunction", "a score that code computes from other scores is not supported")];

/// Option that makes the answer of a test a variable of others.
pub(super) const STORE: &str = "storeOutputAs";

/// Options of tests that change nothing here.
const IGNORED_OPTIONS: [(&str, &str); 3] = [
    (STORE, "a test that uses the answer of another one is broken"),
    ("disableConversationVar", "the variable `_conversation` is never set"),
    ("runSerially", "trials do not share anything"),
];

/// Options of tests without which a verdict would differ.
const REFUSED_OPTIONS: [(&str, &str); 3] = [
    ("transformVars", "variables that code computes are not supported"),
    ("rubricPrompt", "judges have the prompts of trialrun"),
    ("factuality", "categories of factuality have no weights of their own"),
];

/// A test, or a part of one: the defaults or the data of a scenario.
#[derive(Clone)]
pub(super) struct Test {
    /// Place at which it is written, without its content.
    pub(super) at: Node,
    pub(super) description: Option<String>,
    pub(super) vars: Vec<(String, Node)>,
    /// True if variables could not be read.
    pub(super) lacks_vars: bool,
    pub(super) asserts: Vec<Node>,
    pub(super) options: Vec<(String, Node)>,
    pub(super) threshold: Option<f64>,
    /// Provider that replaces those of the configuration.
    pub(super) provider: Option<Node>,
    /// Names of the providers with which it runs.
    pub(super) providers: Option<Vec<String>>,
    /// Names of the prompts with which it runs.
    pub(super) prompts: Option<Vec<String>>,
    /// Answer that is given in the test.
    pub(super) output: Option<Node>,
    /// Problems that break its cases.
    pub(super) broken: Problems,
}

impl Test {
    /// Creates a test without anything.
    pub(super) fn empty(at: &Node) -> Self {
        Self {
            at: super::reading::node(at, NodeKind::Null),
            description: None,
            vars: Vec::new(),
            lacks_vars: false,
            asserts: Vec::new(),
            options: Vec::new(),
            threshold: None,
            provider: None,
            providers: None,
            prompts: None,
            output: None,
            broken: Problems::new(),
        }
    }

    /// Returns the value of an option.
    pub(super) fn option(&self, name: &str) -> Option<&Node> {
        self.options.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns `true` if the option `name` is switched on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        matches!(self.option(name).map(|node| &node.kind), Some(NodeKind::Bool(true)))
    }

    /// Returns this part with what `above` has and this does not have. The assertions of `above` come first.
    pub(super) fn over(self, above: &Self) -> Self {
        let keeps_defaults = !self.is_on("disableDefaultAsserts");
        let layered = |under: &[(String, Node)], own: Vec<(String, Node)>| {
            let mut all: Vec<(String, Node)> = under.to_vec();
            for (key, value) in own {
                match all.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, old)) => *old = value,
                    None => all.push((key, value)),
                }
            }
            all
        };
        let mut asserts = if keeps_defaults { above.asserts.clone() } else { Vec::new() };
        asserts.extend(self.asserts);
        let mut broken = above.broken.clone();
        broken.extend(self.broken);
        Self {
            at: self.at,
            description: self.description.or_else(|| above.description.clone()),
            vars: layered(&above.vars, self.vars),
            lacks_vars: self.lacks_vars || above.lacks_vars,
            asserts,
            options: layered(&above.options, self.options),
            threshold: self.threshold.or(above.threshold),
            provider: self.provider.or_else(|| above.provider.clone()),
            providers: self.providers.or_else(|| above.providers.clone()),
            prompts: self.prompts.or_else(|| above.prompts.clone()),
            output: self.output.or_else(|| above.output.clone()),
            broken,
        }
    }

    /// Returns the combinations of its variables: a list of texts stands for one of them, unless the test says
    /// otherwise. The names are those of the variables that vary.
    pub(super) fn combinations(
        &self,
        reading: &Reading<'_>,
        problems: &mut Problems,
    ) -> (Vec<Vec<(String, Node)>>, Vec<String>) {
        let mut all: Vec<Vec<(String, Node)>> = vec![Vec::new()];
        let mut varying = Vec::new();
        for (name, value) in &self.vars {
            let mut values = vec![value.clone()];
            if !self.is_on("disableVarExpansion") {
                if let NodeKind::List(list) = &value.kind
                    && list.first().is_some_and(|first| first.as_str().is_some())
                {
                    values.clone_from(list);
                }
                if let Some(reference) = value.as_str().filter(|text| text.starts_with(FILE) && text.contains('*')) {
                    let paths = reading.files(reference, value, problems);
                    let within = |path: &Path| {
                        path.strip_prefix(&reading.directory).unwrap_or(path).to_string_lossy().into_owned()
                    };
                    let text = |path: &Path| NodeKind::String(format!("{FILE}{}", within(path)));
                    values = paths.iter().map(|path| super::reading::node(value, text(path))).collect();
                }
            }
            if values.len() > 1 {
                varying.push(name.clone());
            }
            let one = |vars: &Vec<(String, Node)>, value: &Node| {
                vars.iter().cloned().chain([(name.clone(), value.clone())]).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(|vars| values.iter().map(move |value| one(vars, value))).collect();
        }
        (all, varying)
    }
}

impl Reading<'_> {
    /// Reads `tests`: a list, or the name of a file.
    pub(super) fn tests(&mut self, list: &Node) -> Vec<Test> {
        let mut tests = Vec::new();
        for item in items(Some(list)) {
            match item.as_str() {
                Some(reference) => {
                    for row in self.rows(reference, item) {
                        tests.push(self.test(&row, "tests[]"));
                    }
                }
                None if item.get("path").is_some() && item.get("vars").is_none() => {
                    self.found.push(item.error("tests that code generates are not supported"));
                }
                None => tests.push(self.test(item, "tests[]")),
            }
        }
        tests
    }

    /// Returns the tests in the files that `reference` names.
    fn rows(&mut self, reference: &str, at: &Node) -> Vec<Node> {
        let mut problems = Problems::new();
        let mut rows = Vec::new();
        if ["http://", "https://", "huggingface://", "az://"].iter().any(|scheme| reference.starts_with(scheme)) {
            problems.push(at.error("tests from the network are not supported").help("save them to a file"));
        } else {
            let (path, function) = file::with_function(reference.strip_prefix(FILE).unwrap_or(reference));
            for path in self.files(path, at, &mut problems) {
                if function.is_some() {
                    problems.push(at.error("tests that code generates are not supported"));
                    continue;
                }
                rows.extend(self.rows_in(&path, at, &mut problems));
            }
        }
        self.found.extend(problems);
        rows
    }

    fn rows_in(&mut self, path: &Path, at: &Node, problems: &mut Problems) -> Vec<Node> {
        let Some(source) = self.open(path, at, problems) else { return Vec::new() };
        let mut tabular = |delimiter: u8, problems: &mut Problems| {
            let rows = document::read_csv(&source, delimiter, problems);
            let known = problems.len();
            let tests = rows.iter().map(|row| csv_row::test(row, &mut self.keys, problems)).collect::<Vec<_>>();
            // Each row finds the same problems with the columns.
            let own = problems.split_off(known);
            for problem in own {
                if !problems[known..].contains(&problem) {
                    problems.push(problem);
                }
            }
            tests
        };
        match ending(path).as_str() {
            "csv" => {
                let first = source.text.lines().next().unwrap_or_default();
                tabular(if first.contains(';') && !first.contains(',') { b';' } else { b',' }, problems)
            }
            "tsv" => tabular(b'\t', problems),
            "jsonl" => document::read_json_lines(&source, problems),
            "json" | "yaml" | "yml" => {
                let root = self.value_in(path, at, problems);
                items(root.as_ref()).into_iter().cloned().collect()
            }
            _ if file::is_module(path) => {
                let exports = module_tree::exports(path, &source, &self.library.cwd, false, &[&["default"]], problems);
                let Some((name, value)) = exports.and_then(|exports| exports.into_iter().next().flatten()) else {
                    problems.push(at.error("the module has no default export"));
                    return Vec::new();
                };
                let root = Tree { module: path, source: &source, problems }.export(name, &value);
                if module_tree::is_function(&root) {
                    problems.push(at.error("tests that code generates are not supported"));
                    return Vec::new();
                }
                items(Some(&root)).into_iter().cloned().collect()
            }
            other => {
                problems.push(at.error(format!("tests in a file with the ending `{other}` are not supported")));
                Vec::new()
            }
        }
    }

    /// Reads a test, or a part of one, whose keys are below `path`.
    pub(super) fn test(&mut self, item: &Node, path: &str) -> Test {
        let mut test = Test::empty(item);
        let mut broken = Problems::new();
        let Some(mut fields) = Fields::of(item, "a test", &mut broken) else {
            test.broken = broken;
            return test;
        };
        test.description = fields.any_text("description", &mut broken);
        for (name, value) in entries(fields.get("vars")) {
            test.vars.push((name.value.clone(), value.clone()));
        }
        let known = broken.len();
        match item.get("vars").map(|vars| (vars, &vars.kind)) {
            Some((vars, NodeKind::String(reference))) => {
                for path in self.files(reference, vars, &mut broken) {
                    let root = self.value_in(&path, vars, &mut broken);
                    test.vars
                        .extend(entries(root.as_ref()).iter().map(|(name, value)| (name.value.clone(), value.clone())));
                }
            }
            None | Some((_, NodeKind::Map(_) | NodeKind::Null)) => {}
            Some((vars, _)) => broken.push(vars.error(format!("`vars` must be a map, not {}", vars.kind_name()))),
        }
        test.lacks_vars = broken.len() > known;
        let asserts = fields.get("assert");
        for assertion in items(asserts) {
            match assertion.as_str().filter(|text| text.starts_with(FILE)) {
                Some(reference) => {
                    let root = self.value_in(&self.path_of(reference), assertion, &mut broken);
                    broken.extend(self.log_assertions(&items(root.as_ref()), &format!("{path}.assert")));
                    test.asserts.extend(items(root.as_ref()).into_iter().cloned());
                }
                None => test.asserts.push(assertion.clone()),
            }
        }
        let own: Vec<&Node> = test.asserts.iter().filter(|node| node.source.path == item.source.path).collect();
        broken.extend(self.log_assertions(&own, &format!("{path}.assert")));
        if let Some(node) = fields.get("threshold").filter(|node| !matches!(node.kind, NodeKind::Null)) {
            test.threshold = number(Some(node));
            broken.extend(Threshold::Share.problem(node, false).map(|problem| node.error(problem)));
        }
        test.provider = fields.get("provider").cloned();
        test.providers = fields.texts("providers", &mut broken);
        test.prompts = fields
            .get("prompts")
            .map(|node| items(Some(node)).into_iter().filter_map(Node::as_str).map(str::to_owned).collect());
        test.output = fields.get("providerOutput").cloned();
        if let Some(options) = fields.get("options") {
            broken.extend(self.options(options, path));
            test.options =
                entries(Some(options)).iter().map(|(key, value)| (key.value.clone(), value.clone())).collect();
        }
        broken.extend(self.close(&fields, path, &IGNORED, &REFUSED));
        test.broken = broken;
        test
    }

    /// Records the options of a test. Returns the problems that break its cases.
    fn options(&mut self, options: &Node, path: &str) -> Problems {
        let mut broken = Problems::new();
        let Some(mut fields) = Fields::of(options, "`options`", &mut broken) else { return broken };
        for key in
            ["prefix", "suffix", "postprocess", "transform", "disableVarExpansion", "disableDefaultAsserts", "repeat"]
        {
            fields.get(key);
        }
        let provider = options.get("provider").map_or_else(String::new, |provider| {
            let is_open = |kind: &str| hosted_model(provider, kind).is_err();
            let rest = match (is_open("similar"), is_open("moderation")) {
                (false, false) => "`similar` and `moderation` ask it",
                (true, false) => "`similar` is undecided, because trialrun cannot ask it for embeddings",
                (false, true) => "`similar` asks it, and `moderation` is undecided",
                (true, true) => "`similar` and `moderation` are undecided, because trialrun cannot ask it for them",
            };
            format!("the judge of the run decides; {rest}")
        });
        let ignored = [&[("provider", provider.as_str())], &IGNORED_OPTIONS[..]].concat();
        broken.extend(self.close(&fields, &format!("{path}.options"), &ignored, &REFUSED_OPTIONS));
        broken
    }
}
