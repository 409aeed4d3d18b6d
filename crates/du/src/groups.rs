//! Totals of groups of files: by extension, owner, age or type. Owns the grouping and the limit on
//! the number of groups. The caller resolves names of owners and formats the groups.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use fathom_walk::{FileTime, FileType};

use crate::options::Measure;
use crate::top::value;
use crate::totals::Totals;

/// The maximum number of groups. Users can create any number of extensions, so further groups
/// are counted together.
const GROUPS_MAX: usize = 65_536;
const DAY_SECONDS: i64 = 86_400;

/// The common property of the files of a group. The set is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupKey<'a> {
    /// The extension of their names: the bytes behind the last dot.
    Extension(&'a [u8]),
    /// Any other property.
    Fixed(FixedKey),
}

/// A common property that is not text. A new variant is a breaking change, because programs label
/// each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FixedKey {
    /// The names have no extension.
    NoExtension,
    /// Directories, whose names are not split into extensions.
    Directory,
    /// The owner or group id.
    Id(u32),
    /// The time since the last modification.
    Age(Age),
    /// The file type, as an index into [`TYPES`].
    Type(usize),
    /// The remainder: files whose group exceeds the maximum number of groups.
    Other,
}

/// All file types, in the order in which groups of equal size are printed.
pub const TYPES: [FileType; 8] = [
    FileType::Regular,
    FileType::Directory,
    FileType::Symlink,
    FileType::Fifo,
    FileType::Socket,
    FileType::Block,
    FileType::Char,
    FileType::Unknown,
];

/// The time since an event, in steps. A new step is a breaking change, because programs label each
/// one.
///
/// ```
/// use fathom_du::groups::Age;
/// use fathom_walk::FileTime;
///
/// let at = |sec| FileTime { sec, nsec: 0 };
/// assert_eq!(Age::of(at(0), at(86_399)), Age::Day);
/// assert_eq!(Age::of(at(1), at(0)), Age::Future);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Age {
    /// The event is in the future.
    Future,
    /// Less than 24 hours.
    Day,
    /// Less than 7 days.
    Week,
    /// Less than 30 days.
    Month,
    /// Less than 365 days.
    Year,
    /// Less than three times 365 days.
    ThreeYears,
    /// 1095 days or more.
    Older,
}

impl Age {
    /// Returns the age at `now` of an event at `then`.
    #[must_use]
    pub fn of(then: FileTime, now: FileTime) -> Self {
        if then > now {
            return Self::Future;
        }
        // Round down: an incomplete second does not reach the next step.
        let seconds = now.sec.saturating_sub(then.sec).saturating_sub(i64::from(now.nsec < then.nsec));
        match seconds / DAY_SECONDS {
            0 => Self::Day,
            1..7 => Self::Week,
            7..30 => Self::Month,
            30..365 => Self::Year,
            365..1095 => Self::ThreeYears,
            _ => Self::Older,
        }
    }
}

impl FixedKey {
    /// Returns the key of a file type.
    #[must_use]
    pub fn of_type(file_type: FileType) -> Self {
        Self::Type(TYPES.iter().position(|other| *other == file_type).unwrap_or(TYPES.len() - 1))
    }
}

impl<'a> GroupKey<'a> {
    /// Returns the key of a file by its extension: the bytes behind the last dot of the name, if
    /// there are any, and if the dot is not the first character.
    #[must_use]
    pub fn of_extension(path: &'a [u8]) -> Self {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        match name.iter().rposition(|byte| *byte == b'.') {
            Some(dot) if dot > 0 && dot + 1 < name.len() => GroupKey::Extension(&name[dot + 1..]),
            _ => GroupKey::Fixed(FixedKey::NoExtension),
        }
    }
}

/// Totals by group.
///
/// ```
/// use fathom_du::groups::{GroupKey, Groups};
/// use fathom_du::options::Measure;
/// use fathom_du::totals::Totals;
/// use fathom_walk::FileTime;
///
/// let mut groups = Groups::default();
/// for (path, bytes) in [(&b"a.rs"[..], 10), (b"b.rs", 20), (b"c.md", 5)] {
///     groups.add(GroupKey::of_extension(path), &Totals::one(bytes, FileTime::default()));
/// }
/// let sorted = groups.sorted(Measure::Usage);
/// assert_eq!((sorted[0].0, sorted[0].1.bytes), (GroupKey::Extension(b"rs"), 30));
/// ```
#[derive(Debug, Default)]
pub struct Groups {
    extensions: HashMap<Vec<u8>, Totals>,
    fixed: HashMap<FixedKey, Totals>,
}

impl Groups {
    /// Adds `totals` to a group.
    pub fn add(&mut self, key: GroupKey<'_>, totals: &Totals) {
        let has_room = self.extensions.len() + self.fixed.len() < GROUPS_MAX;
        let counted = match key {
            GroupKey::Extension(extension) => add(&mut self.extensions, extension, totals, has_room),
            GroupKey::Fixed(fixed) => add(&mut self.fixed, &fixed, totals, has_room),
        };
        if !counted {
            add(&mut self.fixed, &FixedKey::Other, totals, true);
        }
    }

    /// Returns the groups in descending order of `measure`; equal groups in the order of their
    /// keys.
    #[must_use]
    pub fn sorted(&self, measure: Measure) -> Vec<(GroupKey<'_>, Totals)> {
        let extensions = self.extensions.iter().map(|(key, totals)| (GroupKey::Extension(key), *totals));
        let fixed = self.fixed.iter().map(|(key, totals)| (GroupKey::Fixed(*key), *totals));
        let mut groups: Vec<_> = extensions.chain(fixed).collect();
        groups.sort_unstable_by(|(left_key, left), (right_key, right)| {
            value(measure, right).cmp(&value(measure, left)).then_with(|| left_key.cmp(right_key))
        });
        groups
    }
}

/// Adds `totals` to the group `key`. Creates the group if `has_room`. Returns whether `totals` was
/// added.
fn add<K, Q>(groups: &mut HashMap<K, Totals>, key: &Q, totals: &Totals, has_room: bool) -> bool
where
    K: Borrow<Q> + Hash + Eq,
    Q: ToOwned<Owned = K> + Hash + Eq + ?Sized,
{
    if let Some(sum) = groups.get_mut(key) {
        sum.add(totals);
    } else if has_room {
        groups.insert(key.to_owned(), *totals);
    } else {
        return false;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::tests::totals;

    #[test]
    fn an_extension_follows_the_last_dot_and_is_not_the_whole_name() {
        let extension = |path: &'static str| match GroupKey::of_extension(path.as_bytes()) {
            GroupKey::Extension(extension) => std::str::from_utf8(extension).unwrap(),
            GroupKey::Fixed(_) => "none",
        };
        assert_eq!(["a.RS", "d/a.tar.gz", "d.d/..x", "a..b"].map(extension), ["RS", "gz", "x", "b"]);
        assert_eq!(["a", "d.d/a", "d/.bashrc", "a.", "a...", "", "."].map(extension), ["none"; 7]);
    }

    #[test]
    fn ages_change_at_whole_days_to_the_nanosecond() {
        let now = FileTime { sec: 2_000_000_000, nsec: 5 };
        let age = |days: i64, nsec| Age::of(FileTime { sec: now.sec - days * DAY_SECONDS, nsec }, now);
        assert_eq!([age(0, 6), age(-1, 5)], [Age::Future; 2]);
        for (days, before, from) in [
            (1, Age::Day, Age::Week),
            (7, Age::Week, Age::Month),
            (30, Age::Month, Age::Year),
            (365, Age::Year, Age::ThreeYears),
            (1095, Age::ThreeYears, Age::Older),
        ] {
            assert_eq!((age(days, 6), age(days, 5)), (before, from), "{days}");
        }
        assert_eq!((age(0, 5), Age::of(FileTime { sec: i64::MIN, nsec: 0 }, now)), (Age::Day, Age::Older));
    }

    #[test]
    fn groups_add_up_and_come_the_largest_first() {
        let mut groups = Groups::default();
        let (user, none) = (GroupKey::Fixed(FixedKey::Id(7)), GroupKey::Fixed(FixedKey::NoExtension));
        for (key, bytes) in
            [(GroupKey::Extension(b"b"), 3), (none, 5), (GroupKey::Extension(b"a"), 5), (user, 1), (user, 8)]
        {
            groups.add(key, &totals(bytes, 1));
        }
        let sorted = groups.sorted(Measure::Usage);
        let keys: Vec<_> = sorted.iter().map(|(key, totals)| (*key, totals.bytes)).collect();
        assert_eq!(
            keys,
            [(user, 9), (GroupKey::Extension(b"a"), 5), (none, 5), (GroupKey::Extension(b"b"), 3)]
        );
        assert_eq!(groups.sorted(Measure::Inodes)[0], (user, totals(9, 2)));
    }

    #[test]
    fn groups_beyond_the_limit_are_counted_together() {
        let mut groups = Groups::default();
        for number in 0..GROUPS_MAX + 2 {
            groups.add(GroupKey::Extension(number.to_string().as_bytes()), &totals(1, 1));
        }
        groups.add(GroupKey::Extension(b"0"), &totals(1, 1));
        let sorted = groups.sorted(Measure::Usage);
        assert_eq!(sorted.len(), GROUPS_MAX + 1);
        let zero = (GroupKey::Extension(b"0".as_slice()), totals(2, 2));
        assert_eq!(sorted[..2], [zero, (GroupKey::Fixed(FixedKey::Other), totals(2, 2))]);
    }

    #[test]
    fn every_type_has_a_group_of_its_own() {
        let groups: std::collections::BTreeSet<_> = TYPES.into_iter().map(FixedKey::of_type).collect();
        assert_eq!(groups.len(), TYPES.len());
    }
}
