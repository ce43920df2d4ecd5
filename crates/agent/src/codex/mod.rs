//! The agent `codex`: Codex itself, run by `codex exec` for each user message. Experiments and reasons:
//! `docs/design/codex.md`.

#[cfg(test)]
pub(super) mod captures;
mod change;
mod command;
mod follower;
mod item;
mod launch;
mod meter;
mod rollout;
mod session;
mod sign_in;
mod stream;

use model::{Diagnostic, PermissionMode};
use sandbox::{BoxFuture, Breakage, Host};

use self::launch::{Launch, LaunchContext};
use self::session::Conversation;
use self::sign_in::SignIn;
use super::vendor::Vendor;
use super::{Agent, CaseContext, Description, Program, Readiness, SessionContext};
use crate::session::Session;

/// Folder in which it finds skills.
const SKILLS: &str = ".agents/skills";

/// The agent `codex`.
pub struct Codex;

static PROGRAM: Program = Program {
    command: "codex",
    variable: "TRIALRUN_CODEX",
    install: "npm install -g @openai/codex",
    update: "npm install -g @openai/codex",
    oldest: Some([0, 169, 0]),
    environment: &[],
    sign_in: "set CODEX_API_KEY or OPENAI_API_KEY, or run `codex login`",
};

static DESCRIPTION: Description = Description {
    program: Some(&PROGRAM),
    skills_folder: Some(SKILLS),
    wire: Some("openai-responses"),
    evaluation_mode: PermissionMode::AcceptEdits,
    ..Description::new("codex", "Codex, the `codex` command, with its own tools")
};

impl Agent for Codex {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn refuses_model(&self, name: &str, base_url: Option<&str>, _providers: &llm::Providers) -> Option<String> {
        // A server at another address may offer any model under any name.
        let vendor = Vendor::of(name).filter(|_| base_url.is_none())?;
        (vendor != Vendor::OpenAi).then(|| format!("`{name}` is a model of {}", vendor.name()))
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let mut warn = |what: &str| {
            problems.push(Diagnostic::warning(format!("Codex {what}")).at(context.case.source.clone()));
        };
        if context.case.runner.allowed_tools_override.is_some() {
            warn("cannot be kept to a list of tools, so `allowed_tools_override` is passed over");
        }
        if !context.case.user_responses.is_empty() {
            warn("cannot ask its user anything here, so `user_responses` are not needed");
        }
        problems
    }

    fn ready<'a>(&'a self, host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(async move {
            let sign_in = SignIn::at_the_vendor(host);
            PROGRAM.readiness(host, (sign_in != SignIn::None).then(|| sign_in.name())).await
        })
    }

    fn open<'a>(&'a self, session_context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let Some(sandbox) = session_context.sandbox else {
                return Err(Breakage::harness("Codex was given no sandbox to work in"));
            };
            let program =
                PROGRAM.find(&session_context.host).map_err(|because| Breakage::environment(because).for_good())?;
            let context = LaunchContext {
                host: &session_context.host,
                setup: &session_context.setup,
                endpoint: &session_context.endpoint,
                home: sandbox.home(),
                work: sandbox.work(),
                remote: session_context.source_repo.as_deref(),
                level: session_context.case.skill_eval.as_ref().map(|eval| eval.side_effect_level),
            };
            let launch = Launch::prepare(program, &context)?;
            Ok(Box::new(Conversation::new(launch, sandbox)) as Box<dyn Session>)
        })
    }
}
