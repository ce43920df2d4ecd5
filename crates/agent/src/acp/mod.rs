//! Agents that speak the Agent Client Protocol, version 1: any command, `acp:COMMAND`, and agents that are known by name.
//! Decisions and reasons: `docs/design/acp.md`.
//!
//! One process serves a conversation. The agent asks this program for permissions, files and terminals. A program that is
//! missing, does not open a session, or wants a sign-in is an environment fault. A failed model request is the fault of the
//! provider. It is the agent's failure if it refuses, stops at a limit, ends, or answers in another format.

mod config;
mod conformance;
mod elicitation;
mod files;
mod launch;
mod message;
pub(super) mod named;
mod permission;
mod session;
mod settings;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
mod tool;
mod update;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Diagnostic, Node};
use sandbox::{BoxFuture, Breakage, Host};

pub use self::conformance::{Conformance, ConformanceCheck, Tier, check_conformance};
use self::launch::Launch;
use self::named::{ModelAddress, Named};
use self::session::AcpSession;
use super::{AddressError, Agent, CaseContext, Description, Endpoint, Readiness, RunState, SessionContext};
use crate::program;
use crate::session::Session;
use crate::subprocess::{MODEL_VARIABLES, missing_in_sandbox};

/// Returns the agents that are known by name, with their command lines.
pub(super) fn named() -> Vec<(&'static Description, String)> {
    let line = |named: &'static Named| {
        let program = named.description.program.map_or("", |program| program.command);
        let words: Vec<&str> = std::iter::once(program).chain(named.args.iter().copied()).collect();
        (&named.description, words.join(" "))
    };
    named::ALL.iter().copied().map(line).collect()
}

/// Any agent that is given by its command.
pub struct Acp;

static DESCRIPTION: Description = Description {
    skills_folder: Some(".agents/skills"),
    reads_model_variables: true,
    answers_in_text: true,
    reports_permissions: true,
    takes_config: true,
    takes_servers: true,
    ..Description::new("acp", "any agent that speaks the Agent Client Protocol, `acp:COMMAND`")
};

impl Agent for Acp {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn check_argument(&self, argument: Option<&str>, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        config::from_argument(argument).err().into_iter().map(|problem| *problem).collect()
    }

    fn check_config(&self, config: &Node, _directory: &Path, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        let mut problems = Problems::new();
        config::read(config, &mut problems);
        problems
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let (config, project, command) = match context.config {
            Some(config) => {
                let read = config::read(&config.node, &mut Problems::new());
                (read, config.directory.as_path(), config.node.get("command"))
            }
            None => (config::from_argument(context.argument).ok(), Path::new("."), None),
        };
        config.and_then(|config| missing_in_sandbox(&config, project, command, context.case)).into_iter().collect()
    }

    fn model_variables(&self, context: &SessionContext) -> Vec<(String, String)> {
        let config = context.config.as_ref().and_then(|config| config::read(&config.node, &mut Problems::new()));
        let env = config.map(|config| config.env).unwrap_or_default();
        let address = |(name, usual): &(&str, &str)| {
            let own = env.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
            let set = own.or_else(|| context.host.var(name)).unwrap_or(usual);
            ((*name).to_owned(), set.to_owned())
        };
        MODEL_VARIABLES.iter().map(address).collect()
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let launch = Launch::of_command(&context)?;
            Ok(Box::new(AcpSession::new(launch, context, None, None)) as Box<dyn Session>)
        })
    }
}

impl Agent for Named {
    fn description(&self) -> &Description {
        &self.description
    }

    fn check_config(&self, config: &Node, directory: &Path, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        let mut problems = program::check_config(config, directory, &config::SESSION_KEYS);
        config::SessionConfig::read(config, &mut problems);
        problems
    }

    fn refuses_model(&self, name: &str, base_url: Option<&str>, providers: &llm::Providers) -> Option<String> {
        self.twin()?.refuses_model(name, base_url, providers)
    }

    fn vendor_addresses(&self, context: &SessionContext) -> Result<Vec<String>, AddressError> {
        match (self.twin(), &self.model) {
            (Some(twin), _) => twin.vendor_addresses(context),
            (None, ModelAddress::Variables { address, form, vendor, .. }) => {
                self.can_be_pointed(context)?;
                Ok(vec![stated(context, address, form.is_some(), vendor)])
            }
            (None, _) => Err(AddressError::NotStated { agent: self.name() }),
        }
    }

    fn forwarding_address(&self, context: &SessionContext) -> Result<String, AddressError> {
        match (self.twin(), &self.model) {
            (Some(twin), _) => twin.forwarding_address(context),
            (None, ModelAddress::Variables { address, form, vendor, .. }) => Ok(match &context.endpoint {
                Endpoint::Vendor { base_url: Some(base_url) } => base_url.clone(),
                _ => {
                    self.can_be_pointed(context)?;
                    stated(context, address, form.is_some(), vendor)
                }
            }),
            (None, _) => Err(AddressError::Fixed { agent: self.name() }),
        }
    }

    fn missing_key(&self, host: &Host, name: Option<&str>) -> Option<String> {
        match (self.twin(), &self.model) {
            (Some(twin), _) => twin.missing_key(host, name),
            (None, ModelAddress::Variables { key, .. }) => {
                launch::sign_in(self, host).is_none().then(|| (*key).to_owned())
            }
            (None, _) => None,
        }
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let cannot = context.base_url.is_some() && matches!(self.model, ModelAddress::Unknown);
        let message =
            || format!("`{}` cannot be pointed at another address, so `--base-url` has no effect", self.name());
        cannot.then(|| Diagnostic::warning(message())).into_iter().collect()
    }

    fn ready<'a>(&'a self, host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(async move {
            match (self.twin(), self.description.program) {
                (_, None) => Readiness { ready: true, version: None, auth: None, hints: Vec::new() },
                (Some(twin), Some(program)) => {
                    let auth = twin.ready(host).await.auth;
                    program.readiness(host, auth.as_deref()).await
                }
                (None, Some(program)) => program.readiness(host, launch::sign_in(self, host)).await,
            }
        })
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let Some(program) = self.description.program else {
                return Err(Breakage::harness(format!("`{}` has no program", self.name())));
            };
            let path = program.find(&context)?;
            let launch = Launch::of_program(self, path, &context)?;
            Ok(Box::new(AcpSession::new(launch, context, Some(*self), Some(program.sign_in))) as Box<dyn Session>)
        })
    }
}

/// Returns the address of a vendor: the user's, unless its variable contains more than an address.
fn stated(context: &SessionContext, variable: &str, contains_more: bool, vendor: &str) -> String {
    let own = context.host.var(variable).filter(|_| !contains_more);
    own.unwrap_or(vendor).to_owned()
}

impl Named {
    /// Returns the agent that runs the same program in the vendor's own way, whose sign-in and addresses this one shares.
    fn twin(&self) -> Option<&'static dyn Agent> {
        match self.model {
            ModelAddress::OpenCode => Some(&crate::opencode::OpenCode),
            ModelAddress::Codex => Some(&crate::codex::Codex),
            ModelAddress::Unknown | ModelAddress::Variables { .. } => None,
        }
    }

    /// Returns an error if its sign-in is valid only at an address that cannot be changed.
    fn can_be_pointed(&self, context: &SessionContext) -> Result<(), AddressError> {
        if let Some((cloud, variable)) = self.cloud.filter(|(_, variable)| context.host.var(variable).is_some()) {
            return Err(AddressError::Signed { agent: self.name(), cloud, variable });
        }
        match launch::sign_in(self, &context.host) {
            Some(launch::STORED) => {
                let provider = self.description.wire.unwrap_or_default().to_owned();
                Err(AddressError::Subscription { agent: self.name(), provider })
            }
            _ => Ok(()),
        }
    }
}
