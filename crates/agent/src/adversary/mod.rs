//! Adversaries: agents that do not do the work. A test that passes with one of them says nothing about an agent, and
//! an assertion that all of them meet cannot fail. They need no model, and write files only in their sandbox.
//!
//! Each has its own file, except those that only speak, and a line in [`ADVERSARIES`]. They are not in
//! [`AGENTS`](crate::AGENTS): only an audit runs them.

mod blank;
mod cheat;
mod observation;
mod offender;
mod peeker;
mod sample;
mod shotgun;
mod solution;
mod speaker;
mod wrecker;

use std::sync::Arc;
use std::time::Duration;

use model::{Case, Ending, Question, Tokens, Usage, UserMessage};
use sandbox::{BoxFuture, Breakage, Sandbox, supervise};
use serde_json::{Value, json};

use self::observation::Observation;
use crate::chat::FileAccess;
use crate::session::Session;
use crate::step_recorder::StepRecorder;
use crate::turn::{Turn, finished, unless_stopped};
use crate::{Agent, Description, SessionContext};

/// Timeout of a command.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout of a command of a solution. The trial may have a shorter one.
const WORK_TIMEOUT: Duration = Duration::from_secs(3600);
/// Maximum size of a command's output that is kept, in bytes.
const OUTPUT: usize = 4096;
/// Lets git reach only repositories on this machine, so that no audit pushes to a real remote.
const LOCAL_ONLY: (&str, &str) = ("GIT_ALLOW_PROTOCOL", "file");

/// All adversaries, in display order.
pub static ADVERSARIES: &[&Adversary] = &[
    &speaker::NOP,
    &speaker::PARROT,
    &speaker::YES_MAN,
    &blank::OBJECT,
    &blank::LIST,
    &shotgun::SHOTGUN,
    &cheat::CHEAT,
    &speaker::RECITER,
    &peeker::PEEKER,
    &wrecker::WRECKER,
    &offender::OFFENDER,
    &solution::SOLUTION,
];

/// Purpose of an adversary in an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Does nothing that the case asks for, so that it may pass cases in which doing nothing is right.
    Idle,
    /// Does something other than the work. No case should pass it.
    Busy,
    /// Makes assertions fail, or shows what they accept. Its own verdict is not used.
    Probe,
    /// Does the work. Every case should pass it.
    Reference,
}

/// An agent that does not do the work.
pub struct Adversary {
    description: Description,
    /// Purpose in an audit.
    pub role: Role,
    /// Returns its actions in response to the last message.
    act: fn(&Observation<'_>) -> Vec<Action>,
    applies: fn(&Case) -> bool,
}

impl Adversary {
    const fn only_if(self, applies: fn(&Case) -> bool) -> Self {
        Self { applies, ..self }
    }

    /// Returns `true` if the adversary can show a weakness of `case`.
    pub fn applies(&self, case: &Case) -> bool {
        (self.applies)(case)
    }

    const fn new(
        name: &'static str,
        role: Role,
        summary: &'static str,
        act: fn(&Observation<'_>) -> Vec<Action>,
    ) -> Self {
        let description = Description {
            efforts: Some(&[]),
            skills_folder: Some(".agents/skills"),
            sub_agents_folder: Some(".agents/agents"),
            takes_script: true,
            takes_tools: true,
            takes_servers: true,
            takes_history: true,
            ..Description::new(name, summary)
        };
        Self { description, role, act, applies: |_| true }
    }
}

/// One action of an adversary.
#[derive(Debug, Clone, PartialEq)]
enum Action {
    /// Outputs a message.
    Say(String),
    /// Answers with this value as its result.
    Answer(Value),
    /// Claims to have called a tool, with this result.
    Call { tool: String, input: Value, result: String },
    /// Writes a file in the sandbox, and reports that it used a tool for it.
    Write { path: String, content: String },
    /// Deletes a file in the sandbox.
    Delete(String),
    /// Runs a command in the sandbox. The command cannot reach repositories on other machines.
    Run(&'static str),
    /// Runs a command of the case's solution in the sandbox.
    Work(String),
    /// Asks the user.
    Ask(&'static str),
    /// Begins another turn.
    Turn,
    /// Reports this usage.
    Use(Usage),
    /// Gives up.
    GiveUp,
}

impl Action {
    fn call(tool: &str, input: Value) -> Self {
        Self::Call { tool: tool.to_owned(), input, result: "ok".to_owned() }
    }
}

impl Agent for Adversary {
    fn description(&self) -> &Description {
        &self.description
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        let session: Box<dyn Session> = Box::new(AdversarySession {
            id: context.session_id(self.description.name),
            act: self.act,
            access: context.sandbox.as_deref().map(FileAccess::for_sandbox),
            sandbox: context.sandbox.clone(),
            case: Arc::clone(&context.case),
            answered: 0,
            step_recorder: StepRecorder::default(),
        });
        Box::pin(std::future::ready(Ok(session)))
    }
}

/// A conversation with an adversary.
struct AdversarySession {
    id: String,
    act: fn(&Observation<'_>) -> Vec<Action>,
    access: Option<FileAccess>,
    sandbox: Option<Arc<dyn Sandbox>>,
    case: Arc<Case>,
    /// Number of messages that were answered.
    answered: usize,
    step_recorder: StepRecorder,
}

impl Session for AdversarySession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        let actions = (self.act)(&Observation {
            message: &message.text,
            answered: self.answered,
            case: &self.case,
            access: self.access.as_ref(),
        });
        self.answered += 1;
        // An adversary that says nothing shows which tests nothing satisfies, so its silence is not a failure of its own.
        turn.is_answered_already();
        Box::pin(async move { self.perform(actions, turn).await.err().unwrap_or(Ending::Finished) })
    }
}

impl AdversarySession {
    /// Runs a command in the sandbox.
    async fn run(&self, command: &str, timeout: Duration) -> Result<(), String> {
        let Some(sandbox) = &self.sandbox else { return Err("there is no sandbox".to_owned()) };
        let extra = [(LOCAL_ONLY.0.to_owned(), LOCAL_ONLY.1.to_owned())];
        let process = sandbox.command("/bin/sh".as_ref(), &["-c".as_ref(), command.as_ref()], &extra);
        let output = supervise::run(process, timeout, OUTPUT).await.map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(output.stderr.text()),
        }
    }

    /// Runs a command in the sandbox, and reports it as a call.
    async fn run_as_call(&mut self, command: &str, timeout: Duration, turn: &mut Turn) -> Result<(), Ending> {
        let id = self.step_recorder.call(turn, "Bash", json!({ "command": command }))?;
        let ran = unless_stopped(turn.stopping(), self.run(command, timeout)).await?;
        self.step_recorder.result(turn, &id, ran.as_ref().err().map_or("ok", |reason| reason), ran.is_err())
    }

    async fn perform(&mut self, actions: Vec<Action>, turn: &mut Turn) -> Result<(), Ending> {
        self.step_recorder.begin(turn, &self.id)?;
        self.step_recorder.next_turn();
        let mut said: Vec<String> = Vec::new();
        let mut usage = Usage { tokens: Some(Tokens::default()), cost_usd: Some(0.0) };
        let mut gives_up = false;
        let mut result = None;
        for act in actions {
            match act {
                Action::Say(text) => {
                    self.step_recorder.say(turn, &text)?;
                    said.push(text);
                }
                Action::Answer(value) => {
                    self.step_recorder.say(turn, &value.to_string())?;
                    said.push(value.to_string());
                    result = Some(json!({ "output": value }));
                }
                Action::Call { tool, input, result } => {
                    let id = self.step_recorder.call(turn, &tool, input)?;
                    self.step_recorder.result(turn, &id, &result, false)?;
                }
                Action::Write { path, content } => {
                    let input = json!({ "file_path": path, "content": content });
                    let id = self.step_recorder.call(turn, "Write", input)?;
                    let written = self.access.as_ref().map(|access| access.write(&path, content.as_bytes()));
                    let (result, is_error) = match written {
                        Some(Ok(_)) => ("ok".to_owned(), false),
                        Some(Err(reason)) => (reason, true),
                        None => ("there is no sandbox".to_owned(), true),
                    };
                    self.step_recorder.result(turn, &id, &result, is_error)?;
                }
                Action::Delete(path) => {
                    let id =
                        self.step_recorder.call(turn, "Bash", json!({ "command": format!("rm -rf -- '{path}'") }))?;
                    // A file that cannot be deleted is simply left alone.
                    let place = self.access.as_ref().and_then(|access| access.locate(&path).ok());
                    let is_deleted = place.is_some_and(|place| std::fs::remove_file(place).is_ok());
                    self.step_recorder.result(turn, &id, if is_deleted { "" } else { "not deleted" }, !is_deleted)?;
                }
                Action::Run(command) => self.run_as_call(command, TIMEOUT, turn).await?,
                Action::Work(command) => self.run_as_call(&command, WORK_TIMEOUT, turn).await?,
                Action::Ask(question) => {
                    let asked = json!({ "questions": [{ "question": question }] });
                    let id = self.step_recorder.call(turn, "AskUserQuestion", asked)?;
                    let call_id = Some(id.clone());
                    let answer = turn.ask(Question { call_id, question: question.into(), ..Question::default() });
                    self.step_recorder.result(turn, &id, answer.as_deref().unwrap_or("no answer"), false)?;
                }
                Action::Turn => self.step_recorder.next_turn(),
                Action::Use(used) => usage += used,
                Action::GiveUp => gives_up = true,
            }
        }
        let text = (!said.is_empty()).then(|| said.join("\n"));
        turn.record(finished(gives_up, usage, text, result))?;
        match gives_up {
            true => Err(Ending::GaveUp { reason: "it does not want to".to_owned() }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
