//! Sign-in of the CLI, and the configuration folder that it uses.

use std::path::{Path, PathBuf};

use model::SettingSource;
use sandbox::Host;

use crate::sign_in::SignIn;
use crate::{AddressError, Endpoint};

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
    /// Prefixes of variables that hold the provider's credentials or addresses. The CLI gets nothing else: its home is
    /// the sandbox's, so it finds files in the user's home only if a variable names them, such as
    /// `AWS_SHARED_CREDENTIALS_FILE` or `GOOGLE_APPLICATION_CREDENTIALS`.
    env_prefixes: &'static [&'static str],
    /// Variable with the address of the model.
    address: &'static str,
    /// Variables that hold the region, and the addresses for a region, in which `REGION` is a placeholder.
    regional: (&'static [&'static str], &'static [&'static str]),
}

const CLOUDS: [Cloud; 3] = [
    Cloud {
        switch: "CLAUDE_CODE_USE_BEDROCK",
        called: "Amazon Bedrock",
        env_prefixes: &["AWS_"],
        address: "ANTHROPIC_BEDROCK_BASE_URL",
        regional: (&["AWS_REGION", "AWS_DEFAULT_REGION"], &["https://bedrock-runtime.REGION.amazonaws.com"]),
    },
    Cloud {
        switch: "CLAUDE_CODE_USE_VERTEX",
        called: "Google Vertex AI",
        env_prefixes: &["GOOGLE_", "GCLOUD_PROJECT", "CLOUD_ML_REGION", "VERTEX_REGION_", "ANTHROPIC_VERTEX_"],
        address: "ANTHROPIC_VERTEX_BASE_URL",
        regional: (
            &["CLOUD_ML_REGION"],
            &["https://REGION-aiplatform.googleapis.com", "https://oauth2.googleapis.com"],
        ),
    },
    Cloud {
        switch: "CLAUDE_CODE_USE_FOUNDRY",
        called: "Microsoft Foundry",
        env_prefixes: &["AZURE_"],
        address: "ANTHROPIC_FOUNDRY_BASE_URL",
        regional: (&[], &[]),
    },
];

impl Cloud {
    fn is_on(&self, host: &Host) -> bool {
        let off = |value: &str| ["0", "false", "no", "off"].contains(&value.trim().to_ascii_lowercase().as_str());
        host.var(self.switch).is_some_and(|value| !value.trim().is_empty() && !off(value))
    }
}

/// Returns `true` if the host's variable `name` is passed to the CLI for a vendor's model: the CLI's own variables,
/// and those of an enabled cloud provider.
pub(super) fn is_lent(host: &Host, name: &str) -> bool {
    let of_cloud = |cloud: &Cloud| cloud.env_prefixes.iter().any(|start| name.starts_with(start)) && cloud.is_on(host);
    name.starts_with("ANTHROPIC_") || name.starts_with("CLAUDE_") || CLOUDS.iter().any(of_cloud)
}

/// Returns the addresses of the vendor's model, or of the enabled cloud provider.
///
/// # Errors
/// Returns the reason if they are not known.
pub(super) fn model_addresses(host: &Host) -> Result<Vec<String>, AddressError> {
    let Some(cloud) = CLOUDS.iter().find(|cloud| cloud.is_on(host)) else {
        return Ok(vec![host.var("ANTHROPIC_BASE_URL").unwrap_or("https://api.anthropic.com").to_owned()]);
    };
    let (variables, addresses) = cloud.regional;
    let region = variables.iter().find_map(|name| host.var(name));
    match (host.var(cloud.address), region) {
        (Some(address), _) => Ok(vec![address.to_owned()]),
        (None, Some(region)) => Ok(addresses.iter().map(|address| address.replace("REGION", region)).collect()),
        (None, None) => Err(AddressError::NoRegion { cloud: cloud.called, variable: cloud.address }),
    }
}

/// Returns the address to which the gateway can forward requests.
///
/// # Errors
/// Returns an error if a cloud provider is enabled: its requests are signed for its own host.
pub(super) fn forwarding_address(host: &Host) -> Result<String, AddressError> {
    match CLOUDS.iter().find(|cloud| cloud.is_on(host)) {
        Some(cloud) => Err(AddressError::Signed { agent: "Claude Code", cloud: cloud.called, variable: cloud.switch }),
        None => Ok(host.var("ANTHROPIC_BASE_URL").unwrap_or("https://api.anthropic.com").to_owned()),
    }
}

/// Returns the sign-in for `endpoint`.
pub(super) fn of(host: &Host, endpoint: &Endpoint) -> SignIn {
    SignIn::for_endpoint(endpoint, || detect(host))
}

/// Returns the sign-in for a vendor's model.
pub(super) fn detect(host: &Host) -> SignIn {
    // The CLI uses an enabled cloud provider before it looks for keys.
    let cloud = CLOUDS.iter().find(|cloud| cloud.is_on(host));
    let cloud = cloud.map(|cloud| SignIn::Lent { variable: cloud.switch, called: cloud.called });
    // On macOS the credentials are in the keychain, which only the CLI itself reads.
    let stored = || config_folder(host).map(|folder| folder.join(".credentials.json"));
    let stored = || stored().filter(|file| file.is_file() || cfg!(target_os = "macos")).map(SignIn::Subscription);
    cloud.or_else(|| SignIn::forwarded(host, &SECRETS)).or_else(stored).unwrap_or(SignIn::None)
}

/// Returns the user's own configuration folder.
pub(super) fn config_folder(host: &Host) -> Option<PathBuf> {
    let moved = host.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    moved.or_else(|| host.home.as_ref().map(|home| home.join(".claude")))
}

/// Returns the configuration folder for the agent, unless it is the sandbox's own.
pub(super) fn visible_folder(host: &Host, sign_in: &SignIn, sources: &[SettingSource]) -> Option<PathBuf> {
    let wanted = matches!(sign_in, SignIn::Subscription(_)) || sources.contains(&SettingSource::User);
    if wanted { config_folder(host) } else { None }
}

/// Returns the file that lists the user's own MCP servers, if the CLI would not find it. The file is next to the
/// configuration folder, but if a variable sets that folder, the CLI searches inside it.
pub(super) fn server_file(host: &Host, sources: &[SettingSource]) -> Option<PathBuf> {
    if !sources.contains(&SettingSource::User) || host.var("CLAUDE_CONFIG_DIR").is_some() {
        return None;
    }
    let file = host.home.as_ref()?.join(".claude.json");
    names_servers(&file).then_some(file)
}

fn names_servers(file: &Path) -> bool {
    let config = std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    config.is_some_and(|config| config["mcpServers"].as_object().is_some_and(|servers| !servers.is_empty()))
}

#[cfg(test)]
mod tests {
    use sandbox::supervise::Supervisor;

    use super::*;

    fn host(env: &[(&str, &str)]) -> Host {
        Host {
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            home: None,
            temp: std::env::temp_dir(),
            supervisor: Supervisor::unchecked("/bin/true").unwrap(),
        }
    }

    #[test]
    fn the_address_of_the_model_depends_on_the_provider_and_its_region() {
        let addresses = |env: &[(&str, &str)]| model_addresses(&host(env)).map(|addresses| addresses.join(" "));
        let address = |text: &str| Ok(text.to_owned());
        assert_eq!(addresses(&[]), address("https://api.anthropic.com"));
        assert_eq!(addresses(&[("ANTHROPIC_BASE_URL", "http://x")]), address("http://x"));
        let bedrock = ("CLAUDE_CODE_USE_BEDROCK", "1");
        let region = ("AWS_REGION", "eu-west-1");
        assert_eq!(addresses(&[bedrock, region]), address("https://bedrock-runtime.eu-west-1.amazonaws.com"));
        let own = ("ANTHROPIC_BEDROCK_BASE_URL", "http://y");
        assert_eq!(addresses(&[bedrock, region, own]), address("http://y"));
        assert!(addresses(&[bedrock]).unwrap_err().to_string().contains("ANTHROPIC_BEDROCK_BASE_URL"));
        let vertex = [("CLAUDE_CODE_USE_VERTEX", "1"), ("CLOUD_ML_REGION", "us-east5")];
        let expected = "https://us-east5-aiplatform.googleapis.com https://oauth2.googleapis.com";
        assert_eq!(addresses(&vertex), address(expected));
    }
}
