//! Alignment of text in columns.

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Formats `rows`, of which the first is the header, as lines with two spaces between columns. A
/// column that contains only `-` below its header is omitted.
pub(crate) fn aligned(align: &[Align], rows: &[Vec<String>]) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let says = |at: &usize| rows.iter().skip(1).any(|row| row[*at] != "-");
    let columns: Vec<_> = (0..align.len()).filter(says).map(|at| (at, align[at], width(at))).collect();
    rows.iter().map(|row| line(&columns, row)).collect()
}

fn line(columns: &[(usize, Align, usize)], row: &[String]) -> String {
    let cells = columns.iter().map(|(at, align, width)| match align {
        Align::Left => format!("{:<width$}", row[*at]),
        Align::Right => format!("{:>width$}", row[*at]),
    });
    let line = cells.collect::<Vec<_>>().join("  ");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let rows = [["arm", "n", "none", "x"], ["a", "10", "-", "-"], ["bcdé", "1", "-", "1.5"]];
        let rows = rows.map(|row| row.map(String::from).to_vec());
        let align = [Align::Left, Align::Right, Align::Right, Align::Right];
        assert_eq!(aligned(&align, &rows), "arm    n    x\na     10    -\nbcdé   1  1.5\n");
    }
}
