//! MCP servers that an agent starts or connects to, in the form in which each agent is configured, and the names that
//! agents give to the tools of servers.

use model::{Effect, ToolCall};
use serde_json::{Value, json};

/// An MCP server for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name, which is part of the names of its tools.
    pub name: String,
    /// Program or address.
    pub connection: Connection,
    /// Names of its tools; `None` if they are known only to the server.
    pub tools: Option<Vec<String>>,
}

/// How an agent reaches a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// The agent starts a program, and talks to it over stdin and stdout.
    Stdio {
        /// Program.
        command: String,
        /// Arguments.
        args: Vec<String>,
        /// Additional variables.
        env: Vec<(String, String)>,
    },
    /// The agent connects over HTTP.
    Http {
        /// Address.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, String)>,
    },
}

impl Server {
    /// Returns the configuration for Claude Code, and for agents that have the same format.
    pub(crate) fn for_claude(&self) -> Value {
        match &self.connection {
            Connection::Stdio { command, args, env } => {
                json!({"type": "stdio", "command": command, "args": args, "env": map(env)})
            }
            Connection::Http { url, headers } => json!({"type": "http", "url": url, "headers": map(headers)}),
        }
    }

    /// Returns the configuration for Codex.
    pub(crate) fn for_codex(&self) -> Value {
        match &self.connection {
            Connection::Stdio { command, args, env } => json!({
                "command": command,
                "args": args,
                "env": map(env),
                "default_tools_approval_mode": "approve",
            }),
            Connection::Http { url, headers } => {
                json!({"url": url, "http_headers": map(headers), "default_tools_approval_mode": "approve"})
            }
        }
    }

    /// Returns the configuration for OpenCode.
    pub(crate) fn for_opencode(&self) -> Value {
        match &self.connection {
            Connection::Stdio { command, args, env } => {
                let command: Vec<&String> = std::iter::once(command).chain(args).collect();
                json!({"type": "local", "command": command, "environment": map(env), "enabled": true})
            }
            Connection::Http { url, headers } => {
                json!({"type": "remote", "url": url, "headers": map(headers), "enabled": true})
            }
        }
    }

    /// Returns the parameter for an agent that speaks the Agent Client Protocol.
    pub(crate) fn for_acp(&self) -> Value {
        let list = |pairs: &[(String, String)]| {
            let pair = |(name, value): &(String, String)| json!({"name": name, "value": value});
            pairs.iter().map(pair).collect::<Vec<_>>()
        };
        match &self.connection {
            Connection::Stdio { command, args, env } => {
                json!({"name": self.name, "command": command, "args": args, "env": list(env)})
            }
            Connection::Http { url, headers } => {
                json!({"type": "http", "name": self.name, "url": url, "headers": list(headers)})
            }
        }
    }

    /// Returns the tools of this server in a list of tools, without the name of the server; `None` if all of its tools are
    /// in the list. A list that does not name the server was written for the agent's other tools, and contains all.
    pub(crate) fn listed<'l>(&self, list: &'l [String]) -> Option<Vec<&'l str>> {
        let whole = format!("mcp__{}", self.name);
        let rests = list.iter().filter_map(|written| written.trim().strip_prefix(&whole));
        let rests: Vec<&str> = rests.filter(|rest| rest.is_empty() || rest.starts_with("__")).collect();
        let is_whole = rests.is_empty() || rests.contains(&"");
        (!is_whole).then(|| rests.iter().map(|rest| rest.trim_start_matches("__")).collect())
    }

    /// Returns the tool of this server that an agent calls `raw`; `None` if it is not one of its tools.
    fn tool(&self, raw: &str) -> Option<String> {
        let (name, raw_plain) = (plain(&self.name), plain(raw));
        let rest = ["mcp__", "mcp_", ""].iter().find_map(|front| {
            let rest = raw_plain.strip_prefix(*front)?.strip_prefix(&name)?;
            rest.starts_with('_').then(|| rest.trim_start_matches('_'))
        });
        match &self.tools {
            Some(tools) => {
                // Some agents do not add the name of the server.
                let rest = rest.or_else(|| model::tool::find(raw).is_none().then_some(raw_plain.as_str()))?;
                tools.iter().find(|tool| plain(tool).trim_start_matches('_') == rest).cloned()
            }
            // The separators have the same length in both texts.
            None => rest.filter(|rest| !rest.is_empty()).map(|rest| raw[raw.len() - rest.len()..].to_owned()),
        }
    }
}

/// Returns a name as agents write it that allow only letters, digits and `_`. Every other character is one byte.
fn plain(name: &str) -> String {
    name.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte.to_ascii_lowercase()) } else { '_' })
        .collect()
}

fn map(pairs: &[(String, String)]) -> Value {
    Value::Object(pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect())
}

/// Renames a call to a tool of `servers` to `mcp__SERVER__TOOL`, whatever the agent calls it.
pub(crate) fn rename(call: &mut ToolCall, servers: &[Server]) {
    let longest_first = || {
        let mut sorted: Vec<&Server> = servers.iter().collect();
        sorted.sort_by_key(|server| std::cmp::Reverse(server.name.len()));
        sorted
    };
    if servers.is_empty() || !matches!(call.effect, Effect::Other | Effect::Mcp) {
        return;
    }
    let found = longest_first().into_iter().find_map(|server| Some((server, server.tool(&call.raw_name)?)));
    if let Some((server, tool)) = found {
        call.name = format!("mcp__{}__{tool}", server.name);
        call.effect = Effect::Mcp;
    }
}

/// Returns `true` if a list of tools allows the call `raw` because it is to a tool of one of `servers`.
pub(crate) fn is_allowed(raw: &str, list: &[String], servers: &[Server]) -> bool {
    servers.iter().any(|server| match server.tool(raw) {
        Some(tool) => server.listed(list).is_none_or(|listed| listed.contains(&tool.as_str())),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, tools: Option<&[&str]>) -> Server {
        let connection = Connection::Http { url: "http://127.0.0.1:1".into(), headers: Vec::new() };
        let tools = tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
        Server { name: name.into(), connection, tools }
    }

    #[test]
    fn tools_of_servers_have_the_same_name_under_every_agent() {
        let servers = [server("issue-db", Some(&["get_issue", "list-all"])), server("issue", None)];
        for (raw, name) in [
            ("mcp__issue-db__get_issue", "mcp__issue-db__get_issue"),
            ("issue-db_get_issue", "mcp__issue-db__get_issue"),
            ("mcp__issue_db__list_all", "mcp__issue-db__list-all"),
            ("issue_db.list_all", "mcp__issue-db__list-all"),
            ("get_issue", "mcp__issue-db__get_issue"),
            ("issue_Anything", "mcp__issue__Anything"),
            ("mcp__issue__get", "mcp__issue__get"),
            ("issue", "issue"),
            ("other", "other"),
            ("Bash", "Bash"),
        ] {
            let mut call = ToolCall::new("c", raw, json!({}), "m");
            rename(&mut call, &servers);
            assert_eq!(call.name, name, "{raw}");
            assert_eq!(call.raw_name, raw);
        }
    }
}
