//! A judge, and how it is asked.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use llm::{FailureKind, Model, ProviderError, StructuredReply, StructuredReplyError, structured_reply};
use model::text::one_line;
use model::{AuxiliaryUsage, CalibrationGate, Judgement};
use serde_json::Value;

use super::answer::Answer;
use super::batch::{Batch, groups};
use super::breaker::Breaker;
use super::cache::{self, Cache, Key};
use super::fence::Fence;
use super::flight::Turn;
use super::prompt;
use super::question::Question;
use super::request::{content, request};

/// Number of attempts to get an answer from a judge.
const TRIES: usize = 2;
/// Maximum length of an error in a finding, in characters.
const MAX_ERROR_LEN: usize = 500;

/// Removes from a string what a judge must not see.
pub type Withhold = Box<dyn Fn(&str) -> String + Send + Sync>;

/// Model that judges one trial.
pub struct Judge {
    name: String,
    model: Arc<dyn Model>,
    panel: usize,
    is_batching: bool,
    cache: Option<(Arc<Cache>, String)>,
    breaker: Arc<Breaker>,
    is_script: bool,
    temperature: Option<f64>,
    /// Removes what the judge must not see.
    withhold: Option<Withhold>,
    /// Removes secrets from answers before they are cached.
    mask: Option<Withhold>,
    gate: Option<Arc<CalibrationGate>>,
    /// True if the model rejects a temperature.
    rejects_temperature: AtomicBool,
}

/// Parses the answer to a question, and checks its seal if there is one.
type ReadAnswer<T> = dyn Fn(&Question, Option<&str>, &Value) -> Result<T, String> + Send + Sync;

/// Answers of all judges to one question.
#[derive(Default)]
pub(crate) struct JudgeAnswers {
    /// Valid answers.
    pub answers: Vec<Answer>,
    /// Number of judges that were asked.
    pub asked: usize,
    /// Reason why a judge did not answer.
    pub trouble: Option<String>,
    /// Usage and cost of asking.
    pub took: AuxiliaryUsage,
}

/// Answer of one judge to one question.
struct Vote {
    answer: Result<Answer, String>,
    took: AuxiliaryUsage,
}

impl Judge {
    /// Creates a judge. `name` identifies `model` in reports and in the cache.
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        Self {
            name: name.into(),
            model,
            panel: 1,
            is_batching: false,
            cache: None,
            breaker: Arc::default(),
            is_script: false,
            temperature: None,
            withhold: None,
            mask: None,
            gate: None,
            rejects_temperature: AtomicBool::new(false),
        }
    }

    /// Asks the model this number of times, as if it were several judges. An assertion's own number takes precedence.
    pub fn panel(self, judges: usize) -> Self {
        Self { panel: judges.max(1), ..self }
    }

    /// Sets whether questions about the same material share a request.
    pub fn batching(self, is_batching: bool) -> Self {
        Self { is_batching, ..self }
    }

    /// Sets the temperature. The default is 0, and the model's own default for panels.
    pub fn temperature(self, temperature: Option<f64>) -> Self {
        Self { temperature, ..self }
    }

    /// Caches answers. Trials of different `series` do not share any.
    pub fn cached(self, cache: Arc<Cache>, series: impl Into<String>) -> Self {
        Self { cache: Some((cache, series.into())), ..self }
    }

    /// Sends every string as `withhold` returns it. The judge's quotes are searched for in that string.
    pub fn withholding(self, withhold: Withhold) -> Self {
        Self { withhold: Some(withhold), ..self }
    }

    /// Removes secrets with `mask` from answers that are stored in the cache.
    pub fn masking(self, mask: Withhold) -> Self {
        Self { mask: Some(mask), ..self }
    }

    /// Lets the judge decide only assertions for which it is calibrated.
    pub fn gated(self, gate: Option<Arc<CalibrationGate>>) -> Self {
        Self { gate, ..self }
    }

    /// Sets the breaker, which is shared with the other judges in the run and stops all questions if the model is not
    /// available.
    pub fn with_breaker(self, breaker: Arc<Breaker>) -> Self {
        Self { breaker, ..self }
    }

    /// Returns the last error that caused a retry, if it was not returned before.
    pub fn last_error(&self) -> Option<String> {
        self.model.take_steps().into_iter().rev().find_map(|step| match step {
            model::Step::Retry { error, .. } => Some(one_line(&error, MAX_ERROR_LEN)),
            _ => None,
        })
    }

    /// Marks the model as scripted: it is asked one question at a time, in the order of the assertions and once for
    /// each judge of a panel, and it does not return the seal of a call.
    pub fn of_a_script(self) -> Self {
        Self { is_script: true, cache: None, ..self }
    }

    /// Returns the answers of all judges to each of the `questions`, in their order. Each question comes with the
    /// number of judges that its assertion requests.
    pub(crate) async fn ask_all(
        &self,
        questions: impl Iterator<Item = (&Question, Option<usize>)>,
    ) -> Vec<JudgeAnswers> {
        let questions: Vec<(Question, usize)> =
            questions.map(|(question, judges)| (self.prepared(question), judges.unwrap_or(self.panel))).collect();
        let groups = match self.is_batching {
            true => groups(&questions),
            false => (0..questions.len()).map(|index| vec![index]).collect(),
        };
        let votes = groups.iter().flat_map(|group| {
            let asked: Vec<&(Question, usize)> = group.iter().filter_map(|index| questions.get(*index)).collect();
            let judges = asked.first().map_or(0, |(_, judges)| *judges);
            let asked: Vec<&Question> = asked.into_iter().map(|(question, _)| question).collect();
            (0..judges).map(move |judge| {
                let asked = asked.clone();
                async move { (group, self.votes(&asked, judge, judges == 1).await) }
            })
        });
        let votes = if self.is_script {
            let mut answered = Vec::new();
            for vote in votes {
                answered.push(vote.await);
            }
            answered
        } else {
            join_all(votes).await
        };
        let mut answers: Vec<JudgeAnswers> = questions.iter().map(|_| JudgeAnswers::default()).collect();
        for (group, votes) in votes {
            for (index, vote) in group.iter().zip(votes) {
                if let Some(answers) = answers.get_mut(*index) {
                    answers.add(vote);
                }
            }
        }
        answers
    }

    /// Asks judge number `judge` all `questions`, in one request if there are several. A question that gets no valid
    /// answer there is asked again alone.
    async fn votes(&self, questions: &[&Question], judge: usize, is_alone: bool) -> Vec<Vote> {
        let batch = if questions.len() > 1 { Batch::of(questions) } else { None };
        let Some(batch) = batch else {
            return join_all(questions.iter().map(|question| self.vote(question, judge, is_alone))).await;
        };
        let key = self.cache.as_ref().map(|(_, series)| self.key(&batch.question, series, judge, is_alone));
        let turn = self.turn(key.as_ref()).await;
        if let Some(answer) = self.known(key.as_ref(), &batch.question) {
            let answers = batch.split(answer.marks.into_iter().map(Some).collect());
            return answers.into_iter().flatten().map(Vote::cached).collect();
        }
        if let Some(reason) = self.breaker.refuses() {
            return questions.iter().map(|_| self.stopped(&reason)).collect();
        }
        let (marks, mut took) = self.persist(&batch.question, is_alone, &Answer::read_each).await;
        if let (Err(_), Some(turn)) = (&marks, &turn) {
            turn.failed();
        }
        if marks.as_ref().err().is_some_and(|none| is_unavailable(none).is_some()) {
            let reason = marks.err().map_or_else(String::new, |none| self.no_verdict(&none));
            return questions
                .iter()
                .map(|_| Vote { answer: Err(reason.clone()), took: std::mem::take(&mut took) })
                .collect();
        }
        let mut votes = Vec::with_capacity(questions.len());
        for (question, answer) in questions.iter().zip(batch.split(marks.unwrap_or_default())) {
            let mut vote = match answer {
                Some(answer) => Vote { answer: Ok(answer), took: AuxiliaryUsage::default() },
                None => self.vote(question, judge, is_alone).await,
            };
            vote.took += std::mem::take(&mut took);
            votes.push(vote);
        }
        let marks = votes.iter().map(|vote| Some(vote.answer.as_ref().ok()?.marks.clone()));
        if let Some(marks) = marks.collect::<Option<Vec<_>>>() {
            self.remember(key, &Answer { marks: marks.concat() });
        }
        votes
    }

    /// Returns the question without what the judge must not see.
    fn prepared(&self, question: &Question) -> Question {
        let mut question = question.clone();
        if let Some(withhold) = &self.withhold {
            let criteria = question.criteria.iter_mut().map(|criterion| &mut criterion.text);
            let parts = question.material.parts.iter_mut().map(|part| &mut part.text);
            criteria.chain(parts).chain([&mut question.task]).for_each(|text| *text = withhold(text));
        }
        question
    }

    async fn vote(&self, question: &Question, judge: usize, is_alone: bool) -> Vote {
        let key = self.cache.as_ref().map(|(_, series)| self.key(question, series, judge, is_alone));
        let turn = self.turn(key.as_ref()).await;
        if let Some(answer) = self.known(key.as_ref(), question) {
            return Vote::cached(answer);
        }
        if let Some(reason) = self.breaker.refuses() {
            return self.stopped(&reason);
        }
        let (answer, took) = self.persist(question, is_alone, &Answer::read).await;
        match (&answer, &turn) {
            (Ok(answer), _) => self.remember(key, answer),
            (Err(_), Some(turn)) => turn.failed(),
            (Err(_), None) => {}
        }
        Vote { answer: answer.map_err(|none| self.no_verdict(&none)), took }
    }

    /// Asks until there is an answer, or until further attempts would not help.
    async fn persist<T>(
        &self,
        question: &Question,
        is_alone: bool,
        read: &ReadAnswer<T>,
    ) -> (Result<T, StructuredReplyError>, AuxiliaryUsage) {
        let mut took = AuxiliaryUsage::default();
        let mut tries = 0;
        let answer = loop {
            tries += 1;
            let (answer, cost) = self.ask(question, is_alone, read).await;
            took += cost;
            match answer {
                Err(none) if tries < TRIES && is_worth_another(&none) => {}
                answer => break answer,
            }
        };
        match answer.as_ref().err().and_then(is_unavailable) {
            Some(error) => self.breaker.failed(&one_line(&error.to_string(), MAX_ERROR_LEN), is_lasting(error)),
            None => self.breaker.answered(),
        }
        (answer, took)
    }

    /// Stores a valid answer in the cache.
    fn remember(&self, key: Option<Key>, answer: &Answer) {
        if let (Some(key), Some((cache, _))) = (key, &self.cache) {
            cache.put(key, answer, &|text| self.mask.as_ref().map_or_else(|| text.to_owned(), |mask| mask(text)));
        }
    }

    fn stopped(&self, reason: &str) -> Vote {
        let stopped = format!("the judge {} is no longer used: {reason}", self.name);
        Vote { answer: Err(stopped), took: AuxiliaryUsage::default() }
    }

    fn no_verdict(&self, none: &StructuredReplyError) -> String {
        format!("the judge {} did not return a verdict: {}", self.name, one_line(&none.to_string(), MAX_ERROR_LEN))
    }

    /// Returns the cache key for the answer of judge number `judge`. It covers the model and everything that is sent,
    /// except the random parts of a call. Trials of different `series` have different keys.
    fn key(&self, question: &Question, series: &str, judge: usize, is_alone: bool) -> Key {
        let address = self.model.address().unwrap_or_default();
        let temperature = self.usual_temperature(is_alone).map(|temperature| temperature.to_string());
        let temperature = temperature.as_deref().unwrap_or("default");
        cache::key([&self.name, address, temperature, &content(question), series, &judge.to_string()])
    }

    fn known(&self, key: Option<&Key>, question: &Question) -> Option<Answer> {
        self.cache.as_ref()?.0.get(key?, question)
    }

    /// Waits until no other trial asks the question with that key.
    async fn turn(&self, key: Option<&Key>) -> Option<Turn<'_>> {
        self.cache.as_ref()?.0.turn(key?).await
    }

    /// Returns the temperature that is sent, unless the model rejects it.
    fn usual_temperature(&self, is_alone: bool) -> Option<f64> {
        // At temperature 0, all members of a panel would give the same answer.
        self.temperature.or(is_alone.then_some(0.0))
    }

    /// Describes how this judge decided an assertion, about the reply with the first number (0 for all) among that
    /// number of messages. `digest` is that of [`digest`](Self::digest).
    pub(crate) fn judgement(
        &self,
        digest: String,
        question: &Question,
        answers: &JudgeAnswers,
        [reply, messages]: [usize; 2],
    ) -> Judgement {
        Judgement {
            judge: self.name.clone(),
            prompts: prompt::VERSION.to_owned(),
            question: question.asks(),
            digest,
            asked: answers.asked as u64,
            cached: answers.took.cached,
            reply: reply as u64,
            messages: messages as u64,
            sandbox: question.has_sandbox,
        }
    }

    /// Returns the reason why the judge may not decide an assertion, if there is one.
    pub(crate) fn refuses(&self, digest: &str) -> Option<String> {
        self.gate.as_ref()?.refuses_question(digest)
    }

    /// Returns a digest of an assertion with its own number of judges, and of their temperature.
    pub(crate) fn digest(&self, assertion: &str, judges: Option<usize>) -> String {
        let judges = judges.unwrap_or(self.panel);
        let temperature = self.usual_temperature(judges == 1);
        let batch = if self.is_batching { "\0batch" } else { "" };
        model::digest(format!("{assertion}\0{judges}\0{temperature:?}{batch}").bytes())
    }

    /// Asks once, with a new fence. This includes another request if the answer cannot be parsed.
    async fn ask<T>(
        &self,
        question: &Question,
        is_alone: bool,
        read: &ReadAnswer<T>,
    ) -> (Result<T, StructuredReplyError>, AuxiliaryUsage) {
        let fence = Fence::around(&question.material);
        let seal = (!self.is_script).then_some(fence.seal.as_str());
        let is_rejected = self.rejects_temperature.load(Ordering::Relaxed);
        let temperature = self.usual_temperature(is_alone).filter(|_| !is_rejected);
        let request = request(question, &fence, temperature);
        let valid = |value: &Value| read(question, seal, value).map(drop);
        let done = structured_reply(&*self.model, &request, &valid).await;
        let took = took(&done);
        let answer = done.value.and_then(|value| read(question, seal, &value).map_err(StructuredReplyError::Invalid));
        if answer.as_ref().is_err_and(refuses_temperature) {
            self.rejects_temperature.store(true, Ordering::Relaxed);
        }
        (answer, took)
    }
}

impl JudgeAnswers {
    fn add(&mut self, vote: Vote) {
        self.asked += 1;
        self.took += vote.took;
        match vote.answer {
            Ok(answer) => self.answers.push(answer),
            Err(trouble) => self.trouble = self.trouble.take().or(Some(trouble)),
        }
    }
}

impl Vote {
    /// Creates a vote from a cached answer, which costs nothing.
    fn cached(answer: Answer) -> Self {
        let took = AuxiliaryUsage { cached: 1, cost_usd: Some(0.0), ..AuxiliaryUsage::default() };
        Self { answer: Ok(answer), took }
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge").field("name", &self.name).field("panel", &self.panel).finish_non_exhaustive()
    }
}

fn took(done: &StructuredReply) -> AuxiliaryUsage {
    AuxiliaryUsage { requests: done.replies.into(), cached: 0, tokens: done.tokens, cost_usd: done.cost_usd }
}

/// Returns `true` if asking again may help. An answer that could not be parsed was already requested again.
fn is_worth_another(none: &StructuredReplyError) -> bool {
    match none {
        // The client has already retried requests that fail in transit.
        StructuredReplyError::Provider(ProviderError::Failed(_)) => refuses_temperature(none),
        StructuredReplyError::Provider(error) => error.is_transient(),
        StructuredReplyError::Refused(_) | StructuredReplyError::TooLong => true,
        StructuredReplyError::Invalid(_) => false,
    }
}

/// Returns the error from a provider that did not answer at all. A provider that rejects a single request, for example
/// because of its content, did answer.
fn is_unavailable(none: &StructuredReplyError) -> Option<&ProviderError> {
    let StructuredReplyError::Provider(error) = none else { return None };
    (error.is_transient() || is_lasting(error)).then_some(error)
}

/// Returns `true` if any other question would fail too.
fn is_lasting(error: &ProviderError) -> bool {
    matches!(error, ProviderError::Failed(failure) if failure.kind.is_lasting() || failure.kind == FailureKind::Silent)
}

fn refuses_temperature(none: &StructuredReplyError) -> bool {
    let StructuredReplyError::Provider(ProviderError::Failed(failure)) = none else { return false };
    failure.kind == FailureKind::BadRequest && failure.message.to_ascii_lowercase().contains("temperature")
}
