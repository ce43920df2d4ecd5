//! What a message asks the server under test for: a call, or one of the checks.

use std::time::Duration;

use mcp::{FuzzOptions, SafetyOptions, ToolListLimits};
use serde_json::{Value, json};

/// Time after which a server counts as hanging.
const LIMIT: Duration = Duration::from_secs(30);

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    /// Call a tool.
    Call(Call),
    /// Return the contract of the server, and compare it with the one in a file.
    Contract { file: Option<String> },
    /// Check the rules of the protocol.
    Protocol,
    /// Check the descriptions, and that the tools stay the same.
    Safety(SafetyOptions),
    /// Call tools with generated arguments.
    Fuzz(FuzzOptions),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) limit: Duration,
    /// True if progress is requested.
    pub(super) progress: bool,
    /// Time after which it is cancelled.
    pub(super) cancel_after: Option<Duration>,
}

impl Request {
    /// Reads a message.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        const FORM: &str = "a message to an MCP server is JSON such as `{\"call\": \"TOOL\", \"arguments\": {}}`";
        let message = model::foreign_json::parse(text).map_err(|error| format!("{FORM}: {error}"))?;
        let millis = |key: &str| message[key].as_u64().map(Duration::from_millis);
        let number = |key: &str| message[key].as_u64().and_then(|number| usize::try_from(number).ok());
        let names = |key: &str| {
            let names = message[key].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned);
            Some(names.collect::<Vec<_>>())
        };
        if let Some(tool) = message["call"].as_str() {
            return Ok(Self::Call(Call {
                tool: tool.to_owned(),
                arguments: message.get("arguments").cloned().unwrap_or_else(|| json!({})),
                limit: millis("timeout_ms").unwrap_or(LIMIT),
                progress: message["progress"] == true,
                cancel_after: millis("cancel_after_ms"),
            }));
        }
        match message["check"].as_str() {
            Some("contract") => Ok(Self::Contract { file: message["file"].as_str().map(str::to_owned) }),
            Some("protocol") => Ok(Self::Protocol),
            Some("safety") => {
                let usual = SafetyOptions::default();
                Ok(Self::Safety(SafetyOptions {
                    calls: number("calls").unwrap_or(usual.calls),
                    except: names("except").unwrap_or_default(),
                    most: ToolListLimits { tools: number("max_tools"), tokens: number("max_tokens") },
                    ..usual
                }))
            }
            Some("fuzz") => {
                let usual = FuzzOptions::default();
                Ok(Self::Fuzz(FuzzOptions {
                    seed: message["seed"].as_u64().unwrap_or(usual.seed),
                    inputs: number("inputs").unwrap_or(usual.inputs),
                    only: names("only"),
                    except: names("except").unwrap_or_default(),
                    limit: millis("timeout_ms").unwrap_or(usual.limit),
                }))
            }
            Some(other) => Err(format!("there is no check `{other}`")),
            None => Err(FORM.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_call_or_a_check() {
        let Ok(Request::Call(call)) = Request::read(r#"{"call": "add", "cancel_after_ms": 5}"#) else { panic!() };
        assert_eq!((call.tool.as_str(), call.arguments, call.limit), ("add", json!({}), LIMIT));
        assert_eq!(call.cancel_after, Some(Duration::from_millis(5)));
        assert_eq!(Request::read(r#"{"check": "safety"}"#), Ok(Request::Safety(SafetyOptions::default())));
        let Ok(Request::Safety(safety)) = Request::read(r#"{"check": "safety", "except": ["a"], "max_tools": 3}"#)
        else {
            panic!()
        };
        assert_eq!((safety.except, safety.most.tools), (vec!["a".to_owned()], Some(3)));
        let Ok(Request::Fuzz(fuzz)) = Request::read(r#"{"check": "fuzz", "seed": 9, "only": ["a"]}"#) else { panic!() };
        assert_eq!((fuzz.seed, fuzz.only), (9, Some(vec!["a".to_owned()])));
        for wrong in ["hello", "{}", r#"{"check": "all"}"#] {
            assert!(Request::read(wrong).is_err(), "{wrong}");
        }
    }
}
