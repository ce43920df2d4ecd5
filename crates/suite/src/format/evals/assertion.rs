//! Reads the assertions of a case: strings, whose meaning grading determines, and maps with a `type`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use model::decode::{self, Fields, Problems};
use model::{Arguments, AssertionScope, AssertionSpec, Definition, Diagnostic, Node, NodeKind, Span, Spanned};

use crate::path;
use crate::table::{Field, Table};

/// Type of an assertion given as a string.
const CLAIM: &str = "claim";

/// Types of the assertion that is added if the skill or sub-agent should not be used.
pub(super) const NOT_USED: [&str; 2] = ["skill_not_used", "sub_agent_not_used"];

/// Id of this assertion.
const NOT_USED_ID: &str = "skill-not-used";

/// An assertion type, and its keys in addition to `type` and `text`.
pub struct Type {
    /// Value of `type`.
    pub name: &'static str,
    /// Required keys.
    pub needs: Vec<&'static str>,
    /// Optional keys.
    pub may: Vec<&'static str>,
}

/// All types, in the order of the reference, whose table lists the keys of each: "`contains`; `path` (optional)".
pub static TYPES: LazyLock<Vec<Type>> = LazyLock::new(|| {
    let of = |row: Field| {
        let keys = row.value.split("; ").filter_map(|key| key.strip_prefix('`')?.split_once('`'));
        let (needs, may): (Vec<_>, Vec<_>) = keys.partition(|(_, mark)| mark.is_empty());
        let names = |keys: Vec<(&'static str, _)>| keys.into_iter().map(|(name, _)| name).collect();
        Type { name: row.key, needs: names(needs), may: names(may) }
    };
    Table::fields_of("evals assertion types").into_iter().map(of).collect()
});

/// All keys that an assertion may have, regardless of its type.
pub static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| Table::fields_of("evals assertion").iter().map(|field| field.key).collect());

/// Reads the assertions in a list; their ids are their numbers in it.
pub(super) fn read(items: &[Node], problems: &mut Problems) -> Vec<AssertionSpec> {
    refuse_repeated(items, problems);
    let numbered = items.iter().enumerate();
    numbered.filter_map(|(at, item)| entry(item, format!("assertion-{}", at + 1), problems)).collect()
}

/// Creates the assertion that the skill or sub-agent called `name` is not used, which follows from the key at `place`.
pub(super) fn not_used(definition: Definition, name: &str, place: &Node) -> AssertionSpec {
    let [of_skill, of_sub_agent] = NOT_USED;
    let (not_used, id) = match definition {
        Definition::Skill => (of_skill, NOT_USED_ID),
        Definition::SubAgent => (of_sub_agent, "sub-agent-not-used"),
    };
    let kind = NodeKind::String(name.to_owned());
    let skill = Node { kind, span: place.span, tag: None, source: Arc::clone(&place.source) };
    spec(place, id.to_owned(), Spanned::new(not_used.to_owned(), place.span), Arguments::Brief(skill))
}

fn spec(node: &Node, id: String, kind: Spanned<String>, arguments: Arguments) -> AssertionSpec {
    AssertionSpec { node: node.clone(), arguments, about: AssertionScope::Trial, id, kind, weight: 1.0 }
}

fn entry(item: &Node, id: String, problems: &mut Problems) -> Option<AssertionSpec> {
    if let NodeKind::String(text) = &item.kind {
        if text.trim().is_empty() {
            problems.push(item.error("an assertion must not be empty"));
            return None;
        }
        let kind = Spanned::new(CLAIM.to_owned(), item.span);
        return Some(spec(item, id, kind, Arguments::Brief(item.clone())));
    }
    if !matches!(item.kind, NodeKind::Map(_)) {
        problems.push(item.error(format!("an assertion must be a string or a map, not {}", item.kind_name())));
        return None;
    }
    let mut fields = Fields::of(item, "an assertion", problems)?;
    let kind = fields.require("type", problems);
    let written = kind.and_then(|node| find(node, problems));
    if let Some(written) = written {
        refuse_needless(written, &mut fields, problems);
        values(written, &mut fields, problems);
    }
    for key in KEYS.iter() {
        fields.get(key);
    }
    fields.finish(problems);
    let kind = Spanned::new(written?.name.to_owned(), kind?.span);
    Some(spec(item, id, kind, Arguments::Fields))
}

fn find(node: &Node, problems: &mut Problems) -> Option<&'static Type> {
    let choices: Vec<(&'static str, &'static Type)> = TYPES.iter().map(|one| (one.name, one)).collect();
    decode::choice(node, "`type`", &choices, problems)
}

/// Reports keys that the type does not use, because they would be silently ignored.
fn refuse_needless(written: &Type, fields: &mut Fields<'_>, problems: &mut Problems) {
    let known = || ["type", "text"].iter().chain(&written.needs).chain(&written.may);
    for key in KEYS.iter().filter(|key| !known().any(|other| other == *key)) {
        if let Some(span) = fields.get(key).and(fields.key_span(key)) {
            let place = fields.node().source.excerpt(span);
            let own = known().filter(|key| **key != "type").map(|key| format!("`{key}`")).collect::<Vec<_>>();
            let problem = Diagnostic::error(format!("`{}` has no `{key}`", written.name)).at(place);
            problems.push(problem.help(format!("in addition to `type`, it takes {}", own.join(", "))));
        }
    }
}

fn values(written: &Type, fields: &mut Fields<'_>, problems: &mut Problems) {
    fields.text("text", problems);
    for key in written.needs.iter().chain(&written.may).copied().filter(|key| *key != "equals") {
        let text = match written.needs.contains(&key) {
            true => fields.required_text(key, problems),
            false => fields.text(key, problems),
        };
        if let (Some(text), Some(place)) = (text.filter(|_| key == "path"), fields.get(key)) {
            check_path(&text, place, problems);
        }
    }
}

fn check_path(written: &str, place: &Node, problems: &mut Problems) {
    let fault = match path::inside_sandbox(written).as_deref() {
        Ok(".") => "does not name a file",
        Ok(_) => return,
        Err(fault) => fault,
    };
    let problem = place.error(format!("`path` {fault}: `{written}`"));
    problems.push(problem.help("write a path relative to the agent's working directory, such as `src/main.py`"));
}

/// Warns about duplicate assertions, which would count twice.
fn refuse_repeated(items: &[Node], problems: &mut Problems) {
    let mut first: HashMap<String, Span> = HashMap::new();
    for item in items {
        let Some(text) = item.as_str().map(normal) else { continue };
        match first.get(&text) {
            Some(span) => {
                let line = item.source.excerpt(*span).line;
                problems.push(item.warning(format!("line {line} asserts the same thing")).help("it counts twice"));
            }
            None => drop(first.insert(text, item.span)),
        }
    }
}

/// Normalises a string for comparison: case, white space and a final period do not matter.
fn normal(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches(['.', ' ']).to_owned()
}
