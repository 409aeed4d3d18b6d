//! Linux: openat, getdents64 and statx, called directly.

use std::cell::RefCell;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, SeekFrom, Statx, StatxAttributes, StatxFlags};
use rustix::io::retry_on_intr;

use crate::{Attributes, Errno, Fields, FileTime, FileType, Follow, Meta, Names};

/// Bytes asked of one getdents64: the kernel copies what it has, a whole small directory in one call.
const DIRENTS_BYTES: usize = 64 * 1024;

/// Size of a directory that is read in no time: ext4's smallest.
const AT_HAND_BYTES: i64 = 4096;

/// An open directory.
#[derive(Debug)]
pub struct Dir(OwnedFd);

impl Dir {
    /// Takes over a descriptor that is open on a directory.
    #[must_use]
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// The descriptor alone.
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

/// Flags every directory is opened with.
pub(crate) fn open_flags(follow: Follow) -> OFlags {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if follow == Follow::Yes { flags } else { flags | OFlags::NOFOLLOW }
}

/// openat(2) of a directory, for reading.
///
/// # Errors
/// As openat(2).
pub fn open_dir(at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
    retry_on_intr(|| rustix::fs::openat(at, name, open_flags(follow), Mode::empty())).map(Dir)
}

/// A descriptor for `path` below `at`, good only as the base of other calls. Unless links are followed, no component may be one.
///
/// # Errors
/// As openat2(2); ELOOP where a component is a symbolic link and `follow` is [`Follow::No`].
pub fn open_path(at: BorrowedFd<'_>, path: &CStr, follow: Follow) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if follow == Follow::Yes {
        return retry_on_intr(|| rustix::fs::openat(at, path, flags, Mode::empty()));
    }
    retry_on_intr(|| rustix::fs::openat2(at, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS))
}

/// Whether `path` is on a disk of this machine, and no directory of more than one block, as far as can be told without asking
/// anybody: the way there is in the kernel's cache, and the device has a major number, as those of network filesystems and FUSE
/// have not.
#[must_use]
pub fn is_cached_local(path: &CStr) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let open = || rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::CACHED);
    let Ok(file) = retry_on_intr(open) else { return false };
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let meta = statx(file.as_fd(), c"", flags, Fields::IDENTITY.union(Fields::SIZE));
    meta.is_ok_and(|meta| {
        let small = meta.file_type() != FileType::Directory || meta.size <= AT_HAND_BYTES;
        small && rustix::fs::major(meta.dev) > 0
    })
}

/// Goes on reading `dir` where a batch with this cookie ended; 0 is the start.
///
/// # Errors
/// As lseek(2).
pub fn seek(dir: &Dir, cookie: u64) -> Result<(), Errno> {
    rustix::fs::seek(&dir.0, SeekFrom::Start(cookie)).map(drop)
}

/// Appends names until `names` holds `limit`; false at the directory's end.
///
/// A batch that ends inside a buffer leaves the descriptor behind it: the caller [`seek`]s before reading on.
///
/// # Errors
/// As getdents64(2); EIO for a record that cannot be.
pub fn read_names(dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
    while names.len() < limit {
        if !read_some_names(dir, names, limit)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The same, but only what one getdents64 gives.
///
/// # Errors
/// As [`read_names`].
pub fn read_some_names(dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(DIRENTS_BYTES));
    }
    BUFFER.with_borrow_mut(|buffer| {
        match retry_on_intr(|| getdents64(dir.0.as_fd(), buffer)) {
            // A directory removed while open has no names; readdir(3) hides this error too.
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

/// Fills `buffer` anew, up to its capacity. It is never zeroed: most directories touch a page or two of it.
fn getdents64(fd: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    buffer.clear();
    let spare = buffer.spare_capacity_mut();
    // SAFETY: the pointer and length are those of one exclusively borrowed slice, and the call keeps neither.
    let len = unsafe { libc::syscall(libc::SYS_getdents64, fd.as_raw_fd(), spare.as_mut_ptr(), spare.len()) };
    let len = usize::try_from(len)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))?;
    // SAFETY: the call wrote `len` bytes from the buffer's start on, no more than it was told there is room for.
    unsafe { buffer.set_len(len) };
    Ok(())
}

/// statx(2) of `name` in `at`; fstatat(2), which copies half as much, where that will do.
///
/// # Errors
/// As statx(2).
pub fn stat(at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    let flags = stat_flags(follow, fields);
    let is_of_stat = !fields.contains(Fields::BIRTH) && !fields.contains(Fields::ATTRIBUTES);
    if fields.contains(Fields::LOCAL) && is_of_stat {
        let flags = flags.difference(AtFlags::STATX_DONT_SYNC);
        return retry_on_intr(|| rustix::fs::statat(at, name, flags)).map(|stat| meta_of_stat(&stat));
    }
    statx(at, name, flags, fields)
}

/// Makes `dir` the working directory of the calling thread, and of no other (unshare(2), CLONE_FS); false where either is
/// forbidden, as the first is to most containers.
#[must_use]
pub fn enter(dir: BorrowedFd<'_>) -> bool {
    thread_local! {
        // SAFETY: unshare takes no pointers, and what other threads see does not change. Only the working directory, the
        // root directory and the umask stop being shared: no memory and no descriptors.
        static OWN: bool = unsafe { libc::unshare(libc::CLONE_FS) } == 0;
    }
    OWN.with(|own| *own) && rustix::process::fchdir(dir).is_ok()
}

/// statx(2) of an open directory.
///
/// # Errors
/// As statx(2).
pub fn stat_dir(dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
    statx(dir.as_fd(), c"", stat_flags(Follow::Yes, fields) | AtFlags::EMPTY_PATH, fields)
}

/// Flags a metadata call is made with.
pub(crate) fn stat_flags(follow: Follow, fields: Fields) -> AtFlags {
    let cached = if fields.contains(Fields::FRESH) { AtFlags::empty() } else { AtFlags::STATX_DONT_SYNC };
    let flags = AtFlags::NO_AUTOMOUNT | cached;
    if follow == Follow::Yes { flags } else { flags | AtFlags::SYMLINK_NOFOLLOW }
}

fn statx(at: BorrowedFd<'_>, name: &CStr, flags: AtFlags, fields: Fields) -> Result<Meta, Errno> {
    retry_on_intr(|| rustix::fs::statx(at, name, flags, mask(fields))).map(|statx| meta(&statx, mask(fields)))
}

/// The statx mask for `fields`.
pub(crate) fn mask(fields: Fields) -> StatxFlags {
    let identity = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::INO | StatxFlags::NLINK;
    [
        (Fields::SIZE, StatxFlags::SIZE),
        (Fields::BLOCKS, StatxFlags::BLOCKS),
        (Fields::TIMES, StatxFlags::ATIME | StatxFlags::MTIME | StatxFlags::CTIME),
        (Fields::OWNER, StatxFlags::UID | StatxFlags::GID),
        (Fields::BIRTH, StatxFlags::BTIME),
    ]
    .into_iter()
    .filter(|(field, _)| fields.contains(*field))
    .fold(identity, |mask, (_, bits)| mask | bits)
}

fn meta_of_stat(stat: &rustix::fs::Stat) -> Meta {
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
    }
}

/// The metadata of an open file.
///
/// # Errors
/// As fstat(2).
pub fn stat_open(file: BorrowedFd<'_>) -> Result<Meta, Errno> {
    rustix::fs::fstat(file).map(|stat| meta_of_stat(&stat))
}

/// The metadata of an open file as the kernel has it, without asking a server whether that is still so.
///
/// # Errors
/// As statx(2).
pub fn stat_open_cached(file: BorrowedFd<'_>) -> Result<Meta, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(file, c"", flags, StatxFlags::BASIC_STATS)
        .map(|statx| meta(&statx, StatxFlags::BASIC_STATS))
}

/// What the kernel's struct says.
pub(crate) fn meta(statx: &Statx, asked: StatxFlags) -> Meta {
    let stamp = |time: &rustix::fs::StatxTimestamp| FileTime { sec: time.tv_sec, nsec: time.tv_nsec };
    // A filesystem may tell what nobody asked for, and what is told should not depend on that.
    let known = StatxFlags::from_bits_retain(statx.stx_mask) & asked;
    let mount_root = statx
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT)
        .then(|| statx.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
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
        attributes: attributes(statx),
    }
}

/// The attributes that the kernel's struct has of the file, without those of its mount. The kernel
/// itself answers for DAX, on any filesystem: by that alone, the filesystem reports nothing.
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
