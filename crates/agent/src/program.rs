//! Programs of agents that are command-line tools: finding them and determining their version.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::decode::{Fields, Problems};
use model::{Diagnostic, Node};
use sandbox::{Breakage, Host, Sandbox, supervise};
use tokio::process::Command;

use crate::process::Process;
use crate::{Configured, Readiness, SessionContext};

/// Time limit for `--version`.
const VERSION_TIMEOUT: Duration = Duration::from_secs(60);

/// Configuration key for the path of the program.
const KEY: &str = "program";

/// Program of an agent.
#[derive(Debug)]
pub struct Program {
    /// Name on the `PATH`.
    pub command: &'static str,
    /// Environment variable that can name another program.
    pub variable: &'static str,
    /// Command that installs it.
    pub install: &'static str,
    /// Command that updates it.
    pub update: &'static str,
    /// Oldest tested version; `None` for no check.
    pub min_version: Option<[u64; 3]>,
    /// Variables set when its version is queried.
    pub environment: &'static [(&'static str, &'static str)],
    /// Instructions for signing in.
    pub sign_in: &'static str,
}

/// How an agent's program is started, without the arguments for a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Invocation {
    /// Path of the program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Variables added to the sandbox's environment.
    pub(crate) env: Vec<(String, String)>,
    /// Name of the sign-in.
    pub(crate) auth: &'static str,
}

impl Invocation {
    /// Returns the command that runs the program in `sandbox` with `more` arguments.
    pub(crate) fn command(&self, sandbox: &dyn Sandbox, more: &[&str]) -> Command {
        let args: Vec<&OsStr> =
            self.args.iter().map(String::as_str).chain(more.iter().copied()).map(OsStr::new).collect();
        sandbox.command(self.program.as_os_str(), &args, &self.env)
    }

    /// Starts that command.
    pub(crate) fn start(&self, sandbox: &dyn Sandbox, more: &[&str]) -> Result<Process, String> {
        Process::start(self.command(sandbox, more))
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))
    }
}

/// Returns the problems with the configuration of an agent that runs a program. The agent reads the keys `others` itself.
pub(crate) fn check_config(config: &Node, directory: &Path, others: &[&'static str]) -> Vec<Diagnostic> {
    let mut problems = Problems::new();
    configured(config, directory, others, &mut problems);
    problems
}

/// Returns the program that a project configures. A path is resolved against `directory`; a name without a slash is
/// searched on the `PATH`.
fn configured(config: &Node, directory: &Path, others: &[&'static str], problems: &mut Problems) -> Option<PathBuf> {
    let mut fields = Fields::of(config, "an agent that runs a program", problems)?;
    fields.get("type");
    let named = fields.text(KEY, problems);
    for key in others {
        fields.get(key);
    }
    fields.finish(problems);
    named.map(|named| if named.contains('/') { directory.join(named) } else { named.into() })
}

/// Returns the program that an agent's configuration names.
fn named(config: Option<&Configured>) -> Option<PathBuf> {
    config.and_then(|config| configured(&config.node, &config.directory, &[], &mut Problems::new()))
}

/// Copies variables that have fixed values.
pub(crate) fn variables(fixed: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
}

/// Returns the variables that keep requests to the gateway from going through a proxy.
pub(crate) fn loopback_without_proxy(host: &Host) -> [(String, String); 2] {
    ["NO_PROXY", "no_proxy"].map(|name| {
        let others = host.var(name).map(|others| format!(",{others}")).unwrap_or_default();
        (name.to_owned(), format!("127.0.0.1{others}"))
    })
}

/// Returns the model name for a script: the name of its file.
pub(crate) fn script_name(written: &str) -> String {
    let file = written.rsplit(['/', ':']).next().unwrap_or(written);
    file.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

/// Creates the link `link` to `target`, and its parent folder. An existing link is kept.
pub(crate) fn link(target: &Path, link: &Path) -> io::Result<()> {
    link.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    match symlink(target, link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

impl Program {
    /// Returns the path of the program for a session: the one that the project configures, otherwise the one that the
    /// variable names, otherwise the one on the `PATH`.
    ///
    /// # Errors
    /// Returns where it was searched and how to install it.
    pub(crate) fn find(&self, context: &SessionContext) -> Result<PathBuf, Breakage> {
        let has_own_system = context.sandbox.as_ref().is_some_and(|sandbox| sandbox.has_own_system());
        let named = named(context.config.as_deref());
        let found = match named {
            // The sandbox has programs of its own, so searching this machine would prove nothing.
            named if has_own_system => Ok(named.unwrap_or_else(|| self.command.into())),
            named => self.on_machine(named, &context.host),
        };
        found.map_err(|reason| Breakage::environment(reason).for_good())
    }

    /// Returns the reason why the program is not on this machine, for an agent with the configuration `config`; `None` if
    /// it is there.
    pub fn absence(&self, config: Option<&Configured>, host: &Host) -> Option<String> {
        self.on_machine(named(config), host).err()
    }

    /// Returns the path of the program that the project has `named`, or otherwise of the usual one.
    fn on_machine(&self, named: Option<PathBuf>, host: &Host) -> Result<PathBuf, String> {
        let Some(named) = named else { return self.locate(host) };
        let missing = || format!("`{KEY}` is `{}`, which is not a program", named.display());
        host.find_program(&named.to_string_lossy()).ok_or_else(missing)
    }

    /// Returns `true` if the program is on this machine: on the `PATH`, or where the variable says.
    pub fn is_installed(&self, host: &Host) -> bool {
        self.locate(host).is_ok()
    }

    fn locate(&self, host: &Host) -> Result<PathBuf, String> {
        let Self { command, variable, install, .. } = self;
        if let Some(named) = host.var(variable) {
            return host
                .find_program(named)
                .ok_or_else(|| format!("{variable} names `{named}`, which is not a program"));
        }
        host.find_program(command).ok_or_else(|| {
            format!("`{command}` is not on the PATH: install it with `{install}`, or name it with {variable}")
        })
    }

    /// Returns the version that the program at `path` reports, such as `0.169.0`.
    ///
    /// # Errors
    /// Returns an error if it cannot be started, does not respond in time, or reports no version.
    pub async fn version(&self, host: &Host, path: &Path) -> Result<String, String> {
        let mut command = host.supervisor.command(path, ["--version"]);
        for name in ["PATH", "LANG"] {
            command.envs(host.var(name).map(|value| (name, value)));
        }
        let home = tempfile::tempdir_in(&host.temp)
            .map_err(|error| format!("cannot create a temporary directory: {error}"))?;
        command.env("HOME", home.path()).env("TERM", "dumb").envs(self.environment.iter().copied());
        command.current_dir(home.path());
        let shown = path.display();
        let output = supervise::run(command, VERSION_TIMEOUT, 64 * 1024)
            .await
            .map_err(|error| format!("{shown} cannot be started: {error}"))?;
        if output.timed_out {
            return Err(format!("{shown} did not report its version within {} s", VERSION_TIMEOUT.as_secs()));
        }
        let printed = output.stdout.text();
        match printed.split_whitespace().find(|word| numbers(word).is_some()) {
            Some(version) if output.status.success() => Ok(version.to_owned()),
            _ => {
                let printed = if printed.trim().is_empty() { output.stderr.text() } else { printed };
                Err(format!("{shown} does not report its version: {}", printed.lines().next().unwrap_or("no output")))
            }
        }
    }

    /// Returns the version of the program at `path`, which is queried once per run; `None` if it reports none.
    pub async fn known_version(&self, context: &SessionContext, path: &Path) -> Option<String> {
        let known = || context.state.versions.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = known().get(path) {
            return Some(version.clone());
        }
        let version = self.version(&context.host, path).await.ok()?;
        known().insert(path.to_owned(), version.clone());
        Some(version)
    }

    /// Returns the readiness of an agent that runs this program. `auth` is its sign-in, if there is one.
    pub async fn readiness(&self, host: &Host, auth: Option<&str>) -> Readiness {
        let found = match self.locate(host) {
            Ok(path) => self.version(host, &path).await,
            Err(hint) => Err(hint),
        };
        let version = match found {
            Ok(version) => version,
            Err(hint) => return Readiness { ready: false, version: None, auth: None, hints: vec![hint] },
        };
        let mut hints = Vec::new();
        if self.min_version.is_some_and(|min_version| numbers(&version).is_some_and(|version| version < min_version)) {
            hints.push(format!("{version} is older than any tested version: `{}`", self.update));
        }
        if auth.is_none() {
            hints.push(format!("not signed in, so only scripted models work: {}", self.sign_in));
        }
        Readiness { ready: true, version: Some(version), auth: auth.map(str::to_owned), hints }
    }
}

/// Versions of programs by path, as far as they are known.
#[derive(Default)]
pub(crate) struct ProgramVersions(Mutex<HashMap<PathBuf, String>>);

/// Parses the three numbers of a version.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let mut parts = version.split('.').map(|part| part.split(['-', '+']).next().unwrap_or(part).parse());
    Some([parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;
    use crate::claude_code::PROGRAM;
    use crate::tests::harness::{AgentHarness, configured};

    #[test]
    fn a_configured_program_takes_precedence_over_the_variable_and_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let [on_path, named, own] = ["claude", "named", "own"].map(program);
        let mut harness = AgentHarness::scripted("hello", &json!([]));
        let found =
            |harness: &AgentHarness| PROGRAM.find(&harness.session_context()).map_err(|error| error.to_string());
        harness.host.env.insert("PATH".into(), folder.path().to_string_lossy().into_owned());
        assert_eq!(found(&harness), Ok(on_path));
        harness.host.env.insert("TRIALRUN_CLAUDE".into(), named.to_string_lossy().into_owned());
        assert_eq!(found(&harness), Ok(named));
        for (written, file) in [("./own", &own), ("own", &own)] {
            harness.config = Some(configured(&json!({"type": "claude-code", "program": written}), folder.path()));
            assert_eq!(found(&harness).unwrap().canonicalize().unwrap(), file.canonicalize().unwrap());
        }
        harness.config = Some(configured(&json!({"type": "claude-code", "program": "./none"}), folder.path()));
        assert!(found(&harness).unwrap_err().contains("`program` is `"), "{:?}", found(&harness));
    }

    #[test]
    fn other_keys_of_a_configured_program_are_errors() {
        let problems = |config: serde_json::Value| {
            let config = configured(&config, Path::new("/"));
            check_config(&config.node, &config.directory, &[]).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(problems(json!({"type": "codex"})).is_empty());
        let wrong = problems(json!({"type": "codex", "program": ["codex"], "url": "x"}));
        assert_eq!(wrong.len(), 2, "{wrong:?}");
    }

    #[test]
    fn a_version_is_three_numbers() {
        assert_eq!(numbers("2.1.330"), Some([2, 1, 330]));
        assert_eq!(numbers("0.169.0-alpha.1"), Some([0, 169, 0]));
        assert_eq!(numbers("codex-cli"), None);
        assert_eq!(numbers("1.2"), None);
    }
}
