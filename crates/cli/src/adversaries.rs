//! Runs cases with adversaries: `audit` those of whole suites, `gen` those of each test before writing it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent::{ADVERSARIES, Adversary, Agent, Role};
use audit::{AuditBuilder, AuditedCase, Cause, Verdict};
use model::{Envelope, Event, Solution, TrialRecord};
use runner::{Control, Listener, PlannedTrial};
use session::{Error, Planned, Session};
use tokio::sync::mpsc::UnboundedReceiver;

/// Trials with adversaries.
pub struct AdversaryTrials {
    planned: Planned,
    builder: AuditBuilder,
}

impl AdversaryTrials {
    /// Takes a plan for the adversaries. Trials of adversaries that cannot show anything about their case are
    /// omitted.
    pub fn of(mut planned: Planned) -> Self {
        let mut builder = AuditBuilder::default();
        let trials = &mut planned.plan.trials;
        for trial in &*trials {
            builder.add(audited(trial));
        }
        let applies = |trial: &PlannedTrial| {
            let adversary = ADVERSARIES.iter().find(|adversary| adversary.name() == trial.agent.name());
            adversary.is_some_and(|adversary| adversary.applies(&trial.case))
        };
        trials.retain(|trial| applies(trial) && audited(trial).not_audited.is_none());
        trials.iter_mut().for_each(give_solution);
        Self { planned, builder }
    }

    /// The plan.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// Runs the trials. Returns their verdicts, and the signal that stopped them.
    ///
    /// # Errors
    /// Returns an error if the run cannot start.
    pub fn run(
        self,
        session: &Session,
        controls: UnboundedReceiver<Control>,
    ) -> impl Future<Output = Result<(AuditBuilder, Option<String>), Error>> + Send + use<> {
        let Self { planned, mut builder } = self;
        let trials = &planned.plan.trials;
        let names: HashMap<String, &'static str> =
            trials.iter().map(|trial| (trial.id().to_string(), trial.agent.name())).collect();
        let records = Arc::new(Records::default());
        let ends = (!trials.is_empty()).then(|| session.run_unrecorded(planned, controls, Arc::clone(&records) as _));
        async move {
            let Some(ends) = ends else { return Ok((builder, None)) };
            let end = ends.await?;
            enter(&mut builder, records.take(), &names);
            Ok((builder, end.stopped_by))
        }
    }
}

/// Gives the folders of the case's solution to the trial that runs it.
fn give_solution(trial: &mut PlannedTrial) {
    let is_it = |adversary: &Adversary| adversary.role == Role::Reference && adversary.name() == trial.agent.name();
    if !ADVERSARIES.iter().any(|adversary| is_it(adversary)) {
        return;
    }
    let planned = Arc::make_mut(&mut trial.of);
    let case = Arc::make_mut(&mut planned.case);
    if let Some(solution) = case.graded.solution.take() {
        Arc::make_mut(&mut case.fixtures).outside.extend(solution.outside.iter().cloned());
        case.graded.solution = Some(Arc::new(Solution { outside: Vec::new(), ..(*solution).clone() }));
    }
}

/// Returns the case of a planned trial.
fn audited(trial: &PlannedTrial) -> AuditedCase {
    let case = &trial.case;
    let not_triggered = case.skill_eval.as_ref().is_some_and(|eval| !eval.should_trigger);
    let broken = || case.broken.first().map(ToString::to_string);
    let played = || case.user.as_ref().map(|_| "a model plays its user".to_owned());
    AuditedCase {
        suite: trial.suite.to_string(),
        id: case.id.clone(),
        source: case.source.clone(),
        prompt: case.messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n"),
        only_forbids: case.ruling.not || not_triggered,
        not_audited: case.skip.as_ref().map(|reason| format!("skipped: {reason}")).or_else(broken).or_else(played),
    }
}

/// Adds the verdicts on the adversaries in a fixed order, so that two audits are equal.
fn enter(builder: &mut AuditBuilder, records: Vec<TrialRecord>, names: &HashMap<String, &'static str>) {
    let number = |record: &TrialRecord| {
        let name = names.get(&*record.id)?;
        ADVERSARIES.iter().position(|adversary| adversary.name() == *name)
    };
    let mut records: Vec<(usize, TrialRecord)> =
        records.into_iter().filter_map(|record| Some((number(&record)?, record))).collect();
    records.sort_by_key(|(at, _)| *at);
    for (at, record) in records {
        let adversary = ADVERSARIES[at];
        let by =
            Cause::Adversary { name: adversary.name(), summary: adversary.description().summary, role: adversary.role };
        let (suite, case) = (record.suite.to_string(), record.case.to_string());
        builder.add_verdict(&suite, &case, Verdict::of(by, record));
    }
}

/// Records of the trials that have finished, as they finish. Nothing is written to disk.
#[derive(Default)]
pub struct Records(Mutex<Vec<TrialRecord>>);

impl Records {
    /// Takes the records so far.
    pub fn take(&self) -> Vec<TrialRecord> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Listener for Records {
    fn offer(&self, event: Envelope) -> Option<Envelope> {
        self.on_event(event);
        None
    }

    fn on_event(&self, event: Envelope) {
        if let Event::TrialFinished(record) = event.event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(*record);
        }
    }
}
