//! Programs outside the system's folders, and the files that they need.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::supervise::Isolation;

/// Maximum number of entries that are examined in a folder with programs.
const MOST_ENTRIES: usize = 2000;

/// Maximum length of the first line of a script.
const FIRST_LINE: u64 = 512;

/// Maximum number of interpreters that run one another.
const MOST_INTERPRETERS: usize = 4;

/// Folder of Node.js packages, which programs in it need as a whole.
const PACKAGES: &str = "node_modules";

/// Names of folders with programs. The folder around one usually belongs to the same installation.
const PROGRAMS: [&str; 2] = ["bin", "shims"];

/// Folders around folders with programs that also contain private files.
const SHARED: [&str; 2] = [".local", ".cargo"];

/// Collects the paths that programs need, apart from those that are readable anyway.
pub(super) struct Tools<'a> {
    common: &'a Isolation,
    private: &'a [PathBuf],
    links: Vec<PathBuf>,
    paths: BTreeSet<PathBuf>,
}

impl<'a> Tools<'a> {
    /// Creates an empty collection. Nothing that contains one of the folders in `private` is added.
    pub(super) fn new(common: &'a Isolation, private: &'a [PathBuf]) -> Self {
        Self { common, private, links: Vec::new(), paths: BTreeSet::new() }
    }

    /// Returns the paths, those of links last.
    pub(super) fn into_paths(self) -> Vec<PathBuf> {
        let outermost = self.paths.iter().filter(|path| !path.ancestors().skip(1).any(|up| self.paths.contains(up)));
        outermost.cloned().chain(self.links).collect()
    }

    /// Adds the folders in a search path, and the files to which their links lead.
    pub(super) fn add_folders(&mut self, path: &str) {
        for folder in path.split(':').map(Path::new).filter(|folder| folder.is_absolute()) {
            if self.is_readable(folder) || !self.add_tool(folder) {
                continue;
            }
            for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES) {
                if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                    self.add_tool(&entry.path());
                }
            }
        }
    }

    /// Adds a program, which is searched for on `path` if its name has no slash, and its interpreter.
    pub(super) fn add_program(&mut self, program: &OsStr, path: &str) {
        let mut program = program.to_owned();
        for _ in 0..MOST_INTERPRETERS {
            let Some(file) = located(&program, path) else { return };
            self.add_tool(&file);
            let Some(interpreter) = interpreter(&file) else { return };
            program = interpreter.into();
        }
    }

    /// Adds a file or folder, whatever it contains.
    pub(super) fn add(&mut self, path: &Path) {
        let target = self.follow(path);
        if !self.is_readable(&target) {
            self.paths.insert(target);
        }
    }

    /// Adds the installation to which a program, or a folder with programs, belongs. Returns `false` if that would show
    /// a private folder.
    fn add_tool(&mut self, path: &Path) -> bool {
        let target = self.follow(path);
        if self.is_readable(&target) {
            return true;
        }
        let place = self.installation(&target);
        let is_allowed = !self.contains_private(&place);
        if is_allowed {
            self.paths.insert(place);
        }
        is_allowed
    }

    /// Returns where a path leads, and adds the links on the way.
    fn follow(&mut self, path: &Path) -> PathBuf {
        let followed = files::follow(path);
        let links: Vec<PathBuf> = followed.links.into_iter().filter(|link| !self.is_readable(link)).collect();
        self.links.extend(links);
        followed.path
    }

    /// Returns the folder that the programs in `target`, or the program `target`, need as a whole.
    fn installation(&self, target: &Path) -> PathBuf {
        let packages = target.ancestors().filter(|up| up.file_name() == Some(OsStr::new(PACKAGES))).last();
        if let Some(packages) = packages {
            return packages.to_owned();
        }
        let folder = if target.is_dir() { target } else { target.parent().unwrap_or(target) };
        let is_of_programs = folder.file_name().is_some_and(|name| PROGRAMS.iter().any(|known| name == *known));
        let around = folder.parent().filter(|around| {
            is_of_programs
                && around.file_name().is_some_and(|name| !SHARED.iter().any(|shared| name == *shared))
                && !self.contains_private(around)
        });
        around.unwrap_or(target).to_owned()
    }

    fn contains_private(&self, folder: &Path) -> bool {
        self.private.iter().any(|private| private.starts_with(folder))
    }

    fn is_readable(&self, path: &Path) -> bool {
        super::is_below(&self.common.tools, path)
            || (super::is_below(&self.common.readable, path) && !super::is_below(&self.common.hidden, path))
    }
}

/// Returns the path of a program.
fn located(program: &OsStr, path: &str) -> Option<PathBuf> {
    let program = Path::new(program);
    if program.components().count() > 1 {
        return program.is_absolute().then(|| program.to_owned());
    }
    path.split(':').map(|folder| Path::new(folder).join(program)).find(|file| file.is_absolute() && file.is_file())
}

/// Returns the program that runs the script `file`; `None` if it is not a script.
fn interpreter(file: &Path) -> Option<String> {
    let mut start = Vec::new();
    files::open(&files::follow(file).path).ok()?.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let program = words.next()?;
    match Path::new(program).file_name()?.to_str()? {
        "env" => words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned),
        _ => Some(program.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A home with installed programs, and a project in it.
    struct Home {
        _folder: tempfile::TempDir,
        path: PathBuf,
        private: Vec<PathBuf>,
    }

    impl Home {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().canonicalize().unwrap();
            let private = vec![path.clone(), path.join("project")];
            Self { _folder: folder, path, private }
        }

        fn file(&self, path: &str, content: &str) -> PathBuf {
            let file = self.path.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            file
        }

        fn link(&self, path: &str, target: &str) {
            let link = self.path.join(path);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(target, link).unwrap();
        }

        /// Returns the paths that `add` adds, relative to the home.
        fn paths(&self, add: impl FnOnce(&mut Tools<'_>)) -> Vec<String> {
            let common = Isolation { readable: vec!["/usr".into(), "/bin".into()], ..Isolation::default() };
            let mut tools = Tools::new(&common, &self.private);
            add(&mut tools);
            let paths = tools.into_paths();
            paths.iter().map(|path| path.strip_prefix(&self.path).unwrap().to_str().unwrap().to_owned()).collect()
        }
    }

    #[test]
    fn a_linked_program_brings_the_links_and_its_own_file() {
        let home = Home::new();
        home.file(".local/share/agent/versions/1.2.3", "");
        home.link(".local/bin/agent", "../share/agent/versions/1.2.3");
        let program = home.path.join(".local/bin/agent");
        let paths = home.paths(|tools| tools.add_program(program.as_os_str(), ""));
        assert_eq!(paths, [".local/share/agent/versions/1.2.3", ".local/bin/agent"]);
    }

    #[test]
    fn a_package_of_a_project_brings_all_packages_but_not_the_project() {
        let home = Home::new();
        home.file(".nvm/versions/22/bin/node", "");
        home.link(".nvm/current", "versions/22");
        home.file("project/node_modules/cli/bin/cli.js", "#!/usr/bin/env node\n");
        home.link("project/node_modules/.bin/cli", "../cli/bin/cli.js");
        let program = home.path.join("project/node_modules/.bin/cli");
        let path = home.path.join(".nvm/current/bin");
        let paths = home.paths(|tools| tools.add_program(program.as_os_str(), path.to_str().unwrap()));
        let links = ["project/node_modules/.bin/cli", ".nvm/current"];
        assert_eq!(paths, [[".nvm/versions/22", "project/node_modules"], links].concat());
    }

    #[test]
    fn the_search_path_shows_installations_but_no_private_folder() {
        let home = Home::new();
        home.file(".pyenv/shims/python", "");
        home.file("bin/own", "");
        home.file("project/tool", "");
        home.file(".cargo/bin/cargo", "");
        let path = [".pyenv/shims", "bin", "project", ".cargo/bin", "missing"];
        let path = path.map(|folder| home.path.join(folder).to_str().unwrap().to_owned()).join(":");
        let paths = home.paths(|tools| tools.add_folders(&path));
        assert_eq!(paths, [".cargo/bin", ".pyenv", "bin", "missing"]);
    }

    #[test]
    fn a_path_that_is_added_explicitly_is_shown_alone() {
        let home = Home::new();
        let script = home.file("project/bot/bin/main.py", "");
        assert_eq!(home.paths(|tools| tools.add(&script)), ["project/bot/bin/main.py"]);
        assert_eq!(home.paths(|tools| tools.add(Path::new("/usr/bin"))), [""; 0]);
    }
}
