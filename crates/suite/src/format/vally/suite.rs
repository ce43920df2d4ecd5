//! A suite as a whole.

use model::decode::Fields;
use model::{Case, Diagnostic, Node, NodeKind, nearest};

use super::environment::Environment;
use super::grader::TYPES;
use super::settings::{Settings, Tags};
use crate::coverage::Treatment;
use crate::format::foreign::{Keys, Reading};

/// Default of Vally for the time of a trial, in milliseconds.
const TIMEOUT_MS: u64 = 120_000;

/// Keys of a suite that change nothing here.
const IGNORED: [(&str, &str); 4] = [
    ("version", "it describes the suite"),
    ("type", "it describes the suite"),
    ("metadata", "it describes the suite"),
    ("$schema", "it is for editors"),
];

impl Reading<'_> {
    /// Reads the suite.
    pub(super) fn suite(&mut self, root: &Node) -> Vec<Case> {
        let Some(mut fields) = Fields::of(root, "the suite", &mut self.found) else { return Vec::new() };
        fields.any_text("name", &mut self.found);
        fields.any_text("description", &mut self.found);
        let tags = Tags::read(fields.get("tags"), &mut self.found);
        let named = fields.text("agent_environment", &mut self.found).zip(fields.get("agent_environment"));
        let own = fields.get("environment");
        // Vally 0.15 renamed `config`.
        let written = fields.get("defaults").or_else(|| fields.get("config"));
        let (runs, timeout_ms) = written.map(|node| self.settings(node)).unwrap_or_default();
        fields.get("config");
        let stimuli = fields.get("stimuli");
        let scoring = fields.get("scoring");
        let (threshold, weights) = scoring.map(|node| self.scoring(node)).unwrap_or_default();
        self.close(&fields, "", &IGNORED, &[] as &Keys<'_>);
        let mut environment = Environment::default();
        if let Some((name, place)) = named {
            self.named_environment(&name, place, &mut environment);
        }
        if let Some(own) = own {
            self.environment(own, "environment", &mut environment);
        }
        let timeout_ms = timeout_ms.unwrap_or(TIMEOUT_MS);
        let settings = Settings { runs, timeout_ms, tags, environment, threshold, weights };
        let items = self.maps(stimuli, "stimuli");
        if items.is_empty() && self.found.is_empty() {
            self.found.push(stimuli.unwrap_or(root).error("the suite has no stimuli"));
        }
        if settings.threshold.is_some() {
            self.check_weights(scoring, &items);
        }
        let whole = std::mem::take(&mut self.found);
        let mut cases = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let mut case = self.stimulus(item, index, &settings);
            case.broken.extend(std::mem::take(&mut self.found));
            cases.push(case);
        }
        self.found = whole;
        cases
    }

    /// Reports weights that are not those of a grader or a constraint in `stimuli`.
    fn check_weights(&mut self, scoring: Option<&Node>, stimuli: &[&Node]) {
        let weights = scoring.and_then(|node| node.get("weights"));
        let Some(NodeKind::Map(weights)) = weights.map(|node| &node.kind) else { return };
        let mut known: Vec<&str> = Vec::new();
        for stimulus in stimuli {
            if let Some(NodeKind::List(graders)) = stimulus.get("graders").map(|node| &node.kind) {
                let words = graders.iter().flat_map(|grader| [grader.get("name"), grader.get("type")]);
                known.extend(words.flatten().filter_map(Node::as_str));
            }
            if let Some(NodeKind::Map(constraints)) = stimulus.get("constraints").map(|node| &node.kind) {
                let keys = constraints.iter().map(|(key, _)| key.value.as_str());
                known.extend(keys.filter(|key| key.starts_with("expect_") || key.starts_with("reject_")));
            }
        }
        for (name, value) in weights.iter().filter(|(name, _)| !known.contains(&name.value.as_str())) {
            let place = value.source.excerpt(name.span);
            if TYPES.iter().any(|(kind, _)| *kind == name.value) {
                let consequence = Some("no grader has this type".to_owned());
                self.keys.add(format!("scoring.weights.{}", name.value), Treatment::Ignored, consequence, place);
                continue;
            }
            let types = TYPES.iter().map(|(kind, _)| *kind);
            let near = nearest(&name.value, known.iter().copied().chain(types));
            let problem = Diagnostic::error(format!("no grader has the name or the type `{}`", name.value));
            self.found.push(problem.at(place).suggest(near));
        }
    }
}
