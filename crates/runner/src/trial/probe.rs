//! Probes of the sandbox for assertions, taken once the agent has ended: files, and results of commands.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ::files::Found;
use model::{Change, Collected, FileChange, Need, Probe, Probed};
use sandbox::Sandbox;

use super::control_run::ControlRuns;
use super::{command, files};

/// Maximum number of bytes that are read from a file, and that are recorded of its text.
const MOST_OF_A_FILE: u64 = 16 * 1024 * 1024;

/// Probes everything in `needs`, without duplicates: first the files, then the commands, one after another, in copies of
/// the sandbox. So later probes do not find their traces. `changed` are the files that are known to have changed. If the agent removed or closed its working directory, that is the result of each probe. If it
/// left files that steer tools, `control_runs` adds the results of the commands that pass without the agent's work.
/// `answer` is the agent's last answer, for commands.
pub(crate) async fn run(
    sandbox: &dyn Sandbox,
    needs: impl IntoIterator<Item = Need>,
    changed: &[FileChange],
    answer: Option<&str>,
    control_runs: &ControlRuns<'_>,
) -> Vec<Probe> {
    let (work, home) = (sandbox.work().to_owned(), sandbox.home().to_owned());
    let ruined = match tokio::task::spawn_blocking(move || sandbox::ruin(&work, &home)).await {
        Ok(Ok(reason)) => reason.map(|reason| Probed::Lost { reason }),
        Ok(Err(error)) => Some(Probed::Failed { reason: error.to_string() }),
        Err(_) => Some(Probed::Failed { reason: "looking at the sandbox did not finish".into() }),
    };
    if let Some(found) = ruined {
        return all(needs, &found);
    }
    let mut probes: Vec<Probe> = Vec::new();
    let mut commands: Vec<Need> = Vec::new();
    for need in needs {
        let key = need.key();
        if probes.iter().any(|probe| probe.key == key) || commands.contains(&need) {
            continue;
        }
        match &need {
            Need::File { path } => {
                let found = file(sandbox.work(), path).await;
                probes.push(Probe { key, need, found });
            }
            Need::Files => {
                let found = files::below(sandbox.work(), changed).await;
                probes.push(Probe { key, need, found });
            }
            Need::Command { .. } => commands.push(need),
            // Collected before and after the trial anyway.
            Need::Repository => {}
        }
    }
    if !commands.is_empty() {
        probes.extend(run_in_a_copy(sandbox, commands, changed, answer, control_runs).await);
    }
    probes
}

/// Returns, for everything in `needs`, the result of probing a sandbox in which the agent left nothing to examine.
pub(crate) fn lost(sandbox: &dyn Sandbox, needs: impl IntoIterator<Item = Need>, reason: String) -> Collected {
    Collected {
        files_changed: vec![FileChange { path: ".".to_owned(), change: Change::Deleted }],
        // The repository is always included, so that a case without assertions about files is also known to be lost.
        probes: all(needs.into_iter().chain([Need::Repository]), &Probed::Lost { reason }),
        ..sandbox.places()
    }
}

/// Returns a probe with the result `found` for each need.
fn all(needs: impl IntoIterator<Item = Need>, found: &Probed) -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    for need in needs {
        let key = need.key();
        if probes.iter().all(|known| known.key != key) {
            probes.push(Probe { key, need, found: found.clone() });
        }
    }
    probes
}

/// Runs commands in copies of the sandbox that are created for them and removed afterwards.
async fn run_in_a_copy(
    sandbox: &dyn Sandbox,
    commands: Vec<Need>,
    changed: &[FileChange],
    answer: Option<&str>,
    control_runs: &ControlRuns<'_>,
) -> Vec<Probe> {
    let copy = match sandbox.copy().await {
        Ok(copy) => copy,
        Err(error) => {
            let reason = format!("cannot copy the sandbox to run it in: {error}");
            return all(commands, &Probed::Failed { reason });
        }
    };
    let results = command::run(sandbox, &copy, &commands, control_runs.is_shared(), answer).await;
    let probed = commands.into_iter().zip(results);
    let mut probes: Vec<Probe> = probed.map(|(need, found)| Probe { key: need.key(), need, found }).collect();
    Box::pin(control_runs.add_to(&mut probes, sandbox, &copy, changed)).await;
    // Parts that cannot be removed now are removed with the run's sandboxes.
    let _ = copy.close().await;
    probes
}

async fn file(work: &Path, path: &str) -> Probed {
    let (work, path) = (work.to_owned(), path.to_owned());
    let probed = tokio::task::spawn_blocking(move || look_at(&work, &path)).await;
    match probed {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Probed::Failed { reason: error.to_string() },
        Err(_) => Probed::Failed { reason: "looking at it did not finish".into() },
    }
}

/// Returns what is at `path` below `work`, whose links are resolved. Nothing outside `work` is accessed.
fn look_at(work: &Path, path: &str) -> io::Result<Probed> {
    Ok(match ::files::find(work, Path::new(path))? {
        Found::Nothing => Probed::Nothing,
        Found::Directory(_) => Probed::Directory,
        Found::Special => Probed::Special,
        Found::Outside => Probed::Outside,
        Found::File(real) => contents(::files::open(&real)?)?,
    })
}

fn contents(file: File) -> io::Result<Probed> {
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(MOST_OF_A_FILE).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let recorded = recorded_prefix(&text);
    let clipped = size > bytes.len() as u64 || recorded < text.len();
    text.truncate(recorded);
    Ok(Probed::File { size, text, clipped })
}

/// Returns the length of the part of `text` that is recorded. A control character takes six bytes in the record, so a
/// file full of zeros would need six times its size, several times over.
fn recorded_prefix(text: &str) -> usize {
    let mut left = MOST_OF_A_FILE as usize;
    for (at, character) in text.char_indices() {
        let size = if character.is_ascii_control() && !"\n\r\t".contains(character) { 6 } else { character.len_utf8() };
        let Some(rest) = left.checked_sub(size) else { return at };
        left = rest;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::os::unix::fs::symlink;

    use super::*;

    fn file_of(text: &str) -> Probed {
        Probed::File { size: text.len() as u64, text: text.into(), clipped: false }
    }

    #[test]
    fn paths_outside_the_working_directory_are_not_read() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let work = base.join("work");
        fs::create_dir_all(work.join("folder")).unwrap();
        fs::write(base.join("secret"), "secret").unwrap();
        fs::write(work.join("folder/plain"), "plain").unwrap();
        symlink("folder/plain", work.join("inside")).unwrap();
        symlink("../secret", work.join("outside")).unwrap();
        symlink("..", work.join("up")).unwrap();
        symlink("nowhere", work.join("dangling")).unwrap();
        symlink("loop", work.join("loop")).unwrap();
        let at = |path: &str| look_at(&work, path).unwrap();
        assert_eq!((at("folder/plain"), at("inside")), (file_of("plain"), file_of("plain")));
        assert_eq!(
            (at("folder"), at("missing"), at("inside/x")),
            (Probed::Directory, Probed::Nothing, Probed::Nothing)
        );
        assert_eq!((at("dangling"), at("loop")), (Probed::Special, Probed::Special));
        for path in ["outside", "up/secret", "up/missing", "../secret", "/etc/passwd", "folder/../../secret"] {
            assert_eq!(at(path), Probed::Outside, "{path}");
        }
    }

    #[test]
    fn a_pipe_does_not_block_and_a_long_file_is_truncated() {
        let base = tempfile::tempdir().unwrap();
        let work = base.path().canonicalize().unwrap();
        nix::unistd::mkfifo(&work.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(look_at(&work, "pipe").unwrap(), Probed::Special);
        let size = MOST_OF_A_FILE + 1;
        fs::write(work.join("long"), "x".repeat(usize::try_from(size).unwrap())).unwrap();
        let Probed::File { size: full_size, text, clipped: true } = look_at(&work, "long").unwrap() else {
            panic!("clipped")
        };
        assert_eq!((full_size, text.len() as u64), (size, MOST_OF_A_FILE));
        let large = format!("{}end", "x".repeat(300_014));
        fs::write(work.join("large"), &large).unwrap();
        assert_eq!(look_at(&work, "large").unwrap(), file_of(&large));
        fs::File::create(work.join("zeros")).unwrap().set_len(20 << 30).unwrap();
        let Probed::File { text, clipped: true, .. } = look_at(&work, "zeros").unwrap() else { panic!("clipped") };
        assert_eq!(text.len() as u64, MOST_OF_A_FILE / 6);
        fs::write(work.join("binary"), [b'a', 0xff]).unwrap();
        assert!(matches!(look_at(&work, "binary").unwrap(), Probed::File { text, .. } if text == "a\u{fffd}"));
    }
}
