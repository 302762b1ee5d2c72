//! Files and ports, by Landlock: one rule a path, each opened apart, so that a path that is not there drops its own rule alone.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit};

use super::{Network, Policy, Report};

/// The newest interface that is asked for; the kernel's own decides. From 8 on it was not tried on a kernel that has it.
const NEWEST: ABI = ABI::V10;

/// What every process reads: libraries, the time zone, the machine's own description.
const SYSTEM: &str = "/usr/lib /usr/lib64 /lib /lib64 /etc/ld.so.cache /etc/hostname /etc/os-release /usr/share/zoneinfo \
                      /sys/devices/system/cpu /sys/devices/system/node /sys/kernel/mm/transparent_hugepage /sys/fs/cgroup \
                      /dev/null /dev/urandom /dev/random /dev/zero";

/// What the kernel says of the machine and of this process. Builds for GPUs read all of it, since what the driver looks for there differs
/// from version to version.
const PROC: &[&str] = match cfg!(feature = "cuda") {
    true => &["/proc"],
    false => &[
        OWN,
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/uptime",
        "/proc/sys/kernel/random/boot_id",
        "/proc/sys/vm/overcommit_memory",
    ],
};

/// What the kernel says of this process.
const OWN: &str = "/proc/self";

/// What looking a name up reads.
const NAMES: [&str; 5] =
    ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf"];

/// The devices of NVIDIA's driver, of WSL2 too, in builds for GPUs: it talks to them by control calls.
fn gpu() -> Vec<PathBuf> {
    if !cfg!(feature = "cuda") {
        return Vec::new();
    }
    let names = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps", "dxg"];
    let is_gpu = |name: &str| {
        let number = name.strip_prefix("nvidia").unwrap_or_default();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number || names.contains(&name)
    };
    let entries = fs_err::read_dir("/dev").into_iter().flatten().flatten();
    let wanted = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_gpu));
    wanted.map(|entry| entry.path()).collect()
}

/// Keeps the entries of this process in the kernel's memory: made anew after it was short, they would be others than those that the rules
/// are for.
fn keep_own_entries() {
    static KEPT: OnceLock<Vec<PathFd>> = OnceLock::new();
    let open = |path: &str| PathFd::new(path).ok();
    KEPT.get_or_init(|| [OWN, "/proc/self/task"].into_iter().filter_map(open).collect());
}

/// Restricts this thread and those that it starts; no new rights, no core dumps, no other process may look in.
pub fn restrict_files(policy: &Policy) -> Report {
    let mut report = Report { network: policy.network, is_hidden: true, ..Report::default() };
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if rustix::process::setrlimit(Resource::Core, none).is_err() {
        report.is_hidden = false;
        report.lacking.push("the ban on core dumps".to_owned());
    }
    if rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        report.is_hidden = false;
        report.lacking.push("the ban on tracing".to_owned());
    }
    match rules(policy).and_then(RulesetCreated::restrict_self) {
        Ok(status) => note(&mut report, &status),
        Err(error) => report.lacking.push(format!("files ({error})")),
    }
    report
}

fn note(report: &mut Report, status: &RestrictionStatus) {
    let version = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        LandlockStatus::NotEnabled => {
            return report.lacking.push("files, since Landlock is switched off".to_owned());
        }
        _ => return report.lacking.push("files, since the kernel has no Landlock".to_owned()),
    };
    if status.ruleset == RulesetStatus::NotEnforced {
        return report.lacking.push("files".to_owned());
    }
    report.files = Some(version);
    // What seccomp denies all the same: sockets of any kind.
    let late = [
        (ABI::V3, "truncating files"),
        (ABI::V4, "TCP"),
        (ABI::V5, "device control"),
        (ABI::V6, "signals"),
        (ABI::V10, "UDP"),
    ];
    for (since, what) in late {
        if version < since as u32 {
            report.lacking.push(format!("{what} by Landlock"));
        }
    }
}

fn rules(policy: &Policy) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if policy.network != Network::Open {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut rules = rules.create()?;
    if let Network::Listen { port: Some(port) } = policy.network {
        rules = rules.add_rule(NetPort::new(port, AccessNet::BindTcp))?;
    }
    let libraries = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let libraries: Vec<PathBuf> = std::env::split_paths(&libraries).collect();
    keep_own_entries();
    let system = SYSTEM.split(' ').chain(PROC.iter().copied()).map(PathBuf::from).chain(libraries);
    for path in system {
        rules = allow(rules, &path, AccessFs::from_read(NEWEST))?;
    }
    for path in &policy.read {
        // No program is started anyway; libraries lie elsewhere.
        rules = allow(rules, path, AccessFs::from_read(NEWEST) & !AccessFs::Execute)?;
    }
    // A socket is bound where it was asked for.
    let mut never =
        AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeFifo;
    never |= AccessFs::MakeSym | AccessFs::IoctlDev;
    if policy.network != (Network::Listen { port: None }) {
        never |= AccessFs::MakeSock;
    }
    for path in &policy.write {
        rules = allow(rules, path, AccessFs::from_all(NEWEST) & !never)?;
    }
    if policy.network == Network::Open {
        for path in NAMES {
            rules = allow(rules, Path::new(path), AccessFs::from_read(NEWEST))?;
        }
    }
    for path in &policy.list {
        rules = allow(rules, path, AccessFs::ReadDir | AccessFs::RemoveDir)?;
    }
    for path in gpu() {
        rules = allow(rules, &path, AccessFs::from_all(NEWEST))?;
    }
    if cfg!(feature = "cuda") {
        for path in ["/sys/bus/pci", "/sys/module", "/sys/devices"] {
            rules = allow(rules, Path::new(path), AccessFs::from_read(NEWEST))?;
        }
        // Its threads are named there.
        let write = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile;
        rules = allow(rules, Path::new("/proc/self/task"), write)?;
    }
    Ok(rules)
}

/// Adds the rule of a path, with the rights of its kind; none where it is not there.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    let access = match path.is_dir() {
        true => access,
        false => access & AccessFs::from_file(NEWEST),
    };
    rules.add_rule(PathBeneath::new(opened, access))
}
