//! End-to-end tests of `compare --prefer`: pairwise judgements with swapped positions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::net::TcpListener;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::Project;

use crate::shop::Shop;

const CRITERION: &str = "Which answer is clearer for a customer?";

/// Returns a scenario whose agent answers with `reply`.
fn scenario(name: &str, reply: &str) -> String {
    format!(
        "scenario: {name}\nsystem_prompt: Help.\nuser_prompt: '!say {reply}'\nassertions:\n  \
         - {{ id: asked, type: turn_count_at_most, max: 9 }}\n"
    )
}

/// Records the runs `main` and `branch` of two cases, all of which pass. Only `branch` names a number of days, and only
/// in the case `refund`.
fn project() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("trialrun.yaml", "defaults: { agent: fake, jobs: 1 }\n");
    project.write("tests/greeting.yaml", &scenario("greeting", "Hello there"));
    for (label, reply, greeting) in
        [("main", "You get a refund", "Hello there"), ("branch", "You get a refund in 5 days", "Hello to you")]
    {
        project.write("tests/refund.yaml", &scenario("refund", reply));
        project.write("tests/greeting.yaml", &scenario("greeting", greeting));
        project.run(&["run", "--label", label, "--trials", "2"]).exits(0);
    }
    project
}

/// Returns the script of a judge that gives these answers in order.
fn script(choices: &[&str]) -> String {
    let step = |choice: &&str| {
        let row = json!({"id": "c1", "reasoning": format!("The choice is {choice}."), "verdict": choice});
        json!({"text": json!({ "answers": [row] }).to_string()})
    };
    json!({ "steps": choices.iter().map(step).collect::<Vec<Value>>() }).to_string()
}

fn scripted(arguments: &[&'static str]) -> Vec<&'static str> {
    [&["compare", "main", "branch", "--prefer", CRITERION, "--judge", "scripted:judge.yaml"][..], arguments].concat()
}

#[test]
fn a_scripted_judge_decides_pair_by_pair_in_both_orders() {
    let project = project();
    // The pairs of `greeting`, then those of `refund`: second side, position, first side, tie.
    let choices = ["second", "first", "first", "first", "first", "second", "equal", "equal"];
    project.write("judge.yaml", &script(&choices));
    let text = project.run(&scripted(&[])).exits(0).out;
    for part in [
        "Preference: cannot tell yet whether branch is preferred to main; it won 1 of 4 pairs and lost 1,",
        CRITERION,
        "branch preferred    1 (25%)",
        "main preferred      1 (25%)",
        "ties                2 (50%), 1 of them by position",
        "win rate of branch  50% (95%: ",
        "judge               scripted:judge.yaml: 8 requests, 880 tokens",
        "branch preferred (1)\n  greeting::greeting  1 of 2 pairs\n      #1: The choice is second.",
        "main preferred (1)\n  refund::refund      1 of 2 pairs\n      #1: The choice is first.",
        "`second` is branch.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = project.run(&scripted(&["--json"])).exits(0).json();
    let judged = json["preference"]["judged"].as_array().unwrap().clone();
    let preferences: Vec<&Value> = judged.iter().map(|pair| &pair["preference"]).collect();
    assert_eq!(preferences, ["after", "position_tie", "before", "tie"], "{json:#}");
    assert_eq!(judged[1]["before"], "greeting::greeting@fake#2");
    let page = project.run(&scripted(&["--format", "html"])).exits(0).out;
    assert!(page.contains("<b>branch</b>") && page.contains("The choice is second."));
    let comment = project.run(&scripted(&["--format", "markdown"])).exits(0).out;
    assert!(comment.contains("**main preferred (1)**"), "{comment}");
    let without = project.run(&["compare", "main", "branch", "--json"]).exits(0).json();
    assert_eq!(without["preference"], Value::Null);
}

#[test]
fn repeating_the_command_asks_nothing_again() {
    let (project, shop) = (project().env("OPENAI_API_KEY", "sk-test-0123456789abcdef"), Shop::open());
    let address = shop.url("/judge");
    let preference = |sides: [&str; 2], arguments: &[&str]| {
        let judge = ["--judge", "openai-chat:judge", "--judge-base-url", &address, "--json"];
        let all = [&["compare", sides[0], sides[1], "--prefer", CRITERION][..], &judge, arguments].concat();
        project.run(&all).exits(0).json()["preference"].clone()
    };
    let figures =
        |json: &Value| ["before", "after", "ties", "requests", "cached"].map(|key| json[key].as_u64().unwrap());
    let first = preference(["main", "branch"], &[]);
    assert_eq!(figures(&first), [0, 2, 2, 8, 0], "{first:#}");
    let asked = shop.seen();
    assert_eq!(asked.len(), 8);
    for request in &asked {
        let body = request.body.to_string();
        assert_eq!(request.body["temperature"].as_f64(), Some(0.0));
        assert!(body.contains("first: last reply of the agent") && body.contains(CRITERION), "{body}");
        for name in ["fake", "branch", "refund::refund"] {
            assert!(!body.contains(name), "judges are blind: {name} in {body}");
        }
    }
    assert_eq!(figures(&preference(["main", "branch"], &[])), [0, 2, 2, 0, 8]);
    assert_eq!(figures(&preference(["branch", "main"], &[])), [2, 0, 2, 0, 8], "also in the other direction");
    assert_eq!(shop.seen().len(), 8);
    assert_eq!(figures(&preference(["main", "branch"], &["--judge-cache", "off"])), [0, 2, 2, 8, 0]);
    let sampled = preference(["main", "branch"], &["--judge-sample", "50%"]);
    assert_eq!((&sampled["available"], &sampled["pairs"]), (&json!(4), &json!(2)));
}

#[test]
fn a_judge_that_follows_the_position_prefers_neither_side() {
    let project = project();
    project.write("judge.yaml", &script(&["first"; 40]));
    for label in ["main", "branch"] {
        let reply = if label == "main" { "You get a refund" } else { "You get all of it" };
        project.write("tests/refund.yaml", &scenario("refund", reply));
        project.write("tests/greeting.yaml", &scenario("greeting", &format!("Hello {label}")));
        project.run(&["run", "--label", label, "--trials", "5"]).exits(0);
    }
    let text = project.run(&scripted(&[])).exits(0).out;
    assert!(text.contains("neither side is preferred; all 10 pairs are ties, 10 of them by position."), "{text}");
    assert!(text.contains("Warning: in 10 of 10 pairs, the judge chose the same position"), "{text}");
}

#[test]
fn runs_are_compared_with_and_without_a_skill_and_by_label() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project
        .write("trialrun.yaml", "defaults: { agent: fake, jobs: 1 }\n")
        .write("skills/refund/SKILL.md", "---\nname: refund\ndescription: Refunds.\n---\nName the days.\n")
        .write(
            "skills/refund/tests/a.yaml",
            "scenario: asks\nskill: refund\nuser_prompt: |\n  !say You get a refund.\n  !with-skill !say It takes 5 \
             days.\nassertions:\n  - { id: few, type: turn_count_at_most, max: 9 }\n",
        )
        .write("judge.yaml", &script(&["second", "first", "second", "first"]));
    project.run(&["run", "--baseline", "--label", "one"]).exits(0);
    let by = |what: &str| {
        let judge = ["--prefer", CRITERION, "--judge", "scripted:judge.yaml", "--json"];
        project.run(&[&["compare", "--by", what][..], &judge].concat()).exits(0).json()["comparisons"].clone()
    };
    let variants = by("variant");
    let preference = &variants[0]["preference"];
    assert_eq!((&preference["after"], &preference["pairs"]), (&json!(1), &json!(1)), "{variants:#}");
    assert!(preference["sentence"].as_str().unwrap().contains("the side with the skill"), "{variants:#}");
    for (label, days) in [("two", 6), ("three", 7)] {
        let test = project.read("skills/refund/tests/a.yaml").replace("5 days", &format!("{days} days"));
        project.write("skills/refund/tests/a.yaml", &test);
        project.run(&["run", "--label", label]).exits(0);
    }
    let labels = by("label");
    let pairs: Vec<&Value> =
        labels.as_array().unwrap().iter().map(|comparison| &comparison["preference"]["pairs"]).collect();
    assert_eq!(pairs, [1, 1], "each with the first: {labels:#}");
}

#[test]
fn a_judge_that_cannot_be_used_is_an_error_and_one_that_does_not_answer_leaves_pairs_undecided() {
    let project = project();
    project.write("judge.yaml", &script(&["second"]));
    for (judge, code, wrong) in [
        (&[][..], 3, "cannot judge the pairs: no judge: set OPENROUTER_API_KEY"),
        (&["--judge", "opnai:gpt-5"], 2, "did you mean `openai`"),
        (&["--judge", "openai:gpt-5"], 3, "OPENAI_API_KEY is not set"),
        (&["--judge", "scripted:gone.yaml"], 2, "gone.yaml"),
        (&["--judge", ""], 3, "switched off"),
    ] {
        let ran = project.run(&[&["compare", "main", "branch", "--prefer", CRITERION][..], judge].concat()).exits(code);
        assert!(ran.err.contains(wrong), "{judge:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{judge:?}");
    }
    assert!(project.run(&["compare", "--judge", "x"]).exits(2).err.contains("--prefer"));
    assert!(project.run(&["compare", "--prefer", " "]).exits(2).err.contains("a question such as"));
    let ran = project.run(&scripted(&[])).exits(3);
    assert!(ran.out.contains("the judge decided none of 4 pairs"), "{}", ran.out);
    assert!(ran.out.contains("Undecided: the judge scripted:judge.yaml did not return a verdict"), "{}", ran.out);
    // One decided pair is an answer.
    project.write("judge.yaml", &script(&["second", "first"]));
    let some = project.run(&scripted(&["--json"])).exits(0).json();
    assert_eq!((&some["preference"]["after"], &some["preference"]["undecided"]), (&json!(1), &json!(3)));
}

#[test]
fn an_interrupt_stops_the_judge_and_says_so() {
    let (project, silent) = (project(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = format!("http://{}", silent.local_addr().unwrap());
    let live = project.start(&[
        "compare",
        "main",
        "branch",
        "--prefer",
        CRITERION,
        "--judge",
        "ollama:m",
        "--judge-base-url",
        &address,
    ]);
    // The judge is asked, and never answers.
    let connection = silent.accept().unwrap();
    live.signal(Signal::SIGINT);
    let ran = live.end().exits(130);
    assert!(ran.err.contains("stopped after 0 of 4 pairs were judged"), "{}", ran.err);
    assert_eq!(ran.out, "");
    drop(connection);
}
