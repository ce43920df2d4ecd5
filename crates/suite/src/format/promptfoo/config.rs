//! The configuration as a whole.

use std::sync::Arc;

use model::decode::{Fields, add_missing_key};
use model::{Case, Diagnostic, Node, NodeKind};

use super::case::Product;
use super::reading::{Ignored, Reading, entries, items, map, text};
use super::test::{STORE, Test};

/// Keys that change nothing here.
const IGNORED: [(&str, &str); 13] = [
    ("outputPath", "reports are named when the run is started"),
    ("sharing", "nothing is published"),
    ("writeLatestResults", "every run is recorded"),
    ("metadata", "it describes the configuration"),
    ("derivedMetrics", "no verdict depends on them; reports have the scores of each assertion"),
    ("nunjucksFilters", "filters in code are not run; a template that uses one breaks its case"),
    ("redteam", "tests of this section are not generated"),
    ("tracing", "trialrun records the calls of agents itself"),
    ("commandLineOptions", "they are options of another program"),
    ("assertionTemplates", "the assertions that refer to it are honoured"),
    ("$schema", "it is for editors"),
    ("verbose", "it is an option of another program"),
    ("cache", "answers are not cached; a cassette records and replays them"),
];

/// Keys without which a verdict would differ.
const REFUSED: [(&str, &str); 1] = [("extensions", "code that runs around tests is not supported")];

/// Options of the command line that change what is asked.
const REFUSED_COMMAND_LINE: [&str; 3] = ["promptPrefix", "promptSuffix", "var"];

/// Options of evaluations that change nothing here.
const IGNORED_OPTIONS: [(&str, &str); 6] = [
    ("maxConcurrency", "the run sets the number of trials at a time"),
    ("delay", "`providers` in the project's configuration limits requests"),
    ("cache", "answers are not cached; a cassette records and replays them"),
    ("showProgressBar", "it is an option of another program"),
    ("generateSuggestions", "it is an option of another program"),
    ("maxEvalTimeMs", "the run limits the time of a trial"),
];

impl Reading<'_> {
    /// Returns the cases of a configuration.
    pub(super) fn cases(&mut self, root: &Node) -> Vec<Case> {
        let whole = has_reference(root).then(|| dereferenced(root, root, 0));
        let root = whole.as_ref().unwrap_or(root);
        let mut found = std::mem::take(&mut self.found);
        let fields = Fields::of(root, "the configuration", &mut found);
        self.found = found;
        let Some(mut fields) = fields else { return Vec::new() };
        for key in ["description", "tags"] {
            fields.get(key);
        }
        self.read_environment(fields.get("env"));
        let providers = fields.get("providers").or_else(|| fields.get("targets"));
        let prompts = fields.get("prompts");
        let (defaults, tests, scenarios) = (fields.get("defaultTest"), fields.get("tests"), fields.get("scenarios"));
        let options = fields.get("evaluateOptions");
        let broken = self.close(&fields, "", &IGNORED, &REFUSED);
        self.found.extend(broken);
        let command_line = root.get("commandLineOptions");
        for (key, value) in REFUSED_COMMAND_LINE.iter().filter_map(|key| Some((key, command_line?.get(key)?))) {
            let consequence = "it changes what is asked; write it in the prompts or in the variables";
            let problem = self.refuse("commandLineOptions", key, consequence, &value.excerpt());
            self.found.push(problem);
        }
        if let Some(span) = fields.key_span("redteam").filter(|_| tests.is_none() && scenarios.is_none()) {
            let problem =
                Diagnostic::error("the configuration has no tests, and trialrun does not generate those of `redteam`");
            let problem = problem.help("write them to a file with `promptfoo redteam generate`, and run that file");
            add_missing_key(problem.at(root.source.excerpt(span)).of_missing(&["tests"]), &mut self.found);
            return Vec::new();
        }
        let (repeat, timeout_ms) = options.map(|options| self.options_of_run(options)).unwrap_or_default();
        let prompts = match prompts {
            Some(prompts) => self.prompts(prompts),
            None => {
                let mut problem = root.error("the configuration has no `prompts`").of_missing(&["prompts"]);
                problem = problem.help("to send the variable `prompt` as it is, write `prompts: [\"{{prompt}}\"]`");
                add_missing_key(problem, &mut self.found);
                Vec::new()
            }
        };
        let providers = match providers {
            Some(providers) => self.providers(providers),
            None if self.library.agent_is_chosen => Vec::new(),
            None => {
                let problem = root.error("the configuration has no `providers`").of_missing(&["providers"]);
                let problem = problem.help("name an agent for the run, which replaces all providers");
                add_missing_key(problem, &mut self.found);
                Vec::new()
            }
        };
        let tests = self.all_tests(root, defaults, tests, scenarios);
        let stored = tests.iter().filter_map(|test| test.option(STORE)?.as_str().map(str::to_owned)).collect();
        let product = Product { prompts, providers, repeat, timeout_ms, stored };
        self.product(&product, &tests)
    }

    fn read_environment(&mut self, own: Option<&Node>) {
        let mut all: Vec<(String, Node)> = Vec::new();
        let source = model::Source::new(self.library.shown(self.path), "");
        let place = crate::document::start(&source);
        // Secrets have no value here.
        for (name, value) in &self.library.environment {
            all.extend(value.as_ref().map(|value| (name.clone(), text(&place, value.as_str()))));
        }
        for (name, value) in entries(own) {
            all.retain(|(known, _)| *known != name.value);
            all.push((name.value.clone(), value.clone()));
        }
        self.env = Some(map(own.unwrap_or(&place), all));
    }

    /// Returns the number of repetitions and the time limit of a trial.
    fn options_of_run(&mut self, options: &Node) -> (Option<u64>, Option<u64>) {
        let mut found = std::mem::take(&mut self.found);
        let read = Fields::of(options, "`evaluateOptions`", &mut found).map(|mut fields| {
            let repeat = fields.whole("repeat", 1, &mut found);
            let timeout_ms = fields.whole("timeoutMs", 0, &mut found).filter(|ms| *ms > 0);
            (fields, repeat, timeout_ms)
        });
        self.found = found;
        let Some((fields, repeat, timeout_ms)) = read else { return (None, None) };
        let broken = self.close(&fields, "evaluateOptions", &IGNORED_OPTIONS, &[] as &Ignored<'_>);
        self.found.extend(broken);
        (repeat, timeout_ms)
    }

    /// Returns the tests with their defaults, followed by those of the scenarios.
    fn all_tests(
        &mut self,
        root: &Node,
        defaults: Option<&Node>,
        tests: Option<&Node>,
        scenarios: Option<&Node>,
    ) -> Vec<Test> {
        let defaults = match defaults {
            Some(node) if node.as_str().is_some() => {
                let mut problems = model::decode::Problems::new();
                let path = self.path_of(node.as_str().unwrap_or_default());
                let read = self.value_in(&path, node, &mut problems);
                self.found.extend(problems);
                read.map(|node| self.test(&node, "defaultTest"))
            }
            Some(node) => Some(self.test(node, "defaultTest")),
            None => None,
        };
        let defaults = defaults.unwrap_or_else(|| Test::empty(root));
        let mut all: Vec<Test> = tests.map(|tests| self.tests(tests)).unwrap_or_default();
        for scenario in items(scenarios) {
            let mut problems = model::decode::Problems::new();
            let loaded = scenario.as_str().and_then(|reference| {
                let path = self.path_of(reference);
                self.value_in(&path, scenario, &mut problems)
            });
            self.found.extend(problems);
            for scenario in items(Some(loaded.as_ref().unwrap_or(scenario))) {
                self.scenario(scenario, &mut all);
            }
        }
        let is_misspelt = self.found.iter().any(|problem| problem.means("tests") || problem.means("scenarios"));
        if all.is_empty() && tests.is_none() && scenarios.is_none() && !is_misspelt {
            all.push(Test::empty(root));
        }
        all.into_iter().map(|test| test.over(&defaults)).collect()
    }

    /// Adds the tests of a scenario: each of them with each set of data.
    fn scenario(&mut self, scenario: &Node, all: &mut Vec<Test>) {
        let mut found = std::mem::take(&mut self.found);
        let fields = Fields::of(scenario, "a scenario", &mut found);
        self.found = found;
        let Some(mut fields) = fields else { return };
        fields.get("description");
        let (config, tests) = (fields.get("config"), fields.get("tests"));
        let broken = self.close(&fields, "scenarios[]", &[], &[]);
        self.found.extend(broken);
        let tests = match tests {
            Some(tests) => self.tests_of_scenario(tests),
            None => vec![Test::empty(scenario)],
        };
        if items(config).is_empty() {
            self.found.push(scenario.error("a scenario needs `config`, a list of data"));
        }
        for data in items(config) {
            let data = self.test(data, "scenarios[].config[]");
            all.extend(tests.iter().map(|test| test.clone().over(&data)));
        }
    }

    fn tests_of_scenario(&mut self, tests: &Node) -> Vec<Test> {
        if tests.as_str().is_some() {
            return self.tests(tests);
        }
        items(Some(tests))
            .into_iter()
            .flat_map(|item| match item.as_str() {
                Some(_) => self.tests(item),
                None => vec![self.test(item, "scenarios[].tests[]")],
            })
            .collect()
    }
}

/// Returns `true` if something in `node` may be a reference.
fn has_reference(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Map(map) => map.iter().any(|(key, value)| key.value == "$ref" || has_reference(value)),
        NodeKind::List(list) => list.iter().any(has_reference),
        _ => false,
    }
}

/// Returns `node` with each `{$ref: "#/…"}` replaced by what it refers to in `root`, if there is such a value.
fn dereferenced(node: &Node, root: &Node, depth: usize) -> Node {
    const MAX_DEPTH: usize = 64;
    if depth > MAX_DEPTH {
        return node.clone();
    }
    let kind = match &node.kind {
        NodeKind::Map(map) => {
            if let [(key, target)] = map.as_slice()
                && key.value == "$ref"
                && let Some(found) = target.as_str().and_then(|pointer| pointed(root, pointer))
            {
                return dereferenced(found, root, depth + 1);
            }
            NodeKind::Map(map.iter().map(|(key, value)| (key.clone(), dereferenced(value, root, depth + 1))).collect())
        }
        NodeKind::List(list) => NodeKind::List(list.iter().map(|item| dereferenced(item, root, depth + 1)).collect()),
        other => other.clone(),
    };
    Node { kind, span: node.span, tag: node.tag.clone(), source: Arc::clone(&node.source) }
}

fn pointed<'n>(root: &'n Node, pointer: &str) -> Option<&'n Node> {
    pointer.strip_prefix("#/")?.split('/').try_fold(root, |node, step| match &node.kind {
        NodeKind::List(list) => list.get(step.parse::<usize>().ok()?),
        _ => node.get(step),
    })
}
