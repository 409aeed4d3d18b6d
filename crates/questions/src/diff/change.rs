//! One change between two inventories: its kind, the paths, and the fields that differ.

use super::inode_info::{InodeInfo, NumericField};
use super::sorter::{SortRecord, get_bytes, get_number, put_bytes, put_number};

/// The kind of a change. The set is closed: an entry is in one inventory, or in both under one
/// path or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// Only the old inventory has the entry.
    Removed,
    /// Only the new inventory has the entry.
    Created,
    /// The entry has the same path in both inventories, and at least one field differs.
    Modified,
    /// The entry has another path in the new inventory.
    Renamed,
}

impl ChangeKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::Removed, Self::Created, Self::Modified, Self::Renamed];

    /// Returns the lower-case word for the kind, as the column `change` has it.
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

/// A field of an entry that a comparison may report as changed. A new field is a breaking
/// change, so that no program leaves its values out without notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedField {
    /// The file type.
    Type,
    /// The size in bytes.
    Size,
    /// The time of the last modification.
    Mtime,
    /// The permission bits.
    Mode,
    /// The user ID of the owner.
    Uid,
    /// The ID of the owning group.
    Gid,
    /// The inode attributes.
    Attributes,
    /// The quota project ID, if both inventories have the column.
    Project,
    /// The names of extended attributes, if both inventories have the column.
    Xattrs,
    /// Whether the inode has an access control list, if both inventories have the column.
    Acl,
    /// The target of a symbolic link.
    Target,
    /// The time of the last inode change. It is reported only where no other field differs.
    Ctime,
}

impl ChangedField {
    /// Returns the name of the field, which is the name of its column in an inventory.
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

/// A change of one entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The path of the entry; of a removed entry, its path in the old inventory.
    pub path: Vec<u8>,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The path in the old inventory, if the entry was renamed.
    pub from: Option<Vec<u8>>,
    /// The metadata in the old inventory.
    pub old: Option<InodeInfo>,
    /// The metadata in the new inventory.
    pub new: Option<InodeInfo>,
}

impl Change {
    /// Returns the fields that differ. The list is empty for a created or removed entry.
    #[must_use]
    pub fn fields(&self) -> Vec<ChangedField> {
        let (Some(old), Some(new)) = (&self.old, &self.new) else { return Vec::new() };
        let mut fields = fields(old, new);
        if fields.is_empty() && self.kind == ChangeKind::Modified {
            fields.push(ChangedField::Ctime);
        }
        fields
    }
}

/// Returns the fields that differ. For a directory: only its own attributes; size and time changes
/// caused by its entries are not reported.
pub(super) fn fields(old: &InodeInfo, new: &InodeInfo) -> Vec<ChangedField> {
    let mut fields = Vec::new();
    if old.letter != new.letter && old.letter != b'U' && new.letter != b'U' {
        fields.push(ChangedField::Type);
    }
    if !old.is_known() || !new.is_known() {
        return fields;
    }
    let is_dir = new.letter == b'd';
    let differ = |numbers: &[NumericField]| numbers.iter().any(|number| old.differs_in(new, *number));
    let modes = old.permissions().zip(new.permissions());
    let others = [
        (ChangedField::Size, !is_dir && differ(&[NumericField::Size])),
        (ChangedField::Mtime, !is_dir && differ(&[NumericField::Mtime, NumericField::MtimeNs])),
        (ChangedField::Mode, modes.is_some_and(|(old, new)| old != new)),
        (ChangedField::Uid, differ(&[NumericField::Uid])),
        (ChangedField::Gid, differ(&[NumericField::Gid])),
        (ChangedField::Attributes, old.differs_in(new, NumericField::Attributes)),
        (ChangedField::Project, old.differs_in(new, NumericField::Project)),
        (ChangedField::Xattrs, old.xattrs_differ(new)),
        (ChangedField::Acl, old.differs_in(new, NumericField::Acl)),
        (ChangedField::Target, old.knows_target() && new.knows_target() && old.link != new.link),
    ];
    fields.extend(others.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field));
    fields
}

/// Returns whether the ctime alone shows that the inode was changed. A new or removed name moves
/// the ctime too, so the link count has to be the same.
pub(super) fn has_new_ctime(old: &InodeInfo, new: &InodeInfo) -> bool {
    let is_file = new.letter != b'd' && old.has_inode_of(new);
    is_file
        && old.agrees(new, &[NumericField::Nlink])
        && (old.differs_in(new, NumericField::Ctime) || old.differs_in(new, NumericField::CtimeNs))
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

impl SortRecord for Change {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(&self.path, out);
        put_number(self.kind as i64, out);
        put_some(self.from.as_ref(), out, |from, out| put_bytes(from, out));
        put_some(self.old.as_ref(), out, InodeInfo::put);
        put_some(self.new.as_ref(), out, InodeInfo::put);
    }

    fn get(input: &mut &[u8]) -> Option<Self> {
        let path = get_bytes(input)?;
        let kind = *ChangeKind::ALL.get(usize::try_from(get_number(input)?).ok()?)?;
        let from = get_some(input, get_bytes)?;
        Some(Self {
            path,
            kind,
            from,
            old: get_some(input, InodeInfo::get)?,
            new: get_some(input, InodeInfo::get)?,
        })
    }

    fn heap_bytes(&self) -> usize {
        let info = [&self.old, &self.new].into_iter().flatten().map(SortRecord::heap_bytes).sum::<usize>();
        self.path.capacity() + self.from.as_ref().map_or(0, Vec::capacity) + info
    }
}
