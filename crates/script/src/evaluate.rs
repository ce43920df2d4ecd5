//! Evaluates expressions. Each is compiled once, and then called like any other function.

use std::borrow::Cow;
use std::time::Duration;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Persistent};

use crate::convert::to_script;
use crate::error::ScriptError;
use crate::expression::Expression;
use crate::module::lookup::without_nul;
use crate::names::EXPRESSION;
use crate::pump::{self, Meter};
use crate::runtime::{Runtime, refuse};
use crate::value::{Request, Value};

fn compile<'js>(ctx: &Ctx<'js>, code: &str) -> rquickjs::Result<rquickjs::Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(EXPRESSION.to_owned());
    ctx.eval_with_options(&*without_nul(code), options)
}

impl Runtime {
    /// Evaluates `expression`. `scope` is asked only for names to which the expression refers, including JavaScript's
    /// own. Its values take precedence over globals with the same name. A promise is awaited.
    ///
    /// # Errors
    /// Returns the exception, including the one for an undefined name, or the reason why the evaluation was stopped.
    pub fn evaluate<'s>(
        &mut self,
        expression: &Expression,
        scope: &dyn for<'n> Fn(&'n str) -> Option<Cow<'s, Value>>,
        budget: Duration,
    ) -> Result<Value, ScriptError> {
        self.evaluate_with(expression, scope, budget, &mut refuse)
    }

    /// Like `evaluate`, with a host that answers the requests from functions in the scope, as in [`Runtime::call`].
    ///
    /// # Errors
    /// See [`Runtime::evaluate`].
    pub fn evaluate_with<'s>(
        &mut self,
        expression: &Expression,
        scope: &dyn for<'n> Fn(&'n str) -> Option<Cow<'s, Value>>,
        budget: Duration,
        host: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Result<Value, ScriptError> {
        let mut given = Vec::new();
        let mut values = Vec::new();
        for (index, free) in expression.0.names.iter().enumerate() {
            // These cannot be parameter names.
            if matches!(free.name.as_str(), "eval" | "arguments" | "undefined") {
                continue;
            }
            if let Some(value) = scope(&free.name) {
                given.push(index);
                values.push(value);
            }
        }
        let known = self.expressions.get(expression, &given);
        let since = self.realm.number();
        let mut meter = Meter::new(budget);
        let text = Some(expression.text());
        let mut compiled = None;
        let started_call = self.enter(&mut meter, text, |ctx, realm| {
            let function = match known {
                Some(known) => known.restore(ctx)?,
                None => {
                    let names: Vec<&str> = given.iter().map(|index| expression.0.names[*index].name.as_str()).collect();
                    let function = compile(ctx, &expression.code(&names))?;
                    compiled = Some(Persistent::save(ctx, function.clone()));
                    function
                }
            };
            let mut arguments = rquickjs::function::Args::new(ctx.clone(), values.len());
            for value in &values {
                arguments.push_arg(to_script(ctx, realm, value)?)?;
            }
            pump::started_call(ctx, realm, function.call_arg(arguments)?)
        });
        if let Some(function) = compiled {
            self.expressions.insert(expression, &given, function);
        }
        self.complete(started_call, since, &mut meter, text, host)
    }
}
