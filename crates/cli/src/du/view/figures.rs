//! The totals and the file type of a row, as columns of text and as members of JSON objects.

use std::collections::VecDeque;

use fathom_du::options::{LineFormat, Measure, Options};
use fathom_du::top::value;
use fathom_du::totals::Totals;
use fathom_text::human::BlockSize;
use fathom_text::quote::Charset;
use fathom_text::time::TimeStyle;

use crate::shared::json::JsonObject;
use crate::shared::screen::Screen;

/// The format of numbers and times.
#[derive(Debug)]
pub(crate) struct FigureFormat {
    measure: Measure,
    block_size: BlockSize,
    /// Set if times are shown.
    time_style: Option<TimeStyle>,
    /// The byte at the end of a row of text.
    pub(crate) terminator: u8,
    charset: Charset,
    warnings: VecDeque<Vec<u8>>,
}

impl FigureFormat {
    pub(crate) fn new(options: &Options, format: LineFormat, charset: Charset) -> Self {
        let LineFormat { block_size, time_style, terminator } = format;
        let time_style = options.time.map(|_| time_style);
        let measure = options.measure;
        Self { measure, block_size, time_style, terminator, charset, warnings: VecDeque::new() }
    }

    /// Returns the measured quantity.
    pub(crate) fn measure(&self) -> Measure {
        self.measure
    }

    /// Returns whether inodes are counted.
    pub(crate) fn counts_inodes(&self) -> bool {
        self.measure == Measure::Inodes
    }

    /// Returns the exact value of the measured quantity.
    pub(crate) fn value(&self, totals: &Totals) -> u64 {
        value(self.measure, totals)
    }

    /// Appends the value of the measured quantity in the selected unit.
    pub(crate) fn write_value(&self, totals: &Totals, out: &mut Vec<u8>) {
        if self.counts_inodes() {
            self.block_size.write_count(totals.inodes, out);
        } else {
            self.block_size.write(totals.bytes, out);
        }
    }

    /// Appends the newest time. Returns false if there is none or it is not shown.
    pub(crate) fn write_time(&mut self, totals: &Totals, out: &mut Vec<u8>) -> bool {
        let Some(style) = self.time_style.as_ref().filter(|_| totals.newest != Totals::NONE.newest) else {
            return false;
        };
        if let Err(error) = style.write(totals.newest.sec, totals.newest.nsec, out) {
            self.warnings.push_back(error.message(self.charset));
        }
        true
    }

    /// Appends the first columns of a row of text, with a tab behind each.
    pub(crate) fn write_columns(&mut self, totals: &Totals, out: &mut Vec<u8>) {
        self.write_value(totals, out);
        out.push(b'\t');
        if self.write_time(totals, out) {
            out.push(b'\t');
        }
    }

    /// Writes the header of a table that begins with these columns, on a terminal. The column of
    /// times is as wide as the column of `totals`. Rows that end in NUL have no header.
    pub(crate) fn write_header(&self, totals: &Totals, columns: &[&str], screen: &Screen, out: &mut Vec<u8>) {
        let value = match self.measure {
            Measure::Usage => "usage",
            Measure::Apparent | Measure::Lengths => "size",
            Measure::Inodes => "inodes",
        };
        let time = self.time_style.as_ref().map(|style| {
            let mut time = Vec::new();
            // The row of the same time reports a failure.
            let _ = style.write(totals.newest.sec, totals.newest.nsec, &mut time);
            format!("{:1$}", "time", time.len())
        });
        let columns: Vec<_> =
            [Some(value), time.as_deref()].into_iter().flatten().chain(columns.iter().copied()).collect();
        if self.terminator == b'\n' {
            screen.write_header(&columns, out);
        }
    }

    /// Appends the members `bytes` or `inodes`, and `time` if it is shown.
    pub(crate) fn write_members(&mut self, totals: &Totals, object: &mut JsonObject<'_>) {
        object.number(if self.counts_inodes() { "inodes" } else { "bytes" }, self.value(totals));
        let mut time = Vec::new();
        if self.write_time(totals, &mut time) {
            object.text("time", &time);
        }
    }

    /// Returns the share of `part` in `whole`, in thousandths, rounded.
    pub(crate) fn per_mille(&self, part: &Totals, whole: &Totals) -> u64 {
        let (part, whole) = (u128::from(self.value(part)), u128::from(self.value(whole)));
        let share = (part * 1000 + whole / 2).checked_div(whole).unwrap_or(0);
        u64::try_from(share.min(1000)).expect("not above 1000")
    }

    /// Queues a warning, to be printed behind the row.
    pub(crate) fn warn(&mut self, message: Vec<u8>) {
        self.warnings.push_back(message);
    }

    /// Removes the next warning from the queue.
    pub(crate) fn warning(&mut self) -> Option<Vec<u8>> {
        self.warnings.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_walk::FileTime;

    fn figures(measure: Measure) -> FigureFormat {
        let format =
            LineFormat { block_size: BlockSize::BYTES, time_style: TimeStyle::default(), terminator: b'\n' };
        FigureFormat::new(&Options { measure, ..Options::default() }, format, Charset::Ascii)
    }

    fn bytes(bytes: u64) -> Totals {
        Totals { bytes, inodes: 1, newest: FileTime::default() }
    }

    #[test]
    fn shares_are_rounded_and_never_more_than_all() {
        let share = |part, whole| figures(Measure::Usage).per_mille(&bytes(part), &bytes(whole));
        assert_eq!([share(1, 3), share(2, 3), share(1, 2001), share(1, 2000)], [333, 667, 0, 1]);
        assert_eq!([share(0, 0), share(7, 5), share(u64::MAX, u64::MAX)], [0, 1000, 1000]);
    }

    #[test]
    fn the_measure_decides_which_number_is_shown() {
        let columns = |measure| {
            let mut out = Vec::new();
            figures(measure).write_columns(&bytes(9), &mut out);
            out
        };
        assert_eq!((columns(Measure::Usage), columns(Measure::Inodes)), (b"9\t".to_vec(), b"1\t".to_vec()));
    }
}
