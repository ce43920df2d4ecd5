//! Templates: fixtures are built once and copied for each trial.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use model::{FixtureFile, Fixtures, RemoteMode, Skill};
use tokio::sync::OnceCell;

use super::blocking::blocking;
use super::deadline::Deadline;
use super::git::Git;
use super::git_state::GitState;
use super::installation::{Installation, not_installed};
use super::owner::{Base, Purpose};
use super::registry::Registry;
use super::remote::{RemoteSource, RemoteSources};
use super::repository::RepositorySnapshot;
use super::snapshot::Snapshot;
use super::steering::SteeringFiles;
use super::tree::{self, Item, Writer};
use super::{Request, SandboxError, environment, key, unpack};
use crate::supervise::Supervisor;

/// A working directory, ready to be copied.
#[derive(Debug)]
pub(super) struct Template {
    work: PathBuf,
    items: Vec<Item>,
    pub(super) files: Arc<Files>,
}

/// Content of a working directory, with which a later state is compared.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) snapshot: Snapshot,
    pub(super) repository: Option<GitState>,
    /// Output of `git status`, if it was run.
    pub(super) status: Option<Vec<String>>,
    /// State of the repository without its remotes, recorded by the first trial that watches it.
    pub(super) repository_snapshot: OnceCell<Option<RepositorySnapshot>>,
    /// Files that steer tools, listed for the first grading tree.
    steering: OnceLock<SteeringFiles>,
}

impl Files {
    /// Returns the content of a working directory in which setup commands ran.
    pub(super) fn after_setup(snapshot: Snapshot, repository: Option<GitState>) -> Self {
        Self { snapshot, repository, ..Self::default() }
    }

    /// Returns the files that steer tools.
    pub(super) fn steering(&self) -> &SteeringFiles {
        self.steering.get_or_init(|| SteeringFiles::among(self.snapshot.paths()))
    }

    /// Returns `true` if the repository, apart from its files, is certainly unchanged.
    pub(super) fn is_repository(&self, now: Option<&GitState>) -> bool {
        self.repository.as_ref().zip(now).is_some_and(|(before, now)| now.is_as(before))
    }
}

impl Template {
    /// Returns the working directory.
    pub(super) fn work(&self) -> &Path {
        &self.work
    }

    /// Copies the template into the empty directory `to`.
    pub(super) fn copy(&self, to: &Path) -> Result<(), SandboxError> {
        unpack::unpack(&self.work, &self.items, to).map_err(SandboxError::io("copy the fixture to", to))
    }
}

/// Templates of a run, in their own directory.
pub(super) struct Templates {
    pub(super) root: PathBuf,
    pub(super) env: Arc<BTreeMap<String, String>>,
    pub(super) supervisor: Supervisor,
    pub(super) registry: Arc<Registry>,
    pub(super) base: OnceCell<Base>,
    pub(super) cache: Mutex<TemplateCache>,
    pub(super) sources: RemoteSources,
}

/// Templates, by request and by the key of their content.
#[derive(Default)]
pub(super) struct TemplateCache {
    /// By the addresses of the requested objects, so that a trial with the same request does not have to read
    /// anything. The objects are kept alive here.
    requested: HashMap<(usize, usize, String, bool), RequestedTemplate>,
    built: HashMap<[u8; 32], Arc<OnceCell<Arc<Template>>>>,
}

struct RequestedTemplate {
    template: Arc<OnceCell<Arc<Template>>>,
    _alive: (Arc<Fixtures>, Option<Arc<Skill>>),
}

impl Templates {
    /// Returns the template for a request; `None` if the request contains no files.
    pub(super) async fn get(&self, request: &Request) -> Result<Option<Arc<Template>>, SandboxError> {
        let fixtures = &request.fixtures;
        let skill = request.skill.as_ref();
        let needed = fixtures.git_init
            || !fixtures.directories.is_empty()
            || !fixtures.copy_trees.is_empty()
            || [&fixtures.files_committed, &fixtures.files_staged, &fixtures.files_unstaged]
                .iter()
                .any(|files| !files.is_empty());
        if !needed && skill.is_none() && request.source_repo.is_none() {
            return Ok(None);
        }
        let template = self.requested(request).get_or_try_init(|| self.find_or_build(request)).await.cloned();
        template.map(Some)
    }

    fn requested(&self, request: &Request) -> Arc<OnceCell<Arc<Template>>> {
        let skill = request.skill.as_ref();
        let identity = (
            Arc::as_ptr(&request.fixtures) as usize,
            skill.map_or(0, |(skill, _)| Arc::as_ptr(skill) as usize),
            skill.map(|(_, folder)| folder.clone()).unwrap_or_default(),
            request.remote == RemoteMode::Real,
        );
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let requested = cache.requested.entry(identity).or_insert_with(|| RequestedTemplate {
            template: Arc::default(),
            _alive: (Arc::clone(&request.fixtures), skill.map(|(skill, _)| Arc::clone(skill))),
        });
        Arc::clone(&requested.template)
    }

    async fn find_or_build(&self, request: &Request) -> Result<Arc<Template>, SandboxError> {
        let installation = Installation::of(request);
        let fixtures = Arc::clone(&request.fixtures);
        let (skill, source) = (installation.clone(), request.source_repo.clone());
        let key = blocking(move || {
            key::of(&fixtures, skill.as_ref(), source.as_deref())
                .map_err(|error| SandboxError::fixture(error.to_string(), fixtures.source.as_ref()))
        })
        .await?;
        let built = {
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cache.built.entry(key).or_default())
        };
        let name = model::text::hex(&key[..8]);
        built.get_or_try_init(|| self.build(request, installation, &name)).await.cloned()
    }

    /// Builds a template. The order defines the fixture's meaning: trees, committed files, commit, branch, staged
    /// files, unstaged files.
    async fn build(
        &self,
        request: &Request,
        skill: Option<Installation>,
        name: &str,
    ) -> Result<Arc<Template>, SandboxError> {
        let base = self.base.get_or_try_init(|| self.open()).await?.path();
        let work = base.join(name);
        let fixtures = &request.fixtures;
        let git = self.git(request, base);
        let nothing = fixtures.copy_trees.is_empty() && fixtures.files_committed.is_empty();
        let has_repository = fixtures.git_init || request.source_repo.is_some();

        let cleared = work.clone();
        blocking(move || clear(&cleared)).await?;
        match (&request.source_repo, self.source(request).await?) {
            (Some(address), Some(source)) => git.clone_copy(address, &source.bare, &work, &self.env).await?,
            (Some(address), None) => git.clone(address, &work, &self.env).await?,
            (None, _) => {}
        }
        let writing = (work.clone(), Arc::clone(fixtures), skill.clone());
        blocking(move || write_baseline(&writing.0, &writing.1, writing.2.as_ref())).await?;
        // The objects of a repository that came with a tree are kept unchanged.
        let own = !work.join(".git/objects").exists();
        let is_committed = fixtures.files_staged.is_empty() && fixtures.files_unstaged.is_empty();
        let mut status = None;
        if has_repository {
            // A trailing `/` distinguishes a directory from a file.
            let exclude = skill.as_ref().map(|skill| match skill.from.is_file() {
                true => skill.to.clone(),
                false => format!("{}/", skill.to),
            });
            let exclude = exclude.as_deref();
            let branch = fixtures.git_branch.as_deref();
            match request.source_repo {
                // The cloned commit is already the baseline.
                Some(_) if nothing => git.adopt(&work, exclude, branch).await?,
                _ if is_committed => {
                    prepare_times(&work).await?;
                    status = Some(git.commit_and_settle(&work, nothing, exclude, branch, own).await?);
                }
                _ => git.commit(&work, nothing, exclude, branch).await?,
            }
        }
        write_files(&work, fixtures, "files_staged", |fixtures| &fixtures.files_staged).await?;
        if has_repository && !fixtures.files_staged.is_empty() {
            let staged: Vec<&str> = fixtures.files_staged.iter().map(|file| file.path.as_str()).collect();
            git.stage(&work, &staged).await?;
        }
        write_files(&work, fixtures, "files_unstaged", |fixtures| &fixtures.files_unstaged).await?;
        if has_repository && status.is_none() {
            prepare_times(&work).await?;
            status = Some(git.settle(&work, own).await?);
        }
        let deadline = Deadline::new(request.setup_timeout, "setup_timeout");
        blocking(move || finish(work, status, deadline)).await.map(Arc::new)
    }

    /// Returns the repository from which the trial's own remote is copied, if it has one.
    pub(super) async fn source(&self, request: &Request) -> Result<Option<Arc<RemoteSource>>, SandboxError> {
        let Some(address) = request.source_repo.as_ref().filter(|_| request.remote == RemoteMode::Isolated) else {
            return Ok(None);
        };
        let base = self.base.get_or_try_init(|| self.open()).await?.path();
        self.sources.get(address, &self.git(request, base), base, &self.env).await.map(Some)
    }

    fn git<'a>(&'a self, request: &'a Request, base: &Path) -> Git<'a> {
        Git {
            supervisor: &self.supervisor,
            env: environment::of(&self.env, base, base, base),
            timeout: request.setup_timeout,
            source: request.fixtures.source.as_ref(),
        }
    }

    async fn open(&self) -> Result<Base, SandboxError> {
        let (root, registry) = (self.root.clone(), Arc::clone(&self.registry));
        blocking(move || Base::make(&root, "templates", Purpose::Templates, false, &registry)).await
    }
}

/// Creates an empty directory, removing the remains of a failed attempt.
fn clear(work: &Path) -> Result<(), SandboxError> {
    super::removal::remove(work).map_err(SandboxError::io("clear", work))?;
    fs::create_dir(work).map_err(SandboxError::io("make the directory", work))
}

fn write_baseline(work: &Path, fixtures: &Fixtures, skill: Option<&Installation>) -> Result<(), SandboxError> {
    let mut writer = Writer::new(work);
    if let Some(skill) = skill {
        let installed = match skill.from.is_file() {
            true => fs::read(&skill.from).and_then(|bytes| writer.file(Path::new(&skill.to), &bytes, false)),
            false => writer.tree(&skill.from, Path::new(&skill.to), not_installed),
        };
        installed.map_err(SandboxError::io("install the skill", &skill.from))?;
    }
    for directory in &fixtures.directories {
        let made = writer.directory(Path::new(directory));
        made.map_err(|error| SandboxError::fixture(format!("directories: {error}"), fixtures.source.as_ref()))?;
    }
    for copied in &fixtures.copy_trees {
        let result = writer.tree(&copied.from, Path::new(&copied.to), |_| false);
        result.map_err(|error| SandboxError::fixture(format!("copy_trees: {error}"), Some(&copied.source)))?;
    }
    write(&mut writer, "files_committed", &fixtures.files_committed)
}

/// Writes a list of the fixture's files, which the fixture calls `key`.
async fn write_files(
    work: &Path,
    fixtures: &Arc<Fixtures>,
    key: &'static str,
    files: fn(&Fixtures) -> &[FixtureFile],
) -> Result<(), SandboxError> {
    let (work, fixtures) = (work.to_owned(), Arc::clone(fixtures));
    blocking(move || write(&mut Writer::new(&work), key, files(&fixtures))).await
}

fn write(writer: &mut Writer, key: &str, files: &[FixtureFile]) -> Result<(), SandboxError> {
    for file in files {
        let written = writer.file(Path::new(&file.path), &file.content, file.executable);
        written.map_err(|error| SandboxError::fixture(format!("{key}: {error}"), Some(&file.source)))?;
    }
    Ok(())
}

/// Sets the times that every copy has, which the index must record.
async fn prepare_times(work: &Path) -> Result<(), SandboxError> {
    let work = work.to_owned();
    blocking(move || set_times(&work)).await
}

fn set_times(work: &Path) -> Result<(), SandboxError> {
    let items = tree::list(work, |_| false).map_err(SandboxError::io("read", work))?;
    tree::set_times(work, &items).map_err(SandboxError::io("set the times of", work))
}

fn finish(work: PathBuf, status: Option<Vec<String>>, deadline: Deadline) -> Result<Template, SandboxError> {
    // Times are set again because git has since written to the repository.
    set_times(&work)?;
    let mut items = tree::list(&work, |_| false).map_err(SandboxError::io("read", &work))?;
    unpack::keep_small(&work, &mut items).map_err(SandboxError::io("read", &work))?;
    let snapshot = Snapshot::of(&work).map_err(SandboxError::io("read", &work))?;
    let repository = GitState::at(&work, deadline).map_err(SandboxError::io("read", &work))?;
    let files = Files { status, ..Files::after_setup(snapshot, repository) };
    Ok(Template { work, items, files: Arc::new(files) })
}
