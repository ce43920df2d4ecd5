//! `trialrun workers`.

use std::process::ExitCode;

use queue::Queue;

use super::pause::failed;
use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use crate::workers::{queue_json, settings, view};

/// Arguments of `workers`.
#[derive(Debug, clap::Args)]
pub struct WorkersArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows the workers, and the runs in the queue.
pub fn run(global: &Global, args: &WorkersArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let queue = Queue::open(&settings(None, &place::open(global, &[])?)?).map_err(|error| failed(&error))?;
    let view = view(&queue).map_err(|error| failed(&error))?;
    if args.json {
        terminal.json(&queue_json(&view));
    } else {
        terminal.out(&report::queue(&view));
    }
    Ok(ExitCode::SUCCESS)
}
