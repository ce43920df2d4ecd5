//! What the server of `view` answers: it accepts only GET, and only from clients that know the token.
//!
//! Any program on this machine can send requests to a port on loopback. So each request must contain the token in its
//! path.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use store::Store;

use super::pages::{PageError, Pages};
use crate::http_server::{Answer, HttpServer, plain};

/// The pages of one run, for clients that know the token.
pub struct ViewServer {
    server: HttpServer,
    token: String,
    pages: Mutex<Pages>,
    store: Mutex<Box<dyn Store>>,
}

impl ViewServer {
    /// Creates a server with a random token.
    pub fn new(server: HttpServer, pages: Pages, store: Box<dyn Store>) -> Self {
        let token = uuid::Uuid::new_v4().simple().to_string();
        Self { server, token, pages: Mutex::new(pages), store: Mutex::new(store) }
    }

    /// Returns the address of the first page.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.server.address(), self.token)
    }

    /// Answers requests until the future is dropped.
    pub async fn listen(self) {
        let Self { server, token, pages, store } = self;
        let service = Arc::new(Service { token, pages, store });
        server.listen(move |request| Arc::clone(&service).answer(request)).await;
    }
}

struct Service {
    token: String,
    pages: Mutex<Pages>,
    store: Mutex<Box<dyn Store>>,
}

impl Service {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        let (head, _) = request.into_parts();
        let path = head.uri.path().trim_start_matches('/');
        let Some((_, path)) = path.split_once('/').filter(|(token, _)| is_same(token, &self.token)) else {
            return plain(StatusCode::FORBIDDEN, "Use the whole address that `trialrun view` printed.\n");
        };
        if head.method != Method::GET {
            let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET is allowed.\n");
            refused.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            return refused;
        }
        let known = head.headers.get(header::IF_NONE_MATCH).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let path = path.to_owned();
        // Reading the record blocks.
        let answered = tokio::task::spawn_blocking(move || self.read(&path, known.as_deref())).await;
        match answered.map_err(PageError::from) {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) | Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
        }
    }

    /// Answers a request with a valid token. `known` is the version that the client has.
    fn read(&self, path: &str, known: Option<&str>) -> Result<Answer, PageError> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match path {
            "" => Some(pages.document(&**store)?),
            "index" => Some(pages.index(&**store, known)?),
            _ => {
                let id = path.strip_prefix("trial/").map(|id| percent_decode_str(id).decode_utf8_lossy());
                id.map(|id| pages.transcript(&**store, &id)).transpose()?.flatten()
            }
        };
        Ok(answer.unwrap_or_else(|| plain(StatusCode::NOT_FOUND, "There is no such page.\n")))
    }
}

/// Compares two texts so that the time taken does not reveal where they differ: digests cannot be guessed byte by
/// byte.
pub fn is_same(given: &str, expected: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(expected)
}
