//! The `claude-code` agent: Claude Code itself, controlled in the same way as by its own SDK, through JSON lines that
//! contain a control protocol. Experiments and reasons: `docs/design/claude-code.md`.

mod control;
mod event;
mod exposure;
mod launch;
mod meter;
mod session;
pub(crate) mod session_file;
mod sign_in;
mod skill_name;
mod slash;
#[cfg(test)]
pub(super) mod tests;
mod tool_allow_list;
mod transcripts;

use std::path::Path;

use model::{Diagnostic, RequestRule, nearest};
use sandbox::{BoxFuture, Breakage, Host};

use self::launch::Launch;
use self::session::ClaudeCodeSession;
use self::tool_allow_list::ToolAllowList;
use super::vendor::Vendor;
use super::{AddressError, Agent, CaseContext, Description, Endpoint, Program, Readiness, SessionContext};
use crate::call_ids::CallIds;
use crate::session::Session;
use crate::sign_in::SignIn;

/// Reasoning efforts that `--effort` accepts.
pub(crate) const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// All tools of the known versions, and tools of older versions that suites still mention.
pub(crate) const TOOLS: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "ListAgents",
    "ListMcpResourcesTool",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Questions",
    "Read",
    "ReadMcpResourceTool",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
];

/// The `claude-code` agent.
pub struct ClaudeCode;

/// Returns `true` if the host of `address` is OpenRouter's; occurrences elsewhere in the URL are ignored.
fn is_openrouter(address: &str) -> bool {
    const HOST: &str = "openrouter.ai";
    let host = reqwest::Url::parse(address.trim()).ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase));
    host.is_some_and(|host| host == HOST || host.strip_suffix(HOST).is_some_and(|front| front.ends_with('.')))
}

pub(crate) static PROGRAM: Program = Program {
    command: "claude",
    variable: "TRIALRUN_CLAUDE",
    install: "npm install -g @anthropic-ai/claude-code",
    update: "claude update",
    min_version: Some([2, 1, 197]),
    environment: &[("DISABLE_AUTOUPDATER", "1")],
    sign_in: "set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN, or run `claude` and sign in with `/login`",
};

/// Parts of its requests that differ between runs: cache markers for the provider, a nonce, and session ids.
const REQUEST_RULES: &[RequestRule] = &[
    RequestRule::Remove("/metadata"),
    RequestRule::RemoveField("cache_control"),
    RequestRule::RemoveItems("/system", "x-anthropic-billing-header"),
    RequestRule::Sort("/tools", "/name"),
];

pub(crate) static DESCRIPTION: Description = Description {
    program: Some(&PROGRAM),
    answers_in_text: true,
    takes_config: true,
    takes_servers: true,
    takes_history: true,
    aliases: &["claude"],
    tools: Some(TOOLS),
    default_model: Some("claude-sonnet-4-6"),
    efforts: Some(&EFFORTS),
    skills_folder: Some(exposure::SKILLS),
    sub_agents_folder: Some(exposure::SUB_AGENTS),
    plugins_folder: Some(exposure::PLUGINS),
    wire: Some("anthropic"),
    call_ids: Some(CallIds::OF_MODEL),
    request_rules: REQUEST_RULES,
    ..Description::new("claude-code", "Claude Code, the `claude` command, with its own tools")
};

impl Agent for ClaudeCode {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn refuses_model(&self, name: &str, base_url: Option<&str>, providers: &llm::Providers) -> Option<String> {
        // A server at another address may offer any model under any name.
        let vendor =
            Vendor::from_model_name(name).filter(|_| base_url.is_none() && !providers.holds("ANTHROPIC_BASE_URL"))?;
        (vendor != Vendor::Anthropic).then(|| format!("`{name}` is a model of {}", vendor.name()))
    }

    fn is_billed_by_openrouter(&self, host: &Host, base_url: Option<&str>) -> bool {
        base_url.or_else(|| host.var("ANTHROPIC_BASE_URL")).is_some_and(is_openrouter)
    }

    fn vendor_addresses(&self, context: &SessionContext) -> Result<Vec<String>, AddressError> {
        sign_in::model_addresses(&context.host)
    }

    fn forwarding_address(&self, context: &SessionContext) -> Result<String, AddressError> {
        let own = sign_in::forwarding_address(&context.host)?;
        Ok(match &context.endpoint {
            Endpoint::Vendor { base_url: Some(base_url) } => base_url.clone(),
            _ => own,
        })
    }

    fn missing_key(&self, host: &Host, _name: Option<&str>) -> Option<String> {
        (sign_in::detect(host) == SignIn::None).then(|| "ANTHROPIC_API_KEY".to_owned())
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let place = context.case.runner.place_of("allowed_tools_override").unwrap_or(&context.case.source);
        let listed = context.case.runner.allowed_tools_override.as_deref().map(ToolAllowList::read).unwrap_or_default();
        for tool in listed.built_in().filter(|tool| !TOOLS.contains(tool)) {
            problems.push(
                Diagnostic::warning(format!("Claude Code has no tool named `{tool}` (in the list of allowed tools)"))
                    .at(place.clone())
                    .suggest(nearest(tool, TOOLS.iter().copied())),
            );
        }
        problems
    }

    fn remove_leftovers(&self, host: &Host, sandbox: &Path) {
        if let Some(folder) = sign_in::config_folder(host) {
            transcripts::remove_leftovers(&folder, sandbox);
        }
    }

    fn ready<'a>(&'a self, host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(async move { PROGRAM.readiness(host, sign_in::detect(host).name()).await })
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let launch = Launch::prepare(PROGRAM.find(&context)?, &context)?;
            Ok(Box::new(ClaudeCodeSession::open(launch, &context)?) as Box<dyn Session>)
        })
    }
}
