//! Metadata of an inode that statx(2) does not report: the names of its extended attributes, and
//! its project ID. Each takes a separate call for each inode.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use crate::{Errno, FileType};

/// Returns the names of the extended attributes of `name` in `at`, each followed by a NUL. `None`
/// if the filesystem has no such attributes. A link is not followed. An empty `name` means `at`
/// itself, which must be open for reading.
///
/// The path goes through /proc/self/fd, as for [`security_context`](super::security_context).
///
/// # Errors
/// As llistxattr(2). E2BIG for more than 64 KiB, the limit of the kernel.
///
/// ```
/// use fathom_io::{Errno, sys};
///
/// let names = sys::xattr_names(sys::CWD, c"Cargo.toml")?.unwrap_or_default();
/// for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
///     println!("{}", String::from_utf8_lossy(name));
/// }
/// # Ok::<(), Errno>(())
/// ```
pub fn xattr_names(at: BorrowedFd<'_>, name: &CStr) -> Result<Option<Vec<u8>>, Errno> {
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    let listed = linux::xattr_names(at, name);
    #[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
    let listed = {
        let _ = (at, name);
        Err(Errno::OPNOTSUPP)
    };
    supported(listed)
}

/// Returns the project ID of `name` in `at`, which quotas use. `None` if the filesystem has no
/// projects. A link is not followed. An empty `name` means `at` itself, which must be open for
/// reading.
///
/// Before Linux 6.17, the call needs an open file. It opens regular files and directories, without
/// waiting, and returns `None` for other types, because opening a device can have side effects.
///
/// # Errors
/// As file_getattr(2), or as openat(2) and ioctl_fs(2).
///
/// ```
/// use fathom_io::{Errno, FileType, sys};
///
/// match sys::project(sys::CWD, c"Cargo.toml", FileType::Regular)? {
///     Some(id) => println!("project {id}"),
///     None => println!("the filesystem has no projects"),
/// }
/// # Ok::<(), Errno>(())
/// ```
pub fn project(at: BorrowedFd<'_>, name: &CStr, file_type: FileType) -> Result<Option<u32>, Errno> {
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    let found = linux::project(at, name, file_type);
    #[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
    let found = {
        let _ = (at, name, file_type);
        Err(Errno::OPNOTSUPP)
    };
    supported(found)
}

/// Converts the errors of a filesystem without the feature to `None`.
fn supported<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Err(Errno::OPNOTSUPP | Errno::NOTTY) => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod linux {
    use std::cell::RefCell;
    use std::ffi::CStr;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::io::retry_on_intr;
    use rustix::ioctl::{Getter, ioctl, opcode};

    use crate::sys::file::{open_file, path_in};
    use crate::{Errno, FileType, Follow};

    /// Maximum length of the list of names in bytes (`XATTR_LIST_MAX`, linux/limits.h).
    const LIST_BYTES_MAX: usize = 64 * 1024;

    pub(super) fn xattr_names(at: BorrowedFd<'_>, name: &CStr) -> Result<Vec<u8>, Errno> {
        thread_local! {
            static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; LIST_BYTES_MAX]);
        }
        BUFFER.with_borrow_mut(|buffer| {
            let len = if name.is_empty() {
                retry_on_intr(|| rustix::fs::flistxattr(at, &mut buffer[..]))
            } else {
                let path = path_in(at, name);
                retry_on_intr(|| rustix::fs::llistxattr(&path[..], &mut buffer[..]))
            }?;
            Ok(buffer[..len].to_vec())
        })
    }

    pub(super) fn project(at: BorrowedFd<'_>, name: &CStr, file_type: FileType) -> Result<u32, Errno> {
        static IS_MISSING: AtomicBool = AtomicBool::new(false);
        // Relaxed: the flag saves calls that fail, and publishes no other data.
        if !IS_MISSING.load(Ordering::Relaxed) {
            match project_by_name(at, name) {
                Err(Errno::NOSYS) => IS_MISSING.store(true, Ordering::Relaxed),
                // A seccomp filter may refuse an unknown call with this error.
                Err(Errno::PERM) => {}
                found => return found,
            }
        }
        project_by_opening(at, name, file_type)
    }

    /// Reads the project ID with file_getattr(2), which exists since Linux 6.17.
    pub(super) fn project_by_name(at: BorrowedFd<'_>, name: &CStr) -> Result<u32, Errno> {
        // The number of the call is the same on these architectures.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
        {
            const FILE_GETATTR: libc::c_long = 468;
            // `struct file_attr` of linux/fs.h, in words: fa_xflags takes two, fa_extsize and
            // fa_nextents come before fa_projid.
            let mut attr = [0u32; 6];
            let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
            let call = || {
                // SAFETY: `name` is a C string, and the kernel writes no more than the size given
                // to `attr`; both outlive the call, which keeps neither.
                let result = unsafe {
                    libc::syscall(
                        FILE_GETATTR,
                        at.as_raw_fd(),
                        name.as_ptr(),
                        attr.as_mut_ptr(),
                        size_of_val(&attr),
                        flags,
                    )
                };
                let failed = || Errno::from_io_error(&std::io::Error::last_os_error());
                if result == 0 { Ok(()) } else { Err(failed().unwrap_or(Errno::IO)) }
            };
            retry_on_intr(call)?;
            Ok(attr[4])
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
        {
            let _ = (at, name);
            Err(Errno::NOSYS)
        }
    }

    /// Reads the project ID with `FS_IOC_FSGETXATTR` of an open file (ioctl_fs(2)).
    pub(super) fn project_by_opening(
        at: BorrowedFd<'_>,
        name: &CStr,
        file_type: FileType,
    ) -> Result<u32, Errno> {
        if name.is_empty() {
            return project_of(at);
        }
        match file_type {
            FileType::Regular | FileType::Directory => project_of(open_file(at, name, Follow::No)?.as_fd()),
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// `struct fsxattr` of linux/fs.h, in words: fsx_projid is the fourth.
    type FsXattr = [u32; 7];

    fn project_of(file: BorrowedFd<'_>) -> Result<u32, Errno> {
        // SAFETY: the request reads a `struct fsxattr`, which has the size of `FsXattr`; the number
        // computed from that size equals `FS_IOC_FSGETXATTR`.
        let attr = unsafe {
            let getter = Getter::<{ opcode::read::<FsXattr>(b'X', 31) }, FsXattr>::new();
            ioctl(file, getter)?
        };
        Ok(attr[3])
    }
}

#[cfg(all(target_os = "linux", not(feature = "posix")))]
#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, XattrFlags};
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn xattr_names_lists_an_entry_of_a_directory_or_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        std::os::unix::fs::symlink("f", dir.path().join("l")).unwrap();
        let open = File::open(dir.path()).unwrap();
        let names = |name| xattr_names(open.as_fd(), name);
        let has = |listed: Result<Option<Vec<u8>>, Errno>, name: &[u8]| {
            listed.unwrap().unwrap_or_default().split(|byte| *byte == 0).any(|found| found == name)
        };
        assert_eq!(names(c"missing"), Err(Errno::NOENT));
        assert!(!has(names(c"f"), b"user.a"));
        for (path, name) in [(dir.path().join("f"), c"user.a"), (dir.path().to_owned(), c"user.b")] {
            if rustix::fs::setxattr(path, name, b"", XattrFlags::empty()).is_err() {
                return println!("skipped: the filesystem has no extended attributes");
            }
        }
        assert!(has(names(c"f"), b"user.a") && has(names(c""), b"user.b") && !has(names(c"l"), b"user.a"));
    }

    #[test]
    fn project_by_name_and_by_opening_agree_and_no_fifo_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("p"), fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        let open = File::open(dir.path()).unwrap();
        let opened = |name, kind| linux::project_by_opening(open.as_fd(), name, kind);
        assert_eq!(opened(c"p", FileType::Fifo), Err(Errno::OPNOTSUPP));
        assert_eq!(opened(c"missing", FileType::Regular), Err(Errno::NOENT));
        for (name, kind) in [(c"f", FileType::Regular), (c"", FileType::Directory)] {
            let by_opening = opened(name, kind);
            assert_eq!(project(open.as_fd(), name, kind), supported(by_opening), "{name:?}");
            match linux::project_by_name(open.as_fd(), name) {
                Err(Errno::NOSYS | Errno::PERM) => {
                    println!("skipped: this kernel has no file_getattr(2), which came with Linux 6.17")
                }
                by_name => assert_eq!(supported(by_name), supported(by_opening), "{name:?}"),
            }
        }
    }
}
