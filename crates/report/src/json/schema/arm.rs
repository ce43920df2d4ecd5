//! JSON Schema of arms and of the effect of the skill on them.

use serde_json::{Value, json};

use super::{about, count, interval, list, maybe, object, optional, reference, text};

pub(super) fn arm() -> Value {
    object(json!({
        "arm": text(),
        "agent": text(),
        "model": maybe("string"),
        "variant": maybe("string"),
        "trials": about(count(), "graded trials: passed, failed or undecided; all rates exclude the others"),
        "decided_trials": about(count(), "graded trials in which every assertion was decided"),
        "cases": about(count(), "cases with a graded trial"),
        "broken": count(),
        "undecided": count(),
        "passed_but_undecided": about(count(), "undecided trials in which everything that was decided passes"),
        "skipped": count(),
        "cancelled": count(),
        "pass_rate": about(optional("estimate"), "mean over trials of met / (met + unmet); implicit assertions count only if unmet"),
        "full_pass_rate": about(maybe("number"), "share of `decided_trials` that passed"),
        "full_pass_rate_ci95": interval(),
        "decided_pass_rate": about(maybe("number"), "share of `trials` in which everything that was decided passes"),
        "decided_pass_rate_ci95": interval(),
        "score": about(optional("estimate"), "mean over trials of score / maximum score"),
        "k": about(count(), "least number of decided trials of any case that has one"),
        "pass_at_k": about(maybe("number"), "probability that at least one of k trials passes, averaged over cases"),
        "pass_hat_k": about(maybe("number"), "probability that all of k trials pass, averaged over cases"),
        "pass_at_k_curve": about(list(reference("at_k")), "`pass_at_k` for every k"),
        "pass_hat_k_curve": about(list(reference("at_k")), "`pass_hat_k` for every k"),
        "duration_s": about(optional("estimate"), "working time of the agent"),
        "tokens": optional("estimate"),
        "trials_with_tokens": about(count(), "trials whose tokens are known"),
        "cost_usd": optional("estimate"),
        "trials_with_cost": about(count(), "trials whose cost is known"),
        "trigger": about(optional("trigger"), "how often the skill was used; `null` if no case says whether it should be"),
    }))
}

pub(super) fn trigger() -> Value {
    object(json!({
        "precision": about(maybe("number"), "hits / (hits + false alarms)"),
        "precision_ci95": interval(),
        "recall": about(maybe("number"), "hits / (hits + misses)"),
        "recall_ci95": interval(),
        "never": about(maybe("number"), "share of trials in which the skill was not used"),
        "never_ci95": interval(),
        "hits": about(count(), "the skill should have been used, and was"),
        "misses": about(count(), "the skill should have been used, and was not"),
        "false_alarms": about(count(), "the skill should not have been used, and was"),
        "rejections": about(count(), "the skill should not have been used, and was not"),
        "unknown": about(count(), "unknown; excluded from all rates"),
    }))
}

pub(super) fn delta() -> Value {
    object(json!({
        "agent": text(),
        "model": maybe("string"),
        "with": about(text(), "the arm with the skill"),
        "without": about(text(), "the arm without the skill"),
        "pairs": about(count(), "cases with a graded trial in both arms"),
        "cases_unpaired": about(count(), "cases that are excluded because an arm has no graded trial of them"),
        "pass_rate": about(maybe("number"), "difference of the mean of met / (met + unmet); 0.5 is 50 percentage points"),
        "ci95": interval(),
        "p_value": about(maybe("number"), "p-value of the exact sign-flip test for `pass_rate`"),
        "cases": about(count(), "cases that `pass_rate`, `ci95` and `p_value` are based on"),
        "least_p_value": about(maybe("number"), "smallest p-value that is possible with this number of cases"),
        "full_pass_rate": about(maybe("number"), "difference of the share of trials that passed"),
        "full_pass_rate_ci95": interval(),
        "full_pass_rate_p_value": maybe("number"),
        "decided_pass_rate": about(maybe("number"), "difference of the share of trials in which everything that was decided passes"),
        "decided_pass_rate_ci95": interval(),
        "decided_pass_rate_p_value": maybe("number"),
        "duration_s": about(maybe("number"), "difference of the working time of the agent"),
        "duration_s_ci95": interval(),
        "tokens": maybe("number"),
        "tokens_ci95": interval(),
        "cost_usd": maybe("number"),
        "cost_usd_ci95": interval(),
        "by_suite": about(list(reference("suite_delta")), "differences by suite, because a run can test several skills"),
        "by_case": list(reference("case_delta")),
    }))
}

pub(super) fn suite_delta() -> Value {
    object(json!({
        "suite": text(),
        "with": about(maybe("number"), "mean of met / (met + unmet) over trials with the skill"),
        "without": about(maybe("number"), "the same over trials without the skill"),
        "pairs": count(),
        "cases_unpaired": count(),
        "pass_rate": about(maybe("number"), "difference, paired by case"),
        "ci95": interval(),
        "p_value": maybe("number"),
        "least_p_value": maybe("number"),
        "full_pass_rate": maybe("number"),
        "decided_pass_rate": maybe("number"),
        "duration_s": maybe("number"),
        "tokens": maybe("number"),
        "cost_usd": maybe("number"),
        "trigger": optional("trigger"),
    }))
}

pub(super) fn case_delta() -> Value {
    object(json!({
        "suite": text(),
        "case": text(),
        "with": reference("case_figures"),
        "without": reference("case_figures"),
        "skill": {
            "enum": ["helps", "harms", "same"],
            "description": "`helps`: with the skill more trials pass, or as many pass and more assertions are met",
        },
    }))
}
