//! Ollama, on this machine or another.

use std::borrow::Cow;

use super::Provider;
use crate::remote::Vendor;
use crate::wire::ollama::Client;

static CHAT: Vendor = Vendor {
    name: "ollama",
    dialect: &Client,
    variables: &["OLLAMA_API_KEY", "OLLAMA_HOST"],
    address: Some("http://127.0.0.1:11434"),
    to_url,
    version: "/api",
    is_version_given: false,
    path: "/chat",
    ..Vendor::CHAT_COMPLETIONS
};

pub(super) const PROVIDER: Provider = Provider::new(&CHAT, "Ollama, local or remote");

/// Converts `OLLAMA_HOST` to a URL. The variable may be just a host. It also tells servers on which address to listen,
/// so it may be the wildcard address.
fn to_url(written: &str) -> Cow<'_, str> {
    if written.contains("://") {
        return Cow::Borrowed(written);
    }
    let (host, path) = written.split_once('/').unwrap_or((written, ""));
    // A port follows the last colon, unless the colon is part of an IPv6 address.
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => (host, "11434"),
    };
    let host = match host {
        "" | "0.0.0.0" | "[::]" | "::" => "127.0.0.1",
        host => host,
    };
    let bracketed = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    Cow::Owned(format!("http://{bracketed}:{port}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_converted_to_a_url() {
        for (written, expected) in [
            ("0.0.0.0", "http://127.0.0.1:11434/"),
            ("0.0.0.0:1234", "http://127.0.0.1:1234/"),
            ("box.local", "http://box.local:11434/"),
            (":5000", "http://127.0.0.1:5000/"),
            ("[::1]:99", "http://[::1]:99/"),
            ("::1", "http://[::1]:11434/"),
            ("https://ollama.example", "https://ollama.example"),
            ("box:1/sub", "http://box:1/sub"),
        ] {
            assert_eq!(to_url(written), expected, "{written}");
        }
    }
}
