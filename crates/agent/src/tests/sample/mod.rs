//! A small agent that shows everything an agent needs: this folder and a line in [`AGENTS`](crate::AGENTS). It repeats
//! each message.

use model::{Diagnostic, Ending, Tokens, Usage, UserMessage};
use sandbox::{BoxFuture, Breakage};

use crate::session::Session;
use crate::step_recorder::StepRecorder;
use crate::tests::contract::agent_setup::{Act, AgentSetup, Set, harness};
use crate::tests::harness::{AgentHarness, case};
use crate::turn::{Turn, finished};
use crate::{AGENTS, Agent, CaseContext, Description, SessionContext, find};

/// The `sample` agent; see the module documentation.
pub(crate) struct Sample;

static DESCRIPTION: Description = Description {
    efforts: Some(&[]),
    needs_sandbox: false,
    ..Description::new("sample", "repeats the message; an example of an agent")
};

impl Agent for Sample {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn check(&self, _context: &CaseContext<'_>) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        let session = SampleSession { id: context.session_id("sample"), step_recorder: StepRecorder::default() };
        Box::pin(std::future::ready(Ok(Box::new(session) as Box<dyn Session>)))
    }
}

/// A conversation with the agent.
struct SampleSession {
    id: String,
    step_recorder: StepRecorder,
}

impl SampleSession {
    fn answer(&mut self, message: &str, turn: &mut Turn) -> Result<(), Ending> {
        self.step_recorder.begin(turn, &self.id)?;
        self.step_recorder.next_turn();
        self.step_recorder.say(turn, message)?;
        let tokens = Some(Tokens { input: 3, output: 4, ..Tokens::default() });
        turn.record(finished(false, Usage { tokens, cost_usd: None }, Some(message.to_owned()), None))
    }
}

impl Session for SampleSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move { self.answer(&message.text, turn).err().unwrap_or(Ending::Finished) })
    }
}

/// Makes the agent behave as the tests for all agents require.
pub(crate) struct Repeats;

impl AgentSetup for Repeats {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn agent(&self) -> &'static dyn Agent {
        &Sample
    }

    fn can(&self, act: &Act) -> bool {
        matches!(act, Act::Say(_))
    }

    fn set(&self, acts: &[Act]) -> Set {
        let mut harness = harness(acts);
        for (message, act) in harness.case.messages.iter_mut().zip(acts) {
            if let Act::Say(text) = act {
                message.text.clone_from(text);
            }
        }
        Set { harness, _kept: None }
    }

    fn absent(&self) -> Option<Set> {
        None
    }
}

#[tokio::test]
async fn adding_an_agent_takes_only_a_folder_and_one_line() {
    let (agent, argument) = find("sample").unwrap();
    assert_eq!((agent.name(), argument), ("sample", None));
    let played = AgentHarness::for_case(case("a", &["hello"])).play(agent).await.unwrap();
    assert_eq!((&played.endings[..], played.answer()), (&[Ending::Finished][..], Some("hello")));

    let line = "    &tests::sample::Sample,";
    let sources = include_str!("../../lib.rs");
    assert_eq!(sources.lines().filter(|written| written.contains("sample")).collect::<Vec<_>>(), [line]);
    assert_eq!(AGENTS.last().map(|agent| agent.name()), Some("sample"));
}
