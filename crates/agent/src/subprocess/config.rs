//! Configuration of a program, from a project or the command line.

use std::path::{Component, Path};

use model::decode::{Fields, Problems, any_text, text};
use model::{Diagnostic, Node, NodeKind, nearest};

use super::shell_words::words;
use crate::field::without_functions;
use crate::traces::{TraceKeys, TraceSettings};

/// Placeholder for the message in the arguments of a program that is run once per message.
pub(super) const MESSAGE: &str = "{message}";
/// Placeholder for the case's variables as JSON, in the same arguments.
pub(super) const VARS: &str = "{vars}";
/// Placeholder for the project's folder.
pub(super) const PROJECT: &str = "{project}";

/// Keys of other programs for `command`.
pub(crate) const COMMAND_SYNONYMS: [(&str, &str); 3] = [("cmd", "command"), ("run", "command"), ("program", "command")];

/// Names of other programs for the message.
const OF_MESSAGE: [&str; 6] = ["prompt", "question", "query", "text", "input", "msg"];

/// Configuration of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramConfig {
    /// The program and its arguments; never empty.
    pub(crate) words: Vec<String>,
    /// Working directory, relative to the agent's, or below [`PROJECT`].
    pub(crate) cwd: Option<String>,
    /// Variables added to its environment.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) mode: Mode,
    /// How its spans are received, if it sends any.
    pub(crate) traces: Option<TraceSettings>,
}

/// How to communicate with a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One process per conversation, with one line of JSON in each direction per message.
    Lines,
    /// One process per message.
    Once {
        /// True if the message is sent to its stdin.
        stdin: bool,
        /// True if its stdout is JSON.
        json: bool,
    },
}

impl ProgramConfig {
    /// Returns the configuration for a command line: `subprocess:COMMAND`.
    pub(super) fn from_argument(argument: Option<&str>) -> Result<Self, Box<Diagnostic>> {
        let help = "write `subprocess:COMMAND`, or configure it: `{type: subprocess, command: [...]}`";
        let wrong = |message: String| Box::new(Diagnostic::error(message).help(help));
        let words = words(argument.unwrap_or_default()).map_err(|reason| wrong(format!("`subprocess`: {reason}")))?;
        if words.is_empty() {
            return Err(wrong("`subprocess` needs a command".to_owned()));
        }
        Ok(Self { words, cwd: None, env: Vec::new(), mode: Mode::Lines, traces: None })
    }

    /// Reads a configuration. Returns `None` if it has errors, which are added to `problems`.
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let before = problems.len();
        without_functions(node, "subprocess", problems);
        let mut fields = Fields::of(node, "a `subprocess` agent", problems)?.with_synonyms(&COMMAND_SYNONYMS);
        fields.get("type");
        let mut words =
            fields.require("command", problems).and_then(|node| command(node, problems)).unwrap_or_default();
        let args = fields.list("args", problems).unwrap_or_default();
        words.extend(args.iter().filter_map(|item| any_text(item, "an item of `args`", problems)));
        let cwd = fields.get("cwd").and_then(|node| inside(node, problems));
        let env = fields.text_map("env", problems).unwrap_or_default();
        let mode = Self::mode(&mut fields, &words, problems);
        let traces = fields.get("traces");
        let traces = traces.and_then(|node| TraceSettings::read(node, TraceKeys::OwnProcess, problems));
        fields.finish(problems);
        let env = env.into_iter().map(|(name, value)| (name, value.value)).collect();
        (problems.len() == before).then_some(Self { words, cwd, env, mode, traces })
    }

    fn mode(fields: &mut Fields<'_>, words: &[String], problems: &mut Problems) -> Mode {
        let is_once = fields.choice("mode", &[("jsonl", false), ("oneshot", true)], problems).unwrap_or(false);
        let stdin = fields.choice("input", &[("stdin", true), ("argument", false)], problems);
        let json = fields.choice("output", &[("text", false), ("json", true)], problems);
        let takes_message = words.iter().skip(1).any(|word| word.contains(MESSAGE));
        let node = fields.node();
        let mut wrong = |key: &str, message: String, help: String| {
            let place = node.get(key).or_else(|| node.get("command")).unwrap_or(node);
            problems.push(place.error(message).help(help));
        };
        if !is_once {
            for key in ["input", "output"] {
                if fields.key_span(key).is_some() {
                    let help = "without it, messages and answers are lines of JSON";
                    wrong(key, format!("`{key}` is for `mode: oneshot`"), help.to_owned());
                }
            }
            if takes_message {
                let help = "add `mode: oneshot`; otherwise the program reads the messages on its stdin";
                wrong("args", format!("`{MESSAGE}` is for `mode: oneshot`"), help.to_owned());
            }
            return Mode::Lines;
        }
        if stdin == Some(false) && !takes_message {
            let help = format!("write `{MESSAGE}` where the message belongs");
            wrong("input", format!("`input: argument` needs `{MESSAGE}` in `args`"), help);
        }
        Mode::Once { stdin: stdin.unwrap_or(!takes_message), json: json.unwrap_or(false) }
    }
}

/// Warns about words of a configuration that are probably meant as placeholders, and are none.
pub(super) fn report_placeholders(config: &Node, problems: &mut Problems) {
    for node in ["command", "args", "cwd"].into_iter().filter_map(|key| config.get(key)) {
        let texts = match &node.kind {
            NodeKind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        for text in texts {
            let written = text.as_str().unwrap_or_default();
            // A placeholder in double braces may have spaces.
            let closed = written.replace("{{ ", "{{").replace(" }}", "}}");
            let found = closed.split_whitespace().find_map(meant_placeholder);
            if let Some((written, meant)) = found.or_else(|| meant_variable(written)) {
                let problem =
                    text.warning(format!("`{written}` is not a placeholder, so the program gets it as it is"));
                let known = format!("placeholders: `{MESSAGE}`, `{VARS}` and `{PROJECT}`");
                // Without quotes, YAML reads a placeholder as a map.
                let is_bare = text.source.text.get(text.span.start()..text.span.end()) == Some(written);
                let quoted = format!("\"{meant}\"");
                problems.push(problem.suggest(Some(if is_bare { &quoted } else { meant })).help(known));
            }
        }
    }
}

/// Returns what looks like a placeholder in `word` and is none, and the placeholder that is probably meant.
fn meant_placeholder(word: &str) -> Option<(&str, &'static str)> {
    const KNOWN: [&str; 3] = [MESSAGE, VARS, PROJECT];
    let word = word.trim_matches(['"', '\'']);
    let start = word.find("{{").or_else(|| word.find("${")).or_else(|| word.find('{'))?;
    let end = word.rfind('}')? + 1;
    let written = word.get(start..end)?;
    let name = written.trim_matches(['{', '}', '$']);
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-=/.:".contains(c));
    if KNOWN.contains(&written) || ![&word[..start], name, &word[end..]].into_iter().all(is_plain) {
        return None;
    }
    let names = KNOWN.map(|known| known.trim_matches(['{', '}']));
    let near = nearest(name, names).or(OF_MESSAGE.contains(&name).then_some(names[0]));
    let meant = near.and_then(|near| KNOWN.into_iter().find(|known| known.trim_matches(['{', '}']) == near));
    meant.map(|meant| (written, meant))
}

/// Returns a word that is a variable of a shell, without a shell, and the placeholder that is probably meant.
fn meant_variable(word: &str) -> Option<(&str, &'static str)> {
    let name = word.strip_prefix('$')?.to_ascii_lowercase();
    let is_message = OF_MESSAGE.contains(&&*name) || format!("{{{name}}}") == MESSAGE;
    is_message.then_some((word, MESSAGE))
}

/// Reads the words of a command, which is a string or a list.
pub(crate) fn command(node: &Node, problems: &mut Problems) -> Option<Vec<String>> {
    let found = match &node.kind {
        NodeKind::List(items) => items.iter().map(|item| text(item, "an item of `command`", problems)).collect(),
        _ => {
            let written = text(node, "`command`", problems)?;
            match words(&written) {
                Ok(words) => Some(words),
                Err(reason) => {
                    let problem = node.error(format!("`command`: {reason}"));
                    problems.push(match reason.ends_with("is not closed") {
                        true => problem.help("close it, or write a list of the words: `command: [PROGRAM, ARGUMENT]`"),
                        false => problem.help("write `command: [sh, -c, \"…\"]`"),
                    });
                    return None;
                }
            }
        }
    };
    if found.as_ref().is_some_and(Vec::is_empty) {
        problems.push(node.error("`command` is empty"));
    }
    if let NodeKind::List(items) = &node.kind {
        problems.extend(items.first().and_then(with_arguments));
        problems.extend(items.iter().skip(1).find_map(of_a_shell));
    }
    found
}

/// Returns a warning about the first item of a command that contains arguments. A path may have spaces.
fn with_arguments(item: &Node) -> Option<Diagnostic> {
    let written = item.as_str()?;
    let Some((program, rest)) = written.trim().split_once(char::is_whitespace) else {
        let problem = item.warning("the name of the program begins or ends with a space");
        return (written.trim() != written).then(|| problem.help(format!("write `{}`", written.trim())));
    };
    let has_arguments = !program.contains('/') || rest.trim_start().starts_with('-');
    let problem = item.warning("the first item of `command` is the name of a program, without its arguments");
    has_arguments.then(|| problem.help(format!("write `{program}` as an item of its own, and each argument too")))
}

/// Returns a warning about an item of a command that joins commands in a shell.
fn of_a_shell(item: &Node) -> Option<Diagnostic> {
    let written = item.as_str().filter(|word| ["&&", "||", "|", ";", ">", ">>", "2>&1"].contains(word))?;
    let problem =
        item.warning(format!("`{written}` is an argument of the program here, because no shell runs the command"));
    Some(problem.help("write `[sh, -c, \"…\"]` with the whole command in one item"))
}

/// Reads a folder, which must be inside the sandbox or the project.
fn inside(node: &Node, problems: &mut Problems) -> Option<String> {
    let written = text(node, "`cwd`", problems)?;
    let below = written.strip_prefix(PROJECT).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let below = below.map_or(written.as_str(), |rest| rest.trim_start_matches('/'));
    let is_inside = Path::new(below).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_inside {
        problems
            .push(node.error("`cwd` must be a folder within the sandbox or the project").help(
                "write a path relative to the agent's working directory, or start it with `{project}`, the project's folder",
            ));
        return None;
    }
    Some(written)
}
