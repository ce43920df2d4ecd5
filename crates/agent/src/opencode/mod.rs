//! The agent `opencode`: OpenCode, started anew for each of the user's messages, with its events as JSON lines. What was
//! tried and why it is as it is: `docs/design/opencode.md`.

#[cfg(test)]
pub(super) mod captures;
mod event;
mod launch;
mod log;
mod patch;
mod permission;
mod provider;
mod reference;
mod session;
mod tool;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::{Diagnostic, nearest};
use sandbox::{BoxFuture, Breakage, Host, supervise};

use self::launch::{Launch, Occasion};
use self::permission::Places;
use self::provider::Provider;
pub use self::reference::reference;
use self::session::Conversation;
use super::{Agent, Endpoint, Part, Readiness, Scene};
use crate::session::Session;

/// Names another program than the `opencode` on the `PATH`.
const PROGRAM_VARIABLE: &str = "TRIALRUN_OPENCODE";
/// What to do where nobody is signed in.
const SIGN_IN_HINT: &str = "set the provider's key, such as ANTHROPIC_API_KEY, or run `opencode auth login`";
/// How long OpenCode may take to tell its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(60);
/// How much reasoning can be asked for; which of it a model knows, only OpenCode does.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// OpenCode.
pub struct OpenCode;

impl Agent for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn summary(&self) -> &'static str {
        "OpenCode, the `opencode` command, with its own tools"
    }

    fn tools(&self) -> Option<&'static [&'static str]> {
        // Servers' tools have any name.
        None
    }

    fn efforts(&self) -> Option<&'static [&'static str]> {
        Some(EFFORTS)
    }

    fn skills_folder(&self) -> Option<&'static str> {
        Some(launch::SKILLS)
    }

    fn sub_agents_folder(&self) -> Option<&'static str> {
        Some(launch::SUB_AGENTS)
    }

    fn wire(&self) -> Option<&'static str> {
        Some("openai")
    }

    fn refuses_model(&self, name: &str, base_url: Option<&str>, _providers: &llm::Providers) -> Option<String> {
        (base_url.is_none() && !name.contains('/')).then(|| format!("OpenCode does not know whose model `{name}` is"))
    }

    fn check(&self, part: &Part<'_>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let case = part.case;
        let warn = |message: String| Diagnostic::warning(message).at(case.source.clone());
        if part.base_url.is_some() && part.arm.model.is_none() {
            problems.push(
                Diagnostic::error("a base URL needs a model, so that OpenCode knows what to ask there")
                    .help("name one with `--model`"),
            );
        }
        let closed = case.runner.allowed_tools_override.as_deref().unwrap_or_default();
        for tool in permission::names(closed).iter().filter(|tool| is_unknown(tool)) {
            problems.push(
                warn(format!("OpenCode has no tool `{tool}` (in `allowed_tools_override`)"))
                    .suggest(nearest(tool, tool::CANONICAL.iter().copied())),
            );
        }
        for tool in permission::cannot_be_limited(closed) {
            problems.push(warn(format!(
                "OpenCode cannot limit `{tool}` to scopes, so it is left out (in `allowed_tools_override`)"
            )));
        }
        if !case.user_responses.is_empty() {
            problems.push(warn(
                "OpenCode asks its user nothing when it runs by itself: `user_responses` is for nothing".into(),
            ));
        }
        problems
    }

    fn ready<'a>(&'a self, host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(async move {
            let told = match program(host) {
                Ok(program) => version(host, &program).await,
                Err(hint) => Err(hint),
            };
            let version = match told {
                Ok(version) => version,
                Err(hint) => return Readiness { ready: false, version: None, auth: None, hints: vec![hint] },
            };
            let mut hints = Vec::new();
            if host.find_program("rg").is_none() {
                hints.push(
                    "no `rg` (ripgrep) on the PATH: its tools `glob`, `grep` and `skill` may fail without".to_owned(),
                );
            }
            let auth = Provider::of(host, &Endpoint::Vendor { base_url: None }, None, 0).auth;
            if auth.is_none() {
                hints.push(format!("not signed in, so only scripted models will do: {SIGN_IN_HINT}"));
            }
            Readiness { ready: true, version: Some(version), auth: auth.map(str::to_owned), hints }
        })
    }

    fn open<'a>(&'a self, scene: Scene) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let Some(sandbox) = scene.sandbox else {
                return Err(Breakage::harness("OpenCode was given no sandbox to work in"));
            };
            let program = program(&scene.host).map_err(|because| Breakage::environment(because).for_good())?;
            let occasion = Occasion {
                host: &scene.host,
                setup: &scene.setup,
                endpoint: &scene.endpoint,
                places: Places { work: sandbox.work(), home: sandbox.home(), tmp: sandbox.tmp() },
                installed: scene.case.subject.installed().map(|skill| (scene.case.definition, &**skill)),
            };
            let version = known_version(&scene.host, &program).await;
            let launch = Launch::prepare(program, &occasion)?;
            Ok(Box::new(Conversation::new(launch, sandbox, version)) as Box<dyn Session>)
        })
    }
}

/// Whether a canonical name is that of a tool which OpenCode has not; names that are not canonical may be servers' tools.
fn is_unknown(tool: &str) -> bool {
    !tool::CANONICAL.contains(&tool) && model::tool::find(tool).is_some()
}

/// The program, or what to do where there is none.
fn program(host: &Host) -> Result<PathBuf, String> {
    if let Some(named) = host.var(PROGRAM_VARIABLE) {
        return host
            .find_program(named)
            .ok_or_else(|| format!("{PROGRAM_VARIABLE} names `{named}`, which is no program"));
    }
    host.find_program("opencode").ok_or_else(|| {
        "no `opencode` on the PATH: install it with `npm install -g opencode-ai`, or name it with TRIALRUN_OPENCODE"
            .to_owned()
    })
}

/// The version of `program`, asked for once: OpenCode takes its time to tell it, and its events do not.
async fn known_version(host: &Host, program: &Path) -> Option<String> {
    static KNOWN: Mutex<Option<HashMap<PathBuf, String>>> = Mutex::new(None);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(version) = known().as_ref().and_then(|known| known.get(program)) {
        return Some(version.clone());
    }
    let version = version(host, program).await.ok()?;
    known().get_or_insert_default().insert(program.to_owned(), version.clone());
    Some(version)
}

/// What the program says of its version.
async fn version(host: &Host, program: &Path) -> Result<String, String> {
    let mut command = host.supervisor.command(program, ["--version"]);
    for name in ["PATH", "LANG"] {
        command.envs(host.var(name).map(|value| (name, value)));
    }
    let scratch = tempfile::tempdir_in(&host.temp).map_err(|error| format!("no place for temporary files: {error}"))?;
    command.env("HOME", scratch.path()).env("TERM", "dumb").env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    command.current_dir(scratch.path());
    let shown = program.display();
    let output = supervise::run(command, VERSION_TIMEOUT, 64 * 1024)
        .await
        .map_err(|error| format!("{shown} cannot be started: {error}"))?;
    if output.timed_out {
        return Err(format!("{shown} did not tell its version within {} s", VERSION_TIMEOUT.as_secs()));
    }
    let said = output.stdout.text();
    match said.split_whitespace().next() {
        Some(version) if output.status.success() && version.starts_with(|c: char| c.is_ascii_digit()) => {
            Ok(version.to_owned())
        }
        _ => {
            let said = if said.trim().is_empty() { output.stderr.text() } else { said };
            Err(format!("{shown} does not tell its version: {}", said.lines().next().unwrap_or("it says nothing")))
        }
    }
}
