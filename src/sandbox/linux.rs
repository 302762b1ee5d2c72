//! Files by Landlock, and sockets and programs by seccomp.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

use super::Policy;

/// The newest interface that is asked for; the kernel's own decides. From 8 on it was not tried on a kernel that has it.
const NEWEST: ABI = ABI::V10;

/// What every process reads: libraries, the time zone, what the kernel says of the machine and of this process.
const SYSTEM: &str = "/usr/lib /usr/lib64 /lib /lib64 /etc/ld.so.cache /etc/hostname /etc/os-release /usr/share/zoneinfo \
                      /sys/devices/system/cpu /sys/devices/system/node /sys/kernel/mm/transparent_hugepage /sys/fs/cgroup \
                      /dev/null /dev/urandom /dev/random /dev/zero \
                      /proc/self /proc/cpuinfo /proc/meminfo /proc/stat /proc/uptime /proc/sys/kernel/random/boot_id /proc/sys/vm/overcommit_memory";
/// What looking a name up reads.
const NAMES: &str =
    "/etc/resolv.conf /etc/hosts /etc/nsswitch.conf /etc/host.conf /etc/gai.conf /etc/ssl";

/// Other programs and processes, and rings of calls that no filter sees.
const NEVER: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_io_uring_setup,
];
/// Whatever listens does so already; and nothing is sent but to what is connected.
const NO_NETWORK: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_connect,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
];

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
    let system = [SYSTEM, names].into_iter().flat_map(str::split_whitespace);
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
    rules
        .create()?
        .add_rules(path_beneath_rules(system, read))?
        // No program is started anyway; libraries lie elsewhere.
        .add_rules(path_beneath_rules(&policy.read, read & !AccessFs::Execute))?
        .add_rules(path_beneath_rules(
            &policy.write,
            plain | AccessFs::ReadFile | AccessFs::ReadDir,
        ))?
        .add_rules(path_beneath_rules(&policy.list, AccessFs::ReadDir | AccessFs::RemoveDir))
}

/// Restricts every thread of the process, for good.
pub fn restrict_calls(has_network: bool) -> Result<(), Box<dyn Error>> {
    let network = if has_network { &[] } else { NO_NETWORK };
    let always = NEVER.iter().chain(network).map(|call| (*call, Vec::new()));
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = always.collect();
    if !has_network {
        let names_another = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        denied.insert(libc::SYS_sendto, vec![SeccompRule::new(vec![names_another])?]);
    }
    let refusal = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(denied, SeccompAction::Allow, refusal, architecture)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(apply_filter_all_threads(&program)?)
}
