//! The act phase of a case that is code: the trial carries out the scenario's requests one after another, while the
//! clock runs.

mod conversations;
mod judged;
mod reply;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::{Session, Turn};
use model::{AuxiliaryUsage, Collected, Ending, Excerpt, SimulatedUser, Step, UserMessage};
use sandbox::{Breakage, Sandbox};
use script::{ScriptError, Value};

pub(super) use self::conversations::Conversations;
use self::judged::PendingClaim;
use self::reply::reply;
use super::clock::{Clock, Watched};
use super::{Attempt, StopLevel};
use crate::code::{Claims, Files, ScenarioRequest, Script, ScriptEvent, ScriptFailure, WITHOUT_SANDBOX};
use crate::user::Move;

/// Time that a stopped scenario gets to deliver its remaining messages. Only work inside the engine can take longer,
/// and such work is abandoned.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// CPU time after which a scenario that is still running at its timeout is considered endless.
const BUSY: Duration = Duration::from_secs(1);
/// Maximum bytes of answers and files that a correct scenario can process within its limits, whatever it does with
/// them.
const MOST_HARMLESS: usize = 1024 * 1024;

/// Result of running a scenario.
pub(super) struct ScenarioEnd {
    pub(super) ending: Ending,
    pub(super) claims: Claims,
    /// Usage of the judge.
    pub(super) judge: Option<AuxiliaryUsage>,
}

/// State for running a scenario.
pub(super) struct RunningScenario<'s> {
    attempt: &'s Attempt<'s>,
    session: &'s mut dyn Session,
    others: &'s mut Conversations,
    turn: &'s mut Turn,
    clock: &'s Clock<'s>,
    sandbox: Option<Arc<dyn Sandbox>>,
    script: Script,
    claims: Claims,
    /// Ending of the agent, once it has ended.
    ending: Option<Ending>,
    /// Error that the scenario received when the agent had ended.
    refused: Option<String>,
    /// Time of the last message from the scenario or answer to it. Since then it has been running on its own.
    last_contact: Instant,
    /// Number of bytes produced by the agent that the scenario received, as JSON.
    given: usize,
    /// State of the sandbox, collected since the last action in it.
    collected: Option<Collected>,
    /// `true` if the scenario was stopped and has delivered its remaining messages.
    is_over: bool,
    /// Claims that wait for the judge.
    pending: Vec<PendingClaim>,
    judge: Option<AuxiliaryUsage>,
}

impl<'s> RunningScenario<'s> {
    pub(super) fn new(
        attempt: &'s Attempt<'s>,
        session: &'s mut dyn Session,
        others: &'s mut Conversations,
        turn: &'s mut Turn,
        clock: &'s Clock<'s>,
        sandbox: Option<Arc<dyn Sandbox>>,
        script: Script,
    ) -> Self {
        Self {
            attempt,
            session,
            others,
            turn,
            clock,
            sandbox,
            script,
            claims: Claims::default(),
            ending: None,
            refused: None,
            last_contact: Instant::now(),
            given: 0,
            collected: None,
            is_over: false,
            pending: Vec::new(),
            judge: None,
        }
    }

    /// Runs the scenario to its end.
    pub(super) async fn play(mut self) -> Result<ScenarioEnd, Breakage> {
        loop {
            let stopping = self.turn.stopping();
            match self.clock.watch(self.script.listen(stopping)).await {
                Watched::Done(()) => {}
                Watched::Ended(ending) => {
                    self.out_of_time(ending).await?;
                    break;
                }
            }
            let Some(event) = self.script.take() else { continue };
            if let ControlFlow::Break(()) = self.handle_event(event).await? {
                break;
            }
            self.last_contact = Instant::now();
            if self.is_over {
                break;
            }
            // Once the agent has used up its time, the scenario has none left either.
            if matches!(self.ending, Some(Ending::TimedOut { .. } | Ending::Cancelled)) {
                self.stop_and_drain().await?;
                break;
            }
        }
        let Self { ending, claims, judge, .. } = self;
        Ok(ScenarioEnd { ending: ending.unwrap_or(Ending::Finished), claims, judge })
    }

    async fn handle_event(&mut self, event: ScriptEvent) -> Result<ControlFlow<()>, Breakage> {
        match event {
            ScriptEvent::Line(text) => self.note(text),
            ScriptEvent::Requests(asks) => {
                for (request, ask) in asks {
                    match ask {
                        _ if self.is_over => {}
                        Ok(ask) => self.ask(request, ask).await?,
                        Err(reason) => self.script.answer(request, Err(reason)),
                    }
                }
                self.consult().await?;
            }
            ScriptEvent::Ended(Ok(())) => return Ok(ControlFlow::Break(())),
            ScriptEvent::Ended(Err(trouble)) => {
                self.ended_badly(trouble)?;
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Records a line of the scenario's console.
    fn note(&mut self, text: String) {
        // If this reaches a limit, the next step reports it too.
        let _ = self.turn.record(Step::Notice { from: "test".to_owned(), text });
    }

    /// Handles a request that only has to be recorded; returns any other request.
    fn noted(&mut self, request: u64, ask: ScenarioRequest) -> Option<ScenarioRequest> {
        let answer = match ask {
            ScenarioRequest::Claim(observed) => {
                self.claims.observe(observed);
                Value::Undefined
            }
            ScenarioRequest::Observed(observed) => {
                let (number, took) = (observed.number, observed.latency_ms.unwrap_or_default());
                self.claims.observe(observed);
                self.claims.result(number, took)
            }
            ScenarioRequest::Overlap => {
                self.turn.warn(OVERLAP);
                Value::Undefined
            }
            ScenarioRequest::Score(name, value) => {
                self.claims.scores.insert(name, value);
                Value::Undefined
            }
            ScenarioRequest::Secret(text) => {
                self.attempt.planned.state.secrets.learn([text]);
                Value::Undefined
            }
            other => return Some(other),
        };
        self.script.answer(request, Ok(answer));
        None
    }

    async fn ask(&mut self, request: u64, ask: ScenarioRequest) -> Result<(), Breakage> {
        let Some(ask) = self.noted(request, ask) else { return Ok(()) };
        let files = Files(self.sandbox.clone());
        if matches!(ask, ScenarioRequest::Send(..) | ScenarioRequest::Converse(..) | ScenarioRequest::Run(..)) {
            // Claims are about the state at the time when they were made.
            self.consult().await?;
        }
        let answer = match ask {
            ScenarioRequest::Assert(claim) => {
                let attempt = self.attempt;
                return match attempt.unless(StopLevel::Stop, self.assert(request, &claim)).await {
                    Ok(asserted) => asserted,
                    Err(_) => {
                        self.ending = Some(Ending::Cancelled);
                        Ok(())
                    }
                };
            }
            ScenarioRequest::Claim(_)
            | ScenarioRequest::Observed(_)
            | ScenarioRequest::Overlap
            | ScenarioRequest::Score(..)
            | ScenarioRequest::Secret(_) => return Ok(()),
            ScenarioRequest::Send(mut message, conversation) => {
                message.tools.clone_from(&self.attempt.planned.case.tools);
                self.say(&message, conversation.as_deref()).await?
            }
            ScenarioRequest::Converse(user, conversation) => self.talk(*user, conversation.as_deref()).await?,
            ScenarioRequest::Read(path) => files.read(path).await,
            ScenarioRequest::List(path) => files.list(path).await,
            ScenarioRequest::Exists(path) => files.exists(path).await,
            ScenarioRequest::Run(command, timeout) => {
                self.collected = None;
                match self.clock.watch(files.run(&command, timeout)).await {
                    Watched::Done(ran) => ran,
                    Watched::Ended(ending) => return self.out_of_time(ending).await,
                }
            }
        };
        self.given += answer.as_ref().map_or(0, |given| given.to_json().to_string().len());
        self.script.answer(request, answer);
        Ok(())
    }

    /// Sends one message and returns the reply, or the error for the scenario if there is none.
    async fn say(
        &mut self,
        message: &UserMessage,
        conversation: Option<&str>,
    ) -> Result<Result<Value, String>, Breakage> {
        Ok(Ok(match self.send(message, conversation).await? {
            Some(number) => reply(self.turn.trace(), number),
            None => Value::Map(vec![("refused".into(), self.refusal().into())]),
        }))
    }

    /// Has a model play the user until it has nothing more to say.
    async fn talk(
        &mut self,
        user: SimulatedUser,
        conversation: Option<&str>,
    ) -> Result<Result<Value, String>, Breakage> {
        let mut player = self.attempt.player(user)?;
        let mut replies = Vec::new();
        let reason = loop {
            match self.attempt.next_move(&mut player, self.turn, self.clock).await {
                Watched::Ended(ending) => {
                    self.out_of_time(ending).await?;
                    return Ok(Err("no time is left".to_owned()));
                }
                Watched::Done(Ok(Move::Say(text))) => {
                    let message = self.attempt.said_by(&player, text);
                    match self.send(&message, conversation).await? {
                        Some(number) => replies.push(reply(self.turn.trace(), number)),
                        None => break self.refusal(),
                    }
                }
                Watched::Done(Ok(Move::Leave(reason))) => break reason,
                Watched::Done(Err(error)) => {
                    self.ending.get_or_insert(error.ending());
                    return Ok(Err(self.refusal()));
                }
            }
        };
        Ok(Ok(Value::Map(vec![("replies".into(), Value::List(replies)), ("reason".into(), reason.into())])))
    }

    /// Sends one message. Returns its number, from 1, if the agent has answered it.
    async fn send(&mut self, message: &UserMessage, conversation: Option<&str>) -> Result<Option<usize>, Breakage> {
        if let Some(name) = conversation {
            self.enter(name).await?;
        }
        if self.ending.is_some() {
            return Ok(None);
        }
        self.collected = None;
        let number = self.turn.trace().user_messages.len() + 1;
        let other = conversation.and_then(|name| self.others.find(name));
        let session: &mut dyn Session = match other {
            Some(other) => other.as_mut(),
            None => &mut *self.session,
        };
        let ending = self.attempt.send(session, message, 0, self.turn, self.clock).await;
        if ending.goes_on() {
            return Ok(Some(number));
        }
        self.ending = Some(ending);
        Ok(None)
    }

    /// Opens the conversation called `name` if needed, and records that the next message belongs to it.
    async fn enter(&mut self, name: &str) -> Result<(), Breakage> {
        if self.ending.is_some() {
            return Ok(());
        }
        if self.others.find(name).is_none() {
            match self.clock.watch(self.others.open(name)).await {
                Watched::Done(opened) => opened?,
                Watched::Ended(ending) => self.ending = Some(ending),
            }
        }
        self.note(format!("conversation `{name}`:"));
        Ok(())
    }

    /// Returns the error for a scenario that sends a message to an agent that has ended.
    fn refusal(&mut self) -> String {
        let how = self.ending.as_ref().map(Ending::describe).unwrap_or_default();
        let first = format!("the agent did not reply: {how}");
        match &self.refused {
            None => self.refused.insert(first).clone(),
            Some(_) => format!("the agent has ended and accepts no more messages: {how}"),
        }
    }

    /// Handles a timeout, or a request to stop the run, while the agent is not working.
    async fn out_of_time(&mut self, ending: Ending) -> Result<(), Breakage> {
        let after = match &ending {
            Ending::TimedOut { setting, after_ms, .. } => Some(format!("{} s ({setting})", *after_ms as f64 / 1e3)),
            _ => None,
        };
        let Some(after) = after else {
            self.ending = Some(ending);
            return self.stop_and_drain().await;
        };
        let busy = self.last_contact.elapsed();
        let (place, doing) = match self.stopped().await? {
            // It had already thrown, and was only waiting for work that it had started; or it had not begun.
            Some(
                trouble @ (ScriptFailure::Ended(ScriptError::Thrown { .. } | ScriptError::Environment { .. })
                | ScriptFailure::Unloaded(_)),
            ) => {
                return self.ended_badly(trouble);
            }
            Some(ScriptFailure::Ended(error @ ScriptError::TimedOut { .. })) if self.is_endless(busy) => {
                let reason = format!("the scenario was stopped after {after}: it was still running");
                let place = error.place().cloned().unwrap_or_else(|| self.head());
                self.ending = Some(Ending::InvalidTest { reason: format!("{place}: {reason}") });
                return Ok(());
            }
            Some(ScriptFailure::Ended(error)) => (error.place().cloned(), "it was still running"),
            Some(ScriptFailure::Stopped(waiting)) => (None, waiting),
            _ => (None, "it had not finished"),
        };
        let reason = format!("the scenario was stopped after {after}: {doing}");
        let place = place.unwrap_or_else(|| self.head());
        self.claims.failed(&reason, place, Vec::new());
        Ok(())
    }

    /// Processes the remaining messages of the scenario and ignores how it ends.
    async fn stop_and_drain(&mut self) -> Result<(), Breakage> {
        self.stopped().await.map(drop)
    }

    /// Stops the scenario and processes the claims it has made so far. Returns why it ended, if it reports that.
    async fn stopped(&mut self) -> Result<Option<ScriptFailure>, Breakage> {
        self.script.stop();
        self.is_over = true;
        let until = tokio::time::Instant::now() + DRAIN_TIMEOUT;
        while tokio::time::timeout_at(until, self.script.listen(std::future::pending())).await.is_ok() {
            match self.script.take() {
                Some(ScriptEvent::Ended(ended)) => return Ok(ended.err()),
                Some(ScriptEvent::Line(text)) => self.note(text),
                Some(ScriptEvent::Requests(asks)) => {
                    for (request, ask) in asks {
                        // Nothing new is started, and a stopped trial's claims are not graded.
                        let noted = ask.ok().and_then(|ask| self.noted(request, ask));
                        if let Some(ScenarioRequest::Assert(claim)) = noted
                            && self.ending != Some(Ending::Cancelled)
                        {
                            self.assert(request, &claim).await?;
                        }
                    }
                    self.consult().await?;
                }
                None => {}
            }
        }
        Ok(None)
    }

    /// Handles a scenario that threw, or exceeded one of its limits.
    fn ended_badly(&mut self, trouble: ScriptFailure) -> Result<(), Breakage> {
        let error = match trouble {
            ScriptFailure::Unloaded(error) | ScriptFailure::Ended(error)
                if self.ending.is_none()
                    && matches!(error, ScriptError::Environment { .. })
                    && !self.is_named_by_agent(&error.to_string()) =>
            {
                // The same test may pass when it is repeated.
                let reason = placed(&error, &format!("the test's own code failed: {error}"));
                return Err(Breakage::environment(reason));
            }
            ScriptFailure::Unloaded(error) => return Err(Breakage::test(placed(&error, &error.to_string()))),
            ScriptFailure::Ended(error) => error,
            ScriptFailure::Stopped(_) => return Ok(()),
        };
        // The record already says that the agent did not reply.
        if let ScriptError::Thrown { message, .. } = &error
            && self.refused.as_ref() == Some(message)
        {
            return Ok(());
        }
        let reason = match &error {
            ScriptError::TimedOut { budget, .. } => {
                format!("the scenario was stopped after it had used the CPU for {} s", budget.as_secs_f64())
            }
            ScriptError::OutOfMemory { .. } => format!("the scenario {error}"),
            error => error.to_string(),
        };
        if self.is_mistake(&error) {
            // The claims so far are not evidence: the rest of the test was not run.
            let help = help(&error).map_or_else(String::new, |help| format!("; {help}"));
            let place = error.place().cloned().unwrap_or_else(|| self.head());
            self.ending = Some(Ending::InvalidTest { reason: format!("{place}: {reason}{help}") });
            return Ok(());
        }
        let place = error.place().cloned().unwrap_or_else(|| self.head());
        let way = error.stack().iter().skip(1).map(|frame| format!("at {frame}"));
        // The source of the mistake is not known, so both possibilities are mentioned.
        let is_unclear = matches!(&error, ScriptError::Thrown { name, .. } if name == "TypeError");
        let unclear = is_unclear.then(|| {
            "it counts against the agent, because its answer may be the cause; if it is not, the test has a mistake here"
                .to_owned()
        });
        let evidence = error.help().map(str::to_owned).into_iter().chain(unclear).chain(way).collect();
        self.claims.failed(&reason, place, evidence);
        Ok(())
    }

    /// Returns `true` if `error` is a mistake in the test's own code, because no answer from the agent can cause it: a
    /// name that is not defined, a part of a global object or a sandbox that does not exist, a missing `await`, code
    /// that never ends, or anything thrown before the first message was sent to the agent. Once the agent has ended, its
    /// ending takes precedence.
    fn is_mistake(&self, error: &ScriptError) -> bool {
        if self.ending.is_some() {
            return false;
        }
        match error {
            ScriptError::Syntax { .. } | ScriptError::Missing { .. } => true,
            ScriptError::TimedOut { .. } | ScriptError::OutOfMemory { .. } => self.given <= MOST_HARMLESS,
            ScriptError::NeverSettled | ScriptError::Crashed { .. } => true,
            ScriptError::Thrown { name, .. } if name == "ReferenceError" && is_in_text(error) => true,
            ScriptError::Thrown { message, .. } if message.ends_with(NEEDS_AWAIT) => true,
            ScriptError::Thrown { message, .. } if message.contains(WITHOUT_SANDBOX) && self.sandbox.is_none() => true,
            ScriptError::Thrown { .. } if error.is_limit() => true,
            ScriptError::Thrown { .. } => self.turn.trace().user_messages.is_empty(),
            // The agent has named the server.
            ScriptError::Environment { .. } | ScriptError::NoRuntime(_) | ScriptError::Failed(_) => false,
        }
    }

    /// Returns `true` if an answer of the agent contains a host or a port that `reason` names. If a test opens what the
    /// agent told it to open, an agent that names a wrong server has failed.
    fn is_named_by_agent(&self, reason: &str) -> bool {
        let words = reason.split(|letter: char| letter.is_whitespace() || "()".contains(letter));
        let mut names = words.map(|word| word.trim_end_matches(':')).flat_map(|word| {
            let (host, port) = word.rsplit_once(':').unwrap_or((word, ""));
            let port = Some(format!(":{port}")).filter(|_| port.parse::<u16>().is_ok());
            port.into_iter().chain(Some(host.to_owned()).filter(|host| host.contains('.')))
        });
        let replies = &self.turn.trace().replies;
        names.any(|name| replies.iter().any(|reply| reply.answer.as_ref().is_some_and(|answer| answer.contains(&name))))
    }

    /// Returns `true` if the scenario has been running on its own for so long that it is considered endless.
    fn is_endless(&self, busy: Duration) -> bool {
        let half = Duration::from_millis(self.attempt.planned.limits.timeout_ms / 2);
        self.ending.is_none() && self.given <= MOST_HARMLESS && busy >= half.min(BUSY)
    }

    /// Returns the location where the scenario begins.
    fn head(&self) -> Excerpt {
        self.attempt.planned.case.source.clone()
    }
}

/// Returns `true` if the name in the error is in the line that threw it. If a test evaluates code from an agent, that
/// code has its own names.
fn is_in_text(error: &ScriptError) -> bool {
    let ScriptError::Thrown { message, .. } = error else { return false };
    // `NAME is not defined`, or `OBJECT` has no `NAME`.
    let bare = message.split_whitespace().next().unwrap_or_default().trim_matches(['\'', '`', '"']);
    let mut names = message.split('`').skip(1).step_by(2).chain([bare]);
    names.any(|name| {
        let first = name.split('.').next().unwrap_or_default();
        !first.is_empty() && error.place().is_some_and(|place| place.text.contains(first))
    })
}

/// End of the error of the prelude about a property that was read from a promise.
const NEEDS_AWAIT: &str = "which needs `await`";

/// Warning about messages that do not wait for one another.
const OVERLAP: &str = "several messages were sent at once in the same conversation, so each waits for the previous \
                       reply; `agents.NAME.send(…)` starts a separate conversation";

/// Returns advice about a mistake.
fn help(error: &ScriptError) -> Option<String> {
    let known = error.help().map(str::to_owned);
    match error {
        ScriptError::Thrown { name, message, .. } if name == "ReferenceError" => missing_name(message).or(known),
        _ => known,
    }
}

/// Returns advice about `x is not defined`.
fn missing_name(message: &str) -> Option<String> {
    const EXPORTED: [&str; 5] = ["scenario", "persona", "assert", "score", "sleep"];
    let name = message.strip_suffix(" is not defined")?.trim_matches(['\'', '`', '"']);
    Some(match name {
        name if EXPORTED.contains(&name) => format!("`import {{ {name} }} from 'trialrun'`"),
        "exports" => "modules are imported by `import … from '…'`".to_owned(),
        name => match model::nearest(name, EXPORTED.into_iter().chain(["agent", "agents"])) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!("define `{name}`, or import it from the module that exports it"),
        },
    })
}

/// Returns `reason`, preceded by the location of `error`.
fn placed(error: &ScriptError, reason: &str) -> String {
    match error.place() {
        Some(place) => format!("{place}: {reason}"),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
