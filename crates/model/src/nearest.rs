//! "Did you mean" suggestions: the only place that decides whether a name is close enough to suggest.

/// Returns the candidate that `written` most likely means, if any is close enough: equal except for case, `-` and `_`;
/// one transposition or up to a third of its letters away; or a longer name that starts with `written` or has it as
/// its last word. A name with a negation never stands for one without, or the reverse. Without it, its letters must differ
/// in at most a quarter, because the rest of such a name is all that tells what it is about.
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |name: &str| name.to_lowercase().replace(['-', '_', ' '], "");
    let (is_negated, bare) = without_negation(written);
    let is_bare = is_negated && !bare.is_empty();
    let whole = fold(written);
    let wanted = if is_bare { &bare } else { &whole };
    if wanted.is_empty() {
        return None;
    }
    let is_opposite = |candidate: &str| {
        let (negates, other) = without_negation(candidate);
        // A misspelt negation is none, so that the whole name must be compared.
        if is_negated { !negates } else { negates && other == bare }
    };
    candidates
        .into_iter()
        .filter(|candidate| !is_opposite(candidate))
        .filter_map(|candidate| {
            let folded = if is_bare { without_negation(candidate).1 } else { fold(candidate) };
            let distance = strsim::damerau_levenshtein(wanted, &folded);
            let longest = wanted.chars().count().max(folded.chars().count());
            let parts = if is_bare { 4 } else { 3 };
            let is_last_word = || candidate.rsplit(['-', '_']).next().is_some_and(|word| fold(word) == *wanted);
            // In a date or a version, each digit matters.
            let is_close = distance * parts <= longest && (distance < 2 || wanted.contains(char::is_alphabetic));
            let near = is_close || (wanted.len() >= 3 && (folded.starts_with(wanted) || is_last_word()));
            // Its last words, such as `user_contains` of `last_user_contains`, are closer than other words of that length.
            let is_end = written.contains('_') && candidate.ends_with(&format!("_{written}"));
            let distance = if is_end { 1 } else { distance };
            near.then(|| (distance, strsim::damerau_levenshtein(&whole, &fold(candidate)), candidate))
        })
        .min_by_key(|(distance, of_whole, _)| (*distance, *of_whole))
        .map(|(_, _, candidate)| candidate)
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

/// Returns whether a name has a word that negates it, and its letters without such words.
fn without_negation(name: &str) -> (bool, String) {
    let mut words: Vec<String> = vec![String::new()];
    for letter in name.chars() {
        if letter == '!' {
            words.extend(["not".to_owned(), String::new()]);
        } else if !letter.is_alphanumeric() || letter.is_uppercase() {
            words.push(letter.to_lowercase().filter(|letter| letter.is_alphanumeric()).collect());
        } else if let Some(word) = words.last_mut() {
            word.push(letter);
        }
    }
    let negates = |word: &str| matches!(word, "no" | "not" | "never" | "nor" | "without");
    let negations = words.iter().filter(|word| negates(word) || *word == "unchanged").count();
    let bare = words.iter().filter(|word| !negates(word)).map(|word| word.strip_prefix("un").unwrap_or(word));
    (negations % 2 == 1, bare.collect())
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
        let texts = ["system_contains", "last_user_contains"];
        assert_eq!(nearest("user_contains", texts), Some("last_user_contains"));
        assert_eq!(nearest("", words), None);
    }

    #[test]
    fn the_opposite_is_never_suggested() {
        let words = ["contains", "not_contains", "file_unchanged", "tool_called", "no_tool_called", "smoke", "$or"];
        assert_eq!(nearest("not-contain", words), Some("not_contains"));
        assert_eq!(nearest("nto_contains", words), Some("not_contains"));
        assert_eq!(nearest("notContains", ["contains"]), None);
        assert_eq!(nearest("no_tool_caled", words), Some("no_tool_called"));
        for opposite in ["file_changed", "file_not_unchanged", "!smoke", "$nor"] {
            assert_eq!(nearest(opposite, words), None, "{opposite}");
        }
        assert_eq!(nearest("tool_caled", words), Some("tool_called"));
        assert_eq!(nearest("not_mock_called", words), None);
        assert_eq!(nearest("not_mock_called", ["no_tool_called", "mock_not_called"]), Some("mock_not_called"));
        assert_eq!(nearest("node", ["note"]), Some("note"));
    }
}
