//! Tests of requests that differ from the recorded ones: they match anyway, or the trial becomes stale and a pointer
//! shows where.

use jiff::civil::date;
use model::{CassetteMode, RequestRule, StaleRequest};
use serde_json::{Value, json};

use crate::{Answer, Asked, Found, Normalizer, Recording, Sender, Tape};

const RULES: &[RequestRule] = &[
    RequestRule::Remove("/metadata"),
    RequestRule::RemoveField("cache_control"),
    RequestRule::RemoveItems("/system", "x-nonce: "),
    RequestRule::Sort("/tools", "/name"),
    RequestRule::Replace("Chunk ID: [0-9a-f]+", "Chunk ID"),
];

/// A trial with its directories, its date, and its commit ids.
#[derive(Clone, Copy)]
struct Trial {
    work: &'static str,
    today: (i16, i8, i8),
    short: &'static str,
    id: &'static str,
}

const FIRST: Trial = Trial {
    work: "/tmp/trial-a1/work",
    today: (2026, 11, 26),
    short: "3f2a1bc",
    id: "3f2a1bc9d0e1f2a3b4c5d6e7f8a9b0c1d2e3f4a5",
};
const SECOND: Trial = Trial {
    work: "/var/folders/x9/trial-b2/work",
    today: (2027, 2, 3),
    short: "9c8d7e6",
    id: "9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d",
};
/// A commit id that begins with twelve digits, as one in 300 does.
const DIGITS: Trial = Trial { short: "6967989", id: "696798927964d2e1f0a9b8c7d6e5f4a3b2c1d0ef", ..SECOND };

impl Trial {
    fn normalizer(self) -> Normalizer {
        let (year, month, day) = self.today;
        Normalizer::new(RULES, &[(self.work.to_owned(), "work")], &[date(year, month, day), date(2026, 11, 26)])
    }

    fn date(self) -> jiff::civil::Date {
        date(self.today.0, self.today.1, self.today.2)
    }

    /// Returns the first request from the agent.
    fn first(self) -> Value {
        json!({
            "model": "m-1",
            "system": [
                {"type": "text", "text": format!("x-nonce: {}", self.short)},
                {"type": "text", "text": format!("Work in {}. Today is {}.", self.work, self.date().strftime("%A, %B %-d, %Y"))},
                {"type": "text", "text": "Skill: write short messages.", "cache_control": {"type": "ephemeral"}},
            ],
            "tools": [{"name": "Bash", "input_schema": {"type": "object"}}, {"name": "Read", "input_schema": {}}],
            "max_tokens": 100,
            "metadata": {"user_id": self.id},
            "messages": [{"role": "user", "content": format!("Commit what is in {}/src.", self.work)}],
        })
    }

    /// Returns the second request, which contains a tool result.
    fn second(self) -> Value {
        let mut request = self.first();
        let result = format!(
            "[main {}] message\n 1 file changed\ncommit {}\nDate: {} 05:10:13 {} +0000\ntook 0.{}s\nChunk ID: {}",
            self.short,
            self.id,
            self.date().strftime("%a %b %e"),
            self.today.0,
            self.today.1,
            &self.id[..5],
        );
        let messages = request["messages"].as_array_mut().unwrap();
        let input = json!({"command": format!("cd {} && git commit", self.work)});
        messages.push(
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": input}]}),
        );
        messages.push(
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}]}),
        );
        request
    }
}

fn ask(tape: &Tape, sender: Sender, body: &Value) -> Found {
    tape.ask(Asked { sender, path: "/v1/messages", body: body.clone() })
}

fn record(tape: &Tape, sender: Sender, body: &Value, answer: Answer) {
    let Found::Live(slot) = ask(tape, sender, body) else { panic!("not live") };
    tape.keep(&slot, answer);
}

/// Returns a recording of the first trial.
fn recording() -> Recording {
    let tape = Tape::new(CassetteMode::Record, "c", None, FIRST.normalizer());
    record(&tape, Sender::Side, &json!({"model": "small", "messages": ["title"]}), Answer::whole(200, "", "A title"));
    record(&tape, Sender::Agent, &FIRST.first(), Answer::whole(200, "", format!("cd {} && git commit", FIRST.work)));
    record(&tape, Sender::Agent, &FIRST.second(), Answer::whole(200, "", format!("{} and {}", FIRST.short, FIRST.id)));
    tape.recorded().unwrap().unwrap()
}

fn replay(trial: Trial) -> Tape {
    Tape::new(CassetteMode::Replay, "c", Some(recording().into()), trial.normalizer())
}

/// Returns the answers to the requests, or the first request that differs.
fn answers(tape: &Tape, requests: &[Value]) -> Result<Vec<String>, Box<StaleRequest>> {
    let mut answers = Vec::new();
    for request in requests {
        match ask(tape, Sender::Agent, request) {
            Found::Recorded(answer) => answers.push(answer.body()),
            Found::Stale(_) => return Err(Box::new(tape.stale().unwrap())),
            Found::Live(_) => panic!("replay never asks the model"),
        }
    }
    Ok(answers)
}

/// Applies `change` to the second request, and returns the pointer to the first difference.
fn pointer(change: impl Fn(&mut Value)) -> Option<String> {
    let mut second = SECOND.second();
    change(&mut second);
    answers(&replay(SECOND), &[SECOND.first(), second]).err().map(|stale| stale.pointer.unwrap())
}

#[test]
fn dates_nonces_directories_and_ids_of_another_run_match() {
    let answers = answers(&replay(SECOND), &[SECOND.first(), SECOND.second()]).unwrap();
    let expected = [format!("cd {} && git commit", SECOND.work), format!("{} and {}", SECOND.short, SECOND.id)];
    assert_eq!(answers, expected, "answers contain the values of the new run");
}

#[test]
fn ids_that_are_or_begin_with_numbers_match() {
    let shortened = |trial: Trial| {
        let mut request = trial.second();
        let said = json!({"role": "assistant", "content": format!("git show {}", &trial.id[..12])});
        request["messages"].as_array_mut().unwrap().push(said);
        request
    };
    for (recorded, repeated) in [(FIRST, DIGITS), (DIGITS, FIRST)] {
        let tape = Tape::new(CassetteMode::Record, "c", None, recorded.normalizer());
        let answer = format!("{} and {}", recorded.short, recorded.id);
        record(&tape, Sender::Agent, &shortened(recorded), Answer::whole(200, "", answer));
        let recording = tape.recorded().unwrap().unwrap();
        let tape = Tape::new(CassetteMode::Replay, "c", Some(recording.into()), repeated.normalizer());
        let answers = answers(&tape, &[shortened(repeated)]).unwrap();
        assert_eq!(answers, [format!("{} and {}", repeated.short, repeated.id)]);
    }
}

#[test]
fn the_order_of_tools_matches() {
    assert_eq!(pointer(|request| request["tools"].as_array_mut().unwrap().reverse()), None);
}

#[test]
fn another_text_of_a_skill_is_stale() {
    let change = |request: &mut Value| request["system"][2]["text"] = json!("Skill: write long messages.");
    let mut first = SECOND.first();
    change(&mut first);
    let stale = answers(&replay(SECOND), &[first]).unwrap_err();
    assert_eq!(stale.pointer.as_deref(), Some("/system/1/text"), "items of the system prompt without the nonce");
    assert_eq!(stale.number, 1);
    let text = stale.describe();
    assert!(text.contains("write short messages") && text.contains("write long messages"), "{text}");
}

#[test]
fn another_version_of_the_program_is_stale_where_it_differs() {
    let stale = pointer(|request| request["tools"][1]["input_schema"] = json!({"type": "object"}));
    assert_eq!(stale.as_deref(), Some("/tools/1/input_schema/type"));
    assert_eq!(pointer(|request| request["thinking"] = json!({"type": "on"})).as_deref(), Some("/thinking"));
    let new = pointer(|request| request["tools"].as_array_mut().unwrap().push(json!({"name": "Write"})));
    assert_eq!(new.as_deref(), Some("/tools/2"));
}

#[test]
fn another_model_or_system_prompt_is_stale() {
    assert_eq!(pointer(|request| request["model"] = json!("m-2")).as_deref(), Some("/model"));
    let system = pointer(|request| request["system"][1]["text"] = json!("Be kind."));
    assert_eq!(system.as_deref(), Some("/system/0/text"));
}

#[test]
fn another_result_of_a_tool_is_stale() {
    let other = pointer(|request| {
        let result = &mut request["messages"][2]["content"][0]["content"];
        *result = json!(result.as_str().unwrap().replace("1 file changed", "2 files changed"));
    });
    assert_eq!(other.as_deref(), Some("/messages/2/content/0/content"));
}

#[test]
fn a_repeated_request_gets_the_same_answer() {
    let all = answers(&replay(SECOND), &[SECOND.first(), SECOND.first(), SECOND.second(), SECOND.second()]).unwrap();
    assert_eq!((&all[0], &all[2]), (&all[1], &all[3]));
}

#[test]
fn a_side_request_that_was_not_recorded_is_stale() {
    let tape = replay(SECOND);
    let title = |text: &str| json!({"model": "small", "messages": [text]});
    assert!(matches!(ask(&tape, Sender::Side, &title("title")), Found::Recorded(_)));
    assert!(matches!(ask(&tape, Sender::Side, &title("summary")), Found::Stale(_)));
    let stale = tape.stale().unwrap();
    assert_eq!((stale.sender.as_str(), stale.pointer.as_deref()), ("side request", Some("/messages/0")));
}

#[test]
fn a_request_that_is_no_message_makes_a_trial_stale_only_if_its_path_was_recorded() {
    let tape = replay(SECOND);
    assert!(matches!(ask(&tape, Sender::Other, &json!({"count": 1})), Found::Stale(_)));
    assert_eq!(tape.stale(), None);
    let tape = Tape::new(CassetteMode::Record, "c", None, FIRST.normalizer());
    record(&tape, Sender::Other, &json!({"count": 1}), Answer::whole(200, "", "1"));
    let recording = tape.recorded().unwrap().unwrap();
    let tape = Tape::new(CassetteMode::Replay, "c", Some(recording.into()), SECOND.normalizer());
    assert!(matches!(ask(&tape, Sender::Other, &json!({"count": 2})), Found::Stale(_)));
    assert!(tape.stale().is_some(), "other requests to the same path were recorded");
}

#[test]
fn a_cut_stream_is_cut_again_and_the_repetition_is_answered() {
    let tape = Tape::new(CassetteMode::Record, "c", None, FIRST.normalizer());
    let cut = Answer { is_cut: true, ..Answer::whole(200, "text/event-stream", "data: 1\n\n") };
    record(&tape, Sender::Agent, &FIRST.first(), cut);
    record(&tape, Sender::Agent, &FIRST.first(), Answer::whole(200, "", "whole"));
    let tape = Tape::new(CassetteMode::Replay, "c", tape.recorded().unwrap().map(Into::into), SECOND.normalizer());
    let cuts: Vec<bool> = (0..3)
        .map(|_| match ask(&tape, Sender::Agent, &SECOND.first()) {
            Found::Recorded(answer) => answer.is_cut,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(cuts, [true, false, false], "a further repetition gets the whole answer");
}

#[test]
fn a_trial_without_a_recording_is_stale() {
    let tape = Tape::new(CassetteMode::Replay, "c", None, SECOND.normalizer());
    assert!(answers(&tape, &[SECOND.first()]).unwrap_err().describe().contains("no recording of this trial"));
}

#[test]
fn automatic_recording_asks_the_model_from_the_first_difference_on() {
    let tape = Tape::new(CassetteMode::Auto, "c", Some(recording().into()), SECOND.normalizer());
    assert!(matches!(ask(&tape, Sender::Agent, &SECOND.first()), Found::Recorded(_)));
    assert!(matches!(tape.recorded(), Ok(None)), "nothing is new");
    let mut changed = SECOND.second();
    changed["messages"][2]["content"][0]["content"] = json!("nothing to commit");
    record(&tape, Sender::Agent, &changed, Answer::whole(200, "", "Nothing to do."));
    let new = tape.recorded().unwrap().unwrap();
    assert_eq!(new.exchanges.len(), 2);
    let tape = Tape::new(CassetteMode::Replay, "c", Some(new.into()), FIRST.normalizer());
    assert!(matches!(ask(&tape, Sender::Agent, &FIRST.first()), Found::Recorded(_)));
}

#[test]
fn only_the_beginning_is_replayed_if_a_trial_goes_on_live() {
    let tape = Tape::new(CassetteMode::Replay, "c", Some(recording().into()), SECOND.normalizer()).replaying_first(1);
    assert!(matches!(ask(&tape, Sender::Agent, &SECOND.first()), Found::Recorded(_)));
    assert!(matches!(ask(&tape, Sender::Agent, &SECOND.second()), Found::Live(_)));
}

#[test]
fn a_date_in_an_answer_matches_on_a_later_day() {
    let with_date = |trial: Trial, date: &str| {
        let mut request = trial.first();
        let said = json!({"role": "assistant", "content": format!("Today is {date}.")});
        request["messages"].as_array_mut().unwrap().push(said);
        request
    };
    let tape = Tape::new(CassetteMode::Record, "c", None, FIRST.normalizer());
    record(&tape, Sender::Agent, &with_date(FIRST, "2026-11-26"), Answer::whole(200, "", "Yes."));
    let recording = tape.recorded().unwrap().unwrap();
    let tape = Tape::new(CassetteMode::Replay, "c", Some(recording.into()), SECOND.normalizer());
    assert!(answers(&tape, &[with_date(SECOND, "2026-11-26")]).is_ok(), "the answer has the date of the recording");
}

#[test]
fn the_name_of_a_relative_directory_is_an_ordinary_word() {
    let normalized = |directory: &str| {
        let normalizer = Normalizer::new(&[], &[(directory.to_owned(), "suite")], &[]);
        normalizer.request(json!({"messages": ["run the tests in /project/tests"]})).0
    };
    assert_eq!(normalized("tests")["messages"][0], "run the tests in /project/tests");
    assert_eq!(normalized("/project/tests")["messages"][0], "run the tests in ⟦suite⟧");
}

#[test]
fn dates_other_than_today_are_compared() {
    let normalizer = || Normalizer::new(&[], &[], &[date(2026, 11, 26)]);
    let same = |one: &str, other: &str| {
        let normalized = |text: &str| normalizer().request(json!({"messages": [text]})).0;
        normalized(one) == normalized(other)
    };
    assert!(same("on 2026-11-26", "on 2026-11-25"));
    assert!(same("at 2026-11-26T05:10:11Z", "at 2026-11-26 06:11:12.5 +0100"));
    assert!(same("Thu Nov 26 05:10:13 2026 +0000", "Wed Nov 25 23:59:59 2026 -0800"));
    assert!(!same("on 2026-11-26", "on 2026-10-26"));
    assert!(!same("since 1999-01-01", "since 1999-01-02"));
    assert!(!same("wait 5s", "wait 10s"), "times outside the results of tools are compared");
    assert!(!same("number 1234567", "number 7654321"));
    assert!(!same("Nov 26 2019", "Nov 26 2031"), "the same day of another year");
    assert!(
        same("[main 1234567] x", "[main (root-commit) 7654321] x") || !same("[main 1234567] x", "[main 1234567] y")
    );
}
