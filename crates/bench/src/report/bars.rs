//! The ratios of a cell as bars for a terminal: the median and the interval of each arm on a
//! logarithmic axis, with the band in which two runs of one method differ.

/// The ratios beyond which a bar ends with an arrow.
const LEAST: f64 = 1.0 / 64.0;
const MOST: f64 = 64.0;
/// The most cells of a name.
const NAME_CELLS: usize = 34;
/// The fewest cells of the axis.
const AXIS_CELLS_MIN: usize = 20;
/// The ratios that the axis may have marks for.
const MARKS: [f64; 14] = [0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0];

/// The terminal on which bars are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarStyle {
    /// The number of cells in a line.
    pub columns: usize,
    /// Whether only ASCII characters can be shown.
    pub is_ascii: bool,
}

/// The bar of an arm.
#[derive(Clone, Debug)]
pub(super) struct BarRow {
    pub(super) name: String,
    /// The lower bound, the median and the upper bound of the ratio to the baseline, which has
    /// none.
    pub(super) ratio: Option<[f64; 3]>,
}

/// The characters of a bar.
struct Strokes {
    base: char,
    band: char,
    low: char,
    line: char,
    median: char,
    high: char,
    less: char,
    more: char,
}

const UNICODE: Strokes =
    Strokes {
        base: '│', band: '░', low: '├', line: '─', median: '●', high: '┤', less: '◀', more: '▶'
    };
const ASCII: Strokes =
    Strokes { base: '|', band: '.', low: '[', line: '-', median: 'o', high: ']', less: '<', more: '>' };

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    cells: usize,
}

impl Axis {
    /// Returns the cell of a ratio.
    fn cell(&self, ratio: f64) -> usize {
        let share = (ratio.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        (share * (self.cells - 1) as f64).round() as usize
    }

    /// Returns a line with marks.
    fn marks(&self) -> String {
        let mut line = String::new();
        for mark in MARKS.into_iter().filter(|mark| (self.low..=self.high).contains(mark)) {
            let (at, text) = (self.cell(mark), format!("{mark}"));
            // The digit is at the cell of the mark.
            let is_free = line.is_empty() || at > line.chars().count() + 1;
            if is_free && at + text.len() <= self.cells + 2 {
                line += &" ".repeat(at - line.chars().count());
                line += &text;
            }
        }
        line
    }
}

/// Draws the rows of a cell, in which two runs of one method differ by the share `floor`; nothing
/// if no row has a ratio.
pub(super) fn bars(rows: &[BarRow], floor: f64, style: BarStyle) -> String {
    let ratios: Vec<[f64; 3]> = rows.iter().filter_map(|row| row.ratio).collect();
    if ratios.is_empty() {
        return String::new();
    }
    let name = |row: &BarRow| row.name.chars().take(NAME_CELLS).collect::<String>();
    let label = rows.iter().map(|row| name(row).chars().count()).max().unwrap_or_default();
    let axis = axis(&ratios, floor, style.columns.saturating_sub(label + 4).max(AXIS_CELLS_MIN));
    let strokes = if style.is_ascii { ASCII } else { UNICODE };
    let mut text = format!("{:label$}  {}\n", "", axis.marks());
    for row in rows {
        let line = format!("{:label$}  {}", name(row), bar(row.ratio, &axis, floor, &strokes));
        text += line.trim_end();
        text.push('\n');
    }
    text + &format!("{:label$}  {} noise: {:.0} %\n", "", strokes.band, floor * 100.0)
}

/// Returns an axis with room for all intervals and for the noise.
fn axis(ratios: &[[f64; 3]], floor: f64, cells: usize) -> Axis {
    let low = ratios.iter().map(|ratio| ratio[0]).fold(1.0 / (1.0 + floor), f64::min);
    let high = ratios.iter().map(|ratio| ratio[2]).fold(1.0 + floor, f64::max);
    // A tenth of a factor of two at both ends.
    Axis { low: (low / 1.07).max(LEAST), high: (high * 1.07).min(MOST), cells }
}

/// Draws one arm; the baseline, which has no ratio, as the line of 1 only.
fn bar(ratio: Option<[f64; 3]>, axis: &Axis, floor: f64, strokes: &Strokes) -> String {
    let mut cells = vec![' '; axis.cells];
    cells[axis.cell(1.0 / (1.0 + floor))..=axis.cell(1.0 + floor)].fill(strokes.band);
    cells[axis.cell(1.0)] = strokes.base;
    if let Some([low, median, high]) = ratio {
        let [one, other] = [low, high].map(|bound| axis.cell(bound));
        let (from, to) = (one.min(other), one.max(other));
        cells[from..=to].fill(strokes.line);
        cells[from] = if low < axis.low { strokes.less } else { strokes.low };
        cells[to] = if high > axis.high { strokes.more } else { strokes.high };
        cells[axis.cell(median)] = strokes.median;
    } else {
        cells[axis.cell(1.0)] = strokes.median;
    }
    cells.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, ratio: Option<[f64; 3]>) -> BarRow {
        BarRow { name: name.to_owned(), ratio }
    }

    #[test]
    fn a_bar_begins_and_ends_at_its_interval() {
        let rows = [
            row("sync", None),
            row("threads=8", Some([0.5, 0.6, 0.9])),
            row("uring", Some([2.0, 4.0, 900.0])),
        ];
        let drawn = bars(&rows, 0.05, BarStyle { columns: 60, is_ascii: true });
        let expected = [
            "            0.5   1   1.5   3    5      10    20       50",
            "sync              o.",
            "threads=8   [o---]|.",
            "uring             |.     [-----o------------------------->",
            "           . noise: 5 %",
            "",
        ]
        .join("\n");
        assert_eq!(drawn, expected, "\n{drawn}");
        assert_eq!(bars(&rows[..1], 0.05, BarStyle { columns: 60, is_ascii: true }), "");
        let unicode = bars(&rows, 0.05, BarStyle { columns: 0, is_ascii: false });
        assert!(unicode.lines().all(|line| line.chars().count() <= 9 + 2 + 22), "{unicode}");
    }
}
