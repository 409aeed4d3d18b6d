//! Draws the state into a buffer of cells. A frame formats only the rows that are visible, and no
//! name from a tree reaches the buffer unescaped.

mod canvas;
mod disk;
mod overlays;
mod status;
mod sums;
mod table;
mod text;
mod treemap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::state::State;

pub use self::treemap::{Tile, squarify};

/// The number of lines from which on the columns have titles.
const TITLES_LINES_MIN: u16 = 6;

/// Returns the area of the rows on a screen of this size in columns and lines.
pub(crate) fn rows_area(size: (u16, u16)) -> Rect {
    let (columns, lines) = size;
    let above = if lines >= TITLES_LINES_MIN { 2 } else { 1 };
    Rect::new(0, above.min(lines), columns, lines.saturating_sub(above + 1))
}

/// Returns the position of the row at a cell of the screen.
pub(crate) fn row_at(state: &State, column: u16, line: u16) -> Option<usize> {
    let area = rows_area(state.size);
    if !area.contains((column, line).into()) {
        return None;
    }
    if state.view == crate::state::View::Treemap {
        return treemap::position_at(state, area, column, line);
    }
    let position = state.offset + usize::from(line - area.y);
    (position < state.len()).then_some(position)
}

/// Draws a frame. Returns the number of rows that it formats, which is bounded by the number of
/// lines (of areas, for a treemap).
///
/// ```
/// use fathom_explore::state::{Settings, State};
/// use fathom_explore::views::render;
/// use ratatui::buffer::Buffer;
/// use ratatui::layout::Rect;
///
/// let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 10));
/// assert_eq!(render(&State::new(Settings::default()), &mut buffer), 0);
/// ```
pub fn render(state: &State, buffer: &mut Buffer) -> usize {
    let screen = *buffer.area();
    if screen.width == 0 || screen.height == 0 {
        return 0;
    }
    let mut canvas = canvas::Canvas::new(state, buffer);
    let rows = rows_area((screen.width, screen.height)).intersection(screen);
    status::header(state, &mut canvas, screen);
    let formatted = match (state.view, state.view.sums()) {
        (_, Some(_)) => sums::render(state, &mut canvas, rows),
        (crate::state::View::Treemap, _) => treemap::render(state, &mut canvas, rows),
        _ => table::render(state, &mut canvas, rows),
    };
    status::footer(state, &mut canvas, screen);
    overlays::render(state, &mut canvas, screen);
    formatted
}
