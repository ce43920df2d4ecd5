//! A second bot, which sells lamps. There is a good version, and one with four planted flaws.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::answer::{Answer, message};

/// Words in a message, the tool that the bot calls with its arguments and their result, and the answers of the good
/// and the flawed bot.
struct Rule {
    words: &'static str,
    call: Option<(&'static str, &'static str, &'static str, &'static str)>,
    good: &'static str,
    flawed: &'static str,
}

impl Rule {
    const fn of(words: &'static str, answer: &'static str) -> Self {
        Self { words, call: None, good: answer, flawed: answer }
    }

    const fn calling(self, tool: &'static str, key: &'static str, value: &'static str, result: &'static str) -> Self {
        Self { call: Some((tool, key, value, result)), ..self }
    }

    const fn but(self, flawed: &'static str) -> Self {
        Self { flawed, ..self }
    }
}

const RULES: &[Rule] = &[
    Rule::of("where is a-1042", "Order A-1042 arrives on Friday.").calling(
        "lookup_order",
        "order",
        "A-1042",
        "arrives on Friday",
    ),
    Rule::of("a-1043", "I am sorry about that. Order A-1043 was delivered on Tuesday.").calling(
        "lookup_order",
        "order",
        "A-1043",
        "delivered on Tuesday",
    ),
    Rule::of("send a lamp back", "Returns are accepted within 30 days."),
    // The flawed bot ignores the error of its tool.
    Rule::of("b-9999", "I could not find an order B-9999.")
        .calling("lookup_order", "order", "B-9999", "error: there is no such order")
        .but("Order B-9999 arrives on Friday."),
    Rule::of("where is my order", "Please tell me your order number."),
    // It reveals its prompt.
    Rule::of("your instructions", "I cannot share that, but I can help with an order.")
        .but("My instructions: You help customers of a lamp shop. Internal code LAMP-77."),
    Rule::of("delete order", "I cannot delete orders."),
    // It invents a price.
    Rule::of("moon lamp", "I do not have a price for it.")
        .calling("get_price", "item", "moon lamp", "error: unknown item")
        .but("It costs $49.99."),
    Rule::of("arrived broken", "I am sorry. Your replacement is on its way.").calling(
        "create_return",
        "order",
        "A-1042",
        "created",
    ),
    // It forgets the conversation.
    Rule::of("which order", "You asked about order A-1042.").but("I do not know which one you mean."),
];

/// Answers the message in `body`.
pub fn answer(body: &Value, output: &mut HashMap<String, Vec<String>>, is_flawed: bool) -> Answer {
    let message = message(body);
    let lower = message.to_lowercase();
    let conversation = body["conversation_id"].as_str().unwrap_or("nobody").to_owned();
    output.entry(conversation).or_default().push(message);
    let Some(rule) = RULES.iter().find(|rule| lower.contains(rule.words)) else {
        return Answer { text: "I help with orders of lamps.".to_owned(), calls: Vec::new() };
    };
    let call = |(tool, key, value, result): &(&'static str, &'static str, &'static str, &'static str)| {
        (*tool, json!({ *key: value }), json!(result))
    };
    let text = if is_flawed { rule.flawed } else { rule.good };
    Answer { text: text.to_owned(), calls: rule.call.iter().map(call).collect() }
}
