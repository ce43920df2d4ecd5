//! The words that claims are understood by. Everything that is not here is understood by nobody, and makes a judge
//! necessary.

/// What a claim may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Branch,
    Commit,
    /// What the agent did to files, as it is committed and pushed.
    Work,
    Review,
    File,
    Directory,
    Command,
    /// What the agent answers.
    Output,
    Json,
    /// The working tree.
    Tree,
    /// What a commit is called.
    Message,
    /// `nothing`.
    Nothing,
}

/// What may be said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    /// What can only be done to files.
    Write,
    Exist,
    Open,
    Push,
    Commit,
    Run,
    Contain,
    Appear,
    /// Another content.
    Modify,
    /// Anything: added, modified, removed.
    Change,
    Delete,
    Unchanged,
    Valid,
    Invalid,
    Clean,
}

/// What a word is to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Subject(Subject),
    Verb(Verb),
    /// `new`.
    New,
    /// `no`, `not`, `without`.
    Not,
    And,
    Or,
    /// Begins something that was said before in other words: `to`, `into`, `against`.
    To,
    /// The same of a place: `in`, `on`, `under`.
    In,
    /// `with`.
    With,
    /// `called`, `named`.
    Called,
    /// `root`.
    Root,
    /// The usual names of branches that are written without quotes.
    Main,
    /// Says nothing that is looked at.
    Filler,
}

/// Words of several words, and the one that stands for them.
pub(super) const PHRASES: [(&[&str], &str); 23] = [
    (&["pull", "request"], "pr"),
    (&["pull", "requests"], "prs"),
    (&["merge", "request"], "mr"),
    (&["merge", "requests"], "mrs"),
    (&["working", "tree"], "worktree"),
    (&["working", "directory"], "workspace"),
    (&["work", "tree"], "worktree"),
    (&["git", "status"], "worktree"),
    (&["feature", "branch"], "branch"),
    (&["topic", "branch"], "branch"),
    (&["commit", "message"], "message"),
    (&["checked", "out"], "is"),
    (&["at", "least", "one"], "a"),
    (&["one", "or", "more"], "a"),
    (&["as", "well", "as"], "and"),
    (&["in", "addition", "to"], "and"),
    (&["no", "longer"], "not"),
    (&["did", "not", "get"], "not"),
    (&["in", "this", "run"], "is"),
    (&["by", "the", "agent"], "is"),
    (&["by", "the", "skill"], "is"),
    (&["pull-request"], "pr"),
    (&["final", "message"], "answer"),
];

/// What each word is.
const WORDS: &[(Word, &[&str])] = &[
    (Word::Subject(Subject::Branch), &["branch", "branches"]),
    (Word::Subject(Subject::Commit), &["commit", "commits"]),
    (Word::Subject(Subject::Work), &["change", "changes", "work", "edits"]),
    (Word::Subject(Subject::Review), &["pr", "prs", "mr", "mrs"]),
    (Word::Subject(Subject::File), &["file", "files"]),
    (Word::Subject(Subject::Directory), &["directory", "directories", "folder", "folders"]),
    (Word::Subject(Subject::Command), &["command", "commands"]),
    (Word::Subject(Subject::Output), &["output", "answer", "response", "reply"]),
    (Word::Subject(Subject::Json), &["json"]),
    (Word::Subject(Subject::Tree), &["worktree"]),
    (Word::Subject(Subject::Message), &["message"]),
    (Word::Subject(Subject::Nothing), &["nothing"]),
    (Word::Verb(Verb::Create), &["created", "create", "creates", "creating", "made", "make", "makes", "making"]),
    (
        Word::Verb(Verb::Write),
        &[
            "written",
            "wrote",
            "writes",
            "write",
            "writing",
            "generated",
            "generates",
            "generate",
            "produced",
            "produces",
            "saved",
            "saves",
            "added",
            "adds",
            "add",
        ],
    ),
    (Word::Verb(Verb::Exist), &["exists", "exist", "present", "there"]),
    (Word::Verb(Verb::Open), &["opened", "open", "opens", "opening", "submitted", "raised", "filed"]),
    (Word::Verb(Verb::Push), &["pushed", "push", "pushes", "pushing"]),
    (Word::Verb(Verb::Commit), &["committed", "commit", "committing"]),
    (Word::Verb(Verb::Run), &["ran", "run", "runs", "running", "executed", "executes", "executing", "invoked"]),
    (Word::Verb(Verb::Contain), &["contains", "contain", "includes", "include", "containing", "including"]),
    (Word::Verb(Verb::Appear), &["appears", "appear"]),
    (
        Word::Verb(Verb::Modify),
        &["modified", "modify", "modifies", "modifying", "edited", "edit", "editing", "updated", "updates", "altered"],
    ),
    (Word::Verb(Verb::Change), &["changed", "touched", "changing", "touching"]),
    (Word::Verb(Verb::Delete), &["deleted", "delete", "deletes", "deleting", "removed", "remove", "removes", "gone"]),
    (Word::Verb(Verb::Unchanged), &["unchanged", "unmodified", "untouched", "intact"]),
    (Word::Verb(Verb::Valid), &["valid"]),
    (Word::Verb(Verb::Invalid), &["invalid"]),
    (Word::Verb(Verb::Clean), &["clean"]),
    (Word::New, &["new", "newly"]),
    (
        Word::Not,
        &[
            "no",
            "not",
            "never",
            "without",
            "none",
            "neither",
            "cannot",
            "don't",
            "doesn't",
            "didn't",
            "isn't",
            "aren't",
            "wasn't",
            "weren't",
            "hasn't",
            "haven't",
            "won't",
            "shouldn't",
            "mustn't",
        ],
    ),
    (Word::And, &["and", "but", "then", "also", "plus"]),
    (Word::Or, &["or", "nor"]),
    (Word::To, &["to", "into", "onto", "against"]),
    (Word::In, &["in", "inside", "under", "within", "on", "at"]),
    (Word::With, &["with"]),
    (Word::Called, &["called", "named"]),
    (Word::Root, &["root"]),
    (Word::Main, &["main", "master", "develop", "trunk"]),
    (
        Word::Filler,
        &[
            "a",
            "an",
            "the",
            "is",
            "are",
            "was",
            "were",
            "be",
            "been",
            "being",
            "has",
            "have",
            "had",
            "does",
            "do",
            "did",
            "gets",
            "got",
            "should",
            "must",
            "will",
            "can",
            "it",
            "its",
            "they",
            "their",
            "agent",
            "model",
            "assistant",
            "skill",
            "successfully",
            "git",
            "local",
            "locally",
            "remote",
            "remotely",
            "origin",
            "upstream",
            "github",
            "gitlab",
            "all",
            "any",
            "anything",
            "both",
            "either",
            "each",
            "every",
            "another",
            "current",
            "active",
            "corresponding",
            "resulting",
            "repository",
            "repo",
            "workspace",
            "project",
            "final",
            "printed",
            "returned",
            "performed",
            "still",
            "script",
            "scripts",
            "text",
            "string",
            "itself",
            "sandbox",
            "agent's",
            "model's",
            "assistant's",
        ],
    ),
];

/// Words that are a noun as much as a verb: a noun before a verb of its own.
pub(super) const NOUN_OR_VERB: &str = "commit";

/// What `word`, in small letters, is; `None` if nobody knows.
pub(super) fn kind(word: &str) -> Option<Word> {
    WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(word, _)| *word)
}

/// Programs that are known by their names alone, without quotes.
const PROGRAMS: [&str; 70] = [
    "npm",
    "git",
    "python",
    "python3",
    "cargo",
    "go",
    "yarn",
    "pnpm",
    "node",
    "npx",
    "pip",
    "pip3",
    "pytest",
    "make",
    "docker",
    "uv",
    "uvx",
    "ruff",
    "eslint",
    "tsc",
    "deno",
    "bun",
    "bunx",
    "mvn",
    "gradle",
    "dotnet",
    "jest",
    "vitest",
    "mypy",
    "black",
    "prettier",
    "terraform",
    "kubectl",
    "helm",
    "ruby",
    "bundle",
    "rake",
    "php",
    "composer",
    "java",
    "javac",
    "gcc",
    "clang",
    "cmake",
    "ctest",
    "bash",
    "sh",
    "curl",
    "wget",
    "jq",
    "gh",
    "glab",
    "rg",
    "grep",
    "sed",
    "awk",
    "find",
    "ls",
    "cat",
    "tox",
    "nox",
    "poetry",
    "hatch",
    "pre-commit",
    "rustc",
    "rustfmt",
    "swift",
    "mix",
    "sqlite3",
    "psql",
];

/// Whether `word` is a program that needs no quotes.
pub(super) fn is_program(word: &str) -> bool {
    PROGRAMS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_one_thing_but_the_one_that_is_two() {
        let all: Vec<&str> = WORDS.iter().flat_map(|(_, words)| words.iter().copied()).collect();
        for (at, word) in all.iter().enumerate() {
            assert!(*word == NOUN_OR_VERB || !all[..at].contains(word), "{word}");
        }
        for (_, one) in PHRASES {
            assert!(kind(one).is_some(), "{one}");
        }
    }
}
