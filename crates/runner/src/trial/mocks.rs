//! The MCP servers and mocked programs of a trial. Programs in the sandbox connect to this process, which answers their
//! calls and keeps the record of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent::{Connection, Server};
use llm::{Conversation, Message, Model, Request, Role};
use mask::Mask;
use mock::protocol::{self, Received, ToolRequest};
use mock::{Answer, Engine, Outcome, Scene, Subject};
use model::{
    AuxiliaryUsage, Ending, Event, McpServer, MockCall, MockFault, MockVerdict, MockedServer, Mocks, ServerSource,
    Step, Trace,
};
use sandbox::supervise::{CommandOutput, MockRequest};
use sandbox::{Breakage, Host, MockPrograms, Sandbox};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use crate::event_bus::EventSender;

/// Maximum number of simultaneous connections from one sandbox. Further ones wait.
const MOST_CONNECTIONS: usize = 64;

/// Maximum length of a line that a program sends, in bytes.
const LONGEST_LINE: u64 = 16 << 20;

/// Maximum size of a file in an answer, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// Maximum number of tokens in an answer of a model that plays a server.
const MOST_TOKENS: u64 = 4_000;

/// Pause after the system could not accept a connection because no file descriptors were left.
const PAUSE: Duration = Duration::from_millis(20);

/// Models that play servers, by their names in the case.
pub(super) type Players = HashMap<Option<String>, (Arc<dyn Model>, String)>;

/// The mocks of a trial while its processes run. Dropping it closes all connections.
pub(super) struct TrialMocks {
    shared: Arc<Shared>,
    servers: Arc<[Server]>,
    serving: Option<JoinHandle<()>>,
}

/// What the connections share.
struct Shared {
    engine: Engine,
    events: EventSender,
    players: Players,
    mask: Arc<Mask>,
    spent: Mutex<AuxiliaryUsage>,
    /// Failure of a model that plays a server.
    failure: Mutex<Option<String>>,
}

impl TrialMocks {
    /// Installs the mocks in `sandbox` and begins to answer calls.
    ///
    /// # Errors
    /// Returns an error if the sandbox cannot have mocks, or if a real server needs a program that does not exist or a
    /// variable that is not set.
    pub(super) fn start(
        mocks: Arc<Mocks>,
        sandbox: &dyn Sandbox,
        host: &Host,
        events: &EventSender,
        players: Players,
    ) -> Result<Self, Breakage> {
        let names = mocks.names();
        let programs = mocks.has_mocks().then(|| sandbox.mock(&names)).transpose()?;
        let server = |server: &McpServer| launch(server, programs.as_ref(), sandbox, host);
        let servers = mocks.servers.iter().map(server).collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::new(Shared {
            engine: Engine::new(mocks),
            events: events.clone(),
            players,
            mask: Arc::clone(events.mask()),
            spent: Mutex::default(),
            failure: Mutex::default(),
        });
        events.emit(Event::Step(Step::Mocks(names)));
        let serving = programs.map(|programs| tokio::spawn(serve(programs, Arc::clone(&shared))));
        Ok(Self { shared, servers: servers.into(), serving })
    }

    /// Returns the servers for the agent.
    pub(super) fn servers(&self) -> Arc<[Server]> {
        Arc::clone(&self.servers)
    }

    /// Notes that the user has sent `count` messages so far.
    pub(super) fn user_messages(&self, count: usize) {
        self.shared.engine.user_messages(count);
    }

    /// Sets the calls so far in the trace. Their events were emitted when they were made.
    pub(super) fn complete(&self, trace: &mut Trace) {
        trace.mocks = Some(self.shared.engine.mocks().names());
        trace.mock_calls = self.shared.engine.calls();
    }

    /// Returns the usage of the models that play servers.
    pub(super) fn spent(&self) -> Option<AuxiliaryUsage> {
        let spent = *self.shared.spent.lock().unwrap_or_else(PoisonError::into_inner);
        (spent.requests > 0).then_some(spent)
    }

    /// Corrects the ending if a call could not be answered, which is not the agent's fault. Returns warnings about calls
    /// that are not mocked.
    pub(super) fn explain(&self, ending: &mut Ending) -> Vec<String> {
        let calls = self.shared.engine.calls();
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(broken) = calls.iter().find(|call| call.verdict == MockVerdict::Broken)
            && !matches!(ending, Ending::Cancelled)
        {
            *ending = match failure {
                Some(reason) => Ending::ProviderFailed { reason },
                None => Ending::InvalidTest { reason: broken.output.clone() },
            };
        }
        let unmocked = calls.iter().filter(|call| call.verdict == MockVerdict::NotMocked);
        unmocked.map(MockCall::describe).collect()
    }
}

impl Drop for TrialMocks {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
    }
}

/// Returns a server in the form in which agents get it.
fn launch(
    server: &McpServer,
    programs: Option<&MockPrograms>,
    sandbox: &dyn Sandbox,
    host: &Host,
) -> Result<Server, Breakage> {
    let expand = |text: &String| expanded(text, &server.name, |name| host.var(name));
    let pairs = |pairs: &[(String, String)]| {
        pairs.iter().map(|(name, value)| Ok((name.clone(), expand(value)?))).collect::<Result<Vec<_>, Breakage>>()
    };
    let (connection, tools) = match (&server.source, programs) {
        (ServerSource::Stdio { command, args, env, files }, _) => {
            files.iter().for_each(|file| sandbox.show(file));
            let args = args.iter().map(expand).collect::<Result<_, _>>()?;
            let env = pairs(env)?;
            check_program(&server.name, command, &env, sandbox)?;
            (Connection::Stdio { command: command.clone(), args, env }, None)
        }
        (ServerSource::Http { url, headers }, _) => {
            (Connection::Http { url: expand(url)?, headers: pairs(headers)? }, None)
        }
        (ServerSource::Mock(mock), Some(programs)) => {
            let command = programs.server(&server.name).to_string_lossy().into_owned();
            let tools = mock.tools.iter().map(|tool| tool.name.clone()).collect();
            (Connection::Stdio { command, args: Vec::new(), env: Vec::new() }, Some(tools))
        }
        (ServerSource::Mock(_), None) => return Err(Breakage::harness("a mocked server has no program".to_owned())),
    };
    Ok(Server { name: server.name.clone(), connection, tools })
}

/// Checks that the agent can start the program of a server: without it, the agent would lack tools.
fn check_program(server: &str, program: &str, env: &[(String, String)], sandbox: &dyn Sandbox) -> Result<(), Breakage> {
    if sandbox.has_own_system() {
        return Ok(());
    }
    let env = sandbox.env(env);
    let path = env.get("PATH").map_or("", String::as_str);
    sandbox::find_program(program, path, sandbox.work())
        .map(drop)
        .map_err(|reason| Breakage::environment(format!("the MCP server `{server}` cannot start: {reason}")).for_good())
}

/// Replaces `${NAME}` and `${env.NAME}` by the value of the variable, and `${NAME:-DEFAULT}` by the default if there is
/// none.
fn expanded<'h>(text: &str, server: &str, variable: impl Fn(&str) -> Option<&'h str>) -> Result<String, Breakage> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        let (name, default) = model::variable_in(name);
        let value = variable(name).or(default).ok_or_else(|| {
            let reason = format!("the MCP server `{server}` needs the variable `{name}`, which is not set");
            Breakage::environment(reason).for_good()
        })?;
        expanded.push_str(before);
        expanded.push_str(value);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Serves the programs of a sandbox until the future is dropped.
async fn serve(programs: MockPrograms, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        tokio::select! {
            accepted = programs.accept() => match accepted {
                Ok(stream) => {
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move {
                        // A program that ends early needs no answer.
                        let _ = serve_program(stream, &shared).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Reads one line without its end. Returns `None` at the end of the input, or if the line is too long.
async fn read_line(reader: &mut BufReader<impl tokio::io::AsyncRead + Unpin>) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    reader.take(LONGEST_LINE).read_until(b'\n', &mut line).await?;
    if line.pop() != Some(b'\n') {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

async fn serve_program(stream: UnixStream, shared: &Arc<Shared>) -> std::io::Result<()> {
    let (reading, writing) = stream.into_split();
    let mut reader = BufReader::new(reading);
    let Some(line) = read_line(&mut reader).await? else { return Ok(()) };
    match serde_json::from_str(&line)? {
        MockRequest::Server(name) => serve_client(&name, reader, writing, shared).await,
        MockRequest::Command { name, args } => run_command(&name, &args, writing, shared).await,
    }
}

async fn run_command(
    name: &str,
    args: &[String],
    mut writing: OwnedWriteHalf,
    shared: &Arc<Shared>,
) -> std::io::Result<()> {
    let input = json!({"args": args, "line": args.join(" ")});
    let Answer { call, stderr, exit_code, .. } = shared.call(&Subject::Command(name), input).await;
    let stdout = call.output.strip_suffix(&stderr).unwrap_or(&call.output).to_owned();
    let mut line = serde_json::to_vec(&CommandOutput { stdout, stderr, exit_code })?;
    line.push(b'\n');
    writing.write_all(&line).await
}

/// Serves one client of an MCP server until it disconnects.
async fn serve_client(
    name: &str,
    mut reader: BufReader<impl tokio::io::AsyncRead + Unpin>,
    writing: OwnedWriteHalf,
    shared: &Arc<Shared>,
) -> std::io::Result<()> {
    let mocks = Arc::clone(shared.engine.mocks());
    let nothing = MockedServer::default();
    let server = mocks.mocked().find(|(other, _)| *other == name).map_or(&nothing, |(_, server)| server);
    let writing = Arc::new(tokio::sync::Mutex::new(writing));
    let mut calls = JoinSet::new();
    while let Some(line) = read_line(&mut reader).await? {
        match protocol::receive(name, server, &line) {
            Received::Reply(reply) => send(&writing, &reply.to_string()).await?,
            Received::Call(request) => {
                let (name, shared, writing) = (name.to_owned(), Arc::clone(shared), Arc::clone(&writing));
                calls.spawn(async move { answer(&name, request, &shared, &writing).await });
            }
            Received::Nothing => {}
        }
        while calls.try_join_next().is_some() {}
    }
    // A client may close its side before it has read the answers.
    calls.join_all().await;
    Ok(())
}

async fn send(writing: &tokio::sync::Mutex<OwnedWriteHalf>, line: &str) -> std::io::Result<()> {
    writing.lock().await.write_all(format!("{line}\n").as_bytes()).await
}

/// Answers a call to a tool. A client that has disconnected needs no answer.
async fn answer(
    server: &str,
    request: ToolRequest,
    shared: &Arc<Shared>,
    writing: &tokio::sync::Mutex<OwnedWriteHalf>,
) {
    let answer = shared.call(&Subject::Tool(server, &request.tool), request.arguments.clone()).await;
    let line = match answer.fault {
        None => protocol::response(&request, &answer).to_string(),
        Some(MockFault::ProtocolError) => protocol::internal_error(&request).to_string(),
        Some(MockFault::Malformed) => "{\"jsonrpc\": \"2.0\", \"id\":".to_owned(),
        Some(MockFault::Disconnect) => return drop(writing.lock().await.shutdown().await),
        Some(MockFault::Hang) => std::future::pending().await,
    };
    let _ = send(writing, &line).await;
}

impl Shared {
    /// Answers a call after its delay, and reports it.
    async fn call(self: &Arc<Self>, subject: &Subject<'_>, input: serde_json::Value) -> Answer {
        let read =
            |path: &std::path::Path| files::read_named_text(path, LARGEST_FILE).map_err(|error| error.to_string());
        let answer = match self.engine.call(subject, input, &read) {
            Outcome::Answer(answer) => answer,
            Outcome::Played(scene) => {
                let delay_ms = scene.delay_ms;
                let call = self.play(*scene).await;
                self.engine.record(call, delay_ms)
            }
        };
        self.events.emit(Event::Step(Step::MockCall(answer.call.clone())));
        if answer.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
        }
        answer
    }

    /// Asks the model that plays a server.
    async fn play(&self, scene: Scene) -> MockCall {
        let Some((model, name)) = self.players.get(&scene.mock.model) else { return scene.failed("it is missing") };
        let masked = |text: &str| self.mask.without_values(text).into_owned();
        let request = Request {
            model: name.clone(),
            system: vec![masked(&scene.system)],
            messages: vec![Message::text(Role::User, masked(&scene.message))],
            max_tokens: Some(MOST_TOKENS),
            conversation: Conversation::main(),
            ..Request::default()
        };
        match model.respond(&request).await {
            Ok(reply) => {
                let spent = AuxiliaryUsage { requests: 1, cached: 0, tokens: reply.tokens, cost_usd: reply.cost_usd };
                *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += spent;
                scene.answered(&reply.text())
            }
            Err(error) => {
                let call = scene.failed(&error.to_string());
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(call.output.clone());
                call
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_or_missing() {
        let expand = |text: &str| expanded(text, "db", |name| (name == "TOKEN").then_some("t"));
        assert_eq!(expand("Bearer ${TOKEN}!").unwrap(), "Bearer t!");
        assert_eq!(expand("$TOKEN ${").unwrap(), "$TOKEN ${");
        assert_eq!(expand("${TOKEN:-u}${env.OTHER:-v}${OTHER:-}").unwrap(), "tv");
        assert!(expand("${OTHER}").unwrap_err().to_string().contains("`OTHER`, which is not set"));
    }
}
