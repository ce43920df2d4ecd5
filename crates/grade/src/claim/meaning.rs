//! Meaning of a claim, segment by segment: the table of patterns.

use super::segment::{Name, Segment, segments};
use super::token::{Token, tokens};
use super::word::{Subject, Verb, Word};

/// Observable statement, and whether it is negated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub says: StatementKind,
    pub is_negated: bool,
}

impl Statement {
    /// Returns `true` if it is inverted for cases in which the skill must not be used: it is about an event in a
    /// repository and is not already negated.
    pub fn is_turnable(&self) -> bool {
        let is_about_git = matches!(
            self.says,
            StatementKind::Branch { .. }
                | StatementKind::Commit { .. }
                | StatementKind::Push { .. }
                | StatementKind::Review { .. }
        );
        is_about_git && !self.is_negated
    }
}

/// Observable statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StatementKind {
    Branch {
        name: Option<String>,
    },
    Commit {
        message: Option<String>,
        /// True if there is to be exactly one.
        is_single: bool,
    },
    Push {
        name: Option<String>,
    },
    Review {
        base: Option<String>,
        /// True if it is to be a draft.
        is_draft: bool,
    },
    Files {
        what: FileEvent,
        names: Vec<String>,
        is_either: bool,
        is_at_root: bool,
    },
    /// The agent ran a command. `None` for any command.
    Ran {
        command: Option<String>,
    },
    /// The agent ran the script that the skill bundles. The language is empty if it is not named.
    RanBundled {
        language: String,
    },
    OutputContains {
        texts: Vec<String>,
        is_either: bool,
    },
    FileContains {
        file: String,
        texts: Vec<String>,
        is_either: bool,
    },
    Json {
        file: Option<String>,
        /// True if other text may be around it.
        is_contained: bool,
    },
    Clean,
}

/// Statement about files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileEvent {
    /// The files exist.
    Exist,
    /// The agent created them.
    Created,
    /// The agent created or changed them.
    Written,
    /// They existed, and the agent changed them.
    Modified,
    /// The agent created, changed or deleted them.
    Changed,
    /// The agent deleted them.
    Deleted,
}

/// Returns the meaning of `text`, or `None` if any part of it is not understood.
pub(super) fn understood(text: &str) -> Option<Vec<Statement>> {
    let segments = segments(&tokens(text))?;
    let mut parts: Vec<Statement> = Vec::new();
    let mut before: Option<Segment> = None;
    for segment in segments {
        let whole = completed(segment, before.as_ref())?;
        for part in statements(&whole)? {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        before = Some(whole);
    }
    (!parts.is_empty()).then_some(parts)
}

/// Completes a segment with words that it omits because the previous segment has them.
fn completed(mut segment: Segment, before: Option<&Segment>) -> Option<Segment> {
    let is_thing = |subject: &Subject| matches!(subject, Subject::Branch | Subject::Commit | Subject::Review);
    if segment.verbs.is_empty() {
        let is_created = segment.is_new
            || segment.subjects.contains(&Subject::Review)
            || (segment.is_negated && segment.subjects.iter().all(is_thing));
        segment.verbs = match before {
            _ if is_created => vec![Verb::Create],
            Some(before) => before.verbs.clone(),
            None => return None,
        };
        // `created a branch and a commit`: the words that follow the verb of the previous segment are its object.
        if !is_created {
            segment.after = std::mem::take(&mut segment.before).into_iter().chain(segment.after).collect();
        }
    }
    // `a.json exists and is valid JSON`.
    if segment.subjects == [Subject::Json]
        && segment.before.is_empty()
        && let Some(before) = before.filter(|before| named_subjects(before) == [Subject::File])
    {
        segment.before.clone_from(if before.before.is_empty() { &before.after } else { &before.before });
    }
    let needs_none = segment.verbs.iter().all(|verb| matches!(verb, Verb::Push | Verb::Commit | Verb::Run));
    if let (true, true, Some(before)) = (segment.subjects.is_empty(), segment.before.is_empty(), before) {
        let is_of_files = !before.is_active && (before.subjects.contains(&Subject::File) || !before.before.is_empty());
        if needs_none {
            // The check does not distinguish the files that were committed or pushed.
            return (!is_of_files || segment.verbs.contains(&Verb::Run)).then_some(segment);
        }
        segment.subjects.clone_from(&before.subjects);
        let names = if before.before.is_empty() { &before.after } else { &before.before };
        let is_object = segment.verbs.iter().any(|verb| matches!(verb, Verb::Contain | Verb::Valid | Verb::Invalid));
        if segment.after.is_empty() || is_object {
            segment.before.clone_from(names);
        }
    }
    Some(segment)
}

/// Returns the parts of a segment: every verb combined with every subject.
fn statements(segment: &Segment) -> Option<Vec<Statement>> {
    let has = |verb: Verb| segment.verbs.contains(&verb);
    let is_json = has(Verb::Valid) || has(Verb::Invalid);
    // The names cannot be assigned to one verb: `created a.txt containing "x"`.
    let is_mixed = |verb: &Verb| !matches!(verb, Verb::Contain | Verb::Appear | Verb::Exist);
    // `the output contains valid JSON`.
    let is_json_contained = is_json && has(Verb::Contain) && segment.after.is_empty();
    if (has(Verb::Contain) || has(Verb::Appear)) && segment.verbs.iter().any(is_mixed) && !is_json_contained {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = Rest::from_segment(segment);
    for verb in &segment.verbs {
        let is_said_already = match verb {
            // `there is a branch that was created`, `valid JSON is produced`.
            Verb::Exist => segment.verbs.len() > 1,
            Verb::Create | Verb::Write => is_json,
            Verb::Contain => is_json_contained,
            _ => false,
        };
        if !is_said_already {
            parts.extend(of_verb(*verb, segment, &mut rest)?);
        }
    }
    for subject in &segment.implied {
        let says = if *subject == Subject::Branch {
            StatementKind::Branch { name: None }
        } else {
            StatementKind::Commit { message: None, is_single: false }
        };
        parts.push(Statement { says, is_negated: false });
    }
    // If a word was not used by any part, it was not understood.
    rest.is_used().then_some(parts)
}

/// Content of a segment other than verbs and subjects. Tracks whether all of it was used.
struct Rest {
    to: Option<String>,
    place: Option<String>,
    message: Option<String>,
    is_at_root: bool,
    has_names: bool,
    is_in_output: bool,
    is_single: bool,
    is_draft: bool,
}

impl Rest {
    fn from_segment(segment: &Segment) -> Self {
        Self {
            to: segment.to.clone(),
            place: segment.place.clone(),
            message: segment.message.clone(),
            is_at_root: segment.is_at_root,
            has_names: !(segment.before.is_empty() && segment.after.is_empty()),
            is_in_output: segment.is_in_output,
            is_single: segment.is_single,
            is_draft: segment.is_draft,
        }
    }

    fn is_used(&self) -> bool {
        let is_open = self.to.is_some() || self.place.is_some() || self.message.is_some();
        !(is_open || self.is_at_root || self.has_names || self.is_in_output || self.is_single || self.is_draft)
    }
}

fn of_verb(verb: Verb, segment: &Segment, rest: &mut Rest) -> Option<Vec<Statement>> {
    let part = |says: StatementKind| Some(vec![Statement { says, is_negated: segment.is_negated }]);
    match verb {
        Verb::Create | Verb::Exist | Verb::Open | Verb::Write => created(verb, segment, rest),
        Verb::Push => {
            let is_pushable = |subject: &Subject| {
                matches!(subject, Subject::Branch | Subject::Commit | Subject::Work | Subject::Nothing)
            };
            let named = single(segment, rest)?;
            let name = named.or(rest.to.take());
            segment.subjects.iter().all(is_pushable).then(|| part(StatementKind::Push { name }))?
        }
        Verb::Commit => {
            let is_work = |subject: &Subject| matches!(subject, Subject::Work | Subject::Nothing);
            let message = rest.message.take();
            segment.subjects.iter().all(is_work).then(|| part(StatementKind::Commit { message, is_single: false }))?
        }
        Verb::Run => ran(segment, rest),
        Verb::Contain => contains(segment, rest),
        Verb::Appear => appears(segment, rest),
        Verb::Modify => changed(FileEvent::Modified, segment.is_negated, segment, rest),
        Verb::Change => changed(FileEvent::Changed, segment.is_negated, segment, rest),
        Verb::Delete => changed(FileEvent::Deleted, segment.is_negated, segment, rest),
        Verb::Unchanged => changed(FileEvent::Changed, !segment.is_negated, segment, rest),
        Verb::Valid | Verb::Invalid => json(verb, segment, rest),
        Verb::Clean => (segment.subjects == [Subject::Tree]).then(|| part(StatementKind::Clean))?,
    }
}

/// Returns the parts for things that are created, opened or exist.
fn created(verb: Verb, segment: &Segment, rest: &mut Rest) -> Option<Vec<Statement>> {
    let part = |says: StatementKind| Statement { says, is_negated: segment.is_negated };
    let is_opened = verb == Verb::Open;
    let mut parts = Vec::new();
    for subject in named_subjects(segment) {
        parts.push(match subject {
            Subject::Branch if !is_opened && verb != Verb::Write => {
                part(StatementKind::Branch { name: single(segment, rest)? })
            }
            Subject::Commit if !is_opened && verb != Verb::Write => {
                let is_single = std::mem::take(&mut rest.is_single);
                part(StatementKind::Commit { message: rest.message.take(), is_single })
            }
            Subject::Review if verb != Verb::Write => {
                let is_draft = std::mem::take(&mut rest.is_draft);
                part(StatementKind::Review { base: rest.to.take(), is_draft })
            }
            Subject::File | Subject::Directory if !is_opened => {
                let what = match verb {
                    Verb::Write => FileEvent::Written,
                    Verb::Create => FileEvent::Created,
                    _ if segment.is_new => FileEvent::Created,
                    _ => FileEvent::Exist,
                };
                let says = files(what, segment, rest)?;
                let is_vague = matches!(&says, StatementKind::Files { names, .. } if names.is_empty());
                if is_vague && (what == FileEvent::Exist || subject == Subject::Directory) {
                    return None;
                }
                part(says)
            }
            _ => return None,
        });
    }
    (!parts.is_empty()).then_some(parts)
}

/// Returns the subjects. If there are none and all names are file names, files are the subject.
fn named_subjects(segment: &Segment) -> Vec<Subject> {
    let names = || segment.before.iter().chain(&segment.after);
    let are_files = names().count() > 0 && names().all(|name| is_file_name(&name.text));
    if segment.subjects.is_empty() && are_files { vec![Subject::File] } else { segment.subjects.clone() }
}

/// Returns `true` if the name is recognizably that of a file.
fn is_file_name(name: &str) -> bool {
    let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
    let ending = last.rsplit_once('.').map_or("", |(_, ending)| ending);
    name.ends_with('/') || last.starts_with('.') || ending.chars().any(char::is_alphabetic)
}

/// Returns the only name in a segment. `None` if there are several, or if it is a file name.
fn single(segment: &Segment, rest: &mut Rest) -> Option<Option<String>> {
    let mut names = segment.before.iter().chain(&segment.after);
    let first = names.next();
    if names.next().is_some() || first.is_some_and(|name| is_file_name(&name.text)) {
        return None;
    }
    rest.has_names = false;
    Some(first.map(|name| name.text.clone()))
}

fn files(what: FileEvent, segment: &Segment, rest: &mut Rest) -> Option<StatementKind> {
    let folder = rest.place.take();
    let name = |name: &Name| match &folder {
        Some(folder) => format!("{}/{}", folder.trim_end_matches('/'), name.text),
        None => name.text.clone(),
    };
    let mut names: Vec<String> = segment.before.iter().chain(&segment.after).map(name).collect();
    if let (true, Some(folder)) = (names.is_empty(), &folder) {
        names.push(format!("{}/**/*", folder.trim_end_matches('/')));
    }
    rest.has_names = false;
    let is_at_root = std::mem::take(&mut rest.is_at_root);
    names.iter().all(|name| is_inside(name)).then_some(StatementKind::Files {
        what,
        names,
        is_either: segment.is_either,
        is_at_root,
    })
}

/// Returns `true` if a path can only lead into the working directory. A path with alternatives in braces
/// (`*.{md,txt}`) stands for several paths, and patterns in assertions have no braces.
pub(super) fn is_inside(name: &str) -> bool {
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    let has_choice =
        name.split_once('{').and_then(|(_, rest)| rest.split_once('}')).is_some_and(|(of, _)| of.contains(','));
    !(name.starts_with(['/', '~', '\\']) || has_drive || has_choice || name.contains(['\0', '\n']))
        && name.split(['/', '\\']).all(|part| part != "..")
        && !name.trim_matches(['.', '/']).is_empty()
}

/// Returns the parts for changed files. Without a subject, they are about all files.
fn changed(what: FileEvent, is_negated: bool, segment: &Segment, rest: &mut Rest) -> Option<Vec<Statement>> {
    let is_file =
        |subject: &Subject| matches!(subject, Subject::File | Subject::Directory | Subject::Nothing | Subject::Tree);
    let has_names = rest.has_names;
    let is_vague = !has_names && segment.subjects.is_empty() && segment.verbs != [Verb::Unchanged];
    if is_vague || !segment.subjects.iter().all(is_file) || (has_names && named_subjects(segment).is_empty()) {
        return None;
    }
    let says = files(what, segment, rest)?;
    // A claim that some unspecified file was changed is probably not what the author means.
    (has_names || is_negated).then(|| vec![Statement { says, is_negated }])
}

fn ran(segment: &Segment, rest: &mut Rest) -> Option<Vec<Statement>> {
    if !segment.subjects.iter().all(|subject| matches!(subject, Subject::Command | Subject::Nothing)) {
        return None;
    }
    let names: Vec<String> = segment.before.iter().chain(&segment.after).map(|name| name.text.clone()).collect();
    let is_bare = segment.before.iter().chain(&segment.after).any(|name| !name.is_quoted && !name.text.contains('/'));
    if let (Some(language), true) = (&segment.bundled, names.is_empty()) {
        let says = StatementKind::RanBundled { language: language.clone() };
        return Some(vec![Statement { says, is_negated: segment.is_negated }]);
    }
    rest.has_names = false;
    let commands: Vec<Option<String>> = match (&segment.command, names.is_empty()) {
        (Some(command), true) => vec![Some(command.clone())],
        (None, false) if !is_bare && !segment.is_either => names.into_iter().map(Some).collect(),
        (None, true) if segment.subjects.contains(&Subject::Command) => vec![None],
        _ => return None,
    };
    let part = |command| Statement { says: StatementKind::Ran { command }, is_negated: segment.is_negated };
    Some(commands.into_iter().map(part).collect())
}

/// Returns the quoted strings, if all names are quoted.
fn quoted(names: &[Name]) -> Option<Vec<String>> {
    let all = names.iter().all(|name| name.is_quoted) && !names.is_empty();
    all.then(|| names.iter().map(|name| name.text.clone()).collect())
}

fn contains(segment: &Segment, rest: &mut Rest) -> Option<Vec<Statement>> {
    let texts = quoted(&segment.after)?;
    let is_either = segment.is_either;
    let is_output = segment.subjects.iter().all(|subject| matches!(subject, Subject::Output | Subject::Json));
    rest.has_names = false;
    let is_file =
        |name: &&Name| is_inside(&name.text) && (segment.subjects == [Subject::File] || is_file_name(&name.text));
    let says: Vec<StatementKind> = match segment.before.as_slice() {
        [] if is_output => vec![StatementKind::OutputContains { texts, is_either }],
        files if !files.is_empty() && files.iter().all(|name| is_file(&name)) => {
            let one =
                |file: &Name| StatementKind::FileContains { file: file.text.clone(), texts: texts.clone(), is_either };
            files.iter().map(one).collect()
        }
        _ => return None,
    };
    Some(says.into_iter().map(|says| Statement { says, is_negated: segment.is_negated }).collect())
}

fn appears(segment: &Segment, rest: &mut Rest) -> Option<Vec<Statement>> {
    let texts = quoted(&segment.before).filter(|_| segment.after.is_empty() && segment.subjects.is_empty())?;
    let is_either = segment.is_either;
    rest.has_names = false;
    let says = match (std::mem::take(&mut rest.is_in_output), rest.place.take()) {
        (true, None) => StatementKind::OutputContains { texts, is_either },
        (false, Some(file)) if is_inside(&file) => StatementKind::FileContains { file, texts, is_either },
        _ => return None,
    };
    Some(vec![Statement { says, is_negated: segment.is_negated }])
}

fn json(verb: Verb, segment: &Segment, rest: &mut Rest) -> Option<Vec<Statement>> {
    let known = |subject: &Subject| matches!(subject, Subject::Json | Subject::Output | Subject::File);
    if !segment.subjects.contains(&Subject::Json) || !segment.subjects.iter().all(known) {
        return None;
    }
    let names = &segment.before;
    let files: Vec<Option<String>> = match names.as_slice() {
        [] if segment.subjects.contains(&Subject::File) => return None,
        [] => vec![None],
        names => names.iter().map(|name| Some(name.text.clone()).filter(|name| is_inside(name))).collect(),
    };
    if segment.is_either || !segment.after.is_empty() || (!names.is_empty() && files.iter().any(Option::is_none)) {
        return None;
    }
    rest.has_names = false;
    let is_negated = segment.is_negated != (verb == Verb::Invalid);
    let is_contained = segment.verbs.contains(&Verb::Contain);
    if is_contained && (is_negated || verb == Verb::Invalid) {
        return None;
    }
    let says = |file| StatementKind::Json { file, is_contained };
    Some(files.into_iter().map(|file| Statement { says: says(file), is_negated }).collect())
}

/// Returns `true` if a string that is not understood contains words typical of a claim about branches, commits, pushes
/// or review requests.
pub(super) fn seems_about_git(text: &str) -> bool {
    let tokens = tokens(text);
    let has =
        |wanted: fn(Word) -> bool| tokens.iter().any(|token| matches!(token, Token::Word(word, _) if wanted(*word)));
    let is_made = has(|word| matches!(word, Word::New | Word::Verb(Verb::Create | Verb::Exist | Verb::Push)));
    let is_thing = has(|word| matches!(word, Word::Subject(Subject::Branch | Subject::Commit)));
    (is_thing && is_made) || has(|word| word == Word::Subject(Subject::Review))
}
