//! Graders that a model decides. The judge of the run decides them here.

use model::decode::Fields;
use model::{AssertionSpec, Node, NodeKind};

use super::grader::{Entry, Graders};
use crate::format::foreign::{Reading, at, flag, list, number, share, text, whole};

/// Criterion of a grader that has none.
const USUAL: &str = "The agent did what the user asked for, completely and correctly.";

/// Share of the scale that is needed if the grader does not say.
const THRESHOLD: f64 = 0.5;

impl Reading<'_> {
    /// Reads `prompt` or `panel`.
    pub(super) fn judged(
        &mut self,
        entry: &Entry<'_>,
        fields: &mut Fields<'_>,
        graders: &Graders<'_>,
    ) -> Option<AssertionSpec> {
        let node = entry.node;
        let prompt = fields.text("prompt", &mut self.found);
        let scales = [("binary", 1), ("scale_1_5", 5), ("scale_1_10", 10)];
        let scale = fields.choice("scoring", &scales, &mut self.found).unwrap_or(5);
        let threshold = fields.get("threshold").map(|node| share(node, "threshold", &mut self.found));
        let judges = if entry.kind == "panel" { Some(self.panel(fields, scale)?) } else { None };
        let threshold = match threshold {
            Some(threshold) => threshold?,
            None => THRESHOLD,
        };
        let mut criteria: Vec<String> = prompt.into_iter().collect();
        criteria.extend(graders.rubric.iter().cloned());
        if criteria.is_empty() {
            criteria.push(USUAL.to_owned());
        }
        let judges = judges.map(|judges| ("judges", whole(node, judges)));
        if scale == 1 {
            let criteria = list(node, criteria.iter().map(|criterion| text(node, criterion)).collect());
            let fields = [("criteria", criteria)].into_iter().chain(judges).collect();
            return Some(entry.assertion("rubric", fields));
        }
        let criteria = match criteria.as_slice() {
            [only] => only.clone(),
            several => several.iter().map(|criterion| format!("- {criterion}")).collect::<Vec<_>>().join("\n"),
        };
        let least = 1.0 + threshold * (scale - 1) as f64;
        let fields = [
            ("criteria", text(node, criteria)),
            ("scale", at(node, NodeKind::Number((scale as u64).into()))),
            ("threshold", number(node, least)),
        ];
        let all_replies = graders.has_turns.then(|| ("all_replies", flag(node, true)));
        Some(entry.assertion("llm_judge", fields.into_iter().chain(all_replies).chain(judges).collect()))
    }

    /// Returns the number of judges of a panel.
    fn panel(&mut self, fields: &mut Fields<'_>, scale: i64) -> Option<u64> {
        let judges = fields.list("judges", &mut self.found).or_else(|| fields.list("models", &mut self.found));
        let count = judges.map_or(0, <[Node]>::len) as u64;
        let place = fields.get("judges").unwrap_or(fields.node());
        if count == 0 {
            self.found.push(place.error("a panel needs `judges`").of_missing(&["judges"]));
            return None;
        }
        if count > 15 {
            self.found.push(place.error("a panel has at most 15 judges"));
            return None;
        }
        let same = "the judges of a panel are the same model, the judge of the run";
        self.ignore("stimuli[].graders[panel].config.judges", same, place);
        // The majority of marks, or the mean of scores.
        let usual = if scale == 1 { "majority" } else { "mean" };
        if let Some(node) = fields.get("aggregation")
            && node.as_str() != Some(usual)
        {
            let consequence = format!("the {usual} of the judges decides");
            self.refuse("stimuli[].graders[panel].config.aggregation", &consequence, node);
        }
        Some(count)
    }
}
