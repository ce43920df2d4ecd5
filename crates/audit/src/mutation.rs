//! Mutations of the evidence from a good trial. Each changes one thing that a good test might notice.

use model::tool::{Access, Certainty, Touch};
use model::{Change, Collected, Commit, FileChange, Need, Probed, RepositoryChange, Step, ToolCall, ToolResult};
use serde_json::{Value, json};

/// Maximum number of mutations of the same kind.
const MOST: usize = 20;

/// Names of mutations that a prompt may forbid.
pub(crate) const ONE_MORE_COMMIT: &str = "one more commit";
pub(crate) const ONE_MORE_PUSH: &str = "one more push";

/// Time that a slow agent takes, in milliseconds.
const SLOW_MS: u64 = 3_600_000;

/// Changed evidence.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// Description of the change in a few words.
    pub name: String,
    /// Steps of the agent.
    pub steps: Vec<Step>,
    /// Contents of the sandbox.
    pub collected: Option<Collected>,
    /// Time that the agent worked, in milliseconds.
    pub agent_ms: Option<u64>,
}

/// Returns the mutations of a trial's evidence.
pub fn mutants(steps: &[Step], collected: Option<&Collected>, agent_ms: Option<u64>) -> Vec<Mutant> {
    let base = |name: String| Mutant { name, steps: steps.to_vec(), collected: collected.cloned(), agent_ms };
    let of_steps = |name: &str, change: &dyn Fn(&mut Vec<Step>)| {
        let mut mutant = base(name.to_owned());
        change(&mut mutant.steps);
        mutant
    };
    let mut mutants = vec![
        of_steps("empty answer", &|steps| answer(steps, &|_| None)),
        of_steps("first half of the answer", &|steps| answer(steps, &|text| Some(first_half(text)))),
    ];
    let calls: Vec<&ToolCall> = steps.iter().filter_map(call).collect();
    for call in calls.iter().take(MOST) {
        mutants.push(of_steps(&format!("without {}", call.summary()), &|steps| remove(steps, &call.id)));
    }
    if calls.len() > 1 {
        mutants.push(of_steps("without any tool call", &|steps| calls.iter().for_each(|call| remove(steps, &call.id))));
        mutants.push(of_steps("tool calls in reverse order", &|steps| reverse(steps)));
    }
    mutants.extend(swapped(&calls).into_iter().take(MOST).map(|(name, inputs)| {
        of_steps(&name, &|steps| {
            for call in steps.iter_mut().filter_map(call_mut) {
                if let Some((_, input)) = inputs.iter().find(|(id, _)| *id == call.id) {
                    call.input.clone_from(input);
                }
            }
        })
    }));
    if !calls.is_empty() {
        mutants.push(of_steps("every tool call failed", &|steps| {
            steps.iter_mut().for_each(|step| {
                if let Step::ToolResult(result) = step {
                    (result.content, result.is_error) = ("error".to_owned(), true);
                }
            });
        }));
    }
    mutants.push(of_steps("one forbidden command", &|steps| {
        extra(steps, "Bash", json!({ "command": "rm -rf / --no-preserve-root" }), None);
    }));
    mutants.push(of_steps("one write outside the sandbox", &|steps| {
        extra(steps, "Write", json!({ "file_path": "/etc/passwd", "content": "" }), Some("/etc/passwd"));
    }));
    mutants.extend(files(collected).into_iter().take(2 * MOST).map(|(name, collected)| {
        let mut mutant = base(name);
        mutant.collected = Some(collected);
        mutant
    }));
    mutants.extend(repositories(collected).into_iter().map(|(name, collected)| {
        let mut mutant = base(name.to_owned());
        mutant.collected = Some(collected);
        mutant
    }));
    mutants.push(wasteful(base("a thousand times the tokens and the cost".to_owned())));
    mutants.push(slow(base("an hour for the answer".to_owned())));
    mutants
}

fn call(step: &Step) -> Option<&ToolCall> {
    match step {
        Step::ToolCall(call) => Some(call),
        _ => None,
    }
}

fn call_mut(step: &mut Step) -> Option<&mut ToolCall> {
    match step {
        Step::ToolCall(call) => Some(call),
        _ => None,
    }
}

/// Changes every answer. Without an answer, nothing that the agent said remains.
fn answer(steps: &mut Vec<Step>, change: &dyn Fn(&str) -> Option<String>) {
    steps.retain(|step| !matches!(step, Step::Text { .. }));
    for step in steps {
        if let Step::Finished { text, result, .. } = step {
            *text = text.as_deref().and_then(change);
            *result = None;
        }
    }
}

fn first_half(text: &str) -> String {
    text.chars().take(text.chars().count() / 2).collect()
}

/// Removes a call, its result and its question.
fn remove(steps: &mut Vec<Step>, id: &str) {
    steps.retain(|step| match step {
        Step::ToolCall(call) => call.id != id,
        Step::ToolResult(result) => result.id != id,
        Step::Question(question) => question.call_id.as_deref() != Some(id),
        _ => true,
    });
}

/// Reverses the order of the calls; their results are not moved.
fn reverse(steps: &mut [Step]) {
    let mut calls: Vec<ToolCall> = steps.iter().filter_map(call).cloned().collect();
    for call in steps.iter_mut().filter_map(call_mut) {
        if let Some(last) = calls.pop() {
            *call = last;
        }
    }
}

/// Changed arguments by the id of their call.
type Inputs = Vec<(String, Value)>;

/// Returns, for each change of arguments, its name and the new arguments: two calls to one tool swap theirs, and each
/// text argument of a call gets another value.
fn swapped(calls: &[&ToolCall]) -> Vec<(String, Inputs)> {
    let mut changes: Vec<(String, Inputs)> = Vec::new();
    for (at, one) in calls.iter().enumerate() {
        let other = calls[at + 1..].iter().find(|other| other.name == one.name && other.input != one.input);
        if let Some(other) = other {
            let inputs = vec![(one.id.clone(), other.input.clone()), (other.id.clone(), one.input.clone())];
            changes.push((format!("two calls to {} with swapped arguments", one.name), inputs));
        }
    }
    for call in calls {
        for (key, value) in call.input.as_object().into_iter().flatten() {
            let Some(text) = value.as_str() else { continue };
            let mut input = call.input.clone();
            input[key] = Value::from(other_text(text));
            changes.push((format!("{} with another {key}", call.name), vec![(call.id.clone(), input)]));
        }
    }
    changes
}

/// Returns a text of the same kind with another meaning: another file in the same folder, or another word.
fn other_text(text: &str) -> String {
    match text.rsplit_once('/') {
        Some((folder, _)) if !text.contains(char::is_whitespace) => format!("{folder}/something-else"),
        _ => "something else".to_owned(),
    }
}

/// Adds a call before the end of the last answer.
fn extra(steps: &mut Vec<Step>, tool: &str, input: Value, path: Option<&str>) {
    let at = steps.iter().rposition(|step| matches!(step, Step::Finished { .. })).unwrap_or(steps.len());
    let message = steps.iter().filter_map(call).next_back().map_or("mutation", |call| &call.message).to_owned();
    let mut call = ToolCall::new("mutation", tool, input, message);
    call.touches = path.into_iter().map(|path| touch(path, Access::Write)).collect();
    let result = ToolResult { id: call.id.clone(), content: String::new(), is_error: false };
    steps.splice(at..at, [Step::ToolCall(call), Step::ToolResult(result)]);
}

fn touch(path: &str, access: Access) -> Touch {
    Touch { raw: path.to_owned(), resolved: path.to_owned(), access, certainty: Certainty::Named }
}

/// Returns the contents of the sandbox with one file changed: missing, empty, or under another name.
fn files(collected: Option<&Collected>) -> Vec<(String, Collected)> {
    let Some(collected) = collected else { return Vec::new() };
    let mut paths: Vec<&str> = collected.files_changed.iter().map(|file| &*file.path).collect();
    paths.extend(collected.probes.iter().filter_map(|probe| match (&probe.need, &probe.found) {
        (Need::File { path }, Probed::File { .. }) => Some(path.as_str()),
        _ => None,
    }));
    paths.sort_unstable();
    paths.dedup();
    let mut mutants: Vec<(String, Collected)> = Vec::new();
    for path in paths {
        let is_added = collected.files_changed.iter().any(|file| file.path == path && file.change == Change::Added);
        let mut missing = collected.clone();
        missing.files_changed.retain(|file| file.path != path);
        if !is_added {
            missing.files_changed.push(FileChange { path: path.to_owned(), change: Change::Deleted });
        }
        with_file(&mut missing, path, None);
        mutants.push((format!("{path} is missing"), missing));
        let mut empty = collected.clone();
        if !empty.files_changed.iter().any(|file| file.path == path) {
            empty.files_changed.push(FileChange { path: path.to_owned(), change: Change::Modified });
        }
        with_file(&mut empty, path, Some(""));
        mutants.push((format!("{path} is empty"), empty));
    }
    if let Some(first) = collected.files_changed.first() {
        let mut extra = collected.clone();
        extra.files_changed.push(FileChange { path: "something-else.txt".to_owned(), change: first.change });
        mutants.push(("one more changed file".to_owned(), extra));
    }
    mutants
}

/// Returns the contents of the sandbox with another commit, and with another pushed branch, if its repository is known.
fn repositories(collected: Option<&Collected>) -> Vec<(&'static str, Collected)> {
    const SHA: &str = "00000000000000000000000000000000000000aa";
    let Some(collected) = collected.filter(|collected| collected.repository.is_some()) else {
        return Vec::new();
    };
    let with = |name, change: &dyn Fn(&mut RepositoryChange)| {
        let mut mutant = collected.clone();
        // Without it, no assertion looks at the repository.
        change(mutant.repository_change.get_or_insert_default());
        (name, mutant)
    };
    vec![
        with(ONE_MORE_COMMIT, &|repository| {
            let commit = Commit { sha: SHA.to_owned(), subject: "something else".to_owned(), on_head: true };
            repository.new_commits.insert(0, commit);
            repository.after.head = Some(SHA.to_owned());
            if let Some(branch) = &repository.after.branch {
                repository.after.branches.insert(branch.clone(), SHA.to_owned());
            }
        }),
        with(ONE_MORE_PUSH, &|repository| {
            let origin = repository.after.remotes.entry("origin".to_owned()).or_default();
            origin.branches.get_or_insert_default().insert("something-else".to_owned(), SHA.to_owned());
        }),
    ]
}

/// Replaces what is known about a file: either it has this text, or it does not exist.
fn with_file(collected: &mut Collected, path: &str, text: Option<&str>) {
    let replies = collected.reply_probes.iter_mut().flat_map(|probes| &mut probes.probes);
    for probe in collected.probes.iter_mut().chain(replies) {
        match &mut probe.found {
            Probed::Files { files, .. } => match text {
                None => files.retain(|file| file.path != path),
                Some(text) => files.iter_mut().filter(|file| file.path == path).for_each(|file| {
                    (file.size, file.text) = (text.len() as u64, Some(text.to_owned()));
                }),
            },
            found if matches!(&probe.need, Need::File { path: of } if of == path) => {
                *found = match text {
                    None => Probed::Nothing,
                    Some(text) => Probed::File { size: text.len() as u64, text: text.to_owned(), clipped: false },
                };
            }
            _ => {}
        }
    }
}

fn wasteful(mut mutant: Mutant) -> Mutant {
    for step in &mut mutant.steps {
        if let Step::Finished { usage, .. } = step {
            let mut tokens = usage.tokens.unwrap_or_default();
            tokens.input = tokens.input.max(1_000).saturating_mul(1_000);
            tokens.output = tokens.output.max(1_000).saturating_mul(1_000);
            usage.tokens = Some(tokens);
            usage.cost_usd = Some(usage.cost_usd.unwrap_or_default().max(1.0) * 1_000.0);
        }
    }
    mutant
}

fn slow(mut mutant: Mutant) -> Mutant {
    mutant.agent_ms = Some(SLOW_MS);
    mutant.steps.retain(|step| !matches!(step, Step::Replied { .. }));
    let ends: Vec<usize> =
        (0..mutant.steps.len()).filter(|at| matches!(mutant.steps[*at], Step::Finished { .. })).collect();
    for at in ends.into_iter().rev() {
        mutant.steps.insert(at + 1, Step::Replied { latency_ms: SLOW_MS, first_token_ms: Some(SLOW_MS) });
    }
    mutant
}

#[cfg(test)]
mod tests {
    use model::{Probe, Trace, Usage};

    use super::*;

    fn good() -> Vec<Step> {
        let call =
            |id: &str, command: &str| Step::ToolCall(ToolCall::new(id, "Bash", json!({ "command": command }), "m"));
        let result = |id: &str| Step::ToolResult(ToolResult { id: id.into(), content: "ok".into(), is_error: false });
        let text = Some("It is done now.".to_owned());
        vec![
            call("1", "git diff"),
            result("1"),
            call("2", "git add a/b.txt"),
            result("2"),
            Step::Finished { subtype: "success".into(), is_error: false, usage: Usage::default(), text, result: None },
        ]
    }

    fn named<'a>(mutants: &'a [Mutant], name: &str) -> &'a Mutant {
        mutants.iter().find(|mutant| mutant.name == name).unwrap_or_else(|| panic!("{name}"))
    }

    #[test]
    fn every_mutation_changes_the_evidence() {
        let steps = good();
        let mutants = mutants(&steps, None, Some(5));
        assert!(mutants.iter().all(|mutant| mutant.steps != steps), "{mutants:?}");
        let commands = |name: &str| {
            let trace = Trace::of(&named(&mutants, name).steps);
            trace.calls.iter().map(|call| call.call.input["command"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(commands("without Bash(command=\"git diff\")"), ["git add a/b.txt"]);
        assert_eq!(commands("two calls to Bash with swapped arguments"), ["git add a/b.txt", "git diff"]);
        assert_eq!(commands("tool calls in reverse order"), ["git add a/b.txt", "git diff"]);
        assert_eq!(Trace::of(&named(&mutants, "empty answer").steps).answer, None);
        assert_eq!(Trace::of(&named(&mutants, "first half of the answer").steps).answer.as_deref(), Some("It is d"));
        assert_eq!(Trace::of(&named(&mutants, "one forbidden command").steps).calls.len(), 3);
        assert_eq!(named(&mutants, "an hour for the answer").agent_ms, Some(SLOW_MS));
    }

    #[test]
    fn a_file_is_missing_or_empty_wherever_it_was_seen() {
        let need = Need::File { path: "a.txt".into() };
        let found = Probed::File { size: 2, text: "hi".into(), clipped: false };
        let collected =
            Collected { probes: vec![Probe { key: need.key(), need: need.clone(), found }], ..Collected::default() };
        let mutants = mutants(&good(), Some(&collected), None);
        let seen = |name: &str| named(&mutants, name).collected.as_ref().unwrap().probed(&need).cloned();
        assert_eq!(seen("a.txt is missing"), Some(Probed::Nothing));
        assert_eq!(seen("a.txt is empty"), Some(Probed::File { size: 0, text: String::new(), clipped: false }));
    }
}
