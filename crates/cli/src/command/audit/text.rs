//! The audit as text.

use std::collections::BTreeMap;

use audit::{Audit, SuiteAudit};
use model::Outcome;
use report::columns::{padded, widest};
use report::counted;

/// Formats the table of suites, and lists the cases that were not audited.
pub fn text(audit: &Audit, verbose: bool) -> String {
    let mut text = String::new();
    if verbose {
        audit.suites.iter().for_each(|suite| text.push_str(&details(suite)));
    }
    let header = ["suite", "cases", "adversaries rejected", "assertions that can fail", "mutations noticed", "score"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let part = |part: usize, of: usize| if of == 0 { "-".to_owned() } else { format!("{part} of {of}") };
    for suite in &audit.suites {
        rows.push(vec![
            suite.name.clone(),
            suite.cases.len().to_string(),
            part(suite.rejected, suite.adversary_trials),
            part(suite.able_to_fail, suite.assertions),
            part(suite.noticed, suite.mutations),
            percent(suite.score),
        ]);
    }
    let widths: Vec<usize> = (0..header.len()).map(|at| widest(rows.iter().map(|row| &row[at]))).collect();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| padded(cell, *width)).collect();
        text.push_str(&format!("{}\n", cells.join("  ").trim_end()));
    }
    let cases = || audit.suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (suite, case)));
    for (suite, case) in cases() {
        if let Some(reason) = &case.not_audited {
            text.push_str(&format!("not audited: {}::{}: {reason}\n", suite.name, case.id));
        }
    }
    let judged = cases().filter(|(_, case)| !case.left_to_judge.is_empty()).count();
    if judged > 0 {
        text.push_str(&format!(
            "{} on a judge alone, and an audit does not ask judges\n",
            counted_verb(judged, "case", "depends", "depend")
        ));
    }
    let mut unmutated: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in cases().filter_map(|(_, case)| case.not_mutated.as_deref()) {
        *unmutated.entry(reason).or_default() += 1;
    }
    for (reason, count) in unmutated {
        text.push_str(&format!("no mutations of {}: {reason}\n", counted(count, "case")));
    }
    if !audit.hacks.is_empty() {
        let tried = audit.hacks.iter().filter(|hack| hack.outcome.is_graded());
        let passed = tried.clone().filter(|hack| hack.outcome == Outcome::Passed).count();
        text.push_str(&format!("hacks: {passed} of {} passed\n", counted(tried.count(), "attempt")));
        for hack in audit.hacks.iter().filter(|hack| !hack.outcome.is_graded()) {
            let (outcome, reason) = (hack.outcome.name(), hack.reason.as_deref().unwrap_or("the reason is not known"));
            text.push_str(&format!("no hack: {}::{}@{}: {outcome}: {reason}\n", hack.suite, hack.case, hack.arm));
        }
    }
    let errors = audit.weaknesses.iter().filter(|weakness| weakness.diagnostic.is_error()).count();
    let warnings = audit.weaknesses.len() - errors;
    let [all, left_out] = [cases().count(), cases().filter(|(_, case)| case.not_audited.is_some()).count()];
    let of_cases = match left_out {
        0 => String::new(),
        _ if audit.score.is_none() => String::new(),
        _ => format!(" of {} of {}", all - left_out, counted(all, "case")),
    };
    let found = match (errors, warnings) {
        (0, 0) if audit.score.is_none() => "nothing was audited".to_owned(),
        (0, 0) if judged > 0 => "no weakness found in what is decided without a judge".to_owned(),
        (0, 0) => "no weakness found".to_owned(),
        (0, _) => counted(warnings, "warning"),
        (_, 0) => counted(errors, "error"),
        _ => format!("{} and {}", counted(errors, "error"), counted(warnings, "warning")),
    };
    text + &format!("score {}{of_cases}: {found}\n", percent(audit.score))
}

fn counted_verb(count: usize, noun: &str, one: &str, more: &str) -> String {
    format!("{} {}", counted(count, noun), if count == 1 { one } else { more })
}

fn percent(score: Option<f64>) -> String {
    score.map_or_else(|| "-".to_owned(), |score| format!("{:.0}%", (score * 100.0).floor()))
}

/// Formats each case with the adversaries that pass it and those that do not, and its assertions with the causes that
/// made them fail.
fn details(suite: &SuiteAudit) -> String {
    let mut text = String::new();
    for case in &suite.cases {
        text.push_str(&format!("{}::{}  {}:{}\n", suite.name, case.id, case.file, case.line));
        for (result, names) in [
            ("passed by", &case.passed_by),
            ("left to a judge for", &case.left_to_judge),
            ("not passed by", &case.rejected),
        ] {
            if !names.is_empty() {
                text.push_str(&format!("  {result}: {}\n", names.join(", ")));
            }
        }
        for assertion in &case.assertions {
            let result = match (&assertion.undecided, assertion.failed_for.as_slice()) {
                (Some(reason), _) => format!("not decided: {reason}"),
                (None, []) => "never fails".to_owned(),
                (None, causes) => format!("fails for {}", causes.join(", ")),
            };
            text.push_str(&format!("  {} ({}): {result}\n", assertion.id, assertion.kind));
        }
        if !case.unnoticed.is_empty() {
            text.push_str(&format!("  mutations that no assertion noticed: {}\n", case.unnoticed.join(", ")));
        }
        text.push('\n');
    }
    text
}
