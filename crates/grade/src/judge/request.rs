//! A question as a request: what is trusted in the system prompt, what is judged inside the fence, and the same text
//! around it whatever stands inside.

use llm::{Conversation, Message, Request, ResponseSchema, Role};

use super::answer;
use super::fence::Fence;
use super::prompt;
use super::question::{Form, Question};

/// The request that asks `question` inside `fence`.
pub(super) fn request(question: &Question, fence: &Fence, temperature: Option<f64>) -> Request {
    let fenced = fence.enclose(&question.material);
    let reminder = prompt::REMINDER.replace("{seal}", &fence.seal);
    Request {
        system: vec![instructions(question, fence)],
        messages: vec![Message::text(Role::User, format!("{fenced}\n\n{reminder}"))],
        temperature,
        response_schema: Some(ResponseSchema { name: "judgement".into(), schema: answer::schema(question) }),
        // What one trial waited for in vain, the others need not wait for.
        gives_up_on_silence: true,
        // A judge has one conversation and no tools; a script is to play its steps to it.
        conversation: Conversation::main(),
        ..Request::default()
    }
}

/// All that is told before the material.
fn instructions(question: &Question, fence: &Fence) -> String {
    let marks = prompt::FENCE
        .replace("{begin}", &fence.begin())
        .replace("{part}", &fence.part())
        .replace("{end}", &fence.end());
    let mut parts = vec![prompt::ROLE.to_owned(), marks, prompt::PARTS.to_owned(), question.task.clone()];
    if question.form.has_marks() {
        parts.push(prompt::MARKS.to_owned());
    }
    if let (Form::Scores(_), Some(scale)) = (question.form, question.form.scale()) {
        parts.push(prompt::SCORES.replace("{scale}", &scale.to_string()));
    }
    if !question.criteria.is_empty() {
        let line = |criterion: &super::question::Criterion| format!("- {}: {}", criterion.id, criterion.text);
        parts.push(question.criteria.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
    parts.push(prompt::QUOTES.to_owned());
    parts.join("\n\n")
}

/// What a cached answer is filed under, beside who answered: everything that is asked, without the marks of a call.
pub(super) fn content(question: &Question) -> String {
    let criteria: Vec<(&str, &str)> =
        question.criteria.iter().map(|criterion| (criterion.id.as_str(), criterion.text.as_str())).collect();
    let parts: Vec<(&str, &str)> =
        question.material.parts.iter().map(|part| (part.title.as_str(), part.text.as_str())).collect();
    // JSON keeps the pieces apart, whatever they hold.
    serde_json::json!([prompt::VERSION, question.task, format!("{:?}", question.form), criteria, parts]).to_string()
}
