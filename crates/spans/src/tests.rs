//! Spans in the form of each convention, with sentences of our own.

use model::{Step, Tokens, Trace, Usage};
use serde_json::{Map, Value, json};

use crate::{Span, SpanTrace, read_json, read_protobuf, trace_from_spans, whole_of};

/// Returns a span with the id `id`, from second `from` to second `to`.
fn span(id: u8, parent: Option<u8>, (from, to): (u64, u64), name: &str, attributes: &Value) -> Value {
    let hex = |id: u8| format!("{id:016x}");
    let value = |value: &Value| match value {
        Value::String(text) => json!({"stringValue": text}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| json!({"stringValue": item})).collect();
            json!({"arrayValue": {"values": items}})
        }
        _ => json!({}),
    };
    let attributes = attributes.as_object().unwrap().iter();
    let attributes: Vec<Value> = attributes.map(|(key, it)| json!({"key": key, "value": value(it)})).collect();
    json!({
        "traceId": "5b8efff798038103d269b633813fc60c", "spanId": hex(id), "parentSpanId": parent.map(hex), "name": name,
        "startTimeUnixNano": (from * 1_000_000_000).to_string(), "endTimeUnixNano": (to * 1_000_000_000).to_string(),
        "attributes": attributes,
    })
}

fn request(spans: &[Value]) -> Vec<u8> {
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "bot"}}]});
    let scope = json!({"name": "some.instrumentation", "version": "1.2"});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]})
        .to_string()
        .into_bytes()
}

fn seen(spans: &[Value]) -> SpanTrace {
    trace_from_spans(&read_json(&request(spans)).unwrap())
}

/// Returns the calls as `parent>name(arguments) = result` with `!` for errors.
fn calls(seen: &SpanTrace) -> Vec<String> {
    let trace = Trace::of(&seen.steps);
    let call = |traced: &model::TracedCall| {
        let parent = traced.call.parent.as_ref().map(|parent| format!("{parent}>")).unwrap_or_default();
        let result = traced.result.as_ref();
        let mark = if result.is_some_and(|result| result.is_error) { "!" } else { "" };
        let result = result.map_or("-", |result| result.content.as_str());
        format!("{parent}{}({}) = {result}{mark}", traced.call.name, traced.call.input)
    };
    trace.calls.iter().map(call).collect()
}

/// A model request that asks for a call, the call, and the request with its result, in each convention.
fn conversations() -> Vec<(&'static str, Vec<Value>)> {
    let (asked, answered) = ((1, 2), (4, 5));
    let arguments = r#"{"id":7}"#;
    let usage = json!({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2, "gen_ai.request.model": "m1"});
    let with = |usage: &Value, more: Value| {
        let mut all: Map<String, Value> = usage.as_object().unwrap().clone();
        all.extend(more.as_object().unwrap().clone());
        Value::Object(all)
    };
    let function = json!({"name": "find", "arguments": arguments});
    let user = json!({"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]});
    let asks = json!({"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "find", "arguments": {"id": 7}}]});
    let result = json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "sent"}]});
    let says =
        json!([{"role": "assistant", "parts": [{"type": "text", "content": "It was sent."}], "finish_reason": "stop"}]);
    let chat = |more: Value| with(&usage, with(&json!({"gen_ai.operation.name": "chat"}), more));
    let input_only = |messages: &Value| json!({"gen_ai.input.messages": messages.to_string()});
    let mut first = span(2, Some(1), asked, "chat m1", &chat(json!({})));
    first["events"] = json!([
        {"name": "gen_ai.user.message", "attributes": [{"key": "content", "value": {"stringValue": "Where is it?"}}]},
        {"name": "gen_ai.choice", "attributes": [
            {"key": "finish_reason", "value": {"stringValue": "tool_calls"}},
            {"key": "message", "value": {"stringValue": json!({"tool_calls": [{"id": "c1", "function": function}]}).to_string()}}]}]);
    let mut second = span(4, Some(1), answered, "chat m1", &chat(json!({})));
    second["events"] = json!([
        {"name": "gen_ai.tool.message", "attributes": [
            {"key": "id", "value": {"stringValue": "c1"}}, {"key": "content", "value": {"stringValue": "sent"}}]},
        {"name": "gen_ai.choice", "attributes": [
            {"key": "finish_reason", "value": {"stringValue": "stop"}},
            {"key": "message", "value": {"stringValue": json!({"content": "It was sent."}).to_string()}}]}]);
    let open_inference = |more: Value| {
        let usage = json!({"openinference.span.kind": "LLM", "llm.model_name": "m1", "llm.token_count.prompt": 10,
            "llm.token_count.completion": 2});
        with(&usage, more)
    };
    vec![
        (
            "GenAI, current",
            vec![
                span(
                    1,
                    None,
                    (0, 6),
                    "invoke_agent bot",
                    &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}),
                ),
                span(
                    2,
                    Some(1),
                    asked,
                    "chat m1",
                    &chat(with(
                        &input_only(&json!([user])),
                        json!({"gen_ai.output.messages": json!([asks]).to_string()}),
                    )),
                ),
                span(
                    3,
                    Some(1),
                    (2, 3),
                    "execute_tool find",
                    &json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find",
                    "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": "sent"}),
                ),
                span(
                    4,
                    Some(1),
                    answered,
                    "chat m1",
                    &chat(with(
                        &input_only(&json!([user, asks, result])),
                        json!({"gen_ai.output.messages": says.to_string()}),
                    )),
                ),
            ],
        ),
        (
            "GenAI, no span for the call",
            vec![
                span(
                    2,
                    None,
                    asked,
                    "chat m1",
                    &chat(with(
                        &input_only(&json!([user])),
                        json!({"gen_ai.output.messages": json!([asks]).to_string()}),
                    )),
                ),
                span(
                    4,
                    None,
                    answered,
                    "chat m1",
                    &chat(with(
                        &input_only(&json!([user, asks, result])),
                        json!({"gen_ai.output.messages": says.to_string()}),
                    )),
                ),
            ],
        ),
        ("GenAI, an event for each message", vec![first, second]),
        (
            "OpenInference",
            vec![
                span(1, None, (0, 6), "bot", &json!({"openinference.span.kind": "AGENT"})),
                span(
                    2,
                    Some(1),
                    asked,
                    "ChatCompletion",
                    &open_inference(json!({
                    "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Where is it?",
                    "llm.output_messages.0.message.role": "assistant",
                    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
                    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "find",
                    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": arguments})),
                ),
                span(
                    3,
                    Some(1),
                    (2, 3),
                    "find",
                    &json!({"openinference.span.kind": "TOOL", "tool.name": "find",
                    "input.value": "{'id': 7}", "output.value": json!({"type": "tool", "data": {"content": "sent", "tool_call_id": "c1"}}).to_string()}),
                ),
                span(
                    4,
                    Some(1),
                    answered,
                    "ChatCompletion",
                    &open_inference(json!({
                    "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "It was sent."})),
                ),
            ],
        ),
        (
            "OpenLLMetry",
            vec![
                span(
                    1,
                    None,
                    (0, 6),
                    "bot.workflow",
                    &json!({"traceloop.span.kind": "workflow", "traceloop.entity.name": "bot"}),
                ),
                span(
                    2,
                    Some(1),
                    asked,
                    "openai.chat",
                    &with(
                        &usage,
                        json!({"llm.request.type": "chat",
                    "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Where is it?",
                    "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.finish_reason": "tool_calls",
                    "gen_ai.completion.0.tool_calls.0.id": "c1", "gen_ai.completion.0.tool_calls.0.name": "find",
                    "gen_ai.completion.0.tool_calls.0.arguments": arguments}),
                    ),
                ),
                span(
                    3,
                    Some(1),
                    (2, 3),
                    "find.tool",
                    &json!({"traceloop.span.kind": "tool", "traceloop.entity.name": "find",
                    "traceloop.entity.input": json!({"args": [], "kwargs": {"id": 7}}).to_string(), "traceloop.entity.output": "\"sent\""}),
                ),
                span(
                    4,
                    Some(1),
                    answered,
                    "openai.chat",
                    &with(
                        &usage,
                        json!({"llm.request.type": "chat",
                    "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "It was sent.",
                    "gen_ai.completion.0.finish_reason": "stop"}),
                    ),
                ),
            ],
        ),
        (
            "AI SDK",
            vec![
                span(1, None, (0, 6), "ai.generateText", &json!({"ai.operationId": "ai.generateText"})),
                span(
                    2,
                    Some(1),
                    asked,
                    "ai.generateText.doGenerate",
                    &with(
                        &usage,
                        json!({"ai.operationId": "ai.generateText.doGenerate",
                    "ai.prompt.messages": json!([{"role": "user", "content": [{"type": "text", "text": "Where is it?"}]}]).to_string(),
                    "ai.response.finishReason": "tool-calls",
                    "ai.response.toolCalls": json!([{"toolCallId": "c1", "toolName": "find", "input": arguments}]).to_string()}),
                    ),
                ),
                span(
                    3,
                    Some(1),
                    (2, 3),
                    "ai.toolCall",
                    &json!({"ai.operationId": "ai.toolCall", "ai.toolCall.name": "find",
                    "ai.toolCall.id": "c1", "ai.toolCall.args": arguments, "ai.toolCall.result": "\"sent\""}),
                ),
                span(
                    4,
                    Some(1),
                    answered,
                    "ai.generateText.doGenerate",
                    &with(
                        &usage,
                        json!({"ai.operationId": "ai.generateText.doGenerate",
                    "ai.response.finishReason": "stop", "ai.response.text": "It was sent."}),
                    ),
                ),
            ],
        ),
        (
            "ADK",
            vec![
                span(
                    1,
                    None,
                    (0, 6),
                    "invoke_agent bot",
                    &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}),
                ),
                span(
                    2,
                    Some(1),
                    asked,
                    "call_llm",
                    &with(
                        &usage,
                        json!({
                    "gcp.vertex.agent.llm_request": json!({"contents": [{"role": "user", "parts": [{"text": "Where is it?"}]}]}).to_string(),
                    "gcp.vertex.agent.llm_response": json!({"content": {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "find", "args": {"id": 7}}}]}}).to_string()}),
                    ),
                ),
                span(
                    3,
                    Some(1),
                    (2, 3),
                    "execute_tool find",
                    &json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find",
                    "gen_ai.tool.call.id": "c1", "gcp.vertex.agent.tool_call_args": arguments, "gcp.vertex.agent.tool_response": "sent"}),
                ),
                span(
                    4,
                    Some(1),
                    answered,
                    "call_llm",
                    &with(
                        &usage,
                        json!({
                    "gcp.vertex.agent.llm_response": json!({"content": {"role": "model", "parts": [{"text": "It was sent."}]}}).to_string()}),
                    ),
                ),
            ],
        ),
    ]
}

#[test]
fn every_convention_tells_the_same_story() {
    for (name, spans) in conversations() {
        for order in [spans.clone(), spans.iter().rev().cloned().collect(), [spans.clone(), spans.clone()].concat()] {
            let seen = seen(&order);
            assert_eq!(calls(&seen), [r#"find({"id":7}) = sent"#], "{name}");
            let trace = Trace::of(&seen.steps);
            let texts: Vec<&str> = trace.turns.iter().map(|turn| turn.text.as_str()).collect();
            assert_eq!((texts, trace.turn_count()), (vec!["", "It was sent."], 2), "{name}");
            assert_eq!(trace.calls[0].turn, 0, "{name}");
            let tokens = Tokens { input: 20, output: 4, ..Tokens::default() };
            assert_eq!(seen.usage, Usage { tokens: Some(tokens), cost_usd: None }, "{name}");
            assert_eq!((seen.model.as_deref(), seen.model_requests), (Some("m1"), 2), "{name}");
            assert_eq!(seen.answer.as_deref(), Some("It was sent."), "{name}");
            assert_eq!(seen.question.as_deref(), Some("Where is it?"), "{name}");
            assert_eq!((seen.incomplete, seen.unknown.len(), seen.notes), (None, 0, Vec::new()), "{name}");
        }
    }
}

fn chat(id: u8, parent: Option<u8>, at: (u64, u64), more: &Value) -> Value {
    let mut all = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m1"});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    span(id, parent, at, "chat m1", &all)
}

fn tool(id: u8, parent: Option<u8>, at: (u64, u64), name: &str, more: &Value) -> Value {
    let mut all = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    span(id, parent, at, &format!("execute_tool {name}"), &all)
}

fn agent(id: u8, parent: Option<u8>, at: (u64, u64), name: &str) -> Value {
    span(id, parent, at, "invoke_agent", &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}))
}

fn says(text: &str) -> Value {
    json!({"gen_ai.output.messages": json!([{"role": "assistant", "parts": [{"type": "text", "content": text}]}]).to_string()})
}

#[test]
fn calls_may_be_missing_unless_the_spans_show_all_answers_of_the_model() {
    let reason = |spans: &[Value]| seen(spans).incomplete.unwrap_or_default();
    let finish = |reason: &str| json!({"gen_ai.response.finish_reasons": [reason]});
    assert_eq!(reason(&[chat(1, None, (0, 1), &finish("stop"))]), "");
    assert_eq!(reason(&[chat(1, None, (0, 1), &says("Hello."))]), "");
    let answer = "the span `chat m1` of a model request does not contain the answer";
    assert_eq!(reason(&[chat(1, None, (0, 1), &json!({}))]), answer);
    let gemini = chat(
        1,
        None,
        (0, 1),
        &json!({"gen_ai.response.finish_reasons": ["STOP"], "gen_ai.response.model": "gemini-3"}),
    );
    assert_eq!(reason(&[gemini]), answer, "its reason is the same for calls");
    let asks = chat(1, None, (0, 1), &finish("tool_calls"));
    let calls = "the span `chat m1` of a model request does not contain the tool calls that the model asked for";
    assert_eq!(reason(std::slice::from_ref(&asks)), calls);
    let executed = [asks, tool(2, None, (1, 2), "find", &json!({})), chat(3, None, (2, 3), &finish("stop"))];
    assert_eq!(reason(&executed), "");
    assert!(reason(&executed[1..2]).contains("no model requests"));
    assert!(reason(&[agent(1, None, (0, 1), "bot")]).contains("neither a model request nor a tool call"));
    assert!(reason(&[span(1, None, (0, 1), "GET /", &json!({"http.method": "GET"}))]).starts_with("no span describes"));
    assert!(reason(&[]).starts_with("no span describes"));
    let mut cut = chat(1, None, (0, 1), &says("Hello."));
    cut["droppedAttributesCount"] = json!(3);
    assert!(reason(&[cut]).contains("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"));
    let mut failed = chat(1, None, (0, 1), &json!({"error.type": "500"}));
    failed["status"] = json!({"code": "STATUS_CODE_ERROR", "message": "busy"});
    assert_eq!(reason(&[failed.clone()]), "", "a request that failed has no answer");
    assert_eq!(Trace::of(&seen(&[failed]).steps).turn_count(), 0);
}

#[test]
fn a_call_in_a_later_request_that_no_span_shows_is_missing() {
    let user = json!({"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]});
    let asks = |id: &str| json!({"role": "assistant", "parts": [{"type": "tool_call", "id": id, "name": "find", "arguments": {}}]});
    let result =
        |id: &str| json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": "sent"}]});
    let messages = |input: Value, output: Value| {
        json!({"gen_ai.input.messages": input.to_string(), "gen_ai.output.messages": json!([output]).to_string(),
            "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2})
    };
    let answer = json!({"role": "assistant", "parts": [{"type": "text", "content": "It was sent."}]});
    let answered = |id: u8, input: Value| chat(id, None, (4, 5), &messages(input, answer.clone()));
    let unshown = |spans: &[Value]| {
        let seen = seen(spans);
        assert_eq!(seen.incomplete.is_some(), seen.usage == Usage::default(), "the tokens are missing, too");
        seen.incomplete.unwrap_or_default()
    };
    let of = |what: &str| {
        format!("the span `chat m1` of a model request contains an earlier call of {what} that no span shows")
    };
    assert_eq!(unshown(&[answered(1, json!([user, asks("c1"), result("c1")]))]), of("`find`"));
    assert_eq!(unshown(&[answered(1, json!([user, result("c1")]))]), of("a tool"));
    let earlier = json!([user, asks("c1"), result("c1"), answer, user]);
    assert_eq!(unshown(&[answered(1, earlier)]), "", "it belongs to an earlier message");
    let first = |id: &str| chat(1, None, (0, 1), &messages(json!([user]), asks(id)));
    let both = json!([user, asks("c1"), result("c1"), asks("c2"), result("c2")]);
    assert_eq!(unshown(&[first("c2"), answered(2, both.clone())]), of("`find`"));
    let second = chat(3, None, (2, 3), &messages(json!([user, asks("c1"), result("c1")]), asks("c2")));
    assert_eq!(unshown(&[first("c1"), second.clone(), answered(2, both)]), "");
    assert_eq!(unshown(&[second]), of("`find`"), "its own call is another one");
    assert_eq!(unshown(&[first("of-the-framework"), answered(2, json!([user, asks("c1"), result("c1")]))]), "");
}

#[test]
fn what_is_not_recorded_is_unknown() {
    let spans = [chat(1, None, (0, 1), &says("")), tool(2, None, (1, 2), "find", &json!({}))];
    let seen = seen(&spans);
    assert_eq!(calls(&seen), [r#"find("(not in the spans)") = -"#]);
    assert!(!Trace::of(&seen.steps).calls[0].call.has_readable_arguments());
    let missing = |what: &str| format!("the {what} of 1 tool calls are not in the spans");
    assert_eq!((seen.notes, seen.usage), (vec![missing("arguments"), missing("result")], Usage::default()));
}

#[test]
fn errors_are_results() {
    let mut failed = tool(1, None, (0, 1), "find", &json!({"gen_ai.tool.call.arguments": "{}"}));
    failed["status"] = json!({"code": 2});
    assert_eq!(calls(&seen(&[failed.clone()])), ["find({}) = it failed!"]);
    failed["status"] = json!({"code": 2, "message": "no such order"});
    assert_eq!(calls(&seen(&[failed.clone()])), ["find({}) = no such order!"]);
    failed["events"] = json!([{"name": "exception", "attributes": [
        {"key": "exception.message", "value": {"stringValue": "order 7 is gone"}}]}]);
    assert_eq!(calls(&seen(&[failed])), ["find({}) = order 7 is gone!"]);
}

#[test]
fn layers_of_several_libraries_count_once() {
    let usage = |id: u8, parent, at| {
        let more = json!({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2});
        chat(id, parent, at, &more)
    };
    let mut outer = usage(1, None, (0, 3));
    outer["attributes"].as_array_mut().unwrap().push(
        json!({"key": "gen_ai.output.messages", "value": {"stringValue": "[{\"role\": \"assistant\", \"content\": \"Hi.\"}]"}}),
    );
    let seen_twice = seen(&[outer, usage(2, Some(1), (1, 2))]);
    assert_eq!((seen_twice.model_requests, seen_twice.answer.as_deref()), (1, Some("Hi.")));
    assert_eq!(seen_twice.usage.tokens.unwrap().total(), 12);
    let mut other_library: Value = serde_json::from_slice(&request(&[usage(2, None, (1, 2))])).unwrap();
    other_library["resourceSpans"][0]["scopeSpans"][0]["scope"] = json!({"name": "the.sdk"});
    let mut twins = read_json(other_library.to_string().as_bytes()).unwrap();
    twins.extend(read_json(&request(&[chat(1, None, (0, 3), &says("Hi."))])).unwrap());
    let twins = trace_from_spans(&twins);
    assert_eq!((twins.model_requests, twins.answer.as_deref()), (1, Some("Hi.")));
    let inner = tool(2, Some(1), (1, 2), "find", &json!({"gen_ai.tool.call.result": "sent"}));
    let outer = tool(1, None, (0, 3), "find", &json!({"gen_ai.tool.call.arguments": "{}"}));
    assert_eq!(calls(&seen(&[outer.clone(), inner])), ["find({}) = sent"]);
    let other = tool(2, Some(1), (1, 2), "look", &json!({"gen_ai.tool.call.arguments": "{}"}));
    let id = format!("span-{:016x}", 1);
    assert_eq!(calls(&seen(&[outer, other])), ["find({}) = -".to_owned(), format!("{id}>look({{}}) = -")]);
}

#[test]
fn the_work_within_a_call_or_of_another_agent_is_a_sub_agents() {
    let spans = [
        agent(1, None, (0, 9), "front"),
        chat(2, Some(1), (1, 2), &says("I ask.")),
        tool(
            3,
            Some(1),
            (2, 5),
            "ask_expert",
            &json!({"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": "{}"}),
        ),
        agent(4, Some(3), (3, 4), "expert"),
        chat(5, Some(4), (3, 4), &says("Yes.")),
        agent(6, Some(1), (6, 8), "clerk"),
        chat(7, Some(6), (7, 8), &says("Done.")),
    ];
    let trace = seen(&spans);
    let delegated = format!("span-{:016x}", 6);
    assert_eq!(calls(&trace), ["ask_expert({}) = -", r#"Agent({"subagent_type":"clerk"}) = -"#]);
    let traced = Trace::of(&trace.steps);
    let parents: Vec<Option<&str>> = traced.turns.iter().map(|turn| turn.parent.as_deref()).collect();
    assert_eq!(parents, [None, Some("c1"), Some(delegated.as_str())]);
    assert_eq!((traced.turn_count(), trace.answer.as_deref()), (1, Some("I ask.")));
    let handed = json!({"gen_ai.tool.call.id": "c2", "gen_ai.tool.call.arguments": "{\"agent_name\": \"clerk\"}"});
    let spans = [
        agent(1, None, (0, 9), "front"),
        tool(2, Some(1), (1, 2), "transfer_to_agent", &handed),
        agent(6, Some(1), (6, 8), "clerk"),
    ];
    assert_eq!(calls(&seen(&spans)), [r#"transfer_to_agent({"agent_name":"clerk"}) = -"#]);
}

#[test]
fn calls_with_the_same_id_or_name_are_kept_apart() {
    let asks = |id: &str, number: u64| {
        let part = json!({"type": "tool_call", "id": id, "name": "find", "arguments": {"id": number}});
        json!({"gen_ai.output.messages": json!([{"role": "assistant", "parts": [part]}]).to_string()})
    };
    let found = |arguments: &str, result: &str| json!({"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": result});
    let spans = [
        chat(1, None, (0, 1), &asks("call", 1)),
        tool(2, None, (1, 2), "find", &found("{\"id\": 1}", "one")),
        chat(3, None, (2, 3), &asks("call", 2)),
        tool(4, None, (3, 4), "find", &found("{\"id\": 2}", "two")),
        tool(5, None, (4, 5), "find", &found("{\"id\": 3}", "three")),
    ];
    let expected = [r#"find({"id":1}) = one"#, r#"find({"id":2}) = two"#, r#"find({"id":3}) = three"#];
    assert_eq!(calls(&seen(&spans)), expected);
    let renamed = json!({"gen_ai.tool.call.id": "of-the-framework", "gen_ai.tool.call.result": "one"});
    let renamed = [chat(1, None, (0, 1), &asks("call", 1)), tool(2, None, (1, 2), "find", &renamed)];
    assert_eq!(calls(&seen(&renamed)), expected[..1]);
    let sources = seen(&spans).sources;
    let sources: Vec<_> = sources.iter().map(|source| (source.call.as_str(), source.span.to_string())).collect();
    let third = format!("span-{:016x}", 5);
    let span = |id: u8| format!("{id:016x}");
    assert_eq!(sources, [("call", span(2)), ("call#2", span(4)), (third.as_str(), span(5))]);
}

#[test]
fn spans_that_are_sent_again_count_once_and_those_that_share_an_id_do_not() {
    let found = |number: u64| json!({"gen_ai.tool.call.arguments": json!({ "id": number }).to_string()});
    let one = tool(2, None, (1, 2), "find", &found(1));
    assert_eq!(calls(&seen(&[one.clone(), one.clone()])).len(), 1);
    let other = tool(2, None, (3, 4), "find", &found(2));
    assert_eq!(calls(&seen(&[one.clone(), other.clone()])).len(), 2);
    let without_id = [one, other].map(|mut span| {
        span["spanId"] = Value::Null;
        span
    });
    assert_eq!(calls(&seen(&without_id)).len(), 2);
}

#[test]
fn a_count_that_cannot_be_read_is_not_0() {
    let tokens = |input: Value| {
        let more = json!({"gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": 2});
        seen(&[chat(1, None, (0, 1), &more)]).usage.tokens
    };
    assert_eq!(tokens(json!("10")).unwrap().total(), 12);
    for unreadable in [json!("many"), json!("-1"), json!(1.5)] {
        assert_eq!(tokens(unreadable.clone()), None, "{unreadable}");
    }
}

#[test]
fn a_tool_that_runs_before_the_answer_is_complete_has_a_result() {
    let part = json!({"type": "tool_call", "id": "c", "name": "find", "arguments": {}});
    let asks = json!({"gen_ai.output.messages": json!([{"role": "assistant", "parts": [part]}]).to_string()});
    let spans = [
        chat(1, None, (0, 9), &asks),
        tool(2, None, (1, 2), "find", &json!({"gen_ai.tool.call.id": "c", "gen_ai.tool.call.result": "sent"})),
    ];
    assert_eq!(calls(&seen(&spans)), ["find({}) = sent"]);
}

#[test]
fn the_whole_contains_all_spans_and_is_no_request_or_call() {
    let whole = |spans: &[Value]| whole_of(&read_json(&request(spans)).unwrap()).map(|span| span.name.clone());
    let root = || span(1, None, (0, 5), "POST /chat", &json!({"http.method": "POST"}));
    let request_span = || chat(2, Some(1), (0, 4), &says("Hello."));
    assert_eq!(whole(&[request_span(), root()]).as_deref(), Some("POST /chat"));
    assert_eq!(whole(&[root(), chat(2, None, (4, 6), &says("Hello."))]), None);
    assert_eq!((whole(&[request_span()]), whole(&[])), (None, None));
    assert_eq!(whole(&[agent(1, None, (0, 4), "bot"), request_span()]).as_deref(), Some("invoke_agent"));
}

#[test]
fn cached_tokens_are_counted_once() {
    let usage = |input: u64| {
        let more = json!({"gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": 2.0,
            "gen_ai.usage.cache_read.input_tokens": "8", "gen_ai.usage.reasoning.output_tokens": 1});
        seen(&[chat(1, None, (0, 1), &more)]).usage.tokens.unwrap()
    };
    let expected = |input| Tokens { input, cache_read: 8, cache_write: 0, output: 2, reasoning: Some(1) };
    assert_eq!((usage(10), usage(2)), (expected(2), expected(2)));
    let counted = json!({"gen_ai.usage.input_tokens": 1, "gen_ai.usage.output_tokens": 1});
    let partly = [chat(1, None, (0, 1), &counted), chat(2, None, (1, 2), &json!({}))];
    assert_eq!(seen(&partly).usage, Usage::default());
    assert_eq!(seen(&partly).notes, ["1 of 2 model requests report no tokens"]);
}

#[test]
fn both_encodings_say_the_same() {
    // One span: trace id, span id, name, times, and the attribute `a` with the list [1, "x"].
    let list = [0x2a, 0x09, 0x0a, 0x02, 0x18, 0x01, 0x0a, 0x03, 0x0a, 0x01, b'x'];
    let attribute = [&[0x0a, 0x01, b'a', 0x12, 0x0b][..], &list].concat();
    let times = [&[0x39][..], &1_u64.to_le_bytes(), &[0x41], &2_u64.to_le_bytes()].concat();
    let ids = [&[0x0a, 0x10][..], &[7; 16], &[0x12, 0x08], &[9; 8]].concat();
    let span = [&ids[..], &[0x2a, 0x01, b'n'], &times, &[0x4a, 0x10], &attribute, &[0x7a, 0x02, 0x18, 0x02]].concat();
    let wrapped = |bytes: &[u8], tag: u8| [&[tag, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let binary = wrapped(&wrapped(&wrapped(&span, 0x12), 0x12), 0x0a);
    let text = json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "07".repeat(16), "spanId": "09".repeat(8),
        "name": "n", "startTimeUnixNano": 1, "endTimeUnixNano": "2", "kind": 1, "traceState": null,
        "attributes": [{"key": "a", "value": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "x"}]}}}],
        "status": {"code": 2}}]}]}]});
    let spans: Vec<Span> = read_protobuf(&binary).unwrap();
    assert_eq!(read_json(text.to_string().as_bytes()), Ok(spans.clone()));
    assert_eq!((spans[0].attributes["a"].clone(), spans[0].error.as_deref()), (json!([1, "x"]), Some("")));
    for wrong in [&b"{"[..], b"\xff", br#"{"resourceSpans": 3}"#] {
        assert!(read_json(wrong).is_err(), "{}", wrong.escape_ascii());
    }
    assert!(read_protobuf(&[0x0a, 0x05]).is_err() && read_protobuf(b"{}").is_err());
}

#[test]
fn no_input_breaks_the_reader() {
    let mut seeds: Vec<Vec<u8>> = conversations().iter().map(|(_, spans)| request(spans)).collect();
    seeds.push(vec![0x0a, 0x04, 0x12, 0x02, 0x12, 0x00]);
    testkit::fuzz(&seeds, |input| {
        for read in [read_json, read_protobuf] {
            if let Ok(spans) = read(input) {
                let seen = trace_from_spans(&spans);
                let is_call = |step: &&Step| matches!(step, Step::ToolCall(_));
                assert_eq!(seen.steps.iter().filter(is_call).count(), seen.sources.len());
            }
        }
    });
}
