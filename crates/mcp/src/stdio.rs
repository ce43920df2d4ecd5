//! A server whose messages are lines on its standard streams.

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::received::{QUEUED, Received};

/// Maximum length of a line in bytes. Longer lines are not messages.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Maximum number of characters that are kept of output that is not a message.
const MAX_NOISE: usize = 2000;

/// Streams of a program. The program is not ended when they are dropped, but its stdin is closed.
pub struct Stdio {
    outgoing: Option<mpsc::UnboundedSender<String>>,
    pub(crate) incoming: mpsc::Receiver<Received>,
    _tasks: JoinSet<()>,
}

impl Stdio {
    /// Uses the streams of a program. Must be called within a tokio runtime.
    pub fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
    ) -> Self {
        let (outgoing, lines) = mpsc::unbounded_channel();
        let (sender, incoming) = mpsc::channel(QUEUED);
        let mut tasks = JoinSet::new();
        tasks.spawn(write(stdin, lines));
        tasks.spawn(read(stdout, sender));
        Self { outgoing: Some(outgoing), incoming, _tasks: tasks }
    }

    /// Sends a line. A program that has ended does not read it, and does not answer.
    pub(crate) fn send(&self, line: &str) {
        if let Some(outgoing) = &self.outgoing {
            let _ = outgoing.send(format!("{line}\n"));
        }
    }

    /// Closes the program's stdin after everything is written.
    pub(crate) fn close(&mut self) {
        self.outgoing = None;
    }
}

async fn write(mut stdin: impl AsyncWrite + Unpin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            break;
        }
    }
}

async fn read(stdout: impl AsyncRead + Unpin, sender: mpsc::Sender<Received>) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    loop {
        let mut line = Vec::new();
        let Some(is_whole) = next_line(&mut reader, &mut line).await else { break };
        let text = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
        if text.trim().is_empty() {
            continue;
        }
        let received = match is_whole {
            true => Received::read(text, None),
            false => Received::Noise(text),
        };
        let received = match received {
            Received::Noise(text) => Received::Noise(model::text::shortened(&text, MAX_NOISE)),
            other => other,
        };
        if sender.send(received).await.is_err() {
            return;
        }
    }
    let _ = sender.send(Received::Ended).await;
}

/// Reads the next line. Returns `false` if it was too long and was cut, and `None` at the end.
async fn next_line(reader: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> Option<bool> {
    let mut dropped = 0;
    loop {
        let bytes = reader.fill_buf().await.ok()?;
        if bytes.is_empty() {
            return (!line.is_empty()).then_some(dropped == 0);
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        let kept = part.len().min(MAX_LINE_BYTES - line.len());
        line.extend_from_slice(&part[..kept]);
        dropped += part.len() - kept;
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Some(dropped == 0);
        }
    }
}
