//! Copies a sandbox's directories to a remote sandbox and back.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use model::text::shell_quoted;

use super::{Maker, failed};
use crate::SandboxError;
use crate::blocking::blocking;
use crate::copy::AGENT_HOME;
use crate::digest;
use crate::owner::{Base, Purpose};
use crate::removal;
use crate::service::ServiceError;
use crate::supervise::run;

/// Directories of a sandbox.
const DIRECTORIES: [&str; 3] = ["work", "home", "tmp"];

/// Name of the archive.
const ARCHIVE: &str = "archive.tar";

/// Value of the variable `TAR_OPTIONS` with which GNU tar keeps the fractions of seconds of times, by which build tools
/// order files. Others, such as that of BusyBox, ignore the variable.
const TAR_OPTIONS: &str = "--format=pax";

/// Maximum size of the files to upload, in bytes.
const MAX_UPLOAD: u64 = 1 << 30;

/// Maximum size of an error message from `tar`, in bytes.
const MAX_OUTPUT: usize = 4096;

/// Copies the directories in `from` into the folder `base` of a remote sandbox.
pub(super) async fn upload(maker: &Maker, toolbox: &str, from: &Path, base: &Path) -> Result<(), SandboxError> {
    let cannot = |error: ServiceError| failed("the files cannot be copied to the remote sandbox", &error);
    let stage = stage(maker, from)?;
    let archive = stage.path().join(ARCHIVE);
    let names = DIRECTORIES.into_iter().chain([AGENT_HOME]);
    let present: Vec<&str> = names.filter(|name| from.join(name).is_dir()).collect();
    let mut args = vec![OsStr::new("-cf"), archive.as_os_str(), OsStr::new("-C"), from.as_os_str(), OsStr::new("--")];
    args.extend(present.iter().map(OsStr::new));
    tar(maker, from, &args).await?;
    let packed = blocking(move || {
        let read = files::read(&archive, MAX_UPLOAD).map_err(SandboxError::io("read", &archive));
        read.and_then(|packed| stage.remove().map_err(SandboxError::io("remove", &archive)).map(|()| packed))
    })
    .await?;
    let remote = remote_archive(base);
    maker.service.upload(toolbox, &remote, &packed).await.map_err(cannot)?;
    let (place, remote) = (shell_quoted(&base.to_string_lossy()), shell_quoted(&remote));
    let script = format!("mkdir -p {place} && tar -xf {remote} -C {place} && rm -f {remote}");
    execute(maker, toolbox, &script, 0).await
}

/// Replaces the directories in `base` by those in the remote sandbox. Directories that the agent removed are removed
/// here too.
pub(super) async fn download(maker: &Maker, toolbox: &str, base: &Path) -> Result<(), SandboxError> {
    let cannot = |error: ServiceError| failed("the files cannot be copied from the remote sandbox", &error);
    let remote = remote_archive(base);
    let (place, quoted_archive) = (shell_quoted(&base.to_string_lossy()), shell_quoted(&remote));
    // `tar` exits with 1 or 2 if a file changes while it is read, or if a file cannot be read.
    let script = format!(
        "cd {place} || exit 0; set --; for d in {}; do [ -d $d ] && set -- \"$@\" $d; done; \
         TAR_OPTIONS={TAR_OPTIONS} tar -cf {quoted_archive} -- \"$@\"",
        DIRECTORIES.join(" ")
    );
    execute(maker, toolbox, &script, 2).await?;
    let stage = stage(maker, base)?;
    let archive = stage.path().join(ARCHIVE);
    let place = stage.path().join("files");
    fs::create_dir(&place).map_err(SandboxError::io("make the directory", &place))?;
    match maker.service.download(toolbox, &remote, &archive).await {
        // There is no archive, because the agent removed everything.
        Err(ServiceError::Missing(_)) => {}
        done => {
            done.map_err(cannot)?;
            execute(maker, toolbox, &format!("rm -f {quoted_archive}"), 0).await?;
            let place = place.as_os_str();
            let args = ["-xf".as_ref(), archive.as_os_str(), "--no-same-owner".as_ref(), "-C".as_ref(), place];
            tar(maker, base, &args).await?;
        }
    }
    let base = base.to_owned();
    blocking(move || {
        for name in DIRECTORIES {
            let (old, new) = (base.join(name), place.join(name));
            removal::remove(&old).map_err(SandboxError::io("replace", &old))?;
            if new.symlink_metadata().is_ok() {
                fs::rename(&new, &old).map_err(SandboxError::io("replace", &old))?;
            }
        }
        let path = stage.path().to_owned();
        stage.remove().map_err(SandboxError::io("remove", &path))
    })
    .await
}

/// Returns those of the files `paths` that differ between the working directory `work` on this machine and that below
/// `base` in a remote sandbox.
pub(super) async fn changed(
    maker: &Maker,
    toolbox: &str,
    base: &Path,
    work: &Path,
    paths: Vec<String>,
) -> Result<Vec<String>, ServiceError> {
    let quoted: Vec<String> = paths.iter().map(|path| shell_quoted(path)).collect();
    let folder = shell_quoted(&base.join("work").to_string_lossy());
    let files = quoted.join(" ");
    let script = format!("cd {folder} && for f in {files}; do sha256sum < \"$f\" 2> /dev/null || echo missing; done");
    let executed = maker.service.execute(toolbox, &script, maker.limit).await?;
    let work = work.to_owned();
    let compared = blocking(move || {
        let is_changed = |(path, line): (String, &str)| {
            // Links and other kinds of files are not compared.
            let digest = digest::of_file(&work.join(&path), None).ok()?;
            (line.split(' ').next() != Some(&model::text::hex(&digest))).then_some(path)
        };
        Ok(paths.into_iter().zip(executed.result.lines()).filter_map(is_changed).collect())
    });
    Ok(compared.await.unwrap_or_default())
}

/// Creates a directory for an archive, next to the sandbox's own.
fn stage(maker: &Maker, base: &Path) -> Result<Base, SandboxError> {
    Base::make(base.parent().unwrap_or(base), "transfer", Purpose::Sandbox, false, &maker.registry)
}

/// Returns the path of the archive in the remote sandbox.
fn remote_archive(base: &Path) -> String {
    format!("/tmp/.{}.tar", base.file_name().unwrap_or_default().to_string_lossy())
}

async fn execute(maker: &Maker, toolbox: &str, script: &str, most: i64) -> Result<(), SandboxError> {
    let cannot = |reason: String| SandboxError::Service { kind: "daytona", reason, is_final: false };
    let executed = maker.service.execute(toolbox, script, maker.limit).await;
    let executed = executed.map_err(|error| failed("the files cannot be copied", &error))?;
    match executed.exit_code {
        0 => Ok(()),
        code if code <= most => Ok(()),
        code => Err(cannot(format!("the files cannot be copied: exit code {code}: {}", last_line(&executed.result)))),
    }
}

/// Runs `tar` on this machine.
async fn tar(maker: &Maker, place: &Path, args: &[&OsStr]) -> Result<(), SandboxError> {
    let mut command = maker.supervisor.command("tar", args);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C").env("TAR_OPTIONS", TAR_OPTIONS);
    command.current_dir(place.parent().unwrap_or(place));
    let limit = maker.limit.max(Duration::from_secs(1));
    let output = run(command, limit, MAX_OUTPUT).await.map_err(SandboxError::io("run tar for", place))?;
    if output.status.success() {
        return Ok(());
    }
    let how = if output.timed_out { "did not finish in time".to_owned() } else { last_line(&output.stderr.text()) };
    Err(SandboxError::Service { kind: "daytona", reason: format!("`tar` on this machine: {how}"), is_final: false })
}

fn last_line(text: &str) -> String {
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").trim().to_owned()
}
