//! The models that judge a run and play its users.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use cassette::{Sender, Tape};
use grade::judge::{DEFAULT_JUDGES, PROMPTS_VERSION, default_judge, named_judge};
use grade::{Assertion, Breaker, Cache, Check, Judge};
use llm::Script;
use mask::Mask;
use model::statistics::Chance;
use model::{Diagnostic, Excerpt, JudgeCache};

use super::costs::unpriced_aside;
use super::request::{PlanRequest, ReadScript};
use super::settings::Settings;
use super::trial::{PlannedTrial, SCRIPTED, unread_script};
use crate::recorded_model::RecordedModel;

/// The judge of a run, or the reason why it has none.
pub struct Judging {
    judge: Result<JudgeModel, String>,
    /// Reason why the judge may not decide assertions. It may still play users.
    refusal: Option<String>,
    /// Trials that the judge decides; `None` if it decides all.
    sample: Option<HashSet<String>>,
    cache: Arc<Cache>,
    breaker: Arc<Breaker>,
    /// Scripts that play users, by their names in the cases.
    users: BTreeMap<String, Arc<Script>>,
    /// Reads scripts whose names become known only when code runs.
    read_script: ReadScript,
}

/// A judge that can be used.
pub(super) struct JudgeModel {
    /// Name that the user gave it.
    pub(super) name: String,
    /// The script to play, if it is one.
    pub(super) script: Option<Arc<Script>>,
}

impl Judging {
    /// Selects the judge that `request` sets, or the first default one whose key is set. Adds to `problems` what is
    /// wrong with it, and how many assertions in `trials` stay undecided without one.
    pub(crate) fn plan(request: &PlanRequest<'_>, trials: &[PlannedTrial], problems: &mut Vec<Diagnostic>) -> Self {
        let asked = trials.iter().map(judged).sum();
        let known = problems.len();
        let judge = judge_model(request.settings, &request.read_script, problems);
        let is_refused = problems[known..].iter().any(Diagnostic::is_error);
        let refusal = judge
            .as_ref()
            .ok()
            .and_then(|judge| request.settings.judge.gate.as_ref()?.refuses_judge(&judge.name, PROMPTS_VERSION));
        let of_judge = judge.as_ref().ok().map(|judge| judge.name.as_str());
        let players = trials.iter().flat_map(|trial| trial.players());
        let mut aside: BTreeSet<&str> = players.filter_map(|model| model.or(of_judge)).collect();
        aside.extend(of_judge.filter(|_| asked > 0));
        let address = |name: &str| request.settings.judge.base_url.as_deref().filter(|_| of_judge == Some(name));
        problems.extend(aside.into_iter().filter_map(|name| unpriced_aside(request.settings, name, address(name))));
        if let (Some(reason), 1.., false) = (judge.as_ref().err().or(refusal.as_ref()), asked, is_refused) {
            problems.push(undecided(asked, reason, trials));
        }
        let mut users = BTreeMap::new();
        for user in trials.iter().filter_map(|trial| trial.case.user.as_ref()) {
            let player = Player { what: "simulate the user", model: user.model.as_deref(), place: &user.source };
            if !player.read(request, &judge, &mut users, problems) {
                break;
            }
        }
        for mock in trials.iter().flat_map(|trial| trial.played_mocks()) {
            let player = Player { what: "play the mock", model: mock.model.as_deref(), place: &mock.place };
            if !player.read(request, &judge, &mut users, problems) {
                break;
            }
        }
        Self {
            judge,
            refusal,
            sample: sample(request.settings, trials),
            cache: Arc::new(Cache::new(request.settings.judge.store.clone(), request.settings.judge.cache)),
            breaker: Arc::default(),
            users,
            read_script: Arc::clone(&request.read_script),
        }
    }

    /// Returns the model that plays a user or a mock, and its name as its provider knows it: the one that the case sets,
    /// otherwise the judge. A script starts from its beginning; the path of one that was not planned is relative to
    /// `directory`. `what` says what the model is needed for.
    pub(crate) fn player(
        &self,
        settings: &Settings,
        model: Option<&str>,
        what: &str,
        directory: &Path,
    ) -> Result<(Arc<dyn llm::Model>, String), String> {
        let not_played = |reason: &dyn fmt::Display| format!("cannot {what}: {reason}");
        let played =
            |script: &Arc<Script>| -> Arc<dyn llm::Model> { Arc::new(script.play(llm::ScriptContext::default())) };
        let (model, name) = match model {
            None => {
                let judge = self.judge.as_ref().map_err(|reason| not_played(reason))?;
                let model = match &judge.script {
                    Some(script) => played(script),
                    None => open(settings, &judge.name).map_err(|error| not_played(&error))?,
                };
                (model, judge.name.as_str())
            }
            Some(name) => {
                let model = match (self.users.get(name), name.strip_prefix(SCRIPTED)) {
                    (Some(script), _) => played(script),
                    (None, Some(file)) => {
                        played(&self.script(&directory.join(file)).map_err(|error| not_played(&error))?)
                    }
                    (None, None) => settings.providers.model(name, None).map_err(|error| not_played(&error))?,
                };
                (model, name)
            }
        };
        Ok((model, name.split_once(':').map_or(name, |(_, name)| name).to_owned()))
    }

    /// Returns the script in `file`, or a one-line description of what is wrong with it.
    fn script(&self, file: &Path) -> Result<Arc<Script>, String> {
        (self.read_script)(file).map(Arc::new).map_err(|problems| match &problems[..] {
            [] => format!("the script {} cannot be read", file.display()),
            [first, rest @ ..] if !rest.is_empty() => format!("{first} (and {} more)", rest.len()),
            [first, ..] => first.to_string(),
        })
    }

    /// Returns `true` if a player is a networked model.
    pub(crate) fn player_is_on_network(&self, model: Option<&str>) -> bool {
        match model {
            Some(name) => !name.starts_with(SCRIPTED),
            None => self.judge.as_ref().is_ok_and(|judge| judge.script.is_none()),
        }
    }

    /// Returns `true` if the trial has assertions that need a networked judge.
    pub(crate) fn asks_network(&self, planned: &PlannedTrial) -> bool {
        self.judge.as_ref().is_ok_and(|judge| judge.script.is_none()) && judged(planned) > 0
    }

    /// Counts a failure of the judge against it.
    pub(crate) fn failed(&self, reason: &str) {
        self.breaker.failed(reason, false);
    }

    /// Returns `true` if the trial is in the sample that the judge decides. Returns `None` if there is no sample, or if
    /// the trial needs no judge.
    pub(crate) fn is_sampled(&self, trial: &PlannedTrial) -> Option<bool> {
        let sample = self.sample.as_ref().filter(|_| judged(trial) > 0)?;
        Some(sample.contains(&trial.id().to_string()))
    }

    /// Returns the model that judges, under the name that the user gave it.
    pub fn model(&self) -> Option<&str> {
        self.judge.as_ref().ok().map(|judge| judge.name.as_str())
    }

    /// Creates the judge for one attempt at a trial. A script starts from its beginning for each attempt.
    pub(crate) fn judge(
        &self,
        settings: &Settings,
        planned: &PlannedTrial,
        attempt: u32,
        mask: &Arc<Mask>,
        tape: Option<&Arc<Tape>>,
    ) -> Result<Judge, String> {
        let chosen = self.judge.as_ref().map_err(Clone::clone)?;
        if let Some(reason) = &self.refusal {
            return Err(reason.clone());
        }
        let judge = match &chosen.script {
            Some(script) => {
                Judge::new(&*chosen.name, Arc::new(script.play(llm::ScriptContext::default()))).of_a_script()
            }
            None => {
                let model = open(settings, &chosen.name).map_err(|error| error.to_string())?;
                // Each attempt at each trial is judged separately, so that the variance of judges is visible, and the
                // verdicts of two cases with the same question do not depend on each other.
                let series = match settings.judge.cache {
                    JudgeCache::Share => String::new(),
                    _ => format!("{}!{attempt}", planned.id()),
                };
                // A recording must contain all judgements of its trial, so the cache is not used with a tape.
                let cache = tape.is_none().then(|| Arc::clone(&self.cache));
                let judge = Judge::new(&*chosen.name, RecordedModel::wrap(model, tape, Sender::Judge));
                let judge = match cache {
                    Some(cache) => judge.cached(cache, series),
                    None => judge,
                };
                judge.with_breaker(Arc::clone(&self.breaker))
            }
        };
        let judge = judge.gated(settings.judge.gate.clone()).batching(settings.judge.batch);
        Ok(with_settings(judge, settings, mask))
    }
}

/// Adds the settings that apply to every question: the number of judges, their temperature, and what they must not see.
pub(super) fn with_settings(judge: Judge, settings: &Settings, mask: &Arc<Mask>) -> Judge {
    // Grading needs the unmasked text, but the user's secrets must not be sent to the judge's provider.
    let (withheld, mask) = (Arc::clone(mask), Arc::clone(mask));
    let judge = judge.withholding(Box::new(move |text| withheld.without_values(text).into_owned()));
    let judge = judge.masking(Box::new(move |text| mask.text(text).into_owned()));
    judge.panel(settings.judge.judges).temperature(settings.judge.temperature)
}

/// Chooses the trials that the judge decides, if the settings ask for a sample. The choice depends only on the seed and
/// the ids of the trials that need a judge.
fn sample(settings: &Settings, trials: &[PlannedTrial]) -> Option<HashSet<String>> {
    let wanted = settings.judge.sample?;
    let mut ids: Vec<String> =
        trials.iter().filter(|trial| judged(trial) > 0).map(|trial| trial.id().to_string()).collect();
    ids.sort_unstable();
    Chance::new(settings.arms.seed).shuffle(&mut ids);
    ids.truncate(wanted.of(ids.len()));
    Some(ids.into_iter().collect())
}

/// Returns the number of assertions in `trial` that need a judge, as far as it is known.
pub fn judged(trial: &PlannedTrial) -> usize {
    count(trial, Check::asks_judge, Assertion::is_judged)
}

/// Returns the number of these assertions that need a judge whatever the agent answers.
fn surely_judged(trial: &PlannedTrial) -> usize {
    count(trial, Check::always_asks_judge, |known| known.is_judged() && !known.may_need_no_judge())
}

/// Counts the assertions in `trial`, those in expectations and those in code.
fn count(trial: &PlannedTrial, check: fn(&Check) -> bool, claim: fn(&Assertion) -> bool) -> usize {
    if trial.case.skip.is_some() {
        return 0;
    }
    let claims = trial.case.code.iter().flat_map(|code| &code.claims);
    let checks = trial.checks.iter().filter(|one| check(one)).count();
    checks + claims.filter(|written| grade::find(&written.name.value).is_some_and(claim)).count()
}

/// Reports, at the first of the `trials`, that some of the `asked` assertions that may need a judge stay undecided.
fn undecided(asked: usize, reason: &str, trials: &[PlannedTrial]) -> Diagnostic {
    let sure: usize = trials.iter().map(surely_judged).sum();
    let (count, verb) = match sure {
        0 => (asked, "may stay"),
        1 => (sure, "stays"),
        _ => (sure, "stay"),
    };
    let count = model::text::counted(count, "assertion");
    let mut problem = Diagnostic::warning(format!("{count} {verb} undecided: {reason}"));
    if sure > 0 && sure < asked {
        problem = problem.help(format!("{} more may, unless the reply is plainly a question", asked - sure));
    }
    if let Some(first) = trials.iter().find(|trial| judged(trial) > 0) {
        let check = first.checks.iter().find(|check| check.asks_judge());
        problem = problem.at(check.map_or_else(|| first.case.source.clone(), Check::source));
    }
    if trials.iter().any(|trial| trial.case.code.is_some()) {
        problem = problem.help("counted in the source: loops and other functions may make more assertions at run time");
    }
    problem
}

impl fmt::Debug for Judging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Judging").field(&self.model()).finish()
    }
}

/// Returns the judge that `settings` set, or the first default one whose key is set. Adds to `problems` what is wrong
/// with the settings.
pub(super) fn judge_model(
    settings: &Settings,
    read_script: &ReadScript,
    problems: &mut Vec<Diagnostic>,
) -> Result<JudgeModel, String> {
    if let Some(reason) = &settings.judge.missing {
        return Err(reason.clone());
    }
    let name = match (&settings.judge.model, &settings.judge.base_url) {
        (Some(name), _) if name.trim().is_empty() => return Err("judging is switched off (`judge` is empty)".into()),
        (Some(name), base_url) => named_judge(name, base_url.as_deref(), &settings.providers),
        // A key is sent only where the user said it may be sent.
        (None, Some(_)) => {
            let problem = Diagnostic::error("the judge has an address but no model");
            problems.push(problem.help("set `judge` to the provider and the model, such as `openai:MODEL`"));
            return Err("its provider is not set".into());
        }
        (None, None) => default_judge(&settings.providers).ok_or_else(no_judge)?.to_owned(),
    };
    if let Some(file) = name.strip_prefix(SCRIPTED) {
        let mut script = read_script(Path::new(file)).map_err(|wrong| {
            let setting = settings.judge.source.as_ref();
            problems.extend(wrong.into_iter().map(|problem| unread_script(problem, "the judge's script", setting)));
            format!("the judge {name} cannot be read")
        })?;
        problems.extend(script.take_warnings());
        return Ok(JudgeModel { script: Some(Arc::new(script)), name });
    }
    match open(settings, &name) {
        Ok(_) => Ok(JudgeModel { name, script: None }),
        Err(error) => {
            if !error.is_environments() {
                let message = error.to_string().replace("`base_url`", "`judge_base_url`");
                let mut problem = Diagnostic::error(format!("the judge `{name}` cannot be used: {message}"));
                problem.source.clone_from(&settings.judge.source);
                let is_provider = llm::PROVIDERS.iter().any(|provider| provider.name == name);
                let is_clear = name.contains(':') || is_provider || message.contains("did you mean");
                problems.push(match is_clear {
                    true => problem,
                    false => problem.help("a judge is `PROVIDER:MODEL`, such as `anthropic:claude-haiku-4-5`"),
                });
            }
            Err(error.to_string())
        }
    }
}

/// A model that plays a user or a mock.
struct Player<'a> {
    /// What it is needed for: `simulate the user`.
    what: &'static str,
    /// Its name; `None` for the judge.
    model: Option<&'a str>,
    place: &'a Excerpt,
}

impl Player<'_> {
    /// Reads its script, and reports what is wrong with it. Returns `false` if there is no judge to play it, which is
    /// reported once.
    fn read(
        &self,
        request: &PlanRequest<'_>,
        judge: &Result<JudgeModel, String>,
        users: &mut BTreeMap<String, Arc<Script>>,
        problems: &mut Vec<Diagnostic>,
    ) -> bool {
        let Some(name) = self.model else {
            if let Err(reason) = judge {
                let problem = Diagnostic::warning(format!("cannot {}: {reason}", self.what));
                let owner = if self.what.ends_with("user") { "user's" } else { "mock's" };
                problems.push(problem.at(self.place.clone()).help(format!("or set the {owner} `model`")));
            }
            return judge.is_ok();
        };
        if users.contains_key(name) {
            return true;
        }
        let found = match name.strip_prefix(SCRIPTED) {
            // A missing file was already reported when the case was read.
            Some(file) if !Path::new(file).is_file() => Ok(None),
            Some(file) => (request.read_script)(Path::new(file)).map(|mut script| {
                problems.extend(script.take_warnings());
                Some(Arc::new(script))
            }),
            None => match request.settings.providers.model(name, None) {
                Err(error) if !error.is_environments() => Err(vec![Diagnostic::error(error.to_string())]),
                _ => Ok(None),
            },
        };
        match found {
            Ok(script) => users.extend(script.map(|script| (name.to_owned(), script))),
            Err(wrong) => problems.extend(wrong.into_iter().map(|problem| problem.or_at(|| self.place.clone()))),
        }
        true
    }
}

pub(super) fn open(settings: &Settings, name: &str) -> Result<Arc<dyn llm::Model>, llm::OpenError> {
    settings.providers.model(name, settings.judge.base_url.as_deref())
}

/// Returns the reason why there is no judge although none was set.
fn no_judge() -> String {
    let keys: Vec<&str> = DEFAULT_JUDGES.iter().map(|judge| judge.key).collect();
    format!("no judge: set {}, or `judge` to `PROVIDER:MODEL`", keys.join(" or "))
}
