//! Finished trials in the order of the plan, regardless of the order in which they finished, and their totals.

use std::collections::BTreeSet;

use model::{
    AgentInfo, AuxiliaryUsage, DecisionRecord, Finding, Gate, GateResult, MissingShards, Outcome, RunInfo, Shard,
    Status, Summary, TrialRecord,
};

use crate::arms::Arms;
use crate::cassettes::CassetteTotals;
use crate::figures::Figures;
use crate::format::{counted, number, percent, precise_percent};
use crate::places::Places;
use crate::{counts, decisions, plain};

/// Maximum length of a reason in the verdict, in columns.
const REASON: usize = 160;

/// State that reports keep about a run in progress to summarise it.
#[derive(Default)]
pub(crate) struct RunTotals {
    agents: Vec<AgentInfo>,
    places: Places,
    planned: usize,
    shard: Option<Shard>,
    missing_shards: Option<MissingShards>,
    /// Number of planned baseline trials.
    planned_baseline: usize,
    summary: Summary,
    /// Number of trials of the baseline whose case is in quarantine.
    quarantined_baseline: usize,
    /// Cost of each attempt that is not free, with the position of its trial and `true` for the baseline. Costs are
    /// added in the order of the plan, because a sum of floating-point numbers depends on the order.
    costs: Vec<(usize, f64, bool)>,
    /// True if an attempt was free: of a trial that counts, and of the baseline.
    has_free: [bool; 2],
    /// Usage of judges and simulated users, kept by position for the same reason.
    auxiliary_usages: Vec<(usize, [Option<AuxiliaryUsage>; 2])>,
    figures: Figures,
    cassettes: CassetteTotals,
    /// Decisions in the order in which they were made.
    decisions: Vec<DecisionRecord>,
    /// Reason why trials were not started.
    not_started: Option<String>,
    /// Reasons why trials were skipped, each once.
    skipped: BTreeSet<String>,
    /// Reasons why trials have no result, each once.
    without_result: BTreeSet<String>,
    gate: Gate,
    /// `true` to keep figures even for trials whose arm has no variant.
    compares: bool,
}

/// Verdict on a run: one word and the reasons.
pub(crate) struct Verdict {
    pub(crate) word: &'static str,
    /// Outcome that determines the colour.
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
}

/// Describes the results of quarantined cases: `2 quarantined (1 failed)`. `None` if there are none.
pub(crate) fn quarantined(summary: &Summary) -> Option<String> {
    let all = summary.all_quarantined();
    let noted = summary.quarantined.iter().filter(|(outcome, _)| **outcome != Outcome::Passed);
    let noted: Vec<String> = noted.map(|(outcome, count)| format!("{count} {}", outcome.name())).collect();
    let noted = if noted.is_empty() { "all passed".to_owned() } else { noted.join(", ") };
    (all > 0).then(|| format!("{} quarantined ({noted})", number(all as u64)))
}

/// Returns why a trial has no result although one was wanted; `None` if it has one.
pub(crate) fn without_result(record: &TrialRecord) -> Option<&str> {
    match record.outcome {
        _ if record.is_baseline() || record.quarantine.is_some() || record.is_not_judged() => None,
        Outcome::Undecided => {
            let open = Finding::decisive(&record.findings).find(|finding| finding.status == Status::Undecided);
            open.map(|finding| finding.reason.as_str()).or(record.reason.as_deref())
        }
        Outcome::Broken | Outcome::Stale => record.reason.as_deref(),
        Outcome::Passed | Outcome::Failed | Outcome::Skipped | Outcome::Cancelled => None,
    }
}

/// Returns the first of `reasons`, shortened for a sentence, and how many more there are; `None` if there are none.
pub(crate) fn first_reason<'a>(mut reasons: impl Iterator<Item = &'a str>) -> Option<String> {
    let first = plain::folded(reasons.next()?, REASON, "...");
    Some(match reasons.count() {
        0 => first,
        more => format!("{first}; and {}", counted(more, "other reason")),
    })
}

impl RunTotals {
    /// Creates the totals of a run that starts. `compares` is `true` if the run has something to compare even if no
    /// arm has a variant.
    pub(crate) fn new(info: &RunInfo, compares: bool) -> Self {
        Self {
            agents: info.agents.clone(),
            places: Places::new(&info.trials),
            planned: info.trials.len(),
            shard: info.shard.clone(),
            missing_shards: info.missing_shards.clone(),
            planned_baseline: info.trials.iter().filter(|id| id.is_baseline()).count(),
            compares,
            gate: Gate::from_settings(&info.settings),
            ..Self::default()
        }
    }

    /// Returns the conditions under which failed trials do not fail the run.
    pub(crate) fn gate(&self) -> Gate {
        self.gate
    }

    /// Adds a trial and returns its position in the plan.
    pub(crate) fn add(&mut self, record: &TrialRecord) -> usize {
        let place = self.place(&record.id);
        let is_baseline = record.is_baseline();
        self.summary.add(record);
        self.quarantined_baseline += usize::from(is_baseline && record.quarantine.is_some());
        if record.outcome == Outcome::Cancelled && record.ending.is_none() && self.not_started.is_none() {
            self.not_started = record.reason.clone();
        }
        if record.outcome == Outcome::Skipped {
            self.skipped.extend(record.reason.clone());
        }
        self.without_result.extend(without_result(record).map(str::to_owned));
        if let Some(used) = &record.cassette {
            self.cassettes.add(used);
        }
        for cost in record.attempts.iter().filter_map(|attempt| attempt.cost_usd) {
            match cost == 0.0 {
                true => self.has_free[usize::from(is_baseline)] = true,
                false => self.costs.push((place, cost, is_baseline)),
            }
        }
        if record.judge.is_some() || record.user.is_some() {
            self.auxiliary_usages.push((place, [record.judge, record.user]));
        }
        if record.quarantine.is_none() && (self.compares || record.variant.is_some()) {
            self.figures.add(record);
        }
        place
    }

    /// Describes the use of cassettes; `None` if nothing was recorded or replayed.
    pub(crate) fn cassettes(&self) -> Option<String> {
        self.cassettes.describe()
    }

    /// Adds a decision about the number of trials.
    pub(crate) fn decide(&mut self, decision: &DecisionRecord) {
        self.summary.decide(decision);
        self.decisions.push(decision.clone());
    }

    /// Returns `true` if there is already a decision about the same question.
    pub(crate) fn has(&self, decision: &DecisionRecord) -> bool {
        let key =
            |it: &DecisionRecord| (it.question, it.suite.clone(), it.case.clone(), it.arm.clone(), it.versus.clone());
        self.decisions.iter().any(|known| key(known) == key(decision))
    }

    /// Returns the decisions in plan order.
    pub(crate) fn decisions(&self) -> Vec<DecisionRecord> {
        let first = |decision: &DecisionRecord| {
            let (Some(suite), Some(case)) = (&decision.suite, &decision.case) else { return usize::MAX };
            self.place(&format!("{suite}::{case}@{}#1", decision.arm))
        };
        let mut decisions = self.decisions.clone();
        decisions.sort_by_cached_key(first);
        decisions
    }

    /// Returns the position of a trial in the plan.
    pub(crate) fn place(&self, trial: &str) -> usize {
        self.places.of(trial)
    }

    /// Returns the totals of the trials.
    pub(crate) fn summary(&self) -> Summary {
        let (mut costs, mut auxiliary_usages) = (self.costs.clone(), self.auxiliary_usages.clone());
        costs.sort_by_key(|(place, ..)| *place);
        auxiliary_usages.sort_by_key(|(place, ..)| *place);
        let add = |one: Option<AuxiliaryUsage>, more: Option<AuxiliaryUsage>| match (one, more) {
            (Some(mut sum), Some(more)) => {
                sum += more;
                Some(sum)
            }
            (one, more) => one.or(more),
        };
        let fold =
            |which: usize| auxiliary_usages.iter().map(|(_, auxiliary_usages)| auxiliary_usages[which]).fold(None, add);
        let sum = |wanted: fn(bool) -> bool| {
            let is_free = (self.has_free[0] && wanted(false)) || (self.has_free[1] && wanted(true));
            let costs = costs.iter().filter(|(.., is_baseline)| wanted(*is_baseline)).map(|(_, cost, _)| *cost);
            is_free.then_some(0.0).into_iter().chain(costs).reduce(|sum, cost| sum + cost)
        };
        Summary {
            cost_usd: sum(|_| true),
            baseline_cost_usd: sum(|is_baseline| is_baseline),
            judge: fold(0),
            user: fold(1),
            ..self.summary.clone()
        }
    }

    /// Returns the arms; none if the run has nothing to compare.
    pub(crate) fn arms(&self) -> Arms {
        Arms::of(self.figures.iter(), &self.agents).with_decisions(&self.decisions())
    }

    /// Returns the number of trials in two parts: `4 of 8 planned`, and `, and 4 without the skill to compare with`,
    /// followed by the shard if the run covers only one. Trials of quarantined cases are counted separately, as in all
    /// formats.
    pub(crate) fn counted(&self) -> (String, String) {
        let quarantined = self.summary.all_quarantined();
        let finished = self.summary.trials;
        let mut trials = number(finished as u64);
        let spared = &self.summary.decisions;
        let spared_tested = spared.spared.saturating_sub(spared.spared_baseline);
        let planned = (self.planned - self.planned_baseline).saturating_sub(spared_tested + quarantined);
        if finished < planned {
            trials.push_str(&format!(" of {} planned", number(planned as u64)));
        }
        if spared_tested > 0 {
            let most = (self.planned - self.planned_baseline) as u64;
            trials.push_str(&format!(" (at most {}; {} not run)", number(most), number(spared_tested as u64)));
        }
        let baseline = self.summary.baseline.saturating_sub(self.quarantined_baseline);
        let planned = self.planned_baseline.saturating_sub(spared.spared_baseline + self.quarantined_baseline);
        let part = self.shard.as_ref().map_or_else(String::new, |part| format!(", {}", shard(part)));
        if self.planned_baseline == 0 {
            return (trials, part);
        }
        let of = if baseline < planned { format!(" of {}", number(planned as u64)) } else { String::new() };
        (trials, format!(", and {}{of} without the skill to compare with{part}", number(baseline as u64)))
    }

    /// Returns the verdict on the run, which finished or was stopped by `signal`.
    pub(crate) fn verdict(&self, signal: Option<&str>) -> Verdict {
        Verdict::of(&EndedRun {
            summary: &self.summary,
            planned: self.planned,
            decisions: &self.decisions,
            not_started: first_reason(self.not_started.as_deref().into_iter()),
            skipped: first_reason(self.skipped.iter().map(String::as_str)),
            without_result: first_reason(self.without_result.iter().map(String::as_str)),
            gate: self.gate,
            signal,
            missing_shards: self.missing_shards.as_ref(),
        })
    }
}

/// Results of a run that finished or was stopped, for its verdict.
pub(crate) struct EndedRun<'a> {
    pub(crate) summary: &'a Summary,
    /// Number of planned trials.
    pub(crate) planned: usize,
    pub(crate) decisions: &'a [DecisionRecord],
    /// Reason why trials were not started.
    pub(crate) not_started: Option<String>,
    /// Why trials were skipped.
    pub(crate) skipped: Option<String>,
    /// Why trials have no result.
    pub(crate) without_result: Option<String>,
    pub(crate) gate: Gate,
    /// Signal that stopped the run.
    pub(crate) signal: Option<&'a str>,
    /// Shards that a merged run lacks.
    pub(crate) missing_shards: Option<&'a MissingShards>,
}

/// Names the part of a plan that a run covers: `only shard 1/2`.
pub(crate) fn shard(shard: &Shard) -> String {
    format!("only shard {}/{}", shard.index, shard.of)
}

/// Lists the shards that a merged run lacks: `without shard 2/2`.
pub(crate) fn without_shards(lacks: &MissingShards) -> String {
    let missing: Vec<String> = lacks.missing.iter().map(|shard| format!("{shard}/{}", lacks.of)).collect();
    format!("without {} {}", if missing.len() == 1 { "shard" } else { "shards" }, missing.join(" "))
}

/// Compares the pass rate with the required one: `pass rate 83% is at least the required 80%`.
pub(crate) fn required(summary: &Summary, gate: Gate) -> Option<String> {
    let (result, required) = (gate.result(summary)?, gate.min_pass_rate?);
    let (bounds, least) = (summary.counted().bounds()?, precise_percent(required));
    // A rate that would look like the required one is shown with decimals.
    let shown = |rate: f64| match percent(rate) == percent(required) {
        true => precise_percent(rate),
        false => percent(rate),
    };
    let rate = match bounds.value() {
        Some(rate) => shown(rate),
        None => format!("between {} and {}", shown(bounds.min), shown(bounds.max)),
    };
    let first = if summary.flaky > 0 { " at the first attempt" } else { "" };
    let compared = match result {
        GateResult::Met => "is at least the required",
        GateResult::NotMet => "is below the required",
        GateResult::Unknown => "is not known to reach the required",
    };
    Some(format!("pass rate {rate}{first} {compared} {least}"))
}

/// Describes the pass rate of the first attempts: `67% (4 of 6)`, or `between 0% and 60%: 6 undecided of 10 trials`.
pub(crate) fn rate(summary: &Summary) -> Option<String> {
    let rate = counts::rate(summary.by_outcome, summary.flaky)?;
    Some(if summary.flaky > 0 { format!("{rate} at the first attempt") } else { rate })
}

impl Verdict {
    /// Returns the verdict on a run: a word that agrees with the exit code, and one sentence with all trials in it.
    pub(crate) fn of(run: &EndedRun<'_>) -> Self {
        let EndedRun {
            summary, planned, decisions, ref not_started, ref skipped, gate, signal, missing_shards, ..
        } = *run;
        let finished = summary.trials + summary.baseline + summary.all_quarantined();
        let unfinished = planned.saturating_sub(finished + summary.decisions.spared);
        let without_result = summary.open().saturating_sub(summary.by_outcome.cancelled);
        let [not_met, open] = decisions::verdict(summary, decisions);
        let failures = summary.failures();
        // Failed trials are ignored if enough trials passed. If no failure matters, the trials have still failed.
        let is_excused = gate.ignores_failures(summary) && !gate.no_fail_on_assertions;
        let (word, outcome) = if (failures > 0 || !not_met.is_empty() || gate.is_missed(summary)) && !is_excused {
            ("FAIL", Outcome::Failed)
        } else if summary.open() > 0
            || unfinished > 0
            || !open.is_empty()
            || signal.is_some()
            || missing_shards.is_some()
        {
            ("INCOMPLETE", Outcome::Broken)
        } else if summary.is_nothing() {
            ("NOTHING TESTED", Outcome::Broken)
        } else {
            ("PASS", Outcome::Passed)
        };

        // The trials that explain the word come first, and are compared with all trials.
        let mut reason: Vec<String> = Vec::new();
        let add = |reason: &mut Vec<String>, count: usize, what: &str| match (count, reason.is_empty()) {
            (0, _) => {}
            (_, true) if count == summary.trials && matches!(word, "PASS" | "NOTHING TESTED") => {
                reason.push(format!("{} {what}", counted(count, "trial")));
            }
            (_, true) => {
                reason.push(format!("{} of {} {what}", number(count as u64), counted(summary.trials, "trial")));
            }
            (_, false) => reason.push(format!("{} {what}", number(count as u64))),
        };
        // If pass rates decide, the numbers of passed and failed trials do not.
        let has_rates = decisions.iter().any(|decision| decision.is_contract() && !decision.quarantined);
        match word {
            "FAIL" => add(&mut reason, failures, "failed"),
            "PASS" if has_rates => reason.extend(decisions::met(decisions)),
            "PASS" => add(&mut reason, summary.by_outcome.passed, "passed"),
            _ => {}
        }
        reason.extend(not_met);
        if without_result > 0 {
            let what = if without_result == 1 { "has no result" } else { "have no result" };
            add(&mut reason, without_result, &format!("{what} ({})", run.why_without_result()));
        }
        let because = |reason: &Option<String>| reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        add(&mut reason, summary.by_outcome.cancelled, &format!("cancelled{}", because(not_started)));
        if unfinished > 0 {
            reason.push(format!("{} not finished", counted(unfinished, "planned trial")));
        }
        reason.extend(open);
        if !has_rates && word != "PASS" {
            add(&mut reason, summary.by_outcome.passed, "passed");
        }
        if !has_rates && word != "FAIL" {
            add(&mut reason, summary.by_outcome.failed, "failed");
        }
        let has_no_failure = summary.by_outcome.failed == 0 && summary.flaky == 0;
        if word == "INCOMPLETE" && summary.by_outcome.passed > 0 && has_no_failure && !has_rates {
            reason.push("none failed".to_owned());
        }
        if summary.flaky > 0 {
            reason.push(format!("{} passed only after a failed attempt", number(summary.flaky as u64)));
        }
        if word == "PASS" && summary.passed_with_signs > 0 {
            reason.push(format!("{} of them with signs of tampering", number(summary.passed_with_signs as u64)));
        }
        add(&mut reason, summary.not_judged, "not judged");
        add(&mut reason, summary.by_outcome.skipped, &format!("skipped{}", because(skipped)));
        let quarantined = quarantined(summary);
        match (&quarantined, reason.is_empty()) {
            (Some(trials), true) => reason.push(format!("no trial counts: {trials}")),
            (None, true) => reason.push("no trials".to_owned()),
            (_, false) => {}
        }
        reason.extend(required(summary, gate));
        if word == "FAIL" && gate.no_fail_on_assertions {
            reason.push("ignored by the exit code (--no-fail-on-assertions)".to_owned());
        }
        if summary.trials > 0 {
            reason.extend(quarantined.map(|trials| format!("not counted: {trials}")));
        }
        reason.extend(signal.map(|signal| format!("stopped by {signal}")));
        reason.extend(missing_shards.map(without_shards));
        Self { word, outcome, reason: reason.join(", ") }
    }
}

impl EndedRun<'_> {
    /// Describes the trials without a result by outcome: `undecided: REASON`, or `2 broken, 1 stale`.
    fn why_without_result(&self) -> String {
        let summary = self.summary;
        // A pass rate may be decided without some of them, which are not counted by outcome.
        if summary.decisions.open_trials > 0 {
            return "broken or undecided".to_owned();
        }
        let undecided = summary.by_outcome.undecided.saturating_sub(summary.not_judged);
        let counts = [(summary.by_outcome.broken, "broken"), (undecided, "undecided"), (summary.open_stale(), "stale")];
        let kinds: Vec<(usize, &str)> = counts.into_iter().filter(|(count, _)| *count > 0).collect();
        match (&kinds[..], &self.without_result) {
            ([(_, kind)], Some(reason)) => format!("{kind}: {reason}"),
            ([(_, kind)], None) => (*kind).to_owned(),
            _ => {
                let kinds = kinds.iter().map(|(count, kind)| format!("{} {kind}", number(*count as u64)));
                kinds.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::OutcomeCounts;

    use super::*;

    fn run(summary: &Summary) -> EndedRun<'_> {
        EndedRun {
            summary,
            planned: summary.trials,
            decisions: &[],
            not_started: None,
            skipped: None,
            without_result: None,
            gate: Gate::default(),
            signal: None,
            missing_shards: None,
        }
    }

    #[test]
    fn the_verdict_shows_the_required_pass_rate_and_agrees_with_the_exit_code() {
        let counts = |passed: usize, failed: usize, broken: usize| Summary {
            trials: passed + failed + broken,
            by_outcome: OutcomeCounts { passed, failed, broken, ..OutcomeCounts::default() },
            ..Summary::default()
        };
        let line = |summary: &Summary, gate: Gate| {
            let verdict = Verdict::of(&EndedRun { gate, ..run(summary) });
            let word = match gate.exit_code(summary) {
                0 => "PASS",
                1 => "FAIL",
                3 => "INCOMPLETE",
                _ => "NOTHING TESTED",
            };
            assert!(word == verdict.word || gate.no_fail_on_assertions, "{word} {}", verdict.reason);
            format!("{} {}", verdict.word, verdict.reason)
        };
        let least = Gate { min_pass_rate: Some(0.8), no_fail_on_assertions: false };
        let met = "PASS 5 of 6 trials passed, 1 failed, pass rate 83% is at least the required 80%";
        assert_eq!(line(&counts(5, 1, 0), least), met);
        let not_met = "FAIL 2 of 6 trials failed, 4 passed, pass rate 67% is below the required 80%";
        assert_eq!(line(&counts(4, 2, 0), least), not_met);
        let open = "INCOMPLETE 1 of 10 trials has no result (broken), 8 passed, 1 failed, pass rate between 80% and 90% \
                    is at least the required 80%";
        assert_eq!(line(&counts(8, 1, 1), least), open);
        let unknown = "FAIL 2 of 10 trials failed, 1 has no result (broken), 7 passed, pass rate between 70% and 80% is \
                       not known to reach the required 80%";
        assert_eq!(line(&counts(7, 2, 1), least), unknown);
        let close = Gate { min_pass_rate: Some(0.999), no_fail_on_assertions: false };
        let almost = "FAIL 1 of 300 trials failed, 299 passed, pass rate 99.667% is below the required 99.9%";
        assert_eq!(line(&counts(299, 1, 0), close), almost);
        let ignoring = Gate { no_fail_on_assertions: true, ..Gate::default() };
        let ignored = "FAIL 1 of 6 trials failed, 5 passed, ignored by the exit code (--no-fail-on-assertions)";
        assert_eq!(line(&counts(5, 1, 0), ignoring), ignored);
        let by_outcome = OutcomeCounts { passed: 6, skipped: 3, ..OutcomeCounts::default() };
        let flaky = Summary { flaky: 2, trials: 9, by_outcome, ..Summary::default() };
        let passed = "PASS 6 of 9 trials passed, 2 passed only after a failed attempt, 3 skipped";
        assert_eq!(line(&flaky, Gate::default()), passed);
        let too_low = "FAIL 6 of 9 trials passed, 2 passed only after a failed attempt, 3 skipped, pass rate 67% at the \
                       first attempt is below the required 80%";
        assert_eq!(line(&flaky, least), too_low);
        assert_eq!(line(&Summary::default(), Gate::default()), "NOTHING TESTED no trials");
    }

    #[test]
    fn the_first_of_several_reasons_is_shown_with_their_number() {
        let reason = |reasons: &[&str]| first_reason(reasons.iter().copied());
        assert_eq!(reason(&[]), None);
        assert_eq!(reason(&["no key"]).as_deref(), Some("no key"));
        assert_eq!(reason(&["no key", "x"]).as_deref(), Some("no key; and 1 other reason"));
        assert_eq!(reason(&["no key", "x", "y"]).as_deref(), Some("no key; and 2 other reasons"));
    }

    #[test]
    fn the_verdict_says_why_trials_were_not_started() {
        let reason = |failed: usize| {
            let by_outcome = OutcomeCounts { passed: 6 - failed, failed, cancelled: 74, ..OutcomeCounts::default() };
            let summary = Summary { trials: 80, by_outcome, ..Summary::default() };
            let not_started = Some("over its limit of 0.05 USD".to_owned());
            let verdict = Verdict::of(&EndedRun { planned: 80, not_started, ..run(&summary) });
            format!("{} {}", verdict.word, verdict.reason)
        };
        assert_eq!(
            reason(0),
            "INCOMPLETE 74 of 80 trials cancelled (over its limit of 0.05 USD), 6 passed, none failed"
        );
        let failed = "FAIL 1 of 80 trials failed, 74 cancelled (over its limit of 0.05 USD), 5 passed";
        assert_eq!(reason(1), failed);
    }
}
