//! Starting the CLI: program, arguments, environment and home directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{PermissionMode, SettingSource, SideEffectLevel};
use sandbox::Breakage;
use serde_json::{Value, json};

use super::sign_in::{self, AUTH_FILE};
use crate::program::{Invocation, link, loopback_without_proxy};
use crate::sign_in::SignIn;
use crate::{Endpoint, SessionContext, Setup};

/// Name of the model provider in Codex's settings, if it is not Codex's default.
const PROVIDER: &str = "trialrun";
/// Variable that holds the trial's token.
const TOKEN: &str = "TRIALRUN_CODEX_TOKEN";
/// Model name for scripted models. Codex chooses its tools by the model's name, and offers fewer tools to an unknown
/// model.
const SCRIPTED_MODEL: &str = "gpt-5.5";

/// Minimum timeout for the next part of an answer.
const MIN_STREAM_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum timeout for the next part of an answer.
const MAX_STREAM_TIMEOUT: Duration = Duration::from_secs(300);

/// Settings that make runs reproducible on all machines, and that send data only to the model.
const QUIET: [(&str, bool); 3] = [
    ("check_for_update_on_startup", false),
    ("analytics.enabled", false),
    // If the network is down, it would retry until the trial ends.
    ("features.unbounded_connection_retries", false),
];

/// Settings that turn off plug-ins and bundled skills in hermetic runs. Plug-ins would be downloaded.
const HERMETIC: [(&str, bool); 2] = [("features.plugins", false), ("skills.bundled.enabled", false)];

/// Data for starting the CLI for a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Launch {
    /// The CLI, without the arguments that resume a thread and specify the source of the message.
    pub(super) invocation: Invocation,
    /// Home of the CLI, where it stores its threads.
    pub(super) home: PathBuf,
}

impl Launch {
    /// Determines all data for the launch, and creates the CLI's home.
    pub(super) fn prepare(program: PathBuf, on: &SessionContext) -> Result<Self, Breakage> {
        let sandbox = on.sandbox()?;
        let sign_in = SignIn::for_endpoint(&on.endpoint, || sign_in::detect(&on.host));
        // A user's own server may not need a key.
        let own_server = matches!(
            on.endpoint,
            Endpoint::Vendor { base_url: Some(_) } | Endpoint::Observed { base_url: Some(_), .. }
        );
        if sign_in == SignIn::None && !own_server {
            return Err(Breakage::environment(format!("Codex is not signed in: {}", super::PROGRAM.sign_in)));
        }
        let visible = sign_in::visible_home(&on.host, &on.setup.setting_sources);
        let home = visible.clone().unwrap_or_else(|| sandbox.home().join(".codex"));
        if visible.is_none() {
            make_home(&home, &sign_in)
                .map_err(|error| Breakage::environment(format!("cannot create a home directory for Codex: {error}")))?;
        }
        visible.iter().for_each(|home| sandbox.show(home));
        if let SignIn::Subscription(file) = &sign_in {
            sandbox.show(file);
        }
        let invocation = Invocation {
            program,
            args: arguments(on, &sign_in, sandbox.work()),
            env: environment(on, &sign_in, &home),
            auth: sign_in.name().unwrap_or("not signed in"),
        };
        Ok(Self { invocation, home })
    }
}

/// Creates a home that contains nothing except the sign-in.
fn make_home(home: &Path, sign_in: &SignIn) -> io::Result<()> {
    match sign_in {
        SignIn::Subscription(file) => link(file, &home.join(AUTH_FILE)),
        _ => fs::create_dir_all(home),
    }
}

fn arguments(on: &SessionContext, sign_in: &SignIn, work: &Path) -> Vec<String> {
    let setup = &on.setup;
    let mut args: Vec<String> = ["exec", "--json", "--skip-git-repo-check"].map(str::to_owned).into();
    for (key, value) in settings(on, sign_in, work) {
        args.extend(["-c".to_owned(), format!("{key}={}", toml(&value))]);
    }
    for server in on.servers.iter() {
        args.extend(["-c".to_owned(), format!("mcp_servers.{}={}", server.name, toml(&server.for_codex()))]);
    }
    args.extend(permissions(setup.permission_mode).iter().map(|arg| (*arg).to_owned()));
    if let Some(model) = model_name(setup, &on.endpoint) {
        args.extend(["-m".to_owned(), model]);
    }
    args
}

/// Returns the settings in `args` as a file. Without a user, a call that needs approval is denied; here it is asked for.
pub(super) fn config_file(args: &[String]) -> String {
    let mut lines = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-c" => lines.extend(args.next().cloned()),
            "-m" => lines.extend(args.next().map(|model| format!("model={}", toml(&json!(model))))),
            "--sandbox" => {
                lines.extend(args.next().map(|sandbox| format!("sandbox_mode={}", toml(&json!(sandbox)))));
                lines.push("approval_policy=\"on-request\"".to_owned());
            }
            "--dangerously-bypass-approvals-and-sandbox" => {
                lines.push("sandbox_mode=\"danger-full-access\"".to_owned());
                lines.push("approval_policy=\"never\"".to_owned());
            }
            _ => {}
        }
    }
    lines.join("\n") + "\n"
}

/// Returns the arguments for the permission mode. There is no user to ask, so calls that need approval are denied.
fn permissions(mode: PermissionMode) -> &'static [&'static str] {
    match mode {
        PermissionMode::BypassPermissions => &["--dangerously-bypass-approvals-and-sandbox"],
        PermissionMode::AcceptEdits | PermissionMode::Default => &["--sandbox", "workspace-write"],
        PermissionMode::Plan => &["--sandbox", "read-only"],
    }
}

fn model_name(setup: &Setup, endpoint: &Endpoint) -> Option<String> {
    match endpoint {
        Endpoint::Vendor { .. } | Endpoint::Observed { .. } => setup.model.clone(),
        Endpoint::Gateway { .. } | Endpoint::Script { .. } | Endpoint::Provider(_) => Some(SCRIPTED_MODEL.to_owned()),
    }
}

/// Returns the settings that take precedence over those in files.
fn settings(on: &SessionContext, sign_in: &SignIn, work: &Path) -> Vec<(&'static str, Value)> {
    let setup = &on.setup;
    let reads = |source: SettingSource| setup.setting_sources.contains(&source);
    let mut settings: Vec<(&'static str, Value)> = QUIET.iter().map(|(key, value)| (*key, json!(value))).collect();
    if !reads(SettingSource::User) {
        settings.extend(HERMETIC.iter().map(|(key, value)| (*key, json!(value))));
    }
    let work = work.to_string_lossy();
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
        let remote = match on.sandbox.as_ref().and_then(|sandbox| sandbox.remote()) {
            Some(copy) => Some(copy.to_string_lossy().into_owned()),
            None => on.source_repo.as_deref().and_then(local_remote),
        };
        let roots = std::iter::once(format!("{work}/.git")).chain(remote);
        settings.push(("sandbox_workspace_write.writable_roots", json!(roots.collect::<Vec<_>>())));
        if reaches_out(on) {
            settings.push(("sandbox_workspace_write.network_access", json!(true)));
        }
    }
    let secret = match (&on.endpoint, sign_in) {
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

/// Returns the directory of a remote on this machine, to which a push would write.
fn local_remote(remote: &str) -> Option<String> {
    let path = remote.strip_prefix("file://").unwrap_or(remote);
    let folder = fs::canonicalize(path).ok().filter(|folder| folder.is_dir())?;
    Some(folder.to_string_lossy().into_owned())
}

/// Returns `true` if commands may use the network: the case declares that it uses services, or its repository has a
/// remote elsewhere to which it may push.
fn reaches_out(on: &SessionContext) -> bool {
    on.case.skill_eval.as_ref().is_some_and(|eval| eval.side_effect_level >= SideEffectLevel::LiveSafe)
        || on.source_repo.as_deref().is_some_and(|remote| local_remote(remote).is_none())
}

/// Returns the settings of the model provider, unless it is Codex's default.
fn provider(on: &SessionContext, sign_in: &SignIn, secret: Option<&str>) -> Option<Value> {
    let (base_url, scripted) = match &on.endpoint {
        Endpoint::Gateway { base_url, .. } => (format!("{base_url}/v1"), true),
        Endpoint::Vendor { base_url: Some(base_url) } => (base_url.trim_end_matches('/').to_owned(), false),
        Endpoint::Observed { gateway, .. } => (gateway.clone(), false),
        Endpoint::Vendor { base_url: None } | Endpoint::Script { .. } | Endpoint::Provider(_) => return None,
    };
    let (retries, stream) = provider_timeouts(on.setup.timeout_ms, scripted);
    let mut provider = json!({
        "name": PROVIDER,
        "base_url": base_url,
        "wire_api": "responses",
        "request_max_retries": retries,
        "stream_max_retries": retries,
        "stream_idle_timeout_ms": stream.as_millis() as u64,
    });
    match (secret, sign_in) {
        (Some(secret), _) => provider["env_key"] = json!(secret),
        (None, SignIn::Subscription(_)) => provider["requires_openai_auth"] = json!(true),
        (None, _) => {}
    }
    Some(provider)
}

fn environment(on: &SessionContext, sign_in: &SignIn, home: &Path) -> Vec<(String, String)> {
    let mut env = vec![("CODEX_HOME".to_owned(), home.to_string_lossy().into_owned())];
    match &on.endpoint {
        Endpoint::Gateway { token, .. } => {
            env.push((TOKEN.to_owned(), token.clone()));
            env.extend(loopback_without_proxy(&on.host));
        }
        Endpoint::Vendor { .. } | Endpoint::Observed { .. } => {
            if matches!(on.endpoint, Endpoint::Observed { .. }) {
                env.extend(loopback_without_proxy(&on.host));
            }
            env.extend(sign_in::forwarded_variables(&on.host));
            if let SignIn::Lent { variable, .. } = sign_in {
                env.extend(on.host.var(variable).map(|value| ((*variable).to_owned(), value.to_owned())));
            }
        }
        Endpoint::Script { .. } | Endpoint::Provider(_) => {}
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
        // DEL is the only character that JSON allows unescaped but TOML does not.
        Value::String(text) => json!(text).to_string().replace('\u{7f}', "\\u007F"),
        other => other.to_string(),
    }
}

/// Returns the number of retries, which applies both to a request and to its response, so that the two multiply, and
/// the timeout for the next part of a response. With them, the CLI reports an unresponsive provider before the trial's
/// timeout. It has no timeout for the start of a response.
fn provider_timeouts(timeout_ms: u64, scripted: bool) -> (u32, Duration) {
    let usable = Duration::from_millis(timeout_ms) * 3 / 4;
    let retries = if scripted { 1 } else { 3 };
    (retries, (usable / (retries + 1)).clamp(MIN_STREAM_TIMEOUT, MAX_STREAM_TIMEOUT))
}

#[cfg(test)]
mod tests {
    use model::SkillEval;
    use sandbox::Sandbox;

    use super::*;
    use crate::tests::harness::AgentHarness;

    fn vendor(env: &[(&str, &str)]) -> AgentHarness {
        AgentHarness::for_program(env, "gpt-x", Endpoint::Vendor { base_url: None })
    }

    fn scripted() -> AgentHarness {
        let host = [("OPENAI_API_KEY", "sk-test"), ("OPENAI_BASE_URL", "http://x"), ("CODEX_HOME", "/elsewhere")];
        AgentHarness::for_program(&host, "gpt-x", AgentHarness::gateway())
    }

    fn prepare(harness: &AgentHarness) -> Result<Launch, Breakage> {
        Launch::prepare("/bin/codex".into(), &harness.session_context())
    }

    fn prepared(harness: &AgentHarness) -> Launch {
        prepare(harness).unwrap()
    }

    /// Stores a sign-in in the user's home.
    fn stored(harness: &AgentHarness) -> PathBuf {
        let file = harness.bare().outside("real/.codex/auth.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "{}").unwrap();
        file
    }

    fn setting<'a>(launch: &'a Launch, key: &str) -> Option<&'a str> {
        launch.invocation.args.iter().find_map(|arg| arg.strip_prefix(key)?.strip_prefix('='))
    }

    fn variable<'a>(launch: &'a Launch, name: &str) -> Option<&'a str> {
        launch.invocation.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_scripted_model_uses_the_token_of_the_trial_and_nothing_else_is_passed_on() {
        let stage = scripted();
        let launch = prepared(&stage);
        assert_eq!(launch.invocation.auth, "scripted");
        let home = stage.bare().home().join(".codex");
        let names: Vec<_> = launch.invocation.env.iter().map(|(name, _)| name.as_str()).collect();
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
        assert_eq!(&launch.invocation.args[launch.invocation.args.len() - 2..], ["-m", "gpt-5.5"]);
    }

    #[test]
    fn a_key_is_passed_to_the_agent_but_not_to_its_commands() {
        for (name, auth) in
            [("CODEX_API_KEY", "api key"), ("OPENAI_API_KEY", "api key"), ("CODEX_ACCESS_TOKEN", "access token")]
        {
            let host =
                [(name, "sk-test"), ("OPENAI_PROJECT", "p"), ("CODEX_THREAD_ID", "x"), ("ANTHROPIC_API_KEY", "y")];
            let mut stage = vendor(&host);
            let launch = prepared(&stage);
            assert_eq!((launch.invocation.auth, variable(&launch, name)), (auth, Some("sk-test")));
            assert_eq!(variable(&launch, "OPENAI_PROJECT"), Some("p"));
            assert_eq!((variable(&launch, "CODEX_THREAD_ID"), variable(&launch, "ANTHROPIC_API_KEY")), (None, None));
            assert_eq!(setting(&launch, "shell_environment_policy.exclude"), Some(format!(r#"["{name}"]"#).as_str()));
            assert_eq!(setting(&launch, "model_provider"), None);
            assert_eq!(&launch.invocation.args[launch.invocation.args.len() - 2..], ["-m", "gpt-x"]);

            stage.endpoint = Endpoint::Vendor { base_url: Some("http://127.0.0.1:2/v1/".into()) };
            let launch = prepared(&stage);
            let provider = setting(&launch, "model_providers.trialrun").unwrap();
            assert!(provider.contains(r#""base_url"="http://127.0.0.1:2/v1""#), "{provider}");
            assert!(provider.contains(&format!(r#""env_key"="{name}""#)), "{provider}");
        }
    }

    #[test]
    fn a_subscription_is_linked_in_a_separate_home() {
        let mut stage = vendor(&[]);
        assert!(prepare(&stage).is_err());
        let file = stored(&stage);
        let launch = prepared(&stage);
        assert_eq!((launch.invocation.auth, &prepared(&stage)), ("subscription", &launch));
        assert_eq!(fs::read_link(launch.home.join("auth.json")).unwrap(), file);
        assert_eq!(launch.home, stage.bare().home().join(".codex"));
        stage.endpoint = Endpoint::Vendor { base_url: Some("http://127.0.0.1:2".into()) };
        let provider = prepared(&stage);
        let provider = setting(&provider, "model_providers.trialrun").unwrap();
        assert!(provider.contains(r#""requires_openai_auth"=true"#), "{provider}");
    }

    #[test]
    fn a_self_hosted_server_needs_no_sign_in() {
        let mut stage = vendor(&[]);
        stage.endpoint = Endpoint::Vendor { base_url: Some("http://127.0.0.1:2".into()) };
        let launch = prepared(&stage);
        assert_eq!(launch.invocation.auth, "not signed in");
        assert!(!setting(&launch, "model_providers.trialrun").unwrap().contains("env_key"));
    }

    #[test]
    fn the_users_settings_are_used_in_place() {
        let mut stage = vendor(&[]);
        stored(&stage);
        stage.setup.setting_sources = vec![SettingSource::User, SettingSource::Project];
        let launch = prepared(&stage);
        assert_eq!(launch.home, stage.bare().outside("real/.codex"));
        assert_eq!(
            setting(&launch, "projects"),
            Some(format!(r#"{{"{}"={{"trust_level"="trusted"}}}}"#, stage.bare().work().display()).as_str())
        );
        assert_eq!((setting(&launch, "features.plugins"), setting(&launch, "project_doc_max_bytes")), (None, None));
        assert_eq!(setting(&launch, "analytics.enabled"), Some("false"));
    }

    #[test]
    fn permissions_follow_the_mode() {
        let mut stage = scripted();
        let mut with = |mode: PermissionMode| {
            stage.setup.permission_mode = mode;
            let launch = prepared(&stage);
            let index = launch.invocation.args.iter().position(|arg| arg == "--sandbox");
            (
                index.map(|index| launch.invocation.args[index + 1].clone()),
                setting(&launch, "sandbox_workspace_write.writable_roots").is_some(),
            )
        };
        assert_eq!(with(PermissionMode::BypassPermissions), (None, false));
        assert_eq!(with(PermissionMode::AcceptEdits), (Some("workspace-write".into()), true));
        assert_eq!(with(PermissionMode::Default), (Some("workspace-write".into()), true));
        assert_eq!(with(PermissionMode::Plan), (Some("read-only".into()), false));
    }

    #[test]
    fn a_push_reaches_its_remote_and_only_declared_cases_get_network_access() {
        let remote = tempfile::tempdir().unwrap();
        let here = remote.path().canonicalize().unwrap().to_string_lossy().into_owned();
        let with = |remote: Option<&str>, level: Option<SideEffectLevel>| {
            let mut stage = scripted();
            stage.setup.permission_mode = PermissionMode::AcceptEdits;
            stage.source_repo = remote.map(str::to_owned);
            stage.case.skill_eval = level.map(|side_effect_level| {
                SkillEval {
                    should_trigger: true,
                    invocation: None,
                    side_effect_level,
                    contract: None,
                    scripts: Vec::new(),
                }
                .into()
            });
            let launch = prepared(&stage);
            let roots = setting(&launch, "sandbox_workspace_write.writable_roots").unwrap();
            (
                roots.replace(&*stage.bare().work().to_string_lossy(), "/w x"),
                setting(&launch, "sandbox_workspace_write.network_access").map(str::to_owned),
            )
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
    fn an_observed_agent_keeps_its_key_at_the_address_of_the_gateway() {
        let mut stage = AgentHarness::for_program(
            &[("OPENAI_API_KEY", "sk-test")],
            "gpt-x",
            Endpoint::Observed { gateway: "http://127.0.0.1:1/token".into(), base_url: None },
        );
        stage.setup.timeout_ms = 600_000;
        let launch = prepared(&stage);
        let provider = setting(&launch, "model_providers.trialrun").unwrap();
        assert!(provider.contains(r#""base_url"="http://127.0.0.1:1/token""#), "{provider}");
        assert!(provider.contains(r#""env_key"="OPENAI_API_KEY""#), "{provider}");
        let has = |name: &str, value: &str| launch.invocation.env.contains(&(name.to_owned(), value.to_owned()));
        assert!(has("OPENAI_API_KEY", "sk-test") && has("NO_PROXY", "127.0.0.1"));
    }

    #[test]
    fn values_are_written_as_single_line_toml() {
        let mut stage = scripted();
        stage.setup.system_prompt = Some("Say \"hi\"\n\\ \u{7f}é\t".into());
        stage.setup.reasoning_effort = Some("low".into());
        let launch = prepared(&stage);
        assert_eq!(setting(&launch, "developer_instructions"), Some(r#""Say \"hi\"\n\\ \u007Fé\t""#));
        assert_eq!(setting(&launch, "model_reasoning_effort"), Some(r#""low""#));
        assert_eq!(toml(&json!({"a": [1, true], "b c": {}})), r#"{"a"=[1,true],"b c"={}}"#);
    }

    #[test]
    fn a_stalled_stream_times_out_before_the_trial() {
        for (timeout_ms, scripted) in [(600_000, false), (600_000, true), (60_000, false), (10_000, true)] {
            let (retries, stream) = provider_timeouts(timeout_ms, scripted);
            let silent = stream * (retries + 1);
            assert!(silent <= Duration::from_millis(timeout_ms) * 4 / 5, "{timeout_ms}: {retries}, {stream:?}");
        }
    }

    #[test]
    fn servers_of_the_case_are_settings() {
        let mut context = scripted().session_context();
        context.servers = vec![crate::tests::harness::server("issues")].into();
        let launch = Launch::prepare("/bin/codex".into(), &context).unwrap();
        let server = setting(&launch, "mcp_servers.issues").unwrap();
        assert!(server.contains(r#""command"="/bin/issues""#), "{server}");
    }
}
