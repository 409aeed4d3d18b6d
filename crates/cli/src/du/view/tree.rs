//! `--tree`: the largest entries as a tree with bars, on one screen. Owns the drawing.

use std::cmp::Ordering;

use fathom_du::options::Measure;
use fathom_du::scan::Line;
use fathom_du::threshold::Threshold;
use fathom_du::top::Top;
use fathom_du::totals::Totals;
use fathom_du::tree::{self, Row, RowContent};
use fathom_text::quote::{Charset, shell_escape};
use fathom_walk::FileType;

use super::figures::FigureFormat;
use super::rows::{FinishedRun, Rows};
use crate::shared::json::JsonObject;
use crate::shared::output::Output;
use crate::shared::screen::Screen;

/// Narrower screens show names without bars.
const BARS_COLUMNS_MIN: usize = 60;
const BAR_CELLS_MAX: usize = 24;
/// The minimum width of a name, at any depth.
const NAME_CELLS_MIN: usize = 16;
const LEVEL_CELLS: usize = 3;

const BAR_COLOR: &str = "32";
const DIRECTORY_COLOR: &str = "1;34";
const FAINT: &str = "2";

/// The largest entries as a tree.
#[derive(Debug)]
pub(crate) struct TreeRows {
    largest: Top,
    threshold: Option<Threshold>,
    /// Whether files are shown, not only directories.
    files: bool,
}

impl TreeRows {
    pub(crate) fn new(measure: Measure, threshold: Option<Threshold>, files: bool, rows_max: usize) -> Self {
        Self { largest: Top::new(measure, rows_max), threshold, files }
    }

    /// Returns the rows that fit on the screen. One line stays free for the shell prompt.
    fn rows(&mut self, end: &FinishedRun<'_>) -> Vec<Row> {
        let others = 1 + usize::from(end.total) + usize::from(!end.outcome.summary.complete);
        let rows_max = end.screen.rows.saturating_sub(others);
        tree::rows(end.figures.measure(), &self.largest.take_sorted(), &end.outcome.total, rows_max)
    }
}

impl Rows for TreeRows {
    fn add(&mut self, line: &Line<'_>, figures: &FigureFormat) {
        let value = figures.value(line.totals);
        if line.depth == 0 || self.threshold.as_ref().is_none_or(|threshold| threshold.admits(value)) {
            self.largest.add(line);
        }
    }

    /// JSON needs the types of files; text only distinguishes directories from other entries.
    fn wants_metas(&self, json: bool) -> bool {
        json && self.files
    }

    fn write_text(&mut self, end: &mut FinishedRun<'_>, out: &mut Output) {
        let rows = self.rows(end);
        let mut drawn: Vec<DrawnRow> = Vec::new();
        let mut branches = Branches::new(end.screen);
        for row in &rows {
            let label = self.label(&row.content, &row.totals, end.screen.charset);
            drawn.push(DrawnRow { label, ..DrawnRow::new(&row.totals, branches.step(row), end) });
        }
        if end.total {
            let label = RowLabel { text: "total".into(), color: "" };
            drawn.push(DrawnRow { label, ..DrawnRow::new(&end.outcome.total, Vec::new(), end) });
        }
        write_drawn(&drawn, end.screen, end.figures.terminator, out);
        if !end.outcome.summary.complete {
            let note = end.screen.fit("interrupted: the tree is partial", end.screen.columns);
            end.screen.paint(&note, FAINT, out.buffer());
            out.buffer().push(end.figures.terminator);
        }
    }

    fn write_json(&mut self, end: &mut FinishedRun<'_>, out: &mut Output) {
        let rows = self.rows(end);
        let mut above: Vec<&[u8]> = Vec::new();
        for row in &rows {
            above.truncate(row.level);
            let mut object = JsonObject::new(out.buffer());
            match &row.content {
                RowContent::Entry(entry, _) => {
                    above.push(&entry.path);
                    object.text("path", &entry.path);
                    object.number("depth", entry.depth as u64);
                    object.text("type", entry.file_type.name().as_bytes());
                }
                RowContent::Rest => {
                    match above.last() {
                        Some(path) => object.text("path", path),
                        None => object.null("path"),
                    }
                    object.number("more", row.totals.inodes);
                }
            }
            end.figures.write_members(&row.totals, &mut object);
            object.per_mille("share", end.figures.per_mille(&row.totals, &end.outcome.total));
            object.end();
            out.flush_if_full();
        }
    }
}

impl TreeRows {
    fn label(&self, content: &RowContent, totals: &Totals, charset: Charset) -> RowLabel {
        let RowContent::Entry(entry, start) = content else {
            return RowLabel { text: format!("{} more", totals.inodes), color: FAINT };
        };
        // Always quoted: a drawing is meant for a terminal, even if a pager is in between.
        let name = shell_escape(&entry.path[*start..], charset);
        let mut text = String::from_utf8_lossy(&name).into_owned();
        let is_dir = entry.file_type == FileType::Directory;
        if is_dir && self.files && !text.ends_with('/') {
            text.push('/');
        }
        RowLabel { text, color: if is_dir { DIRECTORY_COLOR } else { "" } }
    }
}

/// The name in a row, with its colour.
#[derive(Debug, Default)]
struct RowLabel {
    text: String,
    color: &'static str,
}

/// The parts of a row.
#[derive(Debug)]
struct DrawnRow {
    value: String,
    time: String,
    per_mille: u64,
    branches: Vec<&'static str>,
    label: RowLabel,
}

impl DrawnRow {
    fn new(totals: &Totals, branches: Vec<&'static str>, end: &mut FinishedRun<'_>) -> Self {
        let (mut value, mut time) = (Vec::new(), Vec::new());
        end.figures.write_value(totals, &mut value);
        end.figures.write_time(totals, &mut time);
        Self {
            value: String::from_utf8_lossy(&value).into_owned(),
            // A time format may contain control characters.
            time: String::from_utf8_lossy(&time).replace(char::is_control, "?"),
            per_mille: end.figures.per_mille(totals, &end.outcome.total),
            branches,
            label: RowLabel::default(),
        }
    }
}

fn write_drawn(drawn: &[DrawnRow], screen: &Screen, terminator: u8, out: &mut Output) {
    let longest =
        |text: fn(&DrawnRow) -> &str| drawn.iter().map(|row| text(row).chars().count()).max().unwrap_or(0);
    let (value_cells, time_cells) = (longest(|row| &row.value), longest(|row| &row.time));
    let bar_cells = if screen.columns < BARS_COLUMNS_MIN { 0 } else { BAR_CELLS_MAX.min(screen.columns / 5) };
    for row in drawn {
        let mut left = format!("{:>value_cells$} ", row.value);
        if time_cells > 0 {
            left += &format!("{:time_cells$} ", row.time);
        }
        left += &format!("{:>3}% ", (row.per_mille + 5) / 10);
        let bar = bar(row.per_mille, bar_cells, screen.charset);
        let gap = usize::from(bar_cells > 0);
        let name_cells = screen.columns.saturating_sub(left.chars().count() + bar_cells + gap);
        let branches = indent(&row.branches, name_cells, screen.charset);
        let name = screen.fit(&row.label.text, name_cells - branches.chars().count());
        let buffer = out.buffer();
        buffer.extend_from_slice(left.as_bytes());
        screen.paint(&bar, BAR_COLOR, buffer);
        buffer.extend_from_slice(&b" "[..gap]);
        screen.paint(&branches, FAINT, buffer);
        screen.paint(&name, row.label.color, buffer);
        buffer.push(terminator);
        out.flush_if_full();
    }
}

/// Draws a bar of `cells` cells, including blanks.
fn bar(per_mille: u64, cells: usize, charset: Charset) -> String {
    let share = usize::try_from(per_mille).unwrap_or(1000);
    let text: String = match charset {
        Charset::Utf8 => {
            let eighths = (share * cells * 8 + 500) / 1000;
            let part = [None, Some('▏'), Some('▎'), Some('▍'), Some('▌'), Some('▋'), Some('▊'), Some('▉')];
            std::iter::repeat_n('█', eighths / 8).chain(part[eighths % 8]).collect()
        }
        Charset::Ascii => "#".repeat((share * cells + 500) / 1000),
    };
    format!("{text:cells$}")
}

/// Returns the branches before a name. If they leave too little room for the name, the leftmost
/// ones are omitted.
fn indent(branches: &[&'static str], cells: usize, charset: Charset) -> String {
    let levels_max = cells.saturating_sub(NAME_CELLS_MIN) / LEVEL_CELLS;
    let text = |branches: &[&str]| branches.concat();
    match branches.len().cmp(&levels_max) {
        Ordering::Less | Ordering::Equal => text(branches),
        Ordering::Greater if levels_max == 0 => String::new(),
        Ordering::Greater => {
            let mark = if charset == Charset::Utf8 { "…  " } else { ".. " };
            mark.to_string() + &text(&branches[branches.len() - (levels_max - 1)..])
        }
    }
}

/// Computes the branches of each row from the branches of the previous row.
#[derive(Debug)]
struct Branches {
    charset: Charset,
    /// More branches than fit into any line.
    count_max: usize,
    /// For each ancestor level below the operand, the branch that continues there.
    above: Vec<&'static str>,
}

impl Branches {
    fn new(screen: &Screen) -> Self {
        Self { charset: screen.charset, count_max: screen.columns / LEVEL_CELLS + 1, above: Vec::new() }
    }

    /// Returns the branches before the name in `row`, without those that cannot fit.
    fn step(&mut self, row: &Row) -> Vec<&'static str> {
        let (here, below) = match (self.charset, row.is_last) {
            (Charset::Utf8, false) => ("├─ ", "│  "),
            (Charset::Utf8, true) => ("└─ ", "   "),
            (Charset::Ascii, false) => ("|- ", "|  "),
            (Charset::Ascii, true) => ("`- ", "   "),
        };
        let Some(level) = row.level.checked_sub(1) else { return Vec::new() };
        self.above.truncate(level);
        let nearest = &self.above[level.saturating_sub(self.count_max)..];
        let branches = [nearest, &[here]].concat();
        self.above.push(below);
        branches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(level: usize, is_last: bool) -> Row {
        Row { level, is_last, content: RowContent::Rest, totals: Totals::NONE }
    }

    #[test]
    fn branches_go_on_beside_what_is_below_them() {
        let mut branches = Branches { charset: Charset::Ascii, count_max: 9, above: Vec::new() };
        let rows = [(0, false), (1, false), (2, true), (3, true), (1, true), (2, true), (0, true), (1, true)];
        let drawn: Vec<_> = rows.map(|(level, is_last)| branches.step(&row(level, is_last)).concat()).into();
        assert_eq!(drawn, ["", "|- ", "|  `- ", "|     `- ", "`- ", "   `- ", "", "`- "]);
    }

    #[test]
    fn no_more_branches_are_kept_for_a_row_than_a_line_has_room_for() {
        let mut branches = Branches { charset: Charset::Ascii, count_max: 2, above: Vec::new() };
        let drawn: Vec<_> = (1..9).map(|level| branches.step(&row(level, level % 2 == 0)).concat()).collect();
        assert_eq!(drawn[..3], ["|- ", "|  `- ", "|     |- "]);
        assert_eq!(drawn[7], "   |  `- ");
    }

    #[test]
    fn bars_have_eighths_where_there_are_characters_for_them() {
        assert_eq!([0, 500, 1000].map(|share| bar(share, 4, Charset::Ascii)), ["    ", "##  ", "####"]);
        assert_eq!([0, 300, 1000].map(|share| bar(share, 4, Charset::Utf8)), ["    ", "█▎  ", "████"]);
        assert_eq!(bar(1000, 0, Charset::Utf8), "");
    }

    #[test]
    fn names_keep_their_room_at_any_depth() {
        let branches = ["1  ", "2  ", "3  "];
        assert_eq!(indent(&branches, NAME_CELLS_MIN + 9, Charset::Ascii), "1  2  3  ");
        assert_eq!(indent(&branches, NAME_CELLS_MIN + 8, Charset::Ascii), ".. 3  ");
        assert_eq!(indent(&branches, NAME_CELLS_MIN + 3, Charset::Utf8), "…  ");
        assert_eq!(indent(&branches, NAME_CELLS_MIN + 2, Charset::Utf8), "");
        assert_eq!(indent(&branches, 0, Charset::Utf8), "");
    }
}
