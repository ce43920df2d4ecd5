//! Cases: each test with each prompt and each provider.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Case, CopyTree, DiagnosticKind, Fixtures, Node, RunnerOptions, Scoring, Trials, UserMessage};
use serde_json::{Map, Value};
use template::may_be_template;

use super::assertion::{Assertions, Subject, number};
use super::file::{self, FILE, ending};
use super::prompt::{Prompt, conversation};
use super::provider::Provider;
use super::reading::{Reading, moved_to, placed, short, text};
use super::test::Test;
use crate::format::rows::other_placeholder;

/// Variable that gives a case a sandbox, which commands need.
const MARK: (&str, &str) = ("PYTHONDONTWRITEBYTECODE", "1");

/// What is the same for all tests.
pub(super) struct Product {
    pub(super) prompts: Vec<Prompt>,
    pub(super) providers: Vec<Provider>,
    /// Number of trials of each case.
    pub(super) repeat: Option<u64>,
    /// Time limit of a trial.
    pub(super) timeout_ms: Option<u64>,
    /// Names of variables that have the answers of tests.
    pub(super) stored: Vec<String>,
}

/// A combination of a test, a prompt and a provider.
struct Combination<'a> {
    test: &'a Test,
    /// Variables as written.
    vars: &'a [(String, Node)],
    prompt: &'a Prompt,
    /// `None` if the command line names the agent.
    provider: Option<&'a Provider>,
}

impl Reading<'_> {
    /// Returns the cases of all combinations.
    pub(super) fn product(&mut self, product: &Product, tests: &[Test]) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut taken = HashSet::new();
        for (index, test) in tests.iter().enumerate() {
            let mut own = Vec::new();
            if let Some(node) = &test.provider {
                self.provider(node, &mut own);
            }
            let providers = if own.is_empty() { &product.providers } else { &own };
            let mut problems = Problems::new();
            let (combinations, varying) = test.combinations(self, &mut problems);
            for vars in &combinations {
                for prompt in &product.prompts {
                    let is_wanted = |wanted: &Option<Vec<String>>| {
                        wanted.as_ref().is_none_or(|names| names.iter().any(|name| prompt.is_named(name)))
                    };
                    if !is_wanted(&test.prompts) {
                        continue;
                    }
                    for provider in self.chosen(providers, test, &is_wanted) {
                        let texts = test.asserts.iter().filter_map(plain_value).chain([&prompt.text]);
                        for problem in texts.filter_map(|text| other_form(text, vars)) {
                            if !self.found.contains(&problem) {
                                self.found.push(problem);
                            }
                        }
                        let combination = Combination { test, vars, prompt, provider };
                        let mut id = self.id_of(index, &combination, product, &varying);
                        while !taken.insert(id.clone()) {
                            id.push('\'');
                        }
                        let mut case = self.case(id, &combination, product);
                        case.broken.extend(problems.iter().cloned());
                        cases.push(case);
                    }
                }
            }
        }
        if cases.is_empty() && self.found.is_empty() {
            let problem = model::Diagnostic::error("no combination of a test, a prompt and a provider remains");
            self.found.push(problem.at(model::Excerpt::of_file(self.library.shown(self.path))));
        }
        cases
    }

    /// Returns the providers with which a test and a prompt run. If the command line names the agent, there is one, and
    /// its provider is not known.
    fn chosen<'p>(
        &self,
        providers: &'p [Provider],
        test: &Test,
        is_wanted: &dyn Fn(&Option<Vec<String>>) -> bool,
    ) -> Vec<Option<&'p Provider>> {
        if self.library.agent_is_chosen {
            return vec![None];
        }
        let is_named = |provider: &Provider, name: &str| {
            let is = |own: &str| match name.strip_suffix('*') {
                Some(start) => own.starts_with(start),
                None => own == name,
            };
            is(&provider.label) || is(&provider.id)
        };
        let is_allowed = |provider: &&Provider| {
            test.providers.as_ref().is_none_or(|names| names.iter().any(|name| is_named(provider, name)))
                && is_wanted(&provider.prompts)
        };
        providers.iter().filter(is_allowed).map(Some).collect()
    }

    fn id_of(&self, index: usize, combination: &Combination<'_>, product: &Product, varying: &[String]) -> String {
        let Combination { test, vars, prompt, provider } = combination;
        let mut parts = Vec::new();
        for (name, value) in vars.iter().filter(|(name, _)| varying.contains(name)) {
            let shown = value.as_str().map_or_else(|| value.to_json().to_string(), str::to_owned);
            parts.push(short(&format!("{name}={shown}")));
        }
        if product.prompts.len() > 1 {
            parts.push(prompt.label.clone());
        }
        if product.providers.len() > 1 {
            parts.extend(provider.map(|provider| provider.label.clone()));
        }
        let base = test.description.as_deref().map(short).filter(|text| !text.is_empty());
        let base = base.unwrap_or_else(|| format!("test {}", index + 1));
        match parts.is_empty() {
            true => base,
            false => format!("{base} [{}]", parts.join(", ")),
        }
    }

    fn case(&self, id: String, combination: &Combination<'_>, product: &Product) -> Case {
        let Combination { test, prompt, provider, .. } = combination;
        let mut broken = test.broken.clone();
        broken.extend(provider.iter().flat_map(|provider| provider.broken.iter().cloned()));
        let known = broken.len();
        let vars = self.resolved(combination.vars, prompt.text.as_str().unwrap_or_default(), &mut broken);
        let lacks_vars = test.lacks_vars || broken.len() > known;
        let variables = self.variables(&vars);
        let option = |name: &str| test.option(name).and_then(Node::as_str).unwrap_or_default();
        let values = Value::Object(vars.iter().map(|(name, value)| (name.clone(), value.to_json())).collect());
        let affixes = (option("prefix"), option("suffix"));
        let rendered = self.prompt_text(prompt, affixes, &values, &variables, &mut broken);
        let rendered = rendered.unwrap_or_default();
        broken.extend(open_brace(&prompt.text, &vars));

        let mut transforms: Vec<Node> = provider.iter().filter_map(|provider| provider.transform.clone()).collect();
        transforms.extend(test.option("transform").or_else(|| test.option("postprocess")).cloned());
        let grader = test.option("provider");
        let subject = Subject { vars: &vars, variables: &variables, prompt: &rendered, grader, transforms };
        let mut asserted = Assertions::default();
        let list: Vec<&Node> = test.asserts.iter().collect();
        self.assertions(&list, 1.0, &subject, &mut asserted, &mut broken);

        let (message, system_prompt) = self.message(combination, &rendered, &vars, &mut broken);
        let agent = provider.and_then(|provider| Some((provider.agent.clone()?, provider.place.clone())));
        let runner = RunnerOptions {
            model: provider.and_then(|provider| provider.model.clone()),
            model_source: provider.map(|provider| provider.place.clone()),
            allowed_tools_override: provider.and_then(|provider| provider.tools.clone()),
            agent,
            ..RunnerOptions::default()
        };
        let mut fixtures = Fixtures { source: Some(test.at.excerpt()), ..Fixtures::default() };
        // An agent that the run names works in the folder of the providers.
        let folders: Vec<&CopyTree> = match provider {
            Some(provider) => provider.folder.iter().collect(),
            None => product.providers.iter().filter_map(|provider| provider.folder.as_ref()).collect(),
        };
        if let Some(other) = folders.iter().find(|folder| folder.from != folders[0].from) {
            broken.push(model::Diagnostic::error("the providers work in different folders").at(other.source.clone()));
        }
        fixtures.copy_trees.extend(folders.first().map(|folder| (*folder).clone()));
        if asserted.runs_commands {
            fixtures.env.push((MARK.0.to_owned(), MARK.1.to_owned()));
        }
        let own = provider.and_then(|provider| provider.system_prompt.clone());
        let system: Vec<String> = own.into_iter().chain(system_prompt).collect();
        let mut case = Case {
            description: test.description.clone(),
            messages: vec![message],
            runner: Arc::new(runner),
            max_turns: provider.and_then(|provider| provider.max_turns),
            timeout_ms: product.timeout_ms,
            trials: repetitions(test.option("repeat")).or(product.repeat).map(Trials::Fixed),
            fixtures: Arc::new(fixtures),
            assertions: asserted.specs,
            system_prompt: (!system.is_empty()).then(|| system.join("\n\n")),
            ..Case::new(id, test.at.excerpt())
        };
        let total: f64 = case.assertions.iter().map(|spec| spec.weight).sum();
        if total <= 0.0 && !case.assertions.is_empty() {
            broken.push(test.at.error("no assertion has a weight above 0, so any answer passes"));
        } else if let Some(threshold) = test.threshold {
            case.ruling.scoring = Some(Scoring::with_share(total, threshold));
        }
        for problem in &mut broken {
            let DiagnosticKind::UnknownVariable(name) = &problem.kind else { continue };
            if name == "_conversation" || product.stored.contains(name) {
                problem.message =
                    format!("the variable `{name}` has answers of other tests, which a test cannot use here");
                problem.help.clear();
            }
        }
        if lacks_vars || test.broken.iter().any(|problem| problem.means("vars")) {
            // They are the variables under the misspelt key, or in a file that cannot be read.
            broken.retain(|problem| !matches!(problem.kind, DiagnosticKind::UnknownVariable(_)));
        }
        case.broken = broken;
        case
    }

    /// Returns the message of the user, and the text for the system prompt.
    fn message(
        &self,
        combination: &Combination<'_>,
        rendered: &str,
        vars: &[(String, Node)],
        broken: &mut Problems,
    ) -> (UserMessage, Option<String>) {
        let Combination { test, prompt, provider, .. } = combination;
        let values: Map<String, Value> = vars.iter().map(|(name, value)| (name.clone(), value.to_json())).collect();
        let message = |text: &str| UserMessage { vars: values.clone(), ..UserMessage::text(text) };
        if let Some(output) = &test.output {
            let echoes = provider.is_some_and(|provider| provider.echoes);
            if !echoes {
                let problem = output.error("an answer that is given in the test needs the provider `echo`");
                broken.push(problem.help("the test says nothing about the agent, because the agent is not asked"));
            }
            return (message(output.as_str().unwrap_or_default()), None);
        }
        if rendered.trim().is_empty() && broken.is_empty() {
            broken.push(prompt.text.error("the prompt is empty"));
        }
        if provider.is_some_and(|provider| provider.takes_any_text) {
            return (message(rendered), None);
        }
        match conversation(rendered) {
            Ok(Some(conversation)) => (message(&conversation.user), conversation.system),
            Ok(None) => (message(rendered), None),
            Err(reason) => {
                broken.push(prompt.text.error(format!("the prompt cannot be sent to an agent: {reason}")));
                (message(rendered), None)
            }
        }
    }

    /// Returns the variables with the contents of files, and without the line end of each text.
    fn resolved(&self, vars: &[(String, Node)], prompt: &str, problems: &mut Problems) -> Vec<(String, Node)> {
        let mut resolved = Vec::with_capacity(vars.len());
        for (name, value) in vars {
            let mut value = value.clone();
            if let Some(reference) = value.as_str().filter(|text| text.starts_with(FILE)).map(str::to_owned) {
                let path = self.path_of(&reference);
                if file::is_module(&path) {
                    match self.computed(name, &path, prompt, vars) {
                        Ok(computed) => resolved.push((name.clone(), placed(&computed, &value))),
                        Err(reason) => {
                            problems.push(value.error(format!("the variable `{name}` has no value: {reason}")));
                        }
                    }
                    continue;
                }
                if matches!(ending(&path).as_str(), "py" | "pdf" | "png" | "jpg" | "jpeg" | "webp") {
                    let problem = value.error(format!("the variable `{name}` is in a file that is not text or data"));
                    problems.push(problem);
                    continue;
                }
                let is_yaml = matches!(ending(&path).as_str(), "yaml" | "yml");
                let read = match is_yaml {
                    true => self.value_in(&path, &value, problems).map(|root| root.to_json().to_string()),
                    false => self.open(&path, &value, problems).map(|source| source.text.trim().to_owned()),
                };
                let Some(read) = read else { continue };
                value = moved_to(text(&value, read), &value);
            }
            if let Some(shorter) = value.as_str().and_then(|written| written.strip_suffix('\n')).map(str::to_owned) {
                value = text(&value, shorter);
            }
            resolved.push((name.clone(), value));
        }
        resolved
    }

    /// Returns the value of a variable that a function computes from the prompt and the variables as they are written.
    fn computed(&self, name: &str, path: &Path, prompt: &str, vars: &[(String, Node)]) -> Result<Value, String> {
        let values: Map<String, Value> = vars.iter().map(|(name, value)| (name.clone(), value.to_json())).collect();
        let arguments = [name.into(), prompt.into(), Value::Object(values), Value::Object(Map::new())];
        let made = self.modules.call(path, None, &arguments, self.library)?;
        match (made.get("error").and_then(Value::as_str), made.get("output")) {
            (Some(error), _) => Err(error.to_owned()),
            (None, Some(output)) => Ok(output.clone()),
            (None, None) => Err("the function does not return `{output}`".to_owned()),
        }
    }
}

/// Returns the value of an assertion, unless it is code.
fn plain_value(assertion: &Node) -> Option<&Node> {
    let kind = assertion.get("type").and_then(Node::as_str)?;
    assertion.get("value").filter(|_| !["javascript", "python", "ruby"].iter().any(|code| kind.ends_with(code)))
}

/// Warns about `{name}`, or another form of a placeholder, for a variable in a text: it is not replaced. `<name>` may be
/// XML, and an author who also writes `{{ name }}` knows which form is replaced.
fn other_form(node: &Node, vars: &[(String, Node)]) -> Option<model::Diagnostic> {
    let text = node.as_str().filter(|text| !may_be_template(text))?;
    let mut names = vars.iter().map(|(name, _)| name).filter(|name| name.len() > 1);
    let (name, other) = names.find_map(|name| {
        let other = other_placeholder(text, name).filter(|other| !other.starts_with('<'))?;
        Some((name, other))
    })?;
    let problem = node.warning(format!("`{other}` is not replaced by the variable `{name}`, so it is text"));
    Some(problem.help(format!("write `{{{{ {name} }}}}`")))
}

/// Reports `{{ name }` in a prompt, which nunjucks refuses, if `name` is a variable.
fn open_brace(prompt: &Node, vars: &[(String, Node)]) -> Option<model::Diagnostic> {
    let text = prompt.as_str()?;
    let opened = text.match_indices("{{").map(|(at, _)| &text[at + 2..]).filter(|rest| !rest.contains("}}"));
    let mut names = opened.filter_map(|rest| Some(rest.split_once('}')?.0.trim()));
    let name = names.find(|name| vars.iter().any(|(known, _)| known == name))?;
    let problem = prompt.error(format!("this `{{{{` of the variable `{name}` is not closed"));
    Some(problem.help(format!("write `{{{{ {name} }}}}`")))
}

/// Returns the number of repetitions in an option.
fn repetitions(node: Option<&Node>) -> Option<u64> {
    number(node).filter(|number| *number >= 1.0).map(|number| number as u64)
}
