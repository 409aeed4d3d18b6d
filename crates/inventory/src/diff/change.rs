//! A change: what became of an entry, and which of its facts are others now.

use super::facts::{Facts, Number};
use super::sorter::{Record, get_bytes, get_number, put_bytes, put_number};

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// It is no more.
    Removed,
    /// It is new.
    Created,
    /// It is where it was, and something about it is another.
    Modified,
    /// It is elsewhere.
    Renamed,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Removed, Self::Created, Self::Modified, Self::Renamed];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Renamed => "renamed",
        }
    }
}

/// What may be another about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Its type.
    Type,
    /// Its size.
    Size,
    /// When it was last modified.
    Mtime,
    /// Its permission bits.
    Mode,
    /// Its owner.
    Uid,
    /// Its owning group.
    Gid,
    /// Its attributes, if both inventories have them.
    Attributes,
    /// Its project, if both inventories have it.
    Project,
    /// The names of its extended attributes, if both inventories have them.
    Xattrs,
    /// Whether it has an access control list, if both inventories have that.
    Acl,
    /// What the symbolic link holds.
    Target,
    /// When its inode was last changed: shown where nothing else is.
    Ctime,
}

impl Field {
    /// The word for it, which is that of its column in an inventory.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Size => "size",
            Self::Mtime => "mtime",
            Self::Mode => "mode",
            Self::Uid => "uid",
            Self::Gid => "gid",
            Self::Attributes => "attributes",
            Self::Project => "project",
            Self::Xattrs => "xattrs",
            Self::Acl => "acl",
            Self::Target => "link_target",
            Self::Ctime => "ctime",
        }
    }
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Where the entry is, or if it is no more, was.
    pub path: Vec<u8>,
    /// What became of it.
    pub verb: Verb,
    /// Where it was, if it was renamed.
    pub from: Option<Vec<u8>>,
    /// What was known of it.
    pub old: Option<Facts>,
    /// What is known of it now.
    pub new: Option<Facts>,
}

impl Change {
    /// What is another about it; nothing for an entry that is new or no more.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        let (Some(old), Some(new)) = (&self.old, &self.new) else { return Vec::new() };
        let mut fields = fields(old, new);
        if fields.is_empty() && self.verb == Verb::Modified {
            fields.push(Field::Ctime);
        }
        fields
    }
}

/// What is another. Of a directory only what was done to itself: all else is the doing of what is in it.
pub(super) fn fields(old: &Facts, new: &Facts) -> Vec<Field> {
    let mut fields = Vec::new();
    if old.letter != new.letter && old.letter != b'U' && new.letter != b'U' {
        fields.push(Field::Type);
    }
    if !old.is_known() || !new.is_known() {
        return fields;
    }
    let is_dir = new.letter == b'd';
    let differ = |numbers: &[Number]| !old.agrees(new, numbers);
    let mode = |facts: &Facts| facts.number(Number::Mode).map(|mode| mode & 0o7777);
    let others = [
        (Field::Size, !is_dir && differ(&[Number::Size])),
        (Field::Mtime, !is_dir && differ(&[Number::Mtime, Number::MtimeNs])),
        (Field::Mode, mode(old) != mode(new)),
        (Field::Uid, differ(&[Number::Uid])),
        (Field::Gid, differ(&[Number::Gid])),
        (Field::Attributes, old.differs_in(new, Number::Attributes)),
        (Field::Project, old.differs_in(new, Number::Project)),
        (Field::Xattrs, old.has_other_xattrs(new)),
        (Field::Acl, old.differs_in(new, Number::Acl)),
        (Field::Target, old.link != new.link),
    ];
    fields.extend(others.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field));
    fields
}

/// Whether the inode was changed in a way that shows nowhere else: another name, or one less, is no such way.
pub(super) fn is_touched(old: &Facts, new: &Facts) -> bool {
    let is_file = new.letter != b'd' && old.has_inode_of(new);
    is_file && old.agrees(new, &[Number::Nlink]) && !old.agrees(new, &[Number::Ctime, Number::CtimeNs])
}

fn put_some<T>(value: Option<&T>, out: &mut Vec<u8>, put: impl FnOnce(&T, &mut Vec<u8>)) {
    out.push(value.is_some().into());
    if let Some(value) = value {
        put(value, out);
    }
}

fn get_some<T>(input: &mut &[u8], get: impl FnOnce(&mut &[u8]) -> Option<T>) -> Option<Option<T>> {
    if *input.split_off_first()? == 0 { Some(None) } else { get(input).map(Some) }
}

impl Record for Change {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(&self.path, out);
        put_number(self.verb as i64, out);
        put_some(self.from.as_ref(), out, |from, out| put_bytes(from, out));
        put_some(self.old.as_ref(), out, Facts::put);
        put_some(self.new.as_ref(), out, Facts::put);
    }

    fn get(input: &mut &[u8]) -> Option<Self> {
        let path = get_bytes(input)?;
        let verb = *Verb::ALL.get(usize::try_from(get_number(input)?).ok()?)?;
        let from = get_some(input, get_bytes)?;
        Some(Self { path, verb, from, old: get_some(input, Facts::get)?, new: get_some(input, Facts::get)? })
    }

    fn heap_bytes(&self) -> usize {
        let facts = [&self.old, &self.new].into_iter().flatten().map(Record::heap_bytes).sum::<usize>();
        self.path.capacity() + self.from.as_ref().map_or(0, Vec::capacity) + facts
    }
}
