//! Ctrl-C once asks politely, twice kills. The same for SIGTERM and SIGHUP.

use runner::Control;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::mpsc;

/// Passes signals on as controls until the receiver is gone.
///
/// # Errors
/// When the system refuses to hand signals over.
pub fn forward(controls: &mpsc::UnboundedSender<Control>) -> std::io::Result<()> {
    let kinds = [
        (SignalKind::interrupt(), "SIGINT"),
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::hangup(), "SIGHUP"),
    ];
    for (kind, name) in kinds {
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
