//! Running scripts in turns: as far as they get without the host, then again when it has answered.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Persistent, Promise};

use crate::convert::from_script;
use crate::error::ScriptError;
use crate::realm::Realm;
use crate::runtime::Runtime;
use crate::trace::{Work, explain, explain_thrown};
use crate::value::{Function, Value};

/// What a script asks the host for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// To be named with the answer.
    pub id: u64,
    /// The name of the [`Asks`](crate::Asks) that was called.
    pub name: Arc<str>,
    /// The bound arguments and then those of the script.
    pub arguments: Vec<Value>,
}

/// A call under way. It belongs to the runtime that began it and ends with [`Progress::Done`], an error, or
/// [`Runtime::cancel`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Task {
    pub(crate) runtime: u64,
    pub(crate) id: u64,
}

/// How far a step came.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// To the end.
    Done(Value),
    /// To requests that have to be answered. A runtime has one queue: they may be another task's.
    Asks(Vec<Request>),
    /// To where it waits for a timer, which is due then, or for an answer that is still owed, which may come earlier.
    Waits(Instant),
    /// To where it waits for answers that are still owed, and for nothing else.
    Owed,
}

/// What a call was given and what of it is used up. Time counts only while the script has the processor.
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

/// What the runtime knows of a [`Task`].
pub(crate) struct Underway {
    begun: Begun,
    meter: Meter,
}

/// What a call came to before it returned.
pub(crate) enum Begun {
    Done(Value),
    Promised(Persistent<Promise<'static>>),
}

/// Where the queue stands when it is empty.
pub(crate) enum Turn {
    Settled,
    Idle,
}

/// Takes `result` out, or the promise it is.
pub(crate) fn begun<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, result: rquickjs::Value<'js>) -> rquickjs::Result<Begun> {
    let then = result.as_object().filter(|_| !result.is_array());
    let is_thenable = match then {
        Some(_) if result.is_promise() => true,
        Some(object) => object.get::<_, rquickjs::Value<'js>>("then")?.is_function(),
        None => false,
    };
    if !is_thenable {
        return from_script(ctx, realm, result).map(Begun::Done);
    }
    let promise: rquickjs::Function<'js> = realm.tools(ctx)?.get("promise")?;
    let promise: Promise<'js> = promise.call((result,))?;
    Ok(Begun::Promised(Persistent::save(ctx, promise)))
}

/// Runs what is ready: jobs, and timers that are due, until `promise` is settled or nothing is ready.
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

/// After how many jobs the clock is looked at, which takes longer than most of them do. One that takes long is stopped
/// by itself.
const JOBS: usize = 16;

/// Runs the queue empty.
pub(crate) fn run_jobs(context: &Context, realm: &Rc<Realm>, work: &Work<'_>) -> Result<(), ScriptError> {
    for done in 1_usize.. {
        let more = match context.runtime().execute_pending_job() {
            Ok(more) => more,
            // A job keeps what a script throws for those who wait for it. Only being stopped comes as far as this.
            Err(job) => {
                let error = job.0.with(|ctx| explain(&ctx, realm, &rquickjs::Error::Exception, work));
                if realm.deadline.was_told() {
                    return Err(error);
                }
                true
            }
        };
        let is_time_to_look = !more || done.is_multiple_of(JOBS);
        if realm.deadline.was_told() || (is_time_to_look && realm.deadline.has_passed()) {
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

/// Calls back the first timer that is due, if one is.
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

impl Runtime {
    /// Calls `function` and lets it run until it first waits for something. `budget` is the time that it may have the
    /// processor, all steps together.
    ///
    /// # Errors
    /// What the function threw before it first waited.
    pub fn begin(&mut self, function: &Function, arguments: &[Value], budget: Duration) -> Result<Task, ScriptError> {
        let mut meter = Meter::new(budget);
        let begun = self.start(function, arguments, &mut meter)?;
        let id = self.realm.number();
        self.tasks.insert(id, Underway { begun, meter });
        Ok(Task { runtime: self.realm.id, id })
    }

    /// Lets `task` go on as far as it gets. After an error or [`Progress::Done`] the task is over.
    ///
    /// # Errors
    /// What it threw; [`ScriptError::NeverSettled`] if nothing it could wait for is left.
    pub fn step(&mut self, task: &Task) -> Result<Progress, ScriptError> {
        let underway = if task.runtime == self.realm.id { self.tasks.remove(&task.id) } else { None };
        let Some(Underway { begun, mut meter }) = underway else {
            return Err(ScriptError::Failed("this task is over, or another runtime's".into()));
        };
        let promise = match begun {
            Begun::Done(value) => return self.drain(&mut meter, None).map(|()| Progress::Done(value)),
            Begun::Promised(promise) => promise,
        };
        if let Turn::Settled = self.turn(&promise, &mut meter, None)? {
            return self.settled(&promise, &mut meter, None).map(Progress::Done);
        }
        let progress = self.idle(0)?;
        self.tasks.insert(task.id, Underway { begun: Begun::Promised(promise), meter });
        Ok(progress)
    }

    /// Answers a request: its promise is fulfilled with the value, or rejected with an error of that message. An answer
    /// to a request that is no longer waited for is dropped.
    ///
    /// # Errors
    /// If the value cannot cross.
    pub fn answer(&mut self, request: u64, answer: &Result<Value, String>) -> Result<(), ScriptError> {
        let mut meter = Meter::new(crate::runtime::HOUSEKEEPING);
        self.enter(&mut meter, None, |ctx, realm| realm.settle(ctx, request, answer).map(|_| ()))
    }

    /// What was asked for that nobody was told of yet: what a script asked right before it was stopped.
    pub fn requests(&mut self) -> Vec<Request> {
        self.realm.requests()
    }

    /// Gives a task up. What it has started in the runtime, timers and requests, stays there.
    pub fn cancel(&mut self, task: &Task) {
        if task.runtime == self.realm.id {
            self.tasks.remove(&task.id);
        }
    }

    /// What a script that is not done waits for, where it began at `since`. A timer that was there before is not what it
    /// waits for.
    fn idle(&mut self, since: u64) -> Result<Progress, ScriptError> {
        let requests = self.realm.requests();
        if !requests.is_empty() {
            return Ok(Progress::Asks(requests));
        }
        let timers = self.realm.timers.borrow();
        if let Some((at, _)) = timers.keys().next()
            && (!self.tasks.is_empty() || timers.keys().any(|(_, id)| *id >= since))
        {
            return Ok(Progress::Waits(*at));
        }
        if self.realm.waiting.borrow().is_empty() { Err(ScriptError::NeverSettled) } else { Ok(Progress::Owed) }
    }

    /// Runs until `promise` is settled, with the host at hand to answer and time really passing.
    pub(crate) fn finish(
        &mut self,
        promise: &Persistent<Promise<'static>>,
        since: u64,
        meter: &mut Meter,
        expression: Option<&str>,
        host: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Result<(), ScriptError> {
        loop {
            if let Turn::Settled = self.turn(promise, meter, expression)? {
                return Ok(());
            }
            match self.idle(since)? {
                Progress::Asks(requests) => {
                    for request in requests {
                        let id = request.id;
                        let answer = host(request);
                        self.answer(id, &answer)?;
                    }
                }
                Progress::Waits(until) => {
                    let wait = until.saturating_duration_since(Instant::now());
                    // It would not be done in time, so there is nothing to wait for.
                    if wait > meter.left() {
                        return Err(ScriptError::TimedOut { budget: meter.budget, place: None });
                    }
                    meter.used += wait;
                    std::thread::sleep(wait);
                }
                Progress::Owed | Progress::Done(_) => return Err(ScriptError::NeverSettled),
            }
        }
    }
}

#[cfg(test)]
mod tests;
