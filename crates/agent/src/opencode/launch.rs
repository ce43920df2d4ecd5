//! Starting OpenCode: program, arguments, environment and configuration.

use std::io;
use std::path::{Path, PathBuf};

use model::{Definition, PermissionMode, SettingSource, Skill};
use sandbox::{Breakage, Host, Sandbox};
use serde_json::{Value, json};

use super::permission;
use super::provider::Provider;
use crate::program::{Invocation, link, variables};
use crate::{Endpoint, SessionContext, Setup};

/// Folder of OpenCode's skills, below its working directory.
pub(super) const SKILLS: &str = ".opencode/skills";

/// Folder of its definitions of sub-agents.
pub(super) const SUB_AGENTS: &str = ".opencode/agent";
/// Title of the session. Without it, OpenCode would ask the model for one.
const TITLE: &str = "trialrun";
/// OpenCode's configuration folder, below the sandbox's home.
const CONFIG: &str = ".config/opencode";
/// File for the addition to the system prompt, in [`CONFIG`].
const INSTRUCTIONS: &str = "instructions.md";
/// File in [`CONFIG`] with an empty table of models. OpenCode's own table names thousands of models, and each start reads
/// it all, which is a third of the CPU time of a short trial.
const MODELS: &str = "models.json";
/// Lock file in [`CONFIG`] that, together with a folder `node_modules`, tells OpenCode that its package for plug-ins is
/// installed. Otherwise each start would download it, although no plug-in needs it, and this would count as an attempt
/// by the agent to reach that host.
const INSTALLED: &str = r#"{"lockfileVersion":3,"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}"#;
/// File in which OpenCode finds the user's sign-ins, below the sandbox's home.
const SIGN_INS: &str = ".local/share/opencode/auth.json";

/// Variables that make runs reproducible on all machines.
const QUIET: [(&str, &str); 4] = [
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_DISABLE_TERMINAL_TITLE", "1"),
];

/// Variable that turns off OpenCode's own plug-ins; some sign-ins need them.
const NO_PLUGINS: (&str, &str) = ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1");

/// Variables that make OpenCode ignore the project's files in runs that do not use the project's settings.
const WITHOUT_PROJECT: [(&str, &str); 3] = [
    ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
    ("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1"),
    ("OPENCODE_DISABLE_CLAUDE_CODE", "1"),
];

/// Data for starting OpenCode, used for each message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Launch {
    /// OpenCode, without the arguments that continue a session.
    pub(super) invocation: Invocation,
    /// `provider/model`, if a model was requested.
    pub(super) model: Option<String>,
}

impl Launch {
    /// Determines all data for the launch, and creates the files that OpenCode reads in the sandbox's home.
    pub(super) fn prepare(program: PathBuf, on: &SessionContext) -> Result<Self, Breakage> {
        Self::with(program, on, &permission::of(&on.setup, on.sandbox()?.as_ref()))
    }

    /// Like [`prepare`](Self::prepare), for a client that answers requests for permission.
    pub(super) fn asking(program: PathBuf, on: &SessionContext) -> Result<Self, Breakage> {
        Self::with(program, on, &permission::asking(&on.setup, on.sandbox()?.as_ref()))
    }

    fn with(program: PathBuf, on: &SessionContext, permission: &Value) -> Result<Self, Breakage> {
        let sandbox = on.sandbox()?;
        let provider =
            Provider::new(&on.host, &on.endpoint, on.setup.model.as_deref(), provider_timeout_ms(on.setup.timeout_ms));
        let is_user = on.setup.setting_sources.contains(&SettingSource::User);
        // A provider that the user has configured, or one at an address of the user's, may need no sign-in.
        let needs_none = is_user
            || on.setup.model.is_none()
            || matches!(
                on.endpoint,
                Endpoint::Vendor { base_url: Some(_) }
                    | Endpoint::Observed { base_url: Some(_), .. }
                    | Endpoint::Gateway { .. }
            );
        if provider.auth.is_none() && !needs_none {
            return Err(Breakage::environment(format!(
                "OpenCode is not signed in at `{}`: {}",
                provider.id().unwrap_or_default(),
                super::PROGRAM.sign_in
            )));
        }
        lay_out(on, sandbox.home(), &provider)
            .map_err(|error| Breakage::environment(format!("cannot prepare OpenCode's home: {error}")))?;
        let own_folder = config_folder(&on.host).filter(|_| is_user);
        provider.sign_in.iter().chain(&own_folder).for_each(|path| sandbox.show(path));
        let invocation = Invocation {
            program,
            args: arguments(&on.setup),
            env: environment(on, sandbox.as_ref(), &provider, permission),
            auth: provider.auth.unwrap_or("none"),
        };
        Ok(Self { invocation, model: provider.model })
    }
}

/// Returns the timeout of a request in milliseconds. It is short enough that an unresponsive provider is reported as
/// such before the trial's timeout.
fn provider_timeout_ms(timeout_ms: u64) -> u64 {
    (timeout_ms / 4 * 3).max(1000)
}

fn arguments(setup: &Setup) -> Vec<String> {
    let mut args: Vec<String> =
        ["run", "--format", "json", "--thinking", "--print-logs", "--log-level", "ERROR", "--title", TITLE]
            .map(str::to_owned)
            .into();
    if let Some(effort) = &setup.reasoning_effort {
        args.extend(["--variant".to_owned(), effort.clone()]);
    }
    if setup.permission_mode == PermissionMode::BypassPermissions {
        args.push("--auto".to_owned());
    }
    args
}

fn environment(
    on: &SessionContext,
    sandbox: &dyn Sandbox,
    provider: &Provider,
    permission: &Value,
) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = variables(&QUIET).collect();
    if provider.sign_in.is_none() {
        env.extend(variables(&[NO_PLUGINS]));
    }
    if !reads_project(&on.setup) {
        env.extend(variables(&WITHOUT_PROJECT));
    }
    if on.setup.setting_sources.contains(&SettingSource::User)
        && let Some(folder) = config_folder(&on.host)
    {
        env.push(("OPENCODE_CONFIG_DIR".to_owned(), folder.to_string_lossy().into_owned()));
    }
    env.extend(provider.env.iter().cloned());
    if provider.is_defined() {
        let models = sandbox.home().join(CONFIG).join(MODELS);
        env.push(("OPENCODE_MODELS_PATH".to_owned(), models.to_string_lossy().into_owned()));
    }
    env.push(("OPENCODE_CONFIG_CONTENT".to_owned(), configuration(on, sandbox, provider, permission).to_string()));
    env
}

/// Returns the configuration, which takes precedence over every configuration file.
fn configuration(on: &SessionContext, sandbox: &dyn Sandbox, provider: &Provider, permission: &Value) -> Value {
    let mut config = json!({
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": false,
        "share": "disabled",
        "snapshot": false,
        "permission": permission,
        // If a call is not approved, the model gets a response, just as if a rule denies it.
        "experimental": {"continue_loop_on_deny": true},
    });
    if let Some(model) = &provider.model {
        config["model"] = json!(model);
        config["small_model"] = json!(model);
    }
    if let Some((id, about)) = &provider.config {
        config["enabled_providers"] = json!([id]);
        config["provider"] = json!({id: about});
    }
    if !on.servers.is_empty() {
        let servers = on.servers.iter().map(|server| (server.name.clone(), server.for_opencode()));
        config["mcp"] = Value::Object(servers.collect());
    }
    for server in on.servers.iter().filter(|_| on.setup.closed_tools.is_some()) {
        let listed = server.listed(on.setup.closed_tools.as_deref().unwrap_or_default());
        for tool in listed.unwrap_or_else(|| vec!["*"]) {
            config["permission"][format!("{}_{tool}", server.name)] = json!("allow");
        }
    }
    if on.setup.system_prompt.is_some() {
        config["instructions"] = json!([sandbox.home().join(CONFIG).join(INSTRUCTIONS)]);
    }
    let plugin = on.case.subject.installed().and_then(|installed| installed.plugin.as_ref());
    let sub_agents = plugin.into_iter().flat_map(|plugin| &plugin.sub_agents);
    let sub_agents: serde_json::Map<String, Value> =
        sub_agents.map(|agent| (agent.name.clone(), sub_agent(agent))).collect();
    if !sub_agents.is_empty() {
        config["agent"] = Value::Object(sub_agents);
    }
    if let Some(installed) = on.case.subject.installed().filter(|_| !reads_project(&on.setup)) {
        match on.case.definition {
            Definition::Skill => {
                config["skills"] = json!({"paths": [sandbox.work().join(SKILLS).join(&installed.name)]});
            }
            Definition::Plugin | Definition::SkillsOfPlugin => {
                let skills = installed.plugin.iter().flat_map(|plugin| &plugin.skills);
                let paths: Vec<_> = skills.map(|name| sandbox.work().join(SKILLS).join(name)).collect();
                config["skills"] = json!({"paths": paths});
            }
            Definition::SubAgent => config["agent"] = json!({&installed.name: sub_agent(installed)}),
        }
    }
    config
}

/// Returns the definition of a sub-agent for OpenCode's configuration. Keys that only Claude Code knows, such as a
/// list of tools as text, would make the configuration invalid.
fn sub_agent(agent: &Skill) -> Value {
    let mut about = json!({"description": agent.description, "mode": "subagent", "prompt": agent.body});
    let fits = |key: &str, value: &Value| match key {
        "tools" | "permission" => value.is_object(),
        "temperature" | "top_p" => value.is_number(),
        "model" => value.as_str().is_some_and(|model| model.contains('/')),
        _ => false,
    };
    for (key, value) in agent.frontmatter.iter().filter(|(key, value)| fits(key, value)) {
        about[key] = value.clone();
    }
    about
}

fn reads_project(setup: &Setup) -> bool {
    setup.setting_sources.iter().any(|source| matches!(source, SettingSource::Project | SettingSource::Local))
}

/// Returns the user's own configuration folder.
fn config_folder(host: &Host) -> Option<PathBuf> {
    let moved = host.var("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = moved.or_else(|| host.home.as_ref().map(|home| home.join(".config")))?.join("opencode");
    folder.is_dir().then_some(folder)
}

/// Creates the configuration folder with the addition to the system prompt, and links the user's sign-ins, which are
/// read and renewed in place.
fn lay_out(on: &SessionContext, home: &Path, provider: &Provider) -> io::Result<()> {
    let folder = home.join(CONFIG);
    std::fs::create_dir_all(folder.join("node_modules"))?;
    std::fs::write(folder.join("package-lock.json"), INSTALLED)?;
    if provider.is_defined() {
        std::fs::write(folder.join(MODELS), "{}")?;
    }
    if let Some(prompt) = &on.setup.system_prompt {
        std::fs::write(folder.join(INSTRUCTIONS), prompt)?;
    }
    provider.sign_in.as_ref().map_or(Ok(()), |sign_ins| link(sign_ins, &home.join(SIGN_INS)))
}

#[cfg(test)]
mod tests {
    use model::{Case, PluginParts, Subject};

    use super::*;
    use crate::tests::harness::AgentHarness;

    fn scripted(env: &[(&str, &str)]) -> AgentHarness {
        AgentHarness::for_program(env, "scripted:a.yaml", AgentHarness::gateway())
    }

    fn vendor(env: &[(&str, &str)], model: &str) -> AgentHarness {
        AgentHarness::for_program(env, model, Endpoint::Vendor { base_url: None })
    }

    fn prepare(harness: &AgentHarness) -> Result<Launch, Breakage> {
        Launch::prepare("/bin/opencode".into(), &harness.session_context())
    }

    fn prepared(harness: &AgentHarness) -> Launch {
        let mut context = harness.session_context();
        let case = Case { subject: Subject::Installed(sub_agent_of("greet", "").into()), ..(*context.case).clone() };
        context.case = case.into();
        Launch::prepare("/bin/opencode".into(), &context).unwrap()
    }

    fn variable<'a>(launch: &'a Launch, name: &str) -> Option<&'a str> {
        launch.invocation.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn config(launch: &Launch) -> Value {
        serde_json::from_str(variable(launch, "OPENCODE_CONFIG_CONTENT").unwrap()).unwrap()
    }

    #[test]
    fn settings_of_the_user_and_the_project_are_excluded() {
        let stage =
            scripted(&[("OPENAI_API_KEY", "sk-test"), ("OPENCODE_CONFIG", "/etc/x"), ("XDG_CONFIG_HOME", "/x")]);
        let launch = prepared(&stage);
        let names: Vec<&str> = launch.invocation.env.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "OPENCODE_DISABLE_AUTOUPDATE",
                "OPENCODE_DISABLE_MODELS_FETCH",
                "OPENCODE_DISABLE_LSP_DOWNLOAD",
                "OPENCODE_DISABLE_TERMINAL_TITLE",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS",
                "OPENCODE_DISABLE_PROJECT_CONFIG",
                "OPENCODE_DISABLE_EXTERNAL_SKILLS",
                "OPENCODE_DISABLE_CLAUDE_CODE",
                "OPENCODE_MODELS_PATH",
                "OPENCODE_CONFIG_CONTENT",
            ]
        );
        let config = config(&launch);
        assert_eq!((&config["model"], &config["small_model"]), (&json!("scripted/a.yaml"), &json!("scripted/a.yaml")));
        assert_eq!(config["enabled_providers"], json!(["scripted"]));
        assert_eq!(config["skills"]["paths"], json!([stage.bare().work().join(".opencode/skills/greet")]));
        assert_eq!(launch.invocation.auth, "scripted");
    }

    /// Returns a definition with these keys in its frontmatter.
    fn sub_agent_of(name: &str, keys: &str) -> Skill {
        Skill {
            name: name.to_owned(),
            description: "d".into(),
            directory: None,
            version: None,
            body: "Review.".into(),
            content_hash: String::new(),
            allowed_tools_raw: Vec::new(),
            allowed_tools: Vec::new(),
            token_budget: None,
            scripts: Vec::new(),
            frontmatter: serde_json::from_str(if keys.is_empty() { "{}" } else { keys }).unwrap(),
            plugin: None,
        }
    }

    #[test]
    fn sub_agent_keys_for_other_clis_are_omitted() {
        let own = r#"{"tools": {"bash": false}, "model": "anthropic/x", "temperature": 0.1, "color": "red"}"#;
        let definition = sub_agent(&sub_agent_of("r", own));
        let expected = json!({"description": "d", "mode": "subagent", "prompt": "Review.", "tools": {"bash": false},
            "model": "anthropic/x", "temperature": 0.1});
        assert_eq!(definition, expected);
        let definition = sub_agent(&sub_agent_of("r", r#"{"tools": "Read, Grep", "model": "haiku"}"#));
        assert_eq!(definition, json!({"description": "d", "mode": "subagent", "prompt": "Review."}));
    }

    #[test]
    fn the_sub_agents_of_a_plugin_are_defined() {
        let mut context = scripted(&[]).session_context();
        let plugin = PluginParts { sub_agents: vec![sub_agent_of("r", "").into()], ..PluginParts::default() };
        let mut skill = sub_agent_of("shop", "");
        (skill.plugin, skill.directory) = (Some(plugin.into()), Some("/nowhere".into()));
        let subject = Subject::Installed(skill.into());
        context.case = Case { subject, definition: Definition::Plugin, ..(*context.case).clone() }.into();
        let config = config(&Launch::prepare("/bin/opencode".into(), &context).unwrap());
        assert_eq!(config["agent"], json!({"r": {"description": "d", "mode": "subagent", "prompt": "Review."}}));
    }

    #[test]
    fn only_models_that_the_configuration_defines_do_without_opencodes_own_table() {
        let stage = scripted(&[]);
        let table = variable(&prepared(&stage), "OPENCODE_MODELS_PATH").map(std::fs::read_to_string);
        assert_eq!(table.unwrap().unwrap(), "{}");
        let is_named = |model| {
            let launch = prepared(&vendor(&[("OPENAI_API_KEY", "sk-test")], model));
            variable(&launch, "OPENCODE_MODELS_PATH").is_some()
        };
        assert_eq!((is_named("local-model"), is_named("openai/gpt-x")), (true, false));
    }

    #[test]
    fn a_session_has_a_title_so_that_no_model_has_to_write_one() {
        let mut stage = scripted(&[]);
        assert_eq!(
            prepared(&stage).invocation.args.join(" "),
            "run --format json --thinking --print-logs --log-level ERROR --title trialrun --auto"
        );
        stage.setup.permission_mode = PermissionMode::Default;
        stage.setup.reasoning_effort = Some("high".into());
        assert!(prepared(&stage).invocation.args.join(" ").ends_with("--title trialrun --variant high"));
    }

    #[test]
    fn the_system_prompt_is_a_file_of_instructions() {
        let mut stage = scripted(&[]);
        assert!(config(&prepared(&stage)).get("instructions").is_none());
        stage.setup.system_prompt = Some("Be kind.".into());
        let file = stage.bare().home().join(CONFIG).join(INSTRUCTIONS);
        assert_eq!(config(&prepared(&stage))["instructions"], json!([file]));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "Be kind.");
    }

    #[test]
    fn each_setting_source_enables_only_its_own_files() {
        let mut stage = scripted(&[]);
        let real = stage.bare().outside("real/.config/opencode");
        std::fs::create_dir_all(&real).unwrap();
        stage.setup.setting_sources = vec![SettingSource::User];
        let launch = prepared(&stage);
        assert_eq!(variable(&launch, "OPENCODE_CONFIG_DIR"), real.to_str());
        assert_eq!(variable(&launch, "OPENCODE_DISABLE_PROJECT_CONFIG"), Some("1"));
        stage.setup.setting_sources = vec![SettingSource::Project];
        let launch = prepared(&stage);
        assert_eq!(variable(&launch, "OPENCODE_CONFIG_DIR"), None);
        assert_eq!(variable(&launch, "OPENCODE_DISABLE_PROJECT_CONFIG"), None);
        assert!(config(&launch).get("skills").is_none(), "it is found where it is installed");
    }

    #[test]
    fn a_stored_sign_in_is_linked_and_keeps_its_plug_ins() {
        let stage = vendor(&[], "anthropic/x");
        let problem = prepare(&stage).unwrap_err().to_string();
        assert!(problem.starts_with("OpenCode is not signed in at `anthropic`: "), "{problem}");
        let stored = stage.bare().outside("real/.local/share/opencode/auth.json");
        std::fs::create_dir_all(stored.parent().unwrap()).unwrap();
        std::fs::write(&stored, r#"{"anthropic": {"type": "oauth"}}"#).unwrap();
        let launch = prepared(&stage);
        assert_eq!(
            (launch.invocation.auth, variable(&launch, "OPENCODE_DISABLE_DEFAULT_PLUGINS")),
            ("stored sign-in", None)
        );
        assert_eq!(std::fs::read_link(stage.bare().home().join(SIGN_INS)).unwrap(), stored);
        prepared(&stage);
    }

    #[test]
    fn a_key_is_passed_as_a_variable_and_is_not_in_the_configuration() {
        let stage = vendor(&[("ANTHROPIC_API_KEY", "sk-test-secret"), ("OPENAI_API_KEY", "sk-other")], "anthropic/x");
        let launch = prepared(&stage);
        assert_eq!(
            (launch.invocation.auth, variable(&launch, "ANTHROPIC_API_KEY")),
            ("api key", Some("sk-test-secret"))
        );
        assert_eq!(variable(&launch, "OPENAI_API_KEY"), None);
        assert!(!config(&launch).to_string().contains("sk-test-secret"));
    }

    #[test]
    fn servers_of_the_case_are_allowed_beside_a_closed_list() {
        let mut harness = scripted(&[]);
        harness.setup.closed_tools = Some(vec!["Read".into(), "mcp__docs__find".into()]);
        let mut context = harness.session_context();
        context.servers = ["issues", "docs"].map(crate::tests::harness::server).into();
        let launch = Launch::prepare("/bin/opencode".into(), &context).unwrap();
        let config = config(&launch);
        assert_eq!(config["mcp"]["issues"]["command"], json!(["/bin/issues"]));
        let permission = &config["permission"];
        assert_eq!(
            [&permission["issues_*"], &permission["docs_find"], &permission["docs_*"]],
            [&json!("allow"), &json!("allow"), &Value::Null]
        );
    }
}
