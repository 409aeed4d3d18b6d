//! A treemap in cells: the area of each entry is its share of the directory.

use fathom_io::FileType;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use super::canvas::{Canvas, REVERSED};
use super::{status, text};
use crate::state::State;

/// The height of a cell, in widths of a cell.
const CELL_HEIGHT: f64 = 2.0;
/// The colours of areas: directories and files.
const DIRECTORY_COLORS: [Color; 3] = [Color::Indexed(24), Color::Indexed(25), Color::Indexed(26)];
const FILE_COLORS: [Color; 3] = [Color::Indexed(58), Color::Indexed(94), Color::Indexed(100)];

/// An area of a treemap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tile {
    /// The left side.
    pub x: f64,
    /// The upper side.
    pub y: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

/// Divides an area into tiles whose sizes are in the proportions of `sizes`, which decrease, and
/// which are as square as possible (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000).
///
/// ```
/// use fathom_explore::views::{Tile, squarify};
///
/// let area = Tile { x: 0.0, y: 0.0, width: 6.0, height: 4.0 };
/// let tiles = squarify(&[6, 6, 4, 3, 2, 2, 1], area);
/// assert_eq!(tiles[0], Tile { x: 0.0, y: 0.0, width: 3.0, height: 2.0 });
/// ```
#[must_use]
pub fn squarify(sizes: &[u64], area: Tile) -> Vec<Tile> {
    let sum: f64 = sizes.iter().map(|size| *size as f64).sum();
    let scale = if sum > 0.0 { area.width * area.height / sum } else { 0.0 };
    let mut rest: Vec<f64> = sizes.iter().map(|size| *size as f64 * scale).collect();
    let (mut free, mut tiles) = (area, Vec::with_capacity(sizes.len()));
    while !rest.is_empty() {
        let side = free.width.min(free.height);
        // Adds tiles to the row as long as the worst of them becomes no longer than before.
        let better = |count: &usize| worst(&rest[..count + 1], side) <= worst(&rest[..*count], side);
        let count = 1 + (1..rest.len()).take_while(better).count();
        let row: Vec<f64> = rest.drain(..count).collect();
        free = lay_out(&row, free, &mut tiles);
    }
    tiles
}

/// Returns the largest ratio of the sides of the tiles of a row.
fn worst(row: &[f64], side: f64) -> f64 {
    let sum: f64 = row.iter().sum();
    let ratio = |size: f64| {
        let (width, length) = (sum / side, size * side / sum);
        (width / length).max(length / width)
    };
    let (first, last) = (row.first().copied().unwrap_or(0.0), row.last().copied().unwrap_or(0.0));
    ratio(first).max(ratio(last))
}

/// Puts a row of tiles along the shorter side. Returns the area that is left.
fn lay_out(row: &[f64], free: Tile, tiles: &mut Vec<Tile>) -> Tile {
    let sum: f64 = row.iter().sum();
    let is_column = free.width >= free.height;
    let side = free.width.min(free.height);
    let thickness = if side > 0.0 { sum / side } else { 0.0 };
    let mut at = 0.0;
    for size in row {
        let length = if thickness > 0.0 { size / thickness } else { 0.0 };
        tiles.push(if is_column {
            Tile { x: free.x, y: free.y + at, width: thickness, height: length }
        } else {
            Tile { x: free.x + at, y: free.y, width: length, height: thickness }
        });
        at += length;
    }
    if is_column {
        Tile { x: free.x + thickness, width: (free.width - thickness).max(0.0), ..free }
    } else {
        Tile { y: free.y + thickness, height: (free.height - thickness).max(0.0), ..free }
    }
}

/// Returns the position and the area of each entry that has one.
fn areas(state: &State, area: Rect) -> Vec<(usize, Rect)> {
    let tiles = state.listing.as_ref().map_or(&[][..], |listing| listing.tiles());
    let sizes: Vec<u64> = tiles.iter().map(|tile| tile.1).collect();
    let (width, height) = (f64::from(area.width), f64::from(area.height) * CELL_HEIGHT);
    let whole = Tile { x: 0.0, y: 0.0, width, height };
    let rects = squarify(&sizes, whole).into_iter().map(|tile| {
        // Neighbours round their common side in the same way, so that they do not overlap.
        let round = |at: f64, unit: f64, end: u16| ((at / unit).round() as u16).min(end);
        let [left, right] = [tile.x, tile.x + tile.width].map(|at| round(at, 1.0, area.width));
        let [top, bottom] = [tile.y, tile.y + tile.height].map(|at| round(at, CELL_HEIGHT, area.height));
        Rect::new(area.x + left, area.y + top, right.saturating_sub(left), bottom.saturating_sub(top))
    });
    let placed = tiles.iter().map(|tile| tile.0).zip(rects);
    placed.filter(|(_, rect)| rect.width > 0 && rect.height > 0).collect()
}

/// Returns the position of the entry whose area has a cell.
pub(super) fn position_at(state: &State, area: Rect, column: u16, line: u16) -> Option<usize> {
    let areas = areas(state, area);
    areas.into_iter().find(|(_, rect)| rect.contains((column, line).into())).map(|(position, _)| position)
}

/// Draws the areas. Returns their number.
pub(super) fn render(state: &State, canvas: &mut Canvas<'_>, area: Rect) -> usize {
    let areas = areas(state, area);
    if areas.is_empty() {
        let text = if state.listing.is_some() { "nothing to draw: all sizes are 0" } else { "reading" };
        status::nothing(text, canvas, area);
    }
    if let (2.., Some(row)) = (area.y, state.current()) {
        let size = text::size(state.arrangement.size(&row.amount), state.settings.units);
        let line = format!("{size}  {}", text::name(&row.name, canvas.charset));
        canvas.put(1, area.y - 1, area.width.saturating_sub(1), &line, Style::new());
    }
    for (number, (position, rect)) in areas.iter().enumerate() {
        draw(state, *position, number, canvas, *rect);
    }
    areas.len()
}

fn draw(state: &State, position: usize, number: usize, canvas: &mut Canvas<'_>, rect: Rect) {
    let Some((listing, row)) = state.listing.as_ref().and_then(|all| Some((all, all.row(position)?))) else {
        return;
    };
    let colors = if row.file_type == FileType::Directory { DIRECTORY_COLORS } else { FILE_COLORS };
    let mut style = canvas.background(colors[number % colors.len()]);
    if position == state.cursor {
        style = style.patch(REVERSED);
    }
    canvas.clear(rect);
    canvas.paint(rect, style);
    let [corner, _, _, _, across, down] = canvas.lines();
    canvas.put(rect.x, rect.y, rect.width, &across.repeat(rect.width.into()), style);
    for y in rect.y..rect.bottom() {
        canvas.put(rect.x, y, 1, down, style);
    }
    canvas.put(rect.x, rect.y, 1, corner, style);
    let is_marked = listing.place(position).is_some_and(|place| state.marks.contains(place, row));
    let mark = if is_marked { "*" } else { "" };
    let name = format!("{mark}{}", text::name(&row.name, canvas.charset));
    if rect.width > 2 {
        canvas.put(rect.x + 1, rect.y, rect.width - 1, &name, style);
    }
    if rect.width > 6 && rect.height > 1 {
        let size = text::size(state.arrangement.size(&row.amount), state.settings.units);
        canvas.put(rect.x + 1, rect.y + 1, rect.width - 1, &size, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn tiles_cover_the_area_in_proportion(
            mut sizes in prop::collection::vec(1_u64..1_000_000, 1..60),
            width in 1_u16..300, height in 1_u16..100,
        ) {
            sizes.sort_unstable_by(|one, two| two.cmp(one));
            let area = Tile { x: 0.0, y: 0.0, width: width.into(), height: height.into() };
            let tiles = squarify(&sizes, area);
            prop_assert_eq!(tiles.len(), sizes.len());
            let sum: u64 = sizes.iter().sum();
            let whole = area.width * area.height;
            for (tile, size) in tiles.iter().zip(&sizes) {
                let expected = whole * *size as f64 / sum as f64;
                prop_assert!((tile.width * tile.height - expected).abs() < 1e-6 * whole);
                prop_assert!(tile.x >= 0.0 && tile.x + tile.width < area.width + 1e-6);
                prop_assert!(tile.y >= 0.0 && tile.y + tile.height < area.height + 1e-6);
            }
        }
    }

    #[test]
    fn a_size_of_zero_has_no_area() {
        let area = Tile { x: 0.0, y: 0.0, width: 4.0, height: 4.0 };
        assert!(squarify(&[0, 0], area).iter().all(|tile| tile.width * tile.height == 0.0));
        assert!(squarify(&[], area).is_empty());
    }
}
