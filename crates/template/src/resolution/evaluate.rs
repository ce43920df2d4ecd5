//! Evaluates a template with its variables.

mod call;
mod repetition;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::{Found, Resolution};
use crate::access::{member, picked, walked};
use crate::budget::Budget;
use crate::error::{ErrorKind, TemplateError};
use crate::function::FUNCTIONS;
use crate::limit;
use crate::number::Number;
use crate::nunjucks;
use crate::operation::{Given, named};
use crate::operator;
use crate::path::{self, Key};
use crate::regex_literal;
use crate::syntax::{Arguments, Expression, Kind, Macro, Operator, Part, Whole};
use crate::template::{Outcome, Template};
use crate::value::{Entries, Function, Value, push};

/// Evaluates `template`.
pub(crate) fn evaluate(template: &Template, resolution: &Resolution<'_>) -> Result<Outcome, TemplateError> {
    if let Some(whole) = &template.whole
        && let Some(value) =
            whole_value(whole, resolution).map_err(|error| with_range(error, 0..template.text().len()))?
    {
        return Ok(Outcome::Value(value));
    }
    let mut evaluator = Evaluator {
        resolution,
        frames: vec![Frame::new()],
        macros: Vec::new(),
        budget: Budget::default(),
        escapes: template.regex,
        is_nunjucks: template.is_nunjucks,
    };
    let mut text = String::new();
    for (index, part) in template.parts.iter().enumerate() {
        if let Err(mut error) = evaluator.part(part, &mut text) {
            if let Part::Output(_) = part {
                error.others = evaluator.missing(&template.parts[index + 1..]);
            }
            return Err(error);
        }
    }
    Ok(Outcome::Text(text))
}

/// Returns the value of a template that consists of a single placeholder that names a value.
fn whole_value(whole: &Whole, resolution: &Resolution<'_>) -> Result<Option<model::Node>, TemplateError> {
    let name = [Key::Name(whole.inner.clone())];
    let keys = if resolution.variables.raw(&whole.inner).is_some() { Some(&name[..]) } else { whole.keys.as_deref() };
    let Some(keys) = keys else { return Ok(None) };
    match resolution.find(keys)? {
        Found::Node(node) => Ok(Some(node)),
        // Evaluating the expression reports the error, or shows that it is more than a path.
        Found::Missing { .. } => Ok(None),
    }
}

/// Sets the range of an error. An error in a variable that this text uses has its own location, and its range in this
/// text is that of the use.
fn with_range(mut error: TemplateError, range: Range<usize>) -> TemplateError {
    if error.place.is_some() || error.range.is_empty() {
        error.range = range;
    }
    error
}

/// Step of a path, with its range in the template.
struct Step {
    key: Key,
    range: Range<usize>,
}

/// Names that are set in a scope.
pub(crate) type Frame = HashMap<String, Value>;

/// State of one evaluation.
pub(crate) struct Evaluator<'a> {
    pub(crate) resolution: &'a Resolution<'a>,
    /// Names that the template sets, the innermost scope last.
    pub(crate) frames: Vec<Frame>,
    pub(crate) macros: Vec<&'a Macro>,
    pub(crate) budget: Budget,
    /// True if the values of names are escaped for a regular expression.
    pub(crate) escapes: bool,
    /// True if the template is written in Nunjucks.
    pub(crate) is_nunjucks: bool,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn parts(&mut self, parts: &'a [Part], out: &mut String) -> Result<(), TemplateError> {
        for part in parts {
            self.part(part, out)?;
        }
        Ok(())
    }

    fn part(&mut self, part: &'a Part, out: &mut String) -> Result<(), TemplateError> {
        match part {
            Part::Text(text) => push(out, text),
            Part::Output(expression) => self.output(expression, out),
            Part::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.condition(condition)?.is_true() {
                        return self.block(&condition.range, body, out);
                    }
                }
                self.parts(otherwise, out)
            }
            Part::For(repeated) => self.repeat(repeated, out),
            Part::Set { name, value } => {
                let value = self.value(value)?;
                self.set(name, value);
                Ok(())
            }
            Part::SetMember { space, member, value } => self.set_member(space, member, value),
            Part::Macro(written) => {
                let number = self.macros.len();
                self.macros.push(written);
                self.set(&written.name, Value::Function(Function::Macro(number)));
                Ok(())
            }
        }
    }

    /// Returns errors for missing names in the placeholders in `parts`, up to the first part that is neither text nor
    /// a placeholder.
    fn missing(&mut self, parts: &'a [Part]) -> Vec<TemplateError> {
        let mut errors = Vec::new();
        for part in parts {
            match part {
                Part::Text(_) => {}
                Part::Output(expression) => {
                    errors.extend(self.value(expression).err().filter(|error| error.kind == ErrorKind::Missing));
                }
                _ => break,
            }
        }
        errors
    }

    pub(crate) fn block(
        &mut self,
        range: &Range<usize>,
        parts: &'a [Part],
        out: &mut String,
    ) -> Result<(), TemplateError> {
        let resolution = self.resolution;
        resolution.deeper(|| self.parts(parts, out)).map_err(|error| error.at(range.clone()))
    }

    fn output(&mut self, expression: &'a Expression, out: &mut String) -> Result<(), TemplateError> {
        let value = self.value(expression)?;
        let printed = if self.escapes && names_a_value(expression) {
            self.spend(regex_literal::looked_at(out) / limit::BYTES_A_STEP, &expression.range)?;
            value.to_text().and_then(|text| regex_literal::push_escaped(out, &text))
        } else {
            value.print(out)
        };
        printed.map_err(|error| error.at(expression.range.clone()))
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        let Some(frame) = self.frames.last_mut() else { return };
        match frame.get_mut(name) {
            Some(old) => *old = value,
            None => {
                frame.insert(name.to_owned(), value);
            }
        }
    }

    fn set_member(&mut self, space: &'a Expression, member: &str, value: &'a Expression) -> Result<(), TemplateError> {
        let range = value.range.clone();
        let value = self.value(value)?;
        let Value::Namespace(entries) = self.value(space)? else {
            let error = TemplateError::new("only members of a namespace can be set").at(space.range.clone());
            return Err(error.help("make one with `{% set name = namespace() %}`"));
        };
        // The value is put into a list, because a list rejects values under the same conditions as the namespace.
        Value::list(vec![value.clone()]).map_err(|error| error.at(range))?;
        let mut entries = entries.borrow_mut();
        match entries.iter_mut().find(|(name, _)| **name == *member) {
            Some((_, old)) => *old = value,
            None => entries.push((member.into(), value)),
        }
        Ok(())
    }

    /// Returns the local value of a name.
    pub(crate) fn local(&self, name: &str) -> Option<&Value> {
        self.frames.iter().rev().find_map(|frame| frame.get(name))
    }

    pub(crate) fn spend(&self, steps: usize, range: &Range<usize>) -> Result<(), TemplateError> {
        self.budget.spend(steps).map_err(|error| error.at(range.clone()))
    }

    pub(crate) fn value(&mut self, expression: &'a Expression) -> Result<Value, TemplateError> {
        self.spend(1, &expression.range)?;
        let resolution = self.resolution;
        let value = resolution.deeper(|| self.kind(expression));
        let value = value.map_err(|error| error.at(expression.range.clone()))?;
        self.spend(value.size(), &expression.range)?;
        Ok(value)
    }

    /// Returns the value of a condition. In Nunjucks, a name that does not exist is null there.
    pub(crate) fn condition(&mut self, expression: &'a Expression) -> Result<Value, TemplateError> {
        match self.value(expression) {
            Err(error) if self.is_nunjucks && error.kind == ErrorKind::Missing => Ok(Value::Null),
            other => other,
        }
    }

    fn kind(&mut self, expression: &'a Expression) -> Result<Value, TemplateError> {
        match &expression.kind {
            Kind::Null => Ok(Value::Null),
            Kind::Bool(value) => Ok(Value::Bool(*value)),
            Kind::Number(value) => Ok(Value::Number(*value)),
            Kind::Text(text) => Ok(Value::text(text)),
            Kind::Name(_) | Kind::Member(..) | Kind::Item(..) => self.path(expression),
            Kind::List(items) => Value::list(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?),
            Kind::Map(entries) => self.map(entries),
            Kind::Slice(operand, bounds) => self.slice(operand, bounds),
            Kind::Call(callee, arguments) => call::function(self, callee, arguments),
            Kind::Filter(operand, name, arguments) => {
                let filtered = call::filter(self, operand, &name.value, arguments);
                filtered.map_err(|error| error.at(name.range.clone()))
            }
            Kind::Test { operand, name, arguments, negated } => {
                let answer = call::test(self, operand, &name.value, arguments);
                answer.map(|answer| Value::Bool(answer != *negated)).map_err(|error| error.at(name.range.clone()))
            }
            Kind::Not(operand) => Ok(Value::Bool(!self.condition(operand)?.is_true())),
            Kind::Negative(operand) => self.negative(operand),
            Kind::Binary(operator, left, right) => self.binary(*operator, left, right),
            Kind::Choice { condition, then, otherwise } => self.choice(condition, then, otherwise.as_deref()),
        }
    }

    fn map(&mut self, written: &'a [(Expression, Expression)]) -> Result<Value, TemplateError> {
        let mut entries: Entries = Vec::with_capacity(written.len());
        let mut places = HashMap::with_capacity(written.len());
        for (key, value) in written {
            let name = match self.value(key)? {
                Value::Text(name) => name,
                other => {
                    let message = format!("the name of a member is a string, not {}", other.kind());
                    return Err(TemplateError::new(message).at(key.range.clone()));
                }
            };
            let value = self.value(value)?;
            let at = *places.entry(Rc::clone(&name)).or_insert(entries.len());
            match entries.get_mut(at) {
                Some((_, old)) => *old = value,
                None => entries.push((name, value)),
            }
        }
        Value::map(entries)
    }

    fn negative(&mut self, operand: &'a Expression) -> Result<Value, TemplateError> {
        match self.value(operand)? {
            Value::Number(number) => Ok(Value::Number(Number::Whole(0).subtract(number))),
            other => {
                Err(TemplateError::new(format!("`-` cannot be used with {}", other.kind())).at(operand.range.clone()))
            }
        }
    }

    fn binary(
        &mut self,
        operator: Operator,
        left: &'a Expression,
        right: &'a Expression,
    ) -> Result<Value, TemplateError> {
        let left = match operator {
            Operator::And | Operator::Or => self.condition(left)?,
            _ => self.value(left)?,
        };
        match operator {
            Operator::And if !left.is_true() => return Ok(left),
            Operator::Or if left.is_true() => return Ok(left),
            Operator::And | Operator::Or => return self.value(right),
            _ => {}
        }
        let right = self.value(right)?;
        let is_comparison = !matches!(operator, Operator::Add | Operator::Concatenate | Operator::In | Operator::NotIn);
        let (left, right) =
            if self.is_nunjucks && is_comparison { nunjucks::alike(left, right) } else { (left, right) };
        operator::apply(operator, &left, &right, &self.budget)
    }

    fn choice(
        &mut self,
        condition: &'a Expression,
        then: &'a Expression,
        otherwise: Option<&'a Expression>,
    ) -> Result<Value, TemplateError> {
        if self.condition(condition)?.is_true() {
            return self.value(then);
        }
        otherwise.map_or(Ok(Value::Null), |otherwise| self.value(otherwise))
    }

    fn slice(&mut self, operand: &'a Expression, bounds: &'a [Option<Expression>; 3]) -> Result<Value, TemplateError> {
        let value = self.value(operand)?;
        let [start, stop, step] = bounds;
        let (start, stop, step) = (self.bound(start.as_ref())?, self.bound(stop.as_ref())?, self.bound(step.as_ref())?);
        let sliced = match &value {
            Value::List(list) => picked(&list.items, start, stop, step)
                .and_then(|items| Value::list(items.into_iter().cloned().collect())),
            Value::Text(text) => {
                let characters: Vec<char> = text.chars().collect();
                picked(&characters, start, stop, step)
                    .map(|characters| Value::Text(characters.into_iter().collect::<String>().into()))
            }
            other => Err(TemplateError::new(format!("only a list or text can be sliced, not {}", other.kind()))),
        };
        sliced.map_err(|error| error.at(operand.range.clone()))
    }

    fn bound(&mut self, bound: Option<&'a Expression>) -> Result<Option<i64>, TemplateError> {
        let Some(bound) = bound else { return Ok(None) };
        match self.value(bound)? {
            Value::Null => Ok(None),
            Value::Number(number) if number.as_whole().is_some() => Ok(number.as_whole()),
            other => {
                let message = format!("a position is a whole number, not {}", other.kind());
                Err(TemplateError::new(message).at(bound.range.clone()))
            }
        }
    }

    /// Evaluates a name with the steps into its value. All steps are taken together, so that only the parts that are
    /// used are resolved.
    fn path(&mut self, expression: &'a Expression) -> Result<Value, TemplateError> {
        let mut steps = Vec::new();
        let mut base = expression;
        loop {
            base = match &base.kind {
                Kind::Member(operand, name) => {
                    steps.push(Step { key: Key::Name(name.value.clone()), range: name.range.clone() });
                    operand
                }
                Kind::Item(operand, key) => {
                    steps.push(Step { key: self.key(key)?, range: key.range.clone() });
                    operand
                }
                _ => break,
            };
        }
        steps.reverse();
        let value = match &base.kind {
            Kind::Name(name) => match self.local(name).cloned() {
                Some(local) => local,
                None => return self.variable(name, base, &steps),
            },
            _ => self.value(base)?,
        };
        let mut here = vec![Key::Name(written_name(base))];
        steps.into_iter().try_fold(value, |value, step| {
            self.spend(walked(&value), &step.range)?;
            let next = member(&value, &step.key, &path::written(&here)).map_err(|error| error.at(step.range))?;
            here.push(step.key);
            Ok(next)
        })
    }

    fn key(&mut self, key: &'a Expression) -> Result<Key, TemplateError> {
        match self.value(key)? {
            Value::Text(name) => Ok(Key::Name((*name).to_owned())),
            Value::Number(number) if number.as_whole().is_some() => Ok(Key::Position(number.as_whole().unwrap_or(0))),
            other => {
                let message = format!("a key is a string or a whole number, not {}", other.kind());
                Err(TemplateError::new(message).at(key.range.clone()))
            }
        }
    }

    fn variable(&mut self, name: &str, base: &Expression, steps: &[Step]) -> Result<Value, TemplateError> {
        if self.resolution.variables.raw(name).is_none()
            && steps.is_empty()
            && let Some(function) = named(FUNCTIONS, name)
        {
            return Ok(Value::Function(Function::Global(function.name())));
        }
        let first = Key::Name(name.to_owned());
        let path: Vec<Key> = std::iter::once(first).chain(steps.iter().map(|step| step.key.clone())).collect();
        let (found, weight) = self.resolution.look_up(&path);
        self.spend(weight / limit::VALUES_A_STEP, &base.range)?;
        match found.map_err(|error| with_range(error, base.range.clone()))? {
            Found::Node(node) => Value::from_node(&node).map_err(|error| error.at(base.range.clone())),
            Found::Missing { at, error } => {
                self.spend(error.searched as usize / limit::VALUES_A_STEP, &base.range)?;
                let range =
                    at.checked_sub(1).and_then(|index| steps.get(index)).map_or(&base.range, |step| &step.range);
                Err(error.at(range.clone()))
            }
        }
    }

    /// Evaluates the arguments of a call.
    pub(crate) fn given(&mut self, arguments: &'a Arguments) -> Result<Given, TemplateError> {
        let positional = arguments.positional.iter().map(|value| self.value(value)).collect::<Result<_, _>>()?;
        let named = arguments.named.iter().map(|(name, value)| Ok((name.value.clone(), self.value(value)?)));
        let named = named.collect::<Result<_, TemplateError>>()?;
        Ok(Given { positional, named })
    }
}

/// Returns `true` if an output is the value of a name, rather than one that the template computes.
fn names_a_value(expression: &Expression) -> bool {
    match &expression.kind {
        // A default value in the `env` format.
        Kind::Choice { condition, then, .. } => {
            matches!(condition.kind, Kind::Test { .. }) && condition.range == then.range && then.is_path()
        }
        _ => expression.is_path(),
    }
}

fn written_name(base: &Expression) -> String {
    match &base.kind {
        Kind::Name(name) => name.clone(),
        _ => "the value".to_owned(),
    }
}
