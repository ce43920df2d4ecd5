//! Calls that run in steps, several at a time.

use std::time::Duration;

use crate::error::ScriptError;
use crate::pump::{Meter, Progress, StartedCall, TaskState, Turn};
use crate::runtime::Runtime;
use crate::value::{Function, Value};

/// A running call. It belongs to the runtime that started it, and ends with [`Progress::Done`], an error, or
/// [`Runtime::cancel`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Task {
    pub(crate) runtime: u64,
    pub(crate) id: u64,
}

impl Runtime {
    /// Calls `function` and runs it until it first waits. `budget` limits its CPU time over all steps.
    ///
    /// # Errors
    /// Returns the exception if the function throws before it first waits.
    pub fn begin(&mut self, function: &Function, arguments: &[Value], budget: Duration) -> Result<Task, ScriptError> {
        let mut meter = Meter::new(budget);
        let started_call = self.start(function, arguments, &mut meter)?;
        let id = self.realm.number();
        self.tasks.insert(id, TaskState { started_call, meter });
        Ok(Task { runtime: self.realm.id, id })
    }

    /// Continues `task` as far as possible. The task is over after an error or [`Progress::Done`].
    ///
    /// # Errors
    /// Returns the exception, or [`ScriptError::NeverSettled`] if the task is waiting and there is nothing left for
    /// which it could wait.
    pub fn step(&mut self, task: &Task) -> Result<Progress, ScriptError> {
        let underway = if task.runtime == self.realm.id { self.tasks.remove(&task.id) } else { None };
        let Some(TaskState { started_call, mut meter }) = underway else {
            return Err(ScriptError::Failed("this task has ended, or belongs to another runtime".into()));
        };
        let promise = match started_call {
            StartedCall::Done(value) => return self.drain(&mut meter, None).map(|()| Progress::Done(value)),
            StartedCall::Promised(promise) => promise,
        };
        if let Turn::Settled = self.turn(&promise, &mut meter, None)? {
            return self.settled(&promise, &mut meter, None).map(Progress::Done);
        }
        let progress = self.idle(0)?;
        self.tasks.insert(task.id, TaskState { started_call: StartedCall::Promised(promise), meter });
        Ok(progress)
    }

    /// Cancels a task. Timers and requests that it has started stay in the runtime.
    pub fn cancel(&mut self, task: &Task) {
        if task.runtime == self.realm.id {
            self.tasks.remove(&task.id);
        }
    }
}

#[cfg(test)]
mod tests;
