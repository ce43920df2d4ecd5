//! Start of the CLI: program, arguments, environment and home directory.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{PermissionMode, SettingSource, SideEffectLevel};
use sandbox::{Breakage, Host};
use serde_json::{Value, json};

use super::sign_in::{self, AUTH_FILE, SignIn};
use crate::{Endpoint, Setup};

/// Name of the model provider in Codex's settings, if it is not Codex's default.
const PROVIDER: &str = "trialrun";
/// Variable that holds the trial's token.
const TOKEN: &str = "TRIALRUN_CODEX_TOKEN";
/// Model name for scripted models. Codex chooses its tools by the model's name, and offers fewer tools to an unknown
/// model.
const SCRIPTED_MODEL: &str = "gpt-5.5";

/// Settings that make runs alike on all machines, and that send no data to anyone except the model.
const QUIET: [(&str, bool); 3] = [
    ("check_for_update_on_startup", false),
    ("analytics.enabled", false),
    // If the network is down it would retry until the trial ends.
    ("features.unbounded_connection_retries", false),
];

/// Settings that turn off plug-ins and bundled skills in hermetic runs. Plug-ins would be downloaded from the network.
const HERMETIC: [(&str, bool); 2] = [("features.plugins", false), ("skills.bundled.enabled", false)];

/// Data for starting the CLI for a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Launch {
    /// Path of the CLI.
    pub(super) program: PathBuf,
    /// Arguments, without those that resume a thread and name the source of the message.
    pub(super) args: Vec<String>,
    /// Variables added to the sandbox's environment.
    pub(super) env: Vec<(String, String)>,
    /// Home of the CLI, where it stores its threads.
    pub(super) home: PathBuf,
    /// Name of the sign-in.
    pub(super) auth: &'static str,
}

/// Inputs of a launch.
pub(super) struct LaunchContext<'a> {
    pub(super) host: &'a Host,
    pub(super) setup: &'a Setup,
    pub(super) endpoint: &'a Endpoint,
    pub(super) home: &'a Path,
    pub(super) work: &'a Path,
    /// Address from which the repository in `work` was cloned.
    pub(super) remote: Option<&'a str>,
    /// Side effects that the case declares.
    pub(super) level: Option<SideEffectLevel>,
}

impl Launch {
    /// Determines all data of the launch, and creates the CLI's home.
    ///
    /// # Errors
    /// Returns an error if there is no sign-in, or if the sandbox cannot be written to.
    pub(super) fn prepare(program: PathBuf, on: &LaunchContext<'_>) -> Result<Self, Breakage> {
        let sign_in = SignIn::of(on.host, on.endpoint);
        // A user's own server may need no key.
        let own_server = matches!(on.endpoint, Endpoint::Vendor { base_url: Some(_) });
        if sign_in == SignIn::None && !own_server {
            return Err(Breakage::environment(format!("Codex is not signed in: {}", super::PROGRAM.sign_in)));
        }
        let visible = sign_in::visible_home(on.host, &on.setup.setting_sources);
        let home = visible.clone().unwrap_or_else(|| on.home.join(".codex"));
        if visible.is_none() {
            make_home(&home, &sign_in)
                .map_err(|error| Breakage::environment(format!("cannot make a home for Codex: {error}")))?;
        }
        let env = environment(on, &sign_in, &home);
        Ok(Self { program, args: arguments(on, &sign_in), env, home, auth: sign_in.name() })
    }
}

/// Creates an empty home that contains only the sign-in.
fn make_home(home: &Path, sign_in: &SignIn) -> io::Result<()> {
    fs::create_dir_all(home)?;
    let SignIn::Subscription(file) = sign_in else { return Ok(()) };
    match symlink(file, home.join(AUTH_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn arguments(on: &LaunchContext<'_>, sign_in: &SignIn) -> Vec<String> {
    let setup = on.setup;
    let mut args: Vec<String> = ["exec", "--json", "--skip-git-repo-check"].map(str::to_owned).into();
    for (key, value) in settings(on, sign_in) {
        args.extend(["-c".to_owned(), format!("{key}={}", toml(&value))]);
    }
    args.extend(permissions(setup.permission_mode).iter().map(|arg| (*arg).to_owned()));
    if let Some(model) = model_name(setup, on.endpoint) {
        args.extend(["-m".to_owned(), model]);
    }
    args
}

/// Returns the arguments for the permission mode. No user can be asked, so calls that need approval are denied.
fn permissions(mode: PermissionMode) -> &'static [&'static str] {
    match mode {
        PermissionMode::BypassPermissions => &["--dangerously-bypass-approvals-and-sandbox"],
        PermissionMode::AcceptEdits | PermissionMode::Default => &["--sandbox", "workspace-write"],
        PermissionMode::Plan => &["--sandbox", "read-only"],
    }
}

fn model_name(setup: &Setup, endpoint: &Endpoint) -> Option<String> {
    match endpoint {
        Endpoint::Vendor { .. } => setup.model.clone(),
        Endpoint::Gateway { .. } | Endpoint::Script(_) | Endpoint::Provider(_) => Some(SCRIPTED_MODEL.to_owned()),
    }
}

/// Returns the settings that take precedence over those in files.
fn settings(on: &LaunchContext<'_>, sign_in: &SignIn) -> Vec<(&'static str, Value)> {
    let setup = on.setup;
    let reads = |source: SettingSource| setup.setting_sources.contains(&source);
    let mut settings: Vec<(&'static str, Value)> = QUIET.iter().map(|(key, value)| (*key, json!(value))).collect();
    if !reads(SettingSource::User) {
        settings.extend(HERMETIC.iter().map(|(key, value)| (*key, json!(value))));
    }
    let work = on.work.to_string_lossy();
    if reads(SettingSource::Project) {
        // `--trust` would write it into the home, which may be the user's.
        settings.push(("projects", json!({work.as_ref(): {"trust_level": "trusted"}})));
    } else {
        settings.push(("project_doc_max_bytes", json!(0)));
    }
    if let Some(prompt) = setup.system_prompt.as_deref().filter(|prompt| !prompt.is_empty()) {
        settings.push(("developer_instructions", json!(prompt)));
    }
    if let Some(effort) = &setup.reasoning_effort {
        settings.push(("model_reasoning_effort", json!(effort)));
    }
    if matches!(setup.permission_mode, PermissionMode::AcceptEdits | PermissionMode::Default) {
        // Otherwise it could write files but not commit them.
        let roots = std::iter::once(format!("{work}/.git")).chain(on.remote.and_then(local_remote));
        settings.push(("sandbox_workspace_write.writable_roots", json!(roots.collect::<Vec<_>>())));
        if reaches_out(on) {
            settings.push(("sandbox_workspace_write.network_access", json!(true)));
        }
    }
    let secret = match (on.endpoint, sign_in) {
        (Endpoint::Gateway { .. }, _) => Some(TOKEN),
        (_, SignIn::Lent { variable, .. }) => Some(*variable),
        _ => None,
    };
    // The agent's credentials are hidden from the commands that it runs.
    settings.extend(secret.map(|secret| ("shell_environment_policy.exclude", json!([secret]))));
    if let Some(provider) = provider(on, sign_in, secret) {
        settings.push(("model_provider", json!(PROVIDER)));
        settings.push(("model_providers.trialrun", provider));
    }
    settings
}

/// Returns the directory of a remote on this machine, which a push writes to.
fn local_remote(remote: &str) -> Option<String> {
    let path = remote.strip_prefix("file://").unwrap_or(remote);
    let folder = fs::canonicalize(path).ok().filter(|folder| folder.is_dir())?;
    Some(folder.to_string_lossy().into_owned())
}

/// Returns `true` if commands may use the network: the case declares that it uses services, or its repository has a
/// remote elsewhere that it may push to.
fn reaches_out(on: &LaunchContext<'_>) -> bool {
    on.level.is_some_and(|level| level >= SideEffectLevel::LiveSafe)
        || on.remote.is_some_and(|remote| local_remote(remote).is_none())
}

/// Returns the settings of the model provider, unless it is Codex's default.
fn provider(on: &LaunchContext<'_>, sign_in: &SignIn, secret: Option<&str>) -> Option<Value> {
    let (base_url, scripted) = match on.endpoint {
        Endpoint::Gateway { base_url, .. } => (format!("{base_url}/v1"), true),
        Endpoint::Vendor { base_url: Some(base_url) } => (base_url.trim_end_matches('/').to_owned(), false),
        Endpoint::Vendor { base_url: None } | Endpoint::Script(_) | Endpoint::Provider(_) => return None,
    };
    let timeouts = ProviderTimeouts::of(on.setup.timeout_ms, scripted);
    let mut provider = json!({
        "name": PROVIDER,
        "base_url": base_url,
        "wire_api": "responses",
        "request_max_retries": timeouts.retries,
        "stream_max_retries": timeouts.retries,
        "stream_idle_timeout_ms": timeouts.stream.as_millis() as u64,
    });
    match (secret, sign_in) {
        (Some(secret), _) => provider["env_key"] = json!(secret),
        (None, SignIn::Subscription(_)) => provider["requires_openai_auth"] = json!(true),
        (None, _) => {}
    }
    Some(provider)
}

fn environment(on: &LaunchContext<'_>, sign_in: &SignIn, home: &Path) -> Vec<(String, String)> {
    let mut env = vec![("CODEX_HOME".to_owned(), home.to_string_lossy().into_owned())];
    match on.endpoint {
        Endpoint::Gateway { token, .. } => {
            env.push((TOKEN.to_owned(), token.clone()));
            // Requests to the gateway must not go through a proxy.
            env.extend(["NO_PROXY", "no_proxy"].map(|name| {
                let others = on.host.var(name).map(|others| format!(",{others}")).unwrap_or_default();
                (name.to_owned(), format!("127.0.0.1{others}"))
            }));
        }
        Endpoint::Vendor { .. } => {
            env.extend(sign_in::lent_beside(on.host));
            if let SignIn::Lent { variable, .. } = sign_in {
                env.extend(on.host.var(variable).map(|value| ((*variable).to_owned(), value.to_owned())));
            }
        }
        Endpoint::Script(_) | Endpoint::Provider(_) => {}
    }
    env
}

/// Formats a value as TOML, on one line.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{}={}", json!(key), toml(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(",")),
        // DEL is the only character that JSON allows unescaped and TOML does not.
        Value::String(text) => json!(text).to_string().replace('\u{7f}', "\\u007F"),
        other => other.to_string(),
    }
}

/// Timeouts of the CLI for its model, so that it reports an unresponsive provider before the trial's timeout. It has no
/// timeout for the beginning of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProviderTimeouts {
    /// Number of retries, both for a request and for its answer, so that they multiply.
    retries: u32,
    /// Timeout for the next part of an answer.
    stream: Duration,
}

impl ProviderTimeouts {
    const SHORTEST_STREAM: Duration = Duration::from_secs(1);
    const LONGEST_STREAM: Duration = Duration::from_secs(300);

    fn of(timeout_ms: u64, scripted: bool) -> Self {
        let usable = Duration::from_millis(timeout_ms) * 3 / 4;
        let retries = if scripted { 1 } else { 3 };
        let stream = (usable / (retries + 1)).clamp(Self::SHORTEST_STREAM, Self::LONGEST_STREAM);
        Self { retries, stream }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use sandbox::supervise::Supervisor;

    struct Stage {
        dir: tempfile::TempDir,
        host: Host,
        setup: Setup,
        endpoint: Endpoint,
        remote: Option<String>,
        level: Option<SideEffectLevel>,
    }

    impl Stage {
        fn new(env: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let env: BTreeMap<_, _> = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            let supervisor = Supervisor::new("/bin/true").unwrap();
            let home = Some(dir.path().join("real"));
            Self {
                host: Host { env, home, temp: dir.path().to_owned(), supervisor },
                dir,
                setup: Setup {
                    model: Some("gpt-x".into()),
                    system_prompt: None,
                    permission_mode: PermissionMode::BypassPermissions,
                    closed_tools: None,
                    approved_tools: Vec::new(),
                    setting_sources: Vec::new(),
                    reasoning_effort: None,
                    max_turns: Some(7),
                    timeout_ms: 600_000,
                },
                endpoint: Endpoint::Vendor { base_url: None },
                remote: None,
                level: None,
            }
        }

        fn scripted() -> Self {
            let endpoint = Endpoint::Gateway { base_url: "http://127.0.0.1:1".into(), token: "trialrun-test".into() };
            let host = [("OPENAI_API_KEY", "sk-test"), ("OPENAI_BASE_URL", "http://x"), ("CODEX_HOME", "/elsewhere")];
            Self { endpoint, ..Self::new(&host) }
        }

        fn prepare(&self) -> Result<Launch, Breakage> {
            let (home, work) = (self.dir.path().join("home"), Path::new("/w x"));
            let (host, setup, endpoint) = (&self.host, &self.setup, &self.endpoint);
            let remote = self.remote.as_deref();
            let context = LaunchContext { host, setup, endpoint, home: &home, work, remote, level: self.level };
            Launch::prepare("/bin/codex".into(), &context)
        }

        fn launch(&self) -> Launch {
            self.prepare().unwrap()
        }

        fn sign_in(&self) -> PathBuf {
            let file = self.dir.path().join("real/.codex/auth.json");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "{}").unwrap();
            file
        }
    }

    fn setting<'a>(launch: &'a Launch, key: &str) -> Option<&'a str> {
        launch.args.iter().find_map(|arg| arg.strip_prefix(key)?.strip_prefix('='))
    }

    fn variable<'a>(launch: &'a Launch, name: &str) -> Option<&'a str> {
        launch.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_scripted_model_is_reached_by_the_trials_own_token_and_nothing_else_is_lent() {
        let stage = Stage::scripted();
        let launch = stage.launch();
        assert_eq!(launch.auth, "scripted");
        let home = stage.dir.path().join("home/.codex");
        let names: Vec<_> = launch.env.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["CODEX_HOME", "TRIALRUN_CODEX_TOKEN", "NO_PROXY", "no_proxy"]);
        assert_eq!(variable(&launch, "CODEX_HOME"), home.to_str());
        assert_eq!(variable(&launch, "TRIALRUN_CODEX_TOKEN"), Some("trialrun-test"));
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
        assert_eq!(setting(&launch, "model_provider"), Some(r#""trialrun""#));
        let provider = setting(&launch, "model_providers.trialrun").unwrap();
        assert!(provider.contains(r#""base_url"="http://127.0.0.1:1/v1""#), "{provider}");
        assert!(provider.contains(r#""env_key"="TRIALRUN_CODEX_TOKEN""#), "{provider}");
        assert_eq!(setting(&launch, "shell_environment_policy.exclude"), Some(r#"["TRIALRUN_CODEX_TOKEN"]"#));
        assert_eq!(setting(&launch, "features.plugins"), Some("false"));
        assert_eq!(setting(&launch, "project_doc_max_bytes"), Some("0"));
        assert_eq!(&launch.args[launch.args.len() - 2..], ["-m", "gpt-5.5"]);
    }

    #[test]
    fn a_key_is_lent_to_the_agent_and_not_to_its_commands() {
        for (name, auth) in
            [("CODEX_API_KEY", "api key"), ("OPENAI_API_KEY", "api key"), ("CODEX_ACCESS_TOKEN", "access token")]
        {
            let host =
                [(name, "sk-test"), ("OPENAI_PROJECT", "p"), ("CODEX_THREAD_ID", "x"), ("ANTHROPIC_API_KEY", "y")];
            let mut stage = Stage::new(&host);
            let launch = stage.launch();
            assert_eq!((launch.auth, variable(&launch, name)), (auth, Some("sk-test")));
            assert_eq!(variable(&launch, "OPENAI_PROJECT"), Some("p"));
            assert_eq!((variable(&launch, "CODEX_THREAD_ID"), variable(&launch, "ANTHROPIC_API_KEY")), (None, None));
            assert_eq!(setting(&launch, "shell_environment_policy.exclude"), Some(format!(r#"["{name}"]"#).as_str()));
            assert_eq!(setting(&launch, "model_provider"), None);
            assert_eq!(&launch.args[launch.args.len() - 2..], ["-m", "gpt-x"]);

            stage.endpoint = Endpoint::Vendor { base_url: Some("http://127.0.0.1:2/v1/".into()) };
            let launch = stage.launch();
            let provider = setting(&launch, "model_providers.trialrun").unwrap();
            assert!(provider.contains(r#""base_url"="http://127.0.0.1:2/v1""#), "{provider}");
            assert!(provider.contains(&format!(r#""env_key"="{name}""#)), "{provider}");
        }
    }

    #[test]
    fn a_subscription_is_a_link_in_a_home_of_its_own() {
        let mut stage = Stage::new(&[]);
        assert!(stage.prepare().is_err());
        let file = stage.sign_in();
        let launch = stage.launch();
        assert_eq!((launch.auth, &stage.launch()), ("subscription", &launch));
        assert_eq!(fs::read_link(launch.home.join("auth.json")).unwrap(), file);
        assert_eq!(launch.home, stage.dir.path().join("home/.codex"));
        stage.endpoint = Endpoint::Vendor { base_url: Some("http://127.0.0.1:2".into()) };
        let provider = stage.launch();
        let provider = setting(&provider, "model_providers.trialrun").unwrap();
        assert!(provider.contains(r#""requires_openai_auth"=true"#), "{provider}");
    }

    #[test]
    fn a_server_of_the_users_own_needs_no_sign_in() {
        let mut stage = Stage::new(&[]);
        stage.endpoint = Endpoint::Vendor { base_url: Some("http://127.0.0.1:2".into()) };
        let launch = stage.launch();
        assert_eq!(launch.auth, "not signed in");
        assert!(!setting(&launch, "model_providers.trialrun").unwrap().contains("env_key"));
    }

    #[test]
    fn the_users_settings_are_seen_where_they_lie() {
        let mut stage = Stage::new(&[]);
        stage.sign_in();
        stage.setup.setting_sources = vec![SettingSource::User, SettingSource::Project];
        let launch = stage.launch();
        assert_eq!(launch.home, stage.dir.path().join("real/.codex"));
        assert_eq!(setting(&launch, "projects"), Some(r#"{"/w x"={"trust_level"="trusted"}}"#));
        assert_eq!((setting(&launch, "features.plugins"), setting(&launch, "project_doc_max_bytes")), (None, None));
        assert_eq!(setting(&launch, "analytics.enabled"), Some("false"));
    }

    #[test]
    fn permissions_are_what_the_mode_says() {
        let mut stage = Stage::scripted();
        let mut with = |mode: PermissionMode| {
            stage.setup.permission_mode = mode;
            let launch = stage.launch();
            let at = launch.args.iter().position(|arg| arg == "--sandbox");
            (
                at.map(|at| launch.args[at + 1].clone()),
                setting(&launch, "sandbox_workspace_write.writable_roots").is_some(),
            )
        };
        assert_eq!(with(PermissionMode::BypassPermissions), (None, false));
        assert_eq!(with(PermissionMode::AcceptEdits), (Some("workspace-write".into()), true));
        assert_eq!(with(PermissionMode::Default), (Some("workspace-write".into()), true));
        assert_eq!(with(PermissionMode::Plan), (Some("read-only".into()), false));
    }

    #[test]
    fn a_push_gets_to_its_remote_and_the_network_is_for_cases_that_reach_out() {
        let remote = tempfile::tempdir().unwrap();
        let here = remote.path().canonicalize().unwrap().to_string_lossy().into_owned();
        let with = |remote: Option<&str>, level: Option<SideEffectLevel>| {
            let mut stage = Stage::scripted();
            stage.setup.permission_mode = PermissionMode::AcceptEdits;
            (stage.remote, stage.level) = (remote.map(str::to_owned), level);
            let launch = stage.launch();
            let roots = setting(&launch, "sandbox_workspace_write.writable_roots").unwrap().to_owned();
            (roots, setting(&launch, "sandbox_workspace_write.network_access").map(str::to_owned))
        };
        let (own, both) = (r#"["/w x/.git"]"#.to_owned(), format!(r#"["/w x/.git","{here}"]"#));
        let open = Some("true".to_owned());
        assert_eq!(with(None, None), (own.clone(), None));
        assert_eq!(with(Some(&here), Some(SideEffectLevel::LocalOnly)), (both.clone(), None));
        assert_eq!(with(Some(&format!("file://{here}")), None), (both, None));
        assert_eq!(
            with(Some("git@example.com:a/b.git"), Some(SideEffectLevel::LocalOnly)),
            (own.clone(), open.clone())
        );
        assert_eq!(with(None, Some(SideEffectLevel::LiveSafe)), (own, open));
    }

    #[test]
    fn values_are_toml_on_one_line() {
        let mut stage = Stage::scripted();
        stage.setup.system_prompt = Some("Say \"hi\"\n\\ \u{7f}é\t".into());
        stage.setup.reasoning_effort = Some("low".into());
        let launch = stage.launch();
        assert_eq!(setting(&launch, "developer_instructions"), Some(r#""Say \"hi\"\n\\ \u007Fé\t""#));
        assert_eq!(setting(&launch, "model_reasoning_effort"), Some(r#""low""#));
        assert_eq!(toml(&json!({"a": [1, true], "b c": {}})), r#"{"a"=[1,true],"b c"={}}"#);
    }

    #[test]
    fn a_stream_that_stops_is_given_up_before_the_trials_time_is_over() {
        for (timeout_ms, scripted) in [(600_000, false), (600_000, true), (60_000, false), (10_000, true)] {
            let timeouts = ProviderTimeouts::of(timeout_ms, scripted);
            let silent = timeouts.stream * (timeouts.retries + 1);
            assert!(silent <= Duration::from_millis(timeout_ms) * 4 / 5, "{timeout_ms}: {timeouts:?}");
        }
    }
}
