//! Starting the CLI: program, arguments, environment, and the first message.

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Definition, PermissionMode};
use sandbox::Breakage;
use serde_json::{Value, json};

use super::tool_allow_list::ToolAllowList;
use super::{control, exposure, sign_in};
use crate::program::{Invocation, loopback_without_proxy, script_name, variables};
use crate::sign_in::SignIn;
use crate::{Agent, Endpoint, SessionContext, Setup};

/// Hook that checks calls to tools with scopes.
pub(super) const SCOPE_HOOK: &str = "scope";
/// Hook that ends the agent's turn when the conversation's turns are used up.
pub(super) const TURNS_HOOK: &str = "turns";

/// Folder of the transcript that is continued, below the sandbox's home.
const HISTORY: &str = ".claude/history";

/// Variables that make runs reproducible on all machines.
const QUIET: [(&str, &str); 5] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    // A background task would answer after the message's result, when its answer is no longer read.
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
];

/// Variables that turn off bundled skills and automatic memory in hermetic runs.
const HERMETIC: [(&str, &str); 2] =
    [("CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "1"), ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")];

/// Built-in plug-ins with skills, which hermetic runs turn off. The variable for bundled skills does not affect them.
const BUILT_IN: [&str; 1] = ["cc-plugin-plugin-authoring@builtin"];

/// Variables for scripted models: every request must be one that the script knows, so fallback requests are turned
/// off.
const SCRIPTED: [(&str, &str); 3] = [
    ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
    ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
    ("ENABLE_TOOL_SEARCH", "false"),
];

/// The user's variables that belong to another session, or that are set here.
const NOT_LENT: [&str; 9] = [
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_REMOTE_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_TMPDIR",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
];

/// Data for starting the CLI, for the first time or again.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Launch {
    /// The CLI, without the arguments that resume a session.
    pub(super) invocation: Invocation,
    /// First line sent to the CLI.
    pub(super) initialize: Value,
    /// Skill that the CLI sees in a plug-in with the same name.
    pub(super) plugin: Option<String>,
    /// The user's own configuration folder, if the CLI sees it.
    pub(super) folder: Option<PathBuf>,
    /// Transcript of the conversation to continue.
    pub(super) history: Option<String>,
}

impl Launch {
    /// Determines all data for the launch, and creates the links in the sandbox's home through which the agent finds
    /// its skill.
    pub(super) fn prepare(program: PathBuf, on: &SessionContext) -> Result<Self, Breakage> {
        let sandbox = on.sandbox()?;
        let sign_in = sign_in::of(&on.host, &on.endpoint);
        if sign_in == SignIn::None && on.setup.setting_sources.is_empty() {
            return Err(Breakage::environment(format!("Claude Code is not signed in: {}", super::PROGRAM.sign_in)));
        }
        let folder = sign_in::visible_folder(&on.host, &sign_in, &on.setup.setting_sources);
        let installed = super::ClaudeCode.installed(&on.case);
        // A plug-in is loaded from where it is.
        let linked = installed.as_deref().filter(|_| on.case.definition != Definition::Plugin);
        let exposure = exposure::of(linked, &on.setup.setting_sources, folder.is_some());
        exposure
            .lay_out(sandbox.home(), sandbox.work())
            .map_err(|error| Breakage::environment(format!("cannot show the skill to the agent: {error}")))?;
        let servers = sign_in::server_file(&on.host, &on.setup.setting_sources);
        folder.iter().chain(&servers).for_each(|path| sandbox.show(path));
        let history = on.case.history.as_deref().map(|file| copy_history(file, sandbox.home())).transpose()?;
        let allow_list = allow_list(on);
        let invocation = Invocation {
            program,
            args: arguments(on, allow_list.as_ref(), &exposure, sandbox.home()),
            env: environment(on, &sign_in, folder.as_deref()),
            auth: sign_in.name().unwrap_or("not signed in"),
        };
        let initialize = initialize(on, allow_list.as_ref());
        Ok(Self { invocation, initialize, plugin: exposure.in_plugin().map(str::to_owned), folder, history })
    }
}

/// Copies a transcript into the sandbox, and returns its path. The CLI writes the continued session next to it.
fn copy_history(file: &Path, home: &Path) -> Result<String, Breakage> {
    let folder = home.join(HISTORY);
    let copy = folder.join("history.jsonl");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::copy(file, &copy))
        .map_err(|error| Breakage::environment(format!("cannot copy {}: {error}", file.display())))?;
    Ok(copy.to_string_lossy().into_owned())
}

/// Returns the tools that exist, with those of the case's servers; `None` if the agent keeps its own tools.
pub(super) fn allow_list(on: &SessionContext) -> Option<ToolAllowList> {
    on.setup.closed_tools.as_deref().map(|tools| ToolAllowList::read(tools).with_servers(&on.servers))
}

fn arguments(
    on: &SessionContext,
    allow_list: Option<&ToolAllowList>,
    exposure: &exposure::Exposure,
    home: &Path,
) -> Vec<String> {
    let setup = &on.setup;
    let mut args: Vec<String> = [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-prompt-tool",
        "stdio",
    ]
    .map(str::to_owned)
    .into();
    if on.limits.enforced_during_turn() || on.limits.turn_cap().is_some() {
        args.push("--include-partial-messages".to_owned());
    }
    let mut option = |name: &str, value: String| args.extend([name.to_owned(), value]);

    option("--permission-mode", permission_mode(setup.permission_mode, allow_list).name().to_owned());
    if let Some(turns) = setup.max_turns {
        option("--max-turns", turns.to_string());
    }
    let mut sources: Vec<&str> = setup.setting_sources.iter().map(|source| source.name()).collect();
    if exposure.needs_user_source() && !sources.contains(&"user") {
        sources.push("user");
    }
    option("--setting-sources", sources.join(","));
    if let Some(model) = model_name(setup, &on.endpoint) {
        option("--model", model);
    }
    if let Some(effort) = &setup.reasoning_effort {
        option("--effort", effort.clone());
    }
    if let Some(allow_list) = allow_list {
        let mut tools: Vec<&str> = allow_list.built_in().collect();
        // The harness acts as the channel to the user, which stays open if answers are prepared.
        if !on.case.user_responses.is_empty() && !tools.contains(&"AskUserQuestion") {
            tools.push("AskUserQuestion");
        }
        option("--tools", tools.join(","));
    }
    let approved = || ToolAllowList::read(&setup.approved_tools).with_servers(&on.servers).rules();
    let approved = allow_list.map_or_else(approved, ToolAllowList::rules);
    if !approved.is_empty() {
        option("--allowedTools", approved.join(","));
    }
    if let Some(folder) = exposure.plugin(home) {
        option("--plugin-dir", folder.to_string_lossy().into_owned());
    }
    let plugin = super::ClaudeCode.installed(&on.case).filter(|_| on.case.definition == Definition::Plugin);
    if let (Some(plugin), Ok(sandbox)) = (plugin, on.sandbox()) {
        option("--plugin-dir", sandbox.work().join(plugin).to_string_lossy().into_owned());
    }
    let names_servers = |tools: &[String]| ToolAllowList::read(tools).names_servers();
    let servers_wanted = !setup.setting_sources.is_empty() && setup.closed_tools.as_deref().is_none_or(names_servers);
    if !servers_wanted {
        args.push("--strict-mcp-config".to_owned());
    }
    let file = sign_in::server_file(&on.host, &setup.setting_sources).filter(|_| servers_wanted);
    let file = file.map(|file| file.to_string_lossy().into_owned());
    let own = on.servers.iter().map(|server| (server.name.clone(), server.for_claude()));
    let own: serde_json::Map<String, Value> = own.collect();
    let own = (!own.is_empty()).then(|| json!({"mcpServers": own}).to_string());
    if file.is_some() || own.is_some() {
        args.push("--mcp-config".to_owned());
        args.extend(own.into_iter().chain(file));
    }
    // The user's settings may set variables, which would override the environment.
    let env = match &on.endpoint {
        Endpoint::Gateway { base_url, token } => json!({"ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_API_KEY": token}),
        Endpoint::Observed { gateway, .. } => json!({"ANTHROPIC_BASE_URL": gateway}),
        _ => Value::Null,
    };
    if setup.setting_sources.is_empty() {
        let off: serde_json::Map<String, Value> =
            BUILT_IN.iter().map(|plugin| ((*plugin).to_owned(), json!(false))).collect();
        args.extend(["--settings".to_owned(), json!({"enabledPlugins": off}).to_string()]);
    } else if !env.is_null() {
        args.extend(["--settings".to_owned(), json!({"env": env}).to_string()]);
    }
    args
}

/// Returns the permission mode. Calls outside the scopes must be decided by this host, not allowed by the mode.
fn permission_mode(mode: PermissionMode, allow_list: Option<&ToolAllowList>) -> PermissionMode {
    match mode {
        PermissionMode::Plan => mode,
        _ if allow_list.is_some_and(ToolAllowList::is_scoped) => PermissionMode::Default,
        _ => mode,
    }
}

/// Returns the model name for the CLI. A scripted model is named after its file.
fn model_name(setup: &Setup, endpoint: &Endpoint) -> Option<String> {
    let name = setup.model.as_deref()?;
    match endpoint {
        Endpoint::Vendor { .. } | Endpoint::Observed { .. } => Some(name.to_owned()),
        Endpoint::Gateway { .. } | Endpoint::Script { .. } | Endpoint::Provider(_) => Some(script_name(name)),
    }
}

fn environment(on: &SessionContext, sign_in: &SignIn, folder: Option<&Path>) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = variables(&QUIET).collect();
    if on.setup.setting_sources.is_empty() {
        env.extend(variables(&HERMETIC));
    }
    let timeouts = ProviderTimeouts::for_timeout(on.setup.timeout_ms, *sign_in == SignIn::Scripted);
    env.extend(timeouts.env());
    let mut set = |name: &str, value: &str| env.push((name.to_owned(), value.to_owned()));
    if nix::unistd::geteuid().is_root() {
        // Without it, the CLI refuses to skip permissions when it runs as root.
        set("IS_SANDBOX", "1");
    }
    match &on.endpoint {
        Endpoint::Gateway { base_url, token } => {
            set("ANTHROPIC_BASE_URL", base_url);
            set("ANTHROPIC_API_KEY", token);
            env.extend(variables(&SCRIPTED));
        }
        Endpoint::Vendor { base_url } | Endpoint::Observed { base_url, .. } => {
            // The user's variables take precedence over those set here, except for the location of the agent's folder.
            let forwarded = on.host.env.iter().filter(|(name, value)| {
                sign_in::is_lent(&on.host, name) && !value.is_empty() && !NOT_LENT.contains(&name.as_str())
            });
            env.extend(forwarded.map(|(name, value)| (name.clone(), value.clone())));
            let address = match &on.endpoint {
                Endpoint::Observed { gateway, .. } => Some(gateway),
                _ => base_url.as_ref(),
            };
            env.extend(address.map(|address| ("ANTHROPIC_BASE_URL".to_owned(), address.clone())));
            if matches!(on.endpoint, Endpoint::Observed { .. }) {
                env.extend(loopback_without_proxy(&on.host));
            }
        }
        Endpoint::Script { .. } | Endpoint::Provider(_) => {}
    }
    if let Some(folder) = folder {
        env.push(("CLAUDE_CONFIG_DIR".to_owned(), folder.to_string_lossy().into_owned()));
    }
    env
}

fn initialize(on: &SessionContext, allow_list: Option<&ToolAllowList>) -> Value {
    let mut hooks = json!({});
    if allow_list.is_some_and(|allow_list| allow_list.is_scoped() || allow_list.names_servers()) {
        hooks["PreToolUse"] = json!([{"hookCallbackIds": [SCOPE_HOOK]}]);
    }
    // For a single message, the CLI itself enforces the turn limit, but it restarts the count with each message.
    if on.case.messages.len() > 1 || on.limits.enforced_during_turn() {
        hooks["PostToolBatch"] = json!([{"hookCallbackIds": [TURNS_HOOK]}]);
    }
    control::initialize(&hooks, on.setup.system_prompt.as_deref())
}

/// Timeouts after which the CLI gives up on its model, so that it reports an unresponsive provider before the trial's
/// timeout. By default, it would retry for an hour and a half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProviderTimeouts {
    retries: u32,
    /// Timeout for the start of a response.
    request: Duration,
    /// Timeout for the next part of a response.
    stream: Duration,
}

impl ProviderTimeouts {
    /// Minimum timeout during a response that the CLI accepts.
    const MIN_STREAM_TIMEOUT: Duration = Duration::from_secs(10);
    /// Minimum timeout of a request, unless the trial's timeout is too short for it.
    const FAIR_REQUEST: Duration = Duration::from_secs(60);

    fn for_timeout(timeout_ms: u64, scripted: bool) -> Self {
        let usable = Duration::from_millis(timeout_ms) * 3 / 4;
        let most = if scripted { 2 } else { 6 };
        let each = |retries: u32| usable.saturating_sub(Self::pauses(retries)) / (retries + 1);
        let retries = (2..=most).rev().find(|retries| each(*retries) >= Self::FAIR_REQUEST).unwrap_or(2);
        let request = each(retries).clamp(Duration::from_secs(1), Duration::from_secs(600));
        // The CLI retries an interrupted response about three times, whatever is configured.
        let stream = (usable / 5).clamp(Self::MIN_STREAM_TIMEOUT, Duration::from_secs(300));
        Self { retries, request, stream }
    }

    /// Returns the total time that the CLI pauses between its attempts: half a second, doubled each time, at most 32 s.
    fn pauses(retries: u32) -> Duration {
        (0..retries).map(|retry| Duration::from_millis(500 * 2_u64.pow(retry.min(6)))).sum()
    }

    fn env(self) -> [(String, String); 4] {
        [
            ("CLAUDE_CODE_MAX_RETRIES", self.retries.to_string()),
            ("API_TIMEOUT_MS", self.request.as_millis().to_string()),
            ("CLAUDE_ENABLE_BYTE_WATCHDOG", "1".to_owned()),
            ("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS", self.stream.as_millis().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    }
}

#[cfg(test)]
mod tests {
    use model::{Case, SettingSource, UserMessage};
    use sandbox::Sandbox as _;

    use super::*;
    use crate::tests::harness::{AgentHarness, response};

    fn vendor(env: &[(&str, &str)]) -> AgentHarness {
        AgentHarness::for_program(env, "claude-x", Endpoint::Vendor { base_url: None })
    }

    fn scripted() -> AgentHarness {
        let host = [("ANTHROPIC_API_KEY", "sk-test"), ("ANTHROPIC_MODEL", "m"), ("CLAUDE_CODE_USE_BEDROCK", "1")];
        AgentHarness::for_program(&host, "scripted:/suite/hello world.yaml", AgentHarness::gateway())
    }

    fn prepared(harness: &AgentHarness) -> Launch {
        Launch::prepare("/bin/claude".into(), &harness.session_context()).unwrap()
    }

    fn option<'a>(launch: &'a Launch, name: &str) -> Option<&'a str> {
        let index = launch.invocation.args.iter().position(|argument| argument == name)?;
        launch.invocation.args.get(index + 1).map(String::as_str)
    }

    /// Returns the last value of a variable, which is the one that the process sees.
    fn variable<'a>(launch: &'a Launch, name: &str) -> Option<&'a str> {
        launch.invocation.env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_scripted_model_uses_the_token_of_the_trial_and_nothing_else_is_passed_on() {
        let launch = prepared(&scripted());
        assert_eq!(launch.invocation.auth, "scripted");
        assert_eq!(variable(&launch, "ANTHROPIC_API_KEY"), Some("trialrun-test"));
        assert_eq!(variable(&launch, "ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:1"));
        assert_eq!((variable(&launch, "ANTHROPIC_MODEL"), variable(&launch, "CLAUDE_CODE_USE_BEDROCK")), (None, None));
        assert_eq!(option(&launch, "--model"), Some("hello-world.yaml"));
        assert_eq!(option(&launch, "--setting-sources"), Some(""));
        let settings = r#"{"enabledPlugins":{"cc-plugin-plugin-authoring@builtin":false}}"#;
        assert_eq!(option(&launch, "--settings"), Some(settings));
        assert!(launch.invocation.args.contains(&"--strict-mcp-config".to_owned()));
        assert_eq!(variable(&launch, "CLAUDE_CONFIG_DIR"), None);
        assert_eq!(launch.initialize["request"]["hooks"], json!({}));
    }

    #[test]
    fn an_observed_agent_keeps_its_sign_in_at_the_address_of_the_gateway() {
        let mut stage = vendor(&[("ANTHROPIC_API_KEY", "sk-test"), ("ANTHROPIC_BASE_URL", "http://other")]);
        let gateway = "http://127.0.0.1:1/token";
        stage.endpoint = Endpoint::Observed { gateway: gateway.into(), base_url: Some("http://own".into()) };
        let launch = prepared(&stage);
        assert_eq!((launch.invocation.auth, variable(&launch, "ANTHROPIC_API_KEY")), ("api key", Some("sk-test")));
        assert_eq!(
            (variable(&launch, "ANTHROPIC_BASE_URL"), option(&launch, "--model")),
            (Some(gateway), Some("claude-x"))
        );
        assert_eq!(variable(&launch, "NO_PROXY"), Some("127.0.0.1"));
        stage.setup.setting_sources = vec![SettingSource::User];
        let settings = option(&prepared(&stage), "--settings").map(str::to_owned);
        assert_eq!(settings.as_deref(), Some(r#"{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:1/token"}}"#));
    }

    #[test]
    fn keys_and_tokens_are_passed_on_but_variables_of_other_sessions_are_not() {
        for (name, auth) in [
            ("ANTHROPIC_API_KEY", "api key"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "oauth token"),
            ("ANTHROPIC_AUTH_TOKEN", "auth token"),
        ] {
            let host = [
                (name, "sk-test"),
                ("CLAUDE_CODE_MAX_RETRIES", "9"),
                ("CLAUDE_CODE_ENTRYPOINT", "cli"),
                ("CLAUDE_CONFIG_DIR", "/elsewhere"),
                ("OPENAI_API_KEY", "sk-test"),
            ];
            let mut stage = vendor(&host);
            stage.endpoint = Endpoint::Vendor { base_url: Some("http://127.0.0.1:2".into()) };
            let launch = prepared(&stage);
            assert_eq!((launch.invocation.auth, variable(&launch, name)), (auth, Some("sk-test")));
            assert_eq!(variable(&launch, "CLAUDE_CODE_MAX_RETRIES"), Some("9"));
            assert_eq!(variable(&launch, "ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:2"));
            for absent in ["CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CONFIG_DIR", "OPENAI_API_KEY"] {
                assert_eq!(variable(&launch, absent), None, "{absent}");
            }
        }
    }

    #[test]
    fn an_enabled_cloud_provider_gets_only_its_own_variables() {
        let host = |switch: &'static str, value: &'static str| {
            let rest = ["AWS_REGION", "GOOGLE_CLOUD_PROJECT", "CLOUD_ML_REGION", "AZURE_TENANT_ID"];
            vendor(&[&[(switch, value)][..], &rest.map(|name| (name, "x"))].concat())
        };
        for (switch, auth, forwarded) in [
            ("CLAUDE_CODE_USE_BEDROCK", "Amazon Bedrock", &["AWS_REGION"][..]),
            ("CLAUDE_CODE_USE_VERTEX", "Google Vertex AI", &["GOOGLE_CLOUD_PROJECT", "CLOUD_ML_REGION"]),
            ("CLAUDE_CODE_USE_FOUNDRY", "Microsoft Foundry", &["AZURE_TENANT_ID"]),
        ] {
            let launch = prepared(&host(switch, "1"));
            assert_eq!(launch.invocation.auth, auth);
            let seen = ["AWS_REGION", "GOOGLE_CLOUD_PROJECT", "CLOUD_ML_REGION", "AZURE_TENANT_ID"]
                .into_iter()
                .filter(|name| variable(&launch, name).is_some());
            assert_eq!(seen.collect::<Vec<_>>(), forwarded);
        }
        for off in ["0", "false", "False", " ", ""] {
            let mut stage = host("CLAUDE_CODE_USE_BEDROCK", off);
            assert_ne!(sign_in::detect(&stage.host).name(), Some("Amazon Bedrock"), "{off:?}");
            stage.host.env.insert("ANTHROPIC_API_KEY".into(), "sk-test".into());
            let launch = prepared(&stage);
            assert_eq!((launch.invocation.auth, variable(&launch, "AWS_REGION")), ("api key", None), "{off:?}");
            stage.host.env.insert("CLAUDE_CODE_USE_BEDROCK".into(), "true".into());
            assert_eq!(prepared(&stage).invocation.auth, "Amazon Bedrock", "a cloud provider precedes a key");
        }
    }

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn a_subscription_is_the_last_resort_and_needs_its_folder() {
        let stage = vendor(&[]);
        let folder = stage.bare().outside("real/.claude");
        let context = |stage: &AgentHarness| sign_in::detect(&stage.host);
        assert_eq!(context(&stage), SignIn::None);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(".credentials.json"), "{}").unwrap();
        assert_eq!(context(&stage), SignIn::Subscription(folder.join(".credentials.json")));
        let launch = prepared(&stage);
        assert_eq!(launch.invocation.auth, "subscription");
        assert_eq!(variable(&launch, "CLAUDE_CONFIG_DIR"), folder.to_str());
        assert_eq!(option(&launch, "--setting-sources"), Some(""));
    }

    #[test]
    fn the_users_settings_are_used_in_place_and_cannot_bypass_the_script() {
        let mut stage = scripted();
        stage.setup.setting_sources = vec![SettingSource::User, SettingSource::Project];
        let real = stage.bare().outside("real");
        std::fs::create_dir_all(&real).unwrap();
        std::fs::write(real.join(".claude.json"), r#"{"mcpServers": {"db": {"command": "db"}}}"#).unwrap();
        let launch = prepared(&stage);
        assert_eq!(option(&launch, "--setting-sources"), Some("user,project"));
        assert_eq!(variable(&launch, "CLAUDE_CONFIG_DIR"), real.join(".claude").to_str());
        assert_eq!(option(&launch, "--mcp-config"), real.join(".claude.json").to_str());
        let settings: Value = serde_json::from_str(option(&launch, "--settings").unwrap()).unwrap();
        assert_eq!(settings["env"]["ANTHROPIC_BASE_URL"], "http://127.0.0.1:1");
        assert_eq!(variable(&launch, "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS"), None);

        stage.setup.closed_tools = Some(vec!["Read".into()]);
        let allow_list = prepared(&stage);
        assert_eq!(option(&allow_list, "--mcp-config"), None);
        assert!(allow_list.invocation.args.contains(&"--strict-mcp-config".to_owned()));
    }

    #[test]
    fn a_closed_list_allows_only_its_tools_and_questions_to_the_user() {
        let mut stage = scripted();
        stage.setup.approved_tools = vec!["Grep".into()];
        stage.setup.closed_tools = Some(vec!["Read".into(), "Bash(git *)".into()]);
        stage.case.user_responses = vec![response("colour", "red")];
        let launch = prepared(&stage);
        assert_eq!(option(&launch, "--tools"), Some("Read,Bash,AskUserQuestion"));
        assert_eq!(option(&launch, "--allowedTools"), Some("Read,Bash(git *)"));
        assert_eq!(option(&launch, "--permission-mode"), Some("default"));
        assert!(launch.initialize["request"]["hooks"]["PreToolUse"].is_array());

        stage.setup.closed_tools = Some(vec!["Read".into()]);
        stage.case.user_responses.clear();
        let launch = prepared(&stage);
        assert_eq!(option(&launch, "--tools"), Some("Read"));
        assert_eq!(option(&launch, "--permission-mode"), Some("bypassPermissions"));

        stage.setup.closed_tools = Some(Vec::new());
        assert_eq!(option(&prepared(&stage), "--tools"), Some(""));
        stage.setup.closed_tools = None;
        stage.case.messages.push(UserMessage::text("again"));
        let open = prepared(&stage);
        assert_eq!((option(&open, "--tools"), option(&open, "--allowedTools")), (None, Some("Grep")));
        assert!(open.initialize["request"]["hooks"]["PostToolBatch"].is_array());
    }

    #[test]
    fn an_unresponsive_provider_times_out_before_the_trial() {
        for (timeout_ms, scripted) in [(600_000, false), (600_000, true), (60_000, false), (10_000, true)] {
            let timeouts = ProviderTimeouts::for_timeout(timeout_ms, scripted);
            let silent = timeouts.request * (timeouts.retries + 1) + ProviderTimeouts::pauses(timeouts.retries);
            assert!(silent <= Duration::from_millis(timeout_ms) * 4 / 5, "{timeout_ms}: {timeouts:?}");
            assert!(timeouts.retries >= 2);
        }
        assert!(ProviderTimeouts::for_timeout(600_000, false).request >= ProviderTimeouts::FAIR_REQUEST);
    }

    #[test]
    fn servers_of_the_case_are_the_only_ones_and_need_no_approval() {
        let mut context = scripted().session_context();
        context.servers = vec![crate::tests::harness::server("issues")].into();
        let launch = Launch::prepare("/bin/claude".into(), &context).unwrap();
        assert!(launch.invocation.args.contains(&"--strict-mcp-config".to_owned()));
        let config: Value = serde_json::from_str(option(&launch, "--mcp-config").unwrap()).unwrap();
        assert_eq!(config["mcpServers"]["issues"]["command"], "/bin/issues");
        assert_eq!(option(&launch, "--allowedTools"), Some("mcp__issues"));
    }

    #[test]
    fn a_transcript_is_continued_from_a_copy() {
        let harness = scripted();
        let mut context = harness.session_context();
        let file = harness.bare().outside("history.jsonl");
        std::fs::write(&file, "{}").unwrap();
        context.case = Case { history: Some(file.clone()), ..(*context.case).clone() }.into();
        let launch = Launch::prepare("/bin/claude".into(), &context).unwrap();
        let copy = PathBuf::from(launch.history.unwrap());
        assert!(copy.starts_with(harness.bare().home()) && copy != file);
        assert_eq!(std::fs::read_to_string(copy).unwrap(), "{}");
    }
}
