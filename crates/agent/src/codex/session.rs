//! A conversation with the CLI: one process for each user message. Each process continues the thread of the previous
//! one.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use model::{Ending, Step, Tokens, Usage};
use sandbox::{BoxFuture, Sandbox};

use super::follower::Follower;
use super::launch::Launch;
use super::rollout::{Noted, Rollout};
use super::stream::{Done, Stream, Told};
use crate::lines::Line;
use crate::process::{Process, Said};
use crate::session::{Reply, Session};
use crate::turn::{Flow, Turn, WAITING_ON_PROVIDER};

/// Interval for reading the thread's file while stdout is silent. The agent may exceed its limits until the file shows
/// it.
const LOOK: Duration = Duration::from_millis(20);
/// Maximum number of stderr lines that are recorded as notices; further lines are only kept.
const MOST_NOTICES: usize = 100;
/// Notice that the CLI prints for every message on stdin.
const READING: &str = "Reading ";
/// Notice about calls that were refused. They are in the thread's file.
const REFUSED: &str = "codex_core::tools::router: error=";

/// An open conversation.
pub(super) struct Conversation {
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
    is_told: bool,
    /// True once an event on stdout could not be read.
    is_damaged: bool,
    notices: usize,
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
    /// Its stdout, because there are no such files.
    Stdout,
}

/// State of the message in progress.
#[derive(Default)]
struct Progress {
    /// Last text of the agent.
    answer: Option<String>,
    /// Usage according to the files.
    used: Option<Tokens>,
    /// Ending of its last turn; `None` while a turn is open.
    done: Option<Done>,
    /// Usage of its turns according to stdout.
    reported: Option<Tokens>,
    /// Ending with which the agent must be stopped.
    stop: Option<Ending>,
}

impl Conversation {
    /// Creates a conversation that is ready for the first message.
    pub(super) fn new(launch: Launch, sandbox: Arc<dyn Sandbox>) -> Self {
        Self {
            launch,
            sandbox,
            stream: Stream::default(),
            threads: Vec::new(),
            thread_id: None,
            source: None,
            model: None,
            version: None,
            is_told: false,
            is_damaged: false,
            notices: 0,
        }
    }

    async fn converse(&mut self, text: &str, turn: &mut Turn) -> Ending {
        if turn.turns_left() == 0 {
            return turn.out_of_turns();
        }
        let mut process = match self.start() {
            Ok(process) => process,
            Err(error) => {
                let program = self.launch.program.display();
                return Ending::Aborted { because: format!("cannot start {program}: {error}") };
            }
        };
        // The message goes to stdin, so that it cannot be too long for a command line or look like an option.
        process.say(text.to_owned());
        process.hush();
        turn.waiting("model");
        let mut progress = Progress::default();
        self.follow(&mut process, turn, &mut progress).await
    }

    fn start(&self) -> std::io::Result<Process> {
        let mut args: Vec<&OsStr> = self.launch.args.iter().map(OsStr::new).collect();
        if let Some(thread) = &self.thread_id {
            args.extend([OsStr::new("resume"), OsStr::new(thread)]);
        }
        args.push(OsStr::new("-"));
        Process::start(self.sandbox.command(self.launch.program.as_os_str(), &args, &self.launch.env))
    }

    /// Reads the output of the CLI until it has processed the message and ended.
    async fn follow(&mut self, process: &mut Process, turn: &mut Turn, progress: &mut Progress) -> Ending {
        let mut stopping = Box::pin(turn.stopping());
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_at_end = false;
        loop {
            let said = tokio::select! {
                biased;
                () = &mut stopping => {
                    self.interrupt(process, turn, progress).await;
                    return Ending::Cancelled;
                }
                said = process.listen() => Some(said),
                _ = look.tick() => None,
            };
            match said {
                None => self.look(turn, progress),
                Some(Said::Stderr(line)) => self.notice(&line, turn),
                Some(Said::Stdout(line)) => self.hear(&line, turn, progress),
                Some(Said::End) if progress.done.is_none() => {
                    let how = tokio::select! {
                        how = process.obituary() => how,
                        () = &mut stopping => {
                            self.interrupt(process, turn, progress).await;
                            return Ending::Cancelled;
                        }
                    };
                    self.look(turn, progress);
                    turn.exited(process.exit_code());
                    self.finish("aborted", None, turn, progress);
                    let because = format!("Codex ended without finishing its answer ({how})");
                    return progress.stop.take().unwrap_or(Ending::Aborted { because });
                }
                Some(Said::End) => is_at_end = true,
            }
            // It may start another turn after the first, so it is read until it closes its output.
            if (is_at_end || progress.stop.is_some())
                && let Some(done) = progress.done.take()
            {
                let ended = tokio::select! {
                    ended = process.end() => ended,
                    () = &mut stopping => {
                        self.interrupt(process, turn, progress).await;
                        return Ending::Cancelled;
                    }
                };
                turn.exited(ended.as_ref().ok().and_then(|status| status.code()));
                if matches!(&ended, Ok(status) if !status.success()) && matches!(done, Done::Answered { .. }) {
                    turn.warn("Codex answered, and ended with an error after that");
                }
                for line in process.take_dregs() {
                    self.notice(&line, turn);
                }
                self.look(turn, progress);
                return self.done(done, turn, progress);
            }
            if let Some(ending) = progress.stop.clone() {
                self.interrupt(process, turn, progress).await;
                return ending;
            }
        }
    }

    /// Reads a line of stdout.
    fn hear(&mut self, line: &Line, turn: &mut Turn, progress: &mut Progress) {
        keep("stdout", line, turn);
        self.is_damaged |= line.dropped > 0;
        let told = self.stream.read(&line.text);
        if let [Told::Thread(id)] = &told[..] {
            self.thread_id.get_or_insert_with(|| id.clone());
            if self.threads.is_empty() {
                self.threads.push(Thread {
                    id: id.clone(),
                    follower: Follower::of(&self.launch.home, id),
                    rollout: Rollout::default(),
                });
            }
        }
        self.look(turn, progress);
        for told in told {
            match told {
                Told::Thread(_) => {}
                Told::Aside(step) => self.act(step, turn, progress),
                Told::Act(step) => {
                    if self.source.is_none() {
                        self.source = Some(Source::Stdout);
                        turn.warn(
                            "Codex keeps no file of its thread where it was looked for: its model, and calls that never \
                             ran, are not known",
                        );
                    }
                    if self.source == Some(Source::Stdout) {
                        self.act(step, turn, progress);
                    }
                }
                Told::Begun => progress.done = None,
                Told::Done(how) => {
                    if let Done::Answered { tokens: Some(tokens) } = &how {
                        *progress.reported.get_or_insert_default() += *tokens;
                    }
                    progress.done = Some(how);
                }
                Told::Damaged => self.is_damaged = true,
            }
        }
    }

    /// Reads new lines in the files of the threads.
    fn look(&mut self, turn: &mut Turn, progress: &mut Progress) {
        if self.source == Some(Source::Stdout) {
            return;
        }
        let mut at = 0;
        while let Some(thread) = self.threads.get_mut(at) {
            let lines = thread.follower.next();
            if !lines.is_empty() {
                self.source = Some(Source::Files);
            }
            let noted: Vec<Noted> = lines.iter().flat_map(|line| thread.rollout.read(line)).collect();
            for noted in noted {
                self.note(noted, at == 0, turn, progress);
            }
            at += 1;
        }
    }

    fn note(&mut self, noted: Noted, is_own: bool, turn: &mut Turn, progress: &mut Progress) {
        match noted {
            Noted::Act(step) => self.act(step, turn, progress),
            Noted::Model(name) => {
                self.model.get_or_insert(name);
            }
            Noted::Version(version) => {
                self.version.get_or_insert(version);
            }
            // An answer in progress when a limit is reached is not counted: its arrival would depend on chance.
            Noted::Used(_) if matches!(progress.stop, Some(Ending::OutOfBudget { .. })) => {}
            Noted::Used(tokens) => {
                *progress.used.get_or_insert_default() += tokens;
                if let Flow::Stop(ending) = turn.uses(tokens) {
                    progress.stop.get_or_insert(ending);
                }
            }
            Noted::Spawned { thread, call } => {
                if self.threads.iter().all(|known| known.id != thread) {
                    let follower = Follower::of(&self.launch.home, &thread);
                    self.threads.push(Thread { id: thread, follower, rollout: Rollout::of_subagent(&call) });
                }
            }
            Noted::Damaged => {
                if let Flow::Stop(ending) = turn.unreadable("an entry in the file of Codex's thread cannot be read") {
                    progress.stop.get_or_insert(ending);
                }
            }
            Noted::Answered => {
                if is_own && progress.stop.is_none() && turn.turns_left() == 0 {
                    progress.stop = Some(turn.out_of_turns());
                }
            }
        }
    }

    fn act(&mut self, step: Step, turn: &mut Turn, progress: &mut Progress) {
        // Steps after the stop are not used for the verdict.
        if progress.stop.is_some() && !matches!(step, Step::ToolResult(_)) {
            return;
        }
        self.tell_session(turn);
        match &step {
            Step::ToolCall(_) => turn.waiting("tool"),
            Step::ToolResult(_) | Step::Thinking { .. } => turn.waiting("model"),
            Step::Text { text, parent, .. } => {
                turn.waiting("model");
                if parent.is_none() {
                    progress.answer = Some(text.clone());
                }
            }
            Step::Retry { .. } => turn.waiting(WAITING_ON_PROVIDER),
            _ => {}
        }
        if let Flow::Stop(ending) = turn.record(step) {
            progress.stop.get_or_insert(ending);
        }
    }

    /// Records the session once, when everything about it is known.
    fn tell_session(&mut self, turn: &mut Turn) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let _ = turn.record(Step::Session {
            session_id: self.thread_id.clone(),
            model: self.model.clone(),
            agent_version: self.version.clone(),
            tools: Vec::new(),
            auth: Some(self.launch.auth.to_owned()),
        });
    }

    fn done(&mut self, done: Done, turn: &mut Turn, progress: &mut Progress) -> Ending {
        // The file of the thread, if there is one, contains everything again.
        if self.is_damaged
            && self.source != Some(Source::Files)
            && let Flow::Stop(ending) = turn.unreadable("Codex printed an event that is not valid JSON")
        {
            progress.stop.get_or_insert(ending);
        }
        match done {
            Done::Answered { .. } => {
                let reported = progress.reported;
                self.finish("completed", reported, turn, progress);
                progress.stop.take().unwrap_or(Ending::Finished)
            }
            Done::GaveUp(because) => {
                self.finish("failed", None, turn, progress);
                progress.stop.take().unwrap_or(Ending::GaveUp { because })
            }
            // A provider failure takes precedence over a limit that was reached at the same time.
            Done::ProviderFailed(because) => {
                self.finish("failed", None, turn, progress);
                Ending::ProviderFailed { because }
            }
        }
    }

    /// Records the remaining steps after the process has ended. `tokens` is the usage that the process itself reported,
    /// without sub-agents.
    fn finish(&mut self, subtype: &str, tokens: Option<Tokens>, turn: &mut Turn, progress: &mut Progress) {
        if self.source == Some(Source::Files) {
            let left: Vec<Noted> = self.threads.iter_mut().flat_map(|thread| thread.rollout.settle()).collect();
            for noted in left {
                self.note(noted, false, turn, progress);
            }
        }
        self.tell_session(turn);
        let tokens = progress.used.or(tokens);
        let flow = turn.record(Step::Finished {
            subtype: subtype.to_owned(),
            is_error: subtype != "completed",
            usage: Usage { tokens, cost_usd: None },
            text: progress.answer.clone().filter(|_| subtype == "completed"),
            result: None,
        });
        if let Flow::Stop(ending) = flow {
            progress.stop.get_or_insert(ending);
        }
    }

    /// Ends the CLI and all processes it started, and records the usage so far.
    async fn interrupt(&mut self, process: &mut Process, turn: &mut Turn, progress: &mut Progress) {
        let _ = process.stop().await;
        // From here on only results and usage are recorded.
        progress.stop.get_or_insert(Ending::Cancelled);
        self.look(turn, progress);
        self.finish("interrupted", None, turn, progress);
    }

    fn notice(&mut self, line: &Line, turn: &mut Turn) {
        keep("stderr", line, turn);
        let text = line.text.trim_end();
        let is_about_stdin = text.starts_with(READING) && text.ends_with("from stdin...");
        let is_recorded = self.source == Some(Source::Files) && text.contains(REFUSED);
        if text.is_empty() || is_about_stdin || is_recorded || self.notices == MOST_NOTICES {
            return;
        }
        self.notices += 1;
        let text = model::text::shortened(text, 2000);
        let _ = turn.record(Step::Notice { from: "stderr".into(), text });
    }
}

impl Session for Conversation {
    fn send<'a>(&'a mut self, message: &'a model::UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Reply> {
        Box::pin(async move { Reply::ended(self.converse(&message.text, turn).await) })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        // No process outlives its message.
        Box::pin(std::future::ready(()))
    }
}

/// Keeps a line unchanged.
fn keep(stream: &str, line: &Line, turn: &mut Turn) {
    if line.dropped > 0 {
        turn.warn(format!(
            "a line of the agent's {stream} was too long to be understood and was not kept ({} bytes)",
            line.text.len() + line.dropped
        ));
    } else {
        turn.raw(stream, &line.text);
    }
}
