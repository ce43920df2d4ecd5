//! Comparison of the result of a situation with the recorded one.

use model::{Detail, Finding, Status};
use serde_json::Value;

use super::judged::Judged;

/// Returns the differences; empty if everything agrees.
pub fn differences(vector: &Value, judged: &[Judged]) -> Vec<String> {
    let recorded = &vector["expect"];
    let mut wrong = Vec::new();
    if recorded.get("runRejected").is_some() {
        if judged.iter().any(|judged| judged.refused.is_empty()) {
            wrong.push("the run is not refused".into());
        }
        return wrong;
    }
    if let Some(logs) = recorded.get("logs").and_then(Value::as_array) {
        if logs.len() != judged.len() {
            return vec![format!("{} cases, recorded {}", judged.len(), logs.len())];
        }
        for (index, (log, judged)) in logs.iter().zip(judged).enumerate() {
            wrong.extend(of_case(vector, log, judged).into_iter().map(|wrong| format!("case {index}: {wrong}")));
        }
        let calls = recorded.get("args").and_then(Value::as_array).into_iter().flatten();
        for call in calls {
            let Some(judged) = call["i"].as_u64().and_then(|index| judged.get(index as usize)) else { continue };
            wrong.extend(of_message(call, judged));
        }
        return wrong;
    }
    match judged {
        [only] => of_case(vector, recorded, only),
        many => vec![format!("{} cases instead of one", many.len())],
    }
}

fn of_case(vector: &Value, recorded: &Value, judged: &Judged) -> Vec<String> {
    let mut wrong = Vec::new();
    let status = recorded["status"].as_str().unwrap_or_default();
    // A situation that was an error at runtime is now rejected before anything runs.
    if status == "error" && !judged.refused.is_empty() {
        return wrong;
    }
    if judged.status != status {
        let refused = judged.refused.join(" | ");
        let found: Vec<&str> = judged.findings.iter().map(|finding| finding.reason.as_str()).collect();
        return vec![format!("{} instead of {status} ({refused}{})", judged.status, found.join(" | "))];
    }
    if status == "error" || status == "skip" {
        return wrong;
    }
    number(&mut wrong, "score", &recorded["score"], judged.score);
    if let Some(most) = recorded.get("maxScore") {
        number(&mut wrong, "maxScore", most, judged.scoring.map(|scoring| scoring.max_score));
    }
    if let Some(least) = recorded.get("passScore") {
        number(&mut wrong, "passScore", least, judged.scoring.map(|scoring| scoring.pass_score));
    }
    let failures: Vec<(String, bool)> = judged
        .findings
        .iter()
        .filter(|finding| finding.status == Status::Unmet)
        .flat_map(|finding| &finding.failures)
        .map(|failure| (failure.key.clone(), failure.critical))
        .collect();
    let was: Vec<(String, bool)> = list(recorded, "failures")
        .iter()
        .map(|failure| {
            let critical = failure.get("critical").and_then(Value::as_bool).unwrap_or_default();
            (failure["key"].as_str().unwrap_or_default().to_owned(), critical)
        })
        .collect();
    if failures != was {
        wrong.push(format!("failures {failures:?} instead of {was:?}"));
    }
    let critical: Vec<&str> =
        judged.findings.iter().flat_map(|finding| &finding.failed_critical).map(String::as_str).collect();
    let was: Vec<&str> = list(recorded, "failedCritical").iter().filter_map(Value::as_str).collect();
    if critical != was {
        wrong.push(format!("failed critical {critical:?} instead of {was:?}"));
    }
    if let Some(parts) = recorded.get("scoreDetails").and_then(Value::as_array) {
        if parts.len() != judged.findings.len() {
            wrong.push(format!("{} parts instead of {}", judged.findings.len(), parts.len()));
        }
        for (part, finding) in parts.iter().zip(&judged.findings) {
            of_part(&mut wrong, part, finding);
        }
    }
    for field in list(vector, "check").iter().filter_map(Value::as_str) {
        of_field(&mut wrong, field, recorded, judged);
    }
    wrong
}

fn of_part(wrong: &mut Vec<String>, part: &Value, finding: &Finding) {
    if part["key"].as_str() != finding.key.as_deref() {
        wrong.push(format!("part {:?} instead of {}", finding.key, part["key"]));
    }
    number(wrong, "part's weight", &part["weight"], Some(finding.weight));
    number(wrong, "part's score", &part["score"], finding.score);
    children(wrong, list(part, "children"), &finding.details);
}

fn children(wrong: &mut Vec<String>, recorded: &[Value], details: &[Detail]) {
    if recorded.len() != details.len() {
        let keys: Vec<&str> = details.iter().map(|detail| detail.key.as_str()).collect();
        let was: Vec<&str> = recorded.iter().filter_map(|detail| detail["key"].as_str()).collect();
        wrong.push(format!("details {keys:?} instead of {was:?}"));
        return;
    }
    for (was, detail) in recorded.iter().zip(details) {
        let key = &detail.key;
        if was["key"].as_str() != Some(key) {
            wrong.push(format!("detail `{key}` instead of {}", was["key"]));
        }
        number(wrong, &format!("weight of `{key}`"), &was["weight"], Some(detail.weight));
        number(wrong, &format!("score of `{key}`"), &was["score"], Some(detail.score));
        if was["passed"].as_bool() != Some(detail.status == Status::Met) {
            wrong.push(format!("`{key}` is {:?} instead of {}", detail.status, was["passed"]));
        }
        for (name, own) in [("title", &detail.title), ("dimension", &detail.dimension)] {
            if was.get(name).and_then(Value::as_str) != own.as_deref() {
                wrong.push(format!("{name} of `{key}` is {own:?} instead of {:?}", was.get(name)));
            }
        }
        if was.get("critical").and_then(Value::as_bool).unwrap_or_default() != detail.critical {
            wrong.push(format!("critical of `{key}` is {}", detail.critical));
        }
        children(wrong, list(was, "children"), &detail.details);
    }
}

fn of_field(wrong: &mut Vec<String>, field: &str, recorded: &Value, judged: &Judged) {
    let Some(was) = recorded.get(field) else { return };
    let own = match field {
        "input" => judged.message.input.clone().unwrap_or_default(),
        "title" => judged.title.clone().map(Value::String).unwrap_or_default(),
        "script" => judged.message.script.clone().map(Value::String).unwrap_or_default(),
        // Neither has tools, however that was written.
        "tools" if !was.is_array() && judged.message.tools.is_empty() => return,
        "tools" => Value::Array(judged.message.tools.clone()),
        "expected" => judged.expected.clone().unwrap_or_default(),
        "reason" => judged.output.as_ref().and_then(report::reason_of).cloned().unwrap_or_default(),
        "args" if was.is_object() => Value::Object(judged.message.vars.clone()),
        // Events are in the same order as in every run, and arguments of several cases are compared call by call.
        _ => return,
    };
    if !same(was, &own) {
        wrong.push(format!("{field} is {own} instead of {was}"));
    }
}

fn of_message(call: &Value, judged: &Judged) -> Vec<String> {
    let mut wrong = Vec::new();
    let vars = Value::Object(judged.message.vars.clone());
    if !same(&call["args"], &vars) {
        wrong.push(format!("args are {vars} instead of {}", call["args"]));
    }
    if let Some(script) = call.get("script")
        && script.as_str() != judged.message.script.as_deref()
    {
        wrong.push(format!("the script is {:?} instead of {script}", judged.message.script));
    }
    wrong
}

fn number(wrong: &mut Vec<String>, what: &str, was: &Value, own: Option<f64>) {
    let agrees = match (was.as_f64(), own) {
        (Some(was), Some(own)) => (was - own).abs() <= 1e-9,
        (None, None) => true,
        _ => false,
    };
    if !agrees {
        wrong.push(format!("{what} {own:?} instead of {was}"));
    }
}

fn same(was: &Value, own: &Value) -> bool {
    match (was, own) {
        (Value::Number(was), Value::Number(own)) => was.as_f64() == own.as_f64(),
        (Value::Array(was), Value::Array(own)) => {
            was.len() == own.len() && was.iter().zip(own).all(|(was, own)| same(was, own))
        }
        (Value::Object(was), Value::Object(own)) => {
            was.len() == own.len() && was.iter().all(|(key, was)| own.get(key).is_some_and(|own| same(was, own)))
        }
        _ => was == own,
    }
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
