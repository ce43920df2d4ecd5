//! ECMAScript regular expressions with a time limit.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use regex_syntax::hir::{Hir, HirKind, Look};
use rquickjs::context::intrinsic;
use rquickjs::function::{Constructor, This};
use rquickjs::{Array, Ctx, Function, Object, Persistent};

use crate::engine::{Engine, EngineError, Limits};
use crate::plain::Plain;

/// Default time limit for testing one string.
pub const DEFAULT_BUDGET: Duration = Duration::from_millis(250);

/// Flags that a pattern may begin with, as in `(?i)`.
const FLAGS: &str = "imsuv";

/// Limits of the engine. A long text and the engine's own copy of it must fit, but a runaway pattern must not use up
/// the machine's memory.
const LIMITS: Limits = Limits { memory: 128 << 20, stack: 256 << 10 };

/// Maximum length of an expression, in bytes. The engine's compile time grows with the square of the length and cannot
/// be interrupted. At this length, it is a fraction of a second.
const MAX_PATTERN_BYTES: usize = 32 << 10;

/// Maximum number of compiled expressions that a thread keeps.
const MAX_CACHED: usize = 512;

/// A valid regular expression with ECMAScript semantics: plain data, cheap to clone, usable from any thread.
///
/// A pattern may begin with flags in the style of other dialects, `(?i)`, `(?ms)`: any of `i`, `m`, `s`, `u`, `v`,
/// each at most once. The rest is an expression that `new RegExp` accepts, including `(?i:…)` for a part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Regex {
    pattern: Arc<str>,
    source: Arc<str>,
    flags: Arc<str>,
}

/// Part of a string that a [`Regex`] matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match<'t> {
    /// Matched text.
    pub text: &'t str,
    /// Byte range. An expression without `u` or `v` can match half of a surrogate pair. The range then includes the
    /// whole character.
    pub range: Range<usize>,
}

/// Error of a pattern or of a test.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegexError {
    /// The pattern is not valid.
    #[error("invalid regular expression: {reason}")]
    Invalid {
        /// The pattern as written.
        pattern: String,
        /// Description of the error.
        reason: String,
        /// Suggestion, if there is one.
        help: Option<String>,
    },
    /// The test was stopped, and has no result.
    #[error("the regular expression was stopped after {} ms", budget.as_millis())]
    TimedOut {
        /// The time limit.
        budget: Duration,
    },
    /// The test needed too much memory, and has no result.
    #[error("the regular expression needed more than {} MiB of memory", limit >> 20)]
    OutOfMemory {
        /// The limit in bytes.
        limit: usize,
    },
    /// The engine itself failed.
    #[error("{0}")]
    Engine(String),
}

impl Regex {
    /// Parses a pattern with its leading flags, and compiles it to check that it is valid.
    ///
    /// # Errors
    /// Returns [`RegexError::Invalid`] if it is not valid, with a suggestion if there is one.
    pub fn parse(pattern: &str) -> Result<Self, RegexError> {
        let invalid =
            |reason: String, help: Option<String>| RegexError::Invalid { pattern: pattern.to_owned(), reason, help };
        refuse_control_characters(pattern)?;
        let (flags, source) = leading_flags(pattern).map_err(|(reason, help)| invalid(reason, Some(help)))?;
        // Same as `RegExp.prototype.source`.
        let source = if source.is_empty() { "(?:)" } else { source };
        Self { pattern: pattern.into(), source: source.into(), flags: flags.into() }.compiled()
    }

    /// Returns the expression after checking that it is valid.
    fn compiled(self) -> Result<Self, RegexError> {
        if let Some((reason, help)) = foreign(&self.source, &self.flags) {
            return Err(RegexError::Invalid { pattern: self.pattern.to_string(), reason, help: Some(help) });
        }
        if Plain::parse(&self.source, &self.flags).is_some() {
            return Ok(self);
        }
        if self.source.len() > MAX_PATTERN_BYTES {
            let reason = format!("it has {} bytes; the limit is {MAX_PATTERN_BYTES}", self.source.len());
            return Err(RegexError::Invalid { pattern: self.pattern.to_string(), reason, help: None });
        }
        let compiled = with_pool(|pool| {
            let key = Key { source: Arc::clone(&self.source), flags: Arc::clone(&self.flags) };
            let Pool { compiled, constructor, engine, .. } = pool;
            engine.run(DEFAULT_BUDGET, |ctx| compile(ctx, compiled, constructor, key).map(|_| ()))
        });
        match compiled {
            Ok(()) => Ok(self),
            Err(EngineError::Thrown { message, .. }) => {
                let help = mistake(&self.source, &message);
                Err(RegexError::Invalid { pattern: self.pattern.to_string(), reason: message, help })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Compiles the pattern of a regular expression literal with its flags, any of `dgimsuvy`. `g` and `d` do not
    /// affect whether a string matches. `y` requires the match to be at the start.
    ///
    /// # Errors
    /// Returns [`RegexError::Invalid`] if the pattern or the flags are not valid.
    pub fn literal(source: &str, flags: &str) -> Result<Self, RegexError> {
        let written = format!("/{source}/{flags}");
        refuse_control_characters(&written)?;
        let invalid = |reason: String| RegexError::Invalid { pattern: written.clone(), reason, help: None };
        if let Some((offset, flag)) =
            flags.char_indices().find(|(offset, flag)| !"dgimsuvy".contains(*flag) || flags[..*offset].contains(*flag))
        {
            let reason = if flags[..offset].contains(flag) { "is given twice" } else { "is not a flag" };
            return Err(invalid(format!("`{flag}` {reason}")));
        }
        let kept: String = flags.chars().filter(|flag| !matches!(flag, 'd' | 'g' | 'y')).collect();
        let bare = if source.is_empty() { "(?:)" } else { source };
        let bare = Self { pattern: written.as_str().into(), source: bare.into(), flags: kept.as_str().into() };
        // Compiled on its own first, because it could close the group that is put around it.
        let bare = bare.compiled()?;
        if !flags.contains('y') {
            return Ok(bare);
        }
        Self { source: format!("(?<![\\s\\S])(?:{source})").into(), ..bare }.compiled()
    }

    /// Returns the pattern as written, including leading flags.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns the source as in ECMAScript: the pattern without its leading flags, or `(?:)` if it is empty.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the leading flags, in the order in which they are written.
    pub fn flags(&self) -> &str {
        &self.flags
    }

    /// Returns `true` if some part of `text` matches, within [`DEFAULT_BUDGET`].
    ///
    /// # Errors
    /// Returns [`RegexError::TimedOut`] or [`RegexError::OutOfMemory`] if there is no result.
    pub fn is_match(&self, text: &str) -> Result<bool, RegexError> {
        self.is_match_within(text, DEFAULT_BUDGET)
    }

    /// Returns `true` if some part of `text` matches, within `budget`. The time is checked every few thousand steps,
    /// so a shorter test is never stopped.
    ///
    /// # Errors
    /// Returns [`RegexError::TimedOut`] or [`RegexError::OutOfMemory`] if there is no result.
    pub fn is_match_within(&self, text: &str, budget: Duration) -> Result<bool, RegexError> {
        if let Some(plain) = Plain::parse(&self.source, &self.flags) {
            return Ok(plain.is_in(text));
        }
        let found = with_pool(|pool| {
            let Pool { compiled, constructor, test, engine, .. } = pool;
            let key = Key { source: Arc::clone(&self.source), flags: Arc::clone(&self.flags) };
            engine.run(budget, |ctx| {
                let regex = compile(ctx, compiled, constructor, key)?;
                test.clone().restore(ctx)?.call((This(regex), text))
            })
        });
        Ok(found?)
    }

    /// Returns the number of parts of `text` that match, within `budget`. Parts do not overlap.
    ///
    /// # Errors
    /// Returns [`RegexError::TimedOut`] or [`RegexError::OutOfMemory`] if there is no result.
    pub fn count_within(&self, text: &str, budget: Duration) -> Result<usize, RegexError> {
        let count = with_pool(|pool| {
            let Pool { compiled, constructor, exec, engine, .. } = pool;
            let key = Key { source: Arc::clone(&self.source), flags: format!("{}g", self.flags).into() };
            engine.run(budget, |ctx| {
                let regex = compile(ctx, compiled, constructor, key)?;
                let exec = exec.clone().restore(ctx)?;
                let text = rquickjs::String::from_str(ctx.clone(), text)?;
                let (mut count, mut start) = (0, 0);
                loop {
                    regex.set("lastIndex", start)?;
                    let call = exec.call::<_, Option<Object<'_>>>((This(regex.clone()), text.clone()))?;
                    let Some(found) = call else { return Ok(count) };
                    count += 1;
                    let (at, end): (usize, usize) = (found.get("index")?, regex.get("lastIndex")?);
                    // An empty match does not move on by itself.
                    start = if end == at { end + 1 } else { end };
                }
            })
        });
        Ok(count?)
    }

    /// Returns the first part of `text` that matches, within [`DEFAULT_BUDGET`].
    ///
    /// # Errors
    /// Returns [`RegexError::TimedOut`] or [`RegexError::OutOfMemory`] if there is no result.
    pub fn find<'t>(&self, text: &'t str) -> Result<Option<Match<'t>>, RegexError> {
        let found: Result<Option<Range<usize>>, EngineError> = with_pool(|pool| {
            let Pool { compiled, constructor, exec, engine, .. } = pool;
            let key = Key { source: Arc::clone(&self.source), flags: format!("{}d", self.flags).into() };
            engine.run(DEFAULT_BUDGET, |ctx| {
                let regex = compile(ctx, compiled, constructor, key)?;
                let Some(found) = exec.clone().restore(ctx)?.call::<_, Option<Object<'_>>>((This(regex), text))? else {
                    return Ok(None);
                };
                let whole: Array<'_> = found.get::<_, Array<'_>>("indices")?.get(0)?;
                Ok(Some(whole.get(0)?..whole.get(1)?))
            })
        });
        Ok(found?.map(|units| {
            let range = bytes_of(text, &units);
            Match { text: &text[range.clone()], range }
        }))
    }
}

impl Regex {
    /// Returns `true` if it certainly matches every text that is not blank, as `.*`, `[\s\S]+` and `^` do. Some
    /// expressions that also do so are not recognised.
    pub fn matches_every_text(&self) -> bool {
        let (body, at_start) = self.source.strip_prefix('^').map_or((&*self.source, false), |body| (body, true));
        let is_end = |body: &&str| !body.ends_with('\\');
        let (body, at_end) = body.strip_suffix('$').filter(is_end).map_or((body, false), |body| (body, true));
        // Without conditions on the text around it, a match of nothing is found at any place.
        if !(has_conditions(body) || at_start && at_end) && self.is_match("").unwrap_or(false) {
            return true;
        }
        let atom = ["*?", "+?", "*", "+"].iter().find_map(|many| body.strip_suffix(many));
        match atom.unwrap_or(body) {
            _ if at_start && at_end && atom.is_none() => false,
            "." => self.flags.contains('s') || (!at_start && !at_end) || (self.flags.contains('m') && atom.is_some()),
            "\\S" => !at_start && !at_end,
            atom => ANY_CHARACTER.contains(&atom),
        }
    }
}

impl Regex {
    /// Returns `true` if it certainly matches no text, because it wants characters before the start of the text or after
    /// its end, as `a^b` and `x$y` do. Some expressions that match nothing are not recognised.
    pub fn matches_no_text(&self) -> bool {
        // With `m`, the anchors are also met inside a text.
        if self.flags.contains('m') || !self.source.contains(['^', '$']) {
            return false;
        }
        // The two dialects agree on anchors and lengths. What only one of them knows, such as lookarounds, is not parsed.
        regex_syntax::parse(&self.source).is_ok_and(|parsed| is_impossible(&parsed))
    }
}

/// Returns `true` if some part of `hir` can only match where no text is.
fn is_impossible(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Concat(parts) => {
            let takes =
                |parts: &[Hir]| parts.iter().any(|part| part.properties().minimum_len().is_some_and(|len| len > 0));
            parts.iter().enumerate().any(|(index, part)| {
                let properties = part.properties();
                is_impossible(part)
                    || properties.look_set_prefix().contains(Look::Start) && takes(&parts[..index])
                    || properties.look_set_suffix().contains(Look::End) && takes(&parts[index + 1..])
            })
        }
        HirKind::Alternation(parts) => parts.iter().all(is_impossible),
        HirKind::Capture(group) => is_impossible(&group.sub),
        HirKind::Repetition(repetition) => repetition.min > 0 && is_impossible(&repetition.sub),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}

/// Expressions that match any character.
const ANY_CHARACTER: [&str; 9] =
    ["[\\s\\S]", "[\\S\\s]", "[\\w\\W]", "[\\W\\w]", "[\\d\\D]", "[\\D\\d]", "[^]", "(.|\\n)", "(?:.|\\n)"];

/// Returns `true` if `source` may have conditions on the text around a match: anchors, boundaries or lookarounds.
fn has_conditions(source: &str) -> bool {
    let mut classes = 0_usize;
    let mut letters = source.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if matches!(letters.next(), Some('b' | 'B')) => return true,
            '[' => classes += 1,
            ']' => classes = classes.saturating_sub(1),
            '^' | '$' if classes == 0 => return true,
            _ => {}
        }
    }
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| source.contains(group))
}

impl std::fmt::Display for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}/", self.pattern)
    }
}

impl RegexError {
    /// Returns a suggestion, if there is one.
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::Invalid { help, .. } => help.as_deref(),
            Self::TimedOut { .. } | Self::OutOfMemory { .. } | Self::Engine(_) => None,
        }
    }
}

impl From<EngineError> for RegexError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::TimedOut { budget } => Self::TimedOut { budget },
            EngineError::OutOfMemory { limit } => Self::OutOfMemory { limit },
            EngineError::Thrown { .. } | EngineError::Failed(_) => Self::Engine(error.to_string()),
        }
    }
}

/// Refuses control characters in a pattern. They are nearly always escapes of the language around it: in double quotes,
/// `"\b"` is a backspace, and a pattern with it matches nothing.
fn refuse_control_characters(pattern: &str) -> Result<(), RegexError> {
    let is_control = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let Some(first) = pattern.chars().find(|c| is_control(*c)) else { return Ok(()) };
    let mut right = String::with_capacity(pattern.len() + 8);
    for c in pattern.chars() {
        match c {
            '\u{8}' => right.push_str("\\b"),
            '\t' => right.push_str("\\t"),
            '\n' => right.push_str("\\n"),
            '\u{b}' => right.push_str("\\v"),
            '\u{c}' => right.push_str("\\f"),
            '\r' => right.push_str("\\r"),
            c if is_control(c) && u32::from(c) < 0x100 => right.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if is_control(c) => right.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => right.push(c),
        }
    }
    let what = match first {
        '\u{8}' => "a backspace".to_owned(),
        '\t' => "a tab".to_owned(),
        '\n' | '\r' => "a line break".to_owned(),
        c => format!("the control character U+{:04X}", u32::from(c)),
    };
    let help = match pattern.strip_suffix('\n') {
        Some(line) if !line.contains(is_control) => {
            "write `|-` instead of `|`, because a `|` block ends with a line break".to_owned()
        }
        _ => format!("write `{right}`; in double quotes and in code, `{}`", right.replace('\\', "\\\\")),
    };
    let reason = format!("it contains {what}");
    Err(RegexError::Invalid { pattern: right, reason, help: Some(help) })
}

/// Splits `pattern` into its leading flags and the rest. The error is a description and a suggestion.
fn leading_flags(pattern: &str) -> Result<(&str, &str), (String, String)> {
    let Some((flags, rest)) = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')) else {
        return Ok(("", pattern));
    };
    if flags.is_empty() || !flags.chars().all(|c| c.is_ascii_alphabetic() || c == '-') {
        return Ok(("", pattern));
    }
    for (offset, flag) in flags.char_indices() {
        if flag == '-' {
            return Err((
                "leading flags cannot be switched off".into(),
                "leave the flag out, or use `(?-i:…)` around a part".into(),
            ));
        }
        if !FLAGS.contains(flag) {
            let help = if flag == 'x' {
                "ECMAScript has no extended mode; write the pattern without spaces and comments".to_owned()
            } else {
                "a pattern can begin with `i`, `m`, `s`, `u` or `v`".to_owned()
            };
            return Err((format!("`{flag}` is not a flag that a pattern can begin with"), help));
        }
        if flags[..offset].contains(flag) {
            return Err((format!("the `{flag}` flag is given twice"), "write it once".into()));
        }
    }
    Ok((flags, rest))
}

/// Escapes of other dialects, which ECMAScript reads as the letter, with what they mean there and what to write.
const ESCAPES: [(char, &str, &str); 10] = [
    ('A', "the start of the text", "`^`, without the `m` flag"),
    ('Z', "the end of the text", "`$`, without the `m` flag"),
    ('z', "the end of the text", "`$`, without the `m` flag"),
    ('h', "a space or a tab", "`[ \\t]`"),
    ('H', "anything except a space and a tab", "`[^ \\t]`"),
    ('R', "a line break", "`\\r?\\n`"),
    ('K', "the start of what is found", "`(?<=…)` around what comes before"),
    ('Q', "the start of literal text", "`\\` before each special character"),
    ('p', "a class of Unicode characters", "the `u` flag as well: `(?u)` in front"),
    ('P', "a class of Unicode characters", "the `u` flag as well: `(?u)` in front"),
];

/// Classes of POSIX, with their characters in ECMAScript.
const CLASSES: [(&str, &str); 13] = [
    ("alpha", "A-Za-z"),
    ("digit", "0-9"),
    ("alnum", "A-Za-z0-9"),
    ("upper", "A-Z"),
    ("lower", "a-z"),
    ("space", "\\s"),
    ("blank", " \\t"),
    ("punct", "!-\\/:-@\\[-`{-~"),
    ("xdigit", "0-9A-Fa-f"),
    ("word", "\\w"),
    ("cntrl", "\\x00-\\x1f\\x7f"),
    ("print", " -~"),
    ("graph", "!-~"),
];

/// Returns the description of syntax from other dialects that is valid in ECMAScript but means literal characters
/// there, and a suggestion.
pub(crate) fn foreign(source: &str, flags: &str) -> Option<(String, String)> {
    for (name, characters) in CLASSES {
        let class = format!("[:{name}:]");
        if source.contains(&class) {
            let help = format!("write `{characters}` instead, inside the outer brackets");
            return Some((format!("`{class}` is not a class of characters in ECMAScript"), help));
        }
    }
    // With these flags, an unknown escape is not valid.
    let is_strict = flags.contains(['u', 'v']);
    let mut rest = source;
    while let Some((_, escaped)) = rest.split_once('\\') {
        let letter = escaped.chars().next()?;
        rest = &escaped[letter.len_utf8()..];
        let known = ESCAPES.iter().find(|(escape, ..)| *escape == letter);
        let is_class = matches!(letter, 'p' | 'P');
        if let Some((_, meaning, right)) = known.filter(|_| !is_class || (!is_strict && rest.starts_with('{'))) {
            let reason = format!("`\\{letter}` does not mean {meaning} here");
            return Some((reason, format!("write {right}")));
        }
    }
    None
}

/// Returns a suggestion for syntax from other dialects.
fn mistake(source: &str, reason: &str) -> Option<String> {
    let flag_group = || {
        source.match_indices("(?").any(|(offset, _)| {
            let inside = source[offset + 2..].split(')').next().unwrap_or_default();
            !inside.is_empty() && inside.len() <= 6 && inside.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        })
    };
    let known = [
        (source.contains("(?P<"), "a named group is written `(?<name>…)`"),
        (source.contains("(?P="), "a named group is referred to as `\\k<name>`"),
        (source.contains("(?>"), "ECMAScript has no atomic groups"),
        (source.contains("(?#"), "ECMAScript has no comments in regular expressions"),
        (
            reason.contains("repeat") && (source.contains("*+") || source.contains("++")),
            "ECMAScript has no possessive quantifiers",
        ),
        (flag_group(), "write flags at the beginning, all in one group, or around a part: `(?i:…)`"),
    ];
    known.iter().find(|(applies, _)| *applies).map(|(_, help)| (*help).to_owned())
}

/// Returns the byte range of `units`, a range of UTF-16 units. Characters that are cut are included as a whole.
fn bytes_of(text: &str, units: &Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (text.len(), text.len());
    let mut unit = 0;
    for (offset, c) in text.char_indices() {
        let next = unit + c.len_utf16();
        if start == text.len() && units.start < next {
            start = offset;
        }
        if units.end <= unit {
            end = offset;
            break;
        }
        unit = next;
    }
    start.min(end)..end
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    source: Arc<str>,
    flags: Arc<str>,
}

type Compiled = HashMap<Key, Persistent<Object<'static>>>;

/// A thread's engine and its compiled expressions. The values must be dropped before the engine, so the order of the
/// fields matters.
struct Pool {
    compiled: Compiled,
    constructor: Persistent<Constructor<'static>>,
    test: Persistent<Function<'static>>,
    exec: Persistent<Function<'static>>,
    engine: Engine,
}

impl Pool {
    fn new() -> Result<Self, EngineError> {
        let engine = Engine::new::<(intrinsic::RegExpCompiler, intrinsic::RegExp)>(LIMITS)?;
        let (constructor, test, exec) = engine.run(DEFAULT_BUDGET, |ctx| {
            let constructor: Constructor<'_> = ctx.globals().get("RegExp")?;
            let prototype: Object<'_> = constructor.get("prototype")?;
            let method =
                |name| Ok::<_, rquickjs::Error>(Persistent::save(ctx, prototype.get::<_, Function<'_>>(name)?));
            Ok((Persistent::save(ctx, constructor.clone()), method("test")?, method("exec")?))
        })?;
        Ok(Self { compiled: HashMap::new(), constructor, test, exec, engine })
    }
}

/// Returns `source` in a form that the engine accepts. With the `v` flag, the engine rejects a `-` outside classes,
/// where it is an ordinary character.
fn for_engine<'s>(source: &'s str, flags: &str) -> Cow<'s, str> {
    if !flags.contains('v') || !source.contains('-') {
        return Cow::Borrowed(source);
    }
    let mut written = String::with_capacity(source.len() + 8);
    let mut classes = 0_usize;
    let mut offset = 0;
    while let Some(c) = source[offset..].chars().next() {
        let length = match c {
            // Also skips `\-`: an escaped character does not open a class.
            '\\' => 1 + source[offset + 1..].chars().next().map_or(0, char::len_utf8),
            // `(?i-m:`
            '(' if classes == 0 && source[offset + 1..].starts_with('?') => {
                let flags = source[offset + 2..].find(|c: char| !c.is_ascii_lowercase() && c != '-');
                2 + flags.unwrap_or(source.len() - offset - 2)
            }
            _ => c.len_utf8(),
        };
        match c {
            '[' => classes += 1,
            ']' => classes = classes.saturating_sub(1),
            _ => {}
        }
        let piece = &source[offset..offset + length];
        written.push_str(if classes == 0 && piece == "-" { "\\x2d" } else { piece });
        offset += length;
    }
    Cow::Owned(written)
}

/// Returns the compiled expression, from the cache if possible.
fn compile<'js>(
    ctx: &Ctx<'js>,
    compiled: &mut Compiled,
    constructor: &Persistent<Constructor<'static>>,
    key: Key,
) -> rquickjs::Result<Object<'js>> {
    if let Some(known) = compiled.get(&key) {
        return known.clone().restore(ctx);
    }
    let source = for_engine(&key.source, &key.flags);
    let regex: Object<'js> = constructor.clone().restore(ctx)?.construct((&*source, &*key.flags))?;
    // If patterns are used in rotation, clearing the cache is as good as more complex eviction.
    if compiled.len() >= MAX_CACHED {
        compiled.clear();
    }
    compiled.insert(key, Persistent::save(ctx, regex.clone()));
    Ok(regex)
}

thread_local! {
    static POOL: RefCell<Option<Pool>> = const { RefCell::new(None) };
}

/// Runs `work` with this thread's engine. An engine that ran out of memory is dropped.
fn with_pool<T>(work: impl FnOnce(&mut Pool) -> Result<T, EngineError>) -> Result<T, EngineError> {
    let done = POOL.try_with(|slot| {
        let Ok(mut slot) = slot.try_borrow_mut() else {
            return Err(EngineError::Failed("it is already running on this thread".into()));
        };
        let pool = match &mut *slot {
            Some(pool) => pool,
            empty => empty.insert(Pool::new()?),
        };
        let done = work(pool);
        if matches!(done, Err(EngineError::OutOfMemory { .. })) {
            *slot = None;
        }
        done
    });
    done.unwrap_or_else(|_| Err(EngineError::Failed("the thread is ending".into())))
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_expression_of_a_megabyte_is_refused_by_its_length() {
        let long = format!("{}$", "a|b.".repeat(1 << 18));
        let error = super::Regex::parse(&long).unwrap_err();
        assert_eq!(error.to_string(), "invalid regular expression: it has 1048577 bytes; the limit is 32768");
        assert!(super::Regex::literal(&long, "i").is_err());
        assert!(super::Regex::parse(&"a|b.".repeat(1 << 13)).is_ok(), "32768 bytes");
    }

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Regex::parse(pattern).unwrap().is_match(text).unwrap()
    }

    fn refusal(pattern: &str) -> (String, Option<String>) {
        match Regex::parse(pattern) {
            Err(RegexError::Invalid { reason, help, .. }) => (reason, help),
            other => panic!("{pattern}: {other:?}"),
        }
    }

    #[test]
    fn syntax_of_other_dialects_that_would_be_literal_is_refused() {
        for (pattern, reason, help) in [
            (r"\Ahello", r"`\A` does not mean the start of the text here", "write `^`, without the `m` flag"),
            (r"hello\Z", r"`\Z` does not mean the end of the text here", "write `$`, without the `m` flag"),
            (r"\\\z", r"`\z` does not mean the end of the text here", "write `$`, without the `m` flag"),
            (
                "[[:alpha:]]+",
                "`[:alpha:]` is not a class of characters in ECMAScript",
                "write `A-Za-z` instead, inside the outer brackets",
            ),
            (
                r"(?i)\p{L}",
                r"`\p` does not mean a class of Unicode characters here",
                "write the `u` flag as well: `(?u)` in front",
            ),
        ] {
            assert_eq!(refusal(pattern), (reason.to_owned(), Some(help.to_owned())), "{pattern}");
        }
        assert!(Regex::literal(r"a\Z", "").is_err());
        for right in [r"\\Z", r"C:\\home", r"(?u)\p{L}", r"\bA\B", "[a:b]", r"\p", r"\<b\>"] {
            assert!(Regex::parse(right).is_ok(), "{right}");
        }
    }

    #[test]
    fn control_characters_are_refused_with_the_right_spelling() {
        assert_eq!(
            refusal("\u{8}rm\u{8}\\d"),
            (
                "it contains a backspace".to_owned(),
                Some(r"write `\brm\b\d`; in double quotes and in code, `\\brm\\b\\d`".to_owned())
            )
        );
        assert_eq!(
            refusal("a\u{7}\u{2028}").1.unwrap(),
            r"write `a\x07\u2028`; in double quotes and in code, `a\\x07\\u2028`"
        );
        assert_eq!(refusal("a\n").1.unwrap(), "write `|-` instead of `|`, because a `|` block ends with a line break");
        assert_eq!(refusal("a\nb\n").1.unwrap(), r"write `a\nb\n`; in double quotes and in code, `a\\nb\\n`");
        assert!(Regex::literal("a\tb", "i").is_err() && Regex::parse(r"\brm\b\x08").is_ok());
    }

    #[test]
    fn leading_flags_become_flags() {
        let regex = Regex::parse("(?ims)^b.c$").unwrap();
        assert_eq!((regex.source(), regex.flags(), regex.pattern()), ("^b.c$", "ims", "(?ims)^b.c$"));
        assert!(regex.is_match("a\nB\nC\nd").unwrap());
        assert!(!matches("^b.c$", "a\nB\nC\nd"));
        assert_eq!(regex.to_string(), "/(?ims)^b.c$/");
        assert!(matches("(?u)^.$", "😀") && !matches("^.$", "😀"));
        assert!(matches("(?v)^[[a-z]&&[aeiou]]$", "e") && !matches("(?v)^[[a-z]&&[aeiou]]$", "f"));
    }

    #[test]
    fn a_hyphen_outside_a_class_is_a_character_with_every_flag() {
        for flags in ["", "u", "v"] {
            let is_in = |source: &str, text: &str| Regex::literal(source, flags).unwrap().is_match(text).unwrap();
            assert!(is_in("^a-b$", "a-b") && !is_in("^a-b$", "ab"), "{flags}");
            assert!(is_in("^[a-c]-[\\d]+-?$", "b-12") && !is_in("^[a-c]-$", "--"), "{flags}");
            assert!(is_in("^\\[-\\]$", "[-]"), "{flags}");
        }
        assert_eq!(for_engine("(?i-m:a-b)[a-z[0-9]]-\\[-", "v"), "(?i-m:a\\x2db)[a-z[0-9]]\\x2d\\[\\x2d");
    }

    #[test]
    fn semantics_are_those_of_ecmascript() {
        assert!(!matches(r"\d", "٣"), "only ASCII digits");
        assert!(matches(r"^(?:(a)|b)\1$", "b"), "a group that took no part matches nothing");
        assert!(matches(r"(?<=\$)\d+(?!\.)", "cost $42"));
        assert!(matches("[^]", "\n") && matches(r"\cJ", "\n"));
        assert!(matches("(?i:a)b", "Ab") && !matches("(?i:a)b", "AB"));
        assert!(matches(r"(?<year>\d{4})-\k<year>", "1999-1999"));
        assert!(matches("(?i)ГОТОВО", "готово"));
        assert!(matches("a\\0b", "xa\0b"), "a NUL is an ordinary character");
        assert!(matches("", "") && matches("(?i)", "x"));
    }

    #[test]
    fn invalid_patterns_are_rejected_with_a_suggestion() {
        for (pattern, words, way_out) in [
            ("(?x)a b", "`x` is not a flag", "extended mode"),
            ("(?-i)x", "cannot be switched off", "around a part"),
            ("(?i-s)x", "cannot be switched off", "around a part"),
            ("(?ii)x", "given twice", "once"),
            ("(?g)x", "`g` is not a flag", "`i`, `m`, `s`, `u` or `v`"),
            ("a(?i)b", "", "(?i:…)"),
            ("(?P<n>a)", "", "(?<name>…)"),
            ("a++", "", "possessive"),
        ] {
            let (reason, help) = refusal(pattern);
            assert!(reason.contains(words), "{pattern}: {reason}");
            assert!(help.clone().unwrap_or_default().contains(way_out), "{pattern}: {help:?}");
        }
        for pattern in ["(", "[", "a**", "(?u)\\-", "(?uv)a", "(?)", "\\k<n>(?<n>", "a{2,1}"] {
            assert!(!refusal(pattern).0.is_empty(), "{pattern}");
        }
        let nested = "(".repeat(200_000);
        assert!(Regex::parse(&nested).is_err(), "deep nesting is refused, not fatal");
    }

    #[test]
    fn a_runaway_expression_is_stopped_and_the_engine_continues() {
        let regex = Regex::parse("^(a+)+$").unwrap();
        let text = format!("{}b", "a".repeat(40));
        let budget = Duration::from_millis(20);
        assert_eq!(regex.is_match_within(&text, budget), Err(RegexError::TimedOut { budget }));
        assert!(regex.is_match("aaa").unwrap());
        assert!(regex.is_match_within("aaa", Duration::ZERO).unwrap(), "a short test is never stopped");
        assert!(matches!(regex.find(&text), Err(RegexError::TimedOut { .. })));
    }

    #[test]
    fn an_expression_that_exhausts_memory_is_stopped_and_the_next_one_works() {
        let regex = Regex::parse("^(?:a|b)*c").unwrap();
        let text = "ab".repeat(8 << 20);
        let outcome = regex.is_match_within(&text, Duration::from_secs(60));
        assert_eq!(outcome, Err(RegexError::OutOfMemory { limit: LIMITS.memory }));
        assert!(regex.is_match("abc").unwrap());
    }

    #[test]
    fn find_returns_the_byte_range_of_the_first_match() {
        let find = |pattern: &str, text: &'static str| Regex::parse(pattern).unwrap().find(text).unwrap();
        let found = find("l+o", "é😀 hello llo").unwrap();
        assert_eq!((found.text, found.range), ("llo", 9..12));
        assert_eq!(find("x", "abc"), None);
        assert_eq!(find("$", "é").unwrap().range, 2..2);
        assert_eq!(find("", "é").unwrap().range, 0..0);
        assert_eq!(find("\\ude00", "a😀b").unwrap().text, "😀", "half a surrogate pair matches the whole character");
    }

    #[test]
    fn a_regex_is_plain_data_that_any_thread_can_use() {
        let regex = Regex::parse("(?i)b").unwrap();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let regex = regex.clone();
                std::thread::spawn(move || regex.is_match("aBc").unwrap())
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    }

    #[test]
    fn a_sticky_pattern_is_validated_on_its_own() {
        for flags in ["", "y", "gy"] {
            assert!(matches!(Regex::literal("a)(b", flags), Err(RegexError::Invalid { .. })), "{flags}");
        }
        assert!(Regex::literal("a|b", "y").unwrap().is_match("bc").unwrap());
        assert!(!Regex::literal("a|b", "y").unwrap().is_match("cb").unwrap());
    }

    #[test]
    fn plain_patterns_match_as_in_the_engine() {
        let texts =
            ["", "a", "b", "ab", "ba", "aab", "a b", "a\nb", "a-b", "x{1}", "é", "e\u{301}", "😀", "a😀", "^a", "$"];
        let words = [
            "", "a", "b", "ab", "a b", "a-b", "é", "e\u{301}", "😀", "x{1}", "a,b", "a=b", "<a>", "a:b", "'", "!",
            "x\\{1\\}", "\\^a", "\\$", "\\\\", "a\\.b",
        ];
        for words in words {
            for pattern in [words.to_owned(), format!("^{words}"), format!("{words}$"), format!("^{words}$")] {
                for text in texts {
                    let engine = format!("(?:){pattern}");
                    assert_eq!(matches(&pattern, text), matches(&engine, text), "/{pattern}/ in {text:?}");
                }
            }
        }
        for plain in ["", "^", "$", "^$", "the answer 42$", "naïve: \"yes\"", "item 1\\?$", "a\\/b\\.c"] {
            assert!(Plain::parse(plain, "").is_some() && Plain::parse(plain, "i").is_none(), "{plain}");
        }
        for other in [
            "a.b", "a|b", "a$b", "a^", "^^a", "a$$", "\\d", "\\", "\\$", "a\\-b", "a?", "(a", "[a", "{", "a*", "a+",
            "/",
        ] {
            assert!(Plain::parse(other, "").is_none(), "{other}");
        }
    }

    #[test]
    fn an_expression_that_matches_every_text_is_recognised() {
        for every in [
            "",
            ".",
            ".*",
            ".+",
            ".*?",
            "^",
            "$",
            "^.*",
            ".*$",
            "\\s*",
            "x*",
            "x?",
            "a|",
            "|a",
            "(a|b)?",
            "(.*)",
            "\\S",
            "\\S+",
            "[\\s\\S]*",
            "^[\\s\\S]*$",
            "^[\\s\\S]+$",
            "[^]",
            "(.|\\n)+",
            "^(?:.|\\n)*$",
            "(?s)^.*$",
            "(?s)^.+$",
            "(?m)^.*$",
            "(?i).*",
            "[^x]*",
            ".{0,}",
            "a*|b*",
            "\\$?",
        ] {
            let regex = Regex::parse(every).unwrap();
            assert!(regex.matches_every_text(), "{every}");
            for text in ["a", "é", "-", "\n b", "a\nb", "long text. With more: 1 2 3"] {
                assert!(regex.is_match(text).unwrap(), "{every} in {text:?}");
            }
        }
        for some in [
            "a",
            "a+",
            "\\w+",
            "\\d*x",
            "^$",
            "^\\s*$",
            "^.*$",
            "^.+$",
            "^.",
            "^x?$",
            "(?!.*secret)",
            "^(?!.*secret)[\\s\\S]*$",
            "\\b",
            "\\.",
            "\\^*a",
            "[.]",
            "[$]",
            "(?=a)",
            "^[^x]*$",
            "^[\\s\\S]{0,500}$",
            "a|b",
            "^[\\s\\S]$",
            "(?m)^.$",
            "x\\$",
        ] {
            assert!(!Regex::parse(some).unwrap().matches_every_text(), "{some}");
        }
        assert!(Regex::literal(".*", "g").unwrap().matches_every_text());
        assert!(!Regex::literal(".*x", "y").unwrap().matches_every_text());
    }

    #[test]
    fn an_expression_that_wants_text_beyond_an_end_is_recognised() {
        for none in
            ["a^b", "x$y", "/^hello", "hello$/i", "(a|b)^c", "a(^b|^c)", "(?:x$|y$)z", "(?:a^)+", "a^b|c^d", "$a"]
        {
            let regex = Regex::parse(none).unwrap();
            assert!(regex.matches_no_text(), "{none}");
            for text in ["", "a", "b", "a\nb", "x\ny", "/hello", "hello/i", "abc"] {
                assert!(!regex.is_match(text).unwrap(), "{none} in {text:?}");
            }
        }
        for some in [
            "^a$",
            "a|^b",
            "a*^b",
            "x$\\n?",
            "(?:^|a)b",
            "a(?:$|b)",
            "\\^a",
            "a[$]b",
            "^^a$$",
            "(?m)a\\n^b",
            "(?=a)^b",
            "(?:a^)?b",
            "a^b|c",
            "[^a]^",
            "$^",
        ] {
            let is_one = some == "[^a]^";
            assert_eq!(Regex::parse(some).unwrap().matches_no_text(), is_one, "{some}");
        }
    }

    #[test]
    fn patterns_beyond_the_cache_size_work() {
        let regexes: Vec<_> = (0..MAX_CACHED * 2).map(|n| Regex::parse(&format!("^({n})$")).unwrap()).collect();
        for (n, regex) in regexes.iter().enumerate() {
            assert!(regex.is_match(&n.to_string()).unwrap());
        }
        POOL.with(|pool| assert!(pool.borrow().as_ref().unwrap().compiled.len() <= MAX_CACHED));
    }
}
