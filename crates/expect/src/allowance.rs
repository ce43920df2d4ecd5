//! How much stopped work one judgement bears. Each piece takes all the time it may have before it is stopped; an
//! expectation that asks for many of them would not come to an end.
//!
//! Patterns and code are run by rules that know nothing of each other, and by schemas; so it is the host they are given
//! that counts, on the thread that a judgement stays on.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::host::{Answer, Argument, Function, Host, Invalid, Pattern, Trouble};

/// How many pieces may be stopped before nothing more is tried.
const MOST_STOPPED: usize = 8;

thread_local! {
    /// How many pieces were stopped in the judgement that this thread is at.
    static STOPPED: Cell<usize> = const { Cell::new(0) };
}

/// The time of one judgement, which has a count of its own.
#[derive(Debug)]
pub struct Allowance {
    outer: usize,
}

impl Allowance {
    /// Begins to count; what counted before goes on when this is dropped.
    pub fn begin() -> Self {
        Self { outer: STOPPED.replace(0) }
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        STOPPED.set(self.outer);
    }
}

/// Why nothing is tried any more, if it is so.
fn spent() -> Option<String> {
    let message = || format!("not tried: {MOST_STOPPED} pieces of code or regular expressions were stopped before");
    (STOPPED.get() >= MOST_STOPPED).then(message)
}

fn count(was_stopped: bool) {
    STOPPED.set(STOPPED.get() + usize::from(was_stopped));
}

/// A host that gives up when too much was stopped.
#[derive(Debug)]
pub struct Allowed(pub Arc<dyn Host>);

#[derive(Debug)]
struct AllowedPattern(Arc<dyn Pattern>);

impl Pattern for AllowedPattern {
    fn is_match(&self, text: &str) -> Result<bool, String> {
        if let Some(because) = spent() {
            return Err(because);
        }
        let answer = self.0.is_match(text);
        count(answer.is_err());
        answer
    }
}

impl Host for Allowed {
    fn regex(&self, source: &str, flags: &str) -> Result<Arc<dyn Pattern>, Invalid> {
        self.0.regex(source, flags).map(|pattern| Arc::new(AllowedPattern(pattern)) as Arc<dyn Pattern>)
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
    if let Some(because) = spent() {
        return Err(Trouble::Stopped(because));
    }
    let answer = work();
    count(matches!(answer, Err(Trouble::Stopped(_))));
    answer
}
