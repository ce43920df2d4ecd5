//! A bot on loopback. It stops together with the runtime of its test.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A request that a bot received.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
    /// Number of the request, starting at 0.
    pub(super) number: usize,
}

impl Seen {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A body that is sent in pieces.
pub(super) struct Pieces(VecDeque<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

/// Creates a response with these pieces as its body.
pub(super) fn reply(status: u16, headers: &[(&str, &str)], pieces: &[&[u8]]) -> Response<Pieces> {
    let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
    let response =
        headers.iter().fold(Response::builder().status(status), |it, (name, value)| it.header(*name, *value));
    response.body(Pieces(pieces)).unwrap()
}

/// Creates a response with a JSON document.
pub(super) fn json_reply(body: &Value) -> Response<Pieces> {
    reply(200, &[("content-type", "application/json")], &[body.to_string().as_bytes()])
}

/// A bot.
pub(super) struct Bot {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

impl Bot {
    /// Starts a bot that answers each request with the result of `answer`.
    pub(super) async fn open(answer: impl Fn(&Seen) -> Response<Pieces> + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Self::open_later(move |seen| std::future::ready(answer(&seen))).await
    }

    /// Like `open`, for an asynchronous `answer`.
    pub(super) async fn open_later<F>(answer: impl Fn(Seen) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response<Pieces>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (kept, count, answer) = (Arc::clone(&seen), Arc::clone(&connections), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                    async move {
                        let seen = take_in(request, &kept).await;
                        Ok::<_, Infallible>(answer(seen).await)
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { address, seen, connections }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn take_in(request: Request<Incoming>, kept: &Mutex<Vec<Seen>>) -> Seen {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut kept = kept.lock().unwrap();
    let seen = Seen {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
        number: kept.len(),
    };
    kept.push(seen.clone());
    seen
}

/// Starts a server that reads a request, sends the next of `answers` unchanged, and closes the connection. After the
/// last answer, it stops listening. Returns its address.
pub(super) async fn raw(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/chat", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !is_whole(&request) && stream.read_buf(&mut request).await.unwrap() > 0 {}
            stream.write_all(&answer).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    url
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |length| length.parse().unwrap());
    body.len() >= length
}
