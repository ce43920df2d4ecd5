//! Ctrl-C once asks politely, twice kills. The same for SIGTERM and SIGHUP. What was ignored when the program was
//! started, as `nohup` has it, stays ignored.

use runner::Control;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Passes signals on as controls until the receiver is gone.
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
                if controls.send(Control::Stop(name.to_owned())).is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

/// The signals that this process ignores, a bit each, from signal 1. None where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
