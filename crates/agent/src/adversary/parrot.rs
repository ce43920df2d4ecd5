//! `parrot`: repeats the prompt. It passes assertions whose expected text is in the prompt.

use super::{Action, Adversary, Role};

pub(super) static PARROT: Adversary =
    Adversary::new("parrot", Role::Idle, "only repeats the prompt", |seen| vec![Action::Say(seen.message.to_owned())]);
