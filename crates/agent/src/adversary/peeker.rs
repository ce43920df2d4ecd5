//! `peeker`: says the text of files that look like answers or tests. It shows which assertions look for text that the
//! agent can read in its own sandbox.

use super::{Action, Adversary, Role};

/// Parts of names that suggest a file with answers.
const ANSWERS: [&str; 9] = ["answer", "expected", "golden", "gold", "solution", "rubric", "evals", "eval", "grader"];

pub(super) static PEEKER: Adversary =
    Adversary::new("peeker", Role::Probe, "only says what is in files that look like answers", |seen| {
        let files = seen.files();
        let texts: Vec<&str> = files.iter().filter(|file| holds_answers(&file.path)).map(|file| &*file.text).collect();
        if texts.is_empty() { Vec::new() } else { vec![Action::Say(texts.join("\n"))] }
    })
    .only_if(|case| !case.fixtures.is_empty());

/// Returns `true` if the path looks like a file with answers.
fn holds_answers(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.split(|letter: char| !letter.is_ascii_alphanumeric())
        .any(|word| ANSWERS.contains(&word) || word.strip_suffix('s').is_some_and(|word| ANSWERS.contains(&word)))
}
