//! The system calls that a sealed process may make: what `run`, `check`, `serve` and `bench` were seen to make, and what the C library
//! makes in their place on other kernels. Whatever reaches past the process by its arguments may have only some of them.

use super::Network;

/// What an argument must be.
#[derive(Clone, Copy, Debug)]
pub enum Only {
    /// This number, in its lower half.
    Is(u8, u64),
    Not(u8, u64),
    /// A pointer to nothing.
    Null(u8),
    /// These bits of it are `2`.
    Bits(u8, u64, u64),
}

/// With whatever arguments: on files that Landlock lets the process open, on what is open already, on itself.
pub const FREE: &[i64] = &[
    // Memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mremap,
    libc::SYS_msync,
    libc::SYS_munmap,
    // Threads, time and signals of its own.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    // Files.
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_faccessat,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_mkdirat,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_renameat2,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
    // Waiting, and those who connected.
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_recvfrom,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    // `renameat`, which the C library of this architecture has and Rust's table of numbers lacks.
    #[cfg(target_arch = "aarch64")]
    38,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_getdents,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pipe,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_renameat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
];

/// Calls that newer C libraries try first, and that a filter cannot look into, or need not.
pub const ABSENT: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_epoll_pwait2,
    libc::SYS_faccessat2,
    libc::SYS_futex_waitv,
    libc::SYS_openat2,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    // `fchmodat2`, the same number everywhere.
    452,
];

/// Who fetches models or asks elsewhere: what looking names up and talking take.
pub const OPEN: &[i64] = &[
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
];

/// What the driver of GPUs was seen to need elsewhere; not tried under this list yet.
pub const GPU: &[i64] = &[
    libc::SYS_get_mempolicy,
    libc::SYS_mbind,
    libc::SYS_memfd_create,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munlock,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_set_mempolicy,
];

/// Anonymous names of memory in /proc.
const PR_SET_VMA: u64 = 0x5356_4d41;
/// Asks the kernel for the tile registers of AMX: without them the same model computes more slowly, and other bits.
#[cfg(target_arch = "x86_64")]
const TILES: [Only; 2] = [Only::Is(0, 0x1023), Only::Is(1, 18)];
/// Puts a byte into the input of a terminal; and the same, and more, of the console.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;

/// Those with some arguments alone: one of the cases must hold, and all of it.
pub fn ours(network: Network) -> Vec<(i64, Vec<Vec<Only>>)> {
    let (process, executable) = (u64::from(std::process::id()), libc::PROT_EXEC as u64);
    let stream = libc::SOCK_STREAM as u64;
    // Flags of a socket are above.
    let of_stream = Only::Bits(1, 0xf, stream);
    let each = |argument: u8, values: &[u64]| -> Vec<Vec<Only>> {
        values.iter().map(|value| vec![Only::Is(argument, *value)]).collect()
    };
    let mut calls = vec![
        // A thread shares its process; anything else is a new one. The bits for other namespaces would need a new one too.
        (
            libc::SYS_clone,
            vec![vec![Only::Bits(0, libc::CLONE_THREAD as u64, libc::CLONE_THREAD as u64)]],
        ),
        // Itself, as aborting does.
        (libc::SYS_tgkill, each(0, &[process])),
        (libc::SYS_prlimit64, each(0, &[0, process])),
        (libc::SYS_sched_setaffinity, each(0, &[0])),
        // A thread itself; without privileges it only becomes slower.
        (libc::SYS_setpriority, vec![vec![Only::Is(0, libc::PRIO_PROCESS as u64), Only::Is(1, 0)]]),
        (
            libc::SYS_prctl,
            each(0, &[libc::PR_SET_NAME as u64, libc::PR_GET_NAME as u64, PR_SET_VMA]),
        ),
        // Not the owner of a descriptor's signals, nor leases, nor notices of others' changes.
        (
            libc::SYS_fcntl,
            each(
                1,
                &[
                    libc::F_DUPFD as u64,
                    libc::F_DUPFD_CLOEXEC as u64,
                    libc::F_GETFD as u64,
                    libc::F_SETFD as u64,
                    libc::F_GETFL as u64,
                    libc::F_SETFL as u64,
                    libc::F_GETLK as u64,
                    libc::F_SETLK as u64,
                    libc::F_SETLKW as u64,
                    libc::F_OFD_SETLK as u64,
                ],
            ),
        ),
        // Two ends of a stream: what is sent to a name by one of them is an error. Datagrams would reach any socket by its path.
        (libc::SYS_socketpair, vec![vec![Only::Is(0, libc::AF_UNIX as u64), of_stream]]),
    ];
    #[cfg(target_arch = "x86_64")]
    calls.push((libc::SYS_arch_prctl, vec![TILES.to_vec()]));
    if network == Network::Open {
        // Names are looked up by files and DNS, never by another program's socket.
        let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
        calls.push((libc::SYS_socket, each(0, &families.map(|family| family as u64))));
    } else {
        // On what is connected.
        calls.push((libc::SYS_sendto, vec![vec![Only::Null(4)]]));
    }
    if cfg!(feature = "cuda") {
        calls.push((libc::SYS_ioctl, vec![vec![Only::Not(1, TIOCSTI), Only::Not(1, TIOCLINUX)]]));
    } else {
        let asked = [libc::TCGETS, libc::TIOCGWINSZ, libc::FIONBIO, libc::FIOCLEX, libc::FIONREAD];
        calls.push((libc::SYS_ioctl, each(1, &asked)));
        // No code beyond what was there when it was sealed.
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            calls.push((call, vec![vec![Only::Bits(2, executable, 0)]]));
        }
    }
    calls
}
