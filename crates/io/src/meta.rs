//! The metadata of one inode, the set of fields that a call asks for, and their types.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file type, from a dirent or from a mode.
///
/// ```
/// use fathom_io::FileType;
///
/// assert_eq!(FileType::from_mode(0o100_644), FileType::Regular);
/// // DT_DIR of readdir(3).
/// assert_eq!(FileType::from_dirent(4), FileType::Directory);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FileType {
    /// The dirent has no type (`DT_UNKNOWN`). A stat call is needed.
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
    /// Converts `d_type` of a dirent (readdir(3)). Undefined values become `Unknown`.
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

    /// Returns the name in reports and in JSON, as in `directory`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Regular => "regular",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::Block => "block",
            Self::Char => "char",
        }
    }

    /// Converts the `S_IFMT` bits of a mode (inode(7)).
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

/// A time stamp of a file as the kernel stores it: seconds since the epoch, and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileTime {
    /// Seconds since 1970-01-01 00:00:00 UTC; may be negative.
    pub sec: i64,
    /// Nanoseconds, below 10^9.
    pub nsec: u32,
}

impl FileTime {
    /// Converts to the type of the standard library. `None` if that cannot represent the time.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use fathom_io::FileTime;
    ///
    /// let mtime = FileTime { sec: -1, nsec: 500_000_000 };
    /// assert_eq!(mtime.to_system_time(), Some(UNIX_EPOCH - Duration::from_millis(500)));
    /// ```
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
/// has the letters of lsattr(1), in the same order.
///
/// ```
/// use fathom_io::Attributes;
///
/// let set = Attributes::APPEND.union(Attributes::IMMUTABLE);
/// let mut buffer = [0; Attributes::TEXT_BYTES_MAX];
/// assert_eq!(set.text(&mut buffer), b"ia");
/// assert_eq!(Attributes::from_text(b"ia"), Some(set));
/// ```
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
    /// The contents are encrypted.
    pub const ENCRYPTED: Self = Self(16);
    /// The file is in memory that the CPU addresses, and bypasses the page cache.
    pub const DAX: Self = Self(32);
    /// Reads verify the contents against hashes (fs-verity).
    pub const VERITY: Self = Self(64);
    /// Length of the longest text, in bytes.
    pub const TEXT_BYTES_MAX: usize = 7;
    /// The text of an inode that has no attribute.
    const NONE: u8 = b'-';
    /// The letters by bit number.
    const LETTERS: [u8; Self::TEXT_BYTES_MAX] = *b"iadcExV";

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set as a number below 128.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the set for a number from [`Attributes::bits`]. `None` from 128 on.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits < 1 << Self::TEXT_BYTES_MAX { Some(Self(bits)) } else { None }
    }

    /// Writes the letters to `buffer` and returns them, or `-` for an empty set.
    #[inline]
    pub fn text(self, buffer: &mut [u8; Self::TEXT_BYTES_MAX]) -> &[u8] {
        // Nearly all files have the empty set.
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

    /// Returns the set with this text. `None` if no set has it.
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

/// The metadata of one inode. [`Meta::fields`] says which fields have values; the others are
/// unspecified. [`Fields`] names those that every call fills.
///
/// ```
/// use fathom_io::{Fields, Follow, sys};
///
/// let meta = sys::stat(sys::CWD, c"Cargo.toml", Follow::No, Fields::SIZE)?;
/// assert!(meta.has(Fields::SIZE) && !meta.has(Fields::TIMES));
/// // procfs does not store times of creation.
/// let all = Fields::TIMES.union(Fields::BIRTH);
/// let meta = sys::stat(sys::CWD, c"/proc/self/stat", Follow::No, all)?;
/// assert!(meta.has(Fields::TIMES) && !meta.has(Fields::BIRTH));
/// # Ok::<(), fathom_io::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Meta {
    /// Device number of the filesystem (`st_dev`).
    pub dev: u64,
    /// Inode number, unique on its device.
    pub ino: u64,
    /// Length in bytes. Some pseudo files report a negative length.
    pub size: i64,
    /// Number of allocated blocks of 512 bytes, independent of `st_blksize`.
    pub blocks: u64,
    /// Type and permission bits.
    pub mode: u32,
    /// Number of hard links.
    pub nlink: u64,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Time of the last access.
    pub atime: FileTime,
    /// Time of the last modification of the contents.
    pub mtime: FileTime,
    /// Time of the last change of the inode.
    pub ctime: FileTime,
    /// Time of creation. `None` if the call did not ask for it or the filesystem does not store it.
    pub btime: Option<FileTime>,
    /// Whether the inode is the root of a mount. `None` if the kernel does not report it.
    pub mount_root: Option<bool>,
    /// Attributes. `None` if the call did not ask for them or the filesystem does not report any.
    pub attributes: Option<Attributes>,
    /// The fields that the call asked for and the filesystem reported (`stx_mask` of statx(2)).
    pub fields: Fields,
}

impl Meta {
    /// Returns whether all of `fields` have values. [`Fields::LOCAL`] and [`Fields::FRESH`] are no
    /// values and never in [`Meta::fields`].
    #[must_use]
    pub const fn has(&self, fields: Fields) -> bool {
        self.fields.contains(fields)
    }

    /// Returns the file type.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::from_mode(self.mode)
    }

    /// Returns device and inode number, which identify a file while it exists.
    #[must_use]
    pub fn id(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}

/// The set of fields that a metadata call asks for. Type, device, inode number, link count and
/// mount root are always included, because no filesystem takes longer for them. [`Fields::LOCAL`]
/// is the exception.
///
/// ```
/// use fathom_io::{Fields, Follow, sys};
///
/// let fields = Fields::SIZE.union(Fields::TIMES);
/// assert!(fields.contains(Fields::SIZE) && !fields.contains(Fields::OWNER));
/// let meta = sys::stat(sys::CWD, c"Cargo.toml", Follow::No, fields)?;
/// assert!(meta.size > 0);
/// # Ok::<(), fathom_io::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Fields(u8);

impl Fields {
    /// No field beyond those that are always included.
    pub const IDENTITY: Self = Self(0);
    /// Length in bytes.
    pub const SIZE: Self = Self(1);
    /// Allocated blocks.
    pub const BLOCKS: Self = Self(2);
    /// The time stamps `atime`, `mtime` and `ctime`.
    pub const TIMES: Self = Self(4);
    /// User ID and group ID.
    pub const OWNER: Self = Self(8);
    /// Size, blocks, times and owner: all fields without an additional cost.
    pub const ALL: Self = Self(15);
    /// Time of creation.
    pub const BIRTH: Self = Self(64);
    /// Attributes such as "immutable", which statx(2) reports and stat(2) does not.
    pub const ATTRIBUTES: Self = Self(128);
    /// The file is on a filesystem of this machine, so cached metadata is always current and the
    /// cheapest call is sufficient. The mount root is not reported.
    pub const LOCAL: Self = Self(32);
    /// Fetch the metadata from the server of the filesystem even if it is cached. This is needed if
    /// no lookup has revalidated the inode, as for the root of a mount.
    pub const FRESH: Self = Self(16);

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether this set contains all fields of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_round_trip_through_their_letters() {
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
    fn the_set_of_fields_is_in_the_padding_of_the_metadata() {
        assert_eq!((size_of::<Meta>(), align_of::<Meta>()), (128, 8));
    }

    #[test]
    fn file_times_convert_to_system_times_within_their_range() {
        let of = |sec, nsec| FileTime { sec, nsec }.to_system_time();
        assert_eq!(of(0, 0), Some(UNIX_EPOCH));
        assert_eq!(of(3, 7), UNIX_EPOCH.checked_add(Duration::new(3, 7)));
        // This is half a second before the epoch.
        assert_eq!(of(-1, 500_000_000), UNIX_EPOCH.checked_sub(Duration::from_millis(500)));
        assert_eq!(of(i64::MAX, 999_999_999).is_some(), of(i64::MAX, 0).is_some());
        assert!(of(i64::MIN, 0).is_none_or(|time| time < UNIX_EPOCH));
    }
}
