//! Request and response of a single document, without a model.

use std::sync::atomic::AtomicBool;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, Url};
use serde_json::Value;
use tokio::time::timeout;

use super::{Arriving, Attempt, Exchange};
use crate::{Failure, Policy, Request};

impl Exchange {
    /// Sends `body` to `path` below the vendor's address, or fetches `path` if there is no body. `path` may have a
    /// query.
    pub(in crate::remote) async fn call(
        &self,
        path: &str,
        body: Option<&Value>,
        policy: &Policy,
    ) -> Result<Value, Failure> {
        let url = self.below(path);
        let method = if body.is_some() { "POST" } else { "GET" };
        let sent = format!("{method} {}{}", url.origin().ascii_serialization(), url.path());
        let attempt =
            Attempt { exchange: self, request: &Request::default(), policy, sent, has_begun: AtomicBool::new(false) };
        let total = policy.timeouts.total;
        let done = match timeout(total, attempt.call(url, body)).await {
            Ok(done) => done,
            Err(_) => Err(attempt.unfinished(total)),
        };
        done.map_err(|failure| self.scrubbed(failure))
    }

    /// Returns an address below the vendor's. `path` may have a query.
    pub(super) fn below(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut url = self.url.clone();
        if !path.is_empty() {
            url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        }
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        url
    }
}

impl Attempt<'_> {
    async fn call(&self, url: Url, body: Option<&Value>) -> Result<Value, Failure> {
        let Exchange { client, headers, .. } = self.exchange;
        let request = match body {
            Some(body) => client.post(url).header(CONTENT_TYPE, "application/json").body(body.to_string()),
            None => client.get(url),
        };
        let sending = request.headers(headers.clone()).header(ACCEPT, "application/json").send();
        let limit = self.policy.timeouts.first_byte;
        let response = timeout(limit + self.policy.timeouts.connect, sending).await;
        let response: Response = response.map_err(|_| self.silent(limit))?.map_err(|error| self.broken(error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let mut arriving = Arriving { response, seen: 0, limit: Some(limit), _pending_request: None };
        self.whole(&mut arriving).await
    }
}
