//! Finds assertions that read text masked in a record. They cannot be decided from such evidence alone.

use model::Evidence;
use serde_json::to_string;

use crate::check::Check;

/// Part of the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EvidencePart {
    /// The agent's answers.
    Said,
    /// The tool calls and their results.
    Called,
    /// The state that the agent left behind.
    Left,
}

/// Returns the parts that assertions of one kind read. Returns all of them if the kind is not listed.
fn parts(kind: &str) -> &'static [EvidencePart] {
    match kind {
        "latency" | "token_usage" | "turn_count_at_most" | "nothing_asserted" | "faults_reached" => &[],
        "contains" | "not_contains" | "matches" | "output_contains" | "json_schema" => &[EvidencePart::Said],
        "tool_called" | "tool_call_sequence" | "no_tool_called" | "skill_used" | "skill_not_used" | "command_ran"
        | "command_not_ran" | "retries_at_most" | "no_loop" => &[EvidencePart::Called],
        "file_exists"
        | "file_not_exists"
        | "file_contains"
        | "file_not_contains"
        | "file_unchanged"
        | "valid_json"
        | "json_path"
        | "json_path_not_exists"
        | "command"
        | "tests_pass"
        | "git_clean" => &[EvidencePart::Left],
        _ => &[EvidencePart::Said, EvidencePart::Called, EvidencePart::Left],
    }
}

/// Returns `true` if the part of `evidence` that `check` reads contains `mark`, which replaces masked text.
pub fn looks_at_masked(check: &Check, evidence: &Evidence, mark: &str) -> bool {
    parts(check.kind()).iter().any(|part| part.holds(evidence, mark))
}

impl EvidencePart {
    fn holds(self, evidence: &Evidence, mark: &str) -> bool {
        let Evidence { trace, collected, .. } = evidence;
        let in_text = |text: &String| text.contains(mark);
        match self {
            Self::Said => {
                let replies = trace.replies.iter();
                trace.turns.iter().any(|turn| in_text(&turn.text) || in_text(&turn.thinking))
                    || trace.answer.iter().any(in_text)
                    || is_in(to_string(&trace.result), mark)
                    || replies
                        .clone()
                        .any(|reply| reply.answer.iter().any(in_text) || is_in(to_string(&reply.result), mark))
            }
            Self::Called => {
                let result = |text: Option<&String>| text.is_some_and(in_text);
                trace.calls.iter().any(|traced| {
                    is_in(to_string(&traced.call), mark) || result(traced.result.as_ref().map(|it| &it.content))
                })
            }
            Self::Left => is_in(to_string(collected), mark),
        }
    }
}

/// Returns `true` if `json` contains `mark`.
fn is_in(json: serde_json::Result<String>, mark: &str) -> bool {
    json.is_ok_and(|text| text.contains(mark))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::assertions::{ASSERTIONS, find};
    use crate::check::tests::case;
    use crate::example::EvidenceBuilder;
    use crate::{Context, compile};

    #[test]
    fn an_assertion_reads_only_its_own_parts_of_the_evidence() {
        let answered = EvidenceBuilder::new().answer("in [masked]").evidence();
        let called = EvidenceBuilder::new().call("Bash", json!({"command": "echo [masked]"})).answer("done").evidence();
        let marks = |assertion: serde_json::Value| {
            let (checks, _) = compile(&case(&[assertion]), &Context::default());
            [&answered, &called].map(|evidence| looks_at_masked(&checks[0], evidence, "[masked]"))
        };
        assert_eq!(marks(json!({"id": "a", "type": "contains", "text": "x"})), [true, false]);
        assert_eq!(marks(json!({"id": "a", "type": "tool_called", "tool": "Bash"})), [false, true]);
        assert_eq!(marks(json!({"id": "a", "type": "turn_count_at_most", "max": 2})), [false, false]);
        assert_eq!(marks(json!({"id": "a", "type": "no_path_escape"})), [true, true]);
    }

    #[test]
    fn every_listed_kind_is_an_assertion() {
        for assertion in ASSERTIONS {
            assert!(find(assertion.name).is_some() && parts(assertion.name).len() <= 3);
        }
    }
}
