//! Reads a case's assertions as far as loading knows them: an id, a type, a weight and the form of the arguments. Only
//! grading knows the types.

use std::collections::HashMap;
use std::sync::Arc;

use model::decode::{self, Fields, Problems};
use model::{Arguments, AssertionScope, AssertionSpec, Diagnostic, Node, NodeKind, OutcomeRule, Scoring, Spanned};

use super::foreign::share;

/// Keys with which other programs deny an assertion.
const DENYING: [&str; 5] = ["negate", "negated", "not", "invert", "inverse"];

/// Keys of an entry besides its type and arguments.
const BESIDE: [&str; 3] = ["id", "weight", "title"];

/// Assertions of one case while they are being read.
#[derive(Default)]
pub(super) struct Assertions {
    /// Each assertion, with `true` if its id still has to be generated.
    specs: Vec<(AssertionSpec, bool)>,
    /// True if an entry could not be read.
    has_unread: bool,
}

impl Assertions {
    /// Reads the entries `items`, whose subject is `about`.
    pub(super) fn read(&mut self, items: &[Node], about: AssertionScope, problems: &mut Problems) {
        let known = self.specs.len();
        self.specs.extend(items.iter().filter_map(|item| {
            let spec = entry(item, problems)?;
            let is_nameless = spec.id.is_empty();
            Some((AssertionSpec { about, ..spec }, is_nameless))
        }));
        self.has_unread |= self.specs.len() - known < items.len();
    }

    /// Returns `true` if an entry could not be read. Its problem was reported, so the case does not lack assertions.
    pub(super) fn has_unread(&self) -> bool {
        self.has_unread
    }

    /// Returns all assertions in the order in which they were read. Assertions without an id get one from their type
    /// and a number, such as `tool_called-2` for the second one of that type without an id, however the type is
    /// written.
    pub(super) fn finish(self) -> Vec<AssertionSpec> {
        let taken: Vec<String> = self.specs.iter().map(|(spec, _)| spec.id.clone()).collect();
        let mut counts: HashMap<String, usize> = HashMap::new();
        let named = |(mut spec, is_nameless): (AssertionSpec, bool)| {
            let kind = decode::snake_case(&spec.kind.value);
            while is_nameless && (spec.id.is_empty() || taken.contains(&spec.id)) {
                let count = counts.entry(kind.clone()).or_default();
                *count += 1;
                spec.id = format!("{kind}-{count}");
            }
            spec
        };
        self.specs.into_iter().map(named).collect()
    }
}

/// Reads `threshold`, the share of the weights of `specs` with which a trial passes.
pub(super) fn ruling(fields: &mut Fields<'_>, specs: &[AssertionSpec], problems: &mut Problems) -> OutcomeRule {
    let share = fields.get("threshold").and_then(|node| share(node, "threshold", problems));
    let total = specs.iter().map(|spec| spec.weight).sum();
    OutcomeRule { scoring: share.map(|share| Scoring::with_share(total, share)), ..OutcomeRule::default() }
}

/// Reads an entry; its id is empty if it has none.
fn entry(item: &Node, problems: &mut Problems) -> Option<AssertionSpec> {
    if let NodeKind::String(kind) = &item.kind {
        if item.tag.is_some() {
            // The tag is reported.
            return None;
        }
        // A type without arguments may be written alone.
        let kind = Spanned::new(decode::text(item, "an assertion", problems).map(|_| kind.clone())?, item.span);
        let nothing = Node { kind: NodeKind::Null, span: item.span, tag: None, source: Arc::clone(&item.source) };
        return Some(spec(item, String::new(), kind, None, Arguments::Brief(nothing)));
    }
    let mut fields = Fields::of(item, "an assertion", problems)?;
    if item.get("type").is_none()
        && let Some((kind, value)) = single_key(&mut fields)
        // `typ: contains` has no arguments.
        && !(value.as_str().is_some() && model::nearest(&kind.value, ["type"]).is_some())
    {
        if let Some(problem) = spaced(&kind, item) {
            problems.push(problem);
            return None;
        }
        let id = fields.text("id", problems);
        let weight = fields.positive("weight", problems);
        return Some(spec(item, id.unwrap_or_default(), kind, weight, Arguments::Brief(value)));
    }
    if item.get("type").is_none()
        && let Some((key, near)) = misspelt(&mut fields)
    {
        let problem = Diagnostic::error(format!("an assertion has no key `{}`", key.value));
        problems.push(problem.at(item.source.excerpt(key.span)).suggest(Some(near)));
        return None;
    }
    if item.get("type").is_none()
        && let Some(problem) = several_keys(&fields)
    {
        problems.push(problem);
        return None;
    }
    let id = fields.text("id", problems).unwrap_or_default();
    let kind = fields.required_text("type", problems);
    let place = fields.get("type");
    let weight = fields.positive("weight", problems);
    let kind = Spanned::new(kind?, place?.span);
    if let Some(problem) = spaced(&kind, item) {
        problems.push(problem);
        return None;
    }
    Some(spec(item, id, kind, weight, Arguments::Fields))
}

/// Returns the problem with a type that has a space at its beginning or its end.
fn spaced(kind: &Spanned<String>, item: &Node) -> Option<Diagnostic> {
    let name = kind.value.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let problem = Diagnostic::error(format!("unknown assertion type `{}`", kind.value));
    let problem = problem.at(item.source.excerpt(kind.span)).help(format!("write `{name}` without the space"));
    (is_name && name != kind.value).then_some(problem)
}

/// Returns the only key of an entry besides the common ones, with its value.
fn single_key(fields: &mut Fields<'_>) -> Option<(Spanned<String>, Node)> {
    for known in BESIDE {
        fields.get(known);
    }
    let mut others = fields.unread();
    let (kind, value) = others.next()?;
    others.next().is_none().then(|| (kind.clone(), value.clone()))
}

/// Returns the problem with an entry that has other keys beside the one for its type: `file_exists: a.txt` and `text`.
fn several_keys(fields: &Fields<'_>) -> Option<Diagnostic> {
    if let Some((key, _)) = fields.unread().find(|(key, _)| DENYING.contains(&&*key.value)) {
        let problem = Diagnostic::error(format!("an assertion has no key `{}`", key.value));
        let problem = problem.at(fields.node().source.excerpt(key.span));
        return Some(problem.help("write the assertion that denies it, such as `not_contains` or `tool_not_called`"));
    }
    let mut unread = fields.unread();
    let (kind, _) = unread.next()?;
    let others: Vec<String> = unread.map(|(key, _)| format!("`{}`", key.value)).collect();
    let problem = Diagnostic::error("an assertion has no `type`").at(fields.node().source.excerpt(kind.span));
    let kind = &kind.value;
    let help = format!("for the type `{kind}`, write `{kind}: {{…}}` and put {} into the braces", others.join(" and "));
    let problem = problem.help(help).help(format!("or write `type: {kind}`, with a key for each field"));
    // A forgotten `-` makes one entry of two assertions.
    let [other] = others.as_slice() else { return Some(problem) };
    Some(problem.help(format!("or begin {other} with `- `, if it is an assertion of its own")))
}

/// Returns a key that is not one of the common ones but similar to one, and that one.
fn misspelt(fields: &mut Fields<'_>) -> Option<(Spanned<String>, &'static str)> {
    fields
        .unread()
        .find_map(|(key, _)| Some((key.clone(), model::nearest(&key.value, BESIDE.into_iter().chain(["type"]))?)))
}

fn spec(item: &Node, id: String, kind: Spanned<String>, weight: Option<f64>, arguments: Arguments) -> AssertionSpec {
    AssertionSpec {
        node: item.clone(),
        arguments,
        about: AssertionScope::Trial,
        id,
        kind,
        weight: weight.unwrap_or(1.0),
    }
}
