//! Commands around trials in the form of the report.

use std::sync::Arc;

use model::{HookKind, HookRecord};
use serde::Serialize;

/// A command, and the trial that it ran for, if any.
pub(super) struct Ran {
    pub(super) trial: Option<Arc<str>>,
    pub(super) hook: HookRecord,
}

#[derive(Serialize)]
pub(super) struct Hooks<'a> {
    pre_run: Vec<Hook<'a>>,
    post_grade: Vec<Hook<'a>>,
    post_run: Vec<Hook<'a>>,
}

impl<'a> Hooks<'a> {
    /// Groups the commands by hook, each in the order in which they ran.
    pub(super) fn of(ran: &'a [Ran]) -> Self {
        let when = |kind| ran.iter().filter(|ran| ran.hook.hook == kind).map(Hook::of).collect();
        Self {
            pre_run: when(HookKind::PreRun),
            post_grade: when(HookKind::PostGrade),
            post_run: when(HookKind::PostRun),
        }
    }
}

#[derive(Serialize)]
struct Hook<'a> {
    trial: Option<&'a str>,
    command: &'a str,
    exit_code: Option<i32>,
    timed_out: bool,
    error: Option<&'a str>,
    stdout: &'a str,
    stderr: &'a str,
    duration_ms: u64,
}

impl<'a> Hook<'a> {
    fn of(ran: &'a Ran) -> Self {
        let hook = &ran.hook;
        Self {
            trial: ran.trial.as_deref(),
            command: &hook.command,
            exit_code: hook.exit_code,
            timed_out: hook.timed_out,
            error: hook.error.as_deref(),
            stdout: &hook.stdout,
            stderr: &hook.stderr,
            duration_ms: hook.duration_ms,
        }
    }
}
