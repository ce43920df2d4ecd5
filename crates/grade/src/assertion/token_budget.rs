//! `token_budget`: the agent stayed within its token limit.

use model::{Budget, Ending};

use super::prelude::*;

pub(crate) const ASSERTION: Assertion =
    Assertion::implicit("token_budget", judge).summary("The agent used no more tokens than its budget.").example(
        nothing_written,
        || limited(1234.0).answer("Done.").used(1000, 200, 34),
        || limited(1000.0).call("Read", json!({"file_path": "README.md"})).used(900, 300, 4000),
    );

fn limited(tokens: f64) -> EvidenceBuilder {
    EvidenceBuilder::new().limits(|limits| {
        limits.token_budget = Some(tokens);
        limits.token_budget_from = Some("scenario".into());
    })
}

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let budget = evidence.limits.token_budget.filter(|_| !evidence.limits.tokens_only_warn())?;
    let whose = match evidence.limits.token_budget_from.as_deref() {
        Some("scenario") => "the scenario's `token_budget`".to_owned(),
        Some("skill") => "the skill's `token-budget`".to_owned(),
        Some(setting) => format!("`{setting}`"),
        None => "the budget".to_owned(),
    };
    let limit = format::thousands(budget);
    let stopped = matches!(evidence.ending, Ending::OutOfBudget { budget: Budget::Tokens, .. });
    let counted = evidence.counted();
    let Some(tokens) = counted.usage.tokens else {
        return Some(if stopped {
            let reason = format!("{whose} of {limit} tokens stopped the agent");
            Verdict::unmet(
                reason,
                format!("at most {limit} tokens"),
                "more than that; the agent did not report the number",
            )
        } else {
            Verdict::undecided(format!("the agent did not report its tokens; {whose} is {limit}"))
        });
    };
    let total = tokens.total() as f64;
    let used = format::thousands(total);
    if total <= budget && !stopped {
        return Some(match counted.unreported.tokens {
            false => Verdict::met(format!("{used} of {limit} tokens")),
            true => Verdict::undecided(format!(
                "the agent reported {used} tokens, but not all that it used; {whose} is {limit}"
            )),
        });
    }
    let reason = format!("{used} tokens exceed {whose} of {limit}");
    let parts = [
        ("input", tokens.input),
        ("output", tokens.output),
        ("written to a cache", tokens.cache_write),
        ("read from a cache", tokens.cache_read),
    ];
    let parts: Vec<String> =
        parts.iter().map(|(name, count)| format!("{} {name}", format::thousands(*count as f64))).collect();
    let verdict = Verdict::unmet(reason, format!("at most {limit} tokens"), format!("{used} tokens"));
    Some(verdict.evidence([parts.join(", ")]))
}
