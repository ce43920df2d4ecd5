//! A stand-in for the Daytona service on loopback. It runs commands in a folder on this machine that contains all paths
//! of a sandbox. It stops on drop.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use super::super::kind::Elsewhere;

/// Key that the service accepts.
pub const KEY: &str = "dummy-daytona-key-5d1f";

/// Prefix of sandbox directories.
const BOX: &str = "/trialrun-sandbox-";
/// Prefix of other files.
const HIDDEN: &str = "/tmp/.trialrun-";

/// Fault to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    #[default]
    Nothing,
    /// The account has no room for another sandbox.
    Quota,
    /// The connection breaks once, after a sandbox was created.
    Cut,
    /// Sandboxes never start.
    NeverStarted,
    /// Sandboxes fail to start.
    Failed,
}

/// A received request: method and path, and the body.
pub type Seen = (String, Vec<u8>);

#[derive(Default)]
struct State {
    fault: Fault,
    sandboxes: Vec<Value>,
    /// Number of sandboxes that were created.
    created: usize,
    seen: Vec<Seen>,
    /// Folder on this machine that contains the sandbox directories.
    place: Option<String>,
}

struct Inner {
    root: tempfile::TempDir,
    address: SocketAddr,
    over: AtomicBool,
    state: Mutex<State>,
}

/// The service. It serves until it is dropped.
pub struct StandIn(Arc<Inner>);

impl StandIn {
    pub fn open(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let inner = Arc::new(Inner {
            root: tempfile::tempdir().unwrap(),
            address: listener.local_addr().unwrap(),
            over: AtomicBool::new(false),
            state: Mutex::new(State { fault, ..State::default() }),
        });
        let served = Arc::clone(&inner);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if served.over.load(Ordering::SeqCst) {
                    return;
                }
                let served = Arc::clone(&served);
                std::thread::spawn(move || drop(served.serve(stream)));
            }
        });
        Self(inner)
    }

    /// Returns the address of the API.
    pub fn url(&self) -> String {
        format!("http://{}/api", self.0.address)
    }

    /// Returns all requests received so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.0.state().seen.clone()
    }

    /// Returns the existing sandboxes.
    pub fn sandboxes(&self) -> Vec<Value> {
        self.0.state().sandboxes.clone()
    }

    /// Adds a sandbox that seems to belong to another process.
    pub fn add(&self, name: &str, labels: &Value) {
        self.0.state().sandboxes.push(json!({"id": name, "name": name, "state": "started", "labels": labels}));
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.0.address));
    }
}

impl Elsewhere for StandIn {
    fn real(&self, path: &Path) -> PathBuf {
        let id = self.0.state().sandboxes[0]["id"].as_str().unwrap().to_owned();
        self.0.mapped(&id, &path.to_string_lossy()).into()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let (mut length, mut is_allowed) = (0, false);
            loop {
                let mut header = String::new();
                reader.read_line(&mut header)?;
                let Some((name, value)) = header.trim_end().split_once(": ") else { break };
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.parse().unwrap(),
                    "authorization" => is_allowed = value == format!("Bearer {KEY}"),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let mut words = line.split(' ');
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            self.state().seen.push((format!("{method} {path}"), body.clone()));
            let answered = match is_allowed {
                true => self.answer(method, path, &body),
                // Echoes the rejected key, as a careless service might.
                false => {
                    Some((401, json!({"message": "Invalid credentials: wrong-key-77aa"}).to_string().into_bytes()))
                }
            };
            let Some((status, content)) = answered else { return Ok(()) };
            let head = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n\r\n", content.len());
            reader.get_mut().write_all(head.as_bytes())?;
            reader.get_mut().write_all(&content)?;
        }
    }

    /// Returns the status and the body, or `None` to cut the connection.
    fn answer(&self, method: &str, path: &str, body: &[u8]) -> Option<(u16, Vec<u8>)> {
        let said = |status: u16, body: Value| Some((status, body.to_string().into_bytes()));
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let json_body = || serde_json::from_slice::<Value>(body).unwrap();
        match (method, parts.as_slice()) {
            ("POST", ["api", "sandbox"]) => self.create(&json_body()),
            ("GET", ["api", "sandbox"]) => said(200, Value::Array(self.state().sandboxes.clone())),
            ("GET", ["api", "sandbox", name]) => match self.found(name) {
                Some(sandbox) => said(200, sandbox),
                None => said(404, json!({"message": "Sandbox not found"})),
            },
            ("DELETE", ["api", "sandbox", name]) => {
                let found = self.found(name);
                self.state().sandboxes.retain(|sandbox| Some(sandbox) != found.as_ref());
                said(if found.is_some() { 200 } else { 404 }, json!({}))
            }
            (_, ["toolbox", id, rest @ ..]) if self.found(id).is_some() => self.toolbox(id, method, rest, query, body),
            _ => said(404, json!({"message": "no such path"})),
        }
    }

    fn found(&self, name: &str) -> Option<Value> {
        let state = self.state();
        state.sandboxes.iter().find(|sandbox| sandbox["id"] == name || sandbox["name"] == name).cloned()
    }

    fn create(&self, wanted: &Value) -> Option<(u16, Vec<u8>)> {
        let mut state = self.state();
        let said = |status: u16, body: Value| Some((status, body.to_string().into_bytes()));
        if state.fault == Fault::Quota {
            return said(403, json!({"message": "Total CPU quota exceeded. Maximum allowed: 10"}));
        }
        if state.sandboxes.iter().any(|sandbox| sandbox["name"] == wanted["name"]) {
            return said(409, json!({"message": "Sandbox with this name already exists"}));
        }
        let id = format!("id-{}", state.created);
        state.created += 1;
        let sandbox = json!({
            "id": id,
            "name": wanted["name"],
            "labels": wanted["labels"],
            "state": match state.fault {
                Fault::NeverStarted => "creating",
                Fault::Failed => "error",
                _ => "started",
            },
            "errorReason": "no runner",
            "toolboxProxyUrl": format!("http://{}/toolbox", self.address),
        });
        fs::create_dir_all(self.root.path().join(&id)).unwrap();
        state.sandboxes.push(sandbox.clone());
        if state.fault == Fault::Cut {
            state.fault = Fault::Nothing;
            return None;
        }
        said(200, sandbox)
    }

    fn toolbox(&self, id: &str, method: &str, rest: &[&str], query: &str, body: &[u8]) -> Option<(u16, Vec<u8>)> {
        let said = |status: u16, body: Value| Some((status, body.to_string().into_bytes()));
        let json_body = || serde_json::from_slice::<Value>(body).unwrap();
        let file = || {
            let path =
                percent_encoding::percent_decode_str(query.strip_prefix("path=").unwrap()).decode_utf8().unwrap();
            PathBuf::from(self.mapped(id, &path))
        };
        match (method, rest) {
            ("POST", ["process", "execute"]) => {
                let body = json_body();
                let output = self.shell(&self.script(id, body["command"].as_str().unwrap())).output().unwrap();
                let result = String::from_utf8_lossy(&output.stdout).into_owned();
                said(200, json!({"exitCode": output.status.code().unwrap_or(-1), "result": result}))
            }
            ("POST", ["process", "session"]) => said(201, json!({})),
            ("POST", ["process", "session", _, "exec"]) => {
                let body = json_body();
                let mut child = self.shell(&self.mapped(id, body["command"].as_str().unwrap()));
                let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
                std::thread::spawn(move || child.wait());
                said(202, json!({"cmdId": "1"}))
            }
            ("DELETE", ["process", "session", _]) => said(204, json!({})),
            ("POST", ["files", "upload"]) => {
                let start = body.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
                let end = body.windows(4).rposition(|window| window == b"\r\n--").unwrap();
                let content = &body[start..end];
                let is_script = query.ends_with("%2Esh");
                match std::str::from_utf8(content) {
                    Ok(text) if is_script => fs::write(file(), self.mapped(id, text)).unwrap(),
                    _ => fs::write(file(), content).unwrap(),
                }
                said(200, json!({}))
            }
            ("GET", ["files", "download"]) => match fs::read(file()) {
                Ok(content) => Some((200, content)),
                Err(_) => said(404, json!({"message": "file not found"})),
            },
            _ => said(404, json!({"message": "no such path"})),
        }
    }

    /// Extracts the script from a command in the form that the service's own libraries use.
    fn script(&self, id: &str, command: &str) -> String {
        use base64::Engine as _;
        let encoded = command.split('\'').nth(1).unwrap();
        let script = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
        self.mapped(id, &String::from_utf8(script).unwrap())
    }

    /// Replaces sandbox paths by paths below the folder of this service.
    fn mapped(&self, id: &str, text: &str) -> String {
        let root = self.root.path().join(id);
        let mut state = self.state();
        if state.place.is_none() {
            state.place = text.find(BOX).map(|end| {
                let start = text[..end].rfind(['\'', ' ', '=']).map_or(0, |at| at + 1);
                text[start..end].to_owned()
            });
        }
        let text = text.replace(HIDDEN, &format!("{}/hidden-", root.display()));
        match &state.place {
            Some(place) => text.replace(&format!("{place}{BOX}"), &format!("{}{BOX}", root.display())),
            None => text,
        }
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", script]).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.current_dir(self.root.path()).stdin(Stdio::null());
        command
    }
}
