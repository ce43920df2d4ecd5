//! Files about one trial: pure functions from records to documents. Names and meanings follow agent-skill-eval;
//! unknown values are `null`, never 0.

use model::{Ending, Finding, HookRecord, RepositoryChange, RepositoryState, RunInfo, Status, TrialRecord};
use serde_json::{Value, json};

use crate::names::is_skill;

/// Types of assertions that count as structured in suites of skills.
const STRUCTURED: [&str; 12] = [
    "file_exists",
    "file_not_exists",
    "file_unchanged",
    "file_contains",
    "file_not_contains",
    "command_ran",
    "command_not_ran",
    "command_succeeds",
    "tests_pass",
    "git_clean",
    "json_path",
    "json_path_not_exists",
];

/// Iteration of a run without a label.
const FIRST_ITERATION: &str = "1";

/// Returns the iteration, which is the label of the run.
pub(super) fn iteration(info: &RunInfo) -> &str {
    info.label.as_deref().unwrap_or(FIRST_ITERATION)
}

/// Returns `true` if the agent of this trial has the skill.
pub(super) fn with_skill(record: &TrialRecord) -> bool {
    record.skill.as_ref().is_some_and(|skill| is_skill(&skill.name)) && !record.is_baseline()
}

/// Returns `run_meta.json`.
pub(super) fn run_meta(record: &TrialRecord, info: &RunInfo) -> Value {
    let agent = info.agents.iter().find(|agent| agent.name == record.agent && agent.model == record.model);
    let setting = |name: &str| info.settings.get(name).cloned().unwrap_or(Value::Null);
    json!({
        "eval_id": record.case,
        "suite": record.suite,
        "trial": record.id,
        "agent": record.agent,
        "arm": record.arm,
        "with_skill": with_skill(record),
        "iteration": iteration(info),
        "skill_name": record.skill.as_ref().map(|skill| &skill.name),
        "skill_hash": record.skill.as_ref().map(|skill| &skill.content_hash),
        "side_effect_level": record.settings.get("side_effect_level"),
        "source_repo": setting("source_repo"),
        "run_id": info.id,
        "run_index": record.repetition,
        "model": record.model,
        "reasoning_effort": record.settings.get("reasoning_effort"),
        "base_url": agent.and_then(|agent| agent.base_url.as_ref()),
        "harness_version": info.trialrun_version,
        "agent_cli_version": record.agent_version,
    })
}

/// Returns `timing.json`. `attempt` is the number of the last attempt.
pub(super) fn timing(record: &TrialRecord, attempt: u32) -> Value {
    let tokens = record.usage;
    let budget = budget_reason(record);
    json!({
        "total_tokens": tokens.map(|tokens| tokens.total()),
        "input_tokens": tokens.map(|tokens| tokens.all_input()),
        "output_tokens": tokens.map(|tokens| tokens.output),
        "cached_tokens": tokens.map(|tokens| tokens.cache_read),
        "cache_creation_tokens": tokens.map(|tokens| tokens.cache_write),
        "non_cached_input_tokens": tokens.map(|tokens| tokens.input + tokens.cache_write),
        "reasoning_output_tokens": tokens.and_then(|tokens| tokens.reasoning),
        "cost_usd": record.cost_usd,
        "cost_usd_source": record.cost_source,
        "cost_usd_cli": record.cost_usd_cli,
        // agent-skill-eval measures the agent's process.
        "duration_ms": record.agent_ms.unwrap_or(record.duration_ms),
        "whole_duration_ms": record.duration_ms,
        "phases": record.phases,
        "exit_code": record.exit_code,
        "timed_out": matches!(record.ending, Some(Ending::TimedOut { .. })),
        "retries": attempt.saturating_sub(1),
        "budget_exceeded": budget.is_some(),
        "budget_reason": budget,
    })
}

/// Returns the reason why a trial exceeds its budget, if it does: the reason of its finding, or its warning if budgets
/// only warn.
pub(super) fn budget_reason(record: &TrialRecord) -> Option<String> {
    let mut found = record
        .findings
        .iter()
        .filter(|finding| finding.is_about_budget())
        .filter(|finding| finding.status == Status::Unmet);
    let warned = || record.warnings.iter().find(|warning| warning.contains(" of a budget of ")).cloned();
    found.next().map(|finding| finding.reason.clone()).or_else(warned)
}

/// Returns the findings for assertions: explicit ones, and implicit ones that are unmet.
pub(super) fn assertions(record: &TrialRecord) -> impl Iterator<Item = &Finding> {
    record
        .findings
        .iter()
        .filter(|finding| !finding.implicit || finding.status == Status::Unmet || finding.kind == "hook")
}

/// Returns the text of an assertion.
pub(super) fn text(finding: &Finding) -> &str {
    finding.title.as_deref().unwrap_or(&finding.id)
}

/// Returns `grading.json`, in the order of the suite, or `null` if the trial was not graded.
pub(super) fn grading(record: &TrialRecord) -> Value {
    let count = |status: Status| assertions(record).filter(|finding| finding.status == status).count();
    let (passed, failed, skipped) = (count(Status::Met), count(Status::Unmet), count(Status::Undecided));
    json!({
        "assertion_results": assertions(record).map(assertion).collect::<Vec<Value>>(),
        "summary": {
            "passed": passed,
            "failed": failed,
            "skipped": skipped,
            "total": passed + failed + skipped,
            "pass_rate": pass_rate(passed, failed),
        },
    })
}

/// Returns the pass rate among decided assertions; `None` if there are none.
pub(super) fn pass_rate(passed: usize, failed: usize) -> Option<f64> {
    (passed + failed > 0).then(|| passed as f64 / (passed + failed) as f64)
}

fn assertion(finding: &Finding) -> Value {
    let mut evidence = finding.reason.clone();
    for line in &finding.evidence {
        evidence.push('\n');
        evidence.push_str(line);
    }
    json!({
        "text": text(finding),
        "passed": finding.status == Status::Met,
        "evidence": evidence,
        "method": method(finding),
        "skipped": finding.status == Status::Undecided,
        "id": finding.id,
    })
}

fn method(finding: &Finding) -> String {
    match finding.kind.as_str() {
        _ if finding.judged => "llm".to_owned(),
        "hook" => "hook".to_owned(),
        _ if finding.is_about_budget() => "budget".to_owned(),
        "side_effect_contract" => "side-effect-contract".to_owned(),
        kind if STRUCTURED.contains(&kind) => format!("structured:{kind}"),
        _ => "deterministic".to_owned(),
    }
}

/// Returns `pre_state.json` and `post_state.json`; every field is `null` if the repository was not inspected.
pub(super) fn states(change: Option<&RepositoryChange>) -> [Value; 2] {
    [change.map(|change| &change.before), change.map(|change| &change.after)].map(state)
}

fn state(state: Option<&RepositoryState>) -> Value {
    let Some(state) = state else {
        return json!({
            "local_branches": null, "remote_branches": null, "current_branch": null, "head_sha": null,
            "commit_count": null, "commits": null, "remote_names": null, "open_prs": null, "branch_heads": null,
            "remote_branch_heads": null, "commit_shas": null, "status_porcelain": null, "changed_files": null,
        });
    };
    let remotes = || state.remotes.values();
    let heads: std::collections::BTreeMap<&String, &String> =
        remotes().filter_map(|remote| remote.branches.as_ref()).flatten().collect();
    // If one remote could not be queried, the whole list is unknown rather than empty.
    let all_known = remotes().all(|remote| remote.branches.is_some());
    let requests: Vec<Value> = remotes()
        .filter_map(|remote| remote.review_requests.as_ref())
        .flatten()
        .map(|request| {
            json!({
                "number": request.number, "headRefName": request.head, "baseRefName": request.base, "url": request.url,
                "state": if request.open { "OPEN" } else { "CLOSED" },
            })
        })
        .collect();
    let asked = remotes().any(|remote| remote.review_requests.is_some());
    let commits: Vec<String> = state
        .recent_commits
        .iter()
        .take(20)
        .map(|commit| format!("{} {}", short(&commit.sha), commit.subject))
        .collect();
    json!({
        "local_branches": state.branches.keys().collect::<Vec<_>>(),
        "remote_branches": all_known.then(|| heads.keys().collect::<Vec<_>>()),
        "current_branch": state.branch.as_deref().or(state.head.as_ref().map(|_| "HEAD")),
        "head_sha": state.head,
        "commit_count": state.commit_count,
        "commits": commits,
        "remote_names": state.remotes.keys().collect::<Vec<_>>(),
        "open_prs": asked.then_some(requests),
        "branch_heads": state.branches,
        "remote_branch_heads": all_known.then_some(heads),
        "commit_shas": state.recent_commits.iter().map(|commit| &commit.sha).collect::<Vec<_>>(),
        "status_porcelain": state.status,
        "changed_files": state.status.iter().map(|line| line.get(3..).unwrap_or(line)).collect::<Vec<_>>(),
    })
}

fn short(sha: &str) -> &str {
    sha.get(..7).unwrap_or(sha)
}

/// Returns `post_grade_hooks.json`.
pub(super) fn hooks(records: &[HookRecord]) -> Value {
    records.iter().map(hook).collect()
}

fn hook(record: &HookRecord) -> Value {
    let mut value = json!({
        "command": record.command,
        "exit_code": record.exit_code,
        "stdout": record.stdout,
        "stderr": record.stderr,
        "timed_out": record.timed_out,
    });
    if let Some(error) = &record.error {
        value["error"] = json!(error);
    }
    value
}
