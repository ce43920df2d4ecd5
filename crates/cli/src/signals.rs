//! Signals. The first Ctrl-C asks agents to stop, the second kills them, the third ends the program immediately.
//! SIGTERM and SIGHUP work the same way. Signals that were ignored when the program was started, as by `nohup`, stay
//! ignored.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use runner::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

/// Number of signals received, of any kind.
static RECEIVED: AtomicU32 = AtomicU32::new(0);

/// Number of the last signal.
static LAST_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The runs to which signals are sent.
static RUNS: Mutex<Vec<UnboundedSender<Control>>> = Mutex::new(Vec::new());

/// `true` if the signal thread has been started.
static LISTENING: Mutex<bool> = Mutex::new(false);

/// Number of signals after which the program ends immediately: the user does not want to wait for anything, not even
/// for a hanging disk.
const AT_ONCE: u32 = 3;

/// Sends signals to this run as controls, in addition to other runs in progress.
///
/// # Errors
/// Returns an error if signal handlers cannot be installed.
pub fn forward(controls: &UnboundedSender<Control>) -> io::Result<()> {
    let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    runs.retain(|run| !run.is_closed());
    runs.push(controls.clone());
    drop(runs);
    begin()
}

/// Starts handling signals. A thread does this until the program ends, so that the third signal works even if
/// everything else is blocked.
///
/// # Errors
/// Returns an error if signal handlers cannot be installed.
pub fn begin() -> io::Result<()> {
    let mut listens = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
    if *listens {
        return Ok(());
    }
    let (ready, listening) = channel();
    std::thread::Builder::new().name("signals".into()).spawn(
        move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(listen(&ready)),
            Err(error) => drop(ready.send(Err(error))),
        },
    )?;
    listening.recv().unwrap_or_else(|_| Err(io::Error::other("the thread for signals ended")))?;
    *listens = true;
    Ok(())
}

async fn listen(ready: &Sender<io::Result<()>>) {
    let kinds =
        [(SignalKind::interrupt(), "SIGINT"), (SignalKind::terminate(), "SIGTERM"), (SignalKind::hangup(), "SIGHUP")];
    let ignored = ignored();
    let handled = kinds.into_iter().filter(|(kind, _)| ignored >> (kind.as_raw_value() - 1) & 1 == 0);
    let arrivals: io::Result<Vec<_>> = handled.map(|(kind, name)| Ok((signal(kind)?, kind, name))).collect();
    let mut waiting = JoinSet::new();
    let signal_of = arrivals.map(|arrivals| {
        for (arrivals, kind, name) in arrivals {
            waiting.spawn(pass_on(arrivals, kind, name));
        }
    });
    let _ = ready.send(signal_of);
    while waiting.join_next().await.is_some() {}
}

async fn pass_on(mut arrivals: Signal, kind: SignalKind, name: &str) {
    while arrivals.recv().await.is_some() {
        LAST_SIGNAL.store(kind.as_raw_value(), Ordering::Relaxed);
        if RECEIVED.fetch_add(1, Ordering::Relaxed) + 1 >= AT_ONCE {
            // Processes end together with this one; directories are left to `prune`.
            std::process::exit(128 + kind.as_raw_value());
        }
        for run in &*RUNS.lock().unwrap_or_else(PoisonError::into_inner) {
            // Fails if the run is over, which is not an error.
            let _ = run.send(Control::Stop(name.to_owned()));
        }
    }
}

/// Returns the exit code for the signals received; `None` if there were none.
pub fn exit_code() -> Option<u8> {
    was_received().then(|| u8::try_from(128 + LAST_SIGNAL.load(Ordering::Relaxed)).unwrap_or(u8::MAX))
}

/// Returns `true` if a signal was received.
pub fn was_received() -> bool {
    RECEIVED.load(Ordering::Relaxed) > 0
}

/// Returns the signals that this process ignores, as a bit mask starting with signal 1. Zero if the system does not
/// report them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
