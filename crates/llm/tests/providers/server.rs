//! A server that returns prepared responses and records the requests. It stops when it is dropped.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// How a response ends after its last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    Cut,
    Hang,
}

/// Prepared response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub pieces: Vec<Bytes>,
    pub end: End,
    /// True if not even the headers are sent.
    pub silent: bool,
}

impl Answer {
    pub fn of(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", kind.to_owned())];
        Self { status, headers, pieces: vec![body.into()], end: End::Whole, silent: false }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::of(status, "application/json", body.to_string())
    }

    pub fn events(text: impl Into<Bytes>) -> Self {
        Self::of(200, "text/event-stream; charset=utf-8", text)
    }

    pub fn silence() -> Self {
        Self { silent: true, ..Self::of(200, "", "") }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Splits the response into pieces of `size` bytes.
    pub fn in_pieces(mut self, size: usize) -> Self {
        let whole: Vec<u8> = self.pieces.concat();
        self.pieces = whole.chunks(size).map(Bytes::copy_from_slice).collect();
        self
    }
}

/// Received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub uri: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Desk {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<ReceivedRequest>>,
    connections: AtomicUsize,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

pub struct Server {
    address: SocketAddr,
    desk: Arc<Desk>,
    listening: JoinHandle<()>,
}

impl Server {
    /// Returns `answers` in order and repeats the last one forever.
    pub async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let desk = Arc::new(Desk::default());
        desk.answers.lock().unwrap().extend(answers);
        let listening = tokio::spawn(listen(listener, Arc::clone(&desk)));
        Self { address, desk, listening }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.desk.asked.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.desk.connections.load(Ordering::SeqCst)
    }

    /// Returns the maximum number of concurrent requests.
    pub fn most_at_once(&self) -> usize {
        self.desk.most.load(Ordering::SeqCst)
    }

    /// Returns the current number of concurrent requests.
    pub fn under_way(&self) -> usize {
        self.desk.under_way.load(Ordering::SeqCst)
    }

    pub fn then(&self, answer: Answer) {
        let mut answers = self.desk.answers.lock().unwrap();
        answers.clear();
        answers.push_back(answer);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, desk: Arc<Desk>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        desk.connections.fetch_add(1, Ordering::SeqCst);
        let desk = Arc::clone(&desk);
        connections.spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&desk)));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Counts a request until its response is dropped.
struct Counted(Arc<Desk>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn answer(request: Request<Incoming>, desk: Arc<Desk>) -> Result<Response<Pieces>, Infallible> {
    let now = desk.under_way.fetch_add(1, Ordering::SeqCst) + 1;
    let counted = Counted(Arc::clone(&desk));
    desk.most.fetch_max(now, Ordering::SeqCst);
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let headers = parts.headers.iter();
    desk.asked.lock().unwrap().push(ReceivedRequest {
        uri: parts.uri.to_string(),
        headers: headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("?").to_owned())).collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    let answer = {
        let mut answers = desk.answers.lock().unwrap();
        if answers.len() > 1 { answers.pop_front().unwrap() } else { answers.front().unwrap().clone() }
    };
    // Other requests may arrive before this one is answered.
    tokio::task::yield_now().await;
    if answer.silent {
        std::future::pending::<()>().await;
    }
    let pieces = Pieces { pieces: answer.pieces.into(), end: answer.end, flushed: false, _counted: counted };
    let mut response = Response::new(pieces);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap();
    for (name, value) in answer.headers {
        response.headers_mut().append(HeaderName::from_static(name), HeaderValue::try_from(value).unwrap());
    }
    Ok(response)
}

struct Pieces {
    pieces: VecDeque<Bytes>,
    end: End,
    flushed: bool,
    _counted: Counted,
}

#[derive(Debug)]
pub struct CutOnPurpose;

impl std::fmt::Display for CutOnPurpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut on purpose")
    }
}

impl std::error::Error for CutOnPurpose {}

impl Body for Pieces {
    type Data = Bytes;
    type Error = CutOnPurpose;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOnPurpose>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.end {
            End::Whole => Poll::Ready(None),
            End::Hang => Poll::Pending,
            // Unwritten data is lost on an error; it is written when the body returns `Pending`.
            End::Cut if !self.flushed => {
                self.flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            End::Cut => Poll::Ready(Some(Err(CutOnPurpose))),
        }
    }
}

/// Encodes `bytes` as gzip without compression.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = bytes.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap();
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(crc32(bytes).to_le_bytes());
    out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0_u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}
