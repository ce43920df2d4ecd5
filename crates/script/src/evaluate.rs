//! Evaluates expressions: each is compiled once, and then called like any other function.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Persistent};

use crate::convert::to_script;
use crate::error::ScriptError;
use crate::expression::Expression;
use crate::module::loader::without_nul;
use crate::pump::{self, Meter, Request};
use crate::runtime::{Runtime, refuse};
use crate::trace::EXPRESSION;
use crate::value::Value;

/// Maximum number of compiled expressions that a runtime keeps.
const KEPT: usize = 8_192;

/// Compiled expressions by text, with one function for each set of given names.
#[derive(Default)]
pub(crate) struct Compiled(HashMap<Arc<str>, Vec<Variant>>);

struct Variant {
    given: Vec<usize>,
    function: Persistent<rquickjs::Function<'static>>,
}

impl Compiled {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn get(&self, expression: &Expression, given: &[usize]) -> Option<Persistent<rquickjs::Function<'static>>> {
        let variants = self.0.get(&expression.0.text)?;
        variants.iter().find(|variant| variant.given == given).map(|variant| variant.function.clone())
    }

    fn insert(&mut self, expression: &Expression, given: &[usize], function: Persistent<rquickjs::Function<'static>>) {
        // For texts that are used in turn, clearing the cache is as good as a more complex eviction.
        if self.0.len() >= KEPT {
            self.0.clear();
        }
        let variant = Variant { given: given.to_vec(), function };
        self.0.entry(Arc::clone(&expression.0.text)).or_default().push(variant);
    }
}

fn compile<'js>(ctx: &Ctx<'js>, code: &str) -> rquickjs::Result<rquickjs::Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(EXPRESSION.to_owned());
    ctx.eval_with_options(&*without_nul(code), options)
}

impl Runtime {
    /// Evaluates `expression`. `scope` is asked only for names that the expression refers to, including those of
    /// JavaScript. Its values have precedence over globals of the same name. A promise is awaited.
    ///
    /// # Errors
    /// Returns the exception, including that for an undefined name, or why the evaluation was stopped.
    pub fn evaluate<'s>(
        &mut self,
        expression: &Expression,
        scope: &dyn for<'n> Fn(&'n str) -> Option<Cow<'s, Value>>,
        budget: Duration,
    ) -> Result<Value, ScriptError> {
        self.evaluate_with(expression, scope, budget, &mut refuse)
    }

    /// Same as `evaluate`, with a host that answers the requests of functions in the scope, as in [`Runtime::call`].
    ///
    /// # Errors
    /// Same as for [`Runtime::evaluate`].
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
            // These cannot be the names of parameters.
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
        let begun = self.enter(&mut meter, text, |ctx, realm| {
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
            pump::begun(ctx, realm, function.call_arg(arguments)?)
        });
        if let Some(function) = compiled {
            self.expressions.insert(expression, &given, function);
        }
        self.complete(begun, since, &mut meter, text, host)
    }
}
