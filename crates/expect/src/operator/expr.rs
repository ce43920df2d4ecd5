//! `$expr`: a JavaScript expression decides.

use model::Node;

use crate::compile::Compiler;
use crate::context;
use crate::host::Trouble;
use crate::prelude::*;
use crate::returned;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    let Some(text) = operand.as_str() else {
        compiler.wrong_operand(operand, operator, "the text of an expression");
        return None;
    };
    if let Err(invalid) = compiler.host.expression(text, &NAMES) {
        compiler.problems.push(invalid.diagnostic(operand));
        return None;
    }
    Some(Box::new(Expr { text: text.to_owned(), place: SourceLocation::from_node(operand) }))
}

/// Variables of an expression.
const NAMES: [&str; 5] = ["actual", "expected", "data", "input", "ctx"];

#[derive(Debug)]
struct Expr {
    text: String,
    place: SourceLocation,
}

impl Rule for Expr {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let expected = Value::from(self.text.as_str());
        let context = if self.text.contains("ctx") { context::of(at) } else { Value::Null };
        let scope = [
            ("actual", actual),
            ("expected", Some(&expected)),
            ("data", Some(&at.run.data.variables)),
            ("input", at.run.data.input.as_ref()),
            ("ctx", Some(&context)),
        ];
        let flaw = |message: String| Flaw::new(&self.place, message).expected(expected.clone()).actual(actual);
        match at.run.host.evaluate(&self.text, &scope) {
            Ok(Some(Value::Bool(true))) => Found::full(),
            Ok(Some(Value::Bool(false))) => Found::flawed(flaw(format!("`{}` is false", self.text))),
            Ok(Some(Value::Number(number))) => {
                returned::confidence(number.as_f64().unwrap_or_default(), at, &self.place)
            }
            Ok(Some(result @ Value::Object(_))) if result.get("pass").is_some() || result.get("score").is_some() => {
                returned::read(Some(&result), Some(&expected), actual, at, &self.place)
            }
            Ok(other) => {
                let holds = other.as_ref().is_some_and(value::truthy);
                if holds { Found::full() } else { Found::flawed(flaw(format!("`{}` is not true", self.text))) }
            }
            Err(Trouble::Thrown(reason)) => {
                let flaw = flaw(format!("`{}` throws: {reason}", self.text));
                if at.negated { Found::unknown(flaw) } else { Found::flawed(flaw) }
            }
            Err(Trouble::Stopped(reason)) => Found::unknown(flaw(format!("`{}`: {reason}", self.text))),
        }
    }
}
