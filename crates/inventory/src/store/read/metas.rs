//! The columns of a row group that have inode metadata.

use std::borrow::Cow;

use fathom_walk::{Attributes, Fields, FileTime, Meta};
use parquet::errors::Result;

use super::group::RowGroup;
use super::values::{NumberColumn, TextColumn};
use crate::store::chunk::MissingColumns;
use crate::store::optional::{OptionalColumns, OptionalValues};

const NUMBERS: [&str; 8] = ["dev", "ino", "mode", "uid", "gid", "nlink", "size", "blocks"];
const MICROS: [&str; 3] = ["atime", "mtime", "ctime"];
const NANOS: [&str; 3] = ["atime_ns", "mtime_ns", "ctime_ns"];

/// The inode metadata of a row group. Columns that have not been loaded are `None`.
#[derive(Default)]
pub struct MetaColumns {
    /// The columns of [`NUMBERS`].
    numbers: [Option<NumberColumn>; 8],
    /// Access, modification and change time.
    micros: [Option<NumberColumn>; 3],
    nanos: [Option<NumberColumn>; 3],
    btime: Option<NumberColumn>,
    attributes: Option<TextColumn>,
    /// The optional columns, if the file has any of them.
    optional: Option<OptionalReader>,
}

/// The optional columns of a row group. One that the file lacks has no values.
struct OptionalReader {
    project: NumberColumn,
    xattrs: TextColumn,
    acl: NumberColumn,
    ignored: NumberColumn,
}

impl OptionalReader {
    fn read(group: &RowGroup<'_>) -> Result<Self> {
        Ok(Self {
            project: group.numbers("project")?,
            xattrs: group.texts("xattrs")?,
            acl: group.numbers("acl")?,
            ignored: group.numbers("ignored")?,
        })
    }

    fn values(&self, row: usize) -> OptionalValues<'_> {
        let xattrs = self.xattrs.get(row).and_then(|text| std::str::from_utf8(text).ok());
        OptionalValues {
            project: self.project.get(row).map(|project| project as u32),
            xattrs: xattrs.map(Cow::Borrowed),
            acl: self.acl.get(row).map(|acl| acl == 1),
            ignored: self.ignored.get(row).map(|ignored| ignored == 1),
            ..OptionalValues::default()
        }
    }
}

impl MetaColumns {
    /// Reads all columns.
    pub fn read(group: &RowGroup<'_>) -> Result<Self> {
        let mut columns = Self::default();
        columns.load(group, |_| true)?;
        Ok(columns)
    }

    /// Reads those columns that are needed and have not been read. `needs` is given the names of
    /// columns. The mode is always read: a row without one has no metadata.
    pub fn load(&mut self, group: &RowGroup<'_>, needs: impl Fn(&str) -> bool) -> Result<()> {
        let numbers = NUMBERS.into_iter().zip(&mut self.numbers);
        let times = MICROS.into_iter().zip(&mut self.micros).chain(NANOS.into_iter().zip(&mut self.nanos));
        for (name, column) in numbers.chain(times).chain([("btime", &mut self.btime)]) {
            if column.is_none() && (name == "mode" || needs(name)) {
                *column = Some(group.numbers(name)?);
            }
        }
        if self.attributes.is_none() && needs("attributes") {
            self.attributes = Some(group.texts("attributes")?);
        }
        let is_needed = |name: &&str| needs(name) && group.has_column(name);
        if self.optional.is_none() && OptionalColumns::NAMES.iter().any(is_needed) {
            self.optional = Some(OptionalReader::read(group)?);
        }
        Ok(())
    }

    /// Returns the values of the optional columns of a row; `None` if the file has no optional
    /// column.
    pub fn optional_values(&self, row: usize) -> Option<OptionalValues<'_>> {
        self.optional.as_ref().map(|columns| columns.values(row))
    }

    /// Returns the columns in which a row with metadata has no value. All columns must have been
    /// loaded.
    pub(crate) fn missing(&self, row: usize) -> MissingColumns {
        let value = |column: &Option<NumberColumn>| column.as_ref().and_then(|column| column.get(row));
        missing(self.numbers.each_ref().map(value), self.micros.each_ref().map(value))
    }

    /// Returns the metadata of a row, if it is known. Values of columns that have not been loaded
    /// are 0, and so are those that the row lacks, of which the fields say whether there is an
    /// owner, and a time of modification.
    pub fn get(&self, row: usize) -> Option<Meta> {
        let value = |column: &Option<NumberColumn>| column.as_ref().and_then(|column| column.get(row));
        let [dev, ino, mode, uid, gid, nlink, size, blocks] = self.numbers.each_ref().map(value);
        let mode = mode?;
        let dev = if self.numbers[0].is_some() { dev? } else { 0 };
        // The decoder has reduced columns of 32 bits to numbers that fit.
        let [mode, uid, gid] = [Some(mode), uid, gid].map(|number| number.unwrap_or_default() as u32);
        let [ino, nlink, blocks] =
            [ino, nlink, blocks].map(|number| number.unwrap_or_default().cast_unsigned());
        let time = |at: usize| {
            let [micros, nanos] = [&self.micros[at], &self.nanos[at]].map(value);
            stamp(micros.unwrap_or_default(), nanos.unwrap_or_default())
        };
        let btime = value(&self.btime).map(|micros| stamp(micros, 0));
        let attributes = self.attributes.as_ref().and_then(|column| column.get(row));
        let attributes = attributes.and_then(Attributes::from_text);
        let is_null = |column: &Option<NumberColumn>| column.is_some() && value(column).is_none();
        let [owner, times] = [&self.numbers[3], &self.micros[1]].map(|column| !is_null(column));
        let optional = [
            (Fields::OWNER, owner),
            (Fields::TIMES, times),
            (Fields::BIRTH, btime.is_some()),
            (Fields::ATTRIBUTES, attributes.is_some()),
        ];
        let known = optional.into_iter().filter(|(_, is_known)| *is_known);
        let sizes = Fields::SIZE.union(Fields::BLOCKS);
        Some(Meta {
            dev: dev.cast_unsigned(),
            ino,
            size: size.unwrap_or_default(),
            blocks,
            mode,
            nlink,
            uid,
            gid,
            atime: time(0),
            mtime: time(1),
            ctime: time(2),
            btime,
            mount_root: None,
            attributes,
            fields: known.fold(sizes, |all, (field, _)| all.union(field)),
        })
    }
}

/// Returns the columns that have no value in a row, given the values of [`NUMBERS`] and of the
/// times.
fn missing(numbers: [Option<i64>; 8], times: [Option<i64>; 3]) -> MissingColumns {
    use MissingColumns as Missing;
    let columns = [Missing::INO, Missing::UID, Missing::GID, Missing::NLINK, Missing::SIZE, Missing::BLOCKS];
    let [_, ino, _, uid, gid, nlink, size, blocks] = numbers;
    let pairs = [ino, uid, gid, nlink, size, blocks].into_iter().zip(columns);
    let absent = pairs.chain(times.into_iter().zip(Missing::TIMES)).filter(|(value, _)| value.is_none());
    absent.fold(Missing::default(), |all, (_, column)| all.union(column))
}

/// Returns the timestamp for microseconds since 1970 and the nanoseconds beyond.
fn stamp(micros: i64, nanos: i64) -> FileTime {
    let beyond = micros.rem_euclid(1_000_000) * 1000 + nanos.clamp(0, 999);
    FileTime { sec: micros.div_euclid(1_000_000), nsec: beyond as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_put_together_before_1970_too() {
        assert_eq!(stamp(1_000_001, 7), FileTime { sec: 1, nsec: 1007 });
        assert_eq!(stamp(-1, 999), FileTime { sec: -1, nsec: 999_999_999 });
        for hostile in [stamp(i64::MIN, i64::MIN), stamp(i64::MAX, i64::MAX)] {
            assert!(hostile.nsec < 1_000_000_000);
        }
    }
}
