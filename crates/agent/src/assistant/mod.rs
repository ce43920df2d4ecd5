//! The `assistant` agent: an agent whose conversation is stored by OpenAI, or by a compatible server. It is accessed
//! through the Responses API, where each response names the previous one, or through the Assistants API, where an
//! assistant runs on a thread.
//!
//! The service stands between the agent and this program, so its failures are the provider's fault and break the
//! trial: an unreachable address, any error status, a response or run that *failed*, a run that *expired* although it
//! was not waiting for this program, and answers in an unknown format. Decisions of the agent are the agent's fault: a
//! refusal, an answer that is *incomplete* because it reached its token limit or was cut by a filter, a call to a tool
//! that does not exist here. A run that was *cancelled* from outside counts as aborted.

mod config;
mod responses;
mod shared;
#[cfg(test)]
mod tests;
mod threads;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Diagnostic, Node};
use sandbox::{BoxFuture, Breakage};

use self::config::{Api, AssistantConfig};
use self::responses::Responses;
use self::threads::Thread;
use super::own_tools::{self, Owner};
use super::{Agent, CaseContext, Description, RunState, SessionContext, joined};
use crate::session::Session;

/// An assistant hosted by OpenAI; see the module documentation.
pub struct Assistant;

/// Owner of the case's tools.
const OWNER: Owner = Owner { agent: "assistant", tools: &[] };

static DESCRIPTION: Description = Description {
    aliases: &["openai-assistant"],
    needs_sandbox: false,
    calls_script: true,
    takes_tools: true,
    takes_config: true,
    ..Description::new("assistant", "an assistant by OpenAI's Responses or Assistants API, or by a server like it")
};

impl Agent for Assistant {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn check_argument(&self, _argument: Option<&str>, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        vec![unconfigured()]
    }

    fn check_config(&self, config: &Node, _directory: &Path, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        let mut problems = Problems::new();
        AssistantConfig::read(config, &mut problems);
        problems
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let mut problems = own_tools::check(context.case, context.directory, context.state, OWNER);
        let Some(config) = context.config else { return problems };
        // Errors in the configuration itself are reported separately, once.
        let Some(setting) = AssistantConfig::read(&config.node, &mut Problems::new()) else { return problems };
        let providers = setting.providers(context.providers);
        let base_url = setting.base_url(context.base_url);
        let opened = match (&setting.api, setting.model(context.arm.model.as_deref())) {
            (Api::Responses, None) => {
                problems.push(AssistantConfig::without_model(&config.node));
                return problems;
            }
            (Api::Responses, Some(model)) => responses::open(&providers, model, base_url).map(|_| ()),
            (Api::Assistants(_), _) => providers.assistants(base_url).map(|_| ()),
        };
        if let Err(error) = opened {
            let message = format!("the assistant cannot be used: {error}");
            let place = config.node.get("type").unwrap_or(&config.node);
            problems.push(match error.is_environments() {
                true => place.warning(message).help("every trial with this agent will be broken"),
                false => place.error(message),
            });
        }
        problems
    }

    fn open<'a>(&'a self, session_context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let setting = setting(&session_context)?;
            Ok(match setting.api {
                Api::Responses => Box::new(Responses::open(&session_context, setting).await?) as Box<dyn Session>,
                Api::Assistants(_) => Box::new(Thread::open(&session_context, setting).await?),
            })
        })
    }
}

fn unconfigured() -> Diagnostic {
    Diagnostic::error("`assistant` needs a configuration")
        .help("in the project: `{type: assistant, model: gpt-5}` or `{type: assistant, assistant_id: asst_…}`")
}

fn setting(session_context: &SessionContext) -> Result<AssistantConfig, Breakage> {
    let Some(config) = &session_context.config else { return Err(Breakage::environment(unconfigured().to_string())) };
    let mut problems = Problems::new();
    AssistantConfig::read(&config.node, &mut problems).ok_or_else(|| Breakage::environment(joined(&problems)))
}
