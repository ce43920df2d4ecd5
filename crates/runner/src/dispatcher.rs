//! The dispatcher: the only one that tells the world what happens. It starts trials, hears what they tell, puts it in
//! order, counts, and passes the user's wish to stop on to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use model::{EVENT_VERSION, Envelope, Event, RunInfo, Summary, TrialRecord};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::grader::Grader;
use crate::line::{self, Line, Told};
use crate::mask::Mask;
use crate::plan::{ModelChoice, Plan, PlannedTrial};
use crate::sandbox::{Registry, Workshop};
use crate::trial::{self, Halt, Shared, millis};
use crate::{Breakage, Host};

/// What the user, or whoever records, wants of a run that is going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Start nothing more and ask agents to stop; the name of the signal or the reason. Said twice, it kills.
    Stop(String),
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunEnd {
    /// What it came to.
    pub summary: Summary,
    /// What stopped it, if something did.
    pub stopped_by: Option<String>,
    /// Sandboxes that could not be removed, and why.
    pub left_over: Vec<String>,
}

/// Runs a plan. `tell` hears every event in order, on the caller's thread; while it is busy, trials wait.
///
/// # Errors
/// When the run cannot begin: the gateway, the grading threads or the directory for sandboxes cannot be had.
pub async fn run(
    plan: Plan,
    host: Arc<Host>,
    mut info: RunInfo,
    mut controls: mpsc::UnboundedReceiver<Control>,
    tell: &mut dyn FnMut(Envelope),
) -> Result<RunEnd, Breakage> {
    let shared = Arc::new(share(&plan, host).await?);
    let (inbox, mut told) = line::inbox();
    let mut dispatcher = Dispatcher {
        teller: Teller { run: info.id.clone(), seq: 0, tell },
        plan: &plan,
        shared,
        inbox: Arc::new(inbox),
        halt: watch::channel(Halt::No).0,
        tasks: JoinSet::new(),
        running: HashMap::new(),
        next: 0,
        summary: Summary::default(),
        stopped_by: None,
    };
    dispatcher.shared.mask_run(&mut info);
    let began = Instant::now();
    dispatcher.teller.tell(None, None, Timestamp::now(), Event::RunStarted(Box::new(info)));
    loop {
        dispatcher.start_trials();
        if dispatcher.running.is_empty() {
            break;
        }
        tokio::select! {
            // What is rare comes first: an agent that never falls silent must not keep Ctrl-C from being heard.
            biased;
            Some(control) = controls.recv() => dispatcher.control(control),
            Some(ended) = dispatcher.tasks.join_next_with_id() => dispatcher.ended(ended, &mut told),
            Some(told) = told.recv() => dispatcher.hear(told),
        }
    }
    dispatcher.cancel_the_rest();
    // Every trial has closed its own sandbox; what one that was killed could not close goes now.
    let left_over = dispatcher.shared.registry.remove_all();
    let Dispatcher { mut teller, summary, stopped_by, .. } = dispatcher;
    let duration_ms = millis(began.elapsed());
    let event = Event::RunFinished { summary: summary.clone(), duration_ms, signal: stopped_by.clone() };
    teller.tell(None, None, Timestamp::now(), event);
    let left_over = left_over.into_iter().map(|(path, error)| format!("{}: {error}", path.display())).collect();
    Ok(RunEnd { summary, stopped_by, left_over })
}

async fn share(plan: &Plan, host: Arc<Host>) -> Result<Shared, Breakage> {
    let jobs = plan.settings.jobs.max(1);
    let needs_gateway =
        plan.trials.iter().any(|trial| matches!(trial.model, ModelChoice::Scripted(_)) && trial.agent.wire().is_some());
    let gateway = if needs_gateway {
        let started = gateway::Gateway::start().await;
        Some(started.map_err(|error| Breakage::environment(format!("cannot listen on loopback: {error}")))?)
    } else {
        None
    };
    let registry = Registry::new();
    Ok(Shared {
        workshop: Workshop::open_with(&plan.settings.sandbox, &host, &registry)?,
        registry,
        gateway,
        grader: Grader::start(jobs.min(4)).map_err(|error| Breakage::environment(error.to_string()))?,
        mask: Arc::new(Mask::of(&host.env)),
        settings: plan.settings.clone(),
        host,
    })
}

/// Numbers events and passes them on.
struct Teller<'a> {
    run: String,
    seq: u64,
    tell: &'a mut dyn FnMut(Envelope),
}

impl Teller<'_> {
    fn tell(&mut self, trial: Option<String>, attempt: Option<u32>, at: Timestamp, event: Event) {
        self.seq += 1;
        (self.tell)(Envelope { v: EVENT_VERSION, seq: self.seq, at, run: self.run.clone(), trial, attempt, event });
    }
}

struct Dispatcher<'a> {
    teller: Teller<'a>,
    plan: &'a Plan,
    shared: Arc<Shared>,
    inbox: Arc<mpsc::Sender<Told>>,
    halt: watch::Sender<Halt>,
    tasks: JoinSet<TrialRecord>,
    running: HashMap<tokio::task::Id, Running>,
    next: usize,
    summary: Summary,
    stopped_by: Option<String>,
}

/// A trial that has begun and has no outcome.
struct Running {
    /// Index into the plan.
    index: usize,
    /// From 1.
    attempt: u32,
}

impl Dispatcher<'_> {
    /// Starts trials while there is room. A trial is told of before its task exists, so what is counted and what runs
    /// never differ.
    fn start_trials(&mut self) {
        while self.stopped_by.is_none() && self.running.len() < self.plan.settings.jobs.max(1) {
            let index = self.next;
            let Some(planned) = self.plan.trials.get(index) else { return };
            self.next += 1;
            if let Some(because) = &planned.case.skip {
                self.finished(self.recordless(index, |planned| trial::skipped(planned, because)), 1);
                continue;
            }
            self.begin(index, 1);
            let line = Line::new(Arc::clone(&self.inbox), index);
            let task = trial::run(Arc::clone(planned), Arc::clone(&self.shared), line, self.halt.subscribe());
            let handle = self.tasks.spawn(task);
            self.running.insert(handle.id(), Running { index, attempt: 1 });
        }
    }

    /// Tells that an attempt begins.
    fn begin(&mut self, index: usize, attempt: u32) {
        let planned = &self.plan.trials[index];
        let mask = self.shared.mask_of(planned);
        let first = planned.case.messages.first();
        let mut input = first.and_then(|message| message.input.clone());
        input.iter_mut().for_each(|input| mask.value(input));
        let event = Event::TrialStarted {
            id: planned.id.clone(),
            agent: planned.arm.agent.clone(),
            model: planned.arm.model.clone(),
            subject: planned.case.subject.skill().map(|skill| skill.name.clone()),
            file: planned.case.source.file.clone(),
            messages: planned.case.messages.iter().map(|message| mask.text(&message.text).into_owned()).collect(),
            position: planned.case.position,
            script: first.and_then(|message| message.script.as_ref()).map(|script| mask.text(script).into_owned()),
            input,
        };
        self.teller.tell(Some(planned.id.to_string()), Some(attempt), Timestamp::now(), event);
    }

    fn hear(&mut self, told: Told) {
        let id = self.plan.trials[told.index].id.to_string();
        let again = matches!(told.event, Event::TrialRetried { .. });
        self.teller.tell(Some(id), Some(told.attempt), told.at, told.event);
        if again {
            if let Some(running) = self.running.values_mut().find(|running| running.index == told.index) {
                running.attempt = told.attempt + 1;
            }
            self.begin(told.index, told.attempt + 1);
        }
    }

    /// A trial's task is over. What it told before is heard first.
    fn ended(
        &mut self,
        ended: Result<(tokio::task::Id, TrialRecord), tokio::task::JoinError>,
        told: &mut mpsc::Receiver<Told>,
    ) {
        for _ in 0..told.len() {
            let Ok(told) = told.try_recv() else { break };
            self.hear(told);
        }
        let (task, record) = match ended {
            Ok((task, record)) => (task, Some(record)),
            Err(error) => (error.id(), None),
        };
        let Some(Running { index, attempt }) = self.running.remove(&task) else { return };
        let record = record.unwrap_or_else(|| {
            let because = "the trial's task panicked; this is a bug in trialrun";
            self.recordless(index, |planned| trial::broken(planned, &Breakage::harness(because)))
        });
        self.finished(record, attempt);
    }

    fn finished(&mut self, record: TrialRecord, attempt: u32) {
        self.summary.add(&record);
        let id = record.id.clone();
        self.teller.tell(Some(id), Some(attempt), Timestamp::now(), Event::TrialFinished(Box::new(record)));
    }

    fn control(&mut self, control: Control) {
        let Control::Stop(reason) = control;
        let next = if self.stopped_by.is_none() { Halt::Stop } else { Halt::Kill };
        self.stopped_by.get_or_insert(reason);
        self.halt.send_replace(next);
    }

    /// Trials that were never started are told of too: nothing of the plan is left out of a report.
    fn cancel_the_rest(&mut self) {
        for index in self.next..self.plan.trials.len() {
            self.finished(self.recordless(index, trial::cancelled), 1);
        }
    }

    /// The record of a trial that could not make one itself, without secrets.
    fn recordless(&self, index: usize, record: impl FnOnce(&PlannedTrial) -> TrialRecord) -> TrialRecord {
        let planned = &self.plan.trials[index];
        let mut record = record(planned);
        self.shared.mask_of(planned).record(&mut record);
        record
    }
}
