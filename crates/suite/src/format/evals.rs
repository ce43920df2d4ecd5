//! `evals`: the cases of one skill in an `evals.json`, which test whether the skill improves the agent.

mod assertion;
mod case;
mod design;
mod fixture;
mod reading;
mod skill;
mod suite;

use std::path::Path;
use std::sync::Arc;

use model::decode::{self, Fields, Problems};
use model::{Case, Definition, Diagnostic, Node, NodeKind, RunnerOptions, Spanned, nearest};

use self::suite::{Contents, DESCRIPTIVE, Suite};
use super::scenario::{self, refuse_tags};
use super::{EVALS_FILE, Format, SuiteFile, is_evals_file};
use crate::coverage::{KeyLog, Unknown};
use crate::document::Language;
use crate::library::Library;
use crate::skill::SKILL_FILE;

pub use self::assertion::{KEYS as ASSERTION_KEYS, TYPES as ASSERTION_TYPES, Type as AssertionType};
pub use self::design::design_warnings;

/// The `evals` format.
pub const EVALS: Format = Format {
    name: EVALS_NAME,
    tool: None,
    mark: "a JSON map with `skill_name` or `subagent_name`, and `evals`, the list of its cases",
    fails_alone: false,
    is_meant,
    resembles,
    recognises,
    read,
};

/// Name of the format.
pub const EVALS_NAME: &str = "evals";

/// Keys that name the skill or sub-agent under test. Other files hardly ever have one of them together with [`CASES`]
/// at the top level.
const NAMES: [(&str, Definition); 2] = [("skill_name", Definition::Skill), ("subagent_name", Definition::SubAgent)];

/// Key of the list of cases.
const CASES: &str = "evals";

/// Key that other tools use for the list of cases.
const OTHER_CASES: &str = "cases";

/// Keys that people write for the list of cases.
const SYNONYMS: [(&str, &str); 4] =
    [("tests", CASES), ("test_cases", CASES), ("scenarios", CASES), ("examples", CASES)];

/// Key that other tools use for the name of the skill.
const OTHER_NAME: &str = "skill";

/// Key for the location of the file's schema, which only editors use.
const SCHEMA: &str = "$schema";

fn is_meant(text: &str) -> bool {
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    has(CASES) && NAMES.iter().any(|(key, _)| has(key))
}

/// Returns `true` if `text`, which may be YAML, seems to be a suite of a skill.
pub fn are_evals(text: &str) -> bool {
    let has = |wanted: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == wanted);
    has(CASES) && NAMES.iter().any(|(key, _)| has(key))
}

fn resembles(file: &SuiteFile<'_>) -> bool {
    let model::NodeKind::Map(entries) = &file.root.kind else { return false };
    let keys = || entries.iter().map(|(key, _)| key.value.as_str());
    let is_there = |key: &str| keys().any(|other| other == key);
    match (NAMES.iter().any(|(key, _)| is_there(key)), is_there(CASES)) {
        (true, true) => true,
        (false, false) => false,
        _ if is_evals_file(file.path) => true,
        // Records of runs are JSON and have some of these keys.
        _ if Language::from_path(file.path) == Some(Language::Json) => false,
        (true, false) => nearest(CASES, keys()).is_some(),
        (false, true) => NAMES.iter().any(|(key, _)| nearest(key, keys()).is_some()),
    }
}

fn recognises(file: &SuiteFile<'_>) -> bool {
    is_evals_file(file.path) || resembles(file)
}

fn read(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    cases(file, library, problems).unwrap_or_default()
}

/// Returns the directory of the skill whose own suite is the file at `path`: `SKILL/evals/evals.json`.
pub fn home_of(path: &Path) -> Option<&Path> {
    let home = path.parent()?.parent()?;
    home.join(SKILL_FILE).is_file().then_some(home)
}

fn cases(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Option<Vec<Arc<Case>>> {
    refuse_tags(file.root, problems);
    // Some tools write only the list.
    if let NodeKind::List(_) = file.root.kind {
        let entries = vec![(Spanned::new(CASES.to_owned(), file.root.span), file.root.clone())];
        let root = Node { kind: NodeKind::Map(entries), ..file.root.clone() };
        return cases(&SuiteFile { path: file.path, root: &root }, library, problems);
    }
    let mut fields = Fields::of(file.root, "the suite", problems)?.with_synonyms(&SYNONYMS);
    fields.get(SCHEMA);
    let (key, definition) = read_subject(&mut fields, problems);
    let home = home_of(file.path).filter(|_| fields.get(key).is_none() && definition == Definition::Skill);
    let own = home.and_then(|home| library.skill_at(home));
    let name = match (&own, home) {
        (Some(skill), _) => Some(skill.name.clone()),
        // Its problem is reported.
        (None, Some(_)) => None,
        (None, None) => fields.required_text(key, problems),
    };
    let skill = match (&name, fields.get(key)) {
        (Some(name), Some(place)) => skill::find(name, definition, place, file, library, problems),
        _ => own,
    };
    // A wrong name is reported above, and is not looked up again.
    let name = skill.as_ref().map(|skill| skill.name.clone()).or(name);
    let agent = scenario::agent(&mut fields, "agent", file.directory(), problems);
    let (model, model_source) = scenario::model(&mut fields, file.directory(), problems).unzip();
    let mut contents = Contents::default();
    let mut suite = Suite {
        name: name.as_deref().unwrap_or_default(),
        definition,
        skill: skill.as_ref(),
        directory: file.directory(),
        runner: Arc::new(RunnerOptions { agent, model, model_source, ..RunnerOptions::default() }),
        now_ms: library.now_ms,
        contents: &mut contents,
        keys: KeyLog::default(),
    };
    let items = match fields.get(OTHER_CASES).filter(|_| fields.node().get(CASES).is_none()) {
        Some(node) => list(node, problems),
        None => fields.require(CASES, problems).and_then(|node| list(node, problems)),
    };
    let unknown_key = |_: &str, _: &Node| Unknown::Ignored(DESCRIPTIVE.to_owned());
    case::warn_of_settings(&fields, "evals.json", problems);
    suite.keys.close(&fields, "", &[], unknown_key, problems);
    let cases = items.unwrap_or_default().iter().enumerate();
    let cases = cases.filter_map(|(at, item)| suite.case(at, item, problems).map(Arc::new)).collect();
    library.cover(std::mem::take(&mut suite.keys).finish(&file.root.source.path, EVALS_NAME));
    Some(cases)
}

/// Returns the key that names the subject of the suite, and the kind of subject. Exactly one is allowed.
fn read_subject(fields: &mut Fields<'_>, problems: &mut Problems) -> (&'static str, Definition) {
    let [skill, sub_agent] = NAMES;
    let other = fields.get(OTHER_NAME).filter(|node| node.as_str().is_some());
    let Some(second) = fields.get(sub_agent.0) else {
        return if other.is_some() && fields.node().get(skill.0).is_none() { (OTHER_NAME, skill.1) } else { skill };
    };
    if fields.get(skill.0).is_none() {
        return sub_agent;
    }
    problems.push(second.error("a suite is about a skill or about a sub-agent: `skill_name` is already given"));
    skill
}

fn list<'a>(node: &'a Node, problems: &mut Problems) -> Option<&'a [Node]> {
    let items = decode::list(node, "`evals`", problems)?;
    if items.is_empty() {
        problems.push(node.warning("the suite has no cases"));
    }
    Some(items)
}

/// Adds help for paths that are not relative to the suite's folder.
fn starts_here(problem: Diagnostic) -> Diagnostic {
    problem.help(format!(
        "a path is relative to the folder of this file, otherwise to that of the skill, and must stay inside it, such as \
         `files/NAME` next to `{EVALS_FILE}`"
    ))
}
