//! Receiver of the events of an attempt.

use std::time::Duration;

use model::Event;

/// Receiver of the events of an attempt. The runner numbers, masks and records them.
pub trait EventSink: Send + Sync {
    /// Accepts an event. Blocks while the recorder lags behind.
    fn send(&self, event: Event);

    /// Adds time that does not count as the agent's.
    fn pause(&self, _time: Duration) {}
}
