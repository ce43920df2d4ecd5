//! Tables of the Markdown page.

use model::statistics::{BoundedEstimate, Counted, Delta, Difference};
use model::{ArmDelta, ArmSummary, CaseEffect, DecisionRecord, Estimate, Outcome};

use super::escape::{code, text};
use crate::arms::{Arms, without_variant};
use crate::counts::{described, outcomes};
use crate::decisions::{by_urgency, decided_after, has_arms, name, noted_answer};
use crate::format::{counted, number, percent, rounded, seconds, share, signed};
use crate::terminal::arms::{mean_cost, mean_tokens, shown_figures, ties};

/// Maximum length of a name.
const NAME: usize = 120;
/// Maximum number of cases that are listed.
const CASES: usize = 50;
/// Maximum number of arms and of suites that are listed.
const ROWS: usize = 50;

/// Returns the table of arms with the columns of the HTML report: the outcomes of their trials and their usage. The
/// only arm is not named.
pub(super) fn arms(arms: &[ArmSummary]) -> String {
    let has_curves = arms.iter().any(|arm| arm.statistics.k > 1);
    let has_names = arms.len() > 1;
    let mut heads = Vec::from_iter(has_names.then_some("Arm"));
    heads.extend(["Cases", "Trials passed", "Pass rate", "95% interval of the pass rate"]);
    heads.extend(has_curves.then_some("pass@k"));
    heads.extend(["Checks met", "Time per trial", "Tokens per trial", "Cost per trial", "Excluded"]);
    let mut table = format!("| {} |\n|{}\n", heads.join(" | "), " --- |".repeat(heads.len()));
    for arm in arms.iter().take(ROWS) {
        let statistics = &arm.statistics;
        let rate = statistics.full_pass_rate;
        let excluded = outcomes(statistics.by_outcome, Outcome::is_excluded);
        let mut cells = Vec::from_iter(has_names.then(|| code(&arm.arm, NAME)));
        cells.extend([
            number(statistics.cases as u64),
            described(statistics.counted()).replace('/', " of "),
            rate.map_or_else(unknown, |rate| share(rate.bounds)),
            rate.and_then(|rate| rate.ci95)
                .map_or_else(unknown, |[low, high]| format!("{} to {}", percent(low), percent(high))),
        ]);
        let at_k =
            || statistics.at_k().map_or_else(unknown, |(at, _)| format!("{} (k={})", share(at.bounds), statistics.k));
        cells.extend(has_curves.then(at_k));
        let mean = |figure: Option<Estimate>, format: &dyn Fn(f64) -> String| {
            figure.map_or_else(unknown, |figure| format(figure.mean))
        };
        cells.extend([
            mean(statistics.pass_rate, &percent),
            mean(statistics.duration_s, &seconds),
            mean_tokens(statistics).unwrap_or_else(unknown),
            mean_cost(statistics).unwrap_or_else(unknown),
            if excluded.is_empty() { "none".to_owned() } else { excluded.join(", ") },
        ]);
        table.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if arms.len() > ROWS {
        table.push_str(&format!("\nand {}\n", counted(arms.len() - ROWS, "more arm")));
    }
    table
}

fn unknown() -> String {
    "n/a".to_owned()
}

/// Returns the effect of the skill on each agent, one line each.
pub(super) fn deltas(arms: &Arms) -> String {
    let mut list = String::from("**Delta (with\\_skill − without\\_skill):**\n\n");
    for delta in &arms.deltas {
        let name = code(without_variant(&delta.with), NAME);
        list.push_str(&format!("- {name}: {}\n", difference(&delta.delta)));
    }
    list
}

fn difference(delta: &Delta) -> String {
    let of = |apart: Option<Difference>, shown_figures: &dyn Fn(f64) -> String| {
        apart.map_or_else(unknown, |apart| shown_figures(apart.mean))
    };
    let points = |share: f64| format!("{:+.1}", tidy(share * 100.0));
    let rate = delta.pass_rate.map_or_else(unknown, |apart| {
        let mut sure = Vec::new();
        sure.extend(apart.ci95.map(|[low, high]| format!("95%: {} to {}", points(low), points(high))));
        sure.push(counted(apart.cases, "case"));
        format!("{} points ({})", points(apart.mean), sure.join(", "))
    });
    let passed = delta.full_pass_rate.map_or_else(unknown, |apart| match apart.mean {
        Some(mean) => format!("{} points", points(mean)),
        None => format!("between {} and {} points", points(apart.bounds.min), points(apart.bounds.max)),
    });
    format!(
        "checks met {rate}, trials passed {passed}, time {}, tokens {}, cost {}",
        of(delta.duration_s, &|time| format!("{:+.1}s", tidy(time))),
        of(delta.tokens, &|tokens| signed(tokens, rounded)),
        of(delta.cost_usd, &|cost| format!("{cost:+.4} USD")),
    )
}

/// Returns `number`, without the minus sign if it rounds to zero.
fn tidy(number: f64) -> f64 {
    if number.abs() < 0.05 { 0.0 } else { number }
}

/// Returns the effect of each skill, if the run tests several.
pub(super) fn suites(arms: &Arms) -> String {
    let mut table = String::from(
        "| Suite | Configuration | Checks met with | Checks met without | Difference | Recall |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let (mut rows, mut left) = (0, 0);
    for delta in &arms.deltas {
        for suite in &delta.suites {
            if rows == ROWS {
                left += 1;
                continue;
            }
            rows += 1;
            let rate = |rate: Option<f64>| rate.map_or_else(unknown, |rate| format!("{:.1}%", rate * 100.0));
            let apart = suite.delta.pass_rate;
            let recall = suite.trigger.as_ref().and_then(|trigger| trigger.recall);
            let cells = [
                code(&suite.suite, NAME),
                code(without_variant(&delta.with), NAME),
                rate(suite.with),
                rate(suite.without),
                apart.map_or_else(unknown, |apart| format!("{:+.1} points", tidy(apart.mean * 100.0))),
                recall.map_or_else(unknown, |recall| share(recall.bounds)),
            ];
            table.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    if left > 0 {
        table.push_str(&format!("\nand {left} more\n"));
    }
    table
}

/// Returns the decisions about cases, and how many trials they took. The text is empty if there are none.
pub(super) fn decisions(decisions: &[DecisionRecord]) -> String {
    let shown = by_urgency(decisions);
    if shown.is_empty() {
        return String::new();
    }
    let has_arms = has_arms(decisions);
    let mut table = String::from(
        "\n### Pass rates\n\n| Case | Result | Trials | Passed | 95% confidence sequence |\n| --- | --- | --- | --- | --- |\n",
    );
    for decision in shown.iter().take(ROWS) {
        let [low, high] = decision.confidence_sequence;
        let cells = [
            code(&name(decision, has_arms), NAME),
            noted_answer(decision),
            text(&decided_after(decision), 300),
            described(decision.counted()).replace('/', " of "),
            format!("{} to {}", percent(low), percent(high)),
        ];
        table.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if shown.len() > ROWS {
        table.push_str(&format!("\nand {}\n", counted(shown.len() - ROWS, "more case")));
    }
    table
}

/// Returns how often the skill was triggered, for each agent that has it.
pub(super) fn triggering(arms: &Arms) -> String {
    let mut table =
        String::from("| Configuration | Recall | Precision | Never triggered |\n| --- | --- | --- | --- |\n");
    for (arm, trigger) in arms.triggering() {
        let of = |rate: Option<BoundedEstimate>, counted: Counted| {
            let counts = described(counted).replace('/', " of ");
            rate.map_or_else(unknown, |rate| format!("{} ({counts})", share(rate.bounds)))
        };
        let precise = Counted { passed: trigger.hits, failed: trigger.false_alarms, unknown: 0 };
        let open = if trigger.unknown > 0 { format!(", {} unknown", trigger.unknown) } else { String::new() };
        let cells = [
            code(&arm.arm, NAME),
            of(trigger.recall, trigger.recalled()),
            of(trigger.precision, precise),
            of(trigger.never, trigger.not_triggered()) + &open,
        ];
        table.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    table
}

/// Returns the cases in which the arms differ, effects that are more than chance first; empty if there are none.
pub(super) fn cases(deltas: &[ArmDelta]) -> String {
    let mut table = String::new();
    let mut left = 0;
    let mut rows = 0;
    for wanted in [CaseEffect::Harms, CaseEffect::Helps, CaseEffect::FewerPassed, CaseEffect::MorePassed] {
        for delta in deltas {
            for case in delta.cases.iter().filter(|case| case.effect == wanted) {
                if rows == CASES {
                    left += 1;
                    continue;
                }
                rows += 1;
                let cells = [
                    code(&format!("{}::{}", case.suite, case.case), NAME),
                    code(without_variant(&delta.with), NAME),
                    wanted.words().to_owned(),
                    shown_figures(&case.with),
                    shown_figures(&case.without),
                ];
                table.push_str(&format!("| {} |\n", cells.join(" | ")));
            }
        }
    }
    if table.is_empty() {
        return table;
    }
    let more = if left > 0 { format!("\nand {left} more\n") } else { String::new() };
    let ties = ties(deltas).map_or_else(String::new, |ties| format!("\n{ties}\n"));
    format!(
        "| Case | Configuration | With the skill | With (passed, checks met) | Without (passed, checks met) |\n| --- | --- | --- | --- | --- |\n{table}{more}{ties}"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_begins_with_pass_rates_that_are_not_met() {
        let mut answers = vec!["met"; 60];
        answers[59] = "not_met";
        let table = super::decisions(&crate::decisions::tests::decisions(&answers));
        assert!(table.contains(" --- |\n| `s::c59` | not met |") && table.contains("\nand 10 more cases\n"), "{table}");
    }
}
