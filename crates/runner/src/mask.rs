//! Secrets are masked before text becomes an event, so no log, report or store ever has them, and live and regraded
//! verdicts see the same.

use std::borrow::Cow;

use model::{Collected, Ending, Finding, Step, TrialRecord};
use serde_json::Value;

/// What is written in a secret's place.
const MASKED: &str = "[masked]";
/// Shorter values are too common to be told from ordinary text.
const SHORTEST: usize = 8;

/// The secrets of a run: exact values of variables whose names say so, and shapes that keys have.
#[derive(Debug, Default)]
pub struct Mask {
    values: Vec<String>,
    shapes: Option<regex::Regex>,
}

impl Mask {
    /// Masks the values of those variables of `env` whose names look like a secret's, and whatever has a key's shape.
    pub fn of<'a>(env: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let mut values: Vec<String> = env
            .into_iter()
            .filter(|(name, value)| names_a_secret(name) && value.len() >= SHORTEST)
            .flat_map(|(_, value)| {
                let escaped = serde_json::to_string(value).unwrap_or_default();
                [value.clone(), escaped.trim_matches('"').to_owned()]
            })
            .collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        let shapes = regex::Regex::new(
            r"\bsk-ant-[A-Za-z0-9_\-]{16,}|\bsk-(?:proj-)?[A-Za-z0-9_\-]{24,}|\bgh[pousr]_[A-Za-z0-9]{30,}|\bxox[abprs]-[A-Za-z0-9\-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_\-]{35}|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
        )
        .ok();
        Self { values, shapes }
    }

    /// `text` without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        for value in &self.values {
            if masked.contains(value.as_str()) {
                masked = Cow::Owned(masked.replace(value.as_str(), MASKED));
            }
        }
        if let Some(shapes) = &self.shapes
            && shapes.is_match(&masked)
        {
            masked = Cow::Owned(shapes.replace_all(&masked, MASKED).into_owned());
        }
        masked
    }

    /// `value` without its secrets, keys included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(entries) => entries.values_mut().for_each(|entry| self.value(entry)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `text` without its secrets, in place.
    pub fn string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// A finished trial without secrets in what the user and the harness wrote; steps were masked as they came.
    pub(crate) fn record(&self, record: &mut TrialRecord) {
        let lines = record.errors.iter_mut().chain(&mut record.warnings).chain(&mut record.because);
        lines.chain(&mut record.input).chain(&mut record.title).for_each(|line| self.string(line));
        match &mut record.ending {
            Some(Ending::GaveUp { because } | Ending::ProviderFailed { because } | Ending::Aborted { because }) => {
                self.string(because);
            }
            Some(Ending::Finished | Ending::OutOfBudget { .. } | Ending::TimedOut { .. } | Ending::Cancelled)
            | None => {}
        }
        for attempt in &mut record.attempts {
            attempt.because.iter_mut().for_each(|because| self.string(because));
        }
        for finding in &mut record.findings {
            let Finding { because, expected, actual, error, evidence, source, .. } = finding;
            let lines = expected.iter_mut().chain(actual).chain(error).chain(evidence);
            lines.chain([because]).for_each(|line| self.string(line));
            source.iter_mut().for_each(|source| self.string(&mut source.text));
        }
    }

    /// What was found in a sandbox without secrets: the agent chose the names of files and the subjects of commits.
    pub(crate) fn collected(&self, collected: &mut Collected) {
        let paths = collected.files_changed.iter_mut().map(|file| &mut file.path);
        paths.chain(&mut collected.outside_changes).for_each(|path| self.string(path));
        if let Some(repository) = &mut collected.repository {
            let lines = repository.status.iter_mut().chain(&mut repository.new_commits).chain(&mut repository.branch);
            lines.for_each(|line| self.string(line));
        }
    }

    /// A step without secrets.
    pub fn step(&self, step: &mut Step) {
        match step {
            Step::Session { .. } => {}
            Step::UserMessage { text, .. }
            | Step::Text { text, .. }
            | Step::Thinking { text, .. }
            | Step::Notice { text, .. } => self.string(text),
            Step::ToolCall(call) => self.value(&mut call.input),
            Step::ToolResult(result) => self.string(&mut result.content),
            Step::Question(question) => {
                self.string(&mut question.question);
                question.options.iter_mut().for_each(|option| self.string(option));
                if let Some(answer) = &mut question.answer {
                    self.string(answer);
                }
            }
            Step::PermissionDenied { message, .. } => self.string(message),
            Step::Retry { error, .. } => self.string(error),
            Step::RequestCheck { because, .. } => self.string(because),
            Step::Finished { text, .. } => {
                if let Some(text) = text {
                    self.string(text);
                }
            }
        }
    }
}

/// Whether a variable's name says that its value is a secret.
fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"].iter().any(|word| {
        name.split('_').any(|part| part == *word || part.strip_suffix('S') == Some(word) || part.ends_with(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(pairs: &[(&str, &str)]) -> Mask {
        let env: Vec<(String, String)> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Mask::of(env.iter().map(|(name, value)| (name, value)))
    }

    #[test]
    fn a_secret_variable_is_masked_wherever_it_appears() {
        let mask = mask(&[("ANTHROPIC_API_KEY", "dummy-secret-1"), ("PATH", "/usr/local/bin"), ("PIN_TOKEN", "short")]);
        assert_eq!(
            mask.text("key=dummy-secret-1; PATH=/usr/local/bin short"),
            "key=[masked]; PATH=/usr/local/bin short"
        );
        let mut value = serde_json::json!({"command": ["echo dummy-secret-1"]});
        mask.value(&mut value);
        assert_eq!(value, serde_json::json!({"command": ["echo [masked]"]}));
    }

    #[test]
    fn a_key_that_came_from_elsewhere_is_known_by_its_shape() {
        let key = format!("sk-ant-{}", "api03-abcdefghijklmnop");
        assert_eq!(mask(&[]).text(&format!("x {key} y")), "x [masked] y");
        assert_eq!(mask(&[]).text("sk-test"), "sk-test");
    }
}
