//! Similarity of two texts by their words or characters: BLEU, GLEU, ROUGE-N and Levenshtein distance.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

/// Longest n-gram of BLEU and GLEU.
const MAX_N: usize = 4;

/// Precision that BLEU uses instead of 0.
const SMOOTHED: f64 = 1e-7;

/// Maximum product of the lengths of two texts whose distance is computed.
const MAX_CELLS: usize = 200_000_000;

/// Returns how often each n-gram occurs in `words`.
fn counts(words: &[String], n: usize) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for gram in words.windows(n) {
        *counts.entry(gram.join(" ")).or_insert(0) += 1;
    }
    counts
}

/// Returns the number of n-grams of `candidate` that `reference` also has, each as often as in both.
fn shared(candidate: &HashMap<String, usize>, reference: &HashMap<String, usize>) -> usize {
    candidate.iter().map(|(gram, count)| *count.min(reference.get(gram).unwrap_or(&0))).sum()
}

fn grams(words: &[String], n: usize) -> usize {
    (words.len() + 1).saturating_sub(n)
}

/// Returns the words of `text` in lower case. A text without words has one empty word.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words: Vec<String> = lower.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { vec![String::new()] } else { words }
}

/// Returns the BLEU score of `candidate` for the best of `references`, with up to four words.
pub(super) fn bleu(candidate: &str, references: &[String]) -> f64 {
    if candidate.trim().is_empty() {
        return 0.0;
    }
    let candidate = words(candidate);
    let references: Vec<Vec<String>> = references.iter().map(|reference| words(reference)).collect();
    let distance = |length: usize| length.abs_diff(candidate.len());
    let closest = references.iter().map(Vec::len).min_by_key(|length| (distance(*length), *length)).unwrap_or(0);
    let precisions: Vec<f64> = (1..=MAX_N.min(candidate.len()))
        .map(|n| {
            let own = counts(&candidate, n);
            let best = references.iter().map(|reference| shared(&own, &counts(reference, n))).max().unwrap_or(0);
            best as f64 / grams(&candidate, n) as f64
        })
        .collect();
    let logs: f64 = precisions.iter().map(|precision| if *precision == 0.0 { SMOOTHED } else { *precision }.ln()).sum();
    let brevity = if candidate.len() > closest { 1.0 } else { (1.0 - closest as f64 / candidate.len() as f64).exp() };
    brevity * (logs / precisions.len() as f64).exp()
}

/// Returns the words of `text` for GLEU: without full stops at their ends.
fn bare_words(text: &str) -> Vec<String> {
    let words: Vec<String> = words(text).iter().map(|word| word.trim_end_matches('.').to_owned()).collect();
    if words.iter().all(String::is_empty) { Vec::new() } else { words }
}

/// Returns the GLEU score of `candidate` for the best of `references`.
pub(super) fn gleu(candidate: &str, references: &[String]) -> f64 {
    let candidate = bare_words(candidate);
    if candidate.is_empty() {
        return 0.0;
    }
    let score = |reference: &String| {
        let reference = bare_words(reference);
        if reference == candidate {
            return 1.0;
        }
        let all = |words: &[String]| (1..=MAX_N).map(|n| grams(words, n)).sum::<usize>() as f64;
        let (own, other) = (all(&candidate), all(&reference));
        let matches: usize = (1..=MAX_N).map(|n| shared(&counts(&candidate, n), &counts(&reference, n))).sum();
        if other == 0.0 { 0.0 } else { (matches as f64 / own).min(matches as f64 / other) }
    };
    references.iter().map(score).fold(0.0, f64::max)
}

/// Returns the F-score of the words that both texts have, regardless of case.
pub(super) fn rouge(candidate: &str, reference: &str) -> f64 {
    let (candidate, reference) = (tokens(&candidate.to_lowercase()), tokens(&reference.to_lowercase()));
    let overlap = shared(&counts(&candidate, 1), &counts(&reference, 1)) as f64;
    if overlap == 0.0 {
        return 0.0;
    }
    let (precision, recall) = (overlap / candidate.len() as f64, overlap / reference.len() as f64);
    2.0 * precision * recall / (precision + recall)
}

/// Splits `text` into words and punctuation, in the manner of the Penn Treebank.
fn tokens(text: &str) -> Vec<String> {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let rules = [
            (r"\.\.\.", " ... "),
            (r"([:,])(\D|$)", " $1 $2"),
            (r"[;@#$%&]", " $0 "),
            (r"([^.])(\.)([\])}>'\s]*)$", "$1 $2$3 "),
            (r"[?!]", " $0 "),
            (r"[\]\[(){}<>]", " $0 "),
            (r"--", " -- "),
            (r"^|$", " "),
            (r"([^'])' ", "$1 ' "),
            (r"'([sSmMdD]) ", " '$1 "),
            (r"('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", " $1 "),
            (r"(?i)\b(can)(not)\b", " $1 $2 "),
            (r"(?i)\b(gim|lem)(me)\b", " $1 $2 "),
            (r"(?i)\b(gon|wan)(na)\b", " $1 $2 "),
            (r"(?i)\b(got)(ta)\b", " $1 $2 "),
        ];
        rules.into_iter().filter_map(|(rule, with)| Some((Regex::new(rule).ok()?, with))).collect()
    });
    let text = text.replace('"', " \" ");
    let split = RULES.iter().fold(text, |text, (rule, with)| rule.replace_all(&text, *with).into_owned());
    split.split_whitespace().map(str::to_owned).collect()
}

/// Returns the Levenshtein distance in UTF-16 units.
///
/// # Errors
/// Returns an error if the texts are too long.
pub(super) fn levenshtein(one: &str, other: &str) -> Result<usize, String> {
    let (one, other): (Vec<u16>, Vec<u16>) = (one.encode_utf16().collect(), other.encode_utf16().collect());
    if one.len().saturating_mul(other.len()) > MAX_CELLS {
        return Err("the texts are too long to compute their distance".to_owned());
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, unit) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (at, against) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(unit != against);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    Ok(row.last().copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(score: f64, expected: f64) -> bool {
        (score - expected).abs() < 1e-9
    }

    #[test]
    fn texts_are_compared_by_words_and_characters() {
        let to = |reference: &str| vec![reference.to_owned()];
        assert!(close(bleu("the cat sat on the mat", &to("the cat sat on the mat")), 1.0));
        assert!(close(bleu("", &to("a")), 0.0));
        let short = bleu("the cat", &to("the cat sat"));
        assert!(close(short, (1.0_f64 - 1.5).exp()), "{short}");
        assert!(close(gleu("The cat sat.", &to("the cat sat")), 1.0));
        assert!(close(gleu("...", &to("a")), 0.0));
        // All 3 n-grams of the candidate are among the 6 of the reference.
        assert!(close(gleu("the dog", &to("the dog sat")), 0.5));
        // it, is and here and the full stop, of five words each.
        assert!(close(rouge("It isn't here.", "it is not here."), 0.8));
        assert_eq!(
            tokens("it isn't (really) 1,000; ok."),
            ["it", "is", "n't", "(", "really", ")", "1,000", ";", "ok", "."]
        );
        assert_eq!(levenshtein("kitten", "sitting"), Ok(3));
        assert_eq!(levenshtein("", "abc"), Ok(3));
        assert!(levenshtein(&"a".repeat(20_000), &"b".repeat(20_000)).is_err());
    }
}
