//! Totals of entries that have something in common. Each inode is in one group, so groups add up to what there is.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use super::below::Span;
use super::files::counted;
use super::links::Links;
use super::scope::{Scope, is_entered};
use super::{AGES, By, Key, Report, Row, SIZES, Sum};
use crate::store::{Error, Group, Inventory, Numbers, Table, Texts};

/// Groups kept apart. Anybody can make up any number of extensions; what comes after so many is one group.
const GROUPS_MAX: usize = 65_536;
const DAY_MICROS: i64 = 86_400_000_000;

/// Totals by a property.
pub(super) fn report(inventory: &Inventory, span: Span, by: By, now: i64) -> Result<Report, Error> {
    let mut groups = Groups::default();
    let scope = Scope::read(inventory, span)?;
    let mut firsts = Links::read(inventory, &scope)?.within(&scope).firsts();
    inventory.each(Table::Entries, |group| {
        let property = Property::of_entries(by, group, now)?;
        let rows = counted(group, &scope, &mut firsts)?;
        rows.iter().for_each(|(row, sum)| groups.add(property.key(*row), sum));
        Ok(())
    })?;
    inventory.each(Table::Dirs, |group| {
        let property = Property::of_dirs(by, group, now)?;
        let [dir_id, blocks] = [group.numbers("dir_id")?, group.numbers("blocks")?];
        let states = group.texts("state")?;
        let counts = |row: &usize| scope.has(dir_id.or_zero()[*row]) && is_entered(&states, *row);
        for row in (0..group.rows()).filter(counts) {
            groups.add(property.key(row), &Sum::new(1, blocks.or_zero()[row], 0));
        }
        Ok(())
    })?;
    Ok(groups.report(matches!(by, By::Age | By::Size)))
}

/// The column that decides on the group of a row.
enum Property {
    Id(Numbers),
    Extension(Texts),
    Modified(Numbers, i64),
    Size(Numbers),
    Type(Texts),
    /// The same for all.
    All(Key),
}

impl Property {
    fn of_entries(by: By, group: &Group<'_>, now: i64) -> parquet::errors::Result<Self> {
        Ok(match by {
            By::Ext => Self::Extension(group.texts("ext")?),
            By::Size => Self::Size(group.numbers("size")?),
            By::Type => Self::Type(group.texts("type")?),
            _ => return Self::of_dirs(by, group, now),
        })
    }

    /// What directories have as well.
    fn of_dirs(by: By, group: &Group<'_>, now: i64) -> parquet::errors::Result<Self> {
        Ok(match by {
            By::User => Self::Id(group.numbers("uid")?),
            By::Group => Self::Id(group.numbers("gid")?),
            By::Age => Self::Modified(group.numbers("mtime")?, now),
            By::Type => Self::All(Key::Type(b'd')),
            _ => Self::All(Key::Directory),
        })
    }

    /// The group of a row; a text is the extension's.
    fn key(&self, row: usize) -> Result<Key, &[u8]> {
        let number = |numbers: &Numbers, key: fn(i64) -> Key| numbers.get(row).map_or(Key::Unknown, key);
        Ok(match self {
            Self::Id(ids) => number(ids, |id| u32::try_from(id).map_or(Key::Unknown, Key::Id)),
            Self::Extension(texts) => return texts.get(row).map_or(Ok(Key::NoExtension), Err),
            Self::Modified(times, now) => times.get(row).map_or(Key::Unknown, |then| age(then, *now)),
            Self::Size(sizes) => number(sizes, |size| Key::Size(SIZES.partition_point(|end| *end <= size))),
            Self::Type(texts) => {
                texts.get(row).and_then(|text| text.first()).map_or(Key::Unknown, |letter| Key::Type(*letter))
            }
            Self::All(key) => *key,
        })
    }
}

/// How long ago something was; what is still to come has an age beyond all.
fn age(then: i64, now: i64) -> Key {
    if then > now {
        return Key::Age(AGES.len() + 1);
    }
    let days = now.saturating_sub(then) / DAY_MICROS;
    Key::Age(AGES.partition_point(|end| *end <= days))
}

/// Sums that are found by looking at each: quicker than by a hash while they are few, as those of ages, sizes and types are.
const FEW: usize = 16;

/// Sums by key.
#[derive(Debug)]
struct Sums<K> {
    few: Vec<(K, Sum)>,
    many: HashMap<K, Sum>,
}

impl<K> Default for Sums<K> {
    fn default() -> Self {
        Self { few: Vec::new(), many: HashMap::new() }
    }
}

impl<K: Hash + Eq> Sums<K> {
    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    fn into_rows(self) -> impl Iterator<Item = (K, Sum)> {
        self.few.into_iter().chain(self.many)
    }

    /// Whether there was a sum for it, or room for a new one.
    fn add<Q>(&mut self, key: &Q, sum: &Sum, has_room: bool) -> bool
    where
        K: Borrow<Q>,
        Q: ToOwned<Owned = K> + Hash + Eq + ?Sized,
    {
        if let Some((_, group)) = self.few.iter_mut().find(|(known, _)| known.borrow() == key) {
            group.add(sum);
        } else if let Some(group) = self.many.get_mut(key) {
            group.add(sum);
        } else if !has_room {
            return false;
        } else if self.few.len() < FEW {
            self.few.push((key.to_owned(), *sum));
        } else {
            self.many.insert(key.to_owned(), *sum);
        }
        true
    }
}

#[derive(Debug, Default)]
struct Groups {
    extensions: Sums<Vec<u8>>,
    fixed: Sums<Key>,
}

impl Groups {
    fn add(&mut self, key: Result<Key, &[u8]>, sum: &Sum) {
        let has_room = self.extensions.len() + self.fixed.len() < GROUPS_MAX;
        let counted = match key {
            Ok(key) => self.fixed.add(&key, sum, has_room),
            Err(extension) => self.extensions.add(extension, sum, has_room),
        };
        if !counted {
            self.fixed.add(&Key::Other, sum, true);
        }
    }

    /// The largest first, equal ones in the order of their keys; or all in that order.
    fn report(self, by_key: bool) -> Report {
        let row = |key, text, sum| Row { key, text, sum };
        let extensions = self.extensions.into_rows().map(|(text, sum)| row(Key::Extension, text, sum));
        let fixed = self.fixed.into_rows().map(|(key, sum)| row(key, Vec::new(), sum));
        let mut rows: Vec<_> = extensions.chain(fixed).collect();
        rows.sort_unstable_by(|left, right| {
            let size = right.sum.allocated.cmp(&left.sum.allocated);
            let key = (left.key, &left.text).cmp(&(right.key, &right.text));
            if by_key { key } else { size.then(key) }
        });
        let mut total = Sum::default();
        rows.iter().for_each(|row| total.add(&row.sum));
        Report { rows, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_change_at_whole_days() {
        let age = |micros| age(0, micros);
        assert_eq!([age(-1), age(0), age(DAY_MICROS - 1), age(DAY_MICROS)], [6, 0, 0, 1].map(Key::Age));
        assert_eq!([age(1095 * DAY_MICROS - 1), age(i64::MAX)], [4, 5].map(Key::Age));
        assert_eq!(super::age(i64::MIN, i64::MAX), Key::Age(5));
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_together() {
        let mut groups = Groups::default();
        for number in 0..GROUPS_MAX + 2 {
            groups.add(Err(number.to_string().as_bytes()), &Sum::new(1, 1, 1));
        }
        let report = groups.report(false);
        assert_eq!((report.rows.len(), report.rows[0].key), (GROUPS_MAX + 1, Key::Other));
        assert_eq!(report.total.entries, GROUPS_MAX as u64 + 2);
    }
}
