//! Scorers of inspect that compare the answer with the targets of a sample.

use std::collections::HashMap;

use model::decode::Problems;
use model::{Evidence, Node};
use regex::{Regex, RegexBuilder};

use super::{Held, flag, number, text, texts, whole};
use crate::folded::fold;

/// Punctuation in ASCII.
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// Punctuation around a number.
const AROUND_NUMBER: &str = "!?:;()[]{}'\"`";

/// Words that do not count.
const ARTICLES: [&str; 3] = ["a", "an", "the"];

/// Scorer with its targets. One of them is enough.
#[derive(Debug)]
pub(super) struct Scorer {
    targets: Vec<String>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Match { location: Location, ignores_case: bool, is_numeric: bool },
    Includes { ignores_case: bool },
    Pattern { regex: Regex, ignores_case: bool, needs_all: bool },
    Answer(Form),
    Exact,
    F1 { threshold: f64, stop_words: Vec<String> },
    Choice { count: usize, is_multiple: bool },
}

#[derive(Debug, Clone, Copy)]
enum Location {
    Begin,
    End,
    Any,
    Exact,
}

/// What follows `ANSWER:`.
#[derive(Debug, Clone, Copy)]
enum Form {
    Letter,
    Word,
    Line,
}

impl Scorer {
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let ignores_case = !flag(node, "case");
        let kind = match text(node, "scorer")? {
            "match" => {
                let location = match text(node, "location").unwrap_or("end") {
                    "begin" => Location::Begin,
                    "end" => Location::End,
                    "any" => Location::Any,
                    "exact" => Location::Exact,
                    _ => return None,
                };
                Kind::Match { location, ignores_case, is_numeric: flag(node, "numeric") }
            }
            "includes" => Kind::Includes { ignores_case },
            "pattern" => {
                let written = node.get("pattern")?;
                match RegexBuilder::new(written.as_str()?).case_insensitive(ignores_case).build() {
                    Ok(regex) => Kind::Pattern { regex, ignores_case, needs_all: flag(node, "match_all") },
                    Err(error) => {
                        let reason = error.to_string();
                        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
                        problems.push(written.error(format!("the expression cannot be used: {reason}")));
                        return None;
                    }
                }
            }
            "answer" => Kind::Answer(match text(node, "pattern")? {
                "letter" => Form::Letter,
                "word" => Form::Word,
                "line" => Form::Line,
                _ => return None,
            }),
            "exact" => Kind::Exact,
            "f1" => Kind::F1 {
                threshold: number(node, "threshold").unwrap_or(1.0),
                stop_words: texts(node, "stop_words").iter().map(|word| plain(word)).collect(),
            },
            "choice" => Kind::Choice {
                count: usize::try_from(whole(node, "choices")?).ok()?,
                is_multiple: flag(node, "multiple_correct"),
            },
            _ => return None,
        };
        Some(Self { targets: texts(node, "targets"), kind })
    }

    pub(super) fn test(&self, evidence: &Evidence) -> Result<Held, String> {
        let answer = evidence.trace.answer.as_deref().unwrap_or_default();
        // There, an empty answer can match an empty target.
        if answer.trim().is_empty() {
            return Ok(Held::plain(false, "the agent gave no answer"));
        }
        let score = self.score(answer);
        let least = if let Kind::F1 { threshold, .. } = &self.kind { *threshold } else { 1.0 };
        let targets: Vec<String> = self.targets.iter().map(|target| crate::format::quoted(target)).collect();
        let targets = crate::format::few(targets, 5).join(" or ");
        let verb = if score >= least { "has" } else { "does not have" };
        Ok(Held { holds: score >= least, score, reason: format!("the answer {verb} the target {targets}") })
    }

    /// Returns the score of an answer, from 0 to 1.
    fn score(&self, answer: &str) -> f64 {
        let targets = &self.targets;
        let holds = match &self.kind {
            Kind::Match { location, ignores_case, is_numeric } => {
                targets.iter().any(|target| is_match(answer, target, *location, *ignores_case, *is_numeric))
            }
            Kind::Includes { ignores_case: true } => targets.iter().any(|target| fold(answer).contains(&fold(target))),
            Kind::Includes { ignores_case: false } => targets.iter().any(|target| answer.contains(target.as_str())),
            Kind::Pattern { regex, ignores_case, needs_all } => regex.captures(answer).is_some_and(|found| {
                let whole = found.get(0).map(|whole| whole.as_str());
                let groups: Vec<&str> = match found.len() {
                    1 => whole.into_iter().collect(),
                    _ => found.iter().skip(1).flatten().map(|group| group.as_str()).collect(),
                };
                let is_target = |group: &&str| is_one_of(group, targets, *ignores_case);
                match needs_all {
                    true => !groups.is_empty() && groups.iter().all(is_target),
                    false => groups.iter().any(|group| !group.is_empty() && is_target(group)),
                }
            }),
            Kind::Answer(form) => {
                marked(answer, *form).is_some_and(|found| !found.is_empty() && is_one_of(found, targets, true))
            }
            Kind::Exact => {
                let own = normalised(answer, &[]);
                targets.iter().map(|target| normalised(target, &[])).any(|target| !target.is_empty() && target == own)
            }
            Kind::F1 { stop_words, .. } => {
                let best = targets.iter().map(|target| f1(answer, target, stop_words)).fold(0.0, f64::max);
                return (best * 100.0).round() / 100.0;
            }
            Kind::Choice { count, is_multiple } => {
                let mut wanted: Vec<usize> = targets.iter().flat_map(|target| positions(target)).collect();
                wanted.sort_unstable();
                chosen(answer, *count, *is_multiple) == wanted
            }
        };
        if holds { 1.0 } else { 0.0 }
    }
}

fn is_one_of(found: &str, targets: &[String], ignores_case: bool) -> bool {
    match ignores_case {
        true => targets.iter().any(|target| target.to_lowercase() == found.to_lowercase()),
        false => targets.iter().any(|target| target == found),
    }
}

fn is_match(answer: &str, target: &str, location: Location, ignores_case: bool, is_numeric: bool) -> bool {
    let cased = |text: &str| if ignores_case { fold(text.trim()) } else { text.trim().to_owned() };
    let (mut value, mut target) = (cased(answer), cased(target));
    if is_numeric {
        target = without_marks_of_numbers(&target);
        if let Some(wanted) = parsed(&target, true) {
            let value = without_marks_of_numbers(&value);
            let mut numbers = value.split_whitespace().filter_map(|word| parsed(word, true));
            let found = match location {
                Location::Begin => numbers.next(),
                Location::End => numbers.next_back(),
                Location::Exact => parsed(&value, false),
                Location::Any => return numbers.any(|number| digits(number) == digits(wanted)),
            };
            return found.is_some_and(|number| digits(number) == digits(wanted));
        }
    }
    // Also if a number was expected and the target is none.
    let bare = |text: &str| text.trim_matches(|c: char| c.is_ascii_whitespace() || PUNCTUATION.contains(c)).to_owned();
    (value, target) = (bare(&value), bare(&target));
    match location {
        Location::Begin => value.starts_with(&target),
        Location::End => value.ends_with(&target),
        Location::Any => value.contains(&target),
        Location::Exact => value == target,
    }
}

/// Removes currency symbols, separators of thousands, and marks for emphasis, and full stops that end a sentence.
fn without_marks_of_numbers(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_mark = |letter: char| matches!(letter, '$' | '€' | '£' | ',' | '*' | '_');
        let escapes = letter == '\\' && letters.peek().is_some_and(|next| is_mark(*next));
        if !escapes && !is_mark(letter) {
            bare.push(letter);
        }
    }
    let letters: Vec<char> = bare.chars().collect();
    let is_kept = |at: usize| letters[at] != '.' || letters.get(at + 1).is_some_and(|next| next.is_numeric());
    (0..letters.len()).filter(|at| is_kept(*at)).map(|at| letters[at]).collect()
}

/// Returns the finite number that `text` is. With `trims`, punctuation around it is removed first.
fn parsed(text: &str, trims: bool) -> Option<f64> {
    let text = if trims { text.trim_matches(|c| AROUND_NUMBER.contains(c)) } else { text };
    let is_number = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'));
    text.trim().parse().ok().filter(|number: &f64| is_number && number.is_finite())
}

/// Returns the first five significant digits of a number, which are compared.
fn digits(number: f64) -> String {
    format!("{:.4e}", if number == 0.0 { 0.0 } else { number })
}

/// Returns what follows the last `ANSWER:` in a text.
fn marked(answer: &str, form: Form) -> Option<&str> {
    let rests = after_marks(answer);
    let rest = match form {
        Form::Line => {
            // The answer must be the last line.
            let is_last = |rest: &&&str| !rest.trim_start().trim_end().contains('\n') && !rest.trim().is_empty();
            let rest = rests.iter().find(is_last)?.trim_start();
            return rest.split('\n').next();
        }
        Form::Letter | Form::Word => rests.last()?.trim_start(),
    };
    match form {
        Form::Letter => {
            let mut letters = rest.chars();
            let first = letters.next().filter(char::is_ascii_alphabetic)?;
            let ends = letters.next().is_none_or(|next| !(next.is_alphanumeric() || next == '_'));
            ends.then(|| &rest[..first.len_utf8()])
        }
        _ => {
            let line = rest.split('\n').next().unwrap_or_default().trim_end();
            let line =
                line.strip_suffix(['.', ',', ';', ':', '!', '?']).filter(|line| !line.is_empty()).unwrap_or(line);
            (!line.is_empty() && !line.contains(char::is_whitespace)).then_some(line)
        }
    }
}

/// Returns the texts after each `ANSWER:`, in any case and with white space before the colon.
fn after_marks(text: &str) -> Vec<&str> {
    const MARK: &str = "ANSWER";
    let mut found = Vec::new();
    for (at, _) in text.char_indices() {
        let is_mark = text.get(at..at + MARK.len()).is_some_and(|word| word.eq_ignore_ascii_case(MARK));
        if is_mark {
            found.extend(text[at + MARK.len()..].trim_start().strip_prefix(':'));
        }
    }
    found
}

/// Returns the positions of the choices that an answer names, sorted.
fn chosen(answer: &str, count: usize, is_multiple: bool) -> Vec<usize> {
    // Models put the letter between signs for mathematics or emphasis, or in parentheses.
    let text: String = answer.chars().filter(|c| !matches!(c, '$' | '*' | '(' | ')')).collect();
    let is_choice = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | ',');
    // A line that begins with the mark is preferred.
    let of_lines: Vec<&str> = text.lines().filter(|line| starts_with_mark(line)).flat_map(after_marks).collect();
    let strict = of_lines.iter().rev().map(|rest| rest.trim()).find(|rest| {
        let rest = rest.strip_suffix('.').unwrap_or(rest);
        !rest.is_empty() && rest.chars().all(is_choice)
    });
    let anywhere = || {
        let last = after_marks(&text).into_iter().next_back()?.trim_start();
        let end = last.find(|c| !is_choice(c)).unwrap_or(last.len());
        Some(&last[..end])
    };
    let Some(found) = strict.or_else(anywhere) else { return Vec::new() };
    let found = found.trim().trim_end_matches('.').to_uppercase();
    let found = if is_multiple { found.replace(" AND ", ",").replace(' ', "") } else { found };
    let tokens: Vec<&str> = found.split(',').filter(|token| !token.is_empty()).collect();
    let position = |token: &str| position(token).filter(|position| *position < count);
    let mut chosen: Vec<usize> = match tokens.iter().map(|token| position(token)).collect::<Option<Vec<_>>>() {
        Some(positions) if is_multiple || positions.len() == 1 => positions,
        None if is_multiple => {
            let letters = found.chars().map(|letter| position(letter.encode_utf8(&mut [0; 4])));
            letters.collect::<Option<Vec<_>>>().unwrap_or_default()
        }
        _ => Vec::new(),
    };
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

fn starts_with_mark(line: &str) -> bool {
    line.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("ANSWER"))
}

/// Returns the positions that a target names: letters, and numbers after the 26th choice.
fn positions(target: &str) -> Vec<usize> {
    let tokens = target.split([',', ' ']).filter(|token| !token.is_empty());
    tokens
        .flat_map(|token| match token.parse::<usize>() {
            Ok(_) => position(token).into_iter().collect::<Vec<_>>(),
            Err(_) => token.chars().filter_map(|letter| position(letter.encode_utf8(&mut [0; 4]))).collect(),
        })
        .collect()
}

/// Returns the position of a choice, which is a letter or, after the 26th, a number.
fn position(token: &str) -> Option<usize> {
    let mut letters = token.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if letter.is_ascii_alphabetic() => {
            Some(usize::from(letter.to_ascii_uppercase() as u8 - b'A'))
        }
        _ => token.parse::<usize>().ok().filter(|number| *number > 0).map(|number| number + 25),
    }
}

/// Returns the answer without case, punctuation, articles and white space.
fn normalised(text: &str, stop_words: &[String]) -> String {
    let tokens = text.split([' ', '-']).map(plain).filter(|token| !stop_words.contains(token) && !token.is_empty());
    tokens.collect::<Vec<_>>().join(" ")
}

/// Returns one token without case, punctuation and articles.
fn plain(token: &str) -> String {
    let token = fold(token);
    let is_punctuation = |c: char| PUNCTUATION.contains(c);
    let bare = token.trim_matches(|c: char| c.is_ascii_whitespace() || is_punctuation(c));
    let number = finite(&token).or_else(|| finite(bare));
    let letters: String = token.chars().filter(|c| !is_punctuation(*c)).collect();
    let token = match number.or_else(|| finite(&letters)) {
        Some(number) => format!("{number:?}"),
        None => letters,
    };
    let words = token.split_whitespace().filter(|word| !ARTICLES.contains(word));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the finite number that `text` is.
fn finite(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Returns the harmonic mean of precision and recall of the words of an answer.
fn f1(answer: &str, target: &str, stop_words: &[String]) -> f64 {
    let counts = |text: &str| {
        let text = normalised(text, stop_words);
        let mut counts: HashMap<String, usize> = HashMap::new();
        for word in text.split_whitespace() {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
        counts
    };
    let (own, wanted) = (counts(answer), counts(target));
    if wanted.is_empty() || own.is_empty() {
        return 0.0;
    }
    let common: usize = own.iter().map(|(word, count)| (*count).min(wanted.get(word).copied().unwrap_or(0))).sum();
    let share = |counts: &HashMap<String, usize>| common as f64 / counts.values().sum::<usize>() as f64;
    let (precision, recall) = (share(&own), share(&wanted));
    if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
}
