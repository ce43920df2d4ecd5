//! Constraints and instructions in Markdown or plain text: list items, and sentences in paragraphs.

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use regex::Regex;
use unicode_segmentation::UnicodeSegmentation;

use crate::profile::{Evidence, Fact, Profile};

/// Words that occur in a sentence that limits what an agent may do.
static LIMITS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?i)\b(must|never|always|only|do not|don't|does not|cannot|can't|may not|should not|shouldn't|at most|at least|no more than|refuse|forbidden|prohibited|requires?|required|without|unless|avoid|up to|limited to|not allowed)\b";
    Regex::new(words).ok()
});

/// Returns the facts in `text`, which begins at line `first_line` of `file`.
pub(super) fn read(text: &str, file: &str, first_line: usize) -> Profile {
    read_at(text, |at| {
        let number = text[..at].matches('\n').count();
        Evidence::in_file(file, first_line + number, text.lines().nth(number).unwrap_or_default())
    })
}

/// Returns the facts in `text`. `evidence` returns the location of the text at a byte.
pub(super) fn read_at(text: &str, evidence: impl Fn(usize) -> Evidence) -> Profile {
    let mut profile = Profile::default();
    for (statement, place) in statements(text) {
        let facts = if is_limit(&statement) { &mut profile.constraints } else { &mut profile.instructions };
        if !facts.iter().any(|known: &Fact| known.text == statement) {
            facts.push(Fact { text: statement, evidence: vec![evidence(place.start)] });
        }
    }
    profile
}

/// Returns `true` if a sentence limits what an agent may do.
pub(super) fn is_limit(sentence: &str) -> bool {
    LIMITS.as_ref().is_some_and(|limits| limits.is_match(sentence))
}

/// Returns the ranges of the sections whose titles match, including their subsections.
pub(super) fn sections(text: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(HeadingLevel, usize)> = None;
    let mut title: Option<String> = None;
    for (event, place) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                found.extend(open.take_if(|(outer, _)| level <= *outer).map(|(_, start)| start..place.start));
                title = Some(String::new());
            }
            Event::Text(piece) | Event::Code(piece) => title.iter_mut().for_each(|title| title.push_str(&piece)),
            Event::End(TagEnd::Heading(level))
                if title.take().is_some_and(|title| open.is_none() && is_wanted(&title)) =>
            {
                open = Some((level, place.end));
            }
            _ => {}
        }
    }
    found.extend(open.map(|(_, start)| start..text.len()));
    found
}

/// Returns the sentences in paragraphs and list items, each with its location. Headings, code and tables are not
/// statements.
fn statements(text: &str) -> Vec<(String, Range<usize>)> {
    let mut found: Vec<(String, Range<usize>)> = Vec::new();
    let mut skipped = 0_usize;
    // Pieces of the current paragraph or item, each with its location.
    let mut pieces: Vec<(String, Range<usize>)> = Vec::new();
    for (event, place) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. } | Tag::CodeBlock(_) | Tag::Table(_)) => {
                end_of_text(&mut pieces, &mut found);
                skipped += 1;
            }
            Event::End(TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::Table) => skipped = skipped.saturating_sub(1),
            Event::Start(Tag::Paragraph | Tag::Item | Tag::List(_)) | Event::End(TagEnd::Paragraph | TagEnd::Item) => {
                end_of_text(&mut pieces, &mut found);
            }
            Event::Text(piece) if skipped == 0 => pieces.push((piece.into_string(), place)),
            Event::Code(piece) if skipped == 0 => pieces.push((format!("`{piece}`"), place)),
            Event::SoftBreak | Event::HardBreak if skipped == 0 => pieces.push((" ".to_owned(), place)),
            _ => {}
        }
    }
    end_of_text(&mut pieces, &mut found);
    found
}

/// Splits a finished paragraph or item into sentences, which do not end inside of a code span. A single word before another sentence is part of it, as in "Dr.
/// Smith must sign."; a single word at the end is a label.
fn end_of_text(pieces: &mut Vec<(String, Range<usize>)>, found: &mut Vec<(String, Range<usize>)>) {
    let whole: String = pieces.iter().map(|(piece, _)| piece.as_str()).collect();
    let (mut start, mut end) = (0, 0);
    let is_in_code = |at: usize| {
        let mut length = 0;
        pieces.iter().any(|(piece, _)| {
            let begins = length;
            length += piece.len();
            piece.starts_with('`') && begins < at && at < length
        })
    };
    for bound in whole.split_sentence_bounds() {
        end += bound.len();
        let sentence = &whole[start..end];
        if !sentence.trim().contains(char::is_whitespace) || is_in_code(end) {
            continue;
        }
        let begins = start + sentence.len() - sentence.trim_start().len();
        start = end;
        // The piece in which the sentence begins.
        let mut length = 0;
        let piece = pieces.iter().find(|(piece, _)| {
            length += piece.len();
            begins < length
        });
        found.extend(piece.map(|(piece, place)| {
            // If a piece contains decoded characters, its length differs from that of its source.
            let within = begins - (length - piece.len());
            let at = place.start + if place.len() == piece.len() { within } else { 0 };
            (sentence.trim().to_owned(), at..place.end)
        }));
    }
    pieces.clear();
}

/// Returns `true` if a line has enough words to be part of a sentence.
pub(super) fn is_sentence(line: &str) -> bool {
    line.split_whitespace().count() >= 4
}
