//! The `codex` agent: Codex itself, run by `codex exec` for each user message. Experiments and reasons:
//! `docs/design/codex.md`.

pub(super) mod command;
mod follower;
pub(super) mod item;
mod launch;
mod meter;
mod rollout;
mod session;
pub(crate) mod session_file;
mod sign_in;
mod stream;
#[cfg(test)]
pub(super) mod tests;

use std::path::PathBuf;

use model::{Diagnostic, PermissionMode, RequestRule};
use sandbox::{BoxFuture, Breakage, Host};

use self::launch::Launch;
use self::session::CodexSession;
use super::vendor::Vendor;
use super::{AddressError, Agent, CaseContext, Costs, Description, Endpoint, Program, Readiness, SessionContext};
use crate::call_ids::CallIds;
use crate::program::Invocation;
use crate::session::Session;
use crate::sign_in::SignIn;

/// Folder in which it finds skills.
const SKILLS: &str = ".agents/skills";

/// The `codex` agent.
pub struct Codex;

static PROGRAM: Program = Program {
    command: "codex",
    variable: "TRIALRUN_CODEX",
    install: "npm install -g @openai/codex",
    update: "npm install -g @openai/codex",
    min_version: Some([0, 169, 0]),
    environment: &[],
    sign_in: "set CODEX_API_KEY or OPENAI_API_KEY, or run `codex login`",
};

/// Parts of its requests that differ between runs: session ids, the timings that its shell reports, and its estimate of
/// the tokens of an output, which changes with the length of the sandbox's path in it.
const REQUEST_RULES: &[RequestRule] = &[
    RequestRule::Remove("/prompt_cache_key"),
    RequestRule::Remove("/client_metadata"),
    RequestRule::Sort("/tools", "/name"),
    RequestRule::Replace(r"Chunk ID: [0-9a-f]+", "Chunk ID"),
    RequestRule::Replace(r"Wall time: [0-9.]+ seconds", "Wall time"),
    RequestRule::Replace(r"Original token count: [0-9]+", "Original token count"),
];

static DESCRIPTION: Description = Description {
    program: Some(&PROGRAM),
    answers_in_text: true,
    takes_config: true,
    takes_servers: true,
    own_tools: Some(item::OWN),
    skills_folder: Some(SKILLS),
    wire: Some("openai-responses"),
    call_ids: Some(CallIds::mostly_of_model(item::asked_command, stream::is_id, rollout::SCRIPT)),
    request_rules: REQUEST_RULES,
    evaluation_mode: PermissionMode::AcceptEdits,
    costs: Costs::ByPrice,
    ..Description::new("codex", "Codex, the `codex` command, with its own tools")
};

/// Returns how another program is started that contains Codex and reads its settings from its home. The settings are
/// written there.
///
/// # Errors
/// Returns the reason if the sign-in is missing or the home cannot be prepared.
pub(super) fn acp_invocation(program: PathBuf, context: &SessionContext) -> Result<Invocation, Breakage> {
    let Launch { invocation, home } = Launch::prepare(program, context)?;
    let is_own = home.starts_with(context.sandbox()?.home());
    if is_own {
        std::fs::write(home.join("config.toml"), launch::config_file(&invocation.args))
            .map_err(|error| Breakage::environment(format!("cannot write Codex's settings: {error}")))?;
    }
    Ok(invocation)
}

impl Agent for Codex {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn refuses_model(&self, name: &str, base_url: Option<&str>, _providers: &llm::Providers) -> Option<String> {
        // A server at another address may offer any model under any name.
        let vendor = Vendor::from_model_name(name).filter(|_| base_url.is_none())?;
        (vendor != Vendor::OpenAi).then(|| format!("`{name}` is a model of {}", vendor.name()))
    }

    fn vendor_addresses(&self, context: &SessionContext) -> Result<Vec<String>, AddressError> {
        Ok(vec![sign_in::model_address(&context.host).to_owned()])
    }

    fn forwarding_address(&self, context: &SessionContext) -> Result<String, AddressError> {
        Ok(match &context.endpoint {
            Endpoint::Vendor { base_url: Some(base_url) } => base_url.clone(),
            _ => sign_in::api_address(&context.host).to_owned(),
        })
    }

    fn missing_key(&self, host: &Host, _name: Option<&str>) -> Option<String> {
        (sign_in::detect(host) == SignIn::None).then(|| "OPENAI_API_KEY".to_owned())
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let mut warn = |what: &str| {
            problems.push(Diagnostic::warning(format!("Codex {what}")).at(context.case.source.clone()));
        };
        if context.case.runner.allowed_tools_override.is_some() {
            warn("cannot be limited to a list of tools, so `allowed_tools_override` is ignored");
        }
        if !context.case.user_responses.is_empty() {
            warn("cannot ask its user questions here, so `user_responses` is ignored");
        }
        problems
    }

    fn ready<'a>(&'a self, host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(async move { PROGRAM.readiness(host, sign_in::detect(host).name()).await })
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let program = PROGRAM.find(&context)?;
            // The file of a thread also has the version, but it may not be there yet when the session is recorded.
            let has_own_system = context.sandbox()?.has_own_system();
            let version = if has_own_system { None } else { PROGRAM.known_version(&context, &program).await };
            let launch = Launch::prepare(program, &context)?;
            Ok(Box::new(CodexSession::new(launch, context.sandbox()?, version)) as Box<dyn Session>)
        })
    }
}
