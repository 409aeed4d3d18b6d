//! The order of entries, and its form in a query: `?sort=name|size|time&order=asc|desc`.

use std::cmp::Ordering;

use super::entry::{EntryKind, ListingEntry};

/// The property that entries are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SortKey {
    /// The name, with numbers compared by value: `a2` before `a10`.
    #[default]
    Name,
    /// The length of files.
    Size,
    /// The mtime.
    Time,
}

impl SortKey {
    /// Returns the value of `sort` in a query.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Size => "size",
            Self::Time => "time",
        }
    }
}

/// An order of entries. In each order directories come first, and equal entries are sorted by name.
/// The order is total, as names differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SortOrder {
    /// The property to sort by.
    pub key: SortKey,
    /// Whether the last, largest or newest entry comes first.
    pub descending: bool,
}

impl SortOrder {
    /// Returns this order changed by one pair of a query; unknown words change nothing.
    pub(super) fn with(self, name: &str, value: &str) -> Self {
        match (name, value) {
            ("sort", "name") => Self { key: SortKey::Name, ..self },
            ("sort", "size") => Self { key: SortKey::Size, ..self },
            ("sort", "time") => Self { key: SortKey::Time, ..self },
            ("order", "asc") => Self { descending: false, ..self },
            ("order", "desc") => Self { descending: true, ..self },
            _ => self,
        }
    }

    /// Returns the value of `order` in a query.
    pub(super) fn direction(self) -> &'static str {
        if self.descending { "desc" } else { "asc" }
    }

    pub(super) fn compare(self, a: &ListingEntry, b: &ListingEntry) -> Ordering {
        let directories = (a.kind != EntryKind::Directory).cmp(&(b.kind != EntryKind::Directory));
        let by_key = match self.key {
            SortKey::Name => by_name(&a.name, &b.name),
            SortKey::Size => a.bytes.cmp(&b.bytes),
            SortKey::Time => a.mtime.cmp(&b.mtime),
        };
        let by_key = if self.descending { by_key.reverse() } else { by_key };
        directories.then(by_key).then_with(|| by_name(&a.name, &b.name))
    }
}

/// Compares names by their symbols; names with equal symbols (`a`, `A`; `1`, `01`) by bytes.
fn by_name(a: &[u8], b: &[u8]) -> Ordering {
    let (mut rest_a, mut rest_b) = (a, b);
    loop {
        let (symbol_a, symbol_b) = (symbol(&mut rest_a), symbol(&mut rest_b));
        match symbol_a.cmp(&symbol_b) {
            Ordering::Equal if symbol_a.is_none() => return a.cmp(b),
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
}

/// Removes the first symbol of `rest`: a byte, with ASCII letters in lower case, or a whole number.
/// A number sorts where its digits would, and is compared by the count of its digits, then by the
/// digits, so numbers of any length cannot overflow.
fn symbol<'a>(rest: &mut &'a [u8]) -> Option<(u8, usize, &'a [u8])> {
    let (first, after) = rest.split_first()?;
    if !first.is_ascii_digit() {
        *rest = after;
        return Some((first.to_ascii_lowercase(), 0, b""));
    }
    let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let (number, after) = rest.split_at(end);
    *rest = after;
    let zeroes = number.iter().take_while(|digit| **digit == b'0').count();
    let number = &number[zeroes..];
    Some((b'0', number.len(), number))
}

#[cfg(test)]
mod tests {
    use fathom_io::FileTime;
    use proptest::prelude::*;

    use super::super::ListingView;
    use super::*;

    fn entry(name: &[u8], kind: EntryKind, bytes: u64, sec: i64) -> ListingEntry {
        ListingEntry { name: name.to_vec(), kind, bytes, mtime: FileTime { sec, nsec: 0 } }
    }

    fn sorted(entries: Vec<ListingEntry>, query: &str) -> Vec<String> {
        let mut entries = entries;
        let order = ListingView::from_query(query).order;
        entries.sort_by(|a, b| order.compare(a, b));
        entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()).collect()
    }

    #[test]
    fn names_are_compared_as_people_do() {
        let order = [
            "", " a", "01", "1", "1a", "2", "10", "0100", "A", "a", "a1b2", "a1b10", "a02", "a2", "a10", "b",
            "\u{e9}",
        ];
        for (index, a) in order.iter().enumerate() {
            for (other, b) in order.iter().enumerate() {
                assert_eq!(by_name(a.as_bytes(), b.as_bytes()), index.cmp(&other), "{a} {b}");
            }
        }
    }

    #[test]
    fn a_number_of_any_length_is_compared() {
        let long = "9".repeat(300);
        assert_eq!(by_name(long.as_bytes(), format!("1{long}").as_bytes()), Ordering::Less);
        assert_eq!(by_name(format!("000{long}").as_bytes(), format!("8{long}").as_bytes()), Ordering::Less);
    }

    #[test]
    fn each_key_in_both_directions_has_directories_first() {
        let entries = || {
            vec![
                entry(b"small", EntryKind::File, 1, 30),
                entry(b"d10", EntryKind::Directory, 0, 5),
                entry(b"large", EntryKind::File, 9, 20),
                entry(b"d9", EntryKind::Directory, 0, 6),
                entry(b"even", EntryKind::Other, 0, 20),
            ]
        };
        let table = [
            ("", ["d9", "d10", "even", "large", "small"]),
            ("order=desc", ["d10", "d9", "small", "large", "even"]),
            ("sort=size&order=asc", ["d9", "d10", "even", "small", "large"]),
            ("sort=size&order=desc", ["d9", "d10", "large", "small", "even"]),
            ("order=asc&sort=time", ["d10", "d9", "even", "large", "small"]),
            ("sort=time&order=desc", ["d9", "d10", "small", "even", "large"]),
        ];
        for (query, expected) in table {
            assert_eq!(sorted(entries(), query), expected, "{query}");
        }
    }

    #[test]
    fn unknown_words_of_a_query_change_nothing() {
        let by_size = SortOrder { key: SortKey::Size, descending: true };
        assert_eq!(
            ListingView::from_query("x=y&sort=size&sort=colour&order=desc&order=up&&=&sort").order,
            by_size
        );
        assert_eq!(ListingView::from_query("sort=Name&ORDER=desc").order, SortOrder::default());
    }

    fn any_entry() -> impl Strategy<Value = ListingEntry> {
        let name = proptest::collection::vec(
            prop_oneof![Just(b'0'), Just(b'1'), Just(b'a'), Just(b'A'), 1u8..],
            1..6,
        );
        let kind = prop_oneof![Just(EntryKind::File), Just(EntryKind::Directory), Just(EntryKind::Other)];
        (name, kind, 0u64..3, 0i64..3).prop_map(|(name, kind, bytes, sec)| entry(&name, kind, bytes, sec))
    }

    fn any_order() -> impl Strategy<Value = SortOrder> {
        (prop_oneof![Just(SortKey::Name), Just(SortKey::Size), Just(SortKey::Time)], any::<bool>())
            .prop_map(|(key, descending)| SortOrder { key, descending })
    }

    proptest! {
        #![proptest_config(fathom_cases::property(4000))]

        #[test]
        fn orders_are_total(a in any_entry(), b in any_entry(), c in any_entry(), order in any_order()) {
            prop_assert_eq!(order.compare(&a, &b), order.compare(&b, &a).reverse());
            if a.name != b.name {
                prop_assert_ne!(order.compare(&a, &b), Ordering::Equal);
            }
            if order.compare(&a, &b).is_le() && order.compare(&b, &c).is_le() {
                prop_assert!(order.compare(&a, &c).is_le());
            }
        }

        #[test]
        fn the_order_read_does_not_show(
            entries in proptest::collection::vec(any_entry(), 0..40), order in any_order(), turn: prop::sample::Index,
        ) {
            let mut entries = entries;
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            entries.dedup_by(|a, b| a.name == b.name);
                let mut turned = entries.clone();
            turned.rotate_left(turn.index(entries.len() + 1));
            entries.sort_unstable_by(|a, b| order.compare(a, b));
            turned.sort_unstable_by(|a, b| order.compare(a, b));
            prop_assert_eq!(entries, turned);
        }
    }
}
