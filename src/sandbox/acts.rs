//! Acts that a sandbox must refuse and the standard library has no words for: what `doctor --sandbox` and the tests try.

use std::io;
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
    let parent = rustix::process::getppid().unwrap_or(Pid::INIT);
    Ok(rustix::process::test_kill_process(parent)?)
}
