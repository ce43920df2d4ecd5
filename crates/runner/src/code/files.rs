//! A scenario's access to the sandbox: files below the agent's working directory, and nothing else.

use std::fs;
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use files::Found;
use sandbox::{Sandbox, supervise};
use script::Value;

/// Maximum size of a file that can be read, in bytes.
const LARGEST: u64 = 8 << 20;

/// Maximum number of names in a directory listing.
const MOST_NAMES: usize = 10_000;

/// Maximum number of bytes kept of each of a command's outputs.
const MOST_OUTPUT: usize = 1 << 20;

/// Error of everything that needs a sandbox, if there is none.
pub(crate) const WITHOUT_SANDBOX: &str = " is not available here: the agent runs without a sandbox";

/// Files of a sandbox, if there is one.
pub(crate) struct Files(pub(crate) Option<Arc<dyn Sandbox>>);

impl Files {
    /// Returns the sandbox, which `member` of the agent needs.
    fn sandbox(&self, member: &str) -> Result<&Arc<dyn Sandbox>, String> {
        self.0.as_ref().ok_or_else(|| format!("`agent.{member}`{WITHOUT_SANDBOX}"))
    }

    /// Returns the content of the file at `path`, as text.
    pub(crate) async fn read(&self, path: String) -> Result<Value, String> {
        self.find(path, |found, path| match found {
            Found::File(there) => text(&there, path).map(Value::String),
            _ => Err(format!("there is no file `{path}` in the sandbox")),
        })
        .await
    }

    /// Returns the names in the directory at `path`, sorted; those of directories end with `/`.
    pub(crate) async fn list(&self, path: String) -> Result<Value, String> {
        self.find(path, |found, path| match found {
            Found::Directory(there) => names(&there).map_err(|error| format!("cannot list `{path}`: {error}")),
            _ => Err(format!("there is no directory `{path}` in the sandbox")),
        })
        .await
    }

    /// Returns `true` if anything exists at `path`.
    pub(crate) async fn exists(&self, path: String) -> Result<Value, String> {
        self.find(path, |found, _| Ok(Value::Bool(found != Found::Nothing))).await
    }

    /// Runs `command` in the working directory and returns its result.
    pub(crate) async fn run(&self, command: &str, timeout: Duration) -> Result<Value, String> {
        let process = self.sandbox("run")?.command("/bin/sh".as_ref(), &["-c".as_ref(), command.as_ref()], &[]);
        let output = supervise::run(process, timeout, MOST_OUTPUT).await;
        let output = output.map_err(|error| format!("cannot run `{command}`: {error}"))?;
        if output.timed_out {
            return Err(format!("`{command}` did not finish within {} s", timeout.as_secs_f64()));
        }
        let code = output.status.code().ok_or_else(|| format!("`{command}` was killed with its supervisor"))?;
        Ok(Value::Map(vec![
            ("stdout".into(), output.stdout.text().into()),
            ("stderr".into(), output.stderr.text().into()),
            ("exitCode".into(), f64::from(code).into()),
        ]))
    }

    /// Calls `work` with the entry at `path`, on a thread where waiting for a disk does not block other trials.
    async fn find(
        &self,
        path: String,
        work: impl FnOnce(Found, &str) -> Result<Value, String> + Send + 'static,
    ) -> Result<Value, String> {
        let root = self.sandbox("files")?.work().to_owned();
        let reply_probes = move || work(inside(&root, &path)?, &path);
        tokio::task::spawn_blocking(reply_probes)
            .await
            .unwrap_or_else(|_| Err("reading the sandbox did not finish".to_owned()))
    }
}

/// Returns the entry at `path` below `root`.
fn inside(root: &Path, path: &str) -> Result<Found, String> {
    let outside = || format!("`{path}` leads out of the sandbox");
    match files::find(root, Path::new(path)) {
        // The root directory has no name within itself.
        _ if path.split('/').all(|part| matches!(part, "" | ".")) && !path.starts_with('/') => {
            Ok(Found::Directory(root.to_owned()))
        }
        Ok(Found::Outside) => Err(outside()),
        // Does not reveal what exists outside.
        Ok(Found::Nothing) if Path::new(path).components().any(|part| part == Component::ParentDir) => Err(outside()),
        found => found.map_err(|error| format!("could not inspect `{path}`: {error}")),
    }
}

fn text(there: &Path, path: &str) -> Result<String, String> {
    let bytes = files::read(there, LARGEST).map_err(|error| format!("cannot read `{path}`: {error}"))?;
    String::from_utf8(bytes).map_err(|_| format!("`{path}` is not UTF-8 text"))
}

fn names(there: &Path) -> std::io::Result<Value> {
    let mut names = Vec::new();
    for entry in fs::read_dir(there)?.take(MOST_NAMES) {
        let entry = entry?;
        let end = if entry.file_type()?.is_dir() { "/" } else { "" };
        names.push(format!("{}{end}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    Ok(Value::List(names.into_iter().map(Value::String).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_sandbox_are_not_visible() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("work");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(base.join("secret"), "x").unwrap();
        fs::write(root.join("a/b.txt"), "b").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        assert_eq!(inside(&root, "a/../a/b.txt"), Ok(Found::File(root.join("a/b.txt"))));
        let top = Ok(Found::Directory(root.clone()));
        assert_eq!((inside(&root, "gone"), inside(&root, "")), (Ok(Found::Nothing), top));
        for path in ["link", "../secret", "../gone", "/etc/passwd", "a/../../secret"] {
            assert!(inside(&root, path).unwrap_err().contains("leads out"), "{path}");
        }
        let listed = Value::List(vec!["a/".into(), "link".into()]);
        assert_eq!((names(&root).unwrap(), text(&root.join("a/b.txt"), "a/b.txt")), (listed, Ok("b".into())));
    }
}
