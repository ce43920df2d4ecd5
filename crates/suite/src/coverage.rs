//! What trialrun does with each key of a suite that was written for another tool. Nothing is ignored silently: a key is
//! honoured, ignored with its consequence, or refused because ignoring it would change a verdict.

use std::collections::HashMap;

use model::decode::{self, Fields, Problems, add_unknown_key};
use model::{Diagnostic, DiagnosticKind, Excerpt, Node};
use serde::Serialize;

/// Keys of one file that was written for another tool, or of the files of one of its cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// File, as the user would write it.
    pub file: String,
    /// Format, such as `plugin-eval`.
    pub format: &'static str,
    /// Keys in the order in which they were read. Each is listed once, however often it occurs.
    pub keys: Vec<CoveredKey>,
}

/// A key of another tool's suite.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoveredKey {
    /// Path of the key; an item of a list is `[]`: `graders[].weight`.
    pub key: String,
    /// What trialrun does with it.
    pub treatment: Treatment,
    /// Consequence, or a note about a key that is honoured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    /// First place where it is written.
    pub source: Excerpt,
    /// Number of places where it is written.
    pub count: usize,
}

/// What trialrun does with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// It has the meaning that it has for the other tool.
    Honoured,
    /// It has no effect, which changes no verdict.
    Ignored,
    /// Ignoring it would change a verdict, so the case is broken.
    Refused,
}

impl Coverage {
    /// Returns `true` if every key is honoured and there is no note about any.
    pub fn is_full(&self) -> bool {
        self.count(Treatment::Honoured) == self.keys.len()
    }

    /// Returns the number of keys that are treated like this. A note about an honoured key is not counted.
    pub fn count(&self, treatment: Treatment) -> usize {
        let is_note = |key: &CoveredKey| key.treatment == Treatment::Honoured && key.consequence.is_some();
        self.keys.iter().filter(|key| key.treatment == treatment && !is_note(key)).count()
    }
}

/// Collects the coverage while a file is read.
#[derive(Debug, Default)]
pub(crate) struct KeyLog {
    keys: Vec<CoveredKey>,
    /// Index of each key with the same treatment and consequence.
    known: HashMap<(String, Treatment, Option<String>), usize>,
}

/// Treatment of a key that the reader of a format does not know.
pub(crate) enum Unknown {
    /// It changes no verdict. The text is the consequence.
    Ignored(String),
    /// Ignoring it would change a verdict. The text is the consequence.
    Refused(String),
}

impl KeyLog {
    /// Returns the coverage of `file`, which is in `format`.
    pub(crate) fn finish(self, file: &str, format: &'static str) -> Coverage {
        Coverage { file: file.to_owned(), format, keys: self.keys }
    }

    /// Records the keys of a map whose own key is `path`, which is empty for the document. Keys that were read, or that
    /// are recorded as `ignored` with a consequence, are known; `unknown` decides about the others. Returns the
    /// problems that break the case. A key that is probably misspelt is one of `problems`.
    pub(crate) fn close(
        &mut self,
        fields: &Fields<'_>,
        path: &str,
        ignored: &[(&str, &str)],
        unknown: impl Fn(&str, &Node) -> Unknown,
        problems: &mut Problems,
    ) -> Problems {
        let model::NodeKind::Map(entries) = &fields.node().kind else { return Problems::new() };
        let unread: Vec<&str> = fields.unread().map(|(name, _)| name.value.as_str()).collect();
        let mut broken = Problems::new();
        for (name, value) in entries {
            let key = name.value.as_str();
            let place = || value.source.excerpt(name.span);
            let full = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            if !unread.contains(&key) {
                self.add(full, Treatment::Honoured, None, place());
                continue;
            }
            if let Some((_, consequence)) = ignored.iter().find(|(known, _)| *known == key) {
                self.add(full, Treatment::Ignored, Some((*consequence).to_owned()), place());
                continue;
            }
            if let Some(near) = fields.meant_by(key).filter(|near| fields.node().get(near).is_none()) {
                let problem = Diagnostic::error(format!("unknown key `{key}` in {}", fields.what()));
                let kind = DiagnosticKind::UnknownKey { key: key.to_owned(), meant: Some(near.to_owned()) };
                add_unknown_key(fields.node(), problem.at(place()).suggest(Some(near)).of(kind), problems);
                continue;
            }
            if decode::is_rest_of_text(name, value) {
                let problem = Diagnostic::warning(format!("`{key}` is a key without a value here"));
                problems.push(problem.at(place()).help(decode::QUOTE_COMMA));
            }
            match unknown(key, value) {
                Unknown::Ignored(consequence) => self.add(full, Treatment::Ignored, Some(consequence), place()),
                Unknown::Refused(consequence) => {
                    let problem = Diagnostic::error(format!("`{key}` is not supported: {consequence}"));
                    let kind = DiagnosticKind::UnknownKey { key: key.to_owned(), meant: None };
                    broken.push(problem.at(place()).of(kind));
                    self.add(full, Treatment::Refused, Some(consequence), place());
                }
            }
        }
        broken
    }

    /// Records one key. The first place of each key is kept.
    pub(crate) fn add(&mut self, key: String, treatment: Treatment, consequence: Option<String>, source: Excerpt) {
        let at = self.known.entry((key.clone(), treatment, consequence.clone()));
        let at = *at.or_insert_with(|| {
            self.keys.push(CoveredKey { key, treatment, consequence, source, count: 0 });
            self.keys.len() - 1
        });
        self.keys[at].count += 1;
    }
}
