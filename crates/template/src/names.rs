//! Variables that a template uses.

use std::ops::Range;

use crate::function::FUNCTIONS;
use crate::operation::named;
use crate::syntax::{Expression, Kind, Part};

/// Returns every use of a name that the template itself does not set, in order.
pub(crate) fn of(parts: &[Part]) -> Vec<(String, Range<usize>)> {
    let mut names = Names { bound: Vec::new(), found: Vec::new() };
    names.parts(parts);
    names.found
}

struct Names {
    bound: Vec<String>,
    found: Vec<(String, Range<usize>)>,
}

impl Names {
    fn parts(&mut self, parts: &[Part]) {
        for part in parts {
            self.part(part);
        }
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Text(_) => {}
            Part::Output(expression) => self.expression(expression),
            Part::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.expression(condition);
                    self.parts(body);
                }
                self.parts(otherwise);
            }
            Part::For(repeated) => {
                self.expression(&repeated.items);
                let names = repeated.names.iter().map(|name| name.value.clone());
                self.within(names.chain(["loop".to_owned()]), |names| {
                    repeated.condition.iter().for_each(|condition| names.expression(condition));
                    names.parts(&repeated.body);
                });
                self.parts(&repeated.otherwise);
            }
            Part::Set { name, value } => {
                self.expression(value);
                self.bound.push(name.clone());
            }
            Part::SetMember { space, value, .. } => {
                self.expression(space);
                self.expression(value);
            }
            Part::Macro(written) => {
                self.bound.push(written.name.clone());
                written
                    .parameters
                    .iter()
                    .filter_map(|(_, default)| default.as_ref())
                    .for_each(|it| self.expression(it));
                let parameters = written.parameters.iter().map(|(name, _)| name.clone());
                self.within(parameters, |names| names.parts(&written.body));
            }
        }
    }

    fn within(&mut self, names: impl Iterator<Item = String>, inside: impl FnOnce(&mut Self)) {
        let bound = self.bound.len();
        self.bound.extend(names);
        inside(self);
        self.bound.truncate(bound);
    }

    fn expression(&mut self, expression: &Expression) {
        match &expression.kind {
            Kind::Name(name) if !self.bound.contains(name) => {
                self.found.push((name.clone(), expression.range.clone()));
            }
            Kind::Call(callee, arguments) if is_function(callee) => {
                arguments.expressions().for_each(|argument| self.expression(argument));
            }
            _ => expression.children().into_iter().for_each(|child| self.expression(child)),
        }
    }
}

fn is_function(callee: &Expression) -> bool {
    matches!(&callee.kind, Kind::Name(name) if named(FUNCTIONS, name).is_some())
}
