//! Parses with enough stack: the parser and the visitors of its tree are recursive, as deep as the text is nested.

use model::Source;
use oxc_span::Span as Range;

use crate::error::ScriptError;

/// Nesting depth that fits on the stack of any thread.
const SHALLOW: usize = 40;

/// Nesting depth above which a source text is rejected.
const DEEP: usize = 4_000;

/// Length in bytes above which a source text is always parsed on a separate stack.
const OWN_STACK_BYTES: usize = 1 << 20;

/// Upper limit of the stack size for one level of nesting, in bytes, even in an unoptimised build.
const STACK_PER_LEVEL: usize = 96 << 10;

/// Words that nest without brackets.
const NESTING_WORDS: &str = "await typeof void delete new yield else do if for while with async \
                             in of instanceof as satisfies extends keyof infer unique readonly is asserts";

/// Syntax error in a source text, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub message: String,
    /// Byte range in the text.
    pub span: model::Span,
    pub help: Option<String>,
}

impl Mistake {
    /// Converts it to a script error. `text` is the text that contains the mistake, and `shown` its path in messages.
    pub fn into_error(self, text: &str, shown: String) -> ScriptError {
        let place = Source::new(shown, text).excerpt(self.span);
        ScriptError::Syntax { message: self.message, place: Some(Box::new(place)), help: self.help }
    }
}

/// Runs `work`, which parses `text`, on a stack that is large enough.
pub(crate) fn with_stack<T: Send>(text: &str, work: impl FnOnce() -> Result<T, Mistake> + Send) -> Result<T, Mistake> {
    let refused = |message: &str| Mistake { message: message.into(), span: model::Span::new(0, 0), help: None };
    let depth = nesting(text);
    if depth > DEEP {
        return Err(refused("nested too deeply"));
    }
    if depth <= SHALLOW && text.len() <= OWN_STACK_BYTES {
        return work();
    }
    let levels = if text.len() > OWN_STACK_BYTES { DEEP } else { depth };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size((1 << 20) + levels * STACK_PER_LEVEL);
        match thread.spawn_scoped(scope, work).map(|thread| thread.join()) {
            Ok(Ok(done)) => done,
            _ => Err(refused("the parser failed on this text")),
        }
    })
}

/// Converts a range of the parser.
pub(crate) fn span(range: Range) -> model::Span {
    model::Span::new(range.start as usize, range.end as usize)
}

/// An open bracket and the nesting inside it that is not caused by brackets: operators, and words such as `await` and
/// `else`.
#[derive(Default)]
struct Level {
    chain: usize,
    template: bool,
}

/// Estimates the maximum nesting depth of a source text from its characters. The estimate may be too high, but not too
/// low.
fn nesting(text: &str) -> usize {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0, levels: vec![Level::default()], chains: 0, deepest: 0 };
    scan.run();
    scan.deepest
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    levels: Vec<Level>,
    /// Sum over all levels.
    chains: usize,
    deepest: usize,
}

impl Scan<'_> {
    fn run(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'(' | b'[' | b'{' => self.open(false),
                b')' | b']' | b'}' => self.close(byte == b'}'),
                b';' | b',' => self.reset(),
                b'\n' if !self.goes_on() => self.reset(),
                b'\'' | b'"' => self.string(byte),
                b'`' => self.template(),
                b'/' if self.bytes.get(self.at) == Some(&b'/') => self.skip_to(b"\n"),
                b'/' if self.bytes.get(self.at) == Some(&b'*') => self.skip_to(b"*/"),
                b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'!' | b'~' | b'?' | b':' | b'=' | b'<'
                | b'>' | b'.' | b'@' => self.count(),
                byte if is_word(byte) => self.word(),
                _ => {}
            }
        }
    }

    fn count(&mut self) {
        self.chains += 1;
        if let Some(level) = self.levels.last_mut() {
            level.chain += 1;
        }
        self.measure();
    }

    fn measure(&mut self) {
        self.deepest = self.deepest.max(self.levels.len() + self.chains);
    }

    fn reset(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            self.chains -= std::mem::take(&mut level.chain);
        }
    }

    fn open(&mut self, template: bool) {
        self.levels.push(Level { chain: 0, template });
        self.measure();
    }

    fn close(&mut self, brace: bool) {
        if self.levels.len() < 2 {
            return;
        }
        self.reset();
        if self.levels.pop().is_some_and(|level| level.template && brace) {
            self.template();
        }
    }

    fn word(&mut self) {
        let start = self.at - 1;
        while self.bytes.get(self.at).is_some_and(|&byte| is_word(byte)) {
            self.at += 1;
        }
        if NESTING_WORDS.split(' ').any(|word| word.as_bytes() == &self.bytes[start..self.at]) {
            self.count();
        }
    }

    /// Returns `true` if the statement continues after this line end.
    fn goes_on(&self) -> bool {
        let before = self.bytes[..self.at - 1].iter().rev().find(|byte| !byte.is_ascii_whitespace());
        let after = self.bytes[self.at..].iter().take(256).find(|byte| !byte.is_ascii_whitespace());
        let joins = |byte: Option<&u8>| byte.is_some_and(|byte| b"+-*/%&|^!~?:=<>.".contains(byte));
        joins(before) || joins(after)
    }

    fn string(&mut self, quote: u8) {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'\n' => return,
                byte if byte == quote => return,
                _ => {}
            }
        }
    }

    fn template(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'`' => return,
                b'$' if self.bytes.get(self.at) == Some(&b'{') => {
                    self.at += 1;
                    self.open(true);
                    return;
                }
                _ => {}
            }
        }
    }

    fn skip_to(&mut self, end: &[u8]) {
        let rest = &self.bytes[self.at..];
        let found = rest.windows(end.len()).position(|window| window == end);
        // The line end itself is kept, because it ends a statement.
        self.at += found.map_or(rest.len(), |found| found + end.len() - 1);
        if end.len() > 1 {
            self.at = (self.at + 1).min(self.bytes.len());
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_chains_count_as_nesting_but_strings_and_comments_do_not() {
        assert_eq!(nesting("a"), 0);
        assert_eq!(nesting("((("), 4);
        assert_eq!(nesting("'((((' + \"((((\" // ((((\n /* (((( */"), 2);
        assert!(nesting(&"!".repeat(100)) > 100 && nesting(&"await ".repeat(100)) > 100);
        assert!(nesting(&"f(x);\n".repeat(1000)) < 5 && nesting(&"x = y.z\n".repeat(1000)) < 8);
        assert!(nesting(&"`${".repeat(100)) >= 100);
        assert!(nesting(&"a + \n".repeat(100)) >= 100);
    }

    #[test]
    fn no_input_causes_a_panic_in_the_estimate() {
        for text in ["}", ")]}`", "`${`", "'\\", "`\\", "/*", "//", "`${}}`", "/", "é`${é"] {
            nesting(text);
        }
    }
}
