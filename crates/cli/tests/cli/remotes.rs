//! Remotes of trials: a copy for each trial with a stand-in for the hosting service, or the real one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Project, git};

/// Address of the source repository. The user's git settings map it to a folder.
const ADDRESS: &str = "https://github.com/acme/shop.git";

/// Creates the source repository, and returns its folder.
fn origin(project: &Project) -> PathBuf {
    let home = project.home();
    let seed = home.join("seed");
    fs::create_dir_all(&seed).unwrap();
    git(&seed, &["init", "-q", "-b", "main"]);
    fs::write(seed.join("README.md"), "# Shop\n").unwrap();
    git(&seed, &["add", "."]);
    git(&seed, &["commit", "-q", "-m", "Begin"]);
    git(&home, &["clone", "-q", "--bare", "seed", "shop.git"]);
    let origin = home.join("shop.git");
    fs::write(home.join(".gitconfig"), format!("[url \"{}\"]\n\tinsteadOf = {ADDRESS}\n", origin.display())).unwrap();
    origin
}

fn branches(bare: &Path) -> String {
    git(bare, &["for-each-ref", "--format=%(refname:short)", "refs/heads"]).trim().replace('\n', " ")
}

/// Returns a project whose agent is the shell script `acts`. Its output goes to `out.txt`.
fn project(acts: &str, assertions: &Value) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("agent.sh", &format!("read -r line\n{{\n{acts}\n}} > out.txt 2>&1\necho '{{\"text\": \"done\"}}'\n"));
    let case = json!({"scenario": "s", "system_prompt": "Answer.", "user_prompt": "go", "agent": "subprocess:sh agent.sh",
        "assertions": assertions});
    project.write("s.yaml", &case.to_string());
    project
}

/// Pushes a branch that is the same in every trial, and opens a pull request for it.
const PUBLISH: &str = "git switch -q -c feat/basket && echo x > basket.txt && git add basket.txt \
    && git commit -qm 'feat: add a basket' -m 'It holds ten items.' && git push -q -u origin feat/basket && gh pr create --fill";

fn contains(id: &str, text: &str) -> Value {
    json!({"id": id, "type": "file_contains", "path": "out.txt", "contains": text})
}

fn lacks(id: &str, text: &str) -> Value {
    json!({"id": id, "type": "file_not_contains", "path": "out.txt", "contains": text})
}

fn outcomes(report: &Value) -> Vec<&str> {
    report["trials"].as_array().unwrap().iter().map(|trial| trial["outcome"].as_str().unwrap()).collect()
}

#[test]
fn three_trials_that_push_the_same_branch_all_pass() {
    trials_that_push_the_same_branch_pass("local");
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn three_isolated_trials_that_push_the_same_branch_all_pass() {
    trials_that_push_the_same_branch_pass("isolated");
}

#[track_caller]
fn trials_that_push_the_same_branch_pass(kind: &str) {
    let assertions = json!([
        {"id": "pushes", "type": "pushed", "name": "feat/basket"},
        {"id": "opens", "type": "review_request_created", "head": "feat/basket", "base": "main"},
        contains("address", &format!("sees {ADDRESS}")),
        contains("url", "https://github.com/acme/shop/pull/1"),
        contains("ssh", "\trefs/heads/feat/basket"),
        {"id": "asks", "type": "command_succeeds",
            "command": "gh pr view 1 --json title,body --jq .body | grep -q ten && git fetch -q origin && git push -q origin HEAD:more"},
    ]);
    let acts = format!(
        "git branch -a\necho \"sees $(git remote get-url origin)\"\n{PUBLISH}\ngit ls-remote git@github.com:acme/shop.git"
    );
    let project = project(&acts, &assertions);
    let origin = origin(&project);
    let arguments = ["s.yaml", "--source-repo", ADDRESS, "--sandbox", kind, "--trials", "3", "--jobs", "3"];
    let report = project.report(&arguments, 0);
    assert_eq!(outcomes(&report), ["passed"; 3], "{report:#}");
    assert_eq!(branches(&origin), "main");
    assert!(!report.to_string().contains("side_effects\":[{"), "{report:#}");
    assert!(project.left_over().is_empty());
}

#[test]
fn commands_after_grading_see_what_the_agent_pushed() {
    let look = "cd \"$ASE_WORKSPACE_PATH\" && git ls-remote -q --heads origin > \"$ASE_OUTPUT_DIR/origin\" && \
                git -C \"$ASE_SOURCE_REPO\" branch > \"$ASE_OUTPUT_DIR/source\" && gh pr list > \"$ASE_OUTPUT_DIR/requests\"";
    let project = project(PUBLISH, &json!([{"id": "pushes", "type": "pushed"}]));
    let source = origin(&project).to_string_lossy().into_owned();
    let arguments = ["run", "s.yaml", "--source-repo", &source];
    project.run(&[&arguments[..], &["--artifacts", "out", "--post-grade-command", look]].concat()).exits(0);
    let seen = |name: &str| project.read(&format!("out/s/subprocess%3Ash%20agent.sh/run-1/outputs/{name}"));
    for name in ["origin", "source", "requests"] {
        assert!(seen(name).contains("feat/basket"), "{name}: {}", seen(name));
    }
    assert_eq!(branches(Path::new(&source)), "main");
}

#[test]
fn a_trial_sees_nothing_that_another_pushed() {
    // The second trial starts after the first has pushed: with one job, they run one after the other.
    let acts = format!("git ls-remote origin; gh pr list; gh issue list; ls -A \"$HOME/..\"; env\n{PUBLISH}");
    let assertions = json!([
        lacks("branch", "refs/heads/feat/basket"),
        lacks("request", "OPEN"),
        lacks("arm", "baseline"),
        lacks("number", "s#"),
        {"id": "opens", "type": "review_request_created"},
    ]);
    let project = project(&acts, &assertions);
    let origin = origin(&project).to_string_lossy().into_owned();
    let report = project.report(&["s.yaml", "--source-repo", &origin, "--trials", "2", "--jobs", "1"], 0);
    assert_eq!(outcomes(&report), ["passed"; 2], "{report:#}");
}

#[test]
fn review_requests_have_what_the_agent_wrote() {
    let acts = format!(
        "{PUBLISH} --draft --label bug,later --reviewer ada\n\
         gh pr create --title again --body again\ngh pr edit 1 --title 'feat: basket' --add-label sold --remove-label later\n\
         gh pr comment 1 --body hello\ngh pr list --json number,title,labels,isDraft\ngh pr ready\ngh pr view\n\
         gh pr view --json nothing\ngh pr checks\ngh workflow run deploy.yml\ngh api 'repos/{{owner}}/{{repo}}/pulls' --jq '.[].head.ref'\n\
         gh pr merge --squash --delete-branch && git fetch -q origin && git log -1 --format='%s by squash' origin/main\n\
         gh pr view --json state --jq .state\ngh issue create --title Bug --body Text\ngh repo view --json defaultBranchRef\n\
         gh auth status\nglab mr list; gh pr create --repo other/project --title x --body y"
    );
    let assertions = json!([
        contains("again", "already exists"),
        contains("fields", r#"{"isDraft":true,"labels":[{"name":"bug"},{"name":"sold"}],"number":1,"title":"feat: basket"}"#),
        contains("view", "title:\tfeat: basket"),
        contains("unknown-field", "Unknown JSON field: \"nothing\""),
        contains("checks", "no checks reported on the 'feat/basket' branch"),
        contains("unsupported", "`workflow` is not supported"),
        contains("api", "\nfeat/basket\n"),
        contains("merged", "feat: basket (#1) by squash"),
        contains("state", "\nMERGED\n"),
        contains("issue", "https://github.com/acme/shop/issues/2"),
        contains("default", r#"{"defaultBranchRef":{"name":"main"}}"#),
        contains("auth", "Logged in to github.com"),
        contains("gitlab", "point to a GitLab host"),
        contains("other", "could not resolve to a repository with the name 'other/project'"),
        {"id": "closed", "type": "review_request_created"},
    ]);
    let project = project(&acts, &assertions);
    origin(&project);
    let report = project.report(&["s.yaml", "--source-repo", ADDRESS], 1);
    let findings = report["trials"][0]["findings"].as_array().unwrap();
    let unmet: Vec<&Value> = findings.iter().filter(|finding| finding["status"] != "met").collect();
    assert_eq!(unmet.len(), 1, "{unmet:#?}");
    // It was merged, so it is not open. Only the finding to which it matters names the unknown command.
    assert_eq!(unmet[0]["id"], "closed");
    assert!(unmet[0]["because"].as_str().unwrap().contains("no new review request matches"), "{}", unmet[0]);
}

#[test]
fn merge_requests_are_opened_with_glab() {
    let acts = "git switch -q -c fix && git commit -q --allow-empty -m 'fix: count' && git push -q origin fix\n\
                glab mr create --fill --yes --target-branch main\nglab mr list -F json; glab mr view; glab mr note -m hi; gh pr list";
    let assertions = json!([
        {"id": "opens", "type": "review_request_created", "head": "fix", "base": "main"},
        contains("url", "https://gitlab.com/team/shop/-/merge_requests/1"),
        contains("json", r#""source_branch":"fix","state":"opened","target_branch":"main","title":"fix: count""#),
        contains("github", "point to a GitHub host"),
    ]);
    let project = project(acts, &assertions);
    let origin = origin(&project);
    let address = "git@gitlab.com:team/shop.git";
    let settings = format!("[url \"{}\"]\n\tinsteadOf = {address}\n", origin.display());
    fs::write(project.home().join(".gitconfig"), settings).unwrap();
    let report = project.report(&["s.yaml", "--source-repo", address], 0);
    assert_eq!(outcomes(&report), ["passed"], "{report:#}");
}

#[test]
fn pushes_of_setup_commands_are_not_the_agents() {
    let assertions = json!([{"id": "quiet", "type": "not_pushed"}, contains("branch", "refs/heads/prepared")]);
    let project = project("git ls-remote \"$(cd \"$(git config remote.origin.url)\" && pwd -P)\"", &assertions);
    let source = origin(&project).to_string_lossy().into_owned();
    let setup = "\"fixtures\":{\"setup_commands\":[\"git push -q origin HEAD:refs/heads/prepared\"]},";
    project.write("s.yaml", &project.read("s.yaml").replacen('{', &format!("{{{setup}"), 1));
    let report = project.report(&["s.yaml", "--source-repo", &format!("{source}/../shop.git")], 0);
    assert_eq!(outcomes(&report), ["passed"], "{report:#}");
    assert_eq!(branches(Path::new(&source)), "main");
}

#[test]
fn what_a_trial_creates_on_the_real_remote_is_removed() {
    let acts = "git push -q origin HEAD:refs/heads/new";
    let project = project(acts, &json!([{"id": "pushes", "type": "pushed", "name": "new"}]));
    let origin = origin(&project);
    let source = origin.to_string_lossy().into_owned();
    let arguments = ["run", "s.yaml", "--source-repo", &source, "--remote", "real", "--trials", "2", "--jobs", "1"];
    let ran = project.run(&arguments).exits(0);
    let warning = format!("warning: `remote` is `real`: the agents of 2 trials can push to {source}");
    assert!(ran.err.contains(&warning), "{}", ran.output());
    assert!(ran.err.contains(&format!("note: removed from {source}: branch new (2 trials)")), "{}", ran.output());
    assert!(project.run(&["show", "s::s#1"]).exits(0).out.contains("removed from the remote: branch new"));
    assert_eq!(branches(&origin), "main");
    assert!(project.run(&["cleanup", "latest"]).exits(0).out.contains("Nothing to remove"));
    // Items that cannot be removed are reported.
    fs::write(
        origin.join("hooks/pre-receive"),
        "#!/bin/sh\nwhile read -r old new name; do case $new in 0000*) exit 1;; esac; done\n",
    )
    .unwrap();
    fs::set_permissions(origin.join("hooks/pre-receive"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ran = project.run(&["run", "s.yaml", "--source-repo", &source, "--remote", "real"]).exits(0);
    assert!(ran.err.contains(&format!("warning: still on {source}: branch new: ")), "{}", ran.output());
    assert_eq!(branches(&origin), "main new");
    assert!(project.run(&["cleanup", "latest"]).exits(0).out.contains("branch new"));
}

#[test]
fn a_case_chooses_its_remote_and_the_command_line_overrides_it() {
    let project = project("git push -q origin HEAD:refs/heads/new", &json!([{"id": "pushes", "type": "pushed"}]));
    let origin = origin(&project);
    let source = origin.to_string_lossy().into_owned();
    let case = project.read("s.yaml").replacen('{', "{\"sandbox\":{\"remote\":\"real\"},", 1);
    project.write("s.yaml", &case);
    let real = ["run", "s.yaml", "--source-repo", &source, "--keep-sandbox"];
    project.run(&[&real[..], &["--remote", "isolated"]].concat()).exits(0);
    assert_eq!(branches(&origin), "main");
    project.run(&real).exits(0);
    assert_eq!(branches(&origin), "main new");
    let ran = project.run(&["run", "s.yaml", "--source-repo", &source, "--remote", "reel"]).exits(2);
    assert!(ran.err.contains("did you mean `real`?"), "{}", ran.err);
}

#[test]
fn an_isolated_remote_is_refused_in_sandboxes_with_a_system_of_their_own() {
    let project = project(PUBLISH, &json!([{"id": "pushes", "type": "pushed"}]));
    origin(&project);
    for kind in ["docker", "podman", "daytona"] {
        let arguments = ["run", "s.yaml", "--source-repo", ADDRESS, "--sandbox", kind];
        let refused = project.run(&arguments).exits(2);
        assert!(refused.err.contains("s.yaml:1:"), "{}", refused.output());
        assert!(refused.err.contains("do not support `remote: isolated`"), "{}", refused.output());
        assert!(refused.err.contains("write `sandbox: {remote: real}`"), "{}", refused.output());
        let accepted = project.run(&[&arguments[..], &["--remote", "real"]].concat());
        assert!(!accepted.err.contains("do not support"), "{}", accepted.output());
    }
}
