//! A suite as a whole.

use model::decode::Fields;
use model::{Case, Node};

use super::environment::Environment;
use super::settings::{Settings, Tags};
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
}
