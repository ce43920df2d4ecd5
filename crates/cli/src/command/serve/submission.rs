//! Runs that clients start. Each is a process of this program, so that it goes on when the server ends, and a run that
//! crashes does not take the server with it.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use model::RunRow;
use serde_json::{Map, Value};
use store::RunFilter;

use super::field::{Field, Kind};
use super::problem::Problem;
use super::record::Record;
use super::tokens::{READ_VARIABLE, RUN_VARIABLE};

/// Variable that names the record.
const STATE: &str = "TRIALRUN_STATE";
/// Maximum number of runs that the server coordinates at the same time.
const MOST: usize = 16;
/// Time that a client waits for the start of its run.
const WAIT: Duration = Duration::from_secs(20);
/// Pause between two looks at the record.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum number of bytes of a process's errors that a client is shown.
const ERRORS: u64 = 4096;
/// Number of the newest runs among which a started one is looked for.
const NEWEST: usize = 50;

/// Starts processes that coordinate runs.
pub struct Submitter {
    program: PathBuf,
    /// Folder in which they start.
    directory: PathBuf,
    /// Record of the command line.
    state: Option<PathBuf>,
    running: Arc<AtomicUsize>,
}

/// A process that was started for a client.
pub enum Submitted {
    /// Its run.
    Started(Box<RunRow>),
    /// The run has not begun yet.
    Starting,
}

impl Submitter {
    pub fn new(program: PathBuf, directory: PathBuf, state: Option<PathBuf>) -> Self {
        Self { program, directory, state, running: Arc::default() }
    }

    /// Starts `trialrun run` with these arguments, and waits until the run is recorded. `resumed` is the run that the
    /// process continues, if it does.
    pub fn start(&self, arguments: &[String], resumed: Option<&str>, record: &Record) -> Result<Submitted, Problem> {
        if self.running.fetch_add(1, Ordering::SeqCst) >= MOST {
            self.running.fetch_sub(1, Ordering::SeqCst);
            let message = format!("{MOST} runs of this server are in progress; wait until one has ended");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        let place = Place(Arc::clone(&self.running));
        let failed = |error: std::io::Error| Problem::unavailable(format!("cannot start a run: {error}"));
        let errors = tempfile::tempfile().map_err(failed)?;
        let mut command = Command::new(&self.program);
        command.args(["run", "--workers"]).args(arguments).current_dir(&self.directory);
        command.env_remove(READ_VARIABLE).env_remove(RUN_VARIABLE);
        // The URL of a database may contain a password, and other users can read arguments.
        if let Some(state) = &self.state {
            command.env(STATE, state);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors.try_clone().map_err(failed)?).process_group(0);
        let child = command.spawn().map_err(failed)?;
        tracing::info!(pid = child.id(), "run submitted");
        Process { child: Some(child), errors, place: Some(place) }.wait_for_start(resumed, record)
    }
}

/// A place among the runs of the server.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A process that coordinates a run. When it is dropped, a thread waits for its end.
struct Process {
    child: Option<Child>,
    errors: File,
    place: Option<Place>,
}

impl Process {
    /// Waits until the process has recorded its run, or has ended without one.
    fn wait_for_start(mut self, resumed: Option<&str>, record: &Record) -> Result<Submitted, Problem> {
        let began = Instant::now();
        let candidates = RunFilter { last: Some(NEWEST), named: resumed.map(str::to_owned), ..RunFilter::default() };
        while began.elapsed() < WAIT {
            let Some(child) = &mut self.child else { break };
            let pid = child.id();
            let ended = child.try_wait().map_err(|error| Problem::unavailable(error.to_string()))?;
            let host = sandbox::host_name();
            let is_own = |run: &RunRow| {
                run.lease.as_ref().is_some_and(|lease| lease.owner.pid == pid && lease.owner.host == host)
            };
            // Ids of processes are used again, so an ended run does not count.
            let is_open = |run: &RunRow| run.finished_at.is_none() || ended.is_some();
            if let Some(run) = record.runs(&candidates)?.into_iter().find(|run| is_own(run) && is_open(run)) {
                return Ok(Submitted::Started(Box::new(run)));
            }
            if ended.is_some() {
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, self.errors()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(Submitted::Starting)
    }

    /// Returns what the process wrote to stderr, which contains no secrets.
    fn errors(&mut self) -> String {
        let mut text = Vec::new();
        let read = self.errors.rewind().and_then(|()| (&self.errors).take(ERRORS).read_to_end(&mut text));
        let text = report::clean(&String::from_utf8_lossy(&text));
        match read {
            Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
            _ => "the run did not start, and its process gave no reason".to_owned(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let (Some(mut child), Some(place)) = (self.child.take(), self.place.take()) else { return };
        let thread = std::thread::Builder::new().name("submitted run".into());
        // Without a thread, the process is waited for by nobody, which only matters until the server ends.
        let _ = thread.spawn(move || {
            let _ = child.wait();
            drop(place);
        });
    }
}

/// Returns the arguments of `trialrun run` for the fields of a request, which are known.
pub fn arguments(fields: &[Field], body: &Map<String, Value>) -> Result<Vec<String>, Problem> {
    let (mut options, mut paths) = (Vec::new(), Vec::new());
    for field in fields {
        let Some(value) = body.get(field.name).filter(|value| !value.is_null()) else { continue };
        let wrong = || Problem::bad_request(format!("`{}` must be {}", field.name, field.kind.noun()));
        let texts: Vec<String> = match (field.kind, value) {
            (Kind::Texts, Value::Array(values)) => values
                .iter()
                .map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect::<Result<_, _>>()?,
            (Kind::Text, Value::String(text)) => vec![text.clone()],
            (Kind::Number, Value::Number(number)) => vec![number.to_string()],
            (Kind::Trials, Value::Number(number)) if number.is_u64() => vec![number.to_string()],
            (Kind::Trials, Value::String(text)) => vec![text.clone()],
            _ => return Err(wrong()),
        };
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(wrong());
        }
        match field.option {
            // A value in the same argument is never taken for an option.
            Some(option) => options.extend(texts.into_iter().map(|text| format!("{option}={text}"))),
            None => {
                for path in texts {
                    if !is_inside(Path::new(&path)) {
                        return Err(Problem::bad_request(format!("`{path}` is not a path inside of the project")));
                    }
                    paths.push(path);
                }
            }
        }
    }
    options.push("--".to_owned());
    options.extend(paths);
    Ok(options)
}

/// Returns `true` for a path that does not leave its folder.
fn is_inside(path: &Path) -> bool {
    let is_part = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    path.components().next().is_some() && path.components().all(is_part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::field::SUBMISSION;
    use super::*;

    fn arguments_of(body: &Value) -> Result<Vec<String>, (StatusCode, String)> {
        let arguments = arguments(&SUBMISSION, body.as_object().unwrap());
        arguments.map_err(|problem| (problem.status, format!("{problem:?}")))
    }

    #[test]
    fn a_value_never_becomes_another_option_or_a_path_outside_of_the_project() {
        let body = json!({"paths": ["tests", "--help"], "cases": ["a", "--agent=x"], "trials": 5, "label": "pr-1",
            "max_run_cost": 1.5, "filter": null});
        let expected = [
            "--case=a",
            "--case=--agent=x",
            "--trials=5",
            "--label=pr-1",
            "--max-run-cost=1.5",
            "--",
            "tests",
            "--help",
        ];
        assert_eq!(arguments_of(&body).unwrap(), expected);
        assert_eq!(arguments_of(&json!({"trials": "auto:9"})).unwrap(), ["--trials=auto:9", "--"]);
        for (body, reason) in [
            (json!({"paths": ["/etc"]}), "`/etc` is not a path inside of the project"),
            (json!({"paths": ["tests/../../x"]}), "is not a path inside of the project"),
            (json!({"paths": [""]}), "is not a path inside of the project"),
            (json!({"paths": "tests"}), "`paths` must be a list of texts"),
            (json!({"label": 1}), "`label` must be a text"),
            (json!({"label": "a\0b"}), "`label` must be a text"),
            (json!({"trials": 1.5}), "`trials` must be a whole number, `auto` or `auto:MAX`"),
        ] {
            let (status, message) = arguments_of(&body).unwrap_err();
            assert!(status == StatusCode::BAD_REQUEST && message.contains(reason), "{message}");
        }
    }
}
