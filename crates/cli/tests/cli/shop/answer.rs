//! Knowledge and behaviour of the bot.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Answer of the bot.
pub struct Answer {
    pub text: String,
    /// Name, arguments and result of each tool call.
    pub calls: Vec<(&'static str, Value, Value)>,
}

/// Words in a message, the tool that the bot then calls, and its answer.
const RULES: &[(&[&str], Option<&str>, &str)] = &[
    (
        &["refund right now", "damaged"],
        Some("lookup_order"),
        "I am so sorry about the damaged laptop, and I understand how frustrating this is. I have your order here, and I \
         am starting a full refund for you.",
    ),
    (
        &["processed today"],
        Some("initiate_refund"),
        "I have started it just now. The refund leaves us today; banks then need three to five working days, so please \
         expect it on your account by Friday.",
    ),
    (
        &["$99", "$79"],
        Some("check_inventory"),
        "Thank you for telling me. I acknowledge that the website says $99 and the promotion in your email says $79. Let me \
         look into it: if the promotion is still valid, you will pay $79.",
    ),
    (
        &["return policy"],
        None,
        "Happy to help! You can return anything within 30 days, unused and with the receipt, for a full refund.",
    ),
    (&["where is a-1042"], Some("lookup_order"), "Order A-1042 is on its way, it arrives on Friday."),
    (&["a-1043"], Some("lookup_order"), "Order A-1043 is delivered, as of last Tuesday."),
    (&["which order"], None, "We were talking about order A-1042."),
    (&["hello"], None, "Hello! How can I help you today?"),
];

/// Answers the message in `body`, which may have any request format.
pub fn answer(body: &Value, output: &mut HashMap<String, Vec<String>>) -> Answer {
    let message = message(body);
    let lower = message.to_lowercase();
    let conversation = body["conversation_id"].as_str().unwrap_or("nobody").to_owned();
    let before = output.entry(conversation).or_default();
    let answer = match RULES.iter().find(|(words, ..)| words.iter().any(|word| lower.contains(word))) {
        Some((_, tool, text)) => {
            let call = |tool: &&'static str| (*tool, json!({ "order": "A-1042" }), json!({ "status": "found" }));
            Answer { text: (*text).to_owned(), calls: tool.iter().map(call).collect() }
        }
        None if lower.contains("said before") => {
            Answer { text: format!("Before that you said: {}", before.join(" | ")), calls: Vec::new() }
        }
        None => Answer { text: format!("You said: {message}"), calls: Vec::new() },
    };
    before.push(message);
    answer
}

/// Returns the user's last message.
pub fn message(body: &Value) -> String {
    let last = body["messages"].as_array().and_then(|messages| messages.last());
    let text = body["message"].as_str().or(last.and_then(|last| last["content"].as_str()));
    text.or(body["input"].as_str()).unwrap_or_default().to_owned()
}
