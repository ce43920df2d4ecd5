//! The artefacts directory. An index lists the files that a run wrote, so that a later run can replace them without
//! touching any other file.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use walkdir::WalkDir;

/// First line of the index. Each further line is a file's path, relative to the top, as a JSON string. A path is added
/// before its file is created.
const MARK: &str = "trialrun.artifacts/1";

/// File name of the index.
pub(super) const INDEX: &str = ".trialrun-artifacts";

/// Maximum number of foreign files that an error names.
const MAX_NAMES: usize = 3;

/// Reason why a run cannot write its artefacts to a directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactsError {
    /// The directory is not empty, and no run wrote to it.
    #[error("{} is not empty and was not written by an earlier run", .0.display())]
    NotEmpty(PathBuf),
    /// Another version of trialrun wrote to the directory.
    #[error("{} was written by another version of trialrun", .0.display())]
    OtherVersion(PathBuf),
    /// Another run writes to the directory.
    #[error("another run writes artefacts to {}", .0.display())]
    InUse(PathBuf),
    /// The directory contains files that no run wrote.
    #[error("{} contains files that were not written by a run: {}", root.display(), named(files))]
    Foreign {
        /// The directory.
        root: PathBuf,
        /// The files and folders, relative to it.
        files: Vec<PathBuf>,
    },
    /// An operation on the file system failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// Attempted operation, such as `write artefacts to`.
        doing: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Error from the system.
        source: io::Error,
    },
}

impl ArtifactsError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }
}

/// Names the first files.
fn named(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().take(MAX_NAMES).map(|path| path.display().to_string()).collect();
    let more = files.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// Attempted operation of most errors.
pub(super) const WRITE: &str = "write artefacts to";

/// A directory that one run writes to.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// Index file, locked while the run is in progress.
    index: Mutex<File>,
}

impl Folder {
    /// Opens the directory at `root` with the files that a run wrote to it, which are kept.
    ///
    /// # Errors
    /// Returns an error if no run wrote to it, or if a run is still in progress.
    pub(super) fn reopen(root: &Path) -> Result<Self, ArtifactsError> {
        let failed = ArtifactsError::io(WRITE, root);
        let root = root.canonicalize().map_err(&failed)?;
        let index = File::options().append(true).open(root.join(INDEX)).map_err(&failed)?;
        lock(&index, &root)?;
        Ok(Self { root, index: Mutex::new(index) })
    }

    /// Takes over the directory at `root`. It must be missing, empty, or contain only files of an earlier run, which
    /// are removed.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be used. Nothing has been removed then, unless the file
    /// system failed half-way.
    pub(super) fn open(root: &Path) -> Result<Self, ArtifactsError> {
        let failed = ArtifactsError::io(WRITE, root);
        fs::create_dir_all(root).map_err(&failed)?;
        let root = root.canonicalize().map_err(&failed)?;
        let path = root.join(INDEX);
        let is_ours = match fs::symlink_metadata(&path) {
            Ok(meta) => meta.is_file(),
            Err(_) => false,
        };
        if !is_ours && fs::read_dir(&root).map_err(&failed)?.next().is_some() {
            return Err(ArtifactsError::NotEmpty(root));
        }
        let options = || File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut index = options().map_err(&failed)?;
        lock(&index, &root)?;
        let mut text = String::new();
        index.read_to_string(&mut text).map_err(&failed)?;
        let mut lines = text.lines();
        if !text.is_empty() && lines.next() != Some(MARK) {
            return Err(ArtifactsError::OtherVersion(root));
        }
        let known: BTreeSet<PathBuf> = lines.filter_map(entry).collect();
        empty(&root, &known)?;
        index.set_len(0).and_then(|()| index.rewind()).map_err(&failed)?;
        writeln!(index, "{MARK}").map_err(&failed)?;
        Ok(Self { root, index: Mutex::new(index) })
    }

    /// Returns the path of the directory: absolute, with links resolved.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Adds files to the index before they are created.
    pub(super) fn enter(&self, files: impl IntoIterator<Item = PathBuf>) -> io::Result<()> {
        let mut text = String::new();
        for file in files {
            // Names that are not UTF-8 cannot be added; such files count as foreign and are kept.
            if let Some(file) = file.to_str() {
                text.push_str(&serde_json::to_string(file)?);
                text.push('\n');
            }
        }
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.write_all(text.as_bytes())
    }

    /// Writes a file that is in the index, atomically.
    pub(super) fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let path = self.root.join(file);
        let part = self.root.join(part_of(file));
        let with_path = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        fs::write(&part, bytes)
            .and_then(|()| fs::rename(&part, &path))
            .inspect_err(|_| {
                let _ = fs::remove_file(&part);
            })
            .map_err(with_path)
    }

    /// Creates a file that is in the index, to be written line by line.
    pub(super) fn create(&self, file: &Path) -> io::Result<File> {
        let path = self.root.join(file);
        File::create(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    /// Creates a directory.
    pub(super) fn make(&self, directory: &Path) -> io::Result<()> {
        let path = self.root.join(directory);
        fs::create_dir_all(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    /// Adds everything below `directory` to the index: files that a command of this run wrote belong to this run.
    pub(super) fn adopt(&self, directory: &Path) -> io::Result<()> {
        let (files, _) = listing(&self.root, directory).map_err(io::Error::other)?;
        self.enter(files)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing the file would not release its lock while a process that another thread is starting holds a copy.
        let _ = self.index.get_mut().unwrap_or_else(PoisonError::into_inner).unlock();
    }
}

/// Locks the index of the directory at `root`.
fn lock(index: &File, root: &Path) -> Result<(), ArtifactsError> {
    match index.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(ArtifactsError::InUse(root.to_owned())),
        Err(TryLockError::Error(error)) => Err(ArtifactsError::io(WRITE, root)(error)),
    }
}

/// Returns the temporary name that a file has while it is being written.
fn part_of(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!(".{name}.part"))
}

/// Parses a line of the index if it is a path below the top. The last line may be incomplete.
fn entry(line: &str) -> Option<PathBuf> {
    let path = PathBuf::from(serde_json::from_str::<String>(line).ok()?);
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    (is_below && !path.as_os_str().is_empty()).then_some(path)
}

/// Returns the files below `directory`, and its directories, each after its contents. Links are not followed.
fn listing(root: &Path, directory: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ArtifactsError> {
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for entry in WalkDir::new(root.join(directory)).min_depth(1).contents_first(true) {
        let entry = entry.map_err(|error| ArtifactsError::io("read", &root.join(directory))(error.into()))?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned();
        if entry.file_type().is_dir() { directories.push(path) } else { files.push(path) }
    }
    Ok((files, directories))
}

/// Removes the known files; if there are other files, fails without removing anything.
fn empty(root: &Path, known: &BTreeSet<PathBuf>) -> Result<(), ArtifactsError> {
    let (mut files, directories) = listing(root, Path::new(""))?;
    let parts: BTreeSet<PathBuf> = known.iter().map(|file| part_of(file)).collect();
    let folders: BTreeSet<&Path> = known.iter().flat_map(|file| file.ancestors().skip(1)).collect();
    files.retain(|file| file != Path::new(INDEX));
    let foreign_files = files.iter().filter(|file| !known.contains(*file) && !parts.contains(*file));
    let foreign_folders = directories.iter().filter(|folder| !folders.contains(folder.as_path()));
    let foreign: Vec<PathBuf> = foreign_files.chain(foreign_folders).cloned().collect();
    if !foreign.is_empty() {
        return Err(ArtifactsError::Foreign { root: root.to_owned(), files: foreign });
    }
    for file in files.iter().map(|file| root.join(file)) {
        fs::remove_file(&file).map_err(ArtifactsError::io("remove", &file))?;
    }
    for directory in directories.iter().map(|directory| root.join(directory)) {
        fs::remove_dir(&directory).map_err(ArtifactsError::io("remove", &directory))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary directory, removed on drop.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("trialrun-artifacts-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn names(root: &Path) -> Vec<String> {
        let (files, _) = listing(root, Path::new("")).unwrap();
        let mut names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_earlier_run_is_replaced_completely() {
        let scratch = Scratch::new("replaced");
        let folder = Folder::open(&scratch.0.join("a/b")).unwrap();
        let root = folder.root().to_owned();
        folder.enter(["c/d".into(), "e".into()]).unwrap();
        folder.make(Path::new("c")).unwrap();
        folder.write(Path::new("c/d"), b"1").unwrap();
        // Left by a process that was killed.
        fs::write(root.join("c/.d.part"), "torn").unwrap();
        assert!(matches!(Folder::open(&root), Err(ArtifactsError::InUse(_))));
        drop(folder);
        let again = Folder::open(&root).unwrap();
        assert_eq!(names(&root), [INDEX]);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1, "no empty directories");
        drop(again);
    }

    #[test]
    fn foreign_files_are_never_touched() {
        let scratch = Scratch::new("foreign");
        fs::write(scratch.0.join("notes"), "mine").unwrap();
        assert!(matches!(Folder::open(&scratch.0), Err(ArtifactsError::NotEmpty(_))));
        fs::remove_file(scratch.0.join("notes")).unwrap();
        let folder = Folder::open(&scratch.0).unwrap();
        folder.enter(["a".into(), "../out".into()]).unwrap();
        folder.write(Path::new("a"), b"1").unwrap();
        drop(folder);
        fs::create_dir(scratch.0.join("mine")).unwrap();
        let error = Folder::open(&scratch.0).unwrap_err().to_string();
        assert!(error.ends_with("contains files that were not written by a run: mine"), "{error}");
        assert_eq!(names(&scratch.0), [INDEX, "a"]);
    }

    #[test]
    fn files_written_by_hooks_belong_to_the_run() {
        let scratch = Scratch::new("adopted");
        let folder = Folder::open(&scratch.0).unwrap();
        folder.make(Path::new("a/b")).unwrap();
        fs::write(scratch.0.join("a/b/c"), "by a hook").unwrap();
        folder.adopt(Path::new("a")).unwrap();
        drop(folder);
        Folder::open(&scratch.0).unwrap();
        assert_eq!(names(&scratch.0), [INDEX]);
    }
}
