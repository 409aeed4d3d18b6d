//! The order, filter and page of a listing, and their form in a query:
//! `?sort=name|size|time&order=asc|desc&filter=TEXT&page=N`.

use std::borrow::Cow;
use std::fmt::Write;

use percent_encoding::{percent_decode_str, utf8_percent_encode};

use super::entry::RESERVED;
use super::sort::SortOrder;

/// An order, a filter and a page of a listing.
///
/// ```
/// use fathom_serve::listing::{ListingView, SortKey};
///
/// let view = ListingView::from_query("sort=size&order=desc&page=2&filter=a%20b");
/// assert_eq!((view.order.key, view.page, view.filter.as_str()), (SortKey::Size, 1, "a b"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ListingView {
    /// The order of all entries; pages are cut from the sorted list.
    pub order: SortOrder,
    /// The text that names of shown entries contain, in any case; empty for all entries.
    pub filter: String,
    /// The index of the page, from 0.
    pub page: usize,
}

impl ListingView {
    /// Parses a query (application/x-www-form-urlencoded). Unknown names and values leave the
    /// default.
    #[must_use]
    pub fn from_query(query: &str) -> Self {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.fold(Self::default(), |view, (name, value)| view.with(name, value))
    }

    fn with(self, name: &str, value: &str) -> Self {
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
    /// `?sort=size&order=desc&page=2`. `and` separates pairs. The query needs no escaping in HTML.
    pub(super) fn query(&self, order: SortOrder, page: usize, and: &str) -> String {
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

    /// Returns a predicate for names that pass the filter.
    pub(crate) fn passes(&self) -> impl Fn(&[u8]) -> bool + use<> {
        let wanted = self.filter.to_lowercase();
        move |name| wanted.is_empty() || String::from_utf8_lossy(name).to_lowercase().contains(&wanted)
    }
}

fn decode(value: &str) -> String {
    let spaced: Cow<'_, str> =
        if value.contains('+') { value.replace('+', " ").into() } else { value.into() };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::SortKey;
    use super::*;

    #[test]
    fn queries_are_read_and_written() {
        let view = ListingView::from_query("filter=+a%26B+%C3%A9+&page=3&sort=size&order=desc");
        let order = SortOrder { key: SortKey::Size, descending: true };
        assert_eq!(view, ListingView { order, filter: "a&B \u{e9}".to_owned(), page: 2 });
        let written = view.query(SortOrder::default(), 1, "&");
        assert_eq!(written, "?sort=name&order=asc&filter=a%26B%20%C3%A9&page=2");
        assert_eq!(ListingView::default().query(order, 0, "&amp;"), "?sort=size&amp;order=desc");
    }

    #[test]
    fn unknown_words_of_a_query_change_nothing() {
        for query in
            ["", "x=y", "page=0", "page=-1", "page=x", "page=99999999999999999999999", "filter", "&&="]
        {
            assert_eq!(ListingView::from_query(query), ListingView::default(), "{query}");
        }
    }

    #[test]
    fn a_filter_is_a_part_of_the_name_in_any_case() {
        for (filter, name, passes) in [
            ("", "a", true),
            ("RE", "core.md", true),
            ("\u{c9}", "caf\u{e9}", true),
            ("a.b", "axb", false),
            ("ab", "a", false),
        ] {
            let view = ListingView { filter: filter.to_owned(), ..ListingView::default() };
            assert_eq!(view.passes()(name.as_bytes()), passes, "{filter} {name}");
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(1000))]

        #[test]
        fn any_query_is_read_and_what_is_written_is_read_again(query: String, filter: String, page in 0..usize::MAX) {
            let _read = ListingView::from_query(&query);
            let view = ListingView { order: SortOrder::default(), filter: filter.trim().to_owned(), page };
            let written = view.query(view.order, view.page, "&");
            prop_assert!(written.is_ascii() && !written.contains(['"', '\'', '<', '>', ' ']));
            prop_assert_eq!(ListingView::from_query(&written[1..]), view);
        }
    }
}
