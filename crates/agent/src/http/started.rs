//! The programs that a run has started to serve its bots.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mask::{Mask, Secrets};
use reqwest::{Client, Url};
use sandbox::{Breakage, Host};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::settings::Settings;
use super::start::{Ready, Start};
use crate::Configured;
use crate::http_client::HttpClients;
use crate::process::{Output, Process};

/// Time between two looks at whether a program is ready.
const INTERVAL: Duration = Duration::from_millis(50);
/// Timeout for one look.
const ONE_LOOK: Duration = Duration::from_secs(2);
/// Time in which a program that has closed a connection without an answer is seen to end.
const TO_END: Duration = Duration::from_secs(1);
/// Number of times that a program is started in a run. It is started again if it has ended.
const MAX_STARTS: u64 = 4;

/// The programs of a run, by the name of their agent. Dropping it stops them; [`stop`](Self::stop) also waits for their
/// end.
#[derive(Default)]
pub(crate) struct StartedPrograms {
    programs: Mutex<HashMap<String, Program>>,
}

/// A program that was started.
enum Program {
    Running(Running),
    /// It cannot be started.
    Failed(Breakage),
}

/// A program in a task of its own, which reads what it prints.
struct Running {
    task: JoinHandle<()>,
    /// Stops the program when it is dropped.
    stop: watch::Sender<()>,
    state: watch::Receiver<State>,
    /// Number of times that it was started.
    starts: u64,
    /// Number of conversations for which it was made ready since it was started.
    users: u64,
}

/// State of a program, as its task last saw it.
#[derive(Debug, Clone, Default)]
struct State {
    /// True once it has printed the line that it was waited for.
    has_line: bool,
    /// How it ended.
    end: Option<String>,
}

/// Inputs for starting a program.
pub(super) struct Launch<'a> {
    pub(super) config: &'a Configured,
    pub(super) settings: &'a Settings,
    pub(super) start: &'a Start,
    /// Variables in addition to those of this process and those that are configured.
    pub(super) variables: Vec<(String, String)>,
    pub(super) host: &'a Host,
    pub(super) clients: &'a HttpClients,
    pub(super) secrets: &'a Secrets,
    /// Folder for what programs print, if it is kept.
    pub(super) logs: Option<&'a Path>,
}

impl StartedPrograms {
    /// Waits until the program runs and is ready, after starting it if it does not run.
    ///
    /// # Errors
    /// Returns the reason why it does not run. It is the same for all trials.
    pub(super) async fn ready(&self, launch: &Launch<'_>) -> Result<(), Breakage> {
        let mut programs = self.programs.lock().await;
        let starts = match programs.get_mut(&launch.config.name) {
            Some(Program::Failed(breakage)) => return Err(breakage.clone()),
            Some(Program::Running(running)) => match running.end() {
                None => {
                    running.users += 1;
                    return Ok(());
                }
                Some(end) if running.starts >= MAX_STARTS => {
                    let command = launch.start.shown();
                    let reason = format!("`{command}` was started {MAX_STARTS} times and has ended again: {end}");
                    return Err(Breakage::environment(reason).for_good());
                }
                Some(_) => running.starts,
            },
            None => 0,
        };
        let (program, result) = match launch.run(starts + 1).await {
            Ok(running) => (Program::Running(running), Ok(())),
            Err(reason) => {
                let breakage = Breakage::environment(reason).for_good();
                (Program::Failed(breakage.clone()), Err(breakage))
            }
        };
        programs.insert(launch.config.name.clone(), program);
        result
    }

    /// Returns how the program of the agent `name` ended, if it has ended and served other conversations too. Then it is not
    /// known which of them it did not survive. Waits for a moment, because a program that closes its connections may be
    /// about to end, and must not be taken for one that runs by the next conversation.
    pub(super) async fn shared_end(&self, name: &str) -> Option<String> {
        let (mut state, users) = match self.programs.lock().await.get(name)? {
            Program::Running(running) => (running.state.clone(), running.users),
            Program::Failed(_) => return None,
        };
        let ended = tokio::time::timeout(TO_END, state.wait_for(|state| state.end.is_some())).await;
        let end = ended.ok()?.ok()?.end.clone();
        end.filter(|_| users > 1)
    }

    /// Stops all programs with everything they started, and waits for their end.
    pub(crate) async fn stop(&self) {
        let programs = std::mem::take(&mut *self.programs.lock().await);
        for program in programs.into_values() {
            if let Program::Running(Running { task, stop, .. }) = program {
                drop(stop);
                // It fails only if the task panicked, and then the program was killed.
                let _ = task.await;
            }
        }
    }
}

impl Running {
    /// Returns how the program ended, if it has.
    fn end(&self) -> Option<String> {
        let end = self.state.borrow().end.clone();
        end.or_else(|| self.task.is_finished().then(|| "it was killed".to_owned()))
    }
}

impl Launch<'_> {
    /// Starts the program and waits until it is ready.
    async fn run(&self, starts: u64) -> Result<Running, String> {
        let command = self.start.shown();
        let Some((program, arguments)) = self.start.words.split_first() else { return Err("no command".to_owned()) };
        if listens(&self.settings.url).await {
            let place = self.settings.shown_url();
            return Err(format!(
                "something already listens at {place}, so `{command}` was not started; stop it, or remove `start`"
            ));
        }
        let cwd = self.config.directory.join(self.start.cwd.as_deref().unwrap_or_default());
        if !cwd.is_dir() {
            return Err(format!("`{command}` cannot start: there is no folder {}", cwd.display()));
        }
        let mut process = self.host.supervisor.command(program, arguments);
        let env = self.start.env.iter().map(|(name, value)| (name, value));
        let own = self.variables.iter().map(|(name, value)| (name, value));
        process.envs(&self.host.env).envs(own).envs(env).current_dir(&cwd);
        let mut process = Process::start(process).map_err(|error| format!("cannot start `{command}`: {error}"))?;
        process.close_stdin();
        let log = self.log(starts)?;
        let (stop, stopping) = watch::channel(());
        let (sender, state) = watch::channel(State::default());
        let line = match &self.start.ready {
            Some(Ready::Line(pattern)) => Some(pattern.clone()),
            _ => None,
        };
        let kept_in = log.as_ref().map(|log| format!("; its output is in {}", log.path.display())).unwrap_or_default();
        let task = tokio::spawn(serve(process.without_waiting(), line, log, sender, stopping));
        let mut running = Running { task, stop, state, starts, users: 1 };
        match self.wait(&mut running).await {
            Ok(()) => Ok(running),
            Err(reason) => {
                drop(running.stop);
                let _ = running.task.await;
                Err(format!("`{command}` {reason}{kept_in}"))
            }
        }
    }

    /// Waits until the program is ready.
    async fn wait(&self, running: &mut Running) -> Result<(), String> {
        let deadline = Instant::now() + self.start.timeout;
        let secure = matches!(&self.start.ready, Some(Ready::Address(url)) if url.scheme() == "https");
        let client = self.clients.client(secure, self.host)?;
        loop {
            if let Some(end) = running.end() {
                return Err(format!("ended before it was ready: {end}"));
            }
            let is_ready = match &self.start.ready {
                None => listens(&self.settings.url).await,
                Some(Ready::Port(port)) => listens_on("localhost", *port).await,
                Some(Ready::Address(url)) => answers(&client, url).await,
                Some(Ready::Line(_)) => running.state.borrow().has_line,
            };
            if is_ready {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let what = match &self.start.ready {
                    None => format!("nothing listens at {}", self.settings.shown_url()),
                    Some(Ready::Port(port)) => format!("nothing listens on port {port}"),
                    Some(Ready::Address(url)) => format!("{url} does not answer with a success"),
                    Some(Ready::Line(pattern)) => format!("no line matches /{pattern}/"),
                };
                return Err(format!("was not ready within {} s: {what}", self.start.timeout.as_secs_f64()));
            }
            // Woken early if it ends or prints the line.
            let _ = tokio::time::timeout(INTERVAL, running.state.changed()).await;
        }
    }

    /// Opens the file for what the program prints.
    fn log(&self, starts: u64) -> Result<Option<Log>, String> {
        let Some(folder) = self.logs else { return Ok(None) };
        let safe = |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' };
        let name: String = self.config.name.chars().map(safe).collect();
        let path = folder.join(format!("{name}.log"));
        let opened = std::fs::create_dir_all(folder).and_then(|()| match starts {
            1 => File::create(&path),
            _ => File::options().append(true).open(&path),
        });
        let file = opened.map_err(|error| format!("its output cannot be kept in {}: {error}", path.display()))?;
        let mask = Mask::of(self.start.env.iter().map(|(name, value)| (name, value)).chain(&self.host.env));
        Ok(Some(Log { file, path, mask: mask.with_secrets(self.secrets).remembering() }))
    }
}

/// File for what a program prints.
struct Log {
    file: File,
    path: PathBuf,
    mask: Mask,
}

impl Log {
    fn line(&mut self, line: &str) {
        // The output is kept for the user only, so a full disk does not matter to the run.
        let _ = writeln!(self.file, "{}", self.mask.text(line));
    }
}

/// Reads what the program prints, until it ends or is stopped.
async fn serve(
    mut process: Process,
    line: Option<regex::Regex>,
    mut log: Option<Log>,
    state: watch::Sender<State>,
    mut stopping: watch::Receiver<()>,
) {
    let read = async {
        while let Output::Stdout(printed) | Output::Stderr(printed) = process.next_output().await {
            if let Some(log) = &mut log {
                log.line(&printed.text);
            }
            if line.as_ref().is_some_and(|line| line.is_match(&printed.text)) {
                state.send_modify(|state| state.has_line = true);
            }
        }
        process.own_end().await
    };
    // The sender is dropped to stop the program.
    let end = tokio::select! {
        end = read => Some(end),
        _ = stopping.changed() => None,
    };
    let end = match end {
        Some(end) => end,
        None => {
            let _ = process.stop().await;
            "it was stopped".to_owned()
        }
    };
    state.send_modify(|state| state.end = Some(end));
}

/// Returns `true` if something listens at the address.
async fn listens(url: &Url) -> bool {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => listens_on(host.trim_matches(['[', ']']), port).await,
        _ => false,
    }
}

async fn listens_on(host: &str, port: u16) -> bool {
    matches!(tokio::time::timeout(ONE_LOOK, TcpStream::connect((host, port))).await, Ok(Ok(_)))
}

/// Returns `true` if a request to the address is answered as by a server that works.
async fn answers(client: &Client, url: &Url) -> bool {
    let response = client.get(url.clone()).timeout(ONE_LOOK).send().await;
    response.is_ok_and(|response| {
        let status = response.status();
        status.is_success() || status.is_redirection() || [401, 403].contains(&status.as_u16())
    })
}
