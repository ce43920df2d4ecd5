//! Disk space of a sandbox: how much an agent uses, and who filled a disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::statvfs::statvfs;

use super::Sandbox;

/// Free space below which a file system counts as full, in bytes: a failed write may have left a little.
const NEXT_TO_NOTHING: u64 = 16 * 1024;
/// Free space and number of files below which an agent cannot have filled the disk, because others nearly had.
const LEAST_FREE: Free = Free { bytes: 1024 * 1024, files: 100 };
/// Size that a file counts for at least, in bytes: its entry takes space, too.
const LEAST_SIZE: u64 = 4096;
/// Time between two looks at the files of an agent, and at least how many times as long as a look takes.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_RATIO: u32 = 20;
/// Precision of the times of files.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// Watches the files that an agent writes.
#[derive(Debug)]
pub struct DiskWatch {
    /// Directories that the agent may write to; the first one is its working directory.
    folders: Vec<PathBuf>,
    since: Duration,
    /// Free space before the agent acted.
    free: Option<Free>,
    limit: u64,
    filled_by_agent: AtomicBool,
    filled_by_others: AtomicBool,
}

/// Free space of a file system.
#[derive(Debug, Clone, Copy)]
struct Free {
    bytes: u64,
    /// Number of further files; the maximum if the file system does not limit it.
    files: u64,
}

/// Space of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Written {
    bytes: u64,
    files: u64,
}

impl DiskWatch {
    /// Starts watching, before the agent of `sandbox` acts. It may write up to `limit` bytes.
    pub fn start(sandbox: &dyn Sandbox, limit: u64) -> Self {
        let own = [sandbox.work(), sandbox.home(), sandbox.tmp()].map(Path::to_owned);
        Self::of(own.into_iter().chain(sandbox.outside()).collect(), limit)
    }

    fn of(folders: Vec<PathBuf>, limit: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (filled_by_agent, filled_by_others) = (AtomicBool::default(), AtomicBool::default());
        let free = folders.first().and_then(|folder| free(folder));
        Self { free, folders, since: now.saturating_sub(CLOCK_TICK), limit, filled_by_agent, filled_by_others }
    }

    fn free_now(&self) -> Option<Free> {
        self.folders.first().and_then(|folder| free(folder))
    }

    /// Notes whether the disk is full now, and who filled it: the agent, if its files take at least half of the space
    /// that was free before it acted.
    pub fn look(&self) {
        let is_full = self.free_now().is_some_and(|free| free.bytes < NEXT_TO_NOTHING || free.files == 0);
        if is_full && !self.filled_by_agent.load(Ordering::Relaxed) {
            let is_agent = self.has_filled(self.written());
            let filled = if is_agent { &self.filled_by_agent } else { &self.filled_by_others };
            filled.store(true, Ordering::Relaxed);
        }
    }

    /// Returns `true` if the disk was full at a look, and the agent did not fill it.
    pub fn was_filled_by_others(&self) -> bool {
        self.filled_by_others.load(Ordering::Relaxed) && !self.filled_by_agent.load(Ordering::Relaxed)
    }

    /// Returns the reason why the agent has failed if its files take more than the limit. Reads them only if that much
    /// space is gone.
    pub fn excess(&self) -> Option<String> {
        let gone = self.free?.bytes.saturating_sub(self.free_now()?.bytes);
        (gone > self.limit).then(|| self.excess_of(self.written())).flatten()
    }

    /// Waits until the agent's files take more than the limit, and returns the reason why the agent has failed.
    pub async fn exceeded(&self) -> String {
        let mut pause = PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            self.look();
            let (folders, since, began) = (self.folders.clone(), self.since, Instant::now());
            let reading = tokio::task::spawn_blocking(move || written(&folders, since));
            if let Some(reason) = self.excess_of(reading.await.unwrap_or_default()) {
                return reason;
            }
            pause = PAUSE.max(began.elapsed() * PAUSE_RATIO);
        }
    }

    fn written(&self) -> Written {
        written(&self.folders, self.since)
    }

    fn has_filled(&self, written: Written) -> bool {
        let Some(free) = self.free else { return false };
        let half = |written: u64, free: u64, least: u64| free > least && written >= free / 2;
        half(written.bytes, free.bytes, LEAST_FREE.bytes) || half(written.files, free.files, LEAST_FREE.files)
    }

    fn excess_of(&self, written: Written) -> Option<String> {
        let reason = || format!("its files take more than {} MiB (`sandbox.limits.disk_mb`)", self.limit >> 20);
        (written.bytes > self.limit).then(reason)
    }
}

#[allow(clippy::useless_conversion, reason = "some systems count blocks in 32 bits")]
fn free(path: &Path) -> Option<Free> {
    let disk = statvfs(path).ok()?;
    // Root may use the blocks that are reserved for it.
    let is_root = nix::unistd::geteuid().is_root();
    let blocks = if is_root { disk.blocks_free() } else { disk.blocks_available() };
    let bytes = u64::from(blocks).saturating_mul(disk.fragment_size());
    // Some file systems do not report a number of files.
    let files = if disk.files() > 0 { u64::from(disk.files_free()) } else { u64::MAX };
    Some(Free { bytes, files })
}

/// Returns the space of what was created or changed in `folders` since `since`, a time since 1970. Links are not
/// followed. What cannot be read is not counted.
fn written(folders: &[PathBuf], since: Duration) -> Written {
    let mut written = Written::default();
    let mut left: Vec<PathBuf> = folders.to_vec();
    while let Some(folder) = left.pop() {
        // An agent may have replaced the folder by a link.
        if !folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                left.push(entry.path());
            }
            // Unlike the other times, a program cannot set this one.
            let changed = (meta.ctime(), meta.ctime_nsec());
            if changed >= (since.as_secs().cast_signed(), i64::from(since.subsec_nanos())) {
                let links = if meta.is_dir() { 1 } else { meta.nlink().max(1) };
                written.bytes += (meta.blocks().saturating_mul(512)).max(LEAST_SIZE) / links;
                written.files += 1;
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_since_then_counts() {
        let [work, home, tmp] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
        let folders = [&work, &home, &tmp].map(|folder| folder.path().to_owned()).to_vec();
        fs::write(work.path().join("given"), vec![1; 100_000]).unwrap();
        let later = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(600);
        assert_eq!(written(&folders, later), Written::default());
        let before = DiskWatch::of(folders.clone(), u64::MAX).since - Duration::from_secs(600);
        fs::create_dir(home.path().join("deep")).unwrap();
        fs::write(home.path().join("deep/small"), "x").unwrap();
        std::os::unix::fs::symlink("/usr", tmp.path().join("link")).unwrap();
        let found = written(&folders, before);
        assert_eq!(found.files, 4);
        assert!((100_000 + 3 * LEAST_SIZE..200_000).contains(&found.bytes), "{found:?}");
        let limited = DiskWatch { limit: 4096, ..DiskWatch::of(folders.clone(), 0) };
        assert!(limited.excess_of(found).unwrap().contains("disk_mb"));
        assert_eq!(DiskWatch::of(folders, 1 << 30).excess_of(found), None);
    }

    #[test]
    fn who_wrote_half_of_what_was_free_filled_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let free = Some(Free { bytes: 10 << 20, files: 1000 });
        let watch = DiskWatch { free, ..DiskWatch::of(vec![folder.path().to_owned()], 0) };
        let has_filled = |bytes, files| watch.has_filled(Written { bytes, files });
        assert!(has_filled(5 << 20, 1) && has_filled(4096, 500));
        assert!(!has_filled(4 << 20, 400));
        let nearly_full = DiskWatch { free: Some(Free { bytes: 8192, files: 9 }), ..watch };
        assert!(!nearly_full.has_filled(Written { bytes: 8192, files: 9 }), "others had filled it");
    }
}
