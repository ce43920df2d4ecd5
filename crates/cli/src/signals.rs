//! Ctrl-C once asks politely, twice kills, three times ends the program on the spot. The same for SIGTERM and SIGHUP.
//! What was ignored when the program was started, as `nohup` has it, stays ignored.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use runner::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

/// How many came, of whatever kind.
static HEARD: AtomicU32 = AtomicU32::new(0);

/// The number of the last one.
static LAST: AtomicI32 = AtomicI32::new(0);

/// The run that is told.
static RUN: Mutex<Option<UnboundedSender<Control>>> = Mutex::new(None);

/// Whether somebody listens already.
static LISTENING: Mutex<bool> = Mutex::new(false);

/// Whoever says it so often does not want to wait for anything, be it a disk that hangs.
const AT_ONCE: u32 = 3;

/// Passes signals on to a run as controls, and no longer to the one before.
///
/// # Errors
/// When the system refuses to hand signals over.
pub fn forward(controls: &UnboundedSender<Control>) -> io::Result<()> {
    *RUN.lock().unwrap_or_else(PoisonError::into_inner) = Some(controls.clone());
    begin()
}

/// Begins to listen. A thread of its own does so until the program ends: the third signal is heard also when everything
/// else stands still.
///
/// # Errors
/// When the system refuses to hand signals over.
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
    let heard = kinds.into_iter().filter(|(kind, _)| ignored >> (kind.as_raw_value() - 1) & 1 == 0);
    let arrivals: io::Result<Vec<_>> = heard.map(|(kind, name)| Ok((signal(kind)?, kind, name))).collect();
    let mut waiting = JoinSet::new();
    let told = arrivals.map(|arrivals| {
        for (arrivals, kind, name) in arrivals {
            waiting.spawn(pass_on(arrivals, kind, name));
        }
    });
    let _ = ready.send(told);
    while waiting.join_next().await.is_some() {}
}

async fn pass_on(mut arrivals: Signal, kind: SignalKind, name: &str) {
    while arrivals.recv().await.is_some() {
        LAST.store(kind.as_raw_value(), Ordering::Relaxed);
        if HEARD.fetch_add(1, Ordering::Relaxed) + 1 >= AT_ONCE {
            // Processes end with this one; directories are left to `prune`.
            std::process::exit(128 + kind.as_raw_value());
        }
        if let Some(run) = &*RUN.lock().unwrap_or_else(PoisonError::into_inner) {
            // When the run is over there is nobody to stop.
            let _ = run.send(Control::Stop(name.to_owned()));
        }
    }
}

/// What the program exits with after the signals that came; `None` if none did.
pub fn exit_code() -> Option<u8> {
    heard().then(|| u8::try_from(128 + LAST.load(Ordering::Relaxed)).unwrap_or(u8::MAX))
}

/// Whether a signal came since somebody listens.
pub fn heard() -> bool {
    HEARD.load(Ordering::Relaxed) > 0
}

/// The signals that this process ignores, a bit each, from signal 1. None where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
