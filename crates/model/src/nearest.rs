//! "Did you mean" suggestions: the only place that decides whether a name is close enough to suggest.

/// Returns the candidate that `written` most likely means, if any is close enough: equal except for case, `-` and `_`;
/// one transposition or up to a third of its letters away; or a longer name that starts with `written` or has it as
/// its last word.
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |name: &str| name.to_lowercase().replace(['-', '_', ' '], "");
    let wanted = fold(written);
    if wanted.is_empty() {
        return None;
    }
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let folded = fold(candidate);
            let distance = strsim::damerau_levenshtein(&wanted, &folded);
            let longest = wanted.chars().count().max(folded.chars().count());
            let is_last_word = || candidate.rsplit(['-', '_']).next().is_some_and(|word| fold(word) == wanted);
            let near =
                distance * 3 <= longest || (wanted.len() >= 3 && (folded.starts_with(&wanted) || is_last_word()));
            near.then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns `true` if one letter of `written` is wrong, missing or superfluous, or two neighbours are exchanged.
pub fn is_one_mistake(written: &str, meant: &str) -> bool {
    let (mut written, mut meant): (Vec<char>, Vec<char>) = (written.chars().collect(), meant.chars().collect());
    let same = written.iter().zip(&meant).take_while(|(a, b)| a == b).count();
    let (mut written, mut meant) = (written.split_off(same), meant.split_off(same));
    while written.last().is_some() && written.last() == meant.last() {
        written.pop();
        meant.pop();
    }
    match (written.as_slice(), meant.as_slice()) {
        ([a, b], [c, d]) => (a, b) == (d, c),
        (written, meant) => written.len() < 2 && meant.len() < 2,
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typo_gets_a_suggestion_and_an_unrelated_word_gets_none() {
        let words = ["assertions", "argument", "max_turns", "tool_called"];
        assert_eq!(nearest("asserions", words), Some("assertions"));
        assert_eq!(nearest("maxTurns", words), Some("max_turns"));
        assert_eq!(nearest("tool-caled", words), Some("tool_called"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!(nearest("prompt", ["system_prompt", "user_prompt", "promotion"]), Some("user_prompt"));
        assert_eq!(nearest("", words), None);
    }
}
