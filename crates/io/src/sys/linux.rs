//! The calls on Linux: openat(2), getdents64(2) and statx(2).

use std::cell::RefCell;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, SeekFrom, Statx, StatxAttributes, StatxFlags};
use rustix::io::retry_on_intr;

use crate::{Attributes, Errno, Fields, FileTime, FileType, Follow, Meta, Names};

/// Buffer size of a getdents64 call, in bytes. A small directory fits one call.
const DIRENTS_BYTES: usize = 64 * 1024;

/// Upper bound of a directory's size for [`is_cached_local`]: one block of ext4.
const SMALL_DIR_BYTES: i64 = 4096;

/// An open directory.
///
/// ```
/// use std::os::fd::AsFd;
/// use fathom_io::{Dir, Fields, sys};
///
/// let dir = Dir::from_fd(std::fs::File::open("/")?.into());
/// let meta = sys::stat_dir(&dir, Fields::IDENTITY)?;
/// assert_eq!(sys::fs_magic(dir.as_fd()).is_some(), cfg!(target_os = "linux"));
/// assert!(meta.nlink > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Dir(OwnedFd);

impl Dir {
    /// Creates a `Dir` from a descriptor that is open on a directory.
    #[must_use]
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Returns the descriptor.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns the flags with which directories are opened.
pub(crate) fn open_flags(follow: Follow) -> OFlags {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if follow == Follow::Yes { flags } else { flags | OFlags::NOFOLLOW }
}

/// Opens a directory for reading.
///
/// # Errors
/// As openat(2).
///
/// ```
/// use fathom_io::{Errno, Follow, Names, sys};
///
/// let dir = sys::open_dir(sys::CWD, c".", Follow::No)?;
/// let mut names = Names::new();
/// while sys::read_some_names(&dir, &mut names, usize::MAX)? {}
/// assert!(names.iter().any(|name| name.name == c"Cargo.toml"));
/// # Ok::<(), Errno>(())
/// ```
pub fn open_dir(at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
    retry_on_intr(|| rustix::fs::openat(at, name, open_flags(follow), Mode::empty())).map(Dir)
}

/// Opens the directory `path` below `at` as the base of other calls (`O_PATH`). Unless links are
/// followed, no component may be one.
///
/// # Errors
/// As openat2(2). ELOOP if a component is a symbolic link and `follow` is [`Follow::No`].
///
/// ```
/// use std::os::fd::AsFd;
/// use fathom_io::{Errno, FileType, Fields, Follow, sys};
///
/// let base = sys::open_path(sys::CWD, c"src/sys", Follow::No)?;
/// let meta = sys::stat(base.as_fd(), c"mod.rs", Follow::No, Fields::IDENTITY)?;
/// assert_eq!(meta.file_type(), FileType::Regular);
/// # Ok::<(), Errno>(())
/// ```
pub fn open_path(at: BorrowedFd<'_>, path: &CStr, follow: Follow) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if follow == Follow::Yes {
        return retry_on_intr(|| rustix::fs::openat(at, path, flags, Mode::empty()));
    }
    retry_on_intr(|| rustix::fs::openat2(at, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS))
}

/// Returns whether `path` is on a disk of this machine and is not a directory of more than one
/// block. Makes only calls that do not wait: returns false unless the dentry cache has the path and
/// the device has a major number, which network filesystems and FUSE do not have.
///
/// ```
/// assert!(!fathom_io::sys::is_cached_local(c"/nonexistent"));
/// ```
#[must_use]
pub fn is_cached_local(path: &CStr) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let open = || rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::CACHED);
    let Ok(file) = retry_on_intr(open) else { return false };
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let meta = statx(file.as_fd(), c"", flags, Fields::IDENTITY.union(Fields::SIZE));
    meta.is_ok_and(|meta| {
        let small = meta.file_type() != FileType::Directory || meta.size <= SMALL_DIR_BYTES;
        small && rustix::fs::major(meta.dev) > 0
    })
}

/// Sets the position of `dir` to the cookie of a batch, or to the start for 0.
///
/// # Errors
/// As lseek(2).
///
/// ```
/// use fathom_io::{Errno, Follow, Names, sys};
///
/// let dir = sys::open_dir(sys::CWD, c"src", Follow::No)?;
/// let (mut first, mut again) = (Names::new(), Names::new());
/// sys::read_names(&dir, &mut first, 3)?;
/// sys::seek(&dir, 0)?;
/// sys::read_names(&dir, &mut again, 3)?;
/// assert_eq!(first.get(2), again.get(2));
/// # Ok::<(), Errno>(())
/// ```
pub fn seek(dir: &Dir, cookie: u64) -> Result<(), Errno> {
    rustix::fs::seek(&dir.0, SeekFrom::Start(cookie)).map(drop)
}

/// Appends names until `names` has `limit` entries. Returns false at the end of the directory.
///
/// A batch that ends within a buffer of dirents sets the position of the directory to its end, so
/// the next call continues there.
///
/// # Errors
/// As getdents64(2). EIO for an invalid record.
pub fn read_names(dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
    while names.len() < limit {
        if !read_some_names(dir, names, limit)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Appends the names from one getdents64 call, up to `limit` entries in `names`. Returns false at
/// the end of the directory. A call before the end may append none: `.` and `..` are dropped.
///
/// # Errors
/// As [`read_names`].
pub fn read_some_names(dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(DIRENTS_BYTES));
    }
    BUFFER.with_borrow_mut(|buffer| {
        match retry_on_intr(|| getdents64(dir.0.as_fd(), buffer)) {
            // A directory that was removed while open has no names. readdir(3) hides this error
            // too.
            Err(Errno::NOENT) => return Ok(false),
            result => result?,
        }
        if buffer.is_empty() {
            return Ok(false);
        }
        if !crate::parse_dirents(buffer, names, limit).map_err(|_| Errno::IO)? {
            seek(dir, names.cookie())?;
        }
        Ok(!names.is_at_end())
    })
}

/// Replaces the contents of `buffer`, up to its capacity. The capacity is never zeroed: most
/// directories use one or two pages of it.
fn getdents64(fd: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    buffer.clear();
    let spare = buffer.spare_capacity_mut();
    // SAFETY: the pointer and length come from one exclusively borrowed slice, and the call keeps
    // neither.
    let len = unsafe { libc::syscall(libc::SYS_getdents64, fd.as_raw_fd(), spare.as_mut_ptr(), spare.len()) };
    let len = usize::try_from(len)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))?;
    // SAFETY: the call wrote `len` bytes from the start of the buffer, at most the capacity that
    // was passed to it.
    unsafe { buffer.set_len(len) };
    Ok(())
}

/// Reads the metadata of `name` in `at` with statx(2), or with fstatat(2), which copies half as
/// many bytes, if that reports all of `fields`.
///
/// # Errors
/// As statx(2).
///
/// ```
/// use fathom_io::{Errno, Fields, Follow, sys};
///
/// let meta = sys::stat(sys::CWD, c"Cargo.toml", Follow::No, Fields::ALL)?;
/// assert!(meta.size > 0 && meta.mtime.sec > 0);
/// assert_eq!(sys::stat(sys::CWD, c"missing", Follow::No, Fields::ALL), Err(Errno::NOENT));
/// # Ok::<(), Errno>(())
/// ```
pub fn stat(at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    let flags = stat_flags(follow, fields);
    let is_of_stat = !fields.contains(Fields::BIRTH) && !fields.contains(Fields::ATTRIBUTES);
    if fields.contains(Fields::LOCAL) && is_of_stat {
        let flags = flags.difference(AtFlags::STATX_DONT_SYNC);
        return retry_on_intr(|| rustix::fs::statat(at, name, flags)).map(|stat| meta_of_stat(&stat, fields));
    }
    statx(at, name, flags, fields)
}

/// Makes `dir` the working directory of the calling thread alone (unshare(2), `CLONE_FS`). Returns
/// false if the kernel forbids one of the calls, as most containers do with unshare.
///
/// ```
/// use std::os::fd::AsFd;
/// use fathom_io::{Fields, Follow, sys};
///
/// std::thread::spawn(|| {
///     let dir = sys::open_dir(sys::CWD, c"src", Follow::No).unwrap();
///     if sys::enter(dir.as_fd()) {
///         assert!(sys::stat(sys::CWD, c"lib.rs", Follow::No, Fields::ALL).is_ok());
///     }
/// }).join().unwrap();
/// ```
#[must_use]
pub fn enter(dir: BorrowedFd<'_>) -> bool {
    thread_local! {
        // SAFETY: unshare takes no pointers and does not change the state of other threads. Only
        // the working directory, the root directory and the umask are no longer shared; memory and
        // descriptors still are.
        static OWN: bool = unsafe { libc::unshare(libc::CLONE_FS) } == 0;
    }
    OWN.with(|own| *own) && rustix::process::fchdir(dir).is_ok()
}

/// Reads the metadata of an open directory with statx(2).
///
/// # Errors
/// As statx(2).
pub fn stat_dir(dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
    statx(dir.as_fd(), c"", stat_flags(Follow::Yes, fields) | AtFlags::EMPTY_PATH, fields)
}

/// Returns the flags of a metadata call.
pub(crate) fn stat_flags(follow: Follow, fields: Fields) -> AtFlags {
    let cached = if fields.contains(Fields::FRESH) { AtFlags::empty() } else { AtFlags::STATX_DONT_SYNC };
    let flags = AtFlags::NO_AUTOMOUNT | cached;
    if follow == Follow::Yes { flags } else { flags | AtFlags::SYMLINK_NOFOLLOW }
}

fn statx(at: BorrowedFd<'_>, name: &CStr, flags: AtFlags, fields: Fields) -> Result<Meta, Errno> {
    retry_on_intr(|| rustix::fs::statx(at, name, flags, mask(fields))).map(|statx| meta(&statx, fields))
}

/// Returns the statx mask for `fields`.
pub(crate) fn mask(fields: Fields) -> StatxFlags {
    let identity = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::INO | StatxFlags::NLINK;
    FIELD_MASKS
        .into_iter()
        .filter(|(field, _)| fields.contains(*field))
        .fold(identity, |mask, (_, bits)| mask | bits)
}

/// The fields that have bits in the statx mask.
const FIELD_MASKS: [(Fields, StatxFlags); 5] = [
    (Fields::SIZE, StatxFlags::SIZE),
    (Fields::BLOCKS, StatxFlags::BLOCKS),
    (Fields::TIMES, StatxFlags::ATIME.union(StatxFlags::MTIME).union(StatxFlags::CTIME)),
    (Fields::OWNER, StatxFlags::UID.union(StatxFlags::GID)),
    (Fields::BIRTH, StatxFlags::BTIME),
];

/// Returns the fields among `fields` that a statx call reported: `known` is `stx_mask` within the
/// mask of the call.
fn reported(fields: Fields, known: StatxFlags) -> Fields {
    // Nearly every call gets all fields that it asked for.
    if known == mask(fields) {
        return fields.intersection(Fields::ALL.union(Fields::BIRTH));
    }
    FIELD_MASKS
        .into_iter()
        .filter(|(field, bits)| fields.contains(*field) && known.contains(*bits))
        .fold(Fields::IDENTITY, |all, (field, _)| all.union(field))
}

fn meta_of_stat(stat: &rustix::fs::Stat, fields: Fields) -> Meta {
    let stamp = |sec, nsec| FileTime { sec, nsec: nsec as u32 };
    Meta {
        dev: stat.st_dev,
        ino: stat.st_ino,
        size: stat.st_size,
        blocks: stat.st_blocks.cast_unsigned(),
        mode: stat.st_mode,
        nlink: stat.st_nlink,
        uid: stat.st_uid,
        gid: stat.st_gid,
        atime: stamp(stat.st_atime, stat.st_atime_nsec),
        mtime: stamp(stat.st_mtime, stat.st_mtime_nsec),
        ctime: stamp(stat.st_ctime, stat.st_ctime_nsec),
        btime: None,
        mount_root: None,
        attributes: None,
        fields: fields.intersection(Fields::ALL),
    }
}

/// Reads the metadata of an open file with fstat(2).
///
/// # Errors
/// As fstat(2).
pub fn stat_open(file: BorrowedFd<'_>) -> Result<Meta, Errno> {
    rustix::fs::fstat(file).map(|stat| meta_of_stat(&stat, Fields::ALL))
}

/// Reads the metadata of an open file as it is cached, without a request to the server of the
/// filesystem (`AT_STATX_DONT_SYNC`).
///
/// # Errors
/// As statx(2).
pub fn stat_open_cached(file: BorrowedFd<'_>) -> Result<Meta, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(file, c"", flags, StatxFlags::BASIC_STATS).map(|statx| meta(&statx, Fields::ALL))
}

/// Converts a result of statx(2) with the mask for `fields`.
pub(crate) fn meta(statx: &Statx, fields: Fields) -> Meta {
    let stamp = |time: &rustix::fs::StatxTimestamp| FileTime { sec: time.tv_sec, nsec: time.tv_nsec };
    // A filesystem may report fields beyond the mask. The result must not depend on that.
    let known = StatxFlags::from_bits_retain(statx.stx_mask) & mask(fields);
    let mount_root = statx
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT)
        .then(|| statx.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    let attributes = if fields.contains(Fields::ATTRIBUTES) { attributes(statx) } else { None };
    let set = if attributes.is_some() { Fields::ATTRIBUTES } else { Fields::IDENTITY };
    Meta {
        dev: rustix::fs::makedev(statx.stx_dev_major, statx.stx_dev_minor),
        ino: statx.stx_ino,
        size: statx.stx_size.cast_signed(),
        blocks: statx.stx_blocks,
        mode: u32::from(statx.stx_mode),
        nlink: u64::from(statx.stx_nlink),
        uid: statx.stx_uid,
        gid: statx.stx_gid,
        atime: stamp(&statx.stx_atime),
        mtime: stamp(&statx.stx_mtime),
        ctime: stamp(&statx.stx_ctime),
        btime: known.contains(StatxFlags::BTIME).then(|| stamp(&statx.stx_btime)),
        mount_root,
        attributes,
        fields: reported(fields, known).union(set),
    }
}

/// Returns the attributes of the file, without its mount's. The kernel reports DAX for any
/// filesystem, so a mask with DAX alone means that the filesystem reports no attributes.
fn attributes(statx: &Statx) -> Option<Attributes> {
    const KNOWN: [(StatxAttributes, Attributes); 7] = [
        (StatxAttributes::IMMUTABLE, Attributes::IMMUTABLE),
        (StatxAttributes::APPEND, Attributes::APPEND),
        (StatxAttributes::NODUMP, Attributes::NODUMP),
        (StatxAttributes::COMPRESSED, Attributes::COMPRESSED),
        (StatxAttributes::ENCRYPTED, Attributes::ENCRYPTED),
        (StatxAttributes::DAX, Attributes::DAX),
        (StatxAttributes::VERITY, Attributes::VERITY),
    ];
    let reported = statx.stx_attributes & statx.stx_attributes_mask;
    let found = KNOWN.iter().filter(|(flag, _)| reported.contains(*flag));
    let found = found.fold(Attributes::default(), |all, (_, attribute)| all.union(*attribute));
    let by_filesystem = statx.stx_attributes_mask.difference(StatxAttributes::DAX);
    let is_reported = KNOWN.iter().any(|(flag, _)| by_filesystem.contains(*flag));
    (is_reported || found != Attributes::default()).then_some(found)
}
