//! Reads the assertions of a case: strings, whose meaning grading determines, and maps with a `type`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use model::decode::{self, Fields, Problems};
use model::{Arguments, AssertionScope, AssertionSpec, Definition, Diagnostic, Node, NodeKind, Span, Spanned, nearest};

use super::reading::Reading;
use super::suite::DESCRIPTIVE;
use crate::coverage::Unknown;
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

/// Keys of an assertion that other tools use for its sentence, in the order in which they are tried.
const SENTENCES: [&str; 9] =
    ["text", "description", "check", "criterion", "criteria", "assertion", "expectation", "statement", "requirement"];

/// Keys that people write for those of the assertion types.
const SYNONYMS: [(&str, &str); 8] = [
    ("file", "path"),
    ("filename", "path"),
    ("file_path", "path"),
    ("cmd", "command"),
    ("content", "contains"),
    ("value", "equals"),
    ("value", "contains"),
    ("expected", "equals"),
];

/// Keys of an assertion that other tools use for its name.
const NAMES: [&str; 2] = ["id", "name"];

/// Reads the assertions in a list. The id of an assertion is its own, if other tools gave it one that is unique, and
/// otherwise its number in the list.
pub(super) fn read(items: &[Node], case: &mut Reading<'_>, problems: &mut Problems) -> Vec<AssertionSpec> {
    refuse_repeated(items, problems);
    let mut specs: Vec<AssertionSpec> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let number = format!("assertion-{}", at + 1);
        let own = NAMES.iter().find_map(|key| item.get(key)?.as_str()).map(str::trim);
        let own = own.filter(|own| !own.is_empty() && !own.contains(char::is_control));
        let own = own.filter(|own| specs.iter().all(|spec| spec.id != *own)).map(str::to_owned);
        specs.extend(entry(item, own.unwrap_or(number), case, problems));
    }
    specs
}

/// Creates the assertion that the skill or sub-agent called `name` is not used, which follows from the key at `place`.
pub(super) fn not_used(definition: Definition, name: &str, place: &Node) -> AssertionSpec {
    let [of_skill, of_sub_agent] = NOT_USED;
    let (not_used, id) = match definition {
        Definition::Skill | Definition::Plugin | Definition::SkillsOfPlugin => (of_skill, NOT_USED_ID),
        Definition::SubAgent => (of_sub_agent, "sub-agent-not-used"),
    };
    let kind = NodeKind::String(name.to_owned());
    let skill = Node { kind, span: place.span, tag: None, source: Arc::clone(&place.source) };
    spec(place, id.to_owned(), Spanned::new(not_used.to_owned(), place.span), Arguments::Brief(skill))
}

fn spec(node: &Node, id: String, kind: Spanned<String>, arguments: Arguments) -> AssertionSpec {
    AssertionSpec { node: node.clone(), arguments, about: AssertionScope::Trial, id, kind, weight: 1.0 }
}

fn entry(item: &Node, id: String, case: &mut Reading<'_>, problems: &mut Problems) -> Option<AssertionSpec> {
    if let NodeKind::String(text) = &item.kind {
        if text.trim().is_empty() {
            problems.push(item.error("an assertion must not be empty"));
            return None;
        }
        return Some(claim(item, item, id));
    }
    if !matches!(item.kind, NodeKind::Map(_)) {
        problems.push(item.error(format!("an assertion must be a string or a map, not {}", item.kind_name())));
        return None;
    }
    let is_own = item.get("type").and_then(Node::as_str).is_some_and(|kind| TYPES.iter().any(|one| one.name == kind));
    let sentence = SENTENCES.iter().find_map(|key| item.get(key).filter(|node| has_text(node)));
    if let Some(sentence) = sentence.filter(|_| !is_own) {
        return foreign(item, sentence, id, case, problems);
    }
    let mut fields = Fields::of(item, "an assertion", problems)?.with_synonyms(&SYNONYMS);
    for key in NAMES {
        fields.get(key);
    }
    let known = [problems.len(), case.broken.len()];
    let kind = fields.require("type", &mut case.broken);
    let written = kind.and_then(|node| find(node, &mut case.broken));
    if let Some(written) = written {
        refuse_needless(written, &mut fields, problems);
        values(written, &mut fields, problems);
    }
    for key in KEYS.iter() {
        fields.get(key);
    }
    if let Some((key, _)) = fields.unread().find(|(key, _)| TYPES.iter().any(|one| one.name == key.value))
        && kind.is_none()
        && let Some(problem) = case.broken.last_mut()
    {
        problem.help = vec![format!("write `\"type\": \"{}\"`, with a key for each argument", key.value)];
    }
    let unknown = |_: &str, _: &Node| match written.is_none() {
        true => Unknown::Ignored("its type is not known".to_owned()),
        false => Unknown::Refused("assertions of this type do not have it".to_owned()),
    };
    case.close(&fields, PATH, &[], unknown, problems);
    if let (Some(kind), None, Some(problem)) = (kind, written, case.broken.last_mut()) {
        // Which keys it may have is not known either.
        problems.truncate(known[0]);
        let fits = |one: &&Type| one.needs.iter().all(|key| item.get(key).is_some());
        let fitting = TYPES.iter().filter(fits).map(|one| one.name);
        if nearest(kind.as_str().unwrap_or_default(), fitting).is_none() {
            problem.help = vec!["an assertion about the answer is a sentence, not a map".to_owned()];
        }
    }
    let own = problems.get(known[0]..).unwrap_or_default();
    case.broken.retain(|problem| !own.iter().any(|cause| problem.follows_from(cause)));
    let kind = Spanned::new(written?.name.to_owned(), kind?.span);
    // Grading would report the same problems again.
    ([problems.len(), case.broken.len()] == known).then(|| spec(item, id, kind, Arguments::Fields))
}

/// Path of an assertion's keys.
const PATH: &str = "evals[].assertions[]";

/// Consequence of a key that decides how an assertion is checked.
const UNKNOWN_CHECK: &str = "trialrun does not know this kind of check";

pub(super) fn has_text(node: &Node) -> bool {
    node.as_str().is_some_and(|text| !text.trim().is_empty())
}

/// Creates the assertion that a judge finds what `expected`, the description of a good answer, describes. A case
/// without other assertions has it.
pub(super) fn as_expected(expected: &Node) -> AssertionSpec {
    let text = expected.as_str().unwrap_or_default().trim();
    let criteria = format!("The result agrees with this description of the expected result: {text}");
    let of = |kind: NodeKind| Node { kind, tag: None, ..expected.clone() };
    let entries = vec![(Spanned::new("criteria".to_owned(), expected.span), of(NodeKind::String(criteria)))];
    let kind = Spanned::new("llm_judge".to_owned(), expected.span);
    spec(&of(NodeKind::Map(entries)), "expected-output".to_owned(), kind, Arguments::Fields)
}

/// Creates the assertion that `sentence` holds. `item` is the entry that contains it.
fn claim(item: &Node, sentence: &Node, id: String) -> AssertionSpec {
    spec(item, id, Spanned::new(CLAIM.to_owned(), sentence.span), Arguments::Brief(sentence.clone()))
}

/// Reads an assertion as other tools write it: a sentence with a name and descriptive keys.
fn foreign(
    item: &Node,
    sentence: &Node,
    id: String,
    case: &mut Reading<'_>,
    problems: &mut Problems,
) -> Option<AssertionSpec> {
    const IGNORED: [(&str, &str); 9] = [
        ("type", "the sentence is checked like any other"),
        ("kind", "the sentence is checked like any other"),
        ("method", "the sentence is checked like any other"),
        ("weight", "every assertion must hold"),
        ("critical", "every assertion must hold"),
        ("required", "every assertion must hold"),
        ("severity", "every assertion must hold"),
        ("passed", "it is a result, and trialrun decides again"),
        ("evidence", "it is a result, and trialrun decides again"),
    ];
    let mut fields = Fields::of(item, "an assertion", problems)?;
    for key in NAMES.iter().chain(&SENTENCES) {
        if item.get(key).is_some_and(|node| NAMES.contains(key) || std::ptr::eq(node, sentence)) {
            fields.get(key);
        }
    }
    let unknown = |_: &str, value: &Node| match value.kind {
        NodeKind::String(_) if is_prose(value) => Unknown::Ignored(DESCRIPTIVE.to_owned()),
        NodeKind::Null => Unknown::Ignored(DESCRIPTIVE.to_owned()),
        _ => Unknown::Refused(UNKNOWN_CHECK.to_owned()),
    };
    let known = case.broken.len();
    case.close(&fields, PATH, &IGNORED, unknown, problems);
    (case.broken.len() == known).then(|| claim(item, sentence, id))
}

/// Returns `true` for text that explains something, and not for a word or a pattern that may be part of a check.
fn is_prose(node: &Node) -> bool {
    node.as_str().is_some_and(|text| text.split_whitespace().count() > 3)
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
