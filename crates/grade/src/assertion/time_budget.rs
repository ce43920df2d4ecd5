//! `time_budget`: the agent finished before the clock ran out.

use model::{Ending, Evidence};
use serde_json::json;

use super::{Assertion, Form};
use crate::example::{Example, Story, nothing_written};
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "time_budget",
    aliases: &[],
    parameters: &[],
    summary: "The agent finished before the time for its trial was over.",
    details: "It speaks up only when the time ran out. What the agent did until then is judged all the same.",
    fields: &[],
    pass: Example { assertion: nothing_written, evidence: || Story::new().answer("Done.").evidence() },
    fail: Example {
        assertion: nothing_written,
        evidence: || {
            Story::new()
                .call("Bash", json!({"command": "npm test -- --watch"}))
                .ending(Ending::TimedOut { setting: "--timeout".into(), after_ms: 600_000 })
                .evidence()
        },
    },
    form: Form::Implicit { judge },
};

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let Ending::TimedOut { setting, after_ms } = &evidence.ending else { return None };
    let seconds = *after_ms as f64 / 1000.0;
    let trace = &evidence.trace;
    let last = trace.calls.len().checked_sub(1).map(|at| (at, &trace.calls[at]));
    let actual = match last {
        Some((at, traced)) if traced.result.is_none() => {
            format!("still waiting for call {}, {}", at + 1, traced.call.summary())
        }
        Some((at, traced)) => format!("its last call was call {}, {}", at + 1, traced.call.summary()),
        None => "it called no tool".into(),
    };
    let because = format!("timed out after {seconds} s (`{setting}`)");
    let verdict = Verdict::unmet(because, format!("an answer within {seconds} s"), actual);
    Some(match last {
        Some((at, _)) => verdict.at_call(trace, at),
        None => verdict,
    })
}
