//! The sums by extension, owner or age.

use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use super::canvas::{BOLD, Canvas, REVERSED};
use super::{status, text};
use crate::state::State;

/// The cells of the size, the count and the bar, and the column of the key.
const SIZE_CELLS: u16 = 9;
const COUNT_CELLS: u16 = 8;
const BAR_CELLS: u16 = 10;

/// Draws the visible rows. Returns their number.
pub(super) fn render(state: &State, canvas: &mut Canvas<'_>, area: Rect) -> usize {
    if state.sums.is_empty() {
        status::nothing("no files", canvas, area);
        return 0;
    }
    let key_at = SIZE_CELLS + COUNT_CELLS + BAR_CELLS + 2;
    if area.y > 1 {
        canvas.put_right(0, area.y - 1, SIZE_CELLS, "size", BOLD);
        canvas.put_right(SIZE_CELLS, area.y - 1, COUNT_CELLS, "files", BOLD);
        canvas.put(key_at, area.y - 1, area.width, state.view.title(), BOLD);
    }
    let size = |at: usize| state.arrangement.size(&state.sums[at].amount);
    let sum_of_all = (0..state.sums.len()).map(size).fold(0, u64::saturating_add);
    let end = state.sums.len().min(state.offset + usize::from(area.height));
    for (y, position) in (area.y..).zip(state.offset..end) {
        let sum = &state.sums[position];
        canvas.put_right(0, y, SIZE_CELLS, &text::size(size(position), state.settings.units), Style::new());
        canvas.put_right(SIZE_CELLS, y, COUNT_CELLS, &text::count(sum.amount.entries), Style::new());
        let bar = canvas.bar(size(position), sum_of_all, BAR_CELLS);
        canvas.put(SIZE_CELLS + COUNT_CELLS + 1, y, BAR_CELLS, &bar, canvas.color(Color::Green));
        let key = text::name(&sum.key, canvas.charset);
        // Classes of ages are words with spaces, which need no quotes.
        let key = if state.view == crate::state::View::Ages { text::message(&sum.key) } else { key };
        canvas.put(key_at, y, area.width.saturating_sub(key_at), &key, Style::new());
        if position == state.cursor {
            canvas.paint(Rect { y, height: 1, ..area }, REVERSED);
        }
    }
    end.saturating_sub(state.offset)
}
