//! Folders of a sandbox that processes see at absolute paths of their own: the working directory of a case that says
//! where it is, folders beside it, and folders that only commands of assertions see.

use std::fs;
use std::path::{Path, PathBuf};

use files::Found;
use model::{Fixtures, Graded, OuterFolder, RewardFile};

use super::SandboxError;
use super::deadline::Deadline;
use super::tree::Writer;
use super::tree_copy::copy_tree;

/// Directory of a sandbox with the folders beside the working directory, which are numbered.
pub(super) const FOLDER: &str = "outside";

/// Directory of a grading tree with the folders that only commands see, which are numbered.
const GRADED: &str = "graded";

/// Directory of a grading tree into which commands write rewards.
const REWARDS: &str = "rewards";

/// Files with rewards, and the largest size of one in bytes.
const REWARD_FILES: [&str; 2] = ["reward.json", "reward.txt"];
const LARGEST_REWARD: u64 = 64 * 1024;

/// Returns the absolute paths at which processes must see folders.
pub(super) fn paths<'a>(fixtures: &'a Fixtures, graded: &'a Graded) -> impl Iterator<Item = &'a Path> {
    let outside = fixtures.outside.iter().map(|folder| &folder.path);
    let graded_paths = graded.folders.iter().map(|folder| &folder.path).chain(&graded.rewards);
    fixtures.workdir.iter().chain(outside).chain(graded_paths).map(Path::new)
}

/// Creates the folders beside the working directory in the sandbox at `base`.
pub(super) fn write(base: &Path, outside: &[OuterFolder]) -> Result<(), SandboxError> {
    for (at, folder) in outside.iter().enumerate() {
        let place = Path::new(FOLDER).join(at.to_string());
        let made = Writer::new(base).directory(&place);
        let place = made.map_err(SandboxError::io("make the directory", &base.join(place)))?;
        let mut writer = Writer::new(&place);
        let failed = |error: std::io::Error| SandboxError::fixture(format!("{}: {error}", folder.path), None);
        for directory in &folder.directories {
            writer.directory(Path::new(directory)).map_err(failed)?;
        }
        for tree in &folder.trees {
            writer.tree(&tree.from, Path::new(&tree.to), |_| false).map_err(failed)?;
        }
        for file in &folder.files {
            writer.file(Path::new(&file.path), &file.content, file.executable).map_err(failed)?;
        }
    }
    Ok(())
}

/// Returns the real paths of the working directory and the folders beside it, with the paths at which processes also see
/// them, in an order in which they can be mounted. `base` contains the folders.
pub(super) fn places(base: &Path, work: &Path, fixtures: &Fixtures) -> Vec<(PathBuf, PathBuf)> {
    let numbered = fixtures.outside.iter().enumerate();
    let outside = numbered.map(|(at, folder)| (base.join(FOLDER).join(at.to_string()), PathBuf::from(&folder.path)));
    let workdir = fixtures.workdir.iter().map(|path| (work.to_owned(), PathBuf::from(path)));
    let mut places: Vec<(PathBuf, PathBuf)> = workdir.chain(outside).collect();
    places.sort_by_key(|(_, seen)| seen.components().count());
    places
}

/// Copies the folders beside the working directory from the sandbox at `from` to the grading tree at `to`, and adds the
/// folders that only commands see.
pub(super) fn copy(from: &Path, to: &Path, graded: &Graded, deadline: Deadline) -> std::io::Result<()> {
    let outside = from.join(FOLDER);
    if outside.is_dir() {
        copy_tree(&outside, &to.join(FOLDER), deadline, |_| false)?;
    }
    for (at, folder) in graded.folders.iter().enumerate() {
        let place = to.join(GRADED).join(at.to_string());
        Writer::new(to).directory(Path::new(GRADED))?;
        match &folder.from {
            Some(from) => copy_tree(from, &place, deadline, |_| false)?,
            None => fs::create_dir(&place)?,
        }
    }
    if graded.rewards.is_some() {
        fs::create_dir(to.join(REWARDS))?;
    }
    Ok(())
}

/// Returns the real paths of the folders that only commands see in the grading tree at `base`, with the paths at which
/// they see them.
pub(super) fn graded_places(base: &Path, graded: &Graded) -> Vec<(PathBuf, PathBuf)> {
    let numbered = graded.folders.iter().enumerate();
    let folders = numbered.map(|(at, folder)| (base.join(GRADED).join(at.to_string()), PathBuf::from(&folder.path)));
    let rewards = graded.rewards.iter().map(|path| (base.join(REWARDS), PathBuf::from(path)));
    folders.chain(rewards).collect()
}

/// Returns the files with rewards that commands wrote in the grading tree at `base`, and what is there in place of one.
pub(super) fn rewards(base: &Path) -> Vec<RewardFile> {
    let folder = base.join(REWARDS);
    let read = |name: &&str| {
        let content = match files::find(&folder, Path::new(name)) {
            Ok(Found::Nothing) => return None,
            Ok(Found::File(real)) => files::read(&real, LARGEST_REWARD).map_err(|error| error.to_string()),
            Ok(Found::Directory(_)) => Err("it is a directory".to_owned()),
            Ok(Found::Special | Found::Outside) if folder.join(name).is_symlink() => {
                Err("it is a link that leads out of its folder, or nowhere".to_owned())
            }
            Ok(Found::Special | Found::Outside) => Err("it is not a regular file".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let (text, unusable) = match content {
            Ok(bytes) => (String::from_utf8_lossy(&bytes).into_owned(), None),
            Err(reason) => (String::new(), Some(reason)),
        };
        Some(RewardFile { name: (*name).to_owned(), text, unusable })
    };
    REWARD_FILES.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_mounted_after_those_that_contain_it() {
        let outer = |path: &str| OuterFolder { path: path.to_owned(), ..OuterFolder::default() };
        let fixtures = Fixtures {
            workdir: Some("/data/app".to_owned()),
            outside: vec![outer("/data/app/logs"), outer("/logs")],
            ..Fixtures::default()
        };
        let seen: Vec<PathBuf> =
            places(Path::new("/s"), Path::new("/s/work"), &fixtures).into_iter().map(|(_, seen)| seen).collect();
        assert_eq!(seen, ["/logs", "/data/app", "/data/app/logs"].map(PathBuf::from));
    }

    #[test]
    fn only_regular_files_are_rewards() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        fs::create_dir(base.join(REWARDS)).unwrap();
        fs::write(base.join("secret"), "1").unwrap();
        std::os::unix::fs::symlink("../secret", base.join(REWARDS).join("reward.txt")).unwrap();
        assert_eq!(
            rewards(&base)[0].unusable.as_deref(),
            Some("it is a link that leads out of its folder, or nowhere")
        );
        fs::remove_file(base.join(REWARDS).join("reward.txt")).unwrap();
        assert_eq!(rewards(&base), []);
        let json = base.join(REWARDS).join("reward.json");
        fs::write(&json, "{}").unwrap();
        assert_eq!(rewards(&base), [RewardFile { name: "reward.json".into(), text: "{}".into(), unusable: None }]);
        fs::write(&json, vec![b'1'; 70_000]).unwrap();
        assert_eq!(rewards(&base)[0].unusable.as_deref(), Some("it is larger than 64 KiB"));
        fs::remove_file(&json).unwrap();
        fs::create_dir(&json).unwrap();
        assert_eq!(rewards(&base)[0].unusable.as_deref(), Some("it is a directory"));
    }
}
