//! GNU du's lines: size, tab, optionally time and tab, path.

use fathom_du::options::{LineFormat, Measure, Options};
use fathom_du::scan::{Line, ScanOutcome};
use fathom_du::totals::Totals;
use fathom_text::quote::{Charset, NameStyle};

use super::View;
use crate::shared::output::{Output, stdout_is_terminal};

/// The view of GNU du's lines.
#[derive(Debug)]
pub(crate) struct TextView {
    format: LineFormat,
    inodes: bool,
    time: bool,
    charset: Charset,
    names: NameStyle,
    warning: Option<Vec<u8>>,
}

impl TextView {
    pub(crate) fn new(options: &Options, format: LineFormat, charset: Charset) -> Self {
        let inodes = options.measure == Measure::Inodes;
        let names = NameStyle::of(stdout_is_terminal(), format.terminator == 0, charset);
        Self { format, inodes, time: options.time.is_some(), charset, names, warning: None }
    }

    fn write(&mut self, totals: &Totals, path: &[u8], out: &mut Output) {
        let (block_size, buffer) = (&self.format.block_size, out.buffer());
        if self.inodes {
            block_size.write_count(totals.inodes, buffer);
        } else {
            block_size.write(totals.bytes, buffer);
        }
        buffer.push(b'\t');
        if self.time {
            let (sec, nsec) = (totals.newest.sec, totals.newest.nsec);
            if let Err(error) = self.format.time_style.write(sec, nsec, out) {
                self.warning = Some(error.message(self.charset));
            }
            out.buffer().push(b'\t');
        }
        let buffer = out.buffer();
        self.names.write(path, buffer);
        buffer.push(self.format.terminator);
    }
}

impl View for TextView {
    fn line(&mut self, line: &Line<'_>, out: &mut Output) {
        self.write(line.totals, line.path, out);
    }

    fn finish(&mut self, outcome: &ScanOutcome, total: bool, out: &mut Output) {
        if total {
            self.write(&outcome.total, b"total", out);
        }
    }

    fn warning(&mut self) -> Option<Vec<u8>> {
        self.warning.take()
    }
}
