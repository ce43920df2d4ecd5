//! How output is written.

/// Style of the output. The command line decides it; nothing here inspects a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// `true` if colours and other attributes may be used.
    pub color: bool,
    /// Number of columns. At most 100 are used.
    pub width: usize,
    /// `true` if the output is an interactive terminal.
    pub interactive: bool,
    /// `true` if characters beyond ASCII may be used.
    pub unicode: bool,
}

impl Style {
    /// Returns the style for plain text with 100 columns, as for a file.
    pub const fn plain() -> Self {
        Self { color: false, width: 100, interactive: false, unicode: true }
    }
}
