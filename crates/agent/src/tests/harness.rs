//! Test context for agents: a case, directories like those of a sandbox, and a turn that keeps the events.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

use grade::Responder;
use model::{
    Arm, Case, Collected, Ending, Event, Excerpt, Limits, PermissionMode, Source, Span, Spanned, Step, TrialId,
    UserMessage, UserResponse,
};
use sandbox::{BoxFuture, Breakage, Host, Sandbox, SandboxCopy, SandboxError};
use tokio::sync::watch;

use crate::activity::Activity;
use crate::event_sink::EventSink;
use crate::resolve::Resolver;
use crate::server::{Connection, Server};
use crate::turn::Turn;
use crate::{Agent, CaseContext, Configured, Endpoint, RunState, SessionContext, Setup};
use sandbox::supervise::Supervisor;

/// Creates a case `id` with the user messages `messages`.
pub(crate) fn case(id: &str, messages: &[&str]) -> Case {
    Case {
        messages: messages.iter().map(|text| UserMessage::text(*text)).collect(),
        ..Case::new(id, Excerpt::of_file("case.yaml"))
    }
}

/// Creates an agent configured by a project in `directory`.
pub(crate) fn configured(config: &serde_json::Value, directory: &Path) -> Arc<Configured> {
    let node = model::Node::from_json(config, &Source::new("agent.yaml", ""));
    Arc::new(Configured {
        name: "own".into(),
        node,
        directory: directory.to_owned(),
        is_filled: true,
        is_of_suite: false,
    })
}

/// Creates a prepared answer.
pub(crate) fn response(pattern: &str, choose: &str) -> UserResponse {
    UserResponse {
        match_question: Spanned::new(pattern.to_owned(), Span::default()),
        choose: choose.to_owned(),
        source: Excerpt::of_file("case.yaml"),
    }
}

/// Creates a scripted model.
fn script(script: &serde_json::Value) -> Arc<llm::Playback> {
    let node = model::Node::from_json(script, &Source::new("script.json", ""));
    let script = Arc::new(llm::Script::from_node(&node).unwrap());
    Arc::new(script.play(llm::ScriptContext::default()))
}

/// Directories like those of a sandbox, without supervision of commands.
pub(crate) struct Bare {
    dir: tempfile::TempDir,
    work: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
}

impl Bare {
    pub(crate) fn new() -> Arc<Self> {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let make = |name: &str| {
            let path = base.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        Arc::new(Self { work: make("work"), home: make("home"), tmp: make("tmp"), dir })
    }

    /// Returns a path next to the sandbox's own directories.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.work.join(path)).unwrap()
    }
}

impl Sandbox for Bare {
    fn work(&self) -> &Path {
        &self.work
    }

    fn home(&self) -> &Path {
        &self.home
    }

    fn tmp(&self) -> &Path {
        &self.tmp
    }

    fn env(&self, extra: &[(String, String)]) -> BTreeMap<String, String> {
        let own = [("HOME", &self.home), ("TMPDIR", &self.tmp)];
        let own = own.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()));
        let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        own.into_iter().chain([path]).chain(extra.iter().cloned()).collect()
    }

    fn command(&self, program: &OsStr, args: &[&OsStr], extra: &[(String, String)]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(program);
        command.args(args).env_clear().envs(self.env(extra)).current_dir(&self.work);
        command
    }

    fn collect(&self) -> BoxFuture<'_, Result<Collected, SandboxError>> {
        Box::pin(std::future::ready(Ok(Collected::default())))
    }

    fn patch<'s>(&'s self, _collected: &'s Collected) -> BoxFuture<'s, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn copy(&self) -> BoxFuture<'_, Result<SandboxCopy, SandboxError>> {
        Box::pin(std::future::ready(Err(SandboxError::Ending)))
    }

    fn close(&self) -> BoxFuture<'_, Result<(), SandboxError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// State of the run to which all harnesses belong.
static STATE: LazyLock<Arc<RunState>> = LazyLock::new(new_run);

/// Returns the state of the run to which all harnesses belong.
pub(crate) fn run_state() -> Arc<RunState> {
    Arc::clone(&STATE)
}

/// Returns the state of another run.
pub(crate) fn new_run() -> Arc<RunState> {
    Arc::new(RunState::new(script::Library::default(), &std::path::absolute(".").unwrap(), mask::Secrets::default()))
}

/// One agent, one case, and the events of their conversation.
pub(crate) struct AgentHarness {
    pub(crate) case: Case,
    pub(crate) argument: Option<String>,
    pub(crate) config: Option<Arc<Configured>>,
    /// Folder of the suite.
    pub(crate) directory: Arc<Path>,
    pub(crate) position: usize,
    pub(crate) repetition: u64,
    pub(crate) sandbox: Option<Arc<Bare>>,
    pub(crate) endpoint: Endpoint,
    /// Scripted model, if there is one.
    pub(crate) playback: Option<Arc<llm::Playback>>,
    pub(crate) providers: llm::Providers,
    pub(crate) state: Arc<RunState>,
    pub(crate) setup: Setup,
    pub(crate) limits: Limits,
    pub(crate) host: Host,
    /// Address from which the sandbox's repository was cloned.
    pub(crate) source_repo: Option<String>,
    /// Stops the trial when it is set to `true`.
    pub(crate) stop: watch::Sender<bool>,
}

/// Result of a run of the harness.
pub(crate) struct TestRun {
    pub(crate) turn: Turn,
    /// Ending for each message that was sent.
    pub(crate) endings: Vec<Ending>,
    events: KeptEvents,
}

impl AgentHarness {
    pub(crate) fn for_case(case: Case) -> Self {
        Self {
            case,
            argument: None,
            config: None,
            directory: Path::new(".").into(),
            position: 0,
            repetition: 1,
            sandbox: None,
            endpoint: Endpoint::Vendor { base_url: None },
            playback: None,
            providers: llm::Providers::default(),
            state: run_state(),
            setup: Setup {
                model: None,
                system_prompt: None,
                permission_mode: PermissionMode::BypassPermissions,
                closed_tools: None,
                approved_tools: Vec::new(),
                setting_sources: Vec::new(),
                reasoning_effort: None,
                max_turns: None,
                timeout_ms: 600_000,
            },
            limits: Limits { timeout_ms: 600_000, ..Limits::default() },
            host: Host {
                env: BTreeMap::new(),
                home: None,
                temp: std::env::temp_dir(),
                supervisor: Supervisor::unchecked("/none").unwrap(),
            },
            source_repo: None,
            stop: watch::channel(false).0,
        }
    }

    /// Creates a harness for an agent's program, with `env` as its environment and with `model`.
    pub(crate) fn for_program(env: &[(&str, &str)], model: &str, endpoint: Endpoint) -> Self {
        let sandbox = Bare::new();
        let mut harness = Self { endpoint, ..Self::for_case(case("case", &["hello"])) };
        harness.host.env = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        harness.host.home = Some(sandbox.outside("real"));
        (harness.setup.model, harness.setup.max_turns) = (Some(model.into()), Some(7));
        harness.sandbox = Some(sandbox);
        harness
    }

    /// Creates a harness with a stand-in for an agent's program that prints `lines`. `variable` names the program.
    pub(crate) fn of_printed(variable: &str, lines: &[&str]) -> Self {
        let mut harness = Self::for_program(&[], "vendor/m", Self::gateway());
        let program = harness.bare().outside("program");
        let text = format!("#!/bin/sh\ncat > /dev/null\ncat <<'END'\n{}\nEND\n", lines.join("\n"));
        // Another process writes it: a file that is open for writing, even in a child process of another test, cannot
        // be executed.
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""]).arg(&program).arg(text);
        assert!(shell.status().unwrap().success());
        harness.host.env.insert(variable.into(), program.to_string_lossy().into_owned());
        harness
    }

    /// Returns the endpoint of a scripted model at the gateway.
    pub(crate) fn gateway() -> Endpoint {
        Endpoint::Gateway { base_url: "http://127.0.0.1:1".into(), token: "trialrun-test".into() }
    }

    /// Creates a harness with a scripted model, a sandbox and the message `message`.
    pub(crate) fn scripted(message: &str, steps: &serde_json::Value) -> Self {
        let playback = script(&match steps.as_array().map(Vec::as_slice) {
            // A script without steps is invalid, so one that is never used is added.
            Some([]) => serde_json::json!({ "steps": [{ "text": "unused" }] }),
            _ => serde_json::json!({ "steps": steps }),
        });
        Self {
            sandbox: Some(Bare::new()),
            endpoint: Endpoint::Script { model: playback.clone(), name: playback.name().to_owned() },
            playback: Some(playback),
            ..Self::for_case(case("case", &[message]))
        }
    }

    /// Stops the agent after this number of turns.
    pub(crate) fn stop_after(&mut self, turns: u64) {
        (self.limits.max_turns, self.limits.max_turns_set) = (turns, true);
    }

    pub(crate) fn bare(&self) -> Arc<Bare> {
        Arc::clone(self.sandbox.as_ref().unwrap())
    }

    /// Returns the problems that the agent finds before anything runs.
    pub(crate) fn check(&self, agent: &dyn Agent) -> Vec<String> {
        let arm = Arm { agent: "agent".into(), model: self.setup.model.clone(), variant: None };
        let context = CaseContext {
            case: &self.case,
            arm: &arm,
            argument: self.argument.as_deref(),
            config: self.config.as_deref(),
            directory: &self.directory,
            position: self.position,
            cases: self.position + 1,
            model_source: None,
            base_url: None,
            providers: &self.providers,
            state: &self.state,
        };
        agent.check(&context).iter().map(ToString::to_string).collect()
    }

    pub(crate) fn session_context(&self) -> SessionContext {
        let arm = Arm { agent: "agent".into(), model: None, variant: None };
        SessionContext {
            model_variables: Vec::new(),
            servers: Arc::default(),
            conversation: None,
            trial: TrialId {
                suite: "suite".into(),
                case: self.case.id.as_str().into(),
                arm: arm.to_string().into(),
                repetition: self.repetition,
            },
            case: Arc::new(self.case.clone()),
            arm: arm.into(),
            argument: self.argument.as_deref().map(Arc::from),
            config: self.config.clone(),
            directory: Arc::clone(&self.directory),
            position: self.position,
            sandbox: self.sandbox.clone().map(|sandbox| sandbox as Arc<dyn Sandbox>),
            host: Arc::new(self.host.clone()),
            setup: self.setup.clone().into(),
            limits: self.limits.clone().into(),
            source_repo: self.source_repo.clone(),
            endpoint: self.endpoint.clone(),
            providers: self.providers.clone(),
            state: Arc::clone(&self.state),
        }
    }

    /// Begins a conversation without an agent, whose first message has been sent.
    pub(crate) fn begun(&self) -> TestRun {
        let events = KeptEvents::default();
        let mut turn = self.turn(&events);
        let _ = turn.record(Step::UserMessage { index: 1, of: 1, text: "go".to_owned() });
        TestRun { turn, endings: Vec::new(), events }
    }

    fn turn(&self, events: &KeptEvents) -> Turn {
        let (responder, problems) = Responder::compile(&self.case.user_responses);
        assert!(problems.is_empty());
        let place = |path: fn(&Bare) -> &PathBuf| self.sandbox.as_deref().map(|sandbox| path(sandbox).clone());
        let resolver = Resolver { work: place(|sandbox| &sandbox.work), home: place(|sandbox| &sandbox.home) };
        Turn::new(
            Box::new(events.clone()),
            self.limits.clone().into(),
            responder,
            resolver,
            Arc::new(Activity::default()),
            self.stop.subscribe(),
        )
    }

    /// Plays the whole conversation.
    pub(crate) async fn play(&self, agent: &dyn Agent) -> Result<TestRun, Breakage> {
        let events = KeptEvents::default();
        let mut turn = self.turn(&events);
        let mut session = agent.open(self.session_context()).await?;
        let mut endings = Vec::new();
        for (index, message) in self.case.messages.iter().enumerate() {
            let (index, of) = (index + 1, self.case.messages.len());
            let _ = turn.record(Step::UserMessage { index, of, text: message.text.clone() });
            turn.message_begins();
            let ending = session.send(message, &mut turn).await;
            endings.push(turn.message_ends(ending));
            if endings.last() != Some(&Ending::Finished) {
                break;
            }
        }
        session.close().await;
        Ok(TestRun { turn, endings, events })
    }
}

/// Sink that keeps the events.
#[derive(Clone, Default)]
pub(crate) struct KeptEvents(Arc<Mutex<Vec<Event>>>);

impl KeptEvents {
    /// Takes the events so far.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl EventSink for KeptEvents {
    fn send(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

impl TestRun {
    /// Returns all recorded steps.
    pub(crate) fn steps(&mut self) -> Vec<Step> {
        self.events
            .take()
            .into_iter()
            .filter_map(|event| match event {
                Event::Step(step) => Some(step),
                _ => None,
            })
            .collect()
    }

    /// Returns all events as text, including the agent's own output.
    pub(crate) fn describe(&mut self) -> String {
        self.events.take().iter().map(|event| format!("{event:?}\n")).collect()
    }

    /// Returns each call as its name, its result and `true` if that is an error.
    pub(crate) fn calls(&self) -> Vec<(&str, &str, bool)> {
        self.turn
            .trace()
            .calls
            .iter()
            .map(|call| match &call.result {
                Some(done) => (call.call.name.as_str(), done.content.as_str(), done.is_error),
                None => (call.call.name.as_str(), "(none)", false),
            })
            .collect()
    }

    pub(crate) fn answer(&self) -> Option<&str> {
        self.turn.trace().answer.as_deref()
    }

    pub(crate) fn tokens(&self) -> Option<u64> {
        self.turn.trace().usage.tokens.map(|tokens| tokens.total())
    }
}

/// Returns a server that is the program `/bin/NAME`.
pub(crate) fn server(name: &str) -> Server {
    let connection = Connection::Stdio { command: format!("/bin/{name}"), args: Vec::new(), env: Vec::new() };
    Server { name: name.to_owned(), connection, tools: None }
}
