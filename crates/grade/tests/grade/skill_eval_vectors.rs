//! Compares claims and checks on repositories and files with recorded verdicts. Intended differences are listed with
//! their reasons.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    AssertionSpec, Case, Collected, Commit, Ending, Evidence, Excerpt, Forge, ForgeKind, FoundFile, Need, Node, Probe,
    Probed, RemoteState, RepositoryChange, RepositoryState, ReviewRequest, SideEffectContract, SideEffectLevel,
    SkillEval, Source, Spanned, Status, Step, Trace, Usage, UserMessage,
};
use serde_json::{Value, json};
use testkit::vectors::compare;
use trialrun_grade::{Check, Context, compile, grade};

const CLASSIFY: &str = include_str!("../vectors/agent-skill-eval/classify.jsonl");
const GIT_CHECKS: &str = include_str!("../vectors/agent-skill-eval/git_checks.jsonl");
const BEFORE: &str = include_str!("../vectors/agent-skill-eval/git_checks_pre.json");
const AFTER: &str = include_str!("../vectors/agent-skill-eval/git_checks_posts.json");
const STATE_DIFF: &str = include_str!("../vectors/agent-skill-eval/state_diff.json");
const WORKSPACE_CHECKS: &str = include_str!("../vectors/agent-skill-eval/workspace_checks.jsonl");
const WORKSPACE: &str = include_str!("../vectors/agent-skill-eval/workspace_fixture.json");
const SLUG: &str = include_str!("../vectors/agent-skill-eval/slug.jsonl");
const DIFFERENCES: &str = include_str!("../vectors/agent-skill-eval/differences.json");

/// Commit from before the first snapshot. A reset leads back to it.
const OLDER: &str = "00";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(text).collect()
}

/// Returns the check for `claim`, or `None` if the claim is rejected.
fn check(claim: &str, should_trigger: bool) -> Option<Check> {
    let source = Source::new("evals.json", "");
    let node = Node::from_json(&json!(claim), &source);
    let mut case = case(should_trigger, None);
    case.assertions = vec![AssertionSpec {
        id: "claim".into(),
        kind: Spanned::new("claim".into(), node.span),
        weight: 1.0,
        arguments: model::Arguments::Brief(node.clone()),
        node,
        about: model::AssertionScope::Trial,
    }];
    let (mut checks, _) = compile(&case, &Context::default());
    checks.pop()
}

fn case(should_trigger: bool, contract: Option<SideEffectContract>) -> Case {
    let place = Excerpt::of_file("evals.json");
    Case {
        messages: vec![UserMessage::text("Begin.")],
        skill_eval: Some(Box::new(SkillEval {
            should_trigger,
            invocation: None,
            side_effect_level: SideEffectLevel::LocalOnly,
            contract: contract.map(|contract| (contract, place.clone())),
            scripts: Vec::new(),
        })),
        ..Case::new("vector", place)
    }
}

fn evidence(answer: &str, collected: Collected) -> Evidence {
    let finished = Step::Finished {
        subtype: "success".into(),
        is_error: false,
        usage: Usage::default(),
        text: Some(answer.to_owned()).filter(|answer| !answer.is_empty()),
        result: None,
    };
    Evidence {
        trace: Trace::of(&[finished]),
        collected: Collected { sandbox: Some("/box".into()), ..collected },
        ending: Ending::Finished,
        limits: Arc::default(),
        unused_responses: Vec::new(),
        agent_ms: None,
    }
}

fn verdict(check: Option<&Check>, evidence: &Evidence) -> Value {
    let Some(check) = check else { return json!("refused") };
    match grade(std::slice::from_ref(check), evidence)[0].status {
        Status::Met => json!(true),
        Status::Unmet => json!(false),
        Status::Undecided => json!("undecided"),
    }
}

/// Name, recorded result and current result.
type Vector = (String, Value, Value);

fn classify() -> Vec<Vector> {
    let vector = |vector: Value| {
        let claim = text(&vector["assertion"]);
        let now = check(&claim, true).map_or_else(|| "refused".to_owned(), |check| classes(&check));
        (format!("classify: {claim}"), vector["class"].clone(), json!(now))
    };
    lines(CLASSIFY).into_iter().map(vector).collect()
}

/// Returns the class of each assertion to which a claim is compiled, by its original name.
fn classes(check: &Check) -> String {
    let class = |method: &str| match method {
        "judge" => "llm",
        "branch_created" | "branch_not_created" => "git-branch",
        "commit_created" | "commit_not_created" => "git-commit",
        "pushed" | "not_pushed" => "pushed",
        "review_request_created" | "review_request_not_created" => "pr-created",
        "command_ran" | "command_not_ran" => "command-ran",
        "output_contains" | "output_not_contains" | "file_contains" | "file_not_contains" => "content-contains",
        "valid_json" | "no_valid_json" => "valid-json",
        method if method.starts_with("file_") => "file-exists",
        _ => "none",
    };
    check.method().split(" + ").map(class).collect::<Vec<_>>().join(" + ")
}

/// Returns a recorded snapshot. A branch has a commit only if it existed before.
fn state(snapshot: &Value) -> RepositoryState {
    let head = snapshot["head_sha"].as_str();
    let branch = snapshot["current_branch"].as_str().filter(|branch| !branch.is_empty() && *branch != "HEAD");
    let commit_of = |name: &String| match snapshot["branch_heads"][name].as_str() {
        _ if Some(name.as_str()) == branch => head,
        Some(known) => Some(known),
        None => snapshot["commit_shas"][0].as_str(),
    };
    let branches = texts(&snapshot["local_branches"]);
    let heads = snapshot["remote_branch_heads"].as_object().unwrap();
    let request = |request: &Value| ReviewRequest {
        number: request["number"].as_u64().unwrap(),
        head: request["headRefName"].as_str().map(str::to_owned),
        base: request["baseRefName"].as_str().map(str::to_owned),
        open: request["state"] == "OPEN",
        ..ReviewRequest::default()
    };
    let remote = RemoteState {
        url: "https://github.com/foo/bar".into(),
        branches: Some(heads.iter().map(|(name, head)| (name.clone(), text(head))).collect()),
        review_requests: Some(snapshot["open_prs"].as_array().unwrap().iter().map(request).collect()),
        ..RemoteState::default()
    };
    RepositoryState {
        head: head.map(str::to_owned),
        branch: branch.map(str::to_owned),
        branches: branches.into_iter().map(|name| (name.clone(), commit_of(&name).unwrap().to_owned())).collect(),
        remotes: [("origin".to_owned(), remote)].into(),
        ..RepositoryState::default()
    }
}

fn changed(after: &Value) -> Collected {
    let before = read(BEFORE);
    let known: BTreeSet<String> = texts(&before["commit_shas"]).into_iter().chain([OLDER.to_owned()]).collect();
    let new: Vec<(String, String)> = texts(&after["commits"])
        .iter()
        .filter_map(|line| line.split_once(' '))
        .filter(|(sha, _)| !known.contains(*sha))
        .map(|(sha, subject)| (sha.to_owned(), subject.to_owned()))
        .collect();
    let on_head = new.iter().any(|(sha, _)| after["head_sha"] == json!(sha));
    let commit = |(sha, subject)| Commit { sha, subject, on_head };
    let change = RepositoryChange {
        before: state(&before),
        after: state(after),
        new_commits: new.into_iter().map(commit).collect(),
    };
    Collected { repository_change: Some(Box::new(change)), ..Collected::default() }
}

fn git_checks() -> Vec<Vector> {
    let after = read(AFTER);
    let vector = |vector: Value| {
        let (post, claim) = (text(&vector["post"]), text(&vector["text"]));
        let should_trigger = vector["should_trigger"] == true;
        let evidence = evidence("", changed(&after[&post]));
        let now = verdict(check(&claim, should_trigger).as_ref(), &evidence);
        let turned = if should_trigger { "" } else { ", turned round" };
        (format!("git: {post}: {claim}{turned}"), vector["passed"].clone(), now)
    };
    lines(GIT_CHECKS).into_iter().map(vector).collect()
}

/// Returns the differences between two snapshots, as reported by a contract that does not allow any change.
fn state_diff() -> Vec<Vector> {
    let after = read(AFTER);
    let contract = SideEffectContract {
        allow_new_local_branches: false,
        allow_new_remote_branches: false,
        allow_new_commits: false,
        allow_new_review_requests: false,
        allow_worktree_changes: false,
    };
    let (checks, _) = compile(&case(true, Some(contract)), &Context::default());
    let vector = |(post, recorded): (&String, &Value)| {
        let evidence = evidence("", changed(&after[post]));
        let finding = grade(&checks, &evidence).remove(0);
        let lines: Vec<String> = finding.actual.into_iter().chain(finding.evidence).collect();
        let of = |what: &str| -> Vec<String> {
            lines.iter().filter_map(|line| line.strip_prefix(what)?.split_whitespace().next()).map(plain).collect()
        };
        let now = json!({
            "new_branches": of("a new local branch: "),
            "new_remote_branches": of("a new remote branch: "),
            "new_commit_shas": of("a new commit: "),
            "new_open_prs": of("a new review request: "),
            "eval_branch_pushed_matches_head":
                verdict(check("The branch was pushed", true).as_ref(), &evidence),
        });
        let number = |request: &Value| request["number"].to_string();
        let recorded = json!({
            "new_branches": recorded["new_branches"],
            "new_remote_branches": recorded["new_remote_branches"],
            "new_commit_shas": recorded["new_commit_shas"],
            "new_open_prs": recorded["new_open_prs"].as_array().unwrap().iter().map(number).collect::<Vec<_>>(),
            "eval_branch_pushed_matches_head": recorded["eval_branch_pushed_matches_head"],
        });
        (format!("diff: {post}"), recorded, now)
    };
    read(STATE_DIFF).as_object().unwrap().iter().map(vector).collect()
}

/// Returns a name without its marks and its remote.
fn plain(name: &str) -> String {
    let name = name.trim_matches(['`', '#', ',']);
    name.strip_prefix("origin/").unwrap_or(name).to_owned()
}

fn workspace_checks() -> Vec<Vector> {
    let fixture = read(WORKSPACE);
    let files: BTreeMap<String, String> =
        fixture["files"].as_object().unwrap().iter().map(|(path, content)| (path.clone(), text(content))).collect();
    let vector = |vector: Value| {
        let (claim, output) = (text(&vector["assertion"]), text(&vector["output"]));
        let check = check(&claim, true);
        let needs = check.iter().flat_map(Check::needs);
        let probes = needs.map(|need| Probe { key: need.key(), found: found(&need, &files), need }).collect();
        let now = verdict(check.as_ref(), &evidence(&output, Collected { probes, ..Collected::default() }));
        let recorded = vector["result"].get("passed").cloned().unwrap_or_else(|| json!("raises"));
        let of = if output.is_empty() { String::new() } else { format!(" ({})", output.replace('\n', " ")) };
        (format!("workspace: {claim}{of}"), recorded, now)
    };
    lines(WORKSPACE_CHECKS).into_iter().map(vector).collect()
}

fn found(need: &Need, files: &BTreeMap<String, String>) -> Probed {
    match need {
        Need::Files => {
            let own = files.iter().filter(|(path, _)| !path.starts_with(".git/"));
            let file = |(path, content): (&String, &String)| FoundFile {
                path: path.clone(),
                size: content.len() as u64,
                text: Some(content.clone()),
            };
            Probed::Files { files: own.map(file).collect(), clipped: false }
        }
        Need::File { path } => files.get(path).map_or(Probed::Nothing, |content| Probed::File {
            size: content.len() as u64,
            text: content.clone(),
            clipped: false,
        }),
        Need::Command { .. } | Need::Repository => Probed::Nothing,
    }
}

fn slug() -> Vec<Vector> {
    let vector = |vector: Value| {
        let address = vector["in"].as_str();
        let forge = address.and_then(Forge::of).filter(|forge| forge.kind == ForgeKind::GitHub);
        (format!("slug: {}", vector["in"]), vector["out"].clone(), json!(forge.map(|forge| forge.project)))
    };
    lines(SLUG).into_iter().map(vector).collect()
}

#[test]
fn every_vector_matches_or_is_listed_with_a_reason() {
    let vectors = [classify(), git_checks(), state_diff(), workspace_checks(), slug()].concat();
    compare("skill evaluation vectors", DIFFERENCES, &vectors);
}
