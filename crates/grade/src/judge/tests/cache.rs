//! Tests of cached judgements.

use std::collections::BTreeMap;

use model::JudgeCache;

use super::*;

#[tokio::test]
async fn a_cached_answer_is_reused_unless_repetition_is_requested() {
    let model = model(vec![verdict("met")]);
    let cache = Arc::new(Cache::default());
    let ask = async |series: &str, panel: usize, evidence: &Evidence| {
        let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>);
        let judge = judge.panel(panel).cached(Arc::clone(&cache), series);
        let (findings, took) = judge_with(&ruled(), evidence, &judge).await;
        assert_eq!(findings[0].status, Status::Met);
        took.map(|took| (took.requests, took.cached)).unwrap()
    };
    assert_eq!(ask("1", 1, &done()).await, (1, 0));
    assert_eq!(ask("1", 1, &done()).await, (0, 1));
    assert_eq!(ask("2", 1, &done()).await, (1, 0), "another trial, of this case or of another one");
    assert_eq!(ask("1", 3, &done()).await, (3, 0), "a panel has another temperature, and each judge is asked");
    assert_eq!(ask("1", 3, &done()).await, (0, 3));
    let other = EvidenceBuilder::new().asks("Do it.").answer("It is done. Really.").evidence();
    assert_eq!(ask("1", 1, &other).await, (1, 0));
}

/// Store in memory.
#[derive(Debug, Default)]
struct Stored(Mutex<BTreeMap<String, String>>);

impl JudgementStore for Stored {
    fn get(&self, key: &str) -> Option<String> {
        self.0.lock().unwrap().get(key).cloned()
    }

    fn put(&self, key: &str, judgement: &str) {
        self.0.lock().unwrap().insert(key.into(), judgement.into());
    }

    fn problem(&self) -> Option<String> {
        None
    }
}

#[tokio::test]
async fn a_stored_judgement_is_used_by_later_runs_and_named_in_the_finding() {
    let store = Arc::new(Stored::default());
    let model = model(vec![verdict("met"), verdict("violated")]);
    let run = async |mode: JudgeCache, temperature: Option<f64>| {
        let cache = Arc::new(Cache::new(Some(Arc::clone(&store) as Arc<dyn JudgementStore>), mode));
        let judge = Judge::new("fake", Arc::clone(&model) as Arc<dyn Model>).temperature(temperature);
        let judge = judge.cached(cache, "trial!1").masking(Box::new(|text| text.replace("Because", "[masked]")));
        let (mut findings, took) = judge_with(&ruled(), &done(), &judge).await;
        let finding = findings.remove(0);
        let judgement = finding.judgement.clone().unwrap();
        assert_eq!((judgement.judge.as_str(), judgement.asked), ("fake", 1));
        assert_eq!(took.unwrap().cached, judgement.cached);
        (finding, judgement.cached, took.unwrap().cost_usd)
    };
    let (first, cached, cost) = run(JudgeCache::Auto, None).await;
    assert_eq!((first.status, cached, cost), (Status::Met, 0, Some(0.25)));
    assert!(!store.0.lock().unwrap().values().any(|text| text.contains("Because")), "what is stored is masked");
    let (second, cached, cost) = run(JudgeCache::Auto, None).await;
    assert_eq!((second.status, second.score, cached, cost), (first.status, first.score, 1, Some(0.0)));
    assert_eq!(run(JudgeCache::Off, None).await.1, 0, "asked, and the answer is not stored");
    assert_eq!(run(JudgeCache::Auto, None).await.0.status, Status::Met);
    assert_eq!(run(JudgeCache::Auto, Some(0.5)).await.1, 0, "another temperature");
    assert_eq!(run(JudgeCache::Refresh, None).await.0.status, Status::Unmet);
    assert_eq!(run(JudgeCache::Auto, None).await.0.status, Status::Unmet, "the stored judgement was replaced");
}

#[tokio::test]
async fn invalid_answers_are_not_stored_and_stored_ones_that_do_not_fit_are_ignored() {
    let store = Arc::new(Stored::default());
    let run = async |answer: Result<Reply, ProviderError>| {
        let cache = Arc::new(Cache::new(Some(Arc::clone(&store) as Arc<dyn JudgementStore>), JudgeCache::Auto));
        let judge = Judge::new("fake", model(vec![answer]) as Arc<dyn Model>).cached(cache, "trial!1");
        judge_with(&ruled(), &done(), &judge).await.0[0].status
    };
    assert_eq!(run(says(&json!([]))).await, Status::Undecided);
    assert!(store.0.lock().unwrap().is_empty());
    assert_eq!(run(verdict("met")).await, Status::Met);
    for wrong in ["{\"marks\":[]}", "null", "{"] {
        store.0.lock().unwrap().values_mut().for_each(|text| *text = wrong.into());
        assert_eq!(run(verdict("violated")).await, Status::Unmet, "{wrong}");
    }
}

/// Model that takes a while to answer.
struct Slow(Arc<Answers>);

impl Model for Slow {
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let answer = self.0.respond(request).await;
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            answer
        })
    }
}

#[tokio::test]
async fn trials_that_ask_the_same_question_at_the_same_time_send_one_request() {
    let wrong = || Ok(Reply { content: vec![Block::Text { text: "no".into() }], ..Reply::default() });
    for (answers, requests) in [(vec![verdict("met")], 1), (vec![wrong()], 10)] {
        let model = model(answers);
        let cache = Arc::new(Cache::default());
        let asked = (0..5).map(|_| {
            let judge = Judge::new("fake", Arc::new(Slow(Arc::clone(&model))) as Arc<dyn Model>);
            let judge = judge.cached(Arc::clone(&cache), "share");
            async move { judge_with(&ruled(), &done(), &judge).await }
        });
        let judged = futures_util::future::join_all(asked).await;
        assert_eq!(model.asked.lock().unwrap().len(), requests, "an answer that cannot be parsed is asked for again");
        let is_met = |(findings, _): &(Vec<Finding>, _)| findings[0].status == Status::Met;
        assert_eq!(judged.iter().filter(|judged| is_met(judged)).count(), if requests == 1 { 5 } else { 0 });
    }
}

#[tokio::test]
async fn a_cancelled_question_does_not_hold_up_the_others() {
    let model = model(vec![verdict("met")]);
    let cache = Arc::new(Cache::default());
    let ask = || {
        let judge = Judge::new("fake", Arc::new(Slow(Arc::clone(&model))) as Arc<dyn Model>);
        let judge = judge.cached(Arc::clone(&cache), "share");
        async move { judge_with(&ruled(), &done(), &judge).await }
    };
    let mut first = Box::pin(ask());
    assert!(poll_once(&mut first).await.is_pending());
    let mut second = Box::pin(ask());
    assert!(poll_once(&mut second).await.is_pending());
    assert_eq!(model.asked.lock().unwrap().len(), 1);
    drop(first);
    assert_eq!(second.await.0[0].status, Status::Met);
    assert_eq!(model.asked.lock().unwrap().len(), 2);
}

/// Polls a future once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::future::poll_fn(|context| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context))).await
}
