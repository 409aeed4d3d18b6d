//! The filesystem of a path: its type, its device, and the properties of types that walks use.
//!
//! Owns: the table of filesystem types. Does not own: decisions that follow from a property.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::Errno;

/// The filesystem of a path, and its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// The magic number (statfs(2)); `None` on systems without such numbers.
    pub magic: Option<i64>,
    /// The name of the type, if the table has its magic number.
    pub name: Option<&'static str>,
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// Whether the device is a rotating disk; `None` if there is no disk or the kernel does not
    /// report it.
    pub rotational: Option<bool>,
}

impl Filesystem {
    /// Returns the filesystem of `path`.
    ///
    /// # Errors
    /// The error of stat(2) on `path`.
    pub fn of(path: &Path) -> Result<Self, Errno> {
        let metadata = fs::metadata(path);
        let dev = metadata.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?.dev();
        let device = (rustix::fs::major(dev), rustix::fs::minor(dev));
        let magic = magic(path);
        Ok(Self { magic, name: magic.and_then(name), device, rotational: rotational(device) })
    }
}

#[cfg(all(target_os = "linux", not(feature = "posix")))]
fn magic(path: &Path) -> Option<i64> {
    rustix::fs::statfs(path).ok().map(|statfs| statfs.f_type)
}

#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
fn magic(_path: &Path) -> Option<i64> {
    None
}

/// Returns the number of the filesystem of `path` (`f_fsid`, statfs(2)) where it is the number of
/// the filesystem itself, and so the same after another mount. Other types make it from the number
/// of the device or of the mount.
#[cfg(all(target_os = "linux", not(feature = "posix")))]
#[must_use]
pub fn persistent_id(path: &Path) -> Option<u64> {
    let is_persistent = magic(path).is_some_and(|magic| matches!(magic, EXT4 | BTRFS | ZFS | CEPH | LUSTRE));
    let id = rustix::fs::statvfs(path).ok().filter(|_| is_persistent).map(|statvfs| statvfs.f_fsid);
    id.filter(|id| *id != 0)
}

/// Returns no number: statfs(2) is Linux's.
#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
#[must_use]
pub fn persistent_id(_path: &Path) -> Option<u64> {
    None
}

/// Returns whether the device of `path` completes requests by polling (`RWF_HIPRI`, readv(2)). For
/// other devices the kernel ignores the flag.
#[must_use]
pub fn has_poll_queue(path: &Path) -> bool {
    let dev = fs::metadata(path).map(|metadata| metadata.dev()).unwrap_or_default();
    queue_flag((rustix::fs::major(dev), rustix::fs::minor(dev)), "io_poll") == Some(true)
}

fn rotational(device: (u32, u32)) -> Option<bool> {
    queue_flag(device, "rotational")
}

/// Reads the flag `name` of the disk. A partition has no queue of its own: its disk's queue is in
/// the directory above.
fn queue_flag(device: (u32, u32), name: &str) -> Option<bool> {
    let (major, minor) = device;
    let read = |below: &str| fs::read(format!("/sys/dev/block/{major}:{minor}/{below}queue/{name}")).ok();
    match read("").or_else(|| read("../"))?.first()? {
        b'0' => Some(false),
        b'1' => Some(true),
        _ => None,
    }
}

/// Returns whether the filesystem with this magic number asks a server for metadata. FUSE may ask
/// one, but does not count as a network filesystem.
#[must_use]
pub fn is_network(magic: i64) -> bool {
    KNOWN.iter().any(|known| known.0 == magic && known.2 == Place::Network)
}

/// Returns whether the filesystem with this magic number is on a block device or in memory, so that
/// its calls never go to a server: a call that takes long has waited for a block that many entries
/// share.
#[must_use]
pub fn is_local(magic: i64) -> bool {
    KNOWN.iter().any(|known| known.0 == magic && known.2 == Place::Local)
}

/// Returns whether the metadata of a very wide directory is read faster in the order of inode
/// numbers, on the filesystem with this magic number (gnulib's fts does not sort on tmpfs, NFS,
/// CIFS and Lustre).
#[must_use]
pub fn inode_sort_pays(magic: i64) -> bool {
    !matches!(magic, TMPFS | NFS | CIFS | LUSTRE)
}

/// The space of a filesystem, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// All bytes that files may take.
    pub size: u64,
    /// The bytes that are taken.
    pub used: u64,
    /// The bytes that are free for users other than root, as df(1) shows it.
    pub free: u64,
}

impl Space {
    /// Returns the space of the filesystem of `path`; `None` if it cannot be read.
    ///
    /// ```
    /// let space = fathom_io::filesystem::Space::of(std::path::Path::new("/")).unwrap();
    /// assert!(space.size >= space.used);
    /// ```
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let space = rustix::fs::statvfs(path).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        Some(Self {
            size: bytes(space.f_blocks),
            used: bytes(space.f_blocks.saturating_sub(space.f_bfree)),
            free: bytes(space.f_bavail),
        })
    }
}

/// Returns whether files have the used blocks of statfs(2), but for a few per cent, on the
/// filesystem of `path`: not where snapshots, other subvolumes or other exports share the blocks.
#[must_use]
pub fn counts_only_files(path: &Path) -> bool {
    magic(path).is_some_and(|magic| matches!(magic, EXT4 | XFS | F2FS | TMPFS))
}

/// Returns the cookie (`d_off`) that follows the last entry of a directory, and no other entry, on
/// the filesystem with this magic number. `None` if it is not known to have one: then only a read
/// that returns nothing tells the end. A short read does not, because a signal may end it early.
///
/// ext4 reserves a hash for it (`EXT4_HTREE_EOF_64BIT`, fs/ext4/ext4.h): no name has that hash.
/// Directories without hashes, and directories in 32-bit processes, have other cookies, all
/// smaller.
#[must_use]
pub fn end_cookie(magic: i64) -> Option<u64> {
    (magic == EXT4).then_some(i64::MAX.cast_unsigned())
}

fn name(magic: i64) -> Option<&'static str> {
    KNOWN.iter().find(|known| known.0 == magic).map(|known| known.1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Local,
    /// Depends on the filesystem below, or on a daemon or a cluster.
    Either,
    Network,
}
use Place::{Either, Local, Network};

const EXT4: i64 = 0xEF53;
const XFS: i64 = 0x5846_5342;
const F2FS: i64 = 0xF2F5_2010;
const TMPFS: i64 = 0x0102_1994;
const NFS: i64 = 0x6969;
const CIFS: i64 = 0xFF53_4D42;
const LUSTRE: i64 = 0x0BD0_0BD0;
const BTRFS: i64 = 0x9123_683E;
const ZFS: i64 = 0x2FC1_2FC1;
const CEPH: i64 = 0x00C3_6400;

/// Magic numbers with the names that mount(8) uses. The numbers are from linux/magic.h, or from the
/// headers of filesystems outside the kernel.
const KNOWN: [(i64, &str, Place); 40] = [
    (EXT4, "ext4", Local), // ext2 and ext3 as well: one driver, one number
    (XFS, "xfs", Local),
    (BTRFS, "btrfs", Local),
    (ZFS, "zfs", Local),
    (0xCA45_1A4E, "bcachefs", Local),
    (F2FS, "f2fs", Local),
    (0x3434, "nilfs2", Local),
    (0x5265_4973, "reiserfs", Local),
    (0x3153_464A, "jfs", Local),
    (0x4D44, "vfat", Local),
    (0x2011_BAB0, "exfat", Local),
    (0x5346_544E, "ntfs", Local),
    (0x7366_746E, "ntfs3", Local),
    (0x9660, "iso9660", Local),
    (0x1501_3346, "udf", Local),
    (0x482B, "hfsplus", Local),
    (0x7371_7368, "squashfs", Local),
    (0xE0F5_E1E2, "erofs", Local),
    (0x28CD_3D45, "cramfs", Local),
    (0x794C_7630, "overlay", Either),
    (0xF15F, "ecryptfs", Either),
    (0x7461_636F, "ocfs2", Either),
    (0x0116_1970, "gfs2", Either),
    (TMPFS, "tmpfs", Local),
    (0x8584_58F6, "ramfs", Local),
    (0x9FA0, "proc", Local),
    (0x6265_6572, "sysfs", Local),
    (0x6367_7270, "cgroup2", Local),
    (0x6573_5546, "fuse", Either),
    (NFS, "nfs", Network),
    (CIFS, "cifs", Network),
    (0xFE53_4D42, "smb2", Network),
    (0x517B, "smb", Network),
    (LUSTRE, "lustre", Network),
    (CEPH, "ceph", Network),
    (0x4750_4653, "gpfs", Network),
    (0x1983_0326, "beegfs", Network),
    (0x2003_0528, "orangefs", Network),
    (0x5346_414F, "afs", Network),
    (0x0102_1997, "9p", Network),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    #[test]
    fn proc_is_proc_and_on_no_disk() {
        let filesystem = Filesystem::of(Path::new("/proc")).unwrap();
        assert_eq!((filesystem.name, filesystem.rotational), (Some("proc"), None));
        assert_eq!(filesystem.device.0, 0);
    }

    #[test]
    fn numbers_are_in_the_table_once() {
        for (index, known) in KNOWN.iter().enumerate() {
            assert!(KNOWN[..index].iter().all(|other| other.0 != known.0 && other.1 != known.1), "{known:?}");
        }
    }

    #[test]
    fn local_filesystems_ask_no_server_and_daemons_may() {
        assert!([0xEF53, TMPFS, 0x9FA0].into_iter().all(is_local));
        assert!([NFS, LUSTRE, 0x6573_5546, 0x794C_7630, 0x1234].into_iter().all(|magic| !is_local(magic)));
    }

    #[test]
    fn network_and_inode_order_agree_with_fts() {
        assert!([NFS, CIFS, LUSTRE].into_iter().all(is_network) && !is_network(TMPFS) && !is_network(0xEF53));
        assert!([NFS, CIFS, LUSTRE, TMPFS].into_iter().all(|magic| !inode_sort_pays(magic)));
        assert!(inode_sort_pays(0xEF53) && inode_sort_pays(0x5846_5342) && inode_sort_pays(0x6573_5546));
    }
}
