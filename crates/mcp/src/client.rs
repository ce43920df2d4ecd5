//! The client.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::era::Era;
use crate::exchange::{Answer, Exchange, Failure};
use crate::http::Http;
use crate::received::Received;
use crate::transport::{Direction, Transport};

/// Time limit for the answer to `server/discover` of a server that may not know it.
const TO_DISCOVER: Duration = Duration::from_secs(10);
/// Time limit for ending a session.
const TO_CLOSE: Duration = Duration::from_secs(2);
/// Maximum number of pages of a list.
const MAX_PAGES: usize = 1000;
/// Maximum number of times that a server asks for more input for one request.
const MAX_ROUNDS: usize = 10;
/// Maximum number of messages that are kept because they are not an answer.
const MAX_HEARD: usize = 10_000;
/// Maximum length of a message that is shown, in characters.
const MAX_SHOWN: usize = 200;

/// Answers requests of the server, given the method and the parameters. `None` refuses them.
pub type Responder = Arc<dyn Fn(&str, &Value) -> Option<Value> + Send + Sync>;

/// Settings of a client.
#[derive(Clone)]
pub struct Options {
    /// Era to use; `None` finds out which one the server speaks.
    pub era: Option<Era>,
    /// Time limit for each answer.
    pub limit: Duration,
    /// Capabilities of the client, such as `{"elicitation": {}}`.
    pub capabilities: Value,
    /// Answers to requests of the server.
    pub responder: Option<Responder>,
    /// True if all messages are kept for [`Client::take_traffic`].
    pub keeps_traffic: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            era: None,
            limit: Duration::from_secs(60),
            capabilities: json!({}),
            responder: None,
            keeps_traffic: false,
        }
    }
}

/// What a server says about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerInfo {
    /// Version of the protocol that is used.
    pub protocol: String,
    /// Name.
    pub name: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// Capabilities.
    pub capabilities: Value,
    /// Text for the model.
    pub instructions: Option<String>,
    /// Result of `server/discover` or `initialize`, unchanged.
    pub result: Value,
}

/// A request that has no answer yet.
struct Pending {
    started: Instant,
    before: Vec<Value>,
    outcome: Option<Result<Exchange, Failure>>,
}

/// A client of one server.
pub struct Client {
    transport: Transport,
    options: Options,
    era: Era,
    server: ServerInfo,
    last_id: u64,
    pending: HashMap<u64, Pending>,
    heard: Vec<Value>,
    strays: Vec<Value>,
    repeated: Vec<Value>,
    noise: Vec<String>,
    unmarked: Vec<String>,
    traffic: Vec<(Direction, String)>,
    /// True if an error without an id is the answer to the only open request.
    pairs_errors: bool,
    has_ended: bool,
}

impl Client {
    /// Connects to a server: asks it with `server/discover`, and initialises a session if it does not know that method.
    /// With an era in `options`, only this one is tried. A program that ends at an unknown method needs an era.
    ///
    /// # Errors
    /// Returns an error if the server does not answer, or speaks neither era.
    pub async fn connect(transport: impl Into<Transport>, options: Options) -> Result<Self, Failure> {
        let mut client = Self::unconnected(transport, options);
        client.open().await.map(|()| client)
    }

    /// Creates a client that has not sent anything.
    pub fn unconnected(transport: impl Into<Transport>, options: Options) -> Self {
        Self {
            transport: transport.into(),
            era: options.era.unwrap_or(Era::Stateless),
            options,
            server: ServerInfo::default(),
            last_id: 0,
            pending: HashMap::new(),
            heard: Vec::new(),
            strays: Vec::new(),
            repeated: Vec::new(),
            noise: Vec::new(),
            unmarked: Vec::new(),
            traffic: Vec::new(),
            pairs_errors: true,
            has_ended: false,
        }
    }

    /// Connects, as [`connect`](Self::connect) does. The client stays usable after an error, to see what the server sent.
    ///
    /// # Errors
    /// Returns an error if the server does not answer, or speaks neither era.
    pub async fn open(&mut self) -> Result<(), Failure> {
        if self.options.era == Some(Era::Sessions) {
            return self.initialize().await;
        }
        self.era = Era::Stateless;
        let discovery = self.begin("server/discover", json!({}));
        if self.options.era.is_some() {
            return self.discovered(discovery, self.options.limit).await;
        }
        match self.discovered(discovery, TO_DISCOVER.min(self.options.limit)).await {
            Ok(()) => Ok(()),
            Err(failure) if failure.is_final() => Err(failure),
            Err(asked) => match self.initialize().await {
                // The server was only slow to start: it has answered the first question, and refuses the other one.
                Err(Failure::Refused { .. }) if matches!(asked, Failure::TimedOut(_)) => {
                    self.era = Era::Stateless;
                    self.discovered(discovery, TO_CLOSE).await
                }
                connected => connected,
            },
        }
    }

    /// Takes the answer to `server/discover`.
    async fn discovered(&mut self, id: u64, limit: Duration) -> Result<(), Failure> {
        let exchange = self.finish(id, limit).await?;
        let result = exchange.result()?.clone();
        let versions: Vec<&str> =
            result["supportedVersions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !versions.contains(&self.era.version()) {
            let what = format!("the server does not offer version {}, but {}", self.era, result["supportedVersions"]);
            return Err(Failure::Malformed(what));
        }
        self.learn(Era::Stateless.version(), result);
        Ok(())
    }

    async fn initialize(&mut self) -> Result<(), Failure> {
        self.era = Era::Sessions;
        let params = json!({
            "protocolVersion": self.era.version(),
            "capabilities": self.options.capabilities,
            "clientInfo": client_info(),
        });
        let exchange = self.request("initialize", params).await?;
        let result = exchange.result()?.clone();
        let Some(version) = result["protocolVersion"].as_str().map(str::to_owned) else {
            return Err(Failure::Malformed("the result of `initialize` has no `protocolVersion`".to_owned()));
        };
        if let Transport::Http(http) = &mut self.transport {
            http.set_version(&version);
        }
        self.learn(&version, result);
        self.notify("notifications/initialized", json!({}));
        Ok(())
    }

    fn learn(&mut self, protocol: &str, result: Value) {
        let meta = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        let info = if result["serverInfo"].is_object() { &result["serverInfo"] } else { meta };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.server = ServerInfo {
            protocol: protocol.to_owned(),
            name: text(&info["name"]),
            version: text(&info["version"]),
            capabilities: result["capabilities"].clone(),
            instructions: text(&result["instructions"]),
            result,
        };
    }

    /// Returns what the server says about itself.
    pub fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Returns the era in use.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Returns the HTTP connection, if it is one.
    pub fn http(&self) -> Option<&Http> {
        if let Transport::Http(http) = &self.transport { Some(http.as_ref()) } else { None }
    }

    /// Returns `true` if the server has closed its output.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the tools of all pages, and remembers which of their arguments are sent as headers.
    ///
    /// # Errors
    /// Returns an error if a page cannot be fetched or read.
    pub async fn tools(&mut self) -> Result<Vec<Value>, Failure> {
        let tools = self.list("tools/list", "tools").await?;
        if let Transport::Http(http) = &mut self.transport {
            tools.iter().for_each(|tool| http.learn(tool));
        }
        Ok(tools)
    }

    /// Returns the items of all pages of a list, such as `prompts/list` with the key `prompts`.
    ///
    /// # Errors
    /// Returns an error if a page cannot be fetched or read, or if the pages do not end.
    pub async fn list(&mut self, method: &str, key: &str) -> Result<Vec<Value>, Failure> {
        let (mut items, mut cursors) = (Vec::new(), Vec::new());
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let exchange = self.request(method, params).await?;
            let result = exchange.result()?;
            let Some(page) = result[key].as_array() else {
                return Err(Failure::Malformed(format!("the result of `{method}` has no list `{key}`")));
            };
            items.extend(page.iter().cloned());
            match result.get("nextCursor") {
                None | Some(Value::Null) => return Ok(items),
                Some(cursor) if cursors.contains(cursor) => {
                    return Err(Failure::Malformed(format!(
                        "the pages of `{method}` do not end: {cursor} follows itself"
                    )));
                }
                Some(cursor) => {
                    cursors.push(cursor.clone());
                    params = json!({"cursor": cursor});
                }
            }
        }
        Err(Failure::Malformed(format!("`{method}` has more than {MAX_PAGES} pages")))
    }

    /// Calls a tool, and answers the server's requests for input.
    ///
    /// # Errors
    /// Returns an error if there is no answer.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Exchange, Failure> {
        let id = self.begin_call(tool, &arguments, false);
        self.finish_call(tool, &arguments, id, self.options.limit).await
    }

    /// Sends a call, and asks for its progress if `wants_progress`. Returns its id.
    pub fn begin_call(&mut self, tool: &str, arguments: &Value, wants_progress: bool) -> u64 {
        let mut params = json!({"name": tool, "arguments": arguments});
        if wants_progress {
            params["_meta"] = json!({"progressToken": self.last_id + 1});
        }
        self.begin("tools/call", params)
    }

    /// Waits for the answer to a call, and answers the server's requests for input.
    ///
    /// # Errors
    /// Returns an error if there is no answer within `limit`.
    pub async fn finish_call(
        &mut self,
        tool: &str,
        arguments: &Value,
        id: u64,
        limit: Duration,
    ) -> Result<Exchange, Failure> {
        let mut exchange = self.finish(id, limit).await?;
        for _ in 0..MAX_ROUNDS {
            let Some(more) = self.input_for(&exchange) else { break };
            let mut params =
                Map::from_iter([("name".to_owned(), json!(tool)), ("arguments".to_owned(), arguments.clone())]);
            params.extend(more);
            let id = self.begin("tools/call", Value::Object(params));
            let (before, duration) = (exchange.before, exchange.duration);
            exchange = self.finish(id, limit).await?;
            exchange.before.splice(0..0, before);
            exchange.duration += duration;
        }
        Ok(exchange)
    }

    /// Returns the parameters that answer a request for input; `None` if it is none, or if it cannot be answered.
    fn input_for(&self, exchange: &Exchange) -> Option<Map<String, Value>> {
        let result = exchange.answer.as_result().filter(|result| result["resultType"] == "input_required")?;
        let mut answers = Map::new();
        for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
            let responder = self.options.responder.as_ref()?;
            answers.insert(key.clone(), responder(request["method"].as_str()?, &request["params"])?);
        }
        let mut params = Map::from_iter([("inputResponses".to_owned(), Value::Object(answers))]);
        if let Some(state) = result.get("requestState") {
            params.insert("requestState".to_owned(), state.clone());
        }
        Some(params)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// Returns an error if there is no answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Exchange, Failure> {
        let id = self.begin(method, params);
        self.finish(id, self.options.limit).await
    }

    /// Sends a request, and returns its id.
    pub fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.era == Era::Stateless {
            self.add_meta(&mut params);
        }
        let mut message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method});
        if params.as_object().is_none_or(|params| !params.is_empty()) {
            message["params"] = params;
        }
        self.send(&message);
        self.last_id
    }

    fn add_meta(&self, params: &mut Value) {
        let Some(params) = params.as_object_mut() else { return };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        let Some(meta) = meta.as_object_mut() else { return };
        let standard = [
            ("protocolVersion", json!(self.era.version())),
            ("clientInfo", client_info()),
            ("clientCapabilities", self.options.capabilities.clone()),
        ];
        for (name, value) in standard {
            meta.entry(format!("io.modelcontextprotocol/{name}")).or_insert(value);
        }
    }

    /// Sends a message as it is. If it is a request with a number as its id, [`finish`](Self::finish) waits for its answer.
    pub fn send(&mut self, message: &Value) {
        if let Some(id) = message["id"].as_u64().filter(|_| message.get("method").is_some()) {
            let pending = Pending { started: Instant::now(), before: Vec::new(), outcome: None };
            self.pending.insert(id, pending);
            self.last_id = self.last_id.max(id);
        }
        self.keep(Direction::Sent, || message.to_string());
        self.transport.send(message, self.era);
    }

    /// Sends a line that need not be a message, to a server that reads lines.
    pub fn send_line(&mut self, line: &str) {
        self.keep(Direction::Sent, || line.to_owned());
        if let Transport::Stdio(stdio) = &self.transport {
            stdio.send(line);
        }
    }

    /// Sets whether an error without an id is the answer to the only open request. It is, unless something else was sent
    /// that cannot have an id.
    pub(crate) fn pair_errors(&mut self, pairs: bool) {
        self.pairs_errors = pairs;
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if params.as_object().is_none_or(|params| !params.is_empty()) {
            message["params"] = params;
        }
        self.send(&message);
    }

    /// Tells the server that the answer to a request is not needed any more. A server that answers anyway is still heard,
    /// except over HTTP without sessions, where the connection is closed.
    pub fn cancel(&mut self, id: u64, reason: &str) {
        if !self.transport.abandon(id, self.era) {
            self.notify("notifications/cancelled", json!({"requestId": id, "reason": reason}));
        }
    }

    /// Waits for the answer to a request. The future may be dropped before it completes, and called again.
    ///
    /// # Errors
    /// Returns an error if there is no answer within `limit`.
    pub async fn finish(&mut self, id: u64, limit: Duration) -> Result<Exchange, Failure> {
        let answered = async {
            loop {
                match self.pending.entry(id) {
                    Entry::Occupied(mut entry) => {
                        if let Some(outcome) = entry.get_mut().outcome.take() {
                            entry.remove();
                            return outcome;
                        }
                    }
                    Entry::Vacant(_) => return Err(Failure::Malformed(format!("there is no request {id}"))),
                }
                if self.has_ended {
                    self.pending.remove(&id);
                    return Err(Failure::Ended);
                }
                let received = self.transport.receive().await;
                self.take(received);
            }
        };
        let answered = tokio::time::timeout(limit, answered).await;
        answered.unwrap_or_else(|_| Err(self.timed_out(id, limit)))
    }

    /// Returns the failure for a request that was not answered in time. An answer with another id may have been meant for it.
    fn timed_out(&self, id: u64, limit: Duration) -> Failure {
        match self.strays.last() {
            Some(stray) if self.pending.len() == 1 => Failure::Malformed(format!(
                "the server did not answer within {} s, but sent an answer with the id {}, which no request has; this one has {id}",
                limit.as_secs_f64(),
                stray["id"]
            )),
            _ => Failure::TimedOut(limit),
        }
    }

    /// Hears what the server sends within `limit`.
    pub async fn listen(&mut self, limit: Duration) {
        let all = async {
            while !self.has_ended {
                let received = self.transport.receive().await;
                self.take(received);
            }
        };
        let _ = tokio::time::timeout(limit, all).await;
    }

    fn take(&mut self, received: Received) {
        match received {
            Received::Message { message, text, status } => {
                self.keep(Direction::Received, || text.clone());
                if message["jsonrpc"] != "2.0" {
                    push(&mut self.unmarked, model::text::shortened(&text, MAX_SHOWN));
                }
                if message.get("method").is_some() {
                    self.hear(message);
                } else {
                    self.answered(&message, text.len(), status);
                }
            }
            Received::Noise(text) => {
                self.keep(Direction::Received, || text.clone());
                self.broken(&text);
                push(&mut self.noise, text);
            }
            Received::Failed { request: Some(id), failure } => {
                if let Some(pending) = self.pending.get_mut(&id) {
                    pending.outcome = Some(Err(failure));
                }
            }
            Received::Failed { request: None, failure } => push(&mut self.noise, failure.to_string()),
            Received::Ended => self.has_ended = true,
        }
    }

    /// Ends the only open request if `text` is a message that cannot be read, because no other answer will come. Other
    /// output, such as a line of a log, says nothing about the request.
    fn broken(&mut self, text: &str) {
        let is_message = text.trim_start().starts_with('{') && text.contains("\"jsonrpc\"");
        let mut waiting = self.pending.values_mut().filter(|pending| pending.outcome.is_none());
        if let (Some(pending), None) = (waiting.next(), waiting.next())
            && is_message
            && self.pairs_errors
        {
            let shown = model::text::shortened(text, MAX_SHOWN);
            let what = format!("the server answered with something that is no message of the protocol: {shown}");
            pending.outcome = Some(Err(Failure::Malformed(what)));
        }
    }

    /// Takes a notification or a request of the server.
    fn hear(&mut self, message: Value) {
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id").filter(|id| !id.is_null())) {
            let answer = match method {
                "ping" => Some(json!({})),
                _ => self.options.responder.as_ref().and_then(|responder| responder(method, &message["params"])),
            };
            let response = match answer {
                Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                None => {
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "the client does not offer this"}})
                }
            };
            self.send(&response);
        }
        for pending in self.pending.values_mut().filter(|pending| pending.outcome.is_none()) {
            push(&mut pending.before, message.clone());
        }
        push(&mut self.heard, message);
    }

    fn answered(&mut self, message: &Value, bytes: usize, status: Option<u16>) {
        let id = &message["id"];
        let known = id.as_u64().filter(|id| self.pending.get(id).is_some_and(|pending| pending.outcome.is_none()));
        let as_text = id.as_str().and_then(|id| id.parse::<u64>().ok());
        let mut waiting = self.pending.iter().filter(|(_, pending)| pending.outcome.is_none()).map(|(id, _)| *id);
        let only = waiting.next().filter(|_| waiting.next().is_none());
        let mistaken = as_text.filter(|id| self.pending.contains_key(id));
        let unnamed = only.filter(|_| self.pairs_errors && id.is_null() && message.get("error").is_some());
        let is_repeated = id.as_u64().is_some_and(|id| id <= self.last_id);
        let others = if is_repeated { &mut self.repeated } else { &mut self.strays };
        let Some(number) = known.or(mistaken).or(unnamed) else { return push(others, message.clone()) };
        let Some(pending) = self.pending.get_mut(&number) else { return };
        let duration = pending.started.elapsed();
        let answer = match (mistaken, answer(message)) {
            (Some(_), _) => Err(Failure::Malformed(format!("the answer has the id {id}, the request had {number}"))),
            (None, answer) => answer,
        };
        let before = std::mem::take(&mut pending.before);
        pending.outcome = Some(answer.map(|answer| Exchange { id: number, answer, before, duration, bytes, status }));
    }

    /// Takes the notifications and requests that the server has sent.
    pub fn take_heard(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.heard)
    }

    /// Takes the answers that belong to no open request.
    pub fn take_strays(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.strays)
    }

    /// Takes the further answers to requests that were answered already.
    pub fn take_repeated(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.repeated)
    }

    /// Takes the output that is not a message.
    pub fn take_noise(&mut self) -> Vec<String> {
        std::mem::take(&mut self.noise)
    }

    /// Takes the messages without `jsonrpc` `2.0`.
    pub fn take_unmarked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unmarked)
    }

    /// Takes the messages in both directions, if they are kept.
    pub fn take_traffic(&mut self) -> Vec<(Direction, String)> {
        std::mem::take(&mut self.traffic)
    }

    fn keep(&mut self, direction: Direction, text: impl FnOnce() -> String) {
        if self.options.keeps_traffic {
            self.traffic.push((direction, text()));
        }
    }

    /// Ends the session, or closes the stdin of the program.
    pub async fn close(&mut self) {
        match &mut self.transport {
            Transport::Http(http) => http.close(TO_CLOSE).await,
            Transport::Stdio(stdio) => stdio.close(),
        }
    }
}

fn client_info() -> Value {
    json!({"name": "trialrun", "version": env!("CARGO_PKG_VERSION")})
}

/// Keeps `item`, unless there are too many already.
fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() < MAX_HEARD {
        list.push(item);
    }
}

fn answer(message: &Value) -> Result<Answer, Failure> {
    match (message.get("result"), message.get("error")) {
        (Some(result), None) => Ok(Answer::Result(result.clone())),
        (None, Some(error)) => Ok(Answer::Error {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            error: error.clone(),
        }),
        (Some(_), Some(_)) => Err(Failure::Malformed("the answer has both a `result` and an `error`".to_owned())),
        (None, None) => Err(Failure::Malformed("the answer has neither a `result` nor an `error`".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

    use super::*;
    use crate::stdio::Stdio;

    /// Serves the answers that `server` returns for each message.
    fn connection(server: impl Fn(Value) -> Vec<Value> + Send + 'static) -> Stdio {
        let (stdin, input) = tokio::io::duplex(1 << 16);
        let (mut output, stdout): (DuplexStream, DuplexStream) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let mut lines = BufReader::new(input).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                for answer in server(serde_json::from_str(&line).unwrap_or(Value::Null)) {
                    output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
                }
            }
        });
        Stdio::new(stdin, stdout)
    }

    fn result(message: &Value, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
    }

    fn error(message: &Value, code: i64) -> Value {
        json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "no"}})
    }

    #[tokio::test]
    async fn a_server_without_discovery_is_initialised() {
        let server = |message: Value| match message["method"].as_str() {
            Some("server/discover") => vec![error(&message, -32601)],
            Some("initialize") => vec![result(
                &message,
                &json!({
                    "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}
                }),
            )],
            Some("tools/list") if message["params"]["cursor"] == "2" => {
                vec![result(&message, &json!({"tools": [{"name": "b"}]}))]
            }
            Some("tools/list") => {
                assert!(message.get("params").is_none(), "{message}");
                vec![
                    json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}),
                    result(&message, &json!({"tools": [{"name": "a"}], "nextCursor": "2"})),
                ]
            }
            _ => vec![],
        };
        let mut client =
            Client::connect(connection(server), Options { keeps_traffic: true, ..Options::default() }).await.unwrap();
        assert_eq!((client.era(), client.server().protocol.as_str()), (Era::Sessions, "2025-06-18"));
        assert_eq!(client.server().name.as_deref(), Some("s"));
        let names: Vec<Value> = client.tools().await.unwrap().into_iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["a", "b"]);
        let pong = json!({"jsonrpc": "2.0", "id": "p", "result": {}}).to_string();
        assert!(client.take_traffic().contains(&(Direction::Sent, pong)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_slow_to_start_is_not_taken_for_an_older_one() {
        let late = std::sync::Mutex::new(None);
        let server = move |message: Value| match message["method"].as_str() {
            Some("server/discover") => {
                let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
                *late.lock().unwrap() = Some(result(&message, &found));
                vec![]
            }
            _ => late.lock().unwrap().take().into_iter().chain([error(&message, -32022)]).collect(),
        };
        let client = Client::connect(connection(server), Options::default()).await.unwrap();
        assert_eq!(client.era(), Era::Stateless);
    }

    #[tokio::test]
    async fn requests_are_self_contained_without_sessions_and_input_is_given() {
        let server = |message: Value| {
            let meta = &message["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{message}");
            match message["method"].as_str() {
                Some("server/discover") => {
                    vec![result(
                        &message,
                        &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}),
                    )]
                }
                _ if message["params"].get("inputResponses").is_none() => {
                    let requests = json!({"name": {"method": "elicitation/create", "params": {"message": "Who?"}}});
                    vec![result(
                        &message,
                        &json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"}),
                    )]
                }
                _ => {
                    assert_eq!(message["params"]["requestState"], "s");
                    let text = message["params"]["inputResponses"]["name"]["content"]["name"].clone();
                    vec![result(
                        &message,
                        &json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}),
                    )]
                }
            }
        };
        let responder: Responder = Arc::new(|method, _| {
            (method == "elicitation/create").then(|| json!({"action": "accept", "content": {"name": "Ada"}}))
        });
        let options = Options { responder: Some(responder), ..Options::default() };
        let mut client = Client::connect(connection(server), options).await.unwrap();
        assert_eq!(client.era(), Era::Stateless);
        let exchange = client.call("greet", json!({})).await.unwrap();
        assert_eq!(crate::text_of(exchange.result().unwrap()), "Ada");
    }

    #[tokio::test]
    async fn a_message_that_cannot_be_read_ends_the_request() {
        let (stdin, _input) = tokio::io::duplex(1 << 16);
        let (mut output, stdout) = tokio::io::duplex(1 << 16);
        let options = Options { era: Some(Era::Sessions), ..Options::default() };
        let mut client = Client::unconnected(Stdio::new(stdin, stdout), options);
        let id = client.begin("tools/call", json!({}));
        output.write_all(b"{a line of a log\n{\"jsonrpc\": \"2.0\", \"id\":\n").await.unwrap();
        let failure = client.finish(id, Duration::from_secs(60)).await.unwrap_err();
        let what =
            "the server answered with something that is no message of the protocol: {\"jsonrpc\": \"2.0\", \"id\":";
        assert_eq!(failure.to_string(), what);
        let id = client.begin("tools/call", json!({}));
        output.write_all(b"{a line of a log\n{\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {}}\n").await.unwrap();
        assert!(client.finish(id, Duration::from_secs(60)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_with_another_id_is_named_when_the_time_is_over() {
        let server = |_| vec![json!({"jsonrpc": "2.0", "id": 77, "result": {}})];
        let options = Options { era: Some(Era::Sessions), ..Options::default() };
        let mut client = Client::unconnected(connection(server), options);
        let failure = client.request("tools/call", json!({})).await.unwrap_err();
        let hint = "the server did not answer within 60 s, but sent an answer with the id 77, which no request has; \
                    this one has 1";
        assert_eq!(failure.to_string(), hint);
    }

    #[tokio::test]
    async fn wrong_answers_are_told_apart() {
        let server = |message: Value| match message["method"].as_str() {
            Some("text") => vec![json!({"jsonrpc": "2.0", "id": message["id"].to_string(), "result": {}})],
            Some("both") => vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": {}, "error": {}})],
            Some("other") => vec![json!({"jsonrpc": "2.0", "id": 99, "result": {}}), error(&message, -32602)],
            Some("endless") => vec![result(&message, &json!({"items": [], "nextCursor": "a"}))],
            Some("null") => vec![json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no"}})],
            Some("progress") => vec![
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}),
                result(&message, &json!({"isError": true})),
            ],
            _ => vec![],
        };
        let options = Options { era: Some(Era::Sessions), ..Options::default() };
        let mut client = Client::unconnected(connection(server), options);
        let text = client.request("text", json!({})).await.unwrap_err();
        assert_eq!(text.to_string(), "the answer has the id \"1\", the request had 1");
        assert!(matches!(client.request("both", json!({})).await, Err(Failure::Malformed(_))));
        assert_eq!(client.request("other", json!({})).await.unwrap().answer.code(), Some(-32602));
        assert_eq!(client.take_strays(), [json!({"jsonrpc": "2.0", "id": 99, "result": {}})]);
        assert_eq!(client.request("null", json!({})).await.unwrap().answer.code(), Some(-32600));
        let exchange = client.request("progress", json!({})).await.unwrap();
        assert!(exchange.answer.is_tool_error());
        assert_eq!(exchange.progress().count(), 1);
        let silent = client.begin("silent", json!({}));
        assert!(matches!(client.finish(silent, Duration::from_millis(1)).await, Err(Failure::TimedOut(_))));
        let endless = client.list("endless", "items").await.unwrap_err();
        assert_eq!(endless.to_string(), "the pages of `endless` do not end: \"a\" follows itself");
        client.close().await;
        assert_eq!(client.request("text", json!({})).await, Err(Failure::Ended));
    }
}
