//! Reads inventories. The contents are untrusted: file names, lengths, hashes, schemas and every
//! page are checked before they are used, and memory is bounded by the size of a row group. A
//! damaged inventory is an error, never a panic.
//!
//! The `parquet` crate reads footers and decompresses pages. The values in the pages are decoded
//! here and not by that crate, for three reasons, measured with its release 60.1:
//!
//! - Memory. Its decoders of texts allocate as many lengths as a page says it has. A page of nine
//!   bytes makes them allocate 1 GiB. With a limit of 512 MiB the allocation fails, which aborts
//!   the process: an abort cannot be caught. The number cannot be checked beforehand, because in
//!   `DELTA_BYTE_ARRAY` the second number comes after the packed bits of the first list.
//! - Panics. 29 of the changed bytes in `tests/damage.rs` make them panic, most of them because a
//!   text ends beyond its page. `catch_unwind` turns a panic into an error, but the panic hook
//!   has printed "thread 'main' panicked at" to standard error by then. Only a hook for the whole
//!   process prevents that, and a library must not install one.
//! - Time. To check an inventory of 264,503 entries they take 833 million instructions, and the
//!   decoders here 646 million: they allocate each text.
//!
//! Two tests in `group.rs` show the abort and the panic.

mod by_dir;
mod decode;
mod dirs;
mod group;
mod header;
mod metas;
mod paths;
mod rows;
mod table_file;
mod table_rows;
mod values;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::column::ColumnSpec;
use super::dirs::DirsBuffer;
use super::entries::{EntriesBuffer, META};
use super::error::{Error, Op};
use super::manifest::{Manifest, ManifestFile};
use super::parquet_writer::TableBuffer;
use super::small_tables::{ErrorsBuffer, LinksBuffer, OwnersBuffer};
use crate::owners::Owners;

pub use by_dir::EntriesByDir;
pub use decode::damaged;
pub use dirs::{DirColumns, DirRowRead};
pub use group::RowGroup;
pub use metas::MetaColumns;
pub use paths::{LongPaths, PathColumns, TREE_PATH_BYTES_MAX};
pub use rows::{EntryColumns, errno_of};
pub use table_file::TableFile;
pub use table_rows::{TableRows, ValueKind};
pub use values::{NumberColumn, TextColumn};

/// A table of an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Table {
    /// A row for each directory.
    Dirs,
    /// A row for each entry that is not a directory.
    Entries,
    /// A row for each operation that failed.
    Errors,
    /// A row for each name of an inode that has several.
    Links,
    /// A row for each owner.
    Users,
    /// A row for each owning group.
    Groups,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 6] =
        [Self::Dirs, Self::Entries, Self::Errors, Self::Links, Self::Users, Self::Groups];

    /// Returns the name of the table in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dirs => "dirs",
            Self::Entries => "entries",
            Self::Errors => "errors",
            Self::Links => "links",
            Self::Users => "users",
            Self::Groups => "groups",
        }
    }

    /// Returns the columns of the table.
    pub fn specs(self) -> &'static [ColumnSpec] {
        match self {
            Self::Dirs => DirsBuffer::SPECS,
            Self::Entries => EntriesBuffer::SPECS,
            Self::Errors => ErrorsBuffer::SPECS,
            Self::Links => LinksBuffer::SPECS,
            Self::Users | Self::Groups => OwnersBuffer::SPECS,
        }
    }
}

/// An inventory that is open for reading.
///
/// ```
/// use fathom_inventory::store::Inventory;
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let inventory = Inventory::open(&out)?;
/// assert!(inventory.manifest().completeness.is_complete());
/// inventory.verify()?;
/// let error = Inventory::open(std::path::Path::new("missing.inv")).unwrap_err();
/// assert!(error.to_string().contains("No such file or directory"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Inventory {
    directory: PathBuf,
    manifest: Manifest,
    /// For each file, whether its hash has been verified.
    verified: Vec<AtomicBool>,
    bytes_read: AtomicU64,
    long_paths: OnceLock<LongPaths>,
}

impl Inventory {
    /// Opens the inventory in `directory`. All files of its manifest have to exist and to have the
    /// recorded length.
    ///
    /// # Errors
    /// If there is none, or if its manifest or a file cannot be read or is not as it was written.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let mut manifest = Manifest::read(directory)?;
        manifest.files.iter().try_for_each(|file| check_present(directory, file))?;
        manifest.files.sort_by(|left, right| left.name.cmp(&right.name));
        if let Some(twice) = manifest.files.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(refused(
                directory,
                format!("its manifest has '{}' twice", twice[0].name.escape_debug()),
            ));
        }
        let verified = manifest.files.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self {
            directory: directory.to_owned(),
            manifest,
            verified,
            bytes_read: AtomicU64::new(0),
            long_paths: OnceLock::new(),
        })
    }

    /// Returns the manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the compressed bytes of the columns that have been read so far, in the order of the
    /// rows. Comparing hashes does not count.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use fathom_inventory::store::{Error, Inventory, Span, Table};
    ///
    /// # let temp = tempfile::tempdir()?;
    /// # let out = temp.path().join("src.inv");
    /// # use fathom_scans::scan::{Scan, scan};
    /// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
    /// let inventory = Inventory::open(&out)?;
    /// let read = |columns: &[&str]| -> Result<u64, Error> {
    ///     let before = inventory.bytes_read();
    ///     let go_on = &mut |_: &_| ControlFlow::Continue(());
    ///     inventory.each_rows(Table::Entries, Span::ALL, columns, go_on)?;
    ///     Ok(inventory.bytes_read() - before)
    /// };
    /// assert!(read(&["name", "size"])? > read(&["name"])?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Returns whether its tables have the column `column` of inode metadata.
    #[must_use]
    pub fn has_column(&self, column: &str) -> bool {
        META.iter().any(|spec| spec.name == column && spec.is_in(self.manifest.optional_columns))
    }

    /// Returns an error that is not about one of the files.
    pub fn refused(&self, why: &str) -> Error {
        refused(&self.directory, why.to_owned())
    }

    /// Compares the hashes of all files with the hashes in the manifest.
    ///
    /// # Errors
    /// If a file is not as it was written.
    pub fn verify(&self) -> Result<(), Error> {
        let files = self.manifest.files.iter().zip(&self.verified);
        for (listed, verified) in files.filter(|(_, verified)| !verified.load(Ordering::Relaxed)) {
            let path = self.directory.join(&listed.name);
            table_file::verify(&path, listed).map_err(|error| Error::new(Op::Read, &path, error))?;
            verified.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Opens every file as readers do, and checks its footer, its columns and the sizes of its row
    /// groups.
    pub fn check_shape(&self) -> Result<(), Error> {
        for table in Table::ALL {
            for at in self.files_of(table) {
                let listed = &self.manifest.files[at];
                let path = self.directory.join(&listed.name);
                let part = TableFile::open(&path, listed, table.specs());
                let checked = part.and_then(|part| part.check_shape());
                checked.map_err(|error| Error::new(Op::Read, &path, error))?;
            }
        }
        Ok(())
    }

    /// Iterates over the indices in the manifest of the files of a table.
    pub fn files_of(&self, table: Table) -> impl Iterator<Item = usize> {
        let files = self.manifest.files.iter().enumerate();
        files.filter(move |(_, file)| file.table == table.name()).map(|(at, _)| at)
    }

    /// Returns the path of the file at an index of the manifest.
    pub fn file_path(&self, at: usize) -> PathBuf {
        self.directory.join(&self.manifest.files[at].name)
    }

    /// Opens the file at an index of the manifest. Its hash is verified the first time.
    pub fn open_file(&self, at: usize, table: Table) -> parquet::errors::Result<TableFile> {
        let (listed, verified, path) = (&self.manifest.files[at], &self.verified[at], self.file_path(at));
        // Two threads may both verify the file: the flag only saves work, and publishes nothing.
        if !verified.load(Ordering::Relaxed) {
            table_file::verify(&path, listed)?;
            verified.store(true, Ordering::Relaxed);
        }
        TableFile::open(&path, listed, table.specs())
    }

    /// Returns the directories whose paths are too long for the table.
    pub fn long_paths(&self) -> Result<&LongPaths, Error> {
        if let Some(paths) = self.long_paths.get() {
            return Ok(paths);
        }
        let paths = LongPaths::read(self)?;
        Ok(self.long_paths.get_or_init(|| paths))
    }

    /// Returns the path of a directory for which the table has none.
    pub fn long_path(&self, dir_id: i64) -> Result<Vec<u8>, Error> {
        self.long_paths()?.get(dir_id).ok_or_else(|| self.refused("a directory has no path"))
    }

    /// Reads every row of every table, to check it.
    ///
    /// # Errors
    /// If any of the tables is damaged.
    pub fn check(&self) -> Result<(), Error> {
        for table in Table::ALL {
            self.each(table, |group| group.check())?;
        }
        Ok(())
    }

    /// Returns the path of a file of a table.
    pub fn path_of(&self, table: Table, file: usize) -> Result<PathBuf, Error> {
        let at = self.files_of(table).nth(file);
        let at = at.ok_or_else(|| self.refused("it has fewer files than its manifest says"))?;
        Ok(self.directory.join(&self.manifest.files[at].name))
    }

    /// Returns the number of rows of each row group of each file of a table.
    pub fn group_rows(&self, table: Table) -> Result<Vec<Vec<u64>>, Error> {
        let rows = |at: usize| {
            let part = self.open_file(at, table);
            let path = || self.directory.join(&self.manifest.files[at].name);
            part.and_then(|part| part.group_rows()).map_err(|error| Error::new(Op::Read, &path(), error))
        };
        self.files_of(table).map(rows).collect()
    }

    /// Calls `with` for one row group of one file of a table.
    pub fn group(
        &self,
        table: Table,
        file: usize,
        group: usize,
        with: impl FnOnce(&RowGroup<'_>) -> parquet::errors::Result<()>,
    ) -> Result<(), Error> {
        let at = self.files_of(table).nth(file);
        let at = at.ok_or_else(|| self.refused("it has fewer files than its manifest says"))?;
        let read = self.open_file(at, table).and_then(|part| with(&part.group(group)?));
        read.map_err(|error| Error::new(Op::Read, &self.directory.join(&self.manifest.files[at].name), error))
    }

    /// Reads the names that the inventory has for its owners.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn owners(&self) -> Result<Owners, Error> {
        let read = |table| {
            let mut known = HashMap::new();
            self.each(table, |group| {
                let (ids, names) = (group.numbers("id")?, group.texts("name")?);
                let row = |row| Some((u32::try_from(ids.get(row)?).ok()?, names.get(row)?.to_vec()));
                known.extend((0..group.rows()).filter_map(row));
                Ok(())
            })?;
            Ok(known)
        };
        Ok(Owners::new(read(Table::Users)?, read(Table::Groups)?))
    }

    /// Calls `with` for each row group of `table`, in the order of the rows.
    pub fn each(
        &self,
        table: Table,
        mut with: impl FnMut(&RowGroup<'_>) -> parquet::errors::Result<()>,
    ) -> Result<(), Error> {
        for at in self.files_of(table) {
            let read = self.open_file(at, table).and_then(|part| {
                let ended = part.each(&mut with);
                self.bytes_read.fetch_add(part.bytes_read.into_inner(), Ordering::Relaxed);
                ended
            });
            let path = || self.directory.join(&self.manifest.files[at].name);
            read.map_err(|error| Error::new(Op::Read, &path(), error))?;
        }
        Ok(())
    }
}

/// Checks files that are not in a manifest yet: they exist, and their hashes are as recorded.
pub fn check_files(directory: &Path, files: &[ManifestFile]) -> Result<(), Error> {
    for file in files {
        check_present(directory, file)?;
        let path = directory.join(&file.name);
        table_file::verify(&path, file).map_err(|error| Error::new(Op::Read, &path, error))?;
    }
    Ok(())
}

/// Calls `with` for each row group of a file that has been verified.
pub fn each_of_file(
    directory: &Path,
    file: &ManifestFile,
    table: Table,
    mut with: impl FnMut(&RowGroup<'_>) -> parquet::errors::Result<()>,
) -> Result<(), Error> {
    let path = directory.join(&file.name);
    let part = TableFile::open(&path, file, table.specs());
    part.and_then(|part| part.each(&mut with)).map_err(|error| Error::new(Op::Read, &path, error))
}

/// Reads every row of a file of `table`, without verifying a hash. Returns the number of rows.
///
/// # Errors
/// If the file is damaged.
pub fn check_bytes(table: Table, bytes: Vec<u8>) -> Result<u64, Error> {
    let failed = |error| Error::new(Op::Read, Path::new(table.name()), error);
    let part = TableFile::of_bytes(bytes.into(), table.specs()).map_err(failed)?;
    let mut rows = 0;
    part.each(&mut |group| {
        rows += group.rows() as u64;
        group.check()
    })
    .map_err(failed)?;
    Ok(rows)
}

fn refused(directory: &Path, why: String) -> Error {
    Error::new(Op::Read, directory, why)
}

/// Checks a file of the manifest without opening it.
fn check_present(directory: &Path, file: &ManifestFile) -> Result<(), Error> {
    if !is_plain(&file.name) {
        let name = file.name.escape_debug();
        return Err(refused(
            directory,
            format!("its manifest lists '{name}', which is not a file of an inventory"),
        ));
    }
    let path = directory.join(&file.name);
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::new(Op::Read, &path, source);
    let found = path.symlink_metadata().map_err(|error| failed(error.into()))?;
    if !found.is_file() || found.len() != file.bytes {
        return Err(failed(format!("it has {} bytes, its manifest says {}", found.len(), file.bytes).into()));
    }
    if !Table::ALL.iter().any(|table| table.name() == file.table) {
        return Err(failed("it is of no table that inventories have".into()));
    }
    Ok(())
}

/// Returns whether a file name has letters, digits, dashes and underscores, and then `.parquet`.
fn is_plain(name: &str) -> bool {
    let stem = name.strip_suffix(".parquet").unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=128).contains(&stem.len()) && stem.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_single_components() {
        assert!(is_plain("entries-00000.parquet") && is_plain("a_B-9.parquet"));
        for name in
            ["", ".parquet", "..parquet", "../x.parquet", "a/b.parquet", "/x.parquet", "a.parquet\0", "a"]
        {
            assert!(!is_plain(name), "{name}");
        }
    }
}
