//! The columns of a row group that have what is known of inodes.

use std::borrow::Cow;

use fathom_walk::{Attributes, Meta, Stamp};
use parquet::errors::Result;

use super::group::Group;
use super::values::{Numbers, Texts};
use crate::store::also::{Also, Extra};

/// What is known of the inodes of a row group.
pub(crate) struct Metas {
    /// Device, inode, mode, owner, group, names, bytes, blocks.
    numbers: [Numbers; 8],
    /// Access, modification and change.
    micros: [Numbers; 3],
    nanos: [Numbers; 3],
    born: Numbers,
    attributes: Texts,
    /// Project, names of extended attributes, and access control list, if the file has any.
    more: Option<(Numbers, Texts, Numbers)>,
}

impl Metas {
    pub(crate) fn read(group: &Group<'_>) -> Result<Self> {
        let column = |name: &str| group.numbers(name);
        let has_more = Also::NAMES.iter().any(|name| group.has(name));
        let more = || -> Result<_> { Ok((column("project")?, group.texts("xattrs")?, column("acl")?)) };
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
            born: column("btime")?,
            attributes: group.texts("attributes")?,
            more: has_more.then(more).transpose()?,
        })
    }

    /// The columns that were asked for, if the file has any; each may lack its value.
    pub(crate) fn extra(&self, row: usize) -> Option<Extra<'_>> {
        let (project, xattrs, acl) = self.more.as_ref()?;
        Some(Extra {
            project: project.get(row).map(|project| project as u32),
            xattrs: xattrs.get(row).and_then(|text| std::str::from_utf8(text).ok()).map(Cow::Borrowed),
            acl: acl.get(row).map(|acl| acl == 1),
            ..Extra::default()
        })
    }

    /// What is known of a row's inode, if anything is.
    pub(crate) fn get(&self, row: usize) -> Option<Meta> {
        let [dev, ino, mode, uid, gid, nlink, size, blocks] =
            self.numbers.each_ref().map(|column| column.get(row));
        let (dev, mode) = (dev?, mode?);
        // Columns of 32 bits are read as numbers that fit.
        let [mode, uid, gid] = [Some(mode), uid, gid].map(|number| number.unwrap_or_default() as u32);
        let [ino, nlink, blocks] =
            [ino, nlink, blocks].map(|number| number.unwrap_or_default().cast_unsigned());
        let time = |at: usize| {
            let (micros, nanos) = (self.micros[at].or_zero()[row], self.nanos[at].or_zero()[row]);
            stamp(micros, nanos)
        };
        Some(Meta {
            dev: dev.cast_unsigned(),
            ino,
            size: size.unwrap_or_default(),
            blocks,
            mode,
            nlink,
            uid,
            gid,
            accessed: time(0),
            modified: time(1),
            changed: time(2),
            born: self.born.get(row).map(|micros| stamp(micros, 0)),
            mount_root: None,
            attributes: self.attributes.get(row).and_then(Attributes::from_text),
        })
    }
}

/// A point in time from microseconds since 1970 and the nanoseconds beyond.
fn stamp(micros: i64, nanos: i64) -> Stamp {
    let beyond = micros.rem_euclid(1_000_000) * 1000 + nanos.clamp(0, 999);
    Stamp { sec: micros.div_euclid(1_000_000), nsec: beyond as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_put_together_before_1970_too() {
        assert_eq!(stamp(1_000_001, 7), Stamp { sec: 1, nsec: 1007 });
        assert_eq!(stamp(-1, 999), Stamp { sec: -1, nsec: 999_999_999 });
        for hostile in [stamp(i64::MIN, i64::MIN), stamp(i64::MAX, i64::MAX)] {
            assert!(hostile.nsec < 1_000_000_000);
        }
    }
}
