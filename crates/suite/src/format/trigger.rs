//! `trigger-eval`: lists of messages with which skill-creator and agentskills test whether the agent uses a skill. Each
//! message is a case; a trial ends as soon as the skill was used, or with the first answer.

use std::path::Path;
use std::sync::Arc;

use model::decode::{self, Fields, Problems};
use model::{
    Arguments, AssertionScope, AssertionSpec, Case, Definition, Diagnostic, Node, NodeKind, SideEffectLevel, Skill,
    SkillEval, Source, Spanned, Subject, Trials, UserMessage,
};

use super::{NamedFormat, file_name};
use crate::coverage::{KeyLog, Unknown};
use crate::document::{self, Language};
use crate::library::Library;
use crate::skill::{EVALS_FOLDER, SKILL_FILE};

/// The `trigger-eval` format.
pub const TRIGGER: NamedFormat = NamedFormat {
    name: NAME,
    tool: Some("skill-creator"),
    mark: "a JSON list of maps with `query` and `should_trigger`, called `trigger-eval.json` or `eval_queries.json`",
    fails_alone: true,
    is_meant: |_, text| QUERIES.iter().any(|key| text.contains(&format!("\"{key}\""))),
    suite: |path| {
        let name = file_name(path).filter(|name| FILES.contains(name))?;
        name.strip_suffix(".json")
    },
    folder: |_| None,
    read,
};

/// Name of the format.
const NAME: &str = "trigger-eval";

/// Names of the files.
const FILES: [&str; 5] =
    ["trigger-eval.json", "trigger-evals.json", "trigger_eval.json", "trigger_evals.json", "eval_queries.json"];

/// Keys of the message.
const QUERIES: [&str; 3] = ["query", "prompt", "text"];

/// Keys of the list, if it is not the whole document.
const LISTS: [&str; 4] = ["queries", "evals", "cases", "triggers"];

/// Number of trials of each message there.
const RUNS: u64 = 3;

/// Consequence of a key that describes a message.
const DESCRIPTIVE: &str = "it has no effect: trialrun takes it for a description";

fn read(path: &Path, source: &Arc<Source>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    let mut found = Problems::new();
    let mut keys = KeyLog::default();
    let cases = document::read(source, Language::Json, &mut found)
        .and_then(|root| cases(&root, path, library, &mut keys, &mut found));
    library.cover(keys.finish(&source.path, NAME));
    let (errors, others): (Problems, Problems) = found.into_iter().partition(Diagnostic::is_error);
    problems.extend(others);
    let mut cases = cases.unwrap_or_default();
    if cases.is_empty() && !errors.is_empty() {
        let place = source.excerpt(model::Span::new(0, 0));
        cases.push(Case { fails_alone: true, ..Case::new(NAME, place) });
    }
    for case in &mut cases {
        case.broken.extend(errors.iter().cloned());
    }
    cases.into_iter().map(Arc::new).collect()
}

fn cases(root: &Node, path: &Path, library: &Library, keys: &mut KeyLog, found: &mut Problems) -> Option<Vec<Case>> {
    let mut list = root;
    let mut named = None;
    if let NodeKind::Map(_) = root.kind {
        let mut fields = Fields::of(root, "the list", found)?;
        named = fields.text("skill_name", found).or_else(|| fields.text("skill", found));
        list = match LISTS.iter().find_map(|key| fields.get(key)) {
            Some(list) => list,
            None => fields.require(LISTS[0], found)?,
        };
        let unknown = |_: &str, _: &Node| Unknown::Ignored(DESCRIPTIVE.to_owned());
        let mut misspelt = Problems::new();
        keys.close(&fields, "", &[], unknown, &mut misspelt);
        found.extend(misspelt);
    }
    let skill = skill(named.as_deref(), path, root, library, found)?;
    if named.as_ref().is_some_and(|named| *named != skill.name) {
        let message = format!("the list names another skill, and is used for `{}`", skill.name);
        found.push(root.warning(message));
    }
    let items = decode::list(list, "the list of messages", found)?;
    if items.is_empty() {
        found.push(list.warning("the list has no messages"));
    }
    let cases = items.iter().enumerate().map(|(index, item)| {
        let mut broken = Problems::new();
        let read = case(index, item, &skill, keys, &mut broken);
        let mut case = read.unwrap_or_else(|| Case::new(name_of(index), item.excerpt()));
        (case.fails_alone, case.broken) = (true, broken);
        case
    });
    Some(cases.collect())
}

/// Returns the id of a message without an id.
fn name_of(index: usize) -> String {
    format!("query-{}", index + 1)
}

/// Returns the skill whose folder contains the file at `path`, otherwise the one called `named`.
fn skill(
    named: Option<&str>,
    path: &Path,
    place: &Node,
    library: &Library,
    found: &mut Problems,
) -> Option<Arc<Skill>> {
    if let Some(chosen) = library.chosen_skill.as_deref() {
        return library.skill_at(chosen);
    }
    let own = path.parent()?;
    let home = if own.file_name().is_some_and(|name| name == EVALS_FOLDER) { own.parent()? } else { own };
    if home.join(SKILL_FILE).is_file() {
        return library.skill_at(home);
    }
    match named {
        Some(named) => library.skill_on(named, &library.shelves(path), place, found),
        None => {
            let problem = place.error("it cannot be determined which skill the messages are about");
            found.push(problem.help("put the file into the folder `evals` of the skill, or choose the skill to test"));
            None
        }
    }
}

/// Reads a message. Its problems break only its own case.
fn case(index: usize, item: &Node, skill: &Arc<Skill>, keys: &mut KeyLog, broken: &mut Problems) -> Option<Case> {
    let mut fields = Fields::of(item, "a message", broken)?;
    let query = QUERIES.iter().find_map(|key| fields.get(key));
    let query = match query {
        Some(node) => node,
        None => fields.require(QUERIES[0], broken)?,
    };
    let text = decode::text(query, "`query`", broken)?;
    let id = match fields.get("id").map(|node| &node.kind) {
        Some(NodeKind::String(id)) if !id.trim().is_empty() && !id.contains(char::is_control) => id.trim().to_owned(),
        Some(NodeKind::Number(number)) => number.to_string(),
        _ => name_of(index),
    };
    let tags: Vec<String> = fields.get("set").and_then(Node::as_str).map(str::to_owned).into_iter().collect();
    let should_trigger = match (fields.get("should_trigger"), fields.get("expected_use_skill")) {
        (Some(node), _) | (None, Some(node)) => match node.kind {
            NodeKind::Bool(value) => Some(value),
            NodeKind::List(_) => {
                broken.push(node.error("a list of skills is not supported: a message is about one skill"));
                None
            }
            _ => fields.boolean("should_trigger", broken),
        },
        (None, None) => {
            fields.require("should_trigger", broken);
            None
        }
    };
    let unknown = |key: &str, _: &Node| match key.starts_with("should") || key.starts_with("expect") {
        true => Unknown::Refused("trialrun does not know what it expects".to_owned()),
        false => Unknown::Ignored(DESCRIPTIVE.to_owned()),
    };
    let refused = keys.close(&fields, "[]", &[], unknown, broken);
    broken.extend(refused);
    let should_trigger = should_trigger.unwrap_or(true);
    let (kind, name) =
        if should_trigger { ("skill_used", "uses-the-skill") } else { ("skill_not_used", "skill-not-used") };
    let value = Node { kind: NodeKind::String(skill.name.clone()), ..query.clone() };
    let assertion = AssertionSpec {
        node: item.clone(),
        arguments: Arguments::Brief(value),
        about: AssertionScope::Trial,
        id: name.to_owned(),
        kind: Spanned::new(kind.to_owned(), query.span),
        weight: 1.0,
    };
    Some(Case {
        subject: Subject::Installed(Arc::clone(skill)),
        definition: Definition::Skill,
        messages: vec![UserMessage::text(text)],
        tags,
        assertions: vec![assertion],
        trials: Some(Trials::Fixed(RUNS)),
        skill_eval: Some(Box::new(SkillEval {
            should_trigger,
            invocation: None,
            side_effect_level: SideEffectLevel::default(),
            contract: None,
            scripts: skill.scripts.clone(),
        })),
        ends_when_triggered: true,
        ..Case::new(id, query.excerpt())
    })
}
