//! The `fake` agent: repeats the user's messages and follows the directives in them. It is useful for trying things
//! out, and for tests and benchmarks of the code around agents.
//!
//! A directive is a line in the user's message that begins with `!` and a name in [`DIRECTIVES`]. Directives are
//! followed in order, and all other lines are repeated. The answer consists of all lines that were said. A new turn
//! begins after the result of a call.

mod directive;

use std::sync::Arc;

use grade::KnownTools;
use model::{Case, Diagnostic, Ending, Excerpt, Question, Source, Span, Usage, UserMessage};
use sandbox::{BoxFuture, Breakage};
use serde_json::json;

use self::directive::{Directive, parse};
use super::chat::FileAccess;
use super::step_recorder::StepRecorder;
use super::{Agent, CaseContext, Costs, Description, SessionContext};
use crate::own_tools;
use crate::session::Session;
use crate::turn::{Turn, finished, unless_stopped};

pub use self::directive::{DIRECTIVES, DirectiveKind};

/// Folder of its skills, relative to the working directory.
const SKILLS: &str = ".fake/skills";

/// Folder of its definitions of sub-agents.
const SUB_AGENTS: &str = ".fake/agents";

/// Assertions that hold only after a tool call.
const NEED_CALLS: &[&str] = &["tool_called", "tool_call_sequence"];

/// Tools that its directives call.
const TOOLS: &[&str] = &["AskUserQuestion", "Skill", "Write"];

/// The `fake` agent; see the module documentation.
pub struct Fake;

static DESCRIPTION: Description = Description {
    efforts: Some(&[]),
    answers_in_text: true,
    skills_folder: Some(SKILLS),
    sub_agents_folder: Some(SUB_AGENTS),
    needs_sandbox: false,
    takes_script: true,
    takes_tools: true,
    costs: Costs::Nothing,
    ..Description::new("fake", "echoes the message and follows a few directives in it; needs no model")
};

impl Agent for Fake {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn known_tools(&self, case: &Case) -> KnownTools<'static> {
        let names_tools = |text: &str| ["!call ", "!fail "].iter().any(|directive| text.contains(directive));
        // Directives can name any tool, and a test in code creates its messages later.
        let is_open = case.messages.is_empty() || case.messages.iter().any(|message| names_tools(&message.text));
        KnownTools::AtLeast(if is_open { &[] } else { TOOLS })
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let directives: Vec<_> = context.case.messages.iter().flat_map(|message| parse(&message.text)).collect();
        let is_open = directives.is_empty() || context.case.user.is_some();
        let calls = is_open || directives.iter().any(Directive::calls_tool);
        let unmet =
            context.case.assertions.iter().filter(|made| !calls && NEED_CALLS.contains(&made.kind.value.as_str()));
        let unmet = unmet.map(|made| {
            Diagnostic::warning("`fake` calls no tool in this case, because no message tells it to")
                .at(made.node.source.excerpt(made.kind.span))
                .help("write a line such as `!call NAME {}` into a message")
        });
        let unmet: Vec<_> = unmet.collect();
        let invalid = directives.into_iter().filter_map(|directive| match directive {
            Directive::Invalid { line, problem } => Some(problem.at(place(&line, context.case))),
            _ => None,
        });
        let lost = own_tools::missing_file(context.case, &context.state.cwd.join(context.directory));
        invalid.chain(unmet).chain(lost).collect()
    }

    fn open<'a>(&'a self, session_context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        let access = session_context.sandbox.as_deref().map(FileAccess::for_sandbox);
        let session: Box<dyn Session> = Box::new(FakeSession {
            session_id: session_context.session_id("fake"),
            access,
            step_recorder: StepRecorder::default(),
        });
        Box::pin(std::future::ready(Ok(session)))
    }
}

/// Returns the place of a line of a message, if the file of the case has it once, or only one line with the same
/// directive; otherwise that of the case. The text of a template differs from the line.
fn place(line: &str, case: &Case) -> Excerpt {
    let mut sources = case.assertions.iter().map(|made| &made.node.source);
    let find = |source: &Arc<Source>, text: &str| {
        let mut found = source.text.match_indices(text);
        let (at, _) = found.next().filter(|_| found.next().is_none())?;
        Some(source.excerpt(Span::new(at, at + text.len())))
    };
    let directive = line.split_inclusive(char::is_whitespace).next().unwrap_or(line).trim_end();
    let source = sources.find(|source| *source.path == *case.source.file);
    let found = source.and_then(|source| find(source, line).or_else(|| find(source, directive)));
    found.unwrap_or_else(|| case.source.clone())
}

/// A conversation with the fake agent.
struct FakeSession {
    session_id: String,
    access: Option<FileAccess>,
    step_recorder: StepRecorder,
}

impl Session for FakeSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move {
            let mut lines = Vec::new();
            let mut usage = Usage::default();
            let acted = self.act(&message.text, turn, &mut lines, &mut usage).await;
            let ending = acted.err().unwrap_or(Ending::Finished);
            // Like a real agent, it reports its usage unless it is interrupted.
            if matches!(ending, Ending::Finished | Ending::GaveUp { .. } | Ending::OutOfBudget { .. }) {
                let is_error = ending != Ending::Finished;
                let text = (!lines.is_empty()).then(|| lines.join("\n"));
                let recorded = turn.record(finished(is_error, usage, text, None));
                if let (Err(stopped), false) = (recorded, is_error) {
                    return stopped;
                }
            }
            ending
        })
    }
}

impl FakeSession {
    async fn act(
        &mut self,
        text: &str,
        turn: &mut Turn,
        lines: &mut Vec<String>,
        usage: &mut Usage,
    ) -> Result<(), Ending> {
        self.step_recorder.next_turn();
        self.step_recorder.begin(turn, &self.session_id)?;
        for directive in parse(text) {
            self.follow(directive, turn, lines, usage).await?;
        }
        Ok(())
    }

    async fn follow(
        &mut self,
        directive: Directive,
        turn: &mut Turn,
        lines: &mut Vec<String>,
        usage: &mut Usage,
    ) -> Result<(), Ending> {
        match directive {
            Directive::Say(text) => {
                self.step_recorder.say(turn, &text)?;
                lines.push(text);
            }
            Directive::Think(text) => self.step_recorder.think(turn, &text)?,
            Directive::Call { name, input, result, is_error } => {
                let id = self.step_recorder.call(turn, &name, input)?;
                self.result(turn, &id, &result, is_error)?;
            }
            Directive::Ask(Question { question, options, multi_select, .. }) => {
                let labels: Vec<_> = options.iter().map(|label| json!({ "label": label })).collect();
                let asked = json!({ "question": question, "options": labels, "multiSelect": multi_select });
                let id = self.step_recorder.call(turn, "AskUserQuestion", json!({ "questions": [asked] }))?;
                let call_id = Some(id.clone());
                let answer = turn.ask(Question { call_id, question, options, multi_select, ..Question::default() });
                self.result(turn, &id, answer.as_deref().unwrap_or("no answer"), false)?;
            }
            Directive::Skill(name) => {
                let id = self.step_recorder.call(turn, "Skill", json!({ "skill": name }))?;
                let file = format!("{SKILLS}/{name}/SKILL.md");
                let loaded = self.access.as_ref().and_then(|access| access.read(&file).ok());
                let text = loaded.as_deref().map(String::from_utf8_lossy);
                self.result(turn, &id, text.as_deref().unwrap_or("no such skill"), text.is_none())?;
            }
            Directive::WithSkill(directive) => {
                if self.has_skills() {
                    Box::pin(self.follow(*directive, turn, lines, usage)).await?;
                }
            }
            Directive::Write { path, content } => {
                let id = self.step_recorder.call(turn, "Write", json!({ "file_path": path, "content": content }))?;
                let written = match &self.access {
                    Some(access) => access.write(&path, content.as_bytes()).map(|_| format!("wrote {path}")),
                    None => Err("there is no sandbox to write in".to_owned()),
                };
                let is_error = written.is_err();
                let (Ok(content) | Err(content)) = written;
                self.result(turn, &id, &content, is_error)?;
            }
            Directive::Sleep(duration) => {
                turn.waiting("sleep");
                unless_stopped(turn.stopping(), tokio::time::sleep(duration)).await?;
            }
            Directive::Use(used) => *usage += used,
            Directive::End(ending) => return Err(ending),
            Directive::Invalid { problem, .. } => return Err(Ending::InvalidTest { reason: problem.message }),
        }
        Ok(())
    }

    /// Returns `true` if any skill or definition of a sub-agent is installed.
    fn has_skills(&self) -> bool {
        let has_some = |folder: &str| {
            let folder = self.access.as_ref().and_then(|access| access.locate(folder).ok());
            folder.and_then(|folder| folder.read_dir().ok()).is_some_and(|mut entries| entries.next().is_some())
        };
        has_some(SKILLS) || has_some(SUB_AGENTS)
    }

    fn result(&mut self, turn: &mut Turn, id: &str, content: &str, is_error: bool) -> Result<(), Ending> {
        self.step_recorder.result(turn, id, content, is_error)?;
        self.step_recorder.next_turn();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::Budget;
    use tokio::time::Instant;

    use super::*;
    use crate::tests::harness::{AgentHarness, Bare, TestRun, case, new_run, response};
    use sandbox::Sandbox;

    async fn run(messages: &[&str]) -> TestRun {
        AgentHarness::for_case(case("case", messages)).play(&Fake).await.unwrap()
    }

    #[tokio::test]
    async fn a_message_without_directives_is_the_answer() {
        let played = run(&["hello\nworld"]).await;
        assert_eq!(played.answer(), Some("hello\nworld"));
        assert_eq!(played.turn.trace().turn_count(), 1);
        assert_eq!(played.tokens(), None);
        assert_eq!(played.turn.trace().session_id.as_deref(), Some("fake-suite::case@agent#1"));
    }

    #[tokio::test]
    async fn directives_are_followed_in_order_and_a_result_ends_a_turn() {
        let played = run(&[
            "!think hm\nfirst\n!call Bash {\"command\": \"ls\"} => a.txt\n!fail Read\nlast\n!tokens 100 20\n!cost 0.5",
        ])
        .await;
        assert_eq!(played.calls(), [("Bash", "a.txt", false), ("Read", "error", true)]);
        assert_eq!(played.answer(), Some("first\nlast"));
        let turns: Vec<_> =
            played.turn.trace().turns.iter().map(|turn| (turn.text.as_str(), turn.calls.len())).collect();
        assert_eq!(turns, [("first", 1), ("", 1), ("last", 0)]);
        assert_eq!(played.turn.trace().turns[0].thinking, "hm");
        assert_eq!(played.tokens(), Some(120));
        assert_eq!(played.turn.trace().usage.cost_usd, Some(0.5));
    }

    #[tokio::test]
    async fn questions_are_answered_from_the_case() {
        let mut asking = case("case", &["!ask Which color? | Red | Blue\n!ask-many Sizes? | S | L"]);
        asking.user_responses = vec![response("color", "Blue")];
        let played = AgentHarness::for_case(asking).play(&Fake).await.unwrap();
        let results: Vec<_> = played.calls().iter().map(|(_, result, _)| (*result).to_owned()).collect();
        assert_eq!(results, ["Blue", "no answer"]);
        let questions = &played.turn.trace().questions;
        assert_eq!(questions[0].options, ["Red", "Blue"]);
        assert!(questions[1].multi_select && questions[1].answer.is_none());
    }

    #[tokio::test]
    async fn files_are_written_but_only_in_the_sandbox() {
        let mut harness = AgentHarness::for_case(case("case", &["!write a/b.txt one\\ntwo\n!write ../c.txt x"]));
        let bare = Bare::new();
        harness.sandbox = Some(bare.clone());
        let played = harness.play(&Fake).await.unwrap();
        assert_eq!(bare.content("a/b.txt"), "one\ntwo\n");
        assert_eq!(played.calls()[0], ("Write", "wrote a/b.txt", false));
        assert!(played.calls()[1].2 && !bare.outside("c.txt").exists());
        assert!(played.turn.trace().calls[1].call.touches[0].resolved.ends_with("/c.txt"));
    }

    #[tokio::test]
    async fn conditional_directives_run_only_with_an_installed_skill() {
        let messages = ["!skill greet\n!with-skill !say hello"];
        let without = run(&messages).await;
        assert_eq!((without.calls(), without.answer()), (vec![("Skill", "no such skill", true)], None));
        let bare = Bare::new();
        let folder = bare.work().join(SKILLS).join("greet");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), "Be kind.").unwrap();
        let mut harness = AgentHarness::for_case(case("case", &messages));
        harness.sandbox = Some(bare);
        let with = harness.play(&Fake).await.unwrap();
        assert_eq!(with.calls(), [("Skill", "Be kind.", false)]);
        assert_eq!(with.answer(), Some("hello"));
    }

    #[tokio::test]
    async fn directives_can_produce_every_ending() {
        for (text, ending) in [
            ("!error no", Ending::GaveUp { reason: "no".into() }),
            ("!provider-error 503", Ending::ProviderFailed { reason: "503".into() }),
            ("!abort", Ending::Aborted { reason: "requested by `!abort`".into() }),
        ] {
            let played = run(&[text, "next"]).await;
            assert_eq!(played.endings, [ending], "{text}");
        }
    }

    #[tokio::test]
    async fn no_turn_starts_after_the_last_one() {
        let mut harness = AgentHarness::for_case(case("case", &["!call A\n!tokens 5 5\n!call B\n!call C"]));
        harness.stop_after(2);
        let played = harness.play(&Fake).await.unwrap();
        assert_eq!(played.endings, [Ending::OutOfBudget { budget: Budget::Turns, limit: 2.0 }]);
        assert_eq!(played.calls().len(), 2);
        assert_eq!(played.tokens(), Some(10));
    }

    #[tokio::test(start_paused = true)]
    async fn sleep_ends_when_the_trial_must_stop() {
        let harness = AgentHarness::for_case(case("case", &["!sleep 1h"]));
        let stop = harness.stop.clone();
        let started = Instant::now();
        let (played, ()) = tokio::join!(harness.play(&Fake), async move {
            stop.send_replace(true);
        });
        assert_eq!(played.unwrap().endings, [Ending::Cancelled]);
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[test]
    fn an_assertion_about_a_call_that_no_message_makes_is_found_before_the_run() {
        let problems = |message: &str| {
            let mut case = case("case", &[message]);
            let node = model::Node::from_json(&json!({"tool": "lookup"}), &model::Source::new("case.yaml", ""));
            case.assertions = vec![model::AssertionSpec {
                kind: model::Spanned::new("tool_called".to_owned(), node.span),
                node,
                arguments: model::Arguments::Fields,
                about: model::AssertionScope::Trial,
                id: "a".to_owned(),
                weight: 1.0,
            }];
            AgentHarness::for_case(case).check(&Fake)
        };
        assert!(problems("hello")[0].contains("`fake` calls no tool in this case"));
        for calls in ["!call lookup", "!with-skill !write a", "!ask Why?"] {
            assert_eq!(problems(calls), [""; 0], "{calls}");
        }
    }

    #[test]
    fn invalid_directives_are_found_before_the_run() {
        let problems = |messages: &[&str]| AgentHarness::for_case(case("case", messages)).check(&Fake);
        let described = problems(&["!slep 2s", "!call"]);
        assert_eq!(
            described,
            [
                "case.yaml:1:1: `!slep` is not a directive of `fake`",
                "case.yaml:1:1: in the `!call` directive: the name of a tool is missing",
            ]
        );
        assert!(problems(&["!sleep 2s"]).is_empty());
        let argument = Fake.check_argument(Some("x"), &new_run());
        assert_eq!(argument[0].to_string(), "`fake` takes no argument, but was given `x`");
    }
}
