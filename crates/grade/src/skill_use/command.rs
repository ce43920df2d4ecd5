//! Finds the files that a command line reads or runs, as far as its text shows.

use crate::shell::{commands, invocations};

/// Programs that print the contents of files.
const READERS: [&str; 32] = [
    "cat", "tac", "bat", "batcat", "head", "tail", "less", "more", "most", "nl", "sed", "awk", "gawk", "mawk", "cut",
    "sort", "uniq", "tr", "fold", "fmt", "column", "strings", "xxd", "od", "hexdump", "jq", "yq", "glow", "mdcat",
    "pandoc", "paste", "diff",
];

/// Programs that print matching lines, also from directories.
const SEARCHERS: [&str; 8] = ["rg", "grep", "egrep", "fgrep", "ag", "ack", "ripgrep", "ugrep"];

/// Programs that run a file or code.
const RUNNERS: [&str; 19] = [
    "python", "python3", "node", "bash", "sh", "zsh", "dash", "ksh", "ruby", "perl", "php", "deno", "bun", "tsx",
    "ts-node", "uv", "npx", "source", ".",
];

/// Maximum number of words. A longer command was not written to read a file.
const MAX_WORDS: usize = 4000;

/// File or directory that a command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    /// Path relative to the line's initial directory, or absolute if the line says so. The file system is not
    /// consulted.
    pub(super) path: String,
    /// True if it may be a directory that is searched completely.
    pub(super) is_search: bool,
}

/// Returns what `line` reads or runs, in order. `folder` is its initial directory.
pub(super) fn reads(line: &str, folder: &str) -> Vec<Read> {
    let mut reading = LineReader { folder: folder.to_owned(), variables: Vec::new(), found: Vec::new() };
    for simple in commands(line) {
        if simple.words.len() > MAX_WORDS {
            continue;
        }
        reading.assign(&simple.words);
        for words in invocations(&simple.words) {
            reading.invocation(&words);
        }
    }
    reading.found
}

struct LineReader {
    folder: String,
    variables: Vec<(String, String)>,
    found: Vec<Read>,
}

impl LineReader {
    /// Records the variables of a command that only sets variables.
    fn assign(&mut self, words: &[String]) {
        let pairs: Option<Vec<_>> = words.iter().map(|word| word.split_once('=')).collect();
        for (name, value) in pairs.into_iter().flatten() {
            let value = self.filled(value);
            self.variables.push((name.to_owned(), value));
        }
    }

    fn invocation(&mut self, words: &[String]) {
        let Some((program, arguments)) = words.split_first() else { return };
        let name = program.rsplit('/').next().unwrap_or(program);
        if name == "cd" || name == "pushd" {
            if let Some(to) = arguments.iter().find(|word| !word.starts_with('-')) {
                self.folder = self.place(to);
            }
            return;
        }
        let is_search = SEARCHERS.contains(&name);
        if program.contains('/') {
            self.add(program, false);
        }
        if !is_search && !READERS.contains(&name) && !RUNNERS.contains(&name) {
            return;
        }
        for word in arguments.iter().filter(|word| !word.starts_with('-')) {
            self.add(word, is_search);
            if RUNNERS.contains(&name) {
                // In code given on the command line, file names are in quotes.
                let pieces = word.split(|letter: char| letter.is_whitespace() || "\"'`(),;[]{}=+".contains(letter));
                pieces.filter(|piece| piece.contains('/') && *piece != word).for_each(|piece| self.add(piece, false));
            }
        }
    }

    fn add(&mut self, word: &str, is_search: bool) {
        let path = self.place(word);
        self.found.push(Read { path, is_search });
    }

    /// Returns `word` as a path relative to the line's initial directory.
    fn place(&self, word: &str) -> String {
        let word = self.filled(word);
        if word.starts_with(['/', '~', '$']) || self.folder.is_empty() {
            return word;
        }
        format!("{}/{word}", self.folder)
    }

    /// Returns `word` with the variables that the line has set.
    fn filled(&self, word: &str) -> String {
        if !word.contains('$') {
            return word.to_owned();
        }
        self.variables.iter().rev().fold(word.to_owned(), |word, (name, value)| {
            let plain = format!("${name}");
            let word = word.replace(&format!("${{{name}}}"), value);
            match word.strip_prefix(&plain) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{value}{rest}"),
                _ => word,
            }
        })
    }
}
