//! The messages of the OpenTelemetry protocol, version 1.9, as far as spans and their events need them.

use std::sync::Arc;

use prost::Message;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::span::{Span, SpanEvent, SpanId, TraceId};

/// Status code of a span that failed.
const STATUS_ERROR: i32 = 2;

/// Request to export spans, and log records, which some libraries use for the content of messages. Each kind has its
/// own request; a file may have both on separate lines.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TracesRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SpanMessage>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(deserialize_with = "hexadecimal")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(deserialize_with = "hexadecimal")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(deserialize_with = "hexadecimal")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(fixed64, tag = "7")]
    #[serde(deserialize_with = "number")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(deserialize_with = "number")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "10")]
    dropped_attributes_count: u32,
    #[prost(message, repeated, tag = "11")]
    events: Vec<EventMessage>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventMessage {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "3")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    #[serde(deserialize_with = "status_code")]
    code: i32,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LogsRequest {
    #[prost(message, repeated, tag = "1")]
    resource_logs: Vec<ResourceLogs>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceLogs {
    #[prost(message, repeated, tag = "2")]
    scope_logs: Vec<ScopeLogs>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScopeLogs {
    #[prost(message, repeated, tag = "2")]
    log_records: Vec<LogRecord>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LogRecord {
    #[prost(message, optional, tag = "5")]
    body: Option<AnyValue>,
    #[prost(message, repeated, tag = "6")]
    attributes: Vec<KeyValue>,
    #[prost(bytes = "vec", tag = "9")]
    #[serde(deserialize_with = "hexadecimal")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "10")]
    #[serde(deserialize_with = "hexadecimal")]
    span_id: Vec<u8>,
    #[prost(string, tag = "12")]
    event_name: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Content", tags = "1, 2, 3, 4, 5, 6, 7")]
    content: Option<Content>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Content {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    List(ListValue),
    #[prost(message, tag = "6")]
    Map(MapValue),
    #[prost(bytes = "vec", tag = "7")]
    Bytes(Vec<u8>),
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct ListValue {
    #[prost(message, repeated, tag = "1")]
    values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct MapValue {
    #[prost(message, repeated, tag = "1")]
    values: Vec<KeyValue>,
}

/// Reads a request to export spans or log records, in protobuf.
///
/// # Errors
/// Returns the reason why it is not such a request.
pub fn read_protobuf(body: &[u8]) -> Result<Vec<Span>, String> {
    let request = TracesRequest::decode(body).map_err(|error| error.to_string())?;
    Ok(request.spans())
}

/// Reads a request to export spans, in JSON.
///
/// # Errors
/// Returns the reason why it is not such a request.
pub fn read_json(body: &[u8]) -> Result<Vec<Span>, String> {
    let request: TracesRequest = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(request.spans())
}

/// Reads the events of a request to export log records, in protobuf: those that belong to a span.
///
/// # Errors
/// Returns the reason why it is not such a request.
pub fn read_protobuf_events(body: &[u8]) -> Result<Vec<(TraceId, SpanId, SpanEvent)>, String> {
    let request = LogsRequest::decode(body).map_err(|error| error.to_string())?;
    Ok(request.events())
}

/// Reads the events of a request to export log records, in JSON: those that belong to a span.
///
/// # Errors
/// Returns the reason why it is not such a request.
pub fn read_json_events(body: &[u8]) -> Result<Vec<(TraceId, SpanId, SpanEvent)>, String> {
    let request: LogsRequest = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(request.events())
}

impl TracesRequest {
    fn spans(self) -> Vec<Span> {
        let mut spans = Vec::new();
        for group in self.resource_spans {
            let resource = Arc::new(map(group.resource.unwrap_or_default().attributes));
            for group in group.scope_spans {
                let Scope { name, version } = group.scope.unwrap_or_default();
                let scope: Arc<str> = if version.is_empty() { name } else { format!("{name} {version}") }.into();
                spans.extend(group.spans.into_iter().map(|span| span.read(&scope, &resource)));
            }
        }
        spans
    }
}

impl SpanMessage {
    fn read(self, scope: &Arc<str>, resource: &Arc<Map<String, Value>>) -> Span {
        let status = self.status.unwrap_or_default();
        let events = self.events.into_iter();
        let parent = SpanId(self.parent_span_id);
        Span {
            trace: TraceId(self.trace_id),
            id: SpanId(self.span_id),
            parent: (!parent.is_empty()).then_some(parent),
            name: self.name,
            scope: Arc::clone(scope),
            resource: Arc::clone(resource),
            start_ns: self.start_time_unix_nano,
            end_ns: self.end_time_unix_nano,
            attributes: map(self.attributes),
            dropped_attributes: self.dropped_attributes_count > 0,
            events: events.map(|event| SpanEvent { name: event.name, attributes: map(event.attributes) }).collect(),
            error: (status.code == STATUS_ERROR).then_some(status.message),
        }
    }
}

impl LogsRequest {
    fn events(self) -> Vec<(TraceId, SpanId, SpanEvent)> {
        let records = self.resource_logs.into_iter().flat_map(|group| group.scope_logs);
        let records = records.flat_map(|group| group.log_records).filter(|record| !record.span_id.is_empty());
        records.map(LogRecord::read).collect()
    }
}

impl LogRecord {
    /// Reads the record as an event. A body that is a map has the content which spans have in attributes.
    fn read(self) -> (TraceId, SpanId, SpanEvent) {
        let mut attributes = map(self.attributes);
        if let Some(Value::Object(body)) = self.body.map(AnyValue::json) {
            attributes.extend(body);
        }
        let named = attributes.get("event.name").and_then(Value::as_str).map(str::to_owned);
        let name = Some(self.event_name).filter(|name| !name.is_empty()).or(named).unwrap_or_default();
        (TraceId(self.trace_id), SpanId(self.span_id), SpanEvent { name, attributes })
    }
}

fn map(entries: Vec<KeyValue>) -> Map<String, Value> {
    let value = |value: Option<AnyValue>| value.map_or(Value::Null, AnyValue::json);
    entries.into_iter().map(|entry| (entry.key, value(entry.value))).collect()
}

impl AnyValue {
    fn json(self) -> Value {
        match self.content {
            None => Value::Null,
            Some(Content::Text(text)) => Value::String(text),
            Some(Content::Bool(value)) => value.into(),
            Some(Content::Integer(number)) => number.into(),
            Some(Content::Double(number)) => number.into(),
            Some(Content::List(list)) => list.values.into_iter().map(Self::json).collect(),
            Some(Content::Map(entries)) => Value::Object(map(entries.values)),
            Some(Content::Bytes(bytes)) => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        enum Written {
            #[serde(rename = "stringValue", alias = "bytesValue")]
            Text(String),
            #[serde(rename = "boolValue")]
            Bool(bool),
            #[serde(rename = "intValue", deserialize_with = "number")]
            Integer(i64),
            #[serde(rename = "doubleValue")]
            Double(f64),
            #[serde(rename = "arrayValue")]
            List(ListValue),
            #[serde(rename = "kvlistValue")]
            Map(MapValue),
        }
        #[derive(Deserialize)]
        struct Value {
            #[serde(flatten)]
            written: Option<Written>,
        }
        let content = Value::deserialize(deserializer)?.written.map(|written| match written {
            Written::Text(text) => Content::Text(text),
            Written::Bool(value) => Content::Bool(value),
            Written::Integer(number) => Content::Integer(number),
            Written::Double(number) => Content::Double(number),
            Written::List(list) => Content::List(list),
            Written::Map(entries) => Content::Map(entries),
        });
        Ok(Self { content })
    }
}

/// Reads an id, which is hexadecimal. An id in another form is kept as it is: ids are only compared.
fn hexadecimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let written = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    Ok(crate::span::bytes(&written).unwrap_or_else(|| written.into_bytes()))
}

/// Reads a 64-bit integer, which JSON may contain as a string.
fn number<'de, D: Deserializer<'de>, N>(deserializer: D) -> Result<N, D::Error>
where
    N: std::str::FromStr<Err: std::fmt::Display> + Default,
{
    use serde::de::Error as _;
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(N::default()),
        Value::String(text) => text.parse().map_err(D::Error::custom),
        Value::Number(number) => number.to_string().parse().map_err(D::Error::custom),
        other => Err(D::Error::custom(format!("`{other}` is not a number"))),
    }
}

/// Reads the code of a status: a number, or its name.
fn status_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let is_error = match Value::deserialize(deserializer)? {
        Value::String(name) => name == "STATUS_CODE_ERROR",
        other => other.as_i64() == Some(i64::from(STATUS_ERROR)),
    };
    Ok(if is_error { STATUS_ERROR } else { 0 })
}
