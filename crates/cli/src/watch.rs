//! `run --watch`: reruns the tests that a change affects.
//!
//! Files are polled several times a second. This works the same everywhere, including on network drives and in
//! containers, and does not depend on how an editor saves files.

mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use report::counted;

use self::snapshot::{Change, Snapshot};
use crate::command::run::{Origin, run_planned};
use session::dependencies::{self, Dependencies};
use session::{Planned, Session};

use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use crate::workers::WorkersArgs;
use crate::{limits, signals};
use session::overrides::Overrides;

/// Polling interval. A change counts only when two consecutive polls agree on it, so that several steps of an editor
/// are one change.
const PERIOD: Duration = Duration::from_millis(150);

/// Maximum number of file names that are shown; the rest are counted.
const NAMES: usize = 3;

/// Runs the tests, and reruns those that changes affect, until a signal arrives.
pub fn watch(global: &Global, args: &Overrides, terminal: &Terminal) -> Result<ExitCode, CliError> {
    limits::raise_open_files();
    signals::begin().map_err(|error| CliError::environment(format!("cannot listen to signals: {error}")))?;
    let keys = keys();
    let mut watched = Watched::default();
    let mut affected = Affected::Everything;
    loop {
        let mut seen = watched.snapshot();
        watched.run(global, args, terminal, &affected, &mut seen);
        if let Some(code) = signals::exit_code() {
            return Ok(ExitCode::from(code));
        }
        let files = counted(seen.len(), "file");
        dim(terminal, &format!("\nwatching {files}; press Enter to run everything, Ctrl-C to quit\n"));
        affected = loop {
            match wait(&watched, &seen, &keys) {
                Wakeup::Signal(code) => {
                    terminal.err("\n");
                    return Ok(ExitCode::from(code));
                }
                Wakeup::Key => break Affected::Everything,
                Wakeup::Change(now) => {
                    let changes = seen.changes(&now);
                    seen = now;
                    let next = watched.affected_by(&changes);
                    if let Some(next) = next {
                        dim(terminal, &format!("\n{}\n", watched.describe(&changes, &next)));
                        break next;
                    }
                }
            }
        };
    }
}

/// Tests to run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Affected {
    /// Every suite.
    Everything,
    /// The suites in these files, and new ones.
    Suites(BTreeSet<PathBuf>),
}

/// Reason why waiting ended.
enum Wakeup {
    /// A signal, with the exit code.
    Signal(u8),
    /// The user pressed Enter.
    Key,
    /// Files have changed.
    Change(Snapshot),
}

fn wait(watched: &Watched, seen: &Snapshot, keys: &Receiver<()>) -> Wakeup {
    let mut before: Option<Snapshot> = None;
    loop {
        std::thread::sleep(PERIOD);
        if let Some(code) = signals::exit_code() {
            return Wakeup::Signal(code);
        }
        if keys.try_recv().is_ok() {
            return Wakeup::Key;
        }
        let now = watched.snapshot();
        if now != *seen && before.as_ref() == Some(&now) {
            return Wakeup::Change(now);
        }
        before = Some(now);
    }
}

/// Starts a thread that reports every line the user enters.
fn keys() -> Receiver<()> {
    let (tell, keys) = channel();
    if std::io::stdin().is_terminal() {
        // The thread ends with the program, because a blocking read cannot be interrupted.
        let _ = std::thread::Builder::new().name("keys".into()).spawn(move || {
            for line in std::io::stdin().lock().lines() {
                if line.is_err() || tell.send(()).is_err() {
                    break;
                }
            }
        });
    }
    keys
}

/// Watched files, by their role.
#[derive(Default)]
struct Watched {
    cwd: PathBuf,
    /// Folders and files in which new suites may appear.
    places: Vec<PathBuf>,
    /// The configuration, its imports, and the possible paths of a new one.
    configuration: BTreeSet<PathBuf>,
    /// Dependencies of each suite.
    suites: BTreeMap<PathBuf, Dependencies>,
    /// Tests that were not run because of problems.
    pending: Option<Affected>,
}

impl Watched {
    fn snapshot(&self) -> Snapshot {
        let single = self.suites.values().flat_map(Dependencies::paths);
        Snapshot::of(self.places.iter().chain(&self.configuration).chain(single).map(PathBuf::as_path))
    }

    /// Runs the affected tests and the pending ones, and prints problems. `seen` is the snapshot from before the files
    /// were read; newly discovered files are added to it.
    fn run(
        &mut self,
        global: &Global,
        args: &Overrides,
        terminal: &Terminal,
        affected: &Affected,
        seen: &mut Snapshot,
    ) {
        let affected = match self.pending.take() {
            Some(pending) => pending.and(affected),
            None => affected.clone(),
        };
        let (session, mut planned) = match place::plan(global, args) {
            Ok(planned) => planned,
            Err(error) => {
                self.pending = Some(affected);
                return terminal.error(&error);
            }
        };
        let is_broken = planned.diagnostics.iter().any(|problem| args.gates.strict || problem.is_error());
        let wanted = self.learn(&session, &planned, args, &affected);
        // Taken before the run, so that changes during the run are noticed afterwards.
        seen.add_new(self.snapshot());
        if is_broken {
            terminal.diagnostics(&planned.diagnostics);
            self.pending = Some(affected);
            return;
        }
        if let Some(wanted) = wanted {
            planned.plan.trials.retain(|trial| wanted.contains(&*trial.file));
            if planned.plan.trials.is_empty() {
                return;
            }
        }
        let workers = WorkersArgs::default();
        if let Err(error) = run_planned(args, &session, planned, Origin::Watch, &workers, terminal) {
            terminal.error(&error);
        }
    }

    /// Updates the watched files, and returns the files of the suites to run; `None` for all.
    fn learn(
        &mut self,
        context: &Session,
        planned: &Planned,
        args: &Overrides,
        affected: &Affected,
    ) -> Option<BTreeSet<PathBuf>> {
        self.cwd.clone_from(&context.cwd);
        self.places = dependencies::places(context, args);
        self.configuration = dependencies::configuration(&context.project);
        let found = dependencies::of_suites(context, &planned.plan.trials);
        let wanted = match affected {
            Affected::Everything => None,
            Affected::Suites(suites) => {
                let new = found.keys().filter(|suite| !self.suites.contains_key(*suite));
                Some(suites.iter().chain(new).cloned().collect())
            }
        };
        // A suite that currently cannot be read keeps its dependencies.
        self.suites.extend(found);
        wanted
    }

    /// Returns the tests that `changes` affect; `None` if there are none.
    fn affected_by(&self, changes: &BTreeMap<PathBuf, Change>) -> Option<Affected> {
        if changes.keys().any(|path| self.configuration.contains(path)) {
            return Some(Affected::Everything);
        }
        let is_touched = |dependencies: &Dependencies| changes.keys().any(|path| dependencies.holds(path));
        let suites: BTreeSet<PathBuf> =
            self.suites.iter().filter(|(_, made_of)| is_touched(made_of)).map(|(suite, _)| suite.clone()).collect();
        let is_new = changes.values().any(|change| *change == Change::New);
        (!suites.is_empty() || is_new || self.pending.is_some()).then_some(Affected::Suites(suites))
    }

    /// Describes the changes and the tests that they trigger, in one line.
    fn describe(&self, changes: &BTreeMap<PathBuf, Change>, affected: &Affected) -> String {
        let name = |(path, change): (&PathBuf, &Change)| {
            let shown = session::shown(path, &self.cwd);
            match change {
                Change::New => format!("{shown} (new)"),
                Change::Gone => format!("{shown} (gone)"),
                Change::Other => shown,
            }
        };
        let mut names: Vec<String> = changes.iter().map(name).collect();
        if names.len() > NAMES {
            let more = names.len() - NAMES;
            names.truncate(NAMES);
            names.push(format!("{more} more"));
        }
        let what = match affected {
            Affected::Everything => "everything".to_owned(),
            Affected::Suites(suites) if suites.is_empty() => "new tests".to_owned(),
            Affected::Suites(suites) => counted(suites.len(), "suite"),
        };
        format!("changed: {} → {what}", names.join(", "))
    }
}

impl Affected {
    /// Returns the union of both.
    fn and(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Suites(mut suites), Self::Suites(more)) => {
                suites.extend(more.iter().cloned());
                Self::Suites(suites)
            }
            _ => Self::Everything,
        }
    }
}

fn dim(terminal: &Terminal, text: &str) {
    let text = if terminal.err_style.unicode { text.to_owned() } else { text.replace('→', "->") };
    match terminal.err_style.color {
        true => terminal.err(&format!("\x1b[2m{text}\x1b[0m")),
        false => terminal.err(&text),
    }
}

#[cfg(test)]
mod tests;
