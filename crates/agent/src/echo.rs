//! The `echo` agent: answers with the user's message, unchanged. It shows what a test sends to an agent.

use std::path::Path;
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{Diagnostic, Ending, Node, Usage, UserMessage};
use sandbox::{BoxFuture, Breakage};

use super::step_recorder::StepRecorder;
use super::{Agent, Costs, Description, RunState, SessionContext};
use crate::session::Session;
use crate::turn::{Turn, finished};

/// The `echo` agent; see the module documentation.
pub struct Echo;

static DESCRIPTION: Description = Description {
    efforts: Some(&[]),
    answers_in_text: true,
    needs_sandbox: false,
    takes_script: true,
    takes_tools: true,
    takes_config: true,
    costs: Costs::Nothing,
    ..Description::new("echo", "answers with the message, unchanged; needs no model")
};

impl Agent for Echo {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn check_config(&self, config: &Node, _directory: &Path, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        let mut problems = Problems::new();
        if let Some(mut fields) = Fields::of(config, "the configuration of `echo`", &mut problems) {
            fields.get("type");
            fields.finish(&mut problems);
        }
        problems
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        let session = EchoSession { session_id: context.session_id("echo"), step_recorder: StepRecorder::default() };
        Box::pin(std::future::ready(Ok(Box::new(session) as Box<dyn Session>)))
    }
}

/// A conversation with the agent.
struct EchoSession {
    session_id: String,
    step_recorder: StepRecorder,
}

impl Session for EchoSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(std::future::ready(self.answer(&message.text, turn).err().unwrap_or(Ending::Finished)))
    }
}

impl EchoSession {
    fn answer(&mut self, text: &str, turn: &mut Turn) -> Result<(), Ending> {
        self.step_recorder.next_turn();
        self.step_recorder.begin(turn, &self.session_id)?;
        self.step_recorder.say(turn, text)?;
        turn.record(finished(false, Usage::default(), Some(text.to_owned()), None))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::harness::{AgentHarness, case, configured, new_run};

    #[tokio::test]
    async fn every_character_of_the_message_is_the_answer() {
        let message = " !say a\n\n";
        let played = AgentHarness::for_case(case("a", &[message])).play(&Echo).await.unwrap();
        assert_eq!((played.answer(), played.tokens()), (Some(message), None));
    }

    #[test]
    fn its_configuration_has_no_other_key() {
        let problems = |config| {
            let config = configured(&config, Path::new("."));
            Echo.check_config(&config.node, &config.directory, &new_run()).len()
        };
        assert_eq!((problems(json!({"type": "echo"})), problems(json!({"type": "echo", "mode": "json"}))), (0, 1));
    }
}
