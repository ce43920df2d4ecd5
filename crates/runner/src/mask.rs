//! Secrets are masked before text becomes an event, so no log, report or store ever has them, and live and regraded
//! verdicts see the same.

use std::borrow::Cow;
use std::fmt;

use model::{Collected, Ending, Finding, Step, TrialRecord};
use serde_json::{Map, Value};

use crate::secret;

/// What is written in a secret's place.
const MASKED: &str = "[masked]";

/// The secrets of a run: exact values of variables whose names say so, and shapes that keys have.
#[derive(Clone, Default)]
pub struct Mask {
    /// The longest first.
    values: Vec<String>,
    shapes: Option<regex::Regex>,
    /// A password in a URL, and what follows a key's name in its query.
    urls: Option<regex::Regex>,
}

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Mask").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

impl Mask {
    /// Masks the values of those variables of `env` whose names look like a secret's, passwords in URLs, lent headers, and
    /// whatever has a key's shape.
    pub fn of<'a>(env: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let values = secret::texts(env);
        let shapes = regex::Regex::new(
            r"\bsk-ant-[A-Za-z0-9_\-]{16,}|\bsk-(?:proj-)?[A-Za-z0-9_\-]{24,}|\bgh[pousr]_[A-Za-z0-9]{30,}|\bxox[abprs]-[A-Za-z0-9\-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_\-]{35}|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
        )
        .ok();
        let urls = regex::Regex::new(
            r#"(?i)\b([a-z][a-z0-9+.\-]*://)[^/\s:@"'<>]+:[^/\s@"'<>]+@|([?&](?:api[_-]?key|key|token|access[_-]token|secret|password)=)[^&\s"'<>]+"#,
        )
        .ok();
        Self { values, shapes, urls }
    }

    /// The same for a trial whose fixture sets `env`. The user wrote these values down, but reports are passed on.
    pub fn with_fixture(&self, env: &[(String, String)]) -> Self {
        let mut mask = self.clone();
        mask.values.extend(secret::texts(env.iter().map(|(name, value)| (name, value))));
        mask.values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        mask
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
        if let Some(urls) = &self.urls
            && urls.is_match(&masked)
        {
            let without = urls.replace_all(&masked, |found: &regex::Captures<'_>| match (found.get(1), found.get(2)) {
                (Some(scheme), _) => format!("{}{MASKED}@", scheme.as_str()),
                (None, name) => format!("{}{MASKED}", name.map_or("", |name| name.as_str())),
            });
            masked = Cow::Owned(without.into_owned());
        }
        masked
    }

    /// `value` without its secrets, keys included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(entries) => {
                entries.values_mut().for_each(|entry| self.value(entry));
                if entries.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
                    *entries = self.keys(std::mem::take(entries));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `entries` with their keys masked; keys that are alike then are numbered, so that no entry is lost.
    fn keys(&self, entries: Map<String, Value>) -> Map<String, Value> {
        let mut masked = Map::new();
        for (key, value) in entries {
            let key = self.text(&key).into_owned();
            let numbered = (2..).map(|number| format!("{key} {number}"));
            let free = [key.clone()].into_iter().chain(numbered).find(|key| !masked.contains_key(key));
            masked.insert(free.unwrap_or(key), value);
        }
        masked
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
            Step::Session { session_id, model, agent_version, tools, auth } => {
                let named = session_id.iter_mut().chain(model).chain(agent_version).chain(auth);
                named.chain(tools).for_each(|text| self.string(text));
            }
            Step::UserMessage { text, .. }
            | Step::Text { text, .. }
            | Step::Thinking { text, .. }
            | Step::Notice { text, .. } => self.string(text),
            Step::ToolCall(call) => {
                self.value(&mut call.input);
                for touch in &mut call.touches {
                    self.string(&mut touch.raw);
                    self.string(&mut touch.resolved);
                }
            }
            Step::ToolResult(result) => self.string(&mut result.content),
            Step::Question(question) => {
                self.string(&mut question.question);
                question.options.iter_mut().for_each(|option| self.string(option));
                question.answer.iter_mut().chain(&mut question.undecided).for_each(|text| self.string(text));
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
    fn a_url_keeps_its_place_and_loses_its_password() {
        let text = "to https://me:hunter2@proxy.example/v1?a=1&api_key=abc and mailto:a@b.example:80";
        let masked = "to https://[masked]@proxy.example/v1?a=1&api_key=[masked] and mailto:a@b.example:80";
        assert_eq!(mask(&[]).text(text), masked);
        assert_eq!(mask(&[]).text("http://127.0.0.1:8080/x?page=2"), "http://127.0.0.1:8080/x?page=2");
    }

    #[test]
    fn a_key_that_came_from_elsewhere_is_known_by_its_shape() {
        let key = format!("sk-ant-{}", "api03-abcdefghijklmnop");
        assert_eq!(mask(&[]).text(&format!("x {key} y")), "x [masked] y");
        assert_eq!(mask(&[]).text("sk-test"), "sk-test");
    }

    #[test]
    fn keys_are_masked_and_no_entry_is_lost() {
        let mask = mask(&[("A_KEY", "dummy-secret-1"), ("B_KEY", "dummy-secret-2")]);
        let mut value =
            serde_json::json!([{"first": 1, "dummy-secret-1": {"x": "dummy-secret-2"}, "dummy-secret-2": 2}]);
        mask.value(&mut value);
        assert_eq!(value.to_string(), r#"[{"first":1,"[masked]":{"x":"[masked]"},"[masked] 2":2}]"#);
    }

    #[test]
    fn a_session_and_where_a_call_leads_tell_no_secret() {
        let mask = mask(&[("A_KEY", "dummy-secret-1")]);
        let secret = || Some("x dummy-secret-1".to_owned());
        let tools = vec!["mcp__dummy-secret-1".to_owned()];
        let (session_id, model, agent_version, auth) = (secret(), secret(), secret(), secret());
        let mut session = Step::Session { session_id, model, agent_version, tools, auth };
        let mut call = model::ToolCall::new("c", "Read", serde_json::json!({"file_path": "link"}), "m");
        call.touches = vec![model::Touch {
            raw: "link".into(),
            resolved: "/x/dummy-secret-1".into(),
            access: model::Access::Read,
            certainty: model::Certainty::Named,
        }];
        let mut call = Step::ToolCall(call);
        for step in [&mut session, &mut call] {
            mask.step(step);
            let told = serde_json::to_string(step).unwrap();
            assert!(told.contains("[masked]") && !told.contains("dummy"), "{told}");
        }
    }

    #[test]
    fn a_fixtures_secrets_are_masked_in_its_trial_and_debugging_shows_none() {
        let env =
            [("DB_PASSWORD".to_owned(), "dummy-secret-1-and-more".to_owned()), ("X".to_owned(), "plain-text".into())];
        let run = mask(&[("A_KEY", "dummy-secret-1")]);
        assert_eq!(run.text("dummy-secret-1-and-more"), "[masked]-and-more");
        assert_eq!(run.with_fixture(&env).text("dummy-secret-1-and-more plain-text"), "[masked] plain-text");
        assert!(!format!("{run:?}").contains("dummy"));
    }
}
