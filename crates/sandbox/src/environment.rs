//! The environment of processes in a sandbox.

use std::collections::BTreeMap;
use std::path::Path;

use mask::secret;

/// Variables of the host that processes in a sandbox inherit: the search path for programs, text encoding, the user's
/// name, and access to the network through a proxy or with extra certificates. A proxy's password is passed on too,
/// and is masked like every password in a URL.
pub const PASSED_ON: &[&str] = &[
    "PATH",
    "SHELL",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Returns the base environment of a sandbox, below the variables of the agent and the fixture. It contains only the
/// allowed variables of `host` and the sandbox's own directories. The user's home is not passed on, so programs use
/// their default locations, which are in the sandbox's home.
pub(super) fn of(host: &BTreeMap<String, String>, base: &Path, home: &Path, tmp: &Path) -> BTreeMap<String, String> {
    let is_passed_on =
        |name: &str| PASSED_ON.contains(&name) || (name.starts_with("LC_") && !secret::is_of_variable(name));
    let mut env: BTreeMap<String, String> = host
        .iter()
        .filter(|(name, value)| is_passed_on(name) && !value.is_empty())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    env.extend([
        ("HOME".to_owned(), text(home)),
        ("TMPDIR".to_owned(), text(tmp)),
        ("TERM".to_owned(), "dumb".to_owned()),
        ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        // Git must not find a repository that contains the sandbox.
        ("GIT_CEILING_DIRECTORIES".to_owned(), text(base)),
        ("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()),
    ]);
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_non_empty_variables_are_inherited() {
        let host = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("LC_API_KEY", "dummy-secret-1"),
            ("LANG", ""),
            ("HOME", "/home/u"),
            ("TMPDIR", "/elsewhere"),
            ("XDG_CONFIG_HOME", "/home/u/.config"),
            ("GIT_DIR", "/home/u/.git"),
            ("OPENAI_API_KEY", "sk-test"),
        ];
        let host = host.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let env = of(&host, Path::new("/b"), Path::new("/b/home"), Path::new("/b/tmp"));
        let names: Vec<&str> = env.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "GIT_CEILING_DIRECTORIES",
                "GIT_CONFIG_NOSYSTEM",
                "GIT_TERMINAL_PROMPT",
                "HOME",
                "LC_ALL",
                "PATH",
                "TERM",
                "TMPDIR"
            ]
        );
        assert_eq!((env["HOME"].as_str(), env["TMPDIR"].as_str()), ("/b/home", "/b/tmp"));
    }
}
