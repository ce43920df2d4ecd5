//! A server on loopback that always gives the same answer and keeps the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Request line, such as `GET /models`.
    pub line: String,
    /// All headers, one per line.
    pub headers: String,
    /// The body.
    pub body: String,
}

/// A server on loopback. It stops on drop.
pub struct Loopback {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    over: Arc<AtomicBool>,
}

impl Loopback {
    /// Starts a server that answers every request with `status` and the JSON text `body`.
    pub fn answering(status: u16, body: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, over) = (Arc::<Mutex<Vec<ReceivedRequest>>>::default(), Arc::<AtomicBool>::default());
        let (received, ended, body) = (Arc::clone(&asked), Arc::clone(&over), body.into());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let mut reader = BufReader::new(stream);
                if let Some(request) = read(&mut reader) {
                    // Before the answer, after which the client may ask for the requests.
                    received.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                    answer(reader.get_mut(), status, &body);
                }
            }
        });
        Self { address, asked, over }
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        drop(TcpStream::connect(self.address));
    }
}

fn answer(stream: &mut TcpStream, status: u16, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} Fine\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // A request counts even if the client has disconnected.
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

/// Reads a request, up to the end of its body.
pub(crate) fn read(reader: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).ok()? <= 2 {
            break;
        }
        let (name, value) = header.trim_end().split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
        headers.push_str(&header);
    }
    let mut sent = vec![0; length];
    reader.read_exact(&mut sent).ok()?;
    Some(ReceivedRequest {
        line: line.rsplit_once(' ').map_or_else(String::new, |(asked, _)| asked.to_owned()),
        headers,
        body: String::from_utf8_lossy(&sent).into_owned(),
    })
}
