//! Runs trials until the questions about them are answered. After each result, every open question is evaluated. The
//! next trial goes to the question that is closest to its answer, relative to the cost.
//!
//! The tests in `model::statistics` stay valid no matter how the next trial is chosen and when the run stops.

mod group;
mod question;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use model::statistics::{OpenDecision, SIGNIFICANCE, next_trial};
use model::{Answer, DecisionQuestion, DecisionRecord, Outcome, StopReason, TrialRecord};

use self::group::Group;
use self::question::Question;
use crate::plan::{PlannedDecision, PlannedTrial, TrialResult};

/// Trials whose number is not fixed, and the questions that decide how many of them run.
#[derive(Default)]
pub(crate) struct Sequential {
    groups: Vec<Group>,
    /// Position of each group, by suite, case and arm.
    places: HashMap<[Arc<str>; 3], usize>,
    questions: Vec<Question>,
    /// Trials that start next, each with its group.
    next: VecDeque<(usize, PlannedTrial)>,
    /// True if recorded trials are being regraded.
    is_recorded: bool,
}

impl Sequential {
    /// Creates the state for a run. `earlier` are the results of a run that is resumed, and `trials` are in plan order.
    /// If these results already answer questions, [`Sequential::answered`] returns them.
    pub(crate) fn new(trials: Vec<PlannedTrial>, decisions: Vec<PlannedDecision>, earlier: &[TrialResult]) -> Self {
        let mut sequential = Self::default();
        for (position, trial) in trials.into_iter().enumerate() {
            let is_baseline = trial.is_baseline();
            let index = sequential.index_of(trial.group());
            let group = &mut sequential.groups[index];
            group.is_baseline = is_baseline;
            group.waiting.push_back((position, trial));
        }
        for result in earlier {
            let index = sequential.index_of(result.group.clone());
            let group = &mut sequential.groups[index];
            group.started += 1;
            group.add(result);
        }
        sequential.ask(decisions);
        sequential
    }

    /// Creates the state for regrading recorded trials. No trial starts, and required pass rates are evaluated again
    /// with the new results. Other questions are not asked again.
    pub(crate) fn of_recorded(trials: &[&TrialRecord]) -> Self {
        let mut decisions: Vec<PlannedDecision> = Vec::new();
        let mut known: HashSet<[&str; 3]> = HashSet::new();
        for trial in trials {
            let rate = trial.auto_trials.and_then(|auto| Some((auto.most, auto.pass_rate?)));
            let Some((most, rate)) = rate.filter(|_| known.insert([&trial.suite, &trial.case, &trial.arm])) else {
                continue;
            };
            decisions.push(PlannedDecision {
                question: DecisionQuestion::PassRate(rate),
                alpha: SIGNIFICANCE,
                arm: Arc::clone(&trial.arm),
                versus: None,
                cases: vec![(Arc::clone(&trial.suite), Arc::clone(&trial.case))],
                most,
                quarantined: trial.quarantine.is_some(),
            });
        }
        let mut sequential = Self { is_recorded: true, ..Self::default() };
        for decision in &decisions {
            let (suite, case) = &decision.cases[0];
            sequential.index_of([suite, case, &decision.arm].map(Arc::clone));
        }
        sequential.ask(decisions);
        sequential
    }

    /// Adds questions about known groups.
    fn ask(&mut self, decisions: Vec<PlannedDecision>) {
        for decision in decisions {
            let places = |(suite, case): &(Arc<str>, Arc<str>)| {
                let arms = [Some(&decision.arm), decision.versus.as_ref()].into_iter().flatten();
                let index = |arm: &Arc<str>| self.places.get(&[suite, case, arm].map(Arc::clone)).copied();
                arms.map(index).collect::<Option<Vec<usize>>>()
            };
            // A part of the plan may lack cases: for example, `--watch` runs only the suites that changed.
            let cases: Vec<Vec<usize>> = decision.cases.iter().filter_map(places).collect();
            if !cases.is_empty() {
                self.questions.push(Question::new(decision, cases));
            }
        }
    }

    fn index_of(&mut self, key: [Arc<str>; 3]) -> usize {
        let next = self.groups.len();
        let index = *self.places.entry(key).or_insert(next);
        if index == next {
            self.groups.push(Group::default());
        }
        index
    }

    /// Takes the trial that starts next, or `None` if no question needs another trial.
    pub(crate) fn take(&mut self) -> Option<PlannedTrial> {
        if self.next.is_empty() {
            self.choose();
        }
        let (group, trial) = self.next.pop_front()?;
        self.groups[group].started += 1;
        Some(trial)
    }

    /// Chooses the next trial. For a comparison, this is a round: one trial for each case and arm.
    fn choose(&mut self) {
        let has_trials = |question: &&Question| {
            question.is_open && question.groups().any(|index| !self.groups[index].waiting.is_empty())
        };
        let open: Vec<&Question> = self.questions.iter().filter(has_trials).collect();
        let decisions: Vec<OpenDecision> = open.iter().map(|question| question.open_decision(&self.groups)).collect();
        let Some(chosen) = next_trial(&decisions) else { return };
        let groups: Vec<usize> = open[chosen].groups().collect();
        let repetition = |group: &Group| group.waiting.front().map(|(_, trial)| trial.repetition);
        let Some(round) = groups.iter().filter_map(|index| repetition(&self.groups[*index])).min() else { return };
        let mut trials: Vec<(usize, usize, PlannedTrial)> = Vec::new();
        for index in groups {
            let group = &mut self.groups[index];
            if repetition(group) == Some(round)
                && let Some((position, trial)) = group.waiting.pop_front()
            {
                trials.push((position, index, trial));
            }
        }
        // Plan order interleaves the arms.
        trials.sort_by_key(|(position, ..)| *position);
        self.next.extend(trials.into_iter().map(|(_, index, trial)| (index, trial)));
    }

    /// Adds the result of a trial. Returns the questions that this result answered.
    pub(crate) fn finished(&mut self, result: &TrialResult) -> Vec<DecisionRecord> {
        // A cancelled trial has no result, so later trials of its group cannot count.
        let index = self.places.get(&result.group).copied().filter(|_| result.outcome != Outcome::Cancelled);
        let Some(index) = index else { return Vec::new() };
        self.groups[index].add(result);
        self.count(index)
    }

    /// Returns the questions that the earlier part of a resumed run answered.
    pub(crate) fn answered(&mut self) -> Vec<DecisionRecord> {
        (0..self.groups.len()).flat_map(|index| self.count(index)).collect()
    }

    /// Counts the results of a group, and returns the questions that they answered.
    fn count(&mut self, index: usize) -> Vec<DecisionRecord> {
        let mut answered = Vec::new();
        while self.groups[index].advance() {
            answered.extend(self.evaluate(|question| question.groups().any(|group| group == index)));
        }
        answered
    }

    /// Evaluates the open questions for which `concerned` returns `true`.
    fn evaluate(&mut self, concerned: impl Fn(&Question) -> bool) -> Vec<DecisionRecord> {
        let mut answered = Vec::new();
        for at in 0..self.questions.len() {
            let question = &mut self.questions[at];
            if !question.is_open || !concerned(question) {
                continue;
            }
            if let Some(answer) = question.evaluate(&self.groups) {
                answered.push(self.close(at, answer, None));
            }
        }
        answered
    }

    /// Closes all open questions as undecided because of `reason`, so no further trial starts. Trials that did not
    /// start count as spared, unless the run was stopped and can be resumed.
    pub(crate) fn close_all(&mut self, reason: StopReason, details: Option<&str>) -> Vec<DecisionRecord> {
        let details = if self.is_recorded { Some("no further trial is recorded") } else { details };
        let open: Vec<usize> = (0..self.questions.len()).filter(|at| self.questions[*at].is_open).collect();
        let mut records: Vec<DecisionRecord> =
            open.into_iter().map(|at| self.close(at, (Answer::Undecided, reason), details)).collect();
        if reason == StopReason::Stopped {
            records.iter_mut().for_each(|record| (record.spared, record.spared_baseline) = (0, 0));
        }
        records
    }

    /// Closes a question, and removes trials that no open question needs any more.
    fn close(&mut self, at: usize, answer: (Answer, StopReason), details: Option<&str>) -> DecisionRecord {
        self.questions[at].is_open = false;
        let mut spared = [0, 0];
        let groups: Vec<usize> = self.questions[at].groups().collect();
        for index in groups {
            if self.questions.iter().any(|question| question.is_open && question.groups().any(|other| other == index)) {
                continue;
            }
            let before = self.next.len();
            self.next.retain(|(group, _)| *group != index);
            let group = &mut self.groups[index];
            let count = (before - self.next.len() + group.waiting.len()) as u64;
            group.waiting.clear();
            spared[0] += count;
            spared[1] += if group.is_baseline { count } else { 0 };
        }
        self.questions[at].record(answer, details, &self.groups, spared)
    }
}

#[cfg(test)]
mod tests;
