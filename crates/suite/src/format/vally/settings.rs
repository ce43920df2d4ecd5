//! Settings that hold for all cases of a suite.

use model::decode::{self, Fields, Problems};
use model::{Case, Diagnostic, Node, NodeKind, Scoring, Trials};

use super::environment::Environment;
use crate::format::foreign::{Keys, Reading, as_number, share};

/// Settings of a run that change nothing here.
const IGNORED_SETTINGS: [(&str, &str); 7] = [
    ("model", "the run chooses the model of the agent"),
    ("executor", "the run chooses the agent"),
    ("reasoning_effort", "the run chooses the effort of the agent"),
    ("judge_model", "the judge of the run decides"),
    ("judge_provider", "the judge of the run decides"),
    ("judge_reasoning_effort", "the judge of the run decides"),
    ("workers", "the run sets the number of trials at a time"),
];

/// Settings that hold for all cases.
pub(super) struct Settings {
    pub(super) runs: Option<u64>,
    pub(super) timeout_ms: u64,
    pub(super) tags: Tags,
    pub(super) environment: Environment,
    /// Score that a trial needs, from 0 to 1; without it, each grader decides.
    pub(super) threshold: Option<f64>,
    /// Weights by the names or types of graders.
    pub(super) weights: Vec<(String, f64)>,
}

impl Settings {
    /// Returns the weight of a grader.
    pub(super) fn weight(&self, name: Option<&str>, kind: &str) -> f64 {
        let find = |wanted: &str| self.weights.iter().find(|(key, _)| key == wanted).map(|(_, weight)| *weight);
        name.and_then(find).or_else(|| find(kind)).unwrap_or(1.0)
    }

    /// Sets the score that a trial of the case needs.
    pub(super) fn rule(&self, case: &mut Case) {
        let total: f64 = case.assertions.iter().map(|spec| spec.weight).sum();
        match self.threshold {
            Some(threshold) if total > 0.0 => case.ruling.scoring = Some(Scoring::with_share(total, threshold)),
            Some(_) if case.assertions.is_empty() => {}
            Some(_) => {
                let problem = Diagnostic::error("no grader has a weight above 0, so any answer passes");
                case.broken.push(problem.at(case.source.clone()));
            }
            // Every grader must pass, also one without weight.
            None => {
                let weightless = case.assertions.iter_mut().filter(|spec| spec.weight == 0.0);
                weightless.for_each(|spec| spec.weight = 1.0);
            }
        }
    }
}

/// Tags, which are maps there: `priority=p0`.
#[derive(Debug, Clone, Default)]
pub(super) struct Tags(Vec<(String, Vec<String>)>);

impl Tags {
    pub(super) fn read(node: Option<&Node>, problems: &mut Problems) -> Self {
        let entries = match node.map(|node| (node, &node.kind)) {
            None | Some((_, NodeKind::Null)) => return Self::default(),
            Some((_, NodeKind::Map(entries))) => entries,
            Some((other, _)) => {
                problems.push(other.error(format!("`tags` must be a map, not {}", other.kind_name())));
                return Self::default();
            }
        };
        let value = |node: &Node| node.as_str().map_or_else(|| node.to_json().to_string(), str::to_owned);
        let values = |node: &Node| match &node.kind {
            NodeKind::List(items) => items.iter().map(value).collect(),
            _ => vec![value(node)],
        };
        Self(entries.iter().map(|(name, node)| (name.value.clone(), values(node))).collect())
    }

    /// Returns the tags in one line each. Those of `self` replace those of `above`.
    pub(super) fn over(&self, above: &Self) -> Vec<String> {
        let is_own = |name: &String| self.0.iter().any(|(own, _)| own == name);
        let all = above.0.iter().filter(|(name, _)| !is_own(name)).chain(&self.0);
        all.flat_map(|(name, values)| values.iter().map(move |value| format!("{name}={value}"))).collect()
    }
}

impl Reading<'_> {
    /// Returns the number of trials and the time of each.
    pub(super) fn settings(&mut self, node: &Node) -> (Option<u64>, Option<u64>) {
        let Some(mut fields) = Fields::of(node, "`defaults`", &mut self.found) else { return (None, None) };
        let runs = fields.whole("runs", 0, &mut self.found);
        let timeout_ms = fields.get("timeout").and_then(|node| duration(node, "timeout", &mut self.found));
        self.close(&fields, "defaults", &IGNORED_SETTINGS, &[] as &Keys<'_>);
        (runs, timeout_ms)
    }

    /// Returns the threshold and the weights.
    pub(super) fn scoring(&mut self, node: &Node) -> (Option<f64>, Vec<(String, f64)>) {
        let Some(mut fields) = Fields::of(node, "`scoring`", &mut self.found) else { return (None, Vec::new()) };
        let threshold = fields.get("threshold").and_then(|node| share(node, "threshold", &mut self.found));
        let mut weights = Vec::new();
        let has_effect = node.get("threshold").is_some();
        let written = if has_effect { fields.get("weights") } else { node.get("weights") };
        if let Some(node) = written {
            match &node.kind {
                NodeKind::Map(entries) => {
                    for (name, value) in entries {
                        match as_number(value).filter(|weight| *weight >= 0.0) {
                            Some(weight) => weights.push((name.value.clone(), weight)),
                            None => self.found.push(value.error("a weight must be a number of at least 0")),
                        }
                    }
                }
                _ => self.found.push(node.error(format!("`weights` must be a map, not {}", node.kind_name()))),
            }
        }
        let ignored = [("weights", "without a `threshold`, every grader must pass, whatever its weight")];
        self.close(&fields, "scoring", &ignored, &[] as &Keys<'_>);
        (threshold, weights)
    }
}

/// Reads a duration in milliseconds: a number with its unit, or a number of seconds as in old suites.
pub(super) fn duration(node: &Node, key: &str, problems: &mut Problems) -> Option<u64> {
    let seconds =
        as_number(node).filter(|seconds| *seconds > 0.0 && *seconds < 1e10).map(|seconds| (seconds * 1000.0) as u64);
    let found = seconds.or_else(|| decode::parse_duration_ms(node.as_str()?));
    if found.is_none() {
        problems.push(node.error(format!("`{key}` must be a duration such as `90s` or `2m`")));
    }
    found
}

/// Returns the number of trials, or the reason why the case is skipped.
pub(super) fn trials(runs: Option<u64>) -> (Option<Trials>, Option<String>) {
    match runs {
        Some(0) => (None, Some("the suite has `runs: 0`, which only checks it".to_owned())),
        runs => (Some(Trials::Fixed(runs.unwrap_or(1))), None),
    }
}
