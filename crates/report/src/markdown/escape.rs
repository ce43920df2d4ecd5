//! Escapes untrusted text for a Markdown page: it is shown verbatim, and cannot create tables, lists, links, mentions
//! or HTML.

use crate::plain;

/// Zero-width character after `@` or `#` that prevents mentions and links.
const JOINER: char = '\u{2060}';

/// Escapes text as one line, cut to `most` characters. Text between two backticks stays code.
pub(crate) fn text(text: &str, most: usize) -> String {
    let line = plain::folded(text, most, "…");
    let (mut escaped, mut rest) = (String::with_capacity(line.len() + 8), line.as_str());
    while let Some((before, code, after)) = code_span(rest) {
        escape(before, &mut escaped);
        escaped.extend(["`", code, "`"]);
        rest = after;
    }
    escape(rest, &mut escaped);
    escaped
}

/// Returns the first text between two backticks, with the text before it and after it.
fn code_span(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    (!code.trim().is_empty()).then_some((before, code, after))
}

fn escape(line: &str, escaped: &mut String) {
    let mut before = ' ';
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '$' | '!' => escaped.extend(['\\', c]),
            // Inside a word, `_` has no special meaning.
            '_' if before.is_alphanumeric() && next.is_alphanumeric() => escaped.push(c),
            '_' => escaped.extend(['\\', c]),
            '@' => escaped.extend([c, JOINER]),
            '#' if next.is_ascii_digit() => escaped.extend([c, JOINER]),
            // At the start of a line, it would begin a heading, a list or a rule.
            '#' | '-' | '+' | '=' if escaped.is_empty() => escaped.extend(['\\', c]),
            '.' | ')' if next == ' ' && !escaped.is_empty() && escaped.chars().all(|c| c.is_ascii_digit()) => {
                escaped.extend(['\\', c]);
            }
            c => escaped.push(c),
        }
        before = c;
    }
}

/// Returns the text as one line between backticks, cut to `most` characters. A pipe in it does not end a table cell.
pub(crate) fn code(text: &str, most: usize) -> String {
    let line = plain::one_line(text, most, "…").replace('|', "\\|");
    if line.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&line) + 1);
    let pad = if line.starts_with(['`', ' ']) || line.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{line}{pad}{fence}")
}

/// Like [`code`], for use outside tables, where pipes are not escaped.
pub(crate) fn plain_code(text: &str, most: usize) -> String {
    code(text, most).replace("\\|", "|")
}

/// Returns a fenced block of at most `most` lines, indented by `margin`.
pub(crate) fn block(text: &str, margin: usize, most: usize) -> String {
    let (mut lines, hidden) = plain::some_lines(text.trim_end(), most);
    if hidden > 0 {
        lines.push(format!("… {hidden} more lines"));
    }
    let longest = lines.iter().map(|line| longest_run(line)).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let open = format!("{fence}text");
    let all = std::iter::once(open.as_str()).chain(lines.iter().map(String::as_str)).chain([fence.as_str()]);
    all.map(|line| format!("{:margin$}{line}", "").trim_end().to_owned() + "\n").collect()
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_the_page() {
        let written = "a|b <img src=x onerror=y> `x` [l](u) **b** ~~s~~ $m$ &amp; \\ !\n# not a heading";
        assert_eq!(
            text(written, 200),
            "a\\|b &lt;img src=x onerror=y&gt; `x` \\[l\\](u) \\*\\*b\\*\\* \\~\\~s\\~\\~ \\$m\\$ &amp;amp; \\\\ \\! # not a heading"
        );
        assert_eq!(text("no `<b>*x*` came, `y", 200), "no `<b>*x*` came, \\`y");
        assert_eq!(text("``x``", 200), "\\`\\`x\\`\\`");
        assert_eq!(text("snake_case _em_", 200), "snake_case \\_em\\_");
        assert_eq!(text("@all see #12", 200), "@\u{2060}all see #\u{2060}12");
        let first: Vec<String> = ["# a", "- a", "12. a", "1) a", "=", "1.2"].map(|written| text(written, 20)).into();
        assert_eq!(first, ["\\# a", "\\- a", "12\\. a", "1\\) a", "\\=", "1.2"]);
    }

    #[test]
    fn code_is_fenced_by_more_backticks_than_it_contains() {
        assert_eq!(code("a|b", 20), "`a\\|b`");
        assert_eq!(plain_code("a|b", 20), "`a|b`");
        assert_eq!(code("x ``y`` z", 20), "```x ``y`` z```");
        assert_eq!(code("`", 20), "`` ` ``");
        assert_eq!(code(" \n", 20), "");
    }

    #[test]
    fn text_cannot_close_its_code_block() {
        let written = "one\n````\n</details>\u{1b}[31m\n\nfour\nfive";
        assert_eq!(block(written, 2, 4), "  `````text\n  one\n  ````\n  </details>\n\n  … 2 more lines\n  `````\n");
    }
}
