//! Hint for a string that contains JSON where a map or a list was expected. It does not match, because the agent
//! returned a string, but the user should know.

use serde::de::IgnoredAny;
use serde_json::Value;

/// Returns the hint for a message if `actual` is the JSON text of a map or a list.
pub fn remark(actual: Option<&Value>) -> &'static str {
    match actual {
        Some(Value::String(text)) if is_json(text) || blocks(text).any(is_json) => {
            "; the text is JSON: `responseParser: json` next to this expectation (in the test, for any agent) parses it"
        }
        _ => "",
    }
}

/// Returns the contents of the fenced code blocks in a string.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").skip(1).step_by(2).filter_map(|block| Some(block.split_once('\n')?.1))
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
