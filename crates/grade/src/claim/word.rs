//! Vocabulary of claims. If a claim has a word that is not in this file, a judge must decide it.

/// Subject of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Branch,
    Commit,
    /// Changes to files that the agent commits and pushes.
    Work,
    Review,
    /// Web address of a review request.
    ReviewLink,
    File,
    Directory,
    Command,
    /// Answer of the agent.
    Output,
    Json,
    /// The working tree.
    Tree,
    /// Commit message.
    Message,
    /// `nothing`.
    Nothing,
}

/// Verb of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    /// A verb that only applies to files.
    Write,
    Exist,
    Open,
    Push,
    Commit,
    Run,
    Contain,
    Appear,
    /// Changed content of a file that existed before.
    Modify,
    /// Any change: added, modified or deleted.
    Change,
    Delete,
    Unchanged,
    Valid,
    Invalid,
    Clean,
}

/// Role of a word in a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Subject(Subject),
    Verb(Verb),
    /// `new`.
    New,
    /// `exactly one`.
    Single,
    /// `draft`.
    Draft,
    /// `no`, `not`, `without`.
    Not,
    And,
    Or,
    /// Preposition before a target: `to`, `into`, `against`.
    To,
    /// Preposition before a location: `in`, `on`, `under`.
    In,
    /// `with`.
    With,
    /// `called`, `named`.
    Called,
    /// `root`.
    Root,
    /// Common branch names, written without quotes.
    Main,
    /// Word that does not affect the checks.
    Filler,
}

/// Phrases of several words, and the word that replaces each.
pub(super) const PHRASES: [(&[&str], &str); 31] = [
    (&["pull", "request", "url"], "pr-link"),
    (&["pull", "request", "link"], "pr-link"),
    (&["pr", "url"], "pr-link"),
    (&["pr", "link"], "pr-link"),
    (&["link", "to", "the", "pr"], "pr-link"),
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
    (&["exactly", "one"], "single"),
    (&["only", "one"], "single"),
    (&["a", "single"], "single"),
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

/// Roles and their words, separated by spaces.
const WORDS: &[(Word, &str)] = &[
    (Word::Subject(Subject::Branch), "branch branches"),
    (Word::Subject(Subject::Commit), "commit commits"),
    (Word::Subject(Subject::Work), "change changes work edits"),
    (Word::Subject(Subject::Review), "pr prs mr mrs"),
    (Word::Subject(Subject::ReviewLink), "pr-link"),
    (Word::Subject(Subject::File), "file files"),
    (Word::Subject(Subject::Directory), "directory directories folder folders"),
    (Word::Subject(Subject::Command), "command commands"),
    (Word::Subject(Subject::Output), "output answer response reply"),
    (Word::Subject(Subject::Json), "json"),
    (Word::Subject(Subject::Tree), "worktree"),
    (Word::Subject(Subject::Message), "message"),
    (Word::Subject(Subject::Nothing), "nothing"),
    (Word::Verb(Verb::Create), "created create creates creating made make makes making"),
    (
        Word::Verb(Verb::Write),
        "written wrote writes write writing generated generates generate produced produces saved saves added adds \
         add",
    ),
    (Word::Verb(Verb::Exist), "exists exist present there"),
    (Word::Verb(Verb::Open), "opened open opens opening submitted raised filed"),
    (Word::Verb(Verb::Push), "pushed push pushes pushing"),
    (Word::Verb(Verb::Commit), "committed commit committing"),
    (Word::Verb(Verb::Run), "ran run runs running executed executes executing invoked"),
    (Word::Verb(Verb::Contain), "contains contain includes include containing including mentions mention mentioning"),
    (Word::Verb(Verb::Appear), "appears appear mentioned"),
    (Word::Verb(Verb::Modify), "modified modify modifies modifying edited edit editing updated updates altered"),
    (Word::Verb(Verb::Change), "changed touched changing touching"),
    (Word::Verb(Verb::Delete), "deleted delete deletes deleting removed remove removes gone"),
    (Word::Verb(Verb::Unchanged), "unchanged unmodified untouched intact"),
    (Word::Verb(Verb::Valid), "valid"),
    (Word::Verb(Verb::Invalid), "invalid"),
    (Word::Verb(Verb::Clean), "clean"),
    (Word::New, "new newly"),
    (Word::Single, "single"),
    (Word::Draft, "draft"),
    (
        Word::Not,
        "no not never without none neither cannot don't doesn't didn't isn't aren't wasn't weren't hasn't haven't \
         won't shouldn't mustn't",
    ),
    (Word::And, "and but then also plus"),
    (Word::Or, "or nor"),
    (Word::To, "to into onto against"),
    (Word::In, "in inside under within on at"),
    (Word::With, "with"),
    (Word::Called, "called named"),
    (Word::Root, "root"),
    (Word::Main, "main master develop trunk"),
    (
        Word::Filler,
        "a an the is are was were be been being has have had does do did gets got should must will can it its they \
         their agent model assistant skill successfully git local locally remote remotely origin upstream github \
         gitlab all any anything both either each every another current active corresponding resulting repository \
         repo workspace project final printed returned performed still script scripts text word words string phrase itself sandbox \
         agent's model's assistant's skill's",
    ),
];

/// Word that can be a noun or a verb. It is a noun if the segment has another verb.
pub(super) const NOUN_OR_VERB: &str = "commit";

/// Returns the role of `word`, which must be in lower case. Returns `None` if the word is unknown.
pub(super) fn kind(word: &str) -> Option<Word> {
    WORDS.iter().find(|(_, words)| words.split(' ').any(|known| known == word)).map(|(word, _)| *word)
}

/// Programs that are recognized by name, without quotes, separated by spaces.
const PROGRAMS: &str = "npm git python python3 cargo go yarn pnpm node npx pip pip3 pytest make docker uv uvx ruff eslint tsc deno bun \
     bunx mvn gradle dotnet jest vitest mypy black prettier terraform kubectl helm ruby bundle rake php composer \
     java javac gcc clang cmake ctest bash sh curl wget jq gh glab rg grep sed awk find ls cat tox nox poetry hatch \
     pre-commit rustc rustfmt swift mix sqlite3 psql";

/// Returns `true` if `word` is a program that does not need quotes.
pub(super) fn is_program(word: &str) -> bool {
    PROGRAMS.split(' ').any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_but_one_has_a_single_role() {
        let all: Vec<&str> = WORDS.iter().flat_map(|(_, words)| words.split(' ')).collect();
        for (index, word) in all.iter().enumerate() {
            assert!(*word == NOUN_OR_VERB || !all[..index].contains(word), "{word}");
        }
        for (_, one) in PHRASES {
            assert!(kind(one).is_some(), "{one}");
        }
    }
}
