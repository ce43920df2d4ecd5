//! `mcp_rules`: the MCP server under test keeps the rules that the agent `mcp` has checked.

use serde_json::Value;

use super::prelude::*;

/// Number of broken rules that a finding lists.
const SHOWN: usize = 40;

pub(crate) const ASSERTION: Assertion = Assertion::written("mcp_rules", |reading| {
    let ignored = reading.fields.texts("ignore", reading.problems).unwrap_or_default();
    let advisory = reading.fields.boolean("advisory", reading.problems).unwrap_or_default();
    Some(Arc::new(McpRules { ignored, advisory, place: SourceLocation::from_node(reading.fields.node()) }))
})
.summary("The MCP server keeps the rules that were checked.")
.fields(&[
    Field::optional("ignore", "list of strings", "Ids of rules that the server may break."),
    Field::optional("advisory", "true or false", "`true` if recommendations count too.").or("false"),
])
.example(
    || json!({"id": "keeps-rules", "type": "mcp_rules", "ignore": ["tool_names"]}),
    || {
        let kept = json!({"id": "unknown_method", "tier": "mandatory", "rule": "…", "result": "kept"});
        EvidenceBuilder::new().asks("{\"check\": \"protocol\"}").answer("").result(json!({"rules": [kept]}))
    },
    || {
        let rule = "an unknown method is answered with error -32601";
        let broken =
            json!({"id": "unknown_method", "tier": "mandatory", "rule": rule, "result": "broken", "seen": "{}"});
        EvidenceBuilder::new().asks("{\"check\": \"protocol\"}").answer("").result(json!({"rules": [broken]}))
    },
);

#[derive(Debug)]
struct McpRules {
    ignored: Vec<String>,
    advisory: bool,
    place: SourceLocation,
}

impl Matcher for McpRules {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let result = evidence.trace.result.as_deref();
        let rules = result.and_then(|result| result.get("rules")?.as_array());
        let seed = result.and_then(|result| result.get("seed")?.as_u64());
        let Some(rules) = rules else {
            return Ok(Verdict::undecided("no rules were checked; the agent `mcp` checks them").place(&self.place));
        };
        let text = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_owned();
        let checked: Vec<&Value> = rules.iter().filter(|rule| rule["result"] != "skipped").collect();
        let Some(first) = rules.first().filter(|_| checked.is_empty()) else {
            return Ok(self.of_checked(rules, &checked, seed).place(&self.place));
        };
        let reason = format!("no rule could be checked: {}", text(first, "seen"));
        Ok(Verdict::undecided(reason).place(&self.place))
    }
}

impl McpRules {
    /// Judges those of the rules `all` that were checked. `seed` is that of the generated arguments, if there are any.
    fn of_checked(&self, all: &[Value], checked: &[&Value], seed: Option<u64>) -> Verdict {
        if checked.is_empty() {
            return Verdict::undecided("no rules were checked");
        }
        let text = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_owned();
        let is_ignored = |rule: &Value| self.ignored.contains(&text(rule, "id"));
        let broken = checked.iter().copied().filter(|rule| rule["result"] == "broken");
        let (ignored, broken): (Vec<&Value>, Vec<&Value>) = broken.partition(|rule| is_ignored(rule));
        let (counted, advice): (Vec<&Value>, Vec<&Value>) =
            broken.into_iter().partition(|rule| self.advisory || rule["tier"] != "advisory");
        let line = |rule: &&Value| {
            let seen = text(rule, "seen");
            let seen = if seen.is_empty() { seen } else { format!(" — {seen}") };
            format!("{} ({}): {}{seen}", text(rule, "id"), text(rule, "tier"), text(rule, "rule"))
        };
        let lines = |rules: &[&Value]| format::few(rules.iter().map(line).collect(), SHOWN);
        let ids = |rules: &[&Value]| rules.iter().map(|rule| format!("`{}`", text(rule, "id"))).collect::<Vec<_>>();
        let of = format::count(checked.len(), "rule");
        let is_unknown = |id: &&String| !all.iter().any(|rule| rule["id"] == ***id);
        let unknown = self.ignored.iter().filter(is_unknown);
        let unknown: Vec<String> =
            unknown.map(|id| format!("`ignore` has `{id}`, which is not a rule of this check")).collect();
        let Some(first) = counted.first() else {
            let except = |what: &str, rules: &[&Value]| match rules.is_empty() {
                true => String::new(),
                false => format!(", except for {what}: {}", ids(rules).join(", ")),
            };
            let except = except("recommendations", &advice) + &except("ignored rules", &ignored);
            return Verdict::met(format!("the server keeps {of}{except}")).evidence(lines(&advice)).evidence(unknown);
        };
        let seeded = seed.map(|seed| format!(" (seed {seed})")).unwrap_or_default();
        let reason = format!("{} of {of} broken{seeded}: {}", counted.len(), ids(&counted).join(", "));
        Verdict::unmet(reason, text(first, "rule"), text(first, "seen")).evidence(lines(&counted)).evidence(unknown)
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::EvidenceBuilder;

    #[test]
    fn recommendations_count_only_if_asked_and_nothing_checked_is_undecided() {
        let rule =
            |tier: &str, result: &str| json!({"id": tier, "tier": tier, "rule": "r", "result": result, "seen": "s"});
        let status = |assertion: serde_json::Value, rules: serde_json::Value| {
            let evidence = EvidenceBuilder::new().answer("").result(json!({"rules": rules})).evidence();
            judged(&assertion, &evidence).status
        };
        let plain = || json!({"id": "a", "type": "mcp_rules"});
        let advised = json!([rule("advisory", "broken"), rule("mandatory", "kept")]);
        assert_eq!(status(plain(), advised.clone()), Status::Met);
        assert_eq!(status(json!({"id": "a", "type": "mcp_rules", "advisory": true}), advised), Status::Unmet);
        let broken = json!([rule("mandatory", "broken")]);
        assert_eq!(status(plain(), broken.clone()), Status::Unmet);
        assert_eq!(status(json!({"id": "a", "type": "mcp_rules", "ignore": ["mandatory"]}), broken), Status::Met);
        let ignoring = json!({"id": "a", "type": "mcp_rules", "ignore": ["mandatory", "other"]});
        let rules = json!({"rules": [rule("mandatory", "broken"), rule("advisory", "kept")]});
        let finding = judged(&ignoring, &EvidenceBuilder::new().answer("").result(rules).evidence());
        assert_eq!(finding.reason, "the server keeps 2 rules, except for ignored rules: `mandatory`");
        assert_eq!(finding.evidence, ["`ignore` has `other`, which is not a rule of this check"]);
        assert_eq!(status(plain(), json!([rule("mandatory", "skipped")])), Status::Undecided);
        assert_eq!(status(plain(), json!([])), Status::Undecided);
        let seeded = json!({"rules": [rule("mandatory", "broken")], "seed": 7});
        let finding = judged(&plain(), &EvidenceBuilder::new().answer("").result(seeded).evidence());
        assert_eq!(finding.reason, "1 of 1 rule broken (seed 7): `mandatory`");
        assert_eq!(judged(&plain(), &EvidenceBuilder::new().answer("hi").evidence()).status, Status::Undecided);
    }
}
