//! Starts a container to find out which isolation this machine supports.

use std::fs;
use std::sync::Arc;

use model::IsolationLayer;

use super::engine::{Answer, Engine};
use super::{group_limits, mount, process_limits};
use crate::Host;
use crate::enclosure::OwnSystem;
use crate::owner::{Base, Purpose};
use crate::registry::Registry;
use crate::supervise::Limits;

/// File that proves that the container sees directories of this machine.
const MARK: &str = "mark";

/// Prints the kernel's status of the first process, `PATH`, and whether there is Bash.
const SCRIPT: &str = "while read -r line; do case $line in \
                      CapEff:*|NoNewPrivs:*|Seccomp:*) echo $line;; esac; done < /proc/self/status; \
                      [ -x /bin/bash ] && echo bash; echo \"path:$PATH\"; read -r mark < mark && echo \"$mark\" > copied; \
                      (: > /written) 2> /dev/null && echo writable; exit 0";

/// Result of the probe.
pub(super) struct Found {
    /// Options that the engine accepts: an init process that reaps others, and limits.
    pub(super) options: Vec<String>,
    /// Shell and `PATH` of the image.
    pub(super) system: OwnSystem,
    pub(super) layers: Vec<IsolationLayer>,
}

/// Starts a container of the image.
///
/// # Errors
/// Returns the reason if the engine cannot start a container, or if the container lacks required isolation.
pub(super) fn run(
    engine: &Engine,
    image: &str,
    common: &[String],
    limits: &Limits,
    host: &Host,
    registry: &Arc<Registry>,
) -> Result<Found, String> {
    let root = host.temp.canonicalize().map_err(|error| format!("{}: {error}", host.temp.display()))?;
    let base = Base::make(&root, "probe", Purpose::Sandbox, false, registry).map_err(|error| error.to_string())?;
    let secret = uuid::Uuid::now_v7().to_string();
    let failed = |error: std::io::Error| format!("cannot write in {}: {error}", base.path().display());
    let place = base.path().join("work");
    fs::create_dir(&place).and_then(|()| fs::write(place.join(MARK), format!("{secret}\n"))).map_err(failed)?;
    let place_text = place.to_string_lossy();
    let attempt = |more: &[String]| {
        let mut args = vec!["run".to_owned(), "--rm".to_owned(), "--network".to_owned(), "none".to_owned()];
        args.extend(common.iter().chain(more).cloned().chain(mount(&place, &place, false)));
        args.extend(["--workdir", &place_text, "--entrypoint", "/bin/sh", image, "-c", SCRIPT].map(str::to_owned));
        engine.ask(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (options, answer, refused) = first_accepted(limits, &attempt)?;
    let says = |line: &str| answer.stdout.lines().any(|said| said.trim() == line);
    if fs::read_to_string(place.join("copied")).map_or(true, |copied| copied.trim() != secret) {
        let name = engine.name;
        return Err(format!("`{name}` containers cannot access directories on this machine"));
    }
    if !says("CapEff: 0000000000000000") || !says("NoNewPrivs: 1") || says("writable") {
        return Err(format!(
            "`{}` containers are not confined: they have capabilities, can gain privileges, or can write to the image",
            engine.name
        ));
    }
    let layer = |name: &str, result: Result<String, String>| IsolationLayer {
        name: name.to_owned(),
        holds: result.is_ok(),
        detail: result.unwrap_or_else(|reason| reason),
    };
    let seccomp = if says("Seccomp: 2") {
        Ok("a system call filter")
    } else {
        Err("the engine does not set a system call filter")
    };
    let layers = vec![
        layer("filesystem", Ok("the image, read-only, and the directories of the sandbox".into())),
        layer("processes", Ok("a container for each command".into())),
        layer("limits", refused.map_or_else(|| Ok("of the container and its processes".into()), Err)),
        layer("seccomp", seccomp.map(str::to_owned).map_err(str::to_owned)),
    ];
    let shell = if says("bash") { "/bin/bash" } else { "/bin/sh" };
    let path = answer.stdout.lines().find_map(|line| line.strip_prefix("path:")).map(str::to_owned);
    Ok(Found { options, system: OwnSystem { shell: shell.into(), path }, layers })
}

/// Returns the first set of options that the engine accepts, its output, and the reason why limits are missing.
fn first_accepted(
    limits: &Limits,
    attempt: &dyn Fn(&[String]) -> Result<Answer, String>,
) -> Result<(Vec<String>, Answer, Option<String>), String> {
    let (init, each, group) = (vec!["--init".to_owned()], process_limits(limits), group_limits(limits));
    let (mut of_group, mut last) = (None, String::new());
    for (has_group, has_init) in [(true, true), (true, false), (false, true), (false, false)] {
        let parts = [(has_init, &init), (true, &each), (has_group, &group)];
        let wanted = parts.into_iter().filter(|(is_wanted, _)| *is_wanted);
        let mut options: Vec<String> = wanted.flat_map(|(_, options)| options.iter().cloned()).collect();
        match attempt(&options) {
            Ok(answer) => {
                if answer.stderr.contains("swap limit") {
                    // Without this, the engine would repeat the warning in the output of every command.
                    replace_after(&mut options, "--memory-swap", "-1");
                }
                let warned = answer.stderr.lines().find(|line| line.to_lowercase().contains("discarded"));
                let missing = if has_group { warned.map(str::to_owned) } else { of_group };
                return Ok((options, answer, missing));
            }
            Err(reason) => {
                if has_group {
                    of_group = Some(reason.clone());
                }
                last = reason;
            }
        }
    }
    Err(last)
}

/// Replaces the value of an option.
fn replace_after(options: &mut [String], option: &str, value: &str) {
    if let Some(at) = options.iter().position(|given| given == option)
        && let Some(old) = options.get_mut(at + 1)
    {
        value.clone_into(old);
    }
}
