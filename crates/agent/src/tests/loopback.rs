//! A loopback server for tests: a function returns the response to each request. The server stops when it is dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    /// Path with its query.
    pub(crate) path: String,
    /// Headers, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Body; `null` if there is none or it is not JSON.
    pub(crate) body: Value,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Response to a request.
#[derive(Debug, Clone)]
pub(crate) enum CannedResponse {
    /// A status and a body.
    Json(u16, Value),
    /// A status and a body that is not JSON.
    Text(u16, String),
    /// A body that is declared as JSON but is not valid JSON.
    Broken,
    /// No response, ever.
    Silence,
    /// The connection is closed.
    Close,
}

type Answer = dyn Fn(ReceivedRequest) -> Pin<Box<dyn Future<Output = CannedResponse> + Send>> + Send + Sync;

/// A loopback server.
pub(crate) struct Loopback {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    task: JoinHandle<()>,
}

impl Loopback {
    /// Starts a server that responds with the result of `answer`.
    pub(crate) async fn serve(answer: impl Fn(&ReceivedRequest) -> CannedResponse + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let kept = Arc::clone(&asked);
        let answer: Arc<Answer> = Arc::new(move |request: ReceivedRequest| {
            let answered = answer(&request);
            kept.lock().unwrap().push(request);
            Box::pin(std::future::ready(answered))
        });
        let task = tokio::spawn(async move {
            // The connections end together with the task that owns them.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(talk(stream, Arc::clone(&answer)));
            }
        });
        Self { url, asked, task }
    }

    /// Returns the requests received so far.
    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns an address at which no server listens.
pub(crate) async fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

async fn talk(stream: TcpStream, answer: Arc<Answer>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let (status, kind, body) = match answer(request).await {
            CannedResponse::Json(status, body) => (status, "application/json", body.to_string()),
            CannedResponse::Text(status, body) => (status, "text/plain", body),
            CannedResponse::Broken => (200, "application/json", "{\"text\": \"".to_owned()),
            CannedResponse::Silence => std::future::pending().await,
            CannedResponse::Close => return,
        };
        let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let line = async |stream: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        let count = stream.read_line(&mut line).await.ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    };
    let first = line(stream).await?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let line = line(stream).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(ReceivedRequest { method, path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}
