//! The agent `claude-code`: Claude Code itself, spoken to as its own SDK does, by JSON lines with a control protocol in
//! them. What was tried and why it is as it is: `docs/design/claude-code.md`.

#[cfg(test)]
pub(super) mod captures;
mod closed_tools;
mod control;
mod event;
mod exposure;
mod launch;
mod meter;
mod process;
mod reference;
mod session;
mod sign_in;
mod skill_name;
mod slash;
mod transcripts;

use std::path::PathBuf;
use std::time::Duration;

use model::{Diagnostic, nearest};
use sandbox::{BoxFuture, Breakage, Host, supervise};

use self::closed_tools::ClosedTools;
use self::launch::{Launch, Occasion};
pub use self::reference::reference;
use self::session::Conversation;
use self::sign_in::SignIn;
use super::vendor::Vendor;
use super::{Agent, Part, Readiness, Scene};
use crate::session::Session;

/// Names another program than the `claude` on the `PATH`.
const PROGRAM_VARIABLE: &str = "TRIALRUN_CLAUDE";
/// What to do where nobody is signed in.
const SIGN_IN_HINT: &str =
    "set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN, or run `claude` and sign in with `/login`";
/// How long the CLI may take to tell its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);
/// The reasoning efforts that `--effort` takes.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// The oldest version that is known to work.
const OLDEST: [u64; 3] = [2, 1, 197];

/// Every tool of the versions that are known, and of older ones that suites still speak of.
const TOOLS: &[&str] = &[
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

/// Claude Code.
pub struct ClaudeCode;

/// Whether `address` is OpenRouter's: its host, not a word somewhere in it.
fn is_openrouter(address: &str) -> bool {
    const HOST: &str = "openrouter.ai";
    let host = reqwest::Url::parse(address.trim()).ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase));
    host.is_some_and(|host| host == HOST || host.strip_suffix(HOST).is_some_and(|front| front.ends_with('.')))
}

impl Agent for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn summary(&self) -> &'static str {
        "Claude Code, the `claude` command, with its own tools"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["claude"]
    }

    fn tools(&self) -> Option<&'static [&'static str]> {
        Some(TOOLS)
    }

    fn default_model(&self) -> Option<&'static str> {
        Some("claude-sonnet-4-6")
    }

    fn refuses_model(&self, name: &str, base_url: Option<&str>, providers: &llm::Providers) -> Option<String> {
        // Another address may have any model under any name.
        let vendor = Vendor::of(name).filter(|_| base_url.is_none() && !providers.holds("ANTHROPIC_BASE_URL"))?;
        (vendor != Vendor::Anthropic).then(|| format!("`{name}` is a model of {}", vendor.name()))
    }

    fn efforts(&self) -> Option<&'static [&'static str]> {
        Some(&EFFORTS)
    }

    fn skills_folder(&self) -> Option<&'static str> {
        Some(exposure::SKILLS)
    }

    fn sub_agents_folder(&self) -> Option<&'static str> {
        Some(exposure::SUB_AGENTS)
    }

    fn wire(&self) -> Option<&'static str> {
        Some("anthropic")
    }

    fn is_billed_by_openrouter(&self, host: &Host, base_url: Option<&str>) -> bool {
        base_url.or_else(|| host.var("ANTHROPIC_BASE_URL")).is_some_and(is_openrouter)
    }

    fn check(&self, part: &Part<'_>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let listed = part.case.runner.allowed_tools_override.as_deref().map(ClosedTools::read).unwrap_or_default();
        for tool in listed.built_in().filter(|tool| !TOOLS.contains(tool)) {
            problems.push(
                Diagnostic::warning(format!("Claude Code has no tool `{tool}` (in `allowed_tools_override`)"))
                    .at(part.case.source.clone())
                    .suggest(nearest(tool, TOOLS.iter().copied())),
            );
        }
        problems
    }

    fn ready<'a>(&'a self, host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(async move {
            let program = match program(host) {
                Ok(program) => program,
                Err(hint) => return Readiness { ready: false, version: None, auth: None, hints: vec![hint] },
            };
            let version = match version(host, &program).await {
                Ok(version) => version,
                Err(hint) => return Readiness { ready: false, version: None, auth: None, hints: vec![hint] },
            };
            let mut hints = Vec::new();
            if numbers(&version).is_some_and(|version| version < OLDEST) {
                hints.push(format!("{version} is older than any version trialrun is tested with: `claude update`"));
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
                return Err(Breakage::harness("Claude Code was given no sandbox to work in"));
            };
            let program = program(&scene.host).map_err(|because| Breakage::environment(because).for_good())?;
            let occasion = Occasion {
                host: &scene.host,
                setup: &scene.setup,
                endpoint: &scene.endpoint,
                home: sandbox.home(),
                work: sandbox.work(),
                installed: self.installed(&scene.case),
                answers: !scene.case.user_responses.is_empty(),
                messages: scene.case.messages.len(),
                counts: scene.limits.are_kept_on_the_way(),
            };
            let launch = Launch::prepare(program, &occasion)?;
            let conversation = Conversation::open(launch, sandbox, &scene.setup)?;
            Ok(Box::new(conversation) as Box<dyn Session>)
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
    host.find_program("claude").ok_or_else(|| {
        "no `claude` on the PATH: install it with `npm install -g @anthropic-ai/claude-code`, or name it with \
         TRIALRUN_CLAUDE"
            .to_owned()
    })
}

/// What the CLI says of its version.
async fn version(host: &Host, program: &std::path::Path) -> Result<String, String> {
    let mut command = host.supervisor.command(program, ["--version"]);
    for name in ["PATH", "LANG"] {
        command.envs(host.var(name).map(|value| (name, value)));
    }
    command.env("HOME", &host.temp).env("TERM", "dumb").env("DISABLE_AUTOUPDATER", "1").current_dir(&host.temp);
    let shown = program.display();
    let output = supervise::run(command, VERSION_TIMEOUT, 64 * 1024)
        .await
        .map_err(|error| format!("{shown} cannot be started: {error}"))?;
    if output.timed_out {
        return Err(format!("{shown} did not tell its version within {} s", VERSION_TIMEOUT.as_secs()));
    }
    let said = output.stdout.text();
    match said.split_whitespace().next() {
        Some(version) if output.status.success() && numbers(version).is_some() => Ok(version.to_owned()),
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

#[cfg(test)]
mod tests {
    use super::is_openrouter;

    #[test]
    fn openrouter_is_a_host_and_not_a_word() {
        for address in ["https://openrouter.ai/api", "HTTPS://OpenRouter.AI", "https://eu.openrouter.ai:443/v1"] {
            assert!(is_openrouter(address), "{address}");
        }
        for address in [
            "https://openrouter.ai.example.com",
            "https://notopenrouter.ai",
            "https://example.com/openrouter.ai",
            "https://openrouter.ai@example.com/",
            "openrouter.ai",
            "",
        ] {
            assert!(!is_openrouter(address), "{address}");
        }
    }
}
