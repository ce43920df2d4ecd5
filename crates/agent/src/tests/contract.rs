//! Requirements that every agent must meet, as one test suite. All agents that can run here are tested. Their
//! [`AgentSetup`] makes them behave as a test requires.

pub(crate) mod agent_setup;
mod modules;
mod programs;
mod protocol;
mod services;

use model::Ending;
use tokio::task::JoinSet;

use self::agent_setup::{Act, AgentSetup, Blame};
use crate::tests::harness::{TestRun, new_run};
use crate::{AGENTS, Agent};

/// Number of concurrent conversations.
const AT_ONCE: usize = 50;

/// Returns all agents that can run here, in each of their variants.
async fn setups() -> Vec<Box<dyn AgentSetup>> {
    let mut setups: Vec<Box<dyn AgentSetup>> = vec![
        Box::new(programs::Lines),
        Box::new(programs::Once),
        Box::new(protocol::Protocol),
        Box::new(modules::Execute),
        Box::new(modules::Adapter),
        Box::new(agent_setup::Directives),
        Box::new(agent_setup::Answers),
        Box::new(agent_setup::Repeats),
    ];
    setups.extend(services::setups().await);
    setups
}

/// Returns those that can perform `act`.
async fn able(act: &Act) -> Vec<Box<dyn AgentSetup>> {
    let able: Vec<_> = setups().await.into_iter().filter(|stage| stage.can(act)).collect();
    assert!(able.len() >= 6, "{act:?}");
    able
}

async fn play(stage: &dyn AgentSetup, acts: &[Act]) -> TestRun {
    let set = stage.set(acts);
    match set.harness.play(stage.agent()).await {
        Ok(played) => played,
        Err(breakage) => panic!("{}: {breakage}", stage.name()),
    }
}

fn say(text: &str) -> Act {
    Act::Say(text.to_owned())
}

#[tokio::test]
async fn every_agent_has_a_setup() {
    let setups = setups().await;
    // A server is no conversation: it only answers calls. Its tests are those of `mcp`.
    let is_tested = |agent: &&&dyn Agent| agent.description().program.is_none() && agent.name() != "mcp";
    for agent in AGENTS.iter().filter(is_tested) {
        assert!(setups.iter().any(|stage| stage.agent().name() == agent.name()), "{}", agent.name());
    }
}

#[tokio::test]
async fn setups_create_only_valid_configurations() {
    for stage in setups().await {
        let set = stage.set(&[say("hello")]);
        let harness = &set.harness;
        let problems = match &harness.config {
            Some(config) => stage.agent().check_config(&config.node, &config.directory, &new_run()),
            None => stage.agent().check_argument(harness.argument.as_deref(), &new_run()),
        };
        assert!(problems.is_empty(), "{}: {problems:?}", stage.name());
    }
}

#[tokio::test]
async fn an_agent_answers_each_message() {
    for stage in able(&say("")).await {
        let played = play(stage.as_ref(), &[say("hello"), say("again")]).await;
        assert_eq!(played.endings, [Ending::Finished, Ending::Finished], "{}", stage.name());
        assert_eq!(played.answer(), Some("again"), "{}", stage.name());
        let turns = &played.turn.trace().turns;
        let texts: Vec<_> = turns.iter().map(|turn| (turn.user_message, turn.text.as_str())).collect();
        assert_eq!(texts, [(1, "hello"), (2, "again")], "{}", stage.name());
    }
}

#[tokio::test]
async fn a_conversation_keeps_its_state_and_each_trial_starts_a_new_one() {
    for stage in able(&Act::Count).await {
        for _trial in 0..2 {
            let played = play(stage.as_ref(), &[Act::Count, say("hello"), Act::Count]).await;
            let texts: Vec<_> = played.turn.trace().turns.iter().map(|turn| turn.text.as_str()).collect();
            assert_eq!(texts, ["1", "hello", "3"], "{}", stage.name());
        }
    }
}

#[tokio::test]
async fn concurrent_conversations_do_not_mix() {
    for stage in able(&Act::Count).await {
        let mut all = JoinSet::new();
        for index in 0..AT_ONCE {
            let set = stage.set(&[say(&format!("number {index}")), Act::Count]);
            let agent = stage.agent();
            all.spawn(async move {
                // Moves the whole set, so that the harness's resources live as long as it does.
                let set = set;
                let played = set.harness.play(agent).await.unwrap();
                let texts: Vec<_> = played.turn.trace().turns.iter().map(|turn| turn.text.clone()).collect();
                (index, texts)
            });
        }
        while let Some(done) = all.join_next().await {
            let (at, texts) = done.unwrap();
            assert_eq!(texts, [format!("number {at}"), "2".to_owned()], "{}", stage.name());
        }
    }
}

#[tokio::test]
async fn an_unresponsive_agent_is_abandoned_when_the_trial_must_stop() {
    for stage in able(&Act::Hang).await {
        let set = stage.set(&[say("hello"), Act::Hang, say("never")]);
        let stop = set.harness.stop.clone();
        let stopping = async {
            tokio::task::yield_now().await;
            stop.send_replace(true);
        };
        let (played, ()) = tokio::join!(set.harness.play(stage.agent()), stopping);
        let endings = played.unwrap().endings;
        assert_eq!(endings.last(), Some(&Ending::Cancelled), "{}", stage.name());
    }
}

#[tokio::test]
async fn misbehaviour_counts_as_a_failure_of_the_agent() {
    for stage in able(&Act::Fail).await {
        let played = play(stage.as_ref(), &[say("hello"), Act::Fail, say("never")]).await;
        let endings = &played.endings;
        assert!(matches!(&endings[..], [Ending::Finished, Ending::GaveUp { .. }]), "{}: {endings:?}", stage.name());
        assert_eq!(played.turn.trace().turns[0].text, "hello", "{}", stage.name());
    }
}

#[tokio::test]
async fn the_blame_for_an_unreadable_answer_depends_on_its_source() {
    for stage in able(&Act::Garbage).await {
        let played = play(stage.as_ref(), &[Act::Garbage]).await;
        let is_so = match stage.blames() {
            Blame::Agent => matches!(&played.endings[..], [Ending::GaveUp { .. }]),
            Blame::Provider => matches!(&played.endings[..], [Ending::ProviderFailed { .. }]),
        };
        assert!(is_so, "{}: {:?}", stage.name(), played.endings);
    }
}

#[tokio::test]
async fn an_unavailable_agent_is_never_the_agents_failure() {
    let mut count = 0;
    for stage in setups().await {
        let Some(set) = stage.absent() else { continue };
        count += 1;
        let Ok(played) = set.harness.play(stage.agent()).await else { continue };
        let outcome = model::Outcome::of(&[], &played.endings[0], &model::OutcomeRule::default());
        assert_eq!(outcome, model::Outcome::Broken, "{}: {:?}", stage.name(), played.endings);
    }
    assert!(count >= 8);
}

#[tokio::test]
async fn usage_of_an_agent_is_summed() {
    for stage in able(&say("")).await.into_iter().filter(|stage| stage.agent().name() != "echo") {
        let played = play(stage.as_ref(), &[say("hello"), say("again")]).await;
        let tokens = played.turn.trace().usage.tokens.unwrap();
        assert_eq!((tokens.input, tokens.output), (6, 8), "{}", stage.name());
    }
}

#[tokio::test]
async fn calls_are_recorded_with_their_results() {
    for stage in able(&Act::Call).await {
        let played = play(stage.as_ref(), &[Act::Call, say("hello")]).await;
        assert_eq!(played.endings, [Ending::Finished, Ending::Finished], "{}", stage.name());
        assert_eq!(played.calls(), [("find", "found", false)], "{}", stage.name());
        let trace = played.turn.trace();
        assert_eq!(trace.calls[0].call.input, serde_json::json!({"q": 1}), "{}", stage.name());
        assert!(trace.turns.iter().any(|turn| turn.text == "done"), "{}", stage.name());
    }
}

#[tokio::test]
async fn a_huge_answer_is_complete() {
    for stage in able(&Act::Huge).await {
        let played = play(stage.as_ref(), &[Act::Huge]).await;
        let answer = played.answer().unwrap_or_default();
        assert_eq!((answer.len(), answer.trim_matches('x')), (agent_setup::HUGE, ""), "{}", stage.name());
    }
}
