//! State that changes belongs to a run and is passed on by its owner, so that several runs in one process do not see
//! each other.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Statics that change nevertheless, with the reason.
const KNOWN: [(&str, &str); 15] = [
    ("cli/src/log.rs LOG", "a process has one log"),
    ("cli/src/signals.rs LAST_SIGNAL", "signals are sent to a process"),
    ("cli/src/signals.rs LISTENING", "signals are sent to a process"),
    ("cli/src/signals.rs RECEIVED", "signals are sent to a process"),
    ("cli/src/signals.rs RUNS", "signals are sent to a process"),
    ("expect/src/allowance.rs STOPPED", "counts within one judgement on a thread"),
    ("expect/src/schema/undecided.rs UNDECIDED", "the result of one call of a library on a thread"),
    ("grade/src/scripts.rs IDLE", "engines cannot change threads; each belongs to the `Scripts` with its id"),
    ("grade/src/scripts.rs NEXT", "ids that are unique in the process"),
    ("sandbox/src/container.rs STARTED", "names that are unique in the process"),
    ("sandbox/src/supervise/answer.rs ANSWERS", "whether the program answers as its own supervisor"),
    ("script/src/compiled.rs COMPILED", "compiled modules by their text"),
    ("script/src/regex.rs POOL", "compiled expressions by their text"),
    ("script/src/runtime.rs NEXT", "ids that are unique in the process"),
    ("session/src/run_lock.rs LOCKED", "the operating system gives locks to processes"),
];

/// Statics without state of a run: idle threads, and the time at which a thread started.
const STATELESS: [&str; 2] = ["script/src/deadline.rs STARTED", "script/src/thread.rs WAITING"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
            found.push(path);
        }
    }
}

#[test]
fn state_that_changes_belongs_to_a_run_and_not_to_the_process() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let folder = entry.unwrap().path();
        if folder.is_dir() && !folder.ends_with("testkit") {
            sources(&folder.join("src"), &mut files);
        }
    }
    let mut found = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines().map(str::trim_start) {
            let is_public = |line: &&str| line.starts_with("pub");
            let public = || Some(line).filter(is_public)?.split_once(" static ").map(|(_, declared)| declared);
            let declared = line.strip_prefix("static ").or_else(public);
            let Some((name, kind)) = declared.and_then(|declared| declared.split_once(": ")) else { continue };
            let is_constant = kind.starts_with("LazyLock<") && !kind.contains("Mutex<");
            let changes = ["Mutex<", "RwLock<", "Atomic", "Cell<", "OnceLock<", "Instant"];
            if !is_constant && changes.iter().any(|part| kind.contains(part)) {
                found.insert(format!("{} {name}", file.strip_prefix(&crates).unwrap().display()));
            }
        }
    }
    let known = KNOWN.iter().map(|(name, _)| *name).chain(STATELESS).map(str::to_owned).collect();
    assert_eq!(found, known);
}
