//! Hosts that an agent tried to reach.

use model::{EgressAttempt, Evidence};

use crate::verdict::Verdict;

/// Returns the agent's own attempts to reach hosts other than its model's; `None` if they are not known.
pub(crate) fn attempts(evidence: &Evidence) -> Option<Vec<&EgressAttempt>> {
    evidence.collected.network.as_ref()?;
    Some(evidence.trace.egress.iter().filter(|attempt| attempt.counts()).collect())
}

/// Attempts that leave no trace, for verdicts that none was seen.
pub(crate) const UNSEEN: &str =
    "connections straight to an address, without a name or the proxy, have no way out and are not recorded";

/// Returns the verdict if the attempts are not known.
pub(crate) fn unknown(evidence: &Evidence) -> Verdict {
    if evidence.collected.sandbox.is_none() {
        return Verdict::undecided("there was no sandbox that could record the hosts that the agent tried to reach");
    }
    Verdict::undecided(
        "the hosts that an agent tries to reach are recorded only in `isolated` sandboxes and containers whose `network` \
         is not `open`",
    )
}
