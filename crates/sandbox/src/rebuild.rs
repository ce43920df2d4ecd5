//! Git directories made from a fixture's repository and from what an agent did in it.
//!
//! Settings, hooks, attributes, lists of ignored files and shallow or partial history are the fixture's. The agent's
//! objects are packed and indexed again, so that each has the name of its content. Its references and index entries are
//! read by git and written anew. Its reference logs, which list stashes, are copied. Nothing else is taken, so nothing
//! that the agent left in a git directory can redefine, borrow or hide objects, or run programs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::deadline::Deadline;
use super::git_state::{digests, state_files};
use super::tree::Writer;
use super::tree_copy::{copy_file, copy_tree};
use super::unreadable::Unreadable;

/// State of a repository that the agent may change.
const CHANGEABLE: [&str; 6] = ["HEAD", "index", "packed-refs", "refs", "reftable", LOGS];

/// Folder with the history of each reference. In git, a stash is an entry of such a history.
const LOGS: &str = "logs";

/// Other files of a git directory that decide what git shows.
const FIXED: [&str; 5] = ["config", "config.worktree", "info/exclude", "info/attributes", "shallow"];

/// Settings of the git directories in which commands work. Files that git runs could be in the working directory.
const SETTINGS: &str = "\n[core]\n\thooksPath = /dev/null\n\tfsmonitor = false\n\tuntrackedCache = false\n";

/// Settings with which the index stays up to date in a copy of the repository and its files, as in those of fixtures.
const COPIED: &str = "\ttrustctime = false\n\tcheckStat = minimal\n";

/// Folders within the folder of an import: the agent's packs, and the list of its loose objects.
const PACKS: &str = "packs";
const LOOSE: &str = "loose";

/// The agent's settings, from which only the format, remotes and branches are read.
const THEIRS: &str = "theirs";

/// Script that takes over an agent's state. Arguments: the copy of the agent's state, the new git directory, the
/// fixture's git directory if there is one, and `settings` if remotes and branches are taken too.
pub(super) const IMPORT: &str = r#"
set -e
q=$1 to=$2 given=$3
theirs() { GIT_DIR=$q GIT_WORK_TREE=$q g "$@"; }
ours() { GIT_DIR=$to GIT_WORK_TREE=$q g "$@"; }
format() { ours config --file "$1" --get "extensions.$2" || :; }

config=$to/config
[ -n "$given" ] || config=$q/theirs
case $(format "$config" objectformat) in [sS][hH][aA]256) format='	objectFormat = sha256' ;; *) format= ;; esac
if [ -z "$given" ] && [ -n "$format" ]; then
    printf '[core]\n\trepositoryformatversion = 1\n[extensions]\n%s\n' "$format" >> "$to/config"
fi
case $(format "$q/theirs" refstorage) in [rR][eE][fF]*) format="$format
	refStorage = reftable" ;; esac
[ -z "$format" ] || printf '[core]\n\trepositoryformatversion = 1\n[extensions]\n%s\n' "$format" > "$q/config"

for pack in "$q"/packs/*.pack; do
    [ ! -e "$pack" ] || ours index-pack --stdin --fix-thin < "$pack" > /dev/null
done
if [ -s "$q/loose" ]; then
    theirs pack-objects -q --window=0 --stdout < "$q/loose" | ours index-pack --stdin --fix-thin > /dev/null
fi

# Commits of the fixture are complete unless the agent removed objects.
known=
[ ! -e "$q/whole" ] || known=$(ours for-each-ref --format='^%(objectname)'; ours rev-parse -q --verify HEAD | sed 's/^/^/')
theirs for-each-ref --format='%(objectname) %(refname) %(symref)' > "$q/list"
rm -rf "$to/refs" "$to/reftable" "$to/logs"
mkdir "$to/refs" "$to/refs/heads"
[ ! -d "$q/logs" ] || cp -R "$q/logs" "$to/logs"
ours config --file "$to/config" --unset-all extensions.refstorage || :
sed -n '/ refs\/replace\//d; s#^\([0-9a-f]*\) \(refs/[^ ]*\) .*#\1 \2#p' "$q/list" > "$to/packed-refs"
sed -n 's#^[0-9a-f]* \(refs/remotes/[^/ ]*/HEAD\) \(refs/remotes/[^ ]*\)$#\1 \2#p' "$q/list" | while read -r name target; do
    (cd "$to" && mkdir -p "${name%/*}") && printf 'ref: %s\n' "$target" > "$to/$name"
done
case $(theirs symbolic-ref -q HEAD || :) in
    refs/heads/*) printf 'ref: %s\n' "$(theirs symbolic-ref -q HEAD)" > "$to/HEAD" ;;
    *)
        theirs rev-parse -q --verify HEAD > "$q/head"
        cp "$q/head" "$to/HEAD" ;;
esac
{ sed 's/ .*//' "$to/packed-refs"; ours rev-parse -q --verify HEAD || :; printf '%s\n' "$known"; } | sed '/^$/d' > "$q/tips"
[ ! -s "$q/tips" ] || ours rev-list --objects --quiet --stdin < "$q/tips"

rm -f "$to/index" "$to"/sharedindex.*
if [ -f "$q/index" ]; then
    theirs ls-files -s -z > "$q/entries"
    ours update-index -z --index-info < "$q/entries"
fi

[ "$4" = settings ] || exit 0
ours config --file "$q/theirs" --get-regexp '^(remote\..+\.(url|fetch)|branch\..+\.(remote|merge))$' > "$q/settings" || :
while read -r key value; do
    name=${key%.*}
    case $key in
        remote.*)
            [ -n "$given" ] && ours config --file "$given/config" --get "$name.url" > /dev/null ||
                ours config --file "$to/config" --add "$key" "$value" || : ;;
        *) ours config --file "$to/config" --replace-all "$key" "$value" || : ;;
    esac
done < "$q/settings"
"#;

/// Git directory to make.
#[derive(Debug, Clone)]
pub(super) struct Rebuild {
    /// Git directory as the fixture had it; `None` if the agent made the repository.
    pub(super) given: Option<PathBuf>,
    /// The agent's git directory. If there is none, the fixture's state is kept.
    pub(super) from: Option<PathBuf>,
    /// Path of the new git directory, which must not exist yet.
    pub(super) to: PathBuf,
    /// Folder for what is imported, which must not exist yet.
    pub(super) scratch: PathBuf,
    /// True if the new git directory must not depend on the fixture's, because programs use it that do not see the
    /// fixture's.
    pub(super) is_whole: bool,
    pub(super) is_bare: bool,
    /// True if the fixture has a file that names the git directory, as submodules have.
    pub(super) is_moved: bool,
}

impl Rebuild {
    /// Makes the git directory in the state of the fixture, and collects what must be imported. Returns `false` if
    /// nothing must be.
    pub(super) fn prepare(&self, deadline: Deadline) -> Result<bool, Unreadable> {
        let objects = self.given.as_ref().map(|given| sizes(&given.join("objects"), deadline)).transpose();
        let objects = objects.map_err(Unreadable::machine)?.unwrap_or_default();
        let theirs = self.from.as_ref().map(|from| their_objects(from, deadline)).transpose()?;
        // An agent that removed or repacked objects has only what is left.
        let is_complete =
            theirs.as_ref().is_none_or(|theirs| objects.iter().all(|(path, size)| theirs.get(path) == Some(size)));
        self.lay_out(is_complete, deadline).map_err(Unreadable::machine)?;
        let (Some(from), Some(theirs)) = (&self.from, theirs) else { return Ok(false) };
        let state = |git: &Path| digests(git, CHANGEABLE.iter().chain(&["config"]), deadline);
        if let Some(given) = self.given.as_ref().filter(|_| is_complete) {
            let (old, new) = (state(given).map_err(Unreadable::machine)?, state(from).map_err(Unreadable::machine)?);
            let has_new = theirs.keys().any(|path| !objects.contains_key(path));
            if !has_new && old == new && new.values().all(Option::is_some) {
                return Ok(false);
            }
        }
        fs::create_dir(&self.scratch).map_err(Unreadable::machine)?;
        for folder in [PACKS, "objects/info", "refs"] {
            make_folders(&self.scratch, Path::new(folder)).map_err(Unreadable::machine)?;
        }
        let ours = format!("{}\n", self.to.join("objects").display());
        fs::write(self.scratch.join("objects/info/alternates"), ours).map_err(Unreadable::machine)?;
        if is_complete {
            fs::write(self.scratch.join("whole"), "").map_err(Unreadable::machine)?;
        }
        self.take_state(from, deadline)?;
        let new = theirs.keys().filter(|path| !is_complete || !objects.contains_key(*path));
        self.take_objects(from, new, deadline)?;
        Ok(true)
    }

    /// Makes the git directory in the state of the fixture.
    fn lay_out(&self, has_objects: bool, deadline: Deadline) -> io::Result<()> {
        let Self { given, to, .. } = self;
        match given {
            Some(given) if self.is_whole => {
                let objects = given.join("objects");
                copy_tree(given, to, deadline, |entry| !has_objects && entry.path() == objects)?;
            }
            _ => fs::create_dir(to)?,
        }
        for folder in ["refs", "info", "objects/info", "objects/pack"] {
            make_folders(to, Path::new(folder))?;
        }
        let Some(given) = given else {
            fs::write(to.join("HEAD"), "ref: refs/heads/main\n")?;
            let is_bare = self.is_bare;
            let format = format!("[core]\n\trepositoryformatversion = 0\n\tbare = {is_bare}\n{SETTINGS}{COPIED}");
            return fs::write(to.join("config"), format);
        };
        if self.is_whole {
            let worktree = if self.is_moved { "\tworktree = ..\n" } else { "" };
            let mut config = File::options().append(true).open(to.join("config"))?;
            return config.write_all(format!("{SETTINGS}{worktree}").as_bytes());
        }
        let shared = shared_indexes(given);
        let names = CHANGEABLE.iter().chain(&FIXED).map(PathBuf::from).chain(shared);
        for path in names.flat_map(|name| state_files(&given.join(name))) {
            let name = path.strip_prefix(given).unwrap_or(&path);
            make_folders(to, name.parent().unwrap_or(name))?;
            copy_file(&path, &to.join(name), deadline)?;
        }
        if has_objects {
            let borrowed = format!("{}\n", given.join("objects").display());
            fs::write(to.join("objects/info/alternates"), borrowed)?;
        }
        Ok(())
    }

    /// Copies the agent's state and settings, from which git reads references, index entries and the format.
    fn take_state(&self, from: &Path, deadline: Deadline) -> Result<(), Unreadable> {
        let names = CHANGEABLE.iter().map(PathBuf::from).chain(shared_indexes(from));
        for path in names.flat_map(|name| state_files(&from.join(name))) {
            let name = path.strip_prefix(from).unwrap_or(&path);
            let taken = take(&path, &self.scratch, name, name, deadline);
            // Git works without a log.
            if !(name.starts_with(LOGS) && matches!(taken, Err(Unreadable::Left(_)))) {
                taken?;
            }
        }
        let config = from.join("config");
        match config.symlink_metadata() {
            Ok(_) => take(&config, &self.scratch, Path::new(THEIRS), Path::new("config"), deadline),
            Err(_) => fs::write(self.scratch.join(THEIRS), "").map_err(Unreadable::machine),
        }
    }

    /// Copies the agent's objects. The index of a pack is not needed, because git makes a new one.
    fn take_objects<'a>(
        &self,
        from: &Path,
        new: impl Iterator<Item = &'a PathBuf>,
        deadline: Deadline,
    ) -> Result<(), Unreadable> {
        let mut loose = String::new();
        for path in new {
            let name = Path::new("objects").join(path);
            if let Some(id) = object_id(path) {
                take(&from.join(&name), &self.scratch, &name, &name, deadline)?;
                loose += &format!("{id}\n");
            } else if path.starts_with("pack") && path.extension() == Some(OsStr::new("pack")) {
                let to = Path::new(PACKS).join(path.file_name().unwrap_or_default());
                take(&from.join(&name), &self.scratch, &to, &name, deadline)?;
            }
        }
        fs::write(self.scratch.join(LOOSE), loose).map_err(Unreadable::machine)
    }
}

/// Creates folders below `root`. Nothing is created if `root` was removed meanwhile, as at the end of a stopped run.
fn make_folders(root: &Path, folders: &Path) -> io::Result<()> {
    Writer::new(root).directory(folders).map(drop)
}

/// Copies one of the agent's files, which is called `name` in its git directory, to the path `to` below `root`.
fn take(from: &Path, root: &Path, to: &Path, name: &Path, deadline: Deadline) -> Result<(), Unreadable> {
    let left =
        |error: &dyn std::fmt::Display| Unreadable::Left(format!("`.git/{}` cannot be read: {error}", name.display()));
    make_folders(root, to.parent().unwrap_or(to)).map_err(Unreadable::machine)?;
    if !from.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(left(&"it is not a regular file"));
    }
    match copy_file(from, &root.join(to), deadline) {
        Err(error) if is_machines(&error) => Err(Unreadable::machine(error)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Unreadable::Late(error.to_string())),
        copied => copied.map_err(|error| left(&error)),
    }
}

/// Returns `true` if the machine, rather than a file, caused the error.
fn is_machines(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory)
}

/// Returns the names of the files that contain parts of a split index.
fn shared_indexes(git: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(git).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with("sharedindex.")).map(PathBuf::from).collect()
}

/// Returns the agent's object files and their sizes.
fn their_objects(from: &Path, deadline: Deadline) -> Result<BTreeMap<PathBuf, u64>, Unreadable> {
    let objects = from.join("objects");
    match objects.symlink_metadata() {
        Ok(meta) if meta.is_dir() => sizes(&objects, deadline).map_err(|error| Unreadable::Late(error.to_string())),
        Ok(_) => Err(Unreadable::Left("`.git/objects` is not a directory".to_owned())),
        Err(error) => Err(Unreadable::Left(format!("`.git/objects` cannot be read: {error}"))),
    }
}

/// Returns the files of objects and packs below `objects`, with their sizes.
fn sizes(objects: &Path, deadline: Deadline) -> io::Result<BTreeMap<PathBuf, u64>> {
    let mut sizes = BTreeMap::new();
    for entry in walkdir::WalkDir::new(objects).into_iter().flatten() {
        deadline.check(entry.path())?;
        let path = entry.path().strip_prefix(objects).unwrap_or(entry.path());
        let is_object = object_id(path).is_some() || path.extension() == Some(OsStr::new("pack"));
        if is_object && !entry.file_type().is_dir() {
            // A link or a pipe has no size, and differs from every file.
            let size = entry.metadata().ok().filter(fs::Metadata::is_file).map_or(u64::MAX, |meta| meta.len());
            sizes.insert(path.to_owned(), size);
        }
    }
    Ok(sizes)
}

/// Returns the id of an object from the path of its file below git's objects folder.
pub(super) fn object_id(path: &Path) -> Option<String> {
    let id: String = path.to_str()?.split('/').collect();
    (matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn nothing_is_made_in_a_directory_that_was_removed_meanwhile() {
        let root = tempfile::tempdir().unwrap();
        let (base, from) = (root.path().join("base"), root.path().join("from/.git"));
        fs::create_dir_all(from.join("objects")).unwrap();
        let (to, scratch) = (base.join("work/.git"), base.join("import"));
        for given in [None, Some(from.clone())] {
            for is_whole in [true, false] {
                let (from, to, scratch) = (Some(from.clone()), to.clone(), scratch.clone());
                let rebuild =
                    Rebuild { given: given.clone(), from, to, scratch, is_whole, is_bare: false, is_moved: false };
                assert!(rebuild.prepare(Deadline::new(Duration::from_secs(60), "x")).is_err());
                assert!(!base.exists());
            }
        }
    }
}
