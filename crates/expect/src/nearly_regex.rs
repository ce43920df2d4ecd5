//! Texts that look like regular expressions, but are compared as text because something is wrong with their slashes.

use model::{Diagnostic, Node, REGEX_FLAGS, flags_problem};

/// Folders in which other paths may have the form of a regular expression: `/tmp/x`.
const FOLDERS: [&str; 12] = ["app", "data", "dev", "etc", "home", "mnt", "opt", "root", "srv", "tmp", "usr", "var"];

/// Returns a warning if `text`, the value of `node`, looks like a regular expression but is not one.
pub(crate) fn doubt(node: &Node, text: &str) -> Option<Diagnostic> {
    if !is_nearly_regex(node, text) {
        return None;
    }
    let message = format!("`{text}` looks like a regular expression but is compared as text");
    let help = match wrong_flag(text) {
        Some(wrong) => format!("{wrong}; for text, write `{{$eq: …}}`"),
        None => {
            "a regular expression is `/pattern/flags`; quote it where it has a `#` or `: `, and write `{$eq: …}` for \
                 text"
                .to_owned()
        }
    };
    Some(node.warning(message).help(help))
}

/// Returns `true` if `text` starts like a regular expression but is not one, and does not look like a path either. A
/// text that a template made is one that an agent or a table has.
fn is_nearly_regex(node: &Node, text: &str) -> bool {
    let written = node.source.text.get(node.span.start()..node.span.end()).unwrap_or_default();
    let Some(rest) = text.strip_prefix('/').filter(|rest| !rest.is_empty() && !written.contains("{{")) else {
        return false;
    };
    match rest.rsplit_once('/') {
        // Quoted text cannot have lost its end to a comment.
        None => !written.starts_with(['"', '\'']),
        Some((source, flags)) => {
            let is_path = FOLDERS.contains(&source) && flags.chars().all(char::is_lowercase);
            let is_short = flags.len() == 1 || (flags.len() == 2 && flags.contains(|flag| REGEX_FLAGS.contains(flag)));
            let is_spaced = flags != flags.trim() && flags_problem(flags.trim()).is_none();
            let is_odd = is_spaced || is_short && flags.chars().all(char::is_alphabetic);
            !source.is_empty() && !source.contains('/') && flags_problem(flags).is_some() && !is_path && is_odd
        }
    }
}

/// Returns what is wrong with the flags behind the last slash of `text`.
fn wrong_flag(text: &str) -> Option<String> {
    let (_, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    if flags != flags.trim() {
        return Some("there is a space or the end of a line behind its slashes".to_owned());
    }
    flags_problem(flags)
}

#[cfg(test)]
mod tests {
    use model::{NodeKind, Source, Span};

    use super::*;

    #[test]
    fn a_text_that_is_nearly_a_regular_expression_is_doubted() {
        let doubt = |written: &str, text: &str| {
            let (kind, span) = (NodeKind::String(text.to_owned()), Span::new(0, written.len()));
            doubt(&Node { kind, span, tag: None, source: Source::new("a.yaml", written) }, text)
        };
        for text in ["/a b/I", "/a/q", "/tmp/I", "/a/gg", "/a/ i", "/a/ ", "/a/\n", "/a"] {
            assert!(doubt(text, text).is_some(), "{text}");
        }
        for text in ["/usr/bin/x", "/usr/bin", "/tmp/x", "/a/i", "a/I", "/", "//"] {
            assert!(doubt(text, text).is_none(), "{text}");
        }
        assert!(doubt("\"/a\"", "/a").is_none());
        assert!(doubt("{{ path }}", "/a/I").is_none());
    }
}
