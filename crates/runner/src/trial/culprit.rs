//! Decides who ended the agent's program. If the agent can have ended it, or written that it ended, the agent has failed:
//! otherwise an agent could keep its failures out of all rates.

use agent::{Description, INTERRUPTED};
use llm::Block;
use model::tool::TOOLS;
use model::{Effect, Ending, IntegrityKind, IntegritySign, Trace};
use sandbox::out_of_memory;

/// Lowest exit code of a process that was ended by a signal, without the signal.
const SIGNALLED: i32 = 128;
/// Exit code of a program that was killed.
const KILLED: i32 = SIGNALLED + 9;
/// Exit codes that mean that the program did not run.
const NEVER_RAN: std::ops::RangeInclusive<i32> = 125..=127;

/// Watches for other causes of death while an agent acts.
pub(super) struct Culprit {
    /// True if the agent is the program of a vendor, whose endings are not the agent's own words.
    is_program: bool,
    /// Kills by the kernel before the agent acted; `None` if they are not counted.
    kernel_kills: Option<u64>,
}

impl Culprit {
    /// Starts watching an agent.
    pub(super) fn watch(agent: &Description) -> Self {
        let is_program = agent.wire.is_some();
        Self { is_program, kernel_kills: is_program.then(out_of_memory::kills).flatten() }
    }

    /// Changes `ending`, which the agent's program reported or caused, if the agent can have caused it, and returns that
    /// as a sign. `exit_code` is the program's, if it has ended. `from_model` is what its model has said, if the gateway
    /// has seen all answers and none of them was an error.
    ///
    /// Nothing shows who sent a signal, and commands have other ways to end their program or to write into its output.
    /// So an agent that has acted is at fault for what neither its model nor the machine explains.
    pub(super) fn judge(
        &self,
        ending: &mut Ending,
        trace: &Trace,
        exit_code: Option<i32>,
        from_model: Option<&[Block]>,
    ) -> Option<IntegritySign> {
        let (Ending::Aborted { reason }
        | Ending::ProviderFailed { reason }
        | Ending::Unreachable { reason }
        | Ending::InvalidTest { reason }) = &*ending
        else {
            return None;
        };
        if !self.is_program || exit_code.is_some_and(|code| NEVER_RAN.contains(&code)) {
            return None;
        }
        let act = last_act(trace, from_model.unwrap_or_default())?;
        let has_ended = exit_code.is_some_and(|code| code != 0) || reason.starts_with(INTERRUPTED);
        let (kind, detail) = if has_ended && matches!(ending, Ending::Aborted { .. }) {
            if exit_code == Some(KILLED) && self.may_be_the_kernel() {
                return None;
            }
            let detail = match exit_code {
                Some(code) if code > SIGNALLED => format!(
                    "signal {} ended the agent's program after the agent had acted; who sent it is not known",
                    code - SIGNALLED
                ),
                _ => "the agent's program ended without an answer after the agent had acted; who caused that is not known"
                    .to_owned(),
            };
            (IntegrityKind::KilledProgram, detail)
        } else if from_model.is_some() {
            let detail = "the agent's program ended in a way that no answer of its model explains".to_owned();
            (IntegrityKind::ForgedEnding, detail)
        } else {
            return None;
        };
        let reason = format!("the agent can have caused the end of its program: {reason}");
        *ending = Ending::GaveUp { reason };
        Some(IntegritySign::new(kind, act, detail))
    }

    /// Returns `true` if the kernel can have killed the program because memory ran out.
    fn may_be_the_kernel(&self) -> bool {
        let kills = self.kernel_kills.zip(out_of_memory::kills());
        kills.is_none_or(|(before, now)| now > before)
    }
}

/// Returns the last call that can have started a process or written a file: one that the program reported, otherwise one
/// that the model requested.
fn last_act(trace: &Trace, from_model: &[Block]) -> Option<String> {
    let can_act = |effect: Effect| !matches!(effect, Effect::Read | Effect::Search | Effect::Ask);
    let reported = trace.calls.iter().rev().find(|traced| can_act(traced.call.effect));
    let requested = from_model.iter().rev().find_map(|block| match block {
        Block::ToolUse { name, .. } => Some(name),
        _ => None,
    });
    // Some programs have other names for their tools.
    let is_act = |name: &&String| {
        TOOLS.iter().find(|tool| tool.name.eq_ignore_ascii_case(name)).is_none_or(|tool| can_act(tool.effect))
    };
    reported.map(|traced| traced.call.summary()).or_else(|| requested.filter(is_act).cloned())
}

#[cfg(test)]
mod tests {
    use model::{Step, ToolCall};
    use serde_json::json;

    use super::*;

    fn trace(tools: &[&str]) -> Trace {
        let call = |tool: &&str| Step::ToolCall(ToolCall::new("c", *tool, json!({"command": "kill -9 $PPID"}), "m"));
        Trace::of(&tools.iter().map(call).collect::<Vec<_>>())
    }

    fn judged(
        ending: &Ending,
        tools: &[&str],
        code: Option<i32>,
        from_model: Option<&[&str]>,
    ) -> Option<IntegrityKind> {
        let culprit = Culprit { is_program: true, kernel_kills: out_of_memory::kills() };
        let blocks = from_model.map(|tools| {
            let call = |tool: &&str| Block::ToolUse { id: "c".into(), name: (*tool).to_owned(), input: json!({}) };
            tools.iter().map(call).collect::<Vec<_>>()
        });
        let mut now = ending.clone();
        let sign = culprit.judge(&mut now, &trace(tools), code, blocks.as_deref());
        assert_eq!(sign.is_some(), matches!(now, Ending::GaveUp { .. }), "{now:?}");
        assert_eq!(sign.is_none(), now == *ending);
        sign.map(|sign| sign.kind)
    }

    fn aborted(reason: &str) -> Ending {
        Ending::Aborted { reason: reason.to_owned() }
    }

    #[test]
    fn an_agent_that_acted_is_at_fault_for_the_unexplained_end_of_its_program() {
        for signal in [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 24, 31] {
            let kind = judged(&aborted("gone"), &["Bash", "Read"], Some(128 + signal), None);
            assert_eq!(kind, Some(IntegrityKind::KilledProgram), "{signal}");
        }
        let killed = Some(IntegrityKind::KilledProgram);
        assert_eq!(judged(&aborted("gone"), &["Bash"], Some(1), None), killed);
        assert_eq!(judged(&aborted("gone"), &["Write"], Some(101), None), killed);
        assert_eq!(judged(&aborted("it was interrupted: x"), &["Bash"], None, None), killed);
        assert_eq!(judged(&aborted("gone"), &[], Some(139), Some(&["exec_command"])), killed, "an unreported call");
    }

    #[test]
    fn an_end_that_the_agent_cannot_have_caused_is_what_it_was() {
        for (tools, code, from_model) in [
            (&[] as &[&str], Some(139), None),
            (&["Read", "Grep"], Some(139), Some(&["Read"] as &[&str])),
            (&["Read"], Some(139), Some(&["read"])),
            (&["Bash"], Some(127), None),
            (&["Bash"], Some(0), None),
            (&["Bash"], None, None),
        ] {
            assert_eq!(judged(&aborted("gone"), tools, code, from_model), None, "{tools:?} {code:?}");
        }
        let before = out_of_memory::kills().and_then(|kills| kills.checked_sub(1));
        let culprit = Culprit { is_program: true, kernel_kills: before };
        assert_eq!(culprit.judge(&mut aborted("gone"), &trace(&["Bash"]), Some(137), None), None);
        let service = Culprit { is_program: false, kernel_kills: None };
        assert_eq!(service.judge(&mut aborted("gone"), &trace(&["Bash"]), Some(139), None), None);
    }

    #[test]
    fn an_ending_that_no_answer_explains_is_forged_if_the_agent_acted() {
        let failed = || Ending::ProviderFailed { reason: "529".to_owned() };
        let forged = Some(IntegrityKind::ForgedEnding);
        assert_eq!(judged(&failed(), &["Bash"], None, Some(&["Bash"])), forged);
        assert_eq!(judged(&Ending::InvalidTest { reason: "key".into() }, &[], None, Some(&["bash"])), forged);
        assert_eq!(judged(&aborted("printed nonsense"), &["Bash"], Some(0), Some(&["Bash"])), forged);
        assert_eq!(judged(&failed(), &["Bash"], None, None), None, "an answer can explain it");
        assert_eq!(judged(&failed(), &[], None, Some(&[])), None, "the agent did nothing");
    }
}
