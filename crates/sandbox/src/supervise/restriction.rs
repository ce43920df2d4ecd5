//! Restrictions that a process imposes on itself before it becomes the isolated program: limits on resources, a
//! Landlock ruleset and a filter for system calls. Processes that it starts inherit all of them.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use model::IsolationLayer;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::isolation::{Isolation, Limits};
use super::system_calls;

/// Newest version of Landlock whose rights are used.
const LANDLOCK: ABI = ABI::V6;

/// Sets the limits on the resources of this process and of those that it starts. The limit on the number of processes
/// applies to the user namespaces that are created afterwards.
///
/// # Errors
/// Returns an error if the system refuses one.
pub(super) fn limit(limits: &Limits) -> Result<(), String> {
    for (resource, wanted) in [
        (Resource::RLIMIT_DATA, limits.memory),
        (Resource::RLIMIT_NPROC, limits.processes),
        (Resource::RLIMIT_FSIZE, limits.file_size),
        (Resource::RLIMIT_NOFILE, limits.open_files),
        (Resource::RLIMIT_CPU, limits.cpu_seconds),
        (Resource::RLIMIT_CORE, 0),
    ] {
        let refused = |error| format!("the limit {resource:?} is refused: {error}");
        let (soft, hard) = getrlimit(resource).map_err(refused)?;
        let hard = hard.min(wanted);
        setrlimit(resource, soft.min(hard), hard).map_err(refused)?;
    }
    Ok(())
}

/// Restricts this process: it can write only where the isolation allows it, cannot reach sockets and processes
/// outside, and cannot use system calls that change the system. Returns which of these the system enforces.
pub(super) fn restrict(isolation: &Isolation) -> Vec<IsolationLayer> {
    let layer = |name: &str, result: Result<String, String>| IsolationLayer {
        name: name.to_owned(),
        holds: result.is_ok(),
        detail: result.unwrap_or_else(|reason| reason),
    };
    let system_calls = |()| "a system call filter".to_owned();
    vec![layer("landlock", enforce_landlock(isolation)), layer("seccomp", system_calls::filter().map(system_calls))]
}

fn enforce_landlock(isolation: &Isolation) -> Result<String, String> {
    let status = ruleset(isolation).map_err(|error| error.to_string())?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => Err("the kernel does not enable it".into()),
        (RulesetStatus::NotEnforced, _) => Err("the kernel does not support it".into()),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(format!("version {}", effective_abi as i32)),
        (_, _) => Ok("an unknown version".into()),
    }
}

fn ruleset(isolation: &Isolation) -> Result<RestrictionStatus, landlock::RulesetError> {
    let all = AccessFs::from_all(LANDLOCK);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?;
    let free = ["/proc", "/dev"].map(Path::new).into_iter();
    let writable = free.chain(isolation.writable.iter().map(|(_, to)| to.as_path())).map(|path| (path, all));
    for (path, access) in std::iter::once((Path::new("/"), AccessFs::from_read(LANDLOCK))).chain(writable) {
        // A path that cannot be opened cannot be used either.
        if let Ok(place) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(place, access))?;
        }
    }
    rules.restrict_self()
}
