//! Tasks, each of which becomes a case.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::Fields;
use model::{Case, Definition, Fixtures, Node, NodeKind, SimulatedUser, Spanned, UserMessage};

use super::grader::{Graders, answer, at_most, calls};
use super::suite::Settings;
use crate::document;
use crate::format::foreign::{Keys, Names, Reading, check, list, map, text, with_sandbox};

/// Keys of a task that change nothing here.
const IGNORED: [(&str, &str); 3] = [
    ("description", "it describes the task"),
    ("golden", "it is for `waza gate`"),
    ("first_event_timeout_seconds", "the run limits the time of a trial"),
];

/// Folder with the files of the tasks, if a task does not name another one.
const FIXTURES: &str = "fixtures";

/// Start of a reference to a variable.
const VARIABLE: &str = ".Vars.";

impl Reading<'_> {
    /// Reads the task in the file at `path`.
    pub(super) fn task(&mut self, root: &Node, path: &Path, settings: &Settings, names: &mut Names) -> Case {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let root = &self.with_variables(root, &settings.variables);
        let Some(mut fields) = Fields::of(root, "the task", &mut self.found) else {
            return Case::new(names.unique(&stem), root.excerpt());
        };
        let id = fields.text("id", &mut self.found);
        fields.any_text("name", &mut self.found);
        let is_enabled = fields.boolean("enabled", &mut self.found).unwrap_or(true);
        let tags = fields.texts("tags", &mut self.found).unwrap_or_default();
        let timeout_ms = fields.whole("timeout_seconds", 1, &mut self.found).map(|s| s.saturating_mul(1000));
        let context = fields.text("context_dir", &mut self.found);
        let context = self.path_of(context.as_deref().unwrap_or(FIXTURES));
        let shelves = fields.get("skill_directories");
        let instructions = fields.texts("instruction_files", &mut self.found).unwrap_or_default();
        let (inputs, expected) = (fields.require("inputs", &mut self.found), fields.get("expected"));
        let own = fields.get("graders");
        self.close(&fields, "task", &IGNORED, &[] as &Keys<'_>);
        if let Some(shelves) = shelves {
            self.refuse("task.skill_directories", "the skill of the suite is tested", shelves);
        }

        let place = root.get("id").unwrap_or(root);
        let name = match &id {
            Some(id) => names.written(id, place),
            None => names.unique(&stem),
        };
        let mut case = Case::new(name, place.excerpt());
        let mut fixtures = Fixtures { source: Some(root.excerpt()), ..Fixtures::default() };
        if let Some(inputs) = inputs {
            self.inputs(inputs, path, &context, settings, &mut fixtures, &mut case);
        }
        let mut graders = Graders::new(&settings.variables);
        let suite = settings.graders.iter().map(|node| self.with_variables(node, &settings.variables));
        for grader in suite.collect::<Vec<_>>() {
            self.waza_grader(&grader, "graders[]", &mut graders);
        }
        for grader in self.maps(own, "graders") {
            self.waza_grader(grader, "task.graders[]", &mut graders);
        }
        if let Some(expected) = expected {
            self.expected(expected, settings, &mut graders);
        }
        let all = settings.instructions.iter().chain(&instructions);
        let texts: Vec<String> = all.filter_map(|file| self.instruction(file, &context, root)).collect();
        case.system_prompt = (!texts.is_empty()).then(|| texts.join("\n\n"));
        case.tags = tags;
        case.timeout_ms = timeout_ms;
        case.skip = (!is_enabled).then(|| "the task has `enabled: false`".to_owned());
        finish(case, fixtures, graders, settings)
    }

    /// Reads a row of a table as a task.
    pub(super) fn row(&mut self, row: &Node, index: usize, settings: &Settings, names: &mut Names) -> Case {
        let column = |name: &str| row.get(name).and_then(Node::as_str).filter(|value| !value.is_empty());
        let id = column("id").or_else(|| column("name"));
        let id = match id {
            Some(id) => names.written(id, row),
            None => names.unique(&format!("row-{}", index + 1)),
        };
        let mut variables = settings.variables.clone();
        if let NodeKind::Map(columns) = &row.kind {
            for (name, value) in columns {
                variables.retain(|(known, _)| *known != name.value);
                variables.push((name.value.clone(), value.as_str().unwrap_or_default().to_owned()));
            }
        }
        let mut case = Case::new(id, row.excerpt());
        match column("prompt") {
            Some(prompt) => {
                let prompt = self.with_variables(&text(row, prompt), &variables);
                case.messages = vec![UserMessage::text(prompt.as_str().unwrap_or_default())];
            }
            None => self.found.push(row.error("the row has no `prompt`").of_missing(&["prompt"])),
        }
        let mut graders = Graders::new(&variables);
        for grader in &settings.graders {
            let grader = self.with_variables(grader, &variables);
            self.waza_grader(&grader, "graders[]", &mut graders);
        }
        case.broken.append(&mut self.found);
        let fixtures = Fixtures { source: Some(row.excerpt()), ..Fixtures::default() };
        finish(case, fixtures, graders, settings)
    }

    fn inputs(
        &mut self,
        node: &Node,
        task: &Path,
        context: &Path,
        settings: &Settings,
        fixtures: &mut Fixtures,
        case: &mut Case,
    ) {
        let Some(mut fields) = Fields::of(node, "`inputs`", &mut self.found) else { return };
        let prompt = fields.text("prompt", &mut self.found);
        let file = fields.text("prompt_file", &mut self.found);
        let prompt = match (prompt, file) {
            (Some(prompt), None) => Some(prompt),
            (None, Some(file)) => {
                let path = task.parent().unwrap_or(task).join(&file);
                let place = fields.get("prompt_file").unwrap_or(node);
                let source = self.open(&path.to_string_lossy(), place);
                source.map(|source| self.rendered(&source.text, &document::start(&source), &settings.variables))
            }
            (Some(_), Some(_)) => {
                self.found.push(node.error("`prompt` and `prompt_file` cannot be combined; use one of them"));
                None
            }
            (None, None) => {
                if fields.get("prompt").is_none() && fields.get("prompt_file").is_none() {
                    self.found.push(node.error("the task has no `prompt`").of_missing(&["prompt"]));
                }
                None
            }
        };
        case.messages.extend(prompt.map(UserMessage::text));
        let more = fields.texts("follow_up_prompts", &mut self.found).unwrap_or_default();
        if let Some(responder) = fields.get("responder") {
            if more.is_empty() {
                case.user = self.responder(responder).map(Box::new);
            } else {
                self.found
                    .push(responder.error("`responder` and `follow_up_prompts` cannot be combined; use one of them"));
            }
        }
        case.messages.extend(more.into_iter().map(UserMessage::text));
        for item in fields.list("files", &mut self.found).unwrap_or_default() {
            self.resource(item, context, fixtures);
        }
        if let Some(node) = fields.get("context") {
            self.context(node, context, fixtures);
        }
        for (name, value) in fields.text_map("environment", &mut self.found).unwrap_or_default() {
            fixtures.env.push((name, value.value));
        }
        let refused = [
            ("repos", "repositories are not checked out; copy a folder with `inputs.context.fixture`"),
            ("workdir", "the agent works in the root of its sandbox"),
        ];
        self.close(&fields, "task.inputs", &[], &refused);
    }

    /// Adds a file by its path below the folder of fixtures, or with its content.
    fn resource(&mut self, item: &Node, context: &Path, fixtures: &mut Fixtures) {
        let Some(mut fields) = Fields::of(item, "a file", &mut self.found) else { return };
        let path = fields.required_text("path", &mut self.found);
        let content = fields.any_text("content", &mut self.found);
        self.close(&fields, "task.inputs.files[]", &[], &[] as &Keys<'_>);
        let Some(path) = path else { return };
        match content {
            None => self.stage(&context.join(&path).to_string_lossy(), &path, fixtures, item),
            Some(content) => match crate::path::inside_sandbox(&path) {
                Ok(path) => fixtures.files_unstaged.push(model::FixtureFile {
                    path,
                    content: content.into_bytes().into(),
                    executable: false,
                    source: item.excerpt(),
                }),
                Err(fault) => self.found.push(item.error(format!("`{path}` {fault}"))),
            },
        }
    }

    /// Reads values that describe the task, of which `fixture` names files.
    fn context(&mut self, node: &Node, context: &Path, fixtures: &mut Fixtures) {
        let Some(mut fields) = Fields::of(node, "`context`", &mut self.found) else { return };
        if let Some(written) = fields.text("fixture", &mut self.found)
            && let Some(place) = fields.get("fixture")
        {
            let below = context.join(&written);
            let from: PathBuf = if below.exists() { below } else { self.path_of(&written) };
            self.stage(&from.to_string_lossy(), ".", fixtures, place);
        }
        let NodeKind::Map(entries) = &node.kind else { return };
        let others = entries.iter().filter(|(key, _)| key.value != "fixture");
        for (_, value) in others {
            self.ignore("task.inputs.context.*", "it describes the task", value);
        }
        self.close_known(&fields, "task.inputs.context");
    }

    /// Records the keys that were read, of a map that may have any others.
    fn close_known(&mut self, fields: &Fields<'_>, path: &str) {
        let NodeKind::Map(entries) = &fields.node().kind else { return };
        let unread: Vec<&str> = fields.unread().map(|(name, _)| name.value.as_str()).collect();
        for (name, _) in entries.iter().filter(|(name, _)| !unread.contains(&name.value.as_str())) {
            let place = fields.node().source.excerpt(name.span);
            self.keys.add(format!("{path}.{}", name.value), crate::coverage::Treatment::Honoured, None, place);
        }
    }

    /// Reads a model that plays the user.
    fn responder(&mut self, node: &Node) -> Option<SimulatedUser> {
        let mut fields = Fields::of(node, "`responder`", &mut self.found)?;
        let goal = fields.required_text("instructions", &mut self.found);
        let max_turns = fields.require("max_followups", &mut self.found);
        let max_turns = max_turns.and_then(|_| fields.whole("max_followups", 1, &mut self.found));
        self.close(
            &fields,
            "task.inputs.responder",
            &[("model", "the judge of the run plays the user")],
            &[] as &Keys<'_>,
        );
        Some(SimulatedUser {
            persona: serde_json::Map::new(),
            goal: goal?,
            stop_when: None,
            max_turns: max_turns?,
            model: None,
            source: node.excerpt(),
        })
    }

    /// Reads what is expected. waza itself does not grade it.
    fn expected(&mut self, node: &Node, settings: &Settings, graders: &mut Graders) {
        let Some(mut fields) = Fields::of(node, "`expected`", &mut self.found) else { return };
        for (key, is_wanted) in [("output_contains", true), ("output_not_contains", false)] {
            let texts = fields.texts(key, &mut self.found).unwrap_or_default();
            let checks = texts.iter().map(|wanted| answer(node, wanted, is_wanted)).collect();
            graders.expect(node, key, checks);
        }
        if let Some(rules) = fields.get("behavior") {
            self.behavior(rules, graders);
        }
        let should = fields.boolean("should_trigger", &mut self.found);
        if let (Some(should), Some(skill)) = (should, &settings.skill) {
            let key = if should { "required" } else { "forbidden" };
            let skills = list(node, vec![text(node, skill)]);
            graders.expect(node, "should_trigger", vec![check(node, "skills", vec![(key, skills)])]);
            graders.indicators.push("should_trigger".to_owned());
        }
        let ignored = [("outcomes", "waza does not grade it either"), ("tool_calls", "waza does not grade it either")];
        self.close(&fields, "task.expected", &ignored, &[] as &Keys<'_>);
    }

    fn behavior(&mut self, node: &Node, graders: &mut Graders) {
        let Some(mut fields) = Fields::of(node, "`behavior`", &mut self.found) else { return };
        let mut checks = self.limits(&mut fields, node);
        if let Some(most) = fields.whole("max_response_time_ms", 1, &mut self.found) {
            checks.push(at_most(node, "milliseconds", most));
        }
        let turns = fields.whole("max_iterations", 1, &mut self.found);
        let tokens = fields.whole("max_tokens", 1, &mut self.found);
        self.close(&fields, "task.expected.behavior", &[], &[] as &Keys<'_>);
        graders.expect(node, "behavior", checks);
        graders.at_most(node, "max_iterations", "turn_count_at_most", turns);
        graders.at_most(node, "max_tokens", "token_usage", tokens);
    }

    /// Reads limits of calls, and tools that must or must not be called.
    pub(super) fn limits(&mut self, fields: &mut Fields<'_>, node: &Node) -> Vec<Node> {
        let mut checks = Vec::new();
        if let Some(most) = fields.whole("max_tool_calls", 0, &mut self.found) {
            checks.push(at_most(node, "calls", most));
        }
        for (key, is_wanted) in [("required_tools", true), ("forbidden_tools", false)] {
            for tool in fields.texts(key, &mut self.found).unwrap_or_default() {
                let pattern = map(node, vec![("tool", text(node, tool))]);
                checks.push(calls(node, vec![pattern], is_wanted));
            }
        }
        checks
    }

    /// Returns the text of a file with instructions.
    fn instruction(&mut self, written: &str, context: &Path, place: &Node) -> Option<String> {
        let path = context.join(written);
        self.open(&path.to_string_lossy(), place).map(|source| source.text.trim().to_owned())
    }

    /// Returns `node` with the values of variables in its texts. Unknown ones are reported.
    pub(super) fn with_variables(&mut self, node: &Node, variables: &[(String, String)]) -> Node {
        let kind = match &node.kind {
            NodeKind::String(text) if text.contains("{{") => NodeKind::String(self.rendered(text, node, variables)),
            NodeKind::List(items) => {
                NodeKind::List(items.iter().map(|item| self.with_variables(item, variables)).collect())
            }
            NodeKind::Map(entries) => {
                let entry =
                    |(key, value): &(Spanned<String>, Node)| (key.clone(), self.with_variables(value, variables));
                NodeKind::Map(entries.iter().map(entry).collect())
            }
            other => other.clone(),
        };
        Node { kind, ..node.clone() }
    }

    /// Returns `text` with the values of variables. Other templates are reported.
    pub(super) fn rendered(&mut self, text: &str, place: &Node, variables: &[(String, String)]) -> String {
        let mut rendered = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((front, after)) = rest.split_once("{{") {
            rendered.push_str(front);
            let Some((inner, behind)) = after.split_once("}}") else {
                rendered.push_str("{{");
                rest = after;
                continue;
            };
            let name = inner.trim().trim_matches('-').trim();
            match name.strip_prefix(VARIABLE) {
                Some(name) => match variables.iter().find(|(known, _)| known == name) {
                    Some((_, value)) => rendered.push_str(value),
                    None => {
                        self.found.push(place.error(format!("there is no variable `{name}`")));
                        rendered.push_str(&format!("{{{{{inner}}}}}"));
                    }
                },
                None if name.starts_with('.') || name.contains(" .") => {
                    self.found.push(place.error(format!("`{{{{{inner}}}}}` has no value: only variables are known")));
                    rendered.push_str(&format!("{{{{{inner}}}}}"));
                }
                None if variables.iter().any(|(known, _)| known == name) => {
                    let problem = place.error(format!("`{{{{{inner}}}}}` is not how a variable is written"));
                    self.found.push(problem.help(format!("write `{{{{.Vars.{name}}}}}`")));
                    rendered.push_str(&format!("{{{{{inner}}}}}"));
                }
                // Text in braces that is no template of waza.
                None => rendered.push_str(&format!("{{{{{inner}}}}}")),
            }
            rest = behind;
        }
        rendered.push_str(rest);
        rendered
    }
}

/// Completes a case with what holds for all.
fn finish(mut case: Case, mut fixtures: Fixtures, graders: Graders, settings: &Settings) -> Case {
    if graders.run_commands {
        with_sandbox(&mut fixtures);
    }
    case.trials = Reading::trials(settings);
    case.reruns = settings.reruns;
    case.timeout_ms = case.timeout_ms.or(settings.timeout_ms);
    case.subject = settings.subject.clone();
    case.definition = Definition::Skill;
    case.mocks = Arc::new(settings.mocks.clone());
    case.fixtures = Arc::new(fixtures);
    case.assertions = graders.specs;
    case.assertions.extend(settings.expected_calls.iter().cloned());
    case.indicators = graders.indicators;
    case
}
