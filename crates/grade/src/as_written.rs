//! Texts and expressions that are searched for as they are written, although something else was probably meant. What
//! forbids such a text could never fail.

use model::decode::Problems;
use model::{Diagnostic, Excerpt, Node};

/// Advice for an expression in slashes where flags are written in front.
pub(crate) const FLAGS_IN_FRONT: &str = "write the expression without them, and flags in front: `(?i)hello`";

/// Escapes of regular expressions that repeat, which other texts hardly have.
const REPEATED: [&str; 6] = ["\\d+", "\\s+", "\\w+", "\\d*", "\\s*", "\\w*"];

/// Returns the warning about a text or expression with a character that does not show, or in typographic quotes.
pub(crate) fn unseen(text: &str, place: Excerpt) -> Option<Diagnostic> {
    if let Some(character) = model::unseen_character(text) {
        let problem = Diagnostic::warning(format!("this text contains {character}, which does not show"));
        return Some(problem.at(place).help("write it without the character, or with a plain space"));
    }
    let mut letters = text.chars();
    let (first, last) = (letters.next()?, letters.next_back()?);
    let is_double = matches!(first, '\u{201c}' | '\u{201e}') && matches!(last, '\u{201c}' | '\u{201d}');
    let is_single = matches!(first, '\u{2018}' | '\u{201a}') && matches!(last, '\u{2018}' | '\u{2019}');
    (is_double || is_single).then(|| {
        let problem = Diagnostic::warning(format!("the quotes of `{text}` are part of the text"));
        problem.at(place).help("write plain quotes, `\"` or `'`, or none")
    })
}

/// Reports what is probably not meant in the text of `node`, which must occur or must not. `help` names what takes an
/// expression.
pub(crate) fn report(node: &Node, is_wanted: bool, help: &str, problems: &mut Problems) {
    let Some(text) = node.as_str() else { return };
    problems.extend(unseen(text, node.excerpt()));
    problems.extend(last_line_break(text, node.excerpt()));
    problems.extend(expression(text, node.excerpt(), help));
    problems.extend(forbidden(text, node.excerpt(), help).filter(|_| !is_wanted));
}

/// Returns the warning about a text that is written like a regular expression in slashes. `help` names what takes one.
pub(crate) fn expression(text: &str, place: Excerpt, help: &str) -> Option<Diagnostic> {
    is_in_slashes_with_pattern(text).then(|| {
        let message = format!("`{text}` looks like a regular expression but is compared as text");
        Diagnostic::warning(message).at(place).help(help)
    })
}

/// Returns the warning about a text that must not occur and is written like a pattern of any kind.
pub(crate) fn forbidden(text: &str, place: Excerpt, help: &str) -> Option<Diagnostic> {
    let warning = |what: &str| Diagnostic::warning(format!("`{text}` looks like {what} but is compared as text"));
    let inner = text.strip_prefix('*').and_then(|rest| rest.strip_suffix('*'));
    if let Some(inner) = inner.filter(|inner| inner.contains(char::is_alphanumeric) && !inner.contains('*')) {
        let help = format!("without the stars, `{inner}` is found anywhere in the text");
        return Some(warning("a pattern with wildcards").at(place).help(help));
    }
    is_like_expression(text).then(|| warning("a regular expression").at(place).help(help))
}

/// Returns the warning about a text with a line break at its end.
pub(crate) fn last_line_break(text: &str, place: Excerpt) -> Option<Diagnostic> {
    (text.ends_with('\n') && !model::text::is_blank(text)).then(|| {
        let message = "this text ends with a line break, so it is found only where a line ends";
        Diagnostic::warning(message).at(place).help("write `|-` instead of `|`, and `>-` instead of `>`")
    })
}

/// Arguments whose names hardly occur before `=` in a command or an address.
const ARGUMENTS: [&str; 5] = ["command", "file_path", "content", "old_string", "new_string"];

/// Returns the warning about an expression for the arguments of a call as JSON that is written as `NAME=VALUE`.
pub(crate) fn argument(text: &str, place: Excerpt) -> Option<Diagnostic> {
    let (name, value) = text.split_once(['=', ':']).filter(|(name, _)| ARGUMENTS.contains(name))?;
    let problem = Diagnostic::warning(format!("`{text}` is a regular expression for the arguments as JSON")).at(place);
    Some(problem.help(format!("write a map of arguments: `{{ {name}: \"{}\" }}`", value.trim())))
}

/// Returns the warning about an expression in slashes where these have no meaning. `help` says what to write.
pub(crate) fn slashes(written: &str, place: Excerpt, help: &str) -> Option<Diagnostic> {
    (model::is_in_slashes(written) || model::wrong_flag(written).is_some()).then(|| {
        let message = format!("the slashes of `{written}` are part of the expression here");
        Diagnostic::warning(message).at(place).help(help)
    })
}

/// Returns the warning about an expression in the form of another language or with half of its slashes. With
/// `has_slashes`, slashes and flags have a meaning.
pub(crate) fn half_written(written: &str, has_slashes: bool, place: Excerpt) -> Option<Diagnostic> {
    let (what, pattern, flags) = other_form(written, has_slashes)?;
    let right = match (flags, has_slashes) {
        ("", _) => pattern,
        (flags, true) => format!("/{pattern}/{flags}"),
        (_, false) => format!("(?i){pattern}"),
    };
    let message = format!("{what} of `{written}` must be in the text, too");
    Some(Diagnostic::warning(message).at(place).help(format!("write `{right}` if they are not part of the text")))
}

/// Returns the part of an expression that is probably not meant as text, and the expression and its flags without it.
fn other_form(written: &str, has_slashes: bool) -> Option<(&'static str, String, &str)> {
    let is_flags = |flags: &str| !flags.is_empty() && flags.chars().all(|flag| "gimsu".contains(flag));
    let doubled = |letter: char| format!("\\\\{letter}");
    let is_doubled = written.starts_with(&doubled('b')) || written.ends_with(&doubled('b')) && !written.contains(":\\");
    if is_doubled || REPEATED.iter().any(|escape| written.contains(&format!("\\{escape}"))) {
        return Some(("the backslashes", written.replace("\\\\", "\\"), ""));
    }
    let quoted = written.strip_prefix(['r', 'b']).unwrap_or(written);
    for quote in ['"', '\''] {
        let inside = quoted.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        let is_other = |inside: &&str| !inside.contains(quote) && (quoted != written || inside.starts_with('/'));
        if let Some(inside) = inside.filter(is_other) {
            let (pattern, flags) = expect::split_regex(inside).unwrap_or((inside, ""));
            return Some(("the quotes", pattern.to_owned(), flags));
        }
    }
    let (inside, flags) = written.rsplit_once('/')?;
    if let Some(pattern) = ["m/", "qr/", "s/"].iter().find_map(|start| inside.strip_prefix(start)) {
        let pattern = pattern.split('/').next().filter(|pattern| !pattern.is_empty())?;
        return (flags.is_empty() || is_flags(flags)).then(|| ("the slashes", pattern.to_owned(), flags));
    }
    match inside.strip_prefix('/') {
        Some(pattern) if !pattern.is_empty() && flags.starts_with(' ') && is_flags(flags.trim()) => {
            Some(("the slashes", pattern.to_owned(), flags.trim()))
        }
        None if has_slashes && flags.contains('i') && is_flags(flags) && !inside.is_empty() => {
            (!inside.contains('/')).then(|| ("the slash", inside.to_owned(), flags))
        }
        _ => None,
    }
}

/// Returns `true` if a text is written like a regular expression without slashes.
fn is_like_expression(text: &str) -> bool {
    let is_word = |word: &str| {
        word.chars().any(char::is_alphabetic) && word.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '\''))
    };
    let is_word = |word: &str| is_word(word) && !word.starts_with(' ') && !word.ends_with(' ');
    let between = text.split_once(".*").or_else(|| text.split_once(".+"));
    let is_gap = |(before, after): (&str, &str)| {
        let ends_word = before.ends_with(|c: char| c.is_alphanumeric() || c == ' ');
        ends_word && after.starts_with(|c: char| c.is_alphanumeric() || c == ' ')
    };
    let is_anchored = text.strip_prefix('^').is_some_and(|rest| rest.starts_with(char::is_alphabetic))
        || text.strip_suffix('$').is_some_and(|rest| rest.ends_with(char::is_lowercase));
    let group = text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
    text.starts_with("(?i)")
        || is_anchored
        || ["[0-9]", "[a-z]", "[A-Z]"].iter().any(|class| text.contains(class))
        || group.contains('|') && group.split('|').all(is_word)
        || text.starts_with("\\b")
        || text.ends_with("\\b")
        || REPEATED.iter().any(|escape| text.contains(escape))
        || between.is_some_and(is_gap)
        || text.contains('|') && text.trim_matches(['(', ')']).split('|').all(is_word)
}

/// Returns `true` if a text is written like a regular expression in JavaScript, and not like a path.
fn is_in_slashes_with_pattern(text: &str) -> bool {
    let Some((pattern, flags)) = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else { return false };
    let is_pattern = pattern.contains(['\\', '^', '$', '*', '+', '?', '[', '(', '|', ' ']);
    !pattern.is_empty()
        && !pattern.replace("\\/", "").contains('/')
        && flags.to_lowercase().chars().all(|flag| model::REGEX_FLAGS.contains(flag))
        && (is_pattern || flags.contains(['i', 'I']))
}

#[cfg(test)]
mod tests {
    use model::Source;

    use super::*;

    fn place() -> Excerpt {
        Source::new("a.yaml", "a").excerpt(model::Span::default())
    }

    #[test]
    fn a_forbidden_text_that_is_meant_as_a_pattern_is_found() {
        let is_found = |text: &str| forbidden(text, place(), "").is_some();
        for text in [
            "sorry|apolog",
            "(sorry|apologies)",
            "*sorry*",
            r"\bsorry\b",
            r"id \d+",
            "a.*b",
            "(?i)sorry",
            "^sorry",
            "sorry$",
            "your (fault|error)",
            "[0-9]+",
        ] {
            assert!(is_found(text), "{text}");
        }
        for text in [
            "sorry",
            "**",
            "**bold**",
            "*",
            "a | b",
            "| a | b |",
            r"C:\build",
            "...",
            "*.*",
            "a.b",
            "||",
            "x*y",
            "US$",
            "^",
            "$5",
            "x^2",
            "f(a | b)",
        ] {
            assert!(!is_found(text), "{text}");
        }
    }

    #[test]
    fn an_expression_with_half_of_its_slashes_or_in_another_language_is_found() {
        let right = |written: &str, has_slashes: bool| {
            let problem = half_written(written, has_slashes, place())?;
            Some(problem.help.first()?.split('`').nth(1)?.to_owned())
        };
        for (written, wanted) in [
            ("/sorry/ i", "/sorry/i"),
            ("sorry/i", "/sorry/i"),
            ("m/sorry/i", "/sorry/i"),
            ("s/sorry/x/", "sorry"),
            ("r\"sorry\"", "sorry"),
            ("'/sorry/i'", "/sorry/i"),
            (r"\\bsorry\\b", r"\bsorry\b"),
            (r"id \\d+", r"id \d+"),
        ] {
            assert_eq!(right(written, true).as_deref(), Some(wanted), "{written}");
        }
        assert_eq!(right("m/sorry/i", false).as_deref(), Some("(?i)sorry"));
        for written in ["sorry", "a/b", "/usr/lib", r"C:\\build", "\"id\"", "m/s", "src/in", "/a/", "and/or", "/"] {
            assert_eq!(right(written, true), None, "{written}");
        }
        assert_eq!(right("hello/i", false), None);
    }

    #[test]
    fn characters_that_nobody_sees_and_typographic_quotes_around_a_text_are_found() {
        let message = |text: &str| unseen(text, place()).map(|problem| problem.message);
        let of = |what: &str| Some(format!("this text contains {what}, which does not show"));
        assert_eq!(message("your\u{200b}fault"), of("a zero-width space (U+200B)"));
        assert_eq!(message("your\u{a0}fault"), of("a no-break space (U+00A0)"));
        let quotes = Some("the quotes of `\u{201c}a\u{201d}` are part of the text".to_owned());
        assert_eq!(message("\u{201c}a\u{201d}"), quotes);
        for text in
            ["", "a", "\u{200b}", "30\u{a0}\u{20ac}", "oui\u{202f}!", "\u{1f468}\u{200d}\u{1f469}", "it\u{2019}s"]
        {
            assert_eq!(message(text), None, "{text}");
        }
    }
}
