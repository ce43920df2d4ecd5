//! Adversaries that speak and do nothing else.

use super::{Action, Adversary, Role};

/// Says and does nothing.
pub(super) static NOP: Adversary = Adversary::new("nop", Role::Idle, "says and does nothing", |_| Vec::new());

/// Repeats the prompt. It passes assertions whose expected text is in the prompt.
pub(super) static PARROT: Adversary =
    Adversary::new("parrot", Role::Idle, "only repeats the prompt", |seen| vec![Action::Say(seen.message.to_owned())]);

const CLAIM: &str = "Done! Everything you asked for is complete: all checks pass, all tests are green, and I have \
                     verified the result. Success.";

/// Claims success. It passes assertions that trust what an agent says about itself.
pub(super) static YES_MAN: Adversary =
    Adversary::new("yes-man", Role::Idle, "only claims that everything is done", |_| {
        vec![Action::Say(CLAIM.to_owned())]
    });

/// Says the text of the skill or prompt under test. It shows which assertions only look for words from that text.
pub(super) static RECITER: Adversary =
    Adversary::new("reciter", Role::Probe, "only recites the skill", |seen| match seen.skill() {
        Some(skill) => vec![Action::Say(format!("{}\n{}", skill.description, skill.body))],
        None => Vec::new(),
    })
    .only_if(|case| case.subject.skill().is_some());
