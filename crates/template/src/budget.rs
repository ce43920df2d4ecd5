//! What one text may cost, and what it has cost so far.

use std::cell::Cell;

use crate::error::Failure;
use crate::limit;

/// Steps that were taken.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    taken: Cell<usize>,
}

impl Budget {
    /// Takes so many steps.
    ///
    /// # Errors
    /// They are more than one text may take.
    pub(crate) fn spend(&self, steps: usize) -> Result<(), Failure> {
        self.taken.set(self.taken.get().saturating_add(steps));
        if self.taken.get() > limit::STEPS {
            let help = format!("it may take {} steps", limit::STEPS);
            return Err(Failure::new("the template does too much work").help(help));
        }
        Ok(())
    }
}
