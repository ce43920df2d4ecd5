//! Progress of a run: finished trials, failures, cost, remaining time, and the trials that take longest.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use model::{Envelope, Event, RunInfo, Summary, TrialRecord};

use super::{Paint, doing};
use crate::format::{between, money, number, span};
use crate::names::Names;

/// Maximum number of running trials that are named.
const NAMED: usize = 2;
/// Remaining time in milliseconds above which it is rounded to minutes.
const ROUGH: u64 = 10 * 60 * 1000;

/// State of a run in progress. Times come from events or from the caller.
pub(super) struct Progress {
    paint: Paint,
    names: Names,
    planned: usize,
    /// True if the results decide how many planned trials run.
    is_sequential: bool,
    jobs: usize,
    finished: usize,
    /// Results and usage of the finished trials, including all their attempts.
    summary: Summary,
    /// True if the cost of an agent, a judge or a simulated user is unknown.
    is_cost_partial: bool,
    /// Number of trials in which an agent ran, and the sum of their durations in milliseconds.
    timed: (u64, u64),
    running: HashMap<Arc<str>, RunningTrial>,
}

/// Trial in progress.
pub(super) struct RunningTrial {
    pub(super) name: String,
    pub(super) since: Timestamp,
    /// Description of what the agent is doing or waiting for; empty at first.
    pub(super) activity: String,
}

impl Progress {
    pub(super) fn new(paint: Paint, names: Names, info: &RunInfo) -> Self {
        Self {
            paint,
            names,
            planned: info.trials.len(),
            is_sequential: info.decisions > 0,
            jobs: info.jobs,
            finished: 0,
            summary: Summary::default(),
            is_cost_partial: false,
            timed: (0, 0),
            running: HashMap::new(),
        }
    }

    pub(super) fn event(&mut self, envelope: &Envelope) {
        if let Event::Decided(decision) = &envelope.event {
            self.planned = self.planned.saturating_sub(usize::try_from(decision.spared).unwrap_or(usize::MAX));
        }
        let Some(trial) = &envelope.trial else { return };
        match &envelope.event {
            Event::TrialStarted { id, .. } => {
                let running = RunningTrial { name: self.names.of_id(id), since: envelope.at, activity: String::new() };
                self.running.insert(Arc::clone(trial), running);
            }
            Event::Waiting { on } => self.set_activity(trial, on.clone()),
            Event::SandboxReady { .. } => self.set_activity(trial, "agent".to_owned()),
            Event::Step(step) => {
                if let Some(doing) = doing(step, &self.paint) {
                    self.set_activity(trial, doing);
                }
            }
            Event::TrialFinished(record) => {
                self.running.remove(trial);
                self.finish(record);
            }
            _ => {}
        }
    }

    /// Returns `true` if all trials are finished.
    pub(super) fn is_over(&self) -> bool {
        self.finished >= self.planned
    }

    /// Returns a trial in progress.
    pub(super) fn running(&self, trial: &str) -> Option<&RunningTrial> {
        self.running.get(trial)
    }

    /// Returns at most `most` running trials with their ids, longest-running first.
    pub(super) fn oldest(&self, most: usize) -> Vec<(&Arc<str>, &RunningTrial)> {
        let mut running: Vec<_> = self.running.iter().collect();
        running.sort_by(|(_, one), (_, other)| (one.since, &one.name).cmp(&(other.since, &other.name)));
        running.truncate(most);
        running
    }

    fn set_activity(&mut self, trial: &str, activity: String) {
        if let Some(running) = self.running.get_mut(trial) {
            running.activity = activity;
        }
    }

    fn finish(&mut self, record: &TrialRecord) {
        self.finished += 1;
        self.summary.add(record);
        let mut auxiliary = [record.judge, record.user].into_iter().flatten();
        self.is_cost_partial |= auxiliary.any(|usage| usage.cost_usd.is_none());
        if !record.outcome.is_excluded() {
            self.is_cost_partial |= record.attempts.iter().any(|attempt| attempt.cost_usd.is_none());
            self.timed = (self.timed.0 + 1, self.timed.1 + record.duration_ms);
        }
    }

    /// Formats the progress: `12/40 trials · 9 passed · 3 failed · 2 running · $1.2000 · about 4m left`.
    pub(super) fn describe(&self, now: Timestamp) -> String {
        let mut parts = vec![match self.is_sequential {
            true => format!("{} of at most {} trials", self.finished, self.planned),
            false => format!("{}/{} trials", self.finished, self.planned),
        }];
        for (outcome, count) in self.summary.by_outcome.occurring() {
            parts.push(self.paint.as_outcome(outcome, &format!("{count} {}", outcome.name())));
        }
        parts.extend((!self.running.is_empty()).then(|| format!("{} running", self.running.len())));
        parts.extend(self.cost());
        parts.extend(self.remaining_ms(now).map(|ms| format!("about {} left", span(ms))));
        let is_partial = self.summary.partly_known(self.summary.trials_with_tokens).is_some();
        let unknown = if is_partial { "+" } else { "" };
        parts.extend(self.summary.tokens.map(|tokens| format!("{}{unknown} tokens", number(tokens.total()))));
        self.paint.join(&parts)
    }

    /// Formats the cost of agents, judges and simulated users as `$1.2000`, and as `$1.2000+` if a part is unknown.
    fn cost(&self) -> Option<String> {
        let Summary { cost_usd, judge, user, .. } = &self.summary;
        let auxiliary = [judge, user].into_iter().flatten().filter_map(|usage| usage.cost_usd);
        let cost = cost_usd.iter().copied().chain(auxiliary).reduce(|sum, cost| sum + cost);
        let unknown = if self.is_cost_partial { "+" } else { "" };
        match cost {
            Some(cost) => Some(format!("{}{unknown}", money(cost))),
            None => self.is_cost_partial.then(|| "cost unknown".to_owned()),
        }
    }

    /// Names the longest-running trials: `longest: a#1 2m5s (Bash "npm test"), b#1 10s`. `None` if none is running.
    pub(super) fn longest(&self, now: Timestamp) -> Option<String> {
        let named: Vec<String> = self.oldest(NAMED).into_iter().map(|(_, trial)| trial.describe(now)).collect();
        (!named.is_empty()).then(|| format!("longest: {}", named.join(", ")))
    }

    /// Returns the estimated time until all trials are done, in whole seconds or minutes, from the average duration of
    /// a trial; `None` while that is unknown, if less than a second remains, or if the results decide how many run.
    fn remaining_ms(&self, now: Timestamp) -> Option<u64> {
        if self.is_sequential {
            return None;
        }
        let (count, sum) = self.timed;
        let mean = sum.checked_div(count)?;
        let running = self.running.values().map(|trial| mean.saturating_sub(between(trial.since, now)));
        let (left_of_running, longest) = running.fold((0, 0), |(sum, most), left| (sum + left, left.max(most)));
        let waiting = self.planned.saturating_sub(self.finished + self.running.len());
        let workers = self.jobs.clamp(1, (waiting + self.running.len()).max(1)) as u64;
        let remaining = ((waiting as u64 * mean + left_of_running) / workers).max(longest);
        let unit = if remaining < ROUGH { 1000 } else { 60_000 };
        Some(remaining.next_multiple_of(unit)).filter(|_| remaining >= 1000)
    }
}

impl RunningTrial {
    fn describe(&self, now: Timestamp) -> String {
        let activity = if self.activity.is_empty() { String::new() } else { format!(" ({})", self.activity) };
        format!("{} {}{activity}", self.name, span(between(self.since, now)))
    }
}
