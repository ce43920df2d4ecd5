//! Formats a plan as text.

use model::DecisionQuestion;
use report::counted;

use super::forecast::{DecisionForecast, FixedTrials, Forecast};

/// Maximum number of cases that are listed individually.
const CASES: usize = 20;

/// Formats the figures of a plan.
pub fn text(forecast: &Forecast, max_run_cost: Option<f64>) -> String {
    let is_auto = !forecast.decisions.is_empty();
    let arms = match forecast.arms.len() {
        // A single arm is nothing but the agent of the run.
        1 => String::new(),
        arms => format!("{} · ", counted(arms, "arm")),
    };
    let mut text = format!(
        "{} · {arms}{}{} · {}\n",
        counted(forecast.cases, "case"),
        if is_auto { "at most " } else { "" },
        counted(forecast.trials, "trial"),
        counted(forecast.jobs, "job"),
    );
    for row in &forecast.fixed {
        text.push_str(&fixed(row, forecast.arms.len() > 1));
    }
    text.push_str(&decisions(&forecast.decisions));
    text.push_str(&expected(forecast, is_auto, max_run_cost));
    text
}

/// Describes what a fixed number of trials can show.
fn fixed(row: &FixedTrials, has_arms: bool) -> String {
    let arm = if has_arms { format!("{}: ", row.arm) } else { String::new() };
    let [low, high] = row.ci95_of_case_at_90;
    let drop = |drop: Option<f64>| match drop {
        Some(drop) => format!("{} points or more", points(drop)),
        None => "none (even a drop to 0% may be missed)".to_owned(),
    };
    let mut text = format!(
        "\n{arm}{} each of {}\n  a case that passes 90% of its trials: the true rate is between {} and {}\n",
        counted_u64(row.trials_per_case, "trial"),
        counted_u64(row.cases, "case"),
        percent(low),
        percent(high),
    );
    text.push_str(&format!(
        "  smallest drop from 90% that a comparison detects with a probability of 80%:\n    in one case:    {}\n    in all of them: {}\n",
        drop(row.detectable_drop_of_case),
        drop(row.detectable_drop),
    ));
    text
}

/// Describes the questions that decide how many trials run, and the expected numbers.
fn decisions(decisions: &[DecisionForecast]) -> String {
    let mut text = String::new();
    let mut groups: Vec<Vec<&DecisionForecast>> = Vec::new();
    for decision in decisions {
        let is_same = |group: &&mut Vec<&DecisionForecast>| {
            let first = group[0];
            first.question == decision.question
                && first.max_trials == decision.max_trials
                && first.versus.is_none()
                && decision.versus.is_none()
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(decision),
            None => groups.push(vec![decision]),
        }
    }
    for group in groups {
        text.push_str(&format!("\n{}", heading(group[0], group.len())));
        if group[0].versus.is_some() {
            continue;
        }
        for decision in group.iter().take(CASES) {
            let known = match decision.known_pass_rate_min.zip(decision.known_pass_rate_max) {
                None => "no earlier results".to_owned(),
                Some((least, most)) if least == most => format!("{} passed so far", percent(least)),
                Some((least, most)) => format!("{} to {} passed so far", percent(least), percent(most)),
            };
            let about = if decision.is_most { "" } else { "about " };
            text.push_str(&format!(
                "  {}: {known}, {about}{} expected\n",
                decision.case.as_deref().unwrap_or_default(),
                counted_u64(decision.expected_trials.round() as u64, "trial"),
            ));
        }
        if group.len() > CASES {
            text.push_str(&format!("  and {} more\n", group.len() - CASES));
        }
    }
    text
}

fn heading(decision: &DecisionForecast, cases: usize) -> String {
    let most = decision.max_trials;
    match decision.question {
        DecisionQuestion::PassRate(rate) => {
            let high = decision.high_enough.map_or_else(
                || "no true rate as high enough".to_owned(),
                |rate| format!("a true rate of {} or more as high enough", percent(rate)),
            );
            let low = decision.too_low.map_or_else(
                || "none as too low".to_owned(),
                |rate| format!("one of {} or less as too low", percent(rate)),
            );
            format!(
                "pass rate of at least {} (tolerance {}), at most {most} trials each: {}\n  shown with a probability of 80%: {high},\n  and \
                 {low}\n",
                percent(rate.at_least),
                percent(rate.tolerance),
                counted(cases, "case"),
            )
        }
        DecisionQuestion::Precision { half_width } => format!(
            "pass rate to within {} points, at most {most} trials each: {}\n",
            points(half_width),
            counted(cases, "case")
        ),
        DecisionQuestion::Difference { half_width, .. } => {
            let precisely =
                half_width.map_or_else(String::new, |width| format!(", to within {} points", points(width)));
            let heading = format!(
                "{} compared with {}{precisely}, at most {} each: {}\n",
                decision.arm,
                decision.versus.as_deref().unwrap_or_default(),
                counted_pairs(most),
                counted(decision.cases, "case"),
            );
            heading + &differences(decision)
        }
    }
}

/// Describes which differences a comparison finds, and how many pairs of trials it takes. It begins with the smallest
/// difference.
fn differences(decision: &DecisionForecast) -> String {
    if decision.differences.is_empty() {
        return String::new();
    }
    let smallest = decision.detectable_drop.map_or_else(
        || "none (even 90% and 0% may not be told apart)".to_owned(),
        |drop| format!("{} points or more", (drop * 100.0).ceil()),
    );
    let mut text = format!(
        "  smallest difference from 90% that is found with a probability of 80%: {smallest}\n  if the true difference is:\n"
    );
    for row in &decision.differences {
        let [high, low] = row.rates;
        let (name, answer) = match high - low {
            0.0 => ("none".to_owned(), format!("{} show that it does not matter", percent(row.equivalent))),
            difference => (format!("{} points", points(difference)), format!("{} find it", percent(row.found))),
        };
        text.push_str(&format!(
            "    {name:<10} half of the runs stop after {}, {answer}\n",
            counted_pairs(row.median_pairs),
        ));
    }
    text
}

fn counted_pairs(pairs: u64) -> String {
    format!("{} of trials", counted_u64(pairs, "pair"))
}

/// Describes how many trials are expected, and how much time and money they take.
fn expected(forecast: &Forecast, is_auto: bool, max_run_cost: Option<f64>) -> String {
    let mut text = String::from("\n");
    if is_auto {
        text.push_str(&format!(
            "expected  about {} of at most {}\n",
            forecast.expected_trials.round(),
            counted(forecast.trials, "trial")
        ));
    }
    let Some(ms) = forecast.expected_ms else {
        text.push_str("time      unknown: no earlier trial of these cases is recorded\ncost      unknown\n");
        return text;
    };
    let time = |ms: f64| report::duration(ms.round() as u64);
    let most = forecast.most_ms.filter(|_| is_auto).map_or_else(String::new, |ms| format!(", at most {}", time(ms)));
    text.push_str(&format!("time      about {}{most}\n", time(ms)));
    text.push_str(&match (forecast.expected_cost_usd, forecast.most_cost_usd) {
        (Some(cost), Some(most)) if is_auto => format!("cost      about {cost:.2} USD, at most {most:.2} USD\n"),
        (Some(cost), _) => format!("cost      about {cost:.2} USD\n"),
        (None, _) => "cost      unknown: earlier trials have no recorded cost\n".to_owned(),
    });
    if let Some((limit, cost)) = max_run_cost.zip(forecast.expected_cost_usd).filter(|(limit, cost)| cost > limit) {
        text.push_str(&format!("          `--max-run-cost {limit}` stops the run before that ({cost:.2} USD)\n"));
    }
    if forecast.known_groups < forecast.groups {
        let of_arms = if forecast.arms.len() > 1 { " in their arms" } else { "" };
        text.push_str(&format!(
            "          from earlier trials of {} of {}{of_arms}; the others are assumed to be like them\n",
            forecast.known_groups,
            counted(forecast.groups, "case")
        ));
    }
    text
}

fn counted_u64(count: u64, noun: &str) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), noun)
}

/// Formats a share as `84%`. Rounding never produces 100 % or 0 %: only exactly 1 and exactly 0 do.
fn percent(share: f64) -> String {
    report::share(share)
}

fn points(share: f64) -> String {
    format!("{}", (share * 1000.0).round() / 10.0)
}
