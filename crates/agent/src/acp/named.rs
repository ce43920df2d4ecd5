//! Agents that are known by name: how each is started, and its deviations. One line of [`agents`] is an agent.

use model::PermissionMode;

use crate::program::Program;
use crate::{Costs, Description};

/// An agent that is known by name.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    pub(super) description: Description,
    /// Arguments of its program that select the protocol.
    pub(super) args: &'static [&'static str],
    /// Arguments that set the model, before its name; empty if the protocol sets it.
    pub(super) model_args: &'static [&'static str],
    /// Prefix of the name of a scripted model in these arguments.
    pub(super) model_prefix: &'static str,
    /// Variables that hold its credentials, or where they are valid. They are passed on.
    pub(super) keys: &'static [&'static str],
    /// Files below the user's home that hold a sign-in. They are linked into the home of the sandbox.
    pub(super) sign_ins: &'static [&'static str],
    /// Files that are created in the home of the sandbox, with their contents.
    pub(super) home: &'static [(&'static str, &'static str)],
    /// Variables that are set, with values in which `{home}` is replaced by the home of the sandbox.
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// Further variables for a scripted model, with values in which `{model}` is replaced by its name.
    pub(super) scripted_variables: &'static [(&'static str, &'static str)],
    /// How the address of its model is set.
    pub(super) model: ModelAddress,
    /// Cloud provider that it uses instead, and the variable that enables it.
    pub(super) cloud: Option<(&'static str, &'static str)>,
    /// Method with which it is signed in if it asks for that and a key is set.
    pub(super) auth_method: Option<&'static str>,
    /// Names of its modes for permission modes, if they differ from the usual ones.
    pub(super) modes: &'static [(PermissionMode, &'static str)],
    /// True if it reads and writes files itself, because its use of this program's files is broken.
    pub(super) has_own_files: bool,
    /// True if it reports only the tokens of the last model request of a reply.
    pub(super) hides_tokens: bool,
    /// True if it does not report all of its calls.
    pub(super) hides_calls: bool,
}

/// How the address of an agent's model is set.
#[derive(Debug, Clone, Copy)]
pub(super) enum ModelAddress {
    /// It cannot be set.
    Unknown,
    /// By variables.
    Variables {
        /// Variable for the address.
        address: &'static str,
        /// Value of this variable, in which `{address}` is replaced; `None` if it is the address itself.
        form: Option<&'static str>,
        /// Path that follows the address of the gateway.
        path: &'static str,
        /// Variable for the key.
        key: &'static str,
        /// Variable for the name of the model; `None` if the protocol sets it.
        model: Option<&'static str>,
        /// The vendor's address.
        vendor: &'static str,
    },
    /// As for the `opencode` agent.
    OpenCode,
    /// As for the `codex` agent.
    Codex,
}

impl Named {
    const NONE: Self = Self {
        description: Description::new("", ""),
        args: &[],
        model_args: &[],
        model_prefix: "",
        keys: &[],
        sign_ins: &[],
        home: &[],
        variables: &[],
        scripted_variables: &[],
        model: ModelAddress::Unknown,
        cloud: None,
        auth_method: None,
        modes: &[],
        has_own_files: false,
        hides_tokens: false,
        hides_calls: false,
    };
}

/// Folder of skills that several agents share.
const SKILLS: &str = ".agents/skills";

/// Gemini's settings: no statistics, no update, and commands without a terminal, which `isolated` sandboxes do not have.
const GEMINI_SETTINGS: &str = r#"{"tools":{"shell":{"enableInteractiveShell":false}},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"enableAutoUpdate":false}}"#;
/// Qwen's settings, which also select the kind of key. Suggestions for the next message, and memories for later sessions,
/// would be model requests that no user asked for.
const QWEN_SETTINGS: &str = r#"{"security":{"auth":{"selectedType":"openai"}},"tools":{"shell":{"enableInteractiveShell":false}},"ui":{"enableFollowupSuggestions":false},"memory":{"enableManagedAutoMemory":false,"enableManagedAutoDream":false,"enableAutoSkill":false},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"enableAutoUpdate":false}}"#;

const ANTHROPIC: ModelAddress = ModelAddress::Variables {
    address: "ANTHROPIC_BASE_URL",
    form: None,
    path: "",
    key: "ANTHROPIC_API_KEY",
    model: Some("ANTHROPIC_MODEL"),
    vendor: "https://api.anthropic.com",
};
const OPENAI: ModelAddress = ModelAddress::Variables {
    address: "OPENAI_BASE_URL",
    form: None,
    path: "/v1",
    key: "OPENAI_API_KEY",
    model: Some("OPENAI_MODEL"),
    vendor: "https://api.openai.com/v1",
};
const GOOGLE: ModelAddress = ModelAddress::Variables {
    address: "GOOGLE_GEMINI_BASE_URL",
    form: None,
    path: "",
    key: "GEMINI_API_KEY",
    model: None,
    vendor: "https://generativelanguage.googleapis.com",
};
const OPENAI_BY_ARGUMENT: ModelAddress = ModelAddress::Variables {
    address: "OPENAI_BASE_URL",
    form: None,
    path: "/v1",
    key: "OPENAI_API_KEY",
    model: None,
    vendor: "https://api.openai.com/v1",
};
/// Vibe's list of providers has the address.
const MISTRAL: ModelAddress = ModelAddress::Variables {
    address: "VIBE_PROVIDERS",
    form: Some(r#"[{"name":"mistral","api_base":"{address}","api_key_env_var":"MISTRAL_API_KEY"}]"#),
    path: "/v1",
    key: "MISTRAL_API_KEY",
    model: None,
    vendor: "https://api.mistral.ai/v1",
};
/// Vibe's list of models must contain the one that is selected.
const VIBE_MODEL: &[(&str, &str)] = &[
    ("VIBE_MODELS", r#"[{"name":"{model}","provider":"mistral","alias":"{model}"}]"#),
    ("VIBE_ACTIVE_MODEL", "{model}"),
];
/// Nothing is sent to the vendor, and no title of the session is asked of the model.
const VIBE_VARIABLES: &[(&str, &str)] = &[
    ("VIBE_ENABLE_TELEMETRY", "false"),
    ("VIBE_ENABLE_UPDATE_CHECKS", "false"),
    ("VIBE_ENABLE_CONNECTORS", "false"),
    ("VIBE_SESSION_LOGGING__GENERATE_TITLES", "false"),
];

macro_rules! agents {
    ($($id:ident = $name:literal, $about:literal, [$command:literal $(, $arg:literal)*], $variable:literal,
       $install:literal, $min_version:expr, $skills:expr, $wire:expr, $sign_in:literal,
       { $($field:ident: $value:expr),* $(,)? };)*) => {
        $(
            pub(crate) static $id: Named = Named {
                description: Description {
                    program: Some(&Program {
                        command: $command,
                        variable: $variable,
                        install: $install,
                        update: $install,
                        min_version: $min_version,
                        environment: &[],
                        sign_in: $sign_in,
                    }),
                    answers_in_text: true,
                    reports_permissions: true,
                    takes_config: true,
                    takes_servers: true,
                    skills_folder: $skills,
                    wire: $wire,
                    costs: Costs::MayReport,
                    is_by_protocol: true,
                    ..Description::new($name, $about)
                },
                args: &[$($arg),*],
                $($field: $value,)*
                ..Named::NONE
            };
        )*

        /// All of them, in the order of the reference.
        pub(super) static ALL: &[&Named] = &[$(&$id),*];
    };
}

// Name, description, command line, variable for the program, installation, oldest tested version, folder of skills, wire
// format of the model, sign-in, deviations.
agents! {
    GEMINI = "gemini", "Gemini CLI, by the Agent Client Protocol", ["gemini", "--acp", "--skip-trust"], "TRIALRUN_GEMINI", "npm install -g @google/gemini-cli", Some([0, 61, 0]), Some(".gemini/skills"), Some("gemini"), "set GEMINI_API_KEY, or run `gemini` to sign in", { model_args: &["-m"], keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_GEMINI_BASE_URL"], sign_ins: &[".gemini/oauth_creds.json", ".gemini/google_accounts.json"], home: &[(".gemini/settings.json", GEMINI_SETTINGS)], variables: &[("GEMINI_CLI_NO_RELAUNCH", "true"), ("GEMINI_TELEMETRY_ENABLED", "false")], model: GOOGLE, cloud: Some(("Google Vertex AI", "GOOGLE_GENAI_USE_VERTEXAI")), auth_method: Some("gemini-api-key"), has_own_files: true };
    QWEN = "qwen", "Qwen Code, by the Agent Client Protocol", ["qwen", "--acp"], "TRIALRUN_QWEN", "npm install -g @qwen-code/qwen-code", Some([0, 15, 10]), Some(".qwen/skills"), Some("openai"), "set OPENAI_API_KEY, and OPENAI_BASE_URL for another address", { keys: &["OPENAI_API_KEY", "OPENAI_BASE_URL"], home: &[(".qwen/settings.json", QWEN_SETTINGS)], variables: &[("QWEN_CODE_NO_RELAUNCH", "1")], model: OPENAI, auth_method: Some("openai") };
    GOOSE = "goose", "Goose, by the Agent Client Protocol", ["goose", "acp"], "TRIALRUN_GOOSE", "brew install block-goose-cli", None, Some(SKILLS), None, "run `goose configure`", { keys: &["GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"], sign_ins: &[".config/goose/config.yaml", ".config/goose/secrets.yaml"] };
    COPILOT = "copilot", "GitHub Copilot CLI, by the Agent Client Protocol", ["copilot", "--acp", "--stdio"], "TRIALRUN_COPILOT", "npm install -g @github/copilot", Some([1, 0, 102]), Some(".github/skills"), None, "set GH_TOKEN, or run `copilot` and `/login`", { keys: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"], sign_ins: &[".copilot/config.json"] };
    AUGGIE = "auggie", "Auggie, by the Agent Client Protocol", ["auggie", "--acp"], "TRIALRUN_AUGGIE", "npm install -g @augmentcode/auggie", Some([0, 36, 0]), Some(SKILLS), None, "set AUGMENT_SESSION_AUTH, or run `auggie login`", { keys: &["AUGMENT_SESSION_AUTH", "AUGMENT_API_TOKEN", "AUGMENT_API_URL"], sign_ins: &[".augment/session.json"] };
    CLINE = "cline", "Cline, by the Agent Client Protocol", ["cline", "--acp"], "TRIALRUN_CLINE", "npm install -g cline", Some([3, 0, 65]), Some(".cline/skills"), None, "run `cline auth`", { keys: &["CLINE_API_KEY"] };
    KILO = "kilo", "Kilo Code, by the Agent Client Protocol", ["kilo", "acp"], "TRIALRUN_KILO", "npm install -g @kilocode/cli", None, Some(SKILLS), None, "run `kilo auth login`", { keys: &["KILO_API_KEY"], sign_ins: &[".local/share/kilo/auth.json"] };
    QODER = "qoder", "Qoder CLI, by the Agent Client Protocol", ["qodercli", "--acp"], "TRIALRUN_QODER", "npm install -g @qoder-ai/qodercli", Some([1, 1, 52]), Some(SKILLS), None, "set QODER_PERSONAL_ACCESS_TOKEN, or run `qodercli` and `/login`", { keys: &["QODER_PERSONAL_ACCESS_TOKEN"] };
    PI = "pi", "pi, by the adapter `pi-acp`", ["pi-acp"], "TRIALRUN_PI", "npm install -g pi-acp @earendil-works/pi-coding-agent", None, Some(SKILLS), None, "set the provider's key, such as ANTHROPIC_API_KEY, or run `pi` and `/login`", { keys: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"], sign_ins: &[".pi/agent/auth.json"] };
    VIBE = "vibe", "Mistral Vibe, by the Agent Client Protocol", ["vibe-acp"], "TRIALRUN_VIBE", "pip install mistral-vibe", Some([3, 0, 3]), Some(".vibe/skills"), Some("openai"), "set MISTRAL_API_KEY", { keys: &["MISTRAL_API_KEY"], variables: VIBE_VARIABLES, scripted_variables: VIBE_MODEL, model: MISTRAL, modes: &[(PermissionMode::Default, "ask"), (PermissionMode::AcceptEdits, "ask"), (PermissionMode::BypassPermissions, "ask"), (PermissionMode::Plan, "ask")] };
    FAST_AGENT = "fast-agent", "fast-agent, by the Agent Client Protocol", ["fast-agent", "acp", "--shell"], "TRIALRUN_FAST_AGENT", "pip install fast-agent-acp", Some([0, 10, 48]), Some(SKILLS), Some("openai"), "set the provider's key, such as OPENAI_API_KEY", { model_args: &["--model"], model_prefix: "openai.", keys: &["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENAI_BASE_URL"], variables: &[("FAST_AGENT_HOME", "{home}/.fast-agent")], model: OPENAI_BY_ARGUMENT };
    CURSOR = "cursor", "Cursor CLI, by the Agent Client Protocol", ["cursor-agent", "acp"], "TRIALRUN_CURSOR", "curl https://cursor.com/install -fsS | bash", None, Some(".cursor/skills"), None, "set CURSOR_API_KEY, or run `cursor-agent login`", { keys: &["CURSOR_API_KEY"] };
    OPENCODE = "opencode-acp", "OpenCode, by the Agent Client Protocol", ["opencode", "acp"], "TRIALRUN_OPENCODE", "npm install -g opencode-ai", None, Some(".opencode/skills"), Some("openai"), "set the provider's key, such as ANTHROPIC_API_KEY, or run `opencode auth login`", { model: ModelAddress::OpenCode, hides_tokens: true };
    CLAUDE = "claude-acp", "Claude Code, by the adapter `claude-agent-acp`", ["claude-agent-acp"], "TRIALRUN_CLAUDE_ACP", "npm install -g @agentclientprotocol/claude-agent-acp", None, Some(".claude/skills"), Some("anthropic"), "set ANTHROPIC_API_KEY", { keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"], variables: &[("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "false"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), ("DISABLE_AUTOUPDATER", "1"), ("IS_SANDBOX", "1")], model: ANTHROPIC };
    CODEX = "codex-acp", "Codex, by the adapter `codex-acp`", ["codex-acp"], "TRIALRUN_CODEX_ACP", "npm install -g @agentclientprotocol/codex-acp", None, Some(SKILLS), Some("openai-responses"), "set OPENAI_API_KEY, or run `codex login`", { model: ModelAddress::Codex, auth_method: Some("openai-api-key"), modes: &[(PermissionMode::Default, "workspace-write"), (PermissionMode::AcceptEdits, "workspace-write"), (PermissionMode::BypassPermissions, "agent-full-access"), (PermissionMode::Plan, "read-only")], hides_calls: true };
}

/// Returns the mode of an agent for a permission mode. Other modes decide on permissions themselves, sometimes with requests
/// to the model.
pub(super) fn mode_of(named: Option<&Named>, permission_mode: PermissionMode) -> &'static str {
    let own = named.and_then(|named| named.modes.iter().find(|(mode, _)| *mode == permission_mode));
    match (own, permission_mode) {
        (Some((_, own)), _) => own,
        (None, PermissionMode::Plan) => "plan",
        (None, _) => "default",
    }
}

impl Named {
    /// Returns `true` if its configuration contains the system prompt.
    pub(super) fn configures_prompt(&self) -> bool {
        matches!(self.model, ModelAddress::OpenCode | ModelAddress::Codex)
    }

    /// Returns `true` if an argument, a variable or a file names the model, and not a request of the protocol.
    pub(super) fn sets_model(&self) -> bool {
        let has_variable = match &self.model {
            ModelAddress::Unknown => false,
            ModelAddress::Variables { model, .. } => model.is_some(),
            ModelAddress::OpenCode | ModelAddress::Codex => true,
        };
        has_variable || !self.model_args.is_empty()
    }
}
