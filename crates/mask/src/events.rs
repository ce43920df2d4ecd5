//! Masks the events of a run. Every field is named in this file, so that each new field requires a decision.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

use model::{
    AgentInfo, AnsweredQuestion, AttemptRecord, CallRecord, Collected, Commit, ControlRun, Detail, EgressAttempt,
    Ending, Event, Failure, FaultOccurrence, Finding, HookRecord, IntegritySign, MockCall, ModelTraffic, Need, Part,
    PermissionRequest, Probe, Probed, Question, Repository, RepositoryChange, RepositoryState, Rerun, ReviewRequest,
    RunInfo, SideEffects, StaleRequest, Step, ToolCall, ToolResult, Touch, TrialRecord,
};
use serde_json::{Map, Value};

use super::{Mask, numbered};

impl Mask {
    /// Masks the secrets in `event`. Returns `true` if it contained one.
    pub fn event(&self, event: &mut Event) -> bool {
        let pass = Pass::new(self);
        pass.event(event);
        pass.has_hidden.get()
    }

    /// Masks the record of a finished trial.
    pub fn record(&self, record: &mut TrialRecord) {
        Pass::new(self).record(record);
    }

    /// Masks the result of a user's command.
    pub fn hook(&self, record: &mut HookRecord) {
        Pass::new(self).hook(record);
    }

    /// Masks the evidence collected from a sandbox, because the agent chose the names of files and the subjects of
    /// commits.
    pub fn collected(&self, collected: &mut Collected) {
        Pass::new(self).collected(collected);
    }
}

/// Applies a mask to one event.
pub(super) struct Pass<'m> {
    mask: &'m Mask,
    /// True if a secret was masked.
    has_hidden: Cell<bool>,
}

impl<'m> Pass<'m> {
    pub(super) fn new(mask: &'m Mask) -> Self {
        Self { mask, has_hidden: Cell::new(false) }
    }

    fn string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.mask.text(text) {
            self.has_hidden.set(true);
            *text = masked;
        }
    }

    fn strings<'t>(&self, texts: impl IntoIterator<Item = &'t mut String>) {
        texts.into_iter().for_each(|text| self.string(text));
    }

    pub(super) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(entries) => self.entries(entries),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Masks the entries of an object, including keys. Keys that become equal are numbered, so that no entry is lost.
    fn entries(&self, entries: &mut Map<String, Value>) {
        entries.values_mut().for_each(|entry| self.value(entry));
        if entries.keys().all(|key| matches!(self.mask.text(key), Cow::Borrowed(_))) {
            return;
        }
        self.has_hidden.set(true);
        let mut masked = Map::new();
        for (key, value) in std::mem::take(entries) {
            let key = numbered(self.mask.text(&key).into_owned(), |key| masked.contains_key(key));
            masked.insert(key, value);
        }
        *entries = masked;
    }

    /// Masks the keys of a map whose values are not text.
    fn names<T>(&self, named: &mut BTreeMap<String, T>) {
        for (mut name, value) in std::mem::take(named) {
            self.string(&mut name);
            named.insert(numbered(name, |name| named.contains_key(name)), value);
        }
    }

    pub(super) fn event(&self, event: &mut Event) {
        match event {
            Event::RunStarted(info) => self.run(info),
            Event::TrialStarted { messages, script, input, model, subject, id: _, agent: _, file: _, position: _ } => {
                self.strings(messages.iter_mut().chain(script).chain(model).chain(subject));
                input.iter_mut().for_each(|input| self.value(input));
            }
            Event::SandboxReady { path: text, skill: _, duration_ms: _ }
            | Event::Waiting { on: text }
            | Event::Idle { on: text, idle_ms: _ }
            | Event::HookStarted { command: text, hook: _, number: _ }
            | Event::TrialRetried { reason: text } => self.string(text),
            Event::Output { text, stream: _ } => {
                self.string(text);
                if let Some(masked) = self.mask.frames(text) {
                    *text = masked;
                }
            }
            Event::Step(step) => self.step(step),
            Event::Collected(collected) => self.collected(collected),
            Event::HookFinished(record) => self.hook(record),
            Event::TrialFinished(record) => self.record(record),
            Event::Decided(decision) => self.strings(&mut decision.details),
            Event::RunFinished { signal, summary: _, duration_ms: _ } => self.strings(signal),
        }
    }

    /// Masks the description of a run, because users type the addresses and names in it.
    fn run(&self, info: &mut RunInfo) {
        let RunInfo { label, settings, agents, invocation, origin, skills: _, trials: _, jobs: _, .. } = info;
        self.strings(label);
        self.strings(origin.iter_mut().filter_map(|origin| origin.branch.as_mut()));
        self.strings(invocation.iter_mut().flat_map(|invocation| &mut invocation.arguments));
        self.entries(settings);
        for AgentInfo { version, model, reasoning_effort, base_url, name: _ } in agents {
            self.strings(version.iter_mut().chain(model).chain(reasoning_effort).chain(base_url));
        }
    }

    /// Masks a host, because its name may contain data that an agent tries to send out.
    fn egress(&self, attempt: &mut EgressAttempt) {
        let EgressAttempt { host, reason, port: _, verdict: _, way: _, is_model: _, by_command: _ } = attempt;
        self.string(host);
        self.strings(reason);
    }

    fn mock_call(&self, call: &mut MockCall) {
        let MockCall { tool, input, output, server: _, verdict: _, user_message: _ } = call;
        self.strings([tool, output]);
        self.value(input);
    }

    pub(super) fn step(&self, step: &mut Step) {
        match step {
            Step::Session { session_id, model, agent_version, tools, auth } => {
                let named = session_id.iter_mut().chain(model).chain(agent_version).chain(auth);
                self.strings(named.chain(tools));
            }
            Step::UserMessage { text, index: _, of: _ }
            | Step::Text { text, message: _, parent: _ }
            | Step::Thinking { text, message: _, parent: _ }
            | Step::Notice { text, from: _ } => self.string(text),
            Step::Egress(attempt) => self.egress(attempt),
            Step::Mocks(_) => {}
            Step::MockCall(call) => self.mock_call(call),
            Step::Fault(FaultOccurrence { detail, fault: _, number: _ }) => self.string(detail),
            Step::ToolCall(call) => self.call(call),
            Step::ToolResult(ToolResult { content, id: _, is_error: _ }) => self.string(content),
            Step::Question(question) => self.question(question),
            Step::PermissionAsked(PermissionRequest { tool, title, decided_by, call_id: _, granted: _ }) => {
                self.strings([tool, title, decided_by]);
            }
            Step::PermissionDenied { tool, message, call_id: _ } => self.strings([tool, message]),
            Step::Retry { error: text, attempt: _, status: _, delay_ms: _ }
            | Step::RequestCheck { reason: text, step: _, met: _ }
            | Step::CallsMissing { reason: text } => self.string(text),
            Step::Finished { subtype, text, result, is_error: _, usage: _ } => {
                self.string(subtype);
                self.strings(text);
                result.iter_mut().for_each(|result| self.value(result));
            }
            Step::PermissionsReported | Step::CallsUnreported | Step::TokensUnreported | Step::Replied { .. } => {}
        }
    }

    fn call(&self, call: &mut ToolCall) {
        let ToolCall { name, raw_name, input, touches, id: _, message: _, parent: _, effect: _ } = call;
        self.strings([name, raw_name]);
        self.value(input);
        for Touch { raw, resolved, .. } in touches {
            self.strings([raw, resolved]);
        }
    }

    fn question(&self, question: &mut Question) {
        let Question { question, options, answer, undecided, call_id: _, multi_select: _, response: _ } = question;
        self.string(question);
        self.strings(options.iter_mut().chain(answer).chain(undecided));
    }

    fn hook(&self, record: &mut HookRecord) {
        let HookRecord { command, stdout, stderr, error, hook: _, exit_code: _, timed_out: _, duration_ms: _ } = record;
        self.strings(error.iter_mut().chain([command, stdout, stderr]));
    }

    fn collected(&self, collected: &mut Collected) {
        let Collected {
            files_changed,
            outside_changes,
            repository,
            probes,
            reply_probes,
            repository_change,
            patch,
            network: _,
            integrity,
            harmless,
            faults,
            forged_calls: _,
            forged_replies: _,
            model_traffic,
            sandbox: _,
            home: _,
            tmp: _,
        } = collected;
        self.strings(files_changed.iter_mut().map(|file| &mut file.path));
        self.strings(outside_changes.iter_mut().chain(harmless));
        self.signs(integrity);
        self.strings(faults.iter_mut().map(|report| &mut report.detail));
        self.traffic(model_traffic.as_deref_mut());
        if let Some(Repository { branch, status, new_commits, head: _ }) = repository {
            self.strings(status.iter_mut().chain(new_commits).chain(branch));
        }
        let at_replies = reply_probes.iter_mut().flat_map(|probes| &mut probes.probes);
        probes.iter_mut().chain(at_replies).for_each(|probe| self.probe(probe));
        self.strings(patch);
        if let Some(change) = repository_change {
            let RepositoryChange { before, after, new_commits } = &mut **change;
            self.commits(new_commits);
            [before, after].into_iter().for_each(|state| self.repository(state));
        }
    }

    /// Masks the names of models, because agents choose them.
    fn traffic(&self, traffic: Option<&mut ModelTraffic>) {
        let Some(traffic) = traffic else { return };
        let models = std::mem::take(&mut traffic.models).into_iter().map(|(mut name, count)| {
            self.string(&mut name);
            (name, count)
        });
        traffic.models = models.collect();
    }

    /// Masks the state of a repository, because agents choose branch names and users type addresses.
    fn repository(&self, state: &mut RepositoryState) {
        let RepositoryState { branch, branches, remotes, recent_commits, status, pushes, lost, .. } = state;
        self.strings(lost);
        self.names(pushes);
        self.strings(branch.iter_mut().chain(status));
        self.commits(recent_commits);
        self.names(branches);
        for remote in remotes.values_mut() {
            self.string(&mut remote.url);
            self.strings(remote.unknown.iter_mut().chain(&mut remote.by_others).chain(&mut remote.unsupported));
            remote.branches.iter_mut().for_each(|branches| self.names(branches));
            for request in remote.review_requests.iter_mut().flatten() {
                let ReviewRequest { head, base, url, title, body, number: _, open: _, draft: _ } = request;
                self.strings([head, base, url, title, body].into_iter().flatten());
            }
        }
    }

    fn signs(&self, signs: &mut [IntegritySign]) {
        self.strings(signs.iter_mut().flat_map(|sign| [&mut sign.place, &mut sign.detail]));
    }

    fn commits(&self, commits: &mut [Commit]) {
        self.strings(commits.iter_mut().map(|commit| &mut commit.subject));
    }

    /// Masks the result of a probe for an assertion. Its key is a digest and stays unchanged, because the result is
    /// looked up by it.
    fn probe(&self, probe: &mut Probe) {
        let Probe { need, found, key: _ } = probe;
        match need {
            Need::File { path: text } | Need::Command { run: text, timeout_ms: _ } => self.string(text),
            Need::Repository | Need::Files => {}
        }
        self.probed(found);
    }

    fn probed(&self, found: &mut Probed) {
        match found {
            Probed::File { text, size: _, clipped: _ }
            | Probed::Lost { reason: text }
            | Probed::Failed { reason: text } => self.string(text),
            Probed::Files { files, clipped: _ } => files.iter_mut().for_each(|file| {
                self.string(&mut file.path);
                self.strings(&mut file.text);
            }),
            Probed::Ran {
                stdout,
                stderr,
                restored,
                edited,
                control,
                scripts,
                new_tests,
                failing_test,
                rewards,
                solution,
                missing_program,
                exit_code: _,
                clipped: _,
            } => {
                self.strings([stdout, stderr]);
                self.strings(missing_program);
                self.strings(restored);
                self.strings(edited);
                if let Some(control) = control {
                    let ControlRun { files, with_files, fixture } = &mut **control;
                    self.strings(files);
                    self.probed(with_files);
                    fixture.iter_mut().for_each(|found| self.probed(found));
                }
                self.strings(rewards.iter_mut().map(|file| &mut file.text));
                for rerun in [scripts, new_tests, failing_test, solution].into_iter().flatten() {
                    let Rerun { files, found } = &mut **rerun;
                    self.strings(files);
                    self.probed(found);
                }
            }
            Probed::Nothing | Probed::Directory | Probed::Special | Probed::Outside => {}
        }
    }

    fn record(&self, record: &mut TrialRecord) {
        self.strings(record.errors.iter_mut().chain(&mut record.warnings).chain(&mut record.reason));
        let lines = record.input.iter_mut().chain(&mut record.title).chain(&mut record.script);
        self.strings(lines.chain(&mut record.model).chain(&mut record.answer).chain(&mut record.sandbox));
        let session = record.session_id.iter_mut().chain(&mut record.agent_version).chain(&mut record.auth);
        self.strings(session);
        let values = record.input_value.iter_mut().chain(&mut record.result).chain(&mut record.expected);
        let values = values.chain(&mut record.expected_trace).chain(&mut record.expected_schema);
        values.chain(&mut record.tools).for_each(|value| self.value(value));
        record.vars.iter_mut().for_each(|vars| self.entries(vars));
        self.names(&mut record.scores);
        record.ending.iter_mut().for_each(|ending| self.ending(ending));
        for AttemptRecord { reason, answer, .. } in &mut record.attempts {
            self.strings(reason.iter_mut().chain(answer));
        }
        for CallRecord { name, raw_name, input, result, is_error: _, turn: _, parent: _ } in &mut record.tool_calls {
            self.strings([name, raw_name].into_iter().chain(result));
            self.value(input);
        }
        for AnsweredQuestion { question, answer } in &mut record.questions {
            self.strings([question].into_iter().chain(answer));
        }
        self.strings(record.replies.iter_mut().filter_map(|reply| reply.answer.as_mut()));
        self.strings(record.files_changed.iter_mut().map(|file| &mut file.path));
        record.egress.iter_mut().for_each(|attempt| self.egress(attempt));
        self.traffic(record.model_traffic.as_deref_mut());
        for SideEffects { remote, branches, commits, review_requests: _, added: _ } in &mut record.side_effects {
            self.strings([remote].into_iter().chain(branches));
            self.names(commits);
        }
        self.signs(&mut record.integrity);
        record.mock_calls.iter_mut().for_each(|call| self.mock_call(call));
        self.strings(record.injected_faults.iter_mut().map(|report| &mut report.detail));
        self.findings(&mut record.findings);
    }

    fn ending(&self, ending: &mut Ending) {
        match ending {
            Ending::GaveUp { reason }
            | Ending::ProviderFailed { reason }
            | Ending::Aborted { reason }
            | Ending::Unreachable { reason }
            | Ending::InvalidTest { reason } => self.string(reason),
            Ending::Stale(request) => {
                let StaleRequest { cassette, number: _, sender: _, pointer, recorded, actual, reason } = &mut **request;
                self.strings([cassette].into_iter().chain(pointer).chain(recorded).chain(actual).chain(reason));
            }
            Ending::Finished
            | Ending::OutOfBudget { .. }
            | Ending::TimedOut { .. }
            | Ending::Silent { .. }
            | Ending::Cancelled => {}
        }
    }

    /// Masks findings and keeps their ids unique.
    fn findings(&self, findings: &mut [Finding]) {
        for index in 0..findings.len() {
            self.finding(&mut findings[index]);
            if let Cow::Owned(id) = self.mask.text(&findings[index].id) {
                let id = numbered(id, |id| findings.iter().any(|finding| finding.id == id));
                findings[index].id = id;
            }
        }
    }

    fn finding(&self, finding: &mut Finding) {
        let Finding { reason, expected, actual, error, evidence, source, title, key, dimension, .. } = finding;
        let lines = expected.iter_mut().chain(actual).chain(error).chain(evidence).chain(title).chain(key);
        self.strings(lines.chain(dimension).chain(&mut finding.failed_critical).chain([reason]));
        self.strings(finding.judgement.iter_mut().flat_map(|judged| [&mut judged.judge, &mut judged.question]));
        self.strings(source.iter_mut().map(|source| &mut source.text));
        self.strings(finding.captures.iter_mut().flat_map(|capture| [&mut capture.field, &mut capture.value]));
        finding.details.iter_mut().for_each(|detail| self.detail(detail));
        finding.failures.iter_mut().for_each(|failure| self.failure(failure));
    }

    fn detail(&self, detail: &mut Detail) {
        let Detail { key, title, dimension, details, .. } = detail;
        self.strings(title.iter_mut().chain(dimension).chain([key]));
        details.iter_mut().for_each(|detail| self.detail(detail));
    }

    pub(super) fn failure(&self, failure: &mut Failure) {
        let Failure { key, message, expected, actual, diff, source, critical: _ } = failure;
        // A diff may split a secret into pieces that do not look like secrets.
        let side = |other: Part| diff.iter().filter(|piece| piece.part != other).map(|piece| &*piece.text).collect();
        let sides: [String; 2] = [side(Part::Extra), side(Part::Missing)];
        if sides.iter().any(|text| matches!(self.mask.text(text), Cow::Owned(_))) {
            diff.clear();
        }
        self.strings(source.iter_mut().map(|source| &mut source.text).chain([key, message]));
        expected.iter_mut().chain(actual).for_each(|value| self.value(value));
    }
}
