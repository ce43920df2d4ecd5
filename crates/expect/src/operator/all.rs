//! `$all`: each expectation is met by some item, in any order.

use model::Node;

use super::contains::one_of;
use crate::compile::Compiler;
use crate::prelude::*;
use crate::strategy::Strategy;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    let wanted = compiler.list(operand, operator)?;
    Some(Box::new(All { wanted, place: SourceLocation::from_node(operand) }))
}

#[derive(Debug)]
struct All {
    wanted: Vec<Matcher>,
    place: SourceLocation,
}

impl Rule for All {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let Some(whole @ Value::Array(items)) = actual else {
            let critical = self.wanted.iter().any(|wanted| wanted.critical);
            return Found::wrong_type("`$all` needs a list", actual, critical, &self.place);
        };
        let weights: Vec<_> = self.wanted.iter().map(|wanted| wanted.meta.weight).collect();
        let shares = Strategy::Weighted.distribute(&at.run.rules.budget, &weights);
        let found = self.wanted.iter().enumerate().map(|(index, wanted)| {
            let here = at.item("$all", index, self.wanted.len());
            let mut found = one_of(whole, items, wanted, &here, &wanted.place);
            found.critical |= wanted.meta.critical;
            found.title.clone_from(&wanted.meta.title);
            for flaw in &mut found.flaws {
                flaw.key = Some(here.key.clone());
                flaw.critical |= here.critical;
            }
            found
        });
        Strategy::Weighted.aggregate(found, &shares, &self.place)
    }
}
