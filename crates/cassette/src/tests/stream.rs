//! Tests of values in answers that arrive in chunks.

use model::CassetteMode;
use serde_json::{Value, json};

use crate::{Answer, Asked, Chunk, Found, Normalizer, Sender, Tape};

const OLD: &str = "/tmp/trial-a1/work";
const NEW: &str = "/tmp/trial-22222/work";

fn delta(index: u64, text: &str) -> String {
    let data = json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}});
    format!("event: content_block_delta\ndata: {data}\n\n")
}

/// Records a stream whose tool arguments arrive in `pieces`, and replays it in another directory.
fn replayed(pieces: &[(u64, String)], size: usize) -> Vec<(u64, String)> {
    let stream: String = pieces.iter().map(|(index, text)| delta(*index, text)).collect();
    let bytes: Vec<char> = stream.chars().collect();
    let chunks = bytes.chunks(size).map(|part| Chunk { after_ms: 1, text: part.iter().collect() }).collect();
    let request = |work: &str| json!({"messages": [format!("in {work}")]});
    let tape = |mode, recorded, work: &str| {
        Tape::new(mode, "c", recorded, Normalizer::new(&[], &[(work.to_owned(), "work")], &[]))
    };
    let recording = tape(CassetteMode::Record, None, OLD);
    let asked = |work| Asked { sender: Sender::Agent, path: "/", body: request(work) };
    let Found::Live(slot) = recording.ask(asked(OLD)) else { panic!("not live") };
    recording.keep(&slot, Answer { status: 200, content_type: "text/event-stream".into(), chunks, is_cut: false });
    let recorded = recording.recorded().unwrap().unwrap();
    assert!(!recorded.exchanges[0].answer.body().contains("trial-a1"), "{}", recorded.exchanges[0].answer.body());
    let tape = tape(CassetteMode::Replay, Some(recorded.into()), NEW);
    let Found::Recorded(answer) = tape.ask(asked(NEW)) else { panic!("not recorded") };
    let events = answer.body();
    let data = events.lines().filter_map(|line| line.strip_prefix("data: "));
    let data = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
    data.map(|data| (data["index"].as_u64().unwrap(), data["delta"]["partial_json"].as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn a_value_that_is_spread_over_events_is_replaced() {
    for cut in 1..OLD.len() {
        for size in [1, 7, 10_000] {
            let (first, second) = OLD.split_at(cut);
            let pieces = [
                (0, format!("ls {first}")),
                (1, "other".to_owned()),
                (0, format!("{second}/src")),
                (0, " end".to_owned()),
            ];
            let new = replayed(&pieces, size);
            let text: String = new.iter().filter(|(index, _)| *index == 0).map(|(_, text)| text.as_str()).collect();
            assert_eq!(text, format!("ls {NEW}/src end"));
            assert_eq!(new.len(), 4, "no event is lost");
            assert_eq!(new[1], (1, "other".to_owned()));
        }
    }
}

#[test]
fn values_that_follow_each_other_are_replaced() {
    let new = replayed(&[(0, format!("{OLD} {OLD}")), (0, format!(" {OLD}"))], 50);
    let text: String = new.into_iter().map(|(_, text)| text).collect();
    assert_eq!(text, format!("{NEW} {NEW} {NEW}"));
}

#[test]
fn a_directory_with_two_spellings_is_replaced_whichever_is_used() {
    let places = [("/tmp/one/work".to_owned(), "work"), ("/private/tmp/one/work".to_owned(), "work")];
    let tape = Tape::new(CassetteMode::Record, "c", None, Normalizer::new(&[], &places, &[]));
    let asked = Asked { sender: Sender::Agent, path: "/", body: json!({"messages": ["in /tmp/one/work"]}) };
    let Found::Live(slot) = tape.ask(asked) else { panic!("not live") };
    let events = [delta(0, "ls /tmp/one/wo"), delta(0, "rk/über /tmp/one/work2")].concat();
    tape.keep(&slot, Answer::whole(200, "text/event-stream", events));
    let answer = &tape.recorded().unwrap().unwrap().exchanges[0].answer;
    let text = answer.body().replace("⟦work⟧", "W");
    assert!(text.contains("ls W") && text.contains("/über /tmp/one/work2"), "{text}");
}
