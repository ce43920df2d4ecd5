//! A server that is reached over streamable HTTP.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::era::Era;
use crate::event_stream::EventStream;
use crate::exchange::Failure;
use crate::received::{QUEUED, Received};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// Maximum size of a response body in bytes.
const MAX_BODY_BYTES: usize = 64 << 20;
/// Maximum number of characters of an error's body that are kept.
const MAX_SHOWN: usize = 300;
/// Maximum number of times that a stream is opened again for one answer.
const MAX_RESUMES: usize = 5;
/// Time before a stream is opened again, unless the server asks for another.
const RETRY: Duration = Duration::from_millis(200);
/// Maximum time before a stream is opened again.
const MAX_RETRY: Duration = Duration::from_secs(10);

/// An address, and the responses from it. Dropping it ends the requests that are open.
pub struct Http {
    endpoint: Endpoint,
    version: Option<String>,
    session: Arc<Mutex<Option<String>>>,
    /// Headers that repeat arguments, by the name of the tool.
    argument_headers: HashMap<String, Vec<ArgumentHeader>>,
    sender: mpsc::Sender<Received>,
    pub(crate) incoming: mpsc::Receiver<Received>,
    tasks: JoinSet<()>,
    open: HashMap<u64, AbortHandle>,
}

#[derive(Clone)]
struct Endpoint {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
}

/// An argument that is also sent as a header.
struct ArgumentHeader {
    path: Vec<String>,
    header: HeaderName,
}

/// Response to a request that was sent with [`Http::raw`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    /// Status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// Body, or its beginning for a stream that does not end.
    pub body: String,
}

impl HttpReply {
    /// Returns the value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the first message in the body, which is JSON or a stream of events.
    pub fn message(&self) -> Option<Value> {
        let is_stream = self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let text = match is_stream {
            true => EventStream::default().feed(self.body.as_bytes()).into_iter().next()?,
            false => self.body.clone(),
        };
        model::foreign_json::parse(&text).ok()
    }
}

impl Http {
    /// Sends requests to `url` with `client`. `headers` are added to each, such as `Authorization`. Must be called within
    /// a tokio runtime.
    ///
    /// # Errors
    /// Returns the name of the first header that is not valid. Its value may be a secret.
    pub fn new(client: reqwest::Client, url: &str, headers: &[(String, String)]) -> Result<Self, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
            let Some((key, mut value)) = parsed else { return Err(format!("`{name}` is not a valid HTTP header")) };
            value.set_sensitive(true);
            map.append(key, value);
        }
        let (sender, incoming) = mpsc::channel(QUEUED);
        Ok(Self {
            endpoint: Endpoint { client, url: url.to_owned(), headers: map },
            version: None,
            session: Arc::default(),
            argument_headers: HashMap::new(),
            sender,
            incoming,
            tasks: JoinSet::new(),
            open: HashMap::new(),
        })
    }

    /// Returns the id of the session that the server has assigned.
    pub fn session(&self) -> Option<String> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the version that each later request names.
    pub(crate) fn set_version(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }

    /// Remembers the arguments of a tool that are also sent as headers.
    pub(crate) fn learn(&mut self, tool: &Value) {
        let Some(name) = tool["name"].as_str() else { return };
        let mut headers = Vec::new();
        find_headers(&tool["inputSchema"], &mut Vec::new(), &mut headers);
        if !headers.is_empty() {
            self.argument_headers.insert(name.to_owned(), headers);
        }
    }

    /// Sends a message in a task.
    pub(crate) fn send(&mut self, message: &Value, era: Era) {
        while self.tasks.try_join_next().is_some() {}
        let request = message["id"].as_u64().filter(|_| message.get("method").is_some());
        let call = Post {
            endpoint: self.endpoint.clone(),
            headers: self.headers(message, era),
            session: self.session.clone(),
            body: message.to_string(),
            request,
            is_resumable: era == Era::Sessions,
            opens_session: message["method"] == "initialize",
            sender: self.sender.clone(),
        };
        let task = self.tasks.spawn(call.run());
        if let Some(id) = request {
            self.open.retain(|_, task| !task.is_finished());
            self.open.insert(id, task);
        }
    }

    /// Closes the response to a request.
    pub(crate) fn abandon(&mut self, request: u64) {
        if let Some(task) = self.open.remove(&request) {
            task.abort();
        }
    }

    /// Returns the headers that the protocol requires for a message.
    fn headers(&self, message: &Value, era: Era) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut put = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        if let Some(session) = self.session() {
            put(SESSION, &session);
        }
        let version = self.version.as_deref().or((era == Era::Stateless).then_some(era.version()));
        if let Some(version) = version {
            put(VERSION, version);
        }
        if era == Era::Stateless
            && let Some(method) = message["method"].as_str()
        {
            put("mcp-method", method);
            let key = match method {
                "tools/call" | "prompts/get" => Some("name"),
                "resources/read" => Some("uri"),
                _ => None,
            };
            if let Some(name) = key.and_then(|key| message["params"][key].as_str()) {
                put("mcp-name", &encoded(name));
            }
            for (name, value) in repeated_arguments(&self.argument_headers, method, &message["params"]) {
                if let Ok(value) = HeaderValue::from_str(&value) {
                    headers.insert(name.clone(), value);
                }
            }
        }
        headers
    }

    /// Sends a request that may break the protocol, and returns the response. The user's headers are sent too, and then
    /// `headers`; one with an empty value is left out. A stream is read until `limit` has passed.
    ///
    /// # Errors
    /// Returns an error if there is no response within `limit`.
    pub async fn raw(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
        limit: Duration,
    ) -> Result<HttpReply, Failure> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST);
        let mut map = self.endpoint.headers.clone();
        for (name, value) in headers {
            let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
            map.remove(&name);
            if let Some(value) = HeaderValue::from_str(value).ok().filter(|value| !value.is_empty()) {
                map.insert(name, value);
            }
        }
        let mut request = self.endpoint.client.request(method, &self.endpoint.url).headers(map);
        if let Some(body) = body {
            request = request.body(body);
        }
        let deadline = tokio::time::Instant::now() + limit;
        let response = tokio::time::timeout_at(deadline, request.send()).await;
        let mut response = response.map_err(|_| Failure::TimedOut(limit))?.map_err(lost)?;
        let status = response.status().as_u16();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(piece)) = response.chunk().await {
                body.extend_from_slice(&piece);
                if body.len() > MAX_BODY_BYTES {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout_at(deadline, read).await;
        Ok(HttpReply { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// Ends the session, if there is one.
    pub(crate) async fn close(&mut self, limit: Duration) {
        self.tasks.abort_all();
        let Some(session) = self.session() else { return };
        let version = self.version.clone().unwrap_or_default();
        let _ = self.raw("DELETE", &[(SESSION, &session), (VERSION, &version)], None, limit).await;
    }
}

/// Finds the annotations of arguments that are also sent as headers.
fn find_headers(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ArgumentHeader>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        let header = property["x-mcp-header"].as_str().filter(|header| !header.is_empty());
        if let Some(Ok(header)) = header.map(|header| HeaderName::try_from(format!("mcp-param-{header}"))) {
            found.push(ArgumentHeader { path: path.clone(), header });
        }
        find_headers(property, path, found);
        path.pop();
    }
}

/// Returns the headers that repeat arguments of a call.
fn repeated_arguments<'a>(
    known: &'a HashMap<String, Vec<ArgumentHeader>>,
    method: &str,
    params: &'a Value,
) -> Vec<(&'a HeaderName, String)> {
    let tool = params["name"].as_str().filter(|_| method == "tools/call");
    let headers = tool.and_then(|name| known.get(name)).map_or(&[][..], Vec::as_slice);
    let value = |header: &'a ArgumentHeader| {
        let value = header.path.iter().try_fold(&params["arguments"], |value, key| value.get(key))?;
        let text = match value {
            Value::String(text) => encoded(text),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            _ => return None,
        };
        Some((&header.header, text))
    };
    headers.iter().filter_map(value).collect()
}

/// Returns a text as the value of a header.
fn encoded(text: &str) -> String {
    let is_plain = text.chars().all(|letter| (' '..='~').contains(&letter)) && text.trim() == text;
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain && !looks_encoded { text.to_owned() } else { format!("=?base64?{}?=", BASE64.encode(text)) }
}

fn lost(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    Failure::Lost(reason)
}

/// A message on its way.
struct Post {
    endpoint: Endpoint,
    headers: HeaderMap,
    session: Arc<Mutex<Option<String>>>,
    body: String,
    request: Option<u64>,
    is_resumable: bool,
    opens_session: bool,
    sender: mpsc::Sender<Received>,
}

impl Post {
    async fn run(self) {
        if let Err(failure) = self.exchange().await {
            let _ = self.sender.send(Received::Failed { request: self.request, failure }).await;
        }
    }

    async fn exchange(&self) -> Result<(), Failure> {
        let request = self.endpoint.client.post(&self.endpoint.url).headers(self.endpoint.headers.clone());
        let request = request
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        let response = request.body(self.body.clone()).send().await.map_err(lost)?;
        if self.opens_session
            && let Some(id) = response.headers().get(SESSION).and_then(|id| id.to_str().ok())
        {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.to_owned());
        }
        match is_stream(&response) && response.status().is_success() {
            true => self.follow(response).await,
            false => self.whole(response).await,
        }
    }

    /// Reads a response that is one document.
    async fn whole(&self, mut response: Response) -> Result<(), Failure> {
        let status = response.status();
        let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = challenge.map(|challenge| model::text::shortened(challenge, MAX_SHOWN));
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(lost)? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_BODY_BYTES {
                return Err(Failure::Malformed(format!("the response has more than {} MB", MAX_BODY_BYTES >> 20)));
            }
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        let message = model::foreign_json::parse(&text).ok();
        match message {
            // A sign-in is not a matter of the protocol, whatever the body says.
            Some(message) if message.get("jsonrpc").is_some() && status != StatusCode::UNAUTHORIZED => {
                self.pass(Received::Message { message, text, status: Some(status.as_u16()) }).await;
                Ok(())
            }
            _ if status.is_success() && self.request.is_none() => Ok(()),
            _ => {
                let body = model::text::shortened(&text, MAX_SHOWN);
                Err(Failure::Http { status: status.as_u16(), body, challenge })
            }
        }
    }

    /// Reads a response that is a stream, until it contains the answer.
    async fn follow(&self, mut response: Response) -> Result<(), Failure> {
        let mut events = EventStream::default();
        let mut resumes = 0;
        loop {
            let broken = self.events(&mut events, &mut response).await;
            match broken {
                Ok(true) => return Ok(()),
                Ok(false) if self.request.is_none() => return Ok(()),
                _ => {}
            }
            let Some(last) = events.last_id.clone().filter(|_| self.is_resumable && resumes < MAX_RESUMES) else {
                return broken.and(Err(Failure::Unanswered));
            };
            resumes += 1;
            let wait = events.retry_ms.map_or(RETRY, Duration::from_millis).min(MAX_RETRY);
            tokio::time::sleep(wait).await;
            let request = self.endpoint.client.get(&self.endpoint.url).headers(self.endpoint.headers.clone());
            let request =
                request.headers(self.headers.clone()).header(ACCEPT, "text/event-stream").header("last-event-id", last);
            response = request.send().await.map_err(lost)?;
            if !response.status().is_success() || !is_stream(&response) {
                return Err(Failure::Unanswered);
            }
        }
    }

    /// Passes on the messages of a stream. Returns `true` if one of them is the answer.
    async fn events(&self, events: &mut EventStream, response: &mut Response) -> Result<bool, Failure> {
        let status = Some(response.status().as_u16());
        while let Some(piece) = response.chunk().await.map_err(lost)? {
            let piece: Bytes = piece;
            for text in events.feed(&piece) {
                let received = Received::read(text, status);
                let is_answer = matches!(&received, Received::Message { message, .. } if self.is_answer(message));
                self.pass(received).await;
                if is_answer {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn is_answer(&self, message: &Value) -> bool {
        message.get("method").is_none() && self.request.is_some() && message["id"].as_u64() == self.request
    }

    async fn pass(&self, mut received: Received) {
        // An error about a request that the server could not read has no id, but it came as its response.
        if let (Received::Message { message, .. }, Some(id)) = (&mut received, self.request)
            && message.get("error").is_some()
            && message["id"].is_null()
        {
            message["id"] = id.into();
        }
        let _ = self.sender.send(received).await;
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_header_value_that_http_cannot_carry_is_encoded() {
        assert_eq!(encoded("add"), "add");
        assert_eq!(encoded("größe"), "=?base64?Z3LDtsOfZQ==?=");
        assert_eq!(encoded(" a"), "=?base64?IGE=?=");
        assert!(encoded("=?base64?YQ==?=").len() > "=?base64?YQ==?=".len());
    }

    #[test]
    fn annotated_arguments_are_repeated_as_headers() {
        let region = json!({"type": "string", "x-mcp-header": "Region"});
        let mut found = Vec::new();
        find_headers(&json!({"properties": {"in": {"properties": {"r": region}}}}), &mut Vec::new(), &mut found);
        let known = HashMap::from([("t".to_owned(), found)]);
        let params = json!({"name": "t", "arguments": {"in": {"r": "eu"}}});
        let headers = repeated_arguments(&known, "tools/call", &params);
        assert_eq!(headers, [(&HeaderName::from_static("mcp-param-region"), "eu".to_owned())]);
        assert!(repeated_arguments(&known, "tools/list", &params).is_empty());
    }
}
