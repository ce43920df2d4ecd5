//! Facts about an agent that are the same for every case.

use model::{Definition, PermissionMode, RequestRule};

use crate::call_ids::CallIds;
use crate::program::Program;

/// Origin of the cost of an agent's model requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Costs {
    /// It may report them.
    MayReport,
    /// They are computed from its tokens and the price of its model.
    ByPrice,
    /// It reports them if requests go to its vendors' own addresses; otherwise they are computed.
    ByPriceElsewhere,
    /// There are none: it has no model, or its requests were sent before the run.
    Nothing,
}

/// Facts about an agent. All code that lists agents or checks a capability reads them here.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Name in files and on the command line.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Other names that files and the command line may use.
    pub aliases: &'static [&'static str],
    /// Program that the agent runs; `None` if it has none.
    pub program: Option<&'static Program>,
    /// Canonical names of its tools; `None` if it may have tools of any name.
    pub tools: Option<&'static [&'static str]>,
    /// Names of its tools that have no canonical name, provided that all others have one; `None` if that is unknown.
    pub own_tools: Option<&'static [&'static str]>,
    /// Model for cases that name none; `None` leaves the choice to the agent.
    pub default_model: Option<&'static str>,
    /// Reasoning efforts that it accepts: `None` for any, an empty list if it has no such setting.
    pub efforts: Option<&'static [&'static str]>,
    /// Folder in which it looks for skills, relative to its working directory; `None` if it reads no skill files.
    pub skills_folder: Option<&'static str>,
    /// Folder in which it looks for definitions of sub-agents, relative to its working directory; `None` if it does
    /// not read any.
    pub sub_agents_folder: Option<&'static str>,
    /// Folder in which a whole plug-in is installed for it, relative to its working directory; `None` if it has only the
    /// skills of plug-ins.
    pub plugins_folder: Option<&'static str>,
    /// Wire format that it speaks to its model, as the gateway names it; `None` if it calls no model over HTTP.
    pub wire: Option<&'static str>,
    /// Ids of the calls that its program reports; `None` if they cannot be compared with those of the model.
    pub call_ids: Option<CallIds>,
    /// Parts of its model requests that are ignored when they are compared with recorded ones.
    pub request_rules: &'static [RequestRule],
    /// True if it is a program written by the user that reads the addresses of models from environment variables.
    pub reads_model_variables: bool,
    /// True if this process sends the requests to its scripted model.
    pub calls_script: bool,
    /// True if [`llm`] opens its model in this process.
    pub asks_providers: bool,
    /// Permission mode for skill evaluations that do not set one.
    pub evaluation_mode: PermissionMode,
    /// True if it needs a sandbox even for a case without files.
    pub needs_sandbox: bool,
    /// True if it can work in a sandbox on another machine: it does not use files on this machine.
    pub works_remotely: bool,
    /// True if it replays work that was done elsewhere, whose files are in no sandbox of the trial.
    pub is_replay: bool,
    /// True if its answers are always text, and never a value of another kind.
    pub answers_in_text: bool,
    /// True if it reports its requests for permission.
    pub reports_permissions: bool,
    /// True if it does not wait for any process, model or clock.
    pub answers_at_once: bool,
    /// True if a case may name a script or prompt that determines the answers.
    pub takes_script: bool,
    /// True if a case may provide its own tools.
    pub takes_tools: bool,
    /// True if a case may give it MCP servers.
    pub takes_servers: bool,
    /// True if it can continue a conversation of Claude Code.
    pub takes_history: bool,
    /// Origin of the cost of its model requests.
    pub costs: Costs,
    /// True if a project configures it as a map under its own name, for example with an address or a command.
    pub takes_config: bool,
    /// True if it is one of the many agents that are reached by the same protocol. Overviews are short about those that
    /// are not installed.
    pub is_by_protocol: bool,
}

impl Description {
    /// Creates an agent that works in a sandbox and has no other capability. Fields are set with struct update syntax.
    pub const fn new(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            aliases: &[],
            program: None,
            tools: None,
            own_tools: None,
            default_model: None,
            efforts: None,
            skills_folder: None,
            sub_agents_folder: None,
            plugins_folder: None,
            wire: None,
            call_ids: None,
            request_rules: &[],
            reads_model_variables: false,
            calls_script: false,
            asks_providers: false,
            evaluation_mode: PermissionMode::BypassPermissions,
            needs_sandbox: true,
            works_remotely: false,
            is_replay: false,
            answers_in_text: false,
            reports_permissions: false,
            answers_at_once: false,
            takes_script: false,
            takes_tools: false,
            takes_servers: false,
            takes_history: false,
            costs: Costs::MayReport,
            takes_config: false,
            is_by_protocol: false,
        }
    }

    /// Returns `true` if it has no model, so that a cost which is not reported is 0. Recorded answers had one.
    pub fn is_free(&self) -> bool {
        self.costs == Costs::Nothing && !self.answers_at_once
    }

    /// Returns the folder in which the agent looks for definitions of this kind.
    pub fn folder_of(&self, definition: Definition) -> Option<&'static str> {
        match definition {
            Definition::Skill | Definition::SkillsOfPlugin => self.skills_folder,
            Definition::SubAgent => self.sub_agents_folder,
            Definition::Plugin => self.plugins_folder.or(self.skills_folder),
        }
    }
}
