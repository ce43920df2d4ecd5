//! Further conversations in a scenario, with the same agent or with another agent that the project configures.

use std::sync::Arc;

use agent::{Agent, Configured, Endpoint, Session, SessionContext, Setup};
use sandbox::Breakage;

/// The open conversations, and the context for opening more.
pub(in crate::trial) struct Conversations {
    context: SessionContext,
    /// Agent of the first conversation.
    agent: &'static dyn Agent,
    configured: Vec<Arc<Configured>>,
    open: Vec<(String, Box<dyn Session>)>,
    /// True once a conversation with another agent was opened.
    has_other_agents: bool,
}

impl Conversations {
    /// Creates an empty set. `context` is the context of the first conversation, with `agent`.
    pub(in crate::trial) fn beside(
        context: SessionContext,
        agent: &'static dyn Agent,
        configured: &[Arc<Configured>],
    ) -> Self {
        Self { context, agent, configured: configured.to_vec(), open: Vec::new(), has_other_agents: false }
    }

    /// Returns the conversation called `name`, if it is open.
    pub(in crate::trial) fn find(&mut self, name: &str) -> Option<&mut Box<dyn Session>> {
        self.open.iter_mut().find(|(known, _)| known == name).map(|(_, session)| session)
    }

    /// Opens the conversation called `name`: with the agent that the project configures under this name, otherwise
    /// with the scenario's own.
    pub(in crate::trial) async fn open(&mut self, name: &str) -> Result<(), Breakage> {
        let mut context = SessionContext { conversation: Some(name.to_owned()), ..self.context.clone() };
        let mut agent = self.agent;
        let own = self.context.config.as_ref().map(|config| &config.name);
        let other = self.configured.iter().find(|config| config.name == name && Some(&config.name) != own);
        if let Some(config) = other {
            let broken = |problem: &model::Diagnostic| Breakage::environment(format!("`agents.{name}`: {problem}"));
            agent = config.agent().map_err(|problem| broken(&problem))?;
            if agent.description().needs_sandbox && context.sandbox.is_none() {
                return Err(Breakage::environment(format!(
                    "`agents.{name}` needs a sandbox, and the scenario has none; give it `fixtures: {{}}`"
                )));
            }
            if let Some(problem) = agent
                .check_config(&config.node, &config.directory, &self.context.state)
                .iter()
                .find(|one| one.is_error())
            {
                return Err(broken(problem));
            }
            context.setup = Arc::new(Setup { model: None, system_prompt: None, ..Setup::clone(&context.setup) });
            context.endpoint = Endpoint::Vendor { base_url: None };
            self.has_other_agents = true;
            (context.config, context.argument) = (Some(Arc::clone(config)), None);
        }
        agent.prepare(context.config.as_deref(), &context.host, &context.state).await?;
        let session = agent.open(context).await?;
        self.open.push((name.to_owned(), session));
        Ok(())
    }

    /// Returns `true` if there was a conversation with another agent, whose requests the gateway has not seen.
    pub(in crate::trial) fn had_other_agents(&self) -> bool {
        self.has_other_agents
    }

    /// Closes all of them.
    pub(in crate::trial) async fn close(&mut self) {
        for (_, session) in &mut self.open {
            session.close().await;
        }
    }
}
