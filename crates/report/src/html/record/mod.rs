//! Pages of a whole record for a server: its runs, cases and trends, and what is in progress. They are plain HTML without
//! scripts, so nothing in the data can be executed.

mod cases;
mod course;
mod frame;
mod progress;
mod runs;
mod trend;

pub use cases::{CasePage, CasesPage, case_page, cases_page};
pub(super) use frame::encoded;
pub use frame::{message_page, record_policy};
pub use progress::{LiveRun, ProgressPage, progress_page};
pub use runs::{RunsPage, runs_page};
pub use trend::trend_page;
