//! The rows of a listing as a table. Columns that do not fit beside the name are left out.

use fathom_io::FileType;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use super::canvas::{BOLD, Canvas, REVERSED};
use super::{status, text};
use crate::listing::{Listing, is_gone, is_linked};
use crate::source::{Place, Row, RowState};
use crate::state::State;

/// The least number of cells of a name.
const NAME_CELLS_MIN: u16 = 18;
/// The cells of the marks and the size, with the space behind them.
const FIXED_CELLS: u16 = 10;

/// A column with its number of cells, including the space behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TableColumn {
    Share,
    Growth,
    Count,
    Mtime,
    Owner,
}

impl TableColumn {
    /// The columns in their order.
    const ALL: [TableColumn; 5] = [Self::Share, Self::Growth, Self::Count, Self::Mtime, Self::Owner];
    /// The columns in the order in which they are given room: the growth was asked for.
    const BY_NEED: [TableColumn; 5] = [Self::Growth, Self::Share, Self::Count, Self::Mtime, Self::Owner];

    fn cells(self, width: u16) -> u16 {
        match self {
            Self::Share if width < 60 => 7,
            Self::Share => 17,
            Self::Growth => 8,
            Self::Count => 7,
            Self::Mtime => 11,
            Self::Owner => 9,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Growth => "growth",
            Self::Count => "count",
            Self::Mtime => "newest",
            Self::Owner => "owner",
        }
    }

    fn is_wanted(self, state: &State, listing: &Listing) -> bool {
        match self {
            Self::Share => state.columns.graph,
            Self::Growth => listing.has_growth(),
            Self::Count => state.columns.counts,
            Self::Mtime => state.columns.mtime,
            Self::Owner => state.columns.owner,
        }
    }
}

/// Returns the columns that fit.
fn columns(state: &State, listing: &Listing, width: u16) -> Vec<TableColumn> {
    let mut used = FIXED_CELLS + NAME_CELLS_MIN;
    let mut fits = |column: &TableColumn| {
        let is_shown = column.is_wanted(state, listing) && used + column.cells(width) <= width;
        used += if is_shown { column.cells(width) } else { 0 };
        is_shown
    };
    let fitting: Vec<TableColumn> = TableColumn::BY_NEED.into_iter().filter(|column| fits(column)).collect();
    TableColumn::ALL.into_iter().filter(|column| fitting.contains(column)).collect()
}

/// Draws the visible rows. Returns their number.
pub(super) fn render(state: &State, canvas: &mut Canvas<'_>, area: Rect) -> usize {
    let Some(listing) = &state.listing else {
        status::nothing("reading", canvas, area);
        return 0;
    };
    if listing.is_empty() {
        let text = if listing.hidden() > 0 { "nothing to show with this filter" } else { "empty" };
        status::nothing(text, canvas, area);
        return 0;
    }
    let columns = columns(state, listing, area.width);
    if area.y > 1 {
        titles(&columns, canvas, area);
    }
    let end = listing.len().min(state.offset + usize::from(area.height));
    for (y, position) in (area.y..).zip(state.offset..end) {
        draw(state, listing, position, &columns, canvas, Rect { y, height: 1, ..area });
    }
    end.saturating_sub(state.offset)
}

fn titles(columns: &[TableColumn], canvas: &mut Canvas<'_>, area: Rect) {
    let y = area.y - 1;
    canvas.put_right(2, y, 7, "size", BOLD);
    let mut x = FIXED_CELLS;
    for column in columns {
        let cells = column.cells(area.width);
        match column {
            TableColumn::Growth | TableColumn::Count => {
                canvas.put_right(x, y, cells - 1, column.title(), BOLD);
            }
            _ => drop(canvas.put(x, y, cells - 1, column.title(), BOLD)),
        }
        x += cells;
    }
    canvas.put(x, y, area.width.saturating_sub(x), "name", BOLD);
}

/// Draws a row.
fn draw(
    state: &State,
    listing: &Listing,
    position: usize,
    columns: &[TableColumn],
    canvas: &mut Canvas<'_>,
    line: Rect,
) {
    let Some(row) = listing.row(position) else { return };
    let y = line.y;
    let place = listing.place(position);
    let is_marked = place.is_some_and(|place| state.marks.contains(place, row));
    let plain = Style::new();
    if is_marked {
        canvas.put(0, y, 1, "*", canvas.color(Color::Yellow));
    }
    let is_known = matches!(row.state, RowState::Complete | RowState::Excluded);
    let color = if is_known { Color::Reset } else { Color::Red };
    canvas.put(1, y, 1, flag(row), canvas.color(color));
    let size = state.arrangement.size(&row.amount);
    if !is_gone(row) {
        canvas.put_right(2, y, 7, &text::size(size, state.settings.units), plain);
    }
    let mut x = FIXED_CELLS;
    for column in columns {
        let cells = column.cells(line.width);
        let room = cells - 1;
        match column {
            TableColumn::Share if is_gone(row) => {}
            TableColumn::Share => share(size, listing.size(), canvas, x, y, room),
            TableColumn::Growth => growth(state, row, canvas, x, y, room),
            TableColumn::Count => canvas.put_right(x, y, room, &entries(row), plain),
            TableColumn::Mtime => {
                let time = newest(state, row);
                // The time of day is in the information about the entry.
                canvas.put(x, y, room, time.split(' ').next().unwrap_or_default(), plain);
            }
            TableColumn::Owner => drop(canvas.put(x, y, room, &owner(state, row), plain)),
        }
        x += cells;
    }
    let name = shown_name(state, row, place, listing);
    let style =
        if row.file_type == FileType::Directory { canvas.color(Color::Blue).patch(BOLD) } else { plain };
    canvas.put(x, y, line.width.saturating_sub(x), &name, style);
    if position == state.cursor {
        canvas.paint(line, REVERSED);
    }
}

fn share(size: u64, sum: u64, canvas: &mut Canvas<'_>, x: u16, y: u16, room: u16) {
    let style = canvas.color(Color::Green);
    if room < 16 {
        canvas.put(x, y, room, &canvas.bar(size, sum, room), style);
        return;
    }
    let per_mille = u128::from(size) * 1000 / u128::from(sum.max(1));
    canvas.put_right(x, y, 6, &format!("{}.{}%", per_mille / 10, per_mille % 10), Style::new());
    canvas.put(x + 7, y, room - 7, &canvas.bar(size, sum, room - 7), style);
}

fn growth(state: &State, row: &Row, canvas: &mut Canvas<'_>, x: u16, y: u16, room: u16) {
    let grown = row.growth.as_ref().map(|growth| state.arrangement.size(growth));
    let color = match grown {
        Some(..0) => Color::Green,
        Some(0) => Color::Reset,
        None if row.state == RowState::Walking => Color::Reset,
        Some(_) | None => Color::Red,
    };
    let text = match grown {
        Some(grown) => text::growth(grown, state.settings.units),
        None if row.state == RowState::Walking => "?".to_owned(),
        None => "new".to_owned(),
    };
    canvas.put_right(x, y, room, &text, canvas.color(color));
}

/// Returns the number of entries below a directory.
fn entries(row: &Row) -> String {
    let is_counted = row.file_type == FileType::Directory && !is_gone(row);
    if is_counted { text::count(row.amount.entries) } else { String::new() }
}

/// Returns the newest time; no text if it is unknown.
pub(super) fn newest(state: &State, row: &Row) -> String {
    row.newest_mtime_s.map_or_else(String::new, |newest| text::time(newest, &state.settings.times))
}

/// Returns the name of the owner; no text if it is unknown.
pub(super) fn owner(state: &State, row: &Row) -> String {
    let Some(uid) = row.uid else { return String::new() };
    let mut name = Vec::new();
    state.settings.context.owners.write(fathom_inventory::OwnerKind::User, uid, &mut name);
    text::message(&name)
}

/// Returns the name of a row with a slash behind directories; for files of several directories, the
/// path below the current one.
fn shown_name(state: &State, row: &Row, place: Option<&Place>, listing: &Listing) -> String {
    let charset = state.settings.context.charset;
    if let (true, Some(place)) = (listing.is_mixed(), place) {
        let path = place.child(&row.name);
        let current = state.place.as_ref().filter(|current| current.root == place.root);
        let below = current.and_then(|current| path.below.strip_prefix(&current.below[..]));
        let shown = match below {
            Some(below) => below.strip_prefix(b"/").unwrap_or(below).to_vec(),
            None => state.shown_path(&path),
        };
        return text::name(&shown, charset);
    }
    let mut name = text::name(&row.name, charset);
    if row.file_type == FileType::Directory && !name.ends_with('/') {
        name.push('/');
    }
    if row.shared > 0 {
        name.push_str(&format!(" ({} shared)", text::size(row.shared, state.settings.units)));
    }
    name
}

/// Returns the letter of what is special about a row: most are ncdu's.
fn flag(row: &Row) -> &'static str {
    match row.state {
        RowState::Complete if is_linked(row) => "H",
        RowState::Complete => match row.file_type {
            FileType::Directory if row.amount.entries == 0 => "e",
            FileType::Directory | FileType::Regular | FileType::Unknown => " ",
            _ => "@",
        },
        RowState::Walking => "~",
        RowState::Excluded => "<",
        RowState::Partial => ".",
        RowState::Unreadable => "!",
        RowState::Skipped => ">",
        RowState::Gone => "-",
    }
}

/// Returns the words for a state.
pub(super) fn state_words(state: RowState) -> &'static str {
    match state {
        RowState::Complete => "complete",
        RowState::Walking => "being walked (~)",
        RowState::Excluded => "without entries left out by a pattern (<)",
        RowState::Partial => "partial: something below could not be read (.)",
        RowState::Unreadable => "could not be read (!)",
        RowState::Skipped => "left out: another filesystem or a loop (>)",
        RowState::Gone => "gone: only the older inventory has it (-)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{directory, file};

    #[test]
    fn the_letter_beside_the_size_says_what_is_special() {
        let link = Row { links: 2, ..file("a", 1, 0) };
        let pipe = Row { file_type: FileType::Fifo, ..file("p", 0, 0) };
        let mut full = directory("d", 1, 0);
        full.amount.entries = 1;
        let partial = Row { state: RowState::Partial, ..full.clone() };
        let rows = [file("f", 1, 0), link, pipe, directory("e", 0, 0), full, partial];
        assert_eq!(rows.each_ref().map(flag), [" ", "H", "@", "e", " ", "."]);
    }
}
