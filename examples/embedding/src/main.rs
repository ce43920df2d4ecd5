//! Runs the tests in the folder `tests` against the bot of this crate.
//!
//! `cargo run -p trialrun-example-embedding` prints the outcome of each case.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use embedding::{bot, run};
use sandbox::supervise;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // For each process in a sandbox, this program starts itself again as the supervisor.
    if let Some(code) = supervise::answer(std::env::args_os().skip(1)) {
        return Ok(code);
    }
    print_outcomes()?;
    Ok(ExitCode::SUCCESS)
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "this is an example program")]
async fn print_outcomes() -> Result<(), Box<dyn Error>> {
    let tests = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"));
    let summary = run(tests, bot(), &std::env::current_exe()?, |line| println!("{line}")).await?;
    println!("{} passed, {} failed", summary.by_outcome.passed, summary.by_outcome.failed);
    Ok(())
}
