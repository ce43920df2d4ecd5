//! Commands that the agent runs through this program, in its sandbox.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, PoisonError};

use sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::message::{BAD_PARAMETERS, INTERNAL};
use crate::json::{items, owned, text};
use crate::process::{Output, Process};

/// Maximum size of the output that is kept of each terminal, in bytes.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

type Answer = Result<Value, (i64, String)>;

/// The terminals of a conversation.
#[derive(Default)]
pub(super) struct Terminals {
    open: HashMap<String, Terminal>,
    /// Output of terminals that the agent has released.
    released: HashMap<String, String>,
    count: usize,
}

struct Terminal {
    state: Arc<Mutex<State>>,
    kill: Arc<Notify>,
    /// Becomes `true` when the command has ended.
    ended: watch::Receiver<bool>,
}

#[derive(Default)]
struct State {
    output: String,
    is_truncated: bool,
    limit: usize,
    exit_code: Option<i32>,
    has_ended: bool,
}

impl State {
    /// Adds a line. The beginning is dropped if the output is too long.
    fn add(&mut self, line: &str) {
        self.output.push_str(line);
        self.output.push('\n');
        if self.output.len() > self.limit {
            let mut from = self.output.len() - self.limit;
            while !self.output.is_char_boundary(from) {
                from += 1;
            }
            self.output.drain(..from);
            self.is_truncated = true;
        }
    }

    fn status(&self) -> Value {
        let signal = if self.exit_code.is_none() { json!("SIGKILL") } else { Value::Null };
        json!({"exitCode": self.exit_code, "signal": signal})
    }
}

impl Terminal {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminals {
    /// Answers `terminal/create`.
    pub(super) fn create(&mut self, sandbox: &dyn Sandbox, params: &Value) -> Answer {
        let program = text(params, "command").ok_or((BAD_PARAMETERS, "`command` is missing".to_owned()))?;
        let args: Vec<String> =
            items(params, "args").iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
        let env: Vec<(String, String)> = items(params, "env")
            .iter()
            .filter_map(|item| Some((owned(item, "name")?, owned(item, "value")?)))
            .collect();
        // Without arguments, agents send a whole command line.
        let is_line = args.is_empty() && program.contains(char::is_whitespace);
        let shell = sandbox.shell().to_owned();
        let (program, args) = match is_line {
            true => (shell.as_os_str(), vec!["-c".to_owned(), program.to_owned()]),
            false => (OsStr::new(program), args),
        };
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let mut command = sandbox.command(program, &args, &env);
        if let Some(cwd) = text(params, "cwd") {
            command.current_dir(cwd);
        }
        let process =
            Process::start(command).map_err(|error| (INTERNAL, format!("cannot start the command: {error}")))?;
        let limit = params.get("outputByteLimit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(MAX_OUTPUT_BYTES).min(MAX_OUTPUT_BYTES);
        let state = Arc::new(Mutex::new(State { limit, ..State::default() }));
        let (kill, (sender, ended)) = (Arc::new(Notify::new()), watch::channel(false));
        tokio::spawn(follow(process, Arc::clone(&state), Arc::clone(&kill), sender));
        self.count += 1;
        let id = format!("terminal-{}", self.count);
        self.open.insert(id.clone(), Terminal { state, kill, ended });
        Ok(json!({"terminalId": id}))
    }

    /// Answers `terminal/output`.
    pub(super) fn output(&self, params: &Value) -> Answer {
        let terminal = self.find(params)?;
        let state = terminal.state();
        let status = if state.has_ended { state.status() } else { Value::Null };
        Ok(json!({"output": state.output, "truncated": state.is_truncated, "exitStatus": status}))
    }

    /// Answers `terminal/kill`.
    pub(super) fn kill(&self, params: &Value) -> Answer {
        self.find(params)?.kill.notify_one();
        Ok(json!({}))
    }

    /// Answers `terminal/release`.
    pub(super) fn release(&mut self, params: &Value) -> Answer {
        self.find(params)?.kill.notify_one();
        let id = text(params, "terminalId").unwrap_or_default();
        if let Some(terminal) = self.open.remove(id) {
            self.released.insert(id.to_owned(), terminal.state().output.clone());
        }
        Ok(json!({}))
    }

    /// Answers `terminal/wait_for_exit` when the command has ended.
    pub(super) fn wait(&self, params: &Value) -> Result<impl Future<Output = Value> + Send + use<>, (i64, String)> {
        let terminal = self.find(params)?;
        let (state, mut ended) = (Arc::clone(&terminal.state), terminal.ended.clone());
        Ok(async move {
            let _ = ended.wait_for(|ended| *ended).await;
            state.lock().unwrap_or_else(PoisonError::into_inner).status()
        })
    }

    /// Returns the output of a terminal, also of one that was released.
    pub(super) fn text(&self, id: &str) -> Option<String> {
        let open = self.open.get(id).map(|terminal| terminal.state().output.clone());
        open.or_else(|| self.released.get(id).cloned())
    }

    /// Stops all commands.
    pub(super) fn close(&mut self) {
        self.open.drain().for_each(|(_, terminal)| terminal.kill.notify_one());
    }

    fn find(&self, params: &Value) -> Result<&Terminal, (i64, String)> {
        let id = text(params, "terminalId").unwrap_or_default();
        self.open.get(id).ok_or_else(|| (BAD_PARAMETERS, format!("there is no terminal `{id}`")))
    }
}

async fn follow(mut process: Process, state: Arc<Mutex<State>>, kill: Arc<Notify>, ended: watch::Sender<bool>) {
    process.close_stdin();
    let change = |with: &dyn Fn(&mut State)| with(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
    loop {
        let output = tokio::select! {
            output = process.next_output() => output,
            () = kill.notified() => {
                let _ = process.stop().await;
                break;
            }
        };
        match output {
            Output::Stdout(line) | Output::Stderr(line) => change(&|state| state.add(&line.text)),
            Output::End => {
                tokio::select! {
                    _ = process.own_end() => drop(process.end().await),
                    () = kill.notified() => drop(process.stop().await),
                }
                for line in process.take_late_stderr() {
                    change(&|state| state.add(&line.text));
                }
                break;
            }
        }
    }
    let code = process.exit_code();
    change(&|state| (state.exit_code, state.has_ended) = (code, true));
    ended.send_replace(true);
}
