//! Judging: which model judges a run, and its verdicts about a trial.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grade::judge::{DEFAULT_JUDGES, default_judge, named_judge};
use grade::{Breaker, Cache, Check, Judge};
use llm::{Opened, Script};
use model::{Aside, Diagnostic, Ending, Event, Evidence, Finding, SimulatedUser, Status};

use super::{Attempt, Halt};
use crate::event_bus::EventSender;
use crate::plan::{PlanRequest, PlannedTrial, ReadScript, SCRIPTED, Settings};

/// The judge of a run, or the reason why it has none.
pub struct Judging {
    seat: Result<Seat, String>,
    asked: usize,
    cache: Arc<Cache>,
    breaker: Arc<Breaker>,
    /// Scripts that play users, by their names in the cases.
    users: BTreeMap<String, Arc<Script>>,
    /// Reads the scripts that become known only when code runs.
    read_script: ReadScript,
}

/// A judge that can be used.
struct Seat {
    /// Name that the user gave it.
    name: String,
    /// The script to play, if it is one.
    script: Option<Arc<Script>>,
}

impl Judging {
    /// Selects the judge that `request` names, or the first default one whose key is set. Adds to `problems` what is
    /// wrong with it, and how many assertions of `trials` stay undecided without one.
    pub(crate) fn plan(
        request: &PlanRequest<'_>,
        trials: &[Arc<PlannedTrial>],
        problems: &mut Vec<Diagnostic>,
    ) -> Self {
        let asked = trials.iter().map(|trial| judged(trial)).sum();
        let known = problems.len();
        let seat = seat(request, problems);
        let is_refused = problems[known..].iter().any(Diagnostic::is_error);
        if let (Err(because), 1.., false) = (&seat, asked, is_refused) {
            problems.push(undecided(asked, because, trials));
        }
        let mut users = BTreeMap::new();
        for user in trials.iter().filter_map(|trial| trial.case.user.as_ref()) {
            if !read_user(request, user, &seat, &mut users, problems) {
                break;
            }
        }
        Self {
            seat,
            asked,
            cache: Arc::default(),
            breaker: Arc::default(),
            users,
            read_script: Arc::clone(&request.read_script),
        }
    }

    /// Returns the model that plays `user`, and its name as its provider knows it: the one that the case names, else
    /// the judge's. A script starts from its beginning; the path of one that was not planned is relative to
    /// `directory`.
    pub(super) fn user(
        &self,
        settings: &Settings,
        user: &SimulatedUser,
        directory: &Path,
    ) -> Result<(Arc<dyn llm::Model>, String), String> {
        let nobody = |because: &dyn fmt::Display| format!("nobody plays the user: {because}");
        let played = |script: &Arc<Script>| -> Arc<dyn llm::Model> { Arc::new(script.play(llm::Stage::default())) };
        let (model, name) = match &user.model {
            None => {
                let seat = self.seat.as_ref().map_err(|because| nobody(because))?;
                let model = match &seat.script {
                    Some(script) => played(script),
                    None => open(settings, &seat.name).map_err(|error| nobody(&error))?,
                };
                (model, &seat.name)
            }
            Some(name) => {
                let model = match (self.users.get(name), name.strip_prefix(SCRIPTED)) {
                    (Some(script), _) => played(script),
                    (None, Some(file)) => played(&self.script(&directory.join(file)).map_err(|error| nobody(&error))?),
                    (None, None) => {
                        let opened = settings.providers.open(name, None, &|_| Err(Vec::new()));
                        match opened.map_err(|error| nobody(&error))? {
                            Opened::Model(model) => model,
                            Opened::Script(script) => played(&script),
                        }
                    }
                };
                (model, name)
            }
        };
        Ok((model, name.split_once(':').map_or(name.as_str(), |(_, name)| name).to_owned()))
    }

    /// Returns the script in `file`, or a one-line description of what is wrong with it.
    fn script(&self, file: &Path) -> Result<Arc<Script>, String> {
        (self.read_script)(file).map(Arc::new).map_err(|problems| match &problems[..] {
            [] => format!("the script {} cannot be read", file.display()),
            [first, rest @ ..] if !rest.is_empty() => format!("{first} (and {} more)", rest.len()),
            [first, ..] => first.to_string(),
        })
    }

    /// Number of assertions of the plan that need a judge, as far as it is known: assertions in code are known only
    /// when it runs.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// The model that judges, as the user names it.
    pub fn model(&self) -> Option<&str> {
        self.seat.as_ref().ok().map(|seat| seat.name.as_str())
    }

    /// Creates the judge of one attempt at a trial. A script starts from its beginning for each.
    fn judge(&self, settings: &Settings, planned: &PlannedTrial, events: &EventSender) -> Result<Judge, String> {
        let seat = self.seat.as_ref().map_err(Clone::clone)?;
        let judge = match &seat.script {
            Some(script) => Judge::new(&*seat.name, Arc::new(script.play(llm::Stage::default()))).of_a_script(),
            None => {
                let model = open(settings, &seat.name).map_err(|error| error.to_string())?;
                // Each attempt at each trial is judged by itself: the variance of judges is to be visible, and the
                // verdicts of two cases with the same question must not depend on each other.
                let attempt = events.attempt();
                let series = if settings.judge.cache { String::new() } else { format!("{}!{attempt}", planned.id) };
                let judge = Judge::new(&*seat.name, model).cached(Arc::clone(&self.cache), series);
                judge.with_breaker(Arc::clone(&self.breaker))
            }
        };
        // A verdict needs the text as it is, but the user's secrets must not reach the judge's provider.
        let mask = Arc::clone(events.mask());
        let judge = judge.withholding(Box::new(move |text| mask.without_values(text).into_owned()));
        Ok(judge.panel(settings.judge.judges).temperature(settings.judge.temperature))
    }
}

/// Returns the number of assertions of `trial` that need a judge, as far as it is known.
pub fn judged(trial: &PlannedTrial) -> usize {
    if trial.case.skip.is_some() {
        return 0;
    }
    let checks = trial.checks.iter().filter(|check| check.asks_judge()).count();
    let claims = trial.case.code.iter().flat_map(|code| &code.claims);
    checks + claims.filter(|claim| grade::find(&claim.name).is_some_and(grade::Assertion::is_judged)).count()
}

/// Returns the number of these that need a judge whatever the agent answers.
fn surely_judged(trial: &PlannedTrial) -> usize {
    if trial.case.skip.is_some() {
        return 0;
    }
    let checks = trial.checks.iter().filter(|check| check.always_asks_judge()).count();
    let claims = trial.case.code.iter().flat_map(|code| &code.claims);
    let is_sure = |known: &grade::Assertion| known.is_judged() && !known.may_need_no_judge();
    checks + claims.filter(|claim| grade::find(&claim.name).is_some_and(is_sure)).count()
}

/// Reports, at the first of `trials`, that some of the `asked` assertions that may need a judge stay undecided.
fn undecided(asked: usize, because: &str, trials: &[Arc<PlannedTrial>]) -> Diagnostic {
    let sure: usize = trials.iter().map(|trial| surely_judged(trial)).sum();
    let (count, verb) = match sure {
        0 => (asked, "may stay"),
        1 => (sure, "stays"),
        _ => (sure, "stay"),
    };
    let noun = if count == 1 { "assertion" } else { "assertions" };
    let mut problem = Diagnostic::warning(format!("{count} {noun} {verb} undecided: {because}"));
    if sure > 0 && sure < asked {
        problem = problem.help(format!("{} more may, unless the reply is plainly a question", asked - sure));
    }
    if let Some(first) = trials.iter().find(|trial| judged(trial) > 0) {
        let check = first.checks.iter().find(|check| check.asks_judge());
        problem = problem.at(check.map_or_else(|| first.case.source.clone(), Check::source));
    }
    if trials.iter().any(|trial| trial.case.code.is_some()) {
        problem = problem.help("counted as written: what code repeats, or asserts elsewhere, shows when it runs");
    }
    problem
}

impl fmt::Debug for Judging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Judging").field(&self.model()).finish()
    }
}

fn seat(request: &PlanRequest<'_>, problems: &mut Vec<Diagnostic>) -> Result<Seat, String> {
    let settings = request.settings;
    if let Some(because) = &settings.judge.missing {
        return Err(because.clone());
    }
    let name = match (&settings.judge.model, &settings.judge.base_url) {
        (Some(name), _) if name.trim().is_empty() => return Err("judging is switched off (`judge` is empty)".into()),
        (Some(name), _) => named_judge(name, &settings.providers),
        // A key is sent only where the user said it may be sent.
        (None, Some(_)) => {
            let problem = Diagnostic::error("an address for the judge, and no judge");
            problems.push(problem.help("name the provider and the model: set `judge`, such as to `openai:MODEL`"));
            return Err("its provider is not named".into());
        }
        (None, None) => default_judge(&settings.providers).ok_or_else(no_judge)?.to_owned(),
    };
    if let Some(file) = name.strip_prefix(SCRIPTED) {
        let script = (request.read_script)(Path::new(file)).map_err(|wrong| {
            problems.extend(wrong);
            format!("the judge {name} cannot be read")
        })?;
        return Ok(Seat { script: Some(Arc::new(script)), name });
    }
    match open(settings, &name) {
        Ok(_) => Ok(Seat { name, script: None }),
        Err(error) => {
            if !error.is_environments() {
                let told = error.to_string().replace("`base_url`", "`judge_base_url`");
                let mut problem = Diagnostic::error(format!("the judge `{name}` cannot be used: {told}"));
                problem.source.clone_from(&settings.judge.source);
                problems.push(match name.contains(':') {
                    true => problem,
                    false => problem.help(format!("a judge is `PROVIDER:MODEL`, such as `openai:{name}`")),
                });
            }
            Err(error.to_string())
        }
    }
}

/// Reads the script that plays `user`, if it is one. Returns `true` if the users of other cases are to be checked too.
fn read_user(
    request: &PlanRequest<'_>,
    user: &SimulatedUser,
    seat: &Result<Seat, String>,
    users: &mut BTreeMap<String, Arc<Script>>,
    problems: &mut Vec<Diagnostic>,
) -> bool {
    let Some(name) = &user.model else {
        if let Err(because) = seat {
            let problem = Diagnostic::warning(format!("nobody plays the user: {because}"));
            problems.push(problem.at(user.source.clone()).help("a `model` of its own would do, too"));
        }
        return seat.is_ok();
    };
    if users.contains_key(name) {
        return true;
    }
    let found = match name.strip_prefix(SCRIPTED) {
        // A missing file was already reported when the case was read.
        Some(file) if !Path::new(file).is_file() => Ok(None),
        Some(file) => (request.read_script)(Path::new(file)).map(|script| Some(Arc::new(script))),
        None => match request.settings.providers.open(name, None, &|_| Err(Vec::new())) {
            Err(error) if !error.is_environments() => Err(vec![Diagnostic::error(error.to_string())]),
            _ => Ok(None),
        },
    };
    match found {
        Ok(script) => users.extend(script.map(|script| (name.clone(), script))),
        Err(wrong) => problems.extend(wrong.into_iter().map(|problem| match problem.source {
            Some(_) => problem,
            None => problem.at(user.source.clone()),
        })),
    }
    true
}

fn open(settings: &Settings, name: &str) -> Result<Arc<dyn llm::Model>, llm::OpenError> {
    // Scripts are read by the plan, so no file is read here.
    match settings.providers.open(name, settings.judge.base_url.as_deref(), &|_| Err(Vec::new()))? {
        Opened::Model(model) => Ok(model),
        Opened::Script(_) => Err(llm::OpenError::Invalid(Vec::new())),
    }
}

/// Returns the reason why there is no judge where none was named.
fn no_judge() -> String {
    let keys: Vec<&str> = DEFAULT_JUDGES.iter().map(|judge| judge.key).collect();
    format!("no judge: set {}, or `judge` to `PROVIDER:MODEL`", keys.join(" or "))
}

impl Attempt<'_> {
    /// Returns the judge of this attempt, or the reason why there is none.
    pub(super) fn judge(&self) -> Result<&Judge, &str> {
        let made =
            self.judge.get_or_init(|| self.shared.judging.judge(&self.shared.settings, self.planned, self.events));
        made.as_ref().map_err(String::as_str)
    }

    /// Fills in the findings of those of `checks` that need a judge, and returns the usage. Judging may take as long as
    /// the trial itself; a run that is asked to stop does not wait for it.
    pub(super) async fn consult(
        &self,
        checks: &[Check],
        evidence: &Evidence,
        findings: &mut [Finding],
    ) -> Option<Aside> {
        if findings.is_empty() || !checks.iter().any(Check::asks_judge) || says_nothing(&evidence.ending) {
            return None;
        }
        self.events.emit(Event::Waiting { on: "judge".into() });
        let limit = Duration::from_millis(self.planned.limits.timeout_ms);
        let began = Instant::now();
        let asked = Box::pin(grade::consult(checks, evidence, self.judge(), findings));
        let because = match self.unless(Halt::Stop, tokio::time::timeout(limit, asked)).await {
            Ok(Ok(took)) => {
                let latency_ms = u64::try_from(began.elapsed().as_millis()).ok();
                for (_, finding) in checks.iter().zip(findings).filter(|(check, _)| check.asks_judge()) {
                    finding.latency_ms = latency_ms;
                }
                return took;
            }
            Ok(Err(_)) => {
                let setting = self.planned.limits.timeout_from.as_deref().unwrap_or("timeout");
                let within = format!("within {} s ({setting})", limit.as_secs_f64());
                // The judge's client was still retrying, and knows the reason.
                let because = match self.judge().ok().and_then(Judge::last_error) {
                    Some(error) => format!("the judge gave no verdict {within}; its last error: {error}"),
                    None => format!("the judge did not answer {within}"),
                };
                self.shared.judging.breaker.failed(&because, false);
                because
            }
            Err(_) => "the run was stopped before the judge answered".to_owned(),
        };
        for (check, finding) in checks.iter().zip(findings).filter(|(check, _)| check.asks_judge()) {
            if finding.status == Status::Undecided {
                (finding.because, finding.error) = (because.clone(), Some(because.clone()));
                debug_assert_eq!(check.id(), finding.id);
            }
        }
        None
    }
}

/// Returns `true` if a trial that ended like this has no verdict, whatever its findings are.
fn says_nothing(ending: &Ending) -> bool {
    matches!(
        ending,
        Ending::ProviderFailed { .. } | Ending::Aborted { .. } | Ending::InvalidTest { .. } | Ending::Cancelled
    )
}
