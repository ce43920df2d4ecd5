//! Suites of other tools that are written as files of trialrun: the files have the cases from which they were made.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model::{Arguments, AssertionScope, AssertionSpec, Case, CopyTree, FixtureFile, OuterFolder};
use serde_json::{Value, json};
use testkit::foreign::{corpus, write as write_foreign};
use trialrun_suite::{Loaded, Written, WrittenFormat, write};

use crate::scratch::Scratch;

/// Writes what was loaded to `out`, and loads it again.
fn again(scratch: &Scratch, loaded: &Loaded, format: Option<WrittenFormat>) -> (Written, Loaded) {
    let written = write(&loaded.suites, &loaded.coverage, format, &scratch.root().join("out"));
    for file in &written.files {
        let path = format!("out/{}", file.path.display());
        scratch.write(&path, &file.content);
        if file.executable {
            std::fs::set_permissions(scratch.path(&path), PermissionsExt::from_mode(0o755)).unwrap();
        }
    }
    let reloaded = if written.files.is_empty() { Loaded::default() } else { scratch.load(&["out"]) };
    (written, reloaded)
}

/// Returns everything that decides what a case does, without places in files.
fn essence(case: &Case) -> Value {
    let Case { fixtures, graded, .. } = case;
    let several = case.messages.len() > 1;
    let solution = graded.solution.as_ref();
    let files =
        [&fixtures.files_committed, &fixtures.files_staged, &fixtures.files_unstaged].map(|files| files_of(files));
    json!({
        "id": case.id,
        "description": case.description,
        "tags": case.tags,
        "messages": case.messages.iter().map(|message| &message.text).collect::<Vec<_>>(),
        "subject": case.subject.skill().map(|skill| &skill.name),
        "definition": format!("{:?}", case.definition),
        "turns": case.max_turns,
        "timeout": case.timeout_ms,
        "model": case.runner.model,
        "network": case.network.as_ref().map(ToString::to_string),
        "servers": format!("{:?}", case.mocks.servers.iter().map(|one| (&one.name, &one.source)).collect::<Vec<_>>()),
        "env": fixtures.env,
        "git": fixtures.git_init,
        "workdir": fixtures.workdir,
        "directories": fixtures.directories,
        "trees": trees(&fixtures.copy_trees),
        "files": files,
        "outside": fixtures.outside.iter().map(outer).collect::<Vec<_>>(),
        "graded": [json!(graded.takes_fixture), json!(graded.rewards), json!(graded.taken_files)],
        "graded folders": graded.folders.iter().map(|folder| json!([folder.path, real(folder.from.as_deref())])).collect::<Vec<_>>(),
        "solution": solution.map(|solution| json!([solution.commands, solution.outside.iter().map(outer).collect::<Vec<_>>()])),
        "assertions": case.assertions.iter().filter(|spec| spec.weight > 0.0).map(|spec| assertion(spec, several)).collect::<Vec<_>>(),
        // A case that needs its full score passes if all assertions are met.
        "threshold": case.ruling.scoring.map(|scoring| scoring.share()).filter(|share| *share < 1.0),
        "indicators": case.indicators,
        "system prompt": case.system_prompt,
        "skill": case.skill_eval.as_ref().map(|eval| json!([eval.should_trigger, eval.invocation, eval.side_effect_level.name()])),
        "expected": case.expected.as_ref().filter(|_| case.skill_eval.is_some()),
    })
}

fn real(path: Option<&Path>) -> Option<String> {
    path.map(|path| path.canonicalize().unwrap().display().to_string())
}

fn trees(trees: &[CopyTree]) -> Value {
    trees.iter().map(|tree| json!([real(Some(&tree.from)), tree.to])).collect()
}

fn files_of(files: &[FixtureFile]) -> Value {
    files.iter().map(|file| json!([file.path, String::from_utf8_lossy(&file.content), file.executable])).collect()
}

fn outer(folder: &OuterFolder) -> Value {
    json!([folder.path, folder.directories, trees(&folder.trees), files_of(&folder.files)])
}

fn assertion(spec: &AssertionSpec, several: bool) -> Value {
    let arguments = match &spec.arguments {
        Arguments::Brief(node) => node.to_json(),
        _ => {
            let Value::Object(mut fields) = spec.node.to_json() else { panic!("fields") };
            ["id", "type", "weight", "name"].iter().for_each(|key| drop(fields.shift_remove(*key)));
            Value::Object(fields)
        }
    };
    // With one message, the whole trial and its last reply are the same.
    let about = match spec.about {
        AssertionScope::Reply(number) if several => number,
        _ => 0,
    };
    json!([spec.id, spec.kind.value, arguments, spec.weight, about])
}

/// Writes each suite of a corpus, and compares the cases. Returns the numbers of cases that were written and refused.
fn compare(format: &str) -> (usize, usize) {
    let (mut all, mut refused) = (0, 0);
    for (name, content) in corpus(format) {
        let scratch = Scratch::new();
        let target = write_foreign(format, scratch.root(), &name, &content);
        let loaded = scratch.load(&[&target]);
        if loaded.has_errors() {
            continue;
        }
        let (written, reloaded) = again(&scratch, &loaded, None);
        let errors: Vec<String> =
            reloaded.diagnostics.iter().filter(|one| one.is_error()).map(ToString::to_string).collect();
        let text = || written.files.iter().map(|file| String::from_utf8_lossy(&file.content)).collect::<String>();
        assert_eq!(errors, [""; 0], "{name}\n{}", text());
        let refusals = written.refused.len();
        let cases = |loaded: &Loaded| -> Vec<Value> {
            loaded.suites.iter().flat_map(|suite| &suite.cases).map(|case| essence(case)).collect()
        };
        let (before, after) = (cases(&loaded), cases(&reloaded));
        assert_eq!((after.len(), before.len()), (written.cases, written.cases + refusals), "{name}");
        for case in &after {
            let own = before.iter().find(|own| own["id"] == case["id"] && own["messages"] == case["messages"]);
            let own = own.unwrap_or_else(|| panic!("{name}: {}", case["id"]));
            let (mut case, mut own) = (case.clone(), own.clone());
            // Those of other tools become others with the same verdicts.
            if ["\"promptfoo\"", "\"grader\""].iter().any(|kind| own["assertions"].to_string().contains(kind)) {
                for one in [&mut case, &mut own] {
                    one["assertions"] = Value::Null;
                }
            }
            assert_eq!(case, own, "{name}\n{}", text());
        }
        all += written.cases;
        refused += refusals;
    }
    (all, refused)
}

#[test]
fn tasks_of_harbor_become_conversations() {
    let (written, refused) = compare("harbor");
    assert!(written >= 12 && refused >= 30, "{written} {refused}");
}

#[test]
fn evaluations_of_skills_stay_evaluations() {
    let (written, _) = compare("evals");
    assert!(written >= 40, "{written}");
}

#[test]
fn assertions_of_promptfoo_about_text_become_patterns() {
    let (written, refused) = compare("promptfoo");
    assert!(written > 0 && refused > 0, "{written} {refused}");
}

#[test]
fn cases_of_plugins_become_conversations() {
    let (written, refused) = compare("plugin-eval");
    assert!(written >= 20 && refused >= 20, "{written} {refused}");
}

#[test]
fn suites_and_datasets_become_conversations() {
    let all = ["vally", "waza", "inspect", "deepeval"].map(|format| (format, compare(format)));
    assert!(all.iter().all(|(_, (written, _))| *written > 0), "{all:?}");
}

#[test]
fn weights_thresholds_and_arms_are_written() {
    let scratch = Scratch::new();
    let case = "execution: {prompt: Go.}\ngraders:\n- {type: regex, name: a, pattern: x, weight: 3}\n\
                - {type: tool_used, name: used, tool: Skill}\n- {type: regex, name: none, pattern: y, weight: 0}\n";
    let target = write_foreign("plugin-eval", scratch.root(), "c.yaml", case);
    let (written, reloaded) = again(&scratch, &scratch.load(&[&target]), None);
    let text = String::from_utf8(written.files[0].content.clone()).unwrap();
    assert!(text.contains("# Not written, because it has no weight: `none`\n"), "{text}");
    assert!(text.contains("install: \"../plug\"\nshould_trigger: true\n"), "{text}");
    let case = &reloaded.suites[0].cases[0];
    assert_eq!(
        (case.indicators.as_slice(), case.ruling.scoring.map(|scoring| scoring.pass_score)),
        (&["used".to_owned()][..], Some(4.0))
    );
    let suite = "scoring: {threshold: 0.5, weights: {output-contains: 3}}\nstimuli:\n- name: c\n  prompt: Go.\n  graders:\n\
                 \x20 - {type: output-contains, config: {substring: Lake}}\n  - {type: file-not-matches, config: {path: a, pattern: /x/}}\n";
    let target = write_foreign("vally", scratch.root(), "", suite);
    let (written, reloaded) = again(&scratch, &scratch.load(&[&target]), None);
    let text = String::from_utf8(written.files[0].content.clone()).unwrap();
    assert!(text.contains("threshold: 0.5\n") && text.contains("pattern: \"(?i)Lake\"\n    weight: 3"), "{text}");
    assert!(text.contains("(?:)/x/"), "{text}");
    let scoring = reloaded
        .suites
        .iter()
        .flat_map(|suite| &suite.cases)
        .find_map(|case| case.ruling.scoring.filter(|one| one.max_score > 3.5));
    assert!(scoring.is_some(), "{text}");
}

#[test]
fn what_a_format_cannot_say_is_refused() {
    let scratch = Scratch::new();
    write_foreign("harbor", scratch.root(), "a", "# ==> task.toml <==\n[agent]\n");
    let loaded = scratch.load(&["tasks/a"]);
    let (written, _) = again(&scratch, &loaded, Some(WrittenFormat::Evals));
    assert_eq!((written.files.len(), written.cases), (0, 0));
    assert_eq!(
        written.refused[0].message,
        "`a` cannot be written: it tests an agent alone, which the format `evals` cannot say"
    );
}

#[test]
fn keys_without_effect_become_comments() {
    let scratch = Scratch::new();
    write_foreign("harbor", scratch.root(), "a", "# ==> task.toml <==\n[environment]\ncpus = 2\n");
    let loaded = scratch.load(&["tasks/a"]);
    let (written, _) = again(&scratch, &loaded, None);
    let text = String::from_utf8(written.files[0].content.clone()).unwrap();
    assert!(text.starts_with("# From `tasks/a/task.toml`, a suite in the format `harbor`.\n"), "{text}");
    assert!(
        text.contains("# - `environment.cpus` (tasks/a/task.toml:2): sandboxes have no processor limit\n"),
        "{text}"
    );
    assert!(text.contains("# - `FROM` (tasks/a/environment/Dockerfile:1): "), "{text}");
}
