//! What a sandbox does to processes of their own.
#![cfg(all(target_os = "linux", feature = "airgap"))]
#![expect(clippy::disallowed_methods, reason = "sockets are tried where they must fail")]

use std::io::{self, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Held, LEAST_LANDLOCK, Policy, SandboxMode, enter, linux};

#[test]
fn what_held_and_what_did_not_is_said() {
    let mut held = Held { is_hidden: false, files: Ok(7), calls: Ok(()) };
    let (closed, open) = (Policy::default(), Policy { has_network: true, ..Policy::default() });
    assert_eq!(
        held.words(&closed),
        "sandbox: files by Landlock ABI 7, network and processes by seccomp; not enforced: the ban on core dumps and tracing"
    );
    let absent = || "no kernel has it".to_owned();
    let nothing = Held { is_hidden: true, files: Err(absent()), calls: Err(absent()) };
    assert_eq!(
        nothing.words(&closed),
        "sandbox: nothing is enforced; not enforced: files (no kernel has it), calls (no kernel has it)"
    );
    held.is_hidden = true;
    assert_eq!(
        held.words(&open),
        "sandbox: files by Landlock ABI 7, processes by seccomp; not enforced: network, since models are fetched or asked elsewhere"
    );
    assert_eq!(enter(SandboxMode::Off, &closed).unwrap(), None);
    // An open network is no sandbox.
    let error = enter(SandboxMode::Require, &open).unwrap_err();
    assert!(error.to_string().contains("fetched or asked elsewhere"), "{error}");
}

/// A kernel whose Landlock knows nothing of truncating (Linux 5.13 to 6.1) is too old for a sandbox that is required; and so is one
/// that keeps no calls back.
#[test]
fn a_required_sandbox_needs_all_of_it() {
    let held = |files| Held { is_hidden: true, files, calls: Ok(()) };
    let is_enough = |held: Held| held.lacking().is_empty();
    let old = [Err(String::new()), Ok(1), Ok(2)];
    assert!(old.into_iter().all(|old| !is_enough(held(old))));
    assert!([3, 4, 10].into_iter().all(|new| is_enough(held(Ok(new)))));
    assert_eq!(LEAST_LANDLOCK, 3);
    assert!(!is_enough(Held { is_hidden: false, ..held(Ok(7)) }));
    assert!(!is_enough(Held { calls: Err(String::new()), ..held(Ok(7)) }));
}

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

/// Acts beside a sandbox, which get through without it.
fn acts() -> Vec<(&'static str, io::Result<()>)> {
    vec![
        ("TCP", TcpListener::bind("127.0.0.1:0").map(|_| ())),
        ("UDP", UdpSocket::bind("127.0.0.1:0").map(|_| ())),
        ("a program", Command::new("/bin/true").status().map(|_| ())),
    ]
}

/// What is denied whatever it would do.
fn denied() -> Vec<(&'static str, io::Result<()>)> {
    vec![
        ("a ring", call(libc::SYS_io_uring_setup, [0; 5])),
        ("a descriptor's message", call(libc::SYS_sendmsg, [0; 5])),
        ("a message by address", call(libc::SYS_sendto, [0, 0, 0, 0, 1])),
        ("another's memory", call(libc::SYS_process_vm_readv, [0; 5])),
    ]
}

const CHILD: &str = "WARDROUND_SANDBOX_TEST_CHILD";

/// The child's part: without the variable it does nothing, whoever runs it.
#[test]
fn child_of_calls() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    linux::restrict_calls(false).unwrap();
    for (what, refused) in acts().into_iter().chain(denied()) {
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM), "{what}");
    }
    // What its own work takes.
    UnixStream::pair().unwrap().0.set_nonblocking(true).unwrap();
    assert_eq!(std::thread::spawn(|| 1).join().unwrap(), 1);
    println!("it works on");
}

fn child(name: &str, value: &Path) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(CHILD, value).output().unwrap()
}

/// What is refused is not refused by the machine anyway.
#[test]
fn acts_that_a_sandbox_refuses_get_through_without_one() {
    for (what, done) in acts() {
        done.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

#[test]
fn a_sealed_process_does_its_own_work_alone() {
    let done = child("sandbox::tests::child_of_calls", Path::new("1"));
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(done.status.success() && said.contains("it works on"), "{said}");
}

/// A process that another test begins at the same time may hold the file open for writing, for a moment.
fn start(program: &Path) -> io::Result<()> {
    loop {
        match Command::new(program).status() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            done => return done.map(|_| ()),
        }
    }
}

/// What is refused in the folder `own` too, where files may be written; and all that is beside it.
fn forbidden(own: &Path) -> [(&'static str, io::Result<()>); 8] {
    let pipe =
        |path: PathBuf| Ok(mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?);
    [
        ("a pipe", pipe(own.join("pipe"))),
        ("a link", symlink("given", own.join("link"))),
        ("a socket", UnixListener::bind(own.join("socket")).map(|_| ())),
        ("a program", start(&own.join("program"))),
        ("a file elsewhere", std::fs::write(own.with_file_name("elsewhere"), "x")),
        ("a pipe elsewhere", pipe(own.with_file_name("pipe"))),
        ("to read elsewhere", std::fs::read(own.with_file_name("other")).map(|_| ())),
        ("to read a folder elsewhere", std::fs::read_dir(own.parent().unwrap()).map(|_| ())),
    ]
}

/// The child's part, where Landlock alone keeps it.
#[test]
fn child_of_files() {
    let Some(own) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let policy = Policy { write: vec![own.clone()], ..Policy::default() };
    if linux::restrict_files(&policy).is_err() {
        return println!("no Landlock");
    }
    std::fs::write(own.join("file"), "x").unwrap();
    std::fs::create_dir(own.join("folder")).unwrap();
    std::fs::remove_file(own.join("file")).unwrap();
    for (what, made) in forbidden(&own) {
        assert_eq!(made.unwrap_err().raw_os_error(), Some(libc::EACCES), "{what}");
    }
    println!("it held");
}

#[test]
fn only_files_and_folders_are_made_where_files_may_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    let prepare = || {
        let _ = std::fs::remove_dir_all(&own);
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.with_file_name("other"), "x").unwrap();
        let program = own.join("program");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(program, PermissionsExt::from_mode(0o700)).unwrap();
    };
    prepare();
    let done = child("sandbox::tests::child_of_files", &own);
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if said.contains("no Landlock") {
        // Past the harness, which keeps what tests print.
        return writeln!(io::stderr(), "skipped: this kernel has no Landlock").unwrap();
    }
    assert!(done.status.success() && said.contains("it held"), "{said}");
    // Nothing but Landlock refused it.
    prepare();
    for (what, made) in forbidden(&own) {
        made.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}
