//! `budget`: the trial stayed within its budgets, apart from the limits on turns and on all tokens.

use model::{Budget, Ending, OnBudget, Overrun};

use super::prelude::*;

pub(super) const ASSERTION: Assertion =
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
    let over = overruns(evidence);
    if over.is_empty() {
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
            _ => Verdict::met("the trial stayed within its budget"),
        });
    }
    let overruns: Vec<String> = over.iter().map(describe).collect();
    let caps: Vec<String> = over.iter().map(|over| amount(over.budget, over.limit)).collect();
    let used: Vec<String> = over.iter().map(|over| amount(over.budget, over.used)).collect();
    Some(Verdict::unmet(overruns.join("; "), format!("at most {}", format::list(&caps)), format::list(&used)))
}

/// Returns the budgets that the trial exceeded. The time budget is enforced by the clock, and is not checked here.
fn overruns(evidence: &Evidence) -> Vec<Overrun> {
    let usage = evidence.counted();
    evidence.limits.budgets.overruns(usage.tokens, usage.cost_usd, None)
}

/// Returns a message for each exceeded budget that only warns: those of [`model::Budgets`], and that of all tokens.
pub(crate) fn warned(evidence: &Evidence) -> Vec<String> {
    let limits = &evidence.limits;
    if limits.on_budget != OnBudget::Warn {
        return Vec::new();
    }
    let usage = evidence.counted();
    let used = usage.tokens.map(|tokens| tokens.total() as f64);
    let all = limits.token_budget.filter(|_| limits.tokens_only_warn()).zip(used).filter(|(limit, used)| used > limit);
    let all = all.map(|(limit, used)| Overrun { budget: Budget::Tokens, limit, used });
    // The clock does not stop a trial whose time budget only warns.
    let others = limits.budgets.overruns(usage.tokens, usage.cost_usd, evidence.agent_ms().map(|ms| ms as f64));
    all.iter().chain(&others).map(describe).collect()
}

fn describe(over: &Overrun) -> String {
    let (used, limit) = (amount(over.budget, over.used), amount(over.budget, over.limit));
    format!("{used} used, of a budget of {limit}")
}

fn amount(budget: Budget, amount: f64) -> String {
    match budget {
        Budget::Cost => format!("{amount:.4} USD"),
        Budget::Duration => format!("{:.1} s", amount / 1000.0),
        _ => format!("{} {}", format::thousands(amount), budget.describe()),
    }
}
