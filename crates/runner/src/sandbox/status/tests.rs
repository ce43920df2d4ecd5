use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::super::git::{CONFIG, Glance};
use super::super::patience::Patience;
use super::super::snapshot::{Before, Snapshot};
use super::super::tree::{self, FIXTURE_TIME};
use super::*;

/// A repository as sandboxes have them, and what it was before anything changed.
struct Repository {
    _base: tempfile::TempDir,
    work: PathBuf,
    env: BTreeMap<String, String>,
    snapshot: Snapshot,
    glance: Glance,
    status: Vec<String>,
}

impl Repository {
    /// With `committed` in a commit, then with what `change` does to it.
    fn new(committed: &[(&str, &str)], change: impl FnOnce(&Self)) -> Self {
        let base = tempfile::tempdir().unwrap();
        let (work, home) = (base.path().join("work"), base.path().join("home"));
        fs::create_dir(&work).unwrap();
        fs::create_dir(&home).unwrap();
        let env = [
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), home.to_string_lossy().into_owned()),
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        ];
        let (snapshot, glance) = (Snapshot::default(), Glance::default());
        let mut made = Self { _base: base, work, env: env.into(), snapshot, glance, status: Vec::new() };
        made.git(&["init", "-q", "-b", "main", "--template="]);
        let config = made.work.join(".git/config");
        fs::write(&config, fs::read_to_string(&config).unwrap() + CONFIG).unwrap();
        fs::create_dir_all(made.work.join(".git/info")).unwrap();
        fs::write(made.work.join(".git/info/exclude"), "/.claude/skills/note/\n").unwrap();
        for (path, content) in committed {
            made.write(path, content);
        }
        made.git(&["add", "-A"]);
        made.git(&["commit", "-q", "--allow-empty", "-m", "Begin"]);
        change(&made);
        tree::set_times(&made.work, &tree::list(&made.work, |_| false).unwrap()).unwrap();
        made.git(&["update-index", "-q", "--refresh"]);
        made.status = made.git(&["status", "--porcelain"]);
        tree::set_times(&made.work, &tree::list(&made.work, |_| false).unwrap()).unwrap();
        made.snapshot = Snapshot::of(&made.work).unwrap();
        made.glance = Glance::at(&made.work).unwrap();
        made
    }

    /// What git writes, whether it succeeds or not.
    fn git(&self, args: &[&str]) -> Vec<String> {
        let mut git = Command::new("git");
        git.args(["-c", "core.quotePath=false"]).args(args).current_dir(&self.work).env_clear().envs(&self.env);
        git.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_ATTR_NOSYSTEM", "1"), ("GIT_OPTIONAL_LOCKS", "0")]);
        let output = git.output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.work.join(path);
        fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).unwrap();
    }

    /// What is told without git, and what git says.
    fn told(&self) -> (Option<Vec<String>>, Vec<String>) {
        assert!(self.glance.is_as(&Glance::at(&self.work).unwrap()), "the repository is not what it was");
        let patience = Patience::new(Duration::from_secs(60), "setup_timeout");
        let before = Before { snapshot: &self.snapshot, moment: (0, 0) };
        let changes = Snapshot::changes(&self.work, &before, patience).unwrap();
        (after(&self.status, &self.work, &changes, &self.env), self.git(&["status", "--porcelain"]))
    }

    /// That it is told without git, and rightly.
    fn tells(&self, lines: &[&str]) {
        let (told, said) = self.told();
        assert_eq!(said, lines);
        assert_eq!(told.as_deref(), Some(said.as_slice()));
    }

    /// That it is left to git.
    fn leaves(&self) {
        let (told, said) = self.told();
        assert_eq!(told, None, "{said:?}");
    }
}

const SOURCES: &[(&str, &str)] =
    &[("README", "one\n"), ("src/a.c", "a\n"), ("src/b.c", "b\n"), ("src/sub/c.c", "c\n"), ("tool", "#!/bin/sh\n")];

#[test]
fn what_nothing_happened_to_has_the_status_it_had() {
    let repository = Repository::new(SOURCES, |made| {
        made.write("new", "x");
        made.write("README", "two\n");
    });
    repository.tells(&[" M README", "?? new"]);
    let time = std::time::UNIX_EPOCH + Duration::from_secs(FIXTURE_TIME + 100);
    fs::File::options().write(true).open(repository.work.join("tool")).unwrap().set_modified(time).unwrap();
    repository.tells(&[" M README", "?? new"]);
}

#[test]
fn files_that_are_tracked_are_compared() {
    let repository = Repository::new(SOURCES, |made| {
        made.write("staged", "x");
        made.write("src/b.c", "staged");
        made.git(&["add", "staged", "src/b.c"]);
        made.git(&["rm", "-q", "--cached", "tool"]);
    });
    repository.tells(&["M  src/b.c", "A  staged", "D  tool", "?? tool"]);
    repository.write("README", "two\n");
    repository.write("src/b.c", "b again");
    repository.remove("staged");
    repository.remove("src/sub");
    repository.remove("tool");
    fs::set_permissions(repository.work.join("src/a.c"), fs::Permissions::from_mode(0o755)).unwrap();
    repository.tells(&[" M README", " M src/a.c", "MM src/b.c", " D src/sub/c.c", "AD staged", "D  tool"]);
    repository.remove("README");
    symlink("tool", repository.work.join("README")).unwrap();
    repository.tells(&[" T README", " M src/a.c", "MM src/b.c", " D src/sub/c.c", "AD staged", "D  tool"]);
}

#[test]
fn files_that_nobody_tracks_are_listed_by_the_topmost_directory_that_is_theirs() {
    let repository = Repository::new(SOURCES, |made| {
        made.write("loose/deep/a", "x");
        made.write("loose/b", "x");
        made.write("src/loose", "x");
    });
    repository.tells(&["?? loose/", "?? src/loose"]);
    repository.write("NOTE.md", "x");
    repository.write("new/dir/a", "x");
    repository.write("src/new/a", "x");
    repository.write("src/sub/new", "x");
    repository.remove("src/loose");
    repository.remove("loose/b");
    fs::create_dir(repository.work.join("empty")).unwrap();
    repository.tells(&["?? NOTE.md", "?? loose/", "?? new/", "?? src/new/", "?? src/sub/new"]);
    repository.remove("loose/deep/a");
    repository.tells(&["?? NOTE.md", "?? new/", "?? src/new/", "?? src/sub/new"]);
}

#[test]
fn files_that_are_ignored_are_not_listed() {
    let sources =
        [SOURCES, &[(".gitignore", "target/\n*.log\n!keep.log\n"), ("src/.gitignore", "*.py[co]\n")]].concat();
    let repository = Repository::new(&sources, |made| made.write("src/x.pyc", "x"));
    repository.write("target/debug/a", "x");
    repository.write("a.log", "x");
    repository.write("new/b.log", "x");
    repository.write(".claude/skills/note/SKILL.md", "x");
    repository.tells(&[]);
    repository.write("new/b", "x");
    repository.write("src/x.py", "x");
    repository.tells(&["?? new/", "?? src/x.py"]);
    repository.remove("new/b");
    repository.tells(&["?? src/x.py"]);
    repository.write("src/new.pyc", "x");
    repository.leaves();
    repository.remove("src/new.pyc");
    repository.write("keep.log", "x");
    repository.leaves();
    repository.remove("keep.log");
    repository.tells(&["?? src/x.py"]);
    repository.write("new/.gitignore", "*");
    repository.leaves();
}

#[test]
fn what_is_not_plain_is_left_to_git() {
    type Change<'a> = (&'a str, &'a dyn Fn(&Repository));
    let changes: &[Change<'_>] = &[
        ("a name that is quoted", &|made| made.write("a b", "x")),
        ("a name that is not ASCII", &|made| made.write("ä", "x")),
        ("a repository inside", &|made| drop(made.git(&["init", "-q", "inside"]))),
        ("attributes", &|made| made.write("src/.gitattributes", "* text")),
        ("a directory in a file's place", &|made| {
            made.remove("tool");
            made.write("tool/x", "x");
        }),
        ("a file in a directory's place", &|made| {
            made.remove("src");
            made.write("src", "x");
        }),
        ("a link in a directory's place", &|made| {
            made.remove("src/sub");
            symlink("/", made.work.join("src/sub")).unwrap();
        }),
        ("a file of the user's that ignores", &|made| {
            fs::create_dir_all(format!("{}/.config/git", made.env["HOME"])).unwrap();
            fs::write(format!("{}/.config/git/ignore", made.env["HOME"]), "*").unwrap();
            made.write("new", "x");
        }),
        ("a pipe in a file's place", &|made| {
            made.remove("tool");
            nix::unistd::mkfifo(&made.work.join("tool"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        }),
    ];
    for (what, change) in changes {
        let repository = Repository::new(SOURCES, |_| {});
        change(&repository);
        let (told, said) = repository.told();
        assert_eq!(told, None, "{what}: {said:?}");
    }
    let modified = Repository::new(SOURCES, |made| made.write("README", "two\n"));
    modified.write("README", "one\n");
    modified.leaves();
    let attributes = Repository::new(&[("a", "1\n"), (".gitattributes", "* text=auto\n")], |_| {});
    attributes.write("a", "1\r\n");
    attributes.leaves();
    attributes.remove("a");
    attributes.tells(&[" D a"]);
}

/// Numbers that are the same each time (a linear congruential generator).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn path(&mut self) -> String {
        let mut path = String::new();
        for _ in 0..self.below(3) {
            path += self.one(&["a/", "b/", "b.c/", "target/"]);
        }
        path + self.one(&["a", "b", "a.c", "x.log", "y.py", "y.pyc", "b.d"])
    }

    /// Does something to one file, or not where it cannot be done.
    fn change(&mut self, work: &Path) {
        let path = work.join(self.path());
        let _ = match self.below(12) {
            0..5 => fs::create_dir_all(path.parent().unwrap()).and_then(|()| {
                let content = self.one(&["one", "two", "three\n"]);
                fs::write(&path, content)
            }),
            5..8 => fs::remove_file(&path),
            8 => fs::remove_dir_all(path.parent().filter(|parent| *parent != work).unwrap_or(&path)),
            9 => fs::set_permissions(&path, fs::Permissions::from_mode([0o644, 0o755][self.below(2)])),
            10 => fs::remove_file(&path).and_then(|()| symlink(self.one(&["a", "b/a"]), &path)),
            _ => fs::create_dir_all(&path),
        };
    }
}

#[test]
fn what_is_told_of_any_tree_is_what_git_says() {
    let (mut known, mut asked) = (0, 0);
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let repository = Repository::new(&[], |made| {
            for _ in 0..dice.below(12) {
                dice.change(&made.work);
            }
            if dice.below(2) == 0 {
                let patterns =
                    ["*.log\n", "target/\n", "/a/b\n", "*.py[co]\n", "!x.log\n", "b.*\n", "a/**\n", "# x\n\n"];
                let lines: String = (0..3).map(|_| dice.one(&patterns)).collect();
                let place = dice.one(&[".gitignore", "a/.gitignore", ".git/info/exclude"]);
                // There may be a file in the directory's place.
                let _ = fs::create_dir_all(made.work.join("a")).and_then(|()| fs::write(made.work.join(place), lines));
            }
            made.git(&["add", "-A"]);
            made.git(&["commit", "-q", "--allow-empty", "-m", "More"]);
            for _ in 0..dice.below(5) {
                dice.change(&made.work);
            }
            if dice.below(3) == 0 {
                made.git(&["add", "a"]);
            }
            for _ in 0..dice.below(3) {
                dice.change(&made.work);
            }
        });
        for _ in 0..4 {
            for _ in 0..=dice.below(3) {
                dice.change(&repository.work);
            }
            let (told, said) = repository.told();
            match told {
                Some(told) => {
                    assert_eq!(told, said, "seed {seed}, before: {:?}", repository.status);
                    known += 1;
                }
                None => asked += 1,
            }
        }
    }
    assert!(known > 4 * asked, "{known} were known, {asked} had to be asked");
}
