//! Files by Landlock, and sockets and processes by seccomp.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

use super::Policy;

/// The newest interface that is asked for; the kernel's own decides. From 8 on it was not tried on a kernel that has it.
const NEWEST: ABI = ABI::V10;

/// What every process reads: libraries, the time zone, the machine's own description.
const SYSTEM: &str = "/usr/lib /usr/lib64 /lib /lib64 /etc/ld.so.cache /etc/hostname /etc/os-release /usr/share/zoneinfo \
                      /sys/devices/system/cpu /sys/devices/system/node /sys/kernel/mm/transparent_hugepage /sys/fs/cgroup \
                      /dev/null /dev/urandom /dev/random /dev/zero";
/// What the kernel says of the machine and of this process. Builds for GPUs read all of it, since what the driver looks for there differs
/// from version to version.
const PROC: &str = match cfg!(feature = "cuda") {
    true => "/proc /sys/bus/pci /sys/module /sys/devices",
    false => {
        "/proc/self /proc/cpuinfo /proc/meminfo /proc/stat /proc/uptime /proc/sys/kernel/random/boot_id /proc/sys/vm/overcommit_memory"
    }
};
/// What looking a name up reads.
const NAMES: &str =
    "/etc/resolv.conf /etc/hosts /etc/nsswitch.conf /etc/host.conf /etc/gai.conf /etc/ssl";

/// No core dumps, and no other process may look in; whether that held.
pub fn hide() -> bool {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let no_cores = rustix::process::setrlimit(Resource::Core, none).is_ok();
    let no_tracing = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).is_ok();
    no_cores && no_tracing
}

/// Restricts this thread and those that it starts; the version of the interface that it is done by.
pub fn restrict_files(policy: &Policy) -> Result<u32, String> {
    let restricted = rules(policy).and_then(RulesetCreated::restrict_self);
    let status = restricted.map_err(|error| error.to_string())?;
    let is_enforced = status.ruleset != RulesetStatus::NotEnforced;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if is_enforced => Ok(effective_abi as u32),
        LandlockStatus::Available { .. } => Err("the kernel enforces no rule of them".to_owned()),
        _ => Err("the kernel has no Landlock".to_owned()),
    }
}

fn rules(policy: &Policy) -> Result<RulesetCreated, RulesetError> {
    // The entries of this process stay in the kernel's memory: made anew, they would be others than those that the rules are for.
    static OWN: OnceLock<Vec<PathFd>> = OnceLock::new();
    OWN.get_or_init(|| {
        ["/proc/self", "/proc/self/task"].into_iter().flat_map(PathFd::new).collect()
    });
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if !policy.has_network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let libraries = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let names = if policy.has_network { NAMES } else { "" };
    let system = [SYSTEM, PROC, names].into_iter().flat_map(str::split_whitespace);
    let system = system.map(PathBuf::from).chain(std::env::split_paths(&libraries));
    let read = AccessFs::from_read(NEWEST);
    let mut plain =
        AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::MakeDir;
    plain |= AccessFs::RemoveFile | AccessFs::RemoveDir | AccessFs::Refer;
    if policy.has_network {
        // What is fetched into the hub's cache is linked to its blobs.
        plain |= AccessFs::MakeSym;
    }
    // What is not there has no rule.
    let rules = rules
        .create()?
        .add_rules(path_beneath_rules(system, read))?
        // No program is started anyway; libraries lie elsewhere.
        .add_rules(path_beneath_rules(&policy.read, read & !AccessFs::Execute))?
        .add_rules(path_beneath_rules(
            &policy.write,
            plain | AccessFs::ReadFile | AccessFs::ReadDir,
        ))?
        .add_rules(path_beneath_rules(&policy.list, AccessFs::ReadDir | AccessFs::RemoveDir))?;
    if !cfg!(feature = "cuda") {
        return Ok(rules);
    }
    // The driver names its threads there.
    let write = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile;
    rules
        .add_rules(path_beneath_rules(devices(), AccessFs::from_all(NEWEST)))?
        .add_rules(path_beneath_rules(["/proc/self/task"], write))
}

/// The devices of NVIDIA's driver, of WSL2 too: it talks to them by control calls.
fn devices() -> impl Iterator<Item = PathBuf> {
    let entries = fs_err::read_dir("/dev").into_iter().flatten().flatten();
    let is_gpu = |name: &str| name.starts_with("nvidia") || name == "dxg";
    let wanted = entries.filter(move |entry| entry.file_name().to_str().is_some_and(is_gpu));
    wanted.map(|entry| entry.path())
}

/// What reaches past the process and its files, whatever its arguments: other programs and processes, rings of calls that no filter
/// sees, and the modes, owners and times of files, which Landlock leaves to whoever owns them. What only root may is root's not to do.
const NEVER: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utimensat,
    libc::SYS_mknodat,
    // `fchmodat2`, the same number everywhere.
    452,
];
/// The same by the names that only older architectures have.
#[cfg(target_arch = "x86_64")]
const NEVER_BY_OLD_NAMES: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_mknod,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_BY_OLD_NAMES: &[i64] = &[];
/// Whatever listens does so already; and nothing is sent but to what is connected.
const NO_NETWORK: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_connect,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
];

/// What an argument is where the call is denied.
type When = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

/// Calls that are denied with some arguments: where all of a row hold.
fn with_arguments(has_network: bool) -> Vec<(i64, Vec<When>)> {
    let is = |call: i64, argument: u8, values: &[u64]| -> Vec<(i64, Vec<When>)> {
        values.iter().map(|value| (call, vec![(argument, Dword, Eq, *value)])).collect()
    };
    let own = u64::from(std::process::id());
    let thread = libc::CLONE_THREAD as u64;
    let mut calls = vec![
        // Anything but a thread is a new process.
        (libc::SYS_clone, vec![(0, Qword, MaskedEq(thread), 0)]),
        // A process may abort itself, and look at its own limits.
        (libc::SYS_tgkill, vec![(0, Dword, Ne, own)]),
        (libc::SYS_prlimit64, vec![(0, Dword, Ne, 0), (0, Dword, Ne, own)]),
        // Datagrams and packets reach any socket by its path.
        (libc::SYS_socketpair, vec![(1, Dword, MaskedEq(0xf), libc::SOCK_DGRAM as u64)]),
        (libc::SYS_socketpair, vec![(1, Dword, MaskedEq(0xf), libc::SOCK_SEQPACKET as u64)]),
    ];
    // Typing into a terminal; signals of descriptors; being seen again, and adopting processes.
    calls.extend(is(libc::SYS_ioctl, 1, &[0x5412, 0x541c]));
    calls.extend(is(libc::SYS_fcntl, 1, &[libc::F_SETOWN as u64, 10, 15]));
    let options = [libc::PR_SET_DUMPABLE, libc::PR_SET_CHILD_SUBREAPER, libc::PR_SET_PTRACER];
    calls.extend(is(libc::SYS_prctl, 0, &options.map(|option| option as u64)));
    if !cfg!(feature = "cuda") {
        // No code beyond what was there when it was sealed.
        let executable = libc::PROT_EXEC as u64;
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            calls.push((call, vec![(2, Qword, MaskedEq(executable), executable)]));
        }
    }
    if has_network {
        // Names are looked up by files and DNS, never by another program's socket.
        let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
        let others = families.map(|family| (0, Dword, Ne, family as u64));
        calls.push((libc::SYS_socket, others.to_vec()));
    } else {
        calls.push((libc::SYS_sendto, vec![(4, Qword, Ne, 0)]));
    }
    calls
}

/// Restricts every thread of the process, for good.
pub fn restrict_calls(has_network: bool) -> Result<(), Box<dyn std::error::Error>> {
    // Its flags are out of sight: the C library falls back on `clone`.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply(absent, SeccompAction::Errno(libc::ENOSYS as u32))?;
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (call, conditions) in with_arguments(has_network) {
        let conditions = conditions.into_iter();
        let conditions = conditions.map(|(argument, length, operator, value)| {
            SeccompCondition::new(argument, length, operator, value)
        });
        let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
        denied.entry(call).or_default().push(rule);
    }
    let network = if has_network { &[] } else { NO_NETWORK };
    let always = NEVER.iter().chain(NEVER_BY_OLD_NAMES).chain(network);
    denied.extend(always.map(|call| (*call, Vec::new())));
    apply(denied, SeccompAction::Errno(libc::EPERM as u32))?;
    #[cfg(target_arch = "x86_64")]
    kill_short_pointers()?;
    Ok(())
}

fn apply(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    action: SeccompAction,
) -> Result<(), Box<dyn std::error::Error>> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(apply_filter_all_threads(&program)?)
}

/// Ends the process at a call of the x32 interface: the same machine with short pointers, and numbers of its own, which pass the other
/// filters. Calls of 32-bit programs are killed by the architecture that those ask for.
#[cfg(target_arch = "x86_64")]
fn kill_short_pointers() -> Result<(), seccompiler::Error> {
    use seccompiler::sock_filter;
    const LOAD: u16 = 0x20;
    const JUMP_IF_NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let step = |code: u16, jt: u8, k: u32| sock_filter { code, jt, jf: 0, k };
    // The number of the call is the first word; theirs begin there.
    apply_filter_all_threads(&[
        step(LOAD, 0, 0),
        step(JUMP_IF_NOT_LESS, 1, 0x4000_0000),
        step(RETURN, 0, SeccompAction::Allow.into()),
        step(RETURN, 0, SeccompAction::KillProcess.into()),
    ])
}
