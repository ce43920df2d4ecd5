//! `$diff`: a string equals another one, except for listed changes.

use model::decode::Fields;
use model::{Node, NodeKind};

use crate::compile::Compiler;
use crate::prelude::*;
use crate::text_diff::TextDiff;

#[derive(Debug)]
struct Diff {
    expected: String,
    diff: TextDiff,
    place: SourceLocation,
}

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    let (expected, diff) = match &operand.kind {
        NodeKind::String(text) => (text.clone(), TextDiff::default()),
        NodeKind::Map(_) => {
            let mut fields = Fields::of(operand, "`$diff`", compiler.problems)?;
            let value = fields.get("value");
            let other = fields.get("expected");
            let diff = TextDiff::from_fields(&mut fields, compiler.host, compiler.problems);
            fields.finish(compiler.problems);
            let Some(text) = value.or(other) else {
                compiler.problems.push(operand.error("`$diff` has no `value` to compare with"));
                return None;
            };
            (model::decode::any_text(text, "`value`", compiler.problems)?, diff)
        }
        _ => {
            compiler.wrong_operand(operand, operator, "a string or a map with a `value`");
            return None;
        }
    };
    let diff = diff.or(compiler.diff);
    Some(Box::new(Diff { expected, diff, place: SourceLocation::from_node(operand) }))
}

impl Rule for Diff {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let Some(text) = actual.and_then(Value::as_str) else {
            let message = format!("expected a string, not {}", value::kind(actual));
            let flaw = Flaw::new(&self.place, message).expected(self.expected.as_str().into());
            return Found::flawed(flaw.actual(actual));
        };
        self.diff.judge(text.trim(), &self.expected, at.run.rules, at.quiet, &self.place)
    }

    fn quick_score(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Option<QuickScore> {
        let Some(text) = actual.and_then(Value::as_str) else { return Some(QuickScore::from_bool(false)) };
        self.diff.quick_score(text.trim(), &self.expected)
    }
}
