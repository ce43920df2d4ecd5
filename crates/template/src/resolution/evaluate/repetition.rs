//! Loops and macros: the parts of a template that can run more than once.

use super::{Evaluator, Frame};
use crate::access::loop_position;
use crate::error::TemplateError;
use crate::filter::pairs;
use crate::operation::Given;
use crate::syntax::{Loop, Macro};
use crate::value::Value;

impl<'a> Evaluator<'a> {
    /// Runs a loop.
    pub(crate) fn repeat(&mut self, repeated: &'a Loop, out: &mut String) -> Result<(), TemplateError> {
        let items = self.value(&repeated.items)?;
        let entries = items.entries().filter(|_| self.is_nunjucks && repeated.names.len() == 2);
        let items = match entries.map(pairs) {
            Some(entries) => entries.map_err(|error| error.at(repeated.items.range.clone()))?,
            None => items,
        };
        let Value::List(items) = items else {
            let error = TemplateError::new(format!("a loop needs a list, not {}", items.kind()));
            let error = if items.is_map() { error.help("write `….items()`") } else { error };
            return Err(error.at(repeated.items.range.clone()));
        };
        self.frames.push(Frame::new());
        let result = self.iterate(repeated, &items.items, out);
        self.frames.pop();
        result
    }

    fn iterate(&mut self, repeated: &'a Loop, items: &[Value], out: &mut String) -> Result<(), TemplateError> {
        let kept = self.kept(repeated, items)?;
        for (index, item) in kept.iter().enumerate() {
            self.spend(1, &repeated.items.range)?;
            let position = loop_position(&kept, index).map_err(|error| error.at(repeated.items.range.clone()))?;
            self.set("loop", position);
            self.unpack(repeated, item)?;
            self.block(&repeated.items.range, &repeated.body, out)?;
        }
        if kept.is_empty() { self.parts(&repeated.otherwise, out) } else { Ok(()) }
    }

    /// Returns the items that meet the loop's condition.
    fn kept(&mut self, repeated: &'a Loop, items: &[Value]) -> Result<Vec<Value>, TemplateError> {
        let Some(condition) = &repeated.condition else { return Ok(items.to_vec()) };
        let mut kept = Vec::new();
        for item in items {
            self.unpack(repeated, item)?;
            if self.condition(condition)?.is_true() {
                kept.push(item.clone());
            }
        }
        Ok(kept)
    }

    fn unpack(&mut self, repeated: &'a Loop, item: &Value) -> Result<(), TemplateError> {
        if let [name] = repeated.names.as_slice() {
            self.set(&name.value, item.clone());
            return Ok(());
        }
        let wanted = repeated.names.len();
        let range = || repeated.items.range.clone();
        let Value::List(list) = item else {
            return Err(
                TemplateError::new(format!("an item is {}, not a list of {wanted} parts", item.kind())).at(range())
            );
        };
        if list.items.len() != wanted {
            let message = format!("an item has {} parts, but there are {wanted} names", list.items.len());
            return Err(TemplateError::new(message).at(range()));
        }
        for (name, part) in repeated.names.iter().zip(&list.items) {
            self.set(&name.value, part.clone());
        }
        Ok(())
    }

    /// Returns the text of a macro call.
    pub(crate) fn run_macro(&mut self, number: usize, given: Given) -> Result<Value, TemplateError> {
        let Some(written) = self.macros.get(number).copied() else { return Ok(Value::Null) };
        let escapes = std::mem::replace(&mut self.escapes, false);
        self.frames.push(Frame::new());
        let mut text = String::new();
        let result = self.bind(written, given).and_then(|()| self.block(&(0..0), &written.body, &mut text));
        self.frames.pop();
        self.escapes = escapes;
        result.map(|()| Value::Text(text.into()))
    }

    fn bind(&mut self, written: &'a Macro, given: Given) -> Result<(), TemplateError> {
        let problem = |message: String| Err(TemplateError::new(message));
        if given.positional.len() > written.parameters.len() {
            return problem(format!("`{}` is given too many arguments", written.name));
        }
        if let Some((name, _)) =
            given.named.iter().find(|(name, _)| !written.parameters.iter().any(|(known, _)| known == name))
        {
            return problem(format!("`{}` has no argument named `{name}`", written.name));
        }
        let mut positional = given.positional.into_iter();
        for (name, default) in &written.parameters {
            let named = || given.named.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            let value = match (positional.next().or_else(named), default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.value(default)?,
                (None, None) => return problem(format!("`{}` needs the `{name}` argument", written.name)),
            };
            self.set(name, value);
        }
        Ok(())
    }
}
