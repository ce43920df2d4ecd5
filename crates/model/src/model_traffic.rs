//! Traffic between an agent and its model, as the gateway counted it.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Tokens, named_mode};

/// Relative difference from which the token counts of the gateway and the agent are considered different.
const TOLERANCE: f64 = 0.03;

/// Use of the gateway for vendors' models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GatewayMode {
    /// Agents reach their vendors directly.
    #[default]
    Off,
    /// The gateway forwards agents' requests to their vendors, and counts them.
    Observe,
}

impl GatewayMode {
    /// All modes, with their written names.
    pub const ALL: [(&'static str, Self); 2] = [("off", Self::Off), ("observe", Self::Observe)];

    /// Returns the written name.
    pub fn name(self) -> &'static str {
        named_mode::name_of(&self, &Self::ALL)
    }
}

impl FromStr for GatewayMode {
    type Err = crate::InvalidText;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        named_mode::parse(written, &Self::ALL, "a gateway mode")
    }
}

/// Traffic between an agent and its model in one trial. If the agent repeats a request, each attempt is counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelTraffic {
    /// Number of requests.
    pub requests: u64,
    /// Requests for messages of the agent's own conversation.
    pub main: u64,
    /// Requests for messages of sub-agents.
    pub sub_agents: u64,
    /// Requests for other messages, such as a title.
    pub side: u64,
    /// Requests that are not for messages, such as token counts.
    pub other: u64,
    /// Number of requests that were answered from a cassette.
    #[serde(skip_serializing_if = "is_zero")]
    pub replayed: u64,
    /// Requests that repeat a failed one.
    pub retries: u64,
    /// Number of responses by HTTP status; `none` if there was no response.
    pub statuses: BTreeMap<String, u64>,
    /// Number of requests by provider host.
    pub hosts: BTreeMap<String, u64>,
    /// Number of answers by model, as the provider names it.
    pub models: BTreeMap<String, u64>,
    /// Tokens of all answers; absent if an answer did not report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Cost of all answers in US dollars; absent if any of them is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Time from a request for a message to the first byte of its answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<Spread>,
    /// Time from a request for a message to the end of its answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<Spread>,
}

/// Median and maximum of several durations, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Median; for an even number of values, the larger of the middle two.
    pub median: u64,
    /// Maximum.
    pub max: u64,
}

impl Spread {
    /// Returns the spread of `values`; `None` if there are none.
    pub fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        Some(Self { median: *values.get(values.len() / 2)?, max: *values.last()? })
    }
}

impl ModelTraffic {
    /// Returns a message if the tokens that the agent reports differ from the counted ones by more than a few per cent,
    /// or if there was no traffic to count.
    pub fn difference(&self, reported: Option<&Tokens>) -> Option<String> {
        if self.requests == self.other {
            return Some("the agent sent no request for a message through the gateway".to_owned());
        }
        let (counted, reported) = (self.tokens?.total(), reported?.total());
        let share = counted.abs_diff(reported) as f64 / counted.max(reported).max(1) as f64;
        (share > TOLERANCE).then(|| format!("the gateway counted {counted} tokens, but the agent reported {reported}"))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_difference_of_more_than_a_few_percent_is_reported() {
        let tokens = |input| Tokens { input, ..Tokens::default() };
        let difference = |counted, reported| {
            let traffic = ModelTraffic { requests: 1, tokens: Some(tokens(counted)), ..ModelTraffic::default() };
            traffic.difference(Some(&tokens(reported)))
        };
        assert_eq!((difference(1000, 1000), difference(1000, 1029), difference(0, 0)), (None, None, None));
        assert!(difference(1000, 1040).unwrap().contains("counted 1000 tokens, but the agent reported 1040"));
        assert!(difference(1000, 0).is_some());
        let unknown = ModelTraffic { requests: 1, ..ModelTraffic::default() };
        assert_eq!(unknown.difference(Some(&tokens(1))), None, "unknown is not a difference");
        assert!(ModelTraffic::default().difference(None).unwrap().contains("no request"));
    }

    #[test]
    fn a_spread_has_the_median_and_the_maximum() {
        assert_eq!(Spread::of(vec![9, 1, 5]), Some(Spread { median: 5, max: 9 }));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn an_unknown_mode_is_an_error_with_a_suggestion() {
        assert_eq!("observe".parse(), Ok(GatewayMode::Observe));
        assert!("observed".parse::<GatewayMode>().unwrap_err().to_string().contains("did you mean `observe`?"));
    }
}
