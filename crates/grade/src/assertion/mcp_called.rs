//! `mcp_called` and `mcp_not_called`: a tool of an MCP server was called, or not. For a mocked server, the calls are
//! those that the mock received, whatever the agent reports; for a real one, they are the agent's tool calls.

use std::borrow::Cow;

use model::{Effect, MockCall, ServerSource, ToolCall, Trace, nearest};

use super::ARGS_MATCH;
use super::prelude::*;
use crate::call_pattern::{ArgumentPattern, unknown_calls};
use crate::pattern::RegexBudget;

/// Number of calls that a finding shows.
const SHOWN: usize = 4;

/// Field `server`.
const SERVER: Field = Field::required(
    "server",
    "string",
    "Name of the server, as in `mcp_servers`. A server of a plug-in also has its name in the plug-in.",
);

/// Field `tool`.
const TOOL: Field = Field::optional("tool", "string", "Name of the tool, as the server has it.").or("any tool");

pub(crate) const ASSERTION: Assertion = Assertion::written("mcp_called", |reading| parse(reading, true))
    .reported(Reported::ToolCalls)
    .summary("The agent called a tool of an MCP server.")
    .fields(&[
        SERVER,
        TOOL,
        ARGS_MATCH,
        Field::optional("min", "whole number", "Minimum number of matching calls.").or("1"),
        Field::optional("max", "whole number", "Maximum number of matching calls.").or("any number"),
    ])
    .parameters(&[Parameter::Value("server"), Parameter::Value("tool"), Parameter::Map("args_match")])
    .example(
        || {
            json!({"id": "closes-the-issue", "type": "mcp_called", "server": "issues", "tool": "close_issue",
                   "args_match": {"id": "^7$"}})
        },
        || EvidenceBuilder::new().mocked("issues", "close_issue", json!({"id": 7})),
        || EvidenceBuilder::new().mocked("issues", "list_issues", json!({})),
    );

pub(crate) const NEGATION: Assertion = Assertion::written("mcp_not_called", |reading| parse(reading, false))
    .reported(Reported::ToolCalls)
    .summary("The agent did not call a tool of an MCP server, or not with these arguments.")
    .fields(&[SERVER, TOOL, ARGS_MATCH])
    .parameters(&[Parameter::Value("server"), Parameter::Value("tool"), Parameter::Map("args_match")])
    .example(
        || json!({"id": "only-reads", "type": "mcp_not_called", "server": "issues", "tool": "close_issue"}),
        || EvidenceBuilder::new().mocked("issues", "list_issues", json!({})),
        || EvidenceBuilder::new().mocked("issues", "close_issue", json!({"id": 7})),
    );

#[derive(Debug)]
struct McpCalled {
    server: String,
    tool: Option<String>,
    arguments: Vec<ArgumentPattern>,
    min: u64,
    max: Option<u64>,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>, is_wanted: bool) -> Option<Arc<dyn Matcher>> {
    let (server, place) = reading.required_name("server")?;
    let tool = match reading.fields.get("tool") {
        Some(_) => Some(reading.required_name("tool")?.0),
        None => None,
    };
    let arguments = reading.argument_patterns();
    let (min, max) = if is_wanted { reading.range()? } else { (0, Some(0)) };
    know_names(reading, &server, tool.as_deref());
    let place = reading.fields.get("tool").map_or(place, SourceLocation::from_node);
    Some(Arc::new(McpCalled { server, tool, arguments: arguments?, min, max, place }))
}

/// Reports a server that the agent is not given, and a tool that the mock of the server does not have.
fn know_names(reading: &mut Reading<'_>, server: &str, tool: Option<&str>) {
    // Without any, the servers are those of the agent's own settings.
    let Some(mocks) = reading.context.mocks.filter(|mocks| !mocks.servers.is_empty()) else { return };
    // A name that no server can have is reported where it is written.
    if mocks.servers.iter().any(|known| known.name.contains(char::is_whitespace)) {
        return;
    }
    let problem = match mocks.servers.iter().find(|known| is_named(&known.name, server)).map(|known| &known.source) {
        None => {
            let names: Vec<&str> = mocks.servers.iter().map(|known| known.name.as_str()).collect();
            let message = format!("the agent is not given an MCP server `{server}`");
            // `issues.close_issue`
            let parts = server.split_once(['.', '/', ':']).filter(|(known, _)| names.contains(known));
            reading.fields.get("server").map(|node| match parts {
                Some((server, tool)) => node
                    .error(message)
                    .help(format!("write `{{ server: {server}, tool: {} }}`", tool.trim_start_matches(':'))),
                None => unknown(node, message, server, "the servers", &names),
            })
        }
        Some(ServerSource::Mock(mock)) => tool.zip(reading.fields.get("tool")).and_then(|(tool, node)| {
            let names: Vec<&str> = mock.tools.iter().map(|tool| tool.name.as_str()).collect();
            let message = format!("the mock of `{server}` has no tool `{tool}`");
            (!names.contains(&tool)).then(|| unknown(node, message, tool, "its tools", &names))
        }),
        Some(ServerSource::Stdio { .. } | ServerSource::Http { .. }) => None,
    };
    reading.problems.extend(problem);
    let server = mocks.servers.iter().find(|known| is_named(&known.name, server)).map(|known| &known.source);
    if let (Some(ServerSource::Mock(mock)), Some(tool)) = (server, tool) {
        reading.know_mocked_arguments(mock, tool);
    }
}

/// Describes an unknown name. It may be right if no known name is similar.
fn unknown(node: &model::Node, message: String, written: &str, what: &str, names: &[&str]) -> model::Diagnostic {
    match nearest(written, names.iter().copied()) {
        Some(near) => node.error(message).suggest(Some(near)),
        None => node.warning(message).help(format!("{what}: {}", names.join(", "))),
    }
}

/// Returns `true` if `name` is the server that an assertion calls `written`. Servers of plug-ins have longer names.
fn is_named(name: &str, written: &str) -> bool {
    let of_plugin = |name: &str| name.strip_suffix(written).is_some_and(|front| front.ends_with('_'));
    name == written || name.strip_prefix("plugin_").is_some_and(of_plugin)
}

impl McpCalled {
    fn what(&self) -> String {
        match &self.tool {
            Some(tool) => format!("the tool `{tool}` of `{}`", self.server),
            None => format!("tools of `{}`", self.server),
        }
    }

    /// Returns the calls to the server, and `true` if they are known completely.
    fn calls<'t>(&self, trace: &'t Trace) -> (Vec<Cow<'t, ToolCall>>, bool) {
        let mocked = trace.mocks.iter().flat_map(|mocks| &mocks.servers).any(|name| is_named(name, &self.server));
        if mocked {
            let is_own = |call: &&MockCall| call.server.as_deref().is_some_and(|name| is_named(name, &self.server));
            let calls = trace.mock_calls.iter().filter(is_own);
            return (calls.map(|call| Cow::Owned(as_tool_call(call))).collect(), true);
        }
        let is_own = |call: &ToolCall| {
            let server = call.name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
            call.effect == Effect::Mcp && server.is_some_and(|(server, _)| is_named(server, &self.server))
        };
        let calls = trace.calls.iter().map(|traced| &traced.call).filter(|call| is_own(call));
        (calls.map(Cow::Borrowed).collect(), false)
    }
}

/// Converts a call that a mock received to the form of an agent's call.
fn as_tool_call(call: &MockCall) -> ToolCall {
    ToolCall::new(String::new(), call.name(), call.input.clone(), String::new())
}

impl Matcher for McpCalled {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let names = trace.mocks.iter().flat_map(|mocks| mocks.servers.iter().chain(&mocks.real_servers));
        let known: Vec<&String> = names.collect();
        let is_missing = trace.mocks.is_some() && !known.iter().any(|name| is_named(name, &self.server));
        let (calls, is_whole) = self.calls(trace);
        if is_missing && calls.is_empty() {
            let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            let names = if names.is_empty() { "none".to_owned() } else { format::list(&names) };
            let reason = format!("the agent had no MCP server `{}`; its servers: {names}", self.server);
            return Ok(Verdict::undecided(reason).place(&self.place));
        }
        let regex_budget = RegexBudget::new();
        let (mut matching, mut unknown) = (Vec::new(), None);
        for call in &calls {
            if self.tool.as_ref().is_some_and(|tool| !call.name.ends_with(&format!("__{tool}"))) {
                continue;
            }
            let mut fits = Ok(true);
            for argument in &self.arguments {
                match argument.fits(call, &regex_budget) {
                    Ok(true) => {}
                    Ok(false) => fits = Ok(false),
                    Err(error) if fits == Ok(true) => fits = Err(error),
                    Err(_) => {}
                }
            }
            match fits {
                Ok(true) => matching.push(call.summary()),
                Ok(false) => {}
                Err(error) => unknown = unknown.or(Some(error)),
            }
        }
        let count = matching.len() as u64;
        let expected = match self.max {
            Some(max) if max == self.min => format::count(usize::try_from(max).unwrap_or(usize::MAX), "call"),
            Some(max) => format!("{} to {max} calls", self.min),
            None => format!("at least {}", format::count(usize::try_from(self.min).unwrap_or(usize::MAX), "call")),
        };
        let reason =
            format!("{} of {}, {expected} expected", format::count(matching.len(), "matching call"), self.what());
        let unreported = unknown_calls(trace).filter(|_| !is_whole && (self.max.is_some() || count < self.min));
        let is_met = count >= self.min && self.max.is_none_or(|max| count <= max);
        let verdict = match (unknown.or(unreported), is_met) {
            (Some(error), _) => Verdict::undecided(error),
            (None, true) => Verdict::met(reason),
            (None, false) => {
                let all = || calls.iter().map(|call| call.summary()).collect::<Vec<_>>();
                let shown = format::few(if count > self.min { matching } else { all() }, SHOWN);
                let actual = if shown.is_empty() { "no call of the server".to_owned() } else { format::list(&shown) };
                Verdict::unmet(reason, expected, actual)
            }
        };
        let place = self.arguments.first().map_or(&self.place, ArgumentPattern::place);
        Ok(verdict.place(place))
    }
}

#[cfg(test)]
mod tests {
    use model::{Status, Step};
    use serde_json::Value;

    use super::*;
    use crate::check::tests::judged;

    fn status(assertion: &Value, evidence: &Evidence) -> Status {
        let mut assertion = assertion.clone();
        assertion["id"] = json!("a");
        judged(&assertion, evidence).status
    }

    #[test]
    fn calls_of_a_mock_are_those_that_it_received() {
        // The agent reports another call, which never arrived.
        let evidence = EvidenceBuilder::new()
            .call("mcp__issues__close_issue", json!({"id": 7}))
            .mocked("issues", "list_issues", json!({"state": "open"}))
            .evidence();
        let called = |rest: Value| {
            let mut assertion = json!({"type": "mcp_called", "server": "issues"});
            assertion.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            status(&assertion, &evidence)
        };
        assert_eq!(called(json!({})), Status::Met);
        assert_eq!(called(json!({"tool": "list_issues", "args_match": {"state": "^open$"}})), Status::Met);
        assert_eq!(called(json!({"tool": "list_issues", "max": 0, "min": 0})), Status::Unmet);
        assert_eq!(called(json!({"tool": "close_issue"})), Status::Unmet);
        assert_eq!(status(&json!({"type": "mcp_not_called", "server": "issue"}), &evidence), Status::Undecided);
    }

    #[test]
    fn calls_of_a_real_server_are_those_of_the_agent() {
        let evidence = EvidenceBuilder::new().call("mcp__plugin_shop_db__query", json!({"q": 1})).evidence();
        assert_eq!(status(&json!({"type": "mcp_called", "server": "db", "tool": "query"}), &evidence), Status::Met);
        assert_eq!(status(&json!({"type": "mcp_not_called", "server": "db"}), &evidence), Status::Unmet);
        assert_eq!(status(&json!({"type": "mcp_not_called", "server": "other"}), &evidence), Status::Met);
        let mut silent = EvidenceBuilder::new().asks("Go").calls_unreported().answer("Done.").evidence();
        let wanted = json!({"type": "mcp_not_called", "server": "db"});
        assert_eq!(status(&wanted, &silent), Status::Undecided);
        let names = model::MockNames { servers: vec!["db".into()], ..model::MockNames::default() };
        silent.trace.push(&Step::Mocks(names));
        assert_eq!(status(&wanted, &silent), Status::Met, "the mock knows its calls");
    }
}
