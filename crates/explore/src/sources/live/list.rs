//! Reads the entries of one directory, which is opened name by name below its root. No symbolic
//! link below the root is followed.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_io::blocking::Blocking;
use fathom_io::sys::{self, CWD};
use fathom_io::{Dir, Errno, Fields, FileType, Follow, Meta, MetadataModel, Names};
use std::os::fd::AsFd;

use crate::source::SourceError;

/// The number of names that are read between two looks at `cancelled`.
const BATCH_NAMES: usize = 1024;

/// An entry that was read.
#[derive(Debug)]
pub(super) struct ListedEntry<'a> {
    pub(super) name: &'a [u8],
    pub(super) ino: u64,
    pub(super) file_type: FileType,
    pub(super) meta: Result<Meta, Errno>,
}

/// Calls `with` for each entry of the directory `below` the root at `path`, but for names that
/// `select` drops.
pub(super) fn list(
    path: &CStr,
    below: &[u8],
    follow: Follow,
    select: &dyn Fn(&mut Names),
    cancelled: &AtomicBool,
    with: &mut dyn FnMut(ListedEntry<'_>),
) -> Result<(), SourceError> {
    let dir = open(path, follow, below).map_err(|errno| SourceError::Os("open directory", errno))?;
    let (mut names, mut metas) = (Names::new(), Vec::new());
    loop {
        if cancelled.load(Ordering::Relaxed) {
            return Err(SourceError::Cancelled);
        }
        names.clear();
        let more = sys::read_names(&dir, &mut names, BATCH_NAMES);
        select(&mut names);
        let all = 0..names.len();
        let at = dir.as_fd();
        Blocking.run(Blocking.stat(at, &names, all, Follow::No, Fields::ALL, &mut metas));
        for (name, meta) in names.iter().zip(metas.drain(..)) {
            let meta = meta.unwrap_or(Err(Errno::IO));
            let file_type = meta.as_ref().map_or(name.file_type, Meta::file_type);
            with(ListedEntry { name: name.name.to_bytes(), ino: name.ino, file_type, meta });
        }
        if !more.map_err(|errno| SourceError::Os("read directory", errno))? {
            return Ok(());
        }
    }
}

/// Opens the directory `below` the root at `path`, name by name.
pub(super) fn open(path: &CStr, follow: Follow, below: &[u8]) -> Result<Dir, Errno> {
    let mut dir = sys::open_dir(CWD, path, follow)?;
    for name in below.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        dir = sys::open_dir(dir.as_fd(), &name_in_directory(name)?, Follow::No)?;
    }
    Ok(dir)
}

/// Returns a name for the system, unless it leads out of its directory.
pub(super) fn name_in_directory(name: &[u8]) -> Result<CString, Errno> {
    if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') {
        return Err(Errno::INVAL);
    }
    CString::new(name).map_err(|_nul| Errno::INVAL)
}
