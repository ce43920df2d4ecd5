//! A judge that approves everything, behind the chat completions API. It quotes the text that it judges. Of two trials,
//! it prefers the one whose last reply names a number of days.

use serde_json::{Value, json};

/// Passages of the bot's answers.
const PASSAGES: &[&str] = &["talking about order", "last Tuesday", "refund", "$79", "30 days", "Friday", "Hello"];

/// Returns the verdict that `request` asks for.
pub fn judge(request: &Value) -> Value {
    let prompt = request["messages"].as_array().into_iter().flatten();
    let prompt: String = prompt.filter_map(|message| message["content"].as_str()).collect();
    let quote = PASSAGES.iter().find(|passage| prompt.contains(**passage)).copied().unwrap_or_default();
    let schema = &request["response_format"]["json_schema"]["schema"];
    let rows = &schema["properties"]["answers"]["items"]["properties"];
    let answer = |id: &Value| {
        let mut answer = json!({ "id": id, "quote": quote, "reasoning": "It does." });
        if rows["verdict"].is_object() {
            let is_choice = rows["verdict"]["enum"][0] == "first";
            answer["verdict"] = if is_choice { choice(&prompt) } else { json!("met") };
        }
        if let Some(best) = rows["score"]["enum"].as_array().and_then(|scores| scores.last()) {
            answer["score"] = best.clone();
        }
        answer
    };
    let answers: Vec<Value> = rows["id"]["enum"].as_array().into_iter().flatten().map(answer).collect();
    // The end of the request names a word that must be repeated.
    let seal = prompt.rsplit_once("`seal` is `").and_then(|(_, rest)| rest.split('`').next()).unwrap_or_default();
    let content = json!({ "seal": seal, "answers": answers }).to_string();
    json!({
        "id": "judgement", "object": "chat.completion", "model": "judge",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": content } }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 20 },
    })
}

fn choice(output: &str) -> Value {
    let names_days = |trial: &str| {
        let reply = output.split_once(&format!("{trial}: last reply of the agent>>>")).map_or("", |(_, reply)| reply);
        reply.split("<<<").next().is_some_and(|reply| reply.contains(" days"))
    };
    json!(match (names_days("first"), names_days("second")) {
        (true, false) => "first",
        (false, true) => "second",
        _ => "equal",
    })
}
