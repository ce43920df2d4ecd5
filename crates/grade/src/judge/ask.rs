//! A judge, and how it is asked.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use llm::{BoxFuture, InSchema, Model, NoAnswer, ProviderError, Trouble, in_schema};
use model::Aside;
use serde_json::Value;

use super::answer::Answer;
use super::breaker::Breaker;
use super::cache::{self, Cache, Key};
use super::fence::Fence;
use super::question::Question;
use super::request::{content, request};
use super::together::together;

/// How often a judge is asked that gives no answer.
const TRIES: usize = 2;
/// The most characters of an error that a finding repeats.
const LONGEST_ERROR: usize = 500;

/// Gives a text without what a judge is not to see.
pub type Withhold = Box<dyn Fn(&str) -> String + Send + Sync>;

/// A model that judges one trial.
pub struct Judge {
    name: String,
    model: Arc<dyn Model>,
    panel: usize,
    cache: Option<(Arc<Cache>, String)>,
    breaker: Arc<Breaker>,
    is_script: bool,
    temperature: Option<f64>,
    /// Takes out what the judge is not to see.
    withhold: Option<Withhold>,
    /// Whether the model does not let itself be told how much chance there is to be.
    is_headstrong: AtomicBool,
}

/// What all judges say to one question.
pub(super) struct Heard {
    /// Their answers, without those who gave none.
    pub answers: Vec<Answer>,
    /// How many were asked.
    pub asked: usize,
    /// Why somebody gave none.
    pub trouble: Option<String>,
    /// What it took.
    pub took: Aside,
}

/// What one judge says to one question.
struct Vote {
    answer: Result<Answer, String>,
    took: Aside,
}

impl Judge {
    /// The judge `name`, which is `model`.
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        Self {
            name: name.into(),
            model,
            panel: 1,
            cache: None,
            breaker: Arc::default(),
            is_script: false,
            temperature: None,
            withhold: None,
            is_headstrong: AtomicBool::new(false),
        }
    }

    /// Asks the model this often about everything, as if it were several judges. An assertion's own number goes first.
    pub fn panel(self, judges: usize) -> Self {
        Self { panel: judges.max(1), ..self }
    }

    /// Leaves so much to chance, from 0, instead of what is usual: nothing, but for panels.
    pub fn temperature(self, temperature: Option<f64>) -> Self {
        Self { temperature, ..self }
    }

    /// Takes answers that are there already. Trials of different `series` do not share any.
    pub fn cached(self, cache: Arc<Cache>, series: impl Into<String>) -> Self {
        Self { cache: Some((cache, series.into())), ..self }
    }

    /// Sends every text as `withhold` gives it; what the judge quotes is looked for in that.
    pub fn withholding(self, withhold: Withhold) -> Self {
        Self { withhold: Some(withhold), ..self }
    }

    /// Shares with other judges of the run whether the model answers at all.
    pub fn with_breaker(self, breaker: Arc<Breaker>) -> Self {
        Self { breaker, ..self }
    }

    /// The error after which the model is asked again right now, as far as it was not looked at before.
    pub fn last_error(&self) -> Option<String> {
        self.model.take_steps().into_iter().rev().find_map(|step| match step {
            model::Step::Retry { error, .. } => Some(clipped(&error)),
            _ => None,
        })
    }

    /// The model plays a script: it is asked one thing after the other, in the order of the assertions and once for each
    /// judge of a panel, and knows no word that is drawn for a call.
    pub fn of_a_script(self) -> Self {
        Self { is_script: true, cache: None, ..self }
    }

    /// What all judges say to each of `questions`, in their order.
    pub(super) async fn hear(&self, questions: impl Iterator<Item = &Question>) -> Vec<Heard> {
        let questions: Vec<(Question, usize)> = questions.map(|question| self.prepared(question)).collect();
        let asked: Vec<(&Question, usize)> =
            questions.iter().flat_map(|(question, judges)| (0..*judges).map(move |judge| (question, judge))).collect();
        let is_alone = |question: &Question| self.panel_of(question) == 1;
        let votes = if self.is_script {
            let mut votes = Vec::with_capacity(asked.len());
            for (question, judge) in asked {
                votes.push(self.vote(question, judge, is_alone(question)).await);
            }
            votes
        } else {
            let vote =
                |(question, judge)| -> BoxFuture<'_, Vote> { Box::pin(self.vote(question, judge, is_alone(question))) };
            together(asked.into_iter().map(vote).collect()).await
        };
        let mut votes = votes.into_iter();
        questions.iter().map(|(_, judges)| Heard::of(votes.by_ref().take(*judges))).collect()
    }

    /// The question as it is sent, and how many judges are asked.
    fn prepared(&self, question: &Question) -> (Question, usize) {
        let mut question = question.clone();
        if let Some(withhold) = &self.withhold {
            let criteria = question.criteria.iter_mut().map(|criterion| &mut criterion.text);
            let parts = question.material.parts.iter_mut().map(|part| &mut part.text);
            criteria.chain(parts).chain([&mut question.task]).for_each(|text| *text = withhold(text));
        }
        let panel = self.panel_of(&question);
        (question, panel)
    }

    fn panel_of(&self, question: &Question) -> usize {
        question.judges.unwrap_or(self.panel)
    }

    async fn vote(&self, question: &Question, judge: usize, is_alone: bool) -> Vote {
        let key = self.cache.as_ref().map(|(_, series)| cache::key(&self.name, &content(question), series, judge));
        if let Some(answer) = self.known(key.as_ref()) {
            return Vote { answer: Ok(answer), took: Aside { cached: 1, ..Aside::default() } };
        }
        if let Some(because) = self.breaker.refuses() {
            let told = format!("the judge {} is not asked any more: {because}", self.name);
            return Vote { answer: Err(told), took: Aside::default() };
        }
        let mut took = Aside::default();
        let mut tries = 0;
        let answer = loop {
            tries += 1;
            let (answer, cost) = self.ask(question, is_alone).await;
            took += cost;
            match answer {
                Err(none) if tries < TRIES && is_worth_another(&none) => {}
                answer => break answer,
            }
        };
        match answer.as_ref().err().and_then(is_unavailable) {
            Some(error) => self.breaker.failed(&clipped(&error.to_string()), is_lasting(error)),
            None => self.breaker.answered(),
        }
        if let (Ok(answer), Some(key), Some((cache, _))) = (&answer, key, &self.cache) {
            cache.put(key, answer.clone());
        }
        let told = |none: NoAnswer| format!("the judge {} gave no verdict: {}", self.name, clipped(&none.to_string()));
        Vote { answer: answer.map_err(told), took }
    }

    fn known(&self, key: Option<&Key>) -> Option<Answer> {
        self.cache.as_ref()?.0.get(key?)
    }

    /// Asks once, with a fence of its own. An answer that cannot be read is asked for once more within this.
    async fn ask(&self, question: &Question, is_alone: bool) -> (Result<Answer, NoAnswer>, Aside) {
        let fence = Fence::around(&question.material);
        let seal = (!self.is_script).then_some(fence.seal.as_str());
        // Several judges that are one model and leave nothing to chance would be one judge.
        let usual = is_alone.then_some(0.0);
        let temperature = self.temperature.or(usual).filter(|_| !self.is_headstrong.load(Ordering::Relaxed));
        let request = request(question, &fence, temperature);
        let valid = |value: &Value| Answer::read(question, seal, value).map(drop);
        let done = in_schema(&*self.model, &request, &valid).await;
        let took = took(&done);
        let answer = done.value.and_then(|value| Answer::read(question, seal, &value).map_err(NoAnswer::Invalid));
        if answer.as_ref().is_err_and(refuses_temperature) {
            self.is_headstrong.store(true, Ordering::Relaxed);
        }
        (answer, took)
    }
}

impl Heard {
    fn of(votes: impl Iterator<Item = Vote>) -> Self {
        let mut heard = Self { answers: Vec::new(), asked: 0, trouble: None, took: Aside::default() };
        for vote in votes {
            heard.asked += 1;
            heard.took += vote.took;
            match vote.answer {
                Ok(answer) => heard.answers.push(answer),
                Err(trouble) => heard.trouble = heard.trouble.or(Some(trouble)),
            }
        }
        heard
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge").field("name", &self.name).field("panel", &self.panel).finish_non_exhaustive()
    }
}

fn took(done: &InSchema) -> Aside {
    Aside { requests: done.replies.into(), cached: 0, tokens: done.tokens, cost_usd: done.cost_usd }
}

/// Whether asking anew may help. An answer that could not be read was asked for again already.
fn is_worth_another(none: &NoAnswer) -> bool {
    match none {
        // What goes over the network was sent as often as its client has patience already.
        NoAnswer::Provider(ProviderError::Failed(_)) => refuses_temperature(none),
        NoAnswer::Provider(error) => error.is_transient(),
        NoAnswer::Refused(_) | NoAnswer::TooLong => true,
        NoAnswer::Invalid(_) => false,
    }
}

/// The error of a provider that did not answer at all. One that refuses a single request, as for what is in it, did.
fn is_unavailable(none: &NoAnswer) -> Option<&ProviderError> {
    let NoAnswer::Provider(error) = none else { return None };
    (error.is_transient() || is_lasting(error)).then_some(error)
}

/// Whether no other question would fare better.
fn is_lasting(error: &ProviderError) -> bool {
    matches!(error, ProviderError::Failed(failure) if failure.trouble.is_lasting() || failure.trouble == Trouble::Silent)
}

fn refuses_temperature(none: &NoAnswer) -> bool {
    let NoAnswer::Provider(ProviderError::Failed(failure)) = none else { return false };
    failure.trouble == Trouble::BadRequest && failure.message.to_ascii_lowercase().contains("temperature")
}

/// The beginning of a text, on one line.
fn clipped(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_ERROR) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
