//! Where the events of an attempt go.

use model::Event;

/// Where the events of an attempt go. The runner numbers, masks and records them.
pub trait EventSink: Send + Sync {
    /// Takes an event; waits while the record is behind.
    fn send(&self, event: Event);
}
