//! Acts that a sandbox must refuse and the standard library has no words for: what `doctor --sandbox` and the tests try.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};
use rustix::process::{Pid, Resource, Rlimit};

/// A system call with these arguments.
#[expect(unsafe_code, reason = "the C library has no safe function for these calls")]
fn call(number: i64, arguments: [i64; 5]) -> io::Result<()> {
    let [one, two, three, four, five] = arguments;
    // SAFETY: whoever calls gives numbers, or addresses that the kernel refuses before it reads or writes there.
    match unsafe { libc::syscall(number, one, two, three, four, five, 0_i64) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Puts a byte into a terminal's input; without the sandbox the address is refused, or what is no terminal.
pub fn type_into_the_terminal() -> io::Result<()> {
    call(libc::SYS_ioctl, [0, libc::TIOCSTI as i64, 0, 0, 0])
}

/// Maps memory that may be written and run.
pub fn map_code() -> io::Result<()> {
    let code = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    call(libc::SYS_mmap, [0, 4096, i64::from(code), i64::from(flags), -1])
}

/// Sends a message with a header, which may hold an address and descriptors.
pub fn send_a_descriptor() -> io::Result<()> {
    call(libc::SYS_sendmsg, [0, 0, 0, 0, 0])
}

/// A ring of calls that no filter sees.
pub fn set_up_a_ring() -> io::Result<()> {
    call(libc::SYS_io_uring_setup, [0, 0, 0, 0, 0])
}

pub fn change_the_mode(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::chmod(path, Mode::from_raw_mode(0o644))?)
}

/// To the owner that it has.
pub fn change_the_owner(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::chown(path, Some(rustix::process::getuid()), None)?)
}

pub fn set_an_attribute(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::setxattr(path, "user.wardround", b"x", XattrFlags::empty())?)
}

pub fn set_the_times(path: &Path) -> io::Result<()> {
    let epoch = Timespec { tv_sec: 0, tv_nsec: 0 };
    let times = Timestamps { last_access: epoch, last_modification: epoch };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?)
}

/// One that looks like /dev/null.
pub fn make_a_device(path: &Path) -> io::Result<()> {
    let (null, mode) = (rustix::fs::makedev(1, 3), Mode::from_raw_mode(0o600));
    Ok(rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, mode, null)?)
}

/// The time of another process, to what cannot be less than it has.
pub fn limit_another_process() -> io::Result<()> {
    let Some(parent) = rustix::process::getppid() else {
        return Err(io::Error::other("there is no other process"));
    };
    let none = Rlimit { current: None, maximum: None };
    Ok(rustix::process::prlimit(Some(parent), Resource::Cpu, none).map(|_| ())?)
}

pub fn signal_another_process() -> io::Result<()> {
    Ok(rustix::process::test_kill_process(parent())?)
}

/// A thread of it, by the call that a process aborts itself with.
pub fn signal_a_thread_of_another_process() -> io::Result<()> {
    let parent = i64::from(parent().as_raw_pid());
    call(libc::SYS_tgkill, [parent, parent, 0, 0, 0])
}

/// Asks for another's limit, and sets none: what only its own user may.
pub fn look_at_anothers_limits() -> io::Result<()> {
    let parent = i64::from(parent().as_raw_pid());
    call(libc::SYS_prlimit64, [parent, i64::from(libc::RLIMIT_CPU), 0, 0, 0])
}

/// Has another process signalled whenever this descriptor of ours is ready.
pub fn signal_another_by_a_descriptor(own: &impl AsRawFd) -> io::Result<()> {
    let owner = i64::from(parent().as_raw_pid());
    call(libc::SYS_fcntl, [i64::from(own.as_raw_fd()), i64::from(libc::F_SETOWN), owner, 0, 0])
}

/// Lets others look into this process, and dumps of it be written, again.
pub fn be_seen_again() -> io::Result<()> {
    call(libc::SYS_prctl, [i64::from(libc::PR_SET_DUMPABLE), 1, 0, 0, 0])
}

/// Takes processes that lost theirs for children.
pub fn adopt_processes() -> io::Result<()> {
    call(libc::SYS_prctl, [i64::from(libc::PR_SET_CHILD_SUBREAPER), 1, 0, 0, 0])
}

fn parent() -> Pid {
    rustix::process::getppid().unwrap_or(Pid::INIT)
}
