//! A listing for programs: `{"path": ..., "entries": [{"name", "type", "size", "modified", "href"}, ...], "complete": true}`.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Serialize;

use super::{Entry, Kind, Listing};

#[derive(Serialize)]
struct Page<'a> {
    path: Cow<'a, str>,
    entries: Vec<Item<'a>>,
    complete: bool,
}

#[derive(Serialize)]
struct Item<'a> {
    name: Cow<'a, str>,
    r#type: Kind,
    size: Option<u64>,
    modified: Option<Timestamp>,
    href: Option<String>,
}

impl<'a> Item<'a> {
    fn new(entry: &'a Entry) -> Self {
        let nsec = i32::try_from(entry.modified.nsec).unwrap_or(0);
        Self {
            name: String::from_utf8_lossy(&entry.name),
            r#type: entry.kind,
            size: (entry.kind == Kind::File).then_some(entry.bytes),
            modified: Timestamp::new(entry.modified.sec, nsec).ok(),
            href: entry.href(),
        }
    }
}

/// The listing of the directory at the decoded `path`. Sizes are bytes, of files only; times are RFC 3339 in UTC, to the nanosecond.
/// What of a name is not UTF-8 is shown as U+FFFD, but `href` is exact.
///
/// # Errors
/// As serde_json's, which knows of none for such values.
pub fn json(path: &[u8], listing: &Listing) -> serde_json::Result<Vec<u8>> {
    let entries = listing.entries.iter().map(Item::new).collect();
    serde_json::to_vec(&Page { path: String::from_utf8_lossy(path), entries, complete: listing.complete })
}

#[cfg(test)]
mod tests {
    use fathom_io::Stamp;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn entry(name: &[u8], kind: Kind, bytes: u64, sec: i64, nsec: u32) -> Entry {
        Entry { name: name.to_vec(), kind, bytes, modified: Stamp { sec, nsec } }
    }

    fn value(path: &[u8], listing: &Listing) -> Value {
        serde_json::from_slice(&super::json(path, listing).unwrap()).unwrap()
    }

    #[test]
    fn a_listing_for_programs() {
        let entries = vec![
            entry(b"sub", Kind::Directory, 0, 0, 0),
            entry(b"\xff\"<", Kind::File, u64::MAX, 1_704_164_645, 120_000_000),
            entry(b"pipe", Kind::Other, 0, i64::MAX, 0),
        ];
        let expected = json!({
            "path": "/a\u{fffd}/",
            "entries": [
                {"name": "sub", "type": "directory", "size": null, "modified": "1970-01-01T00:00:00Z", "href": "./sub/"},
                {"name": "\u{fffd}\"<", "type": "file", "size": u64::MAX, "modified": "2024-01-02T03:04:05.12Z",
                 "href": "./%FF%22%3C"},
                {"name": "pipe", "type": "other", "size": null, "modified": null, "href": null},
            ],
            "complete": false,
        });
        assert_eq!(value(b"/a\xff/", &Listing { entries, complete: false }), expected);
    }

    #[test]
    fn an_empty_directory_has_an_empty_array() {
        let expected = json!({"path": "/", "entries": [], "complete": true});
        assert_eq!(value(b"/", &Listing { entries: Vec::new(), complete: true }), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn any_entry_comes_back(name in proptest::collection::vec(1u8.., 1..20), bytes: u64, sec: i64, nsec in 0u32..1_000_000_000) {
            let entries = vec![entry(&name, Kind::File, bytes, sec, nsec)];
            let page = value(b"/", &Listing { entries, complete: true });
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
