//! Models on the network: fake ones, and scripted ones behind a real endpoint on loopback.

use std::sync::Mutex;

use serde_json::json;

use super::super::*;
use crate::tests::harness::AgentHarness;

/// A model that gives prepared answers and reports steps along the way.
struct Distant {
    answers: Mutex<Vec<Result<Reply, llm::ProviderError>>>,
    steps: Mutex<Vec<Step>>,
    stirred: tokio::sync::Notify,
}

impl Distant {
    fn endpoint(answers: Vec<Result<Reply, llm::ProviderError>>) -> Endpoint {
        let retry = Step::Retry { attempt: 1, status: Some(429), error: "slow down".into(), delay_ms: Some(0) };
        let model =
            Self { answers: Mutex::new(answers), steps: Mutex::new(vec![retry]), stirred: tokio::sync::Notify::new() };
        Endpoint::Provider(Ok(Arc::new(model)))
    }
}

impl Model for Distant {
    fn respond<'a>(&'a self, _request: &'a Request) -> llm::BoxFuture<'a, Result<Reply, llm::ProviderError>> {
        Box::pin(async move {
            self.stirred.notify_one();
            tokio::task::yield_now().await;
            self.answers.lock().unwrap().remove(0)
        })
    }

    fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.steps.lock().unwrap())
    }

    fn steps_ready(&self) -> llm::BoxFuture<'_, ()> {
        Box::pin(self.stirred.notified())
    }
}

fn distant(answers: Vec<Result<Reply, llm::ProviderError>>) -> AgentHarness {
    let mut harness = AgentHarness::scripted("go", &json!([]));
    harness.endpoint = Distant::endpoint(answers);
    harness.setup.model = Some("openai:m1".into());
    harness
}

fn reply(content: Vec<Block>, cost_usd: Option<f64>) -> Reply {
    let tokens = Some(model::Tokens { input: 10, output: 5, ..model::Tokens::default() });
    Reply { message_id: "r".into(), content, tokens, cost_usd, ..Reply::default() }
}

#[tokio::test]
async fn a_remote_model_is_recorded_with_its_cost() {
    let call = Block::ToolUse { id: "c1".into(), name: "Bash".into(), input: json!({"command": "echo hi"}) };
    let text = Block::Text { text: "done".into() };
    let harness = distant(vec![Ok(reply(vec![call], Some(0.5))), Ok(reply(vec![text], Some(0.25)))]);
    let mut played = harness.play(&Chat).await.unwrap();
    assert_eq!((played.calls(), played.answer()), (vec![("Bash", "hi", false)], Some("done")));
    assert_eq!((played.tokens(), played.turn.trace().usage.cost_usd), (Some(30), Some(0.75)));
    assert_eq!(played.turn.trace().turn_count(), 2, "the provider gives all its responses the same id");
    assert!(played.steps().iter().any(|step| matches!(step, Step::Retry { status: Some(429), .. })));
}

#[tokio::test]
async fn usage_that_a_provider_did_not_report_is_unknown() {
    let text = Block::Text { text: "done".into() };
    let harness = distant(vec![Ok(Reply { tokens: None, ..reply(vec![text], None) })]);
    let played = harness.play(&Chat).await.unwrap();
    assert_eq!((played.answer(), played.tokens()), (Some("done"), None));
}

#[tokio::test]
async fn failures_of_a_remote_provider_are_never_the_agents_fault() {
    for trouble in [llm::FailureKind::Auth, llm::FailureKind::RateLimit, llm::FailureKind::Cut] {
        let failure = llm::Failure::new(trouble, "POST http://x for m1");
        let harness = distant(vec![Err(llm::ProviderError::Failed(Box::new(failure)))]);
        let played = harness.play(&Chat).await.unwrap();
        let [Ending::ProviderFailed { reason }] = &played.endings[..] else { panic!("{:?}", played.endings) };
        assert!(reason.contains(trouble.describe()) && reason.contains("for m1"), "{reason}");
    }
}

#[tokio::test]
async fn responses_with_the_same_id_are_counted_and_limited() {
    let call = |id: &str| Block::ToolUse { id: id.into(), name: "Bash".into(), input: json!({"command": "true"}) };
    let answers = ["c1", "c2", "c3", "c4"].map(|id| Ok(reply(vec![call(id)], None)));
    let mut harness = distant(answers.into());
    harness.stop_after(3);
    let played = harness.play(&Chat).await.unwrap();
    let limit = Ending::OutOfBudget { budget: model::Budget::Turns, limit: 3.0 };
    assert_eq!((played.endings, played.turn.trace().turn_count()), (vec![limit], 3));
}

#[tokio::test]
async fn a_conversation_that_its_model_cannot_take_is_the_agents_fault() {
    for trouble in [llm::FailureKind::ContextTooLong, llm::FailureKind::ContentFilter] {
        let failure = llm::Failure::new(trouble, "POST http://x for m1");
        let harness = distant(vec![Err(llm::ProviderError::Failed(Box::new(failure)))]);
        let played = harness.play(&Chat).await.unwrap();
        assert!(matches!(&played.endings[..], [Ending::GaveUp { .. }]), "{:?}", played.endings);
    }
}

#[tokio::test]
async fn a_missing_key_is_an_environment_fault() {
    let providers = llm::Providers::default();
    let error = providers.open("openai:m1", None, &|_| Err(Vec::new())).map(|_| ()).unwrap_err();
    let mut harness = distant(Vec::new());
    harness.endpoint = Endpoint::Provider(Err(error));
    let breakage = harness.play(&Chat).await.err().unwrap();
    assert_eq!(breakage.fault, model::Fault::Environment);
    assert!(breakage.reason.contains("OPENAI_API_KEY is not set"), "{breakage}");
    let problems = harness.check(&Chat);
    assert_eq!(problems, ["the model `openai:m1` cannot be used: `openai` needs a key: OPENAI_API_KEY is not set"]);
}

/// Plays a scripted model over the network, through the provider called `name` and its wire format.
async fn over_the_network(name: &str, steps: &serde_json::Value) -> super::TestRun {
    let mut harness = AgentHarness::scripted("go", steps);
    let playback = harness.playback.clone().unwrap();
    let gateway = gateway::Gateway::start().await.unwrap();
    let _admission = gateway.admit("token-of-the-trial", playback);
    let keys = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "COMPATIBLE_API_KEY"];
    let keys = keys.iter().fold(llm::Credentials::default(), |all, key| all.with(*key, "token-of-the-trial"));
    let policy = llm::Policy { tries: 1, ..llm::Policy::default() };
    let providers = llm::Providers::new(keys, llm::Prices::default(), policy);
    let model = format!("{name}:m1");
    harness.endpoint =
        Endpoint::Provider(match providers.open(&model, Some(&gateway.base_url()), &|_| Err(Vec::new())) {
            Ok(llm::Opened::Model(model)) => Ok(model),
            Ok(llm::Opened::Script(_)) => panic!("a script"),
            Err(error) => Err(error),
        });
    harness.setup.model = Some(model);
    harness.play(&Chat).await.unwrap()
}

const OVER_HTTP: [&str; 5] = ["anthropic", "openai", "openai-responses", "google", "compatible"];

#[tokio::test]
async fn every_provider_can_use_the_tools_over_http() {
    for name in OVER_HTTP {
        let steps = json!([
            {"text": "I write.", "tools": [
                {"name": "Write", "input": {"file_path": "a.txt", "content": "grüß\n"}},
                {"name": "Bash", "input": {"command": "cat a.txt"}},
            ], "usage": {"input": 100, "output": 7, "cache_read": 3}},
            {"text": "done ✓", "usage": {"input": 10, "output": 5}, "expect_request": {
                "model": "m1", "system_contains": "You work on a task", "last_user_contains": "go",
                "tool_result_contains": ["Created a.txt", "grüß"], "tools_include": ["Bash", "Read"],
            }},
        ]);
        let played = over_the_network(name, &steps).await;
        let calls = [("Write", "Created a.txt (1 line).", false), ("Bash", "grüß", false)];
        assert_eq!((&played.calls()[..], played.answer()), (&calls[..], Some("done ✓")), "{name}");
        assert_eq!(played.tokens(), Some(125), "{name}");
    }
}

#[tokio::test]
async fn network_failures_are_the_providers_fault() {
    for name in OVER_HTTP {
        for (fault, part) in [
            (json!({"kind": "http", "status": 529}), "overloaded"),
            (json!({"kind": "http", "status": 401}), "key was not accepted"),
            (json!({"kind": "cut"}), "closed in the middle"),
            (json!({"kind": "malformed"}), "the response"),
            (json!({"kind": "error_event"}), "the provider"),
        ] {
            let played = over_the_network(name, &json!([{"text": "a long answer", "fault": fault}])).await;
            let [Ending::ProviderFailed { reason }] = &played.endings[..] else {
                panic!("{name} {part}: {:?}", played.endings)
            };
            assert!(reason.contains(part), "{name}: {reason}");
            assert!(reason.contains("for m1") && !reason.contains("token-of-the-trial"), "{name}: {reason}");
        }
    }
}
