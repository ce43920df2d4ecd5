//! How to start the program of a bot: its configuration, `start`.

use std::path::Path;
use std::time::Duration;

use model::decode::{self, Fields, Problems};
use model::{Diagnostic, Node, NodeKind};
use regex::Regex;
use reqwest::Url;

use super::address::address;
use crate::subprocess::{COMMAND_SYNONYMS, Mode, ProgramConfig, command_words, missing_file};

/// Default time limit for a program to become ready.
const TIMEOUT_MS: u64 = 60_000;

/// Configuration of a program that serves a bot.
#[derive(Debug, Clone)]
pub(super) struct Start {
    /// The program and its arguments; never empty.
    pub(super) words: Vec<String>,
    /// Working directory, relative to the project's folder.
    pub(super) cwd: Option<String>,
    /// Variables added to the environment of this process.
    pub(super) env: Vec<(String, String)>,
    /// Sign that the program is ready; `None` if it is ready once it listens at the agent's address.
    pub(super) ready: Option<Ready>,
    /// Time limit for it to become ready.
    pub(super) timeout: Duration,
}

/// Sign that a program is ready.
#[derive(Debug, Clone)]
pub(super) enum Ready {
    /// A request to this address is answered with a success, a redirect, or a request for credentials.
    Address(Box<Url>),
    /// It listens on this port of loopback.
    Port(u16),
    /// It has printed a line that matches.
    Line(Regex),
}

impl Start {
    /// Reads a configuration. Returns `None` if it has errors, which are added to `problems`.
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        if matches!(node.kind, NodeKind::String(_) | NodeKind::List(_)) {
            let words = command_words(node, problems)?;
            return Some(Self { words, cwd: None, env: Vec::new(), ready: None, timeout: limit(None) });
        }
        let before = problems.len();
        let mut fields = Fields::of(node, "`start`", problems)?.in_either_case().with_synonyms(&COMMAND_SYNONYMS);
        let words = fields.require("command", problems).and_then(|node| command_words(node, problems));
        let cwd = fields.text("cwd", problems);
        let env = fields.text_map("env", problems).unwrap_or_default();
        let ready = fields.get("ready").and_then(|node| ready(node, problems));
        let timeout = limit(fields.duration_ms("timeout", problems));
        fields.finish(problems);
        let env = env.into_iter().map(|(name, value)| (name, value.value)).collect();
        let words = words.filter(|_| problems.len() == before)?;
        Some(Self { words, cwd, env, ready, timeout })
    }

    /// Returns a warning about its folder, or a file that the command names, that does not exist. `project` is the
    /// project's folder, and `node` the setting.
    pub(super) fn missing_file(&self, project: &Path, node: Option<&Node>) -> Option<Diagnostic> {
        let cwd = project.join(self.cwd.as_deref().unwrap_or_default());
        if let Some(written) = self.cwd.as_deref().filter(|_| !cwd.is_dir()) {
            let problem = Diagnostic::warning(format!("`start` runs in the folder `{written}`, which does not exist"));
            let problem = problem.help("it is relative to the project's folder");
            let place = node.map(|node| node.get("cwd").unwrap_or(node));
            return Some(Diagnostic { source: place.map(Node::excerpt), ..problem });
        }
        let program =
            ProgramConfig { words: self.words.clone(), cwd: None, env: Vec::new(), mode: Mode::Lines, traces: None };
        missing_file(&program, &cwd, node.map(|node| node.get("command").unwrap_or(node)))
    }

    /// Returns its command line, for messages.
    pub(super) fn shown(&self) -> String {
        self.words.join(" ")
    }
}

fn limit(ms: Option<u64>) -> Duration {
    Duration::from_millis(ms.unwrap_or(TIMEOUT_MS))
}

fn ready(node: &Node, problems: &mut Problems) -> Option<Ready> {
    let help = "write an address (`http://127.0.0.1:3000/health`), a port (`3000`), or a pattern for a line that the \
                program prints (`/listening on/`)";
    if let NodeKind::Number(number) = &node.kind {
        let port = decode::as_whole(number).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        if port.is_none() {
            problems.push(node.error("a port is a number from 1 to 65535").help(help));
        }
        return port.map(Ready::Port);
    }
    let written = decode::text(node, "`ready`", problems)?;
    if let Some(pattern) = written.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        let compiled = Regex::new(pattern);
        return compiled.map(Ready::Line).map_err(|error| problems.push(node.error(error.to_string()))).ok();
    }
    if written.contains("://") {
        let found = address(&written).map_err(|problem| problems.push(node.error(problem)));
        return found.map(|url| Ready::Address(Box::new(url))).ok();
    }
    if let Some(port) = written.parse().ok().filter(|port| *port > 0) {
        return Some(Ready::Port(port));
    }
    problems.push(node.error(format!("`{written}` does not say how the program shows that it is ready")).help(help));
    None
}
