//! Processes that the kernel ended because memory ran out.

/// File with the kernel's counters.
const COUNTERS: &str = "/proc/vmstat";

/// Returns how many processes the kernel has killed because memory ran out, since the machine started; `None` if it
/// does not count them.
pub fn kills() -> Option<u64> {
    let counters = std::fs::read_to_string(COUNTERS).ok()?;
    counters.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}
