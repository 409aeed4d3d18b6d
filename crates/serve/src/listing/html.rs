//! A listing for people: a table that needs no script, whose head sorts it.

use std::fmt::Write;

use fathom_io::Stamp;
use fathom_text::human::BlockSize;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::{Entry, Key, Kind, Listing, Order};
use crate::pages;

/// About what the frame takes.
const PAGE_BYTES: usize = 4096;
/// About what a row takes besides the name, which is there twice.
const ROW_BYTES: usize = 160;

/// The page of the directory at the decoded `path`, which begins and ends with a slash. All its links are relative, so it is right under
/// any prefix. It says that it is in this order; putting it so is [`Listing::sort`]'s. Send it with [`pages::CSP`].
#[must_use]
pub fn html(path: &[u8], listing: &Listing, order: Order) -> String {
    let mut out = String::with_capacity(PAGE_BYTES + listing.entries.len().saturating_mul(ROW_BYTES));
    pages::open(&[b"Index of ", path].concat(), &mut out);
    way(path, &mut out);
    out.push_str("<table>\n<thead>\n<tr>");
    for key in [Key::Name, Key::Size, Key::Time] {
        heading(key, order, &mut out);
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    if path != b"/" {
        out.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    listing.entries.iter().for_each(|entry| row(entry, &mut out));
    out.push_str("</tbody>\n</table>\n");
    count(listing, &mut out);
    out.push_str(pages::CLOSE);
    out
}

/// The directories down to this one, each but the last a link.
fn way(path: &[u8], out: &mut String) {
    let names = || path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    let depth = names().count();
    out.push_str("<nav aria-label=\"Path\"><h1>");
    step(b"", depth, out);
    names().zip((0..depth).rev()).for_each(|(name, above)| step(name, above, out));
    out.push_str("</h1></nav>\n");
}

/// The directory `name`, so many above this one.
fn step(name: &[u8], above: usize, out: &mut String) {
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

/// A column's head. Its link sorts by it: the other way round if that is how the rows are, else the way that is wanted first.
fn heading(key: Key, order: Order, out: &mut String) {
    let (word, label) = match key {
        Key::Name => ("name", "Name"),
        Key::Size => ("size", "Size"),
        Key::Time => ("time", "Modified<span> (UTC)</span>"),
    };
    let (sorted, descending) = match (order.key == key, order.descending) {
        (true, true) => (" aria-sort=\"descending\"", false),
        (true, false) => (" aria-sort=\"ascending\"", true),
        (false, _) => ("", key != Key::Name),
    };
    let direction = if descending { "desc" } else { "asc" };
    let link = ["<a href=\"?sort=", word, "&amp;order=", direction, "\">", label, "</a>"];
    ["<th scope=\"col\"", sorted, ">"].iter().chain(&link).for_each(|part| out.push_str(part));
    out.push_str("</th>");
}

fn row(entry: &Entry, out: &mut String) {
    out.push_str("<tr><td>");
    name(entry, out);
    out.push_str("</td>");
    size(entry, out);
    out.push_str("<td>");
    time(entry.modified, out);
    out.push_str("</td></tr>\n");
}

fn name(entry: &Entry, out: &mut String) {
    let href = entry.href();
    match &href {
        // Encoded, it has nothing that HTML would want escaped.
        Some(href) => ["<a href=\"", href, "\">"].iter().for_each(|part| out.push_str(part)),
        None => out.push_str("<span>"),
    }
    pages::escape(&entry.name, out);
    if entry.kind == Kind::Directory {
        out.push('/');
    }
    out.push_str(if href.is_some() { "</a>" } else { "</span>" });
}

fn size(entry: &Entry, out: &mut String) {
    if entry.kind != Kind::File {
        return out.push_str("<td></td>");
    }
    let mut human = Vec::with_capacity(8);
    BlockSize::HUMAN.write(entry.bytes, &mut human);
    write(out, format_args!("<td title=\"{} bytes\">", entry.bytes));
    out.push_str(&String::from_utf8_lossy(&human));
    out.push_str("</td>");
}

fn time(modified: Stamp, out: &mut String) {
    let Some(time) = utc(modified) else { return };
    let (year, month, day) = (time.year(), time.month(), time.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    write(
        out,
        format_args!("<time datetime=\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z\">"),
    );
    write(out, format_args!("{year:04}-{month:02}-{day:02}<span> {hour:02}:{minute:02}</span></time>"));
}

/// In universal time, if it is of a year that HTML knows (section 2.3.5: from 1 on) and that has four digits.
fn utc(stamp: Stamp) -> Option<DateTime> {
    let time = Timestamp::new(stamp.sec, i32::try_from(stamp.nsec).ok()?).ok()?;
    Some(Offset::UTC.to_datetime(time)).filter(|time| time.year() >= 1)
}

fn count(listing: &Listing, out: &mut String) {
    let shown = listing.entries.len();
    match (shown, listing.complete) {
        (1, true) => out.push_str("<p>1 entry</p>\n"),
        (_, true) => write(out, format_args!("<p>{shown} entries</p>\n")),
        (_, false) => write(out, format_args!("<p>{shown} of the entries: there are more</p>\n")),
    }
}

fn write(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all text");
}

#[cfg(test)]
mod tests;
