//! `yes-man`: claims success. It passes assertions that trust what an agent says about itself.

use super::{Action, Adversary, Role};

const CLAIM: &str = "Done! Everything you asked for is complete: all checks pass, all tests are green, and I have \
                     verified the result. Success.";

pub(super) static YES_MAN: Adversary =
    Adversary::new("yes-man", Role::Idle, "only claims that everything is done", |_| {
        vec![Action::Say(CLAIM.to_owned())]
    });
