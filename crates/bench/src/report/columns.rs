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

/// Formats `rows` as a table in Markdown (GitHub Flavored Markdown, Tables), with the columns that
/// [`aligned`] would have.
pub(crate) fn markdown(align: &[Align], rows: &[Vec<String>]) -> String {
    let says = |at: &usize| rows.iter().skip(1).any(|row| row[*at] != "-");
    let columns: Vec<usize> = (0..align.len()).filter(says).collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = columns.iter().map(|at| if align[*at] == Align::Left { "---" } else { "---:" }.to_owned());
    let row = |row: &Vec<String>| line(columns.iter().map(|at| markdown_text(&row[*at])).collect());
    let lines = rows.iter().take(1).map(row).chain([line(rule.collect())]);
    lines.chain(rows.iter().skip(1).map(row)).collect()
}

/// Escapes the characters of `text` that have a meaning in a table of Markdown.
pub(crate) fn markdown_text(text: &str) -> String {
    let escaped = |c: char| match c {
        '\\' | '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '#' | '&' => format!("\\{c}"),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.into(),
    };
    text.chars().map(escaped).collect()
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
    fn names_have_no_markup_in_markdown() {
        let rows = [["arm", "n", "x"], ["a_b|c", "10", "-"]].map(|row| row.map(String::from).to_vec());
        let align = [Align::Left, Align::Right, Align::Right];
        assert_eq!(markdown(&align, &rows), "| arm | n |\n| --- | ---: |\n| a\\_b\\|c | 10 |\n");
        assert_eq!(markdown_text("<b>\u{1b}"), "\\<b\\>\\u{1b}");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let rows = [["arm", "n", "none", "x"], ["a", "10", "-", "-"], ["bcdé", "1", "-", "1.5"]];
        let rows = rows.map(|row| row.map(String::from).to_vec());
        let align = [Align::Left, Align::Right, Align::Right, Align::Right];
        assert_eq!(aligned(&align, &rows), "arm    n    x\na     10    -\nbcdé   1  1.5\n");
    }
}
