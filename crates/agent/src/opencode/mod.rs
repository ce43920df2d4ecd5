//! The `opencode` agent: OpenCode, started for each user message, with its events as JSON lines. Experiments and
//! reasons: `docs/design/opencode.md`.

mod event;
mod launch;
mod log;
mod permission;
mod provider;
mod session;
pub(crate) mod session_file;
#[cfg(test)]
pub(super) mod tests;
pub(super) mod tool;

use std::path::PathBuf;

use model::{Diagnostic, RequestRule, nearest};
use sandbox::{BoxFuture, Breakage, Host};

use self::launch::Launch;
use self::provider::Provider;
use self::session::OpenCodeSession;
use super::{AddressError, Agent, CaseContext, Costs, Description, Endpoint, Program, Readiness, SessionContext};
use crate::call_ids::CallIds;
use crate::program::Invocation;
use crate::session::Session;

/// Reasoning efforts that can be requested. Only OpenCode knows which of them a model supports.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The `opencode` agent.
pub struct OpenCode;

static PROGRAM: Program = Program {
    command: "opencode",
    variable: "TRIALRUN_OPENCODE",
    install: "npm install -g opencode-ai",
    update: "opencode upgrade",
    min_version: None,
    environment: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
    sign_in: "set the provider's key, such as ANTHROPIC_API_KEY, or run `opencode auth login`",
};

/// Parts of its requests that differ between runs: cache markers for the provider, and session ids.
const REQUEST_RULES: &[RequestRule] = &[
    RequestRule::Remove("/prompt_cache_key"),
    RequestRule::Remove("/promptCacheKey"),
    RequestRule::RemoveField("cache_control"),
    RequestRule::Sort("/tools", "/function/name"),
    RequestRule::Sort("/tools", "/name"),
];

static DESCRIPTION: Description = Description {
    program: Some(&PROGRAM),
    answers_in_text: true,
    takes_config: true,
    takes_servers: true,
    efforts: Some(EFFORTS),
    own_tools: Some(&[crate::apply_patch::APPLY_PATCH]),
    skills_folder: Some(launch::SKILLS),
    sub_agents_folder: Some(launch::SUB_AGENTS),
    wire: Some("openai"),
    call_ids: Some(CallIds::OF_MODEL),
    request_rules: REQUEST_RULES,
    costs: Costs::ByPriceElsewhere,
    ..Description::new("opencode", "OpenCode, the `opencode` command, with its own tools")
};

/// Returns how OpenCode is started to speak the Agent Client Protocol, without arguments.
///
/// # Errors
/// Returns the reason if the sign-in is missing or the home cannot be prepared.
pub(super) fn acp_invocation(program: PathBuf, context: &SessionContext) -> Result<Invocation, Breakage> {
    Launch::asking(program, context).map(|launch| launch.invocation)
}

impl Agent for OpenCode {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn refuses_model(&self, name: &str, base_url: Option<&str>, _providers: &llm::Providers) -> Option<String> {
        (base_url.is_none() && !name.contains('/'))
            .then(|| format!("`{name}` does not name its provider, as in `anthropic/{name}`"))
    }

    fn vendor_addresses(&self, context: &SessionContext) -> Result<Vec<String>, AddressError> {
        let model = context.setup.model.as_deref().unwrap_or_default();
        provider::model_address(model).map(|address| vec![address.to_owned()])
    }

    fn forwarding_address(&self, context: &SessionContext) -> Result<String, AddressError> {
        let base_url = match &context.endpoint {
            Endpoint::Vendor { base_url } => base_url.as_deref(),
            _ => None,
        };
        provider::forwarding_address(&context.host, base_url, context.setup.model.as_deref())
    }

    fn missing_key(&self, host: &Host, name: Option<&str>) -> Option<String> {
        provider::missing_key(host, name?)
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let case = context.case;
        let warn = |message: String| Diagnostic::warning(message).at(case.source.clone());
        if context.base_url.is_some() && context.arm.model.is_none() {
            let message = "OpenCode chooses the model itself, among those of its `openai` provider, at the base URL";
            problems.push(Diagnostic::warning(message).help("set `model` to choose it"));
        }
        let closed = case.runner.allowed_tools_override.as_deref().unwrap_or_default();
        let place = case.runner.place_of("allowed_tools_override").unwrap_or(&case.source);
        for tool in permission::names(closed).iter().filter(|tool| is_unknown(tool)) {
            problems.push(
                warn(format!("OpenCode has no tool named `{tool}` (in the list of allowed tools)"))
                    .at(place.clone())
                    .suggest(nearest(tool, tool::canonical())),
            );
        }
        for tool in permission::cannot_be_limited(closed) {
            problems.push(warn(format!(
                "OpenCode cannot limit `{tool}` to scopes, so it is omitted (in the list of allowed tools)"
            )));
        }
        if !case.user_responses.is_empty() {
            problems.push(warn("OpenCode cannot ask its user questions here, so `user_responses` is ignored".into()));
        }
        problems
    }

    fn ready<'a>(&'a self, host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(async move {
            let auth = Provider::new(host, &Endpoint::Vendor { base_url: None }, None, 0).auth;
            let mut readiness = PROGRAM.readiness(host, auth).await;
            if readiness.ready && host.find_program("rg").is_none() {
                let hint =
                    "`rg` (ripgrep) is not on the PATH: the `glob`, `grep` and `skill` tools may fail without it";
                readiness.hints.insert(0, hint.to_owned());
            }
            readiness
        })
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let program = PROGRAM.find(&context)?;
            let has_own_system = context.sandbox()?.has_own_system();
            let version = if has_own_system { None } else { PROGRAM.known_version(&context, &program).await };
            let launch = Launch::prepare(program, &context)?;
            Ok(Box::new(OpenCodeSession::new(launch, context.sandbox()?, version)) as Box<dyn Session>)
        })
    }
}

/// Returns `true` if a canonical tool does not exist in OpenCode. Other names may be tools of MCP servers.
fn is_unknown(tool: &str) -> bool {
    tool::canonical().all(|known| known != tool) && model::tool::find(tool).is_some()
}
