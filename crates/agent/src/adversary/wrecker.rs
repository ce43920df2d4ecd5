//! `wrecker`: deletes every file, wastes turns, tokens and money, asks a question, and gives up. It makes assertions
//! about limits and about files that must remain fail.

use model::{Tokens, Usage};
use serde_json::json;

use super::observation::Observation;
use super::{Action, Adversary, Role};

/// Number of turns.
const TURNS: usize = 120;

pub(super) static WRECKER: Adversary =
    Adversary::new("wrecker", Role::Probe, "deletes every file, wastes turns, tokens and money, and gives up", act);

fn act(seen: &Observation<'_>) -> Vec<Action> {
    let wasted = Usage {
        tokens: Some(Tokens { input: 50_000_000, output: 5_000_000, ..Tokens::default() }),
        cost_usd: Some(1_000.0),
    };
    let mut actions = vec![Action::Use(wasted)];
    actions.extend(seen.files().into_iter().map(|file| Action::Delete(file.path)));
    actions.push(Action::Ask("Shall I go on?"));
    for _ in 0..TURNS {
        actions.extend([Action::Turn, Action::call("TodoWrite", json!({ "todos": [] }))]);
    }
    actions.push(Action::Say("I could not do this.".to_owned()));
    // A scenario in code ends when the agent gives up, before its assertions about limits.
    if seen.case.code.is_none() {
        actions.push(Action::GiveUp);
    }
    actions
}
