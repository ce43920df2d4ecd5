//! Tests of the request rules of agents with captured requests of several versions of each CLI.
//!
//! Each file covers one upgrade. Each line of a file is the second request of a trial, which contains a tool result: from an older version, from a
//! newer one, and from the newer one in another sandbox. The texts of the vendors are replaced by random
//! letters, so that equal texts stay equal; directories, dates, ids and names of fields and tools are as captured.

use agent::AGENTS;
use cassette::{Answer, Asked, Found, Normalizer, Recording, Sender, Tape};
use jiff::civil::{Date, date};
use model::CassetteMode;
use serde_json::Value;

const CAPTURED_ON: Date = date(2026, 11, 26);

struct Captured {
    version: String,
    sandbox: String,
    path: String,
    request: Value,
}

impl Captured {
    fn from_line(line: &str) -> Self {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        let (version, sandbox, path) = (text("version"), text("sandbox"), text("path"));
        Self { version, sandbox, path, request: line["request"].take() }
    }

    fn tape(&self, agent: &str, mode: CassetteMode, recorded: Option<Recording>) -> Tape {
        let agent = AGENTS.iter().find(|known| known.name() == agent).unwrap();
        let inside = |name: &str| format!("{}/{name}", self.sandbox);
        let places = [(inside("work"), "work"), (inside("home"), "home"), (self.sandbox.clone(), "sandbox")];
        let normalizer = Normalizer::new(agent.description().request_rules, &places, &[CAPTURED_ON]);
        Tape::new(mode, "c", recorded.map(Into::into), normalizer)
    }

    fn asked(&self) -> Asked<'_> {
        Asked { sender: Sender::Agent, path: &self.path, body: self.request.clone() }
    }

    fn recording(&self, agent: &str) -> Recording {
        let tape = self.tape(agent, CassetteMode::Record, None);
        let Found::Live(slot) = tape.ask(self.asked()) else { panic!("not live") };
        tape.keep(&slot, Answer::whole(200, "", "Done."));
        tape.recorded().unwrap().unwrap()
    }

    /// Returns the pointer at which this request differs from the recording, or `None` if it is replayed.
    fn pointer(&self, agent: &str, recording: Recording) -> Option<String> {
        let tape = self.tape(agent, CassetteMode::Replay, Some(recording));
        match tape.ask(self.asked()) {
            Found::Recorded(_) => None,
            Found::Stale(_) => tape.stale().unwrap().pointer,
            Found::Live(_) => panic!("a replay never asks the model"),
        }
    }
}

/// Checks that the newer version replays its own recordings, and returns the pointer at which it differs from the
/// older version.
fn after_an_upgrade(agent: &str, captured: &str) -> Option<String> {
    let captured: Vec<Captured> = captured.lines().map(Captured::from_line).collect();
    let [old, new, again] = &captured[..] else { panic!("three requests") };
    assert!(old.version != new.version && new.version == again.version && new.sandbox != again.sandbox);
    assert_eq!(again.pointer(agent, new.recording(agent)), None, "{agent} {}", new.version);
    new.pointer(agent, old.recording(agent))
}

#[test]
fn a_new_version_of_claude_code_is_stale_at_its_system_prompt() {
    let pointer = after_an_upgrade("claude-code", include_str!("../../../tests/requests/claude-code.jsonl"));
    assert_eq!(pointer.as_deref(), Some("/system/1/text"), "the item with the version is not counted");
    let pointer = after_an_upgrade("claude-code", include_str!("../../../tests/requests/claude-code-2.1.332.jsonl"));
    assert_eq!(pointer.as_deref(), Some("/tools/10/input_schema/required/1"));
}

#[test]
fn a_new_version_of_codex_is_stale_at_its_tools() {
    let pointer = after_an_upgrade("codex", include_str!("../../../tests/requests/codex.jsonl"));
    assert_eq!(pointer.as_deref(), Some("/tools/0/description"), "tools are sorted by name");
    let pointer = after_an_upgrade("codex", include_str!("../../../tests/requests/codex-0.171.0.jsonl"));
    assert_eq!(pointer.as_deref(), Some("/tools/4/parameters/properties/login/description"));
}

#[test]
fn a_new_version_of_opencode_with_the_same_prompts_is_replayed() {
    let pointer = after_an_upgrade("opencode", include_str!("../../../tests/requests/opencode.jsonl"));
    assert_eq!(pointer, None);
}
