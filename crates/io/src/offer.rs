//! What this machine and the filesystem under a path offer: which models run, and the limits they meet.
//!
//! Owns the facts and the table of filesystems. Does not own how they are shown, nor any choice made from them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::available_parallelism;

use rustix::process::{Resource, getrlimit};

use crate::{Errno, Unavailable};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Name and release of the kernel.
    pub kernel: String,
    /// CPUs this process may use, by its affinity and its cgroup's quota.
    pub cpus: usize,
    /// Descriptors this process may have open; `None` is no limit.
    pub fd_limit: Option<u64>,
    /// Memory this process may lock, which rings of kernels before 5.12 are charged to; `None` is no limit.
    pub memlock_bytes: Option<u64>,
    /// Where the path lies.
    pub filesystem: Filesystem,
    /// Every model, in the order of [`Model::NAMES`](crate::Model::NAMES).
    pub models: Vec<Offered>,
}

/// The filesystem a path is on, and the device below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// Its magic number (statfs(2)); `None` where the system has none.
    pub magic: Option<i64>,
    /// The name that goes with the magic number, if it is a common one.
    pub name: Option<&'static str>,
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// Whether the device's head must move; `None` where there is no disk or the kernel does not say.
    pub rotational: Option<bool>,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// What `--io` calls it.
    pub model: &'static str,
    /// What it would do here, or why it cannot run.
    pub note: Result<String, Unavailable>,
}

impl Offer {
    /// What is offered to this process for `path`.
    ///
    /// # Errors
    /// Where `path` cannot be looked at: stat(2)'s.
    pub fn of(path: &Path) -> Result<Self, Errno> {
        let uname = rustix::system::uname();
        let cpus = available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Self {
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            cpus,
            fd_limit: getrlimit(Resource::Nofile).current,
            memlock_bytes: getrlimit(Resource::Memlock).current,
            filesystem: Filesystem::of(path)?,
            models: models(cpus),
        })
    }
}

impl Filesystem {
    fn of(path: &Path) -> Result<Self, Errno> {
        let metadata = fs::metadata(path);
        let dev = metadata.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?.dev();
        let device = (rustix::fs::major(dev), rustix::fs::minor(dev));
        let magic = magic(path);
        Ok(Self { magic, name: magic.and_then(name), device, rotational: rotational(device) })
    }
}

fn models(cpus: usize) -> Vec<Offered> {
    let says = |note: &str| Ok(note.to_string());
    [
        ("sync", says("one thread")),
        ("threads", Ok(format!("{cpus} threads unless told otherwise"))),
        ("async-seq", tokio_runs().and_then(|()| says("tokio::fs, one call after another"))),
        ("async-par", tokio_runs().and_then(|()| says("tokio::fs, many calls at once"))),
        ("uring", uring()),
        ("auto", says("threads, their number following the storage")),
    ]
    .map(|(model, note)| Offered { model, note })
    .into()
}

/// Returns why a model is not available in a build without `feature`.
#[must_use]
pub fn not_built(deed: &'static str, feature: &str) -> Unavailable {
    let cause = format!("this build is without the feature '{feature}'");
    Unavailable { deed, errno: Errno::NOSYS, cause }
}

#[cfg(feature = "tokio")]
fn tokio_runs() -> Result<(), Unavailable> {
    crate::tokio_fs::AsyncSeq::new().map(drop)
}

#[cfg(not(feature = "tokio"))]
fn tokio_runs() -> Result<(), Unavailable> {
    Err(not_built("use tokio", "tokio"))
}

#[cfg(all(target_os = "linux", feature = "uring", not(feature = "posix")))]
fn uring() -> Result<String, Unavailable> {
    use crate::uring::{DEPTH, Uring};
    Uring::new(DEPTH)?;
    Ok(format!("openat, statx and close through rings {DEPTH} deep, getdents64 called directly"))
}

#[cfg(not(all(target_os = "linux", feature = "uring", not(feature = "posix"))))]
fn uring() -> Result<String, Unavailable> {
    if cfg!(feature = "posix") {
        let cause = "this build makes POSIX calls only".to_string();
        return Err(Unavailable { deed: "use io_uring", errno: Errno::NOSYS, cause });
    }
    Err(not_built("use io_uring", "uring"))
}

#[cfg(all(target_os = "linux", not(feature = "posix")))]
fn magic(path: &Path) -> Option<i64> {
    rustix::fs::statfs(path).ok().map(|statfs| statfs.f_type)
}

#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
fn magic(_path: &Path) -> Option<i64> {
    None
}

/// Partitions have no queue of their own; their disk is the directory above.
fn rotational((major, minor): (u32, u32)) -> Option<bool> {
    let read = |below: &str| fs::read(format!("/sys/dev/block/{major}:{minor}/{below}queue/rotational")).ok();
    match read("").or_else(|| read("../"))?.first()? {
        b'0' => Some(false),
        b'1' => Some(true),
        _ => None,
    }
}

/// Whether the filesystem with this magic number asks a server for metadata. FUSE may or may not: it counts as local.
#[must_use]
pub fn is_network(magic: i64) -> bool {
    KNOWN.iter().any(|known| known.0 == magic && known.2 == Place::Network)
}

/// Whether the filesystem with this magic number is on a block device or in memory, so that its calls never go to a
/// server: if one takes long, it has waited for a block that many entries share.
#[must_use]
pub fn is_local(magic: i64) -> bool {
    KNOWN.iter().any(|known| known.0 == magic && known.2 == Place::Local)
}

/// Whether ordering a very wide directory by inode number speeds up taking its metadata, on the filesystem with this
/// magic number (gnulib's fts leaves it on tmpfs, NFS, CIFS and Lustre).
#[must_use]
pub fn inode_sort_pays(magic: i64) -> bool {
    !matches!(magic, TMPFS | NFS | CIFS | LUSTRE)
}

/// Returns the cookie (`d_off`) that follows the last entry of a directory, and no other entry, on
/// the filesystem with this magic number. `None` if it is not known to have one: then only a read
/// that returns nothing tells the end. A short read does not, because a signal may cut a read short.
///
/// ext4 reserves a hash for it (`EXT4_HTREE_EOF_64BIT`, fs/ext4/ext4.h): no name has that hash.
/// Directories without hashes, and those of 32-bit processes, have other cookies, all smaller.
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
    /// On whatever is below it, or with a daemon or a cluster to be asked.
    Either,
    Network,
}
use Place::{Either, Local, Network};

const EXT4: i64 = 0xEF53;
const TMPFS: i64 = 0x0102_1994;
const NFS: i64 = 0x6969;
const CIFS: i64 = 0xFF53_4D42;
const LUSTRE: i64 = 0x0BD0_0BD0;

/// Magic numbers (linux/magic.h, and for those not in the kernel their own headers) with the name mount(8) uses.
const KNOWN: [(i64, &str, Place); 40] = [
    (EXT4, "ext4", Local), // ext2 and ext3 as well: one driver, one number
    (0x5846_5342, "xfs", Local),
    (0x9123_683E, "btrfs", Local),
    (0x2FC1_2FC1, "zfs", Local),
    (0xCA45_1A4E, "bcachefs", Local),
    (0xF2F5_2010, "f2fs", Local),
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
    (0x00C3_6400, "ceph", Network),
    (0x4750_4653, "gpfs", Network),
    (0x1983_0326, "beegfs", Network),
    (0x2003_0528, "orangefs", Network),
    (0x5346_414F, "afs", Network),
    (0x0102_1997, "9p", Network),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    #[test]
    fn every_model_is_in_the_offer_and_the_blocking_ones_run() {
        let offer = Offer::of(Path::new("/")).unwrap();
        let names: Vec<_> = offer.models.iter().map(|offered| offered.model).collect();
        let all: Vec<_> = Model::NAMES.iter().map(|name| name.split('[').next().unwrap()).collect();
        assert_eq!(names, all);
        for offered in &offer.models {
            let blocking = ["sync", "threads", "auto"].contains(&offered.model);
            assert!(offered.note.is_ok() || !blocking, "{offered:?}");
        }
        assert!(offer.cpus > 0 && !offer.kernel.is_empty());
    }

    #[test]
    fn a_missing_path_is_its_error() {
        assert_eq!(Offer::of(Path::new("/nonexistent/x")), Err(Errno::NOENT));
    }

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
    fn what_is_local_asks_no_server_and_a_daemon_may() {
        assert!([0xEF53, TMPFS, 0x9FA0].into_iter().all(is_local));
        assert!([NFS, LUSTRE, 0x6573_5546, 0x794C_7630, 0x1234].into_iter().all(|magic| !is_local(magic)));
    }

    #[test]
    fn what_network_and_inode_order_mean_agree_with_fts() {
        assert!([NFS, CIFS, LUSTRE].into_iter().all(is_network) && !is_network(TMPFS) && !is_network(0xEF53));
        assert!([NFS, CIFS, LUSTRE, TMPFS].into_iter().all(|magic| !inode_sort_pays(magic)));
        assert!(inode_sort_pays(0xEF53) && inode_sort_pays(0x5846_5342) && inode_sort_pays(0x6573_5546));
    }
}
