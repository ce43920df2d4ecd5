//! Finds and removes directories from earlier runs that are no longer in use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub use super::owner::Purpose;
use super::{owner, removal};

/// A directory whose owner has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Path of the directory.
    pub path: PathBuf,
    /// Purpose of the directory.
    pub purpose: Purpose,
    /// Process that created it, if known.
    pub pid: Option<u32>,
    /// Time since it was created, or since its top level last changed.
    pub age: Duration,
    /// Total size of its files in bytes; links are not followed.
    pub size: u64,
}

/// This program's directories below one root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Directories that can be removed, oldest first.
    pub orphans: Vec<Orphan>,
    /// Number of orphans that are younger than the minimum age.
    pub younger: usize,
    /// Number of directories in use.
    pub live: usize,
    /// Sandboxes that the user asked to keep (`--keep-sandbox`), oldest first.
    pub kept: Vec<Orphan>,
}

/// Finds orphans directly below `root`. A directory is in use while its lock is held or the process that created it is
/// alive; in that case it is never an orphan, whatever its age. Other users' directories are ignored.
///
/// # Errors
/// Returns an error if `root` cannot be read.
pub fn survey(root: &Path, min_age: Duration, now: SystemTime) -> io::Result<Survey> {
    let mut survey = Survey::default();
    for entry in fs::read_dir(root)? {
        let Ok(entry) = entry else { continue };
        let path = entry.path();
        let Some(made) = made(&path) else { continue };
        let owner_file = owner::read(&path);
        if owner_file.pid.is_none() {
            continue;
        }
        let age = now.duration_since(made).unwrap_or_default();
        if owner_file.live {
            survey.live += 1;
        } else if age < min_age {
            survey.younger += 1;
        } else {
            let size = size(&path);
            let orphan = Orphan { path, purpose: owner_file.purpose, pid: owner_file.pid, age, size };
            if owner_file.kept { survey.kept.push(orphan) } else { survey.orphans.push(orphan) }
        }
    }
    for orphans in [&mut survey.orphans, &mut survey.kept] {
        orphans.sort_by(|a, b| b.age.cmp(&a.age).then_with(|| a.path.cmp(&b.path)));
    }
    Ok(survey)
}

/// Removes an orphan. Returns `false` and removes nothing if the directory is in use after all.
///
/// # Errors
/// Returns an error if a part of it cannot be removed.
pub fn remove(orphan: &Orphan) -> io::Result<bool> {
    if made(&orphan.path).is_some() && owner::read(&orphan.path).live {
        return Ok(false);
    }
    removal::remove(&orphan.path)?;
    Ok(true)
}

/// Returns the time when `path` was created or last changed, if it is a directory that belongs to this user and has
/// our name prefix.
fn made(path: &Path) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let named = path.file_name()?.to_str()?.starts_with(owner::PREFIX);
    let meta = path.symlink_metadata().ok().filter(|meta| named && meta.is_dir())?;
    let mine = meta.uid() == nix::unistd::geteuid().as_raw();
    mine.then(|| meta.modified().ok()).flatten()
}

fn size(path: &Path) -> u64 {
    let files = walkdir::WalkDir::new(path).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::{Base, OWNER};
    use crate::registry::Registry;

    /// Returns the id of a process that has ended, which makes its directories orphans.
    fn dead_pid() -> u32 {
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    fn orphan(root: &Path, name: &str, hours: u64, now: SystemTime) -> PathBuf {
        let path = root.join(format!("trialrun-{name}-{}-00ff", dead_pid()));
        fs::create_dir_all(path.join("work")).unwrap();
        fs::write(path.join("work/file"), [0; 1000]).unwrap();
        fs::write(path.join(OWNER), format!("pid {}\nborn 7\nfor sandbox\n", dead_pid())).unwrap();
        std::os::unix::fs::symlink("/", path.join("work/root")).unwrap();
        fs::File::open(&path).unwrap().set_modified(now - Duration::from_secs(hours * 3600)).unwrap();
        path
    }

    #[test]
    fn orphans_are_listed_oldest_first_and_live_directories_are_not_listed() {
        let root = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let young = orphan(root.path(), "young", 1, now);
        let old = orphan(root.path(), "old", 30, now);
        orphan(root.path(), "new", 0, now);
        let registry = Registry::new();
        let live = Base::make(root.path(), "live", Purpose::Sandbox, false, &registry).unwrap();
        fs::create_dir(root.path().join("trialrun-notes")).unwrap();
        fs::create_dir(root.path().join("other-x-1-00ff")).unwrap();
        std::os::unix::fs::symlink(&old, root.path().join("trialrun-link-1-00ff")).unwrap();

        let later = now + Duration::from_secs(60);
        let survey = survey(root.path(), Duration::from_secs(600), later).unwrap();
        assert_eq!(survey.orphans.iter().map(|orphan| &orphan.path).collect::<Vec<_>>(), [&old, &young]);
        assert_eq!((survey.live, survey.younger), (1, 1));
        assert_eq!(survey.orphans[0].age, Duration::from_secs(30 * 3600 + 60));
        assert!((1000..1100).contains(&survey.orphans[0].size), "the link to / is not followed");
        drop(live);
    }

    #[test]
    fn kept_sandboxes_are_not_orphans() {
        let root = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let kept = orphan(root.path(), "kept", 1, now);
        let mark = fs::read_to_string(kept.join(OWNER)).unwrap();
        fs::write(kept.join(OWNER), mark + "kept yes\n").unwrap();
        let left = orphan(root.path(), "left", 1, now);
        let survey = survey(root.path(), Duration::ZERO, now + Duration::from_secs(1)).unwrap();
        let paths = |orphans: &[Orphan]| orphans.iter().map(|orphan| orphan.path.clone()).collect::<Vec<_>>();
        assert_eq!((paths(&survey.orphans), paths(&survey.kept)), (vec![left], vec![kept]));
    }

    #[test]
    fn removal_checks_the_lock_again() {
        let root = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let path = orphan(root.path(), "x", 1, now);
        let found = survey(root.path(), Duration::ZERO, now).unwrap().orphans.remove(0);
        let lock = fs::File::open(path.join(OWNER)).unwrap();
        lock.lock().unwrap();
        assert!(!remove(&found).unwrap());
        assert!(path.exists());
        lock.unlock().unwrap();
        assert!(remove(&found).unwrap());
        assert!(!path.exists());
        assert!(remove(&found).unwrap(), "a missing directory counts as removed");
    }

    #[test]
    fn a_directory_without_an_owner_file_belongs_to_the_process_in_its_name() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(format!("trialrun-x-{}-00ff", std::process::id()))).unwrap();
        fs::create_dir(root.path().join(format!("trialrun-y-{}-00ff", dead_pid()))).unwrap();
        let survey = survey(root.path(), Duration::ZERO, SystemTime::now()).unwrap();
        assert_eq!((survey.live, survey.orphans.len()), (1, 1));
    }
}
