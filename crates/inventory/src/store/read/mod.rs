//! Reads inventories. What is in one is nobody's word: names of files, lengths, hashes, schemas and every page are checked
//! before they are used, and memory is bounded by what a row group may have. A damaged one is an error, never a panic.
//!
//! The `parquet` crate reads footers and unpacks pages; the values in them are decoded here, as that crate's decoders
//! end the program where a page is damaged.

mod decode;
mod group;
mod header;
mod part;
mod values;

use std::path::{Path, PathBuf};

use super::column::Spec;
use super::dirs::Dirs;
use super::entries::Entries;
use super::error::{Error, Op};
use super::manifest::{Listed, Manifest};
use super::side::{Errors, Links, Names};
use super::table::Columns;

pub(crate) use group::Group;
pub(crate) use part::Part;
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

    fn specs(self) -> &'static [Spec] {
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
}

impl Inventory {
    /// Opens the inventory in `directory`: all files of its manifest are there, with the length that they had.
    ///
    /// # Errors
    /// If there is none, or if its manifest or a file cannot be read or is not as it was written.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let mut manifest = Manifest::read(directory)?;
        for file in &manifest.files {
            present(directory, file)?;
        }
        manifest.files.sort_by(|left, right| left.name.cmp(&right.name));
        if let Some(twice) = manifest.files.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(refused(
                directory,
                format!("its manifest has '{}' twice", twice[0].name.escape_debug()),
            ));
        }
        Ok(Self { directory: directory.to_owned(), manifest })
    }

    /// What it says of itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What is wrong with it, as an error.
    pub(crate) fn refuse(&self, why: &str) -> Error {
        refused(&self.directory, why.to_owned())
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
        for file in self.manifest.files.iter().filter(|file| file.table == table.name()) {
            let path = self.directory.join(&file.name);
            let part = Part::open(&path, file, table.specs());
            let read = part.and_then(|part| part.each(&mut with));
            read.map_err(|error| Error::new(Op::Read, &path, error))?;
        }
        Ok(())
    }
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
