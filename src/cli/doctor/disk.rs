//! Finds the disk of a directory, and whether it is encrypted by dm-crypt (LUKS), from what the kernel reports.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::audit::content;
use crate::cli::exit::Failure;
use crate::console;
use crate::outside;

/// The kernel's list of block devices by number.
const DEVICES: &str = "/sys/dev/block";
/// The most layers of devices that are searched; LUKS under LVM under RAID has three.
const MOST_LAYERS: usize = 8;

/// A mounted file system.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    /// `ext4`, `btrfs`, …
    kind: String,
    source: String,
    /// Its device number, such as `253:0`.
    device: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Encryption {
    DmCrypt,
    Memory,
    None,
    /// The kernel names no device, as for ZFS, network file systems and overlays of containers.
    Unknown,
}

/// Prints the disk of a directory, with a warning if it keeps texts unencrypted.
pub fn print(directory: &Path) -> Result<(), Failure> {
    let directory = fs_err::canonicalize(directory).map_err(|error| {
        Failure::usage(
            format!("{}: {}", directory.display(), std::io::Error::from(error.kind())),
            "name the directory of an audit trail, which --audit DIR makes, or any other that is there",
        )
    })?;
    let mounts = outside::text("/proc/self/mountinfo").unwrap_or_default();
    let mount = mount_of(&mounts, &directory);
    let encryption = mount.as_ref().map_or(Encryption::Unknown, encryption);
    let place = match &mount {
        Some(Mount { kind, source, point, .. }) => {
            format!("{kind} of {source}, mounted on {}", point.display())
        }
        None => "not known".to_owned(),
    };
    let words = match encryption {
        Encryption::DmCrypt => "yes: dm-crypt is under the file system",
        Encryption::Memory => "in memory; what is swapped out is on the swap device",
        Encryption::None => {
            "no: there is no dm-crypt under the file system; fscrypt is not looked for"
        }
        Encryption::Unknown => "not known: the kernel names no device under the file system",
    };
    console::say(format!("directory  {}", directory.display()))?;
    console::say(format!("disk       {place}"))?;
    console::say(format!("encrypted  {words}"))?;
    let is_plain = matches!(encryption, Encryption::None | Encryption::Unknown);
    let texts = content::list(&directory)?.len();
    if is_plain && texts > 0 {
        console::say(format!(
            "warning    {texts} texts are kept here, and whoever has the disk can read them: encrypt it, or keep hashes only (--audit-content hash)"
        ))?;
    }
    Ok(())
}

/// The file system of a path: the one with the longest mount point, and of equal ones the last.
fn mount_of(mounts: &str, path: &Path) -> Option<Mount> {
    let holds = mounts.lines().filter_map(mount).filter(|mount| path.starts_with(&mount.point));
    holds.max_by_key(|mount| mount.point.components().count())
}

/// A line of `mountinfo`: `36 35 98:0 / /mnt rw,noatime shared:1 - ext3 /dev/root rw`.
fn mount(line: &str) -> Option<Mount> {
    let (mounted, file_system) = line.split_once(" - ")?;
    let mut mounted = mounted.split(' ').skip(2);
    let device = mounted.next()?.to_owned();
    let point = PathBuf::from(unescaped(mounted.nth(1)?));
    let mut file_system = file_system.split(' ');
    let kind = file_system.next()?.to_owned();
    Some(Mount { point, kind, source: unescaped(file_system.next()?), device })
}

/// Decodes spaces, tabs, newlines and backslashes, which are escaped in octal.
fn unescaped(text: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(text.to_owned(), |text, (code, character)| text.replace(code, character))
}

fn encryption(mount: &Mount) -> Encryption {
    if ["tmpfs", "ramfs"].contains(&mount.kind.as_str()) {
        return Encryption::Memory;
    }
    // The device number of btrfs belongs to no device; its source does.
    let of_source = || {
        let number = fs_err::metadata(&mount.source).ok()?.rdev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        (number != 0).then(|| format!("{major}:{minor}"))
    };
    let devices = Path::new(DEVICES);
    let known = Some(mount.device.clone()).filter(|device| devices.join(device).exists());
    match known.or_else(of_source).map(|device| devices.join(device)) {
        Some(device) if has_dm_crypt(&device, MOST_LAYERS) => Encryption::DmCrypt,
        Some(device) if device.exists() => Encryption::None,
        _ => Encryption::Unknown,
    }
}

/// Whether a device of sysfs, or every device under it, is a dm-crypt device.
fn has_dm_crypt(device: &Path, layers: usize) -> bool {
    let uuid = outside::text(device.join("dm/uuid")).unwrap_or_default();
    if uuid.starts_with("CRYPT-") {
        return true;
    }
    let below = fs_err::read_dir(device.join("slaves")).into_iter().flatten().flatten();
    let mut below = below.map(|entry| entry.path()).peekable();
    layers > 0 && below.peek().is_some() && below.all(|device| has_dm_crypt(&device, layers - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/root rw\n\
        30 22 0:25 / /srv/a\\040b rw - btrfs /dev/sdb1 rw\n\
        31 22 0:26 / /run rw shared:2 - tmpfs tmpfs rw\n";

    #[test]
    fn a_directory_lies_on_the_deepest_mount_that_holds_it() {
        let of = |path: &str| mount_of(MOUNTS, Path::new(path)).unwrap();
        let root = of("/var/lib/audit");
        assert_eq!((root.kind.as_str(), root.device.as_str()), ("ext4", "253:0"));
        assert_eq!(of("/srv/a b/audit").source, "/dev/sdb1");
        assert_eq!(of("/srv/ab").kind, "ext4");
        assert_eq!(encryption(&of("/run/audit")), Encryption::Memory);
        assert_eq!(mount_of("", Path::new("/")), None);
    }

    #[test]
    fn dm_crypt_is_found_under_other_layers_and_must_be_under_all_of_them() {
        let sys = tempfile::tempdir().unwrap();
        let add = |device: &str, uuid: &str| {
            let folder = sys.path().join(device);
            std::fs::create_dir_all(folder.join("dm")).unwrap();
            std::fs::write(folder.join("dm/uuid"), uuid).unwrap();
            folder
        };
        assert!(has_dm_crypt(&add("luks", "CRYPT-LUKS2-1-root\n"), 4));
        let volume = add("lvm", "LVM-1\n");
        assert!(!has_dm_crypt(&volume, 4));
        add("lvm/slaves/dm-1", "CRYPT-LUKS2-2\n");
        assert!(has_dm_crypt(&volume, 4) && !has_dm_crypt(&volume, 0));
        std::fs::create_dir_all(volume.join("slaves/sda1")).unwrap();
        assert!(!has_dm_crypt(&volume, 4));
    }

    #[test]
    fn the_disk_of_a_directory_that_is_there_is_told() {
        print(tempfile::tempdir().unwrap().path()).unwrap();
        assert!(print(Path::new("/no/such/directory")).is_err());
    }
}
