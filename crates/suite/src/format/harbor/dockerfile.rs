//! Reads the instructions of a Dockerfile.

use std::sync::Arc;

use model::{Excerpt, Source, Span};

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Name in capital letters, such as `COPY`.
    pub(super) name: String,
    /// Text after the name, with continued lines joined.
    pub(super) text: String,
    /// True if its text continues in a here-document.
    pub(super) has_document: bool,
    /// Location of the instruction's first line.
    pub(super) place: Excerpt,
}

impl Instruction {
    /// Splits the text into options such as `--chown=…`, by name and value, and the rest.
    pub(super) fn options(&self) -> (Vec<(&str, &str)>, &str) {
        let (mut options, mut rest) = (Vec::new(), self.text.as_str());
        while let Some(option) = rest.strip_prefix("--") {
            let end = option.find(char::is_whitespace).unwrap_or(option.len());
            options.push(option[..end].split_once('=').unwrap_or((&option[..end], "")));
            rest = option[end..].trim_start();
        }
        (options, rest)
    }

    /// Returns the operands of an instruction such as `COPY`: words, or a list in JSON.
    pub(super) fn operands(&self) -> Vec<String> {
        let (_, rest) = self.options();
        match serde_json::from_str::<Vec<String>>(rest) {
            Ok(items) if rest.starts_with('[') => items,
            _ => words(rest),
        }
    }
}

/// Returns the instructions of `source`.
pub(super) fn instructions(source: &Arc<Source>) -> Vec<Instruction> {
    let mut found: Vec<Instruction> = Vec::new();
    let escape = escape_of(&source.text);
    let (mut at, mut open, mut ends): (usize, bool, Vec<String>) = (0, false, Vec::new());
    for line in source.text.split_inclusive('\n') {
        let (from, text) = (at, line.trim());
        at += line.len();
        if let Some(end) = ends.first() {
            // A line of a here-document.
            if text == end {
                ends.remove(0);
            }
            continue;
        }
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (part, continues) = match text.strip_suffix(escape) {
            Some(part) => (part.trim_end(), true),
            None => (text, false),
        };
        match found.last_mut().filter(|_| open) {
            Some(instruction) => {
                instruction.text.push(' ');
                instruction.text.push_str(part);
            }
            None => {
                let (name, rest) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
                let start = from + (line.len() - line.trim_start().len());
                found.push(Instruction {
                    name: name.to_ascii_uppercase(),
                    text: rest.trim_start().to_owned(),
                    has_document: false,
                    place: source.excerpt(Span::new(start, start + text.len())),
                });
            }
        }
        open = continues;
        if let Some(instruction) = found.last_mut().filter(|one| !open && takes_document(&one.name)) {
            ends = documents(&instruction.text);
            instruction.has_document = !ends.is_empty();
        }
    }
    found
}

/// Returns the letter that continues a line, which a directive at the beginning can change.
fn escape_of(text: &str) -> char {
    let directives = text.lines().map_while(|line| line.trim().strip_prefix('#'));
    let escape = directives.filter_map(|line| line.split_once('=')).find(|(name, _)| name.trim() == "escape");
    if escape.is_some_and(|(_, value)| value.trim() == "`") { '`' } else { '\\' }
}

fn takes_document(name: &str) -> bool {
    matches!(name, "RUN" | "COPY" | "ADD")
}

/// Returns the words that end the here-documents which `text` begins.
fn documents(text: &str) -> Vec<String> {
    let starts = text.match_indices("<<").map(|(at, _)| text[at + 2..].trim_start_matches('-'));
    let words = starts.map(|rest| rest.trim_start_matches(['"', '\'']));
    let names = words.map(|rest| rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next());
    names.flatten().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Splits `text` into words without quotes.
pub(super) fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), letter) if open == letter => quote = None,
            (open, '\\') if open != Some('\'') => word.get_or_insert_default().extend(letters.next()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Replaces `$NAME`, `${NAME}` and `${NAME:-DEFAULT}`. The error is the name of a variable that is not known.
pub(super) fn substituted(text: &str, variables: &[(String, String)]) -> Result<String, String> {
    let value_of =
        |name: &str| variables.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (name, default, after) = match rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((inner, after)) => {
                let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, value)| (name, Some(value)));
                (name, default, after)
            }
            None => {
                let end =
                    rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
                (&rest[..end], None, &rest[end..])
            }
        };
        out.push_str(value_of(name).or(default).ok_or_else(|| name.to_owned())?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, usize)> {
        let found = instructions(&Source::new("Dockerfile", text));
        found.into_iter().map(|one| (one.name, one.text, one.place.line)).collect()
    }

    #[test]
    fn lines_are_continued_and_comments_are_skipped() {
        let text = "# syntax=docker/dockerfile:1\nfrom ubuntu:24.04 \\\n  AS base\n\nRUN apt-get update && \\\n# a comment\n    apt-get install -y git\nCMD [\"sh\"]";
        let expected = [
            ("FROM", "ubuntu:24.04 AS base", 2),
            ("RUN", "apt-get update && apt-get install -y git", 5),
            ("CMD", "[\"sh\"]", 8),
        ];
        assert_eq!(read(text), expected.map(|(name, text, line)| (name.to_owned(), text.to_owned(), line)));
        let other = read("# escape=`\nRUN a `\n b\nWORKDIR c:\\x\n");
        assert_eq!(other[0].1, "a b");
        assert_eq!(other[1].1, "c:\\x");
    }

    #[test]
    fn a_document_is_part_of_its_instruction() {
        let source = Source::new("Dockerfile", "RUN <<EOF\nFROM evil\nEOF\nCOPY <<\"A\" /a\nx\nA\nUSER me\n");
        let found = instructions(&source);
        let names: Vec<(&str, bool)> = found.iter().map(|one| (one.name.as_str(), one.has_document)).collect();
        assert_eq!(names, [("RUN", true), ("COPY", true), ("USER", false)]);
    }

    #[test]
    fn operands_are_words_or_a_list() {
        let of = |text: &str| {
            let source = Source::new("Dockerfile", format!("COPY {text}"));
            let one = instructions(&source).remove(0);
            let options: Vec<String> = one.options().0.iter().map(|(name, value)| format!("{name}={value}")).collect();
            (options, one.operands())
        };
        assert_eq!(
            of("--chown=a:b --link 'a b' c/ /d"),
            (vec!["chown=a:b".into(), "link=".into()], vec!["a b".into(), "c/".into(), "/d".into()])
        );
        assert_eq!(of("--chmod=755 [\"a b\", \"/d\"]").1, ["a b", "/d"]);
        assert_eq!(of("[broken").1, ["[broken"]);
    }

    #[test]
    fn variables_are_replaced() {
        let variables = [("A".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())];
        assert_eq!(substituted("x$A-${A}/${B:-b}", &variables), Ok("x2-2/b".to_owned()));
        assert_eq!(substituted("/opt:$PATH", &variables), Err("PATH".to_owned()));
        assert_eq!(substituted("${", &variables), Err(String::new()));
    }
}
