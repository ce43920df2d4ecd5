//! Builders for the events of runs.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use model::*;
use serde_json::{Map, json};

pub const RUN: &str = "0193a0f2-7c11-7d3e-9b5a-3f0c6a1e2b44";

/// A run under construction. It numbers its events and advances its clock.
pub struct RunBuilder {
    pub events: Vec<Envelope>,
    pub summary: Summary,
    info: RunInfo,
    now: Timestamp,
    trial: Option<Arc<str>>,
    attempt: u32,
}

pub fn begin() -> Timestamp {
    "2026-11-21T21:48:00Z".parse().unwrap()
}

pub fn id(case: &str, arm: &str, repetition: u64) -> TrialId {
    TrialId { suite: "commit".into(), case: case.into(), arm: arm.into(), repetition }
}

impl RunBuilder {
    pub fn new(trials: Vec<TrialId>, jobs: usize) -> Self {
        let info = RunInfo {
            id: RUN.into(),
            label: None,
            regrade_of: None,
            started_at: begin(),
            trialrun_version: "0.1.0".into(),
            settings: Map::from_iter([("jobs".to_owned(), json!(jobs))]),
            agents: vec![AgentInfo {
                name: "claude-code".into(),
                version: Some("2.1.0".into()),
                model: Some("sonnet".into()),
                reasoning_effort: None,
                base_url: None,
            }],
            skills: vec![skill()],
            trials,
            decisions: 0,
            jobs,
            invocation: None,
            origin: None,
            shard: None,
            missing_shards: None,
            isolation: None,
        };
        let mut story = Self {
            events: Vec::new(),
            summary: Summary::default(),
            info: info.clone(),
            now: begin(),
            trial: None,
            attempt: 1,
        };
        story.push(None, Event::RunStarted(Box::new(info)));
        story
    }

    fn push(&mut self, trial: Option<Arc<str>>, event: Event) {
        self.events.push(Envelope {
            v: EVENT_VERSION,
            seq: self.events.len() as u64 + 1,
            at: self.now,
            run: RUN.into(),
            attempt: trial.as_ref().map(|_| self.attempt),
            trial,
            event,
        });
    }

    /// Advances the clock by `ms` milliseconds.
    pub fn after(&mut self, ms: i64) -> &mut Self {
        self.now += SignedDuration::from_millis(ms);
        self
    }

    /// Makes this trial the subject of the next events.
    pub fn about(&mut self, trial: &TrialId) -> &mut Self {
        self.trial = Some(trial.into());
        self
    }

    pub fn tell(&mut self, event: Event) -> &mut Self {
        let trial = self.trial.clone();
        self.push(trial, event);
        self
    }

    pub fn starts(&mut self, trial: &TrialId, messages: &[&str]) -> &mut Self {
        self.attempt = 1;
        self.about(trial).tell(Event::TrialStarted {
            id: trial.clone(),
            agent: "claude-code".into(),
            model: Some("sonnet".into()),
            subject: Some("commit".into()),
            file: "skills/commit/tests/commit.yaml".into(),
            messages: messages.iter().map(|message| (*message).to_owned()).collect(),
            position: None,
            script: None,
            input: None,
        })
    }

    /// Starts a trial of a fixtures file, with the data in its record.
    pub fn counts(&mut self, trial: &TrialId, record: &TrialRecord) -> &mut Self {
        self.attempt = 1;
        self.about(trial).tell(Event::TrialStarted {
            id: trial.clone(),
            agent: "recorded".into(),
            model: None,
            subject: None,
            file: "people.fixture.yaml".into(),
            messages: record.input.clone(),
            position: record.position,
            script: record.script.clone(),
            input: record.input_value.clone(),
        })
    }

    pub fn step(&mut self, step: Step) -> &mut Self {
        self.tell(Event::Step(step))
    }

    pub fn says(&mut self, text: &str) -> &mut Self {
        self.step(Step::Text { message: "m".into(), text: text.into(), parent: None })
    }

    pub fn calls(&mut self, id: &str, tool: &str, input: serde_json::Value) -> &mut Self {
        self.step(Step::ToolCall(ToolCall::new(id, tool, input, "m")))
    }

    pub fn answers(&mut self, id: &str, content: &str, is_error: bool) -> &mut Self {
        self.step(Step::ToolResult(ToolResult { id: id.into(), content: content.into(), is_error }))
    }

    pub fn asks(&mut self, call: &str, question: &str, answer: Option<&str>) -> &mut Self {
        self.step(Step::Question(Question {
            call_id: Some(call.into()),
            question: question.into(),
            options: vec!["Split".into(), "One commit".into()],
            multi_select: false,
            answer: answer.map(str::to_owned),
            response: answer.map(|_| 0),
            undecided: None,
        }))
    }

    pub fn ends(&mut self, record: TrialRecord) -> &mut Self {
        self.summary.add(&record);
        self.trial = Some(record.id.clone());
        self.tell(Event::TrialFinished(Box::new(record)))
    }

    pub fn over(&mut self) -> &mut Self {
        let event = Event::RunFinished {
            summary: self.summary.clone(),
            duration_ms: u64::try_from(self.now.duration_since(self.info.started_at).as_millis()).unwrap(),
            signal: None,
        };
        self.push(None, event);
        self
    }
}

pub fn skill() -> SkillInfo {
    SkillInfo { name: "commit".into(), version: Some("1.2".into()), content_hash: "9f86d081884c7d65".repeat(4) }
}

/// A trial that passed.
pub fn passed(trial: &TrialId) -> TrialRecord {
    let usage = Tokens { input: 214, cache_read: 1020, cache_write: 0, output: 56, reasoning: None };
    TrialRecord {
        id: trial.into(),
        suite: trial.suite.clone(),
        case: trial.case.clone(),
        title: None,
        tags: Vec::new(),
        quarantine: None,
        arm: trial.arm.clone(),
        agent: "claude-code".into(),
        model: Some("sonnet".into()),
        variant: None,
        repetition: trial.repetition,
        auto_trials: None,
        file: Some("skills/commit/tests/commit.yaml".into()),
        line: Some(21),
        outcome: Outcome::Passed,
        flaky: false,
        fault: None,
        reason: None,
        ending: Some(Ending::Finished),
        score: Some(2.0),
        max_score: Some(2.0),
        pass_score: None,
        findings: vec![
            met("commits-with-a-message", "tool_called", "call 3 of `Bash` matches"),
            met("stays-inside", "no_path_escape", "no call left the sandbox"),
            Finding { implicit: true, ..met("turn_budget", "turn_budget", "4 of 12 turns") },
        ],
        input: vec!["/commit".into()],
        input_value: None,
        result: None,
        expected: None,
        expected_trace: None,
        expected_schema: None,
        script: None,
        tools: Vec::new(),
        vars: None,
        not: false,
        position: None,
        answer: Some("Committed as two commits.".into()),
        scores: Default::default(),
        judge: None,
        judge_sampled: None,
        user: None,
        replies: Vec::new(),
        turn_count: 4,
        calls_unreported: false,
        tool_calls: vec![CallRecord {
            name: "Bash".into(),
            raw_name: "Bash".into(),
            input: json!({ "command": "git status" }),
            result: Some("On branch main".into()),
            is_error: false,
            turn: 0,
            parent: None,
        }],
        questions: vec![AnsweredQuestion { question: "Split the commit?".into(), answer: Some("Split".into()) }],
        usage: Some(usage),
        cost_usd: Some(0.0123),
        cost_source: Some("agent".into()),
        cost_usd_cli: None,
        triggered: None,
        should_trigger: None,
        side_effects: Vec::new(),
        masked: false,
        duration_ms: 3400,
        agent_ms: Some(2400),
        phases: Phases { provision_ms: 300, act_ms: 2600, collect_ms: 100, grade_ms: 200, hooks_ms: 0 },
        started_at: begin(),
        exit_code: None,
        session_id: Some("5b1c".into()),
        agent_version: Some("2.1.0".into()),
        auth: Some("API key".into()),
        skill: Some(skill()),
        limits: Limits { max_turns: 12, max_turns_set: true, timeout_ms: 600_000, ..Limits::default() }.into(),
        settings: Arc::new(Map::from_iter([("permission_mode".to_owned(), json!("bypassPermissions"))])),
        attempts: vec![AttemptRecord {
            outcome: Outcome::Passed,
            reason: None,
            answer: Some("Noted.".into()),
            usage: Some(usage),
            cost_usd: Some(0.0123),
            duration_ms: 3400,
            ..AttemptRecord::default()
        }],
        network: None,
        model_traffic: None,
        cassette: None,
        egress: Vec::new(),
        injected_faults: Vec::new(),
        mock_calls: Vec::new(),
        integrity: Vec::new(),
        files_changed: vec![FileChange { path: "notes.md".into(), change: Change::Modified }],
        sandbox: None,
        errors: vec![],
        warnings: vec![],
    }
}

pub fn met(id: &str, kind: &str, reason: &str) -> Finding {
    Finding {
        id: id.into(),
        kind: kind.into(),
        title: None,
        status: Status::Met,
        claim: Claim::Declared,
        score: Some(1.0),
        weight: 1.0,
        reason: reason.into(),
        expected: None,
        actual: None,
        evidence: vec![],
        error: None,
        captures: vec![],
        source: None,
        at: None,
        implicit: false,
        masked: None,
        latency_ms: None,
        judgement: None,
        judged: false,
        key: None,
        dimension: None,
        failed_critical: Vec::new(),
        leeway: None,
        details: Vec::new(),
        failures: Vec::new(),
    }
}

/// A trial whose second assertion does not hold.
pub fn failed(trial: &TrialId) -> TrialRecord {
    let mut record = passed(trial);
    record.outcome = Outcome::Failed;
    record.reason = Some("1 of 2 assertions does not hold".into());
    record.score = Some(1.0);
    record.findings[0].captures = vec![Capture {
        field: "command".into(),
        value: format!("git commit -m \"{}\"\n\ngit push", "x".repeat(60)),
        shown_chars: 40,
        step: None,
    }];
    record.findings[1] = Finding {
        status: Status::Unmet,
        score: Some(0.0),
        reason: "no call to `AskUserQuestion` came before `git push`".into(),
        expected: Some("a call to `AskUserQuestion` with question ~ /push/".into()),
        actual: Some("calls: Bash, Bash, Bash\nnearest: Bash(command=\"git push\")".into()),
        evidence: vec!["call 2: Bash \"git commit\"".into(), "call 3: Bash \"git push\"".into()],
        source: Some(Excerpt {
            file: "skills/commit/tests/commit.yaml".into(),
            line: 31,
            column: 13,
            length: 16,
            text: "      tool: AskUserQuestion   # never push unasked".into(),
            skipped: 0,
        }),
        ..met("asks-before-push", "tool_called", "")
    };
    record.warnings = vec!["user_responses[1] was never asked for".into()];
    record.attempts[0].outcome = Outcome::Failed;
    record
}

/// A trial whose provider failed twice.
pub fn broken(trial: &TrialId) -> TrialRecord {
    let mut record = passed(trial);
    let reason = "the model provider answered 529 (overloaded) five times";
    record.outcome = Outcome::Broken;
    record.fault = Some(Fault::Provider);
    record.reason = Some(reason.into());
    record.ending = Some(Ending::ProviderFailed { reason: reason.into() });
    record.findings.clear();
    record.answer = None;
    record.usage = None;
    record.cost_usd = None;
    record.score = None;
    record.max_score = None;
    let attempt = AttemptRecord {
        outcome: Outcome::Broken,
        reason: Some(reason.into()),
        duration_ms: 900,
        ..AttemptRecord::default()
    };
    record.attempts = vec![attempt.clone(), attempt];
    record
}

/// Returns the row of a record in a list.
pub fn row(record: &TrialRecord, run: &str) -> TrialRow {
    TrialRow {
        run: run.into(),
        label: None,
        id: record.id.to_string(),
        suite: record.suite.to_string(),
        case: record.case.to_string(),
        arm: record.arm.to_string(),
        agent: record.agent.clone(),
        model: record.model.clone(),
        variant: record.variant.clone(),
        repetition: record.repetition,
        outcome: record.outcome,
        flaky: record.flaky,
        quarantined: record.quarantine.is_some(),
        fault: record.fault,
        reason: record.reason.clone(),
        score: record.score,
        max_score: record.max_score,
        score_bounds: record.first_score(),
        started_at: record.started_at,
        duration_ms: record.duration_ms,
        agent_ms: record.agent_ms,
        turns: record.turn_count,
        tool_calls: record.tool_calls.len(),
        tokens: record.usage,
        cost_usd: record.cost_usd,
        token_budget: record.limits.token_budget,
        attempts: record.attempts.len(),
        errors: record.errors.len(),
        skill_version: record.skill.as_ref().and_then(|skill| skill.version.clone()),
        skill_hash: record.skill.as_ref().map(|skill| skill.content_hash.clone()),
    }
}

pub fn run_row(id: &str) -> RunRow {
    let owner = Owner { id: "3f8a".into(), host: "build-7".into(), pid: 4711, process: String::new() };
    RunRow {
        id: id.into(),
        short: id.chars().take(8).collect(),
        label: None,
        regrade_of: None,
        started_at: begin(),
        finished_at: Some(begin() + SignedDuration::from_secs(63)),
        duration_ms: Some(63_000),
        signal: None,
        lease: Some(Lease { owner, renewed_at: begin() + SignedDuration::from_secs(62) }),
        trialrun_version: "0.1.0".into(),
        agents: Vec::new(),
        planned: 4,
        finished: 3,
        sequential: false,
        missing_shards: None,
        hash: None,
        summary: None,
    }
}

/// A single job with three trials and every kind of event that a stream shows.
pub fn one_job() -> RunBuilder {
    let trials = ["splits-in-two", "asks-before-push", "provider-down"].map(|case| id(case, "claude-code:sonnet", 1));
    let mut story = RunBuilder::new(trials.to_vec(), 1);
    story
        .after(1)
        .starts(&trials[0], &["/commit"])
        .after(11)
        .tell(Event::SandboxReady {
            path: "/sandboxes/1/work".into(),
            skill: Some(".claude/skills/commit".into()),
            duration_ms: 11,
        })
        .tell(Event::Waiting { on: "agent".into() })
        .after(800)
        .step(Step::Session {
            session_id: Some("5b1c7f00".into()),
            model: Some("sonnet".into()),
            agent_version: Some("2.1.0".into()),
            tools: vec!["Bash".into()],
            auth: None,
        })
        .step(Step::UserMessage { index: 1, of: 1, text: "/commit".into() })
        .after(420)
        .calls("c1", "Bash", json!({ "command": "git status", "description": "look" }))
        .after(30)
        .answers("c1", "On branch main\nChanges to be committed:", false)
        .calls("c2", "Bash", json!({ "command": "git log\n  --oneline" }))
        .answers("c2", "\u{1b}[31mfatal\u{1b}[0m: your current branch has no commits\n", true)
        .after(1000)
        .calls("c3", "AskUserQuestion", json!({ "questions": [{ "question": "Split the commit?" }] }))
        .asks("c3", "Split the commit?", Some("Split"))
        .answers("c3", "User answered: Split", false)
        .calls("c4", "Task", json!({ "description": "review the diff" }))
        .step(Step::ToolCall(ToolCall {
            parent: Some("c4".into()),
            ..ToolCall::new("s1", "Read", json!({ "file_path": "a.md" }), "s")
        }))
        .answers("s1", "", false)
        .step(Step::Text { message: "s".into(), text: "Looks fine".into(), parent: Some("c4".into()) })
        .answers("c4", "fine", false)
        .tell(Event::Idle { idle_ms: 30_000, on: "agent".into() })
        .after(60_000)
        .says("Committed as\ntwo commits.")
        .step(Step::Notice { from: "stderr".into(), text: "warning: \u{7}deprecated\n\n".into() })
        .step(Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage {
                tokens: Some(Tokens { input: 214, cache_read: 1020, output: 56, ..Tokens::default() }),
                cost_usd: Some(0.0123),
            },
            text: Some("Committed as two commits.".into()),
            result: None,
        })
        .ends(passed(&trials[0]))
        .starts(&trials[1], &["set the scene", "now push\nplease"])
        .after(5)
        .step(Step::UserMessage { index: 1, of: 2, text: "set the scene".into() })
        .says("Done.")
        .step(Step::UserMessage { index: 2, of: 2, text: "now push\nplease".into() })
        .calls("c5", "AskUserQuestion", json!({ "questions": [{ "question": "Force?" }] }))
        .asks("c5", "Force?", None)
        .answers("c5", "no answer", true)
        .step(Step::PermissionDenied { tool: "Write".into(), call_id: None, message: "not in the list".into() })
        .step(Step::RequestCheck { step: 2, met: false, reason: "expected a tool result, found none".into() })
        .after(2000)
        .ends(failed(&trials[1]))
        .starts(&trials[2], &["/commit"])
        .after(1000)
        .step(Step::Retry { attempt: 1, status: Some(529), error: "overloaded".into(), delay_ms: Some(1200) })
        .tell(Event::TrialRetried { reason: "the model provider answered 529".into() })
        .after(900)
        .ends(broken(&trials[2]))
        .over();
    story
}

/// Two jobs, two arms, two repetitions.
pub fn many_jobs() -> RunBuilder {
    let trials: Vec<TrialId> = ["claude-code:haiku", "claude-code:sonnet"]
        .iter()
        .flat_map(|arm| [1, 2].map(|repetition| id("splits-in-two", arm, repetition)))
        .collect();
    let mut story = RunBuilder::new(trials.clone(), 2);
    for pair in [[0, 1], [3, 2]] {
        for at in pair {
            story.after(1).starts(&trials[at], &["/commit"]).tell(Event::Waiting { on: "agent".into() });
        }
        for at in pair {
            let record = if at == 2 { failed(&trials[at]) } else { passed(&trials[at]) };
            story.after(1500).about(&trials[at]).calls("c1", "Bash", json!({ "command": "git status" })).ends(record);
        }
    }
    story.over();
    story
}
