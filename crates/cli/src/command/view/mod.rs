//! `trialrun view`.

pub mod pages;
pub mod server;

use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use model::RunRow;
use store::Store;
use tokio::signal::unix::{SignalKind, signal};

use self::pages::Pages;
use self::server::ViewServer;
use crate::ci;
use crate::error::CliError;
use crate::global::Global;
use crate::http_server::HttpServer;
use crate::terminal::Terminal;
use crate::workspace::WorkspaceArgs;

/// Arguments of `view`.
#[derive(Debug, clap::Args)]
pub struct ViewArgs {
    /// Run: prefix of its id, label, `latest`, `previous` or `latest~N` [default: latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    place: WorkspaceArgs,
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Only print the address, and do not open a browser
    #[arg(long)]
    no_open: bool,
}

/// Serves the pages of a run on loopback until Ctrl-C. The pages of a run in progress update as it continues.
pub fn run(global: &Global, args: &ViewArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let (store, run) = args.place.find(global, args.run.as_deref(), "latest")?;
    let pages = Pages::new(&run.id, ci::folder_in_repository(), None);
    let failed = |error: io::Error| CliError::environment(format!("cannot serve the run: {error}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(failed)?;
    let served = runtime.block_on(serve(pages, store, &run, args, terminal));
    // There is no need to wait for a request that is still being answered.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(
    pages: Pages,
    store: Box<dyn Store>,
    run: &RunRow,
    args: &ViewArgs,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let port = args.port.unwrap_or(0);
    let server = HttpServer::bind((Ipv4Addr::LOCALHOST, port).into(), &[]).await;
    let server = server.map_err(|error| {
        CliError::environment(format!("cannot listen on port {port} of 127.0.0.1: {error}"))
            .maybe_hint(args.port.map(|_| "without `--port`, a free port is used".to_owned()))
    })?;
    let failed = |error: io::Error| CliError::environment(format!("cannot serve the run: {error}"));
    let server = ViewServer::new(server, pages, store);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let address = server.address();
    let label = run.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
    terminal.out(&format!("run {}{label}: {address}\nCtrl-C ends the server.\n", run.short));
    if !args.no_open {
        open_browser(&address);
    }
    tokio::select! {
        () = server.listen() => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Opens the address in the user's browser, if there is a display. A failure is not reported, because the address has
/// already been printed. The browser gets its own process group, so that Ctrl-C does not end it.
fn open_browser(address: &str) {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let program = match () {
        () if set("CI") => return,
        () if cfg!(target_os = "macos") => "open",
        () if set("DISPLAY") || set("WAYLAND_DISPLAY") => "xdg-open",
        () => return,
    };
    let mut command = Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let _ = command.spawn();
}
