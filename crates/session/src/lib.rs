//! The path from a project to a run, for every front of the program: `open` a project, `resolve` what is asked,
//! `plan` the trials, and `run` and record them.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use trialrun_session::{Launch, Overrides, Place, Session};
//!
//! # fn host() -> sandbox::Host { unimplemented!() }
//! # fn example() -> Result<(), trialrun_session::Error> {
//! let place = Place { directory: "/project".into(), state: None, agents: Vec::new(), host: Arc::new(host()) };
//! let session = Session::open(place, &[])?;
//! let spec = session.resolve(&Overrides::default())?;
//! let mut planned = session.plan(&spec)?;
//! for warning in session.check(&mut planned)? {
//!     eprintln!("{warning}");
//! }
//! if let Some(problem) = planned.first_error() {
//!     return Err(trialrun_session::Error::usage(problem.to_string()));
//! }
//! let started = session.start(&planned, None)?;
//! let (ended, _) = session.run(planned, started, Launch::default())?;
//! assert_eq!(ended.summary.by_outcome.passed, ended.summary.trials);
//! # Ok(())
//! # }
//! ```

mod content_hash;
pub mod dependencies;
mod error;
mod git_sign_in;
pub mod hooks;
mod invocation;
mod javascript;
mod judgements;
mod layer;
mod masking;
mod named_run;
mod obstacles;
mod origin;
pub mod overrides;
mod owner;
mod parent_files;
mod path;
mod plan;
mod prices;
mod recording;
mod run;
mod run_lock;
mod sandbox_choice;
mod selection;
mod session;
pub mod settings;
pub mod shard;
mod state;
mod trial_spec;

pub use error::{Error, ErrorKind};
pub use invocation::{hash_of, invocation};
pub use layer::Layer;
pub use masking::without_secrets;
pub use named_run::named_run;
pub use overrides::Overrides;
pub use owner::{is_active, owner};
pub use parent_files::steering;
pub use path::{normalize, shown};
pub use plan::{Planned, PlannedRegrade};
pub use prices::note as price_note;
pub use recording::Recorded;
pub use run::{Launch, Resumed, Signals, Started, record, unrecorded, uses_real_remote};
pub use run_lock::{LockError, RunLock};
pub use sandbox_choice::{AUTO_SANDBOX, try_out};
pub use selection::none_failed;
pub use session::{Place, Session};
pub use settings::{Row, RunSpec, misspelt_limit};
pub use state::{State, create_state_folder, location};
pub use trial_spec::{TrialSpec, TrialSpecs};

#[cfg(test)]
mod tests {
    mod together;

    use std::path::Path;
    use std::sync::Arc;

    use sandbox::Host;
    use sandbox::supervise::Supervisor;

    use super::{Place, Session};

    /// Opens a session in `directory`, with an empty environment.
    pub fn session_in(directory: &Path) -> Session {
        session_with(directory, &[])
    }

    /// Opens a session in `directory`, with these environment variables.
    pub fn session_with(directory: &Path, environment: &[(&str, &str)]) -> Session {
        let supervisor = Supervisor::unchecked("/bin/false").unwrap();
        let env = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let host = Host { env, home: None, temp: std::env::temp_dir(), supervisor };
        let state = Some(directory.join("state"));
        let place = Place { directory: directory.to_owned(), state, agents: Vec::new(), host: Arc::new(host) };
        Session::open(place, &[directory.display().to_string()]).unwrap()
    }
}
