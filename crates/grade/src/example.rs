//! Documented examples: an assertion and its evidence, written in code so that the self-test runs them.

use std::sync::Arc;

use model::{
    Certainty, Change, Collected, Commit, EgressAttempt, EgressVerdict, EgressWay, Ending, Evidence, FaultKind,
    FaultReport, FileChange, Limits, MockCall, MockNames, MockVerdict, Need, PermissionRequest, Probe, Probed,
    Question, RemoteState, RepositoryChange, RepositoryState, Rerun, ReviewRequest, RewardFile, Step, Tokens, ToolCall,
    ToolResult, Touch, Trace, Usage,
};
use serde_json::Value;

use crate::evidence::repository;
use crate::format;

/// Example of an assertion that is met or not met.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// Entry of the assertion. `null` for an implicit assertion.
    pub assertion: fn() -> Value,
    pub(crate) story: fn() -> EvidenceBuilder,
}

impl Example {
    /// Returns the example as YAML, as it is written in a case. Returns `None` for an implicit assertion.
    pub fn written(&self) -> Option<String> {
        let assertion = (self.assertion)();
        (!assertion.is_null()).then(|| crate::yaml::list_item(&assertion, "example.yaml").source.text.clone())
    }

    /// Returns the evidence of a trial.
    pub fn evidence(&self) -> Evidence {
        (self.story)().evidence()
    }

    /// Returns the evidence in words, one fact per line.
    pub fn describe(&self) -> Vec<String> {
        describe_evidence(&self.evidence())
    }
}

/// Returns `null`, because an implicit assertion has no entry.
pub(crate) fn nothing_written() -> Value {
    Value::Null
}

/// Builder of evidence for examples and tests.
pub(crate) struct EvidenceBuilder {
    steps: Vec<Step>,
    evidence: Evidence,
}

impl EvidenceBuilder {
    /// Creates evidence of an agent that has not done anything, in `/box/repo`, with the home directory `/box/home`.
    pub fn new() -> Self {
        Self {
            steps: Vec::new(),
            evidence: Evidence {
                trace: Trace::default(),
                collected: Collected {
                    sandbox: Some("/box/repo".into()),
                    home: Some("/box/home".into()),
                    tmp: Some("/box/tmp".into()),
                    ..Collected::default()
                },
                ending: Ending::Finished,
                limits: Arc::new(Limits { max_turns: 40, timeout_ms: 600_000, ..Limits::default() }),
                unused_responses: Vec::new(),
                agent_ms: None,
            },
        }
    }

    /// Adds a model turn with one successful call.
    pub fn call(self, name: &str, input: Value) -> Self {
        self.touching(name, input, &[])
    }

    /// Adds a call with the paths that the harness saw it touch: each path as written, the path it resolves to, and
    /// how certain that is.
    pub fn touching(mut self, name: &str, input: Value, touches: &[(&str, &str, Certainty)]) -> Self {
        let id = format!("call-{}", self.steps.len());
        let mut call = ToolCall::new(id.clone(), name, input, format!("message-{}", self.steps.len()));
        let access = model::tool::find(name).and_then(|tool| tool.paths.first()).map_or(model::Access::Read, |it| it.1);
        call.touches = touches
            .iter()
            .map(|&(raw, resolved, certainty)| Touch { raw: raw.into(), resolved: resolved.into(), access, certainty })
            .collect();
        self.steps.push(Step::ToolCall(call));
        self.steps.push(Step::ToolResult(ToolResult { id, content: String::new(), is_error: false }));
        self
    }

    /// Adds a question from the agent, and the answer to it.
    pub fn question(mut self, question: &str, answer: Option<&str>) -> Self {
        self.steps.push(Step::Question(Question {
            call_id: None,
            question: question.into(),
            options: Vec::new(),
            multi_select: false,
            answer: answer.map(str::to_owned),
            response: answer.map(|_| 0),
            undecided: None,
        }));
        self
    }

    /// Adds a model turn with one call for which the agent asked permission. The call succeeds if it was granted.
    pub fn permission(mut self, name: &str, input: Value, granted: bool) -> Self {
        let id = format!("call-{}", self.steps.len());
        let call = ToolCall::new(id.clone(), name, input, format!("message-{}", self.steps.len()));
        let (title, decided_by) = (call.summary(), "by the case's rules".to_owned());
        self.steps.push(Step::ToolCall(call));
        let tool = name.to_owned();
        let request = PermissionRequest { call_id: id.clone(), tool, title, granted, decided_by };
        self.steps.push(Step::PermissionAsked(request));
        self.steps.push(Step::ToolResult(ToolResult { id, content: String::new(), is_error: !granted }));
        self
    }

    /// Adds the last answer, in its own turn.
    pub fn answer(mut self, text: &str) -> Self {
        self.steps.push(Step::Text { message: "answer".into(), text: text.into(), parent: None });
        self.finished(Some(text), None)
    }

    /// Adds a message from the user.
    pub fn asks(mut self, text: &str) -> Self {
        let index = self.steps.iter().filter(|step| matches!(step, Step::UserMessage { .. })).count() + 1;
        self.steps.push(Step::UserMessage { index, of: index, text: text.into() });
        self
    }

    /// Records that the reply does not report its tool calls.
    #[cfg(test)]
    pub fn calls_unreported(mut self) -> Self {
        self.steps.push(Step::CallsUnreported);
        self
    }

    /// Records that what would show the tool calls of the reply is missing.
    #[cfg(test)]
    pub fn calls_missing(mut self, reason: &str) -> Self {
        self.steps.push(Step::CallsMissing { reason: reason.into() });
        self
    }

    /// Sets the duration of the last reply.
    pub fn replied(mut self, latency_ms: u64) -> Self {
        self.steps.push(Step::Replied { latency_ms, first_token_ms: None });
        self
    }

    /// Adds a probed file with its content, or `None` if it does not exist.
    pub fn file(self, path: &str, content: Option<&str>) -> Self {
        let found = content.map_or(Probed::Nothing, |text| Probed::File {
            size: text.len() as u64,
            text: text.into(),
            clipped: false,
        });
        self.probed(Need::File { path: path.into() }, found)
    }

    /// Adds a command that was run with the default timeout.
    pub fn ran(self, run: &str, exit_code: i32, stdout: &str, stderr: &str) -> Self {
        let (stdout, stderr) = (stdout.into(), stderr.into());
        let found = Probed::Ran {
            exit_code: Some(exit_code),
            stdout,
            stderr,
            clipped: false,
            restored: Vec::new(),
            edited: Vec::new(),
            control: None,
            scripts: None,
            new_tests: None,
            failing_test: None,
            rewards: Vec::new(),
            solution: None,
            missing_program: None,
        };
        self.probed(Need::Command { run: run.into(), timeout_ms: 30_000 }, found)
    }

    /// Adds a verifier that was run with the default timeout and wrote a reward.
    pub fn rewarded(self, run: &str, reward: &str) -> Self {
        self.rewarded_by(run, vec![RewardFile { name: "reward.txt".into(), text: reward.into(), unusable: None }], None)
    }

    /// Adds a verifier that was run with the default timeout, the files that it wrote, and its result with the case's
    /// own solution.
    pub(crate) fn rewarded_by(self, run: &str, rewards: Vec<RewardFile>, solution: Option<Rerun>) -> Self {
        let found = Probed::Ran {
            exit_code: Some(0),
            stdout: String::new(),
            stderr: String::new(),
            clipped: false,
            restored: Vec::new(),
            edited: Vec::new(),
            control: None,
            scripts: None,
            new_tests: None,
            failing_test: None,
            rewards,
            solution: solution.map(Box::new),
            missing_program: None,
        };
        self.probed(Need::Command { run: run.into(), timeout_ms: 600_000 }, found)
    }

    /// Adds a probe and its result.
    pub fn probed(mut self, need: Need, found: Probed) -> Self {
        self.evidence.collected.probes.push(Probe { key: need.key(), need, found });
        self
    }

    /// Adds all files in the working directory with their contents.
    #[cfg(test)]
    pub fn files(self, files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| model::FoundFile {
            path: (*path).into(),
            size: text.len() as u64,
            text: Some((*text).into()),
        };
        self.probed(Need::Files, Probed::Files { files: files.iter().map(file).collect(), clipped: false })
    }

    /// Adds a repository with one commit on `main`, which is also on the remote `origin`. `tell` describes the
    /// changes.
    pub fn repository(mut self, tell: impl FnOnce(&mut RepositoryChange)) -> Self {
        let main = || [("main".to_owned(), "a1".to_owned())].into();
        let remote = RemoteState {
            url: "https://git.example.com/acme/shop".into(),
            branches: Some(main()),
            review_requests: Some(Vec::new()),
            ..RemoteState::default()
        };
        let before = RepositoryState {
            head: Some("a1".into()),
            branch: Some("main".into()),
            branches: main(),
            remotes: [("origin".to_owned(), remote)].into(),
            commit_count: 1,
            recent_commits: vec![commit("a1", "Initial commit", true)],
            ..RepositoryState::default()
        };
        let mut change = RepositoryChange { after: before.clone(), before, new_commits: Vec::new() };
        tell(&mut change);
        self.evidence.collected.repository_change = Some(Box::new(change));
        self
    }

    /// Sets the network policy under which attempts to reach hosts are recorded.
    pub fn network(mut self, policy: &str) -> Self {
        self.evidence.collected.network = Some(policy.to_owned());
        self
    }

    /// Adds a connection to a host that was allowed.
    pub fn allowed(self, host: &str, port: u16) -> Self {
        self.egress(host, port, EgressVerdict::Allowed)
    }

    /// Adds a connection to a host that was refused.
    pub fn refused(self, host: &str, port: u16) -> Self {
        self.egress(host, port, EgressVerdict::Refused)
    }

    fn egress(mut self, host: &str, port: u16, verdict: EgressVerdict) -> Self {
        self.steps.push(Step::Egress(EgressAttempt {
            host: host.to_owned(),
            port: Some(port),
            verdict,
            way: EgressWay::Proxy,
            is_model: false,
            by_command: false,
            reason: None,
        }));
        self
    }

    /// Adds a call that the mock of a server received and answered.
    pub fn mocked(self, server: &str, tool: &str, input: Value) -> Self {
        self.mock_call(Some(server), tool, input, MockVerdict::Answered, "")
    }

    /// Adds a call that the mock of a server rejected.
    pub fn rejected(self, server: &str, tool: &str, input: Value, reason: &str) -> Self {
        self.mock_call(Some(server), tool, input, MockVerdict::Rejected, reason)
    }

    /// Adds a run of a mocked program.
    pub fn ran_mock(self, command: &str, line: &str) -> Self {
        let args: Vec<&str> = line.split(' ').collect();
        let input = serde_json::json!({"args": args, "line": line});
        self.mock_call(None, command, input, MockVerdict::Answered, "")
    }

    fn mock_call(mut self, server: Option<&str>, tool: &str, input: Value, verdict: MockVerdict, output: &str) -> Self {
        let names = MockNames {
            servers: server.map(str::to_owned).into_iter().collect(),
            commands: if server.is_none() { vec![tool.to_owned()] } else { Vec::new() },
            ..MockNames::default()
        };
        self.steps.push(Step::Mocks(names));
        self.steps.push(Step::MockCall(MockCall {
            server: server.map(str::to_owned),
            tool: tool.to_owned(),
            input,
            output: output.to_owned(),
            verdict,
            user_message: 1,
        }));
        self
    }

    /// Adds a fault of the case: the numbers of the model requests or runs that it hit, and how many there were.
    pub fn fault(mut self, fault: FaultKind, detail: &str, hits: &[u64], total: u64) -> Self {
        let report = FaultReport { fault, detail: detail.to_owned(), hits: hits.to_vec(), total };
        self.evidence.collected.faults.push(report);
        self
    }

    /// Adds a file that the agent created.
    pub fn added(self, path: &str) -> Self {
        self.change(path, Change::Added)
    }

    /// Adds a file that the agent changed.
    pub fn changed(self, path: &str) -> Self {
        self.change(path, Change::Modified)
    }

    /// Adds a file that the agent deleted.
    #[cfg(test)]
    pub fn deleted(self, path: &str) -> Self {
        self.change(path, Change::Deleted)
    }

    fn change(mut self, path: &str, change: Change) -> Self {
        self.evidence.collected.files_changed.push(FileChange { path: path.into(), change });
        self
    }

    /// Sets the usage in tokens: input, output, and read from a cache.
    pub fn used(mut self, input: u64, output: u64, cache_read: u64) -> Self {
        let tokens = Some(Tokens { input, output, cache_read, ..Tokens::default() });
        // The usage belongs to the last answer, if there is one.
        match self.steps.last_mut() {
            Some(Step::Finished { usage, .. }) => usage.tokens = tokens,
            _ => return self.finished(None, tokens),
        }
        self
    }

    fn finished(mut self, text: Option<&str>, tokens: Option<Tokens>) -> Self {
        self.steps.push(Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage { tokens, cost_usd: None },
            text: text.map(str::to_owned),
            result: None,
        });
        self
    }

    /// Sets the whole result of the last answer.
    pub fn result(mut self, value: Value) -> Self {
        if let Some(Step::Finished { result, .. }) = self.steps.last_mut() {
            *result = Some(value);
        }
        self
    }

    /// Adds the result of a scripted model's check on a request.
    pub fn request(mut self, step: usize, met: bool, reason: &str) -> Self {
        self.steps.push(Step::RequestCheck { step, met, reason: reason.into() });
        self
    }

    /// Sets how the trial ended.
    pub fn ending(mut self, ending: Ending) -> Self {
        self.evidence.ending = ending;
        self
    }

    /// Changes the limits from their defaults.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(Arc::make_mut(&mut self.evidence.limits));
        self
    }

    /// Returns the evidence.
    pub fn evidence(self) -> Evidence {
        Evidence { trace: Trace::of(&self.steps), ..self.evidence }
    }
}

/// Creates a commit.
pub(crate) fn commit(sha: &str, subject: &str, on_head: bool) -> Commit {
    Commit { sha: sha.into(), subject: subject.into(), on_head }
}

/// Adds a branch that was created and is checked out.
pub(crate) fn branch_out(change: &mut RepositoryChange, name: &str) {
    let head = change.after.head.clone().unwrap_or_default();
    change.after.branches.insert(name.into(), head);
    change.after.branch = Some(name.into());
}

/// Adds a commit on the current branch.
pub(crate) fn commit_on(change: &mut RepositoryChange, sha: &str, subject: &str) {
    change.new_commits.insert(0, commit(sha, subject, true));
    change.after.head = Some(sha.into());
    if let Some(branch) = &change.after.branch {
        change.after.branches.insert(branch.clone(), sha.into());
    }
}

/// Adds a push to `origin`.
pub(crate) fn push_to(change: &mut RepositoryChange, branch: &str, head: &str) {
    let origin = change.after.remotes.entry("origin".into()).or_default();
    origin.branches.get_or_insert_default().insert(branch.into(), head.into());
}

/// Adds a review request that was opened at `origin`.
pub(crate) fn open_request(change: &mut RepositoryChange, number: u64, head: &str) {
    let origin = change.after.remotes.entry("origin".into()).or_default();
    origin.review_requests.get_or_insert_default().push(ReviewRequest {
        number,
        head: Some(head.into()),
        base: Some("main".into()),
        open: true,
        ..ReviewRequest::default()
    });
}

/// Describes evidence in words, one fact per line.
fn describe_evidence(evidence: &Evidence) -> Vec<String> {
    let Evidence { trace, collected, ending, limits, .. } = evidence;
    let mut lines: Vec<String> =
        trace.user_messages.iter().map(|message| format!("message   {}", format::quoted(message))).collect();
    for (index, traced) in trace.calls.iter().enumerate() {
        let led = traced.call.touches.iter().filter(|touch| touch.raw != touch.resolved);
        let led: String = led.map(|touch| format!(", which leads to {}", touch.resolved)).collect();
        lines.push(format!("{:<10}{}{led}", format!("call {}", index + 1), traced.call.summary()));
    }
    for question in &trace.questions {
        let answer = question.answer.as_ref().map_or("no prepared answer".to_owned(), |answer| format::quoted(answer));
        lines.push(format!("question  {} → {answer}", format::quoted(&question.question)));
    }
    for permission in trace.permissions.iter().flatten() {
        let decision = if permission.request.granted { "allowed" } else { "denied" };
        lines.push(format!("asked     {}: {decision}", permission.request.title));
    }
    lines.extend(collected.network.iter().map(|policy| format!("network   {policy}")));
    lines.extend(trace.egress.iter().map(|attempt| format!("host      {}", attempt.describe())));
    lines.extend(trace.mock_calls.iter().map(|call| call.describe().replacen("mock ", "mock      ", 1)));
    for report in &collected.faults {
        let hits: Vec<String> = report.hits.iter().map(u64::to_string).collect();
        let unit = match report.fault {
            FaultKind::ToolFails => "runs",
            _ => "model requests",
        };
        lines.push(format!("fault     {}: hit {} of {} {unit}", report.detail, hits.join(", "), report.total));
    }
    for path in &collected.outside_changes {
        lines.push(format!("written   {path}"));
    }
    for (step, met, reason) in &trace.request_checks {
        lines
            .push(format!("request   step {step}, {}: {reason}", if *met { "as expected" } else { "not as expected" }));
    }
    if let Some(answer) = &trace.answer {
        lines.push(format!("answer    {}", format::quoted(answer)));
    }
    if let Some(result) = &trace.result {
        lines.push(format!("result    {result}"));
    }
    for latency in trace.replies.iter().filter_map(|reply| reply.latency_ms) {
        lines.push(format!("took      {latency} ms"));
    }
    lines.extend(collected.files_changed.iter().map(|file| {
        let how = match file.change {
            Change::Added => "created",
            Change::Modified => "changed",
            Change::Deleted => "removed",
        };
        format!("{how:<10}{}", file.path)
    }));
    lines.extend(collected.probes.iter().map(tell_probe));
    if let Some(change) = &collected.repository_change {
        lines.extend(repository::summary(change));
        lines.extend(change.after.status.iter().map(|line| format!("status    {line}")));
    }
    if let Some(tokens) = trace.usage.tokens {
        lines.push(format!("used      {} tokens", format::thousands(tokens.total() as f64)));
    }
    if let Some(budget) = limits.token_budget {
        let from = limits.token_budget_from.as_deref().unwrap_or("the run");
        lines.push(format!("limit     {} tokens, set by the {from}", format::thousands(budget)));
    }
    if let Some(turns) = limits.turn_cap() {
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        lines.push(format!("limit     {}", format::count(turns, "turn")));
    }
    if *ending != Ending::Finished {
        lines.push(format!("ended     {}", ending.describe()));
    }
    lines
}

/// Describes a probe in one line.
fn tell_probe(probe: &Probe) -> String {
    let what = match &probe.need {
        Need::File { path } => format!("file      {path}: "),
        Need::Command { run, .. } => format!("command   {run}: "),
        Need::Repository => "repository: ".to_owned(),
        Need::Files => "files     ".to_owned(),
    };
    let found = match &probe.found {
        Probed::Nothing => "does not exist".to_owned(),
        Probed::Directory => "a directory".to_owned(),
        Probed::Special => "no file".to_owned(),
        Probed::Outside => "outside".to_owned(),
        Probed::File { text, .. } => format::quoted(text),
        Probed::Files { files, .. } => format::list(&files.iter().map(|file| file.path.clone()).collect::<Vec<_>>()),
        Probed::Ran { exit_code: Some(code), stdout, stderr, .. } => {
            format!("exit code {code}, {}", format::quoted(&format!("{stdout}{stderr}")))
        }
        Probed::Ran { exit_code: None, .. } => "timed out".to_owned(),
        Probed::Lost { reason } | Probed::Failed { reason } => reason.clone(),
    };
    format!("{what}{found}")
}
