use serde_json::{Value, json};

use crate::reported;
use crate::run_builder::{many_jobs, one_job};

fn document(events: &[model::Envelope]) -> Value {
    serde_json::from_str(&reported("json", events, |_| {})).unwrap()
}

#[test]
fn a_report_is_suggested_by_a_similar_name_or_by_its_extension() {
    for (written, meant) in
        [("markdwon", "markdown"), ("md", "markdown"), ("out.md", "markdown"), ("junit.xml", "junit")]
    {
        assert_eq!(report::nearest(written), Some(meant));
    }
    assert_eq!((report::nearest("results.xml"), report::nearest("pdf")), (Some("junit"), None));
}

#[test]
fn a_table_names_its_arms_only_if_there_are_several() {
    let heads = |events: &[model::Envelope]| {
        let page = reported("markdown", events, |_| {});
        page.lines().find(|line| line.contains("Cases |")).unwrap().to_owned()
    };
    assert!(heads(&one_job().events).starts_with("| Cases | Trials passed |"));
    assert!(heads(&many_jobs().events).starts_with("| Arm | Cases | Trials passed |"));
}

#[test]
fn the_json_report_has_the_documented_fields() {
    let document = document(&one_job().events);
    assert_eq!(document["schema"], "trialrun.report/1");
    let has = |value: &Value, fields: &str| {
        for field in fields.split_whitespace() {
            assert!(value.get(field).is_some(), "`{field}` is missing in {value}");
        }
    };
    has(&document, "schema run summary arms deltas hooks trials");
    has(
        &document["run"],
        "id label regrade_of started_at finished_at duration_ms trialrun_version settings agents skills",
    );
    has(&document["run"]["agents"][0], "name version model reasoning_effort base_url");
    has(&document["run"]["skills"][0], "name version content_hash");
    has(
        &document["summary"],
        "trials baseline passed failed undecided broken skipped cancelled flaky pass_rate tokens cost_usd trials_with_tokens \
         trials_with_cost baseline_tokens baseline_cost_usd judge_usage judge_cost_usd user_usage user_cost_usd",
    );
    has(&document["summary"]["tokens"], "input cache_read cache_write output reasoning total");
    has(
        &document["arms"][0],
        "arm agent model variant trials pass_rate full_pass_rate k pass_at_k pass_hat_k duration_s tokens cost_usd trigger",
    );
    has(&document["arms"][0]["pass_rate"], "mean stddev ci95");
    let trial = &document["trials"][1];
    has(
        trial,
        "id suite case title arm agent model variant repetition outcome flaky fault because ending score max_score \
         pass_score failed_critical dimensions findings scores input answer expected reason script tools vars messages \
         turn_count tool_calls questions usage cost_usd cost_usd_cli cost_source triggered should_trigger \
         side_effects judge_usage judge_cost_usd user_usage user_cost_usd duration_ms session_id attempts files_changed errors output not position",
    );
    has(&trial["tool_calls"][0], "name raw_name input result is_error turn");
    has(&trial["attempts"][0], "outcome because usage cost_usd duration_ms");
    has(&trial["files_changed"][0], "path change");
    let finding = &trial["findings"][1];
    has(
        finding,
        "id type title status claim method score weight critical dimension because expected actual evidence error \
         latency_ms captures source at key details failures",
    );
    has(&finding["source"], "file line column");
    has(&trial["findings"][0]["captures"][0], "field value shown_chars step");
    assert_eq!(trial["usage"]["total"], 1290);
    assert_eq!((&finding["source"]["line"], &finding["status"]), (&json!(31), &json!("unmet")));
}

#[test]
fn unknown_numbers_are_null() {
    let document = document(&one_job().events);
    let broken = &document["trials"][2];
    assert_eq!((&broken["outcome"], &broken["fault"]), (&json!("broken"), &json!("provider")));
    for field in ["usage", "cost_usd", "score", "max_score", "judge_cost_usd", "user_usage", "user_cost_usd"] {
        assert_eq!(broken[field], Value::Null, "{field}");
    }
    assert_eq!(document["summary"]["trials_with_cost"], 2);
    assert_eq!(document["summary"]["tokens"]["reasoning"], Value::Null);
    // One passed, one failed, and the broken one could have done either.
    let rates = ["pass_rate_min", "pass_rate", "pass_rate_max"].map(|rate| document["summary"][rate].clone());
    assert_eq!(rates, [json!(1.0 / 3.0), Value::Null, json!(2.0 / 3.0)]);
}

#[test]
fn trials_are_in_the_planned_order() {
    let events = many_jobs().events;
    let ids = |document: &Value| -> Vec<String> {
        document["trials"].as_array().unwrap().iter().map(|trial| trial["id"].as_str().unwrap().to_owned()).collect()
    };
    let ordered = ids(&document(&events));
    assert_eq!(ordered[2], "commit::splits-in-two@claude-code:sonnet#1");
    assert_eq!(ordered[3], "commit::splits-in-two@claude-code:sonnet#2");
    let failures = reported("json", &events, |options| options.failures_only = true);
    let failures: Value = serde_json::from_str(&failures).unwrap();
    assert_eq!(ids(&failures), [ordered[2].clone()]);
    assert_eq!(failures["summary"]["trials"], 4, "omitted trials are still counted");
}

#[test]
fn an_interrupted_run_has_no_end_time() {
    let mut events = one_job().events;
    events.pop();
    let document = document(&events);
    assert_eq!(document["run"]["finished_at"], Value::Null);
    assert_eq!((&document["run"]["planned"], &document["summary"]["trials"]), (&json!(3), &json!(3)));
}

#[test]
fn json_lines_contain_the_events_unchanged() {
    let events = one_job().events;
    let lines = reported("jsonl", &events, |_| {});
    let read: Vec<model::Envelope> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, events);
}

#[test]
fn the_schema_covers_every_field_of_a_report_and_requires_no_others() {
    let schema = report::report_schema();
    for events in [one_job().events, many_jobs().events] {
        agree(&document(&events), &schema, &schema, "report");
    }
}

/// Validates `value` against the subset of JSON Schema that the report's schema uses.
pub fn agree(value: &Value, schema: &Value, root: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/$defs/").unwrap();
        return agree(value, &root["$defs"][name], root, at);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let chosen = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return agree(value, chosen.unwrap_or_else(|| panic!("{at}: {value} fits no choice")), root, at);
    }
    if let Some(allowed) = schema["enum"].as_array() {
        assert!(allowed.contains(value), "{at}: {value} is not one of {allowed:?}");
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(value, constant, "{at}");
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |name: &Value| name == kind || (name == "number" && kind == "integer");
    match &schema["type"] {
        Value::Array(kinds) => assert!(kinds.iter().any(fits), "{at}: {kind} is not one of {kinds:?}"),
        Value::Null => {}
        one => assert!(fits(one), "{at}: {kind} is not {one}"),
    }
    if let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object()) {
        for (name, field) in fields {
            let field_schema = known.get(name).unwrap_or_else(|| panic!("{at}: the schema does not know `{name}`"));
            agree(field, field_schema, root, &format!("{at}.{name}"));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(fields.contains_key(name.as_str().unwrap()), "{at}: {name} is missing");
        }
    }
    if let (Some(items), Some(item)) = (value.as_array(), schema.get("items")) {
        for value in items {
            agree(value, item, root, &format!("{at}[]"));
        }
    }
}
