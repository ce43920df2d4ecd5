//! Parts of a case that an agent of the user cannot receive.

use std::sync::Arc;

use model::{Case, Diagnostic, Excerpt, Subject};

/// Returns a warning about a system prompt that `agents` do not get. The warning is the same for every case in a file.
pub(crate) fn untold_prompt(case: &Case, agents: &str) -> Option<Diagnostic> {
    let has_prompt = matches!(case.subject, Subject::Prompt(_)) || case.system_prompt.is_some();
    has_prompt.then(|| untold("the system prompt", agents, case).help("run the suite with an agent that takes one"))
}

/// Returns the warning that `what` is not passed to `agents`.
pub(crate) fn untold(what: &str, agents: &str, case: &Case) -> Diagnostic {
    let message = format!("{what} is not passed to {agents}, so this tests the agent without it");
    Diagnostic::warning(message).at(Excerpt::of_file(Arc::clone(&case.source.file)))
}

#[cfg(test)]
mod tests {
    use crate::custom::Custom;
    use crate::subprocess::Subprocess;
    use crate::tests::harness::{AgentHarness, case};

    #[test]
    fn a_system_prompt_that_the_agent_does_not_get_causes_a_warning() {
        let plain = AgentHarness::for_case(case("a", &["go"]));
        assert_eq!(plain.check(&Custom), [""; 0]);
        let mut with_prompt = case("a", &["go"]);
        with_prompt.system_prompt = Some("Be kind.".to_owned());
        let with_prompt = AgentHarness { argument: Some("cat".to_owned()), ..AgentHarness::for_case(with_prompt) };
        for found in [with_prompt.check(&Custom), with_prompt.check(&Subprocess)] {
            assert!(found.len() == 1 && found[0].contains("the system prompt is not passed to a `"), "{found:?}");
        }
    }
}
