//! A listing for people: a table that needs no script, whose head sorts it and whose form filters
//! it, in pages.

use std::fmt::Write;

use fathom_io::{Errno, Stamp};
use fathom_text::human::BlockSize;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::{Entry, Key, Kind, Order, Page, Readme, Tick};
use crate::archive::Format;
use crate::pages;

/// Rows between two ticks.
const TICK_EVERY: usize = 64;

/// Formats a page as HTML, the first one without a filter with the directory's README below, all
/// with links to `archives`. All its links are relative, so it is right under any prefix. Send it
/// with [`pages::CSP_FORM`].
///
/// # Errors
/// As `tick`.
pub fn html(
    page: &Page<'_>,
    readme: Option<&Readme>,
    archives: &[Format],
    tick: Tick<'_>,
) -> Result<String, Errno> {
    let mut out = String::new();
    pages::open(&[b"Index of ", page.path].concat(), &mut out);
    out.push_str("<header>");
    way(page.path, &mut out);
    form(page, &mut out);
    out.push_str("</header>\n");
    turn(page, &mut out);
    out.push_str("<table>\n<thead>\n<tr>");
    for key in [Key::Name, Key::Size, Key::Time] {
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
    turn(page, &mut out);
    offer(archives, &mut out);
    if let Some(readme) = readme.filter(|_| page.view.page == 0 && page.view.filter.is_empty()) {
        below(readme, &mut out);
    }
    out.push_str(pages::CLOSE);
    tick(out.capacity())?;
    Ok(out)
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

/// The form that filters by name. It keeps the order, and begins with the first page.
fn form(page: &Page<'_>, out: &mut String) {
    out.push_str("<form role=\"search\">");
    let order = page.view.order;
    if order != Order::default() {
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

/// The links to the pages before and after this one, where there are several.
fn turn(page: &Page<'_>, out: &mut String) {
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

/// A column's head. Its link sorts by it: the other way round if that is how the rows are, else the way that is wanted first.
fn heading(page: &Page<'_>, key: Key, out: &mut String) {
    let label = match key {
        Key::Name => "Name",
        Key::Size => "Size",
        Key::Time => "Modified<span> (UTC)</span>",
    };
    let order = page.view.order;
    let (sorted, descending) = match (order.key == key, order.descending) {
        (true, true) => (" aria-sort=\"descending\"", false),
        (true, false) => (" aria-sort=\"ascending\"", true),
        (false, _) => ("", key != Key::Name),
    };
    let query = page.view.query(Order { key, descending }, 0, "&amp;");
    write(out, format_args!("<th scope=\"col\"{sorted}><a href=\"{query}\">{label}</a></th>"));
}

fn row(entry: &Entry, out: &mut String) {
    out.push_str("<tr><td>");
    name(entry, out);
    out.push_str("</td>");
    size(entry, out);
    out.push_str("<td>");
    time(entry.mtime, out);
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

fn time(mtime: Stamp, out: &mut String) {
    let Some(time) = utc(mtime) else { return };
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

/// Links to archives of the directory.
fn offer(archives: &[Format], out: &mut String) {
    if archives.is_empty() {
        return;
    }
    out.push_str("<nav aria-label=\"Archives\"><p><span>All of it as</span>");
    for extension in archives.iter().map(|format| format.extension()) {
        write(out, format_args!("<a rel=\"nofollow\" href=\"?archive={extension}\">{extension}</a>"));
    }
    out.push_str("</p></nav>\n");
}

/// The README, as text: no markup of it is the page's.
fn below(readme: &Readme, out: &mut String) {
    out.push_str("<section aria-label=\"Read me\"><h2>");
    pages::escape(&readme.name, out);
    out.push_str("</h2>\n<pre>");
    // A parser of HTML drops the first line end of a `pre`.
    out.push('\n');
    pages::escape_lines(&readme.text, out);
    out.push_str(if readme.is_cut { "\n[...]</pre></section>\n" } else { "</pre></section>\n" });
}

fn count(page: &Page<'_>, out: &mut String) {
    let more = if page.complete { "" } else { " were read: there are more" };
    let matching = if page.view.filter.is_empty() { "" } else { " match the filter" };
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
