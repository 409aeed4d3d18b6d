//! The view of a listing that a query asks for:
//! `?sort=name|size|time&order=asc|desc&filter=TEXT&page=N`.

use std::borrow::Cow;
use std::fmt::Write;

use percent_encoding::{percent_decode_str, utf8_percent_encode};

use super::entry::RESERVED;
use super::{Entry, Order};

/// An order, a filter and a page of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct View {
    /// The order of all entries; pages are cut from it.
    pub order: Order,
    /// Only entries whose name contains this text are shown, in any case; all if it is empty.
    pub filter: String,
    /// Number of the page, less one.
    pub page: usize,
}

impl View {
    /// Reads a query (application/x-www-form-urlencoded). Unknown names and values leave the
    /// default.
    #[must_use]
    pub fn from_query(query: &str) -> Self {
        query.split('&').filter_map(|pair| pair.split_once('=')).fold(Self::default(), Self::with)
    }

    fn with(self, (name, value): (&str, &str)) -> Self {
        match name {
            "filter" => Self { filter: decode(value).trim().to_owned(), ..self },
            "page" => match value.parse::<usize>().ok().and_then(|number| number.checked_sub(1)) {
                Some(page) => Self { page, ..self },
                None => self,
            },
            _ => Self { order: self.order.with(name, value), ..self },
        }
    }

    /// Returns the query of this filter in another order, on another page:
    /// `?sort=size&order=desc&page=2`. `and` stands between pairs. Nothing in it would need an
    /// escape in HTML.
    pub(super) fn query(&self, order: Order, page: usize, and: &str) -> String {
        let mut query = format!("?sort={}{and}order={}", order.key.word(), order.direction());
        if !self.filter.is_empty() {
            query.push_str(and);
            query.push_str("filter=");
            query.extend(utf8_percent_encode(&self.filter, RESERVED));
        }
        if page > 0 {
            write!(query, "{and}page={}", page.saturating_add(1)).expect("a string takes all text");
        }
        query
    }

    /// Returns a function that tells whether an entry passes the filter.
    pub(super) fn passes(&self) -> impl Fn(&Entry) -> bool + use<> {
        let wanted = self.filter.to_lowercase();
        move |entry| {
            wanted.is_empty() || String::from_utf8_lossy(&entry.name).to_lowercase().contains(&wanted)
        }
    }
}

fn decode(value: &str) -> String {
    let spaced: Cow<'_, str> =
        if value.contains('+') { value.replace('+', " ").into() } else { value.into() };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use fathom_io::Stamp;
    use proptest::prelude::*;

    use super::super::{Key, Kind};
    use super::*;

    #[test]
    fn queries_are_read_and_written() {
        let view = View::from_query("filter=+a%26B+%C3%A9+&page=3&sort=size&order=desc");
        let order = Order { key: Key::Size, descending: true };
        assert_eq!(view, View { order, filter: "a&B \u{e9}".to_owned(), page: 2 });
        let written = view.query(Order::default(), 1, "&");
        assert_eq!(written, "?sort=name&order=asc&filter=a%26B%20%C3%A9&page=2");
        assert_eq!(View::default().query(order, 0, "&amp;"), "?sort=size&amp;order=desc");
    }

    #[test]
    fn unknown_words_of_a_query_change_nothing() {
        for query in
            ["", "x=y", "page=0", "page=-1", "page=x", "page=99999999999999999999999", "filter", "&&="]
        {
            assert_eq!(View::from_query(query), View::default(), "{query}");
        }
    }

    #[test]
    fn a_filter_is_a_part_of_the_name_in_any_case() {
        let entry =
            |name: &str| Entry { name: name.into(), kind: Kind::File, bytes: 0, mtime: Stamp::default() };
        for (filter, name, passes) in [
            ("", "a", true),
            ("RE", "core.md", true),
            ("\u{c9}", "caf\u{e9}", true),
            ("a.b", "axb", false),
            ("ab", "a", false),
        ] {
            let view = View { filter: filter.to_owned(), ..View::default() };
            assert_eq!(view.passes()(&entry(name)), passes, "{filter} {name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn any_query_is_read_and_what_is_written_is_read_again(query: String, filter: String, page in 0..usize::MAX) {
            let _read = View::from_query(&query);
            let view = View { order: Order::default(), filter: filter.trim().to_owned(), page };
            let written = view.query(view.order, view.page, "&");
            prop_assert!(written.is_ascii() && !written.contains(['"', '\'', '<', '>', ' ']));
            prop_assert_eq!(View::from_query(&written[1..]), view);
        }
    }
}
