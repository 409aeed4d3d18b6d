//! `journal.json`: how far a scan has come, as of its last checkpoint. What is in the files it
//! lists is on the disk; a scan that was ended in whatever way goes on from there.
//!
//! The first line is the journal, the second the hash of the first. Whoever goes on believes it
//! only if both agree, and the tables only if they have the hashes that it says.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CString;
use std::fs;
use std::hash::Hasher;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twox_hash::XxHash64;

use super::visit::Known;
use crate::fault::point;
use crate::store::{
    Also, Completeness, Error, Extra, Listed, MANIFEST, Op, PATH_BYTES_MAX, Row, Shelf, Sums, Table, VERSION,
    each_of_file, hash, replace_private, sync_directory,
};

/// Its name in the directory of the inventory.
const NAME: &str = "journal.json";
/// Its name until it is on the disk.
pub(super) const NEW: &str = "journal.new";
/// A longer one is not read: a directory on the way takes less than a kilobyte.
const BYTES_MAX: u64 = 1 << 30;

/// A directory that has been entered and not left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Frame {
    pub(super) id: i64,
    pub(super) parent: Option<i64>,
    pub(super) depth: i32,
    /// Where its name begins in the path.
    pub(super) name: usize,
    /// How long the path was without it.
    pub(super) above: usize,
    pub(super) row: Row,
    pub(super) extra: Option<Extra<'static>>,
    pub(super) own: Sums,
    pub(super) below: Sums,
    pub(super) scanned: i64,
}

/// What there was.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) entries: u64,
    pub(super) completeness: Completeness,
    /// Directories that had not changed since an earlier inventory, and entries that are taken from there.
    #[serde(default)]
    pub(super) past_directories: u64,
    #[serde(default)]
    pub(super) past_entries: u64,
}

/// How far the walk has come.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Place {
    /// Of the operand being walked, or walked last.
    pub(super) root: usize,
    /// Operands that are done.
    pub(super) roots_done: usize,
    pub(super) next_id: i64,
    /// Outermost first.
    pub(super) stack: Vec<Frame>,
    /// The path of the innermost, in hexadecimal.
    #[serde(serialize_with = "hex", deserialize_with = "from_hex")]
    pub(super) path: Vec<u8>,
    pub(super) tally: Tally,
}

/// `journal.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) format: u32,
    /// The operands.
    pub(super) roots: Vec<Vec<u8>>,
    pub(super) one_file_system: bool,
    pub(super) options: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) left_out: super::LeftOut,
    /// Columns that take system calls of their own.
    #[serde(default)]
    pub(super) also: Also,
    /// Where an earlier inventory is, whatever the directory that `--resume` is called from.
    #[serde(default)]
    pub(super) since: Option<Vec<u8>>,
    /// Permission bits of the files, once the inventory has its name.
    #[serde(default)]
    pub(super) mode: Option<u32>,
    /// When the scan began, in seconds since 1970.
    pub(super) start: i64,
    pub(super) place: Place,
    pub(super) files: Vec<Listed>,
    pub(super) segment: u32,
    pub(super) users: BTreeSet<u32>,
    pub(super) groups: BTreeSet<u32>,
}

impl Journal {
    /// Of a scan at its beginning.
    pub(super) fn new(scan: &super::Scan, start: i64) -> Result<Self, Error> {
        Ok(Self {
            format: VERSION,
            roots: scan.roots.iter().map(|root| root.to_bytes().to_vec()).collect(),
            one_file_system: scan.one_file_system,
            options: scan.options.clone(),
            left_out: scan.left_out.clone(),
            also: scan.also,
            since: scan.since.as_deref().map(absolute).transpose()?,
            mode: scan.mode,
            start,
            place: Place { next_id: 1, ..Place::default() },
            files: Vec::new(),
            segment: 0,
            users: BTreeSet::new(),
            groups: BTreeSet::new(),
        })
    }

    /// Reads the journal in `directory`.
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        let failed = |error: io::Error| Error::new(Op::Read, &path, error);
        let damaged = || Error::new(Op::Read, &path, "it is damaged, or of another version of fathom");
        if path.metadata().map_err(failed)?.len() > BYTES_MAX {
            return Err(damaged());
        }
        let text = fs::read(&path).map_err(failed)?;
        let journal = unsealed(&text).ok_or_else(damaged)?;
        let journal: Self = serde_json::from_slice(journal).map_err(|_| damaged())?;
        let sound = journal.format == VERSION && journal.place.is_sound(journal.roots.len());
        if sound { Ok(journal) } else { Err(damaged()) }
    }

    /// Checks that `scan` is what was begun, as far as it says what that is.
    pub(super) fn accepts(&self, scan: &super::Scan, directory: &Path) -> Result<(), Error> {
        let refused =
            |what: &str| Err(Error::new(Op::Resume, directory, format!("it was begun with {what}")));
        let is_same = |(given, known): (&CString, &Vec<u8>)| given.to_bytes() == &known[..];
        let is_other =
            scan.roots.len() != self.roots.len() || !scan.roots.iter().zip(&self.roots).all(is_same);
        if !scan.roots.is_empty() && is_other {
            return refused("other operands");
        }
        if !scan.also.is_empty() && scan.also != self.also {
            return refused("another --also");
        }
        match &scan.since {
            Some(since) if self.since != Some(absolute(since)?) => refused("another --since"),
            _ => Ok(()),
        }
    }

    /// Replaces the journal in `directory`; at every moment there is the old or the new one.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        let (path, new) = (directory.join(NAME), directory.join(NEW));
        self.write_sealed(&new).map_err(|error| Error::new(Op::Write, &new, error))?;
        point("journal-new");
        fs::rename(&new, &path).map_err(|error| Error::new(Op::Rename, &new, error))?;
        point("journal-renamed");
        sync_directory(directory).map_err(|error| Error::new(Op::Write, directory, error))?;
        point("journal-synced");
        Ok(())
    }

    /// Writes it without a copy in memory: a deep tree has a long stack.
    fn write_sealed(&self, path: &Path) -> io::Result<()> {
        let file = BufWriter::new(replace_private(path)?);
        let mut sink = Hashing { file, hash: XxHash64::with_seed(0) };
        serde_json::to_writer(&mut sink, self)?;
        let Hashing { mut file, hash } = sink;
        write!(file, "\n{{\"xxh64\":\"{:016x}\"}}\n", hash.finish())?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }

    /// Takes the journal out of `directory`, if there is one.
    pub(super) fn remove(directory: &Path) -> Result<(), Error> {
        let path = directory.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::new(Op::Write, &path, error)),
            _ => Ok(()),
        }
    }

    /// The files that are written already, in `directory`.
    pub(super) fn shelf(&self, directory: PathBuf) -> Shelf {
        let mut shelf = Shelf::new(directory, self.files.clone(), self.segment, self.also);
        (shelf.users, shelf.groups) = (self.users.clone(), self.groups.clone());
        shelf
    }

    /// Whether there is a journal in `directory`.
    pub(super) fn is_in(directory: &Path) -> bool {
        directory.join(NAME).symlink_metadata().is_ok()
    }

    /// Removes from `directory` what came after the checkpoint.
    pub(super) fn clean(&self, directory: &Path) -> Result<(), Error> {
        let failed = |error: io::Error| Error::new(Op::Write, directory, error);
        for entry in fs::read_dir(directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let kept = name == NAME || self.files.iter().any(|file| *file.name == *name);
            let ours = name == MANIFEST || name == NEW || name.to_string_lossy().ends_with(".parquet");
            if !kept && ours {
                fs::remove_file(directory.join(name)).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// What has been written of the directories on the stack, innermost first.
    pub(super) fn known(&self, directory: &Path) -> Result<Vec<Known>, Error> {
        let stack = &self.place.stack;
        let mut known: HashMap<i64, Known> = stack.iter().map(|frame| (frame.id, Known::default())).collect();
        // The one it is in is done by the time a directory is read again.
        for (frame, below) in stack.iter().zip(1..) {
            if let Some(name) = self.place.name(below) {
                known.entry(frame.id).or_default().0.insert(name.to_vec());
            }
        }
        for (table, column) in [(Table::Dirs, "parent_id"), (Table::Entries, "dir_id")] {
            for file in self.files.iter().filter(|file| file.table == table.name()) {
                each_of_file(directory, file, table, |group| {
                    let (ids, names) = (group.numbers(column)?, group.texts("name")?);
                    let raw = group.texts("name_raw")?;
                    for row in 0..group.rows() {
                        let Some(known) = ids.get(row).and_then(|id| known.get_mut(&id)) else { continue };
                        let name = raw.get(row).or(names.get(row)).unwrap_or_default().to_vec();
                        known.0.insert(name);
                    }
                    Ok(())
                })?;
            }
        }
        let within = &stack[..self.place.levels_in_reach()];
        Ok(within.iter().rev().map(|frame| known.remove(&frame.id).unwrap_or_default()).collect())
    }
}

/// Appends a name to the path of the directory it is in; where the name begins.
pub(super) fn join(path: &mut Vec<u8>, name: &[u8]) -> usize {
    if path.last().is_some_and(|last| *last != b'/') {
        path.push(b'/');
    }
    let start = path.len();
    path.extend_from_slice(name);
    start
}

impl Place {
    /// How many directories of the stack have paths that can be opened.
    pub(super) fn levels_in_reach(&self) -> usize {
        (0..self.stack.len()).take_while(|level| self.path_of(*level).len() <= PATH_BYTES_MAX).count()
    }

    /// The path of the directory at `level` of the stack.
    pub(super) fn path_of(&self, level: usize) -> &[u8] {
        let end = self.stack.get(level + 1).map_or(self.path.len(), |below| below.above);
        &self.path[..end]
    }

    fn name(&self, level: usize) -> Option<&[u8]> {
        let frame = self.stack.get(level)?;
        Some(&self.path_of(level)[frame.name..])
    }

    /// Whether the numbers fit together: they come from a file.
    fn is_sound(&self, roots: usize) -> bool {
        let mut end = 0;
        let nested = self.stack.iter().all(|frame| {
            let inside = end <= frame.above && frame.above <= frame.name && frame.name <= self.path.len();
            end = frame.name;
            inside && frame.id < self.next_id
        });
        nested && self.roots_done <= roots && (self.stack.is_empty() || self.root < roots)
    }
}

/// Where an inventory is, whatever directory a later run is called from.
fn absolute(path: &Path) -> Result<Vec<u8>, Error> {
    let path = path.canonicalize().map_err(|error| Error::new(Op::Read, path, error))?;
    Ok(path.into_os_string().into_vec())
}

/// Hashes what is written.
struct Hashing<W> {
    file: W,
    hash: XxHash64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The first line of a journal, if its hash is what the second says.
fn unsealed(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let (journal, line) = text.split_at(end);
    (line == format!("\n{{\"xxh64\":\"{:016x}\"}}\n", hash(journal)).as_bytes()).then_some(journal)
}

/// Bytes in hexadecimal: half of what a list of numbers takes.
fn hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    serializer.serialize_str(
        &digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])).collect::<String>(),
    )
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect::<Option<_>>().ok_or_else(|| serde::de::Error::custom("not in hexadecimal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_believed_only_as_it_was_written() {
        let top = tempfile::tempdir().unwrap();
        let place = Place { next_id: 1, path: b"a/\xff".to_vec(), ..Place::default() };
        let journal = Journal {
            format: VERSION,
            roots: vec![b"a".to_vec()],
            one_file_system: false,
            options: BTreeMap::new(),
            left_out: crate::scan::LeftOut::default(),
            also: Also::default(),
            since: None,
            mode: None,
            start: 7,
            place,
            files: Vec::new(),
            segment: 0,
            users: BTreeSet::new(),
            groups: BTreeSet::new(),
        };
        journal.write(top.path()).unwrap();
        assert_eq!(Journal::read(top.path()).unwrap().place.path, b"a/\xff");
        let path = top.path().join(NAME);
        let text = fs::read(&path).unwrap();
        for at in 0..text.len() {
            let mut damaged = text.clone();
            damaged[at] ^= 1;
            for damaged in [&damaged[..], &text[..at]] {
                fs::write(&path, damaged).unwrap();
                assert!(Journal::read(top.path()).is_err(), "at {at}");
            }
        }
        let older = fs::write(&path, &text[..text.len() - 30]);
        assert!(older.is_ok() && Journal::read(top.path()).is_err(), "without a hash");
    }
}
