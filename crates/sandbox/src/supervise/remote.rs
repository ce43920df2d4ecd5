//! Runs programs on other machines, through a service.
//!
//! A local process represents the remote program: it forwards input, output and signals, and exits with the program's
//! exit code. The service has no input stream, so input is uploaded in numbered files, which a shell loop on the remote
//! machine writes into the program's stdin in that order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::text::shell_quoted;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::arguments::Arguments;
use crate::service::{Access, Service, ServiceError};

/// Variable that holds the description of the program, including the key of the service.
pub(super) const VARIABLE: &str = "TRIALRUN_REMOTE_PROCESS";

/// Role that represents a remote program.
pub(super) const RUN: &str = "__supervise-remote";

/// Role that ends the remote program after its local process was killed.
pub(super) const END: &str = "__supervise-remote-end";

/// Time limit for a request about the program.
const ASKING: Duration = Duration::from_secs(30);

/// Time without answers after which the program is given up.
const SILENCE: Duration = Duration::from_secs(60);

/// Shortest and longest pause between two polls.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Maximum number of bytes from each stream in one answer.
const PIECE: u64 = 512 * 1024;

/// Maximum size of a file of input, in bytes.
const MAX_INPUT: usize = 1 << 20;

/// Number of reads from stdin that wait to be uploaded.
const WAITING_INPUT: usize = 16;

/// Maximum size of the files outside the sandbox that the program needs, in bytes.
const MAX_SHOWN: u64 = 256 << 20;

/// A program on another machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RemoteProcess {
    pub(crate) access: Access,
    /// Address of the sandbox for commands and files.
    pub(crate) toolbox: String,
    /// Name of the process, which is unique in the sandbox.
    pub(crate) name: String,
    /// Its environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Files and folders of this machine that it needs, at the same paths.
    pub(crate) shown: Vec<PathBuf>,
}

/// Runs the remote program that the environment describes, until it ends.
pub(super) fn run(arguments: &Arguments) -> Result<u8, String> {
    let process = described()?;
    let here = std::env::current_dir().map_err(|error| format!("the working directory is gone: {error}"))?;
    let words: Vec<String> = arguments.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let shown = archive(&process.shown)?;
    let failed = |error: ServiceError| format!("the remote sandbox cannot run the program: {error}");
    block_on(async {
        let service = Service::of_runtime(process.access.clone())?;
        let remote = Remote { service, process: &process };
        remote.start(&here, &words, shown.as_deref()).await?;
        let code = remote.follow(Input::of_stdin()).await?;
        remote.clean_up().await;
        Ok(code)
    })?
    .map_err(failed)
}

/// Ends the remote program whose local process was killed.
pub(super) fn end(_: &Arguments) -> Result<u8, String> {
    let process = described()?;
    let done = block_on(async {
        let service = Service::of_runtime(process.access.clone())?;
        let remote = Remote { service, process: &process };
        remote.signal("KILL").await?;
        remote.clean_up().await;
        Ok(())
    })?;
    done.map(|()| 0).map_err(|error: ServiceError| format!("the remote program cannot be ended: {error}"))
}

fn described() -> Result<RemoteProcess, String> {
    let text = std::env::var(VARIABLE).map_err(|_| "no description of the program".to_owned())?;
    // The text contains a key, so the error must not quote it.
    serde_json::from_str(&text).map_err(|_| "cannot parse the description of the program".to_owned())
}

fn block_on<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| format!("cannot wait for the service: {error}"))?.block_on(work))
}

/// Returns an archive of files and folders with their absolute paths, or `None` if there are none.
fn archive(paths: &[PathBuf]) -> Result<Option<Vec<u8>>, String> {
    let paths: Vec<&Path> = paths.iter().filter_map(|path| path.strip_prefix("/").ok()).collect();
    if paths.is_empty() {
        return Ok(None);
    }
    let failed = |error: std::io::Error| format!("cannot pack the files that the program needs: {error}");
    let mut tar = Command::new("tar");
    tar.args(["-cf", "-", "-C", "/", "--"]).args(paths).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = tar.spawn().map_err(failed)?;
    let mut packed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_SHOWN + 1).read_to_end(&mut packed).map_err(failed)?;
    }
    if packed.len() as u64 > MAX_SHOWN {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("the files that the program needs are larger than {} MiB", MAX_SHOWN >> 20));
    }
    match child.wait().map_err(failed)?.success() {
        true => Ok(Some(packed)),
        false => Err("`tar` cannot pack the files that the program needs".to_owned()),
    }
}

/// Returns `true` if a shell can set a variable with this name.
fn is_variable(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// Input for the program: what this process reads on stdin.
struct Input {
    /// Reads from stdin. Closed at the end of the input.
    reads: mpsc::Receiver<Vec<u8>>,
    /// Bytes that were read and not uploaded.
    pending: Vec<u8>,
    /// Number of uploaded files.
    uploaded: usize,
    /// True if there is no more input.
    has_ended: bool,
}

impl Input {
    /// Starts to read stdin on a thread, which ends with this process.
    fn of_stdin() -> Self {
        let (sender, reads) = mpsc::channel(WAITING_INPUT);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            loop {
                match std::io::stdin().read(&mut buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(count @ 1..) if sender.blocking_send(buffer[..count].to_vec()).is_ok() => {}
                    // Errors end the input, as the end of stdin does.
                    _ => return,
                }
            }
        });
        Self { reads, pending: Vec::new(), uploaded: 0, has_ended: false }
    }

    /// Waits for more input, or for its end.
    async fn read(&mut self) {
        match self.reads.recv().await {
            Some(read) => self.pending.extend(read),
            None => self.has_ended = true,
        }
    }

    /// Takes what was read since the last upload, without waiting.
    fn take_ready(&mut self) {
        while self.pending.len() < MAX_INPUT && !self.has_ended {
            match self.reads.try_recv() {
                Ok(read) => self.pending.extend(read),
                Err(mpsc::error::TryRecvError::Empty) => return,
                Err(mpsc::error::TryRecvError::Disconnected) => self.has_ended = true,
            }
        }
    }
}

struct Remote<'a> {
    service: Service,
    process: &'a RemoteProcess,
}

/// What the program did since the last poll.
struct News {
    code: Option<u8>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Remote<'_> {
    /// Returns the path of one of the process's files in the remote sandbox.
    fn file(&self, ending: &str) -> String {
        format!("/tmp/.{}{ending}", self.process.name)
    }

    async fn start(&self, here: &Path, words: &[String], shown: Option<&[u8]>) -> Result<(), ServiceError> {
        let RemoteProcess { toolbox, name, .. } = self.process;
        let service = &self.service;
        if let Some(shown) = shown {
            service.upload(toolbox, &self.file(".tar"), shown).await?;
        }
        let script = self.script(here, words, shown.is_some());
        service.upload(toolbox, &self.file(".sh"), script.as_bytes()).await?;
        service.start(toolbox, name, &format!("sh {}", self.file(".sh"))).await
    }

    /// Returns the script that runs the program. It deletes itself first, because it contains the environment.
    fn script(&self, here: &Path, words: &[String], has_shown: bool) -> String {
        let (folder, tar) = (self.file(""), self.file(".tar"));
        let mut script = format!("rm -f \"$0\"\nmkdir -m 700 {folder}\n: > {folder}/out\n: > {folder}/err\n");
        if has_shown {
            let _ = writeln!(script, "tar -xf {tar} -C / 2>> {folder}/err || {{ echo 126 > {folder}/code; exit; }}");
        }
        let _ = writeln!(
            script,
            "echo 0 > {folder}/given\n\
             mkfifo {folder}/in 2>> {folder}/err || {{ echo 126 > {folder}/code; exit; }}\n\
             (n=0; while read given end < {folder}/given; [ $given -gt $n ] || [ ! \"$end\" ]; do \
             if [ $given -gt $n ]; then cat {folder}.$n.in; rm {folder}.$n.in; n=$((n + 1)); else \
             sleep 0.05 2> /dev/null || sleep 1; fi; done) > {folder}/in &\n\
             input=$!"
        );
        let _ = writeln!(script, "(cd {} || exit 126", shell_quoted(&here.to_string_lossy()));
        for (name, value) in self.process.env.iter().filter(|(name, _)| is_variable(name)) {
            let _ = writeln!(script, "export {name}={}", shell_quoted(value));
        }
        let words: Vec<String> = words.iter().map(|word| shell_quoted(word)).collect();
        let _ = write!(
            script,
            "export {}\nexec {}\n) < {folder}/in > {folder}/out 2>> {folder}/err\n\
             code=$?\nkill $input 2> /dev/null\n{}\n\
             echo $code > {folder}/new; mv {folder}/new {folder}/code\n",
            self.mark(),
            words.join(" "),
            self.killing("KILL"),
        );
        script
    }

    /// Returns the variable that all processes of the program inherit. The final dot prevents matches with longer
    /// names.
    fn mark(&self) -> String {
        format!("TRIALRUN_PROCESS={}.", self.process.name)
    }

    /// Returns a script that sends a signal to all processes of the program. It sends `KILL` repeatedly, because a
    /// process may just have started another one.
    fn killing(&self, signal: &str) -> String {
        let rounds = if signal == "KILL" { "1 2 3 4 5 6 7 8 9" } else { "1" };
        format!(
            "for round in {rounds}; do found=; \
             for e in $(grep -lsF {} /proc/[0-9]*/environ 2> /dev/null); do \
             p=${{e#/proc/}}; kill -{signal} ${{p%/environ}} 2> /dev/null && found=1; done; \
             [ \"$found\" ] || break; done",
            self.mark()
        )
    }

    async fn signal(&self, signal: &str) -> Result<(), ServiceError> {
        self.service.execute(&self.process.toolbox, &self.killing(signal), ASKING).await.map(drop)
    }

    /// Forwards input and output of the program until it ends, and returns its exit code.
    async fn follow(&self, mut input: Input) -> Result<u8, ServiceError> {
        let failed = |error: std::io::Error| ServiceError::Refused(format!("cannot wait for signals: {error}"));
        let mut asked_to_end = signal(SignalKind::terminate()).map_err(failed)?;
        let (mut out, mut err, mut must_ask) = (0_u64, 0_u64, false);
        let (mut pause, mut last) = (PAUSES.0, Instant::now());
        loop {
            input.take_ready();
            match self.exchange(&mut input, out, err).await {
                Ok(news) => {
                    last = Instant::now();
                    let is_quiet = news.stdout.is_empty() && news.stderr.is_empty();
                    (out, err) = (out + news.stdout.len() as u64, err + news.stderr.len() as u64);
                    // If the reader has gone, the program must still go on.
                    let _ = std::io::stdout().write_all(&news.stdout).and_then(|()| std::io::stdout().flush());
                    let _ = std::io::stderr().write_all(&news.stderr);
                    match news.code {
                        Some(code) if is_quiet => return Ok(code),
                        _ if is_quiet => pause = (pause * 2).min(PAUSES.1),
                        _ => pause = PAUSES.0,
                    }
                    if !is_quiet {
                        continue;
                    }
                }
                Err(error) if error.is_final() || last.elapsed() > SILENCE => return Err(error),
                Err(_) => pause = PAUSES.1,
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = input.read(), if !input.has_ended => pause = PAUSES.0,
                Some(()) = asked_to_end.recv() => must_ask = true,
            }
            if must_ask {
                must_ask = self.signal("TERM").await.is_err();
                pause = PAUSES.0;
            }
        }
    }

    /// Passes on the pending input, and polls what the program did after the first `out` bytes of stdout and the first
    /// `err` bytes of stderr.
    async fn exchange(&self, input: &mut Input, out: u64, err: u64) -> Result<News, ServiceError> {
        let folder = self.file("");
        if !input.pending.is_empty() {
            let file = self.file(&format!(".{}.in", input.uploaded));
            self.service.upload(&self.process.toolbox, &file, &input.pending).await?;
            input.pending.clear();
            input.uploaded += 1;
        }
        let (given, end) = (input.uploaded, if input.has_ended { " end" } else { "" });
        // The exit code is read before the streams, so that once it exists, they contain all output.
        let script = format!(
            "echo {given}{end} 2> /dev/null > {folder}/giving && mv {folder}/giving {folder}/given\n\
             code=$(cat {folder}/code 2> /dev/null); echo \"code:$code\"\n\
             part() {{ tail -c +$1 {folder}/$2 2> /dev/null | head -c {PIECE} | base64 | tr -d '\\n'; echo; }}\n\
             part {} out; part {} err",
            out + 1,
            err + 1
        );
        let answer = self.service.execute(&self.process.toolbox, &script, ASKING).await?;
        let mut lines = answer.result.lines();
        let code = lines.next().and_then(|line| line.strip_prefix("code:"));
        let strange = || ServiceError::Unclear("unexpected response while polling the remote program".to_owned());
        let code = code.ok_or_else(strange)?.trim();
        let mut part = || STANDARD.decode(lines.next().unwrap_or_default().trim()).map_err(|_| strange());
        Ok(News { code: code.parse().ok(), stdout: part()?, stderr: part()? })
    }

    /// Removes the files of the process. Errors are ignored, because the sandbox is removed later.
    async fn clean_up(&self) {
        let files = ["", ".*.in", ".sh", ".tar"].map(|ending| self.file(ending)).join(" ");
        let toolbox = &self.process.toolbox;
        let _ = self.service.execute(toolbox, &format!("rm -rf {files}"), ASKING).await;
        let _ = self.service.end(toolbox, &self.process.name).await;
    }
}
