//! Which files a command line reads or runs, as far as its text tells.

use crate::shell::{commands, invocations};

/// Programs that show what is in the files they are given.
const READERS: [&str; 32] = [
    "cat", "tac", "bat", "batcat", "head", "tail", "less", "more", "most", "nl", "sed", "awk", "gawk", "mawk", "cut",
    "sort", "uniq", "tr", "fold", "fmt", "column", "strings", "xxd", "od", "hexdump", "jq", "yq", "glow", "mdcat",
    "pandoc", "paste", "diff",
];

/// Programs that show the lines they find, in directories, too.
const SEARCHERS: [&str; 8] = ["rg", "grep", "egrep", "fgrep", "ag", "ack", "ripgrep", "ugrep"];

/// Programs that run the file they are given, or the code.
const RUNNERS: [&str; 19] = [
    "python", "python3", "node", "bash", "sh", "zsh", "dash", "ksh", "ruby", "perl", "php", "deno", "bun", "tsx",
    "ts-node", "uv", "npx", "source", ".",
];

/// More words than this are no command that somebody wrote to read a file.
const MOST_WORDS: usize = 4000;

/// Something that a command looks into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    /// As seen from where the line begins; absolute if the line says so. Nothing is looked up.
    pub(super) path: String,
    /// Whether it may be a directory all of which is looked through.
    pub(super) is_search: bool,
}

/// What `line` reads or runs, begun in `folder`, in the order of the line.
pub(super) fn reads(line: &str, folder: &str) -> Vec<Read> {
    let mut reading = Reading { folder: folder.to_owned(), variables: Vec::new(), found: Vec::new() };
    for simple in commands(line) {
        if simple.words.len() > MOST_WORDS {
            continue;
        }
        reading.assign(&simple.words);
        for words in invocations(&simple.words) {
            reading.invocation(&words);
        }
    }
    reading.found
}

struct Reading {
    folder: String,
    variables: Vec<(String, String)>,
    found: Vec<Read>,
}

impl Reading {
    /// Keeps what a command sets that sets nothing but variables.
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
                // In code that is given on the line, files stand in quotes.
                let pieces = word.split(|letter: char| letter.is_whitespace() || "\"'`(),;[]{}=+".contains(letter));
                pieces.filter(|piece| piece.contains('/') && *piece != word).for_each(|piece| self.add(piece, false));
            }
        }
    }

    fn add(&mut self, word: &str, is_search: bool) {
        let path = self.place(word);
        self.found.push(Read { path, is_search });
    }

    /// `word` as seen from where the line begins.
    fn place(&self, word: &str) -> String {
        let word = self.filled(word);
        if word.starts_with(['/', '~', '$']) || self.folder.is_empty() {
            return word;
        }
        format!("{}/{word}", self.folder)
    }

    /// `word` with the variables that the line has set.
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
