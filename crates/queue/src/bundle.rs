//! The bundle of a project: the files from which a worker plans the same trials.
//!
//! Only files that the plan names are part of it: the configuration, suites, skills, fixtures, data, modules and
//! cassettes. Files that git ignores are not, and a file that contains a secret prevents the run: each worker has keys
//! of its own.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use ignore::WalkBuilder;
use model::CassetteMode;
use runner::{cassette_file, first_of_each_case};
use script::Library;
use session::{Planned, Session, dependencies};
use sha2::{Digest, Sha256};

use crate::error::QueueError;

/// Maximum size of all files together, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Number of the largest files that the message about a bundle that is too large names.
const NAMED: usize = 3;

/// Compression level of files.
const LEVEL: i32 = 3;

/// Files that decide which modules imports refer to.
const RESOLUTION: [&str; 2] = ["package.json", "tsconfig.json"];

/// Endings and names of files that contain keys.
const KEY_FILES: [&str; 6] = [".env", ".pem", ".key", ".p12", ".pgpass", ".netrc"];

/// The files of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bundle {
    /// SHA-256 of the list of files.
    pub(crate) digest: String,
    pub(crate) files: Vec<BundleFile>,
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BundleFile {
    /// Path relative to the project's folder.
    pub(crate) path: String,
    /// SHA-256 of its content.
    pub(crate) digest: String,
    pub(crate) is_executable: bool,
    /// Its content, compressed.
    pub(crate) packed: Vec<u8>,
}

/// A bundle with what it lacks.
pub(crate) struct Collected {
    pub(crate) bundle: Bundle,
    /// Files that the plan names and that are not sent, each with the reason.
    pub(crate) left_out: Vec<(String, &'static str)>,
}

impl BundleFile {
    pub(crate) fn new(path: &str, content: &[u8], is_executable: bool) -> io::Result<Self> {
        let digest = model::text::hex(&Sha256::digest(content));
        Ok(Self { path: path.to_owned(), digest, is_executable, packed: zstd::encode_all(content, LEVEL)? })
    }
}

impl Bundle {
    /// Returns the bundle of these files.
    pub(crate) fn of(mut files: Vec<BundleFile>) -> Self {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Self { digest: digest_of(&files), files }
    }

    /// Collects the files that the plan names.
    pub(crate) fn collect(session: &Session, planned: &Planned) -> Result<Collected, QueueError> {
        let root = &session.project.root;
        let mut wanted = dependencies::configuration(&session.project);
        for suite in dependencies::of_suites(session, &planned.plan.trials) {
            wanted.insert(session.cwd.join(&suite.0));
            wanted.extend(suite.1.paths().cloned());
        }
        wanted.extend(RESOLUTION.map(|name| root.join(name)));
        let cassettes = &planned.plan.settings.cassettes;
        if cassettes.mode == CassetteMode::Replay {
            wanted.extend(first_of_each_case(&planned.plan.trials).map(|trial| cassette_file(trial, cassettes)));
        }
        let folders = first_of_each_case(&planned.plan.trials).flat_map(|trial| trial.case.source_folders());
        wanted.extend(folders.map(|folder| session.cwd.join(folder)));
        wanted.retain(|path| path.exists());
        // Workers look for each target, even for one without a selected case.
        for target in planned.spec.overrides().named() {
            let path = session.cwd.join(target.split("::").next().unwrap_or_default());
            if path.exists() && !wanted.iter().any(|known| known.starts_with(&path)) {
                wanted.insert(path);
            }
        }
        let (library, modules) = (Library::new(), wanted.clone());
        wanted.extend(modules.iter().filter(|path| path.is_file()).flat_map(|path| library.imports(path)));
        let mut left_out: Vec<(String, &'static str)> = Vec::new();
        let shown = |path: &Path| session::shown(path, root);
        wanted.retain(|path| {
            let is_inside = path.starts_with(root);
            if !is_inside {
                left_out.push((path.display().to_string(), "it is outside of the project's folder"));
            }
            is_inside
        });
        let paths = files_of(root, &wanted);
        for path in wanted.iter().filter(|path| path.is_file() && !paths.contains(*path)) {
            left_out.push((shown(path), "git ignores it, or it is a link"));
        }
        let mask = session.mask();
        let mut files = Vec::new();
        let mut sizes: Vec<(u64, String)> = Vec::new();
        for path in paths {
            let name = shown(&path);
            if is_key_file(&path) {
                left_out.push((name, "files of this kind contain keys"));
                continue;
            }
            let failed = |error: io::Error| QueueError::File(format!("cannot read {name}"), error);
            let content = files::read(&path, MAX_BYTES).map_err(failed)?;
            sizes.push((content.len() as u64, name.clone()));
            check_size(&mut sizes)?;
            // Text that merely looks like a secret may be a fixture.
            if let Ok(text) = std::str::from_utf8(&content)
                && mask.without_values(text) != text
            {
                return Err(QueueError::Refused(format!(
                    "{name} contains a secret, which is not sent to workers; put it into a variable"
                )));
            }
            let executable = fs::metadata(&path).map_err(failed)?.permissions().mode() & 0o100 != 0;
            files.push(BundleFile::new(&name, &content, executable).map_err(failed)?);
        }
        Ok(Collected { bundle: Self::of(files), left_out })
    }

    /// Writes the files below `folder`, which does not exist yet.
    pub(crate) fn unpack(&self, folder: &Path) -> Result<(), QueueError> {
        let failed = |path: &Path, error| QueueError::File(format!("cannot write {}", path.display()), error);
        if digest_of(&self.files) != self.digest {
            return Err(QueueError::Damaged("a bundle", "its files are not those of its digest".to_owned()));
        }
        let parent = folder.parent().unwrap_or(folder);
        // A worker that is killed meanwhile leaves no half of a bundle behind under its name.
        let half = parent.join(format!("{}.{}", self.digest, uuid::Uuid::new_v4()));
        let written = self.write_below(&half).and_then(|()| match fs::rename(&half, folder) {
            // Another worker of this machine was faster.
            Err(_) if folder.is_dir() => Ok(()),
            renamed => renamed.map_err(|error| failed(folder, error)),
        });
        match fs::remove_dir_all(&half) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => written.and(Err(failed(&half, error))),
            _ => written,
        }
    }

    fn write_below(&self, folder: &Path) -> Result<(), QueueError> {
        for file in &self.files {
            let inside = Path::new(&file.path);
            let failed = |error| QueueError::File(format!("cannot write {}", folder.join(inside).display()), error);
            if !inside.components().all(|part| matches!(part, Component::Normal(_))) || file.path.is_empty() {
                return Err(QueueError::Damaged("a bundle", format!("`{}` is not a path in it", file.path)));
            }
            let mut content = Vec::new();
            let reader = zstd::Decoder::new(&file.packed[..]).map_err(failed)?;
            io::copy(&mut io::Read::take(reader, MAX_BYTES), &mut content).map_err(failed)?;
            if model::text::hex(&Sha256::digest(&content)) != file.digest {
                return Err(QueueError::Damaged("a file", format!("`{}` has another digest", file.path)));
            }
            let path = folder.join(inside);
            create_private(path.parent().unwrap_or(folder)).map_err(failed)?;
            let mode = if file.is_executable { 0o700 } else { 0o600 };
            let mut options = fs::OpenOptions::new();
            let written = options.write(true).create_new(true).mode(mode).open(&path);
            written.and_then(|mut written| io::Write::write_all(&mut written, &content)).map_err(failed)?;
        }
        // A bundle may have no files.
        create_private(folder).map_err(|error| QueueError::File(format!("cannot write {}", folder.display()), error))
    }
}

/// Returns the files at and below `wanted` that git does not ignore. Links are not followed.
fn files_of(root: &Path, wanted: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let is_named = {
        let wanted = wanted.clone();
        move |path: &Path| path.ancestors().any(|part| wanted.contains(part))
    };
    let leads_to = {
        let (wanted, is_named) = (wanted.clone(), is_named.clone());
        move |path: &Path| is_named(path) || wanted.iter().any(|wanted| wanted.starts_with(path))
    };
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .ignore(false)
        .git_global(false)
        .filter_entry(move |entry| entry.file_name() != ".git" && leads_to(entry.path()))
        .build();
    let entries = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    entries.map(ignore::DirEntry::into_path).filter(|path| is_named(path)).collect()
}

fn is_key_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(".env.") || KEY_FILES.iter().any(|ending| name.ends_with(ending))
}

fn check_size(sizes: &mut [(u64, String)]) -> Result<(), QueueError> {
    let total: u64 = sizes.iter().map(|(size, _)| size).sum();
    if total <= MAX_BYTES {
        return Ok(());
    }
    sizes.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let largest = sizes.iter().take(NAMED).map(|(size, name)| format!("{name} ({} MB)", size >> 20));
    let largest = largest.collect::<Vec<_>>().join(", ");
    let most = MAX_BYTES >> 20;
    Err(QueueError::Refused(format!(
        "the files that the plan names have more than {most} MB, which is too much for workers; the largest are {largest}"
    )))
}

fn digest_of(files: &[BundleFile]) -> String {
    let mut list = Sha256::new();
    for file in files {
        list.update(format!("{} {} {}\n", file.digest, file.is_executable, file.path));
    }
    model::text::hex(&list.finalize())
}

/// Creates a folder that only its owner can read.
fn create_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
