//! A shop's support bot on loopback, for tests: it remembers conversations, calls tools, answers in several formats,
//! and produces faults on request. It stops on drop.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(dead_code, reason = "each test uses what it needs of it")]

mod answer;
mod dialect;
mod judge;
mod lamps;
mod writer;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

pub use self::writer::Proposals;

/// Stack size for a connection's thread, in bytes: there may be a thousand of them.
const STACK: usize = 256 * 1024;

/// The bot; it runs until it is dropped.
pub struct Shop {
    address: SocketAddr,
    counter: Arc<Counter>,
}

/// A request that the bot received.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Includes the query after the `?`.
    pub path: String,
    /// Header names are in lower case.
    pub headers: HashMap<String, String>,
    pub body: Value,
}

/// State that all connections share.
#[derive(Default)]
struct Counter {
    closed: AtomicBool,
    /// Messages of each conversation.
    output: Mutex<HashMap<String, Vec<String>>>,
    seen: Mutex<Vec<Seen>>,
    /// Proposals of `/writer`, and its delay before each answer.
    proposals: Mutex<(Proposals, Duration)>,
    /// Number of requests to `/writer` in progress, and the highest one so far.
    writing: Mutex<(usize, usize)>,
}

impl Shop {
    /// Starts the bot on a free port. `/api/chat` answers like a typical bot, `/DIALECT` in that format, `/judge/…` as
    /// a judge, and `/lamps` and `/flawed-lamps` as the bot of another shop. `?delay=MS` delays the answer, and
    /// `?fault=NAME` responds with that fault.
    pub fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counter = Arc::new(Counter::default());
        let served = Arc::clone(&counter);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if served.closed.load(Ordering::SeqCst) {
                    return;
                }
                let counter = Arc::clone(&served);
                let connection = move || drop(serve(&stream, &counter));
                std::thread::Builder::new().stack_size(STACK).spawn(connection).unwrap();
            }
        });
        Self { address, counter }
    }

    /// Returns `http://127.0.0.1:PORT` followed by `path`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the port on which it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Sets what `/writer/…` proposes, and how long each answer takes.
    pub fn proposes(&self, proposals: Proposals, delay: Duration) {
        *self.counter.proposals.lock().unwrap() = (proposals, delay);
    }

    /// Returns the highest number of requests to `/writer` that were in progress at the same time.
    pub fn most_written_at_once(&self) -> usize {
        self.counter.writing.lock().unwrap().1
    }

    /// Returns all requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.counter.seen.lock().unwrap().clone()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.counter.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that is waiting for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the requests of one connection, until the other side or a fault ends it.
fn serve(stream: &TcpStream, counter: &Counter) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader)? {
        counter.seen.lock().unwrap().push(request.clone());
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let query: HashMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        if let Some(delay) = query.get("delay").and_then(|delay| delay.parse().ok()) {
            std::thread::sleep(Duration::from_millis(delay));
        }
        let pieces = match query.get("fault") {
            Some(fault) => dialect::fault(fault),
            None if path.starts_with("/judge") => dialect::whole(&judge::judge(&request.body)),
            None if path.starts_with("/writer") => {
                let (proposals, delay) = counter.proposals.lock().unwrap().clone();
                {
                    let (now, most) = &mut *counter.writing.lock().unwrap();
                    *now += 1;
                    *most = (*most).max(*now);
                }
                std::thread::sleep(delay);
                counter.writing.lock().unwrap().0 -= 1;
                dialect::whole(&writer::write(&request.body, &proposals))
            }
            None if path.ends_with("lamps") => {
                let is_flawed = path.starts_with("/flawed");
                let answer = lamps::answer(&request.body, &mut counter.output.lock().unwrap(), is_flawed);
                dialect::speak("api/chat", &answer)
            }
            None => {
                let answer = answer::answer(&request.body, &mut counter.output.lock().unwrap());
                dialect::speak(path.trim_start_matches('/'), &answer)
            }
        };
        for piece in &pieces {
            (&*stream).write_all(piece)?;
        }
        if query.contains_key("fault") {
            break;
        }
    }
    Ok(())
}

/// Reads the next request; `None` if there is none.
fn read(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<Seen>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Seen { path, headers, body: serde_json::from_slice(&body).unwrap_or_default() }))
}
