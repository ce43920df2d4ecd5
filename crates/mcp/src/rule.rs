//! Rules that a server keeps or breaks.

use serde_json::{Value, json};

/// Maximum number of characters of an observation.
const SHOWN: usize = 400;
/// Maximum number of observations about one rule that are listed.
const LISTED: usize = 5;

/// Importance of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Every server must keep it.
    Mandatory,
    /// A recommendation.
    Advisory,
}

impl Tier {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mandatory => "mandatory",
            Self::Advisory => "advisory",
        }
    }
}

/// Result of checking a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The server keeps the rule.
    Kept,
    /// The server breaks the rule, as described.
    Broken(String),
    /// The rule was not checked, for this reason.
    Skipped(String),
}

/// A rule, and the result of checking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Name.
    pub id: String,
    /// Importance.
    pub tier: Tier,
    /// The rule in words.
    pub rule: &'static str,
    /// Result.
    pub verdict: Verdict,
}

/// Schema check: returns the errors of a value, or the reason why they are not known.
pub type SchemaCheck = fn(&Value, &Value) -> Result<Vec<String>, String>;

/// Rules that were checked.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The rules, in the order in which they were checked.
    pub rules: Vec<Rule>,
    /// Put before each id.
    pub(crate) prefix: &'static str,
}

impl Report {
    fn add(&mut self, tier: Tier, id: &str, rule: &'static str, verdict: Verdict) {
        self.rules.push(Rule { id: format!("{}{id}", self.prefix), tier, rule, verdict });
    }

    /// Adds a rule. The server breaks it if there are problems; the first ones are shown.
    pub(crate) fn none(
        &mut self,
        tier: Tier,
        id: &str,
        rule: &'static str,
        problems: impl IntoIterator<Item = impl AsRef<str>>,
    ) {
        let problems: Vec<String> =
            problems.into_iter().map(|problem| model::text::shortened(problem.as_ref(), SHOWN)).collect();
        let more = problems.len().saturating_sub(LISTED);
        let mut shown = problems.into_iter().take(LISTED).collect::<Vec<_>>().join("; ");
        if more > 0 {
            shown.push_str(&format!("; and {more} more"));
        }
        let verdict = if shown.is_empty() { Verdict::Kept } else { Verdict::Broken(shown) };
        self.add(tier, id, rule, verdict);
    }

    /// Adds a rule that holds or not, with what was seen instead.
    pub(crate) fn holds(
        &mut self,
        tier: Tier,
        id: &str,
        rule: &'static str,
        holds: bool,
        seen: impl FnOnce() -> String,
    ) {
        self.none(tier, id, rule, (!holds).then(seen));
    }

    /// Adds a rule that was not checked.
    pub(crate) fn skip(&mut self, tier: Tier, id: &str, rule: &'static str, reason: &str) {
        self.add(tier, id, rule, Verdict::Skipped(reason.to_owned()));
    }

    /// Returns the ids of the rules that are broken.
    pub fn broken(&self) -> Vec<&str> {
        let is_broken = |rule: &&Rule| matches!(rule.verdict, Verdict::Broken(_));
        self.rules.iter().filter(is_broken).map(|rule| rule.id.as_str()).collect()
    }

    /// Returns the rules as JSON.
    pub fn to_json(&self) -> Value {
        let rule = |rule: &Rule| {
            let (result, seen) = match &rule.verdict {
                Verdict::Kept => ("kept", None),
                Verdict::Broken(seen) => ("broken", Some(seen)),
                Verdict::Skipped(reason) => ("skipped", Some(reason)),
            };
            let mut json = json!({"id": rule.id, "tier": rule.tier.name(), "rule": rule.rule, "result": result});
            if let Some(seen) = seen {
                json["seen"] = seen.as_str().into();
            }
            json
        };
        self.rules.iter().map(rule).collect()
    }

    /// Describes the rules in one line, and each broken one in another.
    pub fn describe(&self) -> String {
        let broken = self.broken().len();
        let skipped = self.rules.iter().filter(|rule| matches!(rule.verdict, Verdict::Skipped(_))).count();
        let kept = self.rules.len() - broken - skipped;
        let mut text = format!("{kept} kept, {broken} broken, {skipped} skipped");
        for rule in &self.rules {
            if let Verdict::Broken(seen) = &rule.verdict {
                text.push_str(&format!("\n{} ({}): {} — {seen}", rule.id, rule.tier.name(), rule.rule));
            }
        }
        text
    }
}
