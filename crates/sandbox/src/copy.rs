//! The tree in which the commands of assertions and hooks work: the fixture as it was given, with the agent's work.
//!
//! The agent's files are taken by their content. Git directories are [rebuilt](super::rebuild), files of the fixture
//! that [steer](super::steering) a tool are restored, and the home and the directory for temporary files are as they
//! were before the agent acted. So the agent decides what its work is, but not how it is tested.
//!
//! The commands see the tree at the sandbox's own path: build directories, virtual environments and other files that
//! record their path would not work elsewhere, or would write to the original. If the machine does not allow a
//! namespace, they run at the tree's real path.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use files::Found;
use globset::{Glob, GlobSet};
use model::{Fixtures, Graded, RewardFile};
use tokio::process::Command;
use walkdir::{DirEntry, WalkDir};

use super::SandboxError;
use super::blocking::blocking;
use super::canaries::Planted;
use super::deadline::Deadline;
use super::enclosure::{Enclosure, Surroundings};
use super::given::{Given, is_directory, is_git_directory, is_git_metadata};
use super::inspection::{self, Inspection, Unreadable};
use super::outside;
use super::outward_links;
use super::owner::{Base, OWNER, Purpose};
use super::rebuild::Rebuild;
use super::registry::Registry;
use super::remote::{self, RemoteCopy};
use super::removal;
use super::snapshot::Before;
use super::steering;
use super::template::Files;
use super::tree_copy::{copy_dated_tree, copy_file, copy_link, copy_tree};
use crate::BoxFuture;
use crate::supervise::Supervisor;

/// Variable with the path of a copy of the agent's home.
const AGENT_HOME_VARIABLE: &str = "TRIALRUN_AGENT_HOME";

/// Setting that limits how long a tree is copied.
const SETTING: &str = "setup_timeout";

/// Names of the directories of a grading tree.
const WORK: &str = "work";
const HOME: &str = "home";
const TMP: &str = "tmp";
pub(super) const AGENT_HOME: &str = "agent-home";

/// Variables that make shells run a file first.
const STARTUP: [&str; 2] = ["BASH_ENV", "ENV"];

/// Maximum size of a file that steers a tool and is compared with the fixture's, in bytes.
const LARGEST: u64 = 64 << 20;

/// Maximum number of files that are looked at below a link to a folder.
const MOST_BELOW_LINK: usize = 1_000;

/// The grading tree of a sandbox. Dropping it removes it.
#[derive(Debug)]
pub struct SandboxCopy {
    base: Base,
    registry: Arc<Registry>,
    /// Time limit for copying it.
    timeout: Duration,
    supervisor: Supervisor,
    env: BTreeMap<String, String>,
    work: PathBuf,
    /// Real path of each directory, and the path at which commands see it. The first one is for temporary files.
    places: Vec<(PathBuf, PathBuf)>,
    enclosed: Option<(Arc<dyn Enclosure>, Surroundings)>,
    /// The trial's own remote, if it has one.
    remote: Option<Arc<RemoteCopy>>,
    steering: Steering,
}

/// Files of the agent that steer a tool, by their paths below the working directory.
#[derive(Debug, Default, Clone)]
struct Steering {
    /// Files of the fixture that the agent had changed or removed.
    restored: Vec<String>,
    /// Files that the fixture does not have, and manifests of the fixture that the agent had changed.
    added: Vec<String>,
    /// New tests, if the fixture has tests in files with the same ending.
    new_tests: Vec<String>,
    /// Programs that are tests of the fixture.
    tests: Vec<String>,
    /// Ignore files that are new or changed.
    ignore_files: Vec<PathBuf>,
}

/// Inputs for making a grading tree.
pub(super) struct Original<'a> {
    pub(super) content: Content,
    /// Environment of commands.
    pub(super) env: BTreeMap<String, String>,
    /// Enclosure in which commands run, if there is one.
    pub(super) enclosed: Option<(Arc<dyn Enclosure>, Surroundings)>,
    pub(super) inspection: Inspection<'a>,
}

/// Fixture and work of one trial.
#[derive(Clone)]
pub(super) struct Content {
    /// Directory in which grading trees are created.
    pub(super) root: PathBuf,
    pub(super) registry: Arc<Registry>,
    /// Directory of the sandbox.
    pub(super) path: PathBuf,
    /// Working directory, home and directory for temporary files of the sandbox.
    pub(super) work: PathBuf,
    pub(super) home: PathBuf,
    pub(super) tmp: PathBuf,
    /// The fixture; `None` if it is empty.
    pub(super) given: Option<Arc<Given>>,
    /// Files of the fixture, and the time of their snapshot.
    pub(super) files: Arc<Files>,
    pub(super) moment: (i64, i64),
    /// What the case says about these trees.
    pub(super) graded: Graded,
    pub(super) fixtures: Arc<Fixtures>,
    /// The agent's canaries, which commands do not see.
    pub(super) planted: Arc<Planted>,
    /// The trial's own remote.
    pub(super) remote: Option<Arc<RemoteCopy>>,
    pub(super) deadline: Deadline,
}

impl Original<'_> {
    /// Creates the tree. If this fails, everything is removed.
    pub(super) async fn copy(self) -> Result<SandboxCopy, SandboxError> {
        let Self { content, env, enclosed, inspection } = self;
        let own = content.clone();
        let (base, repositories, mut steering) = blocking(move || own.copy()).await?;
        for repository in repositories {
            rebuild(&inspection, repository).await?;
        }
        content.show_hidden(&base, &inspection, &mut steering).await?;
        let Content { path, work, home, tmp, remote, registry, deadline, graded, fixtures, .. } = content;
        let supervisor = inspection.supervisor.clone();
        let (places, timeout, own_remote) = (Vec::new(), deadline.limit(), remote.clone());
        let mut copy = SandboxCopy {
            base,
            registry,
            timeout,
            supervisor,
            env,
            work,
            places,
            enclosed,
            remote: own_remote,
            steering,
        };
        let agent_home = path.join(AGENT_HOME);
        copy.env.insert(AGENT_HOME_VARIABLE.to_owned(), agent_home.to_string_lossy().into_owned());
        let own = [(TMP, tmp), (WORK, copy.work.clone()), (HOME, home), (AGENT_HOME, agent_home)];
        copy.places.extend(own.map(|(name, place)| (copy.base.path().join(name), place)));
        let real_work = copy.base.path().join(WORK);
        copy.places.extend(outside::places(copy.base.path(), &real_work, &fixtures));
        copy.places.extend(outside::graded_places(copy.base.path(), &graded));
        if let Some(remote) = remote {
            copy.places.push((copy.base.path().join(remote::COPY), remote.path()));
            // In a `local` sandbox, the agent could have changed the programs.
            let bin = copy.base.path().join(remote::BIN);
            remote.install(&bin).await?;
            copy.places.push((bin, remote.bin()));
            remote.add_to(&mut copy.env);
        }
        if copy.enclosed.is_none() {
            // Nothing that the agent left beside its directories is visible.
            copy.places = vec![(copy.base.path().to_owned(), path)];
        }
        Ok(copy)
    }
}

impl Content {
    /// Makes the directories, without git directories. Returns the git directories to make.
    fn copy(&self) -> Result<(Base, Vec<Rebuild>, Steering), SandboxError> {
        let base = Base::make(&self.root, "copy", Purpose::Sandbox, false, &self.registry)?;
        let given_places = self.given.as_ref().and_then(|given| given.home_and_tmp());
        for (at, name) in [HOME, TMP].into_iter().enumerate() {
            let place = base.path().join(name);
            match &given_places {
                Some(given) => copy_tree(&given[at], &place, self.deadline, |_| false),
                None => fs::create_dir(&place),
            }
            .map_err(SandboxError::io("make the directory", &place))?;
        }
        let agent_home = base.path().join(AGENT_HOME);
        // The agent may have removed its home, or left something in it that cannot be copied.
        if opened(&self.home, &agent_home, || copy_tree(&self.home, &agent_home, self.deadline, |_| false)).is_err() {
            let _ = fs::create_dir(&agent_home);
        }
        self.planted.remove_from(&agent_home, false);
        let outer = self.path.join(outside::FOLDER);
        let others = || outside::copy(&self.path, base.path(), &self.graded, self.deadline);
        others().map_err(SandboxError::io("copy", &outer))?;
        let (mut repositories, steering) = self.copy_work(&base).map_err(SandboxError::io("copy", &self.work))?;
        repositories.extend(self.remote.as_ref().map(|remote| Rebuild {
            given: Some(remote.given().to_owned()),
            from: Some(remote.path()),
            to: base.path().join(remote::COPY),
            scratch: base.path().join("import-remote"),
            is_whole: true,
            is_bare: true,
            is_moved: false,
        }));
        Ok((base, repositories, steering))
    }

    /// Returns the files in the folder to which a link leads, by their paths through the link.
    fn below_link(&self, link: &Path) -> Vec<PathBuf> {
        let Ok(Found::Directory(folder)) = files::find(&self.work, link) else { return Vec::new() };
        let entries = WalkDir::new(&folder).into_iter().flatten().filter(|entry| !entry.file_type().is_dir());
        let paths = entries.filter_map(|entry| Some(link.join(entry.path().strip_prefix(&folder).ok()?)));
        paths.take(MOST_BELOW_LINK).collect()
    }

    fn copy_work(&self, base: &Base) -> io::Result<(Vec<Rebuild>, Steering)> {
        let to = base.path().join(WORK);
        let (mut metadata, mut steering, mut unchanged) = (Vec::new(), Steering::default(), HashSet::new());
        let before = Before { snapshot: &self.files.snapshot, moment: self.moment };
        let (known, is_taken) = (self.files.steering(), taken(&self.graded.taken_files)?);
        let mut skip = |entry: &DirEntry| {
            let path = entry.path().strip_prefix(&self.work).unwrap_or(entry.path());
            if is_git_metadata(entry) {
                metadata.push(path.to_owned());
                return true;
            }
            if entry.file_type().is_dir() {
                if known.is_target(path) && !before.snapshot.has_folder(path) {
                    steering.added.push(path.to_string_lossy().into_owned());
                }
                return steering::is_compiled(path);
            }
            // A link with such a name is loaded like the folder.
            if entry.path_is_symlink() && steering::is_compiled(path) {
                return true;
            }
            if entry.path_is_symlink() && !before.snapshot.has(path) {
                let below = self.below_link(path).into_iter().filter(|path| known.is_steered_by(path));
                steering.added.extend(below.map(|path| path.to_string_lossy().into_owned()));
            }
            if before.snapshot.can_hide(path) && !is_taken.is_match(path) && self.is_changed(path) {
                steering.ignore_files.push(path.to_owned());
            }
            let is_manifest = known.manifests.contains(path);
            let is_known = is_manifest || known.restored.contains(path);
            if is_known && entry.metadata().is_ok_and(|meta| before.is_unchanged(path, &meta)) {
                unchanged.insert(path.to_owned());
                return false;
            }
            let is_changed = |meta| before.is_changed(&self.work, path, &meta);
            let is_other_dependency = || steering::is_dependency(path) && entry.metadata().is_ok_and(is_changed);
            let is_added = match before.snapshot.has(path) {
                true => (is_manifest && self.is_changed(path)) || (!is_known && is_other_dependency()),
                false => known.is_steered_by(path),
            };
            if is_added && !is_taken.is_match(path) {
                steering.added.push(path.to_string_lossy().into_owned());
            } else if !before.snapshot.has(path) && known.has_tests_like(path) && !is_taken.is_match(path) {
                steering.new_tests.push(path.to_string_lossy().into_owned());
            }
            false
        };
        let now = SystemTime::now();
        opened(&self.work, &to, || {
            // Git would take a file that is dated back for an unchanged one, and a build tool one of the future for current.
            copy_dated_tree(&self.work, &to, self.deadline, &mut skip, &|path, meta| {
                meta.modified().is_ok_and(|changed| changed > now) || before.is_dated_back(&self.work, path, meta)
            })
        })?;
        make_writable(&to)?;
        self.planted.remove_from(&to, true);
        if let Some(given) = &self.given {
            let is_kept = |path: &PathBuf| self.graded.takes_fixture || is_taken.is_match(path);
            let changed = known.restored.iter().filter(|path| !unchanged.contains(*path) && !is_kept(path));
            for path in changed {
                if restore(&given.work(), path, &to, self.deadline)? {
                    steering.restored.push(path.to_string_lossy().into_owned());
                }
            }
        }
        let tests = known.restored.iter().filter(|path| steering::is_test_program(path) && !is_taken.is_match(path));
        steering.tests = tests.map(|path| path.to_string_lossy().into_owned()).collect();
        for test in &steering.tests {
            renew(&to, test, now)?;
        }
        for files in [&mut steering.restored, &mut steering.added, &mut steering.new_tests, &mut steering.tests] {
            files.sort();
            files.dedup();
        }
        for paths in [&mut steering.ignore_files, &mut metadata] {
            paths.sort();
            paths.dedup();
        }
        Ok((self.repositories(base, metadata), steering))
    }

    /// Returns `true` if a small file differs from the fixture's.
    fn is_changed(&self, path: &Path) -> bool {
        let content = |work: &Path| files::read(&work.join(path), LARGEST).ok();
        let given = self.given.as_ref().and_then(|given| content(&given.work()));
        given.is_none() || given != content(&self.work)
    }

    /// Removes or restores the ignore files of the agent that hide themselves, because they would hide its work.
    async fn show_hidden(
        &self,
        base: &Base,
        inspection: &Inspection<'_>,
        steering: &mut Steering,
    ) -> Result<(), SandboxError> {
        let (work, ignore_files) = (base.path().join(WORK), std::mem::take(&mut steering.ignore_files));
        let git = work.join(".git");
        if ignore_files.is_empty() || !is_directory(&git) {
            return Ok(());
        }
        let hidden = inspection.hidden(&git, &work, &ignore_files).await;
        let hidden =
            hidden.map_err(|unreadable| SandboxError::Git { reason: unreadable.reason(), source_line: None })?;
        for path in hidden {
            let given = self.given.as_ref().map(|given| given.work()).filter(|given| given.join(&path).is_file());
            let result = match given {
                Some(given) => restore(&given, &path, &work, self.deadline).map(drop),
                None => vacate(&work.join(&path)),
            };
            result.map_err(SandboxError::io("restore", &path))?;
            steering.restored.push(path.to_string_lossy().into_owned());
        }
        Ok(())
    }

    /// Returns the git directories to make, of which the agent's tree has `metadata`.
    fn repositories(&self, base: &Base, mut metadata: Vec<PathBuf>) -> Vec<Rebuild> {
        let own = PathBuf::from(".git");
        if !metadata.contains(&own) {
            metadata.push(own);
        }
        let given_work = self.given.as_ref().map(|given| given.work());
        let mut repositories = Vec::new();
        for path in metadata {
            let place = given_work.as_ref().map(|given| given.join(&path));
            let given = given_work.as_ref().and_then(|given| git_directory(given, &path));
            let from = git_directory(&self.work, &path);
            let is_moved = given.is_some() && given != place;
            if given.is_some() || from.is_some() {
                repositories.push(Rebuild {
                    given,
                    from,
                    to: base.path().join(WORK).join(&path),
                    scratch: base.path().join(format!("import-{}", repositories.len())),
                    is_whole: true,
                    is_bare: path.file_name() != Some(OsStr::new(".git")),
                    is_moved,
                });
            }
        }
        repositories
    }
}

/// Returns the git directory at `path` in the working directory `work`. A file may name one that is also in `work`.
fn git_directory(work: &Path, path: &Path) -> Option<PathBuf> {
    let place = work.join(path);
    if is_directory(&place) {
        return Some(place);
    }
    let content = files::read(&place, 4096).ok()?;
    let named = std::str::from_utf8(&content).ok()?.strip_prefix("gitdir: ")?.trim_end_matches('\n');
    let target = place.parent()?.join(named).canonicalize().ok()?;
    (target.starts_with(work.canonicalize().ok()?) && is_git_directory(&target)).then_some(target)
}

/// Makes a git directory. If the agent's state cannot be read, it has that of the fixture.
async fn rebuild(inspection: &Inspection<'_>, repository: Rebuild) -> Result<(), SandboxError> {
    let failed = |reason: String| SandboxError::Git { reason, source_line: None };
    let (to, scratch, is_bare) = (repository.to.clone(), repository.scratch.clone(), repository.is_bare);
    let only_given = repository.given.is_some().then(|| Rebuild { from: None, ..repository.clone() });
    let Some(parent) = to.parent().filter(|parent| parent.is_dir()) else { return Ok(()) };
    match inspection.rebuild(repository).await {
        Ok(()) if is_bare || !scratch.exists() => {}
        Ok(()) => inspection.refresh(&to, parent).await.map_err(|unreadable| failed(unreadable.reason()))?,
        Err(Unreadable::Machine(reason)) => return Err(failed(reason)),
        Err(Unreadable::Left(_) | Unreadable::Late(_)) => {
            removal::remove(&to).map_err(SandboxError::io("remove", &to))?;
            if let Some(given) = only_given {
                inspection.rebuild(given).await.map_err(|unreadable| failed(unreadable.reason()))?;
            }
        }
    }
    removal::remove(&scratch).map_err(SandboxError::io("remove", &scratch))
}

impl SandboxCopy {
    /// Prepares the tree for [commands](Self::command). If they run on another machine, they do not see later changes.
    ///
    /// # Errors
    /// Returns an error if the files cannot be moved to where commands run.
    pub async fn prepare(&self) -> Result<(), SandboxError> {
        match &self.enclosed {
            Some((enclosure, _)) => enclosure.prepare(self.path()).await,
            None => Ok(()),
        }
    }

    /// Returns a supervised command that runs in the copy as [`Sandbox::command`](super::Sandbox::command) does in the
    /// sandbox.
    pub fn command(&self, program: &OsStr, args: &[&OsStr]) -> Command {
        let mut command = match &self.enclosed {
            Some((enclosure, own)) => enclosure.command(&self.supervisor, &self.places, own, &self.env, program, args),
            None => {
                let mut command = self.supervisor.command_elsewhere(&self.places, program, args);
                command.envs(&self.env);
                command
            }
        };
        command.current_dir(&self.work);
        command
    }

    /// Copies the tree, for a command whose effects other commands must not find. No command may have changed it.
    pub(super) async fn fork(&self) -> Result<Self, SandboxError> {
        let (from, registry) = (self.base.path().to_owned(), Arc::clone(&self.registry));
        let deadline = Deadline::new(self.timeout, SETTING);
        let base = blocking(move || {
            let root = from.parent().unwrap_or(&from);
            let base = Base::make(root, "copy", Purpose::Sandbox, false, &registry)?;
            let copy = || {
                for entry in fs::read_dir(&from)? {
                    let name = entry?.file_name();
                    if name != OWNER {
                        copy_tree(&from.join(&name), &base.path().join(&name), deadline, |_| false)?;
                    }
                }
                Ok(())
            };
            copy().map_err(SandboxError::io("copy", &from))?;
            Ok(base)
        })
        .await?;
        let place = |path: &Path| match path.strip_prefix(self.base.path()) {
            Ok(rest) => base.path().components().chain(rest.components()).collect(),
            Err(_) => path.to_owned(),
        };
        Ok(Self {
            places: self.places.iter().map(|(real, seen)| (place(real), seen.clone())).collect(),
            base,
            registry: Arc::clone(&self.registry),
            timeout: self.timeout,
            supervisor: self.supervisor.clone(),
            env: self.env.clone(),
            work: self.work.clone(),
            enclosed: self.enclosed.clone(),
            remote: self.remote.clone(),
            steering: self.steering.clone(),
        })
    }

    /// Makes later commands run in another enclosure.
    pub(super) fn enclose(&mut self, enclosure: Arc<dyn Enclosure>, surroundings: Surroundings) {
        self.enclosed = Some((enclosure, surroundings));
    }

    /// Returns the shell that commands find in their system.
    pub fn shell(&self) -> &Path {
        let system = self.enclosed.as_ref().and_then(|(enclosure, _)| enclosure.system());
        system.map_or(super::machine_shell(), |system| &system.shell)
    }

    /// Returns the directory that contains the others.
    pub(super) fn path(&self) -> &Path {
        self.base.path()
    }

    /// Returns the real path of the working directory.
    pub fn work(&self) -> PathBuf {
        self.base.path().join(WORK)
    }

    /// Returns the files of the fixture that steer a tool and that the agent had changed or removed.
    pub fn restored(&self) -> &[String] {
        &self.steering.restored
    }

    /// Returns the new tests, if the fixture has tests in files with the same ending.
    pub fn new_tests(&self) -> &[String] {
        &self.steering.new_tests
    }

    /// Returns the files with rewards that commands wrote.
    pub async fn rewards(&self) -> Vec<RewardFile> {
        let base = self.base.path().to_owned();
        blocking(move || Ok(outside::rewards(&base))).await.unwrap_or_default()
    }

    /// Returns the programs that are tests of the fixture.
    pub fn tests(&self) -> &[String] {
        &self.steering.tests
    }

    /// Returns the states of the tests of the fixture and of other files of the tree.
    pub async fn stamps(&self, others: Vec<String>) -> Stamps {
        let (work, paths) = (self.work(), self.steering.tests.iter().cloned().chain(others).collect::<Vec<_>>());
        let read = blocking(move || Ok(paths.into_iter().map(|path| (stamp(&work, &path), path)).collect()));
        Stamps(read.await.unwrap_or_default())
    }

    /// Returns the files that were changed, made or removed since `stamps` were read. A file whose content and time were
    /// set back is not found.
    pub async fn changed_since(&self, Stamps(mut known): Stamps) -> Vec<String> {
        let work = self.work();
        let paths = known.iter().map(|(_, path)| path.clone()).collect();
        let changed_elsewhere = match &self.enclosed {
            Some((enclosure, _)) => enclosure.changed_elsewhere(&work, paths).await,
            None => Vec::new(),
        };
        let compared = blocking(move || {
            known.retain(|(before, path)| changed_elsewhere.contains(path) || stamp(&work, path) != *before);
            Ok(known.into_iter().map(|(_, path)| path).collect())
        });
        compared.await.unwrap_or_default()
    }

    /// Returns the new files that steer a tool, and changed manifests.
    pub fn added(&self) -> &[String] {
        &self.steering.added
    }

    /// Changes the environment of programs that are not isolated, so that git and the programs of hosting services reach
    /// the trial's own remote, if it has one, at the address of the source repository.
    pub fn reach_remote(&self, env: &mut BTreeMap<String, String>) {
        if let Some(remote) = &self.remote {
            remote.add_from(self.base.path(), env);
        }
    }

    /// Returns the folder of the trial's own remote, if the source repository is a folder too.
    pub fn remote_folder(&self) -> Option<PathBuf> {
        self.remote.as_ref().filter(|remote| remote.is_folder())?;
        Some(self.base.path().join(remote::COPY))
    }

    /// Restores files of the fixture, of which `given` is a working directory without the agent's work, and removes those
    /// that it does not have. Returns those that the agent had changed, made or removed.
    ///
    /// # Errors
    /// Returns an error if a file cannot be restored.
    pub async fn restore(&self, given: PathBuf, files: Vec<String>) -> Result<Vec<String>, SandboxError> {
        let (work, deadline) = (self.work(), Deadline::new(self.timeout, SETTING));
        blocking(move || {
            let mut restored = Vec::new();
            for path in files {
                let result = restore(&given, Path::new(&path), &work, deadline);
                if result.map_err(SandboxError::io("restore", Path::new(&path)))? {
                    restored.push(path);
                }
            }
            Ok(restored)
        })
        .await
    }

    /// Replaces files by those of the agent, of which `work` is the working directory. A file that the agent removed, or
    /// replaced by something else, is removed.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written.
    pub async fn take(&self, work: PathBuf, files: Vec<String>) -> Result<(), SandboxError> {
        let to = self.work();
        blocking(move || {
            for path in files {
                let path = Path::new(&path);
                take(&work, path, &to.join(path)).map_err(SandboxError::io("take", path))?;
            }
            Ok(())
        })
        .await
    }

    /// Prepares the working directory for programs that are not isolated: removes the links that lead out of it.
    ///
    /// # Errors
    /// Returns an error if a link cannot be removed.
    pub async fn disarm(&self) -> Result<(), SandboxError> {
        let work = self.work();
        blocking(move || outward_links::remove(&work).map_err(SandboxError::io("remove links from", &work))).await
    }

    /// Removes the copy.
    ///
    /// # Errors
    /// Returns an error if a part of it cannot be removed.
    pub fn close(self) -> BoxFuture<'static, Result<(), SandboxError>> {
        Box::pin(blocking(move || {
            let path = self.base.path().to_owned();
            self.base.remove().map_err(SandboxError::io("remove the copy", &path))
        }))
    }
}

/// States of files of a grading tree.
#[derive(Debug)]
pub struct Stamps(Vec<(Option<Stamp>, String)>);

/// Inode, size and modification time of a file, without following a link.
type Stamp = (u64, u64, i64, i64);

fn stamp(work: &Path, path: &str) -> Option<Stamp> {
    let meta = work.join(path).symlink_metadata().ok()?;
    Some((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
}

/// Returns the files that these globs take from the agent although they steer tools.
pub(super) fn taken(globs: &[String]) -> io::Result<GlobSet> {
    let mut set = GlobSet::builder();
    for glob in globs {
        set.add(Glob::new(glob).map_err(io::Error::other)?);
    }
    set.build().map_err(io::Error::other)
}

/// Copies the agent's directory `from` to `to` with `copy`. If the agent closed a folder in it, it is opened first.
fn opened(from: &Path, to: &Path, mut copy: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    match copy() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            removal::open_up(from);
            removal::remove(to)?;
            copy()
        }
        copied => copied,
    }
}

/// Gives a test of the fixture in the tree `work` the time `now`, so that a build tool builds it again: what the agent left
/// may be built from another version of it.
fn renew(work: &Path, test: &str, now: SystemTime) -> io::Result<()> {
    match files::find(work, Path::new(test))? {
        Found::File(real) => files::open(&real)?.set_modified(now),
        _ => Ok(()),
    }
}

/// Restores a file of the fixture in `to`, or removes it if there is none. Returns `true` if it was changed, made or
/// missing.
fn restore(given: &Path, path: &Path, to: &Path, deadline: Deadline) -> io::Result<bool> {
    let (source, place) = (given.join(path), to.join(path));
    if source.symlink_metadata().is_err() {
        let is_there = matches!(files::find(to, path)?, Found::File(_));
        return if is_there { vacate(&place).map(|()| true) } else { Ok(false) };
    }
    let is_link = source.is_symlink();
    let is_same = match is_link {
        true => fs::read_link(&source)? == fs::read_link(&place).unwrap_or_default(),
        false => {
            let mode = |path: &Path| path.symlink_metadata().ok().map(|meta| meta.mode() & 0o111);
            let content = |path: &Path| files::read(path, LARGEST).ok();
            mode(&source) == mode(&place) && content(&source) == content(&place)
        }
    };
    // A folder on the way could be a link of the agent.
    let mut folder = to.to_owned();
    let mut is_way_free = true;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(name) = part else { continue };
        folder.push(name);
        if !is_directory(&folder) {
            is_way_free = false;
            vacate(&folder)?;
            fs::create_dir(&folder)?;
        }
    }
    if is_same && is_way_free {
        return Ok(false);
    }
    make_writable(place.parent().unwrap_or(to))?;
    vacate(&place)?;
    if is_link { copy_link(&source, &place) } else { copy_file(&source, &place, deadline) }.map(|()| true)
}

/// Puts the agent's file at `path` below `work` at `place`.
fn take(work: &Path, path: &Path, place: &Path) -> io::Result<()> {
    let content = match files::find(work, path)? {
        Found::File(real) => Some(files::read(&real, LARGEST)?),
        _ => None,
    };
    vacate(place)?;
    content.map_or(Ok(()), |content| fs::write(place, content))
}

/// Removes whatever is at `path`.
fn vacate(path: &Path) -> io::Result<()> {
    if is_directory(path) {
        return removal::remove(path);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Gives the owner all permissions on a folder that the agent may have closed.
fn make_writable(folder: &Path) -> io::Result<()> {
    let mode = folder.metadata()?.mode() & 0o7777;
    if mode & 0o700 == 0o700 {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o700))
}

/// Returns the environment for commands: that of the sandbox at `base`, without startup files. `PATH` has only absolute
/// entries outside the sandbox, unless `keeps_path` says that the suite sets it.
pub(super) fn environment(
    mut env: BTreeMap<String, String>,
    base: &Path,
    keeps_path: bool,
) -> BTreeMap<String, String> {
    if !keeps_path && let Some(path) = inspection::environment(&env, base).remove("PATH") {
        env.insert("PATH".to_owned(), path);
    }
    for name in STARTUP {
        env.remove(name);
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_has_a_clean_path_and_no_startup_files() {
        let env = [("PATH", "/bin:.:/box/bin:rel"), ("BASH_ENV", "x"), ("A", "b")];
        let env: BTreeMap<String, String> = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let clean = environment(env.clone(), Path::new("/box"), false);
        assert_eq!((clean["PATH"].as_str(), clean["A"].as_str(), clean.get("BASH_ENV")), ("/bin", "b", None));
        assert_eq!(environment(env, Path::new("/box"), true)["PATH"], "/bin:.:/box/bin:rel");
    }

    #[test]
    fn a_restored_file_does_not_go_through_a_link_of_the_agent() {
        let scratch = tempfile::tempdir().unwrap();
        let [given, work, outside] = ["given", "work", "outside"].map(|name| scratch.path().join(name));
        for folder in [&given.join("tests"), &work, &outside] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(given.join("tests/conftest.py"), "ours").unwrap();
        fs::write(outside.join("conftest.py"), "ours").unwrap();
        std::os::unix::fs::symlink(&outside, work.join("tests")).unwrap();
        let deadline = Deadline::new(std::time::Duration::from_secs(60), "setup_timeout");
        let path = Path::new("tests/conftest.py");
        assert!(restore(&given, path, &work, deadline).unwrap());
        assert!(is_directory(&work.join("tests")));
        assert!(!restore(&given, path, &work, deadline).unwrap());
    }
}
