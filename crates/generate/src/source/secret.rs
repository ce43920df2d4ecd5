//! Secrets in files, which are removed before any other code reads the files.

use std::path::Path;

use mask::{KeyBlocks, MASKED, Mask, Secrets};
use model::{Node, Source};

use super::code::{self, Syntax};

/// Maximum size of an environment file, in bytes.
const LARGEST: u64 = 256 * 1024;

/// Minimum length in characters for a value without digits to be treated as a secret wherever it occurs.
const DISTINCTIVE: usize = 16;

/// Text without the secrets that are assigned in it, and these secrets.
pub(super) struct Clean {
    pub text: String,
    pub secrets: Vec<String>,
}

/// Removes the strings that are assigned to names that suggest a secret.
pub(super) fn in_code(text: &str, syntax: Syntax) -> Clean {
    let mut clean = Clean { text: String::with_capacity(text.len()), secrets: Vec::new() };
    let mut done = 0;
    for (range, secret) in code::secrets(text, syntax) {
        clean.text.push_str(&text[done..range.start]);
        clean.text.push_str(&format!("\"{MASKED}\""));
        done = range.end;
        clean.secrets.extend(Some(secret).filter(|secret| is_distinctive(secret)));
    }
    clean.text.push_str(&text[done..]);
    clean
}

/// Removes the lines that assign a value to a name that suggests a secret.
pub(super) fn in_text(text: &str) -> Clean {
    let is_secret = |line: &str| Secrets::are_assigned_in(line);
    let lines: Vec<&str> = text.split('\n').map(|line| if is_secret(line) { MASKED } else { line }).collect();
    Clean { text: lines.join("\n"), secrets: text.lines().filter_map(assigned).collect() }
}

/// Returns the secrets in a folder's `.env` files.
pub(super) fn of_environment_files(folder: &Path) -> Vec<String> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let is_environment = |name: &str| name.starts_with(".env");
    let named = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_environment));
    let contents = named.filter_map(|entry| String::from_utf8(files::read(&entry.path(), LARGEST).ok()?).ok());
    contents.flat_map(|content| content.lines().filter_map(assigned).collect::<Vec<_>>()).collect()
}

/// Returns the secret that a line of the form `NAME=value` or `name: value` assigns.
fn assigned(line: &str) -> Option<String> {
    let (name, value) = line.split_once(['=', ':'])?;
    let name = name.trim().trim_start_matches("export ").trim_matches(['"', '\'']);
    let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
    (Secrets::is_one("", name, value) && is_distinctive(value)).then(|| value.to_owned())
}

/// Returns `true` if a value cannot be an ordinary word. Ordinary words must not be removed from other text.
fn is_distinctive(value: &str) -> bool {
    let is_one_word = !value.contains(char::is_whitespace);
    is_one_word && (value.contains(|letter: char| letter.is_ascii_digit()) || value.chars().count() >= DISTINCTIVE)
}

/// Adds secrets to a mask.
pub(super) fn masking(mask: &Mask, secrets: &[String]) -> Mask {
    let node = Node::from_json(&serde_json::json!({ "password": secrets }), &Source::new("", ""));
    mask.clone().with_secrets(&Secrets::of(&node))
}

/// Masks the secrets in a text without changing the number of its lines, unless a secret other than a private key
/// spans several lines.
pub(super) fn masked(text: &str, mask: &Mask) -> String {
    let blocks = KeyBlocks::default();
    let line = |line: &str| {
        let mut line = line.to_owned();
        blocks.mask("", &mut line, mask);
        mask.string(&mut line);
        line
    };
    let masked = text.split('\n').map(line).collect::<Vec<_>>().join("\n");
    mask.text(&masked).into_owned()
}
