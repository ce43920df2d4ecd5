//! A model that plans and writes tests, behind the chat completions API. Its answer depends only on the content of
//! each request, so requests can come in any order.

use serde_json::{Value, json};

/// Proposals of the model.
#[derive(Debug, Clone, Default)]
pub struct Proposals {
    /// Answer to the request for a plan.
    pub plan: Value,
    /// Tests by planned name.
    pub tests: Vec<(String, Value)>,
}

/// Returns the answer to `request`.
pub fn write(request: &Value, proposals: &Proposals) -> Value {
    let content = match request["response_format"]["json_schema"]["name"].as_str() {
        Some("plan") => proposals.plan.clone(),
        Some("test") => test(request, proposals),
        Some("facts") => json!({ "facts": [], "tools": [] }),
        _ => json!({ "files": [] }),
    };
    json!({
        "id": "written", "object": "chat.completion", "model": "writer",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": content.to_string() } }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 20 },
    })
}

/// Returns the test that the first message asks for.
fn test(request: &Value, proposals: &Proposals) -> Value {
    let messages = request["messages"].as_array().into_iter().flatten();
    let asked = messages.filter_map(|message| message["content"].as_str()).find_map(|text| {
        let (_, planned) = text.split_once("The planned test: ")?;
        serde_json::from_str::<Value>(planned).ok()
    });
    let name = asked.as_ref().and_then(|planned| planned["name"].as_str()).unwrap_or_default();
    let found = proposals.tests.iter().find(|(known, _)| known == name);
    found.map_or(Value::Null, |(_, test)| test.clone())
}
