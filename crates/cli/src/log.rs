//! The log of what the program does, for reports about problems. It is off unless [`LEVELS`] is set.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{OnceLock, PoisonError, RwLock};

use mask::Mask;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::CliError;

/// Variable with the level of the log, or with levels of its parts.
const LEVELS: &str = "TRIALRUN_LOG";

/// Variable with the file to which the log is appended; stderr if it is not set.
const FILE: &str = "TRIALRUN_LOG_FILE";

/// Prefix of the names of this program's parts, which are its crates.
const PARTS: &str = "trialrun";

/// The log, once it is on. A process has one log, as it has one stderr.
static LOG: OnceLock<Log> = OnceLock::new();

struct Log {
    file: Option<File>,
    mask: RwLock<Mask>,
}

/// Turns the log on if the `environment` asks for it.
///
/// # Errors
/// Returns an error if the levels are not valid, or if the file cannot be opened.
pub fn start(environment: &BTreeMap<String, String>) -> Result<(), CliError> {
    let set = |name: &str| environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let Some(levels) = set(LEVELS) else { return Ok(()) };
    let targets = targets(levels).ok_or_else(|| {
        CliError::usage(format!("invalid value `{levels}` for the `{LEVELS}` variable"))
            .hint("write a level (error, warn, info, debug or trace), or levels of parts: `info,trialrun_llm=debug`")
    })?;
    let open = |path: &str| File::options().append(true).create(true).mode(0o600).open(path);
    let file = set(FILE).map(|path| {
        open(path).map_err(|error| CliError::environment(format!("cannot open the log {path} (`{FILE}`): {error}")))
    });
    let log = Log { file: file.transpose()?, mask: RwLock::new(Mask::of(environment)) };
    if LOG.set(log).is_ok() {
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| Line);
        tracing_subscriber::registry().with(lines.with_filter(targets)).init();
    }
    Ok(())
}

/// Hides further secrets in the log, such as those in the configuration.
pub fn hide(mask: &Mask) {
    if let Some(log) = LOG.get() {
        *log.mask.write().unwrap_or_else(PoisonError::into_inner) = mask.clone();
    }
}

/// Returns `true` if the log is written to stderr.
pub fn is_on_stderr() -> bool {
    LOG.get().is_some_and(|log| log.file.is_none())
}

/// Reads levels: one for all parts of the program, or `PART=LEVEL` for some, separated by commas.
fn targets(levels: &str) -> Option<Targets> {
    levels.split(',').map(str::trim).try_fold(Targets::new(), |targets, written| {
        let (part, level) = written.split_once('=').unwrap_or((PARTS, written));
        Some(targets.with_target(part, level.parse::<LevelFilter>().ok()?))
    })
}

/// Writes one line of the log at once, so that a secret is not cut.
struct Line;

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(log) = LOG.get() else { return Ok(bytes.len()) };
        let line = String::from_utf8_lossy(bytes);
        let mask = log.mask.read().unwrap_or_else(PoisonError::into_inner);
        let line = mask.text(&line);
        match &log.file {
            Some(file) => (&*file).write_all(line.as_bytes())?,
            None => io::stderr().lock().write_all(line.as_bytes())?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
