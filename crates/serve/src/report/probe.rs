//! What the kernel and a site's filesystem do when they are asked the way the server asks them.
//!
//! Owns: the questions. Does not own: what the answers mean for a model.

use std::collections::VecDeque;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use fathom_io::beneath::{Beneath, Patience};
use fathom_io::data::{AtOnce, read_at_once};
use fathom_io::sys::{cached, send_file};
use fathom_io::uring::FileRing;
use fathom_io::{Errno, FileType};

use super::{Calls, Finding};
use crate::files::Opened;
use crate::server::RING_DEPTH;

/// Names that are looked at for a file to try calls on.
const NAMES_MAX: usize = 1000;

/// A file that calls are tried on.
pub(super) struct Sample {
    /// Below the root.
    pub(super) path: PathBuf,
    opened: Opened,
}

/// Tries everything below `root`, which is open as `beneath`; on which file, if there is one.
pub(super) fn calls(root: &Path, beneath: &Beneath) -> Result<(Calls, Option<Sample>), Errno> {
    let sample = sample(root, beneath)?;
    let file = sample.as_ref().and_then(|sample| sample.opened.fd().ok());
    let tried = |call: fn(BorrowedFd<'_>) -> Finding| file.map_or(Finding::Untried, call);
    let path = sample.as_ref().map_or(&b"."[..], |sample| sample.path.as_os_str().as_bytes());
    let calls = Calls {
        openat2: Finding::Works,
        resolve_cached: resolve_cached(beneath, path),
        nowait: tried(nowait),
        cachestat: tried(cachestat),
        sendfile: tried(sendfile),
        uring: uring(),
    };
    Ok((calls, sample))
}

/// The first regular file with something in it, of the site's own filesystem.
fn sample(root: &Path, beneath: &Beneath) -> Result<Option<Sample>, Errno> {
    let dev = beneath.stat(b".", Patience::Wait)?.ok_or(Errno::AGAIN)?.dev;
    let mut dirs = VecDeque::from([PathBuf::new()]);
    let mut left = NAMES_MAX;
    while let Some(dir) = dirs.pop_front() {
        let Ok(entries) = fs::read_dir(root.join(&dir)) else { continue };
        for entry in entries.flatten() {
            let Some(fewer) = left.checked_sub(1) else { return Ok(None) };
            left = fewer;
            let path = dir.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push_back(path),
                Ok(kind) if kind.is_file() => {
                    if let Some(opened) = open(beneath, &path).filter(|opened| opened.meta.dev == dev) {
                        return Ok(Some(Sample { path, opened }));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(None)
}

fn open(beneath: &Beneath, path: &Path) -> Option<Opened> {
    let file = beneath.open(path.as_os_str().as_bytes(), Patience::Wait).ok()??;
    let opened = Opened::new(file, None).ok()?;
    (opened.kind() == FileType::Regular && opened.len() > 0).then_some(opened)
}

/// Whether a path that was looked up a moment ago is found without waiting.
fn resolve_cached(beneath: &Beneath, path: &[u8]) -> Finding {
    let again = beneath.open(path, Patience::Wait).and_then(|_| beneath.open(path, Patience::AtOnce));
    match again {
        Ok(Some(_)) => Finding::Works,
        Ok(None) => Finding::Fails("a path that was just looked up is not found at once".to_owned()),
        Err(errno) => Finding::failed(errno),
    }
}

/// Reads the first byte of `file`, so that it is in memory if the filesystem keeps it there.
fn touch(file: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut [0_u8; 1][..], 0)).map(drop)
}

/// Whether a read that must not wait is answered with what is in memory.
fn nowait(file: BorrowedFd<'_>) -> Finding {
    match touch(file).and_then(|()| read_at_once(file, &mut [0], 0)) {
        Ok(AtOnce::Read(1..)) => Finding::Works,
        Ok(AtOnce::Read(0) | AtOnce::Waits) => {
            Finding::Fails("what was just read is not read at once".to_owned())
        }
        Ok(AtOnce::Unknown) => Finding::Fails("the filesystem does not know it".to_owned()),
        Err(errno) => Finding::failed(errno),
    }
}

/// Whether the kernel tells what is in memory.
fn cachestat(file: BorrowedFd<'_>) -> Finding {
    match touch(file).and_then(|()| cached(file, 0, 1)) {
        Ok(cached) if cached.pages > 0 => Finding::Works,
        Ok(_) => Finding::Fails("what was just read does not show".to_owned()),
        Err(Errno::NOSYS) => Finding::Fails("it takes Linux 6.5".to_owned()),
        Err(errno) => Finding::failed(errno),
    }
}

/// Whether the kernel sends from a file to a socket.
fn sendfile(file: BorrowedFd<'_>) -> Finding {
    let pair = UnixStream::pair().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    match pair.and_then(|(to, _from)| send_file(to.as_fd(), file, 0, 1)) {
        Ok(_) => Finding::Works,
        Err(errno) => Finding::failed(errno),
    }
}

/// Whether a worker could have its ring.
fn uring() -> Finding {
    match FileRing::new(RING_DEPTH) {
        Ok(_) => Finding::Works,
        Err(unavailable) => Finding::Fails(unavailable.to_string()),
    }
}
