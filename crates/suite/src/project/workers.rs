//! `workers`: other processes that run the trials.

use model::decode::{Fields, Problems, as_whole};
use model::{Diagnostic, Node, NodeKind};

use super::environment::{Missing, take_below};
use super::{Setting, setting};

/// Workers that run the trials of the project's runs.
#[derive(Debug, Clone, Default)]
pub struct Workers {
    /// URL of the database with their queue, if it is not that of the record.
    pub queue: Option<Setting<String>>,
    /// Problems of the variables in `queue`. They matter only if that database is used.
    pub missing: Vec<Diagnostic>,
    /// Number of trials that may run at once on all machines, by agent, model, or `AGENT/MODEL`.
    pub limits: Vec<(String, Setting<u64>)>,
    /// Time that a trial waits for a worker that can run it, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// True if all trials of an agent run with the same version of it.
    pub same_version: bool,
}

impl Workers {
    /// Reads `workers`: `true`, or a map. `None` if this process runs the trials itself.
    pub(super) fn read(node: &Node, missing: &mut Vec<Missing>, problems: &mut Problems) -> Option<Self> {
        if let NodeKind::Bool(is_used) = node.kind {
            return is_used.then(Self::default);
        }
        let mut fields = Fields::of_either(node, "`workers`", "true, false or a map", problems)?.in_either_case();
        let queue = fields.text("queue", problems);
        let is_postgres = |url: &str| ["postgres://", "postgresql://", "$"].iter().any(|start| url.starts_with(start));
        if let Some(node) = fields.get("queue").filter(|_| queue.as_deref().is_some_and(|url| !is_postgres(url))) {
            problems.push(node.error("the URL of the queue must begin with `postgres://`"));
        }
        let workers = Self {
            queue: setting(queue, "queue", &mut fields),
            missing: take_below(missing, &["workers", "queue"]),
            limits: fields.get("limits").map(|node| limits(node, problems)).unwrap_or_default(),
            timeout_ms: fields.duration_ms("timeout", problems),
            same_version: fields.boolean("same_version", problems).unwrap_or_default(),
        };
        fields.finish(problems);
        Some(workers)
    }
}

fn limits(map: &Node, problems: &mut Problems) -> Vec<(String, Setting<u64>)> {
    let NodeKind::Map(entries) = &map.kind else {
        problems.push(map.error(format!("`limits` must be a map of names to numbers, not {}", map.kind_name())));
        return Vec::new();
    };
    let mut limits = Vec::new();
    for (name, node) in entries {
        let most = match &node.kind {
            NodeKind::Number(number) => as_whole(number).filter(|most| *most > 0),
            _ => None,
        };
        match most {
            Some(value) => {
                let source = map.source.excerpt(name.span);
                limits.push((name.value.clone(), Setting { value, source }));
            }
            None => problems.push(node.error(format!("the limit of `{}` must be a whole number above 0", name.value))),
        }
    }
    limits
}
