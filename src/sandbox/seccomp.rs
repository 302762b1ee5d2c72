//! Calls, by seccomp, on every thread at once: no new connections, no new processes, nothing that looks into others.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

use super::Network;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that look into other processes, change what the process sees, or load code into the kernel. io_uring would go past the
/// rules for sockets.
const NEVER: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_personality,
    libc::SYS_open_by_handle_at,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// Calls that begin to talk. A listener is there already: `accept`, `send` and `socketpair` stay.
const TALK: &[i64] = &[libc::SYS_connect, libc::SYS_bind, libc::SYS_listen];

/// Calls of the interface for short pointers have numbers from here on; the kernel takes them for those of the same machine.
#[cfg(target_arch = "x86_64")]
const SHORT_POINTERS: i64 = 0x4000_0000;

/// Denies calls to every thread of the process.
///
/// # Errors
/// What the kernel says.
pub fn restrict_calls(network: Network) -> Result<(), String> {
    let mut denied: Rules = NEVER.iter().map(|call| (*call, Vec::new())).collect();
    if network != Network::Open {
        denied.extend(TALK.iter().map(|call| (*call, Vec::new())));
        denied.insert(libc::SYS_socket, sockets()?);
    }
    // A thread shares its process; anything else is a new one.
    denied.insert(
        libc::SYS_clone,
        vec![rule(0, SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64), 0)?],
    );
    apply(denied, libc::EPERM)?;
    // Its flags lie in memory, where a filter cannot look: it is said not to exist, and the C library falls back on `clone`.
    apply(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

/// The sockets that are denied: in builds for GPUs all but Unix's, which the driver may want.
fn sockets() -> Result<Vec<SeccompRule>, String> {
    match cfg!(feature = "cuda") {
        true => Ok(vec![rule(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?]),
        false => Ok(Vec::new()),
    }
}

fn rule(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompRule, String> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, is, value);
    let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
    rule.map_err(|error| error.to_string())
}

fn apply(mut denied: Rules, errno: i32) -> Result<(), String> {
    #[cfg(target_arch = "x86_64")]
    for (call, rules) in denied.clone() {
        denied.insert(call + SHORT_POINTERS, rules);
    }
    let said = |error: &dyn std::fmt::Display| format!("network and processes ({error})");
    let architecture = std::env::consts::ARCH.try_into().map_err(|error| said(&error))?;
    let deny = SeccompAction::Errno(errno as u32);
    let filter = SeccompFilter::new(denied, SeccompAction::Allow, deny, architecture);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(|error| said(&error))?;
    apply_filter_all_threads(&program).map_err(|error| said(&error))
}
