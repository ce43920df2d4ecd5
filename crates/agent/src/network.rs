//! HTTP requests from a user's module, only to the hosts that the project allows.

use std::sync::Arc;

use llm::error_chain;
use model::Node;
use model::decode::Problems;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use sandbox::Host;
use script::Value;
use tokio::runtime::Handle;

use super::{RunState, SessionContext};

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// Error for a request to a host that is not listed, following the host.
const NOT_ALLOWED: &str = "is not in the agent's `network`";
/// Errors for a request if no host is listed: as reported, and as a module sees it.
const NO_FETCH: [&str; 2] = ["fetch is not available here", "fetch is not defined"];

/// Returns an explanation if a module's error says that the project does not allow a request. The module may have
/// thrown an error of its own that contains that text.
pub(super) fn refusal(reason: &str) -> Option<String> {
    let [reported, seen] = NO_FETCH;
    if reason.contains(seen) {
        return Some(format!("{reason}; it has `fetch` for the hosts in its `network: [HOST]`"));
    }
    [NOT_ALLOWED, reported].iter().any(|error| reason.contains(error)).then(|| reason.to_owned())
}

/// Hosts to which a module may send requests, with the means of sending them.
#[derive(Debug, Clone)]
pub(super) struct Network {
    /// Entries `HOST` or `HOST:PORT`.
    hosts: Vec<String>,
    /// The machine, the state of the run, and the runtime for requests. If they are missing, requests cannot be sent.
    way: Option<(Arc<Host>, Arc<RunState>, Handle)>,
}

/// Parses the list of hosts under `network`.
pub(super) fn hosts(items: &[Node], problems: &mut Problems) -> Vec<String> {
    let host = |item: &Node| {
        let written = item.as_str().map(str::to_lowercase);
        let url = written.as_ref().and_then(|host| Url::parse(&format!("http://{host}/")).ok());
        let is_host = url.is_some_and(|url| url.path() == "/" && url.query().is_none() && url.username().is_empty());
        if !is_host {
            problems.push(
                item.error(
                    "an entry of `network` must be `HOST` or `HOST:PORT`, without `https://` and without a path",
                ),
            );
        }
        written.filter(|_| is_host)
    };
    items.iter().filter_map(host).collect()
}

impl Network {
    /// Allows access to `hosts`; returns `None` if the list is empty. Without a `context`, modules can be loaded but
    /// cannot send requests.
    pub(super) fn to(hosts: &[String], context: Option<&SessionContext>) -> Option<Self> {
        let way = context.zip(Handle::try_current().ok());
        let way = way.map(|(context, runtime)| (Arc::clone(&context.host), Arc::clone(&context.state), runtime));
        (!hosts.is_empty()).then(|| Self { hosts: hosts.to_vec(), way })
    }

    /// Returns the runtime for requests.
    pub(super) fn runtime(&self) -> Option<&Handle> {
        self.way.as_ref().map(|(.., runtime)| runtime)
    }

    fn allows(&self, url: &Url) -> bool {
        let Some(host) = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https")) else { return false };
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        self.hosts.iter().any(|allowed| allowed == host || Some(allowed) == with_port.as_ref())
    }

    /// Sends a request made with `fetch`. Redirects are not followed.
    pub(super) async fn fetch(&self, request: &Value) -> Result<Value, String> {
        let text = |key: &str| request.get(key).and_then(Value::as_str);
        let written = text("url").unwrap_or_default();
        let url = Url::parse(written).map_err(|error| format!("fetch of `{written}`: {error}"))?;
        if !self.allows(&url) {
            let host = url.host_str().unwrap_or_default();
            let all = format!("{}, {host}", self.hosts.join(", "));
            return Err(format!("`{host}` {NOT_ALLOWED}; to allow it, write `network: [{all}]`"));
        }
        let at = format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path());
        let failed = |what: String| format!("fetch of {at}: {what}");
        let method = text("method").unwrap_or("GET");
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|_| failed(format!("`{method}` is not a method")))?;
        let (host, state, _) = self.way.as_ref().ok_or_else(|| failed("requests cannot be sent yet".to_owned()))?;
        let client = state.clients.client(url.scheme() == "https", host).map_err(failed)?;
        let headers = headers(request).map_err(failed)?;
        // The module may have fetched a token, which nothing else marks as a secret.
        for (name, value) in &headers {
            state.secrets.learn_header(name.as_str(), &String::from_utf8_lossy(value.as_bytes()));
        }
        let mut sent = client.request(method, url).headers(headers);
        if let Some(body) = text("body") {
            sent = sent.body(body.to_owned());
        }
        let response = sent.send().await.map_err(|error| failed(error_chain(&error.without_url())))?;
        read(response).await.map_err(failed)
    }
}

fn headers(request: &Value) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let Some(Value::List(pairs)) = request.get("headers") else { return Ok(headers) };
    for pair in pairs {
        let Value::List(pair) = pair else { continue };
        let [Value::String(name), Value::String(value)] = &pair[..] else { continue };
        let wrong = || format!("`{name}` is not a valid header");
        let (key, value) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        headers.append(key.map_err(|_| wrong())?, value.map_err(|_| wrong())?);
    }
    Ok(headers)
}

async fn read(mut response: reqwest::Response) -> Result<Value, String> {
    let pair = |name: &HeaderName, value: &HeaderValue| {
        Value::List(vec![name.as_str().into(), String::from_utf8_lossy(value.as_bytes()).as_ref().into()])
    };
    let headers = response.headers().iter().map(|(name, value)| pair(name, value)).collect();
    let (status, url) = (response.status(), response.url().to_string());
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| error_chain(&error.without_url()))? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_RESPONSE_BYTES {
            return Err(format!("the response is larger than {} MiB", MAX_RESPONSE_BYTES >> 20));
        }
    }
    Ok(Value::Map(vec![
        ("status".into(), Value::Number(f64::from(status.as_u16()))),
        ("statusText".into(), status.canonical_reason().unwrap_or_default().into()),
        ("url".into(), url.as_str().into()),
        ("headers".into(), Value::List(headers)),
        ("text".into(), String::from_utf8_lossy(&body).as_ref().into()),
    ]))
}
