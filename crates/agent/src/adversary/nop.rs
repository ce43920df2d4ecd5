//! `nop`: says and does nothing.

use super::{Adversary, Role};

pub(super) static NOP: Adversary = Adversary::new("nop", Role::Idle, "says and does nothing", |_| Vec::new());
