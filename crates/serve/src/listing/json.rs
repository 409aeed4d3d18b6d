//! Formats a listing as JSON: `{"path", "page", "pages", "total", "complete", "next", "entries":
//! [{"name", "type", "size", "modified", "href"}, ...]}`.

use std::borrow::Cow;

use fathom_io::Errno;
use jiff::Timestamp;
use serde::Serialize;

use super::entry::{EntryKind, ListingEntry};
use super::page::ListingPage;
use super::tick::Tick;

/// Entries between two ticks.
const TICK_EVERY: usize = 64;

/// The members of the object before the entries.
#[derive(Serialize)]
struct JsonHeader<'a> {
    path: Cow<'a, str>,
    page: usize,
    pages: usize,
    total: usize,
    complete: bool,
    next: Option<String>,
}

impl<'a> JsonHeader<'a> {
    fn new(page: &'a ListingPage<'_>) -> Self {
        Self {
            path: String::from_utf8_lossy(page.path),
            page: page.view.page.saturating_add(1),
            pages: page.pages(),
            total: page.total,
            complete: page.complete && page.pages() == 1,
            next: page.next().map(|next| page.view.query(page.view.order, next, "&")),
        }
    }
}

/// One entry as JSON.
#[derive(Serialize)]
struct JsonEntry<'a> {
    name: Cow<'a, str>,
    r#type: EntryKind,
    size: Option<u64>,
    modified: Option<Timestamp>,
    href: Option<String>,
}

impl<'a> JsonEntry<'a> {
    fn new(entry: &'a ListingEntry) -> Self {
        let nsec = i32::try_from(entry.mtime.nsec).unwrap_or(0);
        Self {
            name: String::from_utf8_lossy(&entry.name),
            r#type: entry.kind,
            size: (entry.kind == EntryKind::File).then_some(entry.bytes),
            modified: Timestamp::new(entry.mtime.sec, nsec).ok(),
            href: entry.href(),
        }
    }
}

/// Formats a page as JSON. Sizes are in bytes, for files only; times are RFC 3339 in UTC, to the
/// nanosecond. In a name that is not UTF-8, U+FFFD replaces the invalid bytes, but `href` is exact.
/// `total` is the number of entries on all pages, `next` the query of the next page. `complete`
/// says that `entries` has all entries.
///
/// # Errors
/// The error of `tick`.
pub fn json(page: &ListingPage<'_>, tick: Tick<'_>) -> Result<Vec<u8>, Errno> {
    let mut out = to_vec(&JsonHeader::new(page))?;
    // The closing brace comes after the entries.
    out.pop();
    out.extend_from_slice(b",\"entries\":[");
    for (at, entry) in page.entries.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut out, &JsonEntry::new(entry)).map_err(|_| Errno::INVAL)?;
        if at.is_multiple_of(TICK_EVERY) {
            tick(out.capacity())?;
        }
    }
    out.extend_from_slice(b"]}");
    tick(out.capacity())?;
    Ok(out)
}

/// Serializes `value`. These types cannot fail to serialize.
fn to_vec(value: &impl Serialize) -> Result<Vec<u8>, Errno> {
    serde_json::to_vec(value).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use fathom_io::FileTime;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::{Listing, ListingView, PAGE_ENTRIES};
    use super::*;

    fn entry(name: &[u8], kind: EntryKind, bytes: u64, sec: i64, nsec: u32) -> ListingEntry {
        ListingEntry { name: name.to_vec(), kind, bytes, mtime: FileTime { sec, nsec } }
    }

    fn value(path: &[u8], listing: &Listing, view: &ListingView) -> Value {
        let page = listing.page(path, view, &mut |_| Ok(())).unwrap().unwrap();
        serde_json::from_slice(&super::json(&page, &mut |_| Ok(())).unwrap()).unwrap()
    }

    #[test]
    fn a_listing_for_programs() {
        let entries = vec![
            entry(b"sub", EntryKind::Directory, 0, 0, 0),
            entry(b"\xff\"<", EntryKind::File, u64::MAX, 1_704_164_645, 120_000_000),
            entry(b"pipe", EntryKind::Other, 0, i64::MAX, 0),
        ];
        let expected = json!({
            "path": "/a\u{fffd}/",
            "page": 1, "pages": 1, "total": 3, "complete": false, "next": null,
            "entries": [
                {"name": "sub", "type": "directory", "size": null, "modified": "1970-01-01T00:00:00Z", "href": "./sub/"},
                {"name": "pipe", "type": "other", "size": null, "modified": null, "href": null},
                {"name": "\u{fffd}\"<", "type": "file", "size": u64::MAX, "modified": "2024-01-02T03:04:05.12Z",
                 "href": "./%FF%22%3C"},
            ],
        });
        assert_eq!(
            value(b"/a\xff/", &Listing { entries, complete: false }, &ListingView::default()),
            expected
        );
    }

    #[test]
    fn an_empty_directory_has_an_empty_array() {
        let listing = Listing { entries: Vec::new(), complete: true };
        let value = value(b"/", &listing, &ListingView::default());
        assert_eq!(
            (&value["entries"], &value["complete"], &value["pages"]),
            (&json!([]), &json!(true), &json!(1))
        );
    }

    #[test]
    fn programs_are_led_from_page_to_page() {
        let names = 0..2 * PAGE_ENTRIES + 1;
        let entries =
            names.map(|number| entry(format!("{number:06}").as_bytes(), EntryKind::File, 1, 0, 0)).collect();
        let listing = Listing { entries, complete: true };
        let (mut query, mut names) = (String::from("?filter=0"), Vec::new());
        loop {
            let value = value(b"/", &listing, &ListingView::from_query(&query[1..]));
            assert_eq!((&value["complete"], &value["pages"]), (&json!(false), &json!(3)));
            names.extend(value["entries"].as_array().unwrap().iter().map(|entry| entry["name"].to_string()));
            let Some(next) = value["next"].as_str() else { break };
            query = next.to_owned();
        }
        assert_eq!(names.len(), 2 * PAGE_ENTRIES + 1);
        assert!(names.is_sorted());
    }

    proptest! {
        #![proptest_config(fathom_cases::property(1000))]

        #[test]
        fn any_entry_comes_back(name in proptest::collection::vec(1u8.., 1..20), bytes: u64, sec: i64, nsec in 0u32..1_000_000_000) {
            let entries = vec![entry(&name, EntryKind::File, bytes, sec, nsec)];
            let page = value(b"/", &Listing { entries, complete: true }, &ListingView::default());
            let item = &page["entries"][0];
            prop_assert_eq!(&item["size"], bytes);
            prop_assert_eq!(item["name"].as_str().unwrap(), String::from_utf8_lossy(&name));
            let href = item["href"].as_str().unwrap().strip_prefix("./").unwrap();
            prop_assert_eq!(percent_encoding::percent_decode_str(href).collect::<Vec<_>>(), name);
            match item["modified"].as_str() {
                None => prop_assert!(Timestamp::new(sec, nsec as i32).is_err()),
                Some(text) => {
                    let time: Timestamp = text.parse().unwrap();
                    prop_assert_eq!(time, Timestamp::new(sec, nsec as i32).unwrap());
                }
            }
        }
    }
}
