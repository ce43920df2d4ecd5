//! `$and`: every item holds.

use model::Node;

use crate::compile::{Compiler, Operator};
use crate::prelude::*;
use crate::strategy::{self, Strategy};

/// The `$and` operator.
pub const AND: Operator = Operator {
    name: "$and",
    summary: "All expectations in the list match the value.",
    read: |compiler, operand| Branches::read(compiler, operand, "$and", Strategy::Weighted),
};

/// Expectations of the same value, combined by a strategy.
#[derive(Debug)]
pub(super) struct Branches {
    operator: &'static str,
    strategy: Strategy,
    branches: Vec<Matcher>,
    place: Place,
}

impl Branches {
    pub(super) fn read(
        compiler: &mut Compiler<'_>,
        operand: &Node,
        operator: &'static str,
        strategy: Strategy,
    ) -> Option<Box<dyn Rule>> {
        let branches = compiler.list(operand, operator)?;
        Some(Box::new(Self { operator, strategy, branches, place: Place::of(operand) }))
    }
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
