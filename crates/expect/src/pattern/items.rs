//! A list: each expectation must match the item at the same position of the value.

use super::json_text;
use crate::prelude::*;

/// Expectations by position.
#[derive(Debug)]
pub struct Items {
    /// Expectations for the first items.
    pub items: Vec<Matcher>,
    /// Source position.
    pub place: SourceLocation,
}

impl Rule for Items {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let Some(Value::Array(values)) = actual else {
            let message = format!("expected a list, not {}{}", value::kind(actual), json_text::remark(actual));
            let critical = self.items.iter().any(|item| item.critical);
            return Found::flawed(Flaw { critical, ..Flaw::new(&self.place, message).actual(actual) });
        };
        if at.run.rules.strict.array && values.len() != self.items.len() {
            let message = {
                let noun = if self.items.len() == 1 { "item" } else { "items" };
                format!("expected exactly {} {noun}, not {}", self.items.len(), values.len())
            };
            let flaw = Flaw::new(&self.place, message).expected(self.items.len().into());
            return Found::flawed(flaw.actual(Some(&values.len().into())));
        }
        let weights: Vec<_> = self.items.iter().map(|item| item.meta.weight).collect();
        let strategy = at.strategy.unwrap_or_default();
        let shares = strategy.distribute(&at.run.rules.budget, &weights);
        let found = self.items.iter().enumerate().map(|(index, item)| {
            let value = values.get(index);
            item.judge(value, &Scope { present: value.is_some(), ..at.below(&format!("[{index}]")) })
        });
        strategy.aggregate(found, &shares, &self.place)
    }

    fn quick_score(&self, actual: Option<&Value>, at: &Scope<'_>) -> Option<QuickScore> {
        let Some(Value::Array(values)) = actual else { return Some(QuickScore::from_bool(false)) };
        if at.run.rules.strict.array && values.len() != self.items.len() {
            return Some(QuickScore::from_bool(false));
        }
        if at.strategy.is_some() {
            return None;
        }
        QuickScore::mean(self.items.iter().enumerate().map(|(index, item)| item.quick_score(values.get(index), at)))
    }
}
