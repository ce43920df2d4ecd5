//! How the CLI is signed in, and which configuration folder it sees.

use std::path::{Path, PathBuf};

use model::SettingSource;
use sandbox::Host;

use crate::Endpoint;

/// How the CLI is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignIn {
    /// With the trial's own token, at the gateway.
    Scripted,
    /// With a key or a token from the environment.
    Lent(&'static str),
    /// With what the user's configuration folder holds. It is used in place, never copied or linked.
    Subscription,
    /// Not at all.
    None,
}

/// Variables that sign in, in the order the CLI looks at them, and what that is called.
const SECRETS: [(&str, &str); 3] = [
    ("ANTHROPIC_AUTH_TOKEN", "auth token"),
    ("ANTHROPIC_API_KEY", "api key"),
    ("CLAUDE_CODE_OAUTH_TOKEN", "oauth token"),
];

/// A cloud provider whose own sign-in the CLI uses.
struct Cloud {
    /// The variable that says so.
    switch: &'static str,
    /// What the sign-in is called.
    called: &'static str,
    /// How the names of variables begin that sign in there or say where it is. They are all the CLI has: its home is the
    /// sandbox's, so files in the user's home are found only where a variable names them, such as
    /// `AWS_SHARED_CREDENTIALS_FILE` or `GOOGLE_APPLICATION_CREDENTIALS`.
    lent: &'static [&'static str],
}

const CLOUDS: [Cloud; 3] = [
    Cloud { switch: "CLAUDE_CODE_USE_BEDROCK", called: "Amazon Bedrock", lent: &["AWS_"] },
    Cloud {
        switch: "CLAUDE_CODE_USE_VERTEX",
        called: "Google Vertex AI",
        lent: &["GOOGLE_", "GCLOUD_PROJECT", "CLOUD_ML_REGION", "VERTEX_REGION_", "ANTHROPIC_VERTEX_"],
    },
    Cloud { switch: "CLAUDE_CODE_USE_FOUNDRY", called: "Microsoft Foundry", lent: &["AZURE_"] },
];

impl Cloud {
    fn is_on(&self, host: &Host) -> bool {
        let off = |value: &str| ["0", "false", "no", "off"].contains(&value.trim().to_ascii_lowercase().as_str());
        host.var(self.switch).is_some_and(|value| !value.trim().is_empty() && !off(value))
    }
}

/// Whether the CLI is to see the variable `name` of `host` where the vendor has its model: its own variables, and those
/// of a cloud provider that is switched on.
pub(super) fn is_lent(host: &Host, name: &str) -> bool {
    let of_cloud = |cloud: &Cloud| cloud.lent.iter().any(|start| name.starts_with(start)) && cloud.is_on(host);
    name.starts_with("ANTHROPIC_") || name.starts_with("CLAUDE_") || CLOUDS.iter().any(of_cloud)
}

impl SignIn {
    /// How it is signed in at `endpoint`.
    pub(super) fn of(host: &Host, endpoint: &Endpoint) -> Self {
        match endpoint {
            Endpoint::Gateway { .. } | Endpoint::Script(_) | Endpoint::Provider(_) => Self::Scripted,
            Endpoint::Vendor { .. } => Self::at_the_vendor(host),
        }
    }

    /// How it is signed in where the vendor has its model.
    pub(super) fn at_the_vendor(host: &Host) -> Self {
        // The CLI asks a cloud provider that is switched on before it looks at keys.
        let cloud = CLOUDS.iter().find(|cloud| cloud.is_on(host)).map(|cloud| cloud.called);
        let key = || SECRETS.iter().find(|(name, _)| host.var(name).is_some()).map(|(_, called)| *called);
        if let Some(called) = cloud.or_else(key) {
            return Self::Lent(called);
        }
        // On macOS the credentials are in the keychain, where only the CLI itself looks.
        let stored = config_folder(host).is_some_and(|folder| folder.join(".credentials.json").is_file());
        if stored || cfg!(target_os = "macos") { Self::Subscription } else { Self::None }
    }

    /// In words that hold no secret.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Lent(called) => called,
            Self::Subscription => "subscription",
            Self::None => "not signed in",
        }
    }
}

/// The user's own configuration folder.
pub(super) fn config_folder(host: &Host) -> Option<PathBuf> {
    let moved = host.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    moved.or_else(|| host.home.as_ref().map(|home| home.join(".claude")))
}

/// The configuration folder that the agent is to see, where it is not the sandbox's own.
pub(super) fn visible_folder(host: &Host, sign_in: &SignIn, sources: &[SettingSource]) -> Option<PathBuf> {
    let wanted = *sign_in == SignIn::Subscription || sources.contains(&SettingSource::User);
    if wanted { config_folder(host) } else { None }
}

/// The file that names the user's own MCP servers, where the CLI does not find it by itself: it lies beside the
/// configuration folder, but is looked for in it once the folder is named.
pub(super) fn server_file(host: &Host, sources: &[SettingSource]) -> Option<PathBuf> {
    if !sources.contains(&SettingSource::User) || host.var("CLAUDE_CONFIG_DIR").is_some() {
        return None;
    }
    let file = host.home.as_ref()?.join(".claude.json");
    names_servers(&file).then_some(file)
}

fn names_servers(file: &Path) -> bool {
    let read = std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    read.is_some_and(|config| {
        config.get("mcpServers").and_then(serde_json::Value::as_object).is_some_and(|servers| !servers.is_empty())
    })
}
