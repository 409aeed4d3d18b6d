//! The profile: what paid best on this machine's filesystems when that was measured, for later runs to start from. It is a file
//! of JSON with an entry for each filesystem.
//!
//! Owns: the format, reading and writing it, and which entry holds here and now. Does not own: where the file is, how its
//! numbers are measured, what is made of them. A profile may come from anywhere: whatever it says, its numbers are bounded.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use fathom_io::mounts::{self, Mount};
use jiff::{SignedDuration, Timestamp};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Op};
use crate::machine;

/// The version of the format.
pub const SCHEMA: u32 = 1;
/// Most workers and threads that an entry can ask for.
pub const WORKERS_MAX: u32 = 256;
/// How long an entry holds after it was measured.
pub const VALID: SignedDuration = SignedDuration::from_hours(90 * 24);
/// A longer file is no profile.
const BYTES_MAX: u64 = 1 << 20;

/// What is known of filesystems: one entry each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    schema: u32,
    entries: Vec<Entry>,
}

/// What paid best on one filesystem, and under which conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where it was measured.
    pub filesystem: Filesystem,
    /// The kernel's release and the architecture, as [`machine::kernel`] has them.
    pub kernel: String,
    /// Processors the process might use.
    pub cpus: u32,
    /// Program and version that measured it.
    pub program: String,
    /// When it was measured.
    pub measured: Timestamp,
    /// From when on it does not hold.
    pub expires: Timestamp,
    /// Workers of a walk that paid best once calls waited for the storage, 1 to [`WORKERS_MAX`]; none if that was not measured.
    pub walk_in_flight: Option<u32>,
    /// How to serve files from there; none if that was not measured.
    pub serve: Option<Serve>,
    /// The finding in one sentence.
    pub verdict: String,
}

/// How to read what is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serve {
    /// The I/O model, as `sync`, `nowait` or `pool`.
    pub model: String,
    /// Threads of the pool, 1 to [`WORKERS_MAX`], where the model has one.
    pub pool_threads: u32,
}

/// A filesystem, as the mount table has it (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// Its type, as `ext4`.
    pub kind: String,
    /// What it is on, as `/dev/vda1` or `server:/export`.
    pub source: String,
}

/// The conditions that an entry must have been measured under to hold.
#[derive(Clone, Debug)]
pub struct Here {
    /// The kernel's release and the architecture.
    pub kernel: String,
    /// Processors this process may use.
    pub cpus: u32,
    /// The time.
    pub now: Timestamp,
}

/// What a profile has of a filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'p> {
    /// Nothing.
    None,
    /// An entry that does not hold any more, and why.
    Stale(&'p Entry, &'static str),
    /// An entry that holds.
    Entry(&'p Entry),
}

impl Filesystem {
    /// That of a directory; none if the mount table does not have its device, as that of a btrfs subvolume.
    #[must_use]
    pub fn of(dir: &Path) -> Option<Self> {
        mounts::of(dir.metadata().ok()?.dev()).as_ref().map(Self::from)
    }
}

impl From<&Mount> for Filesystem {
    fn from(mount: &Mount) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { kind: text(&mount.kind), source: text(&mount.source) }
    }
}

impl Here {
    /// The conditions of this process.
    #[must_use]
    pub fn now() -> Self {
        let cpus = u32::try_from(fathom_io::sys::cpus_allowed()).unwrap_or(u32::MAX);
        Self { kernel: machine::kernel(), cpus, now: Timestamp::now() }
    }
}

impl Entry {
    /// Why it does not hold `here`, if it does not.
    fn staleness(&self, here: &Here) -> Option<&'static str> {
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
    /// Reads the profile at `path`; none if there is no file that this user may look for and read.
    ///
    /// # Errors
    /// If it cannot be read for another reason, or is no profile of this version.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |cause: std::io::Error| Error::new(Op::Read, path.display().to_string(), cause);
        // Nobody is waited for, should it be a FIFO.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, flags, Mode::empty()).map_err(std::io::Error::from) {
            Ok(fd) => File::from(fd),
            Err(error) if is_absence(error.kind()) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        let parsed = Self::parse(&bytes);
        parsed.map(Some).map_err(|cause| Error::new(Op::Read, path.display().to_string(), cause))
    }

    fn parse(bytes: &[u8]) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        /// What every version has.
        #[derive(Deserialize)]
        struct Head {
            schema: u32,
        }
        if bytes.len() as u64 > BYTES_MAX {
            return Err("it is too long to be a profile".into());
        }
        match serde_json::from_slice(bytes)? {
            Head { schema: SCHEMA } => {}
            Head { schema } => {
                return Err(format!("its format is {schema}, and this program knows {SCHEMA}").into());
            }
        }
        let mut profile: Self = serde_json::from_slice(bytes)?;
        profile.entries.iter_mut().for_each(bound);
        Ok(profile)
    }

    /// Puts the profile at `path`, in place of what is there, or fails and leaves that as it is. A missing directory is made.
    ///
    /// # Errors
    /// If the directory cannot be made, or the file not be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |cause: std::io::Error| Error::new(Op::Write, path.display().to_string(), cause);
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        // The mode is that of the XDG base directories.
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let now = Timestamp::now().as_nanosecond();
        let temporary = dir.join(format!(".io-profile.{}.{now}", std::process::id()));
        let written = put_whole(&temporary, &text).and_then(|()| std::fs::rename(&temporary, path));
        written.map_err(|error| {
            // It may never have been there.
            let _ = std::fs::remove_file(&temporary);
            failed(error)
        })
    }

    /// Takes in an entry, in place of the one of the same filesystem.
    pub fn put(&mut self, mut entry: Entry) {
        bound(&mut entry);
        match self.entries.iter_mut().find(|known| known.filesystem == entry.filesystem) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    /// What there is of `filesystem`, and whether it holds `here`.
    #[must_use]
    pub fn find(&self, filesystem: &Filesystem, here: &Here) -> Found<'_> {
        let Some(entry) = self.entries.iter().find(|entry| entry.filesystem == *filesystem) else {
            return Found::None;
        };
        entry.staleness(here).map_or(Found::Entry(entry), |why| Found::Stale(entry, why))
    }
}

/// Whether a file is not there for this user: where HOME is another's, or no directory, nobody has put a profile.
fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

fn bound(entry: &mut Entry) {
    let numbers =
        entry.walk_in_flight.iter_mut().chain(entry.serve.as_mut().map(|serve| &mut serve.pool_threads));
    numbers.for_each(|number| *number = (*number).clamp(1, WORKERS_MAX));
}

/// Writes a new file, and has the disk have it: the name it is going to get must never be one of half a file.
fn put_whole(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
