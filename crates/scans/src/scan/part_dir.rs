//! The directory in which an inventory is made, `INVENTORY.part`, and the steps to its final name.
//! If the process ends for any reason, between any two steps, another run can resume from the files
//! left behind, or begin again in their place:
//!
//! 1. the directory is created and locked;
//! 2. a journal is written: from here on the scan can be resumed;
//! 3. tables are written, and the journal is replaced after each checkpoint;
//! 4. a manifest lists the tables: the inventory is whole;
//! 5. the directory is renamed;
//! 6. the journal and the lock are removed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fathom_walk::Errno;
use fathom_walk::fault::point;

use super::Observer;
use super::journal::{self, Journal};
use super::lock::{self, Lock};
use fathom_inventory::store::{
    Error, Inventory, MANIFEST, Manifest, Op, rename_new, sync_directory, sync_directory_of,
};

/// Permission bits of the directory, unless others are requested.
const PRIVATE: u32 = 0o700;

/// The directory of an inventory that is being made.
#[derive(Debug)]
pub(super) struct PartDir {
    directory: PathBuf,
    out: PathBuf,
    lock: Lock,
}

/// The state of a directory that an earlier run has left.
#[derive(Debug)]
pub(super) enum PartState {
    /// There is nothing to resume from.
    Nothing,
    /// There is a journal, which lists the tables up to the last checkpoint.
    Journal(Box<Journal>),
    /// There is a whole inventory, but for its name.
    Whole(Box<Manifest>),
}

impl PartDir {
    /// Creates the directory for `out`, or takes one in which nothing has been written.
    pub(super) fn begin(out: &Path, observer: &mut dyn Observer) -> Result<Self, Error> {
        check_absent(out)?;
        let directory = part_path(out);
        let failed = |error: io::Error| Error::new(Op::Create, &directory, error);
        match create_part_dir(&directory) {
            Ok(()) => point("part-made"),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_ours = is_directory(&directory)
                    && (Journal::is_in(&directory) || is_unused(&directory).map_err(failed)?);
                if !is_ours {
                    return Err(failed(error));
                }
            }
            Err(error) => return Err(failed(error)),
        }
        let lock = Lock::take(&directory, &mut |message| observer.warning(message))?;
        point("part-locked");
        if !is_unused(&directory).map_err(failed)? {
            let why = "it contains an unfinished scan: continue it (--resume), or remove it";
            return Err(Error::new(Op::Create, &directory, why));
        }
        fs::set_permissions(&directory, Permissions::from_mode(PRIVATE)).map_err(failed)?;
        Ok(Self { directory, out: out.to_owned(), lock })
    }

    /// Opens the directory that an earlier run has left; `None` if there is none.
    pub(super) fn reopen(out: &Path, observer: &mut dyn Observer) -> Result<Option<Self>, Error> {
        let directory = part_path(out);
        if is_directory(&directory) {
            check_absent(out)?;
            let lock = Lock::take(&directory, &mut |message| observer.warning(message))?;
            return Ok(Some(Self { directory, out: out.to_owned(), lock }));
        }
        if out.symlink_metadata().is_err() {
            return Ok(None);
        }
        let stopped = Manifest::read(out)?.completeness.stopped.is_some();
        let refused = |why: &str| Err(Error::new(Op::Resume, out, why));
        if !Journal::is_in(out) {
            return refused(if stopped { "its journal is gone" } else { "the scan is finished" });
        }
        let lock = Lock::take(out, &mut |message| observer.warning(message))?;
        if !stopped {
            // The earlier run was ended after the inventory was renamed.
            remove_scan_files(out, lock)?;
            return refused("the scan is finished");
        }
        rename_new(out, &directory).map_err(|error| Error::new(Op::Rename, out, error))?;
        point("part-reopened");
        Ok(Some(Self { directory, out: out.to_owned(), lock }))
    }

    /// Returns the path of the directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Determines the state of the directory. The manifest is written last, so if the tables that
    /// it lists are as it says, the inventory is whole.
    pub(super) fn state(&self) -> Result<PartState, Error> {
        let has_journal = Journal::is_in(&self.directory);
        match self.whole_manifest() {
            Ok(Some(manifest)) => return Ok(PartState::Whole(Box::new(manifest))),
            Err(error) if !has_journal && self.has(MANIFEST) => return Err(error),
            _ => {}
        }
        if has_journal {
            return Journal::read(&self.directory).map(|journal| PartState::Journal(Box::new(journal)));
        }
        let failed = |error: io::Error| Error::new(Op::Read, &self.directory, error);
        if is_unused(&self.directory).map_err(failed)? {
            return Ok(PartState::Nothing);
        }
        let why = "it has no journal: remove it, and start again";
        Err(Error::new(Op::Resume, &self.directory, why))
    }

    /// Returns the manifest of a scan that reached its end, if all files that it lists are as they
    /// were written.
    fn whole_manifest(&self) -> Result<Option<Manifest>, Error> {
        let inventory = Inventory::open(&self.directory)?;
        if inventory.manifest().completeness.stopped.is_some() {
            return Ok(None);
        }
        inventory.verify()?;
        Ok(Some(inventory.manifest().clone()))
    }

    fn has(&self, name: &str) -> bool {
        self.directory.join(name).symlink_metadata().is_ok()
    }

    /// Gives the inventory its final name. `mode` is the permission bits of its files; `None` lets
    /// only the owner read them.
    pub(super) fn publish(self, manifest: &Manifest, mode: Option<u32>) -> Result<(), Error> {
        if let Some(mode) = mode {
            let widened = self.set_mode(manifest, mode);
            widened.map_err(|error| Error::new(Op::Rename, &self.directory, error))?;
        }
        publish(&self.directory, &self.out, ": remove it, and continue (--resume)")?;
        let Self { out, lock, .. } = self;
        if manifest.completeness.stopped.is_none() {
            remove_scan_files(&out, lock)
        } else {
            lock.remove(&out)
        }
    }

    /// Sets the permission bits of the files to `mode`. The readers that it admits may also search
    /// the directory.
    fn set_mode(&self, manifest: &Manifest, mode: u32) -> io::Result<()> {
        let files = manifest.files.iter().map(|file| &file.name[..]).chain([MANIFEST]);
        for name in files {
            fs::set_permissions(self.directory.join(name), Permissions::from_mode(mode))?;
        }
        fs::set_permissions(&self.directory, Permissions::from_mode(directory_mode(mode)))
    }
}

/// Returns the permission bits of a directory whose files have the bits `mode`: those who may read
/// the files may enter it.
pub(crate) fn directory_mode(mode: u32) -> u32 {
    mode | 0o100 | (mode & 0o444) >> 2
}

/// Creates a directory for an inventory, which only its owner may read.
///
/// # Errors
/// As mkdir(2), and if the system gives no random bytes: the tables of `parquet` are made with a
/// hash that has a random seed, and panic without.
pub(crate) fn create_part_dir(directory: &Path) -> io::Result<()> {
    getrandom::fill(&mut [0; 8])
        .map_err(|error| io::Error::other(format!("the system gives no random bytes: {error}")))?;
    DirBuilder::new().mode(PRIVATE).create(directory)
}

/// Renames the inventory in `directory` to `out`, after checking that it can be opened and syncing
/// it. `advice` ends the error message if `out` exists by then.
pub(crate) fn publish(directory: &Path, out: &Path, advice: &str) -> Result<(), Error> {
    Inventory::open(directory)?.check_shape()?;
    let failed = |error: io::Error| Error::new(Op::Rename, directory, error);
    sync_directory(directory).map_err(failed)?;
    point("part-synced");
    rename_new(directory, out).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let why = format!("'{}' exists already{advice}", out.display());
            Error::new(Op::Rename, directory, why)
        }
        _ => failed(error),
    })?;
    point("published");
    sync_directory_of(out).map_err(failed)?;
    point("name-synced");
    Ok(())
}

/// Removes the files that a finished inventory does not need.
fn remove_scan_files(directory: &Path, lock: Lock) -> Result<(), Error> {
    Journal::remove(directory)?;
    point("journal-removed");
    lock.remove(directory)?;
    point("lock-removed");
    sync_directory(directory).map_err(|error| Error::new(Op::Write, directory, error))
}

/// Returns the path of the directory in which the inventory `out` is made.
pub(crate) fn part_path(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    out.with_file_name(name)
}

/// Checks that `out` does not exist.
pub(super) fn check_absent(out: &Path) -> Result<(), Error> {
    match out.symlink_metadata() {
        Ok(_) => Err(Error::new(Op::Create, out, io::Error::from(Errno::EXIST))),
        Err(_) => Ok(()),
    }
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Returns whether a directory has only files that a scan creates before its first journal.
fn is_unused(directory: &Path) -> io::Result<bool> {
    let first = [lock::NAME, journal::NEW].map(OsStr::new);
    for entry in fs::read_dir(directory)? {
        if !first.contains(&&*entry?.file_name()) {
            return Ok(false);
        }
    }
    Ok(true)
}
