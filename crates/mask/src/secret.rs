//! Finds secrets in variables and configurations, and lists the forms in which they may appear.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use model::{Node, NodeKind};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::layers;
use crate::learned::Learned;

/// Minimum length of a secret in bytes. Shorter values cannot be told apart from ordinary text.
const MIN_SECRET_BYTES: usize = 8;
/// Length in bytes from which a user name without a password in a URL counts as a token.
const MIN_TOKEN_BYTES: usize = 16;

/// Endings of the last part of a variable's name that mark its value as a secret.
const WORDS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];
/// Endings of names that end in `KEY` but are other words, or keys that are not secret.
const OTHER_KEYS: [&str; 11] = [
    "PRIMARY_KEY",
    "FOREIGN_KEY",
    "PARTITION_KEY",
    "SORT_KEY",
    "PUBLIC_KEY",
    "HOTKEY",
    "HOT_KEY",
    "TURKEY",
    "MONKEY",
    "DONKEY",
    "WHISKEY",
];
/// Last parts of names that mark a secret, but are too short to be matched as the end of a longer word.
const LAST_PARTS: [&str; 16] = [
    "PAT",
    "AUTH",
    "AUTHORIZATION",
    "COOKIE",
    "BEARER",
    "PASS",
    "PASSCODE",
    "PW",
    "PWD",
    "JWT",
    "WEBHOOK",
    "DSN",
    "CRED",
    "CREDS",
    "SAS",
    "HMAC",
];
/// Parts of names that mark a secret even with a suffix, such as `OPENAI_API_KEY_2`.
const WITHIN: [&str; 9] = [
    "API_KEY",
    "ACCESS_KEY",
    "SECRET_KEY",
    "PRIVATE_KEY",
    "ACCESS_TOKEN",
    "AUTH_TOKEN",
    "CLIENT_SECRET",
    "PASSWORD",
    "AUTH_CONFIG",
];
/// Parts of names that mark a secret wherever they occur in the name.
const CONNECTIONS: [&str; 6] =
    ["WEBHOOK_URL", "WEBHOOK_URI", "CONNECTION_STRING", "CONN_STRING", "CONN_STR", "CONNECTIONSTRING"];
/// Last parts of names that describe a secret rather than contain it.
const ABOUT: [&str; 14] = [
    "NAME",
    "FILE",
    "PATH",
    "DIR",
    "URL",
    "URI",
    "HOST",
    "HEADER",
    "TYPE",
    "LENGTH",
    "TTL",
    "BUDGET",
    "ALGORITHM",
    "POLICY",
];
/// Names of secrets that the rules above do not cover.
const NAMES: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK"];
/// Variables whose values are HTTP headers, one per line.
const HEADERS: [&str; 1] = ["ANTHROPIC_CUSTOM_HEADERS"];

/// Returns every string that reveals a secret in `env`: values of variables whose names mark them as secrets,
/// passwords in URLs and credentials in header variables.
pub(crate) fn texts<'a>(env: impl IntoIterator<Item = (&'a String, &'a String)>) -> Forms {
    let mut secrets: Vec<String> = Vec::new();
    for (name, value) in env {
        in_value(is_of_variable(name), value, &mut secrets);
        if HEADERS.contains(&name.as_str()) {
            secrets.extend(value.lines().flat_map(in_header));
        }
        match name.to_ascii_lowercase().ends_with("_proxy") && !value.contains("://") {
            true => secrets.extend(in_url(&format!("://{value}"))),
            false => secrets.extend(in_url(value)),
        }
    }
    disguised(&secrets)
}

/// Texts that reveal secrets.
pub(crate) struct Forms {
    /// Every form of every secret, the longest first.
    pub(crate) all: Vec<Vec<u8>>,
    /// The forms in the digits of an encoding, which a program may wrap into lines.
    pub(crate) encoded: Vec<Vec<u8>>,
}

/// Returns every form of `values`, even if they do not look like secrets.
pub(crate) fn in_forms(values: &[String]) -> Forms {
    disguised(values)
}

/// Returns the forms of private keys: their `lines`, and their whole `digits`, which a program may wrap anew.
pub(crate) fn of_private_keys(lines: &[Vec<u8>], digits: &[Vec<u8>]) -> Forms {
    Forms { all: sorted(lines.to_vec()), encoded: sorted(digits.to_vec()) }
}

/// Returns the forms of `secrets`.
fn disguised(secrets: &[String]) -> Forms {
    let secrets = || secrets.iter().map(|secret| secret.trim()).filter(|secret| secret.len() >= MIN_SECRET_BYTES);
    let encoded = sorted(secrets().flat_map(encoded).collect());
    Forms { all: sorted(secrets().flat_map(plain).chain(encoded.iter().cloned()).collect()), encoded }
}

/// Returns the `texts` that are long enough, longest first, without duplicates.
fn sorted(mut texts: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    texts.retain(|text| text.len() >= MIN_SECRET_BYTES);
    texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    texts.dedup();
    texts
}

/// Secrets that users wrote into the configuration, and those that become known during the run. They are never shown.
/// Clones share what they learn.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<String>,
    learned: Arc<Learned>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secrets").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Collects the secrets in `node`, a configuration: values of keys named like a key, token or password,
    /// credentials in headers, and passwords in URLs.
    pub fn of(node: &Node) -> Self {
        let mut values = Vec::new();
        collect("", "", node, &mut values);
        Self { values, ..Self::default() }
    }

    /// Adds the secrets of another configuration.
    pub fn and(mut self, node: &Node) -> Self {
        collect("", "", node, &mut self.values);
        self.unique()
    }

    /// Adds the password in an address.
    pub fn and_in_url(mut self, address: &str) -> Self {
        self.values.extend(in_url(address));
        self.unique()
    }

    fn unique(mut self) -> Self {
        self.values.sort_unstable();
        self.values.dedup();
        self
    }

    /// Returns `true` if the whole `value` of `key` in the configuration section `section` is a secret.
    pub fn is_one(section: &str, key: &str, value: &str) -> bool {
        let mut found = Vec::new();
        of_entry(section, key, value, &mut found);
        found.iter().any(|secret| secret == value)
    }

    /// Returns `true` if `line` assigns a literal to a name that marks a secret: `apiKey: abc`, `"password" = "x"`.
    /// The file that contains the line need not be valid.
    pub fn are_assigned_in(line: &str) -> bool {
        let assigned = line.char_indices().filter(|(_, letter)| matches!(letter, ':' | '='));
        assigned.into_iter().any(|(index, _)| {
            let before = line[..index].trim_end_matches([' ', '\t', '"', '\'', '`', '?']);
            let ends = |letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'));
            let name = before.rsplit(ends).next().unwrap_or_default();
            let value = line[index + 1..].trim_start_matches([' ', '\t', '=', '>', '"', '\'', '`']);
            let end = value.find(['"', '\'', '`', ',', '}', ']', ';', '#']).unwrap_or(value.len());
            let value = value[..end].trim();
            let is_reference =
                ["$", "{", "[", "|", ">", "process.env", "env.", "!"].iter().any(|it| value.starts_with(it));
            let is_word = ["true", "false", "null", "none"].contains(&value) || value.contains('(');
            let is_literal =
                value.len() > 3 && !is_reference && !is_word && !value.bytes().all(|byte| byte.is_ascii_digit());
            // Budgets are counted in tokens, and a bare `key` is a name.
            let lower = name.to_ascii_lowercase();
            let is_named = is_of_variable(&in_words(name)) || is_of_header(name);
            is_literal && is_named && !["key", "keys"].contains(&&*lower) && !lower.ends_with("tokens")
        })
    }

    /// Learns the credentials in a header that is sent during the run, if its name marks them as such. Texts are masked
    /// from now on; see [`Mask::learned`](crate::Mask::learned) for earlier ones.
    pub fn learn_header(&self, name: &str, value: &str) {
        self.learn(in_header(&format!("{name}: {value}")));
    }

    /// Learns secrets that have no name.
    pub fn learn(&self, secrets: impl IntoIterator<Item = String>) {
        let is_new = |secret: &String| secret.trim().len() >= MIN_SECRET_BYTES && !self.values.contains(secret);
        self.learned.add(secrets.into_iter().filter(is_new));
    }

    /// Returns what was learned so far.
    pub(crate) fn learned(&self) -> &Arc<Learned> {
        &self.learned
    }

    /// Returns every string that reveals one of the secrets.
    pub(crate) fn texts(&self) -> Forms {
        disguised(&self.values)
    }
}

fn collect(section: &str, key: &str, node: &Node, values: &mut Vec<String>) {
    match &node.kind {
        NodeKind::String(text) => of_entry(section, key, text, values),
        NodeKind::List(items) => items.iter().for_each(|item| collect(section, key, item, values)),
        NodeKind::Map(entries) => entries.iter().for_each(|(name, value)| collect(key, &name.value, value, values)),
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) => {}
    }
}

fn of_entry(section: &str, key: &str, value: &str, values: &mut Vec<String>) {
    // The variable was not set, so there is no secret to mask.
    if value.contains("${env.") {
        return;
    }
    values.extend(in_url(value));
    if section.eq_ignore_ascii_case("headers") {
        values.extend(in_header(&format!("{key}: {value}")));
    }
    // A bare `key` is more often a name than a secret, and numbers are amounts.
    let is_amount = value.bytes().all(|byte| byte.is_ascii_digit());
    in_value(is_of_variable(&in_words(key)) && !key.eq_ignore_ascii_case("key") && !is_amount, value, values);
}

/// Adds the secrets in the value of a variable or setting whose name marks it if `is_secret`: the value, its items if
/// it is a list, and texts in it that have such names themselves, as in JSON, `.env` and `.netrc`.
fn in_value(is_secret: bool, value: &str, found: &mut Vec<String>) {
    let is_secret = is_secret && !is_a_path(value);
    found.extend(is_secret.then(|| value.to_owned()));
    let is_json = value.trim_start().starts_with(['{', '[']);
    if let Some(json) = is_json.then(|| serde_json::from_str::<Value>(value).ok()).flatten() {
        in_json(is_secret, &json, found);
        return;
    }
    found.extend(in_pairs(value));
    found.extend(in_netrc(value));
    if is_secret {
        // In `name=value`, only names that mark a secret count. Base64 ends with `=`.
        let items = value.split([',', ';']).map(unquoted).filter(|item| !item.trim_end_matches('=').contains('='));
        for item in items.filter(|item| !is_a_path(item)) {
            // The name of a user or a scheme precedes the secret.
            let bare = item.split_once([':', ' ']).map(|(_, bare)| bare.trim());
            let bare = bare.filter(|bare| !bare.starts_with("//") && !bare.contains('\n'));
            found.extend([Some(item), bare].into_iter().flatten().map(str::to_owned));
        }
    }
}

/// Adds the texts in `json` whose keys mark them as secrets. If `is_secret`, this also applies to texts without a key,
/// and to all texts of an object in which no key marks a secret, such as `{"production": "…"}`.
fn in_json(is_secret: bool, json: &Value, found: &mut Vec<String>) {
    match json {
        Value::String(text) => in_value(is_secret, text, found),
        Value::Array(items) => items.iter().for_each(|item| in_json(is_secret, item, found)),
        Value::Object(entries) => {
            let is_named = |key: &str| is_of_variable(&in_words(key));
            let all = is_secret && !entries.keys().any(|key| is_named(key));
            entries.iter().for_each(|(key, entry)| in_json(all || is_named(key), entry, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the text without the quotes and spaces around it.
fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\'']).trim()
}

/// Converts `apiKey` to the form of a variable name: `api_key`.
fn in_words(key: &str) -> String {
    let mut words = String::with_capacity(key.len() + 4);
    let mut was_small = false;
    for letter in key.chars() {
        if letter.is_ascii_uppercase() && was_small {
            words.push('_');
        }
        was_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        words.push(letter);
    }
    words
}

/// Returns `true` if a variable's name marks its value as a secret. Either its last part does (`API_KEY`, but not
/// `KEY_LAYOUT`), with or without a number (`TOKEN2`, `TOKEN_2`), or another part that has no other meaning
/// (`API_KEY_OLD`).
pub fn is_of_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace(['-', '.'], "_");
    // Git reads the name of a setting from each of these.
    let is_setting = name.starts_with("GIT_CONFIG_KEY_");
    let name = if is_setting { &name } else { name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '_') };
    let last = name.rsplit('_').next().unwrap_or_default();
    let bare = last.strip_suffix('S').unwrap_or(last);
    let is_other = OTHER_KEYS.iter().any(|other| name.strip_suffix('S').unwrap_or(name).ends_with(other));
    let is_last = !is_other && WORDS.iter().any(|word| bare.ends_with(word)) || LAST_PARTS.contains(&last);
    // `PWD` is the shell's working directory; `DB_PWD` is a password.
    let is_last = is_last && name != "PWD";
    let is_within = WITHIN.iter().any(|word| name.contains(word)) && !ABOUT.contains(&last);
    let connects = CONNECTIONS.iter().any(|word| name.contains(word));
    NAMES.contains(&name) || is_last || is_within || connects
}

/// Returns `true` if a value is the path of a secret rather than the secret itself. Generated secrets may also begin
/// with `/`, but have long parts that mix upper and lower case letters with digits.
fn is_a_path(value: &str) -> bool {
    let random = |part: &str| {
        let has = |is: fn(&char) -> bool| part.chars().any(|letter| is(&letter));
        part.contains(['+', '='])
            || (part.len() >= 16
                && has(char::is_ascii_lowercase)
                && has(char::is_ascii_uppercase)
                && has(char::is_ascii_digit))
    };
    ["/", "~/", "./", "../"].iter().any(|start| value.starts_with(start)) && !value.split('/').any(random)
}

/// Returns `true` if a header's name marks its value as a credential.
pub fn is_of_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    is_of_variable(&name) || ["auth", "authorization", "cookie", "signature"].iter().any(|end| name.ends_with(end))
}

/// Returns the secrets in a header line `Name: value` if its name marks the value as a credential.
fn in_header(line: &str) -> Vec<String> {
    let Some((_, value)) = line.split_once(':').filter(|(name, _)| is_of_header(name.trim())) else {
        return Vec::new();
    };
    // A scheme such as `Bearer` precedes the secret.
    let bare = value.trim().split_once(' ').map(|(_, bare)| bare.trim().to_owned());
    [value.trim().to_owned()].into_iter().chain(bare).collect()
}

/// Returns the values of pairs whose names mark them as secrets, as in connection strings (`Server=x;Password=y`),
/// `.env` files and YAML.
fn in_pairs(value: &str) -> Vec<String> {
    let parts = value.split([';', '\n']).chain(value.split_whitespace());
    let pairs = parts.filter_map(|part| part.split_once('=').or_else(|| part.split_once(": ")));
    let named = pairs.filter(|(name, _)| is_of_variable(&in_words(unquoted(name))));
    named.map(|(_, value)| unquoted(value).to_owned()).collect()
}

/// Returns the passwords in a `.netrc` file.
fn in_netrc(value: &str) -> Vec<String> {
    let words: Vec<&str> = value.split_whitespace().collect();
    if !words.iter().any(|word| ["machine", "default"].contains(word)) {
        return Vec::new();
    }
    words.windows(2).filter(|pair| pair[0] == "password").map(|pair| unquoted(pair[1]).to_owned()).collect()
}

/// Returns the passwords in the URLs in `value`, and the user names that are tokens.
fn in_url(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in value.split("://").skip(1) {
        let authority = rest.split(['/', '?', '#', ' ', ',', '"', '\n']).next().unwrap_or_default();
        let Some((user_info, _)) = authority.rsplit_once('@') else { continue };
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        let is_token = user.len() >= MIN_TOKEN_BYTES && user.contains(|letter: char| letter.is_ascii_digit());
        if is_token {
            found.push(user.to_owned());
        }
        if !password.is_empty() {
            let decoded = percent_decode_str(password).decode_utf8_lossy().into_owned();
            found.extend([password.to_owned(), decoded]);
            // A short password is recognised by the text around it.
            found.extend((password.len() < MIN_SECRET_BYTES).then(|| format!("{user}:{password}@")));
        }
    }
    found
}

/// Returns the forms of a secret as text, after escapes are decoded: unchanged, line by line, with a plus for each
/// space, and hexadecimal digits in both cases.
fn plain(secret: &str) -> Vec<Vec<u8>> {
    let lines = secret.lines().map(str::trim).filter(|line| *line != secret && !line.starts_with("-----"));
    let mut forms: Vec<Vec<u8>> = Vec::new();
    for text in lines.chain([secret]) {
        forms.push(text.as_bytes().to_vec());
        forms.extend(layers(text));
        forms.extend(text.contains(' ').then(|| text.replace(' ', "+").into_bytes()));
        if text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b':')) {
            forms.extend([text.to_ascii_uppercase().into_bytes(), text.to_ascii_lowercase().into_bytes()]);
        }
    }
    forms
}

/// Returns the encoded forms of a secret: base64 and hexadecimal, each of UTF-8 and UTF-16.
fn encoded(secret: &str) -> Vec<Vec<u8>> {
    let mut forms: Vec<Vec<u8>> = Vec::new();
    let units = |bytes: fn(u16) -> [u8; 2]| secret.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    for bytes in [secret.as_bytes().to_vec(), units(u16::to_le_bytes), units(u16::to_be_bytes)] {
        for before in 0..3 {
            let inside = base64_within(&bytes, before);
            forms.extend([inside.replace('+', "-").replace('/', "_").into_bytes(), inside.into_bytes()]);
        }
        let hex = model::text::hex(&bytes);
        forms.extend([hex.to_ascii_uppercase().into_bytes(), hex.into_bytes()]);
    }
    forms
}

/// Returns the base64 digits, without padding, that depend only on `bytes` if other data whose length is `before`,
/// modulo 3, precedes them.
fn base64_within(bytes: &[u8], before: usize) -> String {
    let all = [&[0; 2][..before], bytes].concat();
    // Only complete digits are returned: the last, incomplete one depends on the bytes that follow.
    let whole = all.len() * 8 / 6;
    BASE64_STANDARD_NO_PAD.encode(&all).get((before * 8).div_ceil(6)..whole).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_of(pairs: &[(&str, &str)]) -> Vec<String> {
        let env: Vec<(String, String)> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let texts = texts(env.iter().map(|(name, value)| (name, value))).all;
        texts.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
    }

    fn are_secret(name: &str, value: &str) -> bool {
        texts_of(&[(name, value)]).contains(&value.to_owned())
    }

    #[test]
    fn only_the_end_of_a_name_marks_a_secret() {
        for name in ["GITHUB_TOKEN", "API_KEY", "DB_PASSWORD", "db_password", "PGPASSWORD", "OPENAI_APIKEY", "MY_KEYS"]
        {
            assert!(are_secret(name, "dummy-value"), "{name}");
        }
        for name in [
            "AWS_BEARER_TOKEN_BEDROCK",
            "KEY_PASSPHRASE",
            "OPENAI_API_KEY_2",
            "SECRET_KEY_BASE",
            "DB_PWD",
            "GITHUB_PAT",
            "SMTP_PASS",
            "FOO_PW",
            "JWT",
            "SLACK_WEBHOOK",
            "DISCORD_WEBHOOK_URL",
            "AZURE_CONNECTION_STRING",
            "AzureWebJobs_ConnectionString",
            "SENTRY_DSN",
            "DOCKER_AUTH_CONFIG",
            "TOKEN2",
            "GITHUB_TOKEN_2",
            "API_KEY1",
        ] {
            assert!(are_secret(name, "dummy-value"), "{name}");
        }
        for name in [
            "GIT_CONFIG_KEY_0",
            "KEYBOARD_LAYOUT",
            "TOKEN_BUDGET",
            "SECRET_NAME",
            "API_KEY_HEADER",
            "PASSWORD_MIN_LENGTH",
            "PWD",
            "OLDPWD",
            "COMPAT",
            "COMPASS",
            "WEBHOOK_HOST",
            "PRIMARY_KEY",
            "SSH_PUBLIC_KEYS",
            "TURKEY",
            "PATH",
        ] {
            assert_eq!(texts_of(&[(name, "dummy-value")]), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn a_line_that_assigns_a_literal_to_a_secret_name_is_detected() {
        for line in
            ["  apiKey: abcdef", r#"{"password": "hunter2"}"#, "x = { Authorization: 'Bearer x' }", "SMTP_PASS=secret"]
        {
            assert!(Secrets::are_assigned_in(line), "{line}");
        }
        for line in [
            "apiKey: ${env.KEY}",
            "key: value",
            "max_tokens: 1000",
            "apiKey: process.env.X",
            "password: é",
            "ö: x",
            "max_tokens: lots",
            "token = await sign(x)",
        ] {
            assert!(!Secrets::are_assigned_in(line), "{line}");
        }
    }

    #[test]
    fn paths_of_secrets_and_common_words_are_not_secrets() {
        for value in ["/home/u/.ssh/id_ed25519", "~/.aws/credentials", "true", "false", "12345", "none", ""] {
            assert_eq!(texts_of(&[("SSH_KEY", value)]), Vec::<String>::new(), "{value}");
        }
        assert!(are_secret("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1"));
        assert!(are_secret("AWS_SECRET_ACCESS_KEY", "/ab+dummy/value"));
    }

    #[test]
    fn passwords_in_urls_and_header_values_are_found() {
        let proxy = texts_of(&[("HTTPS_PROXY", "http://user:dummy%40pass@proxy.local:3128/")]);
        assert!(["dummy%40pass", "dummy@pass"].iter().all(|text| proxy.contains(&(*text).to_owned())), "{proxy:?}");
        assert!(!proxy.iter().any(|text| text.contains("proxy.local")));
        let short = texts_of(&[("ALL_PROXY", "socks5://user:pw@proxy")]);
        assert!(short.contains(&"user:pw@".to_owned()) && !short.contains(&"pw".to_owned()));
        assert_eq!(
            texts_of(&[("REPO", "ssh://git@host/x"), ("HTTP_PROXY", "http://proxy:3128")]),
            Vec::<String>::new()
        );
        assert!(texts_of(&[("https_proxy", "user:dummy-pass@proxy:3128")]).contains(&"dummy-pass".to_owned()));
        let token = texts_of(&[("REMOTE", "https://dummytoken0123456789@host/x.git")]);
        assert!(token.contains(&"dummytoken0123456789".to_owned()));

        let headers =
            "Authorization: Bearer dummy-bearer\nX-Tenant: tenant-1234\nX-Stage: production\nX-Api-Key: verysecret";
        let headers = texts_of(&[("ANTHROPIC_CUSTOM_HEADERS", headers)]);
        for value in ["dummy-bearer", "Bearer dummy-bearer", "verysecret"] {
            assert!(headers.contains(&value.to_owned()), "{value}");
        }
        assert!(!headers.iter().any(|text| text == "production" || text == "tenant-1234"));

        let connection = texts_of(&[("STORE", "Server=db;User Id=me;Password=dummy-pass;AccountKey=dummy-key")]);
        assert!(["dummy-pass", "dummy-key"].iter().all(|text| connection.contains(&(*text).to_owned())));
        assert!(!connection.iter().any(|text| text.contains("Server")));
    }

    #[test]
    fn secrets_within_a_value_are_found() {
        for (name, value, secrets, others) in [
            ("API_KEYS", "first-key-1, \"second-key-2\";third-key==", "first-key-1 second-key-2 third-key==", ""),
            ("BASIC_AUTH", "administrator:correct-horse", "correct-horse", ""),
            ("AUTH_HEADER_TOKEN", "Bearer correct-horse", "correct-horse", ""),
            (
                "GOOGLE_CREDENTIALS",
                r#"{"type": "service_account", "private_key": "correct-horse", "client_email": "ada@host.example"}"#,
                "correct-horse",
                "service_account ada@host.example",
            ),
            (
                "SETTINGS",
                r#"[{"db": {"password": "correct-horse", "host": "db.example"}}]"#,
                "correct-horse",
                "db.example",
            ),
            ("TOKENS", r#"{"production": "correct-horse"}"#, "correct-horse", "production"),
            ("ENV_FILE", "export API_TOKEN='correct-horse'\nSTAGE=production", "correct-horse", "production"),
            ("CONFIG", "user: administrator\npassword: correct-horse", "correct-horse", "administrator"),
            ("CONNINFO", "host=db.example.org password=correct-horse", "correct-horse", "db.example.org"),
            (
                "NETRC",
                "machine host.example\nlogin administrator\npassword correct-horse",
                "correct-horse",
                "administrator",
            ),
        ] {
            let found = texts_of(&[(name, value)]);
            assert!(secrets.split(' ').all(|secret| found.contains(&secret.to_owned())), "{value}: {found:?}");
            let is_found = |other: &str| found.iter().any(|text| text == other);
            assert!(!others.split(' ').any(is_found), "{value}: {found:?}");
        }
    }

    #[test]
    fn a_secret_is_found_in_pieces_and_in_every_encoding() {
        let lines =
            texts_of(&[("DEPLOY_KEY", "-----BEGIN X-----\nfirst line of it\nabc\n  second one\n-----END X-----\n")]);
        assert!(["first line of it", "second one"].iter().all(|line| lines.contains(&(*line).to_owned())));
        assert!(!lines.iter().any(|text| text == "abc" || text == "-----BEGIN X-----"));

        let texts = texts_of(&[("API_KEY", "dummy key/?\"1")]);
        let holds = |text: &str| texts.iter().any(|form| text.contains(form.as_str()));
        assert!(holds(r#"dummy key/?"1"#) && holds(r#"dummy+key/?"1"#));
        assert!(holds("64756d6d79206b65792f3f2231") && holds("64756D6D79206B65792F3F2231"));
        assert!(holds("640075006d006d00790020006b00650079002f003f0022003100"), "UTF-16 in hexadecimal digits");
        assert!(holds("ZHVtbXkga2V5Lz8iMQ=="), "only the value");
        assert!(holds("dTpkdW1teSBrZXkvPyIx"), "after `u:`");
        assert!(holds("dXM6ZHVtbXkga2V5Lz8iMQ=="), "after `us:`");
        assert!(holds("dXNlOmR1bW15IGtleS8_IjE"), "after `use:`, for URLs");
        assert!(!holds("ZHVtbXkg"), "its beginning");
    }
}
