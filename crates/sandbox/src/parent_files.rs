//! Files in the parents of the directory for sandboxes that steer tools. Many tools search all parents of their working
//! directory for settings, and all sandboxes of a user have the same parents.

use std::path::{Path, PathBuf};

/// A file or folder that a tool finds from within every sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentFile {
    /// Its path.
    pub path: PathBuf,
    /// Tool that searches for it.
    pub tool: &'static str,
}

/// Names that tools search for in all parents of their working directory, according to their documentation. Git is kept
/// from doing so by `GIT_CEILING_DIRECTORIES`.
#[rustfmt::skip]
const SEARCHED: [(&str, &[&str]); 11] = [
    ("Bazel", &["MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"]),
    ("Bundler", &["Gemfile"]),
    ("Cargo", &[".cargo/config", ".cargo/config.toml", "Cargo.toml", "rust-toolchain", "rust-toolchain.toml"]),
    ("Claude Code", &["CLAUDE.md", "CLAUDE.local.md"]),
    ("Deno", &["deno.json", "deno.jsonc"]),
    (".NET", &["Directory.Build.props", "Directory.Build.targets", "Directory.Packages.props", "global.json",
        "NuGet.Config", "nuget.config"]),
    ("Go", &["go.mod", "go.work"]),
    ("Maven", &[".mvn"]),
    ("Mocha", &[".mocharc.cjs", ".mocharc.js", ".mocharc.json", ".mocharc.jsonc", ".mocharc.yaml", ".mocharc.yml"]),
    ("Node.js", &["node_modules", "package.json"]),
    ("pytest", &["pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"]),
];

/// Returns the files in `temp`, the directory for sandboxes, and in its parents that tools in every sandbox find.
pub fn parent_files(temp: &Path) -> Vec<ParentFile> {
    let named = || SEARCHED.iter().flat_map(|(tool, names)| names.iter().map(move |name| (*tool, *name)));
    let all = temp.ancestors().flat_map(|parent| named().map(move |(tool, name)| (tool, parent.join(name))));
    all.filter(|(_, path)| path.symlink_metadata().is_ok()).map(|(tool, path)| ParentFile { path, tool }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_in_any_parent_are_found() {
        let root = tempfile::tempdir().unwrap();
        let temp = root.path().join("a/b");
        std::fs::create_dir_all(temp.join(".cargo")).unwrap();
        let own = |temp: &Path| -> Vec<ParentFile> {
            parent_files(temp).into_iter().filter(|file| file.path.starts_with(root.path())).collect()
        };
        assert_eq!(own(&temp), []);
        let files = [("Cargo", temp.join(".cargo/config.toml")), ("pytest", root.path().join("pytest.ini"))];
        files.iter().for_each(|(_, path)| std::fs::write(path, "").unwrap());
        assert_eq!(own(&temp), files.map(|(tool, path)| ParentFile { path, tool }));
    }
}
