//! Sums of files by extension, owner and age. The number of extensions and of owners is bounded:
//! files beyond it are counted together.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use fathom_inventory::{OwnerKind, Owners};
use fathom_questions::top::{AGE_LABELS, AGES};

use crate::source::{Amount, SumKey, SumRow};

/// Most extensions and most owners of a summary.
const KEYS_MAX: usize = 4096;
const DAY_S: i64 = 86_400;

/// The number of classes of ages: one for each of [`AGE_LABELS`], and one of unknown ages.
const AGE_CLASSES: usize = AGE_LABELS.len() + 1;

/// Returns the word for a class of ages.
fn age_word(class: usize) -> &'static str {
    AGE_LABELS.get(class).copied().unwrap_or("unknown")
}

/// The sums of files by extension, owner and age.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileSummary {
    /// By extension; empty for files without one.
    extensions: BoundedSums<Box<[u8]>>,
    owners: BoundedSums<UserId>,
    ages: [Amount<u64>; AGE_CLASSES],
    files: u64,
}

/// A user ID, as a key; `None` if it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct UserId(Option<u32>);

impl From<&UserId> for UserId {
    fn from(id: &UserId) -> Self {
        *id
    }
}

/// The properties of a file by which it is summed up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SummedFile<'a> {
    /// The extension in lower case, if there is one.
    pub(crate) extension: Option<&'a [u8]>,
    /// The user ID of the owner, if it is known.
    pub(crate) uid: Option<u32>,
    /// The modification time in seconds since 1970, if it is known.
    pub(crate) mtime_s: Option<i64>,
    /// The sizes.
    pub(crate) sizes: Amount<u64>,
}

/// Sums by a key.
#[derive(Clone, Debug)]
struct BoundedSums<K> {
    sums: Vec<(K, Amount<u64>)>,
    /// The index of each key.
    index: HashMap<K, usize>,
    /// The index of the key that was added last: files of a directory are often of one kind.
    last: usize,
    /// The sum of all keys beyond [`KEYS_MAX`].
    others: Amount<u64>,
}

impl<K> Default for BoundedSums<K> {
    fn default() -> Self {
        Self { sums: Vec::new(), index: HashMap::new(), last: 0, others: Amount::default() }
    }
}

impl<K: Clone + Hash + Eq> BoundedSums<K> {
    fn add<Q>(&mut self, key: &Q, amount: &Amount<u64>)
    where
        K: Borrow<Q> + for<'a> From<&'a Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some((last, sum)) = self.sums.get_mut(self.last)
            && <K as Borrow<Q>>::borrow(last) == key
        {
            return sum.add(amount);
        }
        match self.index.get(key) {
            Some(at) => self.last = *at,
            None if self.sums.len() >= KEYS_MAX => return self.others.add(amount),
            None => {
                self.last = self.sums.len();
                self.index.insert(key.into(), self.last);
                self.sums.push((key.into(), Amount::default()));
            }
        }
        self.sums[self.last].1.add(amount);
    }

    /// Moves the sums of `other` to these. The keys stay there, for the next files.
    fn merge<Q>(&mut self, other: &mut Self)
    where
        K: Borrow<Q> + for<'a> From<&'a Q>,
        Q: Hash + Eq + ?Sized,
    {
        for (key, sum) in &mut other.sums {
            self.add(<K as Borrow<Q>>::borrow(key), &std::mem::take(sum));
        }
        self.others.add(&std::mem::take(&mut other.others));
    }

    fn rows(&self, word: impl Fn(&K) -> Vec<u8>) -> Vec<SumRow> {
        let named = self.sums.iter().map(|(key, amount)| SumRow { key: word(key), amount: *amount });
        let others = SumRow { key: b"(other)".to_vec(), amount: self.others };
        named.chain([others]).filter(|row| row.amount.entries > 0).collect()
    }
}

impl FileSummary {
    /// Adds a file. `now_s` is the current time in seconds since 1970.
    pub(crate) fn add(&mut self, file: &SummedFile<'_>, now_s: i64) {
        let amount = file.sizes.with_itself();
        self.files += 1;
        self.ages[age_class(file.mtime_s, now_s)].add(&amount);
        self.owners.add(&UserId(file.uid), &amount);
        self.extensions.add(file.extension.unwrap_or_default(), &amount);
    }

    /// Returns the number of files that were added since the last merge.
    pub(crate) fn files(&self) -> u64 {
        self.files
    }

    /// Moves the sums of `other` to this summary.
    pub(crate) fn merge(&mut self, other: &mut Self) {
        self.extensions.merge::<[u8]>(&mut other.extensions);
        self.owners.merge::<UserId>(&mut other.owners);
        self.ages.iter_mut().zip(&mut other.ages).for_each(|(age, other)| age.add(&std::mem::take(other)));
        self.files += std::mem::take(&mut other.files);
    }

    /// Returns the rows by `key`, the largest first.
    pub(crate) fn rows(&self, key: SumKey, owners: &Owners) -> Vec<SumRow> {
        let owner = |uid: &UserId| {
            let Some(uid) = uid.0 else { return b"(unknown)".to_vec() };
            let mut name = Vec::new();
            owners.write(OwnerKind::User, uid, &mut name);
            name
        };
        let mut rows = match key {
            SumKey::Extension => self.extensions.rows(|extension| match &extension[..] {
                b"" => b"(none)".to_vec(),
                extension => extension.to_vec(),
            }),
            SumKey::Owner => self.owners.rows(owner),
            SumKey::Age => {
                let ages = self.ages.iter().enumerate().filter(|(_, amount)| amount.entries > 0);
                let row = |(class, amount): (usize, &Amount<u64>)| SumRow {
                    key: age_word(class).as_bytes().to_vec(),
                    amount: *amount,
                };
                return ages.map(row).collect();
            }
        };
        rows.sort_unstable_by(|one, other| {
            let size = |row: &SumRow| (row.amount.allocated, row.amount.apparent, row.amount.entries);
            size(other).cmp(&size(one)).then_with(|| one.key.cmp(&other.key))
        });
        rows
    }
}

/// Returns the number of the age class, of which [`age_word`] returns the word.
fn age_class(mtime_s: Option<i64>, now_s: i64) -> usize {
    let Some(mtime_s) = mtime_s else { return AGES.len() + 2 };
    if mtime_s > now_s {
        return AGES.len() + 1;
    }
    let days = now_s.saturating_sub(mtime_s) / DAY_S;
    AGES.partition_point(|end| *end <= days)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(extension: Option<&[u8]>, uid: u32, allocated: u64) -> SummedFile<'_> {
        SummedFile {
            extension,
            uid: Some(uid),
            mtime_s: Some(0),
            sizes: Amount { allocated, ..Amount::default() },
        }
    }

    fn keys(rows: &[SumRow]) -> Vec<String> {
        rows.iter().map(|row| String::from_utf8_lossy(&row.key).into_owned()).collect()
    }

    #[test]
    fn rows_come_largest_first_and_add_up() {
        let mut summary = FileSummary::default();
        summary.add(&file(Some(b"rs"), 1, 10), 0);
        summary.add(&file(None, 2, 30), 0);
        let mut other = FileSummary::default();
        other.add(&file(Some(b"rs"), 1, 25), 0);
        summary.merge(&mut other);
        assert_eq!((summary.files(), other.files()), (3, 0));
        let rows = summary.rows(SumKey::Extension, &Owners::default());
        assert_eq!(keys(&rows), ["rs", "(none)"]);
        assert_eq!((rows[0].amount.allocated, rows[0].amount.entries), (35, 2));
        assert_eq!(keys(&summary.rows(SumKey::Owner, &Owners::default())), ["1", "2"]);
        assert!(other.rows(SumKey::Age, &Owners::default()).is_empty());
    }

    #[test]
    fn keys_beyond_the_maximum_are_counted_together() {
        let mut summary = FileSummary::default();
        for number in 0..KEYS_MAX as u32 + 5 {
            summary.add(&file(Some(number.to_string().as_bytes()), number, 1), 0);
        }
        let rows = summary.rows(SumKey::Extension, &Owners::default());
        assert_eq!(
            (rows.len(), &rows[0].key[..], rows[0].amount.entries),
            (KEYS_MAX + 1, &b"(other)"[..], 5)
        );
    }

    #[test]
    fn classes_of_age_change_at_whole_days() {
        let class = |age_s: i64| age_word(age_class(Some(0), age_s));
        assert_eq!(
            [-1, 0, DAY_S - 1, DAY_S, 1095 * DAY_S].map(class),
            ["in the future", "under 1 day", "under 1 day", "under 7 days", "older"]
        );
        assert_eq!(age_word(age_class(Some(i64::MIN), i64::MAX)), "older");
    }
}
