//! A loopback server in place of a model provider, whose answers a test writes byte by byte.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::ReceivedRequest;
use crate::loopback::read;

/// A loopback server that answers each request as its test specifies, each on its own thread. It stops on drop.
pub struct ScriptedProvider {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    over: Arc<AtomicBool>,
}

/// Connection on which an answer is written. It closes on drop.
pub struct Answer {
    stream: TcpStream,
}

impl Answer {
    /// Writes the head of an answer whose body ends with the connection. `headers` is empty, or ends with a line break.
    pub fn head(&mut self, status: u16, headers: &str) {
        self.write(&format!("HTTP/1.1 {status} Fine\r\n{headers}connection: close\r\n\r\n"));
    }

    /// Writes bytes immediately. It is not an error if the client has disconnected.
    pub fn write(&mut self, text: &str) {
        let _ = self.stream.write_all(text.as_bytes()).and_then(|()| self.stream.flush());
    }

    /// Writes a whole answer with a JSON body.
    pub fn json(&mut self, status: u16, headers: &str, body: &str) {
        let length = body.len();
        self.head(status, &format!("content-type: application/json\r\ncontent-length: {length}\r\n{headers}"));
        self.write(body);
    }

    /// Writes a whole answer as an event stream, whose end shows that it is complete.
    pub fn events(&mut self, events: &str) {
        self.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n");
        self.chunk(events);
        self.write("0\r\n\r\n");
    }

    /// Writes one chunk of a body with `transfer-encoding: chunked`.
    pub fn chunk(&mut self, text: &str) {
        self.write(&format!("{:x}\r\n{text}\r\n", text.len()));
    }
}

impl ScriptedProvider {
    /// Starts a server that answers with `answer`.
    pub fn start(answer: impl Fn(&ReceivedRequest, &mut Answer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, over) = (Arc::<Mutex<Vec<ReceivedRequest>>>::default(), Arc::<AtomicBool>::default());
        let (received, ended, answer) = (Arc::clone(&asked), Arc::clone(&over), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (received, answer) = (Arc::clone(&received), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    let Some(request) = read(&mut reader) else { return };
                    received.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
                    answer(&request, &mut Answer { stream: reader.into_inner() });
                });
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

impl Drop for ScriptedProvider {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        drop(TcpStream::connect(self.address));
    }
}
