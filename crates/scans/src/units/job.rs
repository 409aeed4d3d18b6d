//! The scan of which units are parts: its options, which all workers read, and its lock, which the
//! driver holds.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::mounts::SeenFilesystems;
use super::record::{UnitEnd, UnitRange, UnitRecord, create_directories};
use crate::scan::{Lock, Scan, create_part_dir, from_hex, hex, host, part_path, seconds};
use fathom_inventory::store::{Error, Manifest, Op, replace_private, sync_directory};

/// The name of the file.
const NAME: &str = "job.json";
/// The version of its format.
const FORMAT: u32 = 2;

/// The options of a scan by several machines.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    /// The roots of the trees: absolute paths, as workers have other working directories.
    pub roots: Vec<CString>,
    /// Whether directories on other filesystems than their root's are left out.
    pub one_file_system: bool,
    /// An earlier inventory, from which the entries of unchanged directories are copied.
    pub since: Option<PathBuf>,
}

/// Bytes, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct HexBytes(
    #[serde(serialize_with = "hex", deserialize_with = "from_hex")] pub(super) Vec<u8>,
);

/// The contents of `job.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobFile {
    format: u32,
    roots: Vec<HexBytes>,
    pub(super) one_file_system: bool,
    since: Option<HexBytes>,
    /// When the scan began, in seconds since 1970.
    pub(super) start: i64,
    /// The host name of the driver's machine.
    pub(super) host: String,
    /// The filesystems at and below the operands, as the driver sees them.
    filesystems: Vec<SeenFilesystems>,
}

impl JobFile {
    fn new(options: &JobOptions) -> Result<Self, Error> {
        let since = options.since.as_deref().map(|path| {
            path.canonicalize().map_err(|error| Error::new(Op::Read, path, error)).map(path_bytes)
        });
        Ok(Self {
            format: FORMAT,
            roots: options.roots.iter().map(|root| HexBytes(root.to_bytes().to_vec())).collect(),
            one_file_system: options.one_file_system,
            since: since.transpose()?,
            start: seconds(SystemTime::now()),
            host: host(),
            filesystems: options
                .roots
                .iter()
                .map(|root| SeenFilesystems::of(root, options.one_file_system))
                .collect(),
        })
    }

    /// Reads the job in `part`.
    pub(super) fn read(part: &Path) -> Result<Self, Error> {
        let path = part.join(NAME);
        let failed = |error: std::io::Error| Error::new(Op::Read, &path, error);
        let text = fs::read(&path).map_err(failed)?;
        let job: Self = serde_json::from_slice(&text).map_err(|error| Error::new(Op::Read, &path, error))?;
        if job.format != FORMAT {
            return Err(Error::new(Op::Read, &path, "it was made by another version of fathom"));
        }
        Ok(job)
    }

    fn write(&self, part: &Path) -> Result<(), Error> {
        let (path, new) = (part.join(NAME), part.join("job.new"));
        let write = || {
            let mut file = replace_private(&new)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            sync_directory(part)
        };
        write().map_err(|error: std::io::Error| Error::new(Op::Write, &path, error))
    }

    /// Returns the operands.
    pub(super) fn operands(&self) -> Vec<CString> {
        self.roots.iter().map(|root| CString::new(root.0.clone()).unwrap_or_default()).collect()
    }

    pub(super) fn since(&self) -> Option<PathBuf> {
        let bytes = &self.since.as_ref()?.0;
        Some(Path::new(OsStr::from_bytes(bytes)).to_owned())
    }

    /// Returns the scan of which units are parts.
    pub(super) fn scan(&self) -> Scan {
        let mut scan = Scan { one_file_system: self.one_file_system, since: self.since(), ..Scan::default() };
        if self.one_file_system {
            scan.options.insert("one-file-system".to_owned(), String::new());
        }
        scan
    }

    /// Checks that this machine sees the same filesystems as the driver. `has_begun` tells that it
    /// did before.
    pub(super) fn check_mounts(&self, has_begun: bool) -> Result<(), Error> {
        for (operand, known) in self.operands().iter().zip(&self.filesystems) {
            let Some(below) = known.difference(operand, self.one_file_system, has_begun) else { continue };
            let operand = Path::new(OsStr::from_bytes(operand.as_bytes()));
            let path = if below.as_os_str().is_empty() { operand.to_owned() } else { operand.join(below) };
            let why =
                format!("it differs from what {} has there: is another file system mounted?", self.host);
            return Err(Error::new(Op::Walk, &path, why));
        }
        Ok(())
    }
}

fn path_bytes(path: PathBuf) -> HexBytes {
    HexBytes(path.into_os_string().into_vec())
}

/// A scan by several machines, and the lock on its directory.
#[derive(Debug)]
pub struct Job {
    part: PathBuf,
    pub(super) out: PathBuf,
    pub(super) file: JobFile,
    _lock: Lock,
}

impl Job {
    /// Begins a scan into the new inventory `out`.
    ///
    /// # Errors
    /// If there are no operands; if `out` exists, or a `.part` of it; or if it cannot be created.
    pub fn begin(options: &JobOptions, out: &Path) -> Result<Self, Error> {
        if options.roots.is_empty() {
            return Err(Error::new(Op::Create, out, "missing operand: PATH to scan"));
        }
        if out.symlink_metadata().is_ok() {
            return Err(Error::new(Op::Create, out, std::io::Error::from(fathom_walk::Errno::EXIST)));
        }
        let file = JobFile::new(options)?;
        let part = part_path(out);
        create_part_dir(&part).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                let why = "it contains an unfinished scan: continue it (--resume), or remove it";
                Error::new(Op::Create, &part, why)
            }
            _ => Error::new(Op::Create, &part, error),
        })?;
        Self::start(file, out, part)
    }

    /// Goes on with the scan into `out` that was ended before, however it was ended. If there is
    /// none, begins one.
    ///
    /// # Errors
    /// As [`Job::begin`]; if the scan came to its end; if another driver is running; or if it was
    /// begun with other options.
    pub fn resume(options: &JobOptions, out: &Path) -> Result<Self, Error> {
        let part = part_path(out);
        if part.symlink_metadata().is_err() {
            let refused = |why: &str| Err(Error::new(Op::Resume, out, why));
            if Manifest::read(out).is_ok_and(|manifest| manifest.completeness.stopped.is_none()) {
                return refused("the scan is finished");
            }
            if options.roots.is_empty() {
                return refused("nothing to continue: give a PATH to start a scan");
            }
            return Self::begin(options, out);
        }
        if !part.join(NAME).exists() {
            // Nothing was done yet: units begin after the file is there.
            let is_empty = fs::read_dir(&part).is_ok_and(|mut names| {
                names.all(|name| {
                    name.is_ok_and(|name| name.file_name() == "lock" || name.file_name() == "job.new")
                })
            });
            let why = "it is not a scan by several machines: remove it, and start again";
            return if is_empty && !options.roots.is_empty() {
                Self::start(JobFile::new(options)?, out, part)
            } else {
                Err(Error::new(Op::Resume, &part, why))
            };
        }
        let lock = lock(&part)?;
        let file = JobFile::read(&part)?;
        let given = JobFile::new(options)?;
        let is_same = (given.roots.is_empty() || given.roots == file.roots)
            && (given.roots.is_empty() || given.one_file_system == file.one_file_system)
            && (given.since.is_none() || given.since == file.since);
        if !is_same {
            return Err(Error::new(Op::Resume, &part, "it was started with other operands or options"));
        }
        create_directories(&part)?;
        Ok(Self { part, out: out.to_owned(), file, _lock: lock })
    }

    fn start(file: JobFile, out: &Path, part: PathBuf) -> Result<Self, Error> {
        let lock = lock(&part)?;
        create_directories(&part)?;
        file.write(&part)?;
        Ok(Self { part, out: out.to_owned(), file, _lock: lock })
    }

    /// Returns the directory in which the inventory is made.
    #[must_use]
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Returns whether the inventory has its name: an earlier driver was ended after that, and
    /// before the directory of the units was removed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        Manifest::read(&self.out).is_ok_and(|manifest| {
            manifest.completeness.stopped.is_none() && manifest.start == self.file.start
        })
    }

    /// Removes the directory of the units of a scan that is finished. The job goes last: by it the
    /// next driver knows that the scan is finished, if this one is ended meanwhile.
    ///
    /// # Errors
    /// If something in it cannot be removed.
    pub fn remove_part(&self) -> Result<(), Error> {
        let failed = |error| Error::new(Op::Write, &self.part, error);
        for entry in fs::read_dir(&self.part).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_dir() {
                fs::remove_dir_all(entry.path()).map_err(failed)?;
            }
        }
        fs::remove_dir_all(&self.part).map_err(failed)
    }

    /// Returns the number of operands.
    #[must_use]
    pub fn operand_count(&self) -> usize {
        self.file.roots.len()
    }

    /// Returns when the scan began, in seconds since 1970.
    #[must_use]
    pub fn start_time(&self) -> i64 {
        self.file.start
    }

    /// Writes the record of a unit that is to be done in pieces, under its temporary name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record_split(&self, unit: &UnitRange, pieces: &[(usize, usize)]) -> Result<UnitRecord, Error> {
        self.record(unit, UnitEnd::Split, pieces, "")
    }

    /// Writes the record of a unit that cannot be done, under its temporary name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record_failed(&self, unit: &UnitRange, reason: &str) -> Result<UnitRecord, Error> {
        self.record(unit, UnitEnd::Failed, &[], reason)
    }

    fn record(
        &self,
        unit: &UnitRange,
        end: UnitEnd,
        pieces: &[(usize, usize)],
        reason: &str,
    ) -> Result<UnitRecord, Error> {
        let record = UnitRecord {
            unit: unit.clone(),
            attempt: -1,
            end,
            pieces: pieces.to_vec(),
            complete: end == UnitEnd::Split,
            host: host(),
            reason: reason.to_owned(),
            ..UnitRecord::default()
        };
        record.write_new(&self.part)?;
        Ok(record)
    }

    /// Returns the manifest of the inventory that a deadline has ended before.
    pub(super) fn earlier_result(&self) -> Option<Manifest> {
        Manifest::read(&self.out).ok().filter(|manifest| manifest.completeness.stopped.is_some())
    }
}

fn lock(part: &Path) -> Result<Lock, Error> {
    // Without locks, the link of each record still keeps units from counting twice.
    Lock::take(part, &mut |_warning| ())
}
