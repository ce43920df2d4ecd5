//! What a trial that has no outcome yet is doing.

use model::{Event, LiveTrial};

use crate::StoredEvent;

/// Returns what a trial is doing according to its events so far; `None` if there are none.
pub(crate) fn live(id: &str, events: impl IntoIterator<Item = StoredEvent>) -> Option<LiveTrial> {
    let mut live: Option<LiveTrial> = None;
    for event in events {
        let StoredEvent::Known(envelope) = event else { continue };
        let began = matches!(envelope.event, Event::TrialStarted { .. });
        let trial = live.get_or_insert_with(|| begun(id, &envelope));
        if began {
            *trial = begun(id, &envelope);
        }
        match envelope.event {
            Event::Waiting { on } => {
                trial.waiting_on = Some(on);
                trial.waiting_since = Some(envelope.at);
            }
            Event::SandboxReady { .. } => {
                trial.waiting_on = Some("agent".to_owned());
                trial.waiting_since = Some(envelope.at);
            }
            Event::Step(step) => {
                trial.last_step = Some(step);
                trial.last_step_at = Some(envelope.at);
            }
            _ => {}
        }
    }
    live
}

fn begun(id: &str, envelope: &model::Envelope) -> LiveTrial {
    LiveTrial {
        id: id.to_owned(),
        attempt: envelope.attempt.unwrap_or(1),
        since: envelope.at,
        waiting_on: None,
        waiting_since: None,
        last_step: None,
        last_step_at: None,
    }
}
