//! Events in a run: one ordered, owned, serialisable stream, identical live and on disk.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Collected, DecisionRecord, HookKind, HookRecord, RunInfo, Step, Summary, TrialId, TrialRecord};

/// Current value of [`Envelope::v`].
pub const EVENT_VERSION: u32 = 1;

/// Event with its time and the run, trial and attempt to which it belongs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Value of [`EVENT_VERSION`] at the time of writing.
    pub v: u32,
    /// Sequence number, from 1, ascending within a run. Gaps occur only if a run was resumed.
    pub seq: u64,
    /// Time at which the dispatcher received the event.
    pub at: Timestamp,
    /// Id of the run.
    pub run: Arc<str>,
    /// Printed id of the trial; absent for events that do not belong to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Arc<str>>,
    /// Number of the attempt, from 1; absent for events that do not belong to a trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Event.
    pub event: Event,
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The run started.
    RunStarted(Box<RunInfo>),
    /// A trial started, or started again.
    TrialStarted {
        /// Parts of the trial's id.
        id: TrialId,
        /// Name of the agent.
        agent: String,
        /// Name of the model as the user gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Name of the skill, or of the prompt's stand-in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        /// File in which the case is written.
        file: Arc<str>,
        /// Messages that the user will send.
        messages: Vec<String>,
        /// Position of the case in its file, from 0, for formats whose readers count cases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<usize>,
        /// Script that answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<String>,
        /// Value from which the message was rendered, if the case has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
    /// The sandbox is ready.
    SandboxReady {
        /// Working directory of the agent.
        path: String,
        /// Location of the installed skill, relative to `path`.
        skill: Option<String>,
        /// Time it took, in milliseconds.
        duration_ms: u64,
    },
    /// The trial now waits for something else.
    Waiting {
        /// Reason for the wait, such as `agent`, `setup`, `grading`.
        on: String,
    },
    /// The agent performed a step.
    Step(Step),
    /// A line of the agent's own output, unchanged except that secrets are masked.
    Output {
        /// `stdout`, `stderr`, or the name of a protocol.
        stream: String,
        /// Text of the line.
        text: String,
    },
    /// The agent has not produced output for a while.
    Idle {
        /// Duration of the silence, in milliseconds.
        idle_ms: u64,
        /// Reason for the wait, if it is known.
        on: String,
    },
    /// The conversation has ended and the sandbox was inspected.
    Collected(Collected),
    /// One of the user's hook commands is about to run.
    HookStarted {
        /// Point at which the hook runs.
        hook: HookKind,
        /// Number among the hooks at that point, from 1.
        number: usize,
        /// Command line.
        command: String,
    },
    /// A hook command ended.
    HookFinished(HookRecord),
    /// Infrastructure broke an attempt, and the trial is retried.
    TrialRetried {
        /// Reason why the attempt was broken.
        #[serde(rename = "because")]
        reason: String,
    },
    /// A trial has an outcome.
    TrialFinished(Box<TrialRecord>),
    /// A question that decides the number of trials was closed.
    Decided(Box<DecisionRecord>),
    /// The run ended.
    RunFinished {
        /// Summary of the results.
        summary: Summary,
        /// Duration in milliseconds.
        duration_ms: u64,
        /// Signal that stopped the run, if any.
        signal: Option<String>,
    },
}
