//! The profile: the measured best settings for each filesystem of a machine, from which later runs
//! start. It is a JSON file with one entry for each filesystem.
//!
//! Owns: the format, reading and writing it, and the choice of the valid entry. Does not own: the
//! path of the file, the measurements, and the use of the settings. The file is untrusted: its
//! numbers are clamped to their limits.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use fathom_io::mounts::{self, Mount};
use fathom_io::{Model, Use};
use jiff::{SignedDuration, Timestamp};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Op};
use crate::machine;

/// The version of the format.
pub const SCHEMA: u32 = 1;
/// The largest number of workers or threads in an entry.
pub const WORKERS_MAX: u32 = 256;
/// The time from measurement to expiry of an entry.
pub const VALID: SignedDuration = SignedDuration::from_hours(90 * 24);
/// The longest file that is accepted as a profile, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Measured settings of filesystems, one entry for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    schema: u32,
    entries: Vec<ProfileEntry>,
}

/// The best settings on one filesystem, and the conditions of the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileEntry {
    /// The filesystem of the measurement.
    pub filesystem: Filesystem,
    /// Kernel release and architecture, as [`machine::kernel`] returns them.
    pub kernel: String,
    /// Processors available to the process.
    pub cpus: u32,
    /// Name and version of the program that measured it.
    pub program: String,
    /// Time of the measurement.
    pub measured: Timestamp,
    /// The time from which the entry is stale.
    pub expires: Timestamp,
    /// The best number of workers for a walk whose calls wait for the storage, 1 to
    /// [`WORKERS_MAX`]; `None` if it was not measured.
    pub walk_in_flight: Option<u32>,
    /// The best settings of a server; `None` if they were not measured.
    pub serve: Option<ServeSettings>,
    /// The finding in one sentence.
    pub verdict: String,
}

/// Settings of a server of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServeSettings {
    /// The I/O model, as `fathom serve --io` names it. A profile of another version may have a name
    /// that is unknown here.
    pub model: String,
    /// Threads of the pool, 1 to [`WORKERS_MAX`], if the model has a pool.
    pub pool_threads: u32,
}

/// A filesystem as the mount table names it (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// The type, as in `ext4`.
    pub kind: String,
    /// The source, as in `/dev/vda1` or `server:/export`.
    pub source: String,
}

/// The conditions that decide whether an entry is valid.
#[derive(Clone, Debug)]
pub struct HostConditions {
    /// Kernel release and architecture.
    pub kernel: String,
    /// Processors available to this process.
    pub cpus: u32,
    /// The current time.
    pub now: Timestamp,
}

/// The result of looking up a filesystem in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileLookup<'p> {
    /// The profile has no entry of the filesystem.
    Missing,
    /// The entry is stale, for the given reason.
    Stale(&'p ProfileEntry, &'static str),
    /// The entry is valid.
    Valid(&'p ProfileEntry),
}

impl ServeSettings {
    /// Returns the I/O model; `None` if it is unknown, or has no use for a server.
    #[must_use]
    pub fn model(&self) -> Option<Model> {
        Model::parse(&self.model, Use::Serve).ok()
    }
}

impl Filesystem {
    /// Returns the filesystem of a directory; `None` if the mount table lacks its device (as for a
    /// btrfs subvolume).
    #[must_use]
    pub fn of(dir: &Path) -> Option<Self> {
        mounts::by_device(dir.metadata().ok()?.dev()).as_ref().map(Self::from)
    }
}

impl From<&Mount> for Filesystem {
    fn from(mount: &Mount) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { kind: text(&mount.kind), source: text(&mount.source) }
    }
}

impl HostConditions {
    /// Returns the conditions of this process.
    #[must_use]
    pub fn now() -> Self {
        let cpus = u32::try_from(fathom_io::sys::cpus_allowed()).unwrap_or(u32::MAX);
        Self { kernel: machine::kernel(), cpus, now: Timestamp::now() }
    }
}

impl ProfileEntry {
    /// Returns the reason why the entry is stale under `here`, if it is.
    fn staleness(&self, here: &HostConditions) -> Option<&'static str> {
        match self {
            _ if self.kernel != here.kernel => Some("it was measured under another kernel"),
            _ if self.cpus != here.cpus => Some("it was measured with another number of CPUs"),
            _ if self.expires <= here.now => Some("it has expired"),
            _ => None,
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self { schema: SCHEMA, entries: Vec::new() }
    }
}

impl Profile {
    /// Reads the profile at `path`. Returns `None` if the file does not exist or is not accessible
    /// to this user.
    ///
    /// # Errors
    /// If the file cannot be read for another reason, or is not a profile of this version.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |cause: std::io::Error| Error::new(Op::Read, path.display().to_string(), cause);
        // `O_NONBLOCK`: opening a FIFO must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, flags, Mode::empty()).map_err(std::io::Error::from) {
            Ok(fd) => File::from(fd),
            Err(error) if is_missing(error.kind()) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        let parsed = Self::parse(&bytes);
        parsed.map(Some).map_err(|cause| Error::new(Op::Read, path.display().to_string(), cause))
    }

    fn parse(bytes: &[u8]) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        /// The field that every version of the format has.
        #[derive(Deserialize)]
        struct SchemaVersion {
            schema: u32,
        }
        if bytes.len() as u64 > BYTES_MAX {
            return Err("the file is too long for a profile".into());
        }
        match serde_json::from_slice(bytes)? {
            SchemaVersion { schema: SCHEMA } => {}
            SchemaVersion { schema } => {
                return Err(format!("its format is {schema}, expected {SCHEMA}").into());
            }
        }
        let mut profile: Self = serde_json::from_slice(bytes)?;
        profile.entries.iter_mut().for_each(clamp_numbers);
        Ok(profile)
    }

    /// Replaces the profile at `path` atomically. On failure the previous file remains. Missing
    /// directories are created.
    ///
    /// # Errors
    /// If the directory cannot be created or the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |cause: std::io::Error| Error::new(Op::Write, path.display().to_string(), cause);
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        // Mode 0700, as the XDG Base Directory Specification requires.
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        remove_left(dir);
        let now = Timestamp::now().as_nanosecond();
        let temporary = dir.join(format!("{TEMPORARY}{}.{now}", std::process::id()));
        let written = write_synced(&temporary, &text).and_then(|()| std::fs::rename(&temporary, path));
        written.map_err(|error| {
            // The file may not exist: its creation may be what failed.
            let _ = std::fs::remove_file(&temporary);
            failed(error)
        })
    }

    /// Inserts an entry. An entry of the same filesystem is replaced.
    pub fn put(&mut self, mut entry: ProfileEntry) {
        clamp_numbers(&mut entry);
        match self.entries.iter_mut().find(|known| known.filesystem == entry.filesystem) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    /// Looks up the entry of `filesystem` and checks whether it is valid under `here`.
    #[must_use]
    pub fn find(&self, filesystem: &Filesystem, here: &HostConditions) -> ProfileLookup<'_> {
        let Some(entry) = self.entries.iter().find(|entry| entry.filesystem == *filesystem) else {
            return ProfileLookup::Missing;
        };
        entry.staleness(here).map_or(ProfileLookup::Valid(entry), |why| ProfileLookup::Stale(entry, why))
    }
}

/// Returns whether the error means that this user has no profile. HOME may belong to another user,
/// or may not be a directory.
fn is_missing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

fn clamp_numbers(entry: &mut ProfileEntry) {
    let numbers =
        entry.walk_in_flight.iter_mut().chain(entry.serve.as_mut().map(|serve| &mut serve.pool_threads));
    numbers.for_each(|number| *number = (*number).clamp(1, WORKERS_MAX));
}

/// The beginning of the names of temporary files; the number of the process and a time follow.
const TEMPORARY: &str = ".io-profile.";
/// A younger file may be about to be renamed.
const LEFT_AGE_MIN: Duration = Duration::from_secs(60);

/// Removes temporary files that killed processes have left. Each that cannot be removed stays.
fn remove_left(dir: &Path) {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    for entry in dir.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY)?.split_once('.'));
        let is_ours = rest.is_some_and(|(process, time)| is_number(process) && is_number(time));
        let meta = entry.metadata().ok().filter(|meta| is_ours && meta.is_file());
        let age = meta.and_then(|meta| SystemTime::now().duration_since(meta.modified().ok()?).ok());
        if age.is_some_and(|age| age >= LEFT_AGE_MIN) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes and syncs a new file. `rename` must not give the final name to a file whose data is not
/// on disk.
fn write_synced(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
