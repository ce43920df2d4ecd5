//! Order of trials. If arms are compared, they are interleaved, so that changes during a run (a slow hour at the
//! provider, a machine that warms up) affect all arms alike.

use model::statistics::Chance;

use super::trial::PlannedTrial;

/// Puts `trials` into the order in which they run. If no case has more than one arm, they stay as planned. Otherwise
/// every repetition of a case runs all its arms one after another, in an order that `seed` decides, before any case is
/// repeated.
pub(super) fn interleave(trials: &mut [PlannedTrial], seed: u64) {
    let is_compared =
        |pair: &[PlannedTrial]| pair[0].position == pair[1].position && pair[0].arm_name != pair[1].arm_name;
    if !trials.windows(2).any(is_compared) {
        return;
    }
    // The sort is stable, so a case's arms stay in the order of the plan until they are shuffled.
    trials.sort_by_key(|trial| (trial.repetition, trial.position));
    for arms in trials.chunk_by_mut(|one, other| (one.position, one.repetition) == (other.position, other.repetition)) {
        // The order within one case does not depend on other cases, so it is the same in a part of the plan.
        let position = ((arms[0].position as u64) << 32) ^ arms[0].repetition;
        Chance::new(seed ^ position).shuffle(arms);
    }
}
