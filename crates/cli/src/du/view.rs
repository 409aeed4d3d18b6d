//! What is shown of a run: GNU du's lines here, the other views in the files below.

mod text;

use fathom_du::options::{Format, Options};
use fathom_du::quote::Charset;
use fathom_du::scan::{Line, Outcome};

use super::extra::Extra;
use crate::output::Output;

/// Makes output of lines.
pub(crate) trait View {
    /// An entry that gets a line, in traversal order.
    fn line(&mut self, line: &Line<'_>, out: &mut Output);

    /// The run is over; `total` is whether a line for all operands together was asked for.
    fn finish(&mut self, outcome: &Outcome, total: bool, out: &mut Output);

    /// Something could not be measured.
    fn problem(&mut self) {}

    /// Something to say on standard error about the line before; no failure.
    fn warning(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Whether lines of files are to carry their metadata.
    fn wants_metas(&self) -> bool {
        false
    }
}

/// The view asked for. Adjusts what is measured to what it shows.
pub(crate) fn choose(
    options: &mut Options,
    format: Format,
    unit_chosen: bool,
    extra: &Extra,
    charset: Charset,
) -> Box<dyn View> {
    let _ = (unit_chosen, extra);
    Box::new(text::Text::new(options, format, charset))
}
