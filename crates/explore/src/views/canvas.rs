//! A buffer of cells with the styles of the explorer.

use fathom_text::quote::Charset;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::text;
use crate::state::State;

/// The buffer of a frame, and the properties of the terminal.
pub(super) struct Canvas<'b> {
    buffer: &'b mut Buffer,
    has_colors: bool,
    pub(super) charset: Charset,
}

/// The side at which a text is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Beginning,
    End,
}

impl<'b> Canvas<'b> {
    pub(super) fn new(state: &State, buffer: &'b mut Buffer) -> Self {
        let settings = &state.settings;
        buffer.reset();
        Self { buffer, has_colors: settings.has_colors, charset: settings.context.charset }
    }

    /// Writes a text into at most `room` cells. Returns the column behind it.
    pub(super) fn put(&mut self, x: u16, y: u16, room: u16, text: &str, style: Style) -> u16 {
        self.put_cut(x, y, room, text, style, Cut::End)
    }

    pub(super) fn put_cut(&mut self, x: u16, y: u16, room: u16, text: &str, style: Style, side: Cut) -> u16 {
        let room = room.min(self.buffer.area().right().saturating_sub(x));
        if room == 0 || y >= self.buffer.area().bottom() {
            return x;
        }
        let fitted = match side {
            Cut::End => text::fit(text, room.into(), self.charset),
            Cut::Beginning => text::fit_end(text, room.into(), self.charset),
        };
        self.buffer.set_stringn(x, y, fitted, room.into(), style).0
    }

    /// Writes a text to the right end of `room` cells.
    pub(super) fn put_right(&mut self, x: u16, y: u16, room: u16, text: &str, style: Style) {
        let cells = u16::try_from(text::cells(text)).unwrap_or(u16::MAX).min(room);
        self.put(x + room - cells, y, cells, text, style);
    }

    /// Sets the style of an area, and keeps its text.
    pub(super) fn paint(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area, style);
    }

    /// Fills an area with spaces.
    pub(super) fn clear(&mut self, area: Rect) {
        let blank = " ".repeat(area.width.into());
        (area.y..area.bottom()).for_each(|y| {
            self.buffer.set_string(area.x, y, &blank, Style::reset());
        });
    }

    /// Returns a style with this colour, if there are colours.
    pub(super) fn color(&self, color: Color) -> Style {
        if self.has_colors { Style::new().fg(color) } else { Style::new() }
    }

    /// Returns a style with this background, if there are colours.
    pub(super) fn background(&self, color: Color) -> Style {
        if self.has_colors { Style::new().bg(color).fg(Color::White) } else { Style::new() }
    }

    /// Returns a bar for a share of `room` cells.
    pub(super) fn bar(&self, part: u64, whole: u64, room: u16) -> String {
        let eighths = u128::from(part) * u128::from(room) * 8 / u128::from(whole.max(1));
        let eighths = usize::try_from(eighths).unwrap_or(usize::MAX).min(usize::from(room) * 8);
        match self.charset {
            Charset::Ascii => "#".repeat(eighths.div_ceil(8)),
            Charset::Utf8 => {
                const PARTS: [&str; 8] =
                    ["", "\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"];
                "\u{2588}".repeat(eighths / 8) + PARTS[eighths % 8]
            }
        }
    }

    /// Returns the characters of a frame: the four corners, the horizontal and the vertical line.
    pub(super) fn lines(&self) -> [&'static str; 6] {
        match self.charset {
            Charset::Utf8 => ["\u{250c}", "\u{2510}", "\u{2514}", "\u{2518}", "\u{2500}", "\u{2502}"],
            Charset::Ascii => ["+", "+", "+", "+", "-", "|"],
        }
    }
}

/// The style of the row under the cursor, and of the lines at the top and the bottom.
pub(super) const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
/// The style of titles.
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
