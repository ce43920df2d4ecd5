//! The `trialrun` binary: turns arguments into settings and connects the crates. Only this crate reads the
//! environment, prints and exits.

mod adversaries;
mod args;
mod ci;
mod command;
mod discovery;
mod error;
mod exit;
mod first_run;
mod global;
mod http_server;
mod language_model;
mod limits;
mod log;
mod machine;
mod named_run;
mod otlp;
mod place;
mod recorded_arguments;
mod recorded_trial;
mod reports;
mod resume;
mod signals;
mod stand_in;
mod terminal;
mod units;
mod watch;
mod workers;
mod workspace;

use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};
use sandbox::supervise;

use crate::args::Args;
use crate::command::Command;
use crate::command::run::RunCommandArgs;

/// A run of ten thousand short trials allocates memory on one thread and frees it on another, millions of times. With
/// the system's allocator it takes a quarter more CPU time. The price is 140 KB of binary and 4 MB of memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let raw: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if raw.get(1).is_some_and(|first| first == supervise::STAND_IN) {
        return stand_in::main(&raw);
    }
    // The supervisor is this program, started again by itself. It must stay single-threaded, so this comes before
    // anything that starts a thread.
    if let Some(code) = supervise::answer(raw.iter().skip(1).cloned()) {
        return code;
    }
    exit::or_bug(|| program(&raw))
}

fn program(raw: &[std::ffi::OsString]) -> ExitCode {
    // A write beyond the limit on file sizes (`ulimit -f`) becomes an error instead of ending the program.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    let args = match Args::read(raw) {
        Ok(args) => args,
        Err(error) => return exit::of_usage(&error),
    };
    let terminal = terminal::Terminal::new(&args.global);
    let logging = log::start(&machine::environment());
    match logging.and_then(|()| dispatch(args, &terminal)) {
        Ok(code) => code,
        Err(error) => {
            terminal.error(&error);
            error::code(&error)
        }
    }
}

fn dispatch(args: Args, terminal: &terminal::Terminal) -> Result<ExitCode, error::CliError> {
    tracing::info!(version = env!("CARGO_PKG_VERSION"), os = std::env::consts::OS, "trialrun started");
    let global = args.global;
    match args.command {
        Command::Run(args) if args.watch => watch::watch(&global, &args.run, terminal),
        Command::Run(args) if args.dry_run => command::check::check(&global, &args.run, terminal),
        Command::Run(RunCommandArgs { run, resume: Some(wanted), workers, .. }) => {
            resume::resume(&global, wanted.as_deref(), &run.output.report, &workers, terminal)
        }
        Command::Run(args) => command::run::run(&global, &args.run, &args.workers, terminal),
        Command::Work(args) => command::work::run(&global, &args, terminal),
        Command::Workers(args) => command::workers::run(&global, &args, terminal),
        Command::Pause(args) => command::pause::pause(&global, &args, terminal),
        Command::Continue(args) => command::pause::resume(&global, &args, terminal),
        Command::Cancel(args) => command::pause::cancel(&global, &args, terminal),
        Command::Check(args) => command::check::run(&global, &args, terminal),
        Command::List(args) => command::list::run(&global, &args, terminal),
        Command::Convert(args) => command::convert::run(&global, &args, terminal),
        Command::Plan(args) => command::plan::run(&global, &args, terminal),
        Command::Doctor(args) => command::doctor::run(&global, &args, terminal),
        Command::Config(args) => command::config::run(&global, &args, terminal),
        Command::Docs(args) => command::docs::run(&args, terminal),
        Command::Init(args) => command::init::run(&args, terminal),
        Command::Show(args) => command::show::run(&global, &args, terminal),
        Command::History(args) => command::history::run(&global, &args, terminal),
        Command::Status(args) => command::status::run(&global, &args, terminal),
        Command::View(args) => command::view::run(&global, &args, terminal),
        Command::Serve(args) => command::serve::run(&global, &args, terminal),
        Command::Report(args) => command::report::run(&global, &args, terminal),
        Command::Rerun(args) => command::rerun::run(&global, &args, terminal),
        Command::Bisect(args) => command::bisect::run(&global, &args, terminal),
        Command::Cassettes(args) => command::cassettes::run(&global, &args, terminal),
        Command::Audit(args) => command::audit::run(&global, &args, terminal),
        Command::Mcp => command::mcp::run(&global),
        Command::Rpc => command::rpc::run(&global, terminal),
        Command::McpLock(args) => command::mcp_lock::run(&global, &args, terminal),
        Command::Discover(args) => command::discover::run(&global, &args, terminal),
        Command::Gen(args) => command::generation::run(&global, &args, terminal),
        Command::Trend(args) => command::trend::run(&global, &args, terminal),
        Command::Compare(args) => command::compare::run(&global, &args, terminal),
        Command::Calibrate(args) => command::calibrate::run(&global, &args, terminal),
        Command::Cleanup(args) => command::cleanup::run(&global, &args, terminal),
        Command::Regrade(args) => command::regrade::run(&global, &args, terminal),
        Command::Export(args) => command::export::run(&global, &args, terminal),
        Command::Import(args) => command::import::run(&global, &args, terminal),
        Command::Merge(args) => command::merge::run(&global, &args, terminal),
        Command::Verify(args) => command::verify::run(&global, &args, terminal),
        Command::Prune(args) => command::prune::run(&global, &args, terminal),
        Command::Schema(args) => command::schema::run(&args, terminal),
        Command::Completions(args) => command::completions::run(&args, &mut Args::definition(), terminal),
        Command::Licenses => command::licenses::run(terminal),
        Command::Man(args) => command::man::run(&args, Args::definition(), terminal),
        Command::Reference(args) => command::reference::run(&args, Args::definition(), terminal),
    }
}
