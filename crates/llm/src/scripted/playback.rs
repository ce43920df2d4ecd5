//! Playback of a script for one trial.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Tokens;
use model::text::one_line;

use super::Script;
use super::context::ScriptContext;
use super::fault::{Fault, FaultKind};
use super::step::{Step, Times};
use crate::answer::{Answer, BoxFuture, Break, Model, ProviderError, Served};
use crate::{Block, ConversationRole, PendingRequests, Reply, Request, StopReason, Waiting};

/// Playback of a script for one trial. Clones share the state.
#[derive(Debug, Clone)]
pub struct Playback {
    script: Arc<Script>,
    context: Arc<ScriptContext>,
    pending: PendingRequests,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    requests: u64,
    cursors: HashMap<ConversationKey, Cursor>,
    steps: Vec<model::Step>,
    problems: Vec<Problem>,
    faulted: Option<(ConversationKey, ServedFault)>,
    /// Tool calls and texts of all replies.
    replied: Vec<Block>,
    /// The first call that the script makes wrongly.
    mistake: Option<String>,
}

/// Conversation and instance from which a request takes its steps.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ConversationKey {
    /// Index into the script's conversations; `None` for the main one.
    conversation: Option<usize>,
    /// Id of the sub-agent.
    instance: Option<String>,
}

#[derive(Debug, Default)]
struct Cursor {
    /// Prefix of its messages' ids.
    label: String,
    step: usize,
    /// Number of requests that the current step has answered.
    answered: u64,
    requests: u64,
    exhausted: bool,
}

/// Request for which the script has no response. In this case the trial says nothing about the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Description of the problem and of how to fix it, in one line.
    pub message: String,
}

/// Fault that was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedFault {
    /// Description of the fault, with its line in the script.
    pub reason: String,
    /// True if a complete reply was served to the same conversation after it.
    pub recovered: bool,
    /// True if it is an error that the agent's conversation causes, and not the provider.
    pub is_agents_doing: bool,
}

impl Playback {
    pub(super) fn new(script: Arc<Script>, context: ScriptContext) -> Self {
        Self { script, context: Arc::new(context), pending: PendingRequests::default(), state: Arc::default() }
    }

    /// Returns the script's name: its file, as the user wrote it.
    pub fn name(&self) -> &str {
        self.script.name()
    }

    /// Returns the steps to record since the last call, in order: the results of `expect_request`, and the problems
    /// as notices of the harness.
    pub fn take_steps(&self) -> Vec<model::Step> {
        std::mem::take(&mut self.state().steps)
    }

    /// Returns the problems, each only once however often the agent tried.
    pub fn problems(&self) -> Vec<Problem> {
        self.state().problems.clone()
    }

    /// Returns the last fault that was served.
    pub fn faulted(&self) -> Option<ServedFault> {
        self.state().faulted.as_ref().map(|(_, fault)| fault.clone())
    }

    /// Returns the tool calls and the texts of all replies so far.
    pub fn replied(&self) -> Vec<Block> {
        self.state().replied.clone()
    }

    /// Returns a description of the first call of a tool that the agent did not offer to its model, or with an argument
    /// that the tool does not have. No agent can run such a call, so what follows from it is the script's doing.
    pub fn wrong_call(&self) -> Option<String> {
        self.state().mistake.clone()
    }

    /// Returns the number of requests, including side requests.
    pub fn requests_seen(&self) -> u64 {
        self.state().requests
    }

    /// Returns the time that the oldest unanswered request has been waiting; `None` if all are answered. If a trial
    /// times out while a request is waiting, the script caused the delay.
    pub fn in_flight(&self) -> Option<Duration> {
        self.pending.longest()
    }

    /// Returns the currently unanswered requests, oldest first.
    pub fn waiting(&self) -> Vec<Waiting> {
        self.pending.waiting()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the steps for `request`.
    fn route(&self, request: &Request) -> Route {
        let conversations = &self.script.conversations;
        let found = conversations.iter().position(|conversation| conversation.matches(request, &self.context));
        let conversation = &request.conversation;
        if let Some(found) = found {
            return Route::Steps(ConversationKey { conversation: Some(found), instance: conversation.agent.clone() });
        }
        let is_main = match conversation.role {
            ConversationRole::Main => true,
            ConversationRole::Subagent => return Route::UnscriptedSubagent,
            ConversationRole::Unmarked => !request.tools.is_empty() || self.context.without_tools,
        };
        if is_main { Route::Steps(ConversationKey { conversation: None, instance: None }) } else { Route::Side }
    }

    /// Returns the script's response to `request`, the delay before it, and a description of the request.
    fn next(&self, request: &Request) -> Next {
        let route = self.route(request);
        let mut state = self.state();
        state.requests += 1;
        let place = match route {
            Route::Steps(place) => place,
            Route::Side => {
                let reply = side_reply(request, state.requests);
                return Next::at_once(Answer::Reply(reply), "a side request");
            }
            Route::UnscriptedSubagent => {
                let first = request.first_user_text().unwrap_or_default();
                let message = format!(
                    "the script {} has no steps for a sub-agent's conversation (its first message begins: \"{}\"); \
                     add one under `conversations` with `match: {{subagent: true}}`",
                    self.script.name,
                    one_line(&first, 60),
                );
                state.report(&message);
                return Next::at_once(Answer::Failed(ProviderError::Unscripted { message }), "a sub-agent's request");
            }
        };
        let (steps, name) =
            match place.conversation.and_then(|index| self.script.conversations.get(index).zip(Some(index))) {
                Some((conversation, at)) => {
                    let name =
                        conversation.name.as_ref().map_or_else(|| format!("{}", at + 1), |name| format!("`{name}`"));
                    (&conversation.steps, format!("conversation {name}"))
                }
                None => (&self.script.steps, "the main conversation".to_owned()),
            };
        let instances = state.cursors.keys().filter(|other| other.conversation == place.conversation).count();
        let cursor = state.cursors.entry(place.clone()).or_insert_with(|| {
            let label = match place.conversation {
                None => "main".to_owned(),
                Some(at) => format!("c{}_{}", at + 1, instances + 1),
            };
            Cursor { label, ..Cursor::default() }
        });
        cursor.requests += 1;
        let requests = cursor.requests;
        let what = format!("request {requests} of {name}");
        let Some(step) = cursor.advance(steps) else {
            let already = std::mem::replace(&mut cursor.exhausted, true);
            let message = self.exhausted(steps, place.conversation.map(|_| name.as_str()), requests);
            if !already {
                state.report(&message);
            }
            return Next::at_once(Answer::Failed(ProviderError::Exhausted { message }), what);
        };
        let label = format!("{}_{requests:04}", cursor.label);
        let number = cursor.step + 1;
        let prefix = if place.conversation.is_some() { format!("{name}: ") } else { String::new() };
        for checked in step.expect.check(request, &self.context) {
            let reason = format!("{prefix}{}", checked.reason);
            state.steps.push(model::Step::RequestCheck { step: number, met: checked.met, reason });
        }
        let reply = step.reply(request, &self.context, &label);
        if state.mistake.is_none() {
            state.mistake = step.mistake(request);
        }
        let is_kept = |block: &&Block| matches!(block, Block::ToolUse { .. } | Block::Text { .. });
        state.replied.extend(reply.content.iter().filter(is_kept).cloned());
        let answer = match &step.fault {
            None => {
                if let Some((_, fault)) = state.faulted.as_mut().filter(|(faulted, _)| *faulted == place) {
                    fault.recovered = true;
                }
                Answer::Reply(reply)
            }
            Some(fault) => {
                let reason = format!("the script served {} ({})", fault.describe(), step.place);
                let answer = self.broken(fault, reply);
                let is_agents_doing = match &answer {
                    Answer::Failed(error) => error.is_agents_doing(),
                    Answer::Broken { how: Break::ErrorEvent { kind, message }, .. } => {
                        ProviderError::Reported { kind: kind.clone(), message: message.clone() }.is_agents_doing()
                    }
                    _ => false,
                };
                state.faulted = Some((place, ServedFault { reason, recovered: false, is_agents_doing }));
                answer
            }
        };
        Next { answer, delay: step.delay, what }
    }

    fn exhausted(&self, steps: &[Step], conversation: Option<&str>, request: u64) -> String {
        let script = &self.script.name;
        if steps.is_empty() {
            return format!("the script {script} has no steps for {}", conversation.unwrap_or("the main conversation"));
        }
        let of = conversation.map_or_else(String::new, |name| format!(" for {name}"));
        let count = model::text::counted(steps.len(), "step");
        let answered = request_capacity(steps);
        let answered =
            if answered == steps.len() as u64 { String::new() } else { format!(", which answer {answered} requests,") };
        format!("the script {script} has {count}{of}{answered} and this is request {request}; add a step for it")
    }

    fn broken(&self, fault: &Fault, begun: Reply) -> Answer {
        let message_or = |message: &Option<String>, otherwise: &str| {
            message.as_ref().map_or_else(|| otherwise.to_owned(), |message| self.context.fill(message))
        };
        let how = match fault.kind {
            FaultKind::Http => {
                return Answer::Failed(ProviderError::Http {
                    status: fault.status,
                    kind: fault.code.clone(),
                    message: message_or(&fault.message, &format!("a scripted HTTP {}", fault.status)),
                    headers: fault.headers.clone(),
                });
            }
            FaultKind::ErrorEvent => {
                Break::ErrorEvent { kind: fault.code.clone(), message: message_or(&fault.message, "a scripted error") }
            }
            FaultKind::Cut => Break::Cut,
            FaultKind::Malformed => Break::Malformed,
            FaultKind::Hang => Break::Hang,
            FaultKind::HangStream => Break::HangStream,
        };
        Answer::Broken { how, begun }
    }
}

impl Model for Playback {
    fn take_steps(&self) -> Vec<model::Step> {
        Self::take_steps(self)
    }

    fn silent_for(&self) -> Option<Duration> {
        self.in_flight()
    }

    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let Served { answer, pending_request: _waiting } = self.serve(request).await;
            answer.perform().await
        })
    }

    fn serve<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Served> {
        Box::pin(async move {
            let next = self.next(request);
            let pending_request = self.pending.begin(next.what);
            if !next.delay.is_zero() {
                tokio::time::sleep(next.delay).await;
            }
            Served { answer: next.answer, pending_request: Some(pending_request) }
        })
    }
}

enum Route {
    Steps(ConversationKey),
    Side,
    UnscriptedSubagent,
}

struct Next {
    answer: Answer,
    delay: Duration,
    what: String,
}

impl Next {
    fn at_once(answer: Answer, what: impl Into<String>) -> Self {
        Self { answer, delay: Duration::ZERO, what: what.into() }
    }
}

impl State {
    fn report(&mut self, message: &str) {
        if self.problems.iter().any(|problem| problem.message == message) {
            return;
        }
        self.problems.push(Problem { message: message.to_owned() });
        self.steps.push(model::Step::Notice { from: "harness".into(), text: message.to_owned() });
    }
}

impl Cursor {
    /// Returns the step for the next request, after the used ones.
    fn advance<'s>(&mut self, steps: &'s [Step]) -> Option<&'s Step> {
        if let Some(step) = steps.get(self.step)
            && step.times == Times::Exactly(self.answered)
        {
            self.step += 1;
            self.answered = 0;
        }
        let step = steps.get(self.step)?;
        self.answered += 1;
        Some(step)
    }
}

fn request_capacity(steps: &[Step]) -> u64 {
    steps
        .iter()
        .map(|step| match step.times {
            Times::Exactly(times) => times,
            Times::Forever => u64::MAX,
        })
        .fold(0, u64::saturating_add)
}

/// Creates a short reply to a request that the script does not cover. It uses no tokens, so a trial's tokens are those
/// in the script.
fn side_reply(request: &Request, number: u64) -> Reply {
    Reply {
        message_id: format!("msg_side_{number:04}"),
        model: request.model.clone(),
        content: vec![Block::Text { text: "ok".into() }],
        stop_reason: StopReason::EndTurn,
        tokens: Some(Tokens::default()),
        ..Reply::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::specimen;
    use super::*;
    use crate::{Conversation, Message, Role, ToolSpec};

    fn play(text: &str) -> Playback {
        let context = ScriptContext { sandbox: "/box".into(), home: "/home/a".into(), without_tools: false };
        specimen::script(text).play(context)
    }

    /// Creates a request in the main conversation, as sent by an agent that does not mark its conversations.
    fn asks(text: &str) -> Request {
        Request {
            model: "m1".into(),
            messages: vec![Message::text(Role::User, text)],
            tools: vec![ToolSpec { name: "Bash".into(), ..ToolSpec::default() }],
            ..Request::default()
        }
    }

    fn sub_asks(id: &str, text: &str) -> Request {
        Request { conversation: Conversation::subagent(Some(id.into())), ..asks(text) }
    }

    async fn text_of(playback: &Playback, request: &Request) -> String {
        let reply = playback.respond(request).await.unwrap();
        Message { role: Role::Assistant, content: reply.content }.spoken()
    }

    #[tokio::test]
    async fn a_step_plays_all_of_its_content() {
        let playback = play(
            "steps: [{thinking: Hm., text: 'In $SANDBOX.', tools: [{name: Read, input: {file_path: $HOME/x}}, \
             {name: Bash, id: own}], usage: {input: 1, output: 2, cache_read: 3, cache_write: 4}}]",
        );
        let reply = playback.respond(&asks("go")).await.unwrap();
        assert_eq!(
            reply,
            Reply {
                message_id: "msg_main_0001".into(),
                model: "m1".into(),
                content: vec![
                    Block::Thinking { text: "Hm.".into(), signature: None },
                    Block::Text { text: "In /box.".into() },
                    Block::ToolUse {
                        id: "toolu_main_0001_1".into(),
                        name: "Read".into(),
                        input: json!({"file_path": "/home/a/x"}),
                    },
                    Block::ToolUse { id: "own".into(), name: "Bash".into(), input: json!({}) },
                ],
                stop_reason: StopReason::ToolUse,
                tokens: Some(Tokens { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: None }),
                ..Reply::default()
            }
        );
    }

    #[tokio::test]
    async fn the_nth_request_gets_the_nth_step_and_repeats_count() {
        let playback = play("steps: [{text: a}, {text: b, repeat: 2}, {text: c, repeat: forever}]");
        for expected in ["a", "b", "b", "c", "c", "c"] {
            assert_eq!(text_of(&playback, &asks("x")).await, expected);
        }
        assert_eq!(playback.requests_seen(), 6);
        assert!(playback.problems().is_empty());
    }

    #[tokio::test]
    async fn a_request_after_the_last_step_is_one_problem_for_all_retries() {
        let playback = play("steps: [{text: a}, {text: b, repeat: 2}]");
        for _ in 0..3 {
            text_of(&playback, &asks("x")).await;
        }
        let message =
            "the script s.yaml has 2 steps, which answer 3 requests, and this is request 4; add a step for it";
        let error = playback.respond(&asks("x")).await.unwrap_err();
        assert_eq!(error, ProviderError::Exhausted { message: message.into() });
        playback.respond(&asks("x")).await.unwrap_err();
        assert_eq!(playback.problems(), [Problem { message: message.into() }]);
        assert_eq!(playback.take_steps(), [model::Step::Notice { from: "harness".into(), text: message.into() }]);
        assert!(playback.take_steps().is_empty());
    }

    #[tokio::test]
    async fn every_trial_plays_the_script_from_its_beginning() {
        let script = specimen::script("steps: [{text: a}, {text: b}]");
        let first = script.play(ScriptContext::default());
        assert_eq!(text_of(&first, &asks("x")).await, "a");
        assert_eq!(text_of(&script.play(ScriptContext::default()), &asks("x")).await, "a");
        assert_eq!(text_of(&first.clone(), &asks("x")).await, "b");
    }

    #[tokio::test]
    async fn sub_agents_play_their_own_steps_each_from_the_beginning() {
        let playback = play(
            "steps: [{text: m1}, {text: m2}]\nconversations:\n\
             - {match: {subagent: true, first_user_contains: [count, lines]}, steps: [{text: a1}, {text: a2}]}\n\
             - {name: rest, match: {subagent: true}, steps: [{text: b1}]}",
        );
        let count = |id: &str| sub_asks(id, "count the lines");
        assert_eq!(text_of(&playback, &asks("x")).await, "m1");
        assert_eq!(text_of(&playback, &count("s1")).await, "a1");
        assert_eq!(text_of(&playback, &count("s2")).await, "a1");
        assert_eq!(text_of(&playback, &asks("x")).await, "m2");
        let second = playback.respond(&count("s1")).await.unwrap();
        assert_eq!(second.message_id, "msg_c1_1_0002");
        assert_eq!(playback.respond(&count("s2")).await.unwrap().message_id, "msg_c1_2_0002");
        assert_eq!(text_of(&playback, &sub_asks("s3", "count words")).await, "b1");
        let error = playback.respond(&sub_asks("s3", "count words")).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the script s.yaml has 1 step for conversation `rest` and this is request 2; add a step for it"
        );
    }

    #[tokio::test]
    async fn a_sub_agent_without_steps_is_a_problem_and_consumes_no_step() {
        let playback = play("steps: [{text: m1}]");
        let error = playback.respond(&sub_asks("s1", "find\nbugs")).await.unwrap_err().to_string();
        assert!(error.contains("no steps for a sub-agent's conversation (its first message begins: \"find bugs\")"));
        assert!(error.contains("`match: {subagent: true}`"), "{error}");
        assert_eq!(playback.problems().len(), 1);
        assert_eq!(text_of(&playback, &asks("x")).await, "m1");
    }

    #[tokio::test]
    async fn a_side_request_consumes_no_step_and_costs_nothing() {
        let playback = play("steps: [{text: m1}]");
        let title = Request { tools: Vec::new(), ..asks("a title, please") };
        let reply = playback.respond(&title).await.unwrap();
        assert_eq!((reply.tokens, reply.content), (Some(Tokens::default()), vec![Block::Text { text: "ok".into() }]));
        assert_eq!(text_of(&playback, &asks("x")).await, "m1");
        assert!(playback.problems().is_empty());
    }

    #[tokio::test]
    async fn a_main_conversation_may_have_no_tools() {
        let script = specimen::script("steps: [{text: m1}, {text: m2}]");
        let toolless = Request { tools: Vec::new(), ..asks("x") };
        let closed = script.play(ScriptContext { without_tools: true, ..ScriptContext::default() });
        assert_eq!(text_of(&closed, &toolless).await, "m1");
        let marked = Request { conversation: Conversation::main(), ..toolless };
        assert_eq!(text_of(&script.play(ScriptContext::default()), &marked).await, "m1");
    }

    #[tokio::test]
    async fn a_request_may_be_matched_by_its_tools_and_its_system_prompt() {
        let playback = play(
            "conversations:\n- {match: {has_tools: false, system_contains: title}, steps: [{text: A title}]}\n\
             - {match: {has_tools: true}, steps: [{text: tools}]}",
        );
        let title = Request { tools: Vec::new(), system: vec!["Write a title.".into()], ..asks("x") };
        assert_eq!(text_of(&playback, &title).await, "A title");
        assert_eq!(text_of(&playback, &asks("x")).await, "tools");
        let marked = Request { tools: Vec::new(), conversation: Conversation::main(), ..asks("x") };
        let error = playback.respond(&marked).await.unwrap_err().to_string();
        assert_eq!(error, "the script s.yaml has no steps for the main conversation");
    }

    #[tokio::test]
    async fn the_user_message_is_found_among_messages_added_by_the_agent() {
        let playback = play(
            "conversations:\n- {match: {user_contains: Greet, system_contains: '- greet:'}, steps: [{text: with}]}\n\
             - {match: {user_contains: Greet}, steps: [{text: without}]}",
        );
        let mut request = asks("<environment_context>");
        request.messages.push(Message::text(Role::User, "Greet Ada."));
        assert_eq!(text_of(&playback, &request).await, "without");
        request.messages.insert(0, Message::text(Role::System, "- greet: greets"));
        assert_eq!(text_of(&playback, &request).await, "with");
    }

    #[tokio::test]
    async fn checks_are_recorded_and_the_answer_is_sent() {
        let playback = play("steps: [{text: a}, {text: b, expect_request: {contains: $SANDBOX, model: other}}]");
        text_of(&playback, &asks("x")).await;
        assert_eq!(text_of(&playback, &asks("look into /box")).await, "b");
        let check = |met, reason: &str| model::Step::RequestCheck { step: 2, met, reason: reason.into() };
        assert_eq!(
            playback.take_steps(),
            [check(false, "the model is `m1`, not `other`"), check(true, "the request contains `/box`")]
        );
    }

    #[tokio::test]
    async fn faults_are_errors_in_process_and_end_after_their_count() {
        let playback = play(
            "steps: [{fault: {kind: http, status: 429, times: 2, headers: {retry-after: '3'}}}, {fault: {kind: cut}}, \
             {fault: {kind: malformed}}, {fault: {kind: error_event, type: t, message: in $SANDBOX}}, {text: fine}]",
        );
        assert_eq!(playback.faulted(), None);
        let mut errors = Vec::new();
        for _ in 0..5 {
            errors.push(playback.respond(&asks("x")).await.unwrap_err());
        }
        assert_eq!(errors[0], errors[1]);
        assert_eq!(errors[0].retry_after(), Some(Duration::from_secs(3)));
        assert_eq!(errors[0].to_string(), "HTTP 429: a scripted HTTP 429");
        assert_eq!(errors[2..4], [ProviderError::Cut, ProviderError::Malformed]);
        let reported = ProviderError::Reported { kind: Some("t".into()), message: "in /box".into() };
        assert_eq!(errors[4], reported);
        let fault = playback.faulted().unwrap();
        assert!(!fault.recovered);
        assert!(fault.reason.starts_with("the script served an error within the response (t) (s.yaml:1:"));
        assert_eq!(text_of(&playback, &asks("x")).await, "fine");
        assert!(playback.faulted().unwrap().recovered);
    }

    #[tokio::test]
    async fn a_call_of_a_tool_that_is_not_offered_is_known() {
        for (step, expected) in [
            ("{tools: [{name: Read}, {name: read}]}", Some("did you mean `Read`? (it offers Read, Bash, tool_search)")),
            ("{tools: [{name: mcp__a.list}]}", Some("finds with `tool_search` needs `offered: false` (it offers Read")),
            ("{tools: [{name: read, offered: false}]}", None),
            ("{tools: [{name: Bash}, {name: functions.Read}]}", None),
            ("{tools: [{name: read}], fault: {kind: cut}}", None),
        ] {
            let playback = play(&format!("steps: [{step}]"));
            let tool = |name: &str| ToolSpec { name: name.into(), ..ToolSpec::default() };
            let request = Request { tools: vec![tool("Read"), tool("Bash"), tool("tool_search")], ..asks("x") };
            let _ = playback.respond(&request).await;
            let wrong = playback.wrong_call();
            assert_eq!(wrong.is_some(), expected.is_some(), "{step}: {wrong:?}");
            assert!(wrong.unwrap_or_default().contains(expected.unwrap_or_default()), "{step}");
        }
        let playback = play("steps: [{tools: [{name: read}]}]");
        let _ = playback.respond(&Request { tools: Vec::new(), conversation: Conversation::main(), ..asks("x") }).await;
        assert_eq!(playback.wrong_call(), None, "where the tools are is not known");
    }

    #[tokio::test]
    async fn a_call_with_an_argument_that_its_tool_does_not_have_is_known() {
        let mistake = "s.yaml:1:25: the script calls `Edit` with `old_str`, which is not one of its arguments; did you \
                       mean `old_string`? (it has path, old_string)";
        for (call, is_closed, expected) in [
            ("{name: Edit, input: {path: a, old_str: b}}", true, Some(mistake)),
            ("{name: Edit, input: {path: a, old_str: b}}", false, None),
            ("{name: Edit, input: {path: a, old_str: b}, offered: false}", true, None),
            ("{name: Edit, input: {path: a}}", true, None),
            ("{name: Edit, input: text}", true, None),
        ] {
            let playback = play(&format!("steps: [{{tools: [{call}]}}]"));
            let properties = json!({"path": {"type": "string"}, "old_string": {"type": "string"}});
            let input_schema = json!({"type": "object", "properties": properties, "additionalProperties": !is_closed});
            let tool = ToolSpec { name: "Edit".into(), input_schema, ..ToolSpec::default() };
            let _ = playback.respond(&Request { tools: vec![tool], ..asks("x") }).await;
            assert_eq!(playback.wrong_call().as_deref(), expected, "{call}");
        }
        let playback = play("steps: [{tools: [{name: get, input: {id: 7}}]}]");
        let input_schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let tool = ToolSpec { name: "get".into(), input_schema, ..ToolSpec::default() };
        let _ = playback.respond(&Request { tools: vec![tool], ..asks("x") }).await;
        assert_eq!(playback.wrong_call(), None, "a tool that declares no arguments");
    }

    #[tokio::test]
    async fn an_error_that_the_conversation_causes_is_told_apart() {
        for (fault, expected) in [
            ("{kind: http, status: 400, type: context_length_exceeded}", true),
            ("{kind: error_event, message: 'prompt is too long: 210000 tokens'}", true),
            ("{kind: http, status: 400}", false),
            ("{kind: cut}", false),
        ] {
            let playback = play(&format!("steps: [{{fault: {fault}}}]"));
            let error = playback.respond(&asks("x")).await.unwrap_err();
            assert_eq!(
                (playback.faulted().unwrap().is_agents_doing, error.is_agents_doing()),
                (expected, expected),
                "{fault}"
            );
        }
    }

    #[tokio::test]
    async fn a_hanging_request_is_in_flight_until_the_agent_cancels_it() {
        let playback = play("steps: [{fault: {kind: hang}}, {text: a}]");
        let request = asks("x");
        let mut hanging = playback.respond(&request);
        assert_eq!(playback.in_flight(), None);
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(hanging.as_mut().poll(context))).await;
        assert!(polled.is_pending());
        assert!(playback.in_flight().is_some());
        assert_eq!(playback.waiting()[0].what, "request 1 of the main conversation");
        drop(hanging);
        assert_eq!(playback.in_flight(), None);
        assert_eq!(text_of(&playback, &request).await, "a");
        assert_eq!(playback.in_flight(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_delayed_as_scripted() {
        let playback = play("steps: [{text: a, delay: 0.05}]");
        let begun = tokio::time::Instant::now();
        assert_eq!(text_of(&playback, &asks("x")).await, "a");
        assert_eq!(begun.elapsed(), Duration::from_millis(50));
    }
}
