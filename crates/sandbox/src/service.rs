//! Client for the REST API of Daytona: sandboxes on other machines, and their files and commands.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, NoProxy, Proxy, RequestBuilder, StatusCode, redirect};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

/// Time limit for a request that needs no work.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Time limit for transferring a workspace.
const TRANSFER: Duration = Duration::from_secs(600);

/// Maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 8 << 20;

/// Maximum size of a downloaded file, in bytes.
const MAX_FILE: u64 = 4 << 30;

/// Number of attempts to create a sandbox if the service does not answer.
const ATTEMPTS: u32 = 3;

/// Shortest and longest pause between two polls of a sandbox's state.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Boundary between the parts of an upload.
const BOUNDARY: &str = "trialrun-5f0c6f2a9d4e41b7";

/// Maximum length of a service's message that is quoted, in characters.
const QUOTED: usize = 300;

/// Words in error messages about account limits.
const OF_QUOTA: [&str; 4] = ["quota", "limit", "exceeded", "insufficient"];

/// Address and credentials of the service.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Access {
    /// Address of the API, without a trailing slash.
    pub(crate) url: String,
    /// API key or JSON web token.
    pub(crate) token: String,
    /// Organization, which is required with a JSON web token.
    pub(crate) organization: Option<String>,
    /// Proxy of this machine. Its address may contain a password.
    pub(crate) proxy: Option<String>,
}

impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Access").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Error from the service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ServiceError {
    /// The request was rejected, and a retry would be too.
    #[error("{0}")]
    Refused(String),
    /// The account cannot create another sandbox.
    #[error("the quota of the account is used up: {0}")]
    Quota(String),
    /// The sandbox or file does not exist.
    #[error("it does not exist: {0}")]
    Missing(String),
    /// A sandbox with this name already exists.
    #[error("it already exists: {0}")]
    Exists(String),
    /// The request may or may not have been carried out.
    #[error("{0}")]
    Unclear(String),
}

impl ServiceError {
    /// Returns `true` if a retry would get the same answer.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Quota(_))
    }
}

/// Description of a sandbox by the service.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoteSandbox {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    error_reason: Option<String>,
    #[serde(default)]
    toolbox_proxy_url: Option<String>,
}

impl RemoteSandbox {
    /// Returns the address of the API for commands and files.
    pub(crate) fn toolbox(&self) -> Result<String, ServiceError> {
        let missing = || ServiceError::Refused("the service did not return a toolbox URL".to_owned());
        let url = self.toolbox_proxy_url.as_deref().ok_or_else(missing)?;
        Ok(format!("{}/{}", url.trim_end_matches('/'), self.id))
    }
}

/// Result of a short command.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Executed {
    pub(crate) exit_code: i64,
    #[serde(default)]
    pub(crate) result: String,
}

/// Client for the service.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    http: reqwest::Client,
    access: Access,
}

impl Service {
    /// Creates a client without sending a request. It may be used on several runtimes, so it does not keep connections.
    pub(crate) fn new(access: Access) -> Result<Self, ServiceError> {
        Self::with_idle(access, 0)
    }

    /// Creates a client for use on a single runtime. It keeps a connection open.
    pub(crate) fn of_runtime(access: Access) -> Result<Self, ServiceError> {
        Self::with_idle(access, 1)
    }

    fn with_idle(access: Access, idle: usize) -> Result<Self, ServiceError> {
        // If a provider was already installed, that one works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("trialrun/", env!("CARGO_PKG_VERSION")))
            // A redirect would send the key to another host.
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .pool_max_idle_per_host(idle)
            .no_proxy();
        if let Some(proxy) = &access.proxy {
            // The error omits the address, because it may contain a password.
            let wrong = |_| ServiceError::Refused("the proxy's address cannot be used".to_owned());
            let proxy = Proxy::all(proxy).map_err(wrong)?;
            client = client.proxy(proxy.no_proxy(NoProxy::from_string("localhost,127.0.0.0/8,::1")));
        }
        let failed = |error: reqwest::Error| ServiceError::Refused(error.without_url().to_string());
        Ok(Self { http: client.build().map_err(failed)?, access })
    }

    /// Creates a sandbox with this name. If the answer is lost, the name shows whether the sandbox was created, and the
    /// labels in `owner` show that it belongs to this run.
    pub(crate) async fn create(
        &self,
        name: &str,
        specification: &Value,
        owner: &BTreeMap<String, String>,
    ) -> Result<RemoteSandbox, ServiceError> {
        let mut last = ServiceError::Unclear("it was not tried".to_owned());
        for _ in 0..ATTEMPTS {
            let unclear = match self.json(Method::POST, "/sandbox", Some(specification)).await {
                Err(unclear @ (ServiceError::Unclear(_) | ServiceError::Exists(_))) => unclear,
                answered => return answered.and_then(described),
            };
            match self.find(name).await {
                Ok(found) if owner.iter().all(|label| found.labels.get(label.0) == Some(label.1)) => return Ok(found),
                Ok(_) => {
                    let reason = format!("a sandbox named `{name}` belongs to another run");
                    return Err(ServiceError::Refused(reason));
                }
                Err(ServiceError::Missing(_)) => last = unclear,
                Err(error) if error.is_final() => return Err(error),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Returns the sandbox with this name or id.
    pub(crate) async fn find(&self, name: &str) -> Result<RemoteSandbox, ServiceError> {
        self.json(Method::GET, &format!("/sandbox/{name}"), None).await.and_then(described)
    }

    /// Returns all sandboxes of the account.
    pub(crate) async fn all(&self) -> Result<Vec<RemoteSandbox>, ServiceError> {
        let answer = self.json(Method::GET, "/sandbox", None).await?;
        // Newer versions of the service return pages.
        let items = answer.get("items").cloned().unwrap_or(answer);
        serde_json::from_value(items).map_err(|error| strange(&error))
    }

    /// Waits until the sandbox has started.
    pub(crate) async fn started(&self, sandbox: RemoteSandbox, limit: Duration) -> Result<RemoteSandbox, ServiceError> {
        let (began, mut pause, mut sandbox) = (Instant::now(), PAUSES.0, sandbox);
        loop {
            match sandbox.state.as_str() {
                "started" => return Ok(sandbox),
                "error" | "build_failed" | "destroyed" | "destroying" => {
                    let reason = sandbox.error_reason.as_deref().unwrap_or("no reason is given");
                    return Err(ServiceError::Unclear(format!("it is in the state `{}`: {reason}", sandbox.state)));
                }
                state if began.elapsed() >= limit => {
                    let limit = limit.as_secs_f64();
                    let reason = format!("it did not start within {limit} s (setup_timeout); its state is `{state}`");
                    return Err(ServiceError::Unclear(reason));
                }
                _ => {}
            }
            tokio::time::sleep(pause.min(limit)).await;
            pause = (pause * 2).min(PAUSES.1);
            sandbox = match self.find(&sandbox.id).await {
                Err(ServiceError::Unclear(_)) if began.elapsed() < limit => sandbox,
                found => found?,
            };
        }
    }

    /// Removes a sandbox. It is not an error if the sandbox does not exist.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), ServiceError> {
        match self.json(Method::DELETE, &format!("/sandbox/{name}"), None).await {
            Err(ServiceError::Missing(_)) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Runs a short shell script, and waits for its end.
    pub(crate) async fn execute(&self, toolbox: &str, script: &str, limit: Duration) -> Result<Executed, ServiceError> {
        // The service splits the command by its own rules. Base64 has no characters that these rules treat specially.
        let command = format!("sh -c \"echo '{}' | base64 -d | sh\"", STANDARD.encode(script));
        let body = json!({"command": command, "timeout": limit.as_secs().max(1)});
        let request = self.http.request(Method::POST, format!("{toolbox}/process/execute")).json(&body);
        let answer = self.answer(request.timeout(limit + TIMEOUT)).await?;
        serde_json::from_slice(&answer).map_err(|error| strange(&error))
    }

    /// Starts a shell command in a new session, without waiting for its end.
    pub(crate) async fn start(&self, toolbox: &str, session: &str, command: &str) -> Result<(), ServiceError> {
        let sessions = format!("{toolbox}/process/session");
        let request = self.http.request(Method::POST, &sessions).json(&json!({"sessionId": session}));
        self.answer(request.timeout(TIMEOUT)).await?;
        let body = json!({"command": command, "runAsync": true});
        let request = self.http.request(Method::POST, format!("{sessions}/{session}/exec")).json(&body);
        self.answer(request.timeout(TIMEOUT)).await.map(drop)
    }

    /// Ends a session.
    pub(crate) async fn end(&self, toolbox: &str, session: &str) -> Result<(), ServiceError> {
        let request = self.http.request(Method::DELETE, format!("{toolbox}/process/session/{session}"));
        self.answer(request.timeout(TIMEOUT)).await.map(drop)
    }

    /// Writes a file.
    pub(crate) async fn upload(&self, toolbox: &str, path: &str, content: &[u8]) -> Result<(), ServiceError> {
        let mut body = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(content);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let url = format!("{toolbox}/files/upload?path={}", encoded(path));
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = self.http.request(Method::POST, url).header("Content-Type", kind).body(body);
        self.answer(request.timeout(TRANSFER)).await.map(drop)
    }

    /// Downloads a file to `to` on this machine.
    pub(crate) async fn download(&self, toolbox: &str, path: &str, to: &Path) -> Result<(), ServiceError> {
        let url = format!("{toolbox}/files/download?path={}", encoded(path));
        let request = self.with_key(self.http.request(Method::GET, url)).timeout(TRANSFER);
        let mut response = request.send().await.map_err(|error| self.unanswered(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let local = |error: std::io::Error| ServiceError::Refused(format!("cannot write {}: {error}", to.display()));
        let mut file = tokio::fs::File::create(to).await.map_err(local)?;
        let mut size = 0_u64;
        while let Some(piece) = response.chunk().await.map_err(|error| self.unanswered(&error))? {
            size = size.saturating_add(piece.len() as u64);
            if size > MAX_FILE {
                return Err(ServiceError::Refused(format!("`{path}` is larger than {} GiB", MAX_FILE >> 30)));
            }
            file.write_all(&piece).await.map_err(local)?;
        }
        file.flush().await.map_err(local)
    }

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ServiceError> {
        let mut request = self.http.request(method, format!("{}{path}", self.access.url));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = self.answer(request.timeout(TIMEOUT)).await?;
        if answer.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer).map_err(|error| strange(&error))
    }

    /// Sends a request, and returns the body of the answer.
    async fn answer(&self, request: RequestBuilder) -> Result<Vec<u8>, ServiceError> {
        let response = self.with_key(request).send().await.map_err(|error| self.unanswered(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        self.body(response).await
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request.bearer_auth(&self.access.token);
        match &self.access.organization {
            Some(organization) => request.header("X-Daytona-Organization-ID", organization),
            None => request,
        }
    }

    async fn body(&self, mut response: reqwest::Response) -> Result<Vec<u8>, ServiceError> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.unanswered(&error))? {
            if body.len() + piece.len() > MAX_ANSWER {
                return Err(ServiceError::Refused("the answer is too long".to_owned()));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn unanswered(&self, error: &reqwest::Error) -> ServiceError {
        let what = if error.is_timeout() { "no answer in time" } else { "no answer" };
        ServiceError::Unclear(format!("{what} from {}", self.access.url))
    }

    /// Converts an unsuccessful answer into an error.
    async fn refusal(&self, response: reqwest::Response) -> ServiceError {
        let status = response.status();
        let body = self.body(response).await.unwrap_or_default();
        let message = serde_json::from_slice::<Value>(&body).ok().and_then(|body| {
            let message = body.get("message").or_else(|| body.get("error"))?;
            Some(message.as_str().map_or_else(|| message.to_string(), str::to_owned))
        });
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
        // The service may echo the key.
        let message: String = message.replace(&self.access.token, "***").chars().take(QUOTED).collect();
        classified(status, &message)
    }
}

/// Returns the error for an HTTP status.
fn classified(status: StatusCode, message: &str) -> ServiceError {
    let text = format!("{message} (status {})", status.as_u16());
    let is_about_quota = || OF_QUOTA.iter().any(|word| message.to_lowercase().contains(word));
    match status.as_u16() {
        401 => ServiceError::Refused(format!("the service rejected the API key: {text}")),
        404 => ServiceError::Missing(text),
        409 => ServiceError::Exists(text),
        402 | 429 => ServiceError::Quota(text),
        400 | 403 if is_about_quota() => ServiceError::Quota(text),
        400..=499 => ServiceError::Refused(text),
        _ => ServiceError::Unclear(text),
    }
}

fn described(answer: Value) -> Result<RemoteSandbox, ServiceError> {
    serde_json::from_value(answer).map_err(|error| strange(&error))
}

fn strange(error: &serde_json::Error) -> ServiceError {
    ServiceError::Unclear(format!("cannot parse the service's response: {error}"))
}

/// Encodes text for the query part of a URL.
fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_and_the_message_say_whether_another_attempt_helps() {
        let of = |status: u16, message: &str| classified(StatusCode::from_u16(status).unwrap(), message);
        assert!(matches!(of(403, "Total CPU quota exceeded"), ServiceError::Quota(_)));
        assert!(matches!(of(429, "slow down"), ServiceError::Quota(_)));
        assert!(matches!(of(403, "forbidden"), ServiceError::Refused(_)));
        assert!(of(401, "bad key").is_final() && !of(502, "bad gateway").is_final());
        assert!(matches!((of(404, ""), of(409, "")), (ServiceError::Missing(_), ServiceError::Exists(_))));
    }

    #[test]
    fn nothing_shows_the_key() {
        let access = Access { url: "http://a".into(), token: "dummy-key".into(), organization: None, proxy: None };
        assert!(!format!("{access:?}{:?}", Service::new(access.clone()).unwrap()).contains("dummy-key"));
    }

    #[test]
    fn words_are_quoted_for_an_address() {
        assert_eq!(encoded("a b&c=/"), "a%20b%26c%3D%2F");
    }
}
