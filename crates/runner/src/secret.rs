//! What is a secret among variables and in configurations, and what it looks like where it turns up.

use std::fmt;

use model::{Node, NodeKind};

/// Shorter values are too common to be told from ordinary text, in bytes.
const SHORTEST: usize = 8;
/// A name alone in a URL is a token rather than somebody's name from here on, in bytes.
const SHORTEST_TOKEN: usize = 16;

/// How the names of variables end whose values are secrets.
const WORDS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];
/// Last parts of such names that are too short to be the end of a longer word.
const LAST_PARTS: [&str; 4] = ["PAT", "AUTH", "COOKIE", "BEARER"];
/// What is within the names of secrets that go on behind it, such as `OPENAI_API_KEY_2`.
const WITHIN: [&str; 8] =
    ["API_KEY", "ACCESS_KEY", "SECRET_KEY", "PRIVATE_KEY", "ACCESS_TOKEN", "AUTH_TOKEN", "CLIENT_SECRET", "PASSWORD"];
/// Last parts of names that tell something about a secret.
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
/// Secrets whose names do not end so.
const NAMES: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK"];
/// Variables whose values are HTTP headers, one a line.
const HEADERS: [&str; 1] = ["ANTHROPIC_CUSTOM_HEADERS"];

/// Every text that gives a secret of `env` away: the values of variables that are named like secrets, passwords in URLs
/// and the values of lent headers; each as it is, line by line, as JSON, in a URL and in base64. The longest first.
pub(crate) fn texts<'a>(env: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<String> {
    let mut secrets: Vec<String> = Vec::new();
    for (name, value) in env {
        if names_a_secret(name) && !is_a_path(value) {
            secrets.push(value.clone());
        }
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

/// Every form of `secrets` that gives them away, the longest first.
fn disguised(secrets: &[String]) -> Vec<String> {
    let mut texts: Vec<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
    texts.retain(|text| text.len() >= SHORTEST);
    texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    texts.dedup();
    texts
}

/// Secrets that somebody wrote down for a run. They are never shown.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secrets").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// What `node`, a configuration, calls a key, a token or a password, values of headers, and passwords in URLs.
    pub fn of(node: &Node) -> Self {
        let mut values = Vec::new();
        collect("", "", node, &mut values);
        Self { values }
    }

    /// Whether the value that a configuration has under `key`, itself under `section`, is a secret as a whole.
    pub fn is_one(section: &str, key: &str, value: &str) -> bool {
        let mut found = Vec::new();
        of_entry(section, key, value, &mut found);
        found.iter().any(|secret| secret == value)
    }

    /// Every text that gives one away, the longest first.
    pub(crate) fn texts(&self) -> Vec<String> {
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
    // Where the environment did not have it, there is nothing to be kept.
    if value.contains("${env.") {
        return;
    }
    values.extend(in_url(value));
    if section.eq_ignore_ascii_case("headers") {
        values.extend(in_header(&format!("{key}: {value}")));
    }
    // A bare `key` is a name more often than a secret, and numbers are amounts.
    let is_amount = value.bytes().all(|byte| byte.is_ascii_digit());
    if names_a_secret(&in_words(key)) && !key.eq_ignore_ascii_case("key") && !is_a_path(value) && !is_amount {
        values.push(value.to_owned());
    }
}

/// `apiKey` as a variable would have it: `api_key`.
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

/// Whether a variable's name says that its value is a secret. Its last part does, `API_KEY` and not `KEY_LAYOUT`, or what
/// can be nothing else: `API_KEY_2`.
fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace(['-', '.'], "_");
    let last = name.rsplit('_').next().unwrap_or_default();
    let bare = last.strip_suffix('S').unwrap_or(last);
    let is_last = WORDS.iter().any(|word| bare.ends_with(word)) || LAST_PARTS.contains(&last);
    // `PWD` is where a shell stands, `DB_PWD` is none.
    let is_short = name.ends_with("_PWD") || name == "MYSQL_PWD";
    let is_within = WITHIN.iter().any(|word| name.contains(word)) && !ABOUT.contains(&last);
    NAMES.contains(&name.as_str()) || is_last || is_short || is_within
}

/// Whether a value says where a secret is instead of being one. What a generator made may begin with `/` too, but has
/// long parts of letters of both kinds with digits among them.
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

/// The secret of a header that is written as `Name: value`. A single word is one only where the header's name says so.
fn in_header(line: &str) -> Vec<String> {
    let Some((name, value)) = line.split_once(':') else { return Vec::new() };
    let (name, value) = (name.trim(), value.trim());
    let signs_in = names_a_secret(name)
        || ["auth", "authorization", "cookie"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
    if !signs_in && value.chars().all(|letter| letter.is_ascii_alphabetic()) {
        return Vec::new();
    }
    // `Bearer` and its like stand before what is secret.
    let bare = value.split_once(' ').filter(|_| signs_in).map(|(_, bare)| bare.trim().to_owned());
    [value.to_owned()].into_iter().chain(bare).collect()
}

/// The passwords of the URLs in `value`, and names that are tokens.
fn in_url(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in value.split("://").skip(1) {
        let authority = rest.split(['/', '?', '#', ' ', ',', '"', '\n']).next().unwrap_or_default();
        let Some((user_info, _)) = authority.rsplit_once('@') else { continue };
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        let is_token = user.len() >= SHORTEST_TOKEN && user.contains(|letter: char| letter.is_ascii_digit());
        if is_token {
            found.push(user.to_owned());
        }
        if !password.is_empty() {
            found.extend([password.to_owned(), decoded(password)]);
            // A short password is told from ordinary text by what stands around it.
            found.extend((password.len() < SHORTEST).then(|| format!("{user}:{password}@")));
        }
    }
    found
}

/// What a secret looks like in text of different kinds.
fn forms(secret: &str) -> Vec<String> {
    let secret = secret.trim();
    if secret.len() < SHORTEST {
        return Vec::new();
    }
    let lines = secret.lines().map(str::trim).filter(|line| *line != secret && !line.starts_with("-----"));
    let mut forms = Vec::new();
    for text in lines.chain([secret]) {
        forms.push(text.to_owned());
        forms.extend(as_json(text));
        forms.extend([in_markup(text, "&#39;"), in_markup(text, "&#x27;")]);
        for kept in KEPT_IN_URLS {
            let encoded = encoded(text, kept);
            forms.extend([encoded.replace("%20", "+"), lowercase_escapes(&encoded), encoded]);
        }
    }
    for before in 0..3 {
        let inside = base64_within(secret.as_bytes(), before);
        forms.extend([inside.replace('+', "-").replace('/', "_"), inside]);
    }
    forms
}

/// `text` between quotes as writers of JSON have it: plainly, for markup, with escaped slashes, in ASCII, and as a text
/// within a text.
fn as_json(text: &str) -> Vec<String> {
    let inner = |text: &str| {
        let json = serde_json::to_string(text).unwrap_or_default();
        json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(&json).to_owned()
    };
    let plain = inner(text);
    let escaped = |letter: char| {
        let mut units = [0; 2];
        letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>()
    };
    let rewritten = |is_escaped: fn(char) -> bool| {
        let letter = |letter: char| if is_escaped(letter) { escaped(letter) } else { letter.to_string() };
        plain.chars().map(letter).collect::<String>()
    };
    let for_markup = rewritten(|letter| matches!(letter, '<' | '>' | '&'));
    let in_ascii = rewritten(|letter| !letter.is_ascii());
    let slashed = [plain.replace('/', "\\/"), in_ascii.replace('/', "\\/")];
    let within = [inner(&plain), inner(&inner(&plain))];
    [plain.clone(), for_markup, in_ascii].into_iter().chain(slashed).chain(within).collect()
}

/// `text` in HTML or XML.
fn in_markup(text: &str, apostrophe: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', apostrophe)
}

/// What different writers of URLs leave as it is beside letters, digits, `-`, `.` and `_`: nothing else but `~`, what
/// JavaScript's parts and whole addresses leave, and what forms do.
const KEPT_IN_URLS: [&str; 4] = ["~", "~!'()*", "~!'()*;/?:@&=+$,#", "*"];

/// `text` as it is written in a URL by somebody who leaves the letters of `kept` as they are.
fn encoded(text: &str, kept: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        _ if kept.as_bytes().contains(&byte) => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The escapes of a URL as other programs write them.
fn lowercase_escapes(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |done, part| {
        let (escape, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        format!("{done}%{}{rest}", escape.to_ascii_lowercase())
    })
}

/// `text` from a URL as it was before.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escape = after.get(..2).filter(|_| byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                bytes.push(escaped);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The base64 of `bytes` where `before` bytes, modulo 3, of something else stand before them: the digits that depend on
/// these bytes alone, without padding.
fn base64_within(bytes: &[u8], before: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let all: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
    let mut digits = String::new();
    for group in all.chunks(3) {
        let bits = group.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        // As many digits as whole bytes fill: an unfinished one depends on what comes behind.
        let whole = group.len() * 8 / 6;
        let digit = |at: usize| DIGITS.get((bits >> (18 - 6 * at) & 63) as usize).copied().map(char::from);
        digits.extend((0..whole).filter_map(digit));
    }
    digits.split_off((before * 8).div_ceil(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_of(pairs: &[(&str, &str)]) -> Vec<String> {
        let env: Vec<(String, String)> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        texts(env.iter().map(|(name, value)| (name, value)))
    }

    fn are_secret(name: &str, value: &str) -> bool {
        texts_of(&[(name, value)]).contains(&value.to_owned())
    }

    #[test]
    fn only_the_end_of_a_name_tells_of_a_secret() {
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
            "PATH",
        ] {
            assert_eq!(texts_of(&[(name, "dummy-value")]), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn where_a_secret_lies_and_what_everybody_writes_is_none() {
        for value in ["/home/u/.ssh/id_ed25519", "~/.aws/credentials", "true", "false", "12345", "none", ""] {
            assert_eq!(texts_of(&[("SSH_KEY", value)]), Vec::<String>::new(), "{value}");
        }
        assert!(are_secret("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1"));
        assert!(are_secret("AWS_SECRET_ACCESS_KEY", "/ab+dummy/value"));
    }

    #[test]
    fn a_url_has_a_password_and_a_header_a_value() {
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
        for value in ["dummy-bearer", "Bearer dummy-bearer", "tenant-1234", "verysecret"] {
            assert!(headers.contains(&value.to_owned()), "{value}");
        }
        assert!(!headers.contains(&"production".to_owned()));
    }

    #[test]
    fn a_secret_is_known_in_pieces_and_in_disguise() {
        let lines =
            texts_of(&[("DEPLOY_KEY", "-----BEGIN X-----\nfirst line of it\nabc\n  second one\n-----END X-----\n")]);
        assert!(["first line of it", "second one"].iter().all(|line| lines.contains(&(*line).to_owned())));
        assert!(!lines.iter().any(|text| text == "abc" || text == "-----BEGIN X-----"));

        let texts = texts_of(&[("API_KEY", "dummy key/?\"1")]);
        let holds = |text: &str| texts.iter().any(|form| text.contains(form.as_str()));
        assert!(holds("dummy%20key%2F%3F%221") && holds("dummy+key%2F%3F%221") && holds("dummy%20key%2f%3f%221"));
        assert!(holds(r#"dummy key/?\"1"#));
        assert!(holds("ZHVtbXkga2V5Lz8iMQ=="), "the value alone");
        assert!(holds("dTpkdW1teSBrZXkvPyIx"), "after `u:`");
        assert!(holds("dXM6ZHVtbXkga2V5Lz8iMQ=="), "after `us:`");
        assert!(holds("dXNlOmR1bW15IGtleS8_IjE"), "after `use:`, for URLs");
        assert!(!holds("ZHVtbXkg"), "the beginning of it");
    }
}
