//! State of resolving values and the templates in them: the values in progress, the depth and the size.

mod evaluate;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ops::Range;

use model::{Node, NodeKind, Span, Spanned};

use crate::error::{ErrorKind, TemplateError};
use crate::format::Format;
use crate::limit;
use crate::path::{self, Key};
use crate::template::{Outcome, Template};
use crate::variables::{Place, Variables};

pub(crate) use evaluate::evaluate;

/// Result of looking up a path.
pub(crate) enum Found {
    /// Value with its templates resolved.
    Node(Node),
    /// The step at this index does not exist.
    Missing { at: usize, error: TemplateError },
}

/// Handler for a template that cannot be resolved. It returns an error to stop.
pub(crate) type OnError<'a> = dyn FnMut(&Node, TemplateError) -> Result<(), TemplateError> + 'a;

/// Part of a value, with the last step of its path.
type Child<'v> = (Key, Cow<'v, Node>);

pub(crate) struct Resolution<'v> {
    pub(crate) variables: &'v Variables,
    /// Strings of variables that are being resolved, each used by the previous one.
    trail: RefCell<Vec<Place>>,
    /// Parts of the current text that are kept unchanged.
    left: RefCell<Vec<TemplateError>>,
    depth: Cell<u32>,
    weight: Cell<usize>,
}

impl<'v> Resolution<'v> {
    pub(crate) fn new(variables: &'v Variables) -> Self {
        Self {
            variables,
            trail: RefCell::default(),
            left: RefCell::default(),
            depth: Cell::new(0),
            weight: Cell::new(0),
        }
    }

    /// Runs `inside` one level deeper.
    pub(crate) fn deeper<T>(&self, inside: impl FnOnce() -> Result<T, TemplateError>) -> Result<T, TemplateError> {
        let depth = self.depth.get() + 1;
        if depth > limit::DEPTH {
            return Err(TemplateError::passing("nested too deeply")
                .help("a macro that calls itself needs an end, and variables that use variables have a limit"));
        }
        self.depth.set(depth);
        let result = inside();
        self.depth.set(depth - 1);
        result
    }

    /// Returns the value at `path`, which starts with a variable. Only values on the path are resolved.
    pub(crate) fn find(&self, path: &[Key]) -> Result<Found, TemplateError> {
        let Some((first, rest)) = path.split_first() else { return Ok(self.unknown("")) };
        let name = first.to_string();
        let Some(raw) = self.variables.raw(&name) else { return Ok(self.unknown(&name)) };
        self.deeper(|| self.follow(raw, path, rest))
    }

    /// Like [`Resolution::find`], for a value that is not kept. Also returns its size, which is not counted.
    pub(crate) fn look_up(&self, path: &[Key]) -> (Result<Found, TemplateError>, usize) {
        let before = self.weight.get();
        let found = self.find(path);
        let weight = self.weight.replace(before) - before;
        (found, weight)
    }

    /// Returns the value at `path`, whose steps after the first one are `rest`. A borrowed value still contains its
    /// templates; an owned one is resolved.
    fn follow(&self, start: &'v Node, path: &[Key], rest: &[Key]) -> Result<Found, TemplateError> {
        let mut value = Cow::Borrowed(start);
        let mut place = vec![Key::Name(path[0].to_string())];
        for (index, key) in rest.iter().enumerate() {
            let here = &path[..=index];
            if let Cow::Borrowed(node) = value
                && node.as_str().is_some_and(may_be_template)
            {
                value = Cow::Owned(self.settled_tree(node, &place)?);
            }
            if let Some(text) = value.as_str() {
                self.weigh(text.len() / limit::WEIGHED_BYTES)?;
            }
            let next = match &value {
                Cow::Borrowed(node) => self.raw_child(node, &place, key)?,
                Cow::Owned(node) => path::child(node, key).map(|child| (key.clone(), Cow::Owned(child.into_owned()))),
            };
            let Some((step, next)) = next else {
                let error = path::missing(&value, &path::written(here), key);
                return Ok(Found::Missing { at: index + 1, error });
            };
            place.push(step);
            value = next;
        }
        match value {
            Cow::Borrowed(node) => self.settled_tree(node, &place).map(Found::Node),
            Cow::Owned(node) => Ok(Found::Node(node)),
        }
    }

    /// Returns the part of `node`, which is at the path `here`, at `key`, and the last step of its own path.
    fn raw_child(&self, node: &'v Node, here: &[Key], key: &Key) -> Result<Option<Child<'v>>, TemplateError> {
        let NodeKind::Map(entries) = &node.kind else {
            return Ok(path::child(node, key).map(|child| (path::canonical(node, key), child)));
        };
        let wanted = key.to_string();
        if let Some(child) = self.variables.entry(here, entries, &wanted) {
            return Ok(Some((Key::Name(wanted), Cow::Borrowed(child))));
        }
        self.weigh(entries.len() / limit::VALUES_A_STEP)?;
        for (name, child) in entries.iter().filter(|(name, _)| may_be_template(&name.value)) {
            if self.key(name, node, Format::default(), Some(here))?.value == wanted {
                return Ok(Some((Key::Name(name.value.clone()), Cow::Borrowed(child))));
            }
        }
        Ok(None)
    }

    /// Returns a variable's value, or a part of it, with its templates resolved.
    fn settled_tree(&self, node: &Node, here: &[Key]) -> Result<Node, TemplateError> {
        self.tree(node, Format::default(), Some(here), &mut |_, error| Err(error))
    }

    fn unknown(&self, name: &str) -> Found {
        let error = TemplateError::missing(format!("unknown variable `{name}`"));
        let error = TemplateError { unknown_variable: Some(name.into()), ..error };
        Found::Missing { at: 0, error: error.suggest("variables", name, self.variables.names()) }
    }

    /// Returns `node` with every template in it resolved, including those in keys. `path` is its path among the
    /// variables, if it is in a variable, for messages.
    pub(crate) fn tree(
        &self,
        node: &Node,
        format: Format,
        path: Option<&[Key]>,
        on_error: &mut OnError<'_>,
    ) -> Result<Node, TemplateError> {
        self.weigh(1)?;
        let kind = match &node.kind {
            NodeKind::String(text) => match self.text(node, text, format, path, false) {
                Ok(resolved) => {
                    let left = self.left.take();
                    left.into_iter().try_for_each(|error| on_error(node, error))?;
                    return Ok(resolved);
                }
                Err(mut error) => {
                    let others = std::mem::take(&mut error.others);
                    on_error(node, error)?;
                    others.into_iter().try_for_each(|error| on_error(node, error))?;
                    return Ok(node.clone());
                }
            },
            NodeKind::List(items) => {
                let item = |(at, item)| {
                    let key = Key::Position(i64::try_from(at).unwrap_or(i64::MAX));
                    self.deeper(|| self.tree(item, format, below(path, key).as_deref(), on_error))
                };
                NodeKind::List(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
            }
            NodeKind::Map(entries) => NodeKind::Map(self.map(node, entries, format, path, on_error)?),
            scalar => scalar.clone(),
        };
        Ok(Node { kind, ..shell(node) })
    }

    fn map(
        &self,
        node: &Node,
        entries: &[(Spanned<String>, Node)],
        format: Format,
        path: Option<&[Key]>,
        on_error: &mut OnError<'_>,
    ) -> Result<Vec<(Spanned<String>, Node)>, TemplateError> {
        let mut resolved: Vec<(Spanned<String>, Node)> = Vec::with_capacity(entries.len());
        let mut taken = HashSet::with_capacity(entries.len());
        for (name, value) in entries {
            let key = Key::Name(name.value.clone());
            let value = self.deeper(|| self.tree(value, format, below(path, key).as_deref(), on_error))?;
            let name = match self.unique_key(name, node, format, path, &mut taken) {
                Ok(name) => name,
                Err(error) => {
                    let is_kept = error.kind == ErrorKind::Unread && self.variables.keeps_unread;
                    on_error(&key_node(name, node), error)?;
                    if !is_kept {
                        continue;
                    }
                    name.clone()
                }
            };
            resolved.push((name, value));
        }
        Ok(resolved)
    }

    fn unique_key(
        &self,
        name: &Spanned<String>,
        map: &Node,
        format: Format,
        path: Option<&[Key]>,
        taken: &mut HashSet<String>,
    ) -> Result<Spanned<String>, TemplateError> {
        // Keys in a document are unique. Only results of templates may collide.
        let templates = may_be_template(&name.value) || taken.contains(&name.value);
        if !templates && format == Format::default() {
            taken.insert(name.value.clone());
            return Ok(name.clone());
        }
        let name = self.key(name, map, format, path)?;
        if !taken.insert(name.value.clone()) {
            let message = format!("two keys of this map become `{}`", name.value);
            return Err(TemplateError::new(message));
        }
        Ok(name)
    }

    fn key(
        &self,
        name: &Spanned<String>,
        map: &Node,
        format: Format,
        path: Option<&[Key]>,
    ) -> Result<Spanned<String>, TemplateError> {
        let node = key_node(name, map);
        let resolved = self.text(&node, &name.value, format, path, true)?;
        let value = crate::value::Value::from_node(&resolved).and_then(|value| value.to_text());
        let value = value.map_err(|error| error.at(0..name.value.len()))?;
        Ok(Spanned::new((*value).to_owned(), name.span))
    }

    /// Resolves the text of `node`: the value at `path`, or a name in the map there.
    fn text(
        &self,
        node: &Node,
        text: &str,
        format: Format,
        path: Option<&[Key]>,
        is_name: bool,
    ) -> Result<Node, TemplateError> {
        if format == Format::default() && !may_be_template(text) {
            self.weigh(text.len() / limit::WEIGHED_BYTES)?;
            return Ok(node.clone());
        }
        let Some(path) = path else { return self.fresh(node, text, format, false) };
        let place = Place { path: path.to_owned(), name: is_name.then(|| text.to_owned()) };
        if let Some(outcome) = self.variables.settled(&place) {
            return outcome.and_then(|settled| self.copied(&settled, node));
        }
        self.begin(&place)?;
        let outcome = self.deeper(|| self.fresh(node, text, format, true));
        self.trail.borrow_mut().pop();
        let outcome = outcome.map_err(|error| located(error, node, text));
        if !matches!(&outcome, Err(error) if error.kind == ErrorKind::Passing) {
            self.variables.settle(place, outcome.clone());
        }
        outcome
    }

    /// Records that a variable's text is being resolved. Returns an error if it already is.
    fn begin(&self, place: &Place) -> Result<(), TemplateError> {
        let mut trail = self.trail.borrow_mut();
        if let Some(first) = trail.iter().position(|other| other == place) {
            let circle: Vec<String> =
                trail[first..].iter().chain([place]).map(|place| path::written(&place.path)).collect();
            let message = match circle.as_slice() {
                [one, _] => format!("`{one}` refers to itself"),
                _ => format!("variables refer to each other in a circle: {}", circle.join(" → ")),
            };
            return Err(TemplateError::new(message).help("give one of them a value that does not use the others"));
        }
        trail.push(place.clone());
        Ok(())
    }

    fn fresh(&self, node: &Node, text: &str, format: Format, is_inside: bool) -> Result<Node, TemplateError> {
        let keeps_unread = self.variables.keeps_unread;
        let template = match Template::parse_as(text, format) {
            Ok(Some(template)) => template,
            Ok(None) => return Ok(node.clone()),
            // It is reported at the variable, which is also resolved on its own.
            Err(error) if keeps_unread && is_inside && error.kind == ErrorKind::Unread => return Ok(node.clone()),
            Err(error) => return Err(error),
        };
        let template = if keeps_unread {
            let (template, foreign) = template.without_foreign(&|name| self.variables.raw(name).is_some());
            self.left.borrow_mut().extend(foreign.into_iter().filter(|_| !is_inside));
            template
        } else {
            template
        };
        match evaluate(&template, self)? {
            Outcome::Value(value) => self.copied(&value, node),
            Outcome::Text(text) => {
                self.weigh(text.len() / limit::WEIGHED_BYTES)?;
                Ok(Node { kind: NodeKind::String(text), ..shell(node) })
            }
        }
    }

    /// Returns `value` with the location of `at`, so that diagnostics about it point there.
    fn copied(&self, value: &Node, at: &Node) -> Result<Node, TemplateError> {
        let node = self.placed(value, at)?;
        Ok(Node { tag: at.tag.clone().or(node.tag), ..node })
    }

    fn placed(&self, value: &Node, at: &Node) -> Result<Node, TemplateError> {
        self.weigh(1)?;
        let kind = match &value.kind {
            NodeKind::String(text) => {
                self.weigh(text.len() / limit::WEIGHED_BYTES)?;
                NodeKind::String(text.clone())
            }
            NodeKind::List(items) => {
                NodeKind::List(items.iter().map(|item| self.placed(item, at)).collect::<Result<_, _>>()?)
            }
            NodeKind::Map(entries) => {
                let entry = |(name, value): &(Spanned<String>, Node)| {
                    Ok((Spanned::new(name.value.clone(), at.span), self.placed(value, at)?))
                };
                NodeKind::Map(entries.iter().map(entry).collect::<Result<_, TemplateError>>()?)
            }
            scalar => scalar.clone(),
        };
        Ok(Node { kind, span: at.span, tag: value.tag.clone(), source: at.source.clone() })
    }

    fn weigh(&self, weight: usize) -> Result<(), TemplateError> {
        let total = self.weight.get().saturating_add(weight);
        self.weight.set(total);
        if total > limit::WEIGHT {
            self.variables.exhaust();
        }
        if self.variables.exhausted() {
            return Err(TemplateError::passing("the values are too large")
                .help("a value that is inserted into others many times grows quickly"));
        }
        Ok(())
    }
}

/// Returns `true` if `text` may be a template in the default format: it contains `{{` or `{%`.
pub fn may_be_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Sets the location of `error` to the part of `node` that it is about.
fn located(mut error: TemplateError, node: &Node, text: &str) -> TemplateError {
    if error.place.is_none() {
        error.place = Some(Box::new(node.source.excerpt(narrow(node, text, &error.range))));
    }
    if error.kind == ErrorKind::Missing {
        error.kind = ErrorKind::Plain;
    }
    error
}

/// Returns the position in the file of `range` in the text of `node`. The same words are searched in the source,
/// because quotes and escapes shift offsets. Returns the span of `node` if they are not found.
pub(crate) fn narrow(node: &Node, text: &str, range: &Range<usize>) -> Span {
    let words = text.get(range.clone()).unwrap_or_default();
    let written = node.source.text.get(node.span.start()..node.span.end()).unwrap_or_default();
    if words.is_empty() {
        return node.span;
    }
    let before = text[..range.start].matches(words).count();
    match written.match_indices(words).nth(before) {
        Some((at, _)) => Span::new(node.span.start() + at, node.span.start() + at + words.len()),
        None => node.span,
    }
}

/// Returns everything of a node except its value.
fn shell(node: &Node) -> Node {
    Node { kind: NodeKind::Null, span: node.span, tag: node.tag.clone(), source: node.source.clone() }
}

fn key_node(name: &Spanned<String>, map: &Node) -> Node {
    Node { kind: NodeKind::String(name.value.clone()), span: name.span, tag: None, source: map.source.clone() }
}

/// Returns the path of the part `key` of a value at `above`, which is `None` outside variables.
fn below(above: Option<&[Key]>, key: Key) -> Option<Vec<Key>> {
    above.map(|above| above.iter().cloned().chain([key]).collect())
}
