//! The HTML around the data: its policy, style and scripts.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

pub(super) const STYLE: &str = include_str!("page.css");

/// The scripts, in execution order. They share one scope.
const SCRIPTS: &str = concat!(
    include_str!("dom.js"),
    include_str!("data.js"),
    include_str!("filter.js"),
    include_str!("plot.js"),
    include_str!("overview.js"),
    include_str!("timeline.js"),
    include_str!("trial.js"),
    include_str!("compare.js"),
    include_str!("live.js"),
    include_str!("main.js"),
);

/// Source from which a page gets the transcripts of trials.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Source {
    /// The page itself.
    File,
    /// The server that sent the page.
    Server,
}

/// Returns the content security policy of a page.
pub(super) fn policy(source: Source) -> String {
    let connect = if source == Source::Server { "; connect-src 'self'" } else { "" };
    format!(
        "default-src 'none'; script-src {}; style-src {}{connect}; base-uri 'none'; form-action 'none'",
        hash(SCRIPTS),
        hash(STYLE)
    )
}

/// Writes everything before the chunks. This includes the scripts, so that the page is shown while a large file is
/// still being read. `outline` is HTML that is shown until the scripts replace it, or without scripts.
pub(super) fn start(out: &mut impl Write, index: &str, outline: &str, source: Source) -> io::Result<()> {
    let index = as_script_data(index);
    write!(
        out,
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>trialrun</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header id="top"></header>
<main id="main" tabindex="-1">{outline}<noscript><p>Transcripts need JavaScript. This page loads nothing from the network.</p></noscript></main>
<div id="status" role="status" aria-live="polite"></div>
<script type="application/json" id="index">{index}</script>
<script>{SCRIPTS}</script>
"##,
        policy(source),
    )
}

/// Writes the chunk of a trial, as Base64.
pub(super) fn chunk(out: &mut impl Write, number: usize, base64: &str) -> io::Result<()> {
    writeln!(out, "<script type=\"text/plain\" id=\"t{number}\">{base64}</script>")
}

/// Writes everything after the chunks.
pub(super) fn end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"</body>\n</html>\n")
}

/// Returns the source expression for a content security policy that allows exactly this text.
pub(super) fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// Escapes JSON so that it cannot end the element that contains it, nor start another.
fn as_script_data(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_escape_its_element() {
        let json = as_script_data(r#"{"a":"</script><!--<script>"}"#);
        assert!(!json.contains('<'), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["a"], "</script><!--<script>");
    }

    #[test]
    fn the_scripts_create_elements_only_from_their_own_text() {
        for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "</", "<!--", "\r"]
        {
            assert!(!SCRIPTS.contains(forbidden), "{forbidden}");
        }
        assert!(!STYLE.contains("</") && !STYLE.contains("url("));
    }
}
