//! Reads inventories. What is in one is nobody's word: names of files, lengths, hashes, schemas and every page are checked
//! before they are used, and memory is bounded by what a row group may have. A damaged one is an error, never a panic.
//!
//! The `parquet` crate reads footers and unpacks pages; the values in them are decoded here, as that crate's decoders
//! end the program where a page is damaged.

mod by_dir;
mod decode;
mod group;
mod header;
mod metas;
mod part;
mod paths;
mod rows;
mod values;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::column::Spec;
use super::dirs::Dirs;
use super::entries::{Entries, META};
use super::error::{Error, Op};
use super::manifest::{Listed, Manifest, VERSION};
use super::side::{Errors, Links, Names};
use super::table::Columns;
use part::Part;
use paths::LongPaths;

pub(crate) use by_dir::ByDir;
pub(crate) use group::Group;
pub(crate) use metas::Metas;
pub(crate) use paths::{Paths, TREE_PATH_BYTES_MAX};
pub(crate) use rows::{Rows, errno_of};
pub(crate) use values::{Numbers, Texts};

/// The tables of an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A row for each directory.
    Dirs,
    /// A row for each entry that is no directory.
    Entries,
    /// What could not be read.
    Errors,
    /// Names of inodes that have several.
    Links,
    /// Owners.
    Users,
    /// Groups.
    Groups,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Dirs, Self::Entries, Self::Errors, Self::Links, Self::Users, Self::Groups];

    /// As the manifest has it.
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

    pub(crate) fn specs(self) -> &'static [Spec] {
        match self {
            Self::Dirs => Dirs::SPECS,
            Self::Entries => Entries::SPECS,
            Self::Errors => Errors::SPECS,
            Self::Links => Links::SPECS,
            Self::Users | Self::Groups => Names::SPECS,
        }
    }
}

/// An inventory that can be read.
#[derive(Debug)]
pub struct Inventory {
    directory: PathBuf,
    manifest: Manifest,
    /// By file, whether its hash has been compared.
    verified: Vec<AtomicBool>,
    long_paths: OnceLock<LongPaths>,
}

impl Inventory {
    /// Opens the inventory in `directory`: all files of its manifest are there, with the length that they had.
    ///
    /// # Errors
    /// If there is none, or if its manifest or a file cannot be read or is not as it was written.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let mut manifest = Manifest::read(directory)?;
        manifest.files.iter().try_for_each(|file| present(directory, file))?;
        manifest.files.sort_by(|left, right| left.name.cmp(&right.name));
        if let Some(twice) = manifest.files.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(refused(
                directory,
                format!("its manifest has '{}' twice", twice[0].name.escape_debug()),
            ));
        }
        let verified = manifest.files.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self { directory: directory.to_owned(), manifest, verified, long_paths: OnceLock::new() })
    }

    /// What it says of itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Whether its tables have this column of inodes.
    #[must_use]
    pub(crate) fn has(&self, column: &str) -> bool {
        let has = |spec: &Spec| spec.since <= self.manifest.format && spec.is_in(self.manifest.also);
        META.iter().any(|spec| spec.name == column && has(spec))
    }

    /// Why it cannot be read, if not because of one file.
    pub(crate) fn refused(&self, why: &str) -> Error {
        refused(&self.directory, why.to_owned())
    }

    /// Compares the hashes of all files with those of the manifest.
    ///
    /// # Errors
    /// If a file is not as it was written.
    pub fn verify(&self) -> Result<(), Error> {
        let files = self.manifest.files.iter().zip(&self.verified);
        for (listed, verified) in files.filter(|(_, verified)| !verified.load(Ordering::Relaxed)) {
            let path = self.directory.join(&listed.name);
            part::verify(&path, listed).map_err(|error| Error::new(Op::Read, &path, error))?;
            verified.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Opens every file as readers do: its footer, its columns, and the sizes of its row groups.
    pub(crate) fn check_shape(&self) -> Result<(), Error> {
        for table in Table::ALL {
            for at in self.files_of(table) {
                let listed = &self.manifest.files[at];
                let path = self.directory.join(&listed.name);
                let part = Part::open(&path, listed, table.specs(), self.manifest.format);
                let checked = part.and_then(|part| part.check_shape());
                checked.map_err(|error| Error::new(Op::Read, &path, error))?;
            }
        }
        Ok(())
    }

    /// The places in the manifest of the files of a table.
    fn files_of(&self, table: Table) -> impl Iterator<Item = usize> {
        let files = self.manifest.files.iter().enumerate();
        files.filter(move |(_, file)| file.table == table.name()).map(|(at, _)| at)
    }

    /// Opens the file at a place in the manifest; its hash is compared the first time.
    fn part(&self, at: usize, table: Table) -> parquet::errors::Result<Part> {
        let (listed, verified) = (&self.manifest.files[at], &self.verified[at]);
        let path = self.directory.join(&listed.name);
        // Two threads may both compare it: the flag only saves work, and publishes nothing.
        if !verified.load(Ordering::Relaxed) {
            part::verify(&path, listed)?;
            verified.store(true, Ordering::Relaxed);
        }
        Part::open(&path, listed, table.specs(), self.manifest.format)
    }

    /// Directories whose paths are longer than those of the table.
    pub(crate) fn long_paths(&self) -> Result<&LongPaths, Error> {
        if let Some(paths) = self.long_paths.get() {
            return Ok(paths);
        }
        let paths = LongPaths::read(self)?;
        Ok(self.long_paths.get_or_init(|| paths))
    }

    /// The path of a directory of which the table has none.
    pub(crate) fn long_path(&self, dir_id: i64) -> Result<Vec<u8>, Error> {
        self.long_paths()?.get(dir_id).ok_or_else(|| self.refused("a directory has no path"))
    }

    /// Reads every row of every table.
    ///
    /// # Errors
    /// If any of it is damaged.
    pub fn check(&self) -> Result<(), Error> {
        for table in Table::ALL {
            self.each(table, |group| group.check())?;
        }
        Ok(())
    }

    /// Calls `with` for each row group of `table`, in the order of the rows.
    pub(crate) fn each(
        &self,
        table: Table,
        mut with: impl FnMut(&Group<'_>) -> parquet::errors::Result<()>,
    ) -> Result<(), Error> {
        for at in self.files_of(table) {
            let read = self.part(at, table).and_then(|part| part.each(&mut with));
            let path = || self.directory.join(&self.manifest.files[at].name);
            read.map_err(|error| Error::new(Op::Read, &path(), error))?;
        }
        Ok(())
    }
}

/// Checks files that are in no manifest yet: they are there, and as they were written.
pub(crate) fn check_files(directory: &Path, files: &[Listed]) -> Result<(), Error> {
    for file in files {
        present(directory, file)?;
        let path = directory.join(&file.name);
        part::verify(&path, file).map_err(|error| Error::new(Op::Read, &path, error))?;
    }
    Ok(())
}

/// Calls `with` for each row group of a file that was checked.
pub(crate) fn each_of_file(
    directory: &Path,
    file: &Listed,
    table: Table,
    mut with: impl FnMut(&Group<'_>) -> parquet::errors::Result<()>,
) -> Result<(), Error> {
    let path = directory.join(&file.name);
    let part = Part::open(&path, file, table.specs(), VERSION);
    part.and_then(|part| part.each(&mut with)).map_err(|error| Error::new(Op::Read, &path, error))
}

/// Reads every row of a file of `table` whose hash nobody has compared; how many there are.
///
/// # Errors
/// If it is damaged.
pub fn check_bytes(table: Table, bytes: Vec<u8>) -> Result<u64, Error> {
    let failed = |error| Error::new(Op::Read, Path::new(table.name()), error);
    let part = Part::of_bytes(bytes.into(), table.specs()).map_err(failed)?;
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

/// Checks a file of the manifest from outside.
fn present(directory: &Path, file: &Listed) -> Result<(), Error> {
    if !is_plain(&file.name) {
        let name = file.name.escape_debug();
        return Err(refused(
            directory,
            format!("its manifest has '{name}', which is no name of a file of it"),
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

/// Letters, digits, dashes and underscores, and then `.parquet`.
fn is_plain(name: &str) -> bool {
    let stem = name.strip_suffix(".parquet").unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=128).contains(&stem.len()) && stem.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_lead_nowhere_else() {
        assert!(is_plain("entries-00000.parquet") && is_plain("a_B-9.parquet"));
        for name in
            ["", ".parquet", "..parquet", "../x.parquet", "a/b.parquet", "/x.parquet", "a.parquet\0", "a"]
        {
            assert!(!is_plain(name), "{name}");
        }
    }
}
