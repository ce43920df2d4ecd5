//! Configuration of an agent behind HTTP.

use mask::secret;
use model::decode::{self, Fields, Problems};
use model::{Diagnostic, Node, NodeKind};
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};

use super::address::address;
use super::body::Body;
use super::path::JsonPath;
use super::start::Start;
use crate::traces::{SPAN_PORT, TraceKeys, TraceSettings};

/// Default limit for the size of an answer, in bytes.
const DEFAULT_MAX_BYTES: usize = 10 << 20;
/// Default number of retries of a connection.
const RETRIES: u64 = 2;
/// Maximum number of retries.
const MAX_RETRIES: u64 = 10;
/// YAML tag of a string that names a function.
const FUNCTION_TAG: &str = "!function";
const METHODS: [(&str, Method); 3] = [("POST", Method::POST), ("PUT", Method::PUT), ("PATCH", Method::PATCH)];

/// Configuration of an agent behind HTTP.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) url: Url,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    pub(super) parser: Parser,
    /// True if the answer is requested as a stream.
    pub(super) stream: bool,
    /// Maximum size of an answer, in bytes.
    pub(super) largest: usize,
    /// Number of retries of a connection.
    pub(super) retries: u64,
    pub(super) retry_on: RetryOn,
    /// True if an error of the server breaks the trial; otherwise the trial fails.
    pub(super) server_errors_break: bool,
    /// The program that serves the agent, if trialrun starts it.
    pub(super) start: Option<Start>,
    /// How its spans are received, if it sends any.
    pub(super) traces: Option<TraceSettings>,
}

/// How the answer's text is extracted.
#[derive(Debug, Clone)]
pub(super) enum Parser {
    /// From the usual fields.
    Usual,
    Path(JsonPath),
    /// Reference to a function.
    Function(String),
}

/// Additional failures after which a request is sent again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RetryOn {
    pub(super) statuses: Vec<u16>,
    /// True to retry after a connection that closed before there was a response.
    pub(super) closed: bool,
}

impl Settings {
    /// Returns the default settings for the agent at `url`.
    pub(super) fn from_url(url: &str) -> Result<Self, String> {
        let url = address(url)?;
        Ok(Self {
            url,
            method: Method::POST,
            headers: HeaderMap::new(),
            body: Body::Legacy,
            parser: Parser::Usual,
            stream: false,
            largest: DEFAULT_MAX_BYTES,
            retries: RETRIES,
            retry_on: RetryOn::default(),
            server_errors_break: false,
            start: None,
            traces: None,
        })
    }

    /// Reads `node`; returns `None` if there is no address.
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "an `http` agent", problems)?.in_either_case();
        fields.get("type");
        let written = fields.require("url", problems);
        let url = written.and_then(|node| {
            let text = decode::text(node, "`url`", problems)?;
            address(&text).map_err(|problem| problems.push(node.error(problem))).ok()
        });
        let method = match fields.get("method") {
            Some(node) => method(node, problems),
            None => Method::POST,
        };
        let headers = fields.get("headers").map(|node| headers(node, problems)).unwrap_or_default();
        let body = body(&mut fields, problems);
        let parser = fields.get("response_parser").map_or(Parser::Usual, |node| parser(node, problems));
        let streaming = fields.boolean("streaming", problems);
        let stream = fields.boolean("stream", problems).or(streaming).unwrap_or(false);
        fields.refuse_both("stream", "streaming", problems);
        let largest = fields.whole("max_response_bytes", 1, problems);
        let retries = retries(&mut fields, problems);
        let retry_on = fields.get("retry_on").map(|node| retry_on(node, problems)).unwrap_or_default();
        let server_errors_break =
            fields.choice("server_errors", &[("failed", false), ("broken", true)], problems).unwrap_or(false);
        let start = fields.get("start").and_then(|node| Start::read(node, problems));
        let traces = fields.get("traces");
        let traces = traces.and_then(|node| TraceSettings::read(node, TraceKeys::SharedProcess, problems));
        refuse_timeout(&mut fields, problems);
        fields.finish(problems);
        let url = url?;
        Some(Self {
            url,
            method,
            headers,
            body,
            parser,
            stream,
            largest: largest.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(DEFAULT_MAX_BYTES),
            retries,
            retry_on,
            server_errors_break,
            start,
            traces,
        })
    }

    /// Returns the port on which its spans are received; `None` for any free port, whose number the program gets when it
    /// is started.
    pub(super) fn span_port(&self) -> Option<u16> {
        let port = self.traces.and_then(|traces| traces.port);
        port.or_else(|| self.start.is_none().then_some(SPAN_PORT))
    }

    /// Returns the address without parts that may contain secrets.
    pub(super) fn shown_url(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        // This fails only if the address has neither.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.to_string()
    }

    /// Returns `true` if web pages are requested, or if a function reads whatever the agent answers.
    pub(super) fn wants_web_pages(&self) -> bool {
        let accepts = self.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        matches!(self.parser, Parser::Function(_)) || accepts.into_iter().any(|value| value.contains("html"))
    }

    /// Returns the names of the functions for the body and the parser.
    pub(super) fn functions(&self) -> [Option<&str>; 2] {
        let body = if let Body::Function(reference) = &self.body { Some(reference.as_str()) } else { None };
        let parser = if let Parser::Function(reference) = &self.parser { Some(reference.as_str()) } else { None };
        [body, parser]
    }
}

fn method(node: &Node, problems: &mut Problems) -> Method {
    let written = node.as_str().map(str::to_ascii_uppercase);
    let found = written.and_then(|written| METHODS.into_iter().find(|(name, _)| *name == written));
    if found.is_none() {
        let problem = node.error("`method` must be one of `POST`, `PUT`, `PATCH`");
        problems.push(
            problem.help("the message is sent in the body of the request, and requests of other methods have no body"),
        );
    }
    found.map_or(Method::POST, |(_, method)| method)
}

/// Reads the headers. Headers with credentials are never shown.
fn headers(node: &Node, problems: &mut Problems) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let NodeKind::Map(entries) = &node.kind else {
        problems.push(node.error(format!("`headers` must be a map, not {}", node.kind_name())));
        return headers;
    };
    for (key, value) in entries {
        let at = |message: String| Diagnostic::error(message).at(node.source.excerpt(key.span));
        let Ok(name) = HeaderName::try_from(&key.value) else {
            problems.push(at(format!("`{}` is not a valid name of a header", key.value)));
            continue;
        };
        if matches!(name.as_str(), "content-length" | "transfer-encoding" | "connection" | "host") {
            problems.push(at(format!("`{}` is set by the connection itself", key.value)));
            continue;
        }
        let Some(text) = decode::any_text(value, &format!("the `{}` header", key.value), problems) else { continue };
        let Ok(mut content) = HeaderValue::try_from(text.trim()) else {
            // The value itself is not shown, because it may be a secret.
            problems.push(at(format!("the value of `{}` has characters that a header cannot have", key.value)));
            continue;
        };
        content.set_sensitive(secret::is_of_header(name.as_str()));
        headers.insert(name, content);
    }
    headers
}

fn body(fields: &mut Fields<'_>, problems: &mut Problems) -> Body {
    const FORMATS: [(&str, bool); 2] = [("legacy", false), ("messages", true)];
    let format = fields.get("request_format");
    let template = fields.get("body_template");
    if let (Some(format), Some(_)) = (format, template) {
        problems.push(format.error("`request_format` has no effect together with `body_template`"));
    }
    if let Some(node) = template {
        return match function(node) {
            Some(reference) => Body::Function(reference),
            None => {
                let known = problems.len();
                let body = Body::template(node, problems);
                if problems.len() == known
                    && !["message", "messages", "input", "vars", "script"].iter().any(|name| body.reaches(name))
                {
                    let problem = node.warning("no request would contain the user's message");
                    problems.push(problem.help("write `{{ message }}` or `{{ messages }}` into `body_template`"));
                }
                body
            }
        };
    }
    let is_messages = format.and_then(|node| decode::choice(node, "`request_format`", &FORMATS, problems));
    if is_messages == Some(true) { Body::Messages } else { Body::Legacy }
}

fn parser(node: &Node, problems: &mut Problems) -> Parser {
    if let Some(reference) = function(node) {
        return Parser::Function(reference);
    }
    let Some(text) = decode::text(node, "`response_parser`", problems) else { return Parser::Usual };
    match JsonPath::parse(&text) {
        Ok(path) => Parser::Path(path),
        Err(problem) => {
            problems.push(node.error(problem));
            Parser::Usual
        }
    }
}

fn function(node: &Node) -> Option<String> {
    node.as_str().filter(|_| node.tag.as_deref() == Some(FUNCTION_TAG)).map(str::to_owned)
}

fn retries(fields: &mut Fields<'_>, problems: &mut Problems) -> u64 {
    let retries = fields.whole("retry", 0, problems).unwrap_or(RETRIES);
    if let Some(node) = fields.get("retry").filter(|_| retries > MAX_RETRIES) {
        problems.push(node.error(format!("`retry` must be at most {MAX_RETRIES}, not {retries}")));
    }
    retries.min(MAX_RETRIES)
}

fn retry_on(node: &Node, problems: &mut Problems) -> RetryOn {
    let mut retry_on = RetryOn::default();
    for item in decode::list(node, "`retry_on`", problems).unwrap_or_default() {
        let status = match &item.kind {
            NodeKind::Number(number) => decode::as_whole(number).filter(|status| (400..600).contains(status)),
            _ => None,
        };
        match status.and_then(|status| u16::try_from(status).ok()) {
            Some(status) => retry_on.statuses.push(status),
            None if item.as_str() == Some("closed") => retry_on.closed = true,
            None => problems.push(item.error("`retry_on` lists statuses from 400 to 599, and `closed`")),
        }
    }
    retry_on
}

/// Reports a `timeout` as an error: the agent's own limit could not be told apart from the trial's.
fn refuse_timeout(fields: &mut Fields<'_>, problems: &mut Problems) {
    if let Some(node) = fields.get("timeout") {
        let problem = node.error("an agent cannot have its own `timeout`: the trial's timeout applies");
        problems.push(problem.help("set `eval.defaultTimeout` in the project, or `timeout` in a case or for the run"));
    }
}
