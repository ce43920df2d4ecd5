//! Stopping a run before it has ended.

/// Request to a run, from the user or from the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Start nothing more and ask agents to stop; contains the name of the signal, or the reason. The second request
    /// kills.
    Stop(String),
}

/// How far a run is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Not at all.
    No,
    /// Politely: agents are asked to stop and get their grace period.
    Stop,
    /// At once.
    Kill,
}
