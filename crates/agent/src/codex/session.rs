//! A conversation with the CLI: one process per user message. Each process continues the thread of the previous one.

use std::sync::Arc;
use std::time::Duration;

use model::{Ending, Step, Tokens, Usage};
use sandbox::{BoxFuture, Sandbox};

use super::follower::Follower;
use super::launch::Launch;
use super::rollout::{Rollout, ThreadEvent};
use super::stream::{Stream, StreamEvent};
use crate::call_ids::MENTIONED;
use crate::lines::{Line, Notices};
use crate::process::{Output, Process};
use crate::session::Session;
use crate::turn::{SILENT, Turn, unless_stopped};

/// Interval for reading the thread's file while stdout is silent. The agent may exceed its limits until the file shows
/// it.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Notice that the CLI prints for every message on stdin.
const READING: &str = "Reading ";
/// Notice about calls that were refused. They are also in the thread's file.
const REFUSED: &str = "codex_core::tools::router: error=";

/// An open conversation.
pub(super) struct CodexSession {
    launch: Launch,
    sandbox: Arc<dyn Sandbox>,
    stream: Stream,
    /// Threads of the agent itself and of its sub-agents.
    threads: Vec<Thread>,
    thread_id: Option<String>,
    source: Option<Source>,
    model: Option<String>,
    version: Option<String>,
    /// True if the session was recorded.
    is_reported: bool,
    /// Event on stdout that could not be read, if any.
    unreadable: Option<&'static str>,
    notices: Notices,
}

/// File of a thread.
struct Thread {
    id: String,
    follower: Follower,
    rollout: Rollout,
}

/// Source of the agent's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The files of its threads.
    Files,
    /// The stdout of its process, because there are no such files.
    Stdout,
}

/// State of the message in progress.
#[derive(Default)]
struct Progress {
    /// Last text of the agent.
    answer: Option<String>,
    /// True if the model wrote text or called a tool.
    has_acted: bool,
    /// Usage according to the files.
    used: Option<Tokens>,
    /// Ending of the agent's last turn; `None` while a turn is open.
    done: Option<Result<Option<Tokens>, Ending>>,
    /// Usage of its turns according to stdout.
    reported: Option<Tokens>,
    /// Ending with which the agent must be stopped.
    stop: Option<Ending>,
}

impl Progress {
    /// Keeps the first ending with which the agent must stop.
    fn stops(&mut self, recorded: Result<(), Ending>) {
        if self.stop.is_none() {
            self.stop = recorded.err();
        }
    }

    /// Checks that a completed turn has an answer or a call.
    ///
    /// # Errors
    /// Returns the ending for a turn that has neither.
    fn answered(&self) -> Result<(), Ending> {
        match self.used.or(self.reported) {
            _ if self.has_acted => Ok(()),
            Some(tokens) if tokens.total() > 0 => Err(Ending::GaveUp { reason: SILENT.to_owned() }),
            _ => {
                let reason = "Codex reports a completed turn, but the model said nothing".to_owned();
                Err(Ending::Aborted { reason })
            }
        }
    }
}

impl CodexSession {
    /// Creates a conversation that is ready for the first message.
    pub(super) fn new(launch: Launch, sandbox: Arc<dyn Sandbox>, version: Option<String>) -> Self {
        Self {
            launch,
            sandbox,
            stream: Stream::default(),
            threads: Vec::new(),
            thread_id: None,
            source: None,
            model: None,
            version,
            is_reported: false,
            unreadable: None,
            notices: Notices::default(),
        }
    }

    async fn converse(&mut self, text: &str, turn: &mut Turn) -> Ending {
        if turn.turns_left() == 0 {
            return turn.out_of_turns();
        }
        let mut process = match self.start() {
            Ok(process) => process,
            Err(reason) => {
                let ending = Ending::Aborted { reason };
                turn.excuse(ending.clone());
                return ending;
            }
        };
        // The message goes to stdin, so that it can be neither too long for a command line nor mistaken for an option.
        process.write(text.to_owned());
        process.close_stdin();
        turn.waiting("model");
        let mut progress = Progress::default();
        self.follow(&mut process, turn, &mut progress).await
    }

    fn start(&self) -> Result<Process, String> {
        let resumed = self.thread_id.as_deref().map(|thread| ["resume", thread, "-"]);
        self.launch.invocation.start(self.sandbox.as_ref(), resumed.as_ref().map_or(&["-"], |more| &more[..]))
    }

    /// Reads the output of the CLI until it has processed the message and ended.
    async fn follow(&mut self, process: &mut Process, turn: &mut Turn, progress: &mut Progress) -> Ending {
        let ending = match self.read_output(process, turn, progress).await {
            Ok(ending) => return ending,
            Err(ending) => ending,
        };
        let _ = process.stop().await;
        // From here on, only results and usage are recorded.
        progress.stop.get_or_insert(Ending::Cancelled);
        self.poll_rollout(turn, progress);
        self.finish("interrupted", None, turn, progress);
        ending
    }

    /// Reads the output of the CLI until it has processed the message and ended.
    async fn read_output(
        &mut self,
        process: &mut Process,
        turn: &mut Turn,
        progress: &mut Progress,
    ) -> Result<Ending, Ending> {
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_at_end = false;
        loop {
            let output = tokio::select! {
                biased;
                () = turn.stopping() => return Err(Ending::Cancelled),
                output = process.next_output() => Some(output),
                _ = poll.tick() => None,
            };
            match output {
                None => self.poll_rollout(turn, progress),
                Some(Output::Stderr(line)) => self.notice(&line, turn),
                Some(Output::Stdout(line)) => self.handle_line(&line, turn, progress),
                Some(Output::End) if progress.done.is_none() => {
                    let how = unless_stopped(turn.stopping(), process.describe_end()).await?;
                    self.poll_rollout(turn, progress);
                    turn.exited(process.exit_code());
                    self.finish("aborted", None, turn, progress);
                    let reason = format!("Codex ended without finishing its answer ({how})");
                    return Ok(progress.stop.take().unwrap_or(Ending::Aborted { reason }));
                }
                Some(Output::End) => is_at_end = true,
            }
            // Another turn may follow the first, so output is read until it is closed.
            if (is_at_end || progress.stop.is_some())
                && let Some(done) = progress.done.take()
            {
                let ended = unless_stopped(turn.stopping(), process.end()).await?;
                turn.exited(process.exit_code());
                if matches!(&ended, Ok(status) if !status.success()) && done.is_ok() {
                    turn.warn("Codex answered, and ended with an error after that");
                }
                for line in process.take_late_stderr() {
                    self.notice(&line, turn);
                }
                self.poll_rollout(turn, progress);
                return Ok(self.done(done, turn, progress));
            }
            if let Some(ending) = progress.stop.clone() {
                return Err(ending);
            }
        }
    }

    /// Reads a line of stdout.
    fn handle_line(&mut self, line: &Line, turn: &mut Turn, progress: &mut Progress) {
        line.keep("stdout", turn);
        if line.dropped > 0 {
            self.unreadable.get_or_insert("a line that is too long");
        }
        let events = self.stream.read(&line.text);
        if let [StreamEvent::Thread(id)] = &events[..] {
            self.thread_id.get_or_insert_with(|| id.clone());
            if self.threads.is_empty() {
                self.threads.push(Thread {
                    id: id.clone(),
                    follower: Follower::new(&self.launch.home, id),
                    rollout: Rollout::default(),
                });
            }
        }
        self.poll_rollout(turn, progress);
        for event in events {
            match event {
                StreamEvent::Thread(_) => {}
                StreamEvent::StdoutOnly(step) => self.act(step, turn, progress),
                StreamEvent::Step(step) => {
                    if self.source.is_none() {
                        self.source = Some(Source::Stdout);
                        turn.warn(
                            "the file of Codex's thread was not found, so its model and the calls that never ran are \
                             unknown",
                        );
                    }
                    if self.source == Some(Source::Stdout) {
                        self.act(step, turn, progress);
                    }
                }
                StreamEvent::TurnStarted => progress.done = None,
                StreamEvent::Done(how) => {
                    if let Ok(Some(tokens)) = &how {
                        *progress.reported.get_or_insert_default() += *tokens;
                    }
                    // If a turn has failed, a later event does not complete it.
                    if !matches!(progress.done, Some(Err(_))) {
                        progress.done = Some(how);
                    }
                }
                StreamEvent::Unreadable(what) => {
                    self.unreadable.get_or_insert(what);
                }
                StreamEvent::TooDeep => progress.stops(Err(turn.too_deep())),
            }
        }
    }

    /// Reads new lines in the files of the threads.
    fn poll_rollout(&mut self, turn: &mut Turn, progress: &mut Progress) {
        if self.source == Some(Source::Stdout) {
            return;
        }
        let mut index = 0;
        while let Some(thread) = self.threads.get_mut(index) {
            let lines = thread.follower.next();
            if !lines.is_empty() {
                self.source = Some(Source::Files);
            }
            let events: Vec<ThreadEvent> = lines.iter().flat_map(|line| thread.rollout.read(line)).collect();
            for event in events {
                self.note(event, index == 0, turn, progress);
            }
            index += 1;
        }
    }

    fn note(&mut self, event: ThreadEvent, is_own: bool, turn: &mut Turn, progress: &mut Progress) {
        match event {
            ThreadEvent::Step(step) => self.act(step, turn, progress),
            ThreadEvent::Model(name) => {
                self.model.get_or_insert(name);
            }
            ThreadEvent::Version(version) => {
                self.version.get_or_insert(version);
            }
            // A response in progress when a limit is reached is not counted, because its arrival would depend on
            // chance.
            ThreadEvent::Used(_) if matches!(progress.stop, Some(Ending::OutOfBudget { .. })) => {}
            ThreadEvent::Used(tokens) => {
                *progress.used.get_or_insert_default() += tokens;
                progress.stops(turn.uses(tokens));
            }
            ThreadEvent::Spawned { thread, call } => {
                if self.threads.iter().all(|known| known.id != thread) {
                    let follower = Follower::new(&self.launch.home, &thread);
                    self.threads.push(Thread { id: thread, follower, rollout: Rollout::of_subagent(&call) });
                }
            }
            ThreadEvent::Damaged => {
                progress.stops(turn.unreadable("an entry in the file of Codex's thread cannot be read"));
            }
            ThreadEvent::TooDeep => progress.stops(Err(turn.too_deep())),
            ThreadEvent::Answered => {
                if is_own && progress.stop.is_none() && turn.turns_left() == 0 {
                    progress.stop = Some(turn.out_of_turns());
                }
            }
        }
    }

    fn act(&mut self, step: Step, turn: &mut Turn, progress: &mut Progress) {
        // Steps after the stop do not affect the verdict.
        if progress.stop.is_some() && !matches!(step, Step::ToolResult(_)) {
            return;
        }
        self.tell_session(turn);
        progress.has_acted |= match &step {
            Step::Text { .. } => true,
            Step::ToolCall(call) => call.raw_name != MENTIONED,
            _ => false,
        };
        if let Step::Text { text, parent: None, .. } = &step {
            progress.answer = Some(text.clone());
        }
        progress.stops(turn.follow(step));
    }

    /// Records the session once, when everything about it is known.
    fn tell_session(&mut self, turn: &mut Turn) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        let _ = turn.record(Step::Session {
            session_id: self.thread_id.clone(),
            model: self.model.clone(),
            agent_version: self.version.clone(),
            tools: Vec::new(),
            auth: Some(self.launch.invocation.auth.to_owned()),
        });
    }

    fn done(&mut self, done: Result<Option<Tokens>, Ending>, turn: &mut Turn, progress: &mut Progress) -> Ending {
        // If the thread has a file, it contains all of this too.
        if let Some(what) = self.unreadable.filter(|_| self.source != Some(Source::Files)) {
            progress.stops(turn.unreadable(&format!("Codex printed {what}")));
        }
        self.settle(turn, progress);
        match done.and_then(|_| progress.answered()) {
            Ok(()) => {
                let reported = progress.reported;
                self.finish("completed", reported, turn, progress);
                progress.stop.take().unwrap_or(Ending::Finished)
            }
            Err(ending) => {
                self.finish("failed", None, turn, progress);
                // A provider failure takes precedence over a limit that was reached at the same time.
                progress.stop.take().filter(|_| !matches!(ending, Ending::ProviderFailed { .. })).unwrap_or(ending)
            }
        }
    }

    /// Records the remaining steps after the process has ended. `tokens` is the usage that the process itself
    /// reported, without sub-agents.
    fn finish(&mut self, subtype: &str, tokens: Option<Tokens>, turn: &mut Turn, progress: &mut Progress) {
        self.settle(turn, progress);
        self.tell_session(turn);
        let tokens = progress.used.or(tokens);
        progress.stops(turn.record(Step::Finished {
            subtype: subtype.to_owned(),
            is_error: subtype != "completed",
            usage: Usage { tokens, cost_usd: None },
            text: progress.answer.clone().filter(|_| subtype == "completed"),
            result: None,
        }));
    }

    /// Records the steps that are still open in the files of the threads.
    fn settle(&mut self, turn: &mut Turn, progress: &mut Progress) {
        if self.source == Some(Source::Files) {
            let left: Vec<ThreadEvent> = self.threads.iter_mut().flat_map(|thread| thread.rollout.settle()).collect();
            for event in left {
                self.note(event, false, turn, progress);
            }
        }
    }

    fn notice(&mut self, line: &Line, turn: &mut Turn) {
        line.keep("stderr", turn);
        let text = line.text.trim_end();
        let is_about_stdin = text.starts_with(READING) && text.ends_with("from stdin...");
        let is_recorded = self.source == Some(Source::Files) && text.contains(REFUSED);
        if !is_about_stdin && !is_recorded {
            let _ = self.notices.record("stderr", text, turn);
        }
    }
}

impl Session for CodexSession {
    fn send<'a>(&'a mut self, message: &'a model::UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move { self.converse(&message.text, turn).await })
    }
}
