//! Tests of the agent loop with scripted models, real files and real processes.

mod providers;

use std::time::{Duration, Instant};

use model::{Budget, Case, PermissionMode};
use serde_json::{Value, json};

use super::*;
use crate::Setup;
use crate::tests::harness::{AgentHarness, TestRun, case, response};

/// Runs the script `steps` for the message `go`.
async fn run(steps: Value) -> TestRun {
    AgentHarness::scripted("go", &steps).play(&Chat).await.unwrap()
}

/// Returns a step with one call.
fn call(name: &str, input: Value) -> Value {
    let mut step = json!({"tools": [{ "name": name }]});
    step["tools"][0]["input"] = input;
    step
}

fn unmet(played: &TestRun) -> Vec<&str> {
    played.turn.trace().request_checks.iter().filter(|(_, met, _)| !met).map(|(_, _, reason)| reason.as_str()).collect()
}

#[tokio::test]
async fn a_file_is_written_read_and_edited_in_the_sandbox() {
    let harness = AgentHarness::scripted(
        "go",
        &json!([
            {"thinking": "hm", "text": "I write.", "tools": [{"name": "Write", "input": {"file_path": "a.txt", "content": "one\n"}}]},
            call("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
            call("Read", json!({"file_path": "a.txt"})),
            {"text": "done", "usage": {"input": 10, "output": 5, "cache_read": 1}, "expect_request": {"tool_result_contains": "1\ttwo"}},
        ]),
    );
    let bare = harness.bare();
    let played = harness.play(&Chat).await.unwrap();
    assert_eq!(bare.content("a.txt"), "two\n");
    assert_eq!(
        played.calls(),
        [
            ("Write", "Created a.txt (1 line).", false),
            ("Edit", "Edited a.txt (1 replacement).", false),
            ("Read", "     1\ttwo\n", false),
        ]
    );
    let trace = played.turn.trace();
    assert_eq!((played.answer(), trace.turn_count()), (Some("done"), 4));
    assert_eq!((trace.turns[0].thinking.as_str(), trace.turns[0].text.as_str()), ("hm", "I write."));
    // Three steps without reported usage count as 100 + 10 tokens each.
    assert_eq!(played.tokens(), Some(3 * 110 + 16));
    assert_eq!(trace.tools, tool::NAMES);
    assert_eq!(trace.model.as_deref(), Some("script.json"));
    assert!(trace.calls[0].call.touches[0].resolved.ends_with("/work/a.txt"));
    assert!(unmet(&played).is_empty());
}

#[tokio::test]
async fn calls_of_one_message_form_one_turn_and_their_results_are_returned_together() {
    let played = run(json!([
        {"tools": [
            {"name": "Bash", "input": {"command": "echo one"}},
            {"name": "Bash", "input": {"command": "echo two >&2; exit 3"}},
        ]},
        {"text": "done", "expect_request": {"tool_result_contains": ["one", "Exit code 3\ntwo"]}},
    ]))
    .await;
    assert_eq!(played.calls(), [("Bash", "one", false), ("Bash", "Exit code 3\ntwo", true)]);
    assert_eq!(played.turn.trace().turn_count(), 2);
    assert!(unmet(&played).is_empty(), "{:?}", unmet(&played));
}

#[tokio::test]
async fn a_command_runs_in_the_sandbox_with_its_environment() {
    let harness = AgentHarness::scripted(
        "go",
        &json!([
            call("Bash", json!({"command": "pwd; echo ${HOME}; echo \"$CARGO_MANIFEST_DIR\"", "description": "where am I"})),
            {"text": "done"},
        ]),
    );
    let bare = harness.bare();
    let played = harness.play(&Chat).await.unwrap();
    let at = |path: &std::path::Path| path.display().to_string();
    assert_eq!(played.calls()[0].1, format!("{}\n{}", at(bare.work()), at(bare.home())));
}

#[tokio::test]
async fn command_output_is_cut_in_the_middle_and_stays_in_order() {
    let noisy = "echo begin; yes ü | head -c 200000; echo end >&2; echo last";
    let played = run(json!([call("Bash", json!({ "command": noisy })), call("Bash", json!({"command": "printf ''"})), {"text": "done"}])).await;
    let (_, text, _) = played.calls()[0];
    assert!(text.starts_with("begin\nü") && text.ends_with("end\nlast"), "{}", &text[text.len() - 40..]);
    assert!(text.contains("omitted …]") && text.chars().count() < 30_200, "{}", text.chars().count());
    assert_eq!(played.calls()[1].1, "(no output)");
}

#[tokio::test]
async fn the_timeout_of_a_command_is_capped_by_the_trial() {
    let started = Instant::now();
    let mut harness = AgentHarness::scripted(
        "go",
        &json!([
            call("Bash", json!({"command": "echo a; exec sleep 100", "timeout": 50})),
            call("Bash", json!({"command": "exec sleep 100", "timeout": 500_000})),
            {"text": "done"},
        ]),
    );
    harness.setup.timeout_ms = 80;
    let played = harness.play(&Chat).await.unwrap();
    let limit = "The command timed out after";
    assert_eq!(played.calls()[0], ("Bash", &*format!("{limit} 0.05 s.\na"), true));
    assert_eq!(played.calls()[1], ("Bash", &*format!("{limit} 0.08 s."), true));
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn a_command_ends_when_the_trial_must_stop() {
    let harness = AgentHarness::scripted(
        "go",
        &json!([
            {"tools": [
                {"name": "Bash", "input": {"command": "touch started; exec sleep 1000"}},
                {"name": "Write", "input": {"file_path": "late", "content": ""}},
            ]},
            {"text": "never"},
        ]),
    );
    let (bare, stop) = (harness.bare(), harness.stop.clone());
    let stopping = async move {
        while !bare.work().join("started").exists() {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
        bare
    };
    let (played, bare) = tokio::join!(harness.play(&Chat), stopping);
    let played = played.unwrap();
    assert_eq!(played.endings, [Ending::Cancelled]);
    assert_eq!(
        played.calls(),
        [("Bash", "The tool was stopped before it had finished.", true), ("Write", "(none)", false)]
    );
    assert!(!bare.work().join("late").exists());
    assert_eq!(played.tokens(), Some(110));
}

#[tokio::test]
async fn several_questions_are_answered_at_once() {
    let mut harness = AgentHarness::scripted(
        "go",
        &json!([
            call("AskUserQuestion", json!({"questions": [
                {"question": "Which color?", "options": [{"label": "Red"}, {"label": "Blue"}]},
                {"question": "Which sizes?", "multiSelect": true, "options": [{"label": "S"}, {"label": "L"}]},
                {"question": "Push?", "options": []},
            ]})),
            {"text": "done"},
        ]),
    );
    harness.case.user_responses = vec![response("sizes", "S, L"), response("color", "Blue")];
    let played = harness.play(&Chat).await.unwrap();
    let answers = "Which color?\n→ Blue\nWhich sizes?\n→ S, L\nPush?\n(no answer was prepared for this question)";
    assert_eq!(played.calls(), [("AskUserQuestion", answers, false)]);
    let questions = &played.turn.trace().questions;
    assert_eq!(questions.iter().map(|question| question.response).collect::<Vec<_>>(), [Some(1), Some(0), None]);
    assert!(questions[1].multi_select && questions[0].call_id.is_some());
}

#[tokio::test]
async fn an_installed_skill_is_announced_and_can_be_loaded() {
    let harness = AgentHarness::scripted(
        "go",
        &json!([
            {
                "tools": [{"name": "Skill", "input": {"skill": "commit", "args": "short"}}],
                "expect_request": {"system_contains": ["- commit: Writes commits", "Be kind."], "last_user_contains": "go"},
            },
            call("Skill", json!({"skill": "comit"})),
            {"text": "done"},
        ]),
    );
    let folder = harness.bare().work().join(".claude/skills/commit");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("SKILL.md"),
        "---\nname: commit\ndescription: Writes commits\n---\nCommit: $ARGUMENTS.\n",
    )
    .unwrap();
    let harness =
        AgentHarness { setup: Setup { system_prompt: Some("Be kind.".into()), ..harness.setup.clone() }, ..harness };
    let played = harness.play(&Chat).await.unwrap();
    let loaded = "The files of this skill are in .claude/skills/commit/.\n\nCommit: short.";
    let unknown = "There is no skill named `comit`. Installed skills: commit. Did you mean `commit`?";
    assert_eq!(played.calls(), [("Skill", loaded, false), ("Skill", unknown, true)]);
    assert!(unmet(&played).is_empty(), "{:?}", unmet(&played));
}

#[tokio::test]
async fn a_tool_outside_the_list_is_not_offered_and_scopes_are_enforced() {
    let mut harness = AgentHarness::scripted(
        "go",
        &json!([
            {
                "tools": [
                    {"name": "Bash", "input": {"command": "echo yes"}},
                    {"name": "Bash", "input": {"command": "touch no"}},
                    {"name": "Write", "input": {"file_path": "no", "content": ""}},
                ],
                "expect_request": {"tools_include": ["Bash", "Read"], "tools_exclude": ["Write", "Skill"]},
            },
            {"text": "done"},
        ]),
    );
    harness.setup.closed_tools = Some(vec!["Bash(echo *)".into(), "Read".into()]);
    let bare = harness.bare();
    let mut played = harness.play(&Chat).await.unwrap();
    assert_eq!(
        played.calls(),
        [
            ("Bash", "yes", false),
            ("Bash", "Bash is limited to: echo *", true),
            ("Write", "No such tool: `Write`. Available tools: Bash, Read.", true),
        ]
    );
    assert!(!bare.work().join("no").exists());
    assert_eq!(played.turn.trace().tools, ["Bash", "Read"]);
    assert!(unmet(&played).is_empty(), "{:?}", unmet(&played));
    let denied = played.steps().into_iter().filter(|step| matches!(step, Step::PermissionDenied { .. })).count();
    assert_eq!(denied, 1);
}

#[tokio::test]
async fn calls_without_approval_are_denied() {
    let mut harness = AgentHarness::scripted(
        "go",
        &json!([
            {"tools": [
                {"name": "Write", "input": {"file_path": "a", "content": ""}},
                {"name": "Bash", "input": {"command": "git --version"}},
                {"name": "Bash", "input": {"command": "touch b"}},
            ]},
            {"text": "done"},
        ]),
    );
    harness.setup.permission_mode = PermissionMode::AcceptEdits;
    harness.setup.approved_tools = vec!["Bash(git *)".into()];
    let bare = harness.bare();
    let mut played = harness.play(&Chat).await.unwrap();
    assert_eq!(played.calls().iter().map(|(_, _, is_error)| *is_error).collect::<Vec<_>>(), [false, false, true]);
    assert!(bare.work().join("a").exists() && !bare.work().join("b").exists());
    let call = played.turn.trace().calls[2].call.id.clone();
    assert!(played.steps().iter().any(
        |step| matches!(step, Step::PermissionDenied { tool, call_id, .. } if tool == "Bash" && *call_id == Some(call.clone()))
    ));
}

#[tokio::test]
async fn an_invalid_call_is_reported_to_the_model() {
    let played = run(json!([
        {"tools": [
            {"name": "Reed", "input": {}},
            {"name": "Read", "input": {"path": "a"}},
            {"name": "Read", "input": {"file_path": "/etc/passwd"}},
        ]},
        {"text": "done"},
    ]))
    .await;
    let results: Vec<_> = played.calls().iter().map(|(_, text, is_error)| ((*text).to_owned(), *is_error)).collect();
    assert!(results.iter().all(|(_, is_error)| *is_error));
    assert!(results[0].0.starts_with("No such tool: `Reed`. Did you mean `Read`?"), "{}", results[0].0);
    assert!(results[1].0.starts_with("Invalid arguments: unknown `path`"), "{}", results[1].0);
    assert!(results[2].0.contains("outside the sandbox"), "{}", results[2].0);
    let warned = "the scripted model called `Read` wrongly. Invalid arguments: unknown `path`";
    assert_eq!(played.turn.trace().calls[2].call.touches[0].resolved, "/etc/passwd");
    let (_, _, warnings) = played.turn.into_parts();
    assert!(warnings.iter().any(|warning| warning.starts_with(warned)), "{warnings:?}");
}

#[tokio::test]
async fn a_chain_of_messages_is_one_conversation() {
    let steps = json!([
        {"text": "one", "expect_request": {"last_user_contains": "first"}},
        {"text": "two", "expect_request": {"last_user_contains": "second", "contains": ["first", "one"]}},
    ]);
    let mut harness = AgentHarness::scripted("", &steps);
    harness.case = case("case", &["first", "second"]);
    let mut played = harness.play(&Chat).await.unwrap();
    assert!(unmet(&played).is_empty(), "{:?}", unmet(&played));
    assert_eq!(played.endings, [Ending::Finished, Ending::Finished]);
    assert_eq!(played.answer(), Some("two"));
    let sessions = played.steps().iter().filter(|step| matches!(step, Step::Session { .. })).count();
    assert_eq!(sessions, 1);
}

#[tokio::test]
async fn the_model_is_not_called_again_after_the_turn_limit() {
    let steps =
        json!([call("Bash", json!({"command": "true"})), call("Bash", json!({"command": "true"})), {"text": "x"}]);
    let mut harness = AgentHarness::scripted("go", &steps);
    harness.stop_after(2);
    let played = harness.play(&Chat).await.unwrap();
    assert_eq!(played.endings, [Ending::OutOfBudget { budget: Budget::Turns, limit: 2.0 }]);
    assert_eq!((played.calls().len(), played.tokens()), (2, Some(220)));
    assert_eq!(harness.playback.unwrap().requests_seen(), 2);
}

#[tokio::test]
async fn the_model_is_not_called_again_after_the_token_budget() {
    let mut forever = call("Bash", json!({"command": "true"}));
    forever["repeat"] = json!("forever");
    let mut harness = AgentHarness::scripted("go", &json!([forever]));
    harness.limits.token_budget = Some(200.0);
    let played = harness.play(&Chat).await.unwrap();
    assert_eq!(played.endings, [Ending::OutOfBudget { budget: Budget::Tokens, limit: 200.0 }]);
    assert_eq!((harness.playback.unwrap().requests_seen(), played.tokens()), (2, Some(220)));
}

#[tokio::test]
async fn a_provider_failure_is_attributed_to_the_provider() {
    for (steps, part) in [
        (json!([{"fault": {"kind": "http", "status": 529}}]), "529"),
        (json!([{"fault": {"kind": "cut"}}]), "closed"),
        (json!([{"fault": {"kind": "malformed"}}]), "format"),
        (json!([call("Bash", json!({"command": "true"}))]), "1 step"),
    ] {
        let played = run(steps).await;
        let [Ending::ProviderFailed { reason }] = &played.endings[..] else { panic!("{:?}", played.endings) };
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn a_provider_that_hangs_can_be_interrupted() {
    let harness = AgentHarness::scripted("go", &json!([{"fault": {"kind": "hang"}}]));
    let (model, stop) = (harness.playback.clone().unwrap(), harness.stop.clone());
    let stopping = async move {
        while model.requests_seen() == 0 {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    };
    let (played, ()) = tokio::join!(harness.play(&Chat), stopping);
    assert_eq!(played.unwrap().endings, [Ending::Cancelled]);
}

#[tokio::test]
async fn a_refusal_or_a_truncated_answer_counts_as_giving_up() {
    for stop in ["refusal", "max_tokens"] {
        let played = run(json!([{"text": "half", "stop": stop}])).await;
        assert!(matches!(&played.endings[..], [Ending::GaveUp { .. }]), "{stop}: {:?}", played.endings);
        assert_eq!(played.answer(), None);
    }
    let paused = run(json!([{"text": "wait", "stop": "pause_turn"}, {"text": "done"}])).await;
    assert_eq!((paused.answer(), paused.turn.trace().turn_count()), (Some("done"), 2));
}

#[test]
fn an_unreachable_model_is_detected_before_anything_runs() {
    let check = |model: Option<&str>, case: &Case| -> Vec<String> {
        let mut harness = AgentHarness::for_case(case.clone());
        harness.setup.model = model.map(str::to_owned);
        harness.check(&Chat)
    };
    let mut own = case("a", &["go"]);
    assert!(check(Some("scripted:a.yaml"), &own).is_empty());
    assert_eq!(check(None, &own), ["case.yaml:1:1: `chat` needs a model"]);
    assert_eq!(check(Some("model-5"), &own), ["`chat` cannot access the model `model-5`"]);
    Arc::make_mut(&mut own.runner).model = Some("script:a.yaml".into());
    assert_eq!(check(Some("script:a.yaml"), &own), ["case.yaml:1:1: `chat` cannot access the model `script:a.yaml`"]);
    Arc::make_mut(&mut own.runner).allowed_tools_override = Some(vec!["Bash(ls)".into(), "Reed".into()]);
    assert_eq!(check(Some("scripted:a.yaml"), &own), ["case.yaml:1:1: `chat` has no tool named `Reed`"]);
}

#[test]
fn only_tools_of_the_list_are_offered_unless_one_of_its_names_is_not_known() {
    let offered = |listed: Option<&[&str]>| {
        let mut own = case("a", &["go"]);
        Arc::make_mut(&mut own.runner).allowed_tools_override =
            listed.map(|listed| listed.iter().map(|&rule| rule.to_owned()).collect());
        let tools = Chat.offered_tools(&own, &Mocks::default()).unwrap();
        tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(offered(Some(&["Bash(ls)", "Read"])), ["Bash", "Read"]);
    assert_eq!(offered(Some(&["Bash", "Reed"])), offered(None));
    assert!(offered(Some(&[])).is_empty());
}
