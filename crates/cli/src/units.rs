//! Formats ages and sizes for users.

use std::time::Duration;

/// Formats an age as `45s`, `12m`, `3h12m` or `1d04h`.
pub fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (minutes, hours, days) {
        (0, ..) => format!("{seconds}s"),
        (_, 0, _) => format!("{minutes}m"),
        (_, _, 0) => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// Formats a size as `512 B`, `24.1 KB`, `3.2 MB` or `1.05 GB`.
pub fn bytes(size: u64) -> String {
    let size = size as f64;
    if size < 1024.0 {
        format!("{size} B")
    } else if size < 1024.0 * 1024.0 {
        format!("{:.1} KB", size / 1024.0)
    } else if size < 1024.0 * 1024.0 * 1024.0 {
        format!("{:.1} MB", size / 1024.0 / 1024.0)
    } else {
        format!("{:.2} GB", size / 1024.0 / 1024.0 / 1024.0)
    }
}
