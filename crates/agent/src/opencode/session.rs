//! A conversation with OpenCode: one process for each user message, which continues the session of the previous one.

use std::ffi::OsStr;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use model::{Ending, Step, UserMessage};
use sandbox::{BoxFuture, Sandbox, supervise};

use super::event::{About, Done, Heard, Interpreter, SubAgent};
use super::launch::Launch;
use super::log;
use crate::lines::Line;
use crate::process::{Process, Said};
use crate::session::{Reply, Session};
use crate::turn::{Flow, Turn, WAITING_ON_PROVIDER};

/// Maximum number of stderr lines that are recorded as notices; further lines are only kept.
const MOST_NOTICES: usize = 100;
/// Maximum length of a line in a notice, in characters.
const LONGEST_NOTICE: usize = 2000;
/// Timeout for OpenCode to end after it has answered.
const TO_LEAVE: Duration = Duration::from_secs(30);
/// Timeout for exporting the session of a sub-agent.
const TO_EXPORT: Duration = Duration::from_secs(120);
/// Warning if that session could not be read.
const UNREAD: &str = "what a sub-agent of OpenCode's did could not be read: its calls and tokens are missing";
/// Maximum size of a sub-agent's session, in bytes.
const LARGEST_EXPORT: usize = 32 << 20;

/// An open conversation.
pub(super) struct Conversation {
    launch: Launch,
    sandbox: Arc<dyn Sandbox>,
    about: About,
    session_id: Option<String>,
    notices: usize,
    /// Number of consecutive failed requests.
    failures: u64,
}

impl Conversation {
    /// Creates a conversation without starting a process.
    pub(super) fn new(launch: Launch, sandbox: Arc<dyn Sandbox>, version: Option<String>) -> Self {
        let about = About { model: launch.model.clone(), version, auth: launch.auth.to_owned() };
        Self { launch, sandbox, about, session_id: None, notices: 0, failures: 0 }
    }

    async fn converse(&mut self, text: &str, turn: &mut Turn) -> Ending {
        if turn.turns_left() == 0 {
            return turn.out_of_turns();
        }
        let mut process = match self.start() {
            Ok(process) => process,
            Err(error) => {
                let because = format!("cannot start {}: {error}", self.launch.program.display());
                return Ending::Unreachable { because };
            }
        };
        process.say(text.to_owned());
        process.hush();
        turn.waiting("model");
        self.failures = 0;
        let mut interpreter = Interpreter::new(self.about.clone(), self.session_id.take());
        let followed = self.follow(&mut process, &mut interpreter, turn).await;
        self.session_id = interpreter.session_id().map(str::to_owned);
        let ended = match followed {
            Ok(ended) => {
                self.visit_sub_agents(&mut interpreter, turn).await;
                Ok(ended)
            }
            Err(ending) => {
                let _ = process.stop().await;
                if !interpreter.take_sub_agents().is_empty() {
                    turn.warn(UNREAD);
                }
                Err(ending)
            }
        };
        let (steps, done) = interpreter.end();
        let mut stop = None;
        for step in steps {
            if let Flow::Stop(ending) = turn.record(step) {
                stop.get_or_insert(ending);
            }
        }
        turn.exited(ended.as_ref().ok().and_then(|status| status.as_ref()?.code()));
        match ended {
            Err(ending) => ending,
            Ok(ended) => match self.ending(done, ended, &mut process).await {
                // A provider failure takes precedence over a limit that was reached at the same time.
                ending @ (Ending::ProviderFailed { .. } | Ending::Unreachable { .. }) => ending,
                ending => stop.unwrap_or(ending),
            },
        }
    }

    fn start(&self) -> std::io::Result<Process> {
        let mut args: Vec<&OsStr> = self.launch.args.iter().map(OsStr::new).collect();
        if let Some(session) = &self.session_id {
            args.extend([OsStr::new("--session"), OsStr::new(session)]);
        }
        Process::start(self.sandbox.command(self.launch.program.as_os_str(), &args, &self.launch.env))
    }

    /// Reads the process's output to its end. Returns an ending only if the process was stopped before that.
    async fn follow(
        &mut self,
        process: &mut Process,
        interpreter: &mut Interpreter,
        turn: &mut Turn,
    ) -> Result<Option<ExitStatus>, Ending> {
        let mut stopping = Box::pin(turn.stopping());
        let mut has_answered = false;
        loop {
            let said = tokio::select! {
                biased;
                () = &mut stopping => return Err(Ending::Cancelled),
                said = process.listen() => said,
                // It has answered but does not end by itself.
                () = tokio::time::sleep(TO_LEAVE), if has_answered => {
                    let _ = process.stop().await;
                    return Ok(None);
                }
            };
            match said {
                Said::Stderr(line) => self.hear_stderr(&line, turn)?,
                Said::Stdout(line) => {
                    keep("stdout", &line, turn);
                    if line.dropped > 0 {
                        turn.unreadable("OpenCode printed a line that is too long").go()?;
                    }
                    for heard in interpreter.read(&line.text) {
                        has_answered = matches!(heard, Heard::Complete { goes_on: false, .. });
                        self.hear(heard, turn)?;
                    }
                }
                Said::End => {
                    let ended = tokio::select! {
                        biased;
                        () = &mut stopping => return Err(Ending::Cancelled),
                        ended = process.end() => ended,
                    };
                    for line in process.take_dregs() {
                        self.hear_stderr(&line, turn)?;
                    }
                    return Ok(ended.ok());
                }
            }
        }
    }

    fn hear(&mut self, heard: Heard, turn: &mut Turn) -> Result<(), Ending> {
        match heard {
            Heard::Step(step) => turn.record(step).go(),
            Heard::Unreadable(what) => turn.unreadable(&format!("OpenCode printed {what}")).go(),
            Heard::Begun => {
                self.failures = 0;
                turn.waiting("model");
                if turn.turns_left() == 0 { Err(turn.out_of_turns()) } else { Ok(()) }
            }
            Heard::Complete { goes_on, tokens } => {
                turn.uses(tokens).go()?;
                // It would send the next request to its model at once.
                if goes_on && turn.turns_left() == 0 { Err(turn.out_of_turns()) } else { Ok(()) }
            }
        }
    }

    fn hear_stderr(&mut self, line: &Line, turn: &mut Turn) -> Result<(), Ending> {
        keep("stderr", line, turn);
        match log::Said::read(&line.text) {
            log::Said::Failed(error) => {
                self.failures += 1;
                turn.waiting(WAITING_ON_PROVIDER);
                turn.record(Step::Retry { attempt: self.failures, status: None, error, delay_ms: None }).go()
            }
            log::Said::Plain(text) if !text.is_empty() && self.notices < MOST_NOTICES => {
                self.notices += 1;
                let text = model::text::shortened(&text, LONGEST_NOTICE);
                turn.record(Step::Notice { from: "stderr".to_owned(), text }).go()
            }
            log::Said::Plain(_) | log::Said::Log => Ok(()),
        }
    }

    /// Records the steps of sub-agents. The events do not contain them, so their sessions are exported.
    async fn visit_sub_agents(&self, interpreter: &mut Interpreter, turn: &mut Turn) {
        let mut agents = interpreter.take_sub_agents();
        while let Some(agent) = agents.pop() {
            let steps = match self.export(&agent, turn).await {
                Some(export) => interpreter.read_sub_agent(&agent, &export),
                None => None,
            };
            let Some(steps) = steps else {
                turn.warn(UNREAD);
                continue;
            };
            for step in steps {
                let _ = turn.record(step);
            }
            agents.extend(interpreter.take_sub_agents());
        }
    }

    async fn export(&self, agent: &SubAgent, turn: &Turn) -> Option<String> {
        let args = ["export", &agent.session].map(OsStr::new);
        let command = self.sandbox.command(self.launch.program.as_os_str(), &args, &self.launch.env);
        let output = tokio::select! {
            biased;
            () = turn.stopping() => return None,
            output = supervise::run(command, TO_EXPORT, LARGEST_EXPORT) => output.ok()?,
        };
        output.status.success().then(|| output.stdout.text())
    }

    async fn ending(&self, done: Done, ended: Option<ExitStatus>, process: &mut Process) -> Ending {
        let has_failed = ended.is_some_and(|status| !status.success());
        match done {
            Done::Answered if !has_failed => Ending::Finished,
            Done::Answered => {
                Ending::GaveUp { because: format!("it answered and then failed ({})", process.obituary().await) }
            }
            Done::GaveUp(because) => Ending::GaveUp { because },
            Done::ProviderFailed(because) => Ending::ProviderFailed { because },
            Done::Unfinished(because) => {
                let how = process.obituary().await;
                match process.trouble() {
                    Some(trouble) => Ending::Unreachable { because: trouble.to_owned() },
                    None => Ending::Aborted {
                        because: format!("OpenCode ended without finishing its answer: {because} ({how})"),
                    },
                }
            }
        }
    }
}

impl Session for Conversation {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Reply> {
        Box::pin(async move { Reply::ended(self.converse(&message.text, turn).await) })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        // Every process has ended with the message that it was started for.
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use model::{Budget, Diagnostic};
    use serde_json::{Value, json};

    use super::*;
    use crate::rehearsal::{Bare, Played, Rehearsal, case};
    use crate::{Agent, CaseContext, Description, SessionContext};
    use sandbox::Breakage;

    /// An agent whose program is a shell script.
    struct Stub(std::path::PathBuf);

    impl Agent for Stub {
        fn description(&self) -> &Description {
            const { &Description::new("stub", "a stub") }
        }

        fn check(&self, _part: &CaseContext<'_>) -> Vec<Diagnostic> {
            Vec::new()
        }

        fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
            let launch = Launch {
                program: self.0.clone(),
                args: vec!["run".into()],
                env: Vec::new(),
                model: None,
                auth: "scripted",
            };
            let session = Conversation::new(launch, context.sandbox.unwrap(), Some("1.0.0".into()));
            Box::pin(std::future::ready(Ok(Box::new(session) as Box<dyn Session>)))
        }
    }

    /// Runs a program that prints `script`, or executes it if it is shell code.
    async fn play(messages: &[&str], max_turns: u64, script: &str) -> Played {
        let mut rehearsal = Rehearsal { sandbox: Some(Bare::new()), ..Rehearsal::of(case("case", messages)) };
        rehearsal.stop_after(max_turns);
        let program = rehearsal.bare().outside("opencode");
        write_program(&program, script);
        rehearsal.play(&Stub(program)).await.unwrap()
    }

    fn write_program(path: &Path, script: &str) {
        std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns a command that prints an event.
    fn tell(kind: &str, message: &str, part: &Value) -> String {
        let own = match kind {
            "tool_use" => "tool",
            kind => kind,
        };
        let mut whole = json!({"id": "p", "messageID": message, "type": own});
        whole.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        let event = json!({"type": kind, "sessionID": "ses_1", "part": whole});
        format!("cat <<'END'\n{event}\nEND\n")
    }

    fn call(message: &str) -> String {
        let part =
            json!({"tool": "bash", "callID": message, "state": {"status": "completed", "input": {}, "output": ""}});
        tell("step_start", message, &json!({}))
            + &tell("tool_use", message, &part)
            + &tell("step_finish", message, &json!({"reason": "tool-calls", "tokens": {"input": 10, "output": 1}}))
    }

    fn answer(message: &str, text: &str) -> String {
        tell("step_start", message, &json!({}))
            + &tell("text", message, &json!({ "text": text }))
            + &tell("step_finish", message, &json!({"reason": "stop", "tokens": {"input": 10, "output": 1}}))
    }

    #[tokio::test]
    async fn each_message_is_given_on_stdin_and_goes_on_with_the_session_of_the_one_before() {
        let script = format!("echo \"$@\" >> args\ncat >> said\necho >> said\n{}", answer("m1", "hi"));
        let mut rehearsal =
            Rehearsal { sandbox: Some(Bare::new()), ..Rehearsal::of(case("case", &["--help\n\"me\"", "$HOME"])) };
        rehearsal.stop_after(5);
        let program = rehearsal.bare().outside("opencode");
        write_program(&program, &script);
        let played = rehearsal.play(&Stub(program)).await.unwrap();
        assert_eq!(played.endings, [Ending::Finished, Ending::Finished]);
        assert_eq!(rehearsal.bare().content("said"), "--help\n\"me\"\n$HOME\n");
        assert_eq!(rehearsal.bare().content("args"), "run\nrun --session ses_1\n");
        assert_eq!((played.answer(), played.tokens()), (Some("hi"), Some(22)));
        assert_eq!(played.turn.trace().agent_version.as_deref(), Some("1.0.0"));
    }

    #[tokio::test]
    async fn a_provider_that_fails_is_told_of_each_time_and_is_not_the_agents_fault() {
        let failed =
            "echo 'timestamp=x level=ERROR message=\"stream error\" error.error=\"AI_APICallError: busy\"' >&2\n";
        let error = json!({"type": "error", "sessionID": "ses_1", "error":
            {"name": "APIError", "data": {"message": "busy", "statusCode": 503}}});
        let script = format!("cat >/dev/null\n{failed}{failed}echo '{error}'\nexit 1");
        let mut played = play(&["go"], 5, &script).await;
        assert_eq!(played.endings, [Ending::ProviderFailed { because: "HTTP 503: busy".into() }]);
        let steps = played.steps();
        let retries: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Retry { attempt, error, .. } => Some((*attempt, error.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(retries, [(1, "AI_APICallError: busy"), (2, "AI_APICallError: busy")]);
    }

    #[tokio::test]
    async fn it_is_stopped_as_soon_as_the_turns_are_used_up_and_what_it_used_is_known() {
        let script = format!("cat >/dev/null\n{}{}exec sleep 1000", call("m1"), call("m2"));
        let played = play(&["go", "never said"], 2, &script).await;
        assert_eq!(played.endings, [Ending::OutOfBudget { budget: Budget::Turns, limit: 2.0 }]);
        assert_eq!((played.calls().len(), played.tokens()), (2, Some(22)));
    }

    #[tokio::test]
    async fn it_is_stopped_when_a_message_has_used_up_the_tokens() {
        let mut rehearsal = Rehearsal { sandbox: Some(Bare::new()), ..Rehearsal::of(case("case", &["go"])) };
        rehearsal.limits.token_budget = Some(20.0);
        let program = rehearsal.bare().outside("opencode");
        write_program(&program, &format!("cat >/dev/null\n{}{}exec sleep 1000", call("m1"), call("m2")));
        let played = rehearsal.play(&Stub(program)).await.unwrap();
        assert_eq!(played.endings, [Ending::OutOfBudget { budget: Budget::Tokens, limit: 20.0 }]);
        assert_eq!(played.tokens(), Some(22));
    }

    #[tokio::test]
    async fn an_end_without_an_answer_is_no_verdict_and_a_code_after_one_is() {
        let told = async |script: &str| play(&["go"], 5, &format!("cat >/dev/null\n{script}")).await.endings.remove(0);
        let Ending::Aborted { because } = told("echo 'Session not found' >&2; exit 1").await else { panic!() };
        assert!(because.contains("it said nothing (exit code 1: Session not found)"), "{because}");
        let Ending::Aborted { because } = told(&format!("{}kill -9 $$", call("m1"))).await else { panic!() };
        assert!(because.contains("had called tools"), "{because}");
        let Ending::GaveUp { because } = told(&format!("{}exit 7", answer("m1", "hi"))).await else { panic!() };
        assert_eq!(because, "it answered and then failed (exit code 7)");
    }

    #[tokio::test]
    async fn a_sub_agents_session_is_exported_and_read() {
        let task = json!({"tool": "task", "callID": "c1", "state":
            {"status": "completed", "input": {}, "output": "", "metadata": {"sessionId": "ses_2"}}});
        let part =
            json!({"type": "step-finish", "messageID": "m9", "reason": "stop", "tokens": {"input": 5, "output": 2}});
        let say = json!({"type": "text", "messageID": "m9", "text": "seen"});
        let export = json!({"messages": [{"info": {"role": "assistant"}, "parts": [say, part]}]});
        let script = format!(
            "if [ \"$1\" = export ]; then test \"$2\" = ses_2 && echo '{export}'; exit; fi\ncat >/dev/null\n{}{}{}",
            tell("step_start", "m1", &json!({})),
            tell("tool_use", "m1", &task),
            answer("m2", "done")
        );
        let played = play(&["go"], 2, &script).await;
        assert_eq!(played.endings, [Ending::Finished]);
        assert_eq!((played.answer(), played.tokens()), (Some("done"), Some(18)));
        let turns = &played.turn.trace().turns;
        assert_eq!(turns.last().map(|turn| (turn.text.as_str(), turn.parent.as_deref())), Some(("seen", Some("c1"))));
    }
}
