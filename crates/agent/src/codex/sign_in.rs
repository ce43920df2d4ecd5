//! Sign-in of the CLI, and the user's files that it sees.

use std::path::PathBuf;

use model::SettingSource;
use sandbox::Host;

use crate::sign_in::SignIn;

/// File in Codex's home that holds the sign-in.
pub(super) const AUTH_FILE: &str = "auth.json";

/// Variables that hold credentials, in the order in which they are read, with the names of the sign-ins.
const SECRETS: [(&str, &str); 3] =
    [("CODEX_API_KEY", "api key"), ("OPENAI_API_KEY", "api key"), ("CODEX_ACCESS_TOKEN", "access token")];

/// Variables that specify the account and trusted certificates. They hold no secrets.
const BESIDE: [&str; 3] = ["OPENAI_ORGANIZATION", "OPENAI_PROJECT", "CODEX_CA_CERTIFICATE"];

/// Returns the sign-in for a vendor's model.
pub(super) fn detect(host: &Host) -> SignIn {
    let stored = || users_home(host).map(|home| home.join(AUTH_FILE)).filter(|file| file.is_file());
    SignIn::forwarded(host, &SECRETS).or_else(|| stored().map(SignIn::Subscription)).unwrap_or(SignIn::None)
}

/// Returns the address of the vendor's model, which depends on the sign-in.
pub(super) fn model_address(host: &Host) -> &'static str {
    match detect(host) {
        SignIn::Subscription(_) => "https://chatgpt.com",
        _ => "https://api.openai.com",
    }
}

/// Returns the address of the vendor's API, with its version. It depends on the sign-in.
pub(super) fn api_address(host: &Host) -> &'static str {
    match detect(host) {
        SignIn::Subscription(_) => "https://chatgpt.com/backend-api/codex",
        _ => "https://api.openai.com/v1",
    }
}

/// Returns the host's variables that are passed on in addition to the credentials.
pub(super) fn forwarded_variables(host: &Host) -> impl Iterator<Item = (String, String)> {
    BESIDE.iter().filter_map(|name| Some(((*name).to_owned(), host.var(name)?.to_owned())))
}

/// Returns the user's own Codex home.
pub(super) fn users_home(host: &Host) -> Option<PathBuf> {
    let moved = host.var("CODEX_HOME").map(PathBuf::from);
    moved.or_else(|| host.home.as_ref().map(|home| home.join(".codex")))
}

/// Returns the Codex home for the agent, unless it is the sandbox's own.
pub(super) fn visible_home(host: &Host, sources: &[SettingSource]) -> Option<PathBuf> {
    users_home(host).filter(|_| sources.contains(&SettingSource::User))
}
