//! The index: everything that the overview of the page shows.

use std::path::Path;

use model::{Finding, Outcome, RunInfo, Status, TrialRecord};
use serde::Serialize;
use serde_json::{Value, json};

use crate::decisions;
use crate::finished::FinishedTrial;
use crate::json::{arm, delta};
use crate::names::is_skill;
use crate::totals::{self, RunTotals};
use crate::verdict;

/// Maximum number of pass rates that get a sentence.
const PASS_RATES: usize = 5;

/// Everything that the overview shows.
#[derive(Serialize)]
pub(super) struct Index<'a> {
    run: Value,
    /// Sentences about the result, the most important first.
    verdicts: Vec<String>,
    /// Sentences about the required pass rates, the most urgent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pass_rates: Vec<String>,
    arms: Vec<Value>,
    deltas: Vec<Value>,
    trials: Vec<&'a Row>,
    /// Progress of the run, if a server shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<Value>,
}

/// A finished trial in the list of all trials.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) id: String,
    suite: String,
    case: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    arm: String,
    repetition: u64,
    pub(super) outcome: Outcome,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    baseline: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flaky: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    quarantined: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// Numbers of assertions that are met, unmet and undecided. Implicit ones count only if they are not met.
    checks: [usize; 3],
    ms: u64,
    tokens: Option<u64>,
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
}

impl<'a> Index<'a> {
    pub(super) fn new(
        info: &RunInfo,
        totals: &RunTotals,
        duration_ms: Option<u64>,
        signal: Option<&str>,
        trials: Vec<&'a Row>,
    ) -> Self {
        let arms = totals.arms();
        let mut verdicts: Vec<String> = arms.verdicts().collect();
        if verdicts.is_empty() {
            let is_alone = arms.arms.len() == 1;
            let named = |name: &str, text: String| if is_alone { text } else { format!("{name}: {text}") };
            verdicts.extend(arms.arms.iter().map(|arm| named(&arm.arm, verdict::passed_sentence(&arm.statistics))));
        }
        let (summary, result) = (totals.summary(), totals.verdict(signal));
        Self {
            run: json!({
                "id": info.id,
                "label": info.label,
                "regrade_of": info.regrade_of,
                "started_at": info.started_at,
                "duration_ms": duration_ms,
                "planned": info.trials.len(),
                "shard": info.shard.as_ref().map(totals::shard),
                "trialrun_version": info.trialrun_version,
                "agents": info.agents,
                "skills": info.skills.iter().filter(|skill| is_skill(&skill.name)).collect::<Vec<_>>(),
                "settings": info.settings,
                "result": result.word,
                "because": result.reason,
                "tokens": summary.tokens.map(|tokens| tokens.total()),
                "lacks_tokens": summary.partly_known(summary.trials_with_tokens).is_some(),
                "cost_usd": summary.cost_usd,
                "lacks_cost": summary.partly_known(summary.trials_with_cost).is_some(),
                "baseline_cost_usd": summary.baseline_cost_usd,
                "judge_cost_usd": summary.judge.and_then(|judge| judge.cost_usd),
            }),
            verdicts,
            pass_rates: decisions::most_urgent(&arms.decisions, PASS_RATES),
            arms: arms.arms.iter().map(arm).collect(),
            deltas: arms.deltas.iter().map(|one| without_cases(delta(one, !arms.is_sequential))).collect(),
            trials,
            live: None,
        }
    }

    /// Returns the word for the result of the run, and its reason.
    pub(super) fn result(&self) -> (&str, &str) {
        let field = |name: &str| self.run.get(name).and_then(Value::as_str).unwrap_or_default();
        (field("result"), field("because"))
    }

    /// Returns the sentences about the result and about required pass rates.
    pub(super) fn sentences(&self) -> impl Iterator<Item = &str> {
        self.verdicts.iter().chain(&self.pass_rates).map(String::as_str)
    }

    /// Returns the trials that count and did not pass, the most serious ones first.
    pub(super) fn open_trials(&self) -> impl Iterator<Item = &Row> {
        let is_open = |row: &&&Row| {
            !row.baseline && !row.quarantined && !matches!(row.outcome, Outcome::Passed | Outcome::Skipped)
        };
        let mut open: Vec<&Row> = self.trials.iter().filter(is_open).copied().collect();
        open.sort_by_key(|row| row.outcome.rank());
        open.into_iter()
    }

    /// Adds the progress of a run, for a page that a server sends.
    pub(super) fn live(self, live: Value) -> Self {
        Self { live: Some(live), ..self }
    }
}

/// Removes the cases of a delta, because the page already has their trials.
fn without_cases(mut delta: Value) -> Value {
    if let Some(fields) = delta.as_object_mut() {
        fields.shift_remove("by_case");
    }
    delta
}

impl Row {
    pub(super) fn new(record: &TrialRecord, folder: &Path) -> Self {
        let trial = FinishedTrial::from_record(record, folder);
        let count = |status: Status| {
            let counts = |finding: &&Finding| !finding.implicit || finding.status != Status::Met;
            record.findings.iter().filter(counts).filter(|finding| finding.status == status).count()
        };
        let place = trial.place;
        Self {
            id: record.id.to_string(),
            suite: record.suite.to_string(),
            case: record.case.to_string(),
            title: record.title.clone(),
            arm: record.arm.to_string(),
            repetition: record.repetition,
            outcome: record.outcome,
            baseline: trial.is_baseline,
            flaky: record.flaky,
            quarantined: record.quarantine.is_some(),
            reason: trial.reason,
            line: place.as_ref().and_then(|place| place.line),
            file: place.map(|place| place.file),
            checks: [Status::Met, Status::Unmet, Status::Undecided].map(count),
            ms: record.agent_ms.unwrap_or(record.duration_ms),
            tokens: trial.tokens,
            cost: trial.cost_usd,
            tags: record.tags.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_know_every_outcome() {
        let (data, main) = (include_str!("data.js"), include_str!("main.js"));
        for outcome in Outcome::ALL {
            assert!(data.contains(&format!("\n  {}: {{ sign: ", outcome.name())), "{}", outcome.name());
            assert!(main.contains(&format!("{}, ", outcome.name())), "{}", outcome.name());
        }
    }
}
