//! Configuration of an agent that is given by its command.

use model::decode::{Fields, Problems};
use model::{Diagnostic, Node};

use crate::field::without_functions;
use crate::subprocess::{Mode, ProgramConfig, command_words, words};

/// Returns the configuration for a command line: `acp:COMMAND`.
pub(super) fn from_argument(argument: Option<&str>) -> Result<ProgramConfig, Box<Diagnostic>> {
    let help = "write `acp:COMMAND`, or configure it: `{type: acp, command: [...]}`";
    let wrong = |message: String| Box::new(Diagnostic::error(message).help(help));
    let words = words(argument.unwrap_or_default()).map_err(|reason| wrong(format!("`acp`: {reason}")))?;
    if words.is_empty() {
        return Err(wrong("`acp` needs a command".to_owned()));
    }
    Ok(ProgramConfig { words, cwd: None, env: Vec::new(), mode: Mode::Lines })
}

/// Reads a configuration. Returns `None` if it has errors, which are added to `problems`.
pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<ProgramConfig> {
    let before = problems.len();
    without_functions(node, "acp", problems);
    let mut fields = Fields::of(node, "an `acp` agent", problems)?;
    fields.get("type");
    let words = fields.require("command", problems).and_then(|node| command_words(node, problems)).unwrap_or_default();
    let env = fields.text_map("env", problems).unwrap_or_default();
    fields.finish(problems);
    let env = env.into_iter().map(|(name, value)| (name, value.value)).collect();
    (problems.len() == before).then_some(ProgramConfig { words, cwd: None, env, mode: Mode::Lines })
}
