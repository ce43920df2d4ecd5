//! Size of the list of tools, which is part of each request to a model.

use serde_json::{Value, json};

use crate::rule::{Report, Tier};

/// Number of bytes of JSON that make up a token, roughly.
const BYTES_PER_TOKEN: usize = 4;
/// Number of tokens above which a list is large.
const LARGE: usize = 10_000;

/// Size of a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolList {
    /// Number of tools.
    pub tools: usize,
    /// Approximate number of tokens.
    pub tokens: usize,
}

/// Limits on the size of a list of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolListLimits {
    /// Maximum number of tools.
    pub tools: Option<usize>,
    /// Maximum number of tokens.
    pub tokens: Option<usize>,
}

impl ToolList {
    /// Measures a list. Models count tokens in different ways, so their number is an estimate.
    pub fn of(tools: &[Value]) -> Self {
        let bytes: usize = tools.iter().map(|tool| tool.to_string().len()).sum();
        Self { tools: tools.len(), tokens: bytes / BYTES_PER_TOKEN }
    }

    /// Checks the limits. Without one, a large list breaks a recommendation.
    pub(crate) fn check(self, most: &ToolListLimits, report: &mut Report) {
        let Self { tools, tokens } = self;
        if let Some(most) = most.tools {
            let rule = "the server has at most as many tools as `max_tools` allows";
            report.holds(Tier::Mandatory, "tool_count", rule, tools <= most, || {
                format!("{tools} tools, and {most} allowed")
            });
        }
        let seen = |most: usize| format!("about {tokens} tokens, and {most} allowed");
        match most.tokens {
            Some(most) => {
                let rule = "the list of tools has at most as many tokens as `max_tokens` allows";
                report.holds(Tier::Mandatory, "tool_list_tokens", rule, tokens <= most, || seen(most));
            }
            None => {
                let rule =
                    "the list of tools has at most about 10,000 tokens, which are part of each request to the model";
                report.holds(Tier::Advisory, "tool_list_tokens", rule, tokens <= LARGE, || seen(LARGE));
            }
        }
    }

    /// Returns the size as JSON.
    pub fn to_json(self) -> Value {
        json!({"tools": self.tools, "tokens": self.tokens})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_compared_with_its_limits() {
        let list = ToolList::of(&[json!({"name": "a", "description": "x".repeat(400)}), json!({"name": "b"})]);
        assert_eq!((list.tools, list.tokens), (2, 110));
        let broken = |most: ToolListLimits| {
            let mut report = Report::default();
            list.check(&most, &mut report);
            report.broken().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(broken(ToolListLimits::default()), [""; 0]);
        assert_eq!(broken(ToolListLimits { tools: Some(2), tokens: Some(110) }), [""; 0]);
        assert_eq!(broken(ToolListLimits { tools: Some(1), tokens: Some(109) }), ["tool_count", "tool_list_tokens"]);
    }
}
