//! The columns of a row group that have inode metadata.

use std::borrow::Cow;

use fathom_walk::{Attributes, Fields, FileTime, Meta};
use parquet::errors::Result;

use super::group::RowGroup;
use super::values::{NumberColumn, TextColumn};
use crate::store::optional::{OptionalColumns, OptionalValues};

/// The inode metadata of a row group.
pub(crate) struct MetaColumns {
    /// Device, inode, mode, owner, group, link count, size, blocks.
    numbers: [NumberColumn; 8],
    /// Access, modification and change time.
    micros: [NumberColumn; 3],
    nanos: [NumberColumn; 3],
    btime: NumberColumn,
    attributes: TextColumn,
    /// Project, names of extended attributes, and presence of an access control list, if the file
    /// has any of these columns.
    optional: Option<(NumberColumn, TextColumn, NumberColumn)>,
}

impl MetaColumns {
    pub(crate) fn read(group: &RowGroup<'_>) -> Result<Self> {
        let column = |name: &str| group.numbers(name);
        let has_more = OptionalColumns::NAMES.iter().any(|name| group.has_column(name));
        let optional = || -> Result<_> { Ok((column("project")?, group.texts("xattrs")?, column("acl")?)) };
        Ok(Self {
            numbers: [
                column("dev")?,
                column("ino")?,
                column("mode")?,
                column("uid")?,
                column("gid")?,
                column("nlink")?,
                column("size")?,
                column("blocks")?,
            ],
            micros: [column("atime")?, column("mtime")?, column("ctime")?],
            nanos: [column("atime_ns")?, column("mtime_ns")?, column("ctime_ns")?],
            btime: column("btime")?,
            attributes: group.texts("attributes")?,
            optional: has_more.then(optional).transpose()?,
        })
    }

    /// Returns the values of the optional columns of a row; `None` if the file has no optional
    /// column.
    pub(crate) fn optional_values(&self, row: usize) -> Option<OptionalValues<'_>> {
        let (project, xattrs, acl) = self.optional.as_ref()?;
        Some(OptionalValues {
            project: project.get(row).map(|project| project as u32),
            xattrs: xattrs.get(row).and_then(|text| std::str::from_utf8(text).ok()).map(Cow::Borrowed),
            acl: acl.get(row).map(|acl| acl == 1),
            ..OptionalValues::default()
        })
    }

    /// Returns the metadata of a row, if it is known.
    pub(crate) fn get(&self, row: usize) -> Option<Meta> {
        let [dev, ino, mode, uid, gid, nlink, size, blocks] =
            self.numbers.each_ref().map(|column| column.get(row));
        let (dev, mode) = (dev?, mode?);
        // The decoder has reduced columns of 32 bits to numbers that fit.
        let [mode, uid, gid] = [Some(mode), uid, gid].map(|number| number.unwrap_or_default() as u32);
        let [ino, nlink, blocks] =
            [ino, nlink, blocks].map(|number| number.unwrap_or_default().cast_unsigned());
        let time = |at: usize| {
            let (micros, nanos) = (self.micros[at].or_zero()[row], self.nanos[at].or_zero()[row]);
            stamp(micros, nanos)
        };
        let btime = self.btime.get(row).map(|micros| stamp(micros, 0));
        let attributes = self.attributes.get(row).and_then(Attributes::from_text);
        let optional = [(Fields::BIRTH, btime.is_some()), (Fields::ATTRIBUTES, attributes.is_some())];
        let known = optional.into_iter().filter(|(_, is_known)| *is_known);
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
            fields: known.fold(Fields::ALL, |all, (field, _)| all.union(field)),
        })
    }
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
