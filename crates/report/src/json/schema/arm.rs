//! JSON Schema of arms and of the effect of the skill on them.

use serde_json::{Value, json};

use super::{about, count, interval, list, maybe, object, optional, reference, text};

pub(super) fn arm() -> Value {
    object(json!({
        "arm": text(),
        "agent": text(),
        "model": maybe("string"),
        "variant": maybe("string"),
        "trials": about(count(), "how many were graded: passed, failed or undecided; the others are in no figure"),
        "decided_trials": about(count(), "how many of them have nothing undecided"),
        "cases": about(count(), "how many cases have a graded trial"),
        "broken": count(),
        "undecided": count(),
        "passed_but_undecided": about(count(), "how many of `undecided` passed but for what is undecided"),
        "skipped": count(),
        "cancelled": count(),
        "pass_rate": about(optional("estimate"), "over trials, of met / (met + unmet); what nobody wrote counts only where it is not met"),
        "full_pass_rate": about(maybe("number"), "the share of `decided_trials` that passed"),
        "full_pass_rate_ci95": interval(),
        "decided_pass_rate": about(maybe("number"), "the share of `trials` in which everything that was decided passes"),
        "decided_pass_rate_ci95": interval(),
        "score": about(optional("estimate"), "over trials, of the share of the most there is to score"),
        "k": about(count(), "how many decided trials every case has that has one"),
        "pass_at_k": about(maybe("number"), "the chance that at least one of k passes, averaged over cases"),
        "pass_hat_k": about(maybe("number"), "the chance that all of k pass, averaged over cases"),
        "pass_at_k_curve": about(list(reference("at_k")), "the first of these for every k"),
        "pass_hat_k_curve": about(list(reference("at_k")), "the second of these for every k"),
        "duration_s": about(optional("estimate"), "the agent's own time"),
        "tokens": optional("estimate"),
        "trials_with_tokens": about(count(), "how many trials' tokens are known"),
        "cost_usd": optional("estimate"),
        "trials_with_cost": about(count(), "how many trials' cost is known"),
        "trigger": about(optional("trigger"), "how the skill triggered; `null` where no case says whether it should"),
    }))
}

pub(super) fn trigger() -> Value {
    object(json!({
        "precision": about(maybe("number"), "hits / (hits + false alarms)"),
        "precision_ci95": interval(),
        "recall": about(maybe("number"), "hits / (hits + misses)"),
        "recall_ci95": interval(),
        "never": about(maybe("number"), "the share of trials in which the skill never triggered"),
        "never_ci95": interval(),
        "hits": about(count(), "it was to trigger and did"),
        "misses": about(count(), "it was to trigger and did not"),
        "false_alarms": about(count(), "it was not to trigger and did"),
        "rejections": about(count(), "it was not to trigger and did not"),
        "unknown": about(count(), "nobody can say; in no denominator"),
    }))
}

pub(super) fn delta() -> Value {
    object(json!({
        "agent": text(),
        "model": maybe("string"),
        "with": about(text(), "the arm that has the skill; every difference is this one's figure minus the other's"),
        "without": about(text(), "the arm that lacks it"),
        "pairs": about(count(), "how many cases have a graded trial in both arms"),
        "cases_unpaired": about(count(), "how many cases are left out because an arm has no graded trial of them"),
        "pass_rate": about(maybe("number"), "of met / (met + unmet), as a share: 0.5 is 50 points"),
        "ci95": interval(),
        "p_value": about(maybe("number"), "how likely chance alone makes a difference so large: the exact sign-flip test"),
        "cases": about(count(), "how many cases these three are made of"),
        "least_p_value": about(maybe("number"), "the least p-value that so many cases can have"),
        "full_pass_rate": about(maybe("number"), "of the share of trials that passed"),
        "full_pass_rate_ci95": interval(),
        "full_pass_rate_p_value": maybe("number"),
        "decided_pass_rate": about(maybe("number"), "of the share of trials in which everything that was decided passes"),
        "decided_pass_rate_ci95": interval(),
        "decided_pass_rate_p_value": maybe("number"),
        "duration_s": about(maybe("number"), "of the agent's own time"),
        "duration_s_ci95": interval(),
        "tokens": maybe("number"),
        "tokens_ci95": interval(),
        "cost_usd": maybe("number"),
        "cost_usd_ci95": interval(),
        "by_suite": about(list(reference("suite_delta")), "a run may test several skills"),
        "by_case": list(reference("case_delta")),
    }))
}

pub(super) fn suite_delta() -> Value {
    object(json!({
        "suite": text(),
        "with": about(maybe("number"), "over trials with the skill, the mean of met / (met + unmet)"),
        "without": about(maybe("number"), "the same without it"),
        "pairs": count(),
        "cases_unpaired": count(),
        "pass_rate": about(maybe("number"), "how far they are apart, paired by case"),
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
            "description": "`helps`: more trials pass with it, or as many do and more of what they assert holds",
        },
    }))
}
