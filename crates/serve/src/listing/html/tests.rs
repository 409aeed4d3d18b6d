//! A golden page, and hostile names in a checker that parses pages more strictly than a browser.

use percent_encoding::percent_decode_str;
use proptest::prelude::*;

use super::super::{Listing, ListingView, PAGE_ENTRIES};
use super::*;

fn entry(name: &[u8], kind: EntryKind, bytes: u64, sec: i64) -> ListingEntry {
    ListingEntry { name: name.to_vec(), kind, bytes, mtime: FileTime { sec, nsec: 999_999_999 } }
}

fn page(path: &[u8], entries: Vec<ListingEntry>, complete: bool, order: SortOrder) -> String {
    shown(path, entries, complete, &ListingView { order, ..ListingView::default() })
}

fn shown(path: &[u8], entries: Vec<ListingEntry>, complete: bool, view: &ListingView) -> String {
    let listing = Listing { entries, complete };
    let page = listing.page(path, view, &mut |_| Ok(())).unwrap().unwrap();
    html(&page, None, &[], &mut |_| Ok(())).unwrap()
}

#[test]
fn a_readme_is_text_below_the_first_page() {
    let listing = Listing { entries: Vec::new(), complete: true };
    let readme =
        |is_cut| Readme { name: b"README<.md".to_vec(), text: b"# a <b>\n\tc & d\n".to_vec(), is_cut };
    let shown = |view: &ListingView, is_cut| {
        let page = listing.page(b"/", view, &mut |_| Ok(())).unwrap().unwrap();
        html(&page, Some(&readme(is_cut)), &[ArchiveFormat::TarGz], &mut |_| Ok(())).unwrap()
    };
    let page = shown(&ListingView::default(), false);
    let expected = "<h2>README&lt;.md</h2>\n<pre>\n# a &lt;b&gt;\n\tc &amp; d\n</pre></section>\n</body>";
    assert!(page.contains(expected), "{page}");
    let (before_table, _) = page.split_once("<table>").unwrap();
    assert!(before_table.contains("<a rel=\"nofollow\" href=\"?archive=tar.gz\">tar.gz</a></p>"));
    assert!(shown(&ListingView::default(), true).contains("d\n\n[...]</pre>"));
    assert!(
        !shown(&ListingView { filter: "a".to_owned(), ..ListingView::default() }, false).contains("<pre>")
    );
}

/// Returns the part of a page after its constant head.
fn body(page: &str) -> &str {
    page.split_once("<body>\n").unwrap().1
}

#[test]
fn a_small_listing() {
    let entries = vec![
        entry(b"d e", EntryKind::Directory, 0, 1_704_164_645),
        entry(b"a&b.txt", EntryKind::File, 9951, 0),
        entry(b"pipe", EntryKind::Other, 0, i64::MIN),
    ];
    let expected = "\
<header><nav aria-label=\"Path\"><h1><a href=\"../../\">/</a><a href=\"../\">x/</a><span aria-current=\"page\">&lt;y&gt;/</span></h1></nav>
<form role=\"search\"><input type=\"search\" name=\"filter\" placeholder=\"Filter names\" aria-label=\"Filter names\" value=\"\">\
<button>Filter</button></form></header>
<table>
<thead>
<tr><th scope=\"col\" aria-sort=\"ascending\"><a href=\"?sort=name&amp;order=desc\">Name</a></th>\
<th scope=\"col\"><a href=\"?sort=size&amp;order=desc\">Size</a></th>\
<th scope=\"col\"><a href=\"?sort=time&amp;order=desc\">Modified<span> (UTC)</span></a></th></tr>
</thead>
<tbody>
<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>
<tr><td><a href=\"./d%20e/\">d e/</a></td><td></td>\
<td><time datetime=\"2024-01-02T03:04:05Z\">2024-01-02<span> 03:04</span></time></td></tr>
<tr><td><a href=\"./a%26b.txt\">a&amp;b.txt</a></td><td title=\"9951 bytes\">9.8 KiB</td>\
<td><time datetime=\"1970-01-01T00:00:00Z\">1970-01-01<span> 00:00</span></time></td></tr>
<tr><td><span>pipe</span></td><td></td><td></td></tr>
</tbody>
</table>
<p>3 entries</p>
</body>
</html>
";
    let page = page(b"/x/<y>/", entries, true, SortOrder::default());
    assert_eq!(body(&page), expected);
    assert!(page.contains("<title>Index of /x/&lt;y&gt;/</title>"));
    assert!(page.contains("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"));
}

#[test]
fn the_root_has_no_parent_and_a_cut_is_told() {
    let page = page(b"/", vec![entry(b"a", EntryKind::File, 0, 0)], false, SortOrder::default());
    assert!(body(&page).starts_with(
        "<header><nav aria-label=\"Path\"><h1><span aria-current=\"page\">/</span></h1></nav>\n"
    ));
    assert!(!body(&page).contains("../"));
    assert!(
        page.contains(
            "<p>1 entries were read and sorted; there are more, which only the filter searches</p>"
        )
    );
}

#[test]
fn the_head_tells_the_order_and_turns_it() {
    let head = |key, descending| page(b"/", Vec::new(), true, SortOrder { key, descending });
    let table = [
        (
            SortKey::Name,
            true,
            "<th scope=\"col\" aria-sort=\"descending\"><a href=\"?sort=name&amp;order=asc\">Name</a></th>",
        ),
        (
            SortKey::Size,
            false,
            "<th scope=\"col\" aria-sort=\"ascending\"><a href=\"?sort=size&amp;order=desc\">Size</a></th>",
        ),
        (SortKey::Size, false, "<th scope=\"col\"><a href=\"?sort=name&amp;order=asc\">Name</a></th>"),
        (
            SortKey::Time,
            true,
            "aria-sort=\"descending\"><a href=\"?sort=time&amp;order=asc\">Modified<span> (UTC)</span></a></th>",
        ),
    ];
    for (key, descending, expected) in table {
        let head = head(key, descending);
        assert!(head.contains(expected), "{expected} in {head}");
        assert_eq!(body(&head).matches("aria-sort=").count(), 1);
    }
}

#[test]
fn a_filter_is_kept_by_every_link_and_stays_text() {
    let order = SortOrder { key: SortKey::Size, descending: true };
    let view = ListingView { order, filter: "<b>\"'&".to_owned(), page: 0 };
    let page = shown(
        b"/",
        vec![entry(b"x<B>\"'&", EntryKind::File, 1, 0), entry(b"y", EntryKind::File, 1, 0)],
        true,
        &view,
    );
    let filter = "filter=%3Cb%3E%22%27%26";
    for expected in [
        "<input type=\"hidden\" name=\"sort\" value=\"size\"><input type=\"hidden\" name=\"order\" value=\"desc\">",
        "value=\"&lt;b&gt;&quot;&#39;&amp;\"",
        &format!("<a href=\"?sort=name&amp;order=asc&amp;{filter}\">Name</a>"),
        "<p>1 entry matches the filter</p>",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert!(!page.contains("\"./y\"") && !page.contains("<b>"));
}

#[test]
fn pages_lead_to_each_other() {
    let entries: Vec<_> = (0..2 * PAGE_ENTRIES + 1)
        .map(|number| entry(format!("{number:05}").as_bytes(), EntryKind::File, 0, 0))
        .collect();
    for (number, first, links) in [
        (0, "00000", &["<a rel=\"next\" href=\"?sort=name&amp;order=asc&amp;page=2\">Next page</a>"][..]),
        (
            1,
            "10000",
            &[
                "<a rel=\"prev\" href=\"?sort=name&amp;order=asc\">Previous page</a><span>Page 2 of 3</span>",
                "<a rel=\"next\" href=\"?sort=name&amp;order=asc&amp;page=3\">",
            ],
        ),
        (2, "20000", &["<a rel=\"prev\" href=\"?sort=name&amp;order=asc&amp;page=2\">"]),
    ] {
        let page =
            shown(b"/x/", entries.clone(), true, &ListingView { page: number, ..ListingView::default() });
        let rows = page.split_once("<tbody>\n").unwrap().1;
        let up =
            if number == 0 { "<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n" } else { "" };
        assert!(rows.starts_with(&format!("{up}<tr><td><a href=\"./{first}\">")), "{number}");
        for link in links {
            assert_eq!(page.matches(link).count(), 2, "above and below: {link}");
        }
        assert_eq!(page.matches("rel=").count(), 2 * links.len());
        assert!(page.contains("<p>20001 entries</p>"));
    }
}

#[test]
fn times_beyond_the_calendar_are_left_out() {
    let shown = |sec| {
        let mut out = String::new();
        time(FileTime { sec, nsec: 0 }, &mut out);
        out
    };
    assert!(shown(-62_135_596_800).starts_with("<time datetime=\"0001-01-01T00:00:00Z\">"));
    assert!(shown(-1).starts_with("<time datetime=\"1969-12-31T23:59:59Z\">"));
    assert!(shown(253_402_207_200).starts_with("<time datetime=\"9999-12-30T22:00:00Z\">"));
    for sec in [-62_135_596_801, i64::MIN, i64::MAX, 253_402_300_800] {
        assert_eq!(shown(sec), "", "{sec}");
    }
}

/// A token of a page.
#[derive(Debug, PartialEq)]
enum HtmlToken {
    /// The text between `<` and `>` without the value of `href` or `title`, and that value.
    Tag(String, Option<String>),
    /// The decoded text between tags.
    Text(String),
}

fn decode(text: &str) -> String {
    let parts: Vec<_> = text.split('&').collect();
    let decoded = parts[1..].iter().map(|part| {
        let (entity, rest) = part.split_once(';').expect("an entity ends");
        let symbol = match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            other => panic!("{other} is no entity of ours"),
        };
        format!("{symbol}{rest}")
    });
    std::iter::once(parts[0].to_owned()).chain(decoded).collect()
}

/// Splits a page's body into tokens; panics where a strict parser would stop.
fn tokens(mut rest: &str) -> Vec<HtmlToken> {
    let mut tokens = Vec::new();
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains(['>', '"', '\'']), "{text}");
        if !matches!(text, "" | "\n") {
            tokens.push(HtmlToken::Text(decode(text)));
        }
        let (tag, after) = after.split_once('>').expect("a tag ends");
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "{tag}");
        let value = ["href=\"", "title=\""].iter().find_map(|attribute| {
            let (before, value) = tag.split_once(attribute)?;
            let (value, after) = value.split_once('"')?;
            Some((format!("{before}{attribute}{after}"), decode(value)))
        });
        tokens.push(match value {
            Some((tag, value)) => HtmlToken::Tag(tag, Some(value)),
            None => HtmlToken::Tag(tag.to_owned(), None),
        });
        rest = after;
    }
    assert_eq!(rest.trim(), "");
    tokens
}

/// Returns the tags without the values of `href` and `title`.
fn tags(page: &str) -> Vec<String> {
    let tag = |token| match token {
        HtmlToken::Tag(tag, _) => Some(tag),
        HtmlToken::Text(_) => None,
    };
    tokens(body(page)).into_iter().filter_map(tag).collect()
}

/// Returns the targets and texts of the links to entries.
fn links(page: &str) -> Vec<(String, String)> {
    let tokens = tokens(body(page));
    let link = |pair: &[HtmlToken]| match pair {
        [HtmlToken::Tag(_, Some(href)), HtmlToken::Text(text)] if href.starts_with("./") => {
            Some((href.clone(), text.clone()))
        }
        _ => None,
    };
    tokens.windows(2).filter_map(link).collect()
}

fn check(path: &[u8], entries: &[ListingEntry]) {
    let page = self::page(path, entries.to_vec(), true, SortOrder::default());
    // A page with harmless names has the same structure.
    let mut sorted = entries.to_vec();
    sorted.sort_by(|a, b| SortOrder::default().compare(a, b));
    let plain = |(at, entry): (usize, &ListingEntry)| ListingEntry {
        name: format!("{at:09}").into(),
        ..entry.clone()
    };
    let depth = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).count();
    let above = format!("/{}", "x/".repeat(depth));
    let calm = sorted.iter().enumerate().map(plain).collect();
    assert_eq!(tags(&page), tags(&self::page(above.as_bytes(), calm, true, SortOrder::default())));
    let served = sorted.iter().filter(|entry| entry.kind != EntryKind::Other);
    let links = links(&page);
    assert_eq!(links.len(), served.clone().count());
    for (entry, (href, text)) in served.zip(links) {
        let slash = if entry.kind == EntryKind::Directory { "/" } else { "" };
        let name = href.strip_prefix("./").unwrap().strip_suffix(slash).unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)), "{href}");
        assert_eq!(percent_decode_str(name).collect::<Vec<_>>(), entry.name, "{href}");
        assert!(!text.contains(char::is_control), "{text:?}");
        if entry.name.is_ascii() && !entry.name.iter().any(u8::is_ascii_control) {
            assert_eq!(text.as_bytes(), [&entry.name, slash.as_bytes()].concat());
        }
    }
}

#[test]
fn hostile_names_stay_text_and_are_reachable() {
    let names: [&[u8]; 14] = [
        b"\"><script>alert(1)</script>",
        b"' onmouseover='alert(1)",
        b"javascript:alert(1)",
        b"//example.org",
        b"a\nb\r\n",
        b"%20",
        b"#[]{}?",
        b"&lt;",
        b"</a></td></table></style>",
        b"<!--",
        b" lead and trail ",
        "\u{1f600}\u{202e}gpj.exe".as_bytes(),
        b"\xff\xfe\x80",
        b"\x1b[31m\x07",
    ];
    for kind in [EntryKind::Directory, EntryKind::File, EntryKind::Other] {
        let entries: Vec<_> = names.iter().map(|name| entry(name, kind, 1, 0)).collect();
        check(b"/", &entries);
        let path = [
            b"/".to_vec(),
            names.iter().filter(|name| !name.contains(&b'/')).copied().collect::<Vec<_>>().join(&b'/'),
            b"/".to_vec(),
        ];
        check(&path.concat(), &entries);
    }
}

/// Generates any bytes that a name may have, with a preference for those with a meaning in HTML and
/// URLs.
fn any_name() -> impl Strategy<Value = Vec<u8>> {
    let special: Vec<u8> = b"<>\"'&;:#?%/\\ \n=".iter().copied().filter(|byte| *byte != b'/').collect();
    let byte = prop_oneof![proptest::sample::select(special), 1u8..b'/', b'0'..];
    proptest::collection::vec(byte, 1..24)
}

proptest! {
    #![proptest_config(fathom_cases::property(1000))]

    #[test]
    fn any_names_stay_text_and_are_reachable(
        names in proptest::collection::vec((any_name(), 0..3u8, any::<u64>(), any::<i64>()), 0..8),
        above in proptest::collection::vec(any_name(), 0..4),
    ) {
        let kinds = [EntryKind::Directory, EntryKind::File, EntryKind::Other];
        let entry = |(name, kind, bytes, sec): &(Vec<u8>, u8, _, _)| entry(name, kinds[usize::from(*kind)], *bytes, *sec);
        let path: Vec<u8> = above.iter().flat_map(|name| [b"/", &name[..]].concat()).chain(*b"/").collect();
        check(&path, &names.iter().map(entry).collect::<Vec<_>>());
    }
}
