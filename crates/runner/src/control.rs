//! Stopping a run before it has ended.

/// Request of the user, or of the recorder, to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Start nothing more and ask agents to stop; the name of the signal or the reason. The second request kills.
    Stop(String),
}

/// Degree to which a run is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StopLevel {
    /// Not at all.
    No,
    /// Politely: agents are asked to stop and have their grace.
    Stop,
    /// At once.
    Kill,
}
