//! The conditions of `fathomfs.Where` (python/fathomfs/_where.py), decided for the names of a
//! directory before any metadata is read, and then for entries.

use std::ops::RangeInclusive;

use fathom_walk::{Fields, FileType, Meta};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::columns::{Column, microseconds};

/// All types that an entry may have.
const TYPES: [FileType; 8] = [
    FileType::Regular,
    FileType::Directory,
    FileType::Symlink,
    FileType::Fifo,
    FileType::Socket,
    FileType::Block,
    FileType::Char,
    FileType::Unknown,
];

/// Path prefix, types and ranges of columns, as `Where.conditions` returns them.
pub(crate) type Conditions = (Option<Vec<u8>>, Option<Vec<String>>, Vec<(String, Option<i64>, Option<i64>)>);

/// A column of metadata that can have a range.
#[derive(Clone, Copy, Debug)]
enum Measure {
    Size,
    Mtime,
    Atime,
    Ctime,
}

impl Measure {
    fn parse(name: &str) -> PyResult<Self> {
        match name {
            "size" => Ok(Self::Size),
            "mtime" => Ok(Self::Mtime),
            "atime" => Ok(Self::Atime),
            "ctime" => Ok(Self::Ctime),
            _ => Err(PyValueError::new_err(format!("column {name:?} has no ranges"))),
        }
    }

    fn column(self) -> Column {
        match self {
            Self::Size => Column::Size,
            Self::Mtime => Column::Mtime,
            Self::Atime => Column::Atime,
            Self::Ctime => Column::Ctime,
        }
    }

    fn of(self, meta: &Meta) -> i64 {
        match self {
            Self::Size => meta.size,
            Self::Mtime => microseconds(meta.mtime),
            Self::Atime => microseconds(meta.atime),
            Self::Ctime => microseconds(meta.ctime),
        }
    }
}

/// The paths below a directory that begin with the path prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach<'a> {
    /// All paths below the directory.
    All,
    /// The paths whose part below the directory begins with these bytes.
    Some(&'a [u8]),
    /// No path below the directory.
    None,
}

impl Reach<'_> {
    /// Returns whether the path of the entry `name`, or of an entry that may be below it, begins
    /// with the prefix.
    pub(crate) fn includes(self, name: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Some(rest) => {
                name.starts_with(rest) || rest.strip_prefix(name).is_some_and(|below| below.starts_with(b"/"))
            }
            Self::None => false,
        }
    }
}

/// Conditions on entries. The default accepts all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Predicate {
    /// Whether there is any condition.
    is_set: bool,
    prefix: Vec<u8>,
    /// `None` accepts all types.
    types: Option<Vec<FileType>>,
    ranges: Vec<(Measure, RangeInclusive<i64>)>,
}

impl Predicate {
    /// Converts the conditions of a `Where`.
    ///
    /// # Errors
    /// `ValueError` for an unknown type or column, which `Where` refuses before.
    pub(crate) fn new((prefix, types, ranges): Conditions) -> PyResult<Self> {
        let file_type = |name: String| {
            let found = TYPES.into_iter().find(|file_type| file_type.name() == name);
            found.ok_or_else(|| PyValueError::new_err(format!("unknown type {name:?}")))
        };
        let types = types.map(|names| names.into_iter().map(file_type).collect()).transpose()?;
        let range = |(name, low, high): (String, Option<i64>, Option<i64>)| {
            Ok((Measure::parse(&name)?, low.unwrap_or(i64::MIN)..=high.unwrap_or(i64::MAX)))
        };
        let ranges = ranges.into_iter().map(range).collect::<PyResult<Vec<_>>>()?;
        let prefix = prefix.unwrap_or_default();
        let is_set = !prefix.is_empty() || types.is_some() || !ranges.is_empty();
        Ok(Self { is_set, prefix, types, ranges })
    }

    /// Returns the fields of metadata that the conditions need; `None` if they need no metadata.
    pub(crate) fn fields(&self) -> Option<Fields> {
        self.ranges.iter().filter_map(|(measure, _)| measure.column().fields()).reduce(Fields::union)
    }

    /// Returns whether the conditions depend on the path.
    pub(crate) fn needs_path(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Returns whether a path below the root `root` may begin with the prefix.
    pub(crate) fn reaches(&self, root: &[u8]) -> bool {
        self.reach(root) != Reach::None
    }

    /// Returns whether names can be refused without metadata.
    pub(crate) fn needs_names(&self) -> bool {
        self.needs_path() || self.types.is_some()
    }

    /// Returns whether an entry may be accepted, as far as its type tells.
    pub(crate) fn accepts_type(&self, file_type: FileType) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&file_type))
    }

    /// Returns whether an entry is accepted. Without metadata, ranges accept nothing.
    pub(crate) fn accepts(&self, path: &[u8], file_type: FileType, meta: Option<&Meta>) -> bool {
        if !self.is_set {
            return true;
        }
        let in_range = |(measure, range): &(Measure, RangeInclusive<i64>)| {
            meta.is_some_and(|meta| range.contains(&measure.of(meta)))
        };
        // Comparing no bytes takes time, too.
        let has_prefix = self.prefix.is_empty() || path.starts_with(&self.prefix);
        self.accepts_type(file_type) && has_prefix && self.ranges.iter().all(in_range)
    }

    /// Returns whether a column is needed to decide [`Self::accepts_values`].
    pub(crate) fn needs(&self, column: Column) -> bool {
        self.ranges.iter().any(|(measure, _)| measure.column() == column)
    }

    /// Returns whether an entry is accepted, whatever its path. Without metadata, ranges accept
    /// nothing.
    pub(crate) fn accepts_values(&self, file_type: FileType, meta: Option<&Meta>) -> bool {
        let in_range = |(measure, range): &(Measure, RangeInclusive<i64>)| {
            meta.is_some_and(|meta| range.contains(&measure.of(meta)))
        };
        self.accepts_type(file_type) && self.ranges.iter().all(in_range)
    }

    /// Returns the paths below the directory `dir` that begin with the prefix.
    pub(crate) fn reach(&self, dir: &[u8]) -> Reach<'_> {
        let common = dir.iter().zip(&self.prefix).take_while(|(one, other)| one == other).count();
        match &self.prefix[common..] {
            [] => Reach::All,
            _ if common < dir.len() => Reach::None,
            [b'/', rest @ ..] => Reach::Some(rest),
            // The path of the root may end with a slash.
            rest if dir.ends_with(b"/") => Reach::Some(rest),
            _ => Reach::None,
        }
    }
}
