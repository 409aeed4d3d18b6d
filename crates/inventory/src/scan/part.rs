//! The directory in which an inventory is made, `INVENTORY.part`, and the steps up to its final
//! name. If the process ends for any reason, between any two steps, another run can resume from the
//! files left behind, or begin anew in their place:
//!
//! 1. the directory is made and locked;
//! 2. a journal is in it: from here on there is something to go on from;
//! 3. tables are written, and the journal anew after each checkpoint;
//! 4. a manifest says which tables there are: it is whole;
//! 5. the directory gets its name;
//! 6. the journal and the lock are removed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fathom_walk::Errno;

use super::Watch;
use super::journal::{self, Journal};
use super::lock::{self, Lock};
use crate::fault::point;
use crate::store::{Error, Inventory, MANIFEST, Manifest, Op, rename_new, sync_directory, sync_directory_of};

/// Permission bits of the directory, unless others are asked for.
const PRIVATE: u32 = 0o700;

/// An inventory that is being made.
#[derive(Debug)]
pub(super) struct Part {
    directory: PathBuf,
    out: PathBuf,
    lock: Lock,
}

/// The state in which an earlier run has left the directory.
#[derive(Debug)]
pub(super) enum Left {
    /// Nothing to go on from.
    Nothing,
    /// The journal of the tables written up to the last checkpoint.
    Journal(Box<Journal>),
    /// All of an inventory, but for its name.
    Whole(Box<Manifest>),
}

impl Part {
    /// Makes the directory for `out`, or takes one in which nothing has been written.
    pub(super) fn begin(out: &Path, watch: &mut dyn Watch) -> Result<Self, Error> {
        free(out)?;
        let directory = part_of(out);
        let failed = |error: io::Error| Error::new(Op::Create, &directory, error);
        match make(&directory) {
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
        let lock = Lock::take(&directory, &mut |message| watch.warning(message))?;
        point("part-locked");
        if !is_unused(&directory).map_err(failed)? {
            let why = "it holds a scan that has not ended: go on with that (--resume), or remove it";
            return Err(Error::new(Op::Create, &directory, why));
        }
        fs::set_permissions(&directory, Permissions::from_mode(PRIVATE)).map_err(failed)?;
        Ok(Self { directory, out: out.to_owned(), lock })
    }

    /// Opens the directory that an earlier run has left; none if there is none.
    pub(super) fn reopen(out: &Path, watch: &mut dyn Watch) -> Result<Option<Self>, Error> {
        let directory = part_of(out);
        if is_directory(&directory) {
            free(out)?;
            let lock = Lock::take(&directory, &mut |message| watch.warning(message))?;
            return Ok(Some(Self { directory, out: out.to_owned(), lock }));
        }
        if out.symlink_metadata().is_err() {
            return Ok(None);
        }
        let stopped = Manifest::read(out)?.completeness.stopped.is_some();
        let refused = |why: &str| Err(Error::new(Op::Resume, out, why));
        if !Journal::is_in(out) {
            return refused(if stopped { "its journal is gone" } else { "the scan came to its end" });
        }
        let lock = Lock::take(out, &mut |message| watch.warning(message))?;
        if !stopped {
            // Its run was ended after the last step but one.
            tidy(out, lock)?;
            return refused("the scan came to its end");
        }
        rename_new(out, &directory).map_err(|error| Error::new(Op::Rename, out, error))?;
        point("part-reopened");
        Ok(Some(Self { directory, out: out.to_owned(), lock }))
    }

    /// Where the inventory is made.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Finds out what there is. A manifest is the last thing to be written, so tables that it lists
    /// and that are as it says are all there are.
    pub(super) fn left(&self) -> Result<Left, Error> {
        let has_journal = Journal::is_in(&self.directory);
        match self.whole() {
            Ok(Some(manifest)) => return Ok(Left::Whole(Box::new(manifest))),
            Err(error) if !has_journal && self.has(MANIFEST) => return Err(error),
            _ => {}
        }
        if has_journal {
            return Journal::read(&self.directory).map(|journal| Left::Journal(Box::new(journal)));
        }
        let failed = |error: io::Error| Error::new(Op::Read, &self.directory, error);
        if is_unused(&self.directory).map_err(failed)? {
            return Ok(Left::Nothing);
        }
        let why = "it has no journal, so nothing says what is in it: remove it, and begin again";
        Err(Error::new(Op::Resume, &self.directory, why))
    }

    /// The manifest of a scan that came to its end, if all that it lists is there.
    fn whole(&self) -> Result<Option<Manifest>, Error> {
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

    /// Gives the inventory its name. `mode` is the permission bits of its files, where others than
    /// their owner may read them.
    pub(super) fn publish(self, manifest: &Manifest, mode: Option<u32>) -> Result<(), Error> {
        if let Some(mode) = mode {
            let widened = self.widen(manifest, mode);
            widened.map_err(|error| Error::new(Op::Rename, &self.directory, error))?;
        }
        publish(&self.directory, &self.out, ": remove that, and go on (--resume)")?;
        let Self { out, lock, .. } = self;
        if manifest.completeness.stopped.is_none() { tidy(&out, lock) } else { lock.remove(&out) }
    }

    /// Lets others read what they may by `mode`; who may read a directory may search it.
    fn widen(&self, manifest: &Manifest, mode: u32) -> io::Result<()> {
        let files = manifest.files.iter().map(|file| &file.name[..]).chain([MANIFEST]);
        for name in files {
            fs::set_permissions(self.directory.join(name), Permissions::from_mode(mode))?;
        }
        fs::set_permissions(&self.directory, Permissions::from_mode(mode | (mode & 0o444) >> 2))
    }
}

/// Makes a directory for an inventory, which its owner alone may read.
pub(crate) fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE).create(directory)
}

/// Gives the inventory in `directory` the name `out`, once the disk has all of it and it is known
/// that it can be opened. `advice` ends the message where `out` exists by then.
pub(crate) fn publish(directory: &Path, out: &Path, advice: &str) -> Result<(), Error> {
    Inventory::open(directory)?.check_shape()?;
    let failed = |error: io::Error| Error::new(Op::Rename, directory, error);
    sync_directory(directory).map_err(failed)?;
    point("part-synced");
    rename_new(directory, out).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let why = format!("'{}' exists by now{advice}", out.display());
            Error::new(Op::Rename, directory, why)
        }
        _ => failed(error),
    })?;
    point("published");
    sync_directory_of(out).map_err(failed)?;
    point("name-synced");
    Ok(())
}

/// Removes what a finished inventory has no use for.
fn tidy(directory: &Path, lock: Lock) -> Result<(), Error> {
    Journal::remove(directory)?;
    point("journal-removed");
    lock.remove(directory)?;
    point("lock-removed");
    sync_directory(directory).map_err(|error| Error::new(Op::Write, directory, error))
}

/// The name of an inventory while it is made.
pub(crate) fn part_of(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    out.with_file_name(name)
}

/// Checks that nothing has this name.
pub(super) fn free(out: &Path) -> Result<(), Error> {
    match out.symlink_metadata() {
        Ok(_) => Err(Error::new(Op::Create, out, io::Error::from(Errno::EXIST))),
        Err(_) => Ok(()),
    }
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Whether a directory has nothing in it but what a scan makes before its first journal.
fn is_unused(directory: &Path) -> io::Result<bool> {
    let first = [lock::NAME, journal::NEW].map(OsStr::new);
    for entry in fs::read_dir(directory)? {
        if !first.contains(&&*entry?.file_name()) {
            return Ok(false);
        }
    }
    Ok(true)
}
