//! The listening socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cassette::Tape;
use http_body_util::Either;
use hyper::Request;
use hyper::header::{HOST, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use llm::Model;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::Admission;
use crate::admission::AdmittedTrials;
use crate::connection::{answer, foreign};
use crate::forward::{ForwardedAdmission, ForwardedTrials, Upstream, forward};

/// Maximum size of a request body, in bytes; the same limit as the vendors'.
const LARGEST_BODY: usize = 32 * 1024 * 1024;

/// Timeout for the head of a request, so that a client that has gone away does not keep a connection open.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// A loopback endpoint for a run. Dropping it stops it and closes every connection.
pub struct Gateway {
    address: SocketAddr,
    trials: Arc<AdmittedTrials>,
    forwarded: Arc<ForwardedTrials>,
    listening: JoinHandle<()>,
}

impl Gateway {
    /// Starts listening on a free port of 127.0.0.1, in the current Tokio runtime.
    pub async fn start() -> io::Result<Self> {
        Self::with(LARGEST_BODY, HEADER_TIMEOUT).await
    }

    async fn with(largest_body: usize, header_timeout: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let trials = Arc::new(AdmittedTrials::default());
        let forwarded = Arc::new(ForwardedTrials::default());
        let admitted = (Arc::clone(&trials), Arc::clone(&forwarded));
        let listening = tokio::spawn(listen(listener, admitted, largest_body, header_timeout));
        Ok(Self { address, trials, forwarded, listening })
    }

    /// Returns the address to give to agents as their vendor's: `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Admits requests that carry `token` and answers them from `model`. If a token is admitted twice, the later
    /// admission applies.
    pub fn admit<M: Model + 'static>(&self, token: impl Into<String>, model: Arc<M>) -> Admission {
        self.trials.admit(token.into(), model)
    }

    /// Accepts requests from a trial, and forwards them to the providers at `addresses`. The first path segment is a
    /// token, which starts with `token`, and the rest is appended to the address. With a `tape`, requests are answered
    /// from a cassette, or their answers are recorded.
    ///
    /// # Errors
    /// Returns the reason why requests cannot be forwarded there.
    pub fn forward(
        &self,
        token: &str,
        upstream: &Arc<Upstream>,
        addresses: &[&str],
        tape: Option<&Arc<Tape>>,
    ) -> Result<ForwardedAdmission, String> {
        self.forwarded.admit(&self.base_url(), token, upstream, addresses, tape)
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Accepts connections until the task is aborted, which also closes all connections.
async fn listen(
    listener: TcpListener,
    (trials, forwarded): (Arc<AdmittedTrials>, Arc<ForwardedTrials>),
    largest_body: usize,
    header_timeout: Duration,
) {
    serve_connections(&listener, usize::MAX, |stream| {
        let (trials, forwarded) = (Arc::clone(&trials), Arc::clone(&forwarded));
        async move {
            let service = service_fn(|request| async {
                if !is_of_this_machine(&request) {
                    return Ok(foreign().map(Either::Left));
                }
                match forwarded.find(request.uri()) {
                    Some((trial, rest)) => Ok(forward(request, trial, rest, largest_body).await.map(Either::Right)),
                    None => answer(request, &trials, largest_body).await.map(|answer| answer.map(Either::Left)),
                }
            });
            // A client that disconnects, or an intended cut, ends the connection with an error that needs no handling.
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(header_timeout);
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        }
    })
    .await;
}

/// Returns `true` unless a web page may have sent the request, or the client looked for another host. Agents' programs
/// use the address that they were given, and are not browsers.
fn is_of_this_machine<B>(request: &Request<B>) -> bool {
    let host = request.headers().get(HOST).map(|host| host.to_str().unwrap_or_default());
    let host = host.or_else(|| request.uri().authority().map(hyper::http::uri::Authority::as_str));
    let is_loopback = |host: &str| {
        let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
        matches!(name, "127.0.0.1" | "[::1]") || name.eq_ignore_ascii_case("localhost")
    };
    host.is_some_and(is_loopback) && !request.headers().contains_key(ORIGIN)
}

/// Accepts connections and serves up to `most` of them simultaneously, until the future is dropped, which also closes
/// all connections.
pub(crate) async fn serve_connections<F>(listener: &TcpListener, most: usize, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept(), if connections.len() < most => match accepted {
                Ok((stream, _)) => stream,
                // There are probably no file descriptors left, so other connections must end first.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        // Without it small events are delayed (Nagle's algorithm). It cannot fail on an open socket.
        let _ = stream.set_nodelay(true);
        connections.spawn(serve(stream));
    }
}

#[cfg(test)]
mod tests {
    use llm::{BoxFuture, ProviderError, Reply, Request};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    struct FailingModel;

    impl Model for FailingModel {
        fn respond<'a>(&'a self, _request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
            Box::pin(std::future::ready(Err(ProviderError::Cut)))
        }
    }

    #[tokio::test]
    async fn a_body_beyond_the_limit_is_rejected_after_it_is_sent() {
        let gateway = Gateway::with(1000, HEADER_TIMEOUT).await.unwrap();
        let admission = gateway.admit("t", Arc::new(FailingModel));
        for (size, status) in [(1000, "400"), (1001, "413"), (3_000_000, "413")] {
            let mut client = TcpStream::connect(gateway.address).await.unwrap();
            let head = format!(
                "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: t\r\nconnection: close\r\n\
                 content-length: {size}\r\n\r\n"
            );
            client.write_all(head.as_bytes()).await.unwrap();
            client.write_all(&vec![b' '; size]).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{size}: {answer}");
        }
        assert_eq!(admission.seen().len(), 1);
    }

    #[tokio::test]
    async fn the_body_of_a_rejected_request_is_mostly_discarded() {
        let gateway = Gateway::start().await.unwrap();
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        let size = 30 * 1024 * 1024;
        let head =
            format!("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: t\r\ncontent-length: {size}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        // Only connections up to the limit, and those that the system buffers, are ever accepted.
        let mut written = 0;
        let chunk = vec![b' '; 64 * 1024];
        while written < size && client.write_all(&chunk).await.is_ok() {
            written += chunk.len();
        }
        assert!(written < size, "{written}");
    }

    #[tokio::test]
    async fn an_unknown_token_is_rejected_before_the_body_arrives() {
        let gateway = Gateway::start().await.unwrap();
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 31000000\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = client.read_to_string(&mut answer);
        tokio::time::timeout(Duration::from_secs(5), read).await.expect("an answer at once").unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }

    #[test]
    fn a_request_of_a_web_page_or_for_another_host_is_foreign() {
        let is_own = |headers: &[(&str, &str)]| {
            let request = hyper::Request::post("/v1/messages");
            let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            is_of_this_machine(&request.body(()).unwrap())
        };
        for host in ["127.0.0.1:4321", "127.0.0.1", "LOCALHOST:1", "[::1]:80", "[::1]"] {
            assert!(is_own(&[("host", host)]), "{host}");
            assert!(!is_own(&[("host", host), ("origin", "http://evil.example")]), "{host}");
        }
        for host in ["evil.example", "evil.example:4321", "127.0.0.1.evil.example", "localhost:x", ""] {
            assert!(!is_own(&[("host", host)]), "{host}");
        }
        assert!(!is_own(&[]));
    }

    #[tokio::test]
    async fn an_idle_connection_is_closed() {
        let gateway = Gateway::with(1000, Duration::from_millis(20)).await.unwrap();
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        client.write_all(b"POST /v1/messages HTTP/1.1\r\nhost:").await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
    }
}
