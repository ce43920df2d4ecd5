//! Tests with judges that answer, fail and disagree.

mod batch;
mod cache;
mod injections;
mod preference;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use llm::{Block, BoxFuture, Credentials, Model, Opened, Policy, Prices, ProviderError, Providers, Reply, Request};
use model::{AssertionScope, AssertionSpec, AuxiliaryUsage, Case, Excerpt, Finding, Status, Tokens};
use serde_json::{Value, json};

use super::*;
use crate::check::{Check, compile, grade};
use crate::consult::consult;
use crate::context::Context;
use crate::example::EvidenceBuilder;
use crate::self_test::spec_of;
use crate::yaml;

/// Returns the checks of one assertion.
pub(super) fn checks(assertion: &Value) -> Vec<Check> {
    let spec: AssertionSpec = spec_of(yaml::list_item(assertion, "case.yaml")).unwrap();
    let mut case = Case::new("case", Excerpt::of_file("case.yaml"));
    case.assertions.push(spec);
    let (checks, problems) = compile(&case, &Context::default());
    assert_eq!(problems, [], "{assertion}");
    checks
}

/// Returns the findings of `checks` after `judge` is asked, and the usage.
pub(super) async fn judge_with(
    checks: &[Check],
    evidence: &Evidence,
    judge: &Judge,
) -> (Vec<Finding>, Option<AuxiliaryUsage>) {
    let mut findings = grade(checks, evidence);
    let took = consult(checks, evidence, Ok(judge), &mut findings).await;
    (findings, took)
}

/// Model that returns its answers in turn, repeats the last one, and keeps the requests.
struct Answers {
    answers: Mutex<Vec<Result<Reply, ProviderError>>>,
    asked: Mutex<Vec<Request>>,
}

impl Model for Answers {
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        self.asked.lock().unwrap().push(request.clone());
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        let sealed = answer.map(|reply| {
            let text = reply.text().replace("SEAL", seal(request));
            Reply { content: vec![Block::Text { text }], ..reply }
        });
        Box::pin(std::future::ready(sealed))
    }
}

fn seal(request: &Request) -> &str {
    let Some(Block::Text { text }) = request.messages[0].content.first() else { panic!("no text") };
    text.split_once("Its `seal` is `").unwrap().1.split('`').next().unwrap()
}

fn says(rows: &Value) -> Result<Reply, ProviderError> {
    let text = json!({"seal": "SEAL", "answers": rows}).to_string();
    let tokens = Some(Tokens { input: 100, output: 10, ..Tokens::default() });
    Ok(Reply { content: vec![Block::Text { text }], tokens, cost_usd: Some(0.25), ..Reply::default() })
}

fn score(score: u64) -> Result<Reply, ProviderError> {
    says(&json!([{"id": "c1", "quote": "It is done", "reasoning": "Because.", "score": score}]))
}

fn verdict(verdict: &str) -> Result<Reply, ProviderError> {
    says(&json!([{"id": "c1", "quote": "It is done", "reasoning": "Because.", "verdict": verdict}]))
}

fn model(answers: Vec<Result<Reply, ProviderError>>) -> Arc<Answers> {
    Arc::new(Answers { answers: Mutex::new(answers), asked: Mutex::default() })
}

fn done() -> Evidence {
    EvidenceBuilder::new().asks("Do it.").answer("It is done.").evidence()
}

fn scored() -> Vec<Check> {
    checks(&json!({"id": "a", "type": "llm_judge", "criteria": "Is it done?", "threshold": 3}))
}

fn ruled() -> Vec<Check> {
    checks(&json!({"id": "a", "type": "guardrail", "must_not": "be rude"}))
}

async fn judged(
    checks: &[Check],
    answers: Vec<Result<Reply, ProviderError>>,
    panel: usize,
) -> (Finding, AuxiliaryUsage, usize) {
    let model = model(answers);
    let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>).panel(panel);
    let (mut findings, took) = judge_with(checks, &done(), &judge).await;
    let asked = model.asked.lock().unwrap().len();
    (findings.remove(0), took.unwrap(), asked)
}

#[tokio::test]
async fn scores_are_compared_with_the_threshold_and_usage_is_reported() {
    let (finding, took, _) = judged(&scored(), vec![score(4)], 1).await;
    assert_eq!((finding.status, finding.score, finding.judged), (Status::Met, Some(0.75), true));
    assert_eq!(finding.reason, "4 of 5: Because.");
    assert_eq!((took.requests, took.cost_usd, took.tokens.unwrap().total()), (1, Some(0.25), 110));
    let (finding, ..) = judged(&scored(), vec![score(2)], 1).await;
    assert_eq!((finding.status, finding.score), (Status::Unmet, Some(0.25)));
    assert_eq!(finding.actual.as_deref(), Some("\"It is done\""));
}

#[tokio::test]
async fn a_panel_decides_by_its_majority_or_its_mean_and_shows_the_agreement() {
    let (finding, took, _) = judged(&scored(), vec![score(5), score(3), score(2)], 3).await;
    assert_eq!((finding.status, took.requests), (Status::Met, 3));
    assert!(finding.reason.starts_with("3.33 of 5 (5, 3 and 2)"), "{}", finding.reason);
    let (finding, ..) = judged(&ruled(), vec![verdict("violated"), verdict("met"), verdict("violated")], 3).await;
    assert_eq!(finding.status, Status::Unmet);
    assert!(finding.reason.ends_with("(2 of 3)"), "{}", finding.reason);
    let (finding, ..) = judged(&ruled(), vec![verdict("violated"), verdict("met")], 2).await;
    assert_eq!((finding.status, finding.reason.as_str()), (Status::Undecided, "the judges do not agree"));
    let (finding, ..) = judged(&ruled(), vec![verdict("met"), says(&json!("nonsense"))], 3).await;
    assert_eq!(finding.reason, "1 of 3 judges gave a verdict, which does not decide");
    let own = checks(&json!({"id": "a", "type": "guardrail", "must_not": "be rude", "judges": 2}));
    let (_, took, _) = judged(&own, vec![verdict("met")], 5).await;
    assert_eq!(took.requests, 2, "the number of the assertion takes precedence");
}

#[tokio::test]
async fn an_expected_tone_is_met_regardless_of_its_score() {
    let checks = checks(&json!({"id": "a", "type": "sentiment", "expected": "calm"}));
    let says = |verdict: &str, score: u64| {
        vec![says(&json!([{"id": "c1", "quote": "It is done", "reasoning": "", "verdict": verdict, "score": score}]))]
    };
    for (verdict, score, status) in [
        ("met", 1, Status::Met),
        ("violated", 3, Status::Met),
        ("violated", 2, Status::Unmet),
        ("cannot_tell", 5, Status::Undecided),
    ] {
        let (finding, ..) = judged(&checks, says(verdict, score), 1).await;
        assert_eq!(finding.status, status, "{verdict} {score}");
    }
}

#[tokio::test]
async fn a_quote_that_does_not_exist_is_requested_again_and_then_undecided() {
    let made_up = || says(&json!([{"id": "c1", "quote": "made up", "reasoning": "", "verdict": "violated"}]));
    let (finding, took, asked) = judged(&ruled(), vec![made_up(), verdict("violated")], 1).await;
    assert_eq!((finding.status, took.requests, asked), (Status::Unmet, 2, 2));
    let (finding, took, asked) = judged(&ruled(), vec![made_up()], 1).await;
    assert_eq!((finding.status, took.requests, asked), (Status::Undecided, 2, 2));
    assert!(finding.error.unwrap().contains("not in the agent's own parts"));
}

#[tokio::test]
async fn a_failing_judge_is_retried_once_and_a_panel_continues_without_it() {
    let cut = || Err(ProviderError::Cut);
    let (finding, _, asked) = judged(&ruled(), vec![cut(), verdict("met")], 1).await;
    assert_eq!((finding.status, asked), (Status::Met, 2));
    let (finding, took, asked) = judged(&ruled(), vec![cut()], 1).await;
    assert_eq!((finding.status, asked, took.requests), (Status::Undecided, 2, 0));
    assert!(finding.reason.starts_with("the judge fake did not return a verdict: "), "{}", finding.reason);
    let gone = Err(ProviderError::Exhausted { message: "no more steps".into() });
    let (finding, _, asked) = judged(&ruled(), vec![gone.clone()], 1).await;
    assert_eq!((finding.status, asked), (Status::Undecided, 1), "asking again would give the same result");
    let (finding, ..) = judged(&ruled(), vec![gone.clone(), verdict("met"), verdict("met")], 3).await;
    assert_eq!(finding.status, Status::Met, "two of three are enough");
    assert!(finding.evidence.iter().any(|line| line.contains("no more steps")));
    let (finding, ..) = judged(&ruled(), vec![gone, verdict("met"), verdict("violated")], 3).await;
    assert_eq!(finding.status, Status::Undecided);
    assert!(finding.error.unwrap().contains("no more steps"));
}

#[tokio::test]
async fn without_a_judge_findings_have_a_reason_and_others_are_decided() {
    let checks = checks(&json!({"id": "a", "type": "output_is_question"}));
    for (answer, status) in
        [("Which one?", Status::Met), ("Done. Anything else?", Status::Undecided), ("", Status::Unmet)]
    {
        let evidence = EvidenceBuilder::new().answer(answer).evidence();
        let mut findings = grade(&checks, &evidence);
        let took = consult(&checks, &evidence, Err("no key is set"), &mut findings).await;
        assert_eq!((findings[0].status, took), (status, None), "{answer}");
        if status == Status::Undecided {
            assert_eq!(findings[0].error.as_deref(), Some("no key is set"));
        }
    }
}

#[tokio::test]
async fn the_judge_sees_the_calls_and_has_no_tools() {
    let model = model(vec![verdict("met")]);
    let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>);
    let evidence = EvidenceBuilder::new().call("brew", json!({"leaf": "oolong"})).answer("It is done.").evidence();
    judge_with(&ruled(), &evidence, &judge).await;
    let asked = model.asked.lock().unwrap();
    let prompt = asked[0].first_user_text().unwrap();
    assert!(prompt.contains("brew {\"leaf\":\"oolong\"}"), "{prompt}");
    assert!(asked[0].system_text().contains("the agent must not: be rude") && asked[0].tools.is_empty());
    assert_eq!(asked[0].temperature, Some(0.0));
}

#[tokio::test]
async fn the_judge_is_told_if_calls_are_not_reported() {
    for (is_reported, evidence) in [
        (true, EvidenceBuilder::new().asks("Do it.").answer("It is done.").evidence()),
        (false, EvidenceBuilder::new().asks("Do it.").calls_unreported().answer("It is done.").evidence()),
        (false, EvidenceBuilder::new().asks("Do it.").calls_missing("no spans").answer("It is done.").evidence()),
    ] {
        let model = model(vec![verdict("met")]);
        let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>);
        judge_with(&ruled(), &evidence, &judge).await;
        let asked = model.asked.lock().unwrap();
        assert_eq!(asked[0].system_text().contains("does not show all tool calls"), !is_reported);
        let shown = Material::from_evidence(&evidence).text();
        assert_eq!(shown.contains("does not report completely which tools it called"), !is_reported, "{shown}");
    }
}

#[tokio::test]
async fn a_question_about_calls_is_undecided_if_they_are_not_reported() {
    let unreported = || EvidenceBuilder::new().asks("Do it.").calls_unreported().answer("It is done.").evidence();
    let reason = "the reply does not say completely which tools were called";
    for (mut assertion, answer) in [
        (json!({"type": "rubric", "criteria": ["It is efficient."]}), verdict("met")),
        (json!({"type": "llm_judge", "criteria": "It is efficient."}), score(5)),
    ] {
        assertion["id"] = json!("a");
        for needs_calls in [false, true] {
            assertion["needs_calls"] = json!(needs_calls);
            let model = model(vec![answer.clone()]);
            let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>);
            let (found, _) = judge_with(&checks(&assertion), &unreported(), &judge).await;
            let status = if needs_calls { Status::Undecided } else { Status::Met };
            assert_eq!(found[0].status, status, "{assertion}");
            assert_eq!(found[0].reason.starts_with(reason), needs_calls, "{assertion}: {}", found[0].reason);
            assert_eq!(model.asked.lock().unwrap().len(), usize::from(!needs_calls), "{assertion}");
            let (found, _) = judge_with(&checks(&assertion), &done(), &judge).await;
            assert_eq!(found[0].status, Status::Met, "{assertion}");
        }
    }
}

#[tokio::test]
async fn a_rating_is_about_the_last_reply_or_the_whole_conversation() {
    for (all_replies, task) in
        [(false, "Judge the agent's last reply"), (true, "each of its replies, not just the last")]
    {
        let model = model(vec![score(5)]);
        let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>);
        let assertion = json!({"id": "a", "type": "llm_judge", "criteria": "It is kind.", "all_replies": all_replies});
        let (found, _) = judge_with(&checks(&assertion), &done(), &judge).await;
        assert_eq!(found[0].status, Status::Met);
        let asked = model.asked.lock().unwrap();
        let told = |task: &str| asked[0].system[0].contains(task);
        assert!(told(task) && told("c1: It is kind."), "{}", asked[0].system[0]);
        assert_eq!(told("Judge the agent's last reply"), !all_replies);
    }
}

#[tokio::test]
async fn a_scripted_judge_is_asked_sequentially() {
    let both = [ruled(), scored()].concat();
    let unsealed = |answer: Result<Reply, ProviderError>| {
        answer.map(|reply| {
            let text = reply.text().replace("SEAL", "");
            Reply { content: vec![Block::Text { text: format!("```json\n{text}\n```") }], ..reply }
        })
    };
    let model = model(vec![unsealed(verdict("met")), unsealed(score(5))]);
    let judge = Judge::new("script", model as Arc<dyn Model>).of_a_script();
    let (findings, _) = judge_with(&both, &done(), &judge).await;
    assert!(findings.iter().all(|finding| finding.status == Status::Met), "{findings:#?}");
}

/// Server that returns the same answer to every request during its lifetime.
struct Server {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn saying(answer: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (closed, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (closing, serving) = (Arc::clone(&closed), Arc::clone(&served));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if closing.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                if read_request(&mut stream).is_some() {
                    serving.fetch_add(1, Ordering::SeqCst);
                    let _ = stream.write_all(&answer);
                }
            }
        });
        Self { address, closed, served, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Reads one request including its body.
fn read_request(stream: &mut TcpStream) -> Option<()> {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&read).to_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            let wanted = head.len() + 4 + length.unwrap_or(0);
            if read.len() >= wanted {
                return Some(());
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(more) => read.extend_from_slice(&piece[..more]),
        }
    }
}

fn http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

fn completion(content: &str, finish: &str) -> String {
    let message = json!({"role": "assistant", "content": content});
    json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    })
    .to_string()
}

/// Key that must not appear in any text.
const CANARY: &str = "sk-canary-0123456789abcdef";

fn opened(address: &str) -> Arc<dyn Model> {
    let soon = Duration::from_millis(500);
    let timeouts = llm::Timeouts { connect: soon, first_byte: soon, ..llm::Timeouts::default() };
    let policy = Policy { timeouts, tries: 2, first_wait: Duration::ZERO, stream: false, ..Policy::default() };
    let credentials = Credentials::default().with("COMPATIBLE_API_KEY", CANARY);
    let providers = Providers::new(credentials, Prices::default(), policy);
    match providers.open("compatible:m", Some(address), &|_| Err(Vec::new())).unwrap() {
        Opened::Model(model) => model,
        Opened::Script(_) => panic!("no script was asked for"),
    }
}

#[tokio::test]
async fn every_provider_failure_leaves_an_undecided_finding_without_secrets() {
    let whole = http("200 OK", &completion("{\"answers\": []}", "stop"));
    let cut = whole[..whole.len() - 40].to_vec();
    let key = format!("no such key: {CANARY}");
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "storm",
            http("429 Too Many Requests\r\nretry-after: 0", "{\"error\": {\"message\": \"slow\"}}"),
            "rate limit",
        ),
        ("500", http("500 Internal Server Error", &json!({"error": {"message": key}}).to_string()), "provider failed"),
        ("401", http("401 Unauthorized", &json!({"error": {"message": key}}).to_string()), "key was not accepted"),
        ("cut", cut, "closed in the middle"),
        ("garbage", http("200 OK", &format!("<html>{CANARY}</html>")), "web page"),
        ("prose", http("200 OK", &completion("I would say it is fine.", "stop")), "does not have the requested form"),
        ("wrong form", http("200 OK", &completion("{\"answers\": 5}", "stop")), "does not have the requested form"),
        ("no seal", http("200 OK", &completion("{\"seal\": \"\", \"answers\": []}", "stop")), "`seal`"),
        ("refusal", http("200 OK", &completion("I can't help with that.", "content_filter")), "declined"),
        ("too long", http("200 OK", &completion("{\"answers\": [", "length")), "token limit"),
        ("nothing", Vec::new(), "closed"),
    ];
    for (name, answer, reason) in cases {
        let server = Server::saying(answer);
        let judge = Judge::new("compatible:m", opened(&format!("http://{}", server.address)));
        let (findings, took) = judge_with(&ruled(), &done(), &judge).await;
        let text = format!("{:?} {took:?}", findings[0]);
        assert_eq!((findings[0].status, findings[0].score), (Status::Undecided, None), "{name}: {text}");
        assert!(findings[0].error.as_deref().unwrap().contains(reason), "{name}: {text}");
        assert!(!text.contains("canary"), "{name}: {text}");
        let served = server.served.load(Ordering::SeqCst);
        assert!((1..=4).contains(&served), "{name}: {served} requests");
    }
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let judge = Judge::new("compatible:m", opened(&format!("http://{nobody}")));
    let (findings, _) = judge_with(&ruled(), &done(), &judge).await;
    assert!(findings[0].error.as_deref().unwrap().contains("cannot be reached"), "{:?}", findings[0]);
}

#[tokio::test]
async fn an_unavailable_judge_is_detected_once_per_run() {
    let breaker = Arc::new(Breaker::default());
    let page = Server::saying(http("200 OK", "<!doctype html><p>Welcome</p>"));
    for trial in 0..5 {
        let judge = Judge::new("compatible:m", opened(&format!("http://{}", page.address)));
        let (findings, _) = judge_with(&ruled(), &done(), &judge.with_breaker(Arc::clone(&breaker))).await;
        let reason = &findings[0].reason;
        assert!(reason.contains("returned a web page") && reason.contains("base URL"), "{reason}");
        assert_eq!(reason.contains("is no longer used"), trial > 0, "{reason}");
    }
    assert_eq!(page.served.load(Ordering::SeqCst), 1);

    // The server accepts the connection and does not answer.
    let (breaker, silent) = (Arc::new(Breaker::default()), TcpListener::bind("127.0.0.1:0").unwrap());
    for trial in 0..3 {
        let judge = Judge::new("compatible:m", opened(&format!("http://{}", silent.local_addr().unwrap())));
        let (findings, _) = judge_with(&ruled(), &done(), &judge.with_breaker(Arc::clone(&breaker))).await;
        let reason = &findings[0].reason;
        assert!(reason.contains("the response did not start within"), "{reason}");
        assert_eq!(reason.contains("is no longer used"), trial > 0, "{reason}");
    }
    silent.set_nonblocking(true).unwrap();
    assert_eq!(silent.incoming().take_while(Result::is_ok).count(), 1, "asked once");

    let (breaker, busy) = (Arc::new(Breaker::default()), model(vec![Err(ProviderError::Cut)]));
    for _ in 0..10 {
        let judge = Judge::new("fake", Arc::clone(&busy) as Arc<dyn Model>).with_breaker(Arc::clone(&breaker));
        judge_with(&ruled(), &done(), &judge).await;
    }
    assert_eq!(busy.asked.lock().unwrap().len(), 3 * 2, "three questions, each retried once");
}

#[tokio::test]
async fn criteria_about_absent_content_can_be_met() {
    let rubric = checks(&json!({"id": "a", "type": "rubric", "criteria": ["does not promise a date"]}));
    let row = json!([{"id": "c1", "quote": "", "absent": true, "reasoning": "No date.", "verdict": "met"}]);
    let (finding, _, asked) = judged(&rubric, vec![says(&row)], 1).await;
    assert_eq!((finding.status, asked), (Status::Met, 1), "{finding:?}");
    let scored = checks(&json!({"id": "a", "type": "llm_judge", "criteria": "Does it promise no date?"}));
    let row = json!([{"id": "c1", "quote": "", "reasoning": "No date.", "score": 5}]);
    let (finding, _, asked) = judged(&scored, vec![says(&row)], 1).await;
    assert_eq!((finding.status, asked), (Status::Met, 1), "{finding:?}");
}

#[tokio::test]
async fn a_model_that_rejects_a_temperature_is_asked_without_one() {
    use llm::{Failure, FailureKind};
    let failure =
        Failure { message: "Unsupported value: 'temperature'".into(), ..Failure::new(FailureKind::BadRequest, "") };
    let refused = Err(ProviderError::Failed(Box::new(failure)));
    let model = model(vec![refused, verdict("met")]);
    let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>);
    let (findings, _) = judge_with(&ruled(), &done(), &judge).await;
    assert_eq!(findings[0].status, Status::Met);
    let asked: Vec<Option<f64>> = model.asked.lock().unwrap().iter().map(|request| request.temperature).collect();
    assert_eq!(asked, [Some(0.0), None]);
}

#[test]
fn every_form_of_a_judged_assertion_asks_the_same_question() {
    use model::Arguments::{self, Brief, Listed};
    use model::decode::Problems;
    use model::{Span, Spanned};

    let node = |value: &Value| yaml::list_item(value, "case.yaml");
    let asked = |kind: &str, arguments: Arguments| {
        let spec = AssertionSpec {
            node: node(&Value::Null),
            arguments,
            about: AssertionScope::Trial,
            id: "a".into(),
            kind: Spanned::new(kind.to_owned(), Span::default()),
            weight: 1.0,
        };
        let mut problems = Problems::new();
        let check = Check::compile(&spec, &Context::default(), &mut problems);
        assert_eq!(problems, [], "{kind}");
        let check = check.unwrap();
        let question = check.judged().unwrap().question(&done()).unwrap();
        request::content(&question)
    };
    for (brief, code, in_brief, in_code) in [
        ("sentiment", "sentiment", json!("helpful"), vec![json!("helpful")]),
        (
            "llm_judge",
            "llmJudge",
            json!({"criteria": "Is it?", "threshold": 3, "scale": 5}),
            vec![json!({"criteria": "Is it?", "threshold": 3, "scale": 5})],
        ),
        ("llm_judge", "llmJudge", json!("Is it?"), vec![json!({"criteria": "Is it?"})]),
        (
            "guardrail",
            "guardrail",
            json!({"must_not": ["shout"], "must": "greet"}),
            vec![json!({"mustNot": ["shout"], "must": ["greet"]})],
        ),
        (
            "factuality",
            "factuality",
            json!({"ground_truth": "It is so.", "context": "Is it?"}),
            vec![json!({"groundTruth": "It is so.", "context": "Is it?"})],
        ),
        ("rubric", "rubric", json!(["a", "b"]), vec![json!(["a", "b"])]),
        ("rubric", "rubric", json!({"criteria": ["a"], "at_least": 1}), vec![json!(["a"]), json!({"atLeast": 1})]),
        ("output_is_question", "outputIsQuestion", json!(false), vec![json!(false)]),
    ] {
        let brief = asked(brief, Brief(node(&in_brief)));
        assert_eq!(brief, asked(code, Listed(in_code.iter().map(node).collect())), "{code}");
    }
}

#[tokio::test]
async fn withheld_values_are_not_sent_and_the_sent_text_can_be_quoted() {
    let row = json!([{"id": "c1", "quote": "the key is [masked]", "reasoning": "Because.", "score": 5}]);
    let model = model(vec![says(&row)]);
    let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>);
    let judge = judge.withholding(Box::new(|text| text.replace("s3cret", "[masked]")));
    let evidence = EvidenceBuilder::new().asks("Tell s3cret.").answer("the key is s3cret").evidence();
    let (findings, _) = judge_with(&scored(), &evidence, &judge).await;
    assert_eq!(findings[0].status, Status::Met, "{}", findings[0].reason);
    assert!(!format!("{:?}", model.asked.lock().unwrap()).contains("s3cret"));
}
