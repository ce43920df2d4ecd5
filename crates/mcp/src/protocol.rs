//! Rules of the protocol. A client plays a conversation with the server in each era, breaks rules in it on purpose, and
//! each check judges what the server sent.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use model::text::shortened;
use serde_json::{Value, json};

use crate::client::{Client, Options};
use crate::definition;
use crate::era::Era;
use crate::exchange::{Answer, Exchange, Failure, Unchecked};
use crate::rule::{Report, SchemaCheck, Tier};
use crate::transport::Transport;

/// Time limit for each answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Time limit for an answer to a message that servers may ignore.
const IGNORED: Duration = Duration::from_secs(2);
/// Time in which messages that come too late are noticed.
const LATE: Duration = Duration::from_millis(200);
/// Maximum length of the name of a tool.
const MAX_NAME: usize = 128;

/// A future that can be sent to another thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens connections to a server. Each one to a program starts it again.
pub trait Connector: Send {
    /// Opens a connection, and ends the previous one.
    ///
    /// # Errors
    /// Returns the reason if the program cannot be started.
    fn connect(&mut self) -> BoxFuture<'_, Result<Transport, String>>;

    /// Waits until the program ends on its own after its stdin was closed. Returns `None` for a server that is not a
    /// program, and `Some(false)` if it does not end.
    fn ends(&mut self) -> BoxFuture<'_, Option<bool>>;
}

/// Checks the rules of the protocol in both eras.
///
/// # Errors
/// Returns the reason if the server cannot be started, or never answers.
pub async fn check_protocol(connector: &mut dyn Connector, schemas: SchemaCheck) -> Result<Report, Unchecked> {
    let mut report = Report::default();
    let mut failures = Vec::new();
    for era in [Era::Stateless, Era::Sessions] {
        let transport = connector.connect().await.map_err(Unchecked::NotStarted)?;
        let options = Options { era: Some(era), limit: LIMIT, keeps_traffic: false, ..Options::default() };
        let mut client = Client::unconnected(transport, options);
        match client.open().await {
            Ok(()) => {
                report.prefix = prefix(era);
                Phase { client: &mut client, era, report: &mut report, schemas }.check().await;
                client.close().await;
                let ends = connector.ends().await;
                let rule = "a program ends when its stdin is closed";
                match ends {
                    Some(ends) => {
                        report.holds(Tier::Advisory, "ends", rule, ends, || "it was still running".to_owned());
                    }
                    None => report.skip(Tier::Advisory, "ends", rule, "the server is not a program"),
                }
                report.prefix = "";
            }
            Err(failure) => {
                client.close().await;
                failures.push((era, failure));
            }
        }
    }
    // What never answers breaks no rule of the protocol.
    let is_silent = |failure: &Failure| {
        matches!(failure, Failure::Ended | Failure::Lost(_) | Failure::Http { status: 401 | 403 | 404, .. })
    };
    if failures.len() == 2
        && failures.iter().all(|(_, failure)| is_silent(failure))
        && let Some((_, failure)) = failures.pop()
    {
        return Err(Unchecked::Server(failure));
    }
    let reasons = || failures.iter().map(|(era, failure)| format!("version {era}: {failure}")).collect::<Vec<_>>();
    let rule = "the server speaks a version of the protocol that clients use";
    report.holds(Tier::Mandatory, "speaks_the_protocol", rule, failures.len() < 2, || reasons().join("; "));
    Ok(report)
}

fn prefix(era: Era) -> &'static str {
    match era {
        Era::Sessions => "2025-11-25.",
        Era::Stateless => "2026-07-28.",
    }
}

/// The checks of one era.
struct Phase<'a> {
    client: &'a mut Client,
    era: Era,
    report: &'a mut Report,
    schemas: SchemaCheck,
}

/// A check of an HTTP request: importance, id, rule, headers, and the statuses that are right.
type HttpCheck<'a> = (Tier, &'a str, &'static str, Vec<(&'a str, &'a str)>, &'static [u16]);

/// Describes what came instead of what is required.
fn seen(outcome: &Result<Exchange, Failure>) -> String {
    match outcome {
        Ok(Exchange { answer: Answer::Result(result), .. }) => {
            format!("the result {}", shortened(&result.to_string(), 200))
        }
        Ok(Exchange { answer: Answer::Error { code, message, .. }, .. }) => format!("error {code}: {message}"),
        Err(failure) => failure.to_string(),
    }
}

fn code(outcome: &Result<Exchange, Failure>) -> Option<i64> {
    outcome.as_ref().ok()?.answer.code()
}

impl Phase<'_> {
    async fn check(&mut self) {
        self.opening();
        let tools = self.lists().await;
        self.tools(&tools);
        self.calls().await;
        self.prompts_and_resources().await;
        self.requests().await;
        if self.era == Era::Sessions {
            self.versions().await;
        } else {
            self.metadata().await;
        }
        if self.client.http().is_some() {
            self.http().await;
        } else {
            self.lines().await;
        }
        self.messages().await;
    }

    fn errors(&self, name: &str, value: &Value) -> Vec<String> {
        definition::errors(self.era, name, value, self.schemas)
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Exchange, Failure> {
        self.client.request(method, params).await
    }

    fn offers(&self, capability: &str) -> bool {
        self.client.server().capabilities.get(capability).is_some_and(Value::is_object)
    }

    fn opening(&mut self) {
        use Tier::{Advisory, Mandatory};
        let server = self.client.server().clone();
        let name = if self.era == Era::Sessions { "InitializeResult" } else { "DiscoverResult" };
        let rule = "the first result has the form that the protocol requires";
        self.report.none(Mandatory, "first_result", rule, self.errors(name, &server.result));
        let rule = "the server says its name and version";
        let named =
            [&server.name, &server.version].iter().all(|text| text.as_ref().is_some_and(|text| !text.is_empty()));
        self.report.holds(Advisory, "server_info", rule, named, || server.result.to_string());
        if self.era == Era::Sessions {
            let rule =
                "a client that offers version 2025-11-25 gets this version, if the server supports it, or an older one";
            let known = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
            let is_known = known.contains(&server.protocol.as_str());
            self.report.holds(Mandatory, "version", rule, is_known, || format!("`{}`", server.protocol));
        }
    }

    /// Checks all lists; returns the tools.
    async fn lists(&mut self) -> Vec<Value> {
        use Tier::{Advisory, Mandatory};
        const LISTS: [(&str, &str, &str, &str); 4] = [
            ("tools", "tools/list", "tools", "ListToolsResult"),
            ("prompts", "prompts/list", "prompts", "ListPromptsResult"),
            ("resources", "resources/list", "resources", "ListResourcesResult"),
            ("resources", "resources/templates/list", "resourceTemplates", "ListResourceTemplatesResult"),
        ];
        let mut tools = Vec::new();
        for (capability, method, key, definition) in LISTS {
            let (id, declared) = (format!("list_{key}"), format!("declares_{key}"));
            let outcome = self.ask(method, json!({})).await;
            let result = outcome.as_ref().ok().and_then(|exchange| exchange.answer.as_result()).cloned();
            let rule = "a list has the form that the protocol requires";
            let declares = "what the server offers is in its capabilities";
            let is_offered = self.offers(capability);
            match result {
                Some(result) => {
                    self.report.none(Mandatory, &id, rule, self.errors(definition, &result));
                    let has_items = result[key].as_array().is_some_and(|items| !items.is_empty());
                    self.report.holds(Mandatory, &declared, declares, is_offered || !has_items, || {
                        format!("`{method}` has items, but there is no capability `{capability}`")
                    });
                    if key == "tools" {
                        tools = self.client.tools().await.unwrap_or_default();
                        let rule = "the pages of the list end, and no item is in it twice";
                        self.report.none(Mandatory, "tools_are_unique", rule, twice(&tools, "name"));
                        let outcome = self.ask(method, json!({"cursor": "trialrun-no-such-cursor"})).await;
                        let rule = "an unknown cursor is an error";
                        self.report
                            .holds(Advisory, "unknown_cursor", rule, code(&outcome).is_some(), || seen(&outcome));
                    }
                }
                // Servers need not offer templates.
                None if is_offered && key != "resourceTemplates" => {
                    self.report.none(Mandatory, &id, rule, [format!("`{method}`: {}", seen(&outcome))]);
                }
                None => self.report.skip(Mandatory, &id, rule, &format!("the server has no `{capability}`")),
            }
        }
        tools
    }

    fn tools(&mut self, tools: &[Value]) {
        use Tier::{Advisory, Mandatory};
        if tools.is_empty() {
            self.report.skip(
                Mandatory,
                "input_schemas",
                "input schemas are valid schemas of maps",
                "the server has no tools",
            );
            return;
        }
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        let is_usual = |name: &str| {
            let plain =
                name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/'));
            plain && (1..=MAX_NAME).contains(&name.len())
        };
        let odd = tools.iter().map(name).filter(|name| !is_usual(name));
        self.report.none(
            Advisory,
            "tool_names",
            "names of tools have 1 to 128 letters, digits, `_`, `-`, `.` or `/`",
            odd,
        );
        let mut inputs = Vec::new();
        let mut outputs = Vec::new();
        let mut open = Vec::new();
        for tool in tools {
            for (key, problems) in [("inputSchema", &mut inputs), ("outputSchema", &mut outputs)] {
                let Some(schema) = tool.get(key) else { continue };
                if let Err(reason) = (self.schemas)(schema, &json!({})) {
                    problems.push(format!("`{}`: {reason}", name(tool)));
                } else if key == "inputSchema" && schema["type"] != "object" {
                    problems.push(format!("`{}`: the type is {}", name(tool), schema["type"]));
                }
            }
            let properties = &tool["inputSchema"]["properties"];
            let listed = tool["inputSchema"]["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            open.extend(
                listed.filter(|key| properties.get(key).is_none()).map(|key| format!("`{key}` of `{}`", name(tool))),
            );
        }
        self.report.none(Mandatory, "input_schemas", "input schemas are valid schemas of maps", inputs);
        self.report.none(Mandatory, "output_schemas", "output schemas are valid schemas", outputs);
        self.report.none(Advisory, "required_properties", "each required argument is described", open);
    }

    async fn calls(&mut self) {
        use Tier::{Advisory, Mandatory};
        let rule = "a call without the name of a tool is an error of the protocol";
        if !self.offers("tools") {
            return self.report.skip(Mandatory, "call_without_name", rule, "the server has no tools");
        }
        let outcome = self.ask("tools/call", json!({"arguments": {}})).await;
        self.report.holds(Mandatory, "call_without_name", rule, code(&outcome).is_some(), || seen(&outcome));
        let outcome = self.ask("tools/call", json!({"name": "trialrun_no_such_tool", "arguments": {}})).await;
        let is_error =
            outcome.as_ref().is_ok_and(|exchange| exchange.answer.code().is_some() || exchange.answer.is_tool_error());
        self.report
            .holds(Mandatory, "unknown_tool", "a call of an unknown tool is an error", is_error, || seen(&outcome));
        let rule = "a call of an unknown tool is an error of the protocol with code -32602";
        self.report.holds(Advisory, "unknown_tool_code", rule, code(&outcome) == Some(-32602), || seen(&outcome));
    }

    async fn prompts_and_resources(&mut self) {
        use Tier::{Advisory, Mandatory};
        if self.offers("resources") {
            let outcome = self.ask("resources/read", json!({"uri": "trialrun://no/such/resource"})).await;
            let rule = "reading an unknown resource is an error";
            self.report.holds(Mandatory, "unknown_resource", rule, code(&outcome).is_some(), || seen(&outcome));
            let wanted: &[i64] = if self.era == Era::Sessions { &[-32002, -32602] } else { &[-32602] };
            let rule = "the error about an unknown resource has the code of the protocol";
            let is_wanted = code(&outcome).is_some_and(|code| wanted.contains(&code));
            self.report.holds(Advisory, "unknown_resource_code", rule, is_wanted, || seen(&outcome));
            let listed = self.client.list("resources/list", "resources").await.unwrap_or_default();
            if let Some(uri) = listed.first().map(|resource| resource["uri"].clone()) {
                let outcome = self.ask("resources/read", json!({"uri": uri})).await;
                let problems = match &outcome {
                    Ok(Exchange { answer: Answer::Result(result), .. }) => self.errors("ReadResourceResult", result),
                    other => vec![format!("{uri}: {}", seen(other))],
                };
                self.report.none(Mandatory, "read_resource", "a listed resource can be read", problems);
            }
        }
        if self.offers("prompts") {
            let outcome = self.ask("prompts/get", json!({"name": "trialrun-no-such-prompt"})).await;
            let rule = "an unknown prompt is an error";
            self.report.holds(Mandatory, "unknown_prompt", rule, code(&outcome).is_some(), || seen(&outcome));
            let listed = self.client.list("prompts/list", "prompts").await.unwrap_or_default();
            let is_required = |prompt: &&Value| {
                prompt["arguments"].as_array().into_iter().flatten().any(|argument| argument["required"] == true)
            };
            if let Some(prompt) = listed.iter().find(is_required) {
                let outcome = self.ask("prompts/get", json!({"name": prompt["name"]})).await;
                let rule = "a prompt without its required arguments is an error";
                self.report.holds(Advisory, "prompt_arguments", rule, code(&outcome).is_some(), || seen(&outcome));
            }
            if let Some(prompt) = listed.iter().find(|prompt| !is_required(prompt)) {
                let outcome = self.ask("prompts/get", json!({"name": prompt["name"]})).await;
                let problems = match &outcome {
                    Ok(Exchange { answer: Answer::Result(result), .. }) => self.errors("GetPromptResult", result),
                    other => vec![format!("{}: {}", prompt["name"], seen(other))],
                };
                self.report.none(
                    Mandatory,
                    "get_prompt",
                    "a listed prompt without required arguments can be fetched",
                    problems,
                );
            }
        }
        if self.offers("logging") && self.era == Era::Sessions {
            let outcome = self.ask("logging/setLevel", json!({"level": "error"})).await;
            let is_set = outcome.as_ref().is_ok_and(|exchange| exchange.answer.as_result().is_some());
            self.report.holds(Mandatory, "log_level", "the log level can be set", is_set, || seen(&outcome));
        }
    }

    async fn requests(&mut self) {
        use Tier::{Advisory, Mandatory};
        if self.era == Era::Sessions {
            let outcome = self.ask("ping", json!({})).await;
            let is_empty =
                outcome.as_ref().is_ok_and(|exchange| exchange.answer.as_result().is_some_and(Value::is_object));
            self.report.holds(Mandatory, "ping", "`ping` is answered with a result", is_empty, || seen(&outcome));
        }
        let outcome = self.ask("trialrun/unknown", json!({})).await;
        let rule = "an unknown method is answered with error -32601";
        self.report.holds(Mandatory, "unknown_method", rule, code(&outcome) == Some(-32601), || seen(&outcome));
        if let Ok(Exchange { answer: Answer::Error { error, .. }, id, .. }) = &outcome {
            let response = json!({"jsonrpc": "2.0", "id": id, "error": error});
            let rule = "errors have an integer `code` and a `message`";
            self.report.none(Mandatory, "errors", rule, self.errors("JSONRPCErrorResponse", &response));
        }
        let method = if self.era == Era::Sessions { "ping" } else { "server/discover" };
        let (two, one) = (self.client.begin(method, json!({})), self.client.begin(method, json!({})));
        let later = self.client.finish(one, LIMIT).await;
        let earlier = self.client.finish(two, LIMIT).await;
        let both = later.is_ok() && earlier.is_ok();
        let rule = "two requests at a time are both answered";
        self.report
            .holds(Mandatory, "concurrent_requests", rule, both, || format!("{}; {}", seen(&earlier), seen(&later)));
        self.client.listen(Duration::ZERO).await;
        self.client.take_strays();
        self.client.notify("notifications/trialrun_unknown", json!({}));
        let outcome = self.ask(method, json!({})).await;
        self.client.listen(LATE).await;
        let strays = self.client.take_strays();
        let rule = "a notification is not answered";
        self.report.none(Mandatory, "notifications", rule, strays.iter().map(ToString::to_string));
        let rule = "the server stays usable after an unknown notification";
        self.report.holds(Mandatory, "unknown_notification", rule, outcome.is_ok(), || seen(&outcome));
        self.client.notify("notifications/cancelled", json!({"requestId": 999_999, "reason": "trialrun"}));
        let outcome = self.ask(method, json!({})).await;
        let rule = "the server stays usable after an unknown request was cancelled";
        self.report.holds(Mandatory, "cancel_unknown", rule, outcome.is_ok(), || seen(&outcome));
        let meta = json!({"_meta": {"com.example/trialrun": {"a": 1}}});
        let outcome = self.ask(method, meta).await;
        let is_fine = outcome.as_ref().is_ok_and(|exchange| exchange.answer.as_result().is_some());
        self.report.holds(Advisory, "unknown_metadata", "unknown metadata is ignored", is_fine, || seen(&outcome));
    }

    /// Checks which versions a session gets.
    async fn versions(&mut self) {
        let info = json!({"name": "trialrun", "version": "0"});
        let params = json!({"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": info});
        let first = self.client.server().protocol.clone();
        // A server may refuse a second initialisation.
        let outcome = self.ask("initialize", params).await;
        let version =
            outcome.as_ref().ok().and_then(|exchange| exchange.answer.as_result()?["protocolVersion"].as_str());
        let rule = "a version that does not exist is answered with one that does, or with an error";
        let is_fine = outcome.is_ok() && version != Some("1999-01-01");
        self.report
            .holds(Tier::Mandatory, "unknown_version", rule, is_fine, || format!("{}, after {first}", seen(&outcome)));
    }

    /// Checks what each request says about itself.
    async fn metadata(&mut self) {
        use Tier::{Advisory, Mandatory};
        let unknown = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}});
        let outcome = self.ask("server/discover", unknown).await;
        let is_refused = code(&outcome).is_some();
        let rule = "a request of a version that does not exist is an error";
        self.report.holds(Mandatory, "unknown_version", rule, is_refused, || seen(&outcome));
        if let Ok(Exchange { answer: Answer::Error { error, .. }, id, .. }) = &outcome
            && self.client.http().is_none()
        {
            let response = json!({"jsonrpc": "2.0", "id": id, "error": error});
            let rule = "that error has code -32022, and lists the versions that are supported";
            self.report.none(
                Mandatory,
                "unsupported_version_error",
                rule,
                self.errors("UnsupportedProtocolVersionError", &response),
            );
        }
        let id = 1_000_001;
        self.client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {}}));
        let outcome = self.client.finish(id, IGNORED).await;
        let is_refused = code(&outcome).is_some() || matches!(outcome, Err(Failure::Http { status: 400..=499, .. }));
        let rule = "a request without metadata is an error";
        self.report.holds(Advisory, "request_without_metadata", rule, is_refused, || seen(&outcome));
    }

    /// Checks how a program reads lines.
    async fn lines(&mut self) {
        use Tier::{Advisory, Mandatory};
        let method = if self.era == Era::Sessions { "ping" } else { "server/discover" };
        self.client.take_strays();
        self.client.pair_errors(false);
        let mut answers = Vec::new();
        for line in ["{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\"", "[]", "null", "\u{0}\u{1}", ""] {
            self.client.send_line(line);
            let outcome = self.ask(method, json!({})).await;
            if outcome.is_err() {
                answers.push(format!("after {line:?}: {}", seen(&outcome)));
            }
        }
        self.report.none(
            Mandatory,
            "invalid_lines",
            "the server stays usable after lines that are not messages",
            answers,
        );
        self.client.listen(LATE).await;
        let strays = self.client.take_strays();
        let wrong = strays.iter().filter(|stray| !stray["id"].is_null() || stray.get("error").is_none());
        let rule = "a line that is not a message is answered with an error without an id, or not at all";
        self.report.none(Advisory, "invalid_line_errors", rule, wrong.map(ToString::to_string));
        self.client.pair_errors(true);
        let mut text = json!({"jsonrpc": "2.0", "id": "trialrun-text", "method": method});
        if self.era == Era::Stateless {
            text["params"] = json!({"_meta": {
                "io.modelcontextprotocol/protocolVersion": self.era.version(),
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "trialrun", "version": "0"},
            }});
        }
        self.client.send(&text);
        let outcome = self.ask(method, json!({})).await;
        self.client.listen(LATE).await;
        let strays = self.client.take_strays();
        let is_there = strays.iter().any(|stray| stray["id"] == "trialrun-text");
        let rule = "an id that is a text comes back unchanged";
        let shown =
            || format!("{}; {}", strays.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), seen(&outcome));
        self.report.holds(Mandatory, "text_ids", rule, is_there, shown);
    }

    /// Checks the use of HTTP.
    async fn http(&mut self) {
        use Tier::{Advisory, Mandatory};
        let Some(http) = self.client.http() else { return };
        let version = self.client.server().protocol.clone();
        let session = http.session();
        let method = if self.era == Era::Sessions { "ping" } else { "server/discover" };
        let mut message = json!({"jsonrpc": "2.0", "id": 2_000_001, "method": method});
        if self.era == Era::Stateless {
            message["params"] = json!({"_meta": {
                "io.modelcontextprotocol/protocolVersion": self.era.version(),
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "trialrun", "version": "0"},
            }});
        }
        let accept = "application/json, text/event-stream";
        let usual = [
            ("content-type", "application/json"),
            ("accept", accept),
            ("mcp-protocol-version", version.as_str()),
            ("mcp-session-id", session.as_deref().unwrap_or_default()),
            ("mcp-method", if self.era == Era::Stateless { method } else { "" }),
        ];
        let changed = |name: &'static str, value: &'static str| -> Vec<(&str, &str)> {
            let mut headers: Vec<(&str, &str)> = usual.iter().filter(|(known, _)| *known != name).copied().collect();
            headers.push((name, value));
            headers
        };
        let body = message.to_string();
        let mut checks: Vec<HttpCheck<'_>> = vec![
            (Mandatory, "http_request", "a request is answered with status 200", usual.to_vec(), &[200]),
            (
                Mandatory,
                "http_origin",
                "a request from another origin is refused with status 403",
                changed("origin", "http://evil.example"),
                &[403],
            ),
            (
                Mandatory,
                "http_version",
                "a version that does not exist in the header is refused with status 400",
                changed("mcp-protocol-version", "1999-01-01"),
                &[400],
            ),
            (
                Advisory,
                "http_accept",
                "a client that accepts no JSON is refused with status 406",
                changed("accept", "text/plain"),
                &[406, 400],
            ),
            (
                Advisory,
                "http_content_type",
                "a body that is not JSON is refused with status 415",
                changed("content-type", "text/plain"),
                &[415, 400],
            ),
        ];
        if self.era == Era::Sessions && session.is_some() {
            checks.push((
                Mandatory,
                "http_unknown_session",
                "an unknown session is answered with status 404",
                changed("mcp-session-id", "trialrun-no-such-session"),
                &[404],
            ));
            checks.push((
                Advisory,
                "http_without_session",
                "a request without its session is refused with status 400",
                changed("mcp-session-id", ""),
                &[400, 404],
            ));
        }
        if self.era == Era::Stateless {
            checks.push((
                Mandatory,
                "http_method_mismatch",
                "a header `Mcp-Method` that differs from the body is refused with status 400",
                changed("mcp-method", "tools/list"),
                &[400],
            ));
            checks.push((
                Mandatory,
                "http_method_missing",
                "a request without the header `Mcp-Method` is refused with status 400",
                changed("mcp-method", ""),
                &[400],
            ));
        }
        for (tier, id, rule, headers, statuses) in checks {
            let reply = http.raw("POST", &headers, Some(body.clone()), IGNORED).await;
            let (is_fine, shown) = match reply {
                Ok(reply) => (
                    statuses.contains(&reply.status),
                    format!("status {}: {}", reply.status, shortened(&reply.body, 120)),
                ),
                Err(failure) => (false, failure.to_string()),
            };
            self.report.holds(tier, id, rule, is_fine, || shown);
        }
        let headers = usual.to_vec();
        let reply = http.raw("POST", &headers, Some("{\"jsonrpc\":".to_owned()), IGNORED).await;
        let is_refused = reply.as_ref().is_ok_and(|reply| (400..500).contains(&reply.status));
        self.report.holds(
            Mandatory,
            "http_invalid_json",
            "a body that is not valid JSON is refused with status 400",
            is_refused,
            || reply.map_or_else(|failure| failure.to_string(), |reply| format!("status {}", reply.status)),
        );
        let note = json!({"jsonrpc": "2.0", "method": "notifications/trialrun_unknown"}).to_string();
        if self.era == Era::Sessions {
            let reply = http.raw("POST", &headers, Some(note), IGNORED).await;
            let is_accepted = reply.as_ref().is_ok_and(|reply| reply.status == 202);
            self.report.holds(
                Mandatory,
                "http_notification",
                "a notification is answered with status 202",
                is_accepted,
                || reply.map_or_else(|failure| failure.to_string(), |reply| format!("status {}", reply.status)),
            );
        }
        let get = changed("accept", "text/event-stream");
        let reply = http.raw("GET", &get, None, IGNORED).await;
        let is_fine = reply.as_ref().is_ok_and(|reply| {
            let streams = reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
            reply.status == 405 || (reply.status == 200 && streams && self.era == Era::Sessions) || reply.status == 409
        });
        let rule = "`GET` opens a stream, or is refused with status 405";
        self.report.holds(Mandatory, "http_get", rule, is_fine, || {
            reply.map_or_else(|failure| failure.to_string(), |reply| format!("status {}", reply.status))
        });
    }

    /// Checks everything that the server has sent.
    async fn messages(&mut self) {
        use Tier::Mandatory;
        let (noise, unmarked) = (self.client.take_noise(), self.client.take_unmarked());
        let heard = self.client.take_heard();
        let strays = self.client.take_strays();
        self.report.none(Mandatory, "only_messages", "the server sends only messages", noise);
        self.report.none(Mandatory, "jsonrpc", "each message has `jsonrpc` `2.0`", unmarked);
        let repeated = self.client.take_repeated();
        let strays = strays.iter().filter(|stray| !stray["id"].is_null());
        let odd = strays.chain(&repeated).map(ToString::to_string);
        self.report.none(Mandatory, "ids", "a response has the id of a request, and there is one for each", odd);
        let is_notification = |message: &&Value| message.get("id").is_none();
        let mut problems = Vec::new();
        for message in heard.iter().filter(is_notification) {
            problems.extend(
                self.errors("ServerNotification", message)
                    .into_iter()
                    .take(1)
                    .map(|error| format!("{}: {error}", message["method"])),
            );
        }
        self.report.none(Mandatory, "server_notifications", "notifications are those of the protocol", problems);
        let requests = heard.iter().filter(|message| !is_notification(message) && message["method"] != "ping");
        let rule = "the server does not use capabilities that the client did not offer";
        self.report.none(Mandatory, "client_capabilities", rule, requests.map(ToString::to_string));
    }
}

/// Returns the values of `key` that occur more than once.
fn twice(items: &[Value], key: &str) -> Vec<String> {
    let mut known = BTreeSet::new();
    let values = items.iter().filter_map(|item| item[key].as_str());
    values.filter(|value| !known.insert(*value)).map(|value| format!("`{value}`")).collect()
}
