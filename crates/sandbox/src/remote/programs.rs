//! Programs in a trial's sandbox that replace those that would reach the real remote: `gh`, `glab`, git's transports,
//! and `ssh` as git starts it.
//!
//! They find everything relative to their own path, so they also work in a copy of a sandbox. Git looks for its
//! transports in its folder of programs, and a folder of links replaces that. Rewriting the address in git's
//! configuration would not do: `git remote get-url` shows the rewritten address, and agents read owner and name from
//! it.

use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use model::text::shell_quoted;

use super::{COPY, SERVICE, address};
use crate::supervise::STAND_IN;

/// Folder that replaces git's own folder of programs, inside the trial's folder of programs.
pub(super) const GIT: &str = "git-core";
/// Folder of the program that git starts instead of `ssh`.
pub(super) const SSH: &str = "transport";

/// Beginning of the transports: finds the place of an address, and the repository to use instead.
const COMMON: &str = r#"#!/bin/sh
place() {
    case $1 in
        *://*) rest=${1#*://}; host=${rest%%/*}; path=${rest#*/} ;;
        *) host=${1%%:*}; path=${1#*:} ;;
    esac
    host=${host##*@}; host=${host%%:*}; path=${path#/}; path=${path%/}
    printf '%s/%s' "$host" "${path%.git}" | tr '[:upper:]' '[:lower:]'
}
here=${0%/*}
serve() {
    unset $(git rev-parse --local-env-vars)
    exec git "$1" "$here/../../@COPY@"
}
"#;

/// Git's transport for `http://` and `https://` addresses, in git's protocol for such programs.
const HTTP: &str = r#"
[ "$(place "$2")" = @PLACE@ ] || exec @PROGRAMS@/"${0##*/}" "$@"
while IFS= read -r line; do
    case $line in
        capabilities) printf 'connect\n\n' ;;
        'connect git-upload-pack' | 'connect git-receive-pack') printf '\n'; serve "${line#connect git-}" ;;
        '') exit 0 ;;
        *) printf 'unsupported: %s\n' "$line" >&2; exit 1 ;;
    esac
done
"#;

/// Program that git starts instead of `ssh`. Its last arguments are a host and a command.
const SSH_PROGRAM: &str = r#"
host= command=
for argument; do host=$command command=$argument; done
path=${command#*\'}; path=${path%\'}
if [ "$(place "$host:$path")" = @PLACE@ ]; then
    case $command in
        git-upload-pack*) serve upload-pack ;;
        git-receive-pack*) serve receive-pack ;;
    esac
fi
exec ssh "$@"
"#;

/// Program of a hosting service.
const FORGE: &str = r#"#!/bin/sh
exec @TRIALRUN@ @ROLE@ @NAME@ "${0%/*}/@SERVICE@" "$@"
"#;

/// Creates the folder `bin` with all programs. `trialrun` is this program, and `git` is git's folder of programs.
pub(super) fn install(bin: &Path, address: &str, trialrun: &Path, git: &Path) -> io::Result<()> {
    fs::create_dir(bin)?;
    for name in ["gh", "glab"] {
        let text = FORGE.replace("@TRIALRUN@", &shell_quoted(&trialrun.to_string_lossy()));
        program(
            &bin.join(name),
            &text.replace("@ROLE@", STAND_IN).replace("@NAME@", name).replace("@SERVICE@", SERVICE),
        )?;
    }
    let Some(place) = address::place(address) else { return Ok(()) };
    let complete = |text: &str| {
        let text = format!("{COMMON}{text}").replace("@COPY@", COPY);
        text.replace("@PLACE@", &shell_quoted(&place.to_lowercase()))
            .replace("@PROGRAMS@", &shell_quoted(&git.to_string_lossy()))
    };
    let (transports, ssh) = (bin.join(GIT), bin.join(SSH));
    fs::create_dir(&transports)?;
    for entry in fs::read_dir(git)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_transport = ["git-remote-http", "git-remote-https"].iter().any(|transport| name == *transport);
        if !is_transport {
            symlink(entry.path(), transports.join(&name))?;
        }
    }
    for name in ["git-remote-http", "git-remote-https"] {
        program(&transports.join(name), &complete(HTTP))?;
    }
    fs::create_dir(&ssh)?;
    program(&ssh.join("ssh"), &complete(SSH_PROGRAM))
}

fn program(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    fs::File::options().write(true).create_new(true).mode(0o755).open(path)?.write_all(text.as_bytes())
}
