//! Addresses in the configuration.

use reqwest::Url;

/// Reads an address of HTTP.
///
/// # Errors
/// Returns the reason why `text` is none, with how to write it.
pub(super) fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| {
        let help = match text {
            _ if text.contains("://") => "",
            _ if text.starts_with('$') => "; `${env.NAME}` is replaced by the value of the variable NAME",
            _ => "; an address begins with `http://` or `https://`",
        };
        format!("this is not a valid address: {error}{help}")
    })?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        other => {
            let port = text.get(other.len() + 1..).unwrap_or_default();
            let help = match port.starts_with(|first: char| first.is_ascii_digit()) {
                true => format!("; write `http://{text}`"),
                false => String::new(),
            };
            Err(format!("an address begins with `http://` or `https://`, not `{other}:`{help}"))
        }
    }
}
