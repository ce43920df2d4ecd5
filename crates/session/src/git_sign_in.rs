//! Credentials for the repository that sandboxes are cloned from, lent to the agent if the user allows it.
//!
//! The user's git clones the repository with the user's credential helpers. The agent has neither the user's home nor
//! these helpers, so their answer is put into its environment, together with a helper that reads it from there.
//! Nothing is written to a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sandbox::{Host, supervise};

use crate::error::Error;

/// Variables that the agent's helper reads. The name of the second marks it as a secret, so it is masked in all
/// output.
const USERNAME: &str = "TRIALRUN_GIT_USERNAME";
const PASSWORD: &str = "TRIALRUN_GIT_PASSWORD";

/// Time limit for the user's helper.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of the helper's answer, in bytes.
const MAX_OUTPUT: usize = 64 * 1024;

/// Script that asks the user's git for credentials. Arguments: protocol, host, path.
const ASK: &str = "printf 'protocol=%s\\nhost=%s\\npath=%s\\n\\n' \"$1\" \"$2\" \"$3\" | git credential fill";

/// Credential helper for the agent's git.
const HELPER: &str = "!f() { test \"$1\" = get && printf \"username=%s\\npassword=%s\\n\" \"$TRIALRUN_GIT_USERNAME\" \"$TRIALRUN_GIT_PASSWORD\"; }; f";

/// Common variables with tokens, each with its host and the user name to use.
const TOKENS: [(&str, &str, &str); 4] = [
    ("github.com", "GH_TOKEN", "x-access-token"),
    ("github.com", "GITHUB_TOKEN", "x-access-token"),
    ("gitlab.com", "GITLAB_TOKEN", "oauth2"),
    ("gitlab.com", "GL_TOKEN", "oauth2"),
];

/// URL that requires credentials.
#[derive(Debug, PartialEq)]
struct Address<'a> {
    protocol: &'a str,
    host: &'a str,
    path: &'a str,
    /// Credentials contained in the URL.
    own: Option<(&'a str, &'a str)>,
}

impl<'a> Address<'a> {
    fn parse(written: &'a str) -> Option<Self> {
        let (protocol, rest) = written.split_once("://")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let own = user.and_then(|user| user.split_once(':')).filter(|(_, password)| !password.is_empty());
        (["https", "http"].contains(&protocol) && !host.is_empty()).then_some(Self { protocol, host, path, own })
    }
}

/// Returns the variables with which the agent can sign in to `source_repo` like the user.
///
/// # Errors
/// Returns an error if credentials do not apply to this kind of URL, or the user has none for it.
pub fn variables(source_repo: Option<&str>, host: &Host) -> Result<Vec<(String, String)>, Error> {
    let address = source_repo.and_then(Address::parse).ok_or_else(|| {
        Error::usage("`--lend-git-sign-in` needs a `--source-repo` with an `https://` address")
            .hint("ssh keys are not lent; use an `https://` address")
    })?;
    let sign_in = match address.own {
        Some((username, password)) => (username.to_owned(), password.to_owned()),
        None => asked(&address, host)?.or_else(|| token(address.host, &host.env)).ok_or_else(|| {
            Error::usage(format!("git has no credentials for {}", address.host))
                .hint("set up `git credential fill` for it, or set `GH_TOKEN` or `GITLAB_TOKEN`")
        })?,
    };
    let key = format!("credential.{}://{}.helper", address.protocol, address.host);
    let quoted = |value: &str| format!("'{}'", value.replace('\'', "'\\''"));
    // An empty helper clears the ones that are set elsewhere.
    let parameters = [format!("{key}="), format!("{key}={HELPER}")].map(|parameter| quoted(&parameter)).join(" ");
    Ok(vec![
        (USERNAME.to_owned(), sign_in.0),
        (PASSWORD.to_owned(), sign_in.1),
        // Not `GIT_CONFIG_KEY_0`, because Codex hides variables with `KEY` in their names from commands.
        ("GIT_CONFIG_PARAMETERS".to_owned(), parameters),
    ])
}

/// Returns the answer from the user's own helpers; `None` if they have no credentials.
fn asked(address: &Address<'_>, host: &Host) -> Result<Option<(String, String)>, Error> {
    let failed = |error: std::io::Error| Error::environment(format!("cannot ask git for credentials: {error}"));
    let mut host = host.clone();
    // These programs belong to the user and run with the user's ids.
    host.supervisor.floor = true;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let arguments = ["-c", ASK, "sh", address.protocol, address.host, address.path];
    let mut command = host.supervisor.command("/bin/sh", arguments);
    let silent = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_ASKPASS", "true"), ("SSH_ASKPASS", "true")];
    command.envs(&host.env).envs(silent).current_dir(Path::new("/"));
    let output = runtime.block_on(async { supervise::run(command, TIMEOUT, MAX_OUTPUT).await }).map_err(failed)?;
    let text = output.stdout.text();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned);
    let both = value("username").zip(value("password")).filter(|(_, password)| !password.is_empty());
    Ok(both.filter(|_| output.status.success()))
}

/// Returns a token from the environment for the service at `host`.
fn token(host: &str, environment: &BTreeMap<String, String>) -> Option<(String, String)> {
    let mut known = TOKENS.iter().filter(|(service, ..)| *service == host);
    known.find_map(|(_, variable, username)| {
        let token = environment.get(*variable).filter(|token| !token.is_empty())?;
        Some(((*username).to_owned(), token.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_with_password_authentication_are_accepted() {
        let of = |written| Address::parse(written).map(|address| (address.host, address.path, address.own));
        assert_eq!(of("https://host:8443/a/b.git"), Some(("host:8443", "a/b.git", None)));
        assert_eq!(of("https://ada:pw@host/a"), Some(("host", "a", Some(("ada", "pw")))));
        assert_eq!(of("https://ada@host/a"), Some(("host", "a", None)));
        for other in ["git@host:a/b.git", "ssh://git@host/a", "/srv/a.git", "file:///srv/a.git", "https:///a"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_token_is_sent_only_to_its_own_service() {
        let environment = BTreeMap::from([("GITHUB_TOKEN".to_owned(), "t".to_owned())]);
        assert_eq!(token("github.com", &environment), Some(("x-access-token".into(), "t".into())));
        assert_eq!(token("gitlab.com", &environment), None);
        assert_eq!(token("github.com.evil.example", &environment), None);
    }
}
