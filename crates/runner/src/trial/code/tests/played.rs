//! Simulated users: which model plays them, their usage, and the outcome if no model can.

use model::{AuxiliaryUsage, Fault, Node, SimulatedUser, Source, UserMessage};
use serde_json::{Value, json};

use super::*;

/// Answers from a model that sends these messages and then leaves.
fn says(messages: &[&str]) -> Value {
    let turn = |message: &str, done: bool| json!({ "message": message, "done": done, "reason": "enough" }).to_string();
    let turns = messages.iter().map(|message| turn(message, false)).chain([turn("", true)]);
    let steps: Vec<Value> = turns.map(|text| json!({ "text": text, "usage": { "input": 10, "output": 5 } })).collect();
    json!({ "steps": steps })
}

/// Creates a reader that returns this script for the file `user.yaml` in any folder, and an error for every other
/// file.
fn reader(script: Value) -> ReadScript {
    Arc::new(move |file: &Path| match file.ends_with("user.yaml") {
        true => llm::Script::from_node(&Node::from_json(&script, &Source::new("user.yaml", ""))),
        false => Err(vec![model::Diagnostic::error(format!("cannot read {}", file.display()))]),
    })
}

fn conversing(model: &str) -> String {
    format!(
        "  const talk = await persona({{ role: 'customer' }}).converse(agent, {{ goal: 'a refund', {model} }});\n  \
         assert.custom('talked', () => talk.replies.length === 2 && talk.reason === 'enough');"
    )
}

/// Creates a conversation whose user is played by `model`.
fn conversation(model: Option<&str>) -> Case {
    let user = SimulatedUser {
        persona: serde_json::Map::new(),
        goal: "a refund".into(),
        stop_when: None,
        max_turns: 5,
        model: model.map(str::to_owned),
        source: Excerpt::of_file("played.yaml"),
    };
    let played = Case::new("played", Excerpt::of_file("played.yaml"));
    Case { user: Some(user.into()), must_assert: false, ..played }
}

impl Play {
    fn case(mut self, case: Case) -> Self {
        let path = self.folder.path().join("played.yaml");
        let cases = vec![Arc::new(case)];
        self.suites.push(Suite { name: "played".into(), path, format: "conversation", cases });
        self
    }
}

fn took(record: &TrialRecord) -> (u64, Option<u64>) {
    let user: AuxiliaryUsage = record.user.unwrap();
    (user.requests, user.tokens.map(|tokens| tokens.total()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_plays_the_user_in_code_scenarios_and_in_conversations() {
    let code = Play::new().scenario("x", &conversing("model: 'scripted:user.yaml'"));
    let yaml = Play::new().case(conversation(Some("scripted:/anywhere/user.yaml")));
    for mut play in [code, yaml] {
        play.read_script = reader(says(&["one", "two"]));
        play.may_warn = true;
        let record = play.run().await.remove(0);
        assert_eq!(record.outcome, Outcome::Passed, "{record:#?}");
        assert_eq!((record.input.join(" "), took(&record)), ("one two".to_owned(), (3, Some(45))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_cannot_be_played_breaks_the_trial_without_a_retry() {
    for (play, reason) in [
        (Play::new().scenario("x", &conversing("")), "cannot simulate the user: no judge: set "),
        (
            Play::new().scenario("x", &conversing("model: 'scripted:gone.yaml'")),
            "cannot simulate the user: the script ",
        ),
        (Play::new().scenario("x", &conversing("model: 'nowhere:m'")), "cannot simulate the user: "),
        (Play::new().case(conversation(None)), "cannot simulate the user: no judge: set "),
    ] {
        let mut play = play;
        play.settings.retry.retries = 3;
        play.may_warn = true;
        let record = play.run().await.remove(0);
        assert_eq!((record.outcome, record.fault), (Outcome::Broken, Some(Fault::Environment)), "{record:#?}");
        assert_eq!(record.attempts.len(), 1, "{reason}");
        let recorded = record.reason.unwrap();
        assert!(recorded.starts_with(reason) && recorded.len() > reason.len(), "{recorded}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_of_a_played_user_is_reported_for_every_attempt_even_if_broken() {
    let mut script = says(&["one", "two"]);
    *script["steps"].as_array_mut().unwrap().last_mut().unwrap() = json!({"fault": {"kind": "http", "status": 400}});
    let code = Play::new().scenario("x", &conversing("model: 'scripted:user.yaml'"));
    let yaml = Play::new().case(conversation(Some("scripted:user.yaml")));
    for mut play in [code, yaml] {
        play.read_script = reader(script.clone());
        play.may_warn = true;
        play.settings.retry.retries = 1;
        let record = play.run().await.remove(0);
        assert_eq!((record.outcome, record.fault), (Outcome::Broken, Some(Fault::Provider)), "{record:#?}");
        assert_eq!((record.attempts.len(), took(&record)), (2, (4, Some(60))), "{record:#?}");
        assert!(record.reason.unwrap().contains("the model that plays the user failed"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_script_that_is_too_short_is_a_mistake_in_the_test() {
    let mut script = says(&["one", "two"]);
    script["steps"].as_array_mut().unwrap().pop();
    let code = Play::new().scenario("x", &conversing("model: 'scripted:user.yaml'"));
    let yaml = Play::new().case(conversation(Some("scripted:user.yaml")));
    for mut play in [code, yaml] {
        play.read_script = reader(script.clone());
        play.may_warn = true;
        play.settings.retry.retries = 1;
        let record = play.run().await.remove(0);
        assert_eq!((record.outcome, record.fault), (Outcome::Broken, Some(Fault::Test)), "{record:#?}");
        assert_eq!(record.attempts.len(), 1, "a retry would give the same result");
        assert!(record.reason.unwrap().contains("2 steps and this is request 3; add a step for it"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_assertions_of_a_turn_are_probed_before_the_next_turn() {
    use model::{Arguments, AssertionScope, AssertionSpec, Fixtures, Spanned};
    let file = |id: &str, kind: &str, about, path: &str| {
        let node = Node::from_json(&json!({ "path": path }), &Source::new("played.yaml", ""));
        let kind = Spanned::new(kind.to_owned(), node.span);
        AssertionSpec { node, arguments: Arguments::Fields, about, id: id.to_owned(), kind, weight: 1.0 }
    };
    let assertions = vec![
        file("b is not there yet", "file_not_exists", AssertionScope::Reply(1), "b"),
        file("a is there", "file_exists", AssertionScope::Reply(1), "a"),
        file("b is there", "file_exists", AssertionScope::Reply(2), "b"),
        file("b is there at the end", "file_exists", AssertionScope::LastReply, "b"),
    ];
    let fixtures = Fixtures { env: vec![("A".into(), "b".into())], ..Fixtures::default() };
    let messages = ["!write a 1", "!write b 2"].map(UserMessage::text).into();
    let case = Case {
        messages,
        assertions,
        fixtures: Arc::new(fixtures),
        ..Case::new("turns", Excerpt::of_file("played.yaml"))
    };
    let record = Play::new().case(case).run().await.remove(0);
    assert_eq!(record.outcome, Outcome::Passed, "{:#?}", record.findings);
}
