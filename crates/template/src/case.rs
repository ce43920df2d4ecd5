//! Conversion to upper and lower case.

/// Returns `text` with the first letter of each word in upper case, and the others unchanged.
pub(crate) fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        let part_of_word = letter.is_alphanumeric() || letter == '_';
        if part_of_word && !inside {
            titled.extend(letter.to_uppercase());
        } else {
            titled.push(letter);
        }
        inside = part_of_word;
    }
    titled
}

/// Returns `text` with the first letter in upper case, and the others unchanged.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
