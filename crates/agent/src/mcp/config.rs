//! Configuration of a server: a command, or an address.

use mcp::Era;
use model::decode::{Fields, Problems, any_text};
use model::{Diagnostic, Node};

use crate::field::without_functions;
use crate::subprocess::{COMMAND_SYNONYMS, Mode, ProgramConfig, command_words, words};

/// Suggestion for a server that has neither `command` nor `url`.
const HELP: &str = "write `mcp:COMMAND` or `mcp:URL`, or configure the server in the project: \
                    `agents: {server: {type: mcp, command: [...]}}`";

/// Versions of the protocol that a configuration may name.
const VERSIONS: [(&str, Era); 2] = [("2025-11-25", Era::Sessions), ("2026-07-28", Era::Stateless)];

/// Configuration of a server.
#[derive(Debug, PartialEq)]
pub(super) struct Config {
    pub(super) place: Place,
    /// Era of the protocol; `None` if the server decides.
    pub(super) era: Option<Era>,
}

/// How the server is reached.
#[derive(Debug, PartialEq)]
pub(super) enum Place {
    /// As a program.
    Program(ProgramConfig),
    /// Over HTTP.
    Address { url: String, headers: Vec<(String, String)> },
}

impl Config {
    /// Returns the configuration for `mcp:COMMAND` or `mcp:URL`.
    pub(super) fn from_argument(argument: Option<&str>) -> Result<Self, Box<Diagnostic>> {
        let wrong = |message: String| Box::new(Diagnostic::error(message).help(HELP));
        let written = argument.unwrap_or_default().trim();
        let place = if is_address(written) {
            Place::Address { url: written.to_owned(), headers: Vec::new() }
        } else {
            let words = words(written).map_err(|reason| wrong(format!("`mcp`: {reason}")))?;
            if words.is_empty() {
                return Err(wrong("`mcp` needs the command or the address of a server".to_owned()));
            }
            Place::Program(program(words, None, Vec::new()))
        };
        Ok(Self { place, era: None })
    }

    /// Reads a configuration. Returns `None` if it has errors, which are added to `problems`.
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let before = problems.len();
        without_functions(node, "mcp", problems);
        let mut fields = Fields::of(node, "an `mcp` agent", problems)?.with_synonyms(&COMMAND_SYNONYMS);
        fields.get("type");
        let url = fields.text("url", problems);
        let mut words = fields.get("command").and_then(|node| command_words(node, problems)).unwrap_or_default();
        let args = fields.list("args", problems).unwrap_or_default();
        words.extend(args.iter().filter_map(|item| any_text(item, "an item of `args`", problems)));
        let pairs = |name: &'static str, fields: &mut Fields<'_>, problems: &mut Problems| {
            let map = fields.text_map(name, problems).unwrap_or_default();
            map.into_iter().map(|(name, value)| (name, value.value)).collect::<Vec<_>>()
        };
        let env = pairs("env", &mut fields, problems);
        let headers = pairs("headers", &mut fields, problems);
        let era = fields.choice("protocol", &VERSIONS, problems);
        for (key, other) in [("headers", "url"), ("env", "command"), ("args", "command")] {
            if let Some(written) = node.get(key).filter(|_| node.get(other).is_none()) {
                problems.push(written.error(format!("`{key}` is for a server with `{other}`")));
            }
        }
        match (&url, words.is_empty()) {
            (Some(url), true) if !is_address(url) => {
                let place = node.get("url").unwrap_or(node);
                let problem = place.error("`url` must begin with `http://` or `https://`");
                problems.push(match url.starts_with('$') {
                    true => problem.help("`${env.NAME}` is replaced by the value of the variable NAME"),
                    false => problem,
                });
            }
            (Some(_), true) | (None, false) => {}
            (Some(_), false) => {
                let place = node.get("url").unwrap_or(node);
                problems.push(place.error("a server has a `command` or a `url`, not both"));
            }
            (None, true) if problems.len() == before => {
                let problem = node.error("an `mcp` agent needs a `command` or a `url`");
                problems.push(problem.of_missing(&["command", "url"]).help(HELP));
            }
            (None, true) => {}
        }
        fields.finish(problems);
        let place = match url {
            Some(url) => Place::Address { url, headers },
            None => Place::Program(program(words, None, env)),
        };
        (problems.len() == before).then_some(Self { place, era })
    }
}

fn program(words: Vec<String>, cwd: Option<String>, env: Vec<(String, String)>) -> ProgramConfig {
    ProgramConfig { words, cwd, env, mode: Mode::Lines, traces: None }
}

fn is_address(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.to_ascii_lowercase().starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &Value) -> Result<Config, String> {
        let mut problems = Problems::new();
        let config = Config::read(&Node::from_json(value, &Source::new("a.yaml", "")), &mut problems);
        config.ok_or_else(|| problems.first().map(|problem| problem.message.clone()).unwrap_or_default())
    }

    #[test]
    fn a_server_is_a_command_or_an_address() {
        let Place::Program(program) = Config::from_argument(Some("node 'my server.js'")).unwrap().place else {
            panic!()
        };
        assert_eq!(program.words, ["node", "my server.js"]);
        let address = Config::from_argument(Some("https://example.com/mcp")).unwrap();
        assert_eq!(address.place, Place::Address { url: "https://example.com/mcp".to_owned(), headers: Vec::new() });
        assert!(Config::from_argument(None).is_err());
        let config =
            json!({"type": "mcp", "url": "http://x/", "headers": {"Authorization": "a"}, "protocol": "2025-11-25"});
        let config = read(&config).unwrap();
        assert_eq!(config.era, Some(Era::Sessions));
        for (wrong, message) in [
            (json!({"type": "mcp"}), "an `mcp` agent needs a `command` or a `url`"),
            (json!({"url": "x"}), "`url` must begin with `http://` or `https://`"),
            (json!({"url": "http://x", "command": "a"}), "a server has a `command` or a `url`, not both"),
            (json!({"command": "a", "headers": {"a": "b"}}), "`headers` is for a server with `url`"),
        ] {
            assert_eq!(read(&wrong), Err(message.to_owned()));
        }
    }
}
