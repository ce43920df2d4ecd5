//! The contract, for local sandboxes.

use super::contract::{directory_tests, layout_tests};
use super::kind::Kind;
use super::processes::process_tests;

fn kind() -> Kind {
    Kind::of("local")
}

directory_tests!(kind);
layout_tests!(kind);
process_tests!(kind);
