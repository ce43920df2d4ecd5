//! Default signal dispositions, like those of a foreground shell, however the tests were started.

use std::fs;
use std::sync::Once;

use tokio::signal::unix::{SignalKind, signal};

static ONCE: Once = Once::new();

/// Ensures that programs start without ignored signals. Background jobs and `nohup` ignore some signals, and child
/// processes inherit that; signals that are *caught* are reset to the default in child processes. Therefore the tests
/// catch the signals that they had ignored, and do nothing when one arrives.
pub(crate) fn heed_signals() {
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        // Tokio catches a signal until the process ends.
        runtime.block_on(async {
            for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
                if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
                    drop(signal(kind).expect("a signal that may be caught"));
                }
            }
        });
    });
}
