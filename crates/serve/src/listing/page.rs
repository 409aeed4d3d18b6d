//! A page of a listing: at most [`PAGE_ENTRIES`] of the entries that pass the filter, in order.

use std::ops::Range;

use fathom_io::Errno;

use super::entry::ListingEntry;
use super::read::Listing;
use super::sort::SortOrder;
use super::tick::Tick;
use super::view::ListingView;

/// The maximum entries of a page. HTML of more entries is megabytes long and takes a browser
/// seconds to lay out.
pub const PAGE_ENTRIES: usize = 10_000;

/// Comparisons, or names matched, between two ticks: some ten microseconds of work.
const TICK_EVERY: usize = 256;

/// A page of a listing.
#[derive(Debug)]
pub struct ListingPage<'a> {
    /// The directory's decoded path, which begins and ends with a slash.
    pub path: &'a [u8],
    /// The requested order, filter and page.
    pub view: &'a ListingView,
    /// The entries of the page, in the view's order.
    pub entries: Vec<&'a ListingEntry>,
    /// The number of entries that pass the filter, on all pages.
    pub total: usize,
    /// Whether all entries of the directory were read.
    pub complete: bool,
}

impl ListingPage<'_> {
    /// Returns the number of pages, at least 1.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.total.div_ceil(PAGE_ENTRIES).max(1)
    }

    /// Returns the index of the next page; `None` on the last page.
    pub(super) fn next(&self) -> Option<usize> {
        Some(self.view.page.saturating_add(1)).filter(|next| *next < self.pages())
    }
}

impl Listing {
    /// Returns the page that `view` requests of the directory at `path`; `None` if the page does
    /// not exist.
    ///
    /// # Errors
    /// The error of `tick`.
    pub fn page<'a>(
        &'a self,
        path: &'a [u8],
        view: &'a ListingView,
        tick: Tick<'_>,
    ) -> Result<Option<ListingPage<'a>>, Errno> {
        let (passes, mut found) = (view.passes(), Vec::new());
        for entries in self.entries.chunks(TICK_EVERY) {
            found.extend(entries.iter().filter(|entry| passes(&entry.name)));
            tick(found.capacity() * size_of::<&ListingEntry>())?;
        }
        let total = found.len();
        let start = view.page.saturating_mul(PAGE_ENTRIES);
        if start >= total && view.page > 0 {
            return Ok(None);
        }
        let end = start.saturating_add(PAGE_ENTRIES).min(total);
        let held = found.capacity() * size_of::<&ListingEntry>();
        let entries = select_range(found, start..end, view.order, &mut || tick(held))?;
        Ok(Some(ListingPage { path, view, entries, total, complete: self.complete }))
    }
}

/// Returns the entries of `found` at `range` in `order`. Only these are sorted; the others are
/// partitioned before or behind them.
fn select_range<'a>(
    mut found: Vec<&'a ListingEntry>,
    range: Range<usize>,
    order: SortOrder,
    tick: &mut dyn FnMut() -> Result<(), Errno>,
) -> Result<Vec<&'a ListingEntry>, Errno> {
    let (mut comparisons, mut ended) = (0_usize, Ok(()));
    let mut compare = |a: &&ListingEntry, b: &&ListingEntry| {
        comparisons = comparisons.wrapping_add(1);
        if comparisons.is_multiple_of(TICK_EVERY) && ended.is_ok() {
            ended = tick();
        }
        order.compare(a, b)
    };
    if range.end < found.len() {
        found.select_nth_unstable_by(range.end, &mut compare);
        found.truncate(range.end);
    }
    if (1..found.len()).contains(&range.start) {
        found.select_nth_unstable_by(range.start, &mut compare);
    }
    found.drain(..range.start.min(found.len()));
    found.sort_unstable_by(&mut compare);
    ended.map(|()| found)
}

#[cfg(test)]
mod tests {
    use fathom_io::FileTime;
    use proptest::prelude::*;

    use super::super::{EntryKind, SortKey};
    use super::*;

    fn listing(entries: usize) -> Listing {
        let entry = |number: usize| ListingEntry {
            name: format!("f{:06}", number * 7_919 % entries.max(1)).into_bytes(),
            kind: EntryKind::File,
            bytes: number as u64 % 3,
            mtime: FileTime::default(),
        };
        Listing { entries: (0..entries).map(entry).collect(), complete: true }
    }

    #[test]
    fn pages_are_cut_from_the_whole_order() {
        // 7919 is prime, so each name occurs once.
        let listing = listing(2 * PAGE_ENTRIES + 5);
        for order in [SortOrder::default(), SortOrder { key: SortKey::Size, descending: true }] {
            let mut whole: Vec<&ListingEntry> = listing.entries.iter().collect();
            whole.sort_by(|a, b| order.compare(a, b));
            for (page, expected) in whole.chunks(PAGE_ENTRIES).enumerate() {
                let view = ListingView { order, page, ..ListingView::default() };
                let page = listing.page(b"/", &view, &mut |_| Ok(())).unwrap().unwrap();
                assert!(page.entries == expected);
                assert_eq!((page.total, page.pages()), (2 * PAGE_ENTRIES + 5, 3));
                assert_eq!(page.next(), Some(page.view.page + 1).filter(|next| *next < 3));
            }
            for page in [3, usize::MAX] {
                let view = ListingView { order, page, ..ListingView::default() };
                assert!(listing.page(b"/", &view, &mut |_| Ok(())).unwrap().is_none());
            }
        }
    }

    #[test]
    fn an_empty_listing_has_one_page() {
        let (listing, view) = (listing(0), ListingView::default());
        let page = listing.page(b"/", &view, &mut |_| Ok(())).unwrap().unwrap();
        assert_eq!((page.entries.len(), page.pages(), page.next()), (0, 1, None));
    }

    #[test]
    fn work_is_cut_into_short_pieces_and_can_be_ended() {
        let (listing, view) = (listing(20_000), ListingView::default());
        let mut ticks = 0;
        let mut count = |_| {
            ticks += 1;
            Ok(())
        };
        listing.page(b"/", &view, &mut count).unwrap();
        assert!(ticks > 20_000 / TICK_EVERY * 2, "{ticks}");
        for end in [1, 100, ticks / 2] {
            let mut left = end;
            let mut ends = |_| {
                left -= 1;
                if left == 0 { Err(Errno::NOMEM) } else { Ok(()) }
            };
            assert_eq!(listing.page(b"/", &view, &mut ends).unwrap_err(), Errno::NOMEM);
            assert_eq!(left, 0, "it is not asked again");
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(300))]

        #[test]
        fn a_cut_is_the_same_as_of_all_sorted(entries in 0usize..400, start in 0usize..400, len in 0usize..400) {
            let listing = listing(entries);
            let (start, order) = (start.min(entries), SortOrder::default());
            let end = (start + len).min(entries);
            let mut whole: Vec<&ListingEntry> = listing.entries.iter().collect();
            let cut = select_range(whole.clone(), start..end, order, &mut || Ok(())).unwrap();
            whole.sort_by(|a, b| order.compare(a, b));
            prop_assert_eq!(cut, &whole[start..end]);
        }
    }
}
