//! The agent's replies, as scenarios see them.

use model::Trace;
use script::Value;

/// Returns the reply to message `number` as a scenario sees it.
pub(super) fn reply(trace: &Trace, number: usize) -> Value {
    let part = trace.reply(number).unwrap_or_default();
    let own = part.replies.first();
    #[allow(clippy::cast_precision_loss)]
    let count = |count: u64| Value::Number(count as f64);
    let calls = part.calls.iter().map(|traced| {
        let mut call = vec![
            ("name".to_owned(), traced.call.name.as_str().into()),
            ("arguments".to_owned(), Value::from(&traced.call.input)),
        ];
        if !traced.call.input.is_object() {
            call.push(("isUnread".to_owned(), true.into()));
        }
        if let Some(result) = &traced.result {
            call.push(("result".to_owned(), result.content.as_str().into()));
            call.push(("isError".to_owned(), result.is_error.into()));
        }
        Value::Map(call)
    });
    let mut map = vec![
        ("number".to_owned(), count(number as u64)),
        ("text".to_owned(), part.answer.as_deref().unwrap_or_default().into()),
        ("toolCalls".to_owned(), Value::List(calls.collect())),
        ("callsUnreported".to_owned(), part.has_unreported_calls().into()),
        ("latencyMs".to_owned(), count(own.and_then(|reply| reply.latency_ms).unwrap_or_default())),
    ];
    map.extend(own.and_then(|reply| reply.first_token_ms).map(|ms| ("firstTokenMs".to_owned(), count(ms))));
    if let Some(tokens) = part.usage.tokens {
        let used = Value::Map(vec![
            ("input".to_owned(), count(tokens.total() - tokens.output)),
            ("output".to_owned(), count(tokens.output)),
            ("total".to_owned(), count(tokens.total())),
        ]);
        map.push(("tokenUsage".to_owned(), used));
    }
    // The body of an HTTP response is kept in addition to the parts that were read from it.
    let raw = part.result.as_deref().map(|result| result.get("raw").unwrap_or(result));
    map.extend(raw.map(|raw| ("raw".to_owned(), Value::from(raw))));
    Value::Map(map)
}
