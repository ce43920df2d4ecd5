//! Generation with scripted models: what is admitted, rejected and reported.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};

use llm::{Block, BoxFuture, Model, ProviderError, Reply, Request, Script, ScriptContext};
use model::{Node, Outcome, Source};
use serde_json::{Value, json};
use tokio::sync::Notify;
use trialrun_generate::{
    ExistingTest, Fact, Generated, GenerationError, GenerationRequest, Host, Profile, Progress, RenderedTest, ToolFact,
    Tryout, distribute, find_category, find_format, generate,
};

/// Records what is written. An adversary passes tests that contain `WEAK`; for tests that contain `UNSTABLE`, the
/// agent both passes and fails.
#[derive(Default)]
struct Bench {
    saved: Mutex<Vec<String>>,
    steps: Mutex<Vec<String>>,
    is_full: bool,
}

impl Host for Bench {
    fn audit<'a>(&'a self, test: &'a RenderedTest) -> BoxFuture<'a, Result<Vec<String>, String>> {
        let is_weak = test.text.contains("WEAK");
        Box::pin(std::future::ready(Ok(is_weak.then(|| "`parrot` passes it".to_owned()).into_iter().collect())))
    }

    fn try_out<'a>(&'a self, test: &'a RenderedTest) -> BoxFuture<'a, Result<Option<Tryout>, String>> {
        let second = if test.text.contains("UNSTABLE") { Outcome::Failed } else { Outcome::Passed };
        let outcomes = vec![Outcome::Passed, second];
        Box::pin(std::future::ready(Ok(Some(Tryout { outcomes, ..Tryout::default() }))))
    }

    fn save(&self, test: &RenderedTest) -> Result<String, String> {
        if self.is_full {
            return Err("cannot write: no space left on device".to_owned());
        }
        self.saved.lock().unwrap().push(test.slug.clone());
        Ok(format!("{}.test.ts", test.slug))
    }

    fn progress(&self, progress: &Progress<'_>) {
        self.steps.lock().unwrap().push(match progress {
            Progress::Planned(count) => format!("planned {count}"),
            Progress::Admitted(test) => format!("admitted {}", test.name),
            Progress::Rejected(test) => format!("rejected {}: {}", test.name, test.reasons.join("; ")),
        });
    }
}

fn shop() -> Profile {
    Profile {
        tools: vec![ToolFact { name: "lookup_order".to_owned(), ..ToolFact::default() }],
        constraints: vec![Fact { text: "Never promise a date.".to_owned(), evidence: Vec::new() }],
        ..Profile::default()
    }
}

fn planned(category: &str, name: &str, covers: &[&str]) -> Value {
    json!({ "category": category, "name": name, "why": "It matters.", "covers": covers, "situation": "A customer asks.",
            "success": [], "failure": [] })
}

fn written(says: &str, text: &str) -> Value {
    json!({ "role": "", "tone": "", "files": [], "turns": [{ "says": says, "assertions": [
        { "type": "contains", "value": text, "tool": "", "arguments": [], "path": "" },
        { "type": "tool_called", "value": "", "tool": "lookup_order", "arguments": [], "path": "" },
    ] }] })
}

/// Generates with a model that gives these answers one after another.
async fn generated(
    answers: &[Value],
    count: usize,
    host: &Bench,
    existing: &[ExistingTest],
    budget: Option<f64>,
) -> Result<Generated, GenerationError> {
    let steps: Vec<Value> = answers
        .iter()
        .map(
            |answer| if answer.get("fault").is_some() { answer.clone() } else { json!({ "text": answer.to_string() }) },
        )
        .collect();
    let script = json!({ "steps": steps });
    let script = Script::from_node(&Node::from_json(&script, &Source::new("script.json", ""))).unwrap();
    let model = Arc::new(script).play(ScriptContext::default());
    let profile = shop();
    let categories = [find_category("happy").unwrap(), find_category("edge").unwrap()];
    let request = GenerationRequest {
        profile: &profile,
        skill: None,
        quotas: distribute(count, &categories, &[]),
        format: find_format("ts").unwrap(),
        seed: 0,
        budget,
        existing,
        in_order: true,
    };
    generate(&request, &model, host, std::future::pending()).await
}

fn two() -> Value {
    json!({ "tests": [planned("happy", "finds an order", &["tool:lookup_order"]), planned("edge", "invents no date", &["constraint:1"])] })
}

#[tokio::test]
async fn admitted_tests_are_written_in_the_order_of_the_plan() {
    let host = Bench::default();
    let answers = [two(), written("Where is A-1?", "Friday"), written("When?", "unknown")];
    let generated = generated(&answers, 2, &host, &[], None).await.unwrap();
    assert_eq!(*host.saved.lock().unwrap(), ["happy-finds-an-order", "edge-invents-no-date"]);
    assert_eq!(*host.steps.lock().unwrap(), ["planned 2", "admitted finds an order", "admitted invents no date"]);
    let covered: Vec<(&str, usize)> =
        generated.coverage.iter().map(|one| (one.target.id.as_str(), one.tests.len())).collect();
    assert_eq!(covered, [("tool:lookup_order", 1), ("constraint:1", 1)]);
    assert_eq!((generated.usage.requests, generated.planned, generated.is_stopped), (3, 2, false));
}

#[tokio::test]
async fn a_rejected_test_is_written_once_more_with_the_reason() {
    let host = Bench::default();
    let weak = written("Where is A-1?", "WEAK");
    let answers = [two(), weak.clone(), written("Where is A-1?", "Friday"), weak.clone(), weak];
    let generated = generated(&answers, 2, &host, &[], None).await.unwrap();
    assert_eq!(*host.saved.lock().unwrap(), ["happy-finds-an-order"]);
    assert_eq!(generated.rejected[0].reasons, ["`parrot` passes it"]);
    assert!(!generated.rejected[0].is_trouble);
}

#[tokio::test]
async fn after_an_invalid_answer_the_request_is_repeated_once_and_the_test_left_out() {
    let host = Bench::default();
    let code = json!({ "code": "import fs from 'fs'" });
    let answers = [json!("no plan"), two(), code.clone(), code, json!({}), written("When?", "unknown")];
    let generated = generated(&answers, 2, &host, &[], None).await.unwrap();
    assert_eq!(*host.saved.lock().unwrap(), ["edge-invents-no-date"]);
    assert!(generated.rejected[0].reasons[0].contains("missing field `role`"), "{:?}", generated.rejected);
}

#[tokio::test]
async fn a_test_that_checks_the_same_is_a_duplicate_whatever_its_words() {
    let host = Bench::default();
    let plan = json!({ "tests": [planned("happy", "finds an order", &["tool:lookup_order"]), planned("edge", "looks it up", &["tool:lookup_order"])] });
    let answers = [plan, written("Where is A-1?", "Friday"), written("Could you find A-1, please?", "FRIDAY!")];
    let generated = generated(&answers, 2, &host, &[], None).await.unwrap();
    assert_eq!(generated.admitted.len(), 1);
    assert_eq!(generated.rejected[0].reasons, ["checks the same as `finds an order`"]);
}

#[tokio::test]
async fn tests_that_exist_are_not_written_again() {
    let host = Bench::default();
    let existing = [
        ExistingTest { name: "happy-finds-an-order".to_owned(), text: String::new() },
        ExistingTest {
            name: "edge-other".to_owned(),
            text: "// Covers Never promise a date. (a.md:1)\nagent.send(\"When?\")".to_owned(),
        },
    ];
    let answers = [two(), written("When?", "unknown")];
    let generated = generated(&answers, 2, &host, &existing, None).await.unwrap();
    assert_eq!(generated.admitted, []);
    let reasons: Vec<&str> = generated.rejected.iter().map(|test| test.reasons[0].as_str()).collect();
    assert_eq!(reasons, ["`happy-finds-an-order` exists already", "checks the same as `edge-other`"]);
    let covered = generated.coverage.iter().find(|one| one.target.id == "constraint:1").unwrap();
    assert_eq!(covered.tests, ["edge-other"]);
}

#[tokio::test]
async fn a_test_with_different_outcomes_for_the_same_agent_is_rejected() {
    let host = Bench::default();
    let answers = [two(), written("Where is A-1?", "UNSTABLE"), written("When?", "unknown")];
    let generated = generated(&answers, 2, &host, &[], None).await.unwrap();
    assert_eq!(generated.rejected[0].reasons, ["unstable with the same agent: passed, failed"]);
    assert_eq!(generated.admitted[0].outcomes, [Outcome::Passed, Outcome::Passed]);
}

#[tokio::test]
async fn a_failing_provider_is_not_the_fault_of_a_test() {
    let host = Bench::default();
    let busy = json!({ "fault": { "kind": "http", "status": 429, "message": "slow down" } });
    let failed = generated(std::slice::from_ref(&busy), 2, &host, &[], None).await.unwrap_err();
    assert!(failed.to_string().contains("slow down"), "{failed}");
    let answers = [two(), written("Where is A-1?", "Friday"), busy];
    let generated = generated(&answers, 2, &host, &[], None).await.unwrap();
    assert_eq!(generated.admitted.len(), 1);
    assert!(generated.rejected[0].is_trouble && generated.rejected[0].reasons[0].contains("slow down"));
}

#[tokio::test]
async fn a_budget_needs_a_known_price() {
    let host = Bench::default();
    let failed = generated(&[two()], 2, &host, &[], Some(1.0)).await.unwrap_err();
    assert_eq!(failed, GenerationError::UnknownCost);
    let failed = generated(&[two()], 2, &host, &[], Some(0.0)).await.unwrap_err();
    assert_eq!(failed, GenerationError::NoPlan("the budget is used up".to_owned()));
}

#[tokio::test]
async fn a_full_disk_ends_the_generation() {
    let host = Bench { is_full: true, ..Bench::default() };
    let answers = [two(), written("Where is A-1?", "Friday"), written("When?", "unknown")];
    let failed = generated(&answers, 2, &host, &[], None).await.unwrap_err();
    assert_eq!(failed.to_string(), "cannot write: no space left on device");
}

#[tokio::test]
async fn a_stop_keeps_what_was_written() {
    let host = Bench::default();
    let hang = json!({ "fault": { "kind": "hang" } });
    let steps = [two(), written("Where is A-1?", "Friday"), hang];
    let steps: Vec<Value> = steps
        .iter()
        .map(
            |answer| if answer.get("fault").is_some() { answer.clone() } else { json!({ "text": answer.to_string() }) },
        )
        .collect();
    let script =
        Script::from_node(&Node::from_json(&json!({ "steps": steps }), &Source::new("script.json", ""))).unwrap();
    let model = Arc::new(script).play(ScriptContext::default());
    let profile = shop();
    let categories = [find_category("happy").unwrap(), find_category("edge").unwrap()];
    let request = GenerationRequest {
        profile: &profile,
        skill: None,
        quotas: distribute(2, &categories, &[]),
        format: find_format("ts").unwrap(),
        seed: 0,
        budget: None,
        existing: &[],
        in_order: true,
    };
    let stop = async {
        while host.saved.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let generated = generate(&request, &model, &host, stop).await.unwrap();
    assert!(generated.is_stopped);
    assert_eq!(*host.saved.lock().unwrap(), ["happy-finds-an-order"]);
}

/// A model that answers each request according to its content, however many arrive at the same time.
struct Concurrent {
    plan: Value,
    /// Name of the test for which no answer is ever given.
    silent: &'static str,
    /// Name of the test that is answered when the signal is given.
    late: &'static str,
    signal: Notify,
    /// Cost of a plan and of a test, in US dollars.
    cost_usd: [Option<f64>; 2],
    asked: Mutex<usize>,
}

impl Concurrent {
    fn of(plan: Value) -> Self {
        Self {
            plan,
            silent: "",
            late: "",
            signal: Notify::new(),
            cost_usd: [Some(0.25), Some(0.25)],
            asked: Mutex::default(),
        }
    }
}

impl Model for Concurrent {
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        *self.asked.lock().unwrap() += 1;
        let is_plan = request.response_schema.as_ref().is_some_and(|schema| schema.name == "plan");
        let asked = request.user_text();
        let planned = asked
            .split_once("The planned test: ")
            .map_or(Value::Null, |(_, planned)| serde_json::from_str(planned).unwrap());
        let name = planned["name"].as_str().unwrap_or_default().to_owned();
        if !self.silent.is_empty() && name == self.silent {
            return Box::pin(std::future::pending());
        }
        let answer = if is_plan { self.plan.clone() } else { written(&format!("Please do: {name}"), &name) };
        let reply = Reply {
            content: vec![Block::Text { text: answer.to_string() }],
            cost_usd: self.cost_usd[usize::from(!is_plan)],
            ..Reply::default()
        };
        let is_late = !self.late.is_empty() && name == self.late;
        Box::pin(async move {
            if is_late {
                self.signal.notified().await;
            }
            Ok(reply)
        })
    }
}

/// Generates a test for each name with that model, until `stop`.
async fn concurrently(
    model: &Concurrent,
    host: &Bench,
    budget: Option<f64>,
    stop: impl Future<Output = ()>,
) -> Generated {
    let profile = shop();
    let count = model.plan["tests"].as_array().unwrap().len();
    let request = GenerationRequest {
        profile: &profile,
        skill: None,
        quotas: vec![(find_category("happy").unwrap(), count)],
        format: find_format("ts").unwrap(),
        seed: 0,
        budget,
        existing: &[],
        in_order: false,
    };
    generate(&request, model, host, stop).await.unwrap()
}

fn three() -> Value {
    let test = |name| planned("happy", name, &["tool:lookup_order"]);
    json!({ "tests": [test("one"), test("two"), test("three")] })
}

#[tokio::test]
async fn a_stop_keeps_tests_that_are_finished_behind_one_that_is_not() {
    let (host, model) = (Bench::default(), Concurrent { silent: "one", late: "three", ..Concurrent::of(three()) });
    // One test finishes at the moment of the stop, and its future must not be polled again after it is ready.
    let stop = async {
        while *model.asked.lock().unwrap() < 4 {
            tokio::task::yield_now().await;
        }
        model.signal.notify_one();
    };
    let generated = concurrently(&model, &host, None, stop).await;
    assert!(generated.is_stopped);
    assert_eq!(*host.saved.lock().unwrap(), ["happy-two", "happy-three"]);
}

#[tokio::test]
async fn no_request_is_sent_that_could_exceed_the_budget() {
    let (host, model) = (Bench::default(), Concurrent::of(three()));
    let generated = concurrently(&model, &host, Some(0.6), std::future::pending()).await;
    assert_eq!((*model.asked.lock().unwrap(), generated.admitted.len()), (2, 1));
    assert_eq!(generated.usage.cost_usd, Some(0.5));
    let reasons: Vec<&str> = generated.rejected.iter().map(|test| test.reasons[0].as_str()).collect();
    assert_eq!(reasons, ["the budget is used up"; 2]);
}

#[tokio::test]
async fn a_budget_is_not_lost_when_the_cost_of_a_reply_is_unknown() {
    let host = Bench::default();
    let model = Concurrent { cost_usd: [Some(0.25), None], ..Concurrent::of(three()) };
    let generated = concurrently(&model, &host, Some(0.6), std::future::pending()).await;
    assert_eq!(*model.asked.lock().unwrap(), 2);
    assert!(generated.rejected.iter().all(|test| test.is_trouble), "{:?}", generated.rejected);
}
