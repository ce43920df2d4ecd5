//! Skill evaluations with the whole program: the example skills as described on their page, parallel trials, and
//! sandboxes that are clones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Project, git};

const TRIALRUN: &str = env!("CARGO_BIN_EXE_trialrun");

/// Creates a bare repository with one commit on `main`, and returns its URL.
fn origin(project: &Project) -> String {
    let (seed, bare) = (project.home().join("seed"), project.home().join("origin.git"));
    fs::create_dir_all(seed.join("src")).unwrap();
    fs::write(seed.join("README.md"), "# Shop\n").unwrap();
    fs::write(seed.join("src/price.txt"), "7\n").unwrap();
    git(&seed, &["init", "-q"]);
    git(&seed, &["add", "."]);
    git(&seed, &["commit", "-q", "-m", "Begin"]);
    git(&project.home(), &["clone", "-q", "--bare", "seed", "origin.git"]);
    bare.to_string_lossy().into_owned()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => assert!(fs::copy(entry.path(), to).is_ok()),
        }
    }
}

fn trials(report: &Value) -> &[Value] {
    report["trials"].as_array().unwrap()
}

/// Returns the outcomes of each case with and without the skill.
fn arms(report: &Value) -> BTreeMap<String, [String; 2]> {
    let mut arms: BTreeMap<String, [String; 2]> = BTreeMap::new();
    for trial in trials(report) {
        let case = format!("{}/{}", trial["suite"].as_str().unwrap(), trial["case"].as_str().unwrap());
        let at = usize::from(trial["variant"] == "without_skill");
        arms.entry(case).or_default()[at] = trial["outcome"].as_str().unwrap().to_owned();
    }
    arms
}

#[test]
fn the_example_skills_have_their_documented_results() {
    let project = Project::new(TRIALRUN);
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills"), &project.dir());
    git(&project.home(), &["init", "-q", "--bare", "origin.git"]);
    let origin = project.home().join("origin.git").to_string_lossy().into_owned();
    let chat = [".", "--agent", "chat", "--model", "scripted:rehearsal.yaml", "--source-repo", origin.as_str()];
    let report = project.report(&chat, 3);
    let (passed, failed, undecided) = ("passed", "failed", "undecided");
    let expected = [
        ("check-config/evals/another-kind-of-file", [passed, passed]),
        ("check-config/evals/nothing-wrong", [passed, failed]),
        ("check-config/evals/two-faults", [passed, failed]),
        ("find-bugs/evals/make-the-change", [passed, passed]),
        ("find-bugs/evals/nothing-to-find", [undecided, undecided]),
        ("find-bugs/evals/two-planted-bugs", [undecided, failed]),
        ("mend-tests/evals/nothing-is-red", [passed, passed]),
        ("mend-tests/evals/one-wrong-line", [passed, failed]),
        ("mend-tests/evals/two-faults-one-after-the-other", [passed, passed]),
        ("open-change/evals/leaves-scratch-files-out", [passed, failed]),
        ("open-change/evals/only-a-question", [passed, passed]),
        ("open-change/evals/publishes-a-new-file", [undecided, failed]),
        ("release-notes/evals/from-a-log", [undecided, failed]),
        ("release-notes/evals/nothing-to-tell", [undecided, undecided]),
        ("release-notes/evals/only-a-count", [undecided, undecided]),
    ];
    let expected: BTreeMap<String, [String; 2]> =
        expected.into_iter().map(|(case, arms)| (case.to_owned(), arms.map(str::to_owned))).collect();
    assert_eq!(arms(&report), expected);
    // Only findings that need a judge are undecided.
    let findings = trials(&report).iter().flat_map(|trial| trial["findings"].as_array().unwrap());
    for finding in findings.filter(|finding| finding["status"] == undecided) {
        assert!(finding["because"].as_str().unwrap().starts_with("no judge"), "{finding}");
    }
    let branches = git(Path::new(&origin), &["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "", "each trial pushed to its own copy");
    assert!(project.left_over().is_empty());
}

/// Returns two suites whose cases have the same ids, and a stub agent that follows its skill if it has one.
fn twins() -> Project {
    let project = Project::new(TRIALRUN);
    for (skill, word) in [("sun", "bright"), ("moon", "pale")] {
        let home = format!("skills/{skill}");
        project.write(
            &format!("{home}/SKILL.md"),
            &format!("---\nname: {skill}\ndescription: Says what the {skill} is like.\n---\n{word}\n"),
        );
        let cases: Vec<Value> = (0..2)
            .map(|number| {
                json!({
                    "id": number,
                    "prompt": format!("!skill {skill}\n!with-skill !write out.txt {word} {number}\n!tokens {number}0 5"),
                    "expected_output": "A word.",
                    "files": ["files/in.txt"],
                    "assertions": [
                        {"type": "file_contains", "path": "out.txt", "contains": format!("{word} {number}")},
                        {"type": "file_unchanged", "path": "in.txt"},
                        "No git commit was created",
                    ],
                })
            })
            .collect();
        project.write(&format!("{home}/evals/evals.json"), &json!({"skill_name": skill, "evals": cases}).to_string());
        project.write(&format!("{home}/evals/files/in.txt"), &format!("{skill}\n"));
    }
    let agent = |script: &str| format!("{{ type: subprocess, mode: oneshot, command: [sh, {script}, '{{message}}'] }}");
    project.write(
        "trialrun.yaml",
        &format!(
            "skills_dir: ./skills\ndefaults: {{ agent: fake }}\nagents:\n  stub: {}\n  publisher: {}\n",
            agent("stub.sh"),
            agent("publish.sh")
        ),
    );
    project.write("publish.sh", "");
    project.write(
        "stub.sh",
        "number=$(printf %s \"$1\" | sed -n 's/^!tokens \\([0-9]*\\)0 5$/\\1/p')\n\
         for skill in .agents/skills/*/SKILL.md; do\n\
         [ -f \"$skill\" ] && echo \"$(tail -n 1 \"$skill\") $number\" > out.txt\n\
         done\n\
         cat in.txt\n",
    );
    project
}

/// Returns a report without the parts that differ between runs.
fn without_times(mut report: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| {
                    !["duration", "latency", "started_at", "finished_at"].iter().any(|time| key.starts_with(time))
                });
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    for key in ["id", "hash", "settings"] {
        report["run"].as_object_mut().unwrap().remove(key);
    }
    strip(&mut report);
    report
}

#[test]
fn parallel_trials_have_the_same_results_as_sequential_ones() {
    let project = twins();
    for agent in ["fake", "stub"] {
        let run = |jobs: &str| {
            let report = project.report(&["--agent", agent, "--trials", "2", "--seed", "1", "--jobs", jobs], 0);
            without_times(report)
        };
        let (serial, at_once) = (run("1"), run("8"));
        assert_eq!(trials(&serial).len(), 16, "{agent}");
        for key in ["summary", "arms", "deltas"] {
            assert_eq!(serial[key].to_string(), at_once[key].to_string(), "{agent}: {key}");
        }
        let by_id = |report: &Value| -> BTreeMap<String, String> {
            let result = |trial: &Value| {
                [&trial["outcome"], &trial["findings"], &trial["usage"], &trial["files_changed"]]
                    .map(Value::to_string)
                    .join(" ")
            };
            trials(report).iter().map(|trial| (trial["id"].as_str().unwrap().to_owned(), result(trial))).collect()
        };
        let (serial, at_once) = (by_id(&serial), by_id(&at_once));
        for (id, result) in &serial {
            assert_eq!(masked(result), masked(&at_once[id]), "{id}");
        }
        let outcomes = |arm: &str| {
            serial
                .iter()
                .filter(|(id, _)| id.contains(arm))
                .map(|(_, result)| result.starts_with("\"passed\""))
                .collect::<Vec<_>>()
        };
        assert_eq!(outcomes("+with_skill"), [true; 8], "{agent}");
        assert_eq!(outcomes("+without_skill"), [false; 8], "{agent}");
    }
    assert!(project.left_over().is_empty());
}

/// Replaces the paths of sandboxes, so that the text is the same for each.
fn masked(text: &str) -> String {
    let mut parts = text.split("/sandbox-");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("/sandbox-");
        out.push_str(part.split_once('/').map_or("", |(_, rest)| rest));
    }
    out
}

#[test]
fn a_clone_has_the_repository_its_remote_and_the_files_of_the_case() {
    let project = twins();
    let origin = origin(&project);
    let agent = "publisher";
    project.write(
        "publish.sh",
        "git log --format=%s; cat src/price.txt; git status --short; git remote get-url origin; \
         git switch -q -c change && echo 8 > src/price.txt && git commit -q -am Dearer && git push -q -u origin change && cat in.txt\n",
    );
    project.write(
        "skills/sun/evals/evals.json",
        &json!({"skill_name": "sun", "evals": [{
            "id": "publishes",
            "prompt": "Publish it.",
            "expected_output": "A branch.",
            "files": ["files/in.txt"],
            "assertions": [
                "A new git branch was created", "A git commit was created", "The branch was pushed to the remote",
                {"type": "file_contains", "contains": "Begin"}, {"type": "file_contains", "contains": "?? in.txt"},
                {"type": "file_not_contains", "contains": ".agents"}, {"type": "git_clean"},
            ],
        }]})
        .to_string(),
    );
    let real = ["--remote", "real", "--keep-sandbox"];
    let arguments = ["skills/sun", "--no-baseline", "--agent", agent, "--source-repo", origin.as_str()];
    let arguments = [&arguments[..], &real].concat();
    let report = project.report(&arguments, 0);
    let trial = &trials(&report)[0];
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert_eq!(git(Path::new(&origin), &["log", "-1", "--format=%s", "change"]), "Dearer");
    assert_eq!(trial["side_effects"][0]["branches"], json!(["change"]));
    // The clone for the next trial starts at the default branch, and branches that already exist are not new.
    let again = project.report(&arguments, 1);
    let unmet: Vec<&Value> = again["trials"][0]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["status"] == "unmet")
        .collect();
    assert!(
        !unmet.is_empty()
            && again["trials"][0].get("side_effects").is_none_or(|left| left.as_array().is_none_or(Vec::is_empty)),
        "{again:#}"
    );
}

#[test]
fn concurrent_pushes_by_another_trial_do_not_count() {
    let project = twins();
    let origin = origin(&project);
    // Each trial waits for the branch of the other, so that both see it before they end.
    project.write(
        "publish.sh",
        "[ \"$1\" = push ] && git switch -q -c mine && git commit -q --allow-empty -m Mine && git push -q -u origin mine\n\
         until git ls-remote --exit-code --heads origin mine > /dev/null; do :; done; echo done\n",
    );
    let case = |id: &str, prompt: &str, claim: &str| json!({"id": id, "prompt": prompt, "expected_output": "x", "assertions": [claim]});
    let cases = [
        case("pushes", "push", "The branch was pushed to the remote"),
        case("waits", "wait", "No branch was pushed to the remote"),
    ];
    project.write("skills/sun/evals/evals.json", &json!({"skill_name": "sun", "evals": cases}).to_string());
    let report = project.report(
        &[
            &["skills/sun", "--no-baseline", "--agent", "publisher", "--source-repo", origin.as_str()][..],
            &["--remote", "real", "--keep-sandbox", "--jobs", "2"],
        ]
        .concat(),
        0,
    );
    let left = |case: &str| {
        let trial = trials(&report).iter().find(|trial| trial["case"] == case).unwrap();
        trial["side_effects"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((left("pushes"), left("waits")), (1, 0));
}

/// Without `gh`, pull requests are unknown, which is not the agent's fault. The URLs of both services are parsed in
/// all their forms, but git must not access them.
#[test]
fn assertions_that_need_a_missing_gh_are_undecided() {
    let project = twins();
    let programs = project.home().join("bin");
    fs::create_dir(&programs).unwrap();
    for program in ["sh", "git", "mkdir", "rmdir", "cat"] {
        let found = ["/usr/local/bin", "/usr/bin", "/bin"].map(|dir| Path::new(dir).join(program));
        let found = found.into_iter().find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(found, programs.join(program)).unwrap();
    }
    let project = project.env("PATH", programs.to_str().unwrap());
    project.write(
        "s.yaml",
        "scenario: s\nsystem_prompt: Say hello.\nagent: fake\nuser_prompt: done\nfixtures:\n  git_init: true\n  setup_commands:\n\
         \x20   - git config protocol.allow never\n    - git remote add hub git@github.com:acme/shop.git\n\
         \x20   - git remote add lab https://user:canary-77@gitlab.com/acme/shop.git\n\
         \x20   - git remote add own https://gitlab.example.org/acme/shop.git\n\
         assertions:\n  - {id: quiet, type: review_request_not_created}\n",
    );
    let report = project.report(&["s.yaml"], 3);
    let trial = &trials(&report)[0];
    assert_eq!(trial["outcome"], "undecided", "{trial:#}");
    let reason = trial["findings"][0].to_string();
    for part in ["`gh` is not installed", "`glab` is not installed", "`gitlab.example.org` is not queried"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert!(!report.to_string().contains("canary-77"));
}

#[test]
fn a_service_chosen_by_the_agent_is_not_queried() {
    let project = twins();
    let (programs, asked) = (project.home().join("bin"), project.home().join("asked"));
    fs::create_dir(&programs).unwrap();
    for program in ["gh", "glab"] {
        let file = programs.join(program);
        fs::write(&file, format!("#!/bin/sh\necho \"$0\" >> {}\necho '[]'\n", asked.display())).unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let project = project.path_first(&programs).env("GITLAB_TOKEN", "glpat-canary77canary77");
    project.write(
        "publish.sh",
        "git remote add origin http://gitlab.evil.example/x/y.git && git remote add hub git@github.com:acme/shop.git && \
         echo done\n",
    );
    let case = json!({"id": "asks", "prompt": "go", "expected_output": "x", "assertions": [
        "No pull request was opened", {"type": "file_contains", "contains": "done"}]});
    project.write("skills/sun/evals/evals.json", &json!({"skill_name": "sun", "evals": [case]}).to_string());
    project.report(&["skills/sun", "--no-baseline", "--agent", "publisher"], 0);
    assert!(!asked.exists(), "{}", fs::read_to_string(&asked).unwrap_or_default());
}

#[test]
fn a_failing_clone_is_an_environment_fault() {
    let project = twins();
    let nowhere: PathBuf = project.home().join("nowhere.git");
    let missing = project.run(&["run", "skills/sun", "--source-repo", nowhere.to_str().unwrap()]).exits(2);
    assert!(missing.err.contains("there is no repository"), "{}", missing.output());
    let address = format!("file://{}", nowhere.display());
    let report = project.report(&["skills/sun", "--case", "1", "--source-repo", &address], 3);
    for trial in trials(&report) {
        assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("environment")));
        assert!(trial["because"].as_str().unwrap().contains("nowhere.git"), "{}", trial["because"]);
    }
}

/// The user's git has credentials for the remote. The agent's git has them only if allowed, and no record contains
/// them.
#[test]
fn the_agent_can_sign_in_to_the_source_repository_only_if_allowed() {
    let project = twins();
    let origin = origin(&project);
    // No server is listening there; a setting makes the user's git find the repository elsewhere.
    let address = "https://127.0.0.1:1/acme/shop.git";
    let settings = format!(
        "[url \"{origin}\"]\n\tinsteadOf = {address}\n[credential]\n\
         \thelper = \"!f() {{ echo username=ada; echo password=canary-pw-77; }}; f\"\n"
    );
    fs::write(project.home().join(".gitconfig"), settings).unwrap();
    project.write(
        "publish.sh",
        "told=$(printf 'protocol=https\\nhost=127.0.0.1:1\\n\\n' | git credential fill 2> /dev/null | sed -n s/^password=//p)\n\
         other=$(printf 'protocol=https\\nhost=127.0.0.1:2\\n\\n' | git credential fill 2> /dev/null)\n\
         [ \"$told\" = canary-pw-77 ] && [ -z \"$other\" ] && echo signed in\n\
         grep -rqs canary \"$HOME\" .git && echo written down\necho \"told: $told\"\n",
    );
    let case = json!({"id": "asks", "prompt": "go", "expected_output": "x", "assertions": [
        {"type": "file_contains", "contains": "signed in"}, {"type": "file_not_contains", "contains": "written down"}]});
    project.write("skills/sun/evals/evals.json", &json!({"skill_name": "sun", "evals": [case]}).to_string());
    let arguments = ["skills/sun", "--no-baseline", "--agent", "publisher", "--source-repo", address];
    let report = project.report(&arguments, 1);
    assert_eq!(report["trials"][0]["outcome"], "failed", "{report:#}");
    let lend = ["--remote", "real", "--lend-git-sign-in"];
    let report = project.report(&[&arguments[..], &lend].concat(), 0);
    assert!(!report.to_string().contains("canary") && report.to_string().contains("told: [masked]"), "{report:#}");
    let shown = project.run(&["show", "asks", "--json"]).exits(0);
    assert!(!shown.output().contains("canary"), "{}", shown.output());
    let ran = project.run(&[&["run", "skills/sun", "--source-repo", &origin][..], &lend].concat()).exits(2);
    assert!(ran.err.contains("`https://` address"), "{}", ran.err);
    let ran = project.run(&["run", "skills/sun", "--source-repo", &origin, "--lend-git-sign-in"]).exits(2);
    assert!(ran.err.contains("`--lend-git-sign-in` needs `--remote real`"), "{}", ran.err);
}

#[test]
fn a_file_that_an_option_names_is_looked_for_even_if_nothing_needs_it() {
    let project = twins();
    for (arguments, message) in [
        (["run", "skills/sun", "--judge-calibration", "nope.json"], "there is no calibration `nope.json`"),
        (["run", "skills/sun", "--report", "json="], "the path of the report is empty in `json=`"),
    ] {
        let ran = project.run(&arguments).exits(2);
        assert!(ran.err.contains(message), "{}", ran.output());
    }
}
