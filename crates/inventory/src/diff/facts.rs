//! What an inventory has of an inode, in a form that can be compared, sorted and kept in a file; and where it is.

use std::collections::HashMap;

use fathom_walk::Attributes;
use parquet::errors::Result;

use super::sorter::{Record, get_bytes, get_number, put_bytes, put_number};
use crate::store::{Group, Numbers, Texts};

/// No value, in a column that may lack one of an inode of which others are known.
const NEVER: i64 = i64::MIN;

/// The numbers that are known of an inode, as the columns of an inventory have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Device: the old inventory's number for it.
    Dev,
    /// Inode.
    Ino,
    /// Type and permission bits.
    Mode,
    /// Owner.
    Uid,
    /// Owning group.
    Gid,
    /// Names.
    Nlink,
    /// Bytes.
    Size,
    /// Allocated blocks of 512 bytes.
    Blocks,
    /// Last modification, in microseconds since 1970.
    Mtime,
    /// Nanoseconds beyond that.
    MtimeNs,
    /// Last change of the inode, in microseconds since 1970.
    Ctime,
    /// Nanoseconds beyond that.
    CtimeNs,
    /// When it was made, in microseconds since 1970.
    Btime,
    /// Project, by which quotas are counted.
    Project,
    /// 1 where there is an access control list, 0 where there is none.
    Acl,
    /// Attributes, as [`Attributes::bits`] has them.
    Attributes,
}

/// Numbers of an inode.
const NUMBERS: usize = COLUMNS.len() + 1;

/// The columns of numbers, in the order of [`Number`].
const COLUMNS: [&str; 15] = [
    "dev", "ino", "mode", "uid", "gid", "nlink", "size", "blocks", "mtime", "mtime_ns", "ctime", "ctime_ns",
    "btime", "project", "acl",
];

/// What an inventory has of an inode.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Facts {
    /// The letter of its type, `d` for a directory.
    pub letter: u8,
    /// What a symbolic link holds.
    pub link: Vec<u8>,
    known: bool,
    numbers: [i64; NUMBERS],
    /// The names of extended attributes, as an inventory has them; none where they are not known.
    pub xattrs: Option<Vec<u8>>,
}

impl Facts {
    /// A number; none where nothing is known of the inode, or not this.
    #[must_use]
    pub fn number(&self, number: Number) -> Option<i64> {
        let found = self.numbers[number as usize];
        let is_there = (number as usize) < Number::Btime as usize || found != NEVER;
        (self.known && is_there).then_some(found)
    }

    /// Its attributes; none where they are not known.
    #[must_use]
    pub fn attributes(&self) -> Option<Attributes> {
        let bits = u8::try_from(self.number(Number::Attributes)?).ok()?;
        Attributes::from_bits(bits)
    }

    /// Whether anything is known but the type.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// Whether all of these numbers are the same.
    pub(super) fn agrees(&self, other: &Self, numbers: &[Number]) -> bool {
        numbers.iter().all(|number| self.numbers[*number as usize] == other.numbers[*number as usize])
    }

    /// Whether both have this number, and it is another one.
    pub(super) fn differs_in(&self, other: &Self, number: Number) -> bool {
        matches!((self.number(number), other.number(number)), (Some(one), Some(two)) if one != two)
    }

    /// Removes the values of these columns, of those that an inventory may lack.
    pub(super) fn forget(&mut self, columns: &[&str]) {
        for column in columns {
            match *column {
                "attributes" => self.numbers[Number::Attributes as usize] = NEVER,
                "project" => self.numbers[Number::Project as usize] = NEVER,
                "acl" => self.numbers[Number::Acl as usize] = NEVER,
                _ => self.xattrs = None,
            }
        }
    }

    /// Appends what is compared of a directory.
    pub(super) fn put_own(&self, out: &mut Vec<u8>) {
        use Number::{Acl, Attributes, Gid, Mode, Project, Uid};
        for number in [Mode, Uid, Gid, Attributes, Project, Acl] {
            put_number(self.numbers[number as usize], out);
        }
        put_bytes(self.xattrs.as_deref().unwrap_or_default(), out);
    }

    /// Whether both have names of extended attributes, and they are others.
    pub(super) fn has_other_xattrs(&self, other: &Self) -> bool {
        matches!((&self.xattrs, &other.xattrs), (Some(one), Some(two)) if one != two)
    }

    /// Whether both have the same inode number.
    pub(super) fn has_inode_of(&self, other: &Self) -> bool {
        self.known && other.known && self.agrees(other, &[Number::Dev, Number::Ino]) && self.bore(other)
    }

    /// Not at two times.
    fn bore(&self, other: &Self) -> bool {
        match (self.number(Number::Btime), other.number(Number::Btime)) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        }
    }

    /// Whether both are of one file, wherever its names are. Numbers of inodes are used again: the time of birth has to be the
    /// same, or where it is not known, what changes when a file does.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        let is_told_by_birth = self.number(Number::Btime).is_some() && other.number(Number::Btime).is_some();
        self.has_inode_of(other)
            && self.letter == other.letter
            && (is_told_by_birth || self.agrees(other, &[Number::Mtime, Number::MtimeNs, Number::Size]))
    }
}

impl Record for Facts {
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

/// Devices by their numbers in the new inventory: those that the old one has another number for.
pub(super) type Devices = HashMap<i64, i64>;

/// The columns of a row group that [`Facts`] are made of.
pub(super) struct Rows {
    letters: Option<Texts>,
    numbers: Vec<Numbers>,
    attributes: Texts,
    xattrs: Texts,
    links: Option<[Texts; 2]>,
}

impl Rows {
    /// Of the table of directories.
    pub(super) fn dirs(group: &Group<'_>) -> Result<Self> {
        let numbers = COLUMNS.iter().map(|name| group.numbers(name)).collect::<Result<_>>()?;
        let (attributes, xattrs) = (group.texts("attributes")?, group.texts("xattrs")?);
        Ok(Self { letters: None, numbers, attributes, xattrs, links: None })
    }

    /// Of the table of all else.
    pub(super) fn entries(group: &Group<'_>) -> Result<Self> {
        let links = [group.texts("link_target")?, group.texts("link_raw")?];
        Ok(Self { letters: Some(group.texts("type")?), links: Some(links), ..Self::dirs(group)? })
    }

    /// Of a row.
    pub(super) fn facts(&self, row: usize, devices: &Devices) -> Facts {
        let letter = |letters: &Texts| letters.get(row).and_then(|letter| letter.first()).copied();
        let mut numbers = [0; NUMBERS];
        for (number, column) in numbers.iter_mut().zip(&self.numbers) {
            *number = column.or_zero()[row];
        }
        let dev = &mut numbers[Number::Dev as usize];
        *dev = devices.get(dev).copied().unwrap_or(*dev);
        for number in [Number::Btime, Number::Project, Number::Acl].map(|number| number as usize) {
            numbers[number] = self.numbers[number].get(row).unwrap_or(NEVER);
        }
        let attributes = self.attributes.get(row).and_then(Attributes::from_text);
        numbers[Number::Attributes as usize] =
            attributes.map_or(NEVER, |attributes| attributes.bits().into());
        let link = self.links.as_ref().and_then(|[text, raw]| raw.get(row).or(text.get(row)));
        Facts {
            letter: self.letters.as_ref().map_or(Some(b'd'), letter).unwrap_or(b'U'),
            link: link.unwrap_or_default().to_vec(),
            known: self.numbers[Number::Ino as usize].get(row).is_some(),
            numbers,
            xattrs: self.xattrs.get(row).map(<[u8]>::to_vec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(ino: i64, btime: i64, mtime: i64) -> Facts {
        let mut numbers = [0; NUMBERS];
        numbers[Number::Ino as usize] = ino;
        numbers[Number::Btime as usize] = btime;
        numbers[Number::Mtime as usize] = mtime;
        Facts { letter: b'f', link: b"to".to_vec(), known: true, numbers, xattrs: Some(b"user.a".to_vec()) }
    }

    #[test]
    fn an_inode_number_that_is_used_again_is_another_file() {
        let same = |one: &Facts, two: &Facts| (one.has_inode_of(two), one.is_same_file(two));
        assert_eq!(same(&facts(7, 1, 5), &facts(7, 1, 6)), (true, true));
        assert_eq!(same(&facts(7, 1, 5), &facts(7, 2, 5)), (false, false));
        assert_eq!(same(&facts(7, NEVER, 5), &facts(7, 2, 5)), (true, true));
        assert_eq!(same(&facts(7, NEVER, 5), &facts(7, NEVER, 6)), (true, false));
        assert_eq!(same(&facts(7, 1, 5), &facts(8, 1, 5)), (false, false));
        let unknown = Facts { known: false, ..facts(7, 1, 5) };
        assert_eq!(same(&unknown, &unknown), (false, false));
    }

    #[test]
    fn facts_come_back_from_bytes() {
        let facts = facts(i64::MIN + 1, NEVER, -1);
        let mut bytes = Vec::new();
        facts.put(&mut bytes);
        assert_eq!(Facts::get(&mut &bytes[..]), Some(facts));
        assert_eq!(Facts::get(&mut &bytes[1..]), None);
    }
}
