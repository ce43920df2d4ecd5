//! The `custom` agent: a user's module, which runs in the embedded engine. It exports either a function named
//! `execute`, which is called with the user's message, or an *adapter* that passes messages on: `connect`, `send`,
//! `reset` and `disconnect`, of which only `send` is required.

mod export;
mod loaded;
mod module;
mod return_value;
mod session;

use std::path::Path;
use std::sync::Arc;

use model::{Diagnostic, Node};
use sandbox::{BoxFuture, Breakage};

pub(crate) use self::loaded::EnginePool;
use self::module::Module;
use self::session::CustomSession;
use super::{Agent, CaseContext, Description, RunState, SessionContext};
use crate::session::Session;

/// A user's module; see the module documentation.
pub struct Custom;

static DESCRIPTION: Description = Description {
    efforts: Some(&[]),
    needs_sandbox: false,
    takes_script: true,
    takes_tools: true,
    takes_config: true,
    ..Description::new(
        "custom",
        "your module, `custom:FILE`, which exports `execute({script, args, options})` or an adapter with `send`",
    )
};

impl Agent for Custom {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn check_argument(&self, argument: Option<&str>, state: &Arc<RunState>) -> Vec<Diagnostic> {
        match Module::from_argument(argument) {
            Ok(module) => module.check(state),
            Err(problem) => vec![*problem],
        }
    }

    fn check_config(&self, config: &Node, directory: &Path, state: &Arc<RunState>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        if let Some((module, place)) = Module::read(config, directory, &mut problems) {
            let found = module.check(state).into_iter();
            problems.extend(found.map(|problem| match problem.source {
                Some(_) => problem,
                None => problem.at(place.excerpt()),
            }));
        }
        problems
    }

    fn check(&self, _part: &CaseContext<'_>) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let session = CustomSession::open(&context).await?;
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}

#[cfg(test)]
mod tests;
