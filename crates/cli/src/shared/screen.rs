//! The properties of standard output: its size, whether it is a terminal, whether to use colours,
//! the width of characters. Owns no drawing.

use fathom_text::quote::{Charset, NameStyle};

use crate::shared::output::stdout_is_terminal;
use crate::shared::value::ShowWhen;

/// The default size without a terminal: a VT100's.
const SIZE: (usize, usize) = (24, 80);

/// The properties of standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    /// The number of lines.
    pub(crate) rows: usize,
    /// The number of cells in a line.
    pub(crate) columns: usize,
    /// Whether colours are used.
    pub(crate) has_colors: bool,
    /// The characters that can be shown.
    pub(crate) charset: Charset,
    is_terminal: bool,
}

impl Screen {
    /// Queries standard output and the environment.
    pub(crate) fn new(color: ShowWhen, charset: Charset) -> Self {
        let stdout = std::io::stdout();
        let size = rustix::termios::tcgetwinsize(&stdout).map(|size| (size.ws_row, size.ws_col)).ok();
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::from_facts(size, stdout_is_terminal(), color, charset, &env)
    }

    fn from_facts(
        size: Option<(u16, u16)>,
        is_terminal: bool,
        color: ShowWhen,
        charset: Charset,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let length = |name, actual: Option<u16>, otherwise| {
            let set = env(name).and_then(|value| value.parse().ok()).filter(|length| *length > 0);
            set.or(actual.map(usize::from).filter(|length| *length > 0)).unwrap_or(otherwise)
        };
        let has_colors = match color {
            ShowWhen::Always => true,
            ShowWhen::Never => false,
            ShowWhen::Auto => {
                is_terminal && env("NO_COLOR").is_none() && env("TERM").is_none_or(|term| term != "dumb")
            }
        };
        Self {
            rows: length("LINES", size.map(|size| size.0), SIZE.0),
            columns: length("COLUMNS", size.map(|size| size.1), SIZE.1),
            has_colors,
            charset,
            is_terminal,
        }
    }

    /// Returns a name as it is, or on a terminal in a quoted form that cannot control it.
    pub(crate) fn name(&self, name: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(name.len());
        NameStyle::of(self.is_terminal, false, self.charset).write(name, &mut out);
        out
    }

    /// Appends a line with the names of columns, separated by tabs. Only on a terminal.
    pub(crate) fn write_header(&self, columns: &[&str], out: &mut Vec<u8>) {
        if self.is_terminal {
            out.extend_from_slice(columns.join("\t").as_bytes());
            out.push(b'\n');
        }
    }

    /// Appends `text` in a colour, given as the parameters of ECMA-48's SGR.
    pub(crate) fn paint(&self, text: &str, color: &str, out: &mut Vec<u8>) {
        if self.has_colors && !text.is_empty() {
            out.extend_from_slice(format!("\x1b[{color}m{text}\x1b[m").as_bytes());
        } else {
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// Returns `text`, truncated with a mark to `cells_max` cells. `text` must not contain control
    /// characters.
    pub(crate) fn fit(&self, text: &str, cells_max: usize) -> String {
        if cells(text, cells_max) <= cells_max {
            return text.to_string();
        }
        let mark = match self.charset {
            Charset::Utf8 => "…",
            Charset::Ascii => "..",
        };
        let Some(room) = cells_max.checked_sub(mark.chars().count()) else { return " ".repeat(cells_max) };
        let mut taken = 0;
        let kept = text.chars().take_while(|c| {
            taken += width(*c);
            taken <= room
        });
        kept.chain(mark.chars()).collect()
    }
}

/// Returns the number of cells of `text`, or some number above `enough`.
fn cells(text: &str, enough: usize) -> usize {
    // Each character takes at least one cell, so the first `enough` + 1 of them decide.
    text.chars().take(enough + 1).map(width).sum()
}

/// Returns an upper bound for the cells of a character: combining marks count as one, symbols that
/// some terminals draw wide count as two. Names are at the end of lines, so an overestimate is
/// harmless.
fn width(c: char) -> usize {
    match c {
        '\u{1100}'..='\u{115f}'
        | '\u{2300}'..='\u{23ff}'
        | '\u{25a0}'..='\u{27bf}'
        | '\u{2b00}'..='\u{2bff}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe10}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{16fe0}'.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(size: Option<(u16, u16)>, color: ShowWhen, variables: &[(&str, &str)]) -> Screen {
        Screen::from_facts(size, size.is_some(), color, Charset::Utf8, &|name| {
            let found = variables.iter().find(|variable| variable.0 == name);
            found.map(|variable| variable.1.to_string())
        })
    }

    #[test]
    fn variables_override_the_terminal_size_which_overrides_the_default() {
        let size = |size, variables| {
            let screen = screen(size, ShowWhen::Auto, variables);
            (screen.rows, screen.columns)
        };
        assert_eq!(size(None, &[]), (24, 80));
        assert_eq!(size(Some((50, 0)), &[]), (50, 80));
        assert_eq!(size(Some((50, 132)), &[("COLUMNS", "40"), ("LINES", "x")]), (50, 40));
        assert_eq!(size(None, &[("LINES", "0"), ("COLUMNS", "-1")]), (24, 80));
    }

    #[test]
    fn colours_depend_on_the_terminal_the_option_and_the_environment() {
        let terminal = Some((24, 80));
        let colors = |size, color, variables| screen(size, color, variables).has_colors;
        assert!(colors(terminal, ShowWhen::Auto, &[]) && !colors(None, ShowWhen::Auto, &[]));
        assert!(colors(None, ShowWhen::Always, &[]) && !colors(terminal, ShowWhen::Never, &[]));
        assert!(!colors(terminal, ShowWhen::Auto, &[("NO_COLOR", "0")]));
        assert!(!colors(terminal, ShowWhen::Auto, &[("TERM", "dumb")]));
    }

    #[test]
    fn names_are_quoted_on_terminals_only() {
        let name = |size| screen(size, ShowWhen::Never, &[]).name(b"a\x1b[2Jb");
        assert_eq!(name(Some((1, 1))), b"'a'$'\\033''[2Jb'");
        assert_eq!(name(None), b"a\x1b[2Jb");
    }

    #[test]
    fn headers_are_for_terminals_only() {
        let header = |size| {
            let mut out = Vec::new();
            screen(size, ShowWhen::Never, &[]).write_header(&["usage", "path"], &mut out);
            out
        };
        assert_eq!((header(Some((1, 1))), header(None)), (b"usage\tpath\n".to_vec(), Vec::new()));
    }

    #[test]
    fn text_is_cut_by_cells() {
        let mut screen = screen(None, ShowWhen::Never, &[]);
        let fit = |screen: &Screen, text, cells| screen.fit(text, cells);
        assert_eq!(["abc", "abcd", "日本"].map(|text| fit(&screen, text, 3)), ["abc", "ab…", "日…"]);
        assert_eq!([fit(&screen, "日本", 2), fit(&screen, "ab", 0)], ["…", ""]);
        screen.charset = Charset::Ascii;
        assert_eq!([fit(&screen, "abcd", 3), fit(&screen, "abcd", 1)], ["a..", " "]);
    }
}
