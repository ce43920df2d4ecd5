//! Isolation that a project or a case requires: guarantees, and the network policy.

use model::decode::{Fields, Problems, choice, list, text};
use model::{GUARANTEES, HostPattern, NetworkPolicy, Node, NodeKind, nearest};

/// Reads `require`: a list of guarantees.
pub fn guarantees(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let Some(node) = fields.get("require") else { return Vec::new() };
    let NodeKind::List(items) = &node.kind else {
        problems.push(node.error("`require` must be a list").help(format!("possible: {}", GUARANTEES.join(", "))));
        return Vec::new();
    };
    let choices = GUARANTEES.map(|name| (name, name));
    let items = items.iter().filter_map(|item| choice(item, "an item of `require`", &choices, problems));
    items.map(str::to_owned).collect()
}

/// Reads a network policy: a name, or `{allow: [HOST]}`.
pub fn network_policy(node: &Node, problems: &mut Problems) -> Option<NetworkPolicy> {
    if matches!(node.kind, NodeKind::Map(_)) {
        let mut fields = Fields::of(node, "`network`", problems)?;
        let hosts = fields.require("allow", problems);
        let hosts = match hosts.filter(|hosts| hosts.as_str() == Some("*")) {
            Some(every) => Some(std::slice::from_ref(every)),
            None => hosts.and_then(|hosts| list(hosts, "`allow`", problems)),
        };
        fields.finish(problems);
        let mut host = |item: &Node| {
            if item.as_str() == Some("*") {
                problems.push(item.error("`*` is not the name of a host").help("write `network: open` for all hosts"));
                return None;
            }
            let written = text(item, "an item of `allow`", problems)?;
            HostPattern::of_policy(&written).map_err(|reason| problems.push(item.error(reason.to_string()))).ok()
        };
        return hosts.map(|hosts| NetworkPolicy::Allow(hosts.iter().filter_map(&mut host).collect()));
    }
    let policy = node.as_str().and_then(NetworkPolicy::named);
    if policy.is_none() {
        let written = node.as_str().map_or_else(|| node.kind_name().to_owned(), |text| format!("`{text}`"));
        let names: Vec<String> = NetworkPolicy::names().map(|name| format!("`{name}`")).collect();
        problems.push(
            node.error(format!("`network` must be {} or `{{allow: [HOST]}}`, not {written}", names.join(", ")))
                .suggest(node.as_str().and_then(|text| nearest(text, NetworkPolicy::names()))),
        );
    }
    policy
}
