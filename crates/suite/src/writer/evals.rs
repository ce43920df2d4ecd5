//! Writes the cases of a skill or a sub-agent as a skill evaluation.

use model::{
    Arguments, AssertionScope, AssertionSpec, Case, Definition, Diagnostic, FixtureFile, Fixtures, SideEffectLevel,
    SkillEval, Subject, Trials,
};
use serde_json::{Map, Value, json};

use super::document::Document;
use super::parts::Parts;
use super::refusal;
use crate::format::ASSERTION_TYPES;

/// Ids of the assertions that a suite has without writing them.
const IMPLIED: [&str; 3] = ["expected-output", "skill-not-used", "sub-agent-not-used"];

/// Writes the cases of a suite. Returns also the number of cases, and the problems with those that cannot be written.
pub(super) fn write(cases: &[&std::sync::Arc<Case>], parts: &mut Parts<'_>) -> (Document, usize, Vec<Diagnostic>) {
    let mut document = Document::default();
    let mut refused = Vec::new();
    let mut entries = Vec::new();
    let subject = |case: &Case| case.subject.skill().map(|skill| (skill.name.clone(), case.definition));
    let first = cases.first().and_then(|case| subject(case));
    for case in cases {
        let entry = match subject(case) == first {
            true => entry(case, parts),
            false => Err("its skill is another one than that of the first case".to_owned()),
        };
        match entry {
            Ok(entry) => entries.push(entry),
            Err(reason) => refused.push(refusal(case, &reason)),
        }
    }
    let (name, definition) = first.unwrap_or_default();
    let key = if definition == Definition::SubAgent { "subagent_name" } else { "skill_name" };
    document.field(key, &json!(name));
    if let Some(runner) = cases.first().map(|case| &case.runner) {
        document.field_if("agent", runner.agent.as_ref().map(|(agent, _)| agent.as_str()));
        document.field_if("model", runner.model.as_deref());
    }
    let count = entries.len();
    let trials = cases.iter().filter_map(|case| case.trials).find_map(|trials| match trials {
        Trials::Fixed(number) if number > 1 => Some(number),
        _ => None,
    });
    if let Some(number) = trials {
        document.comment(&format!("Each case ran {number} times. A skill evaluation does not say how often it runs."));
    }
    document.field("evals", &json!(entries));
    (document, count, refused)
}

/// Returns what a case has that no skill evaluation has.
pub(super) fn obstacle(case: &Case) -> Option<&'static str> {
    let all = [
        (case.skill_eval.is_none(), "no expectation about its skill"),
        (case.system_prompt.is_some() || !case.indicators.is_empty(), "a system prompt or indicators"),
        (case.definition == Definition::Plugin, "a plug-in as its subject"),
        (!matches!(case.subject, Subject::Installed(_)), "no skill"),
        (case.messages.len() != 1, "several messages"),
        (case.max_turns.is_some(), "a number of turns"),
        (case.timeout_ms.is_some(), "a time limit"),
        (case.network.is_some() || !case.required_isolation.is_empty(), "a sandbox of its own"),
        (case.canaries.is_some() || !case.faults.is_empty(), "canaries or faults"),
        (!case.mocks.commands.is_empty(), "mocked programs"),
        (case.runner.allowed_tools_override.is_some(), "a list of tools"),
        (case.skip.is_some() || case.quarantine.is_some() || case.reruns.is_some(), "`skip`, `quarantine` or `reruns`"),
    ];
    all.into_iter().find_map(|(has, what)| has.then_some(what))
}

fn entry(case: &Case, parts: &mut Parts<'_>) -> Result<Value, String> {
    if let Some(what) = obstacle(case) {
        return Err(format!("it has {what}"));
    }
    let Some(eval) = &case.skill_eval else { return Err("it has no expectation about its skill".to_owned()) };
    let SkillEval { should_trigger, invocation, side_effect_level, contract, scripts: _ } = &**eval;
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(case.id));
    let mut put = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    if let Some(description) = &case.description {
        put("description", json!(description));
    }
    if !case.tags.is_empty() {
        put("tags", json!(case.tags));
    }
    put("prompt", json!(case.messages.first().map(|message| &message.text)));
    if let Some(expected) = &case.expected {
        put("expected_output", expected.clone());
    }
    if !should_trigger {
        put("should_trigger", json!(false));
    }
    if invocation.is_some() {
        put("force_skill_invocation", json!(true));
    }
    if *side_effect_level != SideEffectLevel::default() {
        put("side_effect_level", json!(side_effect_level.name()));
    }
    if let Some((contract, _)) = contract {
        put("side_effect_contract", json!(contract));
    }
    for (key, value) in files(&case.fixtures)? {
        put(key, value);
    }
    let graded = parts.graded(&case.graded);
    if graded.as_object().is_some_and(|graded| !graded.is_empty()) {
        put("graded", graded);
    }
    let servers = parts.servers(&case.mocks.servers)?;
    if servers.as_object().is_some_and(|servers| !servers.is_empty()) {
        put("mcp_servers", servers);
    }
    let written = case.assertions.iter().filter(|spec| !IMPLIED.contains(&spec.id.as_str()));
    let assertions =
        written.enumerate().map(|(at, spec)| assertion(spec, at)).collect::<Result<Vec<Value>, String>>()?;
    if !assertions.is_empty() {
        put("assertions", json!(assertions));
    }
    Ok(Value::Object(map))
}

/// Returns the keys of the files of a case.
fn files(fixtures: &Fixtures) -> Result<Vec<(&'static str, Value)>, String> {
    let Fixtures { git_init, files_committed, files_staged, files_unstaged, .. } = fixtures;
    let others = Fixtures {
        git_init: false,
        files_committed: Vec::new(),
        files_staged: Vec::new(),
        files_unstaged: Vec::new(),
        ..fixtures.clone()
    };
    if !others.is_empty() || !others.env.is_empty() || !git_init {
        return Err("its sandbox has more than files in a repository".to_owned());
    }
    let lists = [(files_committed, Some("commit_files")), (files_staged, Some("stage_files")), (files_unstaged, None)];
    let mut keys = Vec::new();
    for (files, flag) in lists.into_iter().filter(|(files, _)| !files.is_empty()) {
        let entries = files.iter().map(file).collect::<Result<Vec<Value>, String>>()?;
        keys.push(("files", json!(entries)));
        keys.extend(flag.map(|flag| (flag, json!(true))));
    }
    match keys.iter().filter(|(key, _)| *key == "files").count() {
        0 | 1 => Ok(keys),
        _ => Err("some of its files are committed or staged, and others are not".to_owned()),
    }
}

fn file(file: &FixtureFile) -> Result<Value, String> {
    let FixtureFile { path, content, executable, source: _ } = file;
    match std::str::from_utf8(content) {
        Ok(text) if !executable => Ok(json!({ "path": path, "content": text })),
        _ => Err(format!("its file `{path}` is executable or not text")),
    }
}

/// Returns an assertion as it is written in a skill evaluation. `at` is its position among those that are written.
fn assertion(spec: &AssertionSpec, at: usize) -> Result<Value, String> {
    let AssertionSpec { node, arguments, about, id, kind, weight } = spec;
    if node.tag.is_some() || *about != AssertionScope::Trial || (weight - 1.0).abs() > f64::EPSILON {
        return Err(format!("only its own format has the assertion `{id}`"));
    }
    let own_id = (*id != format!("assertion-{}", at + 1)).then(|| ("id".to_owned(), json!(id)));
    match arguments {
        Arguments::Brief(text) if kind.value == "claim" => Ok(match own_id {
            None => text.to_json(),
            Some(own_id) => Value::Object(Map::from_iter([own_id, ("text".to_owned(), text.to_json())])),
        }),
        Arguments::Fields if ASSERTION_TYPES.iter().any(|known| known.name == kind.value) => {
            let Value::Object(fields) = node.to_json() else {
                return Err(format!("the assertion `{id}` is not a map"));
            };
            let kept = fields.into_iter().filter(|(key, _)| key != "id" && key != "name");
            Ok(Value::Object(own_id.into_iter().chain(kept).collect()))
        }
        _ => Err(format!("a skill evaluation has no assertion of the type `{}`", kind.value)),
    }
}
