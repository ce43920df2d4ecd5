//! Colours and symbols.

use anstyle::{AnsiColor, Effects};
use model::{Outcome, Status};

use crate::plain;
use crate::style::Style;

/// Symbols.
#[derive(Debug)]
pub(crate) struct Symbols {
    pub(crate) trial: &'static str,
    pub(crate) does: &'static str,
    pub(crate) answers: &'static str,
    pub(crate) arrow: &'static str,
    pub(crate) done: &'static str,
    pub(crate) again: &'static str,
    pub(crate) ellipsis: &'static str,
    pub(crate) bar: &'static str,
    pub(crate) dot: &'static str,
    pub(crate) rule: &'static str,
    /// Characters of increasing height.
    pub(crate) heights: [&'static str; 8],
    passed: &'static str,
    failed: &'static str,
    cancelled: &'static str,
}

const UNICODE: Symbols = Symbols {
    trial: "▶",
    does: "▸",
    answers: "◂",
    arrow: "→",
    done: "●",
    again: "↻",
    ellipsis: "…",
    bar: "│",
    dot: "·",
    rule: "─",
    heights: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    passed: "✓",
    failed: "✗",
    cancelled: "×",
};

const ASCII: Symbols = Symbols {
    trial: ">",
    does: ">",
    answers: "<",
    arrow: "->",
    done: "*",
    again: "~",
    ellipsis: "...",
    bar: "|",
    dot: "-",
    rule: "-",
    heights: ["_", ".", "-", ":", "=", "+", "*", "#"],
    passed: "+",
    failed: "x",
    cancelled: "/",
};

/// Maximum width of prose, because longer lines are hard to read.
const PROSE: usize = 100;
/// Maximum width of tables.
const TABLE: usize = 160;

/// Formats text in a style.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    pub(crate) style: Style,
    table_width: usize,
}

impl Paint {
    pub(crate) fn new(style: Style) -> Self {
        let width = |most: usize| style.width.clamp(40, most);
        Self { style: Style { width: width(PROSE), ..style }, table_width: width(TABLE) }
    }

    pub(crate) fn width(&self) -> usize {
        self.style.width
    }

    /// Returns the width of tables, which may be wider than prose.
    pub(crate) fn table_width(&self) -> usize {
        self.table_width
    }

    pub(crate) fn symbols(&self) -> &'static Symbols {
        if self.style.unicode { &UNICODE } else { &ASCII }
    }

    /// Formats text as one line of at most `most` columns, like [`plain::folded`].
    pub(crate) fn folded(&self, text: &str, most: usize) -> String {
        plain::folded(text, most, self.symbols().ellipsis)
    }

    /// Like `folded`, but keeps white space.
    pub(crate) fn one_line(&self, text: &str, most: usize) -> String {
        plain::one_line(text, most, self.symbols().ellipsis)
    }

    /// Joins the parts with ` · `.
    pub(crate) fn join<S: AsRef<str>>(&self, parts: &[S]) -> String {
        parts.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(&format!(" {} ", self.symbols().dot))
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.with(anstyle::Style::new().effects(Effects::DIMMED), text)
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.with(anstyle::Style::new().effects(Effects::BOLD), text)
    }

    pub(crate) fn italic(&self, text: &str) -> String {
        self.with(anstyle::Style::new().effects(Effects::ITALIC), text)
    }

    pub(crate) fn red(&self, text: &str) -> String {
        self.colored(AnsiColor::Red, text)
    }

    pub(crate) fn green(&self, text: &str) -> String {
        self.colored(AnsiColor::Green, text)
    }

    pub(crate) fn yellow(&self, text: &str) -> String {
        self.colored(AnsiColor::Yellow, text)
    }

    /// Returns the text red and struck through.
    pub(crate) fn struck(&self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().effects(Effects::STRIKETHROUGH), text)
    }

    /// Returns the text in the style of the margin to the left of the user's lines.
    pub(crate) fn gutter(&self, text: &str) -> String {
        self.with(AnsiColor::BrightBlue.on_default().effects(Effects::BOLD), text)
    }

    pub(crate) fn magenta(&self, text: &str) -> String {
        self.colored(AnsiColor::Magenta, text)
    }

    pub(crate) fn cyan(&self, text: &str) -> String {
        self.colored(AnsiColor::Cyan, text)
    }

    /// Returns the symbol of an outcome.
    pub(crate) fn mark(&self, outcome: Outcome) -> &'static str {
        let symbols = self.symbols();
        match outcome {
            Outcome::Passed => symbols.passed,
            Outcome::Failed => symbols.failed,
            Outcome::Undecided => "?",
            Outcome::Broken => "!",
            Outcome::Stale => "~",
            Outcome::Skipped => "-",
            Outcome::Cancelled => symbols.cancelled,
        }
    }

    /// Returns `text` in the colour of an outcome.
    pub(crate) fn as_outcome(&self, outcome: Outcome, text: &str) -> String {
        match outcome {
            Outcome::Passed => self.green(text),
            Outcome::Failed => self.red(text),
            Outcome::Undecided | Outcome::Broken | Outcome::Stale => self.yellow(text),
            Outcome::Skipped | Outcome::Cancelled => self.dim(text),
        }
    }

    /// Returns the symbol of a finding, in its colour.
    pub(crate) fn status(&self, status: Status) -> String {
        self.as_outcome(like(status), self.mark_of(status))
    }

    /// Returns the symbol of a finding, without a colour.
    pub(crate) fn mark_of(&self, status: Status) -> &'static str {
        self.mark(like(status))
    }

    fn colored(&self, color: AnsiColor, text: &str) -> String {
        self.with(color.on_default(), text)
    }

    fn with(&self, style: anstyle::Style, text: &str) -> String {
        if self.style.color && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Returns the outcome of a trial whose only finding has this status.
fn like(status: Status) -> Outcome {
    match status {
        Status::Met => Outcome::Passed,
        Status::Unmet => Outcome::Failed,
        Status::Undecided => Outcome::Undecided,
    }
}
