//! Decides who ended the agent's program. If its own agent killed it, the agent has failed; otherwise an agent could
//! keep its failures out of all rates.

use agent::{Description, KILLED_BY_SIGNAL};
use model::{Effect, Ending, IntegrityKind, IntegritySign, Trace};
use sandbox::out_of_memory;

/// Signals that a process sends to end another one. A program that crashes ends with other signals.
const SENT: [u32; 8] = [1, 2, 3, 9, 10, 12, 14, 15];

/// Watches for other causes of death while an agent acts.
pub(super) struct Culprit {
    /// Kills by the kernel before the agent started; `None` if they are not counted, or the agent has no program.
    kernel_kills: Option<u64>,
}

impl Culprit {
    /// Starts watching an agent.
    pub(super) fn watch(agent: &Description) -> Self {
        Self { kernel_kills: agent.wire.and_then(|_| out_of_memory::kills()) }
    }

    /// Changes `ending` if a command of the agent killed the agent's program, and returns that as a sign. The harness
    /// stops programs only with other endings, no other process sees the program, and the kernel counts its kills.
    /// What remains are the agent's own commands.
    pub(super) fn judge(&self, ending: &mut Ending, trace: &Trace) -> Option<IntegritySign> {
        let Ending::Aborted { reason } = ending else { return None };
        let signal = signal_in(reason).filter(|signal| SENT.contains(signal))?;
        let mut commands = trace.calls.iter().filter(|traced| traced.call.effect == Effect::Shell);
        let last = commands.next_back()?;
        let before = self.kernel_kills?;
        if signal == 9 && out_of_memory::kills().is_none_or(|now| now > before) {
            return None;
        }
        let place = last.call.summary();
        let detail =
            format!("the agent's program ended by signal {signal}, and only a command of the agent can send it");
        *ending = Ending::GaveUp { reason: format!("a command of the agent killed its own program: {reason}") };
        Some(IntegritySign::new(IntegrityKind::KilledProgram, place, detail))
    }
}

/// Returns the signal in the description of an ending.
fn signal_in(reason: &str) -> Option<u32> {
    let (_, rest) = reason.split_once(KILLED_BY_SIGNAL)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use model::{Step, ToolCall};
    use serde_json::json;

    use super::*;

    fn trace(tool: &str) -> Trace {
        Trace::of(&[Step::ToolCall(ToolCall::new("c", tool, json!({"command": "kill -9 $PPID"}), "m"))])
    }

    fn judged(how: &str, tool: &str, kernel_kills: Option<u64>) -> (Ending, bool) {
        let mut ending = Ending::Aborted { reason: format!("it ended without finishing its answer ({how})") };
        let sign = Culprit { kernel_kills }.judge(&mut ending, &trace(tool));
        (ending, sign.is_some())
    }

    #[test]
    fn a_program_that_only_its_own_agent_can_have_killed_has_failed() {
        let (ending, is_sign) = judged("ended by signal 15", "Bash", Some(0));
        assert!(matches!(ending, Ending::GaveUp { reason } if reason.contains("killed its own program")));
        assert!(is_sign);
    }

    #[test]
    fn a_crash_an_agent_without_commands_and_a_kill_by_the_kernel_are_not_the_agents_fault() {
        let kills = out_of_memory::kills();
        for (how, tool, before) in [
            ("ended by signal 11", "Bash", Some(0)),
            ("exit code 1", "Bash", Some(0)),
            ("ended by signal 15", "Read", Some(0)),
            ("ended by signal 15", "Bash", None),
            ("ended by signal 9", "Bash", kills.and_then(|kills| kills.checked_sub(1))),
        ] {
            let (ending, is_sign) = judged(how, tool, before);
            assert!(matches!(ending, Ending::Aborted { .. }) && !is_sign, "{how}");
        }
    }
}
