//! Ctrl-C once asks politely, twice kills, three times ends the program on the spot. The same for SIGTERM and SIGHUP.
//! What was ignored when the program was started, as `nohup` has it, stays ignored.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};

use runner::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

/// How many came, of whatever kind.
static HEARD: AtomicU32 = AtomicU32::new(0);

/// Whoever says it so often does not want to wait for anything, be it a disk that hangs.
const AT_ONCE: u32 = 3;

/// Passes signals on as controls. A thread of its own does so until the program ends: the third is heard also when
/// everything else stands still.
///
/// # Errors
/// When the system refuses to hand signals over.
pub fn forward(controls: &UnboundedSender<Control>) -> io::Result<()> {
    let controls = controls.clone();
    let (ready, listening) = channel();
    std::thread::Builder::new().name("signals".into()).spawn(
        move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(listen(&controls, &ready)),
            Err(error) => drop(ready.send(Err(error))),
        },
    )?;
    listening.recv().unwrap_or_else(|_| Err(io::Error::other("the thread for signals ended")))
}

async fn listen(controls: &UnboundedSender<Control>, ready: &Sender<io::Result<()>>) {
    let kinds =
        [(SignalKind::interrupt(), "SIGINT"), (SignalKind::terminate(), "SIGTERM"), (SignalKind::hangup(), "SIGHUP")];
    let ignored = ignored();
    let heard = kinds.into_iter().filter(|(kind, _)| ignored >> (kind.as_raw_value() - 1) & 1 == 0);
    let arrivals: io::Result<Vec<_>> = heard.map(|(kind, name)| Ok((signal(kind)?, kind, name))).collect();
    let mut waiting = JoinSet::new();
    let told = arrivals.map(|arrivals| {
        for (arrivals, kind, name) in arrivals {
            waiting.spawn(pass_on(arrivals, kind, name, controls.clone()));
        }
    });
    let _ = ready.send(told);
    while waiting.join_next().await.is_some() {}
}

async fn pass_on(mut arrivals: Signal, kind: SignalKind, name: &str, controls: UnboundedSender<Control>) {
    while arrivals.recv().await.is_some() {
        if HEARD.fetch_add(1, Ordering::Relaxed) + 1 >= AT_ONCE {
            // Processes end with this one; directories are left to `prune`.
            std::process::exit(128 + kind.as_raw_value());
        }
        // When the run is over there is nobody to stop.
        let _ = controls.send(Control::Stop(name.to_owned()));
    }
}

/// Whether a signal came since [`forward`] was called.
pub fn heard() -> bool {
    HEARD.load(Ordering::Relaxed) > 0
}

/// The signals that this process ignores, a bit each, from signal 1. None where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
