//! Files about a run: `suite.json`, `benchmark.json`, `summary.json` and `cleanup.json`. Names and meanings follow
//! agent-skill-eval; unknown values are `null`, never 0.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::statistics::{ArmStatistics, Delta, Observation};
use model::{
    DecisionRecord, Estimate, Forge, ForgeKind, HookKind, HookRecord, Outcome, OutcomeCounts, RunInfo, SideEffects,
    Status, Tokens, TrialRecord, WITH_SKILL, WITHOUT_SKILL,
};
use serde_json::{Map, Value, json};

use super::TrialFolder;
use super::trial::{assertions, budget_reason, iteration, pass_rate, text, with_skill};

/// Summary of a finished trial.
#[derive(Debug, Clone)]
pub(super) struct TrialResult {
    trial: Arc<str>,
    case: Arc<str>,
    agent: String,
    model: Option<String>,
    variant: Option<String>,
    with_skill: bool,
    /// True if the case is in quarantine, so that no figure counts the trial.
    quarantined: bool,
    repetition: u64,
    outcome: Outcome,
    reason: Option<String>,
    observation: Observation<(Arc<str>, Arc<str>)>,
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
    failed: Vec<String>,
    pass_rate: Option<f64>,
    pub(super) budget: Option<String>,
    side_effects: Vec<SideEffects>,
    sandbox: Option<String>,
}

impl TrialResult {
    pub(super) fn from_record(record: &TrialRecord) -> Self {
        let count = |status: Status| assertions(record).filter(|finding| finding.status == status).count();
        // As in agent-skill-eval, the last attempt counts.
        let own = Observation { pass_rate: record.met_share(), ..Observation::from_record(record) };
        Self {
            trial: record.id.clone(),
            case: record.case.clone(),
            agent: record.agent.clone(),
            model: record.model.clone(),
            variant: record.variant.clone(),
            with_skill: with_skill(record),
            quarantined: record.quarantine.is_some(),
            repetition: record.repetition,
            outcome: record.outcome,
            reason: record.reason.clone(),
            observation: own.of_case((record.suite.clone(), record.case.clone())),
            tokens: record.usage,
            cost_usd: record.cost_usd,
            failed: assertions(record)
                .filter(|finding| finding.status == Status::Unmet)
                .map(|finding| text(finding).to_owned())
                .collect(),
            pass_rate: pass_rate(count(Status::Met), count(Status::Unmet)),
            budget: budget_reason(record),
            side_effects: record.side_effects.clone(),
            sandbox: record.sandbox.clone(),
        }
    }

    fn identity(&self) -> Value {
        json!({ "eval_id": self.case, "agent": self.agent, "with_skill": self.with_skill, "run_index": self.repetition,
                "trial": self.trial })
    }
}

/// Finished trials of a run, in the order in which they finished.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) trials: Vec<TrialResult>,
    pub(super) hooks: Vec<HookRecord>,
    /// Decisions about the number of trials.
    pub(super) decisions: Vec<DecisionRecord>,
    /// True if the results decided how many trials ran. There are no intervals and p-values then.
    pub(super) is_sequential: bool,
    pub(super) duration_ms: Option<u64>,
    pub(super) signal: Option<String>,
}

/// Returns `suite.json`: the run's plan and the paths of its files.
pub(super) fn suite(info: &RunInfo, folders: &[TrialFolder], record: &str) -> Value {
    let setting = |name: &str| info.settings.get(name).cloned().unwrap_or(Value::Null);
    let ids: BTreeSet<&str> = info.trials.iter().map(|trial| &*trial.case).collect();
    let suites: BTreeSet<&str> = info.trials.iter().map(|trial| &*trial.suite).collect();
    json!({
        "schema": "trialrun.artifacts/1",
        "skill_name": one_skill(info),
        "skill_hash": if info.skills.len() == 1 { json!(info.skills[0].content_hash) } else { Value::Null },
        "skills": info.skills,
        "suites": suites,
        "source_repo": setting("source_repo"),
        "selected_eval_ids": ids,
        "run_id": info.id,
        "record": record,
        "iteration": iteration(info),
        "started_at": info.started_at,
        "harness_version": info.trialrun_version,
        "agents": info.agents,
        "settings": info.settings,
        "trials": folders.iter().map(|folder| json!({ "trial": folder.trial, "path": folder.path })).collect::<Vec<_>>(),
    })
}

/// Returns the skill under test, if there is exactly one.
pub(super) fn one_skill(info: &RunInfo) -> Option<&str> {
    match info.skills.as_slice() {
        [skill] => Some(&skill.name),
        _ => None,
    }
}

impl Results {
    /// Returns the trials that count: those of cases that are not in quarantine.
    fn counted(&self) -> impl Iterator<Item = &TrialResult> {
        self.trials.iter().filter(|trial| !trial.quarantined)
    }

    /// Returns the trials that count of each configuration, by its name: `AGENT_with_skill`, with the model if an agent
    /// has several.
    fn configurations(&self) -> BTreeMap<String, Vec<&TrialResult>> {
        let mut models: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
        for trial in &self.trials {
            models.entry(&trial.agent).or_default().insert(trial.model.as_deref());
        }
        let mut all: BTreeMap<String, Vec<&TrialResult>> = BTreeMap::new();
        for trial in self.counted() {
            let has_several = models.get(trial.agent.as_str()).is_some_and(|models| models.len() > 1);
            let mut name = trial.agent.clone();
            if let Some(model) = trial.model.as_ref().filter(|_| has_several) {
                name.push(':');
                name.push_str(model);
            }
            if let Some(variant) = &trial.variant {
                name.push('_');
                name.push_str(variant);
            }
            all.entry(name).or_default().push(trial);
        }
        all
    }

    /// Returns `benchmark.json`.
    pub(super) fn benchmark(&self) -> Value {
        let all = self.configurations();
        let summary: Map<String, Value> =
            all.iter().map(|(name, trials)| (name.clone(), figures(trials, !self.is_sequential))).collect();
        let mut deltas = Map::new();
        for (name, with) in &all {
            let Some(agent) = name.strip_suffix(WITH_SKILL).and_then(|front| front.strip_suffix('_')) else { continue };
            let Some(without) = all.get(&format!("{agent}_{WITHOUT_SKILL}")) else { continue };
            let delta = Delta::between(&in_both_arms(with), &in_both_arms(without));
            deltas.insert(agent.to_owned(), delta_figures(&delta, !self.is_sequential));
        }
        let only = if deltas.len() == 1 { deltas.values().next().cloned() } else { None };
        json!({ "run_summary": summary, "deltas": deltas, "delta": only })
    }

    /// Returns `summary.json`.
    pub(super) fn summary(&self, info: &RunInfo, is_over: bool) -> Value {
        let all = self.configurations();
        let rates: Map<String, Value> = all
            .iter()
            .map(|(name, trials)| (name.clone(), json!(statistics(trials).pass_rate.map(|rate| rate.mean))))
            .collect();
        let agents: BTreeSet<&str> = info.agents.iter().map(|agent| agent.name.as_str()).collect();
        let ids: BTreeSet<&str> = info.trials.iter().map(|trial| &*trial.case).collect();
        let of = |is_meant: fn(Outcome) -> bool| self.counted().filter(move |trial| is_meant(trial.outcome));
        let failed: Vec<Value> = of(|outcome| outcome == Outcome::Failed)
            .map(|trial| {
                let mut value = trial.identity();
                value["pass_rate"] = json!(trial.pass_rate);
                value["failed_assertions"] = json!(trial.failed);
                value
            })
            .collect();
        let errors: Vec<Value> =
            of(Outcome::is_error).map(|trial| json!({ "run": trial.trial, "error": trial.reason })).collect();
        let skipped: Vec<Value> =
            of(Outcome::is_excluded).map(|trial| json!({ "run": trial.trial, "reason": trial.reason })).collect();
        let mut summary = json!({
            "skill_name": one_skill(info),
            "iteration": iteration(info),
            "run_id": info.id,
            "finished": is_over,
            "signal": self.signal,
            "agents": agents,
            "eval_ids": ids,
            "runs_per_case": info.trials.iter().map(|trial| trial.repetition).max(),
            "with_baseline": info.trials.iter().any(model::TrialId::is_baseline),
            "duration_seconds": self.duration_ms.map(|ms| rounded(ms as f64 / 1000.0, 1)),
            "pass_rates": rates,
            "runs_completed": of(Outcome::is_graded).count(),
            "runs_failed_grading": failed.len(),
            "failed_runs": failed,
            "decisions": self.decisions,
            "errors": errors,
            "skipped_runs": skipped,
            "tokens": self.tokens(),
            "cost": self.cost(),
            "cleanup": {
                "remote_branches": self.left().iter().map(|left| left.branches.len()).sum::<usize>(),
                "pr_numbers": self.left().iter().map(|left| left.review_requests.len()).sum::<usize>(),
                "workspaces": self.trials.iter().filter(|trial| trial.sandbox.is_some()).count(),
            },
            "hooks": self.hook_results(),
        });
        if let Some(budget) = self.budget(info) {
            summary["budget"] = budget;
        }
        let quarantined = self.trials.iter().filter(|trial| trial.quarantined).map(|trial| {
            let mut value = trial.identity();
            value["outcome"] = json!(trial.outcome);
            value
        });
        let quarantined: Vec<Value> = quarantined.collect();
        if !quarantined.is_empty() {
            summary["quarantined_runs"] = Value::Array(quarantined);
        }
        summary
    }

    fn tokens(&self) -> Value {
        let mut sum: Option<Tokens> = None;
        for tokens in self.trials.iter().filter_map(|trial| trial.tokens) {
            *sum.get_or_insert_default() += tokens;
        }
        let share = sum.filter(|sum| sum.all_input() > 0).map(|sum| sum.cache_read as f64 / sum.all_input() as f64);
        json!({
            "input": sum.map(|sum| sum.all_input()),
            "cached": sum.map(|sum| sum.cache_read),
            "non_cached_input": sum.map(|sum| sum.input + sum.cache_write),
            "output": sum.map(|sum| sum.output),
            "reasoning_output": sum.and_then(|sum| sum.reasoning),
            "total": sum.map(|sum| sum.total()),
            "cached_pct": share.map(|share| rounded(share, 4)),
        })
    }

    fn cost(&self) -> Value {
        let known: Vec<f64> = self.trials.iter().filter_map(|trial| trial.cost_usd).collect();
        json!({
            "total_usd": (!known.is_empty()).then(|| rounded(known.iter().sum(), 6)),
            "runs_with_cost": known.len(),
            "runs_total": self.trials.len(),
        })
    }

    /// Returns the configured limits and the trials that exceeded one; `None` if there are no limits.
    fn budget(&self, info: &RunInfo) -> Option<Value> {
        let limit = |name: &str| info.settings.get(name).filter(|value| !value.is_null()).cloned();
        let names = [
            ("max_input_tokens", "max_input_tokens_per_case"),
            ("max_non_cached_input_tokens", "max_non_cached_input_tokens_per_case"),
            ("max_output_tokens", "max_output_tokens_per_case"),
            ("max_reasoning_tokens", "max_reasoning_tokens_per_case"),
            ("token_budget", "max_total_tokens_per_case"),
            ("max_cost_usd", "max_cost_per_case"),
        ];
        let mut budget: Map<String, Value> =
            names.into_iter().filter_map(|(ours, theirs)| Some((theirs.to_owned(), limit(ours)?))).collect();
        if let Some(ms) = limit("max_duration_ms").and_then(|value| value.as_f64()) {
            budget.insert("max_duration_per_case".to_owned(), json!(ms / 1000.0));
        }
        if budget.is_empty() {
            return None;
        }
        let over = self.trials.iter().filter_map(|trial| {
            let mut value = trial.identity();
            value["reason"] = json!(trial.budget.as_ref()?);
            Some(value)
        });
        budget.insert("action".to_owned(), limit("on_budget").unwrap_or(Value::Null));
        budget.insert("exceeded_runs".to_owned(), over.collect());
        Some(Value::Object(budget))
    }

    fn hook_results(&self) -> Value {
        let mut all = Map::new();
        for (kind, name) in [(HookKind::PreRun, "pre_run"), (HookKind::PostRun, "post_run")] {
            let of_kind = self.hooks.iter().filter(|record| record.hook == kind);
            let results: Vec<Value> = of_kind
                .map(|record| {
                    json!({ "command": record.command, "exit_code": record.exit_code, "timed_out": record.timed_out })
                })
                .collect();
            if !results.is_empty() {
                all.insert(name.to_owned(), Value::Array(results));
            }
        }
        Value::Object(all)
    }

    /// Returns the side effects of all trials, by remote.
    fn left(&self) -> Vec<SideEffects> {
        merged(self.trials.iter().flat_map(|trial| &trial.side_effects))
    }

    /// Returns `cleanup.json`.
    pub(super) fn cleanup(&self, info: &RunInfo) -> Value {
        let left = self.left();
        let source = info.settings.get("source_repo").and_then(Value::as_str);
        let forge = source.and_then(Forge::of);
        let of_source = |kind: ForgeKind| -> Vec<u64> {
            let is_kind = |left: &&SideEffects| Forge::of(&left.remote).is_some_and(|forge| forge.kind == kind);
            left.iter().filter(is_kind).flat_map(|left| left.review_requests.clone()).collect()
        };
        let mut value = Map::new();
        if let Some(source) = source {
            value.insert("source_repo".into(), json!(source));
        }
        if let Some(forge) = &forge {
            let provider = forge.kind.name().to_lowercase();
            value.insert("source_repo_provider".into(), json!(provider));
            value.insert("source_repo_project".into(), json!(forge.project));
            if forge.kind == ForgeKind::GitHub {
                value.insert("source_repo_slug".into(), json!(forge.project));
            }
        }
        let branches: BTreeSet<&String> = left.iter().flat_map(|left| &left.branches).collect();
        value.insert("remote_branches".into(), json!(branches));
        value.insert("pr_numbers".into(), json!(of_source(ForgeKind::GitHub)));
        value.insert("merge_request_numbers".into(), json!(of_source(ForgeKind::GitLab)));
        let workspaces: Vec<&String> = self.trials.iter().filter_map(|trial| trial.sandbox.as_ref()).collect();
        value.insert("workspaces".into(), json!(workspaces));
        value.insert("side_effects".into(), json!(left));
        Value::Object(value)
    }

    /// Returns the fields of `suite_finished`.
    pub(super) fn tally(&self) -> Value {
        let counts = OutcomeCounts::of(self.counted().map(|trial| trial.outcome));
        json!({
            "completed": counts.sum(Outcome::is_graded),
            "failed_grading": counts.failed,
            "errors": counts.sum(Outcome::is_error),
            "skipped": counts.sum(Outcome::is_excluded),
        })
    }
}

/// Merges the side effects in `left` by remote. A remote counts as added if any of them added it.
pub fn merged<'a>(left: impl IntoIterator<Item = &'a SideEffects>) -> Vec<SideEffects> {
    let mut all: BTreeMap<&str, SideEffects> = BTreeMap::new();
    for left in left {
        let entry = all.entry(&left.remote).or_insert_with(|| SideEffects {
            remote: left.remote.clone(),
            added: left.added,
            ..SideEffects::default()
        });
        entry.added |= left.added;
        entry.branches.extend(left.branches.iter().cloned());
        entry.review_requests.extend(&left.review_requests);
        entry.commits.extend(left.commits.clone());
    }
    let sorted = all.into_values().map(|mut left| {
        left.branches.sort();
        left.branches.dedup();
        left.review_requests.sort_unstable();
        left.review_requests.dedup();
        left
    });
    sorted.collect()
}

/// Returns the graded trials.
fn observations<'a>(trials: &[&'a TrialResult]) -> Vec<Observation<&'a (Arc<str>, Arc<str>)>> {
    let observations = trials.iter().map(|trial| trial.observation.clone().of_case(&trial.observation.case));
    observations.filter(Observation::is_graded).collect()
}

/// Returns the observations by the assertions that both the arm with the skill and the one without can meet.
fn in_both_arms<'a>(trials: &[&'a TrialResult]) -> Vec<Observation<&'a (Arc<str>, Arc<str>)>> {
    observations(trials).into_iter().map(Observation::in_both_arms).collect()
}

fn statistics(trials: &[&TrialResult]) -> ArmStatistics {
    ArmStatistics::of(&observations(trials))
}

/// Returns the figures of a configuration. In the terms of agent-skill-eval, rates leave out undecided assertions: a
/// trial has passed if all others are met.
fn figures(trials: &[&TrialResult], is_fixed: bool) -> Value {
    let arm = statistics(trials);
    let decided: Vec<_> = observations(trials).into_iter().map(Observation::without_undecided).collect();
    let rates = ArmStatistics::of(&decided);
    let estimate = |estimate: Option<Estimate>| {
        // In this file, a single run has always had the deviation 0.
        let stddev = |it: &Estimate| it.stddev.unwrap_or(0.0);
        estimate.map(|it| json!({ "mean": it.mean, "stddev": stddev(&it), "ci95": it.ci95.filter(|_| is_fixed) }))
    };
    let (pass_at_k, pass_hat_k) = rates.at_k().unzip();
    json!({
        "runs": arm.trials,
        "pass_rate": estimate(arm.pass_rate),
        "time_seconds": estimate(arm.duration_s),
        "tokens": estimate(arm.tokens),
        "cost_usd": estimate(arm.cost_usd),
        "cost_runs": arm.trials_with_cost,
        "full_pass_rate": rates.full_pass_rate.and_then(|rate| rate.mean),
        "pass_at_k": pass_at_k.and_then(|point| point.value),
        "pass_hat_k": pass_hat_k.and_then(|point| point.value),
        "k": rates.k,
    })
}

fn delta_figures(delta: &Delta, is_fixed: bool) -> Value {
    let tested = delta.pass_rate.filter(|_| is_fixed);
    json!({
        "pass_rate": delta.pass_rate.map(|difference| difference.mean),
        "time_seconds": delta.duration_s.map(|difference| difference.mean),
        "tokens": delta.tokens.map(|difference| difference.mean),
        "cost_usd": delta.cost_usd.map(|difference| difference.mean),
        "pass_rate_ci95": tested.and_then(|difference| difference.ci95),
        "pass_rate_p_value": tested.map(|difference| difference.p_value),
        "cases_paired": delta.cases_paired,
        "cases_unpaired": delta.cases_unpaired,
    })
}

/// Rounds `value` to `decimals` decimals.
pub(super) fn rounded(value: f64, decimals: i32) -> f64 {
    let by = 10_f64.powi(decimals);
    (value * by).round() / by
}
