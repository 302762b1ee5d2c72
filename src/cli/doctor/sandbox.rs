//! `doctor --sandbox`: what the kernel says to each act that a sandbox forbids, tried in a process of its own.
#![expect(clippy::disallowed_methods, reason = "connections are tried where they must fail")]

use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use crate::cli::exit::Failure;
use crate::console;
use crate::sandbox::{Network, Policy, SandboxMode, enter};

/// Nobody listens there: who may connect is told that, not that it is forbidden.
const NOBODY: &str = "127.0.0.1:9";

/// Something that a process may want to do, in a folder with a subfolder `own`.
struct Act {
    name: &'static str,
    is_allowed: bool,
    attempt: fn(&Path) -> io::Result<()>,
}

const ACTS: &[Act] = &[
    Act {
        name: "read a file that was given",
        is_allowed: true,
        attempt: |folder| fs_err::read(folder.join("own/given")).map(|_| ()),
    },
    Act {
        name: "write where that was allowed",
        is_allowed: true,
        attempt: |folder| fs_err::write(folder.join("own/written"), "x"),
    },
    Act {
        name: "start a thread",
        is_allowed: true,
        attempt: |_| std::thread::Builder::new().spawn(|| ()).map(|_| ()),
    },
    Act {
        name: "read /etc/passwd",
        is_allowed: false,
        attempt: |_| fs_err::read("/etc/passwd").map(|_| ()),
    },
    Act {
        name: "read a file elsewhere",
        is_allowed: false,
        attempt: |folder| fs_err::read(folder.join("other")).map(|_| ()),
    },
    Act {
        name: "write elsewhere",
        is_allowed: false,
        attempt: |folder| fs_err::write(folder.join("new"), "x"),
    },
    Act {
        name: "list a directory elsewhere",
        is_allowed: false,
        attempt: |folder| fs_err::read_dir(folder).map(|_| ()),
    },
    Act {
        name: "connect by TCP",
        is_allowed: false,
        attempt: |_| TcpStream::connect(NOBODY).map(|_| ()),
    },
    Act {
        name: "listen by TCP",
        is_allowed: false,
        attempt: |_| TcpListener::bind("127.0.0.1:0").map(|_| ()),
    },
    Act {
        name: "open a UDP socket",
        is_allowed: false,
        attempt: |_| UdpSocket::bind("127.0.0.1:0").map(|_| ()),
    },
    Act { name: "look up a name", is_allowed: false, attempt: look_up },
    Act {
        name: "connect to a Unix socket",
        is_allowed: false,
        attempt: |folder| UnixStream::connect(folder.join("own/socket")).map(|_| ()),
    },
    Act {
        name: "listen on a Unix socket",
        is_allowed: false,
        attempt: |folder| UnixListener::bind(folder.join("own/mine")).map(|_| ()),
    },
    Act {
        name: "start a program",
        is_allowed: false,
        attempt: |_| Command::new("/bin/true").status().map(|_| ()),
    },
];

/// Whatever goes wrong with a name, it was not found.
fn look_up(_: &Path) -> io::Result<()> {
    match "localhost:80".to_socket_addrs() {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::new(ErrorKind::PermissionDenied, error.to_string())),
    }
}

/// Tries all acts in a child, and prints what became of each.
///
/// # Errors
/// A folder or a process that cannot be made; an act that should be refused and is not, or the other way round.
pub fn try_acts() -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("wardround-doctor-{}", std::process::id()));
    fs_err::create_dir_all(folder.join("own"))?;
    let tried = in_child(&folder);
    fs_err::remove_dir_all(&folder)?;
    match tried? {
        true => Ok(()),
        false => Err(Failure::outcome("the sandbox does not hold on this machine", None)),
    }
}

fn in_child(folder: &Path) -> io::Result<bool> {
    fs_err::write(folder.join("own/given"), "x")?;
    fs_err::write(folder.join("other"), "x")?;
    let _listening = UnixListener::bind(folder.join("own/socket"))?;
    let child = Command::new(std::env::current_exe()?)
        .args(["doctor", "--sandbox-child"])
        .arg(folder)
        .status()?;
    Ok(child.success())
}

/// What the child does.
///
/// # Errors
/// See [`try_acts`].
pub fn act(folder: &Path) -> Result<(), Failure> {
    let policy =
        Policy { write: vec![folder.join("own")], network: Network::None, ..Policy::default() };
    let Some(mut sandbox) = enter(SandboxMode::Auto, &policy)? else { return Ok(()) };
    sandbox.seal()?;
    console::say(sandbox.report.to_string())?;
    let mut wrong = 0;
    for Act { name, is_allowed, attempt } in ACTS {
        let (is_done, said) = match attempt(folder) {
            Ok(()) => (true, "done".to_owned()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => (false, error.to_string()),
            Err(error) => (true, error.to_string()),
        };
        let is_right = is_done == *is_allowed;
        wrong += usize::from(!is_right);
        let word = if is_done { "allowed" } else { "refused" };
        let mark = if is_right { "" } else { "  WRONG" };
        console::say(format!("{word}  {name:30} {said}{mark}"))?;
    }
    match wrong {
        0 => Ok(()),
        wrong => {
            Err(Failure::outcome(format!("{wrong} acts ended otherwise than they should"), None))
        }
    }
}
