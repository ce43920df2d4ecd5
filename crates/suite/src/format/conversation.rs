//! `conversation`: the user's messages, turn by turn, and assertions about the replies.

mod subject;
mod turn;
mod user;

use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{AssertionScope, Case, Excerpt, Node, NodeKind, nearest};

use super::assertions::{Assertions, ruling};
use super::rows::{CASES, CaseReader};
use super::scenario::{checked_id, place, refuse_tags, report_few_turns, skip, with_common_fields};
use super::{Format, SuiteFile};
use crate::library::Library;
use crate::misplaced;
use crate::mocks::mocks;

/// The `conversation` format.
pub const CONVERSATION: Format = Format {
    name: "conversation",
    tool: None,
    mark: "a YAML or JSON map with `turns`, a list of what the user `says`, or with a `user` that a model plays",
    fails_alone: true,
    is_meant,
    resembles,
    recognises,
    read,
};

/// Top-level keys that are rare in other files. One of them may be a coincidence, two are not.
const TELLING: [&str; 5] = ["turns", "persona", "assertions", "user", "name"];

/// Keys of tests, also misplaced ones, that are rare in other files.
const OWN: [&str; 8] =
    ["turns", "turn", "assertions", "expect", "says", "user_prompt", "user_prompts", "system_prompt"];

/// Keys of tests, also those of other programs, that are common in other files.
const COMMON: [&str; 5] = ["name", "id", "description", "tags", "prompt"];

/// Keys that other programs use for a message from the user.
const MESSAGE_KEYS: [&str; 6] = ["user", "content", "message", "text", "prompt", "input"];

/// Top-level keys of other programs.
const SYNONYMS: [(&str, &str); 19] = [
    ("runs", "trials"),
    ("retries", "reruns"),
    ("parametrize", "cases"),
    ("examples", "cases"),
    ("rows", "cases"),
    ("table", "cases"),
    ("data", "cases"),
    ("params", "cases"),
    ("matrix", "cases"),
    ("files", "fixtures"),
    ("messages", "turns"),
    ("conversation", "turns"),
    ("steps", "turns"),
    ("expect", "assertions"),
    ("checks", "assertions"),
    ("scenario", "name"),
    ("system_prompt", "append_system_prompt"),
    ("max_tokens", "token_budget"),
    ("max_steps", "max_turns"),
];

fn is_meant(text: &str) -> bool {
    if let Some(keys) = super::json_keys(text) {
        let is_there = |wanted: &&&str| keys.contains(*wanted);
        return keys.contains(&"turns") && (keys.contains(&"says") || TELLING.iter().filter(is_there).count() > 1);
    }
    let keys = text.lines().filter_map(|line| line.split_once(':'));
    let keys: Vec<&str> = keys.map(|(key, _)| key.trim_end().trim_matches(['"', '\''])).collect();
    let has_message = text.lines().any(|line| {
        let item = line.trim_start().strip_prefix('-').and_then(|item| item.trim_start().split_once(':'));
        item.is_some_and(|(key, _)| nearest(key, ["says"]).is_some() || MESSAGE_KEYS.contains(&key))
    });
    let has_message = has_message || text.contains("says:");
    let count = keys.iter().filter(|key| TELLING.contains(key)).count();
    let is_alone = || keys.iter().filter(|key| key.starts_with(|first: char| first.is_alphanumeric())).count() == 1;
    keys.contains(&"turns") && (has_message || count > 1 || is_alone())
}

fn resembles(file: &SuiteFile<'_>) -> bool {
    let turns = file.root.get("turns").map(|turns| &turns.kind);
    let is_said = |turn: &Node| turn.as_str().is_some() || turn.get("says").is_some();
    match turns {
        None if misspelt_turns(file.root).is_some() => true,
        Some(NodeKind::List(turns)) if turns.iter().any(|turn| has_message(turn) || sends(turn)) => true,
        Some(_) if has_only_keys_of_tests(file.root) => true,
        Some(NodeKind::List(turns)) => count_turns(file.root) > 1 && (turns.is_empty() || turns.iter().any(is_said)),
        Some(_) => count_turns(file.root) > 1,
        None => count_turns(file.root) > 1 && (plays(file.root) || asserts(file.root)),
    }
}

/// Returns `true` if all keys of a map are those of tests, and at least one is rare in other files. Data has others,
/// or `turns` that are maps; those of a conversation have a message.
pub fn has_only_keys_of_tests(root: &Node) -> bool {
    let NodeKind::Map(entries) = &root.kind else { return false };
    let is_map = |turn: &Node| matches!(turn.kind, NodeKind::Map(_));
    let is_data = |turns: &[Node]| !turns.is_empty() && turns.iter().all(is_map);
    if root.get("turns").is_some_and(|turns| matches!(&turns.kind, NodeKind::List(turns) if is_data(turns))) {
        return false;
    }
    let mut keys = entries.iter().map(|(key, _)| key.value.as_str());
    keys.clone().any(|key| OWN.contains(&key)) && keys.all(|key| OWN.contains(&key) || COMMON.contains(&key))
}

fn recognises(file: &SuiteFile<'_>) -> bool {
    let root = file.root;
    root.get("turns").is_some() || plays(root) || (count_turns(root) > 1 && asserts(root))
}

fn read(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    let reader = CaseReader { id: &["id", "name"], fails_alone: CONVERSATION.fails_alone, read: case };
    reader.cases(file, library, problems)
}

/// Returns the key that is similar to `turns`, or is its name in other tools, and contains what `turns` of a
/// conversation would contain.
pub fn misspelt_turns(root: &Node) -> Option<&str> {
    let NodeKind::Map(entries) = &root.kind else { return None };
    let is_near = |name: &str| name.eq_ignore_ascii_case("turns") || nearest(name, ["turns"]).is_some();
    let contains_turns = |value: &Node| match &value.kind {
        NodeKind::List(turns) => {
            turns.iter().any(|turn| has_message(turn) || (turn.as_str().is_some() && count_turns(root) > 1))
        }
        _ => false,
    };
    // A list of messages on its own may be data.
    let are_messages = |name: &str, value: &Node| match &value.kind {
        NodeKind::List(turns) if ["messages", "turn"].contains(&name) && count_turns(root) > 0 => {
            turns.iter().any(|turn| turn.as_str().is_some() || sends(turn))
        }
        _ => false,
    };
    // Keys of other programs often contain what is not a turn.
    let are_turns = |name: &str, value: &Node| match &value.kind {
        NodeKind::List(turns) => {
            SYNONYMS.contains(&(name, "turns")) && count_turns(root) > 0 && turns.iter().any(is_turn)
        }
        _ => false,
    };
    let found = entries.iter().find(|(name, value)| {
        (is_near(&name.value) && contains_turns(value))
            || are_messages(&name.value, value)
            || are_turns(&name.value, value)
    });
    found.map(|(name, _)| name.value.as_str())
}

/// Returns `true` if `item` is a turn: a message from the user and what is expected of the reply, or only what the user
/// `says`.
fn is_turn(item: &Node) -> bool {
    let NodeKind::Map(entries) = &item.kind else { return false };
    let has_only = |known: &[&str]| entries.iter().all(|(key, _)| known.contains(&key.value.as_str()));
    match item.get("expect").map(|expect| &expect.kind) {
        Some(NodeKind::List(_)) => has_message(item) || sends(item),
        _ => has_only(&["says"]) && has_message(item),
    }
}

/// Returns `true` if a turn has a message from the user under `has_message` or a similar key.
fn has_message(turn: &Node) -> bool {
    let NodeKind::Map(entries) = &turn.kind else { return false };
    entries.iter().any(|(key, value)| value.as_str().is_some() && nearest(&key.value, ["says"]).is_some())
}

/// Returns `true` if a turn has a message under a key that other programs use.
fn sends(turn: &Node) -> bool {
    MESSAGE_KEYS.iter().any(|key| turn.get(key).is_some_and(|value| value.as_str().is_some()))
}

/// Returns the number of keys in `root` that conversations have.
fn count_turns(root: &Node) -> usize {
    TELLING.iter().filter(|key| root.get(key).is_some()).count()
}

/// Returns `true` if `root` has a simulated user.
fn plays(root: &Node) -> bool {
    root.get("user").is_some_and(|user| user.get("goal").is_some() || has_misspelt_goal(user))
}

/// Returns `true` if a map has a text under a key that is similar to `goal`, and otherwise only keys of a simulated user.
fn has_misspelt_goal(user: &Node) -> bool {
    const OTHERS: [&str; 4] = ["persona", "stop_when", "max_turns", "model"];
    let NodeKind::Map(entries) = &user.kind else { return false };
    let is_goal = |key: &str, value: &Node| value.as_str().is_some() && nearest(key, ["goal"]).is_some();
    let mut goals = entries.iter().filter(|(key, _)| !OTHERS.contains(&key.value.as_str()));
    goals.next().is_some_and(|(key, value)| is_goal(&key.value, value)) && goals.next().is_none()
}

fn asserts(root: &Node) -> bool {
    root.get("assertions").is_some_and(|assertions| matches!(assertions.kind, NodeKind::List(_)))
}

fn case(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Option<Case> {
    refuse_tags(file.root, problems);
    let mut fields = Fields::of(file.root, "the conversation", problems)?.with_synonyms(&SYNONYMS);
    // The rows have already been read.
    let _ = fields.get(CASES);
    let name = fields.text("name", problems);
    let (id, source) = id(name.as_deref(), &mut fields, file, problems);
    let named = name.filter(|name| *name != id);
    let mut case = with_common_fields(Case::new(id, source), &mut fields, file, library, problems);
    let persona = fields.get("persona").and_then(|node| user::persona(node, problems)).unwrap_or_default();
    let user = user::read(&mut fields, &persona, file.directory(), problems);
    let mut assertions = Assertions::default();
    let mut messages = turn::read(&mut fields, &persona, &mut assertions, problems);
    report_few_turns(case.max_turns, messages.len(), &mut fields, problems);
    case.tools_source = fields.get("tools").map(Node::excerpt);
    let tools = fields.list("tools", problems).unwrap_or_default();
    let tools: Vec<serde_json::Value> = tools.iter().map(Node::to_json).collect();
    messages.iter_mut().for_each(|message| message.tools.clone_from(&tools));
    if let Some(items) = fields.list("assertions", problems) {
        assertions.read(items, AssertionScope::LastReply, problems);
    }
    let token_budget = fields.tokens("token_budget", problems);
    let reruns = fields.whole("reruns", 0, problems).map(|reruns| u32::try_from(reruns).unwrap_or(u32::MAX));
    let skip = skip(&mut fields, problems);
    let mut mocks = mocks(&mut fields, file.directory(), problems);
    let has_unread = assertions.has_unread();
    let assertions = assertions.finish();
    let ruling = ruling(&mut fields, &assertions, problems);
    let installed = subject::read(&mut fields, &mut mocks, &assertions, file, library, problems);
    let system_prompt = fields.text("append_system_prompt", problems);
    let first = problems.len();
    fields.finish(problems);
    misplaced::say_where(problems, first, misplaced::OF_CASE);
    Some(Case {
        subject: installed.subject,
        definition: installed.definition,
        skill_eval: installed.skill_eval.map(Box::new),
        indicators: installed.indicators,
        system_prompt,
        ruling,
        description: case.description.or(named),
        messages,
        tools,
        user: user.map(Box::new),
        token_budget,
        must_assert: token_budget.is_none() && !has_unread,
        reruns,
        skip,
        mocks: Arc::new(mocks),
        assertions,
        fails_alone: true,
        ..case
    })
}

/// Returns the case's id and its location: `id`, otherwise the name, otherwise the file name.
fn id(name: Option<&str>, fields: &mut Fields<'_>, file: &SuiteFile<'_>, problems: &mut Problems) -> (String, Excerpt) {
    let own = fields.text("id", problems);
    let (key, node) = match (fields.get("id"), fields.get("name")) {
        (Some(id), _) => ("id", Some(id)),
        (None, name) => ("name", name),
    };
    let source = node.map_or_else(|| head(file.root).excerpt(), Node::excerpt);
    let written = node.filter(|_| own.is_some() || (key == "name" && name.is_some()));
    let id = written.and_then(|node| checked_id(node, key, problems));
    let stem = || file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    (id.unwrap_or_else(stem), source)
}

/// Returns the start of the file, as the location of problems with the whole file.
fn head(root: &Node) -> Node {
    let first = match &root.kind {
        NodeKind::Map(entries) => entries.first().map(|(key, _)| key.span),
        _ => None,
    };
    place(root, first.unwrap_or(root.span))
}
