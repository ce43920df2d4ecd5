//! A stimulus, which becomes a case.

use std::sync::Arc;

use model::decode::Fields;
use model::{AssertionSpec, Case, Definition, Node, Subject, UserMessage};

use super::grader::Graders;
use super::settings::{Settings, Tags, trials};
use crate::format::foreign::{Keys, Reading, check, flag, grader, list, map, text, whole, with_sandbox};

/// Keys of a stimulus that change nothing here.
const IGNORED: [(&str, &str); 7] = [
    ("description", "it describes the case"),
    ("artifacts", "no files are copied to the results"),
    ("golden_patch", "it is for `vally oracle`"),
    ("golden_command", "it is for `vally oracle`"),
    ("golden_trajectory", "it is for `vally oracle`"),
    ("metadata", "it describes the case"),
    ("expect_activation", "another program reads it"),
];

/// Keys of a stimulus without which a verdict would differ.
const REFUSED: [(&str, &str); 2] = [
    ("attachments", "files cannot be attached to a message; stage them with `environment.files`"),
    ("simulation", "simulated answers of tools are not supported; mock the servers with `mcp_servers`"),
];

impl Reading<'_> {
    /// Reads the stimulus at this position.
    pub(super) fn stimulus(&mut self, item: &Node, index: usize, settings: &Settings) -> Case {
        let fallback = format!("stimulus {}", index + 1);
        let Some(mut fields) = Fields::of(item, "a stimulus", &mut self.found) else {
            return Case::new(fallback, item.excerpt());
        };
        let name = fields.required_text("name", &mut self.found);
        let messages = self.messages(&mut fields);
        let tags = Tags::read(fields.get("tags"), &mut self.found);
        let mut environment = settings.environment.clone();
        if let Some(own) = fields.get("environment") {
            self.environment(own, "stimuli[].environment", &mut environment);
        }
        let rubric = fields.texts("rubric", &mut self.found).unwrap_or_default();
        let written = fields.get("graders");
        let constraints = fields.get("constraints");
        self.close(&fields, "stimuli[]", &IGNORED, &REFUSED);

        let mut graders = Graders::new(settings, &rubric, &messages);
        for grader in self.maps(written, "graders") {
            self.grader(grader, &mut graders);
        }
        let limits = constraints.map(|node| self.constraints(node, &mut graders)).unwrap_or_default();
        let Graders { specs, indicators, run_commands, .. } = graders;
        let (mut fixtures, subject, mocks) = self.equipment(&environment);
        if run_commands {
            with_sandbox(&mut fixtures);
        }
        fixtures.source = Some(item.excerpt());
        let (trials, skip) = trials(settings.runs);
        let is_plugin = matches!(&subject, Subject::Installed(skill) if skill.plugin.is_some());
        let place = item.get("name").unwrap_or(item).excerpt();
        let mut case = Case {
            tags: tags.over(&settings.tags),
            definition: if is_plugin { Definition::Plugin } else { Definition::Skill },
            subject,
            messages,
            max_turns: limits.turns,
            token_budget: limits.tokens,
            timeout_ms: Some(settings.timeout_ms),
            trials,
            skip,
            fixtures: Arc::new(fixtures),
            mocks: Arc::new(mocks),
            assertions: specs,
            indicators,
            ..Case::new(name.unwrap_or(fallback), place)
        };
        settings.rule(&mut case);
        case
    }

    /// Returns the messages of the user: `prompt`, or `turns`.
    fn messages(&mut self, fields: &mut Fields<'_>) -> Vec<UserMessage> {
        let prompt = fields.text("prompt", &mut self.found);
        let turns = fields.list("turns", &mut self.found);
        match (prompt, turns) {
            (Some(_), Some(_)) => {
                self.found.push(fields.node().error("`prompt` and `turns` cannot be combined; use one of them"));
                Vec::new()
            }
            (Some(prompt), None) => vec![UserMessage::text(prompt)],
            (None, Some(turns)) => {
                let mut messages = Vec::with_capacity(turns.len());
                for turn in turns {
                    let turn = match turn.as_str() {
                        Some(_) => Some(turn),
                        None => turn.get("prompt"),
                    };
                    match turn.and_then(Node::as_str) {
                        Some(text) => messages.push(UserMessage::text(text)),
                        None => self.found.push(fields.node().error("an item of `turns` must be a string")),
                    }
                }
                messages
            }
            (None, None) => {
                if fields.get("prompt").is_none() && fields.get("turns").is_none() {
                    self.found.push(fields.node().error("the stimulus has no `prompt`").of_missing(&["prompt"]));
                }
                Vec::new()
            }
        }
    }

    /// Reads the constraints. Those about tools and skills become assertions.
    fn constraints(&mut self, node: &Node, graders: &mut Graders<'_>) -> Limits {
        let Some(mut fields) = Fields::of(node, "`constraints`", &mut self.found) else { return Limits::default() };
        let turns = fields.whole("max_turns", 1, &mut self.found);
        let tokens = fields.whole("max_tokens", 1, &mut self.found);
        let mut add = |key: &str, place: &Node, checks: Vec<Node>| -> AssertionSpec {
            let id = graders.names.unique(key);
            if key.ends_with("skills") {
                graders.indicators.push(id.clone());
            }
            grader(place, &id, checks, false, graders.settings.weight(None, key))
        };
        let mut specs = Vec::new();
        for (key, is_wanted) in [("expect_tools", true), ("reject_tools", false)] {
            let (Some(names), Some(place)) = (fields.texts(key, &mut self.found), fields.get(key)) else { continue };
            if names.is_empty() {
                continue;
            }
            let calls = names.iter().map(|name| calls_of(place, name, is_wanted)).collect();
            specs.push(add(key, place, calls));
        }
        for (key, field) in [("expect_skills", "required"), ("reject_skills", "forbidden")] {
            let (Some(names), Some(place)) = (fields.texts(key, &mut self.found), fields.get(key)) else { continue };
            if names.is_empty() {
                continue;
            }
            let names = list(place, names.iter().map(|name| text(place, name)).collect());
            specs.push(add(key, place, vec![check(place, "skills", vec![(field, names)])]));
        }
        graders.specs.extend(specs);
        self.close(&fields, "stimuli[].constraints", &[], &[] as &Keys<'_>);
        Limits { turns, tokens: tokens.map(|tokens| tokens as f64) }
    }
}

/// Limits of a trial.
#[derive(Default)]
struct Limits {
    turns: Option<u64>,
    tokens: Option<f64>,
}

/// Returns a check that a tool with this exact name is called, or is not called.
fn calls_of(place: &Node, name: &str, is_wanted: bool) -> Node {
    let pattern = list(place, vec![map(place, vec![("tool", text(place, name))])]);
    let mut fields = vec![("patterns", pattern), ("min", whole(place, u64::from(is_wanted)))];
    if !is_wanted {
        fields.push(("max", whole(place, 0)));
    }
    fields.push(("only", flag(place, false)));
    check(place, "calls", fields)
}
