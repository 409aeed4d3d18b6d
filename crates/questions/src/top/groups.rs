//! Totals of entries that share a property. Each inode is in one group, so the totals of all groups
//! add up to the sum of the inventory.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use super::files::counted_names;
use super::links::HardLinks;
use super::scope::{Scope, is_entered};
use super::{AGES, GroupKey, ReportKind, ReportRow, SIZES, UsageReport, UsageSum};
use fathom_inventory::store::Span;
use fathom_inventory::store::{Error, Inventory, NumberColumn, RowGroup, Table, TextColumn};

/// Most groups. The number of extensions is unbounded, so all groups after this many are counted as
/// one.
const GROUPS_MAX: usize = 65_536;
const DAY_MICROS: i64 = 86_400_000_000;

/// Reports totals by several properties, each in a report of its own.
pub(super) fn reports(
    inventory: &Inventory,
    span: Span,
    kinds: &[ReportKind],
    now: i64,
) -> Result<Vec<UsageReport>, Error> {
    let mut totals: Vec<_> = kinds.iter().map(|by| (*by, GroupTotals::default())).collect();
    let scope = Scope::read(inventory, span)?;
    let mut first_names = HardLinks::read(inventory, &scope)?.within(&scope).first_names();
    inventory.each(Table::Entries, |group| {
        let names = counted_names(group, &scope, &mut first_names)?;
        for (by, groups) in &mut totals {
            let property = GroupProperty::of_entries(*by, group, now)?;
            names.iter().for_each(|name| groups.add(property.key(name.row), &name.sum));
        }
        Ok(())
    })?;
    inventory.each(Table::Dirs, |group| {
        let [dir_id, blocks] = [group.numbers("dir_id")?, group.numbers("blocks")?];
        let states = group.texts("state")?;
        let counts = |row: &usize| scope.contains(dir_id.or_zero()[*row]) && is_entered(&states, *row);
        for (by, groups) in &mut totals {
            let property = GroupProperty::of_dirs(*by, group, now)?;
            for row in (0..group.rows()).filter(counts) {
                groups.add(property.key(row), &UsageSum::new(1, blocks.or_zero()[row], 0));
            }
        }
        Ok(())
    })?;
    Ok(totals.into_iter().map(|(by, groups)| groups.report(by.is_ordered())).collect())
}

/// The column that decides the group of a row.
enum GroupProperty {
    Id(NumberColumn),
    Extension(TextColumn),
    Modified(NumberColumn, i64),
    Size(NumberColumn),
    Type(TextColumn),
    /// One group for all rows.
    All(GroupKey),
}

impl GroupProperty {
    fn of_entries(by: ReportKind, group: &RowGroup<'_>, now: i64) -> parquet::errors::Result<Self> {
        Ok(match by {
            ReportKind::Ext => Self::Extension(group.texts("ext")?),
            ReportKind::Size => Self::Size(group.numbers("size")?),
            ReportKind::Type => Self::Type(group.texts("type")?),
            ReportKind::Dir
            | ReportKind::File
            | ReportKind::User
            | ReportKind::Group
            | ReportKind::Age
            | ReportKind::Depth => return Self::of_dirs(by, group, now),
        })
    }

    /// Returns the property of directories, for properties that they have.
    fn of_dirs(by: ReportKind, group: &RowGroup<'_>, now: i64) -> parquet::errors::Result<Self> {
        Ok(match by {
            ReportKind::User => Self::Id(group.numbers("uid")?),
            ReportKind::Group => Self::Id(group.numbers("gid")?),
            ReportKind::Age => Self::Modified(group.numbers("mtime")?, now),
            ReportKind::Type => Self::All(GroupKey::Type(b'd')),
            ReportKind::Dir | ReportKind::File | ReportKind::Ext | ReportKind::Size | ReportKind::Depth => {
                Self::All(GroupKey::Directory)
            }
        })
    }

    /// Returns the group of a row. The error case is the extension of a name, which is borrowed.
    fn key(&self, row: usize) -> Result<GroupKey, &[u8]> {
        let number = |numbers: &NumberColumn, key: fn(i64) -> GroupKey| {
            numbers.get(row).map_or(GroupKey::Unknown, key)
        };
        Ok(match self {
            Self::Id(ids) => number(ids, |id| u32::try_from(id).map_or(GroupKey::Unknown, GroupKey::Id)),
            Self::Extension(texts) => return texts.get(row).map_or(Ok(GroupKey::NoExtension), Err),
            Self::Modified(times, now) => {
                times.get(row).map_or(GroupKey::Unknown, |then| GroupKey::Age(age_group(then, *now)))
            }
            Self::Size(sizes) => {
                number(sizes, |size| GroupKey::Size(SIZES.partition_point(|end| *end <= size)))
            }
            Self::Type(texts) => texts
                .get(row)
                .and_then(|text| text.first())
                .map_or(GroupKey::Unknown, |letter| GroupKey::Type(*letter)),
            Self::All(key) => *key,
        })
    }
}

/// Returns the age group of a modification time. A time in the future is in a group of its own.
pub(super) fn age_group(then: i64, now: i64) -> usize {
    if then > now {
        return AGES.len() + 1;
    }
    let days = now.saturating_sub(then) / DAY_MICROS;
    AGES.partition_point(|end| *end <= days)
}

/// Most sums in a vector. While there are few, a linear search is faster than a hash map: ages,
/// sizes and types have few groups.
const FEW: usize = 16;

/// A map from keys to sums.
#[derive(Debug)]
struct SumMap<K> {
    few: Vec<(K, UsageSum)>,
    many: HashMap<K, UsageSum>,
}

impl<K> Default for SumMap<K> {
    fn default() -> Self {
        Self { few: Vec::new(), many: HashMap::new() }
    }
}

impl<K: Hash + Eq> SumMap<K> {
    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    fn into_rows(self) -> impl Iterator<Item = (K, UsageSum)> {
        self.few.into_iter().chain(self.many)
    }

    /// Adds to the sum of a key. Returns false if the key is new and there is no room for it.
    fn add<Q>(&mut self, key: &Q, sum: &UsageSum, has_room: bool) -> bool
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
struct GroupTotals {
    extensions: SumMap<Vec<u8>>,
    fixed: SumMap<GroupKey>,
}

impl GroupTotals {
    fn add(&mut self, key: Result<GroupKey, &[u8]>, sum: &UsageSum) {
        let has_room = self.extensions.len() + self.fixed.len() < GROUPS_MAX;
        let counted = match key {
            Ok(key) => self.fixed.add(&key, sum, has_room),
            Err(extension) => self.extensions.add(extension, sum, has_room),
        };
        if !counted {
            self.fixed.add(&GroupKey::Other, sum, true);
        }
    }

    /// Returns the report: in the order of the keys if `by_key`, otherwise the largest first and
    /// equal ones by key.
    fn report(self, by_key: bool) -> UsageReport {
        let row = |key, text, sum| ReportRow { key, text, sum };
        let extensions = self.extensions.into_rows().map(|(text, sum)| row(GroupKey::Extension, text, sum));
        let fixed = self.fixed.into_rows().map(|(key, sum)| row(key, Vec::new(), sum));
        let mut rows: Vec<_> = extensions.chain(fixed).collect();
        rows.sort_unstable_by(|left, right| {
            let size = right.sum.allocated.cmp(&left.sum.allocated);
            let key = (left.key, &left.text).cmp(&(right.key, &right.text));
            if by_key { key } else { size.then(key) }
        });
        let mut total = UsageSum::default();
        rows.iter().for_each(|row| total.add(&row.sum));
        UsageReport { rows, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_change_at_whole_days() {
        let age = |micros| age_group(0, micros);
        assert_eq!([age(-1), age(0), age(DAY_MICROS - 1), age(DAY_MICROS)], [6, 0, 0, 1]);
        assert_eq!([age(1095 * DAY_MICROS - 1), age(i64::MAX)], [4, 5]);
        assert_eq!(age_group(i64::MIN, i64::MAX), 5);
    }

    #[test]
    fn groups_beyond_the_maximum_are_counted_together() {
        let mut groups = GroupTotals::default();
        for number in 0..GROUPS_MAX + 2 {
            groups.add(Err(number.to_string().as_bytes()), &UsageSum::new(1, 1, 1));
        }
        let report = groups.report(false);
        assert_eq!((report.rows.len(), report.rows[0].key), (GROUPS_MAX + 1, GroupKey::Other));
        assert_eq!(report.total.entries, GROUPS_MAX as u64 + 2);
    }
}
