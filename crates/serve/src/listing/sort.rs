//! The order of entries, and how a query names it: `?sort=name|size|time&order=asc|desc`.

use std::cmp::Ordering;

use super::{Entry, Kind};

/// What entries are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Key {
    /// The name, numbers in it by value: `a2` before `a10`.
    #[default]
    Name,
    /// The length of files.
    Size,
    /// The last change.
    Time,
}

impl Key {
    /// The value of `sort` in a query.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Size => "size",
            Self::Time => "time",
        }
    }
}

/// An order of entries. Directories come first in each, and equal entries by name: it is total, as names differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Order {
    /// By what.
    pub key: Key,
    /// The last, largest or newest first.
    pub descending: bool,
}

impl Order {
    /// Returns this order with what a pair of a query says; unknown words leave it.
    pub(super) fn with(self, name: &str, value: &str) -> Self {
        match (name, value) {
            ("sort", "name") => Self { key: Key::Name, ..self },
            ("sort", "size") => Self { key: Key::Size, ..self },
            ("sort", "time") => Self { key: Key::Time, ..self },
            ("order", "asc") => Self { descending: false, ..self },
            ("order", "desc") => Self { descending: true, ..self },
            _ => self,
        }
    }

    /// The value of `order` in a query.
    pub(super) fn direction(self) -> &'static str {
        if self.descending { "desc" } else { "asc" }
    }

    pub(super) fn compare(self, a: &Entry, b: &Entry) -> Ordering {
        let directories = (a.kind != Kind::Directory).cmp(&(b.kind != Kind::Directory));
        let by_key = match self.key {
            Key::Name => by_name(&a.name, &b.name),
            Key::Size => a.bytes.cmp(&b.bytes),
            Key::Time => a.mtime.cmp(&b.mtime),
        };
        let by_key = if self.descending { by_key.reverse() } else { by_key };
        directories.then(by_key).then_with(|| by_name(&a.name, &b.name))
    }
}

/// By the sequence of their symbols, and where these are the same (`a`, `A`; `1`, `01`) by bytes.
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

/// The first symbol of `rest`, which is left without it: a byte, ASCII letters without their case, or a whole number. The number stands
/// where its digits would, and is compared by how many there are, then by what they are; of any length, so nothing overflows.
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
    use fathom_io::Stamp;
    use proptest::prelude::*;

    use super::super::View;
    use super::*;

    fn entry(name: &[u8], kind: Kind, bytes: u64, sec: i64) -> Entry {
        Entry { name: name.to_vec(), kind, bytes, mtime: Stamp { sec, nsec: 0 } }
    }

    fn sorted(entries: Vec<Entry>, query: &str) -> Vec<String> {
        let mut entries = entries;
        let order = View::from_query(query).order;
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
                entry(b"small", Kind::File, 1, 30),
                entry(b"d10", Kind::Directory, 0, 5),
                entry(b"large", Kind::File, 9, 20),
                entry(b"d9", Kind::Directory, 0, 6),
                entry(b"even", Kind::Other, 0, 20),
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
        let by_size = Order { key: Key::Size, descending: true };
        assert_eq!(View::from_query("x=y&sort=size&sort=colour&order=desc&order=up&&=&sort").order, by_size);
        assert_eq!(View::from_query("sort=Name&ORDER=desc").order, Order::default());
    }

    fn any_entry() -> impl Strategy<Value = Entry> {
        let name = proptest::collection::vec(
            prop_oneof![Just(b'0'), Just(b'1'), Just(b'a'), Just(b'A'), 1u8..],
            1..6,
        );
        let kind = prop_oneof![Just(Kind::File), Just(Kind::Directory), Just(Kind::Other)];
        (name, kind, 0u64..3, 0i64..3).prop_map(|(name, kind, bytes, sec)| entry(&name, kind, bytes, sec))
    }

    fn any_order() -> impl Strategy<Value = Order> {
        (prop_oneof![Just(Key::Name), Just(Key::Size), Just(Key::Time)], any::<bool>())
            .prop_map(|(key, descending)| Order { key, descending })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

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
