//! Systems without PID namespaces.

use super::arguments::Arguments;
use super::isolation::Isolation;

pub(super) fn main(_: &Arguments) -> Result<u8, String> {
    Err("this system has no PID namespaces".into())
}

pub(super) fn init(_: &Arguments) -> Result<u8, String> {
    Err("this system has no PID namespaces".into())
}

pub(super) fn be(_: (u32, u32)) -> Result<(), String> {
    Err("this system has no user namespaces".into())
}

pub(super) fn die_with_parent() -> Result<(), String> {
    Ok(())
}

pub(super) fn limit(_: &Isolation) -> Result<(), String> {
    Err("this system cannot isolate programs".into())
}

pub(super) fn restrict(_: &Isolation) {}
