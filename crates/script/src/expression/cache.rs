//! Cache of compiled expressions.

use std::collections::HashMap;
use std::sync::Arc;

use rquickjs::Persistent;

use super::Expression;

/// Maximum number of compiled expressions that a runtime keeps.
const MAX_CACHED: usize = 8_192;

/// Compiled expressions by text, with one function for each set of given names.
#[derive(Default)]
pub(crate) struct ExpressionCache(HashMap<Arc<str>, Vec<Variant>>);

struct Variant {
    given: Vec<usize>,
    function: Persistent<rquickjs::Function<'static>>,
}

impl ExpressionCache {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn get(&self, expression: &Expression, given: &[usize]) -> Option<Persistent<rquickjs::Function<'static>>> {
        let variants = self.0.get(&expression.0.text)?;
        variants.iter().find(|variant| variant.given == given).map(|variant| variant.function.clone())
    }

    pub fn insert(
        &mut self,
        expression: &Expression,
        given: &[usize],
        function: Persistent<rquickjs::Function<'static>>,
    ) {
        // If texts are used in rotation, clearing the cache is as good as more complex eviction.
        if self.0.len() >= MAX_CACHED {
            self.0.clear();
        }
        let variant = Variant { given: given.to_vec(), function };
        self.0.entry(Arc::clone(&expression.0.text)).or_default().push(variant);
    }
}
