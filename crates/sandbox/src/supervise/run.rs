//! Running a command to its end.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::{Captured, Contained};

/// How long output may be waited for once everything that could write it has ended.
const DREGS: Duration = Duration::from_secs(2);

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its exit code, or 128 + the signal.
    pub status: ExitStatus,
    /// What it wrote to stdout.
    pub stdout: Captured,
    /// What it wrote to stderr.
    pub stderr: Captured,
    /// Whether it was killed because its time was over.
    pub timed_out: bool,
}

/// Runs a command made by [`Supervisor::command`](super::Supervisor::command) without input until it ends or `timeout`
/// is over; either way nothing of it is left afterwards, also when the future is dropped. Of each output stream at most
/// `max_output` bytes are kept; a flood neither fills the memory nor blocks the command.
///
/// # Errors
/// When the supervisor cannot be started.
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
                // A process that could not be ended may hold on to the pipe.
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
