//! Replies that must be JSON with a given structure.

use model::Tokens;
use serde_json::{Map, Value};

use crate::{FailureKind, Message, Model, ProviderError, Reply, Request, Role, StopReason};

/// Result of a request for JSON.
#[derive(Debug)]
pub struct StructuredReply {
    /// JSON value, or the reason why there is none.
    pub value: Result<Value, StructuredReplyError>,
    /// Tokens of all requests; `None` if those of one request are unknown.
    pub tokens: Option<Tokens>,
    /// Cost of all requests in US dollars; `None` if that of one request is unknown.
    pub cost_usd: Option<f64>,
    /// Number of replies.
    pub replies: u32,
}

/// Reason why there is no reply with the required structure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StructuredReplyError {
    /// The provider returned an error.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The model declined.
    #[error("the model declined to answer{}", .0.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
    Refused(Option<String>),
    /// The reply reached its token limit before it was complete.
    #[error("the response hit the token limit before it was complete")]
    TooLong,
    /// The reply is not JSON, or does not have the required structure, even after one retry.
    #[error("the answer does not have the requested form: {0}")]
    Invalid(String),
}

/// Asks `model` for JSON according to `request.response_schema`, using the provider's own feature. If the provider
/// does not have it, asks once more with the schema in the prompt. If `valid` rejects the reply, asks once more and
/// states the problem; if it also rejects the second reply, the error states both problems.
///
/// `valid` returns the problem with a reply. This crate has no JSON Schema validator.
pub async fn structured_reply(
    model: &dyn Model,
    request: &Request,
    valid: &(dyn Fn(&Value) -> Result<(), String> + Send + Sync),
) -> StructuredReply {
    let mut sum = Sum::default();
    let first = model.respond(request).await;
    let value = match first {
        Ok(reply) => match sum.read(&reply, valid) {
            Err(StructuredReplyError::Invalid(wrong)) => {
                let mut again = in_words(request, Some((&reply, &wrong)));
                // The provider has accepted the schema.
                again.response_schema.clone_from(&request.response_schema);
                sum.ask(model, &again, valid).await.map_err(|error| both(&wrong, error))
            }
            done => done,
        },
        Err(error) if lacks_means(&error) => sum.ask(model, &in_words(request, None), valid).await,
        Err(error) => Err(error.into()),
    };
    StructuredReply { value, tokens: sum.tokens.flatten(), cost_usd: sum.cost.flatten(), replies: sum.replies }
}

/// Returns the error for the second reply, together with the problem with the first one.
fn both(first: &str, second: StructuredReplyError) -> StructuredReplyError {
    match second {
        StructuredReplyError::Invalid(second) if second != first => {
            StructuredReplyError::Invalid(format!("{first}; after a second request: {second}"))
        }
        second => second,
    }
}

/// Totals over several replies. An inner `None` means unknown.
#[derive(Default)]
struct Sum {
    tokens: Option<Option<Tokens>>,
    cost: Option<Option<f64>>,
    replies: u32,
}

impl Sum {
    async fn ask(
        &mut self,
        model: &dyn Model,
        request: &Request,
        valid: &(dyn Fn(&Value) -> Result<(), String> + Send + Sync),
    ) -> Result<Value, StructuredReplyError> {
        let reply = model.respond(request).await?;
        self.read(&reply, valid)
    }

    fn read(
        &mut self,
        reply: &Reply,
        valid: &dyn Fn(&Value) -> Result<(), String>,
    ) -> Result<Value, StructuredReplyError> {
        self.replies += 1;
        self.tokens = Some(match (self.tokens, reply.tokens) {
            (None, tokens) => tokens,
            (Some(Some(mut sum)), Some(tokens)) => {
                sum += tokens;
                Some(sum)
            }
            _ => None,
        });
        self.cost = Some(match (self.cost, reply.cost_usd) {
            (None, cost) => cost,
            (Some(Some(sum)), Some(cost)) => Some(sum + cost),
            _ => None,
        });
        match reply.stop_reason {
            StopReason::Refusal => {
                return Err(StructuredReplyError::Refused(Some(reply.text()).filter(|text| !text.is_empty())));
            }
            StopReason::MaxTokens => return Err(StructuredReplyError::TooLong),
            _ => {}
        }
        json_of(&reply.text(), valid).map_err(StructuredReplyError::Invalid)
    }
}

/// Returns `true` if the provider rejected the request because of the required structure.
fn lacks_means(error: &ProviderError) -> bool {
    let ProviderError::Failed(failure) = error else { return false };
    let message = failure.message.to_ascii_lowercase();
    let words = ["response_format", "json_schema", "schema", "tool_choice", "text.format", "structured", "grammar"];
    failure.kind == FailureKind::BadRequest && words.iter().any(|word| message.contains(word))
}

/// Returns the request with the schema in the prompt, and with the problem with the previous reply.
fn in_words(request: &Request, before: Option<(&Reply, &str)>) -> Request {
    let mut asked = request.clone();
    let Some(wanted) = asked.response_schema.take() else { return asked };
    asked.system.push(format!(
        "Answer with one JSON value and nothing else. It must satisfy this JSON Schema:\n{}",
        wanted.schema
    ));
    if let Some((reply, wrong)) = before {
        let text = reply.text();
        if !text.trim().is_empty() {
            asked.messages.push(Message::text(Role::Assistant, text));
        }
        asked.messages.push(Message::text(
            Role::User,
            format!("That answer does not have the required form: {wrong}. Send the whole answer again, as JSON only."),
        ));
    }
    asked
}

/// Extracts the JSON from a reply: all of it, or the last value in it that `valid` accepts. Before the answer, models
/// think aloud, write prose and drafts, and open code fences.
///
/// # Errors
/// Returns a description of the problem: that of the longest value in the reply if `valid` accepts none.
pub fn json_of(text: &str, valid: &dyn Fn(&Value) -> Result<(), String>) -> Result<Value, String> {
    let text = text.trim();
    let error = match serde_json::from_str(text) {
        Ok(value) => return valid(&value).map(|()| value),
        Err(error) => error,
    };
    let mut longest: Option<(usize, String)> = None;
    for (length, value) in values_in(text).into_iter().rev() {
        match valid(&value) {
            Ok(()) => return Ok(value),
            Err(problem) if longest.as_ref().is_none_or(|(most, _)| length > *most) => {
                longest = Some((length, problem));
            }
            Err(_) => {}
        }
    }
    Err(match longest {
        Some((_, problem)) => problem,
        None if text.is_empty() => "it is empty".to_owned(),
        None => format!("it is not valid JSON ({error})"),
    })
}

/// Returns all JSON objects and lists in `text`, each with the length of its text. Those inside another value do not
/// count, not even if that value is cut off.
fn values_in(text: &str) -> Vec<(usize, Value)> {
    let (mut values, mut at) = (Vec::new(), 0);
    while let Some(start) = text[at..].find(['{', '[']).map(|offset| at + offset) {
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        at = match stream.next() {
            Some(Ok(value)) => {
                values.push((stream.byte_offset(), value));
                start + stream.byte_offset()
            }
            Some(Err(error)) if error.is_eof() => break,
            _ => start + 1,
        };
    }
    values
}

/// Returns `true` if a vendor's strict mode accepts the schema: every object is closed and requires all its
/// properties.
pub(crate) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(is_strict),
        Value::Object(entries) => is_closed(entries) && entries.values().all(is_strict),
        _ => true,
    }
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return !is_object };
    let required = schema.get("required").and_then(Value::as_array);
    let requires = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name.as_str()));
    // A property may itself be called `properties`. If a schema is mistaken for an open object, it is merely not sent
    // as strict.
    schema.get("additionalProperties") == Some(&Value::Bool(false)) && properties.keys().all(requires)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;
    use crate::{Block, BoxFuture, Failure, ResponseSchema};

    /// Returns its replies in order and records the requests.
    struct Answers {
        answers: Mutex<Vec<Result<Reply, ProviderError>>>,
        asked: Mutex<Vec<Request>>,
    }

    impl Model for Answers {
        fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
            self.asked.lock().unwrap().push(request.clone());
            let answer = self.answers.lock().unwrap().remove(0);
            Box::pin(std::future::ready(answer))
        }
    }

    fn says(text: &str) -> Result<Reply, ProviderError> {
        let tokens = Some(Tokens { input: 10, output: 1, ..Tokens::default() });
        let content = vec![Block::Text { text: text.into() }];
        Ok(Reply { content, tokens, cost_usd: Some(0.25), ..Reply::default() })
    }

    async fn asked(answers: Vec<Result<Reply, ProviderError>>) -> (StructuredReply, Vec<Request>) {
        let model = Answers { answers: Mutex::new(answers), asked: Mutex::default() };
        let schema = ResponseSchema { name: "verdict".into(), schema: json!({"type": "object"}) };
        let request = Request { response_schema: Some(schema), ..Request::default() };
        let valid = |value: &Value| if value["ok"].is_boolean() { Ok(()) } else { Err("`ok` is missing".to_owned()) };
        let done = structured_reply(&model, &request, &valid).await;
        (done, model.asked.into_inner().unwrap())
    }

    #[tokio::test]
    async fn a_valid_answer_is_accepted_without_a_retry() {
        let (done, asked) = asked(vec![says("```json\n{\"ok\": true}\n```")]).await;
        assert_eq!((done.value, done.replies), (Ok(json!({"ok": true})), 1));
        assert!(asked[0].response_schema.is_some());
    }

    #[tokio::test]
    async fn an_invalid_answer_is_requested_again_with_an_explanation() {
        let (done, asked) = asked(vec![says("{}"), says("{\"ok\": false}")]).await;
        assert_eq!((done.value, done.replies), (Ok(json!({"ok": false})), 2));
        assert_eq!((done.tokens.unwrap().total(), done.cost_usd), (22, Some(0.5)));
        assert!(asked[1].response_schema.is_some());
        assert!(asked[1].system[0].contains(r#"{"type":"object"}"#));
        assert!(asked[1].last_user_text().unwrap().contains("`ok` is missing"));
    }

    #[tokio::test]
    async fn a_persistently_invalid_answer_is_an_error_and_unknown_costs_stay_unknown() {
        let unknown = says("no").map(|reply| Reply { tokens: None, cost_usd: None, ..reply });
        let (done, _) = asked(vec![says("{}"), unknown]).await;
        let Err(StructuredReplyError::Invalid(problem)) = done.value else { panic!("{:?}", done.value) };
        assert!(problem.starts_with("`ok` is missing; after a second request: it is not valid JSON"), "{problem}");
        assert_eq!((done.tokens, done.cost_usd, done.replies), (None, None, 2));
    }

    #[tokio::test]
    async fn a_provider_without_schema_support_gets_the_schema_in_the_prompt() {
        let failure = |kind, message: &str| {
            let failure = Failure { kind, message: message.into(), ..Failure::new(kind, "") };
            Err(ProviderError::Failed(Box::new(failure)))
        };
        let refused = failure(FailureKind::BadRequest, "response_format is not supported");
        let (done, asked_for) = asked(vec![refused, says("{\"ok\": true}")]).await;
        assert_eq!((done.value, asked_for.len()), (Ok(json!({"ok": true})), 2));
        assert!(asked_for[1].response_schema.is_none());
        let (done, asked_for) = asked(vec![failure(FailureKind::Auth, "schema")]).await;
        assert!(matches!(done.value, Err(StructuredReplyError::Provider(_))));
        assert_eq!(asked_for.len(), 1);
    }

    #[tokio::test]
    async fn a_refusal_is_not_an_answer() {
        let refused = says("No.").map(|reply| Reply { stop_reason: StopReason::Refusal, ..reply });
        let (done, asked) = asked(vec![refused]).await;
        assert_eq!((done.value, asked.len()), (Err(StructuredReplyError::Refused(Some("No.".into()))), 1));
    }

    #[test]
    fn json_is_found_wherever_models_put_it() {
        let any = |text: &str| json_of(text, &|_| Ok(()));
        for text in ["{\"a\": 1}", "```json\n{\"a\": 1}\n```", "Sure!\n{\"a\": 1}\nDone.", "```\n{\"a\": 1}```"] {
            assert_eq!(any(text), Ok(json!({"a": 1})), "{text}");
        }
        assert_eq!(any("[1]"), Ok(json!([1])));
        assert_eq!(any("Here: [1, {}]."), Ok(json!([1, {}])));
        assert!(any("{\"files\": [], \"turns\": [{\"says\": \"h").is_err());
        assert_eq!(any(" "), Err("it is empty".into()));
        assert!(any("}{").is_err() && any("ü```").is_err());
    }

    #[test]
    fn the_last_valid_value_is_the_answer() {
        let sealed = |text: &str| json_of(text, &|value| value["seal"].as_str().map(drop).ok_or("no seal".to_owned()));
        let answer = r#"{"seal": "s", "n": 2}"#;
        for before in [
            "<think>The form is {seal, answers}; [1] says so. {\"draft\": 1}</think>\n",
            "<think>{\"seal\": \"s\", \"n\": 1}</think>",
            "The agent's reply was:\n```json\n{\"ok\": true}\n```\nMy answer:\n```json\n",
            "{}\n",
        ] {
            assert_eq!(sealed(&format!("{before}{answer}\n```\n{{}} is not it.")), Ok(json!({"seal": "s", "n": 2})));
        }
        assert_eq!(sealed("{\"answers\": [1, 2]} {}"), Err("no seal".into()));
        assert!(sealed("{} says: {\"of\": {\"seal\": \"s\"}, \"cut").is_err(), "a part of a value that is cut off");
    }

    #[test]
    fn only_closed_and_complete_schemas_are_strict() {
        let closed = json!({
            "type": "object", "additionalProperties": false, "required": ["a"],
            "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        });
        assert!(is_strict(&closed));
        let mut open = closed.clone();
        open["properties"]["a"]["items"] = json!({"type": "object", "properties": {"x": {}}});
        assert!(!is_strict(&open));
        let mut optional = closed;
        optional["required"] = json!([]);
        assert!(!is_strict(&optional));
    }
}
