//! MCP servers that a case gives to its agent, and mocks of servers and of programs.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Excerpt;

/// MCP servers and mocked programs of a case or a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mocks {
    /// MCP servers, real and mocked, in the order in which they are written.
    pub servers: Vec<McpServer>,
    /// Mocked programs.
    pub commands: Vec<MockedTool>,
}

impl Mocks {
    /// Returns `true` if there are no servers and no programs.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.commands.is_empty()
    }

    /// Returns these mocks, and those of `base` whose names are not used here.
    pub fn over(&self, base: &Self) -> Self {
        let mut all = self.clone();
        let is_new = |server: &&McpServer| !self.servers.iter().any(|own| own.name == server.name);
        all.servers.extend(base.servers.iter().filter(is_new).cloned());
        let is_new = |command: &&MockedTool| !self.commands.iter().any(|own| own.name == command.name);
        all.commands.extend(base.commands.iter().filter(is_new).cloned());
        all
    }

    /// Returns the mocked servers with their names.
    pub fn mocked(&self) -> impl Iterator<Item = (&str, &MockedServer)> {
        self.servers.iter().filter_map(|server| match &server.source {
            ServerSource::Mock(mock) => Some((server.name.as_str(), mock)),
            ServerSource::Stdio { .. } | ServerSource::Http { .. } => None,
        })
    }

    /// Returns the names.
    pub fn names(&self) -> MockNames {
        let is_mocked = |server: &&McpServer| matches!(server.source, ServerSource::Mock(_));
        let (mocked, real): (Vec<&McpServer>, Vec<&McpServer>) = self.servers.iter().partition(is_mocked);
        let names = |servers: &[&McpServer]| servers.iter().map(|server| server.name.clone()).collect();
        let commands = self.commands.iter().map(|command| command.name.clone()).collect();
        MockNames { servers: names(&mocked), real_servers: names(&real), commands }
    }

    /// Returns `true` if the sandbox needs programs that stand for mocks.
    pub fn has_mocks(&self) -> bool {
        !self.commands.is_empty() || self.mocked().next().is_some()
    }
}

/// An MCP server of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Name, which is part of the names of its tools.
    pub name: String,
    /// The server behind the name.
    pub source: ServerSource,
    /// True if it belongs to the plug-in under test. An agent without the plug-in does not have it.
    pub is_of_plugin: bool,
    /// Location in the file.
    pub place: Excerpt,
}

/// The server behind a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSource {
    /// A program that speaks the protocol over stdin and stdout.
    Stdio {
        /// Program: a name on `PATH`, or an absolute path.
        command: String,
        /// Arguments.
        args: Vec<String>,
        /// Variables in addition to those of the agent.
        env: Vec<(String, String)>,
        /// Files and folders that the program reads, absolute.
        files: Vec<PathBuf>,
    },
    /// A server that is reached over HTTP.
    Http {
        /// Address.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, String)>,
    },
    /// A mocked server.
    Mock(MockedServer),
}

impl ServerSource {
    /// Returns the variables of the machine that its texts need, each as often as it is written.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let (texts, pairs): (&[String], _) = match self {
            Self::Stdio { args, env, .. } => (args, env.as_slice()),
            Self::Http { url, headers } => (std::slice::from_ref(url), headers.as_slice()),
            Self::Mock(_) => (&[], [].as_slice()),
        };
        texts.iter().chain(pairs.iter().map(|(_, value)| value)).flat_map(|text| variables_in(text))
    }
}

/// Returns the variables that `text` refers to as `${NAME}` or, as in the configuration, `${env.NAME}`, without those that
/// have a default.
fn variables_in(text: &str) -> impl Iterator<Item = &str> {
    let all = text.split("${").skip(1).filter_map(|after| Some(variable_in(after.split_once('}')?.0)));
    all.filter(|(_, default)| default.is_none()).map(|(name, _)| name)
}

/// Returns the name of the variable in `${written}` in a text of an MCP server, and its default in `${NAME:-DEFAULT}`.
pub fn variable_in(written: &str) -> (&str, Option<&str>) {
    let (name, default) = written.split_once(":-").map_or((written, None), |(name, default)| (name, Some(default)));
    (name.strip_prefix("env.").unwrap_or(name), default)
}

/// A mocked MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MockedServer {
    /// Instructions that the server gives to its clients.
    pub instructions: Option<String>,
    /// Tools.
    pub tools: Vec<MockedTool>,
}

/// A mocked tool of a server, or a mocked program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MockedTool {
    /// Name of the tool or program.
    pub name: String,
    /// Description that the agent sees.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Option<Map<String, Value>>,
    /// Requirements on the arguments of every call. A call that does not meet them fails the trial.
    pub expect: Vec<ArgumentGuard>,
    /// Answers. The first one that fits a call and is not used up is given.
    pub answers: Vec<MockedAnswer>,
}

/// Keywords of JSON Schema with which a tool may have more arguments than `properties` lists.
const OPEN: [&str; 5] = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"];

/// Returns the arguments that `input_schema` lists, each with its schema, if a tool with this schema has no others.
pub fn listed_arguments(input_schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let is_closed = input_schema.get("additionalProperties").is_none_or(|extra| *extra == Value::Bool(false))
        && OPEN.iter().all(|keyword| !input_schema.contains_key(*keyword));
    input_schema.get("properties").filter(|_| is_closed)?.as_object()
}

/// An answer of a mocked tool or program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MockedAnswer {
    /// Requirements on the arguments of the calls that it answers.
    pub when: Vec<ArgumentGuard>,
    /// Number of calls that it answers; unlimited if absent.
    pub times: Option<u64>,
    /// Time before it is given, in milliseconds.
    pub delay_ms: u64,
    /// What is answered.
    pub reply: MockedReply,
    /// Folder of the files in `{{file:PATH}}`.
    pub directory: Arc<PathBuf>,
}

/// What a mock answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MockedReply {
    /// Text of a tool. `{{input.NAME}}` and `{{file:PATH}}` in it are replaced.
    Text {
        /// Text.
        text: String,
        /// True if it is an error of the tool.
        is_error: bool,
    },
    /// Value of a tool, as JSON. The texts in it are templates like [`Text`](Self::Text).
    Json(Value),
    /// Output of a program. `{{input.NAME}}` and `{{file:PATH}}` in both texts are replaced.
    Output {
        /// Standard output.
        stdout: String,
        /// Standard error.
        stderr: String,
        /// Exit code.
        exit_code: u8,
    },
    /// The answer of a model that plays the server.
    Played(Box<PlayedMock>),
    /// No valid answer.
    Fault(MockFault),
}

/// A server that is played by a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlayedMock {
    /// Description of the server.
    pub description: String,
    /// Conditions under which the trial fails.
    pub abort_when: Option<String>,
    /// Model, as `provider:model`; the run's judge if absent.
    pub model: Option<String>,
    /// Location in the file.
    pub place: Excerpt,
}

/// A fault of a mocked server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MockFault {
    /// It ends the connection.
    Disconnect,
    /// It never answers.
    Hang,
    /// It answers with a line that is not JSON.
    Malformed,
    /// It answers with an internal error of the protocol.
    ProtocolError,
}

impl MockFault {
    /// All faults with their names in files.
    pub const NAMED: [(&str, Self); 4] = [
        ("disconnect", Self::Disconnect),
        ("hang", Self::Hang),
        ("malformed", Self::Malformed),
        ("protocol_error", Self::ProtocolError),
    ];

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, fault)| *fault == self).map_or("", |(name, _)| name)
    }
}

/// Requirement on one argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentGuard {
    /// Path of the argument: `filter.state`.
    pub path: String,
    /// Required value.
    pub wanted: WantedArgument,
}

/// Required value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedArgument {
    /// The argument's text is one of these. The text of a number is its digits.
    OneOf(Vec<String>),
    /// The argument's text matches a regular expression.
    Matches {
        /// Source of the expression.
        source: String,
        /// Its flags.
        flags: String,
    },
    /// The argument has a type: `string`, `number`, `bool`, `object` or `array`.
    Type(String),
    /// The argument is a list that begins with these words.
    Words(Vec<String>),
}

/// Call of a mocked tool or program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MockCall {
    /// Server; absent for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Tool of the server, or program.
    pub tool: String,
    /// Arguments.
    pub input: Value,
    /// Answer.
    pub output: String,
    /// Result of the call.
    pub verdict: MockVerdict,
    /// Number of the user's messages before the call.
    #[serde(default)]
    pub user_message: usize,
}

impl MockCall {
    /// Returns the name that agents have for the tool, or the program.
    pub fn name(&self) -> String {
        self.server.as_ref().map_or_else(|| self.tool.clone(), |server| format!("mcp__{server}__{}", self.tool))
    }

    /// Returns the call in one line: `mock db/query {"id":7}: not mocked`.
    pub fn describe(&self) -> String {
        let what = self.server.as_ref().map_or_else(|| self.tool.clone(), |server| format!("{server}/{}", self.tool));
        let input = match self.input.get("line").filter(|_| self.server.is_none()).and_then(Value::as_str) {
            Some(line) => line.to_owned(),
            None => self.input.to_string(),
        };
        let verdict = match self.verdict {
            MockVerdict::Answered => "answered",
            MockVerdict::Error => "answered with an error",
            MockVerdict::Fault => "answered with a fault",
            MockVerdict::NotMocked => "not mocked",
            MockVerdict::Rejected => "rejected",
            MockVerdict::Broken => "could not be answered",
        };
        format!("mock {what} {}: {verdict}", crate::text::shortened(&input, 100))
    }
}

impl MockVerdict {
    /// Returns `true` unless the call was answered as the case declares.
    pub fn is_notable(self) -> bool {
        matches!(self, Self::NotMocked | Self::Rejected | Self::Broken)
    }
}

/// Result of a call to a mock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MockVerdict {
    /// It was answered.
    Answered,
    /// It was answered with an error, as the case declares.
    Error,
    /// It was answered with a fault, as the case declares.
    Fault,
    /// The case declares no answer to it.
    NotMocked,
    /// Its arguments are not those that the case expects, or the model that plays the server ended the trial.
    Rejected,
    /// It could not be answered: a file is missing, or the model that plays the server failed.
    Broken,
}

/// Names of the MCP servers and mocks that an agent was given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MockNames {
    /// Mocked servers.
    pub servers: Vec<String>,
    /// Real servers.
    #[serde(default)]
    pub real_servers: Vec<String>,
    /// Mocked programs.
    pub commands: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_with_a_default_are_not_needed() {
        let url = "https://${HOST}/${env.PATH_PART}${KEY:-}${env.MORE:-x}".to_owned();
        let source = ServerSource::Http { url, headers: vec![("a".into(), "Bearer ${TOKEN}".into())] };
        assert_eq!(source.variables().collect::<Vec<_>>(), ["HOST", "PATH_PART", "TOKEN"]);
    }

    #[test]
    fn a_server_of_the_case_replaces_one_of_the_project() {
        let server = |name: &str, url: &str| McpServer {
            name: name.into(),
            source: ServerSource::Http { url: url.into(), headers: Vec::new() },
            is_of_plugin: false,
            place: Excerpt::of_file("a.yaml"),
        };
        let own = Mocks { servers: vec![server("db", "own")], ..Mocks::default() };
        let base = Mocks { servers: vec![server("db", "base"), server("docs", "base")], ..Mocks::default() };
        assert_eq!(own.over(&base).servers, [server("db", "own"), server("docs", "base")]);
    }
}
