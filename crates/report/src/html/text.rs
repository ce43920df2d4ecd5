//! Text as HTML.

use crate::plain;

/// Returns a message in which the parts between backticks are marked up as code.
pub(super) fn marked(message: &str) -> String {
    let parts: Vec<&str> = message.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    let part = |(index, part): (usize, &&str)| match index % 2 {
        1 if is_paired => format!("<code>{}</code>", text(part)),
        1 => format!("`{}", text(part)),
        _ if index > 0 && !is_paired => format!("`{}", text(part)),
        _ => text(part),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Returns text to show verbatim, without control characters.
pub(super) fn text(text: &str) -> String {
    plain::clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
