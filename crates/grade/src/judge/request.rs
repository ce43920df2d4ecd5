//! Turns a question into a request. Trusted text is in the system prompt, material is inside the fence, and the text
//! around the fence does not depend on the material.

use llm::{Conversation, Message, Request, ResponseSchema, Role};

use super::answer;
use super::fence::Fence;
use super::prompt;
use super::question::{Form, Question};

/// Returns the request that asks `question` inside `fence`.
pub(super) fn request(question: &Question, fence: &Fence, temperature: Option<f64>) -> Request {
    let fenced = fence.enclose(&question.material);
    let reminder = prompt::REMINDER.replace("{seal}", &fence.seal);
    Request {
        system: vec![instructions(question, fence)],
        messages: vec![Message::text(Role::User, format!("{fenced}\n\n{reminder}"))],
        temperature,
        response_schema: Some(ResponseSchema { name: "judgement".into(), schema: answer::schema(question) }),
        // If one trial got no answer, the others do not need to wait for one.
        gives_up_on_silence: true,
        // A judge has one conversation and no tools, so a script plays its steps in that conversation.
        conversation: Conversation::main(),
        ..Request::default()
    }
}

/// Returns everything that comes before the material.
fn instructions(question: &Question, fence: &Fence) -> String {
    let marks = prompt::FENCE
        .replace("{begin}", &fence.begin())
        .replace("{part}", &fence.part())
        .replace("{end}", &fence.end());
    let is_pair = question.form == Form::Choice;
    let kinds = if is_pair { prompt::PAIR_PARTS } else { prompt::PARTS };
    let mut parts = vec![prompt::ROLE.to_owned(), marks, kinds.to_owned()];
    if question.material.may_lack_calls {
        parts.push(prompt::LACKS_CALLS.to_owned());
    }
    parts.push(question.task.clone());
    if is_pair {
        parts.push(prompt::CHOICES.to_owned());
    }
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
    if !is_pair {
        parts.push(prompt::QUOTES.to_owned());
    }
    parts.join("\n\n")
}

/// Returns the part of the cache key that describes the question: everything except the random parts of a call.
pub(super) fn content(question: &Question) -> String {
    let criteria: Vec<(&str, &str)> =
        question.criteria.iter().map(|criterion| (criterion.id.as_str(), criterion.text.as_str())).collect();
    let parts: Vec<(&str, &str)> =
        question.material.parts.iter().map(|part| (part.title.as_str(), part.text.as_str())).collect();
    // JSON keeps the pieces separate, regardless of what they contain.
    let (form, may_lack_calls) = (format!("{:?}", question.form), question.material.may_lack_calls);
    serde_json::json!([prompt::VERSION, question.task, form, criteria, parts, may_lack_calls]).to_string()
}
