//! Ctrl-C once asks politely, twice kills, three times ends the program on the spot. The same for SIGTERM and SIGHUP.
//! What was ignored when the program was started, as `nohup` has it, stays ignored.

use std::sync::atomic::{AtomicU32, Ordering};

use runner::Control;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// How many came, of whatever kind.
static HEARD: AtomicU32 = AtomicU32::new(0);

/// Whoever says it so often does not want to wait for anything, be it a disk that hangs.
const AT_ONCE: u32 = 3;

/// Passes signals on as controls, and counts them also when nobody takes controls any more.
///
/// # Errors
/// When the system refuses to hand signals over.
pub fn forward(controls: &mpsc::UnboundedSender<Control>) -> std::io::Result<()> {
    let kinds =
        [(SignalKind::interrupt(), "SIGINT"), (SignalKind::terminate(), "SIGTERM"), (SignalKind::hangup(), "SIGHUP")];
    let ignored = ignored();
    for (kind, name) in kinds {
        if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
            continue;
        }
        let mut arrivals = signal(kind)?;
        let controls = controls.clone();
        tokio::spawn(async move {
            while arrivals.recv().await.is_some() {
                if HEARD.fetch_add(1, Ordering::Relaxed) + 1 >= AT_ONCE {
                    // Processes end with this one; directories are left to `prune`.
                    std::process::exit(128 + kind.as_raw_value());
                }
                let _ = controls.send(Control::Stop(name.to_owned()));
            }
        });
    }
    Ok(())
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
