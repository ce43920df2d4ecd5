//! Metadata of expectations: `$score`, `$title`, `$meta` and so on.

use model::decode::{self, Fields, Problems};
use model::{Node, NodeKind, nearest};

use crate::strategy::Strategy;
use crate::value;

/// Key for the map with all metadata.
pub const CONTAINER: &str = "$meta";

/// Short forms of the metadata keys.
pub const SHORTHANDS: [&str; 7] =
    ["$score", "$critical", "$title", "$description", "$dimension", "$strategy", "$threshold"];

/// Returns `true` if `key` is a metadata key.
pub fn is_meta(key: &str) -> bool {
    key == CONTAINER || SHORTHANDS.contains(&key)
}

/// Metadata of an expectation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meta {
    /// Weight among its siblings. Below 0 for a penalty.
    pub weight: Option<f64>,
    /// True if its failure fails the whole expectation.
    pub critical: bool,
    /// Strategy for combining its items.
    pub strategy: Option<Strategy>,
    /// Score from which it passes.
    pub threshold: Option<f64>,
    /// Title.
    pub title: Option<String>,
    /// Category under which it is reported.
    pub dimension: Option<String>,
}

/// Returns `true` if the short forms in this map are metadata. Next to `$meta`, they are data like any other key,
/// unless the map belongs to an operator, which has no data.
pub fn has_shorthands(entries: &[(model::Spanned<String>, Node)], is_operator: bool) -> bool {
    let container = entries.iter().find(|(key, _)| key.value == CONTAINER);
    is_operator || !container.is_some_and(|(_, node)| matches!(node.kind, NodeKind::Map(_) | NodeKind::List(_)))
}

impl Meta {
    /// Reads the metadata of `node`, if it is a map.
    pub fn read(node: &Node, is_operator: bool, problems: &mut Problems) -> Self {
        let mut meta = Self::default();
        let NodeKind::Map(entries) = &node.kind else { return meta };
        let mut critical = None;
        let container = node.get(CONTAINER);
        if let Some(other) = container.filter(|container| !matches!(container.kind, NodeKind::Map(_))) {
            problems.push(no_map(other));
        } else if let Some(container) = container
            && let Some(mut fields) = Fields::of(container, "`$meta`", problems)
        {
            let score = fields.get("score");
            meta.fill(&mut fields, &mut critical, "", problems);
            meta.score(score, &mut critical, problems);
            fields.finish(problems);
        }
        if has_shorthands(entries, is_operator)
            && entries.iter().any(|(key, _)| SHORTHANDS.contains(&key.value.as_str()))
            && let Some(mut fields) = Fields::of(node, "an expectation", problems)
        {
            fields.open();
            let score = fields.get("$score");
            let mut own = Self::default();
            let mut own_critical = None;
            own.fill(&mut fields, &mut own_critical, "$", problems);
            own.score(score, &mut own_critical, problems);
            meta.merge(own);
            critical = critical.or(own_critical);
        }
        meta.critical = critical.unwrap_or_default();
        meta
    }

    /// Fills in missing values from `other`.
    fn merge(&mut self, other: Self) {
        self.weight = self.weight.or(other.weight);
        self.strategy = self.strategy.or(other.strategy);
        self.threshold = self.threshold.or(other.threshold);
        self.title = self.title.take().or(other.title);
        self.dimension = self.dimension.take().or(other.dimension);
    }

    /// Reads the fields that `$meta`, the short forms and a `$score` map have in common. Fields that are present
    /// override earlier values.
    fn fill(&mut self, fields: &mut Fields<'_>, critical: &mut Option<bool>, prefix: &str, problems: &mut Problems) {
        let short = prefix == "$";
        let name = |long: &'static str, with: &'static str| if short { with } else { long };
        self.title = present(fields.any_text(name("title", "$title"), problems)).or(self.title.take());
        self.dimension = present(fields.any_text(name("dimension", "$dimension"), problems)).or(self.dimension.take());
        // A note for people. It is read only to mark the field as known.
        fields.any_text(name("description", "$description"), problems);
        let key = name("critical", "$critical");
        let written = fields.get(key).map(|node| value::truthy(&node.to_json()));
        // A value that is not a boolean is reported, but its truthiness is still used.
        *critical = fields.boolean(key, problems).or(written).or(*critical);
        if let Some(node) = fields.get(name("strategy", "$strategy")).filter(|node| node.as_str() != Some("")) {
            self.strategy = decode::choice(node, "a strategy", &Strategy::ALL, problems).or(self.strategy);
        }
        if let Some(node) = fields.get(name("threshold", "$threshold")) {
            self.threshold = threshold(node, problems).or(self.threshold);
        }
    }

    /// Reads `score`: a weight, or a map with a weight and other fields.
    fn score(&mut self, node: Option<&Node>, critical: &mut Option<bool>, problems: &mut Problems) {
        let Some(node) = node else { return };
        match &node.kind {
            NodeKind::Number(number) => self.weight = number.as_f64(),
            NodeKind::Map(_) => {
                let Some(mut fields) = Fields::of(node, "a score", problems) else { return };
                self.weight = match fields.get("value") {
                    None => Some(1.0),
                    Some(value) => match &value.kind {
                        NodeKind::Number(number) => number.as_f64(),
                        _ => {
                            problems.push(value.error(format!("a weight must be a number, not {}", value.kind_name())));
                            None
                        }
                    },
                };
                self.fill(&mut fields, critical, "", problems);
                fields.finish(problems);
            }
            _ => problems.push(
                node.error(format!("a score must be a number or a map, not {}", node.kind_name()))
                    .help("a number is a weight; a map may have `value`, `critical`, `dimension`, `title`, `threshold`, `strategy`"),
            ),
        }
    }
}

/// Reports that `$meta` is not a map. A string is an error, because it is almost certainly meant as metadata.
fn no_map(container: &Node) -> model::Diagnostic {
    let message = format!("`{CONTAINER}` must be a map, not {}", container.kind_name());
    match container.kind {
        NodeKind::String(_) => container.error(message),
        _ => container.warning(message).help("it is ignored"),
    }
}

fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn threshold(node: &Node, problems: &mut Problems) -> Option<f64> {
    let value = if let NodeKind::Number(number) = &node.kind { number.as_f64() } else { None };
    if value.is_none_or(|value| !(0.0..=1.0).contains(&value)) {
        problems.push(node.error("a threshold must be a number from 0 to 1"));
    }
    value
}

/// Returns the metadata key of which `key` is probably a misspelling, such as `$socre`.
pub fn near(key: &str) -> Option<&'static str> {
    nearest(key, SHORTHANDS.iter().copied().chain([CONTAINER]))
}
