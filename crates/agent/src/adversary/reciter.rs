//! `reciter`: says the text of the skill or prompt under test. It shows which assertions only look for words from that
//! text.

use super::{Action, Adversary, Role};

pub(super) static RECITER: Adversary =
    Adversary::new("reciter", Role::Probe, "only recites the skill", |seen| match seen.skill() {
        Some(skill) => vec![Action::Say(format!("{}\n{}", skill.description, skill.body))],
        None => Vec::new(),
    })
    .only_if(|case| case.subject.skill().is_some());
