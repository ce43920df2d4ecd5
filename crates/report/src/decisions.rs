//! Describes decisions about the number of trials in sentences. Their intervals stay valid although the
//! results decided when to stop. Intervals for a fixed number of trials would not.

use model::{Answer, DecisionQuestion, DecisionRecord, Outcome, StopReason, Summary, WITH_SKILL, WITHOUT_SKILL};

use crate::counts;
use crate::format::{counted, gain, number, percent, range};

/// Note below a table that explains the intervals.
pub(crate) const NOTE: &str =
    "95%: contains the true value after every trial at once, so it is valid although the results decided when to stop.";

/// Returns the decisions about single cases.
pub(crate) fn about_cases(decisions: &[DecisionRecord]) -> impl Iterator<Item = &DecisionRecord> {
    decisions.iter().filter(|decision| decision.versus.is_none())
}

/// Returns the decisions about single cases: not met first, then undecided. Those with the same answer keep their order.
pub(crate) fn by_urgency(decisions: &[DecisionRecord]) -> Vec<&DecisionRecord> {
    let mut sorted: Vec<&DecisionRecord> = about_cases(decisions).collect();
    sorted.sort_by_key(|decision| (outcome(decision) != Outcome::Failed, outcome(decision) == Outcome::Passed));
    sorted
}

/// Returns sentences about single cases, the most urgent first. Those after `most` are only counted.
pub(crate) fn most_urgent(decisions: &[DecisionRecord], most: usize) -> Vec<String> {
    let sorted = by_urgency(decisions);
    let mut sentences: Vec<String> = sorted.iter().take(most).map(|decision| sentence(decision)).collect();
    let rest = sorted.get(most..).unwrap_or_default();
    if !rest.is_empty() {
        let counts = rest.chunk_by(|one, other| answer(one) == answer(other));
        let counts: Vec<String> =
            counts.map(|same| format!("{} {}", number(same.len() as u64), answer(same[0]))).collect();
        sentences.push(format!("And {}: {}.", counted(rest.len(), "more pass rate"), counts.join(", ")));
    }
    sentences
}

/// Returns a sentence for each comparison of two arms.
pub(crate) fn sentences(decisions: &[DecisionRecord]) -> impl Iterator<Item = String> {
    decisions.iter().filter(|decision| decision.versus.is_some()).map(sentence)
}

/// Returns the name of the decision's subject: `suite::case`, with the arm if there are several.
pub(crate) fn name(decision: &DecisionRecord, has_arms: bool) -> String {
    let arm = if has_arms { format!("@{}", decision.arm) } else { String::new() };
    match (&decision.suite, &decision.case) {
        (Some(suite), Some(case)) => format!("{suite}::{case}{arm}"),
        _ => decision.arm.to_string(),
    }
}

/// Describes the answer in a word or two.
pub(crate) fn answer(decision: &DecisionRecord) -> &'static str {
    match decision.answer {
        Answer::Met => "met",
        Answer::NotMet => "not met",
        Answer::Better => "better",
        Answer::Worse => "worse",
        Answer::Equivalent => "no difference that matters",
        Answer::Precise => "precise",
        Answer::Undecided => "undecided",
    }
}

/// Describes the answer, and says so if it does not count because the case is in quarantine.
pub(crate) fn noted_answer(decision: &DecisionRecord) -> String {
    format!("{}{}", answer(decision), if decision.quarantined { " (quarantined)" } else { "" })
}

/// Returns the outcome that corresponds to the answer.
pub(crate) fn outcome(decision: &DecisionRecord) -> Outcome {
    match decision.answer {
        Answer::NotMet => Outcome::Failed,
        Answer::Undecided => Outcome::Undecided,
        Answer::Met | Answer::Precise | Answer::Better | Answer::Worse | Answer::Equivalent => Outcome::Passed,
    }
}

/// Describes how many trials the decision took: `decided after 6 of 20 trials`.
pub(crate) fn decided_after(decision: &DecisionRecord) -> String {
    let unit = if decision.versus.is_some() { "pairs of trials per case" } else { "trials" };
    let after = format!("after {} of {} {unit}", number(decision.trials), number(decision.max_trials));
    match decision.stopped_by {
        StopReason::Decided => format!("decided {after}"),
        _ => format!("undecided {after}: {}", stop_reason(decision)),
    }
}

/// Describes why the question stayed undecided.
fn stop_reason(decision: &DecisionRecord) -> String {
    let reason = match decision.stopped_by {
        StopReason::Decided => "the answer is known",
        StopReason::Futility if decision.undecided > 0 => {
            "some trials could have passed or failed, so the remaining ones are unlikely to decide"
        }
        StopReason::Futility => {
            "the remaining trials are unlikely to decide; raise the maximum number of trials or the tolerance"
        }
        StopReason::Maximum => "the maximum was reached",
        StopReason::Broken => "several trials in a row are broken, undecided or stale",
        StopReason::Budget => "the run reached a limit",
        StopReason::Stopped => "the run was stopped",
    };
    match &decision.details {
        Some(details) if decision.stopped_by == StopReason::Budget => details.clone(),
        Some(details) => format!("{reason} ({details})"),
        None => reason.to_owned(),
    }
}

/// Returns the requirement for the case: `at least 90%`.
pub(crate) fn required(decision: &DecisionRecord) -> String {
    match decision.question {
        DecisionQuestion::PassRate(rate) => format!("at least {}", percent(rate.at_least)),
        DecisionQuestion::Precision { half_width } => {
            format!("± {} points", gain(half_width).trim_start_matches('+'))
        }
        DecisionQuestion::Difference { .. } => String::new(),
    }
}

/// Returns a sentence about the decision.
pub(crate) fn sentence(decision: &DecisionRecord) -> String {
    let Some(versus) = &decision.versus else {
        let asked = match decision.question {
            DecisionQuestion::Precision { .. } => format!("pass rate {}", required(decision)),
            _ => format!("pass rate of {}", required(decision)),
        };
        let after = match decision.answer {
            Answer::Undecided => decided_after(decision),
            _ => format!("{}, {}", answer(decision), decided_after(decision)),
        };
        return format!(
            "{}: {asked}: {after}, {} passed ({}).",
            name(decision, false),
            passed(decision),
            interval(decision),
        );
    };
    let agent = decision.arm.strip_suffix(WITH_SKILL);
    let is_skill = agent.is_some() && agent == versus.strip_suffix(WITHOUT_SKILL);
    let beginning = match (decision.answer, is_skill) {
        (Answer::Better, true) => "The skill helps".to_owned(),
        (Answer::Worse, true) => "The skill harms".to_owned(),
        (Answer::Better, false) => format!("{} passes more often than {versus}", decision.arm),
        (Answer::Worse, false) => format!("{} passes less often than {versus}", decision.arm),
        (Answer::Equivalent, true) => "The skill makes no difference that matters".to_owned(),
        (Answer::Equivalent, false) => format!("{} and {versus} do not differ by an amount that matters", decision.arm),
        (Answer::Precise, true) => "The effect of the skill is known precisely enough".to_owned(),
        (Answer::Precise, false) => {
            format!("The difference between {} and {versus} is known precisely enough", decision.arm)
        }
        (_, true) => "Cannot tell whether the skill helps".to_owned(),
        (_, false) => format!("Cannot tell whether {} passes more often than {versus}", decision.arm),
    };
    let estimate = match (decision.estimate, decision.estimate_min.zip(decision.estimate_max)) {
        (Some(estimate), _) => format!("{} points ", gain(estimate)),
        (None, Some((min, max))) => format!("between {} and {} points ", gain(min), gain(max)),
        (None, None) => String::new(),
    };
    format!(
        "{beginning}: in {}, {}; difference {estimate}({}).",
        counted(usize::try_from(decision.cases).unwrap_or(usize::MAX), "case"),
        decided_after(decision),
        interval(decision),
    )
}

/// Formats the passed trials as `5/6`, or `4 to 5/6` if one could have passed or failed.
pub(crate) fn passed(decision: &DecisionRecord) -> String {
    counts::described(decision.counted())
}

/// Formats the confidence sequence: `95%: 52% to 100% at any time`.
fn interval(decision: &DecisionRecord) -> String {
    let [low, high] = decision.confidence_sequence;
    let ends = match decision.versus {
        Some(_) => format!("{} to {} points", gain(low), gain(high)),
        None => range([low, high]),
    };
    format!("{} confidence sequence: {ends}", percent(decision.confidence))
}

/// Returns `true` if the decisions are about several arms.
pub(crate) fn has_arms(decisions: &[DecisionRecord]) -> bool {
    let mut arms = about_cases(decisions).map(|decision| &decision.arm);
    arms.next().is_some_and(|first| arms.any(|arm| arm != first))
}

/// Returns the reasons why cases are undecided, one line each.
pub(crate) fn reasons(decisions: &[DecisionRecord]) -> Vec<String> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for decision in about_cases(decisions).filter(|decision| decision.answer == Answer::Undecided) {
        let reason = stop_reason(decision);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    reasons.into_iter().map(|(reason, count)| format!("{} undecided: {reason}.", counted(count, "case"))).collect()
}

/// Describes the decisions that make a run fail, and those that leave it incomplete.
pub(crate) fn verdict(summary: &Summary, decisions: &[DecisionRecord]) -> [Vec<String>; 2] {
    let counted: Vec<&DecisionRecord> = decisions.iter().filter(|decision| !decision.quarantined).collect();
    let rates = counted.iter().filter(|decision| decision.is_contract()).count();
    let open = |is_wanted: &dyn Fn(&DecisionRecord) -> bool| {
        counted.iter().filter(|decision| decision.answer == Answer::Undecided && is_wanted(decision)).count()
    };
    let of = |count: usize, all: usize, what: &str| {
        if all == 1 { format!("1 pass rate {what}") } else { format!("{count} of {all} pass rates {what}") }
    };
    let mut failed = Vec::new();
    if summary.decisions.not_met > 0 {
        failed.push(of(summary.decisions.not_met, rates, "too low"));
    }
    let mut incomplete = Vec::new();
    let undecided = open(&|decision| decision.is_contract());
    if undecided > 0 {
        let passed =
            format!("{} of {} passed", summary.by_outcome.passed, crate::format::counted(summary.trials, "trial"));
        incomplete.push(format!("{} ({passed})", of(undecided, rates, "undecided")));
    }
    let imprecise = open(&|decision| matches!(decision.question, DecisionQuestion::Precision { .. }));
    if imprecise > 0 {
        let all = counted.iter().filter(|decision| matches!(decision.question, DecisionQuestion::Precision { .. }));
        incomplete.push(of(imprecise, all.count(), "not known precisely enough"));
    }
    let compared = open(&|decision| decision.versus.is_some());
    if compared > 0 {
        incomplete.push(crate::format::counted(compared, "undecided comparison"));
    }
    [failed, incomplete]
}

/// Describes the decisions of a run that passed: `3 pass rates high enough`.
pub(crate) fn met(decisions: &[DecisionRecord]) -> Option<String> {
    let met = decisions.iter().filter(|decision| !decision.quarantined && decision.answer == Answer::Met).count();
    (met > 0).then(|| format!("{} high enough", counted(met, "pass rate")))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// Decisions about cases with these answers, in this order.
    pub(crate) fn decisions(answers: &[&str]) -> Vec<DecisionRecord> {
        let decision = |(number, answer): (usize, &&str)| {
            let stopped_by = if *answer == "undecided" { "futility" } else { "decided" };
            serde_json::from_value(json!({
                "question": { "type": "pass_rate", "at_least": 0.9, "tolerance": 0.1 }, "suite": "s",
                "case": format!("c{number}"), "arm": "a", "answer": answer, "stopped_by": stopped_by, "trials": 21,
                "max_trials": 40, "cases": 1, "passed": 20, "failed": 1, "undecided": 0, "estimate": 0.95,
                "confidence_sequence": [0.7, 1.0], "confidence": 0.95, "spared": 19,
            }))
            .unwrap()
        };
        answers.iter().enumerate().map(decision).collect()
    }

    #[test]
    fn the_most_urgent_decisions_come_first_and_the_rest_is_counted() {
        let decisions = decisions(&["met", "undecided", "met", "not_met", "undecided"]);
        let names: Vec<&str> = by_urgency(&decisions).iter().filter_map(|decision| decision.case.as_deref()).collect();
        assert_eq!(names, ["c3", "c1", "c4", "c0", "c2"]);
        let sentences = most_urgent(&decisions, 2);
        assert!(sentences[0].starts_with("s::c3: pass rate of at least 90%: not met, decided after 21 of 40 trials, "));
        assert_eq!(sentences[2], "And 3 more pass rates: 1 undecided, 2 met.");
        assert_eq!(most_urgent(&decisions, 5).len(), 5);
    }

    #[test]
    fn an_undecided_case_is_called_undecided_once() {
        let sentence = sentence(&decisions(&["undecided"])[0]);
        let after = "s::c0: pass rate of at least 90%: undecided after 21 of 40 trials: the remaining trials are \
                     unlikely to decide; ";
        assert!(sentence.starts_with(after), "{sentence}");
    }
}
