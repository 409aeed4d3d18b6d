//! What a row says of its totals and of a file's type, as columns of text and as members of JSON objects.

use std::collections::VecDeque;

use fathom_du::options::{Format, Measure, Options};
use fathom_du::top::value;
use fathom_du::totals::Totals;
use fathom_text::human::BlockSize;
use fathom_text::quote::Charset;
use fathom_text::time::TimeStyle;
use fathom_walk::FileType;

use super::json::Object;

/// How numbers and times look.
#[derive(Debug)]
pub(crate) struct Figures {
    measure: Measure,
    block_size: BlockSize,
    /// Set if times are shown.
    time_style: Option<TimeStyle>,
    /// The byte that ends a row of text.
    pub(crate) terminator: u8,
    charset: Charset,
    warnings: VecDeque<Vec<u8>>,
}

impl Figures {
    pub(crate) fn new(options: &Options, format: Format, charset: Charset) -> Self {
        let Format { block_size, time_style, terminator } = format;
        let time_style = options.time.map(|_| time_style);
        let measure = options.measure;
        Self { measure, block_size, time_style, terminator, charset, warnings: VecDeque::new() }
    }

    /// What is measured.
    pub(crate) fn measure(&self) -> Measure {
        self.measure
    }

    /// Whether inodes are what is counted.
    pub(crate) fn counts_inodes(&self) -> bool {
        self.measure == Measure::Inodes
    }

    /// The number that counts, exactly.
    pub(crate) fn value(&self, totals: &Totals) -> u64 {
        value(self.measure, totals)
    }

    /// Appends the number that counts, in the unit asked for.
    pub(crate) fn write_value(&self, totals: &Totals, out: &mut Vec<u8>) {
        if self.counts_inodes() {
            self.block_size.write_count(totals.inodes, out);
        } else {
            self.block_size.write(totals.bytes, out);
        }
    }

    /// Appends the newest time. False if there is none or it is not shown.
    pub(crate) fn write_time(&mut self, totals: &Totals, out: &mut Vec<u8>) -> bool {
        let Some(style) = self.time_style.as_ref().filter(|_| totals.newest != Totals::NONE.newest) else {
            return false;
        };
        if let Err(error) = style.write(totals.newest.sec, totals.newest.nsec, out) {
            self.warnings.push_back(error.message(self.charset));
        }
        true
    }

    /// Appends the columns that begin a row of text, with a tab after each.
    pub(crate) fn write_columns(&mut self, totals: &Totals, out: &mut Vec<u8>) {
        self.write_value(totals, out);
        out.push(b'\t');
        if self.write_time(totals, out) {
            out.push(b'\t');
        }
    }

    /// Appends the members `bytes` or `inodes`, and `time` if it is shown.
    pub(crate) fn write_members(&mut self, totals: &Totals, object: &mut Object<'_>) {
        object.number(if self.counts_inodes() { "inodes" } else { "bytes" }, self.value(totals));
        let mut time = Vec::new();
        if self.write_time(totals, &mut time) {
            object.text("time", &time);
        }
    }

    /// Thousandths that `part` is of `whole`, rounded.
    pub(crate) fn per_mille(&self, part: &Totals, whole: &Totals) -> u64 {
        let (part, whole) = (u128::from(self.value(part)), u128::from(self.value(whole)));
        let share = (part * 1000 + whole / 2).checked_div(whole).unwrap_or(0);
        u64::try_from(share.min(1000)).expect("not above 1000")
    }

    /// Has something said on standard error after the row.
    pub(crate) fn warn(&mut self, message: Vec<u8>) {
        self.warnings.push_back(message);
    }

    /// The next thing to be said on standard error.
    pub(crate) fn warning(&mut self) -> Option<Vec<u8>> {
        self.warnings.pop_front()
    }
}

/// The word for a type.
pub(crate) fn type_word(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Regular => "regular",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::Block => "block",
        FileType::Char => "char",
        FileType::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_walk::Stamp;

    fn figures(measure: Measure) -> Figures {
        let format =
            Format { block_size: BlockSize::BYTES, time_style: TimeStyle::default(), terminator: b'\n' };
        Figures::new(&Options { measure, ..Options::default() }, format, Charset::Ascii)
    }

    fn bytes(bytes: u64) -> Totals {
        Totals { bytes, inodes: 1, newest: Stamp::default() }
    }

    #[test]
    fn shares_are_rounded_and_never_more_than_all() {
        let share = |part, whole| figures(Measure::Usage).per_mille(&bytes(part), &bytes(whole));
        assert_eq!([share(1, 3), share(2, 3), share(1, 2001), share(1, 2000)], [333, 667, 0, 1]);
        assert_eq!([share(0, 0), share(7, 5), share(u64::MAX, u64::MAX)], [0, 1000, 1000]);
    }

    #[test]
    fn what_is_counted_decides_which_number_is_shown() {
        let columns = |measure| {
            let mut out = Vec::new();
            figures(measure).write_columns(&bytes(9), &mut out);
            out
        };
        assert_eq!((columns(Measure::Usage), columns(Measure::Inodes)), (b"9\t".to_vec(), b"1\t".to_vec()));
    }
}
