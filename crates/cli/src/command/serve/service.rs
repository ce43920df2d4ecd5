//! What all requests share, and the parts of a request that handlers need.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::Request;
use hyper::header::{CONTENT_TYPE, IF_NONE_MATCH};
use hyper::{HeaderMap, StatusCode};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::field::Field;
use super::problem::Problem;
use super::record::Record;
use super::submission::Submitter;
use super::tokens::{Role, Tokens};
use crate::command::view::pages::Pages;
use crate::http_server::Answer;

/// Time after which a client gets an answer, whatever the record does.
const DEADLINE: Duration = Duration::from_secs(30);
/// Maximum number of requests that read the record at the same time; others wait.
const READERS: usize = 16;
/// Maximum size of a request, in bytes.
const MAX_BODY: usize = 1 << 20;
/// Number of runs whose pages are kept in memory.
const RUNS: usize = 8;

/// Challenge to a browser, which then asks its user.
const BASIC: &str = "Basic realm=\"trialrun\", charset=\"UTF-8\"";
/// Challenge to a program.
const BEARER: &str = "Bearer realm=\"trialrun\"";

/// What all requests share.
pub struct Service {
    pub record: Record,
    pub tokens: Tokens,
    /// True if nobody needs a token to read.
    pub is_public: bool,
    /// Starts runs; absent if workers cannot run them.
    pub submitter: Option<Submitter>,
    /// Maximum drop that does not count as a regression.
    pub threshold: f64,
    /// Folder of the current directory in its repository.
    pub folder: PathBuf,
    readers: Arc<Semaphore>,
    /// Pages of the runs that were used last, by their full ids.
    runs: Mutex<Vec<(String, Arc<Mutex<Pages>>)>>,
}

impl Service {
    pub fn new(record: Record, tokens: Tokens, is_public: bool) -> Self {
        Self {
            record,
            tokens,
            is_public,
            submitter: None,
            threshold: report::THRESHOLD,
            folder: PathBuf::new(),
            readers: Arc::new(Semaphore::new(READERS)),
            runs: Mutex::default(),
        }
    }

    /// Checks that the holder of the request's token may do what needs `wanted`. Changes need a token that no browser
    /// sends on its own, so that no page of another site can cause one.
    pub fn authorize(&self, headers: &HeaderMap, wanted: Role) -> Result<(), Problem> {
        let challenge = if wanted == Role::Read { BASIC } else { BEARER };
        let given = self.tokens.given(headers);
        let given = given.map_err(|()| Problem::unauthorized("This token is not known.", challenge))?;
        match (wanted, given) {
            (Role::Read, None) if self.is_public => Ok(()),
            (Role::Read, None) => {
                let message =
                    "Reading needs a token. In a browser, write it as the password; the name does not matter.";
                Err(Problem::unauthorized(message, challenge))
            }
            (Role::Read, Some(_)) => Ok(()),
            (Role::Run, Some(given)) if given.is_bearer && given.role == Role::Run => Ok(()),
            (Role::Run, Some(given)) if given.is_bearer => {
                Err(Problem::new(StatusCode::FORBIDDEN, "This token may only read."))
            }
            (Role::Run, _) => {
                let message = "This needs a token with the role `run`, in the header `Authorization: Bearer TOKEN`.";
                Err(Problem::unauthorized(message, challenge))
            }
        }
    }

    /// Returns the pages of a run, given its full id.
    pub fn pages(&self, run: &str) -> Arc<Mutex<Pages>> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let known = runs.iter().position(|(id, _)| id == run).map(|at| runs.remove(at));
        let (id, pages) = known
            .unwrap_or_else(|| (run.to_owned(), Arc::new(Mutex::new(Pages::new(run, self.folder.clone(), Some("/"))))));
        runs.push((id, Arc::clone(&pages)));
        if runs.len() > RUNS {
            runs.remove(0);
        }
        pages
    }

    /// Does `work`, which may block, on a thread of its own, and returns an error if it takes too long.
    pub async fn blocking(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> Result<Answer, Problem> + Send + 'static,
    ) -> Result<Answer, Problem> {
        let late = || {
            let seconds = DEADLINE.as_secs();
            Problem::unavailable(format!("The record {} did not answer within {seconds} s.", self.record.place()))
        };
        let readers = Arc::clone(&self.readers);
        let service = Arc::clone(&self);
        let answered = timeout(DEADLINE, async move {
            let reader = readers.acquire_owned().await;
            // Reading goes on after a timeout, so the permit ends with it.
            tokio::task::spawn_blocking(move || {
                let _reader = reader;
                work(&service)
            })
            .await
        });
        match answered.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => {
                Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("a bug in trialrun: {panic}")))
            }
            Err(_) => Err(late()),
        }
    }
}

/// A request to a handler.
pub struct Call {
    /// Parts of the path, by their names, decoded.
    path: Vec<(String, String)>,
    /// Parameters, decoded.
    query: Vec<(String, String)>,
    /// JSON of the request.
    pub body: Map<String, Value>,
    /// Version of the answer that the client has.
    pub known: Option<String>,
}

impl Call {
    /// Reads a request.
    pub async fn read(path: Vec<(String, String)>, request: Request) -> Result<Self, Problem> {
        let (head, body) = request.into_parts();
        let query = head.uri.query().unwrap_or_default();
        let query = reqwest::Url::parse(&format!("http://localhost/?{query}"));
        let query = query.map_err(|_| Problem::bad_request("The address cannot be read."))?;
        let query = query.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        let bytes = to_bytes(body, MAX_BODY).await.map_err(|_| {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("A request has at most {MAX_BODY} bytes."))
        })?;
        let body = if bytes.is_empty() { Map::new() } else { json_object(&head.headers, &bytes)? };
        let known = head.headers.get(IF_NONE_MATCH).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        Ok(Self { path, query, body, known })
    }

    /// Checks that each parameter and each field of the body is one of these, and that no parameter is given twice.
    pub fn check(&self, parameters: &[Field], fields: &[Field]) -> Result<(), Problem> {
        let unknown = |name: &str, known: &[Field], what: &str| {
            let near = model::nearest(name, known.iter().map(|field| field.name));
            let near = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
            Err(Problem::bad_request(format!("`{name}` is not a {what}{near}")))
        };
        let is_in = |known: &[Field], name: &str| known.iter().any(|field| field.name == name);
        if let Some(name) = self.body.keys().find(|name| !is_in(fields, name)) {
            return unknown(name, fields, "field of this request");
        }
        for (index, (name, _)) in self.query.iter().enumerate() {
            if !is_in(parameters, name) {
                return unknown(name, parameters, "parameter of this address");
            }
            if self.query[..index].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::bad_request(format!("`{name}` is given twice")));
            }
        }
        Ok(())
    }

    /// Returns a part of the path.
    pub fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns a parameter that is given and not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns a whole number, at most `most`.
    pub fn count(&self, name: &str, default: usize, most: usize) -> Result<usize, Problem> {
        let Some(text) = self.text(name) else { return Ok(default) };
        match text.parse::<usize>() {
            Ok(count) if count <= most => Ok(count),
            _ => Err(Problem::bad_request(format!("`{name}` must be a whole number of at most {most}"))),
        }
    }

    /// Returns a number of the body.
    pub fn number(&self, field: &Field) -> Result<Option<f64>, Problem> {
        self.value(field, "a number above 0", |value| value.as_f64().filter(|number| *number > 0.0))
    }

    /// Returns a text of the body.
    pub fn string(&self, field: &Field) -> Result<Option<&str>, Problem> {
        self.value(field, field.kind.noun(), Value::as_str)
    }

    /// Returns the value of a field of the body that `read` accepts.
    fn value<'c, T>(
        &'c self,
        field: &Field,
        wanted: &str,
        read: impl FnOnce(&'c Value) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.body.get(field.name).filter(|value| !value.is_null()) else { return Ok(None) };
        let wrong = || Problem::bad_request(format!("`{}` must be {wanted}", field.name));
        read(value).map(Some).ok_or_else(wrong)
    }
}

/// Reads the JSON of a request.
fn json_object(headers: &HeaderMap, bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        let message = "The body of a request is JSON, with the header `Content-Type: application/json`.";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::bad_request(format!("The body is not a JSON object: {error}")))
}
