//! Limit on the cost of evaluating one template.

use std::cell::Cell;

use crate::error::TemplateError;
use crate::limit;

/// Number of steps that were taken.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    taken: Cell<usize>,
}

impl Budget {
    /// Adds steps.
    pub(crate) fn spend(&self, steps: usize) -> Result<(), TemplateError> {
        self.taken.set(self.taken.get().saturating_add(steps));
        if self.taken.get() > limit::STEPS {
            let help = format!("the limit is {} steps", limit::STEPS);
            return Err(TemplateError::new("the template takes too many steps").help(help));
        }
        Ok(())
    }
}
