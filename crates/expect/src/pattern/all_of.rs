//! Several rules in one map: several operators, or operators and plain keys. All of them must hold.

use crate::path;
use crate::prelude::*;
use crate::strategy::Strategy;

/// Rules that must all hold, each with the name of its operator.
#[derive(Debug)]
pub struct AllOf {
    /// The rules. The name is empty for plain keys, because their paths are sufficient.
    pub rules: Vec<(String, Matcher)>,
    /// Source position.
    pub place: SourceLocation,
}

impl Rule for AllOf {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        // A strategy in a map with several operators applies to the items of each operator, not to the operators.
        let shares = Strategy::Weighted.distribute(&at.run.rules.budget, &vec![None; self.rules.len()]);
        let found = self.rules.iter().map(|(name, matcher)| {
            let key = if name.is_empty() { at.key.clone() } else { path::below(&at.key, name) };
            matcher.judge(actual, &Scope { key, ..at.clone() })
        });
        Strategy::Weighted.aggregate(found, &shares, &self.place)
    }
}
