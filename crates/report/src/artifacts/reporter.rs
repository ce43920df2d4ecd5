//! Reporter that writes the directory from events.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use jiff::Timestamp;
use model::{DecisionRecord, Envelope, Event, HookKind, HookRecord, RunInfo, Step, TrialId, TrialRecord, Usage};
use serde_json::{Value, json};

use super::run::{self, Results, TrialResult};
use super::{OUTPUTS, PROGRESS, Tree, progress};
use crate::Reporter;
use crate::names::is_skill;

/// The reporter of a tree.
pub(super) struct Artifacts {
    tree: Arc<Tree>,
    progress: Option<File>,
    began: Option<Timestamp>,
    running: HashMap<String, Running>,
    results: Results,
    /// `true` if there will be no more events.
    over: bool,
}

/// A trial that has no outcome yet.
#[derive(Default)]
struct Running {
    identity: Value,
    attempt: u32,
    logs: [Option<File>; 2],
    agent_began: Option<Timestamp>,
    agent_ended: bool,
    usage: Usage,
    hooks: Vec<HookRecord>,
}

/// Logs of the agent's output: stdout and stderr.
const LOGS: [&str; 2] = ["outputs/stdout.log", "outputs/stderr.log"];

impl Artifacts {
    pub(super) fn new(tree: Arc<Tree>) -> Self {
        let (running, results) = (HashMap::new(), Results::default());
        Self { tree, progress: None, began: None, running, results, over: false }
    }

    fn say(&mut self, event: &str, at: Timestamp, fields: &[&Value]) -> io::Result<()> {
        let began = self.began.unwrap_or(at);
        match &mut self.progress {
            Some(file) => file.write_all(&progress::line(event, at, began, fields)),
            None => Ok(()),
        }
    }

    /// Writes an event of a running trial.
    fn say_of(&mut self, trial: &str, event: &str, at: Timestamp, fields: &Value) -> io::Result<()> {
        let Some(identity) = self.running.get(trial).map(|running| running.identity.clone()) else { return Ok(()) };
        self.say(event, at, &[&identity, fields])
    }

    fn run_started(&mut self, info: &RunInfo, at: Timestamp) -> io::Result<()> {
        self.began = Some(at);
        let _ = self.tree.info.set(info.clone());
        self.progress = Some(self.tree.folder.create(PROGRESS.as_ref())?);
        self.say("suite_started", at, &[&progress::suite_started(info)])?;
        self.tree.json("suite.json".as_ref(), &run::suite(info, &self.tree.trials, &self.tree.record))
    }

    fn trial_started(
        &mut self,
        id: &TrialId,
        agent: &str,
        attempt: u32,
        has_skill: bool,
        at: Timestamp,
    ) -> io::Result<()> {
        let trial = id.to_string();
        let identity = progress::identity(id, agent, has_skill);
        let running = Running { identity: identity.clone(), attempt, ..Running::default() };
        self.running.insert(trial.clone(), running);
        let again = json!({ "attempt": (attempt > 1).then_some(attempt) });
        self.say("run_started", at, &[&identity, &again])?;
        let folder = self.tree.trial_folder(&trial)?.to_owned();
        if attempt > 1 {
            self.tree.clear(&folder);
        }
        // Created even if the agent prints nothing, and without the lines of an earlier attempt.
        for (index, name) in LOGS.iter().enumerate() {
            let file = self.tree.folder.create(&folder.join(name))?;
            if let Some(running) = self.running.get_mut(&trial) {
                running.logs[index] = Some(file);
            }
        }
        Ok(())
    }

    fn log(&mut self, trial: &str, which: usize, text: &str) -> io::Result<()> {
        let Some(running) = self.running.get_mut(trial) else { return Ok(()) };
        let Some(file) = &mut running.logs[which] else { return Ok(()) };
        let mut line = text.as_bytes().to_vec();
        if !text.ends_with('\n') {
            line.push(b'\n');
        }
        file.write_all(&line)
    }

    fn agent_started(&mut self, trial: &str, at: Timestamp) -> io::Result<()> {
        match self.running.get_mut(trial) {
            Some(running) if running.agent_began.is_none() => running.agent_began = Some(at),
            _ => return Ok(()),
        }
        self.say_of(trial, "agent_started", at, &Value::Null)
    }

    fn agent_finished(&mut self, trial: &str, at: Timestamp) -> io::Result<()> {
        let Some(running) = self.running.get_mut(trial).filter(|running| !running.agent_ended) else { return Ok(()) };
        let Some(began) = running.agent_began else { return Ok(()) };
        running.agent_ended = true;
        let fields = progress::agent_finished(progress::seconds(began, at), running.usage);
        self.say_of(trial, "agent_finished", at, &fields)
    }

    fn waiting(&mut self, trial: &str, on: &str, at: Timestamp) -> io::Result<()> {
        match on {
            "sandbox" => self.say_of(trial, "snapshot_started", at, &json!({ "phase": "pre" })),
            "collecting" => {
                self.agent_finished(trial, at)?;
                self.say_of(trial, "snapshot_started", at, &json!({ "phase": "post" }))
            }
            "hooks" => self.agent_finished(trial, at),
            _ => Ok(()),
        }
    }

    fn step(&mut self, trial: &str, step: &Step, at: Timestamp) -> io::Result<()> {
        self.agent_started(trial, at)?;
        match step {
            Step::Finished { usage, .. } => {
                if let Some(running) = self.running.get_mut(trial) {
                    running.usage += *usage;
                }
                Ok(())
            }
            Step::Notice { from, text } if from == "stderr" => self.log(trial, 1, text),
            _ => Ok(()),
        }
    }

    fn hook_started(&mut self, hook: HookKind, number: usize, trial: Option<(String, u32)>) -> io::Result<()> {
        let written = match (hook, number) {
            (HookKind::PostRun, 1) => self.write_run(false),
            _ => Ok(()),
        };
        self.tree.hook_seen(hook, number, trial);
        written
    }

    fn hook_finished(&mut self, trial: Option<&str>, record: &HookRecord, at: Timestamp) -> io::Result<()> {
        let fields = progress::hook_finished(record);
        match trial {
            Some(trial) => {
                let Some(running) = self.running.get_mut(trial) else { return Ok(()) };
                running.hooks.push(record.clone());
                let hooks = running.hooks.clone();
                self.say_of(trial, "hook_finished", at, &fields)?;
                self.tree.write_hooks(trial, &hooks)
            }
            None => {
                self.results.hooks.push(record.clone());
                self.say("hook_finished", at, &[&fields])
            }
        }
    }

    fn trial_finished(&mut self, record: &TrialRecord, attempt: u32, at: Timestamp) -> io::Result<()> {
        self.agent_finished(&record.id, at)?;
        let running = self.running.remove(&*record.id);
        self.results.is_sequential |= record.auto_trials.is_some();
        self.results.trials.push(TrialResult::from_record(record));
        let identity = running.as_ref().map_or_else(|| progress::identity_of(record), |it| it.identity.clone());
        if let Some(over) = progress::budget_exceeded(record) {
            self.say("budget_exceeded", at, &[&identity, &over])?;
        }
        let (event, fields) = progress::ended(record);
        let result = self.say(event, at, &[&identity, &fields]);
        let attempt = running.as_ref().map_or(attempt, |running| running.attempt);
        self.tree.write_trial(record, attempt)?;
        if running.is_some_and(|running| !running.hooks.is_empty()) {
            let outputs = self.tree.trial_folder(&record.id)?.join(OUTPUTS);
            self.tree.folder.adopt(&outputs)?;
        }
        result
    }

    /// Writes the results of the run so far.
    fn write_run(&self, is_over: bool) -> io::Result<()> {
        let Some(info) = self.tree.info.get() else { return Ok(()) };
        self.tree.json("benchmark.json".as_ref(), &self.results.benchmark())?;
        self.tree.json("cleanup.json".as_ref(), &self.results.cleanup(info))?;
        self.tree.json("summary.json".as_ref(), &self.results.summary(info, is_over))
    }
}

impl Reporter for Artifacts {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        let at = envelope.at;
        let attempt = envelope.attempt.unwrap_or(1);
        let trial = envelope.trial.as_deref();
        let name = trial.unwrap_or_default();
        match &envelope.event {
            Event::RunStarted(info) => self.run_started(info, at),
            Event::TrialStarted { id, agent, subject, .. } => {
                let has_skill = subject.as_deref().is_some_and(is_skill) && !id.is_baseline();
                self.trial_started(id, agent, attempt, has_skill, at)
            }
            Event::Waiting { on } => self.waiting(name, on, at),
            Event::SandboxReady { .. } => self.agent_started(name, at),
            Event::Step(step) => self.step(name, step, at),
            Event::Output { stream, text } => self.log(name, usize::from(stream == "stderr"), text),
            Event::Collected(collected) => self.tree.write_states(name, collected),
            Event::HookStarted { hook, number, .. } => {
                self.hook_started(*hook, *number, trial.map(|trial| (trial.to_owned(), attempt)))
            }
            Event::HookFinished(record) => self.hook_finished(trial, record, at),
            Event::TrialFinished(record) => self.trial_finished(record, attempt, at),
            Event::RunFinished { duration_ms, signal, .. } => {
                self.over = true;
                self.results.duration_ms = Some(*duration_ms);
                self.results.signal.clone_from(signal);
                let total = self.tree.info.get().map(|info| info.trials.len());
                let result = self.say("suite_finished", at, &[&json!({ "total_runs": total }), &self.results.tally()]);
                self.write_run(true).and(result)
            }
            Event::Decided(decision) => {
                self.results.decisions.push(DecisionRecord::clone(decision));
                self.say("decided", at, &[&json!(decision)])
            }
            Event::TrialRetried { .. } | Event::Idle { .. } => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.over { Ok(()) } else { self.write_run(false) }
    }
}

impl Drop for Artifacts {
    fn drop(&mut self) {
        self.tree.close();
    }
}
