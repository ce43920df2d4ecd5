//! MCP servers of the embedded agent: it is their client.

use std::process::Stdio;
use std::time::Duration;

use llm::ToolSpec;
use mcp::{Client, Failure, Http, Options, Transport};
use model::Ending;
use model::text::shortened;
use sandbox::Breakage;
use sandbox::supervise::Contained;
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::time::timeout;

use super::tool::ToolOutput;
use crate::SessionContext;
use crate::server::{Connection, Server};
use crate::turn::Turn;

/// Number of bytes that are kept of what a server writes to stderr.
const MAX_STDERR: usize = 4096;
/// Time limit for reading the rest of it after the server was killed.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Maximum length of what is shown of it, in characters.
const MAX_TOLD: usize = 300;

/// The servers of a conversation, with their tools.
#[derive(Default)]
pub(super) struct Servers {
    open: Vec<Open>,
    tools: Vec<ServerTool>,
}

/// A server with an open connection.
struct Open {
    client: Client,
    /// Its program. It ends when this is dropped.
    _program: Option<Contained>,
}

/// A tool of a server.
struct ServerTool {
    /// Index of the server.
    server: usize,
    /// Its name there.
    name: String,
    spec: ToolSpec,
}

impl Servers {
    /// Connects to the servers and asks for their tools.
    ///
    /// # Errors
    /// Returns an error if a server cannot be used: the agent would lack its tools.
    pub(super) async fn open(context: &SessionContext) -> Result<Self, Breakage> {
        let mut servers = Self::default();
        for server in context.servers.iter() {
            let failed = |reason: String| {
                Breakage::environment(format!("the MCP server `{}` cannot be used: {reason}", server.name))
            };
            let (transport, mut program) = connect(server, context).map_err(failed)?;
            let stderr = program.as_mut().and_then(Contained::take_stderr);
            let stderr = stderr.map(|stderr| tokio::spawn(beginning(stderr)));
            let (client, tools) = match with_tools(transport).await {
                Ok(open) => open,
                Err(failure) => {
                    // Its stderr ends with it, unless one of its processes cannot be killed.
                    drop(program);
                    let text = match stderr {
                        Some(stderr) => timeout(LAST_WORDS, stderr).await.ok().and_then(Result::ok).unwrap_or_default(),
                        None => String::new(),
                    };
                    let told =
                        if text.is_empty() { String::new() } else { format!(": {}", shortened(&text, MAX_TOLD)) };
                    return Err(failed(format!("{failure}{told}")));
                }
            };
            let index = servers.open.len();
            servers.tools.extend(tools.iter().filter_map(|tool| ServerTool::read(&server.name, index, tool)));
            servers.open.push(Open { client, _program: program });
        }
        Ok(servers)
    }

    /// Returns the tools for the model.
    pub(super) fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|tool| &tool.spec)
    }

    /// Returns the index of the tool that the model calls `name`.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.tools.iter().position(|tool| tool.spec.name == name)
    }

    /// Calls the tool at `index`. Returns `None` if the trial must stop.
    pub(super) async fn answer(
        &mut self,
        index: usize,
        input: &Value,
        turn: &mut Turn,
    ) -> Result<Option<ToolOutput>, Ending> {
        let Some(tool) = self.tools.get(index) else { return Ok(None) };
        let Some(server) = self.open.get_mut(tool.server) else { return Ok(None) };
        turn.waiting("tool");
        let input = if input.is_null() { json!({}) } else { input.clone() };
        let stopping = turn.stopping();
        let called = tokio::select! {
            biased;
            () = stopping => return Ok(None),
            called = server.client.call(&tool.name, input) => called,
        };
        let read = |exchange: mcp::Exchange| {
            exchange.result().map(|result| (mcp::text_of(result), exchange.answer.is_tool_error()))
        };
        Ok(Some(match called.and_then(read) {
            Ok((text, true)) => Err(text),
            Ok((text, false)) if text.is_empty() => Ok("(no output)".to_owned()),
            Ok((text, false)) => Ok(text),
            Err(failure) => Err(format!("The tool failed: {failure}.")),
        }))
    }
}

impl ServerTool {
    fn read(server: &str, index: usize, tool: &Value) -> Option<Self> {
        let name = tool["name"].as_str()?.to_owned();
        let spec = ToolSpec {
            name: format!("mcp__{server}__{name}"),
            description: tool["description"].as_str().map(str::to_owned),
            input_schema: tool["inputSchema"].clone(),
            extra: Map::new(),
        };
        Some(Self { server: index, name, spec })
    }
}

/// Connects, and asks for the tools.
async fn with_tools(transport: Transport) -> Result<(Client, Vec<Value>), Failure> {
    let mut client = Client::connect(transport, Options::default()).await?;
    let tools = client.tools().await?;
    Ok((client, tools))
}

/// Reads until the end. Returns the beginning, in one line.
async fn beginning(mut stderr: ChildStderr) -> String {
    let (mut kept, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stderr.read(&mut piece).await {
        kept.extend_from_slice(&piece[..length.min(MAX_STDERR - kept.len())]);
    }
    String::from_utf8_lossy(&kept)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" / ")
}

/// Starts the program of a server in the sandbox, or prepares to connect to its address.
fn connect(server: &Server, context: &SessionContext) -> Result<(Transport, Option<Contained>), String> {
    match &server.connection {
        Connection::Stdio { command, args, env } => {
            let sandbox = context.sandbox().map_err(|breakage| breakage.to_string())?;
            let args: Vec<_> = args.iter().map(AsRef::as_ref).collect();
            let mut process = sandbox.command(command.as_ref(), &args, env);
            process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut program = Contained::spawn(process).map_err(|error| error.to_string())?;
            let streams = program.take_stdin().zip(program.take_stdout());
            let (stdin, stdout) = streams.ok_or("it has no stdin or stdout")?;
            Ok((mcp::Stdio::new(stdin, stdout).into(), Some(program)))
        }
        Connection::Http { url, headers } => {
            let client = context.state.clients.client(url.starts_with("https:"), &context.host)?;
            Ok((Http::new(client, url, headers)?.into(), None))
        }
    }
}
