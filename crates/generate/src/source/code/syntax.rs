//! Lexical rules of programming languages, as far as they are needed to find strings, names and brackets.

/// Lexical rules of a language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Syntax {
    /// Family of the language.
    pub family: Family,
    /// True if `#` starts a comment.
    pub hash_comments: bool,
    /// True if `//` and `/*` start comments.
    pub slash_comments: bool,
    /// True if strings in triple quotes exist.
    pub triple_quotes: bool,
    /// True if strings in backticks exist.
    pub backticks: bool,
    /// Meaning of a single quote.
    pub single_quote: SingleQuote,
    /// True if a string in double quotes may contain line breaks.
    pub long_strings: bool,
}

/// Family of languages that define tools in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Python,
    JavaScript,
    Rust,
    Java,
    Kotlin,
    CSharp,
    Other,
}

/// Meaning of a single quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SingleQuote {
    /// Delimiter of strings.
    Text,
    /// Delimiter of single characters, or the beginning of another token.
    Character,
}

const C_LIKE: Syntax = Syntax {
    family: Family::Other,
    hash_comments: false,
    slash_comments: true,
    triple_quotes: true,
    backticks: false,
    single_quote: SingleQuote::Character,
    long_strings: false,
};
const PYTHON: Syntax = Syntax {
    family: Family::Python,
    hash_comments: true,
    slash_comments: false,
    single_quote: SingleQuote::Text,
    ..C_LIKE
};
const JAVASCRIPT: Syntax = Syntax {
    family: Family::JavaScript,
    triple_quotes: false,
    backticks: true,
    single_quote: SingleQuote::Text,
    ..C_LIKE
};
const RUST: Syntax = Syntax { family: Family::Rust, triple_quotes: false, long_strings: true, ..C_LIKE };
const JAVA: Syntax = Syntax { family: Family::Java, ..C_LIKE };
const KOTLIN: Syntax = Syntax { family: Family::Kotlin, ..C_LIKE };
const CSHARP: Syntax = Syntax { family: Family::CSharp, ..C_LIKE };
const GO: Syntax = Syntax { triple_quotes: false, backticks: true, ..C_LIKE };
const SCRIPT: Syntax = Syntax {
    hash_comments: true,
    slash_comments: false,
    single_quote: SingleQuote::Text,
    long_strings: true,
    ..C_LIKE
};
const PHP: Syntax = Syntax { slash_comments: true, triple_quotes: false, ..SCRIPT };

/// Languages, by the extensions of their files.
const LANGUAGES: &[(&[&str], Syntax)] = &[
    (&["py", "pyw"], PYTHON),
    (&["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "vue", "svelte"], JAVASCRIPT),
    (&["rs"], RUST),
    (&["go"], GO),
    (&["java"], JAVA),
    (&["kt", "kts"], KOTLIN),
    (&["cs"], CSHARP),
    (&["swift", "scala", "dart", "c", "cc", "cpp", "h", "hpp"], C_LIKE),
    (&["rb", "ex", "exs", "toml"], SCRIPT),
    (&["php"], PHP),
];

/// Returns the rules for files with this extension, if it belongs to a known language.
pub(crate) fn of_extension(extension: &str) -> Option<Syntax> {
    let extension = extension.to_ascii_lowercase();
    LANGUAGES.iter().find(|(known, _)| known.contains(&extension.as_str())).map(|(_, syntax)| *syntax)
}
