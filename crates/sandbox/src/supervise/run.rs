//! Runs a command until it ends.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::{Captured, Contained};

/// Timeout for reading the remaining output after all processes that could write it have ended.
const DREGS: Duration = Duration::from_secs(2);

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code, or 128 + the signal.
    pub status: ExitStatus,
    /// Output on stdout.
    pub stdout: Captured,
    /// Output on stderr.
    pub stderr: Captured,
    /// True if it was killed because of the timeout.
    pub timed_out: bool,
}

/// Runs a command made by [`Supervisor::command`](super::Supervisor::command) without input, until it ends or
/// `timeout` has passed. In both cases none of its processes remain, even if the future is dropped. At most
/// `max_output` bytes of each output stream are kept; more output neither fills the memory nor blocks the command.
///
/// # Errors
/// Returns an error if the supervisor cannot be started.
pub async fn run(mut command: Command, timeout: Duration, max_output: usize) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut contained = Contained::spawn(command)?;
    let mut stdout = Captured::new(max_output);
    let mut stderr = Captured::new(max_output);
    let (out, err) = (contained.take_stdout(), contained.take_stderr());
    let ended = {
        let reading = async { tokio::join!(read(out, &mut stdout), read(err, &mut stderr)) };
        let ending = async {
            match tokio::time::timeout(timeout, contained.wait()).await {
                Ok(status) => status.map(|status| (status, false)),
                Err(_) => contained.kill().await.map(|status| (status, true)),
            }
        };
        tokio::pin!(reading, ending);
        tokio::select! {
            ended = &mut ending => {
                // A process that could not be killed may keep the pipe open.
                let _ = tokio::time::timeout(DREGS, reading).await;
                ended
            }
            _ = &mut reading => ending.await,
        }
    };
    let (status, timed_out) = ended?;
    Ok(Output { status, stdout, stderr, timed_out })
}

async fn read(stream: Option<impl AsyncRead + Unpin>, into: &mut Captured) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        into.push(&buffer[..count]);
    }
}
