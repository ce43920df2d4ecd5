//! `time_budget`: the agent finished before the timeout.

use model::{Ending, Trace};

use super::prelude::*;

pub(crate) const ASSERTION: Assertion =
    Assertion::implicit("time_budget", judge).summary("The agent finished before the timeout.").example(
        nothing_written,
        || EvidenceBuilder::new().answer("Done."),
        || {
            EvidenceBuilder::new().call("Bash", json!({"command": "npm test -- --watch"})).ending(Ending::TimedOut {
                setting: "--timeout".into(),
                after_ms: 600_000,
                hint: None,
            })
        },
    );

/// Describes what an agent without tool calls was doing: answering a message, or not answering it.
fn waiting(trace: &Trace) -> String {
    let answer_so_far = trace.turns.last().map(|turn| turn.text.trim()).filter(|text| !text.is_empty());
    match (trace.user_messages.last(), answer_so_far) {
        (None, _) => "no message was sent to it".into(),
        (Some(_), Some(answer_so_far)) => format!("it was still answering: {}", format::quoted(answer_so_far)),
        (Some(message), None) => {
            format!("no answer to message {}, {}", trace.user_messages.len(), format::quoted(message))
        }
    }
}

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let Ending::TimedOut { after_ms, .. } = &evidence.ending else { return None };
    let seconds = *after_ms as f64 / 1000.0;
    let trace = &evidence.trace;
    let last = trace.calls.len().checked_sub(1).map(|index| (index, &trace.calls[index]));
    let actual = match last {
        Some((at, traced)) if traced.result.is_none() => {
            format!("still waiting for call {}, {}", at + 1, traced.call.summary())
        }
        Some((at, traced)) => format!("its last call was call {}, {}", at + 1, traced.call.summary()),
        None => waiting(trace),
    };
    let verdict = Verdict::unmet(evidence.ending.describe(), format!("an answer within {seconds} s"), actual);
    Some(verdict.at_call(trace, last.map(|(at, _)| at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_without_tool_calls_names_the_unanswered_message() {
        let late = |story: EvidenceBuilder| {
            let ending = Ending::TimedOut { setting: "`timeout` in the project".into(), after_ms: 2000, hint: None };
            let verdict = judge(&story.ending(ending).evidence()).unwrap();
            (verdict.reason, verdict.actual.unwrap())
        };
        let (reason, actual) = late(EvidenceBuilder::new().asks("Hello?"));
        assert_eq!(reason, "timed out after 2 s (`timeout` in the project)");
        assert_eq!(actual, "no answer to message 1, \"Hello?\"");
    }
}
