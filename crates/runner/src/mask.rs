//! Secrets are masked before text becomes an event, so no log, report or store ever has them, and live and regraded
//! verdicts see the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use model::{
    Collected, Detail, Ending, Failure, Finding, HookRecord, Need, Part, Probe, Probed, RepositoryChange, Step,
    TrialRecord,
};
use serde_json::{Map, Value};

use crate::secret::{self, Secrets};

/// What is written in a secret's place.
const MASKED: &str = "[masked]";

/// What keys look like, those of providers of models first.
const SHAPES: [&str; 19] = [
    r"\bsk-ant-[A-Za-z0-9_\-]{16,}",
    r"\bsk-(?:proj-)?[A-Za-z0-9_\-]{24,}",
    r"\bAIza[0-9A-Za-z_\-]{35}",
    r"\bgsk_[A-Za-z0-9]{32,}",
    r"\bxai-[A-Za-z0-9]{32,}",
    r"\bpplx-[A-Za-z0-9]{32,}",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\br8_[A-Za-z0-9]{30,}",
    r"\blsv2_[a-z]{2}_[A-Za-z0-9_]{32,}",
    r"\bdtn_[A-Za-z0-9]{32,}",
    r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    r"\bgithub_pat_[A-Za-z0-9_]{40,}",
    r"\bglpat-[A-Za-z0-9_\-]{20,}",
    r"\bnpm_[A-Za-z0-9]{36}\b",
    r"\bxox[abeprs]-[A-Za-z0-9\-]{16,}",
    r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{20,}",
    r"\bSG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{32,}",
    r"\bA(?:KIA|SIA)[0-9A-Z]{16}\b",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
];

/// The shortest text that has one of these shapes, in bytes. Most of what is masked is shorter.
const SHORTEST_SHAPE: usize = 20;

/// All of them. Every mask has the same: what an expression has found out about itself is lost with a copy of it.
static KEYS: LazyLock<Option<regex::Regex>> = LazyLock::new(|| regex::Regex::new(&SHAPES.join("|")).ok());

/// A password in a URL, and what follows a key's name in its query.
static URLS: LazyLock<Option<regex::Regex>> = LazyLock::new(|| {
    regex::Regex::new(
        r#"(?i)\b([a-z][a-z0-9+.\-]*://)[^/\s:@"'<>]+:[^/\s@"'<>]+@|([?&](?:api[_-]?key|key|token|access[_-]token|secret|password)=)[^&\s"'<>]+"#,
    )
    .ok()
});

/// The secrets of a run: exact values of variables whose names say so, and shapes that keys have.
#[derive(Clone, Default)]
pub struct Mask {
    /// The longest first.
    values: Vec<String>,
    shapes: Option<&'static regex::Regex>,
    /// A password in a URL, and what follows a key's name in its query.
    urls: Option<&'static regex::Regex>,
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
        Self { values, shapes: KEYS.as_ref(), urls: URLS.as_ref() }
    }

    /// The same for a trial whose fixture sets `env`. The user wrote these values down, but reports are passed on.
    pub fn with_fixture(&self, env: &[(String, String)]) -> Self {
        let mut mask = self.clone();
        mask.values.extend(secret::texts(env.iter().map(|(name, value)| (name, value))));
        mask.values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        mask
    }

    /// The same with further secrets.
    pub fn with_secrets(mut self, secrets: &Secrets) -> Self {
        self.values.extend(secrets.texts());
        self.values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        self
    }

    /// `text` without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        for value in &self.values {
            if masked.contains(value.as_str()) {
                masked = Cow::Owned(masked.replace(value.as_str(), MASKED));
            }
        }
        if let Some(shapes) = self.shapes
            && masked.len() >= SHORTEST_SHAPE
            && shapes.is_match(&masked)
        {
            masked = Cow::Owned(shapes.replace_all(&masked, MASKED).into_owned());
        }
        // Without one of these there is neither a password in a URL nor a key in its query.
        if let Some(urls) = self.urls
            && masked.bytes().any(|byte| matches!(byte, b'@' | b'='))
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
            Value::Object(entries) => self.entries(entries),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn entries(&self, entries: &mut Map<String, Value>) {
        entries.values_mut().for_each(|entry| self.value(entry));
        if entries.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
            *entries = self.keys(std::mem::take(entries));
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
        let lines = lines.chain(&mut record.input).chain(&mut record.title).chain(&mut record.script);
        lines.for_each(|line| self.string(line));
        let values = record.input_value.iter_mut().chain(&mut record.result).chain(&mut record.expected);
        values.chain(&mut record.tools).for_each(|value| self.value(value));
        if let Some(vars) = &mut record.vars {
            self.entries(vars);
        }
        match &mut record.ending {
            Some(
                Ending::GaveUp { because }
                | Ending::ProviderFailed { because }
                | Ending::Aborted { because }
                | Ending::Unreachable { because },
            ) => self.string(because),
            Some(Ending::Finished | Ending::OutOfBudget { .. } | Ending::TimedOut { .. } | Ending::Cancelled)
            | None => {}
        }
        for attempt in &mut record.attempts {
            attempt.because.iter_mut().for_each(|because| self.string(because));
        }
        record.findings.iter_mut().for_each(|finding| self.finding(finding));
    }

    /// What became of a command of the user's, without secrets.
    pub(crate) fn hook(&self, record: &mut HookRecord) {
        let HookRecord { command, stdout, stderr, error, .. } = record;
        error.iter_mut().chain([command, stdout, stderr]).for_each(|text| self.string(text));
    }

    fn finding(&self, finding: &mut Finding) {
        let Finding { because, expected, actual, error, evidence, source, title, key, dimension, .. } = finding;
        let lines = expected.iter_mut().chain(actual).chain(error).chain(evidence).chain(title).chain(key);
        let lines = lines.chain(dimension).chain(&mut finding.failed_critical);
        lines.chain([because]).for_each(|line| self.string(line));
        source.iter_mut().for_each(|source| self.string(&mut source.text));
        finding.details.iter_mut().for_each(|detail| self.detail(detail));
        finding.failures.iter_mut().for_each(|failure| self.failure(failure));
    }

    fn detail(&self, detail: &mut Detail) {
        let Detail { key, title, dimension, details, .. } = detail;
        title.iter_mut().chain(dimension).chain([key]).for_each(|text| self.string(text));
        details.iter_mut().for_each(|detail| self.detail(detail));
    }

    fn failure(&self, failure: &mut Failure) {
        let Failure { key, message, expected, actual, diff, source, .. } = failure;
        // A diff may cut a secret to pieces, none of which looks like one.
        let side = |other: Part| diff.iter().filter(|piece| piece.part != other).map(|piece| &*piece.text).collect();
        let sides: [String; 2] = [side(Part::Extra), side(Part::Missing)];
        if sides.iter().any(|text| matches!(self.text(text), Cow::Owned(_))) {
            diff.clear();
        }
        let texts = source.iter_mut().map(|source| &mut source.text);
        texts.chain([key, message]).for_each(|text| self.string(text));
        expected.iter_mut().chain(actual).for_each(|value| self.value(value));
    }

    /// What was found in a sandbox without secrets: the agent chose the names of files and the subjects of commits.
    pub(crate) fn collected(&self, collected: &mut Collected) {
        let paths = collected.files_changed.iter_mut().map(|file| &mut file.path);
        paths.chain(&mut collected.outside_changes).for_each(|path| self.string(path));
        if let Some(repository) = &mut collected.repository {
            let lines = repository.status.iter_mut().chain(&mut repository.new_commits).chain(&mut repository.branch);
            lines.for_each(|line| self.string(line));
        }
        let at_replies = collected.reply_probes.iter_mut().flat_map(|probes| &mut probes.probes);
        collected.probes.iter_mut().chain(at_replies).for_each(|probe| self.probe(probe));
        collected.patch.iter_mut().for_each(|patch| self.string(patch));
        if let Some(change) = &mut collected.repository_change {
            self.repository_change(change);
        }
    }

    /// What became of a repository: names of branches are typed by agents, and addresses by people.
    fn repository_change(&self, change: &mut RepositoryChange) {
        change.new_commits.iter_mut().for_each(|commit| self.string(&mut commit.subject));
        for state in [&mut change.before, &mut change.after] {
            state.branch.iter_mut().chain(&mut state.status).for_each(|text| self.string(text));
            state.recent_commits.iter_mut().for_each(|commit| self.string(&mut commit.subject));
            self.names(&mut state.branches);
            for remote in state.remotes.values_mut() {
                self.string(&mut remote.url);
                remote.unknown.iter_mut().for_each(|text| self.string(text));
                remote.branches.iter_mut().for_each(|branches| self.names(branches));
                for request in remote.review_requests.iter_mut().flatten() {
                    let texts = request.head.iter_mut().chain(&mut request.base).chain(&mut request.url);
                    texts.for_each(|text| self.string(text));
                }
            }
        }
    }

    /// Names, each with something that is no text.
    fn names<T>(&self, named: &mut BTreeMap<String, T>) {
        let whole = std::mem::take(named);
        *named = whole.into_iter().map(|(name, value)| (self.text(&name).into_owned(), value)).collect();
    }

    /// What was looked at for an assertion; its key, a digest, stays what it was looked up by.
    fn probe(&self, probe: &mut Probe) {
        match &mut probe.need {
            Need::File { path: text } | Need::Command { run: text, .. } => self.string(text),
            Need::Repository | Need::Files => {}
        }
        match &mut probe.found {
            Probed::File { text, .. } | Probed::Failed { because: text } => self.string(text),
            Probed::Files { files, .. } => files.iter_mut().for_each(|file| {
                self.string(&mut file.path);
                file.text.iter_mut().for_each(|text| self.string(text));
            }),
            Probed::Ran { stdout, stderr, .. } => [stdout, stderr].into_iter().for_each(|text| self.string(text)),
            Probed::Nothing | Probed::Directory | Probed::Special | Probed::Outside => {}
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
            Step::Finished { text, result, .. } => {
                text.iter_mut().for_each(|text| self.string(text));
                result.iter_mut().for_each(|result| self.value(result));
            }
            Step::Replied { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use model::ReplyProbes;

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
    fn every_shape_of_a_key_is_known() {
        let long = "0123456789abcdefghijABCDEFGHIJ0123456789abcdef";
        let keys = [
            format!("sk-ant-{long}"),
            format!("sk-proj-{long}"),
            format!("sk-or-v1-{long}"),
            format!("AIza{}", &long[..35]),
            format!("gsk_{long}"),
            format!("xai-{long}"),
            format!("hf_{long}"),
            format!("dtn_{long}"),
            format!("ghp_{long}"),
            format!("github_pat_{long}"),
            format!("glpat-{long}"),
            format!("npm_{}", &long[..36]),
            format!("xoxb-{long}"),
            format!("sk_live_{long}"),
            format!("SG.{long}.{long}"),
            "ASIAABCDEFGHIJKLMNOP".to_owned(),
        ];
        for key in keys {
            assert_eq!(mask(&[]).text(&format!("<{key}>")), "<[masked]>", "{key}");
        }
        let plain = "task-012345678901234567890123456789 sk_live_x hf_hub SG.small";
        assert_eq!(mask(&[]).text(plain), plain);
    }

    #[test]
    fn a_canary_is_masked_in_every_disguise() {
        let canary = "canary<&>\"K3y/+é=1";
        let run = mask(&[("BOT_API_KEY", canary)]);
        let json = serde_json::to_string(canary).unwrap();
        let twice = serde_json::to_string(&json).unwrap();
        let url = "canary%3C%26%3E%22K3y%2F%2B%C3%A9%3D1";
        let told = [
            canary.to_owned(),
            json,
            twice,
            r#"canary\u003c\u0026\u003e\"K3y/+é=1"#.to_owned(),
            r#"canary<&>\"K3y\/+\u00e9=1"#.to_owned(),
            "canary&lt;&amp;&gt;&quot;K3y/+é=1".to_owned(),
            url.to_owned(),
            url.to_lowercase().replace("k3y", "K3y"),
            "canary%3C&%3E%22K3y/+%C3%A9=1".to_owned(),
        ];
        for text in told {
            let masked = run.text(&text).into_owned();
            assert!(masked.contains(MASKED) && !masked.contains("K3y"), "{text}: {masked}");
        }
    }

    #[test]
    fn what_a_configuration_calls_a_key_is_masked() {
        let source = model::Source::new("c", "");
        let config = serde_json::json!({"agents": {"bot": {"headers": {"Authorization": "Bearer canary-bearer-1", "X-Org":
            "acme"}, "url": "https://me:canary-pass@host/x", "apiKey": "canary-key-1", "max_tokens": "123456789"}}});
        let secrets = Secrets::of(&model::Node::from_json(&config, &source));
        let run = Mask::default().with_secrets(&secrets);
        let told = "canary-bearer-1 canary-pass canary-key-1 acme 123456789";
        assert_eq!(run.text(told), "[masked] [masked] [masked] acme 123456789");
        assert!(!format!("{secrets:?}").contains("canary"));
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
    fn a_result_and_a_record_tell_no_secret_wherever_it_stands() {
        let mask = mask(&[("A_KEY", "dummy-secret-1")]);
        let secret = "x dummy-secret-1";
        let value = serde_json::json!({"a": [secret], "dummy-secret-1": 1});
        let (usage, text) = (model::Usage::default(), Some(secret.to_owned()));
        let mut step =
            Step::Finished { subtype: "s".into(), is_error: false, usage, text, result: Some(value.clone()) };
        mask.step(&mut step);
        let told = serde_json::to_string(&step).unwrap();
        assert!(told.contains(r#"{"a":["x [masked]"],"[masked]":1}"#) && !told.contains("dummy"), "{told}");
        let source = serde_json::json!({"file": "f", "line": 1, "column": 1, "text": secret});
        let detail = serde_json::json!({"key": secret, "title": secret, "dimension": secret, "weight": 1, "score": 0,
            "status": "unmet"});
        let mut outer = detail.clone();
        outer["details"] = serde_json::json!([detail]);
        let piece = |part: &str, text: &str| serde_json::json!({"part": part, "text": text});
        let failure = serde_json::json!({"key": secret, "message": secret, "expected": value, "actual": value,
            "diff": [piece("same", "dummy-"), piece("missing", "secret-1"), piece("extra", "other")], "source": source});
        let finding = serde_json::json!({"id": "f", "type": "t", "title": secret, "status": "unmet", "score": 0,
            "weight": 1, "because": secret, "expected": secret, "actual": secret, "evidence": [secret],
            "error": secret, "source": source, "key": secret, "dimension": secret, "failed_critical": [secret],
            "details": [outer], "failures": [failure]});
        let mut record: TrialRecord = serde_json::from_value(serde_json::json!({
            "id": "i", "suite": "s", "case": "c", "title": secret, "arm": "a", "agent": "a", "repetition": 1,
            "outcome": "failed", "because": secret, "findings": [finding], "input": [secret], "input_value": value,
            "answer": null, "result": value, "expected": value, "script": secret, "tools": [value, secret],
            "vars": {"v": value, "dummy-secret-1": secret}, "turn_count": 0, "tool_calls": [], "questions": [],
            "duration_ms": 0, "started_at": "2026-01-01T00:00:00Z", "attempts": [], "files_changed": [],
            "errors": [secret], "warnings": [secret],
        }))
        .unwrap();
        mask.record(&mut record);
        let told = serde_json::to_string(&record).unwrap();
        assert!(told.contains("[masked]") && !told.contains("dummy") && !told.contains("secret-1"), "{told}");
        assert_eq!(record.findings[0].failures[0].diff, []);
    }

    #[test]
    fn a_diff_without_a_secret_stays() {
        let piece = |part, text: &str| model::Segment { part, text: text.into() };
        let diff = vec![piece(Part::Same, "dummy-"), piece(Part::Missing, "secret"), piece(Part::Extra, "-1")];
        let mut failure: Failure = serde_json::from_value(serde_json::json!({"key": "", "message": ""})).unwrap();
        failure.diff.clone_from(&diff);
        mask(&[("A_KEY", "dummy-secret-1")]).failure(&mut failure);
        assert_eq!(failure.diff, diff);
    }

    #[test]
    fn what_was_looked_at_holds_no_secret_and_is_still_found() {
        let need = Need::Command { run: "deploy dummy-secret-1".into(), timeout_ms: 1 };
        let said = |text: &str| Probed::Ran {
            exit_code: Some(0),
            stdout: format!("{text} "),
            stderr: text.to_owned(),
            clipped: false,
        };
        let probe = Probe { key: need.key(), need: need.clone(), found: said("dummy-secret-1") };
        let reply_probes = vec![ReplyProbes { reply: 1, probes: vec![probe.clone()] }];
        let mut collected = Collected { probes: vec![probe], reply_probes, ..Collected::default() };
        mask(&[("A_KEY", "dummy-secret-1")]).collected(&mut collected);
        assert!(!format!("{collected:?}").contains("dummy"));
        assert_eq!(collected.probed(&need), Some(&said("[masked]")));
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
