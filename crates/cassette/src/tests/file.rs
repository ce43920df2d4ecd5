//! Tests of cassette files.

use std::collections::BTreeMap;
use std::path::Path;

use mask::Mask;
use model::CassetteMode;
use serde_json::json;

use crate::exchange::RecordingInfo;
use crate::{Answer, Cassette, CassetteError, CassetteName, Cassettes, Chunk, Exchange, Recording, Sender, file_name};

fn recording(repetition: u64) -> Recording {
    let exchange = |messages: &[&str]| Exchange {
        sender: Sender::Agent,
        path: "/v1/messages".into(),
        request: json!({"model": "m", "instructions": "long ".repeat(100), "max_tokens": 1, "messages": messages,
            "options": {"a": [1]}}),
        answer: Answer::whole(200, "application/json", "{}"),
    };
    let about = RecordingInfo { repetition, trialrun: "0.1.0".into(), ..RecordingInfo::default() };
    Recording { about, exchanges: vec![exchange(&["a"]), exchange(&["a", "b"])] }
}

#[test]
fn a_cassette_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("suite/case@arm.jsonl.zst");
    let mut cassette = Cassette::default();
    [2, 1, 2].into_iter().for_each(|repetition| cassette.put(recording(repetition)));
    cassette.write(&file, &Mask::default()).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let read = Cassette::read(&file).unwrap();
    assert_eq!(read, cassette);
    assert_eq!(read.recordings.iter().map(|one| one.about.repetition).collect::<Vec<_>>(), [1, 2]);
    read.write(&file, &Mask::default()).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "the same recordings result in the same bytes");
    let text = String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap();
    assert_eq!(text.matches("long long").count(), 50, "a long part is written once");
}

#[test]
fn a_missing_file_is_an_empty_cassette_and_a_damaged_one_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Cassette::read(&folder.path().join("missing")).unwrap(), Cassette::default());
    let read = |lines: &str| Cassette::from_reader(&zstd::encode_all(lines.as_bytes(), 1).unwrap()[..]);
    assert!(matches!(read("{\"cassette\":2}\n"), Err(CassetteError::Version(2))));
    assert!(matches!(read("{\"part\":[\"a\",1]}\n"), Err(CassetteError::Damaged { line: 1, .. })));
    let cut = "{\"cassette\":1}\n{\"recording\":{\"repetition\":1,\"recorded_at\":\"2026-01-01T00:00:00Z\",\"trialrun\":\"\"}}\n{\"exch";
    assert!(matches!(read(cut), Err(CassetteError::Damaged { line: 3, .. })));
    let bomb = format!("{{\"cassette\":1}}\n{{\"part\":[\"a\",[{}0]]}}\n", "[],".repeat(2_000_000));
    assert!(matches!(read(&bomb), Err(CassetteError::Damaged { line: 2, .. })), "it would take gigabytes");
    assert!(Cassette::from_reader(&b"not compressed"[..]).is_err());
}

#[test]
fn a_flipped_bit_never_becomes_another_cassette() {
    let mut cassette = Cassette::default();
    cassette.put(recording(1));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c");
    cassette.write(&file, &Mask::default()).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok(read) = Cassette::from_reader(&changed[..]) {
            assert_eq!(read, cassette, "bit {bit}");
        }
    }
}

#[test]
fn any_bytes_are_a_cassette_or_an_error() {
    let mut cassette = Cassette::default();
    cassette.put(recording(1));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c");
    cassette.write(&file, &Mask::default()).unwrap();
    let lines = zstd::decode_all(&std::fs::read(&file).unwrap()[..]).unwrap();
    testkit::fuzz(&[lines], |bytes| {
        let _ = Cassette::from_reader(&zstd::encode_all(bytes, 1).unwrap()[..]);
        let _ = Cassette::from_reader(bytes);
    });
}

/// Returns dummy secrets in many formats.
fn secrets() -> Vec<String> {
    let digits = |at: usize, length: usize| -> String {
        (0..length).map(|index| char::from(b"aB3dE5gH7jK9mN1pQ2"[(at * 7 + index * 5 + index / 3) % 18])).collect()
    };
    let shapes = (0..250).map(|at| match at % 5 {
        0 => format!("sk-ant-api03-{}", digits(at, 40)),
        1 => format!("ghp_{}", digits(at, 36)),
        2 => format!("AKIA{}", digits(at, 16).to_uppercase()),
        3 => format!("xoxb-{}-{}", 1_000_000_000_000_u64 + at as u64, digits(at, 24)),
        _ => format!("glpat-{}", digits(at, 20)),
    });
    shapes.chain((0..250).map(|at| format!("value-{at}-{}", digits(at, 16)))).collect()
}

#[test]
fn a_cassette_with_a_secret_is_not_written() {
    let secrets = secrets();
    let env: BTreeMap<String, String> =
        secrets.iter().enumerate().map(|(at, secret)| (format!("S{at}_API_KEY"), secret.clone())).collect();
    let mask = Mask::of(&env);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c");
    for (at, secret) in secrets.iter().enumerate() {
        let mut recording = recording(1);
        let event = |text: &str| {
            let data = json!({"type": "d", "index": 0, "delta": {"text": text}});
            Chunk { after_ms: 0, text: format!("data: {data}\n\n") }
        };
        let answer = &mut recording.exchanges[1].answer;
        match at % 4 {
            0 => recording.exchanges[0].request["messages"][0] = json!(format!("the key is {secret}")),
            1 => answer.chunks[0].text = json!({"text": secret}).to_string(),
            2 => recording.exchanges[0].path = format!("/v1/messages?key={secret}"),
            // Spreads the secret over several events.
            _ => {
                let (first, second) = secret.split_at(secret.len() / 2);
                answer.content_type = "text/event-stream".into();
                answer.chunks = vec![event(first), event(second)];
            }
        }
        let mut cassette = Cassette::default();
        cassette.put(recording);
        let written = cassette.write(&file, &mask);
        assert!(matches!(written, Err(CassetteError::Secret(_))), "{at}: {written:?}");
        assert!(!file.exists());
    }
}

#[test]
fn a_refused_recording_leaves_the_cassette_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c");
    let cassettes = Cassettes::new(CassetteMode::Record, false);
    cassettes.save(&file, recording(1), &Mask::default()).unwrap();
    let mut unsafe_one = recording(1);
    unsafe_one.exchanges[0].path = "/correct-horse-battery".into();
    let mask = Mask::of(&BTreeMap::from([("X_API_KEY".to_owned(), "correct-horse-battery".to_owned())]));
    assert!(cassettes.save(&file, unsafe_one, &mask).is_err());
    assert_eq!(**cassettes.recording(&file, 1).unwrap().as_ref().unwrap(), recording(1));
    assert_eq!(**Cassette::read(&file).unwrap().recording(1).unwrap(), recording(1));
}

#[test]
fn recording_replaces_a_damaged_cassette_but_not_one_of_a_newer_version() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c");
    let save = || Cassettes::new(CassetteMode::Record, false).save(&file, recording(1), &Mask::default());
    std::fs::write(&file, "damaged").unwrap();
    save().unwrap();
    let newer = zstd::encode_all(&b"{\"cassette\":2}\n"[..], 1).unwrap();
    std::fs::write(&file, &newer).unwrap();
    assert!(matches!(save(), Err(CassetteError::Version(2))));
    let cassettes = Cassettes::new(CassetteMode::Record, false);
    assert!(cassettes.recording(&file, 1).is_err(), "the run must not start, because it could not be recorded");
    assert_eq!(std::fs::read(&file).unwrap(), newer);
}

#[test]
fn names_of_files_are_readable_and_different() {
    let name = |case: &str, arm: &str| {
        let file = file_name(Path::new("c"), CassetteName { suite: "s", case, arm });
        file.to_string_lossy().into_owned()
    };
    assert_eq!(name("a [x]", "claude-code+without").matches('/').count(), 2);
    assert_eq!(name("plain", "codex"), "c/s/plain@codex.jsonl.zst");
    assert_ne!(name("a/b", "m"), name("a:b", "m"));
    assert_ne!(name("a@b", "c"), name("a", "b@c"));
    assert_ne!(name("Greet", "m").to_lowercase(), name("greet", "m").to_lowercase());
    assert!(!name("../..", "m").contains(".."), "{}", name("../..", "m"));
    assert!(name(&"long ".repeat(100), "m").len() < 150);
}

#[test]
fn processes_that_record_into_one_file_at_the_same_time_keep_all_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("suite/case@arm.jsonl.zst");
    let repetitions: Vec<u64> = (1..=12).collect();
    std::thread::scope(|scope| {
        for repetition in &repetitions {
            // Each collection stands for a process: it has its own view of the file.
            let cassettes = Cassettes::new(CassetteMode::Record, false);
            let file = &file;
            scope.spawn(move || cassettes.save(file, recording(*repetition), &Mask::default()).unwrap());
        }
    });
    let recorded = Cassette::read(&file).unwrap();
    assert_eq!(recorded.recordings.iter().map(|one| one.about.repetition).collect::<Vec<_>>(), repetitions);
    let left: Vec<_> = std::fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "no lock file is left: {left:?}");
}

#[test]
fn a_refused_recording_creates_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mask = Mask::of(&BTreeMap::from([("X_API_KEY".to_owned(), "correct-horse-battery".to_owned())]));
    let mut unsafe_one = recording(1);
    unsafe_one.exchanges[0].path = "/correct-horse-battery".into();
    let saved = Cassettes::default().save(&folder.path().join("suite/c"), unsafe_one, &mask);
    assert!(matches!(saved, Err(CassetteError::Secret(_))), "{saved:?}");
    assert!(!folder.path().join("suite").exists());
}
