//! The agent `custom`: a module of the user's. `custom:FILE` names it; what it exports as `execute` is called with what
//! the user says, in the embedded engine.

mod given;
mod reference;

use std::path::{Path, PathBuf};

use model::{Diagnostic, Ending, Excerpt, Step, Usage, UserMessage};
use script::{Function, ScriptError, Value};
use serde_json::{Map, Value as Json, json};

use self::given::Given;
pub use self::reference::reference;
use super::engine::{Engine, Program};
use super::performer::Performer;
use super::transcript::perform;
use super::{Agent, Part, Readiness, Scene};
use crate::session::{BoxFuture, Reply, Session};
use crate::witness::Turn;
use crate::{Breakage, Host};

/// A module of the user's; see the module.
pub struct Custom;

/// Finds `execute`: an export, the default export, or a method of that or of an instance of it.
const FIND: &str = "const [module] = modules;
const own = module.default;
const made = typeof own?.prototype?.execute === 'function' ? new own() : own;
export default typeof module.execute === 'function' ? module.execute
    : typeof made?.execute === 'function' ? (context) => made.execute(context)
    : typeof made === 'function' ? made
    : undefined;";

const FORM: &str = "export a function `execute({script, args, options})`, under that name or as the default";

impl Agent for Custom {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn summary(&self) -> &'static str {
        "a module of yours, `custom:FILE`, that exports `execute({script, args, options})`"
    }

    fn tools(&self) -> Option<&'static [&'static str]> {
        None
    }

    fn needs_sandbox(&self) -> bool {
        false
    }

    fn takes_script(&self) -> bool {
        true
    }

    fn takes_tools(&self) -> bool {
        true
    }

    fn check_argument(&self, argument: Option<&str>) -> Vec<Diagnostic> {
        let Some(file) = argument.filter(|file| !file.is_empty()) else {
            return vec![Diagnostic::error("`custom` needs a module").help("write `custom:agent.js`")];
        };
        if let Err(error) = std::fs::metadata(file) {
            return vec![Diagnostic::error(format!("cannot read the module `{file}`: {error}"))];
        }
        match program(file).and_then(|program| program.check()) {
            Ok(Value::Function(_)) => Vec::new(),
            Ok(_) => {
                vec![Diagnostic::error(format!("`{file}` exports no `execute`")).at(Excerpt::of_file(file)).help(FORM)]
            }
            Err(error) => {
                let problem = error.diagnostic();
                let is_placed = problem.source.is_some();
                vec![if is_placed { problem } else { problem.at(Excerpt::of_file(file)) }]
            }
        }
    }

    fn check(&self, _part: &Part<'_>) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn ready<'a>(&'a self, _host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(std::future::ready(Readiness { ready: true, version: None, auth: None, hints: Vec::new() }))
    }

    fn open<'a>(&'a self, scene: Scene) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let session = Conversation::open(&scene).await?;
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}

/// What loads the module in `file`.
fn program(file: &str) -> Result<Program, ScriptError> {
    let file = std::path::absolute(file).map_err(|error| ScriptError::Failed(format!("{file}: {error}")))?;
    let directory = file.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    Ok(Program { directory, modules: vec![file.to_string_lossy().into_owned()], text: FIND.to_owned() })
}

/// A conversation with the module.
struct Conversation {
    session_id: String,
    engine: Engine,
    execute: Function,
    performer: Performer,
    /// What was said so far, on both sides; kept only where there is more than one message.
    said: Option<Vec<Json>>,
    /// The messages that the module gave last.
    given: Vec<Json>,
    opened: bool,
}

impl Conversation {
    async fn open(scene: &Scene) -> Result<Self, Breakage> {
        let file = scene.argument.as_deref().unwrap_or_default();
        let broken = |error: &ScriptError| Breakage::environment(format!("`{file}` cannot be loaded: {error}"));
        let program = program(file).map_err(|error| broken(&error))?;
        let (engine, exported) =
            Engine::start(program, scene.setup.timeout_ms).await.map_err(|error| broken(&error))?;
        let Value::Function(execute) = exported else {
            return Err(Breakage::environment(format!("`{file}` exports no `execute`")));
        };
        Ok(Self {
            session_id: format!("custom-{}", scene.trial),
            engine,
            execute,
            performer: Performer::default(),
            said: (scene.case.messages.len() > 1).then(Vec::new),
            given: Vec::new(),
            opened: false,
        })
    }

    fn begin(&mut self, turn: &mut Turn) -> Result<(), Ending> {
        if std::mem::replace(&mut self.opened, true) {
            return Ok(());
        }
        turn.record(Step::Session {
            session_id: Some(self.session_id.clone()),
            model: None,
            agent_version: None,
            tools: Vec::new(),
            auth: None,
        })
        .go()
    }

    async fn act(&mut self, message: &UserMessage, turn: &mut Turn) -> Result<(), Ending> {
        self.begin(turn)?;
        let context = Value::from(self.context(message));
        turn.waiting("agent");
        let value = match self.engine.call(&self.execute, vec![context], turn).await? {
            Ok(value) => value,
            Err(error) => {
                let verb = if matches!(error, ScriptError::Thrown { .. }) { " threw" } else { ":" };
                return Err(Ending::GaveUp { because: format!("`execute`{verb} {error}") });
            }
        };
        let Some(given) = Given::read(&value, &mut self.given) else {
            return Err(Ending::GaveUp { because: "`execute` returned nothing".to_owned() });
        };
        self.take_in(message, given, turn)
    }

    /// What `execute` is called with.
    fn context(&self, message: &UserMessage) -> Json {
        let mut args = message.vars.clone();
        if args.is_empty() {
            args.insert("input".to_owned(), json!(message.text));
        }
        if !message.tools.is_empty() {
            args.insert("tools".to_owned(), json!(message.tools));
        }
        if let Some(said) = &self.said {
            args.insert("messages".to_owned(), json!(said));
        }
        let mut context = Map::new();
        context.extend(message.script.as_ref().map(|script| ("script".to_owned(), json!(script))));
        context.insert("args".to_owned(), Json::Object(args));
        context.insert("options".to_owned(), json!(message.options));
        Json::Object(context)
    }

    fn take_in(&mut self, message: &UserMessage, given: Given, turn: &mut Turn) -> Result<(), Ending> {
        given.doubts.iter().for_each(|doubt| turn.warn(format!("what `execute` returned is odd: {doubt}")));
        let said = perform(&given.turns, &mut self.performer, turn)?;
        let text = given.text.clone().or_else(|| said.map(str::to_owned));
        if let Some(conversation) = &mut self.said {
            conversation.push(json!({"role": "user", "content": message.text}));
            conversation.push(json!({"role": "assistant", "content": text}));
        }
        finish(turn, given.usage, text, given.result)
    }
}

impl Session for Conversation {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            let ending = self.act(message, turn).await.err().unwrap_or(Ending::Finished);
            if matches!(ending, Ending::GaveUp { .. }) {
                let finished = Step::Finished {
                    subtype: "error".to_owned(),
                    is_error: true,
                    usage: Usage::default(),
                    text: None,
                    result: None,
                };
                let _ = turn.record(finished);
            }
            Reply { ending }
        })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        // The thread ends with the engine.
        Box::pin(std::future::ready(()))
    }
}

fn finish(turn: &mut Turn, usage: Usage, text: Option<String>, result: Option<Json>) -> Result<(), Ending> {
    turn.record(Step::Finished { subtype: "success".to_owned(), is_error: false, usage, text, result }).go()
}

#[cfg(test)]
mod tests;
