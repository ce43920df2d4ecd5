//! Callbacks without effect: they do not return what the method uses, or the scenario does not wait for them.

use oxc_ast::ast::{Argument, CallExpression, Expression};
use oxc_ast_visit::{Visit, walk};

use super::compared::Compared;
use super::{Finder, Held, Role};

/// Methods of a list that use what the function returns for each item.
const USES_RESULT: [&str; 7] = ["every", "filter", "find", "findIndex", "findLast", "findLastIndex", "some"];

impl Compared<'_, '_> {
    /// Reports a function that `call` passes in vain.
    pub(super) fn check_callback(&mut self, call: &CallExpression<'_>) {
        let Some(given) = call.arguments.first().and_then(Argument::as_expression) else { return };
        let given = given.get_inner_expression();
        if self.is_global(&call.callee, "setTimeout") && !self.is_in_promise && asserts(given, self.finder) {
            let message = "the scenario does not wait for this function, so its assertions may never be made";
            let help = "write `await sleep(MILLISECONDS)`, and the assertions after it";
            self.report(given, message.to_owned(), help.to_owned());
        }
        let Some((Held { role, root }, method)) = self.finder.method(call) else { return };
        if !root.is_some_and(|root| self.is_set(root))
            && matches!(role, Role::Calls | Role::Replies | Role::List)
            && USES_RESULT.contains(&method)
            && self.finder.returns_nothing(given)
        {
            let message = format!("this function returns nothing, which `{method}` takes for false");
            self.report(given, message, "write `return` before the value, or leave out the braces".to_owned());
        }
    }

    /// Returns `true` if `callee` is the variable `name`, and the module does not declare it.
    pub(super) fn is_global(&self, callee: &Expression<'_>, name: &str) -> bool {
        let callee = callee.get_inner_expression().get_identifier_reference();
        callee.is_some_and(|callee| callee.name == name && self.finder.symbol(callee).is_none())
    }
}

/// Returns `true` if there is an assertion in `value`.
fn asserts(value: &Expression<'_>, finder: &Finder<'_>) -> bool {
    let mut asserts = Asserts { finder, has_one: false };
    asserts.visit_expression(value);
    asserts.has_one
}

struct Asserts<'f, 's> {
    finder: &'f Finder<'s>,
    has_one: bool,
}

impl<'a> Visit<'a> for Asserts<'_, '_> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.has_one |= self.finder.method(call).is_some_and(|(held, _)| held.role == Role::Assert);
        walk::walk_call_expression(self, call);
    }
}
