//! `doctor --sandbox`: tries each action that a sandbox allows or forbids in a child process, and prints the kernel's answers.
#![expect(clippy::disallowed_methods, reason = "connections are tried where they must fail")]

use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::experiment::whole_file;
use crate::outside;
use crate::sandbox::{Network, Policy, SandboxMode, acts, enter};

/// An address without a listener: without a sandbox a connection is refused, not forbidden.
const NOBODY: &str = "127.0.0.1:9";

/// What was set up before the sandbox was sealed.
struct Before<'a> {
    /// A folder with a subfolder `own`.
    folder: &'a Path,
    /// A listener, and a connection that waits to be accepted.
    listener: io::Result<(TcpListener, TcpStream)>,
    #[cfg(feature = "cuda")]
    gpu: io::Result<()>,
}

/// An action that a process may try.
struct Act {
    name: &'static str,
    is_allowed: bool,
    attempt: fn(&Before) -> io::Result<()>,
}

impl Act {
    const fn allowed(name: &'static str, attempt: fn(&Before) -> io::Result<()>) -> Act {
        Act { name, is_allowed: true, attempt }
    }

    const fn refused(name: &'static str, attempt: fn(&Before) -> io::Result<()>) -> Act {
        Act { name, is_allowed: false, attempt }
    }
}

const ACTS: &[Act] = &[
    Act::allowed("read a file that was given", |before| {
        outside::file(before.folder.join("own/given")).map(|_| ())
    }),
    Act::allowed("write where that was allowed", |before| {
        outside::write(before.folder.join("own/written"), "x")
    }),
    Act::allowed("start a thread", |_| std::thread::Builder::new().spawn(|| ()).map(|_| ())),
    Act::allowed("accept on the inherited listener", accept),
    #[cfg(feature = "cuda")]
    Act::allowed("open the GPU", |before| before.gpu.as_ref().copied().map_err(again)),
    Act::refused("read /etc/passwd", |_| outside::file("/etc/passwd").map(|_| ())),
    Act::refused("read a file elsewhere", |before| outside::file(before.other()).map(|_| ())),
    Act {
        name: "read what another process is",
        // Builds for GPUs read all of /proc for the driver's sake.
        is_allowed: cfg!(feature = "cuda"),
        attempt: |_| outside::file("/proc/1/cmdline").map(|_| ()),
    },
    Act::refused("write elsewhere", |before| outside::write(before.folder.join("new"), "x")),
    Act::refused("list a directory elsewhere", |before| {
        fs_err::read_dir(before.folder).map(|_| ())
    }),
    Act::refused("connect by TCP", |_| TcpStream::connect(NOBODY).map(|_| ())),
    Act::refused("listen by TCP", |_| TcpListener::bind("127.0.0.1:0").map(|_| ())),
    Act::refused("open a UDP socket", |_| UdpSocket::bind("127.0.0.1:0").map(|_| ())),
    Act::refused("look up a name", look_up),
    Act::refused("connect to a Unix socket", |before| {
        UnixStream::connect(before.folder.join("own/socket")).map(|_| ())
    }),
    Act::refused("listen on a Unix socket", |before| {
        UnixListener::bind(before.folder.join("own/mine")).map(|_| ())
    }),
    Act::refused("send to a Unix socket by its path", |before| {
        let (own, _) = UnixDatagram::pair()?;
        own.send_to(b"x", before.folder.join("log")).map(|_| ())
    }),
    Act::refused("send a descriptor", |_| acts::send_a_descriptor()),
    Act::refused("start a program", |_| Command::new("/bin/true").status().map(|_| ())),
    Act::refused("signal another process", |_| acts::signal_another_process()),
    Act::refused("limit another process", |_| acts::limit_another_process()),
    Act::refused("type into the terminal", |_| acts::type_into_the_terminal()),
    Act::refused("set up a ring of calls", |_| acts::set_up_a_ring()),
    Act {
        name: "map memory to write and run",
        // The driver of GPUs does.
        is_allowed: cfg!(feature = "cuda"),
        attempt: |_| acts::map_code(),
    },
    Act::refused("change a file's mode", |before| acts::change_the_mode(&before.other())),
    Act::refused("change a file's owner", |before| acts::change_the_owner(&before.other())),
    Act::refused("set a file's attribute", |before| acts::set_an_attribute(&before.other())),
    Act::refused("set a file's times", |before| acts::set_the_times(&before.other())),
    Act::refused("make a device", |before| acts::make_a_device(&before.folder.join("own/null"))),
    Act::refused("read through a link of a model", |before| {
        outside::file(before.folder.join("model/link")).map(|_| ())
    }),
];

impl Before<'_> {
    /// A file that nobody gave.
    fn other(&self) -> PathBuf {
        self.folder.join("other")
    }
}

fn accept(before: &Before) -> io::Result<()> {
    let (listener, _) = before.listener.as_ref().map_err(again)?;
    listener.accept().map(|_| ())
}

/// The same error, which cannot be copied.
fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// A listener and a connection to it; an error on a machine without any network.
fn listen() -> io::Result<(TcpListener, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let waiting = TcpStream::connect(listener.local_addr()?)?;
    Ok((listener, waiting))
}

/// Opens the first GPU. If its devices exist and it does not open, that counts as forbidden.
#[cfg(feature = "cuda")]
fn open_gpu() -> io::Result<()> {
    let is_there = ["/dev/nvidiactl", "/dev/dxg"].iter().any(|path| Path::new(path).exists());
    let kind = if is_there { ErrorKind::PermissionDenied } else { ErrorKind::NotFound };
    crate::ops::Cuda::open(0).map(|_| ()).map_err(|error| io::Error::new(kind, error.to_string()))
}

/// Looks up a name; every failure counts as forbidden.
fn look_up(_: &Before) -> io::Result<()> {
    match "localhost:80".to_socket_addrs() {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::new(ErrorKind::PermissionDenied, error.to_string())),
    }
}

/// Tries all actions in a child process, which prints the result of each.
pub fn run_all() -> Result<(), Failure> {
    let folder = whole_file::create_temporary("doctor")?;
    let tried = in_child(&folder);
    fs_err::remove_dir_all(&folder)?;
    match tried? {
        true => Ok(()),
        false => Err(Failure::outcome("the sandbox does not hold on this machine", None)),
    }
}

fn in_child(folder: &Path) -> io::Result<bool> {
    fs_err::create_dir(folder.join("own"))?;
    outside::write(folder.join("own/given"), "x")?;
    outside::write(folder.join("other"), "x")?;
    fs_err::create_dir(folder.join("model"))?;
    std::os::unix::fs::symlink("../other", folder.join("model/link"))?;
    let _listening = UnixListener::bind(folder.join("own/socket"))?;
    let _logging = UnixDatagram::bind(folder.join("log"))?;
    let child = Command::new(std::env::current_exe()?)
        .args(["doctor", "--sandbox-child"])
        .arg(folder)
        .status()?;
    Ok(child.success())
}

/// Tries all actions in this process.
pub fn run_child(folder: &Path) -> Result<(), Failure> {
    let paths = Paths::default().read_model(&folder.join("model")).write_in(&folder.join("own"));
    let listener = listen();
    // Its folder is not to be listed.
    let policy = Policy { network: Network::None, list: Vec::new(), ..paths.policy };
    let Some(mut sandbox) = enter(SandboxMode::Auto, &policy)? else { return Ok(()) };
    let before = Before {
        folder,
        listener,
        #[cfg(feature = "cuda")]
        gpu: open_gpu(),
    };
    sandbox.seal()?;
    console::say(sandbox.report.to_string())?;
    let mut wrong = 0;
    for Act { name, is_allowed, attempt } in ACTS {
        let (is_done, said) = match attempt(&before) {
            Ok(()) => (true, "done".to_owned()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => (false, error.to_string()),
            Err(error) => (true, error.to_string()),
        };
        let is_right = is_done == *is_allowed;
        wrong += usize::from(!is_right);
        let word = if is_done { "allowed" } else { "refused" };
        let mark = if is_right { "" } else { "  WRONG" };
        console::say(format!("{word}  {name:33} {said}{mark}"))?;
    }
    match wrong {
        0 => Ok(()),
        wrong => Err(Failure::outcome(format!("{wrong} actions did not end as expected"), None)),
    }
}
