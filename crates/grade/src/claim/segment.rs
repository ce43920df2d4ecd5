//! Splits a claim into segments: one verb with its subjects and names.

use super::token::Token;
use super::word::{self, NOUN_OR_VERB, Subject, Verb, Word};

/// Words in claims that are subcommands of a program if they follow one.
const SUBCOMMANDS: [&str; 9] = ["run", "push", "commit", "branch", "add", "clean", "edit", "open", "create"];

/// Languages of scripts, and the extensions of their files.
pub(super) const LANGUAGES: [(&str, &[&str]); 9] = [
    ("python", &["py"]),
    ("python3", &["py"]),
    ("bash", &["sh", "bash"]),
    ("shell", &["sh", "bash"]),
    ("node", &["js", "mjs", "cjs", "ts", "mts"]),
    ("javascript", &["js", "mjs", "cjs"]),
    ("typescript", &["ts", "mts"]),
    ("ruby", &["rb"]),
    ("perl", &["pl"]),
];

/// Name in a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// Text without quotes.
    pub text: String,
    /// True if the name was quoted.
    pub is_quoted: bool,
}

/// One verb phrase in a claim, with what it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// True if it is negated.
    pub is_negated: bool,
    /// Subjects or objects of the verbs.
    pub subjects: Vec<Subject>,
    /// True if they are said to be new.
    pub is_new: bool,
    /// True if there is to be exactly one.
    pub is_single: bool,
    /// True if it is a draft.
    pub is_draft: bool,
    /// The verbs.
    pub verbs: Vec<Verb>,
    /// True if the verb comes first, as in `The agent created …`.
    pub is_active: bool,
    /// Names before the first verb.
    pub before: Vec<Name>,
    /// Names after it.
    pub after: Vec<Name>,
    /// True if one of the names is enough.
    pub is_either: bool,
    /// Name after `to`.
    pub to: Option<String>,
    /// Name after `in`.
    pub place: Option<String>,
    /// True if it is at the root of the working directory.
    pub is_at_root: bool,
    /// True if it is in the answer.
    pub is_in_output: bool,
    /// Commit message.
    pub message: Option<String>,
    /// Command written without quotes.
    pub command: Option<String>,
    /// Language of a script that the skill bundles, in lower case; empty if the claim does not name it.
    pub bundled: Option<String>,
    /// Subjects that are mentioned as new in passing: `on the new branch`.
    pub implied: Vec<Subject>,
}

impl Segment {
    fn is_empty(&self) -> bool {
        self.subjects.is_empty() && self.verbs.is_empty() && !self.has_names() && !self.is_new
    }

    fn has_names(&self) -> bool {
        !(self.before.is_empty() && self.after.is_empty())
    }
}

/// Splits a claim into segments. Returns `None` if something in it is not understood.
pub(super) fn segments(tokens: &[Token]) -> Option<Vec<Segment>> {
    let mut reader = Reader { tokens, ..Reader::default() };
    while let Some(token) = reader.tokens.get(reader.at) {
        reader.at += 1;
        reader.read(token)?;
    }
    reader.split(false);
    Some(reader.done)
}

/// Preposition whose object is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preposition {
    To,
    In,
}

#[derive(Default)]
struct Reader<'t> {
    tokens: &'t [Token],
    /// Index of the next token.
    at: usize,
    done: Vec<Segment>,
    now: Segment,
    /// Preposition whose object is being read, if any.
    preposition: Option<Preposition>,
    is_new_preposition: bool,
}

impl<'t> Reader<'t> {
    fn read(&mut self, token: &'t Token) -> Option<()> {
        match token {
            Token::Unknown(_) => return None,
            Token::Quoted(text) => self.name(text, true)?,
            Token::Name(text) => self.name(text, false)?,
            Token::Stop => self.separator(false)?,
            Token::Word(word, written) => self.word(*word, written)?,
        }
        Some(())
    }

    fn word(&mut self, word: Word, written: &str) -> Option<()> {
        match word {
            Word::Filler => {}
            Word::And => self.separator(false)?,
            Word::Or => self.separator(true)?,
            Word::Not => self.negate()?,
            Word::New if self.preposition.is_some() => self.is_new_preposition = true,
            Word::New => self.now.is_new = true,
            Word::Single if self.preposition.is_none() => self.now.is_single = true,
            Word::Draft if self.preposition.is_none() => self.now.is_draft = true,
            Word::Single | Word::Draft => return None,
            Word::Subject(Subject::Commit) if written == NOUN_OR_VERB && self.follows_auxiliary() => {
                self.verb(Verb::Commit)?;
            }
            Word::Subject(subject) if self.preposition.is_some() => self.subject_within(subject)?,
            Word::Subject(Subject::Nothing) => {
                self.negate()?;
                self.now.subjects.push(Subject::Nothing);
            }
            Word::Subject(subject) => self.now.subjects.push(subject),
            Word::Verb(verb) => self.verb(verb)?,
            Word::To => (self.preposition, self.is_new_preposition) = (Some(Preposition::To), false),
            Word::In => (self.preposition, self.is_new_preposition) = (Some(Preposition::In), false),
            Word::With => self.message()?,
            Word::Called => self.called()?,
            Word::Root => self.now.is_at_root = true,
            Word::Main if self.preposition.is_some() => self.name(written, false)?,
            Word::Main => return None,
        }
        Some(())
    }

    /// Handles `no`, which may occur once in a segment, and before what it negates.
    fn negate(&mut self) -> Option<()> {
        let is_late = !self.now.verbs.is_empty() && (!self.now.subjects.is_empty() || self.now.has_names());
        if self.now.is_negated && self.now.subjects.is_empty() && self.now.verbs.is_empty() {
            // Repeats the negation that was carried over from the previous segment.
            return Some(());
        }
        if is_late || self.now.is_negated {
            return None;
        }
        self.now.is_negated = true;
        Some(())
    }

    /// Returns `true` if the previous word belongs to a negated verb (`did not commit`), and not to a noun (`no
    /// commit`).
    fn follows_auxiliary(&self) -> bool {
        let before = self.at.checked_sub(2).and_then(|index| self.tokens.get(index));
        matches!(before, Some(Token::Word(Word::Not, word)) if !["no", "none", "neither"].contains(&word.as_str()))
    }

    fn verb(&mut self, verb: Verb) -> Option<()> {
        self.preposition = None;
        if self.now.verbs.is_empty() && self.now.subjects.is_empty() && !self.now.has_names() {
            self.now.is_active = true;
        }
        self.now.verbs.push(verb);
        if verb == Verb::Run && self.now.before.is_empty() && !self.now.subjects.contains(&Subject::Command) {
            self.now.command = self.command();
            self.now.bundled = self.bundled();
        }
        Some(())
    }

    /// Reads `the bundled python validation script`, if it follows. Returns the language, which may be missing.
    fn bundled(&mut self) -> Option<String> {
        let ahead = self.tokens.get(self.at..)?;
        let is_filler = |token: &&Token| matches!(token, Token::Word(Word::Filler, _));
        let start = ahead.iter().take_while(is_filler).count();
        let words = ahead[start..].iter().map_while(|token| match token {
            Token::Word(_, word) | Token::Unknown(word) => Some(word.to_lowercase()),
            _ => None,
        });
        let words: Vec<String> = words.collect();
        let end = words.iter().position(|word| word == "script").filter(|_| words[0] == "bundled")?;
        self.at += start + end + 1;
        let language = words[1..end].iter().find(|word| LANGUAGES.iter().any(|(known, _)| known == word));
        Some(language.cloned().unwrap_or_default())
    }

    /// Reads the words of a command that follow `ran` without quotes.
    fn command(&mut self) -> Option<String> {
        let mut at = self.at;
        while matches!(self.tokens.get(at), Some(Token::Word(Word::Filler, word)) if word != "git") {
            at += 1;
        }
        let first = self.tokens.get(at).and_then(written)?;
        if !word::is_program(&first.to_lowercase()) {
            return None;
        }
        let mut words = vec![first.to_lowercase()];
        at += 1;
        // `git push` and `npm run` are commands, although their second words are also words of claims.
        if let Some(next) = self.tokens.get(at).and_then(written).filter(|next| SUBCOMMANDS.contains(next)) {
            words.push(next.to_owned());
            at += 1;
        }
        while let Some(Token::Unknown(word) | Token::Name(word)) = self.tokens.get(at) {
            words.push(word.clone());
            at += 1;
        }
        // `the python validation script` describes a script.
        let is_described = matches!(self.tokens.get(at), Some(Token::Word(_, word)) if word == "script");
        if is_described && words.len() > 1 {
            return None;
        }
        self.at = at;
        Some(words.join(" "))
    }

    fn subject_within(&mut self, subject: Subject) -> Option<()> {
        match subject {
            Subject::Branch | Subject::Commit if self.is_new_preposition => self.now.implied.push(subject),
            Subject::Branch | Subject::Work | Subject::Tree | Subject::File | Subject::Directory => {}
            Subject::Output => self.now.is_in_output = true,
            _ => return None,
        }
        self.is_new_preposition = false;
        Some(())
    }

    fn name(&mut self, text: &str, is_quoted: bool) -> Option<()> {
        if text.trim().is_empty() {
            return None;
        }
        let preposition = self.preposition.take();
        let slot = match preposition {
            Some(Preposition::To) => &mut self.now.to,
            Some(Preposition::In) => &mut self.now.place,
            None => {
                let names = if self.now.verbs.is_empty() { &mut self.now.before } else { &mut self.now.after };
                names.push(Name { text: text.to_owned(), is_quoted });
                return Some(());
            }
        };
        slot.replace(text.to_owned()).is_none().then_some(())
    }

    /// Reads `with the message "…"`.
    fn message(&mut self) -> Option<()> {
        self.skip_fillers();
        let Some(Token::Word(Word::Subject(Subject::Message), _)) = self.tokens.get(self.at) else { return None };
        self.at += 1;
        self.skip_fillers();
        let Some(Token::Quoted(text)) = self.tokens.get(self.at) else { return None };
        self.at += 1;
        (!text.trim().is_empty() && self.now.message.replace(text.clone()).is_none()).then_some(())
    }

    /// Reads `called notes`: any word is accepted as the name.
    fn called(&mut self) -> Option<()> {
        let text = self.tokens.get(self.at).and_then(written)?;
        let is_quoted = matches!(self.tokens[self.at], Token::Quoted(_));
        self.at += 1;
        self.name(text, is_quoted)
    }

    fn skip_fillers(&mut self) {
        while matches!(self.tokens.get(self.at), Some(Token::Word(Word::Filler, _))) {
            self.at += 1;
        }
    }

    /// Handles a comma, `and` or `or`. What follows continues a list or begins a segment.
    fn separator(&mut self, is_or: bool) -> Option<()> {
        let mut is_or = is_or;
        while let Some(Token::Stop | Token::Word(Word::And | Word::Or, _)) = self.tokens.get(self.at) {
            is_or |= matches!(self.tokens[self.at], Token::Word(Word::Or, _));
            self.at += 1;
        }
        self.preposition = None;
        let rest = &self.tokens[self.at..];
        if rest.is_empty() || self.now.is_empty() {
            return Some(());
        }
        let is_end = |token: &Token| matches!(token, Token::Stop | Token::Word(Word::And | Word::Or, _));
        let ahead = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
        let has = |is: fn(&Token) -> bool| ahead.iter().any(is);
        let is_negated = has(|token| matches!(token, Token::Word(Word::Not | Word::Subject(Subject::Nothing), _)));
        let says = has(|token| matches!(token, Token::Word(Word::Verb(_), _)));
        let names = has(|token| matches!(token, Token::Quoted(_) | Token::Name(_)));
        let is_about = has(|token| matches!(token, Token::Word(Word::Subject(_), _)));
        // `create or modify any files`.
        let needs_more = |verb: &Verb| !matches!(verb, Verb::Push | Verb::Commit | Verb::Run);
        let is_bare = self.now.subjects.is_empty() && !self.now.has_names();
        if is_bare && says && !is_negated && !self.now.verbs.is_empty() && self.now.verbs.iter().all(needs_more) {
            return (!is_or || self.now.is_negated).then_some(());
        }
        let goes_on = !is_negated && (self.now.verbs.is_empty() || !says) && (names || is_about);
        if is_or && !goes_on && !self.now.is_negated {
            // The address of a review request can be mentioned only if there is one. Of other events, either may happen.
            let is_last = rest[ahead.len()..].iter().all(|token| *token == Token::Stop);
            let is_said = is_last && self.now.subjects == [Subject::Review] && is_link_mentioned(ahead);
            self.at = self.tokens.len();
            return is_said.then_some(());
        }
        if !goes_on {
            self.split(is_or);
            return Some(());
        }
        if is_or && !self.now.is_negated {
            // Either of two files can be searched for. Either of two events cannot.
            let other = |token: &Token| matches!(token, Token::Word(Word::Subject(subject), _) if !matches!(subject, Subject::File | Subject::Directory));
            if !names || ahead.iter().any(other) {
                return None;
            }
            self.now.is_either = true;
        }
        Some(())
    }

    fn split(&mut self, is_or: bool) {
        let done = std::mem::take(&mut self.now);
        // `did not create a branch or push`.
        self.now.is_negated = is_or && done.is_negated;
        self.preposition = None;
        if !done.is_empty() {
            self.done.push(done);
        }
    }
}

/// Returns `true` for `the PR URL is mentioned`.
fn is_link_mentioned(tokens: &[Token]) -> bool {
    let kinds: Vec<Word> = tokens
        .iter()
        .filter_map(|token| match token {
            Token::Word(Word::Filler, _) => None,
            Token::Word(kind, _) => Some(*kind),
            _ => Some(Word::Not),
        })
        .collect();
    kinds == [Word::Subject(Subject::ReviewLink), Word::Verb(Verb::Appear)]
}

/// Returns the text of a token as written.
fn written(token: &Token) -> Option<&str> {
    match token {
        Token::Word(_, text) | Token::Unknown(text) | Token::Quoted(text) | Token::Name(text) => Some(text),
        Token::Stop => None,
    }
}
