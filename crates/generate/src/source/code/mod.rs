//! Source code in any language: tools, prompts, and the model, each with its line. The reader knows only strings,
//! names and brackets, not the grammar of a language, so it can also read files with errors.

mod annotation;
mod definition;
mod literal;
mod prompt;
mod python;
mod python_fields;
mod rust;
mod schema;
mod syntax;
mod token;
mod value;

use std::collections::BTreeSet;

use self::literal::Literal;
use self::syntax::Family;
pub(super) use self::syntax::{Syntax, of_extension};
use self::value::Code;
use super::text;
use crate::profile::{Evidence, Fact, Parameter, Profile, ToolFact, Trait, TraitKind};

/// A tool that was found.
struct Found {
    name: String,
    /// Index of the token with its name.
    at: usize,
    description: Option<Literal>,
    parameters: Vec<Parameter>,
}

/// Source text whose lines serve as evidence.
struct Lines<'t> {
    file: &'t str,
    lines: Vec<&'t str>,
}

impl Lines<'_> {
    fn evidence(&self, line: usize) -> Evidence {
        Evidence::in_file(self.file, line, self.lines.get(line.saturating_sub(1)).unwrap_or(&""))
    }
}

/// Adds the names of the functions that appear in lists of tools.
pub(super) fn add_listed(text: &str, syntax: Syntax, names: &mut BTreeSet<String>) {
    if syntax.family == Family::Python {
        python::listed_functions(&Code::new(token::tokens(text, syntax), syntax.family), names);
    }
}

/// Returns the facts in `text`, the content of the source file `file`. `listed` are the functions that appear in a
/// list of tools in any file.
pub(super) fn read(text: &str, file: &str, syntax: Syntax, listed: &BTreeSet<String>) -> Profile {
    let mut tokens = token::tokens(text, syntax);
    if syntax.family == Family::Rust {
        tokens = without_tests(tokens);
    }
    let code = Code::new(tokens, syntax.family);
    let lines = Lines { file, lines: text.lines().collect() };
    let mut found = Vec::new();
    match syntax.family {
        Family::Python => python::find_all(&code, listed, &mut found),
        Family::Rust => rust::find_all(&code, &mut found),
        Family::Java | Family::Kotlin | Family::CSharp => annotation::find_all(&code, &mut found),
        Family::JavaScript | Family::Other => {}
    }
    definition::find_all(&code, &mut found);
    let mut profile = Profile::default();
    for tool in found {
        add_tool(&mut profile, tool, &code, &lines);
    }
    for prompt in prompt::find_all(&code) {
        add_prompt(&mut profile, &prompt, &code, &lines);
    }
    add_model(&mut profile, &code, &lines);
    profile
}

/// Returns the byte ranges, with their contents, of strings in `text` that are assigned to names that suggest a
/// secret.
pub(super) fn secrets(text: &str, syntax: Syntax) -> Vec<(std::ops::Range<usize>, String)> {
    let tokens = token::tokens(text, syntax);
    let code = Code::new(tokens, syntax.family);
    let mut found = Vec::new();
    for at in 2..code.tokens.len() {
        let Some(value) = code.text(at) else { continue };
        let is_assigned = code.is_assignment(at - 1) || matches!(code.mark(at - 1), Some(':' | '>' | ','));
        let name = code.word(at - 2).or_else(|| code.text(at - 2).map(|text| text.text.as_str()));
        // `NAME: &str = "…"` and `const NAME: string = "…"`
        let typed = (at.saturating_sub(9)..at)
            .rev()
            .find(|at| code.mark(*at) == Some(':'))
            .and_then(|at| code.word(at.checked_sub(1)?));
        let names = [name, typed.filter(|_| code.is_assignment(at - 1))];
        let is_secret = |name: &str| mask::Secrets::is_one("", name, &value.text);
        if is_assigned && !value.text.contains(char::is_whitespace) && names.into_iter().flatten().any(is_secret) {
            found.push((code.tokens[at].start..code.tokens[at].end, value.text.clone()));
        }
    }
    found
}

/// Removes modules that exist only in tests.
fn without_tests(tokens: Vec<token::Token<'_>>) -> Vec<token::Token<'_>> {
    let code = Code::new(tokens, Family::Rust);
    let start = (0..code.tokens.len()).find(|at| rust::is_test(&code, *at));
    let mut tokens = code.tokens;
    if let Some(start) = start {
        // They are at the end of a file.
        tokens.truncate(start);
        let length = tokens.len();
        for (at, token) in tokens.iter_mut().enumerate() {
            token.partner = if token.partner < length { token.partner } else { at };
        }
    }
    tokens
}

fn add_tool(profile: &mut Profile, found: Found, code: &Code<'_>, lines: &Lines<'_>) {
    let evidence = lines.evidence(code.tokens[found.at].line);
    // Several rules may find the same definition.
    let is_known = profile.tools.iter().any(|known| known.name == found.name);
    let description = found.description.as_ref().map(|text| model::text::folded(&text.text));
    let tool = ToolFact { name: found.name, description, parameters: found.parameters, evidence: vec![evidence] };
    profile.merge(Profile { tools: vec![tool], ..Profile::default() });
    if let (Some(text), false) = (found.description, is_known) {
        let limits = facts(&text.dedented(), lines).constraints;
        profile.merge(Profile { constraints: limits, ..Profile::default() });
    }
}

fn add_prompt(profile: &mut Profile, prompt: &prompt::Prompt, code: &Code<'_>, lines: &Lines<'_>) {
    let Profile { constraints, instructions, .. } = facts(&prompt.text, lines);
    let evidence = lines.evidence(code.tokens[prompt.at].line);
    let prompts = vec![Fact::new(prompt.text.text.trim(), evidence)];
    profile.merge(Profile { constraints, instructions, prompts, ..Profile::default() });
}

/// Returns the facts in a string, with their source lines.
fn facts(literal: &Literal, lines: &Lines<'_>) -> Profile {
    text::read_at(&literal.text, |at| lines.evidence(literal.line_at(at)))
}

/// Adds the model named in a call or a constant.
fn add_model(profile: &mut Profile, code: &Code<'_>, lines: &Lines<'_>) {
    for at in 2..code.tokens.len() {
        let Some(text) = code.text(at).filter(|text| is_model(&text.text)) else { continue };
        let name = code.word(at - 2).or_else(|| code.text(at - 2).map(|text| text.text.as_str())).unwrap_or_default();
        let is_named = name.to_ascii_lowercase().contains("model") || code.mark(at - 1) == Some('(');
        if is_named && matches!(code.mark(at - 1), Some('=' | ':' | '(')) {
            let fact = Fact::new(text.text.clone(), lines.evidence(code.tokens[at].line));
            let traits = vec![Trait { kind: TraitKind::Model, fact }];
            profile.merge(Profile { traits, ..Profile::default() });
        }
    }
}

/// Returns `true` if a string looks like a model name.
fn is_model(text: &str) -> bool {
    const FAMILIES: [&str; 12] = [
        "gpt-",
        "o1",
        "o3",
        "o4-",
        "claude-",
        "gemini-",
        "llama",
        "mistral",
        "mixtral",
        "qwen",
        "deepseek",
        "command-r",
    ];
    let name = text.rsplit(['/', ':']).next().unwrap_or(text);
    text.len() <= 80
        && !text.contains(char::is_whitespace)
        && FAMILIES.iter().any(|family| name.starts_with(family))
        && text.contains(|letter: char| letter.is_ascii_digit())
}

/// Returns `true` if the file name suggests a test.
pub(super) fn is_test_file(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem == "tests"
        || name.contains(".test.")
        || name.contains(".spec.")
}
