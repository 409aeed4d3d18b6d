//! `journal.json`: the state of a scan at its last checkpoint. The files that it lists are synced,
//! so however the scan ends, another run can resume from there.
//!
//! The first line is the journal, the second its hash. A resuming run refuses a journal with
//! another hash, and tables whose hashes differ from the hashes in the journal.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CString;
use std::fs;
use std::hash::Hasher;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use fathom_walk::fault::point;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twox_hash::XxHash64;

use super::visitor::WrittenNames;
use fathom_inventory::store::{
    Completeness, EntryRow, EntryTotals, Error, MANIFEST, ManifestFile, Op, OptionalColumns, OptionalValues,
    SegmentWriter, Table, VERSION, each_of_file, hash, replace_private, sync_directory,
};

/// The name of the journal in the directory of the inventory.
pub(super) const NAME: &str = "journal.json";
/// The name of the journal until it is synced.
pub(super) const NEW: &str = "journal.new";
/// Most bytes of a journal. A directory on the stack takes less than a kilobyte.
const BYTES_MAX: u64 = 1 << 30;

/// A directory that has been entered and not left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DirFrame {
    pub(super) id: i64,
    pub(super) parent: Option<i64>,
    pub(super) depth: i32,
    /// The offset of its name in the path.
    pub(super) name: usize,
    /// The length of the path without it.
    pub(super) above: usize,
    pub(super) row: EntryRow,
    #[serde(rename = "extra")]
    pub(super) optional_values: Option<OptionalValues<'static>>,
    pub(super) own: EntryTotals,
    pub(super) below: EntryTotals,
    pub(super) scanned: i64,
}

/// The counts of a scan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ScanCounts {
    pub(super) entries: u64,
    pub(super) completeness: Completeness,
    /// The directories that had not changed since the earlier inventory, and the entries copied
    /// from it.
    #[serde(default, rename = "past_directories")]
    pub(super) reused_directories: u64,
    #[serde(default, rename = "past_entries")]
    pub(super) reused_entries: u64,
}

/// The position of the walk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ScanPosition {
    /// The index of the operand that is being walked, or was walked last.
    pub(super) root: usize,
    /// The number of operands that are done.
    pub(super) roots_done: usize,
    pub(super) next_id: i64,
    /// The open directories, outermost first.
    pub(super) stack: Vec<DirFrame>,
    /// The path of the innermost open directory; in the file, in hexadecimal.
    #[serde(serialize_with = "hex", deserialize_with = "from_hex")]
    pub(super) path: Vec<u8>,
    #[serde(rename = "tally")]
    pub(super) counts: ScanCounts,
}

/// The contents of `journal.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) format: u32,
    /// The machine. Journals of earlier versions do not have it.
    #[serde(default)]
    pub(super) host: String,
    /// The operands, as bytes.
    pub(super) roots: Vec<Vec<u8>>,
    pub(super) one_file_system: bool,
    pub(super) options: BTreeMap<String, String>,
    #[serde(default, rename = "left_out")]
    pub(super) exclusions: super::Exclusions,
    /// The optional columns.
    #[serde(default, rename = "also")]
    pub(super) optional_columns: OptionalColumns,
    /// The absolute path of the earlier inventory, as a resuming run may have another working
    /// directory.
    #[serde(default)]
    pub(super) since: Option<Vec<u8>>,
    /// Permission bits of the files of the finished inventory.
    #[serde(default)]
    pub(super) mode: Option<u32>,
    /// When the scan began, in seconds since 1970.
    pub(super) start: i64,
    #[serde(rename = "place")]
    pub(super) position: ScanPosition,
    pub(super) files: Vec<ManifestFile>,
    pub(super) segment: u32,
    pub(super) users: BTreeSet<u32>,
    pub(super) groups: BTreeSet<u32>,
}

impl Journal {
    /// Returns the journal of a scan that begins.
    pub(super) fn new(scan: &super::Scan, start: i64) -> Result<Self, Error> {
        Ok(Self {
            format: VERSION,
            host: super::host(),
            roots: scan.roots.iter().map(|root| root.to_bytes().to_vec()).collect(),
            one_file_system: scan.one_file_system,
            options: scan.options.clone(),
            exclusions: scan.exclusions.clone(),
            optional_columns: scan.optional_columns,
            since: scan.since.as_deref().map(absolute).transpose()?,
            mode: scan.mode,
            start,
            position: ScanPosition { next_id: 1, ..ScanPosition::default() },
            files: Vec::new(),
            segment: 0,
            users: BTreeSet::new(),
            groups: BTreeSet::new(),
        })
    }

    /// Reads and checks the journal in `directory`.
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        let failed = |error: io::Error| Error::new(Op::Read, &path, error);
        let damaged =
            || Error::new(Op::Read, &path, "it is damaged, or was made by another version of fathom");
        if path.metadata().map_err(failed)?.len() > BYTES_MAX {
            return Err(damaged());
        }
        let text = fs::read(&path).map_err(failed)?;
        let journal = verified_line(&text).ok_or_else(damaged)?;
        let journal: Self = serde_json::from_slice(journal).map_err(|_| damaged())?;
        let sound = journal.format == VERSION && journal.position.is_consistent(journal.roots.len());
        if sound { Ok(journal) } else { Err(damaged()) }
    }

    /// Checks that `scan` does not contradict the options of the scan that is resumed.
    pub(super) fn check_options(&self, scan: &super::Scan, directory: &Path) -> Result<(), Error> {
        let refused =
            |what: &str| Err(Error::new(Op::Resume, directory, format!("it was started with {what}")));
        let is_same = |(given, recorded): (&CString, &Vec<u8>)| given.to_bytes() == &recorded[..];
        let is_other =
            scan.roots.len() != self.roots.len() || !scan.roots.iter().zip(&self.roots).all(is_same);
        if !scan.roots.is_empty() && is_other {
            return refused("other operands");
        }
        if !scan.optional_columns.is_empty() && scan.optional_columns != self.optional_columns {
            return refused("another --also");
        }
        match &scan.since {
            Some(since) if self.since != Some(absolute(since)?) => refused("another --since"),
            _ => Ok(()),
        }
    }

    /// Replaces the journal in `directory`. At any moment either the old or the new journal exists.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        let (path, new) = (directory.join(NAME), directory.join(NEW));
        self.write_with_hash(&new).map_err(|error| Error::new(Op::Write, &new, error))?;
        point("journal-new");
        fs::rename(&new, &path).map_err(|error| Error::new(Op::Rename, &new, error))?;
        point("journal-renamed");
        sync_directory(directory).map_err(|error| Error::new(Op::Write, directory, error))?;
        point("journal-synced");
        Ok(())
    }

    /// Writes the journal without a copy of its text in memory: a deep tree has a long stack.
    fn write_with_hash(&self, path: &Path) -> io::Result<()> {
        let file = BufWriter::new(replace_private(path)?);
        let mut sink = HashingWriter { file, hash: XxHash64::with_seed(0) };
        serde_json::to_writer(&mut sink, self)?;
        let HashingWriter { mut file, hash } = sink;
        write!(file, "\n{{\"xxh64\":\"{:016x}\"}}\n", hash.finish())?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }

    /// Removes the journal from `directory`, if there is one.
    pub(super) fn remove(directory: &Path) -> Result<(), Error> {
        let path = directory.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::new(Op::Write, &path, error)),
            _ => Ok(()),
        }
    }

    /// Returns a writer that continues after the files of the journal, in `directory`.
    pub(super) fn segment_writer(&self, directory: PathBuf) -> SegmentWriter {
        let mut writer =
            SegmentWriter::new(directory, self.files.clone(), self.segment, self.optional_columns);
        (writer.users, writer.groups) = (self.users.clone(), self.groups.clone());
        writer
    }

    /// Returns whether there is a journal in `directory`.
    pub(super) fn is_in(directory: &Path) -> bool {
        directory.join(NAME).symlink_metadata().is_ok()
    }

    /// Removes the files from `directory` that were written after the checkpoint.
    pub(super) fn remove_uncommitted(&self, directory: &Path) -> Result<(), Error> {
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

    /// Returns the names that have been written for each open directory, innermost first.
    pub(super) fn written_names(&self, directory: &Path) -> Result<Vec<WrittenNames>, Error> {
        let stack = &self.position.stack;
        let mut written_names: HashMap<i64, WrittenNames> =
            stack.iter().map(|frame| (frame.id, WrittenNames::default())).collect();
        // The directory on the stack below this one is finished by the time this one is read again.
        for (frame, below) in stack.iter().zip(1..) {
            if let Some(name) = self.position.name(below) {
                written_names.entry(frame.id).or_default().names.insert(name.to_vec());
            }
        }
        for (table, column) in [(Table::Dirs, "parent_id"), (Table::Entries, "dir_id")] {
            for file in self.files.iter().filter(|file| file.table == table.name()) {
                each_of_file(directory, file, table, |group| {
                    let (ids, names) = (group.numbers(column)?, group.texts("name")?);
                    let raw = group.texts("name_raw")?;
                    for row in 0..group.rows() {
                        let Some(written) = ids.get(row).and_then(|id| written_names.get_mut(&id)) else {
                            continue;
                        };
                        let name = raw.get(row).or(names.get(row)).unwrap_or_default().to_vec();
                        written.names.insert(name);
                    }
                    Ok(())
                })?;
            }
        }
        let written = stack.iter().rev().map(|frame| {
            let values = frame.optional_values.as_ref();
            let ignored = values.and_then(|values| values.ignored).unwrap_or_default();
            WrittenNames { ignored, ..written_names.remove(&frame.id).unwrap_or_default() }
        });
        Ok(written.collect())
    }
}

/// Appends a name to the path of its directory. Returns the offset of the name.
pub(super) fn join(path: &mut Vec<u8>, name: &[u8]) -> usize {
    if path.last().is_some_and(|last| *last != b'/') {
        path.push(b'/');
    }
    let start = path.len();
    path.extend_from_slice(name);
    start
}

impl ScanPosition {
    /// Returns the path of the directory at `level` of the stack.
    pub(super) fn path_of(&self, level: usize) -> &[u8] {
        let end = self.stack.get(level + 1).map_or(self.path.len(), |below| below.above);
        &self.path[..end]
    }

    fn name(&self, level: usize) -> Option<&[u8]> {
        let frame = self.stack.get(level)?;
        Some(&self.path_of(level)[frame.name..])
    }

    /// Returns whether the offsets and numbers, which come from a file, are consistent.
    fn is_consistent(&self, roots: usize) -> bool {
        let mut end = 0;
        let nested = self.stack.iter().all(|frame| {
            let inside = end <= frame.above && frame.above <= frame.name && frame.name <= self.path.len();
            end = frame.name;
            inside && frame.id < self.next_id
        });
        nested && self.roots_done <= roots && (self.stack.is_empty() || self.root < roots)
    }
}

/// Returns the absolute path of an inventory, which does not depend on the working directory.
fn absolute(path: &Path) -> Result<Vec<u8>, Error> {
    let path = path.canonicalize().map_err(|error| Error::new(Op::Read, path, error))?;
    Ok(path.into_os_string().into_vec())
}

/// Hashes everything that is written.
struct HashingWriter<W> {
    file: W,
    hash: XxHash64,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the first line of a journal, if the second line has its hash.
fn verified_line(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let (journal, line) = text.split_at(end);
    (line == format!("\n{{\"xxh64\":\"{:016x}\"}}\n", hash(journal)).as_bytes()).then_some(journal)
}

/// Serializes bytes in hexadecimal, which takes half the size of a list of numbers.
pub(crate) fn hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    serializer.serialize_str(
        &digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])).collect::<String>(),
    )
}

/// Reads bytes from hexadecimal digits.
pub(crate) fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
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
        let position = ScanPosition { next_id: 1, path: b"a/\xff".to_vec(), ..ScanPosition::default() };
        let journal = Journal {
            format: VERSION,
            host: "here".to_owned(),
            roots: vec![b"a".to_vec()],
            one_file_system: false,
            options: BTreeMap::new(),
            exclusions: crate::scan::Exclusions::default(),
            optional_columns: OptionalColumns::default(),
            since: None,
            mode: None,
            start: 7,
            position,
            files: Vec::new(),
            segment: 0,
            users: BTreeSet::new(),
            groups: BTreeSet::new(),
        };
        journal.write(top.path()).unwrap();
        assert_eq!(Journal::read(top.path()).unwrap().position.path, b"a/\xff");
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
