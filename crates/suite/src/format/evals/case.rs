//! Reads one case: the user's message, the files in the sandbox and the assertions.

use std::sync::Arc;

use model::decode::{self, Fields, Problems};
use model::{
    Case, Definition, Diagnostic, Excerpt, Node, NodeKind, SideEffectContract, SideEffectLevel, SkillEval, Subject,
    UserMessage,
};
use serde_json::Value;

use super::assertion;
use super::fixture;
use super::reading::Reading;
use super::suite::{DESCRIPTIVE, Suite};
use crate::canaries::canaries;
use crate::coverage::Unknown;
use crate::faults::faults;
use crate::format::scenario::quarantine;
use crate::graded::graded;
use crate::mocks::mocks;
use crate::trials::pass_rate;

/// Keys of the user's message, the expectations and the name of a case, as different tools call them.
const PROMPTS: [&str; 2] = ["prompt", "query"];

/// Keys of other programs for those of a case.
const SYNONYMS: [(&str, &str); 6] = [
    ("input", "prompt"),
    ("message", "prompt"),
    ("user_prompt", "prompt"),
    ("question", "prompt"),
    ("side_effects", "side_effect_contract"),
    ("expected", "expected_output"),
];
const EXPECTATIONS: [&str; 4] = ["assertions", "expectations", "expect", "expected_behavior"];
const TITLES: [&str; 4] = ["name", "title", "eval_name", "description"];

/// Beginnings of keys that other tools use for checks and for the state in which the agent starts.
const CHECKS: [&str; 18] = [
    "must",
    "should",
    "forbid",
    "fail",
    "expected_",
    "rubric",
    "grader",
    "scor",
    "check",
    "valid",
    "verif",
    "threshold",
    "setup",
    "fixture",
    "system_prompt",
    "follow_up",
    "turns",
    "messages",
];

/// Decides about a key of a case that trialrun does not know.
fn unknown(key: &str, value: &Node) -> Unknown {
    const LISTS: [&str; 6] = ["metadata", "notes", "labels", "references", "links", "keywords"];
    let is_check = CHECKS.iter().any(|check| key.starts_with(check));
    match value.kind {
        NodeKind::List(_) | NodeKind::Map(_) if is_check || !LISTS.contains(&key) => {
            Unknown::Refused("it may be a check or a setting, and trialrun does not know it".to_owned())
        }
        _ if is_check => Unknown::Refused("trialrun does not know this kind of check or setting".to_owned()),
        _ => Unknown::Ignored(DESCRIPTIVE.to_owned()),
    }
}

/// Settings of cases in other formats of trialrun, with the place of their values.
const SETTINGS: [(&str, &str); 9] = [
    ("agent", "write it beside `evals`"),
    ("model", "write it beside `evals`"),
    ("trials", "write it under `defaults` in the configuration"),
    ("timeout", "write it under `defaults` in the configuration"),
    ("max_turns", "write it under `defaults` in the configuration"),
    ("reruns", "write it under `defaults` in the configuration"),
    ("token_budget", "write it under `defaults` in the configuration"),
    ("skip", "remove the case, or leave it out when you choose the cases of a run"),
    ("only", "to run one case, choose it by its id"),
];

/// Warns about settings in `of` that only cases and suites in other formats have.
pub(super) fn warn_of_settings(fields: &Fields<'_>, of: &str, problems: &mut Problems) {
    for (key, _) in fields.unread() {
        if let Some((name, help)) = SETTINGS.iter().find(|(name, _)| *name == key.value) {
            let problem = Diagnostic::warning(format!("`{name}` has no effect in {of}"));
            problems.push(problem.at(fields.node().source.excerpt(key.span)).help(*help));
        }
    }
}

/// Returns the first of `keys` that the map has; all of them are known then.
fn first_of<'a>(fields: &mut Fields<'a>, keys: &[&'static str]) -> Option<&'a Node> {
    keys.iter().map(|key| fields.get(key)).fold(None, |first, found| first.or(found))
}

impl Suite<'_> {
    /// Reads the case `item` at `index`, counted from 0.
    pub(super) fn case(&mut self, index: usize, item: &Node, problems: &mut Problems) -> Option<Case> {
        let mut fields = Fields::of(item, "a case", problems)?.with_synonyms(&SYNONYMS);
        let keys = &mut std::mem::take(&mut self.keys);
        let mut reading = Reading { keys, broken: Problems::new() };
        let (id, source) = id(&mut fields, index, problems);
        let description = first_of(&mut fields, &TITLES).and_then(Node::as_str).map(str::to_owned);
        let tags = fields.texts("tags", problems).unwrap_or_default();
        let message = prompt(&mut fields, problems);
        let expected_node = fields.get("expected_output");
        let expected = expected_node.and_then(|node| decode::any_text(node, "`expected_output`", problems));
        let fixtures = fixture::read(&mut fields, self, &source, message.as_deref(), &mut reading.broken, problems);
        let written = expectations(&mut fields, problems);
        let mut assertions = assertion::read(&written, &mut reading, problems);
        let should_trigger = fields.boolean("should_trigger", problems).unwrap_or(true);
        let means_assertions = |key: &str| fields.meant_by(key).is_some_and(|meant| EXPECTATIONS.contains(&meant));
        let is_misspelt = fields.unread().any(|(name, _)| means_assertions(&name.value));
        let is_expected = written.is_empty() && should_trigger && !is_misspelt;
        if let Some(node) = expected_node.filter(|node| is_expected && assertion::has_text(node)) {
            assertions.push(assertion::as_expected(node));
        }
        if let Some(place) = fields.get("should_trigger").filter(|_| !should_trigger) {
            assertions.push(assertion::not_used(self.definition, self.name, place));
        }
        let is_forced = is_forced(&mut fields, should_trigger, problems);
        let quarantine = fields.get("quarantine").and_then(|node| quarantine(node, self.now_ms, problems));
        let pass_rate = fields.get("pass_rate").and_then(|node| pass_rate(node, problems));
        let graded = fields.get("graded").map(|node| graded(node, self.directory, problems)).unwrap_or_default();
        let canaries = fields.get("canaries").and_then(|node| canaries(node, problems));
        let faults = fields.get("faults").map_or_else(Vec::new, |node| faults(node, problems));
        let mocks = Arc::new(mocks(&mut fields, self.directory, problems));
        let skill_eval = SkillEval {
            should_trigger,
            invocation: is_forced.then(|| match self.definition {
                Definition::Skill | Definition::Plugin | Definition::SkillsOfPlugin => {
                    format!("Use the ${} skill. ", self.name)
                }
                Definition::SubAgent => format!("Use the {} sub-agent. ", self.name),
            }),
            side_effect_level: level(&mut fields, problems),
            contract: contract(&mut fields, problems),
            scripts: self.skill.map(|skill| skill.scripts.clone()).unwrap_or_default(),
        };
        warn_of_settings(&fields, "a case of evals.json", problems);
        reading.close(&fields, "evals[]", &[], unknown, problems);
        let Reading { keys, broken } = reading;
        self.keys = std::mem::take(keys);
        Some(Case {
            subject: self.skill.map_or(Subject::Agent, |skill| Subject::Installed(Arc::clone(skill))),
            definition: self.definition,
            description,
            tags,
            runner: Arc::clone(&self.runner),
            messages: message.map(UserMessage::text).into_iter().collect(),
            fixtures: Arc::new(fixtures),
            // The problem with an assertion that cannot be read is reported.
            must_assert: assertions.len() >= written.len() && !is_misspelt,
            graded,
            canaries,
            faults,
            mocks,
            assertions,
            quarantine,
            pass_rate,
            expected: expected.map(Value::String),
            skill_eval: Some(Box::new(skill_eval)),
            broken,
            ..Case::new(id, source)
        })
    }
}

/// Returns the items of all lists of expectations. A single sentence may stand for a list of one.
fn expectations(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<Node> {
    let mut items = Vec::new();
    for key in EXPECTATIONS {
        match fields.get(key) {
            Some(node) if key != EXPECTATIONS[0] && node.as_str().is_some() => items.push(node.clone()),
            Some(_) => items.extend(fields.list(key, problems).unwrap_or_default().iter().cloned()),
            None => {}
        }
    }
    items
}

/// Returns the case's id and its location. A case without an id has its number.
fn id(fields: &mut Fields<'_>, index: usize, problems: &mut Problems) -> (String, Excerpt) {
    let node = fields.get("id");
    let source = node.map_or_else(|| fields.node().excerpt(), Node::excerpt);
    let id = node.and_then(|node| read_id(node).map_err(|problem| problems.push(*problem)).ok());
    (id.unwrap_or_else(|| (index + 1).to_string()), source)
}

/// Reads an id, which becomes part of file names.
fn read_id(node: &Node) -> Result<String, Box<Diagnostic>> {
    let id = match &node.kind {
        NodeKind::String(text) => text.clone(),
        NodeKind::Number(number) if !number.is_f64() => number.to_string(),
        NodeKind::Number(_) => return Err(Box::new(node.error("`id` must be a whole number or a string"))),
        _ => {
            let message = format!("`id` must be a whole number or a string, not {}", node.kind_name());
            return Err(Box::new(node.error(message)));
        }
    };
    let fault = if id.trim().is_empty() {
        "must not be empty"
    } else if id.contains(char::is_control) {
        "is one line of text, without control characters"
    } else if id.contains(['/', '\\']) {
        "must not contain `/` or `\\`"
    } else if id == "." || id.contains("..") {
        "must not contain `..`"
    } else if id.trim() != id {
        "must not start or end with white space"
    } else {
        return Ok(id);
    };
    Err(Box::new(node.error(format!("`id` {fault}")).help("an id becomes the name of a folder")))
}

/// Reads the user's message, which is sent unchanged.
fn prompt(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<String> {
    let node = match first_of(fields, &PROMPTS) {
        Some(node) => node,
        None => fields.require("prompt", problems)?,
    };
    let text = decode::any_text(node, "`prompt`", problems)?;
    if text.trim().is_empty() {
        problems.push(node.error("`prompt` must not be empty"));
        return None;
    }
    Some(text)
}

/// Returns `true` if the message requests the skill. If the skill should not be used, that is an error.
fn is_forced(fields: &mut Fields<'_>, should_trigger: bool, problems: &mut Problems) -> bool {
    let is_forced = fields.boolean("force_skill_invocation", problems).unwrap_or(false);
    if is_forced
        && !should_trigger
        && let Some(span) = fields.key_span("force_skill_invocation")
    {
        let place = fields.node().source.excerpt(span);
        let problem = Diagnostic::error("`force_skill_invocation` and `should_trigger: false` contradict each other");
        problems.push(problem.at(place).help("keep one of them: a negative control does not ask for the skill"));
    }
    is_forced
}

fn level(fields: &mut Fields<'_>, problems: &mut Problems) -> SideEffectLevel {
    fields.choice("side_effect_level", &SideEffectLevel::ALL, problems).unwrap_or_default()
}

/// Reads the allowed side effects: everything that is not forbidden.
fn contract(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<(SideEffectContract, Excerpt)> {
    let node = fields.get("side_effect_contract")?;
    let mut fields = Fields::of(node, "`side_effect_contract`", problems)?;
    let mut allows = |key| fields.boolean(key, problems).unwrap_or(true);
    let contract = SideEffectContract {
        allow_new_local_branches: allows("allow_new_local_branches"),
        allow_new_remote_branches: allows("allow_new_remote_branches"),
        allow_new_commits: allows("allow_new_commits"),
        allow_new_review_requests: allows("allow_new_review_requests"),
        allow_worktree_changes: allows("allow_worktree_changes"),
    };
    fields.finish(problems);
    Some((contract, node.excerpt()))
}
