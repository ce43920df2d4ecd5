//! Tokens of clients, and what their holders may do.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hyper::header::{AUTHORIZATION, HeaderMap};
use sha2::{Digest, Sha256};

use crate::error::CliError;

/// Variable with a token that may read.
pub const READ_VARIABLE: &str = "TRIALRUN_READ_TOKEN";
/// Variable with a token that may also start and change runs.
pub const RUN_VARIABLE: &str = "TRIALRUN_RUN_TOKEN";

/// Minimum length of a token, so that nobody guesses it.
const MIN_LENGTH: usize = 16;
/// Maximum size of a file with tokens, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What the holder of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read the record and the queue.
    Read,
    /// Also start, pause, continue and cancel runs.
    Run,
}

impl Role {
    /// Returns its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
        }
    }
}

/// Tokens with their roles. Only their digests are kept.
#[derive(Debug, Default)]
pub struct Tokens(Vec<(Role, [u8; 32])>);

/// The token of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    pub role: Role,
    /// True for a token that no browser sends on its own.
    pub is_bearer: bool,
}

impl Tokens {
    /// Reads the tokens of variables and of a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a token is too short. The message contains no token.
    pub fn read(variable: impl Fn(&str) -> Option<String>, file: Option<&Path>) -> Result<Self, CliError> {
        let mut tokens = Self::default();
        for (name, role) in [(READ_VARIABLE, Role::Read), (RUN_VARIABLE, Role::Run)] {
            if let Some(token) = variable(name).filter(|token| !token.is_empty()) {
                tokens.add(role, token.trim()).map_err(|reason| CliError::usage(format!("`{name}`: {reason}")))?;
            }
        }
        let Some(file) = file else { return Ok(tokens) };
        let wrong = |reason: String| CliError::usage(format!("{}: {reason}", file.display()));
        // A group may read it: containers give mounted secrets a group.
        if file.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o027 != 0) {
            let wrong = wrong("other users can read or change this file with tokens".to_owned());
            return Err(wrong.hint(format!("`chmod 600 {}` makes it yours alone", file.display())));
        }
        let text = files::read_named_text(file, MAX_FILE_BYTES).map_err(|error| wrong(error.to_string()))?;
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let role = |name: &str| [Role::Read, Role::Run].into_iter().find(|role| role.name() == name);
            let (name, token) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let Some(role) = role(name) else {
                return Err(wrong(format!("line {number} does not start with `read` or `run`"))
                    .hint("write one token a line, such as `read TOKEN`"));
            };
            tokens.add(role, token.trim()).map_err(|reason| wrong(format!("line {number}: {reason}")))?;
        }
        Ok(tokens)
    }

    fn add(&mut self, role: Role, token: &str) -> Result<(), String> {
        if token.len() < MIN_LENGTH || token.contains(char::is_whitespace) {
            return Err(format!(
                "a token has at least {MIN_LENGTH} characters and no spaces; `openssl rand -hex 16` prints a good one"
            ));
        }
        let digest: [u8; 32] = Sha256::digest(token).into();
        if self.0.iter().any(|(other, known)| *other != role && *known == digest) {
            return Err("the same token has both roles; make another one".to_owned());
        }
        self.0.push((role, digest));
        Ok(())
    }

    /// Returns `true` if there is no token with this role.
    pub fn lacks(&self, role: Role) -> bool {
        !self.0.iter().any(|(has, _)| *has >= role)
    }

    /// Returns the role of a token. The time taken does not reveal where a wrong token differs from a right one: digests
    /// cannot be guessed byte by byte, and all of them are compared.
    fn role(&self, token: &str) -> Option<Role> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let mut found = None;
        for (role, known) in &self.0 {
            let differences = known.iter().zip(&digest).fold(0, |sum, (a, b)| sum | (a ^ b));
            if std::hint::black_box(differences) == 0 {
                found = found.max(Some(*role));
            }
        }
        found
    }

    /// Returns the token of a request, `Ok(None)` if it has none.
    ///
    /// # Errors
    /// Returns an error if the token is unknown, or if the header cannot be read.
    pub fn given(&self, headers: &HeaderMap) -> Result<Option<Given>, ()> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (value, other) = (values.next(), values.next());
        let Some(value) = value else { return Ok(None) };
        let value = value.to_str().ok().filter(|_| other.is_none()).ok_or(())?;
        let (scheme, rest) = value.split_once(' ').ok_or(())?;
        let (token, is_bearer) = match scheme.to_ascii_lowercase().as_str() {
            "bearer" => (rest.trim().to_owned(), true),
            "basic" => (password(rest.trim()).ok_or(())?, false),
            _ => return Err(()),
        };
        self.role(&token).map(|role| Some(Given { role, is_bearer })).ok_or(())
    }
}

/// Returns the password of Basic authentication.
fn password(encoded: &str) -> Option<String> {
    let decoded = String::from_utf8(base64(encoded)?).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}

/// Decodes Base64.
fn base64(encoded: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(encoded).ok()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const READ: &str = "0123456789abcdef";
    const RUN: &str = "fedcba9876543210";

    fn tokens() -> Tokens {
        let variable = |name: &str| Some(if name == READ_VARIABLE { READ } else { RUN }.to_owned());
        Tokens::read(variable, None).unwrap()
    }

    fn given(value: &str) -> Result<Option<Given>, ()> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::try_from(value).unwrap());
        tokens().given(&headers)
    }

    #[test]
    fn a_token_has_a_role_and_only_a_bearer_token_cannot_come_from_a_browser_alone() {
        let of = |role, is_bearer| Ok(Some(Given { role, is_bearer }));
        assert_eq!(given(&format!("Bearer {READ}")), of(Role::Read, true));
        assert_eq!(given(&format!("bearer {RUN}")), of(Role::Run, true));
        // `ann:` and the token that may read.
        assert_eq!(given("Basic YW5uOjAxMjM0NTY3ODlhYmNkZWY="), of(Role::Read, false));
        for wrong in ["Bearer", "Bearer ", "Bearer 0123456789abcdeF", "Basic !", "Basic YW5u", "Digest x", READ] {
            assert_eq!(given(wrong), Err(()), "{wrong}");
        }
        assert_eq!(tokens().given(&HeaderMap::new()), Ok(None));
        let mut two = HeaderMap::new();
        two.append(AUTHORIZATION, HeaderValue::try_from(format!("Bearer {READ}")).unwrap());
        two.append(AUTHORIZATION, HeaderValue::try_from(format!("Bearer {RUN}")).unwrap());
        assert_eq!(tokens().given(&two), Err(()));
        assert!(!tokens().lacks(Role::Run) && Tokens::default().lacks(Role::Read));
        let same = Tokens::read(|_| Some(READ.to_owned()), None).unwrap_err().to_string();
        assert!(same.contains("both roles") && !same.contains(READ), "{same}");
    }

    #[test]
    fn a_file_has_a_token_a_line_and_its_errors_show_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
            Tokens::read(|_| None, Some(&file)).map_err(|error| error.to_string())
        };
        let tokens = read(&format!("# CI\nrun {RUN}\n\n  read\t{READ}\n")).unwrap();
        assert_eq!((tokens.role(READ), tokens.role(RUN), tokens.role("")), (Some(Role::Read), Some(Role::Run), None));
        for (text, line) in
            [("read short", 1), ("\nwrite 0123456789abcdef", 2), ("run", 1), ("run 01234567 89abcdef", 1)]
        {
            let error = read(text).unwrap_err();
            assert!(error.contains(&format!("line {line}")) && !error.contains("0123"), "{error}");
        }
        read(&format!("run {RUN}")).unwrap();
        for mode in [0o604, 0o602, 0o620] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let error = Tokens::read(|_| None, Some(&file)).unwrap_err().to_string();
            assert!(error.contains("other users can read or change"), "{mode:o}: {error}");
        }
    }
}
