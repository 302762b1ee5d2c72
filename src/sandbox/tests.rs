//! What is said of a sandbox. What it does to a process is tested on processes of their own: `tests/airgap/sandbox.rs`.

use super::{Network, Policy, Report, SandboxMode, accept, enter, holds_files};

#[test]
fn what_held_and_what_did_not_is_said() {
    let report = Report {
        files: Some(7),
        is_hidden: true,
        calls: true,
        network: Network::None,
        lacking: vec!["UDP by Landlock".to_owned()],
    };
    assert_eq!(
        report.to_string(),
        "sandbox: files by Landlock ABI 7, network and processes by seccomp; not enforced: UDP by Landlock"
    );
    let open = Report { network: Network::Open, lacking: Vec::new(), ..report };
    assert_eq!(
        open.to_string(),
        "sandbox: files by Landlock ABI 7, processes by seccomp; not enforced: network, since models are fetched or asked elsewhere"
    );
    assert_eq!(Report::default().to_string(), "sandbox: nothing is enforced");
}

#[test]
fn none_is_entered_where_none_is_wanted_and_an_open_network_is_no_sandbox() {
    assert!(enter(SandboxMode::Off, &Policy::default()).unwrap().is_none());
    let open = Policy { network: Network::Open, ..Policy::default() };
    let error = enter(SandboxMode::Require, &open).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("fetched or asked elsewhere"), "{error}");
}

/// A kernel whose Landlock knows nothing of truncating (Linux 5.13 to 6.1) is too old for a sandbox that is required.
#[test]
fn a_required_sandbox_needs_landlock_that_keeps_files_from_being_cut() {
    let report = |files| Report {
        files,
        is_hidden: true,
        lacking: vec!["truncating files by Landlock".to_owned()],
        ..Report::default()
    };
    let required = |report: &Report| accept(SandboxMode::Require, report, holds_files(report));
    for too_old in [None, Some(1), Some(2)] {
        let said = required(&report(too_old)).unwrap_err().to_string();
        assert!(said.contains("Landlock ABI 3 or later"), "{said}");
        assert!(said.ends_with("lacks truncating files by Landlock"), "{said}");
        accept(SandboxMode::Auto, &report(too_old), holds_files(&report(too_old))).unwrap();
    }
    for enough in [3, 4, 10] {
        required(&report(Some(enough))).unwrap();
    }
    // Core dumps and debuggers see what files do not hold.
    let seen = Report { is_hidden: false, ..report(Some(3)) };
    required(&seen).unwrap_err();
}

/// What a process of its own does in a sandbox that is sealed.
#[cfg(all(target_os = "linux", target_arch = "x86_64", feature = "airgap"))]
mod calls {
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::Command;

    use super::super::{Network, seccomp};

    use super::super::acts;

    const CHILD: &str = "WARDROUND_SANDBOX_TEST_CHILD";

    /// A call without arguments that mean anything; its error.
    #[expect(unsafe_code, reason = "the C library has no function for these calls")]
    fn call(number: i64) -> Option<i32> {
        // SAFETY: the filter ends the call before the kernel looks at its arguments, and without one they are invalid and change nothing.
        let result = unsafe { libc::syscall(number, -1_i64, 0_i64, 0_i64, 0_i64, 0_i64) };
        (result < 0).then(|| std::io::Error::last_os_error().raw_os_error()).flatten()
    }

    /// The child's part: without the variable it does nothing, whoever runs it.
    #[test]
    fn child() {
        let Ok(number) = std::env::var(CHILD) else { return };
        seccomp::restrict_calls(Network::None).unwrap();
        let denied = [
            libc::SYS_kexec_load,
            libc::SYS_kexec_file_load,
            libc::SYS_mount_setattr,
            libc::SYS_fspick,
            libc::SYS_io_uring_setup,
        ];
        for number in denied {
            assert_eq!(call(number), Some(libc::EPERM), "{number}");
        }
        assert_eq!(call(libc::SYS_clone3), Some(libc::ENOSYS));
        let (own, _) = UnixStream::pair().unwrap();
        let refused = [
            acts::change_the_mode(Path::new("/dev/null")),
            acts::set_the_times(Path::new("/dev/null")),
            acts::set_an_attribute(Path::new("/dev/null")),
            acts::make_a_device(Path::new("null")),
            acts::limit_another_process(),
            acts::look_at_anothers_limits(),
            acts::signal_another_process(),
            acts::signal_a_thread_of_another_process(),
            acts::signal_another_by_a_descriptor(&own),
            acts::be_seen_again(),
            acts::adopt_processes(),
            acts::type_into_the_terminal(),
            acts::map_code(),
            acts::send_a_descriptor(),
            UnixDatagram::pair().map(|_| ()),
        ];
        for (index, refused) in refused.into_iter().enumerate() {
            assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM), "{index}");
        }
        // What its own work takes.
        own.set_nonblocking(true).unwrap();
        assert_eq!(std::thread::spawn(|| 1).join().unwrap(), 1);
        call(number.parse().unwrap());
        // Here only where nobody ended it.
        println!("the call came back");
    }

    /// What the list refuses is not refused by the machine anyway.
    #[test]
    fn acts_that_a_sandbox_refuses_get_through_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        acts::change_the_mode(&file).unwrap();
        acts::change_the_owner(&file).unwrap();
        acts::set_the_times(&file).unwrap();
        acts::map_code().unwrap();
        acts::signal_another_process().unwrap();
        acts::signal_a_thread_of_another_process().unwrap();
        acts::look_at_anothers_limits().unwrap();
        let (own, _) = UnixStream::pair().unwrap();
        acts::signal_another_by_a_descriptor(&own).unwrap();
        acts::be_seen_again().unwrap();
        UnixDatagram::pair().unwrap();
        let address = acts::send_a_descriptor().unwrap_err().raw_os_error();
        assert_ne!(address, Some(libc::EPERM));
    }

    #[test]
    fn calls_with_short_pointers_end_the_process() {
        let run = |number: i64| {
            let program = std::env::current_exe().unwrap();
            let mut command = Command::new(program);
            command.args(["--exact", "sandbox::tests::calls::child", "--nocapture"]);
            command.env(CHILD, number.to_string()).output().unwrap()
        };
        let fine = run(libc::SYS_getpid);
        let said = String::from_utf8_lossy(&fine.stdout).into_owned();
        assert!(fine.status.success() && said.contains("the call came back"), "{said}");
        // getpid; execve, ptrace and execveat, which have numbers of their own there.
        for number in [39, 520, 521, 545] {
            let ended = run(0x4000_0000 + number);
            assert_eq!(ended.status.signal(), Some(libc::SIGSYS), "{number}");
        }
    }
}

/// What a process of its own does where Landlock alone keeps it, without the list of calls.
#[cfg(all(target_os = "linux", feature = "airgap"))]
mod files {
    use std::io::{self, Write};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::super::{Policy, landlock};

    const CHILD: &str = "WARDROUND_LANDLOCK_TEST_CHILD";

    fn make_a_pipe(path: &Path) -> io::Result<()> {
        Ok(mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?)
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
    fn forbidden(own: &Path) -> [(&'static str, io::Result<()>); 6] {
        [
            ("a pipe", make_a_pipe(&own.join("pipe"))),
            ("a link", symlink("given", own.join("link"))),
            ("a socket", UnixListener::bind(own.join("socket")).map(|_| ())),
            ("a program", start(&own.join("program"))),
            ("a file elsewhere", std::fs::write(own.with_file_name("elsewhere"), "x")),
            ("a pipe elsewhere", make_a_pipe(&own.with_file_name("pipe"))),
        ]
    }

    /// The child's part: without the variable it does nothing, whoever runs it.
    #[test]
    fn child() {
        let Some(own) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
        let policy = Policy { write: vec![own.clone()], ..Policy::default() };
        let report = landlock::restrict_files(&policy);
        if report.files.is_none() {
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
            let program = own.join("program");
            std::fs::write(&program, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(program, PermissionsExt::from_mode(0o700)).unwrap();
        };
        prepare();
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", "sandbox::tests::files::child", "--nocapture"]).env(CHILD, &own);
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        let stderr = String::from_utf8_lossy(&done.stderr);
        if said.contains("no Landlock") {
            // Past the harness, which keeps what tests print.
            return writeln!(io::stderr(), "skipped: this kernel has no Landlock").unwrap();
        }
        assert!(done.status.success() && said.contains("it held"), "{said}{stderr}");
        // Nothing but Landlock refused it.
        prepare();
        for (what, made) in forbidden(&own) {
            made.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}
