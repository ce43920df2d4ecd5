//! `budget`: the trial stayed within its budgets, apart from the limits on turns and on all tokens.

use model::{Budget, Consumption, Ending, OnBudget, Overrun};

use super::prelude::*;

pub(crate) const ASSERTION: Assertion =
    Assertion::implicit("budget", judge).summary("The trial stayed within its budget.").example(
        nothing_written,
        || limited().answer("Done.").used(900, 100, 0),
        || limited().call("Read", json!({"file_path": "README.md"})).used(900, 300, 4000),
    );

fn limited() -> EvidenceBuilder {
    EvidenceBuilder::new().limits(|limits| limits.budgets.output = Some(200.0))
}

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let limits = &evidence.limits;
    if limits.budgets.is_empty() || limits.on_budget == OnBudget::Warn {
        return None;
    }
    let used = counted(evidence);
    let over = limits.budgets.overruns(&used);
    if over.is_empty() {
        let unknown = limits.budgets.unknown(&used);
        return Some(match &evidence.ending {
            Ending::OutOfBudget { budget, limit } if !matches!(budget, Budget::Turns | Budget::Tokens) => {
                let limit = amount(*budget, *limit);
                let reason = format!("a budget of {limit} stopped the agent");
                Verdict::unmet(
                    reason,
                    format!("at most {limit}"),
                    "more than that; the agent did not report the amount",
                )
            }
            _ if unknown.is_empty() => Verdict::met(kept(evidence)),
            _ => Verdict::undecided(unchecked(&unknown)),
        });
    }
    let overruns: Vec<String> = over.iter().map(describe).collect();
    let caps: Vec<String> = over.iter().map(|over| amount(over.budget, over.limit)).collect();
    let used: Vec<String> = over.iter().map(|over| amount(over.budget, over.used)).collect();
    Some(Verdict::unmet(overruns.join("; "), format!("at most {}", format::list(&caps)), format::list(&used)))
}

/// Returns what counts against the budgets. If the clock stopped the trial, `time_budget` reports it.
fn counted(evidence: &Evidence) -> Consumption {
    let used = evidence.counted();
    match evidence.ending {
        Ending::TimedOut { .. } => Consumption { duration_ms: used.duration_ms.map(|_| 0.0), ..used },
        _ => used,
    }
}

/// Describes what was used of each budget.
fn kept(evidence: &Evidence) -> String {
    let of = |(budget, limit, used)| match budget {
        Budget::Duration if matches!(evidence.ending, Ending::TimedOut { .. }) => None,
        _ => Some(format!("{} of {}", amount(budget, used), amount(budget, limit))),
    };
    let parts: Vec<String> = evidence.limits.budgets.used(&evidence.counted()).into_iter().filter_map(of).collect();
    if parts.is_empty() { "no budget was exceeded before the timeout".to_owned() } else { parts.join("; ") }
}

/// Describes budgets that could not be checked.
fn unchecked(unknown: &[(Budget, f64)]) -> String {
    let figures: Vec<&str> = unknown.iter().map(|(budget, _)| figure(*budget)).collect();
    let caps: Vec<String> = unknown.iter().map(|(budget, limit)| amount(*budget, *limit)).collect();
    let (budgets, are) = match figures[..] {
        ["cost" | "time"] => ("a budget of", "is"),
        [_] => ("a budget of", "are"),
        _ => ("budgets of", "are"),
    };
    format!(
        "{budgets} {} could not be checked: the {} of the trial {are} not known",
        format::list(&caps),
        figures.join(" and ")
    )
}

/// Returns the name of the figure that `budget` limits.
fn figure(budget: Budget) -> &'static str {
    match budget {
        Budget::Cost => "cost",
        Budget::Duration => "time",
        _ => budget.describe(),
    }
}

/// Returns a message for each exceeded budget that only warns: those of [`model::Budgets`], and that of all tokens.
pub(crate) fn warned(evidence: &Evidence) -> Vec<String> {
    let limits = &evidence.limits;
    if limits.on_budget != OnBudget::Warn {
        return Vec::new();
    }
    let counted = evidence.counted();
    let used = counted.usage.tokens.map(|tokens| tokens.total() as f64);
    let all = limits.token_budget.filter(|_| limits.tokens_only_warn());
    let over = all.zip(used).filter(|(limit, used)| used > limit);
    let over = over.map(|(limit, used)| Overrun { budget: Budget::Tokens, limit, used });
    // The clock does not stop a trial whose time budget only warns.
    let others = limits.budgets.overruns(&counted);
    let is_over = |budget: Budget| others.iter().any(|over| over.budget == budget);
    let mut unknown = limits.budgets.unknown(&counted);
    unknown.retain(|(budget, _)| !is_over(*budget));
    unknown.extend(
        all.filter(|_| over.is_none() && (used.is_none() || counted.unreported.tokens))
            .map(|limit| (Budget::Tokens, limit)),
    );
    let unchecked = (!unknown.is_empty()).then(|| unchecked(&unknown));
    over.iter().chain(&others).map(describe).chain(unchecked).collect()
}

fn describe(over: &Overrun) -> String {
    let (used, limit) = (amount(over.budget, over.used), amount(over.budget, over.limit));
    format!("{used} used, of a budget of {limit}")
}

fn amount(budget: Budget, amount: f64) -> String {
    match budget {
        Budget::Cost if amount > 0.0 && amount < 0.001 => format!("{amount:.6} USD"),
        Budget::Cost => format!("{amount:.4} USD"),
        Budget::Duration => format!("{:.1} s", amount / 1000.0),
        _ => format!("{} {}", format::thousands(amount), budget.describe()),
    }
}
