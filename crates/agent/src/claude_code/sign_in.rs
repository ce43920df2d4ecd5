//! Sign-in of the CLI, and the configuration folder it uses.

use std::path::{Path, PathBuf};

use model::SettingSource;
use sandbox::Host;

use crate::Endpoint;

/// Sign-in of the CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignIn {
    /// The trial's own token, at the gateway.
    Scripted,
    /// A key or a token from the environment; with its name.
    Lent(&'static str),
    /// Credentials in the user's configuration folder. The folder is used in place, never copied or linked.
    Subscription,
    /// No sign-in.
    None,
}

/// Variables that hold credentials, in the order in which the CLI reads them, with the names of the sign-ins.
const SECRETS: [(&str, &str); 3] = [
    ("ANTHROPIC_AUTH_TOKEN", "auth token"),
    ("ANTHROPIC_API_KEY", "api key"),
    ("CLAUDE_CODE_OAUTH_TOKEN", "oauth token"),
];

/// A cloud provider with its own sign-in.
struct Cloud {
    /// Variable that enables the provider.
    switch: &'static str,
    /// Name of the sign-in.
    called: &'static str,
    /// Prefixes of variables that hold credentials or addresses of the provider. The CLI gets nothing else: its home is
    /// the sandbox's, so it finds files in the user's home only if a variable names them, such as
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

/// Returns `true` if the variable `name` of `host` is passed to the CLI for a vendor's model: the CLI's own variables,
/// and those of an enabled cloud provider.
pub(super) fn is_lent(host: &Host, name: &str) -> bool {
    let of_cloud = |cloud: &Cloud| cloud.lent.iter().any(|start| name.starts_with(start)) && cloud.is_on(host);
    name.starts_with("ANTHROPIC_") || name.starts_with("CLAUDE_") || CLOUDS.iter().any(of_cloud)
}

impl SignIn {
    /// Returns the sign-in for `endpoint`.
    pub(super) fn of(host: &Host, endpoint: &Endpoint) -> Self {
        match endpoint {
            Endpoint::Gateway { .. } | Endpoint::Script(_) | Endpoint::Provider(_) => Self::Scripted,
            Endpoint::Vendor { .. } => Self::at_the_vendor(host),
        }
    }

    /// Returns the sign-in for a vendor's model.
    pub(super) fn at_the_vendor(host: &Host) -> Self {
        // The CLI uses an enabled cloud provider before it looks for keys.
        let cloud = CLOUDS.iter().find(|cloud| cloud.is_on(host)).map(|cloud| cloud.called);
        let key = || SECRETS.iter().find(|(name, _)| host.var(name).is_some()).map(|(_, called)| *called);
        if let Some(called) = cloud.or_else(key) {
            return Self::Lent(called);
        }
        // On macOS the credentials are in the keychain, which only the CLI itself reads.
        let stored = config_folder(host).is_some_and(|folder| folder.join(".credentials.json").is_file());
        if stored || cfg!(target_os = "macos") { Self::Subscription } else { Self::None }
    }

    /// Returns the name of the sign-in, without secrets.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Lent(called) => called,
            Self::Subscription => "subscription",
            Self::None => "not signed in",
        }
    }
}

/// Returns the user's own configuration folder.
pub(super) fn config_folder(host: &Host) -> Option<PathBuf> {
    let moved = host.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    moved.or_else(|| host.home.as_ref().map(|home| home.join(".claude")))
}

/// Returns the configuration folder for the agent, if it is not the sandbox's own.
pub(super) fn visible_folder(host: &Host, sign_in: &SignIn, sources: &[SettingSource]) -> Option<PathBuf> {
    let wanted = *sign_in == SignIn::Subscription || sources.contains(&SettingSource::User);
    if wanted { config_folder(host) } else { None }
}

/// Returns the file that names the user's own MCP servers, if the CLI does not find it by itself. The file is beside
/// the configuration folder, but the CLI searches inside the folder if a variable names that.
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
