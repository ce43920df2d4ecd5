//! Trials of a plan that run one by one, when another process asks for them.

use std::collections::HashMap;
use std::sync::Arc;

use model::{AttemptRecord, TrialId};
use sandbox::{Breakage, Host};
use tokio::sync::watch;

use crate::control::StopLevel;
use crate::dispatcher::share;
use crate::event_bus::{EventBus, EventSender, Listener};
use crate::plan::{Plan, PlannedCase, PlannedTrial};
use crate::trial::{self, Shared};

/// The trials of a plan, ready to run.
pub struct Pool {
    shared: Arc<Shared>,
    /// Each case under one arm, with the number of its repetitions.
    cases: HashMap<[Arc<str>; 3], (Arc<PlannedCase>, u64)>,
}

impl Pool {
    /// Prepares to run trials of `plan`.
    ///
    /// # Errors
    /// Returns an error if the gateway, the grading threads or the directory for sandboxes cannot be created.
    pub async fn open(plan: Plan, host: Arc<Host>) -> Result<Self, Breakage> {
        let shared = Arc::new(share(&plan, host).await?);
        let mut cases: HashMap<[Arc<str>; 3], (Arc<PlannedCase>, u64)> = HashMap::new();
        for trial in plan.trials {
            let (_, repetitions) = cases.entry(trial.group()).or_insert_with(|| (Arc::clone(&trial.of), 0));
            *repetitions = trial.repetition.max(*repetitions);
        }
        Ok(Self { shared, cases })
    }

    /// Returns the planned trial with that id.
    pub fn get(&self, id: &TrialId) -> Option<PlannedTrial> {
        let (of, repetitions) = self.cases.get(&[&id.suite, &id.case, &id.arm].map(Arc::clone))?;
        let is_planned = (1..=*repetitions).contains(&id.repetition);
        is_planned.then(|| PlannedTrial { of: Arc::clone(of), repetition: id.repetition })
    }

    /// Returns the providers whose accounts the trials share.
    pub fn providers(&self) -> &llm::Providers {
        &self.shared.settings.providers
    }

    /// Runs a trial of the run with the id `run`, of which the attempts `earlier` were lost. `listener` receives its
    /// events; the last one is its outcome.
    pub async fn run(
        &self,
        run: &str,
        planned: &PlannedTrial,
        earlier: Vec<AttemptRecord>,
        stop_level: watch::Receiver<StopLevel>,
        listener: Arc<dyn Listener>,
    ) {
        let bus = Arc::new(EventBus::new(run, listener, Arc::clone(&self.shared.mask)));
        let mut events = EventSender::new(Arc::clone(&bus), &planned.id(), &self.shared.mask_of(planned));
        for _ in &earlier {
            events = events.next_attempt();
        }
        trial::begin(planned, &events);
        let shared = Arc::clone(&self.shared);
        let attempts = trial::run(planned.clone(), shared, events.clone(), stop_level, earlier);
        let record = tokio::spawn(attempts).await.unwrap_or_else(|_| trial::panicked(planned));
        events.finish(record);
        bus.close();
    }

    /// Stops the programs that were started for agents, and removes the sandboxes of trials that were killed. Returns
    /// those that could not be removed, with the reasons.
    pub async fn close(&self) -> Vec<String> {
        if let Some((case, _)) = self.cases.values().next() {
            case.state.close().await;
        }
        let left_over = self.shared.registry.remove_all().into_iter();
        left_over.map(|(path, error)| format!("{}: {error}", path.display())).collect()
    }
}
