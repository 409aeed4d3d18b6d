//! What is known of one inode: the fields every part of fathom asks the kernel for, in one plain struct.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file's type, from a dirent or from its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FileType {
    /// The dirent did not say (`DT_UNKNOWN`): only a stat tells.
    #[default]
    Unknown,
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block device.
    Block,
    /// A character device.
    Char,
}

impl FileType {
    /// From `d_type` of a dirent (readdir(3)); values nobody has defined are `Unknown`.
    #[must_use]
    pub fn from_dirent(d_type: u8) -> Self {
        match d_type {
            libc::DT_REG => Self::Regular,
            libc::DT_DIR => Self::Directory,
            libc::DT_LNK => Self::Symlink,
            libc::DT_FIFO => Self::Fifo,
            libc::DT_SOCK => Self::Socket,
            libc::DT_BLK => Self::Block,
            libc::DT_CHR => Self::Char,
            _ => Self::Unknown,
        }
    }

    /// From the `S_IFMT` bits of a mode (inode(7)).
    #[must_use]
    pub fn from_mode(mode: u32) -> Self {
        match mode & libc::S_IFMT {
            libc::S_IFREG => Self::Regular,
            libc::S_IFDIR => Self::Directory,
            libc::S_IFLNK => Self::Symlink,
            libc::S_IFIFO => Self::Fifo,
            libc::S_IFSOCK => Self::Socket,
            libc::S_IFBLK => Self::Block,
            libc::S_IFCHR => Self::Char,
            _ => Self::Unknown,
        }
    }
}

/// A point in time as the kernel keeps it: seconds since the epoch and nanoseconds within the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp {
    /// Seconds since 1970-01-01 00:00:00 UTC; may be negative.
    pub sec: i64,
    /// Nanoseconds, below 10^9.
    pub nsec: u32,
}

impl Stamp {
    /// Returns the same point in time as the standard library has it; `None` if that cannot
    /// represent it.
    #[must_use]
    pub fn to_system_time(self) -> Option<SystemTime> {
        let whole = Duration::from_secs(self.sec.unsigned_abs());
        let second = match self.sec {
            0.. => UNIX_EPOCH.checked_add(whole),
            _ => UNIX_EPOCH.checked_sub(whole),
        };
        second?.checked_add(Duration::from_nanos(self.nsec.into()))
    }
}

/// The metadata of one inode. Fields that were not asked for are unspecified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Meta {
    /// Device the file is on (`st_dev`).
    pub dev: u64,
    /// Inode number, unique on its device.
    pub ino: u64,
    /// Length in bytes; some pseudo files report a negative one.
    pub size: i64,
    /// Allocated blocks of 512 bytes, whatever `st_blksize` says.
    pub blocks: u64,
    /// Type and permission bits.
    pub mode: u32,
    /// Number of hard links.
    pub nlink: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last access.
    pub accessed: Stamp,
    /// Last change of the contents.
    pub modified: Stamp,
    /// Last change of the inode.
    pub changed: Stamp,
    /// When it was made, if that was asked for and the filesystem keeps it.
    pub born: Option<Stamp>,
    /// Whether this is the root of a mount; `None` where the kernel does not say.
    pub mount_root: Option<bool>,
}

impl Meta {
    /// The file's type.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::from_mode(self.mode)
    }

    /// Device and inode number: what identifies a file while it exists.
    #[must_use]
    pub fn id(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}

/// Which fields a caller needs. Type, device, inode, link count and mount root always come along, unless
/// [`Fields::LOCAL`] says otherwise: no filesystem charges for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Fields(u8);

impl Fields {
    /// Only what always comes.
    pub const IDENTITY: Self = Self(0);
    /// Length in bytes.
    pub const SIZE: Self = Self(1);
    /// Allocated blocks.
    pub const BLOCKS: Self = Self(2);
    /// All three time stamps.
    pub const TIMES: Self = Self(4);
    /// User and group.
    pub const OWNER: Self = Self(8);
    /// Everything that does not cost more than the rest.
    pub const ALL: Self = Self(15);
    /// When the file was made.
    pub const BIRTH: Self = Self(64);
    /// Nobody but this machine keeps the file: there is no difference between what is cached and what is true, and the
    /// cheapest call will do. Without a word on whether it is a mount's root.
    pub const LOCAL: Self = Self(32);
    /// Ask who keeps the file, even if something is cached: needed where nothing has looked the file up, as at the root of
    /// a mount.
    pub const FRESH: Self = Self(16);

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_system_times_where_those_reach() {
        let of = |sec, nsec| Stamp { sec, nsec }.to_system_time();
        assert_eq!(of(0, 0), Some(UNIX_EPOCH));
        assert_eq!(of(3, 7), UNIX_EPOCH.checked_add(Duration::new(3, 7)));
        // Half a second before the epoch.
        assert_eq!(of(-1, 500_000_000), UNIX_EPOCH.checked_sub(Duration::from_millis(500)));
        assert_eq!(of(i64::MAX, 999_999_999).is_some(), of(i64::MAX, 0).is_some());
        assert!(of(i64::MIN, 0).is_none_or(|time| time < UNIX_EPOCH));
    }
}
