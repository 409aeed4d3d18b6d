//! Formats a listing as HTML: a table without scripts, whose header cells sort it and whose form
//! filters it, in pages.

use std::fmt::Write;

use fathom_io::{Errno, FileTime};
use fathom_text::human::BlockSize;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::entry::{EntryKind, ListingEntry};
use super::page::ListingPage;
use super::readme::Readme;
use super::sort::{SortKey, SortOrder};
use super::tick::Tick;
use crate::archive::format::ArchiveFormat;
use crate::pages;

/// Rows between two ticks.
const TICK_EVERY: usize = 64;

/// Formats a page as HTML, with links to `archives`. The first page without a filter includes the
/// directory's README. All links are relative, so the page is correct under any prefix. Send it
/// with [`pages::CSP_FORM`].
///
/// # Errors
/// The error of `tick`.
pub fn html(
    page: &ListingPage<'_>,
    readme: Option<&Readme>,
    archives: &[ArchiveFormat],
    tick: Tick<'_>,
) -> Result<String, Errno> {
    let mut out = String::new();
    pages::open(&[b"Index of ", page.path].concat(), &mut out);
    out.push_str("<header>");
    breadcrumbs(page.path, &mut out);
    form(page, &mut out);
    out.push_str("</header>\n");
    archive_links(archives, &mut out);
    page_links(page, &mut out);
    out.push_str("<table>\n<thead>\n<tr>");
    for key in [SortKey::Name, SortKey::Size, SortKey::Time] {
        heading(page, key, &mut out);
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    if page.path != b"/" && page.view.page == 0 {
        out.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for rows in page.entries.chunks(TICK_EVERY) {
        rows.iter().for_each(|entry| row(entry, &mut out));
        tick(out.capacity())?;
    }
    out.push_str("</tbody>\n</table>\n");
    count(page, &mut out);
    page_links(page, &mut out);
    if let Some(readme) = readme.filter(|_| page.view.page == 0 && page.view.filter.is_empty()) {
        readme_section(readme, &mut out);
    }
    out.push_str(pages::CLOSE);
    tick(out.capacity())?;
    Ok(out)
}

/// Appends the breadcrumbs: the directories down to this one, each but the last a link.
fn breadcrumbs(path: &[u8], out: &mut String) {
    let names = || path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    let depth = names().count();
    out.push_str("<nav aria-label=\"Path\"><h1>");
    breadcrumb(b"", depth, out);
    names().zip((0..depth).rev()).for_each(|(name, above)| breadcrumb(name, above, out));
    out.push_str("</h1></nav>\n");
}

/// Appends the breadcrumb of the directory `name`, which is `above` levels above this one.
fn breadcrumb(name: &[u8], above: usize, out: &mut String) {
    if above == 0 {
        out.push_str("<span aria-current=\"page\">");
    } else {
        out.push_str("<a href=\"");
        (0..above).for_each(|_| out.push_str("../"));
        out.push_str("\">");
    }
    pages::escape(name, out);
    out.push_str(if above == 0 { "/</span>" } else { "/</a>" });
}

/// Appends the form that filters by name. It keeps the order, and leads to the first page.
fn form(page: &ListingPage<'_>, out: &mut String) {
    out.push_str("<form role=\"search\">");
    let order = page.view.order;
    if order != SortOrder::default() {
        for (name, value) in [("sort", order.key.word()), ("order", order.direction())] {
            write(out, format_args!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">"));
        }
    }
    out.push_str(
        "<input type=\"search\" name=\"filter\" placeholder=\"Filter names\" aria-label=\"Filter names\" value=\"",
    );
    pages::escape(page.view.filter.as_bytes(), out);
    out.push_str("\"><button>Filter</button></form>");
}

/// Appends links to the previous and the next page, if there are several pages.
fn page_links(page: &ListingPage<'_>, out: &mut String) {
    if page.pages() == 1 {
        return;
    }
    out.push_str("<nav aria-label=\"Pages\"><p>");
    let link = |out: &mut String, to: usize, rel: &str, label: &str| {
        let query = page.view.query(page.view.order, to, "&amp;");
        write(out, format_args!("<a rel=\"{rel}\" href=\"{query}\">{label}</a>"));
    };
    if let Some(before) = page.view.page.checked_sub(1) {
        link(out, before, "prev", "Previous page");
    }
    write(out, format_args!("<span>Page {} of {}</span>", page.view.page.saturating_add(1), page.pages()));
    if let Some(next) = page.next() {
        link(out, next, "next", "Next page");
    }
    out.push_str("</p></nav>\n");
}

/// Appends the header cell of a column. Its link sorts by the column: in the reverse order if the
/// rows are sorted by it, else in the usual first order.
fn heading(page: &ListingPage<'_>, key: SortKey, out: &mut String) {
    let label = match key {
        SortKey::Name => "Name",
        SortKey::Size => "Size",
        SortKey::Time => "Modified<span> (UTC)</span>",
    };
    let order = page.view.order;
    let (sorted, descending) = match (order.key == key, order.descending) {
        (true, true) => (" aria-sort=\"descending\"", false),
        (true, false) => (" aria-sort=\"ascending\"", true),
        (false, _) => ("", key != SortKey::Name),
    };
    let query = page.view.query(SortOrder { key, descending }, 0, "&amp;");
    write(out, format_args!("<th scope=\"col\"{sorted}><a href=\"{query}\">{label}</a></th>"));
}

fn row(entry: &ListingEntry, out: &mut String) {
    out.push_str("<tr><td>");
    name(entry, out);
    out.push_str("</td>");
    size(entry, out);
    out.push_str("<td>");
    time(entry.mtime, out);
    out.push_str("</td></tr>\n");
}

fn name(entry: &ListingEntry, out: &mut String) {
    let href = entry.href();
    match &href {
        // The encoded address has no character that HTML would need escaped.
        Some(href) => ["<a href=\"", href, "\">"].iter().for_each(|part| out.push_str(part)),
        None => out.push_str("<span>"),
    }
    pages::escape(&entry.name, out);
    if entry.kind == EntryKind::Directory {
        out.push('/');
    }
    out.push_str(if href.is_some() { "</a>" } else { "</span>" });
}

fn size(entry: &ListingEntry, out: &mut String) {
    if entry.kind != EntryKind::File {
        return out.push_str("<td></td>");
    }
    let mut human = Vec::with_capacity(8);
    BlockSize::HUMAN.write(entry.bytes, &mut human);
    let human = String::from_utf8_lossy(&human);
    let digits = human.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &human[digits.len()..] {
        "" => "B".to_owned(),
        letter => format!("{letter}iB"),
    };
    let bytes = if entry.bytes == 1 { "byte" } else { "bytes" };
    write(out, format_args!("<td title=\"{} {bytes}\">{digits} {unit}</td>", entry.bytes));
}

fn time(mtime: FileTime, out: &mut String) {
    let Some(time) = utc(mtime) else { return };
    let (year, month, day) = (time.year(), time.month(), time.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    write(
        out,
        format_args!("<time datetime=\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z\">"),
    );
    write(out, format_args!("{year:04}-{month:02}-{day:02}<span> {hour:02}:{minute:02}</span></time>"));
}

/// Converts to UTC, for years from 1, as HTML requires (section 2.3.5), to 9999.
fn utc(stamp: FileTime) -> Option<DateTime> {
    let time = Timestamp::new(stamp.sec, i32::try_from(stamp.nsec).ok()?).ok()?;
    Some(Offset::UTC.to_datetime(time)).filter(|time| time.year() >= 1)
}

/// Appends links to archives of the directory.
fn archive_links(archives: &[ArchiveFormat], out: &mut String) {
    if archives.is_empty() {
        return;
    }
    out.push_str("<nav aria-label=\"Archives\"><p><span>Download as:</span>");
    for extension in archives.iter().map(|format| format.extension()) {
        write(out, format_args!("<a rel=\"nofollow\" href=\"?archive={extension}\">{extension}</a>"));
    }
    out.push_str("</p></nav>\n");
}

/// Appends the README as text: its markup is escaped.
fn readme_section(readme: &Readme, out: &mut String) {
    out.push_str("<section aria-label=\"Read me\"><h2>");
    pages::escape(&readme.name, out);
    out.push_str("</h2>\n<pre>");
    // HTML parsers drop the first line end of a `pre`.
    out.push('\n');
    pages::escape_lines(&readme.text, out);
    out.push_str(if readme.is_cut { "\n[...]</pre></section>\n" } else { "</pre></section>\n" });
}

fn count(page: &ListingPage<'_>, out: &mut String) {
    let is_filtered = !page.view.filter.is_empty();
    let matching = if is_filtered { " match the filter" } else { "" };
    let more = match (page.complete, is_filtered) {
        (true, _) => "",
        (false, true) => ", in the part of the directory that was read",
        (false, false) => " were read and sorted; there are more, which only the filter searches",
    };
    match (page.total, page.complete) {
        (1, true) => write(out, format_args!("<p>1 entry{}</p>\n", matching.replace("match", "matches"))),
        (total, _) => write(out, format_args!("<p>{total} entries{matching}{more}</p>\n")),
    }
}

fn write(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all text");
}

#[cfg(test)]
mod tests;
