//! Signals as a shell in the foreground has them, whoever started the tests.

use std::fs;
use std::sync::Once;

use tokio::signal::unix::{SignalKind, signal};

static ONCE: Once = Once::new();

/// Sees to it that programs start without ignored signals. A job in the background, and `nohup`, ignore some, and what is
/// started inherits that; what is *caught* becomes the default for whoever is started. What the tests themselves ignored
/// they now catch, and do nothing: for them nothing changes.
pub(crate) fn heed_signals() {
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        // What tokio catches it catches until the process ends.
        runtime.block_on(async {
            for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
                if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
                    drop(signal(kind).expect("a signal that may be caught"));
                }
            }
        });
    });
}
