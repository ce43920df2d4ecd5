//! `$and` and `$or`: all items hold, or at least one.

use model::Node;

use crate::compile::Compiler;
use crate::prelude::*;
use crate::strategy::{self, Strategy};

/// Expectations for the same value, combined by a strategy.
#[derive(Debug)]
struct Branches {
    operator: &'static str,
    strategy: Strategy,
    branches: Vec<Matcher>,
    place: SourceLocation,
}

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    let strategy = if operator == "$or" { Strategy::Max } else { Strategy::Weighted };
    let branches = compiler.list(operand, operator)?;
    // An empty `$and` asserts nothing, which is reported as such.
    if operator == "$or" {
        compiler.doubt_empty(operand, operator, false);
    }
    Some(Box::new(Branches { operator, strategy, branches, place: SourceLocation::from_node(operand) }))
}

impl Rule for Branches {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let weights: Vec<_> = self.branches.iter().map(|branch| branch.meta.weight).collect();
        let shares = self.strategy.distribute(&at.run.rules.budget, &weights);
        let count = self.branches.len();
        // If one branch is enough, the mismatches of all branches are reported in one line.
        let quiet = at.quiet || self.strategy == Strategy::Max;
        let found = self
            .branches
            .iter()
            .enumerate()
            .map(|(index, branch)| branch.judge(actual, &Scope { quiet, ..at.item(self.operator, index, count) }));
        match self.strategy {
            // Without branches, the value does not match.
            Strategy::Max => strategy::best(found.collect(), &shares, &self.place),
            Strategy::Weighted => self.strategy.aggregate(found, &shares, &self.place),
        }
    }
}
