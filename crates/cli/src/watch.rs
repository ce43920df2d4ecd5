//! `run --watch`: runs again the tests that a change affects.
//!
//! Files are polled a few times a second. That works the same everywhere, on network drives and in containers, and does
//! not depend on how an editor saves.

mod dependencies;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use self::dependencies::Dependencies;
use self::snapshot::Snapshot;
use crate::command::check::count;
use crate::command::run::run_prepared;
use crate::error::CliError;
use crate::global::Global;
use crate::preparation::{Prepared, prepare};
use crate::run_args::RunArgs;
use crate::signals;
use crate::terminal::Terminal;

/// Polling interval. A change counts when two polls in a row agree on it, so that an editor's several steps are one
/// change.
const PERIOD: Duration = Duration::from_millis(150);

/// Maximum number of file names that are shown; more are counted.
const NAMES: usize = 3;

/// Runs, and runs again what changes affect, until a signal comes.
pub fn watch(global: &Global, args: &RunArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    signals::begin().map_err(|error| CliError::environment(format!("cannot listen to signals: {error}")))?;
    let wishes = wishes();
    let mut watched = Watched::default();
    let mut touched = Touched::Everything;
    loop {
        let mut seen = watched.snapshot();
        watched.run(global, args, terminal, &touched, &mut seen);
        if let Some(code) = signals::exit_code() {
            return Ok(ExitCode::from(code));
        }
        let files = count(seen.len(), "file");
        dim(terminal, &format!("\nwatching {files}; Enter runs everything, Ctrl-C ends\n"));
        touched = loop {
            match wait(&watched, &seen, &wishes) {
                Waited::Signal(code) => {
                    terminal.err("\n");
                    return Ok(ExitCode::from(code));
                }
                Waited::Wish => break Touched::Everything,
                Waited::Change(now) => {
                    let changes = seen.changes(&now);
                    seen = now;
                    let next = watched.touched_by(&changes);
                    if let Some(next) = next {
                        dim(terminal, &format!("\n{}\n", watched.told(&changes, &next)));
                        break next;
                    }
                }
            }
        };
    }
}

/// Tests to run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Touched {
    /// Every suite.
    Everything,
    /// The suites in these files, and new ones.
    Suites(BTreeSet<PathBuf>),
}

/// Reason for the end of a wait.
enum Waited {
    /// A signal, with the exit code.
    Signal(u8),
    /// The user pressed Enter.
    Wish,
    /// Files have changed.
    Change(Snapshot),
}

fn wait(watched: &Watched, seen: &Snapshot, wishes: &Receiver<()>) -> Waited {
    let mut before: Option<Snapshot> = None;
    loop {
        std::thread::sleep(PERIOD);
        if let Some(code) = signals::exit_code() {
            return Waited::Signal(code);
        }
        if wishes.try_recv().is_ok() {
            return Waited::Wish;
        }
        let now = watched.snapshot();
        if now != *seen && before.as_ref() == Some(&now) {
            return Waited::Change(now);
        }
        before = Some(now);
    }
}

/// Starts a thread that reports every line that is typed.
fn wishes() -> Receiver<()> {
    let (tell, wishes) = channel();
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
    wishes
}

/// Watched files, by their role.
#[derive(Default)]
struct Watched {
    cwd: PathBuf,
    /// Folders and files in which new suites may appear.
    places: Vec<PathBuf>,
    /// The configuration, its imports, and the names it may have.
    configuration: BTreeSet<PathBuf>,
    /// Dependencies of each suite.
    suites: BTreeMap<PathBuf, Dependencies>,
    /// Tests that were not run because of problems.
    pending: Option<Touched>,
}

impl Watched {
    fn snapshot(&self) -> Snapshot {
        let single = self.suites.values().flat_map(Dependencies::paths);
        Snapshot::of(self.places.iter().chain(&self.configuration).chain(single).map(PathBuf::as_path))
    }

    /// Runs the affected tests, and those that are pending. Problems are printed. `seen` is the snapshot from before
    /// the files were read; newly discovered files are added to it.
    fn run(&mut self, global: &Global, args: &RunArgs, terminal: &Terminal, touched: &Touched, seen: &mut Snapshot) {
        let touched = match self.pending.take() {
            Some(pending) => pending.and(touched),
            None => touched.clone(),
        };
        let prepared = match prepare(global, args) {
            Ok(prepared) => prepared,
            Err(error) => {
                self.pending = Some(touched);
                return terminal.error(&error);
            }
        };
        let is_broken = prepared.diagnostics.iter().any(|problem| args.gates.strict || problem.is_error());
        let wanted = self.learn(&prepared, args, &touched);
        // Taken before the run, so that changes during the run are noticed after it.
        seen.add_new(self.snapshot());
        if is_broken {
            terminal.diagnostics(&prepared.diagnostics);
            self.pending = Some(touched);
            return;
        }
        let mut prepared = prepared;
        if let Some(wanted) = wanted {
            prepared.plan.trials.retain(|trial| wanted.contains(&*trial.file));
            if prepared.plan.trials.is_empty() {
                return;
            }
        }
        if let Err(error) = run_prepared(args, prepared, terminal) {
            terminal.error(&error);
        }
    }

    /// Updates the watched files, and returns the files of the suites to run; `None` for all.
    fn learn(&mut self, prepared: &Prepared, args: &RunArgs, touched: &Touched) -> Option<BTreeSet<PathBuf>> {
        let workplace = &prepared.workplace;
        self.cwd.clone_from(&workplace.cwd);
        self.places = dependencies::places(workplace, args);
        self.configuration = dependencies::configuration(&workplace.project);
        let found = dependencies::of_suites(workplace, &prepared.plan.trials);
        let wanted = match touched {
            Touched::Everything => None,
            Touched::Suites(suites) => {
                let new = found.keys().filter(|suite| !self.suites.contains_key(*suite));
                Some(suites.iter().chain(new).cloned().collect())
            }
        };
        // A suite that cannot be read now keeps its dependencies.
        self.suites.extend(found);
        wanted
    }

    /// Returns the tests that `changes` affect; `None` if there are none.
    fn touched_by(&self, changes: &BTreeMap<PathBuf, Change>) -> Option<Touched> {
        if changes.keys().any(|path| self.configuration.contains(path)) {
            return Some(Touched::Everything);
        }
        let is_touched = |dependencies: &Dependencies| changes.keys().any(|path| dependencies.holds(path));
        let suites: BTreeSet<PathBuf> =
            self.suites.iter().filter(|(_, made_of)| is_touched(made_of)).map(|(suite, _)| suite.clone()).collect();
        let is_new = changes.values().any(|change| *change == Change::New);
        (!suites.is_empty() || is_new || self.pending.is_some()).then_some(Touched::Suites(suites))
    }

    /// Describes the changes and the tests that are run for them, in one line.
    fn told(&self, changes: &BTreeMap<PathBuf, Change>, touched: &Touched) -> String {
        let name = |(path, change): (&PathBuf, &Change)| {
            let shown = crate::project::shown(path, &self.cwd);
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
        let what = match touched {
            Touched::Everything => "everything".to_owned(),
            Touched::Suites(suites) if suites.is_empty() => "what is new".to_owned(),
            Touched::Suites(suites) => count(suites.len(), "suite"),
        };
        format!("changed: {} → {what}", names.join(", "))
    }
}

impl Touched {
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

/// Kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    Gone,
    Other,
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
