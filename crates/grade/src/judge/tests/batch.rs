//! Tests of requests with several questions.

use super::*;

/// Returns two assertions that are answered with marks, one with a score, and one with a list of claims.
fn mixed() -> Vec<Check> {
    let second = json!({"id": "b", "type": "rubric", "criteria": ["is short", "is done"], "require": "any"});
    let facts = json!({"id": "d", "type": "factuality", "ground_truth": "It is done."});
    [ruled(), checks(&second), scored(), checks(&facts)].concat()
}

fn row(id: &str, verdict: &str) -> Value {
    json!({"id": id, "quote": "It is done", "reasoning": "Because.", "verdict": verdict})
}

#[tokio::test]
async fn assertions_of_the_same_form_share_a_request_and_keep_their_own_verdicts() {
    let all = mixed();
    let together = says(&json!([row("c3", "met"), row("c1", "violated"), row("c2", "violated")]));
    let none = Ok(Reply {
        content: vec![Block::Text { text: "{\"seal\":\"SEAL\",\"claims\":[]}".into() }],
        ..Reply::default()
    });
    let model = model(vec![together, score(4), none]);
    let cache = Arc::new(Cache::default());
    let judge = || {
        let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>).batching(true);
        judge.cached(Arc::clone(&cache), "trial!1")
    };
    let (findings, took) = judge_with(&all, &done(), &judge()).await;
    let statuses: Vec<Status> = findings.iter().map(|finding| finding.status).collect();
    assert_eq!(statuses[..3], [Status::Unmet, Status::Met, Status::Met], "{findings:#?}");
    assert_eq!(took.map(|took| (took.requests, took.cached)), Some((3, 0)));
    let asked = model.asked.lock().unwrap()[0].system_text();
    for part in
        ["Instructions for c1:", "Instructions for c2 to c3:", "- c1: the agent must not: be rude", "- c3: is done"]
    {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let (again, took) = judge_with(&all, &done(), &judge()).await;
    assert_eq!(again.iter().map(|finding| finding.status).collect::<Vec<_>>(), statuses);
    assert_eq!(took.map(|took| (took.requests, took.cached)), Some((0, 4)));
    assert!(
        again.iter().take(4).all(|finding| finding.judgement.as_ref().is_some_and(|judgement| judgement.cached == 1)),
        "{again:#?}"
    );
}

#[tokio::test]
async fn a_question_without_a_valid_answer_in_a_shared_request_is_asked_alone() {
    let second = json!({"id": "b", "type": "guardrail", "must": "be done"});
    let both = [ruled(), checks(&second)].concat();
    let invalid = json!({"id": "c1", "quote": "never said", "reasoning": "", "verdict": "violated"});
    for (first, what) in [(json!([row("c2", "met")]), "missing"), (json!([invalid, row("c2", "met")]), "invalid")] {
        let model = model(vec![says(&first), verdict("met")]);
        let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>).batching(true);
        let (findings, took) = judge_with(&both, &done(), &judge).await;
        assert!(findings.iter().all(|finding| finding.status == Status::Met), "{what}: {findings:#?}");
        assert_eq!(took.unwrap().requests, 2, "{what}");
        let alone = model.asked.lock().unwrap()[1].system_text();
        assert!(alone.contains("be rude") && !alone.contains("be done"), "{what}: {alone}");
    }
    // A missing answer leaves only its own assertion undecided.
    let model = model(vec![says(&json!([row("c2", "met")])), says(&json!([]))]);
    let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>).batching(true);
    let (findings, _) = judge_with(&both, &done(), &judge).await;
    assert_eq!([findings[0].status, findings[1].status], [Status::Undecided, Status::Met]);
}

#[tokio::test]
async fn each_judge_of_a_panel_answers_a_shared_request() {
    let second = json!({"id": "b", "type": "guardrail", "must": "be done"});
    let both = [ruled(), checks(&second)].concat();
    let answer = |first: &str| says(&json!([row("c1", first), row("c2", "met")]));
    let model = model(vec![answer("violated"), answer("met"), answer("violated")]);
    let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>).batching(true).panel(3);
    let (findings, took) = judge_with(&both, &done(), &judge).await;
    assert_eq!([findings[0].status, findings[1].status], [Status::Unmet, Status::Met]);
    assert_eq!((took.unwrap().requests, findings[0].judgement.as_ref().unwrap().asked), (3, 3));
}
