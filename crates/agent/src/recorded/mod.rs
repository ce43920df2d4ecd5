//! The `recorded` agent: replays previously recorded answers. `recorded:FILE` names a file of JSON lines, a file in one
//! of the formats of [`evidence`](crate::evidence), or a folder of such files.

mod answer;
mod answers;
mod line;

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use model::{Diagnostic, Ending, Step, UserMessage};
use sandbox::{BoxFuture, Breakage};

use self::answer::RecordedAnswer;
use self::answers::Answers;
use super::step_recorder::StepRecorder;
use super::transcript::{ReportedTurn, perform};
use super::{Agent, CaseContext, Costs, Description, RunState, SessionContext};
use crate::conversation::Conversation;
use crate::evidence;
use crate::session::Session;
use crate::turn::{Turn, finished};

/// Endings of the names of files that are read in a folder.
const ENDINGS: [&str; 4] = [".eval", ".json", ".jsonl", ".jsonl.zst"];
/// Maximum size of a file of answers, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Replays answers from a file.
pub struct Recorded;

/// Files of answers that were read so far, with their modification time and length, so that a changed file is read
/// again. A thousand cases do not read their file a thousand times.
#[derive(Default)]
pub(crate) struct AnswerFiles(Mutex<BTreeMap<PathBuf, (Stamp, Arc<Answers>)>>);

type Stamp = (Option<SystemTime>, u64);

impl AnswerFiles {
    /// Returns the content of `file`, relative to `cwd`, as it was checked for this run.
    fn known(&self, cwd: &Path, file: &Path) -> std::io::Result<Arc<Answers>> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match files.get(file) {
            Some((_, answers)) => Ok(Arc::clone(answers)),
            None => {
                drop(files);
                self.read(cwd, file)
            }
        }
    }

    /// Returns the content of `file`, relative to `cwd`, and reads it again only if it has changed.
    fn read(&self, cwd: &Path, file: &Path) -> std::io::Result<Arc<Answers>> {
        let found = paths(cwd, file)?;
        let stamp = found.iter().fold(Stamp::default(), |stamp, found| {
            (stamp.0.max(found.meta.modified().ok()), stamp.1 + found.meta.len())
        });
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, answers)) = files.get(file)
            && *known == stamp
        {
            return Ok(Arc::clone(answers));
        }
        let mut answers = Answers::default();
        for FoundFile { path, case, .. } in &found {
            let bytes = files::read_named(&cwd.join(path), MAX_FILE_BYTES)?;
            let bytes = evidence::decompressed(bytes, MAX_FILE_BYTES)?;
            answers.read(&path.to_string_lossy(), bytes, case.as_deref());
        }
        answers.finish();
        let answers = Arc::new(answers);
        files.insert(file.to_owned(), (stamp, Arc::clone(&answers)));
        Ok(answers)
    }
}

/// A file to read.
struct FoundFile {
    /// Its path as the user would write it.
    path: PathBuf,
    meta: Metadata,
    /// Case to which a conversation in it belongs that does not name one.
    case: Option<String>,
}

/// Returns `file`, or the files in it if it is a folder.
fn paths(cwd: &Path, file: &Path) -> io::Result<Vec<FoundFile>> {
    let meta = cwd.join(file).metadata()?;
    if meta.is_file() {
        return Ok(vec![FoundFile { path: file.to_owned(), meta, case: None }]);
    }
    let invalid = |reason: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, reason.to_owned()));
    // Reading a pipe would block, and a device may have no end.
    if !meta.is_dir() {
        return invalid("it is neither a regular file nor a folder");
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(cwd.join(file))? {
        let name = entry?.file_name();
        let path = file.join(&name);
        let meta = cwd.join(&path).metadata()?;
        let name = name.to_string_lossy();
        let case = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|case| !case.is_empty());
        if let Some(case) = case.filter(|_| meta.is_file()) {
            found.push(FoundFile { path, meta, case: Some(case.to_owned()) });
        }
    }
    if found.is_empty() {
        return invalid("the folder has no file that ends with `.json`, `.jsonl` or `.eval`");
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

static DESCRIPTION: Description = Description {
    efforts: Some(&[]),
    needs_sandbox: false,
    is_replay: true,
    answers_at_once: true,
    takes_script: true,
    takes_tools: true,
    costs: Costs::Nothing,
    ..Description::new("recorded", "answers, sessions and logs from a file or folder, `recorded:FILE`; needs no model")
};

impl Agent for Recorded {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn check_argument(&self, argument: Option<&str>, state: &Arc<RunState>) -> Vec<Diagnostic> {
        let Some(file) = argument.filter(|file| !file.is_empty()) else {
            return vec![
                Diagnostic::error("`recorded` needs a file of answers").help("write `recorded:answers.jsonl`"),
            ];
        };
        match state.answers.read(&state.cwd, Path::new(file)) {
            Ok(answers) => answers.problems.clone(),
            Err(error) => vec![Diagnostic::error(format!("cannot read the answers `{file}`: {error}"))],
        }
    }

    fn answers(&self, context: &CaseContext<'_>) -> Option<u64> {
        let answers =
            context.state.answers.known(&context.state.cwd, Path::new(context.argument.unwrap_or_default())).ok()?;
        let (case, index) = (&context.case.id, context.case.position);
        let number = answers.number_of(case, index.unwrap_or(context.position)) as u64;
        answers.may_answer(case, index, context.position).then_some(number)
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let file = context.argument.unwrap_or_default();
        let case = context.case;
        // The error from reading the file has already been reported.
        let Ok(answers) = context.state.answers.known(&context.state.cwd, Path::new(file)) else { return Vec::new() };
        if let Some(problem) = answers.misnamed(&case.id) {
            return vec![problem];
        }
        // The missing answer may be in a line that could not be read.
        if answers.may_answer(&case.id, case.position, context.position) || answers.is_broken {
            let shorter = answers.shorter_than(case, case.position.unwrap_or(context.position), file);
            return answers.beyond(context.cases).into_iter().chain(shorter).collect();
        }
        let missing = Diagnostic::error(format!("`{file}` has no answer for the case `{}`", case.id));
        let missing = missing.at(case.source.clone());
        vec![match answers.nearest_to(&case.id) {
            Some(near) => missing.suggest(Some(near)),
            None => match answers.named() {
                Some(named) => missing.help(named),
                None => missing,
            },
        }]
    }

    fn open<'a>(&'a self, session_context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(std::future::ready(self.start(&session_context)))
    }
}

impl Recorded {
    fn start(&self, session_context: &SessionContext) -> Result<Box<dyn Session>, Breakage> {
        let file = session_context.argument.as_deref().unwrap_or_default();
        let state = &session_context.state;
        let answers = state
            .answers
            .known(&state.cwd, Path::new(file))
            .map_err(|error| Breakage::environment(format!("cannot read the answers `{file}`: {error}")))?;
        let case = &session_context.case;
        let Some(line) =
            answers.find(&case.id, case.position, session_context.position, session_context.trial.repetition)
        else {
            return Err(Breakage::test(format!("`{file}` has no answer for the case `{}`", case.id)));
        };
        let answer = &answers.lines[line];
        if let Some(error) = &answer.error {
            return Err(Breakage::environment(format!("recorded error: {error}")));
        }
        // The number of messages from code and simulated users is not known yet.
        let is_open = case.code.is_some() || case.user.is_some();
        let known = if is_open { usize::MAX } else { case.messages.len().saturating_sub(1) };
        let last_message = answer.last_message.min(known);
        let name = format!("`{file}` for the case `{}`", case.id);
        Ok(Box::new(RecordedSession {
            answers,
            line,
            name,
            last_message,
            sent: 0,
            step_recorder: StepRecorder::default(),
        }))
    }
}

/// A conversation that replays a recorded answer.
struct RecordedSession {
    answers: Arc<Answers>,
    /// Index of the answer.
    line: usize,
    /// Description of the answer, for messages.
    name: String,
    /// User message, from 0, at which the recording ends.
    last_message: usize,
    /// Number of user messages sent.
    sent: usize,
    step_recorder: StepRecorder,
}

impl Session for RecordedSession {
    fn send<'a>(&'a mut self, _message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move { self.replay(turn).await.err().unwrap_or(Ending::Finished) })
    }
}

impl RecordedSession {
    /// Plays the part that belongs to the next user message, or everything that is left if it is the last message in
    /// the recording.
    async fn replay(&mut self, turn: &mut Turn) -> Result<(), Ending> {
        let answers = Arc::clone(&self.answers);
        let answer = &answers.lines[self.line];
        let at = self.sent;
        self.sent += 1;
        if at == 0 {
            turn.is_replay();
            self.begin(answer, turn)?;
        }
        if at > self.last_message && !answer.is_record {
            // A message that was not recorded says nothing about the agent.
            let (there, asked) = (model::text::counted(self.last_message + 1, "message"), at + 1);
            let reason = format!("the answer in {} is for {there}, but message {asked} was sent", self.name);
            return Err(Ending::InvalidTest { reason });
        }
        if at > self.last_message {
            turn.is_answered_already();
        }
        let is_last = at == self.last_message;
        let is_next = |given: &&ReportedTurn| given.message == at || (is_last && given.message > at);
        let given: Vec<&ReportedTurn> = answer.turns.iter().filter(is_next).collect();
        if let Some(reason) = &answer.missing_calls {
            turn.record(Step::CallsMissing { reason: reason.clone() })?;
        } else if !answer.tells_calls {
            turn.record(Step::CallsUnreported)?;
        }
        let last_text = match &answer.conversation {
            Some(conversation) => {
                let is_next = |of: usize| of == at || (is_last && of > at);
                for (_, step) in conversation.steps.iter().filter(|(of, _)| is_next(*of)) {
                    // Yields from time to time, so that the trial's timeout is checked even during long transcripts.
                    tokio::task::consume_budget().await;
                    turn.check_stop()?;
                    turn.record(step.clone())?;
                }
                conversation.last_text(if is_last { answer.last_message } else { at }).map(str::to_owned)
            }
            None => perform(given, &mut self.step_recorder, turn).await?.map(str::to_owned),
        };
        let usage_of = |told: &Conversation| told.usage_of(at, is_last);
        if !is_last {
            let usage = answer.conversation.as_ref().map(usage_of).unwrap_or_default();
            return turn.record(finished(false, usage, last_text, None));
        }
        for question in &answer.questions {
            let _ = turn.ask(question.clone());
        }
        let ending = answer.ending(turn);
        let is_error = ending != Ending::Finished;
        let usage = match &answer.conversation {
            Some(conversation) => usage_of(conversation),
            None => answer.count.of_reply(None, turn)?,
        };
        let text = answer.output.clone().or(last_text);
        let (subtype, result) = (answer.subtype().to_owned(), answer.result.clone());
        let recorded = turn.record(Step::Finished { subtype, is_error, usage, text, result });
        if is_error { Err(ending) } else { recorded }
    }

    /// Records the session, if the answer has one.
    fn begin(&mut self, answer: &RecordedAnswer, turn: &mut Turn) -> Result<(), Ending> {
        if answer.session_id.is_none() && answer.model.is_none() {
            return Ok(());
        }
        turn.record(Step::Session {
            session_id: answer.session_id.clone(),
            model: answer.model.clone(),
            agent_version: answer.conversation.as_ref().and_then(|told| told.agent_version.clone()),
            tools: Vec::new(),
            auth: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{Arm, Budget, Case};
    use serde_json::json;

    use super::*;
    use crate::tests::harness::{AgentHarness, TestRun, case, new_run, response, run_state};

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers.jsonl");
        std::fs::write(&path, text).unwrap();
        (dir, path.to_string_lossy().into_owned())
    }

    fn harness(path: &str, case: Case) -> AgentHarness {
        AgentHarness { argument: Some(path.to_owned()), ..AgentHarness::for_case(case) }
    }

    #[tokio::test]
    async fn a_line_is_replayed_as_steps_of_the_agent() {
        let (_dir, path) = file(
            r#"{"case":"a","output":"done","tool_calls":[{"name":"Bash","input":{"command":"ls"},"result":"x","is_error":true},{"name":"Read"}],"questions":["Sure?"],"usage":{"input":5,"output":2,"cost_usd":0.1},"session_id":"s1"}"#,
        );
        let mut asking = case("a", &["go"]);
        asking.user_responses = vec![response("Sure", "yes")];
        let played = harness(&path, asking).play(&Recorded).await.unwrap();
        assert_eq!(played.calls(), [("Bash", "x", true), ("Read", "(none)", false)]);
        assert_eq!((played.answer(), played.tokens()), (Some("done"), Some(7)));
        assert_eq!(played.turn.trace().turn_count(), 3);
        assert_eq!(played.turn.trace().questions[0].answer.as_deref(), Some("yes"));
        assert_eq!(played.turn.trace().session_id.as_deref(), Some("s1"));
        assert_eq!(played.endings, [Ending::Finished]);
    }

    #[tokio::test]
    async fn an_error_breaks_the_trial_and_so_does_a_missing_line() {
        let (_dir, path) = file("{\"case\":\"a\",\"error\":\"no network\"}\n{\"case\":\"b\"}");
        let broken = harness(&path, case("a", &["go"])).play(&Recorded).await.err().unwrap();
        assert_eq!(broken, Breakage::environment("recorded error: no network"));
        let missing = harness(&path, case("c", &["go"])).play(&Recorded).await.err().unwrap();
        assert!(missing.reason.ends_with("has no answer for the case `c`"));
        let empty = harness(&path, case("b", &["go"])).play(&Recorded).await.unwrap();
        assert_eq!((empty.answer(), empty.turn.trace().turn_count()), (None, 0));
    }

    #[tokio::test]
    async fn repetitions_and_positions_select_their_lines() {
        let (_dir, path) =
            file("{\"case\":\"a\",\"output\":\"1\"}\n{\"output\":\"second\"}\n{\"case\":\"a\",\"output\":\"2\"}");
        let answer = async |id: &str, position, repetition| {
            let harness = AgentHarness { position, repetition, ..harness(&path, case(id, &["go"])) };
            harness.play(&Recorded).await.unwrap().answer().map(str::to_owned)
        };
        assert_eq!(answer("a", 0, 1).await.as_deref(), Some("1"));
        assert_eq!(answer("a", 0, 2).await.as_deref(), Some("2"));
        assert_eq!(answer("a", 0, 9).await.as_deref(), Some("2"));
        assert_eq!(answer("b", 1, 1).await.as_deref(), Some("second"));
        let answers = run_state().answers.known(Path::new("."), Path::new(&path)).unwrap();
        assert_eq!(["a", "b"].map(|case| answers.number_of(case, 9)), [2, 1]);
    }

    #[tokio::test]
    async fn recorded_turns_follow_the_user_messages_and_the_rest_comes_last() {
        let (_dir, path) = file(
            r#"{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"a"},{"role":"user","content":"2"},{"role":"assistant","content":"b"},{"role":"user","content":"3"},{"role":"assistant","content":"c"}],"usage":{"output":1}}"#,
        );
        let turns = async |messages: &[&str]| {
            let played = harness(&path, case("x", messages)).play(&Recorded).await.unwrap();
            let turns = played.turn.trace().turns.iter().map(|turn| (turn.user_message, turn.text.clone()));
            (turns.collect::<Vec<_>>(), played.answer().map(str::to_owned), played.tokens())
        };
        let turn = |message, text: &str| (message, text.to_owned());
        assert_eq!(
            turns(&["1", "2"]).await,
            (vec![turn(1, "a"), turn(2, "b"), turn(2, "c")], Some("c".into()), Some(1))
        );
        let more = turns(&["1", "2", "3", "4"]).await;
        assert_eq!(more, (vec![turn(1, "a"), turn(2, "b"), turn(3, "c")], Some("c".into()), Some(1)));
    }

    #[tokio::test]
    async fn a_message_without_a_recording_does_not_count_against_the_agent() {
        let (_dir, path) = file("{\"case\":\"a\",\"output\":\"one\"}");
        let played = harness(&path, case("a", &["go", "on"])).play(&Recorded).await.unwrap();
        let reason = format!("the answer in `{path}` for the case `a` is for 1 message, but message 2 was sent");
        assert_eq!(played.endings, [Ending::Finished, Ending::InvalidTest { reason }]);
        let record = json!({
            "id": "a", "suite": "s", "case": "a", "arm": "x", "repetition": 1, "outcome": "passed", "answer": "both",
        });
        let (_dir, path) = file(&record.to_string());
        let played = harness(&path, case("a", &["go", "on"])).play(&Recorded).await.unwrap();
        assert_eq!((played.endings.len(), played.answer()), (2, Some("both")), "a report has only the last answer");
        assert_eq!(played.endings[1], Ending::Finished);
    }

    #[tokio::test]
    async fn a_conversation_of_unknown_length_is_answered_message_by_message() {
        let (_dir, path) = file(
            r#"{"case":"a","messages":[{"role":"user","content":"1"},{"role":"assistant","content":"one"},{"role":"user","content":"2"},{"role":"assistant","content":"two"}]}"#,
        );
        let user = model::SimulatedUser {
            persona: serde_json::Map::new(),
            goal: "g".into(),
            stop_when: None,
            max_turns: 2,
            model: None,
            source: model::Excerpt::of_file("case.yaml"),
        };
        let open = Case { user: Some(user.into()), ..case("a", &["1"]) };
        assert_eq!(harness(&path, open).play(&Recorded).await.unwrap().answer(), Some("one"));
    }

    #[tokio::test]
    async fn a_replay_ends_as_recorded_and_respects_current_limits() {
        let (_dir, path) = file(
            "{\"case\":\"a\",\"output\":\"x\",\"ending\":\"gave_up\",\"because\":\"no\",\"usage\":{\"input\":3}}\n{\"case\":\"b\",\"tool_calls\":[{\"name\":\"A\"},{\"name\":\"B\"}]}",
        );
        let played = harness(&path, case("a", &["go", "on"])).play(&Recorded).await.unwrap();
        assert_eq!(played.endings, [Ending::GaveUp { reason: "no".into() }]);
        assert_eq!(played.tokens(), Some(3));
        let mut limited = harness(&path, case("b", &["go"]));
        limited.stop_after(1);
        let played = limited.play(&Recorded).await.unwrap();
        assert_eq!(played.endings, [Ending::OutOfBudget { budget: Budget::Turns, limit: 1.0 }]);
        assert_eq!(played.calls().len(), 1);
    }

    /// Returns `true` if the calls of the last reply are not completely known.
    fn hides_calls(played: &TestRun) -> bool {
        played.turn.trace().replies.iter().any(|reply| reply.calls_missing.is_some())
    }

    #[tokio::test]
    async fn calls_in_blocks_are_replayed_and_unknown_blocks_hide_calls() {
        let block = |block: &str| {
            format!(
                "{{\"case\":\"a\",\"messages\":[{{\"role\":\"user\",\"content\":\"go\"}},{{\"role\":\"assistant\",\"content\":[{block}]}}]}}"
            )
        };
        let (_dir, path) = file(&block(r#"{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}"#));
        let played = harness(&path, case("a", &["go"])).play(&Recorded).await.unwrap();
        assert_eq!((played.calls().as_slice(), hides_calls(&played)), (&[("Bash", "(none)", false)][..], false));
        let (_dir, path) = file(&block(r#"{"type":"text","text":"hi"},{"type":"robot_use","arm":1}"#));
        let played = harness(&path, case("a", &["go"])).play(&Recorded).await.unwrap();
        assert_eq!((played.calls().len(), hides_calls(&played)), (0, true));
        let problems = Recorded.check_argument(Some(&path), &run_state());
        assert!(problems[0].to_string().ends_with("`messages[1].content[1]` has the unknown type `robot_use`"));
    }

    #[tokio::test]
    async fn a_session_of_another_program_is_replayed_message_by_message() {
        let session = std::fs::read_to_string("tests/evidence/claude-session.jsonl").unwrap();
        let (_dir, path) = file(&session);
        let played = harness(&path, case("a", &["Write it.", "Check it."])).play(&Recorded).await.unwrap();
        let trace = played.turn.trace();
        let replies: Vec<_> = trace.turns.iter().map(|turn| (turn.user_message, turn.text.as_str())).collect();
        let said = ["Let me look.", "", "greeting.txt says Hello.", "", "The check passes."];
        assert_eq!(replies, [(1, said[0]), (1, said[1]), (1, said[2]), (2, said[3]), (2, said[4])]);
        assert_eq!((played.answer(), played.tokens()), (Some("The check passes."), Some(685)));
        assert_eq!(
            (played.endings.as_slice(), hides_calls(&played)),
            (&[Ending::Finished, Ending::Finished][..], false)
        );
        let all_at_once = harness(&path, case("a", &["Do it."])).play(&Recorded).await.unwrap();
        assert_eq!((all_at_once.calls().len(), all_at_once.answer()), (4, Some("The check passes.")));
        let more = harness(&path, case("a", &["1", "2", "3"])).play(&Recorded).await.unwrap();
        assert!(matches!(more.endings[2], Ending::InvalidTest { .. }));
    }

    #[tokio::test]
    async fn the_files_of_a_folder_answer_the_cases_that_they_are_named_after() {
        let dir = tempfile::tempdir().unwrap();
        let copy = |from: &str, to: &str| {
            std::fs::copy(Path::new("tests/evidence").join(from), dir.path().join(to)).unwrap();
        };
        copy("codex-rollout.jsonl", "greets.jsonl");
        copy("inspect-log.json", "log.json");
        let rollout = std::fs::read("tests/evidence/codex-rollout.jsonl").unwrap();
        std::fs::write(dir.path().join("old.jsonl.zst"), zstd::encode_all(&rollout[..], 1).unwrap()).unwrap();
        std::fs::write(dir.path().join("README.md"), "Notes").unwrap();
        let path = dir.path().to_string_lossy().into_owned();
        let answer = async |id: &str, repetition| {
            let harness = AgentHarness { repetition, ..harness(&path, case(id, &["go"])) };
            harness.play(&Recorded).await.unwrap().answer().map(str::to_owned)
        };
        assert_eq!(answer("greets", 1).await.as_deref(), Some("The check passes."));
        assert_eq!(answer("old", 1).await.as_deref(), Some("The check passes."));
        assert_eq!(answer("2", 1).await.as_deref(), Some("Your order 42 is on its way."));
        assert_eq!(answer("late-parcel", 2).await.as_deref(), Some("Your order 42 is on its way."));
        let empty = tempfile::tempdir().unwrap();
        let problems = Recorded.check_argument(Some(&empty.path().to_string_lossy()), &run_state());
        assert!(problems[0].message.ends_with("the folder has no file that ends with `.json`, `.jsonl` or `.eval`"));
        let wrong = dir.path().join("latin.jsonl");
        std::fs::write(&wrong, b"{\"case\":\"a\"}\n\xff\n").unwrap();
        let problems = Recorded.check_argument(Some(&wrong.to_string_lossy()), &run_state());
        assert!(problems[0].to_string().starts_with(&format!("{}:2:1: ", wrong.display())), "{}", problems[0]);
    }

    #[tokio::test]
    async fn extra_fields_become_the_result() {
        let (_dir, path) = file(
            "{\"case\":\"a\",\"output\":{\"n\":1},\"state\":[2],\"messages\":[{\"role\":\"assistant\",\"tools\":[{\"name\":\"add\",\"args\":{\"a\":1},\"result\":3}]}]}\n{\"case\":\"b\",\"output\":\"x\"}\n{\"i\":4,\"output\":\"four\"}",
        );
        let mut played = harness(&path, case("a", &["go"])).play(&Recorded).await.unwrap();
        assert_eq!(played.answer(), Some("{\"n\":1}"));
        assert_eq!(played.calls(), [("add", "3", false)]);
        let result = json!({
            "output": {"n": 1}, "state": [2],
            "messages": [{"role": "assistant", "tools": [{"name": "add", "args": {"a": 1}, "result": 3}]}],
        });
        assert_eq!(played.turn.trace().result.as_deref(), Some(&result));
        let finished = played.steps().into_iter().filter_map(|step| match step {
            Step::Finished { result, .. } => Some(result.is_some()),
            _ => None,
        });
        assert_eq!(finished.collect::<Vec<_>>(), [true]);
        let plain = harness(&path, case("b", &["go"])).play(&Recorded).await.unwrap();
        let unknown = json!({"output": "x", "messages": null});
        assert_eq!((plain.answer(), plain.turn.trace().result.as_deref()), (Some("x"), Some(&unknown)));
        let fourth = Case { position: Some(4), ..case("z", &["go"]) };
        assert_eq!(harness(&path, fourth).play(&Recorded).await.unwrap().answer(), Some("four"));
    }

    #[tokio::test]
    async fn a_trial_that_is_stopped_records_no_further_calls() {
        let (_dir, path) = file(r#"{"case":"a","output":"x","tool_calls":[{"name":"Read"},{"name":"Edit"}]}"#);
        let harness = harness(&path, case("a", &["go"]));
        harness.stop.send_replace(true);
        let played = harness.play(&Recorded).await.unwrap();
        assert_eq!((played.endings.as_slice(), played.calls().len()), ([Ending::Cancelled].as_slice(), 0));
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_recorded_is_the_agents_failure() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let (_dir, path) = file(&format!(
            "{{\"case\":\"a\",\"output\":{}}}\n{{\"case\":\"b\",\"output\":{}}}\n{{\"case\":\"c\",\"tool_calls\":[{{\"name\":\"A\",\"input\":{}}}]}}",
            deep(99),
            deep(100),
            deep(101)
        ));
        let ending =
            async |id: &str| harness(&path, case(id, &["go"])).play(&Recorded).await.unwrap().endings.remove(0);
        let reason = crate::turn::too_deep();
        assert_eq!(ending("a").await, Ending::Finished);
        assert_eq!(ending("b").await, Ending::GaveUp { reason: reason.clone() });
        assert_eq!(ending("c").await, Ending::GaveUp { reason });
    }

    #[tokio::test]
    async fn a_recording_that_is_too_large_for_the_record_does_not_count_against_the_agent() {
        let step = Step::Text { message: "m".to_owned(), text: "x".repeat((64 << 20) + 1), parent: None };
        let mut conversation = Conversation::default();
        conversation.push(step);
        let mut answers = Answers::default();
        answers.lines.push(RecordedAnswer::of(conversation));
        let state = new_run();
        state.answers.0.lock().unwrap().insert(PathBuf::from("large"), (Stamp::default(), Arc::new(answers)));
        let harness = AgentHarness { state, ..harness("large", case("a", &["go"])) };
        let played = harness.play(&Recorded).await.unwrap();
        let reason = "its steps take more than 64 MiB in the record".to_owned();
        assert_eq!(played.endings, [Ending::Aborted { reason }]);
    }

    #[tokio::test]
    async fn turns_are_counted_only_if_a_cap_is_set() {
        let messages: Vec<serde_json::Value> =
            (0..90).map(|index| json!({"role": "assistant", "content": format!("m{index}")})).collect();
        let (_dir, path) = file(&json!({"case": "a", "messages": messages}).to_string());
        let mut free = harness(&path, case("a", &["go"]));
        free.limits.max_turns = 40;
        let played = free.play(&Recorded).await.unwrap();
        assert_eq!((played.endings.as_slice(), played.answer()), (&[Ending::Finished][..], Some("m89")));
        assert_eq!(played.turn.trace().turn_count(), 90);
    }

    #[test]
    fn problems_are_detected_before_anything_runs() {
        let about = |argument: Option<&str>| -> Vec<String> {
            Recorded.check_argument(argument, &run_state()).iter().map(ToString::to_string).collect()
        };
        let check = |path: &str, id: &str| harness(path, case(id, &["go"])).check(&Recorded);
        assert_eq!(about(None), ["`recorded` needs a file of answers"]);
        assert!(about(Some("/none.jsonl"))[0].starts_with("cannot read the answers `/none.jsonl`"));
        assert_eq!(check("/none.jsonl", "alpha"), [""; 0], "already reported");
        let (_dir, path) = file("{\"case\":\"alhpa\"}\n");
        assert_eq!(about(Some(&path)), [""; 0]);
        assert_eq!(check(&path, "alpha"), [format!("case.yaml:1:1: `{path}` has no answer for the case `alpha`")]);
        std::fs::write(&path, "{\"case\":\"alpha\"}\nno\n").unwrap();
        assert_eq!(about(Some(&path)), [format!("{path}:2:2: this line is not valid JSON: expected ident")]);
        assert_eq!(check(&path, "beta"), [""; 0], "the unreadable line may be the missing one");
    }

    #[test]
    fn names_are_suggested_only_for_the_first_cases() {
        let (_dir, path) = file("{\"case\":\"alhpa\"}\n");
        let alpha = harness(&path, case("alpha", &["go"]));
        let arm = Arm { agent: "recorded".into(), model: None, variant: None };
        let context = CaseContext {
            case: &alpha.case,
            arm: &arm,
            argument: Some(&path),
            config: None,
            directory: &alpha.directory,
            position: 0,
            cases: 1,
            model_source: None,
            base_url: None,
            providers: &llm::Providers::default(),
            state: &run_state(),
        };
        let helped = (0..100).filter(|_| Recorded.check(&context)[0].help == ["did you mean `alhpa`?"]).count();
        assert_eq!(helped, 20);
    }

    #[tokio::test]
    async fn each_run_has_the_answers_that_it_checked() {
        let (_dir, path) = file("{\"case\":\"a\",\"output\":\"one\"}\n");
        let (first, second) = (new_run(), new_run());
        assert_eq!(Recorded.check_argument(Some(&path), &first), []);
        std::fs::write(&path, "{\"case\":\"a\",\"output\":\"two\"}\n").unwrap();
        assert_eq!(Recorded.check_argument(Some(&path), &second), []);
        for (state, expected) in [(&first, "one"), (&second, "two"), (&first, "one")] {
            let harness = AgentHarness { state: Arc::clone(state), ..harness(&path, case("a", &["go"])) };
            assert_eq!(harness.play(&Recorded).await.unwrap().answer(), Some(expected));
        }
    }

    #[test]
    fn a_thousand_cases_read_their_file_once() {
        let lines: String =
            (0..1_000).map(|index| format!("{{\"case\":\"c{index}\",\"output\":\"{index}\"}}\n")).collect();
        let (_dir, path) = file(&lines);
        let first = run_state().answers.read(Path::new("."), Path::new(&path)).unwrap();
        for index in 0..1_000 {
            assert_eq!(harness(&path, case(&format!("c{index}"), &["go"])).check(&Recorded), [""; 0]);
        }
        assert!(Arc::ptr_eq(&first, &run_state().answers.read(Path::new("."), Path::new(&path)).unwrap()));
    }
}
