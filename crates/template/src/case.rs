//! Upper and lower case.

/// The first letter of each word in upper case, the others as they are.
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

/// The first letter in upper case, the others as they are.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
