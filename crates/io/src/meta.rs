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
pub struct FileTime {
    /// Seconds since 1970-01-01 00:00:00 UTC; may be negative.
    pub sec: i64,
    /// Nanoseconds, below 10^9.
    pub nsec: u32,
}

impl FileTime {
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

/// The attributes of an inode that a filesystem reports (`stx_attributes` of statx(2)). Their text
/// has lsattr's letters, in lsattr's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Attributes(u8);

impl Attributes {
    /// The file cannot be changed.
    pub const IMMUTABLE: Self = Self(1);
    /// The file can only be appended to.
    pub const APPEND: Self = Self(2);
    /// Backups by dump(8) leave the file out.
    pub const NODUMP: Self = Self(4);
    /// The filesystem compresses the file.
    pub const COMPRESSED: Self = Self(8);
    /// Reading the contents takes a key.
    pub const ENCRYPTED: Self = Self(16);
    /// The file bypasses the page cache: it is in memory that the CPU addresses.
    pub const DAX: Self = Self(32);
    /// The contents are checked against hashes as they are read (fs-verity).
    pub const VERITY: Self = Self(64);
    /// Bytes of the longest text.
    pub const TEXT_BYTES_MAX: usize = 7;
    /// The text of an inode that has no attribute.
    const NONE: u8 = b'-';
    /// By bit number.
    const LETTERS: [u8; Self::TEXT_BYTES_MAX] = *b"iadcExV";

    /// Returns the attributes of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set as a number below 128.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the set that [`Attributes::bits`] has this number for; `None` from 128 on.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits < 1 << Self::TEXT_BYTES_MAX { Some(Self(bits)) } else { None }
    }

    /// Writes the letters to `buffer` and returns them; `-` for an empty set.
    #[inline]
    pub fn text(self, buffer: &mut [u8; Self::TEXT_BYTES_MAX]) -> &[u8] {
        // That of nearly every file.
        if self.0 == 0 {
            buffer[0] = Self::NONE;
            return &buffer[..1];
        }
        let letters = (0..).zip(Self::LETTERS).filter(|(bit, _)| self.0 >> bit & 1 == 1);
        let mut len = 0;
        for (place, (_, letter)) in buffer.iter_mut().zip(letters) {
            *place = letter;
            len += 1;
        }
        &buffer[..len]
    }

    /// Returns the set that has this text; `None` if there is none.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Option<Self> {
        if text == [Self::NONE] {
            return Some(Self::default());
        }
        let bit = |letter: &u8| Self::LETTERS.iter().position(|known| known == letter);
        let set = text.iter().try_fold(0, |set, letter| Some(set | 1 << bit(letter)?));
        set.filter(|_| !text.is_empty()).map(Self)
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
    pub atime: FileTime,
    /// Last change of the contents.
    pub mtime: FileTime,
    /// Last change of the inode.
    pub ctime: FileTime,
    /// When it was made, if that was asked for and the filesystem keeps it.
    pub btime: Option<FileTime>,
    /// Whether this is the root of a mount; `None` where the kernel does not say.
    pub mount_root: Option<bool>,
    /// Attributes; `None` where the call or the filesystem does not report any.
    pub attributes: Option<Attributes>,
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
    /// Attributes such as "immutable", which statx(2) reports and stat(2) does not.
    pub const ATTRIBUTES: Self = Self(128);
    /// Nobody but this machine keeps the file: there is no difference between what is cached and what is true, and the
    /// cheapest call will do. Without a word on whether it is a mount's root.
    pub const LOCAL: Self = Self(32);
    /// Ask who keeps the file, even if something is cached: needed where nothing has looked the file up, as at the root of
    /// a mount.
    pub const FRESH: Self = Self(16);

    /// Both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_letters_and_back() {
        let text = |set: Attributes| set.text(&mut [0; Attributes::TEXT_BYTES_MAX]).to_vec();
        assert_eq!(text(Attributes::default()), b"-");
        assert_eq!(text(Attributes::APPEND.union(Attributes::IMMUTABLE)), b"ia");
        let all: Vec<_> = (0..=u8::MAX).filter_map(Attributes::from_bits).collect();
        assert_eq!((all.len(), &text(all[127])[..]), (128, &b"iadcExV"[..]));
        for set in all {
            assert_eq!(Attributes::from_text(&text(set)), Some(set));
        }
        for other in [&b""[..], b"I", b"i-", b"--", b"i a", b"\xff"] {
            assert_eq!(Attributes::from_text(other), None, "{other:?}");
        }
    }

    #[test]
    fn stamps_are_system_times_where_those_reach() {
        let of = |sec, nsec| FileTime { sec, nsec }.to_system_time();
        assert_eq!(of(0, 0), Some(UNIX_EPOCH));
        assert_eq!(of(3, 7), UNIX_EPOCH.checked_add(Duration::new(3, 7)));
        // Half a second before the epoch.
        assert_eq!(of(-1, 500_000_000), UNIX_EPOCH.checked_sub(Duration::from_millis(500)));
        assert_eq!(of(i64::MAX, 999_999_999).is_some(), of(i64::MAX, 0).is_some());
        assert!(of(i64::MIN, 0).is_none_or(|time| time < UNIX_EPOCH));
    }
}
