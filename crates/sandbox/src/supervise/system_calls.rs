//! Filter for system calls by isolated programs. Programs for building, testing and running software do not need these
//! calls; they change the system, or have often been used to escape from a sandbox.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Calls that fail with "operation not permitted".
const DENIED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];

/// Calls that fail as if the kernel did not have them; programs then use older ones, which can be filtered.
const ABSENT: &[libc::c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// Flags of new namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Kinds of sockets that lead to the host of a virtual machine, or to rarely tested parts of the kernel.
const SOCKETS: [libc::c_int; 2] = [libc::AF_VSOCK, libc::AF_ALG];

/// Request `TIOCSTI`, which inserts characters into a terminal's input. C libraries give it different types.
const INSERT_INPUT: u64 = 0x5412;

/// Bit that marks calls in the x32 interface, which otherwise have the same numbers.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Applies the filter to this process.
///
/// # Errors
/// Returns an error if the system refuses it, or if there is no filter for this processor.
pub(super) fn filter() -> Result<(), String> {
    let reason = |error: &dyn std::fmt::Display| error.to_string();
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| reason(&error))?;
    let denied = denied().map_err(|error| reason(&error))?;
    let absent = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
    for (rules, error) in [(absent, libc::ENOSYS), (denied, libc::EPERM)] {
        let action = SeccompAction::Errno(error.unsigned_abs());
        let filter = SeccompFilter::new(with_x32(rules), SeccompAction::Allow, action, arch);
        let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(|error| reason(&error))?;
        seccompiler::apply_filter(&program).map_err(|error| reason(&error))?;
    }
    Ok(())
}

fn denied() -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let has_flag = |flag: libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?;
        SeccompRule::new(vec![condition])
    };
    let is = |argument: u8, value: u64| {
        SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?])
    };
    for call in [libc::SYS_unshare, libc::SYS_clone] {
        rules.insert(call, NAMESPACES.into_iter().map(has_flag).collect::<Result<_, _>>()?);
    }
    let kinds = SOCKETS.into_iter().map(|kind| is(0, u64::from(kind.unsigned_abs())));
    rules.insert(libc::SYS_socket, kinds.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_ioctl, vec![is(1, INSERT_INPUT)?]);
    Ok(rules)
}

#[cfg(target_arch = "x86_64")]
fn with_x32(rules: Rules) -> Rules {
    let x32: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
    rules.into_iter().chain(x32).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn with_x32(rules: Rules) -> Rules {
    rules
}
