//! Limit on the number of timeouts in one judgement. Each stopped piece of code has used all its time, so an
//! expectation with many of them would not terminate.
//!
//! Patterns and code are run by independent rules and by schemas. So the count is kept by the host that is passed to
//! them, for the thread on which a judgement runs.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::host::{Answer, Argument, Function, Host, Invalid, Pattern, Trouble};

/// Number of stopped pieces of code after which nothing more is run.
const MAX_STOPPED: usize = 8;

thread_local! {
    /// Number of pieces of code that were stopped in the current judgement on this thread.
    static STOPPED: Cell<usize> = const { Cell::new(0) };
}

/// Scope of one judgement, with its own count.
#[derive(Debug)]
pub struct Allowance {
    outer: usize,
}

impl Allowance {
    /// Starts a new count. When the value is dropped, the previous count continues.
    pub fn begin() -> Self {
        Self { outer: STOPPED.replace(0) }
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        STOPPED.set(self.outer);
    }
}

/// Returns the error if nothing more may be run.
fn spent() -> Option<String> {
    let message = || format!("not run: {MAX_STOPPED} pieces of code or regular expressions were stopped before");
    (STOPPED.get() >= MAX_STOPPED).then(message)
}

fn count(was_stopped: bool) {
    STOPPED.set(STOPPED.get() + usize::from(was_stopped));
}

/// Host that refuses to run anything after too many timeouts.
#[derive(Debug)]
pub struct LimitedHost(pub Arc<dyn Host>);

#[derive(Debug)]
struct LimitedPattern(Arc<dyn Pattern>);

impl Pattern for LimitedPattern {
    fn is_match(&self, text: &str) -> Result<bool, String> {
        if let Some(reason) = spent() {
            return Err(reason);
        }
        let answer = self.0.is_match(text);
        count(answer.is_err());
        answer
    }
}

impl Host for LimitedHost {
    fn regex(&self, source: &str, flags: &str) -> Result<Arc<dyn Pattern>, Invalid> {
        self.0.regex(source, flags).map(|pattern| Arc::new(LimitedPattern(pattern)) as Arc<dyn Pattern>)
    }

    fn expression(&self, text: &str, names: &[&str]) -> Result<(), Invalid> {
        self.0.expression(text, names)
    }

    fn evaluate(&self, text: &str, scope: &[(&str, Option<&Value>)]) -> Result<Option<Value>, Trouble> {
        run(|| self.0.evaluate(text, scope))
    }

    fn function(&self, reference: &str, name: &str, directory: &Path) -> Result<Function, Invalid> {
        self.0.function(reference, name, directory)
    }

    fn call(
        &self,
        function: &Function,
        arguments: &[Argument<'_>],
        answer: &mut Answer<'_>,
    ) -> Result<Option<Value>, Trouble> {
        run(|| self.0.call(function, arguments, answer))
    }
}

fn run(work: impl FnOnce() -> Result<Option<Value>, Trouble>) -> Result<Option<Value>, Trouble> {
    if let Some(reason) = spent() {
        return Err(Trouble::Stopped(reason));
    }
    let answer = work();
    count(matches!(answer, Err(Trouble::Stopped(_))));
    answer
}
