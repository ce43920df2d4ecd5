//! Keys, addresses and proxies, as passed by the caller.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Proxy variables in both spellings.
pub(crate) const NETWORK: [&str; 8] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"];

/// The characters that are escaped in a URL.
const IN_URL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Keys, addresses and proxies, by the names of their variables. The values are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    values: BTreeMap<String, String>,
}

impl Credentials {
    /// Adds a variable.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.values.insert(name.into(), value.into().trim().to_owned());
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl fmt::Debug for Credentials {
    /// Shows only the names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

/// API key. It can be compared and removed from strings, but not displayed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    text: Arc<str>,
}

impl Key {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.into() }
    }

    /// Replaces the key in `text`, including its JSON and URL encodings.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let json = serde_json::Value::String(self.text.to_string()).to_string();
        let url = utf8_percent_encode(&self.text, IN_URL).to_string();
        let forms = [&*self.text, json.trim_matches('"'), &url];
        forms.iter().fold(text.to_owned(), |text, form| text.replace(form, "[key]"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn only_provider_variables_are_kept_and_no_value_is_shown() {
        let env =
            env(&[("OPENAI_API_KEY", " canary-1 "), ("HOME", "/root"), ("ANTHROPIC_API_KEY", ""), ("NO_PROXY", "x")]);
        let credentials = Credentials::of(env.iter().map(|(name, value)| (name, value)));
        assert_eq!(credentials.get("OPENAI_API_KEY"), Some("canary-1"));
        assert_eq!((credentials.get("HOME"), credentials.get("ANTHROPIC_API_KEY")), (None, None));
        assert_eq!(format!("{credentials:?}"), r#"{"NO_PROXY", "OPENAI_API_KEY"}"#);
        assert_eq!(format!("{:?}", Key::new("canary-1")), "Key(…)");
    }

    #[test]
    fn a_key_is_removed_from_text_in_every_encoding() {
        let key = Key::new("ca\"na/ry");
        assert_eq!(key.scrub(r#"a ca"na/ry b ca\"na/ry c ca%22na%2Fry"#), "a [key] b [key] c [key]");
    }
}
