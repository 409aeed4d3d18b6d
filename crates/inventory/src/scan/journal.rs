//! `journal.json`: how far a scan has come, as of its last checkpoint. What is in the files it lists is on the disk; a scan that was
//! ended in whatever way goes on from there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, RowAccessor};
use serde::{Deserialize, Serialize};

use super::visit::Known;
use crate::store::{Completeness, Error, Listed, Op, Row, Shelf, Sums, VERSION};

/// Its name in the directory of the inventory.
const NAME: &str = "journal.json";

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
    /// The path of the innermost.
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
    /// Where an earlier inventory is, whatever the directory that `--resume` is called from.
    #[serde(default)]
    pub(super) since: Option<Vec<u8>>,
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
        let absolute = |path: &PathBuf| {
            let path = path.canonicalize().map_err(|error| Error::new(Op::Read, path, error))?;
            Ok(path.into_os_string().into_vec())
        };
        Ok(Self {
            format: VERSION,
            roots: scan.roots.iter().map(|root| root.to_bytes().to_vec()).collect(),
            one_file_system: scan.one_file_system,
            options: scan.options.clone(),
            since: scan.since.as_ref().map(absolute).transpose()?,
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
        let text = fs::read(&path).map_err(|error| Error::new(Op::Read, &path, error))?;
        let journal: Self =
            serde_json::from_slice(&text).map_err(|error| Error::new(Op::Read, &path, error))?;
        let sound = journal.format == VERSION && journal.place.is_sound(journal.roots.len());
        if sound {
            Ok(journal)
        } else {
            Err(Error::new(Op::Read, &path, "it is damaged, or of another version"))
        }
    }

    /// Replaces the journal in `directory`; at every moment there is the old or the new one.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        let (path, new) = (directory.join(NAME), directory.join("journal.new"));
        let text = serde_json::to_vec(self).map_err(|error| Error::new(Op::Write, &new, error))?;
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        written.map_err(|error| Error::new(Op::Write, &new, error))?;
        fs::rename(&new, &path).map_err(|error| Error::new(Op::Rename, &new, error))?;
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| Error::new(Op::Write, directory, error))
    }

    /// Takes the journal out of `directory`, if there is one.
    pub(super) fn remove(directory: &Path) -> Result<(), Error> {
        let path = directory.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::new(Op::Write, &path, error))
            }
            _ => Ok(()),
        }
    }

    /// The files that are written already, in `directory`.
    pub(super) fn shelf(&self, directory: PathBuf) -> Shelf {
        let mut shelf = Shelf::new(directory, self.files.clone(), self.segment);
        (shelf.users, shelf.groups) = (self.users.clone(), self.groups.clone());
        shelf
    }

    /// Whether there is a journal in `directory`.
    pub(super) fn is_in(directory: &Path) -> bool {
        directory.join(NAME).symlink_metadata().is_ok()
    }

    /// Removes from `directory` what came after the checkpoint.
    pub(super) fn clean(&self, directory: &Path) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::new(Op::Write, directory, error);
        for entry in fs::read_dir(directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let kept = name == NAME || self.files.iter().any(|file| *file.name == *name);
            let ours = name == "manifest.json"
                || name == "journal.new"
                || name.to_string_lossy().ends_with(".parquet");
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
                known.entry(frame.id).or_default().dirs.insert(name.to_vec());
            }
        }
        for file in self.files.iter().filter(|file| ["dirs", "entries"].contains(&file.table.as_str())) {
            let path = directory.join(&file.name);
            names(&path, file.table == "dirs", &mut known)
                .map_err(|error| Error::new(Op::Read, &path, error))?;
        }
        Ok(stack.iter().rev().map(|frame| known.remove(&frame.id).unwrap_or_default()).collect())
    }
}

impl Place {
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

/// Adds the names in a table that are of the directories in `known`.
fn names(
    path: &Path,
    is_dirs: bool,
    known: &mut HashMap<i64, Known>,
) -> Result<(), parquet::errors::ParquetError> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let wanted = if is_dirs { "parent_id" } else { "dir_id" };
    let columns = [wanted, "name", "name_raw"];
    let fields = reader.metadata().file_metadata().schema().get_fields();
    let fields = fields.iter().filter(|field| columns.contains(&field.name())).cloned().collect();
    let schema = parquet::schema::types::Type::group_type_builder("fathom").with_fields(fields).build()?;
    for row in reader.get_row_iter(Some(schema))? {
        let row = row?;
        let index = |name: &str| row.get_column_iter().position(|(column, _)| column == name);
        let (Some(id), Some(name), Some(raw)) = (index(wanted), index("name"), index("name_raw")) else {
            continue;
        };
        let Some(known) = row.get_long(id).ok().and_then(|id| known.get_mut(&id)) else { continue };
        let raw = match row.get_column_iter().nth(raw) {
            Some((_, Field::Bytes(bytes))) => Some(bytes.data().to_vec()),
            _ => None,
        };
        let name = raw.unwrap_or(row.get_string(name)?.as_bytes().to_vec());
        if is_dirs { &mut known.dirs } else { &mut known.files }.insert(name);
    }
    Ok(())
}
