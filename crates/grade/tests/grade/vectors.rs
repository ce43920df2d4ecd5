//! Compares assertions with recorded verdicts. Intended differences are listed with their reasons.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use model::{
    AssertionSpec, Case, Claim, Collected, Ending, Evidence, Excerpt, Finding, Node, Question, Source, Status, Step,
    Tokens, ToolCall, Trace, Usage, UserMessage,
};
use serde_json::{Value, json};
use testkit::vectors::compare;
use trialrun_grade::{Context, compile, grade, score};

const ASSERTIONS: &str = include_str!("../vectors/assertions.jsonl");
const IMPLICIT: &str = include_str!("../vectors/implicit.jsonl");
const REGEX: &str = include_str!("../vectors/regex.jsonl");
const WEIGHTED: &str = include_str!("../vectors/weighted.jsonl");
const BASE_TRACE: &str = include_str!("../vectors/base_trace.json");
const DIFFERENCES: &str = include_str!("../vectors/differences.json");

/// Home directory of the recorded verdicts.
const HOME: &str = "/home/u";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn evidence(trace: &Value) -> Evidence {
    let mut steps = Vec::new();
    for (turn, recorded) in trace["turns"].as_array().unwrap().iter().enumerate() {
        for call in recorded["toolCalls"].as_array().unwrap() {
            let (id, name) = (text(&call["id"]), text(&call["name"]));
            steps.push(Step::ToolCall(ToolCall::new(id, name, call["input"].clone(), format!("message-{turn}"))));
        }
    }
    let tokens = |key: &str| trace["cost"][key].as_u64().unwrap();
    let tokens = Tokens {
        input: tokens("inputTokens"),
        output: tokens("outputTokens"),
        cache_write: tokens("cacheCreationTokens"),
        cache_read: tokens("cacheReadTokens"),
        reasoning: None,
    };
    steps.push(Step::Finished {
        subtype: "success".into(),
        is_error: false,
        usage: Usage { tokens: Some(tokens), cost_usd: None },
        text: Some(text(&trace["finalOutput"])),
        result: None,
    });
    Evidence {
        trace: Trace::of(&steps),
        collected: Collected {
            sandbox: trace["runner"]["sandboxPath"].as_str().map(str::to_owned),
            home: Some(HOME.into()),
            ..Collected::default()
        },
        ending: Ending::Finished,
        limits: Arc::default(),
        unused_responses: Vec::new(),
        agent_ms: None,
    }
}

fn case(assertion: &Value) -> Case {
    let source = Source::new("vector.yaml", "");
    let node = Node::from_json(assertion, &source);
    let kind = node.get("type").unwrap();
    let spec = AssertionSpec {
        id: text(&assertion["id"]),
        kind: model::Spanned::new(text(&assertion["type"]), kind.span),
        weight: 1.0,
        node,
        arguments: model::Arguments::Fields,
        about: model::AssertionScope::Trial,
    };
    Case {
        messages: vec![UserMessage::text("Begin.")],
        assertions: vec![spec],
        ..Case::new("vector", Excerpt::of_file("vector.yaml"))
    }
}

fn verdict(status: Status) -> Value {
    match status {
        Status::Met => json!(true),
        Status::Unmet => json!(false),
        Status::Undecided => json!("undecided"),
    }
}

/// Returns every assertion vector: its name, the recorded result and the current result.
fn assertion_vectors() -> Vec<(String, Value, Value)> {
    let base: Value = serde_json::from_str(BASE_TRACE).unwrap();
    lines(ASSERTIONS)
        .into_iter()
        .map(|vector| {
            let trace = if vector["traceRef"] == "base" { &base } else { &vector["traceRef"] };
            let (checks, problems) = compile(&case(&vector["assertion"]), &Context::default());
            let now = if problems.iter().any(model::Diagnostic::is_error) {
                json!("refused")
            } else {
                let finding = grade(&checks, &evidence(trace)).remove(0);
                if let Some(captures) = vector["result"]["captures"].as_array() {
                    assert_captures(&finding, captures);
                }
                verdict(finding.status)
            };
            (format!("assertion: {}", text(&vector["label"])), vector["result"]["pass"].clone(), now)
        })
        .collect()
}

/// Asserts that recorded captures equal the shown part of ours, which are complete.
fn assert_captures(finding: &Finding, recorded: &[Value]) {
    assert_eq!(finding.captures.len(), recorded.len(), "{}", finding.id);
    for (capture, recorded) in finding.captures.iter().zip(recorded) {
        let (shown, cut) = capture.shown();
        let whole = capture.value.encode_utf16().count();
        let ours = json!({"field": capture.field, "value": shown, "truncated": cut, "originalLength": whole});
        assert_eq!(&ours, recorded, "{}", finding.id);
    }
}

fn implicit_vectors() -> Vec<(String, Value, Value)> {
    let base: Value = serde_json::from_str(BASE_TRACE).unwrap();
    lines(IMPLICIT)
        .into_iter()
        .map(|vector| {
            let mut evidence = evidence(&base);
            let given = &vector["overrides"];
            for _ in 0..given["unanswered"].as_u64().unwrap() {
                let question = json!({"call_id": null, "question": "Which?", "answer": null, "response": null});
                evidence.trace.push(&Step::Question(serde_json::from_value::<Question>(question).unwrap()));
            }
            let budgets = [("scenarioBudget", "scenario"), ("skillBudget", "skill")];
            let budget = budgets.into_iter().find_map(|(key, from)| Some((given[key].as_f64()?, from)));
            let limits = Arc::make_mut(&mut evidence.limits);
            limits.token_budget = budget.map(|(tokens, _)| tokens);
            limits.token_budget_from = budget.map(|(_, from)| from.to_owned());
            let now = grade(&[], &evidence).iter().map(|it| json!([it.id, verdict(it.status)])).collect();
            let recorded =
                vector["results"].as_array().unwrap().iter().map(|it| json!([it["id"], it["pass"]])).collect();
            (format!("implicit: {}", text(&vector["label"])), Value::Array(recorded), Value::Array(now))
        })
        .collect()
}

fn regex_vectors() -> Vec<(String, Value, Value)> {
    lines(REGEX)
        .into_iter()
        .map(|vector| {
            let recorded = match vector.get("error") {
                Some(_) => json!("refused"),
                None => json!([vector["source"], vector["flags"]]),
            };
            let now = match script::Regex::parse(vector["pattern"].as_str().unwrap()) {
                Ok(regex) => json!([regex.source(), regex.flags()]),
                Err(_) => json!("refused"),
            };
            (format!("regex: {}", text(&vector["pattern"])), recorded, now)
        })
        .collect()
}

fn weighted_vectors() -> Vec<(String, Value, Value)> {
    let finding = |result: &Value| Finding {
        id: "a".into(),
        kind: "a".into(),
        title: None,
        status: if result["pass"] == true { Status::Met } else { Status::Unmet },
        claim: Claim::Declared,
        score: result["score"].as_f64().or_else(|| result["pass"].as_bool().map(|pass| f64::from(u8::from(pass)))),
        weight: result["weight"].as_f64().unwrap_or(1.0),
        reason: String::new(),
        expected: None,
        actual: None,
        evidence: Vec::new(),
        error: None,
        captures: Vec::new(),
        source: None,
        at: None,
        implicit: false,
        masked: None,
        latency_ms: None,
        judgement: None,
        judged: false,
        key: None,
        dimension: None,
        failed_critical: Vec::new(),
        leeway: None,
        details: Vec::new(),
        failures: Vec::new(),
    };
    let weighted = |vector: &Value| {
        let findings: Vec<Finding> = vector["results"].as_array().unwrap().iter().map(finding).collect();
        let (sum, weights) = score(&findings);
        json!(if weights > 0.0 { sum / weights } else { 1.0 })
    };
    lines(WEIGHTED)
        .into_iter()
        .enumerate()
        .map(|(index, vector)| (format!("weighted: {}", index + 1), json!(vector["score"].as_f64()), weighted(&vector)))
        .collect()
}

#[test]
fn every_vector_matches_or_is_listed_with_a_reason() {
    let vectors = [assertion_vectors(), implicit_vectors(), regex_vectors(), weighted_vectors()].concat();
    compare("assertion vectors", DIFFERENCES, &vectors);
}
