//! Configuration of an agent: its command, unless it is known by name, and how its sessions are set up.

use model::decode::{Fields, Problems};
use model::{Diagnostic, Node, NodeKind};
use serde_json::Value;

use crate::field::without_functions;
use crate::subprocess::{COMMAND_SYNONYMS, Mode, ProgramConfig, command_words, words};

/// Keys for the sessions of an agent.
pub(super) const SESSION_KEYS: [&str; 2] = ["resume", "options"];

/// How the sessions of an agent are set up.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SessionConfig {
    /// True if each message gets a new process, in which the session is resumed.
    pub(super) resumes: bool,
    /// Values of the agent's configuration options, by id.
    pub(super) options: Vec<(String, Value)>,
}

impl SessionConfig {
    /// Reads the keys for sessions, and ignores all others.
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Self {
        let Some(mut fields) = Fields::of(node, "an `acp` agent", problems) else { return Self::default() };
        let resumes = fields.boolean("resume", problems).unwrap_or_default();
        let mut options = Vec::new();
        match fields.get("options").map(|node| (node, &node.kind)) {
            None => {}
            Some((_, NodeKind::Map(entries))) => {
                for (name, value) in entries {
                    match &value.kind {
                        NodeKind::Bool(_) | NodeKind::String(_) => options.push((name.value.clone(), value.to_json())),
                        _ => problems.push(value.error("the value of an option must be a string, `true` or `false`")),
                    }
                }
            }
            Some((node, _)) => problems.push(node.error("`options` must be a map of options to their values")),
        }
        Self { resumes, options }
    }
}

/// Returns the configuration for a command line: `acp:COMMAND`.
pub(super) fn from_argument(argument: Option<&str>) -> Result<ProgramConfig, Box<Diagnostic>> {
    let help = "write `acp:COMMAND`, or configure it: `{type: acp, command: [...]}`";
    let wrong = |message: String| Box::new(Diagnostic::error(message).help(help));
    let words = words(argument.unwrap_or_default()).map_err(|reason| wrong(format!("`acp`: {reason}")))?;
    if words.is_empty() {
        return Err(wrong("`acp` needs a command".to_owned()));
    }
    Ok(ProgramConfig { words, cwd: None, env: Vec::new(), mode: Mode::Lines, traces: None })
}

/// Reads a configuration. Returns `None` if it has errors, which are added to `problems`.
pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<ProgramConfig> {
    let before = problems.len();
    without_functions(node, "acp", problems);
    let mut fields = Fields::of(node, "an `acp` agent", problems)?.with_synonyms(&COMMAND_SYNONYMS);
    fields.get("type");
    let words = fields.require("command", problems).and_then(|node| command_words(node, problems)).unwrap_or_default();
    let env = fields.text_map("env", problems).unwrap_or_default();
    for key in SESSION_KEYS {
        fields.get(key);
    }
    fields.finish(problems);
    SessionConfig::read(node, problems);
    let env = env.into_iter().map(|(name, value)| (name, value.value)).collect();
    (problems.len() == before).then_some(ProgramConfig { words, cwd: None, env, mode: Mode::Lines, traces: None })
}
