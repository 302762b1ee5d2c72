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
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
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
    apply(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    #[cfg(target_arch = "x86_64")]
    short_pointers::kill().map_err(said)?;
    Ok(())
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

fn apply(denied: Rules, errno: i32) -> Result<(), String> {
    let architecture = std::env::consts::ARCH.try_into().map_err(said)?;
    let deny = SeccompAction::Errno(errno as u32);
    let filter = SeccompFilter::new(denied, SeccompAction::Allow, deny, architecture);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(said)?;
    apply_filter_all_threads(&program).map_err(said)
}

fn said(error: impl std::fmt::Display) -> String {
    format!("network and processes ({error})")
}

/// The x32 interface of x86-64 kernels: the same machine with short pointers, and numbers of its own for some calls. Nothing here is
/// built for it, so whoever uses it is not this program.
#[cfg(target_arch = "x86_64")]
mod short_pointers {
    use seccompiler::{BpfProgram, SeccompAction, apply_filter_all_threads, sock_filter};

    /// Its numbers begin here; none of the usual ones is as large.
    const FIRST: u32 = 0x4000_0000;
    /// Instructions of a filter: load a word of the call's description, jump where it is not less, return.
    const LOAD: u16 = 0x20;
    const JUMP_IF_NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;

    /// Ends the process at any such call. Calls of 32-bit programs are killed by the architecture that the other filters ask for.
    pub fn kill() -> Result<(), seccompiler::Error> {
        let step = |code: u16, jt: u8, k: u32| sock_filter { code, jt, jf: 0, k };
        let program: BpfProgram = vec![
            // The number is the first word.
            step(LOAD, 0, 0),
            step(JUMP_IF_NOT_LESS, 1, FIRST),
            step(RETURN, 0, SeccompAction::Allow.into()),
            step(RETURN, 0, SeccompAction::KillProcess.into()),
        ];
        apply_filter_all_threads(&program)
    }
}
