//! `trialrun serve`: the pages of a whole record for browsers, and an API for programs.
//!
//! Pages only read. Whatever starts or changes a run needs a token in the header `Authorization: Bearer`, which no browser
//! sends on its own, so no page of another site can cause a change. There are no cookies.

mod api;
mod endpoint;
mod field;
mod openapi;
mod page;
mod problem;
mod record;
mod router;
mod service;
mod submission;
mod tokens;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;
use session::Layer;
use store::Location;
use tokio::signal::unix::{SignalKind, signal};
use tower_service::Service as _;

use self::record::Record;
use self::service::Service;
use self::submission::Submitter;
use self::tokens::{READ_VARIABLE, Role, Tokens};
use crate::error::CliError;
use crate::global::Global;
use crate::http_server::{Answer, HttpServer};
use crate::terminal::Terminal;
use crate::workers::{has_queue, settings};
use crate::{ci, place};

pub use self::openapi::{openapi, reference};

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Address and port to listen on; port 0 is a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7347", value_parser = parse_address)]
    listen: SocketAddr,
    /// Name under which browsers reach the server, such as `trials.example.com`; needed if the address is not on this
    /// machine
    #[arg(long = "host", value_name = "NAME[:PORT]", value_parser = parse_host)]
    hosts: Vec<String>,
    /// File with a token in each line, after its role: `read TOKEN` or `run TOKEN` [default: the variables
    /// `TRIALRUN_READ_TOKEN` and `TRIALRUN_RUN_TOKEN`]
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Let everybody who reaches the server read without a token
    #[arg(long)]
    public: bool,
}

fn parse_host(written: &str) -> Result<String, String> {
    let is_host =
        !written.is_empty() && written.chars().all(|char| char.is_ascii_alphanumeric() || ".-:[]_".contains(char));
    if is_host { Ok(written.to_owned()) } else { Err("write a name as in an address, without `https://`".to_owned()) }
}

fn parse_address(written: &str) -> Result<SocketAddr, String> {
    written.parse().map_err(|_| "write an address and a port, such as `127.0.0.1:8080`".to_owned())
}

/// Serves the record until Ctrl-C.
pub fn run(global: &Global, args: &ServeArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let session = place::open(global, &[])?;
    let variable = |name: &str| session.environment().get(name).cloned();
    let tokens = Tokens::read(variable, args.tokens.as_deref())?;
    if tokens.lacks(Role::Read) && !args.public {
        return Err(CliError::usage("there is no token, so nobody could read the record")
            .hint(format!("`export {READ_VARIABLE}=$(openssl rand -hex 16)` makes one for readers"))
            .hint("`--public` lets everybody read who reaches the server"));
    }
    if !args.listen.ip().is_loopback() && args.hosts.is_empty() {
        return Err(CliError::usage(format!(
            "`--listen {}` needs the name under which browsers reach it",
            args.listen
        ))
        .hint("write `--host NAME` or `--host NAME:PORT`"));
    }
    let location = session.state.record.clone();
    // A record that cannot be read is an error now, not at the first request.
    let is_there = store::open_existing(&location)?.is_some();
    let is_typed = matches!(session.state.from, Layer::CommandLine | Layer::Environment(_));
    if let (Location::File(file), false, true) = (&location, is_there, is_typed) {
        return Err(CliError::usage(format!("there is no record {}", file.display()))
            .hint("a run with the same setting creates it"));
    }
    let queue_settings = match has_queue(&session) {
        true => Some(settings(None, &session)?),
        false => None,
    };
    let has_queue = queue_settings.is_some();
    let can_run = !tokens.lacks(Role::Run);
    let mut service = Service::new(Record::new(location, queue_settings), tokens, args.public);
    service.folder = ci::folder_in_repository();
    if let Some(set) = &session.project.regression_threshold {
        service.threshold = set.value;
    }
    if has_queue {
        let program = std::env::current_exe()
            .map_err(|error| CliError::environment(format!("cannot find the program trialrun: {error}")))?;
        service.submitter = Some(Submitter::new(program, place::current_directory()?, global.state.clone()));
    }
    let failed = |error: io::Error| CliError::environment(format!("cannot serve the record: {error}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(failed)?;
    let served = runtime.block_on(async {
        let server = HttpServer::bind(args.listen, &args.hosts).await.map_err(|error| {
            CliError::environment(format!("cannot listen on {}: {error}", args.listen))
                .hint("`--listen 127.0.0.1:0` uses a free port")
        })?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        terminal.out(&format!("record {}: http://{}/\n", service.record.place(), server.address()));
        terminal.out(&notes(args, can_run, has_queue));
        terminal.out("Ctrl-C ends the server.\n");
        tokio::select! {
            () = listen(server, service) => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    });
    // There is no need to wait for a request that is still being answered.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

/// Says who may do what.
fn notes(args: &ServeArgs, can_run: bool, has_queue: bool) -> String {
    let mut text = String::new();
    if args.public {
        text.push_str("Everybody who reaches the server can read the record.\n");
    }
    text.push_str(match (can_run, has_queue) {
        (true, true) => "Holders of a token with the role `run` can start and change runs.\n",
        (true, false) => "Nobody can start or change runs: workers need a database.\n",
        (false, _) => "Nobody can start or change runs: no token has the role `run`.\n",
    });
    if !args.listen.ip().is_loopback() {
        text.push_str("Connections are not encrypted; let a proxy with TLS forward them.\n");
    }
    text
}

/// Answers requests until the future is dropped.
async fn listen(server: HttpServer, service: Service) {
    let router = router::router(&Arc::new(service));
    let answer = move |request: Request<Incoming>| {
        let mut router = router.clone();
        async move {
            let answered: Result<Answer, std::convert::Infallible> = router.call(request).await;
            answered.unwrap_or_else(|never| match never {})
        }
    };
    server.listen(answer).await;
}
