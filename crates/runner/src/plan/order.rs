//! The order of trials: where arms are compared, they take turns, so that what changes in the course of a run (a slow
//! hour of the provider, a machine that warms up) happens to all of them alike.

use std::sync::Arc;

use model::statistics::Chance;

use super::PlannedTrial;

/// Puts `trials` into the order they run in. Where no case has more than one arm they stay as they are planned. Otherwise
/// every repetition of a case runs all its arms one after the other, in an order that `seed` decides, before any case is
/// repeated.
pub(super) fn interleave(trials: &mut [Arc<PlannedTrial>], seed: u64) {
    let is_compared =
        |pair: &[Arc<PlannedTrial>]| pair[0].position == pair[1].position && pair[0].id.arm != pair[1].id.arm;
    if !trials.windows(2).any(is_compared) {
        return;
    }
    // Stable, so the arms of a case are where the plan put them until they are shuffled.
    trials.sort_by_key(|trial| (trial.id.repetition, trial.position));
    let mut chance = Chance::new(seed);
    for arms in
        trials.chunk_by_mut(|one, other| (one.position, one.id.repetition) == (other.position, other.id.repetition))
    {
        chance.shuffle(arms);
    }
}
