//! Client side of Responses.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::items::{is_refusal, of_messages, to_blocks};
use super::tokens;
use crate::schema::is_strict;
use crate::wire::parts::{add, function_json, put, put_list, system, text};
use crate::wire::{Assemble, BadResponse, Dialect, Progress, ReportedError};
use crate::{Reply, Request, StopReason, ToolSpec};

/// Models without reasoning; they reject requests for encrypted reasoning.
const WITHOUT_REASONING: &[&str] = &["gpt-3", "gpt-4", "chatgpt", "ft:gpt-3", "ft:gpt-4"];

/// Client side of Responses.
pub(crate) struct Client;

impl Dialect for Client {
    fn ask(&self, request: &Request, stream: bool) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(request.model));
        put(&mut body, "instructions", system(request));
        body.insert("input".into(), Value::Array(of_messages(&request.messages)));
        put_list(&mut body, "tools", request.tools.iter().map(tool).collect());
        // The vendor stores nothing unless requested, so reasoning is sent along with the conversation.
        if !request.extra.contains_key("store") {
            body.insert("store".into(), json!(false));
            if reasons(&request.model) {
                body.insert("include".into(), json!(["reasoning.encrypted_content"]));
            }
        }
        put(&mut body, "max_output_tokens", request.max_tokens);
        put(&mut body, "temperature", request.temperature);
        put(&mut body, "reasoning", request.effort.as_ref().map(|effort| json!({"effort": effort})));
        if let Some(wanted) = &request.response_schema {
            let strict = is_strict(&wanted.schema);
            let format = json!({"type": "json_schema", "name": wanted.name, "schema": wanted.schema, "strict": strict});
            body.insert("text".into(), json!({"format": format}));
        }
        put(&mut body, "stream", stream.then_some(true));
        add(&mut body, &request.extra);
        body
    }

    fn reply(&self, request: &Request, document: Value) -> Result<Reply, BadResponse> {
        read(&request.model, &document, None)
    }

    fn assemble(&self, request: &Request) -> Box<dyn Assemble> {
        Box::new(PartialReply { asked: request.model.clone(), ..PartialReply::default() })
    }
}

/// Returns `true` if the model supports reasoning, judging by its name.
fn reasons(model: &str) -> bool {
    !model.contains("-chat") && !WITHOUT_REASONING.iter().any(|name| model.starts_with(name))
}

fn tool(tool: &ToolSpec) -> Value {
    // A tool that the vendor runs itself.
    if tool.extra.contains_key("type") {
        return Value::Object(tool.extra.clone());
    }
    let mut written = Map::new();
    put(&mut written, "type", Some("function"));
    written.extend(function_json(tool, "parameters"));
    // The vendor's default is strict, which does not allow optional arguments.
    written.entry("strict").or_insert(Value::Bool(false));
    Value::Object(written)
}

/// Reads a complete response. `items` are those of a stream, because some servers leave them out at its end.
fn read(asked: &str, document: &Value, items: Option<BTreeMap<u64, Value>>) -> Result<Reply, BadResponse> {
    let status = text(document, "status");
    let error = document.get("error").filter(|error| !error.is_null());
    if status == Some("failed") || error.is_some() {
        return Err(BadResponse::Reported(ReportedError::from_document(document).unwrap_or_default()));
    }
    let output = match document.get("output") {
        Some(Value::Array(output)) if !output.is_empty() || items.is_none() => output.clone(),
        _ => items.ok_or_else(|| BadResponse::lacks("`output`"))?.into_values().collect(),
    };
    let has_refused = output.iter().any(is_refusal);
    let content: Vec<_> = output.into_iter().flat_map(|item| to_blocks(item).1).collect();
    let mut reply = Reply {
        message_id: text(document, "id").unwrap_or_default().to_owned(),
        model: text(document, "model").unwrap_or(asked).to_owned(),
        content,
        stop_reason: StopReason::EndTurn,
        tokens: document.get("usage").and_then(tokens),
        cost_usd: document.pointer("/usage/cost").and_then(Value::as_f64),
    };
    reply.stop_reason = match document.pointer("/incomplete_details/reason").and_then(Value::as_str) {
        Some("max_output_tokens") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        Some(reason) => StopReason::Other(reason.to_owned()),
        None if has_refused => StopReason::Refusal,
        None if reply.calls_tools() => StopReason::ToolUse,
        None => StopReason::EndTurn,
    };
    Ok(reply)
}

/// A response that is being received. Each item is sent complete at its end, and so is the response; the pieces in
/// between contain nothing new.
#[derive(Default)]
struct PartialReply {
    asked: String,
    items: BTreeMap<u64, Value>,
    response: Option<Reply>,
}

impl Assemble for PartialReply {
    fn take(&mut self, event: Value) -> Result<Progress, BadResponse> {
        match text(&event, "type") {
            Some("response.output_item.done") => {
                let at = event.get("output_index").and_then(Value::as_u64).unwrap_or(self.items.len() as u64);
                if let Some(item) = event.get("item") {
                    self.items.insert(at, item.clone());
                }
            }
            Some("response.completed" | "response.incomplete" | "response.done") => {
                let response =
                    event.get("response").cloned().ok_or_else(|| BadResponse::lacks("`response` at its end"))?;
                self.response = Some(read(&self.asked, &response, Some(std::mem::take(&mut self.items)))?);
                return Ok(Progress::Complete);
            }
            Some("response.failed") => {
                let error = event.get("response").and_then(ReportedError::from_document).unwrap_or_default();
                return Err(BadResponse::Reported(error));
            }
            Some("error") => {
                return Err(BadResponse::Reported(ReportedError::from_document(&event).unwrap_or_default()));
            }
            Some(_) => {}
            None => {
                // Servers that are merely compatible report errors without a type.
                if let Some(error) =
                    event.get("error").filter(|error| !error.is_null()).and(ReportedError::from_document(&event))
                {
                    return Err(BadResponse::Reported(error));
                }
            }
        }
        Ok(Progress::More)
    }

    fn so_far(&self) -> Option<Reply> {
        self.response.clone().or_else(|| read(&self.asked, &Value::Null, Some(self.items.clone())).ok())
    }

    fn finish(self: Box<Self>) -> Option<Reply> {
        self.response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, ResponseSchema};

    fn reply(document: Value) -> Result<Reply, BadResponse> {
        Client.reply(&Request { model: "m".into(), ..Request::default() }, document)
    }

    #[test]
    fn the_stop_reason_is_derived_from_the_response() {
        let message = |part: Value| json!({"type": "message", "role": "assistant", "content": [part]});
        let refused = message(json!({"type": "refusal", "refusal": "No."}));
        let spoken = message(json!({"type": "output_text", "text": "Yes.", "annotations": []}));
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "x", "arguments": "{}"});
        let stop = |output: Value, reason: Value| {
            let reply = reply(json!({"status": "completed", "output": output, "incomplete_details": reason})).unwrap();
            (reply.text(), reply.stop_reason)
        };
        assert_eq!(stop(json!([refused]), Value::Null), ("No.".into(), StopReason::Refusal));
        assert_eq!(stop(json!([spoken, call]), Value::Null), ("Yes.".into(), StopReason::ToolUse));
        assert_eq!(stop(json!([spoken]), json!({"reason": "max_output_tokens"})).1, StopReason::MaxTokens);
        assert_eq!(stop(json!([]), json!({"reason": "content_filter"})).1, StopReason::Refusal);
    }

    #[test]
    fn a_response_that_failed_is_an_error() {
        let failed = json!({"status": "failed", "error": {"code": "server_error", "message": "oops"}, "output": []});
        let error = ReportedError { codes: vec!["server_error".into()], message: "oops".into() };
        assert_eq!(reply(failed.clone()), Err(BadResponse::Reported(error.clone())));
        let mut gathered = Client.assemble(&Request::default());
        assert_eq!(
            gathered.take(json!({"type": "response.failed", "response": failed})),
            Err(BadResponse::Reported(error))
        );
        let event = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null});
        let error = ReportedError { codes: vec!["rate_limit_exceeded".into()], message: "slow down".into() };
        assert_eq!(gathered.take(event), Err(BadResponse::Reported(error)));
        assert_eq!(reply(json!({"id": "x"})), Err(BadResponse::lacks("`output`")));
    }

    #[test]
    fn items_of_the_stream_replace_an_empty_final_response() {
        let mut gathered = Client.assemble(&Request::default());
        let item = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi."}]});
        gathered.take(json!({"type": "response.output_item.done", "output_index": 0, "item": item})).unwrap();
        let end = json!({"type": "response.completed", "response": {"id": "r", "output": []}});
        assert_eq!(gathered.take(end), Ok(Progress::Complete));
        assert_eq!(gathered.finish().unwrap().text(), "Hi.");
        let mut cut = Client.assemble(&Request::default());
        cut.take(json!({"type": "response.output_item.done", "output_index": 0, "item": item})).unwrap();
        assert_eq!(cut.finish(), None);
    }

    #[test]
    fn reasoning_is_requested_only_from_reasoning_models() {
        for (model, expected) in [("gpt-5", true), ("o3", true), ("gpt-4o", false), ("gpt-5-chat-latest", false)] {
            let body = Client.ask(&Request { model: model.into(), ..Request::default() }, false);
            assert_eq!(body.contains_key("include"), expected, "{model}");
            assert_eq!(body["store"], json!(false));
        }
    }

    #[test]
    fn a_conversation_stored_by_the_vendor_is_not_sent_again() {
        let extra = json!({"store": true, "previous_response_id": "resp_1"}).as_object().cloned().unwrap();
        let body = Client.ask(&Request { model: "gpt-5".into(), extra, ..Request::default() }, false);
        assert_eq!((&body["store"], &body["previous_response_id"]), (&json!(true), &json!("resp_1")));
        assert!(!body.contains_key("include"));
    }

    #[test]
    fn a_schema_is_sent_as_a_text_format_and_tools_are_not_strict() {
        let request = Request {
            response_schema: Some(ResponseSchema { name: "v".into(), schema: json!({"type": "string"}) }),
            tools: vec![ToolSpec { name: "x".into(), input_schema: json!({}), ..ToolSpec::default() }],
            ..Request::default()
        };
        let body = Value::Object(Client.ask(&request, true));
        assert_eq!(body["text"]["format"]["name"], "v");
        assert_eq!(body["tools"][0], json!({"type": "function", "name": "x", "parameters": {}, "strict": false}));
        let call = json!({"type": "function_call", "call_id": "c", "name": "x", "arguments": ""});
        let read = reply(json!({"output": [call]})).unwrap();
        assert_eq!(read.content, [Block::ToolUse { id: "c".into(), name: "x".into(), input: json!({}) }]);
    }
}
