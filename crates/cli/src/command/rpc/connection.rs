//! The connection to the client: messages to it, and its answers to callbacks.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot::channel;

use super::message::{self, INTERNAL_ERROR, RpcError};
use super::outbox::Outbox;

/// Answer of the client to a callback.
pub type Reply = Result<Value, RpcError>;

/// Receiver of the answer to a callback.
type Receiver = Box<dyn FnOnce(Reply) + Send>;

/// Callbacks that the client has not answered yet.
#[derive(Default)]
struct Callbacks {
    last: u64,
    open: HashMap<u64, Receiver>,
    is_closed: bool,
}

/// A connection.
pub struct Connection {
    outbox: Arc<Outbox>,
    callbacks: Mutex<Callbacks>,
}

impl Connection {
    /// Creates a connection that writes to `outbox`.
    pub fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, callbacks: Mutex::default() }
    }

    /// Responds to a request.
    pub fn respond(&self, id: &Value, answer: Result<Value, RpcError>) {
        self.outbox.send(message::response(id, answer));
    }

    /// Sends a notification as soon as the client has read enough.
    ///
    /// # Errors
    /// Returns an error if the client can no longer be reached.
    pub fn notify_when_read(&self, method: &str, params: &Value) -> io::Result<()> {
        self.outbox.send_when_read(notification(method, params))
    }

    /// Calls a method of the client, and waits for its answer. If the future is dropped, the client is told that no
    /// answer is expected any more. If the connection is closed, there is no answer, and the future waits until the run
    /// is stopped.
    pub async fn call(self: &Arc<Self>, method: &str, params: &Value) -> Reply {
        let (sender, answer) = channel();
        let receiver = Box::new(|reply| drop(sender.send(reply)));
        let Some(_callback) = self.start(method, params, receiver) else { return pending().await };
        match answer.await {
            Ok(reply) => reply,
            Err(_) => pending().await,
        }
    }

    /// Calls a method of the client, and blocks the thread until it answers. Returns `None` if it does not do so within
    /// `limit`. If the connection is closed, the answer is an error.
    pub fn call_blocking(self: &Arc<Self>, method: &str, params: &Value, limit: Duration) -> Option<Reply> {
        let closed = || Some(Err(RpcError::new(INTERNAL_ERROR, "the client closed the connection")));
        let (sender, answer) = sync_channel(1);
        let receiver = Box::new(move |reply| drop(sender.send(reply)));
        let Some(_callback) = self.start(method, params, receiver) else { return closed() };
        match answer.recv_timeout(limit) {
            Ok(reply) => Some(reply),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => closed(),
        }
    }

    /// Sends a callback. Returns `None` if the connection is closed.
    fn start(self: &Arc<Self>, method: &str, params: &Value, receiver: Receiver) -> Option<Callback> {
        let id = self.register(receiver)?;
        self.outbox.send_first(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        Some(Callback { connection: Arc::clone(self), id })
    }

    /// Passes on the answer to a callback. An answer to none is ignored: it came too late.
    pub fn answer(&self, id: u64, reply: Reply) {
        let callback = self.callbacks().open.remove(&id);
        if let Some(receive) = callback {
            receive(reply);
        }
    }

    /// Ends all callbacks. Their runs must be stopped.
    pub fn close(&self) {
        let mut callbacks = self.callbacks();
        callbacks.is_closed = true;
        callbacks.open.clear();
    }

    fn callbacks(&self) -> MutexGuard<'_, Callbacks> {
        self.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of a new callback; `None` if the connection is closed.
    fn register(&self, receiver: Receiver) -> Option<u64> {
        let mut callbacks = self.callbacks();
        if callbacks.is_closed {
            return None;
        }
        callbacks.last += 1;
        let id = callbacks.last;
        callbacks.open.insert(id, receiver);
        Some(id)
    }
}

fn notification(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// A callback that is waiting for its answer.
struct Callback {
    connection: Arc<Connection>,
    id: u64,
}

impl Drop for Callback {
    fn drop(&mut self) {
        let mut callbacks = self.connection.callbacks();
        let is_open = callbacks.open.remove(&self.id).is_some();
        if is_open {
            self.connection.outbox.send_first(notification("cancelCallback", &json!({ "id": self.id })));
        }
    }
}
