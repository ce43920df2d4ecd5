//! Runs scripts in steps: until they need the host, and again after the host has answered.

use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Persistent, Promise};

use crate::convert::from_script;
use crate::error::ScriptError;
use crate::realm::Realm;
use crate::trace::{Work, explain, explain_thrown};
use crate::value::{Request, Value};

/// Result of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The call ended.
    Done(Value),
    /// Requests must be answered. A runtime has only one queue, so they may belong to another task.
    Requests(Vec<Request>),
    /// The call waits for a timer that is due at this time, or for a pending answer, which may arrive earlier.
    Waits(Instant),
    /// The call waits only for pending answers.
    Owed,
}

/// Time limit of a call and the time used. Only the script's CPU time counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    pub budget: Duration,
    pub used: Duration,
}

impl Meter {
    pub fn new(budget: Duration) -> Self {
        Self { budget, used: Duration::ZERO }
    }

    pub fn left(&self) -> Duration {
        self.budget.saturating_sub(self.used)
    }
}

/// State of a [`Task`](crate::Task) in the runtime.
pub(crate) struct TaskState {
    pub started_call: StartedCall,
    pub meter: Meter,
}

/// Result of a call before it has returned.
pub(crate) enum StartedCall {
    Done(Value),
    Promised(Persistent<Promise<'static>>),
}

/// State once the queue is empty.
pub(crate) enum Turn {
    Settled,
    Idle,
}

/// Returns the value of `result`, or the promise if it is one.
pub(crate) fn started_call<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    result: rquickjs::Value<'js>,
) -> rquickjs::Result<StartedCall> {
    let then = result.as_object().filter(|_| !result.is_array());
    let is_thenable = match then {
        Some(_) if result.is_promise() => true,
        Some(object) => object.get::<_, rquickjs::Value<'js>>("then")?.is_function(),
        None => false,
    };
    if !is_thenable {
        return from_script(ctx, realm, result).map(StartedCall::Done);
    }
    let promise: rquickjs::Function<'js> = realm.tools(ctx)?.get("promise")?;
    let promise: Promise<'js> = promise.call((result,))?;
    Ok(StartedCall::Promised(Persistent::save(ctx, promise)))
}

/// Runs ready jobs and due timers until `promise` is settled or nothing is ready.
pub(crate) fn turn(
    context: &Context,
    realm: &Rc<Realm>,
    promise: &Persistent<Promise<'static>>,
    work: &Work<'_>,
) -> Result<Turn, ScriptError> {
    loop {
        run_jobs(context, realm, work)?;
        let state = context.with(|ctx| promise.clone().restore(&ctx).map(|promise| promise.state()));
        if state.map_err(|error| ScriptError::engine(&error))? != PromiseState::Pending {
            return Ok(Turn::Settled);
        }
        if !context.with(|ctx| fire(&ctx, realm, work))? {
            return Ok(Turn::Idle);
        }
    }
}

/// Number of jobs after which the deadline is checked, because the check takes longer than most jobs. The engine
/// itself stops a long job.
const JOBS: usize = 16;

/// Runs all jobs in the queue.
pub(crate) fn run_jobs(context: &Context, realm: &Rc<Realm>, work: &Work<'_>) -> Result<(), ScriptError> {
    for done in 1_usize.. {
        let more = match context.runtime().execute_pending_job() {
            Ok(more) => more,
            // An exception in a job is stored in its promise. An error is returned here only if a job was stopped.
            Err(job) => {
                let error = job.0.with(|ctx| explain(&ctx, realm, &rquickjs::Error::Exception, work));
                if realm.deadline.was_reported() {
                    return Err(error);
                }
                true
            }
        };
        let is_time_to_look = !more || done.is_multiple_of(JOBS);
        if realm.deadline.was_reported() || (is_time_to_look && realm.deadline.has_passed()) {
            return Err(ScriptError::TimedOut { budget: work.budget, place: None });
        }
        if !more {
            break;
        }
    }
    let rejected = std::mem::take(&mut *realm.rejected.borrow_mut());
    let Some((_, reason)) = rejected.into_iter().next() else { return Ok(()) };
    context.with(|ctx| match reason.restore(&ctx) {
        Ok(reason) => Err(explain_thrown(&ctx, realm, reason, work)),
        Err(error) => Err(ScriptError::engine(&error)),
    })
}

/// Calls the first timer that is due, if there is one.
fn fire(ctx: &Ctx<'_>, realm: &Rc<Realm>, work: &Work<'_>) -> Result<bool, ScriptError> {
    let now = Instant::now();
    let due = {
        let mut timers = realm.timers.borrow_mut();
        match timers.first_key_value() {
            Some(((at, _), _)) if *at <= now => timers.pop_first(),
            _ => None,
        }
    };
    let Some(((_, id), timer)) = due else { return Ok(false) };
    let callback = timer.callback.clone();
    if let Some(every) = timer.every
        && let Some(next) = now.checked_add(every)
    {
        realm.timers.borrow_mut().insert((next, id), timer);
    }
    let called = callback.restore(ctx).and_then(|callback| callback.call::<_, rquickjs::Value<'_>>(()));
    match called {
        Ok(_) => Ok(true),
        Err(error) => Err(explain(ctx, realm, &error, work)),
    }
}
