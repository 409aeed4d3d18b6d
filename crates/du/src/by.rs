//! Totals of groups of files: by extension, owner, age, type. Owns what a group is and how many there may be at
//! once; names of owners and how groups look are the caller's.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use fathom_walk::{FileType, Stamp};

use crate::options::Measure;
use crate::top::value;
use crate::totals::Totals;

/// Groups kept apart. Anybody can make up any number of extensions; what comes after so many is one group.
const GROUPS_MAX: usize = 65_536;
const DAY_SECONDS: i64 = 86_400;

/// What the files of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key<'a> {
    /// What follows the last dot of their names.
    Extension(&'a [u8]),
    /// Anything else.
    Fixed(Fixed),
}

/// What the files of a group have in common, if it is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fixed {
    /// Their names have no extension.
    NoExtension,
    /// They are directories, whose names are no matter of extensions.
    Directory,
    /// Their owner or group.
    Id(u32),
    /// When they were modified.
    Age(Age),
    /// Their type, as a place in [`TYPES`].
    Type(usize),
    /// There were too many groups for theirs to be one.
    Other,
}

/// All types, in the order in which equal groups are shown.
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

/// How long ago something was, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Age {
    /// It is still to come.
    Future,
    /// Less than a day of 24 hours.
    Day,
    /// Less than 7 days.
    Week,
    /// Less than 30 days.
    Month,
    /// Less than 365 days.
    Year,
    /// Less than three times 365 days.
    ThreeYears,
    /// More than that.
    Older,
}

impl Age {
    /// The age at `now` of what happened at `then`.
    #[must_use]
    pub fn of(then: Stamp, now: Stamp) -> Self {
        if then > now {
            return Self::Future;
        }
        // A part of a second that is missing to the next step is a step missed.
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

impl Fixed {
    /// The group of a type.
    #[must_use]
    pub fn of_type(file_type: FileType) -> Self {
        Self::Type(TYPES.iter().position(|other| *other == file_type).unwrap_or(TYPES.len() - 1))
    }
}

impl<'a> Key<'a> {
    /// The group of a file by its extension: what follows the last dot of the name, if something does and something
    /// else comes before it.
    #[must_use]
    pub fn of_extension(path: &'a [u8]) -> Self {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        match name.iter().rposition(|byte| *byte == b'.') {
            Some(dot) if dot > 0 && dot + 1 < name.len() => Key::Extension(&name[dot + 1..]),
            _ => Key::Fixed(Fixed::NoExtension),
        }
    }
}

/// Totals by group.
#[derive(Debug, Default)]
pub struct Groups {
    extensions: HashMap<Vec<u8>, Totals>,
    fixed: HashMap<Fixed, Totals>,
}

impl Groups {
    /// Counts `totals` to a group.
    pub fn add(&mut self, key: Key<'_>, totals: &Totals) {
        let has_room = self.extensions.len() + self.fixed.len() < GROUPS_MAX;
        let counted = match key {
            Key::Extension(extension) => add(&mut self.extensions, extension, totals, has_room),
            Key::Fixed(fixed) => add(&mut self.fixed, &fixed, totals, has_room),
        };
        if !counted {
            add(&mut self.fixed, &Fixed::Other, totals, true);
        }
    }

    /// The groups, the largest first, equal ones in the order of their keys.
    #[must_use]
    pub fn sorted(&self, measure: Measure) -> Vec<(Key<'_>, Totals)> {
        let extensions = self.extensions.iter().map(|(key, totals)| (Key::Extension(key), *totals));
        let fixed = self.fixed.iter().map(|(key, totals)| (Key::Fixed(*key), *totals));
        let mut groups: Vec<_> = extensions.chain(fixed).collect();
        groups.sort_unstable_by(|(left_key, left), (right_key, right)| {
            value(measure, right).cmp(&value(measure, left)).then_with(|| left_key.cmp(right_key))
        });
        groups
    }
}

/// Whether there was a group for it or room for a new one.
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
        let extension = |path: &'static str| match Key::of_extension(path.as_bytes()) {
            Key::Extension(extension) => std::str::from_utf8(extension).unwrap(),
            Key::Fixed(_) => "none",
        };
        assert_eq!(["a.RS", "d/a.tar.gz", "d.d/..x", "a..b"].map(extension), ["RS", "gz", "x", "b"]);
        assert_eq!(["a", "d.d/a", "d/.bashrc", "a.", "a...", "", "."].map(extension), ["none"; 7]);
    }

    #[test]
    fn ages_change_at_whole_days_to_the_nanosecond() {
        let now = Stamp { sec: 2_000_000_000, nsec: 5 };
        let age = |days: i64, nsec| Age::of(Stamp { sec: now.sec - days * DAY_SECONDS, nsec }, now);
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
        assert_eq!((age(0, 5), Age::of(Stamp { sec: i64::MIN, nsec: 0 }, now)), (Age::Day, Age::Older));
    }

    #[test]
    fn groups_add_up_and_come_the_largest_first() {
        let mut groups = Groups::default();
        let (user, none) = (Key::Fixed(Fixed::Id(7)), Key::Fixed(Fixed::NoExtension));
        for (key, bytes) in
            [(Key::Extension(b"b"), 3), (none, 5), (Key::Extension(b"a"), 5), (user, 1), (user, 8)]
        {
            groups.add(key, &totals(bytes, 1));
        }
        let sorted = groups.sorted(Measure::Usage);
        let keys: Vec<_> = sorted.iter().map(|(key, totals)| (*key, totals.bytes)).collect();
        assert_eq!(keys, [(user, 9), (Key::Extension(b"a"), 5), (none, 5), (Key::Extension(b"b"), 3)]);
        assert_eq!(groups.sorted(Measure::Inodes)[0], (user, totals(9, 2)));
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_together() {
        let mut groups = Groups::default();
        for number in 0..GROUPS_MAX + 2 {
            groups.add(Key::Extension(number.to_string().as_bytes()), &totals(1, 1));
        }
        groups.add(Key::Extension(b"0"), &totals(1, 1));
        let sorted = groups.sorted(Measure::Usage);
        assert_eq!(sorted.len(), GROUPS_MAX + 1);
        let zero = (Key::Extension(b"0".as_slice()), totals(2, 2));
        assert_eq!(sorted[..2], [zero, (Key::Fixed(Fixed::Other), totals(2, 2))]);
    }

    #[test]
    fn every_type_has_a_group_of_its_own() {
        let groups: std::collections::BTreeSet<_> = TYPES.into_iter().map(Fixed::of_type).collect();
        assert_eq!(groups.len(), TYPES.len());
    }
}
