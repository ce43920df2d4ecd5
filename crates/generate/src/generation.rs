//! Generation: plans tests, writes them concurrently, and admits those that can find a mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use futures_util::future::{Either, select};
use futures_util::stream::{self, StreamExt};
use futures_util::{FutureExt, pin_mut};
use llm::{BoxFuture, Model, Request, structured_reply};
use model::text::one_line;
use model::{AuxiliaryUsage, Outcome};
use serde::Serialize;
use serde_json::Value;

use crate::candidate::{Candidate, PlannedTest, slug};
use crate::category::{self, Category};
use crate::coverage::{Covered, ExistingTest, coverage};
use crate::duplicate::{Features, duplicate_of, features};
use crate::format::{Context, Format, side_files};
use crate::plan;
use crate::profile::Profile;
use crate::target::{Target, ordered, targets};
use crate::writing::{self, Writing};

/// Number of attempts to write a test. The second request includes the reasons why the first attempt was rejected.
const ATTEMPTS: usize = 2;
/// Number of tests that are written concurrently.
const CONCURRENCY: usize = 16;
/// Maximum length of a reason, in characters.
const LONGEST_REASON: usize = 300;

/// The tests to generate.
pub struct GenerationRequest<'a> {
    /// Facts about the agent or the skill.
    pub profile: &'a Profile,
    /// Name of the skill, if a skill is tested.
    pub skill: Option<&'a str>,
    /// Number of tests for each category.
    pub quotas: Vec<(&'static Category, usize)>,
    /// Format of the files.
    pub format: &'static Format,
    /// Seed for the order in which facts are offered to the model; 0 keeps the order of the profile.
    pub seed: u64,
    /// Maximum cost in US dollars.
    pub budget: Option<f64>,
    /// Tests in the output folder.
    pub existing: &'a [ExistingTest],
    /// True if requests must be sent one after another, because the answers depend on their order.
    pub in_order: bool,
}

/// A rendered test.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedTest {
    /// File name without an extension.
    pub slug: String,
    /// The test as data.
    pub candidate: Candidate,
    /// Content of its file.
    pub text: String,
    /// Other files that it needs, by path relative to its folder.
    pub files: Vec<(String, String)>,
}

/// Result of running a test with the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tryout {
    /// Outcome of each trial.
    pub outcomes: Vec<Outcome>,
    /// Reason why the first trial that did not pass failed.
    pub reason: Option<String>,
    /// Names of the tools that were called.
    pub called: Vec<String>,
}

/// Interface to the caller, which runs tests and writes those that are admitted.
pub trait Host: Send + Sync {
    /// Loads and compiles a test, and runs it with adversaries. Returns the reasons to reject it.
    ///
    /// # Errors
    /// Returns an error if it could not be run through no fault of the test.
    fn audit<'a>(&'a self, test: &'a RenderedTest) -> BoxFuture<'a, Result<Vec<String>, String>>;

    /// Runs a test with the agent. Returns `None` if there is no agent.
    ///
    /// # Errors
    /// Returns an error if it could not be run through no fault of the agent.
    fn try_out<'a>(&'a self, test: &'a RenderedTest) -> BoxFuture<'a, Result<Option<Tryout>, String>>;

    /// Writes an admitted test, and returns its path for messages. It never replaces a file.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    fn save(&self, test: &RenderedTest) -> Result<String, String>;

    /// Receives each test that is planned, admitted or rejected, as it happens.
    fn progress(&self, progress: &Progress<'_>);
}

/// Progress of a generation.
#[derive(Debug)]
pub enum Progress<'a> {
    /// This number of tests is planned.
    Planned(usize),
    /// A test was admitted and written.
    Admitted(&'a Admitted),
    /// A test was rejected.
    Rejected(&'a RejectedTest),
}

/// A test that was admitted and written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Admitted {
    /// Display name.
    pub name: String,
    /// Category.
    pub category: &'static str,
    /// Path of its file.
    pub file: String,
    /// Ids of the facts that it covers.
    pub covers: Vec<String>,
    /// Outcomes of its trials with the agent.
    pub outcomes: Vec<Outcome>,
    /// Reason why the first trial that did not pass failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A test that was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RejectedTest {
    /// Display name.
    pub name: String,
    /// Category.
    pub category: String,
    /// Reasons.
    pub reasons: Vec<String>,
    /// True if the test is not at fault, because the model or the machine failed.
    pub is_trouble: bool,
}

/// Result of a generation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Generated {
    /// Number of planned tests.
    pub planned: usize,
    /// Tests that were written.
    pub admitted: Vec<Admitted>,
    /// Tests that were rejected.
    pub rejected: Vec<RejectedTest>,
    /// Facts with their tests, including existing ones.
    pub coverage: Vec<Covered>,
    /// Requests, tokens and cost.
    pub usage: AuxiliaryUsage,
    /// True if it was stopped before it finished.
    pub is_stopped: bool,
}

/// Reason why nothing was generated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GenerationError {
    /// The model did not return a plan.
    #[error("the model did not return a plan: {0}")]
    NoPlan(String),
    /// The model's price is unknown.
    #[error("the cost of this model is unknown, so a budget cannot be kept")]
    UnknownCost,
    /// An admitted test could not be written.
    #[error("{0}")]
    NotSaved(String),
}

/// Plans tests, without writing any.
///
/// # Errors
/// Returns an error if the model does not return a plan.
pub async fn plan_only(
    request: &GenerationRequest<'_>,
    model: &dyn Model,
) -> Result<Vec<PlannedTest>, GenerationError> {
    Generation::new(request, model).plan().await
}

/// Generates tests until all planned ones are admitted or rejected, or `stop` resolves. Tests that are complete by
/// then are still admitted.
///
/// # Errors
/// Returns an error if the model does not return a plan, or a test cannot be written to disk.
pub async fn generate(
    request: &GenerationRequest<'_>,
    model: &dyn Model,
    host: &dyn Host,
    stop: impl Future<Output = ()>,
) -> Result<Generated, GenerationError> {
    let generation = &Generation::new(request, model);
    pin_mut!(stop);
    let planning = generation.plan();
    pin_mut!(planning);
    let planned = match select(planning, &mut stop).await {
        Either::Left((planned, _)) => planned?,
        Either::Right(_) => return Ok(Generated { is_stopped: true, ..Generated::default() }),
    };
    host.progress(&Progress::Planned(planned.len()));
    let mut generated = Generated { planned: planned.len(), ..Generated::default() };
    let drafts = stream::iter(named(planned).into_iter().enumerate())
        .map(|(at, (slug, planned))| async move { (at, generation.draft(host, slug, planned).await) });
    let drafts = drafts.buffer_unordered(if request.in_order { 1 } else { CONCURRENCY });
    pin_mut!(drafts);
    let mut admitted: Vec<Features> = Vec::new();
    // Drafts that wait for an earlier one, so that the same answers always give the same files.
    let mut waiting: BTreeMap<usize, Draft> = BTreeMap::new();
    let mut next_at = 0;
    loop {
        // After the stop, only drafts that are already complete are accepted.
        let next = match generated.is_stopped {
            true => drafts.next().now_or_never().flatten(),
            false => match select(drafts.next(), &mut stop).await {
                Either::Left((next, _)) => next,
                Either::Right((..)) => {
                    generated.is_stopped = true;
                    continue;
                }
            },
        };
        let Some((at, draft)) = next else { break };
        waiting.insert(at, draft);
        while let Some(draft) = waiting.remove(&next_at) {
            generation.admit(host, draft, &mut admitted, &mut generated)?;
            next_at += 1;
        }
    }
    for draft in waiting.into_values() {
        generation.admit(host, draft, &mut admitted, &mut generated)?;
    }
    let new: Vec<(&str, &[String])> =
        generated.admitted.iter().map(|test| (test.file.as_str(), test.covers.as_slice())).collect();
    generated.coverage = coverage(&generation.targets, request.existing, &new);
    generated.usage = generation.usage();
    Ok(generated)
}

/// A generation in progress.
struct Generation<'a> {
    request: &'a GenerationRequest<'a>,
    model: &'a dyn Model,
    targets: Vec<Target>,
    spending: Mutex<Spending>,
}

/// Requests so far.
#[derive(Default)]
struct Spending {
    usage: Option<AuxiliaryUsage>,
    /// Cost of the most expensive request so far, used as the estimate for requests in progress.
    highest: f64,
    /// Number of requests in progress.
    open: usize,
}

/// A test that was written, or the reasons why it was rejected.
enum Draft {
    Ready { test: Box<RenderedTest>, tryout: Option<Tryout> },
    Rejected(RejectedTest),
}

/// Reason why a model gave no usable answer.
struct NoAnswer {
    reason: String,
    /// True if there is an answer that is not valid.
    invalid: bool,
}

impl<'a> Generation<'a> {
    fn new(request: &'a GenerationRequest<'a>, model: &'a dyn Model) -> Self {
        let targets = ordered(targets(request.profile), request.seed);
        Self { request, model, targets, spending: Mutex::default() }
    }

    async fn plan(&self) -> Result<Vec<PlannedTest>, GenerationError> {
        let existing: Vec<String> = self.request.existing.iter().map(|test| test.name.clone()).collect();
        let quotas = &self.request.quotas;
        let request = plan::request(self.request.profile, &self.targets, quotas, &existing);
        // The last answer is kept, because part of it may be valid.
        let last: Mutex<Option<Value>> = Mutex::default();
        let valid = |value: &Value| {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(value.clone());
            plan::read(value, &self.targets, quotas).map(drop)
        };
        let answer = self.ask(&request, &valid).await;
        if self.request.budget.is_some() && self.usage().cost_usd.is_none() && answer.is_ok() {
            return Err(GenerationError::UnknownCost);
        }
        let (value, problem) = match answer {
            Ok(value) => (Some(value), String::new()),
            Err(NoAnswer { reason, invalid }) => {
                let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
                (last.filter(|_| invalid), reason)
            }
        };
        let Some(value) = value else { return Err(GenerationError::NoPlan(problem)) };
        match plan::read_part(&value, &self.targets, quotas) {
            tests if tests.is_empty() => Err(GenerationError::NoPlan(problem)),
            tests => Ok(plan::in_turn(tests)),
        }
    }

    /// Writes a test in at most two attempts, and runs it.
    async fn draft(&self, host: &dyn Host, slug: String, planned: PlannedTest) -> Draft {
        let rejected = |planned: &PlannedTest, reasons: Vec<String>, is_trouble| {
            let reasons = reasons.iter().map(|reason| one_line(reason, LONGEST_REASON)).collect();
            let PlannedTest { name, category, .. } = planned.clone();
            Draft::Rejected(RejectedTest { name, category, reasons, is_trouble })
        };
        let Some(category) = category::find(&planned.category) else {
            return rejected(&planned, vec![format!("unknown category `{}`", planned.category)], false);
        };
        if self.request.existing.iter().any(|test| test.name == slug) {
            return rejected(&planned, vec![format!("`{slug}` exists already")], false);
        }
        let writing = Writing {
            profile: self.request.profile,
            targets: &self.targets,
            format: self.request.format,
            skill: self.request.skill,
        };
        let mut reasons: Vec<String> = Vec::new();
        let mut before: Option<Value> = None;
        for _ in 0..ATTEMPTS {
            let previous = before.as_ref().map(|script| writing::Rejected { script, reasons: &reasons });
            let request = writing.request(&planned, category, previous.as_ref());
            let valid = |value: &Value| writing.read(value, category).map(drop);
            let answer = self.ask(&request, &valid).await;
            let value = match answer {
                Ok(value) => value,
                Err(NoAnswer { reason, invalid }) => {
                    reasons.push(reason);
                    return rejected(&planned, reasons, !invalid);
                }
            };
            let script = match writing.read(&value, category) {
                Ok(script) => script,
                Err(reason) => return rejected(&planned, vec![reason], false),
            };
            let candidate = Candidate { category, planned: planned.clone(), slug: slug.clone(), script };
            let test = self.rendered(candidate);
            reasons = match host.audit(&test).await {
                Ok(reasons) => reasons,
                Err(reason) => return rejected(&planned, vec![reason], true),
            };
            if reasons.is_empty() {
                return match host.try_out(&test).await {
                    Ok(Some(tryout)) if is_unstable(&tryout.outcomes) => {
                        let reason = format!("unstable with the same agent: {}", listed(&tryout.outcomes));
                        rejected(&planned, vec![reason], false)
                    }
                    Ok(tryout) => Draft::Ready { test: Box::new(test), tryout },
                    Err(reason) => rejected(&planned, vec![reason], true),
                };
            }
            before = Some(value);
        }
        rejected(&planned, reasons, false)
    }

    fn rendered(&self, candidate: Candidate) -> RenderedTest {
        let context = Context { targets: &self.targets, skill: self.request.skill };
        let text = (self.request.format.render)(&candidate, &context);
        let files = match self.request.format.common_file {
            Some(_) => side_files(&candidate).map(|(path, content)| (path, content.to_owned())).collect(),
            None => Vec::new(),
        };
        RenderedTest { slug: candidate.slug.clone(), candidate, text, files }
    }

    /// Saves a test unless it is a duplicate.
    fn admit(
        &self,
        host: &dyn Host,
        draft: Draft,
        admitted: &mut Vec<Features>,
        generated: &mut Generated,
    ) -> Result<(), GenerationError> {
        let rejected = match draft {
            Draft::Rejected(rejected) => rejected,
            Draft::Ready { test, tryout } => {
                let tryout = tryout.unwrap_or_default();
                let features = features(&test.candidate, &tryout.called);
                let twin = duplicate_of(&features, admitted.iter()).map(|at| generated.admitted[at].name.clone());
                let twin = twin.or_else(|| self.existing_with_the_same_messages(&test));
                let PlannedTest { name, category, covers, .. } = test.candidate.planned.clone();
                match twin {
                    Some(twin) => {
                        let reasons = vec![format!("checks the same as `{twin}`")];
                        RejectedTest { name, category, reasons, is_trouble: false }
                    }
                    None => {
                        let file = host.save(&test).map_err(GenerationError::NotSaved)?;
                        let Tryout { outcomes, reason, .. } = tryout;
                        let category = test.candidate.category.name;
                        let test = Admitted { name, category, file, covers, outcomes, reason };
                        host.progress(&Progress::Admitted(&test));
                        generated.admitted.push(test);
                        admitted.push(features);
                        return Ok(());
                    }
                }
            }
        };
        host.progress(&Progress::Rejected(&rejected));
        generated.rejected.push(rejected);
        Ok(())
    }

    fn existing_with_the_same_messages(&self, test: &RenderedTest) -> Option<String> {
        let messages = || test.candidate.script.turns.iter().map(|turn| Value::from(turn.says.as_str()).to_string());
        let has_all = |text: &str| messages().all(|message| text.contains(&message));
        self.request.existing.iter().find(|existing| has_all(&existing.text)).map(|existing| existing.name.clone())
    }

    async fn ask(
        &self,
        request: &Request,
        valid: &(dyn Fn(&Value) -> Result<(), String> + Send + Sync),
    ) -> Result<Value, NoAnswer> {
        self.reserve().map_err(|reason| NoAnswer { reason: reason.to_owned(), invalid: false })?;
        let reply = structured_reply(self.model, request, valid).await;
        let mut spending = self.spending.lock().unwrap_or_else(PoisonError::into_inner);
        spending.open = spending.open.saturating_sub(1);
        spending.highest = spending.highest.max(reply.cost_usd.unwrap_or(0.0));
        let took = AuxiliaryUsage {
            requests: reply.replies.into(),
            cached: 0,
            tokens: reply.tokens,
            cost_usd: reply.cost_usd,
        };
        // A request without a reply has no cost.
        match &mut spending.usage {
            _ if reply.replies == 0 => {}
            Some(usage) => *usage += took,
            None => spending.usage = Some(took),
        }
        drop(spending);
        reply.value.map_err(|error| NoAnswer {
            reason: one_line(&error.to_string(), LONGEST_REASON),
            invalid: matches!(error, llm::StructuredReplyError::Invalid(_)),
        })
    }

    /// Counts another request in progress. Requests in progress are estimated at the cost of the most expensive one so
    /// far.
    ///
    /// # Errors
    /// Returns the reason if the request could exceed the budget.
    fn reserve(&self) -> Result<(), &'static str> {
        let mut spending = self.spending.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = self.request.budget {
            let spent = spending.usage.map_or(Some(0.0), |usage| usage.cost_usd);
            let spent = spent.ok_or("the cost so far is unknown, so the budget cannot be kept")?;
            if spent >= budget || spent + spending.highest * (spending.open + 1) as f64 > budget {
                return Err("the budget is used up");
            }
        }
        spending.open += 1;
        Ok(())
    }

    fn usage(&self) -> AuxiliaryUsage {
        self.spending.lock().unwrap_or_else(PoisonError::into_inner).usage.unwrap_or_default()
    }
}

/// Gives each test a unique file name.
fn named(planned: Vec<PlannedTest>) -> Vec<(String, PlannedTest)> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut named = Vec::new();
    for test in planned {
        let base = category::find(&test.category).map_or_else(String::new, |category| slug(category, &test.name));
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let name = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(base);
        taken.insert(name.clone());
        named.push((name, test));
    }
    named
}

/// Returns `true` if the same agent both passed and failed.
fn is_unstable(outcomes: &[Outcome]) -> bool {
    outcomes.contains(&Outcome::Passed) && outcomes.contains(&Outcome::Failed)
}

fn listed(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(|outcome| outcome.name()).collect::<Vec<_>>().join(", ")
}
