//! The metadata that an inventory has of an inode, in a form that can be compared, sorted and
//! written to a spill file.

use std::collections::HashMap;

use fathom_walk::Attributes;
use parquet::errors::Result;

use super::sorter::{SortRecord, get_bytes, get_number, put_bytes, put_number};
use fathom_inventory::store::{NumberColumn, RowGroup, TextColumn};

const MICROS_PER_SEC: i64 = 1_000_000;

/// Marks a missing value in a nullable column, for an inode whose other values are known.
const NEVER: i64 = i64::MIN;

/// The numeric metadata of an inode, one variant for each column of an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumericField {
    /// The device number. Numbers of the new inventory are mapped to numbers of the old one.
    Dev,
    /// The inode number.
    Ino,
    /// Type and permission bits.
    Mode,
    /// The user ID of the owner.
    Uid,
    /// The ID of the owning group.
    Gid,
    /// The link count.
    Nlink,
    /// The size in bytes.
    Size,
    /// Allocated blocks of 512 bytes.
    Blocks,
    /// Last modification, in microseconds since 1970.
    Mtime,
    /// The nanoseconds of the modification time beyond the microsecond.
    MtimeNs,
    /// Last change of the inode, in microseconds since 1970.
    Ctime,
    /// The nanoseconds of the change time beyond the microsecond.
    CtimeNs,
    /// The creation time, in microseconds since 1970.
    Btime,
    /// The project ID, by which quotas are counted.
    Project,
    /// 1 where there is an access control list, 0 where there is none.
    Acl,
    /// The inode attributes, as [`Attributes::bits`] encodes them.
    Attributes,
}

/// The number of [`NumericField`] variants.
const NUMBERS: usize = COLUMNS.len() + 1;

/// The numeric columns, in the order of [`NumericField`]. The attributes, which are the last
/// variant, have a text column.
const COLUMNS: [&str; 15] = [
    "dev", "ino", "mode", "uid", "gid", "nlink", "size", "blocks", "mtime", "mtime_ns", "ctime", "ctime_ns",
    "btime", "project", "acl",
];

/// The metadata of an inode.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InodeInfo {
    /// The letter of the file type, `d` for a directory.
    pub letter: u8,
    /// The target of a symbolic link.
    pub link: Vec<u8>,
    known: bool,
    numbers: [i64; NUMBERS],
    /// The names of extended attributes as the inventory writes them; `None` where they are
    /// unknown.
    pub xattrs: Option<Vec<u8>>,
}

impl InodeInfo {
    /// Returns whether the target is known: an imported inventory has links without. An entry of
    /// another type has none.
    pub(super) fn knows_target(&self) -> bool {
        !self.link.is_empty() || !matches!(self.letter, b'l' | b'U')
    }

    /// Returns a number; `None` where the metadata of the inode, or this number, is unknown.
    #[must_use]
    pub fn number(&self, number: NumericField) -> Option<i64> {
        let found = self.numbers[number as usize];
        (self.known && found != NEVER).then_some(found)
    }

    /// Returns the inode attributes; `None` where they are unknown.
    #[must_use]
    pub fn attributes(&self) -> Option<Attributes> {
        let bits = u8::try_from(self.number(NumericField::Attributes)?).ok()?;
        Attributes::from_bits(bits)
    }

    /// Returns the permission bits. An imported inventory that has no owners has none either.
    pub(super) fn permissions(&self) -> Option<i64> {
        let bits = self.number(NumericField::Mode)? & 0o7777;
        (bits != 0 || self.number(NumericField::Uid).is_some()).then_some(bits)
    }

    /// Returns whether more than the type is known.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// Returns whether all of these numbers are equal.
    pub(super) fn agrees(&self, other: &Self, numbers: &[NumericField]) -> bool {
        numbers.iter().all(|number| self.numbers[*number as usize] == other.numbers[*number as usize])
    }

    /// Returns whether both have this number and the numbers differ.
    pub(super) fn differs_in(&self, other: &Self, number: NumericField) -> bool {
        matches!((self.number(number), other.number(number)), (Some(one), Some(two)) if one != two)
    }

    /// Clears the values of those optional columns that `columns` names.
    pub(super) fn clear(&mut self, columns: &[&str]) {
        for column in columns {
            match *column {
                "project" => self.numbers[NumericField::Project as usize] = NEVER,
                "acl" => self.numbers[NumericField::Acl as usize] = NEVER,
                _ => self.xattrs = None,
            }
        }
    }

    /// Appends the fields of a directory that are compared.
    pub(super) fn put_dir(&self, out: &mut Vec<u8>) {
        use NumericField::{Acl, Attributes, Gid, Mode, Project, Uid};
        for number in [Mode, Uid, Gid, Attributes, Project, Acl] {
            put_number(self.numbers[number as usize], out);
        }
        put_bytes(self.xattrs.as_deref().unwrap_or_default(), out);
    }

    /// Returns whether both have the names of extended attributes and the names differ.
    pub(super) fn xattrs_differ(&self, other: &Self) -> bool {
        matches!((&self.xattrs, &other.xattrs), (Some(one), Some(two)) if one != two)
    }

    /// Returns whether both have the same device and inode number, and the creation times do not
    /// contradict that.
    pub(super) fn has_inode_of(&self, other: &Self) -> bool {
        self.number(NumericField::Ino).is_some()
            && other.known
            && self.agrees(other, &[NumericField::Dev, NumericField::Ino])
            && self.may_share_btime(other)
    }

    /// Returns whether the creation times are equal, or one of them is unknown.
    fn may_share_btime(&self, other: &Self) -> bool {
        match (self.number(NumericField::Btime), other.number(NumericField::Btime)) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        }
    }

    /// Returns whether both are the same file, whatever its names. Inode numbers are reused, so the
    /// creation times have to be equal; where one is unknown, modification time and size have to
    /// be.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        let has_btimes =
            self.number(NumericField::Btime).is_some() && other.number(NumericField::Btime).is_some();
        self.has_inode_of(other)
            && self.letter == other.letter
            && (has_btimes
                || self.agrees(other, &[NumericField::Mtime, NumericField::MtimeNs, NumericField::Size]))
    }
}

impl SortRecord for InodeInfo {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.letter, self.known.into()]);
        self.numbers.iter().for_each(|number| put_number(*number, out));
        put_bytes(&self.link, out);
        out.push(self.xattrs.is_some().into());
        put_bytes(self.xattrs.as_deref().unwrap_or_default(), out);
    }

    fn get(input: &mut &[u8]) -> Option<Self> {
        let [letter, known] = *input.split_off(..2)? else { return None };
        let mut numbers = [0; NUMBERS];
        for number in &mut numbers {
            *number = get_number(input)?;
        }
        let link = get_bytes(input)?;
        let has_xattrs = *input.split_off_first()? != 0;
        let xattrs = Some(get_bytes(input)?).filter(|_| has_xattrs);
        Some(Self { letter, known: known != 0, numbers, link, xattrs })
    }

    fn heap_bytes(&self) -> usize {
        self.link.capacity() + self.xattrs.as_ref().map_or(0, Vec::capacity)
    }
}

/// Maps device numbers of the new inventory to numbers of the old one, where they differ.
pub(super) type DeviceMap = HashMap<i64, i64>;

/// The columns of a row group that [`InodeInfo`] are read from.
pub(super) struct InodeColumns {
    letters: Option<TextColumn>,
    numbers: Vec<NumberColumn>,
    attributes: TextColumn,
    xattrs: TextColumn,
    links: Option<[TextColumn; 2]>,
}

impl InodeColumns {
    /// Reads the columns of a row group of `dirs`.
    pub(super) fn dirs(group: &RowGroup<'_>) -> Result<Self> {
        let numbers = COLUMNS.iter().map(|name| group.numbers(name)).collect::<Result<_>>()?;
        let (attributes, xattrs) = (group.texts("attributes")?, group.texts("xattrs")?);
        Ok(Self { letters: None, numbers, attributes, xattrs, links: None })
    }

    /// Reads the columns of a row group of `entries`.
    pub(super) fn entries(group: &RowGroup<'_>) -> Result<Self> {
        let links = [group.texts("link_target")?, group.texts("link_raw")?];
        Ok(Self { letters: Some(group.texts("type")?), links: Some(links), ..Self::dirs(group)? })
    }

    /// Returns the metadata of a row. Its device number is mapped by `devices`, and `in_seconds`
    /// tells that times of modification are compared in whole seconds.
    pub(super) fn info(&self, row: usize, devices: &DeviceMap, in_seconds: bool) -> InodeInfo {
        let letter = |letters: &TextColumn| letters.get(row).and_then(|letter| letter.first()).copied();
        let mut numbers = [0; NUMBERS];
        let known = self.numbers[NumericField::Mode as usize].get(row).is_some();
        // An imported inventory has metadata of which some columns are unknown.
        let absent = if known { NEVER } else { 0 };
        for (number, column) in numbers.iter_mut().zip(&self.numbers) {
            *number = column.get(row).unwrap_or(absent);
        }
        let mtime = &mut numbers[NumericField::Mtime as usize];
        if in_seconds && *mtime != NEVER {
            *mtime -= mtime.rem_euclid(MICROS_PER_SEC);
            numbers[NumericField::MtimeNs as usize] = 0;
        }
        let dev = &mut numbers[NumericField::Dev as usize];
        *dev = devices.get(dev).copied().unwrap_or(*dev);
        for number in
            [NumericField::Btime, NumericField::Project, NumericField::Acl].map(|number| number as usize)
        {
            numbers[number] = self.numbers[number].get(row).unwrap_or(NEVER);
        }
        let attributes = self.attributes.get(row).and_then(Attributes::from_text);
        numbers[NumericField::Attributes as usize] =
            attributes.map_or(NEVER, |attributes| attributes.bits().into());
        let link = self.links.as_ref().and_then(|[text, raw]| raw.get(row).or(text.get(row)));
        InodeInfo {
            letter: self.letters.as_ref().map_or(Some(b'd'), letter).unwrap_or(b'U'),
            link: link.unwrap_or_default().to_vec(),
            known,
            numbers,
            xattrs: self.xattrs.get(row).map(<[u8]>::to_vec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(ino: i64, btime: i64, mtime: i64) -> InodeInfo {
        let mut numbers = [0; NUMBERS];
        numbers[NumericField::Ino as usize] = ino;
        numbers[NumericField::Btime as usize] = btime;
        numbers[NumericField::Mtime as usize] = mtime;
        InodeInfo {
            letter: b'f',
            link: b"to".to_vec(),
            known: true,
            numbers,
            xattrs: Some(b"user.a".to_vec()),
        }
    }

    #[test]
    fn an_inode_number_that_is_used_again_is_another_file() {
        let same = |one: &InodeInfo, two: &InodeInfo| (one.has_inode_of(two), one.is_same_file(two));
        assert_eq!(same(&info(7, 1, 5), &info(7, 1, 6)), (true, true));
        assert_eq!(same(&info(7, 1, 5), &info(7, 2, 5)), (false, false));
        assert_eq!(same(&info(7, NEVER, 5), &info(7, 2, 5)), (true, true));
        assert_eq!(same(&info(7, NEVER, 5), &info(7, NEVER, 6)), (true, false));
        assert_eq!(same(&info(7, 1, 5), &info(8, 1, 5)), (false, false));
        let unknown = InodeInfo { known: false, ..info(7, 1, 5) };
        assert_eq!(same(&unknown, &unknown), (false, false));
    }

    #[test]
    fn facts_come_back_from_bytes() {
        let info = info(i64::MIN + 1, NEVER, -1);
        let mut bytes = Vec::new();
        info.put(&mut bytes);
        assert_eq!(InodeInfo::get(&mut &bytes[..]), Some(info));
        assert_eq!(InodeInfo::get(&mut &bytes[1..]), None);
    }
}
