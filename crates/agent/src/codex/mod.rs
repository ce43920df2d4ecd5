//! The agent `codex`: Codex itself, run by `codex exec` for each of the user's messages. What was tried and why it is as
//! it is: `docs/design/codex.md`.

#[cfg(test)]
pub(super) mod captures;
mod change;
mod command;
mod follower;
mod item;
mod launch;
mod meter;
mod reference;
mod rollout;
mod session;
mod sign_in;
mod stream;

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Diagnostic, PermissionMode};
use sandbox::{BoxFuture, Breakage, Host, supervise};

use self::launch::{Launch, Occasion};
pub use self::reference::reference;
use self::session::Conversation;
use self::sign_in::SignIn;
use super::vendor::Vendor;
use super::{Agent, Part, Readiness, Scene};
use crate::session::Session;

/// Names another program than the `codex` on the `PATH`.
const PROGRAM_VARIABLE: &str = "TRIALRUN_CODEX";
/// What to do where nobody is signed in.
const SIGN_IN_HINT: &str = "set CODEX_API_KEY or OPENAI_API_KEY, or run `codex login`";
/// How long the CLI may take to tell its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);
/// The oldest version that is known to work.
const OLDEST: [u64; 3] = [0, 169, 0];
/// Where it looks for skills.
const SKILLS: &str = ".agents/skills";

/// Codex.
pub struct Codex;

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn summary(&self) -> &'static str {
        "Codex, the `codex` command, with its own tools"
    }

    fn tools(&self) -> Option<&'static [&'static str]> {
        None
    }

    fn refuses_model(&self, name: &str, base_url: Option<&str>, _providers: &llm::Providers) -> Option<String> {
        // Another address may have any model under any name.
        let vendor = Vendor::of(name).filter(|_| base_url.is_none())?;
        (vendor != Vendor::OpenAi).then(|| format!("`{name}` is a model of {}", vendor.name()))
    }

    fn skills_folder(&self) -> Option<&'static str> {
        Some(SKILLS)
    }

    fn wire(&self) -> Option<&'static str> {
        Some("openai-responses")
    }

    fn evaluation_mode(&self) -> PermissionMode {
        PermissionMode::AcceptEdits
    }

    fn check(&self, part: &Part<'_>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let mut warn = |what: &str| {
            problems.push(Diagnostic::warning(format!("Codex {what}")).at(part.case.source.clone()));
        };
        if part.case.runner.allowed_tools_override.is_some() {
            warn("cannot be kept to a list of tools, so `allowed_tools_override` is passed over");
        }
        if !part.case.user_responses.is_empty() {
            warn("cannot ask its user anything here, so `user_responses` are not needed");
        }
        problems
    }

    fn ready<'a>(&'a self, host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(async move {
            let found = match program(host) {
                Ok(program) => version(host, &program).await,
                Err(hint) => Err(hint),
            };
            let version = match found {
                Ok(version) => version,
                Err(hint) => return Readiness { ready: false, version: None, auth: None, hints: vec![hint] },
            };
            let mut hints = Vec::new();
            if numbers(&version).is_some_and(|version| version < OLDEST) {
                hints.push(format!(
                    "{version} is older than any version trialrun is tested with: `npm install -g @openai/codex`"
                ));
            }
            let sign_in = SignIn::at_the_vendor(host);
            if sign_in == SignIn::None {
                hints.push(format!("not signed in, so only scripted models will do: {SIGN_IN_HINT}"));
            }
            let auth = (sign_in != SignIn::None).then(|| sign_in.name().to_owned());
            Readiness { ready: true, version: Some(version), auth, hints }
        })
    }

    fn open<'a>(&'a self, scene: Scene) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let Some(sandbox) = scene.sandbox else {
                return Err(Breakage::harness("Codex was given no sandbox to work in"));
            };
            let program = program(&scene.host).map_err(|because| Breakage::environment(because).for_good())?;
            let occasion = Occasion {
                host: &scene.host,
                setup: &scene.setup,
                endpoint: &scene.endpoint,
                home: sandbox.home(),
                work: sandbox.work(),
                remote: scene.source_repo.as_deref(),
                level: scene.case.skill_eval.as_ref().map(|eval| eval.side_effect_level),
            };
            let launch = Launch::prepare(program, &occasion)?;
            Ok(Box::new(Conversation::new(launch, sandbox)) as Box<dyn Session>)
        })
    }
}

/// The CLI, or what to do where there is none.
fn program(host: &Host) -> Result<PathBuf, String> {
    if let Some(named) = host.var(PROGRAM_VARIABLE) {
        return host
            .find_program(named)
            .ok_or_else(|| format!("{PROGRAM_VARIABLE} names `{named}`, which is no program"));
    }
    host.find_program("codex").ok_or_else(|| {
        "no `codex` on the PATH: install it with `npm install -g @openai/codex`, or name it with TRIALRUN_CODEX"
            .to_owned()
    })
}

/// What the CLI says of its version: `codex-cli 0.169.0`.
async fn version(host: &Host, program: &Path) -> Result<String, String> {
    let mut command = host.supervisor.command(program, ["--version"]);
    for name in ["PATH", "LANG"] {
        command.envs(host.var(name).map(|value| (name, value)));
    }
    command.env("HOME", &host.temp).env("TERM", "dumb").current_dir(&host.temp);
    let shown = program.display();
    let output = supervise::run(command, VERSION_TIMEOUT, 64 * 1024)
        .await
        .map_err(|error| format!("{shown} cannot be started: {error}"))?;
    if output.timed_out {
        return Err(format!("{shown} did not tell its version within {} s", VERSION_TIMEOUT.as_secs()));
    }
    let said = output.stdout.text();
    match said.split_whitespace().find(|word| numbers(word).is_some()) {
        Some(version) if output.status.success() => Ok(version.to_owned()),
        _ => {
            let said = if said.trim().is_empty() { output.stderr.text() } else { said };
            Err(format!("{shown} does not tell its version: {}", said.lines().next().unwrap_or("it says nothing")))
        }
    }
}

/// The three numbers of a version.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let mut parts = version.split('.').map(|part| part.split(['-', '+']).next().unwrap_or(part).parse());
    let numbers = [parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?];
    Some(numbers)
}
