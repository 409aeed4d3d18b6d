//! Regular files that processes hold open (proc_pid_fd(5)): a filesystem gets the blocks of a
//! deleted file back when the last process closes it.
//!
//! Owns: reading /proc. Does not own: what a removal says about it.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::identity::Identity;

/// The time after which the files found so far are the answer. stat(2) on an open file of a server
/// that does not respond waits for that server.
const TIME_MAX: Duration = Duration::from_secs(10);
/// The most files that are kept.
const FILES_MAX: usize = 1 << 20;
/// The unit of `st_blocks` (stat(2)), in bytes.
const BLOCK_UNIT_BYTES: u64 = 512;
/// The stack of the thread that reads /proc.
const STACK_BYTES: usize = 256 << 10;

/// A process that has a file open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileHolder {
    /// The number of the process.
    pub pid: u32,
}

impl FileHolder {
    /// Returns the name of the process's program; `None` if the process has ended.
    #[must_use]
    pub fn program(self) -> Option<Vec<u8>> {
        let mut name = fs::read(format!("/proc/{}/comm", self.pid)).ok()?;
        name.truncate(name.trim_ascii_end().len());
        Some(name)
    }
}

/// An open file without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedFile {
    /// The inode.
    pub identity: Identity,
    /// Allocated bytes.
    pub allocated: u64,
    /// The process with the lowest number that has it open.
    pub holder: FileHolder,
    /// The path that it had.
    pub path: Vec<u8>,
}

/// The open regular files of other processes, as far as this process may see them: root sees all.
///
/// ```
/// use std::os::unix::fs::MetadataExt;
/// use fathom_remove::{Identity, OpenFiles};
///
/// # if !cfg!(target_os = "linux") { return Ok(()) }
/// # let temp = tempfile::tempdir()?;
/// # let path = temp.path().join("log");
/// std::fs::write(&path, "text")?;
/// let mut tail = std::process::Command::new("tail").arg("-f").arg(&path)
///     .stdout(std::process::Stdio::piped()).spawn()?;
/// // It has the file open when it has printed it.
/// std::io::Read::read_exact(tail.stdout.as_mut().unwrap(), &mut [0; 4])?;
/// let meta = path.metadata()?;
/// let open = OpenFiles::read();
/// let holder = open.holder(Identity { dev: meta.dev(), ino: meta.ino() }).unwrap();
/// assert_eq!((holder.pid, holder.program()), (tail.id(), Some(b"tail".to_vec())));
/// tail.kill()?;
/// # tail.wait()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct OpenFiles {
    holders: HashMap<Identity, FileHolder>,
    deleted: HashMap<Identity, DeletedFile>,
}

impl OpenFiles {
    /// Reads the descriptors of all processes but this one. Takes some microseconds for each, and
    /// at most 10 seconds: then the files found so far are returned. Empty without /proc.
    #[must_use]
    pub fn read() -> Self {
        let (send, receive) = sync_channel(64);
        // Detached: it may wait in a call for a server that does not respond.
        let started = fathom_io::threads::spawn("open-files", STACK_BYTES, 0, move || {
            each_descriptor(&mut |file| send.send(file).is_ok());
        });
        let mut found = Self::default();
        if started.is_err() {
            return found;
        }
        let end = std::time::Instant::now() + TIME_MAX;
        while found.holders.len() < FILES_MAX {
            match receive.recv_timeout(end.saturating_duration_since(std::time::Instant::now())) {
                Ok(file) => found.add(file),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        found
    }

    fn add(&mut self, file: OpenDescriptor) {
        let OpenDescriptor { identity, is_deleted, allocated, holder, path } = file;
        let first = self.holders.entry(identity).or_insert(holder);
        *first = holder.min(*first);
        if is_deleted {
            let holder = *first;
            let deleted = DeletedFile { identity, allocated, holder, path };
            self.deleted.entry(identity).and_modify(|known| known.holder = holder).or_insert(deleted);
        }
    }

    /// Returns the process with the lowest number that has a file open.
    #[must_use]
    pub fn holder(&self, file: Identity) -> Option<FileHolder> {
        self.holders.get(&file).copied()
    }

    /// Returns the files of a filesystem that have no name any more, the largest first.
    #[must_use]
    pub fn deleted(&self, dev: u64) -> Vec<&DeletedFile> {
        let mut files: Vec<_> = self.deleted.values().filter(|file| file.identity.dev == dev).collect();
        files.sort_unstable_by_key(|file| (std::cmp::Reverse(file.allocated), file.identity));
        files
    }
}

/// An open regular file of a process.
struct OpenDescriptor {
    identity: Identity,
    is_deleted: bool,
    allocated: u64,
    holder: FileHolder,
    /// The former path of a deleted file.
    path: Vec<u8>,
}

/// Calls `with` for each open regular file of each other process, until it returns false. Processes
/// that end meanwhile, and processes of other users, are skipped.
fn each_descriptor(with: &mut dyn FnMut(OpenDescriptor) -> bool) {
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if pid == std::process::id() {
            continue;
        }
        for link in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            // Follows the link to the open file itself, whatever is at its former path now.
            let Ok(meta) = fs::metadata(link.path()) else { continue };
            if meta.is_file() && !with(descriptor(FileHolder { pid }, &link.path(), &meta)) {
                return;
            }
        }
    }
}

fn descriptor(holder: FileHolder, link: &Path, meta: &Metadata) -> OpenDescriptor {
    let is_deleted = meta.nlink() == 0;
    let path = if is_deleted { former_path(link) } else { Vec::new() };
    let identity = Identity { dev: meta.dev(), ino: meta.ino() };
    OpenDescriptor {
        identity,
        is_deleted,
        allocated: meta.blocks().saturating_mul(BLOCK_UNIT_BYTES),
        holder,
        path,
    }
}

/// Returns the path that the kernel shows for a deleted file, without its " (deleted)".
fn former_path(link: &Path) -> Vec<u8> {
    let path = fs::read_link(link).unwrap_or_default().into_os_string().into_encoded_bytes();
    path.strip_suffix(b" (deleted)").map(<[u8]>::to_vec).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_process_holds_a_file_and_the_largest_deleted_file_is_first() {
        let open = |ino, is_deleted, allocated, pid| OpenDescriptor {
            identity: Identity { dev: 1, ino },
            is_deleted,
            allocated,
            holder: FileHolder { pid },
            path: b"/f".to_vec(),
        };
        let mut found = OpenFiles::default();
        for file in
            [open(1, true, 512, 9), open(2, true, 1024, 7), open(1, true, 512, 8), open(3, false, 0, 5)]
        {
            found.add(file);
        }
        let deleted = found.deleted(1).into_iter().map(|file| (file.identity.ino, file.holder.pid));
        assert_eq!(deleted.collect::<Vec<_>>(), [(2, 7), (1, 8)]);
        assert!(found.deleted(2).is_empty());
        let holder = |ino| found.holder(Identity { dev: 1, ino }).map(|holder| holder.pid);
        assert_eq!([1, 2, 3, 4].map(holder), [Some(8), Some(7), Some(5), None]);
    }
}
